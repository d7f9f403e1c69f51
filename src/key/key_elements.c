/*-------------------------------------------------------------------------
 *
 * key_elements.c
 *	  Order-preserving byte strings for arrays, ranges and multiranges, made of
 *	  those of their elements and bounds.
 *
 * An array's elements are compared one after the other, NULL being greater
 * than all; where one array ends, it is less; last come the number of
 * dimensions, their lengths, and where they begin.  The encoding is:
 *
 *	 the encodings of the elements; before one that is a varlena, a byte 01; of
 *	 others, one that begins with 00 has a byte 01 behind that, one that begins
 *	 with FF a byte FE; NULL is FF FF;
 *	 00 00;
 *	 a byte, the shape: four times the number of dimensions, and of one
 *	 dimension whether it begins before (0), at (1) or after (2) 1;
 *	 if it is one that does not begin at 1, where it does, four bytes;
 *	 if there are several, four bytes each for their lengths, then for where
 *	 they begin.
 *
 * For if all elements are equal and none is left, two arrays of one dimension
 * have the same length.
 *
 * A range is empty, and then less than all others, or compared by its lower
 * bound, then by its upper one.  The encoding is:
 *
 *	 a byte, EMPTY, or what the lower bound is;
 *	 if that is finite, its value's encoding, and a byte: 0 if it is included,
 *	 1 if not;
 *	 unless the range is empty, a byte, what the upper bound is; if that is
 *	 finite, its value's encoding, and a byte: 1 if it is included, 0 if not.
 *
 * A multirange: for each range, a byte 1 and its encoding; a byte 0.
 *
 * Elements have encodings that lose nothing.  The only thing lost is whether
 * an array without NULLs has a null bitmap, as slices and updates leave it.
 * For DESC all bytes are complemented, the elements' by their own encodings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "utils/array.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"

#include "key/key_private.h"

/* Twice: no further element of an array, and a NULL; before a varlena. */
#define FIRST_BYTE		0x00
#define LAST_BYTE		0xFF
#define VARLENA			0x01

/* The longest encoding of an element that is no varlena: a uuid. */
#define MOST_FIXED		16

/* An element, with padding, is at most so much longer than its encoding. */
#define ELEMENT_MORE	16

/* Of a multirange: there is no further range, there is one. */
#define NO_RANGE		0
#define RANGE			1

/* What a range's lower bound is, and its upper one. */
#define EMPTY			0
#define NO_LOWER		1
#define LOWER			2
#define UPPER			0
#define NO_UPPER		1

#define SHAPE(ndim, begins)	(4 * (ndim) + (begins))
#define FROM_ONE			1

#define SIGN32	(UINT32_C(1) << 31)

/* An encoding that is being written, as far as there is room. */
typedef struct Writer
{
	const EunoKeyColumn *col;
	uint8_t    *p;
	uint32_t	avail;
	uint64_t	len;			/* what it takes in all */
	uint8_t		flip;
} Writer;

static inline void
writer_begin(Writer *w, const EunoKeyColumn *col, uint8_t *p, uint32_t avail)
{
	w->col = col;
	w->p = p;
	w->avail = avail;
	w->len = 0;
	w->flip = col->desc ? 0xFF : 0x00;
}

static inline void
put_byte(Writer *w, uint8_t byte)
{
	if (w->len < w->avail)
		w->p[w->len] = byte ^ w->flip;
	w->len++;
}

static void
put_number(Writer *w, int32 n)
{
	uint32_t	be = pg_hton32((uint32_t) n ^ SIGN32 ^ (w->col->desc ? UINT32_MAX : 0));

	if (w->len + sizeof(be) <= w->avail)
		memcpy(w->p + w->len, &be, sizeof(be));
	w->len += sizeof(be);
}

static inline void
put_element(Writer *w, Datum value)
{
	uint32_t	avail = w->len < w->avail ? w->avail - (uint32_t) w->len : 0;

	w->len += euno_encode_put(w->col->element, value, w->p + (w->avail - avail),
							  avail);
}

/*
 * An element of an array: none must begin like the end or like a NULL.  What
 * is put before varlenas takes no more than their own headers.
 */
static void
put_marked(Writer *w, Datum value)
{
	uint64_t	at = w->len;
	uint8_t		first;

	if (w->col->element->attlen == -1)
		put_byte(w, VARLENA);
	put_element(w, value);
	if (w->len >= w->avail)
		return;
	first = w->p[at] ^ w->flip;
	if (first != FIRST_BYTE && first != LAST_BYTE)
		return;
	memmove(w->p + at + 2, w->p + at + 1, w->len - at - 1);
	w->p[at + 1] = (first == FIRST_BYTE ? FIRST_BYTE + 1 : LAST_BYTE - 1) ^ w->flip;
	w->len++;
}

