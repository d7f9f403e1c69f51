/*-------------------------------------------------------------------------
 *
 * key_known.c
 *	  What some comparators say, without a call.
 *
 * Their types have no encoding as bytes, but two values are compared in a few
 * instructions; a call of the server's function takes a hundred.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "key/key_private.h"

#define SIGN64	(UINT64CONST(1) << 63)

/* Of a TimeTzADT, without what the compiler adds. */
#define TIMETZ_BYTES	(sizeof(TimeADT) + sizeof(int32))

/* Bits of an interval's microseconds that do not fit into a head. */
#define SPAN_LOW_BITS	10

EunoKnown
euno_known_comparator(Oid proc, int16 attlen)
{
	if (proc == F_ENUM_CMP && attlen == sizeof(Oid))
		return EUNO_KNOWN_ENUM;
	if (proc == F_INTERVAL_CMP && attlen == sizeof(Interval))
		return EUNO_KNOWN_INTERVAL;
	if (proc == F_TIMETZ_CMP && attlen == TIMETZ_BYTES)
		return EUNO_KNOWN_TIMETZ;
	return EUNO_KNOWN_NOT;
}

/* An interval in microseconds: a month has 30 days, a day 24 hours. */
static inline int128
span(Datum value)
{
	const Interval *interval = DatumGetIntervalP(value);

	return (int128) (INT64CONST(30) * interval->month + interval->day) *
		USECS_PER_DAY + interval->time;
}

/* A time as it is in Greenwich. */
static inline int64
universal_time(Datum value)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);

	return time->time + time->zone * USECS_PER_SEC;
}

bool
euno_known_compare(EunoKnown known, Datum a, Datum b, int *result)
{
	switch (known)
	{
		case EUNO_KNOWN_ENUM:
			{
				/* As enum_cmp: even OIDs are in order */
				Oid			x = DatumGetObjectId(a);
				Oid			y = DatumGetObjectId(b);

				*result = (x > y) - (x < y);
				return x == y || ((x | y) & 1) == 0;
			}
		case EUNO_KNOWN_INTERVAL:
			{
				int128		x = span(a);
				int128		y = span(b);

				*result = (x > y) - (x < y);
				return true;
			}
		case EUNO_KNOWN_TIMETZ:
			{
				int64		x = universal_time(a);
				int64		y = universal_time(b);
				int32		x_zone = DatumGetTimeTzADTP(a)->zone;
				int32		y_zone = DatumGetTimeTzADTP(b)->zone;

				*result = x != y ? (x > y) - (x < y) :
					(x_zone > y_zone) - (x_zone < y_zone);
				return true;
			}
		default:
			return false;
	}
}

bool
euno_known_has_head(EunoKnown known)
{
	return known == EUNO_KNOWN_INTERVAL || known == EUNO_KNOWN_TIMETZ;
}

uint64_t
euno_known_head(EunoKnown known, Datum value)
{
	if (known == EUNO_KNOWN_INTERVAL)
		return (uint64_t) (int64) (span(value) >> SPAN_LOW_BITS) ^ SIGN64;
	return (uint64_t) universal_time(value) ^ SIGN64;
}
