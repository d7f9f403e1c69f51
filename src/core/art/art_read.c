/*-------------------------------------------------------------------------
 *
 * art_read.c
 *	  Range scans, a batch at a time.
 *
 * A batch is read going through the tree in order, with a stack of nodes on
 * the path.  In OLC what was read in a node is believed once its version has
 * been looked at again, and a node's child is entered as in a descent; when a
 * version has passed, the batch ends with what there is, or starts again.  In
 * ROWEX nothing is looked at again: each slot's content was right when it was
 * read, and a node that was replaced does not change any more.
 *
 * Between two batches the place is a position, never a node.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_match.h"
#include "core/art/art_search.h"

#define ALIGN8(n)	(((n) + 7) & ~UINT32_C(7))

/* Nodes on the stack.  A deeper path is entered again from the root. */
#define STACK	16

/* Leaves that are fetched together. */
#define RUN		64

/* Children to fetch in advance: so many lines, or a little more. */
#define AHEAD	40

/* The most lines of slots to fetch where a range begins. */
#define SLOT_LINES	16

/* A path that is copied in whole words. */
#define SHORT_PATH	24

/* Slots of a node that is read at once, without a frame. */
#define FEW		32

typedef struct Frame
{
	ArtNode    *node;
	uint64_t	version;
	const ArtRef *slots;
	uint32_t	words;			/* of a slot */
	ArtType		type;
	uint32_t	level;
	int			next;			/* the next child's byte, or beyond */
	int			ahead;			/* fetched in advance up to this one */
	bool		at_edge;		/* the path is that of the bound, so far */
	bool		end_edge;		/* the path is that of the range's end, so far */
	uint64_t	map[4];			/* euno_art_node_map */
	uint8_t		places[256];
} Frame;

typedef struct Read
{
	EunoContext *cx;
	EunoTree   *tree;			/* for conflicts, as "prefix" */
	EunoBatch  *batch;
	bool		forward;
	bool		rowex;
	bool		prefix;			/* it is all that starts with "at" */
	bool		ended;			/* nothing is left of the range */
	bool		full;			/* the batch is to end here */
	bool		truncated;		/* frames at the bottom were given up */
	uint32_t	used;			/* of batch->buf */
	uint32_t	nframes;
	uint32_t	nrun;
	uint8_t		run_bytes[RUN];
	ArtChild	run[RUN];
	const EunoPosition *stop;	/* the range's end */
	EunoLock   *lock;			/* of the slot that the lowest frame is from */
	uint64_t	version;
	Frame		frames[STACK];
	ArtKey		key;			/* the path; then the entry being copied */
	ArtKey		at;				/* the bound */
	ArtKey		end;			/* of the range, in the direction of the read */
	ArtKey		last;			/* the last entry of the batch */
} Read;

/* Is the entry in rd->key on the near side of the range's end? */
static inline bool
inside(const Read *rd)
{
	int			c = euno_art_key_compare(&rd->key, &rd->end);

	return rd->forward ? c < 0 : c >= 0;
}

/* Is it on the far side of the bound, where the read goes on? */
static inline bool
ahead(const Read *rd)
{
	int			c = euno_art_key_compare(&rd->key, &rd->at);

	return rd->forward ? c >= 0 : c < 0;
}

/* Puts the composite of a leaf together in rd->key. */
static bool
compose(Read *rd, const ArtChild *leaf, uint32_t depth, ArtTail *tail)
{
	if (!euno_art_leaf_tail(leaf, depth, tail) ||
		depth + tail->n < EUNO_TID_BYTES ||
		depth + tail->n > ART_MAX_COMPOSITE)
		return false;
	euno_copy_out(rd->key.bytes + depth, tail->bytes, tail->n);
	rd->key.len = depth + tail->n;
	return true;
}

/*
 * The composite of an INLINE below a path of so many bytes.  At most as many are
 * written as inline_room says.
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
	return ALIGN8((depth < SHORT_PATH ? SHORT_PATH : depth) + 8 * ART_WORDS);
}

/*
 * Adds a leaf to the batch.  EUNO_FULL: there is no room; EUNO_CORRUPT.
 */
