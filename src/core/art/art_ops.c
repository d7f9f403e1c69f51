/*-------------------------------------------------------------------------
 *
 * art_ops.c
 *	  Creating a tree, its statistics, and its tables of functions.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

static EunoStatus
create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config,
	   bool rowex)
{
	if (config->order != EUNO_ORDER_BYTES)
		return EUNO_CORRUPT;
	memset(tree->body, 0, sizeof(tree->body));
	tree->config = *config;
	if (tree->config.ndomains < 1)
		tree->config.ndomains = 1;
	if (tree->config.nparts < tree->config.ndomains)
		tree->config.nparts = tree->config.ndomains;
	art_body(tree)->near_domains =
		euno_tree_domains(tree, config->domains != 0 ? config->domains :
						  UINT64_MAX);
	art_body(tree)->rowex = rowex;
	art_body(tree)->stamp = euno_stamp_new(cx->process->epochs);
	return EUNO_OK;
}

/* An empty tree.  See EunoTreeOps.  BYTES order only. */
static EunoStatus
create_olc(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	return create(cx, tree, config, false);
}

static EunoStatus
create_rowex(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	return create(cx, tree, config, true);
}

/* The child nearest to a byte, at its right if there is one; 0 if none. */
static ArtRef
nearest(ArtNode *node, uint8_t from)
{
	ArtChildren children;
	uint32_t	i = 0;

	euno_art_node_children(node, &children);
	if (children.n == 0)
		return 0;
	while (i + 1 < children.n && children.bytes[i] < from)
		i++;
	return children.child[i].ref;
}

/* Nodes on a path from the root to a leaf, that included. */
static uint32_t
levels(EunoTree *tree, uint8_t from)
{
	ArtRef		ref = euno_load64_acquire(&art_body(tree)->root);
	uint32_t	n = 1;

	for (; art_is_node(ref); n++)
		ref = nearest(art_pointer(ref), from);
	return n;
}

/* See EunoTreeOps.  Exact only while nobody writes. */
uint64_t
euno_art_entries(EunoTree *tree)
{
	uint64_t	sum = 0;

	for (int i = 0; i < ART_STRIPES; i++)
		sum += euno_counter_read(&art_body(tree)->stripes[i].entries);

	/* An insert may be missed whose removal, in another stripe, is seen. */
	return (int64_t) sum < 0 ? 0 : sum;
}

/* The tree's nodes.  Exact only while nobody writes. */
uint64_t
euno_art_inners(EunoTree *tree)
{
	uint64_t	sum = 0;

	for (int i = 0; i < ART_STRIPES; i++)
		sum += euno_load64(&art_body(tree)->stripes[i].inners);
	return sum;
}

/*
 * See EunoTreeOps.  Exact only while nobody writes.  Each entry is a leaf.
 * Paths differ in length; the height is that of the longest of six.  The bytes
 * are those of the domain's map.
 */
static void
stats(EunoContext *cx, EunoTree *tree, EunoTreeStats *to)
{
	ArtBody    *body = art_body(tree);

	memset(to, 0, sizeof(*to));
	to->entries = euno_art_entries(tree);
	to->inners = euno_art_inners(tree);
	to->leaves = to->entries;
	to->domains = euno_load64(&body->near_domains);
	to->inner_bytes = euno_art_near_bytes(tree, cx->domain);
	for (int i = 0; i < ART_STRIPES; i++)
		to->merges += euno_load64(&body->stripes[i].dropped);

	/* Those who insert would all write to a counter of their own. */
	to->splits = to->inners + to->merges - euno_load64(&body->loaded);
	euno_epoch_enter(cx->process);
	for (int from = 0; from < 256; from += 51)
	{
		uint32_t	n = levels(tree, (uint8_t) from);

		if (to->height < n)
			to->height = n;
	}
	euno_epoch_exit(cx->process);
}

#define ART_OPS(art_name, art_create) { \
	.name = art_name, \
	.bytes_only = true, \
	.bottom_up_reach = 32, \
	.create = art_create, \
	.insert = euno_art_insert, \
	.remove = euno_art_remove, \
	.contains = euno_art_contains, \
	.read = euno_art_read, \
	.read_keys = euno_art_read_keys, \
	.bulk_begin = euno_art_bulk_begin, \
	.bulk_add = euno_art_bulk_add, \
	.bulk_end = euno_art_bulk_end, \
	.walk = euno_art_walk, \
	.compact = euno_art_compact, \
	.reclaim = euno_art_reclaim_all, \
	.maintain = euno_art_maintain, \
	.set_domains = euno_art_set_domains, \
	.verify = euno_art_verify, \
	.entries = euno_art_entries, \
	.stats = stats, \
	.heat = euno_art_heat, \
	.leaf = euno_art_leaf \
}

const EunoTreeOps euno_art_olc_ops = ART_OPS("art/olc", create_olc);
const EunoTreeOps euno_art_rowex_ops = ART_OPS("art/rowex", create_rowex);
