/*-------------------------------------------------------------------------
 *
 * shapes.c
 *	  Kinds of keys: what an index may be asked to hold.
 *
 * In BYTES order a column is a marker byte (2 = value, 3 = NULL) and a value
 * that is of fixed length or terminated, as euno_key.h has it.  In COMPARE
 * order a key is [length][bytes] for each of its columns.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "universe.h"

__thread void *compare_escape;
__thread uint32_t compare_escape_every;
__thread Random compare_escape_random;
__thread void (*compare_called) (void *arg);
__thread void *compare_called_arg;

static void
compare_entered(void)
{
	if (compare_called != NULL)
		compare_called(compare_called_arg);
	if (compare_escape != NULL && compare_escape_every > 0 &&
		random_below(&compare_escape_random, compare_escape_every) == 0)
		longjmp(*(jmp_buf *) compare_escape, 1);
}

static uint32_t
put_integer(uint8_t *key, uint64_t value, int bytes)
{
	key[0] = 2;
	for (int i = 0; i < bytes; i++)
		key[1 + i] = (uint8_t) (value >> (8 * (bytes - 1 - i)));
	return 1 + (uint32_t) bytes;
}

static uint32_t
put_text(uint8_t *key, const char *text)
{
	size_t		length = strlen(text);

	key[0] = 2;
	memcpy(key + 1, text, length + 1);
	return (uint32_t) length + 2;
}

static uint32_t
make_dense(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) random;
	(void) n;
	(void) payloadlen;
	return *prefix = put_integer(key, UINT64_C(0x8000000000000000) + i, 8);
}

static uint32_t
make_sparse(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	(void) payloadlen;
	return *prefix = put_integer(key, random_next(random), 8);
}

/* Zeros, all or all but one: paths of many nodes, more than a reader remembers. */
static uint32_t
make_zeros(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) n;
	(void) payloadlen;
	key[0] = 2;
	memset(key + 1, 0, 24);
	if (i % 3 != 0)
		key[1 + random_below(random, 24)] = 1 + random_below(random, 3);
	return *prefix = 25;
}

static uint32_t
make_dup10(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	return make_dense(random, i / 10 * 1000, n, key, prefix, payloadlen);
}

static uint32_t
make_dup1000(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			 uint32_t *prefix, uint32_t *payloadlen)
{
	return make_dense(random, i / 1000, n, key, prefix, payloadlen);
}

static uint32_t
make_equal(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	return make_dense(random, 7, n, key, prefix, payloadlen);
}

/* Some values once, some very often. */
static uint32_t
make_skewed(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	bits = random_below(random, 20);

	(void) i;
	return make_dense(random, random_below(random, 1u << bits), n, key, prefix,
					  payloadlen);
}

static uint32_t
make_uuid(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	(void) payloadlen;
	key[0] = 2;
	for (int j = 1; j <= 16; j++)
		key[j] = (uint8_t) random_next(random);
	return *prefix = 17;
}

static uint32_t
make_url(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		 uint32_t *prefix, uint32_t *payloadlen)
{
	static const char *const hosts[] = {
		"https://www.example.org/a/rather/long/path/to/begin/with/page?id=",
		"https://www.example.org/a/rather/long/path/to/begin/with/page?key=",
		"https://www.example.org/a/rather/short/path/",
		"https://www.example.com/",
		""
	};
	char		text[200];

	(void) i;
	(void) n;
	(void) payloadlen;
	snprintf(text, sizeof(text), "%s%u%s", hosts[random_below(random, 5)],
			 random_below(random, 1u << (4 + random_below(random, 20))),
			 random_below(random, 2) ? "&order=ascending" : "");
	return *prefix = put_text(key, text);
}

/* (smallint with NULLs, text descending) */
static uint32_t
make_columns(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			 uint32_t *prefix, uint32_t *payloadlen)
{
	char		text[40];
	uint32_t	length;

	(void) i;
	(void) n;
	(void) payloadlen;
	if (random_below(random, 8) == 0)
	{
		key[0] = 3;
		*prefix = 1;
	}
	else
		*prefix = put_integer(key, random_below(random, 40), 2);
	snprintf(text, sizeof(text), "%.*s%u", (int) random_below(random, 12),
			 "aaaaaaaaaaaa", random_below(random, 100));
	length = put_text(key + *prefix, text);
	for (uint32_t j = 1; j < length; j++)
		key[*prefix + j] = (uint8_t) ~key[*prefix + j];
	return *prefix + length;
}

