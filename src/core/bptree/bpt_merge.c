/*-------------------------------------------------------------------------
 *
 * bpt_merge.c
 *	  Merging underfull neighbors, for VACUUM and the launcher.
 *
 * A leaf L takes in its right neighbor R.  The steps, and what a concurrent
 * reader sees after each, are in src/README.md ("Merge").
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"
#include "core/bptree/bpt_make.h"

/* A merged leaf is at most this full, in percent. */
#define BPT_MERGE_FILL	70

/*
 * What a contention split has parted is merged when both sides were written
 * less often than this since a merging came by before.
 */
#ifndef BPT_PARTED_WRITES
#define BPT_PARTED_WRITES	1000
#endif

/* Lets the next process merge in the tree that this one was merging in. */
void
euno_bpt_compact_leave(EunoContext *cx)
{
	euno_mutex_unlock(&bpt_body(cx->held.compacting)->compact_mutex, cx->env);
	cx->held.compacting = NULL;
}

/*
 * Everything one merge needs; large, in private memory.  The directories forget
 * the right leaf when the merged one has been made.
 */
typedef struct Merge
{
	EunoContext *cx;
	EunoTree   *tree;
	BptLeaf    *left;
	BptLeaf    *right;
	BptPlace	left_place;
	BptPlace	right_place;
	BptPath		paths[EUNO_MAX_DOMAINS];
	union
	{
		struct
		{
			BptWork		work;
			BptImage	left_image;
		};
		BptInnerRoom room;
	};
	BptImage	right_image;
	BptImage	image;
} Merge;

/*
 * A leaf's bytes in use, as far as can be told without looking closely.  0
 * while it is being written to: that is no reason to forget why it was split.
 */
static size_t
leaf_used(const BptLeaf *leaf)
{
	BptView		view;

	if (!euno_bpt_view(leaf, &view))
		return 0;
	if (view.contended)
		return BPT_NODE_MAX;
	if (view.format == BPT_FIXED)
		return (size_t) view.entries * (8 + view.tail_len);
	return (size_t) view.count * 10 + view.size - view.heap;
}

/* How often the leaf was written since a merging came by. */
static uint64_t
writes_since(const BptLeaf *leaf)
{
	return euno_load64(&leaf->lock.word) / EUNO_LOCK_VERSION -
		euno_load64(&leaf->limbo.merging);
}

/* Are two neighbors to stay apart, because of a contention split? */
static bool
stay_apart(const BptLeaf *left, const BptLeaf *right)
{
	return euno_load8(&right->parted) != 0 &&
		(writes_since(left) >= BPT_PARTED_WRITES ||
		 writes_since(right) >= BPT_PARTED_WRITES);
}

/*
 * No merging would make one leaf of these neighbors, whether a contention split
 * has parted them or not: that is forgotten.
 */
static void
forget_parting(BptBody *body, BptLeaf *right)
{
	if (euno_load8(&right->parted) == 0)
		return;
	euno_store8(&right->parted, 0);
	(void) euno_add64(&body->parted, (uint64_t) -1);
}

/*
 * The merging goes on to the right: what is written from now on counts anew.
 */
static void
pass_by(BptLeaf *left, const BptLeaf *right)
{
	if (euno_load8(&left->parted) != 0 ||
		(right != NULL && euno_load8(&right->parted) != 0))
		euno_store64(&left->limbo.merging,
					 euno_load64(&left->lock.word) / EUNO_LOCK_VERSION);
}

/*
 * Takes a validated copy of a leaf.  False if it is busy, obsolete or
 * canceled.
 */
bool
euno_bpt_copy_at(EunoContext *cx, BptLeaf *leaf, BptPlace *place,
				 BptImage *image)
{
	bpt_place_init(place, image);
	place->leaf = leaf;
	return euno_lock_read_or_leave(&leaf->lock, &place->version, cx->env,
								   &cx->counters) &&
		euno_bpt_copy(place) == EUNO_OK;
}

/* Builds the merged leaf; false if it would be too full. */
static bool
merge_build(Merge *m)
{
	EunoTree   *tree = m->tree;
	BptItems   *it = &m->work.it;
	const BptLeaf *left = &m->left_image.leaf;
	BptFence	low;
	BptFence	high;
	BptFormat	format;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8];
	uint32_t	used;

	if (!euno_bpt_copy_at(m->cx, m->left, &m->left_place, &m->left_image) ||
		!euno_bpt_copy_at(m->cx, m->right, &m->right_place, &m->right_image) ||
		left->right != m->right || m->left_place.view.contended ||
		m->right_place.view.contended)
		return false;
	euno_bpt_items_init(&m->work, tree);
	if (!euno_bpt_items_add_leaf(&m->work, &m->left_place.view) ||
		!euno_bpt_items_add_leaf(&m->work, &m->right_place.view))
		return false;
	high = euno_bpt_high_fence(&m->right_image.leaf, buf);
	low = bpt_low_fence(left);
	used = euno_bpt_measure(tree, it, 0, it->n, &low, &high, &format);
	if (used > (bpt_leaf_size(left) - left->body) * BPT_MERGE_FILL / 100)
		return false;
	euno_bpt_image_like(&m->image, left);
	return euno_bpt_encode(tree, it, 0, it->n, &low, &high, &m->image);
}

