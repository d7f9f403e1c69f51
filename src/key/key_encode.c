/*-------------------------------------------------------------------------
 *
 * key_encode.c
 *	  Order-preserving byte strings for the values of one column.
 *
 * memcmp of two encodings gives what the type's btree comparator gives, and
 * none is a prefix of another: numbers are big endian with the sign turned,
 * strings end with a byte (bytea: two) below all that can follow.  For DESC
 * all bytes are complemented, which reverses the order and keeps both
 * properties.
 *
 * What an encoding cannot tell apart is what the comparator calls equal: the
 * two zeros and all NaNs of a float, the trailing blanks of bpchar, how many
 * decimals of a numeric are shown, how many of an interval's days are months,
 * whether an array without NULLs has a bitmap of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "key/key_private.h"

/* Float bit patterns that decode from their own encoding. */
#define FLOAT4_SIGN		UINT32_C(0x80000000)
#define FLOAT4_INF		UINT32_C(0x7F800000)
#define FLOAT4_NAN		UINT32_C(0x7FC00000)
#define FLOAT8_INF		UINT64_C(0x7FF0000000000000)
#define FLOAT8_NAN		UINT64_C(0x7FF8000000000000)

/* -0 becomes 0, every NaN the NaN that is the greatest number. */
static uint32_t
float4_canonical(uint32_t bits)
{
	if ((bits & ~FLOAT4_SIGN) > FLOAT4_INF)
		return FLOAT4_NAN;
	return bits == FLOAT4_SIGN ? 0 : bits;
}

static uint64_t
float8_canonical(uint64_t bits)
{
	if ((bits & ~EUNO_FLOAT8_SIGN) > FLOAT8_INF)
		return FLOAT8_NAN;
	return bits == EUNO_FLOAT8_SIGN ? 0 : bits;
}

/* Positive numbers get the high bit, negative ones are turned around. */
static uint32_t
float4_ordered(uint32_t bits)
{
	bits = float4_canonical(bits);
	return (bits & FLOAT4_SIGN) ? ~bits : bits | FLOAT4_SIGN;
}

static uint64_t
float8_ordered(uint64_t bits)
{
	bits = float8_canonical(bits);
	return (bits & EUNO_FLOAT8_SIGN) ? ~bits : bits | EUNO_FLOAT8_SIGN;
}

/* A fixed-width kind's value as a number ordered like the value. */
static inline uint64_t
ordered_number(const EunoKeyColumn *col, Datum value)
{
	switch (col->kind)
	{
		case EUNO_KIND_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case EUNO_KIND_CHAR:
			return (uint8_t) DatumGetChar(value);
		case EUNO_KIND_INT16:
			return (uint16_t) ((uint16_t) DatumGetInt16(value) ^ 0x8000);
		case EUNO_KIND_INT32:
			return (uint32_t) DatumGetInt32(value) ^ UINT32_C(0x80000000);
		case EUNO_KIND_INT64:
			return (uint64_t) DatumGetInt64(value) ^ UINT64_C(0x8000000000000000);
		case EUNO_KIND_UINT32:
			return DatumGetUInt32(value);
		case EUNO_KIND_UINT64:
			return DatumGetUInt64(value);
		case EUNO_KIND_ENUM:
			return euno_label_place(col->labels, DatumGetObjectId(value));
		case EUNO_KIND_FLOAT4:
			return float4_ordered((uint32_t) DatumGetInt32(value));
		default:
			Assert(col->kind == EUNO_KIND_FLOAT8);
			return float8_ordered((uint64_t) DatumGetInt64(value));
	}
}

