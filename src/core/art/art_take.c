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

/* Puts the composite of a leaf together in rd->key. */
static bool
compose(ArtRead *rd, const ArtChild *leaf, uint32_t depth, ArtTail *tail)
{
	if (!euno_art_leaf_tail(leaf, depth, tail) ||
		depth + tail->n < EUNO_TID_BYTES ||
		depth + tail->n > ART_MAX_COMPOSITE)
		return false;
	euno_copy_out(rd->key.bytes + depth, tail->bytes, tail->n);
	rd->key.len = depth + tail->n;
	return true;
}

/* The TID of an entry, if its leaf has all of it. */
static inline bool
leaf_tid(const ArtChild *leaf, uint32_t depth, EunoTid *tid)
{
	ArtRef		ref = leaf->ref;
	uint16_t	start;

	if (!art_is_leaf(ref))
	{
		if (art_inline_count(ref) < EUNO_TID_BYTES)
			return false;
		*tid = art_inline_bytes(leaf, art_inline_count(ref), EUNO_TID_BYTES);
		return true;
	}
	euno_copy_out(&start, art_record(ref), sizeof(start));
	if (start > depth || art_leaf_len(ref) < (uint32_t) start + EUNO_TID_BYTES)
		return false;
	*tid = art_record_tid(ref, start);
	return true;
}

/*
 * Adds a leaf to the batch.  EUNO_FULL: there is no room; EUNO_CORRUPT.
 */
EunoStatus
euno_art_take(ArtRead *rd, const ArtChild *leaf, uint32_t depth)
{
	EunoBatch  *batch = rd->batch;
	uint32_t	at = rd->used;
	EunoItemKey *item;
	ArtTail		tail;
	uint32_t	len;

	if (batch->nitems >= batch->max_items)
		return EUNO_FULL;
	if (!batch->want_keys &&
		leaf_tid(leaf, depth, &batch->tids[batch->nitems]))
	{
		batch->nitems++;
		return EUNO_OK;
	}
	if (!compose(rd, leaf, depth, &tail))
		return EUNO_CORRUPT;
	len = rd->key.len - EUNO_TID_BYTES;
	if (batch->want_keys)
	{
		if (at + art_align8(len) + art_align8(tail.payload_len) > batch->buf_size)
			return EUNO_FULL;
		item = &batch->keys[batch->nitems];
		memcpy(batch->buf + at, rd->key.bytes, len);
		item->offset = at;
		item->keylen = (uint16_t) len;
		item->payloadlen = (uint16_t) tail.payload_len;
		at += art_align8(len);
		if (tail.payload_len > 0)
			euno_copy_out(batch->buf + at, tail.payload, tail.payload_len);
		rd->used = at + art_align8(tail.payload_len);
	}
	batch->tids[batch->nitems++] = euno_get_tid(rd->key.bytes + len);
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

/*
 * Adds the leaves that were found in a node of this level, and are to be
 * believed.
 */
EunoStatus
euno_art_take_run(ArtRead *rd, uint32_t level)
{
	EunoStatus	status = EUNO_OK;
	uint32_t	n = rd->nrun;
	uint32_t	i;

	rd->nrun = 0;
	for (i = 0; i < n; i++)
	{
		rd->key.bytes[level] = rd->run_bytes[i];
		status = euno_art_take(rd, &rd->run[i], level + 1);
		if (status != EUNO_OK)
			break;
	}
	if (status == EUNO_FULL || rd->batch->nitems >= rd->batch->max_items)
	{
		rd->full = true;
		status = EUNO_OK;
	}
	if (status == EUNO_OK && i > 0)
	{
		rd->key.bytes[level] = rd->run_bytes[i - 1];
		remember(rd, &rd->run[i - 1], level + 1);
	}
	return status;
}

/* A leaf that may be outside of the range. */
EunoStatus
euno_art_take_edge(ArtRead *rd, const ArtChild *leaf, uint32_t depth,
				   bool at_edge, bool end_edge)
{
	EunoStatus	status;
	ArtTail		tail;

	if (!compose(rd, leaf, depth, &tail))
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
	ArtTail		tail;

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
	if (!compose(rd, &rd->last_leaf, rd->last.len, &tail))
		return EUNO_CORRUPT;
	memcpy(rd->last.bytes, rd->key.bytes, rd->key.len);
	rd->last.len = rd->key.len;
	return EUNO_OK;
}
