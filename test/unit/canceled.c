/*-------------------------------------------------------------------------
 *
 * canceled.c
 *	  Operations that are canceled while they wait for a node: they change
 *	  nothing, leave nothing behind, and can be done later.
 *
 * The test itself holds the nodes, as a stopped process would.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

#include "core/art/art.h"
#include "core/bptree/bpt.h"

static uint64_t seed;
static bool held;				/* by hold_nodes */

static bool
is_art(const Actor *actor)
{
	return strncmp(actor->fixture->ops->name, "art", 3) == 0;
}

/* All leaves of a B+tree, or the top of a radix tree. */
static void
hold_nodes(Actor *actor, bool hold)
{
	EunoTree   *tree = actor->fixture->tree;
	bool		art = is_art(actor);
	BptLeaf    *leaf = art ? NULL : bpt_body(tree)->first;
	EunoLock   *lock = art ?
		&((ArtNode *) art_pointer(art_body(tree)->root))->lock : &leaf->lock;

	held = hold;
	for (;;)
	{
		if (hold)
			CHECK(euno_mutex_trylock(lock), "a node that is locked");
		else
			euno_lock_release_unchanged(lock, &test_env);
		leaf = art ? NULL : leaf->right;
		if (leaf == NULL)
			break;
		lock = &leaf->lock;
	}
}

static bool
keep(void *arg, EunoTid tid)
{
	(void) arg;
	return tid == 0;
}

/* Nodes are locked when the first TID of a batch has been looked at. */
static bool
hold_and_remove(void *arg, EunoTid tid)
{
	(void) tid;
	if (canceled_waits == 0 && !held)
		hold_nodes(arg, true);
	return true;
}

static EunoStatus
walk(Actor *actor, bool (*decide) (void *arg, EunoTid tid))
{
	EunoWalk	all = actor_walk(actor, decide, NULL, actor);

	return actor->fixture->ops->walk(&actor->cx, actor->fixture->tree, &all);
}

static void
say(void *arg, const char *what)
{
	(void) arg;
	tap_fail(__FILE__, __LINE__, "verify, canceled: %s", what);
}

/* Nothing is found in a tree that has been looked at in part. */
static void
verify(Actor *actor, EunoVerifyPause pause)
{
	EunoVerify	all = {.report = say,.arg = actor,.pause = pause};
	uint64_t	findings = actor->fixture->ops->verify(&actor->cx,
													   actor->fixture->tree,
													   &all);

	CHECK(findings == 0, "verify: %u findings", (unsigned) findings);
}

/* When nodes are locked that have been looked at. */
static void
hold_now(void *arg)
{
	if (!held)
		hold_nodes(arg, true);
}

/* Reads the first batch of a range. */
static EunoStatus
read_first(Actor *actor, const EunoPosition *lo, const EunoPosition *hi,
		   bool forward)
{
	EunoCursor	cursor;

	canceled_waits = 0;
	cursor.lo = *lo;
	cursor.lo.side = -1;
	cursor.hi = *hi;
	cursor.hi.side = 1;
	euno_cursor_start(&cursor);
	actor->batch.max_items = 10;
	return actor->fixture->ops->read(&actor->cx, actor->fixture->tree, &cursor,
									 forward, &actor->batch);
}

/*
 * Each operation, on this entry, has to wait, and gives up; but lookups in a
 * radix tree, which wait for nobody.
 */
static void
operate(Actor *actor, uint32_t i)
{
	const EunoTreeOps *ops = actor->fixture->ops;
	EunoTree   *tree = actor->fixture->tree;
	const EunoEntry *entry = &actor->fixture->universe->entries[i].entry;
	EunoStatus	status;

	/* Not where the last inserts went: of a radix tree, the root is locked. */
	actor->cx.last.again = false;
	canceled_waits = 0;
	status = ops->insert(&actor->cx, tree, entry, false);
	CHECK(status == EUNO_CANCELED, "insert: status %d", status);
	canceled_waits = 0;
	status = ops->remove(&actor->cx, tree, entry, NULL);
	CHECK(status == EUNO_CANCELED, "remove: status %d", status);
	canceled_waits = 0;
	status = ops->contains(&actor->cx, tree, entry);
	CHECK(status == EUNO_CANCELED, "contains: status %d", status);
	for (int forward = 0; forward < 2; forward++)
	{
		EunoPosition pos = {.key = entry->key,.keylen = entry->keylen};
		EunoPosition end = {.key = NULL};

		status = read_first(actor, &pos, &pos, forward);
		CHECK(is_art(actor) ? status == EUNO_OK && canceled_waits == 0 :
			  status == EUNO_CANCELED, "lookup: status %d", status);
		status = read_first(actor, forward ? &pos : &end, forward ? &end : &pos,
							forward);
		CHECK(status == EUNO_CANCELED, "read: status %d", status);
	}
	canceled_waits = 0;
	status = walk(actor, keep);
	CHECK(status == EUNO_CANCELED, "walk: status %d", status);
	canceled_waits = 0;
	verify(actor, NULL);
	CHECK(canceled_waits > 0, "verify has not waited");
	CHECK(actor->process.depth == 0, "an epoch was not left");
}