static inline uint32_t
writer_end(const Writer *w)
{
	return (uint32_t) Min(w->len, PG_UINT32_MAX);
}

/* A value of another type would be taken for what it is not. */
static void
check_type(Oid type, Oid expected)
{
	if (unlikely(type != expected))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg_internal("value is of type %u, but the index is of type %u",
								 type, expected)));
}

static void
put_shape(Writer *w, int ndim, const int *dims, const int *bounds)
{
	if (ndim == 1)
	{
		put_byte(w, SHAPE(1, (bounds[0] > 0) + (bounds[0] > 1)));
		if (bounds[0] != 1)
			put_number(w, bounds[0]);
		return;
	}
	put_byte(w, SHAPE(ndim, 0));
	for (int i = 0; i < ndim; i++)
		put_number(w, dims[i]);
	for (int i = 0; i < ndim; i++)
		put_number(w, bounds[i]);
}

static uint32_t
put_array(const EunoKeyColumn *col, Datum value, uint8_t *p, uint32_t avail)
{
	const EunoKeyColumn *element = col->element;
	ArrayType  *array = DatumGetArrayTypeP(value);
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *present = ARR_NULLBITMAP(array);
	const char *next = ARR_DATA_PTR(array);
	Writer		w;

	check_type(ARR_ELEMTYPE(array), col->element_type);
	writer_begin(&w, col, p, avail);
	for (int i = 0; i < n; i++)
	{
		if (present != NULL && (present[i / 8] & (1 << i % 8)) == 0)
		{
			put_byte(&w, LAST_BYTE);
			put_byte(&w, LAST_BYTE);
			continue;
		}
		put_marked(&w, fetch_att(next, element->attbyval, element->attlen));
		next = att_addlength_pointer(next, element->attlen, next);
		next = (const char *) att_align_nominal(next, element->attalign);
	}
	put_byte(&w, FIRST_BYTE);
	put_byte(&w, FIRST_BYTE);
	put_shape(&w, ARR_NDIM(array), ARR_DIMS(array), ARR_LBOUND(array));
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
	return writer_end(&w);
}

/* Of a range that is not empty. */
static void
put_bounds(Writer *w, const RangeBound *lower, const RangeBound *upper)
{
	put_byte(w, lower->infinite ? NO_LOWER : LOWER);
	if (!lower->infinite)
	{
		put_element(w, lower->val);
		put_byte(w, !lower->inclusive);
	}
	put_byte(w, upper->infinite ? NO_UPPER : UPPER);
	if (!upper->infinite)
	{
		put_element(w, upper->val);
		put_byte(w, upper->inclusive);
	}
}

static uint32_t
put_range(const EunoKeyColumn *col, Datum value, uint8_t *p, uint32_t avail)
{
	RangeType  *range = DatumGetRangeTypeP(value);
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;
	Writer		w;

	check_type(RangeTypeGetOid(range), col->range->type_id);
	range_deserialize(col->range, range, &lower, &upper, &empty);
	writer_begin(&w, col, p, avail);
	if (empty)
		put_byte(&w, EMPTY);
	else
		put_bounds(&w, &lower, &upper);
	if ((Pointer) range != DatumGetPointer(value))
		pfree(range);
	return writer_end(&w);
}

static uint32_t
put_multirange(const EunoKeyColumn *col, Datum value, uint8_t *p,
			   uint32_t avail)
{
	MultirangeType *multirange = DatumGetMultirangeTypeP(value);
	RangeBound	lower;
	RangeBound	upper;
	Writer		w;

	check_type(MultirangeTypeGetOid(multirange), col->multirange);
	writer_begin(&w, col, p, avail);
	for (uint32 i = 0; i < multirange->rangeCount; i++)
	{
		multirange_get_bounds(col->range, multirange, i, &lower, &upper);
		put_byte(&w, RANGE);
		put_bounds(&w, &lower, &upper);
	}
	put_byte(&w, NO_RANGE);
	if ((Pointer) multirange != DatumGetPointer(value))
		pfree(multirange);
	return writer_end(&w);
}

uint32_t
euno_elements_put(const EunoKeyColumn *col, Datum value, uint8_t *p,
				  uint32_t avail)
{
	switch (col->kind)
	{
		case EUNO_KIND_ARRAY:
			return put_array(col, value, p, avail);
		case EUNO_KIND_RANGE:
			return put_range(col, value, p, avail);
		default:
			return put_multirange(col, value, p, avail);
	}
}

