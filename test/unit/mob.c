/*-------------------------------------------------------------------------
 *
 * mob.c
 *	  Many at work on one tree.
 *
 * All that the workers tell each other are relaxed atomics: nothing here may
 * order what the tree itself has to order, or ThreadSanitizer would see less.
 *
 *-------------------------------------------------------------------------
 */
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/art/art.h"
#include "core/bptree/bpt.h"
#include "mob.h"
#include "tap.h"

typedef struct Worker
{
	Mob		   *mob;
	Actor		actor;
	uint32_t	me;				/* writer's number, or MOB_NOBODY - 1 */
	uint32_t   *own;			/* a writer's entries */
	uint32_t	nown;
	uint8_t    *shown;			/* a walker's: entries that decide has seen */
} Worker;

static MobState
get_state(const Mob *mob, uint32_t i)
{
	return (MobState) __atomic_load_n(&mob->state[i], __ATOMIC_RELAXED);
}

static void
set_state(Mob *mob, uint32_t i, MobState state)
{
	__atomic_store_n(&mob->state[i], (uint8_t) state, __ATOMIC_RELAXED);
}

static bool
stopped(const Mob *mob)
{
	return __atomic_load_n(&mob->stop, __ATOMIC_RELAXED) != 0;
}

Mob *
mob_make(const EunoTreeOps *ops, const Universe *universe, uint32_t writers,
		 uint16_t ndomains, bool shared, uint64_t seed)
{
	Mob		   *mob = shared_memory(sizeof(Mob));
	Random		random = {seed};
	Actor		actor;
	Model		model;

	mob->universe = universe;
	mob->nwriters = writers;
	mob->seed = seed;
	mob->owner = shared_memory(universe->n);
	mob->state = shared_memory(universe->n);
	fixture_open_in(&mob->fixture, ops, universe, 90, ndomains, shared);
	actor_init(&actor, &mob->fixture, 1, seed);
	model_init(&model, universe);
	for (uint32_t i = 0; i < universe->n; i++)
	{
		uint32_t	owner = random_below(&random, writers * 4 + 2);

		mob->owner[i] = owner < writers * 4 ? (uint8_t) (owner % writers) :
			MOB_NOBODY;
		if (mob->owner[i] == MOB_NOBODY)
		{
			do_insert(&actor, &model, i);
			mob->state[i] = MOB_PRESENT;
		}
	}
	model_free(&model);
	actor_free(&actor);
	return mob;
}

void
mob_free(Mob *mob)
{
	fixture_close(&mob->fixture);
	shared_memory_free(mob->owner, mob->universe->n);
	shared_memory_free(mob->state, mob->universe->n);
	shared_memory_free(mob, sizeof(Mob));
}

typedef enum Operation
{
	INSERT,
	REMOVE,
	CONTAINS
} Operation;

/*
 * After a comparator left by longjmp: what the access method does at the end
 * of the failed transaction.
 */
static void
clean_up(Worker *worker)
{
	EunoContext *cx = &worker->actor.cx;

	compare_escape = NULL;
	euno_context_reset(cx);
	euno_process_reset(&worker->actor.process, 0);
	for (int i = 0; i < EUNO_SPARES; i++)
		CHECK(cx->held.spare[i] == NULL, "a spare node is left after the reset");
	CHECK(cx->held.walking == NULL, "registered as a walker after the reset");
	__atomic_add_fetch(&worker->mob->escapes, 1, __ATOMIC_RELAXED);
}

static EunoStatus
operate_on(Worker *worker, Operation operation, uint32_t i)
{
	EunoContext *cx = &worker->actor.cx;
	EunoTree   *tree = worker->mob->fixture.tree;
	const EunoEntry *entry = &worker->mob->universe->entries[i].entry;
	const EunoTreeOps *ops = worker->mob->fixture.ops;

	switch (operation)
	{
		case INSERT:
			return ops->insert(cx, tree, entry, false);
		case REMOVE:
			return ops->remove(cx, tree, entry, NULL);
		case CONTAINS:
			break;
	}
	return ops->contains(cx, tree, entry);
}

/* One operation; false if the comparator left by longjmp. */
static bool
operate(Worker *worker, Operation operation, uint32_t i, EunoStatus *status)
{
	Mob		   *mob = worker->mob;
	jmp_buf		escape;

	if (mob->escape_every > 0 && setjmp(escape) != 0)
	{
		clean_up(worker);
		return false;
	}
	if (mob->escape_every > 0)
	{
		compare_escape_every = mob->escape_every;
		compare_escape = &escape;
	}
	*status = operate_on(worker, operation, i);
	compare_escape = NULL;
	return true;
}

