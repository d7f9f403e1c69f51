/*-------------------------------------------------------------------------
 *
 * euno_trust.c
 *	  May this session build an index?
 *
 * A build runs the functions of index expressions and predicates for the rows
 * of others, as the table's owner.  These find what they name by the session's
 * search_path, and temporary relations first whatever that is, so whoever has
 * the session could have them run something of his own.  Nobody but the owner,
 * and who may become the owner, is in a position to ask for CREATE INDEX or
 * REINDEX.  But an insert into a unique index that is absent asks for a build,
 * and so may a query: for those who are not trusted a background worker does
 * it (euno_build_worker.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "am/euno_state.h"

/* A function that does not come with the server? */
static bool
is_foreign_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

static bool has_users_parts(Oid type);

/* Does the server compare values of a type by a function of users? */
static bool
is_compared_by_users(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_CMP_PROC);

	return is_foreign_function(entry->cmp_proc, NULL) || has_users_parts(type);
}

/*
 * Arrays, rows and ranges are compared by functions of the server, and these
 * by those of the types that they are made of.
 */
static bool
has_users_parts(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	if (OidIsValid(element))
		return is_compared_by_users(element);
	switch (get_typtype(base))
	{
		case TYPTYPE_COMPOSITE:
		case TYPTYPE_PSEUDO:
			return true;
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return base >= FirstNormalObjectId;
		default:
			return false;
	}
}

/* May a function of the server that gets such a value call one of users? */
static bool
is_users_type(Oid type)
{
	Oid			base = getBaseType(type);

	return has_users_parts(type) ||
		(base >= FirstNormalObjectId && get_typtype(base) != TYPTYPE_ENUM);
}

/* Does an expression run functions of users?  Checks of domains may do so. */
static bool
runs_functions(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, CoerceToDomain) || IsA(node, RowExpr) ||
		(IsA(node, Var) && is_users_type(castNode(Var, node)->vartype)) ||
		(IsA(node, Const) && is_users_type(castNode(Const, node)->consttype)) ||
		(IsA(node, MinMaxExpr) &&
		 is_compared_by_users(castNode(MinMaxExpr, node)->minmaxtype)) ||
		check_functions_in_node(node, is_foreign_function, context) ||
		expression_tree_walker(node, runs_functions, context);
}

/*
 * The same of an index's expressions, or predicate, as they are stored: in the
 * relation cache the bodies of SQL functions may stand instead, with names
 * that this session has found.
 */
static bool
stored_runs_functions(HeapTuple tuple, AttrNumber attribute)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(INDEXRELID, tuple, attribute, &isnull);

	return !isnull &&
		runs_functions(stringToNode(TextDatumGetCString(stored)), NULL);
}

/* Does a build run functions of users? */
static bool
build_runs_functions(Relation index)
{
	HeapTuple	tuple;
	bool		runs;
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	int			nsupport = index->rd_indam->amsupport * nkeys;

	for (int i = 0; i < nsupport; i++)
	{
		if (is_foreign_function(index->rd_support[i], NULL))
			return true;
	}
	for (int i = 0; i < nkeys; i++)
	{
		if (has_users_parts(TupleDescAttr(RelationGetDescr(index), i)->atttypid))
			return true;
	}
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(index)));
	if (!HeapTupleIsValid(tuple))
		return true;
	runs = stored_runs_functions(tuple, Anum_pg_index_indexprs) ||
		stored_runs_functions(tuple, Anum_pg_index_indpred);
	ReleaseSysCache(tuple);
	return runs;
}

static Oid
owner_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * The current user may be the owner in a function with SECURITY DEFINER, or in
 * the action of a foreign key, and the session somebody else's.
 */
bool
euno_session_may_build(Relation index)
{
	Oid			owner = owner_of(index->rd_index->indrelid);

	return (has_privs_of_role(GetUserId(), owner) &&
			has_privs_of_role(GetSessionUserId(), owner)) ||
		!build_runs_functions(index);
}
