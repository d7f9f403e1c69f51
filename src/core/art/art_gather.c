/*-------------------------------------------------------------------------
 *
 * art_gather.c
 *	  What is INLINE in one node into a range's batch, at once.
 *
 * Most entries of most scans are read here.  What was gathered is believed once
 * the node's version has been looked at again.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/* A path that is copied in whole words. */
#define SHORT_PATH	24

/* Slots of a node that is read at once, without a frame. */
#define FEW		32

/*
 * The composite of an INLINE below a path of so many bytes.  At most as many
 * are written as inline_room says.
 */
static inline void
put_inline(uint8_t *to, const uint8_t *path, uint32_t depth, ArtRef ref,
		   const ArtRef *slot)
{
	uint32_t	count = art_inline_count(ref);

	if (depth <= SHORT_PATH)
		memcpy(to, path, SHORT_PATH);
	else
		memcpy(to, path, depth);
	to += depth;
	euno_put_word(to, ref);
	if (count > art_inline_max(1))
		euno_put_word(to + art_inline_max(1), euno_load64(slot + 1));
	if (count > art_inline_max(2))
		euno_put_word(to + art_inline_max(2), euno_load64(slot + 2));
}

static inline uint32_t
inline_room(uint32_t depth)
{
	return art_align8((depth < SHORT_PATH ? SHORT_PATH : depth) + 8 * ART_WORDS);
}

/* What no slot holds. */
#define NO_ENTRY	UINT64_C(0xFF)

/* What was gathered from a node: the batch with it, and the last entry. */
typedef struct Gathered
{
	uint32_t	n;				/* batch->nitems */
	uint32_t	used;			/* of batch->buf */
	int			byte;
	ArtRef		ref;			/* NO_ENTRY: there were none */
	const ArtRef *slot;
} Gathered;

/* Is this the reference of an entry that is INLINE? */
static inline bool
is_inline_entry(ArtRef ref)
{
	uint32_t	count = art_inline_count(ref);

	return (ref & (ART_TAG_MASK | ART_ABSENT)) == ART_TAG_INLINE &&
		count >= EUNO_TID_BYTES && count <= art_inline_max(ART_WORDS);
}

/*
 * Adds an entry that is INLINE in a node of this level.  False: its key has no
 * room.
 */
static inline __attribute__((always_inline)) bool
gather_entry(ArtRead *rd, uint32_t level, bool keys, int byte, ArtRef ref,
			 const ArtRef *slot, Gathered *to)
{
	EunoBatch  *batch = rd->batch;

	if (keys)
	{
		EunoItemKey *item = &batch->keys[to->n];

		if (to->used + inline_room(level + 1) > batch->buf_size)
			return false;
		rd->key.bytes[level] = (uint8_t) byte;
		put_inline(batch->buf + to->used, rd->key.bytes, level + 1, ref, slot);
		item->offset = to->used;
		item->keylen = (uint16_t) (level + 1 + art_inline_count(ref) -
								   EUNO_TID_BYTES);
		item->payloadlen = 0;
		to->used += art_align8(item->keylen);
	}
	batch->tids[to->n++] = art_inline_tid(ref, slot);
	to->ref = ref;
	to->slot = slot;
	to->byte = byte;
	return true;
}

/* What was gathered from a node of this level is to be believed. */
static inline void
gather_end(ArtRead *rd, uint32_t level, const Gathered *from)
{
	rd->batch->nitems = from->n;
	rd->used = from->used;
	rd->full = from->n >= rd->batch->max_items;
	rd->key.bytes[level] = (uint8_t) from->byte;
	put_inline(rd->last.bytes, rd->key.bytes, level + 1, from->ref, from->slot);
	rd->last.len = level + 1 + art_inline_count(from->ref);
	rd->last_leaf.ref = 0;
}

/*
 * Gathers what is INLINE in the frame's node from its next byte on, up to a
 * child that is something else, the byte "end", or the last item that fits.
 */
static inline __attribute__((always_inline)) void
gather_slots(ArtRead *rd, ArtFrame *frame, int end, bool keys, Gathered *to)
{
	const ArtRef *slots = frame->slots;
	uint32_t	words = frame->words;
	uint32_t	max = rd->batch->max_items;
	int			byte = frame->next;
	int			base = byte & ~63;
	uint64_t	bits = frame->map[base / 64] & UINT64_MAX << byte % 64;

	for (; to->n < max; bits &= bits - 1)
	{
		const ArtRef *slot;
		ArtRef		ref;

		while (bits == 0 && base < 192)
			bits = frame->map[(base += 64) / 64];
		byte = bits == 0 ? 256 : base + __builtin_ctzll(bits);
		if (byte >= end)
			break;
		slot = slots + frame->places[byte] * words;
		ref = euno_load64_acquire(slot);

		/* most have the same number of bytes */
		if ((uint8_t) ref != (uint8_t) to->ref && !is_inline_entry(ref))
		{
			if (art_is_absent(ref))
				continue;
			break;
		}
		if (!gather_entry(rd, frame->level, keys, byte, ref, slot, to))
			break;
	}
	frame->next = byte;
}

/* The same in a node with a slot for each byte, without keys. */
static inline void
gather_direct(ArtRead *rd, ArtFrame *frame, int end, Gathered *to)
{
	const ArtRef *slot = frame->slots + frame->next;
	uint32_t	max = rd->batch->max_items;
	int			byte;

	for (byte = frame->next; byte < end && to->n < max; byte++, slot++)
	{
		ArtRef		ref = euno_load64_acquire(slot);

		if ((uint8_t) ref != (uint8_t) to->ref && !is_inline_entry(ref))
		{
			if (art_is_absent(ref))
				continue;
			break;
		}
		(void) gather_entry(rd, frame->level, false, byte, ref, slot, to);
	}
	frame->next = byte;
}

