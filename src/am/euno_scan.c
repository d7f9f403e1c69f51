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

#include "am/euno_scan.h"
#include "euno_compat.h"

/*
 * Short statements and exclusion constraints begin and end a scan for every row.
 * So an index keeps one that has ended, if it is a small one, and a backend so
 * many.
 */
#define MAX_KEPT_SCANS 32

static int	kept_scans = 0;

static EunoScan *
make_scan(EunoIndex *idx, int nkeys)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "euno scan",
												  ALLOCSET_DEFAULT_SIZES);
	EunoScan   *so = MemoryContextAllocZero(context, sizeof(EunoScan));

	so->idx = idx;
	so->context = context;
	so->plan = euno_scan_plan_create(idx->schema, nkeys, context);
	so->current = euno_window_make(so);
	so->first_batch = FIRST_BATCH;
	so->first_parts = FIRST_PARTS;
	return so;
}

/*
 * Until it ends again, an error frees the scan with the memory of its statement,
 * as it frees others.
 */
static EunoScan *
take_kept_scan(EunoIndex *idx, int nkeys)
{
	EunoScan   *so = idx->kept_scan;

	if (so == NULL || !euno_scan_plan_reuse(so->plan, nkeys))
		return NULL;
	idx->kept_scan = NULL;
	kept_scans--;
	MemoryContextSetParent(so->context, CurrentMemoryContext);
	return so;
}

/* What only index-only scans and inexact ranges have. */
static void
free_copies(EunoScan *so)
{
	EunoWindow *window = so->current;

	if (window->buf != NULL)
		pfree(window->buf);
	window->buf = NULL;
	if (so->itup_buffer != NULL)
		pfree(so->itup_buffer);
	if (so->values != NULL)
	{
		pfree(so->values);
		pfree(so->isnull);
		pfree(so->scratch);
	}
}

/* False: it is too large, or there are enough. */
static bool
keep_scan(EunoScan *so)
{
	EunoIndex  *idx = so->idx;
	EunoWindow *window = so->current;

	if (idx->kept_scan != NULL || kept_scans >= MAX_KEPT_SCANS ||
		so->spare != NULL || so->marked_window != NULL ||
		window->capacity > MOST_FIRST_BATCH ||
		!euno_scan_plan_rest(so->plan))
		return false;
	free_copies(so);
	*so = (EunoScan)
	{
		.idx = idx,.context = so->context,.plan = so->plan,.current = window,
		.first_batch = so->first_batch,.first_parts = so->first_parts
	};
	window->forward = true;
	MemoryContextSetParent(so->context, idx->context);
	idx->kept_scan = so;
	kept_scans++;
	return true;
}

void
euno_scan_forget(EunoIndex *idx)
{
	if (idx->kept_scan != NULL)
		kept_scans--;
	idx->kept_scan = NULL;
}

IndexScanDesc
eunobeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	EunoIndex  *idx = euno_index_open(index);
	EunoScan   *so = take_kept_scan(idx, nkeys);

	if (so == NULL)
		so = make_scan(idx, nkeys);
	scan->opaque = so;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
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

	euno_window_leave(scan, true);
	clear_hazard(so);
	euno_window_learn(so);

	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	euno_scan_plan_set(so->plan, scan->keyData, scan->numberOfKeys, &so->range);

	euno_window_restart(so);
	if (so->marked_window != NULL)
		so->spare = so->marked_window;
	so->marked_window = NULL;
	so->is_marked = false;
	so->counted = so->plain = false;
	so->distance = 0;
	so->predicate.wanted = IsolationIsSerializable() &&
		scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot);
}

void
eunoendscan(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	euno_window_leave(scan, false);
	clear_hazard(so);
	euno_window_learn(so);
	if (!keep_scan(so))
		MemoryContextDelete(so->context);
}

/* Room for an index tuple; what was in the buffer is gone. */
static IndexTuple
tuple_buffer(EunoScan *so, Size size)
{
	if (so->itup_size < size)
	{
		if (so->itup_buffer)
			pfree(so->itup_buffer);
		so->itup_size = Max(512, 2 * size);
		so->itup_buffer = MemoryContextAllocZero(so->context, so->itup_size);
	}
	return (IndexTuple) so->itup_buffer;
}

/* An index tuple of any columns; see form_index_tuple. */
static IndexTuple
form_any_tuple(IndexScanDesc scan, const uint8_t *key, EunoItemKey *item)
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
	itup = tuple_buffer(so, header_size + data_size + MAXIMUM_ALIGNOF);

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
	return itup;
}

/*
 * The executor wants to know nothing but this about an entry: make it an index
 * tuple in memory of our own, without a palloc per tuple.
 */
static void
form_index_tuple(IndexScanDesc scan, const uint8_t *key, EunoItemKey *item)
{
	EunoScan   *so = scan->opaque;
	Size		header_size = IndexInfoFindDataOffset(0);
	IndexTuple	itup = tuple_buffer(so, header_size + EUNO_KEY_IMAGE_BYTES);
	uint16		infomask;
	uint32		data_size = euno_key_image(so->idx->schema, key, item->keylen,
										   item->payloadlen,
										   (char *) itup + header_size,
										   &infomask);

	if (data_size > 0)
		itup->t_info = infomask | (uint16) MAXALIGN(header_size + data_size);
	else
		itup = form_any_tuple(scan, key, item);
	scan->xs_itup = itup;
}

