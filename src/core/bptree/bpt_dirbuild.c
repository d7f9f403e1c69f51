/*-------------------------------------------------------------------------
 *
 * bpt_dirbuild.c
 *	  Building a whole directory from the chain of leaves.
 *
 * Level by level: the nodes of a level are linked through their limbo fields
 * while nobody can see them.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/* Bytes of a node to fill before the next one is begun. */
#define BUILD_FILL	(BPT_INNER_SIZE * 9 / 10)

typedef struct Level
{
	EunoContext *cx;
	EunoTree   *tree;
	int			domain;
	uint8_t		level;
	BptInner   *first;			/* nodes built so far */
	BptInner   *last;
	uint64_t	nodes;
	uint32_t	used;			/* by what is in the set */
	BptSeps		set;
	BptImage	image;
} Level;

static BptInner *
next_node(BptInner *node)
{
	return node->limbo.node;
}

/* Gives back a level's nodes. */
static void
drop_level(EunoContext *cx, EunoTree *tree, int domain, BptInner *node)
{
	while (node != NULL)
	{
		BptInner   *next = next_node(node);

		euno_bpt_inner_drop(cx, tree, domain, node);
		node = next;
	}
}

/* Makes a node of what is in the set. */
static bool
level_flush(Level *lv)
{
	size_t		size = BPT_INNER_SIZE;
	BptInner   *node;

	while (!euno_bpt_seps_encode(&lv->set, 0, lv->set.n, size, &lv->image))
	{
		size *= 2;
		if (size > BPT_NODE_MAX)
			return false;
	}
	node = euno_bpt_inner_alloc(lv->cx, lv->tree, lv->domain, size, lv->level);
	if (node == NULL)
		return false;
	euno_bpt_inner_install(lv->cx, node, &lv->image, true);
	if (lv->last == NULL)
		lv->first = node;
	else
		lv->last->limbo.node = node;
	lv->last = node;
	lv->nodes++;
	return true;
}

/* Adds a child, whose leftmost leaf is "leaf", to the level. */
static bool
level_add(Level *lv, const BptLeaf *leaf, void *child, bool first)
{
	BptFence	fence = {bpt_low(leaf), euno_load32(&leaf->low_len),
	euno_load64(&leaf->low_tid)};
	uint32_t	more = fence.len + BPT_INNER_BYTES(1) - BPT_INNER_BYTES(0) +
		(bpt_is_opaque(lv->tree) ? BPT_SEPARATOR : 2);

	if (!first && (lv->used + more <= BUILD_FILL ||
				   (lv->set.n < 6 && lv->used + more <= BPT_NODE_MAX - 256)))
	{
		lv->used += more;
		return euno_bpt_seps_insert(&lv->set, lv->set.n, &fence, child);
	}
	if (!first && !level_flush(lv))
		return false;
	euno_bpt_seps_init(&lv->set, lv->cx, lv->tree);
	lv->set.children[0] = child;
	lv->used = BPT_INNER_HEADER;
	return true;
}

/* The leftmost leaf under a node that nobody can see yet. */
static const BptLeaf *
leftmost_leaf(BptInner *node)
{
	while (node->level > 1)
		node = bpt_pairs(node)[0].child;
	return (const BptLeaf *) bpt_pairs(node)[0].child;
}

/* Builds one level above the leaves, or above the nodes of "below". */
static bool
build_level(Level *lv, BptInner *below)
{
	bool		first = true;
	bool		ok = true;

	lv->first = lv->last = NULL;
	lv->nodes = 0;
	if (below == NULL)
	{
		BptLeaf    *leaf = bpt_body(lv->tree)->first;

		for (; leaf != NULL && ok; leaf = euno_load_ptr_acquire(&leaf->right))
		{
			ok = level_add(lv, leaf, leaf, first);
			first = false;
		}
	}
	else
	{
		for (BptInner *node = below; node != NULL && ok; node = next_node(node))
		{
			ok = level_add(lv, leftmost_leaf(node), node, first);
			first = false;
		}
	}
	return ok && level_flush(lv);
}

/* Marks the leaves below a level of nodes as being in the directory. */
static void
mark_posted(BptInner *node, int domain)
{
	for (; node != NULL; node = next_node(node))
	{
		for (uint32_t i = 0; i <= node->count; i++)
		{
			BptLeaf    *leaf = bpt_pairs(node)[i].child;

			euno_or16(&leaf->posted, (uint16_t) (1 << domain));
		}
	}
}

/* Gives back the old directory.  The mutex is held, the root is replaced. */
static void
retire_tree(EunoContext *cx, EunoTree *tree, int domain, BptInner *node)
{
	if (euno_load8(&node->level) > 1)
	{
		for (uint32_t i = 0; i <= euno_load16(&node->count); i++)
			retire_tree(cx, tree, domain, bpt_pairs(node)[i].child);
	}
	euno_bpt_retire_inner(cx, tree, domain, node);
}

/*
 * Replaces a domain's directory by one built from the chain of leaves.  The
 * caller holds the directory's mutex (or nobody else can reach the tree) and
 * keeps merges away; splits may go on.  Must be called within an epoch.  False
 * without memory: the directory is as it was.
 */
bool
euno_bpt_directory_build(EunoContext *cx, EunoTree *tree, int domain)
{
	BptDirectory *dir = &bpt_body(tree)->directories[domain];
	BptInner   *old = euno_load_ptr(&dir->root);
	BptInner   *levels[BPT_MAX_LEVELS];
	uint64_t	inners = 0;
	uint32_t	n = 0;
	bool		ok = true;
	Level		lv;

	if (euno_load_ptr_acquire(&bpt_body(tree)->first->right) == NULL)
		levels[0] = NULL;
	else
	{
		lv.cx = cx;
		lv.tree = tree;
		lv.domain = domain;
		do
		{
			lv.level = (uint8_t) (n + 1);
			ok = build_level(&lv, n == 0 ? NULL : levels[n - 1]);
			levels[n++] = lv.first;
			inners += lv.nodes;
		} while (ok && lv.nodes > 1 && n < BPT_MAX_LEVELS);
		if (!ok || lv.nodes > 1)
		{
			while (n > 0)
				drop_level(cx, tree, domain, levels[--n]);
			return false;
		}
		mark_posted(levels[0], domain);
		euno_bpt_note_shape(dir,
							euno_load_ptr_acquire(&bpt_body(tree)->first->right));
		levels[0] = levels[n - 1];
	}
	euno_store_ptr(&dir->root, levels[0]);
	euno_store64(&dir->built_inners, inners);
	euno_store64(&dir->built_leaves, euno_load64(&bpt_body(tree)->leaves));
	if (old != NULL)
		retire_tree(cx, tree, domain, old);
	return true;
}

/*
 * Throws a domain's directory away.  The caller holds its mutex, keeps merges
 * away, is within an epoch, and has marked the directory as not in use.
 */
void
euno_bpt_directory_drop(EunoContext *cx, EunoTree *tree, int domain)
{
	BptDirectory *dir = &bpt_body(tree)->directories[domain];
	BptInner   *old = euno_load_ptr(&dir->root);
	BptLeaf    *leaf = bpt_body(tree)->first;

	euno_store_ptr(&dir->root, (BptInner *) NULL);
	if (old != NULL)
		retire_tree(cx, tree, domain, old);
	for (; leaf != NULL; leaf = euno_load_ptr_acquire(&leaf->right))
		euno_and16(&leaf->posted, (uint16_t) ~(1 << domain));
}
