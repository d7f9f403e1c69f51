/*-------------------------------------------------------------------------
 *
 * euno_pool.h
 *	  A tree's memory in one domain: extents of the arena, cut into nodes.
 *
 * A pool cuts nodes of several size classes from its extents; freed nodes go to
 * its free lists, where now and then a sweep joins them (src/README.md, "When
 * memory runs out", free nodes), and when the tree is dropped all of its extents
 * go back at once.
 *
 * No PostgreSQL header.  The lock is the core's own (euno_lock.h), held for a few
 * hundred nanoseconds, never while a node is locked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_POOL_H
#define EUNO_POOL_H

#include "core/euno_core.h"
#include "core/euno_lock.h"
#include "mem/euno_arena.h"

/*
 * Node size classes: 8, 16, ... 128 bytes; then 8 for each doubling up to 4
 * kB; 8, 16, 32 kB.  A size that the trees ask for often should be one of
 * them, so there is one more, for a radix tree's nodes of 256 children: 2080.
 */
#define EUNO_POOL_CLASSES	60

typedef struct EunoCache EunoCache;	/* euno_cache.h */

/* In shared memory, zero-initialized, embedded in the tree's owner. */
typedef struct EunoPool
{
	/* read by all who allocate; the rest is written by them */
	EunoArena  *arena;
	EunoCache  *cache;			/* NULL = none yet; in a node of the pool */
	int32_t		domain;

	EunoLock	lock __attribute__((aligned(64)));
	uint64_t	extents;		/* how many it has; may be read unlocked */
	uint64_t	expected;		/* how many it will have, says a tree's builder; an
								 * estimate; may be read unlocked */
	uint64_t	live_bytes;		/* in nodes handed out, those in stripes of a
								 * cache included; may be read unlocked */
	uint32_t	first_extent;	/* list of its extents, through the arena: number
								 * of the newest plus 1; 0 = none */
	uint32_t	cut;			/* bytes used of the newest extent */
	uint32_t	sweep;			/* number of the last sweep */
	uint32_t	hand;			/* where it goes on, as first_extent; 0 = it has
								 * come to the end */
	uint32_t	behind;			/* the one before that in the list, likewise; 0 =
								 * it is where it began */
	uint64_t	freed;			/* bytes that were, since it began */
	void	   *free_nodes[EUNO_POOL_CLASSES];
} __attribute__((aligned(64))) EunoPool;

extern void euno_pool_init(EunoPool *pool, EunoArena *arena, int domain);

/*
 * 64-byte aligned if the size's class is a multiple of 64 bytes, else 16-byte
 * aligned if it is one of 16, else 8-byte aligned; not zeroed; NULL when the
 * arena is full, when the operating system has no memory, when size is above
 * the largest class, or when the operation was canceled while it waited for
 * the pool's lock.  A pool whose domain is full takes extents of the next
 * domain that has some.  Takes and leaves the pool's lock; the caller holds no
 * lock, but for the registry's when a tree is created.  euno_pool_free takes
 * the lock, too, and always waits for it; the caller holds no other lock of
 * this file or of euno_extents.h.
 */
extern void *euno_pool_alloc(EunoPool *pool, size_t size);
extern void euno_pool_free(EunoPool *pool, void *node, size_t size);

/*
 * For caches.  The class of a size and the size of a class; where a free node
 * has the link to the next one, in its last bytes: its head is left as it was,
 * so that the lock word of a dead node goes on saying that it is dead.
 */
extern int	euno_pool_class(size_t size);
extern size_t euno_pool_class_size(int class);

static inline void **
euno_pool_link(void *node, int class)
{
	return (void **) ((uint8_t *) node + euno_pool_class_size(class) -
					  sizeof(void *));
}

extern const EunoEnvironment *euno_pool_environment(const EunoPool *pool);

/*
 * Up to n nodes of a class from the pool to the list, or back; how many, none
 * if the operation is canceled while it waits.  Takes and leaves the pool's
 * lock.  Asks the arena for nothing: that may take long.
 */
extern uint32_t euno_pool_alloc_list(EunoPool *pool, void **list, int class,
									 uint32_t n);
extern uint32_t euno_pool_free_list(EunoPool *pool, void **list, int class,
									uint32_t n);

/*
 * The addresses of a pool's extents, newest first, at most "max" of them; how
 * many.  Takes and leaves the pool's lock.
 */
extern uint32_t euno_pool_extents(EunoPool *pool, void **extents,
								  uint32_t max);

/*
 * Takes all extents back; the pool is empty then and may be used again.  The
 * caller knows that no process can see the nodes or use the pool meanwhile.
 */
extern void euno_pool_release(EunoPool *pool);

/*
 * Gives extents back of which nothing is in use, but for the newest one: with
 * "begin" from there on, this many of them; then, as long as it has returned
 * true, of the rest.  False, too, if the operation is canceled while it waits.
 * The caller holds no lock, and knows that the pool is not released meanwhile.
 */
extern bool euno_pool_trim(EunoPool *pool, bool begin);

/*
 * What it has, and of that what is in nodes, in bytes; without the lock, so the
 * two need not be of one moment.
 */
static inline uint64_t
euno_pool_bytes(const EunoPool *pool)
{
	return EUNO_EXTENT_SIZE *
		__atomic_load_n(&pool->extents, __ATOMIC_RELAXED);
}

static inline uint64_t
euno_pool_live_bytes(const EunoPool *pool)
{
	return __atomic_load_n(&pool->live_bytes, __ATOMIC_RELAXED);
}

/*
 * Images: a pool's extents, written down and brought back to the same places.
 * Only while no other process uses the pool or, to bring them back, the arena.
 *
 * euno_pool_settle: first, all that is free is put in the pool's lists.
 *
 * euno_pool_run: the next run of neighboring extents of a pool, newest first.
 * "link" is pool->first_extent at first, then what the call before returned; 0
 * is the end.
 */
extern void euno_pool_settle(EunoPool *pool);

extern uint32_t euno_pool_run(EunoPool *pool, uint32_t link, uint32_t *first,
							  uint32_t *count);

/* Makes a pool what another was, without its extents. */
extern void euno_pool_from_image(EunoPool *pool, EunoArena *arena,
								 const EunoPool *image);

/*
 * Puts this run of extents at the end of the pool's list (*tail, 0 at first),
 * and makes their pages exist.  False if one of them is not there or not free,
 * or if there is no memory; the arena is to be reset then.
 */
extern bool euno_pool_claim(EunoPool *pool, uint32_t *tail, uint32_t first,
							uint32_t count);

/*
 * Afterwards, when all of their contents are there: what is in its lists is
 * free.
 */
extern void euno_pool_mark(EunoPool *pool);

#endif							/* EUNO_POOL_H */
