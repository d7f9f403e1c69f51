/*-------------------------------------------------------------------------
 *
 * scan_plan_compare.c
 *	  Scan keys to a range of the tree, in COMPARE order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "key/scan_private.h"

/* One column of a bound in COMPARE order; returns the position's side. */
static int8
compare_end(EunoBoundColumn *bound, const EunoSpanEnd *end, bool is_low)
{
	if (!end->set)
	{
		bound->class = EUNO_BOUND_NOT_NULL;
		return is_low ? -1 : 1;
	}
	bound->class = EUNO_BOUND_VALUE;
	bound->value = end->value;
	bound->cross = end->foreign != NULL ? &end->foreign->cross : NULL;
	return end->inclusive == is_low ? -1 : 1;
}

static void
set_bound(EunoPosition *pos, EunoKeyBound *bound, int ncols, int8 side)
{
	euno_scan_set_position(pos, NULL, 0, side);
	bound->ncols = ncols;
	pos->bound = bound;
}

/* The end of the range: "end" of this column, and what a row adds to it. */
static void
range_end(EunoScanPlan *plan, EunoPosition *pos, EunoKeyBound *bound,
		  int column, const EunoSpan *span, const EunoSpanEnd *end,
		  bool is_low)
{
	EunoScanRow *row = euno_scan_row_at(plan, column, end, end == &span->low);
	int8		side = compare_end(&bound->cols[column++], end, is_low);
	bool		last = row == NULL;
	EunoSpanEnd next;

	while (euno_scan_row_end(plan, row, column, &next, &last))
		side = compare_end(&bound->cols[column++], &next, is_low);
	set_bound(pos, bound, column, side);
}

/*
 * Goes on with a column's points, one or more: sets the only one, or makes
 * them a choice between parts.  False if they end the range.
 */
static bool
compare_points(EunoScanPlan *plan, int column, const EunoPoint *points,
			   uint32 npoints, EunoScanRange *range)
{
	EunoKeyBound *low_bound = &plan->low_bound;
	EunoKeyBound *high_bound = &plan->high_bound;
	EunoSpanEnd end = {.set = true,.inclusive = true};

	end.value = points[0].value;
	(void) compare_end(&low_bound->cols[column], &end, true);
	if (npoints == 1 || euno_scan_choose(plan, column, 0, points, npoints))
	{
		high_bound->cols[column] = low_bound->cols[column];
		return true;
	}
	memcpy(high_bound->cols, low_bound->cols, column * sizeof(EunoBoundColumn));
	set_bound(&range->lo, low_bound, column + 1, -1);
	end.value = points[npoints - 1].value;
	(void) compare_end(&high_bound->cols[column], &end, false);
	set_bound(&range->hi, high_bound, column + 1, 1);
	return false;
}

/* Has a column's arrays checked on each entry. */
static void
unabsorb_arrays(EunoScanPlan *plan, ScanKey keys, int nkeys, int column)
{
	for (int i = 0; i < nkeys; i++)
		if (keys[i].sk_attno == column + 1 &&
			(keys[i].sk_flags & SK_SEARCHARRAY))
			plan->absorbed[i] = false;
}

/*
 * COMPARE order: the range is one key, the low bound, and equal keys are equal
 * bytes.  So the tree gets the bytes, by which it can find the key in a leaf.
 */
void
euno_scan_whole_key(EunoScanPlan *plan, EunoScanRange *range)
{
	const EunoKeySchema *schema = plan->schema;
	EunoKeyBound *bound = &plan->low_bound;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64_t	len;

	for (int i = 0; i < schema->nkeys; i++)
	{
		if (bound->cols[i].class != EUNO_BOUND_VALUE ||
			bound->cols[i].cross != NULL)
		{
			plan->whole = false;
			return;
		}
		values[i] = bound->cols[i].value;
		isnull[i] = false;
	}
	len = euno_row_put(schema->cols, schema->nkeys, values, isnull,
					   plan->low_bytes, EUNO_MAX_ENTRY);
	if (len <= EUNO_MAX_ENTRY)
	{
		euno_scan_set_position(&range->lo, plan->low_bytes, (uint32_t) len, -1);
		euno_scan_set_position(&range->hi, plan->low_bytes, (uint32_t) len, 1);
	}
	else
	{
		set_bound(&range->lo, bound, schema->nkeys, -1);
		set_bound(&range->hi, bound, schema->nkeys, 1);
	}
}

