/*-------------------------------------------------------------------------
 *
 * euno_am.h
 *	  The access method: what its files share.
 *
 * am/ knows PostgreSQL and no node layout: it reaches a tree only through
 * EunoTreeSlot.ops.  What only builds and scans share is in euno_build.h and
 * euno_scan.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_AM_H
#define EUNO_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/relcache.h"

#include "euno_compat.h"
#include "key/euno_key.h"
#include "mem/euno_registry.h"

/* ---- euno_options.c: storage parameters ---- */

/* What an index asks for. */
typedef enum EunoStructure
{
	EUNO_STRUCTURE_BPTREE,
	EUNO_STRUCTURE_ART,
	EUNO_STRUCTURE_AUTO			/* decided by the key when the tree is built */
} EunoStructure;

typedef enum EunoSync
{
	EUNO_SYNC_UNSET,			/* as OLC */
	EUNO_SYNC_OLC,
	EUNO_SYNC_ROWEX
} EunoSync;

typedef struct EunoOptions
{
	int32		vl_len_;		/* varlena header, do not touch */
	int			fillfactor;		/* percent, 50 to 100 */
	EunoStructure structure;
	EunoSync	sync;
	EunoReplicate replicate;
} EunoOptions;

#define EUNO_DEFAULT_FILLFACTOR 90
#define EUNO_MIN_FILLFACTOR 50

extern void euno_options_init(void);
extern bytea *eunooptions(Datum reloptions, bool validate);
extern const EunoOptions *euno_options(Relation index);

/* Is each domain to have inner nodes of its own?  Tests may say so, too. */
extern EunoReplicate euno_replicate(Relation index);

/*
 * CREATE INDEX, REINDEX, ALTER INDEX: ERROR if what is asked for cannot be
 * had.
 */
extern void euno_options_check(Relation index);

/* ---- euno_index.c: what a backend knows of an index ---- */

typedef struct EunoIndex
{
	Oid			oid;
	EunoTreeKey key;
	bool		other_temp;		/* of another session's temporary table */
	EunoKeySchema *schema;
	EunoOrder	order;
	EunoReplicate replicate;
	EunoTreeSlot *slot;			/* valid while generation is the slot's */
	uint64		generation;
	uint64		inserts;		/* not yet added to the slot's */
	uint64		upkeep;			/* descents that are not to be counted there */
	EunoContext cx;
	struct EunoScan *kept_scan; /* one that has ended, or NULL */
	bool		used;			/* in this transaction: next_used is set */
	struct EunoIndex *next_used;
	bool		retired;		/* no scan is kept any more */
	struct EunoIndex *next_retired;
	MemoryContext context;		/* holds this struct and all it points to */
} EunoIndex;

/*
 * The backend's view of an open index.  After a relcache invalidation there is
 * a new one; the old one stays until the end of the transaction.
 */
extern EunoIndex *euno_index_open(Relation index);

/*
 * The same without the relation, if this backend has opened it before and
 * nothing was changed since; else NULL.
 */
extern EunoIndex *euno_index_known(Oid index_oid);

/*
 * Is the tree that this option asks for a radix tree?  "auto": for a single
 * integer (or date, or timestamp).  These are dense more often than not, and
 * for dense ones it was measured to be faster.  A radix tree needs keys that
 * are bytes: an index that has lost them since it was created has a B+tree.
 */
extern bool euno_is_radix(const EunoIndex *idx, EunoStructure structure);

/* At the end of a transaction: what was known of indexes that have changed. */
extern void euno_index_free_retired(void);

extern void euno_index_init(void);	/* once per backend */

/* euno_scan.c: frees the scan that this index keeps for the next, if any. */
extern void euno_scan_forget(EunoIndex *idx);

/* ---- euno_operation.c: getting at the tree ---- */

/*
 * Enters the epoch and says what state the index's tree is in (RETIRING and
 * FREE are reported as ABSENT).  While pinned, a tree that is not ABSENT stays
 * in memory, and idx->slot is the right one.  *cx is the context to run the
 * operation with.  Pairs with euno_index_unpin; the end of a transaction
 * or subtransaction by error unpins too.  Not to be held across anything slow
 * or that may raise, comparators apart.
 */
extern EunoState euno_index_pin(EunoIndex *idx, EunoContext **cx);
extern void euno_index_unpin(EunoIndex *idx);

/*
 * The descents that the context has counted since it had "before" were upkeep:
 * to remove entries, to compact, or to merge what was written during a build.
 * When a tree is to be given up, only searches count in its favor (euno_full.c).
 */
