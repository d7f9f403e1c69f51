/*-------------------------------------------------------------------------
 *
 * art_remove.c
 *	  Looking for one entry, and taking it out.
 *
 * Removing allocates nothing and unlinks nothing: a TID's slot becomes empty,
 * a single entry is marked dead, a bucket keeps its place even when it is
 * empty.  compact clears up.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

static bool
guard_holds(const EunoGuard *guard)
{
	return guard == NULL || euno_load64_acquire(guard->word) == guard->expected;
}

/* The slot holds no bucket. */
static EunoStatus
remove_slot(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			const ArtPlace *place, const EunoGuard *guard)
{
	ArtKey		other;
	ArtItem		item;
	ArtItem		mine;
	ArtRef	   *slot;

	euno_art_item_key(key, NULL, &mine);
	if (art_is_absent(place->ref) ||
		!euno_art_leaf_item(place, key, &other, &item) ||
		euno_art_item_compare(&mine, &item) != 0)
		return EUNO_NOT_FOUND;
	slot = euno_art_lock_slot(cx, tree, key, place);
	if (slot == NULL)
		return EUNO_FULL;		/* look again */
	if (!guard_holds(guard))
	{
		euno_lock_release_unchanged(place->lock, cx->env);
		return EUNO_STALE;
	}
	euno_store64_release(slot, art_tag(place->ref) == ART_SINGLE ?
						 place->ref | ART_DEAD : 0);
	art_count(cx, tree, -1, art_tag(place->ref) == ART_INLINE ? -1 : 0, 0);
	euno_lock_release(place->lock, cx->env);
	return EUNO_OK;
}

static EunoStatus
remove_from_bucket(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				   ArtBucket *bucket, const EunoGuard *guard)
{
	EunoStatus	status = EUNO_OK;
	ArtView		view;
	uint32_t	at;
	bool		exact;

	if (!euno_lock_acquire(&bucket->lock, cx->env, &cx->counters))
		return EUNO_FULL;		/* look again */
	euno_art_view(bucket, &view);
	at = euno_art_search(&view, key, &exact);
	if (view.torn)
		status = EUNO_CORRUPT;
	else if (!exact)
		status = EUNO_NOT_FOUND;
	else if (!guard_holds(guard))
		status = EUNO_STALE;
	if (status != EUNO_OK)
	{
		euno_lock_release_unchanged(&bucket->lock, cx->env);
		return status;
	}
	euno_art_bucket_remove(bucket, &view, at);
	art_count(cx, tree, -1, 0, 0);
	euno_lock_release(&bucket->lock, cx->env);
	return EUNO_OK;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				const EunoGuard *guard)
{
	EunoStatus	status;
	ArtPlace	place;
	ArtKey		key;

	euno_art_key_entry(entry, &key);
	euno_epoch_enter(cx->process);
	do
	{
		status = euno_art_descend(cx, tree, &key, &place);
		if (status != EUNO_OK)
			break;
		if (place.where != ART_AT_LEAF)
			status = EUNO_NOT_FOUND;
		else if (place.ref != 0 && art_tag(place.ref) == ART_BUCKET)
			status = remove_from_bucket(cx, tree, &key,
										art_pointer(place.ref), guard);
		else
			status = remove_slot(cx, tree, &key, &place, guard);
	} while (status == EUNO_FULL);
	euno_epoch_exit(cx->process);
	return status;
}

/* Is the key in the bucket?  EUNO_FULL: look again. */
static EunoStatus
bucket_contains(EunoContext *cx, const ArtKey *key, ArtBucket *bucket)
{
	for (int attempt = 0;; attempt++)
	{
		bool		locked = attempt >= ART_PATIENCE;
		uint64_t	version = 0;
		ArtView		view;
		bool		exact;
		bool		valid;

		if (locked ? !euno_lock_acquire(&bucket->lock, cx->env, &cx->counters) :
			!euno_lock_read(&bucket->lock, &version, cx->env, &cx->counters))
			return EUNO_FULL;
		euno_art_view(bucket, &view);
		(void) euno_art_search(&view, key, &exact);
		if (locked)
			euno_lock_release_unchanged(&bucket->lock, cx->env);
		valid = locked || euno_lock_validate(&bucket->lock, version);
		if (valid && view.torn)
			return EUNO_CORRUPT;
		if (valid)
			return exact ? EUNO_OK : EUNO_NOT_FOUND;
		cx->counters.leaf_retries++;
	}
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	EunoStatus	status;
	ArtPlace	place;
	ArtItem		mine;
	ArtItem		item;
	ArtKey		key;
	ArtKey		other;

	euno_art_key_entry(entry, &key);
	euno_art_item_key(&key, NULL, &mine);
	euno_epoch_enter(cx->process);
	do
	{
		status = euno_art_descend(cx, tree, &key, &place);
		if (status != EUNO_OK)
			break;
		if (place.where != ART_AT_LEAF)
			status = EUNO_NOT_FOUND;
		else if (place.ref != 0 && art_tag(place.ref) == ART_BUCKET)
			status = bucket_contains(cx, &key, art_pointer(place.ref));
		else if (art_is_absent(place.ref) ||
				 !euno_art_leaf_item(&place, &key, &other, &item) ||
				 euno_art_item_compare(&mine, &item) != 0)
			status = EUNO_NOT_FOUND;
	} while (status == EUNO_FULL);
	euno_epoch_exit(cx->process);
	return status;
}
