/*-------------------------------------------------------------------------
 *
 * separators.c
 *	  Inner nodes that are taken apart and built again.
 *
 * A node is filled; then each separator in turn is taken out of it, which must
 * always be possible in the room there is.  In COMPARE order the others may
 * have a longer prefix afterwards.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/bptree/bpt_directory.h"
#include "fixture.h"
#include "tap.h"

static uint64_t seed;

/* Entries i, i + 1, ... of a universe as separators, as many as fit. */
static uint32_t
fill(BptSeps *set, const Universe *universe, uint32_t i, BptImage *image)
{
	static BptFence fences[BPT_MAX_SEPS];
	static uint8_t bytes[BPT_MAX_SEPS][BPT_MAX_COMPOSITE];

	set->children[0] = NULL;
	for (uint32_t n = 0; i + n < universe->n; n++)
	{
		const EunoEntry *entry = &universe->entries[i + n].entry;

		memcpy(bytes[n], entry->key, entry->keylen);
		fences[n].bytes = bytes[n];
		fences[n].len = entry->keylen;
		fences[n].tid = entry->tid;
		if (!euno_bpt_seps_insert(set, n, &fences[n], (void *) (uintptr_t) n))
			return n;
		if (!euno_bpt_seps_encode(set, 0, n + 1, BPT_INNER_SIZE, image))
		{
			euno_bpt_seps_remove(set, n);
			return n;
		}
	}
	return set->n;
}

/* Does an image say what the set does? */
static void
expect_same(Actor *actor, const BptSeps *set, const BptImage *image)
{
	static BptSeps again;
	uint8_t		mine[BPT_MAX_COMPOSITE + 8];
	uint8_t		its[BPT_MAX_COMPOSITE + 8];

	CHECK(euno_bpt_seps_load(&again, &actor->cx, actor->fixture->tree,
							 &image->inner) && again.n == set->n,
		  "the node makes no sense");
	CHECK(euno_bpt_heads_match(&again), "a head is not its separator's");
	for (uint32_t i = 0; i < set->n; i++)
	{
		uint32_t	len = euno_bpt_seps_get(set, i, mine);

		CHECK(again.children[i + 1] == set->children[i + 1] &&
			  (!set->opaque || again.seps[i].head == set->seps[i].head) &&
			  euno_bpt_seps_get(&again, i, its) == len &&
			  memcmp(mine, its, len) == 0, "separator %u is another one", i);
	}
}

/*
 * Fills nodes from each few entries on, and takes their separators out, one at
 * a time.
 */
static void
take_out(const Universe *universe)
{
	static BptImage full;
	static BptImage less;
	static BptSeps set;
	Case		c;
	uint32_t	n;

	case_open(&c, &euno_bptree_ops, universe, 1, seed);
	full.inner.size_log2 = less.inner.size_log2 =
		(uint8_t) __builtin_ctz(BPT_INNER_SIZE);
	for (uint32_t i = 0; i < universe->n && tap_bad() == 0; i += n / 4 + 1)
	{
		euno_bpt_seps_init(&set, &c.actor.cx, c.fixture.tree);
		n = fill(&set, universe, i, &full);
		CHECK(euno_bpt_seps_encode(&set, 0, n, BPT_INNER_SIZE, &full), "full");
		expect_same(&c.actor, &set, &full);
		for (uint32_t j = 0; j < n && n > 1; j++)
		{
			CHECK(euno_bpt_seps_load(&set, &c.actor.cx, c.fixture.tree,
									 &full.inner), "load");
			euno_bpt_seps_remove(&set, j);
			CHECK(euno_bpt_seps_encode(&set, 0, n - 1, BPT_INNER_SIZE, &less),
				  "no room without separator %u of %u", j, n);
			expect_same(&c.actor, &set, &less);
		}
	}
	case_close(&c);
}

static void
test_shape(const Shape *shape)
{
	Universe   *universe = universe_make(shape, 3000 / shape->weight /
										 small(&euno_bptree_ops), seed);

	tap_begin("%s: separators taken out of full nodes", shape->name);
	take_out(universe);
	universe_free(universe);
	tap_end();
}

/*
 * One short separator before others that have more in common than it takes;
 * of all lengths, so that some nodes are full to the last bytes.
 */
