/*-------------------------------------------------------------------------
 *
 * scan_array.c
 *	  Scan keys with arrays: "column operator ANY (array)".
 *
 * An inequality with any element is one with the least or the greatest of
 * them.  An equality with one of several becomes a list of points, sorted and
 * without duplicates, so that the scan can go from one to the next in index
 * order.  An element that is NULL, or that the column cannot have, matches
 * nothing and is left out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/array.h"
#include "utils/lsyscache.h"

#include "key/scan_private.h"

static int
compare_points(const EunoPoint *a, const EunoPoint *b)
{
	int			result;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	result = memcmp(a->bytes, b->bytes, Min(a->len, b->len));
	return result != 0 ? result : (a->len > b->len) - (a->len < b->len);
}

#define ST_SORT sort_points
#define ST_ELEMENT_TYPE EunoPoint
#define ST_COMPARE(a, b) compare_points(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_datums
#define ST_ELEMENT_TYPE Datum
#define ST_COMPARE(a, b, col) euno_column_compare(col, *(a), *(b))
#define ST_COMPARE_ARG_TYPE const EunoKeyColumn
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * The least or the greatest element.  False if the opfamily cannot compare two
 * of the array's type, or if their order is not that of what the column is
 * compared with: of times that the clock skips, those before it goes on are
 * greater moments than those after it.
 */
static bool
extreme_element(const EunoKeyColumn *col, const EunoScanSlot *slot,
				const ScanKeyData *key, const EunoArray *array, bool greatest,
				Datum *result)
{
	bool		same = !OidIsValid(key->sk_subtype) ||
		key->sk_subtype == col->opcintype;
	FmgrInfo	cmp;
	Datum		best = array->elems[0];

	if (slot->conversion == EUNO_CONVERT_TIMESTAMP_TO_TIMESTAMPTZ &&
		array->nelems > 1)
		return false;
	if (!same)
	{
		Oid			proc = get_opfamily_proc(col->opfamily, key->sk_subtype,
											 key->sk_subtype, EUNO_ORDER_PROC);

		if (!OidIsValid(proc))
			return false;
		fmgr_info(proc, &cmp);
	}
	for (int i = 1; i < array->nelems; i++)
	{
		int			order = same ?
			euno_column_compare(col, array->elems[i], best) :
			DatumGetInt32(FunctionCall2Coll(&cmp, key->sk_collation,
											array->elems[i], best));

		if (greatest ? order > 0 : order < 0)
			best = array->elems[i];
	}
	*result = best;
	return true;
}

/*
 * Takes an array apart; in COMPARE order a copy, which outlives the argument:
 * see euno_scan_plan_keep.
 */
static void
read_elements(EunoScanPlan *plan, const ScanKeyData *key, EunoArray *array)
{
	bool		bytes = plan->schema->order == EUNO_ORDER_BYTES;
	ArrayType  *value = bytes ? DatumGetArrayTypeP(key->sk_argument) :
		DatumGetArrayTypePCopy(key->sk_argument);
	int16		len;
	bool		byval;
	char		align;
	bool	   *isnull;
	int			n = 0;

	get_typlenbyvalalign(ARR_ELEMTYPE(value), &len, &byval, &align);
	deconstruct_array(value, ARR_ELEMTYPE(value), len, byval, align,
					  &array->elems, &isnull, &array->nelems);
	for (int i = 0; i < array->nelems; i++)
	{
		Datum		elem = array->elems[i];

		if (isnull[i])
			continue;

		/* Detoasted once for all the comparisons to come */
		if (!bytes && len == -1 && VARATT_IS_EXTENDED(DatumGetPointer(elem)))
			elem = PointerGetDatum(PG_DETOAST_DATUM(elem));
		array->elems[n++] = elem;
	}
	array->nelems = n;
}

/* The elements as values of the column, as far as there is a way. */
static void
convert_elements(EunoScanPlan *plan, const EunoKeyColumn *col,
				 const EunoScanSlot *slot, EunoArray *array)
{
	array->nvalues = 0;
	array->values = palloc(Max(array->nelems, 1) * sizeof(Datum));
	for (int i = 0; i < array->nelems; i++)
	{
		EunoArg		arg;

		euno_scan_convert(col, slot->conversion, array->elems[i], &arg);
		if (arg.place == EUNO_ARG_UNKNOWN || arg.place == EUNO_ARG_AROUND)
			return;
		array->recheck |= arg.recheck;
		if (arg.place == EUNO_ARG_EQUAL)
			array->values[array->nvalues++] = arg.low;
	}
	array->usable = true;

	if (plan->schema->order == EUNO_ORDER_COMPARE && array->nvalues > 0)
	{
		int			n = 1;

		sort_datums(array->values, array->nvalues, col);
		for (int i = 1; i < array->nvalues; i++)
			if (euno_column_compare(col, array->values[n - 1],
									array->values[i]) != 0)
				array->values[n++] = array->values[i];
		array->nvalues = n;
		array->sorted = true;
	}
}

