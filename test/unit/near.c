/*-------------------------------------------------------------------------
 *
 * near.c
 *	  Maps of radix trees' upper nodes: how deep they are, and whether verify
 *	  finds what is wrong with one.
 *
 * With one thread.  Every descent is looked at, so that the notes of a map's use
 * are full after as many as there is room for.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/art/art_near.h"
#include "fixture.h"
#include "tap.h"

#define ENTRIES		150000
#define DOMAIN		1

static uint64_t seed;

static char found[200];			/* the last thing that verify has found */

/* With all entries, and a map. */
static void
open_full(Case *c, const EunoTreeOps *ops, const Universe *universe)
{
	case_open(c, ops, universe, 2, seed);
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&c->actor, &c->model, i);
	c->actor.cx.count_all = true;
	c->actor.cx.domain = DOMAIN;
	c->fixture.ops->maintain(&c->actor.cx, c->fixture.tree, DOMAIN);
}

static void
check_and_close(Case *c)
{
	check_all(&c->actor, &c->model);
	case_close(c);
}

/* A part of the universe: entries from so many percent on. */
static uint32_t
part(const Case *c, uint32_t percent)
{
	return (uint32_t) ((uint64_t) c->fixture.universe->n * percent / 100);
}

/*
 * Looks entries of a range up, here and there, so many times.  How many of a
 * hundred looked at nodes of the tree other than the one before the leaf.
 */
static uint32_t
lookups(Case *c, uint32_t from, uint32_t to, uint32_t n)
{
	EunoCounters *counters = &c->actor.cx.counters;
	uint64_t	before = counters->remote_inner_nodes;

	for (uint32_t i = 0; i < n; i++)
		do_contains(&c->actor, &c->model,
					from + random_below(&c->actor.random, to - from));
	return (uint32_t) ((counters->remote_inner_nodes - before) * 100 / n);
}

static ArtMap *
map_of(Case *c)
{
	ArtNear    *near = art_body(c->fixture.tree)->near;

	return near == NULL ? NULL : &near->maps[DOMAIN];
}

/* What the launcher does each round. */
static void
maintain(Case *c)
{
	c->fixture.ops->maintain(&c->actor.cx, c->fixture.tree, DOMAIN);
	CHECK(map_of(c) != NULL &&
		  map_of(c)->bytes <= art_map_limit(c->fixture.tree),
		  "the map takes more than it may");
}

/* Where room is short it is for what is used; elsewhere when that changes. */
static void
test_uses(const EunoTreeOps *ops, const Universe *universe)
{
	uint32_t	first;
	uint32_t	then;
	uint64_t	made;
	Case		c;

	tap_begin("%s: a map is deep where its domain reads", ops->name);
	open_full(&c, ops, universe);
	for (uint32_t from = 90; from >= 70; from -= 20)
	{
		first = lookups(&c, part(&c, from), part(&c, from + 4), 4000);
		maintain(&c);
		then = lookups(&c, part(&c, from), part(&c, from + 4), 4000);
		printf("# from %u percent on: %u nodes in 100 lookups, then %u\n", from,
			   first, then);
		CHECK(then + 70 < first, "%u of 100 before, %u after", first, then);
	}
	made = c.fixture.source->calls;
	for (int round = 0; round < 20; round++)
	{
		(void) lookups(&c, part(&c, 70), part(&c, 74), 2000);
		maintain(&c);
	}
	CHECK(c.fixture.source->calls == made, "it is made anew for the same uses");
	check_and_close(&c);
	tap_end();
}

/* Uses that are the same everywhere give no reason to make a map anew. */
static void
test_even(const EunoTreeOps *ops, const Universe *universe)
{
	uint64_t	made;
	uint32_t	again = 0;
	Case		c;

	tap_begin("%s: a map of even uses stays", ops->name);
	open_full(&c, ops, universe);
	for (int round = 0; round < 20; round++)
	{
		made = c.fixture.source->calls;
		(void) lookups(&c, 0, universe->n, 2000);
		maintain(&c);
		again += c.fixture.source->calls != made;
	}
	CHECK(again <= 1, "it is made %u times", again);
	check_and_close(&c);
	tap_end();
}

