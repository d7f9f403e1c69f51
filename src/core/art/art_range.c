/*-------------------------------------------------------------------------
 *
 * art_range.c
 *	  The nodes on a range's path, and their children in order.
 *
 * A node's children are added to the batch, or entered, in the order of their
 * bytes; what follows is fetched meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/* Children to fetch in advance: this many lines, or a little more. */
#define AHEAD	40

/* The most lines of slots to fetch where a range begins. */
#define SLOT_LINES	28

/* A conflict at the node of this level on the path. */
static void
conflict(ArtRead *rd, uint32_t level, const ArtNode *node, EunoCause cause)
{
	euno_art_conflict(rd->cx, rd->tree, &rd->key, ART_PATH, level, node, cause);
}

/* It has changed: look again. */
EunoStatus
euno_art_read_stale(ArtRead *rd, uint32_t level, const ArtNode *node)
{
	conflict(rd, level, node, EUNO_CAUSE_CHANGED);
	return EUNO_STALE;
}

/* It is locked: its word, when it is free or the operation canceled. */
uint64_t
euno_art_read_wait(ArtRead *rd, uint32_t level, ArtNode *node)
{
	conflict(rd, level, node, EUNO_CAUSE_LOCKED);
	return euno_lock_wait(&node->lock, rd->cx->env, &rd->cx->counters, true);
}

/* The sign of path - bound in the bytes [from, to). */
static int
compare_path(const ArtRead *rd, const ArtKey *bound, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
	{
		int			c = rd->key.bytes[i] - art_key_byte(bound, i);

		if (c != 0)
			return c;
	}
	return 0;
}

/* Room for one more frame. */
static ArtFrame *
new_frame(ArtRead *rd)
{
	if (rd->nframes == ART_STACK)
	{
		rd->truncated = true;
		rd->nframes--;
		memmove(rd->frames, rd->frames + 1, rd->nframes * sizeof(ArtFrame));
	}
	return &rd->frames[rd->nframes];
}

/*
 * Fetches what will be read of a node at whose level the bound goes on: what
 * the search for its byte there reads, and the slots from there on that the
 * batch has room for.
 */
static inline void
fetch_edge(const ArtRead *rd, ArtRef ref, uint32_t level)
{
	const ArtLayout *layout = &euno_art_layouts[art_ref_type(ref)];
	uint8_t		byte = art_key_byte(&rd->at, level);
	uint32_t	place = art_place(layout->capacity, byte);
	uint32_t	n = rd->forward ? layout->capacity - place : place + 1;
	uint32_t	room = rd->batch->max_items - rd->batch->nitems;
	const uint8_t *at = (const uint8_t *) art_pointer(ref) +
		layout->children + 8 * layout->words * place;
	int			step = rd->forward ? 64 : -64;

	art_fetch_node(ref, byte);
	if (layout->size <= ART_SMALL)
		return;
	if (n > room)
		n = room;
	n *= 8 * layout->words;
	for (uint32_t k = 0; k < n && k < 64 * SLOT_LINES; k += 64, at += step)
		euno_prefetch(at);
}

/*
 * Enters a node.  The edges are those of the slot.  Nothing is entered if none
 * of the node is ahead, or if rd->ended is set: none is inside.
 */
EunoStatus
euno_art_enter(ArtRead *rd, ArtRef ref, uint32_t depth, bool at_edge,
			   bool end_edge)
{
	ArtNode    *node = art_pointer(ref);
	ArtFrame	   *frame = new_frame(rd);
	uint32_t	level = art_ref_level(ref);
	int			sign = rd->forward ? 1 : -1;

	if (level < depth || level >= ART_MAX_COMPOSITE)
		return EUNO_CORRUPT;
	if (at_edge)
		fetch_edge(rd, ref, level);
	euno_art_path_copy(node, depth, rd->key.bytes);
	if (!rd->rowex &&
		art_begin_node(rd, node, level, &frame->version) != EUNO_OK)
		return EUNO_STALE;
	if (!rd->rowex &&
		!(rd->nframes > 0 ? art_frame_valid(rd, frame - 1) :
		  euno_lock_validate(rd->lock, rd->version)))
		return euno_art_read_stale(rd, depth > 0 ? depth - 1 : 0,
					 rd->nframes > 0 ? frame[-1].node : NULL);
	if (at_edge)
	{
		int			c = compare_path(rd, &rd->at, depth, level) * sign;

		/* Backward, all that begins with the bound is behind it. */
		if (c < 0 || (c == 0 && !rd->forward && level >= rd->at.len))
			return EUNO_OK;
		at_edge = c == 0;
	}
	if (end_edge)
	{
		int			c = compare_path(rd, &rd->end, depth, level) * sign;

		rd->ended = c > 0;
		if (rd->ended)
			return EUNO_OK;
		end_edge = c == 0;
	}
	frame->node = node;
	frame->slots = art_children(node);
	frame->type = art_ref_type(ref);
	frame->words = euno_art_layouts[art_ref_type(ref)].words;
	frame->level = level;
	frame->at_edge = at_edge;
	frame->end_edge = end_edge;
	frame->next = at_edge ? art_key_byte(&rd->at, level) :
		rd->forward ? 0 : 255;
	frame->ahead = frame->next;
	euno_art_node_map(node, frame->map, frame->places);
	rd->nframes++;
	return EUNO_OK;
}

