/*-------------------------------------------------------------------------
 *
 * euno_registry.c
 *	  The trees that exist, and the state of each.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/pg_shmem.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/wait_event.h"

#include "core/euno_hazard.h"
#include "euno_compat.h"
#include "mem/euno_cache.h"
#include "mem/euno_domains.h"
#include "mem/euno_memlimit.h"
#include "mem/euno_registry.h"
#include "mem/euno_snapshot.h"

bool		euno_preloaded = false;
int			euno_max_memory_mb;
int			euno_max_indexes;

typedef struct EunoRegistry
{
	uint64		next_generation;	/* under EunoRegistryLock */
	int			used;			/* slots below this have been used */
	Latch	   *launcher;		/* NULL: it is not running; under
								 * EunoRegistryLock */
	pg_atomic_uint32 launcher_called;
	EunoTreeSlot slots[FLEXIBLE_ARRAY_MEMBER];
} EunoRegistry;

typedef struct TreeHashEntry
{
	EunoTreeKey key;
	int			number;
} TreeHashEntry;

static EunoArena *arena;		/* inherited by fork */
static EunoRegistry *registry;
static HTAB *tree_hash;
static EunoEpochs *epochs;
static LWLock *registry_lock;

static EunoProcess my_process;
static bool my_process_ready = false;
static uint32 node_lock_event = 0;

bool		(*euno_make_room) (void) = NULL;

/*
 * Allocation for core: tree_arg is the slot's array of pools.
 */
static void *
env_alloc(void *tree_arg, int domain, size_t size)
{
	EunoPool   *pool = &((EunoPool *) tree_arg)[domain];
	void	   *node = euno_cache_alloc(pool, my_process.slot, size);

	while (node == NULL && euno_make_room != NULL && euno_make_room())
		node = euno_cache_alloc(pool, my_process.slot, size);
	return node;
}

static void
env_free(void *tree_arg, int domain, void *node, size_t size)
{
	euno_cache_free(&((EunoPool *) tree_arg)[domain], my_process.slot, node,
					size);
}

/*
 * Sleep while *word is "seen".  A shared futex: the word is in memory shared by
 * processes.  The holder never sleeps while it has the lock, so this is short
 * unless the holder has been descheduled or stopped; then we sleep as well,
 * without a limit after which somebody would panic.
 */
static void
env_wait(uint32_t *word, uint32_t seen)
{
	struct timespec timeout = {.tv_sec = 0, .tv_nsec = 50 * 1000 * 1000};

	pgstat_report_wait_start(euno_wait_event(&node_lock_event, "EunoNodeLock"));
	(void) syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
	pgstat_report_wait_end();
}

static void
env_wake(uint32_t *word)
{
	(void) syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool		euno_can_leave = false;

/* Has somebody asked this statement or this session to end? */
static bool
env_canceled(void)
{
	return euno_can_leave && (QueryCancelPending || ProcDiePending) &&
		InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0 &&
		CritSectionCount == 0;
}

const EunoEnvironment euno_environment = {
	.alloc = env_alloc,
	.free = env_free,
	.wait = env_wait,
	.wake = env_wake,
	.canceled = env_canceled
};

/*
 * Say what the machine will not give, before somebody misses it.
 */
static void
warn_of_limits(void)
{
	uint64		limit = euno_memlimit_init();
	uint64		reserved = (uint64) euno_max_memory_mb * 1024 * 1024;

	euno_arena_ask(arena, euno_memlimit_allows);
	if (reserved > limit)
		ereport(WARNING,
				(errmsg("\"euno.max_memory\" (%d MB) is more than the memory of the control group (" UINT64_FORMAT " MB)",
						euno_max_memory_mb, limit / (1024 * 1024)),
				 errdetail("Euno indexes will run out of memory before they have used what they may.")));
}

/*
 * Reserve the address space.  In the postmaster, before anything is forked.
 */
void
euno_registry_reserve(void)
{
	arena = euno_arena_reserve_at(euno_snapshot_address(),
								  (size_t) euno_max_memory_mb * 1024 * 1024,
								  euno_ndomains, &euno_environment);
	if (arena == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not reserve %d MB of address space for euno indexes: %m",
						euno_max_memory_mb),
				 errhint("Reduce \"euno.max_memory\", or allow memory overcommit.")));
	euno_domains_bind(arena);
	if (huge_pages == HUGE_PAGES_OFF)
		euno_arena_no_huge_pages(arena);
	warn_of_limits();
	euno_preloaded = true;
}

uint32
euno_epoch_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
}

