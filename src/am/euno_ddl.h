/*-------------------------------------------------------------------------
 *
 * euno_ddl.h
 *	  Statements that are refused, warned of, or waited for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_DDL_H
#define EUNO_DDL_H

#include "am/euno_am.h"

/* ---- euno_ddl.c: statements that are refused, or warned of ---- */

extern void euno_ddl_init(void);

/* Is it an index of ours, as the catalog has it?  Nothing need be locked. */
extern bool euno_is_our_index(Oid oid);

/*
 * To be called when a statement builds an index: ERROR, if it is a new one
 * with the operator class of another type than the column's, and nobody chose
 * that.
 */
extern void euno_ddl_check_types(Relation index);

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

#endif							/* EUNO_DDL_H */
