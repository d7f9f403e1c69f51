/*-------------------------------------------------------------------------
 *
 * key_image.c
 *	  Entries as index tuples, without a detour over values.
 *
 * Index-only scans hand out nothing but this.  Any entry's columns are put
 * into its tuple one after the other; keys that are one varlena and nothing
 * else, those of columns of fixed length, and packed rows that are as a tuple
 * has them, have shorter ways.
 *
 * What is before a varlena or behind all values is zero: readers tell padding
 * from a short value by that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"

#include "key/key_private.h"

/* The longest string with a short header. */
#define SHORT_STRING	(VARATT_SHORT_MAX - VARHDRSZ_SHORT)

/* A tuple that is being made. */
typedef struct Image
{
	char	   *data;			/* 8-byte aligned, as if there were no NULLs */
	uint32_t	at;				/* this many bytes are there */
	uint32_t	present;		/* columns that are not NULL, as bits */
} Image;

_Static_assert(INDEX_MAX_KEYS <= 32, "a bit for each column");

/*
 * Zeros up to where a value of this alignment may begin, or further: there is
 * room for eight.
 */
static inline void
pad(Image *image, uint32_t align)
{
	memset(image->data + image->at, 0, MAXIMUM_ALIGNOF);
	image->at = TYPEALIGN(align, image->at);
}

/*
 * Behind a long header what is where it would be behind a short one: n bytes.
 */
static pg_noinline void
move_behind_long_header(const EunoKeyColumn *col, uint32_t n, Image *image)
{
	uint32_t	at = TYPEALIGN(col->align, image->at);

	memmove(image->data + at + VARHDRSZ,
			image->data + image->at + VARHDRSZ_SHORT, n);
	memset(image->data + image->at, 0, at - image->at);
	SET_VARSIZE(image->data + at, n + VARHDRSZ);
	image->at = at + VARHDRSZ + n;
}

/* The header of a varlena whose n bytes are where one is short. */
static inline void
end_varlena(const EunoKeyColumn *col, uint32_t n, Image *image)
{
	if (likely(n <= SHORT_STRING) && col->may_short)
	{
		SET_VARSIZE_SHORT(image->data + image->at, n + VARHDRSZ_SHORT);
		image->at += VARHDRSZ_SHORT + n;
	}
	else
		move_behind_long_header(col, n, image);
}

/* A numeric, a network address, a bytea, an array, a range. */
static inline void
put_varlena(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
			const uint8_t *lost, Image *image)
{
	char	   *to = image->data + image->at + VARHDRSZ_SHORT;

	end_varlena(col, euno_encode_get_varlena(col, p, end, lost, (uint8_t *) to),
				image);
}

/* A text, or a bpchar and the blanks that it has lost. */
static inline void
put_string(const EunoKeyColumn *col, const uint8_t *p, uint32_t n,
		   const uint8_t *lost, Image *image)
{
	char	   *to = image->data + image->at + VARHDRSZ_SHORT;

	euno_copy_bytes(col->desc, (uint8_t *) to, p, n);
	if (col->kind == EUNO_KIND_BPCHAR)
	{
		uint32_t	blanks = euno_blanks(col, lost, to, n);

		memset(to + n, ' ', blanks);
		n += blanks;
	}
	end_varlena(col, n, image);
}

/* An interval, or a name. */
static void
put_decoded(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
			const uint8_t *lost, Image *image)
{
	uint8_t    *to;
	Datum		value;

	if (unlikely(end - p < col->encoded))
		euno_row_overrun(col->encoded, end - p);
	pad(image, col->align);
	to = (uint8_t *) image->data + image->at;
	if (col->kind == EUNO_KIND_INTERVAL)
		euno_interval_get(col->desc, p, lost, to);
	else
		(void) euno_encode_get(col, p, end, lost, &to, &value);
	image->at += col->attlen;
}

