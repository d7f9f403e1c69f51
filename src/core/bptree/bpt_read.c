/*-------------------------------------------------------------------------
 *
 * bpt_read.c
 *	  Range scans, a batch at a time.
 *
 * A batch is what one leaf held of the range at one moment.  Everything is
 * copied out first and believed when the leaf's version has validated.  The
 * cursor keeps the ends of the batch as positions, never as places.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_read.h"

/* Writes the position of the entry right of the gap, as the view has it. */
static void
position_of_gap(BptRead *rd, const BptGap *gap, EunoPositionBuffer *to)
{
	BptView    *view = &rd->place.view;
	EunoTid		tids[BPT_LIST_MAX];
	uint8_t		key[BPT_MAX_COMPOSITE + 8];
	BptSlot		slot;
	uint32_t	n;
	uint32_t	len;

	/* A torn key may have ended the batch before anything was copied. */
	if (gap->slot >= view->count || !euno_bpt_slot(view, gap->slot, &slot))
	{
		view->torn = true;
		return;
	}
	n = euno_bpt_tids(view, gap->slot, &slot, tids);
	len = euno_bpt_key(view, gap->slot, &slot, key);
	if (n == 0 || gap->sub >= n || len > EUNO_MAX_ENTRY)
	{
		view->torn = true;
		return;
	}
	memset(&to->pos, 0, sizeof(to->pos));
	memcpy(to->data, key, len);
	to->pos.key = to->data;
	to->pos.keylen = len;
	to->pos.tid = tids[gap->sub];
}

static inline bool
is_before(const BptGap *a, const BptGap *b)
{
	return a->slot < b->slot || (a->slot == b->slot && a->sub < b->sub);
}

/*
 * COMPARE, as range_end.  A range that has come from another leaf mostly goes
 * on beyond this one, too: then its right neighbor's fence is looked at first.
 */
static EunoStatus
opaque_end(BptRead *rd, const BptKey *hi, const BptGap *a, BptLeaf *right,
		   BptGap *b, bool *here)
{
	BptView    *view = &rd->place.view;
	bool		begun = !rd->cursor->at_lo;
	EunoStatus	status;

	*here = true;
	if (!begun)
		euno_bpt_find_near(rd->cx, view, hi, a->slot, b);
	if (right != NULL && (begun || b->slot == view->count))
	{
		if ((status = euno_bpt_valid(&rd->place)) != EUNO_OK)
			return status;
		*here = euno_bpt_compare_fence(rd->cx, rd->tree, hi, right) <= 0;
	}
	if (begun && *here)
		euno_bpt_find_near(rd->cx, view, hi, a->slot, b);
	else if (begun)
		*b = (BptGap) {.slot = view->count};
	if (is_before(b, a))
		*b = *a;
	return EUNO_OK;
}

/*
 * Forward: the gap where the range ends in this leaf.  *here: the range does
 * not go on in the next leaf.  EUNO_OK, EUNO_STALE or EUNO_CORRUPT.
 */
static EunoStatus
range_end(BptRead *rd, const BptKey *hi, const BptGap *a, BptLeaf *right,
		  BptGap *b, bool *here)
{
	BptView    *view = &rd->place.view;
	EunoStatus	status;
	BptRange	where;

	*here = true;
	if (view->format == BPT_OPAQUE)
		return opaque_end(rd, hi, a, right, b, here);
	where = euno_bpt_range(rd->cx, rd->tree, view, right, hi, true);
	if (where == BPT_ASK_FENCE)
	{
		if ((status = euno_bpt_valid(&rd->place)) != EUNO_OK)
			return status;
		where = euno_bpt_compare_fence(rd->cx, rd->tree, hi, right) > 0 ?
			BPT_ABOVE : BPT_WITHIN;
	}
	if (where == BPT_BELOW)
	{
		*b = *a;
		return EUNO_OK;
	}
	if (where == BPT_WITHIN)
		euno_bpt_find_near(rd->cx, view, hi, a->slot, b);
	else
	{
		/* Nothing is above the last leaf's fences: it has just become so. */
		if (right == NULL)
		{
			view->torn = true;
			return euno_bpt_valid(&rd->place);
		}
		b->slot = view->count;
		b->sub = 0;
		*here = false;
	}
	if (is_before(b, a))
		*b = *a;
	return EUNO_OK;
}

/*
 * If the batch has room for all slots of this leaf, the next one will be of
 * the next leaf: where that begins, if it is like this one.  The processor
 * sees by itself what comes after that.
 */
