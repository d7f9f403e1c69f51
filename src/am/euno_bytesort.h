/*-------------------------------------------------------------------------
 *
 * euno_bytesort.h
 *	  Sorting entries in BYTES order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_BYTESORT_H
#define EUNO_BYTESORT_H

#include "postgres.h"

#include "core/euno_core.h"

typedef struct EunoByteSort EunoByteSort;

/* All memory, up to work_mem_kb, and temporary files are the sort's own. */
extern EunoByteSort *euno_bytesort_begin(int work_mem_kb);
extern void euno_bytesort_add(EunoByteSort *sort, const EunoEntry *entry);

/* Ends adding.  May be interrupted. */
extern void euno_bytesort_perform(EunoByteSort *sort);

/* The next entry in order; its bytes are valid until the next call. */
extern bool euno_bytesort_next(EunoByteSort *sort, EunoEntry *entry);
extern void euno_bytesort_end(EunoByteSort *sort);

#endif							/* EUNO_BYTESORT_H */
