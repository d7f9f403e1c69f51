/*-------------------------------------------------------------------------
 *
 * euno_unique.c
 *	  Unique indexes.
 *
 * The protocol is nbtree's (_bt_check_unique), with another lock.  nbtree
 * holds the leaf; we must not, for looking into the heap takes I/O.  Instead,
 *
 *	- a key lock is held from before the check to after the insert, so that of
 *	  two sessions with one key the second sees the first one's entry.  It is
 *	  given back before anything is waited for, as for memory; then all starts
 *	  over.  And before an error is reported, which may take long: the client may
 *	  not read it.
 *	- a TID is looked up in the heap only after it was announced as a hazard,
 *	  and (key, TID) was then still found in the tree: VACUUM cannot give it to
 *	  another row meanwhile.
 *
 * An absent tree is built first.  Whatever becomes of it between check and
 * insert, the check stands: the key lock kept others from adding entries with
 * this key, but for those a builder finds, whose owners are yet to check.
 * They say so (euno_checking.c), and are not waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_predicate.h"
#include "am/euno_state.h"
#include "euno_compat.h"

#define CHECK_BATCH 64			/* TIDs of one key looked at together */

/*
 * LOCKTAG_OBJECT sub-ids of key locks have this bit, the build lock's has not
 */
#define KEY_LOCK_SUBID 0x8000

typedef enum Verdict
{
	VERDICT_UNIQUE,
	VERDICT_DUPLICATE,
	VERDICT_SECOND,				/* the row has an entry with another key */
	VERDICT_WAIT,				/* for the transaction in UniqueCheck.xwait */
	VERDICT_ABSENT				/* the tree has to be built first */
} Verdict;

/*
 * In BYTES order no foreign code runs under the lock, and a simple one will
 * do.  Comparators may wait for locks, and insert into other unique indexes:
 * then it is a heavyweight one, which knows of deadlocks and may be taken
 * twice.
 */
typedef struct KeyLock
{
	bool		heavy;
	uint64		hash;			/* not heavy */
	LOCKTAG		tag;			/* heavy */
} KeyLock;

typedef struct UniqueCheck
{
	EunoIndex  *idx;
	Relation	index;
	Relation	heap;
	IndexUniqueCheck kind;
	EunoEntry	entry;
	bool		index_unchanged;
	bool		found_self;		/* the entry is there already */
	bool		was_absent;		/* the tree was not READY at the first look, but: */
	uint64		absent;			/* it was of this generation */
	TransactionId xwait;
	uint32		speculative_token;
	EunoChecking outer;			/* what this process was checking before */
	EunoStatus	status;			/* of the insert, if there was one */
	EunoInserted inserted;
	EunoCursor	cursor;
	EunoMoment	read;			/* before the batch was */
	EunoTid		tids[CHECK_BATCH];

	uint8_t		form_buffer[EUNO_KEY_FORM_BYTES] __attribute__((aligned(8)));
} UniqueCheck;

/* Equal keys must have one lock; only some are equal as bytes, too. */
static void
choose_key_lock(UniqueCheck *uc, KeyLock *lock)
{
	EunoIndex  *idx = uc->idx;
	uint64		hash = 0;

	if (idx->order == EUNO_ORDER_BYTES || euno_key_posting(idx->schema))
		hash = hash_bytes_extended(uc->entry.key, uc->entry.keylen,
								   (uint64) idx->key.database << 32 | idx->key.number);
	lock->heavy = idx->order != EUNO_ORDER_BYTES;
	lock->hash = hash;
	if (lock->heavy)
		SET_LOCKTAG_OBJECT(lock->tag, MyDatabaseId, RelationRelationId,
						   idx->oid,
						   KEY_LOCK_SUBID | (hash & (KEY_LOCK_SUBID - 1)));
}

static void
lock_key(const KeyLock *lock)
{
	if (lock->heavy)
		(void) LockAcquire(&lock->tag, ExclusiveLock, false, false);
	else
		euno_key_lock_acquire(lock->hash);
}

static void
unlock_key(const KeyLock *lock)
{
	if (lock->heavy)
		(void) LockRelease(&lock->tag, ExclusiveLock, false);
	else
		euno_key_lock_release();
}

