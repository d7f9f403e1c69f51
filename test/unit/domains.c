/*-------------------------------------------------------------------------
 *
 * domains.c
 *	  Directories that lag: answers stay right, and what was noted is posted.
 *
 * With one thread, so that what is in a log is known exactly.  Threads with
 * several domains are in threads.c and processes.c.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

#define DOMAINS 4

static uint64_t seed;

/* The same of all domains, of which the first has a directory. */
static void
open_single(Case *c, const EunoTreeOps *ops, const Universe *universe)
{
	case_open(c, ops, universe, DOMAINS, seed);
	memset(c->fixture.tree->body, 0, sizeof(c->fixture.tree->body));
	c->fixture.tree->config.domains = 1;
	CHECK(ops->create(&c->actor.cx, c->fixture.tree, &c->fixture.tree->config) == EUNO_OK,
		  "cannot create");
}

static EunoTreeStats
domain_stats(Case *c, int domain)
{
	EunoTreeStats stats;

	c->actor.cx.domain = domain;
	c->fixture.ops->stats(&c->actor.cx, c->fixture.tree, &stats);
	return stats;
}

/* Inserts every entry that is a multiple of "step", in an order of its own. */
static void
insert_from(Case *c, int domain, uint32_t step)
{
	uint32_t	n = c->fixture.universe->n;

	c->actor.cx.domain = domain;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	entry = (uint32_t) ((uint64_t) i * 7919 % n);

		if (entry % step == 0 && !c->model.present[entry])
			do_insert(&c->actor, &c->model, entry);
	}
}

/* Looks every entry up from a domain; how often it went right. */
static uint64_t
hops(Case *c, int domain)
{
	uint64_t	before = c->actor.cx.counters.right_moves;

	c->actor.cx.domain = domain;
	for (uint32_t i = 0; i < c->fixture.universe->n; i += 5)
		do_contains(&c->actor, &c->model, i);
	return c->actor.cx.counters.right_moves - before;
}

/* Moves leaves here and there; how many. */
static uint32_t
move_some(Case *c)
{
	const Universe *universe = c->fixture.universe;
	uint32_t	moved = 0;

	for (uint32_t i = 0; i < universe->n; i += 53)
	{
		const EunoEntry *entry = &universe->entries[i].entry;
		EunoPosition pos = euno_position_of(entry);
		EunoStatus	status = c->fixture.ops->migrate(&c->actor.cx,
													 c->fixture.tree, &pos,
													 (int) (i % DOMAINS));

		CHECK(status == EUNO_OK || status == EUNO_NOT_FOUND,
			  "migrate: status %d", status);
		moved += status == EUNO_OK;
	}
	return moved;
}

/* Nobody posts for other domains: what they read is right all the same. */
static void
test_lag(const EunoTreeOps *ops, const Universe *universe)
{
	uint64_t	inners = 0;
	uint64_t	frees;
	Case		c;

	tap_begin("%s, %s: directories at their greatest lag", ops->name,
			  universe->shape->name);
	case_open(&c, ops, universe, DOMAINS, seed);
	insert_from(&c, 0, 64);
	for (int d = 0; d < DOMAINS; d++)
		ops->maintain(&c.actor.cx, c.fixture.tree, d);
	c.actor.cx.lagging = true;
	insert_from(&c, 0, 2);
	for (int d = 1; d < DOMAINS; d++)
	{
		CHECK(domain_stats(&c, d).lag > 0, "domain %d knows all", d);
		CHECK(hops(&c, d) > 0, "domain %d never goes right", d);
		for (int i = 0; i < 20; i++)
			check_range(&c.actor, &c.model, false);
	}
	insert_from(&c, 2, 1);
	check_all(&c.actor, &c.model);

	/* Move leaves, of which some are noted; their memory is used again. */
	frees = c.fixture.source->frees;
	CHECK(move_some(&c) > 0, "nothing was moved");
	CHECK(c.fixture.source->frees > frees, "no leaf was given back");
	check_all(&c.actor, &c.model);

	/* Merge leaves that are noted, then go on. */
	for (uint32_t i = 0; i < universe->n; i++)
	{
		if (i % 16 != 0 && c.model.present[i])
			do_remove(&c.actor, &c.model, i);
	}
	do_compact(&c.actor);
	check_all(&c.actor, &c.model);
	insert_from(&c, 1, 1);
	check_all(&c.actor, &c.model);

	c.actor.cx.lagging = false;
	for (int d = 0; d < DOMAINS; d++)
	{
		uint64_t	moves;

		ops->maintain(&c.actor.cx, c.fixture.tree, d);
		CHECK(domain_stats(&c, d).lag == 0, "domain %d lags after maintain", d);
		moves = hops(&c, d);
		CHECK(moves == 0, "domain %d goes right %llu times after maintain", d,
			  (unsigned long long) moves);
	}
	check_all(&c.actor, &c.model);
	for (int d = 1; d < DOMAINS; d++)
		inners += domain_stats(&c, d).inners;
	CHECK(SANITIZED || universe->shape->weight > 1 ||
		  inners * 4096 * 100 <= c.fixture.source->live_bytes * 4,
		  "%llu copies of inner nodes for %llu bytes", (unsigned long long) inners,
		  (unsigned long long) c.fixture.source->live_bytes);
	case_close(&c);
	tap_end();
}

