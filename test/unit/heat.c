/*-------------------------------------------------------------------------
 *
 * heat.c
 *	  Conflicts are counted, their leaves are found, and merging goes on from
 *	  where it stopped.
 *
 * With one thread.  Somebody else's change comes from within a comparison: after
 * the leaf was found, and before it is locked.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "core/bptree/bpt.h"
#include "fixture.h"
#include "tap.h"

static uint64_t seed;

static Actor rival;				/* who changes the leaf */
static bool turned;				/* it is the other way round */
static uint32_t target;			/* an entry of that leaf */
static uint32_t after;			/* comparisons before that */

/* With the first n entries. */
static void
open_some(Case *c, const Universe *universe, uint32_t n)
{
	case_open(c, &euno_bptree_ops, universe, 1, seed);
	actor_init(&rival, &c->fixture, 2, seed + 1);
	turned = false;

	/* Where an operation is, fight() knows by the comparisons it has made. */
	c->actor.cx.approximate = rival.cx.approximate = NULL;
	for (uint32_t i = 0; i < n; i++)
		do_insert(&c->actor, &c->model, i);
}

static void
open_full(Case *c, const Universe *universe)
{
	open_some(c, universe, universe->n);
}

static void
close_both(Case *c)
{
	actor_free(&rival);
	case_close(c);
}

static void
toggle(Actor *actor, Model *model, uint32_t i)
{
	if (model->present[i])
		do_remove(actor, model, i);
	else
		do_insert(actor, model, i);
}

static void
interfere(void *arg)
{
	Case	   *c = arg;

	if (after-- > 0)
		return;
	compare_called = NULL;
	toggle(turned ? &c->actor : &rival, &c->model, target);
}

/* Inserts or removes an entry while a rival does the same to its neighbor. */
static void
fight(Case *c, uint32_t i)
{
	Actor	   *actor = turned ? &rival : &c->actor;

	target = i ^ 1;

	/* In the leaf, after a descent. */
	after = 6;
	actor->cx.last.again = false;
	compare_called = interfere;
	compare_called_arg = c;
	toggle(actor, &c->model, i);
	compare_called = NULL;
}

static uint32_t
heat_of(Case *c, bool round, EunoHeat *heat, uint32_t max)
{
	return euno_bptree_ops.heat(&c->actor.cx, c->fixture.tree, round, heat, max);
}

/* Is entry i in the leaf that the heat is about? */
static bool
leads_to(Case *c, const EunoHeat *heat, uint32_t i)
{
	static EunoLeafInfo info;
	EunoStatus	status = euno_bptree_ops.leaf(&c->actor.cx, c->fixture.tree,
											  heat, &info);
	const Universe *universe = c->fixture.universe;
	uint32_t	low;
	uint32_t	high;
	uint32_t	n = 0;

	CHECK(status == EUNO_OK, "leaf: status %d", status);
	if (status != EUNO_OK)
		return false;
	low = info.has_low ? universe_below(universe, &info.low.pos) : 0;
	high = info.has_high ? universe_below(universe, &info.high.pos) :
		universe->n;
	for (uint32_t e = low; e < high; e++)
		n += c->model.present[e];
	CHECK(info.entries == n && n > 0, "%u entries instead of %u", info.entries, n);
	return low <= i && i < high;
}

static uint64_t
cause(const Case *c, EunoCause cause)
{
	return c->actor.cx.counters.conflicts[cause] +
		rival.cx.counters.conflicts[cause];
}

static bool
same_key(const EunoEntry *a, const EunoEntry *b)
{
	return a->keylen == b->keylen && memcmp(a->key, b->key, a->keylen) == 0;
}

/* Does fighting for this entry make conflicts?  Not if it is found too soon. */
static bool
is_fought_for(Case *c, uint32_t i)
{
	uint64_t	before = cause(c, EUNO_CAUSE_CHANGED);

	for (int n = 0; n < 8; n++)
		fight(c, i);
	return cause(c, EUNO_CAUSE_CHANGED) - before >= 8;
}