static inline void
prefetch_next(const BptRead *rd, uint32_t slots, const BptLeaf *next)
{
	const BptView *view = &rd->place.view;
	const uint8_t *heads = (const uint8_t *) next + view->body;

	if (view->format == BPT_FIXED ?
		(uint64_t) slots * view->entries >
		(uint64_t) rd->batch->max_items * view->count :
		slots > rd->batch->max_items)
		return;
	euno_prefetch(next);
	euno_prefetch(&next->low_len);
	euno_prefetch(heads);
	euno_prefetch(heads + 64);
	euno_prefetch(heads + 8 * (size_t) view->cap);
	euno_prefetch(heads + 8 * (size_t) view->cap + 64);
}

/* Slots that are fetched together, at most, and for how many entries. */
#define FETCHED			160
#define LEAST_FETCHED	16

/* About this many slots will be read: some entries fill two. */
static inline uint32_t
run_of(const BptRead *rd)
{
	uint32_t	n = rd->batch->max_items;

	if (n < LEAST_FETCHED)
		return 0;
	n += n / 2;
	return n < FETCHED ? n : FETCHED;
}

/*
 * FIXED: has what will be copied from this slot on fetched.  The processor
 * would see it by itself, but only after the first few lines.
 */
static inline void
prefetch_run(const BptRead *rd, uint32_t slot)
{
	const BptView *view = &rd->place.view;
	uint32_t	n = rd->place.run;
	const uint8_t *heads = (const uint8_t *) (view->heads + slot);
	const uint8_t *tails = view->tails + (size_t) slot * view->tail_len;

	if (view->format != BPT_FIXED || n == 0)
		return;
	if (n > view->count - slot)
		n = view->count - slot;
	for (uint32_t at = 64; at < 8 * n; at += 64)
		euno_prefetch(heads + at);
	for (uint32_t at = 0; at < view->tail_len * n; at += 64)
		euno_prefetch(tails + at);
}

/* The items' keys: all are the one that was searched for. */
void
euno_bpt_one_key(EunoBatch *batch, const uint8_t *key, uint32_t len)
{
	EunoItemKey item = {.keylen = (uint16_t) len};

	memcpy(batch->buf, key, len);
	for (uint32_t i = 0; i < batch->nitems; i++)
		batch->keys[i] = item;
}

/*
 * One key in a contended leaf: its entries in the sorted part at the place,
 * and in the annex.  EUNO_NOT_FOUND: they are not all here, or cannot be told
 * without copying the whole leaf; else EUNO_OK, EUNO_STALE, EUNO_CORRUPT or
 * EUNO_CANCELED.
 */
static EunoStatus
key_in_contended(BptRead *rd, const BptKey *from, const BptKey *hi)
{
	BptLeaf    *right = bpt_place_right(&rd->place);
	EunoStatus	status;
	BptGap		a;
	BptGap		b;
	bool		here;

	bpt_place_find(rd->cx, &rd->place, from, &a);
	status = range_end(rd, hi, &a, right, &b, &here);
	if (status != EUNO_OK)
		return status;
	if (!euno_bpt_copy_range(rd, &a, &b, true) || !here ||
		!euno_bpt_annex_point(rd->cx, rd->place.leaf, from, rd->batch))
		return euno_is_canceled(rd->cx->env) ? EUNO_CANCELED : EUNO_NOT_FOUND;
	status = euno_bpt_valid(&rd->place);
	if (status == EUNO_OK &&
		!euno_lock_validate(&rd->place.leaf->lock, rd->place.version))
		status = EUNO_STALE;
	if (status == EUNO_OK && rd->batch->want_keys)
		euno_bpt_one_key(rd->batch, from->bytes, from->len);
	rd->cursor->at_hi = true;
	return status;
}

/* Had a leaf nothing for the batch, and shall the read go on for that? */
static inline bool
is_empty(const EunoBatch *batch)
{
	return batch->nitems == 0 && !batch->one_leaf;
}

