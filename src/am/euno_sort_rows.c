/*-------------------------------------------------------------------------
 *
 * euno_sort_rows.c
 *	  Sorting entries in COMPARE order.
 *
 * A merge sort, which asks the comparator least.  It begins by asking whether
 * the halves are in order as they are, so of items that are in order it
 * compares each one with the next, once, and no more.  Before that, items are
 * brought about into order by the heads of their rows, where they have some.
 * So heads decide nothing here: if they are wrong, more is to be merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/euno_am.h"
#include "am/euno_sort_items.h"

/* So many with equal heads are left to the comparator. */
#define FEW_EQUAL	8

int
euno_sort_compare_rows(EunoRowOrder *order, const uint8_t *a, uint32 alen,
					   uint64 ahead, const uint8_t *b, uint32 blen,
					   uint64 bhead)
{
	int			result;

	alen -= EUNO_TID_BYTES;
	blen -= EUNO_TID_BYTES;
	result = euno_rows_compare(order, a, alen, ahead, b, blen, bhead);
	return result != 0 ? result : memcmp(a + alen, b + blen, EUNO_TID_BYTES);
}

static inline bool
in_order(EunoRowOrder *order, const uint8_t *buffer, const EunoSortItem *a,
		 const EunoSortItem *b)
{
	return euno_sort_compare_rows(order, buffer + a->offset, a->length, a->head,
								  buffer + b->offset, b->length,
								  b->head) <= 0;
}

static void
merge_sort(EunoRowOrder *order, const uint8_t *buffer, EunoSortItem *items,
		   EunoSortItem *scratch, uint32 n)
{
	uint32		half = n / 2;
	uint32		left = 0;
	uint32		right = half;
	uint32		to = 0;

	if (n < 2)
		return;
	CHECK_FOR_INTERRUPTS();
	merge_sort(order, buffer, items, scratch, half);
	merge_sort(order, buffer, items + half, scratch, n - half);
	if (in_order(order, buffer, &items[half - 1], &items[half]))
		return;
	memcpy(scratch, items, half * sizeof(EunoSortItem));
	while (left < half && right < n)
	{
		if (in_order(order, buffer, &scratch[left], &items[right]))
			items[to++] = scratch[left++];
		else
			items[to++] = items[right++];
	}
	memcpy(items + to, scratch + left, (half - left) * sizeof(EunoSortItem));
}

/* The items have the heads at "depth". */
static void
sort_by_heads(EunoRowOrder *order, const uint8_t *buffer, EunoSortItem *items,
			  EunoSortItem *scratch, uint32 n, uint32 depth)
{
	uint32		next = depth + sizeof(uint64);

	CHECK_FOR_INTERRUPTS();
	euno_sort_heads((uint64 *) items, (uint64 *) scratch, n, 2, 0);
	for (uint32 i = 0, end; next < euno_row_head_bytes(order) && i < n; i = end)
	{
		for (end = i + 1; end < n && items[end].head == items[i].head;)
			end++;
		if (end - i <= FEW_EQUAL)
			continue;
		for (uint32 j = i; j < end; j++)
			items[j].head = euno_row_head(order, buffer + items[j].offset,
										  items[j].length - EUNO_TID_BYTES,
										  next);
		sort_by_heads(order, buffer, items + i, scratch, end - i, next);
	}
}

void
euno_sort_rows(EunoRowOrder *order, const uint8_t *buffer,
			   EunoSortItem *items, EunoSortItem *scratch, uint32 n)
{
	if (euno_row_head_bytes(order) > 0)
		sort_by_heads(order, buffer, items, scratch, n, 0);
	EUNO_STOP_POINT("build-sort");
	merge_sort(order, buffer, items, scratch, n);
}
