/*-------------------------------------------------------------------------
 *
 * euno_operation.h
 *	  Getting at the tree of an index, and at its entries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_OPERATION_H
#define EUNO_OPERATION_H

#include "am/euno_am.h"

/* ---- euno_operation.c: getting at the tree ---- */

/*
 * Enters the epoch and says what state the index's tree is in (RETIRING and
 * FREE are reported as ABSENT).  While pinned, a tree that is not ABSENT stays
 * in memory, and idx->slot is the right one.  *cx is the context to run the
 * operation with.  Pairs with euno_index_unpin; the end of a transaction
 * or subtransaction by error unpins too.  Not to be held across anything slow
 * or that may raise, comparators apart.
 */
extern EunoState euno_index_pin(EunoIndex *idx, EunoContext **cx);
extern void euno_index_unpin(EunoIndex *idx);

/*
 * The descents that the context has counted since it had "before" were upkeep:
 * to remove entries, to compact, or to merge what was written during a build.
 * When a tree is to be given up, only searches count in its favor (euno_full.c).
 */
static inline void
euno_count_upkeep(EunoIndex *idx, const EunoContext *cx, uint64 before)
{
	/* A comparator may have led back here, and its end added all of them. */
	if (cx == &idx->cx && cx->counters.descents > before)
		idx->upkeep += cx->counters.descents - before;
}

/*
 * For operations that call back into code that may raise (walk, verify): keeps
 * the tree in memory without holding the epoch, until euno_index_unhold or the
 * end of the (sub)transaction by error.  Returns the tree's state; nothing is
 * held unless it is READY.
 */
extern EunoState euno_index_hold(EunoIndex *idx, EunoContext **cx);
extern void euno_index_unhold(EunoIndex *idx);

/*
 * A bulk delete of the tree that is held begins, and has ended: in between its
 * vacuum epoch is odd.  After an error the end of the hold makes it even.
 * Both are full barriers.
 */
extern void euno_index_begin_delete(EunoIndex *idx);
extern void euno_index_end_delete(EunoIndex *idx);

/*
 * Starts the build of a slot's tree (see euno_tree_start_build), and completes
 * it.  In between the memory is held; the end of the (sub)transaction by
 * error, or of the process, gives the tree up.  The latter returns false, with
 * all still held, if somebody else has given the tree up meanwhile.
 */
extern EunoStatus euno_index_start_build(EunoIndex *idx, EunoTreeSlot *slot,
										 const EunoTreeOps *ops,
										 const EunoTreeConfig *config);
extern bool euno_index_finish_build(EunoIndex *idx);

/* Is this very process in the middle of building that tree? */
extern bool euno_index_is_builder(const EunoTreeSlot *slot);

/*
 * Is it in an operation that may keep the memory of that tree, should it be
 * given up?
 */
extern bool euno_index_has_look(const EunoTreeSlot *slot);

/* If this process is building that index: it fails for want of memory. */
extern void euno_operation_out_of_memory(const EunoIndex *idx);

extern void euno_operation_init(void);	/* callbacks; once per backend */
extern void euno_operation_define(void);	/* in _PG_init */
/* In a parallel query's worker: those that its leader started it within. */
extern int	euno_within_operations;

/* ---- moments: is what was read still so? ---- */

/* What a tree had when entries were read. */
typedef struct EunoMoment
{
	uint64		generation;
	uint64		vacuum_epoch;
} EunoMoment;

/*
 * For entries that are read from now on: whoever uses one later compares it
 * with what the tree has then.  Ends with an acquire fence, so that no entry
 * is read before.  The index is pinned.
 */
static inline EunoMoment
euno_index_moment(const EunoIndex *idx)
{
	EunoMoment	moment = {idx->generation,
	pg_atomic_read_u64(&idx->slot->vacuum_epoch)};

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return moment;
}

/* Has neither a bulk delete nor a build begun since? */
static inline bool
euno_moment_is_now(const EunoIndex *idx, const EunoMoment *moment)
{
	EunoTreeSlot *slot = idx->slot;

	return likely(pg_atomic_read_u64(&slot->generation) == moment->generation &&
				  pg_atomic_read_u64(&slot->vacuum_epoch) == moment->vacuum_epoch);
}

/* ---- euno_error.c ---- */

/*
 * Turns a core status into an ERROR: EUNO_NO_MEMORY is 53200 naming
 * euno.max_memory, EUNO_CORRUPT retires the tree (it will be rebuilt from the
 * heap) and is XX002, EUNO_CANCELED 57014.  Nothing held but a key lock.
 */
