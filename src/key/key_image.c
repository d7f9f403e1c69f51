/*-------------------------------------------------------------------------
 *
 * key_image.c
 *	  Keys as index tuples, without a detour over values.
 *
 * Index-only scans hand out nothing but this.  Simple are entries without payload
 * in BYTES order, if no column is of the type name or bytea; and in COMPARE order
 * those of one varlena column, unless it is NULL.
 *
 * What is before a varlena or behind all values is zero: readers tell padding from
 * a short value by that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "port/pg_bswap.h"

#include "key/key_private.h"

/* The longest string with a short header. */
#define SHORT_STRING	(VARATT_SHORT_MAX - VARHDRSZ_SHORT)

/* The value of an integer column; "to" is aligned for it. */
static inline __attribute__((always_inline)) void
put_integer(uint64_t flip, int width, const uint8_t *p, char *to)
{
	uint16_t	be16;
	uint32_t	be32;

	switch (width)
	{
		case 2:
			memcpy(&be16, p, 2);
			*(uint16_t *) to = (uint16_t) (pg_ntoh16(be16) ^ flip);
			break;
		case 4:
			memcpy(&be32, p, 4);
			*(uint32_t *) to = pg_ntoh32(be32) ^ (uint32_t) flip;
			break;
		default:
			*(uint64_t *) to = euno_get_word(p) ^ flip;
			break;
	}
}

/* The bytes of a string or of a fixed length, complemented for DESC. */
static inline void
put_bytes(const EunoKeyColumn *col, const uint8_t *p, uint32_t n, char *to)
{
	memcpy(to, p, n);
	if (unlikely(col->desc))
		for (uint32_t i = 0; i < n; i++)
			to[i] = (char) ~to[i];
}

/* Zeros from "at" on up to "end", which it returns. */
static inline uint32_t
pad(char *data, uint32_t at, uint32_t end)
{
	while (at < end)
		data[at++] = 0;
	return end;
}

/* A string at "at" in the data; what follows it. */
static inline uint32_t
put_string(const EunoKeyColumn *col, const uint8_t *p, uint32_t n, char *data,
		   uint32_t at)
{
	if (likely(n <= SHORT_STRING) && col->may_short)
	{
		SET_VARSIZE_SHORT(data + at, n + VARHDRSZ_SHORT);
		at += VARHDRSZ_SHORT;
	}
	else
	{
		at = pad(data, at, att_align_nominal(at, col->attalign));
		SET_VARSIZE(data + at, n + VARHDRSZ);
		at += VARHDRSZ;
	}
	put_bytes(col, p, n, data + at);
	return at + n;
}

/* A number at "at" in the data; what follows it. */
static uint32_t
put_numeric(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
			char *data, uint32_t at)
{
	char	   *number = data + at + VARHDRSZ_SHORT;
	uint32_t	n = euno_numeric_get(col->desc, p, end, (uint8_t *) number);
	uint32_t	start;

	if (likely(n <= SHORT_STRING) && col->may_short)
	{
		SET_VARSIZE_SHORT(data + at, n + VARHDRSZ_SHORT);
		return at + VARHDRSZ_SHORT + n;
	}
	start = att_align_nominal(at, col->attalign);
	memmove(data + start + VARHDRSZ, number, n);
	pad(data, at, start);
	SET_VARSIZE(data + start, n + VARHDRSZ);
	return start + VARHDRSZ + n;
}

/* A value of a fixed length that is no integer. */
static pg_noinline void
put_other(const EunoKeyColumn *col, const uint8_t *p, char *to)
{
	uint8_t    *scratch = (uint8_t *) to;	/* not used */
	Datum		value;

	if (col->kind == EUNO_KIND_FIXED)
	{
		put_bytes(col, p, col->attlen, to);
		return;
	}
	(void) euno_encode_get(col, p, p + col->attlen, &scratch, &value);
	store_att_byval(to, value, col->attlen);
}

/* A value of a fixed length. */
static inline void
put_fixed(const EunoKeyColumn *col, const uint8_t *p, char *to)
{
	if (likely(col->integer))
		put_integer(col->flip, col->attlen, p, to);
	else
		put_other(col, p, to);
}

/* All columns have a fixed length, and none is NULL. */
static inline uint32_t
fixed_tuple(const EunoKeySchema *schema, const uint8_t *key, IndexTuple itup)
{
	const EunoKeyColumn *col = schema->cols;
	const uint8_t *end = key + schema->fixed_len;
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);

	while (key < end)
	{
		put_fixed(col, key + 1, data + col->tuple_at);
		key += 1 + col->attlen;
		col++;
	}
	itup->t_info = (uint16) schema->fixed_size;
	return schema->fixed_size;
}

