/*-------------------------------------------------------------------------
 *
 * stage.h
 *	  A small tree, and threads with a few operations each, for schedules.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STAGE_H
#define STAGE_H

#include "coroutines.h"
#include "history.h"
#include "core/euno_core.h"

typedef enum Keys
{
	KEYS_FIXED,					/* 4 in a leaf, all equally long */
	KEYS_SLOTTED,				/* the same, of different lengths */
	KEYS_POSTING,				/* 4 TIDs a key, 4 keys in a leaf */
	KEYS_LONG,					/* the same but for the end, by threes */
	KEYS_COMPARE,				/* a comparator decides */
	KEYS_MATCH,					/* the same, with 4 TIDs a key */
	KEYS_FAN,					/* children of one node of a radix tree, but for
								 * 40 to 43 and 44 to 47, that part from these
								 * a byte and two bytes earlier */
	KEYS_WIDE,					/* the same with 4 bytes more, and two entries in
								 * a row share their child */
	KEYS_WIDEST					/* the same with 12 */
} Keys;

/*
 * Operations are words: iN insert entry N, rN remove it, cN look for it, fA-B
 * read from A to B, FA-B the same without keys, bA-B backward, wA-B walk and
 * remove A to B, m merge, n go on merging, one leaf more, v verify, M maintain the directory of the own domain,
 * DN use N domains, aN make the leaf that entry N belongs to contended, zN make
 * it calm, tN split it beside entry N.  pN-D moves the leaf of entry N to domain
 * D, P those that others use.  h looks at the conflicts that were noted, H the
 * same and begins a new round.  lN looks up the key of entry N, qA-B those of
 * entries A to B at once.  At the start, of KEYS_FAN: kA-B insert fillers,
 * xA-B remove them.  These are other children of the same node, three after
 * each entry; they must stay.
 *
 * A model of VACUUM and of those who still hold a TID (src/README.md): dA-B
 * bulk delete, which changes the vacuum epoch; sA-B an index-only scan, which
 * announces its TIDs; gN a deferred removal: of entry N if the vacuum epoch is
 * what it was at first; G change the vacuum epoch.
 *
 * A model of predicate locks (src/README.md, "Serializable transactions"): yN
 * look for entry N as the one serializable reader, uN insert it as a writer
 * who must meet him.
 *
 * A model of the states of a tree (src/README.md), for cases that are
 * "pinned": each operation enters an epoch and looks whether the tree is still
 * there before it uses it; E evicts the tree.
 */
typedef struct Case
{
	const char *name;			/* for EUNO_SCHEDULE */
	Keys		keys;
	const char *start;			/* operations that make the tree */
	const char *threads[MAX_COROUTINES];	/* what each one does */
	uint16_t	ndomains;
	uint32_t	max_items;		/* of a batch */
	unsigned	flags;
} Case;

#define CASE_EMPTIES	1		/* a batch may be of several leaves */
#define CASE_PINNED		2		/* see above */
#define CASE_LAGGING	4		/* operations post no more than they must */
#define CASE_RADIX		8		/* says nothing of other trees */
#define CASE_CROWDED	32		/* all writes are delegated ... */
#define CASE_LATE		64		/* ... and some sleeps end without news */
#define CASE_MODES		16		/* says nothing of trees without modes */
#define CASE_MOVES		128		/* says nothing where leaves do not move */
#define CASE_COUNTED	256		/* every descent is counted by domain */
#define CASE_SINGLE		512		/* begins with one directory */
#define CASE_HEAT		1024		/* every conflict is noted */
#define CASE_ABBREVIATED 2048	/* keys are, in inner nodes */
#define CASE_APART		4096	/* each has its own barriers (euno_barrier.h) */
#define CASE_KNOWING	8192	/* the first thread remembers what was at the start */
#define CASE_HASTY		16384	/* who has to try once more locks at once */
#define CASE_WHOLE		32768	/* all schedules of two preemptions, of however
								 * many threads */

/* What all runs since stage_open did. */
typedef struct StageCounts
{
	uint64_t	splits;
	uint64_t	merges;
	uint64_t	moves;
	uint64_t	hot;			/* leaves with conflicts that were seen */
	uint64_t	restarts;
	uint64_t	right_moves;
	uint64_t	waits;
	uint64_t	frees;
	uint64_t	lag;
} StageCounts;

extern StageCounts stage_counts;

/* Makes the tree that each run starts from.  NULL, or what was wrong. */
extern const char *stage_open(const EunoTreeOps *ops, const Case *c);

/* One run.  NULL, or what was wrong. */
extern const char *stage_run(const Schedule *schedule, uint32_t *steps);

/* How many threads the case has. */
extern uint32_t stage_threads(void);

/* What they saw in the last run. */
extern void stage_print(void);

#endif							/* STAGE_H */
