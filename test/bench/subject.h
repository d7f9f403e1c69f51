/*-------------------------------------------------------------------------
 *
 * subject.h
 *	  What the benchmarks without a server measure: trees, the same trees
 *	  without synchronization, and a sorted array.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "env.h"

/* core/ compiled once more, with EUNO_ALONE (euno_shared.h). */
extern const EunoTreeOps alone_bptree_ops;
extern const EunoTreeOps alone_art_olc_ops;

/*
 * A sorted array with binary search.  It can be loaded and read once a cursor,
 * forward, within max_items; all keys are of one length.
 */
extern const EunoTreeOps array_ops;

/*
 * A published tree, congee (congee.c); NULL unless it was asked for.  Keys
 * of 8 bytes, for each one TID, the one that was inserted last: removing does
 * nothing.
 */
extern const EunoTreeOps congee_ops __attribute__((weak));

typedef struct Subject
{
	const char *name;
	const EunoTreeOps *ops;
	bool		alone;			/* for one thread only */
	bool		foreign;		/* with memory of its own */
	int			ndomains;
	EunoTree   *tree;
	EunoPool   *pools;			/* one a domain */
	EunoProcess process;		/* for a single thread */
	EunoContext cx;
} Subject;

/* The most domains that a subject may have. */
#define SUBJECT_DOMAINS	4

/*
 * What core asks of its surroundings.  Memory comes from the pools' caches
 * with nothing counted, as in the server: what all threads count together they
 * would wait for.
 */
extern const EunoEnvironment subject_env;

/* Ends the program. */
extern void die(const char *what) __attribute__((noreturn));

/* Once before all subjects: address space and places for this many threads. */
extern void subjects_begin(uint32_t threads);

/* With several domains, thread t is in domain t modulo their number. */
extern void subject_init(Subject *s, const char *name, const EunoTreeOps *ops,
						 int ndomains);
extern void subject_open(Subject *s);
extern void subject_close(Subject *s);

/* A context of a thread's own; "number" is below that of the threads. */
extern void thread_enter(const Subject *s, uint32_t number,
						 EunoProcess *process, EunoContext *cx);

/* Memory taken, in bytes. */
extern double subject_bytes(const Subject *s);

/* Loads n entries, which "entry" makes in ascending order. */
extern void subject_load(Subject *s, uint64_t n,
						 EunoEntry (*entry) (uint64_t i));

/* Seconds of this thread's processor time; the middle one of n numbers. */
extern double thread_seconds(void);
extern double median(double *values, uint32_t n);

#endif							/* SUBJECT_H */
