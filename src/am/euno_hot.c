/*-------------------------------------------------------------------------
 *
 * euno_hot.c
 *	  SQL function: the leaves of an index, or nodes of a radix tree, at which
 *	  operations are in each other's way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

#define HOT_COLUMNS 14

typedef struct HotLeaves
{
	Relation	heap;
	Relation	index;
	bool		as_owner;		/* functions of users compare keys so */
	EunoIndex  *idx;
	EunoContext *cx;
	EunoLeafInfo info;
	uint8		buf[EUNO_BATCH_BUF] __attribute__((aligned(8)));
	uint8		scratch[EUNO_KEY_DEFORM_BYTES] __attribute__((aligned(8)));
} HotLeaves;

/*
 * What compares keys may be a function of users: not for a superuser to run, but
 * with the rights of the table's owner, if they may be had.
 */
static void
begin_look(const HotLeaves *hot, EunoOwner *owner)
{
	if (hot->as_owner)
		euno_become_owner(hot->heap, owner);
	euno_can_leave = true;
}

static void
end_look(const HotLeaves *hot, EunoOwner *owner)
{
	euno_can_leave = false;
	if (hot->as_owner)
		euno_restore_user(owner);
}

/* The leaf, or node, that *heat is about, in hot->info.  False: there is none. */
static bool
find(HotLeaves *hot, const EunoHeat *heat)
{
	EunoTreeSlot *slot = hot->idx->slot;
	EunoStatus	status;
	EunoOwner	owner;

	begin_look(hot, &owner);
	status = slot->ops->leaf(hot->cx, &slot->tree, heat, &hot->info);
	end_look(hot, &owner);
	if (status != EUNO_OK && status != EUNO_NOT_FOUND)
		euno_index_error(hot->idx, hot->index, status);
	return status == EUNO_OK;
}

/*
 * A leaf's first or last key, as error messages show keys: only to whoever may
 * read these columns, and not where there are policies for rows.  NULL: not to
 * be shown, or the leaf is empty.
 */
static char *
show_key(HotLeaves *hot, bool first)
{
	EunoTreeSlot *slot = hot->idx->slot;
	EunoLeafInfo *info = &hot->info;
	EunoItemKey key;
	EunoTid		tid;
	EunoCursor	cursor;
	EunoBatch	batch = {.max_items = 1,.tids = &tid,.want_keys = true,
	.keys = &key,.buf = hot->buf,.buf_size = sizeof(hot->buf)};
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	EunoStatus	status;
	EunoOwner	owner;

	cursor.lo = info->has_low ? info->low.pos : (EunoPosition) {.side = -1};
	cursor.hi = info->has_high ? info->high.pos : (EunoPosition) {.side = 1};
	euno_cursor_start(&cursor);
	begin_look(hot, &owner);
	status = slot->ops->read(hot->cx, &slot->tree, &cursor, first, &batch);
	end_look(hot, &owner);
	if (status != EUNO_OK)
		euno_index_error(hot->idx, hot->index, status);
	if (batch.nitems == 0)
		return NULL;
	euno_key_deform(hot->idx->schema, hot->buf + key.offset, key.keylen,
					hot->buf + key.offset + MAXALIGN(key.keylen),
					key.payloadlen, hot->scratch, values, isnull);
	return BuildIndexValueDescription(hot->index, values, isnull);
}

/*
 * Which leaves have the keys now?  Two that were in two leaves, or in one that
 * was split since, may be in one: what is known of it is added up.  Those of
 * which nothing can be said are left out.  Returns how many are left.
 */
static uint32
resolve(HotLeaves *hot, EunoHeat *heat, uint32 n)
{
	uint32		kept = 0;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		same = 0;

		CHECK_FOR_INTERRUPTS();
		if (!find(hot, &heat[i]))
			continue;
		while (same < kept && heat[same].leaf != hot->info.number)
			same++;
		if (same < kept)
		{
			heat[same].fresh += heat[i].fresh;
			heat[same].before += heat[i].before;
			heat[same].writes += heat[i].writes;
			heat[same].delegated += heat[i].delegated;
			for (int c = 0; c < EUNO_LEAF_CAUSES; c++)
				heat[same].causes[c] += heat[i].causes[c];
			continue;
		}
		heat[kept] = heat[i];
		heat[kept++].leaf = hot->info.number;
	}
	return kept;
}

