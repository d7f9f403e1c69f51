/*-------------------------------------------------------------------------
 *
 * key_image.c
 *	  An entry as an index tuple: its columns, one after the other.
 *
 * For any entry; many have shorter ways (key_tuples.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_image.h"

/*
 * Zeros up to where a value of this alignment may begin, or further: there is
 * room for eight.
 */
static inline void
pad(EunoImage *image, uint32_t align)
{
	memset(image->data + image->at, 0, MAXIMUM_ALIGNOF);
	image->at = TYPEALIGN(align, image->at);
}

pg_noinline void
euno_image_long_header(const EunoKeyColumn *col, uint32_t n, EunoImage *image)
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
end_varlena(const EunoKeyColumn *col, uint32_t n, EunoImage *image)
{
	if (likely(n <= SHORT_STRING) && col->may_short)
	{
		SET_VARSIZE_SHORT(image->data + image->at, n + VARHDRSZ_SHORT);
		image->at += VARHDRSZ_SHORT + n;
	}
	else
		euno_image_long_header(col, n, image);
}

/* A numeric, a network address, a bytea, an array, a range. */
static inline void
put_varlena(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
			const uint8_t *lost, EunoImage *image)
{
	char	   *to = image->data + image->at + VARHDRSZ_SHORT;

	end_varlena(col, euno_encode_get_varlena(col, p, end, lost, (uint8_t *) to),
				image);
}

/* A text, or a bpchar and the blanks that it has lost. */
static inline void
put_string(const EunoKeyColumn *col, const uint8_t *p, uint32_t n,
		   const uint8_t *lost, EunoImage *image)
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

void
euno_image_decoded(const EunoKeyColumn *col, const uint8_t *p,
				   const uint8_t *end, const uint8_t *lost, EunoImage *image)
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

pg_noinline void
euno_image_other(const EunoKeyColumn *col, const uint8_t *p,
				 const uint8_t *lost, char *to)
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

/*
 * The next column of a key in BYTES order, not NULL; what follows it.  The last
 * one reaches to the end.
 */
static inline const uint8_t *
put_column(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
		   bool last, const uint8_t *lost, EunoImage *image)
{
	const uint8_t *next;

	if (col->encoded > 0)
	{
		if (unlikely(end - p < col->encoded))
			euno_row_overrun(col->encoded, end - p);
		pad(image, col->align);
		euno_image_fixed(col, p, lost, image->data + image->at);
		image->at += col->attlen;
		return p + col->encoded;
	}
	next = last && p < end ? end : euno_encode_skip(col, p, end);
	if (col->kind == EUNO_KIND_TEXT || col->kind == EUNO_KIND_BPCHAR)
		put_string(col, p, next - 1 - p, lost, image);
	else if (col->attlen == -1)
		put_varlena(col, p, next, lost, image);
	else
		euno_image_decoded(col, p, next, lost, image);
	return next;
}

/* A key in BYTES order. */
static inline void
put_key(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
		EunoLost *lost, EunoImage *image)
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
		uint32_t len, EunoImage *image)
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
put_bitmap(const EunoImage *image, uint32_t size, IndexTuple itup)
{
	uint8_t    *bitmap = (uint8_t *) itup + sizeof(IndexTupleData);

	memmove((char *) itup + IndexInfoFindDataOffset(INDEX_NULL_MASK),
			image->data, size);
	memset(bitmap, 0, IndexInfoFindDataOffset(INDEX_NULL_MASK) -
		   sizeof(IndexTupleData));
	for (int i = 0; i < INDEX_MAX_KEYS / 8; i++)
		bitmap[i] = (uint8_t) (image->present >> 8 * i);
}

pg_noinline uint32_t
euno_image_tuple(const EunoKeySchema *schema, const uint8_t *key,
				 const EunoItemKey *item, IndexTuple itup)
{
	EunoImage	image = {.data = (char *) itup + IndexInfoFindDataOffset(0)};
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
