/*-------------------------------------------------------------------------
 *
 * euno_heapscan.c
 *	  Our own look at the heap, a page at a time: rebuilds and checks.
 *
 * table_index_build_scan looks at one tuple at a time.  While others write, a
 * HOT update can move a row behind it (lost) or in front of it (indexed
 * twice), and it waits for transactions.  This scan looks at each page once,
 * under a share lock, so that it sees every HOT chain whole: one entry per
 * chain, with the key of its last member that is not dead to everybody, under
 * the TID of its root.  Tuples of transactions in progress are included, and
 * nothing is waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/backend_progress.h"
#include "utils/rel.h"

#include "am/euno_debug.h"
#include "am/euno_heapscan.h"

/* How many blocks a participant takes at a time: 512 kB, for read-ahead. */
#define CHUNK_BLOCKS 64

/*
 * Each time a tuple's columns are read, those of one further on are fetched.
 */
#define VALUES_AHEAD	6
#define VALUE_BYTES		32		/* that one has, or the one before, probably */

/*
 * The index has columns and nothing else, so that no slot is needed; and few,
 * for each of them may have to be searched for from the tuple's start.
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

/* The columns that are where they are in every tuple without NULLs. */
static void
find_fixed(EunoHeapWalk *walk, TupleDesc desc)
{
	uint32		end = 0;
	int			n = 0;

	while (n < desc->natts && TupleDescAttr(desc, n)->attlen > 0)
	{
		Form_pg_attribute att = TupleDescAttr(desc, n++);

		end = (uint32) att_align_nominal(end, att->attalign) + att->attlen;
	}
	walk->nfixed = n;
	walk->fixed_end = end;
}

/*
 * heap_getattr, which begins at the first column each time if what it looks
 * for is behind one of variable length.
 */
static inline Datum
get_column(const EunoHeapWalk *walk, HeapTuple tuple, AttrNumber number,
		   TupleDesc desc, bool *isnull)
{
	HeapTupleHeader header = tuple->t_data;
	const char *data = (const char *) header + header->t_hoff;
	uint32		at = walk->fixed_end;

	if (number <= walk->nfixed + 1 || HeapTupleHasNulls(tuple) ||
		number > HeapTupleHeaderGetNatts(header))
		return heap_getattr(tuple, number, desc, isnull);
	for (int i = walk->nfixed;; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		at = (uint32) att_align_pointer(at, att->attalign, att->attlen,
										data + at);
		if (i == number - 1)
		{
			*isnull = false;
			return fetchatt(att, data + at);
		}
		at = (uint32) att_addlength_pointer(at, att->attlen, data + at);
	}
}

/*
 * A column of a tuple; where it is, if it is there and by reference, is noted.
 */
static inline Datum
column_of(EunoHeapWalk *walk, HeapTuple tuple, AttrNumber number,
		  TupleDesc desc, bool *isnull)
{
	Datum		value = get_column(walk, tuple, number, desc, isnull);

	if (!*isnull && !TupleDescAttr(desc, number - 1)->attbyval)
	{
		Size		at = (char *) DatumGetPointer(value) - (char *) tuple->t_data;

		if (at < tuple->t_len)
			walk->value_at = at;
	}
	return value;
}

/*
 * What has been fetched of tuples are their headers: a value further on is
 * probably where it was in the last one.  To find it, the one before it is
 * looked at.  A guess may be outside of the page, too; nobody reads what is
 * there.
 */
static inline void
prefetch_value(const EunoHeapWalk *walk, int number)
{
	const EunoHeapPage *page = walk->page;

	if (walk->value_at > 0 && number < page->nchains)
	{
		ItemId		item = PageGetItemId(page->page, page->chains[number].member);
		char	   *value = (char *) PageGetItem(page->page, item) +
			walk->value_at;

		euno_prefetch(value - VALUE_BYTES);
		euno_prefetch(value);
		euno_prefetch(value + VALUE_BYTES);
	}
}

/* Key and INCLUDE columns of a tuple; false if the predicate is not for it. */
static inline bool
evaluate(EunoHeapWalk *walk, HeapTuple tuple, TupleDesc desc, Datum *values,
		 bool *isnull)
{
	IndexInfo  *index_info = walk->index_info;

	if (walk->plain)
	{
		for (int i = 0; i < index_info->ii_NumIndexAttrs; i++)
			values[i] = column_of(walk, tuple, index_info->ii_IndexAttrNumbers[i],
								  desc, &isnull[i]);
		return true;
	}
	ExecStoreHeapTuple(tuple, walk->slot, false);
	if (walk->predicate != NULL &&
		!ExecQual(walk->predicate, GetPerTupleExprContext(walk->estate)))
		return false;
	FormIndexDatum(index_info, walk->slot, walk->estate, values, isnull);
	return true;
}