static int
compare_heat(const void *a, const void *b)
{
	const EunoHeat *x = a;
	const EunoHeat *y = b;
	uint32		nx = euno_heat_sum(x);
	uint32		ny = euno_heat_sum(y);

	return nx > ny ? -1 : nx < ny;
}

/* Conflicts a second, over this round of the launcher's and the one before. */
static bool
conflict_rate(EunoTreeSlot *slot, const EunoHeat *heat, double *rate)
{
	TimestampTz start = (TimestampTz) pg_atomic_read_u64(&slot->round_start);
	double		seconds;

	if (start == 0)
		return false;			/* the launcher has not been here yet */
	seconds = (double) (GetCurrentTimestamp() - start +
						(int64) pg_atomic_read_u64(&slot->round_before)) / 1e6;
	*rate = seconds > 0 ? (heat->fresh + heat->before) / seconds : 0;
	return true;
}

static void
put_leaf(HotLeaves *hot, const EunoHeat *heat, ReturnSetInfo *rsinfo)
{
	Datum		values[HOT_COLUMNS];
	bool		nulls[HOT_COLUMNS] = {0};
	char	   *low = show_key(hot, true);
	char	   *high = show_key(hot, false);
	double		rate = 0;
	int			n = 0;

	nulls[n] = hot->idx->slot->ops->moves == NULL;	/* leaves have no numbers */
	values[n++] = Int64GetDatum(hot->info.number);
	nulls[n] = low == NULL;
	values[n++] = low ? CStringGetTextDatum(low) : (Datum) 0;
	nulls[n] = high == NULL;
	values[n++] = high ? CStringGetTextDatum(high) : (Datum) 0;
	values[n++] = Int32GetDatum((int32) hot->info.entries);
	values[n++] = CStringGetTextDatum(hot->info.mode);
	values[n++] = Int32GetDatum(hot->info.domain);
	nulls[n] = !conflict_rate(hot->idx->slot, heat, &rate);
	values[n++] = Float8GetDatum(rate);
	for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
		values[n++] = Int64GetDatum(heat->causes[i]);
	values[n++] = Int64GetDatum(heat->delegated);
	nulls[n] = hot->idx->slot->ops->steer == NULL;
	values[n++] = BoolGetDatum(hot->info.parted);
	Assert(n == HOT_COLUMNS);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * The leaves, or nodes of a radix tree, with the most conflicts lately, at
 * most n of them.  None of an index that is not ready.
 */
PG_FUNCTION_INFO_V1(euno_hot_leaves);
Datum
euno_hot_leaves(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			oid = PG_GETARG_OID(0);
	Oid			heap_oid = IndexGetRelation(oid, true);
	int			max = PG_GETARG_INT32(1);
	Relation	heap;
	Relation	index;
	EunoHeat   *heat;
	HotLeaves  *hot;
	EunoTreeSlot *slot;
	uint32		n;

	/* The table first, as everybody does. */
	heap = OidIsValid(heap_oid) ? try_relation_open(heap_oid, AccessShareLock) : NULL;
	index = euno_open_index_by_oid(oid, AccessShareLock);
	if (max < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of leaves must be at least 1")));
	InitMaterializedSRF(fcinfo, 0);
	if (!euno_preloaded)
	{
		index_close(index, AccessShareLock);
		relation_close(heap, AccessShareLock);
		return (Datum) 0;
	}
	heat = palloc(sizeof(EunoHeat) * EUNO_HEAT_LEAVES);
	hot = palloc(sizeof(HotLeaves));
	hot->heap = heap;
	hot->index = index;
	hot->as_owner = euno_session_may_evaluate(index);
	hot->idx = euno_index_open(index);
	if (euno_index_hold(hot->idx, &hot->cx) == EUNO_STATE_READY)
	{
		EUNO_STOP_POINT("hot-leaves");
		slot = hot->idx->slot;
		n = slot->ops->heat(hot->cx, &slot->tree, false, heat, EUNO_HEAT_LEAVES);
		n = resolve(hot, heat, n);
		qsort(heat, n, sizeof(EunoHeat), compare_heat);
		for (uint32 i = 0; i < Min(n, (uint32) max); i++)
		{
			if (find(hot, &heat[i]))
				put_leaf(hot, &heat[i], rsinfo);
		}
		euno_index_unhold(hot->idx);
	}
	pfree(hot);
	pfree(heat);
	index_close(index, AccessShareLock);
	relation_close(heap, AccessShareLock);
	return (Datum) 0;
}
