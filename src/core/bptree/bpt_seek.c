/*-------------------------------------------------------------------------
 *
 * bpt_seek.c
 *	  The leaf that covers a key.
 *
 * A descent (bpt_descend.c), a leaf that is remembered and approximations only
 * say where to look first.  What makes the result right is the leaf's fences,
 * checked at the version that the place is returned with.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/*
 * BYTES: where is the key, seen from the leaf's fences?  A key equal to a fence
 * belongs to the right of it, with "below" to the left.
 */
BptRange
euno_bpt_range(EunoContext *cx, EunoTree *tree, const BptView *view,
			   const BptLeaf *right, const BptKey *key, bool below)
{
	const BptLeaf *leaf = view->leaf;
	uint32_t	plen = view->prefix_len;
	uint64_t	word;
	uint64_t	hint;
	int			c;

	c = bpt_compare_prefix(key, leaf, plen);
	if (c != 0)
		return c < 0 ? BPT_BELOW :
			view->open && right == NULL ? BPT_WITHIN : BPT_ABOVE;
	word = bpt_key_word(key, plen);
	hint = euno_load64(&leaf->low_hint);
	if (word < hint)
		return BPT_BELOW;
	if (word == hint)
	{
		c = euno_bpt_compare_fence(cx, tree, key, leaf);
		if (c < 0 || (c == 0 && below))
			return BPT_BELOW;
	}
	if (right == NULL)
		return BPT_WITHIN;
	hint = euno_load64(&leaf->high_hint);
	if (word < hint)
		return BPT_WITHIN;
	if (word > hint)
		return BPT_ABOVE;
	return BPT_ASK_FENCE;		/* the hint does not say */
}

/*
 * Is the key in a leaf or right of it, as its low fence says?  It has been
 * seen linked; NULL: there is none.
 */
static bool
beyond(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
	   const BptKey *key, bool below)
{
	int			c;

	if (leaf == NULL)
		return false;
	c = euno_bpt_compare_fence(cx, tree, key, leaf);
	return c > 0 || (c == 0 && !below);
}

/* Copies the leaf as it is at the place's version; false if it has changed. */
static bool
copy_leaf(BptPlace *place)
{
	euno_copy_out(place->image->bytes, place->leaf,
				  bpt_leaf_size(place->leaf));
	if (!euno_lock_validate(&place->leaf->lock, place->version))
		return false;
	place->copied = true;
	(void) euno_bpt_view(&place->image->leaf, &place->view);
	return true;
}

/*
 * Copies the leaf under its lock, at whatever version; false if obsolete, or
 * canceled.
 */
static bool
copy_leaf_locked(EunoContext *cx, BptPlace *place)
{
	BptLeaf    *leaf = place->leaf;

	if (!euno_lock_acquire_or_leave(&leaf->lock, cx->env, &cx->counters))
		return false;
	place->version = euno_lock_version(&leaf->lock);
	euno_copy_out(place->image->bytes, leaf, bpt_leaf_size(leaf));
	euno_lock_release_unchanged(&leaf->lock, cx->env);
	place->copied = true;
	(void) euno_bpt_view(&place->image->leaf, &place->view);
	return true;
}

/*
 * Takes a private copy of the place's leaf at the place's version.  EUNO_OK,
 * EUNO_STALE (it has changed) or EUNO_CORRUPT.
 */
EunoStatus
euno_bpt_copy(BptPlace *place)
{
	if (!place->copied && !copy_leaf(place))
		return EUNO_STALE;
	return place->view.torn ? EUNO_CORRUPT : EUNO_OK;
}

typedef enum Step
{
	STEP_HERE,
	STEP_RIGHT,
	STEP_AGAIN,
	STEP_CORRUPT
} Step;

