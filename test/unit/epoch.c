/*-------------------------------------------------------------------------
 *
 * epoch.c
 *	  Epochs: nothing is used again while somebody may look at it.  Hazard
 *	  words: no scan returns a TID that VACUUM has let be used again.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/euno_epoch.h"
#include "fixture.h"
#include "tap.h"

static uint64_t seed;

static void
test_known_answers(void)
{
	EunoEpochs *epochs = aligned_alloc(128, euno_epochs_size(4));
	EunoProcess a = {epochs, 0, 0};
	EunoProcess b = {epochs, 3, 0};
	uint64_t	first;
	uint64_t	second;

	tap_begin("epochs: known answers");
	euno_epochs_init(epochs, 4);
	CHECK(epochs->current == 1 && epochs->nslots == 4, "fresh epochs");
	first = euno_epoch_advance(epochs);
	CHECK(euno_epoch_passed(epochs, first), "nobody is in, but not passed");

	euno_epoch_enter(&a);
	first = euno_epoch_advance(epochs);
	CHECK(!euno_epoch_passed(epochs, first), "passed a process that is in");
	euno_epoch_enter(&b);
	second = euno_epoch_advance(epochs);
	CHECK(second > first, "the epoch does not advance");
	euno_epoch_enter(&a);
	euno_epoch_exit(&a);
	CHECK(!euno_epoch_passed(epochs, first), "left at the inner exit");
	euno_epoch_exit(&a);
	CHECK(euno_epoch_passed(epochs, first), "waits for one that came later");
	CHECK(!euno_epoch_passed(epochs, second), "passed a process that is in");
	euno_epoch_exit(&b);
	CHECK(euno_epoch_passed(epochs, second), "everybody left, but not passed");

	euno_epoch_enter(&a);
	euno_epoch_enter(&a);
	euno_epoch_enter(&a);
	first = euno_epoch_advance(epochs);
	euno_process_reset(&a, 1);
	CHECK(a.depth == 1 && !euno_epoch_passed(epochs, first),
		  "a reset to depth 1 left the epoch");
	euno_process_reset(&a, 0);
	CHECK(a.depth == 0 && euno_epoch_passed(epochs, first),
		  "a reset to depth 0 did not leave the epoch");
	euno_process_reset(&a, 0);
	CHECK(a.depth == 0, "depth %u", a.depth);
	free(epochs);
	tap_end();
}

/* Cells that point to nodes, which a writer replaces and uses again. */
#define CELLS 8
#define READERS 3
#define ALIVE UINT64_C(0xA11FE)

typedef struct Node
{
	uint64_t	mark;			/* atomic */
	uint64_t	epoch;			/* writer's */
} Node;

static Node *cells[CELLS];		/* atomic */
static EunoEpochs *model_epochs;
static uint32_t model_stop;
static uint64_t model_reads;

