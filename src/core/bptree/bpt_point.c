/*-------------------------------------------------------------------------
 *
 * bpt_point.c
 *	  Looking up one key: the short way.
 *
 * Most reads ask for all entries that start with one key, and find them in one
 * leaf.  What is here is that case in BYTES order and nothing else, in few
 * instructions and, thanks to the prefetch of the descent, hardly more than
 * one wait for memory.  Whatever is not like that, a leaf that is written to
 * while it is read among it, is left to the general read, from the start.
 *
 * Several keys are looked up at once by going down with all of them level by
 * level ("group prefetching" of Chen et al., ICDE 2004, on a tree).
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Slots to look at, one by one, on either side of the guess. */
#define POINT_STEPS		24

/*
 * The first slot whose head is not below h, searched one by one from where it
 * should be; false if h is not within the leaf.
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
	at = bpt_guess(view->alphabet, h, low, high, count);
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
 * The sign of (key) - (slot i, as far as the key goes); the heads are equal,
 * and the tails begin "at" in the key.
 */
static inline int
compare_rest(BptView *view, uint32_t i, const BptKey *key, uint32_t at)
{
	const uint8_t *tail = view->tails + (size_t) i * view->tail_len;
	uint32_t	n = key->len - at;
	BptSlot		slot;

	if (view->format == BPT_SLOTTED)
	{
		if (!euno_bpt_slot(view, i, &slot))
			return 0;
		return euno_bpt_compare_rest(key, at, slot.tail,
									 n < slot.tail_len ? n : slot.tail_len);
	}
	if (n <= 8)
	{
		uint64_t	mine = bpt_key_word(key, at) >> (64 - 8 * n);
		uint64_t	its = euno_load_be(tail, n);

		return mine < its ? -1 : mine > its;
	}
	return euno_bpt_compare_rest(key, at, tail, n);
}

/* Has slot i the head h and a tail below the key's? */
static inline bool
is_below(BptView *view, uint32_t i, const BptKey *key, uint32_t at, uint64_t h)
{
	return euno_load64(&view->heads[i]) == h &&
		compare_rest(view, i, key, at) > 0;
}

/*
 * The first slot from i on that is not below the key, by doubling steps and
 * halving: where heads are equal, often many are.  No head from i on is below
 * h.
 */
static uint32_t
skip_below(BptView *view, uint32_t i, const BptKey *key, uint32_t at,
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

/* SLOTTED: adds slot i, which starts with the key, to the batch. */
static inline bool
add_record(BptView *view, uint32_t i, const BptKey *key, EunoBatch *batch)
{
	uint32_t	rest = key->len - view->prefix_len + EUNO_TID_BYTES;
	EunoTid		tids[BPT_LIST_MAX];
	BptSlot		slot;
	uint32_t	n;

	/* The general read knows about keys that the zeros behind them hide. */
	if (!euno_bpt_slot(view, i, &slot) || slot.len < rest)
		return false;
	if (batch->want_keys && (slot.len != rest || slot.payload_len > 0))
		return false;
	if (slot.ntids == 1 && batch->nitems < batch->max_items)
	{
		batch->tids[batch->nitems++] =
			euno_bpt_suffix_tid(view, euno_load64(&view->heads[i]), slot.tail,
								slot.len);
		return true;
	}
	n = euno_bpt_tids(view, i, &slot, tids);
	if (n > batch->max_items - batch->nitems)
		return false;
	memcpy(batch->tids + batch->nitems, tids, n * sizeof(EunoTid));
	batch->nitems += n;
	return true;
}

/* FIXED: the same. */
static inline bool
add_slot(BptView *view, uint32_t i, EunoBatch *batch)
{
	if (batch->nitems >= batch->max_items)
		return false;
	batch->tids[batch->nitems++] =
		euno_bpt_suffix_tid(view, euno_load64(&view->heads[i]),
							view->tails + (size_t) i * view->tail_len,
							view->suffix_len);
	return true;
}

/*
 * The entries of a leaf that start with the key, to the batch.  False if the
 * leaf does not tell whether these are all, or their keys are longer and
 * wanted.
 */
static inline bool
point_leaf(BptView *view, const BptLeaf *right, const BptKey *key,
		   EunoBatch *batch)
{
	uint32_t	plen = view->prefix_len;
	uint32_t	at = plen + 8;
	bool		fixed = view->format == BPT_FIXED;
	uint32_t	shift;
	uint32_t	i;
	uint64_t	h;

	if (view->format == BPT_OPAQUE || view->open || key->len <= plen ||
		bpt_compare_prefix(key, view->leaf, plen) != 0)
		return false;
	if (fixed && (view->suffix_len < key->len - plen ||
				  (batch->want_keys &&
				   view->suffix_len != key->len - plen + EUNO_TID_BYTES)))
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
		if (!(fixed ? add_slot(view, i, batch) : add_record(view, i, key, batch)))
			return false;
	}
	return true;
}