/* An encoding that is being read.  What it lacks makes p NULL, for good. */
typedef struct Reader
{
	const EunoKeyColumn *col;
	const uint8_t *p;
	const uint8_t *end;
	uint8_t		flip;
	bool		escaped;		/* the next element's second byte is not its own */
} Reader;

static inline void
reader_begin(Reader *r, const EunoKeyColumn *col, const uint8_t *p,
			 const uint8_t *end)
{
	r->col = col;
	r->p = p;
	r->end = end;
	r->flip = col->desc ? 0xFF : 0x00;
	r->escaped = false;
}

/* 0 where nothing is left, which ends everything. */
static inline uint8_t
get_byte(Reader *r)
{
	if (r->p == NULL || r->p >= r->end)
	{
		r->p = NULL;
		return 0;
	}
	return *r->p++ ^ r->flip;
}

static int32
get_number(Reader *r)
{
	uint32_t	be;

	if (r->p == NULL || r->end - r->p < (ptrdiff_t) sizeof(be))
	{
		r->p = NULL;
		return 0;
	}
	memcpy(&be, r->p, sizeof(be));
	r->p += sizeof(be);
	return (int32) (pg_ntoh32(be) ^ SIGN32 ^ (r->col->desc ? UINT32_MAX : 0));
}

/* What comes next in an array. */
typedef enum Next
{
	END,
	NULL_ELEMENT,
	ELEMENT						/* at p */
} Next;

static inline Next
next_element(Reader *r)
{
	uint8_t		first;

	if (r->p == NULL || r->end - r->p < 2)
	{
		r->p = NULL;
		return END;
	}
	first = r->p[0] ^ r->flip;
	r->escaped = first == FIRST_BYTE || first == LAST_BYTE;
	if (r->escaped && r->p[0] == r->p[1])
	{
		r->escaped = false;
		r->p += 2;
		return first == FIRST_BYTE ? END : NULL_ELEMENT;
	}
	r->p += r->col->element->attlen == -1;
	return ELEMENT;
}

static inline void
skip_element(Reader *r)
{
	const EunoKeyColumn *element = r->col->element;

	if (likely(element->integer && r->end - r->p > element->attlen))
		r->p += element->attlen + r->escaped;
	else
		r->p = euno_encode_skip(element, r->p + r->escaped, r->end);
}

/*
 * The value of an element or bound; bytes of by-reference ones are put at
 * *scratch.
 */
static inline Datum
get_element(Reader *r, uint8_t **scratch)
{
	uint8_t		bytes[MOST_FIXED];
	const uint8_t *p = r->p;
	const uint8_t *end = r->end;
	Datum		value;

	if (unlikely(r->escaped))
	{
		uint32_t	n = r->col->element->attlen;

		skip_element(r);
		bytes[0] = p[0];
		memcpy(bytes + 1, p + 2, n - 1);
		(void) euno_encode_get(r->col->element, bytes, bytes + n, NULL, scratch,
							   &value);
	}
	else
		r->p = euno_encode_get(r->col->element, p, end, NULL, scratch, &value);
	return value;
}

/* Goes over elements; their number, and whether some are NULL. */
static int
skip_elements(Reader *r, bool *nulls)
{
	Next		next;
	int			n = 0;

	*nulls = false;
	while ((next = next_element(r)) != END)
	{
		if (next == ELEMENT)
			skip_element(r);
		else
			*nulls = true;
		n++;
	}
	return n;
}

/* Reads a shape of n elements; the number of dimensions. */
static int
get_shape(Reader *r, int n, int *dims, int *bounds)
{
	uint8_t		shape = get_byte(r);
	int			ndim = shape / 4;

	if (ndim > MAXDIM)
	{
		r->p = NULL;
		return 0;
	}
	if (ndim == 1)
	{
		dims[0] = n;
		bounds[0] = shape == SHAPE(1, FROM_ONE) ? 1 : get_number(r);
		return ndim;
	}
	for (int i = 0; i < ndim; i++)
		dims[i] = get_number(r);
	for (int i = 0; i < ndim; i++)
		bounds[i] = get_number(r);
	return ndim;
}

static void
skip_bounds(Reader *r, uint8_t lower)
{
	if (lower == EMPTY)
		return;
	if (lower == LOWER)
	{
		skip_element(r);
		(void) get_byte(r);
	}
	if (get_byte(r) == UPPER && r->p != NULL)
	{
		skip_element(r);
		(void) get_byte(r);
	}
}

