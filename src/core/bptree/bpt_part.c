/*-------------------------------------------------------------------------
 *
 * bpt_part.c
 *	  Splitting a leaf between the keys that are fought for.
 *
 * A leaf at which operations on different keys are in each other's way is split
 * beside the key of one of them, however full it is (LeanStore's contention
 * split; Alhomssi and Leis, CIDR 2021).  Keys that are written most soon have
 * leaves of their own.  Merging leaves such leaves alone as long as they are
 * written to.
 *
 * It is a split like any other but that nothing is inserted, and that the leaf is
 * locked first: it is written all the time, and what was prepared would seldom be
 * of its latest version.  See src/README.md, "Contention splits".
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* Of the last leaf, this part of the entries is left to ascending loads. */
#define PART_EDGE	4

/* What a contention split is made of; large, in private memory. */
typedef struct Part
{
	EunoContext *cx;
	EunoTree   *tree;
	BptPlace	place;
	BptLeaf    *right;
	uint32_t	m;				/* items that stay */
	BptSplit	split;
} Part;

/*
 * See EunoTreeOps.  No locks on entry or return.
 */
void
euno_bpt_steer(EunoContext *cx, EunoTree *tree, uint32_t conflicts,
			   uint32_t most)
{
	BptBody    *body = bpt_body(tree);

	(void) cx;

	/* Only what differs: others of the line are read by everybody. */
	if (euno_load32(&body->part_most) != most)
		euno_store32(&body->part_most, most);
	if (euno_load32(&body->part_at) != conflicts)
		euno_store32(&body->part_at, conflicts);
}

/* Takes the copy of the leaf apart.  False if that cannot be done. */
static bool
part_items(Part *p)
{
	euno_bpt_items_init(&p->split.work, p->tree);
	return euno_bpt_view(&p->place.image->leaf, &p->place.view) &&
		!p->place.view.contended &&
		euno_bpt_items_add_leaf(&p->split.work, &p->place.view);
}

/*
 * Which item is the first not below the gap on this side of the key's entries?
 */
static uint32_t
part_gap(Part *p, const EunoEntry *entry, int8_t side)
{
	EunoPosition pos = {.key = entry->key,.keylen = entry->keylen,.side = side};
	BptKey		key;
	BptGap		gap;

	euno_bpt_key_position(p->tree, &pos, &key);
	euno_bpt_find(p->cx, &p->place.view, &key, &gap);
	return euno_bpt_gap_item(&p->place.view, &gap);
}

/*
 * Chooses where to split a leaf of which there is a copy: before the first
 * entry of the key, or where there is nothing before, behind the last one.
 * Comparators run.  False: neither leaves something on both sides, or it is
 * where an ascending load goes on.
 */
static bool
part_choose(Part *p, const EunoEntry *entry)
{
	BptSplit   *s = &p->split;
	uint32_t	n;

	if (!part_items(p))
		return false;
	n = s->work.it.n;
	p->m = part_gap(p, entry, -1);
	if (p->m == 0)
		p->m = part_gap(p, entry, 1);
	if (p->m == 0 || p->m >= n ||
		(p->place.image->leaf.right == NULL && p->m > n - n / PART_EDGE - 1))
		return false;
	s->middle.bytes = s->middle_buf;
	s->middle.len = euno_bpt_separator(&s->work.it, p->m, s->middle_buf,
									   &s->middle.tid, false);
	return true;
}

/*
 * A leaf for the right part, empty, that nobody can reach.  Comparators run.
 * False: no memory.
 */
static bool
part_alloc(Part *p)
{
	BptSplit   *s = &p->split;
	const BptItems *it = &s->work.it;
	BptFormat	format;
	uint32_t	used;
	size_t		size;

	s->low = bpt_low_fence(&p->place.image->leaf);
	s->high = euno_bpt_high_fence(&p->place.image->leaf, s->high_buf);
	used = euno_bpt_measure(p->tree, it, p->m, it->n, &s->middle, &s->high,
							&format);
	size = euno_bpt_leaf_size_for(format, s->middle.len, used);
	if (size == 0)
		return false;
	p->right = euno_bpt_leaf_alloc(p->cx, p->tree,
								   euno_bpt_home(p->cx, p->tree,
												 &p->place.image->leaf),
								   size, &s->middle);
	if (p->right == NULL)
		return false;
	euno_bpt_inherit_use(p->right, &p->place.image->leaf);
	euno_store8(&p->right->parted, 1);
	return true;
}

/* BYTES: is an item below a fence? */
static bool
item_below(const BptItems *it, uint32_t i, const BptFence *fence)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE];
	uint32_t	len = euno_bpt_item_copy(it, i, 0, bytes);
	uint32_t	n = len < fence->len ? len : fence->len;
	int			c = memcmp(bytes, fence->bytes, n);

	if (c != 0)
		return c < 0;
	while (n < fence->len && fence->bytes[n] == 0)
		n++;
	return n < fence->len;
}

/*
 * Locks the leaf and copies it again.  BYTES: whatever has become of it, with
 * entries on both sides the separator is between its fences.  In COMPARE order
 * it must be at the version that was looked at.  False, and not locked, if it
 * cannot be split there any more.
 */
