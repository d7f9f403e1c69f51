/*-------------------------------------------------------------------------
 *
 * art_crowd.c
 *	  Keys near each other that many write at once: see euno_delegate.h.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/*
 * Before a try of a write: if the place is known to be crowded, or tries have
 * failed, has the write performed by whoever leads there.  True: that has been
 * done, with this status.  Within an epoch, nothing locked.  "depth" is where the
 * last try ended.
 *
 * Of crowded places only the hash of the bytes above is remembered, and the last
 * one's depth.
 */
bool
euno_art_crowd(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			   uint32_t attempts, uint32_t depth, const EunoWish *wish,
			   EunoStatus *status)
{
	uint64_t	delegated = cx->counters.delegated;
	uint64_t	place;
	const void *where;

	if (cx->delegation.leading || (attempts > 0 && attempts < ART_CROWD))
		return false;
	if (attempts > 0 && depth == UINT32_MAX)
		return false;			/* no try has come to an end */
	if (attempts == 0)
		depth = cx->delegation.depth;
	place = euno_art_place(key, depth);
	where = (const void *) (uintptr_t) place;
	if (attempts == 0 && !euno_is_crowded(cx, where))
		return false;
	cx->delegation.depth = depth;
	if (!euno_delegate(cx, tree, place, where, wish, status))
		return false;
	if (cx->counters.delegated > delegated)
		euno_art_delegated(cx, tree, key, depth);
	return true;
}