/* Removes what a range's nodes hold, all but a few, and inserts it again. */
static void
change(Case *c, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
	{
		if (i % 8 != 0)
			do_remove(&c->actor, &c->model, i);
	}
	do_compact(&c->actor);
	for (uint32_t i = from; i < to; i++)
	{
		if (i % 8 != 0)
			do_insert(&c->actor, &c->model, i);
	}
}

/*
 * Where nodes are replaced more often than they are read, the map ends above
 * them.
 */
static void
test_changes(const EunoTreeOps *ops, const Universe *universe)
{
	uint32_t	read;
	uint32_t	changed;
	uint32_t	again;
	Case		c;

	tap_begin("%s: a map ends where nodes change, as long as they do", ops->name);
	open_full(&c, ops, universe);
	(void) lookups(&c, part(&c, 90), part(&c, 94), 4000);
	maintain(&c);
	read = lookups(&c, part(&c, 90), part(&c, 94), 4000);
	c.actor.cx.domain = 0;
	for (int i = 0; i < 4; i++)
		change(&c, part(&c, 90), part(&c, 94));
	c.actor.cx.domain = DOMAIN;
	maintain(&c);
	changed = lookups(&c, part(&c, 90), part(&c, 94), 200);
	(void) lookups(&c, part(&c, 90), part(&c, 94), 4000);
	maintain(&c);
	again = lookups(&c, part(&c, 90), part(&c, 94), 4000);
	printf("# %u nodes in 100 lookups, %u after changes, then %u\n", read, changed,
		   again);
	CHECK(changed > read + 70, "it is as deep as before: %u of 100, %u before",
		  changed, read);
	CHECK(again < read + 20, "it stays as it is: %u of 100, %u before", again, read);
	check_and_close(&c);
	tap_end();
}

/*
 * What is lost of a large map is counted, about, and it is made anew once that
 * is much, though the tree is no larger.
 */
static void
test_lost(const EunoTreeOps *ops, const Universe *universe)
{
	uint64_t	names;
	uint64_t	lost;
	uint64_t	made;
	Case		c;

	tap_begin("%s: a large map that has lost much is made anew", ops->name);
	open_full(&c, ops, universe);
	c.actor.cx.domain = 0;
	names = map_of(&c)->names;
	change(&c, part(&c, 20), part(&c, 60));
	lost = map_of(&c)->lost;
	printf("# %llu of %llu names lost\n", (unsigned long long) lost,
		   (unsigned long long) names);
	CHECK(names >= 1024, "only %llu names", (unsigned long long) names);
	CHECK(lost > names / 4 && lost < names * 3 / 4, "%llu of %llu names lost",
		  (unsigned long long) lost, (unsigned long long) names);
	made = c.fixture.source->calls;
	c.fixture.ops->maintain(&c.actor.cx, c.fixture.tree, DOMAIN);
	CHECK(c.fixture.source->calls > made && map_of(&c)->lost == 0,
		  "it is not made anew");
	check_and_close(&c);
	tap_end();
}

/*
 * One insert in so many is looked at, wherever it begins: these see one node
 * each.
 */
