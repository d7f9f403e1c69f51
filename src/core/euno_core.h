/*-------------------------------------------------------------------------
 *
 * euno_core.h
 *	  The trees' interface: what the access method may ask of them.
 *
 * core/ knows bytes, heap TIDs, an allocator and a way to wait.  It knows no
 * catalog, no executor, no palloc and no ereport, and includes no PostgreSQL
 * header: the same files make up euno_index.so and the standalone test and
 * benchmark programs.
 *
 * Entries
 *	  An entry is (key, heap TID) and an optional payload that takes no part
 *	  in the order.  All entries of a tree are distinct.  A tree orders them
 *	  in one of two ways:
 *
 *	  EUNO_ORDER_BYTES	the key is an order-preserving, prefix-free byte
 *		string.  The entry's *composite* is key || TID (6 bytes, big endian);
 *		entries are ordered by memcmp of their composites, a shorter string
 *		being padded with zero bytes.  No key has 0xFF as the first byte of a
 *		column, so P || FF FF FF FF FF FF is above every entry that starts
 *		with P.
 *
 *	  EUNO_ORDER_COMPARE	the key is opaque; EunoContext.compare orders keys,
 *		and the TID breaks ties.  A comparator may raise an error (longjmp),
 *		is slow, and may do anything: it is never called while a node is
 *		locked and never on bytes that have not been validated.
 *
 * Every function is called with no node locked by this process, and returns
 * with no node locked and the process's nesting depth as it was.  Where a
 * comparator or a callback leaves by longjmp, euno_context_reset() and
 * euno_process_reset() must be called before the next operation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_CORE_H
#define EUNO_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A heap TID as a number: block << 16 | offset.  Zero is no TID. */
typedef uint64_t EunoTid;

#define EUNO_TID_BYTES	6
#define EUNO_TID_MAX	((UINT64_C(1) << 48) - 1)

/* As it ends a composite: EUNO_TID_BYTES, big endian. */
static inline void
euno_put_tid(uint8_t *p, EunoTid tid)
{
	uint32_t	high = (uint32_t) (tid >> 16);
	uint16_t	low = (uint16_t) tid;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	high = __builtin_bswap32(high);
	low = __builtin_bswap16(low);
#endif
	memcpy(p, &high, sizeof(high));
	memcpy(p + sizeof(high), &low, sizeof(low));
}

static inline EunoTid
euno_get_tid(const uint8_t *p)
{
	uint32_t	high;
	uint16_t	low;

	memcpy(&high, p, sizeof(high));
	memcpy(&low, p + sizeof(high), sizeof(low));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	high = __builtin_bswap32(high);
	low = __builtin_bswap16(low);
#endif
	return (EunoTid) high << 16 | low;
}

