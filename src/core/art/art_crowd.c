/*-------------------------------------------------------------------------
 *
 * art_crowd.c
 *	  Keys near each other that many write at once: see euno_delegate.h.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* What the composites below a node have in common, as a number; not 0. */
static uint64_t
place_of(const ArtKey *key, uint32_t depth)
{
	uint64_t	hash = depth;

	for (uint32_t i = 0; i < depth && i < key->len; i++)
		hash = (hash ^ key->bytes[i]) * UINT64_C(0x100000001B3);
	return hash | 1;
}

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
	uint64_t	place;
	const void *where;

	if (cx->delegation.leading || (attempts > 0 && attempts < ART_CROWD))
		return false;
	if (attempts > 0 && depth == UINT32_MAX)
		return false;			/* no try has come to an end */
	if (attempts == 0)
		depth = cx->delegation.depth;
	place = place_of(key, depth);
	where = (const void *) (uintptr_t) place;
	if (attempts == 0 && !euno_is_crowded(cx, where))
		return false;
	cx->delegation.depth = depth;
	return euno_delegate(cx, tree, place, where, wish, status);
}
