/*-------------------------------------------------------------------------
 *
 * euno_deadlock.c
 *	  Waits for other processes' pins, holds and hazards.
 *
 * These end when an operation does, or the use of a row: nearly always at
 * once.  But a comparator may wait for a lock within an operation, or a function
 * that a check or a builder calls, and whoever has that lock may wait for that
 * operation's pin, or for that hold of a tree.  The server's search for
 * deadlocks sees nothing of the second wait.  So who has waited for as long as
 * deadlock_timeout looks himself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/wait_event.h"

#include "am/euno_operation.h"
#include "euno_compat.h"

/*
 * Did the process, which leads our parallel query, start us in the operation
 * that it is in?  If it has begun a further one since, the workers that it
 * waits for may be those of that one's statement; if it has left all, it keeps
 * no tree's memory.
 */
static bool
started_us_here(const PGPROC *proc, uint32 number)
{
	uint64	   *within = &euno_shared_epochs()->slots[number].within;

	return proc == MyProc->lockGroupLeader && euno_within_operations > 0 &&
		__atomic_load_n(within, __ATOMIC_RELAXED) ==
		(uint64) euno_within_operations;
}

/*
 * Does the process wait for a lock that we, or our group, keep it from,
 * directly or through others?  Or does it lead a parallel query, and wait for
 * what we are to return?
 */
static bool
waits_for_us(const PGPROC *proc, uint32 number, int pid)
{
	int			own = MyProc->lockGroupLeader != NULL ?
		MyProc->lockGroupLeader->pid : MyProcPid;
	List	   *seen = list_make1_int(pid);
	uint32		sort = proc->wait_event_info & 0xFF000000;
	ListCell   *lc;

	/*
	 * One that waits neither for a lock nor for another process goes on by
	 * itself; so does one that waits for a page which another reads.  (In a
	 * parallel query the lock may be another member's wait: its own is IPC.)
	 */
	if ((sort != PG_WAIT_LOCK && sort != PG_WAIT_IPC) ||
		proc->wait_event_info == WAIT_EVENT_BUFFER_IO)
		return false;
	if (sort == PG_WAIT_IPC && started_us_here(proc, number))
		return true;
	foreach(lc, seen)
	{
		Datum		blockers = DirectFunctionCall1(pg_blocking_pids,
												   Int32GetDatum(lfirst_int(lc)));
		ArrayType  *array = DatumGetArrayTypeP(blockers);
		int		   *pids = (int *) ARR_DATA_PTR(array);

		for (int i = 0; i < ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)); i++)
		{
			if (pids[i] == own)
				return true;
			seen = list_append_unique_int(seen, pids[i]);
		}
	}
	list_free(seen);
	return false;
}

/*
 * The process that waits for us, 0 if this one does not.  It may have been done
 * with what we wait for before it began to wait: that is to be looked at again.
 */
static int
waiting_for_us(uint32 number)
{
	const PGPROC *proc = GetPGProcByNumber(number);
	int			pid = proc->pid;

	return pid != 0 && proc != MyProc && waits_for_us(proc, number, pid) ?
		pid : 0;
}

static void
refuse_deadlock(int pid)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail("Process %d waits for process %d to finish using a euno index; that process waits, directly or indirectly, for process %d.",
					   MyProcPid, pid, MyProcPid)));
}

/* Does it keep the memory of this tree, which is given up? */
static bool
looks_at(const EunoEpochSlot *process, const EunoTreeSlot *slot)
{
	uint64		pinned = __atomic_load_n(&process->pinned, __ATOMIC_ACQUIRE);

	return (pinned != 0 && pinned <= slot->retired_epoch) ||
		euno_is_among_held(__atomic_load_n(&process->held, __ATOMIC_RELAXED),
						   slot);
}

/* True once in deadlock_timeout: it is time to look. */
static bool
nap(int *waited)
{
	CHECK_FOR_INTERRUPTS();
	euno_sleep("EunoReaders", 1000);
	return ++*waited % DeadlockTimeout == 0;
}

void
euno_wait_for_look(const EunoTreeSlot *slot, int *waited)
{
	EunoEpochs *epochs = euno_shared_epochs();
	bool		look = nap(waited);

	if (LockTimeout > 0 && *waited >= LockTimeout)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("canceling statement due to lock timeout")));
	if (!look)
		return;
	for (uint32 i = 0; i < epochs->nslots; i++)
	{
		const EunoEpochSlot *process = &epochs->slots[i];
		int			pid = looks_at(process, slot) ? waiting_for_us(i) : 0;

		if (pid != 0 && looks_at(process, slot))
			refuse_deadlock(pid);
	}
}

void
euno_wait_for_hazard(uint32 number, uint64 hazard, int *waited)
{
	uint64	   *word = &euno_shared_epochs()->slots[number].hazard;
	int			pid = nap(waited) ? waiting_for_us(number) : 0;

	if (pid != 0 && __atomic_load_n(word, __ATOMIC_ACQUIRE) == hazard)
		refuse_deadlock(pid);
}