/* One key with an array.  False if it cannot be true. */
static bool
read_array(EunoScanPlan *plan, ScanKey key, int i)
{
	const EunoKeyColumn *col = &plan->schema->cols[key->sk_attno - 1];
	EunoScanSlot *slot = euno_scan_slot(plan, i, key);
	EunoArray  *array = &plan->arrays[i];
	Datum		extreme;

	memset(array, 0, sizeof(*array));
	if (key->sk_flags & SK_ISNULL)
		return false;
	read_elements(plan, key, array);
	if (array->nelems == 0)
		return false;

	if (key->sk_strategy == BTEqualStrategyNumber)
	{
		if (array->nelems > 1)
		{
			convert_elements(plan, col, slot, array);
			return !array->usable || array->nvalues > 0;
		}
		extreme = array->elems[0];
	}
	else if (!extreme_element(col, slot, key, array,
							  key->sk_strategy < BTEqualStrategyNumber,
							  &extreme))
		return true;			/* to be checked on each entry */
	key->sk_flags &= ~SK_SEARCHARRAY;
	key->sk_argument = extreme;
	return true;
}

/*
 * Returns a copy of the keys, of which those whose arrays come down to one
 * comparison are plain, and for the others plan->arrays is filled.  *empty is
 * set if some array matches nothing.
 */
ScanKey
euno_scan_arrays(EunoScanPlan *plan, ScanKey keys, int nkeys, bool *empty)
{
	ScanKey		own = euno_scan_own_keys(plan, keys, nkeys);
	MemoryContext old;

	if (plan->arrays == NULL)
		plan->arrays = MemoryContextAlloc(plan->context,
										  plan->max_keys * sizeof(EunoArray));
	old = MemoryContextSwitchTo(euno_scan_keys_context(plan));
	for (int i = 0; i < nkeys && !*empty; i++)
		if ((keys[i].sk_flags & SK_SEARCHARRAY) &&
			!read_array(plan, &own[i], i))
			*empty = true;
	MemoryContextSwitchTo(old);
	return own;
}

/* The points of one array, in BYTES order. */
static uint32
encode_points(EunoScanPlan *plan, const EunoKeyColumn *col,
			  EunoScanSlot *slot, const EunoArray *array,
			  EunoPoint *points)
{
	EunoSpanEnd end = {.set = true,.inclusive = true,
	.foreign = slot->conversion == EUNO_CONVERT_STRING ? slot : NULL};
	bool		fixed = col->kind != EUNO_KIND_NAME && col->attlen > 0;
	uint32		longest = fixed ? col->attlen + 1 : EUNO_MAX_ENTRY + 8;
	uint8_t    *buf = NULL;
	Size		avail = 0;
	uint32		n = 0;
	uint32		kept;

	for (int i = 0; i < array->nvalues; i++)
	{
		uint32		len;
		bool		cut;
		uint8_t		head[sizeof(uint64)] = {0};

		end.value = array->values[i];
		if (avail < longest)
		{
			Size		rest = array->nvalues - i;

			avail = fixed ? longest * rest : Min(longest + 64 * rest, 64 * 1024);
			buf = euno_scan_alloc(plan, avail);
		}
		len = euno_scan_append(col, &end, buf, 0, &cut);
		if (cut)
			continue;			/* longer than any key */
		memcpy(head, buf + 1, Min(len - 1, sizeof(head)));
		points[n].head = euno_get_word(head);
		points[n].bytes = buf;
		points[n].len = len;
		points[n].value = (Datum) 0;
		n++;
		buf += len;
		avail -= len;
	}

	sort_points(points, n);
	kept = Min(n, 1);
	for (uint32 i = 1; i < n; i++)
		if (compare_points(&points[kept - 1], &points[i]) != 0)
			points[kept++] = points[i];
	return kept;
}

/* The points of one array, in COMPARE order, where values are sorted. */
static uint32
list_points(const EunoKeyColumn *col, const EunoArray *array,
			EunoPoint *points)
{
	uint32		n = (uint32) array->nvalues;

	memset(points, 0, n * sizeof(EunoPoint));
	for (uint32 i = 0; i < n; i++)
		points[i].value = array->values[col->desc ? n - 1 - i : i];
	return n;
}

