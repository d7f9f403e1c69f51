/*-------------------------------------------------------------------------
 *
 * euno_worker.c
 *	  A worker in one database: builds the absent trees that are wanted, the most
 *	  valuable first, and collects those whose relation is gone.
 *
 * Several may go through the same database: each takes what no other has
 * begun.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/euno_state.h"
#include "euno_compat.h"
#include "worker/euno_errands.h"
#include "worker/euno_worker.h"

/* An index, and what it is worth to have it soon. */
typedef struct Candidate
{
	Oid			oid;
	bool		needed;			/* by inserts: unique, or of an exclusion
								 * constraint */
	int64		scans;			/* since the statistics were reset */
} Candidate;

static int
compare_candidates(const ListCell *a, const ListCell *b)
{
	const Candidate *x = lfirst(a);
	const Candidate *y = lfirst(b);

	if (x->needed != y->needed)
		return x->needed ? -1 : 1;
	if (x->scans != y->scans)
		return x->scans > y->scans ? -1 : 1;
	return x->oid < y->oid ? -1 : 1;
}

static Candidate *
make_candidate(Oid index_oid)
{
	Candidate  *candidate = palloc0(sizeof(Candidate));
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index_oid));
	PgStat_StatTabEntry *stats = pgstat_fetch_stat_tabentry(index_oid);

	candidate->oid = index_oid;
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);

		candidate->needed = form->indisunique || form->indisexclusion;
		ReleaseSysCache(tuple);
	}
	if (stats != NULL)
		candidate->scans = stats->numscans;
	return candidate;
}

/* All permanent and unlogged euno indexes of this database, by value. */
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

				indexes = lappend(indexes, make_candidate(form->oid));
				MemoryContextSwitchTo(old);
			}
		}
		table_endscan(scan);
		table_close(rel, AccessShareLock);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	list_sort(indexes, compare_candidates);
	return indexes;
}

/*
 * Open an index and, first as everybody does, its table.  NULL if either is
 * gone or locked: who waits for a lock may get in the way of whoever holds it.
 */
Relation
euno_open_unless_locked(Oid index_oid, Relation *heap)
{
	Oid			heap_oid = IndexGetRelation(index_oid, true);
	Relation	index;

	if (!OidIsValid(heap_oid) ||
		!ConditionalLockRelationOid(heap_oid, AccessShareLock))
		return NULL;
	*heap = try_relation_open(heap_oid, NoLock);
	if (*heap == NULL)
		return NULL;
	if (ConditionalLockRelationOid(index_oid, AccessShareLock))
	{
		index = try_relation_open(index_oid, NoLock);
		if (index != NULL && index->rd_rel->relkind == RELKIND_INDEX &&
			index->rd_index->indisready)
			return index;
		if (index != NULL)
			relation_close(index, NoLock);
	}
	relation_close(*heap, NoLock);
	return NULL;
}

/* The slot of an index if its tree is absent, or just going. */
static EunoTreeSlot *
absent_slot(EunoIndex *idx)
{
	EunoTreeSlot *slot = euno_index_slot(idx);
	EunoState	state = euno_tree_state(slot);

	return state == EUNO_STATE_ABSENT || state == EUNO_STATE_RETIRING ?
		slot : NULL;
}

/* After the start of the server: this tree is absent and wanted. */
static void
note_index(Oid index_oid)
{
	Relation	heap;
	Relation	index;
	EunoTreeSlot *slot;

	StartTransactionCommand();
	index = euno_open_unless_locked(index_oid, &heap);
	if (index != NULL)
	{
		slot = absent_slot(euno_index_open(index));
		if (slot != NULL)
			euno_absent_want(slot);
		relation_close(index, NoLock);
		relation_close(heap, NoLock);
	}
	CommitTransactionCommand();
}

/*
 * What euno_rebuild_tree locks out of a table that is no heap, if that need
 * not be waited for.
 */
