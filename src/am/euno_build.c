/*-------------------------------------------------------------------------
 *
 * euno_build.c
 *	  CREATE INDEX, REINDEX, TRUNCATE.
 *
 * The relation file gets one page: it says to whoever looks at the file what
 * it is.  Nothing else is ever written, and nothing is read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_statistic.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/backend_progress.h"
#include "utils/syscache.h"

#include "am/euno_build.h"
#include "am/euno_ddl.h"
#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "mem/euno_domains.h"

#define EUNO_META_MAGIC		0x4F4E5545	/* "EUNO" */
#define EUNO_META_FORMAT	1

typedef struct EunoMetaPage
{
	uint32		magic;
	uint32		format;
} EunoMetaPage;

static void
write_metapage(Relation index, ForkNumber fork)
{
	Buffer		buffer;
	Page		page;
	EunoMetaPage *meta;
	BlockNumber block;

	block = RelationGetNumberOfBlocksInFork(index, fork) == 0 ? P_NEW : 0;
	buffer = ReadBufferExtended(index, fork, block, RBM_NORMAL, NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);

	START_CRIT_SECTION();
	page = BufferGetPage(buffer);
	PageInit(page, BLCKSZ, 0);
	meta = (EunoMetaPage *) PageGetContents(page);
	meta->magic = EUNO_META_MAGIC;
	meta->format = EUNO_META_FORMAT;
	((PageHeader) page)->pd_lower += MAXALIGN(sizeof(EunoMetaPage));
	MarkBufferDirty(buffer);

	/* The init fork of an unlogged index must reach a standby. */
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
}

/*
 * Do many rows share their value of the index's first column, as far as ANALYZE
 * has seen?  It stores a number of distinct values where these are less than a
 * tenth of the rows; otherwise their share of the rows, negated.
 */
static bool
values_repeat(Relation index)
{
	Form_pg_index form = index->rd_index;
	AttrNumber	column = form->indkey.values[0];
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH,
										ObjectIdGetDatum(column != 0 ? form->indrelid :
														 form->indexrelid),
										Int16GetDatum(column != 0 ? column : 1),
										BoolGetDatum(false));
	float4		distinct;

	if (!HeapTupleIsValid(tuple))
		return false;
	distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return distinct > 0 || (distinct < 0 && distinct > -0.8);
}

/*
 * Is the tree to be a radix tree?  "auto": for a single integer (or date, or
 * timestamp).  These are dense more often than not, and for dense ones it was
 * measured to be faster; but where values repeat, lists of TIDs take a part of
 * the memory and are read faster.  A radix tree needs keys that are bytes: an
 * index that has lost them since it was created has a B+tree.
 */
static bool
wants_radix(const EunoIndex *idx, Relation index, EunoStructure structure)
{
	if (idx->order != EUNO_ORDER_BYTES)
		return false;
	return structure == EUNO_STRUCTURE_ART ||
		(structure == EUNO_STRUCTURE_AUTO &&
		 euno_key_is_integer(idx->schema) &&
		 (index->rd_index->indisunique || !values_repeat(index)));
}

/* An empty tree of the structure that the index asks for. */
EunoStatus
euno_tree_create(EunoIndex *idx, EunoTreeSlot *slot, Relation index)
{
	EunoOptions options = *euno_options(index); /* what follows may free it */
	const EunoTreeOps *ops = euno_forced == EUNO_FORCED_NOT ?
		&euno_bptree_ops : &euno_bptree_forced_ops;
	EunoTreeConfig config = {.order = idx->order,
		.posting = euno_key_posting(idx->schema),
		.fillfactor = (uint16_t) options.fillfactor,
		.ndomains = (uint16_t) euno_ndomains,
		.nparts = (uint16_t) euno_ndomains,
		.domains = euno_replicate(index) == EUNO_REPLICATE_ON ?
		(UINT64_C(1) << euno_domains_active()) - 1 : 1
	};

	euno_key_abbreviation(idx->schema, config.abbreviation);
	slot->heap_oid = index->rd_index->indrelid;
	slot->modifiers = euno_key_modifiers(idx->schema);
	pg_atomic_write_u32(&slot->replicate, euno_replicate(index));
	slot->unchecked = index->rd_index->indisunique &&
		!index->rd_index->indisvalid;
	slot->must_stay = index->rd_index->indisunique ||
		index->rd_index->indisexclusion;
	if (wants_radix(idx, index, options.structure))
		ops = options.sync == EUNO_SYNC_ROWEX ?
			&euno_art_rowex_ops : &euno_art_olc_ops;
	return euno_index_start_build(idx, slot, ops, &config);
}

