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

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "am/euno_planner.h"
#include "am/euno_scan.h"
#include "euno_compat.h"

/* A descent takes about as long as this many operators. */
#define DESCENT_OPERATORS 25.0

/*
 * An entry takes about as long to read as nbtree's.  But behind the first batch
 * of a scan those whose rows go from their windows to their node in runs
 * (euno_direct.c) take this part of it.
 */
#define DIRECT_ENTRY	0.25

/*
 * To make the index tuple that an index-only scan returns takes about as long
 * as this many operators for each column, if values have to be decoded; if
 * they are but copied, enough to prefer the index that has fewer.
 */
#define DECODE_OPERATORS 2.0
#define COPY_OPERATORS	0.25

/* This many bytes of an entry are read in the time of an operator. */
#define OPERATOR_BYTES	128.0

/*
 * What is read in vain for each place that a scan skips to (see scan_limit.c):
 * it takes two descents, and two small batches.
 */
#define SKIP_DESCENTS	2
#define SKIP_ENTRIES	64

typedef struct BoundQuals
{
	List	   *quals;			/* those that bound the range of the scan */
	List	   *all;			/* RestrictInfos of all index quals */
	List	   *charged;		/* those of them that cost something */
	int			evaluated;		/* how many of those for each entry */
	double		num_sa_scans;
	int			end;			/* the first column without an equality */
	List	   *range;			/* the quals on that one */
	int			behind;			/* the first column behind that one with a
								 * qual, or -1 */
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
 * Is this one of euno_row_compare.c's, which the planner does not have?  With
 * it a scan of the index reads no more than without, and costs that much less:
 * if its evaluation counted, the planner might prefer one that reads and
 * discards all rows in front of the row that is compared with.
 */
static bool
is_implied(const IndexOptInfo *index, const RestrictInfo *rinfo)
{
	return list_member_ptr(index->indrestrictinfo, rinfo) &&
		!list_member_ptr(index->rel->baserestrictinfo, rinfo);
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

	bounds->quals = bounds->all = bounds->charged = bounds->range = NIL;
	bounds->num_sa_scans = 1;
	bounds->evaluated = 0;
	bounds->behind = -1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);

		if (!done && indexcol != iclause->indexcol)
		{
			if (equality)
			{
				indexcol++;
				bounds->range = NIL;
			}
			done = indexcol != iclause->indexcol;
			equality = false;
			if (done)
				bounds->behind = iclause->indexcol;
		}
		if (!is_implied(index, iclause->rinfo))
		{
			bounds->charged = list_concat(bounds->charged, iclause->indexquals);
			if (done)
				bounds->evaluated += list_length(iclause->indexquals);
		}
		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (!done &&
				is_equality(root, index, indexcol, rinfo, &bounds->num_sa_scans))
				equality = true;
			rinfo = euno_row_compare_whole(index, rinfo);
			bounds->all = lappend(bounds->all, rinfo);
			if (done)
				continue;
			bounds->quals = lappend(bounds->quals, rinfo);
			bounds->range = lappend(bounds->range, rinfo);
		}
	}
	bounds->end = indexcol;
}

/*
 * How many places a scan would skip to: one for each combination of the
 * columns from the end of its range to the one behind it.
 * Infinite if that is not known, or if the index is not one that skips.
 */
