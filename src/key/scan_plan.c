/*-------------------------------------------------------------------------
 *
 * scan_plan.c
 *	  Scan keys to a range of the tree: what both orders have in common, and
 *	  BYTES order (scan_plan_compare.c has the other).
 *
 * The bytes of both bounds live in the plan, and bounds in COMPARE order point
 * to the scan keys' arguments: a range is good until the next call, as long as
 * the scan keys are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "key/scan_private.h"

#define NOT_PLAIN_KEY (SK_ISNULL | SK_ROW_HEADER | SK_ROW_MEMBER | \
					   SK_SEARCHARRAY | SK_SEARCHNULL | SK_SEARCHNOTNULL | \
					   SK_ORDER_BY)

EunoScanPlan *
euno_scan_plan_create(const EunoKeySchema *schema, int nkeys,
					  MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	EunoScanPlan *plan = palloc(sizeof(EunoScanPlan));
	int			n = Max(nkeys, 1);

	memset(plan, 0, offsetof(EunoScanPlan, low_bytes));
	plan->schema = schema;
	plan->context = context;
	plan->max_keys = nkeys;
	plan->slots = palloc0(n * sizeof(EunoScanSlot));
	plan->absorbed = palloc0(n * sizeof(bool));
	plan->residual = palloc0(n * sizeof(ScanKey));
	MemoryContextSwitchTo(old);
	return plan;
}

bool
euno_scan_plan_rest(EunoScanPlan *plan)
{
	for (int i = 0; i < plan->max_keys; i++)
	{
		EunoScanSlot *slot = &plan->slots[i];

		/* A function of another type's may not be there any more. */
		if (slot->has_cross || slot->copy != NULL)
			return false;
	}
	return plan->keys_context == NULL && plan->constant_low == NULL;
}

/* A copy of the scan keys, to be changed. */
ScanKey
euno_scan_own_keys(EunoScanPlan *plan, ScanKey keys, int nkeys)
{
	if (plan->own_keys == NULL)
		plan->own_keys = MemoryContextAlloc(plan->context, plan->max_keys *
											sizeof(ScanKeyData));
	if (keys != plan->own_keys)
		memcpy(plan->own_keys, keys, nkeys * sizeof(ScanKeyData));
	return plan->own_keys;
}

bool
euno_scan_plan_reuse(const EunoScanPlan *plan, int nkeys)
{
	return nkeys <= plan->max_keys;
}

/*
 * Appends a column of a bound to buf[0 .. len); returns the new length.  A
 * value so long that no entry can hold it is cut, and "cut" set: no entry
 * starts with the bytes that are left, and all compare with them as they would
 * with the whole.
 */
uint32_t
euno_scan_append(const EunoKeyColumn *col, const EunoSpanEnd *end,
				 uint8_t *buf, uint32_t len, bool *cut)
{
	EunoKeyColumn foreign;
	uint32_t	avail;
	uint32_t	need;
	uint8_t    *whole;

	if (unlikely(end->foreign != NULL))
	{
		memset(&foreign, 0, sizeof(foreign));
		foreign.kind = col->kind == EUNO_KIND_NAME ? EUNO_KIND_TEXT :
			EUNO_KIND_NAME;
		foreign.desc = col->desc;
		col = &foreign;
	}

	*cut = false;
	if (unlikely(len >= EUNO_MAX_ENTRY))
	{
		*cut = true;
		return len;
	}
	buf[len++] = EUNO_MARK_VALUE;
	avail = EUNO_MAX_ENTRY - len;
	need = euno_encode_put(col, end->value, buf + len, avail);
	if (likely(need <= avail))
		return len + need;

	*cut = true;
	whole = palloc_extended(need, MCXT_ALLOC_HUGE);
	(void) euno_encode_put(col, end->value, whole, need);
	memcpy(buf + len, whole, avail);
	pfree(whole);
	return EUNO_MAX_ENTRY;
}

/*
 * One end of the range in BYTES order: "end" of this column after a prefix of
 * equal columns.  Without an end, the edge of the values, or of everything.
 */
static void
bytes_end(EunoScanPlan *plan, EunoPosition *pos, int column,
		  const EunoSpan *span, const EunoSpanEnd *end, bool is_low,
		  uint8_t *buf, uint32_t prefix)
{
	const EunoKeyColumn *cols = plan->schema->cols;
	uint32_t	len = prefix;
	int8		side = is_low ? -1 : 1;
	bool		cut;

	if (end->set)
	{
		EunoScanRow *row = euno_scan_row_at(plan, column, end,
											end == &span->low);
		EunoSpanEnd next;
		bool		last = row == NULL;

		len = euno_scan_append(&cols[column], end, buf, len, &cut);
		side = end->inclusive == is_low ? -1 : 1;
		while (!cut && euno_scan_row_end(plan, row, ++column, &next, &last))
		{
			len = euno_scan_append(&cols[column], &next, buf, len, &cut);
			side = next.inclusive == is_low ? -1 : 1;
		}
	}
	else if (span->not_null && len < EUNO_MAX_ENTRY)
	{
		/* A lone marker is no whole column: only its lower side is a place */
		buf[len++] = is_low ? EUNO_MARK_VALUE : EUNO_MARK_VALUE + 1;
		side = -1;
	}
	euno_scan_set_position(pos, buf, len, side);
}

