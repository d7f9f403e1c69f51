/*-------------------------------------------------------------------------
 *
 * art_gather.c
 *	  The leaves of one node, and of small ones below it, into a range's batch,
 *	  at once.
 *
 * Most entries of most scans are read here.  What was gathered is what the slots
 * held at some moment of this epoch, each by itself; in "olc" it is believed
 * once the node's version has been looked at again.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/* Slots of a node that is read at once, without a frame. */
#define FEW_SLOTS	32

/*
 * The composite of an INLINE of so many bytes, in the slot for a byte of a node
 * of this level.  At most as many are written as inline_room says.
 */
static inline void
put_inline(uint8_t *to, const uint8_t *path, uint32_t level, int byte,
		   uint32_t count, ArtRef ref, const ArtRef *slot)
{
	if (level <= ART_SHORT_PATH)
		memcpy(to, path, ART_SHORT_PATH);
	else
		memcpy(to, path, level);
	to += level;
	*to++ = (uint8_t) byte;
	euno_put_word(to, ref);
	if (count > art_inline_max(1))
		euno_put_word(to + art_inline_max(1), euno_load64(slot + 1));
	if (count > art_inline_max(2))
		euno_put_word(to + art_inline_max(2), euno_load64(slot + 2));
}

static inline uint32_t
inline_room(uint32_t depth)
{
	return euno_align8((depth < ART_SHORT_PATH ? ART_SHORT_PATH : depth) +
					   8 * ART_WORDS);
}

#define NO_KEY		UINT32_MAX

/* How no reference ends. */
#define NO_KIND		0xFF

/* What was gathered from a node: the batch with it, and the last entry. */
typedef struct Gathered
{
	uint32_t	n;				/* batch->nitems */
	uint32_t	used;			/* of batch->buf */
	uint32_t	room;			/* what is used is less than this: a key fits */
	uint32_t	key;			/* where the last INLINE's is; NO_KEY: nowhere */
	uint8_t		kind;			/* the last byte of all references like the last
								 * INLINE; NO_KIND: there was none */
	uint32_t	count;			/* bytes of such an INLINE */
	EunoTid		above;			/* what the path has of its TID, if it has not
								 * all, with room for the slot's byte */
	int			byte;			/* the last one, where the batch has no keys */
	ArtRef		ref;
	const ArtRef *slot;
} Gathered;

/* Nothing has been gathered yet from a node of this level. */
static inline Gathered
gather_begin(const ArtRead *rd, uint32_t level)
{
	uint32_t	room = inline_room(level + 1);

	return (Gathered) {
		.n = rd->batch->nitems,.used = rd->used,.kind = NO_KIND,.key = NO_KEY,
		.room = rd->batch->buf_size < room ? 0 : rd->batch->buf_size - room + 1
	};
}

/* The last n bytes of a path of this length, and room for one more; n < 6. */
static inline EunoTid
tid_above(const uint8_t *path, uint32_t level, uint32_t n)
{
	uint64_t	word;

	if (n == 0)
		return 0;
	word = level >= sizeof(word) ? euno_get_word(path + level - sizeof(word)) :
		euno_get_word(path) >> 8 * (sizeof(word) - level);
	return (word & UINT64_MAX >> (64 - 8 * n)) << 8;
}

/*
 * Is this the reference of an entry that is INLINE in a node of this level?
 * Most have the same number of bytes.
 */
static inline bool
is_inline_entry(const ArtRead *rd, ArtRef ref, uint32_t level, Gathered *to)
{
	uint32_t	count = art_inline_count(ref);

	if ((uint8_t) ref == to->kind)
		return true;
	if ((ref & (ART_TAG_MASK | ART_ABSENT)) != ART_TAG_INLINE ||
		level + 1 + count < EUNO_TID_BYTES ||
		count > art_inline_max(ART_WORDS))
		return false;
	to->kind = (uint8_t) ref;
	to->count = count;
	if (count < EUNO_TID_BYTES)
		to->above = tid_above(rd->key.bytes, level, EUNO_TID_BYTES - 1 - count);
	return true;
}

/* The TID of an entry of which an INLINE has only the last bytes. */
static inline EunoTid
split_tid(const Gathered *to, int byte, ArtRef ref)
{
	uint32_t	bits = 8 * to->count;

	return (to->above | (EunoTid) byte) << bits | ref >> 8 >> (56 - bits);
}

/*
 * Adds an entry that is INLINE in a node of this level; its key has room.  Where
 * the path to the node is the whole key, neighbors have one copy of it.
 */
