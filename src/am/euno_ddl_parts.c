/*-------------------------------------------------------------------------
 *
 * euno_ddl_parts.c
 *	  ALTER OPERATOR FAMILY, CREATE OPERATOR CLASS and ALTER TYPE, of what euno
 *	  indexes are made of.
 *
 * Sessions keep what they know of an index's operator classes and types, and
 * nobody tells them of a change to these.  All must make the same bytes of a
 * value that has no encoding, and lock the same lock for a unique key.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/euno_ddl.h"
#include "euno_compat.h"

/* Has the index a key column whose operator class is of this family? */
static bool
uses_family(Oid index_oid, Oid family)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index_oid));
	bool		uses = false;
	Form_pg_index form;
	oidvector  *classes;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple,
															Anum_pg_index_indclass,
															&isnull));
	for (int i = 0; i < form->indnkeyatts; i++)
		uses |= get_opclass_family(classes->values[i]) == family;
	ReleaseSysCache(tuple);
	return uses;
}

/* Has it a column of this type, or of a domain over it? */
static bool
uses_type(Oid index_oid, Oid type)
{
	Oid			column;

	for (AttrNumber i = 1; OidIsValid(column = get_atttype(index_oid, i)); i++)
	{
		if (getBaseType(column) == type)
			return true;
	}
	return false;
}

/* The euno indexes of this database that use something. */
static List *
users_of(bool (*uses) (Oid index_oid, Oid what), Oid what)
{
	Oid			method = get_index_am_oid("euno", true);
	List	   *users = NIL;
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class row = (Form_pg_class) GETSTRUCT(tuple);

		if (row->relkind == RELKIND_INDEX && row->relam == method &&
			uses(row->oid, what))
			users = lappend_oid(users, row->oid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return users;
}

static void
lock_users_of_family(char *method_name, List *family_name)
{
	Oid			method = get_index_am_oid(method_name, true);
	ListCell   *lc;

	if (!superuser() || !euno_is_our_method(method))
		return;
	foreach(lc, users_of(uses_family,
						 get_opfamily_oid(method, family_name, true)))
	{
		LockRelationOid(IndexGetRelation(lfirst_oid(lc), false),
						ShareRowExclusiveLock);
		CacheInvalidateRelcacheByRelid(lfirst_oid(lc));
	}
}

void
euno_ddl_alter_family(const AlterOpFamilyStmt *stmt)
{
	lock_users_of_family(stmt->amname, stmt->opfamilyname);
}

/* Its functions go to a family that may be there, by its own name too. */
void
euno_ddl_create_class(const CreateOpClassStmt *stmt)
{
	lock_users_of_family(stmt->amname, stmt->opfamilyname != NIL ?
						 stmt->opfamilyname : stmt->opclassname);
}

/* From PLAIN to another one: PostgreSQL knows no way back. */
void
euno_ddl_alter_type(const AlterTypeStmt *stmt)
{
	TypeName   *name = makeTypeNameFromNameList(stmt->typeName);
	Oid			type = LookupTypeNameOid(NULL, name, true);
	List	   *users = NIL;
	ListCell   *lc;

	if (!superuser() || !OidIsValid(get_index_am_oid("euno", true)))
		return;
	foreach(lc, stmt->options)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, "storage") == 0 &&
			get_typstorage(type) == TYPSTORAGE_PLAIN)
			users = users_of(uses_type, type);
	}
	if (users != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot change the storage of type %s, which euno index \"%s\" uses",
						format_type_be(type),
						get_rel_name(linitial_oid(users))),
				 errhint("Drop the index, and create it again afterwards.")));
}
