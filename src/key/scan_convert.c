/*-------------------------------------------------------------------------
 *
 * scan_convert.c
 *	  Scan key arguments of another type than the column's.
 *
 * Nothing is cast: an argument may lie outside the column's type, or between
 * two of its values.  The result says between which values it lies, so that
 * every operator of the family keeps its exact meaning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "key/scan_private.h"

/* The cross-type comparators (column, argument) whose meaning we know. */
static const struct
{
	Oid			proc;
	EunoConversion conversion;
}			known_conversions[] =

{
	{F_BTINT24CMP, EUNO_CONVERT_INT4},
	{F_BTINT28CMP, EUNO_CONVERT_INT8},
	{F_BTINT42CMP, EUNO_CONVERT_INT2},
	{F_BTINT48CMP, EUNO_CONVERT_INT8},
	{F_BTINT82CMP, EUNO_CONVERT_INT2},
	{F_BTINT84CMP, EUNO_CONVERT_INT4},
	{F_BTFLOAT48CMP, EUNO_CONVERT_FLOAT8_TO_FLOAT4},
	{F_BTFLOAT84CMP, EUNO_CONVERT_FLOAT4_TO_FLOAT8},
	{F_DATE_CMP_TIMESTAMP, EUNO_CONVERT_TIMESTAMP_TO_DATE},
	{F_DATE_CMP_TIMESTAMPTZ, EUNO_CONVERT_TIMESTAMPTZ_TO_DATE},
	{F_TIMESTAMP_CMP_DATE, EUNO_CONVERT_DATE_TO_TIMESTAMP},
	{F_TIMESTAMP_CMP_TIMESTAMPTZ, EUNO_CONVERT_TIMESTAMPTZ_TO_TIMESTAMP},
	{F_TIMESTAMPTZ_CMP_DATE, EUNO_CONVERT_DATE_TO_TIMESTAMPTZ},
	{F_TIMESTAMPTZ_CMP_TIMESTAMP, EUNO_CONVERT_TIMESTAMP_TO_TIMESTAMPTZ},
	{F_BTNAMETEXTCMP, EUNO_CONVERT_STRING},
	{F_BTTEXTNAMECMP, EUNO_CONVERT_STRING}
};

/*
 * Finds out what there is to know about a scan key of a kind not yet seen in
 * this slot.  Catalog access.
 */
void
euno_scan_resolve(EunoScanPlan *plan, EunoScanSlot *slot,
				  const ScanKeyData *key)
{
	const EunoKeyColumn *col = &plan->schema->cols[key->sk_attno - 1];
	Oid			proc;

	slot->attno = 0;			/* in case of an error */
	slot->conversion = EUNO_CONVERT_NONE;
	slot->has_cross = false;
	if (!OidIsValid(key->sk_subtype) || key->sk_subtype == col->opcintype)
	{
		slot->conversion = EUNO_CONVERT_SAME;
		slot->varlena = col->attlen == -1;
	}
	else
	{
		slot->varlena = get_typlen(key->sk_subtype) == -1;
		proc = get_opfamily_proc(col->opfamily, col->opcintype,
								 key->sk_subtype, EUNO_ORDER_PROC);
		if (OidIsValid(proc))
		{
			fmgr_info_cxt(proc, &slot->cross, plan->context);
			slot->has_cross = true;
		}

		/* Such a comparator says nothing about an order of another's making */
		if (col->kind != EUNO_KIND_OPAQUE)
			for (size_t i = 0; i < lengthof(known_conversions); i++)
				if (known_conversions[i].proc == proc)
					slot->conversion = known_conversions[i].conversion;

		/* Strings keep their type: bytes are encoded from either */
		if (slot->conversion == EUNO_CONVERT_STRING &&
			plan->schema->order == EUNO_ORDER_COMPARE)
			slot->conversion = EUNO_CONVERT_NONE;
	}
	slot->subtype = key->sk_subtype;
	slot->attno = key->sk_attno;
}

