/*-------------------------------------------------------------------------
 *
 * euno_gc_collect.c
 *	  Trees whose relation is gone, found by a look at pg_class.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/euno_debug.h"
#include "am/euno_gc.h"
#include "euno_compat.h"

bool
euno_gc_file_exists(const EunoTreeKey *key)
{
	Oid			space = key->space == MyDatabaseTableSpace ? InvalidOid : key->space;
	Relation	rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	/*
	 * A transaction is not in progress any more before its invalidations are
	 * sent: a catalog snapshot from before might still be thought good.
	 */
	InvalidateCatalogSnapshot();

	rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_class_reltablespace, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(space));
	ScanKeyInit(&keys[1], Anum_pg_class_relfilenode, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(key->number));
	scan = systable_beginscan(rel, ClassTblspcRelfilenodeIndexId, true, NULL,
							  2, keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (key->temp_owner >= 0)
			found = form->relpersistence == RELPERSISTENCE_TEMP &&
				isTempNamespace(form->relnamespace);
		else
			found = form->relpersistence != RELPERSISTENCE_TEMP;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

void
euno_gc_leave_to_prepared(const EunoSuspect *suspect)
{
	EunoTreeSlot *slot = euno_tree_lookup(&suspect->key);

	if (slot == NULL)
		return;
	slot->unprepared_oid = InvalidOid;
	for (const EunoGiver *giver = suspect->givers; giver != NULL; giver = giver->next)
		slot->unprepared_oid = giver->index_oid;
	slot->prepared = GetTopTransactionIdIfAny();
}

/*
 * Locks what euno_gc_file_exists looks at, if that need not be waited for; it
 * stays locked until the transaction ends.
 */
static bool
lock_catalog(void)
{
	return ConditionalLockRelationOid(RelationRelationId, AccessShareLock) &&
		ConditionalLockRelationOid(ClassTblspcRelfilenodeIndexId,
								   AccessShareLock);
}

/*
 * Of a transaction that is not in progress.  An apply worker may have ended it long
 * ago, and nobody knows any more how: then not.
 */
static bool
was_rolled_back(TransactionId xid)
{
	bool		result;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	result = !TransactionIdPrecedes(xid, euno_oldest_clog_xid()) &&
		!TransactionIdDidCommit(xid);
	LWLockRelease(XactTruncationLock);
	return result;
}

void
euno_gc_prepared(void)
{
	bool		decided = false;

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (slot->key.database == MyDatabaseId &&
			TransactionIdIsValid(slot->prepared) &&
			!TransactionIdIsInProgress(slot->prepared))
		{
			if (OidIsValid(slot->unprepared_oid) &&
				was_rolled_back(slot->prepared))
				slot->index_oid = slot->unprepared_oid;
			slot->prepared = InvalidTransactionId;
			decided = true;
		}
	}

	/*
	 * The transaction has ended, whatever we say now: so not to be canceled,
	 * nor to wait.  If somebody rewrites pg_class, it is left to the launcher.
	 */
	HOLD_INTERRUPTS();
	if (decided && lock_catalog())
		(void) euno_gc_database();
	RESUME_INTERRUPTS();
}

/*
 * Nothing that is in progress is so old that its number is not in the future: a
 * tree's maker may be, for the server's restarts keep trees.
 */
static bool
is_in_progress(FullTransactionId xid)
{
	return U64FromFullTransactionId(ReadNextFullTransactionId()) -
		U64FromFullTransactionId(xid) < UINT64_C(1) << 31 &&
		TransactionIdIsInProgress(XidFromFullTransactionId(xid));
}

/*
 * Look at every tree of this database.  Needs a transaction.  Returns how many
 * were freed.
 *
 * VACUUM takes no part in deciding which rows must stay, those of pg_class
 * among them.  A row that is being replaced may be gone when it looks, and its
 * snapshot too old for the new one: so it does not look.
 */
int
euno_gc_database(void)
{
	int			freed = 0;

	euno_tree_sweep();
	if ((MyProc->statusFlags & PROC_IN_VACUUM) != 0)
		return 0;
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;
		EunoSuspect *suspect;

		if (!euno_tree_describe(i, &tree) ||
			tree.state == EUNO_STATE_RETIRING)
			continue;
		if (tree.key.database != MyDatabaseId)
			continue;

		/*
		 * What we have replaced or dropped comes back if that is rolled back.
		 */
		suspect = euno_gc_find(&tree.key);
		if (suspect != NULL && !euno_gc_is_past(suspect))
			continue;
		if (suspect == NULL && tree.key.temp_owner >= 0)
			continue;			/* its session's own */

		/*
		 * Another maker's catalog rows are invisible to us until it commits.
		 */
		if (suspect == NULL && FullTransactionIdIsValid(tree.creator) &&
			is_in_progress(tree.creator))
			continue;
		EUNO_STOP_POINT("gc-look");
		if (euno_gc_file_exists(&tree.key))
			continue;
		euno_tree_drop_described(&tree);
		freed++;
	}
	return freed;
}
