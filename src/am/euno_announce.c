/*-------------------------------------------------------------------------
 *
 * euno_announce.c
 *	  A TID that is about to be looked up in the heap.
 *
 * See euno_vacuum.c: what was announced before bulk delete has removed its
 * entry is waited for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/euno_operation.h"

/* How often comparators may get in the way of announcing one TID. */
#define MAX_ANNOUNCEMENTS 100

EunoStatus
euno_announce(EunoIndex *idx, Relation index, const EunoEntry *entry,
			  EunoMoment *read)
{
	EunoContext *cx;
	EunoStatus	status;
	uint64		changes;
	int			attempts = 0;

	do
	{
		/* One that scans a euno index itself takes the hazard word from us. */
		if (++attempts > MAX_ANNOUNCEMENTS)
			ereport(ERROR,
					(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
					 errmsg("comparison functions of euno index \"%s\" scan euno indexes themselves",
							RelationGetRelationName(index))));
		if (euno_index_pin(idx, &cx) != EUNO_STATE_READY)
		{
			euno_index_unpin(idx);
			return EUNO_STALE;
		}
		*read = euno_index_moment(idx);
		euno_hazard_set(idx, entry->tid);
		changes = euno_hazard_changes;
		status = idx->slot->ops->contains(cx, &idx->slot->tree, entry);
		euno_index_unpin(idx);
		if (status != EUNO_OK && status != EUNO_NOT_FOUND)
			euno_index_error(idx, index, status);
	} while (status == EUNO_OK && changes != euno_hazard_changes);
	return status;
}
