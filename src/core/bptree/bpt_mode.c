/*-------------------------------------------------------------------------
 *
 * bpt_mode.c
 *	  A leaf becomes contended, and calm again; an annex is emptied.
 *
 * Emptying moves an annex's entries to the leaf's sorted part, and splits the
 * leaf only when that is full (Eunomia, section 5.2: reorganize before
 * splitting).  As everywhere, what will be in the leaf is built first, from what
 * was seen at some versions, and the locks are taken at these: the leaf's, then
 * those of all segments.  Whoever needs the room can do it; nobody waits for
 * somebody who does.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_annex.h"

/* How full, in percent, a leaf may be after its annex has been emptied. */
#define FOLD_FILL	85

/* So often a leaf is looked at anew before it becomes contended another time. */
#define CONTEND_TRIES	64

/*
 * How would the annex of a leaf with items [a, b), whose fences have their
 * first "base" bytes in common, keep entries?  False if it cannot: they are not
 * equally long, have payloads, or are too long.
 */
static bool
choose_shape(const BptItems *it, uint32_t a, uint32_t b, uint32_t base,
			 BptShape *shape)
{
	uint32_t	keys = 1;
	uint8_t		before[BPT_MAX_COMPOSITE];
	uint8_t		key[BPT_MAX_COMPOSITE];

	if (a == b)
		return false;
	for (uint32_t i = a; i < b; i++)
	{
		const BptItem *item = &it->items[i];

		if (item->payload_len > 0 || item->key_len != it->items[a].key_len)
			return false;
		if (keys > BPT_SEGMENTS)
			continue;
		(void) euno_bpt_item_copy(it, i, 0, key);
		if (i > a && memcmp(before, key, item->key_len) != 0)
			keys++;
		memcpy(before, key, item->key_len);
	}
	shape->base = base;
	shape->stride = it->items[a].key_len + EUNO_TID_BYTES - base;
	if (shape->stride == 0 || shape->stride > BPT_SEGMENT_ROOM / 2)
		return false;

	/* Where there are few keys, they would meet in few segments. */
	shape->hashed = shape->stride;
	if (keys > BPT_SEGMENTS && shape->stride > EUNO_TID_BYTES)
		shape->hashed -= EUNO_TID_BYTES;
	return true;
}

/* The bytes that all composites of the leaf's range have in common. */
static uint32_t
common_base(const BptLeaf *leaf)
{
	return (leaf->format & BPT_OPEN) != 0 ? 0 : leaf->prefix_len;
}

/* Memory for an annex, empty.  NULL: there is none. */
static BptAnnex *
annex_alloc(EunoContext *cx, EunoTree *tree, int domain)
{
	BptAnnex   *annex = cx->env->alloc(tree->alloc_arg, domain,
									   sizeof(BptAnnex));
	BptAnnex	zero;

	if (annex == NULL)
		return NULL;
	memset(&zero, 0, sizeof(zero));
	zero.domain = zero.limbo.domain = (uint32_t) domain;
	euno_copy_in(annex, &zero, sizeof(zero));
	return annex;
}

/* Adds the entries of an annex to the sorted items of its leaf. */
bool
euno_bpt_annex_merge(BptWork *work, const BptLeaf *leaf,
					 const BptAnnexCopy *s)
{
	BptItems   *it = &work->it;
	uint32_t	stride = s->shape.stride;
	uint32_t	i = it->n;
	uint32_t	j = s->n;
	uint32_t	key_len = s->shape.base + stride - EUNO_TID_BYTES;
	uint8_t		mine[BPT_MAX_COMPOSITE];

	if (it->n + s->n > BPT_LEAF_TIDS ||
		it->nbytes + s->n * stride > BPT_ITEM_BYTES ||
		s->shape.base + stride < EUNO_TID_BYTES)
		return false;
	it->source[1] = bpt_low(leaf);
	it->source_len[1] = s->shape.base;
	it->n += s->n;
	for (uint32_t to = it->n; j > 0;)
	{
		const uint8_t *entry = s->bytes + s->order[j - 1] * stride;
		BptItem    *item = &it->items[--to];

		memset(mine, 0, stride);
		if (i > 0)
			(void) euno_bpt_item_copy(it, i - 1, s->shape.base, mine);
		if (i > 0 && memcmp(mine, entry, stride) > 0)
		{
			*item = it->items[--i];
			continue;
		}
		item->off = it->nbytes;
		item->key_len = (uint16_t) key_len;
		item->payload_len = 0;
		item->tid = euno_bpt_annex_tid(leaf, &s->shape, entry);
		item->source = 1;
		memcpy(it->bytes + it->nbytes, entry, stride);
		it->nbytes += stride > EUNO_TID_BYTES ? stride - EUNO_TID_BYTES : 0;
		j--;
	}
	return true;
}