/*
 * A random operation of a writer on an entry of its own.  The tree grows and
 * shrinks in turns, so that leaves are split and merged all the time.
 */
static void
write_one(Worker *worker)
{
	Mob		   *mob = worker->mob;
	Random	   *random = &worker->actor.random;
	uint32_t	i = worker->own[random_below(random, worker->nown)];
	MobState	state = get_state(mob, i);
	uint64_t	phase = __atomic_load_n(&mob->operations[1], __ATOMIC_RELAXED) / 4000;
	Operation	operation = random_below(random, 4) == 0 ? CONTAINS :
		random_below(random, 100) < (phase % 2 ? 10 : 85) ? INSERT : REMOVE;
	EunoStatus	expected;
	EunoStatus	status;

	if (state == MOB_DEAD || state == MOB_DOOMED)
		return;
	if (state == MOB_PRESENT && random_below(random, 20) == 0)
	{
		set_state(mob, i, MOB_DEAD);
		return;
	}
	if (!operate(worker, operation, i, &status))
	{
		/* it may have been done or not */
		status = mob->fixture.ops->contains(&worker->actor.cx, mob->fixture.tree,
											&mob->universe->entries[i].entry);
		CHECK(status == EUNO_OK || status == EUNO_NOT_FOUND,
			  "contains: status %d", status);
		CHECK(operation != CONTAINS ||
			  (status == EUNO_OK) == (state == MOB_PRESENT),
			  "an interrupted contains changed something");
		set_state(mob, i, status == EUNO_OK ? MOB_PRESENT : MOB_ABSENT);
		return;
	}
	if (operation == INSERT)
		expected = state == MOB_PRESENT ? EUNO_EXISTS : EUNO_OK;
	else
		expected = state == MOB_PRESENT ? EUNO_OK : EUNO_NOT_FOUND;
	CHECK(status == expected,
		  "operation %d on entry %u in state %d: status %d", operation, i, state,
		  status);
	if (operation != CONTAINS)
		set_state(mob, i, operation == INSERT ? MOB_PRESENT : MOB_ABSENT);
}

/* Must a scan of this worker see the entry, and may it? */
static bool
must_see(const Worker *worker, uint32_t i)
{
	uint8_t		owner = worker->mob->owner[i];

	return owner == MOB_NOBODY ||
		(owner == worker->me && get_state(worker->mob, i) == MOB_PRESENT);
}

/*
 * Our own entry that is not there.  One that was handed over may turn absent
 * while the scan is on, so the caller asks before and after it.
 */
static bool
must_not_see(const Worker *worker, uint32_t i)
{
	return worker->mob->owner[i] == worker->me &&
		get_state(worker->mob, i) == MOB_ABSENT;
}

/* One batch, some of its rows checked already; false when the scan is over. */
static bool
check_batch(Worker *worker, const EunoCursor *cursor, bool forward,
			uint32_t *place, const uint8_t *absent)
{
	const Universe *universe = worker->mob->universe;
	EunoBatch  *batch = &worker->actor.batch;
	uint32_t	lo = universe_below(universe, &cursor->lo);
	uint32_t	hi = universe_below(universe, &cursor->hi);
	uint32_t	end = forward ? hi : lo;

	for (uint32_t item = 0; item <= batch->nitems; item++)
	{
		uint32_t	i = end;

		if (item < batch->nitems)
		{
			i = universe_by_tid(universe, batch->tids[item]);
			CHECK(i != UINT32_MAX, "scan: a TID that is nobody's");
			if (i == UINT32_MAX)
				return false;
			CHECK(forward ? i >= *place && i < hi : i < *place && i >= lo,
				  "scan: entry %u out of order or range", i);
			CHECK(!absent[i] || !must_not_see(worker, i),
				  "scan: entry %u is not there", i);
			if (batch->want_keys)
			{
				const EunoEntry *entry = &universe->entries[i].entry;
				EunoItemKey *key = &batch->keys[item];

				CHECK(key->keylen == entry->keylen &&
					  key->payloadlen == entry->payloadlen &&
					  memcmp(batch->buf + key->offset, entry->key,
							 entry->keylen) == 0,
					  "scan: entry %u with another key", i);
			}
		}
		else if (batch->nitems > 0)
			break;
		if (tap_bad() > 0)
			return false;
		if (forward)
		{
			for (; *place < i; (*place)++)
				CHECK(!must_see(worker, *place), "scan: missed entry %u", *place);
			*place = i < hi ? i + 1 : i;
		}
		else
		{
			uint32_t	stop = item < batch->nitems ? i + 1 : lo;

			for (; *place > stop; (*place)--)
				CHECK(!must_see(worker, *place - 1), "scan: missed entry %u",
					  *place - 1);
			*place = i;
		}
	}
	return batch->nitems > 0;
}

