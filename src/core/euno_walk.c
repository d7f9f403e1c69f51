/*-------------------------------------------------------------------------
 *
 * euno_walk.c
 *	  What walks of all structures have in common.
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_core.h"

/*
 * Asks the caller about the first n of the room's "asked", in the order of
 * their TIDs.  Those that are to go are the first afterwards, in that order;
 * returns how many.
 */
uint32_t
euno_walk_ask(const EunoWalk *walk, uint32_t n)
{
	uint64_t   *asked = walk->room->asked;
	uint32_t	ngone = 0;

	euno_sort_tids(asked, n, walk->room->other);
	for (uint32_t i = 0; i < n; i++)
	{
		if (walk->decide(walk->arg, asked[i] >> 16))
			asked[ngone++] = asked[i];
	}
	return ngone;
}
