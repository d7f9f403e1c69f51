/*-------------------------------------------------------------------------
 *
 * coroutines.c
 *	  Logical threads that take turns at a schedule's word.
 *
 *-------------------------------------------------------------------------
 */
#undef _FORTIFY_SOURCE			/* it keeps longjmp on one stack */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "coroutines.h"
#include "env.h"
#include "memory.h"

#define STACK_BYTES		((size_t) 4 * 1024 * 1024)

/* No run takes nearly as many steps. */
#define STEP_LIMIT		200000

/* Who yields lets others have so many steps. */
#define YIELD_STEPS		30

/* So many loads of one word in a row: it waits for the word to change. */
#define SPIN_LOADS		3

typedef struct Coroutine
{
	ucontext_t	start;
	jmp_buf		place;			/* where it goes on, once "started" */
	bool		started;
	bool		done;
	const void *sleeps;			/* on this word, until woken */
	const uint64_t *spins;		/* on this word, while it is ... */
	uint64_t	spin_value;
	const void *last;			/* loaded */
	uint32_t	repeats;
	uint32_t	resumes;		/* at this step, if others can run */
	uint64_t	priority;
} Coroutine;

bool		(*coroutine_freed) (const void *address);
bool		coroutine_trace;
uint8_t		coroutine_others[MAX_TRACE];

static Coroutine coroutines[MAX_COROUTINES];
static char *stacks[MAX_COROUTINES];
static jmp_buf outside;
static bool inside;				/* a coroutine is running: "current" */
static uint32_t current;
static uint32_t ncoroutines;
static void (*run_body) (uint32_t i);
static Schedule plan;
static uint32_t next_point;
static uint32_t step;
static uint32_t rate;			/* random: a choice once in so many steps */
static Random choices;
static const char *failure;

void
schedule_print(const Schedule *schedule, char *to, size_t size)
{
	size_t		n;

	if (schedule->weak && size > 1)
	{
		*to++ = 'w';
		size--;
	}
	if (schedule->kind == SCHEDULE_RANDOM)
		snprintf(to, size, "r%llu", (unsigned long long) schedule->seed);
	else if (schedule->kind == SCHEDULE_PRIORITY)
		snprintf(to, size, "p%llu,%u,%u", (unsigned long long) schedule->seed,
				 schedule->length, schedule->npoints);
	else
	{
		n = (size_t) snprintf(to, size, "x%u", schedule->first);
		for (uint32_t i = 0; i < schedule->npoints; i++)
			n += (size_t) snprintf(to + n, size - n, ",%u>%u",
								   schedule->points[i].step,
								   schedule->points[i].to);
		if (schedule->weak)
			snprintf(to + n, size - n, "@%llu",
					 (unsigned long long) schedule->seed);
	}
}

bool
schedule_parse(Schedule *schedule, const char *from)
{
	unsigned long long seed;
	int			at;

	memset(schedule, 0, sizeof(*schedule));
	schedule->weak = *from == 'w';
	from += schedule->weak;
	schedule->kind = (ScheduleKind) *from;
	if (sscanf(from, "r%llu", &seed) == 1)
		schedule->seed = seed;
	else if (sscanf(from, "p%llu,%u,%u", &seed, &schedule->length,
					&schedule->npoints) == 3)
		schedule->seed = seed;
	else if (sscanf(from, "x%u%n", &schedule->first, &at) == 1)
	{
		for (from += at; *from == ','; from += at)
		{
			SchedulePoint *point = &schedule->points[schedule->npoints];

			if (schedule->npoints++ >= MAX_POINTS ||
				sscanf(from, ",%u>%u%n", &point->step, &point->to, &at) != 2)
				return false;
		}
		if (schedule->weak && sscanf(from, "@%llu%n", &seed, &at) == 1)
		{
			schedule->seed = seed;
			from += at;
		}
		return *from == '\0' && schedule->first < MAX_COROUTINES;
	}
	else
		return false;
	return schedule->npoints <= MAX_POINTS;
}

