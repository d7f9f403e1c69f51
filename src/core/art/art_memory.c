/*-------------------------------------------------------------------------
 *
 * art_memory.c
 *	  Nodes: allocated, retired, and given back when nobody can see them.
 *
 * Most of what the tree allocates has no room for a list's links, so what was
 * unlinked is noted in blocks.  A block that is full is closed: the epoch
 * advances, and when no pin of the old epoch is left, what the block names is
 * given back.  A change that unlinks something reserves the room for noting it
 * before it takes the first lock, so that unlinking never fails.
 *
 * Processes note in stripes of their own, so that they do not wait for each
 * other.  What a process leaves behind is given back by compact, and when
 * memory runs out.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#define SIZE_SHIFT	48

/* Memory for a node; NULL if there is none.  No node may be locked. */
void *
euno_art_alloc(EunoContext *cx, EunoTree *tree, size_t size)
{
	void	   *p = cx->env->alloc(tree->alloc_arg, ART_DOMAIN, size);

	if (p == NULL)
	{
		/* What is waiting for its epoch may do. */
		euno_art_reclaim_all(cx, tree);
		p = cx->env->alloc(tree->alloc_arg, ART_DOMAIN, size);
	}
	return p;
}

/* Gives back what nobody else ever saw, or can see any more. */
void
euno_art_free(EunoContext *cx, EunoTree *tree, void *p, size_t size)
{
	cx->env->free(tree->alloc_arg, ART_DOMAIN, p, size);
}

/* Under the mutex: adds an empty block, behind the one that is being filled. */
static void
limbo_add(ArtStripe *stripe, ArtLimbo *block)
{
	ArtLimbo   *first = stripe->blocks;

	block->n = 0;
	block->next = first == NULL ? NULL : first->next;
	if (first == NULL)
		euno_store_ptr(&stripe->blocks, block);
	else
		first->next = block;
	stripe->room += ART_LIMBO_ITEMS;
}

/*
 * Makes sure that n things can be retired.  False if there is no memory.
 * Neither node locks nor the mutex on entry.
 */
bool
euno_art_reserve(EunoContext *cx, EunoTree *tree, uint32_t n)
{
	ArtStripe  *stripe = art_stripe(cx, tree);
	ArtLimbo   *block = NULL;
	bool		done;

	if (n == 0)
		return true;
	for (;;)
	{
		euno_mutex_lock(&stripe->mutex, cx->env);
		if (block != NULL && stripe->room < n)
		{
			limbo_add(stripe, block);
			block = NULL;
		}
		done = stripe->room >= n;
		if (done)
			stripe->room -= n;
		euno_mutex_unlock(&stripe->mutex, cx->env);
		if (done)
			break;
		block = euno_art_alloc(cx, tree, ART_LIMBO_SIZE);
		if (block == NULL)
			return false;
	}
	if (block != NULL)
		euno_art_free(cx, tree, block, ART_LIMBO_SIZE);
	return true;
}

/* Gives back what was reserved and is not needed. */
void
euno_art_unreserve(EunoContext *cx, EunoTree *tree, uint32_t n)
{
	ArtStripe  *stripe = art_stripe(cx, tree);

	if (n == 0)
		return;
	euno_mutex_lock(&stripe->mutex, cx->env);
	stripe->room += n;
	euno_mutex_unlock(&stripe->mutex, cx->env);
}

/*
 * Under the mutex: nothing more will be noted in the first block.  Who
 * remembers one of its nodes looks at the stamp: it has changed before the
 * epoch is advanced that the block waits for.
 */
static void
limbo_close(EunoContext *cx, EunoTree *tree, ArtStripe *stripe)
{
	ArtLimbo   *block = stripe->blocks;

	euno_store_ptr(&stripe->blocks, block->next);
	euno_store64(&art_body(tree)->stamp, euno_stamp_new(cx->process->epochs));
	block->epoch = euno_epoch_advance(cx->process->epochs);
	block->next = block;
	if (stripe->closed != NULL)
	{
		block->next = stripe->closed->next;
		stripe->closed->next = block;
	}
	euno_store_ptr(&stripe->closed, block);
}

/*
 * Notes something that has been unlinked (and marked obsolete, if it has a
 * lock).  Room has been reserved.  No node locks.
 */
static void
art_retire(EunoContext *cx, EunoTree *tree, void *p, size_t size)
{
	ArtStripe  *stripe = art_stripe(cx, tree);
	ArtLimbo   *block;

	euno_mutex_lock(&stripe->mutex, cx->env);
	block = stripe->blocks;
	block->items[block->n++] = (uint64_t) (uintptr_t) p |
		(uint64_t) (size / 8) << SIZE_SHIFT;
	if (block->n == ART_LIMBO_ITEMS)
		limbo_close(cx, tree, stripe);
	euno_mutex_unlock(&stripe->mutex, cx->env);
}

