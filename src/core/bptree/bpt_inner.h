/*-------------------------------------------------------------------------
 *
 * bpt_inner.h
 *	  Searching an inner node; one of byte strings, inlined into the descent.
 *
 * The nodes may be being written.  As in bpt_view.c, nothing counts before
 * validation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_INNER_H
#define BPT_INNER_H

#include "core/bptree/bpt.h"

typedef struct BptInnerView
{
	const uint8_t *base;
	const BptPair *pairs;		/* separator i is left of child i + 1 */
	const uint16_t *offs;
	uint32_t	size;
	uint32_t	count;
	uint32_t	prefix_len;
	uint32_t	alphabet;		/* to guess with */
	EunoLock   *lock;			/* of a shared node; NULL: a private copy */
	uint64_t	version;
} BptInnerView;

/* What looks for a key in inner nodes of either order, one after the other. */
typedef struct BptInnerSearch
{
	EunoContext *cx;
	const BptKey *key;
	BptJudge	judge;
	const EunoAbbreviation *abbreviation;	/* of the key, for
											 * BPT_APPROXIMATION; or NULL */
	bool		below;			/* the child left of the gap is looked for */
	bool		torn;			/* a node made no sense */

	/* Of the node that is looked at; COMPARE only, but for the view. */
	BptInnerView view;
	const EunoAbbreviation *mine;	/* the key's; NULL: heads say nothing */
	uint64_t	head;			/* of that, after the node's prefix */
} BptInnerSearch;

extern BptInner *euno_bpt_inner_child(BptInnerSearch *s, const BptInner *node,
									  EunoLock *lock, uint64_t version,
									  uint32_t *index);

static inline bool
bpt_inner_view(const BptInner *node, BptInnerView *view)
{
	uint32_t	cap = euno_load16(&node->cap);

	view->base = (const uint8_t *) node;
	view->size = 1U << (euno_load8(&node->size_log2) & 15);
	view->count = euno_load16(&node->count);
	view->prefix_len = euno_load16(&node->prefix_len);
	view->alphabet = BPT_BINARY;
	view->pairs = bpt_pairs(node);
	view->offs = (const uint16_t *) (view->pairs + cap + 1);
	return view->count <= cap && BPT_INNER_BYTES(cap) <= view->size;
}

/* The separator's bytes after prefix and head; false if torn. */
static inline bool
bpt_inner_tail(const BptInnerView *view, uint32_t i, const uint8_t **tail,
		   uint32_t *len)
{
	uint32_t	off = euno_load16(&view->offs[i]);

	*len = 0;
	*tail = NULL;
	if (off == 0)
		return true;
	if (off + 2 > view->size)
		return false;
	*len = (uint32_t) euno_load8(view->base + off) |
		(uint32_t) euno_load8(view->base + off + 1) << 8;
	*tail = view->base + off + 2;
	return off + 2 + *len <= view->size;
}

/* BYTES: the sign of (key) - (separator i), whose heads are equal. */
static inline int
bpt_inner_compare(const BptInnerView *view, const BptKey *key, uint32_t i,
				  bool *torn)
{
	const uint8_t *tail;
	uint32_t	len;

	if (!bpt_inner_tail(view, i, &tail, &len))
	{
		*torn = true;
		return 0;
	}
	return euno_bpt_compare_rest(key, view->prefix_len + 8, tail, len);
}

/*
 * BYTES: where the key stands to the node's prefix: < 0, 0 (has it), > 0.
 */
static inline int
bpt_inner_prefix(const BptInnerView *view, const BptInner *node, const BptKey *key,
			   bool *torn)
{
	uint64_t	word = euno_load64(&node->prefix_word);
	uint64_t	mine = bpt_key_word(key, 0);
	uint32_t	len = view->prefix_len;
	uint32_t	off;
	uint32_t	n;

	if (len == 0)
		return 0;
	n = len < 8 ? len : 8;
	word >>= 64 - 8 * n;
	mine >>= 64 - 8 * n;
	if (mine != word)
		return mine < word ? -1 : 1;
	if (len <= 8)
		return 0;
	off = euno_load16(&node->prefix_off);
	if (off + len > view->size)
	{
		*torn = true;
		return 0;
	}
	for (uint32_t at = 8; at < len; at += 8)
	{
		/* the last eight bytes may overlap those before */
		at = at < len - 8 ? at : len - 8;
		word = euno_load_be(view->base + off + at, 8);
		mine = bpt_key_word(key, at);
		if (mine != word)
			return mine < word ? -1 : 1;
	}
	return 0;
}

static inline uint64_t
bpt_inner_head(const BptInnerView *view, uint32_t i)
{
	return euno_load64(&view->pairs[i + 1].head);
}

/* The number of heads below h, starting where it would be by interpolation. */
static inline uint32_t
bpt_inner_lower(const BptInnerView *view, const BptInner *node, uint64_t h)
{
	uint64_t	first = euno_load64(&node->first_head);
	uint64_t	last = euno_load64(&node->last_head);
	uint32_t	lo = 0;
	uint32_t	n = view->count;

	if (n >= 16 && h > first && h <= last)
	{
		uint32_t	at = bpt_guess(view->alphabet, h, first, last, n);
		uint32_t	step = 4;

		if (bpt_inner_head(view, at) < h)
		{
			lo = at + 1;
			while (lo + step < n && bpt_inner_head(view, lo + step) < h)
			{
				lo += step + 1;
				step *= 2;
			}
			n = lo + step < n ? step : n - lo;
		}
		else
		{
			uint32_t	hi = at;

			while (hi > step && bpt_inner_head(view, hi - step) >= h)
			{
				hi -= step;
				step *= 2;
			}
			lo = hi > step ? hi - step : 0;
			n = hi - lo;
		}
	}
	while (n > 0)
	{
		uint32_t	half = n / 2;
		bool		right = bpt_inner_head(view, lo + half) < h;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	return lo;
}

/* BYTES: the number of separators left of the key. */
static inline uint32_t
bpt_inner_search(const BptInnerView *view, const BptInner *node, const BptKey *key,
			 bool below, bool *torn)
{
	uint32_t	lo;
	uint32_t	hi;
	uint64_t	h;
	int			c = bpt_inner_prefix(view, node, key, torn);

	if (c != 0)
		return c < 0 ? 0 : view->count;
	h = bpt_key_word(key, view->prefix_len);
	lo = bpt_inner_lower(view, node, h);
	for (hi = lo; hi < view->count && bpt_inner_head(view, hi) == h; hi++)
		;
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		c = bpt_inner_compare(view, key, mid, torn);
		if (c > 0 || (c == 0 && !below))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#endif							/* BPT_INNER_H */
