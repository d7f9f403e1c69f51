/*-------------------------------------------------------------------------
 *
 * bpt_leaf.c
 *	  Changing a leaf in place.
 *
 * The leaf is locked, nothing can fail, and nobody else reads what is read here.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* Opens a place for one slot at i.  Not FIXED. */
static void
open_slot(const BptView *view, uint32_t count, uint32_t i)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint16_t   *offs = (uint16_t *) view->offs;

	euno_move(heads + i + 1, heads + i, (count - i) * 8);
	euno_move(offs + i + 1, offs + i, (count - i) * 2);
}

/* The opposite. */
static void
close_slot(const BptView *view, uint32_t count, uint32_t i)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint16_t   *offs = (uint16_t *) view->offs;

	euno_move(heads + i, heads + i + 1, (count - i - 1) * 8);
	euno_move(offs + i, offs + i + 1, (count - i - 1) * 2);
}

/* FIXED: moves slots [from, from + n) to "to". */
static void
move_slots(const BptView *view, uint32_t to, uint32_t from, uint32_t n)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint8_t    *tails = (uint8_t *) view->tails;

	if (n == 0)
		return;
	euno_move(heads + to, heads + from, n * 8);
	if (view->tail_len > 0)
		euno_move(tails + to * view->tail_len, tails + from * view->tail_len,
				  n * view->tail_len);
}

/* FIXED: gives slots [from, to) the entry of slot i. */
static void
fill_slots(const BptView *view, uint32_t from, uint32_t to, uint32_t i)
{
	for (; from < to; from++)
		move_slots(view, from, i, 1);
}

/* How many slots on either side are looked at before the other side is. */
#define ROOM_STEP	16
#define NO_ROOM		UINT32_MAX

/* Room that is so many slots away is brought, so many slots at once. */
#define ROOM_FAR	(2 * ROOM_STEP)
#define ROOM_MOST	8

/*
 * Has one of slots [from, to) the head of the slot before it?  Of a whole step
 * the processor can compare all without waiting for one; of fewer: maybe.
 */
static inline bool
may_repeat(const BptView *view, uint32_t from, uint32_t to)
{
	const uint64_t *heads = view->heads + from;
	bool		same = to - from != ROOM_STEP;

	for (int k = 0; k < ROOM_STEP && !same; k += 4)
		same = (heads[k - 1] == heads[k]) | (heads[k] == heads[k + 1]) |
			(heads[k + 1] == heads[k + 2]) | (heads[k + 2] == heads[k + 3]);
	return same;
}

/* Does a slot repeat the one before it?  Most do not even have its head. */
static inline bool
repeats(const BptView *view, uint32_t i)
{
	return view->heads[i] == view->heads[i - 1] && bpt_same_entry(view, i);
}

/* FIXED: the first slot in [from, to) that repeats the one before it; or "to". */
static uint32_t
first_repeat(const BptView *view, uint32_t from, uint32_t to)
{
	while (from < to)
	{
		uint32_t	end = from + ROOM_STEP < to ? from + ROOM_STEP : to;

		if (!may_repeat(view, from, end))
			from = end;
		for (; from < end; from++)
		{
			if (repeats(view, from))
				return from;
		}
	}
	return to;
}

/* FIXED: the last one; or 0. */
static uint32_t
last_repeat(const BptView *view, uint32_t from, uint32_t to)
{
	while (from < to)
	{
		uint32_t	end = from + ROOM_STEP < to ? to - ROOM_STEP : from;

		if (!may_repeat(view, end, to))
			to = end;
		while (to > end)
		{
			if (repeats(view, --to))
				return to;
		}
	}
	return 0;
}

/*
 * How far right of a slot is one that can be given away, between so many slots
 * and ROOM_STEP more?
 */
static uint32_t
room_right(const BptView *view, uint32_t slot, uint32_t away)
{
	uint32_t	count = view->count;
	uint32_t	from = slot + away + 1;
	uint32_t	to = from + ROOM_STEP < count ? from + ROOM_STEP : count;

	if (from < to)
	{
		uint32_t	repeat = first_repeat(view, from, to);

		if (repeat < to)
			return repeat - 1 - slot;
	}
	return count < view->cap && from <= count + 1 && count < from + ROOM_STEP - 1 ?
		count - slot : NO_ROOM;
}

/* The same, left of it. */
static uint32_t
room_left(const BptView *view, uint32_t slot, uint32_t away)
{
	uint32_t	repeat;

	if (away + 1 >= slot)
		return NO_ROOM;
	repeat = last_repeat(view, slot > away + ROOM_STEP ?
						 slot - away - ROOM_STEP : 1, slot - away);
	return repeat > 0 ? slot - 1 - repeat : NO_ROOM;
}