void
euno_heap_index_page(EunoHeapWalk *walk, BlockNumber block,
					 EunoHeapCallback callback, void *arg)
{
	EunoHeapPage *page = walk->page;
	MemoryContext memory = GetPerTupleMemoryContext(walk->estate);
	MemoryContext old = MemoryContextSwitchTo(memory);
	TupleDesc	desc = RelationGetDescr(walk->heap);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	HeapTupleData tuple;

	tuple.t_tableOid = RelationGetRelid(walk->heap);
	for (int i = 0; i < page->nchains; i++)
	{
		EunoChain  *chain = &page->chains[i];
		ItemId		item = PageGetItemId(page->page, chain->member);
		ItemPointerData root;

		tuple.t_data = (HeapTupleHeader) PageGetItem(page->page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, block, chain->member);

		prefetch_value(walk, i + VALUES_AHEAD);
		MemoryContextReset(memory);
		if (evaluate(walk, &tuple, desc, values, isnull))
		{
			ItemPointerSet(&root, block, chain->root);
			callback(arg, &root, values, isnull);
		}
	}
	ExecClearTuple(walk->slot);
	MemoryContextSwitchTo(old);
}

void
euno_heap_blocks_init(EunoHeapBlocks *blocks, Relation heap)
{
	blocks->nblocks = RelationGetNumberOfBlocks(heap);
	pg_atomic_init_u64(&blocks->next, 0);
}

bool
euno_heap_walk_next(EunoHeapWalk *walk, BlockNumber *first, BlockNumber *end)
{
	EunoHeapBlocks *blocks = walk->blocks;
	uint64		next = pg_atomic_fetch_add_u64(&blocks->next, CHUNK_BLOCKS);

	if (walk->progress)
		euno_build_progress(PROGRESS_SCAN_BLOCKS_DONE,
									 Min(next, blocks->nblocks));
	if (next >= blocks->nblocks)
		return false;
	*first = (BlockNumber) next;
	*end = (BlockNumber) Min(next + CHUNK_BLOCKS, blocks->nblocks);
	return true;
}

void
euno_heap_walk_begin(EunoHeapWalk *walk, Relation heap, IndexInfo *index_info,
					 EunoHeapBlocks *blocks, bool progress)
{
	walk->heap = heap;
	walk->index_info = index_info;
	walk->progress = progress;
	walk->page = palloc(sizeof(EunoHeapPage));

	walk->estate = CreateExecutorState();
	walk->plain = is_plain(index_info);
	walk->value_at = 0;
	find_fixed(walk, RelationGetDescr(heap));
	walk->slot = MakeSingleTupleTableSlot(RelationGetDescr(heap),
										  &TTSOpsHeapTuple);
	GetPerTupleExprContext(walk->estate)->ecxt_scantuple = walk->slot;
	walk->predicate = ExecPrepareQual(index_info->ii_Predicate, walk->estate);

	walk->oldest_xmin = GetOldestNonRemovableTransactionId(heap);
	walk->blocks = blocks;
	if (blocks == NULL)
	{
		walk->blocks = &walk->own_blocks;
		euno_heap_blocks_init(walk->blocks, heap);
	}

	/* As in sequential scans, only a large table has to spare the others */
	walk->strategy = !RelationUsesLocalBuffers(heap) &&
		walk->blocks->nblocks > (BlockNumber) NBuffers / 4 ?
		GetAccessStrategy(BAS_BULKREAD) : NULL;
	if (progress)
		euno_build_progress(PROGRESS_SCAN_BLOCKS_TOTAL,
									 walk->blocks->nblocks);
}

void
euno_heap_walk_end(EunoHeapWalk *walk)
{
	pfree(walk->page);
	FreeAccessStrategy(walk->strategy);
	ExecDropSingleTupleTableSlot(walk->slot);
	FreeExecutorState(walk->estate);

	/* They may have pointed into the estate that is gone now. */
	walk->index_info->ii_ExpressionsState = NIL;
	walk->index_info->ii_PredicateState = NULL;
}

