/*-------------------------------------------------------------------------
 *
 * bpt_node.h
 *	  What the Euno-B+Tree looks like in shared memory.
 *
 * A leaf covers the range [low fence, high fence) of composites.  Its low
 * fence never changes while it lives; its high fence is the low fence of its
 * right neighbor (none: plus infinity).  "Prefix" is what its two fences have
 * in common; entries are stored without it.
 *
 * Leaf formats
 *	  FIXED		all composites are equally long and there is no payload.  Two
 *		arrays: head[], the first 8 bytes after the prefix as a number, and
 *		tail[], the rest of each.  An entry may fill several slots in a row:
 *		that is how room is left between entries, so that each can stay near
 *		the place that its key suggests, and an insertion moves few of them.
 *	  SLOTTED	head[] as above; off[], the place of each slot's record.  A
 *		record holds the rest of the composite of its first TID, the payload,
 *		and a list of further TIDs of the same key.
 *	  OPAQUE	COMPARE order.  As SLOTTED, but head[] holds the first TIDs, above
 *		each a hash of 16 bits of the key, and the records hold the whole keys.
 *
 * A record: uint16 length of the composite after the prefix (OPAQUE: of the
 * key) and two flags; with PAYLOAD: uint16 length; with LIST: uint8 number of
 * further TIDs, uint16 bytes of list; then tail, payload, list.
 *
 * A contended leaf has an *annex*: segments, each on cache lines of its own
 * with a lock of its own, to which entries are put unsorted (Eunomia, section
 * 5.1, whose reserved keys are the leaf itself).  src/README.md, "Contended leaves".
 *
 * An inner node has count separators and count + 1 children; child i leads to
 * what is not below separator i - 1 and below separator i.  Separators are
 * low fences of leaves, without trailing zero bytes, and in BYTES order
 * without what all of the node's separators have in common.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_NODE_H
#define BPT_NODE_H

#include "core/euno_core.h"
#include "core/euno_lock.h"

/* Powers of two.  Tests make nodes smaller, so that few entries fill them. */
#ifndef BPT_LEAF_SIZE
#define BPT_LEAF_SIZE		4096
#define BPT_FIXED_SIZE		8192	/* leaves that begin as FIXED */
#define BPT_INNER_SIZE		4096
#endif
#define BPT_NODE_MAX		(32 * 1024)

/* The longest composite. */
#define BPT_MAX_COMPOSITE	(EUNO_MAX_ENTRY + EUNO_TID_BYTES)

/* A low fence longer than this asks for a leaf twice as large. */
#define BPT_LONG_FENCE		1200

/* TIDs in one record, and in one leaf; bytes of one list. */
#define BPT_LIST_MAX		64
#define BPT_LEAF_TIDS		3456
#define BPT_LIST_BYTES		(BPT_LIST_MAX * 8)

/*
 * Levels of inner nodes.  New ones have two children or more; merges may leave
 * one.
 */
#define BPT_MAX_LEVELS		24

/* Arrays of 8-byte words are read with 8-byte loads that may run past them. */
#define BPT_SLACK			8

typedef enum BptFormat
{
	BPT_FIXED,
	BPT_SLOTTED,
	BPT_OPAQUE
} BptFormat;

/*
 * Set in a leaf's format when it has a low fence but no high one: its prefix
 * is what the low fence and its entries had in common when it was built.  A
 * key above the low fence need not have it.
 */
#define BPT_OPEN			0x80

/*
 * Set in the format of a contended leaf: entries are in its annex, too.
 * Changes with the leaf's version.
 */
#define BPT_CONTENDED		0x20

/*
 * Also in a leaf's format: which alphabet its heads are made of, so that a
 * guess comes near.  A hint, and nothing else.
 */
#define BPT_ALPHABET		0x1C
#define BPT_ALPHABET_SHIFT	2

typedef enum BptAlphabet
{
	BPT_BINARY,					/* all bytes alike */
	BPT_DECIMAL,				/* 0 to 9 */
	BPT_HEX,					/* 0 to 9, a to f */
	BPT_LOWER,					/* a to z */
	BPT_PRINT,					/* blank to ~ */
	BPT_NALPHABETS
} BptAlphabet;

