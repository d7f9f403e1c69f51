/*-------------------------------------------------------------------------
 *
 * euno_arena.c
 *	  The reserved memory of all trees: made, cleared, described.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/arena_private.h"

/* Linux 4.17; an older kernel takes the address as a wish. */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void *
euno_arena_extent(EunoArena *arena, uint32_t extent)
{
	return arena->base + (size_t) extent * EUNO_EXTENT_SIZE;
}

/* Sets what is shared to "everything is free". */
static void
arena_init_shared(EunoArena *arena)
{
	memset(arena->shared, 0, sizeof(EunoArenaShared));
	for (int d = 0; d < arena->ndomains; d++)
	{
		EunoArenaPart *part = &arena->shared->parts[d];

		part->free_bits = arena->free_bits + (size_t) d * arena->part_words;
		part->idle_bits = part->free_bits +
			(size_t) arena->ndomains * arena->part_words;
		part->nfree = arena->part_extents;
		memset(part->idle_bits, 0, arena->part_words * sizeof(uint64_t));
		memset(part->free_bits, 0xFF, arena->part_words * sizeof(uint64_t));
		if (arena->part_extents % 64 != 0)
			part->free_bits[arena->part_words - 1] =
				(UINT64_C(1) << (arena->part_extents % 64)) - 1;
	}
}

/*
 * The extents' address space, at "where" if that is free.  Untouched pages
 * cost nothing.  Both the address and the offset in the mapping must be
 * multiples of a huge page, or the kernel gives none: so an address is found
 * with a reservation that is a huge page longer.
 */
