/*-------------------------------------------------------------------------
 *
 * euno_operation.c
 *	  How a backend gets at a tree, and what the end of a transaction undoes.
 *
 * A pinned operation in BYTES order runs no code but core's and cannot raise.
 * In COMPARE order a comparator may raise, run queries, start and abort
 * subtransactions; and callbacks of a walk may raise.  Such operations are
 * kept on a small stack, from which the abort of the (sub)transaction they
 * belong to unwinds them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_domains.h"

typedef struct Operation
{
	EunoIndex  *idx;
	EunoContext *cx;
	uint32		depth;			/* process depth before it */
	int			nest_level;		/* transaction nesting it runs at */
	bool		could_leave;	/* euno_can_leave before it */
	EunoTreeSlot *held;			/* by euno_index_hold, or being built */
	bool		deleting;		/* our bulk delete made held's epoch odd */
	uint64		descents;		/* counted before that */
	bool		building;		/* held is our build */
	bool		out_of_memory;	/* and fails for want of memory */
	EunoContext nested;			/* if idx->cx was in use already */
} Operation;

#define MAX_OPERATIONS 16

static Operation operations[MAX_OPERATIONS];
static int	noperations = 0;
static bool could_leave = false;	/* before a pin that is no Operation */
static EunoIndex *used_indexes = NULL;	/* pinned in this transaction */

uint64		euno_hazard_changes = 0;
int			euno_within_operations = 0;

/*
 * An insert is a descent, and counts as so many more when it is decided which
 * domains get inner nodes of their own: it may have to post a separator, and
 * it is writers who gain most by a directory of their own (src/README.md,
 * "Domains").
 */
#define INSERT_USES	3

/* Most counters of most transactions are zero. */
static inline void
add_count(EunoTally *tally, int which, uint64 n)
{
	if (n > 0)
		pg_atomic_fetch_add_u64(&tally->counts[which], n);
}

/* Adds what this backend has counted of an index to the shared statistics. */
static void
flush_index(EunoIndex *idx)
{
	EunoCounters *counters = &idx->cx.counters;
	EunoTreeSlot *slot = idx->slot;
	EunoTally  *tally;
	int			stripe;

	if ((counters->descents == 0 && counters->removals == 0 &&
		 counters->delegated == 0) || slot == NULL ||
		pg_atomic_read_u64(&slot->generation) != idx->generation)
		return;

	stripe = euno_stripe(idx->cx.domain, idx->cx.process->slot);
	tally = &slot->tallies[stripe];
	add_count(tally, EUNO_COUNT_DESCENTS, counters->descents - idx->upkeep);
	add_count(tally, EUNO_COUNT_INSERTS, idx->inserts);
	if (euno_ndomains > 1)
		add_count(tally, EUNO_COUNT_USES,
				  counters->descents + INSERT_USES * idx->inserts);
	add_count(tally, EUNO_COUNT_REMOVALS, counters->removals);
	add_count(tally, EUNO_COUNT_RESTARTS,
			  counters->restarts + counters->leaf_retries);
	add_count(tally, EUNO_COUNT_RIGHT_MOVES, counters->right_moves);
	add_count(tally, EUNO_COUNT_LOCK_WAITS, counters->lock_waits);
	add_count(tally, EUNO_COUNT_DELEGATED, counters->delegated);
	add_count(tally, EUNO_COUNT_CONTENDED, counters->contended);
	add_count(tally, EUNO_COUNT_ANNEX_SKIPS, counters->annex_skips);
	for (int i = 0; i < EUNO_CAUSES; i++)
		add_count(tally, EUNO_COUNT_CONFLICTS + i, counters->conflicts[i]);
	euno_domains_count(stripe, counters);
	idx->inserts = idx->upkeep = 0;
	idx->cx.phase += (uint32_t) counters->descents;
	memset(counters, 0, sizeof(*counters));
}

/* Notes that the index is used in this transaction. */
static inline void
note_used(EunoIndex *idx)
{
	if (likely(idx->used))
		return;
	idx->used = true;
	idx->next_used = used_indexes;
	used_indexes = idx;
}

/*
 * This transaction has changed definitions, and may have made keys by them.  If
 * somebody else has built the tree meanwhile, he did not know them, and has
 * found our rows.
 */