const uint8_t *
euno_elements_skip(const EunoKeyColumn *col, const uint8_t *p,
				   const uint8_t *end)
{
	int			dims[MAXDIM];
	int			bounds[MAXDIM];
	bool		nulls;
	Reader		r;

	reader_begin(&r, col, p, end);
	switch (col->kind)
	{
		case EUNO_KIND_ARRAY:
			(void) get_shape(&r, skip_elements(&r, &nulls), dims, bounds);
			break;
		case EUNO_KIND_RANGE:
			skip_bounds(&r, get_byte(&r));
			break;
		default:
			while (get_byte(&r) == RANGE)
				skip_bounds(&r, get_byte(&r));
			break;
	}
	return r.p;
}

/* The next element or bound, whatever it is, at its place; its end there. */
static pg_noinline uint8_t *
place_any_element(Reader *r, uint8_t *to)
{
	const EunoKeyColumn *element = r->col->element;
	uint8_t    *scratch = to;
	Datum		value = get_element(r, &scratch);

	if (element->attbyval)
		store_att_byval(to, value, element->attlen);
	return (uint8_t *) att_addlength_pointer((char *) to, element->attlen, (char *) to);
}

/* The next element or bound, at its place, which is aligned; its end there. */
static inline uint8_t *
place_element(Reader *r, uint8_t *to)
{
	const EunoKeyColumn *element = r->col->element;

	if (unlikely(!element->integer || r->escaped || r->end - r->p <= element->attlen))
		return place_any_element(r, to);
	euno_integer_get(element->flip, element->attlen, r->p, (char *) to);
	r->p += element->attlen;
	return to + element->attlen;
}

/* Zeros up to where an element may begin. */
static inline uint8_t *
pad_element(const EunoKeyColumn *element, uint8_t *to)
{
	uint8_t    *next = (uint8_t *) TYPEALIGN(element->align, to);

	while (to < next)
		*to++ = 0;
	return next;
}

/*
 * An array's elements, "at" bytes behind its beginning, which becomes where they
 * end; their number.  "present" gets a bit for each that is not NULL; without,
 * -1: there is a NULL.
 */
static int
place_elements(Reader *r, uint8_t *array, uint32_t *at, uint8 *present)
{
	uint8_t    *to = array + *at;
	Next		next;
	int			n;

	for (n = 0; (next = next_element(r)) != END; n++)
	{
		if (next == NULL_ELEMENT)
		{
			if (present == NULL)
				return -1;
			continue;
		}
		if (present != NULL)
			present[n / 8] |= 1 << n % 8;
		if (unlikely(to - array + (r->end - r->p) + ELEMENT_MORE > EUNO_KEY_DEFORM_BYTES))
			euno_row_overrun(to - array, EUNO_KEY_DEFORM_BYTES);
		to = pad_element(r->col->element, place_element(r, to));
	}
	*at = (uint32_t) (to - array);
	return n;
}

/*
 * An array as construct_md_array would make it, or with a bitmap in any case,
 * at an aligned place with room for EUNO_KEY_DEFORM_BYTES; its size.
 */
static uint32_t
get_any_array(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
			  bool bitmap, ArrayType *array)
{
	int			dims[MAXDIM];
	int			bounds[MAXDIM];
	int			ndim;
	int			n;
	bool		nulls;
	uint32_t	size;
	Reader		r;

	reader_begin(&r, col, p, end);
	n = skip_elements(&r, &nulls);
	ndim = get_shape(&r, n, dims, bounds);
	nulls |= bitmap;
	memset(array, 0, ARR_OVERHEAD_WITHNULLS(ndim, n));
	array->ndim = ndim;
	array->elemtype = col->element_type;
	array->dataoffset = nulls ? ARR_OVERHEAD_WITHNULLS(ndim, n) : 0;
	memcpy(ARR_DIMS(array), dims, ndim * sizeof(int));
	memcpy(ARR_LBOUND(array), bounds, ndim * sizeof(int));

	reader_begin(&r, col, p, end);
	size = ARR_DATA_OFFSET(array);
	(void) place_elements(&r, (uint8_t *) array, &size, ARR_NULLBITMAP(array));
	return size;
}

/* The same of one without NULLs that begins at 1, as most do.  0: it is not. */
static inline uint32_t
get_plain_array(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
				ArrayType *array)
{
	uint32_t	size = ARR_OVERHEAD_NONULLS(1);
	int			n;
	Reader		r;

	reader_begin(&r, col, p, end);
	n = place_elements(&r, (uint8_t *) array, &size, NULL);
	if (n < 0 || get_byte(&r) != SHAPE(1, FROM_ONE) || r.p == NULL)
		return 0;
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = col->element_type;
	ARR_DIMS(array)[0] = n;
	ARR_LBOUND(array)[0] = 1;
	return size;
}

