/*-------------------------------------------------------------------------
 *
 * bpt_leaf.c
 *	  Changing a leaf in place.
 *
 * The leaf is locked, nothing can fail, and nobody else reads what is read here.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* Opens a place for one slot at i.  Not FIXED. */
static void
open_slot(const BptView *view, uint32_t count, uint32_t i)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint16_t   *offs = (uint16_t *) view->offs;

	euno_move(heads + i + 1, heads + i, (count - i) * 8);
	euno_move(offs + i + 1, offs + i, (count - i) * 2);
}

/* The opposite. */
static void
close_slot(const BptView *view, uint32_t count, uint32_t i)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint16_t   *offs = (uint16_t *) view->offs;

	euno_move(heads + i, heads + i + 1, (count - i - 1) * 8);
	euno_move(offs + i, offs + i + 1, (count - i - 1) * 2);
}

/* FIXED: gives slots [from, to) the entry of slot i. */
static void
fill_slots(const BptView *view, uint32_t from, uint32_t to, uint32_t i)
{
	for (; from < to; from++)
		bpt_move_slots(view, from, i, 1);
}

/* FIXED: removes the entry whose first slot is i. */
static void
remove_fixed(BptView *view, uint32_t i)
{
	uint32_t	next = bpt_next_slot(view, i);

	if (next == view->count)
		view->count = i;
	else if (i > 0)
		fill_slots(view, i, next, i - 1);
	else
		fill_slots(view, i, next, next);
	view->entries--;
}

/* Of so many offsets the processor changes several at once. */
#define OFFSETS_AT_ONCE	16

/* Adds "size" to those of n offsets that are less than "off". */
static void
move_offsets(uint16_t *offs, uint32_t n, uint16_t off, uint16_t size)
{
	uint32_t	i;

	for (i = 0; i + OFFSETS_AT_ONCE <= n; i += OFFSETS_AT_ONCE)
	{
		uint16_t	some[OFFSETS_AT_ONCE];

		memcpy(some, offs + i, sizeof(some));
		for (int k = 0; k < OFFSETS_AT_ONCE; k++)
			some[k] += some[k] < off ? size : 0;
		euno_copy_in(offs + i, some, sizeof(some));
	}
	for (; i < n; i++)
	{
		if (offs[i] < off)
			euno_store16(&offs[i], offs[i] + size);
	}
}

/*
 * Frees a record of "size" bytes: the ones below it move up, so that all free
 * bytes of a leaf are in one place and growing lists leave no holes behind.
 */
static void
close_record(BptLeaf *leaf, BptView *view, uint32_t count, uint32_t off,
			 uint32_t size)
{
	if (off > view->heap)
	{
		euno_move((uint8_t *) leaf + view->heap + size,
				  (uint8_t *) leaf + view->heap, off - view->heap);
		move_offsets((uint16_t *) view->offs, count, (uint16_t) off,
					 (uint16_t) size);
	}
	view->heap += size;
	euno_store16(&leaf->heap, (uint16_t) view->heap);
}

static void
put_fixed(BptLeaf *leaf, BptView *view, const BptPut *put)
{
	uint32_t	from;
	uint32_t	to;

	if (!euno_bpt_make_room(view, put->slot, put->near, &from, &to))
		return;
	euno_store64((uint64_t *) &view->heads[from], put->head[0]);
	if (view->tail_len > 0)
		euno_copy_in((uint8_t *) view->tails + from * view->tail_len,
					 put->tail, view->tail_len);
	fill_slots(view, from + 1, to, from);
	euno_store16(&leaf->count, (uint16_t) view->count);
	euno_store16(&leaf->entries, (uint16_t) (view->entries + 1));
}

/*
 * Does what was planned.  The caller has locked the leaf at the version of the
 * view from which the plan was made, the leaf's own or that of a copy; it is
 * not to be used afterwards.
 */
void
euno_bpt_leaf_put(BptLeaf *leaf, BptView *view, const BptPut *put)
{
	uint32_t	count;
	uint32_t	heap;

	if (view->leaf != leaf)
		(void) euno_bpt_view(leaf, view);
	if (view->format == BPT_FIXED)
	{
		put_fixed(leaf, view, put);
		return;
	}
	count = view->count;
	if (put->replace)
		close_record(leaf, view, count,
					 euno_load16(&view->offs[put->slot]), put->freed);
	heap = view->heap;
	for (uint32_t r = 0; r < put->nrecs; r++)
	{
		uint32_t	slot = put->slot + r;

		heap -= put->size[r];
		euno_copy_in((uint8_t *) leaf + heap, put->record[r], put->size[r]);
		if (r > 0 || !put->replace)
			open_slot(view, count++, slot);
		euno_store64((uint64_t *) &view->heads[slot], put->head[r]);
		euno_store16((uint16_t *) &view->offs[slot], (uint16_t) heap);
	}
	euno_store16(&leaf->heap, (uint16_t) heap);
	euno_store16(&leaf->count, (uint16_t) count);
	euno_store16(&leaf->ntids, (uint16_t) (euno_load16(&leaf->ntids) + 1));
}

/*
 * Gives slot i, whose record is "slot", these TIDs instead of the ones it has,
 * of which they are a part.  The leaf is locked.
 */
