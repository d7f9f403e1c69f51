/*-------------------------------------------------------------------------
 *
 * euno_load.c
 *	  Sorted entries become a tree.
 *
 * While the tree is loaded it belongs to its builder alone; what others write
 * meanwhile goes to the side tree.  Then writers are sent to the tree, and the
 * builder inserts what the side tree has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/backend_progress.h"
#include "utils/rel.h"

#include "am/euno_build.h"
#include "am/euno_debug.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_domains.h"

/* What is expected is said anew after this many entries. */
#define EXPECT_EVERY 32768

/* Less than this is not worth making ready. */
#define EXPECT_LEAST (UINT64CONST(8) * 1024 * 1024)

/*
 * Somebody has taken the tree from us: its memory was needed, which is noted
 * with when it may come back, or it was found to be inconsistent.
 */
static void
give_up(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	if (euno_absent_for_room(slot))
		euno_index_error(idx, index, EUNO_NO_MEMORY);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("euno index \"%s\" was given up while it was being built",
					RelationGetRelationName(index)),
			 errhint("Retry the statement.")));
}

static EunoStatus
insert_entry(EunoIndex *idx, EunoTreeSlot *slot, const EunoEntry *entry)
{
	EunoContext *cx;
	EunoStatus	status = EUNO_OK;

	do
	{
		uint64		before;

		(void) euno_index_pin(idx, &cx);
		before = cx->counters.descents;
		status = slot->ops->insert(cx, &slot->tree, entry, false);
		euno_count_upkeep(idx, cx, before);
		euno_index_unpin(idx);
	} while (status == EUNO_NO_MEMORY &&
			 euno_full_make_room(idx, slot->must_stay));
	return status;
}

/* The index that is being loaded, and whether others may be evicted for it. */
static EunoIndex *loading = NULL;
static bool loading_must_stay;

static bool
make_room(void)
{
	return euno_full_make_room(loading, loading_must_stay);
}

/*
 * Inner nodes are made at the end, within an epoch, in which no room can be
 * made: so before.  They take about a hundredth of the leaves, in each domain;
 * a 64th will do.
 */
static void
make_room_for_end(EunoIndex *idx, EunoTreeSlot *slot)
{
	uint64		needed = euno_tree_bytes(slot) / 64 * euno_ndomains;
	EunoArena  *arena = euno_registry_arena();
	EunoArenaUsage usage;

	do
		usage = euno_arena_usage(arena);
	while (usage.used + needed + euno_arena_kept(arena) > usage.reserved &&
		   euno_full_make_room(idx, slot->must_stay));
}

/*
 * A tree that writes depend on may evict others, which only readers miss.  But
 * only while bulk_add runs: the sort may call a comparator to find the next
 * entry, and what that does, another build perhaps, must not evict on our
 * behalf.
 */
static EunoStatus
load_entry(EunoIndex *idx, EunoTreeSlot *slot, EunoBulk *bulk,
		   const EunoEntry *entry)
{
	EunoStatus	status;

	loading = idx;
	loading_must_stay = slot->must_stay;
	euno_make_room = make_room;
	status = slot->ops->bulk_add(&idx->cx, bulk, entry);
	euno_make_room = NULL;
	return status;
}

/* Relaxed: a hint. */
static void
expect(EunoPool *pool, uint64 bytes)
{
	__atomic_store_n(&pool->expected, bytes / EUNO_EXTENT_SIZE,
					 __ATOMIC_RELAXED);
}

/*
 * When all entries have been added, before they are sorted: has the launcher
 * make memory ready for the tree, unless that is small.
 */
static void
expect_tree(EunoTreeSlot *slot, const EunoSort *sort)
{
	uint64		bytes = euno_sort_bytes(sort);
	int			ndomains = slot->ops->leaf_chain ? euno_ndomains : 1;

	if (bytes < EXPECT_LEAST)
		return;

	/*
	 * Leaves are loaded into all domains; all of a radix tree into the first.
	 */
	for (int d = 0; d < ndomains; d++)
		expect(&slot->pools[d], bytes / ndomains);
	euno_tree_call_launcher();
}

/* What was loaded tells how much the rest will take. */
static void
expect_rest(EunoTreeSlot *slot, double loaded, double total)
{
	for (int d = 0; d < euno_ndomains; d++)
	{
		EunoPool   *pool = &slot->pools[d];

		if (pool->expected > 0)
			expect(pool, (uint64) (total / loaded *
								   (double) euno_pool_bytes(pool)));
	}
}

/*
 * The sort has been performed.  Nobody else can reach the tree.  We hold it,
 * so its memory stays whatever others do.
 */
static int64
load_sorted(EunoIndex *idx, Relation index, EunoTreeSlot *slot,
			EunoSort *sort)
{
	const EunoTreeOps *ops = slot->ops;
	void	   *memory = palloc(sizeof(EunoBulk) + _Alignof(EunoBulk));
	EunoBulk   *bulk = (EunoBulk *) TYPEALIGN(_Alignof(EunoBulk), memory);
	EunoContext *cx = &idx->cx;
	EunoEntry	entry;
	EunoStatus	status;
	int64		loaded = 0;
	double		total = (double) euno_sort_left(sort);

	euno_build_progress(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) total);
	status = ops->bulk_begin(cx, &slot->tree, bulk);
	while (status == EUNO_OK && euno_sort_next(sort, &entry))
	{
		status = load_entry(idx, slot, bulk, &entry);
		if ((++loaded & 1023) == 0)
		{
			CHECK_FOR_INTERRUPTS();
			if (!euno_tree_is_our_build(slot))
				give_up(idx, index, slot);
			euno_build_progress(PROGRESS_CREATEIDX_TUPLES_DONE, loaded);
			if (loaded % EXPECT_EVERY == 0)
				expect_rest(slot, (double) loaded, total);
		}
	}
	if (status == EUNO_OK)
	{
		make_room_for_end(idx, slot);
		status = ops->bulk_end(cx, bulk);
	}
	if (status != EUNO_OK)
		euno_index_error(idx, index, status);
	euno_build_progress(PROGRESS_CREATEIDX_TUPLES_DONE, loaded);
	pfree(memory);
	return loaded;
}