/* What emptying an annex is made of; large, in private memory. */
typedef struct Fold
{
	EunoContext *cx;
	EunoTree   *tree;
	bool		calm;			/* the leaf shall have no annex any more */
	BptPlace	place;
	BptAnnex   *annex;
	BptShape	shape;			/* that the annex is to have */
	uint32_t	m;				/* items that stay, if it is split */
	BptLeaf    *right;
	bool		swap;			/* the right leaf has an annex (spare[1]), and the
								 * left one none any more */
	BptView		view;
	BptAnnexCopy entries;
	BptSplit	split;
	BptImage   *raw;			/* the caller's */
} Fold;

/* Sees the leaf and its annex at some versions, and takes them apart. */
static EunoStatus
fold_look(Fold *f)
{
	BptLeaf    *leaf = f->place.leaf;
	EunoContext *cx = f->cx;
	EunoStatus	status;
	BptView		view;

	f->place.copied = false;
	if (!euno_lock_read_or_leave(&leaf->lock, &f->place.version, cx->env,
								 &cx->counters))
		return euno_is_canceled(cx->env) ? EUNO_CANCELED : EUNO_NOT_FOUND;
	if (!euno_bpt_view(leaf, &view) || !view.contended)
		return euno_lock_validate(&leaf->lock, f->place.version) ?
			EUNO_NOT_FOUND : EUNO_STALE;
	f->annex = bpt_annex(leaf);
	if (f->annex == NULL)
		return EUNO_STALE;
	if (euno_load32(&f->annex->closing) == 0)
		euno_store32(&f->annex->closing, 1);
	status = euno_bpt_annex_snapshot(cx, &f->place, f->raw, &f->view,
									 &f->entries);
	if (status != EUNO_OK)
		return status;
	f->shape = f->entries.shape;
	euno_bpt_items_init(&f->split.work, f->tree);
	if (!euno_bpt_items_add_leaf(&f->split.work, &f->view) ||
		!euno_bpt_annex_merge(&f->split.work, &f->raw->leaf, &f->entries))
		return EUNO_CORRUPT;
	f->split.low = bpt_low_fence(&f->place.image->leaf);
	f->split.high = euno_bpt_high_fence(&f->place.image->leaf,
										f->split.high_buf);
	return EUNO_OK;
}

/* May a leaf with so many entries of its own have an annex, too? */
static inline bool
has_room_for_annex(uint32_t n)
{
	return n + BPT_ANNEX_SLOTS <= BPT_LEAF_TIDS - 2;
}

/* Builds the leaf with all entries in its sorted part, if they fit. */
static bool
fold_build(Fold *f)
{
	BptSplit   *s = &f->split;
	const BptItems *it = &s->work.it;
	BptFormat	format;
	uint32_t	room = (uint32_t) bpt_leaf_size(&f->raw->leaf) - f->raw->leaf.body;
	uint32_t	used;

	used = euno_bpt_measure(f->tree, it, 0, it->n, &s->low, &s->high,
							&format);
	if (it->n > 1 &&
		(used > room * (f->calm ? 100 : FOLD_FILL) / 100 ||
		 !has_room_for_annex(it->n)))
		return false;
	return euno_bpt_encode(f->tree, it, 0, it->n, &s->low, &s->high, &s->left);
}

/*
 * Were most of the entries that came last put right of where the leaf is
 * split?
 */
static bool
right_is_hot(const Fold *f)
{
	const BptItems *it = &f->split.work.it;
	uint32_t	left = 0;
	uint32_t	right = 0;

	for (uint32_t i = 0; i < it->n; i++)
		*(i < f->m ? &left : &right) += it->items[i].source;
	return right > 2 * left;
}

/*
 * Gives the right leaf, which nobody can reach, an annex, if there is memory.
 * Only one of both has one afterwards: the other half of the writers is gone,
 * and with it the reason, until the detector finds another one.
 */