static uint32_t
get_array(const EunoKeyColumn *col, const uint8_t *p, const uint8_t *end,
		  bool bitmap, ArrayType *array)
{
	uint32_t	size = bitmap ? 0 : get_plain_array(col, p, end, array);

	return size > 0 ? size : get_any_array(col, p, end, bitmap, array);
}

/*
 * A range of values of a fixed length as range_serialize would make it, at an
 * aligned place; its size.  "what": its lower bound.
 */
static uint32_t
place_range(Reader *r, uint8_t what, RangeType *range)
{
	uint8_t    *to = (uint8_t *) (range + 1);
	uint8_t		flags = what == EMPTY ? RANGE_EMPTY : what == NO_LOWER ? RANGE_LB_INF : 0;

	range->rangetypid = r->col->range->type_id;
	if (what == LOWER)
	{
		to = place_element(r, pad_element(r->col->element, to));
		if (get_byte(r) == 0)
			flags |= RANGE_LB_INC;
	}
	if (what != EMPTY && get_byte(r) == UPPER)
	{
		to = place_element(r, pad_element(r->col->element, to));
		if (get_byte(r) != 0)
			flags |= RANGE_UB_INC;
	}
	else if (what != EMPTY)
		flags |= RANGE_UB_INF;
	*to++ = flags;
	return (uint32_t) (to - (uint8_t *) range);
}

/* The next range, whose lower bound is this. */
static RangeType *
get_range(Reader *r, uint8_t what)
{
	uint8_t		bytes[EUNO_KEY_DEFORM_BYTES] __attribute__((aligned(8)));
	uint8_t    *scratch = bytes;
	RangeBound	lower = {.lower = true,.infinite = what != LOWER};
	RangeBound	upper = {.infinite = true};

	if (what == LOWER)
	{
		lower.val = get_element(r, &scratch);
		lower.inclusive = get_byte(r) == 0;
	}
	if (what != EMPTY && get_byte(r) == UPPER)
	{
		upper.infinite = false;
		upper.val = get_element(r, &scratch);
		upper.inclusive = get_byte(r) != 0;
	}
	return euno_range_serialize(r->col->range, &lower, &upper, what == EMPTY);
}

static MultirangeType *
get_multirange(Reader *r)
{
	RangeType  *ranges[EUNO_MAX_ENTRY / 3]; /* of three bytes at least */
	MultirangeType *multirange;
	int			n = 0;

	while (n < (int) lengthof(ranges) && get_byte(r) == RANGE)
		ranges[n++] = get_range(r, get_byte(r));
	multirange = make_multirange(r->col->multirange, r->col->range, n, ranges);
	while (n > 0)
		pfree(ranges[--n]);
	return multirange;
}

/* A byte, 0, if there is a bitmap of NULLs and there are none. */
uint32_t
euno_array_lost(Datum value, uint8_t *lost)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	uint32_t	n = ARR_HASNULL(array) && !array_contains_nulls(array);

	*lost = 0;
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
	return n;
}

uint32_t
euno_elements_get(const EunoKeyColumn *col, const uint8_t *p,
				  const uint8_t *end, const uint8_t *lost, uint8_t *to)
{
	union
	{
		ArrayType	array;
		RangeType	range;
		uint8_t		bytes[EUNO_KEY_DEFORM_BYTES];
	}			made __attribute__((aligned(8)));
	struct varlena *value;
	uint32_t	n;
	Reader		r;

	reader_begin(&r, col, p, end);
	if (col->kind == EUNO_KIND_ARRAY ||
		(col->kind == EUNO_KIND_RANGE && col->element->attlen != -1))
	{
		n = col->kind == EUNO_KIND_ARRAY ?
			get_array(col, p, end, lost != NULL, &made.array) :
			place_range(&r, get_byte(&r), &made.range);
		memcpy(to, made.bytes + VARHDRSZ, n - VARHDRSZ);
		return n - VARHDRSZ;
	}
	value = col->kind == EUNO_KIND_RANGE ?
		(struct varlena *) get_range(&r, get_byte(&r)) :
		(struct varlena *) get_multirange(&r);
	n = VARSIZE(value) - VARHDRSZ;
	memcpy(to, VARDATA(value), n);
	pfree(value);
	return n;
}