static Size
registry_size(void)
{
	return add_size(offsetof(EunoRegistry, slots),
					mul_size(euno_max_indexes, sizeof(EunoTreeSlot)));
}

Size
euno_registry_shmem_size(void)
{
	/* ShmemInitStruct aligns to cache lines only; we need 128 bytes. */
	return add_size(add_size(registry_size(), 2 * 128),
					add_size(euno_epochs_size(euno_epoch_slots()),
							 hash_estimate_size(euno_max_indexes,
												sizeof(TreeHashEntry))));
}

uint64
euno_tree_counted(EunoTreeSlot *slot, int which)
{
	uint64		sum = 0;

	for (int i = 0; i < EUNO_STRIPES; i++)
		sum += pg_atomic_read_u64(&slot->tallies[i].counts[which]);
	return sum;
}

uint64
euno_tree_take_uses(EunoTreeSlot *slot, int domain)
{
	uint64		sum = 0;

	for (int i = euno_stripes_from(domain); i < euno_stripes_from(domain + 1); i++)
		sum += pg_atomic_exchange_u64(&slot->tallies[i].counts[EUNO_COUNT_USES], 0);
	return sum;
}

void
euno_tree_reset_counters(EunoTreeSlot *slot)
{
	for (int i = 0; i < EUNO_STRIPES; i++)
		for (int which = 0; which < EUNO_COUNTS; which++)
			if (which != EUNO_COUNT_USES)
				pg_atomic_write_u64(&slot->tallies[i].counts[which], 0);
}

static void
reset_statistics(EunoTreeSlot *slot,
				 void (*set) (volatile pg_atomic_uint64 *to, uint64 value))
{
	for (int i = 0; i < EUNO_STRIPES; i++)
		for (int which = 0; which < EUNO_COUNTS; which++)
			set(&slot->tallies[i].counts[which], 0);
	set(&slot->round_start, 0);
	set(&slot->round_before, 0);
}

/*
 * Set up, or after a crash forget, everything shared.  Our mapping keeps its
 * content across a crash restart while the heap may have lost transactions, so
 * nothing in it may be trusted.
 */
void
euno_registry_shmem_startup(void)
{
	HASHCTL		info;
	bool		found;
	char	   *base;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	registry_lock = &GetNamedLWLockTranche("EunoRegistry")->lock;
	base = ShmemInitStruct("euno registry", registry_size() + 128, &found);
	registry = (EunoRegistry *) TYPEALIGN(128, base);
	if (!found)
	{
		memset(registry, 0, registry_size());
		registry->next_generation = 1;
		pg_atomic_init_u32(&registry->launcher_called, 0);
		for (int i = 0; i < euno_max_indexes; i++)
		{
			EunoTreeSlot *slot = &registry->slots[i];

			slot->number = i;
			pg_atomic_init_u32(&slot->state, EUNO_STATE_FREE);
			pg_atomic_init_u64(&slot->generation, 0);
			pg_atomic_init_u64(&slot->vacuum_epoch, 0);
			pg_atomic_init_u32(&slot->holders, 0);
			pg_atomic_init_u32(&slot->replicate, EUNO_REPLICATE_AUTO);
			reset_statistics(slot, pg_atomic_init_u64);
		}
	}

	base = ShmemInitStruct("euno epochs",
						   euno_epochs_size(euno_epoch_slots()) + 128, &found);
	epochs = (EunoEpochs *) TYPEALIGN(128, base);
	if (!found)
	{
		euno_epochs_init(epochs, euno_epoch_slots());
		euno_arena_reset(arena);
	}

	info.keysize = sizeof(EunoTreeKey);
	info.entrysize = sizeof(TreeHashEntry);
	tree_hash = ShmemInitHash("euno trees", euno_max_indexes, euno_max_indexes,
							  &info, HASH_ELEM | HASH_BLOBS);

	LWLockRelease(AddinShmemInitLock);
}

EunoArena *
euno_registry_arena(void)
{
	return arena;
}

EunoEpochs *
euno_shared_epochs(void)
{
	return epochs;
}

/*
 * At process exit: nothing of ours may keep others waiting.  After the abort of
 * a transaction that is still open, whose callbacks give back what operations
 * hold in trees: until then the trees must stay.
 */
static void
process_exit(int code, Datum arg)
{
	EunoEpochSlot *slot = &epochs->slots[my_process.slot];
	EunoTreeDescription tree;

	euno_process_reset(&my_process, 0);
	__atomic_store_n(&slot->hazard, 0, __ATOMIC_RELEASE);
	slot->pid = 0;
	my_process_ready = false;

	for (int i = 0; i < registry->used; i++)
	{
		if (euno_tree_describe(i, &tree) &&
			tree.key.temp_owner == euno_my_proc_number())
			euno_tree_drop(&tree.key);
	}
}

