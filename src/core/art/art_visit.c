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
#include "core/art/art_search.h"

/* The first child at or above "from" that is an inner node; 0 if none. */
static ArtRef
next_node(ArtNode *node, uint32_t from, uint32_t *byte, ArtRef **slot)
{
	const uint32_t words = euno_art_layouts[art_type(node)].words;
	uint8_t		places[256];
	uint64_t	map[4];

	euno_art_node_map(node, map, places);
	map[from / 64] &= UINT64_MAX << from % 64;
	for (uint32_t i = from / 64; i < 4; i++)
	{
		for (uint64_t bits = map[i]; bits != 0; bits &= bits - 1)
		{
			uint32_t	b = 64 * i + (uint32_t) __builtin_ctzll(bits);
			ArtRef		ref;

			*slot = art_children(node) + places[b] * words;
			ref = euno_load64_acquire(*slot);
			*byte = b;
			if (art_is_node(ref))
				return ref;
		}
	}
	return 0;
}

/*
 * The first node at or above the bound, which becomes its path; *place is its
 * slot, as for ROWEX.  EUNO_OK; EUNO_NOT_FOUND: there is none, *place is the
 * last slot looked at; EUNO_STALE: try again, the bound has moved.  The epoch
 * has been entered; nothing is locked.
 */
EunoStatus
euno_art_visit(EunoContext *cx, EunoTree *tree, ArtKey *at, ArtPlace *place)
{
	ArtBody    *body = art_body(tree);
	bool		free = false;

	place->where = ART_AT_LEAF;
	place->rowex = true;
	place->holder = NULL;
	place->slot = &body->root;
	place->lock = &body->root_lock;
	place->ref = euno_load64_acquire(&body->root);
	place->depth = 0;
	cx->counters.descents++;
	while (art_is_node(place->ref))
	{
		ArtNode    *node = art_pointer(place->ref);
		uint32_t	level = art_level(node);
		uint32_t	m = level;
		uint32_t	byte = 0;
		ArtRef	   *slot;
		ArtRef		ref;
		uint8_t		path[ART_MAX_COMPOSITE];

		if (!art_is_sound(place->ref, place->depth))
			return EUNO_CORRUPT;
		euno_art_path_copy(node, place->depth, path);
		if (!free)
		{
			for (m = place->depth; m < level && m < at->len; m++)
			{
				if (path[m] != at->bytes[m])
					break;
			}
		}
		if (m < level && m < at->len && at->bytes[m] > path[m])
			return euno_art_key_after(at, place->depth) ? EUNO_STALE :
				EUNO_NOT_FOUND;
		if (free || m < level || level >= at->len)
		{
			memcpy(at->bytes + place->depth, path + place->depth,
				   level - place->depth);
			euno_art_key_set(at, level);
			return EUNO_OK;
		}
		ref = next_node(node, at->bytes[level], &byte, &slot);
		if (ref == 0)
			return euno_art_key_after(at, level) ? EUNO_STALE : EUNO_NOT_FOUND;
		free = byte > at->bytes[level];
		if (free)
		{
			at->bytes[level] = (uint8_t) byte;
			euno_art_key_set(at, level + 1);
		}
		place->holder = node;
		place->slot = slot;
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
