/*-------------------------------------------------------------------------
 *
 * modes.c
 *	  The B+tree with its leaves forced into a mode: subjects like others, only
 *	  that they must be asked for (EUNO_TREE).
 *
 *	  bptree/contended	each leaf that is written to is contended
 *	  bptree/flapping	leaves become contended and calm at random
 *	  bptree/crowded	writes go to whoever leads, most of the time; and so in
 *	  art/crowded		the radix tree
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"
#include "core/bptree/bpt.h"
#include "fixture.h"

static _Thread_local Random choice;

static bool
one_in(uint32_t n)
{
	if (choice.state == 0)
		choice.state = test_seed() ^ (uintptr_t) &choice;
	return random_below(&choice, n) == 0;
}

EunoTreeOps contended_ops;
EunoTreeOps flapping_ops;

/* Most writes are delegated, wherever they go to. */
static void
crowd(EunoContext *cx)
{
	cx->delegation.always = !one_in(8);
}

#define CROWDED(tree) \
static EunoStatus \
crowded_##tree##_insert(EunoContext *cx, EunoTree *tree, \
						const EunoEntry *entry, bool no_split) \
{ \
	crowd(cx); \
	return euno_##tree##_insert(cx, tree, entry, no_split); \
} \
static EunoStatus \
crowded_##tree##_remove(EunoContext *cx, EunoTree *tree, \
						const EunoEntry *entry, const EunoGuard *guard) \
{ \
	crowd(cx); \
	return euno_##tree##_remove(cx, tree, entry, guard); \
}

CROWDED(bpt)
CROWDED(art)

const EunoTreeOps crowded_bpt_ops = {
	.name = "bptree/crowded",
	.leaf_chain = true,
	.atomic_batches = true,
	.create = euno_bpt_create,
	.insert = crowded_bpt_insert,
	.remove = crowded_bpt_remove,
	.contains = euno_bpt_contains,
	.read = euno_bpt_read,
	.bulk_begin = euno_bpt_bulk_begin,
	.bulk_add = euno_bpt_bulk_add,
	.bulk_end = euno_bpt_bulk_end,
	.walk = euno_bpt_walk,
	.compact = euno_bpt_compact,
	.reclaim = euno_bpt_reclaim_all,
	.maintain = euno_bpt_maintain,
	.set_domains = euno_bpt_set_domains,
	.set_mode = euno_bpt_set_mode,
	.verify = euno_bpt_verify,
	.moves = euno_bpt_moves,
	.stats = euno_bpt_stats
};

EunoTreeOps crowded_art_ops;

static void
make_forced(EunoTreeOps *ops, const char *name, EunoForced forced)
{
	*ops = euno_bptree_forced_ops;
	ops->name = name;
	if (subject_selected(ops))
		euno_forced = (int) forced;
}

static void __attribute__((constructor))
make_modes(void)
{
	euno_forced_seed = test_seed();
	make_forced(&contended_ops, "bptree/contended", EUNO_FORCED_CONTENDED);
	make_forced(&flapping_ops, "bptree/flapping", EUNO_FORCED_FLAPPING);

	/* The rest of its functions have no names. */
	crowded_art_ops = euno_art_olc_ops;
	crowded_art_ops.name = "art/crowded";
	crowded_art_ops.insert = crowded_art_insert;
	crowded_art_ops.remove = crowded_art_remove;
}
