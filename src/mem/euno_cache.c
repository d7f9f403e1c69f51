/*-------------------------------------------------------------------------
 *
 * euno_cache.c
 *	  Free nodes of a pool at hand for some of its processes (euno_cache.h).
 *
 * A stripe's nodes are linked as the pool's are, in lists by their class.
 *
 *-------------------------------------------------------------------------
 */
#include "mem/euno_cache.h"

#define CLASSES		48			/* those of at most EUNO_CACHE_LARGEST */
#define BATCH_BYTES	4096		/* come from the pool, or go back, at a time */
#define BATCH_NODES	16

uint64_t	euno_cache_from = 128;

typedef struct Stripe
{
	EunoLock	lock;
	uint32_t	bytes;			/* of the nodes in the lists */
	uint32_t	most;			/* that they may have */
	uint32_t	next;			/* class of which some go when there are too many */
	void	   *nodes[CLASSES];
} __attribute__((aligned(64))) Stripe;

struct EunoCache
{
	Stripe		stripes[EUNO_CACHE_STRIPES];
};

static Stripe *
stripe_of(EunoCache *cache, uint32_t process)
{
	return &cache->stripes[process % EUNO_CACHE_STRIPES];
}

/* How many nodes of a size are moved at a time. */
static uint32_t
batch_of(size_t size)
{
	return BATCH_BYTES / size < BATCH_NODES ? BATCH_BYTES / (uint32_t) size :
		BATCH_NODES;
}

/* The pool's stripes, NULL if it is too small for any. */
static EunoCache *
cache_of(EunoPool *pool)
{
	EunoCache  *cache = __atomic_load_n(&pool->cache, __ATOMIC_ACQUIRE);
	EunoCache  *none = NULL;

	if (cache != NULL ||
		__atomic_load_n(&pool->extents, __ATOMIC_RELAXED) < euno_cache_from)
		return cache;
	cache = euno_pool_alloc(pool, sizeof(EunoCache));
	if (cache == NULL)
		return NULL;
	memset(cache, 0, sizeof(EunoCache));
	if (__atomic_compare_exchange_n(&pool->cache, &none, cache, false,
									__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return cache;
	euno_pool_free(pool, cache, sizeof(EunoCache));
	return none;
}

/*
 * Gives up to n nodes of a class back to the pool.  How many: none if there
 * are none, or if the operation is canceled.  The stripe is locked.
 */
static uint32_t
give_back(EunoPool *pool, Stripe *stripe, int class, uint32_t n)
{
	uint32_t	given = euno_pool_free_list(pool, &stripe->nodes[class], class, n);

	stripe->bytes -= given * euno_pool_class_size(class);
	return given;
}

/* Looks again how large the pool is. */
static void
set_most(EunoPool *pool, Stripe *stripe)
{
	uint64_t	most = __atomic_load_n(&pool->extents, __ATOMIC_RELAXED) *
		(EUNO_EXTENT_SIZE / 1024);

	stripe->most = most < EUNO_CACHE_LEAST ? EUNO_CACHE_LEAST :
		most > EUNO_CACHE_MOST ? EUNO_CACHE_MOST : (uint32_t) most;
}

/*
 * Makes room for a batch in a stripe that is locked: each class in its turn
 * gives a batch back.  Without that a stripe that is full of other classes
 * would leave every allocation of this one to the pool, whose lock all
 * processes share.  False if the operation was canceled.
 */
static bool
make_room(EunoPool *pool, Stripe *stripe)
{
	set_most(pool, stripe);
	while (stripe->bytes + BATCH_BYTES > stripe->most)
	{
		stripe->next = (stripe->next + 1) % CLASSES;
		if (stripe->nodes[stripe->next] != NULL &&
			give_back(pool, stripe, stripe->next,
					  batch_of(euno_pool_class_size(stripe->next))) == 0)
			return false;
	}
	return true;
}

void
euno_cache_drain(EunoPool *pool)
{
	EunoCache  *cache = __atomic_load_n(&pool->cache, __ATOMIC_ACQUIRE);

	for (int i = 0; cache != NULL && i < EUNO_CACHE_STRIPES; i++)
	{
		Stripe	   *stripe = &cache->stripes[i];

		if (!euno_mutex_lock_or_leave(&stripe->lock, euno_pool_environment(pool)))
			return;
		for (int class = 0; class < CLASSES; class++)
			(void) give_back(pool, stripe, class, UINT32_MAX);
		euno_mutex_unlock(&stripe->lock, euno_pool_environment(pool));
	}
}

void *
euno_cache_alloc(EunoPool *pool, uint32_t process, size_t size)
{
	EunoCache  *cache = size > EUNO_CACHE_LARGEST ? NULL : cache_of(pool);
	void	   *node = NULL;

	if (cache != NULL)
	{
		Stripe	   *stripe = stripe_of(cache, process);
		int			class = euno_pool_class(size);
		size_t		bytes = euno_pool_class_size(class);

		if (!euno_mutex_lock_or_leave(&stripe->lock,
									  euno_pool_environment(pool)))
			return NULL;
		if (stripe->nodes[class] == NULL && make_room(pool, stripe))
			stripe->bytes += bytes *
				euno_pool_alloc_list(pool, &stripe->nodes[class], class,
									 batch_of(bytes));
		node = stripe->nodes[class];
		if (node != NULL)
		{
			stripe->nodes[class] = *euno_pool_link(node, class);
			stripe->bytes -= bytes;
		}
		euno_mutex_unlock(&stripe->lock, euno_pool_environment(pool));
	}
	if (node == NULL && !euno_is_canceled(euno_pool_environment(pool)))
		node = euno_pool_alloc(pool, size);
	if (node == NULL && __atomic_load_n(&pool->cache, __ATOMIC_RELAXED) != NULL &&
		!euno_is_canceled(euno_pool_environment(pool)))
	{
		euno_cache_drain(pool);
		node = euno_pool_alloc(pool, size);
	}
	return node;
}

void
euno_cache_free(EunoPool *pool, uint32_t process, void *node, size_t size)
{
	EunoCache  *cache = size > EUNO_CACHE_LARGEST ? NULL :
		__atomic_load_n(&pool->cache, __ATOMIC_ACQUIRE);
	int			class = euno_pool_class(size);
	size_t		bytes = euno_pool_class_size(class);
	Stripe	   *stripe;

	if (cache == NULL)
	{
		euno_pool_free(pool, node, size);
		return;
	}
	stripe = stripe_of(cache, process);
	euno_mutex_lock(&stripe->lock, euno_pool_environment(pool));
	*euno_pool_link(node, class) = stripe->nodes[class];
	stripe->nodes[class] = node;
	stripe->bytes += bytes;
	if (stripe->bytes > stripe->most)
	{
		set_most(pool, stripe);
		if (stripe->bytes > stripe->most)
			(void) give_back(pool, stripe, class, batch_of(bytes));
	}
	euno_mutex_unlock(&stripe->lock, euno_pool_environment(pool));
}
