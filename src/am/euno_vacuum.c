/*-------------------------------------------------------------------------
 *
 * euno_vacuum.c
 *	  Bulk delete and cleanup.
 *
 * After bulk delete returns, VACUUM makes the dead TIDs reusable.  Three kinds
 * of readers may still hold one:
 *
 *	- plain MVCC scans: harmless, a reused TID's tuple is too new for them;
 *	- index-only and non-MVCC scans: each announces the TID it is about to
 *	  return (its hazard), and then checks the vacuum epoch; we remove, change
 *	  the epoch, have all processes pass a barrier, and wait for the hazards
 *	  that name a TID of ours.  Either the scan sees the new epoch and looks
 *	  again whether its entry still exists, or we see its hazard
 *	  (euno_epoch.h);
 *	- deferred removals: they carry the epoch they were read under and are
 *	  dropped on a mismatch, or if it was odd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/proc.h"

#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_cache.h"
#include "mem/euno_domains.h"

/* Leaves, or nodes, that are looked at before others may have their turn. */
#define LEAVES_PER_PIN	256

/*
 * All leaves, or nodes, of a tree are looked at when a quarter of its entries
 * is new, or a hundredth gone, since that was done.
 */
#define COMPACT_INSERTS 4
#define COMPACT_REMOVALS 100

/*
 * What part of a pool is to be free, for extents that are all free to be
 * looked for.
 */
#define TRIM_FREE 4

typedef struct BulkDelete
{
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	const EunoWalk *walk;
} BulkDelete;

static bool
is_dead(void *arg, EunoTid tid)
{
	BulkDelete *bulk = arg;
	ItemPointerData pointer;

	euno_tid_unpack(tid, &pointer);
	return bulk->callback(&pointer, bulk->callback_state);
}

static void
between_leaves(void *arg)
{
	const BulkDelete *bulk = arg;

	if (bulk->walk->removed == 0)
		EUNO_STOP_POINT("bulkdelete-leaf");
	else
		EUNO_STOP_POINT("bulkdelete-removed");
	euno_vacuum_delay_point();
}

/*
 * Wait until no backend is about to use a TID that we have removed.
 */
static void
wait_for_hazards(EunoTreeSlot *slot, BulkDelete *bulk)
{
	EunoEpochs *epochs = euno_shared_epochs();

	while (!euno_barrier_all(&epochs->barriers))
	{
		/* For want of memory?  Until it works, no TID may be used again. */
		if (errno != ENOMEM)
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("could not have all processes pass a memory barrier: %m")));
		CHECK_FOR_INTERRUPTS();
		euno_sleep("EunoBarrier", 10000);
	}
	for (uint32 i = 0; i < epochs->nslots; i++)
	{
		uint64	   *word = &epochs->slots[i].hazard;
		uint64		hazard = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		EunoTid		tid = hazard & EUNO_TID_MAX;
		int			waited = 0;

		if (tid == 0 || hazard >> 48 != slot->number ||
			i == euno_process()->slot)
			continue;
		if (tid != EUNO_TID_MAX && !is_dead(bulk, tid))
			continue;
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == hazard)
			euno_wait_for_hazard(i, hazard, &waited);
	}
}

/*
 * Is it CREATE INDEX CONCURRENTLY that calls bulk delete, whose callback notes
 * every TID it is asked about, and not VACUUM?
 */
static bool
collecting_tids(Relation index)
{
	return !index->rd_index->indisvalid &&
		(MyProc->statusFlags & PROC_IN_VACUUM) == 0;
}

/*
 * Leave the tree alone while it is being built, and be sure that it is not
 * built while we run: the builder may have read TIDs that are recycled after
 * us.
 */
