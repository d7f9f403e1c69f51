/*-------------------------------------------------------------------------
 *
 * art_ops.c
 *	  Creating a tree, its statistics, and its table of functions.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* An empty tree.  See EunoTreeOps.  BYTES order only. */
static EunoStatus
art_create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	(void) cx;
	if (config->order != EUNO_ORDER_BYTES)
		return EUNO_CORRUPT;
	memset(tree->body, 0, sizeof(tree->body));
	tree->config = *config;
	return EUNO_OK;
}

/*
 * Nodes on a path from the root to a leaf, that included: at each node the
 * child nearest to byte "from".
 */
static uint32_t
levels(EunoTree *tree, int from)
{
	ArtRef		ref = euno_load64_acquire(&art_body(tree)->root);
	uint32_t	n = 1;

	for (; art_is_node(ref); n++)
	{
		ArtNode    *node = art_pointer(ref);
		int			byte;

		ref = euno_art_node_next(node, from, true, &byte);
		if (ref == 0)
			ref = euno_art_node_next(node, from, false, &byte);
	}
	return n;
}

/*
 * See EunoTreeOps.  Exact only while nobody writes.  Paths differ in length;
 * the height is that of the longest of six.
 */
void
euno_art_stats(EunoContext *cx, EunoTree *tree, EunoTreeStats *stats)
{
	ArtBody    *body = art_body(tree);

	memset(stats, 0, sizeof(*stats));
	for (int i = 0; i < ART_STRIPES; i++)
	{
		stats->entries += euno_load64(&body->stripes[i].entries);
		stats->leaves += euno_load64(&body->stripes[i].leaves);
		stats->inners += euno_load64(&body->stripes[i].inners);
	}
	stats->splits = euno_load64(&body->splits);
	stats->merges = euno_load64(&body->merges);
	euno_epoch_enter(cx->process);
	for (int from = 0; from < 256; from += 51)
	{
		uint32_t	n = levels(tree, from);

		if (stats->height < n)
			stats->height = n;
	}
	euno_epoch_exit(cx->process);
}

const EunoTreeOps euno_art_olc_ops = {
	.name = "art",
	.bytes_only = true,
	.bulk_size = sizeof(EunoBulk),
	.create = art_create,
	.insert = euno_art_insert,
	.remove = euno_art_remove,
	.contains = euno_art_contains,
	.read = euno_art_read,
	.bulk_begin = euno_art_bulk_begin,
	.bulk_add = euno_art_bulk_add,
	.bulk_end = euno_art_bulk_end,
	.walk = euno_art_walk,
	.compact = euno_art_compact,
	.verify = euno_art_verify,
	.stats = euno_art_stats
};
