/*-------------------------------------------------------------------------
 *
 * euno_row_or.c
 *	  Paths for row comparisons under OR: (a, b) > (1, 2) OR c = 3.
 *
 * What a row comparison implies depends on the index (euno_row_compare.c), and
 * the planner looks for one for each arm of an OR by itself.  So here each arm
 * is planned as if it were all there is to the table's conditions, with those
 * beside the OR; what is found for a bitmap heap scan of it becomes one part
 * of a BitmapOr.  The OR itself stays as a filter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

#include "am/euno_planner.h"

/* Row comparisons beside an OR, times its arms. */
#define MOST_ROWS_OF_ARMS 32

/* The conditions of an arm, each a RestrictInfo */
static List *
conditions_of(Node *arm)
{
	return is_andclause(arm) ? ((BoolExpr *) arm)->args : list_make1(arm);
}

static List *
arms_of(const RestrictInfo *whole)
{
	return ((BoolExpr *) whole->orclause)->args;
}

/* Does any arm of an OR compare rows? */
static bool
any_arm_compares_rows(const RestrictInfo *whole)
{
	ListCell   *lc;

	foreach(lc, arms_of(whole))
	{
		if (euno_row_compare_is_among(conditions_of(lfirst(lc))))
			return true;
	}
	return false;
}

/*
 * The bitmap that the cheapest bitmap heap scan for these conditions alone is
 * made of; NULL if there is none.  Leaves the table's description changed.
 */
static Path *
bitmap_of(PlannerInfo *root, RelOptInfo *rel, List *conditions)
{
	Path	   *cheapest = NULL;
	ListCell   *lc;

	rel->baserestrictinfo = conditions;
	rel->joininfo = NIL;
	rel->has_eclass_joins = false;
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	foreach(lc, rel->indexlist)
		lfirst_node(IndexOptInfo, lc)->amhasgettuple = false;	/* bitmaps only */

	check_index_predicates(root, rel);	/* this arm's may imply more of them */
	create_index_paths(root, rel);
	euno_row_compare_paths(root, rel);
	foreach(lc, rel->pathlist)
	{
		if (cheapest == NULL ||
			compare_path_costs(lfirst(lc), cheapest, TOTAL_COST) < 0)
			cheapest = lfirst(lc);
	}
	return cheapest != NULL ? castNode(BitmapHeapPath, cheapest)->bitmapqual : NULL;
}

/*
 * Bitmaps for all arms of an OR, with the conditions beside it; NIL if there
 * is an arm without.
 */
static List *
bitmaps_of_arms(PlannerInfo *root, RelOptInfo *rel, const RestrictInfo *whole,
				List *beside)
{
	RelOptInfo	table = *rel;
	int			count = list_length(rel->indexlist);
	IndexOptInfo *indexes = palloc(sizeof(IndexOptInfo) * count);
	List	   *bitmaps = NIL;
	ListCell   *lc;

	for (int i = 0; i < count; i++)
		indexes[i] = *list_nth_node(IndexOptInfo, rel->indexlist, i);
	foreach(lc, arms_of(whole))
	{
		Path	   *bitmap = bitmap_of(root, rel,
									   list_concat_copy(conditions_of(lfirst(lc)), beside));

		*rel = table;
		for (int i = 0; i < count; i++)
			*list_nth_node(IndexOptInfo, rel->indexlist, i) = indexes[i];
		if (bitmap == NULL)
			return NIL;
		bitmaps = lappend(bitmaps, bitmap);
	}
	return bitmaps;
}

/* Adds bitmap heap scans for one OR to the table's paths. */
static void
add_paths(PlannerInfo *root, RelOptInfo *rel, const RestrictInfo *whole,
		  List *beside)
{
	List	   *bitmaps = bitmaps_of_arms(root, rel, whole, beside);
	Path	   *any;

	if (bitmaps == NIL)
		return;
	any = (Path *) create_bitmap_or_path(root, rel, bitmaps);
	add_path(rel, (Path *) create_bitmap_heap_path(root, rel, any,
												   rel->lateral_relids, 1.0, 0));
	if (rel->consider_parallel && rel->lateral_relids == NULL)
		create_partial_bitmap_paths(root, rel, any);
}

/*
 * The table has an index of ours.  Row comparisons beside an OR are planned
 * again for each arm; where that would be often, they are left to the filter.
 */
void
euno_row_or_paths(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *ors = NIL;
	List	   *others = NIL;
	List	   *rows = NIL;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, lc);

		if (IsA(condition->clause, RowCompareExpr))
			rows = lappend(rows, condition);
		else if (!restriction_is_or_clause(condition))
			others = lappend(others, condition);
		else if (any_arm_compares_rows(condition))
			ors = lappend(ors, condition);
	}
	foreach(lc, ors)
	{
		int			narms = list_length(arms_of(lfirst(lc)));
		bool		often = narms * list_length(rows) > MOST_ROWS_OF_ARMS;

		add_paths(root, rel, lfirst(lc),
				  often ? others : list_concat_copy(others, rows));
	}
}
