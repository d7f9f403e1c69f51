/*-------------------------------------------------------------------------
 *
 * hook.c
 *	  What happens at each access of core to shared memory, in builds with
 *	  EUNO_TEST_HOOK.
 *
 *-------------------------------------------------------------------------
 */
#include <sched.h>
#include <signal.h>

#include "core/euno_shared.h"
#include "hook.h"

uint32_t	hook_yield_every;
uint32_t   *hook_stop;
const void *hook_pins;
size_t		hook_pins_size;

bool
hook_enabled(void)
{
#ifdef EUNO_TEST_HOOK
	return true;
#else
	return false;
#endif
}

#ifdef EUNO_TEST_HOOK
void
euno_test_hook(EunoHookKind kind, const void *address, size_t size)
{
	static __thread uint32_t state;

	if (hook_yield_every > 0)
	{
		if (state == 0)
			state = (uint32_t) (uintptr_t) &state | 1;
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		if (state % hook_yield_every == 0)
			sched_yield();
	}
	if (hook_stop != NULL && kind == EUNO_HOOK_STORE &&
		(uintptr_t) address - (uintptr_t) hook_pins >= hook_pins_size &&
		__atomic_load_n(hook_stop, __ATOMIC_RELAXED) != 0)
	{
		__atomic_store_n(hook_stop, 0, __ATOMIC_RELAXED);
		raise(SIGSTOP);
	}
	(void) size;
}
#endif
