/*-------------------------------------------------------------------------
 *
 * euno_errands.c
 *	  The launcher's workers: where they are to go, and that they are in
 *	  nobody's way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/euno_state.h"
#include "worker/euno_errands.h"
#include "worker/euno_worker.h"

/* Somewhere to go. */
typedef struct Errand
{
	Oid			database;
	bool		survey;			/* note all absent trees first */
} Errand;

typedef struct Worker
{
	BackgroundWorkerHandle *handle;
	Oid			database;
	int64		blocking_since; /* by euno_clock_ms; 0: is in nobody's way */
	bool		sent_away;		/* by us; to come back later */
} Worker;

/* All in TopMemoryContext. */
static List *errands = NIL;
static List *workers = NIL;
static List *unfinished = NIL;	/* databases whose worker was sent away */

/* No process could be had; do not ask again until one has ended. */
static bool no_process = false;

/*
 * Plan to send a worker to a database.
 */
void
euno_errand_add(Oid database, bool survey)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Errand	   *errand = palloc(sizeof(Errand));

	errand->database = database;
	errand->survey = survey;
	errands = lappend(errands, errand);
	MemoryContextSwitchTo(old);
}

/* How many workers are in a database, or on their way there. */
static int
workers_in(Oid database)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, workers)
		n += ((Worker *) lfirst(lc))->database == database;
	foreach(lc, errands)
		n += ((Errand *) lfirst(lc))->database == database;
	return n;
}

/*
 * Plan errands to the databases that want trees: at most a worker for each
 * tree, and every database gets its first before any gets its second.
 */
void
euno_errands_to_wanting(void)
{
	List	   *databases = NIL;	/* once for each tree */
	ListCell   *lc;

	for (int i = 0; euno_auto_rebuild && i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) && tree.wanted &&
			tree.state == EUNO_STATE_ABSENT)
			databases = lappend_oid(databases, tree.key.database);
	}
	list_sort(databases, list_oid_cmp);
	for (int share = 1; share <= Min(euno_rebuild_workers, list_length(databases)); share++)
	{
		foreach(lc, databases)
		{
			Oid			database = lfirst_oid(lc);
			int			first = foreach_current_index(lc) - share + 1;

			/* The share-th tree of its database? */
			if (first >= 0 && list_nth_oid(databases, first) == database &&
				(first == 0 || list_nth_oid(databases, first - 1) != database) &&
				workers_in(database) < share)
				euno_errand_add(database, false);
		}
	}
	list_free(databases);
}

/* The same for all databases that have trees, so that they are collected. */
void
euno_errands_to_all(void)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) && workers_in(tree.key.database) == 0)
			euno_errand_add(tree.key.database, false);
	}
}

/* Forget workers that have ended. */
void
euno_workers_reap(void)
{
	ListCell   *lc;

	foreach(lc, workers)
	{
		Worker	   *worker = lfirst(lc);
		pid_t		pid;

		if (GetBackgroundWorkerPid(worker->handle, &pid) == BGWH_STOPPED)
		{
			no_process = false;
			if (worker->sent_away)
			{
				MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

				unfinished = list_append_unique_oid(unfinished, worker->database);
				MemoryContextSwitchTo(old);
			}
			pfree(worker->handle);
			pfree(worker);
			workers = foreach_delete_current(workers, lc);
		}
	}
}

static bool
start_worker(const Errand *errand)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Worker	   *worker = palloc0(sizeof(Worker));
	BackgroundWorker request;
	bool		started;

	euno_fill_worker(&request, "euno rebuild", "euno_rebuild_main");
	request.bgw_restart_time = BGW_NEVER_RESTART;
	request.bgw_main_arg = ObjectIdGetDatum(errand->database);
	request.bgw_extra[0] = errand->survey;
	request.bgw_notify_pid = MyProcPid;
	worker->database = errand->database;
	started = RegisterDynamicBackgroundWorker(&request, &worker->handle);
	if (started)
		workers = lappend(workers, worker);
	else
		pfree(worker);
	MemoryContextSwitchTo(old);
	return started;
}

/* Forget errands to databases that are gone, or let nobody in. */
static void
drop_hopeless(void)
{
	List	   *databases = euno_list_databases(true);
	ListCell   *lc;

	foreach(lc, errands)
	{
		Errand	   *errand = lfirst(lc);

		if (list_member_oid(databases, errand->database))
			continue;
		pfree(errand);
		errands = foreach_delete_current(errands, lc);
	}
	list_free(databases);
}

