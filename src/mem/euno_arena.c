/*-------------------------------------------------------------------------
 *
 * euno_arena.c
 *	  The reserved memory of all trees: extents, and pools that cut them into
 *	  nodes.
 *
 * What is constant (addresses, sizes) is kept in private memory that the
 * postmaster's children inherit, so that a process gone wild cannot spoil what
 * euno_arena_reset() starts from.  What changes is a small shared mapping of
 * its own: a bit per extent that is free, and a number per extent that links
 * the extents of a pool.
 *
 * Extents are handed out lowest address first.  A pool that is filled in one
 * go so gets neighbors, which go back to the operating system in one call, and
 * the arena stays dense, which is what transparent huge pages need.
 *
 * A process holds a pool's lock or a part's lock, never both, and neither during
 * a system call.
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

#include "mem/euno_arena.h"

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

#define SMALLEST_NODE		16
#define SMALL_CLASSES		16	/* multiples of 16 up to 256 */
#define MIDDLE_CLASSES		48	/* these, and 8 a doubling up to 4 kB */
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
	uint32_t	nfree;
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
	int			ndomains;
	bool		huge_pages;		/* ask for them */
	const EunoEnvironment *env;
	bool		(*allows) (uint64_t bytes);	/* may be NULL */
	EunoArenaShared *shared;
	uint64_t   *free_bits;		/* shared; part_words for each part */
	uint32_t   *next;			/* shared; an extent's link in the list of its
								 * pool, protected by the pool's lock */
};

static inline uint8_t *
extent_address(EunoArena *arena, uint32_t extent)
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
	uint8_t    *start = extent_address(arena, first);
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
	(void) madvise(extent_address(arena, first),
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
		(void) madvise(extent_address(arena,
									  extent - extent % HUGE_PAGE_EXTENTS),
					   HUGE_PAGE_SIZE, MADV_COLLAPSE);
}

/* Marks extents, of one part or of several, as free. */
static void
extents_give(EunoArena *arena, uint32_t first, uint32_t count)
{
	/* relaxed: a statistic */
	__atomic_sub_fetch(&arena->shared->used, count, __ATOMIC_RELAXED);

	while (count > 0)
	{
		EunoArenaPart *part = &arena->shared->parts[first / arena->part_extents];
		uint32_t	bit = first % arena->part_extents;
		uint32_t	here = arena->part_extents - bit;

		if (here > count)
			here = count;
		euno_mutex_lock(&part->lock, arena->env);
		for (uint32_t i = bit; i < bit + here; i++)
			part->free_bits[i / 64] |= UINT64_C(1) << (i % 64);
		part->nfree += here;
		if (bit < part->low)
			part->low = bit;
		euno_mutex_unlock(&part->lock, arena->env);
		first += here;
		count -= here;
	}
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
		part->free_bits[word] &= part->free_bits[word] - 1;
		part->nfree--;
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

/*
 * Hands out one populated extent to a pool that has so many, of this domain if
 * it has one, else of the next that has: far memory is better than none.
 */
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
		extents_punch(arena, *extent, 1);
		extents_give(arena, *extent, 1);
		return false;			/* the machine is full, not just the part */
	}
	return false;
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
		part->nfree = arena->part_extents;
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
		sizeof(uint64_t);
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
	extents_punch(arena, 0, arena->part_extents * (uint32_t) arena->ndomains);
	arena_init_shared(arena);
}

