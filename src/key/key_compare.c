/*-------------------------------------------------------------------------
 *
 * key_compare.c
 *	  Comparing keys by their opclasses, in COMPARE order.
 *
 * Runs with no lock held and on private memory, so comparators are free to
 * read catalogs (records of their types), to palloc and to raise errors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/memutils.h"

#include "key/key_private.h"

/* Room for the longest value with a short varlena header, with a long one. */
typedef union Unshort
{
	char		data[VARATT_SHORT_MAX + VARHDRSZ];
	int64		align;
} Unshort;

/*
 * Most comparators copy a short varlena into palloc'd memory before they look
 * at it; a copy on the stack is cheaper.
 */
static inline Datum
unshort(const EunoKeyColumn *col, Datum value, Unshort *to)
{
	char	   *buf = to->data;
	const char *v = DatumGetPointer(value);
	Size		n;

	if (!col->unshort || !VARATT_IS_SHORT(v))
		return value;
	n = VARSIZE_SHORT(v) - VARHDRSZ_SHORT;
	SET_VARSIZE(buf, VARHDRSZ + n);
	memcpy(VARDATA(buf), VARDATA_SHORT(v), n);
	return PointerGetDatum(buf);
}

/*
 * A function of users may run queries: it may fail in the middle of one, or
 * come back here by way of one.  What such functions keep by means of their
 * FmgrInfo is that query's state.  A call within a call has its own.  After an
 * error it is forgotten; what was being executed goes with the
 * (sub)transaction.
 */
static pg_noinline int
compare_by_user(EunoKeyColumn *col, Datum a, Datum b)
{
	Datum		result;

	if (col->comparing)
	{
		MemoryContext state = AllocSetContextCreate(CurrentMemoryContext,
													"euno nested comparison",
													ALLOCSET_SMALL_SIZES);
		FmgrInfo	nested;

		fmgr_info_copy(&nested, &col->cmp, state);
		result = FunctionCall2Coll(&nested, col->collation, a, b);
		MemoryContextDelete(state);
		return DatumGetInt32(result);
	}
	if (col->state == NULL)
	{
		col->state = AllocSetContextCreate(col->cmp.fn_mcxt, "euno comparison",
										   ALLOCSET_SMALL_SIZES);
		fmgr_info_copy(&col->call, &col->cmp, col->state);
	}
	col->comparing = true;
	PG_TRY();
	{
		result = FunctionCall2Coll(&col->call, col->collation, a, b);
	}
	PG_CATCH();
	{
		MemoryContextSetParent(col->state, CurTransactionContext);
		col->state = NULL;
		col->comparing = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	col->comparing = false;
	return DatumGetInt32(result);
}

int
euno_column_compare(const EunoKeyColumn *col, Datum a, Datum b)
{
	Unshort		x;
	Unshort		y;

	if (col->kind != EUNO_KIND_OPAQUE && col->kind < EUNO_KIND_ARRAY)
		return euno_encode_compare(col, a, b);
	if (unlikely(col->cmp.fn_oid >= FirstNormalObjectId))
		return compare_by_user(unconstify(EunoKeyColumn *, col),
							   unshort(col, a, &x),
							   unshort(col, b, &y));
	return DatumGetInt32(FunctionCall2Coll(unconstify(FmgrInfo *, &col->cmp),
										   col->collation,
										   unshort(col, a, &x),
										   unshort(col, b, &y)));
}

static int
compare_sorted(const EunoKeyColumn *col, SortSupport sort, Datum a, Datum b)
{
	Unshort		x;
	Unshort		y;

	a = unshort(col, a, &x);
	b = unshort(col, b, &y);
	return sort->abbrev_full_comparator != NULL ?
		sort->abbrev_full_comparator(a, b, sort) : sort->comparator(a, b, sort);
}

/*
 * Compares two columns, NULLs and DESC taken into account; by "sort", if there
 * is one.
 */
static int
compare_column(const EunoKeyColumn *col, SortSupport sort, bool a_valid,
			   Datum a, bool b_valid, Datum b)
{
	int			result;

	if (a_valid && b_valid)
	{
		/* what is the same is equal, whatever the comparator is */
		if (col->attbyval && a == b)
			return 0;
		result = sort != NULL && col->kind == EUNO_KIND_OPAQUE ?
			compare_sorted(col, sort, a, b) : euno_column_compare(col, a, b);

		/* not negated: a comparator may return INT_MIN */
		if (col->desc)
			result = (result < 0) - (result > 0);
		return result;
	}
	if (a_valid == b_valid)
		return 0;
	return a_valid == (col->null_mark == EUNO_MARK_NULL_LAST) ? -1 : 1;
}

int
euno_compare_rows(const EunoKeySchema *schema, SortSupport sorts,
				  const uint8_t *a, uint32_t alen, const uint8_t *b,
				  uint32_t blen)
{
	EunoRowReader ra;
	EunoRowReader rb;

	if (schema->varlenas && alen == blen && memcmp(a, b, alen) == 0)
		return 0;
	euno_row_begin(&ra, schema->nkeys, a, alen);
	euno_row_begin(&rb, schema->nkeys, b, blen);
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];
		Datum		x;
		Datum		y;
		bool		x_valid = euno_row_next(&ra, col, i, &x);
		bool		y_valid = euno_row_next(&rb, col, i, &y);
		int			result = compare_column(col, sorts != NULL ? &sorts[i] : NULL,
												x_valid, x, y_valid, y);

		if (result != 0)
			return result;
	}
	return 0;
}

/* Compares a bound of the scan plan's with a stored key. */
static int
compare_bound(const EunoKeySchema *schema, const EunoKeyBound *bound,
			  const uint8_t *key, uint32_t keylen)
{
	EunoRowReader reader;

	euno_row_begin(&reader, schema->nkeys, key, keylen);
	for (int i = 0; i < bound->ncols; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];
		const EunoBoundColumn *want = &bound->cols[i];
		Datum		value;
		bool		valid = euno_row_next(&reader, col, i, &value);
		int			result;

		if (valid && want->class == EUNO_BOUND_VALUE && want->cross != NULL)
		{
			Unshort		x;

			result = DatumGetInt32(FunctionCall2Coll(want->cross,
													 col->collation,
													 unshort(col, value, &x),
													 want->value));
			/* that was column against bound; DESC turns it once more */
			if (col->desc)
				result = (result > 0) - (result < 0);
			else
				result = (result < 0) - (result > 0);
		}
		else if (valid && want->class == EUNO_BOUND_NOT_NULL)
			result = 0;
		else
			result = compare_column(col, NULL, want->class != EUNO_BOUND_NULL,
									want->value, valid, value);
		if (result != 0)
			return result;
	}
	return 0;
}

int
euno_key_compare(void *arg, const EunoPosition *pos, const uint8_t *key,
				 uint32_t keylen)
{
	const EunoKeySchema *schema = arg;

	if (pos->bound != NULL)
		return compare_bound(schema, pos->bound, key, keylen);
	if (pos->keylen == 0)
		return 0;				/* no columns: before or after everything */
	return euno_compare_rows(schema, NULL, pos->key, pos->keylen, key, keylen);
}
