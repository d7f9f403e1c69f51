/*-------------------------------------------------------------------------
 *
 * bpt_inner_put.c
 *	  Writing to inner nodes that others read.
 *
 * The writers of a directory hold its mutex; its readers see every change
 * under the node's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

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
		if (!euno_bpt_abbreviate(cx->env, tree, buf, len, short_form, &len))
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
	uint32_t	header = bpt_separator_header(tree);
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
		bpt_put_record(record, bpt_is_opaque(tree), fence->tid, need - header);
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
