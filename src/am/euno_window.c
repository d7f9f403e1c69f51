/*-------------------------------------------------------------------------
 *
 * euno_window.c
 *	  Reading a scan's entries, a batch at a time.
 *
 * A scan with arrays has parts, each with a range of its own.  Where the parts
 * are short, one batch takes in many of them, entire; a part that does not
 * fit is read by itself, in as many batches as it needs.  The plan's current
 * part is the window's, unless the window is of entire parts.
 *
 * A scan with limits reads few entries at a time, and goes on at the next
 * place that the limits admit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/euno_scan.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* A key and payload of the greatest length, aligned. */
#define LONGEST_ITEM	(EUNO_MAX_ENTRY + 32)

/* How often looking up several keys at once may fail for the first of them. */
#define KEY_PATIENCE	4

EunoWindow *
euno_window_make(EunoScan *so)
{
	EunoWindow *window = MemoryContextAllocZero(so->context,
												sizeof(EunoWindow));

	window->pos = -1;
	window->forward = true;
	return window;
}

/* Gives back the memory of index tuples, which are not needed any more. */
static void
drop_tuples(EunoWindow *window)
{
	if (window->tuples != NULL)
	{
		pfree(window->tuples);
		pfree(window->places);
	}
	window->tuples = NULL;
	window->places = NULL;
	window->formed = 0;
}

/* Is its memory more than a small scan's? */
bool
euno_window_is_large(const EunoWindow *window)
{
	return window->capacity > EUNO_MOST_FIRST_BATCH || window->buf != NULL;
}

/*
 * Gives back the memory of keys and index tuples, which nobody needs any more.
 */
void
euno_window_drop_copies(EunoWindow *window)
{
	if (window->buf != NULL)
		pfree(window->buf);
	window->buf = NULL;
	drop_tuples(window);
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
		drop_tuples(window);
		window->capacity = capacity;
	}
	if (so->want_keys && window->keys == NULL)
		window->keys = palloc(window->capacity * sizeof(EunoItemKey));
	if (so->want_keys && window->buf == NULL)
		window->buf = palloc(EUNO_BATCH_BUF + 8);	/* euno_sieve_admits */
	MemoryContextSwitchTo(old);
}

/*
 * How much to ask for first, after a scan that asked for so much and came to
 * an end with "left" items of its last window unused.
 */
static uint32
learn(const EunoScan *so, uint32 first, int32 left, uint32 least, uint32 most)
{
	if (so->reads > 1)
		return Min(4 * first, most);
	if (so->reads == 1 && first > least && left > (int32) first / 2)
		return first / 2;
	return first;
}

void
euno_window_learn(EunoScan *so)
{
	EunoWindow *window = so->current;
	int32		left = (int32) window->nitems - (window->pos + 1);

	if (so->range.parts)
		so->first_parts = learn(so, so->first_parts, left, FIRST_PARTS,
								EUNO_FULL_PARTS);
	else if (so->range.exact)
		so->first_batch = learn(so, so->first_batch, left, EUNO_FIRST_BATCH,
								EUNO_MOST_FIRST_BATCH);
	so->reads = 0;
}

/* The current window, where a scan starts. */
void
euno_window_restart(EunoScan *so)
{
	EunoWindow *window = so->current;

	window->cursor.lo = so->range.lo;
	window->cursor.hi = so->range.hi;
	euno_cursor_start(&window->cursor);
	window->nitems = window->formed = 0;
	window->run_length = window->nlooked = 0;
	window->pos = -1;
	window->placed = window->entire = false;
	so->batch = so->range.exact && !so->range.parts ? so->first_batch :
		EUNO_FIRST_BATCH;
	so->parts = so->first_parts;
	if (so->range.exact || so->idx->order != EUNO_ORDER_BYTES ||
		!euno_scan_sieve(so->plan, &so->sieve, &so->sieve_decides))
		so->sieve.keylen = 0;
	so->key_patience = so->idx->order == EUNO_ORDER_BYTES ? KEY_PATIENCE : 0;
}

