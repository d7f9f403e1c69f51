/*-------------------------------------------------------------------------
 *
 * euno_direct.c
 *	  Rows of a scan, from its windows to its node.
 *
 * For each row the executor calls some ten functions, from the scan's node to
 * the access method and to the table, and these take most of the time of a
 * scan of many rows.  But a window says which rows come next.  So the node of a
 * scan that goes on for longer than one batch gets a function of ours in the
 * place of its own.  Ours looks at a run of rows together: whether their pages
 * are visible to everybody, if the scan is index-only, or which rows of one
 * page the scan sees, as a sequential scan does.  Then it puts one after the
 * other into the node's slot.  Anything else, a new window to begin with, it
 * leaves to the node's own function.  Protocol and proof: src/README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

#include "am/euno_debug.h"
#include "am/euno_scan.h"
#include "euno_compat.h"

/* How many rows are looked at together at most: bits of a word. */
#define RUN_LENGTH		64

/* Pages of a table that are on one page of its visibility map, or about. */
#define MAP_BLOCKS \
	((BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) * BITS_PER_BYTE / BITS_PER_HEAPBLOCK)

/* Where columns are in an index tuple without NULLs. */
typedef struct Layout
{
	int			natts;			/* 0: not at the same places in all tuples */
	uint16		offset[INDEX_MAX_KEYS];
	int16		length[INDEX_MAX_KEYS];
	bool		byval[INDEX_MAX_KEYS];
} Layout;

/*
 * What nodes of a kind have for a function of their own: the server's, or that
 * of whoever was there before us.  A node that has another one is left alone.
 */
static ExecProcNodeMtd usual_index_only = NULL;
static ExecProcNodeMtd usual_in_heap = NULL;

/*
 * What a scan has if our function is in its node.  A node may have got another
 * scan since then.
 */
struct EunoDirect
{
	bool		forward;		/* windows are, if the node goes forward */
	Layout		layout;			/* index-only scans */
	bool		visited;		/* the rows of the run were looked at in the table,
								 * by an index-only scan */
	OffsetNumber lines[RUN_LENGTH]; /* where, if they were */
};

/* ---- what a page has of the rows that come next ---- */

/*
 * The line of the version that the scan sees of a row, on a page that is locked;
 * or InvalidOffsetNumber.  all_visible: of every row of the page there is one
 * version, which everybody sees.
 */
static inline OffsetNumber
find_version(IndexScanDesc scan, Buffer buffer, EunoTid tid, bool all_visible)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber line = (OffsetNumber) (tid & 0xFFFF);
	HeapTupleData tuple;
	ItemPointerData pointer;

	if (all_visible && line <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, line);

		if (ItemIdIsRedirected(item))
		{
			line = ItemIdGetRedirect(item);
			item = PageGetItemId(page, line);
		}
		if (ItemIdIsNormal(item))
			return line;
	}
	euno_tid_unpack(tid, &pointer);
	if (heap_hot_search_buffer(&pointer, scan->heapRelation, buffer,
							   scan->xs_snapshot, &tuple, NULL, true))
		return ItemPointerGetOffsetNumber(&pointer);
	return InvalidOffsetNumber;
}

/*
 * Finds the versions of the window's items from "from" on, less than "end", as
 * far as they are on this page, and seen by the scan; how many.  By an MVCC
 * snapshot, so a TID that has become another row's is not seen.
 */
static uint32
find_versions(IndexScanDesc scan, const EunoWindow *window, uint32 from,
			  uint32 end, Buffer buffer)
{
	OffsetNumber *lines = ((EunoScan *) scan->opaque)->direct->lines;
	BlockNumber block = BufferGetBlockNumber(buffer);
	bool		all_visible;
	uint32		i;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	all_visible = PageIsAllVisible(BufferGetPage(buffer)) &&
		!scan->xs_snapshot->takenDuringRecovery;
	for (i = from; i < end && window->tids[i] >> 16 == block; i++)
	{
		lines[i - from] = find_version(scan, buffer, window->tids[i],
									   all_visible);
		if (lines[i - from] == InvalidOffsetNumber)
			break;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return i - from;
}

/* ---- index-only scans ---- */

/* Only the last column may be of variable length. */
static void
make_layout(Layout *layout, TupleDesc desc)
{
	Size		offset = sizeof(IndexTupleData);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Size		aligned = att_align_nominal(offset, att->attalign);

		if (att->attlen <= 0 && (i < desc->natts - 1 || aligned != offset))
			return;
		layout->offset[i] = (uint16) aligned;
		layout->length[i] = att->attlen;
		layout->byval[i] = att->attbyval;
		offset = aligned + Max(att->attlen, 0);
	}
	layout->natts = desc->natts;
}