/* A value of a fixed length that is no integer. */
static pg_noinline void
put_other(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *lost,
		  char *to)
{
	uint8_t    *scratch = (uint8_t *) to;	/* of by-reference values */
	Datum		value;

	if (col->kind == EUNO_KIND_FIXED)
	{
		euno_copy_bytes(col->desc, scratch, p, col->attlen);
		return;
	}
	(void) euno_encode_get(col, p, p + col->encoded, lost, &scratch, &value);
	if (col->attbyval)
		store_att_byval(to, value, col->attlen);
}

/* A value of a fixed length. */
static inline void
put_fixed(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *lost,
		  char *to)
{
	if (likely(col->integer))
		euno_integer_get(col->flip, col->attlen, p, to);
	else
		put_other(col, p, lost, to);
}

/*
 * The next column of a key in BYTES order, not NULL; what follows it.  The last
 * one reaches to the end.
 */
static inline const uint8_t *
put_column(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
		   bool last, const uint8_t *lost, Image *image)
{
	const uint8_t *next;

	if (col->encoded > 0)
	{
		if (unlikely(end - p < col->encoded))
			euno_row_overrun(col->encoded, end - p);
		pad(image, col->align);
		put_fixed(col, p, lost, image->data + image->at);
		image->at += col->attlen;
		return p + col->encoded;
	}
	next = last && p < end ? end : euno_encode_skip(col, p, end);
	if (col->kind == EUNO_KIND_TEXT || col->kind == EUNO_KIND_BPCHAR)
		put_string(col, p, next - 1 - p, lost, image);
	else if (col->attlen == -1)
		put_varlena(col, p, next, lost, image);
	else
		put_decoded(col, p, next, lost, image);
	return next;
}

/* A key in BYTES order. */
static inline void
put_key(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
		EunoLost *lost, Image *image)
{
	const uint8_t *p = key;
	const uint8_t *end = key + keylen;

	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		if (unlikely(p >= end))
			euno_row_overrun(p - key + 1, keylen);
		if (*p++ != EUNO_MARK_VALUE)
			continue;
		image->present |= UINT32_C(1) << i;
		p = put_column(col, p, end, i == schema->nkeys - 1,
					   euno_lost_next(lost, col), image);
	}
}

/*
 * The columns of a packed row, of which the first one is this of the tuple's.
 */
static void
put_row(const EunoKeySchema *schema, int first, int ncols, const uint8_t *row,
		uint32_t len, Image *image)
{
	const char *base = (const char *) row;
	uint32_t	off = (ncols + 7) / 8;

	for (int i = 0; i < ncols; i++)
	{
		const EunoKeyColumn *col = &schema->cols[first + i];
		uint32_t	next;

		if (!(row[i >> 3] & (1 << (i & 7))))
			continue;
		image->present |= UINT32_C(1) << (first + i);
		if (col->attlen != -1 || !VARATT_NOT_PAD_BYTE(base + off))
			off = TYPEALIGN(col->align, off);
		if (col->attlen != -1 || !VARATT_IS_SHORT(base + off))
			pad(image, col->align);
		next = att_addlength_pointer(off, col->attlen, base + off);
		if (unlikely(next > len))
			euno_row_overrun(next, len);
		memcpy(image->data + image->at, base + off, next - off);
		image->at += next - off;
		off = next;
	}
}

/* Where there are NULLs, a bitmap is before the data. */
static pg_noinline void
put_bitmap(const Image *image, uint32_t size, IndexTuple itup)
{
	uint8_t    *bitmap = (uint8_t *) itup + sizeof(IndexTupleData);

	memmove((char *) itup + IndexInfoFindDataOffset(INDEX_NULL_MASK),
			image->data, size);
	memset(bitmap, 0, IndexInfoFindDataOffset(INDEX_NULL_MASK) -
		   sizeof(IndexTupleData));
	for (int i = 0; i < INDEX_MAX_KEYS / 8; i++)
		bitmap[i] = (uint8_t) (image->present >> 8 * i);
}

