/*-------------------------------------------------------------------------
 *
 * euno_barrier.h
 *	  A full barrier in all processes at once, instead of one in each.
 *
 * Where two processes each store a word and then look at the other's, both need
 * a full barrier in between, or both may miss the other's store.  If one of them
 * does so with every operation (a pin, a hazard) and the other now and then
 * (whoever gives memory back, a bulk delete), the latter can have all processes
 * that have joined pass a full barrier (Linux: membarrier), and the former's is
 * one for the compiler alone.
 *
 * Why that is right.  A process that has joined passes its barrier B between
 * two instructions of its own, after the other has begun to ask for it and
 * before that has its answer.  If the word was stored before B, the other, which
 * looks after the answer, sees it.  If it was stored after B, so is what the
 * process looks at loaded, and the other had stored that before it asked.
 *
 * Who joins says so in shared memory, with a full barrier, before its first
 * cheap store; who finds, after a full barrier, that nobody has said so has
 * stored its own word before the first look of whoever says so later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_BARRIER_H
#define EUNO_BARRIER_H

#include "core/euno_shared.h"

/* Of all processes, in shared memory; zeros at first. */
typedef struct EunoBarriers
{
	uint64_t	joined;			/* somebody has */
	uint64_t	asked;			/* how often */
} EunoBarriers;

/* This process has joined; set by euno_barrier_join alone. */
extern bool euno_barrier_joined;

/*
 * Joins, if the system has what it takes; else each store stays a full barrier.
 * Once in each process, before it stores anything in this way, with one thread
 * running or none that does.
 */
extern void euno_barrier_join(EunoBarriers *barriers);

/*
 * A full barrier here, and one in every process that has joined.  False, with
 * errno set, if the system refused: nothing may be concluded from others' words.
 * Takes microseconds where somebody has joined.
 */
extern bool euno_barrier_all(EunoBarriers *barriers);

/*
 * Stores a word of this process; later loads of shared memory are ordered behind
 * it, as far as those are concerned who call euno_barrier_all.
 */
static inline void
euno_barrier_store(uint64_t *word, uint64_t value)
{
	if (__builtin_expect(euno_barrier_joined, 1))
	{
		euno_store64_release(word, value);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	else
	{
		(void) euno_exchange64_full(word, value);
		euno_fence_after_rmw();
	}
}

#endif							/* EUNO_BARRIER_H */
