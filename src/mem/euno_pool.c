/*-------------------------------------------------------------------------
 *
 * euno_pool.c
 *	  A tree's memory in one domain: extents of the arena, cut into nodes.
 *
 * A process that holds a pool's lock holds no other lock of the arena, and makes
 * no system call.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "mem/euno_extents.h"
#include "mem/euno_pool.h"

#define SMALLEST_NODE		16
#define SMALL_CLASSES		16	/* multiples of 16 up to 256 */
#define MIDDLE_CLASSES		48	/* these, and 8 a doubling up to 4 kB */

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
	return euno_arena_environment(pool->arena);
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

static inline uint8_t *
newest_extent(EunoPool *pool)
{
	return euno_arena_extent(pool->arena, pool->first_extent - 1);
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
	end = newest_extent(pool) + pool->cut;
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
	if (pool->first_extent != 0)
		free_push_stretch(pool, newest_extent(pool) + pool->cut,
						  EUNO_EXTENT_SIZE - pool->cut);
	*euno_extent_link(pool->arena, extent) = pool->first_extent;
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

	if (!euno_extent_take(pool->arena, pool->domain, owned, &extent))
		return false;
	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	pool_add(pool, extent);
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
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
		more = !euno_is_canceled(euno_pool_environment(pool)) && pool_extend(pool);
	return node;
}

void
euno_pool_free(EunoPool *pool, void *node, size_t size)
{
	int			class = size_class(size);

	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	free_push(pool, node, class);
	count_live(pool, -class_size(class));
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
}

uint32_t
euno_pool_alloc_list(EunoPool *pool, void **list, int class, uint32_t n)
{
	uint32_t	done;

	if (!euno_mutex_lock_or_leave(&pool->lock, euno_pool_environment(pool)))
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
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
	return done;
}

uint32_t
euno_pool_free_list(EunoPool *pool, void **list, int class, uint32_t n)
{
	const EunoEnvironment *env = euno_pool_environment(pool);
	uint32_t	done;

	if (*list == NULL || !euno_mutex_lock_or_leave(&pool->lock, env))
		return 0;
	for (done = 0; done < n && *list != NULL; done++)
	{
		void	   *node = *list;

		*list = *euno_pool_link(node, class);
		free_push(pool, node, class);
	}
	count_live(pool, -(done * class_size(class)));
	euno_mutex_unlock(&pool->lock, env);
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
	link = *euno_extent_link(arena, *first);
	while (link != 0 && link == *first)
	{
		*first = link - 1;
		link = *euno_extent_link(arena, *first);
	}
	*count = end - *first;
	return link;
}

uint32_t
euno_pool_extents(EunoPool *pool, void **extents, uint32_t max)
{
	uint32_t	n = 0;

	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	for (uint32_t link = pool->first_extent; link != 0 && n < max;
		 link = *euno_extent_link(pool->arena, link - 1))
		extents[n++] = euno_arena_extent(pool->arena, link - 1);
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
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
		euno_extents_give(pool->arena, first, count);
	}
}

void
euno_pool_release(EunoPool *pool)
{
	give_list(pool, pool->first_extent);
	euno_pool_init(pool, pool->arena, pool->domain);
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
			bytes[euno_extent_of(pool->arena, node)] += (uint32_t) class_size(class);
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
	uint32_t   *at = euno_extent_link(arena, pool->first_extent - 1);
	uint32_t	list = 0;
	uint32_t   *tail = &list;
	uint64_t	taken = 0;

	for (int class = 0; class < EUNO_POOL_CLASSES; class++)
	{
		void	  **link = &pool->free_nodes[class];

		while (*link != NULL)
		{
			void	   *node = *link;

			if (bytes[euno_extent_of(arena, node)] == EUNO_EXTENT_SIZE)
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
			at = euno_extent_link(arena, extent);
			continue;
		}
		*at = *euno_extent_link(arena, extent);
		*tail = extent + 1;
		tail = euno_extent_link(arena, extent);
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
	uint64_t	before;
	uint64_t	after;
	uint32_t	list = 0;
	uint32_t   *bytes = calloc(euno_arena_extents(pool->arena),
							   sizeof(uint32_t));

	if (bytes == NULL)
		return 0;
	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	before = after = pool->extents;
	if (before > 1 && count_free(pool, bytes, most))
	{
		bytes[pool->first_extent - 1] = 0;
		list = take_free(pool, bytes);
		after = pool->extents;
	}
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
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

	if (count == 0 || (uint64_t) first + count > euno_arena_extents(arena))
		return false;
	for (uint32_t extent = first + count; extent-- > first;)
	{
		if (!euno_extent_claim(arena, extent))
			return false;
		*euno_extent_link(arena, extent) = 0;
		if (*tail == 0)
			pool->first_extent = extent + 1;
		else
			*euno_extent_link(arena, *tail - 1) = extent + 1;
		*tail = extent + 1;
	}
	pool->extents += count;
	return euno_extents_fill(arena, first, count);
}
