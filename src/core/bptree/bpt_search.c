/*-------------------------------------------------------------------------
 *
 * bpt_search.c
 *	  Finding a place in a leaf.
 *
 * The leaf may be being written, as in bpt_view.c: no result means anything
 * before its version has been validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* BYTES: the sign of (key) - (slot i), whose heads are equal. */
static int
compare_tail(BptView *view, const BptKey *key, uint32_t i)
{
	BptSlot		slot;
	uint32_t	at = view->prefix_len + 8;

	if (view->format == BPT_FIXED)
	{
		if (view->tail_len - 1 < 8)
		{
			uint64_t	tail = euno_load_be(view->tails + i * view->tail_len,
											view->tail_len);
			uint64_t	word = bpt_key_word(key, at) >> (64 - 8 * view->tail_len);

			if (word != tail)
				return word < tail ? -1 : 1;
			return euno_bpt_compare_rest(key, at + view->tail_len, NULL, 0);
		}
		return euno_bpt_compare_rest(key, at,
									 view->tails + i * view->tail_len,
									 view->tail_len);
	}
	if (!euno_bpt_slot(view, i, &slot))
		return 0;
	return euno_bpt_compare_rest(key, at, slot.tail, slot.tail_len);
}

/* The number of heads below h. */
static inline uint32_t
lower_head(const uint64_t *heads, uint32_t count, uint64_t h)
{
	uint32_t	base = 0;

	if (count == 0)
		return 0;
	while (count > 1)
	{
		uint32_t	half = count / 2;

		base += euno_load64(&heads[base + half - 1]) < h ? half : 0;
		count -= half;
	}
	return base + (euno_load64(&heads[base]) < h);
}

/*
 * The same, of a leaf that is not OPAQUE.  The guess is where h would be if
 * the leaf's heads were spread evenly between its fences: for integers, uuids
 * and the like it is off by a cache line or two, and the others are never
 * touched.  From there by doubling steps, so that a bad guess costs no more
 * than twice a binary search.
 */
uint32_t
euno_bpt_lower_head(const BptView *view, uint64_t h)
{
	const uint64_t *heads = view->heads;
	uint64_t	low = euno_load64(&view->leaf->low_hint);
	uint64_t	high = euno_load64(&view->leaf->high_hint);
	uint32_t	count = view->count;
	uint32_t	at;
	uint32_t	lo;
	uint32_t	hi;

	if (count < 16 || h <= low || h >= high)
	{
		/* Ascending, it is mostly above all others; a fence, below. */
		if (h >= high && count > 0 && euno_load64(&heads[count - 1]) < h)
			return count;
		if (h <= low && count > 0 && euno_load64(&heads[0]) >= h)
			return 0;
		return lower_head(heads, count, h);
	}
	at = bpt_guess(view->alphabet, h, low, high, count);
	if (view->format == BPT_FIXED)
		euno_prefetch(view->tails + at * view->tail_len);
	if (euno_load64(&heads[at]) < h)
	{
		lo = at + 1;
		hi = at + 4;
		while (hi < count && euno_load64(&heads[hi]) < h)
		{
			lo = hi + 1;
			hi += 2 * (hi - at);
		}
		if (hi > count)
			hi = count;
	}
	else
	{
		hi = at;
		lo = at > 4 ? at - 4 : 0;
		while (lo > 0 && euno_load64(&heads[lo]) >= h)
		{
			hi = lo;
			lo = lo > 2 * (at - lo) ? lo - 2 * (at - lo) : 0;
		}
	}
	return lo + lower_head(heads + lo, hi - lo, h);
}

/*
 * The slot after those whose heads are this slot's.  There are mostly one or
 * two, so those far away are not looked at.
 */
