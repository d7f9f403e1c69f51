/*-------------------------------------------------------------------------
 *
 * oracle.c
 *	  Random operations on every kind of keys, compared with the model.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

#define ENTRIES 12000

static uint64_t seed;

/* Are these the TIDs from here on to the end of the range? */
static void
expect_tids(Actor *actor, EunoCursor *cursor, bool forward,
			const EunoTid *expected, uint32_t n)
{
	Fixture    *fixture = actor->fixture;
	uint32_t	seen = 0;

	do
	{
		CHECK(fixture->ops->read(&actor->cx, fixture->tree, cursor, forward,
								 &actor->batch) == EUNO_OK, "read");
		for (uint32_t i = 0; i < actor->batch.nitems; i++, seen++)
			CHECK(seen < n && actor->tids[i] == expected[seen],
				  "item %u is %llu", seen, (unsigned long long) actor->tids[i]);
	} while (actor->batch.nitems > 0 && seen <= n);
	CHECK(seen == n, "read %u items %s", seen, forward ? "forward" : "backward");
}

/*
 * A few entries written out, with the answers: the model itself has to agree
 * with what euno_core.h says.
 */
static void
test_known_answers(const EunoTreeOps *ops)
{
	static const char *const keys[] = {"\002a", "\002b", "\002bc", "\002c"};
	static const EunoTid expected[] = {5, 9, 3, 7, 1};
	EunoEntry	entries[5];
	Universe   *universe = universe_make(&shapes[0], 1, 1);
	Fixture		fixture;
	Actor		actor;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));

	tap_begin("%s: known answers", ops->name);
	fixture_open(&fixture, ops, universe, 90, 1);
	actor_init(&actor, &fixture, 1, seed);
	for (int i = 0; i < 5; i++)
	{
		const char *key = keys[i < 2 ? 0 : i - 1];

		/* with their terminators, else they would not be prefix-free */
		entries[i] = (EunoEntry)
		{
			.key = (const uint8_t *) key,.keylen = (uint32_t) strlen(key) + 1,
				.tid = expected[i]
		};
	}
	for (int i = 4; i >= 0; i--)
		CHECK(ops->insert(&actor.cx, fixture.tree, &entries[i], false) == EUNO_OK,
			  "insert %d", i);
	CHECK(ops->insert(&actor.cx, fixture.tree, &entries[2], false) == EUNO_EXISTS,
		  "second insert");

	/* after all of "a" and before all that starts with "c": b, bc */
	cursor->lo = (EunoPosition)
	{
		.key = entries[0].key,.keylen = 3,.side = 1
	};
	cursor->hi = (EunoPosition)
	{
		.key = entries[4].key,.keylen = 2,.side = -1
	};
	euno_cursor_start(cursor);
	expect_tids(&actor, cursor, true, (const EunoTid[]) {3, 7}, 2);

	/* everything from ("a", 6) on, backward */
	cursor->lo = (EunoPosition)
	{
		.key = entries[0].key,.keylen = 3,.tid = 6
	};
	cursor->hi = (EunoPosition)
	{
		.side = 1
	};
	euno_cursor_start(cursor);
	expect_tids(&actor, cursor, false, (const EunoTid[]) {1, 7, 3, 9}, 4);

	CHECK(ops->remove(&actor.cx, fixture.tree, &entries[2], NULL) == EUNO_OK,
		  "remove");
	CHECK(ops->remove(&actor.cx, fixture.tree, &entries[2], NULL) == EUNO_NOT_FOUND,
		  "second remove");
	CHECK(ops->contains(&actor.cx, fixture.tree, &entries[2]) == EUNO_NOT_FOUND,
		  "contains what was removed");
	CHECK(ops->contains(&actor.cx, fixture.tree, &entries[1]) == EUNO_OK,
		  "contains another TID of the key");
	free(cursor);
	actor_free(&actor);
	fixture_close(&fixture);
	universe_free(universe);
	tap_end();
}

static void
check_ranges(Actor *actor, Model *model, uint32_t n, bool mutate)
{
	for (uint32_t i = 0; i < n && tap_bad() == 0; i++)
	{
		actor->cx.domain = (int) random_below(&actor->random,
											  actor->fixture->ndomains);
		check_range(actor, model, mutate && !model->universe->shape->shared_tids);
	}
}