/* Swaps the merged leaf in.  False, and nothing changed, if too late. */
static bool
merge_install(Merge *m)
{
	const EunoEnvironment *env = m->cx->env;
	uint64_t	seqno = euno_add64(&bpt_body(m->tree)->seqno, 2);

	if (!euno_lock_upgrade(&m->left->lock, m->left_place.version))
		return false;
	if (!euno_lock_upgrade(&m->right->lock, m->right_place.version))
	{
		euno_lock_release_unchanged(&m->left->lock, env);
		return false;
	}
	m->image.leaf.seqno = seqno + 1;
	m->image.leaf.right = m->right_image.leaf.right;
	euno_bpt_install(m->left, &m->image);
	euno_store64(&m->right->seqno, seqno + 2);
	(void) euno_add64(&bpt_body(m->tree)->leaves, (uint64_t) -1);
	euno_bpt_move_note(m->tree, m->right, m->left);
	euno_lock_release_obsolete(&m->right->lock, env);
	euno_lock_release(&m->left->lock, env);
	return true;
}

/*
 * Merges under the mutexes of all directories: no separator can be posted
 * between its removal and the end of its leaf.  EUNO_OK, EUNO_NOT_FOUND (not
 * merged) or EUNO_CORRUPT; *unposted: the directories have forgotten R.
 */
static EunoStatus
merge_locked(Merge *m, bool *unposted)
{
	EunoTree   *tree = m->tree;

	*unposted = false;
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_bpt_path_current(tree, d, &m->paths[d]) ||
			!euno_bpt_can_unpost(d, &m->paths[d], m->right))
			return EUNO_NOT_FOUND;
	}
	if (!merge_build(m))
		return EUNO_NOT_FOUND;
	*unposted = true;
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		BptPath    *path = &m->paths[d];

		if (!euno_bpt_unpost(m->cx, tree, d, path, m->right, &m->room))
			return EUNO_CORRUPT;
	}
	return merge_install(m) ? EUNO_OK : EUNO_NOT_FOUND;
}

/* Keeps walks away; false if there is one. */
bool
euno_bpt_merging_enter(BptBody *body)
{
	(void) euno_exchange32_full(&body->merging, 1);
	return euno_load64_full(&body->walkers) == 0;
}

void
euno_bpt_merging_leave(EunoContext *cx, BptBody *body)
{
	if (euno_exchange32_full(&body->merging, 0) == 2)
		cx->env->wake(&body->merging);
}

static void
unlock_directories_below(EunoContext *cx, EunoTree *tree, int domain)
{
	for (int d = 0; d < domain; d++)
		euno_mutex_unlock(&bpt_body(tree)->directories[d].mutex, cx->env);
}

/* False, and none locked, if the operation was canceled. */
bool
euno_bpt_directories_lock(EunoContext *cx, EunoTree *tree)
{
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_mutex_lock_or_leave(&bpt_body(tree)->directories[d].mutex,
									  cx->env))
		{
			unlock_directories_below(cx, tree, d);
			return false;
		}
	}
	return true;
}

void
euno_bpt_directories_unlock(EunoContext *cx, EunoTree *tree)
{
	unlock_directories_below(cx, tree, tree->config.ndomains);
}

/*
 * Merges a leaf's right neighbor into it, if that may be and they fit.  EUNO_OK,
 * EUNO_NOT_FOUND (not worth it, or locks are taken), EUNO_BUSY (a walk is under
 * way) or EUNO_CORRUPT; *unposted: the directories have forgotten the right leaf.
 */
static EunoStatus
merge_pair(Merge *m, bool *unposted)
{
	EunoContext *cx = m->cx;
	EunoTree   *tree = m->tree;
	BptBody    *body = bpt_body(tree);
	EunoStatus	status = EUNO_BUSY;
	EunoPosition pos;
	BptKey		key;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	bool		fit = leaf_used(m->left) + leaf_used(m->right) <=
		(bpt_leaf_size(m->left) - euno_load16(&m->left->body)) *
		BPT_MERGE_FILL / 100;

	if (!fit)
		forget_parting(body, m->right);
	if (!fit || stay_apart(m->left, m->right))
		return EUNO_NOT_FOUND;

	/* Comparators run here, where nothing but the right to merge is held. */
	euno_bpt_key_fence(tree, m->right, &pos, buf, &key);
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_bpt_path(cx, tree, d, &key, &m->paths[d], &m->image))
			return EUNO_NOT_FOUND;
	}
	if (euno_bpt_merging_enter(body))
	{
		status = EUNO_NOT_FOUND;
		if (euno_bpt_directories_lock(cx, tree))
		{
			status = merge_locked(m, unposted);
			euno_bpt_directories_unlock(cx, tree);
		}
	}
	euno_bpt_merging_leave(cx, body);
	return status;
}

