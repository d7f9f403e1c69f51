/*-------------------------------------------------------------------------
 *
 * euno_kill.c
 *	  Removing the entry of a dead row, and those that a scan found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/euno_scan.h"

void
euno_remove_dead(EunoIndex *idx, const EunoEntry *entry, const EunoMoment *read)
{
	EunoContext *cx;

	if ((read->vacuum_epoch & 1) != 0)
		return;					/* a bulk delete was under way */
	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY &&
		idx->generation == read->generation)
	{
		EunoTreeSlot *slot = idx->slot;
		EunoGuard	guard = euno_vacuum_guard(slot, read->vacuum_epoch);
		uint64		before = cx->counters.descents;

		(void) slot->ops->remove(cx, &slot->tree, entry, &guard);
		euno_count_upkeep(idx, cx, before);
	}
	euno_index_unpin(idx);
}

/*
 * Removes those entries of a range whose TIDs are in the list, which is
 * sorted; in the window's direction, up to the last of them: behind that the
 * window may have skipped any number of others.  (Others may have removed
 * some; a window was made of no more than a batch.)
 */
static void
kill_in_range(EunoIndex *idx, const EunoWindow *window, EunoReader *reader,
			  const EunoTid *dead, uint32 ndead)
{
	bool		forward = window->forward;
	EunoCursor *cursor = &reader->cursor;
	EunoBatch  *batch = &reader->batch;
	uint32		met = 0;
	uint32		looked = 0;
	EunoContext *cx;

	euno_cursor_start(cursor);
	do
	{
		EunoStatus	status = EUNO_NOT_FOUND;

		if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
		{
			uint64		before = cx->counters.descents;

			status = idx->slot->ops->read(cx, &idx->slot->tree, cursor, forward,
										  batch);
			euno_count_upkeep(idx, cx, before);
		}
		euno_index_unpin(idx);
		if (status != EUNO_OK || batch->nitems == 0)
			break;
		looked += batch->nitems;

		for (uint32 i = 0; i < batch->nitems; i++)
		{
			EunoEntry	entry = {.key = batch->buf + batch->keys[i].offset,
				.keylen = batch->keys[i].keylen,
			.tid = batch->tids[i]};

			if (!euno_tid_among(entry.tid, dead, ndead))
				continue;
			met++;
			euno_remove_dead(idx, &entry, &window->read);
		}
	} while (met < ndead && looked < 2 * EUNO_FULL_BATCH &&
			 !(forward ? cursor->at_hi : cursor->at_lo));
}

/* Collects what was found dead of items [from, to), sorted. */
static uint32
dead_items(const EunoWindow *window, uint32 from, uint32 to, EunoTid *dead)
{
	uint32		n = 0;

	for (uint32 i = from; i < to; i++)
		if (window->killed[i])
			dead[n++] = window->tids[i];
	euno_sort64(dead, n);
	return n;
}

/*
 * Reads the current window again, with keys, and removes what the executor
 * found dead in it.  If it is of entire parts, the plan's current part is
 * another one afterwards.
 */
void
euno_kill_dead_items(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	EunoReader *reader;
	EunoCursor *cursor;
	EunoTid    *dead;

	if ((window->read.vacuum_epoch & 1) != 0)
		return;					/* read while a bulk delete was under way */

	dead = palloc(window->nitems * sizeof(EunoTid));
	reader = euno_reader_make();
	cursor = &reader->cursor;
	if (!window->entire)
	{
		cursor->lo = window->cursor.at_lo ? window->cursor.lo : window->cursor.left.pos;
		cursor->hi = window->cursor.at_hi ? window->cursor.hi : window->cursor.right.pos;
		kill_in_range(so->idx, window, reader, dead,
					  dead_items(window, 0, window->nitems, dead));
	}
	else
	{
		uint32		from = 0;

		euno_scan_part_set(so->plan, window->forward ? &window->first : &window->last,
						   &so->range);
		for (uint32 i = 0; i < window->nparts; i++)
		{
			uint32		ndead = dead_items(window, from, window->part_end[i], dead);

			cursor->lo = so->range.lo;
			cursor->hi = so->range.hi;
			if (ndead > 0)
				kill_in_range(so->idx, window, reader, dead, ndead);
			from = window->part_end[i];
			(void) euno_scan_part_next(so->plan, window->forward, &so->range);
		}
	}
	pfree(reader);
	pfree(dead);
}
