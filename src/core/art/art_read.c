/*-------------------------------------------------------------------------
 *
 * art_read.c
 *	  Range scans, a batch at a time.
 *
 * A batch is read going through the tree in order, with a stack of nodes on
 * the path.  In OLC what was read in a node is believed once its version has
 * been looked at again, and a node's child is entered as in a descent; when a
 * version has passed, the batch ends with what there is, or starts again.  In
 * ROWEX nothing is looked at again: each slot's content was right when it was
 * read, and a node that was replaced does not change any more.
 *
 * Between two batches the place is a position, never a node.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/* The bound behind all of the node that was the lowest on the stack. */
static bool
bound_behind(ArtRead *rd)
{
	uint32_t	len = rd->frames[0].level;

	memcpy(rd->at.bytes, rd->key.bytes, len);
	if (rd->forward)
		return euno_art_key_after(&rd->at, len);
	while (len > 0 && rd->at.bytes[len - 1] == 0)
		len--;
	euno_art_key_set(&rd->at, len);
	return len > 0;
}

/* Enters the tree at the root. */
static EunoStatus
enter_root(ArtRead *rd, EunoTree *tree)
{
	ArtBody    *body = art_body(tree);
	uint32_t	weight;
	ArtRef		ref;
	ArtChild	leaf;

	rd->cx->counters.descents++;
	weight = euno_sample_weight(rd->cx, tree);
	if (weight > 0)
		euno_art_sample(rd->cx, tree, &rd->at, true, weight);
	rd->truncated = false;
	rd->nframes = 0;
	rd->lock = &body->root_lock;
	euno_art_key_position(rd->stop, &rd->end);
	if (!rd->rowex && !art_read_lock(rd->cx, tree, rd->lock, &rd->version,
									 &rd->key, ART_PATH, 0, NULL))
		return EUNO_STALE;		/* canceled */
	ref = euno_load64_acquire(&body->root);
	if (!rd->rowex && !euno_lock_validate(rd->lock, rd->version))
		return euno_art_stale(rd->cx, tree, &rd->key, ART_PATH, 0, NULL);
	if (art_is_node(ref))
		return euno_art_enter(rd, ref, 0, true, true);
	leaf = art_child(ref, &body->root);
	return art_is_absent(ref) ? EUNO_OK : euno_art_take_edge(rd, &leaf, 0, true, true);
}

/* Reads on until the batch is full or the range has ended. */
static EunoStatus
read_on(ArtRead *rd, EunoTree *tree)
{
	EunoStatus	status = EUNO_OK;

	while (!rd->ended && !rd->full)
	{
		if (rd->nframes > 0)
			status = euno_art_advance(rd);
		else if (!rd->truncated || !bound_behind(rd))
			rd->ended = true;
		else
			status = enter_root(rd, tree);
		if (status != EUNO_OK)
			return status;
	}
	return EUNO_OK;
}

/* The batch's first entry has this key, and no payload. */
static inline void
put_key(EunoBatch *batch, const ArtKey *key)
{
	batch->keys[0].offset = 0;
	batch->keys[0].keylen = (uint16_t) key->len;
	batch->keys[0].payloadlen = 0;
	memcpy(batch->buf, key->bytes, key->len);
}

/* All that starts with this key, cut as in euno_art_key_position. */
static EunoStatus
read_prefix(ArtRead *rd, EunoTree *tree, const EunoPosition *pos)
{
	uint32_t	len = pos->keylen < EUNO_MAX_ENTRY ? pos->keylen : EUNO_MAX_ENTRY;
	EunoStatus	status;
	ArtChild	leaf;
	ArtPlace	place;
	ArtTail		tail;
	bool		found;

	if (len > 0)
		memcpy(rd->at.bytes, pos->key, len);
	euno_art_key_set(&rd->at, len);
	status = rd->rowex ?
		art_descend(rd->cx, tree, &rd->at, true, true, false, &place, NULL) :
		art_descend(rd->cx, tree, &rd->at, false, true, false, &place, NULL);
	if (status != EUNO_OK)
		return status;
	if (place.where == ART_AT_LEAF && !art_is_absent(place.ref))
	{
		leaf = art_child(place.ref, place.slot);
		if ((!rd->batch->want_keys || rd->at.len <= rd->batch->buf_size) &&
			art_leaf_match(&leaf, place.depth, &rd->at, rd->batch->want_keys,
						   &found, rd->batch->tids))
		{
			if (rd->batch->want_keys && found)
				put_key(rd->batch, &rd->at);
			rd->batch->nitems = found;
			rd->ended = true;
			return EUNO_OK;
		}
		if (!euno_art_leaf_tail(&leaf, place.depth, &tail))
			return EUNO_CORRUPT;
		rd->ended = true;
		if (euno_art_leaf_mismatch(&tail, place.depth, &rd->at) < rd->at.len)
			return EUNO_OK;
		memcpy(rd->key.bytes, rd->at.bytes, place.depth);
		status = euno_art_take(rd, &leaf, place.depth);
		return status == EUNO_FULL ? EUNO_OK : status;
	}
	rd->ended = place.where != ART_AT_TREE;
	if (rd->ended)
		return EUNO_OK;
	memcpy(rd->key.bytes, rd->at.bytes, place.depth);
	rd->lock = place.lock;
	rd->version = place.version;
	rd->tree = tree;
	rd->prefix = true;
	status = euno_art_enter(rd, place.ref, place.depth, false, false);
	return status == EUNO_OK ? read_on(rd, tree) : status;
}