static void
test_appends(const EunoTreeOps *ops, const Universe *universe)
{
	EunoCounters *counters;
	uint64_t	nodes;
	Case		c;

	tap_begin("%s: inserts at the last node are looked at", ops->name);
	case_open(&c, ops, universe, 2, seed);
	counters = &c.actor.cx.counters;
	for (uint32_t i = 0; i < universe->n / 2; i++)
		do_insert(&c.actor, &c.model, i);
	nodes = counters->inner_nodes;
	for (uint32_t i = universe->n / 2; i < universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	nodes = counters->inner_nodes - nodes;
	printf("# %llu nodes in %u inserts\n", (unsigned long long) nodes,
		   universe->n / 2);
	CHECK(nodes > universe->n * 2 / 5 && nodes < universe->n,
		  "%llu nodes in %u inserts", (unsigned long long) nodes, universe->n / 2);
	check_and_close(&c);
	tap_end();
}

/* A measure of these uses and changes. */
static void
measure_of(ArtMeasure *measure, const uint64_t *drawn, uint32_t n)
{
	static ArtUses uses;

	memset(&uses, 0, sizeof(uses));
	memcpy(uses.drawn, drawn, n * sizeof(uint64_t));
	euno_art_measure(&uses, measure);
}

static void
test_measure(void)
{
	static const uint64_t drawn[] = {
		0x01020304050607FE, 0x01020304050600FE, 0x0102FFFFFFFFFFFE,
		0xFFFFFFFFFFFFFFFE, 0xFF000000000000FE,
		0x0102000000000003, 0x0102000000000004, 0x0000000000000001, 0x0102000000000003,
		0x0102030405060708
	};
	static const struct
	{
		uint64_t	trace;
		uint32_t	n;
		uint32_t	reads;
		uint32_t	changes;
	}			expected[] = {
		{0, 0, 5, 1},
		{0x0102000000000000, 2, 3, 2},
		{0x0102000000000000, 3, 0, 1},
		{0x0102030000000000, 3, 2, 0},
		{0x0102030405060000, 6, 2, 0},
		{0x0102030405060700, 7, 1, 1},
		{0x0102030405060700, 8, 0, 0},
		{0xFF00000000000000, 1, 2, 0},
		{0xFFFFFFFFFFFFFF00, 7, 1, 0},
	};
	ArtMeasure	measure;

	tap_begin("uses and changes below a path");
	measure_of(&measure, drawn, sizeof(drawn) / sizeof(drawn[0]));
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
	{
		uint64_t	trace = expected[i].trace;
		uint32_t	n = expected[i].n;

		CHECK(euno_art_near_reads(&measure, trace, n) == expected[i].reads &&
			  euno_art_near_changes(&measure, trace, n) == expected[i].changes,
			  "path %u: %u uses, %u changes", i,
			  euno_art_near_reads(&measure, trace, n),
			  euno_art_near_changes(&measure, trace, n));
	}
	tap_end();
}

/* Which nodes have copies, of 1000 uses, in a map of 100,000 bytes. */
static void
test_policy(void)
{
	static const struct
	{
		const char *what;
		ArtProspect node;
		bool		earns;
		bool		missed;
		bool		fills;
	}			cases[] = {
		{"not used", {256, 256, 2000, 0, 0}, false, false, true},
		{"used less than it is large", {256, 256, 2000, 19, 0}, false, false, true},
		{"used as much as it is large", {256, 256, 2000, 20, 0}, true, false, true},
		{"used three times as much", {256, 256, 2000, 60, 0}, true, true, true},
		{"used more, but mostly not beyond it", {256, 64, 2000, 60, 0}, false, false, false},
		{"few inner nodes, small, and used", {256, 64, 500, 60, 0}, true, true, false},
		{"used a little", {256, 256, 20, 3, 0}, false, false, true},
		{"changes as often as it is used", {256, 256, 2000, 200, 200}, false, false, false},
		{"changes less often", {256, 256, 2000, 200, 199}, true, false, true},
		{"changes, and is not used", {256, 256, 2000, 0, 4}, false, false, false},
		{"has changed once", {256, 256, 2000, 0, 1}, false, false, true},
		{"no inner nodes", {256, 0, 100, 500, 0}, false, false, false},
		{"empty", {0, 0, 32, 500, 0}, false, false, false},
	};

	tap_begin("which nodes are copied");
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const ArtProspect *node = &cases[i].node;

		CHECK(euno_art_near_earns(node, 1000, 100000) == cases[i].earns,
			  "%s: earns", cases[i].what);
		CHECK(euno_art_near_missed(node, 1000, 100000) == cases[i].missed,
			  "%s: missed", cases[i].what);
		CHECK(euno_art_near_fills(node) == cases[i].fills, "%s: fills",
			  cases[i].what);
		CHECK(!euno_art_near_earns(node, 63, 1000000), "%s: of few uses",
			  cases[i].what);
	}
	CHECK(!euno_art_near_outgrown(63, 63, 0) &&
		  !euno_art_near_outgrown(800, 100, 0) &&
		  euno_art_near_outgrown(800, 101, 0) &&
		  !euno_art_near_outgrown(800, 401, 301) &&
		  !euno_art_near_outgrown(800, 200, 300), "outgrown");
	tap_end();
}

