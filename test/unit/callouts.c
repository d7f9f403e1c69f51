/*-------------------------------------------------------------------------
 *
 * callouts.c
 *	  Nothing is locked when core calls out: to the allocator, a comparator, or
 *	  the callbacks of a walk or of verify.
 *
 * Whatever is called looks up entries all over the same tree.  If a node were
 * locked, the lookup would wait for it for ever; an alarm ends the program
 * then.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"
#include "tap.h"

#define ALARM_SECONDS 600

static uint64_t seed;

typedef struct Caller
{
	Fixture		fixture;
	Actor		actor;			/* at work */
	Actor		visitor;		/* called */
	Model		model;
	uint64_t	calls;
	bool		inside;
} Caller;

/*
 * Looks up entries from everywhere.  "There" is not checked: the caller is in
 * the middle of something.
 */
static void
look_around(void *arg)
{
	Caller	   *caller = arg;
	const Universe *universe = caller->fixture.universe;
	uint32_t	step = universe->n / 20 + 1;

	if (caller->inside)
		return;
	caller->inside = true;
	caller->calls++;
	for (uint32_t i = random_below(&caller->visitor.random, step);
		 i < universe->n; i += step)
	{
		EunoStatus	status;

		status = caller->fixture.ops->contains(&caller->visitor.cx,
											   caller->fixture.tree,
											   &universe->entries[i].entry);
		CHECK(status == EUNO_OK || status == EUNO_NOT_FOUND,
			  "contains: status %d", status);
	}
	caller->inside = false;
}

/* An operation that was called from must still find its own place. */
static void
test_callouts(const EunoTreeOps *ops, const Shape *shape)
{
	Universe   *universe = universe_make(shape, 3000 / shape->weight, seed);
	Caller	   *caller = calloc(1, sizeof(Caller));

	tap_begin("%s, %s: nothing is locked when core calls out", ops->name,
			  shape->name);
	fixture_open(&caller->fixture, ops, universe, 90, 1);
	actor_init(&caller->actor, &caller->fixture, 1, seed);
	actor_init(&caller->visitor, &caller->fixture, 2, seed);
	model_init(&caller->model, universe);
	caller->fixture.source->called = look_around;
	caller->fixture.source->called_arg = caller;
	alarm(ALARM_SECONDS);
	for (uint32_t round = 0; round < 4 && tap_bad() == 0; round++)
	{
		for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i++)
		{
			/* each comparison would be too much */
			compare_called = random_below(&caller->actor.random, 50) == 0 ?
				look_around : NULL;
			compare_called_arg = caller;
			do_random(&caller->actor, &caller->model, round % 2 ? 10 : 95);
		}
		compare_called = NULL;
		do_compact(&caller->actor);
		check_all(&caller->actor, &caller->model);
	}
	alarm(0);
	CHECK(caller->calls > 0 || ops == &reference_ops, "nothing was called");
	caller->fixture.source->called = NULL;
	model_free(&caller->model);
	actor_free(&caller->actor);
	actor_free(&caller->visitor);
	fixture_close(&caller->fixture);
	free(caller);
	universe_free(universe);
	tap_end();
}

static bool
decide(void *arg, EunoTid tid)
{
	if (random_below(&((Caller *) arg)->actor.random, 20) == 0)
		look_around(arg);
	return tid % 3 == 0;
}

static void
verify_entry(void *arg, const EunoEntry *entry)
{
	(void) entry;
	if (random_below(&((Caller *) arg)->actor.random, 20) == 0)
		look_around(arg);
}

static void
verify_report(void *arg, const char *what)
{
	(void) arg;
	CHECK(false, "verify: %s", what);
}

