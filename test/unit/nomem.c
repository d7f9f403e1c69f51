/*-------------------------------------------------------------------------
 *
 * nomem.c
 *	  Allocations that fail, each in turn; and memory that must come back.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

static uint64_t seed;
static uint32_t failures;		/* inserts that failed in this test */

/* The k-th allocation from now on fails, and all later ones if "on". */
static void
fail_from_now(NodeSource *source, uint64_t k, bool on)
{
	__atomic_store_n(&source->calls, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&source->failures, 0, __ATOMIC_RELAXED);
	source->fail_on = on;
	__atomic_store_n(&source->fail_at, k, __ATOMIC_RELAXED);
}

/*
 * Inserts an entry, with the first allocation failing, then the second, and
 * so on until there was none to fail.  Returns how often one failed.
 */
static uint32_t
insert_stubbornly(Actor *actor, Model *model, uint32_t i, bool on)
{
	Fixture    *fixture = actor->fixture;
	const EunoEntry *entry = &fixture->universe->entries[i].entry;
	uint32_t	failed = 0;

	for (uint64_t k = 1; tap_bad() == 0; k++)
	{
		EunoStatus	status;

		/* a node of a radix tree may come with a record for each child */
		CHECK(k < 300, "an insert that allocates without end");
		fail_from_now(fixture->source, k, on);
		status = fixture->ops->insert(&actor->cx, fixture->tree, entry, false);
		if (fixture->source->failures > 0)
			failed++;
		fixture->source->fail_at = 0;
		if (status == EUNO_OK)
			break;

		/* only the directory may do without the memory it asked for */
		CHECK(status == EUNO_NO_MEMORY, "insert: status %d", status);
		CHECK(fixture->source->failures > 0, "no memory, but nothing failed");
		do_contains(actor, model, i);

		/* All of it, often at first: a radix tree allocates at each insert. */
		if (failures++ < 100 || random_below(&actor->random, 64) == 0)
			check_all(actor, model);
	}
	model_set(model, i, true);
	do_contains(actor, model, i);
	return failed;
}