/* An index tuple of any entry. */
static pg_noinline uint32_t
any_tuple(const EunoKeySchema *schema, const uint8_t *key,
		  const EunoItemKey *item, IndexTuple itup)
{
	Image		image = {.data = (char *) itup + IndexInfoFindDataOffset(0)};
	const uint8_t *payload = key + MAXALIGN(item->keylen);
	uint32_t	off = 0;
	bool		nulls;
	uint32_t	size;

	if (schema->order == EUNO_ORDER_BYTES)
	{
		EunoLost	lost;

		euno_lost_begin(&lost, schema, payload, item->payloadlen);
		put_key(schema, key, item->keylen, &lost, &image);
		off = MAXALIGN(lost.next - payload);
	}
	else
		put_row(schema, 0, schema->nkeys, key, item->keylen, &image);
	if (off < item->payloadlen && schema->natts > schema->nkeys)
		put_row(schema, schema->nkeys, schema->natts - schema->nkeys,
				payload + off, item->payloadlen - off, &image);

	pad(&image, MAXIMUM_ALIGNOF);
	nulls = image.present != (uint32_t) ((UINT64_C(1) << schema->natts) - 1);
	if (nulls)
		put_bitmap(&image, image.at, itup);
	size = image.at + IndexInfoFindDataOffset(nulls ? INDEX_NULL_MASK : 0);
	itup->t_info = (uint16) (size | (nulls ? INDEX_NULL_MASK : 0) |
							 (schema->varlenas ? INDEX_VAR_MASK : 0));
	return size;
}

/* Have all columns of an entry a fixed length, and is none NULL? */
static inline bool
is_fixed(const EunoKeySchema *schema, const uint8_t *key,
		 const EunoItemKey *item)
{
	const uint8_t *row = key + MAXALIGN(item->keylen);

	if (item->keylen != schema->fixed_len ||
		item->payloadlen != schema->fixed_row)
		return false;
	for (int i = schema->nkeys; i < schema->natts; i++)
	{
		int			k = i - schema->nkeys;

		if ((row[k >> 3] & 1 << (k & 7)) == 0)
			return false;
	}
	return true;
}

/* The tuple of an entry that is. */
static inline uint32_t
fixed_tuple(const EunoKeySchema *schema, const uint8_t *key, IndexTuple itup)
{
	const EunoKeyColumn *col = schema->cols;
	const uint8_t *end = key + schema->fixed_len;
	const uint8_t *row = key + MAXALIGN(schema->fixed_len);
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);

	while (key < end)
	{
		put_fixed(col, key + 1, NULL, data + col->tuple_at);
		key += 1 + col->encoded;
		col++;
	}
	for (; col < schema->cols + schema->natts; col++)
		memcpy(data + col->tuple_at, row + col->row_at, col->attlen);
	itup->t_info = (uint16) schema->fixed_size;
	return schema->fixed_size;
}

/* A tuple of n bytes of data, behind a short header that is to be put. */
static inline __attribute__((always_inline)) uint32_t
whole_tuple(const uint8_t *from, uint32_t n, bool header, uint16_t mask,
			IndexTuple itup)
{
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	size = MAXALIGN(IndexInfoFindDataOffset(0) + header + n);

	/* What is behind the values is zero */
	*(uint64_t *) ((char *) itup + size - MAXIMUM_ALIGNOF) = 0;
	itup->t_info = (uint16) (size | mask);
	if (header)
		SET_VARSIZE_SHORT(data, n + VARHDRSZ_SHORT);
	memcpy(data + header, from, n);
	return size;
}

/* All values of a packed row, as they are.  0: one is NULL. */
static inline uint32_t
row_tuple(const EunoKeySchema *schema, const uint8_t *row, uint32_t len,
		  IndexTuple itup)
{
	const EunoKeyColumn *first = &schema->cols[0];
	uint32_t	at;

	/* Behind the bitmap of a row of NULLs there may be nothing. */
	if (unlikely(row[0] != (1 << schema->nkeys) - 1))
		return 0;
	at = (uint32_t) att_align_pointer(1, first->attalign, first->attlen, row + 1);
	if (unlikely(at >= len))
		return 0;
	return whole_tuple(row + at, len - at, false,
					   schema->varlenas ? INDEX_VAR_MASK : 0, itup);
}