/* The reverse of ordered_number. */
static inline Datum
number_value(const EunoKeyColumn *col, uint64_t n)
{
	switch (col->kind)
	{
		case EUNO_KIND_BOOL:
			return BoolGetDatum(n != 0);
		case EUNO_KIND_CHAR:
			return CharGetDatum((char) n);
		case EUNO_KIND_INT16:
			return Int16GetDatum((int16) ((uint16_t) n ^ 0x8000));
		case EUNO_KIND_INT32:
			return Int32GetDatum((int32) ((uint32_t) n ^ UINT32_C(0x80000000)));
		case EUNO_KIND_INT64:
			return Int64GetDatum((int64) (n ^ UINT64_C(0x8000000000000000)));
		case EUNO_KIND_UINT32:
			/* sign-extended, as fetch_att makes it from a heap tuple */
			return Int32GetDatum((int32) (uint32_t) n);
		case EUNO_KIND_UINT64:
			return UInt64GetDatum(n);
		case EUNO_KIND_ENUM:
			return ObjectIdGetDatum(euno_label_at(col->labels, (uint32_t) n));
		case EUNO_KIND_FLOAT4:
			n = (n & FLOAT4_SIGN) ? n & ~FLOAT4_SIGN : (uint32_t) ~n;
			return Int32GetDatum((int32) n);
		default:
			Assert(col->kind == EUNO_KIND_FLOAT8);
			return Int64GetDatum((int64) euno_float8_bits(n));
	}
}

/* Big endian, any alignment. */
static inline void
put_number(uint8_t *p, uint64_t n, int width)
{
	switch (width)
	{
		case 1:
			*p = (uint8_t) n;
			break;
		case 2:
			{
				uint16_t	be = pg_hton16((uint16_t) n);

				memcpy(p, &be, 2);
				break;
			}
		case 4:
			{
				uint32_t	be = pg_hton32((uint32_t) n);

				memcpy(p, &be, 4);
				break;
			}
		default:
			{
				uint64_t	be = pg_hton64(n);

				memcpy(p, &be, 8);
				break;
			}
	}
}

/*
 * A fixed-width kind's value from its encoding, of which attlen bytes count.
 */
static inline Datum
get_value(const EunoKeyColumn *col, const uint8_t *p)
{
	uint64_t	number = euno_number_get(p, col->attlen);

	if (col->desc)
		number = ~number & (~UINT64_C(0) >> (64 - 8 * col->attlen));
	return number_value(col, number);
}

/* A string without zero bytes, and its terminator. */
static uint32_t
put_string(bool desc, const uint8_t *data, uint32_t n, uint8_t *p,
		   uint32_t avail)
{
	if (n < avail)
	{
		if (unlikely(memchr(data, 0, n) != NULL))
			ereport(ERROR,
					(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
					 errmsg("cannot index a string that contains a zero byte")));
		euno_copy_bytes(desc, p, data, n);
		p[n] = desc ? 0xFF : 0x00;
	}
	return n + 1;
}

/* A string of any bytes: zeros are escaped. */
static uint32_t
put_bytea(bool desc, const uint8_t *data, uint32_t n, uint8_t *p,
		  uint32_t avail)
{
	uint8_t		flip = desc ? 0xFF : 0x00;
	uint64_t	need = (uint64_t) n + 2;

	for (const uint8_t *z = data;
		 (z = memchr(z, 0, n - (z - data))) != NULL; z++)
		need++;
	if (need > avail)
		return (uint32_t) Min(need, PG_UINT32_MAX);

	for (uint32_t i = 0; i < n; i++)
	{
		*p++ = data[i] ^ flip;
		if (data[i] == 0)
			*p++ = 0xFF ^ flip;
	}
	*p++ = flip;
	*p = flip;
	return (uint32_t) need;
}