static inline __attribute__((always_inline)) void
gather_entry(ArtRead *rd, uint32_t level, bool keys, int byte, ArtRef ref,
			 const ArtRef *slot, Gathered *to)
{
	EunoBatch  *batch = rd->batch;

	if (keys)
	{
		uint32_t	keylen = level + 1 + to->count - EUNO_TID_BYTES;

		if (keylen > level || to->key == NO_KEY)
		{
			put_inline(batch->buf + to->used, rd->key.bytes, level, byte,
					   to->count, ref, slot);
			to->key = to->used;
			to->used += euno_align8(keylen);
		}
		batch->keys[to->n] = (EunoItemKey) {to->key, (uint16_t) keylen, 0};
	}
	else
	{
		to->ref = ref;
		to->slot = slot;
		to->byte = byte;
	}
	batch->tids[to->n++] = to->count == EUNO_TID_BYTES ? ref >> 16 :
		to->count < EUNO_TID_BYTES ?
		split_tid(to, byte, ref) :
		art_inline_tid(ref, slot);
}

/*
 * Adds the entry of a record in a node of this level.  What it holds is
 * constant.  False: it has no room, or is no entry.
 */
static inline __attribute__((always_inline)) bool
gather_record(ArtRead *rd, uint32_t level, bool keys, int byte, ArtRef ref,
			  Gathered *to)
{
	ArtTail		tail;

	rd->key.bytes[level] = (uint8_t) byte;
	if (!art_record_tail(ref, level + 1, &tail) ||
		!art_put_entry(rd->batch, to->n, &to->used, keys, rd->key.bytes,
					   level + 1, &tail))
		return false;
	to->n++;
	to->key = NO_KEY;			/* only neighbors share one */
	to->byte = byte;
	to->ref = ref;
	return true;
}

/*
 * What was gathered from a node of this level is to be believed.  The last
 * entry is remembered where the batch does not have it.
 */
static inline void
gather_end(ArtRead *rd, uint32_t level, const Gathered *from)
{
	rd->batch->nitems = from->n;
	rd->used = from->used;
	rd->full = from->n >= rd->batch->max_items;
	if (rd->batch->want_keys)
		return;
	if (art_is_leaf(from->ref))
	{
		memcpy(rd->last.bytes, rd->key.bytes, level);
		rd->last.bytes[level] = (uint8_t) from->byte;
		rd->last.len = level + 1;
		rd->last_leaf.ref = from->ref;
		return;
	}
	put_inline(rd->last.bytes, rd->key.bytes, level, from->byte, from->count,
			   from->ref, from->slot);
	rd->last.len = level + 1 + from->count;
	rd->last_leaf.ref = 0;
}

/*
 * Gathers leaves of the frame's node from its next byte on, up to a node, a
 * record that was not fetched, the byte "end", or the last item that fits.
 */
static inline __attribute__((always_inline)) void
gather_slots(ArtRead *rd, ArtFrame *frame, int end, bool keys, bool forward,
			 Gathered *to)
{
	const ArtRef *slots = frame->slots;
	uint32_t	words = frame->words;
	uint32_t	level = frame->level;
	uint32_t	max = rd->batch->max_items;
	int			byte = frame->next;
	int			base = byte & ~63;
	uint64_t	bits = frame->map[base / 64] &
		(forward ? UINT64_MAX << byte % 64 : UINT64_MAX >> (63 - byte % 64));

	while (to->n < max)
	{
		const ArtRef *slot;
		ArtRef		ref;

		while (bits == 0 && (forward ? base < 192 : base > 0))
		{
			base += forward ? 64 : -64;
			bits = frame->map[base / 64];
		}
		if (forward)
			byte = bits == 0 ? 256 : base + __builtin_ctzll(bits);
		else
			byte = bits == 0 ? -1 : base + 63 - __builtin_clzll(bits);
		if (forward ? byte >= end : byte <= end)
			break;
		slot = slots + frame->places[byte] * words;
		ref = euno_load64_acquire(slot);
		if (is_inline_entry(rd, ref, level, to))
		{
			if (keys && to->used >= to->room)
				break;
			gather_entry(rd, level, keys, byte, ref, slot, to);
		}
		else if (!art_is_absent(ref) &&
				 (!art_is_leaf(ref) ||
				  (forward ? byte >= frame->ahead : byte <= frame->ahead) ||
				  !gather_record(rd, level, keys, byte, ref, to)))
			break;
		bits &= forward ? bits - 1 : ~(UINT64_C(1) << (byte - base));
	}
	frame->next = byte;
}

