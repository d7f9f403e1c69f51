/*-------------------------------------------------------------------------
 *
 * policy.c
 *	  What the launcher decides: hysteresis, budget, nothing without reason.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "tap.h"
#include "worker/euno_policy.h"

#define HOT		1000			/* conflicts a second */
#define ROUNDS	2000

/* Of a small tree, as many leaves as may be parted. */
#define PARTED	12

static const EunoPolicySettings settings = {
	.hot_rate = HOT,.merge_part = 0.1,.naptime = 2
};

/* One round of a tree with one leaf; +1: it has become hot, -1: calm. */
static int
play_leaf(EunoPolicyMemory *memory, uint32_t conflicts, double seconds,
		  uint32_t *hot)
{
	EunoPolicyInput input = {.generation = 7,.seconds = seconds,
		.can_contend = true,.can_part = true,
		.parted = PARTED,.nleaves = 1,
	.leaves = {{.leaf = 5,.conflicts = conflicts}}};
	EunoPolicyActions actions;
	uint32_t	budget = 10;

	if (conflicts == 0)
		input.nleaves = 0;
	euno_policy_decide(&settings, &input, memory, &budget, &actions);
	CHECK(actions.nheated + actions.ncooled <= 1 &&
		  budget == 10 - actions.nheated - actions.ncooled &&
		  actions.look == 0, "more than one action for one leaf");
	if (hot != NULL)
		*hot = actions.hot;
	return (int) actions.nheated - (int) actions.ncooled;
}

static void
test_follows(void)
{
	EunoPolicyMemory memory = {0};
	uint32_t	hot;

	tap_begin("a leaf is hot after two rounds, and calm after some");
	CHECK(play_leaf(&memory, HOT - 1, 1, &hot) == 0 && hot == 0, "too early");
	CHECK(play_leaf(&memory, HOT, 1, &hot) == 0 && hot == 0, "at once");
	CHECK(play_leaf(&memory, HOT, 1, &hot) == 1 && hot == 1, "not in two");
	CHECK(play_leaf(&memory, HOT / 4 - 1, 1, NULL) == 0, "calm at once");
	CHECK(play_leaf(&memory, 0, 1, NULL) == 0, "calm in two rounds");
	CHECK(play_leaf(&memory, 0, 1, &hot) == 0 && hot == 1, "calm in three");
	CHECK(play_leaf(&memory, 0, 1, &hot) == -1 && hot == 0, "not calm in four");
	CHECK(play_leaf(&memory, 5 * HOT, 1, NULL) == 0, "hot again at once");
	CHECK(play_leaf(&memory, 5 * HOT, 1, NULL) == 0, "hot again in two rounds");
	for (int i = 0; i < 3; i++)
		(void) play_leaf(&memory, 5 * HOT, 1, &hot);
	CHECK(hot == 1, "never hot again");
	memset(&memory, 0, sizeof(memory));
	CHECK(play_leaf(&memory, HOT, 2, NULL) == 0 &&
		  play_leaf(&memory, HOT, 2, NULL) == 0, "the round's length is ignored");
	tap_end();
}

/* Whatever the input, changes are rare; between the bounds there are none. */
static void
test_flapping(uint64_t seed)
{
	Random		random;

	tap_begin("no input makes a leaf flap");
	random.state = seed;
	for (int kind = 0; kind < 40 && tap_bad() == 0; kind++)
	{
		EunoPolicyMemory memory = {0};
		uint32_t	changes = 0;
		int			last = 0;
		int			since = 100;

		for (int i = 0; i < ROUNDS; i++)
		{
			uint32_t	rate = kind < 20 ?
				(uint32_t) (i / (kind + 1) % 2) * 10 * HOT :
				random_below(&random, 3) == 0 ? 0 :
				random_below(&random, 3 * HOT);
			int			change = play_leaf(&memory, rate, 1, NULL);

			since++;
			if (change == 0)
				continue;
			CHECK(change != last, "changed to what it was");
			CHECK(since >= 3, "changed after %d rounds", since);
			last = change;
			since = 0;
			changes++;
		}
		CHECK(changes > 0 || kind < 20, "never changed");
		CHECK(changes <= 2 * (ROUNDS / 7 + 1), "%u changes", changes);
	}
	for (int start = 0; start < 2; start++)
	{
		EunoPolicyMemory memory = {0};

		if (start == 1)
			(void) play_leaf(&memory, HOT, 1, NULL);
		for (int i = 0; i < ROUNDS; i++)
			CHECK(play_leaf(&memory, HOT / 4 +
							(uint32_t) random_below(&random, HOT * 3 / 4), 1,
							NULL) == 0, "changed between the bounds");
	}
	tap_end();
}

