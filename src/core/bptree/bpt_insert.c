/*-------------------------------------------------------------------------
 *
 * bpt_insert.c
 *	  Inserting an entry.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/*
 * The leaf that the last inserts went to, if it is worth a look and was not
 * retired; otherwise NULL.  To be asked within an epoch, in which it stays
 * where it is.  src/README.md, "The last leaf".
 */
static inline BptLeaf *
last_leaf(const EunoContext *cx, uint64_t stamp)
{
	return cx->last.again && cx->last.stamp == stamp ? cx->last.leaf : NULL;
}

/*
 * An entry went to a leaf, or, if there is one, to "created", which was split
 * off it.  "stamp" is what the tree's was before the leaf was locked; 0:
 * nothing is to be remembered.
 */
static inline void
note_last(EunoContext *cx, BptLeaf *leaf, BptLeaf *created, uint64_t stamp)
{
	EunoLast   *last = &cx->last;

	last->again = last->leaf == leaf && last->stamp == stamp;
	last->stamp = stamp;
	last->leaf = created != NULL && cx->leaf == created->number ? created :
		leaf;
}

/*
 * What is going to be moved is fetched while the insertion is planned and the
 * leaf locked.
 */
static inline void
prefetch_gap(const BptView *view, const BptGap *gap)
{
	const uint8_t *tail = view->tails + gap->slot * view->tail_len;
	const uint64_t *head = view->heads + gap->slot;

	if (view->format != BPT_FIXED)
		return;
	euno_prefetch(head - 8);
	euno_prefetch(head + 8);
	euno_prefetch(tail);
	euno_prefetch(tail + 64);

	/* Hardly any room: some is further away. */
	if (view->entries > view->cap - view->cap / 8)
	{
		euno_prefetch(head - 24);
		euno_prefetch(head - 16);
		euno_prefetch(head + 16);
		euno_prefetch(head + 24);
		euno_prefetch(tail - 64);
	}
}

/*
 * Finds the entry's place and puts it there; see euno_bpt_insert.  Within an
 * epoch.  "stamp" is the tree's since that began, "guess" the leaf that is
 * remembered, or NULL.
 */
static EunoStatus __attribute__((noinline))
insert_anywhere(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split, const BptKey *key, uint64_t stamp,
				BptLeaf *guess)
{
	EunoWish	wish = {.ops = &euno_bptree_ops,.entry = entry,
	.no_split = no_split};
	BptLeaf    *created = NULL;
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptGap		gap;
	BptPut		put;

	bpt_place_init(&place, &image);
	place.guess = guess;
	for (;;)
	{
		bool		room;

		if (bpt_may_be_crowded(cx, tree, place.attempts) &&
			euno_bpt_crowd(cx, tree, key, &place, &wish, &status))
		{
			stamp = 0;			/* the leaf was not ours to see */
			break;
		}
		status = euno_bpt_seek(cx, tree, key, false, &place);
		if (status != EUNO_OK)
			break;
		bpt_place_find(cx, &place, key, &gap);
		prefetch_gap(&place.view, &gap);
		if (__builtin_expect(place.view.contended, 0) && !gap.exact)
		{
			status = euno_bpt_annex_insert(cx, tree, &place, key, entry,
										   no_split);
			if (status == EUNO_STALE)
				continue;
			break;
		}
		room = !gap.exact &&
			euno_bpt_leaf_plan(tree, &place.view, entry, key, &gap, &put);
		if (room)
		{
			if (!bpt_place_lock(cx, &place))
				continue;
			euno_bpt_leaf_put(place.leaf, &place.view, &put);
			bpt_count(cx, tree, 1);
			if (cx->want_leaf)
				cx->leaf = place.leaf->number;
			euno_lock_release(&place.leaf->lock, cx->env);
			break;
		}
		status = euno_bpt_valid(&place);
		if (status == EUNO_OK)
		{
			BptInsertion ins = {entry, key, &gap, no_split};

			status = gap.exact ? EUNO_EXISTS :
				euno_bpt_split(cx, tree, &place, &ins, &created);
		}
		if (status != EUNO_STALE)
			break;
	}
	if (status == EUNO_OK && place.leaf != NULL)
		note_last(cx, place.leaf, created, stamp);
	if (created != NULL)
		euno_bpt_publish(cx, tree, created);
	else if (place.moves > 0 && status != EUNO_CORRUPT)
		euno_bpt_catch_up(cx, tree, &place);
	if (__builtin_expect(cx->part_leaf != 0, 0))
		euno_bpt_part_leaf(cx, tree, entry, cx->part_leaf, &image);
	return status;
}

/*
 * Inserts an entry.  See EunoTreeOps.  No locks on entry or return.
 *
 * The place is found at some version of the leaf; locking at that version
 * proves that it is still the place (Eunomia's lower region).
 */
EunoStatus
euno_bpt_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split)
{
	EunoPosition pos = euno_position_of(entry);
	EunoStatus	status = EUNO_OK;
	BptLeaf    *leaf;
	BptKey		key;
	uint64_t	stamp;

	euno_bpt_key_position(tree, &pos, &key);
	euno_epoch_enter(cx->process);
	stamp = euno_load64_acquire(&bpt_body(tree)->stamp);
	leaf = last_leaf(cx, stamp);
	if (leaf == NULL || cx->part_leaf != 0 ||
		bpt_may_be_crowded(cx, tree, 0) ||
		!euno_bpt_append(cx, tree, leaf, entry, &key))
		status = insert_anywhere(cx, tree, entry, no_split, &key, stamp, leaf);
	euno_epoch_exit(cx->process);

	/* Another try may have found room without it. */
	if (cx->held.spare[0] != NULL)
		euno_bpt_spare_drop(cx);
	return status;
}
