/*-------------------------------------------------------------------------
 *
 * bpt_room.c
 *	  Room for an entry among the slots of a FIXED leaf.
 *
 * What has more than one slot can give one away: those that repeat the slot
 * before them are spare.  The leaf is locked.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* How many slots on either side are looked at before the other side is. */
#define ROOM_STEP	8
#define NO_ROOM		UINT32_MAX

/* Room that is so many slots away is brought, so many slots at once. */
#define ROOM_FAR	(4 * ROOM_STEP)
#define ROOM_MOST	8

#ifdef __SSE2__
/* Which halves of two heads are those of the heads before them, as lanes? */
static inline __m128i
same_halves(const uint64_t *heads)
{
	return _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) heads),
						   _mm_loadu_si128((const __m128i *) (heads - 1)));
}

/* The same of eight heads, as bits. */
static inline uint32_t
same_halves_of_8(const uint64_t *heads)
{
	__m128i		low = _mm_packs_epi32(same_halves(heads),
									  same_halves(heads + 2));
	__m128i		high = _mm_packs_epi32(same_halves(heads + 4),
									   same_halves(heads + 6));

	return (uint32_t) _mm_movemask_epi8(_mm_packs_epi16(low, high));
}
#endif

/*
 * Which of slots [from, to), at most ROOM_STEP, have the head of the slot
 * before them?  Bit 2k stands for slot from + k.  Those of a whole step the
 * processor compares at once.
 */
static inline uint32_t
same_heads(const BptView *view, uint32_t from, uint32_t to)
{
	const uint64_t *heads = view->heads + from;
	uint32_t	same = 0;

#ifdef __SSE2__
	if (to - from == ROOM_STEP)
	{
		same = same_halves_of_8(heads);
		return same & same >> 1 & 0x55555555;
	}
#endif
	for (int k = 0; k < (int) (to - from); k++)
		same |= (uint32_t) (heads[k - 1] == heads[k]) << (2 * k);
	return same;
}

/* The first slot in [from, to) that repeats the one before it; or "to". */
static uint32_t
first_repeat(const BptView *view, uint32_t from, uint32_t to)
{
	uint32_t	end;

	for (; from < to; from = end)
	{
		uint32_t	same;

		end = from + ROOM_STEP < to ? from + ROOM_STEP : to;
		for (same = same_heads(view, from, end); same != 0; same &= same - 1)
		{
			uint32_t	i = from + (uint32_t) __builtin_ctz(same) / 2;

			if (bpt_same_entry(view, i))
				return i;
		}
	}
	return to;
}

/* The last one; or 0. */
static uint32_t
last_repeat(const BptView *view, uint32_t from, uint32_t to)
{
	uint32_t	begin;

	for (; from < to; to = begin)
	{
		uint32_t	same;

		begin = from + ROOM_STEP < to ? to - ROOM_STEP : from;
		same = same_heads(view, begin, to);
		while (same != 0)
		{
			uint32_t	bit = 31 - (uint32_t) __builtin_clz(same);

			if (bpt_same_entry(view, begin + bit / 2))
				return begin + bit / 2;
			same ^= UINT32_C(1) << bit;
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
 * How many slots are brought from so far away.  Where there is no room for one
 * entry, there is none for those that will follow it either; but others want
 * some, too.
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
 * Brings slots from the right to a slot: the one that is so far away, and the
 * next ones that can be given away.  How many.
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

		bpt_move_slots(view, from + n - k, from, given[k] - from);
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

		bpt_move_slots(view, from + k - n, from,
					   (k > 0 ? given[k - 1] : slot) - from);
	}
	return n;
}

/*
 * Makes room for an entry left of slot "slot", the first of its entry.  What has
 * more than one slot gives one away; the nearest does, on either side, or the
 * free room at the end; if it is far away, others behind it do, too.  Next to
 * the new entry it may have several to give: the new one gets them up to the
 * place that its key suggests.  Sets [*from, *to), the slots to be written.
 * False if there is no room.
 */
bool
euno_bpt_make_room(BptView *view, uint32_t slot, uint32_t near, uint32_t *from,
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
		bpt_move_slots(view, slot + 1, slot, right);
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

