/*-------------------------------------------------------------------------
 *
 * art_near.h
 *	  Maps of the upper nodes of a radix tree: see art_near.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_NEAR_H
#define ART_NEAR_H

#include "core/art/art_near_policy.h"
#include "core/art/art_search.h"

/* In a map's slot: the reference is to a node of the tree. */
#define ART_EXIT	UINT64_C(3)

/* Behind a node of a map. */
typedef struct ArtCopyTail
{
	ArtNode    *next;			/* of the map, in the order they were made */
	uint64_t	path;			/* a trace, but for its last byte */
} ArtCopyTail;

/*
 * What is known of a domain's map; under the mutex, but for "lost", "names",
 * "uses" and "bytes".
 */
typedef struct ArtMap
{
	uint64_t	bytes;
	uint64_t	lost;			/* of the names, those that were taken out since */
	uint32_t	names;			/* nodes of the tree that it named at first */
	uint32_t	unserved;		/* euno_art_near_unserved, at first */
	uint64_t	inners;			/* that the tree had then */
	ArtUses    *uses;			/* NULL: there is no map */
	ArtNode    *old;			/* nodes of maps that were taken away */
	ArtUses    *old_uses;		/* and what was measured of them */
	uint64_t	old_epoch;
} ArtMap;

_Static_assert(sizeof(ArtMap) == 64, "a cache line");

typedef struct ArtNear
{
	ArtNode    *roots[EUNO_MAX_DOMAINS];	/* NULL: there is no map */
	ArtMap		maps[EUNO_MAX_DOMAINS];
} ArtNear;

static inline ArtCopyTail *
art_copy_tail(ArtNode *copy)
{
	return (ArtCopyTail *) ((uint8_t *) copy +
							art_node_size(art_type(copy), art_segment_len(copy)));
}

/* What a map's node takes, with its tail. */
static inline size_t
art_copy_size(ArtType type, uint32_t segment_len)
{
	return art_node_memory(art_node_size(type, segment_len) + sizeof(ArtCopyTail));
}

/* How many bytes a tree's map may take. */
static inline uint64_t
art_map_limit(EunoTree *tree)
{
	return ART_MAP_LEAST + euno_art_entries(tree) / ART_MAP_SHARE;
}

/* Adds byte number "at" of a path to the trace of what is before it. */
static inline uint64_t
art_trace_byte(uint64_t trace, uint32_t base, uint32_t at, uint8_t byte)
{
	return at < base || at - base >= ART_TRACE_BYTES ? trace :
		trace | (uint64_t) byte << (56 - 8 * (at - base));
}

/* art_near.c */
extern uint32_t euno_art_near_copies(EunoContext *cx, ArtNear *near,
									 const ArtKey *key);
extern uint64_t euno_art_near_bytes(EunoTree *tree, int domain);

/* art_near_make.c */
extern bool euno_art_near_make(EunoContext *cx, EunoTree *tree, ArtNear *near,
							   int domain);
extern uint32_t euno_art_near_unserved(EunoContext *cx, EunoTree *tree,
									   ArtNear *near, int domain,
									   uint32_t *reads);

/* art_near_use.c */
extern void euno_art_note_change(EunoContext *cx, ArtMap *map,
								 const ArtKey *path, uint32_t depth);
extern void euno_art_measure(const ArtUses *uses, ArtMeasure *measure);
extern uint64_t euno_art_trace(uint64_t trace, uint32_t base,
							   const uint8_t *path, uint32_t from, uint32_t to);

/* art_near_verify.c */

/* A slot of a map, or a copy's own, that names what it should not. */
#define ART_SUSPECTS	16

typedef struct ArtSuspect
{
	const ArtRef *slot;
	ArtRef		ref;
} ArtSuspect;

extern uint32_t euno_art_near_suspects(EunoContext *cx, EunoTree *tree,
									   ArtSuspect *suspects);

#endif							/* ART_NEAR_H */
