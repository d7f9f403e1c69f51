/*-------------------------------------------------------------------------
 *
 * euno_error.c
 *	  What core cannot do, as an ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_state.h"
#include "mem/euno_extents.h"

/*
 * Either all that was reserved is in use, or the machine, or the control
 * group, has no more.
 */
static void
out_of_memory(EunoIndex *idx, Relation index)
{
	CHECK_FOR_INTERRUPTS();		/* what waited for memory may have left */
	euno_operation_out_of_memory(idx);

	if (!euno_extent_refused())
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for euno index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("No more of \"euno.max_memory\" (%d MB) is available to this index.",
						   euno_max_memory_mb),
				 errhint("Increase \"euno.max_memory\" and restart the server, let others be evicted (\"euno.on_full\"), drop euno indexes, or VACUUM tables of which many rows have been deleted.")));
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory for euno index \"%s\"",
					RelationGetRelationName(index)),
			 errdetail("The operating system refused more than %llu MB of the %d MB that \"euno.max_memory\" allows.",
					   (unsigned long long) (euno_arena_usage(euno_registry_arena()).used / (1024 * 1024)),
					   euno_max_memory_mb),
			 errhint("Give the server more memory, or decrease \"euno.max_memory\".")));
}

void
euno_index_error(EunoIndex *idx, Relation index, EunoStatus status)
{
	/* What comes may end the session, or wait for its client. */
	euno_key_lock_release();
	switch (status)
	{
		case EUNO_NO_MEMORY:
			out_of_memory(idx, index);
			break;
		case EUNO_CANCELED:
			CHECK_FOR_INTERRUPTS();
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("canceling statement that waits for euno index \"%s\"",
							RelationGetRelationName(index))));
			break;
		case EUNO_CORRUPT:
			if (idx->slot)
			{
				(void) euno_tree_retire(idx->slot, idx->generation);

				/* If this is so again and again, others want workers, too */
				euno_absent_note_failure(idx->slot);
			}
			euno_invalidate_plans(MyDatabaseId, index->rd_index->indrelid);
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("euno index \"%s\" was found to be inconsistent in memory",
							RelationGetRelationName(index)),
					 errhint("It has been given up and will be rebuilt from the table; retry the statement.")));
			break;
		default:
			elog(ERROR, "unexpected status %d from euno index \"%s\"",
				 (int) status, RelationGetRelationName(index));
	}
	pg_unreachable();
}
