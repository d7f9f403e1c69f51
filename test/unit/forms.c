/*-------------------------------------------------------------------------
 *
 * forms.c
 *	  Nodes in every form: what a split, a merge or a change of format must
 *	  get right wherever the new entry falls.
 *
 * Each test makes a tree of one or a few full leaves, does one thing to it,
 * and looks at all of it; then the same with the next place, size or order.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/art/art.h"
#include "core/bptree/bpt_view.h"
#include "fixture.h"
#include "tap.h"

static uint64_t seed;

/* The kind of keys of the current test, for the shape's make function. */
typedef struct Form
{
	uint32_t	base_length;	/* of the keys of the full leaf */
	uint32_t	base_payload;
	uint32_t	base_per_key;	/* TIDs per key */
	uint32_t	odd_length;		/* of the entries that come later */
	uint32_t	odd_payload;
} Form;

static Form form;

/* Numbers in the last bytes, the rest alike. */
static void
put_number(uint8_t *key, uint32_t length, uint32_t number)
{
	key[0] = 2;
	memset(key + 1, 'm', length - 1);
	for (uint32_t i = 0; i < 4 && i < length - 1; i++)
		key[length - 1 - i] = (uint8_t) (number >> (8 * i));
}

/*
 * Even i: an entry of the full leaf.  Odd i: one of those that come later, of
 * another length, between the even ones.  No key is a prefix of another one:
 * their first base_length bytes differ.
 */
static uint32_t
make_form(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	length = form.base_length;

	(void) random;
	(void) n;
	*payloadlen = form.base_payload;
	if (i % 2 == 0)
		put_number(key, length, i / 2 / form.base_per_key * 256);
	else
	{
		length = form.odd_length;
		*payloadlen = form.odd_payload;

		put_number(key, form.base_length, i / 2 / form.base_per_key * 256 + 128);
		if (length > form.base_length)
			memset(key + form.base_length, 'z', length - form.base_length);
		else
			length = form.base_length;
	}
	return *prefix = length;
}

static const Shape form_shape = {
	"form", EUNO_ORDER_BYTES, false, false, NULL, make_form, 1
};
static const Shape form_shape_posting = {
	"form, posting", EUNO_ORDER_BYTES, true, false, NULL, make_form, 1
};

/*
 * One tree per odd entry: the even ones loaded, then that one inserted, found,
 * and removed again.
 */
static void
test_insert_anywhere(const EunoTreeOps *ops, const char *what, const Form *f,
					 const Shape *shape, uint32_t n)
{
	Universe   *universe;
	uint32_t	step;

	form = *f;
	universe = universe_make(shape, 2 * n, seed);
	tap_begin("%s: %s", ops->name, what);
	step = universe->n * small(ops) / 150 + 1;
	for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i += step)
	{
		Fixture		fixture;
		Actor		actor;
		Model		model;

		fixture_open(&fixture, ops, universe, (uint16_t) (i % 2 ? 100 : 90), 1);
		actor_init(&actor, &fixture, 1, seed + i);
		model_init(&model, universe);
		for (uint32_t j = 0; j < universe->n; j++)
			model_set(&model, j,
					  universe->entries[j].entry.keylen == f->base_length &&
					  j != i);
		if (i % 4 < 2)
			do_bulk_load(&actor, &model);
		else
		{
			Model		again;

			/* the same by insertion, in ascending or descending order */
			model_init(&again, universe);
			for (uint32_t j = 0; j < universe->n; j++)
			{
				uint32_t	at = i % 4 == 2 ? j : universe->n - 1 - j;

				if (model.present[at])
					do_insert(&actor, &again, at);
			}
			model_free(&again);
		}
		for (uint32_t j = i; j < i + 6 && j < universe->n; j++)
			do_insert(&actor, &model, j);
		check_all(&actor, &model);
		for (uint32_t j = i; j < i + 6 && j < universe->n; j++)
			do_remove(&actor, &model, j);
		do_compact(&actor);
		check_all(&actor, &model);
		model_free(&model);
		actor_free(&actor);
		fixture_close(&fixture);
	}
	universe_free(universe);
	tap_end();
}

