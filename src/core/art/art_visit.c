/*-------------------------------------------------------------------------
 *
 * art_visit.c
 *	  From one inner node to the next, in the order of their paths.
 *
 * The place between two visits is a bound, a byte string, never a node: it
 * stands for all nodes whose path is not below it.  Zeros at its end count: a
 * node's path is below the same path with another zero.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* The first child at or above "from" that is an inner node. */
static ArtRef
next_node(ArtNode *node, int from, int *byte)
{
	ArtRef		ref = euno_art_node_next(node, from, true, byte);

	while (ref != 0 && !art_is_node(ref))
		ref = euno_art_node_next(node, *byte + 1, true, byte);
	return ref;
}

/*
 * The first node at or above the bound, which becomes its path; *place is its
 * slot.  EUNO_OK; EUNO_NOT_FOUND: there is none; EUNO_STALE: try again, the
 * bound may have moved.  The epoch has been entered; nothing is locked.
 */
EunoStatus
euno_art_visit(EunoContext *cx, EunoTree *tree, ArtKey *at, ArtPlace *place)
{
	ArtBody    *body = art_body(tree);
	bool		free = false;

	place->where = ART_AT_LEAF;
	place->holder = NULL;
	place->lock = &body->root_lock;
	place->ref = euno_load64_acquire(&body->root);
	place->depth = 0;
	while (art_is_node(place->ref))
	{
		ArtNode    *node = art_pointer(place->ref);
		uint32_t	level = node->level;
		uint64_t	version;
		uint8_t		other;
		uint32_t	m = level;
		ArtRef		ref;
		int			byte = 0;

		if (!free)
			m = euno_art_path_mismatch(node, at, place->depth, &other);
		if (m < level && (m < at->len ? at->bytes[m] : 0) > other)
			return euno_art_key_after(at, place->depth) ? EUNO_STALE :
				EUNO_NOT_FOUND;
		if (free || m < level || level >= at->len)
		{
			euno_art_key_set(at, euno_art_path_copy(node, at->bytes));
			return EUNO_OK;
		}
		if (!euno_lock_read(&node->lock, &version, cx->env, &cx->counters))
			return EUNO_STALE;
		ref = next_node(node, at->bytes[level], &byte);
		if (!euno_lock_validate(&node->lock, version))
			return EUNO_STALE;
		if (ref == 0)
			return euno_art_key_after(at, level) ? EUNO_STALE : EUNO_NOT_FOUND;
		free = byte > at->bytes[level];
		if (free)
		{
			at->bytes[level] = (uint8_t) byte;
			euno_art_key_set(at, level + 1);
		}
		place->holder = node;
		place->lock = &node->lock;
		place->ref = ref;
		place->depth = level + 1;
	}
	return EUNO_NOT_FOUND;
}

/* Moves the bound past the node that was visited. */
void
euno_art_visit_past(ArtKey *at)
{
	euno_art_key_set(at, at->len + 1);
}