static EunoTreeSlot *
lock_for_vacuum(EunoIndex *idx, Relation index)
{
	/*
	 * CREATE INDEX CONCURRENTLY collects the TIDs that are in the index
	 * through us: there must be an index.  VACUUM of one that has failed needs
	 * none, and must not build: its snapshots protect nothing
	 * (PROC_IN_VACUUM).
	 */
	for (;;)
	{
		EunoTreeSlot *slot;

		euno_build_lock(idx->oid, ShareLock);
		slot = euno_tree_lookup(&idx->key);
		if (!collecting_tids(index))
			return slot;
		if (slot && euno_tree_state(slot) == EUNO_STATE_READY)
		{
			if (slot->unchecked)
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_IN_USE),
						 errmsg("euno index \"%s\" was given up while it was being created",
								RelationGetRelationName(index)),
						 errdetail("Rows that were inserted meanwhile have not been checked for uniqueness."),
						 errhint("Drop the index and create it again.")));
			return slot;
		}
		euno_build_unlock(idx->oid, ShareLock);
		euno_index_try_build(idx, index);
	}
}

/*
 * Remove, under an odd epoch.
 *
 * The epoch changes again before anybody looks at the hazards: a batch that
 * was read since it became odd may hold what has been removed after that, and
 * its scan must not find the epoch unchanged when we have looked already.
 * After an error, giving up the hold makes it even: a bulk delete that has not
 * returned leaves no TID to be used again.  Where there is no tree to remove
 * from, scans may still have batches of one.
 */
static EunoStatus
remove_dead(EunoIndex *idx, EunoTreeSlot *slot, BulkDelete *bulk,
			IndexBulkDeleteResult *stats)
{
	EunoWalk	walk = {.decide = is_dead, .pause = between_leaves, .arg = bulk,
	.room = palloc(sizeof(EunoWalkRoom))};
	EunoContext *cx;
	EunoStatus	status = EUNO_OK;

	bulk->walk = &walk;
	if (euno_index_hold(idx, &cx) == EUNO_STATE_READY)
	{
		euno_index_begin_delete(idx);
		euno_can_leave = true;
		status = slot->ops->walk(cx, &slot->tree, &walk);
		euno_can_leave = false;
		euno_index_end_delete(idx);
		euno_index_unhold(idx);
		stats->estimated_count = false;
		stats->num_index_tuples = walk.kept;
		stats->tuples_removed += walk.removed;
	}
	else
		pg_atomic_fetch_add_u64(&slot->vacuum_epoch, 2);
	pfree(walk.room);
	return status;
}

IndexBulkDeleteResult *
eunobulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			   IndexBulkDeleteCallback callback, void *callback_state)
{
	Relation	index = info->index;
	BulkDelete	bulk = {callback, callback_state, NULL};
	EunoIndex  *idx;
	EunoTreeSlot *slot;
	EunoStatus	status = EUNO_OK;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->estimated_count = true;
	stats->num_index_tuples = info->num_heap_tuples;
	if (!euno_preloaded)
		return stats;			/* no trees, no scans */

	idx = euno_index_open(index);
	slot = lock_for_vacuum(idx, index);
	if (slot != NULL)
	{
		status = remove_dead(idx, slot, &bulk, stats);
		/* The callback must not hear of TIDs that are only in a hazard. */
		if (status == EUNO_OK && !collecting_tids(index))
			wait_for_hazards(slot, &bulk);
		EUNO_STOP_POINT("bulkdelete-end");
	}
	euno_build_unlock(idx->oid, ShareLock);

	if (status != EUNO_OK)
		euno_index_error(idx, index, status);
	return stats;
}

/*
 * Extents of which deletions have left nothing go back; counts what is left.
 */
