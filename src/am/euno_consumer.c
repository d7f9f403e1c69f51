/*-------------------------------------------------------------------------
 *
 * euno_consumer.c
 *	  For whom a scan reads.
 *
 * An access method is not told what its rows are for.  A scan that goes on for
 * longer than one batch looks for itself among the nodes of the queries that
 * are running: which node it is of, and who reads that node's rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "am/euno_planner.h"
#include "am/euno_scan.h"

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

/* Most statements that write read no more than a few rows, to write to. */
static bool
reads_little(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	if (IsA(plan, ModifyTable))
	{
		plan = outerPlan(plan);
		if (IsA(plan, IndexScan))
			return stmt->subplans == NIL;
	}
	return stmt->subplans == NIL && IsA(plan, Result) && outerPlan(plan) == NULL;
}

static void
note_query(QueryDesc *desc)
{
	RunningQuery *query;

	if (reads_little(desc->plannedstmt))
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

/* What is looked for, and what was found. */
typedef struct Search
{
	const IndexScanDescData *scan;
	PlanState  *node;
	bool		unread;
} Search;

/* An aggregate is come to before the scan whose rows it counts. */
static bool
search(PlanState *state, void *arg)
{
	Search	   *sought = arg;

	if (IsA(state, AggState) && counts_rows((AggState *) state) &&
		passes_on(outerPlanState(state), sought->scan))
		sought->unread = true;
	if ((IsA(state, IndexOnlyScanState) &&
		 ((IndexOnlyScanState *) state)->ioss_ScanDesc == sought->scan) ||
		(IsA(state, IndexScanState) &&
		 ((IndexScanState *) state)->iss_ScanDesc == sought->scan))
	{
		sought->node = state;
		return true;
	}
	return planstate_tree_walker(state, search, arg);
}

void
euno_consumer_find(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	Search		sought = {.scan = scan};

	so->looked = true;
	for (RunningQuery *query = running; query != NULL; query = query->outer)
	{
		if (query->desc->planstate != NULL &&
			search(query->desc->planstate, &sought))
			break;
	}
	if (sought.unread)
		euno_unread_take(scan);
	if (sought.node != NULL)
		euno_direct_take(scan, sought.node);
}

void
euno_consumer_init(void)
{
	previous_hook = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
