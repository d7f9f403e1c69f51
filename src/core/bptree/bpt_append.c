/*-------------------------------------------------------------------------
 *
 * bpt_append.c
 *	  The next entry of an ascending load.
 *
 * Behind the last entry of the last leaf, where the ones before it went: most
 * of what an insert looks for is known then, and most of what it plans for cannot
 * be.  src/README.md, "The last leaf".
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/*
 * Puts an entry behind all others of a leaf, if the leaf is the last one,
 * FIXED, packed from the left, and not yet as full as ascending loads shall
 * leave it.  False, and nothing has changed: insert it in the general way.
 *
 * Within an epoch, in which the leaf stays where it is; nothing is locked on
 * entry or return.  "key" is the entry's.
 */
bool
euno_bpt_append(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
				const EunoEntry *entry, const BptKey *key)
{
	uint64_t	version;
	BptView		view;
	uint64_t	head;
	uint32_t	weight;

	if (!euno_lock_glance(&leaf->lock, &version) ||
		!bpt_view(leaf, &view) || view.format != BPT_FIXED ||
		!view.open || view.contended || view.count == 0 ||
		view.count != view.entries || view.count == view.cap ||
		entry->payloadlen > 0 ||
		key->len != view.prefix_len + view.suffix_len ||
		bpt_appends(tree, &view, view.count) ||
		bpt_compare_prefix(key, leaf, view.prefix_len) != 0)
		return false;
	head = bpt_key_word(key, view.prefix_len);

	/* Above an entry of the leaf it is above its low fence, too. */
	if (euno_load64(&view.heads[view.count - 1]) >= head ||
		!euno_lock_upgrade(&leaf->lock, version))
		return false;
	euno_store64((uint64_t *) &view.heads[view.count], head);
	if (view.tail_len > 0)
		euno_copy_in((uint8_t *) view.tails + view.count * view.tail_len,
					 key->bytes + view.prefix_len + 8, view.tail_len);
	euno_store16(&leaf->count, (uint16_t) (view.count + 1));
	euno_store16(&leaf->entries, (uint16_t) (view.count + 1));
	bpt_count(cx, tree, 1);
	if (cx->want_leaf)
		cx->leaf = leaf->number;
	euno_lock_release(&leaf->lock, cx->env);
	cx->counters.descents++;
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		euno_bpt_use_leaf(cx, tree, leaf, weight);
	return true;
}
