/*-------------------------------------------------------------------------
 *
 * bpt_inner.c
 *	  Choosing a child in an inner node.
 *
 * The nodes may be being written.  As in bpt_view.c, nothing counts before
 * validation, and a comparator only sees copies of what has been validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_inner.h"

/* COMPARE: has separator i fetched, which may be anything. */
static inline void
fetch_separator(const BptInnerView *view, uint32_t i)
{
	uint32_t	off;

	if (i >= view->count)
		return;
	off = euno_load16(&view->offs[i]);
	euno_prefetch(view->base + off);
	euno_prefetch(view->base + off + 32);
}

/* COMPARE: the sign of (key) - (separator i); 0 if torn. */
static inline int
compare_separator(EunoContext *cx, const BptInnerView *view, const BptKey *key,
				  BptJudge judge, uint32_t i, bool *torn)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	const uint8_t *tail;
	uint32_t	len;
	int			c;

	if (!bpt_inner_tail(view, i, &tail, &len) || tail == NULL ||
		len > EUNO_MAX_ENTRY)
	{
		*torn = true;
		return 0;
	}
	euno_copy_out(bytes, tail, len);

	/* A comparator sees nothing that was not validated. */
	if (view->lock != NULL && !euno_lock_validate(view->lock, view->version))
	{
		*torn = true;
		return 0;
	}
	c = bpt_approximation(cx, judge, key, bytes, len);
	return c != 0 ? c :
		euno_bpt_compare_opaque(cx, key, bytes, len,
								bpt_inner_head(view, i) & EUNO_TID_MAX);
}

/*
 * COMPARE: the number of separators left of the key.  While the comparator
 * runs, those that may be looked at next are fetched, on either side.
 */
static uint32_t
search_opaque(EunoContext *cx, const BptInnerView *view, const BptKey *key,
			  BptJudge judge, bool below, bool *torn)
{
	uint32_t	lo = 0;
	uint32_t	hi = view->count;

	for (uint32_t i = 0; i < hi; i += 32)
		euno_prefetch(&view->offs[i]);
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;
		int			c;

		fetch_separator(view, (lo + mid) / 2);
		fetch_separator(view, (mid + 1 + hi) / 2);
		if (hi - lo < 8)
			euno_prefetch(&view->pairs[mid + 1]);
		c = compare_separator(cx, view, key, judge, mid, torn);
		if (*torn)
			return 0;
		if (c > 0 || (c == 0 && !below))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The child for the key: the one that covers the entries right of the gap, or
 * with "below" those just left of it.  The pointer must not be followed
 * before the node has been validated.  "lock" is that of a shared node, seen
 * at the given version; NULL for a private copy.
 */
BptInner *
euno_bpt_inner_child(EunoContext *cx, const BptInner *node, EunoLock *lock,
					 uint64_t version, const BptKey *key, BptJudge judge,
					 bool below, uint32_t *index, bool *torn)
{
	BptInnerView	view;

	if (!bpt_inner_view(node, &view))
	{
		*torn = true;
		return NULL;
	}
	view.lock = lock;
	view.version = version;
	*index = judge == BPT_MEMCMP ?
		bpt_inner_search(&view, node, key, below, torn) :
		search_opaque(cx, &view, key, judge, below, torn);
	return euno_load_ptr(&view.pairs[*index].child);
}