EunoProcess *
euno_process(void)
{
	if (!my_process_ready)
	{
		/* Naming an event may raise: not when a node is locked. */
		(void) euno_wait_event(&node_lock_event, "EunoNodeLock");
		euno_snapshot_recheck();

		my_process.epochs = epochs;
		my_process.slot = euno_my_proc_number();
		my_process.depth = 0;
		euno_process_reset(&my_process, 0);
		epochs->slots[my_process.slot].hazard = 0;
		epochs->slots[my_process.slot].pid = MyProcPid;
		euno_hazard_join(epochs);
		on_shmem_exit(process_exit, 0);
		my_process_ready = true;
	}
	return &my_process;
}

EunoTreeSlot *
euno_tree_lookup(const EunoTreeKey *key)
{
	uint64		generation;

	return euno_tree_lookup_generation(key, &generation);
}

EunoTreeSlot *
euno_tree_lookup_generation(const EunoTreeKey *key, uint64 *generation)
{
	TreeHashEntry *entry;
	EunoTreeSlot *slot = NULL;

	LWLockAcquire(registry_lock, LW_SHARED);
	entry = hash_search(tree_hash, key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		slot = &registry->slots[entry->number];
		*generation = pg_atomic_read_u64(&slot->generation);
	}
	LWLockRelease(registry_lock);

	return slot;
}

bool
euno_tree_describe(int number, EunoTreeDescription *result)
{
	EunoTreeSlot *slot = &registry->slots[number];

	LWLockAcquire(registry_lock, LW_SHARED);
	result->key = slot->key;
	result->generation = pg_atomic_read_u64(&slot->generation);
	result->index_oid = slot->index_oid;
	result->creator = slot->creator;
	result->state = euno_tree_state(slot);
	result->wanted = slot->wanted;
	result->heap_oid = slot->heap_oid;
	result->builder_pid = result->state == EUNO_STATE_BUILDING ||
		result->state == EUNO_STATE_MERGING ? slot->builder_pid : 0;
	LWLockRelease(registry_lock);

	return result->state != EUNO_STATE_FREE;
}

void
euno_tree_want_again(Oid database, Oid index_oid)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	for (int i = 0; i < registry->used; i++)
	{
		EunoTreeSlot *slot = &registry->slots[i];

		if (slot->key.database == database && slot->index_oid == index_oid)
			slot->wanted = true;
	}
	LWLockRelease(registry_lock);
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	registry->launcher = NULL;
	LWLockRelease(registry_lock);
}

void
euno_tree_set_launcher(void)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	registry->launcher = MyLatch;
	LWLockRelease(registry_lock);
	on_shmem_exit(launcher_exit, 0);
}

void
euno_tree_call_launcher(void)
{
	pg_atomic_write_u32(&registry->launcher_called, 1);
	LWLockAcquire(registry_lock, LW_SHARED);
	if (registry->launcher != NULL)
		SetLatch(registry->launcher);
	LWLockRelease(registry_lock);
}

bool
euno_tree_launcher_called(void)
{
	return pg_atomic_exchange_u32(&registry->launcher_called, 0) != 0;
}

/*
 * Find a slot that is FREE.  EunoRegistryLock is held exclusively.
 */
static EunoTreeSlot *
find_free_slot(void)
{
	for (int i = 0; i < euno_max_indexes; i++)
	{
		if (euno_tree_state(&registry->slots[i]) == EUNO_STATE_FREE)
		{
			registry->used = Max(registry->used, i + 1);
			return &registry->slots[i];
		}
	}
	return NULL;
}