/* COMPARE: the same as look_at_leaf, for a leaf whose view is there. */
static Step
look_at_opaque(EunoContext *cx, EunoTree *tree, const BptKey *key, bool below,
			   BptPlace *place, BptLeaf *right)
{
	BptView    *view = &place->view;
	EunoStatus	status;

	/* Where a scan goes on is mostly where its next leaf begins, or ends. */
	if (euno_bpt_is_fence(place->leaf, key->pos))
		euno_bpt_find_near(cx, view, key, 0, &place->gap);
	else if (below && right != NULL && euno_bpt_valid(place) == EUNO_OK &&
			 key->pos->side == 0 &&
			 key->pos->tid == euno_load64(&right->low_tid) &&
			 euno_bpt_is_fence(right, key->pos))
		place->gap = (BptGap) {.slot = view->count};
	else
		euno_bpt_find(cx, view, key, &place->gap);
	place->found = true;

	/* Where an entry is not below the key, the high fence is above it. */
	if (!view->torn && (place->gap.slot < view->count || right == NULL))
		return STEP_HERE;
	status = euno_bpt_valid(place);
	if (status != EUNO_OK)
		return status == EUNO_CORRUPT ? STEP_CORRUPT : STEP_AGAIN;
	return beyond(cx, tree, right, key, below) ? STEP_RIGHT : STEP_HERE;
}

/* Looks at place->leaf: is it the one?  Sets *right to its right neighbor. */
static Step
look_at_leaf(EunoContext *cx, EunoTree *tree, const BptKey *key, bool below,
			 BptPlace *place, BptLeaf **right)
{
	BptLeaf    *leaf = place->leaf;
	bool		opaque = bpt_is_opaque(tree);
	BptRange	where;

	place->copied = place->found = false;
	if (place->attempts > BPT_PATIENCE)
	{
		if (!copy_leaf_locked(cx, place))
			return STEP_AGAIN;
	}
	else
	{
		if (!bpt_leaf_read(cx, tree, leaf, key, &place->version))
			return STEP_AGAIN;
		if (opaque && place->attempts > BPT_COMPARE_PATIENCE)
		{
			if (!copy_leaf(place))
				return STEP_AGAIN;
		}
		else if (euno_bpt_view(leaf, &place->view))
		{
			place->view.lock = &leaf->lock;
			place->view.version = place->version;
		}
	}
	if (place->view.torn)
		return place->copied ? STEP_CORRUPT : STEP_AGAIN;
	*right = bpt_place_right(place);
	if (opaque)
		return look_at_opaque(cx, tree, key, below, place, *right);
	where = euno_bpt_range(cx, tree, &place->view, *right, key, below);
	if (where == BPT_WITHIN)
		return STEP_HERE;		/* the caller validates */
	if (euno_bpt_valid(place) != EUNO_OK)
		return STEP_AGAIN;
	if (where == BPT_ASK_FENCE)
		where = beyond(cx, tree, *right, key, below) ? BPT_ABOVE : BPT_WITHIN;

	/* A separator is its leaf's low fence: nothing leads too far right. */
	return where == BPT_WITHIN ? STEP_HERE :
		where == BPT_ABOVE ? STEP_RIGHT : STEP_CORRUPT;
}

/*
 * Is place->guess the leaf that covers the key?  Nothing has led there, so the
 * key may be below its low fence.  COMPARE: it is not, if an entry is below
 * it; otherwise the fence is looked at.
 */
static bool
look_at_guess(EunoContext *cx, EunoTree *tree, const BptKey *key, bool below,
			  BptPlace *place)
{
	BptLeaf    *right;

	place->leaf = place->guess;
	place->guess = NULL;
	return look_at_leaf(cx, tree, key, below, place, &right) == STEP_HERE &&
		(!bpt_is_opaque(tree) || place->gap.slot > 0 ||
		 beyond(cx, tree, place->leaf, key, below));
}

/*
 * Is the leaf that is remembered the one, or, in COMPARE order, that to which
 * approximations lead?  If these fail often, they are left alone for a while.
 * Otherwise *lost says that the way there was lost, or that nobody waits for
 * it.
 */
