/*-------------------------------------------------------------------------
 *
 * euno_lock.h
 *	  The optimistic lock of a node.  This comment is its specification.
 *
 * After "The ART of Practical Synchronization" (DaMoN 2016), section 3, with
 * the fences of Boehm, "Can seqlocks get along with programming language
 * memory models?" (MSPC 2012).  One 64-bit word:
 *
 *		bit 0		OBSOLETE	the node has been unlinked; never cleared
 *		bit 1		LOCKED		a writer is at work
 *		bit 2		WAITERS		somebody sleeps on the low half of the word
 *		bits 3-63	version		one more after every write
 *
 * Read rule.  Take a version, read, validate; believe nothing before:
 *
 *		if (!euno_lock_read(lock, &version, ...))
 *			restart;						(obsolete)
 *		copy = node->field;					(relaxed loads, lengths clamped)
 *		if (!euno_lock_validate(lock, version))
 *			restart;
 *		use(copy);
 *
 * A pointer read this way may be followed once validated: the node it points
 * to was linked then, and the reader's epoch keeps it from being reused.
 *
 * Write rule.  Find the place at some version, lock at that version:
 *
 *		euno_lock_read, search
 *		if (!euno_lock_upgrade(lock, version))
 *			restart;						(somebody wrote in between)
 *		node->field = value;				(relaxed stores)
 *		euno_lock_release(lock, env);
 *
 * The upgrade is also the validation of all that was read before.  A lock is
 * held for copies within a few nodes (two leaves; a leaf and its segments; of a
 * radix tree, a slot's holder, its node and that node's child), and a contention
 * split's also while it takes a leaf apart and builds two of it in private
 * memory; never across anything that calls out of core, or can fail so that
 * something would have to be undone.  Who holds one waits for another only in
 * the order that src/README.md gives: two leaves left to right, for one, and a
 * directory's mutex before any leaf.
 *
 * Delete rule.  Lock, unlink, euno_lock_release_obsolete, retire the node in
 * an epoch (euno_epoch.h).  Readers that come by an old pointer see OBSOLETE
 * and restart; those that had a version fail to validate.
 *
 * Why it is right.  Reader: load word (acquire), data loads (relaxed),
 * acquire fence, load word.  Writer: CAS (acquire), release fence, data
 * stores (relaxed), exchange (release).  If a data load saw a store of the
 * writer, then the writer's release fence happens before the reader's acquire
 * fence, so the reader's second load sees LOCKED or something later: it
 * differs from the first.  If no data load saw one, what was read is the
 * state at the first load.
 *
 * Waiting.  A waiter spins for a few microseconds, then sets WAITERS and
 * sleeps on the low half of the word through the environment's wait: a
 * preempted or stopped holder costs its waiters no processor time.  One that
 * holds nothing may leave when its operation is canceled; WAITERS stays, and
 * costs the holder a call.
 *
 * The same word serves as a plain mutex for structures that have no
 * optimistic readers (pools, the writers of a directory).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_LOCK_H
#define EUNO_LOCK_H

#include "core/euno_core.h"
#include "core/euno_shared.h"

#define EUNO_LOCK_OBSOLETE	UINT64_C(1)
#define EUNO_LOCK_LOCKED	UINT64_C(2)
#define EUNO_LOCK_WAITERS	UINT64_C(4)
#define EUNO_LOCK_VERSION	UINT64_C(8)

typedef struct EunoLock
{
	uint64_t	word;
} EunoLock;

/*
 * Waits until the lock looks free, or, with may_leave, until the operation is
 * canceled; returns the word seen then.
 */
extern uint64_t euno_lock_wait(EunoLock *lock, const EunoEnvironment *env,
							   EunoCounters *counters, bool may_leave);

/* Wakes everybody who sleeps on the word. */
extern void euno_lock_wake(EunoLock *lock, const EunoEnvironment *env);

/*
 * Locks whatever the version is.  False, and not locked, if obsolete.
 * "counters" may be NULL here and below.
 */
extern bool euno_lock_acquire(EunoLock *lock, const EunoEnvironment *env,
							  EunoCounters *counters);

/* Starts a read: waits while locked; false if the node is obsolete. */
static inline bool
euno_lock_read(EunoLock *lock, uint64_t *version, const EunoEnvironment *env,
			   EunoCounters *counters)
{
	uint64_t	word = euno_load64_acquire(&lock->word);

	if (EUNO_ALONE)
	{
		*version = word;
		return true;
	}
	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
		word = euno_lock_wait(lock, env, counters, false);
	*version = word;
	return (word & EUNO_LOCK_OBSOLETE) == 0;
}

/*
 * Reads the version, for callers who hold nothing and can give up: false if the
 * node is obsolete, or the operation was canceled while it was locked.  Before
 * they restart they ask euno_is_canceled.
 */
