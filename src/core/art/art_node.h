/*-------------------------------------------------------------------------
 *
 * art_node.h
 *	  What the adaptive radix tree looks like in shared memory.
 *
 * After "The Adaptive Radix Tree" (ICDE 2013) and "The ART of Practical
 * Synchronization" (DaMoN 2016), section 2.  The tree is a trie over the
 * composites (key || TID) of euno_entry.h, which are prefix-free.
 *
 * An inner node branches on composite byte number "level".  Its path segment,
 * the bytes in front of that one which are the same in everything below, is
 * stored in it; it reaches up to the byte that its parent branches on, or
 * further.  Level and segment never change: a node that is put above another
 * changes nothing in that one.
 *
 * Nodes
 *	  LIST	(up to 52 children) a byte for each slot, then the path segment, then
 *		the slots.
 *	  INDEX	(62 to 223) for each byte the child's slot plus 1, or 0, then the
 *		slots, then the path segment.
 *	  DIRECT (256) a child for each byte, then the path segment.
 *
 * A slot is one, two or three words, in all of a node alike.  In a LIST or
 * INDEX a child gets the free slot nearest to where its byte is among all
 * bytes, so that the slot can be fetched before it is known.  The first is a
 * reference.  The others hold what an INLINE has too many bytes for; they are
 * written before the first one is for the first time, and never again.  A slot
 * of a LIST or INDEX belongs to the byte that it was first given to until the
 * node is replaced.  Readers that validate nothing depend on both.
 *
 * The paper has nodes of 4, 16, 48 and 256.  The sizes in between are there
 * because of what trees of random keys are made of: their nodes of one level
 * are all about equally full, and so all of a wrong size at once.  A bulk load
 * and compact use all of them, nodes that grow some (art_insert.c).
 *
 * References
 *	  0			nothing.
 *	  NODE		an inner node, with its type and its level.
 *	  INLINE	the rest of a composite, if that is at most 7 bytes (15, 23 with
 *		the slot's other words) and there is no payload.
 *	  LEAF		a record of one entry, the length of its composite, and whether
 *		it has a payload.
 *	  With ABSENT set, an INLINE or LEAF has been removed.
 *
 * Leaf record (constant)
 *	  uint16 where in the composite the record's bytes begin (not behind the
 *	  byte that its parent branches on); if there is a payload, uint16 its
 *	  length; the composite's bytes from there on; the payload.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_NODE_H
#define ART_NODE_H

#include "core/euno_core.h"
#include "core/euno_lock.h"

/* The longest composite. */
#define ART_MAX_COMPOSITE	(EUNO_MAX_ENTRY + EUNO_TID_BYTES)

typedef uint64_t ArtRef;

#define ART_TAG_MASK		UINT64_C(3)
#define ART_TAG_NODE		UINT64_C(0)
#define ART_TAG_INLINE		UINT64_C(1)
#define ART_TAG_LEAF		UINT64_C(2)
#define ART_ABSENT			UINT64_C(4)
#define ART_NODE_MASK		UINT64_C(0x0000FFFFFFFFFFF0)
#define ART_RECORD_MASK		UINT64_C(0x0000FFFFFFFFFFF8)

/*
 * INLINE: bits 3-7 number of bytes, bits 8-63 the first 7 of them, the first
 * on top; the slot's other words have 8 each, the same way.
 */
#define ART_WORDS			3	/* of a slot, at most */
#define ART_COUNT_SHIFT		3
#define ART_COUNT_MASK		31

/*
 * NODE: bits 2 and 3 and bits 60-63 type, bits 48-59 level.
 * LEAF: bits 48-59 length, bit 60 has a payload.
 */
#define ART_PAYLOAD			(UINT64_C(1) << 60)
#define ART_HIGH_SHIFT		48
#define ART_TYPE_SHIFT		60
#define ART_HIGH_MASK		0xFFFU

/* An INLINE of no bytes that has been removed. */
#define ART_GONE			(ART_TAG_INLINE | ART_ABSENT)

_Static_assert(ART_MAX_COMPOSITE <= ART_HIGH_MASK, "lengths need 12 bits");

/*
 * Named after their capacity; N: one word a slot, W: two, V: three.  First all
 * that are a LIST, last the one that is DIRECT.
 */
typedef enum ArtType
{
	ART_N2, ART_N4, ART_N5, ART_N8, ART_N10, ART_N12, ART_N16, ART_N20,
	ART_N25, ART_N30, ART_N37, ART_N44, ART_N52,
	ART_W2, ART_W3, ART_W4, ART_W6, ART_W8, ART_W10, ART_W12, ART_W16,
	ART_W20, ART_W25, ART_W29, ART_W33, ART_W40, ART_W52,
	ART_V2, ART_V3, ART_V4, ART_V6, ART_V8, ART_V11, ART_V14, ART_V17,
	ART_V20, ART_V25, ART_V30, ART_V37, ART_V45, ART_V50,
	ART_W63, ART_W79, ART_W95, ART_W111, ART_W127, ART_W159, ART_W191,
	ART_W223,
	ART_V63, ART_V74, ART_V84, ART_V95, ART_V106, ART_V127, ART_V148,
	ART_N62, ART_N78, ART_N94, ART_N126,
	ART_N256
} ArtType;

