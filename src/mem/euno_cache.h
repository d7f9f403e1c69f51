/*-------------------------------------------------------------------------
 *
 * euno_cache.h
 *	  Free nodes of a pool at hand for some of its processes.
 *
 * A pool has one lock, which every insert into a tree of small nodes needs.
 * Once the pool is large (euno_cache_from extents), small nodes are taken and
 * given back through stripes, each with a lock and a line of its own: a process
 * uses the one of its number.  A stripe gets nodes from the pool, and gives them
 * back, some at a time, and has at most a 1024th of the pool (not less than
 * EUNO_CACHE_LEAST, nor more than EUNO_CACHE_MOST; a canceled operation that
 * cannot wait for the pool's lock leaves more in it).
 *
 * No process owns a stripe, so there is nothing to be given back when one ends.
 * The stripes lie in a node of the pool: they go when it is released, and are in
 * its image.  When the pool has no memory, all stripes are emptied first.
 *
 * Lock order: a stripe's lock, the pool's lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_CACHE_H
#define EUNO_CACHE_H

#include "mem/euno_pool.h"

#define EUNO_CACHE_STRIPES	64
#define EUNO_CACHE_LEAST	(8 * 1024)
#define EUNO_CACHE_MOST		(32 * 1024)
#define EUNO_CACHE_LARGEST	2048	/* larger nodes are not kept in stripes */

/* 128; tests set it to less.  Change it before forking. */
extern uint64_t euno_cache_from;

/*
 * As euno_pool_alloc and euno_pool_free, for a process of this number,
 * whatever that is.  A node may be given back by another process than took it,
 * and by euno_pool_free.
 */
extern void *euno_cache_alloc(EunoPool *pool, uint32_t process, size_t size);
extern void euno_cache_free(EunoPool *pool, uint32_t process, void *node,
							size_t size);

/*
 * Gives what is in stripes back to the pool: all, unless the operation is
 * canceled.
 */
extern void euno_cache_drain(EunoPool *pool);

#endif							/* EUNO_CACHE_H */
