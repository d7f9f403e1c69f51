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

/* The sign of (key) - (separator i); 0 if torn. */
static inline int
compare_separator(BptInnerSearch *s, uint32_t i)
{
	const BptInnerView *view = &s->view;
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	off = euno_load16(&view->offs[i]);
	uint64_t	word;
	uint32_t	len;
	int			c;

	word = off > 0 && off + BPT_SEPARATOR <= view->size ?
		euno_load_be(view->base + off, BPT_SEPARATOR) : UINT64_MAX;
	len = word & UINT16_MAX;
	if (len > EUNO_MAX_ENTRY || off + BPT_SEPARATOR + len > view->size)
	{
		s->torn = true;
		return 0;
	}
	euno_copy_out(bytes, view->base + off + BPT_SEPARATOR, len);

	/* A comparator sees nothing that was not validated. */
	if (view->lock != NULL && !euno_lock_validate(view->lock, view->version))
	{
		s->torn = true;
		return 0;
	}
	c = bpt_approximation(s->cx, s->judge, s->key, bytes, len);
	return c != 0 ? c :
		euno_bpt_compare_opaque(s->cx, s->key, bytes, len, word >> 16);
}

/*
 * The sign of (mine) - (its), words that begin at byte "at" of abbreviations;
 * 0 if they do not tell.
 */
static inline int
compare_words(const EunoAbbreviation *mine, uint32_t at, uint64_t word,
			  uint64_t its)
{
	uint32_t	shift;
	uint32_t	a;
	uint32_t	b;

	if (word == its)
		return 0;
	shift = (63 - (uint32_t) __builtin_clzll(word ^ its)) / 8 * 8;
	a = word >> shift & UINT8_MAX;
	b = its >> shift & UINT8_MAX;
	if (at + 7 - shift / 8 >= mine->plain)
	{
		if (((a | b) & EUNO_PLACES) != 0)
			return 0;
		if (a != 0 && b != 0)
		{
			a = mine->places[a];
			b = mine->places[b];
			if (a < EUNO_FIRST_PLACE || b < EUNO_FIRST_PLACE || a == b)
				return 0;
		}
		if (mine->desc)
			return a > b ? -1 : 1;
	}
	return a < b ? -1 : 1;
}

/*
 * Where the key's abbreviation stands to a node's prefix ("rest": where all of
 * it is, if it is longer than the word): < 0, 0, > 0.  0, too, if that is not
 * known; then the heads are not used.
 */
static int
compare_prefix(BptInnerSearch *s, uint64_t its, const uint8_t *rest,
			   uint32_t len)
{
	const EunoAbbreviation *mine = s->mine;
	uint64_t	word = euno_get_word(mine->bytes);
	uint32_t	at = 0;

	if (len < 8)
		word &= ~(UINT64_MAX >> 8 * len);
	while (word == its && at + 8 < len)
	{
		/* the last eight bytes may overlap those before */
		at = at + 16 <= len ? at + 8 : len - 8;
		word = euno_get_word(mine->bytes + at);
		its = euno_load_be(rest + at, 8);
	}
	if (word != its)
	{
		s->mine = NULL;
		return compare_words(mine, at, word, its);
	}
	s->head = euno_get_word(mine->bytes + len);
	return 0;
}

/*
 * Makes ready to use the node's heads, if it has any.  True if they are not
 * needed: all separators are on one side of the key, and the sign of (key) -
 * (them) is *c.
 */
static bool
use_heads(BptInnerSearch *s, const BptInner *node, int *c)
{
	const BptInnerView *view = &s->view;
	uint32_t	len = view->prefix_len;
	uint32_t	off = len > 8 ? euno_load16(&node->prefix_off) : 0;

	if (euno_load8(&node->abbreviated) == 0)
		return false;
	if (len > EUNO_ABBREVIATION || off + len > view->size)
	{
		s->torn = true;
		return false;
	}
	s->mine = s->abbreviation;
	*c = compare_prefix(s, euno_load64(&node->prefix_word), view->base + off,
						len);
	return *c != 0;
}

/*
 * COMPARE: the number of separators left of the key.  While the comparator
 * runs, those that may be looked at next are fetched, on either side.
 */
static uint32_t
search_opaque(BptInnerSearch *s)
{
	const BptInnerView *view = &s->view;
	uint32_t	lo = 0;
	uint32_t	hi = view->count;

	if (s->mine == NULL)
	{
		for (uint32_t i = 0; i < hi; i += 32)
			euno_prefetch(&view->offs[i]);
	}
	else
	{
		for (uint32_t i = 1; i <= hi; i += 4)
			euno_prefetch(&view->pairs[i]);
	}
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;
		int			c = 0;

		if (s->mine != NULL)
		{
			c = compare_words(s->mine, view->prefix_len, s->head,
							  bpt_inner_head(view, mid));
		}
		if (c == 0)
		{
			fetch_separator(view, (lo + mid) / 2);
			fetch_separator(view, (mid + 1 + hi) / 2);
			if (hi - lo < 8)
				euno_prefetch(&view->pairs[mid + 1]);
			c = compare_separator(s, mid);
		}
		if (s->torn)
			return 0;
		if (c > 0 || (c == 0 && !s->below))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The child for the key: the one that covers the entries right of the gap, or
 * with s->below those just left of it.  The pointer must not be followed
 * before the node has been validated.  "lock" is that of a shared node, seen
 * at the given version; NULL for a private copy.  The search is begun with
 * what it is for, and all else zero.
 */
BptInner *
euno_bpt_inner_child(BptInnerSearch *s, const BptInner *node, EunoLock *lock,
					 uint64_t version, uint32_t *index)
{
	BptInnerView *view = &s->view;
	int			c;

	if (!bpt_inner_view(node, view))
	{
		s->torn = true;
		return NULL;
	}
	view->lock = lock;
	view->version = version;
	s->mine = NULL;
	if (s->judge == BPT_MEMCMP)
		*index = bpt_inner_search(view, node, s->key, s->below, &s->torn);
	else if (s->abbreviation != NULL && use_heads(s, node, &c))
		*index = c < 0 ? 0 : view->count;
	else
		*index = search_opaque(s);
	return euno_load_ptr(&view->pairs[*index].child);
}
