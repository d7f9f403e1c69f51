/*-------------------------------------------------------------------------
 *
 * euno_funcs.c
 *	  SQL functions: sizes, statistics, eviction and rebuild by hand.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* NULL: there is no such relation, perhaps any more. */
static Relation
open_index_if_there(Oid oid, LOCKMODE lockmode)
{
	Relation	index = NULL;
	char		relkind = get_rel_relkind(oid);

	if (relkind == RELKIND_INDEX)
		index = try_relation_open(oid, lockmode);
	else if (relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", get_rel_name(oid)),
				 errhint("Name the index of a partition.")));
	else if (relkind != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a euno index", get_rel_name(oid)),
				 errdetail_relkind_not_supported(relkind)));

	if (index == NULL)
		return NULL;
	if (index->rd_indam->ambuild != eunobuild)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not a euno index",
						RelationGetRelationName(index))));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	return index;
}

Relation
euno_open_index_by_oid(Oid oid, LOCKMODE lockmode)
{
	Relation	index = open_index_if_there(oid, lockmode);

	if (index == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", oid)));
	return index;
}

/* NULL if it was dropped just now, as pg_relation_size has it. */
PG_FUNCTION_INFO_V1(euno_index_size);
Datum
euno_index_size(PG_FUNCTION_ARGS)
{
	Relation	index = open_index_if_there(PG_GETARG_OID(0), AccessShareLock);
	EunoTreeSlot *slot = NULL;
	uint64		bytes = 0;

	if (index == NULL)
		PG_RETURN_NULL();
	if (euno_preloaded)
		slot = euno_tree_lookup(&euno_index_open(index)->key);
	if (slot)
		bytes = euno_tree_bytes(slot);
	index_close(index, AccessShareLock);
	PG_RETURN_INT64((int64) bytes);
}

/*
 * Give a tree's memory back.  The index stays, absent, until somebody asks for
 * it or cannot go on without.
 */
PG_FUNCTION_INFO_V1(euno_evict);
Datum
euno_evict(PG_FUNCTION_ARGS)
{
	Relation	index = euno_open_index_by_oid(PG_GETARG_OID(0), AccessShareLock);
	EunoIndex  *idx;
	EunoTreeSlot *slot;
	uint64		generation = 0;
	int			waited = 0;

	euno_require_serving(index);
	idx = euno_index_open(index);

	/* Not while it is being built, or VACUUM walks it. */
	euno_build_lock(idx->oid, ExclusiveLock);
	slot = euno_tree_lookup(&idx->key);
	if (slot)
	{
		EunoState	state = euno_tree_state(slot);

		if (state != EUNO_STATE_ABSENT && state != EUNO_STATE_READY)
			euno_refuse_own_build(slot, index);
		generation = pg_atomic_read_u64(&slot->generation);
		(void) euno_tree_retire(slot, generation);
		slot->evicted = true;
	}
	euno_build_unlock(idx->oid, ExclusiveLock);
	euno_invalidate_plans(MyDatabaseId, index->rd_index->indrelid);

	/*
	 * Who has a last look at the tree may want the lock.  A comparator's
	 * statement, or that of a function which a check calls, has one itself.
	 */
	while (slot && !euno_index_has_look(slot) &&
		   !euno_tree_retire(slot, generation))
		euno_wait_for_look(slot, &waited);
	index_close(index, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * Build a tree now if it is absent.
 */
PG_FUNCTION_INFO_V1(euno_rebuild);
Datum
euno_rebuild(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	Oid			heap_oid = IndexGetRelation(oid, true);
	Relation	index;
	EunoIndex  *idx;
	EunoContext *cx;

	/* The table first, as everybody does. */
	if (OidIsValid(heap_oid))
		LockRelationOid(heap_oid, AccessShareLock);
	index = euno_open_index_by_oid(oid, AccessShareLock);
	euno_require_serving(index);
	idx = euno_index_open(index);
	euno_index_pin_ready(idx, index, &cx);
	euno_index_unpin(idx);
	index_close(index, AccessShareLock);
	PG_RETURN_VOID();
}

#define INDEX_COLUMNS 32

/*
 * What euno_stat_get_indexes says of a tree.  What its structure does not have
 * is null.  The slot may be given to another index meanwhile.
 */
static void
describe_tree(EunoTreeSlot *slot, EunoState state, const EunoTreeStats *stats,
			  Datum *values, bool *nulls)
{
	const EunoTreeOps *ops = slot->ops;
	bool		ready = state == EUNO_STATE_READY;
	bool		radix = ops && !ops->leaf_chain;
	int			n = 0;

	values[n++] = ObjectIdGetDatum(slot->key.space);
	values[n++] = ObjectIdGetDatum(slot->key.number);
	values[n++] = BoolGetDatum(slot->key.temp_owner >= 0);
	values[n++] = CStringGetTextDatum(euno_state_name(state));
	nulls[n] = nulls[n + 1] = true;
	if (state == EUNO_STATE_ABSENT)
	{
		TimestampTz retry_at;

		nulls[n] = false;
		values[n] = CStringGetTextDatum(euno_absent_reason(slot, &retry_at));
		nulls[n + 1] = retry_at == 0;
		values[n + 1] = TimestampTzGetDatum(retry_at);
	}
	n += 2;
	nulls[n] = ops == NULL;
	values[n++] = CStringGetTextDatum(ops ? ops->name : "");
	nulls[n] = nulls[n + 2] = nulls[n + 3] = nulls[n + 4] = nulls[n + 5] =
		!ready;
	values[n++] = Int64GetDatum(stats->entries);
	values[n++] = Int64GetDatum(euno_tree_bytes(slot));
	values[n++] = Int32GetDatum(stats->height);
	values[n++] = Int64GetDatum(stats->leaves);
	values[n++] = Int64GetDatum(stats->splits);
	values[n++] = Int64GetDatum(stats->merges);
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_DESCENTS));
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_INSERTS));
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_REMOVALS));
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_RESTARTS));
	nulls[n] = radix;
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_RIGHT_MOVES));
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_LOCK_WAITS));
	for (int i = 0; i < EUNO_CAUSES; i++)
	{
		nulls[n] = radix && i == EUNO_CAUSE_DIRECTORY;
		values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_CONFLICTS + i));
	}
	nulls[n] = !ready || radix;
	nulls[n + 1] = nulls[n + 2] = radix;
	values[n++] = Int64GetDatum(stats->contended);
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_CONTENDED));
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_ANNEX_SKIPS));
	nulls[n] = !ready;
	values[n++] = Int32GetDatum(stats->domains == 0 ? 0 :
								pg_popcount64(stats->domains) - 1);
	nulls[n] = !ready || ops == NULL || ops->steer == NULL;
	values[n++] = Int64GetDatum(stats->parted);
	values[n++] = Int64GetDatum(euno_tree_counted(slot, EUNO_COUNT_DELEGATED));
	values[n++] = TimestampTzGetDatum(slot->stats_since);
	Assert(n == INDEX_COLUMNS);
}

