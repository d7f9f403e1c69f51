/*-------------------------------------------------------------------------
 *
 * euno_registry.h
 *	  The trees that exist, and the state of each.
 *
 * The registry is a fixed array in PostgreSQL's main shared segment, so a
 * crash restart clears it; the arena is cleared with it.  A tree is named by
 * what names its relation file (never by index OID) and by a generation, which
 * changes whenever the content is thrown away.
 *
 *		ABSENT -> BUILDING -> MERGING -> READY
 *		  ^          |           |         |
 *		  +-- RETIRING <---------+---------+	(evicted, inconsistent, build failed)
 *		  |		 |
 *		  +------+--> FREE						(relation gone)
 *
 * ABSENT never means "no rows": nobody may answer from a tree that is not
 * READY.  RETIRING counts as ABSENT for everybody but the one who frees it.
 * While BUILDING the tree is its builder's alone, and writers use the side
 * tree; while MERGING they use the tree, to which the builder adds what is in
 * the side tree.
 *
 * Locks.  "state" and "generation" change only under euno_registry_lock, and
 * from ABSENT to BUILDING only by whoever holds the heavyweight build lock too
 * (am/euno_state.c).  The one exception: a tree that is read from a file goes
 * from ABSENT to READY without a lock, before there is any other process
 * (mem/euno_snapshot.c).
 *
 * A reader that has entered the epoch and then finds READY and the generation
 * it knows may use the tree until it leaves the epoch: memory is given back
 * only after the state has changed, every epoch pinned at that time has ended,
 * *and* there are no holders (euno_tree_hold).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_REGISTRY_H
#define EUNO_REGISTRY_H

#include "postgres.h"

#include "access/transam.h"
#include "port/atomics.h"

#include "core/euno_core.h"
#include "core/euno_epoch.h"
#include "mem/euno_pool.h"
#include "mem/euno_domains.h"

/* No padding: used as a hash key. */
typedef struct EunoTreeKey
{
	Oid			database;
	Oid			space;
	Oid			number;			/* the relation file's */
	int32		temp_owner;		/* proc number of a temporary index's session,
								 * -1 for others */
} EunoTreeKey;

typedef enum EunoState
{
	EUNO_STATE_FREE,
	EUNO_STATE_ABSENT,
	EUNO_STATE_BUILDING,
	EUNO_STATE_MERGING,
	EUNO_STATE_READY,
	EUNO_STATE_RETIRING
} EunoState;

/* Does each domain have inner nodes of its own?  The option "replicate". */
typedef enum EunoReplicate
{
	EUNO_REPLICATE_AUTO,		/* the launcher decides by use */
	EUNO_REPLICATE_ON,
	EUNO_REPLICATE_OFF
} EunoReplicate;

/*
 * Where writers put their entries while the tree is loaded: a small B+tree of
 * the same order.  Its builder allocates it, from the tree's own pool.
 */
typedef struct EunoSide
{
	EunoTree	tree;
	EunoPool	pools[EUNO_MAX_DOMAINS];
} EunoSide;

/* What is counted of a tree, from the contexts' counters. */
typedef enum EunoCount
{
	/* of most transactions: on one line */
	EUNO_COUNT_DESCENTS,		/* but those of upkeep */
	EUNO_COUNT_INSERTS,			/* among the descents */
	EUNO_COUNT_USES,			/* descents since the launcher has looked, if
								 * there are domains; inserts count more */
	EUNO_COUNT_REMOVALS,
	EUNO_COUNT_RESTARTS,
	EUNO_COUNT_RIGHT_MOVES,
	EUNO_COUNT_LOCK_WAITS,
	EUNO_COUNT_DELEGATED,		/* writes that another process performed */
	EUNO_COUNT_CONTENDED,		/* writes to contended leaves */
	EUNO_COUNT_ANNEX_SKIPS,
	EUNO_COUNT_CONFLICTS,		/* EUNO_CAUSES of them */
	EUNO_COUNTS = EUNO_COUNT_CONFLICTS + EUNO_CAUSES
} EunoCount;

