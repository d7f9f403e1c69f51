/*-------------------------------------------------------------------------
 *
 * scan_row.c
 *	  Scan keys that compare columns with a row: (a, b, c) > (1, 2, 3).
 *
 * To a column such a key is a comparison with one value: with the first, and
 * as an inclusive one, as long as there are more.  Where a column is held to
 * that very value, what is left is a comparison of the columns behind it.
 * Where the range ends at the value, the others lengthen that end of it.
 *
 * A key is no more than that: who uses them checks the rows that come out.  So
 * whatever cannot be said (a value in between) ends the row there, and entries
 * at the end of the range may be too many.  A NULL compares with nothing: what
 * is before it has to differ.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "key/scan_private.h"

/* The values of a row.  They last until the scan keys are set again. */
static void
open_row(EunoScanPlan *plan, const ScanKeyData *key, EunoScanRow *row)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(key->sk_argument);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
											  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header),
	.t_data = header};

	row->column = key->sk_attno - 1;
	row->strategy = euno_row_strategy_base(key->sk_strategy);
	row->at = 0;
	row->nvalues = desc->natts;
	if (row->nvalues > plan->schema->nkeys - row->column)
		elog(ERROR, "scan key on column %d of index \"%s\" has a row of %d values",
			 key->sk_attno, plan->schema->name, row->nvalues);
	heap_deform_tuple(&tuple, desc, row->values, row->isnull);
	for (int i = 0; i < row->nvalues; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, i);
		const EunoKeyColumn *col = &plan->schema->cols[row->column + i];

		/* What such a class compares with has the type of the column */
		row->types[i] = IsPolymorphicType(col->opcintype) ||
			col->opcintype == RECORDOID ? col->opcintype : attr->atttypid;
		if (!row->isnull[i] && attr->attlen == -1)
			row->values[i] = PointerGetDatum(PG_DETOAST_DATUM(row->values[i]));
	}
	for (int i = 1; i < row->nvalues; i++)
	{
		if (!row->isnull[i])
			continue;
		row->nvalues = i;
		row->strategy = row->strategy < BTEqualStrategyNumber ?
			BTLessStrategyNumber : BTGreaterStrategyNumber;
	}
	ReleaseTupleDesc(desc);
}

/* Makes a key of what is left of its row.  False if that cannot be true. */
static bool
set_key(const EunoScanPlan *plan, const EunoScanRow *row, ScanKey key)
{
	key->sk_attno = row->column + row->at + 1;
	key->sk_subtype = row->types[row->at];
	key->sk_argument = row->values[row->at];
	key->sk_collation = plan->schema->cols[key->sk_attno - 1].collation;
	key->sk_strategy = row->strategy;
	if (row->at + 1 < row->nvalues)
		key->sk_strategy = row->strategy < BTEqualStrategyNumber ?
			BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	return !row->isnull[row->at];
}

/*
 * Returns a copy of the keys, in which those with rows compare with one value.
 * *empty is set if one of them cannot be true.
 */
ScanKey
euno_scan_rows(EunoScanPlan *plan, ScanKey keys, int nkeys, bool *empty)
{
	ScanKey		own = euno_scan_own_keys(plan, keys, nkeys);
	MemoryContext old;

	if (plan->rows == NULL)
		plan->rows = MemoryContextAllocZero(plan->context, plan->max_keys *
											sizeof(EunoScanRow));
	old = MemoryContextSwitchTo(euno_scan_keys_context(plan));
	for (int i = 0; i < nkeys; i++)
	{
		EunoScanRow *row = &plan->rows[plan->nrows];

		if (own[i].sk_strategy <= BTMaxStrategyNumber)
			continue;
		if (row->slots == NULL)
			row->slots = MemoryContextAllocZero(plan->context,
												plan->schema->nkeys *
												sizeof(EunoScanSlot));
		row->key = i;
		open_row(plan, &own[i], row);
		*empty |= !set_key(plan, row, &own[i]);
		plan->nrows++;
	}
	MemoryContextSwitchTo(old);
	return own;
}

/*
 * The comparisons with one value that the range does not imply are to be
 * checked on each entry: looks for their operators, or gives them up.
 */
