/*-------------------------------------------------------------------------
 *
 * euno_snapshot.h
 *	  Trees that survive a clean restart, in a file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SNAPSHOT_H
#define EUNO_SNAPSHOT_H

#include "postgres.h"

#define EUNO_SNAPSHOT_FILE		"euno_index.snapshot"
#define EUNO_SNAPSHOT_TEMP_FILE	"euno_index.snapshot.tmp"	/* being written */
#define EUNO_SNAPSHOT_READ_FILE	"euno_index.snapshot.read"	/* being read */

extern bool euno_snapshot_on_shutdown;

/*
 * Where the arena must be for the trees in the file to be of use; an address
 * that is as good as any other if there is no such file.  _PG_init.
 */
extern void *euno_snapshot_address(void);

/*
 * In the postmaster, when shared memory has just been set up and no other
 * process exists: brings back the trees of the last clean shutdown if they are
 * proved to match their tables, removes the file if not, and arranges for the
 * next one.
 */
extern void euno_snapshot_shmem_startup(void);

/* Removes the file.  When the server runs, nothing in it matches any more. */
extern void euno_snapshot_discard(void);

/*
 * In every process, before it looks at a tree: gives up what was brought back
 * if the server has replayed WAL nevertheless.
 */
extern void euno_snapshot_recheck(void);

#endif							/* EUNO_SNAPSHOT_H */
