/*-------------------------------------------------------------------------
 *
 * art_visit.c
 *	  From one inner node to the next, each after those below it.
 *
 * The nodes on the way to the one that is visited are kept, the lowest of them,
 * with what has not been looked at yet of each.  They may be replaced
 * meanwhile; then what has come to their successors is not visited.
 *
 * The place between two visits is a path, never a node.  It stands for all
 * nodes that come after it, whichever nodes there are then.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* The child for a byte that the frame's map has; what else a place is. */
static ArtRef
frame_child(const ArtVisitFrame *frame, uint32_t byte, ArtPlace *place)
{
	ArtNode    *node = art_pointer(frame->place.ref);

	place->rowex = true;
	place->holder = node;
	place->slot = art_children(node) + frame->places[byte] *
		euno_art_layouts[art_type(node)].words;
	place->lock = &node->lock;
	place->ref = euno_load64_acquire(place->slot);
	place->depth = art_level(node) + 1;
	return place->ref;
}

/* The next byte of a map that has one. */
static inline bool
next_byte(const uint64_t map[4], uint32_t *byte)
{
	for (uint32_t i = 0; i < 4; i++)
	{
		if (map[i] != 0)
		{
			*byte = 64 * i + (uint32_t) __builtin_ctzll(map[i]);
			return true;
		}
	}
	return false;
}

/* Are inner nodes below this one? */
static bool
has_inners(ArtNode *node)
{
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	const ArtRef *slots = art_children(node);

	for (uint32_t i = 0; i < layout->capacity; i++)
	{
		if (art_is_node(euno_load64(&slots[i * layout->words])))
			return true;
	}
	return false;
}

/*
 * Comes to a node, the path up to which is the visitor's: its own is added,
 * and none of its children has been looked at.
 */
static ArtVisitFrame *
enter(ArtVisit *v, const ArtPlace *place)
{
	ArtNode    *node = art_pointer(place->ref);
	ArtVisitFrame *frame = &v->frames[v->depth++ % ART_VISIT_FRAMES];

	if (v->kept < ART_VISIT_FRAMES)
		v->kept++;
	frame->place = *place;
	euno_art_path_copy(node, place->depth, v->at.bytes);
	if (has_inners(node))
		euno_art_node_map(node, frame->map, frame->places);
	else
		memset(frame->map, 0, sizeof(frame->map));
	return frame;
}

/*
 * Goes from the root down to where the place is.  Every node on that way comes
 * after it, and so does what a node has at greater bytes.
 */
static EunoStatus
seek(ArtVisit *v)
{
	ArtBody    *body = art_body(v->tree);
	ArtPlace	place = {
		.rowex = true,
		.slot = &body->root,
		.lock = &body->root_lock,
		.ref = euno_load64_acquire(&body->root)
	};

	v->cx->counters.descents++;
	v->depth = v->kept = 0;
	while (art_is_node(place.ref))
	{
		ArtNode    *node = art_pointer(place.ref);
		uint32_t	level = art_level(node);
		uint32_t	end = level < v->at.len ? level : v->at.len;
		ArtVisitFrame *frame;
		uint32_t	m;
		uint32_t	byte;
		uint8_t		path[ART_MAX_COMPOSITE];

		if (!art_is_sound(place.ref, place.depth))
			return EUNO_CORRUPT;
		euno_art_path_copy(node, place.depth, path);
		for (m = place.depth; m < end && path[m] == v->at.bytes[m];)
			m++;
		if (m < end ? path[m] < v->at.bytes[m] : level >= v->at.len && v->past)
			break;				/* it has been visited, and what is below it */
		frame = enter(v, &place);
		if (m < end || level >= v->at.len)
			break;
		byte = v->at.bytes[level];
		for (uint32_t i = 0; i < byte / 64; i++)
			frame->map[i] = 0;
		frame->map[byte / 64] &= UINT64_MAX << byte % 64;
		if ((frame->map[byte / 64] >> byte % 64 & 1) == 0)
			break;
		frame->map[byte / 64] ^= UINT64_C(1) << byte % 64;
		(void) frame_child(frame, byte, &place);
	}
	return EUNO_OK;
}

/*
 * The next child of a node that is an inner node; false if there is none.
 */
static bool
next_child(ArtVisit *v, ArtVisitFrame *frame, ArtPlace *place)
{
	uint32_t	byte;

	while (next_byte(frame->map, &byte))
	{
		frame->map[byte / 64] &= frame->map[byte / 64] - 1;
		if (!art_is_node(frame_child(frame, byte, place)))
			continue;
		v->at.bytes[place->depth - 1] = (uint8_t) byte;
		return true;
	}
	return false;
}

/* Before the first node. */
void
euno_art_visit_start(ArtVisit *v, EunoContext *cx, EunoTree *tree)
{
	v->cx = cx;
	v->tree = tree;
	euno_art_key_set(&v->at, 0);
	v->past = false;
	v->kept = 0;
}

/*
 * The next node; its path is then the visitor's, and v->place its slot, as for
 * ROWEX.  EUNO_OK; EUNO_NOT_FOUND: that was the last; EUNO_CORRUPT.  The epoch
 * has been entered; nothing is locked.
 */
EunoStatus
euno_art_visit(ArtVisit *v)
{
	ArtVisitFrame *frame;
	ArtPlace	child;

	if (v->kept == 0)
	{
		EunoStatus	status = seek(v);

		if (status != EUNO_OK || v->kept == 0)
			return status != EUNO_OK ? status : EUNO_NOT_FOUND;
	}
	for (;;)
	{
		frame = &v->frames[(v->depth - 1) % ART_VISIT_FRAMES];
		if (!next_child(v, frame, &child))
			break;
		if (!art_is_sound(child.ref, child.depth))
			return EUNO_CORRUPT;
		enter(v, &child);
	}
	v->depth--;
	v->kept--;
	v->place = frame->place;
	euno_art_key_set(&v->at, art_level(art_pointer(v->place.ref)));
	v->past = true;
	return EUNO_OK;
}

/* To be called when the epoch has been left: the nodes on the way may go. */
void
euno_art_visit_pause(ArtVisit *v)
{
	v->kept = 0;
}

/* The node is to be visited once more, with what is below it. */
void
euno_art_visit_again(ArtVisit *v)
{
	v->kept = 0;
	v->past = false;
}
