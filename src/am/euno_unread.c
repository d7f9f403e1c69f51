/*-------------------------------------------------------------------------
 *
 * euno_unread.c
 *	  Index-only scans whose columns nobody reads.
 *
 * count(*) wants rows, not what is in them.  The server does not say so: an
 * index-only scan has to return a tuple, and its slot gets every column of it.
 * But who reads that slot can be seen: a scan that goes on for longer than one
 * batch looks for itself among the nodes of the queries that are running, and
 * if its rows go to an aggregate without grouping in whose expressions there is
 * no column, any tuple will do.  Then keys need not be copied out of the tree,
 * nor index tuples made of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "am/euno_scan.h"
#include "euno_compat.h"

/*
 * A query that is running, in memory of its own; it leaves the list when that
 * is given back, also by an error.
 */
typedef struct RunningQuery
{
	QueryDesc  *desc;
	struct RunningQuery *outer; /* began before */
	MemoryContextCallback callback;
} RunningQuery;

static RunningQuery *running = NULL;
static ExecutorStart_hook_type previous_hook = NULL;

static void
forget_query(void *arg)
{
	RunningQuery **link = &running;

	while (*link != arg)
		link = &(*link)->outer;
	*link = (*link)->outer;
}

/* Most short queries are of one node, or write what it finds. */
static bool
has_no_aggregate(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	if (IsA(plan, ModifyTable))
		plan = outerPlan(plan);
	return stmt->subplans == NIL &&
		(IsA(plan, IndexScan) || IsA(plan, IndexOnlyScan) ||
		 (IsA(plan, Result) && outerPlan(plan) == NULL));
}

static void
note_query(QueryDesc *desc)
{
	RunningQuery *query;

	if (has_no_aggregate(desc->plannedstmt))
		return;
	query = MemoryContextAlloc(desc->estate->es_query_cxt, sizeof(RunningQuery));
	query->desc = desc;
	query->outer = running;
	query->callback.func = forget_query;
	query->callback.arg = query;
	running = query;
	MemoryContextRegisterResetCallback(desc->estate->es_query_cxt,
									   &query->callback);
}

static void
executor_start(QueryDesc *desc, int eflags)
{
	if (previous_hook)
		previous_hook(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
	note_query(desc);
}

/* Does an aggregate count rows, whatever is in them? */
static bool
counts_rows(const AggState *state)
{
	Agg		   *agg = (Agg *) state->ss.ps.plan;

	return agg->aggstrategy == AGG_PLAIN && agg->numCols == 0 &&
		agg->chain == NIL &&
		!contain_var_clause((Node *) agg->plan.targetlist) &&
		!contain_var_clause((Node *) agg->plan.qual);
}

/* Does the node itself do nothing with columns? */
static bool
hands_on(const IndexOnlyScanState *state)
{
	const Plan *plan = state->ss.ps.plan;

	return plan->qual == NIL &&
		(state->ss.ps.ps_ProjInfo == NULL ||
		 !contain_var_clause((Node *) plan->targetlist));
}

/*
 * Does the node return the scan's rows as they are?  It is the scan, or takes
 * them from there: Append, if they are a partition's, or LIMIT.
 */
static bool
passes_on(const PlanState *state, const IndexScanDescData *scan)
{
	if (state == NULL)
		return false;
	if (IsA(state, IndexOnlyScanState))
	{
		const IndexOnlyScanState *found = (const IndexOnlyScanState *) state;

		return found->ioss_ScanDesc == scan && hands_on(found);
	}
	if (IsA(state, LimitState))
		return ((const Limit *) state->plan)->limitOption == LIMIT_OPTION_COUNT &&
			passes_on(outerPlanState(state), scan);
	if (IsA(state, AppendState))
	{
		const AppendState *append = (const AppendState *) state;

		for (int i = 0; i < append->as_nplans; i++)
		{
			if (passes_on(append->appendplans[i], scan))
				return true;
		}
	}
	return false;
}

/* Looks for an aggregate that counts the scan's rows. */
static bool
find_count(PlanState *state, void *scan)
{
	return (IsA(state, AggState) && counts_rows((AggState *) state) &&
			passes_on(outerPlanState(state), scan)) ||
		planstate_tree_walker(state, find_count, scan);
}

static bool
is_unread(IndexScanDesc scan)
{
	for (RunningQuery *query = running; query != NULL; query = query->outer)
	{
		if (query->desc->planstate != NULL &&
			find_count(query->desc->planstate, scan))
			return true;
	}
	return false;
}

/* A tuple of NULLs. */
static IndexTuple
make_empty(EunoScan *so, TupleDesc desc)
{
	MemoryContext old = MemoryContextSwitchTo(so->context);
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		isnull[INDEX_MAX_KEYS];
	IndexTuple	result;

	memset(isnull, true, sizeof(isnull));
	result = index_form_tuple(desc, values, isnull);
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * To be called between two windows of an index-only scan, once: from the next
 * one on it may do without keys.
 */
void
euno_unread_look(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	so->looked = true;
	if (!is_unread(scan))
		return;
	so->empty = make_empty(so, scan->xs_itupdesc);
	euno_unread_begin(scan);
}

void
euno_unread_begin(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	so->unread = so->empty != NULL && so->range.exact;
	if (!so->unread)
		return;
	so->want_keys = false;
	scan->xs_itup = so->empty;
}

/*
 * A TID was announced, but its entry may have been removed since it was read,
 * and without the key it cannot be looked for.  Has its row a version that the
 * scan sees?  Then nobody can have removed it.  A row that has got its TID
 * since then is too new to be seen.
 */
bool
euno_unread_visible(IndexScanDesc scan, EunoTid tid)
{
	TupleTableSlot *slot = table_slot_create(scan->heapRelation, NULL);
	ItemPointerData pointer;
	bool		again = false;
	bool		all_dead;
	bool		visible;

	euno_tid_unpack(tid, &pointer);
	visible = table_index_fetch_tuple(scan->xs_heapfetch, &pointer,
									  scan->xs_snapshot, slot, &again,
									  &all_dead);
	ExecDropSingleTupleTableSlot(slot);
	return visible;
}

void
euno_unread_init(void)
{
	previous_hook = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
