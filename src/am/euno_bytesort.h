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

#include "storage/fileset.h"

#include "core/euno_core.h"

typedef struct EunoByteSort EunoByteSort;

/*
 * All memory, up to work_mem_kb, and temporary files are the sort's own; but a
 * participant in a parallel sort puts its runs into the file set given.
 */
extern EunoByteSort *euno_bytesort_begin(int work_mem_kb, FileSet *files,
										 int participant);
extern void euno_bytesort_add(EunoByteSort *sort, const EunoEntry *entry);

/*
 * A worker's end: leave all that was added to the file set, in sorted runs.
 * Returns how many.
 */
extern int	euno_bytesort_export(EunoByteSort *sort);

/* The leader, before performing: take over a worker's runs. */
extern void euno_bytesort_import(EunoByteSort *sort, int participant, int nruns);

/*
 * Sorts what is in memory; nothing is added after it.  To be done while others
 * are at it too; performing does it otherwise.
 */
extern void euno_bytesort_sort_memory(EunoByteSort *sort);

/* Ends adding.  May be interrupted. */
extern void euno_bytesort_perform(EunoByteSort *sort);

/* The next entry in order; its bytes are valid until the next call. */
extern bool euno_bytesort_next(EunoByteSort *sort, EunoEntry *entry);
extern void euno_bytesort_end(EunoByteSort *sort);

#endif							/* EUNO_BYTESORT_H */
