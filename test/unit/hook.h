/*-------------------------------------------------------------------------
 *
 * hook.h
 *	  What happens at each access of core to shared memory, in builds with
 *	  EUNO_TEST_HOOK: others get their turn at the worst moments.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOOK_H
#define HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this such a build? */
extern bool hook_enabled(void);

/* Give way about once in so many accesses; 0 = never. */
extern uint32_t hook_yield_every;

/*
 * If set: when this word (in shared memory) is not 0, the next store makes it
 * 0 and stops the process, but a store to what is from hook_pins on.  A store to
 * a node means that it is locked, or not yet linked.
 */
extern uint32_t *hook_stop;
extern const void *hook_pins;
extern size_t hook_pins_size;

#endif							/* HOOK_H */