/* A scan of a random range in one direction, all of it checked. */
static void
scan(Worker *worker)
{
	Mob		   *mob = worker->mob;
	Actor	   *actor = &worker->actor;
	const Universe *universe = mob->universe;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	uint8_t    *absent = malloc(universe->n);
	bool		forward = random_below(&actor->random, 2) == 0;
	Bound		bounds[2];
	uint32_t	place;
	EunoStatus	status;
	jmp_buf		escape;

	for (uint32_t i = 0; i < universe->n; i++)
		absent[i] = must_not_see(worker, i);
	universe_random_range(universe, &actor->random, &cursor->lo, &cursor->hi,
						  bounds);
	if (universe_below(universe, &cursor->lo) >
		universe_below(universe, &cursor->hi))
	{
		EunoPosition position = cursor->lo;

		cursor->lo = cursor->hi;
		cursor->hi = position;
	}
	place = universe_below(universe, forward ? &cursor->lo : &cursor->hi);
	euno_cursor_start(cursor);
	if (mob->escape_every > 0 && setjmp(escape) != 0)
	{
		clean_up(worker);
		free(cursor);
		free(absent);
		return;
	}
	do
	{
		actor->batch.max_items = 1 + random_below(&actor->random, 300);
		actor->batch.want_keys = random_below(&actor->random, 2) == 0;
		if (mob->escape_every > 0)
		{
			compare_escape_every = mob->escape_every * 4;
			compare_escape = &escape;
		}
		status = mob->fixture.ops->read(&actor->cx, mob->fixture.tree, cursor,
										forward, &actor->batch);
		compare_escape = NULL;
		CHECK(status == EUNO_OK, "read: status %d", status);
	} while (check_batch(worker, cursor, forward, &place, absent));
	free(cursor);
	free(absent);
}

/* What read_keys found of one key, as a scan of its range. */
static void
check_key(Worker *worker, const EunoPosition *key, uint32_t from, uint32_t to,
		  const uint8_t *absent)
{
	EunoBatch  *batch = &worker->actor.batch;
	EunoBatch	all = *batch;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	uint32_t	place;

	cursor->lo = cursor->hi = *key;
	cursor->hi.side = 1;
	place = universe_below(worker->mob->universe, &cursor->lo);
	batch->tids += from;
	batch->keys += from;
	batch->nitems = to - from;
	if (check_batch(worker, cursor, true, &place, absent))
	{
		batch->nitems = 0;
		(void) check_batch(worker, cursor, true, &place, absent);
	}
	*batch = all;
	free(cursor);
}

/* Several random keys at once, all of what is found checked. */
static void
look_up(Worker *worker)
{
	Actor	   *actor = &worker->actor;
	Fixture    *fixture = &worker->mob->fixture;
	const Universe *universe = worker->mob->universe;
	EunoPosition keys[EUNO_KEYS_MAX];
	uint32_t	ends[EUNO_KEYS_MAX];
	uint32_t	n = 1 + random_below(&actor->random, EUNO_KEYS_MAX);
	uint8_t    *absent = malloc(universe->n);
	uint32_t	done;

	for (uint32_t i = 0; i < universe->n; i++)
		absent[i] = must_not_see(worker, i);
	for (uint32_t k = 0; k < n; k++)
	{
		const EunoEntry *entry =
			&universe->entries[random_below(&actor->random, universe->n)].entry;

		keys[k] = (EunoPosition)
		{
			.key = entry->key,.keylen = entry->keylen,.side = -1
		};
	}
	actor->batch.max_items = 1 + random_below(&actor->random, 300);
	actor->batch.want_keys = random_below(&actor->random, 2) == 0;
	done = fixture->ops->read_keys(&actor->cx, fixture->tree, keys, n,
								   &actor->batch, ends);
	CHECK(done <= n, "read_keys: %u of %u", done, n);
	for (uint32_t k = 0; k < done && tap_bad() == 0; k++)
		check_key(worker, &keys[k], k == 0 ? 0 : ends[k - 1], ends[k], absent);
	__atomic_add_fetch(&worker->mob->looked_up, done, __ATOMIC_RELAXED);
	free(absent);
}

