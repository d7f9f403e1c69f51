/*-------------------------------------------------------------------------
 *
 * bpt_memory.c
 *	  Nodes: allocated, retired, and given back when nobody can see them.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

static uint8_t
size_log2(size_t size)
{
	uint8_t		log2 = 8;

	while (((size_t) 1 << log2) < size)
		log2++;
	return log2;
}

static inline uint32_t
leaf_body(uint32_t low_len)
{
	return BPT_LEAF_HEADER + euno_align8(low_len);
}

/*
 * The size of a new leaf of a format with a low fence of this many bytes and
 * this many bytes of entries; 0 if there is no such size.  Any leaf can hold
 * at least one entry of any length, so that a split always finds a left part
 * that fits where it is.
 */
size_t
euno_bpt_leaf_size_for(BptFormat format, uint32_t low_len, size_t body)
{
	size_t		size = low_len > BPT_LONG_FENCE ? 2 * BPT_LEAF_SIZE :
		BPT_LEAF_SIZE;

	if (format == BPT_FIXED && size < BPT_FIXED_SIZE)
		size = BPT_FIXED_SIZE;

	while (size < leaf_body(low_len) + body)
		size *= 2;
	return size <= BPT_NODE_MAX ? size : 0;
}

/* Gives back what was allocated but has not become part of the tree. */
void
euno_bpt_spare_drop(EunoContext *cx)
{
	for (int i = 0; i < EUNO_SPARES; i++)
	{
		if (cx->held.spare[i] != NULL)
		{
			cx->env->free(cx->held.spare_tree->alloc_arg, cx->held.spare_domain[i],
						  cx->held.spare[i], cx->held.spare_size[i]);
			cx->held.spare[i] = NULL;
		}
	}
	cx->held.spare_tree = NULL;
}

/*
 * Node memory for the operation under way, in a domain.  What was allocated
 * but not used stays in the context for the next try.  It must not outlive the
 * operation: afterwards the tree's memory may be taken back and given to
 * others.
 */
static void *
spare_get(EunoContext *cx, EunoTree *tree, int domain, size_t size)
{
	if (cx->held.spare[0] != NULL)
	{
		if (cx->held.spare_tree == tree && cx->held.spare_size[0] == size &&
			cx->held.spare_domain[0] == domain)
			return cx->held.spare[0];
		euno_bpt_spare_drop(cx);
	}
	cx->held.spare[0] = cx->env->alloc(tree->alloc_arg, domain, size);
	if (cx->held.spare[0] == NULL &&
		euno_bpt_reclaim(cx, tree, true) > 0)
		cx->held.spare[0] = cx->env->alloc(tree->alloc_arg, domain, size);
	cx->held.spare_size[0] = size;
	cx->held.spare_domain[0] = domain;
	cx->held.spare_tree = tree;
	return cx->held.spare[0];
}

/* The spare has become part of the tree. */
void
euno_bpt_spare_used(EunoContext *cx)
{
	cx->held.spare[0] = NULL;
}

/*
 * An empty leaf with this low fence, in a domain's memory, in the context's
 * spare: not part of the tree until euno_bpt_spare_used.  NULL if there is no
 * memory.  No node may be locked.
 */
BptLeaf *
euno_bpt_leaf_alloc(EunoContext *cx, EunoTree *tree, int domain, size_t size,
					const BptFence *low)
{
	BptLeaf    *leaf = spare_get(cx, tree, domain, size);
	uint32_t	len = low->bytes != NULL ? low->len : 0;
	BptLeaf		header;

	if (leaf == NULL)
		return NULL;
	memset(&header, 0, sizeof(header));
	header.size_log2 = size_log2(size);
	header.body = (uint16_t) leaf_body(len);
	header.low_len = len;
	header.has_low = low->bytes != NULL;
	header.low_tid = low->tid;
	header.limbo.domain = (uint32_t) domain;
	header.format = bpt_is_opaque(tree) ? BPT_OPAQUE : BPT_FIXED;
	if (bpt_is_opaque(tree))
		header.heap = (uint16_t) (size - BPT_SLACK);
	header.low_word = header.low_hint = euno_bpt_fence_word(low, 0);
	header.number = 1 + (uint32_t) (euno_add64(&bpt_body(tree)->numbers, 1) %
									EUNO_LEAF_MAX);
	euno_copy_in(leaf, &header, BPT_LEAF_HEADER);
	if (len > 0)
		euno_copy_in(bpt_low(leaf), low->bytes, len);
	return leaf;
}

/* The directory has a node of this size more, or ("n" is -1) less. */
static void
count_inner(EunoTree *tree, int domain, size_t size, int64_t n)
{
	BptDirectory *dir = &bpt_body(tree)->directories[domain];

	(void) euno_add64(&dir->inners, (uint64_t) n);
	(void) euno_add64(&dir->inner_bytes, (uint64_t) (n * (int64_t) size));
}

