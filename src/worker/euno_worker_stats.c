/*-------------------------------------------------------------------------
 *
 * euno_worker_stats.c
 *	  What the launcher has done, for everybody to see.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "mem/euno_registry.h"
#include "worker/euno_worker.h"

#define WORKER_COLUMNS 15

/* Written by the launcher, errors by those who rebuild, too. */
typedef struct SharedStats
{
	LWLock	   *lock;
	EunoWorkerStats stats;
} SharedStats;

static SharedStats *shared;

Size
euno_worker_shmem_size(void)
{
	return sizeof(SharedStats);
}

void
euno_worker_shmem_startup(void)
{
	shared = euno_shmem_alloc("euno worker", sizeof(SharedStats));
	shared->lock = &GetNamedLWLockTranche(EUNO_WORKER_TRANCHE)->lock;
}

static void
worker_exit(int code, Datum arg)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->stats.pid = 0;
	LWLockRelease(shared->lock);
}

/* The counters of a launcher that was there before are kept. */
void
euno_worker_stats_start(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->stats.pid = MyProcPid;
	shared->stats.started = GetCurrentTimestamp();
	LWLockRelease(shared->lock);
	on_shmem_exit(worker_exit, 0);
}

/* Adds what a round has done. */
void
euno_worker_stats_add(const EunoWorkerStats *round)
{
	EunoWorkerStats *stats = &shared->stats;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	stats->rounds++;
	stats->last_round = round->last_round;
	stats->last_round_us = round->last_round_us;
	stats->hot_leaves = round->hot_leaves;
	for (int i = 0; i < EUNO_WORKER_ACTIONS; i++)
		stats->actions[i] += round->actions[i];
	LWLockRelease(shared->lock);
}

void
euno_worker_stats_error(const char *message)
{
	EunoWorkerStats *stats = &shared->stats;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	stats->errors++;
	stats->last_error_at = GetCurrentTimestamp();
	strlcpy(stats->last_error, message, sizeof(stats->last_error));
	LWLockRelease(shared->lock);
}

/*
 * What another process has left, perhaps cut in the middle of a character, or
 * in the encoding of another database, for this one.
 */
static Datum
text_for_everybody(char *message)
{
	if (!pg_verifymbstr(message, (int) strlen(message), true))
	{
		for (char *p = message; *p != '\0'; p++)
		{
			if (IS_HIGHBIT_SET(*p))
				*p = '?';
		}
	}
	return CStringGetTextDatum(message);
}

/* One row.  The text of an error is for those who may see what others do. */
PG_FUNCTION_INFO_V1(euno_stat_get_worker);
Datum
euno_stat_get_worker(PG_FUNCTION_ARGS)
{
	EunoWorkerStats stats = {0};
	TupleDesc	tupdesc;
	Datum		values[WORKER_COLUMNS];
	bool		nulls[WORKER_COLUMNS] = {0};
	int			n = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (euno_preloaded)
	{
		LWLockAcquire(shared->lock, LW_SHARED);
		stats = shared->stats;
		LWLockRelease(shared->lock);
	}
	nulls[n] = nulls[n + 1] = stats.pid == 0;
	values[n++] = Int32GetDatum(stats.pid);
	values[n++] = TimestampTzGetDatum(stats.started);
	values[n++] = Int64GetDatum((int64) stats.rounds);
	nulls[n] = nulls[n + 1] = stats.rounds == 0;
	values[n++] = TimestampTzGetDatum(stats.last_round);
	values[n++] = Float8GetDatum(stats.last_round_us / 1000.0);
	values[n++] = Int32GetDatum(stats.hot_leaves);
	for (int i = 0; i < EUNO_WORKER_ACTIONS; i++)
		values[n++] = Int64GetDatum((int64) stats.actions[i]);
	values[n++] = Int64GetDatum((int64) stats.errors);
	nulls[n] = stats.errors == 0 ||
		!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	values[n++] = text_for_everybody(stats.last_error);
	nulls[n] = stats.errors == 0;
	values[n++] = TimestampTzGetDatum(stats.last_error_at);
	Assert(n == WORKER_COLUMNS);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