/* The only string of a key.  0: it is long, or NULL. */
static inline uint32_t
string_tuple(const uint8_t *key, uint32_t keylen, IndexTuple itup)
{
	if (unlikely(key[0] != EUNO_MARK_VALUE || keylen < 2 ||
				 keylen - 2 > SHORT_STRING))
		return 0;
	return whole_tuple(key + 1, keylen - 2, true, INDEX_VAR_MASK, itup);
}

/*
 * The tuple's size is known: what is behind the n bytes of its values is zero.
 */
static inline uint32_t
end_tuple(char *data, uint32_t n, uint16_t mask, IndexTuple itup)
{
	uint32_t	size = MAXALIGN(IndexInfoFindDataOffset(0) + n);

	memset(data + n, 0, MAXIMUM_ALIGNOF);
	itup->t_info = (uint16) (size | mask);
	return size;
}

/* What the only value of a key has lost; NULL: nothing. */
static inline const uint8_t *
only_lost(const EunoKeySchema *schema, const uint8_t *key,
		  const EunoItemKey *item)
{
	EunoLost	lost;

	if (item->payloadlen == 0)
		return NULL;
	euno_lost_begin(&lost, schema, key + MAXALIGN(item->keylen),
					item->payloadlen);
	return euno_lost_next(&lost, &schema->cols[0]);
}

/* A bpchar, not DESC, and the blanks that it has lost.  0: it is long, or NULL. */
static inline uint32_t
blanks_tuple(const EunoKeySchema *schema, const uint8_t *key,
			 const EunoItemKey *item, IndexTuple itup)
{
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	blanks;
	uint32_t	n;

	if (unlikely(key[0] != EUNO_MARK_VALUE || item->keylen < 2))
		return 0;
	n = VARHDRSZ_SHORT + item->keylen - 2;
	blanks = euno_blanks(&schema->cols[0], only_lost(schema, key, item),
						 (const char *) key + 1, n - VARHDRSZ_SHORT);
	if (unlikely(n + blanks > VARATT_SHORT_MAX))
		return 0;
	SET_VARSIZE_SHORT(data, n + blanks);
	memcpy(data + VARHDRSZ_SHORT, key + 1, n - VARHDRSZ_SHORT);
	for (uint32_t i = 0; i < blanks; i += MAXIMUM_ALIGNOF)
		memset(data + n + i, ' ', MAXIMUM_ALIGNOF);
	return end_tuple(data, n + blanks, INDEX_VAR_MASK, itup);
}

/*
 * Copies a string up to the zero that ends it; up to 8 bytes more are written.
 * Its length; UINT32_MAX: it is long, or has no end.
 */
static inline uint32_t
copy_string(char *to, const uint8_t *p, const uint8_t *end)
{
	uint32_t	n;

	for (n = 0; end - p >= 8 && n < SHORT_STRING; n += 8, p += 8)
	{
		uint64_t	word;
		uint64_t	zeros;

		memcpy(&word, p, 8);
		memcpy(to + n, &word, 8);
		word = pg_bswap64(euno_get_word(p));
		zeros = (word - UINT64_C(0x0101010101010101)) & ~word &
			UINT64_C(0x8080808080808080);
		if (zeros != 0)
			return n + (uint32_t) pg_rightmost_one_pos64(zeros) / 8;
	}
	for (; p < end && n < SHORT_STRING; n++, p++)
	{
		if (*p == 0)
			return n;
		to[n] = (char) *p;
	}
	return UINT32_MAX;
}

/*
 * The columns of a key, of common kinds, that have lost nothing, one after the
 * other.  0: one is NULL, or a long string.
 */