static void
contend_right(Fold *f)
{
	EunoContext *cx = f->cx;
	BptLeaf    *right = f->right;
	BptShape	shape;

	if (!has_room_for_annex(f->split.work.it.n - f->m) ||
		!choose_shape(&f->split.work.it, f->m, f->split.work.it.n,
					  common_base(&f->split.right.leaf), &shape))
		return;
	if (cx->held.spare[1] == NULL)
	{
		cx->held.spare[1] = annex_alloc(cx, f->tree, cx->domain);
		cx->held.spare_size[1] = sizeof(BptAnnex);
		cx->held.spare_domain[1] = cx->domain;
	}
	if (cx->held.spare[1] == NULL)
		return;
	euno_store64(&((BptAnnex *) cx->held.spare[1])->shape, bpt_shape_word(&shape));
	euno_store_ptr(&right->annex, (BptAnnex *) cx->held.spare[1]);
	euno_store8(&right->format, euno_load8(&right->format) | BPT_CONTENDED);
	f->swap = true;
}

/* Builds both leaves of a split.  The right one is not reachable. */
static EunoStatus
fold_split(Fold *f)
{
	BptSplit   *s = &f->split;
	uint32_t	n = s->work.it.n;
	uint32_t	at = n / 2;
	uint64_t	seqno = euno_add64(&bpt_body(f->tree)->seqno, 2);
	EunoStatus	status;

	/* An ascending load leaves its last entry in the annex. */
	if (f->raw->leaf.right == NULL && s->work.it.items[n - 1].source == 1 &&
		(f->calm || has_room_for_annex(n - 1)))
		at = n - 1;
	f->m = euno_bpt_split_left(f->tree, s, at, &f->raw->leaf, false);
	if (f->m == 0)
		return EUNO_CORRUPT;
	status = euno_bpt_split_right(f->cx, f->tree, s, f->m, f->raw->leaf.right,
								  seqno + 1, &f->right);
	if (status != EUNO_OK)
		return status;
	s->left.leaf.right = f->right;
	s->left.leaf.seqno = seqno + 2;
	if (!f->calm && right_is_hot(f))
		contend_right(f);
	return EUNO_OK;
}

/* Locks all segments at the versions they were seen at; false, and none. */
static bool
upgrade_segments(Fold *f)
{
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
	{
		if (euno_lock_upgrade(&f->annex->segments[i].lock,
							  f->entries.versions[i]))
			continue;
		while (i-- > 0)
			euno_lock_release_unchanged(&f->annex->segments[i].lock, f->cx->env);
		return false;
	}
	return true;
}

/* Puts in what was built.  False, and nothing changed, if it is too late. */
static bool
fold_install(Fold *f)
{
	BptLeaf    *leaf = f->place.leaf;
	BptAnnex   *annex = f->annex;
	BptBody    *body = bpt_body(f->tree);
	const EunoEnvironment *env = f->cx->env;
	bool		calm = f->calm || f->swap;

	if (!euno_lock_upgrade(&leaf->lock, f->place.version))
		return false;
	if (!upgrade_segments(f))
	{
		euno_lock_release_unchanged(&leaf->lock, env);
		return false;
	}
	if (!calm)
		f->split.left.leaf.format |= BPT_CONTENDED;
	euno_bpt_install(leaf, &f->split.left);
	if (calm)
		euno_store_ptr(&leaf->annex, (BptAnnex *) NULL);
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
	{
		euno_store64(&annex->segments[i].used, 0);
		euno_store64(&annex->marks[i], 0);
	}
	euno_store64(&annex->shape, bpt_shape_word(&f->shape));
	euno_store32(&annex->folds, euno_load32(&annex->folds) + 1);
	euno_store32(&annex->closing, 0);
	if (f->right != NULL)
	{
		(void) euno_add64(&body->leaves, 1);
		euno_bpt_move_note(f->tree, leaf, f->right);
	}
	if (f->calm)
		(void) euno_add64(&body->contended, (uint64_t) -1);
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
		euno_lock_release(&annex->segments[i].lock, env);
	euno_lock_release(&leaf->lock, env);
	return true;
}

