/*-------------------------------------------------------------------------
 *
 * bpt_descend.c
 *	  From the root to a leaf.
 *
 * Optimistic and without a write to shared memory: Eunomia's upper region
 * (section 5.1), whose hardware transaction is a version validation here.
 * The directory may lag behind the leaves: where a descent ends is at or left of
 * the leaf that covers the key (bpt_seek.c).
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_inner.h"

/* Counts a node of a descent that is looked at for statistics. */
static void
count_inner(EunoContext *cx, const BptInner *node, uint32_t weight)
{
	cx->counters.inner_nodes += weight;
	if (euno_load32((uint32_t *) &node->limbo.domain) != (uint32_t) cx->domain)
		cx->counters.remote_inner_nodes += weight;
}

/*
 * Has the memory fetch at once what is going to be read of a leaf: its header,
 * and the slot where the key would be if keys were spread evenly between the
 * separators on its sides.  One after the other these misses take most of a
 * lookup's time.  A wrong guess costs nothing but time; nothing is believed: not
 * even that there is a leaf, so places in it are numbers, and no pointers.
 */
static inline void
prefetch_leaf(const BptDirectory *dir, const BptInnerView *view,
			  const BptKey *key, uint32_t index, const BptLeaf *leaf,
			  uint32_t run)
{
	uint64_t	low;
	uint64_t	high;
	uint64_t	h = bpt_key_word(key, view->prefix_len);
	uint32_t	slots = euno_load32(&dir->leaf_slots);
	uintptr_t	heads = (uintptr_t) leaf + euno_load32(&dir->leaf_body);
	uintptr_t	tails = heads + 8 * (uintptr_t) euno_load32(&dir->leaf_cap);
	uint32_t	tail;
	uint32_t	at;

	euno_prefetch(leaf);
	if (slots == 0 || index == 0 || index >= view->count)
		return;
	low = bpt_inner_head(view, index - 1);
	high = bpt_inner_head(view, index);
	if (h < low || h >= high)
		return;
	at = bpt_guess(view->alphabet, h, low, high, slots);

	/* Of random keys, most are within 20 slots of where they should be. */
	heads += 8 * (uintptr_t) at;
	for (int line = -160; line <= 160; line += 64)
		euno_prefetch((void *) (heads + (uintptr_t) line));
	tail = euno_load32(&dir->leaf_tail);
	tails += tail * (uintptr_t) at;
	for (int line = -96; line <= 96; line += 64)
		euno_prefetch((void *) (tails + (uintptr_t) line));
	if (run == 0)
		return;
	if (run > slots - at)
		run = slots - at;
	for (uint32_t next = 224; next < 8 * run; next += 64)
		euno_prefetch((void *) (heads + next));
	for (uint32_t next = 160; next < tail * run; next += 64)
		euno_prefetch((void *) (tails + next));
}

/* Writes only what differs: the line is read by every descent. */
static inline void
note_word(uint32_t *word, uint32_t value)
{
	if (euno_load32(word) != value)
		euno_store32(word, value);
}

/*
 * What the leaf in the directory looks like is what the next ones will; one of
 * a contention split is like no other.
 */
void
euno_bpt_note_shape(BptDirectory *dir, const BptLeaf *leaf)
{
	BptView		view;

	if (!euno_bpt_view(leaf, &view) || view.format == BPT_OPAQUE ||
		euno_load8(&leaf->parted) != 0)
		return;
	note_word(&dir->leaf_slots, view.count);
	note_word(&dir->leaf_cap, view.cap);
	note_word(&dir->leaf_body, view.body);
	note_word(&dir->alphabet, view.alphabet);
	note_word(&dir->leaf_tail, view.format == BPT_FIXED ? view.tail_len :
		 sizeof(uint16_t));
}

