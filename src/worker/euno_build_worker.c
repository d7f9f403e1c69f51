/*-------------------------------------------------------------------------
 *
 * euno_build_worker.c
 *	  A background worker builds an index for a session that must not do so.
 *
 * It has nothing of that session: no settings, no temporary relations.  The
 * session waits for it, with all the locks that it holds; and the deadlock
 * detector does not know that it waits for the worker.  So the worker waits
 * neither for the locks that everybody takes on the table and the index, nor
 * for another builder; and for other locks, of what it needs to connect, on
 * what the index's functions use, or on a table that is no heap, no longer
 * than deadlock_timeout.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "am/euno_debug.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "worker/euno_errands.h"
#include "worker/euno_worker.h"

/* LOCKTAG_OBJECT sub-id of the lock of who has a worker build; "ew" */
#define WORKER_LOCK_SUBID 0x6577

/* A worker that a session asks for. */
typedef struct Request
{
	EunoTreeSlot *slot;			/* whose worker_asker we are */
	BackgroundWorkerHandle *handle; /* NULL: there is none yet */
} Request;

/* Nobody waits for it any more. */
static void
end_request(int code, Datum arg)
{
	Request    *request = (Request *) DatumGetPointer(arg);

	if (request->handle != NULL)
		TerminateBackgroundWorker(request->handle);
	pg_atomic_write_u32(&request->slot->worker_asker, 0);
}

static void
start_worker(EunoIndex *idx, Relation index, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker;

	euno_fill_worker(&worker, "euno rebuild", "euno_build_main");
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	memcpy(worker.bgw_extra, &idx->oid, sizeof(Oid));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, handle))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a worker to build euno index \"%s\"",
						RelationGetRelationName(index)),
				 errhint("Consider increasing \"max_worker_processes\".")));
}

/* We are the slot's worker_asker on entry, and nobody is on return. */
static void
run_worker(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	Request		request = {.slot = slot};

	PG_ENSURE_ERROR_CLEANUP(end_request, PointerGetDatum(&request));
	{
		EUNO_STOP_POINT("worker-request");
		start_worker(idx, index, &request.handle);
		(void) WaitForBackgroundWorkerShutdown(request.handle);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_request, PointerGetDatum(&request));
	pfree(request.handle);
	pg_atomic_write_u32(&slot->worker_asker, 0);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Become the one who has a worker build the index.  The lock for that is held;
 * the processes of a parallel query share it, and only one may ask, for there
 * may be workers for no more.
 */
static bool
become_asker(EunoTreeSlot *slot)
{
	uint32		asker = pg_atomic_read_u32(&slot->worker_asker);

	return !euno_in_our_group((int) asker) &&
		pg_atomic_compare_exchange_u32(&slot->worker_asker, &asker,
									   (uint32) MyProcPid);
}

/*
 * Others who build the index, or have it built, are waited for here, where
 * deadlocks are found: many sessions may want it at the same time, and there
 * are few workers.  Somebody else may begin before our worker does, or evict
 * what that has built: our caller comes back.
 */
void
euno_build_by_worker(EunoIndex *idx, Relation index)
{
	EunoTreeSlot *slot = euno_index_slot(idx);
	EunoState	state = euno_tree_state(slot);
	LOCKTAG		turn;
	uint32		done;
	bool		is_asker;
	bool		is_ready;

	if (state != EUNO_STATE_ABSENT && state != EUNO_STATE_READY)
		euno_refuse_own_build(slot, index);
	SET_LOCKTAG_OBJECT(turn, MyDatabaseId, RelationRelationId, idx->oid,
					   WORKER_LOCK_SUBID);
	(void) LockAcquire(&turn, ExclusiveLock, false, false);
	euno_build_lock(idx->oid, ExclusiveLock);
	euno_build_unlock(idx->oid, ExclusiveLock);
	is_asker = become_asker(slot);
	done = pg_atomic_read_u32(&slot->worker_turns);
	is_ready = euno_tree_state(slot) == EUNO_STATE_READY;
	if (is_asker && !is_ready)
		run_worker(idx, index, slot);
	else if (is_asker)
		pg_atomic_write_u32(&slot->worker_asker, 0);
	LockRelease(&turn, ExclusiveLock, false);
	if (!is_asker)
		euno_sleep("EunoBuild", 1000);
	else if (!is_ready && euno_tree_state(slot) != EUNO_STATE_READY &&
		pg_atomic_read_u32(&slot->worker_turns) == done)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("euno index \"%s\" is absent, and could not be built",
						RelationGetRelationName(index)),
				 errdetail("Its expressions run as the table's owner, so a background worker builds it for others; that has failed, or could not lock the table or the index."),
				 errhint("The server's log has the reason.")));
}

void
euno_build_main(Datum database)
{
	Oid			index_oid;
	Relation	heap;
	Relation	index;

	memcpy(&index_oid, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	euno_worker_connect(DatumGetObjectId(database), DeadlockTimeout);
	StartTransactionCommand();
	index = euno_open_unless_locked(index_oid, &heap);
	if (index != NULL)
	{
		EunoIndex  *idx = euno_index_open(index);

		euno_index_build_if_idle(idx, index);
		pg_atomic_fetch_add_u32(&euno_index_slot(idx)->worker_turns, 1);
		relation_close(index, NoLock);
		relation_close(heap, NoLock);
	}
	CommitTransactionCommand();
}
