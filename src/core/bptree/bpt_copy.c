/*-------------------------------------------------------------------------
 *
 * bpt_copy.c
 *	  Copying entries of a leaf to a batch.
 *
 * The leaf may be written to meanwhile: its version says afterwards whether what
 * was copied can be used.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_read.h"


/*
 * A composite whose key is copied by copy_fixed, and the room that it takes.
 */
#define SHORT_COMPOSITE	64
#define SHORT_ROOM		(SHORT_COMPOSITE + 16)

/*
 * Copies the key and payload of slot i, taken apart, to the batch; false if it
 * is full.
 */
static bool
copy_key(BptRead *rd, uint32_t i, const BptSlot *slot, EunoItemKey *item)
{
	BptView    *view = &rd->place.view;
	EunoBatch  *batch = rd->batch;
	uint8_t		spare[BPT_MAX_COMPOSITE + 8];
	uint32_t	at = rd->used;
	bool		direct = at + sizeof(spare) <= batch->buf_size;
	uint8_t    *key = direct ? batch->buf + at : spare;
	uint32_t	len = euno_bpt_key(view, i, slot, key);

	if (view->torn || euno_align8(at) + euno_align8(len) +
		euno_align8(slot->payload_len) > batch->buf_size)
		return false;
	if (!direct)
		memcpy(batch->buf + at, key, len);
	item->offset = at;
	item->keylen = (uint16_t) len;
	item->payloadlen = (uint16_t) slot->payload_len;
	at += euno_align8(len);
	if (slot->payload_len > 0)
		euno_copy_out(batch->buf + at, slot->payload, slot->payload_len);
	rd->used = at + euno_align8(slot->payload_len);
	return true;
}

/*
 * Copies entries of slot i, numbers [from, to) of it, in the direction of the
 * read.  False when the batch is full; rd->stop says where.
 */
static bool
copy_slot(BptRead *rd, uint32_t i, uint32_t from, uint32_t to, bool forward)
{
	BptView    *view = &rd->place.view;
	EunoBatch  *batch = rd->batch;
	uint32_t	room = batch->max_items - batch->nitems;
	EunoTid    *free = batch->tids + batch->nitems;
	EunoItemKey *items = batch->want_keys ? batch->keys + batch->nitems : NULL;
	EunoTid		some[BPT_LIST_MAX];
	EunoTid    *tids = forward && from == 0 && room >= BPT_LIST_MAX ? free : some;
	EunoItemKey item;
	BptSlot		slot;
	uint32_t	n = 0;
	uint32_t	count;

	if (euno_bpt_slot(view, i, &slot))
		n = euno_bpt_tids(view, i, &slot, tids);
	if (to > n)
		to = n;
	rd->stop.slot = forward ? i : bpt_next_slot(view, i);
	rd->stop.sub = forward ? from : 0;
	if (from >= to)
		return !view->torn;
	if (room == 0 || (items != NULL && !copy_key(rd, i, &slot, &item)))
		return false;
	count = to - from < room ? to - from : room;
	for (uint32_t k = 0; k < count && tids != free; k++)
		free[k] = tids[forward ? from + k : to - 1 - k];
	for (uint32_t k = 0; k < count && items != NULL; k++)
		items[k] = item;
	batch->nitems += count;
	rd->stop.slot = i;
	rd->stop.sub = forward ? from + count : to - count;
	return count == to - from;
}

/*
 * A string of a leaf, of which 8 bytes more can be read, and written.  Most have
 * no more than those.
 */
static inline void
copy_tail(uint8_t *to, const uint8_t *from, uint32_t n)
{
	euno_copy_out(to, from, 8);
	if (n > 32)
		euno_copy_out(to + 8, from + 8, n - 8);
	else
		for (uint32_t k = 8; k < n; k += 8)
			euno_copy_out(to + k, from + k, 8);
}

/*
 * Puts the entries of a list behind the n entries of the batch, in the
 * direction of the read.  Their number; 0 if it is torn, or does not fit.
 */
