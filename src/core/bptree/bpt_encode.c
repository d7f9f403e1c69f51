/*-------------------------------------------------------------------------
 *
 * bpt_encode.c
 *	  Leaves taken apart, and leaves built, in private memory.
 *
 * Splits, merges, bulk loads and changes of format all work alike: take a
 * validated private copy of the leaf apart into items, build the new leaf as
 * a private image, then lock the leaf at the version of the copy and copy the
 * image in.  Nothing is computed while a leaf is locked.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

void
euno_bpt_items_init(BptWork *work, EunoTree *tree)
{
	work->it.opaque = bpt_is_opaque(tree);
	work->it.posting = tree->config.posting;
	work->it.plain = work->it.single = work->it.appended = true;
	work->it.open_prefix = UINT32_MAX;
	work->it.n = 0;
	work->it.nbytes = 0;
	work->it.bytes = work->bytes;
	work->it.items = work->items;
	work->it.source[0] = work->it.source[1] = NULL;
	work->it.source_len[0] = work->it.source_len[1] = 0;
}

/* Appends one item, its key bytes and payload already in place. */
static bool
items_push(BptItems *it, uint32_t off, uint32_t key_len, uint32_t payload_len,
		   EunoTid tid, unsigned source)
{
	BptItem    *item;

	if (it->n >= BPT_LEAF_TIDS)
		return false;
	item = &it->items[it->n++];
	item->off = off;
	item->key_len = (uint16_t) key_len;
	item->payload_len = (uint16_t) payload_len;
	item->tid = tid;
	item->source = source;
	return true;
}

/* Takes one slot of a leaf apart.  False if torn or too large. */
static bool
items_add_slot(BptItems *it, BptView *view, uint32_t i, unsigned source)
{
	EunoTid		tids[BPT_LIST_MAX];
	BptSlot		slot;
	uint32_t	off = it->nbytes;
	uint32_t	len;
	uint32_t	keep;
	uint32_t	key_len;
	uint32_t	n;

	if (!euno_bpt_slot(view, i, &slot))
		return false;
	len = slot.len;
	n = euno_bpt_tids(view, i, &slot, tids);
	if (n == 0 || off + len + 8 + slot.payload_len > BPT_ITEM_BYTES)
		return false;
	if (view->format == BPT_OPAQUE)
	{
		key_len = keep = len;
		memcpy(it->bytes + off, slot.tail, len);
	}
	else
	{
		if (view->prefix_len + len < EUNO_TID_BYTES)
			return false;
		key_len = view->prefix_len + len - EUNO_TID_BYTES;
		keep = len > EUNO_TID_BYTES ? len - EUNO_TID_BYTES : 0;
		euno_put_word(it->bytes + off, view->heads[i]);
		if (keep > 8)
			memcpy(it->bytes + off + 8, slot.tail, keep - 8);
	}
	if (slot.payload_len > 0)
		memcpy(it->bytes + off + keep, slot.payload, slot.payload_len);
	it->nbytes = off + keep + slot.payload_len;
	for (uint32_t k = 0; k < n; k++)
	{
		if (!items_push(it, off, key_len, slot.payload_len, tids[k], source))
			return false;
	}
	return true;
}

/*
 * Takes a private copy of a leaf apart and appends its entries.  The copy must
 * live as long as the items.  False if the copy makes no sense, or there are
 * more entries than fit.
 */
bool
euno_bpt_items_add_leaf(BptWork *work, BptView *view)
{
	BptItems   *it = &work->it;
	unsigned	source = it->source[0] == NULL ? 0 : 1;

	it->plain = it->single = it->appended = false;
	it->source[source] = bpt_low(view->leaf);
	it->source_len[source] = view->format == BPT_OPAQUE ? 0 : view->prefix_len;
	for (uint32_t i = 0; i < view->count; i = bpt_next_slot(view, i))
	{
		if (!items_add_slot(it, view, i, source))
			return false;
	}
	return true;
}

