/*-------------------------------------------------------------------------
 *
 * euno_unread.c
 *	  Index-only scans whose columns nobody reads.
 *
 * count(*) wants rows, not what is in them.  The server does not say so: an
 * index-only scan has to return a tuple, and its slot gets every column of it.
 * Where its rows go to an aggregate without grouping in whose expressions there
 * is no column (euno_consumer.c), any tuple will do.  Then keys need not be
 * copied out of the tree, nor index tuples made of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/tableam.h"

#include "am/euno_scan.h"

/* A tuple of NULLs. */
static IndexTuple
make_empty(EunoScan *so, TupleDesc desc)
{
	MemoryContext old = MemoryContextSwitchTo(so->context);
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		isnull[INDEX_MAX_KEYS];
	IndexTuple	result;

	memset(isnull, true, sizeof(isnull));
	result = index_form_tuple(desc, values, isnull);
	MemoryContextSwitchTo(old);
	return result;
}

void
euno_unread_take(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	so->empty = make_empty(so, scan->xs_itupdesc);
	euno_unread_begin(scan);
}

void
euno_unread_begin(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;

	so->unread = so->empty != NULL && so->range.exact;
	if (!so->unread)
		return;
	so->want_keys = false;
	scan->xs_itup = so->empty;
}

/*
 * A TID was announced, but its entry may have been removed since it was read,
 * and without the key it cannot be looked for.  Has its row a version that the
 * scan sees?  Then nobody can have removed it.  A row that has got its TID
 * since then is too new to be seen.
 */
bool
euno_unread_visible(IndexScanDesc scan, EunoTid tid)
{
	TupleTableSlot *slot = table_slot_create(scan->heapRelation, NULL);
	ItemPointerData pointer;
	bool		again = false;
	bool		all_dead;
	bool		visible;

	euno_tid_unpack(tid, &pointer);
	visible = table_index_fetch_tuple(scan->xs_heapfetch, &pointer,
									  scan->xs_snapshot, slot, &again,
									  &all_dead);
	ExecDropSingleTupleTableSlot(slot);
	return visible;
}