static pg_noinline uint32_t
columns_tuple(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
			  IndexTuple itup)
{
	const EunoKeyColumn *end_col = schema->cols + schema->nkeys;
	const uint8_t *p = key;
	const uint8_t *end = key + keylen;
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	at = 0;
	uint32_t	blanks;
	uint32_t	n;

	for (const EunoKeyColumn *col = schema->cols; col < end_col; col++, p += n)
	{
		if (unlikely(p >= end || *p++ != EUNO_MARK_VALUE))
			return 0;
		if (col->attlen == -1)
		{
			n = copy_string(data + at + VARHDRSZ_SHORT, p, end);
			if (unlikely(n > SHORT_STRING))
				return 0;
			blanks = col->kind == EUNO_KIND_BPCHAR ?
				euno_blanks(col, NULL, data + at + VARHDRSZ_SHORT, n) : 0;
			if (unlikely(n + blanks > SHORT_STRING))
				return 0;
			SET_VARSIZE_SHORT(data + at, n + blanks + VARHDRSZ_SHORT);
			at += VARHDRSZ_SHORT + n++;
			memset(data + at, ' ', blanks);
			at += blanks;
			continue;
		}
		n = col->attlen;
		if (unlikely(end - p < (ptrdiff_t) n))
			return 0;
		memset(data + at, 0, MAXIMUM_ALIGNOF);
		at = TYPEALIGN(col->align, at);
		if (likely(col->integer))
			euno_integer_get(col->flip, n, p, data + at);
		else if (col->kind == EUNO_KIND_FLOAT8)
			euno_float8_get(col->desc, p, data + at);
		else
			memcpy(data + at, p, n);
		at += n;
	}
	return end_tuple(data, at, schema->varlenas ? INDEX_VAR_MASK : 0, itup);
}

/*
 * The columns of a packed row whose tuple has them elsewhere, one after the
 * other.  0: one is NULL, or a long varlena.
 */
static pg_noinline uint32_t
row_columns_tuple(const EunoKeySchema *schema, const uint8_t *row,
				  uint32_t len, IndexTuple itup)
{
	const EunoKeyColumn *end_col = schema->cols + schema->nkeys;
	const char *base = (const char *) row;
	char	   *data = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	off = 1;		/* the bitmap */
	uint32_t	at = 0;

	if (unlikely(len == 0 || row[0] != (1 << schema->nkeys) - 1))
		return 0;
	for (const EunoKeyColumn *col = schema->cols; col < end_col; col++)
	{
		uint32_t	n = (uint32_t) col->attlen;

		if (col->attlen == -1)
		{
			if (unlikely(off >= len || !VARATT_IS_SHORT(base + off)))
				return 0;
			n = VARSIZE_SHORT(base + off);
		}
		else
		{
			off = TYPEALIGN(col->align, off);
			memset(data + at, 0, MAXIMUM_ALIGNOF);
			at = TYPEALIGN(col->align, at);
		}
		if (unlikely(n == 0 || off > len || n > len - off))
			return 0;
		memcpy(data + at, base + off, n);
		at += n;
		off += n;
	}
	return end_tuple(data, at, schema->varlenas ? INDEX_VAR_MASK : 0, itup);
}

/* The only value of a key, a varlena that has to be decoded.  0: it is NULL. */
static pg_attribute_always_inline uint32_t
varlena_tuple(const EunoKeySchema *schema, const uint8_t *key,
			  const EunoItemKey *item, IndexTuple itup)
{
	const EunoKeyColumn *col = &schema->cols[0];
	Image		image = {.data = (char *) itup + IndexInfoFindDataOffset(0)};
	char	   *to = image.data;
	uint32_t	n;

	if (unlikely(key[0] != EUNO_MARK_VALUE))
		return 0;
	n = euno_encode_get_varlena(col, key + 1, key + item->keylen,
								only_lost(schema, key, item),
								(uint8_t *) to + VARHDRSZ_SHORT);
	if (likely(n <= SHORT_STRING))
	{
		SET_VARSIZE_SHORT(to, n + VARHDRSZ_SHORT);
		return end_tuple(to, n + VARHDRSZ_SHORT, INDEX_VAR_MASK, itup);
	}
	move_behind_long_header(col, n, &image);
	return end_tuple(to, image.at, INDEX_VAR_MASK, itup);
}

