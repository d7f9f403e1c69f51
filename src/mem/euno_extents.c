/*-------------------------------------------------------------------------
 *
 * euno_extents.c
 *	  Extents: handed out, given back, with their pages or without.
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
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/arena_private.h"

/* Linux 5.14; older C libraries do not know it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Linux 6.1 */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SMALL_POOL			2	/* extents */
#define LOOK_EVERY			16	/* extents are taken between two looks at what
								 * the control group has left */
#define LARGE_POOL			(4 * HUGE_PAGE_EXTENTS)	/* extents */
#define READY_PART			16	/* what part of a part stays free while extents
								 * are made ready */

/* Gives pages of extents back.  Failing costs memory, not correctness. */
void
euno_extents_punch(EunoArena *arena, uint32_t first, uint32_t count)
{
	/* MADV_DONTNEED would do nothing: the memory is shared. */
	(void) madvise(euno_arena_extent(arena, first),
				   (size_t) count * EUNO_EXTENT_SIZE, MADV_REMOVE);
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

/* The same of extents' maps, which become zeros. */
static bool
maps_populate(EunoArena *arena, uint32_t first, uint32_t count)
{
	EunoExtentMap *start = euno_extent_map(arena, first);
	size_t		size = count * sizeof(EunoExtentMap);
	size_t		before = (uintptr_t) start % (size_t) sysconf(_SC_PAGESIZE);

	while (madvise((uint8_t *) start - before, before + size,
				   MADV_POPULATE_WRITE) != 0)
	{
		if (errno == EINVAL)
			break;				/* a kernel before 5.14 */
		if (errno != EINTR && errno != EAGAIN)
			return false;
	}
	memset(start, 0, size);
	return true;
}

/*
 * Makes one huge page of the extents around this one: a lookup waits for the
 * page tables, too, and each process that reads a tree has its own.  The
 * kernel copies the pages that exist; who touches them meanwhile waits.  It
 * may decline, and before 6.1 it does.
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
	if (idle && count > 0)
	{
		uint32_t	page = (bit + count - 1) / HUGE_PAGE_EXTENTS;

		count_idle(part, (int32_t) count);
		if (part->high < (page + 1) * HUGE_PAGE_EXTENTS)
			part->high = (page + 1) * HUGE_PAGE_EXTENTS;
	}
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
 * How many of these extents, the first ones, may keep their pages: to whole
 * huge pages, unless all may.  The part is locked.
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
	euno_extents_punch(arena, first + kept, count - kept);
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
 * Takes some idle extents in a row out of a part, looking from *bit on; how
 * many, and *bit is the first one.  0: there is none.  Those of a huge page at
 * most, for until they are back nobody finds them.
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
		   (count == 0 || (*bit + count) % HUGE_PAGE_EXTENTS != 0) &&
		   (part->idle_bits[(*bit + count) / 64] &
			UINT64_C(1) << ((*bit + count) % 64)) != 0)
		part_remove(part, *bit + count++);
	euno_mutex_unlock(&part->lock, arena->env);
	return count;
}

/*
 * Gives the operating system the pages of a part's idle extents, from this one
 * on; false if there were none.
 */
static bool
part_give_pages(EunoArena *arena, int domain, uint32_t bit)
{
	EunoArenaPart *part = &arena->shared->parts[domain];
	bool		any = false;
	uint32_t	count;

	while ((count = part_take_idle(arena, part, &bit)) > 0)
	{
		euno_extents_punch(arena, (uint32_t) domain * arena->part_extents + bit, count);
		euno_mutex_lock(&part->lock, arena->env);
		part_give(part, bit, count, false);
		euno_mutex_unlock(&part->lock, arena->env);
		any = true;
	}
	return any;
}

/* The same for all idle extents. */
static bool
give_idle_pages(EunoArena *arena)
{
	bool		any = false;

	for (int d = 0; d < arena->ndomains; d++)
		any |= part_give_pages(arena, d, 0);
	return any;
}

/*
 * Shall an extent that was just taken become part of a huge page?  If it was
 * the last free one of it; or the first one, where the pool has several huge
 * pages' worth and will want the rest: an empty huge page costs a tenth of one
 * that has to be copied.  Otherwise not, so that a few small trees take no
 * more memory than they need.  Never of a huge page that the part has not to
 * itself.  The part is locked.
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

/* See euno_extent_take.  EUNO_NO_MEMORY: the machine has none. */
static EunoStatus
extent_take(EunoArena *arena, int domain, uint64_t extents, uint32_t *extent)
{
	uint32_t	keep = extents < SMALL_POOL ? 0 : arena_part_reserve(arena);
	bool		large = extents >= LARGE_POOL;

	for (int i = 0; i < arena->ndomains; i++)
	{
		bool		huge;

		if (!part_take(arena, (domain + i) % arena->ndomains, keep, large,
					   extent, &huge))
			continue;
		if ((count_used(arena->shared, 1) % LOOK_EVERY != 1 ||
			 is_allowed(arena, LOOK_EVERY * EUNO_EXTENT_SIZE)) &&
			extents_populate(arena, *extent, 1) &&
			maps_populate(arena, *extent, 1))
		{
			if (huge && is_allowed(arena, HUGE_PAGE_SIZE))
				extent_make_huge(arena, *extent);
			return EUNO_OK;
		}
		give_to_part(arena, *extent, 1, false);
		return EUNO_NO_MEMORY;
	}
	return EUNO_NOT_FOUND;
}

static _Thread_local bool refused;	/* by the machine, the last time */

bool
euno_extent_refused(void)
{
	return refused;
}

bool
euno_extent_take(EunoArena *arena, int domain, uint64_t extents,
				 uint32_t *extent)
{
	EunoStatus	status = extent_take(arena, domain, extents, extent);

	/*
	 * The machine may be full of what is idle here.  If only the arena is,
	 * that stays where small pools find it.
	 */
	if (status == EUNO_NO_MEMORY && give_idle_pages(arena))
		status = extent_take(arena, domain, extents, extent);
	if (status != EUNO_OK)
		refused = status == EUNO_NO_MEMORY;
	return status == EUNO_OK;
}

/*
 * Takes the lowest extents that would make a huge page, are all free, and have
 * no pages.  False if there are none, if enough is idle, or if others might
 * miss them.
 */
static bool
part_take_cold(EunoArena *arena, EunoArenaPart *part, uint32_t enough,
			   uint32_t *first)
{
	uint32_t	bit;
	bool		found = false;

	euno_mutex_lock(&part->lock, arena->env);
	bit = part->low - part->low % HUGE_PAGE_EXTENTS;
	if (part->nidle >= enough ||
		part->nfree < arena->part_extents / READY_PART + HUGE_PAGE_EXTENTS)
		bit = arena->part_extents;
	for (; bit + HUGE_PAGE_EXTENTS <= arena->part_extents && !found;
		 bit += HUGE_PAGE_EXTENTS)
	{
		*first = bit;
		found = (uint32_t) (part->free_bits[bit / 64] >> bit % 64) == UINT32_MAX &&
			(uint32_t) (part->idle_bits[bit / 64] >> bit % 64) == 0;
	}
	for (uint32_t i = 0; found && i < HUGE_PAGE_EXTENTS; i++)
		part_remove(part, *first + i);
	euno_mutex_unlock(&part->lock, arena->env);
	return found;
}

EunoStatus
euno_arena_make_ready(EunoArena *arena, int domain, uint64_t bytes)
{
	EunoArenaPart *part = &arena->shared->parts[domain];
	uint32_t	start = (uint32_t) domain * arena->part_extents;
	uint64_t	most = bytes / EUNO_EXTENT_SIZE;
	uint32_t	enough = most < UINT32_MAX ? (uint32_t) most : UINT32_MAX;
	uint32_t	first;
	bool		ready;

	if (start % HUGE_PAGE_EXTENTS != 0 ||
		!part_take_cold(arena, part, enough, &first))
		return EUNO_NOT_FOUND;

	/*
	 * A builder needs memory for its sort as well.  One extent is enough to
	 * make a huge page of: the less is copied.
	 */
	ready = is_allowed(arena, 2 * bytes) &&
		extents_populate(arena, start + first, 1);
	if (ready)
	{
		extent_make_huge(arena, start + first);
		ready = extents_populate(arena, start + first, HUGE_PAGE_EXTENTS);
	}
	if (!ready)
		euno_extents_punch(arena, start + first, HUGE_PAGE_EXTENTS);
	euno_mutex_lock(&part->lock, arena->env);
	part_give(part, first, HUGE_PAGE_EXTENTS, ready);
	euno_mutex_unlock(&part->lock, arena->env);
	return ready ? EUNO_OK : EUNO_NO_MEMORY;
}

void
euno_arena_trim(EunoArena *arena, int domain, uint64_t bytes)
{
	EunoArenaPart *part = &arena->shared->parts[domain];
	uint64_t	keep = arena->most_idle + bytes / EUNO_EXTENT_SIZE;
	uint32_t	bit = 0;

	/* relaxed: to be looked at again */
	if (__atomic_load_n(&part->nidle, __ATOMIC_RELAXED) <= keep)
		return;

	/*
	 * The lowest ones, which are handed out next, stay, to a whole huge page.
	 */
	euno_mutex_lock(&part->lock, arena->env);
	for (; keep > 0 && bit < arena->part_extents; bit++)
		keep -= part->idle_bits[bit / 64] >> bit % 64 & 1;
	euno_mutex_unlock(&part->lock, arena->env);
	(void) part_give_pages(arena, domain, bit - bit % HUGE_PAGE_EXTENTS);
}

/*
 * The highest extents that would make so many huge pages in a row, and are all
 * idle.  Notes where the next search is to begin.  The part is locked.
 */
static bool
part_find_idle(EunoArenaPart *part, uint32_t count, uint32_t *first)
{
	uint32_t	bit = part->high;
	uint32_t	high = 0;
	uint32_t	found = 0;

	while (bit > 0 && found < count)
	{
		bit -= HUGE_PAGE_EXTENTS;
		if ((uint32_t) (part->idle_bits[bit / 64] >> bit % 64) != UINT32_MAX)
		{
			found = 0;
			continue;
		}
		found++;
		if (high == 0)
			high = bit + HUGE_PAGE_EXTENTS;
	}
	part->high = high;
	*first = bit;
	return found == count;
}

/* Takes them, if this many bytes are free. */
static bool
part_borrow(EunoArena *arena, EunoArenaPart *part, uint64_t room,
			uint32_t count, uint32_t *first)
{
	bool		found;

	euno_mutex_lock(&part->lock, arena->env);
	found = part->nidle / HUGE_PAGE_EXTENTS >= count &&
		part->nfree >= room / EUNO_EXTENT_SIZE &&
		part_find_idle(part, count, first);
	for (uint32_t i = 0; found && i < count * HUGE_PAGE_EXTENTS; i++)
		part_remove(part, *first + i);
	euno_mutex_unlock(&part->lock, arena->env);
	return found;
}

void *
euno_arena_borrow(EunoArena *arena, int domain, uint64_t room, uint32_t count)
{
	uint32_t	first;

	if (!part_borrow(arena, &arena->shared->parts[domain], room, count, &first))
		return NULL;
	(void) count_used(arena->shared, count * HUGE_PAGE_EXTENTS);
	return euno_arena_extent(arena, (uint32_t) domain * arena->part_extents +
							 first);
}

void
euno_arena_return(EunoArena *arena, void *loan, uint32_t count)
{
	euno_extents_give(arena, euno_extent_of(arena, loan),
					  count * HUGE_PAGE_EXTENTS);
}

uint32_t
euno_extent_of(const EunoArena *arena, const void *node)
{
	return (uint32_t) ((size_t) ((const uint8_t *) node - arena->base) /
					   EUNO_EXTENT_SIZE);
}

EunoExtent *
euno_extent(EunoArena *arena, uint32_t extent)
{
	return &arena->extents[extent];
}

EunoExtentMap *
euno_extent_map(EunoArena *arena, uint32_t extent)
{
	return &arena->maps[extent];
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
	return extents_populate(arena, first, count) &&
		maps_populate(arena, first, count);
}
