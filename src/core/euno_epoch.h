/*-------------------------------------------------------------------------
 *
 * euno_epoch.h
 *	  Epoch-based reclamation across processes, and the hazard words.
 *
 * A process pins the current epoch while it may hold pointers into a tree;
 * a node that was unlinked in epoch e may be reused once every pinned epoch
 * is greater than e.  Pins last for one operation, never across calls of the
 * access method.
 *
 * The hazard word announces one (tree, TID) that a scan is about to hand to
 * the executor; bulk delete waits for the words that name a TID it removes.
 * The tree's vacuum epoch tells a scan that its batch may be out of date:
 *
 *		scan					bulk delete
 *		epoch = vacuum epoch	remove the entries
 *		read a batch			advance the vacuum epoch
 *		for each TID:			full barrier
 *			hazard = TID		for each slot whose hazard names a removed TID:
 *			full barrier			wait until it changes
 *			if vacuum epoch
 *				!= epoch:		(only then may the TIDs be used again)
 *				is the entry still in the tree?  no: skip it
 *			return TID
 *
 * The epoch has to advance between the removal and the look at the hazard
 * words.  Advancing it before the removal is not enough: a scan may then read
 * the new epoch, and after that an entry that is yet to be removed.  The scan's
 * barrier is left to the bulk delete where the system can: see euno_hazard.h.
 *
 * The structs live in shared memory.  Source: Fraser, "Practical lock
 * freedom" (epochs); "The ART of Practical Synchronization", section 3.1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_EPOCH_H
#define EUNO_EPOCH_H

#include "core/euno_delegate.h"

/*
 * Each on a cache line of its own: written by its process at every operation.
 */
typedef struct EunoEpochSlot
{
	uint64_t	pinned;			/* 0 = not inside an operation */
	uint64_t	hazard;			/* 0 = none; tree number << 48 | TID */
	int32_t		pid;			/* for views; 0 = free */
	EunoRequest request;		/* for euno_delegate.c, on lines of their own */
	EunoAnswer	answer;
} __attribute__((aligned(128))) EunoEpochSlot;

typedef struct EunoEpochs
{
	uint64_t	current __attribute__((aligned(128)));	/* starts at 1 */
	uint64_t	joined __attribute__((aligned(128)));	/* euno_hazard.h: somebody has */
	uint64_t	barriers;		/* asked for; only written, for the order */
	uint32_t	nslots;
	EunoQueue	queues[EUNO_QUEUES];	/* euno_delegate.h */
	EunoEpochSlot slots[];
} EunoEpochs;

extern size_t euno_epochs_size(uint32_t nslots);
extern void euno_epochs_init(EunoEpochs *epochs, uint32_t nslots);

/* Re-entrant through process->depth.  A full barrier follows the first pin. */
extern void euno_epoch_enter(EunoProcess *process);
extern void euno_epoch_exit(EunoProcess *process);

/*
 * Advances the epoch; returns the one a node unlinked before has to wait for.
 */
extern uint64_t euno_epoch_retire(EunoEpochs *epochs);

/* True when nobody can still see what was retired with this epoch. */
extern bool euno_epoch_passed(EunoEpochs *epochs, uint64_t retired);

#endif							/* EUNO_EPOCH_H */
