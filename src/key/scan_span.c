/*-------------------------------------------------------------------------
 *
 * scan_span.c
 *	  All scan keys of one column, condensed into one span of values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/scan_private.h"

/*
 * Narrows one end of a span.  True if the span now implies the new end; false
 * if it was left alone because the two values have no common comparator.
 */
static bool
narrow(const EunoKeyColumn *col, EunoSpanEnd *end, bool is_low, Datum value,
	   bool inclusive, EunoScanSlot *foreign)
{
	if (end->set)
	{
		int			order;

		if (end->foreign != NULL || foreign != NULL)
			return false;
		order = euno_column_compare(col, value, end->value);
		if (order == 0)
		{
			end->inclusive = end->inclusive && inclusive;
			return true;
		}
		if ((order < 0) == is_low)
			return true;
	}
	end->set = true;
	end->value = value;
	end->inclusive = inclusive;
	end->foreign = foreign;
	return true;
}

/* The argument, detoasted once for all the comparisons to come. */
static Datum
plain_argument(EunoScanPlan *plan, EunoScanSlot *slot, Datum argument)
{
	MemoryContext old;

	if (!slot->varlena || !VARATT_IS_EXTENDED(DatumGetPointer(argument)))
		return argument;
	old = MemoryContextSwitchTo(plan->context);
	slot->copy = (Pointer) PG_DETOAST_DATUM(argument);
	MemoryContextSwitchTo(old);
	return PointerGetDatum(slot->copy);
}

/* One comparison; true if the span implies it. */
static bool
apply_comparison(EunoScanPlan *plan, const EunoKeyColumn *col,
				 EunoScanSlot *slot, const ScanKeyData *key, EunoSpan *span)
{
	StrategyNumber strategy = key->sk_strategy;
	Datum		argument = key->sk_argument;
	EunoScanSlot *foreign = NULL;
	bool		implied = true;
	EunoArg		arg;
	Datum		high;

	if (plan->schema->order == EUNO_ORDER_COMPARE)
		argument = plain_argument(plan, slot, argument);
	euno_scan_convert(col, slot->conversion, argument, &arg);
	if (arg.place == EUNO_ARG_UNKNOWN)
	{
		/* The opfamily's comparator can still find it in COMPARE order */
		if (plan->schema->order == EUNO_ORDER_BYTES || !slot->has_cross)
			return false;
		arg.place = EUNO_ARG_EQUAL;
		arg.low = argument;
		foreign = slot;
	}
	else if (slot->conversion == EUNO_CONVERT_STRING)
		foreign = slot;

	high = arg.place == EUNO_ARG_AROUND ? arg.high : arg.low;
	if (strategy >= BTEqualStrategyNumber &&
		!narrow(col, &span->low, true, arg.low,
				euno_scan_inclusive(arg.place, true,
									strategy != BTGreaterStrategyNumber),
				foreign))
		implied = false;
	if (strategy <= BTEqualStrategyNumber &&
		!narrow(col, &span->high, false, high,
				euno_scan_inclusive(arg.place, false,
									strategy != BTLessStrategyNumber),
				foreign))
		implied = false;

	return implied && arg.place != EUNO_ARG_AROUND && !arg.recheck;
}

/*
 * Compares the two ends of a span.  False if the opfamily has no comparator
 * for them; else the span is found to be empty, or one value, or neither.
 */
static bool
compare_ends(const EunoKeyColumn *col, EunoSpan *span)
{
	EunoSpanEnd *low = &span->low;
	EunoSpanEnd *high = &span->high;
	int			order;

	if (low->value == high->value && low->foreign == high->foreign)
		order = 0;
	else if (low->foreign == NULL && high->foreign == NULL)
		order = euno_column_compare(col, low->value, high->value);
	else if (low->foreign == NULL && high->foreign->has_cross)
		order = DatumGetInt32(FunctionCall2Coll(&high->foreign->cross,
												col->collation, low->value,
												high->value));
	else if (high->foreign == NULL && low->foreign->has_cross)
	{
		order = DatumGetInt32(FunctionCall2Coll(&low->foreign->cross,
												col->collation, high->value,
												low->value));
		order = (order < 0) - (order > 0);
	}
	else
		return false;

	span->equal = order == 0 && low->inclusive && high->inclusive;
	span->empty = order > 0 || (order == 0 && !span->equal);
	return true;
}

/*
 * Condenses keys[first .. nkeys) that are on "column" (from 0), and marks as
 * absorbed what the span implies.
 */
void
euno_scan_span(EunoScanPlan *plan, ScanKey keys, int first, int nkeys,
			   int column, EunoSpan *span)
{
	const EunoKeyColumn *col = &plan->schema->cols[column];

	memset(span, 0, sizeof(*span));
	for (int i = first; i < nkeys; i++)
	{
		ScanKey		key = &keys[i];

		if (key->sk_attno != column + 1)
			continue;
		if (key->sk_flags & SK_SEARCHNULL)
			span->null = plan->absorbed[i] = true;
		else if (key->sk_flags & SK_SEARCHNOTNULL)
			span->not_null = plan->absorbed[i] = true;
		else if (key->sk_flags & SK_SEARCHARRAY)
			span->not_null = true;	/* see euno_scan_points */
		else
		{
			/* btree's operators are strict */
			span->not_null = true;
			plan->absorbed[i] =
				apply_comparison(plan, col, euno_scan_slot(plan, i, key), key,
								 span);
		}
	}

	if (span->null && span->not_null)
		span->empty = true;
	if (span->empty || !span->low.set || !span->high.set)
		return;
	if (!compare_ends(col, span))
	{
		/* Keep the lower end alone, and check all keys of this column */
		span->high.set = false;
		for (int i = first; i < nkeys; i++)
			if (keys[i].sk_attno == column + 1 &&
				!(keys[i].sk_flags & SK_SEARCHNOTNULL))
				plan->absorbed[i] = false;
	}
}
