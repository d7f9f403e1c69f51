/*-------------------------------------------------------------------------
 *
 * euno_actions.c
 *	  What the launcher does to trees, as the policy says (euno_policy.c).
 *
 * The launcher is attached to no database.  What is done here needs a tree and
 * nothing else: no catalog, and no comparator, so that it cannot fail half-way.
 * A tree is held for the time of one step, some hundred leaves at most; in
 * between nothing is held, and the launcher can be interrupted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/euno_debug.h"
#include "am/euno_state.h"
#include "mem/euno_registry.h"
#include "worker/euno_policy.h"
#include "worker/euno_worker.h"

/* Leaves to look at in one step. */
#define STEP_LEAVES		256

EunoWorkerStats euno_worker_round;

static int	worker_budget;
static int	hot_leaf_conflicts;
static int	merge_threshold;

/* A leaf by its low fence, which is its own as long as it lives. */
typedef struct LeafKey
{
	uint32_t	leaf;			/* number */
	bool		last;			/* of the tree, when it came to mind */
	uint32_t	keylen;
	uint8_t		key[EUNO_HEAT_KEY];
} LeafKey;

/* What is remembered of a tree. */
typedef struct TreeMemory
{
	EunoPolicyMemory policy;
	uint64		generation;		/* of the tree that "parted" was counted in */
	uint64		parted;			/* its parted leaves, in the round before */
	int			nkeys;			/* of the leaves that the policy has in mind */
	LeafKey		keys[EUNO_POLICY_LEAVES];
} TreeMemory;

/* One for each slot of the registry, made when it has a tree. */
static TreeMemory **memories;

/* The hottest leaves of the tree that is being looked at. */
static EunoHeat heat[EUNO_POLICY_LEAVES];

/* What is held in a step; an error leaves it here. */
static EunoTreeSlot *held;
static EunoContext cx;