/*
 * FIXED: how many slots are brought from so far away.  Where there is no room
 * for one entry, there is none for those that will follow it either; but
 * others want some, too.
 */
static uint32_t
room_to_bring(const BptView *view, uint32_t distance)
{
	uint32_t	share = (view->count - view->entries) / 4;

	if (distance < ROOM_FAR || share == 0)
		return 1;
	return share < ROOM_MOST ? share : ROOM_MOST;
}

/*
 * FIXED: brings slots from the right to a slot: the one that is so far away, and
 * the next ones that can be given away.  How many.
 */
static uint32_t
bring_right(const BptView *view, uint32_t slot, uint32_t distance)
{
	uint32_t	most = room_to_bring(view, distance);
	uint32_t	repeat = slot + distance + 1;
	uint32_t	given[ROOM_MOST];
	uint32_t	n = 0;

	while (n < most && repeat < view->count)
	{
		given[n++] = repeat - 1;
		if (n < most)
			repeat = first_repeat(view, repeat + 1, view->count);
	}
	for (uint32_t k = n; k-- > 0;)
	{
		uint32_t	from = k > 0 ? given[k - 1] + 1 : slot;

		move_slots(view, from + n - k, from, given[k] - from);
	}
	return n;
}

/* The same, from the left. */
static uint32_t
bring_left(const BptView *view, uint32_t slot, uint32_t distance)
{
	uint32_t	most = room_to_bring(view, distance);
	uint32_t	repeat = slot - distance - 1;
	uint32_t	given[ROOM_MOST];
	uint32_t	n = 0;

	while (n < most && repeat > 0)
	{
		given[n++] = repeat;
		if (n < most)
			repeat = last_repeat(view, 1, repeat);
	}
	for (uint32_t k = n; k-- > 0;)
	{
		uint32_t	from = given[k] + 1;

		move_slots(view, from + k - n, from,
				   (k > 0 ? given[k - 1] : slot) - from);
	}
	return n;
}

/*
 * FIXED: makes room for an entry left of slot "slot", the first of its entry.
 * What has more than one slot gives one away; the nearest does, on either
 * side, or the free room at the end; if it is far away, others behind it do,
 * too.  Next to the new entry it may have several to give: the new one gets
 * them up to the place that its key suggests.  Sets [*from, *to), the slots to
 * be written.  False if there is no room.
 */
static bool
make_room(BptView *view, uint32_t slot, uint32_t near, uint32_t *from,
		  uint32_t *to)
{
	uint32_t	count = view->count;
	uint32_t	right = NO_ROOM;
	uint32_t	left = NO_ROOM;

	for (uint32_t away = 0; right == NO_ROOM && left == NO_ROOM; away += ROOM_STEP)
	{
		if (away > count)
			return false;
		right = room_right(view, slot, away);
		left = room_left(view, slot, away);
	}
	*from = *to = slot;
	if (right <= left && slot + right == count)
	{
		move_slots(view, slot + 1, slot, right);
		view->count++;
		(*to)++;
	}
	else if (right <= left)
	{
		*to += bring_right(view, slot, right);
		while (right == 0 && *to <= near && *to + 1 < count &&
			   bpt_same_entry(view, *to + 1))
			(*to)++;
	}
	else
	{
		*from -= bring_left(view, slot, left);
		while (left == 0 && *from > near && *from >= 2 &&
			   bpt_same_entry(view, *from - 1))
			(*from)--;
	}
	return true;
}

/* FIXED: removes the entry whose first slot is i. */
static void
remove_fixed(BptView *view, uint32_t i)
{
	uint32_t	next = bpt_next_slot(view, i);

	if (next == view->count)
		view->count = i;
	else if (i > 0)
		fill_slots(view, i, next, i - 1);
	else
		fill_slots(view, i, next, next);
	view->entries--;
}

/* Of so many offsets the processor changes several at once. */
#define OFFSETS_AT_ONCE	16

/* Adds "size" to those of n offsets that are less than "off". */
static void
move_offsets(uint16_t *offs, uint32_t n, uint16_t off, uint16_t size)
{
	uint32_t	i;

	for (i = 0; i + OFFSETS_AT_ONCE <= n; i += OFFSETS_AT_ONCE)
	{
		uint16_t	some[OFFSETS_AT_ONCE];

		memcpy(some, offs + i, sizeof(some));
		for (int k = 0; k < OFFSETS_AT_ONCE; k++)
			some[k] += some[k] < off ? size : 0;
		euno_copy_in(offs + i, some, sizeof(some));
	}
	for (; i < n; i++)
	{
		if (offs[i] < off)
			euno_store16(&offs[i], offs[i] + size);
	}
}

