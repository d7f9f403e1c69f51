/*-------------------------------------------------------------------------
 *
 * bpt_leaf.c
 *	  Changing a leaf in place.
 *
 * An insertion is planned before the leaf is locked: the plan holds the new
 * records, and under the lock they are only copied in.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Writes a record with a list of n TIDs; returns its size. */
static uint32_t
build_record(uint8_t *to, uint32_t len, const uint8_t *tail, uint32_t tail_len,
			 const EunoEntry *payload, const uint8_t *list, uint32_t list_len,
			 uint32_t n)
{
	uint8_t    *p = to + 2;
	uint32_t	head = len;

	if (payload != NULL && payload->payloadlen > 0)
	{
		head |= BPT_REC_PAYLOAD;
		*p++ = (uint8_t) payload->payloadlen;
		*p++ = (uint8_t) (payload->payloadlen >> 8);
	}
	if (n > 1)
	{
		head |= BPT_REC_LIST;
		*p++ = (uint8_t) (n - 1);
		*p++ = (uint8_t) list_len;
		*p++ = (uint8_t) (list_len >> 8);
	}
	to[0] = (uint8_t) head;
	to[1] = (uint8_t) (head >> 8);
	if (tail_len > 0)
		memcpy(p, tail, tail_len);
	p += tail_len;
	if (head & BPT_REC_PAYLOAD)
	{
		memcpy(p, payload->payload, payload->payloadlen);
		p += payload->payloadlen;
	}
	if (n > 1)
	{
		memcpy(p, list, list_len);
		p += list_len;
	}
	return (uint32_t) (p - to);
}

/*
 * Plans a record of the entry's key with a list of n TIDs, of which this is the
 * first.
 */
static void
plan_record(const BptView *view, const EunoEntry *entry, EunoTid first,
			const uint8_t *list, uint32_t list_len, uint32_t n, bool payload,
			BptPut *put)
{
	uint32_t	r = put->nrecs++;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint32_t	len = entry->keylen;
	uint32_t	skip = 0;

	if (view->format == BPT_OPAQUE)
		put->head[r] = bpt_opaque_head(first, entry->key, len);
	else
	{
		if (len > 0)
			memcpy(buf, entry->key, len);
		euno_put_tid(buf + len, first);
		len += EUNO_TID_BYTES;
		memset(buf + len, 0, 8);
		put->head[r] = euno_get_word(buf + view->prefix_len);
		skip = view->prefix_len + 8;
		if (skip > len)
			skip = len;
	}
	put->size[r] = build_record(put->record[r],
								view->format == BPT_OPAQUE ? len :
								len - view->prefix_len,
								view->format == BPT_OPAQUE ? entry->key :
								buf + skip,
								len - skip, payload ? entry : NULL, list,
								list_len, n);
}

/* The same from TIDs. */
static void
plan_tids(const BptView *view, const EunoEntry *entry, const EunoTid *tids,
		  uint32_t n, BptPut *put)
{
	uint8_t		list[BPT_LIST_BYTES];

	plan_record(view, entry, tids[0], list,
				euno_bpt_list_encode(tids, n, list), n, false, put);
}

/* Has slot i the entry's key, and could it take more TIDs? */
static bool
slot_can_share(BptView *view, uint32_t i, const EunoEntry *entry,
			   BptSlot *slot)
{
	uint8_t		key[BPT_MAX_COMPOSITE + 8];

	if (!euno_bpt_slot(view, i, slot) || slot->payload_len > 0)
		return false;
	return euno_bpt_key_bytes(view, i, key) == entry->keylen &&
		!view->torn &&
		(entry->keylen == 0 || memcmp(key, entry->key, entry->keylen) == 0);
}

/* Plans to add the entry's TID to slot i before its TID number "at". */
static void
plan_list(BptView *view, uint32_t i, uint32_t at, const BptSlot *slot,
		  const EunoEntry *entry, BptPut *put)
{
	EunoTid		tids[BPT_LIST_MAX + 1];
	uint32_t	n = euno_bpt_slot_tids(view, i, tids);

	if (n == 0)
		return;					/* torn */
	if (at > n)
		at = n;
	memmove(&tids[at + 1], &tids[at], (n - at) * sizeof(EunoTid));
	tids[at] = entry->tid;
	n++;
	put->slot = i;
	put->replace = true;
	put->freed = slot->size;
	if (n <= BPT_LIST_MAX)
		plan_tids(view, entry, tids, n, put);
	else
	{
		plan_tids(view, entry, tids, n / 2, put);
		plan_tids(view, entry, tids + n / 2, n - n / 2, put);
		put->mine = at >= n / 2;
	}
}