static void
test_callbacks(const EunoTreeOps *ops, const Shape *shape)
{
	Universe   *universe = universe_make(shape, 5000 / shape->weight, seed);
	Caller	   *caller = calloc(1, sizeof(Caller));
	EunoWalk	walk;
	EunoVerify	verify = {.report = verify_report,.entry = verify_entry,.arg = caller};

	tap_begin("%s, %s: nothing is locked in callbacks of walk and verify",
			  ops->name, shape->name);
	fixture_open(&caller->fixture, ops, universe, 90, 1);
	actor_init(&caller->actor, &caller->fixture, 1, seed);
	actor_init(&caller->visitor, &caller->fixture, 2, seed);
	model_init(&caller->model, universe);
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&caller->actor, &caller->model, i);
	alarm(ALARM_SECONDS);
	CHECK(ops->verify(&caller->actor.cx, caller->fixture.tree, &verify) == 0,
		  "verify found something");
	walk = actor_walk(&caller->actor, decide, look_around, caller);
	CHECK(ops->walk(&caller->actor.cx, caller->fixture.tree, &walk) == EUNO_OK,
		  "walk failed");
	alarm(0);
	for (uint32_t i = 0; i < universe->n; i++)
	{
		if (universe->entries[i].entry.tid % 3 == 0)
			model_set(&caller->model, i, false);
	}
	check_all(&caller->actor, &caller->model);
	CHECK(caller->calls > 0, "nothing was called");
	model_free(&caller->model);
	actor_free(&caller->actor);
	actor_free(&caller->visitor);
	fixture_close(&caller->fixture);
	free(caller);
	universe_free(universe);
	tap_end();
}

/* Makes room where an insertion is about to split. */
static void
make_room(void *arg)
{
	Caller	   *caller = arg;

	if (caller->inside)
		return;
	caller->inside = true;
	do_remove(&caller->visitor, &caller->model, (uint32_t) caller->calls);
	caller->inside = false;
}

/*
 * Memory for a split that turned out not to be needed must not stay in the
 * context: between two operations the tree may be evicted, and its memory
 * handed to another one.
 */
static void
test_left_over(const EunoTreeOps *ops, const Shape *shape)
{
	Universe   *universe = universe_make(shape, 20000 / shape->weight, seed);
	Caller	   *caller = calloc(1, sizeof(Caller));
	EunoContext *cx = &caller->actor.cx;

	tap_begin("%s, %s: a context keeps no memory", ops->name, shape->name);
	fixture_open(&caller->fixture, ops, universe, 90, 1);
	actor_init(&caller->actor, &caller->fixture, 1, seed);
	actor_init(&caller->visitor, &caller->fixture, 2, seed);
	model_init(&caller->model, universe);
	for (uint32_t i = 0; i < universe->n; i += 2)
		do_insert(&caller->actor, &caller->model, i);
	caller->fixture.source->called = make_room;
	caller->fixture.source->called_arg = caller;
	for (uint32_t i = 1; i < universe->n && tap_bad() == 0; i += 2)
	{
		caller->calls = i - 1;
		caller->inside = false;
		do_insert(&caller->actor, &caller->model, i);
		for (int k = 0; k < EUNO_SPARES; k++)
			CHECK(cx->held.spare[k] == NULL, "memory is left in the context");
	}
	caller->fixture.source->called = NULL;
	CHECK(caller->fixture.source->frees > 0, "no split was given up");
	check_all(&caller->actor, &caller->model);
	model_free(&caller->model);
	actor_free(&caller->actor);
	actor_free(&caller->visitor);
	fixture_close(&caller->fixture);
	free(caller);
	universe_free(universe);
	tap_end();
}

int
main(void)
{
	static const char *const names[] = {
		"dense int8", "1000 per key", "text, long prefixes", "up to the limit",
		"payloads, posting", "comparator", "comparator, ignoring case",
		"comparator, up to the limit"
	};
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	do
	{
		/* the reference holds its mutex all the time */
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		{
			test_callouts(&euno_bptree_ops, shape_by_name(names[i]));
			test_callbacks(&euno_bptree_ops, shape_by_name(names[i]));
		}
		test_left_over(&euno_bptree_ops, shape_by_name("dense int8"));
		test_left_over(&euno_bptree_ops, shape_by_name("comparator"));
		seed++;
	} while (now() < end);
	return tap_done();
}
