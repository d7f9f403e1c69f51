/*-------------------------------------------------------------------------
 *
 * euno_tree_state.c
 *	  The states of a tree, from one to the next (see euno_registry.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"

#include "euno_compat.h"
#include "mem/registry_private.h"

/*
 * Memory that nobody can see any more, on its way back to the arena.  To give
 * the system the pages of gigabytes takes long: pools are emptied into one of
 * these under euno_registry_lock, and their extents are given back after it.
 */
typedef struct Garbage
{
	int			npools;
	EunoPool	pools[2 * EUNO_MAX_DOMAINS];
} Garbage;

static void
collect_pools(EunoPool *pools, Garbage *garbage)
{
	for (int i = 0; i < EUNO_MAX_DOMAINS; i++)
	{
		if (pools[i].extents > 0)
			garbage->pools[garbage->npools++] = pools[i];
		euno_pool_init(&pools[i], euno_registry_arena(), pools[i].domain);
	}
}

/* euno_registry_lock is held exclusively; nobody can see the side tree. */
static void
collect_side(EunoTreeSlot *slot, Garbage *garbage)
{
	EunoSide   *side = slot->side;

	if (side == NULL)
		return;
	slot->side = NULL;
	collect_pools(side->pools, garbage);
	euno_pool_free(&slot->pools[0], side, sizeof(EunoSide));
}

/* euno_registry_lock is not held. */
static void
release_garbage(Garbage *garbage)
{
	for (int i = 0; i < garbage->npools; i++)
		euno_pool_release(&garbage->pools[i]);
}

/*
 * Nothing that was known of the slot holds from here on.  euno_registry_lock
 * is held exclusively.
 */
static void
new_generation(EunoTreeSlot *slot)
{
	pg_atomic_write_u64(&slot->generation, euno_registry->next_generation++);
}

/* The slot is for another tree from now on.  The same lock is held. */
static void
free_slot(EunoTreeSlot *slot)
{
	/*
	 * Its key may come back, in another slot: who has looked this one up while
	 * it was retiring must do so again.
	 */
	new_generation(slot);
	pg_write_barrier();
	hash_search(euno_tree_hash, &slot->key, HASH_REMOVE, NULL);
	pg_atomic_write_u32(&slot->state, EUNO_STATE_FREE);
}

/*
 * If the tree is RETIRING and nobody can see it any more, free its memory; the
 * same for the side tree of one that is READY.  Returns true when the tree is
 * not RETIRING any more.
 */
bool
euno_tree_finish_retired(EunoTreeSlot *slot)
{
	Garbage		garbage = {.npools = 0};
	EunoState	state;
	bool		retired;

	/* A barrier that has to be asked for is asked for without the lock. */
	if (euno_tree_state(slot) == EUNO_STATE_RETIRING)
		(void) euno_epoch_passed(euno_shared_epochs(), slot->retired_epoch);

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	state = euno_tree_state(slot);
	if (state == EUNO_STATE_READY && slot->side != NULL &&
		euno_epoch_passed(euno_shared_epochs(), slot->side_epoch))
		collect_side(slot, &garbage);
	retired = state == EUNO_STATE_RETIRING &&
		euno_epoch_passed(euno_shared_epochs(), slot->retired_epoch) &&
		pg_atomic_read_u32(&slot->holders) == 0;
	if (retired)
	{
		collect_side(slot, &garbage);
		collect_pools(slot->pools, &garbage);
		if (slot->drop_when_retired)
			free_slot(slot);
		else
			pg_atomic_write_u32(&slot->state, EUNO_STATE_ABSENT);
	}
	LWLockRelease(euno_registry_lock);

	release_garbage(&garbage);
	return retired || state != EUNO_STATE_RETIRING;
}

void
euno_tree_sweep(void)
{
	for (int i = 0; i < euno_registry->used; i++)
	{
		EunoTreeSlot *slot = &euno_registry->slots[i];

		if (euno_tree_state(slot) == EUNO_STATE_RETIRING || slot->side != NULL)
			(void) euno_tree_finish_retired(slot);
	}
}

/* euno_registry_lock is held exclusively. */
static void
retire_locked(EunoTreeSlot *slot, bool drop)
{
	switch (euno_tree_state(slot))
	{
		case EUNO_STATE_FREE:
			break;
		case EUNO_STATE_ABSENT:
			if (drop)
				free_slot(slot);
			break;
		case EUNO_STATE_RETIRING:
			slot->drop_when_retired |= drop;
			break;
		case EUNO_STATE_BUILDING:
		case EUNO_STATE_MERGING:
		case EUNO_STATE_READY:
			slot->drop_when_retired = drop;
			new_generation(slot);
			pg_atomic_write_u32(&slot->state, EUNO_STATE_RETIRING);

			/* Whoever does not see RETIRING in this epoch is waited for. */
			slot->retired_epoch = euno_epoch_advance(euno_shared_epochs());
			break;
	}
}

bool
euno_tree_start_retiring(EunoTreeSlot *slot, uint64 generation)
{
	bool		found;

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	found = pg_atomic_read_u64(&slot->generation) == generation;
	if (found)
		retire_locked(slot, false);
	LWLockRelease(euno_registry_lock);
	return found;
}

bool
euno_tree_retire(EunoTreeSlot *slot, uint64 generation)
{
	(void) euno_tree_start_retiring(slot, generation);
	return euno_tree_finish_retired(slot);
}

