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

/* A path that is copied in whole words, and the room that it takes with an INLINE. */
#define SHORT_PATH	24
#define SHORT_ROOM	48

typedef struct Frame
{
	ArtNode    *node;
	uint64_t	version;
	const ArtRef *slots;
	uint32_t	words;			/* of a slot */
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

static inline void
store_word(uint8_t *p, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	memcpy(p, &word, 8);
}

/* The composite of an INLINE below a short path.  SHORT_ROOM bytes are written. */
static inline void
put_inline(uint8_t *to, const uint8_t *path, uint32_t depth,
		   const ArtChild *leaf)
{
	memcpy(to, path, SHORT_PATH);
	store_word(to + depth, leaf->ref);
	store_word(to + depth + 7, leaf->more[0]);
	store_word(to + depth + 15, leaf->more[1]);
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

/*
 * Adds what is INLINE in the frame's node from its next byte on to the batch, up
 * to a child that is something else, the byte "end", or the last item that fits:
 * where most entries of most scans are read.  Forward, below a short path.
 */
static inline __attribute__((always_inline)) EunoStatus
gather(Read *rd, Frame *frame, int end, bool keys)
{
	EunoBatch  *batch = rd->batch;
	uint32_t	depth = frame->level + 1;
	uint32_t	used = rd->used;
	uint32_t	n = batch->nitems;
	int			byte = frame->next;
	int			last = -1;
	ArtChild	leaf = {0};

	for (; n < batch->max_items; byte++)
	{
		uint32_t	count;
		const ArtRef *slot;
		ArtRef		ref;

		byte = next_byte(frame, byte, true);
		if (byte < 0 || byte >= end)
			break;
		slot = frame_slot(frame, byte);
		ref = euno_load64_acquire(slot);
		if (art_is_absent(ref))
			continue;
		count = art_inline_count(ref);
		if ((ref & ART_TAG_MASK) != ART_TAG_INLINE ||
			count < EUNO_TID_BYTES || count > art_inline_max(ART_WORDS) ||
			(keys && used + SHORT_ROOM > batch->buf_size))
			break;
		leaf = art_child(ref, slot);
		last = byte;
		if (keys)
		{
			EunoItemKey *item = &batch->keys[n];

			rd->key.bytes[frame->level] = (uint8_t) byte;
			put_inline(batch->buf + used, rd->key.bytes, depth, &leaf);
			item->offset = used;
			item->keylen = (uint16_t) (depth + count - EUNO_TID_BYTES);
			item->payloadlen = 0;
			used += ALIGN8(item->keylen);
		}
		batch->tids[n++] = art_inline_bytes(&leaf, count, EUNO_TID_BYTES);
	}
	frame->next = byte < 0 ? 256 : byte;
	if (last < 0)
		return EUNO_OK;
	if (!frame_valid(rd, frame))
		return stale(rd, frame->level, frame->node);
	batch->nitems = n;
	rd->used = used;
	rd->full = n >= batch->max_items;
	rd->key.bytes[frame->level] = (uint8_t) last;
	put_inline(rd->last.bytes, rd->key.bytes, depth, &leaf);
	rd->last.len = depth + art_inline_count(leaf.ref);
	return EUNO_OK;
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
 * there, and some of those that come next.
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
	if (layout->size <= ART_SMALL)
		return;
	for (uint32_t line = 0; line < 4; line++)
	{
		at += rd->forward ? 64 : -64;
		if (at < layout->size)
			euno_fetch(node + at);
	}
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
	if (!rd->rowex)
	{
		uint64_t	word = euno_load64_acquire(&node->lock.word);

		if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
			word = wait_free(rd, level, node);
		frame->version = word;
		if ((word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) != 0)
			return stale(rd, level, node);
	}
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

/* Fetches some of the children that come next. */
static void
fetch_ahead(Read *rd, Frame *frame)
{
	int			step = rd->forward ? 1 : -1;
	int			byte = frame->next;

	if (rd->batch->max_items == 1 || (byte - frame->ahead) * step < 0)
		return;
	for (uint32_t lines = 0; lines < AHEAD;)
	{
		byte = next_byte(frame, byte, rd->forward);
		if (byte < 0)
			break;
		lines += 1 + prefetch(euno_load64_acquire(frame_slot(frame, byte)));
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
			if (rd->nrun == 0 && rd->forward && frame->level < SHORT_PATH)
			{
				frame->next = byte;
				status = rd->batch->want_keys ?
					gather(rd, frame, end_byte, true) :
					gather(rd, frame, end_byte, false);
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
		fetch_ahead(rd, frame);
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
		if (!rd->batch->want_keys &&
			art_leaf_match(&leaf, place.depth, &rd->at, false, &found,
						   rd->batch->tids))
		{
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
