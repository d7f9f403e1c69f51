/*-------------------------------------------------------------------------
 *
 * euno_full.c
 *	  When memory runs out: which tree goes, and when it may come back.
 *
 * A tree that runs out of memory is as it was before: what a change needs is
 * allocated before anything is locked or written.  So nothing has to be undone
 * here.  Either the statement fails (euno.on_full = error), or a tree that can
 * be done without is retired and the statement tries again: one that no write
 * depends on, and that answers the fewest searches for the memory it takes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "am/euno_debug.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_extents.h"

typedef enum OnFull
{
	ON_FULL_ERROR,
	ON_FULL_EVICT
} OnFull;

static const struct config_enum_entry on_full_options[] = {
	{"error", ON_FULL_ERROR, false},
	{"evict", ON_FULL_EVICT, false},
	{NULL, 0, false}
};

static int	on_full = ON_FULL_ERROR;

/* How long somebody's last look at a retired tree is waited for. */
#define RETIRE_WAIT_MS	100

void
euno_full_define_settings(void)
{
	DefineCustomEnumVariable("euno.on_full",
							 "Selects what happens when euno indexes need more than \"euno.max_memory\".",
							 "\"error\" lets the statement fail; \"evict\" gives up an index that is not unique and little used.",
							 &on_full,
							 ON_FULL_ERROR,
							 on_full_options,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);
}

/*
 * Frees what was retired before, and waits for it a little.  True if something
 * was freed.
 */
static bool
finish_retired(void)
{
	bool		found = false;

	for (int ms = 0; ms < RETIRE_WAIT_MS; ms++)
	{
		bool		pending = false;

		for (int i = 0; i < euno_tree_count(); i++)
		{
			EunoTreeSlot *slot = euno_tree_by_number(i);

			if (euno_tree_state(slot) != EUNO_STATE_RETIRING)
				continue;
			if (euno_tree_finish_retired(slot))
				found = true;
			else
				pending = true;
		}
		if (found || !pending)
			break;
		euno_sleep("EunoReaders", 1000);
	}
	return found;
}

/*
 * Frees the trees of this database whose relation is gone and nobody has
 * freed, as after COMMIT PREPARED of a DROP.  True if there were any, or if
 * others were freed meanwhile.
 */
static bool
collect(void)
{
	EunoArena  *arena = euno_registry_arena();
	uint64		before = euno_arena_usage(arena).used;

	if (euno_gc_database() == 0)
		return euno_arena_usage(arena).used < before;
	(void) finish_retired();
	return true;
}

/*
 * Searches for each byte of a tree: all descents but those of inserts, and of
 * upkeep, which are not counted.
 */
static double
usefulness(EunoTreeSlot *slot)
{
	double		descents = (double) euno_tree_counted(slot, EUNO_COUNT_DESCENTS);
	double		inserts = (double) euno_tree_counted(slot, EUNO_COUNT_INSERTS);

	return Max(descents - inserts, 0) / (double) euno_tree_bytes(slot);
}

/*
 * The tree that will be missed least, NULL if there is none.  *generation is
 * its slot's as of now: should that change, somebody else has given it up.  If
 * "idx" itself is being built, it goes before all others, for it does not fit;
 * unless writes depend on it.
 */
static EunoTreeSlot *
choose_victim(EunoIndex *idx, uint64 *generation)
{
	EunoTreeSlot *own = euno_tree_lookup(&idx->key);
	EunoTreeSlot *victim = NULL;
	double		least = 0;

	if (own != NULL && !own->must_stay &&
		(euno_tree_state(own) == EUNO_STATE_BUILDING ||
		 euno_tree_state(own) == EUNO_STATE_MERGING))
	{
		*generation = pg_atomic_read_u64(&own->generation);
		return own;
	}

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);
		uint64		found = pg_atomic_read_u64(&slot->generation);
		double		use;

		/* Nobody would build the tree of a temporary index again. */
		if (euno_tree_state(slot) != EUNO_STATE_READY || slot->must_stay ||
			slot->key.temp_owner >= 0 || euno_tree_bytes(slot) == 0)
			continue;
		use = usefulness(slot);
		if (victim == NULL || use < least ||
			(use == least && euno_tree_bytes(slot) > euno_tree_bytes(victim)))
		{
			victim = slot;
			*generation = found;
			least = use;
		}
	}
	return victim;
}

static void
report_eviction(Oid database, Oid index_oid, uint64 bytes, bool refused)
{
	unsigned long long kb = bytes / 1024;
	const char *reason = refused ? "the operating system has no more memory" :
		"\"euno.max_memory\" is used up";

	if (database == MyDatabaseId)
	{
		/* An index whose creation is not committed yet has no name for us. */
		char	   *name = get_rel_name(index_oid);

		if (name == NULL)
			name = psprintf("%u", index_oid);
		ereport(WARNING,
				(errmsg("evicted euno index \"%s\": %s", name, reason),
				 errdetail("It took %llu kB.", kb),
				 errhint("It will be rebuilt when there is room and a query could use it.")));
	}
	else
		ereport(WARNING,
				(errmsg("evicted a euno index of another database: %s", reason),
				 errdetail("It took %llu kB.", kb),
				 errdetail_log("It took %llu kB; index %u of database %u.",
							   kb, index_oid, database),
				 errhint("It will be rebuilt when there is room and a query could use it.")));
}

bool
euno_full_make_room(EunoIndex *idx, bool evict)
{
	EunoTreeSlot *victim;
	uint64		generation;
	Oid			database;
	Oid			index_oid;
	Oid			heap_oid;
	uint64		bytes;
	bool		refused = euno_extent_refused();	/* before we try again */

	CHECK_FOR_INTERRUPTS();

	/* A comparator's statement: our own epoch would keep what is given up. */
	if (euno_process()->depth > 0)
		return false;

	/* Others may have given something up just now, or dropped it. */
	if (finish_retired() || collect())
		return true;
	if (!evict || on_full != ON_FULL_EVICT)
		return false;
	victim = choose_victim(idx, &generation);
	if (victim == NULL)
		return false;
	EUNO_STOP_POINT("full-chosen");

	database = victim->key.database;
	index_oid = victim->index_oid;
	heap_oid = victim->heap_oid;
	bytes = euno_tree_bytes(victim);
	if (!euno_tree_start_retiring(victim, generation))
		return true;			/* somebody else gave it up */
	euno_absent_note_full(victim, bytes);
	for (int i = 0; !euno_tree_finish_retired(victim) && i < RETIRE_WAIT_MS; i++)
		euno_sleep("EunoReaders", 1000);
	euno_invalidate_plans(database, heap_oid);
	report_eviction(database, index_oid, bytes, refused);
	return true;
}