/* Is the row with this key and another TID in the way? */
static Verdict
check_tid(UniqueCheck *uc, EunoTid tid)
{
	EunoEntry	entry = {.key = uc->entry.key, .keylen = uc->entry.keylen,
	.tid = tid};
	EunoMoment	read = uc->read;
	ItemPointerData heap_tid;
	SnapshotData dirty;
	bool		all_dead = false;

	EUNO_STOP_POINT("unique-tid");
	if (!euno_hazard_of_batch(uc->idx, tid, &uc->read))
	{
		EunoStatus	status = euno_announce(uc->idx, uc->index, &entry, &read);

		if (status == EUNO_STALE)
			return VERDICT_ABSENT;
		if (status != EUNO_OK)
			return VERDICT_UNIQUE;	/* the entry has been removed */
	}
	EUNO_STOP_POINT("unique-announced");

	InitDirtySnapshot(dirty);
	euno_tid_unpack(tid, &heap_tid);
	if (!table_index_fetch_tuple_check(uc->heap, &heap_tid, &dirty, &all_dead))
	{
		if (all_dead)
			euno_remove_dead(uc->idx, &entry, &read);
		return VERDICT_UNIQUE;
	}

	/* Whoever is yet to check will find our entry, and wait for us. */
	if (TransactionIdIsValid(dirty.xmin) &&
		euno_is_checking(uc->idx, tid, dirty.xmin))
		return VERDICT_UNIQUE;
	if (uc->kind == UNIQUE_CHECK_PARTIAL)
		return VERDICT_DUPLICATE;

	uc->xwait = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	uc->speculative_token = dirty.speculativeToken;
	return TransactionIdIsValid(uc->xwait) ? VERDICT_WAIT : VERDICT_DUPLICATE;
}

/*
 * Looks at all entries with the key, the new one's own apart.  The key lock is
 * held.
 */
static Verdict
check_key(UniqueCheck *uc)
{
	EunoIndex  *idx = uc->idx;
	EunoBatch	batch = {.max_items = CHECK_BATCH, .tids = uc->tids};

	euno_cursor_of_key(&uc->cursor, uc->entry.key, uc->entry.keylen);
	uc->found_self = false;

	while (!uc->cursor.at_hi)
	{
		EunoContext *cx;
		EunoStatus	status;

		if (euno_index_pin(idx, &cx) != EUNO_STATE_READY)
		{
			if (!uc->was_absent)
				uc->absent = idx->slot != NULL ? idx->generation : 0;
			uc->was_absent = true;
			euno_index_unpin(idx);
			return VERDICT_ABSENT;
		}

		uc->read = euno_index_moment(idx);
		status = idx->slot->ops->read(cx, &idx->slot->tree, &uc->cursor, true,
									  &batch);
		euno_index_unpin(idx);
		if (status != EUNO_OK)
			euno_index_error(idx, uc->index, status);
		if (batch.nitems == 0)
			break;

		for (uint32 i = 0; i < batch.nitems; i++)
		{
			Verdict		verdict;

			if (uc->tids[i] == uc->entry.tid)
			{
				uc->found_self = true;
				continue;
			}
			verdict = check_tid(uc, uc->tids[i]);
			if (verdict != VERDICT_UNIQUE)
				return verdict;
		}
	}
	return VERDICT_UNIQUE;
}

bool
euno_row_is_live(Relation heap, EunoTid tid)
{
	ItemPointerData heap_tid;

	euno_tid_unpack(tid, &heap_tid);
	return table_index_fetch_tuple_check(heap, &heap_tid, SnapshotSelf, NULL);
}

static void
raise_duplicate(UniqueCheck *uc, Datum *values, bool *isnull)
{
	char	   *description;

	/* A serialization failure, if there is one, tells the client more. */
	if (IsolationIsSerializable())
		euno_predicate_check_key(uc->idx, uc->index, uc->heap, &uc->entry);
	description = BuildIndexValueDescription(uc->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(uc->index)),
			 description ? errdetail("Key %s already exists.", description) : 0,
			 errtableconstraint(uc->heap,
								RelationGetRelationName(uc->index))));
}

/*
 * The tree's build began when our row was in the table already, and so has
 * brought its entry.  Is that not ours?  Then whoever has built it sees other
 * settings or definitions.
 */
static bool
has_other_entry(const UniqueCheck *uc)
{
	const EunoIndex *idx = uc->idx;

	return uc->was_absent && !uc->found_self && idx->slot != NULL &&
		idx->varies && uc->read.generation != uc->absent;
}

static void
raise_second_entry(const UniqueCheck *uc)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("euno index \"%s\" has just been built, with another key for the new row",
					RelationGetRelationName(uc->index)),
			 errdetail("Settings of this session, or definitions that its transaction has changed, make this key."),
			 errhint("Retry the transaction.")));
}

/*
 * Looks whether another row is in the way, and inserts the entry if none is,
 * or if that does not matter yet.  The key lock is held.
 */
