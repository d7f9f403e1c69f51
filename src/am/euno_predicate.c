/*-------------------------------------------------------------------------
 *
 * euno_predicate.c
 *	  Serializable transactions: predicate locks on leaves.
 *
 * PostgreSQL finds out about a row that a serializable transaction would have
 * read, had it been there, by a lock on the place in the index.  nbtree takes
 * and checks such locks with the leaf locked.  We cannot; instead
 *
 *	- a reader takes the lock on the number of the leaf it has read, and reads
 *	  again, until it has read from a leaf that was locked before;
 *	- a writer inserts, and then checks the number of the leaf it inserted into;
 *	- splits and merges leave a note of which leaf has given keys to which.
 *	  Readers and writers let the locks follow before they lock or check.
 *
 * Numbers are good for one generation of the tree.  What is locked in another
 * one's is moved to the table as a whole, and so writers look there, too.  All
 * this is under an LWLock of the index, and only for serializable
 * transactions.  src/README.md ("Serializable transactions") has the argument.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/predicate.h"

#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_predicate.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* EunoTreeSlot.predicate_generation: no leaf of any generation is locked. */
#define NO_LEAF_LOCKED PG_UINT64_MAX

static LWLock *
slot_lock(EunoTreeSlot *slot)
{
	static LWLockPadded *locks = NULL;

	if (locks == NULL)
		locks = GetNamedLWLockTranche(EUNO_PREDICATE_TRANCHE);
	return &locks[slot->number % EUNO_PREDICATE_STRIPES].lock;
}

/*
 * Copies the moves of keys that the locks have not followed yet.  EUNO_STALE:
 * there were too many; EUNO_NOT_FOUND: the tree is of another generation.
 */
static EunoStatus
pending_moves(EunoIndex *idx, EunoTreeSlot *slot, uint64 generation,
			  uint64_t *position, EunoMove *moves, uint32 *n)
{
	EunoContext *cx;
	EunoStatus	status = EUNO_NOT_FOUND;

	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY &&
		idx->slot == slot && idx->generation == generation &&
		slot->ops->moves != NULL)
		status = slot->ops->moves(cx, &slot->tree, position, moves, n);
	euno_index_unpin(idx);
	return status;
}

/* Let the locks on leaves go where the keys have gone.  The lock is held. */
static EunoStatus
follow_moves(EunoIndex *idx, Relation index, EunoTreeSlot *slot,
			 uint64 generation)
{
	EunoMove   *moves = palloc(EUNO_MOVES_MAX * sizeof(EunoMove));
	uint32		n = EUNO_MOVES_MAX;
	EunoStatus	status;

	status = pending_moves(idx, slot, generation, &slot->predicate_position,
						   moves, &n);
	if (status == EUNO_STALE)
	{
		TransferPredicateLocksToHeapRelation(index);
		status = EUNO_OK;
	}
	else if (status == EUNO_OK)
	{
		/* A copy: the old number may be what a writer is about to check. */
		for (uint32 i = 0; i < n; i++)
			if (moves[i].from != moves[i].to)
				PredicateLockPageSplit(index, moves[i].from, moves[i].to);
	}
	pfree(moves);
	return status;
}

/*
 * Acquires the slot's lock.  With EUNO_OK it is held, and the locks on leaves
 * of this generation are where their keys are.  Otherwise it is not:
 * EUNO_NOT_FOUND, no leaf of this generation is locked, or the tree is of
 * another one by now; EUNO_NO_MEMORY, nor can any be.
 */
static EunoStatus
enter(EunoIndex *idx, Relation index, EunoTreeSlot *slot, uint64 generation,
	  bool for_reader)
{
	LWLock	   *lock = slot_lock(slot);
	uint64_t	position;
	uint32		n = 0;
	EunoStatus	status = EUNO_NOT_FOUND;

	LWLockAcquire(lock, LW_SHARED);
	position = slot->predicate_position;
	if (slot->predicate_generation == generation &&
		pending_moves(idx, slot, generation, &position, NULL, &n) == EUNO_OK)
		return EUNO_OK;
	LWLockRelease(lock);

	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (slot->predicate_generation < generation)
	{
		TransferPredicateLocksToHeapRelation(index);
		slot->predicate_generation = NO_LEAF_LOCKED;
	}
	if (slot->predicate_generation == NO_LEAF_LOCKED && for_reader)
	{
		slot->predicate_generation = generation;
		slot->predicate_position = 0;
	}
	if (slot->predicate_generation == generation)
	{
		status = follow_moves(idx, index, slot, generation);
		if (status == EUNO_NOT_FOUND)
		{
			/* Given up: where its keys have gone is not known any more. */
			TransferPredicateLocksToHeapRelation(index);
			slot->predicate_generation = NO_LEAF_LOCKED;
		}
	}
	if (status != EUNO_OK)
		LWLockRelease(lock);
	return status;
}

