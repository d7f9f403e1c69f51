/*-------------------------------------------------------------------------
 *
 * fixture.h
 *	  A tree with its surroundings, those who use it, and the checks of what
 *	  they see.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "universe.h"

/* A sorted array under one mutex: slow, and simple enough to be right. */
extern const EunoTreeOps reference_ops;

/* Frees what a reference tree holds. */
extern void reference_destroy(EunoTree *tree);

/* The trees that every suite runs over. */
extern const EunoTreeOps *const subjects[];
extern const int nsubjects;

/* Those of them that must be asked for (modes.c). */
extern EunoTreeOps contended_ops;
extern EunoTreeOps flapping_ops;
extern const EunoTreeOps crowded_bpt_ops;
extern EunoTreeOps crowded_art_ops;

/* Only those that EUNO_TREE names, or whose mode it names, if it is set. */
extern bool subject_selected(const EunoTreeOps *ops);

/* Can the tree hold keys of this kind? */
extern bool subject_holds(const EunoTreeOps *ops, const Shape *shape);

/*
 * By how much to divide a test's size: less is done under a sanitizer, and for
 * the reference, which has nothing to hide and takes its time.
 */
extern uint32_t small(const EunoTreeOps *ops);

#define MAX_ACTORS 128

typedef struct Fixture
{
	const EunoTreeOps *ops;
	const Universe *universe;
	uint16_t	ndomains;
	EunoTree   *tree;			/* shared memory */
	NodeSource *source;			/* shared memory */
	EunoPool   *pools;			/* shared memory, or NULL */
	EunoEpochs *epochs;			/* shared memory */
	uint64_t   *guard;			/* shared memory: the word of guarded removes */
} Fixture;

/* One thread or process, with one context. */
typedef struct Actor
{
	Fixture    *fixture;
	EunoProcess process;
	EunoContext cx;
	Random		random;
	EunoCursor *cursor;			/* of the read being checked */
	EunoTree   *twin;			/* if set, some batches are read from this one */
	EunoBatch	batch;
	EunoTid    *tids;
	EunoItemKey *keys;
	uint8_t    *buf;
	EunoWalkRoom *room;
} Actor;

#define ACTOR_ITEMS 4096

/*
 * An empty tree for entries of this universe.  The nodes come from an arena
 * that is made at the first use if "shared", else from malloc.  fixture_open:
 * malloc under a sanitizer, which then knows about the nodes' ends.
 */
extern void fixture_open_in(Fixture *fixture, const EunoTreeOps *ops,
							const Universe *universe, uint16_t fillfactor,
							uint16_t ndomains, bool shared);
extern void fixture_open(Fixture *fixture, const EunoTreeOps *ops,
						 const Universe *universe, uint16_t fillfactor,
						 uint16_t ndomains);

/*
 * For a process that was forked since: takes part in barriers in all processes.
 * Under a sanitizer each makes its own, which ThreadSanitizer understands.
 */
extern void fixture_join(Fixture *fixture);

/* Checks its pools, too. */
extern void fixture_close(Fixture *fixture);

extern void actor_init(Actor *actor, Fixture *fixture, uint32_t slot,
					   uint64_t seed);
extern void actor_free(Actor *actor);

/* A tree, one who uses it, and what should be in it. */
typedef struct Case
{
	Universe   *universe;		/* its own, or NULL */
	Fixture		fixture;
	Actor		actor;
	Model		model;
} Case;

/* case_make: for a universe of its own, of about n entries. */
extern void case_open(Case *c, const EunoTreeOps *ops,
					  const Universe *universe, uint16_t ndomains,
					  uint64_t seed);
extern void case_make(Case *c, const EunoTreeOps *ops, const Shape *shape,
					  uint32_t n, uint64_t seed);
extern void case_close(Case *c);

/* A walk by this actor, of as much at once as chance will have it. */
extern EunoWalk actor_walk(Actor *actor, EunoWalkDecide decide,
						   EunoWalkPause pause, void *arg);

/*
 * An environment whose process is canceled when it has waited once; how often
 * it has, since the caller set that to 0.  Who waits for a third time has not
 * noticed: the program ends.  (A read may try the short way first, and sleep
 * there too.)
 */
extern EunoEnvironment canceled_env(void);
extern uint32_t canceled_waits;

/* One operation, its status checked against the model, the model kept up. */
extern void do_insert(Actor *actor, Model *model, uint32_t i);
extern void do_remove(Actor *actor, Model *model, uint32_t i);
extern void do_contains(Actor *actor, const Model *model, uint32_t i);

/* A random one of them. */
extern void do_random(Actor *actor, Model *model, uint32_t insert_percent);

/*
 * Reads a random range back and forth in random batch sizes; every batch is
 * checked.  With "mutate", entries are inserted and removed between batches.
 */
extern void check_range(Actor *actor, Model *model, bool mutate);

/* Everything, forward and backward, and what verify and stats say. */
extern void check_all(Actor *actor, const Model *model);

/* Keys that it has looked up several at once. */
extern uint64_t check_keys_read;

/* Only verify; for when others may be writing. */
extern void check_verify(Actor *actor);

/* Loads what the model says is present into an empty tree. */
extern void do_bulk_load(Actor *actor, const Model *model);

/* That a pool's maps and lists agree, while nobody uses it (pools.c). */
extern void check_pool(const EunoPool *pool);

/* Merges until there is nothing left to merge. */
extern void do_compact(Actor *actor);

#endif							/* FIXTURE_H */