/* The end of a range that is the first or the last of a list of points. */
static void
point_end(EunoPosition *pos, const EunoPoint *point, int8 side, uint8_t *buf,
		  uint32_t prefix)
{
	uint32_t	n = Min(point->len, EUNO_MAX_ENTRY - prefix);

	memcpy(buf + prefix, point->bytes, n);
	euno_scan_set_position(pos, buf, prefix + n, side);
}

/*
 * Goes on with a column's points, one or more: appends the only one, or makes
 * them a choice between parts.  If neither can be done they end the range, and
 * limit the column.  False at the end of the range.
 */
static bool
plan_points(EunoScanPlan *plan, int column, const EunoPoint *points,
			uint32 npoints, uint32_t *len, EunoScanRange *range)
{
	uint8_t    *buf = plan->low_bytes;
	EunoLimit	limit = {.set = true,.npoints = npoints,.points = points};

	if (npoints == 1 && *len + points->len <= EUNO_MAX_ENTRY)
	{
		memcpy(buf + *len, points->bytes, points->len);
		*len += points->len;
		return true;
	}
	if (npoints > 1 && euno_scan_choose(plan, column, *len, points, npoints))
		return true;

	memcpy(plan->high_bytes, buf, *len);
	point_end(&range->lo, &points[0], -1, buf, *len);
	point_end(&range->hi, &points[npoints - 1], 1, plan->high_bytes, *len);
	euno_scan_limit_column(plan, column, &limit);
	return false;
}

/*
 * Builds the range in BYTES order from column "column" on.  Returns the first
 * column that it says nothing of.
 */
static int
plan_bytes(EunoScanPlan *plan, ScanKey keys, int first, int nkeys,
		   int column, uint32_t len, EunoScanRange *range)
{
	const EunoKeySchema *schema = plan->schema;
	uint8_t    *buf = plan->low_bytes;
	EunoPoint  *points;
	uint32		npoints;
	EunoSpan	span;

	for (; column < schema->nkeys; column++)
	{
		const EunoKeyColumn *col = &schema->cols[column];

		euno_scan_span(plan, keys, first, nkeys, column, &span);
		if (span.empty)
		{
			range->empty = true;
			return column;
		}
		if (unlikely(keys == plan->own_keys) &&
			euno_scan_points(plan, keys, nkeys, column, &span, &points,
							 &npoints))
		{
			range->empty = npoints == 0;
			if (range->empty ||
				!plan_points(plan, column, points, npoints, &len, range))
				return column + 1;
		}
		else if (span.null && len < EUNO_MAX_ENTRY)
			buf[len++] = col->null_mark;
		else if (span.equal)
		{
			bool		cut;

			len = euno_scan_append(col, &span.low, buf, len, &cut);
			range->empty = cut;
			euno_scan_rows_advance(plan, keys, column, &span.low,
								   &range->empty);
			if (range->empty)
				return column;
		}
		else if (span.not_null)
		{
			const EunoSpanEnd *low = col->desc ? &span.high : &span.low;
			const EunoSpanEnd *high = col->desc ? &span.low : &span.high;

			memcpy(plan->high_bytes, buf, len);
			bytes_end(plan, &range->lo, column, &span, low, true, buf, len);
			bytes_end(plan, &range->hi, column, &span, high, false,
					  plan->high_bytes, len);
			return column + 1;
		}
		else
			break;
	}
	euno_scan_set_position(&range->lo, buf, len, -1);
	euno_scan_set_position(&range->hi, buf, len, 1);
	return column + 1;
}

/*
 * The common case, in BYTES order: plain equalities of the leading columns'
 * own types.  Encodes as many keys as it can, and returns how many; *len is
 * the length of their bytes, or *empty is set.
 */
static int
plan_equalities(EunoScanPlan *plan, ScanKey keys, int nkeys, uint32_t *len,
				bool *empty)
{
	EunoSpanEnd end = {.set = true,.inclusive = true};
	bool		cut;
	int			i;

	for (i = 0; i < nkeys; i++)
	{
		ScanKey		key = &keys[i];

		if (key->sk_attno != i + 1 ||
			key->sk_strategy != BTEqualStrategyNumber ||
			(key->sk_flags & NOT_PLAIN_KEY) != 0 ||
			(i + 1 < nkeys && keys[i + 1].sk_attno <= i + 1) ||
			euno_scan_slot(plan, i, key)->conversion != EUNO_CONVERT_SAME)
			break;
		end.value = key->sk_argument;
		*len = euno_scan_append(&plan->schema->cols[i], &end, plan->low_bytes,
								*len, &cut);
		if (unlikely(cut))
			*empty = true;
		plan->absorbed[i] = true;
	}
	return i;
}