/* One row a tree of this database; temporary ones only if they are ours. */
PG_FUNCTION_INFO_V1(euno_stat_get_indexes);
Datum
euno_stat_get_indexes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (!euno_preloaded)
		return (Datum) 0;

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);
		EunoContext cx = {.process = euno_process(), .env = &euno_environment};
		EunoTreeStats stats = {0};
		EunoState	state;
		Datum		values[INDEX_COLUMNS];
		bool		nulls[INDEX_COLUMNS] = {0};

		if (slot->key.database != MyDatabaseId ||
			(slot->key.temp_owner >= 0 &&
			 slot->key.temp_owner != euno_my_proc_number()))
			continue;
		euno_epoch_enter(cx.process);
		state = euno_tree_state(slot);
		if (state == EUNO_STATE_READY)
			slot->ops->stats(&cx, &slot->tree, &stats);
		euno_epoch_exit(cx.process);
		if (state == EUNO_STATE_FREE)
			continue;
		describe_tree(slot, state, &stats, values, nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* Sets the counters of all trees of this database to zero. */
PG_FUNCTION_INFO_V1(euno_stat_reset);
Datum
euno_stat_reset(PG_FUNCTION_ARGS)
{
	if (!euno_preloaded)
		PG_RETURN_VOID();
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (euno_tree_state(slot) != EUNO_STATE_FREE &&
			slot->key.database == MyDatabaseId)
			euno_tree_reset_counters(slot);
	}
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(euno_stat_get_memory);
Datum
euno_stat_get_memory(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[6];
	bool		nulls[6] = {0};
	EunoArenaUsage usage = {0};
	uint64		idle = 0;
	int			indexes = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (euno_preloaded)
	{
		usage = euno_arena_usage(euno_registry_arena());
		idle = euno_arena_idle(euno_registry_arena());
		for (int i = 0; i < euno_tree_count(); i++)
			if (euno_tree_state(euno_tree_by_number(i)) != EUNO_STATE_FREE)
				indexes++;
	}
	values[0] = Int64GetDatum(usage.reserved);
	values[1] = Int64GetDatum(usage.used);
	values[2] = Int64GetDatum(usage.peak);
	values[3] = Int64GetDatum(idle);
	values[4] = Int32GetDatum(indexes);
	values[5] = Int32GetDatum(euno_max_indexes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
