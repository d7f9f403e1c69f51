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

static const EunoTreeOps *const base = &euno_bptree_ops;
static _Thread_local Random choice;

/* One in so many operations of the flapping tree switches a leaf. */
#define FLAP_EVERY	6

static bool
one_in(uint32_t n)
{
	if (choice.state == 0)
		choice.state = test_seed() ^ (uintptr_t) &choice;
	return random_below(&choice, n) == 0;
}

/* Nothing depends on whether it works: there may be no memory for it. */
static void
flap(EunoContext *cx, EunoTree *tree, const EunoPosition *pos)
{
	if (one_in(FLAP_EVERY))
		(void) base->set_mode(cx, tree, pos, !one_in(3));
}

static EunoPosition
place_of(const EunoEntry *entry)
{
	return (EunoPosition)
	{
		.key = entry->key,.keylen = entry->keylen,.tid = entry->tid
	};
}

static EunoStatus
contended_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				 bool no_split)
{
	EunoPosition pos = place_of(entry);

	(void) base->set_mode(cx, tree, &pos, true);
	return base->insert(cx, tree, entry, no_split);
}

static EunoStatus
contended_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				 const EunoGuard *guard)
{
	EunoPosition pos = place_of(entry);

	(void) base->set_mode(cx, tree, &pos, true);
	return base->remove(cx, tree, entry, guard);
}

static EunoStatus
contended_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	EunoTree   *tree = bulk->tree;
	EunoStatus	status = base->bulk_end(cx, bulk);

	if (status == EUNO_OK)
		(void) base->set_mode(cx, tree, NULL, true);
	return status;
}

/* Contended leaves are not merged: they must have become calm. */
static EunoStatus
calm_compact(EunoContext *cx, EunoTree *tree, uint32_t max_merges,
			 uint32_t *merged)
{
	(void) base->set_mode(cx, tree, NULL, false);
	return base->compact(cx, tree, max_merges, merged);
}

static EunoStatus
flapping_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split)
{
	EunoPosition pos = place_of(entry);

	flap(cx, tree, &pos);
	return base->insert(cx, tree, entry, no_split);
}

static EunoStatus
flapping_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				const EunoGuard *guard)
{
	EunoPosition pos = place_of(entry);

	flap(cx, tree, &pos);
	return base->remove(cx, tree, entry, guard);
}

static EunoStatus
flapping_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	EunoPosition pos = place_of(entry);

	flap(cx, tree, &pos);
	return base->contains(cx, tree, entry);
}

static EunoStatus
flapping_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
			  EunoBatch *batch)
{
	flap(cx, tree, forward ? &cursor->lo : &cursor->hi);
	return base->read(cx, tree, cursor, forward, batch);
}

#define REST_OF_THE_TREE \
	.moment = true, \
	.bulk_size = sizeof(EunoBulk), \
	.create = euno_bpt_create, \
	.bulk_begin = euno_bpt_bulk_begin, \
	.bulk_add = euno_bpt_bulk_add, \
	.bulk_end = contended_bulk_end, \
	.walk = euno_bpt_walk, \
	.compact = calm_compact, \
	.maintain = euno_bpt_maintain, \
	.set_domains = euno_bpt_set_domains, \
	.set_mode = euno_bpt_set_mode, \
	.verify = euno_bpt_verify, \
	.moves = euno_bpt_moves, \
	.stats = euno_bpt_stats

const EunoTreeOps contended_ops = {
	.name = "bptree/contended",
	.insert = contended_insert,
	.remove = contended_remove,
	.contains = euno_bpt_contains,
	.read = euno_bpt_read,
	REST_OF_THE_TREE
};

const EunoTreeOps flapping_ops = {
	.name = "bptree/flapping",
	.insert = flapping_insert,
	.remove = flapping_remove,
	.contains = flapping_contains,
	.read = flapping_read,
	REST_OF_THE_TREE
};

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
	.moment = true,
	.bulk_size = sizeof(EunoBulk),
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
	.maintain = euno_bpt_maintain,
	.set_domains = euno_bpt_set_domains,
	.set_mode = euno_bpt_set_mode,
	.verify = euno_bpt_verify,
	.moves = euno_bpt_moves,
	.stats = euno_bpt_stats
};

EunoTreeOps crowded_art_ops;

/* The rest of its functions have no names. */
static void __attribute__((constructor))
make_crowded_art(void)
{
	crowded_art_ops = euno_art_olc_ops;
	crowded_art_ops.name = "art/crowded";
	crowded_art_ops.insert = crowded_art_insert;
	crowded_art_ops.remove = crowded_art_remove;
}