/* Everything from one byte to the limit. */
static uint32_t
make_long(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	kind = random_below(random, 10);
	uint32_t	length = kind < 6 ? random_below(random, 40) :
		kind < 9 ? random_below(random, EUNO_MAX_ENTRY - 2) : EUNO_MAX_ENTRY - 2;
	uint8_t		fill = (uint8_t) ('a' + random_below(random, 3));

	(void) i;
	(void) n;
	(void) payloadlen;
	key[0] = 2;
	memset(key + 1, fill, length);
	for (uint32_t j = length > 4 ? length - 4 : 0; j < length; j++)
		key[1 + j] = (uint8_t) (1 + random_below(random, 254));
	key[1 + length] = 0;
	return *prefix = length + 2;
}

static uint32_t
make_payload(Random *random, uint32_t i, uint32_t n, uint8_t *key,
			 uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	kind = random_below(random, 20);

	*payloadlen = kind == 0 ? random_below(random, EUNO_MAX_ENTRY - 9) :
		kind == 1 ? EUNO_MAX_ENTRY - 9 : kind < 5 ? 0 : random_below(random, 40);
	return make_dense(random, i / 3, n, key, prefix, payloadlen);
}

/* Mostly alike, so that leaves are of one format, with exceptions. */
static uint32_t
make_mixed(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	if (random_below(random, 100) == 0)
	{
		*payloadlen = random_below(random, 20);
		return *prefix = put_text(key, "a text of another length");
	}
	return make_sparse(random, i, n, key, prefix, payloadlen);
}

static uint32_t
make_short(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	(void) payloadlen;
	return *prefix = put_integer(key, random_below(random, 300), 2);
}

/* Fills in one column of a COMPARE key. */
static uint32_t
put_column(uint8_t *key, const char *text)
{
	key[0] = (uint8_t) strlen(text);
	memcpy(key + 1, text, key[0]);
	return 1 + (uint32_t) key[0];
}

static uint32_t
make_case(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	char		text[32];

	snprintf(text, sizeof(text), "Key-%u-Of-Some", random_below(random, n / 4 + 1));
	for (char *c = text; *c != '\0'; c++)
	{
		if (random_below(random, 2) == 0 && *c >= 'a' && *c <= 'z')
			*c = (char) (*c - 'a' + 'A');
	}
	(void) i;
	*payloadlen = random_below(random, 4) == 0 ? random_below(random, 100) : 0;
	*prefix = put_column(key, text);
	return *prefix + put_column(key + *prefix, "");
}

static uint32_t
make_pair(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		  uint32_t *prefix, uint32_t *payloadlen)
{
	char		text[32];

	(void) i;
	(void) n;
	(void) payloadlen;
	snprintf(text, sizeof(text), "%u", random_below(random, 50));
	*prefix = put_column(key, text);
	snprintf(text, sizeof(text), "%.*s%u", (int) random_below(random, 10),
			 "bbbbbbbbbb", random_below(random, 50));
	return *prefix + put_column(key + *prefix, text);
}

/* Few keys, each of which goes on from one leaf to the next. */
static uint32_t
make_few(Random *random, uint32_t i, uint32_t n, uint8_t *key,
		 uint32_t *prefix, uint32_t *payloadlen)
{
	char		text[32];

	(void) i;
	(void) n;
	(void) payloadlen;
	snprintf(text, sizeof(text), "%u", random_below(random, 3));
	*prefix = put_column(key, text);
	snprintf(text, sizeof(text), "%u", random_below(random, 4));
	return *prefix + put_column(key + *prefix, text);
}

static uint32_t
make_compare_long(Random *random, uint32_t i, uint32_t n, uint8_t *key,
				  uint32_t *prefix, uint32_t *payloadlen)
{
	uint32_t	length = make_pair(random, i, n, key, prefix, payloadlen);
	uint32_t	more = random_below(random, 3) == 0 ?
		random_below(random, EUNO_MAX_ENTRY - length) : 0;

	/* bytes behind the columns, which the comparator does not look at */
	memset(key + length, 'x', more);
	return length + more;
}

/* Mostly alike for longer than an abbreviation may be, or nearly so long. */
static uint32_t
make_compare_url(Random *random, uint32_t i, uint32_t n, uint8_t *key,
				 uint32_t *prefix, uint32_t *payloadlen)
{
	char		text[256];
	int			same = random_below(random, 20) == 0 ? random_below(random, 130) :
		random_below(random, 2) == 0 ? 100 : 70;

	(void) i;
	(void) payloadlen;
	snprintf(text, sizeof(text), "%.*s%05u%.*s", same,
			 "https://www.example.org/a/path/that/many/keys/have/in/common/and/"
			 "then/a/part/of/it/that/they/have/too/before/they/differ/in/numbers",
			 random_below(random, n), (int) random_below(random, 40),
			 "/and/what/comes/after/that/in/some/of/them");
	*prefix = put_column(key, text);
	return *prefix + put_column(key + *prefix, "");
}

