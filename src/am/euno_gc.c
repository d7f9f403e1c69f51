/*-------------------------------------------------------------------------
 *
 * euno_gc.c
 *	  Trees whose relation, or rows, are gone.
 *
 * No callback tells an access method of DROP, of a rollback, or of a new
 * relation file.  A tree may go when its relation file is not in pg_class and
 * the transaction that made it has ended: nothing else proves it.  Index OIDs
 * do not: ALTER TYPE keeps the file and changes the OID, a rolled back
 * TRUNCATE brings the old file back.
 *
 * Backends remember what their own transaction has made or dropped, look at
 * pg_class just before they commit, and free the trees just after.  Most of
 * this is for speed, since euno_gc_database finds such trees later.  Two things
 * need it:
 *
 * - A transaction's own trees must stay when it has replaced or dropped their
 *   files, for a rollback brings these back.
 * - A tree can have the name of a file that is there but is not its own: after
 *   a table's move that was undone, or when a database takes the place of
 *   another.  Such trees are freed here.
 *
 * The rows are gone, and the relation stays, where a commit has emptied a
 * temporary table in place, and fails before all of its indexes are built anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/euno_gc.h"
#include "euno_compat.h"

static List *suspects = NIL;	/* in TopMemoryContext */
static bool committing = false;
static List *emptied = NIL;		/* tables that commits empty in place; the same */
static List *dropped = NIL;		/* those of them that are dropped; the same */

bool
euno_gc_suspects(void)
{
	return suspects != NIL;
}

bool
euno_gc_committing(void)
{
	return committing;
}

EunoSuspect *
euno_gc_find(const EunoTreeKey *key)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		EunoSuspect *suspect = lfirst(lc);

		if (!suspect->moved &&
			memcmp(&suspect->key, key, sizeof(EunoTreeKey)) == 0)
			return suspect;
	}
	return NULL;
}

EunoSuspect *
euno_gc_remember(const EunoTreeKey *key, bool moved)
{
	EunoSuspect *suspect = moved ? NULL : euno_gc_find(key);
	MemoryContext old;

	if (suspect != NULL)
		return suspect;
	old = MemoryContextSwitchTo(TopMemoryContext);
	suspect = palloc0(sizeof(EunoSuspect));
	suspect->key = *key;
	suspect->moved = moved;
	suspects = lappend(suspects, suspect);
	MemoryContextSwitchTo(old);
	return suspect;
}

/*
 * This subtransaction has not happened, or, if it is invalid, none: the index
 * that had the file has it again.
 */
static void
give_back(EunoSuspect *suspect, SubTransactionId by)
{
	EunoGiver  *giver;

	while ((giver = suspect->givers) != NULL &&
		   (by == InvalidSubTransactionId || giver->by == by))
	{
		EunoTreeSlot *slot = euno_tree_lookup(&suspect->key);

		if (slot != NULL)
			slot->index_oid = giver->index_oid;
		suspect->givers = giver->next;
		pfree(giver);
	}
}

/* They have happened. */
static void
forget_givers(EunoSuspect *suspect)
{
	EunoGiver  *giver;

	while ((giver = suspect->givers) != NULL)
	{
		suspect->givers = giver->next;
		pfree(giver);
	}
}

/*
 * Free the trees whose makers have also replaced them: whether these commit or
 * not, nobody will see their files again.
 */
static void
drop_past(void)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		EunoSuspect *suspect = lfirst(lc);

		if (!euno_gc_is_past(suspect) || suspect->dropped)
			continue;
		euno_tree_drop(&suspect->key);
		forget_givers(suspect);
		suspects = foreach_delete_current(suspects, lc);
		pfree(suspect);
	}
}

void
euno_gc_note_successor(EunoSuspect *suspect, bool dropped)
{
	if (suspect->successor != InvalidSubTransactionId)
		return;
	suspect->successor = GetCurrentSubTransactionId();
	suspect->dropped = dropped;
}

/* REINDEX and TRUNCATE leave other files of an index behind. */
static void
note_replaced(const EunoTreeKey *key, Oid index_oid)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeDescription tree;

		if (!euno_tree_describe(i, &tree) ||
			tree.index_oid != index_oid ||
			tree.key.database != key->database ||
			tree.key.temp_owner != key->temp_owner ||
			tree.key.number == key->number)
			continue;
		euno_gc_note_successor(euno_gc_remember(&tree.key, false), false);
	}
	drop_past();
}

void
euno_gc_created(const EunoTreeKey *key, Oid index_oid)
{
	note_replaced(key, index_oid);
	euno_gc_remember(key, false)->maker = GetCurrentSubTransactionId();
}

