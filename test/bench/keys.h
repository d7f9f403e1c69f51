/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Keys for benchmarks, each made from its number when it is needed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KEYS_H
#define KEYS_H

#include <string.h>

#include "core/euno_core.h"

#define MAX_KEY 48
#define INT8_KEY 9				/* bytes: a marker and the number */

typedef enum Keys
{
	DENSE,						/* int8: 0, 1, 2, ... */
	SPARSE,						/* int8: scattered over all 64 bits */
	STRINGS						/* 40 bytes, half of them alike */
} Keys;

extern const char *const key_names[3];

typedef struct KeySet
{
	Keys		keys;
	uint64_t	rows;
	uint32_t	bits;			/* rows <= 2^bits */
	double		zeta;			/* for Zipf */
} KeySet;

extern void key_set_init(KeySet *set, Keys keys, uint64_t rows);

/*
 * The key of row i; returns its length.  Keys ascend for i below rows.  Those
 * from there on, up to twice as many, are somewhere between the others for
 * SPARSE and STRINGS.
 */
extern uint32_t make_key(const KeySet *set, uint64_t i, uint8_t *key);

/* The number in a key of INT8_KEY bytes, to be compared without a sign. */
static inline uint64_t
int8_of(const uint8_t *key)
{
	return euno_get_word(key + 1);
}

/* A permutation of 0 .. rows - 1. */
extern uint64_t scatter(const KeySet *set, uint64_t i);

/* From 0 up, 0 the most frequent, of 0 .. rows - 1; "u" is from [0, 1). */
extern uint64_t zipf(const KeySet *set, double u);

static inline EunoTid
make_tid(uint64_t i)
{
	return (i / 200) << 16 | (i % 200 + 1);
}

#endif							/* KEYS_H */
