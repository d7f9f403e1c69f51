/*-------------------------------------------------------------------------
 *
 * universe.h
 *	  All the entries a test may use, in order, and which of them a tree
 *	  should have now.
 *
 * The universe is made once, sorted by the plainest reading of euno_core.h's
 * rules; a model is then one byte per entry.  That is a quick oracle that has
 * nothing in common with any tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef UNIVERSE_H
#define UNIVERSE_H

#include "env.h"

typedef struct UniverseEntry
{
	EunoEntry	entry;
	uint32_t	prefix;			/* bytes of the first column */
} UniverseEntry;

typedef struct Universe
{
	const struct Shape *shape;
	UniverseEntry *entries;
	uint32_t	n;
	uint32_t	tid_slots;
	EunoTid		tid_base;
	uint32_t   *by_slot;		/* TIDs back to entries; UINT32_MAX = none */
} Universe;

/* A kind of keys. */
typedef struct Shape
{
	const char *name;
	EunoOrder	order;
	bool		posting;		/* equal keys are byte-identical, no payload */
	bool		shared_tids;	/* different keys may have the same TID */
	EunoCompare compare;		/* COMPARE order */

	/*
	 * Makes the i-th of n keys in "key"; returns its length.  Sets the length
	 * of the first column and of a payload, whose bytes the caller makes up.
	 */
	uint32_t	(*make) (Random *random, uint32_t i, uint32_t n, uint8_t *key,
						 uint32_t *prefix, uint32_t *payloadlen);
	uint32_t	weight;			/* bytes per entry divided by 16 or so */
} Shape;

extern const Shape shapes[];
extern const int nshapes;

extern const Shape *shape_by_name(const char *name);

/* Distinct entries, about n of them. */
extern Universe *universe_make(const Shape *shape, uint32_t n, uint64_t seed);
extern void universe_free(Universe *universe);

/*
 * The entry with this TID, if TIDs are not shared; UINT32_MAX if none has it.
 */
extern uint32_t universe_by_tid(const Universe *universe, EunoTid tid);

/* A bound that only a shape's comparator understands: columns of a key. */
typedef struct Bound
{
	const uint8_t *key;
	uint32_t	columns;		/* 0, 1 or all */
} Bound;

/* The number of entries below a position. */
extern uint32_t universe_below(const Universe *universe,
							   const EunoPosition *position);

/*
 * Both ends of a random range, of every kind; they may be the wrong way round.
 * "bounds" are used in COMPARE order.
 */
extern void universe_random_range(const Universe *universe, Random *random,
								  EunoPosition *lo, EunoPosition *hi,
								  Bound *bounds);

/* Before or after everything. */
extern void universe_end_position(const Universe *universe, bool low,
								  EunoPosition *position, Bound *bound);

/*
 * Comparators leave by longjmp to *compare_escape about once in
 * compare_escape_every calls, if both are set in the calling thread.
 */
extern __thread void *compare_escape;
extern __thread uint32_t compare_escape_every;
extern __thread Random compare_escape_random;

/* Called by each comparison of the calling thread, if set. */
extern __thread void (*compare_called) (void *arg);
extern __thread void *compare_called_arg;
extern int	approximate_wrongly(void *arg, const EunoPosition *pos,
								const uint8_t *key, uint32_t keylen);

/* What EunoTreeConfig, EunoEnvironment and EunoContext have of abbreviations. */
extern void shape_abbreviation(const Shape *shape, uint8_t *how);
extern int	abbreviate_wrongly(const uint8_t *how, const uint8_t *key,
							   uint32_t keylen, uint8_t *to);
extern bool abbreviate_position(void *arg, const EunoPosition *pos,
								EunoAbbreviation *to);

/* One byte per entry of the universe: is it in the tree? */
typedef struct Model
{
	const Universe *universe;
	uint8_t    *present;
	uint32_t	count;
} Model;

extern void model_init(Model *model, const Universe *universe);
extern void model_free(Model *model);

/* The first present entry at or after i, n if none. */
extern uint32_t model_next(const Model *model, uint32_t i);

/* The last present entry before i; false if none. */
extern bool model_previous(const Model *model, uint32_t i, uint32_t *found);

extern void model_set(Model *model, uint32_t i, bool present);

#endif							/* UNIVERSE_H */
