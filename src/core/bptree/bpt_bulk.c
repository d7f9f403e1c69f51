/*-------------------------------------------------------------------------
 *
 * bpt_bulk.c
 *	  Loading sorted entries into an empty tree.
 *
 * Entries are gathered until they fill a leaf.  The leaf is built once the
 * entry after its last one is known, because that decides its high fence and
 * so its prefix; what turns out not to fit is carried to the next leaf.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* Leaves in a row that a load puts into the memory of one domain. */
#define BULK_TURN	16

/* How much fuller or emptier than the fillfactor leaves may be, in percent. */
#define BULK_SPREAD	8

/*
 * A slot's head and place, and its record's length.  If the entry's TID is
 * part of its bytes, 8 of these are the head.
 */
#define SLOT_BYTES	12

typedef struct Bulk
{
	BptWork		work;
	BptLeaf    *leaf;			/* the last of the chain, empty */
	uint32_t	target;			/* bytes of entries that it shall get */
	uint64_t	loaded;
	bool		uniform;		/* all key lengths equal, no payload */
	uint32_t	sum;			/* bytes the items take, each for itself */
	uint32_t	lists;			/* bytes they take if equal keys share */
	uint32_t	best;			/* bytes they take together; 0: unknown */
} Bulk;

_Static_assert(sizeof(Bulk) <= sizeof(((EunoBulk *) 0)->scratch),
			   "the bulk state must fit");

static Bulk *
bulk_state(EunoBulk *bulk)
{
	return (Bulk *) bulk->scratch;
}

/*
 * Bytes of entries that a leaf shall get: what the fillfactor says, on the
 * average.  Were all leaves equally full, keys in random order would fill all
 * of them at nearly the same time later (src/README.md, "Split").  The multiples of
 * the golden ratio are evenly spread, however few one takes.
 */
static uint32_t
leaf_target(EunoTree *tree, const BptLeaf *leaf)
{
	uint32_t	room = (uint32_t) bpt_leaf_size(leaf) - leaf->body;
	uint32_t	fill = tree->config.fillfactor;
	uint32_t	most = 100 - fill < fill - 50 ? 100 - fill : fill - 50;
	uint32_t	spread = most < BULK_SPREAD ? most : BULK_SPREAD;
	uint32_t	at = leaf->number * UINT32_C(0x9E3779B9) >> 16;

	return room * (fill - spread) / 100 +
		room * spread / 50 * at / 65536;
}

/* See EunoTreeOps.  Nobody else can reach the tree, which is empty. */
EunoStatus
euno_bpt_bulk_begin(EunoContext *cx, EunoTree *tree, EunoBulk *bulk)
{
	Bulk	   *b = bulk_state(bulk);

	(void) cx;
	bulk->tree = tree;
	euno_bpt_items_init(&b->work, tree);
	b->leaf = bpt_body(tree)->first;
	b->target = leaf_target(tree, b->leaf);
	b->loaded = 0;
	b->uniform = true;
	b->sum = b->lists = 0;
	if (b->leaf->count != 0 || b->leaf->right != NULL)
		return EUNO_CORRUPT;
	return EUNO_OK;
}

/* Forgets the first n items. */
static void
drop_items(BptWork *work, uint32_t n)
{
	BptItems   *it = &work->it;
	uint32_t	off = n < it->n ? it->items[n].off : it->nbytes;

	it->n -= n;
	it->plain |= it->n == 0;
	it->nbytes -= off;
	memmove(it->bytes, it->bytes + off, it->nbytes);
	memmove(it->items, it->items + n, it->n * sizeof(BptItem));
	it->single = true;
	for (uint32_t i = 0; i < it->n; i++)
	{
		BptItem    *item = &it->items[i];

		item->off -= off;
		it->single &= item->payload_len == 0 &&
			(i == 0 || item->off != item[-1].off);
	}
}

/* Counts in the items from "from" on; 0: all, anew. */
static void
recount(Bulk *b, uint32_t from)
{
	BptItems   *it = &b->work.it;

	if (from == 0)
	{
		b->sum = b->lists = 0;
		b->uniform = true;
	}
	for (uint32_t i = from; i < it->n; i++)
	{
		BptItem    *item = &it->items[i];
		BptItem    *before = i > 0 ? item - 1 : NULL;
		uint32_t	size = item->key_len + item->payload_len +
			(it->opaque ? SLOT_BYTES : SLOT_BYTES + EUNO_TID_BYTES - 8);

		if (item->payload_len > 0 || item->key_len != it->items[0].key_len)
			b->uniform = false;
		b->sum += size;
		if (before != NULL && it->posting && item->off == before->off &&
			item->payload_len == 0 && item->key_len == before->key_len)
			b->lists += 1 + euno_bpt_list_step(before->tid, item->tid);
		else
			b->lists += size;
	}
}

/* Could the items be more than the leaf's share, at the best? */
static bool
maybe_full(Bulk *b)
{
	BptItems   *it = &b->work.it;
	uint32_t	target = b->target;
	uint32_t	common;
	uint8_t		first[BPT_MAX_COMPOSITE + 8];
	uint8_t		last[BPT_MAX_COMPOSITE + 8];
	uint32_t	len;

	b->best = 0;
	if (it->n >= BPT_LEAF_TIDS - 8 || it->nbytes > BPT_ITEM_BYTES - BPT_MAX_COMPOSITE)
		return true;
	if (b->lists < target && b->lists < b->sum)
		return false;
	if (it->opaque)
		return b->lists >= target;
	if (it->n < 32 ? b->lists < target : it->n % 16 != 0)
		return false;
	len = euno_bpt_item_copy(it, 0, 0, first);
	common = bpt_same_bytes(first, len, last,
							euno_bpt_item_copy(it, it->n - 1, 0, last));
	b->best = b->lists > common * it->n ? b->lists - common * it->n : 0;
	if (b->uniform)
	{
		uint32_t	fixed = it->n * (len - common > 8 ? len - common : 8);

		if (fixed < b->lists)
			b->best = fixed;
	}
	return b->best >= target;
}

