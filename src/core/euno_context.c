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
	for (int i = 0; i < 4; i++)
	{
		if (cx->spare[i] != NULL)
		{
			cx->env->free(cx->spare_tree->alloc_arg, cx->domain, cx->spare[i],
						  cx->spare_size[i]);
			cx->spare[i] = NULL;
		}
	}
	cx->spare_tree = NULL;
}