static bool
part_lock(Part *p)
{
	BptLeaf    *leaf = p->place.leaf;
	BptItems   *it = &p->split.work.it;
	EunoContext *cx = p->cx;

	if (bpt_is_opaque(p->tree))
		return euno_lock_upgrade(&leaf->lock, p->place.version);
	if (!euno_lock_acquire_or_leave(&leaf->lock, cx->env, &cx->counters))
		return false;
	euno_copy_out(p->place.image->bytes, leaf, bpt_leaf_size(leaf));
	if (part_items(p))
	{
		p->m = 0;
		while (p->m < it->n && item_below(it, p->m, &p->split.middle))
			p->m++;
		if (p->m > 0 && p->m < it->n)
			return true;
	}
	euno_lock_release_unchanged(&leaf->lock, cx->env);
	return false;
}

/*
 * Builds both leaves, of what is in the leaf, which is locked, and puts them
 * in.  False, and nothing has changed: they do not fit.
 */
static bool
part_install(Part *p)
{
	BptSplit   *s = &p->split;
	BptItems   *it = &s->work.it;
	BptBody    *body = bpt_body(p->tree);
	BptLeaf    *leaf = p->place.leaf;
	bool		marked = euno_load8(&leaf->parted) != 0;

	s->low = bpt_low_fence(&p->place.image->leaf);
	s->high = euno_bpt_high_fence(&p->place.image->leaf, s->high_buf);
	euno_bpt_image_like(&s->left, leaf);
	euno_bpt_image_like(&s->right, p->right);
	if (!euno_bpt_encode(p->tree, it, 0, p->m, &s->low, &s->middle, &s->left) ||
		!euno_bpt_encode(p->tree, it, p->m, it->n, &s->middle, &s->high,
						 &s->right))
		return false;
	s->right.leaf.seqno = euno_add64(&body->seqno, 2) + 1;
	s->right.leaf.right = p->place.image->leaf.right;
	s->left.leaf.seqno = s->right.leaf.seqno + 1;
	s->left.leaf.right = p->right;

	/* First: once they can be seen, a merging may take marks and counts away. */
	(void) euno_add64(&body->parted, marked ? 1 : 2);
	euno_bpt_install(p->right, &s->right);
	euno_bpt_install(leaf, &s->left);
	(void) euno_add64(&body->leaves, 1);
	if (!marked)
		euno_store8(&leaf->parted, 1);
	euno_bpt_move_note(p->tree, leaf, p->right);
	return true;
}

/*
 * Splits the place's leaf, if it can.  Returns the right part, whose separator
 * is not posted yet, or NULL.
 */
static BptLeaf *
part(Part *p, const EunoEntry *entry)
{
	EunoContext *cx = p->cx;
	BptLeaf    *leaf = p->place.leaf;
	BptBody    *body = bpt_body(p->tree);

	if (!part_choose(p, entry) || !part_alloc(p) || !part_lock(p))
		return NULL;
	if (!part_install(p))
	{
		euno_lock_release_unchanged(&leaf->lock, cx->env);
		return NULL;
	}
	euno_lock_release(&leaf->lock, cx->env);
	if (euno_load_ptr(&body->edge) == leaf)
		euno_store_ptr(&body->edge, p->right);
	euno_bpt_spare_used(cx);
	(void) euno_add64(&body->splits, 1);
	return p->right;
}

/*
 * Finds the leaf to which an entry belongs, and splits it; with a number, if it
 * is that leaf's.  *right: what is to be posted, or NULL.  False: it was not
 * tried.  A frame of its own, which is gone when the right part is posted.
 */
static bool __attribute__((noinline))
part_find(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
		  uint32_t number, BptImage *image, BptLeaf **right)
{
	EunoPosition pos = euno_position_of(entry);
	BptKey		key;
	Part		p;

	p.cx = cx;
	p.tree = tree;
	euno_bpt_key_position(tree, &pos, &key);
	bpt_place_init(&p.place, image);
	if (euno_bpt_seek(cx, tree, &key, false, &p.place) != EUNO_OK ||
		(number > 0 && (p.place.leaf->number != number ||
						!euno_bpt_shall_part(cx, tree, number))) ||
		euno_bpt_copy(&p.place) != EUNO_OK)
		return false;
	*right = part(&p, entry);
	return true;
}

/*
 * Splits the leaf to which an entry belongs beside its key, if it can.  With a
 * number, that is after a write of the entry, and only if that is the leaf's
 * number and it is still to be parted.  "image" is memory for a copy of it.  To
 * be called within an epoch, no locks on entry or return; comparators run.
 */
void
euno_bpt_part_leaf(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				   uint32_t number, BptImage *image)
{
	BptBody    *body = bpt_body(tree);
	BptLeaf    *right = NULL;

	if (number > 0)
	{
		if (cx->delegation.leading)
			return;
		cx->part_leaf = 0;
		if (euno_load64(&body->parted) >= euno_load32(&body->part_most))
			return;
	}
	if (!part_find(cx, tree, entry, number, image, &right))
		return;
	if (right != NULL)
		euno_bpt_publish(cx, tree, right);
	if (cx->held.spare[0] != NULL)
		euno_bpt_spare_drop(cx);
	(void) euno_bpt_reclaim(cx, tree, false);
}