/* Puts the columns of an index tuple into a virtual slot. */
static inline void
store(const Layout *layout, IndexTuple tuple, TupleDesc desc,
	  TupleTableSlot *slot)
{
	if (TTS_SHOULDFREE(slot))
		ExecClearTuple(slot);
	if (layout->natts == 0 || IndexTupleHasNulls(tuple))
	{
		index_deform_tuple(tuple, desc, slot->tts_values, slot->tts_isnull);
		return;
	}
	for (int i = 0; i < layout->natts; i++)
	{
		slot->tts_values[i] = fetch_att((char *) tuple + layout->offset[i],
										layout->byval[i], layout->length[i]);
		slot->tts_isnull[i] = false;
	}
}

/*
 * Asks the visibility map about the window's items from "from" on, less than
 * "end": which are on pages that are visible to everybody?  Those may be
 * returned without a hazard: see src/README.md.  What is on one page of the map
 * is asked together, for in a large table each row may be on another.
 */
static void
look_at_map(IndexScanDesc scan, EunoWindow *window, uint32 from, uint32 end,
			Buffer *buffer)
{
	EunoScan   *so = scan->opaque;
	const EunoTid *tids = window->tids + from;
	uint64		pending = UINT64_MAX >> (RUN_LENGTH - (end - from));
	uint64		visible = 0;

	EUNO_STOP_POINT("scan-direct");
	while (pending != 0)
	{
		BlockNumber map = (BlockNumber) (tids[pg_rightmost_one_pos64(pending)] >> 16) / MAP_BLOCKS;
		BlockNumber page = InvalidBlockNumber;
		bool		all_visible = false;

		for (uint64 left = pending; left != 0; left &= left - 1)
		{
			int			i = pg_rightmost_one_pos64(left);
			BlockNumber block = (BlockNumber) (tids[i] >> 16);

			if (block / MAP_BLOCKS != map)
				continue;
			if (block != page)
				all_visible = VM_ALL_VISIBLE(scan->heapRelation, block, buffer);
			page = block;
			visible |= (uint64) all_visible << i;
			pending &= ~(UINT64CONST(1) << i);
		}
	}
	pg_read_barrier();
	window->looked = from;
	window->nlooked = end - from;
	window->visible = euno_moment_is_now(so->idx, &window->read) ? visible : 0;
}

/* How many from this one on are visible, of those that were looked at. */
static inline uint32
count_visible(const EunoWindow *window, uint32 from)
{
	uint64		others = ~(window->visible >> (from - window->looked));

	return others == 0 ? RUN_LENGTH : pg_rightmost_one_pos64(others);
}

/* The page in the buffer that the table pins for an index scan. */
static Buffer
pin_page(IndexScanDesc scan, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;
	Buffer		before = fetch->xs_cbuf;

	fetch->xs_cbuf = ReleaseAndReadBuffer(before, scan->heapRelation, block);
	if (fetch->xs_cbuf != before)
		euno_fetch_switched(fetch, block);
	return fetch->xs_cbuf;
}

/* May the window's item at "next" be returned, with others behind it? */
static pg_noinline bool
begin_index_only_run(IndexOnlyScanState *node, EunoWindow *window, uint32 next)
{
	IndexScanDesc scan = node->ioss_ScanDesc;
	EunoScan   *so = scan->opaque;
	uint32		end = so->unread ? window->nitems : window->formed;

	if (window->forward != so->direct->forward || next >= end)
		return false;
	end = Min(end, next + RUN_LENGTH);
	for (uint32 i = next; !so->unread && i < end; i++)
	{
		if (window->places[i] == 0)
			end = i;
	}
	if (next >= end)
		return false;
	if (next - window->looked >= window->nlooked)
		look_at_map(scan, window, next, end, &node->ioss_VMBuffer);
	window->run = next;
	window->run_length = count_visible(window, next);
	so->direct->visited = window->run_length == 0;
	if (so->direct->visited)
		window->run_length = find_versions(scan, window, next, end,
										   pin_page(scan, window->tids[next] >> 16));
	return window->run_length > 0;
}

/* Puts the next row into the node's slot. */
static inline bool
next_index_only(ScanState *state)
{
	IndexOnlyScanState *node = (IndexOnlyScanState *) state;
	IndexScanDesc scan = node->ioss_ScanDesc;
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	uint32		next = (uint32) (window->pos + 1);
	TupleTableSlot *slot = state->ss_ScanTupleSlot;

	if (unlikely(next - window->run >= window->run_length) &&
		!begin_index_only_run(node, window, next))
		return false;
	window->pos = (int32) next;
	pgstat_count_index_tuples(scan->indexRelation, 1);
	euno_tid_unpack(window->tids[next], &scan->xs_heaptid);
	if (so->direct->visited)
	{
		InstrCountTuples2(node, 1);
		pgstat_count_heap_fetch(scan->indexRelation);
		/* WHERE CURRENT OF wants the version */
		ItemPointerSetOffsetNumber(&scan->xs_heaptid,
								   so->direct->lines[next - window->run]);
	}
	if (!so->unread)
		store(&so->direct->layout,
			  (IndexTuple) (window->tuples + window->places[next]),
			  scan->xs_itupdesc, slot);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
	return true;
}

/* ---- scans that visit the table ---- */

