/*-------------------------------------------------------------------------
 *
 * euno_process.c
 *	  This process, as core sees it: its epoch slot, and how it allocates, waits
 *	  and leaves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "utils/wait_event.h"

#include "core/euno_barrier.h"
#include "euno_compat.h"
#include "mem/euno_cache.h"
#include "mem/euno_registry.h"
#include "mem/euno_snapshot.h"

static EunoProcess my_process;
static bool my_process_ready = false;
static uint32 node_lock_event = 0;

bool		(*euno_make_room) (void) = NULL;

/*
 * Allocation for core: tree_arg is the tree's array of pools, its slot's or its
 * side's.
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
 * Sleep while *word is "seen".  A shared futex: the word is in memory shared
 * by processes.  Who holds a lock waits for nothing but the next lock in the
 * order, so this is short unless one of them has been descheduled or stopped.
 * Then our caller sleeps again, for as long as that lasts: unlike a spinlock's,
 * this wait never ends in a PANIC.
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

EunoEnvironment euno_environment = {
	.alloc = env_alloc,
	.free = env_free,
	.wait = env_wait,
	.wake = env_wake,
	.canceled = env_canceled
};

/*
 * At process exit: nothing of ours may keep others waiting.  After the abort
 * of a transaction that is still open, whose callbacks give back what
 * operations hold in trees: until then the trees must stay.
 */
static void
process_exit(int code, Datum arg)
{
	EunoEpochSlot *slot = &euno_shared_epochs()->slots[my_process.slot];

	euno_process_reset(&my_process, 0);
	__atomic_store_n(&slot->hazard, 0, __ATOMIC_RELEASE);
	my_process_ready = false;

	/* Nobody else makes or drops ours, so the key can be read without a lock. */
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeKey key = euno_tree_by_number(i)->key;
		EunoTreeDescription tree;

		if (key.temp_owner == euno_my_proc_number() &&
			euno_tree_describe(i, &tree) &&
			tree.key.temp_owner == key.temp_owner)
			euno_tree_drop(&tree.key);
	}
}

EunoProcess *
euno_process(void)
{
	if (!my_process_ready)
	{
		EunoEpochs *epochs = euno_shared_epochs();

		/* Naming an event may raise: not when a node is locked. */
		(void) euno_wait_event(&node_lock_event, "EunoNodeLock");
		euno_snapshot_recheck();

		my_process.epochs = epochs;
		my_process.slot = euno_my_proc_number();
		my_process.depth = 0;
		epochs->slots[my_process.slot].pinned = 0;
		epochs->slots[my_process.slot].hazard = 0;
		epochs->slots[my_process.slot].held = 0;
		epochs->slots[my_process.slot].within = 0;
		euno_barrier_join(&epochs->barriers);
		on_shmem_exit(process_exit, 0);
		my_process_ready = true;
	}
	return &my_process;
}
