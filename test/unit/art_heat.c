/*-------------------------------------------------------------------------
 *
 * art_heat.c
 *	  Conflicts at a radix tree's nodes are counted, and lead to these nodes.
 *
 * With one thread.  Somebody else has a node locked, and goes on when the
 * operation goes to sleep for it.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/art/art.h"
#include "fixture.h"
#include "tap.h"

static uint64_t seed;

static Case c;
static Actor second;
static bool turn;				/* it is the second one's */
static EunoLock *held;			/* by somebody else */
static EunoLock *written;		/* ... who then writes here; or NULL */
static EunoEnvironment env;

/* The holder goes on. */
static void
wait_for_holder(uint32_t *word, uint32_t seen)
{
	(void) word;
	(void) seen;
	if (held == NULL)
		return;
	euno_lock_release_unchanged(held, &env);
	held = NULL;
	if (written != NULL && euno_lock_acquire(written, &env, NULL))
		euno_lock_release(written, &env);
}

static void
open_both(const EunoTreeOps *ops, const char *shape, uint32_t n)
{
	case_make(&c, ops, shape_by_name(shape), n, seed);
	actor_init(&second, &c.fixture, 2, seed + 1);
	turn = false;
	held = NULL;
	env = *c.actor.cx.env;
	env.wait = wait_for_holder;
	c.actor.cx.env = second.cx.env = &env;
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
}

static void
close_both(void)
{
	check_all(&c.actor, &c.model);
	actor_free(&second);
	case_close(&c);
}

static const EunoEntry *
entry_of(uint32_t i)
{
	return &c.fixture.universe->entries[i].entry;
}

static void
composite_of(uint32_t i, ArtKey *key)
{
	euno_art_key_entry(entry_of(i), key);
}

static void
toggle(uint32_t i)
{
	Actor	   *actor = turn ? &second : &c.actor;

	if (c.model.present[i])
		do_remove(actor, &c.model, i);
	else
		do_insert(actor, &c.model, i);
}

/*
 * The lock of the node that entry i's slot is in, and that of the node above.
 */
static EunoLock *
lock_of(uint32_t i, EunoLock **above)
{
	EunoContext *cx = &c.actor.cx;
	EunoTree   *tree = c.fixture.tree;
	ArtPlace	place;
	ArtKey		key;
	EunoLock   *lock;

	composite_of(i, &key);
	euno_epoch_enter(cx->process);
	(void) euno_art_descend(cx, tree, &key, true, true, &place);
	lock = place.where == ART_AT_GAP ?
		&((ArtNode *) art_pointer(place.ref))->lock : place.lock;
	if (place.where != ART_AT_GAP && place.holder != NULL)
	{
		euno_art_key_set(&key, art_level(place.holder));
		(void) euno_art_descend_to(cx, tree, &key, &place);
	}
	*above = place.lock;
	euno_epoch_exit(cx->process);
	return lock;
}

/* Reads one entry, from entry i on. */
static void
read_from(uint32_t i)
{
	Actor	   *actor = turn ? &second : &c.actor;
	EunoCursor	cursor = {
		.lo = {.key = entry_of(i)->key,.keylen = entry_of(i)->keylen,
		.tid = entry_of(i)->tid},
		.hi = {.side = 1}
	};

	actor->batch.max_items = 1;
	actor->batch.want_keys = false;
	euno_cursor_start(&cursor);
	CHECK(c.fixture.ops->read(&actor->cx, c.fixture.tree, &cursor, true,
							  &actor->batch) == EUNO_OK, "a range cannot be read");
}

/*
 * Inserts or removes an entry whose node somebody else has locked, or reads
 * from there while somebody writes above it, too: only readers look whether
 * what led them to a node still does.
 */
static void
fight(uint32_t i, bool write_above)
{
	EunoLock   *above;
	EunoLock   *lock = lock_of(i, &above);

	if (!euno_lock_acquire(lock, &env, NULL))
	{
		CHECK(false, "an obsolete node");
		return;
	}
	held = lock;
	written = write_above ? above : NULL;
	if (write_above)
		read_from(i);
	else
		toggle(i);
	CHECK(held == NULL, "nobody waited");
}

static uint64_t
cause(EunoCause cause)
{
	return c.actor.cx.counters.conflicts[cause] +
		second.cx.counters.conflicts[cause];
}

static uint32_t
heat_of(bool round, EunoHeat *heat, uint32_t max)
{
	return c.fixture.ops->heat(&c.actor.cx, c.fixture.tree, round, heat, max);
}

