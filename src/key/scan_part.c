/*-------------------------------------------------------------------------
 *
 * scan_part.c
 *	  The parts of a scan with arrays.
 *
 * Each part takes one point of each array that chooses; the last array turns
 * fastest.  Since points are in index order, so are the parts, and a scan
 * that reads them one after the other returns entries in index order.
 *
 * In BYTES order a part's bounds are the bytes that all parts have in common
 * with the points put in.  Nothing longer than the longest key is needed: no
 * entry starts with what is left when more is cut.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/scan_private.h"

/*
 * Makes a column's points a choice between parts, unless that would make too
 * many of them: then false.
 */
bool
euno_scan_choose(EunoScanPlan *plan, int column, uint32 at,
				 const EunoPoint *points, uint32 npoints)
{
	EunoChoice *choice = &plan->choices[plan->nchoices];
	uint64		combinations = npoints;

	for (int i = 1; i < plan->nchoices; i++)
		combinations *= plan->choices[i].npoints;
	if (plan->nchoices > 0 && combinations > EUNO_MAX_COMBINATIONS)
		return false;

	choice->column = column;
	choice->at = at;
	choice->points = points;
	choice->npoints = npoints;
	choice->current = 0;
	plan->nchoices++;
	return true;
}

/* Puts the current points into the bytes of a bound. */
static uint32
assemble(const EunoScanPlan *plan, const uint8_t *constant, uint32 len,
		 uint8_t *buf)
{
	uint32		from = 0;
	uint32		to = 0;
	uint32		n;

	for (int i = 0; i < plan->nchoices; i++)
	{
		const EunoChoice *choice = &plan->choices[i];
		const EunoPoint *point = &choice->points[choice->current];

		n = Min(choice->at - from, EUNO_MAX_ENTRY - to);
		memcpy(buf + to, constant + from, n);
		from = choice->at;
		to += n;
		n = Min(point->len, EUNO_MAX_ENTRY - to);
		memcpy(buf + to, point->bytes, n);
		to += n;
	}
	n = Min(len - from, EUNO_MAX_ENTRY - to);
	memcpy(buf + to, constant + from, n);
	return to + n;
}

/* Sets the range to that of the current part. */
static void
set_range(EunoScanPlan *plan, EunoScanRange *range)
{
	if (plan->schema->order == EUNO_ORDER_COMPARE)
	{
		for (int i = 0; i < plan->nchoices; i++)
		{
			EunoChoice *choice = &plan->choices[i];
			Datum		value = choice->points[choice->current].value;

			plan->low_bound.cols[choice->column].value = value;
			plan->high_bound.cols[choice->column].value = value;
		}
		if (plan->whole)
			euno_scan_whole_key(plan, range);
		return;
	}
	range->lo.keylen = assemble(plan, plan->constant_low,
								plan->constant_low_len, plan->low_bytes);
	if (range->hi.key == plan->low_bytes)
		range->hi.keylen = range->lo.keylen;
	else
		range->hi.keylen = assemble(plan, plan->constant_high,
									plan->constant_high_len, plan->high_bytes);
}

/* Once the range is planned: keeps what is common to all parts. */
void
euno_scan_parts_begin(EunoScanPlan *plan, EunoScanRange *range)
{
	range->parts = true;
	if (plan->schema->order == EUNO_ORDER_BYTES)
	{
		if (plan->constant_low == NULL)
		{
			plan->constant_low = MemoryContextAlloc(plan->context,
													sizeof(plan->low_bytes));
			plan->constant_high = MemoryContextAlloc(plan->context,
													 sizeof(plan->high_bytes));
		}
		plan->constant_low_len = range->lo.keylen;
		plan->constant_high_len = range->hi.keylen;
		memcpy(plan->constant_low, range->lo.key, range->lo.keylen);
		memcpy(plan->constant_high, range->hi.key, range->hi.keylen);
	}
	set_range(plan, range);
}

void
euno_scan_part_first(EunoScanPlan *plan, bool forward, EunoScanRange *range)
{
	for (int i = 0; i < plan->nchoices; i++)
		plan->choices[i].current = forward ? 0 : plan->choices[i].npoints - 1;
	set_range(plan, range);
}

bool
euno_scan_part_next(EunoScanPlan *plan, bool forward, EunoScanRange *range)
{
	int			i = plan->nchoices - 1;

	while (i >= 0 && plan->choices[i].current ==
		   (forward ? plan->choices[i].npoints - 1 : 0))
		i--;
	if (i < 0)
		return false;
	plan->choices[i].current += forward ? 1 : -1;
	while (++i < plan->nchoices)
		plan->choices[i].current = forward ? 0 : plan->choices[i].npoints - 1;
	set_range(plan, range);
	return true;
}

void
euno_scan_part_get(const EunoScanPlan *plan, EunoScanPart *part)
{
	for (int i = 0; i < plan->nchoices; i++)
		part->element[i] = plan->choices[i].current;
}

void
euno_scan_part_set(EunoScanPlan *plan, const EunoScanPart *part,
				   EunoScanRange *range)
{
	for (int i = 0; i < plan->nchoices; i++)
		plan->choices[i].current = Min(part->element[i],
									   plan->choices[i].npoints - 1);
	set_range(plan, range);
}
