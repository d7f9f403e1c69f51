/*-------------------------------------------------------------------------
 *
 * euno_arena.c
 *	  The reserved memory of all trees, in extents.
 *
 * What is constant (addresses, sizes) is kept in private memory that the
 * postmaster's children inherit, so that a process gone wild cannot spoil what
 * euno_arena_reset() starts from.  What changes is a small shared mapping of
 * its own: a bit per extent that is free, another one if it has kept its pages,
 * and a number per extent that links the extents of a pool.
 *
 * Extents are handed out lowest address first.  A pool that is filled in one
 * go so gets neighbors, which go back to the operating system in one call, and
 * the arena stays dense, which is what transparent huge pages need.
 *
 * A part's lock is not held during a system call, nor beside a pool's lock.
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
#include <unistd.h>

#include "mem/euno_extents.h"

/* Linux 5.14; older C libraries do not know it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Linux 4.17; an older kernel takes the address as a wish. */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Linux 6.1 */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define RESERVE_MAX			64	/* extents */
#define SMALL_POOL			2	/* extents */
#define LOOK_EVERY			16	/* extents are taken between two looks at what
								 * the control group has left */
#define HUGE_PAGE_SIZE		((size_t) 2 * 1024 * 1024)
#define HUGE_PAGE_EXTENTS	((uint32_t) (HUGE_PAGE_SIZE / EUNO_EXTENT_SIZE))
#define LARGE_POOL			(4 * HUGE_PAGE_EXTENTS)	/* extents */

/*
 * One domain's share of the extents, protected by "lock".  Extents are numbered
 * through the whole arena; the bits count from the part's first extent, so that
 * two parts never share a word.
 */
typedef struct EunoArenaPart
{
	EunoLock	lock;
	uint64_t   *free_bits;		/* bit set = extent is free */
	uint64_t   *idle_bits;		/* bit set = and has kept its pages */
	uint32_t	nfree;
	uint32_t	nidle;			/* may be read unlocked */
	uint32_t	low;			/* no bit below this one is set */
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
	uint32_t   *next;			/* shared; an extent's link in the list of its
								 * pool, protected by the pool's lock */
};

void *
euno_arena_extent(EunoArena *arena, uint32_t extent)
{
	return arena->base + (size_t) extent * EUNO_EXTENT_SIZE;
}

/*
 * Makes extents' pages exist.  False when the operating system has no
 * memory for them: better now than as a SIGBUS in the middle of a split.
 */
static bool
extents_populate(EunoArena *arena, uint32_t first, uint32_t count)
{
	uint8_t    *start = euno_arena_extent(arena, first);
	size_t		size = (size_t) count * EUNO_EXTENT_SIZE;
	size_t		page;

	for (;;)
	{
		if (madvise(start, size, MADV_POPULATE_WRITE) == 0)
			return true;
		if (errno == EINVAL)
			break;				/* a kernel before 5.14 */
		if (errno != EINTR && errno != EAGAIN)
			return false;
	}

	page = (size_t) sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < size; i += page)
		*(volatile uint8_t *) (start + i) = 0;
	return true;
}

/* Gives pages of extents back.  Failing costs memory, not correctness. */
static void
extents_punch(EunoArena *arena, uint32_t first, uint32_t count)
{
	/* MADV_DONTNEED would do nothing: the memory is shared. */
	(void) madvise(euno_arena_extent(arena, first),
				   (size_t) count * EUNO_EXTENT_SIZE, MADV_REMOVE);
}

/*
 * Makes one huge page of the extents around this one: a lookup waits for the
 * page tables, too, and each process that reads a tree has its own.  The
 * kernel copies the pages that exist; who touches them meanwhile waits.  It may
 * decline, and before 6.1 it does.
 */
static void
extent_make_huge(EunoArena *arena, uint32_t extent)
{
	if (arena->huge_pages)
		(void) madvise(euno_arena_extent(arena,
									  extent - extent % HUGE_PAGE_EXTENTS),
					   HUGE_PAGE_SIZE, MADV_COLLAPSE);
}

/* The part is locked.  Relaxed: read by statistics without the lock. */
static void
count_idle(EunoArenaPart *part, int32_t count)
{
	__atomic_store_n(&part->nidle, part->nidle + (uint32_t) count,
					 __ATOMIC_RELAXED);
}

