/*-------------------------------------------------------------------------
 *
 * euno_unique_build.c
 *	  Are the keys of a new tree unique?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "am/euno_insert.h"
#include "am/euno_operation.h"

/* What the pass over a new tree remembers of the entry before. */
typedef struct KeyRun
{
	EunoTid		tid;
	uint32		keylen;
	bool		started;
	bool		several;		/* entries have had this key, and: */
	bool		any_live;		/* one of their rows is live */
	uint8_t		key[EUNO_MAX_ENTRY + 8] __attribute__((aligned(8)));
} KeyRun;

static void
check_next(EunoIndex *idx, Relation index, Relation heap, KeyRun *run,
		   const uint8_t *key, const EunoItemKey *item, EunoTid tid)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8_t    *scratch;
	bool		same = false;
	bool		live;

	if (run->started && idx->order == EUNO_ORDER_BYTES)
		same = run->keylen == item->keylen &&
			memcmp(run->key, key, item->keylen) == 0;
	else if (run->started)
	{
		EunoPosition previous = {.key = run->key, .keylen = run->keylen};

		same = euno_key_compare(idx->schema, &previous, key, item->keylen) == 0;
	}
	if (!same)
	{
		memcpy(run->key, key, item->keylen);
		run->keylen = item->keylen;
		run->tid = tid;
		run->started = true;
		run->several = run->any_live = false;
		return;
	}

	scratch = palloc(EUNO_KEY_DEFORM_BYTES);
	euno_key_deform(idx->schema, key, item->keylen, key + MAXALIGN(item->keylen),
					item->payloadlen, scratch, values, isnull);
	if (index->rd_index->indnullsnotdistinct ||
		!euno_key_has_null(idx->schema, isnull))
	{
		if (!run->several)
			run->any_live = euno_row_is_live(heap, run->tid);
		run->several = true;
		live = euno_row_is_live(heap, tid);
		if (live && run->any_live)
		{
			char	   *description;

			description = BuildIndexValueDescription(index, values, isnull);
			ereport(ERROR,
					(errcode(ERRCODE_UNIQUE_VIOLATION),
					 errmsg("could not create unique index \"%s\"",
							RelationGetRelationName(index)),
					 description ? errdetail("Key %s is duplicated.", description) :
					 errdetail("Duplicate keys exist."),
					 errtableconstraint(heap, RelationGetRelationName(index))));
		}
		run->any_live |= live;
	}
	pfree(scratch);
}

/*
 * VACUUM is locked out of the table, so that TIDs stay what they are.  Only
 * equal keys are looked up in the heap: most tables have none.
 */
void
euno_unique_check_build(EunoIndex *idx, Relation index, Relation heap)
{
	EunoReader *reader = euno_reader_make();
	EunoBatch  *batch = &reader->batch;
	KeyRun	   *run = palloc0(sizeof(KeyRun));

	euno_cursor_of_all(&reader->cursor);
	while (!reader->cursor.at_hi)
	{
		EunoContext *cx;
		EunoStatus	status = EUNO_NOT_FOUND;

		CHECK_FOR_INTERRUPTS();
		if (euno_index_pin(idx, &cx) == EUNO_STATE_BUILDING)
			status = idx->slot->ops->read(cx, &idx->slot->tree, &reader->cursor,
										  true, batch);
		euno_index_unpin(idx);
		if (status != EUNO_OK)
			euno_index_error(idx, index, status);
		if (batch->nitems == 0)
			break;
		for (uint32 i = 0; i < batch->nitems; i++)
			check_next(idx, index, heap, run, batch->buf + batch->keys[i].offset,
					   &batch->keys[i], batch->tids[i]);
	}
	pfree(run);
	pfree(reader);
}
