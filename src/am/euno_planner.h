/*-------------------------------------------------------------------------
 *
 * euno_planner.h
 *	  What the planner is told, and the paths that are added to its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_PLANNER_H
#define EUNO_PLANNER_H

#include "am/euno_am.h"

extern bool euno_planner_is_ours(const IndexOptInfo *info);
extern void euno_planner_init(void);
extern void euno_reader_init(void);
extern RestrictInfo *euno_row_compare_whole(const IndexOptInfo *index,
											RestrictInfo *condition);
extern bool euno_row_compare_is_among(const List *conditions);
extern void euno_row_compare_paths(PlannerInfo *root, RelOptInfo *rel);
extern void euno_row_or_paths(PlannerInfo *root, RelOptInfo *rel);
extern void euno_paths_init(void);

#endif							/* EUNO_PLANNER_H */
