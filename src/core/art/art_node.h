/*-------------------------------------------------------------------------
 *
 * art_node.h
 *	  What the adaptive radix tree looks like in shared memory.
 *
 * After "The Adaptive Radix Tree" (ICDE 2013) and "The ART of Practical
 * Synchronization" (DaMoN 2016), section 2.  The tree is a trie over the
 * composites (key || TID) of euno_core.h, which are prefix-free.
 *
 * An inner node branches on composite byte number "level".  The bytes before
 * it, its path, are the same in everything below the node and are stored in
 * it: the last 8 in "window", all of them behind the children if there are
 * more.  Level and path never change, so a prefix never has to be truncated
 * when a node is put above (DaMoN 2016, figure 4), and a key can always be
 * read off the path.
 *
 * References
 *	  0			nothing.
 *	  NODE		an inner node.
 *	  INLINE	a TID, where the path spells the whole key.  "over" counts the
 *		TID's bytes that the path spells too.
 *	  SINGLE	the composite of one entry without payload, and its length.
 *		Constant.  With DEAD: removed; compact takes it away.
 *	  BUCKET	a sorted run of entries that share a prefix.
 *
 * Buckets
 *	  ART proper has one leaf per entry.  We expand lazily a little longer: a
 *	  set of entries becomes an inner node when it no longer fits a bucket.
 *	  Right behind the header is what all of the bucket's entries have in
 *	  common ("prefix"), which always covers the path that leads there.  Then
 *	  FIXED		(width > 0) all composites are equally long and there are no
 *		payloads: n suffixes of "width" bytes, in order.
 *	  VARIED	(width = 0) off[n + 1] (2-byte aligned, offsets in the bucket),
 *		then the entries: uint16 length of payload, suffix, payload.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_NODE_H
#define ART_NODE_H

#include "core/euno_core.h"
#include "core/euno_lock.h"

/* The longest composite. */
#define ART_MAX_COMPOSITE	(EUNO_MAX_ENTRY + EUNO_TID_BYTES)

#define ART_BUCKET_MAX		4096	/* bytes */
#define ART_BUCKET_ENTRIES	512

/*
 * So many entries that differ in one byte each, the last of their keys, make
 * a node of TIDs rather than a bucket.
 */
#define ART_DENSE			128

typedef uint64_t ArtRef;

typedef enum ArtTag
{
	ART_NODE,
	ART_INLINE,
	ART_SINGLE,
	ART_BUCKET
} ArtTag;

#define ART_TAG_MASK		UINT64_C(3)
#define ART_DEAD			UINT64_C(4)
#define ART_OVER_SHIFT		4
#define ART_TID_SHIFT		16
#define ART_LEN_SHIFT		48
#define ART_POINTER_MASK	UINT64_C(0x0000FFFFFFFFFFF0)

typedef enum ArtType
{
	ART_N4,
	ART_N16,
	ART_N48,
	ART_N256
} ArtType;

typedef struct ArtNode
{
	EunoLock	lock;
	uint64_t	window;			/* constant: path[level - 8 .. level), the
								 * first byte on top */
	uint16_t	level;			/* constant */
	uint16_t	used;			/* children slots given out; not N256 */
	uint8_t		type;			/* constant: ArtType */
	uint8_t		pad[3];

	/*
	 * N4, N16: keys (in order of arrival), children.  N48: for each byte the
	 * slot's number plus 1, children.  N256: children.  Then the path, if it
	 * is longer than the window.
	 */
	uint8_t		body[];
} ArtNode;

#define ART_NODE_HEADER		24

_Static_assert(offsetof(ArtNode, body) == ART_NODE_HEADER, "header of a node");

typedef struct ArtBucket
{
	EunoLock	lock;
	uint16_t	n;
	uint16_t	prefix_len;
	uint16_t	width;
	uint16_t	units;			/* constant: size in 16 bytes */
} ArtBucket;

#define ART_BUCKET_HEADER	16

_Static_assert(sizeof(ArtBucket) == ART_BUCKET_HEADER, "header of a bucket");

/* What has been unlinked, and waits until nobody can see it. */
#define ART_LIMBO_SIZE		1024
#define ART_LIMBO_ITEMS		((ART_LIMBO_SIZE - 24) / 8)

typedef struct ArtLimbo
{
	struct ArtLimbo *next;
	uint64_t	epoch;			/* set when the block is full */
	uint64_t	n;
	uint64_t	items[ART_LIMBO_ITEMS];	/* pointer, size / 16 << 48 */
} ArtLimbo;

_Static_assert(sizeof(ArtLimbo) == ART_LIMBO_SIZE, "a block of limbo");

#define ART_STRIPES		16

typedef struct ArtStripe
{
	uint64_t	entries;
	uint64_t	leaves;
	uint64_t	inners;
	uint8_t		pad[40];
} ArtStripe;

/* EunoTree.body */
typedef struct ArtBody
{
	EunoLock	root_lock;		/* for the slot below, like a node's lock */
	ArtRef		root;
	uint8_t		pad0[48];

	/* written under the mutex; closed is looked at without */
	EunoLock	limbo_mutex;
	ArtLimbo   *open;			/* is being filled */
	ArtLimbo   *spare;			/* empty ones */
	ArtLimbo   *closed;			/* oldest first */
	ArtLimbo   *closed_tail;
	uint64_t	limbo_free;		/* items that fit open and spare and that
								 * nobody has reserved */
	uint8_t		pad1[16];

	/* counters, and where compact goes on; under its mutex */
	uint64_t	splits;
	uint64_t	merges;
	EunoLock	compact_mutex;
	uint32_t	compact_len;
	uint8_t		compact_at[36];

	ArtStripe	stripes[ART_STRIPES];
} ArtBody;

_Static_assert(sizeof(ArtBody) <= sizeof(((EunoTree *) 0)->body),
			   "the body must fit");

static inline ArtBody *
art_body(EunoTree *tree)
{
	return (ArtBody *) tree->body;
}

static inline ArtTag
art_tag(ArtRef ref)
{
	return (ArtTag) (ref & ART_TAG_MASK);
}

static inline bool
art_is_node(ArtRef ref)
{
	return ref != 0 && art_tag(ref) == ART_NODE;
}

static inline void *
art_pointer(ArtRef ref)
{
	return (void *) (uintptr_t) (ref & ART_POINTER_MASK);
}

static inline ArtRef
art_ref(const void *p, ArtTag tag)
{
	return (ArtRef) (uintptr_t) p | (ArtRef) tag;
}

/* Something that readers do not see: nothing, or what was removed. */
static inline bool
art_is_absent(ArtRef ref)
{
	return ref == 0 || (art_tag(ref) == ART_SINGLE && (ref & ART_DEAD) != 0);
}

static inline ArtRef
art_ref_inline(EunoTid tid, uint32_t over)
{
	return tid << ART_TID_SHIFT | (ArtRef) over << ART_OVER_SHIFT | ART_INLINE;
}

static inline uint32_t
art_inline_over(ArtRef ref)
{
	return (uint32_t) (ref >> ART_OVER_SHIFT) & 7;
}

/* Composite bytes of a SINGLE. */
static inline uint32_t
art_single_len(ArtRef ref)
{
	uint32_t	len = (uint32_t) (ref >> ART_LEN_SHIFT);

	return len <= ART_MAX_COMPOSITE ? len : ART_MAX_COMPOSITE;
}

#endif							/* ART_NODE_H */
