/*-------------------------------------------------------------------------
 *
 * snapshot_private.h
 *	  What a file of trees says of the server that wrote it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNAPSHOT_PRIVATE_H
#define SNAPSHOT_PRIVATE_H

#include "postgres.h"

#include "catalog/pg_control.h"

#include "mem/euno_arena.h"

/* Which tables the trees are right for. */
typedef struct SnapshotIdentity
{
	ControlFileData control;	/* all of pg_control */
	int64		changed_sec;	/* when that file was written */
	int64		changed_nsec;
	uint64		programs;		/* server, this library, collations */
	EunoArenaPlace place;
	uint64		epoch;			/* no epoch in a tree is later */
} SnapshotIdentity;

/*
 * At the server's start: programs that are in use may be replaced later.  After
 * a crash of a process they are still those of the first time.
 */
extern void euno_snapshot_note_programs(void);

/* The tables as they are now.  False if no tree can be right for them. */
extern bool euno_snapshot_identify(SnapshotIdentity *identity);

/*
 * Gives pg_control a time of its own, if that can be had.  File systems count
 * time in ticks of some milliseconds; clones that are shut down in the same one
 * may have the same file otherwise, and different tables.
 */
extern void euno_snapshot_mark_shutdown(SnapshotIdentity *identity);

/* Has pg_control, and its time, been the same? */
extern bool euno_snapshot_same_control(const SnapshotIdentity *a,
									   const SnapshotIdentity *b);

/* NULL if the trees in a file of that identity match the tables of today. */
extern const char *euno_snapshot_why_not(const SnapshotIdentity *theirs);

#endif							/* SNAPSHOT_PRIVATE_H */
