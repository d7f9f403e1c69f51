/*-------------------------------------------------------------------------
 *
 * key_private.h
 *	  What the files of key/ share: the schema, encodings, packed rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_KEY_PRIVATE_H
#define EUNO_KEY_PRIVATE_H

#include "key/euno_key.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/tupmacs.h"
#include "fmgr.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "utils/sortsupport.h"

#include "euno_compat.h"

#if !defined(USE_FLOAT8_BYVAL)
#error "euno_index needs a 64-bit server"
#endif

/*
 * The btree support functions we use by number; our families mirror btree's.
 */
#define EUNO_ORDER_PROC			1
#define EUNO_SORTSUPPORT_PROC	2

/* The first byte of a column; see euno_key.h. */
#define EUNO_MARK_NULL_FIRST	1
#define EUNO_MARK_VALUE			2
#define EUNO_MARK_NULL_LAST		3

/*
 * How a column's values become bytes.  EUNO_KIND_OPAQUE has no encoding: the
 * opclass's comparator decides, and the whole index is in COMPARE order.
 */
typedef enum EunoKeyKind
{
	EUNO_KIND_OPAQUE,
	EUNO_KIND_BOOL,
	EUNO_KIND_CHAR,				/* "char": one unsigned byte */
	EUNO_KIND_INT16,
	EUNO_KIND_INT32,
	EUNO_KIND_INT64,
	EUNO_KIND_UINT32,
	EUNO_KIND_UINT64,
	EUNO_KIND_ENUM,				/* see key_enum.c */
	EUNO_KIND_FLOAT4,
	EUNO_KIND_FLOAT8,			/* up to here passed by value */
	EUNO_KIND_TIMETZ,			/* see key_times.c */
	EUNO_KIND_FIXED,			/* in memcmp order; up to here attlen bytes */
	EUNO_KIND_INTERVAL,			/* see key_times.c */
	EUNO_KIND_INET,				/* see key_inet.c */
	EUNO_KIND_NUMERIC,			/* see key_numeric.c */
	EUNO_KIND_NAME,
	EUNO_KIND_TEXT,				/* no zero bytes; ends with one */
	EUNO_KIND_BPCHAR,			/* text without trailing blanks */
	EUNO_KIND_BYTEA,			/* 00 becomes 00 FF; ends with 00 00 */
	EUNO_KIND_ARRAY,			/* from here on see key_elements.c */
	EUNO_KIND_RANGE,
	EUNO_KIND_MULTIRANGE
} EunoKeyKind;

/* What this process knows of an enum's labels: see key_enum.c. */
typedef struct EunoLabels
{
	Oid			type;
	uint64		as_of;			/* how often the catalog had changed */
	int			n;
	EunoLabel  *by_oid;
	EunoLabel  *by_place;		/* the same, in another order */
} EunoLabels;

typedef struct EunoKeyColumn
{
	EunoKeyKind kind;
	bool		desc;
	bool		may_short;		/* short varlena headers are legal */
	bool		unshort;		/* the comparator would copy short varlenas */
	uint8_t		null_mark;		/* EUNO_MARK_NULL_FIRST or _LAST */
	int16		attlen;
	bool		attbyval;
	char		attalign;
	uint8_t		align;			/* the same in bytes */
	int16		lossy;			/* its number among lossy columns, or -1 */
	bool		integer;		/* encoded as a big endian integer */
	uint64_t	flip;			/* if so: bits in which it differs from the value
								 * (sign, DESC) */
	uint16		encoded;		/* bytes of its encoding; 0: that depends */
	uint16		tuple_at;		/* fixed lengths: where it is in tuples' data */
	uint16		modifier;		/* of a numeric or bpchar, what its type's says:
								 * see euno_type_modifier */
	uint16		row_at;			/* before the schema's text, or of an INCLUDE
								 * column in fixed_row: where it is in rows */
	Oid			collation;
	Oid			opfamily;
	Oid			opcintype;
	FmgrInfo	cmp;			/* support function 1 of the opclass */
	FmgrInfo	call;			/* of a user's: it, with memory of its own */
	MemoryContext state;		/* ... which is this one, if it was called */
	bool		comparing;		/* it is a user's, and being called */
	bool		approximates;	/* key_approx.c */
	struct EunoLetters *letters;	/* if so, when it has been asked for */
	EunoLabels *labels;			/* of an enum */
	struct EunoKeyColumn *element;	/* of an array; of ranges: a bound */
	Oid			element_type;	/* of an array */
	struct TypeCacheEntry *range;	/* of ranges and multiranges: the range */
	Oid			multirange;
} EunoKeyColumn;

