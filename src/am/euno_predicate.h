/*-------------------------------------------------------------------------
 *
 * euno_predicate.h
 *	  Predicate locks, for serializable transactions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_PREDICATE_H
#define EUNO_PREDICATE_H

#include "am/euno_am.h"

/* What a scan has locked last; zeroed when it begins. */
typedef struct EunoPredicate
{
	bool		wanted;			/* set for every rescan */
	bool		relation;		/* the index as a whole is locked */
	uint32		leaf;			/* 0: none */
	uint64		generation;		/* of the tree that the leaf is in */
} EunoPredicate;

extern bool euno_predicate_lock_batch(EunoPredicate *predicate, IndexScanDesc scan,
								  EunoIndex *idx, uint64 generation,
								  EunoCursor *cursor, bool forward,
								  const EunoBatch *batch);
extern void euno_predicate_check(EunoIndex *idx, Relation index, Relation heap,
								 uint64 generation, uint32 leaf);
extern void euno_predicate_check_key(EunoIndex *idx, Relation index,
									 Relation heap, const EunoEntry *entry);

#define EUNO_PREDICATE_TRANCHE "EunoPredicate"
#define EUNO_PREDICATE_STRIPES 64

#endif							/* EUNO_PREDICATE_H */
