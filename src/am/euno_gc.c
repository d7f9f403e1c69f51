/*-------------------------------------------------------------------------
 *
 * euno_gc.c
 *	  Trees whose relation, or rows, are gone.
 *
 * No callback tells an access method of DROP, of a rollback, or of a new
 * relation file.  A tree may go when its relation file is not in pg_class and
 * the transaction that made it has ended: nothing else proves it.  Index OIDs
 * do not: ALTER TYPE keeps the file and changes the OID, a rolled back
 * TRUNCATE brings the old file back.
 *
 * Backends remember what their own transaction has made or dropped, look at
 * pg_class just before they commit, and free the trees just after.  Most of
 * this is for speed, since euno_gc_database finds such trees later.  Two things
 * need it:
 *
 * - A transaction's own trees must stay when it has replaced or dropped their
 *   files, for a rollback brings these back.
 * - A tree can have the name of a file that is there but is not its own: after
 *   a table's move that was undone, or when a database takes the place of
 *   another.  Such trees are freed here.
 *
 * The rows are gone, and the relation stays, where a commit has emptied a
 * temporary table in place, and fails before all of its indexes are built anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/euno_debug.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* The index that had a file before ALTER TYPE gave that to another one. */
typedef struct Giver
{
	struct Giver *next;			/* the one before */
	SubTransactionId by;
	Oid			index_oid;
} Giver;

/* A tree this transaction may have to free. */
typedef struct Suspect
{
	EunoTreeKey key;
	bool		moved;			/* its table was, by "maker" */
	bool		gone;			/* found missing just before commit */
	bool		dropped;		/* its index was, by "successor", but ALTER TYPE
								 * may give the file to another one */
	int			lives;			/* at how many more commits it is looked for */
	SubTransactionId maker;		/* its abort kills it; or invalid */
	SubTransactionId successor; /* dropped the index, or made another file for
								 * it; or invalid */
	Giver	   *givers;			/* the last one first */
} Suspect;

/* DROP INDEX CONCURRENTLY announces itself in the first of three. */
#define DROP_COMMITS	3

static List *suspects = NIL;	/* in TopMemoryContext */
static bool committing = false; /* too late to look at pg_class; tables that
								 * are ON COMMIT DELETE ROWS are emptied now */
static object_access_hook_type previous_hook = NULL;

static Suspect *
find_suspect(const EunoTreeKey *key)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		if (!suspect->moved &&
			memcmp(&suspect->key, key, sizeof(EunoTreeKey)) == 0)
			return suspect;
	}
	return NULL;
}

static Suspect *
remember(const EunoTreeKey *key, bool moved)
{
	Suspect    *suspect = moved ? NULL : find_suspect(key);
	MemoryContext old;

	if (suspect != NULL)
		return suspect;
	old = MemoryContextSwitchTo(TopMemoryContext);
	suspect = palloc0(sizeof(Suspect));
	suspect->key = *key;
	suspect->moved = moved;
	suspects = lappend(suspects, suspect);
	MemoryContextSwitchTo(old);
	return suspect;
}

/*
 * This subtransaction has not happened, or, if it is invalid, none: the index
 * that had the file has it again.
 */
static void
give_back(Suspect *suspect, SubTransactionId by)
{
	Giver	   *giver;

	while ((giver = suspect->givers) != NULL &&
		   (by == InvalidSubTransactionId || giver->by == by))
	{
		EunoTreeSlot *slot = euno_tree_lookup(&suspect->key);

		if (slot != NULL)
			slot->index_oid = giver->index_oid;
		suspect->givers = giver->next;
		pfree(giver);
	}
}

/* They have happened. */
static void
forget_givers(Suspect *suspect)
{
	Giver	   *giver;

	while ((giver = suspect->givers) != NULL)
	{
		suspect->givers = giver->next;
		pfree(giver);
	}
}

/* Who made it has also replaced it, or dropped its index. */
static bool
is_past(const Suspect *suspect)
{
	return suspect->maker != InvalidSubTransactionId &&
		suspect->maker == suspect->successor;
}

/*
 * Free the trees whose makers have also replaced them: whether these commit or
 * not, nobody will see their files again.
 */
