/*-------------------------------------------------------------------------
 *
 * euno_sort_heads.c
 *	  Sorting by eight bytes.
 *
 * Least significant digit first, a byte at a time; but only by as many of the
 * first bytes as leave hardly two items together.  Those are put into order by
 * the rest.  (Of 3 million random heads three bytes are sorted by instead of
 * eight.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/euno_sort_items.h"

#define DIGITS		((int) sizeof(uint64))

/* So many items may be left together, on average. */
#define LEFT_TOGETHER	4

static inline uint32
digit_of(const EunoSortItem *item, int digit)
{
	return (item->head >> (8 * digit)) & 0xFF;
}

static void
insertion_sort(EunoSortItem *items, uint32 n)
{
	for (uint32 i = 1; i < n; i++)
	{
		EunoSortItem item = items[i];
		uint32		j = i;

		for (; j > 0 && item.head < items[j - 1].head; j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
}

/* How many of the lowest digits need not be sorted by, before the others are. */
static int
lowest_needed(uint32 counts[DIGITS][256], uint32 n)
{
	uint64		groups = LEFT_TOGETHER;
	int			digit = DIGITS;

	while (digit > 0 && groups < n)
	{
		uint32		values = 0;

		digit--;
		for (int value = 0; value < 256; value++)
			values += counts[digit][value] > 0;
		groups *= values;
	}
	return digit;
}

/* Moves the items into the order of one digit.  Destroys the counts. */
static void
move_by_digit(const EunoSortItem *from, EunoSortItem *to, uint32 n,
			  uint32 *count, int digit)
{
	uint32		position = 0;

	for (int value = 0; value < 256; value++)
	{
		uint32		here = count[value];

		count[value] = position;
		position += here;
	}
	for (uint32 i = 0; i < n; i++)
		to[count[digit_of(&from[i], digit)]++] = from[i];
}

void
euno_sort_heads(EunoSortItem *items, EunoSortItem *scratch, uint32 n)
{
	static uint32 counts[DIGITS][256];
	EunoSortItem *from = items;
	EunoSortItem *to = scratch;
	int			lowest;

	if (n <= EUNO_SMALL_GROUP)
	{
		insertion_sort(items, n);
		return;
	}
	memset(counts, 0, sizeof(counts));
	for (uint32 i = 0; i < n; i++)
		for (int digit = 0; digit < DIGITS; digit++)
			counts[digit][digit_of(&items[i], digit)]++;

	lowest = lowest_needed(counts, n);
	for (int digit = lowest; digit < DIGITS; digit++)
	{
		EunoSortItem *swap = from;

		if (counts[digit][digit_of(&items[0], digit)] == n)
			continue;
		move_by_digit(from, to, n, counts[digit], digit);
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(EunoSortItem));

	for (uint32 i = 0, end; lowest > 0 && i < n; i = end)
	{
		uint64		first = items[i].head >> (8 * lowest);

		for (end = i + 1; end < n && items[end].head >> (8 * lowest) == first;)
			end++;
		if (end - i > 1)
			euno_sort_heads(items + i, scratch, end - i);
	}
}