/* Refuses what the access method never asks the planner for. */
static void
check_key(const EunoScanPlan *plan, const ScanKeyData *key)
{
	if (key->sk_flags & (SK_ROW_HEADER | SK_ROW_MEMBER | SK_ORDER_BY))
		elog(ERROR, "scan keys of index \"%s\" must be comparisons of columns, got flags 0x%x",
			 plan->schema->name, key->sk_flags);
	if (key->sk_attno < 1 || key->sk_attno > plan->schema->nkeys)
		elog(ERROR, "scan key on column %d of index \"%s\", which has %d key columns",
			 key->sk_attno, plan->schema->name, plan->schema->nkeys);
	if (!(key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)) &&
		(key->sk_strategy < 1 || key->sk_strategy > EUNO_NSTRATEGIES ||
		 (key->sk_strategy > BTMaxStrategyNumber &&
		  (key->sk_flags & SK_SEARCHARRAY) != 0)))
		elog(ERROR, "scan key of index \"%s\" has invalid strategy number %d",
			 plan->schema->name, key->sk_strategy);
}

/* Lists the keys that the range does not imply. */
static void
collect_residual(EunoScanPlan *plan, ScanKey keys, int nkeys)
{
	if (unlikely(plan->nrows > 0))
		euno_scan_rows_residual(plan, keys);
	for (int i = 0; i < nkeys; i++)
	{
		if (plan->absorbed[i])
			continue;
		plan->residual[plan->nresidual++] = &keys[i];
		plan->residual_cols = Max(plan->residual_cols, keys[i].sk_attno);
	}
}

void
euno_scan_plan_set(EunoScanPlan *plan, ScanKey keys, int nkeys,
				   EunoScanRange *range)
{
	bool		bytes = plan->schema->order == EUNO_ORDER_BYTES;
	uint32_t	len = 0;
	int			done = 0;
	int			column = 0;
	bool		arrays = false;
	bool		rows = false;

	if (unlikely(nkeys > plan->max_keys))
		elog(ERROR, "scan of index \"%s\" has %d keys, expected at most %d",
			 plan->schema->name, nkeys, plan->max_keys);

	range->empty = false;
	range->parts = false;
	plan->nchoices = 0;
	plan->nrows = 0;
	plan->whole = plan->kept = false;
	plan->limit_cols = 0;
	if (unlikely(plan->keys_context != NULL))
		MemoryContextReset(plan->keys_context);
	plan->nresidual = 0;
	plan->residual_cols = 0;
	for (int i = 0; i < nkeys; i++)
	{
		plan->absorbed[i] = false;
		check_key(plan, &keys[i]);
		if (plan->slots[i].copy != NULL)
		{
			pfree(plan->slots[i].copy);
			plan->slots[i].copy = NULL;
		}

		/* No comparison is true of a NULL argument */
		if ((keys[i].sk_flags & SK_ISNULL) &&
			!(keys[i].sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)))
			range->empty = true;
		arrays |= (keys[i].sk_flags & SK_SEARCHARRAY) != 0;
		rows |= keys[i].sk_strategy > BTMaxStrategyNumber;
	}
	if (unlikely(arrays) && !range->empty)
		keys = euno_scan_arrays(plan, keys, nkeys, &range->empty);
	if (unlikely(rows) && !range->empty)
		keys = euno_scan_rows(plan, keys, nkeys, &range->empty);

	if (bytes && !range->empty)
	{
		done = plan_equalities(plan, keys, nkeys, &len, &range->empty);
		if (!range->empty)
			column = plan_bytes(plan, keys, done, nkeys, done, len, range);
		if (done < nkeys && !range->empty)
			euno_scan_limit_rest(plan, keys, done, nkeys, column,
								 &range->empty);
	}
	else if (!range->empty)
		euno_scan_plan_compare(plan, keys, nkeys, range);

	if (range->empty)
	{
		euno_scan_set_position(&range->lo, plan->low_bytes, 0, -1);
		euno_scan_set_position(&range->hi, plan->low_bytes, 0, -1);
	}
	else if (done < nkeys)
		collect_residual(plan, keys, nkeys);
	if (!range->empty && plan->nchoices > 0)
		euno_scan_parts_begin(plan, range);
	range->exact = plan->nresidual == 0 && plan->limit_cols == 0;
}
