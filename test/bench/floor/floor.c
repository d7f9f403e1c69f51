/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  An access method that does nothing: what is left of a query's time when
 *	  finding the row in the index costs next to nothing.
 *
 * For measurements only.  Rows are found in an array of this backend's own,
 * which it fills from the heap when it first uses the index.  So it is right
 * only while the table does not change, and for equality only.  A key of int8
 * is its row's place in the array, so values begin at 1; rows of other keys
 * are found by a hash of 64 bits, which stands for the key.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(floor_handler);

typedef struct FloorScan
{
	uint64		key;
	bool		done;
	IndexTuple	tuple;			/* NULL: not of int8 */
} FloorScan;

typedef struct FloorPlace
{
	uint64		key;
	ItemPointerData tid;		/* invalid: nothing is here */
} FloorPlace;

static FloorPlace *places;
static int64 nplaces;			/* of hashed keys a power of 2 */
static Oid	filled;				/* relation file whose rows these are */

/* The attribute of the key's type that all else depends on. */
static bool
floor_is_hashed(Relation index)
{
	return TupleDescAttr(RelationGetDescr(index), 0)->atttypid != INT8OID;
}

static uint64
floor_key(Relation index, Datum key)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), 0);
	struct varlena *text;

	if (!floor_is_hashed(index))
		return (uint64) DatumGetInt64(key);
	if (att->attbyval)
		return hash_bytes_extended((unsigned char *) &key, sizeof(Datum), 0);
	if (att->attlen > 0)
		return hash_bytes_extended((unsigned char *) DatumGetPointer(key),
								   att->attlen, 0);
	text = PG_DETOAST_DATUM_PACKED(key);
	return hash_bytes_extended((unsigned char *) VARDATA_ANY(text),
							   VARSIZE_ANY_EXHDR(text), 0);
}

/* Room for this many, all of them empty. */
static void
floor_make_room(int64 more)
{
	Size		size = more * sizeof(FloorPlace);

	places = places == NULL ?
		MemoryContextAllocHuge(TopMemoryContext, size) :
		repalloc_huge(places, size);
	memset(places + nplaces, 0, (more - nplaces) * sizeof(FloorPlace));
	nplaces = more;
}

/* Where the key is, or would be.  There is always an empty place. */
static FloorPlace *
floor_find(uint64 key)
{
	uint64		at = key & (nplaces - 1);

	while (ItemPointerIsValid(&places[at].tid) && places[at].key != key)
		at = (at + 1) & (nplaces - 1);
	return &places[at];
}

static void
floor_place(Relation index, Datum value, ItemPointer tid)
{
	uint64		key = floor_key(index, value);
	FloorPlace *place;

	if (floor_is_hashed(index))
		place = floor_find(key);
	else
	{
		if (key < 1 || key > PG_INT32_MAX)
			elog(ERROR, "floor: keys are from 1 to 2147483647");
		if (key > (uint64) nplaces)
			floor_make_room(Max((int64) key, nplaces * 2 + 1024));
		place = &places[key - 1];
	}
	place->key = key;
	place->tid = *tid;
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
	if (floor_is_hashed(index))
		floor_make_room(pg_nextpower2_64(2 * (uint64) Max(heap->rd_rel->reltuples, 1024)));
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		Datum		key = slot_getattr(slot, index->rd_index->indkey.values[0],
									   &isnull);

		if (!isnull)
			floor_place(index, key, &slot->tts_tid);
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
	elog(ERROR, "floor: the table must not change");
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
	return !floor_is_hashed(index);
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
	if (!floor_is_hashed(index))
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
		so->key = floor_key(scan->indexRelation, keys[0].sk_argument);
}

static bool
floor_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	FloorScan  *so = scan->opaque;

	FloorPlace *place;

	if (so->done)
		return false;
	so->done = true;
	if (so->tuple == NULL)
		place = floor_find(so->key);
	else if (so->key >= 1 && so->key <= (uint64) nplaces)
		place = &places[so->key - 1];
	else
		return false;
	if (!ItemPointerIsValid(&place->tid))
		return false;
	scan->xs_heaptid = place->tid;
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
