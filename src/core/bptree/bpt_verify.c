/*-------------------------------------------------------------------------
 *
 * bpt_verify.c
 *	  Checking a tree while it is being used.
 *
 * The verifier registers as a walker: no leaf goes away under it.  Each leaf
 * is looked at as a private copy that was valid at one moment.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "core/bptree/bpt_directory.h"
#include "core/bptree/bpt_annex.h"

/*
 * A segment's version counts so often in the sum of versions: an annex goes
 * away with its leaf's next version, and that must not look as if nothing had
 * happened.
 */
#define SEGMENT_WEIGHT	UINT64_C(0x9E3779B97F4A7C15)

typedef struct Verifier
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoVerify *verify;
	uint64_t	findings;
	uint64_t	entries;
	uint64_t	versions;		/* sum over leaves and segments, when looked at */
	uint64_t	leaf_number;
	bool		has_last;		/* "last" is the entry before */
	uint8_t		last[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	last_len;
	EunoTid		last_tid;
	BptPlace	place;
	BptImage	image;
	BptWork		work;
	BptAnnexCopy annex;		/* the annex of a leaf that has one */
} Verifier;

static void
found(Verifier *v, const char *what)
{
	char		text[160];

	v->findings++;
	if (v->verify->report == NULL)
		return;
	(void) snprintf(text, sizeof(text), "leaf %llu: %s",
					(unsigned long long) v->leaf_number, what);
	v->verify->report(v->verify->arg, text);
}

/* The sign of a - b; composites, or in COMPARE order keys and TIDs. */
static int
compare(Verifier *v, const uint8_t *a, uint32_t alen, EunoTid atid,
		const uint8_t *b, uint32_t blen, EunoTid btid)
{
	EunoPosition pos = {.key = a,.keylen = alen,.tid = atid};
	BptKey		key;

	if (bpt_is_opaque(v->tree))
	{
		key.pos = &pos;
		return euno_bpt_compare_opaque(v->cx, &key, b, blen, btid);
	}
	pos.side = -1;
	key.pos = &pos;
	memcpy(key.bytes, a, alen);
	bpt_key_set(&key, alen);
	return euno_bpt_compare_rest(&key, 0, b, blen);
}

/* Records of a leaf: do they fill its heap? */
static void
check_records(Verifier *v, BptView *view)
{
	uint32_t	sum = 0;
	uint32_t	ntids = 0;
	EunoTid		tids[BPT_LIST_MAX];

	for (uint32_t i = 0; i < view->count; i++)
	{
		BptSlot		slot;
		uint32_t	n;

		if (!euno_bpt_slot(view, i, &slot) ||
			(n = euno_bpt_tids(view, i, &slot, tids)) == 0)
		{
			found(v, "a record does not lie within its leaf");
			return;
		}
		if (view->format == BPT_OPAQUE)
		{
			uint8_t		key[BPT_MAX_COMPOSITE + 8];
			uint32_t	len = euno_bpt_key(view, i, &slot, key);

			if (bpt_opaque_head(tids[0], key, len) != view->heads[i])
				found(v, "a head has another hash than its key");
		}
		sum += slot.size;
		ntids += n;
		for (uint32_t k = 1; k < n; k++)
		{
			if (tids[k] <= tids[k - 1])
				found(v, "a posting list is not ascending");
		}
	}
	if (sum != view->size - BPT_SLACK - view->heap)
		found(v, "the records do not fill the heap");
	if (ntids != view->leaf->ntids)
		found(v, "the number of TIDs is wrong");
}

/* The annex of a contended leaf: is each entry where it is looked for? */
static void
check_annex(Verifier *v)
{
	const BptAnnexCopy *s = &v->annex;

	for (uint32_t i = 0; i < s->n; i++)
	{
		const uint8_t *entry = s->bytes + i * s->shape.stride;
		BptSpot		spot;

		bpt_spot(&s->shape, entry, &spot);
		if (spot.segment != s->segment[i] || spot.tag != s->tag[i])
			found(v, "an entry of an annex is not where its hash says");
		if ((s->marks[s->segment[i]] & spot.mark) == 0)
			found(v, "an entry of an annex has no mark");
	}
}

