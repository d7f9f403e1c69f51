/*-------------------------------------------------------------------------
 *
 * euno_state.c
 *	  Who may serve, and who builds a tree that is absent.
 *
 * The builder is whoever needs the tree: it holds its locks on the table
 * already.  Builders exclude each other, and VACUUM, by a heavyweight lock, so
 * that the deadlock detector, lock_timeout and cancel work.  The table stays
 * readable and writable.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinval.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "am/euno_build.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

/* LOCKTAG_OBJECT sub-id of our build lock; "eu" */
#define BUILD_LOCK_SUBID 0x6575

bool
euno_can_serve(const char **why, const char **hint)
{
	if (!euno_preloaded)
	{
		*why = EUNO_NOT_LOADED ".";
		*hint = EUNO_NOT_LOADED_HINT;
		return false;
	}
	if (RecoveryInProgress())
	{
		*why = "Euno indexes are not available during recovery.";
		*hint = "They are rebuilt when the server is promoted.";
		return false;
	}
	if (euno_old_snapshot_threshold_active())
	{
		*why = "Euno indexes cannot be used with \"old_snapshot_threshold\".";
		*hint = "Set \"old_snapshot_threshold\" to -1 and restart the server.";
		return false;
	}
	return true;
}

void
euno_require_serving(Relation index)
{
	const char *why;
	const char *hint;

	if (!euno_can_serve(&why, &hint))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot use euno index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("%s", why),
				 errhint("%s", hint)));
}

static void
set_build_tag(LOCKTAG *tag, Oid index_oid)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, RelationRelationId, index_oid,
					   BUILD_LOCK_SUBID);
}

void
euno_build_lock(Oid index_oid, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_build_tag(&tag, index_oid);
	(void) LockAcquire(&tag, mode, false, false);
}

static bool
build_trylock(Oid index_oid)
{
	LOCKTAG		tag;

	set_build_tag(&tag, index_oid);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
euno_build_unlock(Oid index_oid, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_build_tag(&tag, index_oid);
	LockRelease(&tag, mode, false);
}

/*
 * Plans made without the index, here and elsewhere, are to be made anew, or
 * those made with it.  Sent at once: what has become of the tree stays, even
 * if this transaction is rolled back.
 */
void
euno_invalidate_plans(Oid database, Oid heap_oid)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = database;
	message.rc.relId = heap_oid;
	SendSharedInvalidMessages(&message, 1);
}

bool
euno_in_our_group(int pid)
{
	PGPROC	   *proc = BackendPidGetProc(pid);

	return proc != NULL && proc != MyProc &&
		MyProc->lockGroupLeader != NULL &&
		proc->lockGroupLeader == MyProc->lockGroupLeader;
}

/*
 * The slot of an index.  If the registry is full, trees whose relation is gone
 * make room.
 */
EunoTreeSlot *
euno_index_slot(EunoIndex *idx)
{
	EunoTreeSlot *slot = euno_tree_find_or_make(&idx->key, idx->oid);

	if (slot == NULL && euno_gc_database() > 0)
		slot = euno_tree_find_or_make(&idx->key, idx->oid);
	if (slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("cannot build euno index \"%s\": too many euno indexes",
						get_rel_name(idx->oid)),
				 errdetail("All places are taken; an index keeps its place until it is dropped."),
				 errhint("Increase \"euno.max_indexes\" (now %d) and restart the server.",
						 euno_max_indexes)));
	return slot;
}

/*
 * Are we a worker, of this build or of a query, that was started within it?
 * Its builder waits for us.  What our leader has begun to build since then it
 * will complete.
 */
static bool
started_within_build(const EunoTreeSlot *slot)
{
	const PGPROC *leader = MyProc->lockGroupLeader;
	uint64	   *held;

	if (!IsParallelWorker() || leader == NULL ||
		slot->builder_pid != leader->pid ||
		slot->builder_level > euno_within_operations)
		return false;
	held = &euno_shared_epochs()->slots[leader - ProcGlobal->allProcs].held;
	return euno_is_among_held(__atomic_load_n(held, __ATOMIC_RELAXED), slot);
}

void
euno_refuse_own_build(const EunoTreeSlot *slot, Relation index)
{
	if (euno_index_is_builder(slot) || started_within_build(slot))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot use euno index \"%s\" while this session is building it",
						RelationGetRelationName(index)),
				 errhint("Functions in index expressions and predicates must not query the table itself.")));
}

/*
 * A comparator's statement is within an operation on another tree, whose epoch
 * may keep the memory of what is being given up; that of a function which a
 * check of the tree calls is within its hold.  Then it must not wait for that.
 */
