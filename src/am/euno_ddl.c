/*-------------------------------------------------------------------------
 *
 * euno_ddl.c
 *	  Statements that ask for what cannot be had.
 *
 * Before version 18, PostgreSQL takes every unique index for a btree in two
 * places: INSERT ... ON CONFLICT fails on a table with any other, and an apply
 * worker whose replica identity it is finds no operator for it.  The first
 * gets a warning, the second is refused.
 *
 * Options that do not fit the index are refused when it is built; so that ALTER
 * INDEX does not leave it with such, they are looked at here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/euno_am.h"
#include "euno_compat.h"

static ProcessUtility_hook_type previous_hook = NULL;

/* This relation, if it is a euno index; else NULL. */
static Relation
open_if_ours(Oid oid)
{
	Relation	index;

	if (!OidIsValid(oid) || get_rel_relkind(oid) != RELKIND_INDEX)
		return NULL;
	index = try_relation_open(oid, AccessShareLock);
	if (index != NULL &&
		(index->rd_indam == NULL || index->rd_indam->ambuild != eunobuild))
	{
		relation_close(index, AccessShareLock);
		index = NULL;
	}
	return index;
}

static void
refuse_replica_identity(AlterTableStmt *stmt)
{
	Oid			table = RangeVarGetRelid(stmt->relation, NoLock, true);
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ReplicaIdentityStmt *identity;

		if (cmd->subtype != AT_ReplicaIdentity || !OidIsValid(table))
			continue;
		identity = castNode(ReplicaIdentityStmt, cmd->def);
		if (identity->identity_type == REPLICA_IDENTITY_INDEX &&
			open_if_ours(get_relname_relid(identity->name,
										   get_rel_namespace(table))) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot use euno index \"%s\" as replica identity",
							identity->name),
					 errdetail("Logical replication to this version of PostgreSQL needs a btree index."),
					 errhint("Create a unique btree index on the same columns.")));
	}
}

/* After ALTER INDEX (or TABLE) ... SET or RESET. */
static void
check_options(AlterTableStmt *stmt)
{
	Relation	index;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype != AT_SetRelOptions &&
			cmd->subtype != AT_ResetRelOptions)
			continue;
		index = open_if_ours(RangeVarGetRelid(stmt->relation, NoLock, true));
		if (index != NULL)
		{
			euno_options_check(index);
			relation_close(index, AccessShareLock);
		}
	}
}

static void
process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	Node	   *stmt = pstmt->utilityStmt;
	AlterTableStmt *alter = IsA(stmt, AlterTableStmt) ?
		(AlterTableStmt *) stmt : NULL;
	bool		warn = false;

	if (EUNO_UNIQUE_MEANS_BTREE && alter != NULL)
		refuse_replica_identity(alter);
	else if (EUNO_UNIQUE_MEANS_BTREE && IsA(stmt, IndexStmt))
	{
		IndexStmt  *create = (IndexStmt *) stmt;

		warn = create->unique && create->accessMethod != NULL &&
			strcmp(create->accessMethod, "euno") == 0;
	}

	(previous_hook ? previous_hook : standard_ProcessUtility)
		(pstmt, query, read_only_tree, context, params, environment, dest,
		 completion);

	/* stmt may have gone by now, if it was a ROLLBACK or the like */
	if (alter != NULL)
		check_options(alter);
	if (warn)
		ereport(WARNING,
				(errmsg("INSERT ... ON CONFLICT will fail on this table while it has a unique euno index"),
				 errdetail("Before version 18, PostgreSQL supports it with unique btree indexes only."),
				 errhint("If you need ON CONFLICT, use EXCLUDE USING euno (column WITH =), or a unique btree index.")));
}

void
euno_ddl_init(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
