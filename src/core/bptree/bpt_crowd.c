/*-------------------------------------------------------------------------
 *
 * bpt_crowd.c
 *	  Leaves in which many write at once: their writes are delegated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Writes that others have performed, after which their leaf is looked at. */
#define CROWD_LOOK		16

/*
 * Has a crowded leaf become contended?  Then its writers need nobody to write
 * for them any more.  Within an epoch in which the leaf was reached.
 */
static inline bool
is_past(EunoContext *cx, const BptLeaf *leaf)
{
	if (cx->delegation.followed % CROWD_LOOK != 0 ||
		(euno_load8(&leaf->format) & BPT_CONTENDED) == 0)
		return false;
	*euno_crowd(cx, leaf) = NULL;
	return true;
}

/*
 * Before a try of a write: if the leaf is known to be crowded, or tries have
 * failed, has the write performed by whoever leads there.  True: that has been
 * done, with this status.  Within an epoch, nothing locked.
 *
 * A leaf that is crowded is hardly looked at: to know its address is enough,
 * and its lines stay with the leader.
 */
bool
euno_bpt_crowd(EunoContext *cx, EunoTree *tree, const BptKey *key,
			   BptPlace *place, const EunoWish *wish, EunoStatus *status)
{
	BptBody    *body = bpt_body(tree);
	BptLeaf    *edge = euno_load_ptr(&body->edge);
	BptLeaf    *leaf = place->leaf;
	uint64_t	delegated = cx->counters.delegated;
	const void *where;

	if (bpt_is_opaque(tree) || cx->delegation.leading)
		return false;
	if (place->attempts == 0)
	{
		leaf = euno_bpt_descend_bytes(cx, tree, key, false, 0);
		place->start = leaf;
		if (leaf == NULL || (leaf != edge && (!euno_is_crowded(cx, leaf) ||
											  is_past(cx, leaf))))
			return false;
	}
	else if (place->attempts < BPT_CROWD || place->view.contended)
		return false;			/* it has other means */
	else if (leaf != edge && euno_load_ptr_acquire(&leaf->right) == NULL)
	{
		euno_store_ptr(&body->edge, leaf);
		edge = leaf;
	}
	where = leaf == edge ? (const void *) body : (const void *) leaf;
	if (!euno_delegate(cx, tree, (uintptr_t) where, where, wish, status))
		return false;
	if (cx->counters.delegated > delegated)
		euno_bpt_delegated(cx, tree, leaf, key);
	if (leaf == edge && euno_edge_is_left(cx))
		euno_store_ptr(&body->edge, NULL);
	return true;
}
