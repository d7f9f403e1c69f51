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
#include <unistd.h>

#include "fixture.h"
#include "tap.h"

#define ALARM_SECONDS 600

static uint64_t seed;

static Case c;					/* its actor is at work */
static Actor visitor;			/* called */
static uint64_t calls;
static bool inside;

static void
open_both(const EunoTreeOps *ops, const Shape *shape, uint32_t n)
{
	case_make(&c, ops, shape, n / shape->weight, seed);
	actor_init(&visitor, &c.fixture, 2, seed);
	calls = 0;
}

static void
close_both(void)
{
	actor_free(&visitor);
	case_close(&c);
}

/*
 * Looks up entries from everywhere.  "There" is not checked: the caller is in
 * the middle of something.
 */
static void
look_around(void *arg)
{
	uint32_t	step = c.universe->n / 20 + 1;

	(void) arg;
	if (inside)
		return;
	inside = true;
	calls++;
	for (uint32_t i = random_below(&visitor.random, step); i < c.universe->n;
		 i += step)
	{
		const EunoEntry *entry = &c.universe->entries[i].entry;
		EunoStatus	status = c.fixture.ops->contains(&visitor.cx,
													 c.fixture.tree, entry);

		CHECK(status == EUNO_OK || status == EUNO_NOT_FOUND,
			  "contains: status %d", status);
	}
	inside = false;
}

/* An operation that was called from must still find its own place. */
static void
test_callouts(const EunoTreeOps *ops, const Shape *shape)
{
	tap_begin("%s, %s: nothing is locked when core calls out", ops->name,
			  shape->name);
	open_both(ops, shape, 6000);
	c.fixture.source->called = look_around;
	alarm(ALARM_SECONDS);
	for (uint32_t round = 0; round < 4 && tap_bad() == 0; round++)
	{
		for (uint32_t i = 0; i < c.universe->n && tap_bad() == 0; i++)
		{
			/* each comparison would be too much */
			compare_called = random_below(&c.actor.random, 50) == 0 ?
				look_around : NULL;
			do_random(&c.actor, &c.model, round % 2 ? 10 : 95);
		}
		compare_called = NULL;
		do_compact(&c.actor);
		check_all(&c.actor, &c.model);
	}
	alarm(0);
	CHECK(calls > 0 || ops == &reference_ops, "nothing was called");
	c.fixture.source->called = NULL;
	close_both();
	tap_end();
}

static bool
decide(void *arg, EunoTid tid)
{
	if (random_below(&c.actor.random, 20) == 0)
		look_around(arg);
	return tid % 3 == 0;
}

static void
verify_entry(void *arg, const EunoEntry *entry)
{
	(void) entry;
	if (random_below(&c.actor.random, 20) == 0)
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
	EunoWalk	walk;
	EunoVerify	verify = {.report = verify_report,.entry = verify_entry};

	tap_begin("%s, %s: nothing is locked in callbacks of walk and verify",
			  ops->name, shape->name);
	open_both(ops, shape, 5000);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	alarm(ALARM_SECONDS);
	CHECK(ops->verify(&c.actor.cx, c.fixture.tree, &verify) == 0,
		  "verify found something");
	walk = actor_walk(&c.actor, decide, look_around, NULL);
	CHECK(ops->walk(&c.actor.cx, c.fixture.tree, &walk) == EUNO_OK,
		  "walk failed");
	alarm(0);
	for (uint32_t i = 0; i < c.universe->n; i++)
	{
		if (c.universe->entries[i].entry.tid % 3 == 0)
			model_set(&c.model, i, false);
	}
	check_all(&c.actor, &c.model);
	CHECK(calls > 0, "nothing was called");
	close_both();
	tap_end();
}

/* Makes room where an insertion is about to split. */
static void
make_room(void *arg)
{
	(void) arg;
	if (inside)
		return;
	inside = true;
	do_remove(&visitor, &c.model, (uint32_t) calls);
	inside = false;
}

/*
 * Memory for a split that turned out not to be needed must not stay in the
 * context: between two operations the tree may be evicted, and its memory
 * handed to another one.
 */
static void
test_left_over(const EunoTreeOps *ops, const Shape *shape)
{
	EunoContext *cx = &c.actor.cx;

	tap_begin("%s, %s: a context keeps no memory", ops->name, shape->name);
	open_both(ops, shape, 20000);
	for (uint32_t i = 0; i < c.universe->n; i += 2)
		do_insert(&c.actor, &c.model, i);
	c.fixture.source->called = make_room;
	for (uint32_t i = 1; i < c.universe->n && tap_bad() == 0; i += 2)
	{
		calls = i - 1;
		inside = false;
		do_insert(&c.actor, &c.model, i);
		for (int k = 0; k < EUNO_SPARES; k++)
			CHECK(cx->held.spare[k] == NULL, "memory is left in the context");
	}
	c.fixture.source->called = NULL;
	CHECK(c.fixture.source->frees > 0, "no split was given up");
	check_all(&c.actor, &c.model);
	close_both();
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