#define ART_NTYPES	61
#define ART_LAST_LIST	ART_V50

_Static_assert(ART_N256 == ART_NTYPES - 1, "types need 6 bits");

/*
 * "children" is the offset without, "size" the size without a segment, and
 * "words" the size of a slot.
 */
typedef struct ArtLayout
{
	uint16_t	capacity;
	uint16_t	children;
	uint16_t	size;
	uint16_t	words;
} ArtLayout;

extern const ArtLayout euno_art_layouts[ART_NTYPES];

typedef struct ArtNode
{
	EunoLock	lock;
	uint32_t	shape;			/* constant: level, segment's length << 12,
								 * type << 24 */
	union
	{
		uint8_t		keys[4];	/* LIST: the first of them */
		uint32_t	used;		/* INDEX: slots that were given out */
	};
	uint8_t		body[];
} ArtNode;

#define ART_NODE_HEADER		16
#define ART_KEYS			12	/* offset of a LIST's keys */
#define ART_NODE_MAX		3840	/* bytes, without a segment */
#define ART_NO_SLOT			256 /* no slot's number */

_Static_assert(offsetof(ArtNode, body) == ART_NODE_HEADER, "header of a node");
_Static_assert(offsetof(ArtNode, keys) == ART_KEYS, "keys of a list");

/* What a slot holds. */
typedef struct ArtChild
{
	ArtRef		ref;
	uint64_t	more[ART_WORDS - 1];
} ArtChild;

/* What has been unlinked, and waits until nobody can see it. */
#define ART_LIMBO_SIZE		1024
#define ART_LIMBO_ITEMS		((ART_LIMBO_SIZE - 24) / 8)

typedef struct ArtLimbo
{
	struct ArtLimbo *next;
	uint64_t	epoch;			/* set when the block is full */
	uint64_t	n;
	uint64_t	items[ART_LIMBO_ITEMS];	/* pointer, size / 8 << 48 */
} ArtLimbo;

_Static_assert(sizeof(ArtLimbo) == ART_LIMBO_SIZE, "a block of limbo");

/*
 * What processes change at every operation, a line for each process or a few:
 * counters, and the limbo of what they have unlinked.
 */
#define ART_STRIPES		120

typedef struct ArtStripe
{
	EunoCounter	entries;		/* the own word: of the process of this number */
	uint64_t	inners;
	uint64_t	dropped;		/* inner nodes that compact and removers took out */

	/* written under the mutex; the blocks are looked for without */
	EunoLock	mutex;
	ArtLimbo   *blocks;			/* the first is being filled, others are empty */
	ArtLimbo   *closed;			/* the newest; its "next" is the oldest */
	uint64_t	room;			/* items that fit "blocks" and that nobody has
								 * reserved */
} ArtStripe;

_Static_assert(sizeof(ArtStripe) == 64, "a cache line");

/*
 * Where ascending keys crowd; a hint, of which one word may be older than the
 * other.  Composites count with this many bytes as the last byte of "where"
 * says, 0: there is no edge.  Behind it are those whose last 8 of these bytes
 * are "bytes" or greater; the ones before, which are alike, are known by the
 * hash of "where".
 */
typedef struct ArtEdge
{
	uint64_t	where;
	uint64_t	bytes;			/* if fewer than 8 count, zeros behind them */
} ArtEdge;

/* EunoTree.body */
typedef struct ArtBody
{
	EunoLock	root_lock;		/* for the slot below, like a node's lock */
	ArtRef		root;
	struct EunoHeatTable *heat; /* NULL until there are conflicts */
	bool		rowex;			/* constant */
	struct ArtNear *near;		/* art_near.h; NULL: there were none yet */
	uint64_t	stamp;			/* of all trees' since the server's start unlike any
								 * other; another one before a node is given back */
	ArtEdge		edge;

	EunoLock	near_mutex;		/* of whoever makes maps, and drops them */
	uint64_t	near_domains;	/* that shall have maps, as bits, and the first */

	uint64_t	loaded;			/* inner nodes */

	/* where compact goes on; under its mutex */
	EunoLock	compact_mutex;
	uint16_t	compact_len;
	bool		compact_past;
	uint8_t		compact_at[397];

	ArtStripe	stripes[ART_STRIPES] __attribute__((aligned(64)));
} ArtBody;

_Static_assert(offsetof(ArtBody, stripes) % 64 == 0, "a cache line each");
_Static_assert(sizeof(ArtBody) <= sizeof(((EunoTree *) 0)->body),
			   "the body must fit");

static inline ArtBody *
art_body(EunoTree *tree)
{
	return (ArtBody *) tree->body;
}

static inline bool
art_is_node(ArtRef ref)
{
	return ref != 0 && (ref & ART_TAG_MASK) == ART_TAG_NODE;
}

static inline bool
art_is_leaf(ArtRef ref)
{
	return (ref & ART_TAG_MASK) == ART_TAG_LEAF;
}

