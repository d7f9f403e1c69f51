/*-------------------------------------------------------------------------
 *
 * lines.h
 *	  Writes to cache lines, and how many of these lines another thread has
 *	  written last: each of those is a transfer between caches, if the threads
 *	  have a core each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Lines
{
	uint64_t	written;		/* lines, by all stores and updates */
	uint64_t	taken;			/* of these, from another writer */
} Lines;

/* Of this thread, which has a number below 255; zero until it has one. */
extern _Thread_local Lines lines;
extern void lines_enter(uint32_t thread);

/* Is this a build that counts (EUNO_TEST_HOOK)? */
extern bool lines_counted(void);

#endif							/* LINES_H */
