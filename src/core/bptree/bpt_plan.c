/*-------------------------------------------------------------------------
 *
 * bpt_plan.c
 *	  What an insertion will write into a leaf.
 *
 * Made before the leaf is locked, from a view that may be torn: the plan holds
 * the new records, and is worth something if the leaf is then locked at the
 * view's version.  euno_bpt_leaf_put (bpt_leaf.c) does it.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/*
 * Writes a record of TIDs, the first of which is in the tail or in the slot's
 * head, and of an entry's payload, if it is not NULL; returns its size.
 */
uint32_t
euno_bpt_build_record(uint8_t *to, uint32_t len, const uint8_t *tail,
					  uint32_t tail_len, const EunoEntry *payload,
					  const BptTidList *tids)
{
	uint8_t    *p = to + 2;
	uint32_t	head = len;

	if (payload != NULL && payload->payloadlen > 0)
	{
		head |= BPT_REC_PAYLOAD;
		*p++ = (uint8_t) payload->payloadlen;
		*p++ = (uint8_t) (payload->payloadlen >> 8);
	}
	if (tids->n > 1)
	{
		head |= BPT_REC_LIST;
		*p++ = (uint8_t) (tids->n - 1);
		*p++ = (uint8_t) tids->len;
		*p++ = (uint8_t) (tids->len >> 8);
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
	if (tids->n > 1)
	{
		memcpy(p, tids->list, tids->len);
		p += tids->len;
	}
	return (uint32_t) (p - to);
}

/* Plans a record of the entry's key with these TIDs. */
static void
plan_record(const BptView *view, const EunoEntry *entry,
			const BptTidList *tids, bool payload, BptPut *put)
{
	uint32_t	r = put->nrecs++;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint32_t	len = entry->keylen;
	uint32_t	skip = 0;

	if (view->format == BPT_OPAQUE)
		put->head[r] = bpt_opaque_head(tids->first, entry->key, len);
	else
	{
		if (len > 0)
			memcpy(buf, entry->key, len);
		euno_put_tid(buf + len, tids->first);
		len += EUNO_TID_BYTES;
		memset(buf + len, 0, 8);
		put->head[r] = euno_get_word(buf + view->prefix_len);
		skip = view->prefix_len + 8;
		if (skip > len)
			skip = len;
	}
	put->size[r] =
		euno_bpt_build_record(put->record[r],
							  view->format == BPT_OPAQUE ? len :
							  len - view->prefix_len,
							  view->format == BPT_OPAQUE ? entry->key :
							  buf + skip,
							  len - skip, payload ? entry : NULL, tids);
}

/* The same from TIDs. */
static void
plan_tids(const BptView *view, const EunoEntry *entry, const EunoTid *tids,
		  uint32_t n, BptPut *put)
{
	uint8_t		bytes[BPT_LIST_BYTES];
	BptTidList	list = {tids[0], n, bytes,
	euno_bpt_list_encode(tids, n, bytes)};

	plan_record(view, entry, &list, false, put);
}

/* Has slot i the entry's key, and could it take more TIDs? */
static bool
slot_can_share(BptView *view, uint32_t i, const EunoEntry *entry,
			   BptSlot *slot)
{
	uint8_t		key[BPT_MAX_COMPOSITE + 8];

	if (!euno_bpt_slot(view, i, slot) || slot->payload_len > 0)
		return false;
	return euno_bpt_key(view, i, slot, key) == entry->keylen &&
		!view->torn &&
		(entry->keylen == 0 || memcmp(key, entry->key, entry->keylen) == 0);
}

/* Plans to add the entry's TID to slot i before its TID number "at". */
static void
plan_list(BptView *view, uint32_t i, uint32_t at, const BptSlot *slot,
		  const EunoEntry *entry, BptPut *put)
{
	EunoTid		tids[BPT_LIST_MAX + 1];
	uint32_t	n = euno_bpt_tids(view, i, slot, tids);

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
	uint8_t		from[BPT_LIST_BYTES + BPT_SLACK];
	uint8_t		bytes[BPT_LIST_BYTES + 16];
	BptTidList	list = {.first = euno_bpt_first_tid(view, i),
	.n = slot->ntids + 1,.list = bytes};

	euno_copy_out(from, slot->list, slot->list_len);
	list.len = euno_bpt_list_insert(from, slot->list_len, gap->list_at,
									gap->before, entry->tid, bytes);
	if (list.len == 0 || list.len > BPT_LIST_BYTES)
		return;					/* torn */
	put->slot = i;
	put->replace = true;
	put->freed = slot->size;
	plan_record(view, entry, &list, false, put);
}

/*
 * SLOTTED and OPAQUE: which slot takes the entry, and with what record?  The
 * prefix has been looked at.  Without records if there is no such place.
 */
static void
plan_slots(EunoTree *tree, BptView *view, const EunoEntry *entry,
		   const BptGap *gap, BptPut *put)
{
	BptTidList	alone = {.first = entry->tid,.n = 1};
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
		return;					/* a list would have to be cut in two for its
								 * payload: repack */
	put->slot = gap->slot;
	put->replace = false;
	put->freed = 0;
	plan_record(view, entry, &alone, true, put);
}

/*
 * SLOTTED and OPAQUE: plans the insertion, whether there is room or not.
 * False if it needs another prefix or what is there to be joined, or if the
 * view is torn.
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