extern void euno_index_error(EunoIndex *idx, Relation index,
							 EunoStatus status) __attribute__((noreturn));

/* ---- hazards ---- */

/* Counts the changes of this backend's hazard word. */
extern uint64 euno_hazard_changes;

/*
 * Announce that "tid" of this tree is in use (EUNO_TID_MAX: any of its TIDs),
 * and then look at what bulk delete has done (euno_epoch.h); bulk delete
 * waits for it before its TIDs may be recycled.  One per backend: announcing
 * another replaces it, and so may any comparator that is called.
 */
static inline void
euno_hazard_set(EunoIndex *idx, EunoTid tid)
{
	euno_hazard_changes++;
	euno_hazard_announce(idx->cx.process, (uint64) idx->slot->number << 48 | tid);
}

/*
 * Announces a TID that was read of the tree after this moment.  False: a bulk
 * delete may have removed it since, so see whether its entry is still there
 * (euno_announce).
 */
static inline bool
euno_hazard_of_batch(EunoIndex *idx, EunoTid tid, const EunoMoment *read)
{
	euno_hazard_set(idx, tid);
	return euno_moment_is_now(idx, read);
}

static inline void
euno_hazard_clear(EunoProcess *process)
{
	euno_hazard_changes++;
	__atomic_store_n(&process->epochs->slots[process->slot].hazard, 0,
					 __ATOMIC_RELEASE);
}

/*
 * What a removal must find: that no bulk delete has begun since the tree's
 * vacuum epoch was this.
 */
static inline EunoGuard
euno_vacuum_guard(EunoTreeSlot *slot, uint64 vacuum_epoch)
{
	/* core reads the word with accessors of its own */
	return (EunoGuard)
	{
		.word = (const uint64_t *) &slot->vacuum_epoch.value,
			.expected = vacuum_epoch
	};
}

/* ---- euno_announce.c ---- */

/*
 * Announces the TID of an entry as our hazard, and sees whether the entry is
 * in the tree after that: EUNO_OK or EUNO_NOT_FOUND.  *read gets what the tree
 * had before.  EUNO_STALE: the tree is not READY.
 */
extern EunoStatus euno_announce(EunoIndex *idx, Relation index,
								const EunoEntry *entry, EunoMoment *read);

/* ---- euno_kill.c ---- */

/*
 * Removes the entry of a row that is dead to everybody, which was read after
 * this moment.  By now the TID may be another row's: not if a bulk delete has
 * begun since, or was under way, which is looked at while the leaf is locked;
 * nor from a tree that has been built since.
 */
extern void euno_remove_dead(EunoIndex *idx, const EunoEntry *entry,
							 const EunoMoment *read);

/* ---- euno_deadlock.c: waits that the server's search does not see ---- */

/* Is the tree among those in EunoEpochSlot.held? */
static inline bool
euno_is_among_held(uint64 held, const EunoTreeSlot *slot)
{
	for (; held != 0; held >>= 16)
	{
		if ((held & 0xFFFF) == (uint64) slot->number + 1)
			return true;
	}
	return false;
}

/*
 * Wait a millisecond for other processes: those that keep the memory of this
 * tree, which is given up, by a pin or a hold; the one with this number, as long
 * as that is its hazard.  Can be canceled.  *waited, 0 at first, counts the
 * milliseconds.  Once in each deadlock_timeout, ERROR if one of those processes
 * waits for this one.  ERROR after lock_timeout, too, if it is for a tree: for
 * VACUUM, a hazard is as a pin of a buffer is.
 */
extern void euno_wait_for_look(const EunoTreeSlot *slot, int *waited);
extern void euno_wait_for_hazard(uint32 number, uint64 hazard, int *waited);

/* ---- entries that are read by others than scans, a batch at a time ---- */

#define EUNO_READER_ITEMS 1024

typedef struct EunoReader
{
	EunoCursor	cursor;
	EunoBatch	batch;			/* with keys; into what follows */
	EunoTid		tids[EUNO_READER_ITEMS];
	EunoItemKey keys[EUNO_READER_ITEMS];
	uint8_t		buf[EUNO_BATCH_BUF] __attribute__((aligned(8)));
} EunoReader;

static inline EunoReader *
euno_reader_make(void)
{
	EunoReader *reader = palloc(sizeof(EunoReader));

	reader->batch = (EunoBatch) {.max_items = EUNO_READER_ITEMS,
		.tids = reader->tids, .want_keys = true, .keys = reader->keys,
	.buf = reader->buf, .buf_size = EUNO_BATCH_BUF};
	return reader;
}

#endif							/* EUNO_OPERATION_H */