/*
 * The same for a list with room, in which the gap is known: only the steps on
 * both sides of the new TID are made anew.
 */
static void
plan_listed(BptView *view, uint32_t i, const BptGap *gap, const BptSlot *slot,
			const EunoEntry *entry, BptPut *put)
{
	EunoTid		first = euno_bpt_first_tid(view, i);
	uint8_t		from[BPT_LIST_BYTES];
	uint8_t		list[BPT_LIST_BYTES + 16];
	uint32_t	len;

	euno_copy_out(from, slot->list, slot->list_len);
	len = euno_bpt_list_insert(from, slot->list_len, gap->list_at, gap->before,
							   entry->tid, list);
	if (len == 0 || len > BPT_LIST_BYTES)
		return;					/* torn */
	put->slot = i;
	put->replace = true;
	put->freed = slot->size;
	plan_record(view, entry, first, list, len, slot->ntids + 1, false, put);
}

/*
 * SLOTTED and OPAQUE: which slot takes the entry, and with what record?  The
 * prefix has been looked at.  Without records if there is no such place.
 */
static void
plan_slots(EunoTree *tree, BptView *view, const EunoEntry *entry,
		   const BptGap *gap, BptPut *put)
{
	BptSlot		slot;

	if (tree->config.posting && entry->payloadlen == 0)
	{
		if (gap->listed)
		{
			uint32_t	i = gap->sub > 0 ? gap->slot : gap->slot - 1;

			if (!euno_bpt_slot(view, i, &slot))
				return;
			if (slot.ntids < BPT_LIST_MAX && slot.list_len > 0)
			{
				plan_listed(view, i, gap, &slot, entry, put);
				return;
			}
		}
		if (gap->sub > 0)
		{
			if (slot_can_share(view, gap->slot, entry, &slot))
				plan_list(view, gap->slot, gap->sub, &slot, entry, put);
			return;
		}
		if (gap->slot > 0 &&
			slot_can_share(view, gap->slot - 1, entry, &slot) &&
			slot.ntids < BPT_LIST_MAX)
		{
			plan_list(view, gap->slot - 1, slot.ntids, &slot, entry, put);
			return;
		}
		if (!view->torn && gap->slot < view->count &&
			slot_can_share(view, gap->slot, entry, &slot) &&
			slot.ntids < BPT_LIST_MAX)
		{
			plan_list(view, gap->slot, 0, &slot, entry, put);
			return;
		}
	}
	else if (gap->sub > 0)
		return;					/* its payload must cut a list in two: repack */
	put->slot = gap->slot;
	put->replace = false;
	put->freed = 0;
	plan_record(view, entry, entry->tid, NULL, 0, 1, true, put);
}

/*
 * SLOTTED and OPAQUE: plans the insertion, whether there is room or not.  False if
 * it needs another prefix or what is there to be joined, or if the view is torn.
 */
bool
euno_bpt_plan_slots(EunoTree *tree, BptView *view, const EunoEntry *entry,
					const BptKey *key, const BptGap *gap, BptPut *put)
{
	put->nrecs = 0;
	put->mine = 0;
	if (view->format == BPT_SLOTTED && key->len < view->prefix_len)
		return false;
	if (view->open &&
		bpt_compare_prefix(key, view->leaf, view->prefix_len) != 0)
		return false;
	plan_slots(tree, view, entry, gap, put);
	return put->nrecs > 0 && !view->torn;
}

/*
 * Plans the insertion of an entry at a gap.  False if it needs more room or
 * another format than the leaf has, or if the view is torn.
 */
bool
euno_bpt_leaf_plan(EunoTree *tree, BptView *view, const EunoEntry *entry,
				   const BptKey *key, const BptGap *gap, BptPut *put)
{
	uint32_t	need;

	if ((view->format == BPT_FIXED ? view->entries : view->count) >= view->cap)
		return false;
	if (view->format == BPT_FIXED)
	{
		uint32_t	plen = view->prefix_len;
		uint64_t	low = euno_load64(&view->leaf->low_hint);
		uint64_t	high = euno_load64(&view->leaf->high_hint);

		if (entry->payloadlen > 0 || key->len != plen + view->suffix_len ||
			(view->open && bpt_compare_prefix(key, view->leaf, plen) != 0))
			return false;
		if (bpt_appends(tree, view, gap->slot))
			return false;		/* it starts a leaf of its own */
		put->slot = put->near = gap->slot;
		put->head[0] = bpt_key_word(key, plen);
		if (low < put->head[0] && put->head[0] < high)
			put->near = bpt_guess(view->alphabet, put->head[0], low, high,
								  view->count);
		put->tail = key->bytes + plen + 8;
		return true;
	}
	if (euno_load16(&view->leaf->ntids) >= BPT_LEAF_TIDS - 2 ||
		!euno_bpt_plan_slots(tree, view, entry, key, gap, put))
		return false;
	need = put->size[0] + (put->nrecs > 1 ? put->size[1] : 0);
	return view->heap + put->freed >= view->body + 10 * view->cap + need;
}

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

