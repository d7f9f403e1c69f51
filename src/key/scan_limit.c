/*-------------------------------------------------------------------------
 *
 * scan_limit.c
 *	  Conditions on columns after the end of the range, in BYTES order.
 *
 * An entry's columns are told apart in its bytes and held against the limits;
 * nothing is decoded and no operator is called.  From an entry that is outside
 * follows where the next one can be that is inside: the scan goes there
 * directly.  That is how a condition on the second column alone reads a few
 * entries for each value of the first (a "skip scan").
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/scan_private.h"

/*
 * Compares a column's bytes with one end; the column's bytes may start with
 * the end's, never the other way round unless they are equal.
 */
static inline int
compare_end(const uint8_t *bytes, uint32 len, const EunoPosition *end)
{
	int			result = memcmp(bytes, end->key, Min(len, end->keylen));

	return result != 0 ? result : -end->side;
}

/*
 * Is a column's value within its limit?  If not, points[*next] is the first
 * one above it; without points, *next is 0 below the limit and 1 above it.
 */
bool
euno_limit_admits(const EunoLimit *limit, const uint8_t *bytes, uint32 len,
				  uint32 *next)
{
	uint32		low = 0;
	uint32		high = limit->npoints;

	if (limit->npoints == 0)
	{
		*next = 0;
		if (limit->low.key != NULL && compare_end(bytes, len, &limit->low) < 0)
			return false;
		*next = 1;
		return limit->high.key == NULL ||
			compare_end(bytes, len, &limit->high) < 0;
	}
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;
		const EunoPoint *point = &limit->points[middle];
		int			order = memcmp(point->bytes, bytes, Min(point->len, len));

		if (order == 0)
			return true;		/* encodings are prefix-free */
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*next = low;
	return false;
}

/* One end of a span as the bytes of a column. */
static void
encode_end(EunoScanPlan *plan, const EunoKeyColumn *col,
		   const EunoSpanEnd *end, bool is_low, EunoPosition *pos)
{
	uint8_t    *buf = euno_scan_alloc(plan, end->set ? EUNO_MAX_ENTRY + 8 : 1);
	bool		cut;

	if (end->set)
		euno_scan_set_position(pos, buf,
							   euno_scan_append(col, end, buf, 0, &cut),
							   end->inclusive == is_low ? -1 : 1);
	else
	{
		buf[0] = is_low ? EUNO_MARK_VALUE : EUNO_MARK_VALUE + 1;
		euno_scan_set_position(pos, buf, 1, -1);
	}
}

/* A span as a limit.  False if no key can be so long. */
bool
euno_scan_span_limit(EunoScanPlan *plan, int column, const EunoSpan *span,
					 EunoLimit *limit)
{
	const EunoKeyColumn *col = &plan->schema->cols[column];
	EunoPoint  *point;
	uint8_t    *buf;
	bool		cut = false;

	memset(limit, 0, sizeof(*limit));
	if (!span->null && !span->equal && !span->not_null)
		return true;
	limit->set = true;
	if (!span->null && !span->equal)
	{
		encode_end(plan, col, col->desc ? &span->high : &span->low, true,
				   &limit->low);
		encode_end(plan, col, col->desc ? &span->low : &span->high, false,
				   &limit->high);
		return true;
	}
	point = euno_scan_alloc(plan, sizeof(EunoPoint));
	buf = euno_scan_alloc(plan, span->null ? 1 : EUNO_MAX_ENTRY + 8);
	memset(point, 0, sizeof(*point));
	point->bytes = buf;
	point->len = 1;
	if (span->null)
		buf[0] = col->null_mark;
	else
		point->len = euno_scan_append(col, &span->low, buf, 0, &cut);
	limit->points = point;
	limit->npoints = 1;
	return !cut;
}

/* The least or the greatest number within an end; false if there is none. */
static bool
end_number(const EunoPosition *end, uint32 width, bool is_low, uint64 *number)
{
	if (end->key == NULL)
		return false;
	if (end->keylen == 1)
	{
		*number = is_low ? 0 : PG_UINT64_MAX >> (64 - 8 * width);
		return end->key[0] == (is_low ? EUNO_MARK_VALUE : EUNO_MARK_VALUE + 1) &&
			end->side < 0;
	}
	if (end->keylen != 1 + width || end->key[0] != EUNO_MARK_VALUE)
		return false;
	*number = euno_number_get(end->key + 1, width);
	if (is_low == (end->side < 0))
		return true;
	*number += is_low ? 1 : -1;
	return *number != 0 && *number != PG_UINT64_MAX;
}

/* A limit as numbers, if it can be. */
static void
set_numbers(const EunoKeyColumn *col, EunoLimit *limit)
{
	uint32		width = col->attlen;
	uint64		most;

	limit->width = 0;
	if (col->kind > EUNO_KIND_FIXED || limit->npoints > 1 ||
		(width != 2 && width != 4 && width != 8))
		return;
	if (limit->npoints == 1)
	{
		if (limit->points->len != 1 + width)
			return;				/* NULL */
		limit->least = most = euno_number_get(limit->points->bytes + 1, width);
	}
	else if (!end_number(&limit->low, width, true, &limit->least) ||
			 !end_number(&limit->high, width, false, &most) ||
			 limit->least > most)
		return;
	limit->more = most - limit->least;
	limit->width = width;
}

