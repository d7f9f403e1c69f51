/*-------------------------------------------------------------------------
 *
 * euno_absent.c
 *	  When is a tree that is absent built again, though nobody waits for it?
 *
 * Who cannot do without it builds it at once (euno_state.c).  A query that
 * could have used it only says that it is wanted, and the launcher has it
 * built, but not
 *
 * - if it was evicted by hand,
 * - after it did not fit, before there is room for what it needed then, and
 *	 each time not for twice as long as the last time (retry_at, needed_bytes),
 * - within half of euno.naptime after an attempt of a worker failed, or after it
 *	 was found to be inconsistent (tried_at).  Not so if it was a session's
 *	 attempt: that may have had too little time, again and again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "am/euno_state.h"
#include "mem/euno_arena.h"
#include "worker/euno_worker.h"

/* The longest time for which a tree that did not fit is not tried again. */
#define LONGEST_DELAY_S	3600

void
euno_absent_note_full(EunoTreeSlot *slot, uint64 bytes)
{
	TimestampTz now = GetCurrentTimestamp();
	int			delay = slot->retry_delay;

	/* One that had fitted for a good while starts anew. */
	if (delay == 0 || now > slot->retry_at + delay * INT64CONST(10000000))
		delay = euno_naptime;
	slot->retry_delay = Min(2 * (int64) delay, LONGEST_DELAY_S);
	slot->retry_at = now + slot->retry_delay * INT64CONST(1000000);
	slot->needed_bytes = Max(bytes, slot->needed_bytes / 2);
	slot->wanted = false;
}

bool
euno_absent_for_room(const EunoTreeSlot *slot)
{
	TimestampTz now = GetCurrentTimestamp();

	/* No later than it was said to be, should the clock be set back. */
	return slot->retry_at > now &&
		slot->retry_at <= now + slot->retry_delay * INT64CONST(1000000);
}

/* Does it fit now, as far as is known? */
static bool
may_fit(const EunoTreeSlot *slot)
{
	EunoArenaUsage usage;

	if (slot->retry_at == 0)
		return true;
	usage = euno_arena_usage(euno_registry_arena());

	/* One that took nearly all may be smaller now: most of it will do. */
	return !euno_absent_for_room(slot) &&
		usage.reserved - usage.used >=
		Min(slot->needed_bytes +
			Min(slot->needed_bytes / 8, usage.reserved / 32),
			usage.reserved - usage.reserved / 16);
}

void
euno_absent_note_failure(EunoTreeSlot *slot)
{
	slot->tried_at = GetCurrentTimestamp();
}

static TimestampTz
next_attempt(const EunoTreeSlot *slot)
{
	return slot->tried_at + euno_naptime * INT64CONST(500000);
}

static bool
is_time(const EunoTreeSlot *slot)
{
	TimestampTz now = GetCurrentTimestamp();

	/* The clock may have been set back since. */
	return now >= next_attempt(slot) || now < slot->tried_at;
}

void
euno_absent_want(EunoTreeSlot *slot)
{
	if (slot->evicted || slot->wanted || !may_fit(slot))
		return;
	slot->wanted = true;
	if (is_time(slot))
		euno_tree_call_launcher();
}

bool
euno_absent_may_try(const EunoTreeSlot *slot)
{
	return slot->wanted && !slot->evicted && may_fit(slot) && is_time(slot);
}

const char *
euno_absent_reason(const EunoTreeSlot *slot, TimestampTz *retry_at)
{
	*retry_at = 0;
	if (slot->evicted)
		return "evicted";
	if (!may_fit(slot))
	{
		*retry_at = slot->retry_at;
		return "memory";
	}
	if (slot->tried_at != 0)
	{
		*retry_at = next_attempt(slot);
		return "failed";
	}
	if (slot->build_failed)
		return "failed";
	return slot->wanted ? "wanted" : "unused";
}
