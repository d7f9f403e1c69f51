/*-------------------------------------------------------------------------
 *
 * schedules.c
 *	  Small cases, access by access, under many schedules.
 *
 * Each case (cases.c) runs under random schedules and under random priorities
 * (PCT), each with memory sequentially consistent and weak (memory.h), and
 * under all schedules of at most two preemptions if it is small, or some of
 * these.  What the threads saw must be explained by some order of their
 * operations, verify must be content, no freed node be looked at, none be freed
 * that somebody may be looking at, and all must come to an end.
 *
 * A failure prints EUNO_SCHEDULE=...; with that set, only that run is made.
 * EUNO_TREE names the tree, EUNO_CASES the cases (by spaces).  EUNO_PART,
 * 0/8 to 7/8 for instance, has but an eighth of those with two preemptions run.
 * EUNO_SECONDS makes every case go on for as long with other seeds; with
 * EUNO_STOP, the first failure is the last.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "env.h"
#include "memory.h"
#include "stage.h"
#include "tap.h"

/*
 * Seeds of a case, with four random schedules each; and about how many
 * schedules of two preemptions it has if it is not small.
 */
#define SEEDS			800
#define SHARE			1000

/*
 * Seeds of each schedule of one preemption, where memory is weak; of a long
 * case (steps) there are many.
 */
#define LOOKS			24
#define LOOKS_LONG		2
#define LONG			600

/*
 * Of the schedules of two preemptions of a small case, about so many are run
 * again with weak memory.
 */
#define WEAK_SHARE		4000

/* More than this are not tried, though the case is small. */
#define SMALL			400000

static const EunoTreeOps *const trees[] = {
	&euno_bptree_ops,
	&euno_art_olc_ops,
	&euno_art_rowex_ops
};

#define NTREES (sizeof(trees) / sizeof(trees[0]))

static uint64_t runs;
static uint64_t random_runs;
static uint64_t all_steps;
static uint32_t failures;		/* cases that failed */

/* The run under way, for a crash in it. */
static const EunoTreeOps *run_ops;
static const Case *run_case_of;
static const Schedule *run_schedule;

static void
crashed(int sig)
{
	char		text[200];
	char		line[400];
	int			n;

	schedule_print(run_schedule, text, sizeof(text));
	n = snprintf(line, sizeof(line),
				 "# signal %d; EUNO_SCHEDULE=%s:%s:%s\nnot ok - crash\n", sig,
				 run_ops->name, run_case_of->name, text);
	_exit(write(STDOUT_FILENO, line, (size_t) n) == n ? 2 : 3);
}

/* On a stack of its own: a coroutine's may be what is broken. */
static void
catch_crashes(void)
{
	static char stack[64 * 1024];
	stack_t		other = {.ss_sp = stack,.ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = crashed,.sa_flags = SA_ONSTACK};

	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	sigaction(SIGILL, &action, NULL);	/* what is undefined */
}

/* One run; false, and the line that repeats it, if something was wrong. */
static bool
try(const EunoTreeOps *ops, const Case *c, const Schedule *schedule,
	uint32_t *steps)
{
	const char *failure;
	char		text[200];

	run_ops = ops;
	run_case_of = c;
	run_schedule = schedule;
	failure = stage_run(schedule, steps);
	runs++;
	all_steps += *steps;
	if (failure == NULL)
		return true;
	schedule_print(schedule, text, sizeof(text));
	CHECK(false, "%s; EUNO_SCHEDULE=%s:%s:%s", failure, ops->name, c->name,
		  text);
	stage_print();
	return false;
}

static bool
try_random(const EunoTreeOps *ops, const Case *c, uint64_t seed, uint32_t n,
		   uint32_t length)
{
	uint32_t	steps;

	for (uint32_t i = 0; i < 4 * n; i++)
	{
		Schedule	schedule = {.kind = i & 1 ? SCHEDULE_PRIORITY :
		SCHEDULE_RANDOM,.weak = (i & 2) != 0,.seed = seed + i / 4};

		if (schedule.kind == SCHEDULE_PRIORITY)
		{
			schedule.length = length;
			schedule.npoints = 1 + i / 4 % MAX_POINTS;
		}
		random_runs++;
		if (!try(ops, c, &schedule, &steps))
			return false;
	}
	return true;
}

