/*-------------------------------------------------------------------------
 *
 * euno_launcher.c
 *	  The background process that is always there: sends workers to databases
 *	  where trees are absent, sees to it that they are in nobody's way, collects
 *	  the trees of databases that are gone, looks after those that are there
 *	  (euno_actions.c, euno_maintain.c), and makes memory ready (euno_ready.c).
 *
 * It is attached to no database, so that it never stands in the way of DROP
 * DATABASE.  Its workers (euno_worker.c) live for one round through a
 * database's indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_snapshot.h"
#include "worker/euno_errands.h"
#include "worker/euno_worker.h"

/* Every this many rounds all databases with trees are visited. */
#define COLLECT_ROUNDS 60

/* How often the locks that workers hold are looked at, in milliseconds. */
#define WATCH_INTERVAL 200

int			euno_naptime;
bool		euno_auto_rebuild;

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

void
euno_fill_worker(BackgroundWorker *worker, const char *name,
				 const char *function)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	snprintf(worker->bgw_library_name, BGW_MAXLEN, "euno_index");
	snprintf(worker->bgw_function_name, BGW_MAXLEN, "%s", function);
	snprintf(worker->bgw_name, BGW_MAXLEN, "%s", name);
	snprintf(worker->bgw_type, BGW_MAXLEN, "%s", name);
}

/*
 * What a database's settings, or the server's, must not do to a worker: end
 * it, or have its transactions wait for others.  It waits for each lock as
 * many milliseconds as are given, also while it connects; 0: for ever.
 */
void
euno_worker_connect(Oid database, int lock_timeout)
{
	static const char *const settings[][2] = {
		{"statement_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"transaction_timeout", "0"},	/* since 17 */
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"}
	};
	char		value[16];

	for (size_t i = 0; i < lengthof(settings); i++)
	{
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
							PGC_S_OVERRIDE);
	}
	snprintf(value, sizeof(value), "%dms", lock_timeout);
	SetConfigOption("lock_timeout", value, PGC_SUSET, PGC_S_OVERRIDE);
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
}

void
euno_worker_register(void)
{
	BackgroundWorker worker;

	/* pg_upgrade drops and copies databases: nobody else may be connected. */
	if (IsBinaryUpgrade)
		return;

	euno_fill_worker(&worker, "euno launcher", "euno_launcher_main");
	worker.bgw_restart_time = 5;
	RegisterBackgroundWorker(&worker);
}

/*
 * OIDs of all databases, or of those that can be connected to, in
 * CurrentMemoryContext.
 */
List *
euno_list_databases(bool connectable_only)
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

		/* -2: DROP DATABASE has failed halfway */
		if ((form->datallowconn && form->datconnlimit != -2) ||
			!connectable_only)
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
		EunoTreeDescription *tree = palloc(sizeof(EunoTreeDescription));

		if (euno_tree_describe(i, tree) && tree->state != EUNO_STATE_RETIRING)
			trees = lappend(trees, tree);
		else
			pfree(tree);
	}

	databases = euno_list_databases(false);
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
 * Takes one step.  An error is logged, and nothing that the step held is left
 * behind; the other steps are taken all the same, a second later, so that the
 * log is not flooded.
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
		pg_usleep(1000000);
	}
	PG_END_TRY();
}

/* What is done every naptime. */
static void
go_round(void)
{
	static uint32 round = 0;
	TimestampTz start = GetCurrentTimestamp();

	euno_workers_try_again();
	memset(&euno_worker_round, 0, sizeof(euno_worker_round));
	if (euno_tree_count() > 0)
	{
		take_step(euno_errands_to_unfinished);
		take_step(euno_maintain_trees);
		take_step(euno_take_actions);
		take_step(collect_dropped_databases);
		take_step(euno_errands_to_wanting);
		if (++round % COLLECT_ROUNDS == 0)
			take_step(euno_errands_to_all);
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
		databases = euno_list_databases(true);
		foreach(lc, databases)
			euno_errand_add(lfirst_oid(lc), true);
		list_free(databases);
	}
	surveyed = euno_auto_rebuild;
}

/* How long to sleep, in milliseconds. */
static long
sleep_time(int64 last_round)
{
	long		rest = Max(0, last_round + euno_naptime * INT64CONST(1000) -
						   euno_clock_ms());

	return euno_workers_any() ? Min(rest, WATCH_INTERVAL) : rest;
}

/* Not every time that memory is made ready: locks are taken for a moment. */
static void
watch_workers(void)
{
	static int64 last = 0;
	int64		now = euno_clock_ms();

	if (now - last >= WATCH_INTERVAL / 2)
	{
		euno_workers_watch();
		last = now;
	}
}

void
euno_launcher_main(Datum arg)
{
	static uint32 event = 0;
	MemoryContext context;
	int64		last_round;
	long		rest;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	euno_worker_connect(InvalidOid, 0);
	before_shmem_exit(euno_workers_end, 0);
	euno_tree_set_launcher();
	euno_worker_stats_start();
	euno_snapshot_discard();
	context = AllocSetContextCreate(TopMemoryContext, "euno launcher",
									ALLOCSET_DEFAULT_SIZES);
	ereport(LOG, (errmsg("euno launcher started")));

	last_round = euno_clock_ms();
	for (;;)
	{
		MemoryContextSwitchTo(context);
		MemoryContextReset(context);
		if (ProcDiePending)
			proc_exit(1);		/* as told, and nothing to be interrupted */
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		euno_workers_reap();
		take_step(watch_workers);
		take_step(survey_databases);
		if (euno_tree_launcher_called())
			take_step(euno_errands_to_wanting);
		if (euno_clock_ms() - last_round >= euno_naptime * INT64CONST(1000))
		{
			go_round();
			last_round = euno_clock_ms();
		}
		take_step(euno_workers_start);
		rest = euno_ready_step();

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(rest, sleep_time(last_round)),
						 euno_wait_event(&event, "EunoLauncherMain"));
		ResetLatch(MyLatch);
	}
}
