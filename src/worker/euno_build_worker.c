/*-------------------------------------------------------------------------
 *
 * euno_build_worker.c
 *	  A background worker builds an index for a session that must not do so.
 *
 * It has nothing of that session: no settings, no temporary relations, nothing
 * that its transaction has changed.  The owner's session gets its messages, as
 * if it had built the index itself.
 *
 * The session waits for it, with all the locks that it holds; and the deadlock
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
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
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

/* Of the worker's messages; longer ones wait for it. */
#define QUEUE_BYTES 16384

/* How often deadlock_timeout may pass before there is a place for a worker. */
#define LONGEST_WAIT 60

/* What a worker is told. */
typedef struct Order
{
	Oid			index_oid;
	dsm_handle	queue;			/* for its messages, or DSM_HANDLE_INVALID */
} Order;

/* A worker that a session asks for. */
typedef struct Request
{
	EunoTreeSlot *slot;			/* whose worker_asker we are */
	BackgroundWorkerHandle *handle; /* NULL: there is none yet */
	dsm_segment *segment;		/* NULL: its messages are not for us */
	uint32		turns;			/* worker_turns before it began */
	ErrorData  *error;			/* that has ended it, or NULL */
} Request;

/* Nobody waits for it any more. */
static void
end_request(int code, Datum arg)
{
	Request    *request = (Request *) DatumGetPointer(arg);

	if (request->handle != NULL)
	{
		TerminateBackgroundWorker(request->handle);
		pg_atomic_fetch_sub_u32(euno_tree_asked_workers(), 1);
	}
	pg_atomic_write_u32(&request->slot->worker_asker, 0);
}

/*
 * Is there a worker of another session's statement that will end, as far as can
 * be seen: one whose session and which itself wait for no lock?  A hint.
 */
static bool
is_statement_parallel(void)
{
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const PGPROC *proc = &ProcGlobal->allProcs[i];
		const PGPROC *leader = proc->lockGroupLeader;

		if (proc->pid != 0 && leader != NULL && leader != proc &&
			leader != MyProc->lockGroupLeader &&
			proc->waitLock == NULL && leader->waitLock == NULL)
			return true;
	}
	return false;
}

/*
 * No worker has a place yet: may one come free?  All may be taken by what waits
 * for us; but those of others like us end.
 */
static bool
is_place_expected(void)
{
	return pg_atomic_read_u32(euno_tree_asked_workers()) > 0 ||
		is_statement_parallel();
}

static void
start_worker(EunoIndex *idx, Relation index, Request *request)
{
	Order		order = {.index_oid = idx->oid,
		.queue = request->segment != NULL ?
	dsm_segment_handle(request->segment) : DSM_HANDLE_INVALID};
	BackgroundWorker worker;
	int			waited = 0;

	StaticAssertStmt(sizeof(Order) <= BGW_EXTRALEN, "an order fits");

	euno_fill_worker(&worker, "euno rebuild", "euno_build_main");
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	memcpy(worker.bgw_extra, &order, sizeof(Order));
	worker.bgw_notify_pid = MyProcPid;
	while (!RegisterDynamicBackgroundWorker(&worker, &request->handle))
	{
		if (++waited % DeadlockTimeout == 0 &&
			(waited / DeadlockTimeout >= LONGEST_WAIT || !is_place_expected()))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("could not start a worker to build euno index \"%s\"",
							RelationGetRelationName(index)),
					 errhint("Consider increasing \"max_worker_processes\".")));
		CHECK_FOR_INTERRUPTS();
		euno_sleep("EunoBuild", 1000);
	}
	pg_atomic_fetch_add_u32(euno_tree_asked_workers(), 1);
}

/*
 * A queue for the worker's messages, if these, which may tell of rows, are for
 * this session, and there is a segment left.
 */
static void
make_queue(Relation index, Request *request)
{
	if (euno_session_is_trusted(index))
		request->segment = dsm_create(QUEUE_BYTES,
									  DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (request->segment != NULL)
		shm_mq_set_receiver(shm_mq_create(dsm_segment_address(request->segment),
										  QUEUE_BYTES),
							MyProc);
}

/* A notice is passed on, an error is kept until the worker has ended. */
static void
take_message(Request *request, void *data, Size nbytes)
{
	ErrorData  *message = palloc0(sizeof(ErrorData));
	StringInfoData buf;
	char		type;

	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, data, (int) nbytes);
	type = (char) pq_getmsgbyte(&buf);
	if (type != 'E' && type != 'N')
		return;
	pq_parse_errornotice(&buf, message);
	if (type == 'N')
		ThrowErrorData(message);
	else
		request->error = message;
}

static void
relay_messages(Request *request)
{
	shm_mq_handle *handle = shm_mq_attach(dsm_segment_address(request->segment),
										  request->segment, request->handle);
	Size		nbytes;
	void	   *data;

	while (shm_mq_receive(handle, &nbytes, &data, false) == SHM_MQ_SUCCESS)
		take_message(request, data, nbytes);
	dsm_detach(request->segment);
}

