/*-------------------------------------------------------------------------
 *
 * euno_build.h
 *	  What CREATE INDEX and rebuilds share: from the table to sorted entries,
 *	  and from these to a tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_BUILD_H
#define EUNO_BUILD_H

#include "commands/progress.h"
#include "pgstat.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/shm_toc.h"

#include "am/euno_am.h"

/* ---- euno_heapscan.c, euno_quietscan.c: our own looks at the heap ---- */

/* One entry per HOT chain. */
typedef void (*EunoHeapCallback) (void *arg, ItemPointer root,
								  Datum *values, bool *isnull);

/* The blocks of a table, handed out to the participants of a scan. */
typedef struct EunoHeapBlocks
{
	BlockNumber nblocks;		/* when the scan began */
	pg_atomic_uint64 next;		/* the first that nobody has taken */
} EunoHeapBlocks;

typedef struct EunoSort EunoSort;

extern void euno_heap_blocks_init(EunoHeapBlocks *blocks, Relation heap);

/*
 * Visits every root of the heap, a page at a time; of the blocks that nobody
 * else has taken, if "blocks" is not NULL.  Of the chains that some snapshot may
 * see, or if one is given, of those that it sees.  Expressions and predicate are
 * evaluated with the rights of the caller: see euno_rebuild.c.  Never waits
 * for a transaction.  Returns the number of heap tuples seen.
 */
extern double euno_heap_scan(Relation heap, IndexInfo *index_info,
							 Snapshot snapshot, EunoHeapBlocks *blocks,
							 bool progress,
							 EunoHeapCallback callback, void *arg);

/*
 * May CREATE INDEX scan the table with the function below?  It must be a heap
 * that nobody else writes to: not for CREATE INDEX CONCURRENTLY.
 */
extern bool euno_heap_is_quiet(Relation heap, IndexInfo *index_info);

/* Does what table_index_build_scan does, with euno_sort_add_tuple. */
extern double euno_heap_quiet_scan(Relation heap, Relation index,
								   IndexInfo *index_info,
								   EunoHeapBlocks *blocks, bool progress,
								   EunoSort *sort);

/* ---- euno_sort*.c: entries in key order ---- */

/* What the participants in a parallel sort share; the leader is number 0. */
typedef struct EunoSortShare
{
	SharedFileSet *files;
	int			participant;
} EunoSortShare;

/*
 * Memory, up to work_mem_kb, is the sort's own, or borrowed from the arena
 * until its memory context is reset.  Temporary files are its own, too; but a
 * participant in a parallel sort, which has a share, puts its runs into the
 * file set of all.  The schema must stay.  "heap": how much there may be.
 */
extern EunoSort *euno_sort_begin(Relation heap, const EunoKeySchema *schema,
								 int work_mem_kb, EunoSortShare *share);

/* Adds an entry; an IndexBuildCallback, whose last argument is the sort. */
extern void euno_sort_add_tuple(Relation index, ItemPointer tid,
								Datum *values, bool *isnull, bool alive,
								void *sort);

/* Adds an entry; an EunoHeapCallback, whose first argument is the sort. */
extern void euno_sort_add_root(void *sort, ItemPointer root, Datum *values,
							   bool *isnull);

/*
 * The leader, when it has added its part: sorts that while others sort theirs.
 */
extern void euno_sort_own(EunoSort *sort);

/* A worker's end: how many sorted runs it leaves to the leader. */
extern int	euno_sort_export(EunoSort *sort);

/* The leader, before euno_sort_perform: take a worker's runs over. */
extern void euno_sort_import(EunoSort *sort, int participant, int nruns);

/* Ends adding.  May be interrupted. */
extern void euno_sort_perform(EunoSort *sort);

/* The next entry in order; its bytes are valid until the next call. */
extern bool euno_sort_next(EunoSort *sort, EunoEntry *entry);
extern void euno_sort_end(EunoSort *sort);

/*
 * Before it is performed: about how many bytes a tree of it will take.  All
 * that was added; half of that if it came in order, as dense numbers do.
 */
extern uint64 euno_sort_bytes(const EunoSort *sort);

/* Afterwards: how many entries are left. */
extern uint64 euno_sort_left(const EunoSort *sort);

/* ---- euno_parallel.c ---- */

typedef struct EunoParallelBuild EunoParallelBuild;

/* How many workers a build may have: PostgreSQL's rules for btree. */
extern int	euno_parallel_workers(Relation heap, Relation index,
								  IndexInfo *index_info);

/*
 * Starts workers, which scan the heap: as euno_heap_is_quiet says, or (rebuild)
 * with euno_heap_scan, and a snapshot that is active and registered.  NULL if no
 * worker could be had.
 */
extern EunoParallelBuild *euno_parallel_begin(Relation heap, Relation index,
											  IndexInfo *index_info,
											  int nworkers, bool rebuild);

/*
 * Does what the workers leave of the scan, and waits for them.  The sort holds
 * all entries then, to be performed and read, and ended before
 * euno_parallel_end.
 */
extern EunoSort *euno_parallel_scan(EunoParallelBuild *build, Relation heap,
									Relation index, IndexInfo *index_info,
									const EunoKeySchema *schema,
									double *heap_tuples);
extern void euno_parallel_end(EunoParallelBuild *build);

/* A worker's main function. */
extern PGDLLEXPORT void euno_parallel_build_main(dsm_segment *seg, shm_toc *toc);

/* ---- euno_load.c: sorted entries become a tree ---- */

/*
 * Sorts the entries, all of which have been added, and loads the tree that
 * this process has started to build; the build lock is held.  Ends the sort,
 * and the parallel build, if there is one.  Returns how many entries there
 * were.
 */
extern int64 euno_load_sort(EunoIndex *idx, Relation index,
							EunoTreeSlot *slot, EunoSort *sort,
							EunoParallelBuild *parallel);

/*
 * For pg_stat_progress_create_index.  Where a command of another kind shows its
 * own progress, and builds on its way, nothing is shown.
 */
static inline void
euno_build_progress(int param, int64 value)
{
	if (MyBEEntry != NULL &&
		MyBEEntry->st_progress_command == PROGRESS_COMMAND_CREATE_INDEX)
		pgstat_progress_update_param(param, value);
}

/* Then: adds what others have written meanwhile, and makes the tree READY. */
extern void euno_load_finish(EunoIndex *idx, Relation index,
							 EunoTreeSlot *slot);

#endif							/* EUNO_BUILD_H */