/*
 * Follow the chain that starts at "root" and choose its member; false if there
 * is none, or the snapshot sees none.  The match of xmax and xmin is
 * heap_get_root_tuples' way of telling a chain from a line pointer that was
 * reused.  The buffer is share-locked.
 */
static bool
examine_chain(EunoHeapWalk *walk, Buffer buffer, OffsetNumber root,
			  Snapshot snapshot)
{
	EunoHeapPage *result = walk->page;
	Page		page = BufferGetPage(buffer);
	OffsetNumber offset = root;
	OffsetNumber max_offset = PageGetMaxOffsetNumber(page);
	ItemId		item = PageGetItemId(page, root);
	TransactionId prior_xmax = InvalidTransactionId;
	EunoChain  *chain = &result->chains[result->nchains];
	bool		visible = snapshot == NULL;

	chain->root = root;
	chain->member = InvalidOffsetNumber;

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
		tuple.t_tableOid = RelationGetRelid(walk->heap);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);

		if (TransactionIdIsValid(prior_xmax) &&
			!TransactionIdEquals(prior_xmax,
								 HeapTupleHeaderGetXmin(tuple.t_data)))
			break;

		result->ntuples++;
		status = HeapTupleSatisfiesVacuum(&tuple, walk->oldest_xmin, buffer);
		if (status == HEAPTUPLE_RECENTLY_DEAD && HeapTupleHasExternal(&tuple))
		{
			/*
			 * The snapshot that needed it may have ended since the horizon
			 * was computed, and its toasted values may be gone already: look
			 * again.
			 */
			walk->oldest_xmin = GetOldestNonRemovableTransactionId(walk->heap);
			status = HeapTupleSatisfiesVacuum(&tuple, walk->oldest_xmin, buffer);
		}
		if (status != HEAPTUPLE_DEAD)
			chain->member = offset;
		if (!visible)
			visible = HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer);

		if (!HeapTupleHeaderIsHotUpdated(tuple.t_data))
			break;
		prior_xmax = HeapTupleHeaderGetUpdateXid(tuple.t_data);
		offset = ItemPointerGetOffsetNumber(&tuple.t_data->t_ctid);
	}

	return visible && OffsetNumberIsValid(chain->member);
}

/*
 * Look at one page under a share lock and copy it.
 */
static void
examine_page(EunoHeapWalk *walk, BlockNumber block, Snapshot snapshot)
{
	EunoHeapPage *result = walk->page;
	Buffer		buffer;
	Page		page;
	OffsetNumber max_offset;

	result->nchains = 0;
	result->ntuples = 0;

	buffer = ReadBufferExtended(walk->heap, MAIN_FORKNUM, block, RBM_NORMAL,
								walk->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	max_offset = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	euno_heap_prefetch(page, max_offset);

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

		if (examine_chain(walk, buffer, offset, snapshot))
			result->nchains++;
	}

	if (result->nchains > 0)
		memcpy(result->copy.data, page, BLCKSZ);
	result->page = result->copy.data;
	UnlockReleaseBuffer(buffer);
}

/*
 * Our caller has a snapshot registered, so toasted values of tuples that this
 * snapshot or a later one sees stay.  Those of a tuple in progress go if its
 * inserter aborts before we evaluate it: a rebuild, which has no snapshot for the
 * tuples to be seen by, then fails, and is tried again.
 */
double
euno_heap_scan(Relation heap, IndexInfo *index_info, Snapshot snapshot,
			   EunoHeapBlocks *blocks, bool progress,
			   EunoHeapCallback callback, void *arg)
{
	EunoHeapWalk walk;
	BlockNumber block;
	BlockNumber end;
	double		ntuples = 0;

	euno_heap_walk_begin(&walk, heap, index_info, blocks, progress);
	EUNO_STOP_POINT("build-nblocks");
	while (euno_heap_walk_next(&walk, &block, &end))
	{
		for (; block < end; block++)
		{
			CHECK_FOR_INTERRUPTS();
			examine_page(&walk, block, snapshot);
			EUNO_STOP_POINT("build-copied");
			euno_heap_index_page(&walk, block, callback, arg);
			ntuples += walk.page->ntuples;
			EUNO_STOP_POINT("build-page");
		}
	}
	euno_heap_walk_end(&walk);
	return ntuples;
}
