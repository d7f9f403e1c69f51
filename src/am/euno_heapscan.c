/*-------------------------------------------------------------------------
 *
 * euno_heapscan.c
 *	  Our own look at the heap, a page at a time.
 *
 * Rebuilds:
 *
 * table_index_build_scan looks at one tuple at a time.  While others write, a
 * HOT update can move a row behind it (lost) or in front of it (indexed
 * twice), and it waits for transactions.  This scan
 * looks at each page once, under a share lock, so that it sees every HOT chain
 * whole: one entry per chain, with the key of its last member that is not dead
 * to everybody, under the TID of its root.  Tuples of transactions in progress
 * are included, and nothing is waited for.
 *
 * CREATE INDEX, while nobody else writes: what table_index_build_scan does,
 * which takes the page's lock twice for each tuple.  Most pages have nothing
 * but tuples that are live or dead for good; they are looked at once.  Pages
 * with others are left to table_index_build_scan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
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
#include "core/euno_shared.h"
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
	Page		page;			/* the copy, or pinned */
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

/* Their headers all at once, for a look at each. */
static inline void
prefetch_tuples(Page page, OffsetNumber max_offset)
{
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max_offset; offset++)
		euno_prefetch((char *) page +
					  ItemIdGetOffset(PageGetItemId(page, offset)));
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
	prefetch_tuples(page, max_offset);

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
	result->page = result->copy.data;
	UnlockReleaseBuffer(buffer);
}

/*
 * Shall CREATE INDEX have an entry of this tuple?  False if that is not for us
 * to say: it may have to be waited for, or be the end of a broken HOT chain.
 */
static bool
examine_tuple(Relation heap, Buffer buffer, OffsetNumber offset,
			  TransactionId oldest_xmin, bool *wanted)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, offset);
	const uint16 settled = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;
	HeapTupleData tuple;
	TransactionId xmin;

	*wanted = true;
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	if (PageIsAllVisible(page) ||
		(tuple.t_data->t_infomask & settled) == settled)
		return true;			/* as it would be found below */
	tuple.t_len = ItemIdGetLength(item);
	tuple.t_tableOid = RelationGetRelid(heap);
	ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
	switch (HeapTupleSatisfiesVacuum(&tuple, oldest_xmin, buffer))
	{
		case HEAPTUPLE_DEAD:
			*wanted = false;
			return true;
		case HEAPTUPLE_LIVE:
			return true;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			/* A table is often loaded and indexed in one transaction. */
			xmin = HeapTupleHeaderGetXmin(tuple.t_data);
			return TransactionIdIsCurrentTransactionId(xmin);
		default:
			return false;
	}
}

/*
 * Look at a page for CREATE INDEX, under a share lock.  The caller keeps it
 * pinned: so what is on it stays where it is.  False if the page is left to
 * PostgreSQL.
 */
static bool
examine_quiet_page(Relation heap, Buffer buffer, TransactionId oldest_xmin,
				   HeapPage *result)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber max_offset = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	OffsetNumber roots[MaxHeapTuplesPerPage];
	bool		know_roots = false;

	result->page = page;
	result->nchains = 0;
	prefetch_tuples(page, max_offset);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max_offset; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		Chain	   *chain = &result->chains[result->nchains];
		bool		wanted;

		if (!ItemIdIsNormal(item))
			continue;
		if (!examine_tuple(heap, buffer, offset, oldest_xmin, &wanted))
			return false;
		if (!wanted)
			continue;
		chain->root = chain->member = offset;
		chain->visible = true;
		if (HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page, item)))
		{
			if (!know_roots)
				heap_get_root_tuples(page, roots);
			know_roots = true;
			chain->root = roots[offset - 1];
			if (!OffsetNumberIsValid(chain->root))
				return false;
		}
		result->nchains++;
	}
	result->ntuples = result->nchains;
	return true;
}