static void
give_extents_back(EunoIndex *idx, IndexBulkDeleteResult *stats)
{
	EunoContext *cx;

	if (euno_index_hold(idx, &cx) != EUNO_STATE_READY)
		return;
	euno_can_leave = true;
	for (int d = 0; d < euno_ndomains; d++)
	{
		EunoPool   *pool = &idx->slot->pools[d];
		uint64		owned = euno_pool_bytes(pool);
		uint64		live = euno_pool_live_bytes(pool);

		if (owned < 2 * EUNO_EXTENT_SIZE || owned < live + owned / TRIM_FREE)
			continue;
		euno_cache_drain(pool);
		for (bool begin = true; euno_pool_trim(pool, begin); begin = false)
		{
			EUNO_STOP_POINT("cleanup-trim");
			euno_vacuum_delay_point();
		}
	}
	euno_can_leave = false;
	stats->num_pages = euno_tree_bytes(idx->slot) / BLCKSZ;
	euno_index_unhold(idx);
}

/*
 * Is it worth while to look for what deletions have left half empty?  *changes
 * is to be noted when that has been done.  What this VACUUM has removed is
 * counted with its transaction.
 */
static bool
compacting_is_due(EunoTreeSlot *slot, double entries, double removed,
				  uint64 *changes)
{
	*changes = euno_tree_counted(slot, EUNO_COUNT_INSERTS) +
		COMPACT_REMOVALS / COMPACT_INSERTS *
		(euno_tree_counted(slot, EUNO_COUNT_REMOVALS) + (uint64) removed);

	/* Less than there were: they have been reset. */
	return *changes < slot->compacted_at ||
		(double) (*changes - slot->compacted_at) >= entries / COMPACT_INSERTS;
}

/*
 * Merges some of what deletions have left half empty.  *leaves is how many
 * there were when the round began; 0: none has begun, and perhaps none need.
 * Where leaves have gone, others can be merged afterwards, which were not
 * below the same inner node; so a round that leaves noticeably fewer is
 * followed by another.  False: nothing is left to be done, or can be done now.
 */
static bool
compact_step(EunoIndex *idx, IndexVacuumInfo *info,
			 IndexBulkDeleteResult *stats, uint64 *leaves, uint64 *changes)
{
	EunoStatus	status = EUNO_BUSY;
	bool		more = false;
	EunoContext *cx;

	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
	{
		EunoTreeSlot *slot = idx->slot;
		uint32		how = *leaves == 0 ? EUNO_COMPACT_BEGIN : 0;
		uint64		before = cx->counters.descents;
		EunoTreeStats now;
		uint32		merged;

		slot->ops->stats(cx, &slot->tree, &now);
		stats->num_index_tuples = now.entries;
		stats->estimated_count = false;
		if (*leaves == 0)
			*leaves = Max(now.leaves, 1);
		if (how == 0 || compacting_is_due(slot, (double) now.entries,
										  stats->tuples_removed, changes))
		{
			status = slot->ops->compact(cx, &slot->tree, how, LEAVES_PER_PIN,
										&merged);
			euno_count_upkeep(idx, cx, before);
		}
		more = status == EUNO_OK;
		if (status == EUNO_DONE)
		{
			slot->compacted_at = *changes;
			slot->ops->stats(cx, &slot->tree, &now);
			more = now.leaves > 0 && now.leaves < *leaves - *leaves / 64;
			*leaves = Max(now.leaves, 1);
		}
	}
	euno_index_unpin(idx);
	if (status == EUNO_CORRUPT)
		euno_index_error(idx, info->index, status);
	return more;
}

/* Has memory that nobody can see any more given back to the tree's pools. */
static void
reclaim(EunoIndex *idx)
{
	EunoContext *cx;

	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
		idx->slot->ops->reclaim(cx, &idx->slot->tree);
	euno_index_unpin(idx);
}

/* Compacts, and counts. */
IndexBulkDeleteResult *
eunovacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	EunoIndex  *idx;
	uint64		leaves = 0;
	uint64		changes = 0;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
	{
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
		stats->num_index_tuples = info->num_heap_tuples;
	}
	if (!euno_preloaded)
		return stats;

	idx = euno_index_open(info->index);
	while (compact_step(idx, info, stats, &leaves, &changes))
		euno_vacuum_delay_point();
	reclaim(idx);
	give_extents_back(idx, stats);
	return stats;
}
