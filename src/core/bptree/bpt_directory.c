/*-------------------------------------------------------------------------
 *
 * bpt_directory.c
 *	  Posting separators to the inner nodes, and taking them out.
 *
 * Each domain has a directory of its own over the one chain of leaves.  A
 * directory has one writer at a time (its mutex); a poster that finds it busy
 * leaves the post to whoever moves right over the missing separator next.
 * Readers are optimistic (bpt_descend.c).
 *
 * Comparators must not run under the mutex.  So the way to the separator's
 * place is found before, and its versions are checked under the mutex, where
 * they cannot change any more.
 *
 * In a split of an inner node the parent learns of the right half before the
 * left half forgets it: at every moment each child is reachable.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/*
 * A change, which may climb to the root.  "set" is memory for taking one node
 * apart at a time, and "image" for making one: they are too large for a frame
 * of each level.
 */
typedef struct Change
{
	EunoContext *cx;
	EunoTree   *tree;
	int			domain;
	const BptPath *path;
	BptSeps    *set;
	BptImage   *image;
} Change;

/* Under the mutex: has nothing changed on the path since it was taken? */
bool
euno_bpt_path_current(EunoTree *tree, int domain, const BptPath *path)
{
	BptDirectory *dir = &bpt_body(tree)->directories[domain];
	BptInner   *root = euno_load_ptr(&dir->root);

	if (root != (path->levels > 0 ? path->node[0] : NULL))
		return false;
	for (uint32_t i = 0; i < path->levels; i++)
	{
		if (euno_load64(&path->node[i]->lock.word) != path->version[i])
			return false;
	}
	return true;
}

/* A new node with separators [a, b) of the set; NULL: no memory. */
static BptInner *
new_node(Change *ch, uint32_t a, uint32_t b, size_t size, uint8_t level)
{
	BptInner   *node;

	while (!euno_bpt_seps_encode(ch->set, a, b, size, ch->image))
	{
		size *= 2;
		if (size > BPT_NODE_MAX)
			return NULL;
	}
	node = euno_bpt_inner_alloc(ch->cx, ch->tree, ch->domain, size, level);
	if (node != NULL)
		euno_bpt_inner_install(ch->cx, node, ch->image, true);
	return node;
}

static void
set_root(Change *ch, BptInner *root)
{
	euno_store_ptr(&bpt_body(ch->tree)->directories[ch->domain].root, root);
}

/* A root above two children. */
static bool
add_root(Change *ch, const BptFence *fence, void *left, void *right,
		 uint8_t level)
{
	BptInner   *root;

	if (level > BPT_MAX_LEVELS)
		return false;
	euno_bpt_seps_init(ch->set, ch->cx, ch->tree);
	ch->set->children[0] = left;
	(void) euno_bpt_seps_insert(ch->set, 0, fence, right);
	root = new_node(ch, 0, 1, BPT_INNER_SIZE, level);
	if (root == NULL)
		return false;
	set_root(ch, root);
	return true;
}

/*
 * Puts a larger node, of what is in the set, in the place of the one at this
 * level of the path.
 */
static bool
replace_node(Change *ch, int at)
{
	BptInner   *old = ch->path->node[at];
	BptInner   *node = new_node(ch, 0, ch->set->n, 2 * bpt_inner_size(old),
								euno_load8(&old->level));

	if (node == NULL)
		return false;
	if (at == 0)
		set_root(ch, node);
	else
	{
		BptInner   *parent = ch->path->node[at - 1];

		(void) euno_lock_acquire(&parent->lock, ch->cx->env, NULL);
		euno_store_ptr(&bpt_pairs(parent)[ch->path->index[at - 1]].child,
					   (void *) node);
		euno_lock_release(&parent->lock, ch->cx->env);
	}
	euno_bpt_retire_inner(ch->cx, ch->tree, ch->domain, old);
	return true;
}

static bool insert_at(Change *ch, int at, const BptFence *fence, void *child);
static bool rebuild_at(Change *ch, int at, const BptFence *fence, void *child);