/*
 * Reads each key's entries, one key after the other: each is the first or the
 * last of its leaf once.
 */
static void
check_each_key(Case *c)
{
	const Universe *universe = c->fixture.universe;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	EunoTid    *expected = calloc(universe->n, sizeof(EunoTid));
	uint32_t	end;

	c->actor.batch.max_items = ACTOR_ITEMS;
	for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i = end)
	{
		const EunoEntry *entry = &universe->entries[i].entry;
		uint32_t	n = 0;

		cursor->lo = (EunoPosition) {
			.key = entry->key,.keylen = entry->keylen,.side = -1
		};
		cursor->hi = cursor->lo;
		cursor->hi.side = 1;
		end = universe_below(universe, &cursor->hi);
		for (uint32_t k = i; k < end; k++)
		{
			if (c->model.present[k])
				expected[n++] = universe->entries[k].entry.tid;
		}
		euno_cursor_start(cursor);
		c->actor.batch.want_keys = !c->actor.batch.want_keys;
		expect_tids(&c->actor, cursor, true, expected, n);
	}
	free(expected);
	free(cursor);
}

/* Grow, stay, shrink; look at all of it in between. */
static void
test_random(const EunoTreeOps *ops, const Universe *universe, uint16_t ndomains)
{
	static const uint32_t insert_percents[] = {95, 70, 50, 30, 80, 5};
	Case		c;

	tap_begin("%s, %s: random operations, %d domains", ops->name,
			  universe->shape->name, ndomains);
	case_open(&c, ops, universe, ndomains, seed);
	for (int phase = 0; phase < 6 && tap_bad() == 0; phase++)
	{
		for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i++)
			do_random(&c.actor, &c.model, insert_percents[phase]);
		check_all(&c.actor, &c.model);
		check_ranges(&c.actor, &c.model, 30, false);
		check_ranges(&c.actor, &c.model, 30, true);
		if (phase % 2 == 1)
		{
			do_compact(&c.actor);
			check_all(&c.actor, &c.model);
		}
	}
	case_close(&c);
	tap_end();
}

typedef struct WalkArg
{
	Actor	   *actor;
	Model	   *model;
	uint8_t    *shown;
	uint32_t	remove_percent;
	uint32_t	inserted;		/* most inserts from decide and pause */
	uint32_t	salt;
} WalkArg;

/* By the TID alone: the same answer each time, as for VACUUM. */
static bool
doomed(const WalkArg *walk, EunoTid tid)
{
	return (uint32_t) ((tid * 2654435761u + walk->salt) >> 7) % 100 <
		walk->remove_percent;
}

static void
insert_from_walk(WalkArg *walk)
{
	const Universe *universe = walk->model->universe;
	uint32_t	i = random_below(&walk->actor->random, universe->n);
	Actor	   *other = walk->actor + 1;

	if (walk->inserted == 0 || doomed(walk, universe->entries[i].entry.tid) ||
		walk->model->present[i])
		return;
	walk->inserted--;
	do_insert(other, walk->model, i);
	walk->shown[i] = 1;			/* it may be, but need not be shown */
}

static bool
walk_decide(void *arg, EunoTid tid)
{
	WalkArg    *walk = arg;
	uint32_t	i = universe_by_tid(walk->model->universe, tid);

	CHECK(i != UINT32_MAX, "walk shows TID %llx, which is nobody's",
		  (unsigned long long) tid);
	if (i != UINT32_MAX)
		walk->shown[i] = 1;
	if (random_below(&walk->actor->random, 50) == 0)
		insert_from_walk(walk);
	return doomed(walk, tid);
}

static void
walk_pause(void *arg)
{
	insert_from_walk(arg);
}

