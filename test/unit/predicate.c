/*-------------------------------------------------------------------------
 *
 * predicate.c
 *	  Predicate locks on leaves: nobody misses anybody.
 *
 * A model of euno_predicate.c, with a table of locks under one mutex.  In each
 * round some threads read a range and others insert entries into it, one time
 * each, while others make leaves split and merge.  Afterwards, of each reader
 * and each inserted entry in its range, the reader must have met the entry or
 * the writer the reader's lock.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "hook.h"
#include "tap.h"

#define READERS		3
#define WRITERS		3
#define MOVERS		2			/* and one that merges */
#define THREADS		(READERS + WRITERS + MOVERS + 1)

/* At least so many, or on a busy machine nothing may have happened. */
#define ROUNDS	300
#define WRITES		6			/* of a writer, in a round */
#define JUDGED		5			/* each so manieth entry is for the writers */
#define SPAN		40			/* entries in a range, at most */
#define TABLE_SIZE	(1 << 14)

typedef struct Lock
{
	uint32_t	leaf;			/* 0: free */
	uint32_t	readers;		/* a bit each */
} Lock;

typedef struct Write
{
	uint32_t	entry;
	uint32_t	found;			/* readers whose lock was met */
	bool		done;
} Write;

typedef struct Round
{
	Fixture		fixture;
	const Universe *universe;
	pthread_barrier_t barrier;
	uint32_t	stop;			/* atomic */
	uint32_t	first;			/* of the entries that this round is about;
								 * atomic */

	/* under the mutex */
	pthread_mutex_t mutex;
	Lock		table[TABLE_SIZE];
	uint32_t	used;
	uint64_t	position;
	uint64_t	moves;
	uint64_t	stale;

	/* each thread's own, until the round is judged */
	uint32_t	lo[READERS];
	uint32_t	hi[READERS];
	bool		seen[READERS][SPAN];
	Write		writes[WRITERS][WRITES];
	uint64_t	met;			/* locks met by writers */
	uint64_t	missed;			/* locks not met, the entry being seen */
} Round;

typedef struct Thread
{
	pthread_t	thread;
	Round	   *round;
	uint32_t	number;
} Thread;

static uint64_t seed;

static Lock *
lock_of(Round *round, uint32_t leaf)
{
	uint32_t	i = leaf * UINT32_C(0x9E3779B1) % TABLE_SIZE;

	while (round->table[i].leaf != leaf && round->table[i].leaf != 0)
		i = (i + 1) % TABLE_SIZE;
	if (round->table[i].leaf == 0)
	{
		round->table[i].leaf = leaf;
		round->used++;
	}
	return &round->table[i];
}

/* Let the locks follow; under the mutex. */
static void
follow(Round *round, Actor *actor)
{
	static EunoMove moves[EUNO_MOVES_MAX];
	uint32_t	n = EUNO_MOVES_MAX;
	EunoStatus	status = euno_bptree_ops.moves(&actor->cx, round->fixture.tree,
											   &round->position, moves, &n);

	CHECK(status == EUNO_OK || status == EUNO_STALE, "moves: status %d", status);
	if (status == EUNO_STALE)
	{
		/* All locks become one, which the model has not: lock everything. */
		uint32_t	all = 0;

		round->stale++;
		for (uint32_t i = 0; i < TABLE_SIZE; i++)
			all |= round->table[i].readers;
		lock_of(round, UINT32_MAX)->readers |= all;
		return;
	}
	round->moves += n;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	readers = lock_of(round, moves[i].from)->readers;

		lock_of(round, moves[i].to)->readers |= readers;
	}
}

