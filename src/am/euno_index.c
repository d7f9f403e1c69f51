/*-------------------------------------------------------------------------
 *
 * euno_index.c
 *	  What a backend knows of an index.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "euno_compat.h"

typedef struct IndexEntry
{
	Oid			oid;			/* hash key */
	EunoIndex  *idx;			/* NULL: it has changed, or was dropped */
} IndexEntry;

/* What rd_amcache points to; the relation cache frees it. */
typedef struct IndexReference
{
	IndexEntry *entry;			/* good if nothing has been removed since */
	uint64		removals;
} IndexReference;

static HTAB *index_hash = NULL;
static uint64 removals = 0;		/* how often entries were removed from it */
static long entries_kept = 0;	/* the last time */
static EunoIndex *outdated_indexes = NULL;	/* freed at transaction end */

/* Somebody may still use it in this transaction. */
static void
outdate(IndexEntry *entry)
{
	EunoIndex  *idx = entry->idx;

	entry->idx = NULL;
	if (idx == NULL)
		return;
	euno_scan_forget(idx);
	idx->outdated = true;
	idx->next_outdated = outdated_indexes;
	outdated_indexes = idx;
}

/*
 * Relcache callback: what we know of this index (or of all) may be wrong, or
 * never be asked for again.
 */
static void
invalidate(Datum arg, Oid relid)
{
	IndexEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(index_hash, &relid, HASH_FIND, NULL);
		if (entry)
			outdate(entry);
	}
	else
	{
		HASH_SEQ_STATUS status;

		hash_seq_init(&status, index_hash);
		while ((entry = hash_seq_search(&status)) != NULL)
			outdate(entry);
	}
}

void
euno_index_init(void)
{
	HASHCTL		info = {0};

	info.keysize = sizeof(Oid);
	info.entrysize = sizeof(IndexEntry);
	info.hcxt = TopMemoryContext;
	index_hash = hash_create("euno indexes", 64, &info,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(invalidate, (Datum) 0);
	euno_operation_init();
}

static EunoIndex *
make_index(Relation index)
{
	MemoryContext context = AllocSetContextCreate(CacheMemoryContext,
												  "euno index",
												  ALLOCSET_SMALL_SIZES);
	EunoIndex  *idx = MemoryContextAllocZero(context, sizeof(EunoIndex));

	PG_TRY();
	{
		idx->oid = RelationGetRelid(index);
		idx->context = context;
		idx->key.database = euno_rel_db(index);
		idx->key.space = euno_rel_space(index);
		idx->key.number = euno_rel_number(index);
		idx->key.temp_owner = RelationUsesLocalBuffers(index) ?
			euno_my_proc_number() : -1;
		idx->other_temp = RELATION_IS_OTHER_TEMP(index);
		idx->varies = euno_index_varies(index);
		idx->schema = euno_key_schema(index, context);
		idx->order = euno_key_order(idx->schema);
		if (euno_preloaded)
			idx->cx.process = euno_process();
		idx->cx.env = &euno_environment;
		idx->cx.phase = (uint32) MyProcPid;
		idx->cx.compare = euno_key_compare;
		if (euno_key_approximates(idx->schema))
		{
			idx->cx.approximate = euno_key_approximate;
			idx->cx.abbreviate = euno_key_abbreviate;
		}
		idx->cx.compare_arg = idx->schema;
		idx->replicate = euno_replicate(index);
	}
	PG_CATCH();
	{
		MemoryContextDelete(context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return idx;
}

/*
 * Removes entries of which nothing is known, as of indexes that were dropped:
 * when there are twice as many as were kept the last time, so it costs little.
 */
static void
remove_entries(void)
{
	HASH_SEQ_STATUS status;
	IndexEntry *entry;

	if (hash_get_num_entries(index_hash) < 2 * entries_kept + 64)
		return;
	hash_seq_init(&status, index_hash);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->idx == NULL)
			(void) hash_search(index_hash, &entry->oid, HASH_REMOVE, NULL);
	}
	entries_kept = hash_get_num_entries(index_hash);
	removals++;
}

/* At the end of a transaction: nobody is in euno_index_open. */
void
euno_index_free_outdated(void)
{
	if (outdated_indexes == NULL)
		return;
	while (outdated_indexes != NULL)
	{
		EunoIndex  *idx = outdated_indexes;

		outdated_indexes = idx->next_outdated;
		MemoryContextDelete(idx->context);
	}
	remove_entries();
}

EunoIndex *
euno_index_open(Relation index)
{
	IndexReference *ref = (IndexReference *) index->rd_amcache;
	Oid			oid = RelationGetRelid(index);
	EunoIndex  *idx;
	IndexEntry *entry;
	bool		found;

	if (likely(ref != NULL && ref->removals == removals &&
			   ref->entry->idx != NULL &&
			   ref->entry->idx->key.number == euno_rel_number(index)))
		return ref->entry->idx;

	entry = hash_search(index_hash, &oid, HASH_ENTER, &found);
	if (!found)
		entry->idx = NULL;
	if (entry->idx == NULL || entry->idx->key.number != euno_rel_number(index))
	{
		outdate(entry);

		/* May open this very index. */
		idx = make_index(index);
		outdate(entry);
		entry->idx = idx;
	}

	/* Only now: it may have been freed meanwhile, or made. */
	if (index->rd_amcache == NULL)
		index->rd_amcache = MemoryContextAlloc(index->rd_indexcxt,
											   sizeof(IndexReference));
	ref = (IndexReference *) index->rd_amcache;
	ref->entry = entry;
	ref->removals = removals;
	return entry->idx;
}

EunoIndex *
euno_index_known(Oid index_oid)
{
	IndexEntry *entry = hash_search(index_hash, &index_oid, HASH_FIND, NULL);

	return entry != NULL ? entry->idx : NULL;
}
