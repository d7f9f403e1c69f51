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
 * Every function is called with no node locked by this process, and returns
 * with no node locked and the process's nesting depth as it was.  Where a
 * comparator or a callback leaves by longjmp, euno_context_reset() and
 * euno_process_reset() must be called before the next operation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_CORE_H
#define EUNO_CORE_H

#include "core/euno_context.h"

/* Most domains (replicas of the inner nodes) a tree can have. */
#define EUNO_MAX_DOMAINS	16

/* What an operation says.  Functions that mean something else by one say so. */
typedef enum EunoStatus
{
	EUNO_OK,
	EUNO_EXISTS,				/* insert: (key, TID) is there already */
	EUNO_NOT_FOUND,				/* remove, contains: (key, TID) is not there */
	EUNO_STALE,					/* remove: the guard word had changed */
	EUNO_DONE,					/* compact: that was the last leaf */
	EUNO_BUSY,					/* compact, set_domains: not now */
	EUNO_FULL,					/* insert with no_split: the leaf is full */
	EUNO_NO_MEMORY,				/* allocation failed; the tree is as it was */
	EUNO_CORRUPT,				/* something impossible was found */
	EUNO_CANCELED				/* given up while waiting for a node, with
								 * nothing changed, but for what a walk has
								 * removed: see EunoEnvironment */
} EunoStatus;

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
	uint8_t		abbreviation[EUNO_ABBREVIATION_HOW];	/* COMPARE order: see
														 * EunoEnvironment */
} EunoTreeConfig;

typedef struct EunoTreeStats
{
	uint64_t	entries;		/* exact when nobody writes */
	uint64_t	leaves;
	uint64_t	domains;		/* those that have a directory, as bits */
	uint64_t	inners;			/* in the directory of the caller's domain */
	uint64_t	inner_bytes;	/* and what they take; of a radix tree about */
	uint64_t	lag;			/* leaves it may not know yet */
	uint32_t	height;			/* levels, 1 = a single leaf */
	uint64_t	splits;
	uint64_t	merges;
	uint64_t	contended;		/* leaves that are contended */
	uint64_t	parted;			/* leaves on one side of a contention split, not
								 * merged since */
} EunoTreeStats;

/*
 * A leaf, or a node of a radix tree, at which operations have been in each
 * other's way lately.  Numbers are estimates from a sample.  "key" is of the
 * last of these operations; if the leaf was split since, it may be in another
 * one.
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
 * can reach.  The struct is the caller's, and aligned to 64 bytes; it is
 * large, do not put it on the stack.  After any status but EUNO_OK the tree
 * must be thrown away.
 */
typedef struct EunoBulk
{
	EunoTree   *tree;
	/* the structure's own */
	uint8_t		scratch[3 * 32 * 1024] __attribute__((aligned(64)));
} EunoBulk;

/*
 * walk: called without locks and epoch; true means "remove this entry".  The
 * TIDs of many leaves are shown in ascending order, before any is removed: who
 * looks for each in a sorted list finds it where the last one was.
 */
typedef bool (*EunoWalkDecide) (void *arg, EunoTid tid);

/* walk: called between leaves without locks and epoch; may longjmp */
typedef void (*EunoWalkPause) (void *arg);

/* What a walk works in: the caller's, some megabytes of which few are used. */
#define EUNO_WALK_TIDS	65536
#define EUNO_WALK_KEYS	(1536 * 1024)

typedef struct EunoWalkRoom
{
	uint64_t	asked[EUNO_WALK_TIDS];	/* a TID << 16 | its number */
	uint64_t	other[EUNO_WALK_TIDS];
	uint64_t	own[EUNO_WALK_TIDS * 3 + EUNO_WALK_KEYS / 8];	/* the structure's */
} EunoWalkRoom;

