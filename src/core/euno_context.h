/*-------------------------------------------------------------------------
 *
 * euno_context.h
 *	  What an operation on a tree has from its caller.
 *
 * A process has one EunoProcess, and a context for each tree that it has open.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_CONTEXT_H
#define EUNO_CONTEXT_H

#include "core/euno_entry.h"

/*
 * COMPARE order: the beginning of a key, or of what is searched for, in bytes
 * that lead about where the comparator would.  The first byte in which two of
 * them differ tells: of the "plain" first ones the smaller one comes first, of
 * the others that with the smaller place ("desc": the greater).  Zeros come
 * before all others, as what ends sooner does.  Nothing is known of bytes from
 * EUNO_PLACES on, nor of those whose place is below EUNO_FIRST_PLACE.
 */
#define EUNO_ABBREVIATION	120
#define EUNO_PLACES			0x80
#define EUNO_FIRST_PLACE	2

typedef struct EunoAbbreviation
{
	const uint16_t *places;		/* EUNO_PLACES of them */
	uint32_t	plain;
	uint32_t	len;			/* at most EUNO_ABBREVIATION; then 16 zeros */
	bool		desc;
	uint8_t		bytes[EUNO_ABBREVIATION + 16] __attribute__((aligned(8)));
} EunoAbbreviation;

/* What keys of a tree are abbreviated by; zeros: they are not. */
#define EUNO_ABBREVIATION_HOW	16

/*
 * What core needs from outside.  alloc returns memory aligned to 64 bytes, or
 * to 16, or to 8, whichever the size is a multiple of, or NULL, and is never
 * called while this process has a node locked; "tree_arg" is
 * EunoTree.alloc_arg.  wait returns when *word may have changed from "seen"
 * (spurious returns are fine, it must return within 100 ms); wake releases all
 * waiters of the word.  canceled, which may be NULL, is asked by operations
 * that wait for a node and hold nothing.  If it says yes they return
 * EUNO_CANCELED, whatever EunoTreeOps says of them besides; compact and
 * verify just end.  abbreviate, which may be NULL, abbreviates a
 * key as the tree's configuration says, to at most EUNO_ABBREVIATION bytes, and
 * returns how many; -1 if that is not possible.
 */
typedef struct EunoEnvironment
{
	void	   *(*alloc) (void *tree_arg, int domain, size_t size);
	void		(*free) (void *tree_arg, int domain, void *node, size_t size);
	void		(*wait) (uint32_t *word, uint32_t seen);
	void		(*wake) (uint32_t *word);
	bool		(*canceled) (void);
	int			(*abbreviate) (const uint8_t *how, const uint8_t *key,
							   uint32_t keylen, uint8_t *to);
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

	/* of a sample, unless count_all */
	uint64_t	remote;			/* descents to leaves in other domains */
	uint64_t	inner_nodes;	/* visited */
	uint64_t	remote_inner_nodes; /* of these, in other domains */

	uint64_t	annex_skips;	/* lookups that needed no segment of a contended
								 * leaf */
	uint64_t	contended;		/* writes to contended leaves */
	uint64_t	conflicts[EUNO_CAUSES];
} EunoCounters;

struct EunoEpochs;				/* euno_epoch.h */
typedef struct EunoTree EunoTree;	/* euno_core.h */

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

/* So many tries after a write that was delegated ask for crowded places. */
#define EUNO_CROWDS		4096

typedef struct EunoDelegation
{
	bool		always;			/* tests: every place is crowded */
	bool		leading;		/* performs the requests of others */
	uint32_t	crowds;			/* tries that ask whether their place is crowded:
								 * some was lately */
	uint32_t	patience;		/* pauses before it sleeps; 0: as many as may be */
	uint32_t	sleeps;			/* since it had the most */
	uint32_t	shun;			/* operations that are not delegated */
	uint32_t	alone;			/* turns in a row without company */
	uint32_t	followed;		/* operations that others have performed, ever */
	uint32_t	depth;			/* radix trees: of the last crowded place */
	const void *crowded[EUNO_CROWDED];	/* where there has been company */
} EunoDelegation;

/*
 * The leaf, or the node of a radix tree, that a context's last insert went to,
 * or the leaf that comes after what it has read: a guess where the next
 * operation goes.  To be looked at only within an epoch in which the tree's
 * stamp was found to be this one; zeros at first.
 */
typedef struct EunoLast
{
	void	   *leaf;
	uint64_t	stamp;
	bool		again;			/* so did the one before */
} EunoLast;

/* A leaf, and its annex. */
#define EUNO_SPARES		2

/*
 * What an operation may hold when it is left by longjmp, and
 * euno_context_reset must give back; zeros: nothing.
 */
typedef struct EunoHeld
{
	EunoTree   *walking;		/* registered as a walker of this tree */
	EunoTree   *compacting;		/* is the one that merges in this tree */
	EunoTree   *spare_tree;		/* the tree the spares were allocated for */
	void	   *spare[EUNO_SPARES]; /* nodes that were allocated and not used */
	size_t		spare_size[EUNO_SPARES];
	int			spare_domain[EUNO_SPARES];
} EunoHeld;

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
	bool		(*abbreviate) (void *arg, const EunoPosition *pos,
							   EunoAbbreviation *to);	/* the same; false if it
														 * cannot be done */
	void	   *compare_arg;		/* of all three */
	uint32_t	doubts;			/* about approximations; 0 at first */
	bool		want_leaf;		/* have insert set "leaf" (a split does anyway) */
	uint32_t	leaf;			/* number of the leaf that the last insert with
								 * EUNO_OK went to; left alone by trees without
								 * numbers */
	EunoCounters counters;
	uint32_t	phase;			/* descents before those in "counters", and any
								 * number to begin with: which ones are sampled */
	EunoLast	last;
	uint8_t		last_path[EUNO_LAST_PATH];	/* radix trees, with last.again: of the
											 * node, up to the byte it branches on */
	uint16_t	grown_level;	/* radix trees: of the last node that grew as
								 * ascending keys want it to, and about how many
								 * children such nodes had then */
	uint16_t	grown_at;
	EunoLast	next;			/* the leaf at which a scan's next batch begins;
								 * "again" is not used */
	uint32_t	conflicts;		/* at leaves, and writes that count as such, ever;
								 * of which some are looked at */
	uint32_t	met;			/* radix trees: conflicts at the last removal */
	uint32_t	company;		/* removals before others are no longer expected */
	uint32_t	part_leaf;		/* that should be parted, by its next writer; 0:
								 * none */
	EunoDelegation delegation;

	EunoHeld	held;
} EunoContext;

/*
 * To be asked before a try of a write: is it worth while to see whether others
 * meet at its place?
 */
static inline bool
euno_had_crowds(EunoContext *cx)
{
	if (__builtin_expect(cx->delegation.crowds == 0, 1))
		return false;
	cx->delegation.crowds--;
	return true;
}

/*
 * Makes a context for an operation that runs within one of the same process on
 * the same tree: all that the outer one knows, and nothing that it holds or
 * has counted.
 */
extern void euno_context_nest(EunoContext *nested, const EunoContext *outer);

/*
 * Gives back what an operation left by longjmp may hold in its context: spare
 * nodes, its registration as a walker.  Harmless when nothing is held.
 */
extern void euno_context_reset(EunoContext *cx);

/* Sets the nesting depth back; at 0 the epoch is left. */
extern void euno_process_reset(EunoProcess *process, uint32_t depth);

#endif							/* EUNO_CONTEXT_H */
