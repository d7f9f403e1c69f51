/*-------------------------------------------------------------------------
 *
 * art_near.h
 *	  Maps of the upper nodes of a radix tree: see art_near.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_NEAR_H
#define ART_NEAR_H

#include "core/art/art_search.h"

/* In a map's slot: the reference is to a node of the tree. */
#define ART_EXIT	UINT64_C(3)

/* What is known of a domain's map; under the mutex, but for "lost" and "bytes". */
typedef struct ArtMap
{
	uint64_t	bytes;
	uint64_t	names;			/* nodes of the tree that it named at first */
	uint64_t	lost;			/* and that were taken out since */
	uint64_t	inners;			/* that the tree had then */
	ArtNode    *old;			/* nodes of maps that were taken away */
	uint64_t	old_epoch;
	uint64_t	pad[2];
} ArtMap;

_Static_assert(sizeof(ArtMap) == 64, "a cache line");

typedef struct ArtNear
{
	ArtNode    *roots[EUNO_MAX_DOMAINS];	/* NULL: there is no map */
	ArtMap		maps[EUNO_MAX_DOMAINS];
} ArtNear;

extern uint64_t euno_art_near_domains(const EunoTree *tree, uint64_t domains);
extern uint64_t euno_art_near_bytes(EunoTree *tree, int domain);

#endif							/* ART_NEAR_H */