/*
 * Has a coroutine go on.  Only its start is left to setcontext, which asks the
 * kernel for the signals' mask each time.
 */
static void
resume(Coroutine *c)
{
	if (c->started)
		_longjmp(c->place, 1);
	c->started = true;
	setcontext(&c->start);
}

static void
leave(const char *what)
{
	failure = what;
	inside = false;
	_longjmp(outside, 1);
}

uint32_t
coroutine_current(void)
{
	return current;
}

void
coroutine_fail(const char *what)
{
	leave(what);
	abort();					/* nobody comes back */
}

static bool
can_run(uint32_t i, bool spinning)
{
	Coroutine  *c = &coroutines[i];

	if (i >= ncoroutines || c->done || c->sleeps != NULL)
		return false;
	if (c->spins != NULL && *c->spins != c->spin_value)
		c->spins = NULL;
	return spinning || (c->spins == NULL && step >= c->resumes);
}

/*
 * Who is next?  "forced": not the current one if there is another.  Those who
 * spin come last.  MAX_COROUTINES: nobody can.
 */
static uint32_t
choose(bool forced)
{
	uint32_t	able[MAX_COROUTINES];
	uint32_t	n = 0;

	for (int spinning = 0; spinning < 2 && n == 0; spinning++)
	{
		for (uint32_t k = 1; k <= ncoroutines; k++)
		{
			uint32_t	i = (current + k) % ncoroutines;

			if (can_run(i, spinning == 1) && !(forced && i == current))
				able[n++] = i;
		}
	}
	if (n == 0)
		return can_run(current, true) ? current : MAX_COROUTINES;
	if (plan.kind == SCHEDULE_RANDOM)
		return able[random_below(&choices, n)];
	if (plan.kind == SCHEDULE_PRIORITY)
	{
		uint32_t	best = able[0];

		for (uint32_t i = 1; i < n; i++)
		{
			if (coroutines[able[i]].priority > coroutines[best].priority)
				best = able[i];
		}
		return best;
	}
	return able[0];
}

static void
switch_to(uint32_t i)
{
	uint32_t	from = current;

	if (i == MAX_COROUTINES)
		coroutine_fail("all who are left wait for each other");
	if (i == from)
		return;
	current = i;
	if (_setjmp(coroutines[from].place) == 0)
		resume(&coroutines[i]);
}

/* Does the schedule have somebody else go on here?  MAX_COROUTINES: no. */
static uint32_t
preemption(void)
{
	if (plan.kind == SCHEDULE_RANDOM)
		return random_below(&choices, rate) == 0 ? choose(false) :
			MAX_COROUTINES;
	if (plan.kind == SCHEDULE_PRIORITY)
	{
		for (uint32_t i = 0; i < plan.npoints; i++)
		{
			if (plan.points[i].step == step)
				coroutines[current].priority = i;
		}
		return choose(false);
	}
	if (next_point < plan.npoints && plan.points[next_point].step == step)
	{
		uint32_t	to = plan.points[next_point++].to;

		if (can_run(to, true))
			return to;
	}
	return MAX_COROUTINES;
}

static uint8_t
others(void)
{
	uint8_t		set = 0;

	for (uint32_t i = 0; i < ncoroutines; i++)
	{
		if (i != current && can_run(i, true))
			set |= (uint8_t) (1U << i);
	}
	return set;
}

/*
 * Has others go on here, if the schedule says so or the access waits for them.
 */
static void
to_others(EunoHookKind kind, const void *address)
{
	Coroutine  *c = &coroutines[current];
	uint32_t	to;

	c->repeats = kind == EUNO_HOOK_LOAD && address == c->last ?
		c->repeats + 1 : 0;
	c->last = address;
	to = preemption();
	if (c->repeats >= SPIN_LOADS && (to == MAX_COROUTINES || to == current))
	{
		c->spins = (const uint64_t *) ((uintptr_t) address & ~(uintptr_t) 7);
		c->spin_value = *c->spins;
		to = choose(true);
	}
	if (to != MAX_COROUTINES)
		switch_to(to);
}