static inline void
euno_count_upkeep(EunoIndex *idx, const EunoContext *cx, uint64 before)
{
	/* A comparator may have led back here, and its end added all of them. */
	if (cx == &idx->cx && cx->counters.descents > before)
		idx->upkeep += cx->counters.descents - before;
}

/* What a tree had when entries were read. */
typedef struct EunoMoment
{
	uint64		generation;
	uint64		vacuum_epoch;
} EunoMoment;

/*
 * For entries that are read from now on: whoever uses one later compares it
 * with what the tree has then.  Ends with an acquire fence, so that no entry
 * is read before.  The index is pinned.
 */
static inline EunoMoment
euno_index_moment(const EunoIndex *idx)
{
	EunoMoment	moment = {idx->generation,
	pg_atomic_read_u64(&idx->slot->vacuum_epoch)};

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return moment;
}

/*
 * For operations that call back into code that may raise (walk, verify): keeps
 * the tree in memory without holding the epoch, until euno_index_unhold or the
 * end of the (sub)transaction by error.  Returns the tree's state; nothing is
 * held unless it is READY.
 */
extern EunoState euno_index_hold(EunoIndex *idx, EunoContext **cx);
extern void euno_index_unhold(EunoIndex *idx);

/*
 * A bulk delete of the tree that is held begins, and has ended: in between its
 * vacuum epoch is odd.  After an error the end of the hold makes it even.
 * Both are full barriers.
 */
extern void euno_index_begin_delete(EunoIndex *idx);
extern void euno_index_end_delete(EunoIndex *idx);

/*
 * Starts the build of a slot's tree (see euno_tree_start_build), and completes
 * it.  In between the memory is held; the end of the (sub)transaction by
 * error, or of the process, gives the tree up.  The latter returns false, with
 * all still held, if somebody else has given the tree up meanwhile.
 */
extern EunoStatus euno_index_start_build(EunoIndex *idx, EunoTreeSlot *slot,
										 const EunoTreeOps *ops,
										 const EunoTreeConfig *config);
extern bool euno_index_finish_build(EunoIndex *idx);

/* Is this very process in the middle of building that tree? */
extern bool euno_index_is_builder(const EunoTreeSlot *slot);

/*
 * Is it in an operation that may keep the memory of that tree, should it be
 * given up?
 */
extern bool euno_index_has_look(const EunoTreeSlot *slot);

/* If this process is building that index: it fails for want of memory. */
extern void euno_operation_out_of_memory(const EunoIndex *idx);

extern void euno_operation_init(void);	/* callbacks; once per backend */
extern void euno_operation_define(void);	/* in _PG_init */
/* In a parallel query's worker: those that its leader started it within. */
extern int	euno_within_operations;

/* ---- euno_error.c ---- */

/*
 * Turns a core status into an ERROR: EUNO_NO_MEMORY is 53200 naming
 * euno.max_memory, EUNO_CORRUPT retires the tree (it will be rebuilt from the
 * heap) and is XX002, EUNO_CANCELED 57014.  Nothing held but a key lock.
 */
extern void euno_index_error(EunoIndex *idx, Relation index,
							 EunoStatus status) __attribute__((noreturn));

/* ---- euno_state.c: who may serve, and who builds what is absent ---- */

/*
 * Can euno indexes be used in this server at all?  If not, *why and *hint say
 * so in sentences for errdetail and errhint.
 */
extern bool euno_can_serve(const char **why, const char **hint);

#define EUNO_NOT_LOADED	"euno_index has not been loaded at server start"
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
 * session may not (euno_trust.c).  May wait for another builder.
 */
extern void euno_index_ensure_ready(EunoIndex *idx, Relation index);

/*
 * The same, but does nothing if somebody else has the build lock.  Waits for
 * the last readers of a tree that was given up, and for a ShareLock on a table
 * that is no heap, if the caller does not have it.
 */
extern void euno_index_build_if_idle(EunoIndex *idx, Relation index);

/*
 * Pins a tree that is READY (see euno_index_pin), having it built, again and
 * again, until it is.  Nothing is held before; what was known of another
 * generation of the tree counts no more.  Waits, runs functions of users, and
 * raises, as euno_index_ensure_ready does; nothing is pinned then.
 */
extern void euno_index_pin_ready(EunoIndex *idx, Relation index,
								 EunoContext **cx);

