/*-------------------------------------------------------------------------
 *
 * bpt_inner_encode.c
 *	  Inner nodes taken apart, and built, in private memory.
 *
 * The writers of a directory hold its mutex, so what they read of its nodes
 * does not change; its readers see every change under the node's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/* Bytes of a separator in a node's heap before its own. */
static inline uint32_t
separator_header(const EunoTree *tree)
{
	return bpt_is_opaque(tree) ? BPT_SEPARATOR : 2;
}

/* Writes what comes before a separator's bytes, of which there are len. */
static inline void
put_record(uint8_t *to, bool opaque, EunoTid tid, uint32_t len)
{
	if (opaque)
		euno_put_word(to, tid << 16 | len);
	else
	{
		to[0] = (uint8_t) len;
		to[1] = (uint8_t) (len >> 8);
	}
}

/*
 * COMPARE: abbreviates a separator (8-byte aligned) to *n bytes, and zeros.
 * False if that is not possible.
 */
static bool
abbreviate(const EunoEnvironment *env, const EunoTree *tree,
		   const uint8_t *bytes, uint32_t len, uint8_t *to, uint32_t *n)
{
	int			done = env->abbreviate == NULL ? -1 :
		env->abbreviate(tree->config.abbreviation, bytes, len, to);

	*n = done < 0 ? 0 : (uint32_t) done;
	memset(to + *n, 0, EUNO_ABBREVIATION + 16 - *n);
	return done >= 0;
}

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
	uint32_t	header = separator_header(tree);
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
	uint32_t	same = 0;

	if (set->opaque || a == b)
		return 0;
	len = euno_bpt_seps_get(set, a, to);
	last_len = euno_bpt_seps_get(set, b - 1, last);
	while (same < len && same < last_len && to[same] == last[same])
		same++;
	return same;
}

/* The same of separator i of a set. */
static bool
abbreviate_sep(const BptSeps *set, uint32_t i, uint8_t *to, uint32_t *n)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	len = euno_bpt_seps_get(set, i, bytes);

	return abbreviate(set->env, set->tree, bytes, len, to, n);
}

/*
 * COMPARE: do the heads of a node that has just been loaded say what its
 * separators do?
 */
bool
euno_bpt_heads_match(const BptSeps *set)
{
	const BptInner *node = &set->copy.inner;
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	uint8_t		its[EUNO_ABBREVIATION + 16];
	uint32_t	plen = node->prefix_len;
	uint32_t	len;

	euno_put_word(prefix, node->prefix_word);
	if (plen > 8)
		memcpy(prefix, set->copy.bytes + node->prefix_off, plen);
	for (uint32_t i = 0; i < set->n && node->abbreviated; i++)
	{
		if (!abbreviate_sep(set, i, its, &len) || len < plen ||
			memcmp(its, prefix, plen) != 0 ||
			bpt_pairs(node)[i + 1].head != euno_get_word(its + plen))
			return false;
	}
	return true;
}

/*
 * COMPARE: what the abbreviations of separators [a, b) have in common.  -1 if
 * one cannot be abbreviated, or there is none.  The comparator's order is not
 * that of bytes: all are looked at.
 */
static int
common_abbreviation(const BptSeps *set, uint32_t a, uint32_t b, uint8_t *to)
{
	uint8_t		its[EUNO_ABBREVIATION + 16];
	uint32_t	same;
	uint32_t	len;

	if (a == b || !abbreviate_sep(set, a, to, &same))
		return -1;
	for (uint32_t i = a + 1; i < b; i++)
	{
		uint32_t	n = 0;

		if (!abbreviate_sep(set, i, its, &len))
			return -1;
		while (n < same && n < len && to[n] == its[n])
			n++;
		same = n;
	}
	return (int) same;
}

/*
 * The prefix of separators [a, b), into "to", followed by zeros, and its
 * length.  False: they have no heads.
 */
static bool
find_prefix(const BptSeps *set, uint32_t a, uint32_t b, uint8_t *to,
			uint32_t *len)
{
	int			same = set->opaque ? common_abbreviation(set, a, b, to) :
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
	uint32_t	header = separator_header(set->tree);
	uint32_t	skip = set->opaque ? 0 : plen + 8;
	uint32_t	n;

	*off = 0;
	memset(buf + len, 0, 8);
	if (set->opaque || len > skip)
	{
		*heap -= len - skip + header;
		*off = (uint16_t) *heap;
		put_record(image->bytes + *heap, set->opaque, set->seps[i].head,
				   len - skip);
		memcpy(image->bytes + *heap + header, buf + skip, len - skip);
	}
	if (!set->opaque)
		return euno_get_word(buf + plen);
	if (!heads)
		return 0;
	(void) abbreviate_sep(set, i, short_form, &n);
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
	node->heap = (uint16_t) heap;
	node->first_head = n > 0 ? pairs[1].head : 0;
	node->last_head = pairs[n].head;
	return true;
}