/* What can be said of the place of a heat. */
static const EunoLeafInfo *
place_of(const EunoHeat *heat)
{
	static EunoLeafInfo info;

	CHECK(c.fixture.ops->leaf(&c.actor.cx, c.fixture.tree, heat, &info) ==
		  EUNO_OK, "it leads to no node");
	return &info;
}

/* Is entry i below the place? */
static bool
is_below(const EunoLeafInfo *info, uint32_t i)
{
	ArtKey		key;

	composite_of(i, &key);
	return !info->has_low || (info->low.pos.keylen <= key.len &&
							  memcmp(key.bytes, info->low.data, info->low.pos.keylen) == 0);
}

/* Between the fences is what is below the place, and nothing else. */
static void
check_fences(const EunoLeafInfo *info)
{
	Actor	   *actor = &c.actor;
	EunoCursor	cursor = {
		.lo = info->has_low ? info->low.pos : (EunoPosition) {.side = -1},
		.hi = info->has_high ? info->high.pos : (EunoPosition) {.side = 1}
	};
	uint32_t	expected = 0;
	uint32_t	found = 0;

	for (uint32_t i = 0; i < c.fixture.universe->n; i++)
		expected += c.model.present[i] && is_below(info, i);
	actor->batch.max_items = ACTOR_ITEMS;
	actor->batch.want_keys = false;
	euno_cursor_start(&cursor);
	do
	{
		CHECK(c.fixture.ops->read(&actor->cx, c.fixture.tree, &cursor, true,
								  &actor->batch) == EUNO_OK, "a range cannot be read");
		found += actor->batch.nitems;
	} while (actor->batch.nitems > 0 && !cursor.at_hi);
	CHECK(found == expected, "%u entries between the fences of %u", found, expected);
}

/* Conflicts about one entry are counted, and lead to its node. */
static void
test_node(const EunoTreeOps *ops, const char *shape, bool write_above)
{
	EunoCause	met = write_above ? EUNO_CAUSE_CHANGED : EUNO_CAUSE_LOCKED;
	uint32_t	at;
	const EunoLeafInfo *info;
	EunoHeat	heat[8];

	tap_begin("%s: %s: %s", ops->name, shape, write_above ?
			  "what has changed on the way" : "who has locked a node");
	open_both(ops, shape, 3000);
	at = c.universe->n / 3;
	CHECK(heat_of(false, heat, 8) == 0 && cause(met) == 0, "without conflicts");
	for (int i = 0; i < 200; i++)
		fight(at, write_above);
	CHECK(cause(met) >= 200 && cause(met) <= 210, "%llu conflicts",
		  (unsigned long long) cause(met));
	CHECK(heat_of(true, heat, 8) > 0, "not shown");
	CHECK(heat[0].fresh >= 80, "%u of 200 conflicts", heat[0].fresh);
	info = place_of(&heat[0]);
	CHECK(is_below(info, at), "another node");
	CHECK(info->entries > 0 && info->entries <= 256, "%u children", info->entries);
	CHECK(strcmp(info->mode, "calm") == 0, "it is %s", info->mode);
	check_fences(info);
	CHECK(heat_of(true, heat, 8) > 0 && heat[0].fresh == 0, "round two");
	CHECK(heat_of(true, heat, 8) == 0, "round three");
	close_both();
	tap_end();
}

