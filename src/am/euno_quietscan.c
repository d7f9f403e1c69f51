/*-------------------------------------------------------------------------
 *
 * euno_quietscan.c
 *	  The heap for CREATE INDEX, while nobody else writes.
 *
 * Does what table_index_build_scan does, which takes the page's lock twice for
 * each tuple.  Most pages have nothing but tuples that are live or dead for
 * good; they are looked at once.  Pages with others are left to
 * table_index_build_scan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/euno_debug.h"
#include "am/euno_heapscan.h"
#include "euno_compat.h"

/*
 * Shall CREATE INDEX have an entry of this tuple?  False if that is not for us
 * to say: it may have to be waited for, or be the end of a broken HOT chain.
 */
static bool
examine_tuple(EunoHeapWalk *walk, Buffer buffer, OffsetNumber offset,
			  bool *wanted)
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
	tuple.t_tableOid = RelationGetRelid(walk->heap);
	ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
	switch (HeapTupleSatisfiesVacuum(&tuple, walk->oldest_xmin, buffer))
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
examine_quiet_page(EunoHeapWalk *walk, Buffer buffer)
{
	EunoHeapPage *result = walk->page;
	Page		page = BufferGetPage(buffer);
	OffsetNumber max_offset = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	OffsetNumber roots[MaxHeapTuplesPerPage];
	bool		know_roots = false;

	result->page = page;
	result->nchains = 0;
	euno_heap_prefetch(page, max_offset);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max_offset; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		EunoChain  *chain = &result->chains[result->nchains];
		bool		wanted;

		if (!ItemIdIsNormal(item))
			continue;
		if (!examine_tuple(walk, buffer, offset, &wanted))
			return false;
		if (!wanted)
			continue;
		chain->root = chain->member = offset;
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

bool
euno_heap_is_quiet(Relation heap, IndexInfo *index_info)
{
	return heap->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!index_info->ii_Concurrent && IsNormalProcessingMode();
}

/* Blocks first to end - 1 by table_index_build_scan; returns their tuples. */
static double
scan_unquiet(EunoHeapWalk *walk, Relation index, BlockNumber first,
			 BlockNumber end, EunoSort *sort)
{
	IndexInfo  *index_info = walk->index_info;
	List	   *states = index_info->ii_ExpressionsState;
	double		ntuples;

	/* It has expressions of its own. */
	index_info->ii_ExpressionsState = NIL;
	ntuples = table_index_build_range_scan(walk->heap, index, index_info, false,
										   false, false, first, end - first,
										   euno_sort_add_tuple, sort, NULL);
	index_info->ii_ExpressionsState = states;

	/* In the statistics it is a part of ours. */
	if (pgstat_should_count_relation(walk->heap))
		euno_scans_counted(walk->heap)--;
	return ntuples;
}

/* Blocks first to end - 1; those in a row that we leave to others at once. */
static double
scan_quiet_blocks(EunoHeapWalk *walk, Relation index, BlockNumber first,
				  BlockNumber end, EunoSort *sort)
{
	BlockNumber left = first;	/* from here on to be left to others */
	double		ntuples = 0;

	for (BlockNumber block = first; block < end; block++)
	{
		Buffer		buffer;
		bool		quiet;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(walk->heap, MAIN_FORKNUM, block, RBM_NORMAL,
									walk->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		quiet = examine_quiet_page(walk, buffer);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (quiet)
		{
			if (left < block)
				ntuples += scan_unquiet(walk, index, left, block, sort);
			left = block + 1;
			euno_heap_index_page(walk, block, euno_sort_add_root, sort);
			ntuples += walk->page->ntuples;
		}
		ReleaseBuffer(buffer);
		EUNO_STOP_POINT("build-page");
	}
	if (left < end)
		ntuples += scan_unquiet(walk, index, left, end, sort);
	return ntuples;
}

double
euno_heap_quiet_scan(Relation heap, Relation index, IndexInfo *index_info,
					 EunoHeapBlocks *blocks, bool progress, EunoSort *sort)
{
	EunoHeapWalk walk;
	BlockNumber block;
	BlockNumber end;
	double		ntuples = 0;

	pgstat_count_heap_scan(heap);
	euno_heap_walk_begin(&walk, heap, index_info, blocks, progress);
	while (euno_heap_walk_next(&walk, &block, &end))
		ntuples += scan_quiet_blocks(&walk, index, block, end, sort);
	euno_heap_walk_end(&walk);
	return ntuples;
}