/* A stripe of them (see mem/euno_domains.h). */
typedef struct EunoTally
{
	pg_atomic_uint64 counts[EUNO_COUNTS];
} __attribute__((aligned(128))) EunoTally;

/*
 * What every operation reads has a line of its own, and what every transaction
 * writes is in stripes.
 */
typedef struct EunoTreeSlot
{
	EunoTreeKey key;
	pg_atomic_uint64 generation;
	pg_atomic_uint32 state;		/* EunoState */
	uint32		number;			/* this slot's index, in hazard words */

	/*
	 * Odd while a bulk delete is under way.  Deferred removals of entries and
	 * index-only scans compare it with what they read before.
	 */
	pg_atomic_uint64 vacuum_epoch;

	const EunoTreeOps *ops;		/* same address in every process: forked; NULL
								 * until the first build */

	/*
	 * Not NULL while BUILDING and MERGING, and in READY or RETIRING until
	 * nobody can see it any more.  Whoever has pinned the epoch and then found
	 * BUILDING may use it until the unpin.
	 */
	EunoSide   *side;
	Oid			index_oid;		/* a hint for views and garbage collection */
	Oid			heap_oid;		/* its table, once a build has begun */

	/* From here on what is used now and then. */
	FullTransactionId creator;	/* the transaction that made the relation file
								 * known to us; invalid if it had no xid */
	TransactionId prepared;		/* a prepared one that may have made, dropped or
								 * replaced the file; a hint, or invalid */
	Oid			unprepared_oid; /* index_oid if that is rolled back, or invalid */
	uint64		side_epoch;		/* set when MERGING begins */
	uint64		retired_epoch;	/* while RETIRING */
	pg_atomic_uint32 holders;	/* operations that keep the tree in memory
								 * without an epoch: euno_index_hold's (VACUUM,
								 * checks, euno_hot_leaves, euno_numa_pages),
								 * euno_tree_hold's (the launcher's steps,
								 * euno_set_domains), and its builder's */
	int			builder_pid;	/* while BUILDING or MERGING; set under
								 * euno_registry_lock */
	int			builder_level;	/* in how many operations the builder is, one
								 * within the other, the build included; a
								 * parallel worker started at this depth, or
								 * deeper, is part of the build (euno_state.c);
								 * set with builder_pid */
	int			builders;		/* the builder and its workers; an estimate */
	bool		workers_failed; /* an error kept the last rebuild from starting
								 * them */
	pg_atomic_uint32 replicate; /* EunoReplicate, as who used it last has it */
	pg_atomic_uint32 worker_turns;	/* how often a worker for a session has built
									 * it, or left it to another builder */
	pg_atomic_uint32 worker_asker;	/* the process that has a worker build it, 0
									 * if there is none */
	uint64		modifiers;		/* euno_key_modifiers of its keys, once a build
								 * has begun */
	bool		drop_when_retired;
	bool		evicted;		/* by hand: not to be rebuilt unasked */
	bool		wanted;			/* absent, and a query could have used it */
	int64		tried_at;		/* TimestampTz: when the last attempt of a
								 * worker to build it failed, or began, or what
								 * was built was found to be inconsistent; 0:
								 * nothing speaks against another attempt */
	bool		build_failed;	/* the last build, whoever it was, ended by an
								 * error: only for users to know */
	bool		from_snapshot;	/* not built since the server started */
	FullTransactionId finished; /* no transaction from this one on had begun when
								 * its build ended; set before READY */
	bool		unchecked;		/* of a unique index that is not valid, and built
								 * anew: nobody has looked for equal keys */
	bool		must_stay;		/* writes depend on it: never evicted by others */

	uint64		compacted_at;	/* what had changed when VACUUM had last looked
								 * at all of the tree; VACUUM's own */

	/* Set when it did not fit in memory (am/euno_absent.c). */
	int			retry_delay;	/* seconds; doubled each time */
	int64		retry_at;		/* TimestampTz; 0: it has always fitted */
	uint64		needed_bytes;

	/*
	 * The generation whose leaves may be under predicate locks, and which of
	 * its leaves' moves these have followed.  Under a lock of
	 * euno_predicate.c.
	 */
	uint64		predicate_generation;
	uint64_t	predicate_position;

	/* Of the tree's heat, kept by the launcher: TimestampTz; microseconds. */
	pg_atomic_uint64 round_start;
	pg_atomic_uint64 round_before;	/* how long the round before took */

	int64		stats_since;	/* TimestampTz: tallies are zero, but for uses */
	EunoTally	tallies[EUNO_STRIPES];
	EunoPool	pools[EUNO_MAX_DOMAINS];
	EunoTree	tree;
} EunoTreeSlot;