/*
 * A contended leaf whose writers do not meet any more stays so while they
 * write.
 */
static void
test_contended(void)
{
	EunoPolicyInput input = {.generation = 4,.seconds = 1,.contended = 1,
		.can_contend = true,
	.nleaves = 1,.leaves = {{.leaf = 9,.writes = HOT / 2}}};
	EunoPolicyMemory memory = {0};
	EunoPolicyActions actions;
	uint32_t	budget = 1000;

	tap_begin("contended leaves are calm when nobody writes to them");
	for (int i = 0; i < 50; i++)
	{
		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
		CHECK(actions.hot == 1 && actions.nheated + actions.ncooled == 0 &&
			  actions.look == 0, "something is done to it");
	}
	input.leaves[0].writes = HOT / 4 - 1;
	for (int i = 0; i < 3; i++)
		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
	CHECK(actions.ncooled == 1 && actions.cooled[0] == 9, "it is not calm");

	CHECK(actions.look == 0, "sought too early");

	/* One that nobody has heard of. */
	input.can_merge = true;
	input.nleaves = 0;
	euno_policy_decide(&settings, &input, &memory, &budget, &actions);
	CHECK(actions.look > 0, "it is not sought");
	budget = 1000;
	input.contended = 0;
	euno_policy_decide(&settings, &input, &memory, &budget, &actions);
	CHECK(actions.look == 0 && budget == 1000, "it is sought in vain");
	tap_end();
}

/* Without a rate no leaf is ever hot. */
static void
test_off(void)
{
	EunoPolicySettings off = {.hot_rate = 0};
	EunoPolicyInput input = {.generation = 5,.seconds = 1,.nleaves = 1,
		.can_contend = true,
	.leaves = {{.leaf = 9,.conflicts = 1000000}}};
	EunoPolicyMemory memory = {0};
	EunoPolicyActions actions;
	uint32_t	budget = 1000;

	tap_begin("the rate of 0 turns it off");
	for (int i = 0; i < 5; i++)
	{
		euno_policy_decide(&off, &input, &memory, &budget, &actions);
		CHECK(actions.hot == 0 && actions.nheated == 0, "a leaf is hot");
	}
	tap_end();
}

static void
test_budget(void)
{
	EunoPolicyInput input = {.generation = 1,.seconds = 1,.all_leaves = 10000,
		.can_contend = true,
		.parted = 400,.nleaves = EUNO_POLICY_LEAVES};
	EunoPolicyMemory memory = {0};
	EunoPolicyActions actions;
	uint32_t	heated = 0;

	tap_begin("the budget is kept, and what was left comes later");
	for (uint32_t i = 0; i < input.nleaves; i++)
	{
		input.leaves[i].leaf = i + 1;
		input.leaves[i].conflicts = 2 * HOT;
	}
	for (int i = 0; i < 20; i++)
	{
		uint32_t	budget = 5;

		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
		CHECK(actions.nheated <= 5 && budget == 5 - actions.nheated,
			  "%u of 5", actions.nheated);
		heated += actions.nheated;
	}
	CHECK(heated == EUNO_POLICY_LEAVES && actions.hot == heated,
		  "%u were heated", heated);
	input.generation = 2;
	input.nleaves = 0;
	for (int i = 0; i < 5; i++)
	{
		uint32_t	budget = 5;

		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
		CHECK(budget == 5 && actions.hot == 0 && actions.nheated == 0 &&
			  actions.ncooled == 0 && actions.look == 0 && memory.nleaves == 0,
			  "something is done to a new tree in which nothing happens");
	}
	tap_end();
}

