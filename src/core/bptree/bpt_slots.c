/*-------------------------------------------------------------------------
 *
 * bpt_slots.c
 *	  Splitting and repacking SLOTTED and OPAQUE leaves slot by slot.
 *
 * A slot's record is copied as it is, or without the bytes by which the prefix
 * of its new leaf is longer; lists of TIDs are not taken apart.  What may become
 * a FIXED leaf, and lists that should be joined, take the general way.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* By how many bytes a prefix may become longer, at most. */
#define SLOTS_CUT	7

static void
add_piece(BptPieces *ps, uint64_t head, const uint8_t *record,
		  const BptSlot *slot)
{
	BptPiece   *piece = &ps->piece[ps->n++];

	piece->head = head;
	piece->record = record;
	piece->size = (uint16_t) slot->size;
	piece->len = (uint16_t) slot->len;
	piece->ntids = (uint16_t) slot->ntids;
	piece->tail_at = (uint8_t) (slot->tail - record);
	piece->payload = slot->payload_len > 0;
}

/* By how many of so many bytes a record gets shorter.  SLOTTED. */
static inline uint32_t
cut_of(const BptPiece *piece, uint32_t by)
{
	uint32_t	tail_len = piece->len > 8 ? piece->len - 8 : 0;

	return tail_len < by ? tail_len : by;
}

/* The leaf's slots, with what was planned.  False if there are too many. */
static bool
take_pieces(BptPieces *ps, BptView *view)
{
	const BptPut *put = &ps->put;
	BptSlot		slot;

	if (view->count + put->nrecs > BPT_LEAF_TIDS)
		return false;
	ps->n = 0;
	for (uint32_t i = 0; i <= view->count; i++)
	{
		for (uint32_t r = 0; r < put->nrecs && i == put->slot; r++)
		{
			euno_bpt_record(put->record[r], ps->format, &slot);
			add_piece(ps, put->head[r], put->record[r], &slot);
		}
		if (i == view->count || (i == put->slot && put->replace))
			continue;
		if (!euno_bpt_slot(view, i, &slot))
			return false;
		add_piece(ps, view->heads[i],
				  (const uint8_t *) view->leaf + view->offs[i], &slot);
	}
	return true;
}

/*
 * The composite of a piece's first entry, or its last; 8 bytes of room after
 * it.  OPAQUE: the key.  Returns its length.
 */
static uint32_t
piece_bytes(const BptPieces *ps, uint32_t i, bool last, uint8_t *to)
{
	const BptPiece *piece = &ps->piece[i];
	BptSlot		slot;
	uint32_t	len;

	euno_bpt_record(piece->record, ps->format, &slot);
	if (ps->format == BPT_OPAQUE)
	{
		memcpy(to, slot.tail, slot.len);
		return slot.len;
	}
	memcpy(to, ps->prefix, ps->prefix_len);
	euno_put_word(to + ps->prefix_len, piece->head);
	memcpy(to + ps->prefix_len + 8, slot.tail, slot.tail_len);
	len = ps->prefix_len + slot.len;
	if (last && slot.ntids > 1)
	{
		EunoTid		tid = euno_get_word(to + len - EUNO_TID_BYTES) >> 16;
		EunoTid		ignored;
		uint32_t	at;

		(void) euno_bpt_list_find(slot.list, slot.list_len, tid, slot.ntids,
								  EUNO_TID_MAX + 1, &at, &tid, &ignored);
		euno_put_tid(to + len - EUNO_TID_BYTES, tid);
	}
	return len;
}