/*
 * Adds what is INLINE in the frame's node to the batch, forward: where most
 * entries of most scans are read.
 */
EunoStatus
euno_art_gather(ArtRead *rd, ArtFrame *frame, int end)
{
	EunoBatch  *batch = rd->batch;
	Gathered	to = {batch->nitems, rd->used, 0, NO_ENTRY, NULL};

	if (batch->want_keys)
		gather_slots(rd, frame, end, true, &to);
	else if (frame->type == ART_N256)
		gather_direct(rd, frame, end, &to);
	else
		gather_slots(rd, frame, end, false, &to);
	if (to.ref == NO_ENTRY)
		return EUNO_OK;
	if (!art_frame_valid(rd, frame))
		return euno_art_read_stale(rd, frame->level, frame->node);
	gather_end(rd, frame->level, &to);
	return EUNO_OK;
}

/* The leaves of a LIST of few slots, in the order of their bytes. */
typedef struct Few
{
	uint32_t	n;
	bool		records;		/* not all are INLINE */
	uint8_t		bytes[FEW];
	const ArtRef *slots[FEW];
	ArtRef		refs[FEW];
} Few;

/*
 * Looks at the leaves of a LIST; false if there is a child that is a node.
 * Slots are near where their bytes are among all bytes, so they are almost in
 * order.
 */
static inline bool
look_at_few(ArtNode *node, const ArtLayout *layout, Few *few)
{
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	const ArtRef *slot = art_children(node);
	uint32_t	n = 0;

	few->records = false;
	for (uint32_t i = 0; i < layout->capacity; i++, slot += layout->words)
	{
		ArtRef		ref = euno_load64_acquire(slot);
		uint32_t	at = n;
		uint8_t		byte;

		if (art_is_absent(ref))
			continue;
		if (!is_inline_entry(ref))
		{
			if (!art_is_leaf(ref))
				return false;
			few->records = true;
		}
		byte = euno_load8(&keys[i]);	/* there since the child is */
		for (; at > 0 && few->bytes[at - 1] > byte; at--)
		{
			few->bytes[at] = few->bytes[at - 1];
			few->slots[at] = few->slots[at - 1];
			few->refs[at] = few->refs[at - 1];
		}
		few->bytes[at] = byte;
		few->slots[at] = slot;
		few->refs[at] = ref;
		n++;
	}
	few->n = n;
	return true;
}

static inline __attribute__((always_inline)) void
take_few(ArtRead *rd, uint32_t level, const Few *few, bool keys, Gathered *to)
{
	uint32_t	room = rd->batch->max_items - to->n;
	uint32_t	n = few->n < room ? few->n : room;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	k = rd->forward ? i : few->n - 1 - i;

		if (!gather_entry(rd, level, keys, few->bytes[k], few->refs[k],
						  few->slots[k], to))
			break;
	}
}

/*
 * The same with records, which are looked into when the node's version has
 * been.
 */
static EunoStatus
take_records(ArtRead *rd, ArtNode *node, uint32_t level, uint64_t version,
			 const Few *few)
{
	for (uint32_t i = 0; i < few->n; i++)
	{
		uint32_t	k = rd->forward ? i : few->n - 1 - i;

		rd->run_bytes[i] = few->bytes[k];
		rd->run[i] = art_child(few->refs[k], few->slots[k]);
	}
	rd->nrun = few->n;
	if (!rd->rowex && !euno_lock_validate(&node->lock, version))
		return euno_art_read_stale(rd, level, node);
	return euno_art_take_run(rd, level);
}

/*
 * Adds all of a child of the frame's node, no edge, that is a LIST of few
 * slots with nothing but leaves.  False: it is not, or there is no room for
 * the keys of INLINEs; enter it.
 */
bool
euno_art_gather_few(ArtRead *rd, ArtFrame *frame, ArtRef ref,
					EunoStatus *status)
{
	const ArtLayout *layout = &euno_art_layouts[art_ref_type(ref)];
	ArtNode    *node = art_pointer(ref);
	uint32_t	level = art_ref_level(ref);
	Gathered	to = {rd->batch->nitems, rd->used, 0, NO_ENTRY, NULL};
	uint64_t	version = 0;
	Few			few;

	if (layout->capacity > FEW || art_ref_type(ref) > ART_LAST_LIST ||
		level <= frame->level || level >= ART_MAX_COMPOSITE)
		return false;
	if (level > frame->level + 1)
		euno_art_path_copy(node, frame->level + 1, rd->key.bytes);
	*status = rd->rowex ? EUNO_OK : art_begin_node(rd, node, level, &version);
	if (*status == EUNO_OK && !art_frame_valid(rd, frame))
		*status = euno_art_read_stale(rd, frame->level, frame->node);
	if (*status != EUNO_OK)
		return true;
	if (!look_at_few(node, layout, &few))
		return false;
	rd->full = few.n > 0 && to.n >= rd->batch->max_items;
	if (rd->full)
		return true;
	if (few.records)
	{
		*status = take_records(rd, node, level, version, &few);
		return true;
	}
	if (rd->batch->want_keys)
		take_few(rd, level, &few, true, &to);
	else
		take_few(rd, level, &few, false, &to);
	if (to.n - rd->batch->nitems < few.n && to.n < rd->batch->max_items)
		return false;
	if (!rd->rowex && !euno_lock_validate(&node->lock, version))
		*status = euno_art_read_stale(rd, level, node);
	else if (to.ref != NO_ENTRY)
		gather_end(rd, level, &to);
	return true;
}