/*
 * A leaf's rounds, with conflicts about one key and about others; when is it
 * hot?
 */
static int
rounds_to_hot(uint32_t same_key, uint32_t other_key, uint32_t parted)
{
	EunoPolicyInput input = {.generation = 6,.seconds = 1,.parted = parted,
		.can_contend = true,.can_part = true,
	.nleaves = 1,
	.leaves = {{.leaf = 9,.conflicts = 2 * HOT,.same_key = same_key,.other_key = other_key}}};
	EunoPolicyMemory memory = {0};

	for (int i = 1; i < 10; i++)
	{
		EunoPolicyActions actions;
		uint32_t	budget = 1000;

		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
		CHECK(actions.part_at == 2 * HOT, "parted at %u", actions.part_at);
		if (actions.nheated > 0)
			return i;
	}
	return 0;
}

static void
test_parting(void)
{
	tap_begin("leaves are contended if no more may be parted, and not for one key");
	CHECK(rounds_to_hot(10, 100, PARTED) == 2, "for different keys");
	CHECK(rounds_to_hot(0, 0, PARTED) == 2, "for nothing that is known");
	CHECK(rounds_to_hot(10, 20, PARTED) == 0, "for few keys");
	CHECK(rounds_to_hot(100, 10, PARTED) == 0, "for one key");
	CHECK(rounds_to_hot(10, 100, PARTED - 1) == 0, "though it may be parted");
	tap_end();
}

/* Whatever is hot, what is done about it takes a part of the tree's memory. */
static void
test_memory(void)
{
	EunoPolicySettings off = {.naptime = 1};
	EunoPolicyMemory memory = {0};
	EunoPolicyActions actions;
	uint32_t	leaf = 0;

	tap_begin("mechanisms take a twentieth of the tree, 6 percent with the table of conflicts");
	for (uint32_t size = 100; size <= 102400; size *= 2)
	{
		EunoPolicyInput input = {.generation = size,.seconds = 1,
			.can_contend = true,.can_part = true,
			.all_leaves = size,.nleaves = EUNO_POLICY_LEAVES};
		double		most = 0.05 * size < 0.06 * size - 8 ? 0.05 * size :
			size >= 400 ? 0.06 * size - 8 : 16;

		for (int round = 0; round < 200; round++)
		{
			uint32_t	budget = 1000;

			/* Half of what may be parted is, each time. */
			for (uint32_t i = 0; i < input.nleaves; i++)
				input.leaves[i] = (EunoPolicyLeaf) {.leaf = ++leaf,
					.conflicts = 2 * HOT};
			euno_policy_decide(&settings, &input, &memory, &budget, &actions);
			input.contended += actions.nheated;
			if (input.parted < actions.part_most)
				input.parted += (actions.part_most - input.parted + 1) / 2;
			CHECK((double) input.parted + (double) input.contended * 1.125 <=
				  most + 1, "%llu parted and %llu contended of %u",
				  (unsigned long long) input.parted,
				  (unsigned long long) input.contended, size);
		}
		CHECK((double) input.parted + (double) input.contended * 1.125 >=
			  most / 2, "it does nothing");
	}
	euno_policy_decide(&off, &(EunoPolicyInput) {.generation = 9,.can_part = true}, &memory,
					   &(uint32_t) {10}, &actions);
	CHECK(actions.part_at == 0, "parted though that is off");
	tap_end();
}