/* Limits a column. */
void
euno_scan_limit_column(EunoScanPlan *plan, int column, const EunoLimit *limit)
{
	if (plan->limits == NULL)
		plan->limits = MemoryContextAlloc(plan->context, plan->schema->nkeys *
										  sizeof(EunoLimit));
	for (int i = plan->limit_cols; i < column; i++)
		plan->limits[i].set = false;
	plan->limits[column] = *limit;
	set_numbers(&plan->schema->cols[column], &plan->limits[column]);
	plan->limit_cols = column + 1;
}

/*
 * Makes the keys of the columns from "column" on limits, as far as they can
 * be; *empty is set if they contradict each other.
 */
void
euno_scan_limit_rest(EunoScanPlan *plan, ScanKey keys, int first, int nkeys,
					 int column, bool *empty)
{
	for (; column < plan->schema->nkeys; column++)
	{
		bool		found = false;
		EunoSpan	span;
		EunoLimit	limit;
		EunoPoint  *points;

		for (int i = first; i < nkeys && !found; i++)
			found = keys[i].sk_attno == column + 1;
		if (!found)
			continue;
		euno_scan_span(plan, keys, first, nkeys, column, &span);
		if (span.empty)
		{
			*empty = true;
			return;
		}
		memset(&limit, 0, sizeof(limit));
		if (euno_scan_points(plan, keys, nkeys, column, &span, &points,
							 &limit.npoints))
		{
			limit.set = true;
			limit.points = points;
			*empty = limit.npoints == 0;
		}
		else
			*empty = !euno_scan_span_limit(plan, column, &span, &limit);
		if (*empty)
			return;
		if (limit.set)
			euno_scan_limit_column(plan, column, &limit);
	}
}

/* What follows a column's marker and value; without a call for most. */
static inline const uint8_t *
skip_column(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end)
{
	if (*p++ != EUNO_MARK_VALUE)
		return p;
	if (col->kind > EUNO_KIND_FIXED)
		return euno_encode_skip(col, p, end);
	if (unlikely(end - p < col->attlen))
		euno_row_overrun(col->attlen, end - p);
	return p + col->attlen;
}

/* Is an entry within all limits? */
bool
euno_scan_within_limits(const EunoScanPlan *plan, const uint8_t *key,
						uint32_t keylen)
{
	const uint8_t *p = key;
	const uint8_t *end = key + keylen;

	for (int i = 0; i < plan->limit_cols; i++)
	{
		const EunoLimit *limit = &plan->limits[i];
		const uint8_t *start = p;
		uint32		next;

		if (p >= end)
			return false;
		p = skip_column(&plan->schema->cols[i], p, end);
		if (!limit->set)
			continue;
		if (limit->width > 0)
		{
			if (*start != EUNO_MARK_VALUE ||
				euno_number_get(start + 1, limit->width) - limit->least > limit->more)
				return false;
		}
		else if (!euno_limit_admits(limit, start, p - start, &next))
			return false;
	}
	return true;
}

bool
euno_scan_sieve(const EunoScanPlan *plan, EunoSieve *sieve, bool *decides)
{
	const EunoKeySchema *schema = plan->schema;
	uint32		nlimits = 0;
	uint32		len = 0;

	sieve->bits = 0;
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoLimit *limit = i < plan->limit_cols ? &plan->limits[i] : NULL;

		/* Without a NULL all keys have one length, and no other has it. */
		if (schema->cols[i].kind > EUNO_KIND_FIXED)
			return false;
		nlimits += limit != NULL && limit->set;
		if (sieve->bits == 0 && limit != NULL && limit->set && limit->width > 0)
			*sieve = (EunoSieve)
			{
				.at = len + 1,.bits = 8 * limit->width,.least = limit->least,
				.more = limit->more
			};
		len += 1 + schema->cols[i].attlen;
	}
	sieve->keylen = len;
	*decides = nlimits == 1 && plan->nresidual == 0;
	return sieve->bits > 0;
}

/*
 * The place after (forward) or before the first "len" bytes of a key, and
 * then that of "end", if there is one.
 */
static void
set_target(EunoScanPlan *plan, const uint8_t *key, uint32 len,
		   const uint8_t *end, uint32 endlen, int8 side, EunoPosition *target)
{
	memcpy(plan->jump_bytes, key, len);
	memcpy(plan->jump_bytes + len, end, endlen);
	euno_scan_set_position(target, plan->jump_bytes,
						   Min(len + endlen, EUNO_MAX_ENTRY), side);
}

bool
euno_scan_jump(EunoScanPlan *plan, const uint8_t *key, uint32_t keylen,
			   bool forward, EunoPosition *target)
{
	const uint8_t *p = key;
	const uint8_t *end = key + keylen;

	for (int i = 0; i < plan->limit_cols; i++)
	{
		const EunoLimit *limit = &plan->limits[i];
		const uint8_t *start = p;
		uint32		prefix = start - key;
		uint32		next;

		if (p >= end)
			return false;
		p = skip_column(&plan->schema->cols[i], p, end);
		if (!limit->set ||
			euno_limit_admits(limit, start, p - start, &next))
			continue;

		if (limit->npoints > 0 && (forward ? next < limit->npoints : next > 0))
		{
			const EunoPoint *point = &limit->points[forward ? next : next - 1];

			set_target(plan, key, prefix, point->bytes, point->len,
					   forward ? -1 : 1, target);
		}
		else if (limit->npoints == 0 && forward == (next == 0))
		{
			const EunoPosition *pos = forward ? &limit->low : &limit->high;

			set_target(plan, key, prefix, pos->key, pos->keylen, pos->side,
					   target);
		}
		else
			set_target(plan, key, prefix, key, 0, forward ? 1 : -1, target);
		return true;
	}
	return false;
}