static void
report(void *arg, const char *what)
{
	(void) arg;
	snprintf(found, sizeof(found), "%s", what);
}

/* Verifies after one word was changed, which then is what it was. */
static void
verify_wrong(Case *c, ArtRef *word, ArtRef wrong, const char *what)
{
	EunoVerify	verify = {.report = report};
	ArtRef		was = *word;

	*word = wrong;
	found[0] = '\0';
	(void) c->fixture.ops->verify(&c->actor.cx, c->fixture.tree, &verify);
	CHECK(strstr(found, "near map") != NULL, "%s: verify says \"%s\"", what,
		  found);
	*word = was;
}

/* The n-th slot of a node that is not empty. */
static ArtRef *
slot_of(ArtNode *copy, uint32_t n)
{
	ArtChildren children;
	ArtRef		ref;

	euno_art_node_children(copy, &children);
	return art_slot(copy, art_type(copy), children.bytes[n], &ref);
}

/* Maps that name what they should not, in all ways that there are. */
static void
test_verify(const EunoTreeOps *ops, const Universe *universe)
{
	ArtNode    *root;
	ArtNode    *copy;
	ArtRef	   *exit;
	Case		c;

	tap_begin("%s: verify looks at maps", ops->name);
	open_full(&c, ops, universe);
	root = ((ArtNear *) art_body(c.fixture.tree)->near)->roots[DOMAIN];
	copy = art_pointer(*slot_of(root, 0));
	exit = slot_of(copy, 0);
	CHECK(art_is_node(*slot_of(root, 0)) && (*exit & ART_TAG_MASK) == ART_EXIT,
		  "there are no two levels");
	verify_wrong(&c, exit, *slot_of(copy, 1), "a neighbor");
	verify_wrong(&c, exit, *exit ^ UINT64_C(1) << ART_HIGH_SHIFT,
				 "another level");
	verify_wrong(&c, exit, *exit ^ UINT64_C(1) << ART_TYPE_SHIFT, "another type");
	verify_wrong(&c, exit, root->lock.word | ART_EXIT, "a node above");
	verify_wrong(&c, &copy->lock.word, *exit & ~ART_EXIT, "a copy of a child");
	verify_wrong(&c, &root->lock.word, copy->lock.word, "a root that is not");
	verify_wrong(&c, &copy->lock.word,
				 ((ArtNode *) art_pointer(*slot_of(root, 1)))->lock.word,
				 "a copy of a neighbor");
	check_and_close(&c);
	tap_end();
}

/* Keys that are each other's beginnings: as many as there may be. */
#define CHAIN	2600

static void
put_chain(Case *c, bool insert)
{
	uint8_t		bytes[CHAIN + 1];

	for (uint32_t i = 1; i <= CHAIN; i++)
	{
		EunoEntry	entry = {.key = bytes,.keylen = i + 1,.tid = i};

		memset(bytes, 'a', i);
		bytes[i] = 0;
		CHECK((insert ?
			   c->fixture.ops->insert(&c->actor.cx, c->fixture.tree, &entry, false) :
			   c->fixture.ops->remove(&c->actor.cx, c->fixture.tree, &entry, NULL)) ==
			  EUNO_OK, "key %u of the chain", i);
	}
}

/* A map as deep as it has nodes. */
static void
test_deep(const EunoTreeOps *ops)
{
	Universe   *universe = universe_make(shape_by_name("sparse int8"), 3000, seed);
	EunoVerify	verify = {.report = report};
	ArtNode    *copy;
	uint32_t	deep = 0;
	Case		c;

	tap_begin("%s: a map that is deep", ops->name);
	open_full(&c, ops, universe);
	put_chain(&c, true);
	ops->maintain(&c.actor.cx, c.fixture.tree, DOMAIN);
	copy = ((ArtNear *) art_body(c.fixture.tree)->near)->roots[DOMAIN];
	for (; copy != NULL; copy = art_copy_tail(copy)->next)
	{
		if (art_level(copy) > deep)
			deep = art_level(copy);
	}
	CHECK(deep > 1000, "%u levels", deep);
	CHECK(ops->verify(&c.actor.cx, c.fixture.tree, &verify) == 0,
		  "verify: %s", found);
	put_chain(&c, false);
	check_and_close(&c);
	universe_free(universe);
	tap_end();
}