static void
drop_past(void)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		if (!is_past(suspect) || suspect->dropped)
			continue;
		euno_tree_drop(&suspect->key);
		forget_givers(suspect);
		suspects = foreach_delete_current(suspects, lc);
		pfree(suspect);
	}
}

/* This subtransaction drops the index, or makes another file for it. */
static void
note_successor(Suspect *suspect, bool dropped)
{
	if (suspect->successor != InvalidSubTransactionId)
		return;
	suspect->successor = GetCurrentSubTransactionId();
	suspect->dropped = dropped;
}

/* REINDEX and TRUNCATE leave other files of an index behind. */
static void
remember_replaced(const EunoTreeKey *key, Oid index_oid)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (!euno_tree_describe(i, &tree) ||
			tree.index_oid != index_oid ||
			tree.key.database != key->database ||
			tree.key.temp_owner != key->temp_owner ||
			tree.key.number == key->number)
			continue;
		note_successor(remember(&tree.key, false), false);
	}
	drop_past();
}

void
euno_gc_created(const EunoTreeKey *key, Oid index_oid)
{
	remember_replaced(key, index_oid);
	remember(key, false)->maker = GetCurrentSubTransactionId();
}

/*
 * What is built while a transaction commits is of a table that is emptied at
 * each commit that follows, too.
 */
void
euno_gc_built(EunoTreeSlot *slot)
{
	slot->emptied |= committing;
}

/*
 * The commit has failed, and may have emptied tables, which cannot be undone.
 * Trees of such tables were empty when the transaction began: those that have
 * entries, which it has made, are given up.
 */
static void
give_up_emptied(void)
{
	EunoProcess *process = euno_process();

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);
		uint64		generation = pg_atomic_read_u64(&slot->generation);
		bool		wrong;

		euno_epoch_enter(process);
		wrong = euno_tree_state(slot) == EUNO_STATE_READY && slot->emptied &&
			slot->key.database == MyDatabaseId &&
			slot->key.temp_owner == euno_my_proc_number() &&
			slot->ops->entries(&slot->tree) > 0;
		euno_epoch_exit(process);
		if (wrong)
			(void) euno_tree_retire(slot, generation);
	}
}

/*
 * Does a relation of this database have this file?  Temporary files of other
 * sessions may have the same number.
 */
static bool
relation_file_exists(const EunoTreeKey *key)
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

/* Whoever ends this transaction, which is being prepared, looks again. */
static void
leave_to_prepared(const Suspect *suspect)
{
	EunoTreeSlot *slot = euno_tree_lookup(&suspect->key);

	if (slot == NULL)
		return;
	slot->unprepared_oid = InvalidOid;
	for (const Giver *giver = suspect->givers; giver != NULL; giver = giver->next)
		slot->unprepared_oid = giver->index_oid;
	slot->prepared = GetTopTransactionIdIfAny();
}

/*
 * Locks what relation_file_exists looks at, if that need not be waited for; it
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

/* Nothing more is known of those whose fate is decided. */
static void
forget(bool committed)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		forget_givers(suspect);
		if (committed && !suspect->gone && --suspect->lives > 0)
		{
			suspect->maker = suspect->successor = InvalidSubTransactionId;
			suspect->dropped = false;
			continue;
		}
		suspects = foreach_delete_current(suspects, lc);
		pfree(suspect);
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (event == XACT_EVENT_ABORT && committing && euno_preloaded)
		give_up_emptied();
	committing = event == XACT_EVENT_PRE_COMMIT;
	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		switch (event)
		{
			case XACT_EVENT_PRE_COMMIT:
				suspect->gone = !relation_file_exists(&suspect->key);
				break;
			case XACT_EVENT_COMMIT:
				if (suspect->gone)
					euno_tree_drop(&suspect->key);
				break;
			case XACT_EVENT_ABORT:
				if (suspect->maker != InvalidSubTransactionId)
					euno_tree_drop(&suspect->key);
				give_back(suspect, InvalidSubTransactionId);
				break;
			case XACT_EVENT_PREPARE:
				/* Its fate is not ours any more; what is moved may come back. */
				if (suspect->moved)
					euno_tree_drop(&suspect->key);
				else
					leave_to_prepared(suspect);
				break;
			default:
				return;
		}
	}
	if (event != XACT_EVENT_PRE_COMMIT)
		forget(event == XACT_EVENT_COMMIT);
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	bool		aborted = event == SUBXACT_EVENT_ABORT_SUB;
	ListCell   *lc;

	if (!aborted && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	foreach(lc, suspects)
	{
		Suspect    *suspect = lfirst(lc);

		if (suspect->successor == my_subid)
		{
			suspect->successor = aborted ? InvalidSubTransactionId : parent_subid;
			suspect->dropped &= !aborted;
		}
		if (aborted)
			give_back(suspect, my_subid);
		for (Giver *giver = suspect->givers; giver != NULL; giver = giver->next)
		{
			if (giver->by == my_subid)
				giver->by = parent_subid;
		}
		if (suspect->maker == my_subid && !aborted)
			suspect->maker = parent_subid;
		else if (suspect->maker == my_subid)
			suspect->successor = my_subid;	/* none: drop_past is to drop it */
	}
	drop_past();
}

