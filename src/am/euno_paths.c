/*-------------------------------------------------------------------------
 *
 * euno_paths.c
 *	  Paths of a table that the planner does not make, or prefers wrongly.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/*
 * By this much a bitmap scan has to be cheaper.  For few rows the planner thinks
 * it is by some percent, for it counts pages that are next to each other as
 * read in one go; but to make and read a bitmap takes longer than it counts,
 * and index scans ask ahead for pages that are not in memory (euno_ahead.c).
 * With btree such differences vanish behind the page of the index that both
 * read, and the planner takes the index scan.
 */
#define BITMAP_FACTOR	1.1

static set_rel_pathlist_hook_type previous_hook = NULL;

/*
 * Puts plain scans of our indexes in the place of bitmap scans that are hardly
 * cheaper.  What a bitmap heap scan is made of is the path of the plain one.
 */
static void
replace_bitmap_paths(RelOptInfo *rel)
{
	List	   *plain = NIL;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		BitmapHeapPath *bitmap = lfirst(lc);
		IndexPath  *index;

		if (!IsA(bitmap, BitmapHeapPath) || !IsA(bitmap->bitmapqual, IndexPath))
			continue;
		index = (IndexPath *) bitmap->bitmapqual;
		if (euno_planner_is_ours(index->indexinfo) &&
			euno_path_disabled(&index->path) == euno_path_disabled(&bitmap->path) &&
			index->path.total_cost <= bitmap->path.total_cost * BITMAP_FACTOR)
		{
			rel->pathlist = foreach_delete_current(rel->pathlist, lc);
			plain = lappend(plain, index);
		}
	}
	foreach(lc, plain)
		add_path(rel, lfirst(lc));
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
	euno_row_compare_paths(root, rel, rte);
	replace_bitmap_paths(rel);
	if (previous_hook)
		previous_hook(root, rel, rti, rte);
}

void
euno_paths_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = relation_paths;
}