typedef struct EunoWalk
{
	EunoWalkDecide decide;
	EunoWalkPause pause;
	void	   *arg;
	EunoWalkRoom *room;
	uint32_t	at_once;		/* with so many TIDs a walk collects no more; 0:
								 * as there is room */
	uint64_t	removed;		/* out */
	uint64_t	kept;			/* out */
} EunoWalk;

/* verify: called once per finding, "what" is a plain English sentence */
typedef void (*EunoVerifyReport) (void *arg, const char *what);

/* verify: called once per entry in order, if given; no locks, no epoch */
typedef void (*EunoVerifyEntry) (void *arg, const EunoEntry *entry);

/* verify: called now and then, if given; no locks, no epoch; may longjmp */
typedef void (*EunoVerifyPause) (void *arg);

typedef struct EunoVerify
{
	EunoVerifyReport report;
	EunoVerifyEntry entry;		/* may be NULL */
	void	   *arg;
	EunoVerifyPause pause;		/* may be NULL */
} EunoVerify;

/* How compact goes about it. */
#define EUNO_COMPACT_BEGIN	1
#define EUNO_COMPACT_CALM	2

/*
 * The table of functions of one structure.  Members that "may be NULL" are
 * what a structure can do without.  (A plain set that the tests compare with
 * has neither read_keys, maintain, set_domains, heat nor leaf.)
 *
 * There is no destroy: whoever owns the allocator takes all of a tree's memory
 * back at once.
 */