/* The same in a node with a slot for each byte, forward and without keys. */
static inline void
gather_direct(ArtRead *rd, ArtFrame *frame, int end, Gathered *to)
{
	const ArtRef *slot = frame->slots + frame->next;
	uint32_t	level = frame->level;
	uint32_t	max = rd->batch->max_items;
	int			byte;

	for (byte = frame->next; byte < end && to->n < max; byte++, slot++)
	{
		ArtRef		ref = euno_load64_acquire(slot);

		if (is_inline_entry(rd, ref, level, to))
			gather_entry(rd, level, false, byte, ref, slot, to);
		else if (!art_is_absent(ref) &&
				 (!art_is_leaf(ref) || byte >= frame->ahead ||
				  !gather_record(rd, level, false, byte, ref, to)))
			break;
	}
	frame->next = byte;
}

/* Adds leaves of the frame's node from its next byte on to the batch. */
static inline EunoStatus
gather_leaves(ArtRead *rd, ArtFrame *frame, int end)
{
	Gathered	to = gather_begin(rd, frame->level);

	if (rd->batch->want_keys && rd->forward)
		gather_slots(rd, frame, end, true, true, &to);
	else if (rd->batch->want_keys)
		gather_slots(rd, frame, end, true, false, &to);
	else if (!rd->forward)
		gather_slots(rd, frame, end, false, false, &to);
	else if (frame->type == ART_N256)
		gather_direct(rd, frame, end, &to);
	else
		gather_slots(rd, frame, end, false, true, &to);
	if (to.n == rd->batch->nitems)
		return EUNO_OK;
	if (!art_frame_valid(rd, frame))
		return euno_art_read_stale(rd, frame->level, frame->node);
	gather_end(rd, frame->level, &to);
	return EUNO_OK;
}

/* Is there room for so many keys that are INLINE in a node of this level? */
static inline bool
room_for(const ArtRead *rd, const Gathered *to, uint32_t n, uint32_t level)
{
	return to->used + n * inline_room(level + 1) <= rd->batch->buf_size;
}

/*
 * Gathers a LIST whose slots are in the order of their bytes and hold nothing
 * but leaves.  False: that is not so, or a record has no room; there is room
 * for all that is INLINE.
 */
static inline __attribute__((always_inline)) bool
gather_list(ArtRead *rd, ArtNode *node, ArtType type, uint32_t level,
			bool keys, bool forward, Gathered *to)
{
	const ArtLayout *layout = &euno_art_layouts[type];
	const uint8_t *first = (const uint8_t *) node + ART_KEYS;
	const uint8_t *key = forward ? first : first + layout->capacity - 1;
	const ArtRef *slot = art_children_of(node, type);
	ptrdiff_t	words = layout->words;
	int			last = forward ? -1 : 256;

	if (!forward)
	{
		slot += (layout->capacity - 1) * words;
		words = -words;
	}
	for (const uint8_t *end = forward ? first + layout->capacity : first - 1;
		 key != end; key += forward ? 1 : -1, slot += words)
	{
		ArtRef		ref = euno_load64_acquire(slot);
		bool		is_inline = is_inline_entry(rd, ref, level, to);
		int			byte;

		if (!is_inline && art_is_absent(ref))
			continue;
		byte = euno_load8(key); /* there since the child is */
		if (forward ? byte < last : byte > last)
			return false;
		last = byte;
		if (is_inline)
			gather_entry(rd, level, keys, byte, ref, slot, to);
		else if (!art_is_leaf(ref) ||
				 !gather_record(rd, level, keys, byte, ref, to) ||
				 (keys && !room_for(rd, to, layout->capacity, level)))
			return false;
	}
	return true;
}

/* The leaves of a LIST of few slots, in the order of their bytes. */
typedef struct Few
{
	uint32_t	n;
	uint8_t		bytes[FEW_SLOTS];
	const ArtRef *slots[FEW_SLOTS];
	ArtRef		refs[FEW_SLOTS];
} Few;

/*
 * Looks at the leaves of a LIST; false if there is a child that is a node.
 * Slots are near where their bytes are among all bytes, so they are almost in
 * order.
 */
