/*-------------------------------------------------------------------------
 *
 * bpt_inner.c
 *	  Choosing a child in an inner node.
 *
 * The nodes may be being written.  As in bpt_search.c, nothing counts before
 * validation, and a comparator only sees copies of what has been validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

typedef struct InnerView
{
	const uint8_t *base;
	const BptPair *pairs;		/* separator i is left of child i + 1 */
	const uint16_t *offs;
	uint32_t	size;
	uint32_t	count;
	uint32_t	prefix_len;
	EunoLock   *lock;			/* of a shared node; NULL: a private copy */
	uint64_t	version;
} InnerView;

static bool
inner_view(const BptInner *node, InnerView *view)
{
	uint32_t	cap = euno_load16(&node->cap);

	view->base = (const uint8_t *) node;
	view->size = 1U << (euno_load8(&node->size_log2) & 15);
	view->count = euno_load16(&node->count);
	view->prefix_len = euno_load16(&node->prefix_len);
	view->pairs = bpt_pairs(node);
	view->offs = (const uint16_t *) (view->pairs + cap + 1);
	return view->count <= cap && BPT_INNER_BYTES(cap) <= view->size;
}

/* The separator's bytes after prefix and head; false if torn. */
static bool
inner_tail(const InnerView *view, uint32_t i, const uint8_t **tail,
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
static int
compare_separator(const InnerView *view, const BptKey *key, uint32_t i,
				  bool *torn)
{
	const uint8_t *tail;
	uint32_t	len;

	if (!inner_tail(view, i, &tail, &len))
	{
		*torn = true;
		return 0;
	}
	return euno_bpt_compare_rest(key, view->prefix_len + 8, tail, len);
}

/*
 * BYTES: where the key stands to the node's prefix: < 0, 0 (has it), > 0.
 */
static int
compare_prefix(const InnerView *view, const BptInner *node, const BptKey *key,
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
	for (n = 8; n < len; n++)
	{
		uint8_t		b = euno_load8(view->base + off + n);
		uint8_t		k = n < key->len ? key->bytes[n] : 0;

		if (k != b)
			return k < b ? -1 : 1;
	}
	return 0;
}

static inline uint64_t
load_head(const InnerView *view, uint32_t i)
{
	return euno_load64(&view->pairs[i + 1].head);
}

/* The number of heads below h, starting where it would be by interpolation. */
static uint32_t
lower_head(const InnerView *view, const BptInner *node, uint64_t h)
{
	uint64_t	first = euno_load64(&node->first_head);
	uint64_t	last = euno_load64(&node->last_head);
	uint32_t	lo = 0;
	uint32_t	n = view->count;

	if (n >= 16 && h > first && h <= last)
	{
		uint32_t	at = (uint32_t) ((double) (h - first) /
									 (double) (last - first) * (n - 1));
		uint32_t	step = 4;

		if (at >= n)
			at = n - 1;
		if (load_head(view, at) < h)
		{
			lo = at + 1;
			while (lo + step < n && load_head(view, lo + step) < h)
			{
				lo += step + 1;
				step *= 2;
			}
			n = lo + step < n ? step : n - lo;
		}
		else
		{
			uint32_t	hi = at;

			while (hi > step && load_head(view, hi - step) >= h)
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
		bool		right = load_head(view, lo + half) < h;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	return lo;
}

/* BYTES: the number of separators left of the key. */
static uint32_t
search_bytes(const InnerView *view, const BptInner *node, const BptKey *key,
			 bool below, bool *torn)
{
	uint32_t	lo;
	uint32_t	hi;
	uint64_t	h;
	int			c = compare_prefix(view, node, key, torn);

	if (c != 0)
		return c < 0 ? 0 : view->count;
	h = bpt_key_word(key, view->prefix_len);
	lo = lower_head(view, node, h);
	for (hi = lo; hi < view->count && load_head(view, hi) == h; hi++)
		;
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		c = compare_separator(view, key, mid, torn);
		if (c > 0 || (c == 0 && !below))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* COMPARE: the same. */
static uint32_t
search_opaque(EunoContext *cx, const InnerView *view, const BptKey *key,
			  bool below, bool *torn)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	lo = 0;
	uint32_t	hi = view->count;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;
		const uint8_t *tail;
		uint32_t	len;
		EunoTid		tid = load_head(view, mid) & EUNO_TID_MAX;
		int			c;

		if (!inner_tail(view, mid, &tail, &len) || tail == NULL ||
			len > EUNO_MAX_ENTRY)
		{
			*torn = true;
			return 0;
		}
		euno_copy_out(bytes, tail, len);

		/* A comparator sees nothing that was not validated. */
		if (view->lock != NULL &&
			!euno_lock_validate(view->lock, view->version))
		{
			*torn = true;
			return 0;
		}
		c = euno_bpt_compare_opaque(cx, key, bytes, len, tid);
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
					 uint64_t version, const BptKey *key, bool opaque,
					 bool below, uint32_t *index, bool *torn)
{
	InnerView	view;
	BptInner   *child;

	if (!inner_view(node, &view))
	{
		*torn = true;
		return NULL;
	}
	view.lock = lock;
	view.version = version;
	*index = opaque ? search_opaque(cx, &view, key, below, torn) :
		search_bytes(&view, node, key, below, torn);
	child = euno_load_ptr(&view.pairs[*index].child);
	euno_prefetch(child);
	return child;
}