/* What a scan evaluates expressions with. */
typedef struct Evaluation
{
	EState	   *estate;
	TupleTableSlot *slot;
	ExprState  *predicate;
	bool		plain;			/* none of these is needed */
} Evaluation;

/*
 * The index has columns and nothing else, so that no slot is needed; and few, for
 * each of them may have to be searched for from the tuple's start.
 */
static bool
is_plain(IndexInfo *index_info)
{
	if (index_info->ii_Predicate != NIL || index_info->ii_NumIndexAttrs > 2)
		return false;
	for (int i = 0; i < index_info->ii_NumIndexAttrs; i++)
		if (index_info->ii_IndexAttrNumbers[i] <= 0)
			return false;
	return true;
}

/* Key and INCLUDE columns of a tuple; false if the predicate is not for it. */
static inline bool
evaluate(Evaluation *evaluation, IndexInfo *index_info, HeapTuple tuple,
		 TupleDesc desc, Datum *values, bool *isnull)
{
	TupleTableSlot *slot = evaluation->slot;

	if (evaluation->plain)
	{
		for (int i = 0; i < index_info->ii_NumIndexAttrs; i++)
			values[i] = heap_getattr(tuple, index_info->ii_IndexAttrNumbers[i],
									 desc, &isnull[i]);
		return true;
	}
	ExecStoreHeapTuple(tuple, slot, false);
	if (evaluation->predicate != NULL &&
		!ExecQual(evaluation->predicate,
				  GetPerTupleExprContext(evaluation->estate)))
		return false;
	FormIndexDatum(index_info, slot, evaluation->estate, values, isnull);
	return true;
}

/*
 * Evaluate predicate and key for the chains of a page.
 */
static void
index_page(Relation heap, BlockNumber block, HeapPage *page,
		   IndexInfo *index_info, Evaluation *evaluation,
		   EunoHeapCallback callback, void *arg)
{
	MemoryContext memory = GetPerTupleMemoryContext(evaluation->estate);
	MemoryContext old = MemoryContextSwitchTo(memory);
	TupleDesc	desc = RelationGetDescr(heap);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	HeapTupleData tuple;

	tuple.t_tableOid = RelationGetRelid(heap);
	for (int i = 0; i < page->nchains; i++)
	{
		Chain	   *chain = &page->chains[i];
		ItemId		item = PageGetItemId(page->page, chain->member);
		ItemPointerData root;

		tuple.t_data = (HeapTupleHeader) PageGetItem(page->page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, block, chain->member);

		MemoryContextReset(memory);
		if (evaluate(evaluation, index_info, &tuple, desc, values, isnull))
		{
			ItemPointerSet(&root, block, chain->root);
			callback(arg, &root, values, isnull, chain->visible);
		}
	}
	ExecClearTuple(evaluation->slot);
	MemoryContextSwitchTo(old);
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

static void
begin_evaluation(Evaluation *evaluation, Relation heap, IndexInfo *index_info)
{
	EState	   *estate = CreateExecutorState();

	evaluation->estate = estate;
	evaluation->plain = is_plain(index_info);
	evaluation->slot = MakeSingleTupleTableSlot(RelationGetDescr(heap),
												&TTSOpsHeapTuple);
	GetPerTupleExprContext(estate)->ecxt_scantuple = evaluation->slot;
	evaluation->predicate = ExecPrepareQual(index_info->ii_Predicate, estate);
}

static void
end_evaluation(Evaluation *evaluation, IndexInfo *index_info)
{
	ExecDropSingleTupleTableSlot(evaluation->slot);
	FreeExecutorState(evaluation->estate);

	/* They may have pointed into the estate that is gone now. */
	index_info->ii_ExpressionsState = NIL;
	index_info->ii_PredicateState = NULL;
}

double
euno_heap_scan(Relation heap, Relation index, IndexInfo *index_info,
			   Snapshot snapshot, EunoHeapBlocks *blocks, bool progress,
			   EunoHeapCallback callback, void *arg)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	HeapPage   *page = palloc(sizeof(HeapPage));
	Evaluation	evaluation;
	EunoHeapBlocks own_blocks;
	TransactionId oldest_xmin;
	BlockNumber block;
	BlockNumber end;
	double		ntuples = 0;

	begin_evaluation(&evaluation, heap, index_info);

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
			index_page(heap, block, page, index_info, &evaluation, callback,
					   arg);
			ntuples += page->ntuples;
			EUNO_STOP_POINT("build-page");
		}
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, blocks->nblocks);

	pfree(page);
	FreeAccessStrategy(strategy);
	end_evaluation(&evaluation, index_info);
	return ntuples;
}