/* Takes a node apart, with a separator and the child right of it put in. */
static bool
load_with(Change *ch, int at, const BptFence *fence, void *child)
{
	return euno_bpt_seps_load(ch->set, ch->cx, ch->tree, ch->path->node[at]) &&
		euno_bpt_seps_insert(ch->set, ch->path->index[at], fence, child);
}

/*
 * Moves the upper part of a node that has become too full to a new one.  The
 * set has what is in the node, and the separator and child to be put in.
 */
static bool
split_node(Change *ch, int at, const BptFence *fence, void *child)
{
	const BptSeps *set = ch->set;
	BptInner   *node = ch->path->node[at];
	uint32_t	middle = set->n / 2;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	BptFence	parting;
	BptInner   *right;

	/* Ascending inserts fill the nodes: only the last child moves. */
	if (ch->path->index[at] + 1 == set->n)
	{
		bool		edge = true;

		for (int i = 0; i < at && edge; i++)
			edge = ch->path->index[i] == euno_load16(&ch->path->node[i]->count);
		if (edge)
			middle = set->n - set->n / 16 - 2;
	}
	while (!euno_bpt_seps_encode(set, 0, middle, bpt_inner_size(node),
								 ch->image))
	{
		if (--middle == 0)
			return replace_node(ch, at);
	}
	right = new_node(ch, middle + 1, set->n, BPT_INNER_SIZE,
					 euno_load8(&node->level));
	if (right == NULL)
		return false;
	parting.bytes = buf;
	parting.len = euno_bpt_seps_get(set, middle, buf);
	parting.tid = set->seps[middle].head;

	/*
	 * The set and the image are used for the nodes above now.  Afterwards they
	 * become what they were: nobody else writes to the node, and what has
	 * fitted fits again.
	 */
	if (!insert_at(ch, at - 1, &parting, right))
	{
		euno_bpt_inner_drop(ch->cx, ch->tree, ch->domain, right);
		return false;
	}
	if (load_with(ch, at, fence, child) &&
		euno_bpt_seps_encode(set, 0, middle, bpt_inner_size(node), ch->image))
		euno_bpt_inner_install(ch->cx, node, ch->image, false);
	return true;
}

/*
 * Inserts a separator and the child right of it at level "at" of the path.
 * False, and nothing changed, if there is no memory.
 */
static bool
insert_at(Change *ch, int at, const BptFence *fence, void *child)
{
	BptInner   *node = ch->path->node[at < 0 ? 0 : at];

	if (at < 0)
		return add_root(ch, fence, node, child,
						(uint8_t) (euno_load8(&node->level) + 1));
	return euno_bpt_inner_put(ch->cx, ch->tree, node, ch->path->index[at],
							  fence, child) ||
		rebuild_at(ch, at, fence, child);
}

/* Builds a node anew from the set, in its place, if that fits. */
static bool
rewrite_node(Change *ch, BptInner *node)
{
	if (!euno_bpt_seps_encode(ch->set, 0, ch->set->n, bpt_inner_size(node),
							  ch->image))
		return false;
	euno_bpt_inner_install(ch->cx, node, ch->image, false);
	return true;
}

/* As insert_at, where the node must be built anew. */
static bool
rebuild_at(Change *ch, int at, const BptFence *fence, void *child)
{
	BptInner   *node = ch->path->node[at];

	if (!load_with(ch, at, fence, child))
		return false;
	if (rewrite_node(ch, node))
		return true;
	if (ch->set->n < 6 && bpt_inner_size(node) < BPT_NODE_MAX)
		return replace_node(ch, at);
	return split_node(ch, at, fence, child);
}

/*
 * Posts a leaf's low fence to a domain's directory, if it is not there, the
 * directory is not busy and there is memory.  To be called within an epoch in
 * which the leaf was seen linked, with nothing locked.  False if it should be
 * tried again, because the directory was busy or kept changing.
 */