static inline bool
look_at_few(ArtNode *node, ArtType type, Few *few)
{
	const ArtLayout *layout = &euno_art_layouts[type];
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	const ArtRef *slot = art_children_of(node, type);
	uint32_t	n = 0;

	for (uint32_t i = 0; i < layout->capacity; i++, slot += layout->words)
	{
		ArtRef		ref = euno_load64_acquire(slot);
		uint32_t	at = n;
		uint8_t		byte;

		if (art_is_absent(ref))
			continue;
		if (art_is_node(ref))
			return false;
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

/* As many of them as the batch may have.  False: a key has no room. */
static bool
take_few(ArtRead *rd, uint32_t level, const Few *few, Gathered *to)
{
	bool		keys = rd->batch->want_keys;

	for (uint32_t i = 0; i < few->n && to->n < rd->batch->max_items; i++)
	{
		uint32_t	k = rd->forward ? i : few->n - 1 - i;
		int			byte = few->bytes[k];
		ArtRef		ref = few->refs[k];

		if (art_is_leaf(ref))
		{
			if (!gather_record(rd, level, keys, byte, ref, to))
				return false;
			continue;
		}
		if (!is_inline_entry(rd, ref, level, to) ||
			(keys && to->used >= to->room))
			return false;
		gather_entry(rd, level, keys, byte, ref, few->slots[k], to);
	}
	return true;
}

/* What was gathered from a node of this level, if this is still its version. */
static inline EunoStatus
end_list(ArtRead *rd, ArtNode *node, uint32_t level, uint64_t version,
		 const Gathered *from)
{
	if (!rd->rowex && !euno_lock_validate(&node->lock, version))
		return euno_art_read_stale(rd, level, node);
	if (from->n > rd->batch->nitems)
		gather_end(rd, level, from);
	return EUNO_OK;
}

/* A LIST that gather_list is not for.  False: enter it. */
static __attribute__((noinline)) bool
gather_few(ArtRead *rd, ArtNode *node, ArtType type, uint32_t level,
		   uint64_t version, EunoStatus *status)
{
	Gathered	to = gather_begin(rd, level);
	Few			few;

	if (!look_at_few(node, type, &few))
		return false;
	rd->full = few.n > 0 && to.n >= rd->batch->max_items;
	if (rd->full)
		return true;
	if (!take_few(rd, level, &few, &to))
		return false;
	*status = end_list(rd, node, level, version, &to);
	return true;
}

/*
 * Adds a child of the frame's node that is a LIST of few slots with nothing but
 * leaves; its path is in rd->key.  False: it is not, or a key has no room;
 * enter it.
 */
static inline bool
gather_child(ArtRead *rd, ArtFrame *frame, ArtRef ref, EunoStatus *status)
{
	ArtType		type = art_ref_type(ref);
	ArtNode    *node = art_pointer(ref);
	uint32_t	level = art_ref_level(ref);
	uint32_t	capacity = euno_art_layouts[type].capacity;
	uint64_t	version = 0;
	Gathered	to;
	bool		done;

	if (type > ART_LAST_LIST || capacity > FEW_SLOTS ||
		level <= frame->level || level >= ART_MAX_COMPOSITE)
		return false;
	if (level > frame->level + 1)
		euno_art_path_copy(node, frame->level + 1, rd->key.bytes);
	*status = rd->rowex ? EUNO_OK : art_begin_node(rd, node, level, &version);
	if (*status == EUNO_OK && !art_frame_valid(rd, frame))
		*status = euno_art_read_stale(rd, frame->level, frame->node);
	if (*status != EUNO_OK)
		return true;
	to = gather_begin(rd, level);
	if (to.n + capacity > rd->batch->max_items)
		done = false;
	else if (!rd->batch->want_keys)
		done = rd->forward ?
			gather_list(rd, node, type, level, false, true, &to) :
			gather_list(rd, node, type, level, false, false, &to);
	else if (!room_for(rd, &to, capacity, level))
		done = false;
	else
		done = rd->forward ?
			gather_list(rd, node, type, level, true, true, &to) :
			gather_list(rd, node, type, level, true, false, &to);
	if (!done)
		return gather_few(rd, node, type, level, version, status);
	*status = end_list(rd, node, level, version, &to);
	return true;
}

/*
 * Adds leaves of the frame's node from its next byte on, and children that are
 * a LIST of few slots with nothing but leaves, up to a child that is something
 * else or was not fetched, or the byte "end": where most entries of most scans
 * are read.  None of these children is an edge.
 */
EunoStatus
euno_art_gather(ArtRead *rd, ArtFrame *frame, int end)
{
	int			step = rd->forward ? 1 : -1;
	EunoStatus	status;

	for (;;)
	{
		int			byte = art_next_byte(frame, frame->next, rd->forward);
		ArtRef		ref;

		if (byte < 0 || (byte - end) * step >= 0)
			return EUNO_OK;
		frame->next = byte;
		ref = euno_load64_acquire(art_frame_slot(frame, byte));
		if (!art_is_node(ref))
		{
			status = gather_leaves(rd, frame, end);
			if (status != EUNO_OK || rd->full || frame->next == byte)
				return status;
			continue;
		}
		rd->key.bytes[frame->level] = (uint8_t) byte;
		if ((byte - frame->ahead) * step >= 0 ||
			!gather_child(rd, frame, ref, &status))
			return EUNO_OK;
		if (status != EUNO_OK || rd->full)
			return status;
		frame->next = byte + step;
	}
}