/* Waits where deadlocks are found. */
static void
wait_for_builder(Oid index_oid)
{
	euno_build_lock(index_oid, ExclusiveLock);
	euno_build_unlock(index_oid, ExclusiveLock);
}

/*
 * Waits for another builder, and then for a worker if the tree is not READY.
 * We are the slot's worker_asker on entry, and nobody is on return.  False if
 * a worker has failed, with its error if that is known.
 */
static bool
run_worker(EunoIndex *idx, Relation index, EunoTreeSlot *slot,
		   ErrorData **error)
{
	Request		request = {.slot = slot};

	PG_ENSURE_ERROR_CLEANUP(end_request, PointerGetDatum(&request));
	{
		wait_for_builder(idx->oid);
		if (euno_tree_state(slot) != EUNO_STATE_READY)
		{
			request.turns = pg_atomic_read_u32(&slot->worker_turns);
			EUNO_STOP_POINT("worker-request");
			make_queue(index, &request);
			start_worker(idx, index, &request);
			if (request.segment != NULL)
				relay_messages(&request);
			(void) WaitForBackgroundWorkerShutdown(request.handle);
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_request, PointerGetDatum(&request));
	pg_atomic_write_u32(&slot->worker_asker, 0);
	if (request.handle == NULL)
		return true;
	pfree(request.handle);
	pg_atomic_fetch_sub_u32(euno_tree_asked_workers(), 1);
	CHECK_FOR_INTERRUPTS();
	*error = request.error;
	return euno_tree_state(slot) == EUNO_STATE_READY ||
		pg_atomic_read_u32(&slot->worker_turns) != request.turns;
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

/* That the worker's locks timed out says little: nobody has set such a time. */
static void
report_failure(Relation index, ErrorData *error)
{
	if (error != NULL && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
	{
		error->elevel = ERROR;
		ThrowErrorData(error);
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("could not build euno index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail("Its keys may depend on functions or settings, so a background worker builds it; that worker failed, or could not lock the table or the index."),
			 errhint("See the server log for the reason.")));
}

/*
 * Others who have the index built are waited for here, where deadlocks are
 * found: many sessions may want it at the same time, and there are few
 * workers.  (That lock does not keep out others of our lock group: they come
 * back until there is no asker.)  Somebody else may begin before our worker
 * does, or evict what that has built: our caller comes back.
 */
void
euno_build_by_worker(EunoIndex *idx, Relation index)
{
	EunoTreeSlot *slot = euno_index_slot(idx);
	EunoState	state = euno_tree_state(slot);
	ErrorData  *error = NULL;
	bool		is_asker;
	bool		is_done = true;
	LOCKTAG		turn;

	if (state != EUNO_STATE_ABSENT && state != EUNO_STATE_READY)
		euno_refuse_own_build(slot, index);
	SET_LOCKTAG_OBJECT(turn, MyDatabaseId, RelationRelationId, idx->oid,
					   WORKER_LOCK_SUBID);
	(void) LockAcquire(&turn, ExclusiveLock, false, false);
	is_asker = become_asker(slot);
	if (is_asker)
		is_done = run_worker(idx, index, slot, &error);
	LockRelease(&turn, ExclusiveLock, false);
	if (!is_asker)
		euno_sleep("EunoBuild", 1000);
	if (!is_done)
		report_failure(index, error);
}

/* From here on, what would be for a client goes to the session. */
static void
send_messages_to(dsm_handle handle)
{
	dsm_segment *segment = dsm_attach(handle);
	shm_mq	   *queue;

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the session that requested the build of a euno index has ended")));
	queue = dsm_segment_address(segment);
	shm_mq_set_sender(queue, MyProc);
	pq_redirect_to_shm_mq(segment, shm_mq_attach(queue, segment, NULL));
}

/* What goes wrong is counted, as what the launcher's workers build is. */
static void
build(Relation index)
{
	EunoIndex  *idx = euno_index_open(index);
	MemoryContext context = CurrentMemoryContext;

	euno_worker_report_build(index);
	PG_TRY();
	{
		euno_index_build_if_idle(idx, index);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		LWLockReleaseAll();		/* the error may have come while some were held */
		if (error->sqlerrcode != ERRCODE_QUERY_CANCELED &&
			error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			euno_worker_stats_error(error->message);
		PG_RE_THROW();
	}
	PG_END_TRY();
	pg_atomic_fetch_add_u32(&euno_index_slot(idx)->worker_turns, 1);
}

void
euno_build_main(Datum database)
{
	Order		order;
	Relation	heap;
	Relation	index;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(Order));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (order.queue != DSM_HANDLE_INVALID)
		send_messages_to(order.queue);
	euno_worker_connect(DatumGetObjectId(database), DeadlockTimeout);
	SetClientEncoding(GetDatabaseEncoding());
	StartTransactionCommand();
	index = euno_open_unless_locked(order.index_oid, &heap);
	if (index != NULL)
	{
		build(index);
		relation_close(index, NoLock);
		relation_close(heap, NoLock);
	}
	CommitTransactionCommand();
}