static uint8_t *
map_extents(void *where, size_t size)
{
	int			flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
	void	   *region = MAP_FAILED;
	uint8_t    *reserved;
	uint8_t    *base;

	if (where != NULL)
		region = mmap(where, size, PROT_READ | PROT_WRITE,
					  flags | MAP_FIXED_NOREPLACE, -1, 0);
	if (region != MAP_FAILED)
		return region;
	reserved = mmap(NULL, size + HUGE_PAGE_SIZE, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	base = (uint8_t *) (((uintptr_t) reserved + HUGE_PAGE_SIZE - 1) &
						~(uintptr_t) (HUGE_PAGE_SIZE - 1));
	region = mmap(base, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
	if (region == MAP_FAILED)
		(void) munmap(reserved, size + HUGE_PAGE_SIZE);
	return region;
}

/* Both mappings.  False, with errno set and nothing mapped, on failure. */
static bool
arena_map(EunoArena *arena, void *where)
{
	size_t		nextents = euno_arena_extents(arena);
	size_t		bits_size = (size_t) arena->part_words * arena->ndomains *
		2 * sizeof(uint64_t);
	size_t		shared_size = sizeof(EunoArenaShared) + bits_size +
		nextents * (sizeof(EunoExtentMap) + sizeof(EunoExtent));
	size_t		size = nextents * EUNO_EXTENT_SIZE;
	uint8_t    *shared;

	shared = mmap(NULL, shared_size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		return false;
	arena->shared = (EunoArenaShared *) shared;
	arena->free_bits = (uint64_t *) (shared + sizeof(EunoArenaShared));
	arena->maps = (EunoExtentMap *) (shared + sizeof(EunoArenaShared) + bits_size);
	arena->extents = (EunoExtent *) (arena->maps + nextents);

	arena->base = map_extents(where, size);
	if (arena->base == MAP_FAILED)
	{
		int			save_errno = errno;

		munmap(shared, shared_size);
		errno = save_errno;
		return false;
	}

	/*
	 * A core dump must not try to write gigabytes.  Where the system is set
	 * to give shared memory huge pages at once, we take them.
	 */
	(void) madvise(arena->base, size, MADV_DONTDUMP);
	(void) madvise(arena->base, size, MADV_HUGEPAGE);
	return true;
}

EunoArena *
euno_arena_reserve(void *where, size_t bytes, int ndomains,
				   const EunoEnvironment *env)
{
	size_t		nextents = bytes / EUNO_EXTENT_SIZE;
	EunoArena  *arena;

	if (ndomains < 1 || ndomains > EUNO_MAX_DOMAINS ||
		nextents < (size_t) ndomains || nextents >= UINT32_MAX)
	{
		errno = EINVAL;
		return NULL;
	}

	arena = malloc(sizeof(EunoArena));
	if (arena == NULL)
		return NULL;
	arena->ndomains = ndomains;
	arena->huge_pages = true;
	arena->env = env;
	arena->allows = NULL;
	arena->most_idle = 0;
	arena->part_extents = (uint32_t) (nextents / (size_t) ndomains);

	/* A part is bound to memory: let it begin on a huge page. */
	if (ndomains > 1 && arena->part_extents > HUGE_PAGE_EXTENTS)
		arena->part_extents -= arena->part_extents % HUGE_PAGE_EXTENTS;
	arena->part_words = (arena->part_extents + 63) / 64;
	if (!arena_map(arena, where))
	{
		int			save_errno = errno;

		free(arena);
		errno = save_errno;
		return NULL;
	}
	arena_init_shared(arena);
	return arena;
}

void
euno_arena_no_huge_pages(EunoArena *arena)
{
	arena->huge_pages = false;
	(void) madvise(arena->base, euno_arena_extents(arena) * EUNO_EXTENT_SIZE,
				   MADV_NOHUGEPAGE);
}

void
euno_arena_reset(EunoArena *arena)
{
	euno_extents_punch(arena, 0, euno_arena_extents(arena));
	arena_init_shared(arena);
}

void
euno_arena_part(EunoArena *arena, int domain, void **start, size_t *size)
{
	*start = euno_arena_extent(arena, (uint32_t) domain * arena->part_extents);
	*size = (size_t) arena->part_extents * EUNO_EXTENT_SIZE;
}

EunoArenaUsage
euno_arena_usage(EunoArena *arena)
{
	EunoArenaUsage usage;

	/* relaxed: statistics */
	usage.reserved = euno_arena_extents(arena) * EUNO_EXTENT_SIZE;
	usage.used = EUNO_EXTENT_SIZE *
		__atomic_load_n(&arena->shared->used, __ATOMIC_RELAXED);
	usage.peak = EUNO_EXTENT_SIZE *
		__atomic_load_n(&arena->shared->peak, __ATOMIC_RELAXED);
	return usage;
}

uint64_t
euno_arena_idle(EunoArena *arena)
{
	uint64_t	idle = 0;

	/* relaxed: a statistic */
	for (int d = 0; d < arena->ndomains; d++)
		idle += __atomic_load_n(&arena->shared->parts[d].nidle,
								__ATOMIC_RELAXED);
	return idle * EUNO_EXTENT_SIZE;
}

void
euno_arena_keep_idle(EunoArena *arena, size_t bytes)
{
	arena->most_idle = (uint32_t) (bytes / EUNO_EXTENT_SIZE /
								   (size_t) arena->ndomains);
}

void
euno_arena_ask(EunoArena *arena, bool (*allows) (uint64_t bytes))
{
	arena->allows = allows;
}

uint64_t
euno_arena_kept(EunoArena *arena)
{
	return (uint64_t) arena_part_reserve(arena) * (uint64_t) arena->ndomains *
		EUNO_EXTENT_SIZE;
}

EunoArenaPlace
euno_arena_place(EunoArena *arena)
{
	EunoArenaPlace place = {.base = (uintptr_t) arena->base,
		.extents = euno_arena_extents(arena),
	.domains = (uint64_t) arena->ndomains};

	return place;
}

const EunoEnvironment *
euno_arena_environment(const EunoArena *arena)
{
	return arena->env;
}

uint32_t
euno_arena_extents(const EunoArena *arena)
{
	return arena->part_extents * (uint32_t) arena->ndomains;
}