/* What is known of pieces [a, b) between two fences. */
static void
measure(const BptPieces *ps, uint32_t a, uint32_t b, const BptFence *low,
		const BptFence *high, BptMeasure *e)
{
	const BptPiece *piece = ps->piece;
	uint8_t		last[BPT_MAX_COMPOSITE + 8];
	uint32_t	len = ps->prefix_len;
	uint32_t	first_len = piece[a].len;
	uint32_t	most = UINT32_MAX;

	e->used = BPT_SLACK;
	e->ntids = 0;
	e->fixed = ps->format == BPT_SLOTTED;
	for (uint32_t i = a; i < b; i++)
	{
		if (piece[i].len != first_len || piece[i].payload)
			e->fixed = false;
		if (piece[i].len < most)
			most = piece[i].len;
		e->ntids += piece[i].ntids;
		e->used += 10 + piece[i].size;
	}
	e->by = 0;
	if (ps->format == BPT_SLOTTED && low->bytes != NULL)
	{
		const uint8_t *top = high->bytes != NULL ? high->bytes : last;
		uint32_t	top_len = high->bytes != NULL ? high->len :
			piece_bytes(ps, b - 1, true, last);

		while (len < low->len && len < top_len && len - ps->prefix_len < most &&
			   low->bytes[len] == top[len])
			len++;
		e->by = len - ps->prefix_len;
	}
	for (uint32_t i = a; i < b && e->by > 0; i++)
		e->used -= cut_of(&piece[i], e->by);
	if (e->fixed)
	{
		uint32_t	size = first_len - e->by;

		e->fixed = BPT_SLACK + e->ntids * (size > 8 ? size : 8) <= e->used;
	}
}

/*
 * Puts a piece's record, without "by" bytes, in front of "end".  Returns its
 * size.
 */
static inline uint32_t
put_piece(const BptPiece *piece, uint32_t by, uint8_t *end, uint64_t *head)
{
	const uint8_t *tail = piece->record + piece->tail_at;
	uint32_t	cut = by > 0 ? cut_of(piece, by) : 0;
	uint32_t	size = piece->size - cut;
	uint8_t    *to = end - size;
	uint8_t		bytes[8] = {0};
	uint32_t	len;

	*head = piece->head;
	if (by == 0)
	{
		memcpy(to, piece->record, size);
		return size;
	}
	memcpy(bytes, tail, cut);
	*head = *head << (8 * by) | euno_get_word(bytes) >> (64 - 8 * by);
	memcpy(to, piece->record, piece->tail_at);
	memcpy(to + piece->tail_at, tail + cut, size - piece->tail_at);
	len = ((uint32_t) to[0] | (uint32_t) to[1] << 8) - by;
	to[0] = (uint8_t) len;
	to[1] = (uint8_t) (len >> 8);
	return size;
}

/*
 * Builds the leaf of pieces [a, b) in an image whose size_log2 and body are
 * set.  False if they do not fit.
 */
static bool
build(const BptPieces *ps, uint32_t a, uint32_t b, const BptFence *low,
	  const BptFence *high, const BptMeasure *e, BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	size = (uint32_t) bpt_leaf_size(leaf);
	uint32_t	count = b - a;
	uint32_t	cap = count;
	uint32_t	heap = size - BPT_SLACK;
	uint64_t   *heads = (uint64_t *) (image->bytes + leaf->body);
	uint16_t   *offs;

	if (e->used > size - leaf->body)
		return false;
	euno_bpt_leaf_head(leaf, ps->format, ps->prefix_len + e->by, low, high);
	cap += (size - leaf->body - e->used) / (e->used / count + 1);
	if (cap > BPT_LEAF_TIDS - 2)
		cap = BPT_LEAF_TIDS - 2;
	offs = (uint16_t *) (heads + cap);
	for (uint32_t i = a; i < b; i++)
	{
		heap -= put_piece(&ps->piece[i], e->by, image->bytes + heap, heads++);
		*offs++ = (uint16_t) heap;
	}
	if (ps->format == BPT_SLOTTED)
		euno_bpt_note_alphabet(leaf, heads - count, count);
	euno_bpt_image_done(image, count, cap, heap);
	leaf->ntids = (uint16_t) e->ntids;
	return true;
}

/*
 * How many pieces stay left: up to the new one, where entries ascend; else half
 * of the bytes.
 */
