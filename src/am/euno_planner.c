/*-------------------------------------------------------------------------
 *
 * euno_planner.c
 *	  What the planner sees of euno indexes.
 *
 * An index that is not READY is not there: queries use other plans while it is
 * being rebuilt, and a change of state invalidates them.  Neither planning nor
 * EXPLAIN ever builds a tree; but it leaves word for the launcher that one is
 * wanted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "storage/lockdefs.h"

#include "am/euno_am.h"
#include "euno_compat.h"

static get_relation_info_hook_type previous_hook = NULL;

/*
 * Ask for a rebuild in the background, unless the tree was evicted by hand.
 */
static void
want_tree(EunoIndex *idx)
{
	EunoTreeSlot *slot = euno_tree_get(&idx->key, idx->oid);

	if (slot != NULL && !slot->evicted)
		slot->wanted = true;
}

/*
 * The relation file has one page; tell the planner of the tree instead.  False
 * if the index must not be used now.
 */
static bool
describe_index(IndexOptInfo *info)
{
	const char *why;
	const char *hint;
	Relation	index;
	EunoIndex  *idx;
	EunoContext *cx;
	EunoTreeStats stats;
	EunoState	state;
	bool		ready;

	if (!euno_can_serve(&why, &hint))
		return false;

	/* get_relation_info has locked it */
	index = index_open(info->indexoid, NoLock);
	idx = euno_index_open(index);
	state = euno_index_pin(idx, &cx);
	ready = state == EUNO_STATE_READY;
	if (ready)
	{
		idx->slot->ops->stats(cx, &idx->slot->tree, &stats);
		info->pages = Max(1, euno_tree_bytes(idx->slot) / BLCKSZ);
		info->tuples = (double) stats.entries;
		info->tree_height = (int) stats.height - 1;
	}
	euno_index_unpin(idx);
	if (state == EUNO_STATE_ABSENT && index->rd_index->indisready)
		want_tree(idx);
	index_close(index, NoLock);

	if (ready && info->indpred == NIL)
		info->tuples = Min(info->tuples, info->rel->tuples);
	return ready;
}

static void
relation_info(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, relation, inhparent, rel);

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);

		/* The AM's OID is not known to us; this callback is only ours. */
		if ((void *) info->amcostestimate != (void *) eunocostestimate ||
			info->hypothetical)
			continue;
		if (!inhparent && !describe_index(info))
			rel->indexlist = foreach_delete_current(rel->indexlist, lc);
	}
}

void
euno_planner_init(void)
{
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = relation_info;
}