/* Low fence <= entries < high fence, in order; shows them to the caller. */
static void
check_items(Verifier *v, const BptFence *low, const BptFence *high)
{
	const BptItems *it = &v->work.it;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));

	for (uint32_t i = 0; i < it->n; i++)
	{
		const BptItem *item = &it->items[i];
		uint32_t	len = euno_bpt_item_copy(it, i, 0, buf);

		if (v->has_last && compare(v, v->last, v->last_len, v->last_tid,
								   buf, len, item->tid) >= 0)
			found(v, "entries are not in order");
		if (i == 0 && low->bytes != NULL &&
			compare(v, low->bytes, low->len, low->tid, buf, len,
					item->tid) > 0)
			found(v, "the first entry is below the low fence");
		if (i == it->n - 1 && high->bytes != NULL &&
			compare(v, buf, len, item->tid, high->bytes, high->len,
					high->tid) >= 0)
			found(v, "the last entry is not below the high fence");
		memcpy(v->last, buf, len);
		v->last_len = len;
		v->last_tid = item->tid;
		v->has_last = true;
		v->entries++;
		if (v->verify->entry != NULL)
		{
			EunoEntry	entry = {.key = buf,.keylen = item->key_len,
				.payload = it->bytes + item->off + bpt_item_kept(it, item),
			.payloadlen = item->payload_len,.tid = item->tid};

			v->verify->entry(v->verify->arg, &entry);
		}
	}
}

/* The private copy of one leaf. */
static void
check_leaf(Verifier *v, const uint8_t *high_bytes, const BptFence *high)
{
	const BptLeaf *leaf = &v->image.leaf;
	BptView    *view = &v->place.view;
	BptFence	low = bpt_low_fence(leaf);

	if (view->torn || leaf->low_len > BPT_MAX_COMPOSITE ||
		(view->format == BPT_OPAQUE) != bpt_is_opaque(v->tree) ||
		view->format > BPT_OPAQUE)
	{
		found(v, "the header makes no sense");
		return;
	}
	if (low.bytes != NULL && high->bytes != NULL &&
		compare(v, low.bytes, low.len, low.tid, high_bytes, high->len,
				high->tid) >= 0)
		found(v, "the fences are not in order");
	if (view->prefix_len > 0 &&
		(low.bytes == NULL || view->prefix_len > low.len ||
		 (high->bytes == NULL ? !view->open :
		  view->prefix_len > high->len ||
		  memcmp(low.bytes, high_bytes, view->prefix_len) != 0)))
		found(v, "the prefix is not common to the fences");
	if (view->open && high->bytes != NULL)
		found(v, "a leaf is marked as the last one, and is not");
	if (!bpt_is_opaque(v->tree) &&
		(euno_bpt_fence_word(&low, view->prefix_len) != leaf->low_hint ||
		 (high->bytes != NULL &&
		  euno_bpt_fence_word(high, view->prefix_len) != leaf->high_hint) ||
		 euno_bpt_fence_word(&low, 0) != leaf->low_word))
		found(v, "a fence hint is wrong");
	if (view->format != BPT_FIXED)
		check_records(v, view);
	euno_bpt_items_init(&v->work, v->tree);
	if (!euno_bpt_items_add_leaf(&v->work, view))
		found(v, "the entries cannot be decoded");
	else if (view->format == BPT_FIXED && v->work.it.n != view->entries)
		found(v, "the number of entries is wrong");
	else if (view->contended && (v->annex.shape.hashed >
								 v->annex.shape.stride ||
								 !euno_bpt_annex_merge(&v->work, leaf,
													   &v->annex)))
		found(v, "the annex cannot be decoded");
	else
		check_items(v, &low, high);
	if (view->contended)
		check_annex(v);
}

/* Does a descent to the leaf's low fence end there? */
static void
check_descent(Verifier *v, BptLeaf *leaf)
{
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	EunoPosition pos;
	EunoStatus	status;
	BptKey		key;
	BptPlace	place;

	if (!leaf->has_low)
		return;
	bpt_place_init(&place, &v->image);
	euno_epoch_enter(v->cx->process);
	euno_bpt_key_fence(v->tree, leaf, &pos, buf, &key);
	do
	{
		status = euno_bpt_seek(v->cx, v->tree, &key, false, &place);
		if (status == EUNO_OK)
			status = euno_bpt_valid(&place);
	} while (status == EUNO_STALE);
	euno_epoch_exit(v->cx->process);
	if (status != EUNO_CANCELED &&
		(status != EUNO_OK || place.leaf != leaf))
		found(v, "a descent to the leaf does not find it");
}

/*
 * Copies the leaf, and its annex if it has one, as they were at one moment.
 * EUNO_OK, EUNO_STALE, EUNO_CORRUPT (which check_leaf will see, too) or
 * EUNO_CANCELED.
 */