/*
 * Preempts at each step where it may matter (coroutine_others), by each thread
 * that can go on; and once more behind it, where "stride" says so: it is 1 for
 * all pairs, n for about one in n.
 */
static bool
try_preemptions(const EunoTreeOps *ops, const Case *c, Schedule *schedule,
				uint32_t from, uint32_t length, uint32_t *stride)
{
	static uint8_t others[2][MAX_TRACE];
	uint32_t	at = schedule->npoints++;
	uint32_t	looks = !schedule->weak || at > 0 ? 1 :
		length > LONG ? LOOKS_LONG : LOOKS;

	memcpy(others[at], coroutine_others, length + 1);
	for (uint32_t step = from; step <= length; step++)
	{
		for (uint32_t to = 0; others[at][step] >> to != 0; to++)
		{
			uint32_t	steps;

			if ((others[at][step] >> to & 1) == 0 ||
				(at == 1 && ++stride[1] % *stride != 0))
				continue;
			schedule->points[at] = (SchedulePoint)
			{
				step, to
			};
			for (uint32_t i = 0; i < looks; i++)
			{
				schedule->seed++;
				if (!try(ops, c, schedule, &steps))
					return false;
			}
			if (at == 0 &&
				!try_preemptions(ops, c, schedule, step + 1,
								 steps < MAX_TRACE ? steps : MAX_TRACE - 1,
								 stride))
				return false;
			schedule->npoints = at + 1;
		}
	}
	schedule->npoints = at;
	return true;
}

/* Which part of the pairs of preemptions is to be run, of how many. */
static void
part_wanted(uint32_t *part, uint32_t *parts)
{
	const char *wanted = getenv("EUNO_PART");

	if (wanted == NULL || sscanf(wanted, "%u/%u", part, parts) != 2 ||
		*parts == 0)
	{
		*part = 0;
		*parts = 1;
	}
}

/*
 * All schedules of at most two preemptions, or some; with weak memory a share,
 * each with what another seed has the loads see.  Which words several
 * threads use comes out by and by: if there were more of them in the end, it
 * starts again.
 */
static bool
try_bounded(const EunoTreeOps *ops, const Case *c, bool weak, uint32_t length)
{
	static uint32_t strong_pairs;	/* of this case, in all parts */
	uint32_t	part;
	uint32_t	parts;
	uint32_t	every = 1;		/* pair of preemptions, or one in so many */
	uint32_t	n = stage_threads();
	bool		whole = n == 2 || (c->flags & CASE_WHOLE) != 0;
	uint64_t	before;
	bool		ok = true;

	part_wanted(&part, &parts);
	if (!weak)
		memory_forget();
	coroutine_trace = true;
	do
	{
		uint64_t	start = runs;
		uint32_t	pairs = 0;

		before = memory_shared_words;
		for (uint32_t first = 0; first < n && ok; first++)
		{
			Schedule	schedule = {.kind = SCHEDULE_LIST,.weak = weak,
			.first = first};
			uint32_t	stride[2];
			uint32_t	steps;

			/* Two looks: the first one finds which words matter. */
			ok = try(ops, c, &schedule, &steps) &&
				try(ops, c, &schedule, &steps);
			if (weak)
				every = 1 + strong_pairs / WEAK_SHARE;
			if (!whole)
				every = 1 + n * (n - 1) * (n - 1) * length * length / 8 / SHARE;
			stride[0] = parts * every;
			stride[1] = part * every;
			ok = ok && try_preemptions(ops, c, &schedule, 1,
									   steps < MAX_TRACE ? steps :
									   MAX_TRACE - 1, stride);
			pairs += stride[1] - part * every;
		}
		if (!weak)
			strong_pairs = pairs;
		if (runs - start > SMALL)
			break;
	} while (ok && whole && memory_shared_words > before);
	coroutine_trace = false;
	return ok;
}

