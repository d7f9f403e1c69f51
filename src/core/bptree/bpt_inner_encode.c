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

/* Starts an empty set of separators. */
void
euno_bpt_seps_init(BptSeps *set, EunoTree *tree)
{
	set->opaque = bpt_is_opaque(tree);
	set->n = 0;
	set->prefix_len = 0;
}

/*
 * Takes a node apart.  The copy it is taken from is kept in set->copy.  False
 * if the node makes no sense.
 */
bool
euno_bpt_seps_load(BptSeps *set, EunoTree *tree, const BptInner *node)
{
	const BptInner *copy = &set->copy.inner;
	size_t		size = bpt_inner_size(node);
	const BptPair *pairs = bpt_pairs(copy);
	const uint16_t *offs;

	euno_bpt_seps_init(set, tree);
	euno_copy_out(set->copy.bytes, node, size);
	offs = (const uint16_t *) (pairs + copy->cap + 1);
	if (copy->count > copy->cap || copy->count >= BPT_MAX_SEPS ||
		BPT_INNER_BYTES((size_t) copy->cap) > size ||
		copy->prefix_len > BPT_MAX_COMPOSITE)
		return false;
	set->prefix_len = copy->prefix_len;
	if (set->prefix_len > 8)
	{
		if ((size_t) copy->prefix_off + copy->prefix_len > size)
			return false;
		memcpy(set->prefix, set->copy.bytes + copy->prefix_off,
			   set->prefix_len);
	}
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
		if (offs[i] == 0)
			continue;
		sep->len = (uint32_t) rec[0] | (uint32_t) rec[1] << 8;
		sep->bytes = rec + 2;
		if (offs[i] + 2 + sep->len > size)
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

/*
 * Builds a node with separators [a, b) and children [a, b] in an image of the
 * given size.  False if they do not fit.
 */
bool
euno_bpt_seps_encode(const BptSeps *set, uint32_t a, uint32_t b, size_t size,
					 BptImage *image)
{
	BptInner   *node = &image->inner;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	uint32_t	plen = common_prefix(set, a, b, prefix);
	uint32_t	n = b - a;
	uint32_t	used = BPT_INNER_BYTES(n) + (plen > 8 ? plen : 0);
	uint32_t	cap;
	uint32_t	heap = (uint32_t) size;
	BptPair    *pairs = bpt_pairs(node);
	uint16_t   *offs;

	for (uint32_t i = a; i < b; i++)
	{
		uint32_t	len = euno_bpt_seps_get(set, i, buf);

		if (set->opaque)
			used += 2 + len;
		else if (len > plen + 8)
			used += 2 + (len - plen - 8);
	}
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
	memset(prefix + plen, 0, 8);
	node->prefix_word = euno_get_word(prefix);
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
		uint32_t	len = euno_bpt_seps_get(set, i, buf);
		uint32_t	skip = set->opaque ? 0 : plen + 8;

		memset(buf + len, 0, 8);
		pairs[i - a + 1].head = set->opaque ? set->seps[i].head :
			euno_get_word(buf + plen);
		pairs[i - a + 1].child = set->children[i + 1];
		offs[i - a] = 0;
		if (set->opaque || len > skip)
		{
			heap -= len - skip + 2;
			image->bytes[heap] = (uint8_t) (len - skip);
			image->bytes[heap + 1] = (uint8_t) ((len - skip) >> 8);
			memcpy(image->bytes + heap + 2, buf + skip, len - skip);
			offs[i - a] = (uint16_t) heap;
		}
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
	euno_store64(&node->first_head, from->first_head);
	euno_store64(&node->last_head, from->last_head);
	euno_copy_in(bpt_pairs(node), bpt_pairs(from),
				 bpt_inner_size(node) - BPT_INNER_HEADER);
	if (!is_new)
		euno_lock_release(&node->lock, cx->env);
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
	uint32_t	plen = euno_load16(&node->prefix_len);
	uint32_t	heap = euno_load16(&node->heap);
	uint16_t   *offs = (uint16_t *) (pairs + cap + 1);
	uint32_t	skip = bpt_is_opaque(tree) ? 0 : plen + 8;
	uint8_t		buf[BPT_MAX_COMPOSITE + 16];
	uint8_t		record[2];
	uint32_t	need = 0;
	uint32_t	off = 0;
	uint64_t	head = fence->tid;

	if (count >= cap || count == 0)
		return false;
	if (!bpt_is_opaque(tree))
	{
		uint8_t		prefix[BPT_MAX_COMPOSITE + 8];

		euno_put_word(prefix, euno_load64(&node->prefix_word));
		if (plen > 8)
			euno_copy_out(prefix, (uint8_t *) node +
						  euno_load16(&node->prefix_off), plen);
		if (fence->len < plen || memcmp(prefix, fence->bytes, plen) != 0)
			return false;
	}
	if (fence->len > 0)
		memcpy(buf, fence->bytes, fence->len);
	memset(buf + fence->len, 0, 8);
	if (!bpt_is_opaque(tree))
		head = euno_get_word(buf + plen);
	if (bpt_is_opaque(tree) || fence->len > skip)
		need = 2 + fence->len - skip;
	if (need > 0 && heap < BPT_INNER_BYTES(cap) + need)
		return false;
	(void) euno_lock_acquire(&node->lock, cx->env, &cx->counters);
	if (need > 0)
	{
		off = heap - need;
		record[0] = (uint8_t) (need - 2);
		record[1] = (uint8_t) ((need - 2) >> 8);
		euno_copy_in((uint8_t *) node + off, record, 2);
		euno_copy_in((uint8_t *) node + off + 2, buf + skip, need - 2);
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
