/*-------------------------------------------------------------------------
 *
 * euno_worker.h
 *	  The launcher and its workers: rebuilding what is absent, collecting what
 *	  is gone, upkeep of the trees, memory made ready for builds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_WORKER_H
#define EUNO_WORKER_H

#include "postgres.h"

#include "portability/instr_time.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#include "core/euno_core.h"
#include "mem/euno_registry.h"

/* Milliseconds by a clock that nobody sets. */
static inline int64
euno_clock_ms(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

/* How long the launcher sleeps between rounds, in seconds.  A setting. */
extern int	euno_naptime;

/* Rebuild absent trees in the background?  A setting. */
extern bool euno_auto_rebuild;

/* euno_launcher.c; in _PG_init. */
extern void euno_worker_define_settings(void);
extern void euno_worker_register(void);

/* euno_worker_stats.c. */
#define EUNO_WORKER_TRANCHE "EunoWorker"

typedef enum EunoWorkerAction
{
	EUNO_WORKER_CONTENDED,		/* leaves made contended */
	EUNO_WORKER_CALM,			/* and calm again */
	EUNO_WORKER_MERGE,			/* leaves merged into their neighbors */
	EUNO_WORKER_DIRECTORY,		/* copies of inner nodes made, or given up */
	EUNO_WORKER_COLLECT,		/* trees of dropped databases collected */
	EUNO_WORKER_MOVE,			/* leaves moved to the domains that use them */
	EUNO_WORKER_ACTIONS			/* how many there are */
} EunoWorkerAction;

typedef struct EunoWorkerStats
{
	int			pid;			/* 0: there is no launcher */
	TimestampTz started;
	uint64		rounds;
	TimestampTz last_round;
	uint64		last_round_us;	/* how long it took */
	int			hot_leaves;		/* in the last round */
	uint64		actions[EUNO_WORKER_ACTIONS];
	uint64		errors;
	TimestampTz last_error_at;
	char		last_error[256];
} EunoWorkerStats;

extern Size euno_worker_shmem_size(void);
extern void euno_worker_shmem_startup(void);
extern void euno_worker_stats_start(void);
extern void euno_worker_stats_add(const EunoWorkerStats *round);
extern void euno_worker_stats_error(const char *message);

/* euno_actions.c. */
extern void euno_actions_define_settings(void);
extern void euno_take_actions(void);

/* After an error: gives back what an action held. */
extern void euno_actions_abandon(void);

/* What the round under way has done so far; the launcher's own. */
extern EunoWorkerStats euno_worker_round;

/*
 * euno_ready.c: has memory ready for trees that are being built, and gives
 * back what they did not take.  Returns for how many milliseconds at most it
 * need not be called again.
 */
extern long euno_ready_step(void);

/* euno_maintain.c; the second in the launcher only. */
extern void euno_maintain_define_settings(void);
extern void euno_maintain_trees(void);

/*
 * EUNO_NO_MEMORY if some tree lacks a directory: it uses the first domain's.
 */
extern EunoStatus euno_fit_domains(void);

/*
 * euno_worker.c: opens an index and its table, with a lock of mode AccessShare
 * on both.  NULL, without waiting, if either is gone or locked.
 */
extern Relation euno_open_unless_locked(Oid index_oid, Relation *heap);

/* Shows in pg_stat_activity what the process is building. */
extern void euno_worker_report_build(Relation index);

extern PGDLLEXPORT void euno_launcher_main(Datum arg);
extern PGDLLEXPORT void euno_rebuild_main(Datum database);
extern PGDLLEXPORT void euno_build_main(Datum database);

#endif							/* EUNO_WORKER_H */