typedef struct EunoTreeOps
{
	const char *name;
	bool		leaf_chain;		/* entries are in leaves, side by side, which
								 * have modes and domains: no radix tree */

	/* For test programs */
	bool		bytes_only;		/* trees of COMPARE order cannot be created */
	bool		atomic_batches; /* a batch is the state of its span at one
								 * moment; otherwise each entry has its own
								 * moment between call and return */

	uint32_t	bottom_up_reach;	/* entries before and after a new one that
									 * may make room for it if they are dead */

	/*
	 * An empty tree in *tree (zeroed, shared, 64-byte aligned memory, alloc_arg
	 * already set).
	 */
	EunoStatus	(*create) (EunoContext *cx, EunoTree *tree,
						   const EunoTreeConfig *config);

	/*
	 * EUNO_OK, EUNO_EXISTS (idempotent; the payload is left alone), EUNO_FULL
	 * (only if no_split), EUNO_NO_MEMORY, EUNO_CORRUPT, EUNO_CANCELED.
	 */
	EunoStatus	(*insert) (EunoContext *cx, EunoTree *tree,
						   const EunoEntry *entry, bool no_split);

	/*
	 * EUNO_OK, EUNO_NOT_FOUND, EUNO_STALE, EUNO_CORRUPT, EUNO_CANCELED.  The
	 * guard (may be NULL) is read while the leaf is locked.
	 */
	EunoStatus	(*remove) (EunoContext *cx, EunoTree *tree,
						   const EunoEntry *entry, const EunoGuard *guard);

	/* EUNO_OK, EUNO_NOT_FOUND, EUNO_CORRUPT or EUNO_CANCELED. */
	EunoStatus	(*contains) (EunoContext *cx, EunoTree *tree,
							 const EunoEntry *entry);

	/*
	 * The next batch in the given direction.  nitems = 0 means that the range
	 * has ended on that side (with one_leaf: only if at_hi / at_lo is set); a
	 * batch with items may set at_hi / at_lo too.  EUNO_OK, EUNO_CORRUPT or
	 * EUNO_CANCELED.
	 */
	EunoStatus	(*read) (EunoContext *cx, EunoTree *tree,
						 EunoCursor *cursor, bool forward, EunoBatch *batch);

	/*
	 * BYTES order.  Looks up several keys at once, as read does
	 * in ranges that each start with one: their waits for memory overlap.
	 * "positions" (EUNO_KEYS_MAX at most) have side < 0, and keys of at most
	 * EUNO_MAX_ENTRY bytes.  The batch gets the
	 * entries of the first, then of the second, and so on; ends[i] is the
	 * number of items up to those of key i.  Returns how many keys have been
	 * read, from the first on; read has to be asked for the next one.  Does
	 * not heed one_leaf.
	 */
	uint32_t	(*read_keys) (EunoContext *cx, EunoTree *tree,
							  const EunoPosition *positions, uint32_t n,
							  EunoBatch *batch, uint32_t *ends);

	/* See EunoBulk. */
	EunoStatus	(*bulk_begin) (EunoContext *cx, EunoTree *tree,
							   EunoBulk *bulk);
	EunoStatus	(*bulk_add) (EunoContext *cx, EunoBulk *bulk,
							 const EunoEntry *entry);
	EunoStatus	(*bulk_end) (EunoContext *cx, EunoBulk *bulk);

	/*
	 * Every entry that is in the tree from the call's start to its end is shown
	 * to decide at least once; entries are removed when it says true.  While a
	 * walk is under way, a B+tree's entries only move to the right.  EUNO_OK,
	 * EUNO_CORRUPT or EUNO_CANCELED; what was removed before that is gone.
	 */
	EunoStatus	(*walk) (EunoContext *cx, EunoTree *tree,
						 EunoWalk *walk);

	/*
	 * Merges underfull neighbors, looking at this many leaves from where the
	 * last call ended, or from the first one (EUNO_COMPACT_BEGIN); then
	 * reclaims.  *merged is set to how many leaves went.  With EUNO_COMPACT_CALM,
	 * contended leaves to which nothing was written since the last such call
	 * came by become calm.  EUNO_OK; EUNO_DONE: that was the last leaf, and the
	 * next call begins anew; EUNO_BUSY: another process is at it, or a walk is
	 * under way; EUNO_CORRUPT.
	 */
	EunoStatus	(*compact) (EunoContext *cx, EunoTree *tree,
							uint32_t how, uint32_t max_leaves,
							uint32_t *merged);

	/* Gives back unlinked memory that nobody can see any more. */
	void		(*reclaim) (EunoContext *cx, EunoTree *tree);

	/*
	 * Brings a domain's directory up to date.  In COMPARE order it calls the
	 * comparator if the context has one, and does without otherwise.
	 */
	void		(*maintain) (EunoContext *cx, EunoTree *tree, int domain);

	/*
	 * From now on these domains, a set of bits, have directories of their own;
	 * others use the first domain's, which there always is.
	 * Domains beyond the number that the tree was created with are ignored.
	 * EUNO_OK; EUNO_NO_MEMORY: some of them have one; EUNO_BUSY: leaves are
	 * being merged, and nothing has changed.
	 */
	EunoStatus	(*set_domains) (EunoContext *cx, EunoTree *tree,
								uint64_t domains);

	/*
	 * May be NULL.  Makes the leaf that covers the position, or with NULL all
	 * leaves, contended or calm.  Answers do not change by that, but how
	 * writers get along.  EUNO_OK; EUNO_NOT_FOUND: that leaf's entries cannot
	 * be kept in the way of contended leaves, and it is calm; EUNO_NO_MEMORY,
	 * EUNO_CORRUPT, EUNO_CANCELED.
	 */
	EunoStatus	(*set_mode) (EunoContext *cx, EunoTree *tree,
							 const EunoPosition *pos, bool contended);

	/*
	 * May be NULL.  From now on a leaf at which so many conflicts (at least
	 * one) were about different keys is parted between these, by who writes to
	 * it next, as long as there are fewer than "most" such leaves.  0
	 * conflicts: none is.
	 */
	void		(*steer) (EunoContext *cx, EunoTree *tree,
						  uint32_t conflicts, uint32_t most);

	/*
	 * May be NULL.  Moves the leaf right of a position, which has a key, to a
	 * domain's memory.  EUNO_OK; EUNO_NOT_FOUND: it is there, or cannot be
	 * moved now; EUNO_NO_MEMORY; EUNO_CORRUPT.
	 */
	EunoStatus	(*migrate) (EunoContext *cx, EunoTree *tree,
							const EunoPosition *pos, int domain);

	/*
	 * May be NULL.  Moves leaves, at most max, to the domains whose descents
	 * went there most; returns how many.  Does nothing while a walk is under
	 * way or, in COMPARE order, without a comparator.
	 */
	uint32_t	(*settle) (EunoContext *cx, EunoTree *tree,
						   uint32_t max);

	/*
	 * Looks at order, fences, chain, directory, duplicate entries, counts.
	 * Concurrent writers are tolerated.  Returns the number of findings; those
	 * until then, if it was canceled.
	 */
	uint64_t	(*verify) (EunoContext *cx, EunoTree *tree,
						   const EunoVerify *verify);

	/* As EunoTreeStats.entries. */
	uint64_t	(*entries) (EunoTree *tree);

	void		(*stats) (EunoContext *cx, EunoTree *tree,
						  EunoTreeStats *stats);

	/*
	 * May be NULL: the leaves have no numbers.  Starts, once and for all, to
	 * remember which leaf has passed on keys to which, in order.  Copies the
	 * moves since *position, at first 0, and advances it.  *n: room in, number
	 * out.  A move is told from the moment on at which its keys can be found in
	 * the other leaf.  EUNO_OK; EUNO_FULL: *n was less than EUNO_MOVES_MAX, and
	 * there are some; EUNO_STALE: some are forgotten, and *position is after
	 * them; EUNO_NO_MEMORY.
	 */
	EunoStatus	(*moves) (EunoContext *cx, EunoTree *tree,
						  uint64_t *position, EunoMove *to, uint32_t *n);

	/*
	 * Copies what is known of at most max leaves, those with the most conflicts
	 * first, and returns how many.  With "round", a new round begins.
	 */
	uint32_t	(*heat) (EunoContext *cx, EunoTree *tree, bool round,
						 EunoHeat *to, uint32_t max);

	/*
	 * Tells of the leaf that has the key of *heat now, of a radix tree the node
	 * on the way to it.  EUNO_OK, EUNO_NOT_FOUND (the key is cut,
	 * and does not say) or EUNO_CORRUPT.  In COMPARE order calls the
	 * comparator.
	 */
	EunoStatus	(*leaf) (EunoContext *cx, EunoTree *tree,
						 const EunoHeat *heat, EunoLeafInfo *info);
} EunoTreeOps;