void
euno_scan_rows_residual(EunoScanPlan *plan, ScanKey keys)
{
	for (int i = 0; i < plan->nrows; i++)
	{
		int			k = plan->rows[i].key;
		ScanKey		key = &keys[k];
		const EunoKeyColumn *col = &plan->schema->cols[key->sk_attno - 1];
		Oid			op;

		if (plan->absorbed[k])
			continue;
		op = get_opfamily_member(col->opfamily, col->opcintype,
								 key->sk_subtype, key->sk_strategy);
		if (OidIsValid(op))
			fmgr_info_cxt(get_opcode(op), &key->sk_func, plan->keys_context);
		else
			plan->absorbed[k] = true;
	}
}

/* The end that a row's i-th value makes.  False if there is no such end. */
static bool
row_end(EunoScanPlan *plan, EunoScanRow *row, int i, EunoSpanEnd *end,
		bool *equal)
{
	const EunoKeyColumn *col = &plan->schema->cols[row->column + i];
	bool		is_low = row->strategy > BTEqualStrategyNumber;
	bool		strict = i + 1 == row->nvalues &&
		(row->strategy == BTLessStrategyNumber ||
		 row->strategy == BTGreaterStrategyNumber);
	ScanKeyData key = {.sk_attno = row->column + i + 1,
	.sk_subtype = row->types[i]};
	EunoScanSlot *slot = &row->slots[i];
	EunoArg		arg;

	if (row->isnull[i])
		return false;
	if (slot->attno != key.sk_attno || slot->subtype != key.sk_subtype)
		euno_scan_resolve(plan, slot, &key);
	euno_scan_convert(col, slot->conversion, row->values[i], &arg);
	if (arg.place == EUNO_ARG_UNKNOWN || arg.place == EUNO_ARG_AROUND)
		return false;
	end->set = true;
	end->value = arg.low;
	end->foreign = slot->conversion == EUNO_CONVERT_STRING ? slot : NULL;
	end->inclusive = euno_scan_inclusive(arg.place, is_low, !strict);
	*equal = arg.place == EUNO_ARG_EQUAL;
	return true;
}

/* Is an end of a column's span the value that a row has for the column? */
static bool
is_rows_value(EunoScanPlan *plan, EunoScanRow *row, const EunoSpanEnd *end)
{
	int			column = row->column + row->at;
	EunoSpanEnd own;
	bool		equal;

	if (!row_end(plan, row, row->at, &own, &equal) || !equal)
		return false;
	if (own.value == end->value &&
		(own.foreign == NULL) == (end->foreign == NULL))
		return true;
	return own.foreign == NULL && end->foreign == NULL &&
		euno_column_compare(&plan->schema->cols[column], own.value,
							end->value) == 0;
}

/*
 * A column is held to one value: rows that have it go on with the next column.
 * *empty is set if they cannot be true there.
 */
void
euno_scan_rows_advance(EunoScanPlan *plan, ScanKey keys, int column,
					   const EunoSpanEnd *value, bool *empty)
{
	for (int i = 0; i < plan->nrows; i++)
	{
		EunoScanRow *row = &plan->rows[i];

		if (row->column + row->at != column || row->at + 1 == row->nvalues ||
			!is_rows_value(plan, row, value))
			continue;
		row->at++;
		*empty |= !set_key(plan, row, &keys[row->key]);
	}
}

/*
 * The row of which an end of a column's span is the value, and which goes on;
 * NULL if there is none.
 */
EunoScanRow *
euno_scan_row_at(EunoScanPlan *plan, int column, const EunoSpanEnd *end,
				 bool is_low)
{
	for (int i = 0; i < plan->nrows; i++)
	{
		EunoScanRow *row = &plan->rows[i];

		if (row->column + row->at == column && row->at + 1 < row->nvalues &&
			(row->strategy > BTEqualStrategyNumber) == is_low &&
			end->set && end->inclusive && is_rows_value(plan, row, end))
			return row;
	}
	return NULL;
}

/*
 * The end that the row makes of "column" after an end of the columns before
 * it.  False if that was all, and also sets *last if this is.
 */
bool
euno_scan_row_end(EunoScanPlan *plan, EunoScanRow *row, int column,
				  EunoSpanEnd *end, bool *last)
{
	bool		equal;

	if (*last || column == row->column + row->nvalues ||
		!row_end(plan, row, column - row->column, end, &equal))
		return false;
	*last = !equal;				/* what is in between says it all */
	return true;
}
