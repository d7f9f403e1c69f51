/*-------------------------------------------------------------------------
 *
 * euno_scan.c
 *	  Index scans: plain, index-only and bitmap, in both directions.
 *
 * A scan copies a batch of TIDs out of one leaf and holds nothing between
 * calls: no lock, no epoch, no pointer into the tree.  It finds its place
 * again by key and TID, so splits, merges, evictions and rebuilds in between
 * do not matter.
 *
 * What a batch holds may be removed from the tree and from the heap while we
 * hand it out.  A plain MVCC scan does not care.  A scan that needs no look at
 * the heap (index-only), or whose snapshot would accept the new tuple in a
 * reused TID, announces each TID as its hazard before it returns it: see
 * euno_vacuum.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/*
 * Most scans want one row or a few; others want all of a leaf.  The first
 * batch of a scan is small, later ones are not.
 */
#define FIRST_BATCH 32
#define FULL_BATCH	1024

/* How often comparators may get in the way of announcing one TID. */
#define MAX_ANNOUNCEMENTS 100

/* One batch and the place in the index that it came from. */
typedef struct EunoWindow
{
	EunoCursor	cursor;
	uint64		vacuum_epoch;	/* read before the batch was */
	uint64		generation;		/* of the tree it was read from */
	uint32		nitems;
	int32		pos;			/* the item last returned; -1 or nitems:
								 * outside */
	bool		forward;		/* items ascend */
	bool		any_killed;
	uint32		capacity;		/* of the arrays: FIRST_BATCH or FULL_BATCH */
	EunoTid    *tids;
	bool	   *killed;			/* valid if any_killed */
	EunoItemKey *keys;			/* NULL until keys are wanted, as buf */
	uint8_t    *buf;
} EunoWindow;

typedef struct EunoScan
{
	EunoIndex  *idx;
	EunoScanPlan *plan;
	EunoScanRange range;
	MemoryContext context;
	EunoWindow *current;
	EunoWindow *spare;			/* for mark; allocated on first use */
	EunoWindow *marked_window;	/* NULL: none, or in the current one */
	int32		marked_pos;
	bool		is_marked;
	bool		counted;		/* in pg_stat_user_indexes */
	bool		want_keys;
	bool		use_hazards;
	bool		hazard_set;

	/* index-only scans */
	Datum	   *values;
	bool	   *isnull;
	uint8_t    *scratch;		/* EUNO_KEY_DEFORM_BYTES */
	char	   *itup_buffer;
	Size		itup_size;
} EunoScan;

static EunoWindow *
make_window(EunoScan *so)
{
	EunoWindow *window = MemoryContextAlloc(so->context, sizeof(EunoWindow));

	window->nitems = 0;
	window->pos = -1;
	window->any_killed = false;
	window->capacity = 0;
	window->tids = NULL;
	window->killed = NULL;
	window->keys = NULL;
	window->buf = NULL;
	return window;
}

/* Make room for a batch; the old one is not needed any more. */
static void
prepare_window(EunoScan *so, EunoWindow *window, uint32 capacity)
{
	MemoryContext old = MemoryContextSwitchTo(so->context);

	if (window->capacity < capacity)
	{
		if (window->tids)
		{
			pfree(window->tids);
			pfree(window->killed);
		}
		if (window->keys)
			pfree(window->keys);
		window->tids = palloc(capacity * sizeof(EunoTid));
		window->killed = palloc(capacity * sizeof(bool));
		window->keys = NULL;
		window->capacity = capacity;
	}
	if (so->want_keys && window->keys == NULL)
		window->keys = palloc(window->capacity * sizeof(EunoItemKey));
	if (so->want_keys && window->buf == NULL)
		window->buf = palloc(EUNO_BATCH_BUF);
	MemoryContextSwitchTo(old);
}

IndexScanDesc
eunobeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "euno scan",
												  ALLOCSET_DEFAULT_SIZES);
	EunoScan   *so = MemoryContextAllocZero(context, sizeof(EunoScan));

	so->idx = euno_index_open(index);
	so->context = context;
	so->plan = euno_scan_plan_create(so->idx->schema, nkeys, so->context);
	so->current = make_window(so);
	scan->opaque = so;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