/* One walk that removes some; then everything must be as expected. */
static void
do_walk(Actor *actors, Model *model, uint32_t remove_percent, bool insert)
{
	Fixture    *fixture = actors->fixture;
	const Universe *universe = model->universe;
	WalkArg		arg = {
		.actor = actors,.model = model,.shown = calloc(universe->n, 1),
		.remove_percent = remove_percent,.inserted = insert ? 500 : 0,
		.salt = random_below(&actors->random, 1000000)
	};
	EunoWalk	walk = actor_walk(actors, walk_decide, walk_pause, &arg);
	uint32_t	expected = 0;
	uint32_t	before = model->count;
	EunoStatus	status;

	for (uint32_t i = 0; i < universe->n; i++)
		expected += model->present[i] &&
			doomed(&arg, universe->entries[i].entry.tid);
	status = fixture->ops->walk(&actors->cx, fixture->tree, &walk);
	CHECK(status == EUNO_OK, "walk: status %d", status);
	CHECK(actors->cx.held.walking == NULL, "still registered as a walker");
	CHECK(walk.removed == expected, "walk removed %llu entries instead of %u",
		  (unsigned long long) walk.removed, expected);
	CHECK(insert || walk.kept == before - expected,
		  "walk kept %llu entries instead of %u",
		  (unsigned long long) walk.kept, before - expected);
	for (uint32_t i = 0; i < universe->n; i++)
	{
		CHECK(!model->present[i] || arg.shown[i] || universe->shape->shared_tids,
			  "walk did not show entry %u", i);
		if (doomed(&arg, universe->entries[i].entry.tid))
			model_set(model, i, false);
	}
	free(arg.shown);
}

/* Load, change, walk, compact, down to nothing and up again. */
static void
test_life(const EunoTreeOps *ops, const Universe *universe, uint16_t fillfactor,
		  uint16_t ndomains)
{
	static const uint32_t remove_percents[] = {0, 10, 50, 90, 100};
	Fixture		fixture;
	Actor		actors[2];
	Model		model;
	EunoTreeStats stats;

	tap_begin("%s, %s: bulk load at %d %%, walk, compact, refill", ops->name,
			  universe->shape->name, fillfactor);
	fixture_open(&fixture, ops, universe, fillfactor, ndomains);
	actor_init(&actors[0], &fixture, 1, seed);
	actor_init(&actors[1], &fixture, 2, seed + 1);
	model_init(&model, universe);
	for (uint32_t i = 0; i < universe->n; i++)
		model_set(&model, i, random_below(&actors[0].random, 4) != 0);
	do_bulk_load(&actors[0], &model);
	check_all(&actors[0], &model);
	check_ranges(&actors[0], &model, 20, false);
	for (uint32_t i = 0; i < universe->n / 2 && tap_bad() == 0; i++)
		do_random(&actors[0], &model, 50);
	check_all(&actors[0], &model);
	for (int i = 0; i < 5 && tap_bad() == 0; i++)
	{
		do_walk(actors, &model, remove_percents[i],
				i < 4 && !universe->shape->shared_tids);
		check_all(&actors[0], &model);
		do_compact(&actors[0]);
		check_all(&actors[0], &model);
		check_ranges(&actors[0], &model, 10, false);
	}
	CHECK(model.count == 0, "%u entries are left", model.count);
	ops->stats(&actors[0].cx, fixture.tree, &stats);
	CHECK(stats.leaves <= 2, "an empty tree has %llu leaves",
		  (unsigned long long) stats.leaves);
	for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i++)
		do_random(&actors[0], &model, 90);
	check_all(&actors[0], &model);
	check_ranges(&actors[0], &model, 20, true);
	model_free(&model);
	actor_free(&actors[0]);
	actor_free(&actors[1]);
	fixture_close(&fixture);
	tap_end();
}

/*
 * A cursor refers to no node: it goes on in another tree with the same
 * entries, as after an eviction and a rebuild.
 */
static void
test_twins(const EunoTreeOps *ops, const Universe *universe)
{
	Case		c[2];

	tap_begin("%s, %s: cursors go on in a rebuilt tree", ops->name,
			  universe->shape->name);
	for (int i = 0; i < 2; i++)
		case_open(&c[i], ops, universe, 1, seed);
	for (uint32_t i = 0; i < universe->n; i++)
		do_random(&c[0].actor, &c[0].model, 90);
	for (uint32_t i = 0; i < universe->n; i++)
		model_set(&c[1].model, i, c[0].model.present[i]);
	do_bulk_load(&c[1].actor, &c[1].model);
	c[0].actor.twin = c[1].fixture.tree;
	check_ranges(&c[0].actor, &c[0].model, 100, false);
	for (int i = 0; i < 2; i++)
	{
		check_each_key(&c[i]);
		case_close(&c[i]);
	}
	tap_end();
}

