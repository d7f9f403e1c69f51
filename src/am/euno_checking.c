/*-------------------------------------------------------------------------
 *
 * euno_checking.c
 *	  The rows whose keys are being checked for uniqueness.
 *
 * A builder may bring entries whose inserters are yet to check.  Each process
 * says here which row it is checking, until it has passed, so that others need
 * not wait for its transaction (src/README.md, "Unique indexes").
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "am/euno_insert.h"

/* One for each process, which alone writes it. */
typedef union Announcement
{
	struct
	{
		pg_atomic_uint64 changes;	/* odd while it is written */
		EunoChecking row;
	}			a;
	char		pad[PG_CACHE_LINE_SIZE];
} Announcement;

static Announcement *announcements = NULL;
static EunoChecking current;	/* what ours says */

Size
euno_checking_shmem_size(void)
{
	return mul_size(euno_epoch_slots(), sizeof(Announcement));
}

void
euno_checking_shmem_startup(void)
{
	announcements = euno_shmem_alloc("euno unique checks",
									 euno_checking_shmem_size());
	for (uint32 i = 0; i < euno_epoch_slots(); i++)
		pg_atomic_init_u64(&announcements[i].a.changes, 0);
}

/* As euno_lock.h's writers and readers, for one word of one writer. */
static void
announce(const EunoChecking *row)
{
	Announcement *own = &announcements[euno_process()->slot];
	uint64		changes = pg_atomic_read_u64(&own->a.changes);

	pg_atomic_write_u64(&own->a.changes, changes + 1);
	pg_write_barrier();
	own->a.row = *row;
	pg_write_barrier();
	pg_atomic_write_u64(&own->a.changes, changes + 2);
	current = *row;
}

EunoChecking
euno_checking_begin(const EunoIndex *idx, EunoTid tid)
{
	EunoChecking outer = current;
	EunoChecking row = {.key = idx->key, .tid = tid,
	.inserter = GetCurrentTransactionIdIfAny(),
	.nest_level = GetCurrentTransactionNestLevel()};

	announce(&row);
	return outer;
}

void
euno_checking_end(const EunoChecking *outer)
{
	if (current.tid != 0 || outer->tid != 0)
		announce(outer);
}

void
euno_checking_forget(int nest_level)
{
	const EunoChecking nothing = {.tid = 0};

	if (current.nest_level >= nest_level)
		euno_checking_end(&nothing);
}

bool
euno_is_checking(const EunoIndex *idx, EunoTid tid, TransactionId inserter)
{
	for (uint32 i = 0; i < euno_epoch_slots(); i++)
	{
		Announcement *other = &announcements[i];
		uint64		changes = pg_atomic_read_u64(&other->a.changes);
		EunoChecking row;

		pg_read_barrier();
		memcpy(&row, (const void *) &other->a.row, sizeof(row));
		pg_read_barrier();
		if ((changes & 1) == 0 && row.tid == tid &&
			row.inserter == inserter &&
			memcmp(&row.key, &idx->key, sizeof(row.key)) == 0 &&
			pg_atomic_read_u64(&other->a.changes) == changes)
			return true;
	}
	return false;
}
