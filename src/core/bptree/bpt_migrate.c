/*-------------------------------------------------------------------------
 *
 * bpt_migrate.c
 *	  Moving leaves to the domains that use them.
 *
 * Live pages cannot be moved between NUMA nodes, so a leaf is copied into a new
 * one in the other domain's memory, which takes its place in the chain: a merge
 * whose right leaf goes on by another name.  Protocol and proof: src/README.md,
 * "Moving a leaf to another domain".
 *
 * Which leaf and where to: descents that are counted by domain vote, after
 * Boyer and Moore's majority vote.  A vote that is lost because two processes
 * write at a time does no harm.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"
#include "core/bptree/bpt_make.h"

/*
 * By how many votes a domain must lead to be given a leaf.  Tests make it
 * less.  A new leaf costs nothing to give away: a quarter of them is enough.
 */
#ifndef BPT_VOTES
#define BPT_VOTES	32
#endif
#define BPT_HOME_VOTES	((BPT_VOTES + 3) / 4)

/* Everything one move needs; large, in private memory. */
typedef struct Migration
{
	EunoContext *cx;
	EunoTree   *tree;
	BptLeaf    *before;			/* its left neighbor */
	BptLeaf    *from;
	BptLeaf    *to;
	BptPlace	before_place;
	BptPlace	from_place;
	BptPath		paths[EUNO_MAX_DOMAINS];
	BptImage	image;
	BptImage	scratch;
} Migration;

/*
 * A descent that is counted has come to a leaf, and stands for "weight" of
 * them.  Notes a leaf that another domain should have.  Within the descent's
 * epoch, no node locked.
 */
void
euno_bpt_use_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
				  uint32_t weight)
{
	uint32_t	mine = (uint32_t) cx->domain;
	bool		remote = euno_load32(&leaf->limbo.domain) != mine;
	uint32_t	use = euno_load16(&leaf->use);
	uint32_t	votes = use & 0xFF;

	if (remote)
		cx->counters.remote += weight;
	if (votes == 0)
		use = mine << 8 | 1;
	else if (use >> 8 != mine)
		use--;
	else if (votes >= BPT_VOTES)
		return;
	else
		use++;
	if ((use & 0xFF) == BPT_VOTES && use >> 8 == mine && remote &&
		!euno_bpt_log_try(cx, bpt_body(tree)->wishes, leaf))
		return;					/* the next one tries again */
	euno_store16(&leaf->use, (uint16_t) use);
}

/*
 * In whose memory a leaf split off from this one belongs: that of the domain
 * that uses it most, if it is known, or the caller's.
 */
int
euno_bpt_home(const EunoContext *cx, const EunoTree *tree, const BptLeaf *leaf)
{
	uint32_t	use = euno_load16(&leaf->use);

	return (use & 0xFF) >= BPT_HOME_VOTES && use >> 8 < tree->config.nparts ?
		(int) (use >> 8) : cx->domain;
}

/*
 * A new leaf, which nobody can see yet, has half of the votes of the one that
 * it is split off from: as many went to its keys.
 */
void
euno_bpt_inherit_use(BptLeaf *leaf, const BptLeaf *from)
{
	uint32_t	use = euno_load16(&from->use);

	euno_store16(&leaf->use, (uint16_t) ((use & 0xFF00) | (use & 0xFF) / 2));
}

/*
 * Finds all that a move needs, unlocked; comparators run.  EUNO_OK,
 * EUNO_NOT_FOUND (too busy, or not possible) or EUNO_CORRUPT.
 */
static EunoStatus
migration_prepare(Migration *m)
{
	EunoContext *cx = m->cx;
	EunoTree   *tree = m->tree;
	EunoPosition pos;
	EunoStatus	status;
	BptKey		key;
	BptLeaf    *next;
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));

	euno_bpt_key_fence(tree, m->from, &pos, buf, &key);
	bpt_place_init(&m->before_place, &m->scratch);
	status = euno_bpt_seek(cx, tree, &key, true, &m->before_place);
	if (status != EUNO_OK)
		return status == EUNO_CORRUPT ? status : EUNO_NOT_FOUND;
	m->before = m->before_place.leaf;
	next = bpt_place_right(&m->before_place);
	if (euno_bpt_valid(&m->before_place) != EUNO_OK || next != m->from)
		return EUNO_NOT_FOUND;
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_bpt_path(cx, tree, d, &key, &m->paths[d], &m->scratch))
			return EUNO_NOT_FOUND;
	}

	/* What is in segments would have to be gathered first. */
	if (!euno_bpt_copy_at(cx, m->from, &m->from_place, &m->image) ||
		m->from_place.view.contended)
		return EUNO_NOT_FOUND;
	return EUNO_OK;
}

/* Makes the new leaf; nobody can see it.  False without memory. */
static bool
migration_build(Migration *m, int domain)
{
	const BptLeaf *from = &m->image.leaf;
	BptFence	low = bpt_low_fence(from);

	m->to = euno_bpt_leaf_alloc(m->cx, m->tree, domain, bpt_leaf_size(from),
								&low);
	if (m->to == NULL)
		return false;
	m->image.leaf.seqno = euno_add64(&bpt_body(m->tree)->seqno, 2) + 1;
	euno_bpt_install(m->to, &m->image);
	euno_store8(&m->to->parted, from->parted);
	return true;
}