/* Index tuples that are made in short ways: key_tuples.c. */
typedef enum EunoTupleShape
{
	EUNO_TUPLE_ANY,
	EUNO_TUPLE_STRING,			/* BYTES order, and one text, not DESC, is all */
	EUNO_TUPLE_BLANKS,			/* the same of bpchar, */
	EUNO_TUPLE_VARLENA,			/* of a varlena that is decoded, */
	EUNO_TUPLE_DECODED,			/* and of what else is */
	EUNO_TUPLE_COLUMNS,			/* BYTES order, several columns of common kinds */
	EUNO_TUPLE_ROW,				/* COMPARE order: tuples take rows as they are, */
	EUNO_TUPLE_ROW_COLUMNS		/* or column by column */
} EunoTupleShape;

struct EunoKeySchema
{
	EunoOrder	order;
	bool		posting;
	int			nkeys;			/* key columns */
	int			natts;			/* key and INCLUDE columns */
	int			nlossy;			/* key columns whose encoding can lose */
	uint64_t	modifiers;		/* of the first four of these, 16 bits each */
	int			opaque;			/* the first key column without one, or -1 */
	bool		varlenas;		/* some column is one */
	EunoTupleShape shape;
	EunoKeyColumn *text;		/* a column that approximates, with nothing but
								 * integers before it, of at most 8; else NULL */
	uint8_t		no_nulls;		/* with it: the bitmap of a row without NULLs */
	uint8_t		plain;			/* with it: bytes of the integers before it */
	uint8_t		abbreviation[EUNO_ABBREVIATION_HOW];	/* key_abbreviate.c */

	/*
	 * An index tuple takes at most expands * keylen + tuple_more bytes; with a
	 * payload, payloadlen + lost_more besides.
	 */
	uint32_t	expands;
	uint32_t	tuple_more;
	uint32_t	lost_more;

	/* Bytes, if all columns have a fixed length, and none is NULL; else 0. */
	uint32_t	fixed_len;		/* of a key */
	uint32_t	fixed_row;		/* of the row of INCLUDE columns */
	uint32_t	fixed_size;		/* of an index tuple */
	Oid			table;
	char		name[NAMEDATALEN];
	EunoKeyColumn cols[FLEXIBLE_ARRAY_MEMBER];	/* one per att */
};

/* The integer of 2, 4 or 8 bytes at an offset of a row; its bits. */
static inline uint64_t
euno_row_integer(const uint8_t *row, uint32_t at, uint32_t width)
{
	uint64_t	n8;
	uint32_t	n4;
	uint16_t	n2;

	switch (width)
	{
		case 2:
			memcpy(&n2, row + at, sizeof(n2));
			return n2;
		case 4:
			memcpy(&n4, row + at, sizeof(n4));
			return n4;
		default:
			memcpy(&n8, row + at, sizeof(n8));
			return n8;
	}
}

/* An encoding of 1, 2, 4 or 8 bytes as a number, in the same order. */
static inline uint64_t
euno_number_get(const uint8_t *p, int width)
{
	uint16_t	be16;
	uint32_t	be32;

	switch (width)
	{
		case 1:
			return *p;
		case 2:
			memcpy(&be16, p, 2);
			return pg_ntoh16(be16);
		case 4:
			memcpy(&be32, p, 4);
			return pg_ntoh32(be32);
		default:
			return euno_get_word(p);
	}
}

/* The value of an integer column from its encoding; "to" is aligned for it. */
static inline __attribute__((always_inline)) void
euno_integer_get(uint64_t flip, int width, const uint8_t *p, char *to)
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

/* The sign of a float8's bits. */
#define EUNO_FLOAT8_SIGN	UINT64_C(0x8000000000000000)

/* The bits of a float8 from the number that it is encoded as. */
static inline uint64_t
euno_float8_bits(uint64_t n)
{
	return n ^ (EUNO_FLOAT8_SIGN | ((n >> 63) - 1));
}

/*
 * A float8 of which nothing was lost, from its encoding; "to" is aligned for it.
 */
static inline void
euno_float8_get(bool desc, const uint8_t *p, char *to)
{
	uint64_t	n = euno_get_word(p);

	*(uint64_t *) to = euno_float8_bits(desc ? ~n : n);
}

