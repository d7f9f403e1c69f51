/*-------------------------------------------------------------------------
 *
 * bpt_alphabet.c
 *	  Guessing where text is.
 *
 * Numbers, uuids and the like use all values of a byte, so a key's place among
 * others follows from the difference of their first bytes.  Text uses few of
 * them: between "4" and "5" there are 256 times more byte strings than decimal
 * ones, and all keys with a 4 would be expected side by side.  So the bytes of
 * text are counted in the alphabet that they are from.  Which one, each leaf
 * notes when it is built.  Nothing but speed depends on it.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Bytes that count; more do not fit a number. */
#define TEXT_BYTES	5

/* Heads of a leaf to try alphabets on. */
#define SAMPLES		16

/*
 * Up to two runs of bytes.  Others count as the nearest one below them, or as
 * the first one.
 */
typedef struct Runs
{
	uint8_t		first[2];
	uint8_t		count[2];
} Runs;

static const Runs alphabets[BPT_NALPHABETS] = {
	[BPT_DECIMAL] = {{'0', UINT8_MAX}, {10, 0}},
	[BPT_HEX] = {{'0', 'a'}, {10, 6}},
	[BPT_LOWER] = {{'a', UINT8_MAX}, {26, 0}},
	[BPT_PRINT] = {{' ', UINT8_MAX}, {95, 0}}
};

/* The first bytes of a word as a number in an alphabet. */
static inline uint64_t
text_number(const Runs *runs, uint64_t word)
{
	uint32_t	size = (uint32_t) runs->count[0] + runs->count[1];
	uint64_t	number = 0;

	for (int i = 0; i < TEXT_BYTES; i++)
	{
		uint32_t	byte = (uint32_t) (word >> (56 - 8 * i)) & 0xFF;
		uint32_t	run = byte >= runs->first[1];
		uint32_t	rank = byte > runs->first[run] ? byte - runs->first[run] : 0;
		uint32_t	most = run ? size : runs->count[0];

		rank += run ? runs->count[0] : 0;
		number = number * size + (rank < most ? rank : most - 1);
	}
	return number;
}

/* Two fences as numbers in an alphabet, without the bytes that they share. */
typedef struct Scale
{
	const Runs *runs;
	uint32_t	same;			/* bits */
	uint64_t	from;
	uint64_t	to;
} Scale;

/* An alphabet that does not exist is BPT_PRINT. */
static inline Scale
make_scale(uint32_t alphabet, uint64_t low, uint64_t high)
{
	const Runs *runs = &alphabets[alphabet < BPT_NALPHABETS ? alphabet :
								  BPT_PRINT];
	uint32_t	same = (uint32_t) __builtin_clzll(low ^ high) & ~7U;

	return (Scale)
	{
		runs, same, text_number(runs, low << same),
			text_number(runs, high << same)
	};
}

static inline uint32_t
guess_by(const Scale *scale, uint64_t h, uint32_t slots)
{
	uint64_t	at = text_number(scale->runs, h << scale->same);

	if (scale->to <= scale->from)
		return slots / 2;
	at = (uint64_t) ((double) (int64_t) (at - scale->from) /
					 (double) (int64_t) (scale->to - scale->from) * slots);
	return at < slots ? (uint32_t) at : slots - 1;
}

/* See bpt_guess. */
uint32_t
euno_bpt_guess_text(uint32_t alphabet, uint64_t h, uint64_t low,
					uint64_t high, uint32_t slots)
{
	Scale		scale = make_scale(alphabet, low, high);

	return guess_by(&scale, h, slots);
}

/* How far off guesses are: the sum over samples of n ascending heads. */
static uint32_t
misses(uint32_t alphabet, const uint64_t *heads, uint32_t n, uint64_t low,
	   uint64_t high)
{
	Scale		scale = make_scale(alphabet, low, high);
	uint32_t	sum = 0;

	for (uint32_t s = 0; s < SAMPLES; s++)
	{
		uint32_t	i = s * n / SAMPLES;
		uint32_t	at = heads[i] <= low ? 0 : heads[i] >= high ? n - 1 :
			alphabet == BPT_BINARY ?
			bpt_guess(BPT_BINARY, heads[i], low, high, n) :
			guess_by(&scale, heads[i], n);

		sum += at > i ? at - i : i - at;
	}
	return sum;
}

/*
 * Are heads text, where fences differ?  Most of the samples should be, in two
 * bytes, of which the second may be beyond the end.
 */
static bool
are_text(const uint64_t *heads, uint32_t n, uint64_t low, uint64_t high)
{
	uint32_t	same = (uint32_t) __builtin_clzll(low ^ high) & ~7U;
	uint32_t	text = 0;

	for (uint32_t s = 0; s < SAMPLES; s++)
	{
		uint64_t	word = heads[s * n / SAMPLES] << same;
		uint32_t	first = (uint32_t) (word >> 56);
		uint32_t	second = (uint32_t) (word >> 48) & 0xFF;

		text += first - ' ' < 95 && (second == 0 || second - ' ' < 95);
	}
	return text >= SAMPLES * 3 / 4;
}

/*
 * Notes in a leaf in the making, whose hints are set, the alphabet in which
 * guesses among its n ascending heads come nearest.
 */
void
euno_bpt_note_alphabet(BptLeaf *leaf, const uint64_t *heads, uint32_t n)
{
	uint64_t	low = leaf->low_hint;
	uint64_t	high = leaf->high_hint;
	uint32_t	best = BPT_BINARY;
	uint32_t	least;

	if (n < SAMPLES || low >= high)
		return;
	least = misses(BPT_BINARY, heads, n, low, high);

	/* An error of a thirtieth is good enough, and usual for random keys. */
	if (least <= n * SAMPLES / 30 || !are_text(heads, n, low, high))
		return;
	for (uint32_t a = BPT_BINARY + 1;
		 a < BPT_NALPHABETS && least > n * SAMPLES / 30; a++)
	{
		uint32_t	sum = misses(a, heads, n, low, high);

		if (sum < least / 4 * 3)
		{
			best = a;
			least = sum;
		}
	}
	leaf->format |= (uint8_t) (best << BPT_ALPHABET_SHIFT);
}