static uint32_t
copy_list(EunoBatch *batch, uint32_t n, const BptTidList *list, int step,
		  bool keys, EunoItemKey item)
{
	uint32_t	ntids = list->n;
	EunoTid    *tids = batch->tids + n;
	EunoItemKey *items = keys ? batch->keys + n : NULL;
	uint8_t		own[BPT_LIST_BYTES + BPT_SLACK];

	if (list->len > BPT_LIST_BYTES || n + ntids > batch->max_items)
		return 0;
	copy_tail(own, list->list, list->len);
	if (!euno_bpt_list_decode(own, list->len, list->first, ntids, tids))
		return 0;
	for (uint32_t k = 0; step < 0 && k < ntids / 2; k++)
	{
		EunoTid		tid = tids[k];

		tids[k] = tids[ntids - 1 - k];
		tids[ntids - 1 - k] = tid;
	}
	for (uint32_t k = 0; k < ntids && items != NULL; k++)
		items[k] = item;
	return ntids;
}

/*
 * SLOTTED, OPAQUE: copies the key and payload of a record to the batch's buffer
 * at "at".  *item gets where they are; returns where they end, or 0 if they do
 * not fit.
 */
static inline __attribute__((always_inline)) uint32_t
copy_record_key(const BptRead *rd, uint32_t at, const BptSlot *slot,
				uint64_t head, bool opaque, EunoItemKey *item)
{
	const BptView *view = &rd->place.view;
	uint32_t	prefix_len = opaque ? 0 : view->prefix_len;
	uint32_t	keylen = prefix_len + slot->len;
	uint8_t    *to = rd->batch->buf + at;

	if (at + keylen + slot->payload_len + 32 > rd->batch->buf_size ||
		(!opaque && keylen < EUNO_TID_BYTES))
		return 0;
	if (opaque)
		copy_tail(to, slot->tail, slot->len);
	else
	{
		copy_tail(to, bpt_low(view->leaf), prefix_len);
		euno_put_word(to + prefix_len, head);
		copy_tail(to + prefix_len + 8, slot->tail, slot->tail_len);
		keylen -= EUNO_TID_BYTES;
	}
	item->offset = at;
	item->keylen = (uint16_t) keylen;
	item->payloadlen = (uint16_t) slot->payload_len;
	at += euno_align8(keylen);
	if (slot->payload_len > 0)
	{
		copy_tail(rd->batch->buf + at, slot->payload, slot->payload_len);
		at += euno_align8(slot->payload_len);
	}
	return at;
}

/*
 * SLOTTED, OPAQUE: copies at most "count" slots from i on, upward or downward.
 * Stops at one that is torn, or does not fit, which is copy_slot's to deal
 * with.  Returns how many slots it copied.
 */
static inline __attribute__((always_inline)) uint32_t
copy_records(BptRead *rd, uint32_t i, uint32_t count, int step, bool opaque,
			 bool keys)
{
	BptView    *view = &rd->place.view;
	EunoBatch  *batch = rd->batch;
	const uint8_t *leaf = (const uint8_t *) view->leaf;
	uint32_t	prefix_len = opaque ? 0 : view->prefix_len;
	uint32_t	n = batch->nitems;
	uint32_t	at = rd->used;
	uint32_t	done;

	for (done = 0; done < count && n < batch->max_items; done++, i += step)
	{
		uint32_t	off = euno_load16(&view->offs[i]);
		uint64_t	head = euno_load64(&view->heads[i]);
		uint32_t	end = at;
		uint32_t	ntids;
		EunoItemKey item = {0};
		BptSlot		slot;
		EunoTid		tid;

		if (off < view->body || off + 8 > view->size)
			break;
		bpt_take_apart(leaf + off, opaque ? BPT_OPAQUE : BPT_SLOTTED, &slot);
		if (off + slot.size + BPT_SLACK > view->size ||
			prefix_len + slot.len > BPT_MAX_COMPOSITE)
			break;
		if (keys &&
			(end = copy_record_key(rd, at, &slot, head, opaque, &item)) == 0)
			break;
		if (opaque)
			tid = head & EUNO_TID_MAX;
		else if (slot.tail_len >= EUNO_TID_BYTES)
			tid = euno_load_be(slot.payload - EUNO_TID_BYTES, EUNO_TID_BYTES);
		else
			tid = euno_bpt_suffix_tid(view, head, slot.tail, slot.len);
		ntids = slot.ntids;
		if (ntids > 1)
		{
			BptTidList	list = {tid, ntids, slot.list, slot.list_len};

			ntids = copy_list(batch, n, &list, step, keys, item);
			if (ntids == 0)
				break;
		}
		else
		{
			batch->tids[n] = tid;
			if (keys)
				batch->keys[n] = item;
		}
		n += ntids;
		at = end;
	}
	batch->nitems = n;
	rd->used = at;
	return done;
}