/*
 * The columns of two COMPARE keys; "fold" ignores case.  "columns" of the
 * first one count.
 */
static int
compare_columns(const uint8_t *a, const uint8_t *b, uint32_t columns, bool fold)
{
	for (uint32_t i = 0; i < columns; i++)
	{
		size_t		shorter = a[0] < b[0] ? a[0] : b[0];
		int			c = fold ?
			strncasecmp((const char *) a + 1, (const char *) b + 1, shorter) :
			memcmp(a + 1, b + 1, shorter);

		if (c == 0)
			c = a[0] - b[0];
		if (c != 0)
			return c;
		a += 1 + a[0];
		b += 1 + b[0];
	}
	return 0;
}

static int
compare_position(const EunoPosition *pos, const uint8_t *key, bool fold)
{
	const Bound *bound = pos->bound;

	if (((uintptr_t) key & 7) != 0)
		abort();				/* euno_core.h promises 8-byte alignment */
	if (pos->key == NULL)
		return compare_columns(bound->key, key, bound->columns, fold);
	return compare_columns(pos->key, key, 2, fold);
}

static int
compare_plain(void *arg, const EunoPosition *pos, const uint8_t *key,
			  uint32_t keylen)
{
	(void) arg;
	(void) keylen;
	compare_entered();
	return compare_position(pos, key, false);
}

static int
compare_reverse(void *arg, const EunoPosition *pos, const uint8_t *key,
				uint32_t keylen)
{
	return -compare_plain(arg, pos, key, keylen);
}

static int
compare_fold(void *arg, const EunoPosition *pos, const uint8_t *key,
			 uint32_t keylen)
{
	(void) arg;
	(void) keylen;
	compare_entered();
	return compare_position(pos, key, true);
}

/*
 * Wrong for one pair in 16, in either direction, and for all equal keys, and
 * without an answer for another one; of keys that differ in case, wrong for
 * more.  It may raise, as comparators may.  "arg" is the shape.
 */
int
approximate_wrongly(void *arg, const EunoPosition *pos, const uint8_t *key,
					uint32_t keylen)
{
	const Shape *shape = arg;
	const uint8_t *mine = pos->key == NULL ?
		((const Bound *) pos->bound)->key : pos->key;
	uint32_t	hash;
	int			c;

	compare_entered();
	if (mine == NULL)
		return 0;
	hash = (mine[0] + mine[1 + mine[0] / 2]) * 31 + keylen + key[0] +
		key[1 + key[0] / 2] * 7 + key[key[0]] * 57;
	hash = hash * UINT32_C(0x9E3779B9) >> 27;
	c = compare_position(pos, key, false);
	if (hash < 2 || c == 0)
		return hash % 2 == 0 ? 1 : -1;
	if (hash < 4)
		return 0;
	return shape->compare == compare_reverse ? -c : c;
}

/* How keys are abbreviated, as bits of the first byte of what says it. */
#define ABBREVIATED		1
#define REVERSED		2		/* so is the first byte */
#define FOLDED			4

/* The places of characters, and those in which case does not count. */
static uint16_t places[2][EUNO_PLACES];

static void __attribute__((constructor))
fill_places(void)
{
	for (int c = 0; c < EUNO_PLACES; c++)
	{
		places[0][c] = (uint16_t) (EUNO_FIRST_PLACE + c);
		places[1][c] = (uint16_t) (EUNO_FIRST_PLACE + tolower(c));
	}

	/* nothing is known of some */
	places[0]['3'] = places[1]['3'] = EUNO_FIRST_PLACE - 1;
	places[0]['7'] = places[1]['s'] = 0;
}

void
shape_abbreviation(const Shape *shape, uint8_t *how)
{
	memset(how, 0, EUNO_ABBREVIATION_HOW);
	if (shape->compare != NULL)
		how[0] = ABBREVIATED |
			(shape->compare == compare_reverse ? REVERSED : 0) |
			(shape->compare == compare_fold ? FOLDED : 0);
}

/* Its columns, one after the other; then nothing is known, if more follow. */
static int
abbreviate_columns(const uint8_t *how, const uint8_t *key, uint32_t columns,
				   uint8_t *to)
{
	int			len = 0;

	for (uint32_t i = 0; i < columns; i++)
	{
		int			n = EUNO_ABBREVIATION - 1 - len;

		if (key[0] < n)
			n = key[0];
		else if (n < 0)
			break;
		memcpy(to + len, key + 1, (size_t) n);
		len += n;
		to[len++] = i + 1 < columns ? 1 : UINT8_MAX;
		key += 1 + key[0];
	}
	if ((how[0] & REVERSED) != 0 && len > 0)
		to[0] = (uint8_t) ~to[0];
	return len;
}