/*
 * The tree may have changed since the batch was read: is the entry of a TID that
 * was announced still there?
 */
static bool
still_there(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoItemKey *item = &window->keys[window->pos];
	EunoEntry	entry = {.key = window->buf + item->offset,
		.keylen = item->keylen,
	.tid = tid};
	EunoGuard	guard;
	EunoStatus	status;

	/*
	 * The tree may even have been rebuilt, in another slot: the hazard has to
	 * name the one that VACUUM walks.
	 */
	while ((status = euno_announce(idx, scan->indexRelation, &entry,
								   &guard)) == EUNO_STALE)
		euno_index_ensure_ready(idx, scan->indexRelation);
	return status == EUNO_OK;
}

/*
 * Announce a TID, and make sure that its entry is still in the tree.  False: it
 * has been removed, skip it.
 */
static inline bool
announce(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;
	EunoTreeSlot *slot = so->idx->slot;

	EUNO_STOP_POINT("scan-batch");

	euno_hazard_set(so->idx, tid);
	so->hazard_set = true;
	if (unlikely(pg_atomic_read_u64(&slot->generation) != window->generation ||
				 pg_atomic_read_u64(&slot->vacuum_epoch) != window->vacuum_epoch) &&
		!still_there(scan, window, tid))
		return false;
	EUNO_STOP_POINT("scan-return");
	return true;
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

	if (!euno_window_read(scan, forward))
		return false;
	so->current->pos = 0;
	return true;
}

/* Before the first tuple of a scan. */
static void
begin(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	euno_require_serving(scan->indexRelation);
	euno_count_index_scan(scan);
	so->counted = true;
	so->use_hazards = scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
	so->want_keys = so->use_hazards || !so->range.exact;
	so->pins = euno_recent_begin(scan);
	so->pinned = InvalidBlockNumber;
	so->plain = so->pins && !so->want_keys;

	/*
	 * Our quals are exact, but the caller with a non-MVCC snapshot may find a
	 * newer tuple in a chain than the one that was indexed.
	 */
	scan->xs_recheck = so->use_hazards && !scan->xs_want_itup &&
		scan->numberOfKeys > 0;
}

/* The executor found the tuple that it was given last dead to everybody. */
static void
note_killed(EunoWindow *window)
{
	if (window->pos < 0 || window->pos >= (int32) window->nitems)
		return;
	if (!window->any_killed)
		memset(window->killed, 0, window->nitems * sizeof(bool));
	window->any_killed = true;
	window->killed[window->pos] = true;
}

/* Where keys are wanted: may the window's item be returned? */
static inline bool
accept_item(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;
	EunoItemKey *item = &window->keys[window->pos];
	const uint8_t *key = window->buf + item->offset;

	if (!so->range.exact && !euno_scan_matches(so->plan, key, item->keylen))
		return false;
	if (so->use_hazards && !announce(scan, window, tid))
		return false;
	if (scan->xs_want_itup)
		form_index_tuple(scan, key, item);
	return true;
}

static pg_noinline bool
next_tuple(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;

	if (unlikely(!so->counted))
		begin(scan);
	else if (unlikely(scan->kill_prior_tuple))
		note_killed(so->current);
	if (unlikely(so->range.empty))
		return false;

	for (;;)
	{
		EunoWindow *window = so->current;
		EunoTid		tid;

		if (likely(forward == window->forward &&
				   window->pos + 1 < (int32) window->nitems))
			window->pos++;
		else if (next_item(scan, forward))
			window = so->current;
		else
			break;
		tid = window->tids[window->pos];
		if (so->want_keys && !accept_item(scan, window, tid))
			continue;
		if (unlikely(window->ahead.wanted) && forward == window->forward)
			euno_ahead_step(scan, window);
		if (so->pins && so->pinned != (BlockNumber) (tid >> 16))
		{
			so->pinned = (BlockNumber) (tid >> 16);
			euno_recent_pin(scan, so->pinned);
		}
		euno_tid_unpack(tid, &scan->xs_heaptid);
		return true;
	}
	clear_hazard(so);
	return false;
}

/*
 * Of most rows of a range nothing more is wanted than the TID, on the page of the
 * row before.  Those do not pay for the rest.
 */
bool
eunogettuple(IndexScanDesc scan, ScanDirection direction)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	bool		forward = ScanDirectionIsForward(direction);
	EunoTid		tid;

	if (!so->plain || scan->kill_prior_tuple || window->ahead.wanted ||
		forward != window->forward ||
		window->pos + 1 >= (int32) window->nitems)
		return next_tuple(scan, forward);
	tid = window->tids[window->pos + 1];
	if (so->pinned != (BlockNumber) (tid >> 16))
		return next_tuple(scan, forward);
	window->pos++;
	euno_tid_unpack(tid, &scan->xs_heaptid);
	return true;
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
		euno_window_leave(scan, false);
		so->spare = so->current;
		so->current = so->marked_window;
		so->marked_window = NULL;
		if (so->range.parts && !so->current->entire)
			euno_scan_part_set(so->plan, &so->current->first, &so->range);
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
	while (euno_window_read(scan, true))
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
