/*-------------------------------------------------------------------------
 *
 * euno_insert.c
 *	  aminsert.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_predicate.h"
#include "am/euno_state.h"

/*
 * Insert while the tree is loaded.  Pinned since before the state was found to
 * be BUILDING.
 *
 * The builder sets MERGING, fences, and reads the side tree; we insert there,
 * fence, and read the state: either it finds our entry, or we find that the
 * tree is open to writers and insert there too.
 */
static EunoStatus
insert_aside(EunoTreeSlot *slot, EunoContext *cx, const EunoEntry *entry)
{
	EunoStatus	status;
	EunoState	state;

	EUNO_STOP_POINT("insert-aside");
	status = euno_bptree_ops.insert(cx, &slot->side->tree, entry, false);
	if (status != EUNO_OK && status != EUNO_EXISTS)
		return status;
	cx->leaf = 0;				/* of the side tree */
	pg_memory_barrier();
	state = euno_tree_state(slot);
	if (state == EUNO_STATE_MERGING || state == EUNO_STATE_READY)
		status = slot->ops->insert(cx, &slot->tree, entry, false);
	return status;
}

/*
 * Bring an entry into the tree; see euno_am.h.
 *
 * The heap tuple is in place already.  There is a full barrier between that
 * and the look at the tree's state, and a builder has one between setting
 * BUILDING and reading the heap: so either we see BUILDING (or a later state)
 * and insert, idempotently since the builder may have found the tuple too; or
 * the builder sees the tuple and doing nothing is right.
 */
EunoStatus
euno_insert_entry(EunoIndex *idx, Relation index, Relation heap,
				  const EunoEntry *entry, bool index_unchanged,
				  EunoInserted *where)
{
	EunoContext *cx;
	EunoState	state;
	EunoStatus	status;
	bool		tried_deletion = false;

	pg_memory_barrier();
	for (;;)
	{
		state = euno_index_pin(idx, &cx);
		where->generation = idx->generation;
		where->leaf = 0;
		cx->want_leaf = IsolationIsSerializable();
		cx->leaf = 0;
		if (state == EUNO_STATE_ABSENT)
		{
			euno_index_unpin(idx);
			EUNO_STOP_POINT("insert-absent");
			return EUNO_OK;
		}
		if (unlikely(state == EUNO_STATE_BUILDING))
			status = insert_aside(idx->slot, cx, entry);
		else
			status = idx->slot->ops->insert(cx, &idx->slot->tree, entry,
											index_unchanged && !tried_deletion);
		where->leaf = cx->leaf;
		idx->inserts++;
		euno_index_unpin(idx);
		if (status != EUNO_FULL)
			return status;

		/*
		 * Version churn is about to split a leaf: see whether old versions of
		 * the same rows can go instead.
		 */
		euno_delete_dead_versions(idx, index, heap, entry);
		tried_deletion = true;
	}
}

static bool
is_gone(EunoIndex *idx, uint64 generation)
{
	EunoTreeSlot *slot = euno_tree_lookup(&idx->key);

	return slot == NULL ||
		pg_atomic_read_u64(&slot->generation) != generation;
}

bool
euno_insert_done(EunoIndex *idx, Relation index, Relation heap,
				 EunoStatus status, const EunoInserted *where)
{
	if (unlikely(status == EUNO_NO_MEMORY))
	{
		/* Others may have had the same trouble, and given up this very tree. */
		EUNO_STOP_POINT("insert-full");
		if (euno_full_make_room(idx, true) || is_gone(idx, where->generation))
			return false;
	}
	if (status != EUNO_OK && status != EUNO_EXISTS)
		euno_index_error(idx, index, status);
	if (IsolationIsSerializable())
		euno_predicate_check(idx, index, heap, where->generation, where->leaf);
	return true;
}

/*
 * Returns false if the key may turn out to be in use already; means something
 * only with UNIQUE_CHECK_PARTIAL.
 */
bool
eunoinsert(Relation index, Datum *values, bool *isnull, ItemPointer heap_tid,
		   Relation heap, IndexUniqueCheck check_unique, bool index_unchanged,
		   IndexInfo *index_info)
{
	EunoIndex  *idx = euno_index_open(index);
	EunoInserted where;
	EunoStatus	status;
	EunoEntry	entry;

	/* Our own: a comparator might insert into this index. */
	uint8_t		buffer[EUNO_KEY_FORM_BYTES] __attribute__((aligned(8)));

	if (check_unique != UNIQUE_CHECK_NO &&
		(index->rd_index->indnullsnotdistinct ||
		 !euno_key_has_null(idx->schema, isnull)))
		return euno_insert_unique(idx, index, heap, values, isnull, heap_tid,
								  check_unique, index_unchanged);

	euno_key_form(idx->schema, values, isnull, euno_tid_pack(heap_tid), buffer,
				  &entry);
	if (!euno_preloaded || check_unique == UNIQUE_CHECK_EXISTING)
		return true;
	do
		status = euno_insert_entry(idx, index, heap, &entry, index_unchanged,
								   &where);
	while (!euno_insert_done(idx, index, heap, status, &where));
	return true;
}