/* Integers: those outside the column's range lie beyond its last value. */
static void
convert_integer(EunoKeyKind kind, int64 n, EunoArg *result)
{
	int64		max = kind == EUNO_KIND_INT16 ? PG_INT16_MAX :
		kind == EUNO_KIND_INT32 ? PG_INT32_MAX : PG_INT64_MAX;
	int64		min = -max - 1;

	if (n > max)
	{
		n = max;
		result->place = EUNO_ARG_LOW_IS_BELOW;
	}
	else if (n < min)
	{
		n = min;
		result->place = EUNO_ARG_LOW_IS_ABOVE;
	}
	result->low = kind == EUNO_KIND_INT16 ? Int16GetDatum((int16) n) :
		kind == EUNO_KIND_INT32 ? Int32GetDatum((int32) n) : Int64GetDatum(n);
}

/*
 * float8 to float4: rounding yields one of the two neighbors, so that no
 * float4 lies between it and the argument.
 */
static void
convert_to_float4(float8 wide, EunoArg *result)
{
	float4		narrow = (float4) wide;

	result->low = Float4GetDatum(narrow);
	if (isnan(wide))
		return;
	if ((float8) narrow > wide)
		result->place = EUNO_ARG_LOW_IS_ABOVE;
	else if ((float8) narrow < wide)
		result->place = EUNO_ARG_LOW_IS_BELOW;
}

/* The day that a moment lies in. */
static DateADT
timestamp_day(Timestamp moment)
{
	int64		day = moment / USECS_PER_DAY;

	if (moment % USECS_PER_DAY < 0)
		day--;
	return (DateADT) day;
}

/* A date compares like its midnight, whatever the time zone. */
static void
convert_timestamp_to_date(Timestamp moment, EunoArg *result)
{
	DateADT		day;

	if (TIMESTAMP_IS_NOBEGIN(moment))
		DATE_NOBEGIN(day);
	else if (TIMESTAMP_IS_NOEND(moment))
		DATE_NOEND(day);
	else
	{
		day = timestamp_day(moment);
		if ((int64) day * USECS_PER_DAY != moment)
			result->place = EUNO_ARG_LOW_IS_BELOW;
	}
	result->low = DateADTGetDatum(day);
}

EUNO_CONVERSION(date2timestamp, DateADT)
EUNO_CONVERSION(date2timestamptz, DateADT)
EUNO_CONVERSION(timestamp2timestamptz, Timestamp)

/*
 * To timestamp or timestamptz, by the server's own conversion.  Dates and
 * moments that are out of the type's range lie between its last value and
 * infinity.
 */
static void
convert_to_timestamp(Timestamp moment, int overflow, EunoArg *result)
{
	if (overflow > 0)
	{
		TIMESTAMP_NOEND(moment);
		result->place = EUNO_ARG_LOW_IS_ABOVE;
	}
	else if (overflow < 0)
	{
		TIMESTAMP_NOBEGIN(moment);
		result->place = EUNO_ARG_LOW_IS_BELOW;
	}
	result->low = TimestampGetDatum(moment);
}

/*
 * From timestamptz to local time.  The comparator works the other way, and
 * turns each local time into a moment by the offset that the zone has at that
 * time; that is not monotone where clocks are turned.  All offsets in use
 * within a month of the argument give a span: a local time before it is before
 * the argument by every one of them, one after it is after.  (Offsets are less
 * than a day, so that local times further away cannot be misjudged.)
 */
