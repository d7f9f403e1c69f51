/*-------------------------------------------------------------------------
 *
 * euno_parallel.c
 *	  CREATE INDEX, and rebuilds, with workers.
 *
 * Leader and workers share a scan of the heap; each sorts what it gets.  The
 * workers leave sorted runs, the leader merges them with its own and loads the
 * tree.  The rules for how many workers, and the locks they take in CREATE
 * INDEX, are those of btree builds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/euno_build.h"
#include "am/euno_debug.h"

#define KEY_SHARED		UINT64CONST(0xE000000000000001)
#define KEY_SCAN		UINT64CONST(0xE000000000000002)
#define KEY_QUERY		UINT64CONST(0xE000000000000003)

/* What one worker found; read after it has ended. */
typedef struct WorkerResult
{
	int			nruns;
	double		heap_tuples;
	bool		broken_hot_chain;
	BufferUsage buffers;
	WalUsage	wal;
} WorkerResult;

typedef struct BuildShared
{
	Oid			heap;
	Oid			index;
	bool		rebuild;
	bool		own_scan;		/* shares "blocks"; else a table scan */
	bool		concurrent;
	int			participants;	/* the leader too */
	EunoHeapBlocks blocks;
	SharedFileSet files;
	WorkerResult results[FLEXIBLE_ARRAY_MEMBER];	/* by ParallelWorkerNumber */
} BuildShared;

struct EunoParallelBuild
{
	ParallelContext *pcxt;
	BuildShared *shared;
	Snapshot	snapshot;		/* of CREATE INDEX's scan */
	EunoSortShare share;
};

int
euno_parallel_workers(Relation heap, Relation index, IndexInfo *index_info)
{
	/* 17 and later have asked already; before, only btree is asked about. */
	if (index_info->ii_ParallelWorkers > 0)
		return index_info->ii_ParallelWorkers;
	if (!IsNormalProcessingMode() || IsInParallelMode() ||
		RelationUsesLocalBuffers(heap))
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap),
									 RelationGetRelid(index));
}

/* Reserve the shared memory and fill it. */
static BuildShared *
set_up_shared(ParallelContext *pcxt, Relation heap, Relation index,
			  bool rebuild, bool own_scan, bool concurrent, Snapshot snapshot)
{
	int			participants = pcxt->nworkers + 1;
	Size		shared_size = offsetof(BuildShared, results) +
		pcxt->nworkers * sizeof(WorkerResult);
	Size		scan_size = own_scan ? 0 :
		table_parallelscan_estimate(heap, snapshot);
	Size		query_size = debug_query_string ? strlen(debug_query_string) + 1 : 1;
	BuildShared *shared;
	ParallelTableScanDesc scan;
	char	   *query;

	shm_toc_estimate_chunk(&pcxt->estimator, shared_size);
	shm_toc_estimate_chunk(&pcxt->estimator, scan_size);
	shm_toc_estimate_chunk(&pcxt->estimator, query_size);
	shm_toc_estimate_keys(&pcxt->estimator, 3);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
		return NULL;

	shared = shm_toc_allocate(pcxt->toc, shared_size);
	memset(shared, 0, shared_size);
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->rebuild = rebuild;
	shared->concurrent = concurrent;
	shared->own_scan = own_scan;
	if (own_scan)
		euno_heap_blocks_init(&shared->blocks, heap);
	shared->participants = participants;
	SharedFileSetInit(&shared->files, pcxt->seg);
	shm_toc_insert(pcxt->toc, KEY_SHARED, shared);

	if (!own_scan)
	{
		scan = shm_toc_allocate(pcxt->toc, scan_size);
		table_parallelscan_initialize(heap, scan, snapshot);
		shm_toc_insert(pcxt->toc, KEY_SCAN, scan);
	}

	query = shm_toc_allocate(pcxt->toc, query_size);
	strlcpy(query, debug_query_string ? debug_query_string : "", query_size);
	shm_toc_insert(pcxt->toc, KEY_QUERY, query);
	return shared;
}