/* The rest of it: a BptFormat. */
#define BPT_FORMAT			0x03

#define BPT_REC_LEN			0x0FFF
#define BPT_REC_PAYLOAD		0x1000
#define BPT_REC_LIST		0x2000

/* What a retired node needs until its epoch has passed; readers never look. */
typedef struct BptLimbo
{
	struct BptLimbo *next;
	void	   *node;
	union
	{
		uint64_t	epoch;		/* when it was retired */
		uint64_t	merging;	/* of a linked leaf: its writes when a merging
								 * came by */
	};
	uint32_t	size;
	uint32_t	domain;
} BptLimbo;

typedef struct BptLeaf
{
	EunoLock	lock;
	uint64_t	seqno;			/* new at every split and merge */
	struct BptLeaf *right;
	uint64_t	low_word;		/* constant: first 8 bytes of the low fence */
	uint64_t	low_hint;		/* 8 bytes of each fence after the prefix */
	uint64_t	high_hint;
	uint16_t	count;			/* slots */
	uint16_t	prefix_len;
	uint16_t	suffix_len;		/* FIXED: composite without prefix */
	uint16_t	cap;			/* slots the arrays have room for */
	union
	{
		uint16_t	heap;		/* not FIXED: lowest record's offset */
		uint16_t	entries;	/* FIXED: of which each has a slot or more */
	};
	uint8_t		format;
	uint8_t		size_log2;		/* constant */
	uint16_t	body;			/* constant: offset of head[] */

	/* second cache line */
	uint64_t	low_tid;		/* constant; OPAQUE: TID of the low fence */
	uint32_t	low_len;		/* constant: bytes of the low fence */
	uint16_t	ntids;			/* TIDs in all slots */
	uint8_t		has_low;		/* constant: 0 = minus infinity */
	uint8_t		parted;			/* by a contention split, from its left neighbor or
								 * from its other half; set under the lock, cleared
								 * by who may merge */
	BptLimbo	limbo;
	uint32_t	number;			/* constant: what predicate locks call it */
	uint16_t	posted;			/* bit d: in domain d's directory, whose mutex
								 * protects the bit; next to nothing that the
								 * leaf's lock protects */
	uint16_t	use;			/* bpt_migrate.c: who uses it; nobody's lock */
	struct BptAnnex *annex;		/* with BPT_CONTENDED; changes with it */
	/* the low fence (constant), then the body */
} BptLeaf;

#define BPT_LEAF_HEADER		128

/* Segments of an annex, bytes of each, and the most entries of one. */
#ifndef BPT_SEGMENTS
#define BPT_SEGMENTS		8
#define BPT_SEGMENT_SIZE	512
#endif
#define BPT_SEGMENT_HEADER	128
#define BPT_SEGMENT_SLOTS	32
#define BPT_SEGMENT_ROOM	(BPT_SEGMENT_SIZE - BPT_SEGMENT_HEADER)
#define BPT_ANNEX_SLOTS		(BPT_SEGMENTS * BPT_SEGMENT_SLOTS)

/*
 * A segment has the entries whose hash says so: which segment, mark bit and
 * tag an entry has, a hash of its key tells.  So all who write one key meet at
 * one lock (Eunomia's lock bits), and who looks for a key needs one segment.
 */
typedef struct BptSegment
{
	EunoLock	lock;			/* after the leaf's, by number; on a line of its
								 * own, at which those look who wait */
	uint8_t		pad0[56];
	uint64_t	used;			/* bit i: slot i has an entry */
	uint8_t		tags[BPT_SEGMENT_SLOTS];	/* of each slot, if used */
	uint32_t	writes;			/* entries put in or taken out */
	uint8_t		pad1[20];
	uint8_t		bytes[BPT_SEGMENT_ROOM];	/* stride each */
} BptSegment;