static uint32_t
past_equal(const BptView *view, uint32_t lo, uint64_t h)
{
	uint32_t	hi = lo + 1;
	uint32_t	step = 1;

	while (hi < view->count && euno_load64(&view->heads[hi]) == h)
	{
		lo = hi;
		hi += step;
		step *= 2;
	}
	if (hi > view->count)
		hi = view->count;
	while (lo + 1 < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (euno_load64(&view->heads[mid]) == h)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* The first slot whose first entry is not below the key. */
static uint32_t
lower_slot(EunoContext *cx, BptView *view, const BptKey *key, bool *exact)
{
	uint64_t	h;
	uint32_t	lo;
	uint32_t	hi;

	*exact = false;
	if (view->format == BPT_OPAQUE)
		return euno_bpt_lower_opaque(cx, view, key, exact);
	if (view->open && view->prefix_len > 0)
	{
		int			c = bpt_compare_prefix(key, view->leaf, view->prefix_len);

		if (c != 0)
			return c < 0 ? 0 : view->count;
	}
	h = bpt_key_word(key, view->prefix_len);
	lo = euno_bpt_lower_head(view, h);
	if (lo == view->count || euno_load64(&view->heads[lo]) != h)
		return lo;

	hi = past_equal(view, lo, h);
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;
		int			c = compare_tail(view, key, mid);

		if (c <= 0)
		{
			hi = mid;
			*exact = c == 0;
			if (*exact)
				break;
		}
		else
			lo = mid + 1;
	}
	if (*exact && view->format == BPT_FIXED)
	{
		while (hi > 0 && bpt_same_entry(view, hi))
			hi--;
	}
	return hi;
}

/*
 * Has slot i the key that "key" (which may be longer or a position) starts
 * with?  If so, *bound is the TID below which entries of that key are left of
 * the position, and *pure says that the position is a whole (key, TID).
 */
static bool
same_key(EunoContext *cx, BptView *view, const BptKey *key, uint32_t i,
		 EunoTid *bound, bool *pure)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	len = euno_bpt_key_bytes(view, i, bytes);

	if (view->torn)
		return false;
	if (view->format == BPT_OPAQUE)
	{
		const EunoPosition *pos = key->pos;

		if (!bpt_comparable(view) || cx->compare(cx->compare_arg, pos, bytes, len) != 0)
			return false;
		*pure = pos->side == 0;
		*bound = pos->side < 0 ? 0 :
			pos->side > 0 ? EUNO_TID_MAX + 1 : pos->tid;
		return true;
	}
	if (key->len < len || memcmp(key->bytes, bytes, len) != 0)
		return false;
	*bound = bpt_key_word(key, len) >> 16;
	*pure = key->len == len + EUNO_TID_BYTES;
	if (euno_bpt_compare_rest(key, len + EUNO_TID_BYTES, NULL, 0) > 0)
		(*bound)++;
	return true;
}

/*
 * The gap of a key that is above all slots before gap->slot: it may be inside
 * the list of the slot before.
 */
static void
look_into_list(EunoContext *cx, BptView *view, const BptKey *key, BptGap *gap)
{
	uint8_t		list[BPT_LIST_BYTES + BPT_SLACK];
	EunoTid		bound;
	EunoTid		first;
	EunoTid		there = 0;
	BptSlot		slot;
	bool		pure;
	uint32_t	i;

	gap->listed = false;
	if (gap->exact || gap->slot == 0 || view->format == BPT_FIXED ||
		!euno_bpt_slot(view, gap->slot - 1, &slot) || slot.ntids == 1 ||
		!same_key(cx, view, key, gap->slot - 1, &bound, &pure))
		return;
	first = euno_bpt_first_tid(view, gap->slot - 1);
	if (first >= bound)
		return;
	euno_copy_out(list, slot.list, slot.list_len);
	i = euno_bpt_list_find(list, slot.list_len, first, slot.ntids, bound,
						   &gap->list_at, &gap->before, &there);
	if (i == 0)
	{
		view->torn = true;
		return;
	}
	gap->listed = pure;
	if (i < slot.ntids)
	{
		gap->slot--;
		gap->sub = i;
		gap->exact = pure && there == bound;
	}
}

/*
 * The gap that the key stands for.  The key must be within the leaf's fences.
 */
void
euno_bpt_find(EunoContext *cx, BptView *view, const BptKey *key, BptGap *gap)
{
	gap->slot = lower_slot(cx, view, key, &gap->exact);
	gap->sub = 0;
	look_into_list(cx, view, key, gap);
}

/* The sign of (key) - (slot i); 0 if torn. */
static int
compare_slot(EunoContext *cx, BptView *view, const BptKey *key, uint32_t i)
{
	uint64_t	h;
	uint64_t	head;

	if (view->format == BPT_OPAQUE)
		return euno_bpt_compare_opaque_slot(cx, view, key, BPT_COMPARATOR, i);
	h = bpt_key_word(key, view->prefix_len);
	head = euno_load64(&view->heads[i]);
	if (h != head)
		return h < head ? -1 : 1;
	return compare_tail(view, key, i);
}

/*
 * The same, for a key that is likely to be found at slot "from" (which is not
 * right of it) or soon after: the end of a short range.  It must be within the
 * leaf's fences, or in COMPARE order not below the low one.
 */
void
euno_bpt_find_near(EunoContext *cx, BptView *view, const BptKey *key,
				   uint32_t from, BptGap *gap)
{
	if (!view->open || view->prefix_len == 0)
	{
		for (uint32_t i = from; i < from + 3; i++)
		{
			int			c = -1;

			if (i < view->count)
				c = compare_slot(cx, view, key, i);
			if (c <= 0)
			{
				gap->slot = i < view->count ? i : view->count;
				gap->sub = 0;
				gap->exact = i < view->count && c == 0;
				look_into_list(cx, view, key, gap);
				return;
			}
		}
	}
	euno_bpt_find(cx, view, key, gap);
}