/* Of what a structure does not have nothing is decided. */
static void
test_absent(void)
{
	EunoPolicyMemory memory = {0};
	EunoPolicyActions actions;

	tap_begin("what a structure does not have is not asked for");
	for (int has = 0; has < 4; has++)
	{
		EunoPolicyInput input = {.generation = 10 + has,.seconds = 1,
			.can_contend = (has & 1) != 0,.can_part = (has & 2) != 0,
			.can_merge = true,.parted = PARTED,.nleaves = 1,
		.leaves = {{.leaf = 9,.conflicts = 2 * HOT,.other_key = 2 * HOT}}};
		uint32_t	heated = 0;

		for (int round = 0; round < 10; round++)
		{
			uint32_t	budget = 1000;

			euno_policy_decide(&settings, &input, &memory, &budget, &actions);
			heated += actions.nheated;
			CHECK((actions.part_at > 0) == input.can_part &&
				  (actions.part_most > 0) == input.can_part,
				  "%u conflicts part one of %u leaves", actions.part_at,
				  actions.part_most);
			CHECK(budget == 1000 - actions.nheated - actions.look,
				  "what is not done costs something");
		}
		CHECK(heated == input.can_contend && actions.hot == heated,
			  "%u leaves were heated", heated);
		CHECK(memory.nleaves == heated, "%u leaves are remembered",
			  memory.nleaves);
	}
	tap_end();
}

/* What is parted is looked at now and then. */
static void
test_idle_parts(void)
{
	EunoPolicyInput input = {.generation = 8,.seconds = 1,.can_merge = true,
	.parted = 3};
	EunoPolicyMemory memory = {0};
	uint32_t	passes = 0;

	tap_begin("what was parted is looked at now and then");
	for (int i = 0; i < 300; i++)
	{
		EunoPolicyActions actions;
		uint32_t	budget = 10;

		euno_policy_decide(&settings, &input, &memory, &budget, &actions);
		passes += actions.look > 0;
		if (actions.look > 0)
			euno_policy_merged(&memory);
	}
	CHECK(passes == 10, "%u times in 300 rounds", passes);
	tap_end();
}

/* Does the policy ask for merging? */
static bool
play_merging(EunoPolicyMemory *memory, uint64_t entries, uint64_t removals,
			 uint32_t budget)
{
	EunoPolicyInput input = {.generation = 3,.seconds = 1,.entries = entries,
	.removals = removals,.can_merge = true};
	EunoPolicyActions actions;
	uint32_t	left = budget;

	euno_policy_decide(&settings, &input, memory, &left, &actions);
	CHECK(actions.look == budget - left, "looks at more than it may");
	return actions.look > 0;
}

static void
test_merging(void)
{
	EunoPolicyMemory memory = {0};

	tap_begin("leaves are merged after removals, and once");
	CHECK(!play_merging(&memory, 100000, 50000, 100), "for what was before");
	CHECK(!play_merging(&memory, 100000, 50999, 100), "too early");
	CHECK(!play_merging(&memory, 100000, 60000, 100), "too early");
	CHECK(play_merging(&memory, 90000, 61000, 100), "not after a tenth");
	CHECK(!play_merging(&memory, 90000, 61000, 0), "without a budget");
	CHECK(play_merging(&memory, 90000, 61000, 100), "not to the end");
	euno_policy_merged(&memory);
	CHECK(!play_merging(&memory, 90000, 61000, 100), "again");
	CHECK(!play_merging(&memory, 100, 61900, 100), "for a few");
	CHECK(play_merging(&memory, 0, 62000, 100), "not an empty tree");
	tap_end();
}

/* Lets the policy decide; how many copies there are then, and their bytes. */
static uint32_t
play_copies(double least_use, uint64_t budget, EunoPolicyCopy *copies,
			uint32_t n, uint64_t *bytes)
{
	uint32_t	kept = 0;

	euno_policy_copies(least_use, budget, copies, n);
	*bytes = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		copies[i].made = copies[i].keep;
		if (!copies[i].keep)
			continue;
		kept++;
		if (!copies[i].asked)
			*bytes += copies[i].bytes;
	}
	return kept;
}