/* Eight bytes as a number that is compared as they are. */
static inline uint64_t
euno_get_word(const uint8_t *p)
{
	uint64_t	word;

	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

static inline void
euno_put_word(uint8_t *p, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	memcpy(p, &word, sizeof(word));
}

/*
 * The longest key plus payload, in bytes: nbtree's limit for a whole index
 * tuple on 8 kB pages, so that a table can always go back to btree.
 */
#define EUNO_MAX_ENTRY	2704

/* Most domains (replicas of the inner nodes) a tree can have. */
#define EUNO_MAX_DOMAINS	16

typedef enum EunoStatus
{
	EUNO_OK,
	EUNO_EXISTS,				/* insert: (key, TID) is there already */
	EUNO_NOT_FOUND,				/* remove, contains: (key, TID) is not there */
	EUNO_STALE,					/* remove: the guard word had changed */
	EUNO_FULL,					/* insert with no_split: the leaf is full */
	EUNO_NO_MEMORY,				/* allocation failed; the tree is as it was */
	EUNO_CORRUPT,				/* something impossible was found */
	EUNO_CANCELED				/* given up while waiting for a node, with
								 * nothing changed: see EunoEnvironment */
} EunoStatus;

typedef enum EunoOrder
{
	EUNO_ORDER_BYTES,
	EUNO_ORDER_COMPARE
} EunoOrder;

typedef struct EunoEntry
{
	const uint8_t *key;
	uint32_t	keylen;
	uint32_t	payloadlen;
	const uint8_t *payload;
	EunoTid		tid;
} EunoEntry;

/*
 * A position: a gap between entries.  Entries below it are to its left, all
 * others to its right.
 *
 * side < 0: the gap before all entries whose key starts with (BYTES) or
 * equals on the columns given (COMPARE) this key; side > 0: the gap after all
 * of them; side = 0: the gap just before entry (key, tid), present or not.
 *
 * In COMPARE order the access method may pass a bound of its own making:
 * then key is NULL, and "bound" is handed to the comparator untouched.
 */
typedef struct EunoPosition
{
	const uint8_t *key;
	uint32_t	keylen;
	int8_t		side;
	EunoTid		tid;
	const void *bound;
} EunoPosition;

/*
 * Compares a position's key (or bound) with a stored key: < 0, 0, > 0.  Only
 * the columns that the position has are compared; ties are broken by the
 * caller with side and tid.  "key" is 8-byte aligned private memory.
 */
typedef int (*EunoCompare) (void *arg, const EunoPosition *pos,
							const uint8_t *key, uint32_t keylen);

/*
 * An approximation is called in the same way, and is much faster: < 0 and > 0 are
 * what the comparator will probably say, 0 that it must be asked.  It may be wrong,
 * and may contradict itself.
 */

/* A position that core owns the bytes of; see EunoCursor. */
typedef struct EunoPositionBuffer
{
	EunoPosition pos;			/* pos.key points to data, or to nothing */
	uint8_t		data[EUNO_MAX_ENTRY + 8] __attribute__((aligned(8)));
} EunoPositionBuffer;

/*
 * A range scan's place.  The caller sets lo and hi (both must stay valid) and
 * calls euno_cursor_start; afterwards core alone writes the rest.  The window
 * is the span of the last batch: the next batch forward starts at its right
 * end, the next one backward ends at its left end.  A batch without items is
 * an empty window at the end of the range: after reading forward to the end,
 * the next batch backward starts below hi.  Nothing in a cursor refers to a
 * node: it survives splits, merges, evictions and rebuilds.
 */
typedef struct EunoCursor
{
	EunoPosition lo;			/* the range is [lo, hi) */
	EunoPosition hi;
	bool		started;
	bool		at_lo;			/* the window reaches down to lo */
	bool		at_hi;			/* the window reaches up to hi */
	EunoPositionBuffer left;	/* window's left end, if started and !at_lo */
	EunoPositionBuffer right;	/* window's right end, if started and !at_hi */
} EunoCursor;

typedef struct EunoItemKey
{
	uint32_t	offset;			/* of the key in EunoBatch.buf, 8-byte aligned */
	uint16_t	keylen;			/* without the TID */
	uint16_t	payloadlen;		/* payload starts at offset + MAXALIGN(keylen) */
} EunoItemKey;

/*
 * A batch of entries, copied out of one leaf, in the direction of the read
 * (descending when reading backward).  The caller owns all arrays.
 */
typedef struct EunoBatch
{
	uint32_t	max_items;		/* capacity of tids (and keys); at least 1 */
	uint32_t	nitems;			/* out */
	EunoTid    *tids;			/* out */
	bool		want_keys;		/* fill keys and buf too */
	EunoItemKey *keys;			/* out, if want_keys; entries of one posting
								 * list may share their bytes */
	uint8_t    *buf;			/* 8-byte aligned; has room for the longest
								 * entry, better EUNO_BATCH_BUF */
	uint32_t	buf_size;
	bool		one_leaf;		/* stop after each leaf, even without an entry,
								 * and set "leaf" */
	uint32_t	leaf;			/* out: the leaf's number; left alone by trees
								 * without numbers, which do not stop either */
} EunoBatch;

#define EUNO_BATCH_BUF	(32 * 1024)

/* Keys that are looked up at once, and bytes of each. */
#define EUNO_KEYS_MAX	16
#define EUNO_KEYS_BYTES	128

/* Leaves' numbers are from 1 to this. */
#define EUNO_LEAF_MAX	0x7FFFFFFF

/* Keys have gone from one leaf to another. */
typedef struct EunoMove
{
	uint32_t	from;
	uint32_t	to;
} EunoMove;

/* Moves that are remembered. */
#define EUNO_MOVES_MAX	508

/* A shared word that must still hold "expected" when an entry is removed. */
typedef struct EunoGuard
{
	const uint64_t *word;
	uint64_t	expected;
} EunoGuard;

/*
 * What core needs from outside.  alloc returns memory aligned to 64 bytes, or
 * to 16 if the size is no multiple of 64, or NULL, and is never called while this process has a node locked; "tree_arg"
 * is EunoTree.alloc_arg.  wait returns when *word may have changed from
 * "seen" (spurious returns are fine, it must return within 100 ms); wake
 * releases all waiters of the word.  canceled, which may be NULL, is asked by
 * insert, remove, contains, read and walk while they wait for a node and hold
 * nothing: if it says yes they return EUNO_CANCELED.
 */
typedef struct EunoEnvironment
{
	void	   *(*alloc) (void *tree_arg, int domain, size_t size);
	void		(*free) (void *tree_arg, int domain, void *node, size_t size);
	void		(*wait) (uint32_t *word, uint32_t seen);
	void		(*wake) (uint32_t *word);
	bool		(*canceled) (void);
} EunoEnvironment;

/* Shall this operation end, though it is not done? */
static inline bool
euno_is_canceled(const EunoEnvironment *env)
{
	return env->canceled != NULL && env->canceled();
}

/*
 * Conflicts: what an operation met at a leaf, and what that was about.  The
 * first two are counted each time; the next three say more of those in a
 * sample, and add up to about their sum.
 */
typedef enum EunoCause
{
	EUNO_CAUSE_LOCKED,			/* the leaf was locked */
	EUNO_CAUSE_CHANGED,			/* the leaf had changed */
	EUNO_CAUSE_SAME_KEY,		/* as the leaf's conflict before that */
	EUNO_CAUSE_OTHER_KEY,
	EUNO_CAUSE_SPLIT,			/* the leaf was split or merged in between */
	EUNO_CAUSE_DIRECTORY		/* not at a leaf: an inner node had changed, or the
								 * directory was busy */
} EunoCause;

#define EUNO_LEAF_CAUSES	5
#define EUNO_CAUSES			6

/* Counted by the operations of one context; the owner adds and clears them. */
typedef struct EunoCounters
{
	uint64_t	descents;
	uint64_t	removals;		/* of entries */
	uint64_t	restarts;		/* a version had changed: from the root again */
	uint64_t	leaf_retries;	/* a version had changed: same leaf again */
	uint64_t	right_moves;	/* hops along the leaf chain */
	uint64_t	lock_waits;		/* a lock was held by somebody else */
	uint64_t	delegated;		/* operations that another process performed */
	uint64_t	remote;			/* descents to leaves in other domains, and inner
								 * nodes visited, and those in other domains;
								 * from a sample, unless count_all */
	uint64_t	inner_nodes;
	uint64_t	remote_inner_nodes;
	uint64_t	mark_exits;		/* lookups that needed no segment of a contended
								 * leaf */
	uint64_t	contended;		/* writes to contended leaves */
	uint64_t	conflicts[EUNO_CAUSES];
} EunoCounters;

struct EunoEpochs;				/* euno_epoch.h */
struct EunoTree;				/* below */

/*
 * One per process (per thread in the test programs), in private memory.
 * "slot" is this process's place in the shared EunoEpochs.  Operations nest
 * (a comparator may run a query that uses another tree): the epoch is entered
 * at depth 0 and left when the depth returns to 0.
 */
typedef struct EunoProcess
{
	struct EunoEpochs *epochs;
	uint32_t	slot;
	uint32_t	depth;
} EunoProcess;

/* What a context knows of delegation (euno_delegate.h); zeros at first. */
#define EUNO_CROWDED	8

typedef struct EunoDelegation
{
	bool		always;			/* tests: every place is crowded */
	bool		leading;		/* performs the requests of others */
	bool		crowds;			/* some place is, or has been, crowded */
	uint32_t	patience;		/* pauses before it sleeps; 0: as many as may be */
	uint32_t	sleeps;			/* since it had the most */
	uint32_t	shun;			/* operations that are not delegated */
	uint32_t	alone;			/* turns in a row without company */
	uint32_t	depth;			/* radix trees: of the last crowded place */
	const void *crowded[EUNO_CROWDED];	/* where there has been company */
} EunoDelegation;

/*
 * The leaf, or the node of a radix tree, that a context's last insert went to, or the
 * leaf that comes after what it has read: a guess where the next operation goes.  To be
 * looked at only within an epoch in which the tree's stamp was found to be this one;
 * zeros at first.
 */
typedef struct EunoLast
{
	void	   *leaf;
	uint64_t	stamp;
	bool		again;			/* so did the one before */
} EunoLast;

/* The longest path of a radix tree's node that is remembered. */
#define EUNO_LAST_PATH	64

/*
 * One per process and open tree, in private memory.  A context runs one
 * operation at a time.
 */
typedef struct EunoContext
{
	EunoProcess *process;
	int			domain;			/* below the number of the allocator's domains;
								 * may change between operations */
	bool		lagging;		/* tests: posts no separators but those of the
								 * leaves it makes */
	bool		count_all;		/* tests: no descent is left out of the counters
								 * of domains, no conflict out of those of places */
	const EunoEnvironment *env;
	EunoCompare compare;		/* COMPARE order only */
	EunoCompare approximate;	/* the same, or NULL */
	void	   *compare_arg;		/* of both */
	uint32_t	doubts;			/* about approximations; 0 at first */
	bool		want_leaf;		/* have insert set "leaf" */
	uint32_t	leaf;			/* number of the leaf that the last insert with
								 * EUNO_OK went to; left alone by trees without
								 * numbers */
	EunoCounters counters;
	uint32_t	phase;			/* descents before those in "counters", and any
								 * number to begin with: which ones are sampled */
	EunoLast	last;
	uint8_t		last_path[EUNO_LAST_PATH];	/* radix trees, with last.again: of the
											 * node, up to the byte it branches on */
	EunoLast	next;			/* the leaf at which a scan's next batch begins;
								 * "again" is not used */
	uint32_t	conflicts;		/* at leaves, ever; of which some are looked at */
	uint32_t	part_leaf;		/* that should be parted, by its next writer; 0:
								 * none */
	EunoDelegation delegation;

	/* What an operation holds that euno_context_reset must give back. */
	struct EunoTree *walking;	/* registered as a walker of this tree */
	struct EunoTree *compacting;	/* is the one that merges in this tree */
	struct EunoTree *spare_tree;	/* the tree the spares were allocated for */
	void	   *spare[4];
	size_t		spare_size[4];
	int			spare_domain[4];
} EunoContext;

/* Chosen when a tree is created and constant for its life. */
typedef struct EunoTreeConfig
{
	EunoOrder	order;
	bool		posting;		/* equal keys are byte-identical: they may share
								 * one copy with a list of TIDs */
	uint16_t	fillfactor;		/* percent, for bulk loads and right-edge
								 * splits; 10 to 100 */
	uint16_t	ndomains;		/* directories at most, 1 to EUNO_MAX_DOMAINS */
	uint16_t	nparts;			/* domains of the allocator; 0: as many */
	uint64_t	domains;		/* those that have a directory at first, as bits;
								 * 0: all */
} EunoTreeConfig;

typedef struct EunoTreeStats
{
	uint64_t	entries;		/* exact when nobody writes */
	uint64_t	leaves;
	uint64_t	domains;		/* those that have a directory, as bits */
	uint64_t	inners;			/* in the directory of the caller's domain */
	uint64_t	inner_bytes;	/* and about what they take */
	uint64_t	lag;			/* leaves it may not know yet */
	uint32_t	height;			/* levels, 1 = a single leaf */
	uint64_t	splits;
	uint64_t	merges;
	uint64_t	scattered;		/* leaves that are contended */
	uint64_t	parted;			/* leaves on one side of a contention split, not
								 * merged since */
} EunoTreeStats;

/*
 * A leaf, or a node of a radix tree, at which operations have been in each other's
 * way lately.  Numbers are estimates from a sample.  "key" is of the last of these
 * operations; if the leaf was split since, it may be in another one.
 */
#define EUNO_HEAT_KEY	64

typedef struct EunoHeat
{
	uint32_t	leaf;			/* its number; of a radix tree's node the hash of
								 * what composites below it have in common */
	uint32_t	fresh;			/* conflicts since the last round began */
	uint32_t	before;			/* in the round before that */
	uint32_t	writes;			/* to the leaf while it was contended; as fresh */
	uint32_t	delegated;		/* of the conflicts, writes that somebody else
								 * performed; counted as causes are */
	uint32_t	causes[EUNO_LEAF_CAUSES];	/* those of a round count half in
											 * the next */
	uint32_t	keylen;
	bool		cut;			/* of the key there is only the beginning */
	uint8_t		prefix;			/* radix trees: so many bytes of the composite all
								 * below the node have in common, or more */
	EunoTid		tid;
	uint8_t		key[EUNO_HEAT_KEY] __attribute__((aligned(8)));
} EunoHeat;

static inline uint32_t
euno_heat_sum(const EunoHeat *heat)
{
	return heat->fresh + heat->before + heat->writes;
}

/* Leaves whose heat is remembered, at most.  Tests have fewer. */
#ifndef EUNO_HEAT_LEAVES
#define EUNO_HEAT_LEAVES	252
#endif

/* What can be said of a leaf, or of a radix tree's node. */
typedef struct EunoLeafInfo
{
	uint32_t	number;
	uint32_t	entries;		/* of a node, children */
	int			domain;			/* whose memory it is in */
	const char *mode;			/* "calm", "contended", or "delegated": calm, and
								 * many writes are */
	bool		parted;			/* on one side of a contention split */
	bool		has_low;		/* a low fence */
	bool		has_high;
	EunoPositionBuffer low;		/* its fences, if it has them: all between is in
								 * it, or below it */
	EunoPositionBuffer high;
} EunoLeafInfo;

/*
 * bulk load: entries in strictly ascending order into a tree that nobody else
 * can reach.  The struct is the caller's; it is large, do not put it on the
 * stack.  After any status but EUNO_OK the tree must be thrown away.
 */
typedef struct EunoBulk
{
	struct EunoTree *tree;
	void	   *state[8];		/* the structure's own */
	uint8_t		scratch[3 * 32 * 1024] __attribute__((aligned(64)));
} EunoBulk;

/* walk: called without locks and epoch; true means "remove this entry" */
typedef bool (*EunoWalkDecide) (void *arg, EunoTid tid);

/* walk: called between leaves without locks and epoch; may longjmp */
typedef void (*EunoWalkPause) (void *arg);

typedef struct EunoWalk
{
	EunoWalkDecide decide;
	EunoWalkPause pause;
	void	   *arg;
	uint64_t	removed;		/* out */
	uint64_t	kept;			/* out */
} EunoWalk;

/* verify: called once per finding, "what" is a plain English sentence */
typedef void (*EunoVerifyReport) (void *arg, const char *what);

/* verify: called once per entry in order, if given; no locks, no epoch */
typedef void (*EunoVerifyEntry) (void *arg, const EunoEntry *entry);

typedef struct EunoVerify
{
	EunoVerifyReport report;
	EunoVerifyEntry entry;		/* may be NULL */
	void	   *arg;
} EunoVerify;

/*
 * The table of functions of one structure.
 *
 * create: an empty tree in *tree (zeroed, shared, 64-byte aligned memory,
 * alloc_arg already set).  There is no destroy: whoever owns the allocator
 * takes all of a tree's memory back at once.
 *
 * insert: EUNO_OK, EUNO_EXISTS (idempotent; the payload is left alone),
 * EUNO_FULL (only if no_split), EUNO_NO_MEMORY, EUNO_CORRUPT.
 *
 * remove: EUNO_OK, EUNO_NOT_FOUND, EUNO_STALE, EUNO_CORRUPT.  The guard (may
 * be NULL) is read while the leaf is locked.  Never merges nodes.
 *
 * contains: EUNO_OK or EUNO_NOT_FOUND.
 *
 * read: the next batch in the given direction.  nitems = 0 means that the
 * range has ended on that side (with one_leaf: only if at_hi / at_lo is set);
 * a batch with items may set at_hi / at_lo too.
 * EUNO_OK or EUNO_CORRUPT.
 *
 * read_keys (may be NULL): BYTES order.  Looks up several keys at once, as read
 * does in ranges that each start with one: their waits for memory overlap.
 * "positions" (EUNO_KEYS_MAX at most) have side < 0.  The batch gets the
 * entries of the first, then of the second, and so on; ends[i] is the number
 * of items up to those of key i.  Returns how many keys have been read, from
 * the first on; read has to be asked for the next one.  Does not heed
 * one_leaf.
 *
 * walk: every entry that is in the tree from the call's start to its end is
 * shown to decide at least once; entries are removed when it says true.
 * While a walk is under way, entries only move to the right.  EUNO_OK,
 * EUNO_CORRUPT or EUNO_CANCELED; what was removed before that is gone.
 *
 * moves: NULL for trees whose leaves have no numbers.  Starts, once and for
 * all, to remember which leaf has passed on keys to which, in order.  Copies
 * the moves since *position, at first 0, and advances it.  *n: room in, number
 * out.  A move is told from the moment on at which its keys can be found in the
 * other leaf.  EUNO_OK; EUNO_FULL: *n was less than EUNO_MOVES_MAX, and there
 * are some; EUNO_STALE: some are forgotten, and *position is after them;
 * EUNO_NO_MEMORY.
 *
 * compact: merges underfull neighbours, at most max_merges of them, and does
 * nothing while a walk is under way.  *merged says how many.
 *
 * tidy (may be NULL): the same a little at a time: looks at so many leaves from
 * where the last call ended.  EUNO_NOT_FOUND when that was the last one; the next
 * call begins anew.  EUNO_OK, too, when it may do nothing now.  Contended leaves
 * to which nothing was written since it last came by become calm.
 *
 * maintain (may be NULL): brings a domain's directory up to date.  In COMPARE
 * order it calls the comparator if the context has one, and does without
 * otherwise.
 *
 * set_domains (may be NULL): from now on these domains, a set of bits, have
 * directories of their own; others use the first domain's, which there always is.
 * Domains beyond the number that the tree was created with are ignored.  EUNO_OK;
 * EUNO_NO_MEMORY: some of them have one; EUNO_NOT_FOUND: leaves are being merged,
 * and nothing has changed.
 *
 * set_mode (may be NULL): makes the leaf that covers the position, or with NULL
 * all leaves, contended or calm.  Answers do not change by that, but how writers
 * get along.  EUNO_OK; EUNO_NOT_FOUND: that leaf's entries cannot be kept in the
 * way of contended leaves, and it is calm; EUNO_NO_MEMORY, EUNO_CORRUPT.
 *
 * steer (may be NULL): from now on a leaf at which so many conflicts (at least one)
 * were about different keys is parted between these, by who writes to it next, as
 * long as there are fewer than "most" such leaves.  0 conflicts: none is.
 *
 * heat (may be NULL): copies what is known of at most max leaves, those with the
 * most conflicts first, and returns how many.  With "round", a new round begins.
 *
 * leaf (may be NULL): tells of the leaf that has the key of *heat now, of a radix
 * tree the node on the way to it.  EUNO_OK, EUNO_NOT_FOUND (the key is cut, and does
 * not say) or EUNO_CORRUPT.  In COMPARE order calls the comparator.
 *
 * migrate (may be NULL): moves the leaf right of a position, which has a key, to a
 * domain's memory.  EUNO_OK; EUNO_NOT_FOUND: it is there, or cannot be moved now;
 * EUNO_NO_MEMORY; EUNO_CORRUPT.
 *
 * settle (may be NULL): moves leaves, at most max, to the domains whose descents
 * went there most; returns how many.  Does nothing while a walk is under way or,
 * in COMPARE order, without a comparator.
 *
 * verify: order, fences, chain, directory, duplicate entries, counts.
 * Concurrent writers are tolerated.
 */
typedef struct EunoTreeOps
{
	const char *name;
	bool		bytes_only;		/* trees of COMPARE order cannot be created */
	bool		moment;			/* a batch is the state of its span at one
								 * moment; otherwise each entry has its own
								 * moment between call and return */
	size_t		bulk_size;		/* sizeof(EunoBulk) or less, for the caller */
	uint32_t	neighbors;		/* entries before and after one that may make
								 * room for it */

	EunoStatus	(*create) (EunoContext *cx, struct EunoTree *tree,
						   const EunoTreeConfig *config);
	EunoStatus	(*insert) (EunoContext *cx, struct EunoTree *tree,
						   const EunoEntry *entry, bool no_split);
	EunoStatus	(*remove) (EunoContext *cx, struct EunoTree *tree,
						   const EunoEntry *entry, const EunoGuard *guard);
	EunoStatus	(*contains) (EunoContext *cx, struct EunoTree *tree,
							 const EunoEntry *entry);
	EunoStatus	(*read) (EunoContext *cx, struct EunoTree *tree,
						 EunoCursor *cursor, bool forward, EunoBatch *batch);
	uint32_t	(*read_keys) (EunoContext *cx, struct EunoTree *tree,
							  const EunoPosition *positions, uint32_t n,
							  EunoBatch *batch, uint32_t *ends);
	EunoStatus	(*bulk_begin) (EunoContext *cx, struct EunoTree *tree,
							   EunoBulk *bulk);
	EunoStatus	(*bulk_add) (EunoContext *cx, EunoBulk *bulk,
							 const EunoEntry *entry);
	EunoStatus	(*bulk_end) (EunoContext *cx, EunoBulk *bulk);
	EunoStatus	(*walk) (EunoContext *cx, struct EunoTree *tree,
						 EunoWalk *walk);
	EunoStatus	(*compact) (EunoContext *cx, struct EunoTree *tree,
							uint32_t max_merges, uint32_t *merged);
	EunoStatus	(*tidy) (EunoContext *cx, struct EunoTree *tree,
						 uint32_t max_leaves, uint32_t *merged);
	void		(*maintain) (EunoContext *cx, struct EunoTree *tree, int domain);
	EunoStatus	(*set_domains) (EunoContext *cx, struct EunoTree *tree,
								uint64_t domains);
	EunoStatus	(*set_mode) (EunoContext *cx, struct EunoTree *tree,
							 const EunoPosition *pos, bool contended);
	void		(*steer) (EunoContext *cx, struct EunoTree *tree,
						  uint32_t conflicts, uint32_t most);
	EunoStatus	(*migrate) (EunoContext *cx, struct EunoTree *tree,
							const EunoPosition *pos, int domain);
	uint32_t	(*settle) (EunoContext *cx, struct EunoTree *tree,
						   uint32_t max);
	uint64_t	(*verify) (EunoContext *cx, struct EunoTree *tree,
						   const EunoVerify *verify);	/* returns findings */
	uint64_t	(*entries) (struct EunoTree *tree);
	void		(*stats) (EunoContext *cx, struct EunoTree *tree,
						  EunoTreeStats *stats);
	EunoStatus	(*moves) (EunoContext *cx, struct EunoTree *tree,
						  uint64_t *position, EunoMove *to, uint32_t *n);
	uint32_t	(*heat) (EunoContext *cx, struct EunoTree *tree, bool round,
						 EunoHeat *to, uint32_t max);
	EunoStatus	(*leaf) (EunoContext *cx, struct EunoTree *tree,
						 const EunoHeat *heat, EunoLeafInfo *info);
} EunoTreeOps;

/*
 * The shared root of a tree, embedded in its registry entry.  Everything in
 * "body" is the structure's own (bptree: the first leaf, a directory per
 * domain, striped entry counters, the walker count).
 */
typedef struct EunoTree
{
	EunoTreeConfig config;
	void	   *alloc_arg;
	uint8_t		body[4096] __attribute__((aligned(64)));
} __attribute__((aligned(64))) EunoTree;

/* One descent in so many is looked at for what is counted by domain. */
#define EUNO_SAMPLE		64

/*
 * How many descents the one under way stands for in what is counted by domain; 0:
 * it is left out.
 */
static inline uint32_t
euno_sample_weight(const EunoContext *cx, const EunoTree *tree)
{
	if (tree->config.nparts < 2)
		return 0;
	if (cx->count_all)
		return 1;
	return (cx->phase + (uint32_t) cx->counters.descents) % EUNO_SAMPLE == 0 ?
		EUNO_SAMPLE : 0;
}

extern const EunoTreeOps euno_bptree_ops;

/*
 * For tests: the B+tree, whose leaves are forced into modes by each process that
 * uses this table.
 */
typedef enum EunoForced
{
	EUNO_FORCED_NOT,
	EUNO_FORCED_CALM,
	EUNO_FORCED_CONTENDED,		/* what is written to */
	EUNO_FORCED_FLAPPING,		/* switched at random */
	EUNO_FORCED_STALLING		/* calm, and kept locked for a while at random */
} EunoForced;

extern int	euno_forced;		/* an EunoForced */
extern uint64_t euno_forced_seed;	/* of what is random */
extern EunoTreeOps euno_bptree_forced_ops;

extern const EunoTreeOps euno_art_olc_ops;
extern const EunoTreeOps euno_art_rowex_ops;

/*
 * Gives back what an operation left by longjmp may hold in its context: spare
 * nodes, its registration as a walker.  Harmless when nothing is held.
 */
extern void euno_context_reset(EunoContext *cx);

/* Sets the nesting depth back; at 0 the epoch is left. */
extern void euno_process_reset(EunoProcess *process, uint32_t depth);

extern void euno_sort64(uint64_t *numbers, uint32_t n);

/* Puts a cursor before (forward) or after (backward) all of its range. */
static inline void
euno_cursor_start(EunoCursor *cursor)
{
	cursor->started = false;
	cursor->at_lo = cursor->at_hi = false;
}

/* For the structures: see euno_cursor.c. */
extern bool euno_cursor_turn(EunoCursor *cursor, bool forward);

/*
 * Puts a cursor back to where it was before its last read, which was in this
 * direction.
 */
extern void euno_cursor_unread(EunoCursor *cursor, bool forward);

#endif							/* EUNO_CORE_H */
