/*-------------------------------------------------------------------------
 *
 * euno_pool.c
 *	  A tree's memory in one domain: extents of the arena, cut into nodes.
 *
 * A process that holds a pool's lock takes no other lock, and makes no system
 * call.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "mem/euno_extents.h"
#include "mem/euno_pool.h"

#define SMALLEST_NODE		EUNO_PIECE
#define SMALL_CLASSES		16	/* multiples of 8 up to 128 */
#define EXTRA_CLASS			48	/* between those of 2048 and 2304 bytes */
#define EXTRA_SIZE			2080
#define MIDDLE_CLASSES		57	/* all these, and 8 a doubling up to 4 kB */

/*
 * A sweep begins when a 16th of the pool has been freed since the last one
 * did, and an eighth is free; this many extents at a time.  When there are no
 * more extents a 4096th will do: each failure must not cost a look at all
 * maps.
 */
#define SWEEP_FREED			16
#define SWEEP_FREE			8
#define SWEEP_STEP			8
#define SWEEP_LAST			4096

/* This many steps in a row look for extents that are all free. */
#define TRIM_STEPS			4

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
	if (class == EXTRA_CLASS)
		return EXTRA_SIZE;
	if (class < MIDDLE_CLASSES)
	{
		class -= class > EXTRA_CLASS;
		return (size_t) (9 + class % 8) << (class / 8 + 2);
	}
	return (size_t) 8192 << (class - MIDDLE_CLASSES);
}

/* The smallest class that holds "size", EUNO_POOL_CLASSES if none does. */
static int
size_class(size_t size)
{
	int			class = MIDDLE_CLASSES;

	if (size <= SMALL_CLASSES * SMALLEST_NODE)
		return size == 0 ? 0 : (int) ((size - 1) / SMALLEST_NODE);
	if (size <= 4096)
	{
		int			log2 = 63 - __builtin_clzll(size - 1);	/* 7 to 11 */

		class = SMALL_CLASSES + 8 * (log2 - 7) +
			(int) (((size - 1) >> (log2 - 3)) - 8);
		return size <= EXTRA_SIZE ? class : class + 1;
	}
	while (class < EUNO_POOL_CLASSES && class_size(class) < size)
		class++;
	return class;
}

/*
 * The largest class of at most "size", which is not below the smallest node's.
 */
static inline int
class_within(size_t size)
{
	int			class = size < class_size(EUNO_POOL_CLASSES - 1) ? size_class(size) :
		EUNO_POOL_CLASSES - 1;

	return class_size(class) > size ? class - 1 : class;
}