/* One try.  EUNO_OK, EUNO_STALE, EUNO_NOT_FOUND (no annex), or an error. */
static EunoStatus
fold_once(Fold *f)
{
	EunoStatus	status = fold_look(f);
	BptSplit   *s = &f->split;
	const BptLeaf *leaf = &f->raw->leaf;

	if (status != EUNO_OK)
		return status;
	euno_bpt_image_like(&s->left, leaf);
	s->left.leaf.right = leaf->right;
	s->left.leaf.seqno = leaf->seqno;
	f->right = NULL;
	f->swap = false;
	f->m = s->work.it.n;
	if (!fold_build(f))
	{
		if (f->m < 2)
			return EUNO_CORRUPT;
		status = fold_split(f);
	}
	if (status == EUNO_OK && !f->calm)
		(void) choose_shape(&s->work.it, 0, f->m, common_base(&s->left.leaf),
							&f->shape);
	if (status == EUNO_OK && !fold_install(f))
		status = EUNO_STALE;
	return status;
}

/*
 * Does that until it was done.  EUNO_OK (*right: what was split off the leaf, its
 * separator not posted yet; *gone: an annex that is nobody's any more),
 * EUNO_NOT_FOUND or an error.  A frame of its own, which is gone when the right
 * leaf is posted.
 */
static EunoStatus __attribute__((noinline))
fold_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf, bool calm,
		  BptImage *raw, BptLeaf **right, BptAnnex **gone)
{
	EunoStatus	status;
	Fold		f;

	f.cx = cx;
	f.tree = tree;
	f.calm = calm;
	f.raw = raw;
	f.annex = NULL;
	bpt_place_init(&f.place, raw);
	f.place.leaf = leaf;
	do
		status = fold_once(&f);
	while (status == EUNO_STALE && !euno_is_canceled(cx->env));
	if (status == EUNO_STALE)
		status = EUNO_CANCELED;
	if (status == EUNO_OK && f.right != NULL)
	{
		euno_bpt_spare_used(cx);
		if (f.swap)
			cx->held.spare[1] = NULL;
		(void) euno_add64(&bpt_body(tree)->splits, 1);
		*right = f.right;
	}
	if (status == EUNO_OK && (calm || f.swap))
		*gone = f.annex;
	if (status != EUNO_OK && f.annex != NULL)
		euno_store32(&f.annex->closing, 0);
	return status;
}

/*
 * Moves all entries of a contended leaf's annex to its sorted part, and splits
 * the leaf if that gets too full.  With "calm", the annex goes away.  To be
 * called within an epoch in which the leaf was seen linked.  EUNO_STALE: that
 * was done, by us or others; EUNO_NO_MEMORY, EUNO_CORRUPT, EUNO_CANCELED.
 * "raw" is memory for a copy of the leaf.  No locks on entry or return.
 */
EunoStatus
euno_bpt_fold(EunoContext *cx, EunoTree *tree, BptLeaf *leaf, bool calm,
			  BptImage *raw)
{
	BptLeaf    *right = NULL;
	BptAnnex   *gone = NULL;
	EunoStatus	status = fold_leaf(cx, tree, leaf, calm, raw, &right, &gone);

	if (right != NULL)
		euno_bpt_publish(cx, tree, right);
	if (cx->held.spare[0] != NULL || cx->held.spare[1] != NULL)
		euno_bpt_spare_drop(cx);
	if (gone != NULL)
		euno_bpt_retire(cx, tree, gone, sizeof(BptAnnex), &gone->limbo);
	(void) euno_bpt_reclaim(cx, tree, false);
	return status == EUNO_OK || status == EUNO_NOT_FOUND ? EUNO_STALE : status;
}

/*
 * Makes a leaf contended: gives it an annex, to which entries are put from now
 * on.  To be called within an epoch in which the leaf was seen linked.
 * EUNO_OK (also if it is already), EUNO_NOT_FOUND (it is gone, its entries
 * cannot be kept that way, or it was written to each time), EUNO_NO_MEMORY,
 * EUNO_CORRUPT.  No locks on entry or return.
 */
