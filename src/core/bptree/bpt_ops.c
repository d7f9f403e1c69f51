/*-------------------------------------------------------------------------
 *
 * bpt_ops.c
 *	  Creating a tree, its statistics, and its table of functions.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/*
 * An empty tree: one leaf, no directory.  See EunoTreeOps.  EUNO_OK or
 * EUNO_NO_MEMORY.
 */
EunoStatus
euno_bpt_create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	BptBody    *body = bpt_body(tree);
	BptFence	low = {NULL, 0, 0};
	BptLeaf    *leaf;

	memset(tree->body, 0, sizeof(tree->body));
	tree->config = *config;
	if (tree->config.fillfactor < 10 || tree->config.fillfactor > 100)
		tree->config.fillfactor = 90;
	if (tree->config.ndomains < 1)
		tree->config.ndomains = 1;
	if (tree->config.nparts < tree->config.ndomains)
		tree->config.nparts = tree->config.ndomains;
	leaf = euno_bpt_leaf_alloc(cx, tree, cx->domain, BPT_LEAF_SIZE, &low);
	if (leaf == NULL)
		return EUNO_NO_MEMORY;
	euno_bpt_spare_used(cx);
	body->seqno = 1;
	euno_store64(&leaf->seqno, 1);
	body->leaves = 1;
	body->stamp = euno_stamp_new(cx->process->epochs);
	euno_store_ptr(&body->first, leaf);
	body->active = euno_tree_domains(tree, config->domains != 0 ?
									 config->domains : UINT64_MAX);
	return euno_bpt_log_create(cx, tree);
}

/* See EunoTreeOps.  Exact only while nobody writes. */
uint64_t
euno_bpt_entries(EunoTree *tree)
{
	uint64_t	sum = 0;

	for (int i = 0; i < BPT_STRIPES; i++)
		sum += euno_counter_read(&bpt_body(tree)->stripes[i].entries);

	/* An insert may be missed whose removal, in another stripe, is seen. */
	return (int64_t) sum < 0 ? 0 : sum;
}

/* See EunoTreeOps.  Exact only while nobody writes. */
void
euno_bpt_stats(EunoContext *cx, EunoTree *tree, EunoTreeStats *stats)
{
	BptBody    *body = bpt_body(tree);
	int			domain = bpt_domain(tree, cx->domain);
	BptDirectory *dir = &body->directories[domain];
	BptInner   *root;

	memset(stats, 0, sizeof(*stats));
	stats->entries = euno_bpt_entries(tree);
	stats->leaves = euno_load64(&body->leaves);
	stats->domains = euno_load64(&body->active);
	stats->inners = euno_load64(&dir->inners);
	stats->inner_bytes = euno_load64(&dir->inner_bytes);
	stats->lag = euno_bpt_log_lag(tree, domain);
	stats->splits = euno_load64(&body->splits);
	stats->merges = euno_load64(&body->merges);
	stats->contended = euno_load64(&body->contended);
	stats->parted = euno_load64(&body->parted);
	euno_epoch_enter(cx->process);
	root = euno_load_ptr_acquire(&dir->root);
	stats->height = 1U + (root != NULL ? euno_load8(&root->level) : 0);
	euno_epoch_exit(cx->process);
}

const EunoTreeOps euno_bptree_ops = {
	.name = "bptree",
	.leaf_chain = true,
	.atomic_batches = true,
	.bottom_up_reach = UINT32_MAX,	/* reading ends with the leaf */
	.create = euno_bpt_create,
	.insert = euno_bpt_insert,
	.remove = euno_bpt_remove,
	.contains = euno_bpt_contains,
	.read = euno_bpt_read,
	.read_keys = euno_bpt_read_keys,
	.bulk_begin = euno_bpt_bulk_begin,
	.bulk_add = euno_bpt_bulk_add,
	.bulk_end = euno_bpt_bulk_end,
	.walk = euno_bpt_walk,
	.compact = euno_bpt_compact,
	.reclaim = euno_bpt_reclaim_all,
	.maintain = euno_bpt_maintain,
	.set_domains = euno_bpt_set_domains,
	.set_mode = euno_bpt_set_mode,
	.steer = euno_bpt_steer,
	.migrate = euno_bpt_migrate,
	.settle = euno_bpt_settle,
	.verify = euno_bpt_verify,
	.moves = euno_bpt_moves,
	.heat = euno_bpt_heat,
	.leaf = euno_bpt_leaf,
	.entries = euno_bpt_entries,
	.stats = euno_bpt_stats
};
