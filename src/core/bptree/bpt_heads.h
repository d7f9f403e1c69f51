/*-------------------------------------------------------------------------
 *
 * bpt_heads.h
 *	  Searching the sorted array of heads in a node.
 *
 * The array may be being written: any result below or equal to the count may
 * come out then, and the node's version will tell.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_HEADS_H
#define BPT_HEADS_H

#include "core/euno_shared.h"

/* How far from its place an evenly spread key is looked for: two lines. */
#define BPT_NEAR	16

/* The number of heads below h. */
static inline uint32_t
bpt_lower_head(const uint64_t *heads, uint32_t count, uint64_t h)
{
	uint32_t	base = 0;

	if (count == 0)
		return 0;
	while (count > 1)
	{
		uint32_t	half = count / 2;

		base += euno_load64(&heads[base + half - 1]) < h ? half : 0;
		count -= half;
	}
	return base + (euno_load64(&heads[base]) < h);
}

/*
 * Where h would be if heads were spread evenly from low to high.
 */
static inline uint32_t
bpt_guess_head(uint32_t count, uint64_t h, uint64_t low, uint64_t high)
{
	uint32_t	guess;

	if (h <= low || high <= low)
		return 0;
	if (h >= high)
		return count - 1;
	guess = (uint32_t) ((double) (h - low) / (double) (high - low) * count);
	return guess < count ? guess : count - 1;
}

/*
 * The number of heads below h, with fewer cache misses where keys are spread
 * evenly: look where h should be (the guess), and a little on either side.  If
 * it is not there, search the part that is left.
 */
static inline uint32_t
bpt_lower_head_near(const uint64_t *heads, uint32_t count, uint64_t h,
					uint32_t guess)
{
	uint32_t	end;

	if (count <= 2 * BPT_NEAR)
		return bpt_lower_head(heads, count, h);
	if (euno_load64(&heads[guess]) < h)
	{
		end = guess + BPT_NEAR;
		if (end < count && euno_load64(&heads[end]) < h)
			return end + bpt_lower_head(heads + end, count - end, h);
		end = end < count ? end : count;
		return guess + bpt_lower_head(heads + guess, end - guess, h);
	}
	end = guess >= BPT_NEAR ? guess - BPT_NEAR : 0;
	if (euno_load64(&heads[end]) >= h)
		return bpt_lower_head(heads, end, h);
	return end + bpt_lower_head(heads + end, guess - end, h);
}

#endif							/* BPT_HEADS_H */