/* euno_bpt_items_insert; the caller knows what items share. */
static bool
items_insert(BptWork *work, uint32_t at, const EunoEntry *entry)
{
	BptItems   *it = &work->it;
	uint32_t	off = it->nbytes;
	BptItem		last;

	it->plain &= at == it->n && entry->payloadlen == 0 &&
		(at == 0 || entry->keylen == it->items[0].key_len);
	it->single &= entry->payloadlen == 0;
	if (off + entry->keylen + entry->payloadlen > BPT_ITEM_BYTES ||
		!items_push(it, off, entry->keylen, entry->payloadlen, entry->tid, 1))
		return false;
	if (entry->keylen > 0)
		memcpy(it->bytes + off, entry->key, entry->keylen);
	if (entry->payloadlen > 0)
		memcpy(it->bytes + off + entry->keylen, entry->payload,
			   entry->payloadlen);
	it->nbytes += entry->keylen + entry->payloadlen;
	if (at == it->n - 1)
		return true;
	last = it->items[it->n - 1];
	memmove(&it->items[at + 1], &it->items[at],
			(it->n - 1 - at) * sizeof(BptItem));
	it->items[at] = last;
	return true;
}

/*
 * Inserts an entry before item "at".  Source 1 must be unused: a new entry has
 * all its bytes.  False if there is no room.
 */
bool
euno_bpt_items_insert(BptWork *work, uint32_t at, const EunoEntry *entry)
{
	work->it.single = work->it.appended = false;
	return items_insert(work, at, entry);
}

/*
 * Appends an entry.  If it has the key of the one before, and neither has a
 * payload, they share the key's bytes.
 */
bool
euno_bpt_items_append(BptWork *work, const EunoEntry *entry)
{
	BptItems   *it = &work->it;
	const BptItem *last = it->n > 0 ? &it->items[it->n - 1] : NULL;

	if (last == NULL || entry->payloadlen > 0 || last->payload_len > 0 ||
		last->key_len != entry->keylen ||
		(entry->keylen > 0 &&
		 memcmp(it->bytes + last->off, entry->key, entry->keylen) != 0))
		return items_insert(work, it->n, entry);
	it->plain = it->single = false;
	return items_push(it, last->off, entry->keylen, 0, entry->tid, 1);
}

/*
 * Copies item i's composite (OPAQUE: key) from byte "from" on.  Returns the
 * number of bytes, at most BPT_MAX_COMPOSITE.
 */
uint32_t
euno_bpt_item_copy(const BptItems *it, uint32_t i, uint32_t from, uint8_t *to)
{
	const BptItem *item = &it->items[i];
	uint32_t	key_len = item->key_len;
	uint32_t	base = it->source_len[item->source];
	uint32_t	at = from;
	uint8_t    *p = to;

	if (base > key_len)
		base = key_len;
	if (at < base)
	{
		memcpy(p, it->source[item->source] + at, base - at);
		p += base - at;
		at = base;
	}
	if (at < key_len)
	{
		memcpy(p, it->bytes + item->off + (at - base), key_len - at);
		p += key_len - at;
		at = key_len;
	}
	if (!it->opaque)
	{
		uint8_t		tid[EUNO_TID_BYTES];

		if (at - key_len >= EUNO_TID_BYTES)
			return (uint32_t) (p - to);
		euno_put_tid(tid, item->tid);
		memcpy(p, tid + (at - key_len), EUNO_TID_BYTES - (at - key_len));
		p += EUNO_TID_BYTES - (at - key_len);
	}
	return (uint32_t) (p - to);
}

/* Do items i and i + 1, whose keys are as long, have the same key? */
static bool
items_same_bytes(const BptItems *it, uint32_t i)
{
	const BptItem *a = &it->items[i];
	const BptItem *b = &it->items[i + 1];
	uint8_t		abuf[BPT_MAX_COMPOSITE];
	uint8_t		bbuf[BPT_MAX_COMPOSITE];

	if (a->source == b->source)
		return a->off == b->off ||
			memcmp(it->bytes + a->off, it->bytes + b->off,
				   bpt_item_kept(it, a)) == 0;
	(void) euno_bpt_item_copy(it, i, 0, abuf);
	(void) euno_bpt_item_copy(it, i + 1, 0, bbuf);
	return memcmp(abuf, bbuf, a->key_len) == 0;
}

static inline bool
items_same_key(const BptItems *it, uint32_t i)
{
	const BptItem *a = &it->items[i];

	if (a[0].key_len != a[1].key_len)
		return false;
	return it->appended ? a[0].off == a[1].off : items_same_bytes(it, i);
}

/* The end of the record that starts with item a. */
static inline uint32_t
group_end(const BptItems *it, uint32_t a, uint32_t b)
{
	uint32_t	e = a + 1;

	if (!it->posting || it->single || it->items[a].payload_len > 0)
		return e;
	while (e < b && e - a < BPT_LIST_MAX && it->items[e].payload_len == 0 &&
		   items_same_key(it, e - 1))
		e++;
	return e;
}