/* Reads a range as euno_predicate_lock_batch has it read. */
static void
read_range(Round *round, Actor *actor, uint32_t number)
{
	EunoCursor *cursor = malloc(sizeof(EunoCursor));
	const UniverseEntry *lo;
	const UniverseEntry *hi;
	uint32_t	locked = 0;

	memset(round->seen[number], 0, sizeof(round->seen[number]));
	round->lo[number] = round->first + random_below(&actor->random, SPAN / 2);
	round->hi[number] = round->lo[number] + 1 +
		random_below(&actor->random, SPAN - 1);
	lo = &round->universe->entries[round->lo[number]];
	hi = &round->universe->entries[round->hi[number]];
	memset(cursor, 0, sizeof(*cursor));
	cursor->lo = (EunoPosition) {.key = lo->entry.key, .keylen = lo->entry.keylen,
	.tid = lo->entry.tid};
	cursor->hi = (EunoPosition) {.key = hi->entry.key, .keylen = hi->entry.keylen,
	.tid = hi->entry.tid};
	euno_cursor_start(cursor);
	actor->batch.one_leaf = true;
	actor->batch.want_keys = false;
	actor->batch.max_items = 1 + random_below(&actor->random, SPAN);
	do
	{
		bool		forward = true;
		EunoStatus	status;

		actor->batch.leaf = 0;
		status = euno_bptree_ops.read(&actor->cx, round->fixture.tree, cursor,
									  forward, &actor->batch);
		CHECK(status == EUNO_OK && actor->batch.leaf != 0, "read: status %d",
			  status);
		if (actor->batch.leaf != locked)
		{
			euno_cursor_unread(cursor, forward);
			locked = actor->batch.leaf;
			pthread_mutex_lock(&round->mutex);
			follow(round, actor);
			lock_of(round, locked)->readers |= UINT32_C(1) << number;
			pthread_mutex_unlock(&round->mutex);
			continue;
		}
		for (uint32_t i = 0; i < actor->batch.nitems; i++)
		{
			uint32_t	e = universe_by_tid(round->universe, actor->tids[i]);

			if (e >= round->lo[number] && e < round->hi[number])
				round->seen[number][e - round->lo[number]] = true;
			else
				CHECK(false, "entry %u is not in the range", e);
		}
	} while (!cursor->at_hi && tap_bad() == 0);
	free(cursor);
}

/* Inserts entries as euno_predicate_check has it done. */
static void
write_entries(Round *round, Actor *actor, uint32_t number)
{
	actor->cx.want_leaf = true;
	for (uint32_t i = 0; i < WRITES; i++)
	{
		Write	   *write = &round->writes[number][i];
		EunoStatus	status;

		write->entry = round->first + random_below(&actor->random, SPAN * 2);
		write->entry -= write->entry % JUDGED;
		write->done = write->entry >= round->first &&
			write->entry / JUDGED % WRITERS == number;
		if (!write->done)
			continue;
		actor->cx.leaf = 0;
		status = euno_bptree_ops.insert(&actor->cx, round->fixture.tree,
										&round->universe->entries[write->entry].entry, false);
		write->done = status == EUNO_OK;
		if (!write->done)
			continue;
		CHECK(actor->cx.leaf != 0, "insert names no leaf");
		pthread_mutex_lock(&round->mutex);
		follow(round, actor);
		write->found = lock_of(round, actor->cx.leaf)->readers |
			lock_of(round, UINT32_MAX)->readers;
		pthread_mutex_unlock(&round->mutex);
	}
}

/* Makes leaves split, and become empty. */
static void
move(Round *round, Actor *actor)
{
	const Universe *universe = round->universe;
	uint32_t	from = __atomic_load_n(&round->first, __ATOMIC_RELAXED);
	bool		insert = random_below(&actor->random, 2) == 0;

	/* Mostly where the others are */
	if (random_below(&actor->random, 4) == 0)
		from = random_below(&actor->random, universe->n);
	from -= from > 100 ? 100 : from;
	for (uint32_t i = from; i < from + 300 && i < universe->n; i++)
	{
		if (i % JUDGED == 0)
			continue;
		if (insert)
			(void) euno_bptree_ops.insert(&actor->cx, round->fixture.tree,
										  &universe->entries[i].entry, false);
		else
			(void) euno_bptree_ops.remove(&actor->cx, round->fixture.tree,
										  &universe->entries[i].entry, NULL);
	}
}

/* One thread does it, between two rounds. */
static void
judge(Round *round, Actor *actor)
{
	for (uint32_t w = 0; w < WRITERS; w++)
		for (uint32_t i = 0; i < WRITES; i++)
		{
			Write	   *write = &round->writes[w][i];

			if (!write->done)
				continue;
			for (uint32_t r = 0; r < READERS; r++)
			{
				bool		met = (write->found >> r & 1) != 0;

				if (write->entry < round->lo[r] || write->entry >= round->hi[r])
					continue;
				round->met += met;
				round->missed += !met;
				CHECK(met || round->seen[r][write->entry - round->lo[r]],
					  "reader %u and the writer of entry %u have missed each other",
					  r, write->entry);
			}
			(void) euno_bptree_ops.remove(&actor->cx, round->fixture.tree,
										  &round->universe->entries[write->entry].entry, NULL);
		}
	if (round->used > TABLE_SIZE / 4)
	{
		memset(round->table, 0, sizeof(round->table));
		round->used = 0;
	}
	for (uint32_t i = 0; i < TABLE_SIZE; i++)
		round->table[i].readers = 0;
	__atomic_store_n(&round->first,
					 random_below(&actor->random, round->universe->n - 4 * SPAN),
					 __ATOMIC_RELAXED);
}

