/*-------------------------------------------------------------------------
 *
 * euno_compat.h
 *	  Every difference between PostgreSQL 15, 16, 17, 18 and 19, in one place;
 *	  and how to sleep.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_COMPAT_H
#define EUNO_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "euno_index needs PostgreSQL 15 or later"
#endif

#ifdef EXEC_BACKEND
#error "euno_index needs fork: its memory is inherited from the postmaster"
#endif

#include "storage/proc.h"
#include "utils/rel.h"

/* 16 moved the variable-length macros out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 16 renamed RelFileNode to RelFileLocator. */
#if PG_VERSION_NUM >= 160000
#define euno_rel_db(rel)		((rel)->rd_locator.dbOid)
#define euno_rel_space(rel)		((rel)->rd_locator.spcOid)
#define euno_rel_number(rel)	((rel)->rd_locator.relNumber)
#define euno_rel_locator(rel)	((rel)->rd_locator)
#else
#define euno_rel_db(rel)		((rel)->rd_node.dbNode)
#define euno_rel_space(rel)		((rel)->rd_node.spcNode)
#define euno_rel_number(rel)	((rel)->rd_node.relNode)
#define euno_rel_locator(rel)	((rel)->rd_node)
#endif

/* 16 lets range_serialize report errors softly. */
#if PG_VERSION_NUM >= 160000
#define euno_range_serialize(type, lower, upper, empty) \
	range_serialize(type, lower, upper, empty, NULL)
#else
#define euno_range_serialize(type, lower, upper, empty) \
	range_serialize(type, lower, upper, empty)
#endif

/* 17 replaced PGPROC.pgprocno by MyProcNumber. */
#if PG_VERSION_NUM >= 170000
#define euno_my_proc_number()	(MyProcNumber)
#else
#define euno_my_proc_number()	(MyProc->pgprocno)
#endif

/* 17 may ask for stronger locks, too. */
#if PG_VERSION_NUM >= 170000
#define euno_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define euno_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode)
#endif

/*
 * Before 18, ON CONFLICT and the apply workers of logical replication take
 * every unique index for a btree; the planner's proofs of uniqueness and
 * REFRESH MATERIALIZED VIEW CONCURRENTLY know no other.
 */
#define EUNO_UNIQUE_MEANS_BTREE (PG_VERSION_NUM < 180000)

/*
 * Before 18, the planner looks up the ends of a column's values in btrees
 * only.
 */
#define EUNO_ENDS_MEAN_BTREE (PG_VERSION_NUM < 180000)

/* 18 counts what settings forbid in a path; before, it costs very much. */
#if PG_VERSION_NUM >= 180000
#define euno_path_disabled(path) ((path)->disabled_nodes)
#else
#define euno_path_disabled(path) 0
#endif

/* 18 has a support function for skipping; before, no function has this number. */
#if PG_VERSION_NUM >= 180000
#define EUNO_SKIPSUPPORT_PROC BTSKIPSUPPORT_PROC
#else
#define EUNO_SKIPSUPPORT_PROC (BTNProcs + 1)
#endif

/* 19 has OIDs of 64 bits; before, no function has this number. */
#if PG_VERSION_NUM >= 190000
#define EUNO_OID8_CMP F_BTOID8CMP
#else
#define EUNO_OID8_CMP InvalidOid
#endif

/* 18 shows which version of a library is loaded, in pg_get_loaded_modules. */
#if PG_VERSION_NUM >= 180000
#define EUNO_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "euno_index", .version = EUNO_VERSION)
#else
#define EUNO_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/*
 * 17 lets extensions name their wait events; before, they are all "Extension".
 * Used as "static uint32 event = 0; euno_wait_event(&event, name)".
 */
#if PG_VERSION_NUM >= 170000
#define euno_wait_event(cache, name) \
	(*(cache) != 0 ? *(cache) : (*(cache) = WaitEventExtensionNew(name)))
#else
#define euno_wait_event(cache, name) ((void) (cache), PG_WAIT_EXTENSION)
#endif

/*
 * 15 and 16 can prune rows that an old snapshot needs ("snapshot too old"); an
 * index that does not call TestForOldSnapshot must not be used then.
 */
