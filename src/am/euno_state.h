/*-------------------------------------------------------------------------
 *
 * euno_state.h
 *	  Which trees there are: building what is absent, and giving up what is
 *	  gone or does not fit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_STATE_H
#define EUNO_STATE_H

#include "datatype/timestamp.h"

#include "am/euno_am.h"

/* ---- euno_state.c: who may serve, and who builds what is absent ---- */

/*
 * Can euno indexes be used in this server at all?  If not, *why and *hint say
 * so in sentences for errdetail and errhint.
 */
extern bool euno_can_serve(const char **why, const char **hint);

#define EUNO_NOT_LOADED	"euno_index was not loaded at server start"
#define EUNO_NOT_LOADED_HINT \
	"Add \"euno_index\" to \"shared_preload_libraries\" and restart the server."

extern void euno_require_serving(Relation index);

/* The registry's slot of an index; ERROR 53400 if there is none left. */
extern EunoTreeSlot *euno_index_slot(EunoIndex *idx);

/*
 * ERROR if the tree is being given up, and one of our own operations may keep
 * its memory: this must not be waited for.
 */
extern void euno_refuse_own_wait(EunoTreeSlot *slot, Relation index);

/* ERROR if this session is in the middle of building the tree. */
extern void euno_refuse_own_build(const EunoTreeSlot *slot, Relation index);

/*
 * Build the tree if it is not READY; a background worker does it if this
 * session must not (euno_trust.c).  May wait for another builder.
 */
extern void euno_index_try_build(EunoIndex *idx, Relation index);

/*
 * Builds the tree if it is not READY, but does nothing if somebody else has the
 * build lock.  Waits for the last readers of a tree that was given up, and for
 * a ShareLock on a table that is no heap, if the caller does not have it.
 */
extern void euno_index_build_if_idle(EunoIndex *idx, Relation index);

/*
 * Pins a tree that is READY (see euno_index_pin), having it built, again and
 * again, until it is.  Nothing is held before; what was known of another
 * generation of the tree counts no more.  Waits, runs functions of users, and
 * raises, as euno_index_try_build does; nothing is pinned then.
 */
extern void euno_index_pin_ready(EunoIndex *idx, Relation index,
								 EunoContext **cx);

/*
 * The tree of an index of this table has become READY or ceased to be: tells
 * all backends, at once.
 */
extern void euno_invalidate_plans(Oid database, Oid heap_oid);

/*
 * The lock that makes builders (Exclusive) wait for each other, bulk delete
 * (Share) for them, and both for a check (RowExclusive).
 */
extern void euno_build_lock(Oid index_oid, LOCKMODE mode);
extern void euno_build_unlock(Oid index_oid, LOCKMODE mode);

/*
 * Is this a living process of our lock group (a parallel query), other than
 * ourselves?  Such locks do not exclude it.
 */
extern bool euno_in_our_group(int pid);

/* ---- euno_rebuild.c: building what is absent ---- */

/* The most processes that may rebuild at the same time; a setting. */
extern int	euno_rebuild_workers;

/*
 * Builds the tree of an index that is ABSENT.  The build lock is held.  Does
 * nothing if a member of our lock group has started before us.
 */
extern void euno_rebuild_tree(EunoIndex *idx, Relation index,
							  EunoTreeSlot *slot);

/*
 * Run as the table's owner, security-restricted, as CREATE INDEX runs index
 * expressions.  An error's abort restores the user by itself.
 */
typedef struct EunoOwner
{
	Oid			save_userid;
	int			save_sec_context;
	int			save_nestlevel;
} EunoOwner;

extern void euno_become_owner(Relation heap, EunoOwner *owner);
extern void euno_restore_user(EunoOwner *owner);

/*
 * Start a build: an empty tree of the index's kind in a slot that is ABSENT.
 */
extern EunoStatus euno_tree_create(EunoIndex *idx, EunoTreeSlot *slot,
								   Relation index);

