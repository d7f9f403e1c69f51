/*-------------------------------------------------------------------------
 *
 * euno_heapscan.c
 *	  Our own look at the heap, a page at a time.
 *
 * table_index_build_scan looks at one tuple at a time.  While others write, a
 * HOT update can move a row behind it (lost) or in front of it (indexed
 * twice), and it waits for transactions.  This scan
 * looks at each page once, under a share lock, so that it sees every HOT chain
 * whole: one entry per chain, with the key of its last member that is not dead
 * to everybody, under the TID of its root.  Tuples of transactions in progress
 * are included, and nothing is waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/* How many blocks a participant takes at a time: 512 kB, for read-ahead. */
#define CHUNK_BLOCKS 64

/* What was found on the page that is being looked at. */
typedef struct Chain
{
	OffsetNumber root;
	OffsetNumber member;		/* the tuple to index */
	bool		visible;		/* to the snapshot, if one was given */
} Chain;

typedef struct HeapPage
{
	PGAlignedBlock copy;
	int			nchains;
	double		ntuples;
	Chain		chains[MaxHeapTuplesPerPage];
} HeapPage;

/*
 * Follow the chain that starts at "offset" and choose its member.  The match
 * of xmax and xmin is heap_get_root_tuples' way of telling a chain from a line
 * pointer that was reused.  The buffer is share-locked.
 */
static bool
examine_chain(Relation heap, Buffer buffer, OffsetNumber root,
			  TransactionId *oldest_xmin, Snapshot snapshot, HeapPage *result)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber offset = root;
	OffsetNumber max_offset = PageGetMaxOffsetNumber(page);
	ItemId		item = PageGetItemId(page, root);
	TransactionId prior_xmax = InvalidTransactionId;
	Chain	   *chain = &result->chains[result->nchains];

	chain->root = root;
	chain->member = InvalidOffsetNumber;
	chain->visible = false;

	if (ItemIdIsRedirected(item))
		offset = ItemIdGetRedirect(item);

	/* At most one step per line pointer, whatever the page says. */
	for (int steps = 0; steps < max_offset; steps++)
	{
		HeapTupleData tuple;
		HTSV_Result status;

		if (offset < FirstOffsetNumber || offset > max_offset)
			break;
		item = PageGetItemId(page, offset);
		if (!ItemIdIsNormal(item))
			break;

		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(heap);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);

		if (TransactionIdIsValid(prior_xmax) &&
			!TransactionIdEquals(prior_xmax,
								 HeapTupleHeaderGetXmin(tuple.t_data)))
			break;

		result->ntuples++;
		status = HeapTupleSatisfiesVacuum(&tuple, *oldest_xmin, buffer);
		if (status == HEAPTUPLE_RECENTLY_DEAD && HeapTupleHasExternal(&tuple))
		{
			/*
			 * The snapshot that needed it may have ended since the horizon
			 * was computed, and its toasted values may be gone already
			 *: look again.
			 */
			*oldest_xmin = GetOldestNonRemovableTransactionId(heap);
			status = HeapTupleSatisfiesVacuum(&tuple, *oldest_xmin, buffer);
		}
		if (status != HEAPTUPLE_DEAD)
			chain->member = offset;
		if (snapshot && !chain->visible)
			chain->visible = HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer);

		if (!HeapTupleHeaderIsHotUpdated(tuple.t_data))
			break;
		prior_xmax = HeapTupleHeaderGetUpdateXid(tuple.t_data);
		offset = ItemPointerGetOffsetNumber(&tuple.t_data->t_ctid);
	}

	return OffsetNumberIsValid(chain->member);
}

/*
 * Look at one page under a share lock and copy it.
 */
