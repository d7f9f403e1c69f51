/*-------------------------------------------------------------------------
 *
 * art_descend.c
 *	  From the root to the place of a composite, and locking it.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/*
 * A lock word that is LOCKED or OBSOLETE was read on the way to a key: waits,
 * and returns the word seen then.  See euno_art_conflict.
 */
uint64_t
euno_art_wait(EunoContext *cx, EunoTree *tree, EunoLock *lock,
			  const ArtKey *key, uint32_t level, const ArtNode *node)
{
	uint64_t	version;

	(void) art_read_lock(cx, tree, lock, &version, key, ART_ENTRY, level, node);
	return version;
}

/*
 * Finds the slot where the composite belongs.  EUNO_OK; EUNO_STALE (never with
 * "rowex"): start again; EUNO_CORRUPT.  The epoch has been entered; nothing is
 * locked.  "from_root": the slot's holder must be known, wherever that is.
 */
EunoStatus __attribute__((flatten))
euno_art_descend(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				 bool rowex, bool from_root, ArtPlace *place)
{
	return art_descend(cx, tree, key, rowex, false, from_root, place, NULL);
}

/*
 * The same, and finds the slot of the slot's holder: art_descend.
 */
EunoStatus
euno_art_descend_two(EunoContext *cx, EunoTree *tree, const ArtKey *key,
					 bool rowex, ArtPlace *place, ArtPlace *above)
{
	above->version = 0;
	above->rowex = true;
	return art_descend(cx, tree, key, rowex, false, false, place, above);
}

/*
 * Finds the slot that all composites are below that start with the key:
 * ART_AT_TREE if it holds an inner node.  As with "rowex".
 */
EunoStatus
euno_art_descend_to(EunoContext *cx, EunoTree *tree, const ArtKey *key,
					ArtPlace *place)
{
	return art_descend(cx, tree, key, true, true, false, place, NULL);
}

/*
 * Locks the slot's holder.  NULL, and nothing is locked, if the slot does not
 * hold any more what it held.  Locks are taken from the root downward.
 */
ArtRef *
euno_art_lock_slot(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				   const ArtPlace *place)
{
	ArtRef	   *slot = &art_body(tree)->root;
	ArtRef		ref;

	if (art_lock(cx, place->lock, place->version, place->rowex))
	{
		if (!place->rowex)
			return place->slot; /* at this version it holds the same */
		if (place->holder != NULL)
			slot = art_slot(place->holder, art_type(place->holder),
							key->bytes[place->depth - 1], &ref);
		if (slot != NULL && euno_load64(slot) == place->ref)
			return slot;
		euno_lock_release_unchanged(place->lock, cx->env);
	}
	return NULL;
}

/* Locks the slot's node.  False, and it is not locked: look again. */
bool
euno_art_lock_node(EunoContext *cx, const ArtPlace *place)
{
	ArtNode    *node = art_pointer(place->ref);

	return art_lock(cx, &node->lock, place->node_version, place->rowex);
}