static void
rewrite_slot(BptLeaf *leaf, BptView *view, uint32_t count, uint32_t i,
			 const BptSlot *slot, const BptTidList *tids)
{
	uint8_t		record[BPT_MAX_COMPOSITE + BPT_LIST_BYTES + 16];
	uint8_t		suffix[BPT_MAX_COMPOSITE + 16];
	uint32_t	size;
	uint32_t	off = euno_load16(&view->offs[i]);
	uint32_t	skip = view->format == BPT_OPAQUE ? 0 : 8;	/* in the head */
	uint64_t	head = euno_load64(&view->heads[i]);

	euno_put_word(suffix, head);
	euno_copy_out(suffix + skip, slot->tail, slot->tail_len);
	if (view->format == BPT_OPAQUE)
		head = (head & ~EUNO_TID_MAX) | tids->first;
	else
	{
		uint8_t		tid[EUNO_TID_BYTES];
		uint32_t	part = slot->len < EUNO_TID_BYTES ? slot->len :
			EUNO_TID_BYTES;

		euno_put_tid(tid, tids->first);
		memcpy(suffix + slot->len - part, tid + EUNO_TID_BYTES - part, part);
		head = euno_get_word(suffix);
	}
	size = euno_bpt_build_record(record, slot->len, suffix + skip,
								 slot->tail_len, NULL, tids);
	close_record(leaf, view, count, off, slot->size);
	view->heap -= size;
	euno_copy_in((uint8_t *) leaf + view->heap, record, size);
	euno_store64((uint64_t *) &view->heads[i], head);
	euno_store16((uint16_t *) &view->offs[i], (uint16_t) view->heap);
	euno_store16(&leaf->heap, (uint16_t) view->heap);
}

/* Removes the entry right of the gap.  The leaf is locked. */
void
euno_bpt_leaf_remove(BptLeaf *leaf, const BptGap *gap)
{
	uint8_t		bytes[BPT_LIST_BYTES + BPT_SLACK];
	BptView		view;
	BptSlot		slot;

	if (!euno_bpt_view(leaf, &view) || gap->slot >= view.count)
		return;
	if (view.format == BPT_FIXED)
	{
		remove_fixed(&view, gap->slot);
		euno_store16(&leaf->count, (uint16_t) view.count);
		euno_store16(&leaf->entries, (uint16_t) view.entries);
		return;
	}
	if (!euno_bpt_slot(&view, gap->slot, &slot))
		return;
	euno_store16(&leaf->ntids, (uint16_t) (euno_load16(&leaf->ntids) - 1));
	if (slot.ntids > 1)
	{
		BptTidList	list = {euno_bpt_first_tid(&view, gap->slot),
		slot.ntids - 1, bytes, slot.list_len};

		euno_copy_out(bytes, slot.list, list.len);
		list.first = euno_bpt_list_remove(bytes, &list.len, list.first,
										  gap->sub);
		rewrite_slot(leaf, &view, view.count, gap->slot, &slot, &list);
		return;
	}
	close_record(leaf, &view, view.count,
				 euno_load16(&view.offs[gap->slot]), slot.size);
	close_slot(&view, view.count, gap->slot);
	euno_store16(&leaf->count, (uint16_t) (view.count - 1));
}

/* FIXED: the same as euno_bpt_leaf_remove_tids. */
static uint32_t
remove_tids_fixed(BptView *view, const EunoTid *tids, uint32_t n)
{
	uint32_t	count = 0;		/* slots whose entry stays, or has been replaced */
	uint32_t	removed = 0;
	uint32_t	next;

	for (uint32_t i = 0; i < view->count; i = next)
	{
		next = bpt_next_slot(view, i);
		if (euno_tid_among(euno_bpt_first_tid(view, i), tids, n))
		{
			removed++;
			continue;
		}

		/* Those left of it are its left neighbor's, if there is one. */
		fill_slots(view, count, i, count > 0 ? count - 1 : i);
		count = next;
	}
	view->count = count;
	view->entries -= removed;
	return removed;
}

/*
 * Removes all entries with one of these TIDs, which are sorted.  The leaf is
 * locked.  Returns how many there were.
 */
uint32_t
euno_bpt_leaf_remove_tids(BptLeaf *leaf, const EunoTid *tids, uint32_t n)
{
	EunoTid		have[BPT_LIST_MAX];
	uint8_t		bytes[BPT_LIST_BYTES];
	BptView		view;
	BptSlot		slot;
	uint32_t	removed = 0;
	uint32_t	count;

	if (!euno_bpt_view(leaf, &view))
		return 0;
	if (view.format == BPT_FIXED)
	{
		removed = remove_tids_fixed(&view, tids, n);
		euno_store16(&leaf->count, (uint16_t) view.count);
		euno_store16(&leaf->entries, (uint16_t) view.entries);
		return removed;
	}
	count = view.count;
	for (uint32_t i = count; i-- > 0;)
	{
		uint32_t	left = 0;
		uint32_t	old;

		if (!euno_bpt_slot(&view, i, &slot))
			break;
		old = euno_bpt_tids(&view, i, &slot, have);
		for (uint32_t k = 0; k < old; k++)
		{
			if (!euno_tid_among(have[k], tids, n))
				have[left++] = have[k];
		}
		if (left == old)
			continue;
		removed += old - left;
		if (left > 0)
		{
			BptTidList	list = {have[0], left, bytes,
			euno_bpt_list_encode(have, left, bytes)};

			rewrite_slot(leaf, &view, count, i, &slot, &list);
		}
		else
		{
			close_record(leaf, &view, count, euno_load16(&view.offs[i]),
						 slot.size);
			close_slot(&view, count--, i);
		}
	}
	euno_store16(&leaf->count, (uint16_t) count);
	euno_store16(&leaf->ntids,
				 (uint16_t) (euno_load16(&leaf->ntids) - removed));
	return removed;
}