typedef struct BptAnnex
{
	/* what changes with the leaf's version */
	uint64_t	shape;			/* see BptShape */
	uint32_t	folds;
	uint32_t	domain;			/* constant */
	BptLimbo	limbo;
	uint32_t	closing;		/* a hint: it is about to be emptied */
	uint32_t	seen;			/* writes, when compact came by to calm */
	uint8_t		pad0[8];

	/*
	 * Mark bits, a word for each segment, whose lock protects it: no bit, no
	 * entry.  Apart from the segments, so that who finds none touches none.
	 */
	uint64_t	marks[8];

	BptSegment	segments[BPT_SEGMENTS];
} BptAnnex;

typedef struct BptInner
{
	EunoLock	lock;
	uint64_t	prefix_word;	/* first 8 bytes of the prefix */
	uint16_t	count;			/* separators */
	uint16_t	prefix_len;
	uint16_t	prefix_off;
	uint16_t	cap;
	uint16_t	heap;
	uint8_t		level;			/* constant: 1 = its children are leaves */
	uint8_t		size_log2;		/* constant */
	uint8_t		abbreviated;	/* OPAQUE: heads are of abbreviations, and so is
								 * the prefix; else there are neither */
	uint64_t	first_head;		/* heads of the outermost separators */
	uint64_t	last_head;
	BptLimbo	limbo;
	/* BptPair[cap + 1], off[cap], heap */
} BptInner;

/*
 * In an inner node's heap, where a separator's offset says: its length, 2
 * bytes, and the bytes after its head.  OPAQUE: BPT_SEPARATOR bytes, TID and
 * length as one big endian number, and all of the key.
 */
#define BPT_SEPARATOR		8

/*
 * Side by side, because who has found the head wants the child: child i, and
 * the head of separator i - 1 left of it (nothing for i = 0).
 */
typedef struct BptPair
{
	uint64_t	head;
	void	   *child;
} BptPair;

#define BPT_INNER_HEADER	80

/* Bytes of an inner node whose arrays have room for this many separators. */
#define BPT_INNER_BYTES(cap)	(BPT_INNER_HEADER + 16 + 18 * (cap))

_Static_assert(sizeof(BptLeaf) == BPT_LEAF_HEADER, "leaf header is two lines");
_Static_assert(sizeof(BptInner) == BPT_INNER_HEADER, "pairs do not straddle");
_Static_assert(offsetof(BptSegment, bytes) == BPT_SEGMENT_HEADER &&
			   offsetof(BptAnnex, segments) == 128 &&
			   BPT_SEGMENTS <= 8 && BPT_SEGMENT_SIZE % 64 == 0,
			   "segments have cache lines of their own");
_Static_assert(EUNO_MAX_DOMAINS <= 16, "a bit of a leaf for each domain");
_Static_assert(offsetof(BptLeaf, low_tid) == 64, "hot fields share a line");

/*
 * Leaves that other domains made and this domain's directory may not know yet:
 * a ring.  A leaf leaves it before it is retired.
 */
#ifndef BPT_LOG_SIZE
#define BPT_LOG_SIZE		500
#endif

typedef struct BptLog
{
	EunoLock	mutex;			/* taken last, never while a node is locked */
	uint32_t	next;			/* oldest entry */
	uint32_t	count;
	uint64_t	lost;			/* it was full: build the directory anew */
	BptLeaf    *ring[BPT_LOG_SIZE];
} BptLog;

/*
 * One domain's directory.  The mutex is for its writers; readers take none,
 * and keep the line of what they need.
 */
typedef struct BptDirectory
{
	BptInner   *root;			/* NULL: go to the first leaf */
	BptLog	   *log;			/* NULL until other domains have directories,
								 * too; then constant */

	/* What its leaves look like, to guess from; any values are right. */
	uint32_t	leaf_slots;		/* in use; 0: unknown */
	uint32_t	leaf_cap;
	uint32_t	leaf_body;
	uint32_t	leaf_tail;		/* bytes a slot of what follows the heads */
	uint32_t	alphabet;		/* BptAlphabet, of separators, too */
	uint8_t		pad0[28];

	EunoLock	mutex;
	uint64_t	inners;
	uint64_t	inner_bytes;	/* that these take */
	uint64_t	built_inners;	/* "inners" when it was last built; 0: it was not */
	uint64_t	built_leaves;	/* leaves then */
	uint8_t		pad1[24];
} BptDirectory;