/* Free the trees of a database, or of those in "space", if that is one. */
static void
free_trees_of_database(Oid database, Oid space)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (euno_tree_describe(i, &tree) &&
			tree.key.database == database &&
			(!OidIsValid(space) || tree.key.space == space))
			euno_tree_drop_described(&tree);
	}
}

/*
 * The row of a catalog that has this OID, as "snapshot" sees it, copied; NULL
 * if there is none.  "index" is on "column", the OID.
 */
static HeapTuple
catalog_row(Oid catalog, Oid index, AttrNumber column, Oid oid,
			Snapshot snapshot)
{
	Relation	rel = table_open(catalog, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(oid));
	scan = systable_beginscan(rel, index, true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return tuple;
}

/* The default tablespace of a database, as "snapshot" sees it. */
static Oid
database_space(Oid database, Snapshot snapshot)
{
	HeapTuple	tuple = catalog_row(DatabaseRelationId, DatabaseOidIndexId,
									Anum_pg_database_oid, database, snapshot);

	return HeapTupleIsValid(tuple) ?
		((Form_pg_database) GETSTRUCT(tuple))->dattablespace : InvalidOid;
}

/*
 * Files of a database that moves to another tablespace, and back, have the
 * names that they had, and so have those of one that is made with the OID of
 * one that was dropped.  Trees from before must not be found then.  The
 * statement has locked everybody out of the database.
 */
static void
database_access(ObjectAccessType access, Oid database)
{
	if (access == OAT_POST_CREATE)
		free_trees_of_database(database, InvalidOid);
	else if (access == OAT_POST_ALTER)
	{
		/* its new row is not visible yet, but to SnapshotSelf */
		Oid			old_space = database_space(database, NULL);

		if (database_space(database, SnapshotSelf) != old_space)
			free_trees_of_database(database, old_space);
	}
}

/* The name of a relation's tree; false if it is no index. */
static bool
key_of_row(Form_pg_class row, EunoTreeKey *key)
{
	key->database = MyDatabaseId;
	key->space = OidIsValid(row->reltablespace) ? row->reltablespace :
		MyDatabaseTableSpace;
	key->number = row->relfilenode;
	key->temp_owner = row->relpersistence == RELPERSISTENCE_TEMP ?
		euno_my_proc_number() : -1;
	return row->relkind == RELKIND_INDEX;
}

/* The same, by the catalog. */
static bool
key_of_index(Oid oid, EunoTreeKey *key)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	bool		is_index;

	if (!HeapTupleIsValid(tuple))
		return false;
	is_index = key_of_row((Form_pg_class) GETSTRUCT(tuple), key);
	ReleaseSysCache(tuple);
	return is_index;
}

/* The row of a relation in pg_class, as "snapshot" sees it, or NULL. */
static Form_pg_class
relation_row(Oid relation, Snapshot snapshot)
{
	HeapTuple	tuple = catalog_row(RelationRelationId, ClassOidIndexId,
									Anum_pg_class_oid, relation, snapshot);

	return HeapTupleIsValid(tuple) ? (Form_pg_class) GETSTRUCT(tuple) : NULL;
}