/* Builds the last leaf from the first m items. */
static EunoStatus
fill_leaf(EunoTree *tree, Bulk *b, uint32_t m, const BptFence *high,
		  BptLeaf *right)
{
	BptLeaf    *leaf = b->leaf;
	BptImage	image;
	BptFence	low = bpt_low_fence(leaf);

	euno_bpt_image_like(&image, leaf);
	if (!euno_bpt_encode(tree, &b->work.it, 0, m, &low, high, &image))
		return EUNO_CORRUPT;
	image.leaf.right = right;
	image.leaf.seqno = euno_add64(&bpt_body(tree)->seqno, 1) + 1;
	euno_bpt_install(leaf, &image);
	b->loaded += m;
	return EUNO_OK;
}

/*
 * Bytes that the first m of the items take in the last leaf's body, with the
 * fences that it will have: with others, the format may be another.
 */
static uint32_t
measure(EunoTree *tree, Bulk *b, uint32_t m, const BptFence *high,
		BptFormat *format)
{
	BptFence	low = bpt_low_fence(b->leaf);

	return euno_bpt_measure(tree, &b->work.it, 0, m, &low, high, format);
}

/* Do the first m of the items fit in the leaf's share? */
static bool
fits(EunoTree *tree, Bulk *b, uint32_t m, uint32_t target, BptFence *high,
	 uint8_t *buf, uint32_t *used, BptFormat *format)
{
	high->bytes = buf;
	high->len = euno_bpt_separator(&b->work.it, m, buf, &high->tid, false);
	*used = measure(tree, b, m, high, format);
	return *used <= target;
}

/*
 * How many of the items will fit?  All but the last one, if they share
 * records.
 */
static uint32_t
first_guess(const Bulk *b, uint32_t target)
{
	uint32_t	most = b->work.it.n - 1;
	uint64_t	m;

	if (b->lists < b->sum || b->best <= target)
		return most;
	m = (uint64_t) b->work.it.n * target / b->best;
	return m > most ? most : m > 0 ? (uint32_t) m : 1;
}

/* Fills the last leaf with as many items as fit, and appends an empty one. */
static EunoStatus
flush_leaf(EunoContext *cx, EunoTree *tree, Bulk *b)
{
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	target = b->target;
	uint32_t	m = first_guess(b, target);
	uint32_t	used;
	EunoStatus	status;
	BptFormat	format;
	BptFence	high;
	BptLeaf    *right;

	/* Nobody knows yet who will use it: an extent's worth for each domain. */
	if (tree->config.nparts > 1)
		cx->domain = (int) (bpt_body(tree)->leaves / BULK_TURN %
							tree->config.nparts);
	while (!fits(tree, b, m, target, &high, buf, &used, &format) && m > 1)
	{
		uint32_t	guess = used == UINT32_MAX ? m / 2 :
			(uint32_t) ((uint64_t) m * target / used);

		m = guess < m - 1 ? guess : m - 1;
		if (m < 1)
			m = 1;
	}

	/* The next leaf is likely to be of the same format. */
	right = euno_bpt_leaf_alloc(cx, tree, cx->domain,
								euno_bpt_leaf_size_for(format, high.len,
													   BPT_SLACK),
								&high);
	if (right == NULL)
		return EUNO_NO_MEMORY;
	status = fill_leaf(tree, b, m, &high, right);
	if (status != EUNO_OK)
	{
		euno_bpt_spare_drop(cx);
		return status;
	}
	euno_bpt_spare_used(cx);
	bpt_body(tree)->leaves++;
	b->leaf = right;
	b->target = leaf_target(tree, right);
	drop_items(&b->work, m);
	recount(b, 0);
	return EUNO_OK;
}

/* See EunoTreeOps. */
EunoStatus
euno_bpt_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	EunoTree   *tree = bulk->tree;
	Bulk	   *b = bulk_state(bulk);
	BptItems   *it = &b->work.it;

	if (!euno_bpt_items_append(&b->work, entry))
		return EUNO_CORRUPT;
	recount(b, it->n - 1);
	while (it->n > 1 && maybe_full(b))
	{
		uint32_t	before = it->n;
		EunoStatus	status = flush_leaf(cx, tree, b);

		if (status != EUNO_OK)
			return status;
		if (it->n * 2 < before)
			break;
	}
	return EUNO_OK;
}

/* See EunoTreeOps. */
EunoStatus
euno_bpt_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	EunoTree   *tree = bulk->tree;
	Bulk	   *b = bulk_state(bulk);
	BptFence	high = {NULL, 0, 0};
	EunoStatus	status;
	bool		ok = true;

	for (;;)
	{
		uint32_t	n = b->work.it.n;
		BptFormat	format;

		if (n < 2 || measure(tree, b, n, &high, &format) <=
			bpt_leaf_size(b->leaf) - b->leaf->body)
			break;
		status = flush_leaf(cx, tree, b);
		if (status != EUNO_OK)
			return status;
	}
	status = fill_leaf(tree, b, b->work.it.n, &high, NULL);
	if (status != EUNO_OK)
		return status;
	bpt_count(cx, tree, (int64_t) b->loaded);
	euno_epoch_enter(cx->process);
	for (int i = 0; i < tree->config.ndomains && ok; i++)
	{
		if (bpt_domain(tree, i) == i)
			ok = euno_bpt_directory_build(cx, tree, i);
	}
	euno_epoch_exit(cx->process);
	return ok ? EUNO_OK : EUNO_NO_MEMORY;
}
