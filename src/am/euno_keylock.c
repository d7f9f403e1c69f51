/*-------------------------------------------------------------------------
 *
 * euno_keylock.c
 *	  Locks of keys in BYTES order, for unique checks.
 *
 * Words like those of nodes, and not LWLocks: who waits for an LWLock cannot
 * be canceled, and its holder may be stopped, or wait for a disk, for long.  A
 * process holds one at most, and foreign code does not run meanwhile; whatever
 * ends the (sub)transaction gives it back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "am/euno_insert.h"
#include "core/euno_lock.h"

#define KEY_LOCKS 1024

typedef union PaddedLock
{
	EunoLock	lock;
	char		pad[PG_CACHE_LINE_SIZE];
} PaddedLock;

static PaddedLock *locks = NULL;
static EunoLock *held = NULL;

Size
euno_key_locks_shmem_size(void)
{
	return KEY_LOCKS * sizeof(PaddedLock);
}

void
euno_key_locks_shmem_startup(void)
{
	locks = euno_shmem_alloc("euno key locks", euno_key_locks_shmem_size());
}

void
euno_key_lock_acquire(uint64 hash)
{
	EunoLock   *lock = &locks[hash % KEY_LOCKS].lock;
	bool		could_leave = euno_can_leave;

	Assert(held == NULL);
	while (!euno_mutex_trylock(lock))
	{
		CHECK_FOR_INTERRUPTS();
		euno_can_leave = true;
		(void) euno_lock_wait(lock, &euno_environment, NULL, true);
		euno_can_leave = could_leave;
	}
	held = lock;
}

void
euno_key_lock_release(void)
{
	if (held != NULL)
		euno_mutex_unlock(held, &euno_environment);
	held = NULL;
}
