/*-------------------------------------------------------------------------
 *
 * euno_registry.c
 *	  The trees that exist.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/pg_shmem.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "euno_compat.h"
#include "mem/euno_memlimit.h"
#include "mem/euno_snapshot.h"
#include "mem/registry_private.h"

bool		euno_preloaded = false;
int			euno_max_memory_mb;
int			euno_max_indexes;

static EunoArena *arena;		/* inherited by fork */
static EunoEpochs *epochs;

EunoRegistry *euno_registry;
HTAB	   *euno_tree_hash;
LWLock	   *euno_registry_lock;

/*
 * Say what the machine will not give, before somebody misses it.
 */
static void
warn_of_limits(void)
{
	uint64		limit = euno_memlimit_init();
	uint64		machine = (uint64) sysconf(_SC_PHYS_PAGES) * (uint64) sysconf(_SC_PAGESIZE);
	uint64		reserved = (uint64) euno_max_memory_mb * 1024 * 1024;
	unsigned long long mb = Min(limit, machine) / (1024 * 1024);

	euno_arena_ask(arena, euno_memlimit_allows);
	if (reserved > Min(limit, machine))
		ereport(WARNING,
				(limit < machine ?
				 errmsg("\"euno.max_memory\" (%d MB) is more than the memory of the control group (%llu MB)",
						euno_max_memory_mb, mb) :
				 errmsg("\"euno.max_memory\" (%d MB) is more than the memory of the machine (%llu MB)",
						euno_max_memory_mb, mb),
				 errdetail("Euno indexes will run out of memory before they have used what they may.")));
}

/* What part of its memory euno may hold though no tree has it. */
#define IDLE_PART	16

/*
 * Reserve the address space.  In the postmaster, before anything is forked.
 */
void
euno_registry_reserve(void)
{
	arena = euno_arena_reserve(euno_snapshot_address(),
							   (size_t) euno_max_memory_mb * 1024 * 1024,
							   euno_ndomains, &euno_environment);
	if (arena == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not reserve %d MB of address space for euno indexes: %m",
						euno_max_memory_mb),
				 errhint("Reduce \"euno.max_memory\", or allow the server more address space (ulimit -v, vm.overcommit_memory).")));
	euno_domains_bind(arena);
	if (huge_pages == HUGE_PAGES_OFF)
		euno_arena_no_huge_pages(arena);
	euno_arena_keep_idle(arena, (size_t) euno_max_memory_mb * 1024 * 1024 /
						 IDLE_PART);
	warn_of_limits();
	euno_preloaded = true;
}

uint32
euno_epoch_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
}

StaticAssertDecl(PG_CACHE_LINE_SIZE % 128 == 0, "structs are aligned");

void *
euno_shmem_alloc(const char *name, Size size)
{
	bool		found;

	return memset(ShmemInitStruct(name, size, &found), 0, size);
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
	return add_size(registry_size(),
					add_size(euno_epochs_size(euno_epoch_slots()),
							 hash_estimate_size(euno_max_indexes,
												sizeof(EunoTreeHashEntry))));
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
	slot->stats_since = GetCurrentTimestamp();
}