/* The same of one that is none. */
static pg_noinline uint32_t
decoded_tuple(const EunoKeySchema *schema, const uint8_t *key,
			  const EunoItemKey *item, IndexTuple itup)
{
	Image		image = {.data = (char *) itup + IndexInfoFindDataOffset(0)};

	if (unlikely(key[0] != EUNO_MARK_VALUE))
		return 0;
	put_decoded(&schema->cols[0], key + 1, key + item->keylen,
				only_lost(schema, key, item), &image);
	return end_tuple(image.data, image.at, 0, itup);
}

/*
 * A tuple of an entry that is not of columns of fixed length only, of this
 * schema's shape.
 */
static pg_attribute_always_inline uint32_t
other_tuple(const EunoKeySchema *schema, EunoTupleShape shape,
			const uint8_t *key, const EunoItemKey *item, IndexTuple itup)
{
	uint32_t	size = 0;

	switch (shape)
	{
		case EUNO_TUPLE_STRING:
			size = string_tuple(key, item->keylen, itup);
			break;
		case EUNO_TUPLE_BLANKS:
			size = blanks_tuple(schema, key, item, itup);
			break;
		case EUNO_TUPLE_COLUMNS:
			if (item->payloadlen == 0)
				size = columns_tuple(schema, key, item->keylen, itup);
			break;
		case EUNO_TUPLE_VARLENA:
			size = varlena_tuple(schema, key, item, itup);
			break;
		case EUNO_TUPLE_DECODED:
			size = decoded_tuple(schema, key, item, itup);
			break;
		case EUNO_TUPLE_ROW:
			if (item->payloadlen == 0)
				size = row_tuple(schema, key, item->keylen, itup);
			break;
		case EUNO_TUPLE_ROW_COLUMNS:
			if (item->payloadlen == 0)
				size = row_columns_tuple(schema, key, item->keylen, itup);
			break;
		case EUNO_TUPLE_ANY:
			break;
	}
	return size > 0 ? size : any_tuple(schema, key, item, itup);
}

/* How much room an entry's tuple may need. */
static inline uint32_t
tuple_room(const EunoKeySchema *schema, const EunoItemKey *item)
{
	uint32_t	room = MAXALIGN(item->keylen) * schema->expands +
		schema->tuple_more;

	if (item->payloadlen > 0)
		room += MAXALIGN(item->payloadlen) + schema->lost_more;
	return room;
}

bool
euno_key_tuple_is_plain(const EunoKeySchema *schema)
{
	return schema->fixed_len > 0;
}

uint32_t
euno_key_tuple_more(const EunoKeySchema *schema)
{
	return schema->tuple_more;
}

uint32_t
euno_key_tuple(const EunoKeySchema *schema, const uint8_t *key,
			   const EunoItemKey *item, IndexTuple itup, uint32_t room)
{
	uint32_t	need = tuple_room(schema, item);

	if (unlikely(need > room))
		return need;
	if (likely(is_fixed(schema, key, item)))
		return fixed_tuple(schema, key, itup);
	need = other_tuple(schema, schema->shape, key, item, itup);
	Assert(need + MAXIMUM_ALIGNOF <= tuple_room(schema, item));
	return need;
}

/* Tuples that fixed_tuples makes at once. */
#define FIXED_GROUP		64

/*
 * One column of n keys, an enum, each "size" bytes from the last.  A label is
 * looked up by its place; rows side by side mostly have the same one.
 */
