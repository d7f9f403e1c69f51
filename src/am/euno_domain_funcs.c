/*-------------------------------------------------------------------------
 *
 * euno_domain_funcs.c
 *	  SQL functions: domains, and where an index's memory is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "access/genam.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_domains.h"
#include "mem/euno_numa.h"
#include "worker/euno_worker.h"

/*
 * Divides the CPUs anew.  Trees with replicate = on get their directories now.
 */
PG_FUNCTION_INFO_V1(euno_set_domains);
Datum
euno_set_domains(PG_FUNCTION_ARGS)
{
	int			n;

	if (!euno_preloaded)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg(EUNO_NOT_LOADED), errhint(EUNO_NOT_LOADED_HINT)));
	n = euno_domains_change(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	if (euno_fit_domains() != EUNO_OK)
		ereport(WARNING,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("not enough memory to give every euno index inner nodes of its own in the new domains"),
				 errdetail("Indexes that lack one use the first domain's.")));
	PG_RETURN_INT32(n);
}

/* What all trees together have in a domain. */
typedef struct DomainTotals
{
	uint64		bytes;
	uint64		lag;			/* leaves that its directories may not know */
	uint64		copies;			/* trees of which it has inner nodes of its own;
								 * the first domain's are no copies */
	uint64		copy_bytes;
} DomainTotals;

static void
domain_totals(int domain, DomainTotals *totals)
{
	EunoContext cx = {.process = euno_process(), .env = &euno_environment,
	.domain = domain};

	memset(totals, 0, sizeof(*totals));
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);
		EunoTreeStats stats;

		totals->bytes += euno_pool_bytes(&slot->pools[domain]);
		euno_epoch_enter(cx.process);
		memset(&stats, 0, sizeof(stats));
		if (euno_tree_state(slot) == EUNO_STATE_READY)
			slot->ops->stats(&cx, &slot->tree, &stats);
		euno_epoch_exit(cx.process);
		if ((stats.domains >> domain & 1) == 0)
			continue;
		totals->lag += stats.lag;
		if (domain == 0)
			continue;
		totals->copies++;
		totals->copy_bytes += stats.inner_bytes;
	}
}

PG_FUNCTION_INFO_V1(euno_stat_get_domains);
Datum
euno_stat_get_domains(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	EunoDomainStats domain;

	InitMaterializedSRF(fcinfo, 0);
	if (!euno_preloaded)
		return (Datum) 0;
	for (int d = 0; euno_domains_describe(d, &domain); d++)
	{
		Datum		values[11];
		bool		nulls[11] = {0};
		DomainTotals totals;

		domain_totals(d, &totals);
		values[0] = Int32GetDatum(d);
		values[1] = CStringGetTextDatum(domain.cpus);
		values[2] = Int32GetDatum(domain.node);
		nulls[2] = domain.node < 0;
		values[3] = Int64GetDatum(totals.bytes);
		values[4] = Int64GetDatum(totals.lag);
		values[5] = Int64GetDatum(domain.descents);
		values[6] = Int64GetDatum(domain.remote);
		values[7] = Int64GetDatum(domain.inner_nodes);
		values[8] = Int64GetDatum(domain.remote_inner_nodes);
		values[9] = Int64GetDatum(totals.copies);
		values[10] = Int64GetDatum(totals.copy_bytes);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

#if HAVE_NUMA
/* Linux 5.14; older C libraries do not know it. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/*
 * Has this process know an extent's pages, as move_pages asks.  The extent may
 * be given back meanwhile, and the machine have no memory for it any more: then
 * to read it would end the process.
 */
static void
map_pages(void *extent, size_t page)
{
	if (madvise(extent, EUNO_EXTENT_SIZE, MADV_POPULATE_READ) == 0 ||
		errno != EINVAL)
		return;
	for (size_t i = 0; i < EUNO_EXTENT_SIZE; i += page)
		(void) *((volatile char *) extent + i);
}

/* Adds the pages of a pool by the node they are on. */
static void
count_pages(EunoPool *pool, uint64 *pages, int max_node)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);
	uint32		max = (uint32) (euno_pool_bytes(pool) / EUNO_EXTENT_SIZE) + 64;
	void	  **extents = palloc(sizeof(void *) * max);
	uint32		n = euno_pool_extents(pool, extents, max);
	uint32		per_extent = (uint32) (EUNO_EXTENT_SIZE / page);
	void	  **addresses = palloc(sizeof(void *) * per_extent);
	int		   *status = palloc(sizeof(int) * per_extent);

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		map_pages(extents[i], page);
		for (uint32 p = 0; p < per_extent; p++)
			addresses[p] = (char *) extents[i] + p * page;
		if (move_pages(0, per_extent, addresses, NULL, status, 0) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("could not determine the NUMA nodes of memory pages: %m")));
		for (uint32 p = 0; p < per_extent; p++)
		{
			if (status[p] >= 0 && status[p] <= max_node)
				pages[status[p]]++;
		}
	}
	pfree(extents);
	pfree(addresses);
	pfree(status);
}
#endif

/*
 * One row for each domain and node that has pages of an index.  No right to
 * the table is needed: it says how much memory there is, and not what is in
 * it.
 */
PG_FUNCTION_INFO_V1(euno_numa_pages);
Datum
euno_numa_pages(PG_FUNCTION_ARGS)
{
#if HAVE_NUMA
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	index = euno_open_index_by_oid(PG_GETARG_OID(0), AccessShareLock);
	EunoIndex  *idx = NULL;
	EunoContext *cx;
	int			max_node;

	InitMaterializedSRF(fcinfo, 0);
	if (numa_available() < 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("NUMA is not supported on this system")));
	max_node = numa_max_node();
	if (euno_preloaded)
	{
		idx = euno_index_open(index);
		if (euno_index_hold(idx, &cx) != EUNO_STATE_READY)
			idx = NULL;
	}
	for (int d = 0; idx != NULL && d < euno_ndomains; d++)
	{
		uint64	   *pages = palloc0(sizeof(uint64) * (max_node + 1));

		EUNO_STOP_POINT("numa-pages");
		count_pages(&idx->slot->pools[d], pages, max_node);
		for (int node = 0; node <= max_node; node++)
		{
			Datum		values[4];
			bool		nulls[4] = {0};

			if (pages[node] == 0)
				continue;
			values[0] = Int32GetDatum(d);
			values[1] = Int32GetDatum(node);
			values[2] = Int64GetDatum(pages[node]);
			values[3] = Int64GetDatum(pages[node] * sysconf(_SC_PAGESIZE));
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
								 nulls);
		}
	}
	if (idx != NULL)
		euno_index_unhold(idx);
	index_close(index, AccessShareLock);
	return (Datum) 0;
#else
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("euno_index was built without libnuma")));
#endif
}