/*
 * ALTER TABLE ... SET TABLESPACE copies the table into a new file, and leaves
 * its indexes as they are.  If that is rolled back, what was inserted
 * meanwhile is not in the old file, so trees must not keep it either.
 */
static void
table_moved(Oid table)
{
	Relation	rel = table_open(table, NoLock);
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		EunoTreeKey key;

		if (key_of_index(lfirst_oid(lc), &key))
			remember(&key, true)->maker = GetCurrentSubTransactionId();
	}
	list_free(indexes);
	table_close(rel, NoLock);
}

/*
 * An index's tree does not go along, and nobody finds it under its old name;
 * nor what is built under the new one, if the move is undone.
 */
static void
index_moved(Form_pg_class before, Form_pg_class after)
{
	EunoTreeKey key;

	if (key_of_row(before, &key) && euno_tree_lookup(&key) != NULL)
		(void) remember(&key, false);
	if (key_of_row(after, &key))
		remember(&key, false)->maker = GetCurrentSubTransactionId();
}

static void
relation_altered(Oid relation)
{
	/* its new row is not visible yet, but to SnapshotSelf */
	Form_pg_class before = relation_row(relation, NULL);
	Form_pg_class after = relation_row(relation, SnapshotSelf);

	if (before == NULL || after == NULL ||
		before->reltablespace == after->reltablespace)
		return;
	if (before->relkind == RELKIND_INDEX)
		index_moved(before, after);
	else if (before->relkind == RELKIND_RELATION ||
			 before->relkind == RELKIND_MATVIEW)
		table_moved(relation);
}

/* ALTER TYPE has dropped an index, and gives its file to this one. */
static void
index_created(Oid index)
{
	Form_pg_class row = relation_row(index, SnapshotSelf);
	EunoTreeKey key;
	Suspect    *suspect;
	EunoTreeSlot *slot;
	Giver	   *giver;

	if (row == NULL || !key_of_row(row, &key))
		return;
	suspect = find_suspect(&key);
	if (suspect == NULL || !suspect->dropped)
		return;
	suspect->dropped = false;
	suspect->successor = InvalidSubTransactionId;
	slot = euno_tree_lookup(&key);
	if (slot == NULL)
		return;
	giver = MemoryContextAlloc(TopMemoryContext, sizeof(Giver));
	*giver = (Giver) {suspect->givers, GetCurrentSubTransactionId(), slot->index_oid};
	suspect->givers = giver;
	slot->index_oid = index;
}

/* A hint to look at commit.  ON COMMIT DROP comes when that has begun. */
static void
index_dropped(const EunoTreeKey *key)
{
	Suspect    *suspect = remember(key, false);

	suspect->gone = committing;
	suspect->lives = DROP_COMMITS;
	note_successor(suspect, true);
}

/*
 * CREATE, ALTER or DROP of anything that may be an index of ours.  The catalog
 * still has what is dropped, so its file says which tree it is.
 */
static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
			  void *arg)
{
	EunoTreeKey key;

	if (previous_hook)
		previous_hook(access, class_id, object_id, sub_id, arg);
	if (class_id == DatabaseRelationId)
		database_access(access, object_id);
	if (class_id != RelationRelationId || sub_id != 0)
		return;
	if (access == OAT_POST_ALTER)
		relation_altered(object_id);
	else if (access == OAT_POST_CREATE && suspects != NIL)
		index_created(object_id);
	else if (access == OAT_DROP && key_of_index(object_id, &key) &&
			 euno_tree_lookup(&key) != NULL)
		index_dropped(&key);
}

void
euno_gc_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
	if (euno_preloaded)
	{
		previous_hook = object_access_hook;
		object_access_hook = object_access;
	}
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
		Suspect    *suspect;

		if (!euno_tree_describe(i, &tree) ||
			tree.state == EUNO_STATE_RETIRING)
			continue;
		if (tree.key.database != MyDatabaseId)
			continue;

		/*
		 * What we have replaced or dropped comes back if that is rolled back.
		 */
		suspect = find_suspect(&tree.key);
		if (suspect != NULL && !is_past(suspect))
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
		if (relation_file_exists(&tree.key))
			continue;
		euno_tree_drop_described(&tree);
		freed++;
	}
	return freed;
}