uint32_t
euno_encode_put(const EunoKeyColumn *col, Datum value, uint8_t *p,
				uint32_t avail)
{
	struct varlena *v;
	uint8_t    *data;
	uint32_t	n;
	uint32_t	need;

	switch (col->kind)
	{
		case EUNO_KIND_FIXED:
			if ((uint32_t) col->attlen <= avail)
				euno_copy_bytes(col->desc, p,
								(uint8_t *) DatumGetPointer(value),
								col->attlen);
			return col->attlen;
		case EUNO_KIND_TIMETZ:
			if (EUNO_TIMETZ_BYTES <= avail)
				euno_timetz_put(col->desc, value, p);
			return EUNO_TIMETZ_BYTES;
		case EUNO_KIND_INTERVAL:
			if (EUNO_INTERVAL_BYTES <= avail)
				euno_interval_put(col->desc, value, p);
			return EUNO_INTERVAL_BYTES;
		case EUNO_KIND_NAME:
			return put_string(col->desc, (uint8_t *) DatumGetPointer(value),
							  (uint32_t) strnlen(NameStr(*DatumGetName(value)),
												 NAMEDATALEN),
							  p, avail);
		case EUNO_KIND_INET:
		case EUNO_KIND_NUMERIC:
		case EUNO_KIND_TEXT:
		case EUNO_KIND_BPCHAR:
		case EUNO_KIND_BYTEA:
			break;
		case EUNO_KIND_ARRAY:
		case EUNO_KIND_RANGE:
		case EUNO_KIND_MULTIRANGE:
			return euno_elements_put(col, value, p, avail);
		default:
			if ((uint32_t) col->attlen <= avail)
			{
				uint64_t	number = ordered_number(col, value);

				put_number(p, col->desc ? ~number : number, col->attlen);
			}
			return col->attlen;
	}

	v = PG_DETOAST_DATUM_PACKED(value);
	data = (uint8_t *) VARDATA_ANY(v);
	n = VARSIZE_ANY_EXHDR(v);
	if (col->kind == EUNO_KIND_BPCHAR)
		n = euno_unpadded(data, n);
	if (col->kind == EUNO_KIND_NUMERIC)
		need = euno_numeric_put(col->desc, v, p, avail);
	else if (col->kind == EUNO_KIND_INET)
		need = euno_inet_put(col->desc, v, p, avail);
	else if (col->kind == EUNO_KIND_BYTEA)
		need = put_bytea(col->desc, data, n, p, avail);
	else
		need = put_string(col->desc, data, n, p, avail);
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return need;
}

static void __attribute__((noreturn))
overrun(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg_internal("encoded key column has no end")));
}

/* The bytes of a bytea; their number. */
static uint32_t
get_bytea(bool desc, const uint8_t *p, const uint8_t *end, uint8_t *to)
{
	uint8_t    *out = to;

	for (end -= 2; p < end;)
	{
		const uint8_t *zero = memchr(p, desc ? 0xFF : 0x00, end - p);
		uint32_t	n = zero == NULL ? end - p : zero + 1 - p;

		euno_copy_bytes(desc, out, p, n);
		out += n;
		p += n + (zero != NULL);
	}
	return out - to;
}

uint32_t
euno_encode_get_varlena(const EunoKeyColumn *col, const uint8_t *p,
						const uint8_t *end, const uint8_t *lost, uint8_t *to)
{
	if (col->kind == EUNO_KIND_NUMERIC)
		return euno_numeric_get(col->desc, col->modifier, p, end, lost, to);
	if (col->kind == EUNO_KIND_INET)
		return euno_inet_get(col->desc, p, end, to);
	if (col->kind >= EUNO_KIND_ARRAY)
		return euno_elements_get(col, p, end, lost, to);
	return get_bytea(col->desc, p, end, to);
}

const uint8_t *
euno_encode_skip(const EunoKeyColumn *col, const uint8_t *p,
				 const uint8_t *end)
{
	uint8_t		flip = col->desc ? 0xFF : 0x00;

	switch (col->kind)
	{
		case EUNO_KIND_INTERVAL:
			if (end - p < EUNO_INTERVAL_BYTES)
				overrun();
			return p + EUNO_INTERVAL_BYTES;
		case EUNO_KIND_INET:
		case EUNO_KIND_NUMERIC:
		case EUNO_KIND_ARRAY:
		case EUNO_KIND_RANGE:
		case EUNO_KIND_MULTIRANGE:
			p = col->kind == EUNO_KIND_INET ?
				euno_inet_skip(col->desc, p, end) :
				col->kind == EUNO_KIND_NUMERIC ?
				euno_numeric_skip(col->desc, p, end) :
				euno_elements_skip(col, p, end);
			if (p == NULL)
				overrun();
			return p;
		case EUNO_KIND_NAME:
		case EUNO_KIND_TEXT:
		case EUNO_KIND_BPCHAR:
			p = p < end ? memchr(p, flip, end - p) : NULL;
			if (p == NULL)
				overrun();
			return p + 1;
		case EUNO_KIND_BYTEA:
			for (;;)
			{
				p = p < end ? memchr(p, flip, end - p) : NULL;
				if (p == NULL || p + 1 >= end)
					overrun();
				p += 2;
				if (p[-1] == flip)
					return p;
			}
		default:
			if (end - p < col->attlen)
				overrun();
			return p + col->attlen;
	}
}

