/*-------------------------------------------------------------------------
 *
 * key_numeric.c
 *	  An order-preserving byte string for values of type numeric.
 *
 * A numeric is a sign, digits in base 10,000, the power that the first one
 * counts ("weight"), and how many decimals are shown.  Of two positive numbers
 * without zeros at either end, the one of the greater weight is greater, else
 * the one with the greater first digit that differs, else the longer one.  So
 * the encoding is:
 *
 *	 a byte, which tells the number's sign, zero, infinity and NaN, and weights
 *	 near 0; otherwise two more bytes with the weight;
 *	 each digit in two bytes, doubled, and 1 added if another one follows.
 *
 * Of a negative number all bytes are complemented.  None is a prefix of
 * another one, for the last digit says that it is.
 *
 * What is lost is how many decimals are shown, if more than the digits need and
 * than the column's type says ("scale"), and which of its two forms a short
 * number was stored in (before PostgreSQL 9.1 there was only the long one).
 *
 * What a number looks like in memory is numeric.c's affair, but the same on
 * disk in all versions since then; numeric_send and numeric_recv, which
 * anybody may call, take several times as long.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "key/key_private.h"

/* The header's first two bits: positive or negative and long, or */
#define FORM_MASK		0xC000
#define FORM_NEGATIVE	0x4000
#define FORM_SHORT		0x8000
#define FORM_SPECIAL	0xC000

/* Of a long number: a second header is its weight. */
#define LONG_DSCALE		0x3FFF

/* Of a short one. */
#define SHORT_NEGATIVE	0x2000
#define SHORT_DSCALE_AT	7
#define SHORT_DSCALE	0x3F
#define SHORT_WEIGHT	0x7F	/* in two's complement */
#define SHORT_WEIGHT_MIN	(-64)
#define SHORT_WEIGHT_MAX	63

/* Of a special one. */
#define SPECIAL_NAN		0xC000
#define SPECIAL_PLUS	0xD000
#define SPECIAL_MINUS	0xF000

#define DIGIT_BYTES		2
#define DIGIT_DECIMALS	4

/* First bytes of encodings that are not negative. */
#define FIRST_ZERO		0x80
#define FIRST_TINY		0x81	/* the weight follows */
#define FIRST_WEIGHT	0xA1	/* plus the weight, if it is between */
#define FIRST_HUGE		0xC1	/* the weight follows */
#define FIRST_INFINITY	0xC2
#define FIRST_NAN		0xC3

/* In what is lost, beside the number of decimals. */
#define LOST_LONG		0x8000

typedef struct Number
{
	uint8_t		first;			/* of its encoding, were it not negative */
	bool		negative;
	bool		is_long;
	uint16		dscale;
	int16		weight;
	const char *digits;			/* not aligned */
	uint32_t	ndigits;
} Number;

static inline uint16
get_16(const void *p)
{
	uint16		n;

	memcpy(&n, p, sizeof(n));
	return n;
}

static inline void
put_16(void *p, uint16 n)
{
	memcpy(p, &n, sizeof(n));
}

/* The weight as a number that is never negative. */
static inline uint16
biased(int16 weight)
{
	return (uint16) (weight ^ 0x8000);
}

static inline bool
has_short_form(int dscale, int weight)
{
	return dscale <= SHORT_DSCALE && weight >= SHORT_WEIGHT_MIN &&
		weight <= SHORT_WEIGHT_MAX;
}

/* The header, of one or two words, of a number that is not special. */
static inline uint32_t
put_header(bool is_long, bool negative, int dscale, int16 weight, uint8_t *to)
{
	if (!is_long)
	{
		put_16(to, FORM_SHORT | (negative ? SHORT_NEGATIVE : 0) |
			   dscale << SHORT_DSCALE_AT | (weight & SHORT_WEIGHT));
		return sizeof(uint16);
	}
	put_16(to, (negative ? FORM_NEGATIVE : 0) | dscale);
	put_16(to + sizeof(uint16), (uint16) weight);
	return 2 * sizeof(uint16);
}

/* Reads the header; "digits" are what follows it. */
static inline void
read_header(const char *p, Number *number)
{
	uint16		header = get_16(p);
	uint16		form = header & FORM_MASK;

	number->is_long = form != FORM_SHORT;
	if (form == FORM_SHORT)
	{
		number->negative = (header & SHORT_NEGATIVE) != 0;
		number->dscale = header >> SHORT_DSCALE_AT & SHORT_DSCALE;
		number->weight = (int16) ((header & SHORT_WEIGHT) ^ 0x40) - 0x40;
		number->digits = p + sizeof(uint16);
		return;
	}
	number->negative = form == FORM_NEGATIVE;
	number->dscale = header & LONG_DSCALE;
	number->weight = (int16) get_16(p + sizeof(uint16));
	number->digits = p + 2 * sizeof(uint16);
}

static void
read_number(const struct varlena *v, Number *number)
{
	const char *p = VARDATA_ANY(v);
	const char *end = p + VARSIZE_ANY_EXHDR(v);
	uint16		header = get_16(p);

	if (unlikely((header & FORM_MASK) == FORM_SPECIAL))
	{
		memset(number, 0, sizeof(*number));
		number->first = header == SPECIAL_NAN ? FIRST_NAN : FIRST_INFINITY;
		number->negative = header == SPECIAL_MINUS;
		return;
	}
	read_header(p, number);

	/* The server has none of these zeros; they would be lost */
	p = number->digits;
	while (unlikely(p < end && get_16(p) == 0))
	{
		p += DIGIT_BYTES;
		number->weight--;
	}
	while (unlikely(end > p && get_16(end - DIGIT_BYTES) == 0))
		end -= DIGIT_BYTES;
	number->digits = p;
	number->ndigits = (end - p) / DIGIT_BYTES;
	if (number->ndigits == 0)
	{
		number->first = FIRST_ZERO;
		number->negative = false;
		number->weight = 0;
	}
	else if (unlikely(number->weight <= FIRST_TINY - FIRST_WEIGHT))
		number->first = FIRST_TINY;
	else if (unlikely(number->weight >= FIRST_HUGE - FIRST_WEIGHT))
		number->first = FIRST_HUGE;
	else
		number->first = (uint8_t) (FIRST_WEIGHT + number->weight);
}

