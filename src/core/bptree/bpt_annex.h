/*-------------------------------------------------------------------------
 *
 * bpt_annex.h
 *	  What the files of contended leaves share.
 *
 * The protocol and why it is right: src/README.md, "Contended leaves".
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_ANNEX_H
#define BPT_ANNEX_H

#include "core/bptree/bpt_make.h"

/*
 * Pauses while an annex is about to be emptied, before helping: some times
 * what that takes.  Pauses of the first round of waiting for a segment, each
 * round being twice as long, and rounds before going to sleep.  Tests make
 * them fewer.
 */
#ifndef BPT_CLOSING_PAUSES
#define BPT_CLOSING_PAUSES	4096
#define BPT_SEGMENT_PAUSES	32
#define BPT_SEGMENT_ROUNDS	6
#endif

/*
 * How entries are kept in an annex: composites without their first "base"
 * bytes, which are those of the leaf's low fence, "stride" bytes each; of
 * these, the first "hashed" are what is hashed: the key, or if the leaf has
 * few keys, all.
 */
typedef struct BptShape
{
	uint32_t	base;
	uint32_t	stride;
	uint32_t	hashed;
	uint32_t	slots;			/* of a segment */
} BptShape;

/* Where an entry belongs in an annex. */
typedef struct BptSpot
{
	uint32_t	segment;
	uint64_t	mark;			/* one bit */
	uint8_t		tag;
} BptSpot;

/* An annex, copied at one moment, its entries sorted. */
typedef struct BptAnnexCopy
{
	BptShape	shape;
	uint32_t	n;
	uint64_t	versions[BPT_SEGMENTS];
	uint64_t	marks[BPT_SEGMENTS];
	uint16_t	order[BPT_ANNEX_SLOTS];	/* entry's place in bytes, in strides */
	uint8_t		segment[BPT_ANNEX_SLOTS];	/* where it was, by place */
	uint8_t		tag[BPT_ANNEX_SLOTS];
	uint8_t		bytes[BPT_SEGMENTS * BPT_SEGMENT_ROOM];
} BptAnnexCopy;

static inline uint64_t
bpt_shape_word(const BptShape *shape)
{
	return (uint64_t) shape->base | (uint64_t) shape->stride << 16 |
		(uint64_t) shape->hashed << 32;
}

/*
 * The shape of an annex; whatever is read, the fields go together and nothing
 * leaves a segment.
 */
static inline void
bpt_shape(const BptAnnex *annex, BptShape *shape)
{
	uint64_t	word = euno_load64(&annex->shape);

	shape->base = word & 0xFFFF;
	shape->stride = word >> 16 & 0xFFFF;
	shape->hashed = word >> 32 & 0xFFFF;
	shape->slots = shape->stride == 0 ? 0 : BPT_SEGMENT_ROOM / shape->stride;
	if (shape->slots > BPT_SEGMENT_SLOTS)
		shape->slots = BPT_SEGMENT_SLOTS;
}

/* "suffix" is private memory. */
static inline void
bpt_spot(const BptShape *shape, const uint8_t *suffix, BptSpot *spot)
{
	uint64_t	h = UINT64_C(0x9E3779B97F4A7C15);
	uint32_t	n = shape->hashed;

	for (; n > 8; n -= 8, suffix += 8)
		h = ((h ^ euno_get_word(suffix)) * UINT64_C(0xD6E8FEB86659FD93)) ^ h >> 32;
	for (; n > 0; n--, suffix++)
		h = (h ^ *suffix) * UINT64_C(0xD6E8FEB86659FD93);
	h ^= h >> 32;
	h *= UINT64_C(0xD6E8FEB86659FD93);
	spot->segment = (uint32_t) (h >> 56) % BPT_SEGMENTS;
	spot->mark = UINT64_C(1) << (h >> 48 & 63);
	spot->tag = (uint8_t) (h >> 40);
}

/* All slots that may be used. */
static inline uint64_t
bpt_slot_mask(const BptShape *shape)
{
	return (UINT64_C(1) << shape->slots) - 1;
}

/*
 * Is the leaf still at the place's version?  (A private copy may be valid and
 * the leaf have gone on; what is in the annex must be of the same moment.)
 */
static inline bool
bpt_current(const BptPlace *place)
{
	return euno_lock_validate(&place->leaf->lock, place->version);
}

/* The leaf's annex; NULL if it has none (any more). */
static inline BptAnnex *
bpt_annex(const BptLeaf *leaf)
{
	return euno_load_ptr_acquire(&leaf->annex);
}

/*
 * Does nothing for a while, which each round is twice as long, up to a point.
 */
static inline void
bpt_pause(uint32_t round)
{
	uint32_t	n = BPT_SEGMENT_PAUSES;

	n <<= round < BPT_SEGMENT_ROUNDS ? round : BPT_SEGMENT_ROUNDS;
	while (n-- > 0)
		euno_pause();
}

/*
 * Waits a while for a segment to be unlocked, looking at its lock less and
 * less often: each look takes the line from whoever is to unlock it.
 */
static inline void
bpt_segment_wait(const BptSegment *segment)
{
	for (uint32_t round = 0; round < BPT_SEGMENT_ROUNDS &&
		 (euno_load64(&segment->lock.word) & EUNO_LOCK_LOCKED) != 0; round++)
	{
		bpt_pause(round);
	}
}

/*
 * To read one segment: begin, read, and again as long as the end says so.
 * After some tries it is locked meanwhile.  "tries" is 0 at first.  With
 * "may_leave", for callers who hold nothing, false if the operation was
 * canceled: nothing is locked, and there is no end.
 */
static inline bool
bpt_segment_begin(EunoContext *cx, BptSegment *segment, bool may_leave,
				  uint32_t *tries, uint64_t *version)
{
	if ((*tries)++ > BPT_PATIENCE)
	{
		*version = 0;
		return may_leave ?
			euno_lock_acquire_or_leave(&segment->lock, cx->env,
									   &cx->counters) :
			euno_lock_acquire(&segment->lock, cx->env, &cx->counters);
	}
	if (*tries > 1)
	{
		cx->counters.leaf_retries++;
		bpt_pause(*tries - 1);
	}
	euno_prefetch(&segment->used);
	bpt_segment_wait(segment);
	return may_leave ?
		euno_lock_read_or_leave(&segment->lock, version, cx->env,
								&cx->counters) :
		euno_lock_read(&segment->lock, version, cx->env, &cx->counters);
}

static inline bool
bpt_segment_end(EunoContext *cx, BptSegment *segment, uint64_t version,
				uint32_t tries)
{
	if (tries <= BPT_PATIENCE + 1)
		return euno_lock_validate(&segment->lock, version);
	euno_lock_release_unchanged(&segment->lock, cx->env);
	return true;
}

/* bpt_mode.c */
extern EunoStatus euno_bpt_fold(EunoContext *cx, EunoTree *tree,
								BptLeaf *leaf, bool calm, BptImage *raw);
extern bool euno_bpt_annex_merge(BptWork *work, const BptLeaf *leaf,
								 const BptAnnexCopy *s);

#endif							/* BPT_ANNEX_H */
