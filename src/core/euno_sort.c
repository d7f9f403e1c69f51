/*-------------------------------------------------------------------------
 *
 * euno_sort.c
 *	  Sorting without a library call that might allocate.
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