void
euno_refuse_own_wait(EunoTreeSlot *slot, Relation index)
{
	if (euno_index_has_look(slot) &&
		euno_tree_state(slot) == EUNO_STATE_RETIRING &&
		!euno_tree_finish_retired(slot))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot use euno index \"%s\" while it is being given up",
						RelationGetRelationName(index)),
				 errdetail("A function that is called by a euno index, or while one is checked, needs it."),
				 errhint("Retry the statement.")));
}

/*
 * Waits for the last look at a tree that is given up, unless that is our own,
 * as its builder's.  No lock is held: who has that look may want it.
 */
static void
wait_for_last_look(EunoTreeSlot *slot, Relation index)
{
	int			waited = 0;

	while (slot != NULL && euno_tree_state(slot) == EUNO_STATE_RETIRING &&
		   !euno_tree_finish_retired(slot))
	{
		euno_refuse_own_build(slot, index);
		euno_refuse_own_wait(slot, index);
		euno_wait_for_look(slot, &waited);
	}
}

/*
 * Gives up the build lock for a millisecond, for whoever has the last look at
 * a tree, or builds it in our lock group, may want it; and takes it again.
 * Without "wait" only if it is free, and for no longer than deadlock_timeout
 * in all: false if that is not so, and the lock is not held any more.
 */
static bool
let_others_go_on(EunoIndex *idx, EunoTreeSlot *slot, bool wait,
				 int *waited)
{
	euno_build_unlock(idx->oid, ExclusiveLock);
	if (wait && euno_tree_state(slot) == EUNO_STATE_RETIRING)
		euno_wait_for_look(slot, waited);
	else
	{
		/* No lock_timeout for a builder in our group: nobody has a lock. */
		CHECK_FOR_INTERRUPTS();
		euno_sleep("EunoBuild", 1000);
	}
	if (!wait)
		return ++*waited < DeadlockTimeout && build_trylock(idx->oid);
	euno_build_lock(idx->oid, ExclusiveLock);
	return true;
}

/*
 * Make a tree READY.  The build lock is held on entry and, if this returns
 * true, on return.  False, only without "wait": the tree may not be READY,
 * because somebody else has taken the lock meanwhile, or still looks at a tree
 * that was given up; the lock is not held any more.
 */
static bool
bring_up(EunoIndex *idx, Relation index, bool wait)
{
	int			waited = 0;

	for (;;)
	{
		EunoTreeSlot *slot = euno_index_slot(idx);
		uint64		generation = pg_atomic_read_u64(&slot->generation);
		EunoState	state = euno_tree_state(slot);

		if (state == EUNO_STATE_READY)
			return true;
		if (state == EUNO_STATE_ABSENT)
		{
			euno_rebuild_tree(idx, index, slot);
			continue;
		}
		euno_refuse_own_build(slot, index);
		euno_refuse_own_wait(slot, index);

		/* Any other builder has died, for we have the lock. */
		if (state != EUNO_STATE_RETIRING &&
			!euno_in_our_group(slot->builder_pid))
			(void) euno_tree_retire(slot, generation);

		if ((!euno_tree_finish_retired(slot) || state != EUNO_STATE_RETIRING) &&
			!let_others_go_on(idx, slot, wait, &waited))
			return false;
	}
}

void
euno_index_try_build(EunoIndex *idx, Relation index)
{
	EunoBuilder builder;

	CHECK_FOR_INTERRUPTS();		/* callers come back until it is */
	euno_require_serving(index);

	/*
	 * VACUUM may hold the build lock and wait for hazards.  What ours named
	 * has been used; who needs it again announces it again.
	 */
	euno_hazard_clear(idx->cx.process);
	wait_for_last_look(euno_tree_lookup(&idx->key), index);
	builder = euno_index_builder(index);
	if (builder == EUNO_BUILDER_WORKER)
	{
		euno_build_by_worker(idx, index);
		return;
	}
	if (builder == EUNO_BUILDER_PRIVATE)
		euno_private_note(&idx->key);
	euno_build_lock(idx->oid, ExclusiveLock);
	(void) bring_up(idx, index, true);
	euno_build_unlock(idx->oid, ExclusiveLock);
}

void
euno_index_build_if_idle(EunoIndex *idx, Relation index)
{
	euno_require_serving(index);
	if (!build_trylock(idx->oid))
		return;

	/* Who had the lock may have committed new definitions. */
	AcceptInvalidationMessages();
	if (bring_up(idx, index, false))
		euno_build_unlock(idx->oid, ExclusiveLock);
}

void
euno_index_pin_ready(EunoIndex *idx, Relation index, EunoContext **cx)
{
	while (euno_index_pin(idx, cx) != EUNO_STATE_READY)
	{
		euno_index_unpin(idx);
		euno_index_try_build(idx, index);
	}
}
