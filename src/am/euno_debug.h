/*-------------------------------------------------------------------------
 *
 * euno_debug.h
 *	  Stop points and settings for the tests.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_DEBUG_H
#define EUNO_DEBUG_H

#include "postgres.h"

typedef enum EunoDebugCopies
{
	EUNO_COPIES_BY_USE,
	EUNO_COPIES_ALL,
	EUNO_COPIES_LAGGING			/* all, and nobody keeps them up to date */
} EunoDebugCopies;

extern char *euno_debug_stop;
extern int	euno_debug_copies;	/* EunoDebugCopies */
extern bool euno_debug_count_all;
extern void euno_debug_init(void);
extern void euno_debug_wait(const char *point);

/*
 * Never with any lock but heavyweight ones, and the key lock of a unique
 * check, held.  Inside an epoch (insert-aside) a stop keeps memory from being
 * given back, nothing else.
 */
#define EUNO_STOPS_ARE_SET() \
	unlikely(euno_debug_stop != NULL && euno_debug_stop[0] != '\0')

#define EUNO_STOP_POINT(name) \
	do { \
		if (EUNO_STOPS_ARE_SET()) \
			euno_debug_wait(name); \
	} while (0)

#endif							/* EUNO_DEBUG_H */