static void
add_oid(List **list, Oid oid)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	*list = list_append_unique_oid(*list, oid);
	MemoryContextSwitchTo(old);
}

/*
 * What is built while a transaction commits is of a table that is emptied at
 * each commit that follows, too.
 */
void
euno_gc_built(Oid heap)
{
	if (committing)
		add_oid(&emptied, heap);
}

void
euno_gc_table_dropped(Oid table)
{
	if (list_member_oid(emptied, table))
		add_oid(&dropped, table);
}

/* Just before a commit: what was dropped, and not by what was rolled back? */
static void
look_for_dropped(void)
{
	ListCell   *lc;

	foreach(lc, dropped)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			dropped = foreach_delete_current(dropped, lc);
	}
}

/* There may be many in a session's life. */
static void
forget_dropped(bool committed)
{
	ListCell   *lc;

	if (committed)
	{
		foreach(lc, dropped)
			emptied = list_delete_oid(emptied, lfirst_oid(lc));
	}
	list_free(dropped);
	dropped = NIL;
}

/*
 * The commit has failed, and may have emptied tables, which cannot be undone.
 * Trees of such tables were empty when the transaction began: those that have
 * entries, which it has made, are given up.
 */
static void
give_up_emptied(void)
{
	EunoProcess *process = euno_process();

	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);
		uint64		generation = pg_atomic_read_u64(&slot->generation);
		bool		wrong;

		euno_epoch_enter(process);
		wrong = euno_tree_state(slot) == EUNO_STATE_READY &&
			list_member_oid(emptied, slot->heap_oid) &&
			slot->key.database == MyDatabaseId &&
			slot->key.temp_owner == euno_my_proc_number() &&
			slot->ops->entries(&slot->tree) > 0;
		euno_epoch_exit(process);
		if (wrong)
			(void) euno_tree_retire(slot, generation);
	}
}

/* Nothing more is known of those whose fate is decided. */
static void
forget(bool committed)
{
	ListCell   *lc;

	foreach(lc, suspects)
	{
		EunoSuspect *suspect = lfirst(lc);

		forget_givers(suspect);
		if (committed && !suspect->gone && --suspect->lives > 0)
		{
			suspect->maker = suspect->successor = InvalidSubTransactionId;
			suspect->dropped = false;
			continue;
		}
		suspects = foreach_delete_current(suspects, lc);
		pfree(suspect);
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (event == XACT_EVENT_ABORT && committing && euno_preloaded)
		give_up_emptied();
	if (event == XACT_EVENT_PRE_COMMIT)
		look_for_dropped();
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		forget_dropped(event == XACT_EVENT_COMMIT);
	committing = event == XACT_EVENT_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE;
	foreach(lc, suspects)
	{
		EunoSuspect *suspect = lfirst(lc);

		switch (event)
		{
			case XACT_EVENT_PRE_COMMIT:
				suspect->gone = !euno_gc_file_exists(&suspect->key);
				break;
			case XACT_EVENT_COMMIT:
				if (suspect->gone)
					euno_tree_drop(&suspect->key);
				break;
			case XACT_EVENT_ABORT:
				if (suspect->maker != InvalidSubTransactionId)
					euno_tree_drop(&suspect->key);
				give_back(suspect, InvalidSubTransactionId);
				break;
			case XACT_EVENT_PREPARE:
				/* Its fate is not ours any more; what is moved may come back. */
				if (suspect->moved)
					euno_tree_drop(&suspect->key);
				else
					euno_gc_leave_to_prepared(suspect);
				break;
			default:
				return;
		}
	}
	if (event != XACT_EVENT_PRE_COMMIT)
		forget(event == XACT_EVENT_COMMIT);
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	bool		aborted = event == SUBXACT_EVENT_ABORT_SUB;
	ListCell   *lc;

	if (!aborted && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	foreach(lc, suspects)
	{
		EunoSuspect *suspect = lfirst(lc);

		if (suspect->successor == my_subid)
		{
			suspect->successor = aborted ? InvalidSubTransactionId : parent_subid;
			suspect->dropped &= !aborted;
		}
		if (aborted)
			give_back(suspect, my_subid);
		for (EunoGiver *giver = suspect->givers; giver != NULL; giver = giver->next)
		{
			if (giver->by == my_subid)
				giver->by = parent_subid;
		}
		if (suspect->maker == my_subid && !aborted)
			suspect->maker = parent_subid;
		else if (suspect->maker == my_subid)
			suspect->successor = my_subid;	/* none: drop_past is to drop it */
	}
	drop_past();
}

void
euno_gc_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
	euno_gc_ddl_init();
}
