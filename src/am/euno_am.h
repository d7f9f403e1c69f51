/*-------------------------------------------------------------------------
 *
 * euno_am.h
 *	  The access method: its functions, and what they know of an index.
 *
 * am/ knows PostgreSQL and no node layout: it reaches a tree only through
 * EunoTreeSlot.ops.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_AM_H
#define EUNO_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/relcache.h"

#include "euno_compat.h"
#include "key/euno_key.h"
#include "mem/euno_registry.h"

/* ---- euno_options.c: storage parameters ---- */

/* What an index asks for. */
typedef enum EunoStructure
{
	EUNO_STRUCTURE_BPTREE,
	EUNO_STRUCTURE_ART,
	EUNO_STRUCTURE_AUTO			/* decided when the tree is built */
} EunoStructure;

typedef enum EunoSync
{
	EUNO_SYNC_UNSET,			/* as OLC */
	EUNO_SYNC_OLC,
	EUNO_SYNC_ROWEX
} EunoSync;

typedef struct EunoOptions
{
	int32		vl_len_;		/* varlena header, do not touch */
	int			fillfactor;		/* percent, 50 to 100 */
	EunoStructure structure;
	EunoSync	sync;
	EunoReplicate replicate;
} EunoOptions;

#define EUNO_DEFAULT_FILLFACTOR 90
#define EUNO_MIN_FILLFACTOR 50

extern void euno_options_init(void);
extern bytea *eunooptions(Datum reloptions, bool validate);
extern const EunoOptions *euno_options(Relation index);

/* Is each domain to have inner nodes of its own?  Tests may say so, too. */
extern EunoReplicate euno_replicate(Relation index);

/*
 * CREATE INDEX, REINDEX, ALTER INDEX: ERROR if what is asked for cannot be
 * had.
 */
extern void euno_options_check(Relation index);

/* ---- euno_index.c: what a backend knows of an index ---- */

typedef struct EunoIndex
{
	Oid			oid;
	EunoTreeKey key;
	bool		other_temp;		/* of another session's temporary table */
	bool		varies;			/* keys may depend on settings or definitions */
	EunoKeySchema *schema;
	EunoOrder	order;
	EunoReplicate replicate;
	EunoTreeSlot *slot;			/* valid while generation is the slot's */
	uint64		generation;
	uint64		inserts;		/* not yet added to the slot's */
	uint64		upkeep;			/* descents that are not to be counted there */
	EunoContext cx;
	struct EunoScan *kept_scan; /* one that has ended, or NULL */
	bool		used;			/* in this transaction: next_used is set */
	struct EunoIndex *next_used;
	bool		outdated;		/* no scan is kept any more */
	struct EunoIndex *next_outdated;
	MemoryContext context;		/* holds this struct and all it points to */
} EunoIndex;

/*
 * The backend's view of an open index.  After a relcache invalidation there is
 * a new one; the old one stays until the end of the transaction.
 */
extern EunoIndex *euno_index_open(Relation index);

/*
 * The backend's view of an index that it has opened before and that has not
 * changed since, without the relation; else NULL.
 */
extern EunoIndex *euno_index_known(Oid index_oid);

/* At the end of a transaction: what was known of indexes that have changed. */
extern void euno_index_free_outdated(void);

extern void euno_index_init(void);	/* once per backend */

/* Is this access method euno?  The server's own need not be asked. */
extern bool euno_is_our_method(Oid method);

/* ---- the access method's functions ---- */

extern IndexBuildResult *eunobuild(Relation heap, Relation index,
								   IndexInfo *index_info);
extern void eunobuildempty(Relation index);
extern char *eunobuildphasename(int64 phase);
#define EUNO_PHASE_SCAN		2	/* 1 is "initializing" */
#define EUNO_PHASE_SORT		3
#define EUNO_PHASE_LOAD		4

extern bool eunoinsert(Relation index, Datum *values, bool *isnull,
					   ItemPointer heap_tid, Relation heap,
					   IndexUniqueCheck check_unique, bool index_unchanged,
					   IndexInfo *index_info);

extern IndexScanDesc eunobeginscan(Relation index, int nkeys, int norderbys);
extern void eunorescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					   ScanKey orderbys, int norderbys);
extern bool eunogettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 eunogetbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void eunoendscan(IndexScanDesc scan);
extern void eunomarkpos(IndexScanDesc scan);
extern void eunorestrpos(IndexScanDesc scan);
extern bool eunocanreturn(Relation index, int attno);
extern EUNO_ESTIMATE_PARALLEL_SCAN;
extern void eunoinitparallelscan(void *target);
extern void eunoparallelrescan(IndexScanDesc scan);

extern IndexBulkDeleteResult *eunobulkdelete(IndexVacuumInfo *info,
											 IndexBulkDeleteResult *stats,
											 IndexBulkDeleteCallback callback,
											 void *callback_state);
extern IndexBulkDeleteResult *eunovacuumcleanup(IndexVacuumInfo *info,
												IndexBulkDeleteResult *stats);

extern void eunocostestimate(PlannerInfo *root, IndexPath *path,
							 double loop_count, Cost *startup_cost,
							 Cost *total_cost, Selectivity *selectivity,
							 double *correlation, double *pages);

extern bool euno_validate(Oid opclassoid);
extern void euno_adjustmembers(Oid opfamilyoid, Oid opclassoid,
							   List *operators, List *functions);

/* ---- euno_funcs.c ---- */

/*
 * ERROR 42809 if it is no euno index, 42704 if there is no such relation (any
 * more), 0A000 if it is another session's temporary one.
 */
extern Relation euno_open_index_by_oid(Oid oid, LOCKMODE lockmode);

/* ---- euno_scan.c ---- */

/* Frees the scan that this index keeps for the next, if any. */
extern void euno_scan_forget(EunoIndex *idx);

/* ---- TIDs ---- */

static inline EunoTid
euno_tid_pack(ItemPointer tid)
{
	return (EunoTid) ItemPointerGetBlockNumber(tid) << 16 |
		ItemPointerGetOffsetNumber(tid);
}

static inline void
euno_tid_unpack(EunoTid tid, ItemPointer result)
{
	ItemPointerSet(result, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
}

#endif							/* EUNO_AM_H */
