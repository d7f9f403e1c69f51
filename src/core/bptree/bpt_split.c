/*-------------------------------------------------------------------------
 *
 * bpt_split.c
 *	  An entry that does not fit as the leaf is: repacking and splitting.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* How full, in percent, a leaf may be after repacking instead of a split. */
#define BPT_REPACK_FILL		85

/* How many entries that have come in ascending order make a group. */
#define GROUP		4

/* So many others are looked at, whether they are older. */
#define OLDER		16

/* The high fence of a leaf, of which this is a copy; its bytes go to "buf". */
BptFence
euno_bpt_high_fence(const BptLeaf *leaf, uint8_t *buf)
{
	const BptLeaf *right = leaf->right;
	BptFence	high = {NULL, 0, 0};

	if (right != NULL)
	{
		high.len = euno_load32(&right->low_len);
		if (high.len > BPT_MAX_COMPOSITE)
			high.len = BPT_MAX_COMPOSITE;
		euno_copy_out(buf, bpt_low(right), high.len);
		high.tid = euno_load64(&right->low_tid);
		high.bytes = buf;
	}
	return high;
}

/* The constant part of an image's header. */
void
euno_bpt_image_like(BptImage *image, const BptLeaf *leaf)
{
	image->leaf.size_log2 = euno_load8(&leaf->size_log2);
	image->leaf.body = euno_load16(&leaf->body);
	image->leaf.use = euno_load16(&leaf->use);
}

/* What item i adds to a leaf, roughly. */
static uint32_t
item_weight(const BptItems *it, uint32_t i)
{
	const BptItem *item = &it->items[i];

	if (i > 0 && item->off == it->items[i - 1].off &&
		item->source == it->items[i - 1].source && it->posting)
		return 4;
	return 16 + item->payload_len + bpt_item_kept(it, item);
}

/* How many entries, or slots, a leaf has about now, its annex apart. */
static uint32_t
count_of(const BptLeaf *leaf, bool slots)
{
	if ((euno_load8(&leaf->format) & BPT_FORMAT) == BPT_FIXED)
		return euno_load16(&leaf->entries);
	return euno_load16(slots ? &leaf->count : &leaf->ntids);
}

/*
 * How many of n entries, or slots, of which number "at" is new, stay in the left
 * leaf if the new one is at an edge; 0: it is not.
 */
uint32_t
euno_bpt_split_edge(const EunoTree *tree, uint32_t n, uint32_t at,
					const BptLeaf *leaf, bool slots)
{
	if (at == n - 1)
	{
		const BptLeaf *right = euno_load_ptr_acquire(&leaf->right);
		uint32_t	m = right != NULL ? n - 1 :
			n * tree->config.fillfactor / 100;

		/*
		 * Ascending: what comes next comes to the right leaf.  But if such a
		 * split has just left that nearly empty, it does not: they descend, and
		 * come to the left one, which gets room for them.
		 */
		if (right != NULL && 8 * count_of(right, slots) < n + 8)
			return 0;
		return m < 1 ? 1 : m > n - 1 ? n - 1 : m;
	}
	return at == 0 && !leaf->has_low;	/* descending */
}

/*
 * Do entries come in ascending order to this place, left of slot "at" of a full
 * leaf?  Then those just left of it are its newest, as far as TIDs tell: they
 * ascend where rows are appended to the table.
 */
bool
euno_bpt_ascends(BptView *view, uint32_t at)
{
	uint32_t	n = view->count;
	EunoTid		newest;

	if (at < GROUP || at >= n)
		return false;
	newest = euno_bpt_first_tid(view, at - 1);
	for (uint32_t k = 2; k <= GROUP; k++)
	{
		if (euno_bpt_first_tid(view, at - k) >=
			euno_bpt_first_tid(view, at - k + 1))
			return false;
	}
	for (uint32_t k = 0; k < OLDER; k++)
	{
		uint32_t	i = k * n / OLDER;

		if (i + 1 != at && euno_bpt_first_tid(view, i) > newest)
			return false;
	}
	return euno_bpt_first_tid(view, at) < newest;
}

/*
 * How many of the items (one of which, number "at", is new) stay in the left
 * leaf, if they fit: at least one, and not all.
 */
