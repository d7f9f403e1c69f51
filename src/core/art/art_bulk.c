/*-------------------------------------------------------------------------
 *
 * art_bulk.c
 *	  Loading sorted entries into a tree that nobody else can reach.
 *
 * Entries are collected as long as they fit one bucket.  When the next one
 * does not, they part at the first byte where it differs from the first of
 * them: all subtrees but the one that the next entry belongs to are complete.
 * Each is built and hung into the tree, one descent for a whole bucket.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#define BULK_BYTES	(72 * 1024)

typedef struct BulkEntry
{
	uint32_t	off;
	uint16_t	len;			/* of the composite; the payload follows */
	uint16_t	payload_len;
} BulkEntry;

/* EunoBulk.scratch */
typedef struct Pending
{
	uint32_t	n;
	uint32_t	used;			/* bytes */
	uint32_t	shared;			/* what all of them have in common */
	uint32_t	total;			/* composites and payloads */
	bool		fixed;			/* equally long, no payload */
	ArtKey		last;			/* of the tree; len 0 = none */
	BulkEntry	entries[ART_BUCKET_ENTRIES];
	uint8_t		bytes[BULK_BYTES];
} Pending;

_Static_assert(sizeof(Pending) <= sizeof(((EunoBulk *) 0)->scratch),
			   "the entries must fit");

static Pending *
pending_of(EunoBulk *bulk)
{
	return (Pending *) bulk->scratch;
}

static void
pending_item(const Pending *p, uint32_t i, ArtItem *item)
{
	const BulkEntry *e = &p->entries[i];

	item->head = p->bytes + e->off;
	item->head_len = e->len;
	item->tail = NULL;
	item->tail_len = 0;
	item->payload = item->head + e->len;
	item->payload_len = e->payload_len;
}

/*
 * Hangs n entries, greater than all in the tree, where they belong.  They
 * have more in common with each other than with any entry of the tree.
 */
EunoStatus
euno_art_attach(EunoContext *cx, EunoTree *tree, const ArtItem *items,
				uint32_t n, ArtBuild *build)
{
	EunoStatus	status;
	ArtPlace	place;
	ArtKey		key;
	ArtKey		other;
	ArtItem		item;
	ArtRef		ref;
	uint32_t	len = euno_art_item_len(&items[0]);

	euno_art_item_copy(&items[0], 0, len, key.bytes);
	euno_art_key_set(&key, len);
	status = euno_art_descend(cx, tree, &key, &place);
	if (status != EUNO_OK)
		return status;
	build->nentries = n;
	if (place.where == ART_AT_GAP)
		return euno_art_put_gap(cx, tree, &key, &place, build, items, n, false);
	if (place.where == ART_AT_LEAF && place.ref == 0)
	{
		ref = euno_art_build(build, items, n, place.depth);
		if (ref == 0)
			return EUNO_NO_MEMORY;
		euno_store64_release(place.holder == NULL ? &art_body(tree)->root :
							 euno_art_node_slot(place.holder,
												key.bytes[place.depth - 1]),
							 ref);
		art_count(cx, tree, n, build->nleaves, build->ninners);
		return EUNO_OK;
	}
	if (place.where == ART_AT_LEAF)
	{
		ArtItem		mine;

		if (art_tag(place.ref) == ART_BUCKET)
		{
			ArtView		view;

			euno_art_view(art_pointer(place.ref), &view);
			if (!euno_art_view_item(&view, 0, &item))
				return EUNO_CORRUPT;
		}
		else
			(void) euno_art_leaf_item(&place, &key, &other, &item);
		euno_art_item_key(&key, NULL, &mine);
		place.mismatch = euno_art_item_common(&mine, &item);
		place.other = euno_art_item_byte(&item, place.mismatch);
	}
	return euno_art_put_path(cx, tree, &key, &place, build, items, n);
}

/* Hangs entries [from, to) of what is pending into the tree. */
static EunoStatus
attach_run(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t from,
		   uint32_t to)
{
	EunoStatus	status;
	ArtBuild	build;
	ArtItems	items;

	items.n = to - from;
	for (uint32_t i = from; i < to; i++)
		pending_item(p, i, &items.items[i - from]);
	euno_art_build_start(&build, cx, tree);
	status = euno_art_attach(cx, tree, items.items, items.n, &build);
	if (status != EUNO_OK)
		euno_art_build_undo(&build);
	memcpy(p->last.bytes, p->bytes + p->entries[to - 1].off,
		   p->entries[to - 1].len);
	euno_art_key_set(&p->last, p->entries[to - 1].len);
	return status;
}

/*
 * The same for entries that may have as much in common with the tree's last
 * one as with each other: then they are hung one subtree at a time.
 */
static EunoStatus
flush_run(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t from,
		  uint32_t to)
{
	const uint8_t *first = p->bytes + p->entries[from].off;
	ArtItem		items[2];
	uint32_t	shared;

	pending_item(p, from, &items[0]);
	pending_item(p, to - 1, &items[1]);
	shared = to - from > 1 ? euno_art_item_common(&items[0], &items[1]) :
		p->entries[from].len - 1U;
	if (p->last.len == 0 || to - from == 1 || shared >= p->last.len ||
		memcmp(first, p->last.bytes, shared) != 0)
		return attach_run(cx, tree, p, from, to);
	while (from < to)
	{
		uint8_t		byte = p->bytes[p->entries[from].off + shared];
		uint32_t	end = from + 1;
		EunoStatus	status;

		while (end < to && p->bytes[p->entries[end].off + shared] == byte)
			end++;
		status = flush_run(cx, tree, p, from, end);
		if (status != EUNO_OK)
			return status;
		from = end;
	}
	return EUNO_OK;
}

