/*-------------------------------------------------------------------------
 *
 * euno_maintain.c
 *	  Upkeep of the trees that needs no database: directories of several
 *	  domains, and where leaves are.
 *
 * Which tree has a directory in which domain is decided by use, within a budget
 * (euno_policy_copies.c), once a round, by the launcher.  All else brings what
 * there is up to date.  In each step one tree is held.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/euno_debug.h"
#include "euno_compat.h"
#include "mem/euno_domains.h"
#include "mem/euno_registry.h"
#include "worker/euno_policy.h"
#include "worker/euno_worker.h"

/* Leaves of one tree that are moved in one round. */
#define SETTLE_MOST		256

/*
 * Memory is given back where so many bytes, and this part of all that the pool
 * has, have become free: to look for it takes the longer the larger the pool.
 */
#define TRIM_BYTES		(2 * EUNO_EXTENT_SIZE)
#define TRIM_PART		64

/* Descents a second, inserts counting more, that make a copy worthwhile. */
#define LEAST_USE		100

/*
 * What is remembered of a tree: its use, that of older rounds counting less.
 */
typedef struct TreeUse
{
	uint64		generation;
	double		use[EUNO_MAX_DOMAINS];	/* a second */
	uint64		unused[EUNO_MAX_DOMAINS];	/* the fewest free bytes there, since
											 * memory was last given back */
} TreeUse;

static int	replica_budget;		/* percent of euno.max_memory */

/* The launcher's, one for each slot of the registry. */
static TreeUse *uses;