/* The caller's directory, or the first while it has none, and its root. */
static inline BptInner *
directory_root(EunoContext *cx, EunoTree *tree, BptDirectory **dir)
{
	BptDirectory *dirs = bpt_body(tree)->directories;
	BptInner   *root;

	*dir = &dirs[bpt_domain(tree, cx->domain)];
	root = euno_load_ptr_acquire(&(*dir)->root);
	if (root == NULL && *dir != dirs)
	{
		/* It is being built, or has just been dropped. */
		*dir = dirs;
		root = euno_load_ptr_acquire(&(*dir)->root);
	}
	return root;
}

/* Where a descent is. */
typedef struct Descent
{
	BptDirectory *dir;
	BptInner   *node;			/* to look at next */
	BptInner   *parent;
	uint64_t	parent_version;
	uint32_t	weight;			/* in what is counted by domain */
	uint32_t	run;			/* BYTES: slots of the leaf that will be read */
} Descent;

static inline void
descent_start(EunoContext *cx, EunoTree *tree, uint32_t run, Descent *d)
{
	d->node = directory_root(cx, tree, &d->dir);
	d->parent = NULL;
	d->parent_version = 0;
	d->run = run;
	d->weight = euno_sample_weight(cx, tree);
}

/*
 * Takes the version of the node to look at next, to which its parent, or the
 * root, still leads.  False: again, from the root.
 */
static inline __attribute__((always_inline)) bool
descent_enter(EunoContext *cx, Descent *d, uint64_t *version, bool *lowest)
{
	BptInner   *node = d->node;

	if (!euno_lock_read_or_leave(&node->lock, version, cx->env,
								 &cx->counters))
		return false;

	/* Had it been split by now, we would end up far left of the key. */
	if (d->parent == NULL ? euno_load_ptr(&d->dir->root) != node :
		!euno_lock_validate(&d->parent->lock, d->parent_version))
		return false;
	*lowest = euno_load8(&node->level) <= 1;
	if (d->weight > 0)
		count_inner(cx, node, d->weight);
	return true;
}

/* To the child that was found in the node at this version, and validated. */
static inline void
descent_follow(Descent *d, uint64_t version, BptInner *child)
{
	d->parent = d->node;
	d->parent_version = version;
	d->node = child;
}

/*
 * BYTES: one level down.  False: again, from the root.  *leaf is set if the
 * node was a lowest one.
 */
static inline __attribute__((always_inline)) bool
descent_step(EunoContext *cx, Descent *d, const BptKey *key, bool below,
			 BptLeaf **leaf)
{
	BptInner   *node = d->node;
	BptInnerView view;
	BptInner   *child;
	uint64_t	version;
	uint32_t	index;
	bool		torn = false;
	bool		lowest;

	if (!descent_enter(cx, d, &version, &lowest) ||
		!bpt_inner_view(node, &view))
		return false;
	view.alphabet = euno_load32(&d->dir->alphabet);
	index = bpt_inner_search(&view, node, key, below, &torn);
	child = euno_load_ptr(&view.pairs[index].child);
	if (lowest)
		prefetch_leaf(d->dir, &view, key, index, (BptLeaf *) child, d->run);
	if (torn || !euno_lock_validate(&node->lock, version))
		return false;
	if (lowest)
		*leaf = (BptLeaf *) child;
	descent_follow(d, version, child);
	return true;
}

/*
 * BYTES: from the root to a leaf that is at or left of the right one; NULL:
 * again.  "run": how many slots from the key on will be read, if many.
 */
BptLeaf *
euno_bpt_descend_bytes(EunoContext *cx, EunoTree *tree, const BptKey *key,
					   bool below, uint32_t run)
{
	BptLeaf    *leaf = NULL;
	Descent		d;

	descent_start(cx, tree, run, &d);
	if (d.node == NULL)
		return euno_load_ptr(&bpt_body(tree)->first);
	while (leaf == NULL && descent_step(cx, &d, key, below, &leaf))
		;
	return leaf;
}

/*
 * BYTES: the same for several keys, level by level, so that what has to be
 * fetched for each is fetched at the same time.  leaves[i] is NULL where one
 * has to try again.
 */
