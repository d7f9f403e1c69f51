/*-------------------------------------------------------------------------
 *
 * bpt_annex_read.c
 *	  Reading a contended leaf.
 *
 * Readers lock nothing.  All entries that start with one key are in the leaf's
 * sorted part and in one segment; any other range is read from a private copy of
 * the leaf and of all segments at one moment, put together as a leaf that is not
 * contended (Eunomia, section 5.1: "buffers to store sorted keys").
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_annex.h"

/* Sorts the copied entries, which are few. */
static void
sort_entries(BptAnnexCopy *s)
{
	uint32_t	stride = s->shape.stride;

	for (uint32_t gap = s->n / 2; gap > 0; gap /= 2)
	{
		for (uint32_t i = gap; i < s->n; i++)
		{
			uint16_t	at = s->order[i];
			uint32_t	k = i;

			for (; k >= gap && memcmp(s->bytes + s->order[k - gap] * stride,
									  s->bytes + at * stride, stride) > 0;
				 k -= gap)
				s->order[k] = s->order[k - gap];
			s->order[k] = at;
		}
	}
}

/* Copies what the segments have, at whatever versions. */
static void
copy_segments(BptAnnex *annex, BptAnnexCopy *s)
{
	uint32_t	stride = s->shape.stride;
	uint8_t		bytes[BPT_SEGMENT_ROOM];
	uint8_t		tags[BPT_SEGMENT_SLOTS];

	s->n = 0;
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
	{
		BptSegment *segment = &annex->segments[i];
		uint64_t	used = euno_load64(&segment->used) & bpt_slot_mask(&s->shape);

		s->marks[i] = euno_load64(&annex->marks[i]);
		if (used == 0)
			continue;
		euno_copy_out(tags, segment->tags, sizeof(tags));
		euno_copy_out(bytes, segment->bytes, sizeof(bytes));
		for (; used != 0; used &= used - 1)
		{
			uint32_t	slot = (uint32_t) __builtin_ctzll(used);

			memcpy(s->bytes + s->n * stride, bytes + slot * stride, stride);
			s->order[s->n] = (uint16_t) s->n;
			s->segment[s->n] = (uint8_t) i;
			s->tag[s->n] = tags[slot];
			s->n++;
		}
	}
}

/* Unlocks the first n segments, to which nothing was written. */
static void
unlock_segments(EunoContext *cx, BptAnnex *annex, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		euno_lock_release_unchanged(&annex->segments[i].lock, cx->env);
}

/*
 * Locks all segments, and says at which versions.  False, and none is locked,
 * if the operation was canceled.
 */
static bool
lock_segments(EunoContext *cx, BptAnnex *annex, uint64_t *versions)
{
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
	{
		EunoLock   *lock = &annex->segments[i].lock;

		if (!euno_lock_acquire_or_leave(lock, cx->env, &cx->counters))
		{
			unlock_segments(cx, annex, i);
			return false;
		}
		versions[i] = euno_lock_version(lock);
	}
	return true;
}

/*
 * Copies the annex as it was at one moment: all versions are taken before
 * anything is copied, and looked at again after all of it.  After some tries
 * the segments are locked meanwhile.  EUNO_OK; EUNO_STALE if its shape makes no
 * sense, which the leaf's version will tell; or EUNO_CANCELED.  No locks on
 * entry or return.
 */
static EunoStatus
annex_copy(EunoContext *cx, BptAnnex *annex, BptAnnexCopy *s)
{
	bool		valid = false;

	bpt_shape(annex, &s->shape);
	if (s->shape.slots == 0)
		return EUNO_STALE;
	for (uint32_t tries = 0; !valid && tries < BPT_PATIENCE; tries++)
	{
		if (tries > 0)
			cx->counters.leaf_retries++;
		for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
		{
			if (!euno_lock_read_or_leave(&annex->segments[i].lock,
										 &s->versions[i], cx->env,
										 &cx->counters))
				return EUNO_CANCELED;
		}
		copy_segments(annex, s);
		valid = true;
		for (uint32_t i = 0; i < BPT_SEGMENTS && valid; i++)
			valid = euno_lock_validate(&annex->segments[i].lock,
									   s->versions[i]);
	}
	if (!valid)
	{
		if (!lock_segments(cx, annex, s->versions))
			return EUNO_CANCELED;
		copy_segments(annex, s);
		unlock_segments(cx, annex, BPT_SEGMENTS);
	}
	sort_entries(s);
	return EUNO_OK;
}

/*
 * Copies the leaf of a place, which is contended, and its annex at one moment:
 * the leaf to *raw.  EUNO_OK, EUNO_STALE, EUNO_CORRUPT or EUNO_CANCELED.  No
 * locks on entry or return.
 */
