/*-------------------------------------------------------------------------
 *
 * euno_barrier.c
 *	  A full barrier in all processes at once (see euno_barrier.h).
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <unistd.h>
#if defined(__linux__) && __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif

#include "core/euno_barrier.h"

bool		euno_barrier_joined = false;

/*
 * The expedited kind: it interrupts those processors that run a process which
 * has joined, and takes microseconds.
 */
#if defined(EUNO_TEST_MODEL)
#define JOIN	0
#define BARRIER	1

static bool
membarrier(int command)
{
	if (command == BARRIER)
		euno_model_fence_all();
	return true;
}
#elif defined(SYS_membarrier)
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
euno_barrier_join(EunoBarriers *barriers)
{
	/* A fork may have copied this. */
	euno_barrier_joined = false;

	/* The first one also tries the barrier: some sandboxes know half of it. */
	if (!membarrier(JOIN) ||
		(euno_load64(&barriers->joined) == 0 && !membarrier(BARRIER)))
		return;
	(void) euno_exchange64_full(&barriers->joined, 1);
	euno_fence_after_rmw();
	euno_barrier_joined = true;
}

bool
euno_barrier_all(EunoBarriers *barriers)
{
	(void) euno_add64_full(&barriers->asked, 1);
	euno_fence_after_rmw();
	return euno_load64(&barriers->joined) == 0 || membarrier(BARRIER);
}
