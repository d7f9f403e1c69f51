/*-------------------------------------------------------------------------
 *
 * euno_delete.c
 *	  Bottom-up deletion: old versions go before a leaf splits.
 *
 * The table access method decides which TIDs are dead; it does I/O, so it runs
 * with nothing locked, on copies.  Two things could change meanwhile:
 *
 *	- VACUUM removes the entries and recycles the TIDs: the heap would complain
 *	  of TIDs that point nowhere.  A hazard on all TIDs of the tree makes it
 *	  wait.  It is announced after they are copied, since comparators may take
 *	  the hazard word for scans of their own; when a bulk delete has begun by
 *	  then (the vacuum epoch has changed, or was odd) we do nothing.
 *	- an entry is removed otherwise: then removing it finds nothing.
 *
 * The removals carry the vacuum epoch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"

#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"

#define MAX_CANDIDATES 512		/* in each direction from the entry */

/*
 * If fewer of the entries than one in this many are candidates, a split is
 * better.
 */
#define WORTHWHILE 8

typedef struct Candidates
{
	TM_IndexDelete deltids[2 * MAX_CANDIDATES];
	TM_IndexStatus status[2 * MAX_CANDIDATES];
	EunoEntry	entries[2 * MAX_CANDIDATES];
	EunoTid		tids[MAX_CANDIDATES];
	EunoItemKey keys[MAX_CANDIDATES];
	EunoCursor	cursor;
	EunoMoment	read;			/* before the first of them was */
	uint8_t		buf[2][EUNO_BATCH_BUF] __attribute__((aligned(8)));
	int			count;
	int			seen;			/* entries that these were chosen from */
} Candidates;

static void
add_candidate(Candidates *cand, const EunoEntry *entry)
{
	int			n = cand->count++;

	cand->entries[n] = *entry;
	euno_tid_unpack(entry->tid, &cand->deltids[n].tid);
	cand->deltids[n].id = n;
	cand->status[n].idxoffnum = n + 1;
	cand->status[n].knowndeletable = false;
	cand->status[n].promising = true;
	cand->status[n].freespace = entry->keylen + EUNO_TID_BYTES;
}

/*
 * Look at the nearest entries on one side of "entry", first at those before it;
 * of a B+tree, those of its leaf.  Add those whose key also occurs next to
 * them: versions of one row have one key.  Others are not worth the table's
 * sorting them.
 */
static bool
collect(EunoIndex *idx, const EunoEntry *entry, bool forward, Candidates *cand)
{
	EunoCursor *cursor = &cand->cursor;
	EunoPosition here = {.key = entry->key, .keylen = entry->keylen,
	.tid = entry->tid};
	EunoPosition infinity = {.side = forward ? 1 : -1};
	EunoBatch	batch = {.max_items = MAX_CANDIDATES, .tids = cand->tids,
		.want_keys = true, .keys = cand->keys,
	.buf = cand->buf[forward], .buf_size = EUNO_BATCH_BUF};
	EunoContext *cx;
	EunoStatus	status = EUNO_NOT_FOUND;
	EunoEntry	previous = *entry;
	bool		added = true;	/* the previous one; not our own */

	cursor->lo = forward ? here : infinity;
	cursor->hi = forward ? infinity : here;
	euno_cursor_start(cursor);
	if (euno_index_pin(idx, &cx) == EUNO_STATE_READY)
	{
		const EunoTreeOps *ops = idx->slot->ops;
		uint64		before = cx->counters.descents;

		if (!forward)
			cand->read = euno_index_moment(idx);
		batch.max_items = Min(batch.max_items, ops->bottom_up_reach);
		status = ops->read(cx, &idx->slot->tree, cursor, forward, &batch);
		euno_count_upkeep(idx, cx, before);
	}
	euno_index_unpin(idx);
	if (status != EUNO_OK)
		return false;

	cand->seen += batch.nitems;
	for (uint32 i = 0; i < batch.nitems; i++)
	{
		EunoItemKey *key = &batch.keys[i];
		EunoEntry	next = {.key = batch.buf + key->offset,
			.keylen = key->keylen,
		.tid = batch.tids[i]};
		bool		same = next.keylen == previous.keylen &&
			memcmp(previous.key, next.key, next.keylen) == 0;

		if (same && !added)
			add_candidate(cand, &previous);
		if (same)
			add_candidate(cand, &next);
		added = same;
		previous = next;
	}
	return true;
}

/*
 * Keep the TIDs of a tree from being used again.  False if a bulk delete may
 * have removed some since they were read.
 */
static bool
announce_all(EunoIndex *idx, const EunoMoment *read)
{
	EUNO_STOP_POINT("delete-announce");
	return (read->vacuum_epoch & 1) == 0 &&
		euno_hazard_of_batch(idx, EUNO_TID_MAX, read);
}

void
euno_delete_dead_versions(EunoIndex *idx, Relation index, Relation heap,
						  const EunoEntry *entry)
{
	Candidates *cand;
	TM_IndexDeleteOp op;

	cand = palloc(sizeof(Candidates));
	cand->count = cand->seen = 0;
	if (collect(idx, entry, false, cand) &&
		collect(idx, entry, true, cand) &&
		cand->count > 0 && cand->count >= cand->seen / WORTHWHILE &&
		announce_all(idx, &cand->read))
	{
		op.irel = index;
		op.iblknum = 0;
		op.bottomup = true;
		op.bottomupfreespace = BLCKSZ / 16;
		op.ndeltids = cand->count;
		op.deltids = cand->deltids;
		op.status = cand->status;
		(void) table_index_delete_tuples(heap, &op);

		for (int i = 0; i < op.ndeltids; i++)
		{
			int			n = op.deltids[i].id;

			if (op.status[n].knowndeletable)
				euno_remove_dead(idx, &cand->entries[n], &cand->read);
		}
	}
	euno_hazard_clear(idx->cx.process);
	pfree(cand);
}
