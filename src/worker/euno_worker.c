/*-------------------------------------------------------------------------
 *
 * euno_worker.c
 *	  Rebuilds all trees after a server start or promotion, and later those that
 *	  are absent and wanted; collects trees whose relation or database is gone.
 *
 * The launcher is attached to no database, so that it never stands in the way
 * of DROP DATABASE.  For each database it starts a short-lived worker that
 * builds the absent trees there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/euno_am.h"
#include "euno_compat.h"
#include "worker/euno_worker.h"

/* Every so many rounds all databases with trees are visited. */
#define COLLECT_ROUNDS 60

static int	naptime;
static bool auto_rebuild;

void
euno_worker_define_settings(void)
{
	DefineCustomIntVariable("euno.naptime",
							"Sets how long the euno launcher sleeps between rounds.",
							NULL,
							&naptime,
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
							 &auto_rebuild,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
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

static void
rebuild_database(Oid database)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	fill_worker(&worker, "euno rebuild", "euno_rebuild_main");
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		ereport(LOG,
				(errmsg("could not start a worker to rebuild euno indexes in database %u",
						database),
				 errdetail("They will be built when they are first needed."),
				 errhint("Consider increasing \"max_worker_processes\".")));
		return;
	}
	if (WaitForBackgroundWorkerStartup(handle, &pid) == BGWH_STARTED)
		(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
}

/*
 * Trees of databases that are gone.  The trees are noted before the databases
 * are listed: a database whose tree we have seen is listed, or dropped.
 */
static void
collect_dropped_databases(void)
{
	List	   *keys = NIL;
	List	   *databases;
	ListCell   *lc;
	int			freed = 0;

	euno_tree_sweep();
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) && tree.state != EUNO_STATE_RETIRING)
		{
			EunoTreeKey *key = palloc(sizeof(EunoTreeKey));

			*key = tree.key;
			keys = lappend(keys, key);
		}
	}

	databases = list_databases(false);
	foreach(lc, keys)
	{
		EunoTreeKey *key = lfirst(lc);

		if (!list_member_oid(databases, key->database))
		{
			euno_tree_drop(key);
			freed++;
		}
	}
	if (freed > 0)
		ereport(LOG, (errmsg("collected %d euno indexes of dropped databases", freed)));
	list_free(databases);
	list_free_deep(keys);
}

/*
 * Send workers to the databases that want a tree, or to all that have trees, so
 * that those whose relation is gone are collected.
 */
static void
visit_databases(bool all)
{
	List	   *databases = NIL;
	ListCell   *lc;

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) &&
			(all || (auto_rebuild && tree.wanted &&
					 tree.state == EUNO_STATE_ABSENT)))
			databases = list_append_unique_oid(databases, tree.key.database);
	}
	foreach(lc, databases)
	{
		CHECK_FOR_INTERRUPTS();
		rebuild_database(lfirst_oid(lc));
	}
	list_free(databases);
}

void
euno_launcher_main(Datum arg)
{
	MemoryContext context;
	uint32		round = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	context = AllocSetContextCreate(TopMemoryContext, "euno launcher",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	ereport(LOG, (errmsg("euno launcher started")));

	if (auto_rebuild)
	{
		ListCell   *lc;
		List	   *databases = list_databases(true);

		foreach(lc, databases)
		{
			CHECK_FOR_INTERRUPTS();
			rebuild_database(lfirst_oid(lc));
		}
	}

	for (;;)
	{
		MemoryContextSwitchTo(context);
		MemoryContextReset(context);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 naptime * 1000L, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (euno_tree_count() > 0)
		{
			(void) euno_maintain_trees();
			collect_dropped_databases();
			visit_databases(++round % COLLECT_ROUNDS == 0);
		}
	}
}

/* All permanent and unlogged euno indexes of this database. */
static List *
list_indexes(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *indexes = NIL;
	Oid			am;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	am = get_index_am_oid("euno", true);
	if (OidIsValid(am))
	{
		rel = table_open(RelationRelationId, AccessShareLock);
		scan = table_beginscan_catalog(rel, 0, NULL);
		while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		{
			Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

			if (form->relkind == RELKIND_INDEX && form->relam == am &&
				form->relpersistence != RELPERSISTENCE_TEMP)
			{
				MemoryContext old = MemoryContextSwitchTo(context);

				indexes = lappend_oid(indexes, form->oid);
				MemoryContextSwitchTo(old);
			}
		}
		table_endscan(scan);
		table_close(rel, AccessShareLock);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return indexes;
}

static void
rebuild_index(Oid index_oid)
{
	Oid			heap_oid;
	Relation	heap;
	Relation	index;

	StartTransactionCommand();

	/* The table first, as everybody does; either may be gone. */
	heap_oid = IndexGetRelation(index_oid, true);
	heap = OidIsValid(heap_oid) ? try_relation_open(heap_oid, AccessShareLock) : NULL;
	index = heap ? try_relation_open(index_oid, AccessShareLock) : NULL;
	if (index != NULL && index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_index->indisready)
	{
		EunoIndex  *idx = euno_index_open(index);
		EunoContext *cx;
		EunoState	state = euno_index_pin(idx, &cx);

		euno_index_unpin(idx);
		if (state != EUNO_STATE_READY && auto_rebuild &&
			!(idx->slot != NULL && idx->slot->evicted))
		{
			pgstat_report_activity(STATE_RUNNING, RelationGetRelationName(index));
			euno_index_ensure_ready(idx, index);
		}
	}
	if (index != NULL)
		relation_close(index, NoLock);
	if (heap != NULL)
		relation_close(heap, NoLock);
	CommitTransactionCommand();
}

/*
 * One index that cannot be built must not stop the others.
 */
static void
try_rebuild_index(Oid index_oid, MemoryContext context)
{
	PG_TRY();
	{
		rebuild_index(index_oid);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

void
euno_rebuild_main(Datum database)
{
	MemoryContext context;
	List	   *indexes;
	ListCell   *lc;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database),
											  InvalidOid, 0);
	context = AllocSetContextCreate(TopMemoryContext, "euno rebuild",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	indexes = list_indexes();
	foreach(lc, indexes)
	{
		CHECK_FOR_INTERRUPTS();
		try_rebuild_index(lfirst_oid(lc), context);
	}

	StartTransactionCommand();
	(void) euno_gc_database();
	CommitTransactionCommand();
}