/*
 * An inner node, not yet reachable, but counted.  NULL if there is no memory.
 * The caller may hold the directory's mutex, but no node.
 */
BptInner *
euno_bpt_inner_alloc(EunoContext *cx, EunoTree *tree, int domain, size_t size,
					 uint8_t level)
{
	BptInner   *node = cx->env->alloc(tree->alloc_arg, domain, size);
	BptInner	header;

	if (node == NULL)
		return NULL;
	memset(&header, 0, sizeof(header));
	header.size_log2 = size_log2(size);
	header.level = level;
	header.limbo.domain = (uint32_t) domain;
	euno_copy_in(node, &header, BPT_INNER_HEADER);
	count_inner(tree, domain, size, 1);
	return node;
}

/* Gives back an inner node that nobody ever saw. */
void
euno_bpt_inner_drop(EunoContext *cx, EunoTree *tree, int domain,
					BptInner *node)
{
	size_t		size = bpt_inner_size(node);

	count_inner(tree, domain, size, -1);
	cx->env->free(tree->alloc_arg, domain, node, size);
}

/*
 * Marks an inner node that no pointer leads to any more, and gives it back
 * when nobody can see it.
 */
void
euno_bpt_retire_inner(EunoContext *cx, EunoTree *tree, int domain,
					  BptInner *node)
{
	size_t		size = bpt_inner_size(node);

	(void) euno_lock_acquire(&node->lock, cx->env, &cx->counters);
	euno_lock_release_obsolete(&node->lock, cx->env);
	euno_bpt_retire(cx, tree, node, size, &node->limbo);
	count_inner(tree, domain, size, -1);
}

/*
 * Gives back a node that has been unlinked and marked obsolete, as soon as no
 * process can have a pointer to it.
 */
void
euno_bpt_retire(EunoContext *cx, EunoTree *tree, void *node, size_t size,
				BptLimbo *limbo)
{
	BptBody    *body = bpt_body(tree);
	BptLimbo   *tail;

	/* Readers may still be copying the node, these fields with it. */
	euno_store_ptr(&limbo->next, (BptLimbo *) NULL);
	euno_store_ptr(&limbo->node, node);
	euno_store32(&limbo->size, (uint32_t) size);
	euno_mutex_lock(&body->limbo_mutex, cx->env);

	/* Advanced under the mutex: the list is in the order of the epochs. */
	euno_store64(&limbo->epoch, euno_epoch_advance(cx->process->epochs));
	tail = euno_load_ptr(&body->limbo_tail);
	if (tail != NULL)
		euno_store_ptr(&tail->next, limbo);
	else
		euno_store_ptr(&body->limbo, limbo);
	euno_store_ptr(&body->limbo_tail, limbo);
	euno_mutex_unlock(&body->limbo_mutex, cx->env);
}

/*
 * The same for a leaf.  Who remembers it from before looks at the stamp: it
 * has changed before the epoch is advanced that the leaf waits for.
 */
void
euno_bpt_retire_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf)
{
	euno_store64(&bpt_body(tree)->stamp, euno_stamp_new(cx->process->epochs));
	euno_bpt_retire(cx, tree, leaf, bpt_leaf_size(leaf), &leaf->limbo);
}

/*
 * Gives back what can be given back, with "all" as much as is possible now;
 * returns how many nodes.  Never waits for readers.  No node may be locked by
 * this process.
 */
uint32_t
euno_bpt_reclaim(EunoContext *cx, EunoTree *tree, bool all)
{
	BptBody    *body = bpt_body(tree);
	uint32_t	n = 0;
	uint64_t	bound;

	if (euno_load_ptr(&body->limbo) == NULL)
		return 0;
	bound = all ? euno_epoch_bound(cx->process->epochs, 0) :
		euno_epoch_bound_lately(cx->process->epochs);
	while (euno_load_ptr(&body->limbo) != NULL &&
		   euno_mutex_trylock(&body->limbo_mutex))
	{
		BptLimbo   *limbo = euno_load_ptr(&body->limbo);

		if (limbo == NULL || euno_load64(&limbo->epoch) >= bound)
			limbo = NULL;
		else
		{
			BptLimbo   *next = euno_load_ptr(&limbo->next);

			euno_store_ptr(&body->limbo, next);
			if (next == NULL)
				euno_store_ptr(&body->limbo_tail, next);
		}
		euno_mutex_unlock(&body->limbo_mutex, cx->env);
		if (limbo == NULL)
			break;
		cx->env->free(tree->alloc_arg,
					  (int) euno_load32(&limbo->domain),
					  euno_load_ptr(&limbo->node),
					  euno_load32(&limbo->size));
		n++;
	}
	return n;
}

/* See EunoTreeOps. */
void
euno_bpt_reclaim_all(EunoContext *cx, EunoTree *tree)
{
	(void) euno_bpt_reclaim(cx, tree, true);
}
