/*-------------------------------------------------------------------------
 *
 * euno_ddl.c
 *	  Statements that ask for what cannot be had.
 *
 * Before version 18, PostgreSQL is not ready for unique indexes other than
 * btrees:
 *
 *	- INSERT ... ON CONFLICT fails on a table with one: a warning;
 *	- REFRESH MATERIALIZED VIEW CONCURRENTLY does not take one: a warning;
 *	- an apply worker whose replica identity it is finds no operator for it:
 *	  refused;
 *	- the planner's proofs of uniqueness do not know it: euno_planner.c gives
 *	  its families the names of btree's.
 *
 * As the target of a foreign key, and on a partitioned table, the server itself
 * refuses one.
 *
 * Options that do not fit the index are refused when it is built; so that
 * ALTER INDEX does not leave it with such, they are looked at here.
 *
 * A type that can be taken for another one, as citext for text, may get the
 * other one's operator class unasked; an index that is made of such is
 * refused.
 *
 * After ALTER TYPE ... ADD VALUE, euno_labels.c looks at the enum's labels.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/euno_ddl.h"
#include "am/euno_state.h"
#include "euno_compat.h"

static ProcessUtility_hook_type previous_hook = NULL;

bool
euno_is_our_method(Oid method)
{
	return method >= FirstNormalObjectId &&
		method == get_index_am_oid("euno", true);
}

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

bool
euno_is_our_index(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	Form_pg_class form;
	bool		ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	ours = form->relkind == RELKIND_INDEX && euno_is_our_method(form->relam);
	ReleaseSysCache(tuple);
	return ours;
}

/* Whoever may not alter the table is told so by the server. */
static void
refuse_replica_identity(AlterTableStmt *stmt)
{
	Oid			table = RangeVarGetRelid(stmt->relation, NoLock, true);
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ReplicaIdentityStmt *identity;

		if (cmd->subtype != AT_ReplicaIdentity || !OidIsValid(table) ||
			!euno_is_table_owner(table, GetUserId()))
			continue;
		identity = castNode(ReplicaIdentityStmt, cmd->def);
		if (identity->identity_type == REPLICA_IDENTITY_INDEX &&
			euno_is_our_index(get_relname_relid(identity->name,
												get_rel_namespace(table))))
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

/*
 * Not when an index that is there is built again (TRUNCATE, REINDEX).  If the
 * operator class is the type's default one, nobody can be seen to have chosen
 * it.
 */
void
euno_ddl_check_types(Relation index)
{
	if (index->rd_createSubid == InvalidSubTransactionId &&
		index->rd_index->indisvalid)
		return;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			type = getBaseType(TupleDescAttr(RelationGetDescr(index), i)->atttypid);
		Oid			btree = GetDefaultOpClass(type, BTREE_AM_OID);
		Oid			ours = GetDefaultOpClass(type, index->rd_rel->relam);

		if (OidIsValid(btree) && OidIsValid(ours) &&
			get_opclass_family(ours) == index->rd_opfamily[i] &&
			get_opclass_input_type(ours) == index->rd_opcintype[i] &&
			get_opclass_input_type(btree) != index->rd_opcintype[i])
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("data type %s has no operator class of its own for access method \"euno\"",
							format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY)),
					 errdetail("Index \"%s\" would be in the order of type %s, and queries of column \"%s\" would not use it.",
							   RelationGetRelationName(index),
							   format_type_be(index->rd_opcintype[i]),
							   NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname)),
					 errhint("Give it that of btree, by euno_copy_opclasses('%s'), or index the value as %s, by an expression.",
							 format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY),
							 format_type_be(index->rd_opcintype[i]))));
	}
}

/*
 * A unique index of ours that a statement will make if nothing is wrong with
 * it, and "table" is not NULL.
 */
typedef struct NewUnique
{
	char	   *table;
	bool		of_view;		/* a materialized one */
} NewUnique;

static NewUnique
new_unique(const IndexStmt *create)
{
	NewUnique	result = {.table = NULL};
	Oid			table;
	char		kind;

	if (!create->unique || create->accessMethod == NULL ||
		strcmp(create->accessMethod, "euno") != 0)
		return result;
	table = RangeVarGetRelid(create->relation, NoLock, true);
	kind = OidIsValid(table) ? get_rel_relkind(table) : '\0';
	if ((kind != RELKIND_RELATION && kind != RELKIND_MATVIEW) ||
		!euno_is_table_owner(table, GetUserId()) ||
		(create->concurrent && IsTransactionBlock()) ||
		(create->if_not_exists && create->idxname != NULL &&
		 OidIsValid(get_relname_relid(create->idxname,
									  get_rel_namespace(table)))))
		return result;
	result.table = pstrdup(create->relation->relname);
	result.of_view = kind == RELKIND_MATVIEW;
	return result;
}

static void
warn_of_unique(const NewUnique *unique)
{
	if (unique->of_view)
		ereport(WARNING,
				(errmsg("REFRESH MATERIALIZED VIEW CONCURRENTLY does not take a unique euno index of \"%s\"", unique->table),
				 errdetail("Before version 18, PostgreSQL supports it with unique btree indexes only.")));
	else
		ereport(WARNING,
				(errmsg("INSERT ... ON CONFLICT will fail on table \"%s\" while it has a unique euno index", unique->table),
				 errdetail("Before version 18, PostgreSQL supports it with unique btree indexes only."),
				 errhint("If you need ON CONFLICT DO NOTHING, use EXCLUDE USING euno (column WITH =); for DO UPDATE, or ON CONFLICT (column), a unique btree index.")));
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
	IndexStmt  *create = IsA(stmt, IndexStmt) ? (IndexStmt *) stmt : NULL;
	NewUnique	unique = {.table = NULL};
	EunoLabel  *labels = NULL;
	int			nlabels = 0;
	bool		ends_prepared = IsA(stmt, TransactionStmt) &&
		(((TransactionStmt *) stmt)->kind == TRANS_STMT_COMMIT_PREPARED ||
		 ((TransactionStmt *) stmt)->kind == TRANS_STMT_ROLLBACK_PREPARED);

	if (IsA(stmt, AlterEnumStmt) &&
		((AlterEnumStmt *) stmt)->newValNeighbor != NULL)
		nlabels = euno_labels_read(InvalidOid, &labels);
	if (EUNO_UNIQUE_MEANS_BTREE && alter != NULL)
		refuse_replica_identity(alter);
	else if (EUNO_UNIQUE_MEANS_BTREE && create != NULL)
		unique = new_unique(create);

	/* If it fails, CONCURRENTLY leaves the index behind. */
	if (unique.table != NULL && create->concurrent)
	{
		warn_of_unique(&unique);
		unique.table = NULL;
	}

	(previous_hook ? previous_hook : standard_ProcessUtility)
		(pstmt, query, read_only_tree, context, params, environment, dest,
		 completion);

	/* stmt may have gone by now, if it was a ROLLBACK or the like */
	if (alter != NULL)
		check_options(alter);
	if (labels != NULL)
		euno_labels_check(labels, nlabels);
	if (ends_prepared && euno_preloaded)
		euno_gc_prepared();
	if (unique.table != NULL)
		warn_of_unique(&unique);
}

void
euno_ddl_init(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
