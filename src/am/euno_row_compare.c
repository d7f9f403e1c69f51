/*-------------------------------------------------------------------------
 *
 * euno_row_compare.c
 *	  Paths for row comparisons: (a, b) > (1, 2).
 *
 * The planner offers those to btree only, and the executor refuses them in a
 * scan of anything else.  What follows from them can be offered to any index:
 * where its columns go on with the row's, a condition on the first of them
 * with an operator of our own, whose right side is the row (a #># ROW(1, 2)),
 * of which the scan makes one end of its range (scan_row.c); else a >= 1, as
 * btree does where only the first column matches
 * (expand_indexqual_rowcompare).
 *
 * The row comparison itself stays as a filter.  So our operators need not be
 * exact, and their function, which sees one column alone, is true always.  A
 * query cannot use them: there they would mean what the plan makes of them.
 *
 * What follows must not count in estimates of the table's rows, which have
 * been made when we are called: it is among the index's conditions only, and
 * only while its paths are made once more.
 *
 * Here are those that are among a table's conditions; for those under OR see
 * euno_row_or.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/euno_planner.h"
#include "euno_compat.h"

PG_FUNCTION_INFO_V1(euno_row_bound);
Datum
euno_row_bound(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(true);
}

/*
 * All expressions of a query come by here, to be simplified; those with ANY
 * and ALL when their costs are asked for, and have no node then.  Ours come by
 * for their costs only.
 */
PG_FUNCTION_INFO_V1(euno_row_bound_support);
Datum
euno_row_bound_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSimplify) ||
		(IsA(request, SupportRequestCost) &&
		 ((SupportRequestCost *) request)->node == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operators between a column and a row are for plans with euno indexes only"),
				 errhint("Compare rows with rows: (a, b) > (1, 2).")));
	PG_RETURN_POINTER(NULL);
}

/* Can a scan of the index have this on the other side of a condition? */
static bool
is_scan_constant(PlannerInfo *root, const IndexOptInfo *index, Node *node)
{
	return !bms_is_member(index->rel->relid, pull_varnos(root, node)) &&
		!contain_volatile_functions(node);
}

/*
 * Is this pair of a row comparison one of the index's column and something
 * else?  Returns the strategy of that comparison, or InvalidStrategy; "swap":
 * the column is on the right.
 */
static StrategyNumber
match_pair(PlannerInfo *root, IndexOptInfo *index, int column,
		   const RowCompareExpr *row, int pair, bool swap)
{
	Node	   *left = list_nth(row->largs, pair);
	Node	   *right = list_nth(row->rargs, pair);
	Oid			op = list_nth_oid(row->opnos, pair);
	Oid			collation = list_nth_oid(row->inputcollids, pair);

	if (OidIsValid(index->indexcollations[column]) &&
		index->indexcollations[column] != collation)
		return InvalidStrategy;
	if (!match_index_to_operand(swap ? right : left, column, index) ||
		!is_scan_constant(root, index, swap ? left : right))
		return InvalidStrategy;
	if (swap)
		op = get_commutator(op);
	return OidIsValid(op) ?
		get_op_opfamily_strategy(op, index->opfamily[column]) : InvalidStrategy;
}

/*
 * Whoever executes the plan needs the right to call the operator's function,
 * which some take from everybody.
 */
static bool
is_for_everybody(Oid op)
{
	return euno_function_aclcheck(get_opcode(op), ACL_ID_PUBLIC) == ACLCHECK_OK;
}

/*
 * A condition on the first of the index's columns, from "column" on, that go
 * on with a row's; NULL if there are fewer than two, or not all in the same
 * direction.
 */
static Expr *
bound_at(PlannerInfo *root, IndexOptInfo *index, int column,
		 const RowCompareExpr *row, bool swap)
{
	StrategyNumber strategy = match_pair(root, index, column, row, 0, swap);
	int			length = list_length(row->opnos);
	int			n = 1;
	RowExpr    *bound;
	Oid			op;

	if (strategy == InvalidStrategy || index->reverse_sort == NULL)
		return NULL;
	while (n < length && column + n < index->nkeycolumns &&
		   index->reverse_sort[column + n] == index->reverse_sort[column] &&
		   match_pair(root, index, column + n, row, n, swap) == strategy)
		n++;
	if (n == 1)
		return NULL;

	/* Where not all columns are there, their values can be equal */
	if (n < length)
		strategy = strategy < BTEqualStrategyNumber ?
			BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	op = get_opfamily_member(index->opfamily[column], ANYELEMENTOID, RECORDOID,
							 euno_row_strategy(strategy));
	if (!OidIsValid(op) || !is_for_everybody(op))
		return NULL;			/* a family that is not ours, perhaps */

	bound = makeNode(RowExpr);
	bound->args = list_copy_head(swap ? row->largs : row->rargs, n);
	bound->row_typeid = RECORDOID;
	bound->row_format = COERCE_EXPLICIT_CALL;
	bound->location = -1;
	return make_opclause(op, BOOLOID, false,
						 copyObject(linitial(swap ? row->rargs : row->largs)),
						 (Expr *) bound, InvalidOid,
						 linitial_oid(row->inputcollids));
}

