/*-------------------------------------------------------------------------
 *
 * euno_launcher.c
 *	  The background process that is always there: sends workers to databases
 *	  where trees are absent, sees to it that they are in nobody's way, and
 *	  collects the trees of databases that are gone.
 *
 * It is attached to no database, so that it never stands in the way of DROP
 * DATABASE.  Its workers (euno_worker.c) live for one round through a
 * database's indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/euno_am.h"
#include "euno_compat.h"
#include "worker/euno_worker.h"

/* Every so many rounds all databases with trees are visited. */
#define COLLECT_ROUNDS 60

/* How often the locks that workers hold are looked at, in milliseconds. */
#define WATCH_INTERVAL 200

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
	TimestampTz blocking_since; /* 0: is in nobody's way */
	bool		sent_away;		/* by us; to come back later */
} Worker;

int			euno_naptime;
bool		euno_auto_rebuild;

/* All in TopMemoryContext. */
static List *errands = NIL;
static List *workers = NIL;
static List *unfinished = NIL;	/* databases whose worker was sent away */

/* No process could be had; do not ask again until one has ended. */
static bool no_process = false;

void
euno_worker_define_settings(void)
{
	DefineCustomIntVariable("euno.naptime",
							"Sets how long the euno launcher sleeps between rounds.",
							NULL,
							&euno_naptime,
							10, 1, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("euno.rebuild_workers",
							"Sets how many processes may rebuild euno indexes at the same time.",
							"Each is a background worker, of which there are \"max_worker_processes\".",
							&euno_rebuild_workers,
							2, 1, MAX_PARALLEL_WORKER_LIMIT,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("euno.auto_rebuild",
							 "Rebuilds absent euno indexes in the background.",
							 "All of them after a server start; later, those that a query could have used.",
							 &euno_auto_rebuild,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	euno_actions_define_settings();
	euno_maintain_define_settings();
}

static void
fill_worker(BackgroundWorker *worker, const char *name, const char *function)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	snprintf(worker->bgw_library_name, BGW_MAXLEN, "euno_index");
	snprintf(worker->bgw_function_name, BGW_MAXLEN, "%s", function);
	snprintf(worker->bgw_name, BGW_MAXLEN, "%s", name);
	snprintf(worker->bgw_type, BGW_MAXLEN, "%s", name);
}

void
euno_worker_register(void)
{
	BackgroundWorker worker;

	/* pg_upgrade drops and copies databases: nobody else may be connected. */
	if (IsBinaryUpgrade)
		return;

	fill_worker(&worker, "euno launcher", "euno_launcher_main");
	worker.bgw_restart_time = 5;
	RegisterBackgroundWorker(&worker);
}

/* OIDs of all databases that can be connected to, in CurrentMemoryContext. */
static List *
list_databases(bool connectable_only)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *databases = NIL;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		if (form->datallowconn || !connectable_only)
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			databases = lappend_oid(databases, form->oid);
			MemoryContextSwitchTo(old);
		}
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return databases;
}

/*
 * Trees of databases that are gone.  The trees are noted before the databases
 * are listed: a database whose tree we have seen is listed, or dropped.
 */
static void
collect_dropped_databases(void)
{
	List	   *trees = NIL;
	List	   *databases;
	ListCell   *lc;
	int			freed = 0;

	euno_tree_sweep();
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) && tree.state != EUNO_STATE_RETIRING)
		{
			EunoTreeDescription *copy = palloc(sizeof(EunoTreeDescription));

			*copy = tree;
			trees = lappend(trees, copy);
		}
	}

	databases = list_databases(false);
	foreach(lc, trees)
	{
		EunoTreeDescription *tree = lfirst(lc);

		if (!list_member_oid(databases, tree->key.database))
		{
			euno_tree_drop_described(tree);
			freed++;
		}
	}
	euno_worker_round.actions[EUNO_WORKER_COLLECT] += freed;
	if (freed > 0)
		ereport(LOG, (errmsg("collected %d euno indexes of dropped databases", freed)));
	list_free(databases);
	list_free_deep(trees);
}

/*
 * Plan to send a worker to a database.
 */
static void
add_errand(Oid database, bool survey)
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
 * Plan errands to the databases that want trees: at most a worker for each tree,
 * and every database gets its first before any gets its second.
 */
static void
visit_wanting_databases(void)
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
				add_errand(database, false);
		}
	}
	list_free(databases);
}

/* The same for all databases that have trees, so that they are collected. */
static void
visit_all_databases(void)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) && workers_in(tree.key.database) == 0)
			add_errand(tree.key.database, false);
	}
}

/* Forget workers that have ended. */
static void
reap_workers(void)
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

	fill_worker(&request, "euno rebuild", "euno_rebuild_main");
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