/*
 * How many decimals are shown of a number of which nothing was lost: those that
 * it needs, its last digit being this one, or the scale, if that is more.
 */
static inline int
usual_dscale(int scale, int weight, uint32_t ndigits, uint16 last)
{
	int			decimals = DIGIT_DECIMALS * ((int) ndigits - 1 - weight);

	while (decimals > scale && last % 10 == 0)
	{
		last /= 10;
		decimals--;
	}
	return Max(decimals, scale);
}

uint32_t
euno_numeric_put(bool desc, const struct varlena *v, uint8_t *p,
				 uint32_t avail)
{
	Number		number;
	bool		far;
	uint32_t	need;
	uint8_t		flip;

	read_number(v, &number);
	far = number.first == FIRST_TINY || number.first == FIRST_HUGE;
	need = 1 + (far ? sizeof(uint16) : 0) + DIGIT_BYTES * number.ndigits;
	if (need > avail)
		return need;

	flip = number.negative != desc ? 0xFF : 0x00;
	*p++ = number.first ^ flip;
	if (unlikely(far))
	{
		put_16(p, pg_hton16(biased(number.weight) ^ (flip << 8 | flip)));
		p += sizeof(uint16);
	}
	for (uint32_t i = 0; i < number.ndigits; i++, p += DIGIT_BYTES)
	{
		uint16		digit = get_16(number.digits + i * DIGIT_BYTES) * 2 +
			(i + 1 < number.ndigits);

		put_16(p, pg_hton16(digit ^ (flip << 8 | flip)));
	}
	return need;
}

/*
 * The sign of an encoding; its first byte without it, what it was turned by.
 */
static inline uint8_t
unsigned_first(bool desc, uint8_t first, uint8_t *flip, bool *negative)
{
	*flip = desc ? 0xFF : 0x00;
	first ^= *flip;
	*negative = first < FIRST_ZERO;
	if (*negative)
	{
		*flip ^= 0xFF;
		first ^= 0xFF;
	}
	return first;
}

const uint8_t *
euno_numeric_skip(bool desc, const uint8_t *p, const uint8_t *end)
{
	uint8_t		flip;
	uint8_t		first;
	bool		negative;

	if (unlikely(p >= end))
		return NULL;
	first = unsigned_first(desc, *p++, &flip, &negative);
	if (unlikely(first == FIRST_ZERO || first >= FIRST_INFINITY))
		return p;
	if (unlikely(first == FIRST_TINY || first == FIRST_HUGE))
		p += sizeof(uint16);
	do
	{
		if (unlikely(end - p < DIGIT_BYTES))
			return NULL;
		p += DIGIT_BYTES;
	} while (((p[-1] ^ flip) & 1) != 0);
	return p;
}

uint32_t
euno_numeric_get(bool desc, int scale, const uint8_t *p, const uint8_t *end,
				 const uint8_t *lost, uint8_t *to)
{
	uint8_t		flip;
	uint16		flips;
	bool		negative;
	uint8_t		first = unsigned_first(desc, *p++, &flip, &negative);
	int16		weight = first == FIRST_ZERO ? 0 : (int16) (first - FIRST_WEIGHT);
	uint32_t	ndigits;
	uint32_t	header;
	int			dscale = scale;

	flips = (uint16) (flip << 8 | flip);
	if (unlikely(first >= FIRST_INFINITY))
	{
		put_16(to, first == FIRST_NAN ? SPECIAL_NAN :
			   negative ? SPECIAL_MINUS : SPECIAL_PLUS);
		return sizeof(uint16);
	}
	if (unlikely(first == FIRST_TINY || first == FIRST_HUGE))
	{
		weight = (int16) biased((int16) (pg_ntoh16(get_16(p)) ^ flips));
		p += sizeof(uint16);
	}
	ndigits = (uint32_t) (end - p) / DIGIT_BYTES;
	if (lost != NULL)
		dscale = get_16(lost);
	else if (ndigits > 0)
		dscale = usual_dscale(scale, weight, ndigits,
							  (pg_ntoh16(get_16(end - DIGIT_BYTES)) ^ flips) / 2);
	header = put_header(lost != NULL ? (dscale & LOST_LONG) != 0 :
						!has_short_form(dscale, weight), negative,
						dscale & LONG_DSCALE, weight, to);
	to += header;
	for (; p < end; p += DIGIT_BYTES, to += DIGIT_BYTES)
		put_16(to, (pg_ntoh16(get_16(p)) ^ flips) / 2);
	return header + ndigits * DIGIT_BYTES;
}

bool
euno_numeric_lost(int scale, const struct varlena *v, uint16 *lost)
{
	Number		number;
	int			usual = scale;

	read_number(v, &number);
	if (number.first >= FIRST_INFINITY)
		return false;
	if (number.ndigits > 0)
		usual = usual_dscale(scale, number.weight, number.ndigits,
							 get_16(number.digits +
									(number.ndigits - 1) * DIGIT_BYTES));
	*lost = number.dscale | (number.is_long ? LOST_LONG : 0);
	return number.dscale != usual ||
		number.is_long == has_short_form(number.dscale, number.weight);
}
