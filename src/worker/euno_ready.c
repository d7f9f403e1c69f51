/*-------------------------------------------------------------------------
 *
 * euno_ready.c
 *	  Memory for trees that are being built, made ready before they take it.
 *
 * A builder sorts and loads; the system takes as long again to find and to clear
 * the memory that it loads into.  The launcher has time for that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "mem/euno_domains.h"
#include "mem/euno_registry.h"
#include "worker/euno_worker.h"

/*
 * This many huge pages at a time; builders are looked at every this many
 * milliseconds.
 */
#define STEP_PAGES		16
#define LOOK_INTERVAL	10

/*
 * Has this many bytes idle in a domain.  False if the machine refuses them;
 * *more: not all of it was done.
 */
static bool
make_ready(EunoArena *arena, int domain, uint64 bytes, bool *more)
{
	EunoStatus	status = EUNO_OK;

	for (int i = 0; i < STEP_PAGES && status == EUNO_OK; i++)
	{
		CHECK_FOR_INTERRUPTS();
		status = euno_arena_make_ready(arena, domain, bytes);
	}
	*more |= status == EUNO_OK;
	return status != EUNO_NO_MEMORY;
}

long
euno_ready_step(void)
{
	static int64 refused = 0;	/* by euno_clock_ms */
	EunoArena  *arena = euno_registry_arena();
	uint64		expected[EUNO_MAX_DOMAINS];
	bool		any = euno_registry_expected(expected);
	bool		more = false;

	/*
	 * A machine that is full is not asked at once again, but gets what it can.
	 */
	if (refused != 0 &&
		euno_clock_ms() - refused >= euno_naptime * INT64CONST(1000))
		refused = 0;
	for (int d = 0; d < euno_ndomains; d++)
	{
		euno_arena_trim(arena, d, expected[d]);
		if (refused == 0 && !make_ready(arena, d, expected[d], &more))
			refused = euno_clock_ms();
	}
	return more ? 0 : any ? LOOK_INTERVAL : LONG_MAX;
}
