/*-------------------------------------------------------------------------
 *
 * bpt_remove.c
 *	  Looking for one entry, and removing it.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* See EunoTreeOps.  No locks on entry or return.  Never merges leaves. */
EunoStatus
euno_bpt_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				const EunoGuard *guard)
{
	EunoPosition pos = euno_position_of(entry);
	EunoWish	wish = {.ops = &euno_bptree_ops,.entry = entry,.removes = true,
	.guard = guard};
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;
	BptGap		gap;

	euno_bpt_key_position(tree, &pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	for (;;)
	{
		if (bpt_may_be_crowded(cx, tree, place.attempts) &&
			euno_bpt_crowd(cx, tree, &key, &place, &wish, &status))
			break;
		status = euno_bpt_seek(cx, tree, &key, false, &place);
		if (status != EUNO_OK)
			break;
		bpt_place_find(cx, &place, &key, &gap);
		if (!gap.exact || place.view.torn)
		{
			if (place.view.contended && !place.view.torn)
			{
				bool		again;

				status = euno_bpt_annex_remove(cx, tree, &place, &key, guard,
											   &again);
				if (again)
					continue;
				break;
			}
			status = euno_bpt_valid(&place);
			if (status == EUNO_STALE)
				continue;
			if (status == EUNO_OK)
				status = EUNO_NOT_FOUND;
			break;
		}
		if (!bpt_place_lock(cx, &place))
			continue;
		if (!euno_guard_holds(guard))
		{
			status = EUNO_STALE;
			euno_lock_release_unchanged(&place.leaf->lock, cx->env);
			break;
		}
		euno_bpt_leaf_remove(place.leaf, &gap);
		bpt_count(cx, tree, -1);
		euno_lock_release(&place.leaf->lock, cx->env);
		break;
	}
	if (place.moves > 0 && status != EUNO_CORRUPT)
		euno_bpt_catch_up(cx, tree, &place);
	if (__builtin_expect(cx->part_leaf != 0, 0))
		euno_bpt_part_leaf(cx, tree, entry, cx->part_leaf, &image);
	euno_epoch_exit(cx->process);
	return status;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_bpt_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	EunoPosition pos = euno_position_of(entry);
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;
	BptGap		gap;

	euno_bpt_key_position(tree, &pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	do
	{
		status = euno_bpt_seek(cx, tree, &key, false, &place);
		if (status != EUNO_OK)
			break;
		bpt_place_find(cx, &place, &key, &gap);
		if (!gap.exact && place.view.contended && !place.view.torn)
		{
			status = euno_bpt_annex_contains(cx, &place, &key);
			gap.exact = true;
		}
		else
			status = euno_bpt_valid(&place);
	} while (status == EUNO_STALE);
	if (status == EUNO_OK && !gap.exact)
		status = EUNO_NOT_FOUND;
	euno_epoch_exit(cx->process);
	return status;
}