static uint32_t
choose_split(EunoTree *tree, const BptItems *it, uint32_t at,
			 const BptLeaf *leaf)
{
	uint64_t	total = 0;
	uint64_t	left = 0;
	uint32_t	m = euno_bpt_split_edge(tree, it->n, at, leaf, false);

	if (m > 0)
		return m;
	for (uint32_t i = 0; i < it->n; i++)
		total += item_weight(it, i);
	for (m = 0; m < it->n - 1 && (left < total / 2 || m == 0); m++)
		left += item_weight(it, m);
	return m;
}

/* Which item is the one right of the gap? */
uint32_t
euno_bpt_gap_item(BptView *view, const BptGap *gap)
{
	uint32_t	at = gap->sub;

	if (view->format == BPT_FIXED)
	{
		for (uint32_t i = 0; i < gap->slot; i = bpt_next_slot(view, i))
			at++;
		return at;
	}
	for (uint32_t i = 0; i < gap->slot; i++)
	{
		BptSlot		slot;

		if (!euno_bpt_slot(view, i, &slot))
			return 0;
		at += slot.ntids;
	}
	return at;
}

/*
 * The last leaf's prefix goes by its entries, and the new one, above all of
 * them, does not have it: with a short separator the left leaf would lose its
 * prefix, and its entries might not fit any more.  So the separator is what
 * comes right after the last entry.  0 if it is not.
 */
static uint32_t
build_beyond(EunoTree *tree, BptSplit *s)
{
	const BptItems *it = &s->work.it;
	uint32_t	m = it->n - 1;
	uint32_t	i = euno_bpt_item_copy(it, m - 1, 0, s->middle_buf);
	uint8_t		entry[BPT_MAX_COMPOSITE];
	uint32_t	len = euno_bpt_item_copy(it, m, 0, entry);

	s->middle.bytes = s->middle_buf;
	s->middle.len = i;
	s->middle.tid = 0;
	while (i > 0 && ++s->middle_buf[i - 1] == 0)
		i--;
	if (memcmp(s->middle_buf, entry,
			   s->middle.len < len ? s->middle.len : len) > 0)
		return 0;
	return euno_bpt_encode(tree, it, 0, m, &s->low, &s->middle, &s->left) ?
		m : 0;
}

/* Chooses the split point and builds the left leaf.  0 if impossible. */
uint32_t
euno_bpt_split_left(EunoTree *tree, BptSplit *s, uint32_t at,
					const BptLeaf *leaf, bool beyond)
{
	const BptItems *it = &s->work.it;
	uint32_t	m = beyond ? build_beyond(tree, s) : 0;

	s->how = BPT_BY_ITEM;
	if (m > 0)
		return m;
	m = choose_split(tree, it, at, leaf);

	while (m > 0)
	{
		s->middle.bytes = s->middle_buf;
		s->middle.len = euno_bpt_separator(it, m, s->middle_buf,
										   &s->middle.tid,
										   m == it->n - 1 &&
										   s->high.bytes != NULL);
		if (euno_bpt_encode(tree, it, 0, m, &s->low, &s->middle, &s->left))
			return m;

		/* What was in the leaf before does in its format; one entry fits alone. */
		m = m > at && at > 0 ? at : m - 1 - m / 16;
	}
	return 0;
}

/* Allocates and builds the right leaf, not yet reachable. */
EunoStatus
euno_bpt_split_right(EunoContext *cx, EunoTree *tree, BptSplit *s, uint32_t m,
					 BptLeaf *old_right, uint64_t seqno, BptLeaf **right)
{
	const BptItems *it = &s->work.it;
	BptFormat	format = s->left.leaf.format & BPT_FORMAT;
	uint32_t	used;
	size_t		size;
	bool		built;

	if (s->how == BPT_BY_RUN)
		used = euno_bpt_half_size(s, m);
	else if (s->how == BPT_BY_SLOT)
		used = euno_bpt_cut_size(s);
	else
		used = euno_bpt_measure(tree, it, m, it->n, &s->middle, &s->high,
								&format);
	size = euno_bpt_leaf_size_for(format, s->middle.len, used);
	if (size == 0)
		return EUNO_CORRUPT;
	*right = euno_bpt_leaf_alloc(cx, tree,
								 euno_bpt_home(cx, tree, &s->left.leaf),
								 size, &s->middle);
	if (*right == NULL)
		return EUNO_NO_MEMORY;
	euno_bpt_inherit_use(*right, &s->left.leaf);
	euno_bpt_image_like(&s->right, *right);
	if (s->how == BPT_BY_RUN)
		built = euno_bpt_half_right(s, m);
	else if (s->how == BPT_BY_SLOT)
		built = euno_bpt_cut_right(s, m);
	else
		built = euno_bpt_encode(tree, it, m, it->n, &s->middle, &s->high,
								&s->right);
	if (!built)
		return EUNO_CORRUPT;
	s->right.leaf.seqno = seqno;
	s->right.leaf.right = old_right;
	euno_bpt_install(*right, &s->right);
	return EUNO_OK;
}

