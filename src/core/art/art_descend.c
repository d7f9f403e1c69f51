/*-------------------------------------------------------------------------
 *
 * art_descend.c
 *	  From the root to the place of a composite, for those that write.
 *
 * "The ART of Practical Synchronization", appendix B, with one difference: a
 * node's level and path never change, so a node that was linked when it was
 * found leads the right way as long as it is not obsolete, and its parent's
 * version does not have to be looked at again.  What the slot holds is looked
 * at again when it has been locked.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/*
 * What a node's slot for a byte holds; *found: it has one.  False if the node
 * is obsolete.  A node that others keep writing is locked after a while.
 */
static bool
read_slot(EunoContext *cx, ArtNode *node, uint8_t byte, ArtRef *ref,
		  bool *found)
{
	for (int attempt = 0;; attempt++)
	{
		bool		locked = attempt >= ART_PATIENCE;
		uint64_t	version = 0;
		ArtRef	   *slot;

		if (locked ? !euno_lock_acquire(&node->lock, cx->env, &cx->counters) :
			!euno_lock_read(&node->lock, &version, cx->env, &cx->counters))
			return false;
		slot = euno_art_node_slot(node, byte);
		*found = slot != NULL;
		*ref = slot != NULL ? euno_load64_acquire(slot) : 0;
		if (locked)
			euno_lock_release_unchanged(&node->lock, cx->env);
		if (locked || euno_lock_validate(&node->lock, version))
			return true;
		cx->counters.leaf_retries++;
	}
}

/*
 * Finds the slot where the composite belongs.  EUNO_OK or EUNO_CORRUPT.  The
 * epoch has been entered; nothing is locked.
 */
EunoStatus
euno_art_descend(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				 ArtPlace *place)
{
	ArtBody    *body = art_body(tree);

	cx->counters.descents++;
restart:
	place->holder = NULL;
	place->lock = &body->root_lock;
	place->ref = euno_load64_acquire(&body->root);
	place->depth = 0;
	while (art_is_node(place->ref))
	{
		ArtNode    *node = art_pointer(place->ref);
		uint32_t	level = node->level;
		ArtRef		ref;
		bool		found;

		if (level < place->depth)
			return EUNO_CORRUPT;
		place->mismatch = euno_art_path_mismatch(node, key, place->depth,
												 &place->other);
		if (place->mismatch < level)
		{
			place->where = ART_AT_PATH;
			return EUNO_OK;
		}
		if (level >= key->len)
			return EUNO_CORRUPT;	/* a composite is a prefix of another */
		if (!read_slot(cx, node, key->bytes[level], &ref, &found))
		{
			cx->counters.restarts++;
			goto restart;
		}
		if (!found)
		{
			place->where = ART_AT_GAP;
			return EUNO_OK;
		}
		place->holder = node;
		place->lock = &node->lock;
		place->ref = ref;
		place->depth = level + 1;
	}
	place->where = ART_AT_LEAF;
	return EUNO_OK;
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

	if (euno_lock_acquire(place->lock, cx->env, &cx->counters))
	{
		if (place->holder != NULL)
			slot = euno_art_node_slot(place->holder,
									  key->bytes[place->depth - 1]);
		if (slot != NULL && euno_load64(slot) == place->ref)
			return slot;
		euno_lock_release_unchanged(place->lock, cx->env);
	}
	cx->counters.restarts++;
	return NULL;
}

/*
 * The entry of an INLINE or SINGLE slot, dead or not.  False for other slots.
 * "key" is what led there; "other" takes the bytes.
 */
bool
euno_art_leaf_item(const ArtPlace *place, const ArtKey *key, ArtKey *other,
				   ArtItem *item)
{
	uint32_t	len;

	if (place->ref == 0)
		return false;
	if (art_tag(place->ref) == ART_INLINE)
	{
		uint32_t	over = art_inline_over(place->ref);

		len = place->depth > over ? place->depth - over : 0;
		memcpy(other->bytes, key->bytes, len);
		art_store_tid(other->bytes + len, place->ref >> ART_TID_SHIFT);
		len += EUNO_TID_BYTES;
	}
	else if (art_tag(place->ref) == ART_SINGLE)
	{
		len = art_single_len(place->ref);
		euno_copy_out(other->bytes, art_pointer(place->ref), len);
	}
	else
		return false;
	euno_art_key_set(other, len);
	euno_art_item_key(other, NULL, item);
	return true;
}
