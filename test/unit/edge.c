/*-------------------------------------------------------------------------
 *
 * edge.c
 *	  Where ascending keys crowd in a radix tree: the edge has nearly all of the
 *	  tree before it and nothing behind it, follows the keys, and ends.
 *
 * With one thread, whose writes are said to have failed.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "core/art/art.h"
#include "core/euno_delegate.h"
#include "fixture.h"
#include "tap.h"

/* The first 8 bytes of each composite are those of 255 others. */
#define ENTRIES		3000
#define ALIKE		256

static Case c;

static ArtEdge *
edge(void)
{
	return &art_body(c.fixture.tree)->edge;
}

static bool
there_is(void)
{
	return edge()->where != 0;
}

static void
composite_of(uint32_t i, ArtKey *key)
{
	euno_art_key_entry(&c.universe->entries[i].entry, key);
}

/* Tries to write entry i have ended at this depth, and failed. */
static void
collide(uint32_t i, uint32_t depth)
{
	EunoContext *cx = &c.actor.cx;
	EunoWish	wish = {.ops = c.fixture.ops,.entry = &c.universe->entries[i].entry,
	.removes = c.model.present[i] != 0};
	EunoStatus	status = EUNO_OK;
	ArtKey		key;

	composite_of(i, &key);
	cx->delegation.alone = 0;
	euno_epoch_enter(cx->process);
	if (euno_art_crowd(cx, c.fixture.tree, &key, ART_CROWD, depth, &wish, &status))
		model_set(&c.model, i, !wish.removes);
	euno_epoch_exit(cx->process);
	CHECK(status == EUNO_OK, "entry %u: status %d", i, status);
}

/* A write that knows of no crowd but that at the edge; was there company? */
static void
toggle(uint32_t i, bool company)
{
	EunoDelegation *my = &c.actor.cx.delegation;

	memset(my->crowded, 0, sizeof(my->crowded));
	if (company)
		my->alone = 0;
	if (c.model.present[i])
		do_remove(&c.actor, &c.model, i);
	else
		do_insert(&c.actor, &c.model, i);
}

/* Did the last write go to whoever leads at the edge? */
static bool
went_to_edge(void)
{
	return euno_is_crowded(&c.actor.cx, art_body(c.fixture.tree));
}

/* Keys that come one after the other. */
static void
test_ascending(const EunoTreeOps *ops)
{
	ArtEdge		before;

	tap_begin("%s: ascending keys", ops->name);
	case_make(&c, ops, shape_by_name("dense int8"), ENTRIES, test_seed());
	for (uint32_t i = 0; i < 4 * ALIKE; i++)
		toggle(i, false);
	CHECK(!there_is(), "an edge without a conflict");
	collide(2 * ALIKE, 8);
	CHECK(!there_is(), "keys in the middle are the last ones");
	collide(4 * ALIKE, 8);
	before = *edge();
	toggle(4 * ALIKE - 1, true);
	CHECK(went_to_edge(), "what comes a little late is not behind the edge");
	toggle(3 * ALIKE - 1, true);
	CHECK(!went_to_edge(), "nearly all is behind the edge");
	CHECK(there_is(), "the last key is not at the edge");
	for (uint32_t i = 4 * ALIKE + 1; i < 8 * ALIKE; i++)
	{
		toggle(i, true);
		CHECK(went_to_edge(), "entry %u is not behind the edge", i);
	}
	CHECK(edge()->bytes > before.bytes, "the edge stays where it was");
	toggle(ENTRIES - 1, true);
	CHECK(went_to_edge(), "a key far behind is not behind the edge");
	toggle(8 * ALIKE, true);
	CHECK(!went_to_edge(), "what the keys have left is behind the edge");
	collide(ENTRIES - 2, 8);
	for (int i = 1; i < EUNO_EDGE_ALONE; i++)
	{
		CHECK(there_is(), "the edge has ended after turn %d", i);
		toggle(ENTRIES - 2 - (uint32_t) i, false);
	}
	CHECK(!there_is(), "the edge stays when nobody else comes");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/* Do all entries but those with the first bytes of entry i come before it? */
static bool
is_last(uint32_t i, uint32_t depth)
{
	uint32_t	last = c.universe->n;
	ArtKey		key;
	ArtKey		greatest;

	while (last > 0 && !c.model.present[last - 1])
		last--;
	if (last == 0)
		return true;
	composite_of(i, &key);
	composite_of(last - 1, &greatest);
	return memcmp(greatest.bytes, key.bytes, depth) <= 0;
}

/* Where a try to write entry i ends. */
static uint32_t
depth_of(uint32_t i)
{
	EunoContext *cx = &c.actor.cx;
	ArtPlace	place;
	ArtKey		key;

	composite_of(i, &key);
	euno_epoch_enter(cx->process);
	(void) euno_art_descend(cx, c.fixture.tree, &key, true, true, &place);
	euno_epoch_exit(cx->process);
	return place.depth;
}

/*
 * What is behind the edge has more in common with entry i than what is
 * compared.
 */
static void
check_behind(uint32_t i, uint32_t depth)
{
	uint32_t	j = random_below(&c.actor.random, c.universe->n);
	ArtKey		key;
	ArtKey		other;

	composite_of(i, &key);
	composite_of(j, &other);
	toggle(j, true);
	CHECK(!went_to_edge() || depth <= 8 ||
		  memcmp(other.bytes, key.bytes, depth - 8) == 0,
		  "entry %u is behind the edge at entry %u, depth %u", j, i, depth);
}

/*
 * Whatever the keys are, and wherever writes fail: nothing else is called the
 * edge.
 */
static void
test_anywhere(const EunoTreeOps *ops, const Shape *shape)
{
	Random	   *random;

	tap_begin("%s: %s", ops->name, shape->name);
	case_make(&c, ops, shape, ENTRIES, test_seed());
	random = &c.actor.random;
	for (uint32_t round = 0; round < 2000; round++)
	{
		uint32_t	i = random_below(random, c.universe->n);
		uint32_t	depth = random_below(random, 16);
		bool		greatest = round % 4 == 0 &&
			model_previous(&c.model, c.universe->n, &i);
		bool		last;

		if (greatest)
			depth = depth_of(i);
		last = is_last(i, depth);
		edge()->where = 0;
		collide(i, depth);
		CHECK(!there_is() || last, "entry %u, depth %u: not the last", i, depth);
		CHECK(there_is() || !greatest || depth == 0 || depth > 255,
			  "entry %u, depth %u: not the edge", i, depth);
		if (there_is())
			check_behind(i, depth);
	}
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	const EunoTreeOps *trees[] = {&euno_art_olc_ops, &euno_art_rowex_ops};

	for (int t = 0; t < 2; t++)
	{
		test_ascending(trees[t]);
		for (int k = 0; k < nshapes; k++)
		{
			if (subject_holds(trees[t], &shapes[k]))
				test_anywhere(trees[t], &shapes[k]);
		}
	}
	return tap_done();
}
