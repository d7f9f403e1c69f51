/*-------------------------------------------------------------------------
 *
 * threads.h
 *	  Logical threads in virtual time.
 *
 * Each has a clock of its own, and all run in one thread of the system: the
 * one whose clock is behind goes on next.  A thread gives way only in
 * vthread_sync and vthread_sleep.
 *
 *-------------------------------------------------------------------------
 */
#ifndef THREADS_H
#define THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

typedef struct VThread
{
	Picoseconds clock;
	const void *sleeps;			/* on this word, until woken */
	bool		done;
	uint32_t	number;
	void	   *stack_pointer;
} VThread;

/* NULL outside of vthreads_run. */
extern VThread *vthread_current;

/* Runs body(0) to body(n - 1), n at most MAX_CORES. */
extern void vthreads_run(uint32_t n, void (*body) (uint32_t i));

/* Lets those go on whose clocks are more than "slack" behind the caller's. */
extern void vthread_sync(Picoseconds slack);

/* Sleeps until somebody wakes the word. */
extern void vthread_sleep(const void *word);

/* Wakes all who sleep on the word, not before the given time. */
extern void vthread_wake(const void *word, Picoseconds when);

#endif							/* THREADS_H */