/* The longest char(n) of which blanks are not kept. */
#define MOST_CHARACTERS	256

uint16
euno_type_modifier(EunoKeyKind kind, Oid type, int32 typmod)
{
	char	   *text;
	int			n = 0;

	/* Others may take modifiers for something else. */
	type = getBaseTypeAndTypmod(type, &typmod);
	if (kind == EUNO_KIND_NUMERIC && type == NUMERICOID)
	{
		/* numeric.c alone knows how it is made */
		text = DatumGetCString(DirectFunctionCall1(numerictypmodout,
												   Int32GetDatum(typmod)));
		if (sscanf(text, "(%*d,%d)", &n) != 1 || n < 0)
			n = 0;
	}
	else if (kind == EUNO_KIND_BPCHAR && type == BPCHAROID)
		n = typmod - VARHDRSZ;
	return n > 0 && (kind == EUNO_KIND_NUMERIC || n <= MOST_CHARACTERS) ?
		(uint16) n : 0;
}

/* How many characters these bytes are; most texts are ASCII. */
static uint32_t
count_characters(const char *text, uint32_t n)
{
	const uint64_t high = UINT64_MAX / UINT8_MAX * 0x80;
	const uint8_t *p = (const uint8_t *) text;
	uint64_t	seen = 0;

	if (n < sizeof(uint64_t))
		for (uint32_t i = 0; i < n; i++)
			seen |= p[i];
	else
	{
		seen = euno_get_word(p + n - sizeof(uint64_t));
		for (uint32_t i = 0; i < n - sizeof(uint64_t); i += sizeof(uint64_t))
			seen |= euno_get_word(p + i);
	}
	return (seen & high) == 0 ? n :
		(uint32_t) pg_mbstrlen_with_len(text, (int) n);
}

uint32_t
euno_blanks(const EunoKeyColumn *col, const uint8_t *lost, const char *text,
			uint32_t n)
{
	uint32_t	blanks;

	if (lost == NULL)
	{
		if (col->modifier == 0)
			return 0;
		n = count_characters(text, n);
		return col->modifier > n ? col->modifier - n : 0;
	}
	memcpy(&blanks, lost, sizeof(blanks));
	if (unlikely(blanks > EUNO_MAX_ENTRY))
		overrun();
	return blanks;
}

/* A float of which the bits were lost. */
static Datum
lost_float(const EunoKeyColumn *col, const uint8_t *lost)
{
	int64		bits8;
	int32		bits4;

	if (col->kind == EUNO_KIND_FLOAT8)
	{
		memcpy(&bits8, lost, sizeof(bits8));
		return Int64GetDatum(bits8);
	}
	memcpy(&bits4, lost, sizeof(bits4));
	return Int32GetDatum(bits4);
}

