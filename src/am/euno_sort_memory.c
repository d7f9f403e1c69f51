/*-------------------------------------------------------------------------
 *
 * euno_sort_memory.c
 *	  Sorting what is in memory.
 *
 * tuplesort calls a comparator for every pair; byte strings can be radix
 * sorted, unless they came in order: by eight bytes at a time, from where they
 * begin to differ; groups that are equal there go on with the next eight.
 * Rows, in COMPARE order, are sorted in euno_sort_rows.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/euno_sort_work.h"

static void
insertion_sort(EunoSortChunks chunks, EunoSortItem *items, uint32 n,
			   uint32 depth)
{
	for (uint32 i = 1; i < n; i++)
	{
		EunoSortItem item = items[i];
		uint32		j = i;

		for (; j > 0 && euno_sort_less(chunks, &item, &items[j - 1], depth);
			 j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
}

/* Sorts items that are equal in their first "depth" bytes. */
static void
sort_group(EunoSort *sort, EunoSortItem *items, uint32 n, uint32 depth)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < n; i++)
		items[i].head = euno_sort_head_at(euno_sort_at(sort->chunks, &items[i]),
										  items[i].length, depth);
	euno_sort_heads((uint64 *) items, (uint64 *) sort->scratch, n, 2, 0);

	for (uint32 i = 0; i < n;)
	{
		uint32		end = i + 1;

		while (end < n && items[end].head == items[i].head)
			end++;
		if (end - i > EUNO_SMALL_GROUP && depth < EUNO_SORT_COMPOSITE)
			sort_group(sort, items + i, end - i, depth + sizeof(uint64));
		else if (end - i > 1)
			insertion_sort(sort->chunks, items + i, end - i,
						   depth + sizeof(uint64));
		i = end;
	}
}

/* Sorts short composites that are equal in the words before this one. */
static void
sort_numbers(EunoSort *sort, uint64 *items, uint32 n, int word)
{
	int			words = sort->words;
	uint32		ordered = 1;

	CHECK_FOR_INTERRUPTS();
	while (ordered < n &&
		   euno_sort_in_order(items + (Size) (ordered - 1) * words,
							  items + (Size) ordered * words, word, words))
		ordered++;
	if (ordered == n)
		return;					/* as they often were found in the table */
	euno_sort_heads(items, (uint64 *) sort->scratch, n, words, word);
	if (word + 1 == words)
		return;
	for (uint32 i = 0, end; i < n; i = end)
	{
		uint64	   *first = items + (Size) i * words;

		for (end = i + 1; end < n &&
			 items[(Size) end * words + word] == first[word];)
			end++;
		if (end - i > 1)
			sort_numbers(sort, first, end - i, word + 1);
	}
}

void
euno_sort_memory(EunoSort *sort)
{
	uint32		scratch = EUNO_SCRATCH_ITEMS;

	if (sort->ascending)
		return;
	if (sort->rows != NULL)
		scratch = Max(scratch, sort->nitems / 2);
	sort->scratch = euno_sort_alloc(sort, scratch * EUNO_ITEM_BYTES(sort));
	if (sort->rows != NULL)
		euno_sort_rows(sort->rows, sort->chunks, sort->items, sort->scratch,
					   sort->nitems);
	else if (sort->is_short)
		sort_numbers(sort, sort->numbers, sort->nitems, 0);
	else
		sort_group(sort, sort->items, sort->nitems, sort->prefix);
	pfree(sort->scratch);
	sort->scratch = NULL;
}
