/*-------------------------------------------------------------------------
 *
 * art_near_policy.h
 *	  How deep a map of a radix tree's upper nodes is, and where.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_NEAR_POLICY_H
#define ART_NEAR_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a map: the 100th part of a tree of 20 bytes an entry, and some. */
#define ART_MAP_LEAST	(64 * 1024)
#define ART_MAP_SHARE	5

/*
 * A trace: the bytes of a key, or of a node's path, after those that all keys
 * of the tree have in common, as many as there is room for, the first on top;
 * last a byte that says what it is of.
 *	  ART_TRACE_USE		a key that was sought.
 *	  n + 1				a node of which a child was replaced; this many bytes.
 */
#define ART_TRACE_BYTES	7
#define ART_TRACE_USE	0xFE

/* How a map is used: traces of the latest, drawn at random.  0: none yet. */
#ifndef ART_USES
#define ART_USES		1014
#endif

typedef struct ArtUses
{
	struct ArtUses *next;		/* of those that were taken away */
	uint64_t	base;			/* how many bytes all keys have in common */
	uint64_t	drawn[ART_USES];
} ArtUses;

/* How often keys were read and changed, sorted. */
typedef struct ArtMeasure
{
	uint32_t	nreads;
	uint32_t	nchanges;
	uint64_t	reads[ART_USES];
	uint64_t	changes[ART_USES];
} ArtMeasure;

/* A node that may go to a map. */
typedef struct ArtProspect
{
	uint32_t	children;
	uint32_t	inners;			/* of these, inner nodes */
	uint64_t	bytes;			/* that a copy would take */
	uint32_t	reads;			/* of those drawn, on the way to it */
	uint32_t	changes;		/* and replaced children of it */
} ArtProspect;

extern uint32_t euno_art_near_reads(const ArtMeasure *measure, uint64_t trace,
									uint32_t n);
extern uint32_t euno_art_near_changes(const ArtMeasure *measure,
									  uint64_t trace, uint32_t n);
extern bool euno_art_near_earns(const ArtProspect *node, uint32_t all_reads,
								uint64_t limit);
extern bool euno_art_near_missed(const ArtProspect *node, uint32_t all_reads,
								 uint64_t limit);
extern bool euno_art_near_fills(const ArtProspect *node);
extern bool euno_art_near_outgrown(uint32_t reads, uint32_t unserved,
								   uint32_t unserved_first);

#endif							/* ART_NEAR_POLICY_H */