/*
 * The tree of an index of this table has become READY or ceased to be: tells
 * all backends, at once.
 */
extern void euno_invalidate_plans(Oid database, Oid heap_oid);

/* The lock that makes builders wait for each other, and VACUUM for them. */
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

/* ---- euno_trust.c ---- */

/*
 * May this session build the index, or check it, with the rights of the table's
 * owner?  Only this one, and who may become it, if functions of users are run.
 */
extern bool euno_session_may_build(Relation index);

/*
 * worker/euno_build_worker.c: has a background worker build the tree, and
 * waits for that.  The build lock is not held.  ERROR if the tree is not READY
 * then.
 */
extern void euno_build_by_worker(EunoIndex *idx, Relation index);

/* ---- euno_build.c, euno_insert.c, euno_delete.c ---- */

extern IndexBuildResult *eunobuild(Relation heap, Relation index,
								   IndexInfo *index_info);
extern void eunobuildempty(Relation index);
extern char *eunobuildphasename(int64 phase);
#define EUNO_PHASE_SCAN		2	/* 1 is "initializing" */
#define EUNO_PHASE_SORT		3
#define EUNO_PHASE_LOAD		4

/*
 * Start a build: an empty tree of the index's kind in a slot that is ABSENT.
 */
extern EunoStatus euno_tree_create(EunoIndex *idx, EunoTreeSlot *slot,
								   Relation index);

extern bool eunoinsert(Relation index, Datum *values, bool *isnull,
					   ItemPointer heap_tid, Relation heap,
					   IndexUniqueCheck check_unique, bool index_unchanged,
					   IndexInfo *index_info);

/* Where an entry was inserted: for predicate locks. */
typedef struct EunoInserted
{
	uint64		generation;		/* of the tree */
	uint32		leaf;			/* 0: it has none */
} EunoInserted;

/*
 * Inserts an entry whose heap tuple is in place; nothing is done while the
 * tree is absent (EUNO_OK).  A key lock may be held: so it waits for no lock
 * that others keep, and the failures that it knows are returned.  What it
 * returns goes to euno_insert_done.
 */
extern EunoStatus euno_insert_entry(EunoIndex *idx, Relation index,
									Relation heap, const EunoEntry *entry,
									bool index_unchanged, EunoInserted *where);

/*
 * Afterwards, without a key lock.  False: there was no memory, and may be now;
 * try again.  ERROR if the insert failed otherwise, or for want of memory, or
 * of a serialization failure.
 */
extern bool euno_insert_done(EunoIndex *idx, Relation index, Relation heap,
							 EunoStatus status, const EunoInserted *where);

/*
 * Removes versions of rows that are dead to everybody from the leaf that
 * "entry" belongs to (bottom-up deletion, as in nbtree).
 */
extern void euno_delete_dead_versions(EunoIndex *idx, Relation index,
									  Relation heap, const EunoEntry *entry);

/*
 * ---- euno_scan.c, euno_reader.c, euno_sharedscan.c, euno_vacuum.c,
 * euno_cost.c, euno_planner.c, euno_paths.c, euno_row_compare.c,
 * euno_row_or.c ----
 */

extern IndexScanDesc eunobeginscan(Relation index, int nkeys, int norderbys);
extern void eunorescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					   ScanKey orderbys, int norderbys);
extern bool eunogettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 eunogetbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void eunoendscan(IndexScanDesc scan);
extern void eunomarkpos(IndexScanDesc scan);
extern void eunorestrpos(IndexScanDesc scan);
extern bool eunocanreturn(Relation index, int attno);
extern EUNO_ESTIMATE_PARALLEL_SCAN;
extern void eunoinitparallelscan(void *target);
extern void eunoparallelrescan(IndexScanDesc scan);

extern IndexBulkDeleteResult *eunobulkdelete(IndexVacuumInfo *info,
											 IndexBulkDeleteResult *stats,
											 IndexBulkDeleteCallback callback,
											 void *callback_state);
extern IndexBulkDeleteResult *eunovacuumcleanup(IndexVacuumInfo *info,
												IndexBulkDeleteResult *stats);

extern void eunocostestimate(PlannerInfo *root, IndexPath *path,
							 double loop_count, Cost *startup_cost,
							 Cost *total_cost, Selectivity *selectivity,
							 double *correlation, double *pages);
extern bool euno_planner_is_ours(const IndexOptInfo *info);
extern void euno_planner_init(void);
extern void euno_reader_init(void);
extern RestrictInfo *euno_row_compare_whole(const IndexOptInfo *index,
											RestrictInfo *condition);