void
euno_maintain_define_settings(void)
{
	DefineCustomIntVariable("euno.replica_budget",
							"Sets the percentage of \"euno.max_memory\" that copies of inner nodes for other domains may take.",
							"Indexes with the option replicate = on have theirs in any case.",
							&replica_budget,
							10, 0, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

/* All domains that are in use, as bits. */
static uint64
all_domains(void)
{
	return (UINT64CONST(1) << euno_domains_active()) - 1;
}

/*
 * Gives a tree, if it is READY, the directories that it shall have at once
 * when domains have changed: those that are asked for, and of the others those
 * that it has.  Waits, interruptibly, for merges under way, with nothing held.
 * EUNO_OK or EUNO_NO_MEMORY.
 */
static EunoStatus
fit_domains(EunoTreeSlot *slot, EunoContext *cx)
{
	for (;;)
	{
		uint64		domains = all_domains();
		EunoStatus	status;
		EunoTreeStats stats;

		if (!euno_tree_hold(slot))
			return EUNO_OK;
		slot->ops->stats(cx, &slot->tree, &stats);
		if (pg_atomic_read_u32(&slot->replicate) != EUNO_REPLICATE_ON)
			domains &= stats.domains;
		status = slot->ops->set_domains(cx, &slot->tree, domains);
		euno_tree_unhold(slot);
		if (status != EUNO_BUSY)
			return status;
		CHECK_FOR_INTERRUPTS();
		euno_sleep("EunoDomains", 1000);
	}
}

/*
 * After euno_set_domains, in any backend: no tree keeps directories of domains
 * that are not in use any more, and those that are to have all have them.  The
 * launcher will give others theirs.
 */
EunoStatus
euno_fit_domains(void)
{
	EunoContext cx = {.process = euno_process(), .env = &euno_environment};
	EunoStatus	status = EUNO_OK;

	for (int i = 0; euno_ndomains > 1 && i < euno_tree_count(); i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (fit_domains(euno_tree_by_number(i), &cx) != EUNO_OK)
			status = EUNO_NO_MEMORY;
	}
	return status;
}

/* Brings a held tree's use up to date.  "seconds": since the last time. */
static void
note_use(EunoTreeSlot *slot, TreeUse *use, double seconds)
{
	uint64		generation = pg_atomic_read_u64(&slot->generation);

	if (use->generation != generation)
	{
		memset(use, 0, sizeof(*use));
		use->generation = generation;
	}
	for (int d = 0; d < euno_ndomains; d++)
		use->use[d] = use->use[d] / 2 +
			(double) euno_tree_take_uses(slot, d) / seconds / 2;
}

/* The copies that a held tree has or could have; returns how many. */
static uint32
list_copies(EunoTreeSlot *slot, EunoContext *cx, int number,
			EunoPolicyCopy *copies)
{
	EunoReplicate replicate = pg_atomic_read_u32(&slot->replicate);
	uint32		n = 0;

	if (replicate == EUNO_REPLICATE_OFF)
		return 0;
	for (int d = 1; d < euno_domains_active(); d++)
	{
		EunoPolicyCopy *copy = &copies[n++];
		EunoTreeStats stats;

		cx->domain = d;
		slot->ops->stats(cx, &slot->tree, &stats);
		copy->tree = number;
		copy->domain = d;

		/* A domain's memory is taken by extents. */
		copy->bytes = TYPEALIGN(EUNO_EXTENT_SIZE, stats.inner_bytes + 1);
		copy->use = uses[number].use[d];
		copy->asked = replicate == EUNO_REPLICATE_ON;
		copy->made = (stats.domains >> d & 1) != 0;
	}
	cx->domain = 0;
	return n;
}

/*
 * How many bytes copies may take, which take this many now: within the budget,
 * and never more than half of what is free, for trees grow.
 */
static uint64
copy_budget(uint64 made)
{
	uint64		budget = (uint64) euno_max_memory_mb * 1024 * 1024 / 100 *
		replica_budget;
	EunoArenaUsage usage = euno_arena_usage(euno_registry_arena());

	return Min(budget, made + (usage.reserved > usage.used ?
							   (usage.reserved - usage.used) / 2 : 0));
}

/* Decides on all trees' directories.  wanted[i]: those of tree i, as bits. */
static void
choose_domains(EunoContext *cx, uint64 *wanted, int ntrees)
{
	static TimestampTz last = 0;
	TimestampTz now = GetCurrentTimestamp();
	double		seconds = last == 0 ? euno_naptime : (double) (now - last) / 1e6;
	EunoPolicyCopy *copies = palloc(sizeof(EunoPolicyCopy) * ntrees *
									EUNO_MAX_DOMAINS);
	uint64		made = 0;
	uint32		n = 0;

	last = now;
	if (uses == NULL)
		uses = MemoryContextAllocZero(TopMemoryContext,
									  sizeof(TreeUse) * euno_max_indexes);
	for (int i = 0; i < ntrees; i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		wanted[i] = 1;
		if (!euno_tree_hold(slot))
			continue;
		note_use(slot, &uses[i], Max(seconds, 0.1));
		n += list_copies(slot, cx, i, &copies[n]);
		euno_tree_unhold(slot);
	}
	for (uint32 i = 0; i < n; i++)
		made += copies[i].made ? copies[i].bytes : 0;
	euno_policy_copies(LEAST_USE, copy_budget(made), copies, n);
	for (uint32 i = 0; i < n; i++)
	{
		if (copies[i].keep)
			wanted[copies[i].tree] |= UINT64CONST(1) << copies[i].domain;
	}
	pfree(copies);
}

/*
 * Gives a tree the directories that it shall have, and takes those that it
 * shall not; with "drop" only the latter.  Where leaves are being merged, in
 * another round.
 */
static void
change_domains(int number, EunoContext *cx, uint64 wanted, bool drop)
{
	EunoTreeSlot *slot = euno_tree_by_number(number);
	EunoTreeStats stats;
	uint64		before;

	if (!euno_tree_hold(slot))
		return;
	slot->ops->stats(cx, &slot->tree, &stats);
	before = stats.domains;
	if (pg_atomic_read_u64(&slot->generation) == uses[number].generation)
	{
		(void) slot->ops->set_domains(cx, &slot->tree,
									  drop ? before & wanted : wanted);
		slot->ops->stats(cx, &slot->tree, &stats);
	}
	euno_tree_unhold(slot);
	if (stats.domains == before)
		return;
	euno_worker_round.actions[EUNO_WORKER_DIRECTORY] +=
		pg_popcount64(stats.domains ^ before);
	ereport(LOG,
			(errmsg("euno index with OID %u in database with OID %u has copies of its inner nodes in %d domains",
					slot->index_oid, slot->key.database,
					pg_popcount64(stats.domains) - 1)));
}

/* The bytes that a pool has; *unused of them are not in use. */
static uint64
pool_bytes(const EunoPool *pool, uint64 *unused)
{
	uint64		live = euno_pool_live_bytes(pool);
	uint64		owned = euno_pool_bytes(pool);

	*unused = owned > live ? owned - live : 0;
	return owned;
}

/*
 * A directory that has been given up leaves free nodes.  Where whole extents
 * are free, other trees may have them.  The tree is held.
 */
static void
trim_domains(EunoTreeSlot *slot, TreeUse *use, uint64 domains)
{
	if (pg_atomic_read_u64(&slot->generation) != use->generation)
		return;
	for (int d = 1; d < euno_ndomains; d++)
	{
		EunoPool   *pool = &slot->pools[d];
		uint64		unused;
		uint64		owned = pool_bytes(pool, &unused);
		bool		more = true;

		use->unused[d] = Min(use->unused[d], unused);
		if ((domains >> d & 1) != 0 ||
			unused - use->unused[d] < TRIM_BYTES + owned / TRIM_PART)
			continue;
		for (bool begin = true; more && !InterruptPending; begin = false)
			more = euno_pool_trim(pool, begin);
		if (!more)
			(void) pool_bytes(pool, &use->unused[d]);
	}
}

/*
 * Brings a tree's directories up to date: without comparators, which would
 * need a database.  Moves leaves to the domains that use them.  Gives memory
 * back of directories that were given up.
 */
static void
maintain_tree(int number, EunoContext *cx)
{
	EunoTreeSlot *slot = euno_tree_by_number(number);
	const EunoTreeOps *ops;
	EunoTreeStats stats;

	if (!euno_tree_hold(slot))
		return;
	ops = slot->ops;
	for (int d = 0; d < euno_ndomains; d++)
	{
		if (euno_debug_copies != EUNO_COPIES_LAGGING)
			ops->maintain(cx, &slot->tree, d);
	}
	if (ops->settle != NULL)
		euno_worker_round.actions[EUNO_WORKER_MOVE] +=
			ops->settle(cx, &slot->tree, SETTLE_MOST);
	ops->stats(cx, &slot->tree, &stats);
	trim_domains(slot, &uses[number], stats.domains);
	euno_tree_unhold(slot);
}

void
euno_maintain_trees(void)
{
	EunoContext cx = {.process = euno_process(), .env = &euno_environment};
	int			n = euno_tree_count();
	uint64	   *wanted;

	if (euno_ndomains == 1)
		return;
	wanted = palloc(sizeof(uint64) * n);
	choose_domains(&cx, wanted, n);

	/* First what is to go: the others want its room. */
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		change_domains(i, &cx, wanted[i], true);
	}
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		change_domains(i, &cx, wanted[i], false);
		maintain_tree(i, &cx);
	}
	pfree(wanted);
}