static void
convert_to_local(TimestampTz moment, bool to_date, EunoArg *result)
{
	const pg_time_t month = 30 * (pg_time_t) SECS_PER_DAY;
	pg_time_t	from;
	pg_time_t	to;
	long		least = 0;
	long		most = 0;
	int64		low;
	int64		high;

	result->recheck = true;
	if (TIMESTAMP_NOT_FINITE(moment))
	{
		if (to_date)
			convert_timestamp_to_date(moment, result);
		else
			result->low = TimestampGetDatum(moment);
		return;
	}

	from = timestamptz_to_time_t(moment) - month;
	to = from + 2 * month;
	for (bool first = true;; first = false)
	{
		long		before;
		long		after;
		int			isdst;
		pg_time_t	boundary;
		int			found = pg_next_dst_boundary(&from, &before, &isdst,
												 &boundary, &after, &isdst,
												 session_timezone);

		if (found < 0)
		{
			result->place = EUNO_ARG_UNKNOWN;
			return;
		}
		least = first ? before : Min(least, before);
		most = first ? before : Max(most, before);
		if (found == 0 || boundary > to || boundary <= from)
			break;
		from = boundary;
	}

	if (pg_add_s64_overflow(moment, least * USECS_PER_SEC, &low) ||
		pg_add_s64_overflow(moment, most * USECS_PER_SEC, &high))
	{
		result->place = EUNO_ARG_UNKNOWN;
		return;
	}
	result->place = EUNO_ARG_AROUND;
	if (to_date)
	{
		result->low = DateADTGetDatum(timestamp_day(low));
		result->high = DateADTGetDatum(timestamp_day(high));
	}
	else
	{
		result->low = TimestampGetDatum(low);
		result->high = TimestampGetDatum(high);
	}
}

void
euno_scan_convert(const EunoKeyColumn *col, EunoConversion conversion,
				  Datum argument, EunoArg *result)
{
	int			overflow = 0;
	Timestamp	moment;

	result->place = EUNO_ARG_EQUAL;
	result->recheck = false;
	switch (conversion)
	{
		case EUNO_CONVERT_NONE:
			result->place = EUNO_ARG_UNKNOWN;
			break;
		case EUNO_CONVERT_SAME:
		case EUNO_CONVERT_STRING:
			result->low = argument;
			break;
		case EUNO_CONVERT_INT2:
			convert_integer(col->kind, DatumGetInt16(argument), result);
			break;
		case EUNO_CONVERT_INT4:
			convert_integer(col->kind, DatumGetInt32(argument), result);
			break;
		case EUNO_CONVERT_INT8:
			convert_integer(col->kind, DatumGetInt64(argument), result);
			break;
		case EUNO_CONVERT_FLOAT8_TO_FLOAT4:
			convert_to_float4(DatumGetFloat8(argument), result);
			break;
		case EUNO_CONVERT_FLOAT4_TO_FLOAT8:
			result->low = Float8GetDatum((float8) DatumGetFloat4(argument));
			break;
		case EUNO_CONVERT_TIMESTAMP_TO_DATE:
			convert_timestamp_to_date(DatumGetTimestamp(argument), result);
			break;
		case EUNO_CONVERT_TIMESTAMPTZ_TO_DATE:
			convert_to_local(DatumGetTimestampTz(argument), true, result);
			break;
		case EUNO_CONVERT_TIMESTAMPTZ_TO_TIMESTAMP:
			convert_to_local(DatumGetTimestampTz(argument), false, result);
			break;
		case EUNO_CONVERT_DATE_TO_TIMESTAMP:
			moment = euno_date2timestamp(DatumGetDateADT(argument), &overflow);
			convert_to_timestamp(moment, overflow, result);
			break;
		case EUNO_CONVERT_DATE_TO_TIMESTAMPTZ:
			result->recheck = true;
			moment = euno_date2timestamptz(DatumGetDateADT(argument), &overflow);
			convert_to_timestamp(moment, overflow, result);
			break;
		case EUNO_CONVERT_TIMESTAMP_TO_TIMESTAMPTZ:
			result->recheck = true;
			moment = euno_timestamp2timestamptz(DatumGetTimestamp(argument),
												&overflow);
			convert_to_timestamp(moment, overflow, result);
			break;
	}
}
