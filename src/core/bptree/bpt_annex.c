/*-------------------------------------------------------------------------
 *
 * bpt_annex.c
 *	  Writing to a contended leaf, and looking for one entry in it.
 *
 * Entries go to a segment of the leaf's annex, under that segment's lock alone;
 * neither the leaf nor another segment is written (Eunomia, section 5.2,
 * "Insert").  Which segment, the hash of the key says, so that who writes the
 * same key waits for the same lock, which takes the place of the paper's lock
 * bits, and who looks for one entry has one segment to look at.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_annex.h"

/* Of a segment's used slots, those with this tag: a bit each. */
static uint64_t
tag_matches(const BptSegment *segment, const BptShape *shape, uint8_t tag)
{
	uint64_t	used = euno_load64(&segment->used) & bpt_slot_mask(shape);
	uint64_t	matches = 0;
	uint8_t		tags[BPT_SEGMENT_SLOTS];

	if (used == 0)
		return 0;
	euno_copy_out(tags, segment->tags, sizeof(tags));
	for (uint32_t i = 0; i < shape->slots; i++)
		matches |= (uint64_t) (tags[i] == tag) << i;
	return matches & used;
}

/*
 * The slot that has this entry; -1 if none has.  Means something when the
 * segment's version has validated, or if it is locked.
 */
static int
find_slot(const BptSegment *segment, const BptShape *shape,
		  const BptSpot *spot, const uint8_t *suffix)
{
	uint64_t	matches = tag_matches(segment, shape, spot->tag);
	uint8_t		bytes[BPT_SEGMENT_ROOM];

	for (; matches != 0; matches &= matches - 1)
	{
		int			i = __builtin_ctzll(matches);

		euno_copy_out(bytes, segment->bytes + (uint32_t) i * shape->stride,
					  shape->stride);
		if (memcmp(bytes, suffix, shape->stride) == 0)
			return i;
	}
	return -1;
}

/*
 * Locks a segment.  Not locked: EUNO_STALE, if the leaf is not at the place's
 * version any more, or EUNO_CANCELED.
 */
static EunoStatus
segment_lock(EunoContext *cx, const BptPlace *place, BptSegment *segment)
{
	if (!euno_mutex_trylock(&segment->lock))
	{
		bpt_segment_wait(segment);
		if (!euno_lock_acquire_or_leave(&segment->lock, cx->env,
										&cx->counters))
			return EUNO_CANCELED;
	}

	/*
	 * Who empties the annex has the leaf locked, and then all of its segments:
	 * from here on the leaf's version says what holds until we unlock.
	 */
	if (bpt_current(place))
		return EUNO_OK;
	euno_lock_release_unchanged(&segment->lock, cx->env);
	return EUNO_STALE;
}

static void
count_write(BptSegment *segment)
{
	euno_store32(&segment->writes, euno_load32(&segment->writes) + 1);
}

/* Where the key's entry belongs; NULL: its length is not the annex's. */
static BptSegment *
find_segment(BptAnnex *annex, const BptKey *key, BptShape *shape,
			 BptSpot *spot)
{
	bpt_shape(annex, shape);
	if (shape->slots == 0 || shape->hashed > shape->stride ||
		key->len != shape->base + shape->stride)
		return NULL;
	bpt_spot(shape, key->bytes + shape->base, spot);
	return &annex->segments[spot->segment];
}

/*
 * Is somebody about to empty the annex?  Then writers hold off for a while.
 * True if that has come to an end, or if there is nobody.
 */
static bool
wait_for_fold(const BptPlace *place, const BptAnnex *annex)
{
	for (int i = 0; i < BPT_CLOSING_PAUSES; i += 64)
	{
		if (euno_load32(&annex->closing) == 0 ||
			euno_load64(&place->leaf->lock.word) != place->version)
			return true;
		for (int k = 0; k < 64; k++)
			euno_pause();
	}
	return false;
}

/*
 * For an entry that the annex has no place for: the leaf would have to be calmed
 * for it, and perhaps split.
 */
static EunoStatus
look_only(EunoContext *cx, BptPlace *place, const BptKey *key)
{
	EunoStatus	status = euno_bpt_annex_contains(cx, place, key);

	if (status == EUNO_OK)
		return EUNO_EXISTS;
	return status == EUNO_NOT_FOUND ? EUNO_FULL : status;
}

/*
 * Inserts an entry into a contended leaf, which does not have it in its sorted
 * part at the place's version.  EUNO_OK, EUNO_EXISTS, EUNO_STALE (seek again),
 * EUNO_FULL (only with no_split), EUNO_NO_MEMORY, EUNO_CORRUPT, EUNO_CANCELED.
 * No locks on entry or return.
 */