/* The same, of a leaf of either format. */
static uint32_t
copy_some(BptRead *rd, uint32_t i, uint32_t count, int step)
{
	bool		opaque = rd->place.view.format == BPT_OPAQUE;

	if (rd->batch->want_keys)
		return opaque ? copy_records(rd, i, count, step, true, true) :
			copy_records(rd, i, count, step, false, true);
	return opaque ? copy_records(rd, i, count, step, true, false) :
		copy_records(rd, i, count, step, false, false);
}

/* FIXED: where an entry's TID is, its last six bytes. */
typedef enum TidPlace
{
	TID_IN_HEAD,
	TID_IN_BOTH,				/* its end is the tail */
	TID_IN_TAIL,				/* behind 8 bytes of it at most */
	TID_ANYWHERE
} TidPlace;

static inline TidPlace
tid_place(const BptView *view)
{
	if (view->suffix_len < EUNO_TID_BYTES ||
		view->tail_len > 8 + EUNO_TID_BYTES)
		return TID_ANYWHERE;
	return view->tail_len == 0 ? TID_IN_HEAD :
		view->tail_len <= EUNO_TID_BYTES ? TID_IN_BOTH : TID_IN_TAIL;
}

/*
 * FIXED: the TID of a slot with this head and tail, and in *more what it takes
 * to tell whether two slots with the same head and TID are one entry.
 */
static inline __attribute__((always_inline)) EunoTid
fixed_tid(BptView *view, TidPlace place, uint64_t head, const uint8_t *tail,
		  uint32_t len, uint32_t suffix_len, uint64_t *more)
{
	*more = 0;
	switch (place)
	{
		case TID_IN_HEAD:
			return head >> (8 * (8 - suffix_len)) & EUNO_TID_MAX;
		case TID_IN_BOTH:
			return (head << (8 * len) | euno_load_be(tail, len)) & EUNO_TID_MAX;
		case TID_IN_TAIL:
			*more = euno_load_be(tail, len < 8 ? len : 8);
			return euno_load_be(tail + len - EUNO_TID_BYTES, EUNO_TID_BYTES);
		default:
			return euno_bpt_suffix_tid(view, head, tail, suffix_len);
	}
}

/* FIXED: are keys short enough for copy_fixed, and is there room for one? */
static bool
keys_are_short(const BptRead *rd)
{
	const BptView *view = &rd->place.view;
	uint32_t	len = view->prefix_len + view->suffix_len;

	return len >= EUNO_TID_BYTES && len <= SHORT_COMPOSITE &&
		rd->batch->buf_size >= SHORT_ROOM;
}

/* What the keys of a FIXED leaf's entries are made of. */
typedef struct ShortKey
{
	uint32_t	len;
	uint32_t	prefix_len;
	uint32_t	past;			/* bytes of it that are in the tail */
	uint64_t	word;			/* the prefix's first bytes */
	const uint8_t *prefix;
} ShortKey;

/* "prefix" has SHORT_COMPOSITE bytes, for the leaf's. */
static inline void
short_key_init(const BptView *view, uint8_t *prefix, ShortKey *key)
{
	key->prefix_len = view->prefix_len;
	key->len = view->prefix_len + view->suffix_len - EUNO_TID_BYTES;
	key->past = key->len > key->prefix_len + 8 ?
		key->len - key->prefix_len - 8 : 0;
	memset(prefix, 0, 16);
	euno_copy_out(prefix, bpt_low(view->leaf), view->prefix_len);
	memcpy(&key->word, prefix, 8);
	key->prefix = prefix;
}

/*
 * Writes the key of a slot.  Whole words are written where that is faster;
 * what is too much, the next key overwrites.
 */
