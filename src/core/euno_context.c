/*-------------------------------------------------------------------------
 *
 * euno_context.c
 *	  What an operation holds in its context.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* See euno_context.h. */
void
euno_context_nest(EunoContext *nested, const EunoContext *outer)
{
	*nested = *outer;
	memset(&nested->held, 0, sizeof(nested->held));
	memset(&nested->counters, 0, sizeof(nested->counters));
}

/*
 * See euno_context.h.  No locks on entry or return.  Of the structures, only
 * the B+tree leaves anything in a context.
 */
void
euno_context_reset(EunoContext *cx)
{
	if (cx->held.walking != NULL)
		euno_bpt_walk_leave(cx);
	if (cx->held.compacting != NULL)
		euno_bpt_compact_leave(cx);
	euno_bpt_spare_drop(cx);
}