static Verdict
check_and_insert(UniqueCheck *uc)
{
	EunoIndex  *idx = uc->idx;
	Verdict		verdict = check_key(uc);

	euno_hazard_clear(idx->cx.process);

	/*
	 * CREATE INDEX CONCURRENTLY also brings rows that have been deleted since
	 * its snapshot: a live one with the same key is no conflict.
	 */
	if (verdict == VERDICT_DUPLICATE && uc->kind != UNIQUE_CHECK_PARTIAL &&
		!euno_row_is_live(uc->heap, uc->entry.tid))
	{
		uc->found_self = true;	/* or never looked for */
		verdict = VERDICT_UNIQUE;
	}
	if (verdict != VERDICT_UNIQUE &&
		(verdict != VERDICT_DUPLICATE || uc->kind != UNIQUE_CHECK_PARTIAL))
		return verdict;
	EUNO_STOP_POINT("unique-checked");
	if (uc->kind == UNIQUE_CHECK_EXISTING)
		return verdict;
	if (verdict == VERDICT_UNIQUE && has_other_entry(uc))
		return VERDICT_SECOND;
	uc->status = euno_insert_entry(idx, uc->index, uc->heap, &uc->entry,
								   uc->index_unchanged, &uc->inserted);

	/*
	 * Under the lock: nobody with this key may think that we are yet to check.
	 */
	if (uc->status == EUNO_OK || uc->status == EUNO_EXISTS)
		euno_checking_end(&uc->outer);
	return verdict;
}

/* The same, and nothing is locked on entry or return. */
static Verdict
check_and_insert_locked(UniqueCheck *uc, const KeyLock *lock)
{
	volatile Verdict verdict;

	/* As in euno_index_try_build: VACUUM must not wait for us here. */
	euno_hazard_clear(uc->idx->cx.process);
	lock_key(lock);
	PG_TRY();
	{
		verdict = check_and_insert(uc);
	}
	PG_CATCH();
	{
		euno_key_lock_release();	/* a heavyweight one goes with the transaction */
		PG_RE_THROW();
	}
	PG_END_TRY();
	unlock_key(lock);
	return verdict;
}

/* Before the next attempt. */
static void
wait_for(UniqueCheck *uc, Verdict verdict)
{
	if (verdict == VERDICT_ABSENT)
		euno_index_try_build(uc->idx, uc->index);
	else if (uc->speculative_token != 0)
		SpeculativeInsertionWait(uc->xwait, uc->speculative_token);
	else
	{
		ItemPointerData heap_tid;

		euno_tid_unpack(uc->entry.tid, &heap_tid);
		XactLockTableWait(uc->xwait, uc->index, &heap_tid, XLTW_InsertIndex);
	}
}

bool
euno_insert_unique(EunoIndex *idx, Relation index, Relation heap,
				   Datum *values, bool *isnull, ItemPointer heap_tid,
				   IndexUniqueCheck check_unique, bool index_unchanged)
{
	UniqueCheck *uc = palloc(sizeof(UniqueCheck));
	KeyLock		lock;
	Verdict		verdict;

	euno_require_serving(index);
	uc->idx = idx;
	uc->index = index;
	uc->heap = heap;
	uc->kind = check_unique;
	uc->index_unchanged = index_unchanged;
	uc->was_absent = false;
	euno_key_form(idx->schema, values, isnull, euno_tid_pack(heap_tid),
				  uc->form_buffer, &uc->entry);
	choose_key_lock(uc, &lock);
	EUNO_STOP_POINT("unique-unannounced");
	if (check_unique != UNIQUE_CHECK_EXISTING)
		uc->outer = euno_checking_begin(idx, uc->entry.tid);
	EUNO_STOP_POINT("unique-start");

	for (;;)
	{
		verdict = check_and_insert_locked(uc, &lock);
		if (verdict == VERDICT_DUPLICATE && check_unique != UNIQUE_CHECK_PARTIAL)
			raise_duplicate(uc, values, isnull);
		if (verdict == VERDICT_SECOND)
			raise_second_entry(uc);
		if (verdict != VERDICT_UNIQUE && verdict != VERDICT_DUPLICATE)
			wait_for(uc, verdict);
		else if (check_unique == UNIQUE_CHECK_EXISTING ||
				 euno_insert_done(idx, index, heap, uc->status, &uc->inserted))
			break;
	}

	if (check_unique == UNIQUE_CHECK_EXISTING && !uc->found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(index)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(heap, RelationGetRelationName(index))));
	pfree(uc);
	return verdict == VERDICT_UNIQUE;
}