/* Schedules of a case; false after a failure. */
static bool
run_case(const EunoTreeOps *ops, const Case *c, uint64_t seed, uint32_t seeds,
		 bool bounded)
{
	const char *failure = stage_open(ops, c);
	uint32_t	length = 1;

	CHECK(failure == NULL, "at the start: %s", failure);
	if (failure != NULL)
		return false;
	for (uint32_t first = 0; first < stage_threads(); first++)
	{
		Schedule	schedule = {.kind = SCHEDULE_LIST,.first = first};
		uint32_t	steps;

		if (!try(ops, c, &schedule, &steps))
			return false;
		if (steps > length)
			length = steps;
	}
	return try_random(ops, c, seed, seeds, length) &&
		(!bounded || (try_bounded(ops, c, false, length) &&
					  try_bounded(ops, c, true, length)));
}

static bool
has_word(const Case *c, char what)
{
	for (uint32_t i = 0; i < MAX_COROUTINES && c->threads[i] != NULL; i++)
	{
		if (strchr(c->threads[i], what) != NULL)
			return true;
	}
	return false;
}

static void
test_case(const EunoTreeOps *ops, const Case *c, uint32_t seeds, bool bounded)
{
	double		end = now() + test_seconds();
	uint64_t	seed = test_seed();
	uint64_t	before = runs;

	tap_begin("%s: %s", ops->name, c->name);
	do
	{
		if (!run_case(ops, c, seed, seeds, bounded))
			break;
		seed += seeds;
		if (ops == &euno_bptree_ops && has_word(c, 'm') && seeds >= SEEDS &&
			(c->flags & CASE_PINNED) == 0)
			CHECK(stage_counts.merges > 0, "nothing was merged");
		if ((c->flags & CASE_MOVES) != 0 && seeds >= SEEDS)
			CHECK(stage_counts.moves > 0, "nothing was moved");
		if ((c->flags & CASE_HEAT) != 0 && seeds >= SEEDS)
			CHECK(stage_counts.hot > 0, "no conflict was noted");
	} while (now() < end);
	failures += tap_bad() > 0;
	printf("# %llu schedules, %llu restarts, %llu hops to the right, %llu waits, %llu splits, %llu merges, %llu frees, %llu notes\n",
		   (unsigned long long) (runs - before),
		   (unsigned long long) stage_counts.restarts,
		   (unsigned long long) stage_counts.right_moves,
		   (unsigned long long) stage_counts.waits,
		   (unsigned long long) stage_counts.splits,
		   (unsigned long long) stage_counts.merges,
		   (unsigned long long) stage_counts.frees,
		   (unsigned long long) stage_counts.lag);
	tap_end();
}

/* Does the judge of histories tell right from wrong? */
static void
test_judge(void)
{
	/* {what, thread, call, ret, mask, seen, set, clear} */
	static const Operation insert = {"insert", 0, 0, 3, 1, 0, 1, 0};
	static const Operation absent = {"contains", 1, 1, 2, 1, 0, 0, 0};
	static const Operation present = {"contains", 1, 1, 2, 1, 1, 0, 0};
	static const Operation late = {"contains", 1, 4, 5, 1, 0, 0, 0};
	static const Operation second = {"insert", 2, 4, 5, 2, 0, 2, 0};
	static const Operation mixed = {"read", 1, 1, 6, 3, 2, 0, 0};
	static const struct
	{
		const Operation *operations[3];
		bool		possible;
		bool		by_entry;	/* ... if each entry has its own moment */
	}			answers[] = {
		{{&insert, &absent, NULL}, true, true},
		{{&insert, &present, NULL}, true, true},
		{{&insert, &absent, &present}, true, true},
		{{&insert, &present, &late}, false, false},
		{{&insert, &late, NULL}, false, false},
		{{&insert, &second, &mixed}, false, true},
		{{&second, &mixed, NULL}, true, true},
		{{&insert, &insert, NULL}, false, false}
	};

	tap_begin("histories: known answers");
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
	{
		History		history;

		history_init(&history);
		for (int k = 0; k < 3 && answers[i].operations[k] != NULL; k++)
			history_add(&history, answers[i].operations[k]);
		CHECK(history_check(&history, 0) == answers[i].possible,
			  "history %zu", i);
		CHECK(history_check_entries(&history, 0) ==
			  (answers[i].possible || answers[i].by_entry),
			  "history %zu, by entry", i);
	}
	tap_end();
}

