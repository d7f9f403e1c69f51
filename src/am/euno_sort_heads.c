/*-------------------------------------------------------------------------
 *
 * euno_sort_heads.c
 *	  Sorting by eight bytes.
 *
 * A byte at a time, by counting.  Many items are first parted in place by
 * their first byte that differs; so no second array of that size is needed,
 * for new memory takes as long as sorting, and what follows stays in the
 * cache.  Fewer are sorted least significant digit first; but only by as many
 * of the first bytes as leave hardly two items together, which are then put
 * into order by the rest.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/euno_sort_items.h"

#define DIGITS		((int) sizeof(uint64))

/* This many items may be left together, on average. */
#define LEFT_TOGETHER	4

typedef struct HeadSort
{
	int			words;			/* of an item */
	int			word;			/* to sort by */
	uint64	   *scratch;		/* EUNO_SCRATCH_ITEMS */
	uint32		counts[DIGITS][256];
} HeadSort;

static pg_attribute_always_inline uint32
digit_of(uint64 head, int digit)
{
	return (head >> (8 * digit)) & 0xFF;
}

static pg_attribute_always_inline void
copy_item(uint64 *to, const uint64 *from, int words)
{
	for (int i = 0; i < words; i++)
		to[i] = from[i];
}

static void
insertion_sort(const HeadSort *sort, uint64 *items, uint32 n)
{
	int			words = sort->words;
	int			word = sort->word;

	for (uint32 i = 1; i < n; i++)
	{
		uint64		item[EUNO_ITEM_WORDS];
		uint32		j = i;

		copy_item(item, items + (Size) i * words, words);
		for (; j > 0 && item[word] < items[(Size) (j - 1) * words + word]; j--)
			copy_item(items + (Size) j * words, items + (Size) (j - 1) * words,
					  words);
		copy_item(items + (Size) j * words, item, words);
	}
}

static pg_attribute_always_inline void
count_digit(HeadSort *sort, const uint64 *items, uint32 n, int digit,
			int words)
{
	uint32	   *count = sort->counts[digit];
	const uint64 *end = items + (Size) n * words;

	memset(count, 0, sizeof(sort->counts[digit]));
	for (const uint64 *head = items + sort->word; head < end; head += words)
		count[digit_of(*head, digit)]++;
}

/*
 * How many of the lowest digits can wait until the others, from "top" down,
 * are sorted by.  Those are counted.
 */
static int
lowest_needed(HeadSort *sort, const uint64 *items, uint32 n, int top)
{
	uint64		groups = LEFT_TOGETHER;
	int			digit = top + 1;

	while (digit > 0 && groups < n)
	{
		uint32		values = 0;

		count_digit(sort, items, n, --digit, sort->words);
		for (int value = 0; value < 256; value++)
			values += sort->counts[digit][value] > 0;
		groups *= values;
	}
	return digit;
}

/* Turns counts into where each value's items begin. */
static void
begin_positions(uint32 *count)
{
	uint32		position = 0;

	for (int value = 0; value < 256; value++)
	{
		uint32		here = count[value];

		count[value] = position;
		position += here;
	}
}

/* Moves the items into the order of one digit.  Destroys the counts. */
static pg_attribute_always_inline void
move_by_digit(HeadSort *sort, const uint64 *from, uint64 *to, uint32 n,
			  int digit, int words)
{
	uint32	   *count = sort->counts[digit];
	const uint64 *end = from + (Size) n * words;

	begin_positions(count);
	for (; from < end; from += words)
		copy_item(to + (Size) count[digit_of(from[sort->word], digit)]++ * words,
				  from, words);
}

/* Parts the items by one digit, in place; "ends": where each value's end. */
static pg_attribute_always_inline void
part_by_digit(HeadSort *sort, uint64 *items, int digit, int words,
			  uint32 *ends)
{
	uint32	   *next = sort->counts[digit];

	for (uint32 value = 0, end = 0; value < 256; value++)
		ends[value] = end += next[value];
	begin_positions(next);
	for (uint32 value = 0; value < 256; value++)
	{
		while (next[value] < ends[value])
		{
			uint64	   *place = items + (Size) next[value] * words;
			uint32		wanted = digit_of(place[sort->word], digit);

			/* Each exchange brings one item to where it belongs. */
			while (wanted != value)
			{
				uint64	   *other = items + (Size) next[wanted]++ * words;
				uint64		item[EUNO_ITEM_WORDS];

				copy_item(item, other, words);
				copy_item(other, place, words);
				copy_item(place, item, words);
				wanted = digit_of(place[sort->word], digit);
			}
			next[value]++;
		}
	}
}

static void sort_items(HeadSort *sort, uint64 *items, uint32 n, int top);

/*
 * The same as sort_items, of more than there is scratch memory for: parted in
 * place by the first digit that tells any apart, then each value's by the
 * rest.
 */
static void
sort_many(HeadSort *sort, uint64 *items, uint32 n, int top)
{
	uint32		ends[256];
	uint32		start = 0;

	CHECK_FOR_INTERRUPTS();
	count_digit(sort, items, n, top, sort->words);
	while (sort->counts[top][digit_of(items[sort->word], top)] == n)
	{
		if (top == 0)
			return;				/* all are equal */
		count_digit(sort, items, n, --top, sort->words);
	}
	if (sort->words == 2)
		part_by_digit(sort, items, top, 2, ends);
	else
		part_by_digit(sort, items, top, EUNO_ITEM_WORDS, ends);
	for (int value = 0; value < 256 && top > 0; value++)
	{
		if (ends[value] - start > 1)
			sort_items(sort, items + (Size) start * sort->words,
					   ends[value] - start, top - 1);
		start = ends[value];
	}
}

/* Sorts items whose digits above "top" are equal. */
static void
sort_items(HeadSort *sort, uint64 *items, uint32 n, int top)
{
	uint64	   *from = items;
	uint64	   *to = sort->scratch;
	int			words = sort->words;
	int			lowest;

	if (n <= EUNO_SMALL_GROUP)
	{
		insertion_sort(sort, items, n);
		return;
	}
	if (n > EUNO_SCRATCH_ITEMS)
	{
		sort_many(sort, items, n, top);
		return;
	}
	lowest = lowest_needed(sort, items, n, top);
	for (int digit = lowest; digit <= top; digit++)
	{
		uint64	   *swap = from;

		if (sort->counts[digit][digit_of(items[sort->word], digit)] == n)
			continue;
		if (words == 2)
			move_by_digit(sort, from, to, n, digit, 2);
		else
			move_by_digit(sort, from, to, n, digit, EUNO_ITEM_WORDS);
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, (Size) n * words * sizeof(uint64));

	items += sort->word;
	for (uint32 i = 0, end; lowest > 0 && i < n; i = end)
	{
		uint64		first = items[(Size) i * words] >> (8 * lowest);

		for (end = i + 1; end < n &&
			 items[(Size) end * words] >> (8 * lowest) == first;)
			end++;
		if (end - i > 1)
			sort_items(sort, items + (Size) i * words - sort->word, end - i,
					   lowest - 1);
	}
}

void
euno_sort_heads(uint64 *items, uint64 *scratch, uint32 n, int words,
				int word)
{
	static HeadSort sort;		/* it is large; nothing in here calls foreign
								 * code, so there is never a second one */

	sort.words = words;
	sort.word = word;
	sort.scratch = scratch;
	sort_items(&sort, items, n, DIGITS - 1);
}