/* Marks extents as free, with their pages or without.  The part is locked. */
static void
part_give(EunoArenaPart *part, uint32_t bit, uint32_t count, bool idle)
{
	for (uint32_t i = bit; i < bit + count; i++)
	{
		part->free_bits[i / 64] |= UINT64_C(1) << (i % 64);
		if (idle)
			part->idle_bits[i / 64] |= UINT64_C(1) << (i % 64);
	}
	part->nfree += count;
	if (idle)
		count_idle(part, (int32_t) count);
	if (bit < part->low)
		part->low = bit;
}

/* Marks an extent, which is free, as taken.  The part is locked. */
static void
part_remove(EunoArenaPart *part, uint32_t bit)
{
	uint64_t	mask = UINT64_C(1) << (bit % 64);

	part->free_bits[bit / 64] &= ~mask;
	part->nfree--;
	if ((part->idle_bits[bit / 64] & mask) != 0)
	{
		part->idle_bits[bit / 64] &= ~mask;
		count_idle(part, -1);
	}
}

/*
 * How many of these extents, the first ones, may keep their pages: to whole huge
 * pages, unless all may.  The part is locked.
 */
static uint32_t
part_may_keep(const EunoArena *arena, const EunoArenaPart *part, uint32_t bit,
			  uint32_t count)
{
	uint32_t	most = arena->most_idle > part->nidle ?
		arena->most_idle - part->nidle : 0;
	uint32_t	over = (bit + most) % HUGE_PAGE_EXTENTS;

	if (count <= most)
		return count;
	return over < most ? most - over : 0;
}

/* Marks extents that were used as free.  The part is locked. */
static void
give_used(EunoArena *arena, EunoArenaPart *part, uint32_t bit, uint32_t count,
		  bool idle)
{
	/* relaxed: a statistic */
	__atomic_sub_fetch(&arena->shared->used, count, __ATOMIC_RELAXED);
	part_give(part, bit, count, idle);
}

/* Gives back extents of one part; "keep": some may keep their pages. */
static void
give_to_part(EunoArena *arena, uint32_t first, uint32_t count, bool keep)
{
	EunoArenaPart *part = &arena->shared->parts[first / arena->part_extents];
	uint32_t	bit = first % arena->part_extents;
	uint32_t	kept;

	euno_mutex_lock(&part->lock, arena->env);
	kept = keep ? part_may_keep(arena, part, bit, count) : 0;
	give_used(arena, part, bit, kept, true);
	euno_mutex_unlock(&part->lock, arena->env);
	if (kept == count)
		return;

	/* An extent is not anybody else's before its pages are gone. */
	extents_punch(arena, first + kept, count - kept);
	euno_mutex_lock(&part->lock, arena->env);
	give_used(arena, part, bit + kept, count - kept, false);
	euno_mutex_unlock(&part->lock, arena->env);
}

void
euno_extents_give(EunoArena *arena, uint32_t first, uint32_t count)
{
	while (count > 0)
	{
		uint32_t	here = arena->part_extents - first % arena->part_extents;

		if (here > count)
			here = count;
		give_to_part(arena, first, here, true);
		first += here;
		count -= here;
	}
}

/*
 * Takes some idle extents in a row out of a part, looking from *bit on; how many,
 * and *bit is the first one.  0: there is none.
 */
static uint32_t
part_take_idle(EunoArena *arena, EunoArenaPart *part, uint32_t *bit)
{
	uint32_t	count = 0;

	euno_mutex_lock(&part->lock, arena->env);
	for (; *bit < arena->part_extents && part->nidle > 0; (*bit)++)
	{
		uint64_t	bits = part->idle_bits[*bit / 64] >> (*bit % 64);

		if (bits == 0)
			*bit |= 63;			/* none in this word */
		else if ((bits & 1) != 0)
			break;
	}
	while (*bit + count < arena->part_extents &&
		   (part->idle_bits[(*bit + count) / 64] &
			UINT64_C(1) << ((*bit + count) % 64)) != 0)
		part_remove(part, *bit + count++);
	euno_mutex_unlock(&part->lock, arena->env);
	return count;
}

/*
 * Gives the operating system the pages of all idle extents; false if there were
 * none.
 */
static bool
give_idle_pages(EunoArena *arena)
{
	bool		any = false;

	for (int d = 0; d < arena->ndomains; d++)
	{
		EunoArenaPart *part = &arena->shared->parts[d];
		uint32_t	bit = 0;
		uint32_t	count;

		while ((count = part_take_idle(arena, part, &bit)) > 0)
		{
			extents_punch(arena, (uint32_t) d * arena->part_extents + bit, count);
			euno_mutex_lock(&part->lock, arena->env);
			part_give(part, bit, count, false);
			euno_mutex_unlock(&part->lock, arena->env);
			any = true;
		}
	}
	return any;
}

