/*-------------------------------------------------------------------------
 *
 * lines.c
 *	  Writes to cache lines that other threads write, too (see lines.h).
 *
 * With EUNO_TEST_HOOK every access of core to shared memory comes by here.  A table
 * knows who wrote a line last.  Places are shared by lines; who drives a line out
 * has it forgotten, which makes the count a little too low.
 *
 * There may be fewer processors than threads.  So threads give way about once in
 * YIELD_EVERY accesses, that is within each operation: otherwise each would perform
 * some thousand operations in a row, and take hardly a line from anybody.
 *
 *-------------------------------------------------------------------------
 */
#include "lines.h"

#include <sched.h>

#include "core/euno_shared.h"

_Thread_local Lines lines;

bool
lines_counted(void)
{
#ifdef EUNO_TEST_HOOK
	return true;
#else
	return false;
#endif
}

#ifdef EUNO_TEST_HOOK

#define LINE_BITS		6
#define TABLE_BITS		20
#define YIELD_EVERY		32

/* Line << 8 | thread + 1. */
static uint64_t table[1 << TABLE_BITS];
static _Thread_local uint32_t me;
static _Thread_local uint32_t turn;

void
lines_enter(uint32_t thread)
{
	me = thread + 1;
	turn = thread + 1;
	lines = (Lines)
	{
		0, 0
	};
}

static void
write_line(uint64_t line)
{
	uint64_t   *place = &table[line * UINT64_C(0x9E3779B97F4A7C15) >>
							   (64 - TABLE_BITS)];
	uint64_t	old = __atomic_exchange_n(place, line << 8 | me,
										  __ATOMIC_RELAXED);

	lines.written++;
	lines.taken += old >> 8 == line && (old & 0xFF) != me;
}

void
euno_test_hook(EunoHookKind kind, const void *address, size_t size)
{
	uintptr_t	at = (uintptr_t) address;

	if (me == 0)
		return;
	if ((kind == EUNO_HOOK_STORE || kind == EUNO_HOOK_RMW) && size > 0)
	{
		for (uint64_t line = at >> LINE_BITS; line <= (at + size - 1) >> LINE_BITS;
			 line++)
			write_line(line);
	}
	turn ^= turn << 13;
	turn ^= turn >> 17;
	turn ^= turn << 5;
	if (turn % YIELD_EVERY == 0)
		sched_yield();
}

#else

void
lines_enter(uint32_t thread)
{
	(void) thread;
}

#endif
