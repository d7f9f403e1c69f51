/*-------------------------------------------------------------------------
 *
 * euno_policy.c
 *	  What the launcher does to trees, decided from what was counted.
 *
 * A leaf becomes hot after HOT_ROUNDS rounds in a row with hot_rate conflicts
 * a second or more, and calm after CALM_ROUNDS rounds in a row with less than
 * a quarter of that.  Once calm it stays so for CALM_ROUNDS rounds at least.
 * So it changes at most twice in 2 * CALM_ROUNDS rounds whatever happens, and
 * never while its rate stays between the two bounds (Eunomia, section 4.2.4,
 * has one bound, and no memory).
 *
 * Writers to a contended leaf hardly meet.  So its writes count as conflicts:
 * there cannot be more of these, if it were calm.
 *
 * Conflicts about different keys end when these are in different leaves: such
 * a leaf is parted by those who write to it, as soon as it has had as many as
 * a hot leaf has in a round.  Simulated, that always gained more than making
 * it contended, which is left for when as many leaves are parted as may be;
 * and only where most conflicts are about different keys, for segments are no
 * use to those who want one.  Both take memory: at most MECHANISM_PERCENT of
 * the tree's, and with the table of conflicts ALL_PERCENT; or of a small tree
 * LEAST_LEAVES leaves.  What is parted takes four fifths of that.
 *
 * What a structure does not have is not decided: a radix tree's nodes are
 * small, and neither parted nor made contended.
 *
 *-------------------------------------------------------------------------
 */
#include "worker/euno_policy.h"

#include <string.h>

/* How many times less than hot is calm, and for how many rounds. */
#define CALM_FACTOR		4
#define CALM_ROUNDS		3

/* Rounds that a leaf stays hot before it is contended. */
#define HOT_ROUNDS		2

/*
 * How many times more conflicts are about different keys than about one then.
 */
#define OTHER_FACTOR	3

/*
 * What mechanisms against contention may take.  Simulated, a tree of 200 kB
 * and more gains hardly less with so few leaves than with four times as many,
 * and much less with half of them.
 */
#define MECHANISM_PERCENT	5
#define ALL_PERCENT			6
#define LEAST_LEAVES		16

/* The table of conflicts (euno_heat.c), in leaves of 4 kB. */
#define HEAT_LEAVES			8

/* What a contended leaf takes more than a calm one, in eighths of a leaf. */
#define ANNEX_EIGHTHS	9

/* How often it is looked whether what has been parted is idle, in rounds. */
#define IDLE_ROUNDS		30

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

/* What is known of a leaf; NULL if it is not among the hottest. */
static const EunoPolicyLeaf *
find_input(const EunoPolicyInput *input, uint32_t leaf)
{
	for (uint32_t i = 0; i < input->nleaves; i++)
	{
		if (input->leaves[i].leaf == leaf)
			return &input->leaves[i];
	}
	return NULL;
}

/* Leaves that mechanisms may take. */
static uint64_t
room_for_mechanisms(const EunoPolicyInput *input)
{
	uint64_t	room = input->all_leaves * MECHANISM_PERCENT / 100;
	uint64_t	all = input->all_leaves * ALL_PERCENT / 100;

	if (room + HEAT_LEAVES > all)
		room = all > HEAT_LEAVES ? all - HEAT_LEAVES : 0;
	return room > LEAST_LEAVES ? room : LEAST_LEAVES;
}

/* Leaves that may be parted. */
static uint64_t
room_for_parts(const EunoPolicyInput *input, uint64_t contended)
{
	uint64_t	room = room_for_mechanisms(input);
	uint64_t	annexes = (contended * ANNEX_EIGHTHS + 7) / 8;
	uint64_t	rest = room > annexes ? room - annexes : 0;

	return rest < room * 4 / 5 ? rest : room * 4 / 5;
}

/*
 * Leaves that may become contended in this round: none as long as any may be
 * parted.
 */
static uint64_t
room_for_annexes(const EunoPolicyInput *input)
{
	uint64_t	room = room_for_mechanisms(input);

	if (input->parted < room_for_parts(input, input->contended))
		return 0;
	room = (room > input->parted ? room - input->parted : 0) * 8 /
		ANNEX_EIGHTHS;
	return room > input->contended ? room - input->contended : 0;
}

