/*-------------------------------------------------------------------------
 *
 * euno_heat.h
 *	  Which places of a tree are fought for, and by what: the table that both
 *	  structures note conflicts in.
 *
 * A place is what operations wait for or look at again: a leaf of the B+tree, a
 * node of a radix tree.  It has a number, which is all that two conflicts have to
 * have in common to be about one place, and is found by a key that was fought
 * for.  There is no pointer to it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_HEAT_H
#define EUNO_HEAT_H

#include "core/euno_core.h"

/*
 * One conflict in so many is noted, and stands for all of them.  Conflicts of
 * a context before it makes the table.  Tests have others.
 */
#ifndef EUNO_HEAT_SAMPLE
#define EUNO_HEAT_SAMPLE	8
#define EUNO_HEAT_FIRST		16
#endif

typedef struct EunoHeatTable EunoHeatTable;

/* A place, as who notes a conflict knows it. */
typedef struct EunoHeatPlace
{
	uint32_t	number;			/* not 0 */
	int			state;			/* a byte, another one after the place was split or
								 * made anew; 0 or -1: not known, and -1 leaves
								 * what was noted before */
	uint8_t		prefix;			/* see EunoHeat */
} EunoHeatPlace;

/* Not a conflict: a write that somebody else has performed ... */
#define EUNO_CAUSE_DELEGATED	((EunoCause) EUNO_CAUSES)

/* ... or one that nothing can be said of. */
#define EUNO_CAUSE_NONE			((EunoCause) (EUNO_CAUSES + 1))

/*
 * One more conflict of this context, or a write that counts as one; is it one
 * of those that are noted?
 */
static inline bool
euno_heat_is_due(EunoContext *cx)
{
	cx->conflicts++;
	return (cx->conflicts >= EUNO_HEAT_FIRST &&
			cx->conflicts % EUNO_HEAT_SAMPLE == 0) || cx->count_all;
}

/* Are many of the writes performed by one process for others? */
static inline bool
euno_heat_is_delegated(const EunoHeat *heat)
{
	return heat->delegated > (heat->fresh + heat->before) / 4;
}

extern uint32_t euno_heat_note(EunoContext *cx, EunoTree *tree,
							   EunoHeatTable **table,
							   const EunoHeatPlace *place,
							   const EunoPosition *pos, EunoCause cause);
extern bool euno_heat_take_apart(EunoContext *cx, EunoHeatTable **table,
								 uint32_t number, uint32_t conflicts);
extern uint32_t euno_heat_read(EunoContext *cx, EunoHeatTable **table,
							   bool round, EunoHeat *to, uint32_t max);

#endif							/* EUNO_HEAT_H */