#if PG_VERSION_NUM < 170000
#include "utils/snapmgr.h"
#define euno_old_snapshot_threshold_active() (old_snapshot_threshold >= 0)
#else
#define euno_old_snapshot_threshold_active() (false)
#endif

/* 18 gave vacuum_delay_point an argument. */
#if PG_VERSION_NUM >= 180000
#define euno_vacuum_delay_point() vacuum_delay_point(false)
#else
#define euno_vacuum_delay_point() vacuum_delay_point()
#endif

/* 17 renamed the variable.  XactTruncationLock is held. */
#include "access/transam.h"
#if PG_VERSION_NUM >= 170000
#define euno_oldest_clog_xid()	(TransamVariables->oldestClogXid)
#else
#define euno_oldest_clog_xid()	(ShmemVariableCache->oldestClogXid)
#endif

/* 17 runs maintenance with a safe search_path. */
#if PG_VERSION_NUM >= 170000
#define euno_restrict_search_path() RestrictSearchPath()
#else
#define euno_restrict_search_path() ((void) 0)
#endif

/* 16 lets tuplesort_getdatum return without a copy; 15 always copies. */
#if PG_VERSION_NUM >= 160000
#define euno_tuplesort_getdatum(state, value, isnull) \
	tuplesort_getdatum(state, true, true, value, isnull, NULL)
#else
#define euno_tuplesort_getdatum(state, value, isnull) \
	tuplesort_getdatum(state, true, value, isnull, NULL)
#endif

/*
 * Is what strxfrm makes of a string only a guess at its order?  It is with the C
 * library.  Up to 16 the database's own collation of that has no locale; 19 does
 * not say whose a locale is, but whom it trusts.
 */
#include "catalog/pg_collation.h"
#include "utils/pg_locale.h"
#if PG_VERSION_NUM >= 190000
#define euno_strxfrm_is_guess(locale) \
	((locale)->collate != NULL && !(locale)->collate->strxfrm_is_safe)
#define euno_strxfrm(to, from, size, locale) pg_strxfrm(to, from, size, locale)
#else
#define euno_strxfrm_is_guess(locale) \
	((locale) == NULL || (locale)->provider == COLLPROVIDER_LIBC)
#define euno_strxfrm(to, from, size, locale) \
	((locale) == NULL ? strxfrm(to, from, size) : \
	 strxfrm_l(to, from, size, (locale)->info.lt))
#endif

/* 16 renamed what a relation's statistics count. */
#include "pgstat.h"
#if PG_VERSION_NUM >= 160000
#define euno_scans_counted(rel)	((rel)->pgstat_info->counts.numscans)
#else
#define euno_scans_counted(rel)	((rel)->pgstat_info->t_counts.t_numscans)
#endif

/* 16 checks for short reads itself. */
#include "storage/buffile.h"
#if PG_VERSION_NUM >= 160000
#define euno_buffile_read(file, ptr, size) BufFileReadExact(file, ptr, size)
#else
static inline void
euno_buffile_read(BufFile *file, void *ptr, size_t size)
{
	if (BufFileRead(file, ptr, size) != size)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file of a euno index build")));
}
#endif

/*
 * 17 tells how many keys a parallel scan will have, 18 of which index, and 18
 * renamed the place of the access method's own state.
 */
#include "access/genam.h"
#if PG_VERSION_NUM >= 180000
#define EUNO_ESTIMATE_PARALLEL_SCAN \
	Size eunoestimateparallelscan(Relation index, int nkeys, int norderbys)
#define euno_parallel_scan_offset(pscan) ((pscan)->ps_offset_am)
#elif PG_VERSION_NUM >= 170000
#define EUNO_ESTIMATE_PARALLEL_SCAN \
	Size eunoestimateparallelscan(int nkeys, int norderbys)
#define euno_parallel_scan_offset(pscan) ((pscan)->ps_offset)
#else
#define EUNO_ESTIMATE_PARALLEL_SCAN \
	Size eunoestimateparallelscan(void)
#define euno_parallel_scan_offset(pscan) ((pscan)->ps_offset)
#endif

/* 18 counts searches in the scan descriptor too. */
#include "access/relscan.h"
static inline void
euno_count_index_scan(IndexScanDesc scan)
{
	pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
	if (scan->instrument)
		scan->instrument->nsearches++;
#endif
}

