/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Keys for benchmarks (see keys.h).
 *
 *-------------------------------------------------------------------------
 */
#include "keys.h"

#include <math.h>

#define STRING_BYTES 40
#define ZIPF_THETA 0.99
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

const char *const key_names[3] = {"int8 dense", "int8 sparse", "string 40"};

void
key_set_init(KeySet *set, Keys keys, uint64_t rows)
{
	set->keys = keys;
	set->rows = rows;
	set->bits = 0;
	while ((UINT64_C(1) << set->bits) < rows)
		set->bits++;
	set->zeta = 0;
	for (uint64_t i = 1; i <= rows; i++)
		set->zeta += 1 / pow((double) i, ZIPF_THETA);
}

/* A few Feistel-like steps, walked in cycles. */
uint64_t
scatter(const KeySet *set, uint64_t i)
{
	uint64_t	mask = (UINT64_C(1) << set->bits) - 1;

	do
	{
		for (int round = 0; round < 3; round++)
		{
			i = (i * GOLDEN + 12345) & mask;
			i ^= i >> (set->bits / 2 + 1);
		}
	} while (i >= set->rows);
	return i;
}

/* SPARSE: a place anywhere in the left half of gap i, others in the right. */
static uint64_t
sparse(const KeySet *set, uint64_t i)
{
	uint64_t	half = UINT64_MAX / set->rows / 2;
	uint64_t	within = (i * GOLDEN) % half;

	if (i < set->rows)
		return 2 * half * i + within;
	return 2 * half * scatter(set, i - set->rows) + half + within;
}

uint32_t
make_key(const KeySet *set, uint64_t i, uint8_t *key)
{
	key[0] = 2;
	if (set->keys == STRINGS)
	{
		uint64_t	n = i < set->rows ? 2 * i : 2 * scatter(set, i - set->rows) + 1;

		memset(key + 1, 'k', STRING_BYTES);
		for (int d = STRING_BYTES; d > STRING_BYTES / 2; d--, n /= 10)
			key[d] = (uint8_t) ('0' + n % 10);
		key[STRING_BYTES + 1] = 0;
		return STRING_BYTES + 2;
	}
	i = set->keys == SPARSE ? sparse(set, i) : i + (UINT64_C(1) << 63);
	euno_put_word(key + 1, i);
	return INT8_KEY;
}

/*
 * After Gray et al., "Quickly generating billion-record synthetic databases".
 */
uint64_t
zipf(const KeySet *set, double u)
{
	double		n = (double) set->rows;
	double		uz = u * set->zeta;
	double		zeta2 = 1 + pow(0.5, ZIPF_THETA);
	double		eta = (1 - pow(2 / n, 1 - ZIPF_THETA)) / (1 - zeta2 / set->zeta);
	uint64_t	rank;

	if (uz < 1)
		return 0;
	if (uz < zeta2)
		return 1;
	rank = (uint64_t) (n * pow(eta * u - eta + 1, 1 / (1 - ZIPF_THETA)));
	return rank < set->rows ? rank : set->rows - 1;
}