static EunoStatus
emit(Read *rd, const ArtChild *leaf, uint32_t depth)
{
	EunoBatch  *batch = rd->batch;
	uint32_t	at = rd->used;
	EunoItemKey *item;
	ArtTail		tail;
	uint32_t	len;

	if (batch->nitems >= batch->max_items)
		return EUNO_FULL;
	if (!batch->want_keys && !art_is_leaf(leaf->ref) &&
		art_inline_count(leaf->ref) >= EUNO_TID_BYTES)
	{
		batch->tids[batch->nitems++] =
			art_inline_bytes(leaf, art_inline_count(leaf->ref), EUNO_TID_BYTES);
		return EUNO_OK;
	}
	if (!compose(rd, leaf, depth, &tail))
		return EUNO_CORRUPT;
	len = rd->key.len - EUNO_TID_BYTES;
	if (batch->want_keys)
	{
		if (at + ALIGN8(len) + ALIGN8(tail.payload_len) > batch->buf_size)
			return EUNO_FULL;
		item = &batch->keys[batch->nitems];
		memcpy(batch->buf + at, rd->key.bytes, len);
		item->offset = at;
		item->keylen = (uint16_t) len;
		item->payloadlen = (uint16_t) tail.payload_len;
		at += ALIGN8(len);
		if (tail.payload_len > 0)
			euno_copy_out(batch->buf + at, tail.payload, tail.payload_len);
		rd->used = at + ALIGN8(tail.payload_len);
	}
	batch->tids[batch->nitems++] = euno_get_tid(rd->key.bytes + len);
	return EUNO_OK;
}

/* Remembers the leaf that was added last. */
static EunoStatus
remember(Read *rd, const ArtChild *leaf, uint32_t depth)
{
	ArtTail		tail;

	if (!compose(rd, leaf, depth, &tail))
		return EUNO_CORRUPT;
	memcpy(rd->last.bytes, rd->key.bytes, rd->key.len);
	rd->last.len = rd->key.len;
	return EUNO_OK;
}

static inline bool
frame_valid(const Read *rd, const Frame *frame)
{
	return rd->rowex || euno_lock_validate(&frame->node->lock, frame->version);
}

/*
 * A conflict at the node of this level on the path; in a subtree of one key it is about
 * that.
 */
static void __attribute__((cold, noinline))
conflict(Read *rd, uint32_t level, const ArtNode *node, EunoCause cause)
{
	euno_art_conflict(rd->cx, rd->tree, rd->prefix ? &rd->at : &rd->key,
					  rd->prefix ? ART_PREFIX : ART_PATH, level, node, cause);
}

/* It has changed: look again. */
static EunoStatus __attribute__((cold, noinline))
stale(Read *rd, uint32_t level, const ArtNode *node)
{
	conflict(rd, level, node, EUNO_CAUSE_CHANGED);
	return EUNO_STALE;
}

/* It is locked: its word, when it is free or the operation canceled. */
static uint64_t __attribute__((cold, noinline))
wait_free(Read *rd, uint32_t level, ArtNode *node)
{
	conflict(rd, level, node, EUNO_CAUSE_LOCKED);
	return euno_lock_wait(&node->lock, rd->cx->env, &rd->cx->counters, true);
}

/* Adds the leaves that were found in a node, if they are to be believed. */
static EunoStatus
flush(Read *rd, Frame *frame)
{
	EunoStatus	status = EUNO_OK;
	uint32_t	n = rd->nrun;
	uint32_t	i;

	rd->nrun = 0;
	if (n == 0)
		return EUNO_OK;
	if (!frame_valid(rd, frame))
		return stale(rd, frame->level, frame->node);
	for (i = 0; i < n; i++)
	{
		rd->key.bytes[frame->level] = rd->run_bytes[i];
		status = emit(rd, &rd->run[i], frame->level + 1);
		if (status != EUNO_OK)
			break;
	}
	if (status == EUNO_FULL || rd->batch->nitems >= rd->batch->max_items)
	{
		rd->full = true;
		status = EUNO_OK;
	}
	if (status == EUNO_OK && i > 0)
	{
		rd->key.bytes[frame->level] = rd->run_bytes[i - 1];
		status = remember(rd, &rd->run[i - 1], frame->level + 1);
	}
	return status;
}

/* The next byte at or beyond "from" that has a slot; -1 if none. */
static inline int
next_byte(const Frame *frame, int from, bool forward)
{
	while (from >= 0 && from < 256)
	{
		uint64_t	word = frame->map[from / 64];

		if (forward)
		{
			word &= UINT64_MAX << from % 64;
			if (word != 0)
				return (from & ~63) + __builtin_ctzll(word);
			from = (from | 63) + 1;
		}
		else
		{
			word &= UINT64_MAX >> (63 - from % 64);
			if (word != 0)
				return (from | 63) - __builtin_clzll(word);
			from = (from & ~63) - 1;
		}
	}
	return -1;
}