static void
reset_statistics(EunoTreeSlot *slot,
				 void (*set) (volatile pg_atomic_uint64 *to, uint64 value))
{
	for (int i = 0; i < EUNO_STRIPES; i++)
		for (int which = 0; which < EUNO_COUNTS; which++)
			set(&slot->tallies[i].counts[which], 0);
	slot->stats_since = GetCurrentTimestamp();
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

	euno_registry_lock = &GetNamedLWLockTranche(EUNO_REGISTRY_TRANCHE)->lock;
	euno_registry = euno_shmem_alloc("euno registry", registry_size());
	euno_registry->next_generation = 1;
	pg_atomic_init_u32(&euno_registry->launcher_called, 0);
	pg_atomic_init_u32(&euno_registry->asked_workers, 0);
	for (int i = 0; i < euno_max_indexes; i++)
	{
		EunoTreeSlot *slot = &euno_registry->slots[i];

		slot->number = i;
		pg_atomic_init_u32(&slot->state, EUNO_STATE_FREE);
		pg_atomic_init_u64(&slot->generation, 0);
		pg_atomic_init_u64(&slot->vacuum_epoch, 0);
		pg_atomic_init_u32(&slot->holders, 0);
		pg_atomic_init_u32(&slot->replicate, EUNO_REPLICATE_AUTO);
		pg_atomic_init_u32(&slot->worker_turns, 0);
		pg_atomic_init_u32(&slot->worker_asker, 0);
		reset_statistics(slot, pg_atomic_init_u64);
	}

	epochs = euno_shmem_alloc("euno epochs",
							  euno_epochs_size(euno_epoch_slots()));
	euno_epochs_init(epochs, euno_epoch_slots());
	euno_arena_reset(arena);

	info.keysize = sizeof(EunoTreeKey);
	info.entrysize = sizeof(EunoTreeHashEntry);
	euno_tree_hash = euno_shmem_init_hash("euno trees", euno_max_indexes, &info,
										  HASH_ELEM | HASH_BLOBS);
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

EunoTreeSlot *
euno_tree_lookup(const EunoTreeKey *key)
{
	uint64		generation;

	return euno_tree_lookup_generation(key, &generation);
}

EunoTreeSlot *
euno_tree_lookup_generation(const EunoTreeKey *key, uint64 *generation)
{
	EunoTreeHashEntry *entry;
	EunoTreeSlot *slot = NULL;

	LWLockAcquire(euno_registry_lock, LW_SHARED);
	entry = hash_search(euno_tree_hash, key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		slot = &euno_registry->slots[entry->number];
		*generation = pg_atomic_read_u64(&slot->generation);
	}
	LWLockRelease(euno_registry_lock);

	return slot;
}

bool
euno_tree_describe(int number, EunoTreeDescription *result)
{
	EunoTreeSlot *slot = &euno_registry->slots[number];

	LWLockAcquire(euno_registry_lock, LW_SHARED);
	result->key = slot->key;
	result->generation = pg_atomic_read_u64(&slot->generation);
	result->index_oid = slot->index_oid;
	result->creator = slot->creator;
	result->state = euno_tree_state(slot);
	result->wanted = slot->wanted;
	result->heap_oid = slot->heap_oid;
	result->builder_pid = result->state == EUNO_STATE_BUILDING ||
		result->state == EUNO_STATE_MERGING ? slot->builder_pid : 0;
	LWLockRelease(euno_registry_lock);

	return result->state != EUNO_STATE_FREE;
}

void
euno_tree_attempt_ended(Oid database, Oid index_oid, bool again)
{
	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	for (int i = 0; i < euno_registry->used; i++)
	{
		EunoTreeSlot *slot = &euno_registry->slots[i];

		if (slot->key.database != database || slot->index_oid != index_oid)
			continue;
		if (again)
		{
			slot->wanted = true;
			slot->tried_at = 0;
			slot->build_failed = false;
		}
		else if (slot->tried_at != 0)
			slot->tried_at = GetCurrentTimestamp();
	}
	LWLockRelease(euno_registry_lock);
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	euno_registry->launcher = NULL;
	LWLockRelease(euno_registry_lock);
}

void
euno_tree_set_launcher(void)
{
	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	euno_registry->launcher = MyLatch;
	LWLockRelease(euno_registry_lock);
	on_shmem_exit(launcher_exit, 0);
}

void
euno_tree_call_launcher(void)
{
	pg_atomic_write_u32(&euno_registry->launcher_called, 1);
	LWLockAcquire(euno_registry_lock, LW_SHARED);
	if (euno_registry->launcher != NULL)
		SetLatch(euno_registry->launcher);
	LWLockRelease(euno_registry_lock);
}

bool
euno_tree_launcher_called(void)
{
	return pg_atomic_exchange_u32(&euno_registry->launcher_called, 0) != 0;
}

/*
 * Find a slot that is FREE.  euno_registry_lock is held exclusively.
 */
static EunoTreeSlot *
find_free_slot(void)
{
	for (int i = 0; i < euno_max_indexes; i++)
	{
		if (euno_tree_state(&euno_registry->slots[i]) == EUNO_STATE_FREE)
		{
			euno_registry->used = Max(euno_registry->used, i + 1);
			return &euno_registry->slots[i];
		}
	}
	return NULL;
}

EunoTreeSlot *
euno_tree_find_or_make(const EunoTreeKey *key, Oid index_oid)
{
	EunoTreeSlot *slot = euno_tree_lookup(key);
	EunoTreeHashEntry *entry;

	if (slot != NULL)
	{
		slot->index_oid = index_oid;
		return slot;
	}

	/* Dropped trees may wait for their last reader; that is long gone. */
	euno_tree_sweep();

	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	entry = hash_search(euno_tree_hash, key, HASH_FIND, NULL);
	if (entry == NULL)
	{
		slot = find_free_slot();
		if (slot == NULL)
		{
			LWLockRelease(euno_registry_lock);
			return NULL;
		}
		entry = hash_search(euno_tree_hash, key, HASH_ENTER, NULL);
		entry->number = slot->number;
		slot->key = *key;
		slot->ops = NULL;
		slot->index_oid = index_oid;
		slot->creator = GetTopFullTransactionIdIfAny();
		slot->drop_when_retired = false;
		slot->evicted = slot->wanted = slot->from_snapshot = false;
		slot->must_stay = false;
		slot->unchecked = false;
		slot->finished = InvalidFullTransactionId;
		slot->prepared = InvalidTransactionId;
		slot->unprepared_oid = InvalidOid;
		pg_atomic_write_u32(&slot->replicate, EUNO_REPLICATE_AUTO);
		slot->heap_oid = InvalidOid;
		slot->tried_at = 0;
		slot->build_failed = false;
		slot->workers_failed = false;
		slot->retry_at = 0;
		slot->retry_delay = 0;
		slot->compacted_at = 0;
		slot->needed_bytes = 0;
		pg_atomic_write_u64(&slot->generation,
							euno_registry->next_generation++);
		pg_atomic_write_u64(&slot->vacuum_epoch, 0);
		slot->predicate_generation = 0;
		reset_statistics(slot, pg_atomic_write_u64);
		for (int i = 0; i < EUNO_MAX_DOMAINS; i++)
			euno_pool_init(&slot->pools[i], arena, i);
		pg_write_barrier();
		pg_atomic_write_u32(&slot->state, EUNO_STATE_ABSENT);
	}
	else
		slot = &euno_registry->slots[entry->number];
	LWLockRelease(euno_registry_lock);

	return slot;
}

int
euno_tree_count(void)
{
	return euno_registry->used;
}

int
euno_tree_builders(void)
{
	int			n = 0;

	for (int i = 0; i < euno_registry->used; i++)
	{
		EunoState	state = euno_tree_state(&euno_registry->slots[i]);

		if (state == EUNO_STATE_BUILDING || state == EUNO_STATE_MERGING)
			n += euno_registry->slots[i].builders;
	}
	return n;
}

pg_atomic_uint32 *
euno_tree_asked_workers(void)
{
	return &euno_registry->asked_workers;
}

EunoTreeSlot *
euno_tree_by_number(int number)
{
	return &euno_registry->slots[number];
}

const char *
euno_state_name(EunoState state)
{
	static const char *const names[] = {
		[EUNO_STATE_FREE] = "free",
		[EUNO_STATE_ABSENT] = "absent",
		[EUNO_STATE_BUILDING] = "building",
		[EUNO_STATE_MERGING] = "merging",
		[EUNO_STATE_READY] = "ready",
		[EUNO_STATE_RETIRING] = "retiring"
	};

	return names[state];
}

uint64
euno_tree_bytes(EunoTreeSlot *slot)
{
	uint64		bytes = 0;

	for (int i = 0; i < euno_ndomains; i++)
		bytes += euno_pool_bytes(&slot->pools[i]);
	if (unlikely(slot->side != NULL))
	{
		LWLockAcquire(euno_registry_lock, LW_SHARED);
		for (int i = 0; slot->side != NULL && i < euno_ndomains; i++)
			bytes += euno_pool_bytes(&slot->side->pools[i]);
		LWLockRelease(euno_registry_lock);
	}
	return bytes;
}

bool
euno_registry_expected(uint64 *expected)
{
	bool		any = false;

	memset(expected, 0, sizeof(uint64) * EUNO_MAX_DOMAINS);
	for (int i = 0; i < euno_registry->used; i++)
	{
		EunoTreeSlot *slot = &euno_registry->slots[i];

		if (euno_tree_state(slot) != EUNO_STATE_BUILDING)
			continue;
		for (int d = 0; d < euno_ndomains; d++)
		{
			/* relaxed: hints, which may not fit together */
			uint64		will = __atomic_load_n(&slot->pools[d].expected,
											   __ATOMIC_RELAXED);
			uint64		has = euno_pool_bytes(&slot->pools[d]);

			any |= will > 0;
			if (will * EUNO_EXTENT_SIZE > has)
				expected[d] += will * EUNO_EXTENT_SIZE - has;
		}
	}
	return any;
}