static uint32_t
choose(EunoTree *tree, const BptPieces *ps, BptView *view)
{
	const BptPut *put = &ps->put;
	uint32_t	total = 0;
	uint32_t	left = 0;
	uint32_t	m = 0;

	if (!put->replace)
		m = euno_bpt_split_edge(tree, ps->n, put->slot, view->leaf, true);
	if (m > 0)
		return m;
	if (!put->replace && euno_bpt_ascends(view, put->slot))
		return put->slot + put->nrecs;
	for (uint32_t i = 0; i < ps->n; i++)
		total += 10 + ps->piece[i].size;
	while (m < ps->n - 1 && (left < total / 2 || m == 0))
		left += 10 + ps->piece[m++].size;
	return m;
}

/* Can a half be built slot by slot? */
static bool
as_slots(const BptMeasure *e)
{
	return e->by <= SLOTS_CUT && !e->fixed && e->ntids <= BPT_LEAF_TIDS - 2;
}

/*
 * Makes room for an entry at a gap of a leaf, whose view is of a private copy:
 * packs it anew, in s->left, if it is then not fuller than "fill" percent, and
 * returns BPT_PACKED; else chooses where to split, builds the left leaf there
 * and returns the number of pieces in it.  0: to be done in the general way.
 */
uint32_t
euno_bpt_cut(EunoTree *tree, BptSplit *s, BptView *view,
			 const BptInsertion *ins, uint32_t fill)
{
	BptPieces  *ps = &s->pieces;
	uint32_t	room = (uint32_t) bpt_leaf_size(&s->left.leaf) -
		s->left.leaf.body;
	uint8_t		before[BPT_MAX_COMPOSITE + 8];
	BptMeasure	e;
	uint32_t	m;

	if (view->format == BPT_FIXED ||
		!euno_bpt_plan_slots(tree, view, ins->entry, ins->key, ins->gap,
							 &ps->put))
		return 0;
	ps->format = view->format;
	ps->prefix = bpt_low(view->leaf);
	ps->prefix_len = view->format == BPT_OPAQUE ? 0 : view->prefix_len;
	if (!take_pieces(ps, view) || ps->n < 2)
		return 0;
	measure(ps, 0, ps->n, &s->low, &s->high, &e);
	if (e.by > SLOTS_CUT || e.fixed)
		return 0;
	if (e.used <= room * fill / 100 && e.ntids <= BPT_LEAF_TIDS - 2)
		return build(ps, 0, ps->n, &s->low, &s->high, &e, &s->left) ?
			BPT_PACKED : 0;
	m = choose(tree, ps, view);
	s->middle.bytes = s->middle_buf;
	s->middle.tid = ps->piece[m].head & EUNO_TID_MAX;
	s->middle.len = piece_bytes(ps, m, false, s->middle_buf);
	if (ps->format == BPT_SLOTTED)
		s->middle.len = euno_bpt_separate(before, piece_bytes(ps, m - 1, true, before),
										  s->middle_buf, s->middle.len,
										  m == ps->n - 1 && s->high.bytes != NULL);
	s->at = ps->put.slot + ps->put.mine;
	measure(ps, m, ps->n, &s->middle, &s->high, &ps->right);
	measure(ps, 0, m, &s->low, &s->middle, &e);
	if (!as_slots(&ps->right) || !as_slots(&e))
		return 0;
	return build(ps, 0, m, &s->low, &s->middle, &e, &s->left) ? m : 0;
}

/* The bytes that the pieces behind the split will take in the right leaf. */
uint32_t
euno_bpt_cut_size(const BptSplit *s)
{
	return s->pieces.right.used;
}

/* Builds the right leaf, of the pieces from m on; false if it does not fit. */
bool
euno_bpt_cut_right(BptSplit *s, uint32_t m)
{
	return build(&s->pieces, m, s->pieces.n, &s->middle, &s->high,
				 &s->pieces.right, &s->right);
}
