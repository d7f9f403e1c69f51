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

/* Slots to look at, one by one, on either side of the guess. */
#define POINT_STEPS		24

/*
 * FIXED: the first slot whose head is not below h, searched one by one from
 * where it should be; false if h is not within the leaf.
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
	*slot = steps > 0 ? at : euno_bpt_lower_head(view, h);
	return true;
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

/* FIXED: has slot i the head h and a tail below the key's? */
static inline bool
is_below(const BptView *view, uint32_t i, const BptKey *key, uint32_t at,
		 uint64_t h)
{
	return euno_load64(&view->heads[i]) == h &&
		compare_rest(view, i, key, at) > 0;
}

/*
 * FIXED: the first slot from i on that is not below the key, by doubling steps
 * and halving: where heads are equal, often many are.  No head from i on is
 * below h.
 */
static uint32_t
skip_below(const BptView *view, uint32_t i, const BptKey *key, uint32_t at,
		   uint64_t h)
{
	uint32_t	lo = i;
	uint32_t	hi = i;
	uint32_t	step = 1;

	while (hi < view->count && is_below(view, hi, key, at, h))
	{
		lo = hi + 1;
		hi += step;
		step *= 2;
	}
	if (hi > view->count)
		hi = view->count;
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (is_below(view, mid, key, at, h))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The entries of a leaf that start with the key, to the batch.  False if the
 * leaf does not tell whether these are all, or their keys are longer and wanted.
 */
static inline bool
point_leaf(BptView *view, const BptLeaf *right, const BptKey *key,
		   EunoBatch *batch)
{
	uint32_t	plen = view->prefix_len;
	uint32_t	at = plen + 8;
	uint32_t	shift;
	uint32_t	i;
	uint64_t	h;

	if (view->format != BPT_FIXED || view->open || key->len <= plen ||
		view->suffix_len < key->len - plen ||
		euno_bpt_compare_prefix(key, view->leaf, plen) != 0)
		return false;
	if (batch->want_keys &&
		view->suffix_len != key->len - plen + EUNO_TID_BYTES)
		return false;
	h = bpt_key_word(key, plen);
	shift = key->len < at ? 8 * (at - key->len) : 0;
	if (!near_head(view, h, &i))
		return false;

	/* All that starts with the key is below the high fence. */
	if (right != NULL &&
		euno_load64(&view->leaf->high_hint) >> shift <= h >> shift)
		return false;
	if (key->len > at)
		i = skip_below(view, i, key, at, h);
	for (; i < view->count; i = bpt_next_slot(view, i))
	{
		if ((euno_load64(&view->heads[i]) ^ h) >> shift != 0 ||
			(key->len > at && compare_rest(view, i, key, at) != 0))
			break;
		if (batch->nitems >= batch->max_items)
			return false;
		batch->tids[batch->nitems++] =
			euno_bpt_suffix_tid(view, euno_load64(&view->heads[i]),
								view->tails + (size_t) i * view->tail_len,
								view->suffix_len);
	}
	return true;
}

/* The items' keys: all are the one that was searched for. */
static void
point_keys(const BptKey *key, EunoBatch *batch)
{
	EunoItemKey item = {.keylen = (uint16_t) key->len};

	memcpy(batch->buf, key->bytes, key->len);
	for (uint32_t i = 0; i < batch->nitems; i++)
		batch->keys[i] = item;
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

	euno_bpt_key_position(tree, &cursor->lo, &key);
	euno_epoch_enter(cx->process);
	leaf = euno_bpt_descend_bytes(cx, tree, &key, false);
	if (leaf != NULL &&
		euno_lock_read(&leaf->lock, &version, cx->env, &cx->counters) &&
		bpt_view(leaf, &view))
	{
		right = euno_load_ptr_acquire(&leaf->right);
		done = point_leaf(&view, right, &key, batch) && !view.torn &&
			(!view.scattered || euno_bpt_scatter_point(cx, leaf, &key, batch)) &&
			euno_lock_validate(&leaf->lock, version);
	}
	euno_epoch_exit(cx->process);
	if (!done)
	{
		batch->nitems = 0;
		return false;
	}
	if (batch->want_keys)
		point_keys(&key, batch);
	cx->counters.descents++;
	cursor->started = cursor->at_lo = cursor->at_hi = true;
	return true;
}