/*
 * Fetches a child of a node of this level: all of it if it is a LIST, of a
 * record where it begins and ends, else its beginning.  Lines that were asked
 * for, or that will be.
 */
static inline uint32_t
prefetch(ArtRef ref, uint32_t level)
{
	const uint8_t *p = art_is_node(ref) ? art_pointer(ref) : art_record(ref);
	uint32_t	size;

	if (art_is_leaf(ref))
	{
		euno_prefetch(p);
		euno_prefetch(p + (art_leaf_len(ref) - level));
		return 2;
	}
	if (!art_is_node(ref))
		return 0;
	if (art_ref_type(ref) <= ART_LAST_LIST)
		size = euno_art_layouts[art_ref_type(ref)].size;
	else
	{
		for (uint32_t at = 0; at < 256; at += 64)
			euno_prefetch(p + at);
		return AHEAD / 2;
	}
	for (uint32_t at = 0; at < size; at += 64)
		euno_prefetch(p + at);
	if (size > 64)
		euno_prefetch(p + size - 1);
	return (size + 63) / 64;
}

/*
 * Fetches some of the children that come next, up to one with the byte "end":
 * as many as a batch may want, if they were full.
 */
static __attribute__((noinline)) void
fetch_more(ArtRead *rd, ArtFrame *frame, int end)
{
	int			step = rd->forward ? 1 : -1;
	int			byte = frame->next;
	uint32_t	room = rd->batch->max_items - rd->batch->nitems;
	uint32_t	entries = 0;

	for (uint32_t lines = 0; lines < AHEAD && entries < room;)
	{
		ArtRef		ref;

		byte = art_next_byte(frame, byte, rd->forward);
		if (byte < 0 || (byte - end) * step > 0)
		{
			byte = rd->forward ? 256 : -1;
			break;
		}
		ref = euno_load64_acquire(art_frame_slot(frame, byte));
		entries += art_is_node(ref) ?
			euno_art_layouts[art_ref_type(ref)].capacity : 1;
		lines += 1 + prefetch(ref, frame->level);
		byte += step;
	}
	frame->ahead = byte;
}

/* The same when those that were fetched have been read. */
static inline void
fetch_ahead(ArtRead *rd, ArtFrame *frame, int end)
{
	int			step = rd->forward ? 1 : -1;

	if ((frame->next - frame->ahead) * step < 0)
		return;
	if (rd->batch->max_items > 1)
	{
		fetch_more(rd, frame, end);
	}
	else
		frame->ahead = frame->next + step;
}

/*
 * Goes on in the top node: adds its leaves to the batch up to a child that is
 * a node, and enters that; at the end, leaves the node.
 */
EunoStatus
euno_art_advance(ArtRead *rd)
{
	ArtFrame   *frame = &rd->frames[rd->nframes - 1];
	int			step = rd->forward ? 1 : -1;
	int			at_byte = frame->at_edge ? art_key_byte(&rd->at, frame->level) : -1;
	int			end_byte = frame->end_edge ?
		art_key_byte(&rd->end, frame->level) : rd->forward ? 256 : -1;
	int			byte;

	while ((byte = art_next_byte(frame, frame->next, rd->forward)) >= 0)
	{
		bool		at_edge = byte == at_byte;
		bool		end_edge = frame->end_edge && byte == end_byte;
		const ArtRef *slot = art_frame_slot(frame, byte);
		ArtRef		ref;

		rd->ended = (byte - end_byte) * step > 0;
		if (rd->ended)
			return EUNO_OK;
		frame->next = byte;
		ref = euno_load64_acquire(slot);
		if (art_is_absent(ref))
		{
			frame->next = byte + step;
			continue;
		}
		if ((ref & ART_TAG_MASK) != ART_TAG_INLINE)
			fetch_ahead(rd, frame, end_byte);
		if (!at_edge && !end_edge)
		{
			EunoStatus	status = euno_art_gather(rd, frame, end_byte);

			if (status != EUNO_OK || rd->full)
				return status;
			if (frame->next != byte)
				continue;
		}
		if (!art_frame_valid(rd, frame))
			return euno_art_read_stale(rd, frame->level, frame->node);
		frame->next = byte + step;
		rd->key.bytes[frame->level] = (uint8_t) byte;
		if (art_is_node(ref))
			return euno_art_enter(rd, ref, frame->level + 1, at_edge, end_edge);
		else
		{
			ArtChild	leaf = art_child(ref, slot);

			return euno_art_take_edge(rd, &leaf, frame->level + 1, at_edge,
									  end_edge);
		}
	}
	rd->nframes--;
	return art_frame_valid(rd, frame) ? EUNO_OK :
		euno_art_read_stale(rd, frame->level, frame->node);
}