/* Length and kind of passing of what a bound's column is compared with. */
static void
value_type(const EunoScanPlan *plan, int column, const EunoBoundColumn *bound,
		   int16 *len, bool *byval)
{
	*len = plan->schema->cols[column].attlen;
	*byval = plan->schema->cols[column].attbyval;
	for (int i = 0; i < plan->max_keys && bound->cross != NULL; i++)
		if (&plan->slots[i].cross == bound->cross)
			get_typlenbyval(plan->slots[i].subtype, len, byval);
}

static void
keep_bound(EunoScanPlan *plan, EunoKeyBound *bound, int ncols)
{
	for (int i = 0; i < ncols; i++)
	{
		EunoBoundColumn *col = &bound->cols[i];
		int16		len;
		bool		byval;

		if (col->class != EUNO_BOUND_VALUE)
			continue;
		value_type(plan, i, col, &len, &byval);
		col->value = datumCopy(col->value, byval, len);
	}
}

/*
 * Bounds in COMPARE order point to the scan keys' arguments, which are gone
 * before the scan is at a rescan, and perhaps at its end: an outer node has
 * been ended by then.  Whoever needs the range later copies them meanwhile.
 */
void
euno_scan_plan_keep(EunoScanPlan *plan, const EunoScanRange *range)
{
	MemoryContext old;

	if (plan->kept || plan->schema->order == EUNO_ORDER_BYTES)
		return;
	plan->kept = true;
	old = MemoryContextSwitchTo(euno_scan_keys_context(plan));
	if (plan->whole || range->lo.bound != NULL)
		keep_bound(plan, &plan->low_bound,
				   plan->whole ? plan->schema->nkeys : plan->low_bound.ncols);
	if (range->hi.bound == &plan->high_bound)
		keep_bound(plan, &plan->high_bound, plan->high_bound.ncols);
	MemoryContextSwitchTo(old);
}

void
euno_scan_plan_compare(EunoScanPlan *plan, ScanKey keys, int nkeys,
					   EunoScanRange *range)
{
	const EunoKeySchema *schema = plan->schema;
	EunoKeyBound *low_bound = &plan->low_bound;
	EunoKeyBound *high_bound = &plan->high_bound;
	EunoPoint  *points;
	uint32		npoints;
	EunoSpan	span;
	int			column;

	for (column = 0; column < schema->nkeys; column++)
	{
		const EunoKeyColumn *col = &schema->cols[column];

		euno_scan_span(plan, keys, 0, nkeys, column, &span);
		if (span.empty)
		{
			range->empty = true;
			return;
		}
		if (unlikely(keys == plan->own_keys) &&
			euno_scan_points(plan, keys, nkeys, column, &span, &points,
							 &npoints))
		{
			range->empty = npoints == 0;
			if (range->empty)
				return;
			if (compare_points(plan, column, points, npoints, range))
				continue;
			unabsorb_arrays(plan, keys, nkeys, column);
			return;
		}
		if (span.null)
			low_bound->cols[column].class = EUNO_BOUND_NULL;
		else if (span.equal)
		{
			(void) compare_end(&low_bound->cols[column], &span.low, true);
			euno_scan_rows_advance(plan, keys, column, &span.low,
								   &range->empty);
			if (range->empty)
				return;
		}
		else if (span.not_null)
		{
			const EunoSpanEnd *low = col->desc ? &span.high : &span.low;
			const EunoSpanEnd *high = col->desc ? &span.low : &span.high;

			memcpy(high_bound->cols, low_bound->cols,
				   column * sizeof(EunoBoundColumn));
			range_end(plan, &range->lo, low_bound, column, &span, low, true);
			range_end(plan, &range->hi, high_bound, column, &span, high, false);
			return;
		}
		else
			break;
	}
	set_bound(&range->lo, low_bound, column, -1);
	set_bound(&range->hi, low_bound, column, 1);
	plan->whole = column == schema->nkeys && schema->posting;
	if (plan->whole)
		euno_scan_whole_key(plan, range);
}
