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
 * and so may a query.
 *
 * And what others are to find must not be made by settings, or by definitions
 * that this session's transaction has changed and may roll back.  Where any of
 * this can be, a background worker builds (euno_build_worker.c).
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
#include "utils/fmgroids.h"
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

/* Are values of a type printed in the same way whatever the settings are? */
static bool
is_printed_alike(Oid type)
{
	switch (getBaseType(type))
	{
		case BOOLOID:
		case CHAROID:
		case NAMEOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case NUMERICOID:
		case OIDOID:
		case UUIDOID:
		case JSONOID:
		case JSONBOID:
			return true;
		default:
			return false;
	}
}

/*
 * A function of the server that PostgreSQL lets into indexes but that depends
 * on quote_all_identifiers, on timezone_abbreviations, or on what is a partition
 * of what?
 */
static bool
is_varying_function(Oid function, void *context)
{
	return function == F_QUOTE_IDENT ||
		function == F_TIMEZONE_TEXT_TIMESTAMP ||
		function == F_TIMEZONE_TEXT_TIMESTAMPTZ ||
		function == EUNO_DATE_ADD ||
		function == EUNO_DATE_SUBTRACT ||
		function == F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT ||	/* from 18 on */
		function == F_PG_PARTITION_ROOT ||
		function == F_SATISFIES_HASH_PARTITION;
}

/* From 17 on the time zone in a value may be an abbreviation. */
static bool
is_varying_path(Node *path)
{
	Const	   *constant = (Const *) path;

	return !IsA(path, Const) || constant->constisnull ||
		strstr(DatumGetCString(DirectFunctionCall1(jsonpath_out, constant->constvalue)),
			   "datetime") != NULL;
}

/*
 * What is printed may depend on a setting: float8::text on extra_float_digits,
 * for one.  What names a text search configuration depends on that.
 */
static bool
has_varying_type(Node *node)
{
	switch (exprType(node))
	{
		case JSONPATHOID:
			return is_varying_path(node);
		case CSTRINGOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
			return true;
		default:
			return IsA(node, CoerceViaIO) &&
				!is_printed_alike(exprType((Node *) castNode(CoerceViaIO, node)->arg));
	}
}

/*
 * May the value of an expression that runs functions of the server depend on
 * settings, or on definitions that a transaction may change and roll back?
 * Of the kinds of nodes that are not named here some do (XML, JSON).
 */
static bool
varies(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			return expression_tree_walker(node, varies, context);
		case T_ArrayExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_CoerceViaIO:
		case T_CollateExpr:
		case T_Const:
		case T_DistinctExpr:
		case T_FuncExpr:
		case T_MinMaxExpr:
		case T_NullIfExpr:
		case T_NullTest:
		case T_OpExpr:
		case T_RelabelType:
		case T_ScalarArrayOpExpr:
		case T_SubscriptingRef:
		case T_Var:
			return has_varying_type(node) ||
				check_functions_in_node(node, is_varying_function, context) ||
				expression_tree_walker(node, varies, context);
		default:
			return true;
	}
}

/*
 * Is this so of an index's expressions, or predicate, as they are stored?  In
 * the relation cache the bodies of SQL functions may stand instead, with names
 * that this session has found.
 */
static bool
is_so_of_stored(HeapTuple tuple, AttrNumber attribute,
				bool (*is_so) (Node *node, void *context))
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(INDEXRELID, tuple, attribute, &isnull);

	return !isnull && is_so(stringToNode(TextDatumGetCString(stored)), NULL);
}

static bool
is_so_of_index(Relation index, bool (*is_so) (Node *node, void *context))
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID,
										ObjectIdGetDatum(RelationGetRelid(index)));
	bool		result = true;

	if (HeapTupleIsValid(tuple))
	{
		result = is_so_of_stored(tuple, Anum_pg_index_indexprs, is_so) ||
			is_so_of_stored(tuple, Anum_pg_index_indpred, is_so);
		ReleaseSysCache(tuple);
	}
	return result;
}

/* Does a build run functions of users? */
static bool
build_runs_functions(Relation index)
{
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
	return is_so_of_index(index, runs_functions);
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
euno_session_is_trusted(Relation index)
{
	Oid			owner = owner_of(index->rd_index->indrelid);

	return has_privs_of_role(GetUserId(), owner) &&
		has_privs_of_role(GetSessionUserId(), owner);
}

bool
euno_session_may_evaluate(Relation index)
{
	return euno_session_is_trusted(index) || !build_runs_functions(index);
}

bool
euno_index_varies(Relation index)
{
	return build_runs_functions(index) || is_so_of_index(index, varies);
}

EunoBuilder
euno_index_builder(Relation index)
{
	if (!euno_index_varies(index))
		return EUNO_BUILDER_SESSION;
	return euno_session_may_evaluate(index) && euno_is_private(index) ?
		EUNO_BUILDER_PRIVATE : EUNO_BUILDER_WORKER;
}