/* Length of item i's suffix in a leaf with this prefix. */
static inline uint32_t
item_suffix(const BptItems *it, uint32_t i, uint32_t prefix_len)
{
	return it->opaque ? it->items[i].key_len :
		it->items[i].key_len + EUNO_TID_BYTES - prefix_len;
}

/* Size of the record for items [a, e), and of its list. */
static inline uint32_t
record_size(const BptItems *it, uint32_t a, uint32_t e, uint32_t prefix_len,
			uint32_t *list_len)
{
	uint32_t	tail = item_suffix(it, a, prefix_len);
	uint32_t	size = 2;

	if (!it->opaque)
		tail = tail > 8 ? tail - 8 : 0;
	*list_len = 0;
	for (uint32_t i = a + 1; i < e; i++)
		*list_len += euno_bpt_list_step(it->items[i - 1].tid,
										it->items[i].tid);
	if (it->items[a].payload_len > 0)
		size += 2 + it->items[a].payload_len;
	if (e - a > 1)
		size += 3 + *list_len;
	return size + tail;
}

/* Bytes of all slots and records, if each item has its own and no payload. */
static uint32_t
single_sizes(const BptItems *it, uint32_t a, uint32_t b, uint32_t prefix_len)
{
	uint32_t	kept = it->opaque ? 0 : prefix_len + 8 - EUNO_TID_BYTES;
	uint32_t	size = (b - a) * (10 + 2);

	for (uint32_t i = a; i < b; i++)
	{
		uint32_t	len = it->items[i].key_len;

		size += len > kept ? len - kept : 0;
	}
	return size;
}

/*
 * Are SLOTTED's records so much smaller than FIXED's slots that lists are worth
 * their decoding?
 */
static inline bool
is_worth_it(uint32_t slotted, uint32_t fixed)
{
	return slotted + slotted / 8 < fixed;
}

/*
 * Bytes that items [a, b) take in a leaf's body with this prefix, in the more
 * compact of the formats that can hold them, or nearly.  UINT32_MAX if too
 * many.
 */
static uint32_t
measure(const BptItems *it, uint32_t a, uint32_t b, uint32_t prefix_len,
		BptFormat *format)
{
	uint32_t	slotted = BPT_SLACK;
	uint32_t	fixed = UINT32_MAX;
	uint32_t	list_len;
	uint32_t	e;
	bool		uniform = !it->opaque;

	*format = it->opaque ? BPT_OPAQUE : BPT_FIXED;
	if (a == b)
		return BPT_SLACK;
	if (b - a > BPT_LEAF_TIDS - 2)
		return UINT32_MAX;
	for (uint32_t i = a; i < b && uniform && !it->plain; i++)
		uniform = it->items[i].key_len == it->items[a].key_len &&
			it->items[i].payload_len == 0;
	if (uniform)
	{
		uint32_t	len = item_suffix(it, a, prefix_len);

		fixed = BPT_SLACK + (b - a) * (len > 8 ? len : 8);
		if (!it->posting || it->single)
			return fixed;
	}
	if (it->single)
		slotted += single_sizes(it, a, b, prefix_len);
	for (uint32_t i = a; i < b && !it->single && is_worth_it(slotted, fixed);
		 i = e)
	{
		e = group_end(it, i, b);
		slotted += 10 + record_size(it, i, e, prefix_len, &list_len);
	}
	if (fixed != UINT32_MAX && !is_worth_it(slotted, fixed))
		return fixed;
	if (!it->opaque)
		*format = BPT_SLOTTED;
	return slotted;
}

/*
 * How many bytes of "right" it takes, at least, to be above "left", which is
 * below it.  "lowest": the last one is made as low as may be, for what is less,
 * and comes next, shall not go to the left.
 */
uint32_t
euno_bpt_separate(const uint8_t *left, uint32_t left_len, uint8_t *right,
				  uint32_t len, bool lowest)
{
	uint32_t	same = bpt_same_bytes(left, left_len, right, len);

	if (lowest && same < len && same < left_len && left[same] + 1 < right[same])
		right[same] = (uint8_t) (left[same] + 1);

	/* Where one is longer and the rest equal, zeros decide nothing. */
	while (same < len && same >= left_len && right[same] == 0)
		same++;
	return same < len ? same + 1 : len;
}

/*
 * The shortest separator s with item i - 1 < s <= item i, in "to"
 * (BPT_MAX_COMPOSITE); "lowest": the lowest of these.  OPAQUE: item i's key, and
 * its TID.
 */
