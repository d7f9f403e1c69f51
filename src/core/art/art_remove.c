/*-------------------------------------------------------------------------
 *
 * art_remove.c
 *	  Looking for one entry, and taking it out.
 *
 * Removing allocates nothing and unlinks nothing, so that it cannot fail: the
 * leaf is marked.  What makes the node anew, an insert that needs room, compact,
 * or the remover itself when it has removed nearly all, leaves it out.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/*
 * The place of the entry, and of the node that it is in.  EUNO_OK: it is
 * there; EUNO_NOT_FOUND.
 */
static EunoStatus
look(EunoContext *cx, EunoTree *tree, const ArtKey *key, uint32_t attempts,
	 ArtPlace *place, ArtPlace *above)
{
	bool		rowex = art_body(tree)->rowex || attempts >= ART_PATIENCE;
	EunoStatus	status = euno_art_descend_two(cx, tree, key, rowex, place, above);
	ArtChild	leaf;
	ArtTail		tail;

	if (status != EUNO_OK)
		return status;
	if (place->where != ART_AT_LEAF || art_is_absent(place->ref))
		return EUNO_NOT_FOUND;
	leaf = art_child(place->ref, place->slot);
	if (!euno_art_leaf_tail(&leaf, place->depth, &tail))
		return EUNO_CORRUPT;
	return place->depth + tail.n == key->len &&
		euno_art_leaf_mismatch(&tail, place->depth, key) == key->len ?
		EUNO_OK : EUNO_NOT_FOUND;
}

/* Marks the leaf in a slot, which is locked, and unlocks it. */
static EunoStatus
mark(EunoContext *cx, EunoTree *tree, const ArtPlace *place, ArtRef *slot,
	 const EunoGuard *guard)
{
	if (!euno_guard_holds(guard))
	{
		euno_lock_release_unchanged(place->lock, cx->env);
		return EUNO_STALE;
	}
	euno_store64_release(slot, art_is_leaf(place->ref) ?
						 place->ref | ART_ABSENT : ART_GONE);
	art_count(cx, tree, -1, 0);
	cx->counters.removals++;
	euno_lock_release(place->lock, cx->env);
	return EUNO_OK;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				const EunoGuard *guard)
{
	EunoWish	wish = {.ops = &euno_art_olc_ops,.entry = entry,.removes = true,
	.guard = guard};
	EunoStatus	status;
	ArtPlace	place = {.depth = UINT32_MAX};
	ArtPlace	above;
	ArtKey		key;

	euno_art_key_entry(entry, &key);
	euno_epoch_enter(cx->process);
	for (uint32_t attempts = 0;; attempts++)
	{
		uint64_t	waits = cx->counters.lock_waits;

		if (art_may_be_crowded(cx, tree, attempts) &&
			euno_art_crowd(cx, tree, &key, attempts,
						   place.depth, &wish, &status))
			break;
		status = look(cx, tree, &key, attempts, &place, &above);
		if (status == EUNO_OK)
		{
			ArtRef	   *slot = euno_art_lock_slot(cx, tree, &key, &place);

			if (slot != NULL)
			{
				status = mark(cx, tree, &place, slot, guard);
				if (place.rowex && cx->counters.lock_waits > waits)
					euno_art_collide(cx, tree, &key, &place,
									 EUNO_CAUSE_LOCKED);
				if (status == EUNO_OK)
					euno_art_tidy(cx, tree, &key, &place, &above);
				break;
			}
			euno_art_collide(cx, tree, &key, &place, EUNO_CAUSE_CHANGED);
		}
		else if (status != EUNO_STALE)
			break;
		if (!art_try_again(cx, &status))
			break;
	}
	euno_epoch_exit(cx->process);
	return status;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	EunoStatus	status;
	ArtPlace	place;
	ArtPlace	above;
	ArtKey		key;

	euno_art_key_entry(entry, &key);
	euno_epoch_enter(cx->process);
	for (uint32_t attempts = 0;; attempts++)
	{
		status = look(cx, tree, &key, attempts, &place, &above);
		if (status != EUNO_STALE || !art_try_again(cx, &status))
			break;
	}
	euno_epoch_exit(cx->process);
	return status;
}