EunoStatus
euno_bpt_annex_insert(EunoContext *cx, EunoTree *tree, BptPlace *place,
					  const BptKey *key, const EunoEntry *entry,
					  bool no_split)
{
	BptAnnex   *annex = bpt_annex(place->leaf);
	BptSegment *segment;
	BptShape	shape;
	BptSpot		spot;
	uint64_t	free;
	uint64_t	marks;
	uint32_t	slot;
	EunoStatus	status;
	const uint8_t *suffix;

	if (annex == NULL)
		return EUNO_STALE;
	segment = find_segment(annex, key, &shape, &spot);
	if (segment == NULL || entry->payloadlen > 0)
	{
		if (no_split)
			return look_only(cx, place, key);
		return bpt_current(place) ?
			euno_bpt_fold(cx, tree, place->leaf, true, place->image) :
			EUNO_STALE;
	}
	if (!wait_for_fold(place, annex) && !no_split)
		return euno_bpt_fold(cx, tree, place->leaf, false, place->image);
	suffix = key->bytes + shape.base;
	status = segment_lock(cx, place, segment);
	if (status != EUNO_OK)
		return status;
	if (find_slot(segment, &shape, &spot, suffix) >= 0)
	{
		euno_lock_release_unchanged(&segment->lock, cx->env);
		return EUNO_EXISTS;
	}
	free = ~euno_load64(&segment->used) & bpt_slot_mask(&shape);
	if (free == 0)
	{
		euno_lock_release_unchanged(&segment->lock, cx->env);
		return no_split ? EUNO_FULL :
			euno_bpt_fold(cx, tree, place->leaf, false, place->image);
	}
	slot = (uint32_t) __builtin_ctzll(free);

	/* Before we unlock: who finds no mark believes that there is no entry. */
	marks = euno_load64(&annex->marks[spot.segment]);
	if ((marks & spot.mark) == 0)
		euno_store64(&annex->marks[spot.segment], marks | spot.mark);
	euno_copy_in(segment->bytes + slot * shape.stride, suffix, shape.stride);
	euno_store8(&segment->tags[slot], spot.tag);
	euno_store64(&segment->used,
				 euno_load64(&segment->used) | UINT64_C(1) << slot);
	count_write(segment);
	bpt_count(cx, tree, 1);
	if (cx->want_leaf)
		cx->leaf = place->leaf->number;
	euno_lock_release(&segment->lock, cx->env);
	euno_bpt_contended_write(cx, tree, place->leaf, key);
	return EUNO_OK;
}

/*
 * Removes an entry from a contended leaf, which does not have it in its sorted
 * part at the place's version.  As euno_bpt_remove, or EUNO_STALE with
 * "again": seek again.
 */
EunoStatus
euno_bpt_annex_remove(EunoContext *cx, EunoTree *tree, BptPlace *place,
					  const BptKey *key, const EunoGuard *guard, bool *again)
{
	BptAnnex   *annex = bpt_annex(place->leaf);
	EunoStatus	status;
	BptSegment *segment;
	BptShape	shape;
	BptSpot		spot;
	int			slot;

	*again = true;
	if (annex == NULL)
		return EUNO_STALE;
	segment = find_segment(annex, key, &shape, &spot);
	if (segment == NULL ||
		(euno_load64(&annex->marks[spot.segment]) & spot.mark) == 0)
	{
		*again = !bpt_current(place);
		return *again ? EUNO_STALE : EUNO_NOT_FOUND;
	}
	(void) wait_for_fold(place, annex);
	status = segment_lock(cx, place, segment);
	*again = status == EUNO_STALE;
	if (status != EUNO_OK)
		return status;
	status = EUNO_NOT_FOUND;
	slot = find_slot(segment, &shape, &spot, key->bytes + shape.base);
	if (slot >= 0)
	{
		status = EUNO_STALE;
		if (euno_guard_holds(guard))
		{
			/*
			 * The mark stays: others may need it, and who does not looks in
			 * vain.
			 */
			euno_store64(&segment->used,
						 euno_load64(&segment->used) & ~(UINT64_C(1) << slot));
			count_write(segment);
			bpt_count(cx, tree, -1);
			euno_lock_release(&segment->lock, cx->env);
			euno_bpt_contended_write(cx, tree, place->leaf, key);
			return EUNO_OK;
		}
	}
	euno_lock_release_unchanged(&segment->lock, cx->env);
	return status;
}

/*
 * Is the key's entry in the annex of a contended leaf, which does not have it
 * in its sorted part?  EUNO_OK, EUNO_NOT_FOUND, EUNO_STALE (seek again) or
 * EUNO_CANCELED.
 */