const uint8_t *
euno_encode_get(const EunoKeyColumn *col, const uint8_t *p,
				const uint8_t *end, const uint8_t *lost, uint8_t **scratch,
				Datum *value)
{
	uint8_t    *data = *scratch + VARHDRSZ;
	const uint8_t *next;
	uint32_t	n;

	switch (col->kind)
	{
		case EUNO_KIND_FIXED:
			if (end - p < col->attlen)
				overrun();
			euno_copy_bytes(col->desc, *scratch, p, col->attlen);
			*value = PointerGetDatum(*scratch);
			*scratch += MAXALIGN(col->attlen);
			return p + col->attlen;
		case EUNO_KIND_TIMETZ:
		case EUNO_KIND_INTERVAL:
			next = euno_encode_skip(col, p, end);
			if (col->kind == EUNO_KIND_TIMETZ)
				euno_timetz_get(col->desc, p, *scratch);
			else
				euno_interval_get(col->desc, p, lost, *scratch);
			*value = PointerGetDatum(*scratch);
			*scratch += MAXALIGN(col->attlen);
			return next;
		case EUNO_KIND_NAME:
		case EUNO_KIND_TEXT:
		case EUNO_KIND_BPCHAR:
			next = memchr(p, col->desc ? 0xFF : 0x00, end - p);
			if (next == NULL)
				overrun();
			n = next++ - p;
			break;
		case EUNO_KIND_INET:
		case EUNO_KIND_NUMERIC:
		case EUNO_KIND_BYTEA:
		case EUNO_KIND_ARRAY:
		case EUNO_KIND_RANGE:
		case EUNO_KIND_MULTIRANGE:
			next = euno_encode_skip(col, p, end);
			n = euno_encode_get_varlena(col, p, next, lost, data);
			break;
		default:
			if (end - p < col->attlen)
				overrun();
			*value = lost != NULL ? lost_float(col, lost) : get_value(col, p);
			return p + col->attlen;
	}

	*value = PointerGetDatum(*scratch);
	if (col->kind == EUNO_KIND_NAME)
	{
		euno_copy_bytes(col->desc, *scratch, p, n);
		memset(*scratch + n, 0, NAMEDATALEN - n);
		*scratch += NAMEDATALEN;
		return next;
	}
	if (col->kind == EUNO_KIND_TEXT || col->kind == EUNO_KIND_BPCHAR)
		euno_copy_bytes(col->desc, data, p, n);
	if (col->kind == EUNO_KIND_BPCHAR)
	{
		uint32_t	blanks = euno_blanks(col, lost, (char *) data, n);

		memset(data + n, ' ', blanks);
		n += blanks;
	}
	SET_VARSIZE(*scratch, VARHDRSZ + n);
	*scratch += MAXALIGN(VARHDRSZ + n);
	return next;
}

/*
 * "hidden" grows by the blanks that are in no key or payload but come back
 * when the value is decoded.  They are counted even where char(n) implies
 * them: ALTER TABLE can take the length away from a column and leave its index
 * as it is.
 */
uint32_t
euno_encode_lost(const EunoKeyColumn *col, Datum value, uint8_t *p,
				 uint64_t *hidden)
{
	struct varlena *v;
	uint32_t	len;

	if (col->kind == EUNO_KIND_FLOAT4)
	{
		uint32_t	bits = (uint32_t) DatumGetInt32(value);

		memcpy(p, &bits, sizeof(bits));
		return bits == float4_canonical(bits) ? 0 : sizeof(bits);
	}
	if (col->kind == EUNO_KIND_FLOAT8)
	{
		uint64_t	bits = (uint64_t) DatumGetInt64(value);

		memcpy(p, &bits, sizeof(bits));
		return bits == float8_canonical(bits) ? 0 : sizeof(bits);
	}
	if (col->kind == EUNO_KIND_INTERVAL)
		return euno_interval_lost(value, p);
	if (col->kind == EUNO_KIND_ARRAY)
		return euno_array_lost(value, p);

	v = PG_DETOAST_DATUM_PACKED(value);
	if (col->kind == EUNO_KIND_NUMERIC)
	{
		uint16		lost;

		len = euno_numeric_lost(col->modifier, v, &lost) ? sizeof(lost) : 0;
		memcpy(p, &lost, len);
	}
	else
	{
		const char *text = VARDATA_ANY(v);
		uint32_t	n = euno_unpadded(text, VARSIZE_ANY_EXHDR(v));
		uint32_t	blanks = VARSIZE_ANY_EXHDR(v) - n;

		Assert(col->kind == EUNO_KIND_BPCHAR);
		*hidden += blanks;
		len = blanks == euno_blanks(col, NULL, text, n) ? 0 : sizeof(blanks);
		memcpy(p, &blanks, len);
	}
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return len;
}

/* memcmp, and the shorter first. */
static int
compare_bytes(const char *a, uint32_t na, const char *b, uint32_t nb)
{
	int			result = memcmp(a, b, Min(na, nb));

	if (result != 0)
		return result;
	return (na > nb) - (na < nb);
}

