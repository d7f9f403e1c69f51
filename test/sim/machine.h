/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  The machines that can be simulated, and what was measured of this one.
 *
 * Times are in picoseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CORES	192
#define MAX_NODES	8

/* Nanoseconds, as the tables are written in, to picoseconds. */
#define NS(x)	((uint64_t) ((x) * 1000.0))

typedef uint64_t Picoseconds;

typedef struct CacheShape
{
	uint32_t	bytes;
	uint32_t	ways;
} CacheShape;

/* One socket is one memory node. */
typedef struct Machine
{
	const char *name;
	const char *what;			/* in a figure's caption */
	uint32_t	nodes;
	uint32_t	node_cores;
	CacheShape	l1;
	CacheShape	l2;
	CacheShape	l3;				/* of a socket */
	uint32_t	tlb_pages;		/* second-level TLB, pages of 4 kB, 8 ways */
	double		slowness;		/* of plain instructions, to this machine's */

	Picoseconds l2_hit;			/* all: beyond a hit in L1 */
	Picoseconds l3_hit;
	Picoseconds tlb_miss;
	Picoseconds peer;			/* a line that another core of the socket owns */
	Picoseconds memory[4];		/* by distance; 0 = this node's.  Also what a
								 * line from a core of that node takes */
	Picoseconds atomic;			/* read-modify-write of a line that is owned */
	Picoseconds pause;
	Picoseconds sleep;			/* from a wake to the sleeper's next step */
	Picoseconds wake;			/* the waker's system call */

	/* What a transfer keeps others waiting for. */
	Picoseconds line_busy;		/* who reads a line that nobody owns */
	Picoseconds memory_busy;	/* a node's memory, for a line */
	Picoseconds link_busy;		/* a socket's link to others, for a line */

	/* Each further line of a copy, by where it comes from. */
	Picoseconds stream_l2;
	Picoseconds stream_l3;
	Picoseconds stream_memory;

	Picoseconds extent;			/* populating an extent of the arena */
	uint8_t		distance[MAX_NODES][MAX_NODES]; /* index of memory[] */
} Machine;

/*
 * What an operation costs apart from its accesses.  "Toggle": inserting or
 * removing a second TID of a key.
 */
typedef enum Work
{
	WORK_LOOKUP,
	WORK_INSERT,
	WORK_TOGGLE
} Work;

#define WORKS	3

/*
 * Reads what was measured from a file of "name value" lines; ends the program
 * if it is not what it should be.
 */
extern void calibration_read(const char *path);

/* The machine of this name, or NULL.  "which" counts from 0 for a list. */
extern const Machine *machine_named(const char *name);
extern const Machine *machine_number(uint32_t which);

/*
 * The same machine with an L2 and an L3 of so many bytes: what lies in them is
 * as with a larger index on larger ones.  0: as it is.  NULL of NULL.
 */
extern const Machine *machine_with(const Machine *machine, uint32_t l2, uint32_t l3);

/* A measured value by its name, 0 if there is none. */
extern double calibrated(const char *name);

/* "work.STRUCTURE.OPERATION" as measured, for a machine. */
extern Picoseconds work_of(const Machine *machine, const char *structure,
						   Work work);

/* The cost of one hooked access that hits in L1. */
extern Picoseconds access_of(const Machine *machine);

#endif							/* MACHINE_H */
