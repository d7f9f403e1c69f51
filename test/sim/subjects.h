/*-------------------------------------------------------------------------
 *
 * subjects.h
 *	  The structures that can be put to work.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include "workload.h"

extern const Subject subject_bptree;
extern const Subject subject_art_olc;
extern const Subject subject_art_rowex;

/* Models of other protocols; in the simulation only. */
extern const Subject subject_olc;
extern const Subject subject_coupling;
extern const Subject subject_global;
extern const Subject subject_nbtree;

/* Plain trees with copies of pages on each node; see peer_olc.c. */
extern const Subject subject_copies_all;
extern const Subject subject_copies_own;
extern const Subject subject_copies_inner;
extern const Subject subject_copies_root;

/* Set by the program: waiting, and where nodes come from. */
extern EunoEnvironment subject_env;

/* Domains of the trees, and the one that a thread belongs to. */
extern int	subject_domains;

/* Directories of a tree; 0: as many as domains. */
extern int	subject_directories;
extern int	subject_domain(uint32_t thread);

/*
 * Of a radix tree, the inner nodes that branch on one of the first so many
 * bytes are there for each node of the machine, as long as they are not
 * replaced: the best that copies could do.
 */
extern uint32_t subject_copies;
extern void subject_copy(const void *address, size_t size);

/* Of so many of the most frequent rows, the leaves are made contended. */
extern uint64_t subject_contended;

/* No process has another one perform its writes. */
extern bool subject_alone;

/* Conflicts a second that make a leaf hot. */
extern double subject_hot_rate;

/* Conflicts after which a leaf is split between its keys; 0: none is. */
extern uint32_t subject_part;

/*
 * Each operation is a transaction, and counted at its end, in one of so many
 * stripes, as many of them for each domain; 0: is not counted.
 */
extern uint32_t subject_tallies;

#endif							/* SUBJECTS_H */