void
coroutine_access(EunoHookKind kind, const void *address, size_t size)
{
	if (!inside)
		return;
	if (++step > STEP_LIMIT)
		coroutine_fail("no end in sight");
	if (ncoroutines > 1)
	{
		if (coroutine_trace && step < MAX_TRACE)
			coroutine_others[step] =
				memory_is_shared(kind, address, size) ? others() : 0;
		to_others(kind, address);
	}
	if (coroutine_freed != NULL && coroutine_freed(address))
		coroutine_fail("memory was used that had been freed");
}

void
coroutine_step(void *word)
{
	coroutine_access(EUNO_HOOK_RMW, word, sizeof(uint32_t));
}

void
coroutine_yield(void)
{
	if (!inside)
		return;
	coroutines[current].resumes = step + YIELD_STEPS;
	switch_to(choose(true));
}

void
coroutine_wait(uint32_t *word, uint32_t seen)
{
	if (!inside)
		return;
	coroutine_step(word);
	if (*word != seen)
		return;
	coroutines[current].sleeps = word;
	switch_to(choose(true));
}

void
coroutine_wake(uint32_t *word)
{
	if (!inside)
		return;
	coroutine_step(word);
	for (uint32_t i = 0; i < ncoroutines; i++)
	{
		if (coroutines[i].sleeps == word)
			coroutines[i].sleeps = NULL;
	}
}

static void
coroutine_main(void)
{
	run_body(current);
	coroutines[current].done = true;
	for (uint32_t i = 0; i < ncoroutines; i++)
	{
		if (!coroutines[i].done)
			switch_to(choose(true));
	}
	leave(NULL);
}

static void
plan_start(const Schedule *schedule)
{
	plan = *schedule;
	choices.state = schedule->seed;
	next_point = 0;
	current = plan.first % ncoroutines;
	rate = 1;
	if (plan.kind == SCHEDULE_RANDOM)
	{
		rate = 1U << random_below(&choices, 7);
		current = random_below(&choices, ncoroutines);
	}
	else if (plan.kind == SCHEDULE_PRIORITY)
	{
		for (uint32_t i = 0; i < plan.npoints; i++)
			plan.points[i].step = 1 + random_below(&choices, plan.length);
		for (uint32_t i = 0; i < ncoroutines; i++)
			coroutines[i].priority = MAX_POINTS + random_next(&choices) / 2;
		current = choose(false);
	}
}

/* Has a coroutine begin when it is first switched to. */
static void
prepare(uint32_t i)
{
	Coroutine  *c = &coroutines[i];

	if (stacks[i] == NULL)
	{
		stacks[i] = shared_memory(STACK_BYTES);
		getcontext(&c->start);
	}
	c->started = c->done = false;
	c->sleeps = c->last = NULL;
	c->spins = NULL;
	c->repeats = c->resumes = 0;
	c->start.uc_stack.ss_sp = stacks[i];
	c->start.uc_stack.ss_size = STACK_BYTES;
	c->start.uc_link = NULL;
	makecontext(&c->start, coroutine_main, 0);
}

const char *
coroutines_run(const Schedule *schedule, uint32_t n, void (*body) (uint32_t i),
			   uint32_t *steps)
{
	ncoroutines = n;
	run_body = body;
	step = 0;
	failure = NULL;
	for (uint32_t i = 0; i < n; i++)
		prepare(i);
	memory_start(schedule->weak, schedule->seed);
	plan_start(schedule);
	inside = true;
	if (_setjmp(outside) == 0)
		resume(&coroutines[current]);
	*steps = step;
	return failure;
}