static void *
thread_main(void *arg)
{
	Thread	   *thread = arg;
	Round	   *round = thread->round;
	uint32_t	number = thread->number;
	Actor		actor;

	actor_init(&actor, &round->fixture, number + 1, seed);
	while (__atomic_load_n(&round->stop, __ATOMIC_ACQUIRE) == 0)
	{
		if (number < READERS + WRITERS)
		{
			pthread_barrier_wait(&round->barrier);
			if (number < READERS)
				read_range(round, &actor, number);
			else
				write_entries(round, &actor, number - READERS);
			pthread_barrier_wait(&round->barrier);
			if (number == 0)
				judge(round, &actor);
		}
		else if (number < READERS + WRITERS + MOVERS)
			move(round, &actor);
		else
		{
			uint32_t	merged;

			(void) euno_bptree_ops.compact(&actor.cx, round->fixture.tree, 0, 20,
										   &merged);
		}
	}
	actor_free(&actor);
	return NULL;
}

/*
 * Has all that this is about been seen?  Within a round, before it is judged.
 */
static bool
all_happened(Round *round)
{
	EunoTreeStats stats;
	Actor		actor;
	uint64_t	moves;

	pthread_mutex_lock(&round->mutex);
	moves = round->moves;
	pthread_mutex_unlock(&round->mutex);
	if (moves == 0 || round->met == 0 || round->missed == 0)
		return false;
	actor_init(&actor, &round->fixture, MAX_ACTORS - 1, seed);
	euno_bptree_ops.stats(&actor.cx, round->fixture.tree, &stats);
	actor_free(&actor);
	return stats.merges > 0;
}

static void
run_case(const char *shape, uint32_t n, double seconds)
{
	Round	   *round = calloc(1, sizeof(Round));
	Universe   *universe = universe_make(shape_by_name(shape), n, seed);
	Thread		threads[THREADS];
	EunoTreeStats stats;
	Actor		actor;
	double		end = now() + seconds;
	uint64_t	rounds = 0;
	bool		happened = false;

	tap_begin("%s: readers and writers meet", shape);
	round->universe = universe;
	fixture_open(&round->fixture, &euno_bptree_ops, universe, 90, 1);
	pthread_mutex_init(&round->mutex, NULL);
	pthread_barrier_init(&round->barrier, NULL, READERS + WRITERS + 1);
	for (uint32_t i = 0; i < THREADS; i++)
	{
		threads[i].round = round;
		threads[i].number = i;
		pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]);
	}

	/* This thread ends the last round, so that nobody waits for another. */
	for (;;)
	{
		pthread_barrier_wait(&round->barrier);
		rounds++;
		happened = now() > end && rounds >= ROUNDS && all_happened(round);
		if (happened || now() > end + 300 || tap_bad() > 0)
			__atomic_store_n(&round->stop, 1, __ATOMIC_RELEASE);
		pthread_barrier_wait(&round->barrier);
		if (__atomic_load_n(&round->stop, __ATOMIC_ACQUIRE) != 0)
			break;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);

	actor_init(&actor, &round->fixture, MAX_ACTORS - 1, seed);
	check_verify(&actor);
	euno_bptree_ops.stats(&actor.cx, round->fixture.tree, &stats);
	printf("# %llu rounds, %llu moves followed, %llu times too many; locks met %llu times, not met %llu times; %llu splits, %llu merges\n",
		   (unsigned long long) rounds, (unsigned long long) round->moves,
		   (unsigned long long) round->stale, (unsigned long long) round->met,
		   (unsigned long long) round->missed, (unsigned long long) stats.splits,
		   (unsigned long long) stats.merges);
	CHECK(tap_bad() > 0 || happened, "nothing happened");
	actor_free(&actor);
	pthread_barrier_destroy(&round->barrier);
	fixture_close(&round->fixture);
	universe_free(universe);
	free(round);
	tap_end();
}

int
main(void)
{
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	hook_yield_every = 100;
	do
	{
		run_case("dense int8", 3000, 2);
		run_case("text, long prefixes", 2000, 2);
		run_case("comparator", 2000, 2);
		seed++;
	} while (now() < end);
	return tap_done();
}
