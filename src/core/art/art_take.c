/*-------------------------------------------------------------------------
 *
 * art_take.c
 *	  A leaf of a range into its batch.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/* Is the entry in rd->key on the near side of the range's end? */
static inline bool
inside(const ArtRead *rd)
{
	int			c = euno_art_key_compare(&rd->key, &rd->end);

	return rd->forward ? c < 0 : c >= 0;
}

/* Is it on the far side of the bound, where the read goes on? */
static inline bool
ahead(const ArtRead *rd)
{
	int			c = euno_art_key_compare(&rd->key, &rd->at);

	return rd->forward ? c >= 0 : c < 0;
}

/* What a leaf has of an entry's composite.  False: it is no entry's. */
static inline bool
entry_tail(const ArtChild *leaf, uint32_t depth, ArtTail *tail)
{
	return euno_art_leaf_tail(leaf, depth, tail) &&
		depth + tail->n >= EUNO_TID_BYTES &&
		depth + tail->n <= ART_MAX_COMPOSITE;
}

/* Puts the composite of a leaf together in rd->key. */
static bool
compose(ArtRead *rd, const ArtChild *leaf, uint32_t depth)
{
	ArtTail		tail;

	if (!entry_tail(leaf, depth, &tail))
		return false;
	euno_copy_out(rd->key.bytes + depth, tail.bytes, tail.n);
	rd->key.len = depth + tail.n;
	return true;
}

/*
 * Adds a leaf to the batch.  EUNO_FULL: there is no room; EUNO_CORRUPT.
 */
EunoStatus
euno_art_take(ArtRead *rd, const ArtChild *leaf, uint32_t depth)
{
	EunoBatch  *batch = rd->batch;
	ArtTail		tail;

	if (batch->nitems >= batch->max_items)
		return EUNO_FULL;
	if (!entry_tail(leaf, depth, &tail))
		return EUNO_CORRUPT;
	if (!art_put_entry(batch, batch->nitems, &rd->used, batch->want_keys,
					   rd->key.bytes, depth, &tail))
		return EUNO_FULL;
	batch->nitems++;
	return EUNO_OK;
}

/* Remembers the leaf that was added last, and the path to it. */
static inline void
remember(ArtRead *rd, const ArtChild *leaf, uint32_t depth)
{
	memcpy(rd->last.bytes, rd->key.bytes, depth);
	rd->last.len = depth;
	rd->last_leaf = *leaf;
}

/* A leaf that may be outside of the range. */
EunoStatus
euno_art_take_edge(ArtRead *rd, const ArtChild *leaf, uint32_t depth,
				   bool at_edge, bool end_edge)
{
	EunoStatus	status;

	if (!compose(rd, leaf, depth))
		return EUNO_CORRUPT;
	if (end_edge && !inside(rd))
	{
		rd->ended = true;
		return EUNO_OK;
	}
	if (at_edge && !ahead(rd))
		return EUNO_OK;
	status = euno_art_take(rd, leaf, depth);
	if (status == EUNO_FULL)
	{
		rd->full = true;
		return EUNO_OK;
	}
	if (status == EUNO_OK)
		remember(rd, leaf, depth);
	return status;
}

/* Makes rd->last the entry that was added last.  Within the epoch. */
EunoStatus
euno_art_take_last(ArtRead *rd)
{
	const EunoBatch *batch = rd->batch;

	if (batch->want_keys)
	{
		const EunoItemKey *item = &batch->keys[batch->nitems - 1];

		memcpy(rd->last.bytes, batch->buf + item->offset, item->keylen);
		euno_put_tid(rd->last.bytes + item->keylen,
					 batch->tids[batch->nitems - 1]);
		rd->last.len = item->keylen + EUNO_TID_BYTES;
		return EUNO_OK;
	}
	if (rd->last_leaf.ref == 0)
		return EUNO_OK;			/* it is */
	memcpy(rd->key.bytes, rd->last.bytes, rd->last.len);
	if (!compose(rd, &rd->last_leaf, rd->last.len))
		return EUNO_CORRUPT;
	memcpy(rd->last.bytes, rd->key.bytes, rd->key.len);
	rd->last.len = rd->key.len;
	return EUNO_OK;
}
