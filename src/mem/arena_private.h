/*-------------------------------------------------------------------------
 *
 * arena_private.h
 *	  What the files of the arena share.
 *
 * What is constant (addresses, sizes) is kept in private memory that the
 * postmaster's children inherit, so that a process gone wild cannot spoil what
 * euno_arena_reset() starts from.  What changes is a small shared mapping of
 * its own: a bit per extent that is free, another one if it has kept its pages,
 * and of each extent that a pool has what that pool needs to know.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ARENA_PRIVATE_H
#define ARENA_PRIVATE_H

#include "mem/euno_extents.h"

#define HUGE_PAGE_SIZE		((size_t) 2 * 1024 * 1024)
#define HUGE_PAGE_EXTENTS	((uint32_t) (HUGE_PAGE_SIZE / EUNO_EXTENT_SIZE))

/* Extents of a part that only small pools get: at most. */
#define RESERVE_MAX			64

/*
 * One domain's share of the extents, protected by "lock".  Extents are
 * numbered through the whole arena; the bits count from the part's first
 * extent, so that two parts never share a word.
 */
typedef struct EunoArenaPart
{
	EunoLock	lock;
	uint64_t   *free_bits;		/* bit set = extent is free */
	uint64_t   *idle_bits;		/* bit set = and has kept its pages */
	uint32_t	nfree;
	uint32_t	nidle;			/* may be read unlocked */
	uint32_t	low;			/* no bit below this one is set */
	uint32_t	high;			/* no huge page from this bit on is all idle */
} __attribute__((aligned(128))) EunoArenaPart;

typedef struct EunoArenaShared
{
	uint64_t	used __attribute__((aligned(128)));	/* extents handed out */
	uint64_t	peak;			/* most of them ever */
	EunoArenaPart parts[EUNO_MAX_DOMAINS];
} EunoArenaShared;

struct EunoArena
{
	uint8_t    *base;			/* of extent 0 */
	uint32_t	part_extents;	/* how many a part has */
	uint32_t	part_words;		/* words of free bits of a part */
	uint32_t	most_idle;		/* extents of a part that keep their pages */
	int			ndomains;
	bool		huge_pages;		/* ask for them */
	const EunoEnvironment *env;
	bool		(*allows) (uint64_t bytes);	/* may be NULL */
	EunoArenaShared *shared;
	uint64_t   *free_bits;		/* shared; part_words for each part, and as
								 * many idle bits behind all of these */
	EunoExtent *extents;		/* shared; each protected by its pool's lock */
	EunoExtentMap *maps;		/* the same */
};

/* Extents of a part that only small pools get. */
static inline uint32_t
arena_part_reserve(EunoArena *arena)
{
	uint32_t	reserve = arena->part_extents / 32;

	return reserve < RESERVE_MAX ? reserve : RESERVE_MAX;
}

/*
 * Gives pages of extents back to the operating system.  Failing costs memory,
 * not correctness.
 */
extern void euno_extents_punch(EunoArena *arena, uint32_t first,
							   uint32_t count);

#endif							/* ARENA_PRIVATE_H */