/* BYTES order.  "nulls": some column is NULL. */
static pg_noinline uint32_t
bytes_tuple(const EunoKeySchema *schema, const uint8_t *key,
			const uint8_t *end, IndexTuple itup, bool nulls)
{
	uint32_t	header = IndexInfoFindDataOffset(nulls ? INDEX_NULL_MASK : 0);
	bits8	   *bitmap = (bits8 *) itup + sizeof(IndexTupleData);
	char	   *data = (char *) itup + header;
	const uint8_t *p = key;
	uint32_t	at = 0;

	if (nulls)
		memset(bitmap, 0, header - sizeof(IndexTupleData));
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];
		const uint8_t *start = p + 1;

		if (unlikely(p >= end))
			euno_row_overrun(p - key + 1, end - key);
		if (*p != EUNO_MARK_VALUE)
		{
			if (!nulls)
				return bytes_tuple(schema, key, end, itup, true);
			p = start;
			continue;
		}
		p = euno_encode_skip(col, start, end);
		if (col->kind == EUNO_KIND_NUMERIC)
			at = put_numeric(col, start, p, data, at);
		else if (col->attlen == -1)
			at = put_string(col, start, p - 1 - start, data, at);
		else
		{
			at = pad(data, at, att_align_nominal(at, col->attalign));
			put_fixed(col, start, data + at);
			at += col->attlen;
		}
		if (nulls)
			bitmap[i / 8] |= 1 << i % 8;
	}
	at = pad(data, at, MAXALIGN(at));
	itup->t_info = (uint16) ((header + at) | (nulls ? INDEX_NULL_MASK : 0) |
							 (schema->varlenas ? INDEX_VAR_MASK : 0));
	return header + at;
}

/*
 * A tuple of one varlena: of a string that is to have a short header, or of
 * all its bytes.
 */
static inline __attribute__((always_inline)) uint32_t
one_varlena(const uint8_t *from, uint32_t n, bool header, IndexTuple itup)
{
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	size = MAXALIGN(IndexInfoFindDataOffset(0) + header + n);

	/* What is behind the value is zero */
	*(uint64_t *) ((char *) itup + size - MAXIMUM_ALIGNOF) = 0;
	itup->t_info = (uint16) (size | INDEX_VAR_MASK);
	if (header)
		SET_VARSIZE_SHORT(data, n + VARHDRSZ_SHORT);
	memcpy(data + header, from, n);
	return size;
}

/* The only value of a packed row, as it is.  0: it is NULL. */
static inline uint32_t
varlena_tuple(const EunoKeyColumn *col, const uint8_t *row, uint32_t len,
			  IndexTuple itup)
{
	uint32_t	at = (uint32_t) att_align_pointer(1, col->attalign, -1, row + 1);

	if (unlikely((row[0] & 1) == 0 || at >= len))
		return 0;
	return one_varlena(row + at, len - at, false, itup);
}

/* The only string of a key.  0: it is long, or NULL. */
static inline uint32_t
string_tuple(const uint8_t *key, uint32_t keylen, IndexTuple itup)
{
	if (unlikely(key[0] != EUNO_MARK_VALUE || keylen < 2 ||
				 keylen - 2 > SHORT_STRING))
		return 0;
	return one_varlena(key + 1, keylen - 2, true, itup);
}

/* The only number of a key.  0: it is long, or NULL. */
static inline uint32_t
number_tuple(const EunoKeyColumn *col, const uint8_t *key, uint32_t keylen,
			 IndexTuple itup)
{
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	n;
	uint32_t	size;

	/* It is at most two bytes longer than its key */
	if (unlikely(key[0] != EUNO_MARK_VALUE || keylen > SHORT_STRING - 2))
		return 0;
	n = VARHDRSZ_SHORT + euno_numeric_get(col->desc, key + 1, key + keylen,
										  (uint8_t *) data + VARHDRSZ_SHORT);
	SET_VARSIZE_SHORT(data, n);
	size = IndexInfoFindDataOffset(0) + pad(data, n, MAXALIGN(n));
	itup->t_info = (uint16) (size | INDEX_VAR_MASK);
	return size;
}

