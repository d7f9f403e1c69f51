/*-------------------------------------------------------------------------
 *
 * fixture.c
 *	  A tree with its surroundings, and those who use it.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "mem/euno_cache.h"
#include "tap.h"

#define ARENA_BYTES ((size_t) 4 * 1024 * 1024 * 1024)

const EunoTreeOps *const subjects[] = {
	&reference_ops,
	&euno_bptree_ops,
	&euno_art_olc_ops,
	&euno_art_rowex_ops,
	&contended_ops,
	&flapping_ops,
	&crowded_bpt_ops,
	&crowded_art_ops
};
const int	nsubjects = sizeof(subjects) / sizeof(subjects[0]);

static bool
is_mode(const EunoTreeOps *ops)
{
	return ops == &contended_ops || ops == &flapping_ops ||
		ops == &crowded_bpt_ops || ops == &crowded_art_ops;
}

bool
subject_selected(const EunoTreeOps *ops)
{
	const char *value = getenv("EUNO_TREE");

	if (value == NULL)
		return !is_mode(ops);
	return strcmp(value, ops->name) == 0 ||
		(is_mode(ops) && strcmp(value, strchr(ops->name, '/') + 1) == 0);
}

bool
subject_holds(const EunoTreeOps *ops, const Shape *shape)
{
	return shape->order == EUNO_ORDER_BYTES || !ops->bytes_only;
}

uint32_t
small(const EunoTreeOps *ops)
{
	return (SANITIZED ? 4 : 1) * (ops == &reference_ops ? 4 : 1);
}

/* The arena that all fixtures of this program share. */
static EunoArena *
shared_arena(void)
{
	static EunoArena *arena;

	if (arena == NULL)
		arena = euno_arena_reserve(NULL, ARENA_BYTES, EUNO_MAX_DOMAINS, &test_env);
	if (arena == NULL)
	{
		perror("euno_arena_reserve");
		exit(1);
	}
	return arena;
}

void
fixture_join(Fixture *fixture)
{
	if (!SANITIZED)
		euno_barrier_join(&fixture->epochs->barriers);
}

void
fixture_open(Fixture *fixture, const EunoTreeOps *ops, const Universe *universe,
			 uint16_t fillfactor, uint16_t ndomains)
{
	fixture_open_in(fixture, ops, universe, fillfactor, ndomains, !SANITIZED);
}

void
fixture_open_in(Fixture *fixture, const EunoTreeOps *ops,
				const Universe *universe, uint16_t fillfactor,
				uint16_t ndomains, bool shared)
{
	EunoTreeConfig config = {
		.order = universe->shape->order,
		.posting = universe->shape->posting,
		.fillfactor = fillfactor,
		.ndomains = ndomains
	};
	Actor		actor;
	EunoStatus	status;

	memset(fixture, 0, sizeof(*fixture));
	fixture->ops = ops;
	fixture->universe = universe;
	fixture->ndomains = ndomains;
	fixture->guard = shared_memory(sizeof(uint64_t));
	fixture->source = shared_memory(sizeof(NodeSource));
	fixture->tree = shared_memory(sizeof(EunoTree));
	fixture->epochs = shared_memory(euno_epochs_size(MAX_ACTORS));
	euno_epochs_init(fixture->epochs, MAX_ACTORS);
	fixture_join(fixture);
	if (shared)
	{
		euno_cache_from = 2;
		fixture->pools = shared_memory(EUNO_MAX_DOMAINS * sizeof(EunoPool));
		for (int d = 0; d < EUNO_MAX_DOMAINS; d++)
			euno_pool_init(&fixture->pools[d], shared_arena(), d);
	}
	shape_abbreviation(universe->shape, config.abbreviation);
	node_source_init(fixture->source, fixture->pools);
	fixture->tree->alloc_arg = fixture->source;
	actor_init(&actor, fixture, 0, 0);
	status = ops->create(&actor.cx, fixture->tree, &config);
	CHECK(status == EUNO_OK, "create: status %d", status);
	actor_free(&actor);
}

