/*-------------------------------------------------------------------------
 *
 * euno_cost.c
 *	  What an index scan costs, seen from a tree in memory.
 *
 * nbtree's estimate with the disk taken out: a descent, and CPU per entry.  No
 * index page is ever read, so random_page_cost only counts for the heap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/* A descent takes about as long as this many operators. */
#define DESCENT_OPERATORS 25.0

typedef struct BoundQuals
{
	List	   *quals;			/* those that bound the range of the scan */
	List	   *all;			/* RestrictInfos of all index quals */
	double		num_sa_scans;
} BoundQuals;

/*
 * Is this qual an equality on its column?  IS NULL counts as one.
 */
static bool
is_equality(PlannerInfo *root, IndexOptInfo *index, int indexcol,
			RestrictInfo *rinfo, double *num_sa_scans)
{
	Expr	   *clause = rinfo->clause;
	Oid			op = InvalidOid;

	if (IsA(clause, NullTest))
		return ((NullTest *) clause)->nulltesttype == IS_NULL;

	if (IsA(clause, OpExpr))
		op = ((OpExpr *) clause)->opno;
	else if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *saop = (ScalarArrayOpExpr *) clause;
		double		length = euno_array_length(root, lsecond(saop->args));

		op = saop->opno;
		if (length > 1)
			*num_sa_scans *= length;
	}
	return OidIsValid(op) &&
		get_op_opfamily_strategy(op, index->opfamily[indexcol]) == BTEqualStrategyNumber;
}

/*
 * Equalities on leading columns, and what there is on the next one.
 */
static void
find_bound_quals(PlannerInfo *root, IndexPath *path, BoundQuals *bounds)
{
	IndexOptInfo *index = path->indexinfo;
	int			indexcol = 0;
	bool		equality = false;
	bool		done = false;
	ListCell   *lc;
	ListCell   *lc2;

	bounds->quals = bounds->all = NIL;
	bounds->num_sa_scans = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);

		if (!done && indexcol != iclause->indexcol)
		{
			done = !equality || ++indexcol != iclause->indexcol;
			equality = false;
		}
		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			bounds->all = lappend(bounds->all, rinfo);
			if (done)
				continue;
			if (is_equality(root, index, indexcol, rinfo, &bounds->num_sa_scans))
				equality = true;
			bounds->quals = lappend(bounds->quals, rinfo);
		}
	}
}

/*
 * How well the heap's order follows the index's: the first column's
 * correlation, less for more columns, as in btcostestimate.
 */
static double
index_correlation(PlannerInfo *root, IndexOptInfo *index)
{
	VariableStatData vardata = {0};
	RangeTblEntry *rte = planner_rt_fetch(index->rel->relid, root);
	bool		is_column = index->indexkeys[0] != 0;
	double		correlation = 0;
	AttStatsSlot sslot;
	Oid			less;

	vardata.freefunc = ReleaseSysCache;
	if (is_column)
	{
		if (!get_relation_stats_hook ||
			!get_relation_stats_hook(root, rte, index->indexkeys[0], &vardata))
			vardata.statsTuple = SearchSysCache3(STATRELATTINH,
												 ObjectIdGetDatum(rte->relid),
												 Int16GetDatum(index->indexkeys[0]),
												 BoolGetDatum(rte->inh));
	}
	else if (!get_index_stats_hook ||
			 !get_index_stats_hook(root, index->indexoid, 1, &vardata))
		vardata.statsTuple = SearchSysCache3(STATRELATTINH,
											 ObjectIdGetDatum(index->indexoid),
											 Int16GetDatum(1),
											 BoolGetDatum(false));

	less = get_opfamily_member(index->opfamily[0], index->opcintype[0],
							   index->opcintype[0], BTLessStrategyNumber);
	if (HeapTupleIsValid(vardata.statsTuple) && OidIsValid(less) &&
		get_attstatsslot(&sslot, vardata.statsTuple, STATISTIC_KIND_CORRELATION,
						 less, ATTSTATSSLOT_NUMBERS))
	{
		if (sslot.nnumbers == 1)
			correlation = sslot.numbers[0];
		if (index->reverse_sort && index->reverse_sort[0])
			correlation = -correlation;
		if (index->nkeycolumns > 1)
			correlation *= 0.75;
		free_attstatsslot(&sslot);
	}
	ReleaseVariableStats(vardata);
	return correlation;
}

void
eunocostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
				 Cost *startup_cost, Cost *total_cost,
				 Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	Oid			relid = index->rel->relid;
	BoundQuals	bounds;
	List	   *quals;
	double		tuples;
	Cost		descent;
	Cost		per_tuple;

	find_bound_quals(root, path, &bounds);

	quals = add_predicate_to_index_quals(index, bounds.all);
	*selectivity = clauselist_selectivity(root, quals, relid, JOIN_INNER, NULL);

	/* Entries a search reads: those between its bounds. */
	quals = add_predicate_to_index_quals(index, bounds.quals);
	tuples = clauselist_selectivity(root, quals, relid, JOIN_INNER, NULL) *
		index->rel->tuples;
	tuples = rint(tuples / bounds.num_sa_scans);
	tuples = Max(tuples, 1.0);
	if (index->tuples > 0)
		tuples = Min(tuples, index->tuples);
	tuples *= bounds.num_sa_scans;

	descent = DESCENT_OPERATORS * cpu_operator_cost;
	per_tuple = cpu_index_tuple_cost +
		cpu_operator_cost * (list_length(bounds.all) + list_length(path->indexorderbys));

	*startup_cost = index_other_operands_eval_cost(root, bounds.all) + descent;
	*total_cost = *startup_cost + (bounds.num_sa_scans - 1) * descent +
		tuples * per_tuple;
	*correlation = index_correlation(root, index);
	*pages = index->tuples > 0 ? ceil(tuples * index->pages / index->tuples) : 1.0;
}