/*
 * Remove what the executor found dead in the window we leave.  The TIDs may
 * have been recycled since the batch was read: each removal is conditional on
 * the vacuum epoch of that time, which is checked while the leaf is locked.
 */
static void
apply_kills(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	EunoIndex  *idx = so->idx;
	EunoContext *cx;
	EunoCursor *cursor;
	EunoBatch	batch = {.max_items = FULL_BATCH, .want_keys = true,
	.buf_size = EUNO_BATCH_BUF};
	EunoTid    *dead;
	uint32		ndead = 0;

	if ((window->vacuum_epoch & 1) != 0)
		return;					/* read while a bulk delete was under way */

	dead = palloc(window->nitems * sizeof(EunoTid));
	for (uint32 i = 0; i < window->nitems; i++)
		if (window->killed[i])
			dead[ndead++] = window->tids[i];

	/* Read the window again, with keys. */
	cursor = palloc(sizeof(EunoCursor));
	cursor->lo = window->cursor.at_lo ? window->cursor.lo : window->cursor.left.pos;
	cursor->hi = window->cursor.at_hi ? window->cursor.hi : window->cursor.right.pos;
	euno_cursor_start(cursor);
	batch.tids = palloc(FULL_BATCH * sizeof(EunoTid));
	batch.keys = palloc(FULL_BATCH * sizeof(EunoItemKey));
	batch.buf = palloc(EUNO_BATCH_BUF);

	for (;;)
	{
		EunoGuard	guard;
		EunoStatus	status = EUNO_NOT_FOUND;

		if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
			status = idx->slot->ops->read(cx, &idx->slot->tree, cursor, true, &batch);
		euno_index_unpin(idx);
		if (status != EUNO_OK || batch.nitems == 0)
			break;

		for (uint32 i = 0; i < batch.nitems; i++)
		{
			EunoEntry	entry = {.key = batch.buf + batch.keys[i].offset,
				.keylen = batch.keys[i].keylen,
			.tid = batch.tids[i]};
			bool		found = false;

			for (uint32 j = 0; j < ndead && !found; j++)
				found = dead[j] == entry.tid;
			if (!found)
				continue;
			if (euno_index_pin(idx, &cx) == EUNO_STATE_READY &&
				idx->generation == window->generation)
			{
				guard.word = (const uint64_t *) &idx->slot->vacuum_epoch.value;
				guard.expected = window->vacuum_epoch;
				(void) idx->slot->ops->remove(cx, &idx->slot->tree, &entry, &guard);
			}
			euno_index_unpin(idx);
		}
		if (cursor->at_hi)
			break;
	}
	pfree(batch.buf);
	pfree(batch.keys);
	pfree(batch.tids);
	pfree(cursor);
	pfree(dead);
}

/*
 * Bounds in COMPARE order point to the scan keys' arguments, which may be gone
 * at a rescan.
 */
static bool
bounds_are_usable(const EunoCursor *cursor)
{
	return (!cursor->at_lo || cursor->lo.bound == NULL) &&
		(!cursor->at_hi || cursor->hi.bound == NULL);
}

static void
leave_window(IndexScanDesc scan, bool rescan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;

	if (likely(!window->any_killed))
		return;
	if (!rescan || bounds_are_usable(&window->cursor))
		apply_kills(scan);
	window->any_killed = false;
}

static void
clear_hazard(EunoScan *so)
{
	if (so->hazard_set)
	{
		euno_hazard_clear(so->idx->cx.process);
		so->hazard_set = false;
	}
}

void
eunorescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		   int norderbys)
{
	EunoScan   *so = scan->opaque;

	leave_window(scan, true);
	clear_hazard(so);

	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	euno_scan_plan_set(so->plan, scan->keyData, scan->numberOfKeys, &so->range);

	so->current->cursor.lo = so->range.lo;
	so->current->cursor.hi = so->range.hi;
	euno_cursor_start(&so->current->cursor);
	so->current->nitems = 0;
	so->current->pos = -1;
	if (so->marked_window != NULL)
		so->spare = so->marked_window;
	so->marked_window = NULL;
	so->is_marked = false;
	so->counted = false;
}

