/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  An access method that does nothing: what is left of a query's time when
 *	  finding the row in the index costs next to nothing.
 *
 * For measurements only.  The key is one int8 column with values from 1 up,
 * and the row of each is found in an array of this backend's own, which it
 * fills from the heap when it first uses the index.  So it is right only while
 * the table does not change, and for equality only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(floor_handler);

typedef struct FloorScan
{
	int64		key;
	bool		done;
	IndexTuple	tuple;
} FloorScan;

static ItemPointerData *places;
static int64 nplaces;
static Oid	filled;				/* relation file whose rows these are */

static void
floor_place(int64 key, ItemPointer tid)
{
	if (key < 1)
		elog(ERROR, "floor: keys begin at 1");
	if (key > nplaces)
	{
		int64		more = Max(key, nplaces * 2 + 1024);
		Size		size = more * sizeof(ItemPointerData);

		places = places == NULL ?
			MemoryContextAllocHuge(TopMemoryContext, size) :
			repalloc_huge(places, size);
		memset(places + nplaces, 0, (more - nplaces) * sizeof(ItemPointerData));
		nplaces = more;
	}
	places[key - 1] = *tid;
}

/* Reads the table's visible rows. */
static void
floor_fill(Relation index)
{
	Relation	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan = table_beginscan(heap, GetActiveSnapshot(), 0, NULL);

	filled = InvalidOid;
	nplaces = 0;
	if (places != NULL)
		pfree(places);
	places = NULL;
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		Datum		key = slot_getattr(slot, index->rd_index->indkey.values[0],
									   &isnull);

		if (!isnull)
			floor_place(DatumGetInt64(key), &slot->tts_tid);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(heap, AccessShareLock);
	filled = index->rd_rel->relfilenode;
}

static IndexBuildResult *
floor_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	filled = InvalidOid;
	result->heap_tuples = heap->rd_rel->reltuples;
	result->index_tuples = heap->rd_rel->reltuples;
	return result;
}

static void
floor_buildempty(Relation index)
{
}

static bool
floor_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			 Relation heap, IndexUniqueCheck check, bool unchanged,
			 IndexInfo *info)
{
	if (!isnull[0])
		floor_place(DatumGetInt64(values[0]), tid);
	return false;
}

static IndexBulkDeleteResult *
floor_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				 IndexBulkDeleteCallback callback, void *state)
{
	return stats;
}

static IndexBulkDeleteResult *
floor_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

static bool
floor_canreturn(Relation index, int column)
{
	return true;
}

static void
floor_costestimate(PlannerInfo *root, IndexPath *path, double loops,
				   Cost *startup, Cost *total, Selectivity *selectivity,
				   double *correlation, double *pages)
{
	*startup = *total = 0;
	*selectivity = 1.0 / Max(1.0, path->indexinfo->rel->tuples);
	*correlation = 0;
	*pages = 0;
}

static bytea *
floor_options(Datum options, bool validate)
{
	return NULL;
}

static bool
floor_validate(Oid opclass)
{
	return true;
}

static IndexScanDesc
floor_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	FloorScan  *so = palloc0(sizeof(FloorScan));
	Datum		zero = Int64GetDatum(0);
	bool		isnull = false;

	if (filled != index->rd_rel->relfilenode)
		floor_fill(index);
	scan->xs_itupdesc = RelationGetDescr(index);
	so->tuple = index_form_tuple(scan->xs_itupdesc, &zero, &isnull);
	scan->opaque = so;
	return scan;
}

static void
floor_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			 int norderbys)
{
	FloorScan  *so = scan->opaque;

	so->done = nkeys != 1 || (keys[0].sk_flags & SK_ISNULL) != 0;
	if (!so->done)
		so->key = DatumGetInt64(keys[0].sk_argument);
}

static bool
floor_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	FloorScan  *so = scan->opaque;

	if (so->done || so->key < 1 || so->key > nplaces ||
		!ItemPointerIsValid(&places[so->key - 1]))
		return false;
	so->done = true;
	scan->xs_heaptid = places[so->key - 1];
	scan->xs_recheck = false;
	if (scan->xs_want_itup)
	{
		memcpy((char *) so->tuple + IndexInfoFindDataOffset(so->tuple->t_info),
			   &so->key, sizeof(int64));
		scan->xs_itup = so->tuple;
	}
	return true;
}

static void
floor_endscan(IndexScanDesc scan)
{
}

Datum
floor_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = 1;
	am->amcanbackward = true;
	am->amkeytype = InvalidOid;
	am->ambuild = floor_build;
	am->ambuildempty = floor_buildempty;
	am->aminsert = floor_insert;
	am->ambulkdelete = floor_bulkdelete;
	am->amvacuumcleanup = floor_vacuumcleanup;
	am->amcanreturn = floor_canreturn;
	am->amcostestimate = floor_costestimate;
	am->amoptions = floor_options;
	am->amvalidate = floor_validate;
	am->ambeginscan = floor_beginscan;
	am->amrescan = floor_rescan;
	am->amgettuple = floor_gettuple;
	am->amendscan = floor_endscan;
	PG_RETURN_POINTER(am);
}