StaticAssertDecl(offsetof(EunoTreeSlot, creator) == 64,
			   "what every operation reads is a line");
StaticAssertDecl(sizeof(EunoTally) == 128 && EUNO_COUNT_CONTENDED == 8,
			   "a stripe is two lines, and most transactions write the first");

/* Set by _PG_init in the postmaster; false when not preloaded. */
extern bool euno_preloaded;
extern int	euno_max_memory_mb;
extern int	euno_max_indexes;

/* How core allocates and waits; _PG_init adds how keys are abbreviated. */
extern EunoEnvironment euno_environment;

/*
 * Is this process in an operation on a tree that can be given up while it
 * waits for a node?  Set while a tree is pinned (euno_index_pin), for key
 * locks, while VACUUM walks, or gives memory back, while an index is checked,
 * and for looks at hot leaves.  An operation within another one, a comparator's,
 * begins without, and what was comes back with its end.
 */
extern bool euno_can_leave;

/*
 * What an allocation that found no room calls; true: it tries again.  NULL
 * but while this process adds an entry to a tree that it loads: it may raise,
 * and waits for others to leave what it gives up, so nothing may be locked and
 * no epoch entered.
 */
extern bool (*euno_make_room) (void);

/*
 * Shared memory that was asked for: zeros, on a line of 128 bytes.  In the
 * postmaster, when the segment has just been made: whoever is forked inherits
 * where it is.
 */
extern void *euno_shmem_alloc(const char *name, Size size);

/* One LWLock, asked for in _PG_init. */
#define EUNO_REGISTRY_TRANCHE "EunoRegistry"

extern void euno_registry_reserve(void);	/* _PG_init */
extern Size euno_registry_shmem_size(void);
extern void euno_registry_shmem_startup(void);	/* also after a crash */

/* How many processes there may be, numbered as EunoProcess.slot is. */
extern uint32 euno_epoch_slots(void);

/* This backend's process handle; sets its epoch slot up on first use. */
extern EunoProcess *euno_process(void);
extern EunoEpochs *euno_shared_epochs(void);
extern EunoArena *euno_registry_arena(void);

/* NULL when there is none.  Takes and releases euno_registry_lock. */
extern EunoTreeSlot *euno_tree_lookup(const EunoTreeKey *key);

/*
 * The slot of a key, or NULL, and the slot's generation at that time: should it
 * serve another key later, it will have another.  Locks as above.
 */
extern EunoTreeSlot *euno_tree_lookup_generation(const EunoTreeKey *key,
												 uint64 *generation);

/*
 * The slot of a key, made ABSENT if it is new.  NULL when the registry is
 * full.
 */
extern EunoTreeSlot *euno_tree_find_or_make(const EunoTreeKey *key, Oid index_oid);

extern int	euno_tree_count(void);
extern EunoTreeSlot *euno_tree_by_number(int number);	/* may be FREE */

/* How many processes are building trees now; an estimate. */
extern int	euno_tree_builders(void);

/* How many workers there are for sessions that wait for them. */
extern pg_atomic_uint32 *euno_tree_asked_workers(void);

/* What a slot holds, read under euno_registry_lock; false if it is FREE. */
typedef struct EunoTreeDescription
{
	EunoTreeKey key;
	uint64		generation;
	Oid			index_oid;
	FullTransactionId creator;
	EunoState	state;
	bool		wanted;
	Oid			heap_oid;
	int			builder_pid;	/* 0 if it is not being built */
} EunoTreeDescription;

extern bool euno_tree_describe(int number, EunoTreeDescription *result);

/*
 * A worker's attempt to build a tree has ended without one.  It was interrupted:
 * the launcher is to see to it once more.  It has failed: not for a while.
 */
