/*-------------------------------------------------------------------------
 *
 * euno_policy.c
 *	  What the launcher does to trees, decided from what was counted.
 *
 * A leaf becomes hot in a round with hot_rate conflicts a second or more, and
 * calm after CALM_ROUNDS rounds in a row with less than a quarter of that.  Once
 * calm it stays so for CALM_ROUNDS rounds at least.  So it changes at most twice
 * in 2 * CALM_ROUNDS rounds whatever happens, and never while its rate stays between
 * the two bounds (Eunomia, section 4.2.4, has one bound, and no memory).
 *
 * Writers to a contended leaf hardly meet.  So its writes count as conflicts:
 * there cannot be more of these, if it were calm.
 *
 *-------------------------------------------------------------------------
 */
#include "worker/euno_policy.h"

#include <string.h>

/* How many times less than hot is calm, and for how many rounds. */
#define CALM_FACTOR		4
#define CALM_ROUNDS		3

/* Fewer removals than this are not worth a merging. */
#define MERGE_LEAST		1000

static EunoLeafMemory *
find_leaf(EunoPolicyMemory *memory, uint32_t leaf)
{
	for (uint32_t i = 0; i < memory->nleaves; i++)
	{
		if (memory->leaves[i].leaf == leaf)
			return &memory->leaves[i];
	}
	return NULL;
}

/*
 * What speaks for a leaf's being hot, in the round; 0 if it is not among the
 * hottest.
 */
static uint32_t
activity_of(const EunoPolicyInput *input, uint32_t leaf)
{
	for (uint32_t i = 0; i < input->nleaves; i++)
	{
		if (input->leaves[i].leaf == leaf)
			return input->leaves[i].conflicts + input->leaves[i].writes;
	}
	return 0;
}

/*
 * Leaves that were not in mind and are going to be hot, or are contended already,
 * as far as there is room.
 */
static void
remember(EunoPolicyMemory *memory, const EunoPolicyInput *input, double hot)
{
	for (uint32_t i = 0; i < input->nleaves; i++)
	{
		const EunoPolicyLeaf *leaf = &input->leaves[i];
		EunoLeafMemory *new = &memory->leaves[memory->nleaves];

		if ((leaf->conflicts < hot && leaf->writes == 0) ||
			memory->nleaves >= EUNO_POLICY_LEAVES ||
			find_leaf(memory, leaf->leaf) != NULL)
			continue;
		memset(new, 0, sizeof(EunoLeafMemory));
		new->rounds = CALM_ROUNDS;
		new->leaf = leaf->leaf;
		new->state = leaf->writes > 0 ? EUNO_LEAF_HOT : EUNO_LEAF_CALM;
		memory->nleaves++;
	}
}

/* One round of one leaf; true if its state has changed. */
static bool
step_leaf(EunoLeafMemory *leaf, uint32_t activity, double hot)
{
	bool		other = leaf->state == EUNO_LEAF_CALM ? activity >= hot :
		activity < hot / CALM_FACTOR;
	uint32_t	enough = leaf->state == EUNO_LEAF_CALM ? 1 : CALM_ROUNDS;

	leaf->rounds++;
	leaf->streak = other ? leaf->streak + 1 : 0;
	if (leaf->streak < enough || leaf->rounds <= CALM_ROUNDS)
		return false;
	leaf->state = leaf->state == EUNO_LEAF_CALM ? EUNO_LEAF_HOT : EUNO_LEAF_CALM;
	leaf->streak = 0;
	leaf->rounds = 0;
	return true;
}

static void
decide_leaves(const EunoPolicySettings *settings, const EunoPolicyInput *input,
			  EunoPolicyMemory *memory, uint32_t *budget,
			  EunoPolicyActions *actions)
{
	double		hot = settings->hot_rate > 0 ?
		settings->hot_rate * input->seconds : UINT32_MAX;
	uint32_t	kept = 0;

	remember(memory, input, hot);
	for (uint32_t i = 0; i < memory->nleaves; i++)
	{
		EunoLeafMemory leaf = memory->leaves[i];

		if (*budget > 0 &&
			step_leaf(&leaf, activity_of(input, leaf.leaf), hot))
		{
			(*budget)--;
			if (leaf.state == EUNO_LEAF_HOT)
				actions->heated[actions->nheated++] = leaf.leaf;
			else
				actions->cooled[actions->ncooled++] = leaf.leaf;
		}
		actions->hot += leaf.state == EUNO_LEAF_HOT;

		/* What has been calm for as long as it must be is forgotten. */
		if (leaf.state == EUNO_LEAF_HOT || leaf.rounds < CALM_ROUNDS)
			memory->leaves[kept++] = leaf;
	}
	memory->nleaves = kept;
}

/*
 * Merging is due when many entries have been removed since the last one.  Leaves
 * that are contended and not known to be hot (each split of a contended leaf makes
 * one, and the launcher may have been restarted) are sought the same way.
 */
static void
decide_merging(const EunoPolicySettings *settings,
			   const EunoPolicyInput *input, EunoPolicyMemory *memory,
			   uint32_t *budget, EunoPolicyActions *actions)
{
	uint64_t	removed = input->removals - memory->merged_at;

	if (!input->can_merge)
		return;
	if (!memory->merging && settings->merge_part > 0 && removed >= MERGE_LEAST &&
		(double) removed >= settings->merge_part *
		(double) (input->entries + removed))
	{
		memory->merging = true;
		memory->merged_at = input->removals;
	}
	if (memory->merging || input->contended > actions->hot)
	{
		actions->look = *budget;
		*budget = 0;
	}
}

void
euno_policy_decide(const EunoPolicySettings *settings,
				   const EunoPolicyInput *input, EunoPolicyMemory *memory,
				   uint32_t *budget, EunoPolicyActions *actions)
{
	memset(actions, 0, sizeof(*actions));
	if (memory->generation != input->generation)
	{
		memset(memory, 0, sizeof(*memory));
		memory->generation = input->generation;
		memory->merged_at = input->removals;
	}
	if (input->removals < memory->merged_at)
		memory->merged_at = input->removals;	/* counted anew */
	decide_leaves(settings, input, memory, budget, actions);
	decide_merging(settings, input, memory, budget, actions);
}

void
euno_policy_merged(EunoPolicyMemory *memory)
{
	memory->merging = false;
}