/*
 * Leaves that were not in mind and are going to be hot, or are contended
 * already, as far as there is room.
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

/* Does a calm leaf's round speak for having it contended? */
static bool
is_hot(const EunoPolicyLeaf *known, double hot)
{
	return known != NULL && known->conflicts + known->writes >= hot &&
		(known->writes > 0 ||
		 known->other_key >= OTHER_FACTOR * (uint64_t) known->same_key);
}

/*
 * One round of one leaf, of which this is known, if anything is; true if its
 * state has changed.  Without room for an annex it stays calm.
 */
static bool
step_leaf(EunoLeafMemory *leaf, const EunoPolicyLeaf *known, double hot,
		  bool room)
{
	bool		calm = leaf->state == EUNO_LEAF_CALM;
	bool		other = calm ? is_hot(known, hot) :
		known == NULL || known->conflicts + known->writes < hot / CALM_FACTOR;
	uint32_t	enough = calm ? HOT_ROUNDS : CALM_ROUNDS;

	leaf->rounds++;
	leaf->streak = other ? leaf->streak + 1 : 0;
	if (leaf->streak < enough || leaf->rounds <= CALM_ROUNDS ||
		(calm && !room))
		return false;
	leaf->state = calm ? EUNO_LEAF_HOT : EUNO_LEAF_CALM;
	leaf->streak = 0;
	leaf->rounds = 0;
	return true;
}

/* Which leaves have become hot, or calm again? */
static void
decide_leaves(const EunoPolicySettings *settings, const EunoPolicyInput *input,
			  EunoPolicyMemory *memory, uint32_t *budget,
			  EunoPolicyActions *actions)
{
	double		hot = settings->hot_rate > 0 ?
		settings->hot_rate * input->seconds : UINT32_MAX;
	uint32_t	kept = 0;
	uint64_t	room = room_for_annexes(input);

	if (!input->can_contend)
	{
		memory->nleaves = 0;
		return;
	}
	remember(memory, input, hot);
	for (uint32_t i = 0; i < memory->nleaves; i++)
	{
		EunoLeafMemory leaf = memory->leaves[i];

		if (*budget > 0 &&
			step_leaf(&leaf, find_input(input, leaf.leaf), hot, room > 0))
		{
			(*budget)--;
			if (leaf.state == EUNO_LEAF_HOT)
			{
				room--;
				actions->heated[actions->nheated++] = leaf.leaf;
			}
			else
				actions->cooled[actions->ncooled++] = leaf.leaf;
		}
		actions->hot += leaf.state == EUNO_LEAF_HOT;

		/* What has been calm for as long as it must be is forgotten. */
		if (leaf.state == EUNO_LEAF_HOT || leaf.streak > 0 ||
			leaf.rounds < CALM_ROUNDS)
			memory->leaves[kept++] = leaf;
	}
	memory->nleaves = kept;
}

/* When shall leaves be parted until the next round? */
static void
decide_parting(const EunoPolicySettings *settings,
			   const EunoPolicyInput *input, EunoPolicyActions *actions)
{
	uint64_t	room = room_for_parts(input, input->contended + actions->nheated);
	double		conflicts = settings->hot_rate * settings->naptime;

	if (!input->can_part)
		return;
	actions->part_most = room < UINT32_MAX ? (uint32_t) room : UINT32_MAX;
	actions->part_at = conflicts <= 0 ? 0 : conflicts < 1 ? 1 :
		conflicts < UINT32_MAX ? (uint32_t) conflicts : UINT32_MAX;
}

/*
 * Merging is due when many entries have been removed since the last one.
 * Leaves that are contended and not known to be hot (the launcher may have
 * been restarted, or have too many in mind) are sought the same way; now and
 * then, so is what was parted and is idle.
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
	if (input->parted == 0)
		memory->idle_rounds = 0;
	else if (++memory->idle_rounds % IDLE_ROUNDS == 0)
		memory->merging = true;
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
	decide_parting(settings, input, actions);
	decide_merging(settings, input, memory, budget, actions);
}

void
euno_policy_merged(EunoPolicyMemory *memory)
{
	memory->merging = false;
}