/*
 * Frees a record of "size" bytes: the ones below it move up, so that all free
 * bytes of a leaf are in one place and growing lists leave no holes behind.
 */
static void
close_record(BptLeaf *leaf, BptView *view, uint32_t count, uint32_t off,
			 uint32_t size)
{
	if (off > view->heap)
	{
		euno_move((uint8_t *) leaf + view->heap + size,
				  (uint8_t *) leaf + view->heap, off - view->heap);
		move_offsets((uint16_t *) view->offs, count, (uint16_t) off,
					 (uint16_t) size);
	}
	view->heap += size;
	euno_store16(&leaf->heap, (uint16_t) view->heap);
}

static void
put_fixed(BptLeaf *leaf, BptView *view, const BptPut *put)
{
	uint32_t	from;
	uint32_t	to;

	if (!make_room(view, put->slot, put->near, &from, &to))
		return;
	euno_store64((uint64_t *) &view->heads[from], put->head[0]);
	if (view->tail_len > 0)
		euno_copy_in((uint8_t *) view->tails + from * view->tail_len,
					 put->tail, view->tail_len);
	fill_slots(view, from + 1, to, from);
	euno_store16(&leaf->count, (uint16_t) view->count);
	euno_store16(&leaf->heap, (uint16_t) (view->entries + 1));
}

/*
 * Does what was planned.  The caller has locked the leaf at the version at
 * which the plan was made.
 */
void
euno_bpt_leaf_put(BptLeaf *leaf, const BptPut *put)
{
	BptView		view;
	uint32_t	count;
	uint32_t	heap;

	(void) euno_bpt_view(leaf, &view);
	if (view.format == BPT_FIXED)
	{
		put_fixed(leaf, &view, put);
		return;
	}
	count = view.count;
	if (put->replace)
		close_record(leaf, &view, count,
					 euno_load16(&view.offs[put->slot]), put->freed);
	heap = view.heap;
	for (uint32_t r = 0; r < put->nrecs; r++)
	{
		uint32_t	slot = put->slot + r;

		heap -= put->size[r];
		euno_copy_in((uint8_t *) leaf + heap, put->record[r], put->size[r]);
		if (r > 0 || !put->replace)
			open_slot(&view, count++, slot);
		euno_store64((uint64_t *) &view.heads[slot], put->head[r]);
		euno_store16((uint16_t *) &view.offs[slot], (uint16_t) heap);
	}
	euno_store16(&leaf->heap, (uint16_t) heap);
	euno_store16(&leaf->count, (uint16_t) count);
	euno_store16(&leaf->ntids, (uint16_t) (euno_load16(&leaf->ntids) + 1));
}

/*
 * Gives slot i, whose record is "slot", n TIDs instead of the ones it has, of
 * which they are a part: this first one and a list.  The leaf is locked.
 */
static void
rewrite_slot(BptLeaf *leaf, BptView *view, uint32_t count, uint32_t i,
			 const BptSlot *slot, EunoTid first, const uint8_t *list,
			 uint32_t list_len, uint32_t n)
{
	uint8_t		record[BPT_MAX_COMPOSITE + BPT_LIST_BYTES + 16];
	uint8_t		suffix[BPT_MAX_COMPOSITE + 16];
	uint32_t	size;
	uint32_t	off = euno_load16(&view->offs[i]);
	uint32_t	skip = view->format == BPT_OPAQUE ? 0 : 8;	/* in the head */
	uint64_t	head = euno_load64(&view->heads[i]);

	euno_put_word(suffix, head);
	euno_copy_out(suffix + skip, slot->tail, slot->tail_len);
	if (view->format == BPT_OPAQUE)
		head = (head & ~EUNO_TID_MAX) | first;
	else
	{
		uint8_t		tid[EUNO_TID_BYTES];
		uint32_t	part = slot->len < EUNO_TID_BYTES ? slot->len :
			EUNO_TID_BYTES;

		euno_put_tid(tid, first);
		memcpy(suffix + slot->len - part, tid + EUNO_TID_BYTES - part, part);
		head = euno_get_word(suffix);
	}
	size = euno_bpt_build_record(record, slot->len, suffix + skip,
								 slot->tail_len, NULL, list, list_len, n);
	close_record(leaf, view, count, off, slot->size);
	view->heap -= size;
	euno_copy_in((uint8_t *) leaf + view->heap, record, size);
	euno_store64((uint64_t *) &view->heads[i], head);
	euno_store16((uint16_t *) &view->offs[i], (uint16_t) view->heap);
	euno_store16(&leaf->heap, (uint16_t) view->heap);
}