void
euno_window_leave(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	bool		push;

	euno_scan_clear_hazard(so);
	if (likely(!window->any_killed))
		return;

	/*
	 * A comparator may run queries.  When a portal is closed in the middle of
	 * a scan, no snapshot is active any more.
	 */
	push = so->idx->order == EUNO_ORDER_COMPARE && !ActiveSnapshotSet();
	if (push)
		PushActiveSnapshot(IsMVCCSnapshot(scan->xs_snapshot) ?
						   scan->xs_snapshot : GetTransactionSnapshot());
	euno_kill_dead_items(scan);
	if (push)
		PopActiveSnapshot();
	window->any_killed = false;
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
		so->spare = euno_window_make(so);
	fresh = so->spare;
	to = &fresh->cursor;

	*to = *from;
	if (to->started && !to->at_lo && from->left.pos.key != NULL)
		to->left.pos.key = to->left.data;
	if (to->started && !to->at_hi && from->right.pos.key != NULL)
		to->right.pos.key = to->right.data;
	fresh->forward = so->current->forward;
	fresh->placed = so->current->placed;
	fresh->entire = so->current->entire;
	fresh->first = so->current->first;
	fresh->last = so->current->last;
	fresh->nitems = fresh->formed = 0;
	fresh->run_length = fresh->nlooked = 0;
	fresh->pos = -1;

	so->marked_window = so->current;
	so->current = fresh;
	so->spare = NULL;
}

/*
 * Pins a tree that is READY, building it if it must be, and notes its
 * generation and vacuum epoch in the window.  False, and nothing is pinned, if
 * the caller can do without.
 */
static bool
pin_ready(IndexScanDesc scan, EunoWindow *window, EunoContext **cx)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;

	if (unlikely(euno_index_pin(idx, cx) != EUNO_STATE_READY))
	{
		euno_index_unpin(idx);

		/* The planner looks for an extreme value. */
		if (scan->xs_snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE)
			return false;
		euno_index_pin_ready(idx, scan->indexRelation, cx);
	}

	window->read = euno_index_moment(idx);
	return true;
}

/*
 * After an entry that the limits do not admit, the scan goes on at the next
 * place that they do.  While there is something to skip, few entries are read
 * at a time.
 */
static void
skip_ahead(EunoScan *so, EunoWindow *window, bool forward)
{
	EunoCursor *cursor = &window->cursor;
	EunoPositionBuffer *end = forward ? &cursor->right : &cursor->left;
	EunoPosition target;
	EunoItemKey *item;

	if (window->nitems == 0 || (forward ? cursor->at_hi : cursor->at_lo))
		return;
	item = &window->keys[window->nitems - 1];
	if (euno_scan_jump(so->plan, window->buf + item->offset, item->keylen,
					   forward, &target))
	{
		end->pos = target;
		memcpy(end->data, target.key, target.keylen);
		end->pos.key = end->data;
		so->batch = EUNO_FIRST_BATCH;
	}
	else
		so->batch = Min(2 * so->batch, EUNO_FULL_BATCH);
}

/*
 * Leaves out what the sieve does.  All at once takes less time than each when
 * it is its turn.
 */
static void
sift(EunoScan *so, EunoWindow *window)
{
	const EunoSieve sieve = so->sieve;
	const uint8_t *buf = window->buf;
	uint32		n = 0;

	for (uint32 i = 0; i < window->nitems; i++)
	{
		EunoItemKey item = window->keys[i];

		window->keys[n] = item;
		window->tids[n] = window->tids[i];
		n += item.keylen != sieve.keylen ||
			euno_sieve_admits(&sieve, buf + item.offset);
	}
	window->nitems = n;
	window->sifted = so->sieve_decides;
}

/*
 * After a read of the range: how much the next one asks for, and where it goes
 * on; and of what was read, leaves out what the sieve does.
 */
static void
after_range(EunoScan *so, EunoWindow *window, bool forward)
{
	if (so->range.exact)
	{
		so->batch = Min(4 * so->batch, EUNO_FULL_BATCH);
		return;
	}
	skip_ahead(so, window, forward);
	if (so->sieve.keylen > 0)
		sift(so, window);
}

/* Reads a batch at the cursor.  False if the tree is not there to be read. */
static bool
read_range(IndexScanDesc scan, EunoWindow *window, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoBatch	batch = {.max_items = so->batch,.want_keys = so->want_keys,
	.buf_size = EUNO_BATCH_BUF};
	EunoContext *cx;
	EunoStatus	status;

	prepare_window(so, window, so->batch);
	window->nitems = 0;
	batch.tids = window->tids;
	batch.keys = window->keys;
	batch.buf = window->buf;
	do
	{
		if (!pin_ready(scan, window, &cx))
			return false;
		batch.one_leaf = so->predicate.wanted && !so->predicate.relation;
		batch.leaf = 0;
		status = idx->slot->ops->read(cx, &idx->slot->tree, &window->cursor,
									  forward, &batch);
		euno_index_unpin(idx);
		if (unlikely(status != EUNO_OK))
			euno_index_error(idx, scan->indexRelation, status);
	} while (unlikely(so->predicate.wanted) &&
			 !euno_predicate_lock_batch(&so->predicate, scan, idx,
									window->read.generation, &window->cursor,
									forward, &batch));
	window->nitems = batch.nitems;
	so->reads++;
	after_range(so, window, forward);
	return true;
}