EunoStatus
euno_bpt_annex_snapshot(EunoContext *cx, BptPlace *place, BptImage *raw,
						BptView *view, BptAnnexCopy *s)
{
	BptLeaf    *leaf = place->leaf;
	BptAnnex   *annex = bpt_annex(leaf);
	EunoStatus	status = EUNO_STALE;

	if (place->copied)
		memcpy(raw->bytes, place->image->bytes, bpt_leaf_size(&place->image->leaf));
	else
		euno_copy_out(raw->bytes, leaf, bpt_leaf_size(leaf));
	if (annex != NULL)
		status = annex_copy(cx, annex, s);
	if (status != EUNO_OK)
		return status;
	if (!bpt_current(place))
		return EUNO_STALE;
	return !euno_bpt_view(&raw->leaf, view) || !view->contended ||
		s->shape.base > raw->leaf.low_len ? EUNO_CORRUPT : EUNO_OK;
}

/*
 * Turns a place in a contended leaf into a private copy of all its entries, in
 * place->image.  The place must have been sought by who only reads.  EUNO_OK,
 * EUNO_STALE (seek again), EUNO_CORRUPT or EUNO_CANCELED.
 */
EunoStatus
euno_bpt_gather(EunoContext *cx, EunoTree *tree, BptPlace *place)
{
	BptImage   *image = place->image;
	uint8_t		high_buf[BPT_MAX_COMPOSITE + 8];
	EunoStatus	status;
	BptFence	low;
	BptFence	high;
	BptView		view;
	BptWork		work;
	BptAnnexCopy s;
	BptImage	raw;

	status = euno_bpt_annex_snapshot(cx, place, &raw, &view, &s);
	if (status != EUNO_OK)
		return status;
	euno_bpt_items_init(&work, tree);
	if (!euno_bpt_items_add_leaf(&work, &view) ||
		!euno_bpt_annex_merge(&work, &raw.leaf, &s))
		return EUNO_CORRUPT;
	low = bpt_low_fence(&raw.leaf);
	high = euno_bpt_high_fence(&raw.leaf, high_buf);
	memcpy(image->bytes, raw.bytes, raw.leaf.body);
	do
	{
		if (bpt_leaf_size(&image->leaf) == BPT_NODE_MAX)
			return EUNO_CORRUPT;
		image->leaf.size_log2++;
	} while (!euno_bpt_encode(tree, &work.it, 0, work.it.n, &low, &high, image));
	place->copied = true;
	place->found = false;
	return euno_bpt_view(&image->leaf, &place->view) ? EUNO_OK : EUNO_CORRUPT;
}

/* Puts a TID among those of the batch, which are ascending. */
static bool
batch_insert(EunoBatch *batch, EunoTid tid)
{
	uint32_t	i = batch->nitems;

	if (i >= batch->max_items)
		return false;
	for (; i > 0 && batch->tids[i - 1] > tid; i--)
		batch->tids[i] = batch->tids[i - 1];
	batch->tids[i] = tid;
	batch->nitems++;
	return true;
}

/* The TIDs of a segment's entries that start with the key; their number. */
static uint32_t
point_segment(const BptLeaf *leaf, const BptSegment *segment,
			  const BptShape *shape, const BptSpot *spot,
			  const uint8_t *suffix, EunoTid *tids)
{
	uint64_t	used = euno_load64(&segment->used) & bpt_slot_mask(shape);
	uint32_t	n = 0;
	uint8_t		bytes[BPT_SEGMENT_ROOM];
	uint8_t		tags[BPT_SEGMENT_SLOTS];

	if (used == 0)
		return 0;
	euno_copy_out(tags, segment->tags, sizeof(tags));
	for (; used != 0; used &= used - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctzll(used);

		if (tags[i] != spot->tag)
			continue;
		euno_copy_out(bytes, segment->bytes + i * shape->stride, shape->stride);
		if (memcmp(bytes, suffix, shape->hashed) == 0)
			tids[n++] = euno_bpt_annex_tid(leaf, shape, bytes);
	}
	return n;
}

/*
 * Adds the TIDs of the entries in a contended leaf's annex that start with the
 * key to those of the batch.  False if they are not all in one segment, the
 * batch is full, or the operation was canceled.  What was added is right if the
 * leaf's version, at which its sorted part was read before, validates.
 */
bool
euno_bpt_annex_point(EunoContext *cx, const BptLeaf *leaf,
					 const BptKey *key, EunoBatch *batch)
{
	BptAnnex   *annex = bpt_annex(leaf);
	BptSegment *segment;
	BptShape	shape;
	BptSpot		spot;
	EunoTid		tids[BPT_SEGMENT_SLOTS];
	uint64_t	version;
	uint32_t	tries = 0;
	uint32_t	n;

	if (annex == NULL)
		return false;
	bpt_shape(annex, &shape);
	if (shape.slots == 0 || shape.hashed >= shape.stride ||
		key->len != shape.base + shape.hashed)
		return false;
	bpt_spot(&shape, key->bytes + shape.base, &spot);
	if ((euno_load64(&annex->marks[spot.segment]) & spot.mark) == 0)
	{
		cx->counters.annex_skips++;
		return true;
	}
	segment = &annex->segments[spot.segment];
	do
	{
		if (!bpt_segment_begin(cx, segment, true, &tries, &version))
			return false;
		n = point_segment(leaf, segment, &shape, &spot,
						  key->bytes + shape.base, tids);
	} while (!bpt_segment_end(cx, segment, version, tries));
	while (n > 0)
	{
		if (!batch_insert(batch, tids[--n]))
			return false;
	}
	return true;
}
