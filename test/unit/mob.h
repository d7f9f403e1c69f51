/*-------------------------------------------------------------------------
 *
 * mob.h
 *	  Many at work on one tree: writers, scanners, walkers, those who merge,
 *	  and those who verify; as threads or as processes.
 *
 * Every entry has one owner, or nobody: those are in the tree throughout.  A
 * writer knows which of its own entries are in the tree, so it can check
 * everything it sees of them; of the others it knows the permanent ones.
 *
 * An entry may be handed over to the walker (VACUUM) and comes back when the
 * walk has removed it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOB_H
#define MOB_H

#include "fixture.h"

typedef enum MobState
{
	MOB_ABSENT,
	MOB_PRESENT,
	MOB_DEAD,					/* handed over to the walker */
	MOB_DOOMED					/* the walk under way removes it */
} MobState;

#define MOB_NOBODY 255

typedef enum MobRole
{
	MOB_WRITER,
	MOB_SCANNER,
	MOB_WALKER,
	MOB_COMPACTOR,
	MOB_VERIFIER
} MobRole;

/* In shared memory. */
typedef struct Mob
{
	Fixture		fixture;
	const Universe *universe;	/* the same address everywhere */
	uint32_t	nwriters;
	uint32_t	escape_every;	/* comparators leave by longjmp this often */
	bool		lagging;		/* nobody posts what others have noted */
	uint64_t	seed;
	uint32_t	stop;			/* atomic */
	uint64_t	operations[MAX_ACTORS]; /* atomic; progress by slot */
	uint64_t	escapes;		/* atomic */
	uint64_t	walks;			/* atomic; completed ones */
	uint64_t	merges;			/* atomic */
	uint64_t	moved;			/* leaves, to other domains; atomic */
	uint64_t	changes;		/* of who has a directory; atomic */
	uint64_t	looked_up;		/* atomic; keys, several at once */
	uint8_t    *owner;			/* of each entry: a writer, or nobody */
	uint8_t    *state;			/* of each entry: MobState; atomic */
} Mob;

/*
 * "writers" of them share the universe.  The permanent entries are in the tree
 * on return.  Nodes come from an arena if "shared" or not under a sanitizer.
 */
extern Mob *mob_make(const EunoTreeOps *ops, const Universe *universe,
					 uint32_t writers, uint16_t ndomains, bool shared,
					 uint64_t seed);
extern void mob_free(Mob *mob);

/* Works until mob->stop.  "slot" from 1 on, one for each at work. */
extern void mob_work(Mob *mob, MobRole role, uint32_t slot);

/* When nobody is at work any more: is everything as it must be? */
extern void mob_settle(Mob *mob);

#endif							/* MOB_H */