static inline __attribute__((always_inline)) void
short_key_put(const ShortKey *key, TidPlace place, uint64_t head,
			  const uint8_t *tail, uint8_t *to)
{
	memcpy(to, &key->word, 8);
	if (key->prefix_len > 16)
		memcpy(to + 8, key->prefix + 8, key->prefix_len - 8);
	else if (key->prefix_len > 8)
		memcpy(to + 8, key->prefix + 8, 8);
	euno_put_word(to + key->prefix_len, head);
	if (place >= TID_IN_TAIL && key->past > 0)
		euno_copy_out(to + key->prefix_len + 8, tail, key->past);
}

/*
 * Of so many slots, how many can be copied without asking again: there is room
 * for an entry in each.  The batch has n items, which take "used" of its
 * buffer; keys have this length, 0: none are wanted.
 */
static inline uint32_t
copy_at_once(const EunoBatch *batch, uint32_t slots, uint32_t n, uint32_t used,
			 uint32_t keylen)
{
	uint32_t	room = batch->max_items - n;
	uint32_t	keys;

	if (keylen > 0)
	{
		if (used + SHORT_ROOM > batch->buf_size)
			return 0;
		keys = (batch->buf_size - SHORT_ROOM - used) / euno_align8(keylen) + 1;
		if (room > keys)
			room = keys;
	}
	return room < slots ? room : slots;
}

/*
 * FIXED: copies the TIDs, and short keys if they are wanted, of slots [a, b).
 * False when the batch is full; rd->stop says where.
 *
 * The processor cannot predict which slots repeat the entry of the slot before,
 * so there is no branch on that: what such a slot has written is overwritten by
 * the next one.
 */
static inline __attribute__((always_inline)) bool
copy_fixed(BptRead *rd, uint32_t a, uint32_t b, TidPlace place, bool keys)
{
	BptView    *view = &rd->place.view;
	EunoBatch  *batch = rd->batch;
	EunoTid    *tids = batch->tids;
	EunoItemKey *items = batch->keys;
	uint8_t    *buf = batch->buf;
	const uint64_t *heads = view->heads;
	uint32_t	tail_len = view->tail_len;
	uint32_t	suffix_len = view->suffix_len;
	const uint8_t *tail = view->tails + (size_t) a * tail_len;
	uint64_t	last_head = a < b ? ~euno_load64(&heads[a]) : 0;
	uint64_t	last_more = 0;
	EunoTid		last_tid = 0;
	uint32_t	n = batch->nitems;
	uint32_t	at = rd->used;
	uint32_t	i = a;
	uint32_t	end;
	uint32_t	keylen = 0;
	uint8_t		prefix[SHORT_COMPOSITE];
	ShortKey	key;

	if (keys)
	{
		short_key_init(view, prefix, &key);
		keylen = key.len;
	}
	while ((end = i + copy_at_once(batch, b - i, n, at, keylen)) > i)
	{
		for (; i < end; i++, tail += tail_len)
		{
			uint64_t	head = euno_load64(&heads[i]);
			uint64_t	more;
			EunoTid		tid = fixed_tid(view, place, head, tail, tail_len,
										suffix_len, &more);
			bool		fresh;

			if (place == TID_ANYWHERE)
				fresh = head != last_head || i == a || !bpt_same_entry(view, i);
			else
				fresh = ((head ^ last_head) | (tid ^ last_tid) |
						 (more ^ last_more)) != 0;
			if (keys)
			{
				short_key_put(&key, place, head, tail, buf + at);
				items[n] = (EunoItemKey)
				{
					.offset = at,.keylen = (uint16_t) keylen
				};
				at += fresh ? euno_align8(keylen) : 0;
			}
			tids[n] = tid;
			n += fresh;
			last_head = head;
			last_tid = tid;
			last_more = more;
		}
	}
	while (i > a && i < b && bpt_same_entry(view, i))
		i++;
	batch->nitems = n;
	rd->used = at;
	rd->stop.slot = i;
	rd->stop.sub = 0;
	return i >= b;
}