EunoStatus
euno_bpt_annex_contains(EunoContext *cx, BptPlace *place, const BptKey *key)
{
	const BptAnnex *annex = bpt_annex(place->leaf);
	BptSegment *segment;
	BptShape	shape;
	BptSpot		spot;
	uint64_t	version;
	uint32_t	tries = 0;
	int			slot;

	if (annex == NULL)
		return EUNO_STALE;
	segment = find_segment((BptAnnex *) annex, key, &shape, &spot);
	if (segment == NULL ||
		(euno_load64(&annex->marks[spot.segment]) & spot.mark) == 0)
		return bpt_current(place) ? EUNO_NOT_FOUND : EUNO_STALE;
	do
	{
		if (!bpt_segment_begin(cx, segment, true, &tries, &version))
			return EUNO_CANCELED;
		slot = find_slot(segment, &shape, &spot, key->bytes + shape.base);
	} while (!bpt_segment_end(cx, segment, version, tries));
	if (!bpt_current(place))
		return EUNO_STALE;
	return slot >= 0 ? EUNO_OK : EUNO_NOT_FOUND;
}

/* The TID of an entry of an annex: its last bytes, and the leaf's base. */
EunoTid
euno_bpt_annex_tid(const BptLeaf *leaf, const BptShape *shape,
				   const uint8_t *suffix)
{
	uint32_t	n = shape->stride;
	EunoTid		tid = 0;

	for (uint32_t i = 0; i < EUNO_TID_BYTES; i++)
	{
		uint32_t	back = EUNO_TID_BYTES - i;	/* from the end */
		uint8_t		byte = 0;

		if (back <= n)
			byte = suffix[n - back];
		else if (shape->base >= back - n)
			byte = euno_load8(bpt_low(leaf) + shape->base - (back - n));
		tid = tid << 8 | byte;
	}
	return tid;
}

/*
 * All TIDs in a contended leaf's annex, at most BPT_ANNEX_SLOTS, each
 * segment's at a moment of its own; they are all of the annex when the leaf's
 * version validates.  *n: their number.  False if canceled, with "may_leave":
 * the caller holds nothing then.
 */
bool
euno_bpt_annex_tids(EunoContext *cx, const BptLeaf *leaf, bool may_leave,
					EunoTid *tids, uint32_t *n)
{
	const BptAnnex *annex = bpt_annex(leaf);
	BptShape	shape;
	uint8_t		bytes[BPT_SEGMENT_ROOM];

	*n = 0;
	if (annex == NULL)
		return true;
	bpt_shape(annex, &shape);
	if (shape.slots == 0 || shape.base > euno_load32(&leaf->low_len))
		return true;
	for (uint32_t s = 0; s < BPT_SEGMENTS; s++)
	{
		BptSegment *segment = (BptSegment *) &annex->segments[s];
		uint32_t	tries = 0;
		uint64_t	version;
		uint64_t	used;

		do
		{
			if (!bpt_segment_begin(cx, segment, may_leave, &tries, &version))
				return false;
			used = euno_load64(&segment->used) & bpt_slot_mask(&shape);
			euno_copy_out(bytes, segment->bytes, sizeof(bytes));
		} while (!bpt_segment_end(cx, segment, version, tries));
		for (; used != 0; used &= used - 1)
			tids[(*n)++] = euno_bpt_annex_tid(leaf, &shape, bytes +
											  (uint32_t) __builtin_ctzll(used) *
											  shape.stride);
	}
	return true;
}

/*
 * Removes all entries of the annex that have one of these TIDs, which are
 * sorted.  The leaf is locked.  Returns how many there were.
 */
uint32_t
euno_bpt_annex_remove_tids(EunoContext *cx, BptLeaf *leaf,
						   const EunoTid *tids, uint32_t n)
{
	BptAnnex   *annex = bpt_annex(leaf);
	uint32_t	removed = 0;
	BptShape	shape;
	uint8_t		bytes[BPT_SEGMENT_ROOM];

	bpt_shape(annex, &shape);
	for (uint32_t s = 0; s < BPT_SEGMENTS; s++)
	{
		BptSegment *segment = &annex->segments[s];
		uint32_t	before = removed;
		uint64_t	used;
		uint64_t	keep;

		(void) euno_lock_acquire(&segment->lock, cx->env, &cx->counters);
		used = keep = euno_load64(&segment->used);
		euno_copy_out(bytes, segment->bytes, sizeof(bytes));
		for (; used != 0; used &= used - 1)
		{
			uint32_t	i = (uint32_t) __builtin_ctzll(used);

			if (euno_tid_among(euno_bpt_annex_tid(leaf, &shape, bytes +
												  i * shape.stride),
							   tids, n))
			{
				keep &= ~(UINT64_C(1) << i);
				removed++;
			}
		}
		if (removed > before)
		{
			euno_store64(&segment->used, keep);
			euno_lock_release(&segment->lock, cx->env);
		}
		else
			euno_lock_release_unchanged(&segment->lock, cx->env);
	}
	return removed;
}
