/*-------------------------------------------------------------------------
 *
 * euno_policy.h
 *	  What the launcher does to trees, decided from what was counted.
 *
 * Counters in, actions out.  No shared memory, no clock, no PostgreSQL: the
 * same input gives the same actions, here and in the test program.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_POLICY_H
#define EUNO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Leaves of a tree that the policy keeps in mind, and looks at in a round. */
#define EUNO_POLICY_LEAVES	64

typedef struct EunoPolicySettings
{
	double		hot_rate;		/* conflicts a second that make a leaf hot; 0:
								 * none ever is */
	double		merge_part;		/* removals, as a part of the entries, after which
								 * leaves are merged; 0: never */
	double		naptime;		/* seconds from one round to the next */
} EunoPolicySettings;

/* A leaf in the round that has just ended. */
typedef struct EunoPolicyLeaf
{
	uint32_t	leaf;			/* its number */
	uint32_t	conflicts;
	uint32_t	writes;			/* while it was contended */
	uint32_t	same_key;		/* conflicts about one key; those of a round
								 * count half in the next */
	uint32_t	other_key;		/* about different keys, likewise */
} EunoPolicyLeaf;

typedef struct EunoPolicyInput
{
	uint64_t	generation;		/* of the tree */
	double		seconds;		/* length of the round */
	uint64_t	entries;
	uint64_t	removals;		/* ever */
	bool		can_merge;		/* by the launcher, which has no comparator */
	bool		can_contend;	/* leaves can be made contended */
	bool		can_part;		/* ... and be split between their keys */
	uint64_t	all_leaves;
	uint64_t	contended;		/* of them, how many are */
	uint64_t	parted;			/* ... contention splits have made */
	uint32_t	nleaves;		/* at most EUNO_POLICY_LEAVES; the hottest */
	EunoPolicyLeaf leaves[EUNO_POLICY_LEAVES];
} EunoPolicyInput;

typedef enum EunoLeafState
{
	EUNO_LEAF_CALM,
	EUNO_LEAF_HOT
} EunoLeafState;

typedef struct EunoLeafMemory
{
	uint32_t	leaf;
	uint16_t	state;			/* EunoLeafState */
	uint16_t	streak;			/* rounds in a row that speak for the other state */
	uint32_t	rounds;			/* in this state */
} EunoLeafMemory;

/* What the policy remembers of a tree.  All zero at first. */
typedef struct EunoPolicyMemory
{
	uint64_t	generation;
	uint64_t	merged_at;		/* removals when the last merging began */
	bool		merging;		/* not through yet */
	uint32_t	idle_rounds;	/* since it was seen whether what is parted is idle */
	uint32_t	nleaves;
	EunoLeafMemory leaves[EUNO_POLICY_LEAVES];
} EunoPolicyMemory;

/* What is to be done to a tree. */
typedef struct EunoPolicyActions
{
	uint32_t	look;			/* leaves to look at: merge where it is due, and
								 * calm what is idle */
	uint32_t	part_at;		/* conflicts about different keys after which a leaf
								 * is to be parted between these; 0: never */
	uint32_t	part_most;		/* as long as there are fewer that are */
	uint32_t	hot;			/* leaves that are hot now */
	uint32_t	nheated;		/* leaves that have become hot */
	uint32_t	ncooled;		/* leaves that are calm again */
	uint32_t	heated[EUNO_POLICY_LEAVES];
	uint32_t	cooled[EUNO_POLICY_LEAVES];
} EunoPolicyActions;

/*
 * Decides on one tree.  Takes what it needs from *budget, which is that of the
 * round for all trees together.
 */
extern void euno_policy_decide(const EunoPolicySettings *settings,
							   const EunoPolicyInput *input,
							   EunoPolicyMemory *memory, uint32_t *budget,
							   EunoPolicyActions *actions);

/* The merging that was asked for has come to the end of the tree. */
extern void euno_policy_merged(EunoPolicyMemory *memory);

/*
 * A copy of a tree's inner nodes that a domain could have, or has
 * (euno_policy_copies.c).
 */
typedef struct EunoPolicyCopy
{
	int			tree;
	int			domain;
	uint64_t	bytes;			/* that it takes, or would take */
	double		use;			/* of the tree by the domain, a second */
	bool		asked;			/* somebody wants it in any case */
	bool		made;			/* it is there */
	bool		keep;			/* out: it shall be there */
} EunoPolicyCopy;

/*
 * Decides which copies there shall be: at most "budget" bytes, but for those
 * that are asked for; none is made anew that is used less than "least_use".
 * Changes the order of the copies.
 */
extern void euno_policy_copies(double least_use, uint64_t budget,
							   EunoPolicyCopy *copies, uint32_t n);

#endif							/* EUNO_POLICY_H */
