/*-------------------------------------------------------------------------
 *
 * liars.c
 *	  Comparators that contradict themselves: answers may be wrong then, but
 *	  nothing is freed that can still be reached, every call returns, and scans
 *	  end, those by a comparator that goes round (a < b < c < a) and those of
 *	  what the others have left.
 *
 * Nodes come from malloc under AddressSanitizer, which sees what is used after
 * it was freed; the other builds rely on verify.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "tap.h"

#define ALARM_SECONDS 600
#define ROUND_SECONDS 30		/* one of these takes milliseconds */

typedef enum Lie
{
	LIE_SOMETIMES,				/* any answer, once in a while */
	LIE_BELOW_ITSELF,			/* x < x */
	LIE_ABOVE_ITSELF,
	LIE_ALWAYS_BELOW,
	LIE_ALWAYS_ABOVE,
	NLIES
} Lie;

static const char *const lie_names[] = {
	"lies sometimes", "says x < x", "says x > x", "says < always",
	"says > always"
};

static uint64_t seed;
static EunoCompare honest;
static Lie	lie;
static Random lie_random;

static int
compare_lying(void *arg, const EunoPosition *pos, const uint8_t *key,
			  uint32_t keylen)
{
	int			c = honest(arg, pos, key, keylen);

	switch (lie)
	{
		case LIE_SOMETIMES:
			return random_below(&lie_random, 4) > 0 ? c :
				(int) random_below(&lie_random, 3) - 1;
		case LIE_BELOW_ITSELF:
			return c == 0 ? -1 : c;
		case LIE_ABOVE_ITSELF:
			return c == 0 ? 1 : c;
		case LIE_ALWAYS_BELOW:
			return -1;
		default:
			return 1;
	}
}

/* Order is lost; what must hold is that nothing leads to freed nodes. */
static void
report(void *arg, const char *what)
{
	(void) arg;
	CHECK(strstr(what, "obsolete") == NULL, "verify: %s", what);
}

/* Reads here and there between two random entries. */
static void
read_around(Actor *actor)
{
	const Universe *universe = actor->fixture->universe;
	static EunoCursor cursor;

	memset(&cursor, 0, sizeof(cursor));
	for (int k = 0; k < 2; k++)
	{
		const EunoEntry *entry =
		&universe->entries[random_below(&actor->random, universe->n)].entry;
		EunoPosition *pos = k == 0 ? &cursor.lo : &cursor.hi;

		pos->key = entry->key;
		pos->keylen = entry->keylen;
		pos->side = k == 0 ? -1 : 1;
	}
	euno_cursor_start(&cursor);
	actor->batch.max_items = 100;
	actor->batch.want_keys = false;
	for (int k = 0; k < 20; k++)
	{
		EunoStatus	status;

		status = actor->fixture->ops->read(&actor->cx, actor->fixture->tree,
										   &cursor,
										   random_below(&actor->random, 2) == 0,
										   &actor->batch);
		CHECK(status == EUNO_OK || status == EUNO_CORRUPT, "read: status %d",
			  status);
		if (status != EUNO_OK)
			return;				/* the cursor is of no use any more */
	}
}

/*
 * Each batch is beyond the one before, or there is none.  "alone": where a read
 * ended is forgotten, as if the context had read elsewhere meanwhile.
 */
static EunoStatus
read_all(Actor *actor, bool forward, bool alone)
{
	static EunoCursor cursor;
	const Universe *universe = actor->fixture->universe;
	uint32_t	reads = 0;
	EunoStatus	status;
	Bound		bounds[2];

	memset(&cursor, 0, sizeof(cursor));
	universe_end_position(universe, true, &cursor.lo, &bounds[0]);
	universe_end_position(universe, false, &cursor.hi, &bounds[1]);
	euno_cursor_start(&cursor);
	do
	{
		if (alone)
			actor->cx.next.leaf = NULL;
		status = actor->fixture->ops->read(&actor->cx, actor->fixture->tree,
										   &cursor, forward, &actor->batch);
		CHECK(++reads < 4 * universe->n, "a scan does not end");
	} while (status == EUNO_OK && tap_bad() == 0 &&
			 !(forward ? cursor.at_hi : cursor.at_lo));
	return status;
}

/* The first and the last entry of some in the middle, and what is outermost. */
static EunoPosition round_from;
static EunoPosition round_to;
static EunoPosition round_end;
static bool round_down;

