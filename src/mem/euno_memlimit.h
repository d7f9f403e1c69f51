/*-------------------------------------------------------------------------
 *
 * euno_memlimit.h
 *	  What the control groups that we run in have left of their memory.
 *
 * A control group that is full does not refuse memory, it kills a process; and
 * the death of a server process is the crash of all.  So we look before we
 * take.  No PostgreSQL header.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_MEMLIMIT_H
#define EUNO_MEMLIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the groups of this process, once, before forking.  Returns the lowest
 * limit in bytes, UINT64_MAX if there is none.
 */
extern uint64_t euno_memlimit_init(void);

/*
 * Can this many bytes be taken, with some to spare?  Two small files to read of
 * each group that has a limit, a third one where little is left.
 */
extern bool euno_memlimit_allows(uint64_t bytes);

#endif							/* EUNO_MEMLIMIT_H */
