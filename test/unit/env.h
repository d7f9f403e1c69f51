/*-------------------------------------------------------------------------
 *
 * env.h
 *	  What core asks of its surroundings, for programs without a server:
 *	  waiting by futex, node memory from an arena or from malloc, failing
 *	  allocations on request; and random numbers and the clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ENV_H
#define ENV_H

#include <pthread.h>

#include "core/euno_core.h"
#include "core/euno_epoch.h"
#include "mem/euno_pool.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A tree's source of nodes: EunoTree.alloc_arg. */
typedef struct NodeSource
{
	EunoPool   *pools;			/* one a domain; NULL = malloc */
	pthread_mutex_t mutex;		/* malloc: protects the list of nodes */
	struct NodeHeader *nodes;
	uint64_t	calls;			/* of alloc; atomic, like all below */
	uint64_t	fail_at;		/* this call (counted from 1) fails; 0 = none */
	bool		fail_on;		/* ... and so do all after it */
	uint64_t	failures;
	uint64_t	frees;
	void		(*called) (void *arg);	/* by each alloc, with NULL, if set */
	uint64_t	live;			/* nodes */
	uint64_t	live_bytes;
} NodeSource;

extern const EunoEnvironment test_env;

/* Which stripe of a pool's cache this thread uses. */
extern __thread uint32_t test_env_stripe;

/*
 * How often threads of this program slept in test_env.wait, and how often a
 * sleep ended by its time limit though the word had changed: nobody woke it.
 */
extern void test_env_sleeps(uint64_t *sleeps, uint64_t *lost);

/* "pools" may be NULL; the struct is zeroed and set up. */
extern void node_source_init(NodeSource *source, EunoPool *pools);

/* Frees all nodes of malloc; pools are left to the caller. */
extern void node_source_release(NodeSource *source);

/* Zeroed memory that forked processes share. */
extern void *shared_memory(size_t size);

/*
 * From now on at addresses from this one on, if they are free: what depends on
 * addresses, such as hashes, is the same in each run then.
 */
extern void shared_memory_from(void *place);

extern void shared_memory_free(void *memory, size_t size);

typedef struct Random
{
	uint64_t	state;
} Random;

extern uint64_t random_next(Random *random);

/* Uniform in [0, n). */
static inline uint32_t
random_below(Random *random, uint32_t n)
{
	return (uint32_t) ((random_next(random) >> 32) * (uint64_t) n >> 32);
}

/* The seed: EUNO_SEED if set, else always the same. */
extern uint64_t test_seed(void);

/* Seconds to run for: EUNO_SECONDS if set, else 0: each test once. */
extern double test_seconds(void);

/* Seconds by a clock that never goes back. */
extern double now(void);

#endif							/* ENV_H */
