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

/* ---- euno_planner.c, euno_paths.c, euno_consumer.c: hooks; in _PG_init ---- */

extern void euno_planner_init(void);
extern void euno_paths_init(void);
extern void euno_consumer_init(void);

/* Is this an index of ours, whatever its access method's name is? */
extern bool euno_planner_is_ours(const IndexOptInfo *info);

/* ---- euno_row_compare.c, euno_row_or.c: row comparisons ---- */

/*
 * Add paths, also partial ones, that use row comparisons of the table as
 * conditions of our indexes: each by itself; under an OR.
 */
extern void euno_row_compare_paths(PlannerInfo *root, RelOptInfo *rel);
extern void euno_row_or_paths(PlannerInfo *root, RelOptInfo *rel);

/* Does any of these conditions, RestrictInfos, compare rows? */
extern bool euno_row_compare_is_among(const List *conditions);

/*
 * What selectivities are estimated of, in the place of an index condition: if
 * it was made of a row comparison, that; else the condition itself.
 */
extern RestrictInfo *euno_row_compare_whole(const IndexOptInfo *index,
											RestrictInfo *condition);

#endif							/* EUNO_PLANNER_H */