/* May a node of this class begin here? */
static inline bool
is_aligned(uintptr_t place, int class)
{
	size_t		size = class_size(class);

	return place % (size % 64 == 0 ? 64 : size % 16 == 0 ? 16 : 8) == 0;
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

/* The first piece at or behind this one that is free, or not; or the end. */
static uint32_t
next_piece(const EunoExtentMap *map, uint32_t at, bool is_free)
{
	while (at < EUNO_EXTENT_PIECES)
	{
		uint64_t	bits = (is_free ? map->free[at / 64] : ~map->free[at / 64]) >> at % 64;

		if (bits != 0)
			return at + (uint32_t) __builtin_ctzll(bits);
		at = (at | 63) + 1;
	}
	return at;
}

/* Notes in its extent's map that a stretch is free, or that it is not. */
static void
mark(EunoPool *pool, const void *start, size_t size, bool is_free)
{
	uint32_t	extent = euno_extent_of(pool->arena, start);
	EunoExtentMap *map = euno_extent_map(pool->arena, extent);
	uint32_t	at = (uint32_t) ((const uint8_t *) start -
								 (uint8_t *) euno_arena_extent(pool->arena, extent)) /
		EUNO_PIECE;
	uint32_t	end = at + (uint32_t) size / EUNO_PIECE;

	while (at < end)
	{
		uint32_t	n = 64 - at % 64 < end - at ? 64 - at % 64 : end - at;
		uint64_t	bits = UINT64_MAX >> (64 - n) << at % 64;

		if (is_free)
			map->free[at / 64] |= bits;
		else
			map->free[at / 64] &= ~bits;
		at += n;
	}
}

static void
list_push(EunoPool *pool, void *node, int class)
{
	*euno_pool_link(node, class) = pool->free_nodes[class];
	pool->free_nodes[class] = node;
}

/*
 * Puts a stretch on the free lists: from where large nodes may begin, the
 * largest first.
 */
static void
list_push_stretch(EunoPool *pool, uint8_t *start, size_t size)
{
	size_t		odd = -(uintptr_t) start % 64;

	if (odd > 0 && odd < size)
	{
		list_push(pool, start, size_class(odd));
		start += odd;
		size -= odd;
	}
	while (size >= SMALLEST_NODE)
	{
		int			class = class_within(size);

		/* an odd start leaves room for small pieces only */
		while (!is_aligned((uintptr_t) start, class))
			class--;
		list_push(pool, start, class);
		start += class_size(class);
		size -= class_size(class);
	}
}

/* Is what is free of this node's extent in the lists? */
static inline bool
is_listed(EunoPool *pool, const void *node)
{
	return euno_extent(pool->arena, euno_extent_of(pool->arena, node))->swept ==
		pool->sweep;
}

/* What was not is free now. */
static void
free_push(EunoPool *pool, void *node, int class)
{
	mark(pool, node, class_size(class), true);
	if (is_listed(pool, node))
		list_push(pool, node, class);
}

static void
free_push_stretch(EunoPool *pool, uint8_t *start, size_t size)
{
	if (size == 0)
		return;
	mark(pool, start, size, true);
	if (is_listed(pool, start))
		list_push_stretch(pool, start, size);
}

/* A node from the free lists: of this class, or cut off a larger one. */
static void *
pool_take_free(EunoPool *pool, int class, bool larger)
{
	for (int c = class; c < (larger ? EUNO_POOL_CLASSES : class + 1); c++)
	{
		uint8_t    *node = pool->free_nodes[c];

		if (node == NULL || !is_aligned((uintptr_t) node, class))
			continue;
		pool->free_nodes[c] = *euno_pool_link(node, c);
		mark(pool, node, class_size(class), false);
		list_push_stretch(pool, node + class_size(class),
						  class_size(c) - class_size(class));
		return node;
	}
	return NULL;
}

/* The lists are empty, and are made anew. */
static void
begin_sweep(EunoPool *pool)
{
	memset(pool->free_nodes, 0, sizeof(pool->free_nodes));
	pool->sweep++;
	pool->hand = pool->first_extent;
	pool->behind = 0;
	pool->freed = 0;
}

/* Puts all that is free of the next extent in the lists. */
static void
sweep_extent(EunoPool *pool)
{
	uint32_t	number = pool->hand - 1;
	EunoExtent *extent = euno_extent(pool->arena, number);
	const EunoExtentMap *map = euno_extent_map(pool->arena, number);
	uint8_t    *start = euno_arena_extent(pool->arena, number);
	uint32_t	at = 0;

	while ((at = next_piece(map, at, true)) < EUNO_EXTENT_PIECES)
	{
		uint32_t	end = next_piece(map, at, false);

		list_push_stretch(pool, start + (size_t) at * EUNO_PIECE,
						  (size_t) (end - at) * EUNO_PIECE);
		at = end;
	}
	extent->swept = pool->sweep;
	pool->behind = pool->hand;
	pool->hand = extent->link;
}

/* Has so much been freed that it may be worthwhile to join it? */
static bool
is_sweep_due(const EunoPool *pool)
{
	uint64_t	owned = pool->extents * EUNO_EXTENT_SIZE;

	return pool->extents > 0 && pool->freed >= owned / SWEEP_FREED &&
		owned - (EUNO_EXTENT_SIZE - pool->cut) - pool->live_bytes >= owned / SWEEP_FREE;
}

/* A node from what a sweep finds in the next extents; NULL: not there. */
static void *
pool_sweep(EunoPool *pool, int class)
{
	void	   *node = NULL;

	if (pool->hand == 0 && is_sweep_due(pool))
		begin_sweep(pool);
	for (int i = 0; i < SWEEP_STEP && pool->hand != 0 && node == NULL; i++)
	{
		sweep_extent(pool);
		node = pool_take_free(pool, class, true);
	}
	return node;
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
	euno_extent(pool->arena, extent)->link = pool->first_extent;
	euno_extent(pool->arena, extent)->swept = pool->sweep;
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
	if (node == NULL)
		node = pool_sweep(pool, class);
	return node;
}

/* The pool is locked.  Relaxed: read by statistics without the lock. */
static void
count_live(EunoPool *pool, uint64_t bytes)
{
	__atomic_store_n(&pool->live_bytes, pool->live_bytes + bytes,
					 __ATOMIC_RELAXED);
}

/*
 * There are no more extents.  Is something of the pool yet to be swept?  At
 * last, and once (*swept), all of it, if enough was freed.
 */
static bool
sweep_all(EunoPool *pool, bool *swept)
{
	bool		more;

	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	if (pool->hand == 0 && !*swept &&
		pool->freed > pool->extents * EUNO_EXTENT_SIZE / SWEEP_LAST)
	{
		begin_sweep(pool);
		*swept = true;
	}
	more = pool->hand != 0;
	euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
	return more;
}

void *
euno_pool_alloc(EunoPool *pool, size_t size)
{
	int			class = size_class(size);
	void	   *node = NULL;
	bool		more = true;
	bool		swept = false;

	/* Without another extent, there may be what others brought. */
	while (class < EUNO_POOL_CLASSES &&
		   euno_pool_alloc_list(pool, &node, class, 1) == 0 &&
		   !euno_is_canceled(euno_pool_environment(pool)))
	{
		if (more)
			more = pool_extend(pool);
		else if (!sweep_all(pool, &swept))
			break;
	}
	return node;
}

void
euno_pool_free(EunoPool *pool, void *node, size_t size)
{
	int			class = size_class(size);

	euno_mutex_lock(&pool->lock, euno_pool_environment(pool));
	free_push(pool, node, class);
	pool->freed += class_size(class);
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
	pool->freed += done * class_size(class);
	count_live(pool, -(done * class_size(class)));
	euno_mutex_unlock(&pool->lock, env);
	return done;
}

/*
 * Extents that were taken in a row are neighbors, the newest first in the
 * list: one system call will do for all of them.
 */
uint32_t
euno_pool_run(EunoPool *pool, uint32_t link, uint32_t *first, uint32_t *count)
{
	EunoArena  *arena = pool->arena;
	uint32_t	end = link;

	*first = link - 1;
	link = euno_extent(arena, *first)->link;
	while (link != 0 && link == *first)
	{
		*first = link - 1;
		link = euno_extent(arena, *first)->link;
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
		 link = euno_extent(pool->arena, link - 1)->link)
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
 * Appends the next extent of a sweep to a list and takes it out of the pool,
 * which is locked, if it is all free; else sweeps it.  Returns the end of the
 * list.
 */
static uint32_t *
trim_extent(EunoPool *pool, uint32_t *tail)
{
	uint32_t	number = pool->hand - 1;
	EunoExtent *extent = euno_extent(pool->arena, number);

	if (pool->behind == 0 ||
		next_piece(euno_extent_map(pool->arena, number), 0, false) <
		EUNO_EXTENT_PIECES)
	{
		sweep_extent(pool);
		return tail;
	}
	pool->hand = extent->link;
	euno_extent(pool->arena, pool->behind - 1)->link = extent->link;
	*tail = number + 1;
	extent->link = 0;

	/* relaxed: read by statistics without the lock */
	__atomic_store_n(&pool->extents, pool->extents - 1, __ATOMIC_RELAXED);
	return &extent->link;
}

bool
euno_pool_trim(EunoPool *pool, bool begin)
{
	uint32_t	list = 0;
	uint32_t   *tail = &list;
	bool		more = true;

	for (int i = 0; i < TRIM_STEPS && more; i++)
	{
		more = euno_mutex_lock_or_leave(&pool->lock,
										euno_pool_environment(pool));
		if (!more)
			break;
		if (begin)
			begin_sweep(pool);
		begin = false;
		for (int n = 0; n < SWEEP_STEP && pool->hand != 0; n++)
			tail = trim_extent(pool, tail);
		more = pool->hand != 0;
		euno_mutex_unlock(&pool->lock, euno_pool_environment(pool));
	}
	give_list(pool, list);
	return more;
}

void
euno_pool_settle(EunoPool *pool)
{
	while (pool->hand != 0)
		sweep_extent(pool);
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
		*euno_extent(arena, extent) = (EunoExtent) {0, pool->sweep};
		if (*tail == 0)
			pool->first_extent = extent + 1;
		else
			euno_extent(arena, *tail - 1)->link = extent + 1;
		*tail = extent + 1;
	}
	pool->extents += count;
	return euno_extents_fill(arena, first, count);
}

void
euno_pool_mark(EunoPool *pool)
{
	for (int class = 0; class < EUNO_POOL_CLASSES; class++)
	{
		for (void *node = pool->free_nodes[class]; node != NULL;
			 node = *euno_pool_link(node, class))
			mark(pool, node, class_size(class), true);
	}
}