/* The same, of a leaf of any shape. */
static inline __attribute__((always_inline)) bool
copy_by_place(BptRead *rd, uint32_t a, uint32_t b, bool keys)
{
	switch (tid_place(&rd->place.view))
	{
		case TID_IN_HEAD:
			return copy_fixed(rd, a, b, TID_IN_HEAD, keys);
		case TID_IN_BOTH:
			return copy_fixed(rd, a, b, TID_IN_BOTH, keys);
		case TID_IN_TAIL:
			return copy_fixed(rd, a, b, TID_IN_TAIL, keys);
		default:
			return copy_fixed(rd, a, b, TID_ANYWHERE, keys);
	}
}

static bool
copy_tids(BptRead *rd, uint32_t a, uint32_t b)
{
	return copy_by_place(rd, a, b, false);
}

static bool
copy_keys(BptRead *rd, uint32_t a, uint32_t b)
{
	return copy_by_place(rd, a, b, true);
}

/*
 * Copies the entries between two gaps, of a leaf of any shape.  True if all
 * fit; otherwise rd->stop is the gap that was reached.
 */
static bool
copy_any(BptRead *rd, const BptGap *a, const BptGap *b, bool forward)
{
	BptView    *view = &rd->place.view;
	bool		fixed = view->format == BPT_FIXED;
	uint32_t	last = b->slot + (b->sub > 0);

	for (uint32_t k = a->slot; k < last; k++)
	{
		uint32_t	i = forward ? k : last - 1 - (k - a->slot);
		uint32_t	from = i == a->slot ? a->sub : 0;
		uint32_t	to = i == b->slot ? b->sub : BPT_LIST_MAX;

		if (fixed && i > a->slot && bpt_same_entry(view, i))
			continue;
		if (!fixed && from == 0 && to == BPT_LIST_MAX)
		{
			/* Of the last slot there may be a part; that is for copy_slot. */
			uint32_t	count = last - k - ((forward ? b : a)->sub > 0);
			uint32_t	done = copy_some(rd, i, count, forward ? 1 : -1);

			if (done > 0)
			{
				k += done - 1;
				continue;
			}
		}
		if (!copy_slot(rd, i, from, to, forward))
			return false;
	}
	return true;
}

/*
 * FIXED, backward: copies the last entries between two gaps, as many as there
 * is room for.  False: not all; rd->stop says where.
 */
static bool
copy_back(BptRead *rd, const BptGap *a, const BptGap *b)
{
	BptView    *view = &rd->place.view;
	EunoBatch  *batch = rd->batch;
	bool		keys = batch->want_keys;
	uint32_t	end = b->slot;
	uint32_t	from = end -
		copy_at_once(batch, end - a->slot, 0, 0, keys ?
					 view->prefix_len + view->suffix_len - EUNO_TID_BYTES : 0);

	/*
	 * Slots that repeat the entry of one further left are left to the batch
	 * that gets that one.
	 */
	while (from > a->slot && from < end && bpt_same_entry(view, from))
		from++;
	if (from == end)
		return copy_any(rd, a, b, false);
	(void) (keys ? copy_keys(rd, from, end) : copy_tids(rd, from, end));
	for (uint32_t i = 0, k = batch->nitems; i + 1 < k--; i++)
	{
		EunoTid		tid = batch->tids[i];

		batch->tids[i] = batch->tids[k];
		batch->tids[k] = tid;
		if (keys)
		{
			EunoItemKey item = batch->keys[i];

			batch->keys[i] = batch->keys[k];
			batch->keys[k] = item;
		}
	}
	rd->stop.slot = from;
	rd->stop.sub = 0;
	return from == a->slot;
}

/*
 * Copies the entries between two gaps.  True if all fit; otherwise rd->stop
 * is the gap that was reached.
 */
bool
euno_bpt_copy_range(BptRead *rd, const BptGap *a, const BptGap *b,
					bool forward)
{
	rd->batch->nitems = 0;
	rd->used = 0;
	if (rd->place.view.format != BPT_FIXED ||
		(rd->batch->want_keys && !keys_are_short(rd)))
		return copy_any(rd, a, b, forward);
	if (!forward)
		return copy_back(rd, a, b);
	return rd->batch->want_keys ? copy_keys(rd, a->slot, b->slot) :
		copy_tids(rd, a->slot, b->slot);
}