/* Retires what a reference refers to, if that is memory. */
void
euno_art_retire_ref(EunoContext *cx, EunoTree *tree, ArtRef ref)
{
	ArtNode    *node = art_pointer(ref);

	if (art_is_node(ref))
		art_retire(cx, tree, node,
				   art_node_memory(art_node_size(art_type(node),
												 art_segment_len(node))));
	else if (art_is_leaf(ref))
		art_retire(cx, tree, art_record(ref), euno_art_leaf_memory(ref));
}

/* Under the mutex: takes out the oldest closed block, if its epoch has passed. */
static ArtLimbo *
limbo_take(ArtStripe *stripe, uint64_t bound)
{
	ArtLimbo   *newest = stripe->closed;
	ArtLimbo   *block = newest == NULL ? NULL : newest->next;

	if (block == NULL || block->epoch >= bound)
		return NULL;
	if (block == newest)
		euno_store_ptr(&stripe->closed, NULL);
	else
		newest->next = block->next;
	return block;
}

/* Gives back what closed blocks name that have waited for less than the bound. */
static void
give_back(EunoContext *cx, EunoTree *tree, ArtStripe *stripe, uint64_t bound)
{
	while (euno_load_ptr(&stripe->closed) != NULL &&
		   euno_mutex_trylock(&stripe->mutex))
	{
		ArtLimbo   *block = limbo_take(stripe, bound);

		euno_mutex_unlock(&stripe->mutex, cx->env);
		if (block == NULL)
			return;
		for (uint64_t i = 0; i < block->n; i++)
		{
			uint64_t	item = block->items[i];

			euno_art_free(cx, tree,
						  (void *) (uintptr_t) (item & ART_RECORD_MASK),
						  (size_t) (item >> SIZE_SHIFT) * 8);
		}
		euno_art_free(cx, tree, block, ART_LIMBO_SIZE);
	}
}

/*
 * Gives back what can be given back of what processes of this stripe have
 * unlinked, in full blocks.  Never waits for readers.  No node locks; what was
 * unlinked since the caller has entered the epoch (the access method has it
 * pinned) is left to the next.
 */
void
euno_art_reclaim(EunoContext *cx, EunoTree *tree)
{
	ArtStripe  *stripe = art_stripe(cx, tree);

	if (euno_load_ptr(&stripe->closed) != NULL)
		give_back(cx, tree, stripe,
				  euno_epoch_bound_lately(cx->process->epochs));
}

/*
 * Closes the first block, if it is not empty; what others have reserved must fit
 * those behind it.
 */
static void
close_first(EunoContext *cx, EunoTree *tree, ArtStripe *stripe)
{
	ArtLimbo   *block;

	if (euno_load_ptr(&stripe->blocks) == NULL ||
		!euno_mutex_trylock(&stripe->mutex))
		return;
	block = stripe->blocks;
	if (block != NULL && block->n > 0 &&
		stripe->room >= ART_LIMBO_ITEMS - block->n)
	{
		stripe->room -= ART_LIMBO_ITEMS - block->n;
		limbo_close(cx, tree, stripe);
	}
	euno_mutex_unlock(&stripe->mutex, cx->env);
}

/* The same of all that anybody has unlinked. */
void
euno_art_reclaim_all(EunoContext *cx, EunoTree *tree)
{
	ArtStripe  *stripes = art_body(tree)->stripes;
	uint64_t	bound;

	for (int i = 0; i < ART_STRIPES; i++)
		close_first(cx, tree, &stripes[i]);
	bound = euno_epoch_bound(cx->process->epochs, 0);
	for (int i = 0; i < ART_STRIPES; i++)
		give_back(cx, tree, &stripes[i], bound);
}

void
euno_art_build_start(ArtBuild *build, EunoContext *cx, EunoTree *tree)
{
	build->cx = cx;
	build->tree = tree;
	build->n = 0;
}

/* Memory that euno_art_build_undo gives back; NULL if there is none. */
void *
euno_art_build_alloc(ArtBuild *build, size_t size)
{
	void	   *p = euno_art_alloc(build->cx, build->tree, size);

	if (p != NULL)
	{
		build->built[build->n].p = p;
		build->built[build->n++].size = size;
	}
	return p;
}

/* The change was not made. */
void
euno_art_build_undo(ArtBuild *build)
{
	while (build->n > 0)
	{
		build->n--;
		euno_art_free(build->cx, build->tree, build->built[build->n].p,
					  build->built[build->n].size);
	}
}
