/*-------------------------------------------------------------------------
 *
 * coroutines.h
 *	  Logical threads that take turns at a schedule's word.
 *
 * Up to MAX_COROUTINES of them run in one thread of the system.  Before each
 * access of core to shared memory the schedule decides who makes the next one,
 * and memory.h what it sees.  The same schedule gives the same run, access by
 * access.
 *
 *-------------------------------------------------------------------------
 */
#ifndef COROUTINES_H
#define COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/euno_shared.h"

#define MAX_COROUTINES	4

/* Preemptions of an enumerated schedule; change points of priorities. */
#define MAX_POINTS		4

#define MAX_TRACE		8192

typedef enum ScheduleKind
{
	SCHEDULE_RANDOM = 'r',		/* from "seed": who and how often */
	SCHEDULE_PRIORITY = 'p',	/* PCT: from "seed", "npoints" changes within
								 * "length" steps (Burckhardt et al., 2010) */
	SCHEDULE_LIST = 'x'			/* "first" begins; the points are preemptions */
} ScheduleKind;

typedef struct SchedulePoint
{
	uint32_t	step;			/* from 1 */
	uint32_t	to;				/* the list's: who goes on */
} SchedulePoint;

typedef struct Schedule
{
	ScheduleKind kind;
	bool		weak;			/* memory is not sequentially consistent */
	uint64_t	seed;			/* of who, and of what weak memory shows */
	uint32_t	length;
	uint32_t	first;
	uint32_t	npoints;
	SchedulePoint points[MAX_POINTS];
} Schedule;

/* Text for EUNO_SCHEDULE, and back; false if it is none. */
extern void schedule_print(const Schedule *schedule, char *to, size_t size);
extern bool schedule_parse(Schedule *schedule, const char *from);

/*
 * Runs body(0) to body(n - 1).  NULL, or what was wrong: nobody can go on,
 * nobody comes to an end, or what coroutine_fail was called with.  *steps: the
 * number of accesses.
 */
extern const char *coroutines_run(const Schedule *schedule, uint32_t n,
								  void (*body) (uint32_t i), uint32_t *steps);

/* Who runs, from 0. */
extern uint32_t coroutine_current(void);

/*
 * Before an access to shared memory: others may have theirs.  Fails if the
 * address is one of memory that has been freed.
 */
extern void coroutine_access(EunoHookKind kind, const void *address,
							 size_t size);

/*
 * While set: at which steps of the last run might it matter that another
 * thread goes on, and which ones could?  A set of threads for each step; empty
 * where the access is to what only one thread uses, or nobody changes (by what
 * has been seen since memory_forget): to go on there instead of at the next
 * such step of the thread makes no difference.
 */
extern bool coroutine_trace;
extern uint8_t coroutine_others[MAX_TRACE];

/* Ends the run; for use within body. */
extern void coroutine_fail(const char *what) __attribute__((noreturn));

/* Lets the schedule decide, as an access of core would. */
extern void coroutine_step(void *word);

/* Lets others go on for a while: nothing to do but to look again. */
extern void coroutine_yield(void);

/* For EunoEnvironment: sleeps until woken, whatever the clock says. */
extern void coroutine_wait(uint32_t *word, uint32_t seen);
extern void coroutine_wake(uint32_t *word);

/* Set by the user: is this the address of memory that has been freed? */
extern bool (*coroutine_freed) (const void *address);

#endif							/* COROUTINES_H */