/* One leaf of a forward read; *again: nothing in it, go on at its right. */
static EunoStatus
forward_leaf(BptRead *rd, const BptKey *from, const BptKey *hi,
			 BptLeaf **again)
{
	EunoCursor *cursor = rd->cursor;
	BptLeaf    *right;
	EunoStatus	status;
	BptGap		a;
	BptGap		b;
	bool		here;
	bool		all;

	*again = NULL;
	status = euno_bpt_seek(rd->cx, rd->tree, from, false, &rd->place);
	if (status == EUNO_OK && rd->place.view.contended)
	{
		status = rd->one_key ? key_in_contended(rd, from, hi) : EUNO_NOT_FOUND;
		if (status != EUNO_NOT_FOUND)
			return status;
		rd->one_key = false;
		status = euno_bpt_gather(rd->cx, rd->tree, &rd->place);
	}
	if (status != EUNO_OK)
		return status;
	right = bpt_place_right(&rd->place);
	bpt_place_find(rd->cx, &rd->place, from, &a);
	prefetch_run(rd, a.slot);
	status = range_end(rd, hi, &a, right, &b, &here);
	if (status != EUNO_OK)
		return status;
	if (!here && b.slot > a.slot)
		prefetch_next(rd, b.slot - a.slot, right);
	all = euno_bpt_copy_range(rd, &a, &b, true);
	if (!all)
		position_of_gap(rd, &rd->stop, &cursor->right);
	status = euno_bpt_valid(&rd->place);
	if (status != EUNO_OK)
		return status;
	cursor->at_hi = all && here;
	if (all && !here && is_empty(rd->batch))
		*again = right;
	if (cursor->at_hi || *again != NULL)
		return EUNO_OK;
	if (all)
		euno_bpt_fence_position(rd->tree, right, &cursor->right);
	rd->cx->next.leaf = all ? right : rd->place.leaf;
	rd->cx->next.stamp = rd->stamp;
	return EUNO_OK;
}

/* One leaf of a backward read; *again: nothing in it, go on at its left. */
static EunoStatus
backward_leaf(BptRead *rd, const BptKey *to, const BptKey *lo,
			  BptLeaf **again)
{
	EunoCursor *cursor = rd->cursor;
	BptView    *view = &rd->place.view;
	BptLeaf    *right;
	EunoStatus	status;
	BptGap		a = {.slot = 0};
	BptGap		b;
	bool		here = true;
	bool		all;
	BptRange	where;

	status = euno_bpt_seek(rd->cx, rd->tree, to, true, &rd->place);
	if (status == EUNO_OK && rd->place.view.contended)
		status = euno_bpt_gather(rd->cx, rd->tree, &rd->place);
	if (status != EUNO_OK)
		return status;
	right = bpt_place_right(&rd->place);
	bpt_place_find(rd->cx, &rd->place, to, &b);
	if (view->format == BPT_OPAQUE)
		where = euno_bpt_compare_fence(rd->cx, rd->tree, lo,
									   rd->place.leaf) < 0 ?
			BPT_BELOW : BPT_WITHIN;
	else
		where = euno_bpt_range(rd->cx, rd->tree, view, right, lo, false);
	if (where == BPT_BELOW)
		here = false;
	else if (where == BPT_ABOVE)
		a = b;
	else
		euno_bpt_find(rd->cx, view, lo, &a);
	if (is_before(&b, &a))
		a = b;
	all = euno_bpt_copy_range(rd, &a, &b, false);
	if (!all)
		position_of_gap(rd, &rd->stop, &cursor->left);
	status = euno_bpt_valid(&rd->place);
	if (status != EUNO_OK)
		return status;
	cursor->at_lo = all && here;
	*again = NULL;
	if (all && !here)
	{
		if (is_empty(rd->batch))
			*again = rd->place.leaf;
		else
			euno_bpt_fence_position(rd->tree, rd->place.leaf,
									&cursor->left);
	}
	return EUNO_OK;
}

/*
 * Is the range all that starts with one key, not too long a one?  COMPARE: all
 * entries with one key, and equal keys are equal bytes.
 */
static inline bool
is_one_key(const EunoTree *tree, const EunoCursor *cursor)
{
	const EunoPosition *lo = &cursor->lo;
	const EunoPosition *hi = &cursor->hi;

	return (!bpt_is_opaque(tree) || tree->config.posting) &&
		lo->side < 0 && hi->side > 0 &&
		lo->keylen == hi->keylen && lo->keylen > 0 &&
		lo->keylen <= BPT_POINT_KEY &&
		(lo->key == hi->key || memcmp(lo->key, hi->key, lo->keylen) == 0);
}

/*
 * Where the read begins, and the end of the range in its direction.  Forward,
 * what was read before may have said in which leaf that is.
 */