/* A participant's part of the scan, into its sort. */
static double
scan_part(Relation heap, Relation index, IndexInfo *index_info,
		  BuildShared *shared, shm_toc *toc, bool progress, EunoSort *sort)
{
	ParallelTableScanDesc scan;

	if (shared->rebuild)
		return euno_heap_scan(heap, index_info, NULL, &shared->blocks,
							  progress, euno_sort_add_root, sort);
	if (shared->own_scan)
		return euno_heap_quiet_scan(heap, index, index_info, &shared->blocks,
									progress, sort);
	scan = shm_toc_lookup(toc, KEY_SCAN, false);
	return table_index_build_scan(heap, index, index_info, true, progress,
								  euno_sort_add_tuple, sort,
								  euno_beginscan_parallel(heap, scan));
}

EunoParallelBuild *
euno_parallel_begin(Relation heap, Relation index, IndexInfo *index_info,
					int nworkers, bool rebuild)
{
	EunoParallelBuild *build = palloc0(sizeof(EunoParallelBuild));

	EnterParallelMode();
	build->pcxt = CreateParallelContext("euno_index",
										"euno_parallel_build_main", nworkers);
	build->snapshot = index_info->ii_Concurrent && !rebuild ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	build->shared = set_up_shared(build->pcxt, heap, index, rebuild,
								  rebuild || euno_heap_is_quiet(heap, index_info),
								  index_info->ii_Concurrent, build->snapshot);
	if (build->shared != NULL)
		LaunchParallelWorkers(build->pcxt);
	if (build->shared == NULL || build->pcxt->nworkers_launched == 0)
	{
		euno_parallel_end(build);
		return NULL;
	}
	return build;
}

EunoSort *
euno_parallel_scan(EunoParallelBuild *build, Relation heap, Relation index,
				   IndexInfo *index_info, const EunoKeySchema *schema,
				   double *heap_tuples)
{
	ParallelContext *pcxt = build->pcxt;
	BuildShared *shared = build->shared;
	EunoSort   *sort;

	build->share.files = &shared->files;
	build->share.participant = 0;
	sort = euno_sort_begin(heap, schema,
						   maintenance_work_mem / shared->participants,
						   &build->share);
	EUNO_STOP_POINT("build-leader");
	*heap_tuples = scan_part(heap, index, index_info, shared, pcxt->toc, true,
							 sort);

	euno_sort_own(sort);

	/* An error in a worker is raised here. */
	WaitForParallelWorkersToAttach(pcxt);
	WaitForParallelWorkersToFinish(pcxt);
	for (int i = 0; i < pcxt->nworkers_launched; i++)
	{
		WorkerResult *result = &shared->results[i];

		*heap_tuples += result->heap_tuples;
		index_info->ii_BrokenHotChain |= result->broken_hot_chain;
		InstrAccumParallelQuery(&result->buffers, &result->wal);
		euno_sort_import(sort, i + 1, result->nruns);
	}
	return sort;
}

void
euno_parallel_end(EunoParallelBuild *build)
{
	WaitForParallelWorkersToFinish(build->pcxt);
	if (IsMVCCSnapshot(build->snapshot))
		UnregisterSnapshot(build->snapshot);
	DestroyParallelContext(build->pcxt);
	ExitParallelMode();
	pfree(build);
}

/*
 * A worker.  Our locks do not conflict with the leader's: one lock group.
 */
void
euno_parallel_build_main(dsm_segment *seg, shm_toc *toc)
{
	BuildShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WorkerResult *result = &shared->results[ParallelWorkerNumber];
	LOCKMODE	heap_lock = shared->rebuild ? AccessShareLock :
		shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->rebuild ? AccessShareLock :
		shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	EunoSortShare share;
	Relation	heap;
	Relation	index;
	IndexInfo  *index_info;
	EunoSort   *sort;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	index_info = BuildIndexInfo(index);
	index_info->ii_Concurrent = shared->concurrent;

	SharedFileSetAttach(&shared->files, seg);
	share.files = &shared->files;
	share.participant = ParallelWorkerNumber + 1;

	InstrStartParallelQuery();
	sort = euno_sort_begin(heap, euno_key_schema(index, CurrentMemoryContext),
						   maintenance_work_mem / shared->participants, &share);
	result->heap_tuples = scan_part(heap, index, index_info, shared, toc,
									false, sort);
	result->nruns = euno_sort_export(sort);
	result->broken_hot_chain = index_info->ii_BrokenHotChain;
	euno_sort_end(sort);
	InstrEndParallelQuery(&result->buffers, &result->wal);

	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