static bool
may_read(Relation heap)
{
	return heap->rd_rel->relam == HEAP_TABLE_AM_OID ||
		ConditionalLockRelation(heap, ShareLock);
}

void
euno_worker_report_build(Relation index)
{
	char	   *activity = psprintf("rebuild of euno index %s.%s",
									get_namespace_name(RelationGetNamespace(index)),
									RelationGetRelationName(index));

	pgstat_report_activity(STATE_RUNNING, activity);
	pfree(activity);
}

/* Build a tree, if it is absent and wanted and nobody else is at it. */
static void
rebuild_index(Oid index_oid)
{
	Relation	heap;
	Relation	index;

	StartTransactionCommand();
	index = euno_open_unless_locked(index_oid, &heap);
	if (index != NULL)
	{
		EunoIndex  *idx = euno_index_open(index);
		EunoTreeSlot *slot = absent_slot(idx);

		if (slot != NULL && euno_absent_may_try(slot) && may_read(heap))
		{
			euno_worker_report_build(index);
			euno_absent_note_failure(slot); /* until it has succeeded */
			euno_index_build_if_idle(idx, index);
			slot->tried_at = 0;
			pgstat_report_activity(STATE_IDLE, NULL);
		}
		relation_close(index, NoLock);
		relation_close(heap, NoLock);
	}
	CommitTransactionCommand();
}

/*
 * Is the error to be in the log?  If the registry is full, this is so for each
 * index that has no place, and said for the first one.  That is found before a
 * rebuild begins; in one, the same code may mean temp_file_limit.
 */
static bool
is_reported(const ErrorData *error)
{
	static bool full = false;

	if (error->sqlerrcode == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED &&
		error->context == NULL)
	{
		bool		first = !full;

		full = true;
		return first;
	}
	return error->sqlerrcode != ERRCODE_QUERY_CANCELED;
}

/*
 * One index that cannot be built must not stop the others.  If we were
 * interrupted, for somebody who waited for our locks (euno_workers_watch), it
 * is tried again in the next round.
 */
static void
try_index(void (*action) (Oid), Oid index_oid, MemoryContext context)
{
	PG_TRY();
	{
		action(index_oid);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		HOLD_INTERRUPTS();
		error = CopyErrorData();
		if (is_reported(error))
			EmitErrorReport();
		FlushErrorState();

		/* First, for the error may have come while locks were held. */
		AbortCurrentTransaction();
		euno_tree_attempt_ended(MyDatabaseId, index_oid,
								error->sqlerrcode == ERRCODE_QUERY_CANCELED);
		if (error->sqlerrcode != ERRCODE_QUERY_CANCELED)
			euno_worker_stats_error(error->message);
		else
			ereport(LOG,
					(errmsg("rebuild of euno index with OID %u was interrupted", index_oid),
					 errdetail("It is tried again later."),
					 error->context ? errcontext_msg("%s", error->context) : 0));
		FreeErrorData(error);
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

void
euno_rebuild_main(Datum database)
{
	bool		survey = MyBgworkerEntry->bgw_extra[0];
	MemoryContext context;
	List	   *indexes;
	ListCell   *lc;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();
	euno_worker_connect(DatumGetObjectId(database), 0);
	context = AllocSetContextCreate(TopMemoryContext, "euno rebuild",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	indexes = list_indexes();
	if (survey && indexes != NIL)
	{
		foreach(lc, indexes)
			try_index(note_index, ((Candidate *) lfirst(lc))->oid, context);
		euno_tree_call_launcher();
	}
	foreach(lc, indexes)
	{
		QueryCancelPending = false; /* was meant for the one that is done */
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (euno_auto_rebuild)
			try_index(rebuild_index, ((Candidate *) lfirst(lc))->oid, context);
	}

	StartTransactionCommand();
	(void) euno_gc_database();
	CommitTransactionCommand();
}
