/*-------------------------------------------------------------------------
 *
 * euno_rebuild.c
 *	  Building an absent tree from the table, while others read and write it.
 *
 * As CREATE INDEX does it, but for the scan (euno_heapscan.c) and for the
 * locks on table and index, which keep nobody from anything but DDL.  (A table
 * of another access method than heap cannot be read by our scan: it is locked
 * against writers.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "commands/dbcommands.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/euno_build.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

int			euno_rebuild_workers = 2;

void
euno_become_owner(Relation heap, EunoOwner *owner)
{
	GetUserIdAndSecContext(&owner->save_userid, &owner->save_sec_context);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   owner->save_sec_context | SECURITY_RESTRICTED_OPERATION);
	owner->save_nestlevel = NewGUCNestLevel();
	euno_restrict_search_path();
}

void
euno_restore_user(EunoOwner *owner)
{
	AtEOXact_GUC(false, owner->save_nestlevel);
	SetUserIdAndSecContext(owner->save_userid, owner->save_sec_context);
}

/*
 * Show ourselves in pg_stat_progress_create_index.  False if this backend is
 * in the middle of a command that shows itself already.
 */
static bool
start_progress(Relation heap, Relation index)
{
	const int	params[] = {PROGRESS_CREATEIDX_COMMAND,
		PROGRESS_CREATEIDX_INDEX_OID, PROGRESS_CREATEIDX_ACCESS_METHOD_OID,
	PROGRESS_CREATEIDX_PHASE, PROGRESS_CREATEIDX_SUBPHASE};
	const int64 values[] = {PROGRESS_CREATEIDX_COMMAND_REINDEX,
		RelationGetRelid(index), index->rd_rel->relam,
	PROGRESS_CREATEIDX_PHASE_BUILD, EUNO_PHASE_SCAN};

	if (MyBEEntry == NULL ||
		MyBEEntry->st_progress_command != PROGRESS_COMMAND_INVALID)
		return false;
	pgstat_progress_start_command(PROGRESS_COMMAND_CREATE_INDEX,
								  RelationGetRelid(heap));
	pgstat_progress_update_multi_param(lengthof(params), params, values);
	return true;
}

/*
 * How many workers a rebuild may have: as many as a REINDEX, if all rebuilds
 * together stay within euno.rebuild_workers processes.
 */
static int
plan_workers(Relation heap, Relation index, IndexInfo *index_info)
{
	int			spare = Min(euno_rebuild_workers - euno_tree_builders(),
							max_parallel_maintenance_workers);
	char		value[16];

	if (spare <= 0 || IsInParallelMode() ||
		heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		return 0;

	/* Until euno_restore_user. */
	snprintf(value, sizeof(value), "%d", spare);
	(void) set_config_option("max_parallel_maintenance_workers", value,
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	return euno_parallel_workers(heap, index, index_info);
}

/*
 * Read the table and sort its entries, with workers if it is large; *parallel
 * is set if they are to be ended after the sort.  If they could not be started
 * the last time, for want of dynamic shared memory, once without.
 */
static EunoSort *
sort_table(EunoIndex *idx, Relation heap, Relation index, EunoTreeSlot *slot,
		   EunoParallelBuild **parallel)
{
	IndexInfo  *index_info = BuildIndexInfo(index);
	int			nworkers = plan_workers(heap, index, index_info);
	bool		try_workers = nworkers > 0 && !slot->workers_failed;
	EunoSort   *sort = NULL;
	double		heap_tuples;

	*parallel = NULL;
	slot->workers_failed = try_workers; /* until they have started */
	if (try_workers)
	{
		slot->builders = nworkers + 1;
		*parallel = euno_parallel_begin(heap, index, index_info, nworkers, true);
		slot->workers_failed = false;
		if (*parallel != NULL)
			sort = euno_parallel_scan(*parallel, heap, index, index_info,
									  idx->schema, &heap_tuples);
		slot->builders = 1;
	}
	if (*parallel == NULL)
	{
		sort = euno_sort_begin(heap, idx->schema, maintenance_work_mem,
							   NULL);
		if (heap->rd_rel->relam == HEAP_TABLE_AM_OID)
			(void) euno_heap_scan(heap, index_info, NULL, NULL, true,
								  euno_sort_add_root, sort);
		else
			(void) table_index_build_scan(heap, index, index_info, false, true,
										  euno_sort_add_tuple, sort, NULL);
	}
	return sort;
}

/*
 * Read the table into the tree that we have started to build.  Returns how
 * many entries were read.
 *
 * The snapshot keeps what is read from being vacuumed; it is not that of a
 * consistent state.
 */
static int64
fill_from_table(EunoIndex *idx, Relation heap, Relation index,
				EunoTreeSlot *slot)
{
	EunoParallelBuild *parallel;
	Snapshot	snapshot;
	EunoSort   *sort;
	int64		loaded;

	/* In a parallel query no new one may be taken; any keeps the horizon. */
	snapshot = RegisterSnapshot(IsInParallelMode() ? GetActiveSnapshot() :
								GetLatestSnapshot());
	PushActiveSnapshot(snapshot);	/* for detoasting and expressions */
	sort = sort_table(idx, heap, index, slot, &parallel);

	/* Comparators may want a snapshot too; else the horizon need not wait. */
	if (idx->order == EUNO_ORDER_BYTES)
	{
		PopActiveSnapshot();
		UnregisterSnapshot(snapshot);
	}
	loaded = euno_load_sort(idx, index, slot, sort, parallel);
	euno_load_finish(idx, index, slot);
	if (idx->order != EUNO_ORDER_BYTES)
	{
		PopActiveSnapshot();
		UnregisterSnapshot(snapshot);
	}
	return loaded;
}

/* Says whose build an error stopped. */
static void
add_name(void *name)
{
	errcontext("while building euno index %s", (char *) name);
}

void
euno_rebuild_tree(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	TimestampTz start = GetCurrentTimestamp();
	Relation	heap;
	EunoOwner	owner;
	EunoStatus	status;
	int64		loaded;
	bool		reporting;
	ErrorContextCallback named = {.previous = error_context_stack,.callback = add_name};

	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	named.arg = psprintf("\"%s\" of table \"%s.%s.%s\"",
						 RelationGetRelationName(index),
						 get_database_name(MyDatabaseId),
						 get_namespace_name(RelationGetNamespace(heap)),
						 RelationGetRelationName(heap));
	error_context_stack = &named;
	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		LockRelation(heap, ShareLock);

	euno_become_owner(heap, &owner);
	do
		status = euno_tree_create(idx, slot, index);
	while (status == EUNO_NO_MEMORY &&
		   euno_full_make_room(idx, slot->must_stay));
	if (status != EUNO_OK && status != EUNO_EXISTS)
		euno_index_error(idx, index, status);
	if (status == EUNO_OK)
	{
		reporting = start_progress(heap, index);
		loaded = fill_from_table(idx, heap, index, slot);
		euno_invalidate_plans(MyDatabaseId, RelationGetRelid(heap));
		if (reporting)
			pgstat_progress_end_command();
		ereport(LOG_SERVER_ONLY,
				(errmsg("euno index %s rebuilt: %lld rows, %lld bytes, %.3f s",
						(char *) named.arg, (long long) loaded,
						(long long) euno_tree_bytes(slot),
						TimestampDifferenceMilliseconds(start, GetCurrentTimestamp()) / 1000.0),
				 errhidestmt(true), errhidecontext(true)));
	}
	euno_restore_user(&owner);
	error_context_stack = named.previous;
	pfree(named.arg);
	table_close(heap, NoLock);
}
