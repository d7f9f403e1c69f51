/*-------------------------------------------------------------------------
 *
 * native.c
 *	  How fast a workload is on this machine: what the simulation is held
 *	  against.
 *
 *	native STRUCTURE ROWS OPERATIONS THREADS THETA WRITE-PERCENT random|toggled
 *		dense|sparse ROUNDS
 *
 * Prints the nanoseconds of processor time that one operation takes one thread,
 * and the share of the time in which the threads really ran: on a busy machine
 * they do not run side by side all the time.  What others do to the caches is
 * kept out as far as it goes: every thread's time is taken in short stretches,
 * and of each stretch the fastest of all rounds counts.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "subjects.h"

/* Operations that are timed together. */
#define STRETCH		WORKER_AHEAD
#define STRETCHES	4000

typedef struct Runner
{
	pthread_t	thread;
	Worker		worker;
	uint64_t	stretches;
	double		cpu;			/* seconds */
	double		wall;
} Runner;

/* Of each thread's stretches the fastest, in seconds; 0 = none. */
static double best[MAX_CORES][STRETCHES];
static pthread_barrier_t barrier;

void
subject_copy(const void *address, size_t size)
{
	(void) address;
	(void) size;
}

int
subject_domain(uint32_t thread)
{
	(void) thread;
	return 0;
}

const Subject *
subject_named(const char *name)
{
	if (strcmp(name, subject_bptree.name) == 0)
		return &subject_bptree;
	if (strcmp(name, subject_art_olc.name) == 0)
		return &subject_art_olc;
	return NULL;
}

static double
thread_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static void *
run(void *arg)
{
	Runner	   *runner = arg;
	double		start;

	pthread_barrier_wait(&barrier);
	start = now();
	for (uint64_t i = 0; i < runner->stretches; i++)
	{
		double		cpu;
		double	   *fastest = &best[runner->worker.number][i];

		/* The machine of the simulation draws rows in no time. */
		worker_look_ahead(&runner->worker);
		cpu = thread_seconds();
		for (int j = 0; j < STRETCH; j++)
			worker_do(&runner->worker, worker_choose(&runner->worker));
		cpu = thread_seconds() - cpu;
		runner->cpu += cpu;

		/* In the first quarter, caches and branches get used to it. */
		if (i < runner->stretches / 4)
			continue;
		if (*fastest == 0 || cpu < *fastest)
			*fastest = cpu;
	}
	runner->wall = now() - start;
	return NULL;
}

/* Returns processor time in elapsed time. */
static double
round_of(Workload *workload, const Subject *subject, uint64_t operations)
{
	static Runner runners[MAX_CORES];
	double		cpu = 0;
	double		wall = 0;

	workload->ascending = 0;
	subject->load(workload->rows, workload_key);
	pthread_barrier_init(&barrier, NULL, workload->threads);
	for (uint32_t i = 0; i < workload->threads; i++)
	{
		Runner	   *runner = &runners[i];

		memset(runner, 0, sizeof(*runner));
		runner->stretches = operations / workload->threads / STRETCH;
		if (runner->stretches > STRETCHES)
			runner->stretches = STRETCHES;
		worker_init(&runner->worker, workload, subject, i);
		pthread_create(&runner->thread, NULL, run, runner);
	}
	for (uint32_t i = 0; i < workload->threads; i++)
	{
		pthread_join(runners[i].thread, NULL);
		cpu += runners[i].cpu;
		wall += runners[i].wall;
	}
	pthread_barrier_destroy(&barrier);
	return cpu / wall;
}

int
main(int argc, char **argv)
{
	Workload	workload = {0};
	const Subject *subject = argc == 10 ? subject_named(argv[1]) : NULL;
	double		share = 0;
	double		time = 0;
	double		n = 0;

	if (subject == NULL)
	{
		fprintf(stderr, "usage: native STRUCTURE ROWS OPERATIONS THREADS THETA "
				"WRITE-PERCENT random|toggled dense|sparse ROUNDS\n");
		return 1;
	}
	subject_env = test_env;
	workload.rows = strtoull(argv[2], NULL, 10);
	workload.threads = (uint32_t) atoi(argv[4]);
	workload.theta = strtod(argv[5], NULL);
	workload.write_percent = (uint32_t) atoi(argv[6]);
	workload.inserts = strcmp(argv[7], "toggled") == 0 ?
		INSERTS_TOGGLED : INSERTS_RANDOM;
	workload.sparse = strcmp(argv[8], "sparse") == 0;
	workload.scattered = true;
	workload_prepare(&workload);
	for (int i = 0; i < atoi(argv[9]); i++)
		share += round_of(&workload, subject, strtoull(argv[3], NULL, 10));
	for (uint32_t t = 0; t < workload.threads; t++)
	{
		for (uint32_t i = 0; i < STRETCHES; i++)
		{
			time += best[t][i];
			n += best[t][i] > 0;
		}
	}
	printf("%.1f %.2f\n", time * 1e9 / (n * STRETCH), share / atoi(argv[9]));
	return 0;
}
