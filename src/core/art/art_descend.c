/*-------------------------------------------------------------------------
 *
 * art_descend.c
 *	  From the root to the place of a composite.
 *
 * OLC: "The ART of Practical Synchronization", figure 3 and appendix B.  A
 * node's version is taken, then its parent's is looked at again; what was read
 * in a node is believed, and a pointer followed, when its version has been
 * looked at again.
 *
 * ROWEX: section 4.  No versions.  Every slot holds at every moment something
 * that was right to find there, and a node's level and path never change.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

static inline EunoStatus
descend(EunoContext *cx, EunoTree *tree, const ArtKey *key, bool rowex,
		bool prefix, ArtPlace *place)
{
	ArtBody    *body = art_body(tree);
	ArtNode    *holder = NULL;
	EunoLock   *lock = &body->root_lock;
	uint64_t	version = 0;
	uint64_t	node_version = 0;
	uint32_t	depth = 0;
	uint32_t	level;
	ArtRef		ref;

	cx->counters.descents++;
	place->rowex = rowex;
	place->where = ART_AT_LEAF;
	if (!rowex && !euno_lock_read(lock, &version, cx->env, &cx->counters))
		return EUNO_CORRUPT;
	ref = euno_load64_acquire(&body->root);
	if (!rowex && !euno_lock_validate(lock, version))
		return EUNO_STALE;
	for (; art_is_node(ref); depth = level + 1)
	{
		ArtNode    *node = art_pointer(ref);
		ArtRef	   *slot;
		ArtRef		child;

		level = art_ref_level(ref);
		if (level < depth)
			return EUNO_CORRUPT;
		if (!rowex &&
			(!euno_lock_read(&node->lock, &node_version, cx->env,
							 &cx->counters) ||
			 !euno_lock_validate(lock, version)))
			return EUNO_STALE;
		place->mismatch = art_path_match(node, key, depth);
		if (place->mismatch < level || level >= key->len)
		{
			place->where = ART_AT_PATH;
			if (place->mismatch < key->len)
				break;
			if (!prefix)
				return EUNO_CORRUPT;	/* a prefix of another composite */
			place->where = ART_AT_TREE;
			break;
		}
		slot = art_slot(node, art_ref_type(ref), key->bytes[level], &child);
		if (!rowex && !euno_lock_validate(&node->lock, node_version))
			return EUNO_STALE;
		if (slot == NULL)
		{
			place->where = ART_AT_GAP;
			break;
		}
		holder = node;
		lock = &node->lock;
		version = node_version;
		ref = child;
	}
	place->holder = holder;
	place->lock = lock;
	place->version = version;
	place->node_version = node_version;
	place->ref = ref;
	place->depth = depth;
	return EUNO_OK;
}

/*
 * Finds the slot where the composite belongs.  EUNO_OK; EUNO_STALE (never with
 * "rowex"): start again; EUNO_CORRUPT.  The epoch has been entered; nothing is
 * locked.
 */
EunoStatus
euno_art_descend(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				 bool rowex, ArtPlace *place)
{
	return rowex ? descend(cx, tree, key, true, false, place) :
		descend(cx, tree, key, false, false, place);
}

/*
 * Finds the slot that all composites are below that start with "prefix":
 * ART_AT_TREE, or ART_AT_LEAF with a leaf that may be one of them.  Otherwise as
 * euno_art_descend.
 */
EunoStatus
euno_art_find(EunoContext *cx, EunoTree *tree, const ArtKey *prefix,
			  bool rowex, ArtPlace *place)
{
	return rowex ? descend(cx, tree, prefix, true, true, place) :
		descend(cx, tree, prefix, false, true, place);
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
