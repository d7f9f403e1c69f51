/*-------------------------------------------------------------------------
 *
 * core_swap.c
 *	  Makes euno indexes where a statement would make btrees, for
 *	  test/check/core.
 *
 * Left as they are: indexes of constraints, unique ones (their tables would
 * refuse ON CONFLICT), those of catalogs, and those with a column for whose
 * type or operator class euno has none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_utilcmd.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static char *structure;
static ProcessUtility_hook_type previous_hook;

/* Whether euno has operator classes for all columns; locks the table. */
static bool
supported(Oid am, IndexStmt *stmt, const char *query)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, stmt->concurrent ?
										 ShareUpdateExclusiveLock : ShareLock, true);
	ListCell   *lc;

	if (!OidIsValid(am) || relid < FirstNormalObjectId)
		return false;
	stmt = transformIndexStmt(relid, copyObject(stmt), query);
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *elem = lfirst_node(IndexElem, lc);
		Oid			type = InvalidOid;

		if (elem->expr)
			type = exprType(elem->expr);
		else if (get_attnum(relid, elem->name) > 0)
			type = get_atttype(relid, get_attnum(relid, elem->name));
		if (!OidIsValid(type) ||
			!OidIsValid(elem->opclass ? get_opclass_oid(am, elem->opclass, true) :
						GetDefaultOpClass(type, am)))
			return false;
	}
	return true;
}

static void
swap(IndexStmt *stmt)
{
	ListCell   *lc;

	stmt->accessMethod = "euno";
	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		/* Euno has no deduplication, and a fillfactor from 50 on. */
		if (strcmp(option->defname, "deduplicate_items") == 0 ||
			(strcmp(option->defname, "fillfactor") == 0 && defGetInt32(option) < 50))
			stmt->options = foreach_delete_current(stmt->options, lc);
	}
	if (structure[0] != '\0')
		stmt->options = lappend(stmt->options,
								makeDefElem("structure", (Node *) makeString(structure), -1));
}

static void
swap_utility(PlannedStmt *pstmt, const char *query, bool readonly,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *env, DestReceiver *dest, QueryCompletion *qc)
{
	IndexStmt  *stmt = (IndexStmt *) pstmt->utilityStmt;

	if (IsA(stmt, IndexStmt) && !stmt->unique && !stmt->isconstraint &&
		strcmp(stmt->accessMethod, "btree") == 0 &&
		supported(get_index_am_oid("euno", true), stmt, query))
	{
		pstmt = copyObject(pstmt);
		swap((IndexStmt *) pstmt->utilityStmt);
	}
	(previous_hook ? previous_hook : standard_ProcessUtility)
		(pstmt, query, readonly, context, params, env, dest, qc);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("core_swap.structure", "Structure of the indexes, if not euno's default.",
							   NULL, &structure, "", PGC_USERSET, 0, NULL, NULL, NULL);
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = swap_utility;
}