static void
test_one_short(void)
{
	const Shape *shape = shape_by_name("comparator, long prefixes");
	Universe   *universe = universe_make(shape, 60, seed);

	tap_begin("one short separator before many that are long and alike");
	for (uint32_t length = 90; length < 125; length++)
	{
		for (uint32_t i = 0; i < universe->n; i++)
		{
			EunoEntry  *entry = &universe->entries[i].entry;
			uint32_t	n = i == 0 ? 1 : length;
			uint8_t    *key = calloc(1, n + 2);

			memset(key + 1, 'm', n);
			key[0] = (uint8_t) n;

			/* such that its abbreviation is not wrong */
			key[n] = (uint8_t) ('A' + i % 50);
			if ((key[n] * 7 + 'm' + n + 2) % 64 == 0)
				key[n]++;
			free((void *) entry->key);
			entry->key = key;
			entry->keylen = n + 2;
		}
		take_out(universe);
	}
	universe_free(universe);
	tap_end();
}

static uint64_t comparisons;

static void
count_one(void *arg)
{
	(void) arg;
	comparisons++;
}

/* How often all entries together ask a comparator or an approximation. */
static uint64_t
count_comparisons(Actor *actor, const Universe *universe)
{
	const EunoTreeOps *ops = actor->fixture->ops;

	comparisons = 0;
	compare_called = count_one;
	for (uint32_t i = 0; i < universe->n; i++)
		CHECK(ops->contains(&actor->cx, actor->fixture->tree,
							&universe->entries[i].entry) == EUNO_OK,
			  "entry %u is not there", i);
	compare_called = NULL;
	return comparisons;
}

/* Are the heads used, and do they save most of what separators cost? */
static void
test_heads(void)
{
	const Shape *shape = shape_by_name("comparator, long prefixes");
	Case		c;
	uint64_t	with;
	uint64_t	without;

	tap_begin("heads save comparisons");
	case_make(&c, &euno_bptree_ops, shape, 20000, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
	{
		uint32_t	at = i * 7919 % c.universe->n;

		CHECK(c.fixture.ops->insert(&c.actor.cx, c.fixture.tree,
								  &c.universe->entries[at].entry, false) ==
			  EUNO_OK, "insert");
	}
	c.actor.cx.doubts = 0;
	with = count_comparisons(&c.actor, c.universe);
	c.actor.cx.doubts = 0;
	c.actor.cx.abbreviate = NULL;
	without = count_comparisons(&c.actor, c.universe);
	CHECK(with * 10 < without * 9, "%llu comparisons, %llu without heads",
		  (unsigned long long) with, (unsigned long long) without);
	case_close(&c);
	tap_end();
}

/* Comparisons for each batch of a scan of all entries. */
static uint64_t
scan_all(Case *c, bool forward)
{
	const EunoEntry *first = &c->universe->entries[0].entry;
	const EunoEntry *last = &c->universe->entries[c->universe->n - 1].entry;
	EunoCursor	cursor = {
		.lo = {.key = first->key,.keylen = first->keylen,.side = -1},
		.hi = {.key = last->key,.keylen = last->keylen,.side = 1}
	};
	EunoBatch  *batch = &c->actor.batch;
	uint32_t	reads = 0;
	uint32_t	found = 0;

	batch->max_items = ACTOR_ITEMS;
	batch->want_keys = false;
	euno_cursor_start(&cursor);
	comparisons = 0;
	compare_called = count_one;
	do
	{
		CHECK(c->fixture.ops->read(&c->actor.cx, c->fixture.tree, &cursor,
								   forward, batch) == EUNO_OK, "read");
		found += batch->nitems;
		reads++;
	} while (batch->nitems > 0 && !(forward ? cursor.at_hi : cursor.at_lo));
	compare_called = NULL;
	CHECK(found == c->universe->n, "%u entries", found);
	return comparisons / reads;
}

/*
 * A scan does not descend to the leaf at which it goes on forward, and does not
 * search in it.
 */
static void
test_scan(void)
{
	uint64_t	n;
	Case		c;

	tap_begin("scans ask little about where they go on");
	case_make(&c, &euno_bptree_ops, shape_by_name("comparator, long prefixes"),
			  20000, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	n = scan_all(&c, true);
	CHECK(n <= 6, "%u comparisons a batch, forward", (unsigned) n);
	n = scan_all(&c, false);
	CHECK(n <= 19, "%u comparisons a batch, backward", (unsigned) n);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	seed = test_seed();
	for (int i = 0; i < nshapes; i++)
		test_shape(&shapes[i]);
	test_one_short();
	test_heads();
	test_scan();
	return tap_done();
}
