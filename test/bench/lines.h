/*-------------------------------------------------------------------------
 *
 * lines.h
 *	  Threads of a program's own, and the cache lines that they write: how many,
 *	  and how many of these another thread has written last.  Each of those is a
 *	  transfer between caches, if the threads have a core each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LINES_H
#define LINES_H

#include "core/euno_core.h"

typedef struct Lines
{
	uint64_t	written;		/* lines, by all stores and updates */
	uint64_t	taken;			/* of these, from another writer */
} Lines;

/*
 * Is this a build that counts (EUNO_TEST_HOOK)?  The rest is for these only.
 */
extern bool lines_counted(void);

/* For contexts of such threads: who waits lets others go on. */
extern EunoEnvironment lines_env;

/* Makes a thread, which will begin with body(arg). */
extern void lines_thread(void *(*body) (void *arg), void *arg);

/* Has threads go on for so many turns, or until all have ended if 0. */
extern void lines_run(uint64_t turns);

/* Ends a thread's turn. */
extern void lines_turn(void);

/* What all threads have written since the last call. */
extern Lines lines_sum(void);

#endif							/* LINES_H */
