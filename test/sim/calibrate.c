/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  What this machine's memory costs, as the simulator wants to know it.
 *
 * Prints "name nanoseconds" lines.  Each is the best of many short tries: the
 * machine may have other work to do.  Latencies are of a chain of loads in
 * random order, beyond what the chain costs in L1.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/euno_shared.h"
#include "env.h"

#define LINE		64
#define PAGE		4096
#define BIG_BYTES	((size_t) 64 << 20)
#define TRIES		12

/* Stretches of a chain that are timed one by one. */
#define BATCHES		1000
#define BATCH_LOADS	1000

/* In the L3 for sure, and not in L2. */
#define L3_BYTES	((size_t) 2 << 20)

static char *big;
static volatile uint64_t sink;

static double
cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static uint32_t *
random_order(uint32_t n)
{
	uint32_t   *order = malloc(n * sizeof(uint32_t));
	Random		random = {n};

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--)
	{
		uint32_t	j = random_below(&random, i + 1);
		uint32_t	swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
	return order;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return x < y ? -1 : x > y;
}

/*
 * Nanoseconds a load, of a chain through "n" places "stride" bytes apart: what
 * this share of many short stretches take at most.  In others somebody else
 * had just had the caches.  "sweep": go through it all before each stretch, so
 * that the caches have what they can hold.
 */
static double
chase(uint32_t n, size_t stride, double share, bool sweep)
{
	static double times[BATCHES];
	uint32_t   *order = random_order(n);
	void	  **p;

	for (uint32_t i = 0; i < n; i++)
	{
		size_t		from = order[i] * stride;
		size_t		to = order[(i + 1) % n] * stride;

		/*
		 * Another line of each page, so that all sets of the caches are used.
		 */
		if (stride == PAGE)
		{
			from += order[i] % (PAGE / LINE) * LINE;
			to += order[(i + 1) % n] % (PAGE / LINE) * LINE;
		}
		*(void **) (big + from) = big + to;
	}
	p = (void **) (big + order[0] * stride + (stride == PAGE ?
											  order[0] % (PAGE / LINE) * LINE : 0));
	for (uint32_t i = 0; i < 2 * n; i++)
		p = *(void **volatile *) p;
	for (int batch = 0; batch < BATCHES; batch++)
	{
		double		start;

		for (uint32_t i = 0; sweep && i < n; i++)
			sink += *(volatile uint64_t *) (big + i * stride);
		start = cpu_time();
		for (uint32_t i = 0; i < BATCH_LOADS; i++)
			p = *(void **volatile *) p;
		times[batch] = (cpu_time() - start) / BATCH_LOADS;
	}
	qsort(times, BATCHES, sizeof(double), compare_doubles);
	sink = (uintptr_t) p;
	free(order);
	return times[(int) (BATCHES * share)];
}

/*
 * Nanoseconds for each line after the first of a copy of a whole node from one
 * of "nodes" random places.
 */
static double
stream(uint32_t nodes)
{
	static char to[PAGE];
	uint32_t   *order = random_order(nodes);
	double		best[2] = {1e9, 1e9};

	for (int try = 0; try < TRIES; try++)
	{
		for (int part = 0; part < 2; part++)
		{
			size_t		size = part == 0 ? LINE : PAGE;
			double		start = cpu_time();

			for (uint32_t i = 0; i < nodes; i++)
			{
				/* The next place depends on what was copied. */
				euno_copy_out(to, big + (size_t) (order[i] + (to[7] & 1)) % nodes * PAGE,
							  size);
			}
			start = (cpu_time() - start) / nodes;
			if (start < best[part])
				best[part] = start;
		}
	}
	free(order);
	return (best[1] - best[0]) / (PAGE / LINE - 1);
}

static double
atomics(void)
{
	static uint64_t word;
	double		best = 1e9;

	for (int try = 0; try < TRIES; try++)
	{
		double		start = cpu_time();

		for (int i = 0; i < 1000000; i++)
		{
			uint64_t	seen = euno_load64(&word);

			(void) euno_cas64(&word, &seen, seen + 1);
		}
		start = (cpu_time() - start) / 1e6;
		if (start < best)
			best = start;
	}
	return best;
}

static double
pauses(void)
{
	double		best = 1e9;

	for (int try = 0; try < TRIES; try++)
	{
		double		start = cpu_time();

		for (int i = 0; i < 100000; i++)
			euno_pause();
		start = (cpu_time() - start) / 1e5;
		if (start < best)
			best = start;
	}
	return best;
}

/*
 * Two threads on two processors take turns, through a futex, so that it does
 * not matter whether they can run at the same time.
 */
#define TURNS		400
#define PEER_LINES	512

static uint32_t turn __attribute__((aligned(128)));
static uint32_t *peer_order;

static void
run_on(int cpu)
{
	cpu_set_t	set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void) pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void
pass_turn(uint32_t to)
{
	__atomic_store_n(&turn, to, __ATOMIC_RELEASE);
	test_env.wake(&turn);
}

