/*-------------------------------------------------------------------------
 *
 * euno_hazard.h
 *	  Announcing a hazard, and the barriers of its protocol (euno_epoch.h).
 *
 * A scan announces each TID that it returns; a bulk delete comes now and then.
 * Both need a full barrier, the scan between its hazard and its look at the
 * vacuum epoch, the bulk delete between the epoch and its look at the hazards.
 * Where the system can have all processes that have joined pass a full barrier
 * at once (Linux: membarrier), the bulk delete does that, and the scans' barrier
 * is one for the compiler alone.
 *
 * Why that is right.  A process that has joined passes its barrier B between
 * two instructions of its own, after the bulk delete has begun to ask for it
 * and before that has its answer.  If the hazard was stored before B, the bulk
 * delete, which looks after the answer, sees it.  If it was stored after B, so
 * was the epoch looked at, and the bulk delete had advanced it before it asked.
 *
 * Who joins says so in shared memory, with a full barrier, before its first
 * cheap announcement; a bulk delete that finds, after a full barrier, that
 * nobody has said so has advanced the epoch before the first look of whoever
 * says so later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_HAZARD_H
#define EUNO_HAZARD_H

#include "core/euno_epoch.h"
#include "core/euno_shared.h"

/* This process has joined; set by euno_hazard_join alone. */
extern bool euno_hazard_joined;

/*
 * Joins, if the system has what it takes; else announcing stays a full
 * barrier.  Once in each process, before it announces anything, with one
 * thread running or none that announces.
 */
extern void euno_hazard_join(EunoEpochs *epochs);

/*
 * A full barrier here, and one in every process that has joined.  False, with
 * errno set, if the system refused: nothing may be concluded from the hazards.
 */
extern bool euno_hazard_barrier(EunoEpochs *epochs);

/*
 * Stores this process's hazard word; later loads of shared memory are ordered
 * behind it, as far as those are concerned who call euno_hazard_barrier.
 */
static inline void
euno_hazard_announce(EunoProcess *process, uint64_t word)
{
	uint64_t   *hazard = &process->epochs->slots[process->slot].hazard;

	if (euno_hazard_joined)
	{
		euno_store64_release(hazard, word); /* the last one has been used */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	else
	{
		(void) euno_exchange64_full(hazard, word);
		euno_fence_after_rmw();
	}
}

#endif							/* EUNO_HAZARD_H */