bool
euno_heap_is_quiet(Relation heap, IndexInfo *index_info)
{
	return heap->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!index_info->ii_Concurrent && IsNormalProcessingMode();
}

/* Blocks first to end - 1 by table_index_build_scan; returns their tuples. */
static double
scan_unquiet(Relation heap, Relation index, IndexInfo *index_info,
			 BlockNumber first, BlockNumber end, EunoSort *sort)
{
	List	   *states = index_info->ii_ExpressionsState;
	double		ntuples;

	/* It has expressions of its own. */
	index_info->ii_ExpressionsState = NIL;
	ntuples = table_index_build_range_scan(heap, index, index_info, false, false,
										   false, first, end - first,
										   euno_sort_add_tuple, sort, NULL);
	index_info->ii_ExpressionsState = states;

	/* In the statistics it is a part of ours. */
	if (pgstat_should_count_relation(heap))
		euno_scans_counted(heap)--;
	return ntuples;
}

/* Blocks first to end - 1; those in a row that we leave to others at once. */
static double
scan_quiet_blocks(Relation heap, Relation index, IndexInfo *index_info,
				  Evaluation *evaluation, BufferAccessStrategy strategy,
				  TransactionId oldest_xmin, BlockNumber first,
				  BlockNumber end, HeapPage *page, EunoSort *sort)
{
	BlockNumber left = first;	/* from here on to be left to others */
	double		ntuples = 0;

	for (BlockNumber block = first; block < end; block++)
	{
		Buffer		buffer;
		bool		quiet;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(heap, MAIN_FORKNUM, block, RBM_NORMAL,
									strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		quiet = examine_quiet_page(heap, buffer, oldest_xmin, page);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (quiet)
		{
			if (left < block)
				ntuples += scan_unquiet(heap, index, index_info, left, block,
										sort);
			left = block + 1;
			index_page(heap, block, page, index_info, evaluation,
					   euno_sort_add_root, sort);
			ntuples += page->ntuples;
		}
		ReleaseBuffer(buffer);
		EUNO_STOP_POINT("build-page");
	}
	if (left < end)
		ntuples += scan_unquiet(heap, index, index_info, left, end, sort);
	return ntuples;
}

double
euno_heap_quiet_scan(Relation heap, Relation index, IndexInfo *index_info,
					 EunoHeapBlocks *blocks, bool progress, EunoSort *sort)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	HeapPage   *page = palloc(sizeof(HeapPage));
	TransactionId oldest_xmin = GetOldestNonRemovableTransactionId(heap);
	Evaluation	evaluation;
	EunoHeapBlocks own_blocks;
	BlockNumber block;
	BlockNumber end;
	double		ntuples = 0;

	begin_evaluation(&evaluation, heap, index_info);
	pgstat_count_heap_scan(heap);
	if (blocks == NULL)
	{
		blocks = &own_blocks;
		euno_heap_blocks_init(blocks, heap);
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, blocks->nblocks);
	while (take_blocks(blocks, &block, &end))
	{
		if (progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block);
		ntuples += scan_quiet_blocks(heap, index, index_info, &evaluation,
									 strategy, oldest_xmin, block, end, page,
									 sort);
	}
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, blocks->nblocks);
	pfree(page);
	FreeAccessStrategy(strategy);
	end_evaluation(&evaluation, index_info);
	return ntuples;
}
