/*-------------------------------------------------------------------------
 *
 * euno_insert.c
 *	  aminsert.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/euno_am.h"
#include "euno_compat.h"

/*
 * Insert one entry.  Always returns false: there are no unique indexes to
 * recheck.
 *
 * The heap tuple is in place already.  euno_index_pin has a full barrier
 * between that and the look at the tree's state, and a builder has one between
 * setting BUILDING and reading the heap: so either we see BUILDING and insert
 * (idempotently: the builder may have found the tuple too), or the builder
 * sees the tuple and doing nothing is right.
 */
bool
eunoinsert(Relation index, Datum *values, bool *isnull, ItemPointer heap_tid,
		   Relation heap, IndexUniqueCheck check_unique, bool index_unchanged,
		   IndexInfo *index_info)
{
	EunoIndex  *idx;
	EunoContext *cx;
	EunoEntry	entry;
	EunoState	state;
	EunoStatus	status = EUNO_OK;
	bool		tried_deletion = false;

	idx = euno_index_open(index);
	euno_key_form(idx->schema, values, isnull, idx->form_buffer, &entry);
	if (!euno_preloaded)
		return false;			/* there are no trees at all */
	entry.tid = euno_tid_pack(heap_tid);

	do
	{
		state = euno_index_pin(idx, &cx);
		if (state != EUNO_STATE_READY && state != EUNO_STATE_BUILDING)
		{
			euno_index_unpin(idx);
			EUNO_STOP_POINT("insert-absent");
			return false;
		}
		status = idx->slot->ops->insert(cx, &idx->slot->tree, &entry,
										index_unchanged && !tried_deletion);
		euno_index_unpin(idx);

		/*
		 * Version churn is about to split a leaf: see whether old versions of
		 * the same rows can go instead.
		 */
		if (status == EUNO_FULL)
		{
			euno_delete_dead_versions(idx, index, heap, &entry);
			tried_deletion = true;
		}
	} while (status == EUNO_FULL);

	if (status != EUNO_OK && status != EUNO_EXISTS)
		euno_index_error(idx, index, status);
	return false;
}
