/*-------------------------------------------------------------------------
 *
 * euno_sort_rows.c
 *	  Sorting entries in COMPARE order.
 *
 * Items are brought roughly into order by the heads of their rows, where they
 * have some.  Those that the comparator finds out of place, hardly any if the
 * heads are good, are put apart, sorted and merged with the others; so it is
 * asked once for each two neighbors, and no more.  If they are many, all are
 * sorted by a merge sort, which asks least.  So heads decide nothing here: if
 * they are wrong, more is to be merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/euno_am.h"
#include "am/euno_debug.h"
#include "am/euno_sort_items.h"
#include "core/euno_shared.h"

/* This many with equal heads are left to the comparator. */
#define FEW_EQUAL		8

/* Guesses are tried with so many items; one in so many may be out of place. */
#define SAMPLE			1024
#define SAMPLE_WRONG	32

/* This many may be put apart: half as many as there is scratch memory for. */
#define MOST_APART(n)	((n) / 4)

/* So many that are out of place, one after the other: it is those before. */
#define MANY_APART		8

/* Each time a row is read, the one this many further on is asked for. */
#define AHEAD			16

#define INTERRUPTS_EVERY	1024

typedef struct RowSort
{
	EunoRowOrder *order;
	EunoSortChunks chunks;
	EunoSortItem *items;		/* all */
	uint32		n;
	EunoSortItem *scratch;
} RowSort;

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
in_order(const RowSort *sort, const EunoSortItem *a, const EunoSortItem *b)
{
	return euno_sort_compare_rows(sort->order, euno_sort_at(sort->chunks, a),
								  a->length, a->head,
								  euno_sort_at(sort->chunks, b), b->length,
								  b->head) <= 0;
}

/* Rows lie all over the chunks; this one of n items is read now. */
static inline void
fetch_ahead(const RowSort *sort, const EunoSortItem *items, uint32 n, uint32 i)
{
	if (n - i > AHEAD)
		euno_prefetch(euno_sort_at(sort->chunks, &items[i + AHEAD]));
}

/*
 * Asks first whether the halves are in order as they are.  "scratch": for half
 * as many.
 */
static void
merge_sort(const RowSort *sort, EunoSortItem *items, uint32 n,
		   EunoSortItem *scratch)
{
	uint32		half = n / 2;
	uint32		left = 0;
	uint32		right = half;
	uint32		to = 0;

	if (n < 2)
		return;
	CHECK_FOR_INTERRUPTS();
	merge_sort(sort, items, half, scratch);
	merge_sort(sort, items + half, n - half, scratch);
	if (in_order(sort, &items[half - 1], &items[half]))
		return;
	memcpy(scratch, items, half * sizeof(EunoSortItem));
	while (left < half && right < n)
	{
		if (in_order(sort, &scratch[left], &items[right]))
		{
			fetch_ahead(sort, scratch, half, left);
			items[to++] = scratch[left++];
		}
		else
		{
			fetch_ahead(sort, items, n, right);
			items[to++] = items[right++];
		}
	}
	memcpy(items + to, scratch + left, (half - left) * sizeof(EunoSortItem));
}

static inline uint64
head_of(const RowSort *sort, const EunoSortItem *item, uint32 depth)
{
	return euno_row_head(sort->order, euno_sort_at(sort->chunks, item),
						 item->length - EUNO_TID_BYTES, depth);
}

/* Are the first columns of all these the same, byte by byte? */
static bool
same_first(const RowSort *sort, const EunoSortItem *items, uint32 n)
{
	for (uint32 i = 1; i < n; i++)
	{
		if ((i % INTERRUPTS_EVERY) == 0)
			CHECK_FOR_INTERRUPTS();
		fetch_ahead(sort, items, n, i);
		if (!euno_row_same_first(sort->order, euno_sort_at(sort->chunks, items),
								 items->length - EUNO_TID_BYTES,
								 euno_sort_at(sort->chunks, &items[i]),
								 items[i].length - EUNO_TID_BYTES))
			return false;
	}
	return true;
}

/*
 * Items of one head and one value of the first column, by the second one.  They
 * have their heads again afterwards.
 */
static void
sort_by_second(const RowSort *sort, EunoSortItem *items, uint32 n)
{
	uint64		head = items->head;

	for (uint32 i = 0; i < n; i++)
	{
		if ((i % INTERRUPTS_EVERY) == 0)
			CHECK_FOR_INTERRUPTS();
		items[i].head =
			euno_row_second_head(sort->order, euno_sort_at(sort->chunks, &items[i]),
								 items[i].length - EUNO_TID_BYTES);
	}
	euno_sort_heads((uint64 *) items, (uint64 *) sort->scratch, n, 2, 0);
	for (uint32 i = 0, end; i < n; i = end)
	{
		uint64		second = items[i].head;

		for (end = i; end < n && items[end].head == second; end++)
			items[end].head = head;
		merge_sort(sort, items + i, end - i, sort->scratch);
	}
}

/* The items have the heads at "depth". */
static void
sort_by_heads(const RowSort *sort, EunoSortItem *items, uint32 n, uint32 depth)
{
	uint32		next = depth + sizeof(uint64);

	CHECK_FOR_INTERRUPTS();
	euno_sort_heads((uint64 *) items, (uint64 *) sort->scratch, n, 2, 0);
	for (uint32 i = 0, end; i < n; i = end)
	{
		for (end = i + 1; end < n && items[end].head == items[i].head;)
			end++;
		if (end - i > FEW_EQUAL && next < euno_row_head_bytes(sort->order) &&
			euno_row_head_goes_on(sort->order, items[i].head))
		{
			for (uint32 j = i; j < end; j++)
				items[j].head = head_of(sort, &items[j], next);
			sort_by_heads(sort, items + i, end - i, next);
		}
		else if (end - i > FEW_EQUAL && euno_row_has_second(sort->order) &&
				 same_first(sort, items + i, end - i))
			sort_by_second(sort, items + i, end - i);
		else if (end - i > 1)
			merge_sort(sort, items + i, end - i, sort->scratch);
	}
}