static void
give_up_outdated(const EunoIndex *idx)
{
	EunoTreeSlot *slot = euno_tree_lookup(&idx->key);
	EunoState	state;

	if (slot == NULL || slot->builder_pid == MyProcPid)
		return;
	state = euno_tree_state(slot);
	if (state != EUNO_STATE_BUILDING && state != EUNO_STATE_MERGING &&
		!FullTransactionIdPrecedes(GetTopFullTransactionIdIfAny(),
								   slot->finished))
		return;
	(void) euno_tree_retire(slot, pg_atomic_read_u64(&slot->generation));
	euno_invalidate_plans(idx->key.database, slot->heap_oid);
}

/*
 * The transaction is about to commit, or to be prepared, and has changed
 * definitions.  As soon as its rows are seen by others they must not be looked
 * for in a tree that was built by the old ones: so such trees go before that,
 * and until the server releases our locks, which is after the rows are visible
 * (if it is prepared: when that has been ended), nobody builds another one.
 */
static void
keep_old_builders_out(void)
{
	if (used_indexes != NULL)
		euno_hazard_clear(euno_process());	/* VACUUM has that lock, too */
	for (EunoIndex *idx = used_indexes; idx != NULL; idx = idx->next_used)
	{
		if (!idx->varies || idx->key.temp_owner >= 0)
			continue;
		euno_build_lock(idx->oid, ShareLock);
		give_up_outdated(idx);
	}
}

/* At the end of a transaction. */
static void
flush_used_indexes(void)
{
	while (used_indexes != NULL)
	{
		EunoIndex  *idx = used_indexes;

		used_indexes = idx->next_used;
		idx->used = false;
		flush_index(idx);
	}
}

/*
 * Says in how many operations we are, one within the other (a comparator's
 * statement is within one), in two places: in a setting, which parallel workers
 * inherit when they are started, so that they know the depth of then; and in
 * our slot of the epochs, for the depth of now.  If the two are equal, we are
 * in the very operation that has started the worker, and may be waiting for it
 * (euno_deadlock.c).  The variable is written past guc.c, which is no place for
 * something that changes at each operation.
 */
static inline void
note_within(const EunoProcess *process)
{
	if (IsParallelWorker())
		return;
	euno_within_operations = noperations;
	__atomic_store_n(&process->epochs->slots[process->slot].within,
					 (uint64) noperations, __ATOMIC_RELAXED);
}

/* Says to others which trees we hold, the first four (euno_deadlock.c). */
static void
note_held(void)
{
	EunoProcess *process = euno_process();
	uint64		held = 0;
	int			shift = 0;

	for (int i = 0; i < noperations && shift < 64; i++)
	{
		if (operations[i].held == NULL)
			continue;
		held |= (uint64) (operations[i].held->number + 1) << shift;
		shift += 16;
	}
	__atomic_store_n(&process->epochs->slots[process->slot].held, held,
					 __ATOMIC_RELAXED);
}

/* A bulk delete has ended, or been left by an error. */
static void
end_delete(Operation *op)
{
	euno_count_upkeep(op->idx, op->cx, op->descents);
	op->deleting = false;
	pg_atomic_fetch_add_u64(&op->held->vacuum_epoch, 1);
}

/*
 * An error has ended a build.  If others have given it up meanwhile, for its
 * memory, that has been noted by them.
 */
static void
note_failure(const Operation *op)
{
	if (!euno_tree_is_our_build(op->held))
		return;
	if (op->out_of_memory)
		euno_absent_note_full(op->held, euno_tree_bytes(op->held));
	else
		op->held->build_failed = true;
}

/*
 * Undo operations that were left by an error at this nesting level or deeper.
 */