static void *
epoch_reader(void *arg)
{
	EunoProcess process = {model_epochs, (uint32_t) (uintptr_t) arg, 0};
	Random		random = {seed + process.slot};

	while (!__atomic_load_n(&model_stop, __ATOMIC_RELAXED))
	{
		Node	   *node;

		euno_epoch_enter(&process);
		node = __atomic_load_n(&cells[random_below(&random, CELLS)],
							   __ATOMIC_ACQUIRE);
		for (int i = 0; i < 5; i++)
		{
			CHECK(__atomic_load_n(&node->mark, __ATOMIC_RELAXED) == ALIVE,
				  "a node was used again under a reader");
			if (random_below(&random, 20) == 0)
				sched_yield();
		}
		euno_epoch_exit(&process);
		__atomic_add_fetch(&model_reads, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void
test_model(double seconds)
{
	pthread_t	threads[READERS];
	Node		nodes[CELLS + 64];
	Node	   *limbo[64];
	uint32_t	nlimbo = 0;
	Node	   *spare[64];
	uint32_t	nspare = 64;
	uint64_t	reused = 0;
	Random		random = {seed};
	double		start = now();

	tap_begin("epochs: nodes in use are not used again");
	model_epochs = aligned_alloc(128, euno_epochs_size(READERS));
	euno_epochs_init(model_epochs, READERS);
	for (int i = 0; i < CELLS + 64; i++)
		nodes[i].mark = ALIVE;
	for (int i = 0; i < CELLS; i++)
		cells[i] = &nodes[i];
	for (int i = 0; i < 64; i++)
		spare[i] = &nodes[CELLS + i];
	for (int i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, epoch_reader, (void *) (uintptr_t) i);
	while ((now() < start + seconds || reused <= 100 ||
			__atomic_load_n(&model_reads, __ATOMIC_RELAXED) < 1000) &&
		   now() < start + 300 && tap_bad() == 0)
	{
		if (nspare > 0)
		{
			Node	   *node = spare[--nspare];

			__atomic_store_n(&node->mark, ALIVE, __ATOMIC_RELAXED);
			node = __atomic_exchange_n(&cells[random_below(&random, CELLS)],
									   node, __ATOMIC_SEQ_CST);
			node->epoch = euno_epoch_advance(model_epochs);
			limbo[nlimbo++] = node;
		}
		else
			sched_yield();
		while (nlimbo > 0 && euno_epoch_passed(model_epochs, limbo[0]->epoch))
		{
			__atomic_store_n(&limbo[0]->mark, 0, __ATOMIC_RELAXED);
			spare[nspare++] = limbo[0];
			nlimbo--;
			memmove(limbo, limbo + 1, nlimbo * sizeof(Node *));
			reused++;
		}
	}
	__atomic_store_n(&model_stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(reused > 100, "only %llu nodes were used again",
		  (unsigned long long) reused);
	free(model_epochs);
	tap_end();
}

/* A tree frees nothing while another process is in, and all of it later. */
static void
test_tree(const EunoTreeOps *ops)
{
	Case		c;
	EunoProcess other;
	uint64_t	frees;

	tap_begin("%s: nodes wait for those who may look at them", ops->name);
	case_make(&c, ops, &shapes[0], 8000, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	other = (EunoProcess)
	{
		c.fixture.epochs, 2, 0
	};
	euno_epoch_enter(&other);
	frees = c.fixture.source->frees;
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_remove(&c.actor, &c.model, i);
	do_compact(&c.actor);
	for (uint32_t i = 0; i < c.universe->n; i += 3)
		do_insert(&c.actor, &c.model, i);
	CHECK(c.fixture.source->frees == frees,
		  "%llu nodes were freed while somebody was in",
		  (unsigned long long) (c.fixture.source->frees - frees));
	euno_epoch_exit(&other);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_remove(&c.actor, &c.model, i);
	do_compact(&c.actor);
	CHECK(c.fixture.source->frees > frees, "nothing was freed afterwards");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

/*
 * The hazard protocol on a real tree, with a heap that is an array: each slot
 * (a TID) holds the key of a row, which lives, dies, is vacuumed away, and the
 * slot is used again for another row.  A scan must never return a TID whose
 * slot holds another row than the index entry was for.
 */
#define HEAP_SLOTS 400
#define HEAP_KEYS 5000

/* What is done; all but the first must be seen to go wrong. */
typedef enum Protocol
{
	RIGHT,
	RIGHT_JOINED,				/* bulk delete makes the barriers */
	NO_HAZARDS,
	EPOCH_EARLY					/* the epoch advances before the removal only */
} Protocol;

typedef struct Heap
{
	Fixture		fixture;
	Protocol	protocol;
	uint32_t	stop;			/* atomic */
	uint64_t	vacuum_epoch;	/* atomic */
	uint64_t	rows[HEAP_SLOTS];	/* atomic; key of the slot's row, 0 = unused */
	uint8_t		dead[HEAP_SLOTS];	/* vacuum's */
	uint64_t	wrong;			/* atomic counters */
	uint64_t	returned;
	uint64_t	rechecked;
	uint64_t	skipped;
	uint64_t	waited;
} Heap;

static EunoTid
slot_tid(uint32_t slot)
{
	return (EunoTid) (slot / 100) << 16 | (slot % 100 + 1);
}

static uint32_t
tid_slot(EunoTid tid)
{
	return (uint32_t) (tid >> 16) * 100 + (uint32_t) (tid & 0xFFFF) - 1;
}

static EunoEntry
heap_entry(uint8_t *bytes, uint64_t key, uint32_t slot)
{
	bytes[0] = 2;
	for (int i = 0; i < 8; i++)
		bytes[1 + i] = (uint8_t) (key >> (56 - 8 * i));
	return (EunoEntry)
	{
		.key = bytes,.keylen = 9,.tid = slot_tid(slot)
	};
}

static uint64_t
key_of_item(const EunoBatch *batch, uint32_t item)
{
	const uint8_t *bytes = batch->buf + batch->keys[item].offset;
	uint64_t	key = 0;

	for (int i = 0; i < 8; i++)
		key = key << 8 | bytes[1 + i];
	return key;
}

/*
 * Returns a TID to the executor, which looks at the row.  The order of the
 * steps is the protocol: announce, look at the epoch.
 */
static void
return_item(Heap *heap, Actor *actor, uint64_t batch_epoch, uint32_t item)
{
	EunoBatch  *batch = &actor->batch;
	uint32_t	row = tid_slot(batch->tids[item]);
	uint64_t	key = key_of_item(batch, item);
	uint8_t		bytes[9];

	if (heap->protocol != NO_HAZARDS)
	{
		euno_hazard_announce(&actor->process, batch->tids[item]);
		if (__atomic_load_n(&heap->vacuum_epoch, __ATOMIC_SEQ_CST) != batch_epoch)
		{
			EunoEntry	entry = heap_entry(bytes, key, row);

			__atomic_add_fetch(&heap->rechecked, 1, __ATOMIC_RELAXED);
			if (heap->fixture.ops->contains(&actor->cx, heap->fixture.tree,
											&entry) != EUNO_OK)
			{
				__atomic_add_fetch(&heap->skipped, 1, __ATOMIC_RELAXED);
				return;
			}
		}
	}
	for (int i = 0; i < 2; i++)
	{
		if (__atomic_load_n(&heap->rows[row], __ATOMIC_RELAXED) != key)
			__atomic_add_fetch(&heap->wrong, 1, __ATOMIC_RELAXED);
		if (random_below(&actor->random, 50) == 0)
			sched_yield();
	}
	__atomic_add_fetch(&heap->returned, 1, __ATOMIC_RELAXED);
}

static void *
heap_reader(void *arg)
{
	Heap	   *heap = ((void **) arg)[0];
	uint32_t	slot = (uint32_t) (uintptr_t) ((void **) arg)[1];
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	Actor		actor;

	actor_init(&actor, &heap->fixture, slot, seed);
	cursor->lo.side = -1;
	cursor->hi.side = 1;
	while (!__atomic_load_n(&heap->stop, __ATOMIC_RELAXED))
	{
		euno_cursor_start(cursor);
		for (;;)
		{
			uint64_t	epoch = __atomic_load_n(&heap->vacuum_epoch,
												__ATOMIC_SEQ_CST);

			if (heap->fixture.ops->read(&actor.cx, heap->fixture.tree, cursor,
										true, &actor.batch) != EUNO_OK ||
				actor.batch.nitems == 0)
				break;

			/* long enough for a vacuum, once in a while */
			if (random_below(&actor.random, 10) == 0)
				usleep(1000);
			for (uint32_t i = 0; i < actor.batch.nitems; i++)
				return_item(heap, &actor, epoch, i);
		}
		__atomic_store_n(&heap->fixture.epochs->slots[slot].hazard, 0,
						 __ATOMIC_RELEASE);
	}
	actor_free(&actor);
	free(cursor);
	return NULL;
}

static bool
heap_decide(void *arg, EunoTid tid)
{
	return ((Heap *) arg)->dead[tid_slot(tid)];
}

/* Waits until no scan is about to return a TID that is to be used again. */
static void
wait_for_hazards(Heap *heap)
{
	EunoEpochs *epochs = heap->fixture.epochs;

	CHECK(euno_barrier_all(&epochs->barriers), "the system refused a barrier");
	for (uint32_t i = 0; i < epochs->nslots; i++)
	{
		uint64_t	hazard = __atomic_load_n(&epochs->slots[i].hazard,
											 __ATOMIC_SEQ_CST);

		if (hazard == 0 || !heap->dead[tid_slot(hazard)])
			continue;
		__atomic_add_fetch(&heap->waited, 1, __ATOMIC_RELAXED);
		while (__atomic_load_n(&epochs->slots[i].hazard, __ATOMIC_SEQ_CST) ==
			   hazard)
			sched_yield();
	}
}

/* Deletes some rows, vacuums them away, and uses their slots again. */
static void
vacuum(Heap *heap, Actor *actor)
{
	EunoWalk	walk = actor_walk(actor, heap_decide, NULL, heap);
	uint8_t		bytes[9];

	for (uint32_t i = 0; i < HEAP_SLOTS; i++)
		heap->dead[i] = random_below(&actor->random, 4) == 0;
	if (heap->protocol == EPOCH_EARLY)
	{
		__atomic_add_fetch(&heap->vacuum_epoch, 1, __ATOMIC_SEQ_CST);
		usleep(300);
	}
	CHECK(heap->fixture.ops->walk(&actor->cx, heap->fixture.tree, &walk) ==
		  EUNO_OK, "walk failed");

	/*
	 * After the removal: a scan that read its batch before it has the old
	 * epoch.  Before the look at the hazard words: a scan that announces a
	 * TID later sees the new one.
	 */
	if (heap->protocol != EPOCH_EARLY)
		__atomic_add_fetch(&heap->vacuum_epoch, 1, __ATOMIC_SEQ_CST);
	if (heap->protocol != NO_HAZARDS)
		wait_for_hazards(heap);
	for (uint32_t i = 0; i < HEAP_SLOTS; i++)
	{
		EunoEntry	entry;
		uint64_t	key = 1 + random_below(&actor->random, HEAP_KEYS);

		if (!heap->dead[i])
			continue;
		if (key == heap->rows[i])
			key++;
		__atomic_store_n(&heap->rows[i], key, __ATOMIC_RELAXED);
		entry = heap_entry(bytes, key, i);
		CHECK(heap->fixture.ops->insert(&actor->cx, heap->fixture.tree, &entry,
										false) == EUNO_OK, "insert failed");
	}
}

static uint64_t
counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
test_hazards(const EunoTreeOps *ops, Protocol protocol, double seconds)
{
	static const char *const names[] = {
		"hazard words",
		"hazard words, barriers by bulk delete",
		"no hazard words: the test sees it",
		"an epoch that advances too early: the test sees it"
	};
	Universe   *universe = universe_make(&shapes[0], 1, 1);
	Heap	   *heap = calloc(1, sizeof(Heap));
	pthread_t	threads[READERS];
	void	   *args[READERS][2];
	bool		right = protocol == RIGHT || protocol == RIGHT_JOINED;
	Actor		actor;
	uint8_t		bytes[9];
	double		start = now();

	tap_begin("%s: %s", ops->name, names[protocol]);
	heap->protocol = protocol;
	fixture_open(&heap->fixture, ops, universe, 90, 1);
	euno_barrier_joined = false;
	if (protocol == RIGHT_JOINED)
		fixture_join(&heap->fixture);
	actor_init(&actor, &heap->fixture, 1, seed);
	for (uint32_t i = 0; i < HEAP_SLOTS; i++)
	{
		EunoEntry	entry = heap_entry(bytes, i + 1, i);

		heap->rows[i] = i + 1;
		CHECK(ops->insert(&actor.cx, heap->fixture.tree, &entry, false) == EUNO_OK,
			  "insert failed");
	}
	for (int i = 0; i < READERS; i++)
	{
		args[i][0] = heap;
		args[i][1] = (void *) (uintptr_t) (i + 2);
		pthread_create(&threads[i], NULL, heap_reader, args[i]);
	}
	while (tap_bad() == 0 && now() < start + 300)
	{
		vacuum(heap, &actor);
		if (right ?
			now() > start + seconds && counted(&heap->skipped) > 0 &&
			counted(&heap->waited) > 0 : counted(&heap->wrong) > 0)
			break;
	}
	__atomic_store_n(&heap->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	CHECK((heap->wrong == 0) == right, "%llu wrong rows",
		  (unsigned long long) heap->wrong);
	CHECK(!right || (heap->skipped > 0 && heap->waited > 0),
		  "no TID was skipped, or no vacuum had to wait");
	printf("# %llu returned, %llu rechecked, %llu skipped, %llu waits\n",
		   (unsigned long long) heap->returned,
		   (unsigned long long) heap->rechecked,
		   (unsigned long long) heap->skipped,
		   (unsigned long long) heap->waited);
	euno_barrier_joined = false;
	actor_free(&actor);
	fixture_close(&heap->fixture);
	free(heap);
	universe_free(universe);
	tap_end();
}

/*
 * The barrier alone, round by round: a scan announces and looks at the epoch,
 * a bulk delete advances it and looks at the hazard, at about the same time.
 * Not both may find that the other has done nothing.
 */
#define BARRIER_SECONDS 0.5

typedef struct Barrier
{
	EunoEpochs *epochs;
	uint64_t	round __attribute__((aligned(128)));	/* atomic, as the rest */
	uint64_t	epoch __attribute__((aligned(128)));
	uint64_t	answer __attribute__((aligned(128)));	/* round << 1 | epoch seen */
} Barrier;

static void *
barrier_scan(void *arg)
{
	Barrier    *b = arg;
	EunoProcess process = {b->epochs, 0, 0};
	uint64_t	round = 0;

	while (round != UINT64_MAX)
	{
		uint64_t	now_in = __atomic_load_n(&b->round, __ATOMIC_ACQUIRE);
		uint64_t	seen;

		if (now_in == round)
			continue;
		round = now_in;
		euno_hazard_announce(&process, round);
		seen = __atomic_load_n(&b->epoch, __ATOMIC_RELAXED) == round;
		__atomic_store_n(&b->answer, round << 1 | seen, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* How many rounds went wrong; with "ask", none may. */
static uint64_t
barrier_rounds(Barrier *b, bool ask, uint64_t *rounds)
{
	Random		random = {seed};
	uint64_t	wrong = 0;
	double		end = now() + BARRIER_SECONDS;
	pthread_t	thread;

	b->round = b->epoch = b->answer = 0;
	b->epochs->slots[0].hazard = 0;
	pthread_create(&thread, NULL, barrier_scan, b);
	for (*rounds = 1; now() < end; (*rounds)++)
	{
		bool		hazard;
		uint64_t	answer;

		__atomic_store_n(&b->round, *rounds, __ATOMIC_RELEASE);
		for (uint32_t i = random_below(&random, 200); i > 0; i--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&b->epoch, *rounds, __ATOMIC_RELAXED);
		if (ask)
			CHECK(euno_barrier_all(&b->epochs->barriers), "the system refused a barrier");
		else
			(void) __atomic_fetch_add(&b->epochs->barriers.asked, 1, __ATOMIC_SEQ_CST);
		hazard = __atomic_load_n(&b->epochs->slots[0].hazard,
								 __ATOMIC_RELAXED) == *rounds;
		while ((answer = __atomic_load_n(&b->answer, __ATOMIC_ACQUIRE)) >> 1 !=
			   *rounds)
			sched_yield();
		wrong += !hazard && (answer & 1) == 0;
	}
	__atomic_store_n(&b->round, UINT64_MAX, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return wrong;
}

static void
test_barrier(void)
{
	Barrier    *b = aligned_alloc(128, sizeof(Barrier));
	uint64_t	wrong;
	uint64_t	rounds;

	tap_begin("a barrier in all processes");
	b->epochs = aligned_alloc(128, euno_epochs_size(1));
	euno_epochs_init(b->epochs, 1);
	wrong = barrier_rounds(b, true, &rounds);
	CHECK(wrong == 0, "without having joined: wrong in %llu rounds",
		  (unsigned long long) wrong);
	euno_barrier_join(&b->epochs->barriers);
	if (euno_barrier_joined)
	{
		wrong = barrier_rounds(b, true, &rounds);
		CHECK(wrong == 0, "wrong in %llu rounds", (unsigned long long) wrong);
		printf("# %llu rounds\n", (unsigned long long) rounds);
		wrong = barrier_rounds(b, false, &rounds);
		printf("# %llu of %llu rounds are wrong if the barrier is not asked for\n",
			   (unsigned long long) wrong, (unsigned long long) rounds);
	}
	else
		printf("# this system has no such barrier\n");
	euno_barrier_joined = false;
	free(b->epochs);
	free(b);
	tap_end();
}

int
main(void)
{
	double		seconds = test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	if (seconds < 1)
		seconds = 1;
	test_known_answers();
	test_model(seconds);
	test_barrier();
	for (int s = 0; s < nsubjects; s++)
	{
		if (!subject_selected(subjects[s]))
			continue;
		if (subjects[s] != &reference_ops)
			test_tree(subjects[s]);
		test_hazards(subjects[s], RIGHT, seconds);
		test_hazards(subjects[s], RIGHT_JOINED, seconds);
		test_hazards(subjects[s], NO_HAZARDS, seconds);
		test_hazards(subjects[s], EPOCH_EARLY, seconds);
	}
	return tap_done();
}