EunoTreeSlot *
euno_tree_get(const EunoTreeKey *key, Oid index_oid)
{
	EunoTreeSlot *slot = euno_tree_lookup(key);
	TreeHashEntry *entry;
	bool		found;

	if (slot != NULL)
	{
		slot->index_oid = index_oid;
		return slot;
	}

	/* Dropped trees may wait for their last reader; that is long gone. */
	euno_tree_sweep();

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	entry = hash_search(tree_hash, key, HASH_FIND, NULL);
	if (entry == NULL)
	{
		slot = find_free_slot();
		if (slot == NULL)
		{
			LWLockRelease(registry_lock);
			return NULL;
		}
		entry = hash_search(tree_hash, key, HASH_ENTER, &found);
		entry->number = slot->number;
		slot->key = *key;
		slot->index_oid = index_oid;
		slot->creator = GetTopFullTransactionIdIfAny();
		slot->drop_when_retired = false;
		slot->evicted = slot->wanted = slot->from_snapshot = false;
		slot->must_stay = false;
		pg_atomic_write_u32(&slot->replicate, EUNO_REPLICATE_AUTO);
		slot->heap_oid = InvalidOid;
		slot->retry_at = 0;
		slot->retry_delay = 0;
		slot->needed_bytes = 0;
		pg_atomic_write_u64(&slot->generation, registry->next_generation++);
		pg_atomic_write_u64(&slot->vacuum_epoch, 0);
		slot->predicate_generation = 0;
		reset_statistics(slot, pg_atomic_write_u64);
		for (int i = 0; i < EUNO_MAX_DOMAINS; i++)
			euno_pool_init(&slot->pools[i], arena, i);
		pg_write_barrier();
		pg_atomic_write_u32(&slot->state, EUNO_STATE_ABSENT);
	}
	else
		slot = &registry->slots[entry->number];
	LWLockRelease(registry_lock);

	return slot;
}

int
euno_tree_count(void)
{
	return registry->used;
}

int
euno_tree_builders(void)
{
	int			n = 0;

	for (int i = 0; i < registry->used; i++)
	{
		EunoState	state = euno_tree_state(&registry->slots[i]);

		if (state == EUNO_STATE_BUILDING || state == EUNO_STATE_MERGING)
			n += registry->slots[i].builders;
	}
	return n;
}

EunoTreeSlot *
euno_tree_by_number(int number)
{
	return &registry->slots[number];
}

const char *
euno_state_name(EunoState state)
{
	switch (state)
	{
		case EUNO_STATE_FREE:
			return "free";
		case EUNO_STATE_ABSENT:
			return "absent";
		case EUNO_STATE_BUILDING:
			return "building";
		case EUNO_STATE_MERGING:
			return "merging";
		case EUNO_STATE_READY:
			return "ready";
		case EUNO_STATE_RETIRING:
			return "retiring";
	}
	return "unknown";
}

/*
 * Memory that nobody can see any more, on its way back to the operating system.
 * Unmapping gigabytes takes long: pools are emptied into one of these under
 * EunoRegistryLock, and their extents are given back after it.
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
		euno_pool_init(&pools[i], arena, pools[i].domain);
	}
}

/* EunoRegistryLock is held exclusively; nobody can see the side tree. */
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

/* EunoRegistryLock is not held. */
static void
release_garbage(Garbage *garbage)
{
	for (int i = 0; i < garbage->npools; i++)
		euno_pool_release(&garbage->pools[i]);
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

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	state = euno_tree_state(slot);
	if (state == EUNO_STATE_READY && slot->side != NULL &&
		euno_epoch_passed(epochs, slot->side_epoch))
		collect_side(slot, &garbage);
	retired = state == EUNO_STATE_RETIRING &&
		euno_epoch_passed(epochs, slot->retired_epoch) &&
		pg_atomic_read_u32(&slot->holders) == 0;
	if (retired)
	{
		collect_side(slot, &garbage);
		collect_pools(slot->pools, &garbage);
		if (slot->drop_when_retired)
		{
			hash_search(tree_hash, &slot->key, HASH_REMOVE, NULL);
			pg_atomic_write_u32(&slot->state, EUNO_STATE_FREE);
		}
		else
			pg_atomic_write_u32(&slot->state, EUNO_STATE_ABSENT);
	}
	LWLockRelease(registry_lock);

	release_garbage(&garbage);
	return retired || state != EUNO_STATE_RETIRING;
}

void
euno_tree_sweep(void)
{
	for (int i = 0; i < registry->used; i++)
	{
		EunoTreeSlot *slot = &registry->slots[i];

		if (euno_tree_state(slot) == EUNO_STATE_RETIRING || slot->side != NULL)
			(void) euno_tree_finish_retired(slot);
	}
}

/* EunoRegistryLock is held exclusively. */
static void
retire_locked(EunoTreeSlot *slot, bool drop)
{
	switch (euno_tree_state(slot))
	{
		case EUNO_STATE_FREE:
			break;
		case EUNO_STATE_ABSENT:
			if (drop)
			{
				pg_atomic_write_u64(&slot->generation,
									registry->next_generation++);
				hash_search(tree_hash, &slot->key, HASH_REMOVE, NULL);
				pg_atomic_write_u32(&slot->state, EUNO_STATE_FREE);
			}
			break;
		case EUNO_STATE_RETIRING:
			slot->drop_when_retired |= drop;
			break;
		case EUNO_STATE_BUILDING:
		case EUNO_STATE_MERGING:
		case EUNO_STATE_READY:
			slot->drop_when_retired = drop;
			pg_atomic_write_u64(&slot->generation, registry->next_generation++);
			pg_atomic_write_u32(&slot->state, EUNO_STATE_RETIRING);

			/*
			 * Who enters the epoch after this barrier sees RETIRING; who
			 * entered before is waited for.
			 */
			pg_memory_barrier();
			slot->retired_epoch = euno_epoch_retire(epochs);
			break;
	}
}

