/*-------------------------------------------------------------------------
 *
 * euno_gc.h
 *	  What the files about trees whose relation is gone share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_GC_H
#define EUNO_GC_H

#include "am/euno_state.h"

/* The index that had a file before ALTER TYPE gave that to another one. */
typedef struct EunoGiver
{
	struct EunoGiver *next;		/* the one before */
	SubTransactionId by;
	Oid			index_oid;
} EunoGiver;

/* A tree this transaction may have to free. */
typedef struct EunoSuspect
{
	EunoTreeKey key;
	bool		moved;			/* its table was, by "maker" */
	bool		gone;			/* found missing just before commit */
	bool		dropped;		/* its index was, by "successor", but ALTER TYPE
								 * may give the file to another one */
	int			lives;			/* at how many more commits it is looked for */
	SubTransactionId maker;		/* its abort kills it; or invalid */
	SubTransactionId successor; /* dropped the index, or made another file for
								 * it; or invalid */
	EunoGiver  *givers;			/* the last one first */
} EunoSuspect;

/* ---- euno_gc.c ---- */

/* This table is being dropped; perhaps one that commits empty in place. */
extern void euno_gc_table_dropped(Oid table);

/* Is anything suspected? */
extern bool euno_gc_suspects(void);

/*
 * Is this transaction about to commit?  Then it is too late to look at
 * pg_class, and tables that are ON COMMIT DELETE ROWS are emptied.
 */
extern bool euno_gc_committing(void);

/* The suspect of this name that is not just moved, or NULL. */
extern EunoSuspect *euno_gc_find(const EunoTreeKey *key);

/*
 * The suspect of this name, a new one if there is none; always a new one if its
 * table is moved.
 */
extern EunoSuspect *euno_gc_remember(const EunoTreeKey *key, bool moved);

/* This subtransaction drops the index, or makes another file for it. */
extern void euno_gc_note_successor(EunoSuspect *suspect, bool dropped);

/* Who made it has also replaced it, or dropped its index. */
static inline bool
euno_gc_is_past(const EunoSuspect *suspect)
{
	return suspect->maker != InvalidSubTransactionId &&
		suspect->maker == suspect->successor;
}

/* ---- euno_gc_ddl.c ---- */

extern void euno_gc_ddl_init(void);

/* ---- euno_gc_collect.c ---- */

/*
 * Does a relation of this database have this file?  Temporary files of other
 * sessions may have the same number.
 */
extern bool euno_gc_file_exists(const EunoTreeKey *key);

/* Whoever ends this transaction, which is being prepared, looks again. */
extern void euno_gc_leave_to_prepared(const EunoSuspect *suspect);

#endif							/* EUNO_GC_H */