uint32_t
euno_bpt_separator(const BptItems *it, uint32_t i, uint8_t *to, EunoTid *tid,
				   bool lowest)
{
	uint8_t		left[BPT_MAX_COMPOSITE];
	uint32_t	len = euno_bpt_item_copy(it, i, 0, to);

	*tid = it->items[i].tid;
	if (it->opaque)
		return len;
	return euno_bpt_separate(left, euno_bpt_item_copy(it, i - 1, 0, left), to,
							 len, lowest);
}

/*
 * The prefix of a leaf with these fences and items [a, b).  Without a high
 * fence it goes by the last item (BPT_OPEN): an ascending load fills the last
 * leaf, which shall hold as many entries then as it will after its split.
 */
uint32_t
euno_bpt_prefix(EunoTree *tree, const BptItems *it, uint32_t a, uint32_t b,
				const BptFence *low, const BptFence *high)
{
	const uint8_t *top = high->bytes;
	uint32_t	top_len = high->len;
	uint32_t	len;
	uint8_t		last[BPT_MAX_COMPOSITE];

	if (bpt_is_opaque(tree) || low->bytes == NULL)
		return 0;
	if (top == NULL)
	{
		if (a == b)
			return 0;
		top_len = euno_bpt_item_copy(it, b - 1, 0, last);
		top = last;
		if (top_len > it->open_prefix)
			top_len = it->open_prefix;
	}
	len = bpt_same_bytes(low->bytes, low->len, top, top_len);
	for (uint32_t i = a; i < (it->plain && a < b ? a + 1 : b); i++)
	{
		if (item_suffix(it, i, 0) < len)
			len = item_suffix(it, i, 0);
	}
	return len;
}

/* The items fit in a leaf: so do their heads and tails, side by side. */
static void
encode_fixed(const BptItems *it, uint32_t a, uint32_t b, BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	len = b > a ? item_suffix(it, a, leaf->prefix_len) : 0;
	uint32_t	tail = len > 8 ? len - 8 : 0;
	uint64_t	heads[(BPT_NODE_MAX + 8) / 8];
	uint8_t    *tails = (uint8_t *) (heads + (b - a));
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];

	leaf->suffix_len = (uint16_t) len;
	for (uint32_t i = 0; i < b - a; i++)
	{
		memset(buf, 0, 8);
		(void) euno_bpt_item_copy(it, a + i, leaf->prefix_len, buf);
		heads[i] = euno_get_word(buf);
		memcpy(tails + i * tail, buf + 8, tail);
	}
	euno_bpt_lay_out(image, heads, tails, b - a);
}

/* Writes the record of items [a, e) at "to". */
static void
encode_record(const BptItems *it, uint32_t a, uint32_t e, uint32_t list_len,
			  const uint8_t *tail, uint32_t tail_len, uint32_t len,
			  uint8_t *to)
{
	const BptItem *item = &it->items[a];
	EunoEntry	payload = {.payloadlen = item->payload_len,
	.payload = it->bytes + item->off + bpt_item_kept(it, item)};
	EunoTid		tids[BPT_LIST_MAX];
	uint8_t		bytes[BPT_LIST_BYTES];
	BptTidList	list = {item->tid, e - a, bytes, list_len};

	if (e - a > 1)
	{
		for (uint32_t i = a; i < e; i++)
			tids[i - a] = it->items[i].tid;
		(void) euno_bpt_list_encode(tids, e - a, bytes);
	}
	(void) euno_bpt_build_record(to, len, tail, tail_len, &payload, &list);
}

/*
 * SLOTTED, OPAQUE: an image has this many slots, of "cap", and records from
 * "heap" on.  What nothing is in becomes zero: nodes are written to files, and
 * images are on stacks.
 */
void
euno_bpt_image_done(BptImage *image, uint32_t count, uint32_t cap,
					uint32_t heap)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	slots = leaf->body + 8 * cap + 2 * count;

	memset(image->bytes + leaf->body + 8 * count, 0, 8 * (cap - count));
	memset(image->bytes + slots, 0, heap - slots);
	memset(image->bytes + bpt_leaf_size(leaf) - BPT_SLACK, 0, BPT_SLACK);
	leaf->suffix_len = 0;
	leaf->cap = (uint16_t) cap;
	leaf->count = (uint16_t) count;
	leaf->heap = (uint16_t) heap;
}

