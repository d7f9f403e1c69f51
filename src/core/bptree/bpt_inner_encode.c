/*-------------------------------------------------------------------------
 *
 * bpt_inner_encode.c
 *	  Inner nodes taken apart, and built, in private memory.
 *
 * The writers of a directory hold its mutex, so what they read of its nodes
 * does not change.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/* Starts an empty set of separators. */
void
euno_bpt_seps_init(BptSeps *set, EunoContext *cx, EunoTree *tree)
{
	set->env = cx->env;
	set->tree = tree;
	set->opaque = bpt_is_opaque(tree);
	set->n = 0;
	set->prefix_len = 0;
}

/*
 * Takes a node apart.  The copy it is taken from is kept in set->copy.  False
 * if the node makes no sense.
 */
bool
euno_bpt_seps_load(BptSeps *set, EunoContext *cx, EunoTree *tree,
				   const BptInner *node)
{
	const BptInner *copy = &set->copy.inner;
	size_t		size = bpt_inner_size(node);
	const BptPair *pairs = bpt_pairs(copy);
	uint32_t	header = bpt_separator_header(tree);
	const uint16_t *offs;

	euno_bpt_seps_init(set, cx, tree);
	euno_copy_out(set->copy.bytes, node, size);
	offs = (const uint16_t *) (pairs + copy->cap + 1);
	if (copy->count > copy->cap || copy->count >= BPT_MAX_SEPS ||
		BPT_INNER_BYTES((size_t) copy->cap) > size ||
		copy->prefix_len > BPT_MAX_COMPOSITE ||
		(copy->prefix_len > 8 &&
		 (size_t) copy->prefix_off + copy->prefix_len > size))
		return false;
	set->prefix_len = set->opaque ? 0 : copy->prefix_len;
	if (set->prefix_len > 8)
		memcpy(set->prefix, set->copy.bytes + copy->prefix_off,
			   set->prefix_len);
	else
		euno_put_word(set->prefix, copy->prefix_word);
	set->n = copy->count;
	set->children[0] = pairs[0].child;
	for (uint32_t i = 0; i < set->n; i++)
	{
		BptSep	   *sep = &set->seps[i];
		const uint8_t *rec = set->copy.bytes + offs[i];

		set->children[i + 1] = pairs[i + 1].child;
		sep->whole = false;
		sep->head = pairs[i + 1].head;
		sep->bytes = NULL;
		sep->len = 0;
		if (offs[i] + header > size)
			return false;
		if (set->opaque)
		{
			sep->head = euno_get_word(rec) >> 16;
			sep->len = euno_get_word(rec) & UINT16_MAX;
		}
		else if (offs[i] == 0)
			continue;
		else
			sep->len = (uint32_t) rec[0] | (uint32_t) rec[1] << 8;
		sep->bytes = rec + header;
		if (offs[i] + header + sep->len > size)
			return false;
	}
	return true;
}

/* Inserts a separator at i and the child right of it.  False if full. */
bool
euno_bpt_seps_insert(BptSeps *set, uint32_t i, const BptFence *fence,
					 void *child)
{
	if (set->n >= BPT_MAX_SEPS - 1)
		return false;
	memmove(&set->seps[i + 1], &set->seps[i], (set->n - i) * sizeof(BptSep));
	memmove(&set->children[i + 2], &set->children[i + 1],
			(set->n - i) * sizeof(void *));
	set->seps[i].whole = true;
	set->seps[i].bytes = fence->bytes;
	set->seps[i].len = fence->len;
	set->seps[i].head = fence->tid;
	set->children[i + 1] = child;
	set->n++;
	return true;
}

/* Removes separator i and the child right of it. */
void
euno_bpt_seps_remove(BptSeps *set, uint32_t i)
{
	set->n--;
	memmove(&set->seps[i], &set->seps[i + 1], (set->n - i) * sizeof(BptSep));
	memmove(&set->children[i + 1], &set->children[i + 2],
			(set->n - i) * sizeof(void *));
}

/*
 * Separator i in full, into "to" (BPT_MAX_COMPOSITE + 8 bytes); trailing
 * zeros, which mean nothing, are left out.  Returns its length.
 */
uint32_t
euno_bpt_seps_get(const BptSeps *set, uint32_t i, uint8_t *to)
{
	const BptSep *sep = &set->seps[i];
	uint32_t	len = set->prefix_len;

	if (sep->whole || set->opaque)
	{
		if (sep->len > 0)
			euno_copy_out(to, sep->bytes, sep->len);
		if (set->opaque)
			return sep->len;
		len = sep->len;
	}
	else
	{
		memcpy(to, set->prefix, len);
		euno_put_word(to + len, sep->head);
		len += 8;
		if (sep->len > 0)
			memcpy(to + len, sep->bytes, sep->len);
		len += sep->len;
	}
	while (len > 0 && to[len - 1] == 0)
		len--;
	return len;
}