/*
 * Finds the versions of the window's next rows, as far as they are on the page
 * of the row before.  Is there one of the first?
 */
static pg_noinline bool
begin_heap_run(IndexScanDesc scan, EunoWindow *window, uint32 next)
{
	EunoScan   *so = scan->opaque;
	Buffer		buffer = ((IndexFetchHeapData *) scan->xs_heapfetch)->xs_cbuf;
	uint32		end = Min(window->nitems, next + RUN_LENGTH);

	if (!so->plain || window->forward != so->direct->forward || next >= end ||
		window->tids[next] >> 16 != so->pinned || !BufferIsValid(buffer) ||
		BufferGetBlockNumber(buffer) != so->pinned)
		return false;
	EUNO_STOP_POINT("scan-direct");
	window->run = next;
	window->run_length = find_versions(scan, window, next, end, buffer);
	return window->run_length > 0;
}

/* Puts the next row into the node's slot. */
static inline bool
next_in_heap(ScanState *state)
{
	IndexScanDesc scan = ((IndexScanState *) state)->iss_ScanDesc;
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	uint32		next = (uint32) (window->pos + 1);
	TupleTableSlot *slot = state->ss_ScanTupleSlot;
	HeapTuple	tuple = &((BufferHeapTupleTableSlot *) slot)->base.tupdata;
	Buffer		buffer;
	OffsetNumber line;
	ItemId		item;

	if (unlikely(next - window->run >= window->run_length) &&
		!begin_heap_run(scan, window, next))
		return false;
	window->pos = (int32) next;
	buffer = ((IndexFetchHeapData *) scan->xs_heapfetch)->xs_cbuf;
	if (window->ahead.near)
		euno_ahead_near(scan, window, buffer);
	pgstat_count_index_tuples(scan->indexRelation, 1);
	pgstat_count_heap_fetch(scan->indexRelation);

	line = so->direct->lines[next - window->run];
	item = PageGetItemId(BufferGetPage(buffer), line);
	tuple->t_data = (HeapTupleHeader) PageGetItem(BufferGetPage(buffer), item);
	tuple->t_len = ItemIdGetLength(item);
	tuple->t_tableOid = RelationGetRelid(scan->heapRelation);
	ItemPointerSet(&tuple->t_self, so->pinned, line);
	scan->xs_heaptid = tuple->t_self;
	ExecStoreBufferHeapTuple(tuple, slot, buffer);
	return true;
}

/* ---- both ---- */

/*
 * What ExecScan does.  When the node's own function has been called, nothing is
 * known of the rows that come next.
 */
static inline TupleTableSlot *
exec(PlanState *state, IndexScanDesc scan, bool (*next) (ScanState *),
	 ExecProcNodeMtd usual)
{
	EunoScan   *so = scan->opaque;
	ScanState  *node = (ScanState *) state;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	ExprContext *econtext = state->ps_ExprContext;

	while (so->direct != NULL &&
		   ScanDirectionIsForward(state->state->es_direction) && next(node))
	{
		CHECK_FOR_INTERRUPTS();
		if (state->qual == NULL && state->ps_ProjInfo == NULL)
			return slot;
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (ExecQual(state->qual, econtext))
			return state->ps_ProjInfo ? ExecProject(state->ps_ProjInfo) : slot;
		InstrCountFiltered1(node, 1);
	}
	so->current->run_length = 0;
	return usual(state);
}

static TupleTableSlot *
exec_index_only(PlanState *state)
{
	return exec(state, ((IndexOnlyScanState *) state)->ioss_ScanDesc,
				next_index_only, usual_index_only);
}

static TupleTableSlot *
exec_in_heap(PlanState *state)
{
	return exec(state, ((IndexScanState *) state)->iss_ScanDesc, next_in_heap,
				usual_in_heap);
}

void
euno_direct_take(IndexScanDesc scan, PlanState *node)
{
	EunoScan   *so = scan->opaque;
	bool		index_only = IsA(node, IndexOnlyScanState);
	ScanDirection direction = index_only ?
		((IndexOnlyScan *) node->plan)->indexorderdir :
		((IndexScan *) node->plan)->indexorderdir;
	ExecProcNodeMtd *usual = index_only ? &usual_index_only : &usual_in_heap;
	ExecProcNodeMtd ours = index_only ? exec_index_only : exec_in_heap;

	if (*usual == NULL)
		*usual = node->ExecProcNodeReal;
	if (node->ExecProcNodeReal != *usual && node->ExecProcNodeReal != ours)
		return;
	if (so->predicate.wanted || !IsMVCCSnapshot(scan->xs_snapshot) ||
		scan->heapRelation->rd_tableam != GetHeapamTableAmRoutine())
		return;
	so->direct = MemoryContextAllocZero(so->context, sizeof(EunoDirect));
	so->direct->forward = !ScanDirectionIsBackward(direction);
	if (index_only)
		make_layout(&so->direct->layout, scan->xs_itupdesc);
	ExecSetExecProcNode(node, ours);
}