/* The position beside an entry: behind it, or just before it. */
static void
position_of(const ArtKey *key, bool behind, EunoPositionBuffer *pos)
{
	uint32_t	len = key->len - EUNO_TID_BYTES;

	memset(&pos->pos, 0, sizeof(pos->pos));
	memcpy(pos->data, key->bytes, len);
	pos->pos.key = pos->data;
	pos->pos.keylen = len;
	pos->pos.tid = euno_get_tid(key->bytes + len);
	if (behind && pos->pos.tid == EUNO_TID_MAX)
		pos->pos.side = 1;
	else if (behind)
		pos->pos.tid++;
}

/* Is the range all that starts with one key? */
static bool
is_prefix(const EunoCursor *cursor)
{
	const EunoPosition *lo = &cursor->lo;
	const EunoPosition *hi = &cursor->hi;

	return lo->side < 0 && hi->side > 0 && lo->keylen == hi->keylen &&
		(lo->key == hi->key || memcmp(lo->key, hi->key, lo->keylen) == 0);
}

/* Reads a batch; "start" is where from.  Tries again, in the end as ROWEX. */
static EunoStatus
read_batch(ArtRead *rd, EunoTree *tree, const EunoPosition *start, bool prefix)
{
	EunoStatus	status;

	for (uint32_t attempts = 0;; attempts++)
	{
		rd->rowex = art_body(tree)->rowex || attempts >= ART_PATIENCE;
		rd->ended = rd->full = rd->truncated = false;
		rd->used = rd->nframes = rd->nrun = 0;
		rd->last_leaf.ref = 0;
		rd->batch->nitems = 0;
		if (prefix)
			status = read_prefix(rd, tree, start);
		else
		{
			euno_art_key_position(start, &rd->at);
			rd->tree = tree;
			rd->prefix = false;
			status = enter_root(rd, tree);
			if (status == EUNO_OK)
				status = read_on(rd, tree);
		}
		if (status == EUNO_OK)
			return status;
		rd->cx->counters.restarts++;
		if (status != EUNO_STALE)
			return status;
		if (rd->batch->nitems > 0)
			return EUNO_OK;
		if (euno_is_canceled(rd->cx->env))
			return EUNO_CANCELED;
	}
}

/*
 * Reads the next batch of a range.  See EunoTreeOps and EunoCursor.  No locks
 * on entry or return.
 */
EunoStatus
euno_art_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			  bool forward, EunoBatch *batch)
{
	bool		first = !cursor->started;
	const EunoPosition *start;
	EunoStatus	status;
	bool		prefix;
	ArtRead		rd;

	batch->nitems = 0;
	if (!euno_cursor_turn(cursor, forward))
		return EUNO_OK;
	rd.cx = cx;
	rd.batch = batch;
	rd.forward = forward;
	if (forward)
		start = cursor->at_lo ? &cursor->lo : &cursor->left.pos;
	else
		start = cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	prefix = first && is_prefix(cursor);
	if (prefix)
		start = &cursor->lo;
	euno_epoch_enter(cx->process);
	rd.stop = forward ? &cursor->hi : &cursor->lo;
	status = read_batch(&rd, tree, start, prefix);
	if (status == EUNO_OK && !rd.ended)
		status = euno_art_take_last(&rd);
	euno_epoch_exit(cx->process);
	if (status != EUNO_OK)
		batch->nitems = 0;
	else if (forward)
	{
		cursor->at_hi = rd.ended;
		if (!rd.ended)
			position_of(&rd.last, true, &cursor->right);
	}
	else
	{
		cursor->at_lo = rd.ended;
		if (!rd.ended)
			position_of(&rd.last, false, &cursor->left);
	}
	return status;
}