void
fixture_close(Fixture *fixture)
{
	if (fixture->ops == &reference_ops)
		reference_destroy(fixture->tree);
	if (fixture->pools != NULL)
	{
		for (int d = 0; d < EUNO_MAX_DOMAINS; d++)
		{
			check_pool(&fixture->pools[d]);
			euno_pool_release(&fixture->pools[d]);
		}
		shared_memory_free(fixture->pools, EUNO_MAX_DOMAINS * sizeof(EunoPool));
	}
	node_source_release(fixture->source);
	shared_memory_free(fixture->source, sizeof(NodeSource));
	shared_memory_free(fixture->tree, sizeof(EunoTree));
	shared_memory_free(fixture->epochs, euno_epochs_size(MAX_ACTORS));
	shared_memory_free(fixture->guard, sizeof(uint64_t));
}

void
actor_init(Actor *actor, Fixture *fixture, uint32_t slot, uint64_t seed)
{
	memset(actor, 0, sizeof(*actor));
	actor->fixture = fixture;
	actor->process.epochs = fixture->epochs;
	actor->process.slot = slot;
	actor->cx.process = &actor->process;
	actor->cx.env = &test_env;
	actor->cx.compare = fixture->universe->shape->compare;
	actor->cx.approximate = approximate_wrongly;
	actor->cx.abbreviate = abbreviate_position;
	actor->cx.compare_arg = (void *) fixture->universe->shape;
	actor->random.state = seed * UINT64_C(0x9E3779B97F4A7C15) + slot;
	actor->tids = malloc(ACTOR_ITEMS * sizeof(EunoTid));
	actor->keys = malloc(ACTOR_ITEMS * sizeof(EunoItemKey));
	actor->buf = aligned_alloc(64, EUNO_BATCH_BUF);
	actor->room = malloc(sizeof(EunoWalkRoom));
	actor->batch.tids = actor->tids;
	actor->batch.keys = actor->keys;
	actor->batch.buf = actor->buf;
	actor->batch.buf_size = EUNO_BATCH_BUF;
	actor->batch.max_items = ACTOR_ITEMS;
	actor->batch.want_keys = true;
}

void
actor_free(Actor *actor)
{
	free(actor->tids);
	free(actor->keys);
	free(actor->buf);
	free(actor->room);
}

void
case_open(Case *c, const EunoTreeOps *ops, const Universe *universe,
		  uint16_t ndomains, uint64_t seed)
{
	c->universe = NULL;
	fixture_open(&c->fixture, ops, universe, 90, ndomains);
	actor_init(&c->actor, &c->fixture, 1, seed);
	model_init(&c->model, universe);
}

void
case_make(Case *c, const EunoTreeOps *ops, const Shape *shape, uint32_t n,
		  uint64_t seed)
{
	Universe   *universe = universe_make(shape, n, seed);

	case_open(c, ops, universe, 1, seed);
	c->universe = universe;
}

void
case_close(Case *c)
{
	model_free(&c->model);
	actor_free(&c->actor);
	fixture_close(&c->fixture);
	if (c->universe != NULL)
		universe_free(c->universe);
}

EunoWalk
actor_walk(Actor *actor, EunoWalkDecide decide, EunoWalkPause pause, void *arg)
{
	bool		limited = random_below(&actor->random, 2) == 0;

	return (EunoWalk)
	{
		.decide = decide,.pause = pause,.arg = arg,.room = actor->room,
		.at_once = limited ? 1 + random_below(&actor->random, 1000) : 0
	};
}

uint32_t	canceled_waits;

static void
wait_once(uint32_t *word, uint32_t expected)
{
	(void) word;
	(void) expected;
	if (++canceled_waits > 2)
	{
		tap_fail(__FILE__, __LINE__, "it goes on waiting");
		tap_end();
		exit(1);
	}
}

static bool
is_canceled(void)
{
	return canceled_waits > 0;
}

EunoEnvironment
canceled_env(void)
{
	EunoEnvironment env = test_env;

	env.wait = wait_once;
	env.canceled = is_canceled;
	return env;
}
