/*-------------------------------------------------------------------------
 *
 * bpt_heat.c
 *	  Conflicts at leaves, and the leaves that they are about (euno_heat.h).
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"
#include "core/bptree/bpt_annex.h"

/*
 * Leaves to go right from where a key leads, in search of the leaf it was in.
 */
#define HEAT_HOPS		8

/* Notes something of a leaf. */
static void
note(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
	 const EunoPosition *pos, EunoCause cause)
{
	uint32_t	part_at = euno_load32(&bpt_body(tree)->part_at);
	EunoHeatPlace place = {.number = leaf->number,
	.state = (uint8_t) euno_load64(&leaf->seqno)};
	uint32_t	apart = euno_heat_note(cx, tree, &bpt_body(tree)->heat, &place,
									   pos, cause);

	if (part_at > 0 && apart >= part_at)
		cx->part_leaf = leaf->number;
}

/*
 * Shall the leaf of this number be parted?  If so, not again before there have
 * been as many conflicts once more.
 */
bool
euno_bpt_shall_part(EunoContext *cx, EunoTree *tree, uint32_t leaf)
{
	uint32_t	part_at = euno_load32(&bpt_body(tree)->part_at);

	return part_at > 0 &&
		euno_heat_take_apart(cx, &bpt_body(tree)->heat, leaf, part_at);
}

/*
 * An operation on a key has met a conflict at a leaf.  To be called within the
 * epoch in which the leaf was reached, with no node locked.
 */
void
euno_bpt_conflict(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
				  const BptKey *key, EunoCause cause)
{
	cx->counters.conflicts[cause]++;
	if (euno_heat_is_due(cx))
		note(cx, tree, leaf, key->pos, cause);
}

/*
 * A write to a leaf has been performed by somebody else: but for that, it
 * would have been a conflict.  As euno_bpt_conflict.
 */
void
euno_bpt_delegated(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
				   const BptKey *key)
{
	if (euno_heat_is_due(cx))
		note(cx, tree, leaf, key->pos, EUNO_CAUSE_DELEGATED);
}

/*
 * A contended leaf was written to: writers hardly meet there, which does not
 * mean that they would not if it were calm.  As euno_bpt_conflict.  (Counters
 * are cleared after each transaction, which may write once: not by them.)
 */
void
euno_bpt_contended_write(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
						 const BptKey *key)
{
	cx->counters.contended++;
	if (euno_heat_is_due(cx))
		note(cx, tree, leaf, key->pos, EUNO_CAUSE_NONE);
}

/* See EunoTreeOps.  No locks on entry or return. */
uint32_t
euno_bpt_heat(EunoContext *cx, EunoTree *tree, bool round, EunoHeat *to,
			  uint32_t max)
{
	return euno_heat_read(cx, &bpt_body(tree)->heat, round, to, max);
}

/*
 * The leaf that *heat is about: the one that has its key, or, if the key is
 * cut, the one of its number a little to the right of there.  Copied to
 * place->image.  EUNO_OK, EUNO_NOT_FOUND, EUNO_STALE, EUNO_CORRUPT or
 * EUNO_CANCELED.  To be called within an epoch.
 */
static EunoStatus
find_leaf(EunoContext *cx, EunoTree *tree, const EunoHeat *heat,
		  const BptKey *key, BptPlace *place)
{
	EunoStatus	status = euno_bpt_seek(cx, tree, key, false, place);

	for (int hops = 0; status == EUNO_OK; hops++)
	{
		BptLeaf    *leaf = place->leaf;

		if (!heat->cut || leaf->number == heat->leaf)
			return euno_bpt_copy(place);
		leaf = euno_load_ptr_acquire(&leaf->right);
		status = euno_bpt_valid(place);
		if (status != EUNO_OK)
			return status;
		if (leaf == NULL || hops == HEAT_HOPS)
			break;
		place->leaf = leaf;
		place->copied = place->found = false;
		if (!euno_lock_read_or_leave(&leaf->lock, &place->version, cx->env,
									 &cx->counters))
			return euno_is_canceled(cx->env) ? EUNO_CANCELED : EUNO_STALE;
	}
	return status == EUNO_OK ? EUNO_NOT_FOUND : status;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_bpt_leaf(EunoContext *cx, EunoTree *tree, const EunoHeat *heat,
			  EunoLeafInfo *info)
{
	EunoPosition pos = {.key = heat->key, .keylen = heat->keylen,
	.side = heat->cut ? -1 : 0, .tid = heat->tid};
	EunoTid		annex[BPT_ANNEX_SLOTS];
	uint32_t	annexed;
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;

	/* A comparator cannot read a row that has been cut. */
	if (heat->cut && bpt_is_opaque(tree))
		return EUNO_NOT_FOUND;
	euno_bpt_key_position(tree, &pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	do
	{
		status = find_leaf(cx, tree, heat, &key, &place);
	} while (status == EUNO_STALE);
	if (status == EUNO_OK &&
		!euno_bpt_annex_tids(cx, place.leaf, true, annex, &annexed))
		status = EUNO_CANCELED;
	if (status == EUNO_OK)
	{
		info->number = image.leaf.number;
		info->entries = annexed +
			(place.view.format == BPT_FIXED ? place.view.entries :
			 image.leaf.ntids);
		info->domain = (int) image.leaf.limbo.domain;
		info->mode = place.view.contended ? "contended" :
			euno_heat_is_delegated(heat) ? "delegated" : "calm";
		info->parted = image.leaf.parted != 0;
		info->has_low = image.leaf.has_low != 0;
		info->has_high = image.leaf.right != NULL;
		if (info->has_low)
			euno_bpt_fence_position(tree, place.leaf, &info->low);
		if (info->has_high)
			euno_bpt_fence_position(tree, image.leaf.right, &info->high);
	}
	euno_epoch_exit(cx->process);
	return status;
}
