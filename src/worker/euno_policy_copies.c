/*-------------------------------------------------------------------------
 *
 * euno_policy_copies.c
 *	  Which indexes have inner nodes of their own in which domains.
 *
 * Copies that are asked for are made.  The others get what is left of the
 * budget, those first that are used most for their size.  One that is there
 * counts twice, so that two of about equal use do not take turns; it goes only
 * when something that is used more wants its room.  One that is not there is
 * made if it is used often enough to matter.
 *
 * (STI-BT, section 8, lowers and raises its cut-off level by use.  Here a copy
 * is all inner nodes, hardly a hundredth of the tree, or none; of a radix tree,
 * core/art/art_near_policy.c says how deep it is.)
 *
 *-------------------------------------------------------------------------
 */
#include "worker/euno_policy.h"

#include <stdlib.h>

/* How many times as much a copy is worth that is there. */
#define KEEP_FACTOR	2

static double
worth(const EunoPolicyCopy *copy)
{
	double		bytes = copy->bytes > 0 ? (double) copy->bytes : 1;

	return copy->use * (copy->made ? KEEP_FACTOR : 1) / bytes;
}

/* Most worth first; of equal ones the one that is there, then by place. */
static int
compare_copies(const void *a, const void *b)
{
	const EunoPolicyCopy *x = a;
	const EunoPolicyCopy *y = b;
	double		dx = worth(x);
	double		dy = worth(y);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	if (x->made != y->made)
		return x->made ? -1 : 1;
	if (x->tree != y->tree)
		return x->tree < y->tree ? -1 : 1;
	return x->domain < y->domain ? -1 : x->domain > y->domain;
}

void
euno_policy_copies(double least_use, uint64_t budget, EunoPolicyCopy *copies,
				   uint32_t n)
{
	qsort(copies, n, sizeof(EunoPolicyCopy), compare_copies);
	for (uint32_t i = 0; i < n; i++)
	{
		copies[i].keep = copies[i].asked;
		if (copies[i].asked)
			budget -= copies[i].bytes < budget ? copies[i].bytes : budget;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		EunoPolicyCopy *copy = &copies[i];

		if (copy->asked || copy->bytes > budget ||
			(!copy->made && copy->use < least_use))
			continue;
		copy->keep = true;
		budget -= copy->bytes;
	}
}
