/*-------------------------------------------------------------------------
 *
 * alphabets.c
 *	  Random operations on keys of a few bytes' values: many small universes,
 *	  each with an alphabet of its own.
 *
 * Such keys have paths of many nodes, long runs of the least and the greatest
 * byte, and ends in every place.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

#define ROUNDS		60
#define UNIVERSES	6			/* of a round */
#define MAX_LENGTH	60

static uint64_t seed;

/* How keys are made: of one length, or of texts, which end with a zero byte. */
static struct
{
	bool		text;
	uint32_t	length;			/* of texts the most */
	uint32_t	common;			/* of so many bytes most are the first letter */
	uint32_t	nletters;
	uint8_t		letters[8];
} alphabet;

static void
choose_alphabet(Random *random)
{
	static const uint8_t ends[] = {0, 0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF};

	alphabet.text = random_below(random, 3) == 0;
	alphabet.length = random_below(random, random_below(random, 2) == 0 ? 10 :
								   MAX_LENGTH);
	alphabet.common = random_below(random, alphabet.length + 1);
	alphabet.nletters = 1 + random_below(random, sizeof(alphabet.letters));
	for (uint32_t i = 0; i < alphabet.nletters; i++)
	{
		alphabet.letters[i] = random_below(random, 3) == 0 ?
			(uint8_t) random_below(random, 256) :
			ends[random_below(random, sizeof(ends))];
		if (alphabet.text && alphabet.letters[i] == 0)
			alphabet.letters[i] = 1;
	}
}

static uint32_t
make_letters(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			 uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	length = alphabet.length;
	uint32_t	odd = random_below(random, length + 1);

	(void) i;
	(void) n;
	(void) payloadlen;
	if (alphabet.text)
		length = random_below(random, length + 1);
	key[0] = 2;
	for (uint32_t k = 0; k < length; k++)
		key[1 + k] = alphabet.letters[k < alphabet.common && k != odd ? 0 :
									  random_below(random, alphabet.nletters)];
	if (alphabet.text)
		key[1 + length++] = 0;
	return *prefix = 1 + length;
}

static const Shape letters = {"letters", EUNO_ORDER_BYTES, true, false, NULL, make_letters, 1};

static void
run_universe(const EunoTreeOps *ops, Random *random)
{
	Universe   *universe;
	uint16_t	ndomains;
	Case		c;

	choose_alphabet(random);
	universe = universe_make(&letters, 1 + random_below(random, 500),
							 random_next(random));
	ndomains = (uint16_t) (1 + random_below(random, 3));
	case_open(&c, ops, universe, ndomains, random_next(random));
	for (int phase = 0; phase < 3 && tap_bad() == 0; phase++)
	{
		uint32_t	percent = 10 + random_below(random, 85);

		for (uint32_t i = 0; i < 2 * universe->n && tap_bad() == 0; i++)
			do_random(&c.actor, &c.model, percent);
		for (int i = 0; i < 10 && tap_bad() == 0; i++)
			check_range(&c.actor, &c.model, i % 2 == 1);
		check_all(&c.actor, &c.model);
		if (random_below(random, 2) == 0)
			do_compact(&c.actor);
	}
	case_close(&c);
	universe_free(universe);
}

int
main(void)
{
	double		end = now() + test_seconds();
	Random		random;

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);
	do
	{
		for (int s = 0; s < nsubjects; s++)
		{
			if (!subject_selected(subjects[s]))
				continue;
			for (uint32_t i = 0; i < ROUNDS / small(subjects[s]); i++)
			{
				random.state = seed + i;
				tap_begin("%s: few letters, %u", subjects[s]->name, i);
				for (int k = 0; k < UNIVERSES && tap_bad() == 0; k++)
					run_universe(subjects[s], &random);
				tap_end();
			}
		}
		seed += ROUNDS;
	} while (now() < end);
	return tap_done();
}