static void
enum_column(const EunoKeyColumn *col, const uint8_t *keys,
			const uint32_t *offsets, uint32_t n, char *to, uint32_t size)
{
	uint32_t	last = 0;

	for (uint32_t i = 0; i < n; i++, to += size)
	{
		uint32_t	place;

		memcpy(&place, keys + offsets[i], sizeof(place));
		if (i > 0 && place == last)
			memcpy(to, to - size, sizeof(Oid));
		else
			put_other(col, keys + offsets[i], NULL, to);
		last = place;
	}
}

/* The same of any kind. */
static void
fixed_column(const EunoKeyColumn *col, const uint8_t *keys,
			 const uint32_t *offsets, uint32_t n, char *to, uint32_t size)
{
	uint64_t	flip = col->flip;

	if (col->integer && col->attlen == 8)
		for (uint32_t i = 0; i < n; i++, to += size)
			euno_integer_get(flip, 8, keys + offsets[i], to);
	else if (col->integer && col->attlen == 4)
		for (uint32_t i = 0; i < n; i++, to += size)
			euno_integer_get(flip, 4, keys + offsets[i], to);
	else if (col->kind == EUNO_KIND_FLOAT8)
		for (uint32_t i = 0; i < n; i++, to += size)
			euno_float8_get(col->desc, keys + offsets[i], to);
	else if (col->kind == EUNO_KIND_FIXED && col->attlen == 16 && !col->desc)
		for (uint32_t i = 0; i < n; i++, to += size)
			memcpy(to, keys + offsets[i], 16);
	else if (col->kind == EUNO_KIND_ENUM)
		enum_column(col, keys, offsets, n, to, size);
	else if (col->kind == EUNO_KIND_INTERVAL)
		for (uint32_t i = 0; i < n; i++, to += size)
			euno_interval_get(col->desc, keys + offsets[i], NULL, to);
	else if (col->kind == EUNO_KIND_TIMETZ)
		for (uint32_t i = 0; i < n; i++, to += size)
			euno_timetz_get(col->desc, keys + offsets[i], to);
	else
		for (uint32_t i = 0; i < n; i++, to += size)
			put_fixed(col, keys + offsets[i], NULL, to);
}

/* An INCLUDE column of n rows, each "size" bytes from the last. */
static void
included_column(const EunoKeyColumn *col, const uint8_t *rows,
				const uint32_t *offsets, uint32_t n, char *to, uint32_t size)
{
	if (col->attlen == 4)
		for (uint32_t i = 0; i < n; i++, to += size)
			memcpy(to, rows + offsets[i], 4);
	else if (col->attlen == 8)
		for (uint32_t i = 0; i < n; i++, to += size)
			memcpy(to, rows + offsets[i], 8);
	else
		for (uint32_t i = 0; i < n; i++, to += size)
			memcpy(to, rows + offsets[i], col->attlen);
}

/*
 * Tuples of items of columns of fixed length, as many as there are without
 * NULLs and fit into "room" bytes at "to", which is "place" in the buffer; a
 * column at a time.  Items that share a key share a tuple.  How many items
 * these are; *ntuples: tuples.
 */
static uint32_t
fixed_tuples(const EunoKeySchema *schema, const uint8_t *buf,
			 const EunoItemKey *items, uint32_t n, char *to, uint32_t place,
			 uint32_t room, uint32_t *places, uint32_t *ntuples)
{
	uint32_t	size = schema->fixed_size;
	const uint8_t *rows = buf + MAXALIGN(schema->fixed_len);
	char	   *end = to + Min(FIXED_GROUP, room / size) * size;
	char	   *tuple = to;
	uint32_t	offsets[FIXED_GROUP];
	uint32_t	last = UINT32_MAX;
	uint32_t	count = 0;
	uint32_t	i;

	place -= size;
	for (i = 0; i < n; i++)
	{
		uint32_t	offset = items[i].offset;

		if (offset != last)
		{
			if (tuple == end || !is_fixed(schema, buf + offset, &items[i]))
				break;
			((IndexTuple) tuple)->t_info = (uint16) size;
			tuple += size;
			place += size;
			offsets[count++] = last = offset;
		}
		places[i] = place;
	}
	to += IndexInfoFindDataOffset(0);
	for (int k = 0; k < schema->nkeys; k++)
	{
		const EunoKeyColumn *col = &schema->cols[k];

		buf++;					/* the marker */
		fixed_column(col, buf, offsets, count, to + col->tuple_at, size);
		buf += col->encoded;
	}
	for (int k = schema->nkeys; k < schema->natts; k++)
	{
		const EunoKeyColumn *col = &schema->cols[k];

		included_column(col, rows + col->row_at, offsets, count,
						to + col->tuple_at, size);
	}
	*ntuples = count;
	return i;
}