extern bool euno_row_compare_is_among(const List *conditions);
extern void euno_row_compare_paths(PlannerInfo *root, RelOptInfo *rel);
extern void euno_row_or_paths(PlannerInfo *root, RelOptInfo *rel);
extern void euno_paths_init(void);

/* ---- euno_full.c: when memory runs out ---- */

extern void euno_full_define_settings(void);

/*
 * There was no memory for a change to this index.  Makes room by freeing trees
 * whose relation is gone, or, with "evict", by giving up some tree, perhaps
 * this one, and says so in a WARNING; true if it is worth trying again, false
 * if the statement has to fail.  Nothing pinned on entry.
 */
extern bool euno_full_make_room(EunoIndex *idx, bool evict);

/* A tree of this many bytes did not fit: not to be tried again for a while. */
extern void euno_full_note(EunoTreeSlot *slot, uint64 bytes);

/*
 * May it be built in the background?  Not for a while after it did not fit,
 * nor before there is room for what it needed then.
 */
extern bool euno_full_may_return(const EunoTreeSlot *slot);

/* ---- euno_deadlock.c: waits that the server's search does not see ---- */

/* Is the tree among those in EunoEpochSlot.held? */
static inline bool
euno_is_among_held(uint64 held, const EunoTreeSlot *slot)
{
	for (; held != 0; held >>= 16)
	{
		if ((held & 0xFFFF) == (uint64) slot->number + 1)
			return true;
	}
	return false;
}

/*
 * Wait a millisecond for other processes: those that keep the memory of this
 * tree, which is given up, by a pin or a hold; the one with this number, as long
 * as that is its hazard.  Can be canceled.  *waited, 0 at first, counts the
 * milliseconds.  Once in each deadlock_timeout, ERROR if one of those processes
 * waits for this one.  ERROR after lock_timeout, too, if it is for a tree: for
 * VACUUM, a hazard is as a pin of a buffer is.
 */
extern void euno_wait_for_look(const EunoTreeSlot *slot, int *waited);
extern void euno_wait_for_hazard(uint32 number, uint64 hazard, int *waited);

/* ---- euno_announce.c ---- */

/*
 * Announces the TID of an entry as our hazard, and sees whether the entry is
 * in the tree after that: EUNO_OK or EUNO_NOT_FOUND.  *read gets what the tree
 * had before.  EUNO_STALE: the tree is not READY.
 */
extern EunoStatus euno_announce(EunoIndex *idx, Relation index,
								const EunoEntry *entry, EunoMoment *read);

/* ---- euno_kill.c ---- */

/*
 * Removes the entry of a row that is dead to everybody, which was read after
 * this moment.  By now the TID may be another row's: not if a bulk delete has
 * begun since, or was under way, which is looked at while the leaf is locked;
 * nor from a tree that has been built since.
 */
extern void euno_remove_dead(EunoIndex *idx, const EunoEntry *entry,
							 const EunoMoment *read);

/* ---- euno_unique.c, euno_unique_build.c ---- */

/*
 * Checks that no other row has this key, and inserts it (UNIQUE_CHECK_EXISTING
 * only checks).  Builds the tree if it is not READY.  May wait for other
 * transactions, with nothing held; ERROR 23505 if the key is taken.  With
 * UNIQUE_CHECK_PARTIAL it inserts anyway, and returns false if it may be.
 */
extern bool euno_insert_unique(EunoIndex *idx, Relation index, Relation heap,
							   Datum *values, bool *isnull,
							   ItemPointer heap_tid,
							   IndexUniqueCheck check_unique,
							   bool index_unchanged);

/* Has anybody who is done, or this transaction, left the row in the table? */
extern bool euno_row_is_live(Relation heap, EunoTid tid);

/* ERROR 23505 if two live rows of a loaded, unfinished tree have one key. */
extern void euno_unique_check_build(EunoIndex *idx, Relation index,
									Relation heap);

/* ---- euno_keylock.c: locks of keys, for unique checks ---- */

extern Size euno_key_locks_shmem_size(void);
extern void euno_key_locks_shmem_startup(void);

/*
 * Takes the lock of all keys with this hash; can be interrupted.  Nothing else
 * of ours is held, but a key lock of COMPARE order.  Gives back what is held,
 * if anything: also when a (sub)transaction is aborted.
 */
extern void euno_key_lock_acquire(uint64 hash);
extern void euno_key_lock_release(void);

