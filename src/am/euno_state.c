/*-------------------------------------------------------------------------
 *
 * euno_state.c
 *	  Who may serve, and building a tree that is absent.
 *
 * The builder is whoever needs the tree: it holds its locks on the table
 * already.  Builders exclude each other, and VACUUM, by a heavyweight lock, so
 * that the deadlock detector, lock_timeout and cancel work.  The
 * table stays readable and writable.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/* LOCKTAG_OBJECT sub-id of our build lock; "eu" */
#define BUILD_LOCK_SUBID 0x6575

bool
euno_can_serve(const char **why, const char **hint)
{
	if (!euno_preloaded)
	{
		*why = "euno_index has not been loaded at server start";
		*hint = "Add \"euno_index\" to \"shared_preload_libraries\" and restart the server.";
		return false;
	}
	if (RecoveryInProgress())
	{
		*why = "euno indexes are not available during recovery";
		*hint = "They are rebuilt when the server is promoted.";
		return false;
	}
	if (euno_old_snapshot_threshold_active())
	{
		*why = "euno indexes cannot be used with \"old_snapshot_threshold\"";
		*hint = "Set \"old_snapshot_threshold\" to -1 and restart the server.";
		return false;
	}
	return true;
}

void
euno_require_serving(Relation index)
{
	const char *why;
	const char *hint;

	if (!euno_can_serve(&why, &hint))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot use euno index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("%s.", why),
				 errhint("%s", hint)));
}

void
euno_build_lock(Oid index_oid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId, index_oid,
					   BUILD_LOCK_SUBID);
	(void) LockAcquire(&tag, mode, false, false);
}

void
euno_build_unlock(Oid index_oid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId, index_oid,
					   BUILD_LOCK_SUBID);
	LockRelease(&tag, mode, false);
}

static void
add_heap_tuple(void *arg, ItemPointer root, Datum *values, bool *isnull,
			   bool visible)
{
	euno_sort_add(arg, values, isnull, euno_tid_pack(root));
}

/*
 * Read the table and sort its entries.  The snapshot is only there to keep what
 * is read from being vacuumed; it is not that of a consistent state.
 */
static EunoSort *
sort_table(EunoIndex *idx, Relation heap, Relation index)
{
	IndexInfo  *index_info = BuildIndexInfo(index);
	EunoSort   *sort;

	sort = euno_sort_begin(idx->schema, index, maintenance_work_mem, NULL);
	if (heap->rd_rel->relam == HEAP_TABLE_AM_OID)
		(void) euno_heap_scan(heap, index, index_info, NULL,
							  add_heap_tuple, sort);
	else
		(void) table_index_build_scan(heap, index, index_info, false, false,
									  euno_sort_add_tuple, sort, NULL);
	return sort;
}

/*
 * Read the table into the tree that we have started to build.
 */
static void
fill_from_table(EunoIndex *idx, Relation heap, Relation index,
				EunoTreeSlot *slot)
{
	Snapshot	snapshot;
	EunoSort   *sort;

	/* In a parallel query no new one may be taken; any keeps the horizon. */
	snapshot = RegisterSnapshot(IsInParallelMode() ? GetActiveSnapshot() :
								GetLatestSnapshot());
	PushActiveSnapshot(snapshot);	/* for detoasting and expressions */
	sort = sort_table(idx, heap, index);

	/* Comparators may want a snapshot too; else the horizon need not wait. */
	if (idx->order == EUNO_ORDER_BYTES)
	{
		PopActiveSnapshot();
		UnregisterSnapshot(snapshot);
	}
	euno_sort_perform(sort);
	(void) euno_load_sorted(idx, index, slot, sort);
	euno_sort_end(sort);
	euno_load_finish(idx, index, slot);
	if (idx->order != EUNO_ORDER_BYTES)
	{
		PopActiveSnapshot();
		UnregisterSnapshot(snapshot);
	}
}

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
 * Build the tree of an index that is ABSENT.  The build lock is held.  Does
 * nothing if a member of our lock group has started before us.
 */
static void
build_absent_tree(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	Relation	heap;
	EunoOwner	owner;
	EunoStatus	status;

	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		LockRelation(heap, ShareLock);

	euno_become_owner(heap, &owner);
	status = euno_tree_create(idx, slot, index);
	if (status != EUNO_OK && status != EUNO_EXISTS)
		euno_index_error(idx, index, status);
	if (status == EUNO_OK)
		fill_from_table(idx, heap, index, slot);
	euno_restore_user(&owner);

	/* Plans made without the index, here and elsewhere, are to be made anew. */
	if (status == EUNO_OK)
		CacheInvalidateRelcacheByRelid(RelationGetRelid(heap));
	table_close(heap, NoLock);
}

/*
 * Is the builder a living member of our lock group (a parallel query), which
 * the build lock does not exclude?  Any other builder has died if we hold it.
 */
static bool
builder_is_in_our_group(int pid)
{
	PGPROC	   *proc = BackendPidGetProc(pid);

	return proc != NULL && proc != MyProc &&
		MyProc->lockGroupLeader != NULL &&
		proc->lockGroupLeader == MyProc->lockGroupLeader;
}

/*
 * The slot of an index.  If the registry is full, trees whose relation is gone
 * make room.
 */
EunoTreeSlot *
euno_index_slot(EunoIndex *idx)
{
	EunoTreeSlot *slot = euno_tree_get(&idx->key, idx->oid);

	if (slot == NULL && euno_gc_database() > 0)
		slot = euno_tree_get(&idx->key, idx->oid);
	if (slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many euno indexes"),
				 errhint("Increase \"euno.max_indexes\" (now %d) and restart the server.",
						 euno_max_indexes)));
	return slot;
}

void
euno_index_ensure_ready(EunoIndex *idx, Relation index)
{
	euno_require_serving(index);

	/*
	 * VACUUM may hold the build lock and wait for hazards.  What ours named
	 * has been used; who needs it again announces it again.
	 */
	euno_hazard_clear(idx->cx.process);
	euno_build_lock(idx->oid, ExclusiveLock);

	for (;;)
	{
		EunoTreeSlot *slot = euno_index_slot(idx);
		EunoState	state = euno_tree_state(slot);

		if (state == EUNO_STATE_READY)
			break;
		if (state == EUNO_STATE_ABSENT)
		{
			build_absent_tree(idx, index, slot);
			continue;
		}
		if (euno_index_is_builder(slot))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cannot use euno index \"%s\" while this session is building it",
							RelationGetRelationName(index)),
					 errhint("Functions in index expressions and predicates must not query the table itself.")));
		if (state != EUNO_STATE_RETIRING &&
			!builder_is_in_our_group(slot->builder_pid))
			euno_tree_retire(slot, false, 0);

		CHECK_FOR_INTERRUPTS();
		if (!euno_tree_finish_retired(slot) || state != EUNO_STATE_RETIRING)
			euno_sleep(1000);
	}
	euno_build_unlock(idx->oid, ExclusiveLock);
}