static void
report_no_process(Oid database)
{
	ereport(LOG,
			(errmsg("could not start a worker to rebuild euno indexes in database with OID %u",
					database),
			 errdetail("It will be tried again, and this is not reported again before it has succeeded; until then, queries do without the absent indexes."),
			 errhint("Consider increasing \"max_worker_processes\".")));
	euno_worker_stats_error("could not start a worker");
}

/*
 * Start as many workers as may be.  Errands for which there is no process now
 * wait for the next one that ends, or the next round.
 */
void
euno_workers_start(void)
{
	static bool is_reported = false;

	if (errands == NIL || no_process ||
		list_length(workers) >= euno_rebuild_workers)
		return;
	drop_hopeless();
	while (errands != NIL && !no_process &&
		   list_length(workers) < euno_rebuild_workers)
	{
		Errand	   *errand = linitial(errands);

		no_process = !start_worker(errand);
		if (no_process)
		{
			if (!is_reported)
				report_no_process(errand->database);
			is_reported = true;
			break;
		}
		is_reported = false;
		pfree(errand);
		errands = list_delete_first(errands);
	}
}

/*
 * Would a session that asks for this lock have to wait?  Not for our worker,
 * none of whose locks conflicts with it; so then for somebody who waits for a
 * stronger one, and the worker is in his way.
 */
static bool
somebody_waits(const LOCKTAG *tag, LOCKMODE mode)
{
	if (LockAcquire(tag, mode, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(tag, mode, true);
	return false;
}

/* Does somebody wait for a lock on the table or index that a worker builds? */
static bool
stands_in_the_way(pid_t pid)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;
		LOCKTAG		heap;
		LOCKTAG		index;

		if (!euno_tree_describe(i, &tree) || tree.builder_pid != pid)
			continue;
		SET_LOCKTAG_RELATION(heap, tree.key.database, tree.heap_oid);
		SET_LOCKTAG_RELATION(index, tree.key.database, tree.index_oid);
		if (somebody_waits(&heap, AccessShareLock) ||
			somebody_waits(&index, AccessShareLock))
			return true;
	}
	return false;
}

/*
 * Rebuilding is a favor.  End workers whose database somebody wants to drop,
 * to rename or to copy: that waits for 5 seconds only, and not by a lock,
 * until all sessions there have ended.  Interrupt those for whose locks
 * somebody has waited for as long as autovacuum may make one wait:
 * deadlock_timeout.
 */
void
euno_workers_watch(void)
{
	ListCell   *lc;

	foreach(lc, workers)
	{
		Worker	   *worker = lfirst(lc);
		LOCKTAG		database;
		pid_t		pid;

		if (GetBackgroundWorkerPid(worker->handle, &pid) != BGWH_STARTED)
			continue;
		SET_LOCKTAG_OBJECT(database, InvalidOid, DatabaseRelationId,
						   worker->database, 0);
		if (somebody_waits(&database, RowExclusiveLock))
		{
			TerminateBackgroundWorker(worker->handle);
			worker->sent_away = true;
		}
		else if (!stands_in_the_way(pid))
			worker->blocking_since = 0;
		else if (worker->blocking_since == 0)
			worker->blocking_since = euno_clock_ms();
		else if (euno_clock_ms() - worker->blocking_since >= DeadlockTimeout)
		{
			kill(pid, SIGINT);
			worker->blocking_since = 0;
		}
	}
}

/*
 * When the launcher ends, its workers do: the next one knows nothing of them,
 * and surveys all databases.
 */
void
euno_workers_end(int code, Datum arg)
{
	ListCell   *lc;

	foreach(lc, workers)
		TerminateBackgroundWorker(((Worker *) lfirst(lc))->handle);
}

/* Workers that were sent away come back. */
void
euno_errands_to_unfinished(void)
{
	ListCell   *lc;

	foreach(lc, unfinished)
		euno_errand_add(lfirst_oid(lc), true);
	list_free(unfinished);
	unfinished = NIL;
}

void
euno_workers_try_again(void)
{
	no_process = false;
}

bool
euno_workers_any(void)
{
	return workers != NIL;
}
