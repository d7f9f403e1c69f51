/*-------------------------------------------------------------------------
 *
 * bpt_walk.c
 *	  Showing every entry to the caller, and removing those it wants gone.
 *
 * While a walk is registered no merge starts, so entries only move to the
 * right, leaves do not go away, and the walk, which goes right, misses none.
 *
 * Between two leaves a walk holds nothing but that, so it may leave when it is
 * canceled while it waits for a leaf, or for a merge.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Takes this process out of the walkers of the tree it is walking. */
void
euno_bpt_walk_leave(EunoContext *cx)
{
	(void) euno_add64_full(&bpt_body(cx->walking)->walkers, (uint64_t) -1);
	cx->walking = NULL;
}

/*
 * Registers as a walker and waits for a merge under way.  False, and not
 * registered, if it was canceled meanwhile.
 */
bool
euno_bpt_walk_enter(EunoContext *cx, EunoTree *tree)
{
	BptBody    *body = bpt_body(tree);

	(void) euno_add64_full(&body->walkers, 1);
	cx->walking = tree;
	for (;;)
	{
		uint32_t	merging = euno_load32_full(&body->merging);

		if (merging == 0)
			return true;
		if (merging == 1 && !euno_cas32_full(&body->merging, 1, 2))
			continue;
		cx->env->wait(&body->merging, 2);
		if (euno_is_canceled(cx->env))
		{
			euno_bpt_walk_leave(cx);
			return false;
		}
	}
}

typedef struct WalkLeaf
{
	uint64_t	seqno;
	BptLeaf    *right;
	uint32_t	n;
	uint32_t	ngone;
	EunoTid		tids[BPT_LEAF_TIDS + BPT_ANNEX_SLOTS];
	EunoTid		gone[BPT_LEAF_TIDS + BPT_ANNEX_SLOTS];
} WalkLeaf;

/*
 * Why a leaf could not be had: nothing is merged while we walk, so it must not
 * be obsolete.
 */
static EunoStatus
walk_refused(BptLeaf *leaf)
{
	return (euno_load64(&leaf->lock.word) & EUNO_LOCK_OBSOLETE) != 0 ?
		EUNO_CORRUPT : EUNO_CANCELED;
}

/*
 * Copies a leaf's TIDs.  EUNO_OK, EUNO_STALE, EUNO_CORRUPT or EUNO_CANCELED.
 */
static EunoStatus
walk_copy(EunoContext *cx, BptLeaf *leaf, WalkLeaf *wl)
{
	uint64_t	version;
	BptView		view;

	if (!euno_lock_read_or_leave(&leaf->lock, &version, cx->env,
								 &cx->counters))
		return walk_refused(leaf);
	wl->seqno = euno_load64(&leaf->seqno);
	wl->right = euno_load_ptr_acquire(&leaf->right);
	wl->n = 0;
	(void) euno_bpt_view(leaf, &view);
	for (uint32_t i = 0; i < view.count && !view.torn;
		 i = bpt_next_slot(&view, i))
	{
		if (wl->n + BPT_LIST_MAX > BPT_LEAF_TIDS && view.format != BPT_FIXED)
		{
			EunoTid		tids[BPT_LIST_MAX];
			uint32_t	n = euno_bpt_slot_tids(&view, i, tids);

			if (wl->n + n > BPT_LEAF_TIDS)
				view.torn = true;
			else
				memcpy(wl->tids + wl->n, tids, n * sizeof(EunoTid));
			wl->n += view.torn ? 0 : n;
		}
		else if (wl->n < BPT_LEAF_TIDS)
			wl->n += euno_bpt_slot_tids(&view, i, wl->tids + wl->n);
		else
			view.torn = true;
	}
	if (view.scattered && !view.torn)
		wl->n += euno_bpt_scatter_tids(cx, leaf, wl->tids + wl->n);
	if (!euno_lock_validate(&leaf->lock, version))
		return EUNO_STALE;
	return view.torn ? EUNO_CORRUPT : EUNO_OK;
}

/*
 * Walks one leaf.  EUNO_STALE: it was split since its TIDs were copied; it
 * must be walked again.
 */
static EunoStatus
walk_leaf(EunoContext *cx, EunoTree *tree, EunoWalk *walk, BptLeaf *leaf,
		  WalkLeaf *wl)
{
	EunoStatus	status;
	uint32_t	removed = 0;

	euno_epoch_enter(cx->process);
	status = walk_copy(cx, leaf, wl);
	euno_epoch_exit(cx->process);
	if (status != EUNO_OK)
		return status;
	wl->ngone = 0;
	for (uint32_t i = 0; i < wl->n; i++)
	{
		if (walk->decide(walk->arg, wl->tids[i]))
			wl->gone[wl->ngone++] = wl->tids[i];
	}
	if (wl->ngone > 0)
	{
		euno_sort64(wl->gone, wl->ngone);
		euno_epoch_enter(cx->process);
		if (!euno_lock_acquire_or_leave(&leaf->lock, cx->env, &cx->counters))
			status = walk_refused(leaf);
		else if (euno_load64(&leaf->seqno) != wl->seqno)
		{
			euno_lock_release_unchanged(&leaf->lock, cx->env);
			status = EUNO_STALE;
		}
		else
		{
			removed = euno_bpt_leaf_remove_tids(leaf, wl->gone, wl->ngone);
			if (euno_load8(&leaf->format) & BPT_SCATTERED)
				removed += euno_bpt_scatter_remove_tids(cx, leaf, wl->gone,
														wl->ngone);
			bpt_count(cx, tree, -(int64_t) removed);
			euno_lock_release(&leaf->lock, cx->env);
		}
		euno_epoch_exit(cx->process);
		if (status != EUNO_OK)
			return status;
	}
	walk->removed += removed;
	walk->kept += wl->n > removed ? wl->n - removed : 0;
	return EUNO_OK;
}

/* See EunoTreeOps.  decide and pause are called without locks and epoch. */
EunoStatus
euno_bpt_walk(EunoContext *cx, EunoTree *tree, EunoWalk *walk)
{
	BptLeaf    *leaf;
	EunoStatus	status = EUNO_OK;
	WalkLeaf	wl;

	walk->removed = walk->kept = 0;
	if (!euno_bpt_walk_enter(cx, tree))
		return EUNO_CANCELED;
	leaf = euno_load_ptr_acquire(&bpt_body(tree)->first);
	while (leaf != NULL)
	{
		status = walk_leaf(cx, tree, walk, leaf, &wl);
		if (status == EUNO_CORRUPT || status == EUNO_CANCELED)
			break;
		if (status == EUNO_OK)
			leaf = wl.right;
		if (walk->pause != NULL)
			walk->pause(walk->arg);
	}
	euno_bpt_walk_leave(cx);
	return status;
}