static bool
look_at_guesses(EunoContext *cx, EunoTree *tree, const BptKey *key, bool below,
				BptPlace *place, bool *lost)
{
	*lost = false;
	if (place->guess != NULL && look_at_guess(cx, tree, key, below, place))
		return true;
	if (!bpt_is_opaque(tree) || place->attempts > 1 || !bpt_approximates(cx))
		return false;
	place->guess = euno_bpt_descend_opaque(cx, tree, key, below,
										   BPT_APPROXIMATION, place);
	*lost = place->guess == NULL;
	if (!*lost && look_at_guess(cx, tree, key, below, place))
	{
		if (cx->doubts > 0)
			cx->doubts--;
		return true;
	}
	cx->doubts += BPT_DOUBT;
	*lost = *lost || euno_is_canceled(cx->env);
	return false;
}

/*
 * Finds the leaf that covers the key: the entries right of the gap, or with
 * "below" those just left of it.  To be called within an epoch.  Afterwards
 * the caller searches place->view and then asks euno_bpt_valid.  To try
 * again, call it again with the same place.
 *
 * EUNO_OK, EUNO_CORRUPT or EUNO_CANCELED.
 */
EunoStatus
euno_bpt_seek(EunoContext *cx, EunoTree *tree, const BptKey *key, bool below,
			  BptPlace *place)
{
	bool		opaque = bpt_is_opaque(tree);
	uint32_t	moves = 0;
	uint32_t	weight;
	bool		lost;

	cx->counters.descents++;
	if (place->attempts++ > 0)
	{
		cx->counters.restarts++;
		euno_bpt_conflict(cx, tree, place->leaf, key, EUNO_CAUSE_CHANGED);
	}
	while (!look_at_guesses(cx, tree, key, below, place, &lost))
	{
		BptLeaf    *leaf = place->start;
		Step		step = STEP_AGAIN;

		if (leaf == NULL && !lost)
			leaf = opaque ?
				euno_bpt_descend_opaque(cx, tree, key, below, BPT_COMPARATOR,
										place) :
				euno_bpt_descend_bytes(cx, tree, key, below, place->run);
		place->start = NULL;
		while (leaf != NULL)
		{
			BptLeaf    *right;

			place->leaf = leaf;
			step = look_at_leaf(cx, tree, key, below, place, &right);
			if (step != STEP_RIGHT)
				break;
			leaf = right;
			moves++;
		}
		if (step == STEP_CORRUPT)
			return EUNO_CORRUPT;
		if (step == STEP_HERE)
			break;
		if (euno_is_canceled(cx->env))
			return EUNO_CANCELED;
		place->attempts++;
		cx->counters.restarts++;
		if (leaf == NULL)
			cx->counters.conflicts[EUNO_CAUSE_DIRECTORY]++;
		else
			euno_bpt_conflict(cx, tree, leaf, key, EUNO_CAUSE_CHANGED);
	}
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		euno_bpt_use_leaf(cx, tree, place->leaf, weight);
	if (moves > 0)
	{
		cx->counters.right_moves += moves;
		place->moves += moves;
	}
	return EUNO_OK;
}

/*
 * May what was read at the place be believed?  EUNO_OK, EUNO_STALE (seek
 * again) or EUNO_CORRUPT.
 *
 * Only a private copy can show that a leaf makes no sense.  What was read in
 * place may look so because somebody held the lock for a moment and changed
 * nothing: the version is the same again.
 */
EunoStatus
euno_bpt_valid(BptPlace *place)
{
	if (place->copied)
		return place->view.torn ? EUNO_CORRUPT : EUNO_OK;
	if (place->view.torn ||
		!euno_lock_validate(&place->leaf->lock, place->version))
		return EUNO_STALE;
	return EUNO_OK;
}