static bool
is_above(void *arg, const uint8_t *key, uint32_t keylen,
		 const EunoPosition *other)
{
	return honest(arg, other, key, keylen) < 0;
}

/* Beyond the last keys come those in the middle again. */
static int
compare_round(void *arg, const EunoPosition *pos, const uint8_t *key,
			  uint32_t keylen)
{
	if (pos->bound != NULL ||
		is_above(arg, pos->key, pos->keylen, &round_end) == round_down ||
		!is_above(arg, key, keylen, &round_from) ||
		is_above(arg, key, keylen, &round_to))
		return honest(arg, pos, key, keylen);
	return round_down ? 1 : -1;
}

/* "empty": nothing is left where it goes round, so that one call does. */
static void
test_round(const EunoTreeOps *ops, bool forward, bool empty)
{
	const Shape *shape = shape_by_name("comparator");
	const UniverseEntry *entries;
	uint32_t	n;
	Case		c;

	tap_begin("%s: a comparator goes round, %s%s", ops->name,
			  forward ? "forward" : "backward", empty ? ", empty leaves" : "");
	case_make(&c, ops, shape, 6000, seed);
	entries = c.universe->entries;
	n = c.universe->n;
	honest = c.actor.cx.compare;
	for (uint32_t i = 0; i < n; i++)
		(void) ops->insert(&c.actor.cx, c.fixture.tree, &entries[i].entry, false);
	for (uint32_t i = forward ? n / 4 : 0;
		 empty && i < (forward ? n : n * 3 / 4); i++)
		(void) ops->remove(&c.actor.cx, c.fixture.tree, &entries[i].entry, NULL);
	round_from = euno_position_of(&entries[n / 4].entry);
	round_to = euno_position_of(&entries[n * 3 / 4].entry);
	round_end = euno_position_of(&entries[forward ? n * 7 / 8 : n / 8].entry);
	round_down = !forward;
	c.actor.cx.compare = compare_round;
	c.actor.cx.approximate = NULL;	/* would lead to the right place */
	alarm(ROUND_SECONDS);
	CHECK(read_all(&c.actor, forward, true) == EUNO_CORRUPT,
		  "nobody notices that a scan goes round");
	alarm(0);
	c.actor.cx.compare = honest;
	case_close(&c);
	tap_end();
}

static void
test_liar(const EunoTreeOps *ops, Lie which)
{
	const Shape *shape = shape_by_name("comparator");
	EunoVerify	verify = {.report = report};
	uint32_t	rounds = which == LIE_SOMETIMES ? 30 : 12;
	Case		c;

	tap_begin("%s: a comparator %s", ops->name, lie_names[which]);
	case_make(&c, ops, shape, 6000, seed);
	honest = c.actor.cx.compare;
	lie_random.state = seed;
	c.actor.cx.compare = compare_lying;
	lie = which;
	alarm(ALARM_SECONDS);
	for (uint32_t round = 0; round < rounds && tap_bad() == 0; round++)
	{
		uint32_t	merged;

		for (uint32_t i = 0; i < c.universe->n; i++)
		{
			uint32_t	at = random_below(&c.actor.random, c.universe->n);
			const EunoEntry *entry = &c.universe->entries[at].entry;

			if (random_below(&c.actor.random, 100) < (round % 2 ? 10 : 90))
				(void) ops->insert(&c.actor.cx, c.fixture.tree, entry, false);
			else
				(void) ops->remove(&c.actor.cx, c.fixture.tree, entry, NULL);
			if (i % 100 == 0)
				read_around(&c.actor);
		}
		(void) ops->compact(&c.actor.cx, c.fixture.tree, 0, 1000, &merged);
		(void) ops->verify(&c.actor.cx, c.fixture.tree, &verify);
		c.actor.cx.compare = honest;
		(void) read_all(&c.actor, true, false);
		(void) read_all(&c.actor, false, false);
		c.actor.cx.compare = compare_lying;
	}
	alarm(0);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	do
	{
		for (int i = 0; i < 4; i++)
			test_round(&euno_bptree_ops, i % 2 == 0, i >= 2);
		for (int which = 0; which < NLIES; which++)
			test_liar(&euno_bptree_ops, (Lie) which);

		/* chance decides whether a lie comes at the worst moment */
		for (int i = 0; i < 3; i++)
		{
			seed++;
			test_liar(&euno_bptree_ops, LIE_SOMETIMES);
		}
		seed++;
	} while (now() < end);
	return tap_done();
}