static void
unwind(int nest_level)
{
	while (noperations > 0 && operations[noperations - 1].nest_level >= nest_level)
	{
		Operation  *op = &operations[--noperations];

		euno_can_leave = op->could_leave;
		note_within(euno_process());
		euno_context_reset(op->cx);
		if (op->building)
		{
			euno_make_room = NULL;
			note_failure(op);
			euno_tree_abandon_build(op->held);
		}
		if (op->held)
		{
			if (op->deleting)
				end_delete(op);
			pg_atomic_fetch_sub_u32(&op->held->holders, 1);
			note_held();
		}
		euno_process_reset(euno_process(), op->depth);
		if (op->held && euno_tree_state(op->held) == EUNO_STATE_RETIRING)
			(void) euno_tree_finish_retired(op->held);
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	EunoProcess *process;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (euno_gc_has_definitions())
				keep_old_builders_out();
			return;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
		default:
			return;
	}

	EUNO_STOP_POINT("end-transaction");
	euno_key_lock_release();
	euno_checking_forget(0);
	euno_gc_forget_definitions();
	if (used_indexes != NULL)
	{
		process = euno_process();
		unwind(0);
		euno_can_leave = false;
		euno_process_reset(process, 0);
		euno_hazard_clear(process);
		flush_used_indexes();
	}

	euno_index_free_outdated();
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	euno_key_lock_release();
	euno_checking_forget(GetCurrentTransactionNestLevel());
	if (used_indexes == NULL)
		return;
	unwind(GetCurrentTransactionNestLevel());
	if (noperations == 0)
		euno_can_leave = false;

	/*
	 * A scan that was left by the error would make VACUUM wait for its hazard
	 * until the end of the transaction.  Scans further out have used theirs.
	 */
	euno_hazard_clear(euno_process());
}

/* A file may not set it, nor the command line; workers are given it as it is. */
static bool
check_within(int *value, void **extra, GucSource source)
{
	if (source <= PGC_S_DYNAMIC_DEFAULT)
		return true;
	GUC_check_errmsg("parameter \"euno.within_operations\" cannot be changed");
	return false;
}

/*
 * Parallel workers are given those settings only that have another source than
 * the default; so the depth is given another one here, with the same value, 0.
 * Nobody else may set it.
 */
void
euno_operation_define(void)
{
	DefineCustomIntVariable("euno.within_operations",
							"Tells a parallel query's workers within how many operations of their leader they were started.",
							NULL,
							&euno_within_operations,
							0, 0, MAX_OPERATIONS,
							PGC_SIGHUP,
							GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | GUC_NO_RESET_ALL | GUC_DISALLOW_IN_FILE,
							check_within, NULL, NULL);
	SetConfigOption("euno.within_operations", "0", PGC_POSTMASTER,
					PGC_S_DYNAMIC_DEFAULT);
}

void
euno_operation_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}

/*
 * Push an operation that may raise; it runs with idx->cx, or with a context of
 * its own if a comparator of this index has led back to the same index.
 */
static Operation *
push_operation(EunoIndex *idx)
{
	Operation  *op;

	check_stack_depth();
	if (noperations >= MAX_OPERATIONS)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("comparison functions of euno indexes are nested too deeply")));

	note_used(idx);
	op = &operations[noperations];
	op->idx = idx;
	op->cx = &idx->cx;
	op->depth = idx->cx.process->depth;
	op->nest_level = GetCurrentTransactionNestLevel();
	op->could_leave = euno_can_leave;
	op->held = NULL;
	op->deleting = op->building = op->out_of_memory = false;
	for (int i = 0; i < noperations; i++)
	{
		if (operations[i].cx == &idx->cx)
		{
			euno_context_nest(&op->nested, &idx->cx);
			op->cx = &op->nested;
			break;
		}
	}
	noperations++;
	euno_can_leave = false;
	note_within(idx->cx.process);
	return op;
}

static void
pop_operation(EunoIndex *idx)
{
	Assert(noperations > 0 && operations[noperations - 1].idx == idx);
	euno_can_leave = operations[--noperations].could_leave;
	note_within(idx->cx.process);
}

/*
 * Looks for the tree; false if there is none.  One whose keys were formed when
 * columns had other types is given up: who finds that, or has built it, has
 * locked out everybody to whom they have other ones.
 */
static bool
find_tree(EunoIndex *idx)
{
	EunoTreeSlot *slot;

	flush_index(idx);
	slot = idx->slot = euno_tree_lookup_generation(&idx->key, &idx->generation);
	if (slot == NULL)
		return false;

	/* Here, and not at each pin, for ALTER makes us open the index anew. */
	if (pg_atomic_read_u32(&slot->replicate) != idx->replicate)
		pg_atomic_write_u32(&slot->replicate, idx->replicate);
	if (unlikely(slot->modifiers != euno_key_modifiers(idx->schema)))
		(void) euno_tree_retire(slot, idx->generation);
	return true;
}

