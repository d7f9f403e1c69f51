/*-------------------------------------------------------------------------
 *
 * scan_private.h
 *	  What the files of scan plans share.
 *
 * A plan goes through the columns in order.  Each column's scan keys are
 * condensed into a span of values (scan_span.c), which becomes a bound of
 * bytes or of datums (scan_plan.c).  A column held to one value lets the next
 * one narrow the range further; the first that is not ends it.  What the range
 * does not say is checked entry by entry (scan_match.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SCAN_PRIVATE_H
#define EUNO_SCAN_PRIVATE_H

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
 * Where an argument lies among the values of the column's type.  ABOVE: below
 * "low", and no value is in between; BELOW: above "low", and no value is in
 * between; AROUND: values less than low are less than it, values greater than
 * high are greater, and those from low to high must be asked.
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

struct EunoScanPlan
{
	const EunoKeySchema *schema;
	MemoryContext context;
	int			max_keys;
	EunoScanSlot *slots;		/* one per scan key */
	bool	   *absorbed;		/* one per scan key: the range implies it */
	ScanKey    *residual;		/* those to be checked on each entry */
	int			nresidual;
	int			residual_cols;	/* they need this many columns */
	EunoKeyBound low_bound;		/* COMPARE order */
	EunoKeyBound high_bound;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8_t		low_bytes[MAXALIGN(EUNO_MAX_ENTRY + 8)];	/* BYTES order */
	uint8_t		high_bytes[MAXALIGN(EUNO_MAX_ENTRY + 8)];
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
