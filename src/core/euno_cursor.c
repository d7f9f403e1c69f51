/*-------------------------------------------------------------------------
 *
 * euno_cursor.c
 *	  A range scan's window: what the structures have in common.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "core/euno_core.h"

/*
 * Makes *to the position that *from is, with bytes of its own if from's are.
 */
static void
position_move(EunoPositionBuffer *to, const EunoPositionBuffer *from)
{
	to->pos = from->pos;
	if (from->pos.key == from->data)
	{
		memcpy(to->data, from->data, from->pos.keylen);
		to->pos.key = to->data;
	}
}

/*
 * Where a read starts: turns the cursor's window into an empty one at the end
 * that is read from.  False if the range has ended on that side.
 */
bool
euno_cursor_turn(EunoCursor *cursor, bool forward)
{
	bool		started = cursor->started;

	if (!started || cursor->forward != forward)
		cursor->round = (EunoRound)
		{
			.patience = 0
		};
	cursor->forward = forward;
	cursor->started = true;
	if (forward)
	{
		if (!started)
		{
			cursor->at_lo = true;
			return true;
		}
		cursor->at_lo = false;
		if (cursor->at_hi)
		{
			cursor->left.pos = cursor->hi;
			return false;
		}
		position_move(&cursor->left, &cursor->right);
		return true;
	}
	if (!started)
	{
		cursor->at_hi = true;
		return true;
	}
	cursor->at_hi = false;
	if (cursor->at_lo)
	{
		cursor->right.pos = cursor->lo;
		return false;
	}
	position_move(&cursor->right, &cursor->left);
	return true;
}

/* See euno_entry.h: an empty window at the end that was read from. */
void
euno_cursor_unread(EunoCursor *cursor, bool forward)
{
	cursor->forward = !forward; /* what comes is no circle */
	if (forward ? cursor->at_lo : cursor->at_hi)
		euno_cursor_start(cursor);
	else if (forward)
	{
		position_move(&cursor->right, &cursor->left);
		cursor->at_hi = false;
	}
	else
	{
		position_move(&cursor->left, &cursor->right);
		cursor->at_lo = false;
	}
}