/* Walks that meet a locked leaf only when they want to remove, or a merge. */
static void
interrupt_walks(Actor *actor)
{
	BptBody    *body = bpt_body(actor->fixture->tree);
	EunoStatus	status;

	canceled_waits = 0;
	status = walk(actor, hold_and_remove);
	CHECK(status == EUNO_CANCELED, "removing walk: status %d", status);
	hold_nodes(actor, false);
	canceled_waits = 0;
	verify(actor, hold_now);
	hold_nodes(actor, false);
	if (!is_art(actor))
	{
		canceled_waits = 0;
		body->merging = 1;
		status = walk(actor, keep);
		CHECK(status == EUNO_CANCELED, "walk, merging: status %d", status);
		body->merging = 0;
		CHECK(body->walkers == 0, "a walker has not left");
	}
	CHECK(actor->process.depth == 0, "an epoch was not left");
}

/* Who looks for a leaf by the beginning of a key waits for one right of there. */
static void
interrupt_hot(Actor *actor)
{
	EunoTree   *tree = actor->fixture->tree;
	BptLeaf    *right = is_art(actor) || bpt_is_opaque(tree) ? NULL :
		bpt_body(tree)->first->right;
	EunoHeat	heat = {.cut = true};
	EunoLeafInfo info;
	EunoStatus	status;

	if (right == NULL)
		return;
	heat.leaf = right->number;
	canceled_waits = 0;
	CHECK(euno_mutex_trylock(&right->lock), "a leaf that is locked");
	status = actor->fixture->ops->leaf(&actor->cx, tree, &heat, &info);
	CHECK(status == EUNO_CANCELED && canceled_waits == 1,
		  "a hot leaf: status %d, %u waits", status, canceled_waits);
	euno_lock_release_unchanged(&right->lock, &test_env);
}

/*
 * Who merges waits for a directory.  When it is canceled it has merged
 * nothing, and given the right to merge back.
 */
static void
interrupt_merges(const EunoTreeOps *ops, const Shape *shape)
{
	Universe   *universe = universe_make(shape, 3000 / shape->weight, seed);
	EunoEnvironment env = canceled_env();
	Case		c;
	BptBody    *body;

	tap_begin("%s, %s: canceled while merging", ops->name, shape->name);
	case_open(&c, ops, universe, 2, seed);
	body = bpt_body(c.fixture.tree);
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	for (uint32_t i = 0; i < universe->n; i++)
	{
		if (i % 16 != 0)
			do_remove(&c.actor, &c.model, i);
	}
	for (int d = 0; d < c.fixture.tree->config.ndomains; d++)
	{
		EunoLock   *mutex = &body->directories[d].mutex;
		uint64_t	leaves = body->leaves;
		uint32_t	merged = 0;

		canceled_waits = 0;
		c.actor.cx.env = &env;
		CHECK(euno_mutex_trylock(mutex), "a directory that is locked");
		CHECK(ops->compact(&c.actor.cx, c.fixture.tree, EUNO_COMPACT_BEGIN,
						   UINT32_MAX, &merged) ==
			  (leaves == 1 ? EUNO_DONE : EUNO_OK) &&
			  merged == 0 && (canceled_waits > 0 || leaves == 1),
			  "%u merges, %u waits", merged, canceled_waits);
		euno_mutex_unlock(mutex, &env);
		c.actor.cx.env = &test_env;
		for (int e = 0; e < c.fixture.tree->config.ndomains; e++)
		{
			mutex = &body->directories[e].mutex;
			CHECK(euno_mutex_trylock(mutex), "a directory stays locked");
			euno_mutex_unlock(mutex, &test_env);
		}
		CHECK(body->leaves == leaves, "a leaf has gone");
		CHECK(body->merging == 0, "walks are kept away");
		CHECK(c.actor.cx.held.compacting == NULL,
			  "the right to merge is kept");
		CHECK(c.actor.process.depth == 0, "an epoch was not left");
		check_all(&c.actor, &c.model);
	}
	do_compact(&c.actor);
	check_all(&c.actor, &c.model);
	case_close(&c);
	universe_free(universe);
	tap_end();
}

/* All segments of contended leaves; true if there are any. */
static bool
hold_segments(Actor *actor, bool hold)
{
	bool		any = false;

	for (BptLeaf *leaf = bpt_body(actor->fixture->tree)->first; leaf != NULL;
		 leaf = leaf->right)
	{
		for (int i = 0; i < BPT_SEGMENTS && leaf->annex != NULL; i++)
		{
			EunoLock   *lock = &leaf->annex->segments[i].lock;

			any = true;
			if (hold)
				CHECK(euno_mutex_trylock(lock), "a segment that is locked");
			else
				euno_lock_release_unchanged(lock, &test_env);
		}
	}
	return any;
}