/* Another entry of this one's leaf, of another key. */
static uint32_t
beside(Case *c, const EunoHeat *heat, uint32_t i)
{
	const Universe *universe = c->fixture.universe;

	for (uint32_t other = i - 40; other <= i + 40; other += 2)
		if (!same_key(&universe->entries[i].entry,
					  &universe->entries[other].entry) &&
			leads_to(c, heat, other) && is_fought_for(c, other))
			return other;
	CHECK(false, "no other key to fight for");
	return i;
}

static void
test_calm(const Universe *universe)
{
	EunoHeat	heat;
	Case		c;

	tap_begin("without conflicts nothing is hot");
	open_full(&c, universe);
	for (uint32_t i = 0; i < universe->n; i++)
		toggle(&c.actor, &c.model, i);
	for (int i = 0; i < 6; i++)
		CHECK(cause(&c, (EunoCause) i) == 0, "conflicts of cause %d", i);
	CHECK(heat_of(&c, true, &heat, 1) == 0, "a hot leaf");
	CHECK(c.actor.cx.counters.removals == universe->n, "%llu removals",
		  (unsigned long long) c.actor.cx.counters.removals);
	close_both(&c);
	tap_end();
}

static void
test_causes(const Universe *universe)
{
	EunoHeat	heat[8];
	uint32_t	other;			/* an entry of the same leaf */
	Case		c;

	tap_begin("conflicts are counted, by what they are about");
	open_full(&c, universe);
	/* One process with one key is taken for one operation. */
	for (int i = 0; i < 100; i++)
		fight(&c, 100);
	CHECK(cause(&c, EUNO_CAUSE_SAME_KEY) == 0, "%llu of one process",
		  (unsigned long long) cause(&c, EUNO_CAUSE_SAME_KEY));
	for (int i = 0; i < 400; i++)
	{
		fight(&c, 100);
		turned = !turned;
	}
	CHECK(cause(&c, EUNO_CAUSE_CHANGED) >= 400, "%llu changes",
		  (unsigned long long) cause(&c, EUNO_CAUSE_CHANGED));
	CHECK(cause(&c, EUNO_CAUSE_SAME_KEY) >= 300, "%llu of one key",
		  (unsigned long long) cause(&c, EUNO_CAUSE_SAME_KEY));
	CHECK(cause(&c, EUNO_CAUSE_OTHER_KEY) == 0, "%llu of others",
		  (unsigned long long) cause(&c, EUNO_CAUSE_OTHER_KEY));
	CHECK(heat_of(&c, false, heat, 8) == 1, "not one hot leaf");
	CHECK(leads_to(&c, &heat[0], 100), "another leaf is hot");
	CHECK(heat[0].causes[EUNO_CAUSE_SAME_KEY] >= 300, "%u of one key",
		  heat[0].causes[EUNO_CAUSE_SAME_KEY]);
	other = beside(&c, &heat[0], 100);
	for (int i = 0; i < 800; i++)
		fight(&c, i / 8 % 2 == 0 ? 100 : other);
	CHECK(cause(&c, EUNO_CAUSE_OTHER_KEY) >= 600, "%llu of others",
		  (unsigned long long) cause(&c, EUNO_CAUSE_OTHER_KEY));
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

/* The table of conflicts is there, with none. */
static void
make_table(Case *c)
{
	EunoTree   *tree = c->fixture.tree;
	EunoContext *cx = &c->actor.cx;
	EunoPosition pos = {.key = c->fixture.universe->entries[0].entry.key,
	.keylen = c->fixture.universe->entries[0].entry.keylen};
	EunoHeat	heat;
	BptKey		key;

	euno_bpt_key_position(tree, &pos, &key);
	euno_epoch_enter(cx->process);
	for (int i = 0; i < 32; i++)
		euno_bpt_conflict(cx, tree, bpt_body(tree)->first, &key,
						  EUNO_CAUSE_CHANGED);
	euno_epoch_exit(cx->process);
	for (int i = 0; i < 2; i++)
		CHECK(heat_of(c, true, &heat, 1) == 1, "no table");
}

/* Writers to a contended leaf leave a trace, too. */
static void
test_contended(const Universe *universe)
{
	EunoHeat	heat[8];
	EunoPosition pos = {0};
	uint64_t	contended = 0;
	Case		c;

	tap_begin("writes to contended leaves are counted");
	open_full(&c, universe);
	pos.key = universe->entries[1000].entry.key;
	pos.keylen = universe->entries[1000].entry.keylen;
	CHECK(euno_bptree_ops.set_mode(&c.actor.cx, c.fixture.tree, &pos, true) ==
		  EUNO_OK, "it cannot be contended");
	make_table(&c);
	do_remove(&c.actor, &c.model, 1000);
	for (int i = 0; i < 201; i++)
	{
		/* A backend's counters are cleared at the end of each transaction. */
		contended += c.actor.cx.counters.contended;
		memset(&c.actor.cx.counters, 0, sizeof(EunoCounters));
		toggle(&c.actor, &c.model, 1000);
	}
	CHECK(contended >= 199, "%llu writes", (unsigned long long) contended);
	CHECK(heat_of(&c, true, heat, 8) == 1 && heat[0].writes >= 160 &&
		  heat[0].fresh == 0, "%u writes", heat[0].writes);
	CHECK(leads_to(&c, &heat[0], 1000), "to another leaf");
	CHECK(heat_of(&c, true, heat, 8) == 0, "a round later");
	close_both(&c);
	tap_end();
}

/* A place that was written to had no conflict yet that others are like. */
static void
test_first(const Universe *universe)
{
	EunoHeatPlace place = {.number = 77,.state = 3};
	EunoHeatTable **table;
	Case		c;

	tap_begin("the first conflict of a place is not compared with another's");
	open_some(&c, universe, 1000);
	table = &bpt_body(c.fixture.tree)->heat;
	for (int i = 0; i < 3; i++)
	{
		EunoPosition pos = {.key = universe->entries[i].entry.key,
		.keylen = universe->entries[i].entry.keylen};
		uint32_t	apart;

		/* The table is there after the first one. */
		place.number = i == 0 ? 5 : 77;
		apart = euno_heat_note(&c.actor.cx, c.fixture.tree, table, &place, &pos,
							   i == 1 ? EUNO_CAUSE_NONE : EUNO_CAUSE_CHANGED);
		CHECK(apart == 0, "note %d: %u apart", i, apart);
	}
	close_both(&c);
	tap_end();
}

static void
test_rounds(const Universe *universe)
{
	EunoHeat	heat[8];
	uint32_t	fresh;
	Case		c;

	tap_begin("a round later conflicts are of the round before, then forgotten");
	open_full(&c, universe);
	for (int i = 0; i < 200; i++)
		fight(&c, 40);
	CHECK(heat_of(&c, true, heat, 8) == 1 && heat[0].before == 0, "round one");
	fresh = heat[0].fresh;
	CHECK(fresh >= 160 && fresh <= 240, "%u conflicts", fresh);
	CHECK(heat_of(&c, true, heat, 8) == 1 && heat[0].fresh == 0 &&
		  heat[0].before == fresh, "round two");
	CHECK(heat_of(&c, true, heat, 8) == 0, "round three");
	close_both(&c);
	tap_end();
}

/* More leaves than the table has places: the hottest is still found. */
static void
test_many(const Universe *universe)
{
	static EunoHeat heat[EUNO_HEAT_LEAVES];
	uint32_t	hot = universe->n / 2;
	uint32_t	n;
	Case		c;

	tap_begin("the hottest leaf is found among many");
	open_full(&c, universe);
	while (!is_fought_for(&c, hot))
		hot += 2;
	for (int i = 0; i < 20000; i++)
		fight(&c, i % 4 == 0 ? hot :
			  random_below(&c.actor.random, universe->n) & ~1U);
	n = heat_of(&c, false, heat, EUNO_HEAT_LEAVES);
	CHECK(n >= 20 && leads_to(&c, &heat[0], hot), "%u leaves", n);
	for (uint32_t i = 1; i < n; i++)
		CHECK(heat[i].fresh <= heat[i - 1].fresh, "out of order");
	CHECK(heat_of(&c, false, heat, 3) == 3 && leads_to(&c, &heat[0], hot),
		  "not the hottest three");
	close_both(&c);
	tap_end();
}

static EunoTreeStats
stats_of(Case *c)
{
	EunoTreeStats stats;

	euno_bptree_ops.stats(&c->actor.cx, c->fixture.tree, &stats);
	return stats;
}

/* Every step-th entry is in the tree, and no other. */
static void
set_all(Case *c, uint32_t step)
{
	for (uint32_t i = 0; i < c->fixture.universe->n; i++)
	{
		if (c->model.present[i] != (i % step == 0))
			toggle(&c->actor, &c->model, i);
	}
}

/* Merges a few leaves at a time; others merge and split in between. */
static void
test_tidy(const Universe *universe)
{
	uint32_t	merged = 0;
	uint32_t	total = 0;
	uint64_t	before;
	EunoStatus	status;
	Case		c;

	tap_begin("%s: merging a few leaves at a time", universe->shape->name);
	open_full(&c, universe);
	before = stats_of(&c).leaves;
	set_all(&c, 16);
	do
	{
		status = euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree, 0, 3,
										 &merged);
		CHECK(status == EUNO_OK || status == EUNO_DONE, "status %d", status);
		CHECK(merged <= 3, "%u merges of 3 leaves", merged);
		total += merged;
	} while (status == EUNO_OK);
	CHECK(stats_of(&c).leaves <= before / 8 && total == before - stats_of(&c).leaves,
		  "%llu of %llu leaves are left", (unsigned long long) stats_of(&c).leaves,
		  (unsigned long long) before);
	check_all(&c.actor, &c.model);

	/*
	 * The leaf where it stopped goes, and its memory is used for others.
	 * Leaves are too full to be merged, but for two FIXED ones, the tenth the
	 * left one.
	 */
	for (uint32_t stop = 1; stop <= 12; stop++)
	{
		set_all(&c, 1);
		status = euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree,
										 EUNO_COMPACT_BEGIN, stop, &merged);
		CHECK(status == EUNO_OK && merged <= (stop >= 10), "status %d, %u merges",
			  status, merged);
		set_all(&c, 16);
		do_compact(&c.actor);
		set_all(&c, 1);
		while (euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree, 0, 2,
									   &merged) == EUNO_OK)
			;
	}
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