/*
 * The text at an offset of a row, 4-byte aligned or with a short header.
 * Returns where it ends, which may be behind the row; UINT32_MAX if what is
 * there is no text.
 */
static inline uint32_t
euno_row_text(const uint8_t *row, uint32_t at, const uint8_t **text,
			  uint32_t *len)
{
	bool		is_short = VARATT_IS_SHORT(row + at);
	uint32_t	header = is_short ? VARHDRSZ_SHORT : VARHDRSZ;
	uint32_t	size;

	if (!is_short)
		at = TYPEALIGN(ALIGNOF_INT, at);
	size = is_short ? VARSIZE_SHORT(row + at) : VARSIZE(row + at);
	*text = row + at + header;
	*len = size - header;
	return likely(size >= header) ? at + size : UINT32_MAX;
}

/* Bytes of the bitmap that says which lossy columns follow in a payload. */
#define EUNO_LOSSY_BYTES(schema)	(((schema)->nlossy + 7) / 8)

#define EUNO_INTERVAL_BYTES	10	/* of its encoding */
#define EUNO_TIMETZ_BYTES	12	/* of it, and of the type */

/* Copies bytes, complemented for DESC. */
static inline void
euno_copy_bytes(bool desc, uint8_t *to, const uint8_t *from, uint32_t n)
{
	if (likely(!desc))
		memcpy(to, from, n);
	else
		for (uint32_t i = 0; i < n; i++)
			to[i] = (uint8_t) ~from[i];
}

/*
 * How long a bpchar is without its trailing blanks, of which most have many.
 */
static inline uint32_t
euno_unpadded(const void *bytes, uint32_t len)
{
	const uint8_t *p = bytes;

	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t))
	{
		uint64_t	word = euno_get_word(p + len - sizeof(uint64_t)) ^
			(UINT64_MAX / UINT8_MAX * ' ');

		if (word != 0)
			return len - pg_rightmost_one_pos64(word) / 8;
	}
	while (len > 0 && p[len - 1] == ' ')
		len--;
	return len;
}

/* What the encodings of a key's columns have lost: see key_form.c. */
typedef struct EunoLost
{
	const uint8_t *bitmap;		/* NULL: nothing */
	const uint8_t *next;		/* of the columns not asked for yet */
	const uint8_t *end;
} EunoLost;

/*
 * key_encode.c.  "put" writes the encoding of a value that is not NULL, with
 * neither marker nor room for one, and returns its length; it writes nothing,
 * or a part of it, when that exceeds "avail".  "get" reads one back from [p,
 * end), of which this was lost (NULL: nothing), puts bytes of by-reference
 * values at *scratch, which it advances, and returns what follows.  "skip"
 * only says what follows.
 */
extern uint32_t euno_encode_put(const EunoKeyColumn *col, Datum value,
								uint8_t *p, uint32_t avail);
extern const uint8_t *euno_encode_get(const EunoKeyColumn *col,
									  const uint8_t *p, const uint8_t *end,
									  const uint8_t *lost, uint8_t **scratch,
									  Datum *value);

extern const uint8_t *euno_encode_skip(const EunoKeyColumn *col,
									   const uint8_t *p, const uint8_t *end);

/*
 * Of a numeric, a network address, a bytea, or one of key_elements.c, whose
 * encoding is [p, end), without a varlena's header, at "to" (any alignment; at
 * most 8 bytes more than it has); the length.
 */
extern uint32_t euno_encode_get_varlena(const EunoKeyColumn *col,
										const uint8_t *p, const uint8_t *end,
										const uint8_t *lost, uint8_t *to);

/*
 * What the encoding of a value loses, as bytes at "p" (at most 9); the length,
 * or 0 when nothing is lost.
 */
extern uint32_t euno_encode_lost(const EunoKeyColumn *col, Datum value,
								 uint8_t *p, uint64_t *hidden);

/*
 * What a column's type says, by its modifier, of what the encoding of this kind
 * leaves out, and so need not be kept with each value: how many decimals a
 * numeric shows, how many characters a bpchar has with its blanks.  0: nothing.
 */
extern uint16 euno_type_modifier(EunoKeyKind kind, Oid type, int32 typmod);

/* How many blanks are behind the n bytes of a bpchar that this was lost of. */
extern uint32_t euno_blanks(const EunoKeyColumn *col, const uint8_t *lost,
							const char *text, uint32_t n);

