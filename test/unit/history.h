/*-------------------------------------------------------------------------
 *
 * history.h
 *	  Is what some threads saw what a set would have shown them?
 *
 * A history is linearizable if each operation can be given a moment between
 * its call and its return, such that the operations in the order of these
 * moments do to a set of up to 63 entries what was seen.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bit i: entry i is in the set.  The last bit is the guard word. */
typedef uint64_t Set;

#define MAX_OPERATIONS	64

typedef struct Operation
{
	const char *what;
	uint32_t	thread;
	uint32_t	call;			/* by one clock for all */
	uint32_t	ret;
	Set			mask;			/* these entries ... */
	Set			seen;			/* ... were so, */
	Set			set;			/* then these became members */
	Set			clear;			/* and these no members */
} Operation;

typedef struct History
{
	uint32_t	clock;
	uint32_t	n;
	bool		too_long;
	Operation	operations[MAX_OPERATIONS];
} History;

extern void history_init(History *history);
extern void history_add(History *history, const Operation *operation);

/* Can it be?  Starting from this set. */
extern bool history_check(const History *history, Set start);

/* The same if what reads saw of each entry may have its own moment. */
extern bool history_check_entries(const History *history, Set start);

extern void history_print(const History *history, Set start);

#endif							/* HISTORY_H */