void
euno_bpt_descend_keys(EunoContext *cx, EunoTree *tree, const BptKey *keys,
					  uint32_t n, BptLeaf **leaves)
{
	Descent		d[EUNO_KEYS_MAX];
	uint32_t	going = 0;		/* a set of keys */

	for (uint32_t i = 0; i < n; i++)
	{
		leaves[i] = NULL;
		cx->counters.descents++;
		descent_start(cx, tree, 0, &d[i]);
		if (d[i].node == NULL)
			leaves[i] = euno_load_ptr(&bpt_body(tree)->first);
		else
			going |= 1U << i;
	}
	while (going != 0)
	{
		for (uint32_t i = 0; i < n; i++)
		{
			if ((going >> i & 1) == 0)
				continue;
			if (!descent_step(cx, &d[i], &keys[i], false, &leaves[i]) ||
				leaves[i] != NULL)
				going &= ~(1U << i);
			else
				euno_prefetch(d[i].node);
		}
	}
}

/*
 * COMPARE: the same as euno_bpt_descend_bytes.  After some restarts, which the
 * place counts, it works on copies of the nodes.
 */
BptLeaf *
euno_bpt_descend_opaque(EunoContext *cx, EunoTree *tree, const BptKey *key,
						bool below, BptJudge judge, BptPlace *place)
{
	BptInnerSearch search = {.cx = cx,.key = key,.judge = judge,
	.below = below};
	EunoAbbreviation abbreviation;
	Descent		d;

	descent_start(cx, tree, 0, &d);
	if (d.node == NULL)
		return euno_load_ptr(&bpt_body(tree)->first);
	if (judge == BPT_APPROXIMATION && cx->abbreviate != NULL &&
		cx->abbreviate(cx->compare_arg, key->pos, &abbreviation))
		search.abbreviation = &abbreviation;
	for (;;)
	{
		BptInner   *node = d.node;
		const BptInner *from = node;
		EunoLock   *lock = &node->lock;
		BptInner   *child;
		uint64_t	version;
		uint32_t	index;
		bool		lowest;

		if (!descent_enter(cx, &d, &version, &lowest))
			return NULL;
		if (place->attempts > BPT_COMPARE_PATIENCE)
		{
			euno_copy_out(place->image->bytes, node, bpt_inner_size(node));
			if (!euno_lock_validate(&node->lock, version))
				return NULL;
			from = &place->image->inner;
			lock = NULL;
		}
		child = euno_bpt_inner_child(&search, from, lock, version, &index);
		if (search.torn || !euno_lock_validate(&node->lock, version))
			return NULL;
		if (lowest)
			return (BptLeaf *) child;
		descent_follow(&d, version, child);
	}
}

/*
 * The way to the child of a domain's directory that covers the key, with the
 * versions of the nodes on it.  False if it changed under our eyes, or if the
 * operation was canceled while it waited.
 */
bool
euno_bpt_path(EunoContext *cx, EunoTree *tree, int domain, const BptKey *key,
			  BptPath *path, BptImage *image)
{
	BptBody    *body = bpt_body(tree);
	BptInner   *node = euno_load_ptr_acquire(&body->directories[domain].root);
	BptInnerSearch search = {.cx = cx,.key = key,
		.judge = bpt_is_opaque(tree) ? BPT_COMPARATOR : BPT_MEMCMP};

	path->levels = 0;
	while (node != NULL)
	{
		uint32_t	at = path->levels;
		BptInner   *child;
		uint8_t		level;

		if (at >= BPT_MAX_LEVELS ||
			!euno_lock_read_or_leave(&node->lock, &path->version[at], cx->env,
									 &cx->counters))
			return false;
		level = euno_load8(&node->level);
		euno_copy_out(image->bytes, node, bpt_inner_size(node));
		if (!euno_lock_validate(&node->lock, path->version[at]))
			return false;
		child = euno_bpt_inner_child(&search, &image->inner, NULL, 0,
									 &path->index[at]);
		if (search.torn)
			return false;
		path->node[at] = node;
		path->levels = at + 1;
		path->leaf = (const BptLeaf *) child;
		if (level <= 1)
			break;
		node = child;
	}
	return true;
}