/* Enough for several levels of inner nodes. */
static void
test_large(const EunoTreeOps *ops, const Shape *shape, uint32_t n)
{
	Case		c;
	EunoTreeStats stats;

	tap_begin("%s, %s: %u entries", ops->name, shape->name, n);
	case_make(&c, ops, shape, n, seed);
	for (uint32_t i = 0; i < n && tap_bad() == 0; i++)
		do_random(&c.actor, &c.model, 90);
	check_all(&c.actor, &c.model);
	ops->stats(&c.actor.cx, c.fixture.tree, &stats);
	printf("# height %u, %llu leaves, %llu inner nodes\n", stats.height,
		   (unsigned long long) stats.leaves, (unsigned long long) stats.inners);
	CHECK(stats.height >= 3, "only %u levels", stats.height);
	check_ranges(&c.actor, &c.model, 50, true);
	do_walk(&c.actor, &c.model, 97, false);
	do_compact(&c.actor);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* A hundred thousand TIDs of one key, with some neighbors. */
static void
test_one_key(const EunoTreeOps *ops, uint32_t n)
{
	Case		c;

	tap_begin("%s: %u TIDs of one key", ops->name, n);
	case_make(&c, ops, shape_by_name("all equal"), n, seed);
	for (uint32_t i = 0; i < n; i += 2)
		model_set(&c.model, i, true);
	do_bulk_load(&c.actor, &c.model);
	for (uint32_t i = 1; i < n && tap_bad() == 0; i += 2)
		do_insert(&c.actor, &c.model, i);
	check_all(&c.actor, &c.model);
	check_ranges(&c.actor, &c.model, 5, false);
	for (uint32_t i = 0; i < n && tap_bad() == 0; i++)
	{
		if (i % 100 != 0)
			do_remove(&c.actor, &c.model, i);
	}
	check_all(&c.actor, &c.model);
	do_compact(&c.actor);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* Says of equal keys that the one that is sought is behind the other. */
static int
approximate_behind(void *arg, const EunoPosition *pos, const uint8_t *key,
				   uint32_t keylen)
{
	const Shape *shape = arg;
	int			c = shape->compare(arg, pos, key, keylen);

	return c != 0 ? c : 1;
}

/*
 * Keys that begin in one leaf and end in another, found by the comparator in
 * the first one, and by approximations in the last one.
 */
static void
test_several_leaves(const EunoTreeOps *ops)
{
	const Shape *shape = shape_by_name("comparator, descending");
	Case		c;

	tap_begin("%s: keys of several leaves", ops->name);
	case_make(&c, ops, shape, ENTRIES / shape->weight, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	c.actor.cx.approximate = NULL;
	check_each_key(&c);
	c.actor.cx.abbreviate = NULL;
	c.actor.cx.approximate = approximate_behind;
	check_each_key(&c);
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
		test_known_answers(subjects[s]);
		for (int i = 0; i < nshapes; i++)
		{
			uint32_t	n = ENTRIES / shapes[i].weight / small(subjects[s]);
			Universe   *universe;

			if (!subject_holds(subjects[s], &shapes[i]))
				continue;
			universe = universe_make(&shapes[i], n, seed + (uint64_t) i);
			test_random(subjects[s], universe, i % 4 == 3 ? 3 : 1);
			test_life(subjects[s], universe, (uint16_t) (50 + 10 * (i % 6)),
					  i % 4 == 1 ? 2 : 1);
			test_twins(subjects[s], universe);
			universe_free(universe);
		}
		if (!SANITIZED && subjects[s] != &reference_ops)
		{
			test_large(subjects[s], shape_by_name("sparse int8"), 400000);
			test_large(subjects[s], shape_by_name("text, long prefixes"), 200000);
		}
		test_one_key(subjects[s], 110000 / small(subjects[s]));
		if (subjects[s] == &euno_bptree_ops)
			test_several_leaves(subjects[s]);
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
	tap_begin("keys were looked up several at once");
	CHECK(check_keys_read > 1000 || !subject_selected(&euno_bptree_ops),
		  "only %llu", (unsigned long long) check_keys_read);
	printf("# %llu\n", (unsigned long long) check_keys_read);
	tap_end();
	return tap_done();
}
