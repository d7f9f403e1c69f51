/*-------------------------------------------------------------------------
 *
 * euno_tids.c
 *	  TIDs in order: sorted without a library call that might allocate, and
 *	  looked up.
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_core.h"

/* Sorts a few thousand numbers at most, in place (Shell's method). */
void
euno_sort64(uint64_t *numbers, uint32_t n)
{
	for (uint32_t gap = n / 2; gap > 0; gap /= 2)
	{
		for (uint32_t i = gap; i < n; i++)
		{
			uint64_t	number = numbers[i];
			uint32_t	k = i;

			for (; k >= gap && numbers[k - gap] > number; k -= gap)
				numbers[k] = numbers[k - gap];
			numbers[k] = number;
		}
	}
}

/*
 * Sorts by all but the lowest 16 bits, in place; "scratch" is as long.  A byte
 * at a time, by counting, those that are not the same in all.
 */
void
euno_sort_tids(uint64_t *numbers, uint32_t n, uint64_t *scratch)
{
	uint64_t   *from = numbers;
	uint64_t   *to = scratch;
	uint64_t	differ = 0;
	bool		sorted = true;

	for (uint32_t i = 1; i < n; i++)
	{
		differ |= numbers[i] ^ numbers[0];
		sorted &= numbers[i - 1] <= numbers[i];
	}
	if (sorted)
		return;
	for (unsigned shift = 16; shift < 64; shift += 8)
	{
		uint32_t	starts[257] = {0};
		uint64_t   *swap = from;

		if ((differ >> shift & 0xFF) == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			starts[(from[i] >> shift & 0xFF) + 1]++;
		for (unsigned digit = 1; digit < 256; digit++)
			starts[digit] += starts[digit - 1];
		for (uint32_t i = 0; i < n; i++)
			to[starts[from[i] >> shift & 0xFF]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != numbers)
		memcpy(numbers, from, n * sizeof(uint64_t));
}

/* Is tid among these, which are sorted? */
bool
euno_tid_among(EunoTid tid, const EunoTid *tids, uint32_t n)
{
	uint32_t	lo = 0;

	while (n > 0)
	{
		uint32_t	half = n / 2;

		if (tids[lo + half] < tid)
		{
			lo += half + 1;
			n -= half + 1;
		}
		else if (tids[lo + half] == tid)
			return true;
		else
			n = half;
	}
	return false;
}
