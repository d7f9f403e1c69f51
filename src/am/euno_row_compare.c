/*-------------------------------------------------------------------------
 *
 * euno_row_compare.c
 *	  Paths for row comparisons: (a, b) > (1, 2).
 *
 * The planner offers those to btree only, and the executor refuses them in a
 * scan of anything else.  But (a, b) > (1, 2) implies a >= 1, and that can be
 * offered to every index; it is where a search by pages of results begins.
 * The row comparison itself stays as a filter, as it does with btree where
 * only its first column matches the index (expand_indexqual_rowcompare).
 *
 * The implied conditions must not count in estimates of the table's rows, which
 * have been made when we are called: they are among the index's conditions
 * only, and only while its paths are made once more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "am/euno_am.h"
#include "euno_compat.h"

static set_rel_pathlist_hook_type previous_hook = NULL;

/* What a row comparison implies of its first pair; NULL if that is unknown. */
static Expr *
implied_by_row_compare(const RowCompareExpr *row)
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

/* Conditions that the table's row comparisons imply. */
static List *
implied_conditions(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *implied = NIL;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *whole = lfirst_node(RestrictInfo, lc);
		RestrictInfo *first;
		Expr	   *expr = NULL;

		if (IsA(whole->clause, RowCompareExpr))
			expr = implied_by_row_compare((RowCompareExpr *) whole->clause);
		if (expr == NULL)
			continue;

		/* It may be no earlier evaluated than what it comes of. */
		first = make_simple_restrictinfo(root, expr);
		first->security_level = whole->security_level;
		first->leakproof = whole->security_level > 0 &&
			!contain_leaked_vars((Node *) expr);
		implied = lappend(implied, first);
	}
	return implied;
}

/* Makes the paths of one index again, with more conditions. */
static void
add_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
		  List *implied)
{
	List	   *indexes = rel->indexlist;
	List	   *conditions = index->indrestrictinfo;

	rel->indexlist = list_make1(index);
	index->indrestrictinfo = list_concat_copy(conditions, implied);
	create_index_paths(root, rel);
	index->indrestrictinfo = conditions;
	rel->indexlist = indexes;
}

static void
add_row_compare_paths(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	List	   *implied = NIL;
	ListCell   *lc;

	/* Otherwise the planner makes no paths of indexes either */
	if (rte->rtekind != RTE_RELATION || rte->inh ||
		rte->tablesample != NULL || IS_DUMMY_REL(rel))
		return;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (!euno_planner_is_ours(index))
			continue;
		if (implied == NIL)
			implied = implied_conditions(root, rel);
		if (implied == NIL)
			return;
		add_paths(root, rel, index, implied);
	}
}

/*
 * Ours stand for paths that the planner should have made itself: they come
 * before what other extensions do with those.  One that has rows elsewhere
 * than in the table, or obeys a hint, may take all paths of indexes away.
 */
static void
relation_paths(PlannerInfo *root, RelOptInfo *rel, Index rti,
			   RangeTblEntry *rte)
{
	add_row_compare_paths(root, rel, rte);
	if (previous_hook)
		previous_hook(root, rel, rti, rte);
}

void
euno_row_compare_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = relation_paths;
}