static EunoStatus
look_at_leaf(Verifier *v)
{
	BptView		view;
	EunoStatus	status;

	if (!euno_bpt_view(v->place.leaf, &view) || !view.contended)
		return euno_bpt_copy(&v->place);
	status = euno_bpt_annex_snapshot(v->cx, &v->place, &v->image,
									 &v->place.view, &v->annex);
	v->place.copied = status == EUNO_OK;
	for (uint32_t i = 0; i < BPT_SEGMENTS && status == EUNO_OK; i++)
		v->versions += SEGMENT_WEIGHT * v->annex.versions[i];
	return status;
}

/* The sum of what the locks of a leaf's segments say. */
static uint64_t
annex_versions(const BptLeaf *leaf)
{
	const BptAnnex *annex = bpt_annex(leaf);
	uint64_t	versions = 0;

	for (uint32_t i = 0; i < BPT_SEGMENTS && annex != NULL; i++)
		versions += SEGMENT_WEIGHT *
			euno_load64_acquire(&annex->segments[i].lock.word);
	return versions;
}

/* The chain of leaves, from left to right.  False if canceled. */
static bool
check_chain(Verifier *v)
{
	BptLeaf    *leaf = euno_load_ptr_acquire(&bpt_body(v->tree)->first);
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));

	if (leaf->has_low)
		found(v, "the first leaf has a low fence");
	while (leaf != NULL)
	{
		BptLeaf    *right;
		BptFence	high;
		EunoStatus	status;

		euno_epoch_enter(v->cx->process);
		do
		{
			bpt_place_init(&v->place, &v->image);
			v->place.leaf = leaf;
			status = euno_lock_read_or_leave(&leaf->lock, &v->place.version,
											 v->cx->env, &v->cx->counters) ?
				look_at_leaf(v) : euno_is_canceled(v->cx->env) ?
				EUNO_CANCELED : EUNO_NOT_FOUND;
		} while (status == EUNO_STALE);
		if (status == EUNO_OK || status == EUNO_CORRUPT)
			high = euno_bpt_high_fence(&v->image.leaf, buf);
		euno_epoch_exit(v->cx->process);
		if (status == EUNO_CANCELED)
			return false;
		if (status == EUNO_NOT_FOUND)
		{
			found(v, "the leaf is obsolete but linked");
			return true;
		}
		right = v->image.leaf.right;
		v->versions += v->place.version;
		check_leaf(v, buf, &high);
		check_descent(v, leaf);
		leaf = right;
		v->leaf_number++;
		if (v->verify->pause != NULL)
			v->verify->pause(v->verify->arg);
	}
	return true;
}

/* What is found in a directory. */
typedef struct Directory
{
	EunoContext *cx;
	EunoTree   *tree;
	int			domain;
	uint64_t	nodes;
	uint64_t	bytes;
	uint64_t	leaves;			/* that it leads to */
	const char *what;			/* is wrong; NULL: nothing */
} Directory;

/*
 * One of a directory's nodes.  The mutex is held: what is wrong is reported
 * afterwards.  False: it cannot be gone through.  A frame of its own, and not one
 * of each level.
 */
static bool __attribute__((noinline))
check_node(Directory *d, BptInner *node, uint8_t level)
{
	BptSeps		set;
	uint8_t		sep[BPT_MAX_COMPOSITE + 8];
	uint8_t		before[BPT_MAX_COMPOSITE + 8];
	uint32_t	before_len = 0;

	if (node->level != level || level == 0)
	{
		d->what = "an inner node is on the wrong level";
		return false;
	}
	if ((euno_load64(&node->lock.word) & EUNO_LOCK_OBSOLETE) != 0 ||
		!euno_bpt_seps_load(&set, d->cx, d->tree, node))
	{
		d->what = "an inner node makes no sense";
		return false;
	}
	d->nodes++;
	d->bytes += bpt_inner_size(node);
	if (level == 1)
		d->leaves += set.n + 1;
	if (set.opaque && !euno_bpt_heads_match(&set))
		d->what = "a separator's head is not its abbreviation's";
	for (uint32_t i = 0; i <= set.n; i++)
	{
		uint32_t	len = 0;

		if (i > 0)
		{
			BptKey		key;

			len = euno_bpt_seps_get(&set, i - 1, sep);
			memcpy(key.bytes, sep, len);
			bpt_key_set(&key, len);
			if (i > 1 && !set.opaque &&
				euno_bpt_compare_rest(&key, 0, before, before_len) < 0)
				d->what = "separators are not in order";
			if (level == 1)
			{
				const BptLeaf *leaf = set.children[i];

				if (euno_load64(&leaf->lock.word) & EUNO_LOCK_OBSOLETE)
					d->what = "the directory leads to an obsolete leaf";
				else if (!bpt_posted(leaf, d->domain))
					d->what = "a leaf does not know of its separator";
				else if (set.opaque ? len != leaf->low_len ||
						 memcmp(sep, bpt_low(leaf), len) != 0 :
						 euno_bpt_compare_rest(&key, 0, bpt_low(leaf),
											   leaf->low_len) != 0)
					d->what = "a separator is not its leaf's low fence";
			}
			memcpy(before, sep, len);
			before_len = len;
		}
		if (level == 1 &&
			euno_load64(&((BptLeaf *) set.children[i])->lock.word) &
			EUNO_LOCK_OBSOLETE)
			d->what = "the directory leads to an obsolete leaf";
	}
	return true;
}