/*
 * Reads one leaf that was found for the key in this epoch, after the items
 * that the batch has; keys go to *used.  False if this cannot be done the
 * short way: nothing has happened then.
 */
static inline bool
point_read(EunoContext *cx, BptLeaf *leaf, const BptKey *key, EunoBatch *batch,
		   uint32_t *used)
{
	uint32_t	first = batch->nitems;
	EunoItemKey item = {.offset = *used,.keylen = (uint16_t) key->len};
	BptLeaf    *right;
	uint64_t	version;
	BptView		view;

	if (batch->want_keys && *used + key->len > batch->buf_size)
		return false;
	if (!euno_lock_read_or_leave(&leaf->lock, &version, cx->env,
								 &cx->counters) ||
		!bpt_view(leaf, &view))
		return false;
	right = euno_load_ptr_acquire(&leaf->right);
	if (!point_leaf(&view, right, key, batch) || view.torn ||
		(view.contended &&
		 (first > 0 || !euno_bpt_annex_point(cx, leaf, key, batch))) ||
		!euno_lock_validate(&leaf->lock, version))
	{
		batch->nitems = first;
		return false;
	}
	if (batch->want_keys && batch->nitems > first)
	{
		/* All items have the key that was searched for. */
		memcpy(batch->buf + item.offset, key->bytes, key->len);
		*used += euno_align8(key->len);
		for (uint32_t i = first; i < batch->nitems; i++)
			batch->keys[i] = item;
	}
	return true;
}

/*
 * Reads all entries that start with a key, the cursor's lo and hi, into the
 * batch, if that is possible the short way.  False if not: nothing has
 * happened then.  No locks on entry or return.
 */
bool
euno_bpt_read_key(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
				  EunoBatch *batch)
{
	BptLeaf    *leaf;
	uint32_t	used = 0;
	uint32_t	weight;
	bool		done;
	BptKey		key;

	euno_bpt_key_position(tree, &cursor->lo, &key);
	euno_epoch_enter(cx->process);
	leaf = euno_bpt_descend_bytes(cx, tree, &key, false, 0);
	done = leaf != NULL && point_read(cx, leaf, &key, batch, &used);
	weight = euno_sample_weight(cx, tree);
	if (weight > 0 && done)
		euno_bpt_use_leaf(cx, tree, leaf, weight);
	euno_epoch_exit(cx->process);
	if (!done)
		return false;
	cx->counters.descents++;
	cursor->started = cursor->at_lo = cursor->at_hi = true;
	return true;
}

/*
 * See EunoTreeOps.  A leaf that was split after it was found does not cover
 * the key any more, and says so; one that was merged is obsolete.
 */
uint32_t
euno_bpt_read_keys(EunoContext *cx, EunoTree *tree,
				   const EunoPosition *positions, uint32_t n,
				   EunoBatch *batch, uint32_t *ends)
{
	BptKey		keys[EUNO_KEYS_MAX];
	BptLeaf    *leaves[EUNO_KEYS_MAX];
	uint32_t	used = 0;
	uint32_t	i;

	batch->nitems = 0;
	for (i = 0; i < n; i++)
		euno_bpt_key_position(tree, &positions[i], &keys[i]);
	euno_epoch_enter(cx->process);
	euno_bpt_descend_keys(cx, tree, keys, n, leaves);
	for (i = 0; i < n; i++)
	{
		if (leaves[i] == NULL ||
			!point_read(cx, leaves[i], &keys[i], batch, &used))
			break;
		ends[i] = batch->nitems;
	}
	euno_epoch_exit(cx->process);
	return i;
}