/* Is it worth to guess? */
static bool
learn(const RowSort *sort, const EunoSortItem *items, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		if ((i % INTERRUPTS_EVERY) == 0)
			CHECK_FOR_INTERRUPTS();
		euno_row_learn(sort->order, euno_sort_at(sort->chunks, &items[i]),
					   items[i].length - EUNO_TID_BYTES);
	}
	return euno_row_learned(sort->order);
}

static void
set_heads(const RowSort *sort, EunoSortItem *items, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		if ((i % INTERRUPTS_EVERY) == 0)
			CHECK_FOR_INTERRUPTS();
		items[i].head = head_of(sort, &items[i], 0);
	}
}

/* Of some items, in the order of guesses, are hardly any out of place? */
static bool
guesses_are_good(const RowSort *sort)
{
	uint32		step = sort->n / SAMPLE + 1;
	uint32		n = sort->n / step;
	uint32		wrong = 0;
	EunoSortItem sample[SAMPLE];

	for (uint32 i = 0; i < n; i++)
		sample[i] = sort->items[i * step];
	if (!learn(sort, sample, n))
		return euno_wrong_guesses;
	set_heads(sort, sample, n);
	euno_sort_heads((uint64 *) sample, (uint64 *) sort->scratch, n, 2, 0);
	for (uint32 i = 1; i < n; i++)
		wrong += sample[i - 1].head != sample[i].head &&
			!in_order(sort, &sample[i - 1], &sample[i]);
	return wrong <= n / SAMPLE_WRONG || euno_wrong_guesses;
}

/*
 * Puts items apart, into scratch memory, until the first "kept" ones are in
 * order.  If they are too many, all are put back, in any order.
 */
static bool
put_apart(const RowSort *sort, uint32 *kept)
{
	EunoSortItem *items = sort->items;
	EunoSortItem *apart = sort->scratch;
	uint32		most = MOST_APART(sort->n);
	uint32		in_a_row = 0;
	uint32		n = 1;
	uint32		i;

	for (i = 1; i < sort->n && i - n <= most; i++)
	{
		EunoSortItem item = items[i];

		if ((i % INTERRUPTS_EVERY) == 0)
			CHECK_FOR_INTERRUPTS();
		fetch_ahead(sort, items, sort->n, i);
		if (likely(in_order(sort, &items[n - 1], &item)))
			in_a_row = 0;
		else if (n > 1 && in_order(sort, &items[n - 2], &item))
		{
			apart[i - n] = items[n - 1];
			n--;
		}
		else if (++in_a_row < MANY_APART)
		{
			apart[i - n] = item;
			continue;
		}
		else
		{
			while (n > 0 && i - n <= most &&
				   !in_order(sort, &items[n - 1], &item))
			{
				apart[i - n] = items[n - 1];
				n--;
			}
		}
		items[n++] = item;
	}
	if (i - n > most)
		memcpy(items + n, apart, (i - n) * sizeof(EunoSortItem));
	*kept = n;
	return i - n <= most;
}

/*
 * Merges those apart, which are in order, with the "kept" ones, from the end.
 */
static void
merge_apart(const RowSort *sort, uint32 kept)
{
	EunoSortItem *items = sort->items;
	uint32		left = sort->n - kept;

	while (left > 0)
	{
		const EunoSortItem *item = &sort->scratch[--left];
		uint32		hi = kept;	/* from here on they come after it */
		uint32		lo = kept;
		uint32		step = 1;

		CHECK_FOR_INTERRUPTS();
		while (lo > 0 && !in_order(sort, &items[lo - 1], item))
		{
			hi = lo - 1;
			lo = lo > step ? lo - step : 0;
			step *= 2;
		}
		while (lo < hi)
		{
			uint32		mid = (lo + hi) / 2;

			if (in_order(sort, &items[mid], item))
				lo = mid + 1;
			else
				hi = mid;
		}
		memmove(items + hi + left + 1, items + hi,
				(kept - hi) * sizeof(EunoSortItem));
		items[hi + left] = *item;
		kept = hi;
	}
}

/* By heads; false if these leave too many out of place. */
static bool
sort_with_heads(const RowSort *sort)
{
	uint32		kept;

	if (euno_row_guessed(sort->order) &&
		!(guesses_are_good(sort) && learn(sort, sort->items, sort->n)))
		return false;
	set_heads(sort, sort->items, sort->n);
	sort_by_heads(sort, sort->items, sort->n, 0);
	if (!put_apart(sort, &kept))
		return false;
	merge_sort(sort, sort->scratch, sort->n - kept, sort->items + kept);
	merge_apart(sort, kept);
	return true;
}

void
euno_sort_rows(EunoRowOrder *order, EunoSortChunks chunks,
			   EunoSortItem *items, EunoSortItem *scratch, uint32 n)
{
	RowSort		sort = {.order = order, .chunks = chunks, .items = items,
	.n = n, .scratch = scratch};

	if (n < 2)
		return;
	EUNO_STOP_POINT("build-sort");
	do
	{
		if (euno_row_head_bytes(order) > 0 && sort_with_heads(&sort))
			return;
	} while (euno_row_guess_otherwise(order));
	if (euno_row_head_bytes(order) == 0)
		set_heads(&sort, items, n);
	merge_sort(&sort, items, n, scratch);
}