/* At least one for each domain. */
#define BPT_STRIPES		92

typedef struct BptStripe
{
	EunoCounter	entries;
	uint8_t		pad[48];
} BptStripe;

/* EunoTree.body */
typedef struct BptBody
{
	BptLeaf    *first;			/* constant */
	uint64_t	active;			/* bit d: directory d is in use; bit 0 is set.
								 * Changes under compact_mutex */
	struct BptMoves *moves;		/* NULL until somebody wants to know */
	struct EunoHeatTable *heat;	/* NULL until there are conflicts */
	BptLeaf    *edge;			/* the last leaf, while it is crowded; a hint */
	struct BptLog *wishes;		/* leaves that others want to have in their
								 * domain; NULL: there is one part only */
	uint64_t	stamp;			/* of all trees' since the server's start unlike any
								 * other; a new one before a leaf is retired */
	uint32_t	part_at;		/* see EunoTreeOps.steer */
	uint32_t	part_most;

	uint64_t	seqno;			/* last one given out */
	uint64_t	splits;
	uint64_t	merges;
	uint64_t	leaves;
	uint64_t	numbers;		/* given to leaves */
	uint64_t	contended;		/* leaves that are contended */
	uint64_t	parted;			/* leaves that are marked so */
	uint8_t		pad1[8];

	EunoLock	limbo_mutex;
	BptLimbo   *limbo;			/* oldest retired node */
	BptLimbo   *limbo_tail;
	EunoLock	compact_mutex;
	uint64_t	walkers;
	uint32_t	merging;		/* 0 no, 1 yes, 2 yes and a walk waits */
	uint8_t		pad2[4];
	BptLeaf    *compact_at;		/* linked: changed by whoever moves it, under
								 * compact_mutex; NULL: the first leaf */
	uint64_t	pad3;

	BptStripe	stripes[BPT_STRIPES];
	BptDirectory directories[EUNO_MAX_DOMAINS];
} BptBody;

_Static_assert(sizeof(BptDirectory) == 128 &&
			   offsetof(BptDirectory, mutex) == 64,
			   "writers of a directory have a line of their own");
_Static_assert(sizeof(BptStripe) == 64 && offsetof(BptBody, stripes) % 64 == 0,
			   "a cache line each");
_Static_assert(sizeof(BptBody) <= sizeof(((EunoTree *) 0)->body),
			   "the body must fit");

static inline BptBody *
bpt_body(EunoTree *tree)
{
	return (BptBody *) tree->body;
}

/*
 * The directory to use in a domain: its own, or the first one.  A directory
 * that is taken out of use meanwhile costs a restart.
 */
static inline int
bpt_domain(EunoTree *tree, int domain)
{
	return domain > 0 && domain < tree->config.ndomains &&
		(euno_load64(&bpt_body(tree)->active) >> domain & 1) != 0 ? domain : 0;
}

/* A leaf's low fence. */
static inline uint8_t *
bpt_low(const BptLeaf *leaf)
{
	return (uint8_t *) leaf + BPT_LEAF_HEADER;
}

/* Is the leaf in the domain's directory, whose mutex is held? */
static inline bool
bpt_posted(const BptLeaf *leaf, int domain)
{
	return (euno_load16(&leaf->posted) >> domain & 1) != 0;
}

static inline BptPair *
bpt_pairs(const BptInner *node)
{
	return (BptPair *) ((uint8_t *) node + BPT_INNER_HEADER);
}

static inline size_t
bpt_leaf_size(const BptLeaf *leaf)
{
	return (size_t) 1 << (leaf->size_log2 & 15);
}

static inline size_t
bpt_inner_size(const BptInner *node)
{
	return (size_t) 1 << (node->size_log2 & 15);
}

#endif							/* BPT_NODE_H */