/* FIXED: do some neighbors have the same key, so that lists would pay? */
static bool
some_equal(BptView *view)
{
	uint8_t		a[BPT_MAX_COMPOSITE + 8];
	uint8_t		b[BPT_MAX_COMPOSITE + 8];

	for (uint32_t k = 1; k <= 16; k++)
	{
		uint32_t	i = k * (view->count - 1) / 16;
		uint32_t	len;

		if (i == 0)
			continue;			/* a leaf of few entries */
		len = euno_bpt_key_bytes(view, i, a);
		(void) euno_bpt_key_bytes(view, i - 1, b);
		if (memcmp(a, b, len) == 0)
			return true;
	}
	return false;
}

/*
 * An ascending load has filled the last leaf: the new entry goes to a leaf of
 * its own, and nothing has to be taken apart.  1, as euno_bpt_split_left; 0 if
 * that cannot be done, or equal keys should be looked for.
 */
static uint32_t
build_append(EunoTree *tree, BptSplit *s, BptView *view, const BptInsertion *ins)
{
	uint8_t		key[BPT_MAX_COMPOSITE + 8];
	EunoEntry	last = {.key = key};

	if (ins->entry->payloadlen > 0 ||
		ins->key->len != view->prefix_len + view->suffix_len ||
		bpt_compare_prefix(ins->key, view->leaf, view->prefix_len) != 0 ||
		(tree->config.posting && some_equal(view)))
		return 0;
	last.keylen = euno_bpt_key_bytes(view, view->count - 1, key);
	last.tid = euno_bpt_first_tid(view, view->count - 1);
	if (!euno_bpt_items_append(&s->work, &last) ||
		!euno_bpt_items_append(&s->work, ins->entry))
		return 0;
	s->at = 1;
	s->middle.bytes = s->middle_buf;
	s->middle.len = euno_bpt_separator(&s->work.it, 1, s->middle_buf,
									   &s->middle.tid, false);
	if (euno_bpt_spread(view, &s->low, &s->middle, &s->left))
	{
		/* What comes next is likely to be as far apart as what has come. */
		s->work.it.open_prefix = euno_bpt_prefix(tree, &s->work.it, 0, 1,
												 &s->low, &s->middle);
		return 1;
	}
	euno_bpt_items_init(&s->work, tree);
	return 0;
}

/*
 * Builds the left leaf of a split, or the whole leaf, in one of the ways that
 * do not take it apart entry by entry.  How many entries (BPT_BY_RUN) or slots
 * (BPT_BY_SLOT) are in it, or BPT_PACKED; 0 if there is no such way.
 */
static uint32_t
split_whole(EunoTree *tree, BptSplit *s, BptPlace *place,
			const BptInsertion *ins)
{
	uint32_t	m;

	s->how = BPT_BY_RUN;
	m = euno_bpt_halve(tree, s, &place->view, ins);
	if (m == 0)
	{
		s->how = BPT_BY_SLOT;
		m = euno_bpt_cut(tree, s, &place->view, ins, BPT_REPACK_FILL);
	}
	return m;
}

/* Puts the leaf that was packed anew in its place. */
static EunoStatus
install_packed(EunoContext *cx, EunoTree *tree, BptPlace *place, BptSplit *s)
{
	BptLeaf    *leaf = place->leaf;

	if (!bpt_place_lock(cx, place))
		return EUNO_STALE;
	euno_bpt_install(leaf, &s->left);
	bpt_count(cx, tree, 1);
	cx->leaf = leaf->number;
	euno_lock_release(&leaf->lock, cx->env);
	return EUNO_OK;
}

/*
 * Packs the leaf anew with the entry, if that may be and makes room enough,
 * and sets *m to BPT_PACKED; else builds the left leaf of a split and sets *m
 * to the number of items that stay in it.  EUNO_OK, EUNO_FULL or EUNO_CORRUPT.
 */
