/*-------------------------------------------------------------------------
 *
 * bpt_walk.c
 *	  Showing every entry to the caller, and removing those it wants gone.
 *
 * While a walk is registered no merge starts, so entries only move to the
 * right, leaves do not go away, and the walk, which goes right, misses none.
 *
 * Between two leaves a walk holds nothing but that, so it may leave when it is
 * canceled while it waits for a leaf, a segment of one that it has not locked,
 * or a merge.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Takes this process out of the walkers of the tree it is walking. */
void
euno_bpt_walk_leave(EunoContext *cx)
{
	(void) euno_add64_full(&bpt_body(cx->held.walking)->walkers, (uint64_t) -1);
	cx->held.walking = NULL;
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
	cx->held.walking = tree;
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

#define WALK_LEAVES		4096
#define WALK_LEAF_TIDS	(BPT_LEAF_TIDS + BPT_ANNEX_SLOTS)

typedef struct WalkLeaf
{
	BptLeaf    *leaf;
	uint64_t	seqno;
	uint32_t	n;
	uint32_t	first;			/* number of its first TID */
	uint32_t	ngone;
} WalkLeaf;

/* A stretch of leaves. */
typedef struct WalkStretch
{
	uint32_t	nleaves;
	uint16_t	leaf_of[EUNO_WALK_TIDS];
	WalkLeaf	leaves[WALK_LEAVES];
} WalkStretch;

_Static_assert(sizeof(WalkStretch) <= sizeof(((EunoWalkRoom *) 0)->own),
			   "a stretch of leaves fits into a walk's room");

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
 * Copies a leaf's TIDs, WALK_LEAF_TIDS at most, and its right link; "locked":
 * while it is, for it is written to all the time.  EUNO_OK, EUNO_STALE,
 * EUNO_CORRUPT or EUNO_CANCELED.
 */
static EunoStatus
walk_copy(EunoContext *cx, WalkLeaf *wl, bool locked, EunoTid *tids,
		  BptLeaf **right)
{
	BptLeaf    *leaf = wl->leaf;
	uint64_t	version = 0;
	uint32_t	annexed;
	BptView		view;

	if (locked ?
		!euno_lock_acquire_or_leave(&leaf->lock, cx->env, &cx->counters) :
		!euno_lock_read_or_leave(&leaf->lock, &version, cx->env, &cx->counters))
		return walk_refused(leaf);
	wl->seqno = euno_load64(&leaf->seqno);
	*right = euno_load_ptr_acquire(&leaf->right);
	wl->n = 0;
	(void) euno_bpt_view(leaf, &view);
	for (uint32_t i = 0; i < view.count && !view.torn;
		 i = bpt_next_slot(&view, i))
	{
		if (wl->n + BPT_LIST_MAX > BPT_LEAF_TIDS && view.format != BPT_FIXED)
		{
			EunoTid		list[BPT_LIST_MAX];
			uint32_t	n = euno_bpt_slot_tids(&view, i, list);

			if (wl->n + n > BPT_LEAF_TIDS)
				view.torn = true;
			else
				memcpy(tids + wl->n, list, n * sizeof(EunoTid));
			wl->n += view.torn ? 0 : n;
		}
		else if (wl->n < BPT_LEAF_TIDS)
			wl->n += euno_bpt_slot_tids(&view, i, tids + wl->n);
		else
			view.torn = true;
	}
	if (view.contended && !view.torn)
	{
		if (!euno_bpt_annex_tids(cx, leaf, !locked, tids + wl->n, &annexed))
			return EUNO_CANCELED;
		wl->n += annexed;
	}
	if (locked)
		euno_lock_release_unchanged(&leaf->lock, cx->env);
	else if (!euno_lock_validate(&leaf->lock, version))
		return EUNO_STALE;
	return view.torn ? EUNO_CORRUPT : EUNO_OK;
}

static void
walk_pause(const EunoWalk *walk)
{
	if (walk->pause != NULL)
		walk->pause(walk->arg);
}

/*
 * Collects leaves, from *leaf on; that becomes the one after them, or NULL.
 * Returns the number of their TIDs in *n.
 */
static EunoStatus
walk_collect(EunoContext *cx, EunoWalk *walk, BptLeaf **leaf, uint32_t *n)
{
	WalkStretch *stretch = (WalkStretch *) walk->room->own;
	uint64_t   *asked = walk->room->asked;
	uint32_t	attempts = 0;

	stretch->nleaves = *n = 0;
	while (*leaf != NULL && stretch->nleaves < WALK_LEAVES &&
		   *n + WALK_LEAF_TIDS <= EUNO_WALK_TIDS &&
		   (walk->at_once == 0 || *n < walk->at_once))
	{
		WalkLeaf   *wl = &stretch->leaves[stretch->nleaves];
		BptLeaf    *right;
		EunoStatus	status;

		wl->leaf = *leaf;
		wl->first = *n;
		wl->ngone = 0;
		euno_epoch_enter(cx->process);
		status = walk_copy(cx, wl, attempts++ > BPT_PATIENCE, asked + *n, &right);
		euno_epoch_exit(cx->process);
		if (status == EUNO_OK)
		{
			for (uint32_t i = *n; i < *n + wl->n; i++)
			{
				asked[i] = asked[i] << 16 | i;
				stretch->leaf_of[i] = (uint16_t) stretch->nleaves;
			}
			*n += wl->n;
			stretch->nleaves++;
			*leaf = right;
			attempts = 0;
		}
		else if (status != EUNO_STALE)
			return status;
		walk_pause(walk);
	}
	return EUNO_OK;
}

/*
 * Removes from a leaf what is to go.  EUNO_STALE: it was split since its TIDs
 * were copied.
 */
static EunoStatus
walk_remove(EunoContext *cx, EunoTree *tree, EunoWalk *walk,
			const WalkLeaf *wl)
{
	BptLeaf    *leaf = wl->leaf;
	const EunoTid *gone = walk->room->other + wl->first;
	EunoStatus	status = EUNO_OK;
	uint32_t	removed = 0;

	if (wl->ngone > 0)
	{
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
			removed = euno_bpt_leaf_remove_tids(leaf, gone, wl->ngone);
			if (euno_load8(&leaf->format) & BPT_CONTENDED)
				removed += euno_bpt_annex_remove_tids(cx, leaf, gone,
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

/*
 * Walks a stretch of leaves, from *leaf on; that becomes the one after them, or
 * the first that was split meanwhile: it must be walked again, and what went to
 * the right of it.
 */
static EunoStatus
walk_stretch(EunoContext *cx, EunoTree *tree, EunoWalk *walk, BptLeaf **leaf)
{
	WalkStretch *stretch = (WalkStretch *) walk->room->own;
	uint32_t	n;
	uint32_t	ngone;
	EunoStatus	status = walk_collect(cx, walk, leaf, &n);

	if (status != EUNO_OK)
		return status;
	ngone = euno_walk_ask(walk, n);
	for (uint32_t i = 0; i < ngone; i++)
	{
		uint64_t	asked = walk->room->asked[i];
		WalkLeaf   *wl = &stretch->leaves[stretch->leaf_of[asked & 0xFFFF]];

		walk->room->other[wl->first + wl->ngone++] = asked >> 16;
	}
	for (uint32_t i = 0; i < stretch->nleaves; i++)
	{
		status = walk_remove(cx, tree, walk, &stretch->leaves[i]);
		if (status == EUNO_STALE)
		{
			*leaf = stretch->leaves[i].leaf;
			return EUNO_OK;
		}
		if (status != EUNO_OK)
			return status;
		walk_pause(walk);
	}
	return EUNO_OK;
}

/* See EunoTreeOps.  decide and pause are called without locks and epoch. */
EunoStatus
euno_bpt_walk(EunoContext *cx, EunoTree *tree, EunoWalk *walk)
{
	BptLeaf    *leaf;
	EunoStatus	status = EUNO_OK;

	walk->removed = walk->kept = 0;
	if (!euno_bpt_walk_enter(cx, tree))
		return EUNO_CANCELED;
	leaf = euno_load_ptr_acquire(&bpt_body(tree)->first);
	while (leaf != NULL && status == EUNO_OK)
		status = walk_stretch(cx, tree, walk, &leaf);
	euno_bpt_walk_leave(cx);
	return status;
}