/* Keeps those points that are in both lists. */
static uint32
intersect_points(const EunoKeySchema *schema, const EunoKeyColumn *col,
				 EunoPoint *points, uint32 npoints, const EunoPoint *others,
				 uint32 nothers)
{
	uint32		n = 0;

	for (uint32 i = 0, k = 0; i < npoints && k < nothers;)
	{
		int			order;

		if (schema->order == EUNO_ORDER_BYTES)
			order = compare_points(&points[i], &others[k]);
		else
		{
			order = euno_column_compare(col, points[i].value, others[k].value);
			if (col->desc)
				order = (order < 0) - (order > 0);
		}
		if (order == 0)
		{
			points[n++] = points[i++];
			k++;
		}
		else if (order < 0)
			i++;
		else
			k++;
	}
	return n;
}

/* Is a value within an end of a span?  COMPARE order; no foreign ends. */
static bool
within(const EunoKeyColumn *col, const EunoSpanEnd *end, bool is_low,
	   Datum value)
{
	int			order;

	if (!end->set)
		return true;
	order = euno_column_compare(col, value, end->value);
	if (order == 0)
		return end->inclusive;
	return (order > 0) == is_low;
}

/* Keeps those points that the column's other keys admit. */
static uint32
restrict_points(EunoScanPlan *plan, int column, const EunoSpan *span,
				EunoPoint *points, uint32 npoints)
{
	const EunoKeyColumn *col = &plan->schema->cols[column];
	bool		bytes = plan->schema->order == EUNO_ORDER_BYTES;
	EunoLimit	limit;
	uint32		n = 0;
	uint32		next;

	if (!span->low.set && !span->high.set)
		return npoints;
	if (bytes && !euno_scan_span_limit(plan, column, span, &limit))
		return 0;
	for (uint32 i = 0; i < npoints; i++)
		if (bytes ?
			euno_limit_admits(&limit, points[i].bytes, points[i].len, &next) :
			within(col, &span->low, true, points[i].value) &&
			within(col, &span->high, false, points[i].value))
			points[n++] = points[i];
	return n;
}

/*
 * All points that the keys of a column leave, if it has an array that gives
 * any; false if it has none.  The points last until the keys are set again;
 * the keys they imply are marked as absorbed.
 */
bool
euno_scan_points(EunoScanPlan *plan, ScanKey keys, int nkeys, int column,
				 EunoSpan *span, EunoPoint **points, uint32 *npoints)
{
	const EunoKeySchema *schema = plan->schema;
	const EunoKeyColumn *col = &schema->cols[column];
	bool		found = false;

	for (int i = 0; i < nkeys; i++)
	{
		EunoArray  *array;
		EunoPoint  *list;
		uint32		n;

		if (keys[i].sk_attno != column + 1 ||
			!(keys[i].sk_flags & SK_SEARCHARRAY))
			continue;
		array = &plan->arrays[i];
		if (!array->usable)
			continue;
		list = euno_scan_alloc(plan, Max(array->nvalues, 1) * sizeof(EunoPoint));
		if (schema->order == EUNO_ORDER_BYTES)
			n = encode_points(plan, col, euno_scan_slot(plan, i, &keys[i]),
							  array, list);
		else
			n = list_points(col, array, list);
		plan->absorbed[i] = !array->recheck;
		if (found)
			*npoints = intersect_points(schema, col, *points, *npoints, list, n);
		else
		{
			*points = list;
			*npoints = n;
		}
		found = true;
	}
	if (!found)
		return false;

	if (schema->order == EUNO_ORDER_COMPARE &&
		(span->low.foreign != NULL || span->high.foreign != NULL))
	{
		/* Those are checked on each entry instead */
		for (int i = 0; i < nkeys; i++)
			if (keys[i].sk_attno == column + 1 &&
				!(keys[i].sk_flags & (SK_SEARCHNOTNULL | SK_SEARCHARRAY)))
				plan->absorbed[i] = false;
	}
	else
		*npoints = restrict_points(plan, column, span, *points, *npoints);
	return true;
}

/* Is a value equal to (or less than, ...) any element of the array? */
bool
euno_scan_in_array(const EunoKeyColumn *col, const EunoArray *array,
				   ScanKey key, Datum value)
{
	int			low = 0;
	int			high = array->nvalues;

	if (array->sorted && !array->recheck)
	{
		while (low < high)
		{
			int			middle = low + (high - low) / 2;
			int			order = euno_column_compare(col, array->values[middle],
													value);

			if (order == 0)
				return true;
			if (order < 0)
				low = middle + 1;
			else
				high = middle;
		}
		return false;
	}
	for (int i = 0; i < array->nelems; i++)
		if (DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation,
										   value, array->elems[i])))
			return true;
	return false;
}