void
euno_arena_part(EunoArena *arena, int domain, void **start, size_t *size)
{
	*start = extent_address(arena, (uint32_t) domain * arena->part_extents);
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

void *
euno_arena_extent(EunoArena *arena, uint32_t extent)
{
	return extent_address(arena, extent);
}

void
euno_pool_init(EunoPool *pool, EunoArena *arena, int domain)
{
	memset(pool, 0, sizeof(*pool));
	pool->arena = arena;
	pool->domain = domain;
}

const EunoEnvironment *
euno_pool_environment(const EunoPool *pool)
{
	return pool->arena->env;
}

/* Bytes of a node of this class. */
static inline size_t
class_size(int class)
{
	if (class < SMALL_CLASSES)
		return (size_t) SMALLEST_NODE * (class + 1);
	if (class < MIDDLE_CLASSES)
		return (size_t) (9 + class % 8) << (class / 8 + 3);
	return (size_t) 8192 << (class - MIDDLE_CLASSES);
}

/* The smallest class that holds "size", EUNO_POOL_CLASSES if none does. */
static int
size_class(size_t size)
{
	int			class = MIDDLE_CLASSES;

	if (size <= 256)
		return size == 0 ? 0 : (int) ((size - 1) / SMALLEST_NODE);
	if (size <= 4096)
	{
		int			log2 = 63 - __builtin_clzll(size - 1);	/* 8 to 11 */

		return SMALL_CLASSES + 8 * (log2 - 8) +
			(int) (((size - 1) >> (log2 - 3)) - 8);
	}
	while (class < EUNO_POOL_CLASSES && class_size(class) < size)
		class++;
	return class;
}

/* May a node of this class begin here? */
static inline bool
is_aligned(uintptr_t place, int class)
{
	return place % (class_size(class) % 64 == 0 ? 64 : SMALLEST_NODE) == 0;
}

size_t
euno_pool_class_size(int class)
{
	return class_size(class);
}

int
euno_pool_class(size_t size)
{
	return size_class(size);
}

static void
free_push(EunoPool *pool, void *node, int class)
{
	*euno_pool_link(node, class) = pool->free_nodes[class];
	pool->free_nodes[class] = node;
}

static void *
free_pop(EunoPool *pool, int class)
{
	void	   *node = pool->free_nodes[class];

	if (node != NULL)
		pool->free_nodes[class] = *euno_pool_link(node, class);
	return node;
}

/* Puts a stretch on the free lists, largest pieces first. */
static void
free_push_stretch(EunoPool *pool, uint8_t *start, size_t size)
{
	int			class = EUNO_POOL_CLASSES - 1;

	while (size >= SMALLEST_NODE)
	{
		int			c;

		while (class_size(class) > size)
			class--;

		/* an odd start leaves room for small pieces only */
		for (c = class; !is_aligned((uintptr_t) start, c); c--)
			;
		free_push(pool, start, c);
		start += class_size(c);
		size -= class_size(c);
	}
}

/* A node from the free lists: of this class, or cut off a larger one. */
static void *
pool_take_free(EunoPool *pool, int class, bool larger)
{
	for (int c = class; c < (larger ? EUNO_POOL_CLASSES : class + 1); c++)
	{
		uint8_t    *node;

		if (!is_aligned((uintptr_t) pool->free_nodes[c], class))
			continue;
		node = free_pop(pool, c);
		if (node == NULL)
			continue;
		free_push_stretch(pool, node + class_size(class),
						  class_size(c) - class_size(class));
		return node;
	}
	return NULL;
}

/* A node from the newest extent's unused end, if that is long enough. */
static void *
pool_cut(EunoPool *pool, int class)
{
	uint8_t    *end;
	uint32_t	gap = 0;

	if (pool->first_extent == 0)
		return NULL;
	end = extent_address(pool->arena, pool->first_extent - 1) + pool->cut;
	while (!is_aligned((uintptr_t) end + gap, class))
		gap += SMALLEST_NODE;
	if (EUNO_EXTENT_SIZE - pool->cut < gap + class_size(class))
		return NULL;
	free_push_stretch(pool, end, gap);
	pool->cut += gap + (uint32_t) class_size(class);
	return end + gap;
}

/* One more extent.  What is left of the newest one goes to the free lists. */
static void
pool_add(EunoPool *pool, uint32_t extent)
{
	EunoArena  *arena = pool->arena;

	if (pool->first_extent != 0)
		free_push_stretch(pool,
						  extent_address(arena, pool->first_extent - 1) + pool->cut,
						  EUNO_EXTENT_SIZE - pool->cut);
	arena->next[extent] = pool->first_extent;
	pool->first_extent = extent + 1;
	pool->cut = 0;

	/* relaxed: read by statistics without the lock */
	__atomic_store_n(&pool->extents, pool->extents + 1, __ATOMIC_RELAXED);
}

/*
 * The system takes its time to find and clear memory: others who want some do
 * not wait for us, and may bring an extent as well.  The pool is not locked.
 */
static bool
pool_extend(EunoPool *pool)
{
	uint32_t	owned = __atomic_load_n(&pool->extents, __ATOMIC_RELAXED);
	uint32_t	extent;

	if (!extent_take(pool->arena, pool->domain, owned, &extent))
		return false;
	euno_mutex_lock(&pool->lock, pool->arena->env);
	pool_add(pool, extent);
	euno_mutex_unlock(&pool->lock, pool->arena->env);
	return true;
}

/* A node, NULL if the pool has none.  It is locked. */
static void *
pool_take(EunoPool *pool, int class)
{
	void	   *node = pool_take_free(pool, class, false);

	if (node == NULL)
		node = pool_cut(pool, class);
	if (node == NULL)
		node = pool_take_free(pool, class, true);
	return node;
}

/* The pool is locked.  Relaxed: read by statistics without the lock. */
static void
count_live(EunoPool *pool, uint64_t bytes)
{
	__atomic_store_n(&pool->live_bytes, pool->live_bytes + bytes,
					 __ATOMIC_RELAXED);
}

void *
euno_pool_alloc(EunoPool *pool, size_t size)
{
	int			class = size_class(size);
	void	   *node = NULL;
	bool		more = class < EUNO_POOL_CLASSES;

	/* Without another extent, there may be what others brought. */
	while (class < EUNO_POOL_CLASSES &&
		   euno_pool_alloc_list(pool, &node, class, 1) == 0 && more)
		more = !euno_is_canceled(pool->arena->env) && pool_extend(pool);
	return node;
}

void
euno_pool_free(EunoPool *pool, void *node, size_t size)
{
	int			class = size_class(size);

	euno_mutex_lock(&pool->lock, pool->arena->env);
	free_push(pool, node, class);
	count_live(pool, -class_size(class));
	euno_mutex_unlock(&pool->lock, pool->arena->env);
}

uint32_t
euno_pool_alloc_list(EunoPool *pool, void **list, int class, uint32_t n)
{
	uint32_t	done;

	if (!euno_mutex_lock_or_leave(&pool->lock, pool->arena->env))
		return 0;
	for (done = 0; done < n; done++)
	{
		void	   *node = pool_take(pool, class);

		if (node == NULL)
			break;
		*euno_pool_link(node, class) = *list;
		*list = node;
	}
	count_live(pool, done * class_size(class));
	euno_mutex_unlock(&pool->lock, pool->arena->env);
	return done;
}

uint32_t
euno_pool_free_list(EunoPool *pool, void **list, int class, uint32_t n)
{
	uint32_t	done;

	if (*list == NULL || !euno_mutex_lock_or_leave(&pool->lock, pool->arena->env))
		return 0;
	for (done = 0; done < n && *list != NULL; done++)
	{
		void	   *node = *list;

		*list = *euno_pool_link(node, class);
		free_push(pool, node, class);
	}
	count_live(pool, -(done * class_size(class)));
	euno_mutex_unlock(&pool->lock, pool->arena->env);
	return done;
}

/*
 * Extents that were taken in a row are neighbors, the newest first in the list:
 * one system call will do for all of them.
 */
uint32_t
euno_pool_run(EunoPool *pool, uint32_t link, uint32_t *first, uint32_t *count)
{
	EunoArena  *arena = pool->arena;
	uint32_t	end = link;

	*first = link - 1;
	link = arena->next[*first];
	while (link != 0 && link == *first)
	{
		*first = link - 1;
		link = arena->next[*first];
	}
	*count = end - *first;
	return link;
}

uint32_t
euno_pool_extents(EunoPool *pool, void **extents, uint32_t max)
{
	uint32_t	n = 0;

	euno_mutex_lock(&pool->lock, pool->arena->env);
	for (uint32_t link = pool->first_extent; link != 0 && n < max;
		 link = pool->arena->next[link - 1])
		extents[n++] = extent_address(pool->arena, link - 1);
	euno_mutex_unlock(&pool->lock, pool->arena->env);
	return n;
}

/* Gives a list of extents back that is not a pool's any more. */
static void
give_list(EunoPool *pool, uint32_t link)
{
	while (link != 0)
	{
		uint32_t	first;
		uint32_t	count;

		link = euno_pool_run(pool, link, &first, &count);

		/* An extent is not anybody else's before its pages are gone. */
		extents_punch(pool->arena, first, count);
		extents_give(pool->arena, first, count);
	}
}

void
euno_pool_release(EunoPool *pool)
{
	give_list(pool, pool->first_extent);
	euno_pool_init(pool, pool->arena, pool->domain);
}

static inline uint32_t
extent_of(const EunoArena *arena, const void *node)
{
	return (uint32_t) ((size_t) ((const uint8_t *) node - arena->base) /
					   EUNO_EXTENT_SIZE);
}

/*
 * Adds up how much of each of a locked pool's extents is in its free lists.  False
 * if these have more nodes than "most".
 */
static bool
count_free(const EunoPool *pool, uint32_t *bytes, uint32_t most)
{
	uint32_t	n = 0;

	for (int class = 0; class < EUNO_POOL_CLASSES; class++)
	{
		for (void *node = pool->free_nodes[class]; node != NULL;
			 node = *euno_pool_link(node, class))
		{
			if (++n > most)
				return false;
			bytes[extent_of(pool->arena, node)] += (uint32_t) class_size(class);
		}
	}
	return true;
}

/*
 * Takes extents that are all free out of a locked pool's lists; returns a list of
 * them.
 */
static uint32_t
take_free(EunoPool *pool, const uint32_t *bytes)
{
	EunoArena  *arena = pool->arena;
	uint32_t   *at = &arena->next[pool->first_extent - 1];
	uint32_t	list = 0;
	uint32_t   *tail = &list;
	uint64_t	taken = 0;

	for (int class = 0; class < EUNO_POOL_CLASSES; class++)
	{
		void	  **link = &pool->free_nodes[class];

		while (*link != NULL)
		{
			void	   *node = *link;

			if (bytes[extent_of(arena, node)] == EUNO_EXTENT_SIZE)
				*link = *euno_pool_link(node, class);
			else
				link = euno_pool_link(node, class);
		}
	}
	while (*at != 0)
	{
		uint32_t	extent = *at - 1;

		if (bytes[extent] != EUNO_EXTENT_SIZE)
		{
			at = &arena->next[extent];
			continue;
		}
		*at = arena->next[extent];
		*tail = extent + 1;
		tail = &arena->next[extent];
		taken++;
	}
	*tail = 0;

	/* relaxed: read by statistics without the lock */
	__atomic_store_n(&pool->extents, pool->extents - taken, __ATOMIC_RELAXED);
	return list;
}

uint32_t
euno_pool_trim(EunoPool *pool, uint32_t most)
{
	EunoArena  *arena = pool->arena;
	uint64_t	before;
	uint64_t	after;
	uint32_t	list = 0;
	uint32_t   *bytes = calloc((size_t) arena->part_extents * arena->ndomains,
							   sizeof(uint32_t));

	if (bytes == NULL)
		return 0;
	euno_mutex_lock(&pool->lock, arena->env);
	before = after = pool->extents;
	if (before > 1 && count_free(pool, bytes, most))
	{
		bytes[pool->first_extent - 1] = 0;
		list = take_free(pool, bytes);
		after = pool->extents;
	}
	euno_mutex_unlock(&pool->lock, arena->env);
	free(bytes);
	give_list(pool, list);
	return (uint32_t) (before - after);
}

void
euno_pool_from_image(EunoPool *pool, EunoArena *arena, const EunoPool *image)
{
	*pool = *image;
	pool->arena = arena;
	pool->lock.word = 0;
	pool->extents = 0;
	pool->first_extent = 0;
}

bool
euno_pool_claim(EunoPool *pool, uint32_t *tail, uint32_t first,
				uint32_t count)
{
	EunoArena  *arena = pool->arena;
	uint64_t	nextents = (uint64_t) arena->part_extents *
		(uint64_t) arena->ndomains;

	if (count == 0 || (uint64_t) first + count > nextents)
		return false;
	for (uint32_t extent = first + count; extent-- > first;)
	{
		EunoArenaPart *part = &arena->shared->parts[extent / arena->part_extents];
		uint32_t	bit = extent % arena->part_extents;
		uint64_t	mask = UINT64_C(1) << (bit % 64);

		if ((part->free_bits[bit / 64] & mask) == 0)
			return false;
		part->free_bits[bit / 64] &= ~mask;
		part->nfree--;
		arena->next[extent] = 0;
		if (*tail == 0)
			pool->first_extent = extent + 1;
		else
			arena->next[*tail - 1] = extent + 1;
		*tail = extent + 1;
	}
	pool->extents += count;
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
