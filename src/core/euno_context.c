/*-------------------------------------------------------------------------
 *
 * euno_context.c
 *	  What an operation that was left by longjmp still holds.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* See euno_core.h.  No locks on entry or return. */
void
euno_context_reset(EunoContext *cx)
{
	if (cx->walking != NULL)
		euno_bpt_walk_leave(cx);
	if (cx->compacting != NULL)
		euno_bpt_compact_leave(cx);
	euno_bpt_spare_drop(cx);
}
