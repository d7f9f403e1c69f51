/*-------------------------------------------------------------------------
 *
 * bpt_point.c
 *	  Looking up one key: the short way.
 *
 * Most reads ask for all entries that start with one key, and find them in one
 * FIXED leaf.  What is here is that case and nothing else, in few
 * instructions and, thanks to the prefetch of the descent, hardly more than
 * one wait for memory.  Whatever is not like that, a leaf that is being written
 * among it, is left to the general read, from the start.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Slots to look at on either side of the guess. */
#define POINT_STEPS		24

/*
 * FIXED: the first slot whose head is not below h, searched one by one from
 * where it should be; false if it is not near.
 */
static inline bool
near_head(const BptView *view, uint64_t h, uint32_t *slot)
{
	const uint64_t *heads = view->heads;
	uint64_t	low = euno_load64(&view->leaf->low_hint);
	uint64_t	high = euno_load64(&view->leaf->high_hint);
	uint32_t	count = view->count;
	uint32_t	steps = POINT_STEPS;
	uint32_t	at;

	if (count == 0 || h <= low || h >= high)
		return false;
	at = bpt_guess(h, low, high, count);
	if (euno_load64(&heads[at]) < h)
	{
		do
			at++;
		while (--steps > 0 && at < count && euno_load64(&heads[at]) < h);
	}
	else
	{
		while (at > 0 && --steps > 0 && euno_load64(&heads[at - 1]) >= h)
			at--;
	}
	*slot = at;
	return steps > 0;
}

/*
 * FIXED: the sign of (key) - (slot i, as far as the key goes); the heads are
 * equal, and the tails begin "at" in the key.
 */
static inline int
compare_rest(const BptView *view, uint32_t i, const BptKey *key, uint32_t at)
{
	const uint8_t *tail = view->tails + (size_t) i * view->tail_len;
	uint32_t	n = key->len - at;

	if (n <= 8)
	{
		uint64_t	mine = bpt_key_word(key, at) >> (64 - 8 * n);
		uint64_t	its = euno_load_be(tail, n);

		return mine < its ? -1 : mine > its;
	}
	return euno_bpt_compare_rest(key, at, tail, n);
}

/*
 * The TIDs of the entries of a leaf that start with the key, to the batch.
 * False if the leaf does not tell whether these are all.
 */
static inline bool
point_leaf(BptView *view, const BptLeaf *right, const BptKey *key,
		   EunoBatch *batch)
{
	uint32_t	plen = view->prefix_len;
	uint32_t	at = plen + 8;
	uint32_t	skipped = 0;
	uint32_t	shift;
	uint32_t	i;
	uint64_t	h;

	if (view->format != BPT_FIXED || view->open || key->len <= plen ||
		view->suffix_len < key->len - plen ||
		euno_bpt_compare_prefix(key, view->leaf, plen) != 0)
		return false;
	h = bpt_key_word(key, plen);
	shift = key->len < at ? 8 * (at - key->len) : 0;
	if (!near_head(view, h, &i))
		return false;

	/* All that starts with the key is below the high fence. */
	if (right != NULL &&
		euno_load64(&view->leaf->high_hint) >> shift <= h >> shift)
		return false;
	for (; i < view->count; i = bpt_next_slot(view, i))
	{
		if ((euno_load64(&view->heads[i]) ^ h) >> shift != 0)
			break;
		if (key->len > at)
		{
			int			c = compare_rest(view, i, key, at);

			if (c > 0 && ++skipped > POINT_STEPS)
				return false;
			if (c > 0)
				continue;
			if (c < 0)
				break;
		}
		if (batch->nitems >= batch->max_items)
			return false;
		batch->tids[batch->nitems++] =
			euno_bpt_suffix_tid(view, euno_load64(&view->heads[i]),
								view->tails + (size_t) i * view->tail_len,
								view->suffix_len);
	}
	return true;
}

/*
 * Reads all entries that start with a key, the cursor's lo and hi, into the
 * batch, if that is possible the short way.  False if not: nothing has happened
 * then.  No locks on entry or return.
 */
bool
euno_bpt_read_key(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
				  EunoBatch *batch)
{
	BptLeaf    *leaf;
	BptLeaf    *right;
	uint64_t	version;
	bool		done = false;
	BptView		view;
	BptKey		key;

	if (batch->want_keys)
		return false;
	euno_bpt_key_position(tree, &cursor->lo, &key);
	euno_epoch_enter(cx->process);
	leaf = euno_bpt_descend_bytes(cx, tree, &key, false);
	if (leaf != NULL &&
		euno_lock_read(&leaf->lock, &version, cx->env, &cx->counters) &&
		bpt_view(leaf, &view))
	{
		right = euno_load_ptr_acquire(&leaf->right);
		done = point_leaf(&view, right, &key, batch) && !view.torn &&
			euno_lock_validate(&leaf->lock, version);
	}
	euno_epoch_exit(cx->process);
	if (!done)
	{
		batch->nitems = 0;
		return false;
	}
	cx->counters.descents++;
	cursor->started = cursor->at_lo = cursor->at_hi = true;
	return true;
}