bool
euno_bpt_post(EunoContext *cx, EunoTree *tree, int domain, BptLeaf *leaf)
{
	BptBody    *body = bpt_body(tree);
	BptDirectory *dir = &body->directories[domain];
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	BptImage	image;
	BptPath		path;
	BptKey		key;
	EunoPosition pos;
	BptFence	fence;
	BptSeps		set;
	Change		ch = {cx, tree, domain, &path, &set, &image};

	if (leaf == euno_load_ptr(&body->first))
		return true;
	euno_bpt_key_fence(tree, leaf, &pos, buf, &key);
	fence.bytes = buf;
	fence.len = pos.keylen;
	fence.tid = pos.tid;
	for (int tries = 0; tries < 3; tries++)
	{
		bool		done = true;

		if (!euno_bpt_path(cx, tree, domain, &key, &path, &image))
			continue;
		if (path.levels > 0 && path.leaf == leaf)
			return true;
		if (!euno_mutex_trylock(&dir->mutex))
		{
			cx->counters.conflicts[EUNO_CAUSE_DIRECTORY]++;
			return false;
		}

		/*
		 * Nothing is to be done if the leaf is obsolete (under the mutex no merge
		 * is under way: it cannot become so now), or if since we looked it was
		 * posted, or the directory went out of use.
		 */
		if ((euno_load64_acquire(&leaf->lock.word) & EUNO_LOCK_OBSOLETE) == 0 &&
			!bpt_posted(leaf, domain) &&
			(euno_load64(&body->active) >> domain & 1) != 0)
		{
			done = euno_bpt_path_current(tree, domain, &path);
			if (done &&
				(path.levels == 0 ?
				 add_root(&ch, &fence, body->first, leaf, 1) :
				 insert_at(&ch, (int) path.levels - 1, &fence, leaf)))
			{
				euno_or16(&leaf->posted, (uint16_t) (1 << domain));
				euno_bpt_note_shape(dir, leaf);
			}
		}
		euno_mutex_unlock(&dir->mutex, cx->env);
		if (done)
			return true;
	}
	return false;
}

/*
 * Could a leaf's separator be taken out of a directory?  "path" is the way to
 * the leaf's low fence, checked to be current under the mutex, which the
 * caller holds.
 *
 * A leaf has at most one reference in a directory, right of its own separator.
 * It cannot be taken out if the leaf is the first of several children of a
 * node: the separator is one of the node then, higher up.  Nor if the way led
 * elsewhere though the leaf is in the directory: a comparator that contradicts
 * itself must not have us free what can still be reached.
 */
bool
euno_bpt_can_unpost(int domain, const BptPath *path, const BptLeaf *leaf)
{
	int			at = (int) path->levels - 1;

	if (at < 0 || path->leaf != leaf)
		return !bpt_posted(leaf, domain);
	while (at >= 0 && path->index[at] == 0)
	{
		if (euno_load16(&path->node[at]->count) > 0)
			return false;
		at--;
	}
	return at >= 0;
}

/*
 * Takes a leaf's separator out of a domain's directory, if it is there: what
 * led to the leaf will lead to a leaf further left.  Nodes that had no other
 * child go with it.  Conditions as for euno_bpt_can_unpost, which must have
 * said yes.  "room" is memory to work in.  False if the directory makes no sense.
 */
bool
euno_bpt_unpost(EunoContext *cx, EunoTree *tree, int domain,
				const BptPath *path, BptLeaf *leaf, BptInnerRoom *room)
{
	int			at = (int) path->levels - 1;
	BptSeps    *set = &room->set;

	if (at < 0 || path->leaf != leaf)
		return true;
	while (path->index[at] == 0)
		at--;
	if (!euno_bpt_seps_load(set, cx, tree, path->node[at]))
		return false;
	euno_bpt_seps_remove(set, path->index[at] - 1);

	/* A longer prefix takes no more than the separator's slot gave back. */
	if (!euno_bpt_seps_encode(set, 0, set->n, bpt_inner_size(path->node[at]),
							  &room->image))
		return false;
	euno_bpt_inner_install(cx, path->node[at], &room->image, false);
	euno_and16(&leaf->posted, (uint16_t) ~(1 << domain));
	while (++at < (int) path->levels)
		euno_bpt_retire_inner(cx, tree, domain, path->node[at]);
	return true;
}