/* A directory's nodes from this one down. */
static void
check_inner(Directory *d, BptInner *node, uint8_t level)
{
	if (!check_node(d, node, level) || level == 1)
		return;
	for (uint32_t i = 0; i <= euno_load16(&node->count); i++)
		check_inner(d, bpt_pairs(node)[i].child, level - 1);
}

/*
 * How many leaves say that they are in a domain's directory.  The first one is
 * in each that there is, whatever it says.  The mutex is held.
 */
static uint64_t
leaves_posted(EunoTree *tree, int domain, const BptInner *root)
{
	const BptLeaf *leaf = bpt_body(tree)->first;
	uint64_t	n = root != NULL;

	while ((leaf = euno_load_ptr_acquire(&leaf->right)) != NULL)
		n += bpt_posted(leaf, domain);
	return n;
}

static void
check_directory(Verifier *v, int domain)
{
	BptDirectory *dir = &bpt_body(v->tree)->directories[domain];
	Directory	d = {.cx = v->cx,.tree = v->tree,.domain = domain};
	BptInner   *root;

	euno_epoch_enter(v->cx->process);
	if (!euno_mutex_lock_or_leave(&dir->mutex, v->cx->env))
	{
		euno_epoch_exit(v->cx->process);
		return;					/* canceled */
	}
	root = euno_load_ptr(&dir->root);
	if (root != NULL)
		check_inner(&d, root, root->level);
	if (d.what == NULL && d.nodes != euno_load64(&dir->inners))
		d.what = "the number of inner nodes is wrong";
	if (d.what == NULL && d.bytes != euno_load64(&dir->inner_bytes))
		d.what = "the size of the inner nodes is wrong";
	if (d.what == NULL && d.leaves != leaves_posted(v->tree, domain, root))
		d.what = "a leaf is not in the directory that it says it is in";
	euno_mutex_unlock(&dir->mutex, v->cx->env);
	euno_epoch_exit(v->cx->process);
	if (d.what != NULL)
		found(v, d.what);
}

/*
 * Counts are only exact when nobody wrote in the meantime.  They change while
 * the leaf is locked: if every leaf still has the version it had when it was
 * looked at, the counts read before that are those of the entries seen.
 */
static void
check_counts(Verifier *v)
{
	EunoTreeStats stats;
	uint64_t	versions = 0;
	uint64_t	leaves = 0;

	euno_bpt_stats(v->cx, v->tree, &stats);
	euno_fence_acquire();
	euno_epoch_enter(v->cx->process);
	for (BptLeaf *leaf = euno_load_ptr_acquire(&bpt_body(v->tree)->first);
		 leaf != NULL; leaf = euno_load_ptr_acquire(&leaf->right))
	{
		versions += euno_load64_acquire(&leaf->lock.word) + annex_versions(leaf);
		leaves++;
	}
	euno_epoch_exit(v->cx->process);
	if (versions != v->versions || leaves != v->leaf_number)
		return;
	if (stats.entries != v->entries)
		found(v, "the number of entries is wrong");
	if (stats.leaves != leaves)
		found(v, "the number of leaves is wrong");
}

/*
 * Checks a tree; see EunoTreeOps.  Returns the number of findings.  Reports
 * and entries are given out without locks and epoch.
 */
uint64_t
euno_bpt_verify(EunoContext *cx, EunoTree *tree, const EunoVerify *verify)
{
	Verifier	v;

	v.cx = cx;
	v.tree = tree;
	v.verify = verify;
	v.findings = v.entries = v.versions = v.leaf_number = 0;
	v.has_last = false;
	if (!euno_bpt_walk_enter(cx, tree))
		return 0;				/* canceled */
	if (check_chain(&v))
	{
		check_counts(&v);
		for (int d = 0; d < tree->config.ndomains; d++)
			check_directory(&v, d);
	}
	euno_bpt_walk_leave(cx);
	return v.findings;
}
