/*-------------------------------------------------------------------------
 *
 * key_tuples.c
 *	  Entries as index tuples, without a detour over values.
 *
 * Index-only scans hand out nothing but this.  Keys that are one varlena and
 * nothing else, those of columns of fixed length, and packed rows that are as
 * a tuple has them, have shorter ways than others, whose columns are put into
 * the tuple one after the other (key_image.c).  Those of columns of fixed
 * length are made in groups, a column at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_image.h"

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
		euno_image_fixed(col, key + 1, NULL, data + col->tuple_at);
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
	char	   *to = (char *) itup + IndexInfoFindDataOffset(0);
	uint32_t	n;

	if (unlikely(key[0] != EUNO_MARK_VALUE))
		return 0;
	n = euno_encode_get_varlena(col, key + 1, key + item->keylen,
								only_lost(schema, key, item),
								(uint8_t *) to + VARHDRSZ_SHORT);
	if (unlikely(n > SHORT_STRING))
	{
		EunoImage	image = {.data = to};

		euno_image_long_header(col, n, &image);
		return end_tuple(to, image.at, INDEX_VAR_MASK, itup);
	}
	SET_VARSIZE_SHORT(to, n + VARHDRSZ_SHORT);
	return end_tuple(to, n + VARHDRSZ_SHORT, INDEX_VAR_MASK, itup);
}

/* The same of one that is none. */
static pg_noinline uint32_t
decoded_tuple(const EunoKeySchema *schema, const uint8_t *key,
			  const EunoItemKey *item, IndexTuple itup)
{
	EunoImage	image = {.data = (char *) itup + IndexInfoFindDataOffset(0)};

	if (unlikely(key[0] != EUNO_MARK_VALUE))
		return 0;
	euno_image_decoded(&schema->cols[0], key + 1, key + item->keylen,
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
	return size > 0 ? size : euno_image_tuple(schema, key, item, itup);
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
			euno_image_other(col, keys + offsets[i], NULL, to);
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
			euno_image_fixed(col, keys + offsets[i], NULL, to);
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
 * Tuples that are being made of a batch's items: see euno_key_tuples.  What
 * works on it is inlined, so that it is in registers.
 */
typedef struct TupleRun
{
	const uint8_t *buf;
	const EunoItemKey *items;
	char	   *to;
	uint32_t	used;			/* bytes of "to" */
	uint32_t	room;
	uint32_t   *places;
} TupleRun;

/*
 * Tuples of items [first, n) of columns of fixed length, as many as there are
 * without NULLs and fit; a column at a time.  Items that share a key share a
 * tuple.  How many items these are.
 */
static pg_attribute_always_inline uint32_t
fixed_tuples(const EunoKeySchema *schema, TupleRun *run, uint32_t first,
			 uint32_t n)
{
	uint32_t	size = schema->fixed_size;
	const uint8_t *key = run->buf;
	const uint8_t *rows = run->buf + MAXALIGN(schema->fixed_len);
	char	   *to = run->to + run->used;
	uint32_t	max = Min(FIXED_GROUP, (run->room - run->used) / size);
	char	   *end = to + max * size;
	char	   *tuple = to;
	uint32_t	place = run->used - size;
	uint32_t	offsets[FIXED_GROUP];
	uint32_t	last = UINT32_MAX;
	uint32_t	count = 0;
	uint32_t	i;

	for (i = first; i < n; i++)
	{
		uint32_t	offset = run->items[i].offset;

		if (offset != last)
		{
			if (tuple == end ||
				!is_fixed(schema, run->buf + offset, &run->items[i]))
				break;
			((IndexTuple) tuple)->t_info = (uint16) size;
			tuple += size;
			place += size;
			offsets[count++] = last = offset;
		}
		run->places[i] = place;
	}
	to += IndexInfoFindDataOffset(0);
	for (int k = 0; k < schema->nkeys; k++)
	{
		const EunoKeyColumn *col = &schema->cols[k];

		key++;					/* the marker */
		fixed_column(col, key, offsets, count, to + col->tuple_at, size);
		key += col->encoded;
	}
	for (int k = schema->nkeys; k < schema->natts; k++)
	{
		const EunoKeyColumn *col = &schema->cols[k];

		included_column(col, rows + col->row_at, offsets, count,
						to + col->tuple_at, size);
	}
	run->used += count * size;
	return i - first;
}

/*
 * Tuples of items [first, end), of this schema's shape.  Those that differ in
 * nothing but their TID share one.
 */
static pg_attribute_always_inline void
make_tuples(const EunoKeySchema *schema, EunoTupleShape shape, TupleRun *run,
			uint32_t first, uint32_t end)
{
	uint32_t	last = UINT32_MAX;

	for (uint32_t i = first; i < end; i++)
	{
		const EunoItemKey *item = &run->items[i];
		uint32_t	place = 0;

		if (item->offset == last)
			place = run->places[i - 1];
		else if (run->used + tuple_room(schema, item) <= run->room)
		{
			place = run->used;
			run->used += other_tuple(schema, shape, run->buf + item->offset,
									 item, (IndexTuple) (run->to + place));
			Assert(run->used % MAXIMUM_ALIGNOF == 0);
			Assert(run->used + MAXIMUM_ALIGNOF <=
				   place + tuple_room(schema, item));
		}
		run->places[i] = place;
		last = item->offset;
	}
}

/*
 * The same of n items of columns of fixed length; where one is NULL, or has
 * lost something, one by one.
 */
static pg_attribute_always_inline void
make_fixed_tuples(const EunoKeySchema *schema, TupleRun *run, uint32_t n)
{
	EunoTupleShape other = schema->shape;
	uint32_t	done;

	if (other == EUNO_TUPLE_COLUMNS)
		other = EUNO_TUPLE_ANY; /* what is not fixed is not for columns_tuple */
	for (uint32_t i = 0; i < n; i += done)
	{
		if (run->items[i].keylen == schema->fixed_len)
		{
			done = fixed_tuples(schema, run, i, n);
			if (done > 0)
				continue;
		}
		for (done = 1; i + done < n; done++)
			if (is_fixed(schema, run->buf + run->items[i + done].offset,
						 &run->items[i + done]))
				break;
		make_tuples(schema, other, run, i, i + done);
	}
}

uint32_t
euno_key_tuples(const EunoKeySchema *schema, const uint8_t *buf,
				const EunoItemKey *items, uint32_t n, char *to, uint32_t used,
				uint32_t room, uint32_t *places)
{
	TupleRun	run = {buf, items, to, used, room, places};

	Assert(used % MAXIMUM_ALIGNOF == 0);
	if (schema->fixed_len > 0)
	{
		make_fixed_tuples(schema, &run, n);
		return run.used;
	}
	switch (schema->shape)
	{
		case EUNO_TUPLE_STRING:
			make_tuples(schema, EUNO_TUPLE_STRING, &run, 0, n);
			break;
		case EUNO_TUPLE_VARLENA:
			make_tuples(schema, EUNO_TUPLE_VARLENA, &run, 0, n);
			break;
		case EUNO_TUPLE_ROW:
			make_tuples(schema, EUNO_TUPLE_ROW, &run, 0, n);
			break;
		default:
			make_tuples(schema, schema->shape, &run, 0, n);
			break;
	}
	return run.used;
}