extern void euno_tree_attempt_ended(Oid database, Oid index_oid, bool again);

/*
 * The launcher says that it is there; others that they have found trees that
 * it should have built at once, or need memory for one; and it asks whether
 * they did.
 */
extern void euno_tree_set_launcher(void);
extern void euno_tree_call_launcher(void);
extern bool euno_tree_launcher_called(void);

extern const char *euno_state_name(EunoState state);

/*
 * Takes the slot's tree of this generation out of use, if it still has that:
 * READY, BUILDING or MERGING becomes RETIRING, and ABSENT, or FREE if it was
 * dropped meanwhile, once nobody can see it any more.  False if it is still
 * RETIRING: some later call, of this or of euno_tree_finish_retired, will
 * complete it.  Harmless on an absent tree.  Waits for nobody.
 */
extern bool euno_tree_retire(EunoTreeSlot *slot, uint64 generation);

/* Only begins that.  False if the slot's tree is another by now. */
extern bool euno_tree_start_retiring(EunoTreeSlot *slot, uint64 generation);
extern bool euno_tree_finish_retired(EunoTreeSlot *slot);

/*
 * Completes what waits for readers that were slow: retired trees, and side
 * trees of builds that have ended.
 */
extern void euno_tree_sweep(void);

/*
 * Retires and drops the tree of this key, if there is one; never that of
 * another key that has got the slot meanwhile.
 */
extern void euno_tree_drop(const EunoTreeKey *key);

/*
 * Retires and drops a tree, if it is still the one that was described: since
 * then, the number of a file that is gone may have become another file's.
 */
extern void euno_tree_drop_described(const EunoTreeDescription *tree);

/*
 * ABSENT to BUILDING, with an empty tree of the given kind.  The caller holds
 * the build lock.  EUNO_NO_MEMORY leaves it ABSENT; EUNO_EXISTS means that it
 * was not ABSENT (members of a parallel query are not excluded by the lock).
 * On success the caller is one of the tree's holders, so that its memory stays
 * whatever others do to the tree.  "level" is builder_level.
 */
extern EunoStatus euno_tree_start_build(EunoTreeSlot *slot,
										EunoContext *cx,
										const EunoTreeOps *ops,
										const EunoTreeConfig *config,
										int level);

/* BUILDING to MERGING.  False if the tree is not our build any more. */
extern bool euno_tree_start_merge(EunoTreeSlot *slot);

/* MERGING to READY.  False if the tree is not our build any more. */
extern bool euno_tree_finish_build(EunoTreeSlot *slot);

/* Is the tree, in BUILDING or MERGING, this process's build? */
extern bool euno_tree_is_our_build(EunoTreeSlot *slot);

/* Retires the tree if it is still this process's build.  Waits for nothing. */
extern void euno_tree_abandon_build(EunoTreeSlot *slot);

/*
 * Keeps a READY tree's memory without an epoch, until unhold; false if it is
 * not READY.  For operations that cannot be left by an error.
 */
extern bool euno_tree_hold(EunoTreeSlot *slot);
extern void euno_tree_unhold(EunoTreeSlot *slot);

extern uint64 euno_tree_bytes(EunoTreeSlot *slot);

/* What has been counted of a tree, in all stripes. */
extern uint64 euno_tree_counted(EunoTreeSlot *slot, int which);

/* Its uses in a domain, which become zero. */
extern uint64 euno_tree_take_uses(EunoTreeSlot *slot, int domain);

/* Sets what has been counted of a tree to zero. */
extern void euno_tree_reset_counters(EunoTreeSlot *slot);

/*
 * How many bytes trees that are being built will take in each domain yet, as
 * far as their builders have said; false if none has.
 */
extern bool euno_registry_expected(uint64 *expected);

/* What was stored before the state was set is seen afterwards. */
static inline EunoState
euno_tree_state(EunoTreeSlot *slot)
{
	EunoState	state = (EunoState) pg_atomic_read_u32(&slot->state);

	pg_read_barrier();
	return state;
}

#endif							/* EUNO_REGISTRY_H */