/*
 * Wrong for one key in 64, and without an answer for some, those that end with
 * a 9.
 */
int
abbreviate_wrongly(const uint8_t *how, const uint8_t *key, uint32_t keylen,
				   uint8_t *to)
{
	int			len;

	if (how[0] == 0 || (key[key[0]] == '9' && key[1 + key[0]] == 1))
		return -1;
	len = abbreviate_columns(how, key, 2, to) - 1;
	if (len > 1 && (key[key[0]] * 7 + key[1 + key[0] / 2] + keylen) % 64 == 0)
		to[len / 2] ^= 2;
	return len;
}

bool
abbreviate_position(void *arg, const EunoPosition *pos, EunoAbbreviation *to)
{
	const Shape *shape = arg;
	const Bound *bound = pos->bound;
	uint8_t		how[EUNO_ABBREVIATION_HOW];
	const uint8_t *key = pos->key == NULL ? bound->key : pos->key;

	shape_abbreviation(shape, how);
	if (how[0] == 0 || key == NULL)
		return false;
	to->len = (uint32_t) abbreviate_columns(how, key, pos->key == NULL ?
											bound->columns : 2, to->bytes);
	if (pos->key != NULL)
		to->len--;
	memset(to->bytes + to->len, 0, 16);
	to->places = places[(how[0] & FOLDED) != 0];
	to->plain = (how[0] & REVERSED) != 0;
	to->desc = (how[0] & REVERSED) != 0;
	return true;
}

/* Few keys, all with many TIDs; one entry of four has a payload, too. */
static uint32_t
make_some_payloads(Random *random, uint32_t i, uint32_t n, uint8_t *key,
				   uint32_t *prefix, uint32_t *payloadlen)
{
	(void) i;
	(void) n;
	key[0] = 2;
	key[1] = (uint8_t) (1 + random_below(random, 4));
	*payloadlen = random_below(random, 4) == 0 ? 8 : 0;
	return *prefix = 2;
}

const Shape shapes[] = {
	{"dense int8", EUNO_ORDER_BYTES, true, false, NULL, make_dense, 1},
	{"sparse int8", EUNO_ORDER_BYTES, true, false, NULL, make_sparse, 1},
	{"sparse int8, no posting", EUNO_ORDER_BYTES, false, false, NULL, make_sparse, 1},
	{"zeros", EUNO_ORDER_BYTES, true, false, NULL, make_zeros, 1},
	{"10 per key", EUNO_ORDER_BYTES, true, false, NULL, make_dup10, 1},
	{"1000 per key", EUNO_ORDER_BYTES, true, false, NULL, make_dup1000, 1},
	{"1000 per key, no posting", EUNO_ORDER_BYTES, false, false, NULL, make_dup1000, 1},
	{"all equal", EUNO_ORDER_BYTES, true, false, NULL, make_equal, 1},
	{"skewed", EUNO_ORDER_BYTES, true, false, NULL, make_skewed, 1},
	{"uuid", EUNO_ORDER_BYTES, true, false, NULL, make_uuid, 1},
	{"text, long prefixes", EUNO_ORDER_BYTES, true, false, NULL, make_url, 2},
	{"two columns, NULLs, DESC", EUNO_ORDER_BYTES, true, false, NULL, make_columns, 1},
	{"up to the limit", EUNO_ORDER_BYTES, true, false, NULL, make_long, 20},
	{"payloads", EUNO_ORDER_BYTES, false, false, NULL, make_payload, 10},
	{"payloads, posting", EUNO_ORDER_BYTES, true, false, NULL, make_payload, 10},
	{"mixed lengths", EUNO_ORDER_BYTES, false, false, NULL, make_mixed, 1},
	{"shared TIDs", EUNO_ORDER_BYTES, true, true, NULL, make_short, 1},
	{"comparator", EUNO_ORDER_COMPARE, true, false, compare_plain, make_pair, 4},
	{"comparator, descending", EUNO_ORDER_COMPARE, true, false, compare_reverse, make_few, 4},
	{"comparator, ignoring case", EUNO_ORDER_COMPARE, false, false, compare_fold, make_case, 4},
	{"comparator, long prefixes", EUNO_ORDER_COMPARE, true, false, compare_plain, make_compare_url, 4},
	{"comparator, up to the limit", EUNO_ORDER_COMPARE, false, false, compare_plain, make_compare_long, 20},
	{"some payloads", EUNO_ORDER_BYTES, true, false, NULL, make_some_payloads, 1},
};
const int	nshapes = sizeof(shapes) / sizeof(shapes[0]);

const Shape *
shape_by_name(const char *name)
{
	for (int i = 0; i < nshapes; i++)
	{
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	}
	fprintf(stderr, "no shape \"%s\"\n", name);
	exit(1);
}