static void
test_copies(void)
{
	EunoPolicyCopy copies[4] = {
		{.tree = 1,.domain = 1,.bytes = 100,.use = 1000},
		{.tree = 1,.domain = 2,.bytes = 100,.use = 5},
		{.tree = 2,.domain = 1,.bytes = 1000,.use = 5000},
		{.tree = 3,.domain = 1,.bytes = 100,.asked = true}
	};
	uint64_t	bytes;
	uint32_t	kept;

	tap_begin("copies of inner nodes are for those who use them");
	kept = play_copies(10, 1000000, copies, 4, &bytes);
	CHECK(kept == 3 && bytes == 1100, "%u copies, %llu bytes", kept,
		  (unsigned long long) bytes);
	for (int i = 0; i < 4; i++)
		CHECK(copies[i].keep == (copies[i].domain == 1), "the wrong ones");

	/* Nobody uses them, but nobody else wants their room. */
	for (int i = 0; i < 4; i++)
		copies[i].use = 0;
	CHECK(play_copies(10, 1000000, copies, 4, &bytes) == 3, "dropped in vain");
	CHECK(play_copies(10, 200, copies, 4, &bytes) == 2 && bytes == 100,
		  "not as many as there is room for");
	CHECK(play_copies(10, 0, copies, 4, &bytes) == 1 && bytes == 0,
		  "without a budget those are left that are asked for");
	tap_end();
}

/* Whatever the use: within the budget, and no copy makes way for its equal. */
static void
test_copies_flapping(uint64_t seed)
{
	EunoPolicyCopy copies[200];
	Random		random;

	tap_begin("copies stay within their budget, and do not take turns");
	random.state = seed;
	for (int kind = 0; kind < 50 && tap_bad() == 0; kind++)
	{
		uint32_t	n = 1 + random_below(&random, 200);
		uint64_t	budget = random_below(&random, 100000);
		uint64_t	bytes;

		memset(copies, 0, sizeof(copies));
		for (uint32_t i = 0; i < n; i++)
		{
			copies[i].tree = (int) i / 3;
			copies[i].domain = 1 + (int) i % 3;
			copies[i].bytes = 100 + random_below(&random, 2000);
			copies[i].asked = random_below(&random, 20) == 0;
		}
		for (int round = 0; round < 40; round++)
		{
			uint32_t	changes = 0;
			uint64_t	asked = 0;

			/* Use goes up and down by less than half. */
			for (uint32_t i = 0; i < n; i++)
			{
				uint32_t	place = (uint32_t) (copies[i].tree * 3 + copies[i].domain);

				copies[i].use = (double) copies[i].bytes * (1 + place % 7 * 3) *
					(1 + 0.4 * (double) random_below(&random, 1000) / 1000);
				asked += copies[i].asked ? copies[i].bytes : 0;
				copies[i].keep = copies[i].made;
			}
			for (uint32_t i = 0; i < n; i++)
				copies[i].made = copies[i].keep;
			euno_policy_copies(1, budget, copies, n);
			bytes = 0;
			for (uint32_t i = 0; i < n; i++)
			{
				bytes += copies[i].keep ? copies[i].bytes : 0;
				changes += copies[i].keep != copies[i].made;
				CHECK(copies[i].keep || !copies[i].asked, "one is not there");
				copies[i].made = copies[i].keep;
			}
			CHECK(bytes <= (budget > asked ? budget : asked),
				  "%llu bytes of %llu", (unsigned long long) bytes,
				  (unsigned long long) budget);
			CHECK(round < 20 || changes == 0, "%u changes in round %d", changes,
				  round);
		}
	}
	tap_end();
}

int
main(void)
{
	uint64_t	seed = test_seed();

	printf("# seed %llu\n", (unsigned long long) seed);
	test_follows();
	test_flapping(seed);
	test_contended();
	test_off();
	test_budget();
	test_parting();
	test_memory();
	test_absent();
	test_idle_parts();
	test_merging();
	test_copies();
	test_copies_flapping(seed);
	return tap_done();
}