/*
 * Shall an extent that was just taken become part of a huge page?  If it was the
 * last free one of it; or the first one, where the pool has several huge pages'
 * worth and will want the rest: an empty huge page costs a tenth of one that
 * has to be copied.  Otherwise not, so that a few small trees take no more
 * memory than they need.  Never of a huge page that the part has not to itself.
 * The part is locked.
 */
static bool
part_wants_huge_page(const EunoArena *arena, int domain, uint32_t bit,
					 bool large)
{
	const EunoArenaPart *part = &arena->shared->parts[domain];
	uint32_t	first = bit - bit % HUGE_PAGE_EXTENTS;
	uint32_t	free_bits =
		(uint32_t) (part->free_bits[first / 64] >> first % 64);

	return (free_bits == 0 ||
			(large && free_bits == ~(UINT32_C(1) << (bit - first)))) &&
		first + HUGE_PAGE_EXTENTS <= arena->part_extents &&
		(uint32_t) domain * arena->part_extents % HUGE_PAGE_EXTENTS == 0;
}

/*
 * The lowest free extent of a part, now taken.  *huge: make a huge page of it
 * and its neighbors.  False when there are no more than "keep".
 */
static bool
part_take(EunoArena *arena, int domain, uint32_t keep, bool large,
		  uint32_t *extent, bool *huge)
{
	EunoArenaPart *part = &arena->shared->parts[domain];
	bool		found = false;

	euno_mutex_lock(&part->lock, arena->env);
	if (part->nfree > keep)
	{
		uint32_t	word = part->low / 64;
		uint32_t	bit;

		while (part->free_bits[word] == 0)
			word++;
		bit = word * 64 + (uint32_t) __builtin_ctzll(part->free_bits[word]);
		part_remove(part, bit);
		part->low = bit + 1;
		*extent = (uint32_t) domain * arena->part_extents + bit;
		*huge = part_wants_huge_page(arena, domain, bit, large);
		found = true;
	}
	euno_mutex_unlock(&part->lock, arena->env);
	return found;
}

