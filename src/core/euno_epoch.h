/*-------------------------------------------------------------------------
 *
 * euno_epoch.h
 *	  Epoch-based reclamation across processes, and the hazard words.
 *
 * A process pins the current epoch while it may hold pointers into a tree;
 * a node that was unlinked in epoch e may be reused once every pinned epoch
 * is greater than e, and the pins have been looked at after a barrier in all
 * processes.  Pins last for one operation, never across calls of the access
 * method.
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
 * the new epoch, and after that an entry that is yet to be removed.  The
 * scan's barrier is left to the bulk delete where the system can: see
 * euno_barrier.h.
 *
 * The structs live in shared memory.  Source: Fraser, "Practical lock
 * freedom" (epochs); "The ART of Practical Synchronization", section 3.1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_EPOCH_H
#define EUNO_EPOCH_H

#include "core/euno_barrier.h"
#include "core/euno_delegate.h"

/*
 * Each on a cache line of its own: written by its process at every operation.
 */
typedef struct EunoEpochSlot
{
	uint64_t	pinned;			/* 0 = not inside an operation */
	uint64_t	hazard;			/* 0 = none; tree number << 48 | TID */
	uint64_t	held;			/* the trees whose memory it keeps between
								 * operations, up to four: their numbers from
								 * 1, 16 bits each; 0 = none */
	uint64_t	within;			/* so many operations that may call foreign
								 * code (euno_deadlock.c) */
	EunoRequest request;		/* for euno_delegate.c, on lines of their own */
	EunoAnswer	answer;
} __attribute__((aligned(128))) EunoEpochSlot;

typedef struct EunoEpochs
{
	uint64_t	current __attribute__((aligned(128)));	/* starts at 1 */
	uint64_t	passed __attribute__((aligned(128)));	/* a bound, kept: see below */
	uint64_t	tried;			/* the epoch in which somebody last tried, lately */
	EunoBarriers barriers __attribute__((aligned(128)));
	uint32_t	nslots;
	EunoQueue	queues[EUNO_QUEUES];	/* euno_delegate.h */
	EunoEpochSlot slots[];
} EunoEpochs;

extern size_t euno_epochs_size(uint32_t nslots);
extern void euno_epochs_init(EunoEpochs *epochs, uint32_t nslots);

/* How many epochs a barrier in all processes is worth, if nobody needs it. */
#ifndef EUNO_EPOCH_BATCH
#define EUNO_EPOCH_BATCH	32
#endif

/*
 * Pins the current epoch; re-entrant through process->depth.  What others take
 * away and then wait for by euno_epoch_bound or euno_epoch_passed is seen to
 * be gone, or waits for this pin.  It is a barrier for nothing else.
 */
static inline void
euno_epoch_enter(EunoProcess *process)
{
	EunoEpochs *epochs = process->epochs;

	if (process->depth++ > 0 || EUNO_ALONE)
		return;

	/* A pin that is out of date by now only delays reclamation. */
	euno_barrier_store(&epochs->slots[process->slot].pinned,
					   euno_load64_acquire(&epochs->current));
}

static inline void
euno_epoch_exit(EunoProcess *process)
{
	if (--process->depth > 0 || EUNO_ALONE)
		return;

	/* Release: our loads from the nodes come before anyone's reuse of them. */
	euno_store64_release(&process->epochs->slots[process->slot].pinned, 0);
}

/*
 * Advances the epoch; returns the one a node unlinked before has to wait for.
 */
extern uint64_t euno_epoch_advance(EunoEpochs *epochs);

/*
 * The bound: nobody can still see what was retired with an epoch less than
 * that. Asks for a barrier in all processes if that would raise it, to
 * "wanted" at least.
 */
extern uint64_t euno_epoch_bound(EunoEpochs *epochs, uint64_t wanted);

/*
 * The bound, for those who can do without what they would get: of all processes
 * one tries to raise it, once in EUNO_EPOCH_BATCH epochs.
 */
extern uint64_t euno_epoch_bound_lately(EunoEpochs *epochs);

/* True when nobody can still see what was retired with this epoch. */
extern bool euno_epoch_passed(EunoEpochs *epochs, uint64_t retired);

/* A stamp that no tree has had (src/README.md, "The last leaf"). */
static inline uint64_t
euno_stamp_new(EunoEpochs *epochs)
{
	return euno_epoch_advance(epochs);
}

/* Says which TID this process is about to return (see above). */
static inline void
euno_hazard_announce(EunoProcess *process, uint64_t word)
{
	euno_barrier_store(&process->epochs->slots[process->slot].hazard, word);
}

/*
 * Is a deferred removal still to be done?  To be asked where the entry is found,
 * with its leaf, or what else its writers lock, locked.  Who makes an entry of a
 * TID that has been given away has seen the vacuum epoch's change, and whoever
 * finds that entry under the lock sees it, too.
 */
static inline bool
euno_guard_holds(const EunoGuard *guard)
{
	return guard == NULL || euno_load64_acquire(guard->word) == guard->expected;
}

#endif							/* EUNO_EPOCH_H */