void
euno_actions_define_settings(void)
{
	DefineCustomIntVariable("euno.worker_budget",
							"Sets how many leaves the euno launcher looks at or changes in one round.",
							NULL,
							&worker_budget,
							10000, 0, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("euno.hot_leaf_conflicts",
							"Sets the number of conflicts per second that make a leaf of a euno index hot.",
							"0 leaves all leaves as they are.",
							&hot_leaf_conflicts,
							1000, 0, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("euno.merge_threshold",
							"Sets the percentage of a euno index's entries whose removal makes the launcher merge underfull leaves.",
							"0 leaves that to VACUUM, but for leaves that contention has split.",
							&merge_threshold,
							10, 0, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

/* The tree in a slot, until step_leave; false if it is not READY. */
static bool
step_enter(EunoTreeSlot *slot)
{
	cx.process = euno_process();
	cx.env = &euno_environment;
	if (!euno_tree_hold(slot))
		return false;
	held = slot;
	EUNO_STOP_POINT("worker-step");
	return true;
}

static void
step_leave(void)
{
	euno_tree_unhold(held);
	held = NULL;
}

void
euno_actions_abandon(void)
{
	if (held == NULL)
		return;
	euno_context_reset(&cx);
	euno_process_reset(cx.process, 0);
	step_leave();
}

/* What has been counted of a tree in the round that ends now. */
static void
end_round(EunoTreeSlot *slot, EunoPolicyInput *input)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz start = (TimestampTz) pg_atomic_read_u64(&slot->round_start);
	EunoTreeStats stats;

	if (now < start)
		start = 0;				/* the clock has been set back */
	memset(input, 0, sizeof(*input));
	input->generation = pg_atomic_read_u64(&slot->generation);
	input->seconds = start == 0 ? 0 : (double) (now - start) / 1e6;
	slot->ops->stats(&cx, &slot->tree, &stats);
	input->entries = stats.entries;
	input->all_leaves = stats.leaves;
	input->contended = stats.contended;
	input->parted = stats.parted;
	input->removals = euno_tree_counted(slot, EUNO_COUNT_REMOVALS);
	input->can_merge = slot->tree.config.order == EUNO_ORDER_BYTES;
	input->can_contend = slot->ops->set_mode != NULL &&
		slot->tree.config.order == EUNO_ORDER_BYTES;
	input->can_part = slot->ops->steer != NULL;
	input->nleaves = slot->ops->heat(&cx, &slot->tree, true, heat,
									 EUNO_POLICY_LEAVES);

	/* Nobody knows since when these have been counted. */
	if (start == 0)
		input->nleaves = 0;
	for (uint32 i = 0; i < input->nleaves; i++)
	{
		input->leaves[i].leaf = heat[i].leaf;
		input->leaves[i].conflicts = heat[i].fresh;
		input->leaves[i].writes = heat[i].writes;
		input->leaves[i].same_key = heat[i].causes[EUNO_CAUSE_SAME_KEY];
		input->leaves[i].other_key = heat[i].causes[EUNO_CAUSE_OTHER_KEY];
	}
	pg_atomic_write_u64(&slot->round_before, start == 0 ? 0 : now - start);
	pg_atomic_write_u64(&slot->round_start, now);
}

/* Something impossible was found; a statement would have raised an error. */
static void
give_up(EunoTreeSlot *slot, uint64 generation)
{
	ereport(WARNING,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("euno index with OID %u in database with OID %u is inconsistent",
					slot->index_oid, slot->key.database),
			 errdetail("It is given up, and will be rebuilt from the table.")));
	(void) euno_tree_retire(slot, generation);
	euno_invalidate_plans(slot->key.database, slot->heap_oid);
}

/*
 * Merges among the next leaves of a tree, as many as may be looked at, and
 * calms contended ones that are idle.
 */
static void
merge_leaves(EunoTreeSlot *slot, TreeMemory *memory, uint32_t look)
{
	uint64		total = 0;
	EunoStatus	status = EUNO_OK;

	while (look > 0 && status == EUNO_OK)
	{
		uint32_t	n = Min(look, STEP_LEAVES);
		uint32_t	merged = 0;

		CHECK_FOR_INTERRUPTS();
		if (!step_enter(slot))
			break;
		if (pg_atomic_read_u64(&slot->generation) == memory->policy.generation)
			status = slot->ops->compact(&cx, &slot->tree, EUNO_COMPACT_CALM, n,
										&merged);
		step_leave();
		total += merged;
		look -= n;
	}
	if (status == EUNO_DONE)
		euno_policy_merged(&memory->policy);
	if (status == EUNO_CORRUPT)
		give_up(slot, memory->policy.generation);
	if (total == 0)
		return;
	euno_worker_round.actions[EUNO_WORKER_MERGE] += total;
	ereport(LOG,
			(errmsg("merged %llu leaves of euno index with OID %u in database with OID %u",
					(unsigned long long) total, slot->index_oid,
					slot->key.database)));
}

/* NULL: it is not known where the leaf is. */
static LeafKey *
find_key(TreeMemory *memory, uint32_t leaf)
{
	for (int i = 0; i < memory->nkeys; i++)
	{
		if (memory->keys[i].leaf == leaf)
			return &memory->keys[i];
	}
	return NULL;
}

/*
 * The key of a leaf that has come to mind.  False if it was split since, and
 * what was fought for is in another leaf now, or if its fence is too long.
 */
static bool
learn_key(EunoTreeSlot *slot, uint32_t leaf, uint32_t nheat, LeafKey *to)
{
	static EunoLeafInfo info;
	EunoStatus	status = EUNO_NOT_FOUND;

	for (uint32_t i = 0; i < nheat; i++)
	{
		if (heat[i].leaf != leaf || !step_enter(slot))
			continue;
		status = slot->ops->leaf(&cx, &slot->tree, &heat[i], &info);
		step_leave();
	}
	if (status != EUNO_OK || info.number != leaf)
		return false;
	to->leaf = leaf;
	to->last = !info.has_high;
	to->keylen = info.has_low ? info.low.pos.keylen : 0;
	if (to->keylen > EUNO_HEAT_KEY)
		return false;
	memcpy(to->key, info.low.data, to->keylen);
	return true;
}

/* Keeps the keys of leaves in step with what the policy has in mind. */
static void
remember_keys(EunoTreeSlot *slot, TreeMemory *memory, uint32_t nheat)
{
	static LeafKey kept[EUNO_POLICY_LEAVES];
	int			n = 0;

	for (uint32_t i = 0; i < memory->policy.nleaves; i++)
	{
		uint32_t	leaf = memory->policy.leaves[i].leaf;
		LeafKey    *key = find_key(memory, leaf);

		CHECK_FOR_INTERRUPTS();
		if (key != NULL)
			kept[n++] = *key;
		else if (learn_key(slot, leaf, nheat, &kept[n]))
			n++;
	}
	memcpy(memory->keys, kept, sizeof(LeafKey) * n);
	memory->nkeys = n;
}

/*
 * Makes a leaf contended, or calm; true if it was done.  What cannot be had
 * for want of memory is left as it is.
 */
static bool
change_mode(EunoTreeSlot *slot, TreeMemory *memory, const LeafKey *leaf,
			bool contended)
{
	EunoPosition pos = {.key = leaf->key,.keylen = leaf->keylen,.side = -1};
	EunoStatus	status = EUNO_NOT_FOUND;

	CHECK_FOR_INTERRUPTS();
	if (!step_enter(slot))
		return false;
	if (pg_atomic_read_u64(&slot->generation) == memory->policy.generation)
		status = slot->ops->set_mode(&cx, &slot->tree, &pos, contended);
	step_leave();
	if (status == EUNO_CORRUPT)
		give_up(slot, memory->policy.generation);
	if (status != EUNO_OK)
		return false;
	euno_worker_round.actions[contended ? EUNO_WORKER_CONTENDED :
							  EUNO_WORKER_CALM]++;
	return true;
}

/*
 * Is an ascending load the reason?  Its writers are delegated, and soon in
 * another leaf.
 */
static bool
is_edge(const LeafKey *leaf, uint32_t nheat)
{
	for (uint32_t i = 0; leaf->last && i < nheat; i++)
	{
		if (heat[i].leaf == leaf->leaf)
			return heat[i].delegated > (heat[i].fresh + heat[i].before) / 2;
	}
	return false;
}

/*
 * Leaves that have become hot are made contended; those that are hot no more,
 * calm.
 */
static void
change_modes(EunoTreeSlot *slot, TreeMemory *memory,
			 const EunoPolicyInput *input, const EunoPolicyActions *actions)
{
	int			contended = 0;
	int			calm = 0;

	if (!input->can_contend)
		return;
	remember_keys(slot, memory, input->nleaves);
	for (uint32_t i = 0; i < actions->ncooled; i++)
	{
		LeafKey    *leaf = find_key(memory, actions->cooled[i]);

		if (leaf != NULL && input->contended > 0)
			calm += change_mode(slot, memory, leaf, false);
	}
	for (uint32_t i = 0; i < actions->nheated; i++)
	{
		LeafKey    *leaf = find_key(memory, actions->heated[i]);

		if (leaf != NULL && !is_edge(leaf, input->nleaves))
			contended += change_mode(slot, memory, leaf, true);
	}
	if (contended + calm > 0)
		ereport(LOG,
				(errmsg("leaves of euno index with OID %u in database with OID %u were made contended: %d, calm: %d",
						slot->index_oid, slot->key.database, contended, calm)));
}

/* Says when leaves are to be parted until the next round; backends do it. */
static void
steer(EunoTreeSlot *slot, TreeMemory *memory, bool can_part,
	  const EunoPolicyActions *actions)
{
	if (!can_part || !step_enter(slot))
		return;
	if (pg_atomic_read_u64(&slot->generation) == memory->policy.generation)
		slot->ops->steer(&cx, &slot->tree, actions->part_at,
						 actions->part_most);
	step_leave();
}

/* Tells of leaves that have been parted since the round before. */
static void
report_parted(EunoTreeSlot *slot, TreeMemory *memory,
			  const EunoPolicyInput *input)
{
	if (memory->generation != input->generation)
		memory->parted = 0;
	memory->generation = input->generation;
	if (input->parted > memory->parted)
		ereport(LOG,
				(errmsg("leaves of euno index with OID %u in database with OID %u were split between their keys, %llu times",
						slot->index_oid, slot->key.database,
						(unsigned long long) (input->parted - memory->parted))));
	memory->parted = input->parted;
}

static void
see_to_tree(int number, uint32_t *budget)
{
	EunoTreeSlot *slot = euno_tree_by_number(number);
	EunoPolicySettings settings = {
		.hot_rate = hot_leaf_conflicts,
		.merge_part = merge_threshold / 100.0,
		.naptime = euno_naptime
	};
	EunoPolicyActions actions;
	EunoPolicyInput input;

	if (!step_enter(slot))
		return;
	end_round(slot, &input);
	step_leave();
	if (memories[number] == NULL)
		memories[number] = MemoryContextAllocZero(TopMemoryContext,
												  sizeof(TreeMemory));
	euno_policy_decide(&settings, &input, &memories[number]->policy, budget,
					   &actions);
	euno_worker_round.hot_leaves += actions.hot;
	steer(slot, memories[number], input.can_part, &actions);
	report_parted(slot, memories[number], &input);
	change_modes(slot, memories[number], &input, &actions);
	if (actions.look > 0)
		merge_leaves(slot, memories[number], actions.look);
}

/* All trees, each round beginning with another one, for the budget's sake. */
void
euno_take_actions(void)
{
	static uint32 first = 0;
	uint32_t	budget = (uint32_t) worker_budget;
	int			n = euno_tree_count();

	if (memories == NULL)
		memories = MemoryContextAllocZero(TopMemoryContext,
										  sizeof(TreeMemory *) *
										  euno_max_indexes);
	first++;
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		see_to_tree((int) ((first + i) % (uint32) n), &budget);
	}
}
