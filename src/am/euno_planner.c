/*-------------------------------------------------------------------------
 *
 * euno_planner.c
 *	  What the planner sees of euno indexes.
 *
 * An index that is not READY is not there: queries use other plans while it is
 * being rebuilt, and a change of state invalidates them.  Neither planning nor
 * EXPLAIN builds a tree, but leaves word for the launcher that one is wanted.
 * (The look at an index's ends is a scan; it builds a tree only if that was
 * evicted after the scan had read a batch.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opfamily.h"
#include "nodes/pathnodes.h"
#include "storage/lockdefs.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/euno_operation.h"
#include "am/euno_planner.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* Of a type that no index orders; the catalogs have no name for it. */
#define ACLITEM_HASH_FAM_OID 2235

static euno_relation_hook_type previous_hook = NULL;

/* The access method's OID is not known to us; this callback is only ours. */
bool
euno_planner_is_ours(const IndexOptInfo *info)
{
	return (void *) info->amcostestimate == (void *) eunocostestimate &&
		info->amhasgetbitmap;	/* else see forbid_paths */
}

/*
 * Are all of a btree family's operators in ours, too, as what they are there?
 */
static bool
has_operators_of(Oid family, Oid btree)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY,
											  ObjectIdGetDatum(btree));
	bool		all = true;

	for (int i = 0; i < members->n_members && all; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		all = member->amopopr ==
			get_opfamily_member(family, member->amoplefttype,
								member->amoprighttype, member->amopstrategy);
	}
	ReleaseSysCacheList(members);
	return all;
}

/*
 * PostgreSQL knows by their OIDs which of btree's operator families can serve
 * LIKE in any collation, a network's addresses, and plain boolean columns; and
 * before 18 a unique index shows that a row has one partner in a join at most
 * only if its families are btree's.  Where ours has all operators of such a
 * family, give it that name: the scan keys that come of it are found in ours
 * by their operators.
 */
static void
name_families(const PlannerInfo *root, IndexOptInfo *info)
{
	bool		proof = EUNO_UNIQUE_MEANS_BTREE && info->unique &&
		root->simple_rel_array_size > 2;	/* more than one table */

	if (info->sortopfamily == NULL)
		return;					/* no btree family has its "<" */

	for (int i = 0; i < info->nkeycolumns; i++)
	{
		Oid			btree = info->sortopfamily[i];

		if ((proof ||
			 btree == BOOL_BTREE_FAM_OID ||
			 btree == TEXT_PATTERN_BTREE_FAM_OID ||
			 btree == BPCHAR_PATTERN_BTREE_FAM_OID ||
			 btree == NETWORK_BTREE_FAM_OID) &&
			has_operators_of(info->opfamily[i], btree))
			info->opfamily[i] = btree;
	}
}

/* The launcher's workers cannot build what is in our own buffers. */
static void
want_tree(EunoIndex *idx)
{
	EunoTreeSlot *slot = NULL;

	if (idx->key.temp_owner < 0)
		slot = euno_tree_find_or_make(&idx->key, idx->oid);
	if (slot != NULL)
		euno_absent_want(slot);
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
	EunoIndex  *idx;
	EunoContext *cx;
	EunoState	state;
	bool		ready;

	if (!euno_can_serve(&why, &hint))
		return false;

	idx = euno_index_known(info->indexoid);
	if (unlikely(idx == NULL))
	{
		/* get_relation_info has locked it */
		Relation	index = index_open(info->indexoid, NoLock);

		idx = euno_index_open(index);
		index_close(index, NoLock);
	}
	if (idx->other_temp)
		return false;
	state = euno_index_pin(idx, &cx);
	ready = state == EUNO_STATE_READY;
	if (ready)
	{
		uint64		pages = euno_tree_bytes(idx->slot) / BLCKSZ;

		info->pages = (BlockNumber) Max(1, pages);
		info->tuples = (double) idx->slot->ops->entries(&idx->slot->tree);
		info->tree_height = -1; /* unknown, and not asked for */
	}
	euno_index_unpin(idx);
	if (state == EUNO_STATE_ABSENT)
		want_tree(idx);			/* it is valid, and so indisready */

	if (ready && info->indpred == NIL)
		info->tuples = Min(info->tuples, info->rel->tuples);
	return ready;
}

/*
 * No path can come of an index any more: no operator belongs to its columns,
 * without a condition on which it is not used, and it cannot be scanned.  (Its
 * families have to be some that there are: extensions whose functions have
 * index conditions look them up.)
 */
static void
forbid_paths(IndexOptInfo *info)
{
	info->opfamily = palloc(info->nkeycolumns * sizeof(Oid));
	for (int i = 0; i < info->nkeycolumns; i++)
		info->opfamily[i] = ACLITEM_HASH_FAM_OID;
	info->amsearchnulls = info->amoptionalkey = false;
	info->amhasgettuple = info->amhasgetbitmap = info->amcanparallel = false;
}

/*
 * For a comparison beyond what ANALYZE has seen, as near the growing end of a
 * table, the planner looks up the least or the greatest value that there is
 * (get_actual_variable_range), before 18 in btrees only.  So it gets a second
 * description of the index that calls it one, and is good for nothing else.
 */
static IndexOptInfo *
describe_ends(const IndexOptInfo *info)
{
	IndexOptInfo *ends = makeNode(IndexOptInfo);

	*ends = *info;
	ends->relam = BTREE_AM_OID;
	ends->ncolumns = ends->nkeycolumns = 1;
	ends->unique = false;
	forbid_paths(ends);
	return ends;
}

/*
 * Leaves of an index that must not be used now what the planner needs to find the
 * statistics of its expressions.  False: it has none.
 */
static bool
describe_expressions(IndexOptInfo *info)
{
	if (info->indexprs == NIL)
		return false;
	info->unique = false;
	info->sortopfamily = NULL;	/* its ends are not to be had */
	forbid_paths(info);
	return true;
}

static void
EUNO_RELATION_HOOK(relation_info)
{
	List	   *ends = NIL;
	ListCell   *lc;

	if (previous_hook)
		euno_relation_hook_next(previous_hook);

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, lc);

		if (!euno_planner_is_ours(info) || info->hypothetical ||
			euno_relation_is_parent())
			continue;
		if (!describe_index(info))
		{
			if (!describe_expressions(info))
				rel->indexlist = foreach_delete_current(rel->indexlist, lc);
			continue;
		}
		name_families(root, info);
		if (EUNO_ENDS_MEAN_BTREE && info->indpred == NIL &&
			info->sortopfamily != NULL)
			ends = lappend(ends, describe_ends(info));
	}
	rel->indexlist = list_concat(rel->indexlist, ends);
}

void
euno_planner_init(void)
{
	previous_hook = euno_relation_hook;
	euno_relation_hook = relation_info;
}