static void
test_all_forms(const EunoTreeOps *ops)
{
	static const struct
	{
		const char *what;
		Form		form;
		bool		posting;
		uint32_t	n;
	}			tests[] = {
		{"equal lengths", {9, 0, 1, 9, 0}, true, 600},
		{"equal lengths, 2 bytes", {3, 0, 1, 3, 0}, true, 600},
		{"longer keys among short ones", {9, 0, 1, 40, 0}, true, 600},
		{"very long keys among short ones", {9, 0, 1, 2600, 0}, true, 300},
		{"the longest keys among the longest", {EUNO_MAX_ENTRY, 0, 1, EUNO_MAX_ENTRY, 0}, true, 40},
		{"half-length keys among the longest", {EUNO_MAX_ENTRY, 0, 1, EUNO_MAX_ENTRY / 2, 0}, true, 30},
		{"the longest keys among half-length ones", {1300, 0, 1, EUNO_MAX_ENTRY, 0}, true, 40},
		{"payloads among entries without", {9, 0, 1, 9, 30}, false, 600},
		{"the longest payloads among entries without", {9, 0, 1, 10, EUNO_MAX_ENTRY - 10}, false, 300},
		{"the longest payloads among each other", {9, EUNO_MAX_ENTRY - 9, 1, 9, EUNO_MAX_ENTRY - 9}, false, 40},
		{"posting lists", {9, 0, 50, 9, 0}, true, 2000},
		{"posting lists, long keys", {500, 0, 70, 600, 0}, true, 2000},
		{"payloads among posting lists", {9, 0, 50, 10, 8}, true, 2000},
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		test_insert_anywhere(ops, tests[i].what, &tests[i].form,
							 tests[i].posting ? &form_shape_posting : &form_shape,
							 tests[i].n);
}

/* Order in which all entries of a universe are inserted, or removed. */
typedef enum Order
{
	ASCENDING,
	DESCENDING,
	INWARD,						/* from both ends to the middle */
	OUTWARD,
	STRIDED,
	NORDERS
} Order;

static uint32_t
place(Order order, uint32_t i, uint32_t n)
{
	switch (order)
	{
		case ASCENDING:
			return i;
		case DESCENDING:
			return n - 1 - i;
		case INWARD:
			return i % 2 == 0 ? i / 2 : n - 1 - i / 2;
		case OUTWARD:
			return place(INWARD, n - 1 - i, n);
		default:
			/* columns of a table with 37 columns, one after the other */
			{
				uint32_t	rows = (n + 36) / 37;
				uint32_t	full = n - (rows - 1) * 37;	/* columns of all rows */
				uint32_t	column = i < full * rows ? i / rows :
					full + (i - full * rows) / (rows - 1);
				uint32_t	row = i < full * rows ? i % rows :
					(i - full * rows) % (rows - 1);

				return row * 37 + column;
			}
	}
}

static void
test_orders(const EunoTreeOps *ops, const Shape *shape)
{
	uint32_t	n = 6000 / shape->weight / small(ops);
	Universe   *universe = universe_make(shape, n, seed);

	n = universe->n;
	tap_begin("%s, %s: ascending, descending, inward, outward, strided",
			  ops->name, shape->name);
	for (int order = 0; order < NORDERS && tap_bad() == 0; order++)
	{
		Case		c;

		case_open(&c, ops, universe, 1, seed);
		for (uint32_t i = 0; i < n && tap_bad() == 0; i++)
			do_insert(&c.actor, &c.model, place((Order) order, i, n));
		CHECK(c.model.count == n, "%u entries of %u", c.model.count, n);
		check_all(&c.actor, &c.model);
		for (uint32_t i = 0; i < n && tap_bad() == 0; i++)
		{
			do_remove(&c.actor, &c.model,
					  place((Order) (NORDERS - 1 - order), i, n));
			if (i % (n / 5 + 1) == 0)
			{
				check_all(&c.actor, &c.model);
				do_compact(&c.actor);
				check_all(&c.actor, &c.model);
			}
		}
		CHECK(c.model.count == 0, "%u entries left", c.model.count);
		check_all(&c.actor, &c.model);
		case_close(&c);
	}
	universe_free(universe);
	tap_end();
}

/*
 * Prefixes that come and go: stretches of keys with one long prefix each, so
 * that leaves within a stretch leave it out, and leaves across two do not.
 */
static uint32_t
put_stretch(Random *random, uint32_t unit, uint8_t *key)
{
	uint32_t	stretch = random_below(random, 6);
	uint32_t	length = stretch * unit;

	key[0] = 2;
	key[1] = (uint8_t) (stretch + 1);
	memset(key + 2, 'a', length);
	for (int j = 0; j < 4; j++)
		key[2 + length + (uint32_t) j] = (uint8_t) random_below(random, 8) + 1;
	return 6 + length;
}

static uint32_t
make_stretches(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	(void) payloadlen;
	return *prefix = put_stretch(random, 37, key);
}

static uint32_t
make_long_stretches(Random *random, uint32_t i, uint32_t n, uint8_t *key,
					uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	(void) payloadlen;
	return *prefix = put_stretch(random, 530, key);
}

/*
 * Numbers, then so many bytes that a leaf has room for a dozen: all of a
 * length.
 */
static uint32_t
make_wide(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	(void) random;
	(void) n;
	(void) payloadlen;
	memset(key, 'a', 250);
	key[0] = 2;
	key[1] = (uint8_t) (i >> 8);
	key[2] = (uint8_t) i;
	return *prefix = 250;
}

static const Shape wide = {
	"long keys of one length", EUNO_ORDER_BYTES, true, false, NULL, make_wide, 16
};

static const Shape stretches = {
	"prefixes of several lengths", EUNO_ORDER_BYTES, true, false, NULL,
	make_stretches, 1
};
static const Shape long_stretches = {
	"very long prefixes", EUNO_ORDER_BYTES, false, false, NULL,
	make_long_stretches, 2
};

/* Keys of decimal digits: what their bytes are made of is to be found out. */
static uint32_t
make_decimal(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			 uint32_t *prefix, uint32_t *payloadlen)
{
	(void) random;
	(void) n;
	(void) payloadlen;
	memset(key, 'k', 30);
	key[0] = 2;
	for (int d = 29; d > 20; d--, i /= 10)
		key[d] = (uint8_t) ('0' + i % 10);
	key[30] = 0;
	return *prefix = 31;
}

static const Shape decimal = {
	"decimal digits", EUNO_ORDER_BYTES, true, false, NULL, make_decimal, 1
};

/*
 * Keys in no order, of which two fifths are there once and the others twice:
 * slots take about as much as lists.
 */
static uint32_t
make_few(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		 uint32_t *prefix, uint32_t *payloadlen)
{
	static const uint8_t number[16] = {0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 7, 8, 9, 9};
	uint64_t	value = (i / 16 * 10 + number[i % 16] + 1) *
		UINT64_C(0x9E3779B97F4A7C15);

	(void) random;
	(void) n;
	(void) payloadlen;
	memset(key, 'x', 12);
	key[0] = 2;
	for (int k = 1; k <= 8; k++, value <<= 8)
		key[k] = (uint8_t) (value >> 56);
	return *prefix = 12;
}

static const Shape few = {
	"one or two of each", EUNO_ORDER_BYTES, true, false, NULL, make_few, 1
};

/*
 * A row that is updated again and again: its key gets a new TID, and loses the
 * one before.  What is left of those must not grow, or every lookup of the key
 * would go through it; not with conflicts all the time ("company") either.
 */
static void
test_updates(const EunoTreeOps *ops, const Universe *universe, bool company)
{
	uint32_t	n = 20000 / small(ops);
	EunoEntry	entry = universe->entries[0].entry;
	EunoTreeStats stats;
	Case		c;

	tap_begin("%s: a key whose TID changes all the time%s", ops->name,
			  company ? ", others being met" : "");
	case_open(&c, ops, universe, 1, seed);
	for (uint32_t i = 1; i <= n && tap_bad() == 0; i++)
	{
		c.actor.cx.conflicts += company;
		entry.tid = i;
		CHECK(ops->insert(&c.actor.cx, c.fixture.tree, &entry, false) ==
			  EUNO_OK, "an insert failed");
		entry.tid = i - 1;
		if (i > 1)
			CHECK(ops->remove(&c.actor.cx, c.fixture.tree, &entry, NULL) ==
				  EUNO_OK, "a removal failed");
	}
	ops->stats(&c.actor.cx, c.fixture.tree, &stats);
	CHECK(stats.entries == 1 && stats.inners <= 8, "%llu entries, %llu inner nodes",
		  (unsigned long long) stats.entries, (unsigned long long) stats.inners);
	check_verify(&c.actor);
	case_close(&c);
	tap_end();
}

/* Inner nodes when an entry has come and gone. */
static uint64_t
inners_after(Actor *actor, const EunoTreeOps *ops, const EunoEntry *entry)
{
	EunoTree   *tree = actor->fixture->tree;
	EunoTreeStats stats;

	CHECK(ops->insert(&actor->cx, tree, entry, false) == EUNO_OK &&
		  ops->remove(&actor->cx, tree, entry, NULL) == EUNO_OK,
		  "an insert or a removal failed");
	ops->stats(&actor->cx, tree, &stats);
	return stats.inners;
}

/*
 * A second TID of a key comes and goes.  The node over both goes with it, but
 * for a while after a conflict.
 */
static void
test_company(const EunoTreeOps *ops, const Universe *universe)
{
	EunoEntry	entry = universe->entries[0].entry;
	uint32_t	rounds = 0;
	uint64_t	alone;
	Case		c;

	tap_begin("%s: a node is left to others for a while", ops->name);
	case_open(&c, ops, universe, 1, seed);
	entry.tid = 1;
	CHECK(ops->insert(&c.actor.cx, c.fixture.tree, &entry, false) == EUNO_OK,
		  "an insert failed");
	entry.tid = 2;
	alone = inners_after(&c.actor, ops, &entry);
	CHECK(inners_after(&c.actor, ops, &entry) == alone, "it grows");
	c.actor.cx.conflicts++;
	while (inners_after(&c.actor, ops, &entry) > alone && rounds < 1000)
		rounds++;
	CHECK(rounds >= 100 && rounds < 1000, "it stays for %u removals", rounds);
	CHECK(inners_after(&c.actor, ops, &entry) == alone, "and for another one");
	check_verify(&c.actor);
	case_close(&c);
	tap_end();
}

/* Shrinking a few nodes at a time, and others in between. */
static void
test_tidy(const EunoTreeOps *ops, const Universe *universe)
{
	uint32_t	merged;
	uint32_t	steps = 0;
	EunoStatus	status;
	EunoTreeStats before;
	EunoTreeStats after;
	Case		c;

	tap_begin("%s: a few nodes at a time", ops->name);
	case_open(&c, ops, universe, 1, seed);
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	for (uint32_t i = 0; i < universe->n; i++)
	{
		if (i % 16 != 0)
			do_remove(&c.actor, &c.model, i);
	}
	ops->stats(&c.actor.cx, c.fixture.tree, &before);
	do
	{
		status = ops->compact(&c.actor.cx, c.fixture.tree, 0, 3, &merged);
		CHECK(status == EUNO_OK || status == EUNO_DONE, "status %d", status);
		CHECK(merged <= 4, "%u changes to 3 nodes", merged);
		check_range(&c.actor, &c.model, false);
		steps++;
	} while (status == EUNO_OK && tap_bad() == 0);
	ops->stats(&c.actor.cx, c.fixture.tree, &after);
	CHECK(steps > 10 && after.inners <= before.inners / 2,
		  "%llu of %llu inner nodes are left after %u steps",
		  (unsigned long long) after.inners, (unsigned long long) before.inners,
		  steps);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

static void
test_shrinking(const EunoTreeOps *ops)
{
	Universe   *universe = universe_make(&decimal, 4000 / small(ops), seed);

	test_updates(ops, universe, false);
	test_updates(ops, universe, true);
	test_company(ops, universe);
	test_tidy(ops, universe);
	universe_free(universe);
}

/*
 * A tree that was loaded grows by a fifth, in no order.  Its leaves must not
 * all be full at the same time: no tenth of the growth makes a third of the
 * splits.
 */
static void
test_growth(const EunoTreeOps *ops)
{
	const uint32_t loaded = 100000;
	const uint32_t step = loaded / 50;
	uint32_t   *later = malloc(10 * step * sizeof(uint32_t));
	Random		random = {seed};
	uint32_t	n = 0;
	uint64_t	most = 0;
	EunoTreeStats before;
	EunoTreeStats after;
	Case		c;

	tap_begin("%s: a loaded tree grows", ops->name);
	case_make(&c, ops, shape_by_name("sparse int8"), loaded + 10 * step, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
	{
		if (random_below(&random, c.universe->n - i) < 10 * step - n)
			later[n++] = i;
		else
			model_set(&c.model, i, true);
	}
	do_bulk_load(&c.actor, &c.model);
	for (uint32_t k = 0; k < 10; k++)
	{
		ops->stats(&c.actor.cx, c.fixture.tree, &before);
		for (uint32_t i = 0; i < step && tap_bad() == 0; i++)
		{
			uint32_t	pick = random_below(&random, n);

			do_insert(&c.actor, &c.model, later[pick]);
			later[pick] = later[--n];
		}
		ops->stats(&c.actor.cx, c.fixture.tree, &after);
		if (after.splits - before.splits > most)
			most = after.splits - before.splits;
	}
	CHECK(after.splits > 100 && most * 3 < after.splits,
		  "%llu of %llu splits in a tenth of the growth",
		  (unsigned long long) most, (unsigned long long) after.splits);
	check_all(&c.actor, &c.model);
	free(later);
	case_close(&c);
	tap_end();
}

#define GROUPS			32
#define IN_GROUP		3000

static void
report_wrong(void *arg, const char *what)
{
	(void) arg;
	tap_fail(__FILE__, __LINE__, "verify: %s", what);
}

/* Loads of every size: what is left for the last leaf fits, or is split. */
static void
test_sizes(const EunoTreeOps *ops)
{
	Universe   *universe = universe_make(&few, 1400, seed);

	tap_begin("%s: loads of every size", ops->name);
	for (uint32_t n = 450; n <= universe->n && tap_bad() == 0; n++)
	{
		Case		c;

		case_open(&c, ops, universe, 1, seed);
		for (uint32_t i = 0; i < n; i++)
			model_set(&c.model, i, true);
		do_bulk_load(&c.actor, &c.model);
		if (n % 50 == 0)
			check_all(&c.actor, &c.model);
		case_close(&c);
	}
	universe_free(universe);
	tap_end();
}

/* Numbers as keys: in 9 bytes, as text of three lengths, and for a comparator. */
static uint32_t
number_key(uint64_t number, uint8_t *key)
{
	key[0] = 2;
	for (int i = 0; i < 8; i++)
		key[1 + i] = (uint8_t) (number >> (56 - 8 * i));
	return 9;
}

static uint32_t
letters_key(uint64_t number, uint8_t *key)
{
	uint32_t	n = 0;

	for (uint64_t d = UINT64_C(320000000000); d > 0; d /= 200)
		key[n++] = (uint8_t) (10 + number / d % 200);
	for (uint64_t k = number % 3; k > 0; k--)
		key[n++] = 9;
	key[n++] = 0;
	return n;
}

static uint32_t
compared_key(uint64_t number, uint8_t *key)
{
	key[0] = (uint8_t) snprintf((char *) key + 1, 14, "%012llu",
								(unsigned long long) number);
	return key[0] + 2U;			/* with the 0 of the second column */
}

typedef struct Grouped
{
	const char *shape;
	uint32_t	(*make) (uint64_t number, uint8_t *key);
	uint32_t	few;			/* entries a leaf has at least, on average */
} Grouped;

static const Grouped grouped[] = {
	{"sparse int8", number_key, 480},
	{"mixed lengths", letters_key, 220},
	{"comparator", compared_key, 100},
};

/*
 * Where entries come in ascending order to some places, leaves are filled, not
 * left behind half empty.
 */
static void
test_groups(const EunoTreeOps *ops, const Grouped *how)
{
	EunoVerify	verify = {.report = report_wrong};
	Random		random = {seed};
	uint64_t	next[GROUPS] = {0};
	EunoTreeStats stats;
	Case		c;

	tap_begin("%s, %s: entries ascend within groups", ops->name, how->shape);
	case_make(&c, ops, shape_by_name(how->shape), 10, seed);
	for (uint32_t i = 0; i < GROUPS * IN_GROUP; i++)
	{
		uint32_t	group = random_below(&random, GROUPS);
		uint8_t		key[32] __attribute__((aligned(8)));
		EunoEntry	entry = {.key = key,.tid = 1000000 + i};

		entry.keylen = how->make(group * UINT64_C(10000000000) + next[group]++,
								 key);
		CHECK(ops->insert(&c.actor.cx, c.fixture.tree, &entry, false) == EUNO_OK,
			  "insert");
	}
	(void) ops->verify(&c.actor.cx, c.fixture.tree, &verify);
	ops->stats(&c.actor.cx, c.fixture.tree, &stats);
	CHECK(stats.entries == GROUPS * IN_GROUP, "%llu entries",
		  (unsigned long long) stats.entries);
	CHECK(stats.leaves * how->few < stats.entries, "%llu leaves, %llu each",
		  (unsigned long long) stats.leaves,
		  (unsigned long long) (stats.entries / stats.leaves));
	case_close(&c);
	tap_end();
}

typedef struct Behind
{
	const char *shape;
	uint32_t	(*make) (uint64_t number, uint8_t *key);
	uint64_t	gap;			/* from one number that is loaded to the next */
	uint64_t	inserts;		/* behind each leaf */
	uint64_t	step;			/* from one of these to the next */
} Behind;

/* A number as an entry, with a TID that no other has. */
static EunoEntry
number_entry(const Behind *behind, uint64_t number, uint8_t *key)
{
	static EunoTid tid = 65537;

	if (++tid % 65536 == 0)
		tid++;
	return (EunoEntry) {.key = key,.keylen = behind->make(number, key),.tid = tid};
}

/* How many slots of a leaf are different. */
static uint32_t
leaf_entries(const BptLeaf *leaf)
{
	uint32_t	n = 0;
	BptView		view;

	(void) euno_bpt_view(leaf, &view);
	for (uint32_t i = 0; i < view.count; i = bpt_next_slot(&view, i))
		n++;
	return n;
}

/*
 * Descending inserts between a full leaf and the next one: they get leaves, and
 * not one each.
 */
static void
test_behind(const Behind *behind)
{
	const EunoTreeOps *ops = &euno_bptree_ops;
	Universe   *universe = universe_make(shape_by_name(behind->shape), 10, seed);
	EunoBulk   *bulk = aligned_alloc(64, (sizeof(EunoBulk) + 63) / 64 * 64);
	uint64_t	loaded = 20000;
	uint64_t	inserted = 0;
	uint64_t	ends[10];
	uint64_t	sum = 0;
	uint32_t	n = 0;
	EunoTreeStats before;
	EunoTreeStats after;
	uint8_t		key[32];
	Fixture		fixture;
	Actor		actor;

	tap_begin("%s, %s: descending inserts behind full leaves", ops->name, behind->shape);
	fixture_open(&fixture, ops, universe, 100, 1);
	actor_init(&actor, &fixture, 1, seed);
	CHECK(ops->bulk_begin(&actor.cx, fixture.tree, bulk) == EUNO_OK, "begin");
	for (uint64_t i = 0; i < loaded; i++)
	{
		EunoEntry	entry = number_entry(behind, behind->gap * i, key);

		CHECK(ops->bulk_add(&actor.cx, bulk, &entry) == EUNO_OK, "add");
	}
	CHECK(ops->bulk_end(&actor.cx, bulk) == EUNO_OK, "end");
	ops->stats(&actor.cx, fixture.tree, &before);
	for (BptLeaf *leaf = bpt_body(fixture.tree)->first;
		 leaf->right != NULL && n < 10; leaf = leaf->right)
	{
		sum += leaf_entries(leaf);
		ends[n++] = behind->gap * (sum - 1);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		for (uint64_t k = behind->inserts; k-- > 0 && tap_bad() == 0; inserted++)
		{
			EunoEntry	entry = number_entry(behind, ends[i] + 1 + k * behind->step, key);

			CHECK(ops->insert(&actor.cx, fixture.tree, &entry, false) == EUNO_OK,
				  "insert");
		}
	}
	ops->stats(&actor.cx, fixture.tree, &after);
	CHECK(after.leaves <= before.leaves + 2 * n + 3 * inserted * before.leaves / loaded,
		  "%llu leaves became %llu", (unsigned long long) before.leaves,
		  (unsigned long long) after.leaves);
	check_verify(&actor);
	free(bulk);
	actor_free(&actor);
	fixture_close(&fixture);
	universe_free(universe);
	tap_end();
}

static const Behind behinds[] = {
	{"dense int8", number_key, 256, 255, 1},
	{"dense int8", number_key, 1000000, 3000, 333},
	{"text, long prefixes", letters_key, 8000000, 200, 39999},
	{"mixed lengths", letters_key, 8000000, 2000, 3999},
	{"comparator", compared_key, 1000000, 3000, 333},
};

/*
 * The types of a radix tree's nodes: where slots are, and what a reference
 * says.
 */
static void
test_types(const EunoTreeOps *ops)
{
	static ArtNode node __attribute__((aligned(16)));

	tap_begin("%s: types of nodes", ops->name);
	for (uint32_t type = 0; type < ART_NTYPES; type++)
	{
		const ArtLayout *layout = &euno_art_layouts[type];
		uint32_t	bytes = type <= ART_LAST_LIST ? ART_KEYS + (uint32_t) layout->capacity :
			type == ART_N256 ? ART_NODE_HEADER : ART_NODE_HEADER + 256U;
		ArtRef		ref;

		node.shape = 7 | type << 24;
		ref = art_node_ref(&node);
		CHECK(art_is_node(ref) && !art_is_absent(ref) && art_pointer(ref) == (void *) &node &&
			  art_ref_type(ref) == (ArtType) type && art_ref_level(ref) == 7,
			  "a reference to a node of type %u", type);
		CHECK(layout->children >= bytes && layout->children >= ART_NODE_HEADER &&
			  layout->size == layout->children + 8U * layout->words * layout->capacity &&
			  layout->size <= ART_NODE_MAX,
			  "the slots of a node of type %u", type);
		CHECK(euno_art_node_type(layout->capacity, layout->words) == (ArtType) type &&
			  (type == ART_N256 ||
			   euno_art_node_type(layout->capacity + 1U, layout->words) != (ArtType) type),
			  "what type %u is for", type);
	}
	tap_end();
}

/* Inserts a key with one of many TIDs, 60 of each page. */
static EunoStatus
insert_tid(Actor *actor, const uint8_t *key, uint32_t keylen, uint32_t i,
		   uint32_t odd)
{
	EunoEntry	entry = {
		.key = key,.keylen = keylen,
		.tid = (EunoTid) (i / 60) << 16 | (1 + i % 60 * 2 + odd)
	};

	return actor->fixture->ops->insert(&actor->cx, actor->fixture->tree, &entry,
									   false);
}

/* Makes the last leaf as large as leaves get: by keys that are removed again. */
static void
make_large(Actor *actor)
{
	uint8_t		key[2696];
	EunoEntry	entry = {.key = key,.keylen = sizeof(key),.tid = 1};
	char		number[8];

	for (uint32_t i = 0; i < 700; i++)
	{
		snprintf(number, sizeof(number), "!%06u", i);
		CHECK(insert_tid(actor, (uint8_t *) number, 8, 0, 0) == EUNO_OK, "insert");
	}
	for (uint32_t i = 0; i < 900; i++)
		CHECK(insert_tid(actor, (const uint8_t *) "\"\"\"\"\"\"\"\"", 8, i, 0) == EUNO_OK, "insert");
	for (int remove = 0; remove < 2; remove++)
		for (uint32_t i = 0; i < 3; i++)
		{
			memset(key, i == 1 ? '0' : '/', sizeof(key));
			key[sizeof(key) - 1] = (uint8_t) ('1' + i);
			CHECK((remove ? actor->fixture->ops->remove(&actor->cx, actor->fixture->tree, &entry, NULL) :
				   actor->fixture->ops->insert(&actor->cx, actor->fixture->tree, &entry, false)) == EUNO_OK,
				  "a long key");
		}
}

/*
 * A contended last leaf with as many TIDs as there may be, that are packed full:
 * what a fold leaves in it can be read together with what comes to its annex.
 */
static void
test_folds(void)
{
	static const uint8_t key[8] = "AAAAAAA";
	Universe   *universe = universe_make(shape_by_name("all equal"), 100, seed);
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));

	tap_begin("bptree: contended leaves with as many TIDs as may be");
	for (uint32_t n = 2400; n < 2850 && tap_bad() == 0; n += 15)
	{
		Fixture		fixture;
		Actor		actor;

		fixture_open(&fixture, &euno_bptree_ops, universe, 100, 1);
		actor_init(&actor, &fixture, 1, seed);
		make_large(&actor);
		for (uint32_t i = 0; i < n; i++)
			(void) insert_tid(&actor, key, 8, random_below(&actor.random, 3600), 0);
		CHECK(fixture.ops->set_mode(&actor.cx, fixture.tree, NULL, true) == EUNO_OK,
			  "set_mode");
		for (uint32_t i = 0; i < 4000 && tap_bad() == 0; i++)
		{
			EunoStatus	status = i % 25 == 0 ?
				insert_tid(&actor, key, 8, 20000 + i, 0) :
				insert_tid(&actor, key, 8, random_below(&actor.random, 3600), i % 2);

			CHECK(status == EUNO_OK || status == EUNO_EXISTS, "insert: %d", status);
			if (i % 20 != 0)
				continue;
			cursor->lo = (EunoPosition) {.key = key,.keylen = 8,.side = -1};
			cursor->hi = (EunoPosition) {.key = key,.keylen = 8,.side = 1};
			euno_cursor_start(cursor);
			actor.batch.want_keys = true;
			status = fixture.ops->read(&actor.cx, fixture.tree, cursor, false,
									   &actor.batch);
			CHECK(status == EUNO_OK, "read: %d", status);
		}
		actor_free(&actor);
		fixture_close(&fixture);
	}
	free(cursor);
	universe_free(universe);
	tap_end();
}

static EunoTreeStats
stats_of(Actor *actor)
{
	EunoTreeStats stats = {0};

	actor->fixture->ops->stats(&actor->cx, actor->fixture->tree, &stats);
	return stats;
}

/*
 * Who asks not to split does not split a contended leaf either, whose annex has
 * no place for the entry since its key is longer than others.
 */
static void
test_no_split(void)
{
	Universe   *universe = universe_make(shape_by_name("dense int8"), 1, seed);
	uint8_t		key[9] = {0x20};
	EunoEntry	entry = {.key = key,.keylen = 8};
	EunoStatus	status = EUNO_OK;
	EunoTreeStats before;
	Fixture		fixture;
	Actor		actor;

	tap_begin("bptree: no split of a contended leaf for who does not want it");
	fixture_open(&fixture, &euno_bptree_ops, universe, 1, 1);
	actor_init(&actor, &fixture, 1, seed);
	for (uint32_t i = 0; i < 400 && status == EUNO_OK; i++)
	{
		if (i == 250)
			CHECK(fixture.ops->set_mode(&actor.cx, fixture.tree, NULL, true) == EUNO_OK,
				  "set_mode");
		key[6] = (uint8_t) (i % 250);
		key[7] = (uint8_t) (i / 250);
		entry.tid = 0x10001 + i;
		status = fixture.ops->insert(&actor.cx, fixture.tree, &entry, i >= 250);
	}
	before = stats_of(&actor);
	CHECK(before.contended == 1, "%u contended leaves", (unsigned) before.contended);
	entry.keylen = 9;
	status = fixture.ops->insert(&actor.cx, fixture.tree, &entry, true);
	CHECK(status == EUNO_FULL, "insert: %d", status);
	CHECK(stats_of(&actor).splits == before.splits, "a split");
	status = fixture.ops->insert(&actor.cx, fixture.tree, &entry, false);
	CHECK(status == EUNO_OK, "insert that may split: %d", status);
	fixture_close(&fixture);
	universe_free(universe);
	tap_end();
}

static void
run_once(void)
{
	for (int s = 0; s < nsubjects; s++)
	{
		if (!subject_selected(subjects[s]))
			continue;
		test_all_forms(subjects[s]);
		for (int i = 0; i < nshapes; i++)
		{
			if (subject_holds(subjects[s], &shapes[i]))
				test_orders(subjects[s], &shapes[i]);
		}
		test_orders(subjects[s], &wide);
		test_orders(subjects[s], &stretches);
		test_orders(subjects[s], &long_stretches);
		test_orders(subjects[s], &decimal);
		if (strncmp(subjects[s]->name, "art", 3) == 0)
		{
			test_types(subjects[s]);
			test_shrinking(subjects[s]);
		}
		test_sizes(subjects[s]);
		if (subjects[s] == &euno_bptree_ops)
		{
			for (size_t i = 0; i < sizeof(behinds) / sizeof(behinds[0]); i++)
				test_behind(&behinds[i]);
		}
		if (subjects[s] == &euno_bptree_ops && small(subjects[s]) == 1)
		{
			test_folds();
			test_no_split();
		}
		if (subjects[s] == &euno_bptree_ops && small(subjects[s]) == 1)
		{
			test_growth(subjects[s]);
			for (size_t i = 0; i < sizeof(grouped) / sizeof(grouped[0]); i++)
				test_groups(subjects[s], &grouped[i]);
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