static bool
decide(void *arg, EunoTid tid)
{
	Worker	   *worker = arg;
	uint32_t	i = universe_by_tid(worker->mob->universe, tid);

	CHECK(i != UINT32_MAX, "walk: a TID that is nobody's");
	if (i == UINT32_MAX)
		return false;
	worker->shown[i] = 1;
	if (random_below(&worker->actor.random, 1000) == 0)
		sched_yield();
	return get_state(worker->mob, i) == MOB_DOOMED;
}

/* Sometimes a walk is canceled between two leaves. */
static void
pause_walk(void *arg)
{
	Worker	   *worker = arg;

	if (worker->mob->escape_every > 0 &&
		random_below(&worker->actor.random, 100) == 0)
		longjmp(*(jmp_buf *) compare_escape, 1);
	if (random_below(&worker->actor.random, 4) == 0)
		sched_yield();
}

/* One walk that takes out what was handed over before it. */
static void
walk(Worker *worker)
{
	Mob		   *mob = worker->mob;
	const Universe *universe = mob->universe;
	EunoWalk	walk = actor_walk(&worker->actor, decide, pause_walk, worker);
	EunoStatus	status;
	jmp_buf		escape;

	for (uint32_t i = 0; i < universe->n; i++)
	{
		if (get_state(mob, i) == MOB_DEAD)
			set_state(mob, i, MOB_DOOMED);
	}
	memset(worker->shown, 0, universe->n);
	if (setjmp(escape) != 0)
	{
		clean_up(worker);
		return;					/* the doomed stay so until the next walk */
	}
	compare_escape_every = 0;
	compare_escape = &escape;
	status = mob->fixture.ops->walk(&worker->actor.cx, mob->fixture.tree, &walk);
	compare_escape = NULL;
	CHECK(status == EUNO_OK, "walk: status %d", status);
	CHECK(worker->actor.cx.held.walking == NULL, "still registered as a walker");
	for (uint32_t i = 0; i < universe->n; i++)
	{
		CHECK(worker->shown[i] || mob->owner[i] != MOB_NOBODY,
			  "walk: did not show entry %u", i);
		if (get_state(mob, i) != MOB_DOOMED)
			continue;
		CHECK(mob->fixture.ops->contains(&worker->actor.cx, mob->fixture.tree,
										 &universe->entries[i].entry) ==
			  EUNO_NOT_FOUND, "walk: entry %u is still there", i);
		set_state(mob, i, MOB_ABSENT);
	}
	__atomic_add_fetch(&mob->walks, 1, __ATOMIC_RELAXED);
}

/* Moves a leaf to some domain, and those that others use. */
static void
move(Worker *worker)
{
	Mob		   *mob = worker->mob;
	const EunoTreeOps *ops = mob->fixture.ops;
	Random	   *random = &worker->actor.random;
	const EunoEntry *entry =
		&mob->universe->entries[random_below(random, mob->universe->n)].entry;
	EunoPosition pos = euno_position_of(entry);
	EunoStatus	status;

	if (ops->migrate == NULL || mob->fixture.ndomains < 2)
		return;
	status = ops->migrate(&worker->actor.cx, mob->fixture.tree, &pos,
						  (int) random_below(random, mob->fixture.ndomains));
	CHECK(status == EUNO_OK || status == EUNO_NOT_FOUND ||
		  status == EUNO_NO_MEMORY, "migrate: status %d", status);
	if (status == EUNO_OK)
		__atomic_add_fetch(&mob->moved, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&mob->moved,
					   ops->settle(&worker->actor.cx, mob->fixture.tree, 4),
					   __ATOMIC_RELAXED);
}

/* Changes which domains have directories, and brings one up to date. */
static void
change_domains(Worker *worker)
{
	Mob		   *mob = worker->mob;
	const EunoTreeOps *ops = mob->fixture.ops;
	Random	   *random = &worker->actor.random;
	uint32_t	n = mob->fixture.ndomains;
	EunoStatus	status;

	if (ops->set_domains == NULL || n < 2)
		return;
	if (!mob->lagging)
		ops->maintain(&worker->actor.cx, mob->fixture.tree,
					  (int) random_below(random, n));
	if (random_below(random, 10) > 0)
		return;
	status = ops->set_domains(&worker->actor.cx, mob->fixture.tree,
							  random_below(random, UINT32_C(1) << n));
	CHECK(status == EUNO_OK || status == EUNO_BUSY,
		  "set_domains: status %d", status);
	if (status == EUNO_OK)
		__atomic_add_fetch(&mob->changes, 1, __ATOMIC_RELAXED);
}