static int
compare_numbers(const EunoKeyColumn *col, Datum a, Datum b)
{
	uint64_t	x = ordered_number(col, a);
	uint64_t	y = ordered_number(col, b);

	return (x > y) - (x < y);
}

/* As for the type's comparator, even ones are in order. */
static int
compare_enum(const EunoKeyColumn *col, Datum a, Datum b)
{
	Oid			x = DatumGetObjectId(a);
	Oid			y = DatumGetObjectId(b);

	if (x == y || ((x | y) & 1) == 0)
		return (x > y) - (x < y);
	return compare_numbers(col, a, b);
}

int
euno_encode_compare(const EunoKeyColumn *col, Datum a, Datum b)
{
	struct varlena *va;
	struct varlena *vb;
	uint32_t	na;
	uint32_t	nb;
	int			result;

	switch (col->kind)
	{
		case EUNO_KIND_FIXED:
			return memcmp(DatumGetPointer(a), DatumGetPointer(b), col->attlen);
		case EUNO_KIND_NAME:
			return strncmp(NameStr(*DatumGetName(a)), NameStr(*DatumGetName(b)),
						   NAMEDATALEN);
		case EUNO_KIND_TIMETZ:
			return euno_timetz_compare(a, b);
		case EUNO_KIND_INTERVAL:
			return euno_interval_compare(a, b);
		case EUNO_KIND_INET:
			return DatumGetInt32(DirectFunctionCall2(network_cmp, a, b));
		case EUNO_KIND_NUMERIC:
			return DatumGetInt32(DirectFunctionCall2(numeric_cmp, a, b));
		case EUNO_KIND_TEXT:
		case EUNO_KIND_BPCHAR:
		case EUNO_KIND_BYTEA:
			break;
		case EUNO_KIND_ENUM:
			return compare_enum(col, a, b);
		default:
			return compare_numbers(col, a, b);
	}

	va = PG_DETOAST_DATUM_PACKED(a);
	vb = PG_DETOAST_DATUM_PACKED(b);
	na = VARSIZE_ANY_EXHDR(va);
	nb = VARSIZE_ANY_EXHDR(vb);
	if (col->kind == EUNO_KIND_BPCHAR)
	{
		na = euno_unpadded(VARDATA_ANY(va), na);
		nb = euno_unpadded(VARDATA_ANY(vb), nb);
	}
	result = compare_bytes(VARDATA_ANY(va), na, VARDATA_ANY(vb), nb);
	if ((Pointer) va != DatumGetPointer(a))
		pfree(va);
	if ((Pointer) vb != DatumGetPointer(b))
		pfree(vb);
	return result;
}

uint64_t
euno_encode_head(const EunoKeyColumn *col, Datum value)
{
	uint8_t		bytes[sizeof(uint64_t)] = {0};
	struct varlena *v;
	uint32_t	n;

	switch (col->kind)
	{
		case EUNO_KIND_FIXED:
			memcpy(bytes, DatumGetPointer(value), Min(col->attlen, (int) sizeof(bytes)));
			break;
		case EUNO_KIND_NAME:
			memcpy(bytes, NameStr(*DatumGetName(value)),
				   strnlen(NameStr(*DatumGetName(value)), sizeof(bytes)));
			break;
		case EUNO_KIND_TIMETZ:
			return euno_timetz_head(value);
		case EUNO_KIND_INTERVAL:
			return euno_interval_head(value);
		case EUNO_KIND_TEXT:
		case EUNO_KIND_BPCHAR:
		case EUNO_KIND_BYTEA:
			v = PG_DETOAST_DATUM_PACKED(value);
			n = VARSIZE_ANY_EXHDR(v);
			if (col->kind == EUNO_KIND_BPCHAR)
				n = euno_unpadded(VARDATA_ANY(v), n);
			memcpy(bytes, VARDATA_ANY(v), Min(n, sizeof(bytes)));
			if ((Pointer) v != DatumGetPointer(value))
				pfree(v);
			break;
		default:
			return ordered_number(col, value);
	}
	return euno_get_word(bytes);
}
