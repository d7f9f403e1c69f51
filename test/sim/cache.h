/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  What an access to memory costs on the simulated machine.
 *
 * Every core has an L1 and an L2, every socket an L3; each line of 64 bytes is
 * in one state of MESI in each core.  A core that needs a line owned elsewhere
 * waits for its transfer, and the transfers of one line come one after the
 * other: that is what contention is.
 *
 * What the model leaves out: test/sim/RESULTS.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/euno_shared.h"
#include "machine.h"

/* Counted over all cores. */
typedef struct CacheStats
{
	uint64_t	accesses;		/* lines touched */
	uint64_t	l1_misses;
	uint64_t	l2_misses;
	uint64_t	tlb_misses;
	uint64_t	l3_hits;
	uint64_t	memory_local;
	uint64_t	memory_remote;
	uint64_t	transfers_local;	/* from a core of the same socket */
	uint64_t	transfers_remote;	/* from another socket's cores or L3 */
	uint64_t	invalidations;	/* copies dropped because a core writes */
	uint64_t	contested;		/* writes to a line that another core had */
	uint64_t	atomics;
	uint64_t	line_wait;		/* picoseconds until a line was free */
} CacheStats;

extern CacheStats cache_stats;

/* Where new pages are. */
typedef enum Placement
{
	PLACE_INTERLEAVED,			/* page by page on all nodes */
	PLACE_FIRST_NODE,
	PLACE_FIRST_TOUCH			/* where it is touched first */
} Placement;

/*
 * Forgets everything.  Cores are numbered node by node, or if "spread", one of
 * each node in turn.  "slack": how far a core that hits its own caches may run
 * ahead of the others.
 */
extern void cache_reset(const Machine *machine, bool spread,
						Placement placement, Picoseconds slack);

extern uint32_t cache_nodes(void);

/* The node that a core is on. */
extern uint32_t cache_node(uint32_t core);

/* These pages are on that node, until the next reset. */
extern void cache_place(const void *address, size_t size, uint32_t node);

/*
 * The lines of this are copied: every node has its own in its memory, and
 * reads use that; until the next reset.  Writes go to the memory itself, and
 * copies do not learn of them.
 */
extern void cache_copy(const void *address, size_t size);

/* Has either been said of any since the last reset? */
extern bool cache_placed(void);

/*
 * Charges an access to the current thread, which runs on the core of its
 * number.
 */
extern void cache_access(EunoHookKind kind, const void *address, size_t size);

/* Between waits: what was stored before is visible. */
extern void cache_drain(void);

#endif							/* CACHE_H */