/* Counts extents as used; returns how many there are now. */
static uint64_t
count_used(EunoArenaShared *shared, uint32_t count)
{
	/* relaxed: statistics */
	uint64_t	used = __atomic_add_fetch(&shared->used, count,
										  __ATOMIC_RELAXED);
	uint64_t	peak = __atomic_load_n(&shared->peak, __ATOMIC_RELAXED);

	while (peak < used &&
		   !__atomic_compare_exchange_n(&shared->peak, &peak, used, false,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return used;
}

/* Will the machine give us this much without harm? */
static inline bool
is_allowed(EunoArena *arena, uint64_t bytes)
{
	return arena->allows == NULL || arena->allows(bytes);
}

/* Extents of a part that only small pools get. */
static inline uint32_t
part_reserve(EunoArena *arena)
{
	uint32_t	reserve = arena->part_extents / 32;

	return reserve < RESERVE_MAX ? reserve : RESERVE_MAX;
}

/* See euno_extent_take. */
static bool
extent_take(EunoArena *arena, int domain, uint64_t extents, uint32_t *extent)
{
	uint32_t	keep = extents < SMALL_POOL ? 0 : part_reserve(arena);
	bool		large = extents >= LARGE_POOL;

	for (int i = 0; i < arena->ndomains; i++)
	{
		bool		huge;

		if (!part_take(arena, (domain + i) % arena->ndomains, keep, large,
					   extent, &huge))
			continue;
		if ((count_used(arena->shared, 1) % LOOK_EVERY != 1 ||
			 is_allowed(arena, LOOK_EVERY * EUNO_EXTENT_SIZE)) &&
			extents_populate(arena, *extent, 1))
		{
			if (huge && is_allowed(arena, HUGE_PAGE_SIZE))
				extent_make_huge(arena, *extent);
			return true;
		}
		give_to_part(arena, *extent, 1, false);
		return false;			/* the machine is full, not just the part */
	}
	return false;
}

bool
euno_extent_take(EunoArena *arena, int domain, uint64_t extents,
				 uint32_t *extent)
{
	/* The machine may be full of what is idle here. */
	return extent_take(arena, domain, extents, extent) ||
		(give_idle_pages(arena) &&
		 extent_take(arena, domain, extents, extent));
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
 * The extents' address space, at "where" if that is free.  Untouched pages cost
 * nothing.  Both the address and the offset in the mapping must be multiples
 * of a huge page, or the kernel gives none: so an address is found with a
 * reservation that is a huge page longer.
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
	size_t		nextents = (size_t) arena->part_extents * arena->ndomains;
	size_t		bits_size = (size_t) arena->part_words * arena->ndomains *
		2 * sizeof(uint64_t);
	size_t		size = nextents * EUNO_EXTENT_SIZE;
	uint8_t    *shared;

	shared = mmap(NULL, sizeof(EunoArenaShared) + bits_size +
				  nextents * sizeof(uint32_t), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		return false;
	arena->shared = (EunoArenaShared *) shared;
	arena->free_bits = (uint64_t *) (shared + sizeof(EunoArenaShared));
	arena->next = (uint32_t *) (shared + sizeof(EunoArenaShared) + bits_size);

	arena->base = map_extents(where, size);
	if (arena->base == MAP_FAILED)
	{
		int			save_errno = errno;

		munmap(shared, sizeof(EunoArenaShared) + bits_size +
			   nextents * sizeof(uint32_t));
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
euno_arena_reserve(size_t bytes, int ndomains, const EunoEnvironment *env)
{
	return euno_arena_reserve_at(NULL, bytes, ndomains, env);
}

EunoArena *
euno_arena_reserve_at(void *where, size_t bytes, int ndomains,
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
	size_t		nextents = (size_t) arena->part_extents * arena->ndomains;

	arena->huge_pages = false;
	(void) madvise(arena->base, nextents * EUNO_EXTENT_SIZE, MADV_NOHUGEPAGE);
}

void
euno_arena_reset(EunoArena *arena)
{
	extents_punch(arena, 0, euno_arena_extents(arena));
	arena_init_shared(arena);
}

void
euno_arena_part(EunoArena *arena, int domain, void **start, size_t *size)
{
	*start = euno_arena_extent(arena, (uint32_t) domain * arena->part_extents);
	*size = (size_t) arena->part_extents * EUNO_EXTENT_SIZE;
}

void
euno_arena_usage(EunoArena *arena, uint64_t *reserved, uint64_t *used,
				 uint64_t *peak)
{
	*reserved = (uint64_t) arena->part_extents * (uint64_t) arena->ndomains *
		EUNO_EXTENT_SIZE;

	/* relaxed: statistics */
	*used = EUNO_EXTENT_SIZE *
		__atomic_load_n(&arena->shared->used, __ATOMIC_RELAXED);
	*peak = EUNO_EXTENT_SIZE *
		__atomic_load_n(&arena->shared->peak, __ATOMIC_RELAXED);
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
	return (uint64_t) part_reserve(arena) * (uint64_t) arena->ndomains *
		EUNO_EXTENT_SIZE;
}

EunoArenaPlace
euno_arena_place(EunoArena *arena)
{
	EunoArenaPlace place = {.base = (uintptr_t) arena->base,
		.extents = (uint64_t) arena->part_extents * (uint64_t) arena->ndomains,
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

uint32_t
euno_extent_of(const EunoArena *arena, const void *node)
{
	return (uint32_t) ((size_t) ((const uint8_t *) node - arena->base) /
					   EUNO_EXTENT_SIZE);
}

uint32_t *
euno_extent_link(EunoArena *arena, uint32_t extent)
{
	return &arena->next[extent];
}

bool
euno_extent_claim(EunoArena *arena, uint32_t extent)
{
	EunoArenaPart *part = &arena->shared->parts[extent / arena->part_extents];
	uint32_t	bit = extent % arena->part_extents;

	if ((part->free_bits[bit / 64] & UINT64_C(1) << (bit % 64)) == 0)
		return false;
	part_remove(part, bit);
	return true;
}

bool
euno_extents_fill(EunoArena *arena, uint32_t first, uint32_t count)
{
	(void) count_used(arena->shared, count);
	if (!is_allowed(arena, (uint64_t) count * EUNO_EXTENT_SIZE))
		return false;

	/* One extent is enough to make a huge page of: the less is copied. */
	for (uint32_t end = first + count - (first + count) % HUGE_PAGE_EXTENTS;
		 end >= first + HUGE_PAGE_EXTENTS; end -= HUGE_PAGE_EXTENTS)
	{
		if (!extents_populate(arena, end - 1, 1))
			return false;
		extent_make_huge(arena, end - 1);
	}
	return extents_populate(arena, first, count);
}