/* The slot of a byte that has one. */
static inline const ArtRef *
frame_slot(const Frame *frame, int byte)
{
	return frame->slots + frame->places[byte] * frame->words;
}

/* Fetches the slots of the next entries, in a node that was not fetched whole. */
static inline void
fetch_slots(const Frame *frame, uint32_t entries)
{
	const ArtLayout *layout = &euno_art_layouts[frame->type];
	uint32_t	at = art_place(layout->capacity, (uint8_t) frame->next);
	uint32_t	n = layout->capacity - at;

	if (layout->size <= ART_SMALL)
		return;
	if (n > entries)
		n = entries;
	n *= 8 * frame->words;
	for (uint32_t k = 0; k < n && k < 64 * SLOT_LINES; k += 64)
		euno_prefetch((const uint8_t *) (frame->slots + at * frame->words) + k);
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

/* Adds an entry that is INLINE in a node of this level.  False: its key has no room. */
static inline __attribute__((always_inline)) bool
gather_entry(Read *rd, uint32_t level, bool keys, int byte, ArtRef ref,
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
		to->used += ALIGN8(item->keylen);
	}
	batch->tids[to->n++] = art_inline_tid(ref, slot);
	to->ref = ref;
	to->slot = slot;
	to->byte = byte;
	return true;
}

/* What was gathered from a node of this level is to be believed. */
static inline void
gather_end(Read *rd, uint32_t level, const Gathered *from)
{
	rd->batch->nitems = from->n;
	rd->used = from->used;
	rd->full = from->n >= rd->batch->max_items;
	rd->key.bytes[level] = (uint8_t) from->byte;
	put_inline(rd->last.bytes, rd->key.bytes, level + 1, from->ref, from->slot);
	rd->last.len = level + 1 + art_inline_count(from->ref);
}

/*
 * Gathers what is INLINE in the frame's node from its next byte on, up to a child
 * that is something else, the byte "end", or the last item that fits.
 */
static inline __attribute__((always_inline)) void
gather_slots(Read *rd, Frame *frame, int end, bool keys, Gathered *to)
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
gather_direct(Read *rd, Frame *frame, int end, Gathered *to)
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
 * Adds what is INLINE in the frame's node to the batch, forward: where most entries of
 * most scans are read.
 */
static EunoStatus __attribute__((noinline))
gather(Read *rd, Frame *frame, int end)
{
	EunoBatch  *batch = rd->batch;
	Gathered	to = {batch->nitems, rd->used, 0, NO_ENTRY, NULL};

	if (frame->at_edge)
		fetch_slots(frame, batch->max_items - batch->nitems);
	if (batch->want_keys)
		gather_slots(rd, frame, end, true, &to);
	else if (frame->type == ART_N256)
		gather_direct(rd, frame, end, &to);
	else
		gather_slots(rd, frame, end, false, &to);
	if (to.ref == NO_ENTRY)
		return EUNO_OK;
	if (!frame_valid(rd, frame))
		return stale(rd, frame->level, frame->node);
	gather_end(rd, frame->level, &to);
	return EUNO_OK;
}

/* A node's version; EUNO_STALE: that is none to read at. */
static inline EunoStatus
begin_node(Read *rd, ArtNode *node, uint32_t level, uint64_t *version)
{
	uint64_t	word = euno_load64_acquire(&node->lock.word);

	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
		word = wait_free(rd, level, node);
	*version = word;
	if ((word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) != 0)
		return stale(rd, level, node);
	return EUNO_OK;
}

/* The leaves of a LIST of few slots, in the order of their bytes. */
typedef struct Few
{
	uint32_t	n;
	uint8_t		bytes[FEW];
	const ArtRef *slots[FEW];
	ArtRef		refs[FEW];
} Few;

/*
 * Looks at the leaves of a LIST; false if there is a child that is not an INLINE.
 * Slots are near where their bytes are among all bytes, so they are almost in order.
 */