/* Drops the tree of a key; 0 for any generation of it. */
static void
drop_generation(const EunoTreeKey *key, uint64 generation)
{
	EunoTreeHashEntry *entry;
	EunoTreeSlot *slot = NULL;

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	entry = hash_search(euno_tree_hash, key, HASH_FIND, NULL);
	if (entry != NULL)
		slot = &euno_registry->slots[entry->number];
	if (slot != NULL && generation != 0 &&
		generation != pg_atomic_read_u64(&slot->generation))
		slot = NULL;
	if (slot != NULL)
		retire_locked(slot, true);
	LWLockRelease(euno_registry_lock);

	if (slot != NULL)
		(void) euno_tree_finish_retired(slot);
}

void
euno_tree_drop(const EunoTreeKey *key)
{
	drop_generation(key, 0);
}

void
euno_tree_drop_described(const EunoTreeDescription *tree)
{
	drop_generation(&tree->key, tree->generation);
}

/*
 * An empty tree and its side tree.  euno_registry_lock is held exclusively.  On
 * failure what was allocated is left to the caller.
 */
static EunoStatus
create_trees(EunoTreeSlot *slot, EunoContext *cx, const EunoTreeOps *ops,
			 const EunoTreeConfig *config)
{
	EunoTreeConfig side_config = *config;
	EunoSide   *side;
	EunoStatus	status;

	memset(&slot->tree, 0, sizeof(slot->tree));
	slot->tree.alloc_arg = slot->pools;
	slot->ops = ops;
	status = ops->create(cx, &slot->tree, config);
	if (status != EUNO_OK)
		return status;

	side = euno_pool_alloc(&slot->pools[0], sizeof(EunoSide));
	if (side == NULL)
		return EUNO_NO_MEMORY;
	memset(side, 0, sizeof(EunoSide));
	for (int i = 0; i < EUNO_MAX_DOMAINS; i++)
		euno_pool_init(&side->pools[i], euno_registry_arena(), slot->pools[i].domain);
	side->tree.alloc_arg = side->pools;
	slot->side = side;

	/* It is not worth directories. */
	side_config.domains = 1;
	return euno_bptree_ops.create(cx, &side->tree, &side_config);
}

EunoStatus
euno_tree_start_build(EunoTreeSlot *slot, EunoContext *cx,
					  const EunoTreeOps *ops, const EunoTreeConfig *config,
					  int level)
{
	Garbage		garbage = {.npools = 0};
	EunoStatus	status;

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	if (euno_tree_state(slot) != EUNO_STATE_ABSENT)
	{
		LWLockRelease(euno_registry_lock);
		return EUNO_EXISTS;
	}
	status = create_trees(slot, cx, ops, config);
	if (status != EUNO_OK)
	{
		collect_side(slot, &garbage);
		collect_pools(slot->pools, &garbage);
		LWLockRelease(euno_registry_lock);
		release_garbage(&garbage);
		return status;
	}

	slot->builder_pid = MyProcPid;
	slot->builder_level = level;
	slot->builders = 1;
	slot->evicted = slot->wanted = slot->from_snapshot = false;
	pg_atomic_fetch_add_u32(&slot->holders, 1);
	new_generation(slot);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->state, EUNO_STATE_BUILDING);
	LWLockRelease(euno_registry_lock);

	/*
	 * Writers whose heap tuple the build will not see must see BUILDING: they
	 * insert into the heap, fence, and read the state; we set the state,
	 * fence, and read the heap.
	 */
	pg_memory_barrier();
	return EUNO_OK;
}

bool
euno_tree_is_our_build(EunoTreeSlot *slot)
{
	EunoState	state = euno_tree_state(slot);

	/* If the state says so but is another's by now, the pid is not ours. */
	return (state == EUNO_STATE_BUILDING || state == EUNO_STATE_MERGING) &&
		slot->builder_pid == MyProcPid;
}

bool
euno_tree_start_merge(EunoTreeSlot *slot)
{
	bool		ours;

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	ours = euno_tree_is_our_build(slot);
	if (ours)
	{
		pg_write_barrier();
		pg_atomic_write_u32(&slot->state, EUNO_STATE_MERGING);

		/*
		 * A writer inserts into the side tree, fences, and reads the state
		 * again; we set the state, fence, and read the side tree.
		 */
		pg_memory_barrier();
		slot->side_epoch = euno_epoch_advance(euno_shared_epochs());
	}
	LWLockRelease(euno_registry_lock);
	return ours;
}

bool
euno_tree_finish_build(EunoTreeSlot *slot)
{
	FullTransactionId next = ReadNextFullTransactionId();
	bool		ours;

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	ours = euno_tree_is_our_build(slot);
	if (ours)
	{
		slot->tried_at = 0;
		slot->build_failed = false;
		slot->finished = next;
		pg_write_barrier();
		pg_atomic_write_u32(&slot->state, EUNO_STATE_READY);
	}
	LWLockRelease(euno_registry_lock);

	if (ours)
		(void) euno_tree_finish_retired(slot);
	return ours;
}

void
euno_tree_abandon_build(EunoTreeSlot *slot)
{
	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	if (euno_tree_is_our_build(slot))
		retire_locked(slot, false);
	LWLockRelease(euno_registry_lock);
}

bool
euno_tree_hold(EunoTreeSlot *slot)
{
	EunoProcess *process = euno_process();
	bool		ready;

	euno_epoch_enter(process);
	ready = euno_tree_state(slot) == EUNO_STATE_READY;
	if (ready)
		pg_atomic_fetch_add_u32(&slot->holders, 1);
	euno_epoch_exit(process);
	return ready;
}

void
euno_tree_unhold(EunoTreeSlot *slot)
{
	pg_atomic_fetch_sub_u32(&slot->holders, 1);
}