/* Removes the entry right of the gap.  The leaf is locked. */
void
euno_bpt_leaf_remove(BptLeaf *leaf, const BptGap *gap)
{
	uint8_t		list[BPT_LIST_BYTES + BPT_SLACK];
	BptView		view;
	BptSlot		slot;

	if (!euno_bpt_view(leaf, &view) || gap->slot >= view.count)
		return;
	if (view.format == BPT_FIXED)
	{
		remove_fixed(&view, gap->slot);
		euno_store16(&leaf->count, (uint16_t) view.count);
		euno_store16(&leaf->heap, (uint16_t) view.entries);
		return;
	}
	if (!euno_bpt_slot(&view, gap->slot, &slot))
		return;
	euno_store16(&leaf->ntids, (uint16_t) (euno_load16(&leaf->ntids) - 1));
	if (slot.ntids > 1)
	{
		EunoTid		first = euno_bpt_first_tid(&view, gap->slot);
		uint32_t	list_len = slot.list_len;

		euno_copy_out(list, slot.list, list_len);
		first = euno_bpt_list_remove(list, &list_len, first, gap->sub);
		rewrite_slot(leaf, &view, view.count, gap->slot, &slot, first, list,
					 list_len, slot.ntids - 1);
		return;
	}
	close_record(leaf, &view, view.count,
				 euno_load16(&view.offs[gap->slot]), slot.size);
	close_slot(&view, view.count, gap->slot);
	euno_store16(&leaf->count, (uint16_t) (view.count - 1));
}

/* FIXED: the same as euno_bpt_leaf_remove_tids. */
static uint32_t
remove_tids_fixed(BptView *view, const EunoTid *tids, uint32_t n)
{
	uint32_t	count = 0;		/* slots whose entry stays, or has been replaced */
	uint32_t	removed = 0;
	uint32_t	next;

	for (uint32_t i = 0; i < view->count; i = next)
	{
		next = bpt_next_slot(view, i);
		if (euno_tid_among(euno_bpt_first_tid(view, i), tids, n))
		{
			removed++;
			continue;
		}

		/* Those left of it are its left neighbor's, if there is one. */
		fill_slots(view, count, i, count > 0 ? count - 1 : i);
		count = next;
	}
	view->count = count;
	view->entries -= removed;
	return removed;
}

/*
 * Removes all entries with one of these TIDs, which are sorted.  The leaf is
 * locked.  Returns how many there were.
 */
uint32_t
euno_bpt_leaf_remove_tids(BptLeaf *leaf, const EunoTid *tids, uint32_t n)
{
	EunoTid		have[BPT_LIST_MAX];
	uint8_t		list[BPT_LIST_BYTES];
	BptView		view;
	BptSlot		slot;
	uint32_t	removed = 0;
	uint32_t	count;

	if (!euno_bpt_view(leaf, &view))
		return 0;
	if (view.format == BPT_FIXED)
	{
		removed = remove_tids_fixed(&view, tids, n);
		euno_store16(&leaf->count, (uint16_t) view.count);
		euno_store16(&leaf->heap, (uint16_t) view.entries);
		return removed;
	}
	count = view.count;
	for (uint32_t i = count; i-- > 0;)
	{
		uint32_t	left = 0;
		uint32_t	old;

		if (!euno_bpt_slot(&view, i, &slot))
			break;
		old = euno_bpt_tids(&view, i, &slot, have);
		for (uint32_t k = 0; k < old; k++)
		{
			if (!euno_tid_among(have[k], tids, n))
				have[left++] = have[k];
		}
		if (left == old)
			continue;
		removed += old - left;
		if (left > 0)
			rewrite_slot(leaf, &view, count, i, &slot, have[0], list,
						 euno_bpt_list_encode(have, left, list), left);
		else
		{
			close_record(leaf, &view, count, euno_load16(&view.offs[i]),
						 slot.size);
			close_slot(&view, count--, i);
		}
	}
	euno_store16(&leaf->count, (uint16_t) count);
	euno_store16(&leaf->ntids,
				 (uint16_t) (euno_load16(&leaf->ntids) - removed));
	return removed;
}