/* What two processes want is compared, and whether the node is the same. */
static void
test_causes(const EunoTreeOps *ops)
{
	uint64_t	split;
	EunoHeat	heat[8];

	tap_begin("%s: what conflicts are about", ops->name);
	open_both(ops, "dense int8", 3000);
	for (int i = 0; i < 100; i++)
		fight(1000, false);
	CHECK(cause(EUNO_CAUSE_SAME_KEY) + cause(EUNO_CAUSE_OTHER_KEY) == 0,
		  "of one process");
	for (int i = 0; i < 400; i++)
	{
		turn = i % 2;
		fight(1000, false);
	}
	CHECK(cause(EUNO_CAUSE_SAME_KEY) >= 300, "%llu of one key",
		  (unsigned long long) cause(EUNO_CAUSE_SAME_KEY));
	CHECK(cause(EUNO_CAUSE_OTHER_KEY) == 0, "%llu of others",
		  (unsigned long long) cause(EUNO_CAUSE_OTHER_KEY));
	for (int i = 0; i < 800; i++)
	{
		turn = i / 8 % 2;
		fight(1000 + i / 8 % 2, false);
	}
	CHECK(cause(EUNO_CAUSE_OTHER_KEY) >= 600, "%llu of others",
		  (unsigned long long) cause(EUNO_CAUSE_OTHER_KEY));
	CHECK(heat_of(false, heat, 8) == 1, "not one node");
	CHECK(cause(EUNO_CAUSE_SPLIT) == 0, "%llu times made anew",
		  (unsigned long long) cause(EUNO_CAUSE_SPLIT));

	/* The node loses half of its children, and gets another address. */
	split = cause(EUNO_CAUSE_SPLIT);
	for (int round = 0; round < 40; round++)
	{
		for (uint32_t i = 1100; i < 2000; i++)
		{
			if (c.model.present[i] == (round % 2 == 0))
				toggle(i);
		}
		do_compact(&c.actor);
		for (int i = 0; i < 16; i++)
		{
			turn = i / 8;
			fight(1500, false);
		}
	}
	CHECK(cause(EUNO_CAUSE_SPLIT) > split, "never made anew");
	CHECK(heat_of(false, heat, 8) >= 2, "one node is hot");
	CHECK(is_below(place_of(&heat[0]), 1000), "not the hottest one");
	close_both();
	tap_end();
}

/* Writes that others perform: the place is known by its bytes alone. */
static void
test_delegated(const EunoTreeOps *ops)
{
	EunoContext *cx;
	const EunoLeafInfo *info;
	uint32_t	number = 0;
	EunoHeat	heat[8];
	ArtKey		key;

	tap_begin("%s: writes that others perform", ops->name);
	open_both(ops, "dense int8", 3000);
	cx = &c.actor.cx;
	composite_of(1000, &key);
	for (uint32_t depth = 0; depth <= key.len; depth++)
	{
		euno_epoch_enter(cx->process);
		for (int i = 0; i < 200; i++)
			euno_art_delegated(cx, c.fixture.tree, &key, depth);
		euno_epoch_exit(cx->process);
		CHECK(heat_of(true, heat, 8) == 1, "at depth %u", depth);
		info = place_of(&heat[0]);
		CHECK(strcmp(info->mode, "delegated") == 0, "it is %s", info->mode);
		CHECK(is_below(info, 1000), "to another node");
		CHECK(info->low.pos.keylen <= depth || info->entries > 1, "below a leaf");
		if (depth >= entry_of(1000)->keylen)
		{
			CHECK(number == 0 || info->number == number, "two places for one");
			number = info->number;
		}
		check_fences(info);
		for (int i = 0; i < 2; i++)
			(void) heat_of(true, heat, 8);
	}
	CHECK(cause(EUNO_CAUSE_LOCKED) + cause(EUNO_CAUSE_CHANGED) +
		  cause(EUNO_CAUSE_SPLIT) == 0, "counted as conflicts");
	close_both();
	tap_end();
}

/* A tree that has lost all has places, too. */
static void
test_empty(const EunoTreeOps *ops)
{
	const EunoLeafInfo *info;
	EunoHeat	heat[8];

	tap_begin("%s: nodes that are gone", ops->name);
	open_both(ops, "sparse int8", 500);
	for (int i = 0; i < 100; i++)
		fight(c.universe->n / 2, false);
	for (uint32_t i = 0; i < c.universe->n; i++)
	{
		if (c.model.present[i])
			toggle(i);
	}
	do_compact(&c.actor);
	CHECK(heat_of(false, heat, 8) > 0, "forgotten");
	info = place_of(&heat[0]);
	CHECK(!info->has_low && !info->has_high && info->entries == 0,
		  "%u entries below nothing", info->entries);
	check_fences(info);
	toggle(7);
	CHECK(place_of(&heat[0])->entries == 1, "not the root's entry");
	close_both();
	tap_end();
}

int
main(void)
{
	const EunoTreeOps *trees[] = {&euno_art_olc_ops, &euno_art_rowex_ops};
	const char *kinds[] = {"dense int8", "sparse int8", "all equal",
		"1000 per key", "text, long prefixes", "two columns, NULLs, DESC",
	"up to the limit", "payloads"};

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	for (int t = 0; t < 2; t++)
	{
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		{
			test_node(trees[t], kinds[k], false);
			if (t == 0)			/* the others never look again */
				test_node(trees[t], kinds[k], true);
		}
		test_causes(trees[t]);
		test_delegated(trees[t]);
		test_empty(trees[t]);
	}
	return tap_done();
}
