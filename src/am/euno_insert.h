/*-------------------------------------------------------------------------
 *
 * euno_insert.h
 *	  Inserting an entry, and checking that its key is unique.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_INSERT_H
#define EUNO_INSERT_H

#include "am/euno_am.h"

/* ---- euno_insert.c, euno_delete.c ---- */

/* Where an entry was inserted: for predicate locks. */
typedef struct EunoInserted
{
	uint64		generation;		/* of the tree */
	uint32		leaf;			/* 0: it has none */
} EunoInserted;

/*
 * Inserts an entry whose heap tuple is in place; nothing is done while the
 * tree is absent (EUNO_OK).  A key lock may be held: so it waits for no lock
 * that others keep, and the failures that it knows are returned.  What it
 * returns goes to euno_insert_done.
 */
extern EunoStatus euno_insert_entry(EunoIndex *idx, Relation index,
									Relation heap, const EunoEntry *entry,
									bool index_unchanged, EunoInserted *where);

/*
 * Afterwards, without a key lock.  False: there was no memory, and may be now;
 * try again.  ERROR if the insert failed otherwise, or for want of memory, or
 * of a serialization failure.
 */
extern bool euno_insert_done(EunoIndex *idx, Relation index, Relation heap,
							 EunoStatus status, const EunoInserted *where);

/*
 * Removes versions of rows that are dead to everybody from the leaf that
 * "entry" belongs to (bottom-up deletion, as in nbtree).
 */
extern void euno_delete_dead_versions(EunoIndex *idx, Relation index,
									  Relation heap, const EunoEntry *entry);

/* ---- euno_unique.c, euno_unique_build.c ---- */

/*
 * Checks that no other row has this key, and inserts it (UNIQUE_CHECK_EXISTING
 * only checks).  Builds the tree if it is not READY.  May wait for other
 * transactions, with nothing held; ERROR 23505 if the key is taken.  With
 * UNIQUE_CHECK_PARTIAL it inserts anyway, and returns false if it may be.
 */
extern bool euno_insert_unique(EunoIndex *idx, Relation index, Relation heap,
							   Datum *values, bool *isnull,
							   ItemPointer heap_tid,
							   IndexUniqueCheck check_unique,
							   bool index_unchanged);

/* Has anybody who is done, or this transaction, left the row in the table? */
extern bool euno_row_is_live(Relation heap, EunoTid tid);

/* ERROR 23505 if two live rows of a loaded, unfinished tree have one key. */
extern void euno_unique_check_build(EunoIndex *idx, Relation index,
									Relation heap);

/* ---- euno_keylock.c: locks of keys, for unique checks ---- */

extern Size euno_key_locks_shmem_size(void);
extern void euno_key_locks_shmem_startup(void);

/*
 * Takes the lock of all keys with this hash; can be interrupted.  Nothing else
 * of ours is held, but a key lock of COMPARE order.  Gives back what is held,
 * if anything: also when a (sub)transaction is aborted.
 */
extern void euno_key_lock_acquire(uint64 hash);
extern void euno_key_lock_release(void);

/* ---- euno_checking.c: rows that are being checked for uniqueness ---- */

typedef struct EunoChecking
{
	EunoTreeKey key;
	EunoTid		tid;			/* 0: none */
	TransactionId inserter;		/* the (sub)transaction that has put it there */
	int			nest_level;		/* of the transaction that checks it */
} EunoChecking;

extern Size euno_checking_shmem_size(void);
extern void euno_checking_shmem_startup(void);

/*
 * Says that this process is going to check the key of a row that its own
 * transaction has put into the table.  Before the key is locked; returns what
 * was said before (a comparator may insert, too).  "end" takes it back, while
 * the key is still locked and the entry is in; "forget" does when
 * (sub)transactions from this nesting level on end.
 */
extern EunoChecking euno_checking_begin(const EunoIndex *idx, EunoTid tid);
extern void euno_checking_end(const EunoChecking *outer);
extern void euno_checking_forget(int nest_level);

/*
 * Is "inserter", the (sub)transaction that has put this row into the table and
 * was in progress when the heap was asked, yet to pass its check?  The key is
 * locked, so that it cannot pass before we unlock that.
 */
extern bool euno_is_checking(const EunoIndex *idx, EunoTid tid,
							 TransactionId inserter);

#endif							/* EUNO_INSERT_H */
