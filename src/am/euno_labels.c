/*-------------------------------------------------------------------------
 *
 * euno_labels.c
 *	  Keeps the labels of enums where they are.
 *
 * Keys are made of the places of an enum's labels, so these must stay as they
 * are while there is an index on the type: see src/README.md, "Enums".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/euno_ddl.h"
#include "am/euno_debug.h"

/* Excludes one who creates an index on a type and one who moves its labels. */
#define LABELS_SUBID	1

void
euno_labels_lock(const EunoKeySchema *schema, int nkeys)
{
	for (int i = 0; i < nkeys; i++)
	{
		Oid			type = euno_key_enum(schema, i);

		if (OidIsValid(type))
			LockDatabaseObject(TypeRelationId, type, LABELS_SUBID, ShareLock);
	}
}

/*
 * Has this index, if it is a euno index, a key column of this type?  By the
 * catalog alone: whoever has the index locked may be waiting for us.  An index
 * that is gone clears *complete.
 */
static bool
has_labels_of(Form_pg_class row, Oid type, bool *complete)
{
	HeapTuple	tuple;
	int			nkeys;

	if (row->relkind != RELKIND_INDEX || !euno_is_our_method(row->relam))
		return false;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(row->oid));
	if (!HeapTupleIsValid(tuple))
	{
		*complete = false;
		return false;
	}
	nkeys = ((Form_pg_index) GETSTRUCT(tuple))->indnkeyatts;
	ReleaseSysCache(tuple);
	for (int i = 1; i <= nkeys; i++)
	{
		Oid			column = get_atttype(row->oid, i);

		if (!OidIsValid(column))
			*complete = false;
		else if (getBaseType(column) == type)
			return true;
	}
	return false;
}

/*
 * Looks at all indexes.  False: one has gone meanwhile, and another one may
 * have its tree (ALTER TABLE ... TYPE gives an index a new OID, and may keep
 * its file), which we did not see.
 */
static bool
refuse_if_indexed(Oid type)
{
	bool		complete = true;
	Relation	catalog;
	SysScanDesc scan;
	HeapTuple	tuple;

	InvalidateCatalogSnapshot();
	catalog = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	EUNO_STOP_POINT("labels-indexes");
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class row = (Form_pg_class) GETSTRUCT(tuple);

		if (has_labels_of(row, type, &complete))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot add a value at this place to type %s",
							format_type_be(type)),
					 errdetail("There is no sort order left between those of its neighbors. All values would get new ones, but euno index \"%s\" is made of the old ones.",
							   NameStr(row->relname)),
					 errhint("Drop the index, add the value, and create the index again.")));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return complete;
}

void
euno_labels_check(const EunoLabel *before, int n)
{
	EunoLabel  *after;
	int			nafter;
	Oid			type;

	CommandCounterIncrement();
	nafter = euno_labels_read(InvalidOid, &after);
	type = euno_labels_moved(before, n, after, nafter);
	if (!OidIsValid(type))
		return;
	LockDatabaseObject(TypeRelationId, type, LABELS_SUBID, ExclusiveLock);
	while (!refuse_if_indexed(type))
		CHECK_FOR_INTERRUPTS();
}