static void
examine_page(Relation heap, BlockNumber block, BufferAccessStrategy strategy,
			 TransactionId *oldest_xmin, Snapshot snapshot, HeapPage *result)
{
	Buffer		buffer;
	Page		page;
	OffsetNumber max_offset;

	result->nchains = 0;
	result->ntuples = 0;

	buffer = ReadBufferExtended(heap, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	max_offset = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	for (OffsetNumber offset = FirstOffsetNumber; offset <= max_offset; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);

		/* Dead line pointers wait for VACUUM; they have nothing to index. */
		if (ItemIdIsNormal(item))
		{
			if (HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page, item)))
				continue;		/* reached through its root */
		}
		else if (!ItemIdIsRedirected(item))
			continue;

		if (examine_chain(heap, buffer, offset, oldest_xmin, snapshot, result))
			result->nchains++;
	}

	if (result->nchains > 0)
		memcpy(result->copy.data, page, BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/*
 * Evaluate predicate and key for the chains of a copied page.
 */
static void
index_page(Relation heap, BlockNumber block, HeapPage *page,
		   IndexInfo *index_info, ExprState *predicate, EState *estate,
		   EunoHeapCallback callback, void *arg)
{
	ExprContext *econtext = GetPerTupleExprContext(estate);
	TupleTableSlot *slot = econtext->ecxt_scantuple;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < page->nchains; i++)
	{
		Chain	   *chain = &page->chains[i];
		ItemId		item = PageGetItemId(page->copy.data, chain->member);
		HeapTupleData tuple;
		ItemPointerData root;

		tuple.t_data = (HeapTupleHeader) PageGetItem(page->copy.data, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(heap);
		ItemPointerSet(&tuple.t_self, block, chain->member);

		MemoryContextReset(econtext->ecxt_per_tuple_memory);
		ExecStoreHeapTuple(&tuple, slot, false);
		if (predicate == NULL || ExecQual(predicate, econtext))
		{
			MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

			FormIndexDatum(index_info, slot, estate, values, isnull);
			ItemPointerSet(&root, block, chain->root);
			callback(arg, &root, values, isnull, chain->visible);
			MemoryContextSwitchTo(old);
		}
		ExecClearTuple(slot);
	}
}

void
euno_heap_blocks_init(EunoHeapBlocks *blocks, Relation heap)
{
	blocks->nblocks = RelationGetNumberOfBlocks(heap);
	pg_atomic_init_u64(&blocks->next, 0);
}

/* Take the next chunk: blocks *first to *end - 1.  False if there is none. */
static bool
take_blocks(EunoHeapBlocks *blocks, BlockNumber *first, BlockNumber *end)
{
	uint64		next = pg_atomic_fetch_add_u64(&blocks->next, CHUNK_BLOCKS);

	if (next >= blocks->nblocks)
		return false;
	*first = (BlockNumber) next;
	*end = Min(*first + CHUNK_BLOCKS, blocks->nblocks);
	return true;
}

double
euno_heap_scan(Relation heap, Relation index, IndexInfo *index_info,
			   Snapshot snapshot, EunoHeapBlocks *blocks, bool progress,
			   EunoHeapCallback callback, void *arg)
{
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(heap),
													&TTSOpsHeapTuple);
	ExprState  *predicate = ExecPrepareQual(index_info->ii_Predicate, estate);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	HeapPage   *page = palloc(sizeof(HeapPage));
	EunoHeapBlocks own_blocks;
	TransactionId oldest_xmin;
	BlockNumber block;
	BlockNumber end;
	double		ntuples = 0;

	econtext->ecxt_scantuple = slot;

	/*
	 * Our caller has a snapshot registered, so toasted values of tuples that
	 * this snapshot or a later one sees stay.
	 */
	oldest_xmin = GetOldestNonRemovableTransactionId(heap);
	if (blocks == NULL)
	{
		blocks = &own_blocks;
		euno_heap_blocks_init(blocks, heap);
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, blocks->nblocks);
	EUNO_STOP_POINT("build-nblocks");

	while (take_blocks(blocks, &block, &end))
	{
		if (progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block);
		for (; block < end; block++)
		{
			CHECK_FOR_INTERRUPTS();
			examine_page(heap, block, strategy, &oldest_xmin, snapshot, page);
			index_page(heap, block, page, index_info, predicate, estate,
					   callback, arg);
			ntuples += page->ntuples;
			EUNO_STOP_POINT("build-page");
		}
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, blocks->nblocks);

	pfree(page);
	FreeAccessStrategy(strategy);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);

	/* They may have pointed into the estate that is gone now. */
	index_info->ii_ExpressionsState = NIL;
	index_info->ii_PredicateState = NULL;
	return ntuples;
}