/*
 * Has a batch that was read in a serializable transaction been read under a
 * predicate lock, and is it the next one of the scan?  If not, the scan is to
 * read again.  "generation" is that of the tree that was read.
 */
bool
euno_predicate_lock_batch(EunoPredicate *predicate, IndexScanDesc scan,
					  EunoIndex *idx, uint64 generation, EunoCursor *cursor,
					  bool forward, const EunoBatch *batch)
{
	Relation	index = scan->indexRelation;
	EunoTreeSlot *slot = idx->slot;

	if (predicate->relation ||
		(batch->leaf != 0 && batch->leaf == predicate->leaf &&
		 generation == predicate->generation))
		return batch->nitems > 0 || (forward ? cursor->at_hi : cursor->at_lo);

	EUNO_STOP_POINT("predicate-lock");
	CHECK_FOR_INTERRUPTS();
	euno_cursor_unread(cursor, forward);
	if (batch->leaf != 0)
	{
		switch (enter(idx, index, slot, generation, true))
		{
			case EUNO_OK:
				PredicateLockPage(index, batch->leaf, scan->xs_snapshot);
				LWLockRelease(slot_lock(slot));
				predicate->leaf = batch->leaf;
				predicate->generation = generation;
				pg_memory_barrier();	/* locked before we read again */
				return false;
			case EUNO_NO_MEMORY:
				break;
			default:
				return false;	/* the tree has been given up */
		}
	}

	/* No numbers, or no memory to follow them */
	PredicateLockRelation(index, scan->xs_snapshot);
	predicate->relation = true;
	pg_memory_barrier();		/* as above */
	return false;
}

/*
 * To be called after an entry was inserted in a serializable transaction:
 * ERROR 40001 if that makes a cycle of dependencies with those who have read
 * its place.  "leaf" is the number of the leaf that it is in, in a tree of
 * this generation; 0 if that has none, or the entry is in no tree that has
 * been read.
 */
void
euno_predicate_check(EunoIndex *idx, Relation index, Relation heap,
					 uint64 generation, uint32 leaf)
{
	EunoTreeSlot *slot = idx->slot != NULL ? idx->slot : euno_index_slot(idx);
	LWLock	   *lock = slot_lock(slot);
	bool		inside;

	pg_memory_barrier();		/* inserted before we look for locks */
	EUNO_STOP_POINT("predicate-check");
	if (leaf == 0)
	{
		LWLockAcquire(lock, LW_EXCLUSIVE);
		if (slot->predicate_generation != NO_LEAF_LOCKED)
		{
			TransferPredicateLocksToHeapRelation(index);
			slot->predicate_generation = NO_LEAF_LOCKED;
		}
		LWLockRelease(lock);
	}
	inside = leaf != 0 && enter(idx, index, slot, generation, false) == EUNO_OK;
	CheckForSerializableConflictIn(index, NULL,
								   inside ? leaf : InvalidBlockNumber);
	if (inside)
		LWLockRelease(lock);

	/* The table's own check was before the locks were moved to it. */
	CheckForSerializableConflictIn(heap, NULL, InvalidBlockNumber);
}

/* The same for an entry that cannot be inserted, as its key is taken. */
void
euno_predicate_check_key(EunoIndex *idx, Relation index, Relation heap,
						 const EunoEntry *entry)
{
	EunoCursor *cursor = palloc(sizeof(EunoCursor));
	EunoTid		tid;
	EunoBatch	batch = {.max_items = 1, .tids = &tid, .one_leaf = true};
	EunoContext *cx;
	uint64		generation;

	euno_cursor_of_key(cursor, entry->key, entry->keylen);
	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
		(void) idx->slot->ops->read(cx, &idx->slot->tree, cursor, true, &batch);
	generation = idx->generation;
	euno_index_unpin(idx);
	pfree(cursor);
	euno_predicate_check(idx, index, heap, generation, batch.leaf);
}
