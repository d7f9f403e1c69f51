/*-------------------------------------------------------------------------
 *
 * scan_private.h
 *	  What the files of scan plans share.
 *
 * A plan goes through the columns in order.  Each column's scan keys are
 * condensed into a span of values (scan_span.c), which becomes a bound of
 * bytes (scan_plan.c) or of datums (scan_plan_compare.c).  A column held to
 * one value lets the next one narrow the range further; the first that is not
 * ends it.  What the range does not say is checked entry by entry
 * (scan_match.c).
 *
 * A column with an array ("= ANY") has one of several points.  The columns
 * before the end of the range are a number of such points to choose from, or
 * one; each choice is a part of the scan, with a range of its own
 * (scan_part.c).  A comparison of several columns with a row becomes an end of
 * the range (scan_row.c).  In BYTES order what is said of the columns after
 * that end becomes a limit: the entries' bytes are held against it, and from
 * an entry outside the limits the next place where one can be inside follows
 * (scan_limit.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SCAN_PRIVATE_H
#define EUNO_SCAN_PRIVATE_H

#include "utils/memutils.h"

#include "key/key_private.h"

/* How a scan key's argument becomes a value of the column's type. */
typedef enum EunoConversion
{
	EUNO_CONVERT_NONE,			/* it does not */
	EUNO_CONVERT_SAME,
	EUNO_CONVERT_STRING,		/* name and text: same bytes */
	EUNO_CONVERT_INT2,			/* from int2 to another integer, ... */
	EUNO_CONVERT_INT4,
	EUNO_CONVERT_INT8,
	EUNO_CONVERT_FLOAT8_TO_FLOAT4,
	EUNO_CONVERT_FLOAT4_TO_FLOAT8,
	EUNO_CONVERT_TIMESTAMP_TO_DATE,
	EUNO_CONVERT_DATE_TO_TIMESTAMP,
	EUNO_CONVERT_TIMESTAMPTZ_TO_DATE,
	EUNO_CONVERT_DATE_TO_TIMESTAMPTZ,
	EUNO_CONVERT_TIMESTAMPTZ_TO_TIMESTAMP,
	EUNO_CONVERT_TIMESTAMP_TO_TIMESTAMPTZ
} EunoConversion;

/*
 * Where an argument lies among the values of the column's type.  EQUAL: it is
 * "low".  LOW_IS_ABOVE: it is less than "low", LOW_IS_BELOW: greater, and in
 * both cases no value is in between.  AROUND: values less than "low" are less
 * than it, those greater than "high" are greater, and about those from "low" to
 * "high" the operator must be asked.
 */
typedef enum EunoArgPlace
{
	EUNO_ARG_EQUAL,
	EUNO_ARG_LOW_IS_ABOVE,
	EUNO_ARG_LOW_IS_BELOW,
	EUNO_ARG_AROUND,
	EUNO_ARG_UNKNOWN
} EunoArgPlace;

typedef struct EunoArg
{
	EunoArgPlace place;
	bool		recheck;		/* the conversion depends on settings */
	Datum		low;
	Datum		high;			/* AROUND only */
} EunoArg;

/* What is known about the n-th scan key, until another kind of key comes. */
typedef struct EunoScanSlot
{
	AttrNumber	attno;			/* 0: nothing yet */
	Oid			subtype;
	EunoConversion conversion;
	bool		has_cross;
	bool		varlena;		/* the argument is one */
	FmgrInfo	cross;			/* compares (column, argument) */
	Pointer		copy;			/* of a toasted argument, to be freed */
} EunoScanSlot;

/* One end of a span. */
typedef struct EunoSpanEnd
{
	bool		set;
	bool		inclusive;
	EunoScanSlot *foreign;		/* value has the argument's type, not the
								 * column's; else NULL */
	Datum		value;
} EunoSpanEnd;

typedef struct EunoSpan
{
	bool		empty;
	bool		equal;			/* low and high are one and the same value */
	bool		null;			/* NULL is asked for */
	bool		not_null;
	EunoSpanEnd low;			/* of values, whatever DESC says */
	EunoSpanEnd high;
} EunoSpan;

/* A scan key with a row, and what is left of it. */
typedef struct EunoScanRow
{
	int			key;			/* which one */
	int			column;			/* that the first value is compared with */
	int			nvalues;
	int			at;				/* the values before this are their columns' */
	StrategyNumber strategy;	/* btree's */
	EunoScanSlot *slots;		/* one per value */
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];
} EunoScanRow;

