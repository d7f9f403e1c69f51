/*-------------------------------------------------------------------------
 *
 * bpt_match.c
 *	  Looking up one key in COMPARE order, where equal keys are equal bytes.
 *
 * The comparator leads to the leaf.  There the key is found by the hash in the
 * slots' heads and by its bytes, and no comparator is asked.  Whatever is not as
 * simple as that (no entry, or one that is the leaf's last) is left to the
 * general read, from the start.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* What a leaf's header and heads take, mostly. */
#define MATCH_FETCH		1024

/* Has a head this hash?  "hash" is that of a key, where heads have it. */
static inline bool
is_hash(uint64_t head, uint64_t hash)
{
	return (head ^ hash) <= EUNO_TID_MAX;
}

/* Has slot i, whose hash is that of the key, the key? */
static inline bool
matches(BptView *view, uint32_t i, const EunoPosition *pos, BptSlot *slot)
{
	return euno_bpt_slot(view, i, slot) &&
		euno_bpt_is_key(slot->tail, slot->len, pos);
}

/* The first slot with the key; view->count if there is none. */
static uint32_t
find_key(BptView *view, const EunoPosition *pos, uint64_t hash, BptSlot *slot)
{
	const uint64_t *heads = view->heads;
	uint32_t	n = view->count;

	for (uint32_t i = 0; i < n; i++)
	{
		if (is_hash(euno_load64(&heads[i]), hash) &&
			matches(view, i, pos, slot))
			return i;
	}
	return n;
}

/* Adds the slot's TIDs to the batch.  False if not all fit. */
static bool
add_tids(BptView *view, uint32_t i, const BptSlot *slot, EunoBatch *batch)
{
	EunoTid		tids[BPT_LIST_MAX];
	uint32_t	n;

	if (slot->ntids == 1 && batch->nitems < batch->max_items)
	{
		batch->tids[batch->nitems++] = euno_bpt_first_tid(view, i);
		return true;
	}
	n = euno_bpt_slot_tids(view, i, tids);
	if (n > batch->max_items - batch->nitems)
		return false;
	memcpy(batch->tids + batch->nitems, tids, n * sizeof(EunoTid));
	batch->nitems += n;
	return true;
}

/*
 * Adds all entries with the key to the batch.  False if the leaf does not show
 * that these are all: the descent has seen that none is left of it, and what
 * comes after the last of them in the leaf shows that none is right of it.
 */
static bool
match_leaf(BptView *view, const BptLeaf *right, const EunoPosition *pos,
		   BptJudge judge, EunoBatch *batch)
{
	uint64_t	hash = bpt_opaque_head(0, pos->key, pos->keylen);
	BptSlot		slot;
	uint32_t	i = find_key(view, pos, hash, &slot);

	if (i == view->count || (i == 0 && judge == BPT_APPROXIMATION))
		return false;
	do
	{
		if ((batch->want_keys && slot.payload_len > 0) ||
			!add_tids(view, i, &slot, batch))
			return false;
		i++;
	} while (i < view->count && is_hash(euno_load64(&view->heads[i]), hash) &&
			 matches(view, i, pos, &slot));
	return i < view->count || right == NULL || !euno_bpt_is_fence(right, pos);
}

/* What match_leaf says of a leaf, if it can be believed. */
static bool
read_leaf(EunoContext *cx, BptLeaf *leaf, const EunoPosition *pos,
		  BptJudge judge, EunoBatch *batch)
{
	BptLeaf    *right;
	uint64_t	version;
	BptView		view;

	for (uint32_t at = 0; at < MATCH_FETCH; at += 64)
		euno_prefetch((const uint8_t *) leaf + at);
	if (!euno_lock_read_or_leave(&leaf->lock, &version, cx->env,
								 &cx->counters) ||
		!bpt_view(leaf, &view) || view.format != BPT_OPAQUE)
		return false;
	right = euno_load_ptr_acquire(&leaf->right);
	return match_leaf(&view, right, pos, judge, batch) && !view.torn &&
		euno_lock_validate(&leaf->lock, version);
}

/*
 * Reads all entries with a key, the cursor's lo and hi, into the batch, if
 * that is possible the short way.  False if not: nothing has happened then.
 * No locks on entry or return.
 */
bool
euno_bpt_match_key(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
				   EunoBatch *batch)
{
	const EunoPosition *pos = &cursor->lo;
	uint32_t	weight;
	BptPlace	place;
	BptLeaf    *leaf;
	BptKey		key;
	bool		done;
	BptJudge	judge = bpt_approximates(cx) ? BPT_APPROXIMATION :
		BPT_COMPARATOR;

	if (batch->want_keys && pos->keylen > batch->buf_size)
		return false;
	euno_bpt_key_position(tree, pos, &key);
	bpt_place_init(&place, NULL);
	euno_epoch_enter(cx->process);
	leaf = euno_bpt_descend_opaque(cx, tree, &key, false, judge, &place);
	done = leaf != NULL && read_leaf(cx, leaf, pos, judge, batch);
	weight = euno_sample_weight(cx, tree);
	if (weight > 0 && done)
		euno_bpt_use_leaf(cx, tree, leaf, weight);
	euno_epoch_exit(cx->process);
	if (!done)
	{
		batch->nitems = 0;
		return false;
	}
	if (judge == BPT_APPROXIMATION && cx->doubts > 0)
		cx->doubts--;
	if (batch->want_keys)
		euno_bpt_one_key(batch, pos->key, pos->keylen);
	cx->counters.descents++;
	cursor->started = cursor->at_lo = cursor->at_hi = true;
	return true;
}
