/*-------------------------------------------------------------------------
 *
 * euno_gc_ddl.c
 *	  What statements do to the files of trees: moved, dropped, given away.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_ts_config.h"
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/euno_ddl.h"
#include "am/euno_gc.h"
#include "euno_compat.h"

/* DROP INDEX CONCURRENTLY announces itself in the first of three. */
#define DROP_COMMITS	3

static object_access_hook_type previous_hook = NULL;
static bool definitions_changed = false;

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
			euno_gc_remember(&key, true)->maker = GetCurrentSubTransactionId();
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
		(void) euno_gc_remember(&key, false);
	if (key_of_row(after, &key))
		euno_gc_remember(&key, false)->maker = GetCurrentSubTransactionId();
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
	EunoSuspect *suspect;
	EunoTreeSlot *slot;
	EunoGiver  *giver;

	if (row == NULL || !key_of_row(row, &key))
		return;
	suspect = euno_gc_find(&key);
	if (suspect == NULL || !suspect->dropped)
		return;
	suspect->dropped = false;
	suspect->successor = InvalidSubTransactionId;
	slot = euno_tree_lookup(&key);
	if (slot == NULL)
		return;
	giver = MemoryContextAlloc(TopMemoryContext, sizeof(EunoGiver));
	*giver = (EunoGiver) {suspect->givers, GetCurrentSubTransactionId(), slot->index_oid};
	suspect->givers = giver;
	slot->index_oid = index;
}

/*
 * A hint to look at commit, whether or not there is a tree: while DROP INDEX
 * CONCURRENTLY waits, somebody may still build it.  ON COMMIT DROP comes when
 * the commit has begun.
 */
static void
index_dropped(const EunoTreeKey *key)
{
	EunoSuspect *suspect = euno_gc_remember(key, false);

	suspect->gone = euno_gc_committing();
	suspect->lives = DROP_COMMITS;
	euno_gc_note_successor(suspect, true);
}

/*
 * May keys be made by this?  Not every table that is created, as temporary ones
 * often are, shall count: who commits gives up what is being built.
 */
static bool
is_definition(ObjectAccessType access, Oid class_id, Oid object_id)
{
	switch (class_id)
	{
		case ProcedureRelationId:
		case TSConfigRelationId:
		case TSDictionaryRelationId:
			return true;
		case TypeRelationId:
			return access == OAT_POST_ALTER;
		case RelationRelationId:
			return get_rel_relkind(object_id) == RELKIND_COMPOSITE_TYPE;
		default:
			return false;
	}
}

/*
 * CREATE, ALTER or DROP of anything that may be an index of ours, or of what
 * one is made of.  The catalog still has what is dropped, so its file says
 * which tree it is.
 */
static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
			  void *arg)
{
	EunoTreeKey key;

	if (previous_hook)
		previous_hook(access, class_id, object_id, sub_id, arg);
	if (access == OAT_POST_CREATE || access == OAT_POST_ALTER ||
		access == OAT_DROP)
		definitions_changed |= is_definition(access, class_id, object_id);
	if (class_id == DatabaseRelationId)
		database_access(access, object_id);
	if (class_id != RelationRelationId || sub_id != 0)
		return;
	if (access == OAT_POST_ALTER)
		relation_altered(object_id);
	else if (access == OAT_POST_CREATE && euno_gc_suspects())
		index_created(object_id);
	else if (access == OAT_DROP)
	{
		euno_gc_table_dropped(object_id);
		if (euno_is_our_index(object_id) && key_of_index(object_id, &key))
			index_dropped(&key);
	}
}

bool
euno_gc_has_definitions(void)
{
	return definitions_changed;
}

void
euno_gc_forget_definitions(void)
{
	definitions_changed = false;
}

void
euno_gc_ddl_init(void)
{
	if (!euno_preloaded)
		return;
	previous_hook = object_access_hook;
	object_access_hook = object_access;
}