/* An array's elements that are not NULL. */
typedef struct EunoArray
{
	bool		usable;			/* values is right */
	bool		recheck;		/* the conversion depends on settings */
	bool		sorted;			/* in COMPARE order: values ascend */
	int			nelems;
	Datum	   *elems;			/* as they are in the array */
	int			nvalues;
	Datum	   *values;			/* those the column can have, of its type */
} EunoArray;

/*
 * One of the values a column may have.  BYTES order: its marker and encoding;
 * COMPARE order: the value.
 */
typedef struct EunoPoint
{
	uint64		head;			/* the encoding's first bytes, to sort by */
	const uint8_t *bytes;
	uint32		len;
	Datum		value;
} EunoPoint;

/* What the entries of a column must be, in BYTES order. */
typedef struct EunoLimit
{
	bool		set;
	uint32		npoints;		/* if > 0: one of these, in index order */
	const EunoPoint *points;
	EunoPosition low;			/* else between these; key NULL: no end */
	EunoPosition high;

	/* As numbers, of a column of fixed length that is not NULL. */
	uint32		width;			/* of the column; 0: there are none */
	uint64		least;
	uint64		more;			/* the greatest is this much more */
} EunoLimit;

/* A column of which each part of the scan has another point. */
typedef struct EunoChoice
{
	int			column;
	uint32		at;				/* BYTES: where it goes into the constant
								 * bytes of the bounds */
	uint32		npoints;
	uint32		current;
	const EunoPoint *points;	/* in index order */
} EunoChoice;

/*
 * Each part is a descent.  If the choices after the first one have more
 * combinations than this, the rest becomes a limit.
 */
#define EUNO_MAX_COMBINATIONS 8

struct EunoScanPlan
{
	const EunoKeySchema *schema;
	MemoryContext context;
	MemoryContext keys_context; /* of what is made of the scan keys; reset when
								 * they are set.  NULL until needed */
	int			max_keys;
	ScanKey		own_keys;		/* a copy, if there are arrays or rows */
	EunoArray  *arrays;			/* one per scan key; valid for own_keys */
	int			nrows;
	EunoScanRow *rows;			/* NULL until needed */
	int			nchoices;
	EunoChoice	choices[INDEX_MAX_KEYS];
	uint8_t    *constant_low;	/* the bounds' bytes without the choices */
	uint8_t    *constant_high;
	uint32		constant_low_len;
	uint32		constant_high_len;
	EunoLimit  *limits;			/* one per column */
	int			limit_cols;		/* this many columns are held against them */
	EunoScanSlot *slots;		/* one per scan key */
	bool	   *absorbed;		/* one per scan key: the range implies it */
	ScanKey    *residual;		/* those to be checked on each entry */
	int			nresidual;
	int			residual_cols;	/* they need this many columns */
	bool		whole;			/* COMPARE order: each part is one key */
	bool		kept;			/* bounds are our own: euno_scan_plan_keep */
	EunoKeyBound low_bound;		/* COMPARE order */
	EunoKeyBound high_bound;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	/* BYTES order, and one key in COMPARE order */
	uint8_t		low_bytes[MAXALIGN(EUNO_MAX_ENTRY + 8)] __attribute__((aligned(8)));
	uint8_t		high_bytes[MAXALIGN(EUNO_MAX_ENTRY + 8)];
	uint8_t		jump_bytes[MAXALIGN(2 * EUNO_MAX_ENTRY + 8)];
	uint8_t		scratch[EUNO_KEY_DEFORM_BYTES] __attribute__((aligned(8)));
};

/* scan_convert.c */
extern void euno_scan_resolve(EunoScanPlan *plan, EunoScanSlot *slot,
							  const ScanKeyData *key);
extern void euno_scan_convert(const EunoKeyColumn *col,
							  EunoConversion conversion, Datum argument,
							  EunoArg *result);

/* scan_span.c */
extern void euno_scan_span(EunoScanPlan *plan, ScanKey keys, int first,
						   int nkeys, int column, EunoSpan *span);

/* scan_plan.c */
extern ScanKey euno_scan_own_keys(EunoScanPlan *plan, ScanKey keys,
								  int nkeys);