static void
encode_slotted(const BptItems *it, uint32_t a, uint32_t b, uint32_t used,
			   BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	size = (uint32_t) bpt_leaf_size(leaf);
	uint64_t   *heads = (uint64_t *) (image->bytes + leaf->body);
	uint16_t   *offs;
	uint32_t	count = 0;
	uint32_t	cap;
	uint32_t	heap = size - BPT_SLACK;
	uint32_t	skip = it->opaque ? 0 : 8;	/* what is in the head */
	uint32_t	e;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];

	for (uint32_t i = a; i < b; i = e, count++)
		e = group_end(it, i, b);

	/* Room for slots and for records in the proportion seen so far. */
	cap = count;
	if (count > 0)
		cap += (size - leaf->body - used) / (used / count + 1);
	if (cap > BPT_LEAF_TIDS - 2)
		cap = BPT_LEAF_TIDS - 2;
	offs = (uint16_t *) (heads + cap);
	for (uint32_t i = a; i < b; i = e)
	{
		uint32_t	len = item_suffix(it, i, leaf->prefix_len);
		uint32_t	list_len;

		e = group_end(it, i, b);
		heap -= record_size(it, i, e, leaf->prefix_len, &list_len);
		memset(buf, 0, 8);
		(void) euno_bpt_item_copy(it, i, it->opaque ? 0 : leaf->prefix_len,
								  buf);
		*heads++ = it->opaque ? bpt_opaque_head(it->items[i].tid, buf, len) :
			euno_get_word(buf);
		encode_record(it, i, e, list_len, buf + skip,
					  len > skip ? len - skip : 0, len, image->bytes + heap);
		*offs++ = (uint16_t) heap;
	}
	if (!it->opaque)
		euno_bpt_note_alphabet(leaf, heads - count, count);
	euno_bpt_image_done(image, count, cap, heap);
}

/* What "measure" says of a leaf of items [a, b) with these fences. */
uint32_t
euno_bpt_measure(EunoTree *tree, const BptItems *it, uint32_t a, uint32_t b,
				 const BptFence *low, const BptFence *high, BptFormat *format)
{
	return measure(it, a, b, euno_bpt_prefix(tree, it, a, b, low, high),
				   format);
}

/*
 * Builds a leaf of items [a, b) in an image whose size_log2 and body are those
 * of the leaf it is meant for.  False if they do not fit.  The image's lock,
 * seqno and right link are left alone.
 */
bool
euno_bpt_encode(EunoTree *tree, const BptItems *it, uint32_t a, uint32_t b,
				const BptFence *low, const BptFence *high, BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	prefix_len = euno_bpt_prefix(tree, it, a, b, low, high);
	BptFormat	format;
	uint32_t	used = measure(it, a, b, prefix_len, &format);

	if (used > bpt_leaf_size(leaf) - leaf->body)
		return false;
	euno_bpt_leaf_head(leaf, format, prefix_len, low, high);
	leaf->ntids = (uint16_t) (b - a);
	if (format == BPT_FIXED)
		encode_fixed(it, a, b, image);
	else
		encode_slotted(it, a, b, used, image);
	return true;
}

/*
 * Copies an image into its leaf, which the caller has locked (or not yet
 * published): everything but the lock and the constant fields.
 */
void
euno_bpt_install(BptLeaf *leaf, const BptImage *image)
{
	const BptLeaf *from = &image->leaf;
	size_t		body = from->body;
	size_t		heads = bpt_leaf_size(from) - body;

	euno_store64(&leaf->seqno, from->seqno);
	euno_store_ptr(&leaf->right, from->right);
	euno_store64(&leaf->low_hint, from->low_hint);
	euno_store64(&leaf->high_hint, from->high_hint);
	euno_store16(&leaf->count, from->count);
	euno_store16(&leaf->prefix_len, from->prefix_len);
	euno_store16(&leaf->suffix_len, from->suffix_len);
	euno_store16(&leaf->cap, from->cap);
	euno_store16(&leaf->heap, from->heap);	/* FIXED: entries */
	euno_store8(&leaf->format, from->format);
	euno_store16(&leaf->ntids, from->ntids);
	if ((from->format & BPT_FORMAT) == BPT_FIXED)
	{
		/* A leaf with few entries is mostly empty. */
		size_t		tails = body + 8 * (size_t) from->cap;
		size_t		tail = from->suffix_len > 8 ? from->suffix_len - 8U : 0;

		heads = 8 * (size_t) from->count;
		euno_copy_in((uint8_t *) leaf + tails, image->bytes + tails,
					 tail * from->count);
	}
	euno_copy_in((uint8_t *) leaf + body, image->bytes + body, heads);
}
