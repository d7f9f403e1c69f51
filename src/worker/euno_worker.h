/*-------------------------------------------------------------------------
 *
 * euno_worker.h
 *	  Background processes: rebuilding after a start, collecting.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_WORKER_H
#define EUNO_WORKER_H

#include "postgres.h"

#include "core/euno_core.h"

/* How long the launcher sleeps between rounds, in seconds.  A setting. */
extern int	euno_naptime;

/* Rebuild absent trees in the background?  A setting. */
extern bool euno_auto_rebuild;

/* euno_launcher.c; in _PG_init. */
extern void euno_worker_define_settings(void);
extern void euno_worker_register(void);

/* euno_maintain.c; in the launcher, or in any backend. */
extern EunoStatus euno_maintain_trees(void);

extern PGDLLEXPORT void euno_launcher_main(Datum arg);
extern PGDLLEXPORT void euno_rebuild_main(Datum database);

#endif							/* EUNO_WORKER_H */