static void
compact(Worker *worker)
{
	Mob		   *mob = worker->mob;
	const EunoTreeOps *ops = mob->fixture.ops;
	uint32_t	most = 1 + random_below(&worker->actor.random, 4);
	uint32_t	merged = 0;
	EunoStatus	status;

	status = ops->compact(&worker->actor.cx, mob->fixture.tree,
						  random_below(&worker->actor.random, 4), 4 * most,
						  &merged);
	CHECK(status == EUNO_OK || status == EUNO_DONE || status == EUNO_BUSY,
		  "compact: status %d", status);
	__atomic_add_fetch(&mob->merges, merged, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		move(worker);
	change_domains(worker);
	usleep(random_below(&worker->actor.random, 500));
}

static void
search(Worker *worker)
{
	const Mob  *mob = worker->mob;

	if (mob->fixture.ops->read_keys != NULL &&
		mob->universe->shape->order == EUNO_ORDER_BYTES &&
		random_below(&worker->actor.random, 2) == 0)
		look_up(worker);
	else
		scan(worker);
}

static void
work_once(Worker *worker, MobRole role)
{
	switch (role)
	{
		case MOB_WRITER:
			if (random_below(&worker->actor.random, 200) == 0)
				search(worker);
			else
				write_one(worker);
			break;
		case MOB_SCANNER:
			search(worker);
			break;

			/* nothing is merged during a walk, so the walkers take breaks */
		case MOB_WALKER:
			walk(worker);
			usleep(random_below(&worker->actor.random, 30000));
			break;
		case MOB_COMPACTOR:
			compact(worker);
			break;
		case MOB_VERIFIER:
			check_verify(&worker->actor);
			usleep(random_below(&worker->actor.random, 20000));
			break;
	}
}

_Static_assert(1 + ART_STRIPES < MAX_ACTORS && 1 + BPT_STRIPES < MAX_ACTORS,
			   "each has a slot");

/* In each kind of tree another one counts where the first does. */
static uint32_t
number_of(uint32_t slot)
{
	return slot == 2 ? 1 + BPT_STRIPES : slot == 3 ? 1 + ART_STRIPES : slot;
}

void
mob_work(Mob *mob, MobRole role, uint32_t slot)
{
	Worker	   *worker = calloc(1, sizeof(Worker));

	worker->mob = mob;
	test_env_stripe = slot;
	worker->me = role == MOB_WRITER ? slot - 1 : MOB_NOBODY - 1;
	actor_init(&worker->actor, &mob->fixture, number_of(slot),
			   mob->seed + slot);
	worker->actor.cx.domain = (int) (slot % mob->fixture.ndomains);
	worker->actor.cx.count_all = slot % 2 == 0;
	worker->actor.cx.lagging = mob->lagging;
	compare_escape_random.state = mob->seed * 31 + slot;
	worker->shown = malloc(mob->universe->n);
	worker->own = malloc(mob->universe->n * sizeof(uint32_t));
	for (uint32_t i = 0; i < mob->universe->n; i++)
	{
		if (mob->owner[i] == worker->me)
			worker->own[worker->nown++] = i;
	}
	while (!stopped(mob) && tap_bad() == 0)
	{
		work_once(worker, role);
		__atomic_add_fetch(&mob->operations[slot], 1, __ATOMIC_RELAXED);
	}
	actor_free(&worker->actor);
	free(worker->own);
	free(worker->shown);
	free(worker);
}

void
mob_settle(Mob *mob)
{
	Worker	   *worker = calloc(1, sizeof(Worker));
	Actor	   *actor = &worker->actor;
	Model		model;

	worker->mob = mob;
	worker->shown = malloc(mob->universe->n);
	mob->escape_every = 0;
	actor_init(actor, &mob->fixture, 1, mob->seed);
	walk(worker);
	model_init(&model, mob->universe);
	for (uint32_t i = 0; i < mob->universe->n; i++)
		model_set(&model, i, mob->state[i] == MOB_PRESENT);
	check_all(actor, &model);
	do_compact(actor);
	check_all(actor, &model);
	model_free(&model);
	actor_free(actor);
	free(worker->shown);
	free(worker);
}