/* Makes the plan's current part the window's only one. */
static void
place_part(EunoScan *so, EunoWindow *window)
{
	window->placed = true;
	window->entire = false;
	euno_scan_part_get(so->plan, &window->first);
	window->last = window->first;
}

/* Keys of parts that are looked up at once. */
typedef struct KeyGroup
{
	uint32		n;
	EunoPosition positions[EUNO_KEYS_MAX];
	uint8_t		bytes[EUNO_KEYS_MAX][EUNO_KEYS_BYTES];
	EunoScanPart parts[EUNO_KEYS_MAX];
	bool		more;			/* the plan's current part is behind the group */
} KeyGroup;

/* Collects parts that are one key each, from the current one on. */
static void
collect_keys(EunoScan *so, uint32 max, KeyGroup *group)
{
	EunoScanRange *range = &so->range;

	group->n = 0;
	group->more = true;
	while (group->more && group->n < max && range->lo.side < 0 &&
		   range->hi.side > 0 && range->lo.key == range->hi.key &&
		   range->lo.keylen <= EUNO_KEYS_BYTES)
	{
		EunoPosition *position = &group->positions[group->n];

		memcpy(group->bytes[group->n], range->lo.key, range->lo.keylen);
		*position = range->lo;
		position->key = group->bytes[group->n];
		euno_scan_part_get(so->plan, &group->parts[group->n]);
		group->n++;
		group->more = euno_scan_part_next(so->plan, true, range);
	}
}

/*
 * Reads as many parts as can be at once into the batch, to be appended to the
 * window; how many.  *more: the plan's current part is the next one after
 * them; otherwise there is none.
 */
static uint32
read_keys(EunoScan *so, EunoContext *cx, EunoWindow *window, EunoBatch *batch,
		  bool *more)
{
	EunoTreeSlot *slot = so->idx->slot;
	uint32		ends[EUNO_KEYS_MAX];
	uint32		done = 0;
	KeyGroup	group;

	*more = true;
	collect_keys(so, Min(EUNO_KEYS_MAX, so->parts - window->nparts), &group);
	if (group.n > 0)
		done = slot->ops->read_keys(cx, &slot->tree, group.positions, group.n,
									batch, ends);
	*more = group.more || done < group.n;
	if (done < group.n)
		euno_scan_part_set(so->plan, &group.parts[done], &so->range);
	if (done == 0)
	{
		if (group.n > 0)
			so->key_patience--;
		return 0;
	}
	for (uint32 i = 0; i < done; i++)
		window->part_end[window->nparts + i] = window->nitems + ends[i];
	window->last = group.parts[done - 1];
	window->entire = true;
	return done;
}

/* Appends what was found of parts to the window; returns the buffer's use. */
static uint32
add_parts(EunoWindow *window, const EunoBatch *batch, uint32 nparts,
		  uint32 used)
{
	uint32		end = used;

	if (batch->want_keys)
		for (uint32 i = 0; i < batch->nitems; i++)
		{
			EunoItemKey *item = &batch->keys[i];

			item->offset += used;
			end = Max(end, item->offset + MAXALIGN(item->keylen) +
					  MAXALIGN(item->payloadlen));	/* backward, they descend */
		}
	window->nitems += batch->nitems;
	window->nparts += nparts;
	window->part_end[window->nparts - 1] = window->nitems;
	return end;
}

/* The rest of the window, for a batch. */
static void
aim(EunoScan *so, EunoWindow *window, uint32 used, EunoBatch *batch)
{
	batch->max_items = so->batch - window->nitems;
	batch->tids = window->tids + window->nitems;
	if (!so->want_keys)
		return;
	batch->keys = window->keys + window->nitems;
	batch->buf = window->buf + used;
	batch->buf_size = EUNO_BATCH_BUF - used;
}

/*
 * Reads the plan's current part into the batch.  EUNO_FULL: it does not fit,
 * and is the window's only one, or left for the next.
 */
static EunoStatus
read_part(EunoScan *so, EunoContext *cx, EunoWindow *window, bool forward,
		  EunoBatch *batch)
{
	EunoTreeSlot *slot = so->idx->slot;
	EunoCursor *cursor = &window->cursor;
	EunoStatus	status;

	cursor->lo = so->range.lo;
	cursor->hi = so->range.hi;
	euno_cursor_start(cursor);
	status = slot->ops->read(cx, &slot->tree, cursor, forward, batch);
	if (unlikely(status != EUNO_OK))
		return status;
	if (!(forward ? cursor->at_hi : cursor->at_lo))
	{
		if (window->nitems == 0)
		{
			place_part(so, window);
			window->nitems = batch->nitems;
		}
		return EUNO_FULL;
	}
	window->entire = true;
	euno_scan_part_get(so->plan, forward ? &window->last : &window->first);
	return EUNO_OK;
}