static inline bool
look_at_few(ArtNode *node, const ArtLayout *layout, Few *few)
{
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	const ArtRef *slot = art_children(node);
	uint32_t	n = 0;

	for (uint32_t i = 0; i < layout->capacity; i++, slot += layout->words)
	{
		ArtRef		ref = euno_load64_acquire(slot);
		uint32_t	at = n;
		uint8_t		byte;

		if (art_is_absent(ref))
			continue;
		if (!is_inline_entry(ref))
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

static inline __attribute__((always_inline)) void
take_few(Read *rd, uint32_t level, const Few *few, bool keys, Gathered *to)
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
 * Adds all of a child of the frame's node, no edge, that is a LIST of few slots with
 * nothing but what is INLINE.  False: it is not, or there is no room for its keys;
 * enter it.
 */
static bool __attribute__((noinline))
gather_few(Read *rd, Frame *frame, ArtRef ref, EunoStatus *status)
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
	*status = rd->rowex ? EUNO_OK : begin_node(rd, node, level, &version);
	if (*status == EUNO_OK && !frame_valid(rd, frame))
		*status = stale(rd, frame->level, frame->node);
	if (*status != EUNO_OK)
		return true;
	if (!look_at_few(node, layout, &few))
		return false;
	rd->full = few.n > 0 && to.n >= rd->batch->max_items;
	if (rd->full)
		return true;
	if (rd->batch->want_keys)
		take_few(rd, level, &few, true, &to);
	else
		take_few(rd, level, &few, false, &to);
	if (to.n - rd->batch->nitems < few.n && to.n < rd->batch->max_items)
		return false;
	if (!rd->rowex && !euno_lock_validate(&node->lock, version))
		*status = stale(rd, level, node);
	else if (to.ref != NO_ENTRY)
		gather_end(rd, level, &to);
	return true;
}

/* A leaf that may be outside of the range. */
static EunoStatus
take_edge(Read *rd, const ArtChild *leaf, uint32_t depth, bool at_edge,
		  bool end_edge)
{
	EunoStatus	status;
	ArtTail		tail;

	if (!compose(rd, leaf, depth, &tail))
		return EUNO_CORRUPT;
	if (end_edge && !inside(rd))
	{
		rd->ended = true;
		return EUNO_OK;
	}
	if (at_edge && !ahead(rd))
		return EUNO_OK;
	status = emit(rd, leaf, depth);
	if (status == EUNO_FULL)
	{
		rd->full = true;
		return EUNO_OK;
	}
	return status == EUNO_OK ? remember(rd, leaf, depth) : status;
}

/* The sign of path - bound in the bytes [from, to). */
static int
compare_path(const Read *rd, const ArtKey *bound, uint32_t from, uint32_t to)
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
static Frame *
new_frame(Read *rd)
{
	if (rd->nframes == STACK)
	{
		rd->truncated = true;
		rd->nframes--;
		memmove(rd->frames, rd->frames + 1, rd->nframes * sizeof(Frame));
	}
	return &rd->frames[rd->nframes];
}

/*
 * Fetches what will be read of a node at whose level the bound goes on: the child
 * there, which of a node with a slot for each byte art_fetch_node leaves out.
 */
static inline void
fetch_edge(const Read *rd, ArtRef ref, uint32_t level)
{
	const ArtLayout *layout = &euno_art_layouts[art_ref_type(ref)];
	const uint8_t *node = art_pointer(ref);
	uint8_t		byte = art_key_byte(&rd->at, level);
	uint32_t	at = layout->children + 8 * layout->words *
		art_place(layout->capacity, byte);

	art_fetch_node(ref, byte);
	euno_fetch(node + at);
}

/*
 * Enters a node.  The edges are those of the slot.  Nothing is entered if none
 * of the node is ahead, or if rd->ended is set: none is inside.
 */
static EunoStatus
enter(Read *rd, ArtRef ref, uint32_t depth, bool at_edge, bool end_edge)
{
	ArtNode    *node = art_pointer(ref);
	Frame	   *frame = new_frame(rd);
	uint32_t	level = art_ref_level(ref);
	int			sign = rd->forward ? 1 : -1;

	if (level < depth || level >= ART_MAX_COMPOSITE)
		return EUNO_CORRUPT;
	if (at_edge)
		fetch_edge(rd, ref, level);
	euno_art_path_copy(node, depth, rd->key.bytes);
	if (!rd->rowex &&
		begin_node(rd, node, level, &frame->version) != EUNO_OK)
		return EUNO_STALE;
	if (!rd->rowex &&
		!(rd->nframes > 0 ? frame_valid(rd, frame - 1) :
		  euno_lock_validate(rd->lock, rd->version)))
		return stale(rd, depth > 0 ? depth - 1 : 0,
					 rd->nframes > 0 ? frame[-1].node : NULL);
	if (at_edge)
	{
		int			c = compare_path(rd, &rd->at, depth, level) * sign;

		if (c < 0)
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
 * Fetches a child, all of it if it is a LIST, else its beginning.  Lines that were
 * asked for, or that will be.
 */
static inline uint32_t
prefetch(ArtRef ref)
{
	const uint8_t *p = art_pointer(ref);
	uint32_t	size = 64;

	if ((ref & ART_TAG_INLINE) != 0)
		return 0;
	if (art_is_node(ref) && art_ref_type(ref) <= ART_LAST_LIST)
		size = euno_art_layouts[art_ref_type(ref)].size;
	else if (art_is_node(ref))
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
 * Fetches some of the children that come next, up to one with the byte "end": as
 * many as a batch may want, if they were full.
 */
static void
fetch_ahead(Read *rd, Frame *frame, int end)
{
	int			step = rd->forward ? 1 : -1;
	int			byte = frame->next;
	uint32_t	room = rd->batch->max_items - rd->batch->nitems;
	uint32_t	entries = 0;

	if (rd->batch->max_items == 1 || (byte - frame->ahead) * step < 0)
		return;
	for (uint32_t lines = 0; lines < AHEAD && entries < room;)
	{
		ArtRef		ref;

		byte = next_byte(frame, byte, rd->forward);
		if (byte < 0 || (byte - end) * step > 0)
		{
			byte = rd->forward ? 256 : -1;
			break;
		}
		ref = euno_load64_acquire(frame_slot(frame, byte));
		entries += art_is_node(ref) ?
			euno_art_layouts[art_ref_type(ref)].capacity : 1;
		lines += 1 + prefetch(ref);
		byte += step;
	}
	frame->ahead = byte;
}

/*
 * Goes on in the top node: adds its leaves to the batch up to a child that is
 * a node, and enters that; at the end, leaves the node.
 */
static EunoStatus
advance(Read *rd)
{
	Frame	   *frame = &rd->frames[rd->nframes - 1];
	int			step = rd->forward ? 1 : -1;
	int			at_byte = frame->at_edge ? art_key_byte(&rd->at, frame->level) : -1;
	int			end_byte = frame->end_edge ?
		art_key_byte(&rd->end, frame->level) : rd->forward ? 256 : -1;
	uint32_t	room = rd->batch->max_items - rd->batch->nitems;
	EunoStatus	status;
	int			byte;

	if (room > RUN)
		room = RUN;
	while ((byte = next_byte(frame, frame->next, rd->forward)) >= 0)
	{
		bool		at_edge = byte == at_byte;
		bool		end_edge = frame->end_edge && byte == end_byte;
		const ArtRef *slot = frame_slot(frame, byte);
		ArtRef		ref;

		if ((byte - end_byte) * step > 0)
		{
			status = flush(rd, frame);
			rd->ended = status == EUNO_OK && !rd->full;
			return status;
		}
		ref = euno_load64_acquire(slot);
		if (art_is_absent(ref))
		{
			frame->next = byte + step;
			continue;
		}
		if (!art_is_node(ref) && !at_edge && !end_edge)
		{
			if (rd->nrun == 0 && rd->forward)
			{
				frame->next = byte;
				status = gather(rd, frame, end_byte);
				if (status != EUNO_OK || rd->full)
					return status;
				if (frame->next > byte)
					continue;
			}
			frame->next = byte + step;
			(void) prefetch(ref);
			rd->run_bytes[rd->nrun] = (uint8_t) byte;
			rd->run[rd->nrun++] = art_child(ref, slot);
			if (rd->nrun >= room)
				return flush(rd, frame);
			continue;
		}
		status = flush(rd, frame);
		if (status != EUNO_OK || rd->full)
			return status;
		if (!frame_valid(rd, frame))
			return stale(rd, frame->level, frame->node);
		frame->next = byte + step;
		rd->key.bytes[frame->level] = (uint8_t) byte;
		if (!art_is_node(ref))
		{
			ArtChild	leaf = art_child(ref, slot);

			return take_edge(rd, &leaf, frame->level + 1, at_edge, end_edge);
		}
		fetch_ahead(rd, frame, end_byte);
		if (!at_edge && !end_edge && gather_few(rd, frame, ref, &status))
		{
			if (status != EUNO_OK || rd->full)
				return status;
			continue;
		}
		return enter(rd, ref, frame->level + 1, at_edge, end_edge);
	}
	status = flush(rd, frame);
	if (status != EUNO_OK || rd->full)
		return status;
	rd->nframes--;
	return frame_valid(rd, frame) ? EUNO_OK :
		stale(rd, frame->level, frame->node);
}

/* The bound behind all of the node that was the lowest on the stack. */
static bool
bound_behind(Read *rd)
{
	uint32_t	len = rd->frames[0].level;

	memcpy(rd->at.bytes, rd->key.bytes, len);
	if (rd->forward)
		return euno_art_key_after(&rd->at, len);
	while (len > 0 && rd->at.bytes[len - 1] == 0)
		len--;
	euno_art_key_set(&rd->at, len);
	return len > 0;
}

/* Enters the tree at the root. */
static EunoStatus
enter_root(Read *rd, EunoTree *tree)
{
	ArtBody    *body = art_body(tree);
	uint32_t	weight;
	ArtRef		ref;
	ArtChild	leaf;

	rd->cx->counters.descents++;
	weight = euno_sample_weight(rd->cx, tree);
	if (weight > 0)
		euno_art_sample(rd->cx, tree, &rd->at, true, weight);
	rd->truncated = false;
	rd->nframes = 0;
	rd->lock = &body->root_lock;
	euno_art_key_position(rd->stop, &rd->end);
	if (!rd->rowex && !art_read_lock(rd->cx, tree, rd->lock, &rd->version,
									 &rd->key, ART_PATH, 0, NULL))
		return EUNO_STALE;		/* canceled */
	ref = euno_load64_acquire(&body->root);
	if (!rd->rowex && !euno_lock_validate(rd->lock, rd->version))
		return euno_art_stale(rd->cx, tree, &rd->key, ART_PATH, 0, NULL);
	if (art_is_node(ref))
		return enter(rd, ref, 0, true, true);
	leaf = art_child(ref, &body->root);
	return art_is_absent(ref) ? EUNO_OK : take_edge(rd, &leaf, 0, true, true);
}

/* Reads on until the batch is full or the range has ended. */
static EunoStatus
read_on(Read *rd, EunoTree *tree)
{
	EunoStatus	status = EUNO_OK;

	while (!rd->ended && !rd->full)
	{
		if (rd->nframes > 0)
			status = advance(rd);
		else if (!rd->truncated || !bound_behind(rd))
			rd->ended = true;
		else
			status = enter_root(rd, tree);
		if (status != EUNO_OK)
			return status;
	}
	return EUNO_OK;
}

/* The batch's first entry has this key, and no payload. */
static inline void
put_key(EunoBatch *batch, const ArtKey *key)
{
	batch->keys[0].offset = 0;
	batch->keys[0].keylen = (uint16_t) key->len;
	batch->keys[0].payloadlen = 0;
	memcpy(batch->buf, key->bytes, key->len);
}

/* All that starts with this key, cut as in euno_art_key_position. */
static EunoStatus
read_prefix(Read *rd, EunoTree *tree, const EunoPosition *pos)
{
	uint32_t	len = pos->keylen < EUNO_MAX_ENTRY ? pos->keylen : EUNO_MAX_ENTRY;
	EunoStatus	status;
	ArtChild	leaf;
	ArtPlace	place;
	ArtTail		tail;
	bool		found;

	if (len > 0)
		memcpy(rd->at.bytes, pos->key, len);
	euno_art_key_set(&rd->at, len);
	status = rd->rowex ?
		art_descend(rd->cx, tree, &rd->at, true, true, false, &place) :
		art_descend(rd->cx, tree, &rd->at, false, true, false, &place);
	if (status != EUNO_OK)
		return status;
	if (place.where == ART_AT_LEAF && !art_is_absent(place.ref))
	{
		leaf = art_child(place.ref, place.slot);
		if ((!rd->batch->want_keys || rd->at.len <= rd->batch->buf_size) &&
			art_leaf_match(&leaf, place.depth, &rd->at, rd->batch->want_keys,
						   &found, rd->batch->tids))
		{
			if (rd->batch->want_keys && found)
				put_key(rd->batch, &rd->at);
			rd->batch->nitems = found;
			rd->ended = true;
			return EUNO_OK;
		}
		if (!euno_art_leaf_tail(&leaf, place.depth, &tail))
			return EUNO_CORRUPT;
		rd->ended = true;
		if (euno_art_leaf_mismatch(&tail, place.depth, &rd->at) < rd->at.len)
			return EUNO_OK;
		memcpy(rd->key.bytes, rd->at.bytes, place.depth);
		status = emit(rd, &leaf, place.depth);
		return status == EUNO_FULL ? EUNO_OK : status;
	}
	rd->ended = place.where != ART_AT_TREE;
	if (rd->ended)
		return EUNO_OK;
	memcpy(rd->key.bytes, rd->at.bytes, place.depth);
	rd->lock = place.lock;
	rd->version = place.version;
	rd->tree = tree;
	rd->prefix = true;
	status = enter(rd, place.ref, place.depth, false, false);
	return status == EUNO_OK ? read_on(rd, tree) : status;
}

/* The position beside an entry: behind it, or just before it. */
static void
position_of(const ArtKey *key, bool behind, EunoPositionBuffer *pos)
{
	uint32_t	len = key->len - EUNO_TID_BYTES;

	memset(&pos->pos, 0, sizeof(pos->pos));
	memcpy(pos->data, key->bytes, len);
	pos->pos.key = pos->data;
	pos->pos.keylen = len;
	pos->pos.tid = euno_get_tid(key->bytes + len);
	if (behind && pos->pos.tid == EUNO_TID_MAX)
		pos->pos.side = 1;
	else if (behind)
		pos->pos.tid++;
}

/* Is the range all that starts with one key? */
static bool
is_prefix(const EunoCursor *cursor)
{
	const EunoPosition *lo = &cursor->lo;
	const EunoPosition *hi = &cursor->hi;

	return lo->side < 0 && hi->side > 0 && lo->keylen == hi->keylen &&
		(lo->key == hi->key || memcmp(lo->key, hi->key, lo->keylen) == 0);
}

/* Reads a batch; "start" is where from.  Tries again, in the end as ROWEX. */
static EunoStatus
read_batch(Read *rd, EunoTree *tree, const EunoPosition *start, bool prefix)
{
	EunoStatus	status;

	for (uint32_t attempts = 0;; attempts++)
	{
		rd->rowex = art_body(tree)->rowex || attempts >= ART_PATIENCE;
		rd->ended = rd->full = rd->truncated = false;
		rd->used = rd->nframes = rd->nrun = 0;
		rd->batch->nitems = 0;
		if (prefix)
			status = read_prefix(rd, tree, start);
		else
		{
			euno_art_key_position(start, &rd->at);
			rd->tree = tree;
			rd->prefix = false;
			status = enter_root(rd, tree);
			if (status == EUNO_OK)
				status = read_on(rd, tree);
		}
		if (status == EUNO_OK)
			return status;
		rd->cx->counters.restarts++;
		if (status != EUNO_STALE)
			return status;
		if (rd->batch->nitems > 0)
			return EUNO_OK;
		if (euno_is_canceled(rd->cx->env))
			return EUNO_CANCELED;
	}
}

/*
 * Reads the next batch of a range.  See EunoTreeOps and EunoCursor.  No locks
 * on entry or return.
 */
EunoStatus
euno_art_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			  bool forward, EunoBatch *batch)
{
	bool		first = !cursor->started;
	const EunoPosition *start;
	EunoStatus	status;
	bool		prefix;
	Read		rd;

	batch->nitems = 0;
	if (!euno_cursor_turn(cursor, forward))
		return EUNO_OK;
	rd.cx = cx;
	rd.batch = batch;
	rd.forward = forward;
	if (forward)
		start = cursor->at_lo ? &cursor->lo : &cursor->left.pos;
	else
		start = cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	prefix = first && is_prefix(cursor);
	if (prefix)
		start = &cursor->lo;
	euno_epoch_enter(cx->process);
	rd.stop = forward ? &cursor->hi : &cursor->lo;
	status = read_batch(&rd, tree, start, prefix);
	euno_epoch_exit(cx->process);
	if (status != EUNO_OK)
		batch->nitems = 0;
	else if (forward)
	{
		cursor->at_hi = rd.ended;
		if (!rd.ended)
			position_of(&rd.last, true, &cursor->right);
	}
	else
	{
		cursor->at_lo = rd.ended;
		if (!rd.ended)
			position_of(&rd.last, false, &cursor->left);
	}
	return status;
}