/* An operation had to wait for a segment, and has left; or it had not to. */
static void
was_canceled(const char *what, EunoStatus status, EunoStatus otherwise)
{
	CHECK(status == (canceled_waits > 0 ? EUNO_CANCELED : otherwise),
		  "%s: status %d, %u waits", what, status, canceled_waits);
}

/* Who shows the leaf that has an entry waits for what is in its segments. */
static EunoStatus
show(Actor *actor, const EunoEntry *entry)
{
	EunoHeat	heat = {.keylen = entry->keylen,.tid = entry->tid};
	EunoLeafInfo info;

	canceled_waits = 0;
	memcpy(heat.key, entry->key, entry->keylen);
	return actor->fixture->ops->leaf(&actor->cx, actor->fixture->tree, &heat,
									 &info);
}

/* Who waits for a segment of a contended leaf leaves, too. */
static void
interrupt_contended(const EunoTreeOps *ops, const Shape *shape)
{
	EunoEnvironment env = canceled_env();
	EunoPosition end = {.key = NULL};
	uint32_t	waits = 0;
	uint32_t	shown = 0;
	Case		c;

	tap_begin("%s, %s: canceled at a segment", ops->name, shape->name);
	case_make(&c, ops, shape, 2000 / shape->weight, seed);
	for (uint32_t i = 0; i < c.universe->n; i += 2)
		do_insert(&c.actor, &c.model, i);
	(void) ops->set_mode(&c.actor.cx, c.fixture.tree, NULL, true);
	for (uint32_t i = 1; i < c.universe->n; i += 4)
		do_insert(&c.actor, &c.model, i);
	if (hold_segments(&c.actor, true))
	{
		c.actor.cx.env = &env;
		for (uint32_t i = 1; i < c.universe->n && tap_bad() == 0; i += 4)
		{
			const EunoEntry *entry = &c.universe->entries[i].entry;
			EunoPosition pos = {.key = entry->key,.keylen = entry->keylen};

			canceled_waits = 0;
			was_canceled("contains",
						 ops->contains(&c.actor.cx, c.fixture.tree, entry),
						 EUNO_OK);
			waits += canceled_waits;
			was_canceled("lookup", read_first(&c.actor, &pos, &pos, true),
						 EUNO_OK);
			was_canceled("read", read_first(&c.actor, &pos, &end, true),
						 EUNO_OK);
			waits += canceled_waits;
			if (entry->keylen <= EUNO_HEAT_KEY)
			{
				was_canceled("hot leaf", show(&c.actor, entry), EUNO_OK);
				shown += canceled_waits;
			}
		}
		CHECK(shown > 0, "who shows a leaf has not waited");
		canceled_waits = 0;
		verify(&c.actor, NULL);
		CHECK(waits > 0 && canceled_waits > 0, "nobody has waited");
		canceled_waits = 0;
		was_canceled("walk", walk(&c.actor, keep), EUNO_OK);
		CHECK(canceled_waits > 0, "a walk has not waited");
		canceled_waits = 0;
		was_canceled("calm", ops->set_mode(&c.actor.cx, c.fixture.tree, NULL,
										   false), EUNO_OK);
		c.actor.cx.env = &test_env;
		(void) hold_segments(&c.actor, false);
	}
	CHECK(c.actor.process.depth == 0, "an epoch was not left");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

static void
test_canceled(const EunoTreeOps *ops, const Shape *shape)
{
	EunoEnvironment env = canceled_env();
	Case		c;

	tap_begin("%s, %s: canceled while waiting", ops->name, shape->name);
	case_make(&c, ops, shape, 2000 / shape->weight, seed);
	for (uint32_t i = 0; i < c.universe->n; i += 2)
		do_insert(&c.actor, &c.model, i);
	for (uint32_t i = 0; i < 50 && tap_bad() == 0; i++)
	{
		uint32_t	at = random_below(&c.actor.random, c.universe->n);

		hold_nodes(&c.actor, true);
		c.actor.cx.env = &env;
		operate(&c.actor, at);
		hold_nodes(&c.actor, false);
		c.actor.cx.env = &env;
		interrupt_walks(&c.actor);
		interrupt_hot(&c.actor);
		c.actor.cx.env = &test_env;
		do_contains(&c.actor, &c.model, at);
	}
	check_all(&c.actor, &c.model);
	for (uint32_t i = 0; i < 500; i++)
		do_random(&c.actor, &c.model, 60);
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	for (int s = 0; s < nsubjects; s++)
	{
		/* Readers in rowex wait for nobody, and the reference is a mutex. */
		if (!subject_selected(subjects[s]) || subjects[s] == &reference_ops ||
			strstr(subjects[s]->name, "rowex") != NULL)
			continue;
		for (int i = 0; i < nshapes; i++)
		{
			if (!subject_holds(subjects[s], &shapes[i]))
				continue;
			test_canceled(subjects[s], &shapes[i]);
			if (subjects[s] != &euno_bptree_ops)
				continue;
			interrupt_merges(subjects[s], &shapes[i]);
			interrupt_contended(subjects[s], &shapes[i]);
		}
	}
	return tap_done();
}
