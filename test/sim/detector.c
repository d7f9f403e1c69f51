/*-------------------------------------------------------------------------
 *
 * detector.c
 *	  The launcher's rounds, in virtual time.
 *
 * The policy is the launcher's own (src/worker/euno_policy.c), and so is what
 * it is told and what its decisions do to leaves.  In between,
 * src/worker/euno_actions.c finds leaves by their fences, which needs a server;
 * here the key of the last conflict does.  Merging is left out.
 *
 *-------------------------------------------------------------------------
 */
#include "detector.h"

#include <string.h>

#include "worker/euno_policy.h"

/* As euno.worker_budget. */
#define BUDGET	10000

static EunoPolicyMemory memory;
static uint64_t generation;

/* Leaves that were made contended, and where they are. */
static EunoHeat contended[EUNO_POLICY_LEAVES];
static uint32_t ncontended;

void
detector_reset(void)
{
	generation++;
	ncontended = 0;
}

static EunoHeat *
find(EunoHeat *heat, uint32_t n, uint32_t leaf)
{
	for (uint32_t i = 0; i < n; i++)
	{
		if (heat[i].leaf == leaf)
			return &heat[i];
	}
	return NULL;
}

static EunoStatus
set_mode(EunoContext *cx, const EunoTreeOps *ops, EunoTree *tree,
		 const EunoHeat *heat, bool mode)
{
	EunoPosition pos = {.key = heat->key,.keylen = heat->keylen,
	.side = heat->cut ? -1 : 0,.tid = heat->tid};

	return ops->set_mode(cx, tree, &pos, mode);
}

void
detector_round(EunoContext *cx, const EunoTreeOps *ops, EunoTree *tree,
			   double seconds, double hot_rate)
{
	static EunoHeat heat[EUNO_POLICY_LEAVES];
	EunoPolicySettings settings = {.hot_rate = hot_rate,.naptime = seconds};
	EunoPolicyInput input = {.generation = generation,.seconds = seconds,
	.can_contend = true,.can_part = true};
	EunoPolicyActions actions;
	EunoTreeStats stats;
	uint32_t	budget = BUDGET;

	if (ops->set_mode == NULL)
		return;
	ops->stats(cx, tree, &stats);
	input.all_leaves = stats.leaves;
	input.contended = stats.contended;
	input.parted = stats.parted;
	input.nleaves = ops->heat(cx, tree, true, heat, EUNO_POLICY_LEAVES);
	for (uint32_t i = 0; i < input.nleaves; i++)
		input.leaves[i] = (EunoPolicyLeaf)
		{
			heat[i].leaf, heat[i].fresh, heat[i].writes,
				heat[i].causes[EUNO_CAUSE_SAME_KEY],
				heat[i].causes[EUNO_CAUSE_OTHER_KEY]
		};
	euno_policy_decide(&settings, &input, &memory, &budget, &actions);
	ops->steer(cx, tree, actions.part_at, actions.part_most);
	for (uint32_t i = 0; i < actions.ncooled; i++)
	{
		EunoHeat   *leaf = find(contended, ncontended, actions.cooled[i]);

		if (leaf == NULL)
			continue;
		(void) set_mode(cx, ops, tree, leaf, false);
		*leaf = contended[--ncontended];
	}
	for (uint32_t i = 0; i < actions.nheated; i++)
	{
		EunoHeat   *leaf = find(heat, input.nleaves, actions.heated[i]);

		if (leaf != NULL && ncontended < EUNO_POLICY_LEAVES &&
			set_mode(cx, ops, tree, leaf, true) == EUNO_OK)
			contended[ncontended++] = *leaf;
	}
}