bool
euno_tree_retire(EunoTreeSlot *slot, bool drop, int wait_ms)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	retire_locked(slot, drop);
	LWLockRelease(registry_lock);

	for (int i = 0;; i++)
	{
		if (euno_tree_finish_retired(slot))
			return true;
		if (i >= wait_ms)
			return false;
		pg_usleep(1000);
	}
}

/* Drops the tree of a key; 0 for any generation of it. */
static void
drop_generation(const EunoTreeKey *key, uint64 generation)
{
	TreeHashEntry *entry;
	EunoTreeSlot *slot = NULL;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	entry = hash_search(tree_hash, key, HASH_FIND, NULL);
	if (entry != NULL)
		slot = &registry->slots[entry->number];
	if (slot != NULL && generation != 0 &&
		generation != pg_atomic_read_u64(&slot->generation))
		slot = NULL;
	if (slot != NULL)
		retire_locked(slot, true);
	LWLockRelease(registry_lock);

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
 * An empty tree and its side tree.  EunoRegistryLock is held exclusively.  On
 * failure the pools are as they were.
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
		euno_pool_init(&side->pools[i], arena, slot->pools[i].domain);
	side->tree.alloc_arg = side->pools;
	slot->side = side;

	/* It is not worth directories. */
	side_config.domains = 1;
	return euno_bptree_ops.create(cx, &side->tree, &side_config);
}

EunoStatus
euno_tree_start_build(EunoTreeSlot *slot, EunoContext *cx,
					  const EunoTreeOps *ops, const EunoTreeConfig *config)
{
	Garbage		garbage = {.npools = 0};
	EunoStatus	status;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	if (euno_tree_state(slot) != EUNO_STATE_ABSENT)
	{
		LWLockRelease(registry_lock);
		return EUNO_EXISTS;
	}
	status = create_trees(slot, cx, ops, config);
	if (status != EUNO_OK)
	{
		collect_side(slot, &garbage);
		collect_pools(slot->pools, &garbage);
		LWLockRelease(registry_lock);
		release_garbage(&garbage);
		return status;
	}

	slot->builder_pid = MyProcPid;
	slot->builders = 1;
	slot->evicted = slot->wanted = slot->from_snapshot = false;
	pg_atomic_fetch_add_u32(&slot->holders, 1);
	pg_atomic_write_u64(&slot->generation, registry->next_generation++);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->state, EUNO_STATE_BUILDING);
	LWLockRelease(registry_lock);

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

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
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
		slot->side_epoch = euno_epoch_retire(epochs);
	}
	LWLockRelease(registry_lock);
	return ours;
}

bool
euno_tree_finish_build(EunoTreeSlot *slot)
{
	bool		ours;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	ours = euno_tree_is_our_build(slot);
	if (ours)
	{
		pg_write_barrier();
		pg_atomic_write_u32(&slot->state, EUNO_STATE_READY);
	}
	LWLockRelease(registry_lock);

	if (ours)
		(void) euno_tree_finish_retired(slot);
	return ours;
}

void
euno_tree_abandon_build(EunoTreeSlot *slot)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	if (euno_tree_is_our_build(slot))
		retire_locked(slot, false);
	LWLockRelease(registry_lock);
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

uint64
euno_tree_bytes(EunoTreeSlot *slot)
{
	uint64		bytes = 0;

	for (int i = 0; i < euno_ndomains; i++)
		bytes += slot->pools[i].extents * EUNO_EXTENT_SIZE;
	if (unlikely(slot->side != NULL))
	{
		LWLockAcquire(registry_lock, LW_SHARED);
		for (int i = 0; slot->side != NULL && i < euno_ndomains; i++)
			bytes += slot->side->pools[i].extents * EUNO_EXTENT_SIZE;
		LWLockRelease(registry_lock);
	}
	return bytes;
}

void
euno_registry_memory(uint64 *reserved, uint64 *used, uint64 *peak)
{
	euno_arena_usage(arena, reserved, used, peak);
}