static const EunoTreeOps *
find_tree(const char *name, size_t len)
{
	for (size_t i = 0; i < NTREES; i++)
	{
		if (strlen(trees[i]->name) == len &&
			strncmp(trees[i]->name, name, len) == 0)
			return trees[i];
	}
	return NULL;
}

static const Case *
find_case(const char *name, size_t len)
{
	for (uint32_t i = 0; i < ncases; i++)
	{
		if (strlen(cases[i].name) == len &&
			strncmp(cases[i].name, name, len) == 0)
			return &cases[i];
	}
	return NULL;
}

/* EUNO_SCHEDULE, "tree:case:schedule", alone. */
static void
replay(const char *text)
{
	size_t		tree_len = strcspn(text, ":");
	const char *name = text + tree_len + (text[tree_len] == ':');
	size_t		name_len = strcspn(name, ":");
	const EunoTreeOps *ops = find_tree(text, tree_len);
	const Case *c = find_case(name, name_len);
	Schedule	schedule;
	uint32_t	steps;

	tap_begin("%s", text);
	if (ops == NULL || c == NULL || name[name_len] != ':' ||
		!schedule_parse(&schedule, name + name_len + 1))
		CHECK(false, "there is no such tree, case or schedule");
	else
	{
		CHECK(stage_open(ops, c) == NULL, "the start fails");
		(void) try(ops, c, &schedule, &steps);
	}
	tap_end();
}

/* Is it in the list, or is there none?  A tree's name may be cut short. */
static bool
is_wanted(const char *list, const char *name, bool cut)
{
	if (list == NULL || *list == '\0')
		return true;
	for (size_t n; *list != '\0'; list += n + (list[n] == ' '))
	{
		n = strcspn(list, " ");
		if (strncmp(list, name, n) == 0 && (cut || name[n] == '\0'))
			return true;
	}
	return false;
}

/* All wanted cases of all wanted trees. */
static void
run_all(uint32_t seeds, bool bounded, bool stop)
{
	for (size_t t = 0; t < NTREES; t++)
	{
		for (uint32_t i = 0; i < ncases && !(stop && failures > 0); i++)
		{
			const Case *c = &cases[i];

			if (is_wanted(getenv("EUNO_TREE"), trees[t]->name, true) &&
				is_wanted(getenv("EUNO_CASES"), c->name, false) &&
				!((c->keys == KEYS_COMPARE || c->keys == KEYS_MATCH) &&
				  trees[t]->bytes_only) &&
				!((c->flags & CASE_RADIX) != 0 && !trees[t]->bytes_only) &&
				!((c->flags & CASE_MODES) != 0 && trees[t]->set_mode == NULL) &&
				!((c->flags & CASE_MOVES) != 0 && trees[t]->migrate == NULL))
				test_case(trees[t], c, seeds, bounded);
		}
	}
}

static void
run_kept(void)
{
	for (uint32_t i = 0; i < nkept; i++)
	{
		char		text[200];

		if (!is_wanted(getenv("EUNO_TREE"), kept[i].tree, false))
			continue;
		snprintf(text, sizeof(text), "%s:%s:%s", kept[i].tree, kept[i].name,
				 kept[i].schedule);
		replay(text);
	}
}

int
main(void)
{
	const char *schedule = getenv("EUNO_SCHEDULE");
	double		start = now();

	catch_crashes();
	if (schedule != NULL)
	{
		replay(schedule);
		return tap_done();
	}
	test_judge();
	if (getenv("EUNO_STOP") != NULL)
	{
		/* What is easy to find is found in no time. */
		run_all(SEEDS / 40, false, true);
		if (failures == 0)
			run_all(SEEDS / 4, true, true);
		if (failures == 0)
			run_all(SEEDS, true, true);
	}
	else
	{
		run_kept();
		run_all(SEEDS, true, false);
	}
	printf("# %llu schedules, %llu of them random, %.0f a second, %.0f accesses each, %llu loads of old values\n",
		   (unsigned long long) runs, (unsigned long long) random_runs,
		   (double) runs / (now() - start), (double) all_steps / (double) runs,
		   (unsigned long long) memory_stale_loads);
	return tap_done();
}