void
eunoendscan(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	leave_window(scan, false);
	clear_hazard(so);

	/* Exclusion constraints open and end a scan for every row. */
	MemoryContextDelete(so->context);
}

/*
 * A mark stays in the window it was set in.  Before the current window is
 * overwritten, a marked one is put aside.
 */
static void
save_marked_window(EunoScan *so)
{
	EunoWindow *fresh;
	EunoCursor *from = &so->current->cursor;
	EunoCursor *to;

	if (so->spare == NULL)
		so->spare = make_window(so);
	fresh = so->spare;
	to = &fresh->cursor;

	*to = *from;
	if (to->started && !to->at_lo && from->left.pos.key != NULL)
		to->left.pos.key = to->left.data;
	if (to->started && !to->at_hi && from->right.pos.key != NULL)
		to->right.pos.key = to->right.data;
	fresh->forward = so->current->forward;
	fresh->nitems = 0;
	fresh->pos = -1;

	so->marked_window = so->current;
	so->current = fresh;
	so->spare = NULL;
}

/*
 * Read the next batch in the given direction into the current window.  False
 * at the end of the range.
 */
static bool
read_batch(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoWindow *window;
	EunoBatch	batch;
	bool		first;

	leave_window(scan, false);
	window = so->current;
	if (forward ? window->cursor.at_hi : window->cursor.at_lo)
		return false;			/* and stay in this window */

	if (so->is_marked && so->marked_window == NULL && window->nitems > 0)
	{
		save_marked_window(so);
		window = so->current;
	}
	first = !window->cursor.started;

	CHECK_FOR_INTERRUPTS();
	batch.max_items = first ? FIRST_BATCH : FULL_BATCH;
	prepare_window(so, window, batch.max_items);
	batch.nitems = 0;
	batch.tids = window->tids;
	batch.want_keys = so->want_keys;
	batch.keys = window->keys;
	batch.buf = window->buf;
	batch.buf_size = EUNO_BATCH_BUF;

	for (;;)
	{
		EunoContext *cx;
		EunoState	state = euno_index_pin(idx, &cx);
		EunoStatus	status;

		if (likely(state == EUNO_STATE_READY))
		{
			/* An acquire fence, so that the batch is not read before it. */
			window->generation = idx->generation;
			window->vacuum_epoch = pg_atomic_read_u64(&idx->slot->vacuum_epoch);
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			status = idx->slot->ops->read(cx, &idx->slot->tree,
										  &window->cursor, forward, &batch);
			euno_index_unpin(idx);
			if (unlikely(status != EUNO_OK))
				euno_index_error(idx, scan->indexRelation, status);
			break;
		}
		euno_index_unpin(idx);

		/* The planner looks for an extreme value: it can do without. */
		if (scan->xs_snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE)
			break;
		euno_index_ensure_ready(idx, scan->indexRelation);
	}

	window->nitems = batch.nitems;
	window->forward = forward;
	window->pos = -1;
	return batch.nitems > 0;
}

/*
 * The executor wants to know nothing but this about an entry: make it an index
 * tuple in memory of our own, without a palloc per tuple.
 */