/* ---- euno_checking.c: rows that are being checked for uniqueness ---- */

typedef struct EunoChecking
{
	EunoTreeKey key;
	EunoTid		tid;			/* 0: none */
	int			nest_level;		/* of the transaction that checks it */
} EunoChecking;

extern Size euno_checking_shmem_size(void);
extern void euno_checking_shmem_startup(void);

/*
 * Says that this process is going to check the key of a row that its own
 * transaction has put into the table.  Before the key is locked; returns what
 * was said before (a comparator may insert, too).  "end" takes it back, while
 * the key is still locked and the entry is in; "forget" does when
 * (sub)transactions from this nesting level on end.
 */
extern EunoChecking euno_checking_begin(const EunoIndex *idx, EunoTid tid);
extern void euno_checking_end(const EunoChecking *outer);
extern void euno_checking_forget(int nest_level);

/*
 * Is the inserter of this row, whose transaction was in progress when the heap
 * was asked, yet to pass its check?  The key is locked, so that it cannot
 * pass before we unlock that.
 */
extern bool euno_is_checking(const EunoIndex *idx, EunoTid tid);

/* ---- euno_predicate.c: serializable transactions ---- */

/* What a scan has locked last; zeroed when it begins. */
typedef struct EunoPredicate
{
	bool		wanted;			/* set for every rescan */
	bool		relation;		/* the index as a whole is locked */
	uint32		leaf;			/* 0: none */
	uint64		generation;		/* of the tree that the leaf is in */
} EunoPredicate;

extern bool euno_predicate_covers(EunoPredicate *predicate, IndexScanDesc scan,
								  EunoIndex *idx, uint64 generation,
								  EunoCursor *cursor, bool forward,
								  const EunoBatch *batch);
extern void euno_predicate_check(EunoIndex *idx, Relation index, Relation heap,
								 uint64 generation, uint32 leaf);
extern void euno_predicate_check_key(EunoIndex *idx, Relation index,
									 Relation heap, const EunoEntry *entry);

#define EUNO_PREDICATE_TRANCHE "EunoPredicate"
#define EUNO_PREDICATE_STRIPES 64

/* ---- euno_ddl.c: statements that are refused, or warned of ---- */

extern void euno_ddl_init(void);

/*
 * To be called when a statement builds an index: ERROR, if it is a new one
 * with the operator class of another type than the column's, and nobody chose
 * that.
 */
extern void euno_ddl_check_types(Relation index);

/* Is this access method euno?  The server's own need not be asked. */
extern bool euno_is_our_method(Oid method);

/* ---- euno_labels.c: those of enums stay where they are ---- */

/*
 * To be called when a statement builds an index, before its keys are made:
 * until the end of this transaction, nobody moves the labels of enums among
 * its key columns.  May wait for a transaction that has.
 */
extern void euno_labels_lock(const EunoKeySchema *schema, int nkeys);

/*
 * After ALTER TYPE ... ADD VALUE: if it has moved labels, which nobody else
 * sees yet, nothing may be made of the old places.  Who creates an index with
 * these, and has not committed yet, is waited for; who comes later waits for
 * us, and sees the new ones.
 *
 * "before" are the labels of all types.  The statement has a name, which means
 * one type or another, as event triggers and other sessions have it.
 */
extern void euno_labels_check(const EunoLabel *before, int n);

/* ---- euno_validate.c ---- */

extern bool euno_validate(Oid opclassoid);
extern void euno_adjustmembers(Oid opfamilyoid, Oid opclassoid,
							   List *operators, List *functions);

/* ---- euno_funcs.c ---- */

/*
 * ERROR 42809 if it is no euno index, 42704 if there is no such relation (any
 * more), 0A000 if it is another session's temporary one.
 */
extern Relation euno_open_index_by_oid(Oid oid, LOCKMODE lockmode);

/* ---- euno_gc.c: trees whose relation, or rows, are gone ---- */

extern void euno_gc_init(void);

/* Remember that this (sub)transaction made "key" a tree's name. */
extern void euno_gc_created(const EunoTreeKey *key, Oid index_oid);

/* The slot's tree is being built because the server asked, perhaps at commit. */
extern void euno_gc_built(EunoTreeSlot *slot);

/*
 * After COMMIT or ROLLBACK PREPARED: frees the trees that are of no use any
 * more.
 */
extern void euno_gc_prepared(void);

/* Collect what DROP, rollback and rewrites left behind in this database. */
extern int	euno_gc_database(void);