/*
 * key_numeric.c: the same for numeric.  "put" is as above.  "skip" returns
 * NULL if the encoding has no end.  "get" decodes one that has, [p, end),
 * without a varlena's header, at "to" (any alignment; at most 8 bytes more
 * than it has), and returns the length.  "lost": is something lost, and what?
 * "scale" is the column's modifier.
 */
extern uint32_t euno_numeric_put(bool desc, const struct varlena *v,
								 uint8_t *p, uint32_t avail);
extern const uint8_t *euno_numeric_skip(bool desc, const uint8_t *p,
										const uint8_t *end);
extern uint32_t euno_numeric_get(bool desc, int scale, const uint8_t *p,
								 const uint8_t *end, const uint8_t *lost,
								 uint8_t *to);
extern bool euno_numeric_lost(int scale, const struct varlena *v,
							  uint16 *lost);

/* key_inet.c: the same for inet and cidr, of which nothing is lost. */
extern uint32_t euno_inet_put(bool desc, const struct varlena *v, uint8_t *p,
							  uint32_t avail);
extern const uint8_t *euno_inet_skip(bool desc, const uint8_t *p,
									 const uint8_t *end);
extern uint32_t euno_inet_get(bool desc, const uint8_t *p, const uint8_t *end,
							  uint8_t *to);

/*
 * key_elements.c: the same for arrays, ranges and multiranges; "lost", of
 * arrays, is as euno_encode_lost.  "get" writes as many bytes as it says, at
 * most three times as many as the encoding has, and 72.  May palloc.
 */
extern uint32_t euno_elements_put(const EunoKeyColumn *col, Datum value,
								  uint8_t *p, uint32_t avail);
extern const uint8_t *euno_elements_skip(const EunoKeyColumn *col,
										 const uint8_t *p, const uint8_t *end);
extern uint32_t euno_elements_get(const EunoKeyColumn *col, const uint8_t *p,
								  const uint8_t *end, const uint8_t *lost,
								  uint8_t *to);
extern uint32_t euno_array_lost(Datum value, uint8_t *lost);

/*
 * key_times.c: for types of fixed length, with encodings of fixed length.
 * "compare" and "head" are as euno_encode_compare and euno_encode_head.
 * "lost" is as euno_encode_lost; "lost_bytes": how many of these there are.
 */
extern void euno_interval_put(bool desc, Datum value, uint8_t *p);
extern void euno_interval_get(bool desc, const uint8_t *p, const uint8_t *lost,
							  void *to);
extern uint32_t euno_interval_lost(Datum value, uint8_t *lost);
extern uint32_t euno_interval_lost_bytes(const uint8_t *lost);
extern int	euno_interval_compare(Datum a, Datum b);
extern uint64_t euno_interval_head(Datum value);

extern void euno_timetz_put(bool desc, Datum value, uint8_t *p);
extern void euno_timetz_get(bool desc, const uint8_t *p, void *to);
extern int	euno_timetz_compare(Datum a, Datum b);
extern uint64_t euno_timetz_head(Datum value);

/*
 * key_enum.c: what is known of a type's labels, for as long as the process
 * lives.  A label's place, by which it is ordered among those of its type;
 * that of a value that is no label is an error.  And the label at a place,
 * InvalidOid if it has been deleted by hand.  Both may read the catalog.
 */
extern EunoLabels *euno_labels_of(Oid type);
extern uint32_t euno_label_place(EunoLabels *labels, Oid oid);
extern Oid	euno_label_at(EunoLabels *labels, uint32_t place);

/*
 * Compares two values of a kind that has an encoding, but for those of
 * key_elements.c, in the column's ascending order.  Text kinds are compared in
 * C order.
 */
extern int	euno_encode_compare(const EunoKeyColumn *col, Datum a, Datum b);

/*
 * Its first eight bytes as a number that is not less where the value is not.
 */
extern uint64_t euno_encode_head(const EunoKeyColumn *col, Datum value);

/*
 * A packed row: a bitmap (a set bit is a value that is not NULL), then the
 * values as a heap tuple lays them out, relative to the start of the row,
 * which is 8-byte aligned.  Padding is zero, varlenas are detoasted and have
 * the shortest header their type allows: equal images are equal bytes.
 */
extern uint64_t euno_row_put(const EunoKeyColumn *cols, int ncols,
							 const Datum *values, const bool *isnull,
							 uint8_t *buf, uint32_t avail);