/* Something that readers do not see: nothing, or what was removed. */
static inline bool
art_is_absent(ArtRef ref)
{
	ArtRef		kind = ref & (ART_TAG_MASK | ART_ABSENT);

	return ref == 0 || kind == (ART_TAG_INLINE | ART_ABSENT) ||
		kind == (ART_TAG_LEAF | ART_ABSENT);
}

/* NODE */
static inline void *
art_pointer(ArtRef ref)
{
	return (void *) (uintptr_t) (ref & ART_NODE_MASK);
}

/* LEAF */
static inline void *
art_record(ArtRef ref)
{
	return (void *) (uintptr_t) (ref & ART_RECORD_MASK);
}

/* NODE */
static inline uint32_t
art_ref_level(ArtRef ref)
{
	return (uint32_t) (ref >> ART_HIGH_SHIFT) & ART_HIGH_MASK;
}

static inline ArtType
art_ref_type(ArtRef ref)
{
	return (ArtType) (ref >> ART_TYPE_SHIFT | (ref & 12) << 2);
}

/* A NODE, and of type ART_N256? */
static inline bool
art_is_direct(ArtRef ref)
{
	const ArtRef high = (ArtRef) 15 << ART_TYPE_SHIFT;
	const ArtRef type = (ArtRef) ART_N256 << ART_TYPE_SHIFT |
		(ArtRef) (ART_N256 >> 4) << 2;

	return (ref & (high | 12 | ART_TAG_MASK)) == (type | ART_TAG_NODE);
}

/* LEAF: length of the composite */
static inline uint32_t
art_leaf_len(ArtRef ref)
{
	return (uint32_t) (ref >> ART_HIGH_SHIFT) & ART_HIGH_MASK;
}

/* INLINE: number of bytes */
static inline uint32_t
art_inline_count(ArtRef ref)
{
	return (uint32_t) (ref >> ART_COUNT_SHIFT) & ART_COUNT_MASK;
}

/* The most bytes of an INLINE in a slot of this many words. */
static inline uint32_t
art_inline_max(uint32_t words)
{
	return 8 * words - 1;
}

static inline uint32_t
art_level(const ArtNode *node)
{
	return node->shape & ART_HIGH_MASK;
}

static inline uint32_t
art_segment_len(const ArtNode *node)
{
	return node->shape >> 12 & ART_HIGH_MASK;
}

static inline ArtType
art_type(const ArtNode *node)
{
	return (ArtType) (node->shape >> 24);
}

static inline ArtRef
art_node_ref(const ArtNode *node)
{
	return (ArtRef) (uintptr_t) node |
		(ArtRef) art_level(node) << ART_HIGH_SHIFT |
		(ArtRef) art_type(node) << ART_TYPE_SHIFT |
		(ArtRef) (art_type(node) >> 4) << 2;
}

/*
 * Is a NODE what its reference says, and its level one below a slot that so
 * many bytes lead to?  Else memory is damaged, and nothing is to be read by
 * the node's type, level and path.
 */
static inline bool
art_is_sound(ArtRef ref, uint32_t depth)
{
	const ArtNode *node = art_pointer(ref);
	uint32_t	level = art_ref_level(ref);

	return art_node_ref(node) == ref && level < ART_MAX_COMPOSITE &&
		level >= depth && level - art_segment_len(node) <= depth;
}

/* The path segment: the bytes [level - length, level). */
static inline const uint8_t *
art_segment_of(const ArtNode *node, ArtType type)
{
	return (const uint8_t *) node + (type <= ART_LAST_LIST ?
									 euno_art_layouts[type].children :
									 euno_art_layouts[type].size);
}

static inline const uint8_t *
art_segment(const ArtNode *node)
{
	return art_segment_of(node, art_type(node));
}

static inline uint32_t
art_segment_size(uint32_t len)
{
	return (len + 7) & ~7U;
}

static inline ArtRef *
art_children_of(ArtNode *node, ArtType type)
{
	uint32_t	at = euno_art_layouts[type].children;

	if (type <= ART_LAST_LIST)
		at += art_segment_size(art_segment_len(node));
	return (ArtRef *) ((uint8_t *) node + at);
}

static inline ArtRef *
art_children(ArtNode *node)
{
	return art_children_of(node, art_type(node));
}

/*
 * What a slot holds, that held this reference: all of a slot but that is
 * constant once there has been one.
 */
static inline ArtChild
art_child(ArtRef ref, const ArtRef *slot)
{
	ArtChild	child = {ref, {0, 0}};

	if ((ref & ART_TAG_MASK) == ART_TAG_INLINE)
	{
		if (art_inline_count(ref) > art_inline_max(1))
			child.more[0] = euno_load64(slot + 1);
		if (art_inline_count(ref) > art_inline_max(2))
			child.more[1] = euno_load64(slot + 2);
	}
	return child;
}

/* Bytes of a node. */
static inline size_t
art_node_size(ArtType type, uint32_t segment_len)
{
	return euno_art_layouts[type].size + (size_t) art_segment_size(segment_len);
}

#endif							/* ART_NODE_H */
