/*-------------------------------------------------------------------------
 *
 * memory.h
 *	  What an access to shared memory sees: the C11 memory model, for logical
 *	  threads (coroutines.h).
 *
 * The accesses of core (euno_shared.h, EUNO_TEST_MODEL) to the region come
 * here; those to other addresses are private and are just made.
 *
 * Without "weak", memory is sequentially consistent.  With it, each store is a
 * message that other threads may see late: a load takes any message that
 * happens-before, coherence and the order of sequentially consistent
 * operations leave it, chosen at random.  Views as in "A promising semantics
 * for relaxed-memory concurrency" (Kang et al., POPL 2017), kept as vector
 * clocks as in C11Tester (Luo and Demsky, ASPLOS 2021).
 *
 * What is left out, so that nothing only it can break is found: a load that
 * sees a store which comes later in the schedule (load buffering; but see
 * memory_free); stores to one word that take effect in another order than that
 * of the schedule; bytes of one aligned word of a bulk copy that come from
 * different stores.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/euno_shared.h"

/* Where the shared memory is; page aligned.  Once. */
extern void memory_region(void *base, size_t size);

/* Everything stored so far is seen by everybody; the next run begins. */
extern void memory_start(bool weak, uint64_t seed);

/*
 * The thread that runs now has got word from all others who have told: what
 * they had seen by then, it sees too.  Operations of a history are ordered by
 * this.
 */
extern void memory_listen(void);
extern void memory_tell(void);

/*
 * Nobody may touch these bytes any more.  NULL, or what is wrong: somebody
 * else's access to them does not happen before this.
 */
extern const char *memory_free(void *p, size_t size);

/*
 * Notes the access, which is to the region.  Is it to a word that several
 * threads have used since memory_forget, one of them to change it?
 */
extern bool memory_is_shared(EunoHookKind kind, const void *p, size_t n);
extern void memory_forget(void);

/* How many such words there are. */
extern uint64_t memory_shared_words;

/* Loads that did not see the latest store, since memory_region. */
extern uint64_t memory_stale_loads;

#endif							/* MEMORY_H */