static EunoStatus __attribute__((noinline))
contend_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf)
{
	int			domain = (int) euno_load32(&leaf->limbo.domain);
	BptAnnex   *annex = NULL;
	EunoStatus	status = EUNO_OK;
	BptShape	shape;
	BptImage	image;
	BptPlace	place;
	BptWork		work;

	if (bpt_is_opaque(tree))
		return EUNO_NOT_FOUND;
	for (int tries = 0; tries < CONTEND_TRIES; tries++)
	{
		bpt_place_init(&place, &image);
		place.leaf = leaf;
		status = EUNO_NOT_FOUND;
		if (!euno_lock_read(&leaf->lock, &place.version, cx->env, &cx->counters))
			break;
		status = euno_bpt_copy(&place);
		if (status == EUNO_STALE)
		{
			status = EUNO_NOT_FOUND;
			continue;
		}
		if (status != EUNO_OK || place.view.contended)
			break;
		status = EUNO_NOT_FOUND;
		euno_bpt_items_init(&work, tree);
		if (!euno_bpt_items_add_leaf(&work, &place.view) ||
			work.it.n + 2 * BPT_ANNEX_SLOTS > BPT_LEAF_TIDS ||
			!choose_shape(&work.it, 0, work.it.n, common_base(&image.leaf),
						  &shape))
			break;
		status = EUNO_NO_MEMORY;
		if (annex == NULL)
			annex = annex_alloc(cx, tree, domain);
		if (annex == NULL)
			break;
		euno_store64(&annex->shape, bpt_shape_word(&shape));
		status = EUNO_NOT_FOUND;
		if (!euno_lock_upgrade(&leaf->lock, place.version))
			continue;
		euno_store_ptr(&leaf->annex, annex);
		euno_store8(&leaf->format, image.leaf.format | BPT_CONTENDED);
		(void) euno_add64(&bpt_body(tree)->contended, 1);
		euno_lock_release(&leaf->lock, cx->env);
		return EUNO_OK;
	}
	if (annex != NULL)
		cx->env->free(tree->alloc_arg, domain, annex, sizeof(BptAnnex));
	return status;
}

/*
 * The opposite: a contended leaf becomes calm.  To be called within an epoch
 * in which the leaf was seen linked.  EUNO_OK (also if it is calm, or gone),
 * EUNO_NO_MEMORY (it had to be split), EUNO_CORRUPT, EUNO_CANCELED.  No locks
 * on entry or return.
 */
static EunoStatus
calm_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf)
{
	BptImage	raw;
	EunoStatus	status = euno_bpt_fold(cx, tree, leaf, true, &raw);

	return status == EUNO_STALE ? EUNO_OK : status;
}

/*
 * Makes a contended leaf calm if nothing was written to it since this was
 * asked the last time; true if so.  To be called by whoever has the right to
 * merge, with no locks held, within an epoch in which the leaf was seen
 * linked.
 */
bool
euno_bpt_calm_idle(EunoContext *cx, EunoTree *tree, BptLeaf *leaf)
{
	BptAnnex   *annex = bpt_annex(leaf);
	uint32_t	writes = 1;		/* not yet asked is not idle */

	if (annex == NULL || (euno_load8(&leaf->format) & BPT_CONTENDED) == 0)
		return false;
	writes += euno_load32(&annex->folds);
	for (uint32_t i = 0; i < BPT_SEGMENTS; i++)
		writes += euno_load32(&annex->segments[i].writes);
	if (euno_load32(&annex->seen) != writes)
	{
		euno_store32(&annex->seen, writes);
		return false;
	}
	return calm_leaf(cx, tree, leaf) == EUNO_OK;
}

/* The leaf that covers a position.  Within an epoch. */
static EunoStatus __attribute__((noinline))
find_leaf(EunoContext *cx, EunoTree *tree, const EunoPosition *pos,
		  BptLeaf **leaf)
{
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;

	euno_bpt_key_position(tree, pos, &key);
	bpt_place_init(&place, &image);
	status = euno_bpt_seek(cx, tree, &key, false, &place);
	*leaf = place.leaf;
	return status;
}

/*
 * Switches the mode of the leaf that covers a position, or with NULL of all
 * leaves; see EunoTreeOps.  No locks on entry or return.
 */
EunoStatus
euno_bpt_set_mode(EunoContext *cx, EunoTree *tree, const EunoPosition *pos,
				  bool contended)
{
	BptLeaf    *leaf = NULL;
	EunoStatus	status = EUNO_OK;

	if (bpt_is_opaque(tree))
		return EUNO_NOT_FOUND;
	euno_epoch_enter(cx->process);
	if (pos == NULL)
		leaf = euno_load_ptr_acquire(&bpt_body(tree)->first);
	else
		status = find_leaf(cx, tree, pos, &leaf);
	while (status == EUNO_OK && leaf != NULL)
	{
		status = contended ? contend_leaf(cx, tree, leaf) :
			calm_leaf(cx, tree, leaf);
		if (pos != NULL)
			break;
		leaf = euno_load_ptr_acquire(&leaf->right);
		if (status == EUNO_NOT_FOUND)
			status = EUNO_OK;
	}
	euno_epoch_exit(cx->process);
	return status;
}
