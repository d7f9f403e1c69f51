/*-------------------------------------------------------------------------
 *
 * euno_check.c
 *	  euno_index_check: is the tree sound, and does it agree with the table?
 *
 * Named after amcheck's bt_index_check, and locks as little as that does.  While
 * the tree is looked at its bulk delete waits, so that line pointers to which
 * entries lead stay, and who would evict or build it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "am/euno_build.h"
#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

typedef struct Check
{
	EunoIndex  *idx;
	Relation	index;
	Relation	heap;
	IndexInfo  *index_info;
	Snapshot	snapshot;
	EState	   *estate;
	TupleTableSlot *slot;
	uint8_t    *form_buffer;
	bool		with_heap;
	BlockNumber nblocks;		/* of the heap, when last looked at */
	Tuplesortstate *tids;		/* of all entries */
	uint64		findings;
	char		first[256];		/* the first finding */
} Check;

static void
report(void *arg, const char *what)
{
	Check	   *check = arg;

	if (check->findings++ == 0)
		strlcpy(check->first, what, sizeof(check->first));
}

static void
report_tid(Check *check, const char *what, EunoTid tid)
{
	char		text[256];

	snprintf(text, sizeof(text), "%s: heap tuple (%u,%u)", what,
			 (uint32) (tid >> 16), (uint32) (tid & 0xFFFF));
	report(check, text);
}

/* Every row that our snapshot sees must have its entry. */
static void
check_heap_tuple(void *arg, ItemPointer root, Datum *values, bool *isnull)
{
	Check	   *check = arg;
	EunoIndex  *idx = check->idx;
	EunoEntry	entry;
	EunoContext *cx;
	EunoStatus	status;

	euno_key_form(idx->schema, values, isnull, euno_tid_pack(root),
				  check->form_buffer, &entry);

	/* If it has been evicted meanwhile, we look at the one that comes next. */
	euno_index_pin_ready(idx, check->index, &cx);
	status = idx->slot->ops->contains(cx, &idx->slot->tree, &entry);
	euno_index_unpin(idx);
	if (status == EUNO_CANCELED)
		euno_index_error(idx, check->index, status);
	if (status != EUNO_OK)
		report_tid(check, status == EUNO_CORRUPT ?
				   "the way to a visible row's entry makes no sense" :
				   "a visible row has no entry", entry.tid);
}

/* Does the entry's key equal that of the row it points to? */
static bool
keys_equal(Check *check, const EunoEntry *entry, HeapTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	EunoEntry	heap_entry;
	ExprContext *econtext = GetPerTupleExprContext(check->estate);
	MemoryContext old;
	bool		equal;

	econtext->ecxt_scantuple = check->slot;
	MemoryContextReset(econtext->ecxt_per_tuple_memory);
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	ExecStoreHeapTuple(tuple, check->slot, false);
	FormIndexDatum(check->index_info, check->slot, check->estate, values, isnull);
	euno_key_form(check->idx->schema, values, isnull, entry->tid,
				  check->form_buffer, &heap_entry);
	if (check->idx->order == EUNO_ORDER_BYTES)
		equal = heap_entry.keylen == entry->keylen &&
			memcmp(heap_entry.key, entry->key, entry->keylen) == 0;
	else
	{
		EunoPosition pos = {.key = heap_entry.key, .keylen = heap_entry.keylen};
		uint8_t    *aligned = palloc(entry->keylen + 1);

		memcpy(aligned, entry->key, entry->keylen);
		equal = euno_key_compare(check->idx->schema, &pos, aligned,
								 entry->keylen) == 0;
	}
	ExecClearTuple(check->slot);
	MemoryContextSwitchTo(old);
	return equal;
}