/*
 * A tuple of one column that is a varlena.  0: it is not, or not that simple.
 */
static inline uint32_t
varlena_only(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
			 IndexTuple itup)
{
	if (schema->string_key)
		return string_tuple(key, keylen, itup);
	if (schema->number_key)
		return number_tuple(&schema->cols[0], key, keylen, itup);
	if (schema->varlena_row)
		return varlena_tuple(&schema->cols[0], key, keylen, itup);
	return 0;
}

/* The same of any key without payload, if it is simple. */
static pg_noinline uint32_t
other_tuple(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
			IndexTuple itup)
{
	uint32_t	size = varlena_only(schema, key, keylen, itup);

	if (size == 0 && schema->bytes_tuple)
		size = bytes_tuple(schema, key, key + keylen, itup, false);
	return size;
}

uint32_t
euno_key_tuple(const EunoKeySchema *schema, const uint8_t *key,
			   const EunoItemKey *item, IndexTuple itup)
{
	if (unlikely(item->payloadlen > 0))
		return 0;
	if (likely(item->keylen == schema->fixed_len))
		return fixed_tuple(schema, key, itup);
	return other_tuple(schema, key, item->keylen, itup);
}

/* One column of fixed_tuples, each "size" bytes from the last. */
static void
fixed_column(const EunoKeyColumn *col, const uint8_t *keys,
			 const EunoItemKey *items, uint32_t n, char *to, uint32_t size)
{
	uint64_t	flip = col->flip;

	if (col->integer && col->attlen == 8)
		for (uint32_t i = 0; i < n; i++, to += size)
			put_integer(flip, 8, keys + items[i].offset, to);
	else if (col->integer && col->attlen == 4)
		for (uint32_t i = 0; i < n; i++, to += size)
			put_integer(flip, 4, keys + items[i].offset, to);
	else if (col->kind == EUNO_KIND_FIXED && col->attlen == 16 && !col->desc)
		for (uint32_t i = 0; i < n; i++, to += size)
			memcpy(to, keys + items[i].offset, 16);
	else
		for (uint32_t i = 0; i < n; i++, to += size)
			put_fixed(col, keys + items[i].offset, to);
}

/*
 * As many index tuples of columns of fixed length as there are without NULLs
 * and payload and fit into "room" bytes at "to", which is "place" in the
 * buffer: a column at a time.  Their number.
 */
static uint32_t
fixed_tuples(const EunoKeySchema *schema, const uint8_t *buf,
			 const EunoItemKey *items, uint32_t n, char *to, uint32_t place,
			 uint32_t room, uint32_t *places)
{
	uint32_t	size = schema->fixed_size;
	uint32_t	len = schema->fixed_len;
	uint32_t	end = Min(n, room / size);
	uint32_t	count;

	for (count = 0; count < end; count++, place += size)
	{
		if (unlikely(items[count].keylen != len || items[count].payloadlen > 0))
			break;
		((IndexTuple) (to + count * size))->t_info = (uint16) size;
		places[count] = place;
	}
	to += IndexInfoFindDataOffset(0);
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		buf++;					/* the marker */
		fixed_column(col, buf, items, count, to + col->tuple_at, size);
		buf += col->attlen;
	}
	return count;
}

uint32_t
euno_key_tuples(const EunoKeySchema *schema, const uint8_t *buf,
				const EunoItemKey *items, uint32_t n, char *to, uint32_t used,
				uint32_t room, uint32_t *places)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	size;

		Assert(used % MAXIMUM_ALIGNOF == 0);
		if (items[i].keylen == schema->fixed_len)
		{
			uint32_t	count = fixed_tuples(schema, buf, items + i, n - i,
											 to + used, used, room - used,
											 places + i);

			i += count;
			used += count * schema->fixed_size;
			if (i == n)
				break;
		}
		if (i > 0 && items[i].offset == items[i - 1].offset)
		{
			places[i] = places[i - 1];
			continue;
		}
		places[i] = 0;
		if (used + EUNO_KEY_TUPLE_ROOM(schema->nkeys, items[i].keylen) > room)
			continue;
		size = items[i].payloadlen > 0 ? 0 :
			varlena_only(schema, buf + items[i].offset, items[i].keylen,
						 (IndexTuple) (to + used));
		if (size == 0)
			size = euno_key_tuple(schema, buf + items[i].offset, &items[i],
								  (IndexTuple) (to + used));
		if (size > 0)
			places[i] = used;
		used += size;
	}
	return used;
}