typedef struct EunoRowReader
{
	const uint8_t *base;
	uint32_t	len;
	uint32_t	off;
} EunoRowReader;

static inline void
euno_row_begin(EunoRowReader *reader, int ncols, const uint8_t *row,
			   uint32_t len)
{
	reader->base = row;
	reader->len = len;
	reader->off = (ncols + 7) / 8;
}

extern void euno_row_overrun(uint32_t off, uint32_t len) __attribute__((noreturn));

/* A payload of this many bytes, in which columns are asked for in order. */
static inline void
euno_lost_begin(EunoLost *lost, const EunoKeySchema *schema,
				const uint8_t *payload, uint32_t len)
{
	lost->bitmap = len > 0 && schema->nlossy > 0 ? payload : NULL;
	lost->next = payload + (lost->bitmap == NULL ? 0 : EUNO_LOSSY_BYTES(schema));
	lost->end = payload + len;
}

/* What was lost of a column's value, which is not NULL; NULL: nothing. */
static inline const uint8_t *
euno_lost_next(EunoLost *lost, const EunoKeyColumn *col)
{
	const uint8_t *p = lost->next;

	if (likely(lost->bitmap == NULL) || col->lossy < 0 ||
		(lost->bitmap[col->lossy >> 3] & (1 << (col->lossy & 7))) == 0)
		return NULL;
	if (col->kind == EUNO_KIND_INTERVAL && p < lost->end)
		lost->next += euno_interval_lost_bytes(p);
	else
		lost->next += col->kind == EUNO_KIND_ARRAY ? 1 :
			col->kind == EUNO_KIND_NUMERIC ? 2 :
			col->kind == EUNO_KIND_FLOAT8 ? 8 : 4;
	if (unlikely(lost->next > lost->end))
		euno_row_overrun(lost->next - lost->bitmap, lost->end - lost->bitmap);
	return p;
}

/* Reads column i; columns are read in order, from 0. */
static inline bool
euno_row_next(EunoRowReader *reader, const EunoKeyColumn *col, int i,
			  Datum *value)
{
	const char *p;
	uint32_t	off = reader->off;

	if (!(reader->base[i >> 3] & (1 << (i & 7))))
	{
		*value = (Datum) 0;
		return false;
	}
	if (col->attlen != -1 || !VARATT_NOT_PAD_BYTE(reader->base + off))
		off = TYPEALIGN(col->align, off);
	p = (const char *) reader->base + off;
	*value = fetch_att(p, col->attbyval, col->attlen);
	off = att_addlength_pointer(off, col->attlen, p);
	if (unlikely(off > reader->len))
		euno_row_overrun(off, reader->len);
	reader->off = off;
	return true;
}

/* Deforms the first ncols key columns only; the payload is not looked at. */
extern void euno_key_deform_prefix(const EunoKeySchema *schema,
								   const uint8_t *key, uint32_t keylen,
								   int ncols, uint8_t *scratch,
								   Datum *values, bool *isnull);

/* key_approx.c: is there an approximation of the column's comparator? */
extern bool euno_column_approximates(const EunoKeyColumn *col);

/*
 * A bound of the scan plan's making, in COMPARE order.  Its columns are the
 * first ncols of the index.
 */
typedef enum EunoBoundClass
{
	EUNO_BOUND_VALUE,
	EUNO_BOUND_NULL,			/* equals NULL */
	EUNO_BOUND_NOT_NULL			/* equals everything that is not NULL */
} EunoBoundClass;

typedef struct EunoBoundColumn
{
	EunoBoundClass class;
	Datum		value;
	FmgrInfo   *cross;			/* compares (column, value), or NULL: value
								 * has the column's type */
} EunoBoundColumn;

typedef struct EunoKeyBound
{
	int			ncols;
	EunoBoundColumn cols[INDEX_MAX_KEYS];
} EunoKeyBound;

/*
 * Compares rows; opaque columns by these if there are any, else by the
 * opclass's comparator.
 */
extern int	euno_compare_rows(const EunoKeySchema *schema, SortSupport sorts,
							  const uint8_t *a, uint32_t alen,
							  const uint8_t *b, uint32_t blen);

/* Compares two values of a column by its opclass, ascending, no NULLs. */
extern int	euno_column_compare(const EunoKeyColumn *col, Datum a, Datum b);

#endif							/* EUNO_KEY_PRIVATE_H */