static EunoStatus
repack_or_split(EunoTree *tree, BptSplit *s, BptPlace *place,
				const BptInsertion *ins, bool repack, uint32_t *m)
{
	BptItems   *it = &s->work.it;
	uint32_t	at = euno_bpt_gap_item(&place->view, ins->gap);
	uint32_t	used;
	BptFormat	format;

	s->at = at;
	if (!euno_bpt_items_add_leaf(&s->work, &place->view) ||
		!euno_bpt_items_insert(&s->work, at, ins->entry))
		return EUNO_CORRUPT;
	used = euno_bpt_measure(tree, it, 0, it->n, &s->low, &s->high, &format);
	if (repack && used <= (bpt_leaf_size(&s->left.leaf) - s->left.leaf.body) *
		(it->n == 1 ? 100 : BPT_REPACK_FILL) / 100)
	{
		if (!euno_bpt_encode(tree, it, 0, it->n, &s->low, &s->high, &s->left))
			return EUNO_CORRUPT;
		*m = BPT_PACKED;
		return EUNO_OK;
	}
	if (ins->no_split)
		return EUNO_FULL;
	if (it->n < 2)
		return EUNO_CORRUPT;
	*m = euno_bpt_split_left(tree, s, at, &place->image->leaf,
							 place->view.open &&
							 bpt_compare_prefix(ins->key, &place->image->leaf,
												place->view.prefix_len) != 0);
	return *m == 0 ? EUNO_CORRUPT : EUNO_OK;
}

/*
 * Inserts an entry at a gap of a leaf that has no room for it as it is: by
 * packing the leaf anew (other prefix, other format), or by
 * splitting it.  Everything is built before the leaf is locked, so that a
 * failure leaves no trace, and the lock is held for one copy.
 *
 * EUNO_OK (*created: the new right leaf, whose separator is not posted yet),
 * EUNO_STALE (the leaf has changed: seek again), EUNO_FULL, EUNO_NO_MEMORY,
 * EUNO_CORRUPT.
 */
EunoStatus
euno_bpt_split(EunoContext *cx, EunoTree *tree, BptPlace *place,
			   const BptInsertion *ins, BptLeaf **created)
{
	BptBody    *body = bpt_body(tree);
	BptLeaf    *leaf = place->leaf;
	BptLeaf    *right;
	EunoStatus	status = euno_bpt_copy(place);
	BptSplit	s;
	bool		appends;
	uint32_t	m;

	if (status != EUNO_OK)
		return status;
	s.low = bpt_low_fence(&place->image->leaf);
	s.high = euno_bpt_high_fence(&place->image->leaf, s.high_buf);
	euno_bpt_image_like(&s.left, leaf);
	s.left.leaf.right = place->image->leaf.right;
	s.left.leaf.seqno = place->image->leaf.seqno;
	appends = bpt_appends(tree, &place->view, ins->gap->slot);
	if (appends && ins->no_split)
		return EUNO_FULL;
	m = appends ? 0 : split_whole(tree, &s, place, ins);
	if (m == 0)
	{
		s.how = BPT_BY_ITEM;
		euno_bpt_items_init(&s.work, tree);
		if (appends)
			m = build_append(tree, &s, &place->view, ins);
		if (m == 0)
			status = repack_or_split(tree, &s, place, ins, !appends, &m);
		if (status != EUNO_OK)
			return status;
	}
	if (m == BPT_PACKED)
		return install_packed(cx, tree, place, &s);
	if (ins->no_split)
		return EUNO_FULL;
	status = euno_bpt_split_right(cx, tree, &s, m, place->image->leaf.right,
								  euno_add64(&body->seqno, 2) + 1, &right);
	if (status != EUNO_OK)
		return status;
	s.left.leaf.right = right;
	s.left.leaf.seqno = s.right.leaf.seqno + 1;
	if (!bpt_place_lock(cx, place))
		return EUNO_STALE;
	euno_bpt_install(leaf, &s.left);
	bpt_count(cx, tree, 1);
	(void) euno_add64(&body->leaves, 1);
	euno_bpt_move_note(tree, leaf, right);
	cx->leaf = s.at < m ? leaf->number : right->number;
	euno_lock_release(&leaf->lock, cx->env);
	if (euno_load_ptr(&body->edge) == leaf)
		euno_store_ptr(&body->edge, right);
	euno_bpt_spare_used(cx);
	(void) euno_add64(&body->splits, 1);
	*created = right;
	(void) euno_bpt_reclaim(cx, tree, false);
	return EUNO_OK;
}
