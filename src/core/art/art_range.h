/*-------------------------------------------------------------------------
 *
 * art_range.h
 *	  What the files share that read ranges of a radix tree.
 *
 * art_point.c		one key, or several: the short way
 * art_read.c		a batch: from the root, or from where one key's way ends
 * art_range.c		the nodes on the path, and their children in order
 * art_gather.c		the leaves of one node, and of small ones below it, at once
 * art_take.c		one leaf
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_RANGE_H
#define ART_RANGE_H

#include "core/art/art_match.h"
#include "core/art/art_search.h"

/* Nodes on the stack.  A deeper path is entered again from the root. */
#define ART_STACK	16

/* A path that is copied in whole words. */
#define ART_SHORT_PATH	24

typedef struct ArtFrame
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
} ArtFrame;

typedef struct ArtRead
{
	EunoContext *cx;
	EunoTree   *tree;
	EunoBatch  *batch;
	bool		forward;
	bool		rowex;
	bool		ended;			/* nothing is left of the range */
	bool		full;			/* the batch is to end here */
	bool		truncated;		/* frames at the bottom were given up */
	uint32_t	used;			/* of batch->buf */
	uint32_t	nframes;
	const EunoPosition *stop;	/* the range's end */
	EunoLock   *lock;			/* of the slot that the lowest frame is from */
	uint64_t	version;
	ArtFrame	frames[ART_STACK];
	ArtKey		key;			/* the path; then the entry being copied */
	ArtKey		at;				/* the bound */
	ArtKey		end;			/* of the range, in the direction of the read */
	ArtKey		last;			/* the last entry of the batch; or the path to
								 * its leaf, if there is one here: */
	ArtChild	last_leaf;
} ArtRead;

/*
 * Puts into the batch, as its entry n, one of which the path has "depth" bytes,
 * and the leaf these.  With "keys" its key and payload go to *used.  False:
 * there is no room for them, or it is no entry; nothing counts then.
 */
static inline __attribute__((always_inline)) bool
art_put_entry(EunoBatch *batch, uint32_t n, uint32_t *used, bool keys,
			  const uint8_t *path, uint32_t depth, const ArtTail *tail)
{
	uint32_t	keylen = depth + tail->n - EUNO_TID_BYTES;
	uint8_t		tid[EUNO_TID_BYTES];

	if ((int32_t) keylen < 0 || keylen > EUNO_MAX_ENTRY)
		return false;
	if (tail->n >= EUNO_TID_BYTES)
		euno_copy_out(tid, tail->bytes + tail->n - EUNO_TID_BYTES,
					  EUNO_TID_BYTES);
	else
	{
		uint32_t	above = EUNO_TID_BYTES - tail->n;

		memcpy(tid, path + depth - above, above);
		euno_copy_out(tid + above, tail->bytes, tail->n);
	}
	batch->tids[n] = euno_get_tid(tid);
	if (keys)
	{
		uint32_t	at = *used;
		uint32_t	payload_at = at + euno_align8(keylen);
		uint32_t	end = payload_at + euno_align8(tail->payload_len);
		uint8_t    *to = batch->buf + at;

		if (end > batch->buf_size)
			return false;
		if (depth <= ART_SHORT_PATH && at + ART_SHORT_PATH <= batch->buf_size)
			memcpy(to, path, ART_SHORT_PATH);
		else
			memcpy(to, path, depth < keylen ? depth : keylen);
		if (keylen > depth)
			euno_copy_out(to + depth, tail->bytes, keylen - depth);
		if (tail->payload_len > 0)
			euno_copy_out(batch->buf + payload_at, tail->payload,
						  tail->payload_len);
		batch->keys[n] = (EunoItemKey) {at, (uint16_t) keylen,
			(uint16_t) tail->payload_len};
		*used = end;
	}
	return true;
}

/* Where a key's way down has ended, or has come to; without versions. */
typedef struct ArtLookup
{
	ArtRef		ref;			/* what the slot held */
	const ArtRef *slot;
	uint32_t	depth;
} ArtLookup;

/* art_point.c */
extern EunoStatus euno_art_read_key(EunoContext *cx, EunoTree *tree,
									EunoCursor *cursor, bool forward,
									EunoBatch *batch);

/* art_read.c */
extern EunoStatus euno_art_read_below(EunoContext *cx, EunoTree *tree,
									  EunoCursor *cursor, bool forward,
									  const ArtKey *key, const ArtLookup *at,
									  EunoBatch *batch);

/* art_take.c */
extern EunoStatus euno_art_take(ArtRead *rd, const ArtChild *leaf,
								uint32_t depth);
extern EunoStatus euno_art_take_edge(ArtRead *rd, const ArtChild *leaf,
									 uint32_t depth, bool at_edge,
									 bool end_edge);
extern EunoStatus euno_art_take_last(ArtRead *rd);

/* art_gather.c */
extern EunoStatus euno_art_gather(ArtRead *rd, ArtFrame *frame, int end);

/* art_range.c */
extern EunoStatus euno_art_read_stale(ArtRead *rd, uint32_t level,
									  const ArtNode *node)
			__attribute__((cold));
extern uint64_t euno_art_read_wait(ArtRead *rd, uint32_t level,
								   ArtNode *node) __attribute__((cold));
extern EunoStatus euno_art_enter(ArtRead *rd, ArtRef ref, uint32_t depth,
								 bool at_edge, bool end_edge);
extern EunoStatus euno_art_advance(ArtRead *rd);

/* The next byte at or beyond "from" that has a slot; -1 if none. */
static inline int
art_next_byte(const ArtFrame *frame, int from, bool forward)
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
art_frame_slot(const ArtFrame *frame, int byte)
{
	return frame->slots + frame->places[byte] * frame->words;
}

/* Is what was read in the node to be believed? */
static inline bool
art_frame_valid(const ArtRead *rd, const ArtFrame *frame)
{
	return rd->rowex || euno_lock_validate(&frame->node->lock, frame->version);
}

/* A node's version; EUNO_STALE: that is none to read at. */
static inline EunoStatus
art_begin_node(ArtRead *rd, ArtNode *node, uint32_t level, uint64_t *version)
{
	uint64_t	word = euno_load64_acquire(&node->lock.word);

	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
		word = euno_art_read_wait(rd, level, node);
	*version = word;
	if ((word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) != 0)
		return euno_art_read_stale(rd, level, node);
	return EUNO_OK;
}

#endif							/* ART_RANGE_H */
