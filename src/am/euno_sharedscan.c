/*-------------------------------------------------------------------------
 *
 * euno_sharedscan.c
 *	  Scans that several processes share.
 *
 * The processes take turns: whose turn it is reads the next batch of the
 * index, says how far the scan has come, and passes on.  What it does with
 * its batch takes much longer than that.  Batches go out in index order, so
 * each process returns its share in order.
 *
 * How far the scan has come is a key and a TID (and a part, if there are
 * arrays), in shared memory: nothing points into the tree, which may change,
 * or be evicted and rebuilt, between two turns.
 *
 * Its turn may last, and a process may wait for locks then: those that wait
 * for theirs keep nothing that others wait for.
 *
 * A process that fails during its turn never passes on; but its error ends
 * the query, and with it the wait of the others.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "am/euno_debug.h"
#include "am/euno_scan.h"
#include "euno_compat.h"

typedef enum SharedState
{
	NOBODY_YET,					/* nothing has been read */
	WAITING,					/* for somebody to take a turn */
	TAKEN,
	ENDED
} SharedState;

typedef struct EunoSharedScan
{
	slock_t		mutex;			/* of state; the rest belongs to whoever has
								 * the turn */
	SharedState state;
	ConditionVariable turn;
	bool		entire;			/* all of "part" has been read */
	EunoScanPart part;
	EunoRound	round;
	uint32		keylen;			/* else: up to this position */
	int8		side;
	EunoTid		tid;
	uint8_t		key[EUNO_MAX_ENTRY + 8];
} EunoSharedScan;

static EunoSharedScan *
shared_scan(IndexScanDesc scan)
{
	return (EunoSharedScan *)
		OffsetToPointer((void *) scan->parallel_scan,
						euno_parallel_scan_offset(scan->parallel_scan));
}

EUNO_ESTIMATE_PARALLEL_SCAN
{
	return sizeof(EunoSharedScan);
}

void
eunoinitparallelscan(void *target)
{
	EunoSharedScan *shared = target;

	SpinLockInit(&shared->mutex);
	shared->state = NOBODY_YET;
	ConditionVariableInit(&shared->turn);
}

void
eunoparallelrescan(IndexScanDesc scan)
{
	EunoSharedScan *shared = shared_scan(scan);

	SpinLockAcquire(&shared->mutex);
	shared->state = NOBODY_YET;
	SpinLockRelease(&shared->mutex);
}

/* Puts the current window where the last turn ended. */
static void
load(EunoScan *so, const EunoSharedScan *shared, bool forward)
{
	EunoWindow *window = so->current;
	EunoCursor *cursor = &window->cursor;
	EunoPositionBuffer *end = forward ? &cursor->right : &cursor->left;

	window->nitems = window->formed = 0;
	window->pos = -1;
	if (so->range.parts)
	{
		window->placed = true;
		window->first = window->last = shared->part;
		euno_scan_part_set(so->plan, &shared->part, &so->range);
	}
	window->entire = shared->entire && so->range.parts;
	cursor->lo = so->range.lo;
	cursor->hi = so->range.hi;
	cursor->started = true;
	cursor->forward = forward;
	cursor->round = shared->round;
	cursor->at_lo = !forward && shared->entire;
	cursor->at_hi = forward && shared->entire;
	if (shared->entire)
		return;
	memset(&end->pos, 0, sizeof(end->pos));
	memcpy(end->data, shared->key, shared->keylen);
	end->pos.key = end->data;
	end->pos.keylen = shared->keylen;
	end->pos.side = shared->side;
	end->pos.tid = shared->tid;
}

/* The reverse. */
static void
save(const EunoScan *so, EunoSharedScan *shared, bool forward)
{
	const EunoWindow *window = so->current;
	const EunoCursor *cursor = &window->cursor;
	const EunoPosition *pos = forward ? &cursor->right.pos : &cursor->left.pos;

	shared->part = forward ? window->last : window->first;
	shared->entire = window->entire ||
		(forward ? cursor->at_hi : cursor->at_lo);
	shared->round = cursor->round;
	if (shared->entire)
		return;
	Assert(pos->bound == NULL);
	shared->keylen = pos->keylen;
	shared->side = pos->side;
	shared->tid = pos->tid;
	memcpy(shared->key, pos->key, pos->keylen);
}

bool
euno_shared_scan_take(IndexScanDesc scan, bool forward)
{
	static uint32 event = 0;
	EunoScan   *so = scan->opaque;
	EunoSharedScan *shared = shared_scan(scan);
	SharedState state;

	/*
	 * What our hazard names has been used.  VACUUM would wait for it with the
	 * build lock, which the process whose turn it is may need.
	 */
	euno_hazard_clear(so->idx->cx.process);
	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		state = shared->state;
		if (state == NOBODY_YET || state == WAITING)
			shared->state = TAKEN;
		SpinLockRelease(&shared->mutex);
		if (state != TAKEN)
			break;
		ConditionVariableSleep(&shared->turn,
							   euno_wait_event(&event, "EunoSharedScan"));
	}
	ConditionVariableCancelSleep();
	if (state == ENDED)
		return false;
	if (state == WAITING)
	{
		EUNO_STOP_POINT("shared-turn");
		load(so, shared, forward);
	}
	else
		euno_window_restart(so);
	return true;
}

void
euno_shared_scan_pass(IndexScanDesc scan, bool forward, bool more)
{
	EunoSharedScan *shared = shared_scan(scan);

	if (more)
		save(scan->opaque, shared, forward);
	SpinLockAcquire(&shared->mutex);
	shared->state = more ? WAITING : ENDED;
	SpinLockRelease(&shared->mutex);
	if (more)
		ConditionVariableSignal(&shared->turn);
	else
		ConditionVariableBroadcast(&shared->turn);
}
