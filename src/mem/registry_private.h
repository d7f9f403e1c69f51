/*-------------------------------------------------------------------------
 *
 * registry_private.h
 *	  What the registry shares between its files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_REGISTRY_PRIVATE_H
#define EUNO_REGISTRY_PRIVATE_H

#include "postgres.h"

#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/hsearch.h"

#include "mem/euno_registry.h"

/* In shared memory. */
typedef struct EunoRegistry
{
	uint64		next_generation;	/* under euno_registry_lock */
	int			used;			/* slots below this have been used */
	Latch	   *launcher;		/* NULL: it is not running; under
								 * euno_registry_lock */
	pg_atomic_uint32 launcher_called;
	pg_atomic_uint32 asked_workers;
	EunoTreeSlot slots[FLEXIBLE_ARRAY_MEMBER];
} EunoRegistry;

/* From a tree's key to the number of its slot; under euno_registry_lock. */
typedef struct EunoTreeHashEntry
{
	EunoTreeKey key;
	int			number;
} EunoTreeHashEntry;

extern EunoRegistry *euno_registry;
extern HTAB *euno_tree_hash;
extern LWLock *euno_registry_lock;	/* EUNO_REGISTRY_TRANCHE */

#endif							/* EUNO_REGISTRY_PRIVATE_H */
