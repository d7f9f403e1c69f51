/*-------------------------------------------------------------------------
 *
 * euno_compat.h
 *	  Every difference between PostgreSQL 15, 16, 17 and 18, in one place.
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
#else
#define euno_rel_db(rel)		((rel)->rd_node.dbNode)
#define euno_rel_space(rel)		((rel)->rd_node.spcNode)
#define euno_rel_number(rel)	((rel)->rd_node.relNode)
#endif

/* 17 replaced PGPROC.pgprocno by MyProcNumber. */
#if PG_VERSION_NUM >= 170000
#define euno_my_proc_number()	(MyProcNumber)
#else
#define euno_my_proc_number()	(MyProc->pgprocno)
#endif

#endif							/* EUNO_COMPAT_H */