/* One at a time, in a tree that grows from nothing. */
static void
test_inserts(const EunoTreeOps *ops, const Shape *shape)
{
	Case		c;
	uint32_t	failed = 0;

	failures = 0;
	tap_begin("%s, %s: every allocation of an insert fails", ops->name,
			  shape->name);
	case_make(&c, ops, shape, 2500 / shape->weight / (SANITIZED ? 2 : 1),
			  seed);
	for (uint32_t i = 0; i < c.universe->n * 3 && tap_bad() == 0; i++)
	{
		uint32_t	at = random_below(&c.actor.random, c.universe->n);

		if (!c.model.present[at])
			failed += insert_stubbornly(&c.actor, &c.model, at,
										random_below(&c.actor.random, 2) == 0);
		else if (random_below(&c.actor.random, 3) == 0)
			do_remove(&c.actor, &c.model, at);
	}

	/* with posting lists, all of it may fit into the first leaf */
	CHECK(failed > 0 || shape->posting, "nothing ever failed");
	check_all(&c.actor, &c.model);
	do_compact(&c.actor);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* No memory for a long while: what needs none goes on. */
static void
test_drought(const EunoTreeOps *ops, const Shape *shape)
{
	Case		c;
	uint32_t	refused = 0;

	failures = 0;
	tap_begin("%s, %s: no memory for a while", ops->name, shape->name);
	case_make(&c, ops, shape, 3000 / shape->weight, seed);
	for (uint32_t i = 0; i < c.universe->n / 2; i++)
		do_insert(&c.actor, &c.model,
				  random_below(&c.actor.random, c.universe->n));
	fail_from_now(c.fixture.source, 1, true);
	for (uint32_t i = 0; i < c.universe->n * 2 && tap_bad() == 0; i++)
	{
		uint32_t	at = random_below(&c.actor.random, c.universe->n);

		if (random_below(&c.actor.random, 10) == 0)
			do_remove(&c.actor, &c.model, at);
		else
		{
			EunoStatus	status = ops->insert(&c.actor.cx, c.fixture.tree,
											 &c.universe->entries[at].entry,
											 false);

			if (status == EUNO_NO_MEMORY && !c.model.present[at])
				refused++;
			else
			{
				CHECK(status == (c.model.present[at] ? EUNO_EXISTS : EUNO_OK),
					  "insert: status %d", status);
				model_set(&c.model, at, true);
			}
			do_contains(&c.actor, &c.model, at);
		}
		if (i % (c.universe->n / 4 + 1) == 0)
		{
			check_all(&c.actor, &c.model);
			do_compact(&c.actor);
			check_range(&c.actor, &c.model, false);
		}
	}
	CHECK(refused > 0 || shape->posting, "nothing was refused");
	check_all(&c.actor, &c.model);
	c.fixture.source->fail_at = 0;
	for (uint32_t i = 0; i < c.universe->n && tap_bad() == 0; i++)
		do_random(&c.actor, &c.model, 90);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* A bulk load that runs out of memory at its k-th allocation. */
static EunoStatus
load_until_failure(Actor *actor, const Universe *universe, EunoBulk *bulk)
{
	const EunoTreeOps *ops = actor->fixture->ops;
	EunoTree   *tree = actor->fixture->tree;
	EunoStatus	status = ops->bulk_begin(&actor->cx, tree, bulk);

	for (uint32_t i = 0; i < universe->n && status == EUNO_OK; i++)
		status = ops->bulk_add(&actor->cx, bulk, &universe->entries[i].entry);
	if (status == EUNO_OK)
		status = ops->bulk_end(&actor->cx, bulk);
	return status;
}

/*
 * The first and the last allocations one by one; in between, where a radix
 * tree has thousands that are much alike, some.
 */
static uint64_t
next_failure(uint64_t k, uint64_t calls)
{
	uint64_t	next = k + 1 + calls / 128;

	if (k < 64 || k + 64 > calls)
		return k + 1;
	return next + 64 > calls ? calls - 63 : next;
}

static void
test_bulk(const EunoTreeOps *ops, const Shape *shape)
{
	Universe   *universe = universe_make(shape, 3000 / shape->weight, seed);
	EunoBulk   *bulk = aligned_alloc(64, sizeof(EunoBulk));
	bool		failed = true;
	uint64_t	calls = 0;

	failures = 0;
	tap_begin("%s, %s: allocations of a bulk load fail", ops->name, shape->name);
	for (uint64_t k = 0; failed && tap_bad() == 0; k = next_failure(k, calls))
	{
		Fixture		fixture;
		Actor		actor;
		Model		model;
		EunoStatus	status;

		CHECK(k < 10000, "a bulk load that allocates without end");
		fixture_open(&fixture, ops, universe, 70, 1);
		actor_init(&actor, &fixture, 1, seed);
		fail_from_now(fixture.source, k, k % 2 == 0);	/* none, if 0 */
		status = load_until_failure(&actor, universe, bulk);
		CHECK(status == EUNO_OK || status == EUNO_NO_MEMORY,
			  "bulk load: status %d", status);
		failed = fixture.source->failures > 0;
		CHECK(failed || status == EUNO_OK, "no memory, but nothing failed");
		if (k == 0)
		{
			calls = fixture.source->calls;
			failed = true;
		}
		fixture.source->fail_at = 0;

		/* only the directory may do without the memory it asked for */
		if (status == EUNO_OK)
		{
			model_init(&model, universe);
			for (uint32_t i = 0; i < universe->n; i++)
				model_set(&model, i, true);
			check_all(&actor, &model);
			model_free(&model);
		}
		actor_free(&actor);
		fixture_close(&fixture);
	}
	free(bulk);
	universe_free(universe);
	tap_end();
}

/* create, too, must say so, and work the next time. */
static void
test_create(const EunoTreeOps *ops)
{
	Universe   *universe = universe_make(&shapes[0], 10, seed);
	EunoTreeConfig config = {.order = EUNO_ORDER_BYTES, .posting = true,
		.fillfactor = 90, .ndomains = 2};
	bool		failed = true;

	failures = 0;
	tap_begin("%s: every allocation of create fails", ops->name);
	for (uint64_t k = 1; failed && tap_bad() == 0; k++)
	{
		EunoStatus	status;
		Fixture		fixture;
		Actor		actor;
		EunoTree   *tree = shared_memory(sizeof(EunoTree));

		fixture_open(&fixture, ops, universe, 70, 1);
		actor_init(&actor, &fixture, 1, seed);
		tree->alloc_arg = fixture.source;
		fail_from_now(fixture.source, k, false);
		status = ops->create(&actor.cx, tree, &config);
		failed = fixture.source->failures > 0;
		CHECK(status == EUNO_OK || (status == EUNO_NO_MEMORY && failed),
			  "create: status %d", status);
		if (status == EUNO_OK && ops == &reference_ops)
			reference_destroy(tree);
		shared_memory_free(tree, sizeof(EunoTree));
		actor_free(&actor);
		fixture_close(&fixture);
	}
	universe_free(universe);
	tap_end();
}

/*
 * Filling and emptying over and over takes no more memory than once; and a radix
 * tree that is empty takes none.
 */
static void
test_reuse(const EunoTreeOps *ops, const Shape *shape)
{
	Case		c;
	uint64_t	most = 0;

	failures = 0;
	tap_begin("%s, %s: memory is used again", ops->name, shape->name);
	case_make(&c, ops, shape, 6000 / shape->weight, seed);
	for (int cycle = 0; cycle < 8 && tap_bad() == 0; cycle++)
	{
		for (uint32_t i = 0; i < c.universe->n * 3; i++)
			do_insert(&c.actor, &c.model,
					  random_below(&c.actor.random, c.universe->n));

		/*
		 * How many leaves are contended at the moment is chance, and so is how
		 * many annexes wait for an epoch to pass.  Of a tree of few leaves one
		 * or two more are chance, too.
		 */
		if (ops->set_mode != NULL)
			(void) ops->set_mode(&c.actor.cx, c.fixture.tree, NULL, false);
		if (cycle < 3 && most < c.fixture.source->live_bytes)
			most = c.fixture.source->live_bytes;
		CHECK(cycle < 3 || c.fixture.source->live_bytes <= most + most / 4 +
			  (ops == &flapping_ops || ops == &contended_ops ? 20000 : 8192),
			  "%llu bytes of nodes in cycle %d, at most %llu before",
			  (unsigned long long) c.fixture.source->live_bytes, cycle,
			  (unsigned long long) most);
		for (uint32_t i = 0; i < c.universe->n; i++)
			do_remove(&c.actor, &c.model, i);
		do_compact(&c.actor);
		check_all(&c.actor, &c.model);
		CHECK(strncmp(ops->name, "art", 3) != 0 ||
			  c.fixture.source->live_bytes == 0,
			  "%llu bytes of an empty tree in cycle %d",
			  (unsigned long long) c.fixture.source->live_bytes, cycle);
	}
	case_close(&c);
	tap_end();
}

static void
run_once(void)
{
	for (int s = 0; s < nsubjects; s++)
	{
		if (!subject_selected(subjects[s]))
			continue;
		test_create(subjects[s]);
		for (int i = 0; i < nshapes; i++)
		{
			if (!subject_holds(subjects[s], &shapes[i]))
				continue;
			test_inserts(subjects[s], &shapes[i]);
			test_drought(subjects[s], &shapes[i]);
			if (subjects[s] != &reference_ops)
			{
				test_bulk(subjects[s], &shapes[i]);
				test_reuse(subjects[s], &shapes[i]);
			}
		}
	}
}

int
main(void)
{
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	do
	{
		run_once();
		seed++;
	} while (now() < end);
	return tap_done();
}
