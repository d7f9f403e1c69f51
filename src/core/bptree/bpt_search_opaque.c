/*-------------------------------------------------------------------------
 *
 * bpt_search_opaque.c
 *	  Finding a place in a leaf in COMPARE order.
 *
 * The comparator is slow, and waits for each key that it looks at: so the keys
 * that may be next are fetched while it runs, and approximations, if there are
 * any, suggest where to look first.  It only sees keys that were copied out and
 * validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/*
 * The key of slot i, and its length; NULL if it is not within the leaf, which is
 * torn.  Of all that euno_bpt_slot says of a record, a search needs no more.
 */
static inline const uint8_t *
key_of_slot(BptView *view, uint32_t i, uint32_t *len)
{
	uint32_t	at = euno_load16(&view->offs[i]);
	uint32_t	info;

	if (at >= view->body && at + 8 <= view->size)
	{
		info = bpt_load_u16((const uint8_t *) view->leaf + at);
		at += 2 + ((info & BPT_REC_PAYLOAD) != 0 ? 2 : 0) +
			((info & BPT_REC_LIST) != 0 ? 3 : 0);
		*len = info & BPT_REC_LEN;
		if (at + *len + BPT_SLACK <= view->size && *len <= BPT_MAX_COMPOSITE)
			return (const uint8_t *) view->leaf + at;
	}
	view->torn = true;
	return NULL;
}

/* COMPARE: the sign of (key) - (slot i); 0 if torn. */
int
euno_bpt_compare_opaque_slot(EunoContext *cx, BptView *view, const BptKey *key,
							 BptJudge judge, uint32_t i)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	EunoTid		tid = euno_load64(&view->heads[i]) & EUNO_TID_MAX;
	uint32_t	len;
	const uint8_t *its = key_of_slot(view, i, &len);
	int			c;

	if (its == NULL)
		return 0;
	euno_copy_out(bytes, its, len);
	if (!bpt_comparable(view))
		return 0;
	c = bpt_approximation(cx, judge, key, bytes, len);
	return c != 0 ? c : euno_bpt_compare_opaque(cx, key, bytes, len, tid);
}

/*
 * COMPARE: has what euno_bpt_compare_opaque_slot reads of slot i fetched; "i"
 * may be anything.
 */
static inline void
fetch_opaque_slot(const BptView *view, uint32_t i)
{
	uint32_t	off;

	if (i >= view->count)
		return;
	off = euno_load16(&view->offs[i]);
	euno_prefetch(&view->heads[i]);
	euno_prefetch((const uint8_t *) view->leaf + off);
	euno_prefetch((const uint8_t *) view->leaf + off + 32);
}

/*
 * COMPARE: narrows [*lo, *hi), which has the first slot not below the key, or
 * is left of it, to nothing.  While the comparator runs, the slots that may be
 * looked at next are fetched, on either side.  True: the slot at *hi is the
 * key.
 */
static bool
halve_opaque(EunoContext *cx, BptView *view, const BptKey *key, BptJudge judge,
			 uint32_t *lo, uint32_t *hi)
{
	while (*lo < *hi)
	{
		uint32_t	mid = (*lo + *hi) / 2;
		int			c;

		fetch_opaque_slot(view, (*lo + mid) / 2);
		fetch_opaque_slot(view, (mid + 1 + *hi) / 2);
		c = euno_bpt_compare_opaque_slot(cx, view, key, judge, mid);
		if (view->torn)
			return false;
		if (c > 0)
			*lo = mid + 1;
		else
		{
			*hi = mid;
			if (c == 0)
				return true;
		}
	}
	return false;
}

/*
 * COMPARE: the same for the slots on both sides of the place that
 * approximations suggest; where these are wrong, the range that is left has
 * more than that.
 */
static bool
try_suggested(EunoContext *cx, BptView *view, const BptKey *key, uint32_t *lo,
			  uint32_t *hi)
{
	uint32_t	at = *lo;
	uint32_t	end = *hi;
	int			c;

	(void) halve_opaque(cx, view, key, BPT_APPROXIMATION, &at, &end);
	if (view->torn)
		return false;
	at = end;
	if (at > *lo)
	{
		c = euno_bpt_compare_opaque_slot(cx, view, key, BPT_COMPARATOR, at - 1);
		if (c <= 0)
		{
			*hi = at - 1;
			return c == 0 && !view->torn;
		}
		*lo = at;
	}
	if (at < *hi)
	{
		c = euno_bpt_compare_opaque_slot(cx, view, key, BPT_COMPARATOR, at);
		if (c > 0)
			*lo = at + 1;
		else
		{
			*hi = at;
			return c == 0 && !view->torn;
		}
	}
	return false;
}

/* COMPARE: the first slot not below the key. */
uint32_t
euno_bpt_lower_opaque(EunoContext *cx, BptView *view, const BptKey *key,
					  bool *exact)
{
	uint32_t	lo = 0;
	uint32_t	hi = view->count;

	*exact = cx->approximate != NULL && cx->doubts < BPT_DOUBTS &&
		try_suggested(cx, view, key, &lo, &hi);
	if (!*exact && !view->torn)
		*exact = halve_opaque(cx, view, key, BPT_COMPARATOR, &lo, &hi);
	return view->torn ? 0 : hi;
}