static void
await_turn(uint32_t mine)
{
	uint32_t	seen;

	while ((seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != mine)
		test_env.wait(&turn, seen);
}

/*
 * Writes a chain of lines, so that they are in this processor's caches only.
 */
static void *
peer_writer(void *arg)
{
	(void) arg;
	run_on(1);
	for (uint32_t i = 1; i < 2 * TURNS; i += 2)
	{
		await_turn(i);
		for (uint32_t j = 0; j < PEER_LINES; j++)
			*(void *volatile *) (big + peer_order[j] * LINE) =
				big + peer_order[(j + 1) % PEER_LINES] * LINE;
		pass_turn(i + 1);
	}
	return NULL;
}

/* Nanoseconds for a line that the other core has written. */
static double
peer_lines(void)
{
	static double times[TURNS];
	pthread_t	thread;
	cpu_set_t	all;

	(void) pthread_getaffinity_np(pthread_self(), sizeof(all), &all);
	run_on(0);
	turn = 0;
	peer_order = random_order(PEER_LINES);
	pthread_create(&thread, NULL, peer_writer, NULL);
	for (uint32_t i = 0; i < TURNS; i++)
	{
		void	  **p = (void **) (big + peer_order[0] * LINE);
		double		start;

		pass_turn(2 * i + 1);
		await_turn(2 * i + 2);
		start = cpu_time();
		for (uint32_t j = 0; j < PEER_LINES; j++)
			p = *(void **volatile *) p;
		times[i] = (cpu_time() - start) / PEER_LINES;
		sink = (uintptr_t) p;
	}
	pthread_join(thread, NULL);
	(void) pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
	free(peer_order);
	qsort(times, TURNS, sizeof(double), compare_doubles);
	return times[TURNS / 20];
}

/*
 * Nanoseconds from a wake to the sleeper's next step, the best of many: the
 * processor must be free.
 */
static void *
sleeper(void *arg)
{
	(void) arg;
	for (uint32_t i = 1; i < 2 * TURNS; i += 2)
	{
		await_turn(i);
		pass_turn(i + 1);
	}
	return NULL;
}

static double
sleeps(void)
{
	pthread_t	thread;
	double		best = 1e9;

	turn = 0;
	pthread_create(&thread, NULL, sleeper, NULL);
	for (uint32_t i = 0; i < TURNS; i++)
	{
		double		start = now();

		pass_turn(2 * i + 1);
		await_turn(2 * i + 2);
		start = (now() - start) * 1e9 / 2;
		if (start < best)
			best = start;
	}
	pthread_join(thread, NULL);
	return best;
}

static double
wakes(void)
{
	static uint32_t nobody;
	double		best = 1e9;

	for (int try = 0; try < TRIES; try++)
	{
		double		start = cpu_time();

		for (int i = 0; i < 10000; i++)
			test_env.wake(&nobody);
		start = (cpu_time() - start) / 1e4;
		if (start < best)
			best = start;
	}
	return best;
}

/* Populating an extent: the system's work for memory that is new. */
static double
extents(void)
{
	double		best = 1e9;

	for (int try = 0; try < TRIES; try++)
	{
		EunoArena  *arena = euno_arena_reserve(NULL, (size_t) 64 << 20, 1, &test_env);
		EunoPool   *pool = shared_memory(sizeof(EunoPool));
		double		start;

		euno_pool_init(pool, arena, 0);
		start = cpu_time();
		while (pool->extents < 500 && euno_pool_alloc(pool, PAGE) != NULL)
			;
		start = (cpu_time() - start) / 500;
		if (start < best)
			best = start;
		euno_pool_release(pool);
	}
	return best;
}

/*
 * What others, in this system and on the machine, leave us of the L3: the
 * largest chain that is nearer to it than to memory, a quarter of the time.
 */
static double
l3_share(double l3, double memory)
{
	static const uint32_t kilobytes[] = {2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
	double		share = L3_BYTES / 2;

	for (size_t i = 0; i < sizeof(kilobytes) / sizeof(kilobytes[0]); i++)
	{
		if (chase(kilobytes[i] * (1024 / LINE), LINE, 0.25, false) > (l3 + memory) / 2)
			break;
		share = kilobytes[i] * 1024.0;
	}
	return share;
}

int
main(void)
{
	double		l1;
	double		l2;
	double		l3;
	double		tlb;
	double		memory;

	big = shared_memory(BIG_BYTES);
	memset(big, 0, BIG_BYTES);
	l1 = chase(256, LINE, 0.1, false);
	l2 = chase(8 * 1024, LINE, 0.1, false) - l1;

	/* Part of the chain is in L2. */
	l3 = (chase((uint32_t) (L3_BYTES / LINE), LINE, 0.05, true) - l1 - l2 / 2) * 2;
	tlb = chase(8 * 1024, PAGE, 0.05, false) - l1 - 2 * l2;
	memory = chase((uint32_t) (BIG_BYTES / 2 / LINE), LINE, 0.1, false) - l1 - tlb / 2 - l2;
	printf("l1 %.2f\n", l1);
	printf("l2 %.2f\n", l2);
	printf("l3 %.2f\n", l3);
	printf("l3_bytes %.0f\n", l3_share(l3, memory));
	printf("tlb %.2f\n", tlb > 0.1 ? tlb : 0.1);
	printf("memory %.2f\n", memory);
	printf("peer %.2f\n", peer_lines() - l1);
	printf("atomic %.2f\n", atomics());
	printf("pause %.2f\n", pauses());
	printf("sleep %.2f\n", sleeps() - wakes());
	printf("wake %.2f\n", wakes());
	printf("stream_l2 %.2f\n", stream(100));
	printf("stream_l3 %.2f\n", stream((uint32_t) (L3_BYTES / PAGE)));
	printf("stream_memory %.2f\n", stream((uint32_t) (BIG_BYTES / PAGE)));
	printf("extent %.2f\n", extents());
	return 0;
}
