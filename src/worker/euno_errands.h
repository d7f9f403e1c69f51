/*-------------------------------------------------------------------------
 *
 * euno_errands.h
 *	  The launcher's workers.
 *
 * Of the launcher alone: nothing here is in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_ERRANDS_H
#define EUNO_ERRANDS_H

#include "postgres.h"

#include "nodes/pg_list.h"
#include "postmaster/bgworker.h"

/*
 * Plans to send a worker to a database; "survey": it notes all absent trees
 * first.
 */
extern void euno_errand_add(Oid database, bool survey);

/*
 * Plans errands to the databases that want trees, to all that have trees, and
 * to those whose worker was sent away, if they are still there.
 */
extern void euno_errands_to_wanting(void);
extern void euno_errands_to_all(void);
extern void euno_errands_to_unfinished(void);

/* Forgets workers that have ended. */
extern void euno_workers_reap(void);

/*
 * Starts as many as may be.  When no process could be had, it does nothing
 * until one of ours has been reaped or the other function is called.
 */
extern void euno_workers_start(void);
extern void euno_workers_try_again(void);

/* Ends or interrupts those that are in somebody's way. */
extern void euno_workers_watch(void);
extern bool euno_workers_any(void);

/* Sends all workers away for good.  For before_shmem_exit. */
extern void euno_workers_end(int code, Datum arg);

/* euno_launcher.c */
extern List *euno_list_databases(bool connectable_only);
extern void euno_fill_worker(BackgroundWorker *worker, const char *name,
							 const char *function);
extern void euno_worker_connect(Oid database, int lock_timeout);

#endif							/* EUNO_ERRANDS_H */