/*
 * Conflicts about different keys part their leaf, as far as that is allowed.
 */
static void
test_parts(const Universe *universe)
{
	uint32_t	most = 5;
	uint32_t	other;
	uint64_t	before;
	EunoHeat	heat[8];
	Case		c;

	tap_begin("a leaf is parted between the keys that are fought for");
	open_full(&c, universe);
	for (int i = 0; i < 32; i++)
		fight(&c, 100);
	CHECK(heat_of(&c, false, heat, 8) == 1, "not one hot leaf");
	other = beside(&c, &heat[0], 100);
	for (int i = 0; i < 400; i++)
		fight(&c, i / 8 % 2 == 0 ? 100 : other);
	CHECK(stats_of(&c).parted == 0, "unasked");
	euno_bptree_ops.steer(&c.actor.cx, c.fixture.tree, 200, most);
	for (int i = 0; i < 400; i++)
		fight(&c, 2000);
	CHECK(stats_of(&c).parted == 0, "for one key");
	before = stats_of(&c).leaves;
	for (int i = 0; i < 400; i++)
		fight(&c, i / 8 % 2 == 0 ? 100 : other);
	CHECK(stats_of(&c).parted >= 2 && stats_of(&c).leaves > before,
		  "%llu of %llu leaves", (unsigned long long) stats_of(&c).parted,
		  (unsigned long long) stats_of(&c).leaves);
	for (int i = 0; i < 10000; i++)
		fight(&c, 100 + i / 8 % 64 * 2);
	CHECK(stats_of(&c).parted >= most && stats_of(&c).parted <= most + 1,
		  "%llu leaves", (unsigned long long) stats_of(&c).parted);
	(void) heat_of(&c, false, heat, 8);
	CHECK(leads_to(&c, &heat[0], 100) + leads_to(&c, &heat[0], other) < 2,
		  "both keys are in one leaf");
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

/* What was parted is merged when nobody writes to it, and not before. */
static void
test_merged_back(const Universe *universe)
{
	const EunoEntry *entry = &universe->entries[1000].entry;

	/* With keys of any length, two halves can be too much for one leaf. */
	bool		fit = universe->shape->order == EUNO_ORDER_BYTES;
	uint32_t	merged;
	uint64_t	before;
	BptImage	image;
	Case		c;

	tap_begin("%s: what was parted is merged when it is idle",
			  universe->shape->name);
	open_full(&c, universe);

	/* Leaves so full that only two halves of one can be merged. */
	for (uint32_t i = 300; i < 1800; i += 3)
		toggle(&c.actor, &c.model, i);
	do_compact(&c.actor);
	before = stats_of(&c).leaves;
	euno_epoch_enter(c.actor.cx.process);
	euno_bpt_part_leaf(&c.actor.cx, c.fixture.tree, entry, 0, &image);
	euno_epoch_exit(c.actor.cx.process);
	CHECK(stats_of(&c).parted == 2, "not parted");
	for (int pass = 0; pass < 3; pass++)
	{
		/* On the one side, then on the other. */
		for (int i = 0; i < 1000; i++)
			toggle(&c.actor, &c.model, pass == 2 ? 999 : 1000);
		(void) euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree, 0, UINT32_MAX,
									   &merged);
		CHECK(stats_of(&c).parted >= 1 || !fit, "merged in pass %d", pass);
	}
	for (int pass = 0; pass < 2; pass++)
		(void) euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree, 0, UINT32_MAX,
									   &merged);
	CHECK(stats_of(&c).parted == 0 && (stats_of(&c).leaves <= before || !fit), "not merged");
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