/*
 * Copies an image into its node.  The node is locked here, unless it is new:
 * then nobody can see it.
 */
void
euno_bpt_inner_install(EunoContext *cx, BptInner *node, const BptImage *image,
					   bool is_new)
{
	const BptInner *from = &image->inner;

	if (!is_new)
		(void) euno_lock_acquire(&node->lock, cx->env, &cx->counters);
	euno_store64(&node->prefix_word, from->prefix_word);
	euno_store16(&node->count, from->count);
	euno_store16(&node->prefix_len, from->prefix_len);
	euno_store16(&node->prefix_off, from->prefix_off);
	euno_store16(&node->cap, from->cap);
	euno_store16(&node->heap, from->heap);
	euno_store8(&node->abbreviated, from->abbreviated);
	euno_store64(&node->first_head, from->first_head);
	euno_store64(&node->last_head, from->last_head);
	euno_copy_in(bpt_pairs(node), bpt_pairs(from),
				 bpt_inner_size(node) - BPT_INNER_HEADER);
	if (!is_new)
		euno_lock_release(&node->lock, cx->env);
}

/*
 * The head that a fence's bytes ("buf", then zeros) get in a node.  False if
 * the node would have to have another prefix.
 */
static bool
head_in_node(EunoContext *cx, EunoTree *tree, const BptInner *node,
			 const uint8_t *buf, uint32_t len, uint64_t *head)
{
	uint32_t	plen = euno_load16(&node->prefix_len);
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	uint8_t		short_form[EUNO_ABBREVIATION + 16];

	*head = 0;
	if (bpt_is_opaque(tree))
	{
		if (euno_load8(&node->abbreviated) == 0)
			return true;
		if (!abbreviate(cx->env, tree, buf, len, short_form, &len))
			return false;
		buf = short_form;
	}
	euno_put_word(prefix, euno_load64(&node->prefix_word));
	if (plen > 8)
		euno_copy_out(prefix, (uint8_t *) node +
					  euno_load16(&node->prefix_off), plen);
	if (len < plen || memcmp(prefix, buf, plen) != 0)
		return false;
	*head = euno_get_word(buf + plen);
	return true;
}

/*
 * Inserts a separator at i and the child right of it, if there is room and the
 * node keeps its prefix; otherwise false and nothing changed.  The directory's
 * mutex is held.
 */
bool
euno_bpt_inner_put(EunoContext *cx, EunoTree *tree, BptInner *node,
				   uint32_t i, const BptFence *fence, void *child)
{
	BptPair    *pairs = bpt_pairs(node);
	uint32_t	cap = euno_load16(&node->cap);
	uint32_t	count = euno_load16(&node->count);
	uint32_t	heap = euno_load16(&node->heap);
	uint16_t   *offs = (uint16_t *) (pairs + cap + 1);
	uint32_t	header = separator_header(tree);
	uint32_t	skip = bpt_is_opaque(tree) ? 0 :
		(uint32_t) euno_load16(&node->prefix_len) + 8;
	uint8_t		buf[BPT_MAX_COMPOSITE + 16] __attribute__((aligned(8)));
	uint8_t		record[BPT_SEPARATOR];
	uint32_t	need = 0;
	uint32_t	off = 0;
	uint64_t	head;

	if (count >= cap || count == 0)
		return false;
	if (fence->len > 0)
		memcpy(buf, fence->bytes, fence->len);
	memset(buf + fence->len, 0, 8);
	if (!head_in_node(cx, tree, node, buf, fence->len, &head))
		return false;
	if (bpt_is_opaque(tree) || fence->len > skip)
		need = header + fence->len - skip;
	if (need > 0 && heap < BPT_INNER_BYTES(cap) + need)
		return false;
	(void) euno_lock_acquire(&node->lock, cx->env, &cx->counters);
	if (need > 0)
	{
		off = heap - need;
		put_record(record, bpt_is_opaque(tree), fence->tid, need - header);
		euno_copy_in((uint8_t *) node + off, record, header);
		euno_copy_in((uint8_t *) node + off + header, buf + skip,
					 need - header);
		euno_store16(&node->heap, (uint16_t) off);
	}
	euno_move(&pairs[i + 2], &pairs[i + 1], (count - i) * sizeof(BptPair));
	euno_move(&offs[i + 1], &offs[i], (count - i) * 2);
	euno_store64(&pairs[i + 1].head, head);
	euno_store_ptr(&pairs[i + 1].child, child);
	euno_store16(&offs[i], (uint16_t) off);
	euno_store16(&node->count, (uint16_t) (count + 1));
	if (i == 0)
		euno_store64(&node->first_head, head);
	if (i == count)
		euno_store64(&node->last_head, head);
	euno_lock_release(&node->lock, cx->env);
	return true;
}