/*
 * Tuples of n items, of this schema's shape, as euno_key_tuples makes them.
 * Those that differ in nothing but their TID share one.
 */
static pg_attribute_always_inline uint32_t
make_tuples(const EunoKeySchema *schema, EunoTupleShape shape,
			const uint8_t *buf, const EunoItemKey *items, uint32_t n, char *to,
			uint32_t used, uint32_t room, uint32_t *places)
{
	uint32_t	last = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	place = 0;

		if (items[i].offset == last)
			place = places[i - 1];
		else if (used + tuple_room(schema, &items[i]) <= room)
		{
			place = used;
			used += other_tuple(schema, shape, buf + items[i].offset, &items[i],
								(IndexTuple) (to + used));
			Assert(used % MAXIMUM_ALIGNOF == 0);
			Assert(used + MAXIMUM_ALIGNOF <= place + tuple_room(schema, &items[i]));
		}
		places[i] = place;
		last = items[i].offset;
	}
	return used;
}

/*
 * The same of columns of fixed length; where one is NULL, or has lost something,
 * one by one.
 */
static uint32_t
make_fixed_tuples(const EunoKeySchema *schema, const uint8_t *buf,
				  const EunoItemKey *items, uint32_t n, char *to,
				  uint32_t used, uint32_t room, uint32_t *places)
{
	EunoTupleShape other = schema->shape;
	uint32_t	done;

	if (other == EUNO_TUPLE_COLUMNS)
		other = EUNO_TUPLE_ANY; /* what is not fixed is not for columns_tuple */
	for (uint32_t i = 0; i < n; i += done)
	{
		uint32_t	ntuples;

		if (items[i].keylen == schema->fixed_len)
		{
			done = fixed_tuples(schema, buf, items + i, n - i, to + used, used,
								room - used, places + i, &ntuples);
			used += ntuples * schema->fixed_size;
			if (done > 0)
				continue;
		}
		for (done = 1; i + done < n; done++)
			if (is_fixed(schema, buf + items[i + done].offset, &items[i + done]))
				break;
		used = make_tuples(schema, other, buf, items + i, done, to, used, room,
						   places + i);
	}
	return used;
}

uint32_t
euno_key_tuples(const EunoKeySchema *schema, const uint8_t *buf,
				const EunoItemKey *items, uint32_t n, char *to, uint32_t used,
				uint32_t room, uint32_t *places)
{
	Assert(used % MAXIMUM_ALIGNOF == 0);
	if (schema->fixed_len > 0)
		return make_fixed_tuples(schema, buf, items, n, to, used, room, places);
	switch (schema->shape)
	{
		case EUNO_TUPLE_STRING:
			return make_tuples(schema, EUNO_TUPLE_STRING, buf, items, n, to,
							   used, room, places);
		case EUNO_TUPLE_VARLENA:
			return make_tuples(schema, EUNO_TUPLE_VARLENA, buf, items, n, to,
							   used, room, places);
		case EUNO_TUPLE_ROW:
			return make_tuples(schema, EUNO_TUPLE_ROW, buf, items, n, to, used,
							   room, places);
		default:
			return make_tuples(schema, schema->shape, buf, items, n, to, used,
							   room, places);
	}
}