extern uint32_t euno_scan_append(const EunoKeyColumn *col,
								 const EunoSpanEnd *end, uint8_t *buf,
								 uint32_t len, bool *cut);

/* scan_plan_compare.c */
extern void euno_scan_plan_compare(EunoScanPlan *plan, ScanKey keys,
								   int nkeys, EunoScanRange *range);
extern void euno_scan_whole_key(EunoScanPlan *plan, EunoScanRange *range);

/* scan_array.c */
extern ScanKey euno_scan_arrays(EunoScanPlan *plan, ScanKey keys, int nkeys,
								bool *empty);
extern bool euno_scan_points(EunoScanPlan *plan, ScanKey keys, int nkeys,
							 int column, EunoSpan *span, EunoPoint **points,
							 uint32 *npoints);
extern bool euno_scan_in_array(const EunoKeyColumn *col,
							   const EunoArray *array, ScanKey key,
							   Datum value);

/* scan_row.c */
extern ScanKey euno_scan_rows(EunoScanPlan *plan, ScanKey keys, int nkeys,
							  bool *empty);
extern void euno_scan_rows_advance(EunoScanPlan *plan, ScanKey keys,
								   int column, const EunoSpanEnd *value,
								   bool *empty);
extern void euno_scan_rows_residual(EunoScanPlan *plan, ScanKey keys);
extern EunoScanRow *euno_scan_row_at(EunoScanPlan *plan, int column,
									 const EunoSpanEnd *end, bool is_low);
extern bool euno_scan_row_end(EunoScanPlan *plan, EunoScanRow *row,
							  int column, EunoSpanEnd *end, bool *last);

/* scan_part.c */
extern bool euno_scan_choose(EunoScanPlan *plan, int column, uint32 at,
							 const EunoPoint *points, uint32 npoints);
extern void euno_scan_parts_begin(EunoScanPlan *plan, EunoScanRange *range);

/* scan_limit.c */
extern void euno_scan_limit_column(EunoScanPlan *plan, int column,
								   const EunoLimit *limit);
extern void euno_scan_limit_rest(EunoScanPlan *plan, ScanKey keys, int first,
								 int nkeys, int column, bool *empty);
extern bool euno_scan_span_limit(EunoScanPlan *plan, int column,
								 const EunoSpan *span, EunoLimit *limit);
extern bool euno_limit_admits(const EunoLimit *limit, const uint8_t *bytes,
							  uint32 len, uint32 *next);
extern bool euno_scan_within_limits(const EunoScanPlan *plan,
									const uint8_t *key, uint32_t keylen);

/*
 * Does a span go on to "low" (or "high") itself, where an argument in this
 * place is that end of it?  "inclusive": the operator's own answer.
 */
static inline bool
euno_scan_inclusive(EunoArgPlace place, bool is_low, bool inclusive)
{
	switch (place)
	{
		case EUNO_ARG_LOW_IS_ABOVE:
			return is_low;
		case EUNO_ARG_LOW_IS_BELOW:
			return !is_low;
		case EUNO_ARG_AROUND:
			return true;
		default:
			return inclusive;
	}
}

static inline void
euno_scan_set_position(EunoPosition *pos, const uint8_t *key,
					   uint32_t keylen, int8 side)
{
	Assert(keylen <= EUNO_MAX_ENTRY);
	pos->key = key;
	pos->keylen = keylen;
	pos->side = side;
	pos->tid = 0;
	pos->bound = NULL;
}

/* Memory that lasts until the scan keys are set again. */
static inline MemoryContext
euno_scan_keys_context(EunoScanPlan *plan)
{
	if (plan->keys_context == NULL)
		plan->keys_context = AllocSetContextCreate(plan->context,
												   "euno scan keys",
												   ALLOCSET_SMALL_SIZES);
	return plan->keys_context;
}

static inline void *
euno_scan_alloc(EunoScanPlan *plan, Size size)
{
	return MemoryContextAllocHuge(euno_scan_keys_context(plan), size);
}

static inline EunoScanSlot *
euno_scan_slot(EunoScanPlan *plan, int i, const ScanKeyData *key)
{
	EunoScanSlot *slot = &plan->slots[i];

	if (unlikely(slot->attno != key->sk_attno ||
				 slot->subtype != key->sk_subtype))
		euno_scan_resolve(plan, slot, key);
	return slot;
}

#endif							/* EUNO_SCAN_PRIVATE_H */