int64
euno_load_sort(EunoIndex *idx, Relation index, EunoTreeSlot *slot,
			   EunoSort *sort, EunoParallelBuild *parallel)
{
	int64		loaded;

	euno_build_progress(PROGRESS_CREATEIDX_SUBPHASE, EUNO_PHASE_SORT);
	expect_tree(slot, sort);
	euno_sort_perform(sort);
	euno_build_progress(PROGRESS_CREATEIDX_SUBPHASE, EUNO_PHASE_LOAD);
	loaded = load_sorted(idx, index, slot, sort);
	euno_sort_end(sort);
	if (parallel != NULL)
		euno_parallel_end(parallel);
	return loaded;
}

/*
 * Read the next batch of the side tree.  The caller holds the tree, and so the
 * side tree too.
 */
static EunoStatus
read_side(EunoIndex *idx, EunoTreeSlot *slot, EunoReader *reader)
{
	EunoContext *cx;
	EunoStatus	status;

	(void) euno_index_pin(idx, &cx);
	status = euno_bptree_ops.read(cx, &slot->side->tree, &reader->cursor, true,
								  &reader->batch);
	euno_index_unpin(idx);
	return status;
}

/* The rows whose entries are in the side tree. */
typedef struct AsideRows
{
	EunoTid    *tids;			/* sorted */
	uint32		n;
} AsideRows;

static void
list_aside_rows(EunoIndex *idx, Relation index, EunoTreeSlot *slot,
				AsideRows *rows)
{
	EunoReader *reader = euno_reader_make();
	Size		room = EUNO_READER_ITEMS;

	rows->tids = palloc(room * sizeof(EunoTid));
	rows->n = 0;
	euno_cursor_of_all(&reader->cursor);
	for (;;)
	{
		EunoStatus	status = read_side(idx, slot, reader);

		CHECK_FOR_INTERRUPTS();
		if (status != EUNO_OK)
			euno_index_error(idx, index, status);
		if (reader->batch.nitems == 0)
			break;
		while (rows->n + reader->batch.nitems > room)
			rows->tids = repalloc_huge(rows->tids,
									   (room *= 2) * sizeof(EunoTid));
		memcpy(rows->tids + rows->n, reader->tids,
			   reader->batch.nitems * sizeof(EunoTid));
		rows->n += reader->batch.nitems;
	}
	pfree(reader);
	euno_sort64(rows->tids, rows->n);
}

static bool
is_aside(void *arg, EunoTid tid)
{
	const AsideRows *rows = arg;

	return euno_tid_among(tid, rows->tids, rows->n);
}

static void
pause_walk(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

/*
 * Where keys vary, whoever has inserted a row knows its key, and the builder may
 * have made another one of it: a row must not have two entries.  So what the
 * builder has of these rows goes, before their entries come.
 */
static void
leave_to_writers(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	AsideRows	rows;
	EunoWalk	walk = {.decide = is_aside, .pause = pause_walk, .arg = &rows};
	EunoStatus	status = EUNO_OK;

	if (!idx->varies)
		return;
	list_aside_rows(idx, index, slot, &rows);
	if (rows.n > 0)
	{
		walk.room = palloc(sizeof(EunoWalkRoom));
		status = slot->ops->walk(&idx->cx, &slot->tree, &walk);
		pfree(walk.room);
	}
	pfree(rows.tids);
	if (status != EUNO_OK)
		euno_index_error(idx, index, status);
}

/*
 * Insert what the side tree has.  Others write to the tree at the same time;
 * inserting is idempotent, so it does not matter who is first.
 */
static void
merge_side(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	EunoReader *reader = euno_reader_make();
	const EunoBatch *batch = &reader->batch;
	EunoStatus	status;

	euno_cursor_of_all(&reader->cursor);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!euno_tree_is_our_build(slot))
			give_up(idx, index, slot);
		status = read_side(idx, slot, reader);
		for (uint32 i = 0; status == EUNO_OK && i < batch->nitems; i++)
		{
			EunoItemKey *key = &batch->keys[i];
			EunoEntry	entry = {.key = batch->buf + key->offset,
				.keylen = key->keylen, .tid = batch->tids[i],
				.payload = batch->buf + key->offset + MAXALIGN(key->keylen),
			.payloadlen = key->payloadlen};

			status = insert_entry(idx, slot, &entry);
			if (status == EUNO_EXISTS)
				status = EUNO_OK;
		}
		if (status != EUNO_OK)
			euno_index_error(idx, index, status);
		if (batch->nitems == 0)
			break;
	}
	pfree(reader);
}

void
euno_load_finish(EunoIndex *idx, Relation index, EunoTreeSlot *slot)
{
	EUNO_STOP_POINT("build-loaded");
	if (!euno_tree_start_merge(slot))
		give_up(idx, index, slot);
	EUNO_STOP_POINT("build-merging");
	leave_to_writers(idx, index, slot);
	merge_side(idx, index, slot);
	EUNO_STOP_POINT("build-end");
	if (!euno_index_finish_build(idx))
		give_up(idx, index, slot);
}