/* No memory for one domain's map: the others' stay. */
static void
test_no_memory(const EunoTreeOps *ops, const Universe *universe)
{
	ArtNear    *near;
	Case		c;

	tap_begin("%s: no memory for one of several maps", ops->name);
	case_open(&c, ops, universe, 4, seed);
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	CHECK(ops->set_domains(&c.actor.cx, c.fixture.tree, 1 | 1 << 2 | 1 << 3) ==
		  EUNO_OK, "set_domains");
	near = art_body(c.fixture.tree)->near;
	c.fixture.source->fail_on = true;
	c.fixture.source->fail_at = c.fixture.source->calls + 1;
	CHECK(ops->set_domains(&c.actor.cx, c.fixture.tree, 15) == EUNO_NO_MEMORY,
		  "there is memory");
	c.fixture.source->fail_at = 0;
	c.fixture.source->fail_on = false;
	CHECK(near->roots[1] == NULL && near->roots[2] != NULL &&
		  near->roots[3] != NULL, "the others have gone");
	CHECK(art_body(c.fixture.tree)->near_domains == 13, "domains %llu",
		  (unsigned long long) art_body(c.fixture.tree)->near_domains);
	check_and_close(&c);
	tap_end();
}

/* The node's shape is overwritten: verify says so, and all that walks ends. */
static void
damage(Case *c, ArtNode *node, uint32_t shape, const char *what)
{
	const EunoTreeOps *ops = c->fixture.ops;
	EunoTree   *tree = c->fixture.tree;
	EunoVerify	verify = {.report = report};
	uint32_t	before = node->shape;
	uint32_t	merged;

	node->shape = shape;
	alarm(100);
	CHECK(ops->verify(&c->actor.cx, tree, &verify) > 0,
		  "verify does not find %s", what);
	(void) ops->compact(&c->actor.cx, tree, EUNO_COMPACT_BEGIN, UINT32_MAX,
						&merged);
	ops->maintain(&c->actor.cx, tree, DOMAIN);
	alarm(0);
	node->shape = before;
}

static void
test_damaged(const EunoTreeOps *ops, const Universe *universe)
{
	ArtNode    *root;
	ArtNode    *nodes[2];
	Case		c;

	tap_begin("%s: nodes that are damaged", ops->name);
	open_full(&c, ops, universe);
	root = art_pointer(art_body(c.fixture.tree)->root);
	nodes[0] = root;
	nodes[1] = art_pointer(*slot_of(root, 1));
	for (int i = 0; i < 2; i++)
	{
		uint32_t	shape = nodes[i]->shape;

		damage(&c, nodes[i], shape | ART_HIGH_MASK, "a level");
		damage(&c, nodes[i], shape ^ 1, "the level beside");
		damage(&c, nodes[i], shape | ART_HIGH_MASK << 12, "a path");
		damage(&c, nodes[i], shape | 0xFF000000, "a type");
		damage(&c, nodes[i], 0, "zeros");
	}
	check_and_close(&c);
	tap_end();
}

/*
 * Somebody who makes a map, and others who change the tree when he asks for
 * memory.  The first replaces a node that the map has a copy of, and is held
 * up before he takes its name out.  The second replaces its child, and later
 * gives that one back.
 */
typedef struct Making
{
	Case		c;
	Actor		first;
	Actor		second;
	const EunoEnvironment *env; /* of those who do not wait */
	uint32_t	allocs;			/* for the map */
	uint32_t	cleared;
} Making;

static Making making;

/* What he asks for memory for: the copies level by level. */
enum
{
	FOR_TABLE, FOR_NOTES, FOR_ROOT, FOR_A, FOR_B, FOR_C, FOR_AA
};

