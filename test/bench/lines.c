/*-------------------------------------------------------------------------
 *
 * lines.c
 *	  Writes to cache lines that other threads write, too (see lines.h).
 *
 * With EUNO_TEST_HOOK every access of core to shared memory comes by here.  A table
 * knows who wrote a line last.  Places are shared by lines; who drives a line out
 * has it forgotten, which makes the count a little too low.
 *
 * The threads are coroutines.  A turn is about TURN accesses, so there are several in
 * each operation, and who is next is chosen at random: that is how threads with
 * a core each would come to a line, and the same run has the same numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "lines.h"

#ifdef EUNO_TEST_HOOK

#include <stdlib.h>
#include <ucontext.h>

#include "core/euno_shared.h"
#include "env.h"
#include "subject.h"

#define LINE_BITS		6
#define TABLE_BITS		20
#define TURN			32
#define MAX_COROUTINES	65
#define STACK_BYTES		((size_t) 4 << 20)

typedef struct Coroutine
{
	ucontext_t	context;
	void	   *stack;
	void	   *(*body) (void *arg);
	void	   *arg;
	bool		over;
} Coroutine;

static Coroutine coroutines[MAX_COROUTINES];
static uint32_t ncoroutines;
static uint32_t nover;
static Coroutine *current;		/* NULL: none */
static ucontext_t outside;
static uint64_t turns_left;
static Random chance = {1};
static Lines lines;

/* Line << 8 | coroutine + 1. */
static uint64_t table[1 << TABLE_BITS];

static void
write_line(uint64_t line)
{
	uint64_t	me = (uint64_t) (current - coroutines) + 1;
	uint64_t   *place = &table[line * UINT64_C(0x9E3779B97F4A7C15) >>
							   (64 - TABLE_BITS)];

	lines.written++;
	lines.taken += *place >> 8 == line && (*place & 0xFF) != me;
	*place = line << 8 | me;
}

/* Somebody who is not through. */
static Coroutine *
next_one(void)
{
	Coroutine  *next;

	do
		next = &coroutines[random_below(&chance, ncoroutines)];
	while (next->over);
	return next;
}

void
lines_turn(void)
{
	Coroutine  *me = current;

	if (--turns_left == 0)
	{
		current = NULL;
		swapcontext(&me->context, &outside);
		return;
	}
	current = next_one();
	if (current != me)
		swapcontext(&me->context, &current->context);
}

void
euno_test_hook(EunoHookKind kind, const void *address, size_t size)
{
	uintptr_t	at = (uintptr_t) address;

	if (current == NULL)
		return;
	if ((kind == EUNO_HOOK_STORE || kind == EUNO_HOOK_RMW) && size > 0)
	{
		for (uint64_t line = at >> LINE_BITS; line <= (at + size - 1) >> LINE_BITS;
			 line++)
			write_line(line);
	}
	if (random_below(&chance, TURN) == 0)
		lines_turn();
}

static void
begin(void)
{
	(void) current->body(current->arg);
	current->over = true;
	nover++;
	current = NULL;
	setcontext(&outside);
}

void
lines_thread(void *(*body) (void *arg), void *arg)
{
	Coroutine  *c = &coroutines[ncoroutines];

	if (ncoroutines++ == MAX_COROUTINES)
		die("too many threads");
	if (c->stack == NULL)
		c->stack = shared_memory(STACK_BYTES);
	c->body = body;
	c->arg = arg;
	c->over = false;
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&c->context, begin, 0);
}

void
lines_run(uint64_t turns)
{
	bool		to_the_end = turns == 0;

	turns_left = to_the_end ? UINT64_MAX : turns;
	while (nover < ncoroutines && turns_left > 0)
	{
		Coroutine  *next = next_one();

		current = next;
		swapcontext(&outside, &next->context);
		if (!to_the_end && turns_left == 0)
			return;
	}
	if (nover == ncoroutines)
		ncoroutines = nover = 0;
}

Lines
lines_sum(void)
{
	Lines		sum = lines;

	lines = (Lines)
	{
		0, 0
	};
	return sum;
}

static void
wait_a_turn(uint32_t *word, uint32_t seen)
{
	(void) word;
	(void) seen;
	lines_turn();
}

static void
wake_nobody(uint32_t *word)
{
	(void) word;
}

EunoEnvironment lines_env;

static void __attribute__((constructor))
make_environment(void)
{
	lines_env = subject_env;
	lines_env.wait = wait_a_turn;
	lines_env.wake = wake_nobody;
}

bool
lines_counted(void)
{
	return true;
}

#else

EunoEnvironment lines_env;

bool
lines_counted(void)
{
	return false;
}

void
lines_thread(void *(*body) (void *arg), void *arg)
{
	(void) body;
	(void) arg;
}

void
lines_run(uint64_t turns)
{
	(void) turns;
}

void
lines_turn(void)
{
}

Lines
lines_sum(void)
{
	return (Lines)
	{
		0, 0
	};
}

#endif