/* Puts the new leaf in the place of the old one.  False if too late. */
static bool
migration_install(Migration *m)
{
	const EunoEnvironment *env = m->cx->env;

	if (!euno_lock_upgrade(&m->before->lock, m->before_place.version))
		return false;
	if (!euno_lock_upgrade(&m->from->lock, m->from_place.version))
	{
		euno_lock_release_unchanged(&m->before->lock, env);
		return false;
	}
	if (bpt_body(m->tree)->compact_at == m->from)
		bpt_body(m->tree)->compact_at = m->to;
	euno_store_ptr(&m->before->right, m->to);
	euno_store64(&m->from->seqno, m->image.leaf.seqno + 1);
	euno_bpt_move_note(m->tree, m->from, m->to);
	euno_lock_release_obsolete(&m->from->lock, env);
	euno_lock_release(&m->before->lock, env);
	return true;
}

/* The directories forget the leaf.  False if one makes no sense. */
static bool __attribute__((noinline))
migration_unpost(Migration *m)
{
	EunoTree   *tree = m->tree;
	BptInnerRoom room;

	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_bpt_unpost(m->cx, tree, d, &m->paths[d], m->from, &room))
			return false;
	}
	return true;
}

/*
 * Moves under the mutexes of all directories.  EUNO_OK, EUNO_STALE (too late)
 * or EUNO_CORRUPT; *unposted: the directories have forgotten the leaf.
 */
static EunoStatus
migration_locked(Migration *m, bool *unposted)
{
	EunoTree   *tree = m->tree;

	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (!euno_bpt_path_current(tree, d, &m->paths[d]) ||
			!euno_bpt_can_unpost(d, &m->paths[d], m->from))
			return EUNO_STALE;
	}
	*unposted = true;
	if (!migration_unpost(m))
		return EUNO_CORRUPT;
	return migration_install(m) ? EUNO_OK : EUNO_STALE;
}

/*
 * Moves a leaf to a domain.  Within an epoch in which the leaf was seen
 * linked; the caller keeps merges away.  See EunoTreeOps.migrate.
 */
static EunoStatus
migrate_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf, int domain)
{
	BptBody    *body = bpt_body(tree);
	EunoStatus	status;
	bool		unposted = false;
	Migration	m = {.cx = cx,.tree = tree,.from = leaf};

	if (leaf == body->first || domain >= tree->config.nparts ||
		euno_load32(&leaf->limbo.domain) == (uint32_t) domain)
		return EUNO_NOT_FOUND;
	status = migration_prepare(&m);
	if (status != EUNO_OK)
		return status;
	status = EUNO_NO_MEMORY;
	if (migration_build(&m, domain))
	{
		status = EUNO_STALE;
		if (euno_bpt_merging_enter(body) &&
			euno_bpt_directories_lock(cx, tree))
		{
			status = migration_locked(&m, &unposted);
			euno_bpt_directories_unlock(cx, tree);
		}
		euno_bpt_merging_leave(cx, body);
	}
	if (status == EUNO_OK)
	{
		euno_bpt_spare_used(cx);
		euno_bpt_log_forget(cx, tree, leaf);
		euno_bpt_retire_leaf(cx, tree, leaf);
	}
	else
		euno_bpt_spare_drop(cx);
	if (unposted && status != EUNO_CORRUPT)
		euno_bpt_publish(cx, tree, status == EUNO_OK ? m.to : leaf);
	return status == EUNO_STALE ? EUNO_NOT_FOUND : status;
}

/* See EunoTreeOps. */
EunoStatus
euno_bpt_migrate(EunoContext *cx, EunoTree *tree, const EunoPosition *pos,
				 int domain)
{
	BptBody    *body = bpt_body(tree);
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;

	if (!euno_mutex_trylock(&body->compact_mutex))
		return EUNO_NOT_FOUND;
	cx->held.compacting = tree;
	euno_bpt_key_position(tree, pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	status = euno_bpt_seek(cx, tree, &key, false, &place);
	if (status == EUNO_OK && euno_bpt_valid(&place) != EUNO_OK)
		status = EUNO_NOT_FOUND;
	if (status == EUNO_OK)
		status = migrate_leaf(cx, tree, place.leaf, domain);
	euno_epoch_exit(cx->process);
	euno_bpt_compact_leave(cx);
	(void) euno_bpt_reclaim(cx, tree, false);
	return status;
}

/* See EunoTreeOps.  An epoch each, or nothing could be reclaimed meanwhile. */
uint32_t
euno_bpt_settle(EunoContext *cx, EunoTree *tree, uint32_t max)
{
	BptBody    *body = bpt_body(tree);
	BptLog	   *wishes = body->wishes;
	uint32_t	moved = 0;

	if (wishes == NULL || euno_load32(&wishes->count) == 0 ||
		(bpt_is_opaque(tree) && cx->compare == NULL) ||
		!euno_mutex_trylock(&body->compact_mutex))
		return 0;
	cx->held.compacting = tree;
	for (; max > 0; max--)
	{
		BptLeaf    *leaf;
		bool		more = false;

		euno_epoch_enter(cx->process);
		leaf = euno_bpt_log_take(cx, wishes);
		if (leaf != NULL)
		{
			uint32_t	use = euno_load16(&leaf->use);

			more = true;
			if ((use & 0xFF) >= BPT_VOTES / 2 &&
				migrate_leaf(cx, tree, leaf, (int) (use >> 8)) == EUNO_OK)
				moved++;
			else				/* it may be noted once more */
				euno_store16(&leaf->use,
							 (uint16_t) ((use & 0xFF00) | BPT_VOTES / 2));
		}
		euno_epoch_exit(cx->process);
		if (!more)
			break;
	}
	euno_bpt_compact_leave(cx);
	euno_bpt_reclaim_all(cx, tree);
	return moved;
}