/* What a row comparison implies of its first pair; NULL if that is unknown. */
static Expr *
implied_by_first(const RowCompareExpr *row)
{
	Oid			family = linitial_oid(row->opfamilies);
	int			strategy;
	Oid			left;
	Oid			right;
	Oid			op;

	get_op_opfamily_properties(linitial_oid(row->opnos), family, false,
							   &strategy, &left, &right);
	op = get_opfamily_member(family, left, right,
							 strategy <= BTLessEqualStrategyNumber ?
							 BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber);
	if (!OidIsValid(op))
		return NULL;
	return make_opclause(op, BOOLOID, false, copyObject(linitial(row->largs)),
						 copyObject(linitial(row->rargs)), InvalidOid,
						 linitial_oid(row->inputcollids));
}

/*
 * The column that the planner will find for a condition on "key" with an
 * operator that is in all families; -1 if there is none.
 */
static int
first_column(IndexOptInfo *index, Node *key, Oid collation)
{
	for (int column = 0; column < index->nkeycolumns; column++)
	{
		if (match_index_to_operand(key, column, index) &&
			(!OidIsValid(index->indexcollations[column]) ||
			 index->indexcollations[column] == collation))
			return column;
	}
	return -1;
}

/*
 * A condition of as much of a row comparison as one end of a range can be, on
 * *column.
 */
static Expr *
bound_by_row(PlannerInfo *root, IndexOptInfo *index,
			 const RowCompareExpr *row, int *column)
{
	Oid			collation = linitial_oid(row->inputcollids);
	bool		swap = false;

	*column = first_column(index, linitial(row->largs), collation);
	if (*column < 0)
	{
		swap = true;
		*column = first_column(index, linitial(row->rargs), collation);
	}
	return *column >= 0 ? bound_at(root, index, *column, row, swap) : NULL;
}

/*
 * Something implied as a condition; it may be no earlier evaluated than what
 * it comes of.  NULL: there is nothing, or that would be too late for an
 * index.
 */
static RestrictInfo *
as_condition(PlannerInfo *root, RelOptInfo *rel, const RestrictInfo *whole,
			 Expr *implied)
{
	RestrictInfo *part;

	if (implied == NULL)
		return NULL;
	part = make_simple_restrictinfo(root, implied);
	part->security_level = whole->security_level;
	part->leakproof = whole->leakproof ||
		(whole->security_level > 0 && !contain_leaked_vars((Node *) implied));
	return restriction_is_securely_promotable(part, rel) ? part : NULL;
}

/*
 * Conditions for the index that the table's row comparisons imply; those with
 * operators of ours are on *columns.
 */
static List *
implied_conditions(PlannerInfo *root, IndexOptInfo *index, Bitmapset **columns)
{
	List	   *implied = NIL;
	ListCell   *lc;

	foreach(lc, index->rel->baserestrictinfo)
	{
		RestrictInfo *whole = lfirst_node(RestrictInfo, lc);
		RowCompareExpr *row = (RowCompareExpr *) whole->clause;
		RestrictInfo *part;
		int			column;

		if (!IsA(row, RowCompareExpr))
			continue;
		part = as_condition(root, index->rel, whole,
							bound_by_row(root, index, row, &column));
		if (column < 0)
			continue;			/* it is of other indexes' columns */
		if (part != NULL)
			*columns = bms_add_member(*columns, column);
		else
			part = as_condition(root, index->rel, whole, implied_by_first(row));
		if (part != NULL)
			implied = lappend(implied, part);
	}
	return implied;
}

/*
 * Selectivities are estimated from this in place of a condition with an
 * operator of ours: the row comparison that it comes of, as the planner has
 * done for the table's rows.
 */
