/*-------------------------------------------------------------------------
 *
 * euno_paths.c
 *	  Paths of a table that the planner does not make, or prefers wrongly.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_am.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/euno_planner.h"
#include "euno_compat.h"

/*
 * A bitmap scan has to be cheaper by more than this.  The planner counts pages
 * that are next to each other as read in one go; but to make and read a bitmap
 * takes longer than it counts, and index scans ask ahead for pages that are
 * not in memory (euno_ahead.c) and remember where those are that are.  With
 * btree small differences vanish behind the page of the index that both read,
 * and the planner takes the index scan.
 */
#define BITMAP_FACTOR	1.3

/*
 * A plain scan must not read more than this part of the table.  To look at
 * each page once is good then, and the table's order for what its rows are
 * joined to.
 */
#define MOST_PLAIN		0.15

/* The same for bitmaps of several indexes, of which one would be left. */
#define BITMAP_AND_FACTOR	1.1
#define MOST_PLAIN_AND		0.05

/*
 * The same where all of the table is in the server's buffers.  What the
 * planner counts is pages that come from a disk, in their order or in any;
 * here there is none, and a bitmap scan takes up to five times as long.
 */
#define BUFFERED_FACTOR		10.0
#define BUFFERED_AND_FACTOR	3.0
#define MOST_BUFFERED		0.05

/* So many of the table's pages are looked for. */
#define SAMPLE_PAGES	16

static set_rel_pathlist_hook_type previous_hook = NULL;

/* The cheapest index scan that alone reads what a BitmapAnd does, or more. */
static IndexPath *
cheapest_of(BitmapAndPath *bitmaps)
{
	IndexPath  *cheapest = NULL;
	ListCell   *lc;

	foreach(lc, bitmaps->bitmapquals)
	{
		IndexPath  *part = lfirst(lc);

		if (IsA(part, IndexPath) &&
			part->path.param_info == bitmaps->path.param_info &&
			(cheapest == NULL ||
			 part->path.total_cost < cheapest->path.total_cost))
			cheapest = part;
	}
	return cheapest;
}

/* What is found out once for a table. */
typedef struct Table
{
	PlannerInfo *root;
	RelOptInfo *rel;
	bool		looked;
	bool		buffered;
} Table;

/*
 * Are all pages of a table in buffers?  Looks for some, which are always the
 * same, up to one that is not, which is asked for from the kernel.
 */
static bool
is_buffered(Table *table)
{
	RangeTblEntry *rte = planner_rt_fetch(table->rel->relid, table->root);
	BlockNumber pages;
	Relation	heap;

	if (table->looked)
		return table->buffered;
	heap = table_open(rte->relid, NoLock);
	pages = RelationGetNumberOfBlocks(heap);
	table->looked = true;
	table->buffered = heap->rd_rel->relam == HEAP_TABLE_AM_OID;
	for (BlockNumber i = 0; i < SAMPLE_PAGES && i < pages && table->buffered; i++)
	{
		BlockNumber page = (BlockNumber) ((uint64) i * pages / SAMPLE_PAGES);

		table->buffered = BufferIsValid(PrefetchBuffer(heap, MAIN_FORKNUM,
													   page).recent_buffer);
	}
	table_close(heap, NoLock);
	return table->buffered;
}

/*
 * The plain scan that can stand in for a bitmap scan, and how many times its
 * cost it may have.  NULL if there is none of ours.
 */
static IndexPath *
plain_path(Table *table, BitmapHeapPath *bitmap, double *factor)
{
	IndexPath  *plain = NULL;
	double		most = MOST_PLAIN;
	double		buffered_factor = BUFFERED_FACTOR;

	*factor = BITMAP_FACTOR;
	if (IsA(bitmap->bitmapqual, IndexPath))
		plain = (IndexPath *) bitmap->bitmapqual;
	else if (IsA(bitmap->bitmapqual, BitmapAndPath))
	{
		plain = cheapest_of((BitmapAndPath *) bitmap->bitmapqual);
		*factor = BITMAP_AND_FACTOR;
		most = MOST_PLAIN_AND;
		buffered_factor = BUFFERED_AND_FACTOR;
	}
	if (plain == NULL || !euno_planner_is_ours(plain->indexinfo) ||
		plain->indexselectivity > most)
		return NULL;
	if (plain->path.total_cost > bitmap->path.total_cost * *factor &&
		plain->indexselectivity <= MOST_BUFFERED && is_buffered(table))
		*factor = buffered_factor;
	return plain;
}

/*
 * What a plain scan, of a part of the rows if "partial", is to be taken as in
 * the place of a bitmap scan.  NULL if it must not be.  It gets the other's
 * cost, for it takes no longer: the rest of the plan is not to be chosen as if
 * it did.
 */
static IndexPath *
in_place_of(Table *table, BitmapHeapPath *bitmap, bool partial)
{
	double		factor;
	IndexPath  *plain = plain_path(table, bitmap, &factor);
	IndexPath  *result;

	if (plain == NULL)
		return NULL;
	if (partial)
	{
		result = create_index_path(table->root, plain->indexinfo,
								   plain->indexclauses, NIL, NIL,
								   plain->path.pathkeys,
								   plain->indexscandir,
								   plain->path.pathtype == T_IndexOnlyScan,
								   NULL, 1.0, true);
		if (result->path.parallel_workers <= 0)
			return NULL;
	}
	else
	{
		result = makeNode(IndexPath);
		*result = *plain;
	}
	if (euno_path_disabled(&result->path) != euno_path_disabled(&bitmap->path) ||
		result->path.total_cost > bitmap->path.total_cost * factor)
		return NULL;
	result->path.total_cost = Min(result->path.total_cost,
								  bitmap->path.total_cost);
	result->path.startup_cost = Min(result->path.startup_cost,
									result->path.total_cost);
	return result;
}

/*
 * Puts plain scans of our indexes in the place of bitmap scans that are hardly
 * cheaper, or of those that read a part of the rows if "partial".  What a
 * bitmap heap scan is made of is the path of the plain one.
 */
static void
replace_bitmap_paths(Table *table, bool partial)
{
	RelOptInfo *rel = table->rel;
	List	  **paths = partial ? &rel->partial_pathlist : &rel->pathlist;
	List	   *plain = NIL;
	ListCell   *lc;

	foreach(lc, *paths)
	{
		IndexPath  *path;

		if (!IsA(lfirst(lc), BitmapHeapPath))
			continue;
		path = in_place_of(table, lfirst(lc), partial);
		if (path != NULL)
		{
			*paths = foreach_delete_current(*paths, lc);
			plain = lappend(plain, path);
		}
	}
	foreach(lc, plain)
	{
		if (partial)
			add_partial_path(rel, lfirst(lc));
		else
			add_path(rel, lfirst(lc));
	}
}

/*
 * Does the planner make paths of the table's indexes, and are any of them ours?
 */
static bool
has_index_paths(RelOptInfo *rel, const RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || rte->inh ||
		rte->tablesample != NULL || IS_DUMMY_REL(rel))
		return false;
	foreach(lc, rel->indexlist)
	{
		if (euno_planner_is_ours(lfirst_node(IndexOptInfo, lc)))
			return true;
	}
	return false;
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
	Table		table = {.root = root,.rel = rel};

	if (has_index_paths(rel, rte))
	{
		euno_row_compare_paths(root, rel);
		euno_row_or_paths(root, rel);
	}
	replace_bitmap_paths(&table, false);
	replace_bitmap_paths(&table, true);
	if (previous_hook)
		previous_hook(root, rel, rti, rte);
}

void
euno_paths_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = relation_paths;
}