/*
 * Reads parts from the current one on, as many as fit into one batch.  One
 * that does not is read by itself: now, if nothing was found before it, else
 * next time.  Under predicate locks, each is read by itself.  False if the
 * tree is not there to be read.
 */
static bool
read_parts(IndexScanDesc scan, EunoWindow *window, bool forward)
{
	EunoScan   *so = scan->opaque;
	EunoIndex  *idx = so->idx;
	EunoBatch	batch = {.want_keys = so->want_keys};
	EunoContext *cx;
	EunoStatus	status = EUNO_OK;
	uint32		used = 0;
	bool		more;

	prepare_window(so, window, so->batch);
	place_part(so, window);
	window->nitems = window->nparts = 0;
	if (unlikely(so->predicate.wanted))
	{
		window->cursor.lo = so->range.lo;
		window->cursor.hi = so->range.hi;
		euno_cursor_start(&window->cursor);
		return read_range(scan, window, forward);
	}
	if (!pin_ready(scan, window, &cx))
		return false;
	do
	{
		uint32		n = 0;

		aim(so, window, used, &batch);
		if (forward && so->key_patience > 0)
			n = read_keys(so, cx, window, &batch, &more);
		if (n == 0)
		{
			status = read_part(so, cx, window, forward, &batch);
			if (unlikely(status != EUNO_OK))
				break;
			n = 1;
			more = euno_scan_part_next(so->plan, forward, &so->range);
		}
		used = add_parts(window, &batch, n, used);
	} while (more && window->nparts < so->parts && window->nitems < so->batch &&
			 used + LONGEST_ITEM <= EUNO_BATCH_BUF);
	euno_index_unpin(idx);
	if (unlikely(status != EUNO_OK && status != EUNO_FULL))
		euno_index_error(idx, scan->indexRelation, status);

	if (!window->entire)
		after_range(so, window, forward);
	else if (so->range.exact)
		so->batch = EUNO_FULL_BATCH;
	so->parts = EUNO_FULL_PARTS;
	so->reads++;
	return true;
}

/*
 * Is there anything beyond the current window?  *fresh: the plan's current
 * part, of which nothing has been read; else the window's cursor goes on.
 */
static bool
find_next(EunoScan *so, bool forward, bool *fresh)
{
	EunoWindow *window = so->current;
	bool		ended = forward ? window->cursor.at_hi : window->cursor.at_lo;

	*fresh = false;
	if (!so->range.parts)
		return !ended;
	if (window->placed && !window->entire && !ended)
		return true;
	*fresh = true;
	if (!window->placed)
	{
		euno_scan_part_first(so->plan, forward, &so->range);
		return true;
	}
	euno_scan_part_set(so->plan, forward ? &window->last : &window->first,
					   &so->range);
	return euno_scan_part_next(so->plan, forward, &so->range);
}

/*
 * A scan looks for its reader when it has found so many rows, not counting the
 * first of each window, that this may gain something: where rows are all over
 * the heap, little.
 */
static void
look_for_reader(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;

	if (window->nitems == 0)
		return;
	so->rows += window->nitems - 1;
	if (so->rows >= EUNO_FIRST_BATCH &&
		(scan->xs_want_itup || (so->plain && !window->ahead.wanted)))
		euno_consumer_find(scan);
}

bool
euno_window_read(IndexScanDesc scan, bool forward)
{
	EunoScan   *so = scan->opaque;
	bool		fresh;
	bool		found = false;

	euno_window_leave(scan);
	if (scan->parallel_scan && !euno_shared_scan_take(scan, forward))
		return false;

	/* At the end, stay in this window */
	while (find_next(so, forward, &fresh))
	{
		EunoWindow *window;

		if (so->is_marked && so->marked_window == NULL &&
			so->current->nitems > 0)
			save_marked_window(so);
		window = so->current;
		window->forward = forward;
		window->formed = 0;
		window->run_length = window->nlooked = 0;
		window->pos = -1;
		window->sifted = false;
		so->judged = so->itup_key = NULL;
		CHECK_FOR_INTERRUPTS();
		if (!(fresh ? read_parts : read_range) (scan, window, forward))
			break;
		found = window->nitems > 0;
		if (found)
			break;
	}
	if (scan->parallel_scan)
		euno_shared_scan_pass(scan, forward, found);
	if (so->current->nitems > 1)
		euno_ahead_window(scan);
	else
		so->current->ahead.wanted = so->current->ahead.near = false;
	if (unlikely(!so->looked))
		look_for_reader(scan);
	return found;
}