/* An entry must point to a line pointer in use, and to a row of its key. */
static void
check_row(Check *check, const EunoEntry *entry)
{
	BlockNumber block = (BlockNumber) (entry->tid >> 16);
	OffsetNumber offset = (OffsetNumber) (entry->tid & 0xFFFF);
	ItemPointerData tid;
	HeapTupleData tuple;
	HeapTuple	copy = NULL;
	Buffer		buffer;
	Page		page;

	if (block >= check->nblocks)
		check->nblocks = RelationGetNumberOfBlocks(check->heap);
	if (block >= check->nblocks)
	{
		report_tid(check, "an entry points past the end of the table", entry->tid);
		return;
	}

	buffer = ReadBuffer(check->heap, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (PageIsNew(page) || offset < FirstOffsetNumber ||
		offset > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsUsed(PageGetItemId(page, offset)))
		report_tid(check, "an entry points to an unused line pointer", entry->tid);
	else
	{
		ItemPointerSet(&tid, block, offset);
		if (heap_hot_search_buffer(&tid, check->heap, buffer, check->snapshot,
								   &tuple, NULL, true))
			copy = heap_copytuple(&tuple);
	}
	UnlockReleaseBuffer(buffer);

	if (copy != NULL)
	{
		if (!keys_equal(check, entry, copy))
			report_tid(check, "an entry's key differs from its row's", entry->tid);
		heap_freetuple(copy);
	}
}

static void
check_entry(void *arg, const EunoEntry *entry)
{
	Check	   *check = arg;

	CHECK_FOR_INTERRUPTS();
	EUNO_STOP_POINT("check-entry");
	tuplesort_putdatum(check->tids, Int64GetDatum((int64) entry->tid), false);
	if (check->with_heap)
		check_row(check, entry);
}

static void
check_pause(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

/*
 * No row may be in the index under two keys: a scan would return it twice.
 */
static void
check_tids(Check *check)
{
	EunoTid		previous = 0;
	Datum		value;
	bool		isnull;

	tuplesort_performsort(check->tids);
	while (euno_tuplesort_getdatum(check->tids, &value, &isnull))
	{
		EunoTid		tid = (EunoTid) DatumGetInt64(value);

		CHECK_FOR_INTERRUPTS();
		if (tid == previous)
			report_tid(check, "more than one entry points to a row", tid);
		previous = tid;
	}
	tuplesort_end(check->tids);
}

/*
 * Keeps the tree from being given up, and bulk deletes away: an entry that we
 * have seen must not lead to another row when we look.
 */
static void
hold_for_check(Check *check, EunoContext **cx)
{
	for (;;)
	{
		euno_build_lock(check->idx->oid, RowExclusiveLock);
		if (euno_index_hold(check->idx, cx) == EUNO_STATE_READY)
			return;
		euno_build_unlock(check->idx->oid, RowExclusiveLock);
		euno_index_try_build(check->idx, check->index);
	}
}

static void
run_check(Check *check)
{
	EunoIndex  *idx = check->idx;
	EunoVerify	verify = {.report = report, .entry = check_entry,
	.pause = check_pause, .arg = check};
	EunoContext *cx;

	hold_for_check(check, &cx);
	euno_can_leave = true;
	(void) idx->slot->ops->verify(cx, &idx->slot->tree, &verify);
	euno_can_leave = false;
	euno_index_unhold(idx);
	euno_build_unlock(idx->oid, RowExclusiveLock);

	/* If it was canceled, not all has been looked at. */
	CHECK_FOR_INTERRUPTS();
	check_tids(check);

	if (check->with_heap)
		(void) euno_heap_scan(check->heap, check->index_info,
							  check->snapshot, NULL, false,
							  check_heap_tuple, check);
}

PG_FUNCTION_INFO_V1(euno_index_check);
Datum
euno_index_check(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	bool		with_heap = PG_GETARG_BOOL(1);
	Oid			heap_oid = IndexGetRelation(oid, true);
	Check		check = {0};
	EunoOwner	owner;

	/* The table first, as everybody does. */
	check.heap = OidIsValid(heap_oid) ?
		try_relation_open(heap_oid, AccessShareLock) : NULL;
	check.index = euno_open_index_by_oid(oid, AccessShareLock);
	euno_require_serving(check.index);
	if (!check.index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot check index \"%s\"",
						RelationGetRelationName(check.index)),
				 errdetail("Index is not valid.")));
	if (!euno_session_may_evaluate(check.index))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of table \"%s\" to check euno index \"%s\"",
						RelationGetRelationName(check.heap),
						RelationGetRelationName(check.index)),
				 errdetail("The check calls functions of users with the rights of the table's owner.")));
	if (with_heap && check.heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("only heap tables can be compared with their euno indexes")));

	euno_become_owner(check.heap, &owner);
	check.idx = euno_index_open(check.index);
	check.with_heap = with_heap;
	check.index_info = BuildIndexInfo(check.index);
	check.snapshot = RegisterSnapshot(GetLatestSnapshot());
	PushActiveSnapshot(check.snapshot);
	check.estate = CreateExecutorState();
	check.slot = MakeSingleTupleTableSlot(RelationGetDescr(check.heap),
										  &TTSOpsHeapTuple);
	check.form_buffer = palloc(EUNO_KEY_FORM_BYTES);
	check.tids = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid,
									   false, maintenance_work_mem, NULL,
									   TUPLESORT_NONE);

	run_check(&check);

	ExecDropSingleTupleTableSlot(check.slot);
	FreeExecutorState(check.estate);
	PopActiveSnapshot();
	UnregisterSnapshot(check.snapshot);
	euno_restore_user(&owner);

	if (check.findings > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("euno index \"%s\" failed its check",
						RelationGetRelationName(check.index)),
				 check.findings == 1 ? errdetail("The only finding: %s.", check.first) :
				 errdetail("The first of %llu findings: %s.",
						   (unsigned long long) check.findings, check.first),
				 errhint("Give it up with euno_evict() and build it again with euno_rebuild(), or REINDEX it.")));

	index_close(check.index, AccessShareLock);
	table_close(check.heap, AccessShareLock);
	PG_RETURN_VOID();
}