/* Contended leaves become calm when compact finds nothing written twice. */
static void
test_idle(const Universe *universe)
{
	uint32_t	merged;
	uint64_t	before;
	Case		c;

	tap_begin("contended leaves that are idle become calm");
	open_full(&c, universe);
	CHECK(euno_bptree_ops.set_mode(&c.actor.cx, c.fixture.tree, NULL, true) ==
		  EUNO_OK, "not all can be contended");
	before = stats_of(&c).contended;
	CHECK(before > 10, "%llu are", (unsigned long long) before);
	for (int pass = 0; pass < 2; pass++)
	{
		toggle(&c.actor, &c.model, 1000);
		toggle(&c.actor, &c.model, 1000);
		CHECK(stats_of(&c).contended == before, "calm after %d passes", pass);
		while (euno_bptree_ops.compact(&c.actor.cx, c.fixture.tree,
									   EUNO_COMPACT_CALM, 7, &merged) == EUNO_OK)
			;
	}
	CHECK(stats_of(&c).contended == 1, "%llu are contended",
		  (unsigned long long) stats_of(&c).contended);
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

/* Somebody has the directory's mutex while leaves are split. */
static void
test_directory(const Universe *universe)
{
	uint64_t   *conflicts;
	EunoLock   *mutex;
	Case		c;

	tap_begin("conflicts at inner nodes");
	open_some(&c, universe, universe->n / 2);
	conflicts = &c.actor.cx.counters.conflicts[EUNO_CAUSE_DIRECTORY];
	mutex = &bpt_body(c.fixture.tree)->directories[0].mutex;
	CHECK(*conflicts == 0, "%llu without others", (unsigned long long) *conflicts);
	CHECK(euno_mutex_trylock(mutex), "the mutex is locked");
	for (uint32_t i = universe->n / 2; i < universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	euno_mutex_unlock(mutex, &test_env);
	CHECK(*conflicts > 0, "none while the directory is busy");
	check_all(&c.actor, &c.model);
	close_both(&c);
	tap_end();
}

int
main(void)
{
	Universe   *compared;
	Universe   *plain;

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	compared = universe_make(shape_by_name("comparator"), 8000, seed);
	plain = universe_make(shape_by_name("sparse int8"), 12000, seed);
	test_calm(compared);
	test_causes(compared);
	test_contended(plain);
	test_first(compared);
	test_rounds(compared);
	test_many(compared);
	test_idle(plain);
	test_directory(plain);
	test_parts(compared);
	test_merged_back(plain);
	test_merged_back(compared);
	test_tidy(plain);
	test_tidy(compared);
	universe_free(plain);
	universe_free(compared);
	return tap_done();
}