/* ---- euno_debug.c: stop points for the tests ---- */

typedef enum EunoDebugCopies
{
	EUNO_COPIES_BY_USE,
	EUNO_COPIES_ALL,
	EUNO_COPIES_LAGGING			/* all, and nobody keeps them up to date */
} EunoDebugCopies;

extern char *euno_debug_stop;
extern int	euno_debug_copies;	/* EunoDebugCopies */
extern bool euno_debug_count_all;
extern void euno_debug_init(void);
extern void euno_debug_wait(const char *point);

/*
 * Never with any lock but heavyweight ones, and the key lock of a unique
 * check, held.  Inside an epoch (insert-aside) a stop keeps memory from being
 * given back, nothing else.
 */
#define EUNO_STOPS_ARE_SET() \
	unlikely(euno_debug_stop != NULL && euno_debug_stop[0] != '\0')

#define EUNO_STOP_POINT(name) \
	do { \
		if (EUNO_STOPS_ARE_SET()) \
			euno_debug_wait(name); \
	} while (0)

/* ---- hazards ---- */

/* Counts the changes of this backend's hazard word. */
extern uint64 euno_hazard_changes;

/*
 * Announce that "tid" of this tree is in use (EUNO_TID_MAX: any of its TIDs),
 * and then look at what bulk delete has done (euno_epoch.h); bulk delete
 * waits for it before its TIDs may be recycled.  One per backend: announcing
 * another replaces it, and so may any comparator that is called.
 */
static inline void
euno_hazard_set(EunoIndex *idx, EunoTid tid)
{
	euno_hazard_changes++;
	euno_hazard_announce(idx->cx.process, (uint64) idx->slot->number << 48 | tid);
}

/* Has neither a bulk delete nor a build begun since? */
static inline bool
euno_moment_is_now(const EunoIndex *idx, const EunoMoment *moment)
{
	EunoTreeSlot *slot = idx->slot;

	return likely(pg_atomic_read_u64(&slot->generation) == moment->generation &&
				  pg_atomic_read_u64(&slot->vacuum_epoch) == moment->vacuum_epoch);
}

/*
 * Announces a TID that was read of the tree after this moment.  False: a bulk
 * delete may have removed it since, so see whether its entry is still there
 * (euno_announce).
 */
static inline bool
euno_hazard_of_batch(EunoIndex *idx, EunoTid tid, const EunoMoment *read)
{
	euno_hazard_set(idx, tid);
	return euno_moment_is_now(idx, read);
}

static inline void
euno_hazard_clear(EunoProcess *process)
{
	euno_hazard_changes++;
	__atomic_store_n(&process->epochs->slots[process->slot].hazard, 0,
					 __ATOMIC_RELEASE);
}

/*
 * What a removal must find: that no bulk delete has begun since the tree's
 * vacuum epoch was this.
 */
static inline EunoGuard
euno_vacuum_guard(EunoTreeSlot *slot, uint64 vacuum_epoch)
{
	/* core reads the word with accessors of its own */
	return (EunoGuard)
	{
		.word = (const uint64_t *) &slot->vacuum_epoch.value,
			.expected = vacuum_epoch
	};
}

/* ---- entries that are read by others than scans, a batch at a time ---- */

#define EUNO_READER_ITEMS 1024

typedef struct EunoReader
{
	EunoCursor	cursor;
	EunoBatch	batch;			/* with keys; into what follows */
	EunoTid		tids[EUNO_READER_ITEMS];
	EunoItemKey keys[EUNO_READER_ITEMS];
	uint8_t		buf[EUNO_BATCH_BUF] __attribute__((aligned(8)));
} EunoReader;

static inline EunoReader *
euno_reader_make(void)
{
	EunoReader *reader = palloc(sizeof(EunoReader));

	reader->batch = (EunoBatch) {.max_items = EUNO_READER_ITEMS,
		.tids = reader->tids, .want_keys = true, .keys = reader->keys,
	.buf = reader->buf, .buf_size = EUNO_BATCH_BUF};
	return reader;
}

/* ---- TIDs ---- */

static inline EunoTid
euno_tid_pack(ItemPointer tid)
{
	return (EunoTid) ItemPointerGetBlockNumber(tid) << 16 |
		ItemPointerGetOffsetNumber(tid);
}

static inline void
euno_tid_unpack(EunoTid tid, ItemPointer result)
{
	ItemPointerSet(result, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
}

#endif							/* EUNO_AM_H */