/* ---- euno_trust.c ---- */

/*
 * May keys depend on settings, or on definitions that a transaction may change
 * and roll back?
 */
extern bool euno_index_varies(Relation index);

/* Has this session the rights of the table's owner? */
extern bool euno_session_is_trusted(Relation index);

/*
 * May this session evaluate the index's expressions with the rights of the
 * table's owner, for rows of others?  Only this one, and who may become it, if
 * functions of users are run.
 */
extern bool euno_session_may_evaluate(Relation index);

/* Who builds an index that this session needs? */
typedef enum EunoBuilder
{
	EUNO_BUILDER_SESSION,		/* the session, and its tree stays */
	EUNO_BUILDER_PRIVATE,		/* the session, for itself (euno_private.c) */
	EUNO_BUILDER_WORKER			/* a background worker */
} EunoBuilder;

extern EunoBuilder euno_index_builder(Relation index);

/* ---- euno_private.c: trees that nobody else reads before we commit ---- */

extern void euno_private_init(void);
extern bool euno_is_private(Relation index);

/*
 * The tree of this name, which is private, is about to be built: it will be
 * given up when this (sub)transaction, or one that it is in, is rolled back,
 * and, unless nobody else will ever read it, when all commits, too.
 */
extern void euno_private_note(const EunoTreeKey *key);

/*
 * worker/euno_build_worker.c: has a background worker build the tree, and
 * waits for that.  The build lock is not held.  ERROR if the tree is not READY
 * then.
 */
extern void euno_build_by_worker(EunoIndex *idx, Relation index);

/* ---- euno_full.c: when memory runs out ---- */

extern void euno_full_define_settings(void);

/*
 * There was no memory for a change to this index.  Makes room by freeing trees
 * whose relation is gone, or, with "evict", by giving up some tree, perhaps
 * this one, and says so in a WARNING; true if it is worth trying again, false
 * if the statement has to fail.  Nothing pinned on entry.
 */
extern bool euno_full_make_room(EunoIndex *idx, bool evict);

/* ---- euno_absent.c: when is an absent tree built though nobody waits? ---- */

/* A tree of this many bytes did not fit: not to be tried again for a while. */
extern void euno_absent_note_full(EunoTreeSlot *slot, uint64 bytes);

/* Did it not fit, just now? */
extern bool euno_absent_for_room(const EunoTreeSlot *slot);

/*
 * An attempt begins, which counts as failed until its tree is READY, or the
 * tree was found to be inconsistent.
 */
extern void euno_absent_note_failure(EunoTreeSlot *slot);

/* A query could have used it: the launcher is to see to it, if it may now. */
extern void euno_absent_want(EunoTreeSlot *slot);

/* May a worker build it now? */
extern bool euno_absent_may_try(const EunoTreeSlot *slot);

/*
 * Why it is absent, as euno_stat_indexes shows it.  *retry_at: not to be built
 * unasked before that, or 0.
 */
extern const char *euno_absent_reason(const EunoTreeSlot *slot,
									  TimestampTz *retry_at);

/* ---- euno_gc.c: trees whose relation, or rows, are gone ---- */

extern void euno_gc_init(void);

/*
 * Has the transaction, or a part of it, changed what keys may be made by?  At
 * its end: the next one has not.
 */
extern bool euno_gc_has_definitions(void);
extern void euno_gc_forget_definitions(void);

/* Remember that this (sub)transaction made "key" a tree's name. */
extern void euno_gc_created(const EunoTreeKey *key, Oid index_oid);

/*
 * An index of this table is being built because the server asked, perhaps at
 * commit.
 */
extern void euno_gc_built(Oid heap);

/*
 * After COMMIT or ROLLBACK PREPARED: frees the trees that are of no use any
 * more.
 */
extern void euno_gc_prepared(void);

/* Collect what DROP, rollback and rewrites left behind in this database. */
extern int	euno_gc_database(void);

#endif							/* EUNO_STATE_H */