/* What separators [a, b) have in common. */
static uint32_t
common_prefix(const BptSeps *set, uint32_t a, uint32_t b, uint8_t *to)
{
	uint8_t		last[BPT_MAX_COMPOSITE + 8];
	uint32_t	len;
	uint32_t	last_len;

	if (a == b)
		return 0;
	len = euno_bpt_seps_get(set, a, to);
	last_len = euno_bpt_seps_get(set, b - 1, last);
	return bpt_same_bytes(to, len, last, last_len);
}

/*
 * The prefix of separators [a, b), into "to", followed by zeros, and its
 * length.  False: they have no heads.
 */
static bool
find_prefix(const BptSeps *set, uint32_t a, uint32_t b, uint8_t *to,
			uint32_t *len)
{
	int			same = set->opaque ?
		euno_bpt_common_abbreviation(set, a, b, to) :
		(int) common_prefix(set, a, b, to);

	*len = same > 0 ? (uint32_t) same : 0;
	memset(to + *len, 0, 8);
	return same >= 0;
}

/* The bytes of heap that separators [a, b) take after a prefix. */
static uint32_t
heap_bytes(const BptSeps *set, uint32_t a, uint32_t b, uint32_t plen)
{
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint32_t	used = 0;

	for (uint32_t i = a; i < b; i++)
	{
		uint32_t	len;

		if (set->opaque)
		{
			used += BPT_SEPARATOR + set->seps[i].len;
			continue;
		}
		len = euno_bpt_seps_get(set, i, buf);
		if (len > plen + 8)
			used += 2 + (len - plen - 8);
	}
	return used;
}

/*
 * Puts separator i into an image, whose heap begins at *heap: its head, which
 * is returned, and the offset of the rest.
 */
static uint64_t
encode_separator(const BptSeps *set, uint32_t i, uint32_t plen, bool heads,
				 BptImage *image, uint32_t *heap, uint16_t *off)
{
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint8_t		short_form[EUNO_ABBREVIATION + 16];
	uint32_t	len = euno_bpt_seps_get(set, i, buf);
	uint32_t	header = bpt_separator_header(set->tree);
	uint32_t	skip = set->opaque ? 0 : plen + 8;
	uint32_t	n;

	*off = 0;
	memset(buf + len, 0, 8);
	if (set->opaque || len > skip)
	{
		*heap -= len - skip + header;
		*off = (uint16_t) *heap;
		bpt_put_record(image->bytes + *heap, set->opaque, set->seps[i].head,
					   len - skip);
		memcpy(image->bytes + *heap + header, buf + skip, len - skip);
	}
	if (!set->opaque)
		return euno_get_word(buf + plen);
	if (!heads)
		return 0;
	(void) euno_bpt_abbreviate_sep(set, i, short_form, &n);
	return euno_get_word(short_form + plen);
}

/*
 * Builds a node with separators [a, b) and children [a, b] in an image of the
 * given size.  False if they do not fit.
 */
bool
euno_bpt_seps_encode(const BptSeps *set, uint32_t a, uint32_t b, size_t size,
					 BptImage *image)
{
	BptInner   *node = &image->inner;
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	uint32_t	plen;
	bool		heads = find_prefix(set, a, b, prefix, &plen);
	uint32_t	n = b - a;
	uint32_t	used = BPT_INNER_BYTES(n) + heap_bytes(set, a, b, plen);
	uint32_t	cap;
	uint32_t	heap = (uint32_t) size;
	BptPair    *pairs = bpt_pairs(node);
	uint16_t   *offs;

	/* Abbreviations may have a shorter prefix, as much as there is room for. */
	if (set->opaque && plen > 8 && used + plen > size)
	{
		plen = used + 8 < size ? (uint32_t) size - used : 8;
		memset(prefix + plen, 0, 8);
	}
	used += plen > 8 ? plen : 0;
	if (used > size)
		return false;

	/* Room for more, in the proportion of arrays and heap seen so far. */
	cap = n + ((uint32_t) size - used) /
		(n == 0 ? 64 : (used - BPT_INNER_HEADER) / n + 1);
	if (cap > BPT_MAX_SEPS - 1)
		cap = BPT_MAX_SEPS - 1;
	offs = (uint16_t *) (pairs + cap + 1);
	node->count = (uint16_t) n;
	node->cap = (uint16_t) cap;
	node->prefix_len = (uint16_t) plen;
	node->prefix_off = 0;
	node->prefix_word = euno_get_word(prefix);
	node->abbreviated = set->opaque && heads;
	if (plen > 8)
	{
		heap -= plen;
		memcpy(image->bytes + heap, prefix, plen);
		node->prefix_off = (uint16_t) heap;
	}
	pairs[0].head = 0;
	pairs[0].child = set->children[a];
	for (uint32_t i = a; i < b; i++)
	{
		pairs[i - a + 1].head = encode_separator(set, i, plen, heads, image,
												 &heap, &offs[i - a]);
		pairs[i - a + 1].child = set->children[i + 1];
	}
	memset(&pairs[n + 1], 0, (cap - n) * sizeof(BptPair));
	memset(&offs[n], 0, (size_t) (image->bytes + heap - (uint8_t *) &offs[n]));
	node->heap = (uint16_t) heap;
	node->first_head = n > 0 ? pairs[1].head : 0;
	node->last_head = pairs[n].head;
	return true;
}