/*
 * Make the slot of this index ABSENT, whatever it was: TRUNCATE of a table
 * made in the same transaction builds into the same relation file again, and
 * while CREATE INDEX CONCURRENTLY waits somebody may have called euno_rebuild.
 * The last look at the old tree is waited for with the build lock held; but no
 * other session's query can use the index yet, and so want that lock.
 */
static EunoTreeSlot *
fresh_slot(EunoIndex *idx, Relation index)
{
	int			waited = 0;

	for (;;)
	{
		EunoTreeSlot *slot = euno_index_slot(idx);
		uint64		generation = pg_atomic_read_u64(&slot->generation);

		/* Retiring may end in FREE, if the tree was to be dropped already. */
		if (euno_tree_state(slot) == EUNO_STATE_ABSENT)
			return slot;
		if (euno_tree_retire(slot, generation))
			continue;
		euno_refuse_own_wait(slot, index);
		euno_wait_for_look(slot, &waited);
	}
}

/*
 * Where allow_system_table_mods is on.  What we do to build and to find a tree
 * reads catalogs, and a mapped one's index is not in pg_class with its file.
 */
static void
refuse_catalog(Relation heap)
{
	if (IsCatalogRelation(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create a euno index on system catalog \"%s\"",
						RelationGetRelationName(heap))));
}

IndexBuildResult *
eunobuild(Relation heap, Relation index, IndexInfo *index_info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	EunoIndex  *idx;
	EunoTreeSlot *slot;
	EunoSort   *sort;
	EunoParallelBuild *parallel = NULL;
	EunoStatus	status;
	int			nworkers;

	EUNO_STOP_POINT("build-begin");
	refuse_catalog(heap);
	write_metapage(index, MAIN_FORKNUM);
	if (IsBinaryUpgrade)
		return result;			/* rebuilt when the new server starts */

	euno_require_serving(index);
	idx = euno_index_open(index);
	euno_options_check(index);
	euno_ddl_check_types(index);
	euno_labels_lock(idx->schema, index_info->ii_NumIndexKeyAttrs);
	euno_gc_created(&idx->key, idx->oid);
	euno_gc_built(RelationGetRelid(heap));

	/*
	 * CREATE INDEX CONCURRENTLY leaves the index open to euno_evict and
	 * euno_rebuild.
	 */
	euno_build_lock(idx->oid, ExclusiveLock);
	slot = fresh_slot(idx, index);
	do
		status = euno_tree_create(idx, slot, index);
	while (status == EUNO_NO_MEMORY && euno_full_make_room(idx, true));
	if (status != EUNO_OK)
		euno_index_error(idx, index, status);

	euno_build_progress(PROGRESS_CREATEIDX_SUBPHASE, EUNO_PHASE_SCAN);
	nworkers = euno_parallel_workers(heap, index, index_info);
	if (nworkers > 0)
		parallel = euno_parallel_begin(heap, index, index_info, nworkers, false);
	if (parallel != NULL)
		sort = euno_parallel_scan(parallel, heap, index, index_info,
								  idx->schema, &result->heap_tuples);
	else
	{
		sort = euno_sort_begin(heap, idx->schema, maintenance_work_mem,
							   NULL);
		result->heap_tuples = euno_heap_is_quiet(heap, index_info) ?
			euno_heap_quiet_scan(heap, index, index_info, NULL, true, sort) :
			table_index_build_scan(heap, index, index_info, true, true,
								   euno_sort_add_tuple, sort, NULL);
	}
	result->index_tuples = (double) euno_load_sort(idx, index, slot, sort,
												   parallel);
	EUNO_STOP_POINT("build-unchecked");
	if (index_info->ii_Unique)
		euno_unique_check_build(idx, index, heap);
	slot->unchecked = false;
	euno_load_finish(idx, index, slot);
	euno_build_unlock(idx->oid, ExclusiveLock);
	return result;
}

/* The init fork of an unlogged index. */
void
eunobuildempty(Relation index)
{
	write_metapage(index, INIT_FORKNUM);
}

char *
eunobuildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case EUNO_PHASE_SCAN:
			return "scanning table";
		case EUNO_PHASE_SORT:
			return "sorting entries";
		case EUNO_PHASE_LOAD:
			return "loading entries in tree";
		default:
			return NULL;
	}
}