static inline void
find_ends(BptRead *rd, bool forward, BptKey *from, BptKey *to)
{
	EunoCursor *cursor = rd->cursor;
	EunoContext *cx = rd->cx;
	const EunoPosition *start;

	if (forward)
	{
		rd->place.run = run_of(rd);
		start = cursor->at_lo ? &cursor->lo : &cursor->left.pos;
		if (!cursor->at_lo && cx->next.stamp == rd->stamp)
			rd->place.guess = cx->next.leaf;
	}
	else
		start = cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	euno_bpt_key_position(rd->tree, forward ? &cursor->hi : &cursor->lo, to);
	euno_bpt_key_position(rd->tree, start, from);
}

/*
 * COMPARE: does the window begin before it ends?  Else the comparator
 * contradicts itself, or whoever wrote the tree.  (A window that ends with the
 * range, or beside it, is the last one.)
 */
static bool
window_is_ordered(BptRead *rd)
{
	const EunoCursor *cursor = rd->cursor;
	const EunoPosition *end = &cursor->right.pos;
	BptKey		begin;

	if (cursor->at_lo || cursor->at_hi || end->key != cursor->right.data)
		return true;
	euno_bpt_key_position(rd->tree, &cursor->left.pos, &begin);
	return euno_bpt_compare_opaque(rd->cx, &begin, end->key, end->keylen,
								   end->tid) < 0;
}

/* COMPARE: has a read in this direction ended where this one does? */
static bool
goes_round(EunoCursor *cursor, bool forward)
{
	const EunoPosition *end = forward ? &cursor->right.pos : &cursor->left.pos;

	if (forward ? cursor->at_hi : cursor->at_lo)
		return false;
	return euno_round_closes(&cursor->round, (uint64_t) end->tid << 8 |
							 (uint8_t) end->side,
							 bpt_opaque_hash(end->key, end->keylen));
}

/*
 * Reads the next batch of a range.  See EunoTreeOps and EunoCursor.  When a
 * call finds that the range has ended, the window is empty at that end: a read
 * in the other direction starts there.
 *
 * Empty leaves are skipped within one call, unless one_leaf is set.  No locks
 * on entry or return.
 */
EunoStatus
euno_bpt_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			  bool forward, EunoBatch *batch)
{
	EunoPosition fence;
	uint8_t		fence_buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	EunoStatus	status;
	BptImage	image;
	BptLeaf    *again = NULL;
	EunoRound	empty = {.patience = 0};	/* where nothing was found */
	BptKey		from;
	BptKey		to;
	BptRead		rd;

	batch->nitems = 0;
	rd.one_key = forward && !cursor->started && is_one_key(tree, cursor);
	if (rd.one_key && !batch->one_leaf &&
		(bpt_is_opaque(tree) ? euno_bpt_match_key(cx, tree, cursor, batch) :
		 euno_bpt_read_key(cx, tree, cursor, batch)))
		return EUNO_OK;
	if (!euno_cursor_turn(cursor, forward))
		return EUNO_OK;
	rd.cx = cx;
	rd.tree = tree;
	rd.cursor = cursor;
	rd.batch = batch;
	bpt_place_init(&rd.place, &image);
	euno_epoch_enter(cx->process);
	rd.stamp = euno_load64_acquire(&bpt_body(tree)->stamp);
	find_ends(&rd, forward, &from, &to);
	do
	{
		if (again != NULL)
		{
			euno_bpt_key_fence(tree, again, &fence, fence_buf, &from);
			again = NULL;
			rd.one_key = false;
		}
		status = forward ? forward_leaf(&rd, &from, &to, &again) :
			backward_leaf(&rd, &from, &to, &again);
		if (status == EUNO_OK)
			rd.place.attempts = 0;

		/* Back where we came from: the comparator contradicts itself. */
		if (again != NULL &&
			euno_round_closes(&empty, (uintptr_t) rd.place.leaf,
							  rd.place.version))
		{
			status = EUNO_CORRUPT;
			break;
		}
	} while (status == EUNO_STALE || again != NULL);
	if (batch->one_leaf && status == EUNO_OK)
		batch->leaf = rd.place.leaf->number;
	if (rd.place.moves > 0 && status == EUNO_OK)
		euno_bpt_catch_up(cx, tree, &rd.place);
	euno_epoch_exit(cx->process);
	if (status == EUNO_OK && bpt_is_opaque(tree) &&
		(!window_is_ordered(&rd) || goes_round(cursor, forward)))
		status = EUNO_CORRUPT;
	if (status != EUNO_OK)
		batch->nitems = 0;
	return status;
}
