/*-------------------------------------------------------------------------
 *
 * schedules.c
 *	  Small cases, access by access, under many schedules.
 *
 * Each case runs under random schedules, under random priorities (PCT), under
 * those of one preemption, and under some of two (SHARE), or all where the case
 * says so.  What the threads saw must be explained by some order of their
 * operations, verify must be content, no freed node be looked at, and all
 * must come to an end.
 *
 * A failure prints EUNO_SCHEDULE=...; with that set, only that run is made.
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

#include "env.h"
#include "stage.h"
#include "tap.h"

/*
 * How many random schedules a case has, and about how many of two preemptions,
 * unless it asks for all (of the first tree).
 */
#define SHARE			800

static const Case cases[] = {
	{"insert-insert", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i3", "i9 i2"}, 1, 8, false, false},
	{"insert-insert-3", KEYS_SLOTTED, "i0 i4 i8 i12", {"i2", "i9 r4", "i5 c9"}, 1, 8, false, false},
	{"insert-read", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i6", "f0-12"}, 1, 8, false, false},
	{"insert-read-3", KEYS_SLOTTED, "i0 i4 i8 i12", {"i2 r8", "f0-12", "i13 i1"}, 1, 2, false, false},
	{"insert-back", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i6", "b0-12"}, 1, 8, false, false},
	{"insert-back-3", KEYS_SLOTTED, "i0 i4 i8 i12 i16 i20", {"i2 r8", "b0-20", "i13 i1"}, 1, 2, false, false},
	{"remove-insert", KEYS_SLOTTED, "i0 i4 i8", {"r4 i4", "i4 r4", "c4 c4"}, 1, 8, false, false},
	{"remove-read", KEYS_FIXED, "i0-8", {"r1-3", "f0-8", "b0-8"}, 1, 3, true, false},
	{"guard", KEYS_FIXED, "i0 i4 i8", {"g4 c4", "G r4 i4 c4"}, 1, 8, false, true},
	{"insert-find", KEYS_FIXED, "i0 i4 i8 i12", {"i2", "c8"}, 1, 8, false, true},
	{"insert-range", KEYS_FIXED, "i0 i4 i8 i12", {"i9", "f4-12"}, 1, 8, false, false},
	{"merge-find-1", KEYS_FIXED, "i0-4 r0-2", {"m", "c4"}, 1, 8, false, false},
	{"split-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"i1 i2 i3", "m"}, 1, 8, false, false},
	{"split-merge-2", KEYS_SLOTTED, "i0-12 r1-3 r5-7 r9-11", {"i5 i6 i7 c8", "m", "i9 r0"}, 2, 8, false, false},
	{"merge-read", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "f0-9"}, 1, 8, false, false},
	{"merge-back", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "b0-9"}, 1, 8, false, false},
	{"merge-find", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "c9 r9 c0"}, 1, 8, false, false},
	{"merge-insert", KEYS_FIXED, "i0-9 r1-2 r4-8", {"m", "i5 r3 c9"}, 1, 8, false, false},
	{"merge-merge", KEYS_SLOTTED, "i0-12 r1-3 r5-7 r9-11", {"m", "m", "c4 c8 c12"}, 1, 8, false, false},
	{"empty-read", KEYS_FIXED, "i0-12 r1-11", {"m i6", "f0-12", "b0-12"}, 1, 8, true, false},
	{"posting", KEYS_POSTING, "i0-5 i8-10", {"i6 r1 i7", "r0 i11", "f0-11"}, 1, 3, false, false},
	{"posting-split", KEYS_POSTING, "i0-2 i4-6 i8 i12", {"i16 i3", "r5 i17 i7", "b0-17"}, 1, 4, false, false},
	{"root", KEYS_FIXED, "i0 i4 i8 i12", {"i5 c12", "i9 c0", "i1 c8"}, 2, 8, false, false},
	{"root-compare", KEYS_COMPARE, "i0-11", {"i12-14", "i15-17", "c3 c11"}, 1, 8, false, false},
	{"post-long", KEYS_LONG, "i0-20", {"i21-23", "i24-26", "c19 c4"}, 1, 8, false, false},
	{"post-descent", KEYS_LONG, "i0-14", {"i15-18", "f10-18", "r12 i12"}, 1, 8, false, false},
	{"post-merge", KEYS_FIXED, "i0-4 r0-2", {"i5-7", "m", "m c4"}, 1, 8, false, false},
	{"post-stale", KEYS_FIXED, "i0-3", {"i4-5 c5", "r0-3 m", "c4 c5 i6"}, 1, 8, false, false},
	{"compare-read", KEYS_COMPARE, "i0 i4 i8 i12", {"i2 i6", "f0-12", "b0-12"}, 1, 8, false, false},
	{"compare-merge", KEYS_COMPARE, "i0-9 r1-2 r5-8", {"m", "i3 r3", "c9 f0-9"}, 1, 8, false, false},
	{"walk-split", KEYS_FIXED, "i0 i4 i8 i12", {"w4-8", "i2 i6", "i13"}, 1, 8, false, false},
	{"walk-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"w4", "m", "m"}, 1, 8, false, false},
	{"walk-posting", KEYS_POSTING, "i0-2 i4-6 i8 i12", {"w5-8", "i16 i3", "r4 c6"}, 1, 8, false, false},
	{"walks", KEYS_SLOTTED, "i0-8 r1-2", {"w3-4", "w4-5 m", "i1 i2"}, 1, 8, false, false},
	{"reuse", KEYS_FIXED, "i0-12 r1-2 r5-7 r9-11", {"m i1 i2 i3", "f0-12", "c8 c12"}, 1, 2, false, false},
	{"reuse-inner", KEYS_LONG, "i0-20 r1-19", {"m i4-6", "c20 c0", "b0-20"}, 1, 8, true, false},
	{"verify", KEYS_SLOTTED, "i0-9 r1-2 r5-8", {"v", "i1 i2 i3 r0", "m"}, 1, 8, false, false},
	{"hazard", KEYS_FIXED, "i0 i4 i8 i12", {"s0-12", "d4-8", "i9"}, 1, 8, false, false},
};

#define NCASES (sizeof(cases) / sizeof(cases[0]))

static const EunoTreeOps *const trees[] = {
	&euno_bptree_ops,
	&euno_art_olc_ops
};

static uint64_t runs;
static uint64_t all_steps;

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

	for (uint32_t i = 0; i < n; i++)
	{
		Schedule	schedule = {.kind = SCHEDULE_RANDOM,.seed = seed + i};

		if (!try(ops, c, &schedule, &steps))
			return false;
		schedule.kind = SCHEDULE_PRIORITY;
		schedule.length = length;
		schedule.npoints = 1 + i % 2;
		if (!try(ops, c, &schedule, &steps))
			return false;
	}
	return true;
}

/*
 * Preempts at each step (of other trees than the first: each fourth); and once
 * more behind it, if "stride" says so: it is 1 for all pairs of steps, n for
 * about one in n * n.
 */
static bool
try_preemptions(const EunoTreeOps *ops, const Case *c, Schedule *schedule,
				uint32_t from, uint32_t length, uint32_t stride,
				uint32_t offset)
{
	uint32_t	at = schedule->npoints++;
	uint32_t	by = at > 0 ? stride : ops == trees[0] ? 1 : 4;

	for (uint32_t step = from + offset % by; step <= length; step += by)
	{
		for (uint32_t to = 0; to < stage_threads(); to++)
		{
			uint32_t	steps;

			schedule->points[at] = (SchedulePoint)
			{
				step, to
			};
			if (!try(ops, c, schedule, &steps))
				return false;
			if (at == 0 && (step + offset) % stride == 0 &&
				!try_preemptions(ops, c, schedule, step + 1, steps, stride,
								 step))
				return false;
			schedule->npoints = at + 1;
		}
	}
	schedule->npoints = at;
	return true;
}

/* The stride with which a case's pairs of preemptions stay within its share. */
static uint32_t
choose_stride(const EunoTreeOps *ops, const Case *c, uint32_t length)
{
	uint32_t	n = stage_threads();
	double		all = (double) n * n * n * length * length / 2;
	uint32_t	stride = 1;

	while (!(c->all && ops == trees[0]) && all / stride / stride > SHARE)
		stride++;
	return stride;
}

/* Schedules of a case; false after a failure. */
static bool
run_case(const EunoTreeOps *ops, const Case *c, uint64_t seed)
{
	const char *failure = stage_open(ops, c);
	uint32_t	length = 1;
	uint32_t	stride;

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
	if (!try_random(ops, c, seed, SHARE / 2, length))
		return false;
	stride = choose_stride(ops, c, length);
	for (uint32_t first = 0; first < stage_threads(); first++)
	{
		Schedule	schedule = {.kind = SCHEDULE_LIST,.first = first};

		if (!try_preemptions(ops, c, &schedule, 1, length, stride,
							 (uint32_t) seed))
			return false;
	}
	return true;
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
test_case(const EunoTreeOps *ops, const Case *c)
{
	double		end = now() + test_seconds();
	uint64_t	seed = test_seed();
	uint64_t	before = runs;

	tap_begin("%s: %s", ops->name, c->name);
	do
	{
		if (!run_case(ops, c, seed))
			break;
		seed += SHARE;
		if (ops == &euno_bptree_ops && has_word(c, 'm'))
			CHECK(stage_counts.merges > 0, "nothing was merged");
	} while (now() < end);
	printf("# %llu schedules, %llu restarts, %llu hops to the right, %llu waits, %llu splits, %llu merges, %llu frees\n",
		   (unsigned long long) (runs - before),
		   (unsigned long long) stage_counts.restarts,
		   (unsigned long long) stage_counts.right_moves,
		   (unsigned long long) stage_counts.waits,
		   (unsigned long long) stage_counts.splits,
		   (unsigned long long) stage_counts.merges,
		   (unsigned long long) stage_counts.frees);
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
	}			answers[] = {
		{{&insert, &absent, NULL}, true},
		{{&insert, &present, NULL}, true},
		{{&insert, &absent, &present}, true},
		{{&insert, &present, &late}, false},
		{{&insert, &late, NULL}, false},
		{{&insert, &second, &mixed}, false},
		{{&second, &mixed, NULL}, true},
		{{&insert, &insert, NULL}, false}
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
	}
	tap_end();
}

/* EUNO_SCHEDULE: tree:case:schedule. */
static int
replay(const char *text)
{
	const char *colon = strchr(text, ':');
	const char *last = colon != NULL ? strchr(colon + 1, ':') : NULL;
	Schedule	schedule;
	uint32_t	steps;

	tap_begin("%s", text);
	CHECK(last != NULL && schedule_parse(&schedule, last + 1), "not a schedule");
	for (size_t k = 0; k < 2 * NCASES && tap_bad() == 0; k++)
	{
		const EunoTreeOps *ops = trees[k / NCASES];
		const Case *c = &cases[k % NCASES];

		if (strlen(ops->name) != (size_t) (colon - text) ||
			strncmp(text, ops->name, strlen(ops->name)) != 0 ||
			strlen(c->name) != (size_t) (last - colon - 1) ||
			strncmp(colon + 1, c->name, strlen(c->name)) != 0)
			continue;
		CHECK(stage_open(ops, c) == NULL, "the start fails");
		(void) try(ops, c, &schedule, &steps);
	}
	CHECK(runs == 1, "no such case");
	tap_end();
	return tap_done();
}

int
main(void)
{
	const char *schedule = getenv("EUNO_SCHEDULE");
	bool		stop = getenv("EUNO_STOP") != NULL;
	double		start = now();

	catch_crashes();
	if (schedule != NULL)
		return replay(schedule);
	test_judge();
	for (size_t k = 0; k < 2 * NCASES && !(stop && tap_bad() > 0); k++)
	{
		const EunoTreeOps *ops = trees[k / NCASES];
		const Case *c = &cases[k % NCASES];
		const char *only = getenv("EUNO_TREE");

		if ((only == NULL || strcmp(only, ops->name) == 0) &&
			!(c->keys == KEYS_COMPARE && ops->bytes_only))
			test_case(ops, c);
	}
	printf("# %llu schedules, %.0f a second, %.0f accesses each\n",
		   (unsigned long long) runs, (double) runs / (now() - start),
		   (double) all_steps / (double) runs);
	return tap_done();
}