/*
 * Does a collation order strings like memcmp?  17 counts the builtin provider
 * in; 18 replaced the function by a field.
 */
#if PG_VERSION_NUM >= 180000
#define euno_collation_is_c(coll) (pg_newlocale_from_collation(coll)->collate_is_c)
#else
#define euno_collation_is_c(coll) lc_collate_is_c(coll)
#endif

/* 17 estimates an array's length with the planner's help. */
#include "utils/selfuncs.h"
#if PG_VERSION_NUM >= 170000
#define euno_array_length(root, node) estimate_array_length(root, node)
#else
#define euno_array_length(root, node) ((void) (root), (double) estimate_array_length(node))
#endif

/* 18 added btree's support function 6 (skip support). */
#if PG_VERSION_NUM >= 180000
#define EUNO_NSUPPORT	6
#else
#define EUNO_NSUPPORT	5
#endif
#define EUNO_OPTIONS_PROC 5		/* as btree's */

/* 18 asks each ordered access method what its strategies mean: btree's. */
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "access/stratnum.h"
static inline CompareType
euno_translate_strategy(StrategyNumber strategy, Oid opfamily)
{
	return strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber ?
		(CompareType) strategy : COMPARE_INVALID;
}

static inline StrategyNumber
euno_translate_cmptype(CompareType cmptype, Oid opfamily)
{
	return cmptype >= COMPARE_LT && cmptype <= COMPARE_GT ?
		(StrategyNumber) cmptype : InvalidStrategy;
}
#endif

/*
 * What later versions added to an access method: summarizing (16), parallel
 * builds and the end of a series of inserts (17), hashing, the meaning of
 * operators, and the height of the tree (18; only cost estimates of an access
 * method's own look at it, and ours does not).
 */
#include "access/amapi.h"
#if PG_VERSION_NUM >= 160000
#define EUNO_FIELDS_OF_16 .amsummarizing = false,
#else
#define EUNO_FIELDS_OF_16
#endif
#if PG_VERSION_NUM >= 170000
#define EUNO_FIELDS_OF_17 .amcanbuildparallel = true, .aminsertcleanup = NULL,
#else
#define EUNO_FIELDS_OF_17
#endif
#if PG_VERSION_NUM >= 180000
#define EUNO_FIELDS_OF_18 \
	.amcanhash = false, \
	.amconsistentequality = true, \
	.amconsistentordering = true, \
	.amgettreeheight = NULL, \
	.amtranslatestrategy = euno_translate_strategy, \
	.amtranslatecmptype = euno_translate_cmptype,
#else
#define EUNO_FIELDS_OF_18
#endif

/* Before 19, the caller frees what the access method's handler returns. */
static inline Datum
euno_return_amroutine(const IndexAmRoutine *routine)
{
#if PG_VERSION_NUM >= 190000
	return PointerGetDatum(routine);
#else
	IndexAmRoutine *copy = palloc(sizeof(IndexAmRoutine));

	*copy = *routine;
	return PointerGetDatum(copy);
#endif
}

/*
 * What the planner knows of a table can be changed, since 19 in another hook.
 */