/*
 * Start as many workers as may be.  Errands for which there is no process now
 * wait for the next one that ends, or the next round.
 */
static void
start_workers(void)
{
	while (errands != NIL && !no_process &&
		   list_length(workers) < euno_rebuild_workers)
	{
		Errand	   *errand = linitial(errands);

		if (!start_worker(errand))
		{
			ereport(LOG,
					(errmsg("could not start a worker to rebuild euno indexes in database %u",
							errand->database),
					 errdetail("It is tried again; until then, indexes are built when they are first needed."),
					 errhint("Consider increasing \"max_worker_processes\".")));
			no_process = true;
			break;
		}
		pfree(errand);
		errands = list_delete_first(errands);
	}
}

/*
 * Would a session that asks for this lock have to wait?  Not for our worker, who
 * holds no stronger one: then somebody waits for the worker already.
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
 * Rebuilding is a favor.  End workers whose database somebody wants to drop, to
 * rename or to copy: that waits for 5 seconds only, and not by a lock, until all
 * sessions there have ended.  Interrupt those for whose locks somebody has
 * waited for as long as autovacuum may make one wait: deadlock_timeout.
 */
static void
watch_workers(void)
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
			worker->blocking_since = GetCurrentTimestamp();
		else if (TimestampDifferenceExceeds(worker->blocking_since,
											GetCurrentTimestamp(),
											DeadlockTimeout))
		{
			kill(pid, SIGINT);
			worker->blocking_since = 0;
		}
	}
}

/* Workers that were sent away come back, if the database is still there. */
static void
visit_unfinished_databases(void)
{
	List	   *databases;
	ListCell   *lc;

	if (unfinished == NIL)
		return;
	databases = list_databases(true);
	foreach(lc, unfinished)
	{
		if (list_member_oid(databases, lfirst_oid(lc)))
			add_errand(lfirst_oid(lc), true);
	}
	list_free(databases);
	list_free(unfinished);
	unfinished = NIL;
}

/*
 * Takes one step of a round.  An error is logged, and nothing that the step
 * held is left behind; the other steps are taken all the same.
 */
static void
take_step(void (*step) (void))
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		step();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		AbortOutOfAnyTransaction();
		LWLockReleaseAll();
		pgstat_report_wait_end();
		euno_actions_abandon();
		MemoryContextSwitchTo(context);
		euno_worker_stats_error(error->message);
		FreeErrorData(error);
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
}

/* What is done every naptime. */
static void
go_round(void)
{
	static uint32 round = 0;
	TimestampTz start = GetCurrentTimestamp();

	no_process = false;
	memset(&euno_worker_round, 0, sizeof(euno_worker_round));
	if (euno_tree_count() > 0)
	{
		take_step(visit_unfinished_databases);
		take_step(euno_maintain_trees);
		take_step(euno_take_actions);
		take_step(collect_dropped_databases);
		take_step(visit_wanting_databases);
		if (++round % COLLECT_ROUNDS == 0)
			take_step(visit_all_databases);
	}
	euno_worker_round.last_round = start;
	euno_worker_round.last_round_us = GetCurrentTimestamp() - start;
	euno_worker_stats_add(&euno_worker_round);
}

/* At first, and when rebuilding is turned on. */
static void
survey_databases(void)
{
	static bool surveyed = false;
	List	   *databases;
	ListCell   *lc;

	if (euno_auto_rebuild && !surveyed)
	{
		databases = list_databases(true);
		foreach(lc, databases)
			add_errand(lfirst_oid(lc), true);
		list_free(databases);
	}
	surveyed = euno_auto_rebuild;
}

/* How long to sleep, in milliseconds. */
static long
sleep_time(TimestampTz last_round)
{
	TimestampTz now = GetCurrentTimestamp();
	long		rest = TimestampDifferenceMilliseconds(now,
													   last_round + euno_naptime * INT64CONST(1000000));

	return workers == NIL ? rest : Min(rest, WATCH_INTERVAL);
}

void
euno_launcher_main(Datum arg)
{
	MemoryContext context;
	TimestampTz last_round;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	euno_tree_set_launcher();
	euno_worker_stats_start();
	context = AllocSetContextCreate(TopMemoryContext, "euno launcher",
									ALLOCSET_DEFAULT_SIZES);
	ereport(LOG, (errmsg("euno launcher started")));

	last_round = GetCurrentTimestamp();
	for (;;)
	{
		MemoryContextSwitchTo(context);
		MemoryContextReset(context);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		reap_workers();
		watch_workers();
		survey_databases();
		if (euno_tree_launcher_called())
			visit_wanting_databases();
		if (TimestampDifferenceExceeds(last_round, GetCurrentTimestamp(),
									   euno_naptime * 1000))
		{
			go_round();
			last_round = GetCurrentTimestamp();
		}
		start_workers();

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 sleep_time(last_round), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
