/*-------------------------------------------------------------------------
 *
 * euno_direct.c
 *	  Rows of index-only scans, from their windows to their nodes.
 *
 * To return a row takes the executor six functions, from the scan's node to
 * the access method and back, and that is most of the time of a scan which
 * only reads an index.  So the node of a scan that goes on for longer than one
 * batch gets a function of ours in the place of its own.  Where the window's
 * next rows are on pages that are visible to everybody, and their index tuples
 * have been made, ours puts one after the other into the node's slot; anything
 * else, a new window to begin with, it leaves to the node's own function.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/visibilitymap.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"

#include "am/euno_scan.h"
#include "euno_compat.h"

/* How many rows are looked at together at most. */
#define RUN_LENGTH		64

/* Where columns are in an index tuple without NULLs. */
typedef struct EunoLayout
{
	int			natts;			/* 0: not in the same place in all tuples */
	uint16		offset[INDEX_MAX_KEYS];
	int16		length[INDEX_MAX_KEYS];
	bool		byval[INDEX_MAX_KEYS];
} EunoLayout;

/* Only the last column may be of variable length. */
static void
make_layout(EunoLayout *layout, TupleDesc desc)
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
store(const EunoLayout *layout, IndexTuple tuple, TupleDesc desc,
	  TupleTableSlot *slot)
{
	if (TTS_SHOULDFREE(slot))
		ExecClearTuple(slot);
	if (layout->natts == 0 || IndexTupleHasNulls(tuple))
		index_deform_tuple(tuple, desc, slot->tts_values, slot->tts_isnull);
	else
	{
		for (int i = 0; i < layout->natts; i++)
		{
			slot->tts_values[i] = fetch_att((char *) tuple + layout->offset[i],
											layout->byval[i],
											layout->length[i]);
			slot->tts_isnull[i] = false;
		}
	}
}

/*
 * How many of the window's items from "from" on, which are less than "end", are
 * on pages that are visible to everybody?  What is returned of them needs no
 * hazard: see src/README.md.
 */
static uint32
count_visible(IndexScanDesc scan, const EunoWindow *window, uint32 from,
			  uint32 end, Buffer *map)
{
	EunoScan   *so = scan->opaque;
	BlockNumber page = InvalidBlockNumber;
	uint32		i;

	for (i = from; i < end; i++)
	{
		BlockNumber block = (BlockNumber) (window->tids[i] >> 16);

		if (block != page && !VM_ALL_VISIBLE(scan->heapRelation, block, map))
			break;
		page = block;
	}
	EUNO_STOP_POINT("scan-direct");
	pg_read_barrier();
	return euno_moment_is_now(so->idx, &window->read) ? i - from : 0;
}

/* May the window's item at "next" be returned, with others behind it? */
static pg_noinline bool
begin_run(IndexOnlyScanState *node, EunoWindow *window, uint32 next)
{
	IndexScanDesc scan = node->ioss_ScanDesc;
	EunoScan   *so = scan->opaque;
	uint32		end = so->unread ? window->nitems : window->formed;

	if (window->forward != so->direct_forward || next >= end)
		return false;
	end = Min(end, next + RUN_LENGTH);
	for (uint32 i = next; !so->unread && i < end; i++)
	{
		if (window->places[i] == 0)
			end = i;
	}
	window->run = next;
	window->run_length = count_visible(scan, window, next, end,
									   &node->ioss_VMBuffer);
	return window->run_length > 0;
}

/* Returns the next row, in the node's slot, or NULL. */
static inline TupleTableSlot *
next_row(IndexOnlyScanState *node)
{
	IndexScanDesc scan = node->ioss_ScanDesc;
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	uint32		next = (uint32) (window->pos + 1);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	if (unlikely(next - window->run >= window->run_length) &&
		!begin_run(node, window, next))
		return NULL;
	window->pos = (int32) next;
	pgstat_count_index_tuples(scan->indexRelation, 1);
	euno_tid_unpack(window->tids[next], &scan->xs_heaptid);
	if (!so->unread)
		store(so->layout, (IndexTuple) (window->tuples + window->places[next]),
			  scan->xs_itupdesc, slot);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
	return slot;
}

/* Takes the place of ExecIndexOnlyScan, and does what that does. */
static TupleTableSlot *
exec_direct(PlanState *state)
{
	IndexOnlyScanState *node = (IndexOnlyScanState *) state;
	EunoScan   *so = node->ioss_ScanDesc->opaque;
	ExprContext *econtext = state->ps_ExprContext;

	if (!ScanDirectionIsForward(state->state->es_direction))
		return so->direct(state);
	for (;;)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		slot = next_row(node);
		if (slot == NULL)
			return so->direct(state);
		if (state->qual == NULL && state->ps_ProjInfo == NULL)
			return slot;
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (ExecQual(state->qual, econtext))
			return state->ps_ProjInfo ? ExecProject(state->ps_ProjInfo) : slot;
		InstrCountFiltered1(node, 1);
	}
}

/*
 * Serializable transactions have to lock the pages of the rows that are
 * returned.
 */
void
euno_direct_take(IndexOnlyScanState *node)
{
	EunoScan   *so = node->ioss_ScanDesc->opaque;

	if (so->predicate.wanted)
		return;
	so->layout = MemoryContextAllocZero(so->context, sizeof(EunoLayout));
	make_layout(so->layout, node->ioss_ScanDesc->xs_itupdesc);
	so->direct_forward =
		!ScanDirectionIsBackward(((IndexOnlyScan *) node->ss.ps.plan)->indexorderdir);
	so->direct = node->ss.ps.ExecProcNodeReal;
	ExecSetExecProcNode(&node->ss.ps, exec_direct);
}