static double
skip_places(PlannerInfo *root, IndexOptInfo *index, const BoundQuals *bounds)
{
	double		places = 1;
	Relation	rel = index_open(index->indexoid, NoLock);
	bool		skips = euno_index_open(rel)->order == EUNO_ORDER_BYTES;

	index_close(rel, NoLock);
	for (int i = bounds->end; i < bounds->behind && skips; i++)
	{
		TargetEntry *column = list_nth_node(TargetEntry, index->indextlist, i);
		VariableStatData vardata;
		bool		isdefault;
		double		distinct;

		examine_variable(root, (Node *) column->expr, 0, &vardata);
		distinct = get_variable_numdistinct(&vardata, &isdefault);
		ReleaseVariableStats(vardata);
		skips = !isdefault;

		if (i == bounds->end)
			distinct *= clauselist_selectivity(root, bounds->range,
											   index->rel->relid, JOIN_INNER,
											   NULL);
		places *= Max(1.0, distinct);
	}
	return skips ? places : INFINITY;
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

/*
 * Does a scan return one row at most, or what is rounded to that?  Its page is
 * all of the heap that the planner counts, in whatever order (cost_index), and
 * the correlation, which takes as long as the rest, is of no use.
 */
static bool
on_one_page(const RelOptInfo *rel, Selectivity selectivity)
{
	double		pages = selectivity * rel->pages;

	return pages > 0 && pages <= 1 && selectivity * rel->tuples <= 1;
}

/* What it costs to read one entry. */
static Cost
entry_cost(const BoundQuals *bounds)
{
	return cpu_index_tuple_cost +
		cpu_operator_cost * list_length(bounds->charged);
}

/* Of what the planner has found ready: the tree may be given up meanwhile. */
static bool
is_radix(const EunoIndex *idx)
{
	const EunoTreeOps *ops = idx->slot != NULL ? idx->slot->ops : NULL;

	return ops != NULL && !ops->leaf_chain;
}

/*
 * What it costs to read the entries of a range and to hold them against the
 * conditions.
 *
 * All of an entry is read, and an index-only scan makes an index tuple of all
 * of its columns, those too that the query does not ask for.  Both count, so
 * that of several indexes that would do the narrow one is taken.
 *
 * Rows go to their node in runs for as much of a plain scan as follows the
 * heap's order, and for all of an index-only one.  But of a radix tree it may
 * take as long as that saves to put keys together, other than those of
 * neighboring numbers, which are mostly in the heap's order.
 *
 * Conditions that bound the range are evaluated at its ends alone, and do not
 * count for rows that go in runs.  For others they do, as nbtree's: a plain
 * scan's path becomes a bitmap scan's, too, and to make a bitmap, out of the
 * heap's order, takes longer than the planner counts.
 */
static Cost
range_cost(const IndexPath *path, const BoundQuals *bounds, double tuples,
		   double correlation)
{
	const IndexOptInfo *index = path->indexinfo;
	double		in_runs = correlation * correlation;
	Cost		direct = DIRECT_ENTRY * cpu_index_tuple_cost +
		cpu_operator_cost * bounds->evaluated;
	Cost		cost = entry_cost(bounds) * tuples;

	if (index->tuples > 0)
		cost += tuples * cpu_operator_cost / OPERATOR_BYTES *
			((double) index->pages * BLCKSZ / index->tuples);
	if (path->path.pathtype == T_IndexOnlyScan)
	{
		Relation	rel = index_open(index->indexoid, NoLock);
		const EunoIndex *idx = euno_index_open(rel);

		cost += tuples * cpu_operator_cost * index->ncolumns *
			(euno_key_tuple_is_plain(idx->schema) ?
			 COPY_OPERATORS : DECODE_OPERATORS);
		if (!is_radix(idx))
			in_runs = 1;
		index_close(rel, NoLock);
	}
	if (tuples > EUNO_FIRST_BATCH)
		cost -= in_runs * (tuples - EUNO_FIRST_BATCH) *
			(entry_cost(bounds) - direct);
	return cost;
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
	Cost		descent = DESCENT_OPERATORS * cpu_operator_cost;

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

	if (bounds.behind > 0)
	{
		double		places = skip_places(root, index, &bounds);
		double		found = ceil(*selectivity * index->rel->tuples);

		/* Where it does not pay, a scan does not skip */
		if (places * SKIP_ENTRIES + found < tuples)
		{
			tuples = places * SKIP_ENTRIES + found;
			bounds.num_sa_scans += SKIP_DESCENTS * places;
		}
	}

	*startup_cost = index_other_operands_eval_cost(root, bounds.charged) + descent;
	*total_cost = *startup_cost + (bounds.num_sa_scans - 1) * descent;

	/*
	 * Of a scan of a single row, width and columns do not count.  There the
	 * planner counts a page of the heap for an index-only scan, too, since it
	 * rounds up (cost_index).  A wide index that spares the visit would seem
	 * dearer than a narrow one that does not.
	 */
	if (on_one_page(index->rel, *selectivity))
	{
		*correlation = 0;
		*total_cost += entry_cost(&bounds) * tuples;
	}
	else
	{
		*correlation = index_correlation(root, index);
		*total_cost += range_cost(path, &bounds, tuples, *correlation);
	}
	*pages = index->tuples > 0 ? ceil(tuples * index->pages / index->tuples) : 1.0;
}