RestrictInfo *
euno_row_compare_whole(const IndexOptInfo *index, RestrictInfo *condition)
{
	OpExpr	   *clause = (OpExpr *) condition->clause;
	RowExpr    *bound;
	ListCell   *lc;

	if (!IsA(clause, OpExpr) || !IsA(lsecond(clause->args), RowExpr))
		return condition;
	bound = lsecond(clause->args);
	foreach(lc, index->rel->baserestrictinfo)
	{
		RestrictInfo *whole = lfirst_node(RestrictInfo, lc);
		RowCompareExpr *row = (RowCompareExpr *) whole->clause;

		if (!IsA(row, RowCompareExpr))
			continue;
		if ((linitial(row->rargs) == linitial(bound->args) &&
			 equal(linitial(row->largs), linitial(clause->args))) ||
			(linitial(row->largs) == linitial(bound->args) &&
			 equal(linitial(row->rargs), linitial(clause->args))))
			return whole;
	}
	return condition;
}

/* Can some row comparison of the table be a btree index's condition itself? */
static bool
has_row_condition(IndexOptInfo *index)
{
	ListCell   *lc;

	if (index->relam != BTREE_AM_OID)
		return false;
	foreach(lc, index->rel->baserestrictinfo)
	{
		RowCompareExpr *row = (RowCompareExpr *) lfirst_node(RestrictInfo, lc)->clause;
		Oid			collation;

		if (!IsA(row, RowCompareExpr))
			continue;
		collation = linitial_oid(row->inputcollids);
		if (first_column(index, linitial(row->largs), collation) >= 0 ||
			first_column(index, linitial(row->rargs), collation) >= 0)
			return true;
	}
	return false;
}

/* The indexes that may go with scans that have conditions of row comparisons. */
static List *
companions(const RelOptInfo *rel)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		if (!has_row_condition(lfirst(lc)))
			indexes = lappend(indexes, lfirst(lc));
	}
	return indexes;
}

/* The index's own families, where the planner has been told of btree's. */
static Oid *
own_families(const IndexOptInfo *info)
{
	Size		size = sizeof(Oid) * info->nkeycolumns;
	Oid		   *families = palloc(size);
	Relation	index = index_open(info->indexoid, NoLock); /* it is locked */

	memcpy(families, index->rd_opfamily, size);
	index_close(index, NoLock);
	return families;
}

/*
 * Takes the scans of one index out of the paths, and returns them.  Bitmap scans
 * stay, which may be of others, too.
 */
static List *
take_scans(List **paths, const IndexOptInfo *index)
{
	List	   *taken = NIL;
	ListCell   *lc;

	foreach(lc, *paths)
	{
		Path	   *path = lfirst(lc);

		if (IsA(path, IndexPath) && ((IndexPath *) path)->indexinfo == index)
		{
			*paths = foreach_delete_current(*paths, lc);
			taken = lappend(taken, path);
		}
	}
	return taken;
}

/*
 * Makes the paths of one index again, with more conditions, if its table's row
 * comparisons imply any, and those of the others, with which it may go into a
 * BitmapAnd.  But not with another's condition of the same comparison: both
 * would count, as if each left out its part of the rows.
 *
 * The index's scans without come after those with them: where all rows are
 * estimated to meet the conditions, (a, b) >= (1, 2) if 1 is the least a, these
 * cost as much, and the planner keeps what it has.  Columns on which the
 * conditions are have their own families for it; others keep what they are
 * called for conditions of other kinds.
 */
static void
add_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	List	   *indexes = rel->indexlist;
	List	   *conditions = index->indrestrictinfo;
	Oid		   *families = index->opfamily;
	Bitmapset  *columns = NULL;
	List	   *implied;

	index->opfamily = own_families(index);
	implied = implied_conditions(root, index, &columns);
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (!bms_is_member(i, columns))
			index->opfamily[i] = families[i];
	}
	index->indrestrictinfo = list_concat_copy(conditions, implied);
	if (implied != NIL)
	{
		List	   *scans = take_scans(&rel->pathlist, index);
		List	   *partial = take_scans(&rel->partial_pathlist, index);
		ListCell   *lc;

		rel->indexlist = companions(rel);
		create_index_paths(root, rel);
		rel->indexlist = indexes;
		foreach(lc, scans)
			add_path(rel, lfirst(lc));
		foreach(lc, partial)
			add_partial_path(rel, lfirst(lc));
	}
	index->opfamily = families;
	index->indrestrictinfo = conditions;
}

/* Does any of these conditions compare rows? */
bool
euno_row_compare_is_among(const List *conditions)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, RowCompareExpr))
			return true;
	}
	return false;
}

void
euno_row_compare_paths(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *lc;

	if (!euno_row_compare_is_among(rel->baserestrictinfo))
		return;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (euno_planner_is_ours(index) && !index->hypothetical)
			add_paths(root, rel, index);
	}
}