static void
form_index_tuple(IndexScanDesc scan, const uint8_t *key, EunoItemKey *item)
{
	EunoScan   *so = scan->opaque;
	TupleDesc	tupdesc = scan->xs_itupdesc;
	Size		data_size;
	Size		header_size;
	uint16		infomask = 0;
	uint16		tuple_mask = 0;
	bool		has_null = false;
	IndexTuple	itup;

	if (so->values == NULL)
	{
		so->values = MemoryContextAlloc(so->context, tupdesc->natts * sizeof(Datum));
		so->isnull = MemoryContextAlloc(so->context, tupdesc->natts * sizeof(bool));
		so->scratch = MemoryContextAlloc(so->context, EUNO_KEY_DEFORM_BYTES);
	}
	euno_key_deform(so->idx->schema, key, item->keylen,
					key + MAXALIGN(item->keylen), item->payloadlen,
					so->scratch, so->values, so->isnull);

	for (int i = 0; i < tupdesc->natts && !has_null; i++)
		has_null = so->isnull[i];
	header_size = IndexInfoFindDataOffset(has_null ? INDEX_NULL_MASK : 0);
	data_size = heap_compute_data_size(tupdesc, so->values, so->isnull);

	if (so->itup_size < header_size + data_size + MAXIMUM_ALIGNOF)
	{
		if (so->itup_buffer)
			pfree(so->itup_buffer);
		so->itup_size = Max(256, 2 * (header_size + data_size));
		so->itup_buffer = MemoryContextAlloc(so->context, so->itup_size);
	}
	itup = (IndexTuple) so->itup_buffer;

	/* Readers tell padding from a short value by its being zero. */
	memset(itup, 0, header_size + data_size);
	heap_fill_tuple(tupdesc, so->values, so->isnull,
					(char *) itup + header_size, data_size, &tuple_mask,
					has_null ? (bits8 *) ((char *) itup + sizeof(IndexTupleData)) : NULL);
	if (has_null)
		infomask |= INDEX_NULL_MASK;
	if (tuple_mask & HEAP_HASVARWIDTH)
		infomask |= INDEX_VAR_MASK;
	itup->t_info = infomask | (uint16) MAXALIGN(header_size + data_size);
	scan->xs_itup = itup;
}

/*
 * Announce a TID, and make sure that its entry is still in the tree.  False: it
 * has been removed, skip it.
 */
static bool
announce(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoItemKey *item = &window->keys[window->pos];
	EunoEntry	entry = {.key = window->buf + item->offset,
		.keylen = item->keylen,
	.tid = tid};
	EunoContext *cx;
	EunoStatus	status = EUNO_OK;
	int			attempts = 0;

	EUNO_STOP_POINT("scan-batch");

	euno_hazard_set(idx, tid);	/* a full barrier */
	so->hazard_set = true;
	if (unlikely(pg_atomic_read_u64(&idx->slot->generation) != window->generation ||
				 pg_atomic_read_u64(&idx->slot->vacuum_epoch) != window->vacuum_epoch))
	{
		uint64		changes;

		/*
		 * The tree may even have been rebuilt, in another slot: the hazard
		 * has to name the one that VACUUM walks.  A comparator that scans a
		 * euno index itself takes the hazard word away from us.
		 */
		do
		{
			if (++attempts > MAX_ANNOUNCEMENTS)
				ereport(ERROR,
						(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
						 errmsg("comparison functions of euno index \"%s\" scan euno indexes themselves",
								RelationGetRelationName(scan->indexRelation))));
			while (euno_index_pin(idx, &cx) != EUNO_STATE_READY)
			{
				euno_index_unpin(idx);
				euno_index_ensure_ready(idx, scan->indexRelation);
			}
			euno_hazard_set(idx, tid);
			changes = euno_hazard_changes;
			status = idx->slot->ops->contains(cx, &idx->slot->tree, &entry);
			euno_index_unpin(idx);
			if (status == EUNO_CORRUPT)
				euno_index_error(idx, scan->indexRelation, status);
		} while (status == EUNO_OK && changes != euno_hazard_changes);
	}
	if (status == EUNO_OK)
		EUNO_STOP_POINT("scan-return");
	return status == EUNO_OK;
}

/*
 * Move to the next item in the given direction, reading batches as needed.
 */
static bool
next_item(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;

	if (window->nitems > 0)
	{
		if (forward == window->forward)
		{
			if (window->pos < (int32) window->nitems)
				window->pos++;
			if (window->pos < (int32) window->nitems)
				return true;
		}
		else
		{
			if (window->pos >= 0)
				window->pos--;
			if (window->pos >= 0)
				return true;
		}
	}

	if (!read_batch(scan, forward))
		return false;
	so->current->pos = 0;
	return true;
}