/* What the pending entries have in common, and how long they are. */
static void
pending_sum(Pending *p)
{
	ArtItem		first;
	ArtItem		last;

	p->total = 0;
	p->fixed = true;
	p->shared = 0;
	if (p->n == 0)
		return;
	for (uint32_t i = 0; i < p->n; i++)
	{
		p->total += p->entries[i].len + p->entries[i].payload_len;
		if (p->entries[i].len != p->entries[0].len ||
			p->entries[i].payload_len > 0)
			p->fixed = false;
	}
	pending_item(p, 0, &first);
	pending_item(p, p->n - 1, &last);
	p->shared = p->n > 1 ? euno_art_item_common(&first, &last) :
		p->entries[0].len - 1U;
}

/*
 * Hangs all pending entries that differ from the next one at byte "at", the
 * first where any does; keeps the rest.
 */
static EunoStatus
flush_before(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t at,
			 uint8_t next)
{
	uint32_t	from = 0;
	uint32_t	off;

	while (from < p->n)
	{
		uint8_t		byte = p->bytes[p->entries[from].off + at];
		uint32_t	to = from + 1;
		EunoStatus	status;

		if (byte == next)
			break;
		while (to < p->n && p->bytes[p->entries[to].off + at] == byte)
			to++;
		status = flush_run(cx, tree, p, from, to);
		if (status != EUNO_OK)
			return status;
		from = to;
	}
	off = from < p->n ? p->entries[from].off : p->used;
	memmove(p->bytes, p->bytes + off, p->used - off);
	memmove(p->entries, p->entries + from, (p->n - from) * sizeof(BulkEntry));
	p->n -= from;
	p->used -= off;
	for (uint32_t i = 0; i < p->n; i++)
		p->entries[i].off -= off;
	pending_sum(p);
	return EUNO_OK;
}

/* See EunoTreeOps. */
EunoStatus
euno_art_bulk_begin(EunoContext *cx, EunoTree *tree, EunoBulk *bulk)
{
	Pending    *p = pending_of(bulk);

	(void) cx;
	bulk->tree = tree;
	p->n = p->used = p->last.len = 0;
	pending_sum(p);
	return EUNO_OK;
}

/* Would the pending entries and this one make a bucket? */
static bool
fits(const Pending *p, const ArtKey *key, uint32_t payload_len,
	 uint32_t shared)
{
	uint32_t	n = p->n + 1;
	uint32_t	size = ART_BUCKET_HEADER + shared;

	if (n > ART_BUCKET_ENTRIES || p->used + key->len + payload_len > BULK_BYTES)
		return false;
	size += p->total + key->len + payload_len - n * shared;
	if (!p->fixed || payload_len > 0 ||
		(p->n > 0 && p->entries[0].len != key->len))
		size += 2 * n + 3 + 2 * n;
	return size <= ART_BUCKET_MAX;
}

/*
 * What the pending entries and this one, which is greater, have in common.
 * At that byte at least the first of them differs from it, or several differ
 * from each other.
 */
static uint32_t
common_with(const Pending *p, const ArtKey *key)
{
	const uint8_t *first = p->bytes + p->entries[0].off;
	uint32_t	shared = 0;

	if (p->n == 0)
		return key->len - 1;
	while (shared < p->shared && shared < key->len - 1 &&
		   first[shared] == key->bytes[shared])
		shared++;
	return shared;
}

/* See EunoTreeOps. */
EunoStatus
euno_art_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	Pending    *p = pending_of(bulk);
	BulkEntry  *e;
	ArtKey		key;

	euno_art_key_entry(entry, &key);
	for (;;)
	{
		uint32_t	shared = common_with(p, &key);
		EunoStatus	status;

		if (fits(p, &key, entry->payloadlen, shared))
		{
			p->shared = shared;
			break;
		}
		status = flush_before(cx, bulk->tree, p, shared, key.bytes[shared]);
		if (status != EUNO_OK)
			return status;
	}
	e = &p->entries[p->n];
	e->off = p->used;
	e->len = (uint16_t) key.len;
	e->payload_len = (uint16_t) entry->payloadlen;
	memcpy(p->bytes + p->used, key.bytes, key.len);
	if (entry->payloadlen > 0)
		memcpy(p->bytes + p->used + key.len, entry->payload, entry->payloadlen);
	p->used += key.len + entry->payloadlen;
	p->total += key.len + entry->payloadlen;
	if (entry->payloadlen > 0 || e->len != p->entries[0].len)
		p->fixed = false;
	p->n++;
	return EUNO_OK;
}

/* See EunoTreeOps. */
EunoStatus
euno_art_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	Pending    *p = pending_of(bulk);

	if (p->n == 0)
		return EUNO_OK;
	return flush_run(cx, bulk->tree, p, 0, p->n);
}
