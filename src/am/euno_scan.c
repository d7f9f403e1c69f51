/*-------------------------------------------------------------------------
 *
 * euno_scan.c
 *	  Index scans: plain, index-only and bitmap, in both directions.
 *
 * A scan copies a batch of TIDs, of one leaf or of several short ranges, and
 * holds nothing between calls: no lock, no epoch, no pointer into the tree.
 * It finds its place again by key and TID, so splits, merges, evictions and
 * rebuilds in between do not matter.
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

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/euno_debug.h"
#include "am/euno_scan.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/*
 * Short statements and exclusion constraints begin and end a scan for every
 * row.  So an index keeps one that has ended, and a backend so many.  The last
 * large ones keep the memory of their windows, some 100 kB, which malloc would
 * give back to the system, and get again for the next scan, page by page.
 */
#define MAX_KEPT_SCANS 32
#define MAX_LARGE_SCANS 2

static int	kept_scans = 0;
static EunoScan *large_scans[MAX_LARGE_SCANS];

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
	so->first_batch = EUNO_FIRST_BATCH;
	so->first_parts = FIRST_PARTS;
	return so;
}

/* The scan is not kept any more. */
static void
leave_large(const EunoScan *so)
{
	int			left = 0;

	for (int i = 0; i < MAX_LARGE_SCANS; i++)
	{
		if (large_scans[i] != so)
			large_scans[left++] = large_scans[i];
	}
	while (left < MAX_LARGE_SCANS)
		large_scans[left++] = NULL;
}

/*
 * Until it ends again, an error frees the scan with the memory of its
 * statement, as it frees others.
 */
static EunoScan *
take_kept_scan(EunoIndex *idx, int nkeys)
{
	EunoScan   *so = idx->kept_scan;

	if (so == NULL || !euno_scan_plan_reuse(so->plan, nkeys))
		return NULL;
	idx->kept_scan = NULL;
	kept_scans--;
	leave_large(so);
	MemoryContextSetParent(so->context, CurrentMemoryContext);
	return so;
}

/*
 * The scan is one of the large ones from now on, and the oldest of them is
 * not.
 */
static void
enter_large(EunoScan *so)
{
	EunoScan   *oldest = large_scans[MAX_LARGE_SCANS - 1];

	if (oldest != NULL && oldest->current->capacity > EUNO_MOST_FIRST_BATCH)
		euno_scan_forget(oldest->idx);
	else if (oldest != NULL)
		euno_window_drop_copies(oldest->current);
	memmove(large_scans + 1, large_scans,
			(MAX_LARGE_SCANS - 1) * sizeof(EunoScan *));
	large_scans[0] = so;
}

/* False: it cannot be kept, or there are enough. */
static bool
keep_scan(EunoScan *so)
{
	EunoIndex  *idx = so->idx;
	EunoWindow *window = so->current;

	if (idx->outdated || idx->kept_scan != NULL ||
		kept_scans >= MAX_KEPT_SCANS ||
		so->spare != NULL || so->marked_window != NULL ||
		!euno_scan_plan_rest(so->plan))
		return false;
	if (so->itup != NULL)
		pfree(so->itup);
	if (so->empty != NULL)
		pfree(so->empty);
	if (so->direct != NULL)
		pfree(so->direct);
	*so = (EunoScan)
	{
		.idx = idx,.context = so->context,.plan = so->plan,.current = window,
		.first_batch = so->first_batch,.first_parts = so->first_parts
	};
	window->forward = true;
	MemoryContextSetParent(so->context, idx->context);
	idx->kept_scan = so;
	kept_scans++;
	if (euno_window_is_large(window))
		enter_large(so);
	return true;
}

void
euno_scan_forget(EunoIndex *idx)
{
	if (idx->kept_scan == NULL)
		return;
	leave_large(idx->kept_scan);
	MemoryContextDelete(idx->kept_scan->context);
	idx->kept_scan = NULL;
	kept_scans--;
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

void
eunorescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		   int norderbys)
{
	EunoScan   *so = scan->opaque;

	euno_window_leave(scan);
	euno_window_learn(so);

	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	euno_scan_plan_set(so->plan, scan->keyData, scan->numberOfKeys, &so->range);

	euno_window_restart(so);
	if (so->marked_window != NULL)
		so->spare = so->marked_window;
	so->marked_window = NULL;
	so->is_marked = false;
	so->begun = so->plain = so->unread = false;
	so->distance = 0;
	so->predicate.wanted = IsolationIsSerializable() &&
		scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot);
}

void
eunoendscan(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	euno_window_leave(scan);
	euno_window_learn(so);
	if (!keep_scan(so))
		MemoryContextDelete(so->context);
}

/*
 * The tree may have changed since the batch was read: is the entry of a TID
 * that was announced still there?  If not, it has been removed, skip it.
 */