/* A frame of its own, which is gone when others of the kind are needed. */
static EunoStatus __attribute__((noinline))
merge_try(EunoContext *cx, EunoTree *tree, BptLeaf *left, BptLeaf *right,
		  bool *unposted)
{
	Merge		m;

	m.cx = cx;
	m.tree = tree;
	m.left = left;
	m.right = right;
	return merge_pair(&m, unposted);
}

/*
 * Tries to merge a leaf's right neighbor into it, and does what follows.  Called
 * within an epoch.  Returns what merge_pair does.
 */
static EunoStatus
merge_right(EunoContext *cx, EunoTree *tree, BptLeaf *left, BptLeaf *right)
{
	BptBody    *body = bpt_body(tree);
	bool		unposted = false;
	EunoStatus	status = merge_try(cx, tree, left, right, &unposted);

	if (status == EUNO_OK)
	{
		(void) euno_add64(&body->merges, 1);
		if (euno_load8(&right->parted) != 0)
			(void) euno_add64(&body->parted, (uint64_t) -1);
		euno_bpt_log_forget(cx, tree, right);
		euno_bpt_retire_leaf(cx, tree, right);
	}
	else if (unposted && status == EUNO_NOT_FOUND)
		euno_bpt_publish(cx, tree, right);
	return status;
}

/*
 * Are a directory's nodes sparse, and was it not like that when it was built?
 * (Where separators are long there are many.)
 */
static bool
is_sparse(const BptDirectory *dir, uint64_t leaves)
{
	uint64_t	inners = euno_load64(&dir->inners);
	uint64_t	built_leaves = euno_load64(&dir->built_leaves);

	if (inners == 0 || leaves <= 1)
		return inners > 0;
	return inners >= 8 + leaves / 8 &&
		(built_leaves == 0 ||
		 2 * inners * built_leaves > 3 * euno_load64(&dir->built_inners) * leaves);
}

/* After many merges the inner nodes are sparse: builds them anew. */
static void
directories_shrink(EunoContext *cx, EunoTree *tree)
{
	BptBody    *body = bpt_body(tree);

	for (int d = 0; d < tree->config.ndomains; d++)
	{
		BptDirectory *dir = &body->directories[d];

		if (!is_sparse(dir, euno_load64(&body->leaves)))
			continue;
		euno_epoch_enter(cx->process);
		if (euno_mutex_lock_or_leave(&dir->mutex, cx->env))
		{
			(void) euno_bpt_directory_build(cx, tree, d);
			euno_mutex_unlock(&dir->mutex, cx->env);
		}
		euno_epoch_exit(cx->process);
	}
}

/*
 * Merges, from where it stopped last to the right, until there have been so
 * many leaves or merges, or it is canceled.  With "calm", contended leaves
 * that are idle become calm.  The caller has the right to merge.  EUNO_OK,
 * EUNO_BUSY (a walk is under way) or EUNO_CORRUPT.
 */
static EunoStatus
merge_from(EunoContext *cx, EunoTree *tree, uint32_t max_leaves, bool calm,
		   uint32_t *merged)
{
	BptLeaf   **at = &bpt_body(tree)->compact_at;

	while (*at != NULL && max_leaves-- > 0 && !euno_is_canceled(cx->env))
	{
		EunoStatus	status = EUNO_NOT_FOUND;
		BptLeaf    *left = *at;
		BptLeaf    *right;

		/* Nobody else merges: the leaves stay linked between two steps. */
		euno_epoch_enter(cx->process);
		if (calm)
			(void) euno_bpt_calm_idle(cx, tree, left);	/* may split it */
		right = euno_load_ptr_acquire(&left->right);
		if (right != NULL)
			status = merge_right(cx, tree, left, right);
		euno_epoch_exit(cx->process);
		if (status == EUNO_OK)
			(*merged)++;
		else if (status != EUNO_NOT_FOUND)
			return status;
		else
		{
			pass_by(left, right);
			*at = right;
		}
	}
	return EUNO_OK;
}

/*
 * See EunoTreeOps.  The right to merge is noted in the context, too, for
 * whoever has to give it back after an error.
 */
EunoStatus
euno_bpt_compact(EunoContext *cx, EunoTree *tree, uint32_t how,
				 uint32_t max_leaves, uint32_t *merged)
{
	BptBody    *body = bpt_body(tree);
	EunoStatus	status;

	*merged = 0;
	if (!euno_mutex_trylock(&body->compact_mutex))
		return EUNO_BUSY;
	cx->held.compacting = tree;
	if (body->compact_at == NULL || (how & EUNO_COMPACT_BEGIN) != 0)
		body->compact_at = euno_load_ptr_acquire(&body->first);
	status = merge_from(cx, tree, max_leaves,
						(how & EUNO_COMPACT_CALM) != 0, merged);
	if (*merged > 0)
		directories_shrink(cx, tree);
	if (status == EUNO_OK && body->compact_at == NULL)
		status = EUNO_DONE;
	euno_bpt_compact_leave(cx);
	euno_bpt_reclaim_all(cx, tree);
	return status;
}
