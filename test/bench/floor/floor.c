/*-------------------------------------------------------------------------
 *
 * floor.c
 *	  An access method that does nothing: what is left of a query's time when
 *	  finding the row in the index costs next to nothing.
 *
 * For measurements only.  Rows are found in an array of this backend's own,
 * which it fills from the heap when it first uses the index.  So it is right
 * only while the table does not change.  A key of int8 is its row's place in
 * the array, so values begin at 1, and ranges, lists and order come for
 * nothing; rows of other keys are found by a hash of 64 bits, which stands for
 * the key, and for equality only.  It looks at no row before it is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(floor_handler);

typedef struct FloorScan
{
	uint64		key;			/* a hash; not used if of int8 */
	int64		at;				/* of int8: the next one to look at */
	int64		end;			/* and behind the last one */
	int64		marked;
	int64	   *list;			/* "at" counts these, if listed */
	int			room;			/* for so many */
	bool		listed;
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
	*selectivity = path->indexclauses == NIL ? 1.0 :
		1.0 / Max(1.0, path->indexinfo->rel->tuples);
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

#define ST_SORT floor_sort
#define ST_ELEMENT_TYPE int64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* The list's values that have a place, in order, each once. */
static void
floor_set_list(FloorScan *so, Datum datum)
{
	ArrayType  *array = DatumGetArrayTypeP(datum);
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	int64	   *values = (int64 *) ARR_DATA_PTR(array);
	int			used = 0;

	if (ARR_HASNULL(array))
		elog(ERROR, "floor: no nulls in lists");
	if (n > so->room)
	{
		so->list = so->list == NULL ? palloc(n * sizeof(int64)) :
			repalloc(so->list, n * sizeof(int64));
		so->room = n;
	}
	if (n > 0)
		memcpy(so->list, values, n * sizeof(int64));
	floor_sort(so->list, n);
	for (int i = 0; i < n; i++)
	{
		if (so->list[i] >= 1 && so->list[i] <= nplaces &&
			(used == 0 || so->list[i] != so->list[used - 1]))
			so->list[used++] = so->list[i];
	}
	so->listed = true;
	so->at = 0;
	so->end = used;
}

/* Narrows the range of int8 by one key. */
static void
floor_set_bound(FloorScan *so, ScanKey key)
{
	int64		value = DatumGetInt64(key->sk_argument);
	bool		strict = key->sk_strategy == BTLessStrategyNumber ||
	key->sk_strategy == BTGreaterStrategyNumber;

	if (key->sk_strategy >= BTEqualStrategyNumber)
	{
		if (value > nplaces)
			value = nplaces + 1;
		so->at = Max(so->at, value + strict);
	}
	if (key->sk_strategy <= BTEqualStrategyNumber)
	{
		if (value < 0)
			value = 0;
		so->end = Min(so->end, value + !strict);
	}
}

static void
floor_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			 int norderbys)
{
	FloorScan  *so = scan->opaque;

	so->at = 1;
	so->end = nplaces + 1;
	so->listed = false;
	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].sk_flags & SK_ISNULL)
			so->end = 0;
		else if (so->tuple == NULL)
		{
			so->key = floor_key(scan->indexRelation, keys[i].sk_argument);
			so->at = so->end - 1;
		}
		else if (keys[i].sk_flags & SK_SEARCHARRAY)
			floor_set_list(so, keys[i].sk_argument);
		else if (!so->listed)
			floor_set_bound(so, &keys[i]);
		if ((so->tuple == NULL || so->listed) && nkeys > 1)
			elog(ERROR, "floor: no other key beside a list, or a hash");
	}
}

/* The next place that is wanted; NULL if there is none. */
static FloorPlace *
floor_next(FloorScan *so)
{
	if (so->tuple == NULL)
		return so->at++ < so->end ? floor_find(so->key) : NULL;
	while (so->at < so->end)
	{
		FloorPlace *place = &places[(so->listed ? so->list[so->at] : so->at) - 1];

		so->at++;
		if (ItemPointerIsValid(&place->tid))
			return place;
	}
	return NULL;
}

static bool
floor_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	FloorScan  *so = scan->opaque;
	FloorPlace *place;

	if (ScanDirectionIsBackward(direction))
		elog(ERROR, "floor: no way back");
	place = floor_next(so);
	if (place == NULL || !ItemPointerIsValid(&place->tid))
		return false;
	scan->xs_heaptid = place->tid;
	scan->xs_recheck = false;
	if (scan->xs_want_itup)
	{
		memcpy((char *) so->tuple + IndexInfoFindDataOffset(so->tuple->t_info),
			   &place->key, sizeof(int64));
		scan->xs_itup = so->tuple;
	}
	return true;
}

static void
floor_markpos(IndexScanDesc scan)
{
	FloorScan  *so = scan->opaque;

	so->marked = so->at;
}

static void
floor_restrpos(IndexScanDesc scan)
{
	FloorScan  *so = scan->opaque;

	so->at = so->marked;
}

static void
floor_endscan(IndexScanDesc scan)
{
}

Datum
floor_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = BTMaxStrategyNumber;
	am->amcanorder = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
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
	am->ammarkpos = floor_markpos;
	am->amrestrpos = floor_restrpos;
	PG_RETURN_POINTER(am);
}
