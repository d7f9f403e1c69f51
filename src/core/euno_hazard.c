/*-------------------------------------------------------------------------
 *
 * euno_hazard.c
 *	  A full barrier in all processes at once (see euno_hazard.h).
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <unistd.h>
#if defined(__linux__) && __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif

#include "core/euno_hazard.h"

bool		euno_hazard_joined = false;

/*
 * The expedited kind: it interrupts those processors that run a process which
 * has joined, and takes microseconds.
 */
#ifdef SYS_membarrier
#define JOIN	MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
#define BARRIER	MEMBARRIER_CMD_GLOBAL_EXPEDITED

static bool
membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}
#else
#define JOIN	0
#define BARRIER	0

static bool
membarrier(int command)
{
	errno = ENOSYS;
	return command < 0;
}
#endif

void
euno_hazard_join(EunoEpochs *epochs)
{
	/* A fork may have copied this. */
	euno_hazard_joined = false;

	/* The first one also tries the barrier: some sandboxes know half of it. */
	if (!membarrier(JOIN) ||
		(euno_load64(&epochs->joined) == 0 && !membarrier(BARRIER)))
		return;
	(void) euno_exchange64_full(&epochs->joined, 1);
	euno_fence_after_rmw();
	euno_hazard_joined = true;
}

bool
euno_hazard_barrier(EunoEpochs *epochs)
{
	(void) euno_add64_full(&epochs->barriers, 1);
	euno_fence_after_rmw();
	return euno_load64(&epochs->joined) == 0 || membarrier(BARRIER);
}