/* A domain that is only read catches up by itself. */
static void
test_catch_up(const EunoTreeOps *ops, const Universe *universe)
{
	Case		c;

	tap_begin("%s, %s: readers bring their directory up to date", ops->name,
			  universe->shape->name);
	case_open(&c, ops, universe, 2, seed);
	insert_from(&c, 0, 1);
	(void) hops(&c, 1);
	(void) hops(&c, 1);
	CHECK(hops(&c, 1) == 0, "the third time round it still goes right");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* A tree that begins with one directory has no logs until it has more. */
static void
test_first(const EunoTreeOps *ops, const Universe *universe)
{
	EunoStatus	status = EUNO_NO_MEMORY;
	uint64_t	live;
	Case		c;

	tap_begin("%s, %s: the first directory beside another one", ops->name,
			  universe->shape->name);
	open_single(&c, ops, universe);
	insert_from(&c, 2, 2);
	check_all(&c.actor, &c.model);
	CHECK(domain_stats(&c, 2).domains == 1 && domain_stats(&c, 2).lag == 0,
		  "there are others");
	for (int fail = 1; status != EUNO_OK && fail < 1000; fail++)
	{
		live = c.fixture.source->live;
		c.fixture.source->fail_at = c.fixture.source->calls + (uint64_t) fail;
		status = ops->set_domains(&c.actor.cx, c.fixture.tree, 5);
		c.fixture.source->fail_at = 0;
		CHECK(status == EUNO_OK || c.fixture.source->live <= live + 2,
			  "more than two logs are left without memory for the rest");
		(void) hops(&c, 2);
	}
	CHECK(domain_stats(&c, 0).domains == 5, "it has not come");
	c.actor.cx.lagging = true;
	insert_from(&c, 0, 1);
	CHECK(domain_stats(&c, 2).lag > 0, "nothing is noted for it");
	c.actor.cx.lagging = false;
	ops->maintain(&c.actor.cx, c.fixture.tree, 2);
	CHECK(hops(&c, 2) == 0, "it is not brought up to date");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* Directories come and go, in any domain but the first. */
static void
test_set_domains(const EunoTreeOps *ops, const Universe *universe)
{
	static const uint32_t steps[] = {1, 7, 3, 9, 15, 1, 11};
	Case		c;

	tap_begin("%s, %s: directories are dropped and built", ops->name,
			  universe->shape->name);
	case_open(&c, ops, universe, DOMAINS, seed);
	insert_from(&c, 0, 8);
	for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		CHECK(ops->set_domains(&c.actor.cx, c.fixture.tree, steps[i]) == EUNO_OK,
			  "set_domains fails");
		CHECK(domain_stats(&c, 0).domains == steps[i], "others have one");
		for (int d = 0; d < DOMAINS; d++)
		{
			CHECK(d > 0 || domain_stats(&c, 0).height > 1, "no directory");
			if ((steps[i] >> d & 1) == 0)
				CHECK(domain_stats(&c, d).lag == domain_stats(&c, 0).lag,
					  "domain %d is not served by the first directory", d);
			insert_from(&c, d, (uint32_t) (7 - i));
			ops->maintain(&c.actor.cx, c.fixture.tree, d);
			CHECK(hops(&c, d) == 0, "domain %d of %u goes right", d, steps[i]);
		}
		check_all(&c.actor, &c.model);
		for (uint32_t e = i; e < universe->n; e += 3)
		{
			if (c.model.present[e])
				do_remove(&c.actor, &c.model, e);
		}
		do_compact(&c.actor);
		check_all(&c.actor, &c.model);
	}
	case_close(&c);
	tap_end();
}

/* Leaves go to the domain that uses them, and stay where others do. */
static void
test_settle(const EunoTreeOps *ops, const Universe *universe)
{
	EunoCounters *counters;
	uint64_t	before;
	uint64_t	after;
	uint32_t	moved;
	Case		c;

	tap_begin("%s, %s: leaves are moved to who uses them", ops->name,
			  universe->shape->name);
	case_open(&c, ops, universe, 2, seed);
	counters = &c.actor.cx.counters;
	insert_from(&c, 0, 1);
	c.actor.cx.count_all = true;
	for (int i = 0; i < 8; i++)
		(void) hops(&c, 0);
	CHECK(ops->settle(&c.actor.cx, c.fixture.tree, 1000000) == 0,
		  "leaves leave the domain that uses them");
	before = counters->remote;
	for (int i = 0; i < 20; i++)
		(void) hops(&c, 1);
	before = counters->remote - before;
	moved = ops->settle(&c.actor.cx, c.fixture.tree, 1000000);
	CHECK(moved > 0, "nothing was moved");
	check_all(&c.actor, &c.model);
	c.actor.cx.domain = 1;
	ops->maintain(&c.actor.cx, c.fixture.tree, 0);
	ops->maintain(&c.actor.cx, c.fixture.tree, 1);
	after = counters->remote;
	for (int i = 0; i < 20; i++)
		(void) hops(&c, 1);
	after = counters->remote - after;
	CHECK(after < before / 2, "%u leaves moved, %llu remote descents before, %llu after",
		  moved, (unsigned long long) before, (unsigned long long) after);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/*
 * A domain that inserts little splits leaves that another one uses: the new
 * ones are that one's, without being moved.
 */
static void
test_home(const EunoTreeOps *ops, const Universe *universe)
{
	EunoCounters *counters;
	uint32_t	n = universe->n;
	uint64_t	reads = 0;
	Case		c;

	tap_begin("%s, %s: a split's new leaf goes to who uses the old one",
			  ops->name, universe->shape->name);
	case_open(&c, ops, universe, 2, seed);
	counters = &c.actor.cx.counters;
	c.actor.cx.count_all = true;
	insert_from(&c, 1, 64);
	counters->remote = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	entry = (uint32_t) ((uint64_t) i * 7919 % n);

		c.actor.cx.domain = 0;
		if (!c.model.present[entry])
			do_insert(&c.actor, &c.model, entry);
		c.actor.cx.domain = 1;
		counters->remote = 0;
		for (uint32_t k = 1; k < 10; k++)
			do_contains(&c.actor, &c.model,
						(uint32_t) (((uint64_t) i * 31 + k * 7907) % n));
		reads += counters->remote;
	}
	printf("# %llu of %llu reads are of remote leaves\n",
		   (unsigned long long) reads, (unsigned long long) n * 9);
	CHECK(reads * 5 < (uint64_t) n * 9, "%llu of %llu reads are remote",
		  (unsigned long long) reads, (unsigned long long) n * 9);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* Without memory for a log or a directory a domain has none, for the time being. */
static void
test_no_memory(const EunoTreeOps *ops, const Universe *universe)
{
	Case		c;
	EunoStatus	status = EUNO_NO_MEMORY;

	tap_begin("%s, %s: no memory for directories", ops->name,
			  universe->shape->name);
	case_open(&c, ops, universe, DOMAINS, seed);
	insert_from(&c, 0, 1);
	CHECK(ops->set_domains(&c.actor.cx, c.fixture.tree, 1) == EUNO_OK &&
		  domain_stats(&c, 0).domains == 1, "cannot drop");
	for (uint64_t k = 1; status != EUNO_OK && k < 500; k++)
	{
		c.fixture.source->fail_at = c.fixture.source->calls + k;
		c.fixture.source->fail_on = false;
		status = ops->set_domains(&c.actor.cx, c.fixture.tree,
								  (1 << DOMAINS) - 1);
		c.fixture.source->fail_at = 0;
		check_all(&c.actor, &c.model);
		for (int d = 0; d < DOMAINS; d++)
			(void) hops(&c, d);
	}
	CHECK(status == EUNO_OK, "never succeeds");
	CHECK(c.fixture.source->failures > 0, "no allocation failed");
	case_close(&c);
	tap_end();
}

int
main(void)
{
	static const char *const names[] = {"sparse int8", "text, long prefixes", "10 per key",
	"comparator"};

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	for (int s = 0; s < nsubjects; s++)
	{
		const EunoTreeOps *ops = subjects[s];

		if (ops->set_domains == NULL || !subject_selected(ops))
			continue;
		for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		{
			const Shape *shape = shape_by_name(names[i]);
			Universe   *many;
			Universe   *few;

			if (shape == NULL || !subject_holds(ops, shape))
				continue;
			many = universe_make(shape, (SANITIZED ? 80000 : 200000) / shape->weight,
								 seed);
			few = universe_make(shape, 20000 / shape->weight, seed);
			test_set_domains(ops, few);
			test_no_memory(ops, few);

			/* a chain of leaves, and what is behind it */
			if (ops->settle != NULL)
			{
				test_lag(ops, many);
				test_catch_up(ops, few);
				test_settle(ops, few);
				test_home(ops, few);
				test_first(ops, few);
			}
			universe_free(many);
			universe_free(few);
		}
	}
	return tap_done();
}