static pg_noinline bool
still_there(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoItemKey *item = &window->keys[window->pos];
	EunoEntry	entry = {.key = window->buf + item->offset,
		.keylen = item->keylen,
	.tid = tid};
	EunoMoment	read;
	EunoStatus	status;

	/*
	 * The tree may even have been rebuilt, in another slot: the hazard has to
	 * name the one that VACUUM walks.
	 */
	while ((status = euno_announce(idx, scan->indexRelation, &entry,
								   &read)) == EUNO_STALE)
		euno_index_try_build(idx, scan->indexRelation);
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
		int32		end = (int32) window->nitems;
		int32		pos = window->pos + (forward == window->forward ? 1 : -1);

		window->pos = Max(-1, Min(pos, end));
		if (pos >= 0 && pos < end)
			return true;
	}

	/* Most scans come to their end once, and leave nothing to be done there */
	if ((forward ? window->cursor.at_hi : window->cursor.at_lo) &&
		!so->range.parts && !window->any_killed && scan->parallel_scan == NULL)
		return false;
	if (!euno_window_read(scan, forward))
		return false;
	so->current->pos = 0;
	return true;
}

/*
 * Our quals are exact, and hazards keep TIDs from being used again.  A caller
 * with a non-MVCC snapshot would also see that the row is the one that was
 * indexed, which costs little; but where a NULL is sought, as NULLS NOT
 * DISTINCT does, the server's look finds no row to be equal.
 */
static bool
is_rechecked(IndexScanDesc scan)
{
	if (IsMVCCSnapshot(scan->xs_snapshot) || scan->xs_want_itup)
		return false;
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		if ((scan->keyData[i].sk_flags & SK_ISNULL) != 0)
			return false;
	}
	return scan->numberOfKeys > 0;
}

/* Before the first tuple of a scan. */
static void
begin(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	euno_require_serving(scan->indexRelation);
	euno_count_index_scan(scan);
	so->begun = true;
	so->use_hazards = scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
	so->want_keys = so->use_hazards || !so->range.exact;
	euno_unread_begin(scan);
	so->pins = euno_recent_begin(scan);
	so->pinned = so->coming = InvalidBlockNumber;
	so->plain = so->pins && !so->want_keys;

	/*
	 * Exclusion constraints: each of two sessions inserts its entry, and then
	 * looks for the other's.  With a full barrier in between, at least one of
	 * them finds it.
	 */
	if (!IsMVCCSnapshot(scan->xs_snapshot))
		pg_memory_barrier();

	scan->xs_recheck = is_rechecked(scan);
}

/* The executor found the tuple that it was given last dead to everybody. */
static void
note_killed(EunoScan *so)
{
	EunoWindow *window = so->current;

	if (window->pos < 0 || window->pos >= (int32) window->nitems)
		return;
	if (!window->any_killed)
	{
		memset(window->killed, 0, window->nitems * sizeof(bool));
		euno_scan_plan_keep(so->plan, &so->range);
	}
	window->any_killed = true;
	window->killed[window->pos] = true;
}

/* Announces an item; false if the tree may have changed since it was read. */
static inline bool
announce(EunoScan *so, EunoWindow *window, EunoTid tid)
{
	so->hazard_set = true;
	return euno_hazard_of_batch(so->idx, tid, &window->read);
}

/* Where keys are wanted: may the window's item be returned? */
static inline bool
accept_item(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;

	/*
	 * Operators may be called.  First, for they may announce other TIDs; and
	 * without the hazard of the item before, for they may wait for locks.
	 */
	if (!so->range.exact)
		euno_scan_clear_hazard(so);
	if (!euno_window_admits(so, window, &window->keys[window->pos]))
		return false;
	if (scan->xs_want_itup)
		euno_tuple_form(scan, window);
	if (so->use_hazards)
	{
		EUNO_STOP_POINT("scan-batch");
		if (!announce(so, window, tid) && !still_there(scan, window, tid))
			return false;
		EUNO_STOP_POINT("scan-return");
	}
	return true;
}

/* Where nobody reads columns: may the window's item be returned? */
static inline bool
accept_unread(IndexScanDesc scan, EunoWindow *window, EunoTid tid)
{
	EunoScan   *so = scan->opaque;

	EUNO_STOP_POINT("scan-unread");
	return announce(so, window, tid) || euno_unread_visible(scan, tid);
}

/* Of the page of the row last returned, where so->pins. */
static inline Buffer
pinned_buffer(IndexScanDesc scan)
{
	return ((IndexFetchHeapData *) scan->xs_heapfetch)->xs_cbuf;
}