bool
eunogettuple(IndexScanDesc scan, ScanDirection direction)
{
	EunoScan   *so = scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);
	EunoWindow *window = so->current;

	if (unlikely(!so->counted))
	{
		euno_require_serving(scan->indexRelation);
		euno_count_index_scan(scan);
		so->counted = true;
		so->use_hazards = scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
		so->want_keys = so->use_hazards || !so->range.exact;
	}
	else if (scan->kill_prior_tuple && window->nitems > 0 &&
			 window->pos >= 0 && window->pos < (int32) window->nitems)
	{
		if (!window->any_killed)
			memset(window->killed, 0, window->nitems * sizeof(bool));
		window->any_killed = true;
		window->killed[window->pos] = true;
	}

	if (so->range.empty)
		return false;

	while (next_item(scan, forward))
	{
		EunoTid		tid;

		window = so->current;
		tid = window->tids[window->pos];
		if (so->want_keys)
		{
			EunoItemKey *item = &window->keys[window->pos];
			const uint8_t *key = window->buf + item->offset;

			if (!so->range.exact &&
				!euno_scan_matches(so->plan, key, item->keylen))
				continue;
			if (so->use_hazards && !announce(scan, window, tid))
				continue;
			if (scan->xs_want_itup)
				form_index_tuple(scan, key, item);
		}
		euno_tid_unpack(tid, &scan->xs_heaptid);

		/*
		 * Our quals are exact, but the caller with a non-MVCC snapshot may
		 * find a newer tuple in a chain than the one that was indexed.
		 */
		scan->xs_recheck = so->use_hazards && !scan->xs_want_itup;
		return true;
	}
	clear_hazard(so);
	return false;
}

void
eunomarkpos(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	if (so->marked_window != NULL)
	{
		so->spare = so->marked_window;
		so->marked_window = NULL;
	}
	so->is_marked = true;
	so->marked_pos = so->current->pos;
}

void
eunorestrpos(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	if (so->marked_window != NULL)
	{
		leave_window(scan, false);
		so->spare = so->current;
		so->current = so->marked_window;
		so->marked_window = NULL;
	}
	so->current->pos = so->marked_pos;
}

/*
 * Where the tree cannot serve and cannot be built, a bitmap scan can fall back
 * to the whole heap: every page is looked at and every row rechecked.
 */
static int64
all_heap_pages(IndexScanDesc scan, TIDBitmap *bitmap)
{
	Relation	heap = table_open(scan->indexRelation->rd_index->indrelid, NoLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);

	for (BlockNumber block = 0; block < nblocks; block++)
		tbm_add_page(bitmap, block);
	table_close(heap, NoLock);
	return nblocks;
}

int64
eunogetbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	EunoScan   *so = scan->opaque;
	const char *why;
	const char *hint;
	ItemPointerData *pointers;
	int64		ntids = 0;

	euno_count_index_scan(scan);
	if (so->range.empty)
		return 0;
	if (!euno_can_serve(&why, &hint))
		return all_heap_pages(scan, bitmap);

	so->want_keys = !so->range.exact;
	pointers = palloc(FULL_BATCH * sizeof(ItemPointerData));
	while (read_batch(scan, true))
	{
		EunoWindow *window = so->current;
		int			n = 0;

		for (uint32 i = 0; i < window->nitems; i++)
		{
			if (so->want_keys &&
				!euno_scan_matches(so->plan, window->buf + window->keys[i].offset,
								   window->keys[i].keylen))
				continue;
			euno_tid_unpack(window->tids[i], &pointers[n++]);
		}
		tbm_add_tuples(bitmap, pointers, n, false);
		ntids += n;
		CHECK_FOR_INTERRUPTS();
	}
	pfree(pointers);
	return ntids;
}

/* Every column: the payload has what the key cannot give back. */
bool
eunocanreturn(Relation index, int attno)
{
	return true;
}
