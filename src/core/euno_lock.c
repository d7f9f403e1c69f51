/*-------------------------------------------------------------------------
 *
 * euno_lock.c
 *	  Waiting for the optimistic lock (euno_lock.h).
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_lock.h"

/*
 * Pauses before going to sleep: a few microseconds, several times as long as a
 * node is copied.  (A contention split builds two leaves under the lock, which
 * takes longer.)  Tests make it fewer.
 */
#ifndef EUNO_LOCK_SPINS
#define EUNO_LOCK_SPINS 100
#endif

/* The half of the word that holds the flags: what sleepers watch. */
static inline uint32_t *
sleep_word(EunoLock *lock)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (uint32_t *) &lock->word;
#else
	return (uint32_t *) &lock->word + 1;
#endif
}

uint64_t
euno_lock_wait(EunoLock *lock, const EunoEnvironment *env,
			   EunoCounters *counters, bool may_leave)
{
	uint64_t	word;

	if (counters != NULL)
		counters->lock_waits++;
	for (int spins = 0; spins < EUNO_LOCK_SPINS; spins++)
	{
		euno_pause();
		word = euno_load64_acquire(&lock->word);
		if ((word & EUNO_LOCK_LOCKED) == 0)
			return word;
	}
	for (;;)
	{
		word = euno_load64_acquire(&lock->word);
		if ((word & EUNO_LOCK_LOCKED) == 0)
			return word;

		/*
		 * The holder looks for WAITERS when it unlocks, so it must be set
		 * before sleeping; whoever unlocks clears it and wakes everybody.
		 */
		if ((word & EUNO_LOCK_WAITERS) == 0 &&
			!euno_cas64(&lock->word, &word, word | EUNO_LOCK_WAITERS))
			continue;
		env->wait(sleep_word(lock), (uint32_t) (word | EUNO_LOCK_WAITERS));
		if (may_leave && euno_is_canceled(env))
			return euno_load64_acquire(&lock->word);
	}
}

void
euno_lock_wake(EunoLock *lock, const EunoEnvironment *env)
{
	env->wake(sleep_word(lock));
}

bool
euno_lock_acquire(EunoLock *lock, const EunoEnvironment *env,
				  EunoCounters *counters)
{
	uint64_t	version;

	do
	{
		if (!euno_lock_read(lock, &version, env, counters))
			return false;
	} while (!euno_lock_upgrade(lock, version));
	return true;
}

bool
euno_lock_upgrade_wait(EunoLock *lock, uint64_t version,
					   const EunoEnvironment *env, EunoCounters *counters)
{
	while (!euno_lock_upgrade(lock, version))
	{
		uint64_t	word = euno_load64(&lock->word);

		if ((word & ~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS)) != version)
			return false;
		if ((euno_lock_wait(lock, env, counters, true) & EUNO_LOCK_LOCKED) != 0)
			return false;		/* canceled */
	}
	return true;
}