EunoState
euno_index_pin(EunoIndex *idx, EunoContext **cx)
{
	EunoProcess *process = idx->cx.process;
	EunoState	state;
	uint64		generation;

	note_used(idx);
	if (idx->order == EUNO_ORDER_BYTES)
	{
		*cx = &idx->cx;
		could_leave = euno_can_leave;
	}
	else
		*cx = push_operation(idx)->cx;
	if (euno_ndomains > 1)
	{
		(*cx)->domain = euno_domain_lookup();
		(*cx)->lagging = euno_debug_copies == EUNO_COPIES_LAGGING;
		(*cx)->count_all = euno_debug_count_all;
	}

	for (;;)
	{
		euno_epoch_enter(process);
		if (likely(idx->slot != NULL))
		{
			/*
			 * The generation last: between two looks the slot might have been
			 * dropped and be another index's.
			 */
			state = euno_tree_state(idx->slot);
			generation = pg_atomic_read_u64(&idx->slot->generation);
			if (likely(generation == idx->generation))
				break;
		}
		euno_epoch_exit(process);

		if (!find_tree(idx))
		{
			euno_epoch_enter(process);
			return EUNO_STATE_ABSENT;
		}
	}

	if (unlikely(state == EUNO_STATE_RETIRING || state == EUNO_STATE_FREE))
		state = EUNO_STATE_ABSENT;
	euno_can_leave = true;
	return state;
}

void
euno_index_unpin(EunoIndex *idx)
{
	euno_epoch_exit(idx->cx.process);
	if (idx->order == EUNO_ORDER_BYTES)
		euno_can_leave = could_leave;
	else
		pop_operation(idx);
	if (unlikely(idx->cx.counters.descents >= 4096))
		flush_index(idx);
}

EunoState
euno_index_hold(EunoIndex *idx, EunoContext **cx)
{
	Operation  *op = push_operation(idx);
	EunoContext *pin_cx;
	EunoState	state = euno_index_pin(idx, &pin_cx);

	if (state == EUNO_STATE_READY)
	{
		pg_atomic_fetch_add_u32(&idx->slot->holders, 1);
		op->held = idx->slot;
		note_held();
	}
	euno_index_unpin(idx);

	*cx = op->cx;
	if (state != EUNO_STATE_READY)
		pop_operation(idx);
	return state;
}

EunoStatus
euno_index_start_build(EunoIndex *idx, EunoTreeSlot *slot,
					   const EunoTreeOps *ops, const EunoTreeConfig *config)
{
	Operation  *op = push_operation(idx);
	EunoStatus	status = euno_tree_start_build(slot, op->cx, ops, config,
												   noperations);

	if (status == EUNO_OK)
	{
		op->held = slot;
		op->building = true;
		note_held();
	}
	else
		pop_operation(idx);
	return status;
}

bool
euno_index_finish_build(EunoIndex *idx)
{
	Operation  *op = &operations[noperations - 1];

	Assert(op->idx == idx && op->building);
	if (!euno_tree_finish_build(op->held))
		return false;
	op->building = false;
	euno_index_unhold(idx);
	return true;
}

bool
euno_index_is_builder(const EunoTreeSlot *slot)
{
	for (int i = 0; i < noperations; i++)
		if (operations[i].building && operations[i].held == slot)
			return true;
	return false;
}

bool
euno_index_has_look(const EunoTreeSlot *slot)
{
	if (euno_process()->depth > 0)
		return true;
	for (int i = 0; i < noperations; i++)
		if (operations[i].held == slot)
			return true;
	return false;
}

void
euno_index_begin_delete(EunoIndex *idx)
{
	Operation  *op = &operations[noperations - 1];

	Assert(op->idx == idx && op->held != NULL);
	pg_atomic_fetch_add_u64(&op->held->vacuum_epoch, 1);
	op->deleting = true;
	op->descents = op->cx->counters.descents;
}

void
euno_index_end_delete(EunoIndex *idx)
{
	Operation  *op = &operations[noperations - 1];

	Assert(op->idx == idx && op->deleting);
	end_delete(op);
}

void
euno_index_unhold(EunoIndex *idx)
{
	Operation  *op = &operations[noperations - 1];

	Assert(op->idx == idx && op->held != NULL);
	pg_atomic_fetch_sub_u32(&op->held->holders, 1);
	pop_operation(idx);
	note_held();
}

void
euno_operation_out_of_memory(const EunoIndex *idx)
{
	for (int i = 0; i < noperations; i++)
		if (operations[i].building && operations[i].idx == idx)
			operations[i].out_of_memory = true;
}
