/*-------------------------------------------------------------------------
 *
 * euno_extents.h
 *	  The arena's extents, for pools.
 *
 * Extents are numbered through the whole arena, from 0.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_EXTENTS_H
#define EUNO_EXTENTS_H

#include "mem/euno_arena.h"

extern const EunoEnvironment *euno_arena_environment(const EunoArena *arena);

/* How many extents there are, of all domains. */
extern uint32_t euno_arena_extents(const EunoArena *arena);

/* The extent in which a node lies. */
extern uint32_t euno_extent_of(const EunoArena *arena, const void *node);

/* What a pool knows of one of its extents, protected by the pool's lock. */
typedef struct EunoExtent
{
	uint32_t	link;			/* number of the pool's next one plus 1; 0 = none */
	uint32_t	swept;			/* in which of the pool's sweeps */
} EunoExtent;

/* Which pieces are free nodes, or parts of them; zeros at first. */
#define EUNO_PIECE			8	/* bytes; nodes are as many pieces */
#define EUNO_EXTENT_PIECES	(EUNO_EXTENT_SIZE / EUNO_PIECE)

typedef struct EunoExtentMap
{
	uint64_t	free[EUNO_EXTENT_PIECES / 64];
} EunoExtentMap;

extern EunoExtent *euno_extent(EunoArena *arena, uint32_t extent);
extern EunoExtentMap *euno_extent_map(EunoArena *arena, uint32_t extent);

/*
 * Hands out one extent, whose pages exist, to a pool that has "extents" of
 * them already: of this domain if one is free there, else of the next domain
 * that has one, for far memory is better than none.  False when there is none,
 * or the machine has no memory for it.  The caller holds no lock, but for the
 * registry's when a tree is created.
 */
extern bool euno_extent_take(EunoArena *arena, int domain, uint64_t extents,
							 uint32_t *extent);

/* When this process was last told that there is none: was it the machine? */
extern bool euno_extent_refused(void);

/*
 * Gives extents back, of one domain or of several, and their pages to the
 * operating system, but for what is kept for the next one.  The caller holds
 * no lock.
 */
extern void euno_extents_give(EunoArena *arena, uint32_t first,
							  uint32_t count);

/*
 * For images, while no other process uses the arena: takes this extent, false
 * if it is not free; then counts extents that were taken so and makes their
 * pages exist, false if there is no memory.
 */
extern bool euno_extent_claim(EunoArena *arena, uint32_t extent);
extern bool euno_extents_fill(EunoArena *arena, uint32_t first,
							  uint32_t count);

#endif							/* EUNO_EXTENTS_H */
