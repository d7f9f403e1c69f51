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

/* Nothing has been read yet. */
static inline void
start_batch(ArtRead *rd, bool rowex)
{
	rd->rowex = rowex;
	rd->ended = rd->full = rd->truncated = false;
	rd->used = rd->nframes = 0;
	rd->last_leaf.ref = 0;
	rd->batch->nitems = 0;
}

/* Enters the tree at the root. */
static EunoStatus
enter_root(ArtRead *rd)
{
	EunoTree   *tree = rd->tree;
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
read_on(ArtRead *rd)
{
	EunoStatus	status = EUNO_OK;

	while (!rd->ended && !rd->full)
	{
		if (rd->nframes > 0)
			status = euno_art_advance(rd);
		else if (!rd->truncated || !bound_behind(rd))
			rd->ended = true;
		else
			status = enter_root(rd);
		if (status != EUNO_OK)
			return status;
	}
	return EUNO_OK;
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

/* Reads a batch; "start" is where from.  Tries again, in the end as ROWEX. */
static EunoStatus
read_batch(ArtRead *rd, const EunoPosition *start)
{
	EunoStatus	status;

	for (uint32_t attempts = 0;; attempts++)
	{
		start_batch(rd, art_body(rd->tree)->rowex || attempts >= ART_PATIENCE);
		euno_art_key_position(start, &rd->at);
		status = enter_root(rd);
		if (status == EUNO_OK)
			status = read_on(rd);
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

/* A batch has been read: notes in the cursor how far.  Within the epoch. */
static EunoStatus
end_batch(ArtRead *rd, EunoCursor *cursor, EunoStatus status)
{
	if (status == EUNO_OK && !rd->ended)
		status = euno_art_take_last(rd);
	if (status != EUNO_OK)
		rd->batch->nitems = 0;
	else if (rd->forward)
	{
		cursor->at_hi = rd->ended;
		if (!rd->ended)
			position_of(&rd->last, true, &cursor->right);
	}
	else
	{
		cursor->at_lo = rd->ended;
		if (!rd->ended)
			position_of(&rd->last, false, &cursor->left);
	}
	return status;
}

/*
 * The first batch of all that starts with a key, whose descent has ended here.
 * Within the epoch of that.
 */
EunoStatus
euno_art_read_below(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
					bool forward, const ArtKey *key, const ArtLookup *at,
					EunoBatch *batch)
{
	EunoStatus	status = EUNO_OK;
	ArtRead		rd;

	batch->nitems = 0;
	(void) euno_cursor_turn(cursor, forward);
	rd.cx = cx;
	rd.tree = tree;
	rd.batch = batch;
	rd.forward = forward;
	rd.stop = forward ? &cursor->hi : &cursor->lo;
	start_batch(&rd, true);
	memcpy(rd.key.bytes, key->bytes, at->depth);
	if (!art_is_node(at->ref))
	{
		ArtChild	leaf = art_child(at->ref, at->slot);
		ArtTail		tail;

		rd.ended = true;
		if (!euno_art_leaf_tail(&leaf, at->depth, &tail))
			status = EUNO_CORRUPT;
		else if (euno_art_leaf_mismatch(&tail, at->depth, key) >= key->len)
			status = euno_art_take(&rd, &leaf, at->depth);
		if (status == EUNO_FULL)
			status = EUNO_OK;
	}
	else if (art_ref_level(at->ref) < at->depth)
		status = EUNO_CORRUPT;
	else if (art_path_match(art_pointer(at->ref), key, at->depth) < key->len)
		rd.ended = true;
	else
	{
		status = euno_art_enter(&rd, at->ref, at->depth, false, false);
		if (status == EUNO_OK)
			status = read_on(&rd);
	}
	return end_batch(&rd, cursor, status);
}

/* Reads the next batch of a range. */
static EunoStatus __attribute__((noinline))
read_range(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
		   EunoBatch *batch)
{
	const EunoPosition *start;
	EunoStatus	status;
	ArtRead		rd;

	batch->nitems = 0;
	if (!euno_cursor_turn(cursor, forward))
		return EUNO_OK;
	rd.cx = cx;
	rd.tree = tree;
	rd.batch = batch;
	rd.forward = forward;
	if (forward)
		start = cursor->at_lo ? &cursor->lo : &cursor->left.pos;
	else
		start = cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	rd.stop = forward ? &cursor->hi : &cursor->lo;
	euno_epoch_enter(cx->process);
	status = end_batch(&rd, cursor, read_batch(&rd, start));
	euno_epoch_exit(cx->process);
	return status;
}

/* Is the range said to be all that starts with one key? */
static inline bool
is_prefix(const EunoCursor *cursor)
{
	const EunoPosition *lo = &cursor->lo;
	const EunoPosition *hi = &cursor->hi;

	return lo->side < 0 && hi->side > 0 && lo->keylen == hi->keylen &&
		lo->keylen > 0 && lo->key == hi->key;
}

/*
 * Reads the next batch of a range.  See EunoTreeOps and EunoCursor.  No locks
 * on entry or return.
 */
EunoStatus
euno_art_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			  bool forward, EunoBatch *batch)
{
	return !cursor->started && is_prefix(cursor) ?
		euno_art_read_key(cx, tree, cursor, forward, batch) :
		read_range(cx, tree, cursor, forward, batch);
}