static pg_noinline bool
next_tuple(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;

	if (unlikely(!so->begun))
		begin(scan);
	else if (unlikely(scan->kill_prior_tuple))
		note_killed(so);
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
		if (so->want_keys ? !accept_item(scan, window, tid) :
			so->unread && !accept_unread(scan, window, tid))
			continue;
		if (unlikely(window->ahead.wanted) && forward == window->forward)
			euno_ahead_step(scan, window);
		if (so->pins && so->pinned != (BlockNumber) (tid >> 16))
		{
			so->pinned = (BlockNumber) (tid >> 16);
			euno_recent_pin(scan, so->pinned);
			if (window->ahead.near)
				euno_ahead_page(so, window, pinned_buffer(scan));
		}
		else if (window->ahead.near)
			euno_ahead_near(scan, window, pinned_buffer(scan));
		euno_tid_unpack(tid, &scan->xs_heaptid);
		return true;
	}
	euno_scan_clear_hazard(so);
	return false;
}

/* The item was announced, but the tree may have changed. */
static pg_noinline bool
next_if_there(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	EunoTid		tid = window->tids[window->pos];

	if (!still_there(scan, window, tid))
		return next_tuple(scan, forward);
	euno_tuple_form(scan, window);
	euno_tid_unpack(tid, &scan->xs_heaptid);
	return true;
}

/* The window's item is returned; what comes soon is fetched. */
static pg_noinline bool
fetch_near(IndexScanDesc scan, EunoWindow *window)
{
	euno_ahead_near(scan, window, pinned_buffer(scan));
	return true;
}

/* The next tuple of an index-only scan, if it has been made. */
static inline bool
next_formed(IndexScanDesc scan, EunoWindow *window, bool forward)
{
	EunoScan   *so = scan->opaque;
	uint32		next = (uint32) (window->pos + 1);
	uint32		place;
	EunoTid		tid;

	if (next >= window->formed || scan->kill_prior_tuple ||
		forward != window->forward || EUNO_STOPS_ARE_SET())
		return next_tuple(scan, forward);
	place = window->places[next];
	if (unlikely(place == 0))
		return next_tuple(scan, forward);
	tid = window->tids[next];
	window->pos = next;
	if (!announce(so, window, tid))
		return next_if_there(scan, forward);
	scan->xs_itup = (IndexTuple) (window->tuples + place);
	euno_tid_unpack(tid, &scan->xs_heaptid);
	return true;
}

/* The next row of a scan whose columns nobody reads. */
static inline bool
next_unread(IndexScanDesc scan, EunoWindow *window, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoTid		tid;

	if (window->pos + 1 >= (int32) window->nitems || scan->kill_prior_tuple ||
		forward != window->forward || EUNO_STOPS_ARE_SET())
		return next_tuple(scan, forward);
	tid = window->tids[window->pos + 1];
	if (!announce(so, window, tid))
		return next_tuple(scan, forward);
	window->pos++;
	euno_tid_unpack(tid, &scan->xs_heaptid);
	return true;
}

/*
 * Most calls return a row on the same page as the one before, of which only
 * the TID is wanted, or one whose index tuple has been made already.  Those
 * are dealt with here; all else is in next_tuple.  Every call is a tail call,
 * for otherwise registers would be saved each time, a third of the work.
 */
bool
eunogettuple(IndexScanDesc scan, ScanDirection direction)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	bool		forward = ScanDirectionIsForward(direction);
	EunoTid		tid;

	if (so->unread)
		return next_unread(scan, window, forward);
	if (!so->plain)
		return next_formed(scan, window, forward);
	if (scan->kill_prior_tuple || window->ahead.wanted ||
		forward != window->forward ||
		window->pos + 1 >= (int32) window->nitems)
		return next_tuple(scan, forward);
	tid = window->tids[window->pos + 1];
	if (so->pinned != (BlockNumber) (tid >> 16))
		return next_tuple(scan, forward);
	window->pos++;
	euno_tid_unpack(tid, &scan->xs_heaptid);
	return window->ahead.near ? fetch_near(scan, window) : true;
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
		euno_window_leave(scan);
		so->spare = so->current;
		so->current = so->marked_window;
		so->marked_window = NULL;
		if (so->range.parts && !so->current->entire)
			euno_scan_part_set(so->plan, &so->current->first, &so->range);
	}
	so->current->pos = so->marked_pos;
	so->current->run_length = 0;
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
	{
		if (block % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
		tbm_add_page(bitmap, block);
	}
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
	pointers = palloc(EUNO_FULL_BATCH * sizeof(ItemPointerData));
	while (euno_window_read(scan, true))
	{
		EunoWindow *window = so->current;
		int			n = 0;

		for (uint32 i = 0; i < window->nitems; i++)
		{
			if (so->want_keys &&
				!euno_window_admits(so, window, &window->keys[i]))
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