static inline bool
euno_lock_read_or_leave(EunoLock *lock, uint64_t *version,
						const EunoEnvironment *env, EunoCounters *counters)
{
	uint64_t	word = euno_load64_acquire(&lock->word);

	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
		word = euno_lock_wait(lock, env, counters, true);
	*version = word;
	return (word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) == 0;
}

/*
 * Reads the version, for callers who can do without: false if the node is
 * obsolete or locked.  Never waits.
 */
static inline bool
euno_lock_glance(EunoLock *lock, uint64_t *version)
{
	*version = euno_load64_acquire(&lock->word);
	return EUNO_ALONE ||
		(*version & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) == 0;
}

/* True if nothing was written since the version was taken. */
static inline bool
euno_lock_validate(EunoLock *lock, uint64_t version)
{
	if (EUNO_ALONE)
		return true;
	euno_fence_acquire();		/* the data loads come before this load */
	return euno_load64(&lock->word) == version;
}

/* Locks if the version is still this one. */
static inline bool
euno_lock_upgrade(EunoLock *lock, uint64_t version)
{
	if (EUNO_ALONE)
		return true;
	if (!euno_cas64(&lock->word, &version, version | EUNO_LOCK_LOCKED))
		return false;
	euno_fence_release();		/* LOCKED is visible before any data store */
	return true;
}

/* Locks, without waiting; false if the node is obsolete, or somebody has it. */
static inline bool
euno_lock_try(EunoLock *lock)
{
	uint64_t	word = euno_load64(&lock->word);

	return (word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) == 0 &&
		euno_lock_upgrade(lock, word);
}

/*
 * Locks if the version is still this one, and waits while somebody holds the
 * lock who may leave it as it is.  False: the version is another one.  No node
 * may be locked.
 *
 * Many operations that lock a node in turn only to copy it keep it locked all
 * the time, and none would find it free at the version it has copied.  With
 * this, whoever is ready first gets it, and only a write sends others back.
 */
extern bool euno_lock_upgrade_wait(EunoLock *lock, uint64_t version,
								   const EunoEnvironment *env,
								   EunoCounters *counters);

/* Unlocks; "change" is added to the version bits and flags. */
static inline void
euno_lock_leave(EunoLock *lock, uint64_t change, const EunoEnvironment *env)
{
	uint64_t	word = euno_load64(&lock->word);
	uint64_t	old;

	word &= ~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
	old = euno_exchange64_release(&lock->word, word + change);
	if (__builtin_expect((old & EUNO_LOCK_WAITERS) != 0, 0))
		euno_lock_wake(lock, env);
}

/* Unlocks after a write. */
static inline void
euno_lock_release(EunoLock *lock, const EunoEnvironment *env)
{
	euno_lock_leave(lock, EUNO_LOCK_VERSION, env);
}

/* Unlocks when nothing was written: readers need not restart. */
static inline void
euno_lock_release_unchanged(EunoLock *lock, const EunoEnvironment *env)
{
	euno_lock_leave(lock, 0, env);
}

/* Unlocks a node that has been unlinked. */
static inline void
euno_lock_release_obsolete(EunoLock *lock, const EunoEnvironment *env)
{
	euno_lock_leave(lock, EUNO_LOCK_VERSION | EUNO_LOCK_OBSOLETE, env);
}

/* Locks whatever the version is.  False if obsolete, or canceled. */
static inline bool
euno_lock_acquire_or_leave(EunoLock *lock, const EunoEnvironment *env,
						   EunoCounters *counters)
{
	uint64_t	version;

	do
	{
		if (!euno_lock_read_or_leave(lock, &version, env, counters))
			return false;
	} while (!euno_lock_upgrade(lock, version));
	return true;
}

/* The version of a lock that this process holds: what it was locked at. */
static inline uint64_t
euno_lock_version(const EunoLock *lock)
{
	return euno_load64(&lock->word) & ~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
}

/* The word as a mutex.  Not recursive. */
static inline void
euno_mutex_lock(EunoLock *lock, const EunoEnvironment *env)
{
	(void) euno_lock_acquire(lock, env, NULL);
}

/* Without waiting; false if somebody has it. */
static inline bool
euno_mutex_trylock(EunoLock *lock)
{
	uint64_t	word = euno_load64(&lock->word);

	return (word & EUNO_LOCK_LOCKED) == 0 && euno_lock_upgrade(lock, word);
}

/*
 * For callers who hold nothing: false, and not locked, if the operation was
 * canceled.
 */
static inline bool
euno_mutex_lock_or_leave(EunoLock *lock, const EunoEnvironment *env)
{
	return euno_lock_acquire_or_leave(lock, env, NULL);
}

static inline void
euno_mutex_unlock(EunoLock *lock, const EunoEnvironment *env)
{
	euno_lock_release(lock, env);
}

#endif							/* EUNO_LOCK_H */
