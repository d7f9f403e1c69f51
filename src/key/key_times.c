/*-------------------------------------------------------------------------
 *
 * key_times.c
 *	  Order-preserving byte strings for values of types interval and timetz.
 *
 * An interval is as long as its microseconds, if a month has 30 days and a day
 * 24 hours: 74 bits, which are encoded in ten bytes, big endian with the sign
 * turned.  What is lost is how many of them are months and days, unless there
 * are no months, and less than a day besides the days, of the same sign.  It
 * is a byte: ONLY_TIME if there are neither, otherwise DIVIDED, and their
 * numbers follow.
 *
 * A timetz is compared by its time in Greenwich, then by its zone; nothing is
 * lost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "key/key_private.h"

#define SIGN64	(UINT64CONST(1) << 63)
#define SIGN32	(UINT32_C(1) << 31)

#define ONLY_TIME		0
#define DIVIDED			1
#define DIVIDED_BYTES	(1 + 2 * sizeof(int32))

/* Of a span, this many bits are behind the first eight bytes. */
#define LOW_BITS	16

static int128
span_of(Datum value)
{
	const Interval *interval = DatumGetIntervalP(value);

	return (int128) (INT64CONST(30) * interval->month + interval->day) *
		USECS_PER_DAY + interval->time;
}

/*
 * The interval of that length without months, and with less than a day besides
 * its days; false if the length does not fit into 64 bits.
 */
static bool
without_months(int128 span, Interval *interval)
{
	interval->month = 0;
	interval->day = (int32) ((int64) span / USECS_PER_DAY);
	interval->time = (int64) span % USECS_PER_DAY;
	return span == (int64) span;
}

void
euno_interval_put(bool desc, Datum value, uint8_t *p)
{
	int128		span = span_of(value);
	uint64_t	flip = desc ? ~UINT64_C(0) : 0;
	uint64_t	high = pg_hton64((uint64_t) (span >> LOW_BITS) ^ SIGN64 ^ flip);
	uint16_t	low = pg_hton16((uint16_t) (span ^ flip));

	memcpy(p, &high, sizeof(high));
	memcpy(p + sizeof(high), &low, sizeof(low));
}

void
euno_interval_get(bool desc, const uint8_t *p, const uint8_t *lost, void *to)
{
	uint64_t	flip = desc ? ~UINT64_C(0) : 0;
	uint64_t	high = euno_get_word(p) ^ SIGN64 ^ flip;
	uint16_t	low;
	int128		span;
	Interval	interval;

	memcpy(&low, p + sizeof(high), sizeof(low));
	low = (uint16_t) (pg_ntoh16(low) ^ flip);
	span = ((int128) (int64) high << LOW_BITS) | low;
	if (lost == NULL)
		(void) without_months(span, &interval);
	else
	{
		interval.month = 0;
		interval.day = 0;
		if (*lost == DIVIDED)
		{
			memcpy(&interval.month, lost + 1, sizeof(int32));
			memcpy(&interval.day, lost + 1 + sizeof(int32), sizeof(int32));
		}
		interval.time = (TimeOffset)
			(span - (int128) (INT64CONST(30) * interval.month + interval.day) *
			 USECS_PER_DAY);
	}
	memcpy(to, &interval, sizeof(interval));
}

uint32_t
euno_interval_lost(Datum value, uint8_t *lost)
{
	const Interval *interval = DatumGetIntervalP(value);
	Interval	canonical;

	if (interval->month == 0 && without_months(span_of(value), &canonical) &&
		canonical.day == interval->day)
		return 0;
	*lost = interval->month == 0 && interval->day == 0 ? ONLY_TIME : DIVIDED;
	if (*lost == ONLY_TIME)
		return 1;
	memcpy(lost + 1, &interval->month, sizeof(int32));
	memcpy(lost + 1 + sizeof(int32), &interval->day, sizeof(int32));
	return DIVIDED_BYTES;
}

uint32_t
euno_interval_lost_bytes(const uint8_t *lost)
{
	return *lost == DIVIDED ? DIVIDED_BYTES : 1;
}

int
euno_interval_compare(Datum a, Datum b)
{
	int128		x = span_of(a);
	int128		y = span_of(b);

	return (x > y) - (x < y);
}

uint64_t
euno_interval_head(Datum value)
{
	return (uint64_t) (span_of(value) >> LOW_BITS) ^ SIGN64;
}

static uint64_t
in_greenwich(const TimeTzADT *time)
{
	return (uint64_t) (time->time + time->zone * USECS_PER_SEC) ^ SIGN64;
}

void
euno_timetz_put(bool desc, Datum value, uint8_t *p)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	uint64_t	flip = desc ? ~UINT64_C(0) : 0;
	uint64_t	there = pg_hton64(in_greenwich(time) ^ flip);
	uint32_t	zone = pg_hton32((uint32_t) time->zone ^ SIGN32 ^ (uint32_t) flip);

	memcpy(p, &there, sizeof(there));
	memcpy(p + sizeof(there), &zone, sizeof(zone));
}

void
euno_timetz_get(bool desc, const uint8_t *p, void *to)
{
	uint64_t	flip = desc ? ~UINT64_C(0) : 0;
	uint64_t	there = euno_get_word(p) ^ SIGN64 ^ flip;
	uint32_t	zone;
	TimeTzADT	time;

	memcpy(&zone, p + sizeof(there), sizeof(zone));
	time.zone = (int32) (pg_ntoh32(zone) ^ SIGN32 ^ (uint32_t) flip);
	time.time = (TimeADT) there - time.zone * USECS_PER_SEC;
	memcpy(to, &time, EUNO_TIMETZ_BYTES);
}

int
euno_timetz_compare(Datum a, Datum b)
{
	uint64_t	x = euno_timetz_head(a);
	uint64_t	y = euno_timetz_head(b);
	int32		x_zone = DatumGetTimeTzADTP(a)->zone;
	int32		y_zone = DatumGetTimeTzADTP(b)->zone;

	return x != y ? (x > y) - (x < y) : (x_zone > y_zone) - (x_zone < y_zone);
}

uint64_t
euno_timetz_head(Datum value)
{
	return in_greenwich(DatumGetTimeTzADTP(value));
}
