/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  A mob of threads on few leaves.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook.h"
#include "mob.h"
#include "tap.h"

static uint64_t seed;

typedef struct Thread
{
	pthread_t	thread;
	Mob		   *mob;
	MobRole		role;
	uint32_t	slot;
} Thread;

static void *
thread_main(void *arg)
{
	Thread	   *thread = arg;

	mob_work(thread->mob, thread->role, thread->slot);
	return NULL;
}

typedef struct Setup
{
	const char *shape;
	uint32_t	n;
	uint16_t	ndomains;
	uint32_t	writers;
	uint32_t	escape_every;
	bool		lagging;
} Setup;

/*
 * Should there have been a merge?  There is more than one leaf then, and
 * leaves are not contended, which are not merged.
 */
static bool
merges_leaves(Mob *mob)
{
	const char *name = mob->fixture.ops->name;
	EunoTreeStats stats;
	Actor		actor;

	if (strcmp(name, "bptree/contended") == 0 ||
		strcmp(name, "bptree/flapping") == 0)
		return false;
	actor_init(&actor, &mob->fixture, MAX_ACTORS - 1, seed);
	mob->fixture.ops->stats(&actor.cx, mob->fixture.tree, &stats);
	actor_free(&actor);
	return stats.leaves > 1;
}

/* Has everybody done something, and was there a whole walk, and a merge? */
static bool
all_worked(Mob *mob, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
	{
		if (__atomic_load_n(&mob->operations[i], __ATOMIC_RELAXED) == 0)
			return false;
	}
	if (mob->fixture.ops != &reference_ops &&
		__atomic_load_n(&mob->merges, __ATOMIC_RELAXED) == 0 &&
		merges_leaves(mob))
		return false;
	if (mob->fixture.ops->read_keys != NULL &&
		strstr(mob->universe->shape->name, "int8") != NULL &&
		mob->universe->n >= 2000 &&
		__atomic_load_n(&mob->looked_up, __ATOMIC_RELAXED) == 0)
		return false;
	return __atomic_load_n(&mob->walks, __ATOMIC_RELAXED) > 0 &&
		(mob->escape_every == 0 ||
		 __atomic_load_n(&mob->escapes, __ATOMIC_RELAXED) > 0);
}

/*
 * Waits until all have worked, or one was wrong.  What is true while they run
 * need not be so later: the one leaf of a small tree may be split meanwhile.
 */
static bool
wait_for_all(Mob *mob, uint32_t n)
{
	for (int i = 0; i < 30000 && tap_bad() == 0; i++)
	{
		if (all_worked(mob, n))
			return true;
		usleep(10000);
	}
	return all_worked(mob, n);
}

static void
run_case(const EunoTreeOps *ops, const Setup *c, double seconds)
{
	static const MobRole others[] = {
		MOB_SCANNER, MOB_WALKER, MOB_COMPACTOR, MOB_VERIFIER
	};
	uint32_t	size = ops == &reference_ops ? c->n / 4 : c->n;
	Universe   *universe = universe_make(shape_by_name(c->shape), size, seed);
	Thread		threads[MAX_ACTORS];
	uint32_t	n = c->writers + 4;
	bool		worked;
	Mob		   *mob;

	tap_begin("%s, %s: %u entries, %u threads, %u domains%s%s", ops->name,
			  c->shape, universe->n, n, c->ndomains,
			  c->escape_every > 0 ? ", errors" : "", c->lagging ? ", that lag" : "");
	mob = mob_make(ops, universe, c->writers, c->ndomains, false, seed);
	mob->escape_every = c->escape_every;
	mob->lagging = c->lagging;
	for (uint32_t i = 0; i < n; i++)
	{
		threads[i].mob = mob;
		threads[i].slot = i + 1;
		threads[i].role = i < c->writers ? MOB_WRITER : others[i - c->writers];
		pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]);
	}
	usleep((useconds_t) (seconds * 1e6));
	worked = wait_for_all(mob, n);
	__atomic_store_n(&mob->stop, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i].thread, NULL);
	CHECK(worked, "somebody did nothing");
	mob_settle(mob);
	printf("# %llu operations, %llu walks, %llu merges, %llu moves, %llu changes of domains, %llu errors, %llu keys at once\n",
		   (unsigned long long) mob->operations[1],
		   (unsigned long long) mob->walks, (unsigned long long) mob->merges,
		   (unsigned long long) mob->moved, (unsigned long long) mob->changes,
		   (unsigned long long) mob->escapes, (unsigned long long) mob->looked_up);
	mob_free(mob);
	universe_free(universe);
	tap_end();
}

/*
 * A holder may be preempted between unlocking and waking, for longer than a
 * sleep lasts; that is rare.
 */
static void
test_wakes(void)
{
	uint64_t	sleeps;
	uint64_t	lost;

	tap_begin("those who sleep are woken");
	test_env_sleeps(&sleeps, &lost);
	printf("# %llu sleeps, %llu not woken\n", (unsigned long long) sleeps,
		   (unsigned long long) lost);
	CHECK(lost * 4 <= sleeps + 20, "%llu of %llu were not woken",
		  (unsigned long long) lost, (unsigned long long) sleeps);
	tap_end();
}

static const Setup cases[] = {
	{"dense int8", 300, 1, 2, 0, false},
	{"dense int8", 5000, 1, 6, 0, false},
	{"sparse int8", 2000, 3, 3, 0, false},
	{"1000 per key", 3000, 1, 3, 0, false},
	{"all equal", 2000, 2, 3, 0, false},
	{"skewed", 3000, 4, 3, 0, true},
	{"text, long prefixes", 1000, 1, 3, 0, false},
	{"mixed lengths", 2000, 1, 3, 0, false},
	{"payloads, posting", 1000, 4, 4, 0, false},
	{"up to the limit", 150, 1, 3, 0, false},
	{"comparator", 500, 1, 3, 0, false},
	{"comparator, ignoring case", 500, 2, 3, 3000, false},
	{"comparator", 300, 1, 3, 200, false},
};

int
main(void)
{
	double		seconds = test_seconds();
	double		end = now() + seconds;
	double		each = SANITIZED ? 0.8 : 0.6;

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	hook_yield_every = 500;
	do
	{
		for (int s = 0; s < nsubjects; s++)
		{
			if (!subject_selected(subjects[s]))
				continue;
			for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			{
				/* two are enough for the reference */
				if (i >= 2 && subjects[s] == &reference_ops)
					continue;
				if (!subject_holds(subjects[s], shape_by_name(cases[i].shape)))
					continue;
				run_case(subjects[s], &cases[i],
						 subjects[s] == &reference_ops ? 0.1 : each);
			}
		}
		seed++;
	} while (now() < end);
	test_wakes();
	return tap_done();
}