#if PG_VERSION_NUM >= 190000
#include "optimizer/pathnode.h"
#define euno_relation_hook build_simple_rel_hook
#define euno_relation_hook_type build_simple_rel_hook_type
#define EUNO_RELATION_HOOK(name) \
	name(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
#define euno_relation_hook_next(hook) (hook) (root, rel, rte)
#define euno_relation_is_parent() (rte->inh)
#else
#include "optimizer/plancat.h"
#define euno_relation_hook get_relation_info_hook
#define euno_relation_hook_type get_relation_info_hook_type
#define EUNO_RELATION_HOOK(name) \
	name(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
#define euno_relation_hook_next(hook) (hook) (root, relation, inhparent, rel)
#define euno_relation_is_parent() (inhparent)
#endif

/*
 * An index scan has pinned another page of the table, by ours: what the heap does
 * then.  19 notes which page it is, and may say in the visibility map that all of
 * it is visible to everybody.
 */
#include "access/heapam.h"
static inline void
euno_fetch_switched(IndexFetchHeapData *fetch, BlockNumber block)
{
#if PG_VERSION_NUM >= 190000
	fetch->xs_blk = block;
	heap_page_prune_opt(fetch->xs_base.rel, fetch->xs_cbuf, &fetch->xs_vmbuffer,
						(fetch->xs_base.flags & SO_HINT_REL_READ_ONLY) != 0);
#else
	(void) block;
	heap_page_prune_opt(fetch->xs_base.rel, fetch->xs_cbuf);
#endif
}

/* 19 made a buffer's state wider, and has ReadRecentBuffer count a use. */
#define EUNO_RECENT_USE_IS_COUNTED (PG_VERSION_NUM >= 190000)
#if PG_VERSION_NUM >= 190000
typedef uint64 EunoBufferState;
#define euno_buffer_state_read(desc) pg_atomic_read_u64(&(desc)->state)
#define euno_buffer_state_replace(desc, old, new) \
	pg_atomic_compare_exchange_u64(&(desc)->state, old, new)
#else
typedef uint32 EunoBufferState;
#define euno_buffer_state_read(desc) pg_atomic_read_u32(&(desc)->state)
#define euno_buffer_state_replace(desc, old, new) \
	pg_atomic_compare_exchange_u32(&(desc)->state, old, new)
#endif

/* 19 gave scans of tables options that their callers may set. */
#if PG_VERSION_NUM >= 190000
#define euno_beginscan_parallel(heap, scan) \
	table_beginscan_parallel(heap, scan, SO_NONE)
#else
#define euno_beginscan_parallel(heap, scan) table_beginscan_parallel(heap, scan)
#endif

/* 19 gives a hash table in shared memory one size. */
#if PG_VERSION_NUM >= 190000
#define euno_shmem_init_hash(name, size, info, flags) \
	ShmemInitHash(name, size, info, flags)
#else
#define euno_shmem_init_hash(name, size, info, flags) \
	ShmemInitHash(name, size, size, info, flags)
#endif

/*
 * Defines euno_FUNCTION: a conversion to timestamp or timestamptz which says
 * whether the result would be above (1) or below (-1) all of these.  19 has a soft
 * error and infinity for that.
 */
#include "utils/date.h"
#include "utils/timestamp.h"
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
#define EUNO_CONVERSION(function, kind) \
static inline Timestamp \
euno_##function(kind value, int *overflow) \
{ \
	ErrorSaveContext errors = {.type = T_ErrorSaveContext}; \
	Timestamp	result = function##_safe(value, (Node *) &errors); \
	\
	*overflow = !errors.error_occurred ? 0 : TIMESTAMP_IS_NOEND(result) ? 1 : -1; \
	return result; \
}
#else
#define EUNO_CONVERSION(function, kind) \
static inline Timestamp \
euno_##function(kind value, int *overflow) \
{ \
	return function##_opt_overflow(value, overflow); \
}
#endif

/* 16 calculates in time zones by name; before, no function has this number. */
#if PG_VERSION_NUM >= 160000
#define EUNO_DATE_ADD		F_DATE_ADD_TIMESTAMPTZ_INTERVAL_TEXT
#define EUNO_DATE_SUBTRACT	F_DATE_SUBTRACT_TIMESTAMPTZ_INTERVAL_TEXT
#else
#define EUNO_DATE_ADD		InvalidOid
#define EUNO_DATE_SUBTRACT	InvalidOid
#endif

/* 16 has one function for the rights on objects of all kinds. */
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_proc.h"
#define euno_function_aclcheck(function, role) \
	object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE)
#define euno_is_table_owner(table, role) \
	object_ownercheck(RelationRelationId, table, role)
#else
#define euno_function_aclcheck(function, role) \
	pg_proc_aclcheck(function, role, ACL_EXECUTE)
#define euno_is_table_owner(table, role) \
	pg_class_ownercheck(table, role)
#endif

/*
 * Sleep where pg_stat_activity can see it, from 17 on by this name; README.md
 * lists them.  Naming an event may raise.
 */
#include "utils/wait_event.h"
#define euno_sleep(name, microseconds) \
	do { \
		static uint32 event_ = 0; \
		\
		pgstat_report_wait_start(euno_wait_event(&event_, name)); \
		pg_usleep(microseconds); \
		pgstat_report_wait_end(); \
	} while (0)

#endif							/* EUNO_COMPAT_H */