static void
insert_key(Actor *actor, const char *key)
{
	EunoEntry	entry = {.key = (const uint8_t *) key,.keylen = 4,.tid = 0x10001};

	CHECK(making.c.fixture.ops->insert(&actor->cx, making.c.fixture.tree, &entry,
									   false) == EUNO_OK, "cannot insert %s", key);
}

static void *
alloc_and_wait(void *arg, int domain, size_t size)
{
	EunoTree   *tree = making.c.fixture.tree;
	struct ArtNear *near = art_body(tree)->near;

	switch (making.allocs++)
	{
		case FOR_C:
			art_body(tree)->near = NULL;
			insert_key(&making.first, "bcxx");
			art_body(tree)->near = near;
			insert_key(&making.second, "bacx");
			euno_art_reclaim_all(&making.second.cx, tree);
			break;
		case FOR_AA:
			(void) euno_epoch_bound(making.c.fixture.epochs, 0);
			euno_art_reclaim(&making.second.cx, tree);
			break;
	}
	return making.env->alloc(arg, domain, size);
}

/*
 * What is given back looks like a node that is in use, and is not used again.
 */
static void
clear(void *arg, int domain, void *node, size_t size)
{
	(void) arg;
	(void) domain;
	making.cleared += size < ART_LIMBO_SIZE;
	memset(node, 0, size);
}

/* A node is replaced while a map is made, and what it held is gone. */
static void
test_making(const EunoTreeOps *ops, const Universe *universe)
{
	static const char *const keys[] = {"aaaa", "aaab", "aabx", "abxx",
		"baax", "babx", "bbxx", "caax", "cabx", "cbxx"};
	EunoVerify	verify = {.report = report};
	EunoEnvironment waiting;
	EunoEnvironment clearing;
	Actor	   *actor = &making.c.actor;
	ArtKey		path = {1, "b"};
	ArtNode    *replaced;
	EunoTree   *tree;

	tap_begin("%s: a node is replaced while its children are named", ops->name);
	memset(&making, 0, sizeof(making));
	case_open(&making.c, ops, universe, 2, seed);
	tree = making.c.fixture.tree;
	actor_init(&making.first, &making.c.fixture, 2, seed);
	actor_init(&making.second, &making.c.fixture, 3, seed);
	for (uint32_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		insert_key(actor, keys[i]);
	replaced = art_pointer(*slot_of(art_pointer(art_body(tree)->root), 1));
	making.env = actor->cx.env;
	waiting = clearing = *making.env;
	waiting.alloc = alloc_and_wait;
	clearing.free = clear;
	actor->cx.env = &waiting;
	making.second.cx.env = &clearing;
	ops->maintain(&actor->cx, tree, DOMAIN);
	actor->cx.env = making.second.cx.env = making.env;
	CHECK(making.allocs == FOR_AA + 1 && making.cleared == 1,
		  "%u copies, %u nodes given back", making.allocs, making.cleared);
	euno_art_forget(&making.first.cx, tree, &path, 1, replaced);
	found[0] = '\0';
	(void) ops->verify(&actor->cx, tree, &verify);
	CHECK(found[0] == '\0', "verify says \"%s\"", found);
	actor_free(&making.second);
	actor_free(&making.first);
	case_close(&making.c);
	tap_end();
}

int
main(void)
{
	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	test_measure();
	test_policy();
	for (int s = 0; s < nsubjects; s++)
	{
		const EunoTreeOps *ops = subjects[s];
		Universe   *universe;

		if (ops->insert != euno_art_insert || !subject_selected(ops))
			continue;
		universe = universe_make(shape_by_name("sparse int8"), ENTRIES, seed);
		test_uses(ops, universe);
		test_even(ops, universe);
		test_changes(ops, universe);
		test_lost(ops, universe);
		test_verify(ops, universe);
		test_damaged(ops, universe);
		test_making(ops, universe);
		test_no_memory(ops, universe);
		test_deep(ops);
		universe_free(universe);
		universe = universe_make(shape_by_name("dense int8"), ENTRIES / 3, seed);
		test_appends(ops, universe);
		universe_free(universe);
	}
	return tap_done();
}