/*
 * The shared root of a tree, embedded in its registry entry.  Everything in
 * "body" is the structure's own (bptree: the first leaf, a directory per
 * domain, striped entry counters, the walker count).
 */
struct EunoTree
{
	EunoTreeConfig config;
	void	   *alloc_arg;
	uint8_t		body[8192] __attribute__((aligned(64)));
} __attribute__((aligned(64)));

/*
 * Of a set of domains, as bits: those that a tree can have, and the first one,
 * which it always has.
 */
static inline uint64_t
euno_tree_domains(const EunoTree *tree, uint64_t domains)
{
	return (domains & ((UINT64_C(1) << tree->config.ndomains) - 1)) | 1;
}

/* One descent in so many is looked at for what is counted by domain. */
#define EUNO_SAMPLE		64

/*
 * How many descents the one under way stands for in what is counted by domain;
 * 0: it is left out.
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
 * For tests: the B+tree, whose leaves are forced into modes by each process
 * that uses this table.
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

/* euno_tids.c */
extern void euno_sort64(uint64_t *numbers, uint32_t n);
extern void euno_sort_tids(uint64_t *numbers, uint32_t n, uint64_t *scratch);
extern bool euno_tid_among(EunoTid tid, const EunoTid *tids, uint32_t n);

/* euno_walk.c */
extern uint32_t euno_walk_ask(const EunoWalk *walk, uint32_t n);

#endif							/* EUNO_CORE_H */
