/*-------------------------------------------------------------------------
 *
 * processes.c
 *	  A mob of processes on one shared tree; some are stopped for a while, in
 *	  the middle of an operation.
 *
 * The others go on, or sleep until it is over; in no case do they burn
 * processor time.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hook.h"
#include "mob.h"
#include "tap.h"

#define WRITERS 4
#define PROCESSES (WRITERS + 4)
#define STOP_SECONDS 0.25

static uint64_t seed;
static pid_t children[PROCESSES];
static uint32_t *stop_words;	/* one a process, see hook.h */
static uint32_t total_held_up;

static void
start(Mob *mob)
{
	static const MobRole others[] = {
		MOB_SCANNER, MOB_WALKER, MOB_COMPACTOR, MOB_VERIFIER
	};

	fflush(stdout);
	for (uint32_t c = 0; c < PROCESSES; c++)
	{
		children[c] = fork();
		if (children[c] == 0)
		{
			hook_stop = &stop_words[c];
			hook_pins = mob->fixture.epochs;
			hook_pins_size = euno_epochs_size(MAX_ACTORS);
			fixture_join(&mob->fixture);
			mob_work(mob, c < WRITERS ? MOB_WRITER : others[c - WRITERS], c + 1);
			_exit(tap_bad() != 0);
		}
	}
}

static void
stop_and_wait(Mob *mob)
{
	__atomic_store_n(&mob->stop, 1, __ATOMIC_RELAXED);
	for (uint32_t c = 0; c < PROCESSES; c++)
	{
		int			status;

		CHECK(waitpid(children[c], &status, 0) == children[c] && status == 0,
			  "process %u found something wrong", c);
	}
}

static uint64_t
progress(const Mob *mob, uint32_t c)
{
	return __atomic_load_n(&mob->operations[c + 1], __ATOMIC_RELAXED);
}

/* Processor seconds of another process. */
static double
cpu_of(pid_t pid)
{
	clockid_t	clock;
	struct timespec ts;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

/*
 * Stops one process, at its next store or wherever it is, and watches the
 * others.  Returns how many of them were held up.
 */
static uint32_t
stop_one(Mob *mob, uint32_t victim)
{
	uint64_t	before[PROCESSES];
	double		cpu[PROCESSES];
	uint32_t	held_up = 0;
	double		start;
	int			status;

	if (hook_enabled())
		__atomic_store_n(&stop_words[victim], 1, __ATOMIC_RELAXED);
	else
		kill(children[victim], SIGSTOP);
	CHECK(waitpid(children[victim], &status, WUNTRACED) == children[victim] &&
		  WIFSTOPPED(status), "process %u does not stop", victim);

	/* time for the others to run into what it holds */
	usleep(50000);
	start = now();
	for (uint32_t c = 0; c < PROCESSES; c++)
	{
		before[c] = progress(mob, c);
		cpu[c] = cpu_of(children[c]);
	}
	usleep((useconds_t) (STOP_SECONDS * 1e6));
	for (uint32_t c = 0; c < PROCESSES; c++)
	{
		if (c == victim || progress(mob, c) != before[c])
			continue;
		held_up++;
		cpu[c] = cpu_of(children[c]) - cpu[c];
		CHECK(cpu[c] < (now() - start) / 5,
			  "process %u waited for %u and burned %.0f ms in %.0f ms", c, victim,
			  cpu[c] * 1000, (now() - start) * 1000);
	}
	kill(children[victim], SIGCONT);
	return held_up;
}

/* Everybody must get on again. */
static void
check_progress(Mob *mob)
{
	uint64_t	before[PROCESSES];
	double		end = now() + 300;
	bool		all = false;

	for (uint32_t c = 0; c < PROCESSES; c++)
		before[c] = progress(mob, c);
	while (!all && now() < end)
	{
		all = true;
		usleep(10000);
		for (uint32_t c = 0; c < PROCESSES; c++)
			all &= progress(mob, c) != before[c];
	}
	CHECK(all, "somebody does not get on");
}

static void
run_case(const EunoTreeOps *ops, const char *shape, uint32_t n,
		 uint16_t ndomains, int stops)
{
	Universe   *universe = universe_make(shape_by_name(shape), n, seed);
	uint32_t	held_up = 0;
	Mob		   *mob;

	tap_begin("%s, %s: %u entries, %d processes in %u domains, one stopped %d times%s",
			  ops->name, shape, universe->n, PROCESSES, ndomains, stops,
			  hook_enabled() ? " within a write" : "");
	mob = mob_make(ops, universe, WRITERS, ndomains, true, seed);
	mob->lagging = ndomains == 4;
	start(mob);
	check_progress(mob);
	for (int i = 0; i < stops && tap_bad() == 0; i++)
	{
		held_up += stop_one(mob, (uint32_t) i % WRITERS);
		check_progress(mob);
	}
	stop_and_wait(mob);
	mob_settle(mob);
	total_held_up += held_up;
	printf("# %u held up, %llu operations of one, %llu walks, %llu merges\n",
		   held_up, (unsigned long long) mob->operations[1],
		   (unsigned long long) mob->walks, (unsigned long long) mob->merges);
	mob_free(mob);
	universe_free(universe);
	tap_end();
}

int
main(void)
{
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	stop_words = shared_memory(PROCESSES * sizeof(uint32_t));

	/* one leaf or two: whoever is stopped holds what the others need */
	do
	{
		run_case(&euno_bptree_ops, "dense int8", 100, 1, 8);
		run_case(&euno_bptree_ops, "text, long prefixes", 1000, 4, 4);
		run_case(&euno_bptree_ops, "1000 per key", 3000, 1, 4);
		run_case(&euno_bptree_ops, "payloads", 500, 1, 4);
		run_case(&euno_bptree_ops, "comparator", 300, 1, 4);
		run_case(&crowded_bpt_ops, "dense int8", 100, 1, 8);
		run_case(&crowded_art_ops, "sparse int8", 1000, 1, 4);
		seed++;
	} while (now() < end);
	if (hook_enabled())
	{
		/* not each time: the store may have been to a node not linked yet */
		tap_begin("bptree: some of those stopped held up others");
		CHECK(total_held_up > 0, "nobody was ever held up");
		tap_end();
	}
	return tap_done();
}