/* FIXED: moves slots [from, from + n) to "to". */
static void
move_slots(const BptView *view, uint32_t to, uint32_t from, uint32_t n)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint8_t    *tails = (uint8_t *) view->tails;

	if (n == 0)
		return;
	euno_move(heads + to, heads + from, n * 8);
	if (view->tail_len > 0)
		euno_move(tails + to * view->tail_len, tails + from * view->tail_len,
				  n * view->tail_len);
}

/* FIXED: gives slots [from, to) the entry of slot i. */
static void
fill_slots(const BptView *view, uint32_t from, uint32_t to, uint32_t i)
{
	for (; from < to; from++)
		move_slots(view, from, i, 1);
}

/*
 * FIXED: makes room for an entry left of slot "slot", the first of its entry.
 * What has more than one slot gives one away; the nearest does, on either
 * side, or the free room at the end.  Next to the new entry it may have several
 * to give: the new one gets them up to the place that its key suggests.  Sets
 * [*from, *to), the slots to be written.  False if there is no room.
 */
static bool
make_room(BptView *view, uint32_t slot, uint32_t near, uint32_t *from,
		  uint32_t *to)
{
	uint32_t	count = view->count;
	uint32_t	l = slot;
	uint32_t	r = slot;

	*from = slot;
	*to = slot + 1;
	while (l > 0 || r < count || count < view->cap)
	{
		if (r == count ? count < view->cap :
			r + 1 < count && bpt_same_entry(view, r + 1))
		{
			move_slots(view, slot + 1, slot, r - slot);
			if (r == count)
				view->count++;
			else if (r == slot)
			{
				while (*to <= near && *to + 1 < count &&
					   bpt_same_entry(view, *to + 1))
					(*to)++;
			}
			return true;
		}
		if (l >= 2 && bpt_same_entry(view, l - 1))
		{
			move_slots(view, l - 1, l, slot - l);
			*from = *to = slot;
			(*from)--;
			if (l == slot)
			{
				while (*from > near && *from >= 2 &&
					   bpt_same_entry(view, *from - 1))
					(*from)--;
			}
			return true;
		}
		if (l > 0)
			l--;
		if (r < count)
			r++;
	}
	return false;
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

/*
 * Frees a record of "size" bytes: the ones below it move up, so that all free
 * bytes of a leaf are in one place and growing lists leave no holes behind.
 */
static void
close_record(BptLeaf *leaf, BptView *view, uint32_t count, uint32_t off,
			 uint32_t size)
{
	uint16_t   *offs = (uint16_t *) view->offs;

	if (off > view->heap)
		euno_move((uint8_t *) leaf + view->heap + size,
				  (uint8_t *) leaf + view->heap, off - view->heap);
	for (uint32_t i = 0; i < count && off > view->heap; i++)
	{
		uint16_t	at = euno_load16(&offs[i]);

		if (at < off)
			euno_store16(&offs[i], (uint16_t) (at + size));
	}
	view->heap += size;
	euno_store16(&leaf->heap, (uint16_t) view->heap);
}

static void
put_fixed(BptLeaf *leaf, BptView *view, const BptPut *put)
{
	uint32_t	from;
	uint32_t	to;

	if (!make_room(view, put->slot, put->near, &from, &to))
		return;
	euno_store64((uint64_t *) &view->heads[from], put->head[0]);
	if (view->tail_len > 0)
		euno_copy_in((uint8_t *) view->tails + from * view->tail_len,
					 put->tail, view->tail_len);
	fill_slots(view, from + 1, to, from);
	euno_store16(&leaf->count, (uint16_t) view->count);
	euno_store16(&leaf->heap, (uint16_t) (view->entries + 1));
}

/*
 * Does what was planned.  The caller has locked the leaf at the version at
 * which the plan was made.
 */
void
euno_bpt_leaf_put(BptLeaf *leaf, const BptPut *put)
{
	BptView		view;
	uint32_t	count;
	uint32_t	heap;

	(void) euno_bpt_view(leaf, &view);
	if (view.format == BPT_FIXED)
	{
		put_fixed(leaf, &view, put);
		return;
	}
	count = view.count;
	if (put->replace)
		close_record(leaf, &view, count,
					 euno_load16(&view.offs[put->slot]), put->freed);
	heap = view.heap;
	for (uint32_t r = 0; r < put->nrecs; r++)
	{
		uint32_t	slot = put->slot + r;

		heap -= put->size[r];
		euno_copy_in((uint8_t *) leaf + heap, put->record[r], put->size[r]);
		if (r > 0 || !put->replace)
			open_slot(&view, count++, slot);
		euno_store64((uint64_t *) &view.heads[slot], put->head[r]);
		euno_store16((uint16_t *) &view.offs[slot], (uint16_t) heap);
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
			 const BptSlot *slot, const EunoTid *tids, uint32_t n)
{
	uint8_t		record[BPT_MAX_COMPOSITE + BPT_LIST_BYTES + 16];
	uint8_t		suffix[BPT_MAX_COMPOSITE + 16];
	uint8_t		list[BPT_LIST_BYTES];
	uint32_t	list_len = euno_bpt_list_encode(tids, n, list);
	uint32_t	size;
	uint32_t	off = euno_load16(&view->offs[i]);
	uint64_t	head = tids[0];

	memset(suffix, 0, 8);
	if (view->format == BPT_OPAQUE)
	{
		head |= euno_load64(&view->heads[i]) & ~EUNO_TID_MAX;
		euno_copy_out(suffix, slot->tail, slot->len);
		size = build_record(record, slot->len, suffix, slot->len, NULL, list,
							list_len, n);
	}
	else
	{
		uint8_t		tid[EUNO_TID_BYTES];
		uint32_t	part = slot->len < EUNO_TID_BYTES ? slot->len :
			EUNO_TID_BYTES;

		euno_put_word(suffix, euno_load64(&view->heads[i]));
		euno_copy_out(suffix + 8, slot->tail, slot->tail_len);
		euno_put_tid(tid, tids[0]);
		memcpy(suffix + slot->len - part, tid + EUNO_TID_BYTES - part, part);
		head = euno_get_word(suffix);
		size = build_record(record, slot->len, suffix + 8, slot->tail_len,
							NULL, list, list_len, n);
	}
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
	EunoTid		tids[BPT_LIST_MAX];
	BptView		view;
	BptSlot		slot;
	uint32_t	n;

	if (!euno_bpt_view(leaf, &view) || gap->slot >= view.count)
		return;
	if (view.format == BPT_FIXED)
	{
		remove_fixed(&view, gap->slot);
		euno_store16(&leaf->count, (uint16_t) view.count);
		euno_store16(&leaf->heap, (uint16_t) view.entries);
		return;
	}
	if (!euno_bpt_slot(&view, gap->slot, &slot))
		return;
	n = euno_bpt_slot_tids(&view, gap->slot, tids);
	euno_store16(&leaf->ntids, (uint16_t) (euno_load16(&leaf->ntids) - 1));
	if (n > 1)
	{
		memmove(&tids[gap->sub], &tids[gap->sub + 1],
				(n - 1 - gap->sub) * sizeof(EunoTid));
		rewrite_slot(leaf, &view, view.count, gap->slot, &slot, tids, n - 1);
		return;
	}
	close_record(leaf, &view, view.count,
				 euno_load16(&view.offs[gap->slot]), slot.size);
	close_slot(&view, view.count, gap->slot);
	euno_store16(&leaf->count, (uint16_t) (view.count - 1));
}

/* Is tid among these, which are sorted? */
bool
euno_bpt_tid_among(EunoTid tid, const EunoTid *tids, uint32_t n)
{
	uint32_t	lo = 0;

	while (n > 0)
	{
		uint32_t	half = n / 2;

		if (tids[lo + half] < tid)
		{
			lo += half + 1;
			n -= half + 1;
		}
		else if (tids[lo + half] == tid)
			return true;
		else
			n = half;
	}
	return false;
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
		if (euno_bpt_tid_among(euno_bpt_first_tid(view, i), tids, n))
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
		euno_store16(&leaf->heap, (uint16_t) view.entries);
		return removed;
	}
	count = view.count;
	for (uint32_t i = count; i-- > 0;)
	{
		uint32_t	old = euno_bpt_slot_tids(&view, i, have);
		uint32_t	left = 0;

		if (!euno_bpt_slot(&view, i, &slot))
			break;
		for (uint32_t k = 0; k < old; k++)
		{
			if (!euno_bpt_tid_among(have[k], tids, n))
				have[left++] = have[k];
		}
		if (left == old)
			continue;
		removed += old - left;
		if (left > 0)
			rewrite_slot(leaf, &view, count, i, &slot, have, left);
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
