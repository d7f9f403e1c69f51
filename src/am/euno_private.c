/*-------------------------------------------------------------------------
 *
 * euno_private.c
 *	  Trees that nobody else can read before our transaction ends.
 *
 * These the session may build by its own settings, and by definitions that its
 * transaction has changed.  Such a tree is given up when the (sub)transaction
 * that has built it is rolled back; and when all commits, if others can read it
 * then.  Locks are released after our callbacks.  (A subtransaction that has
 * begun since has changed nothing that the tree was made by; functions with
 * exception handlers begin and roll back some while it is built.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/euno_state.h"
#include "euno_compat.h"

typedef struct PrivateTree
{
	EunoTreeKey key;
	SubTransactionId builder;
} PrivateTree;

static List *trees = NIL;		/* in TopMemoryContext */

/*
 * Does this transaction lock all others out of a relation?  In a parallel
 * worker its leader has the lock.
 */
static bool
keeps_others_out(Oid relation)
{
	VirtualTransactionId *holder;
	VirtualTransactionId leader;
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
	if (euno_lock_held_by_me(&tag, AccessExclusiveLock))
		return true;
	if (!IsParallelWorker() || MyProc->lockGroupLeader == NULL)
		return false;
	GET_VXID_FROM_PGPROC(leader, *MyProc->lockGroupLeader);
	for (holder = GetLockConflicts(&tag, AccessShareLock, NULL);
		 VirtualTransactionIdIsValid(*holder); holder++)
	{
		if (VirtualTransactionIdEquals(*holder, leader))
			return true;
	}
	return false;
}

/* No other session, and no worker, will ever read it. */
static bool
stays_private(const EunoTreeKey *key)
{
	return key->temp_owner >= 0 || !IsUnderPostmaster;
}

bool
euno_is_private(Relation index)
{
	return RelationUsesLocalBuffers(index) || !IsUnderPostmaster ||
		keeps_others_out(RelationGetRelid(index)) ||
		keeps_others_out(index->rd_index->indrelid);
}

void
euno_private_note(const EunoTreeKey *key)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	PrivateTree *tree = palloc(sizeof(PrivateTree));

	tree->key = *key;
	tree->builder = GetCurrentSubTransactionId();
	trees = lappend(trees, tree);
	MemoryContextSwitchTo(old);
}

static void
give_up(const EunoTreeKey *key)
{
	EunoTreeSlot *slot = euno_tree_lookup(key);

	if (slot != NULL)
		(void) euno_tree_retire(slot, pg_atomic_read_u64(&slot->generation));
}

static void
end_transaction(bool committed)
{
	ListCell   *lc;

	foreach(lc, trees)
	{
		const PrivateTree *tree = lfirst(lc);

		if (!committed || !stays_private(&tree->key))
			give_up(&tree->key);
	}
	list_free_deep(trees);
	trees = NIL;
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			end_transaction(true);
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			end_transaction(false);
			break;
		default:
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	ListCell   *lc;

	if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	foreach(lc, trees)
	{
		PrivateTree *tree = lfirst(lc);

		if (tree->builder != my_subid)
			continue;
		tree->builder = parent_subid;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			continue;
		give_up(&tree->key);
		trees = foreach_delete_current(trees, lc);
		pfree(tree);
	}
}

void
euno_private_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}
