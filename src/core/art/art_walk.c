/*-------------------------------------------------------------------------
 *
 * art_walk.c
 *	  Showing every entry to the caller, and removing those it wants gone.
 *
 * The walk reads the entries in order, and its place is a bound, not a node.
 * An entry's place in that order never changes, whatever happens to nodes, so
 * none is missed, and nothing has to be kept from being merged meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#define WALK_ITEMS	256
#define WALK_BUF	(16 * 1024)

typedef struct Walk
{
	EunoCursor	cursor;
	EunoBatch	batch;
	EunoTid		tids[WALK_ITEMS];
	EunoItemKey keys[WALK_ITEMS];
	uint8_t		buf[WALK_BUF] __attribute__((aligned(8)));
} Walk;

/* Shows one batch, and removes what is to go. */
static EunoStatus
walk_batch(EunoContext *cx, EunoTree *tree, EunoWalk *walk, Walk *w)
{
	for (uint32_t i = 0; i < w->batch.nitems; i++)
	{
		EunoStatus	status;
		EunoEntry	entry = {
			.key = w->buf + w->keys[i].offset,
			.keylen = w->keys[i].keylen,
			.tid = w->tids[i]
		};

		if (!walk->decide(walk->arg, w->tids[i]))
		{
			walk->kept++;
			continue;
		}
		status = euno_art_remove(cx, tree, &entry, NULL);
		if (status == EUNO_OK)
			walk->removed++;
		else if (status != EUNO_NOT_FOUND)
			return status;
	}
	return EUNO_OK;
}

/* See EunoTreeOps.  decide and pause are called without locks and epoch. */
EunoStatus
euno_art_walk(EunoContext *cx, EunoTree *tree, EunoWalk *walk)
{
	EunoStatus	status;
	Walk		w;

	memset(&w.cursor.lo, 0, sizeof(w.cursor.lo));
	memset(&w.cursor.hi, 0, sizeof(w.cursor.hi));
	w.cursor.lo.side = -1;
	w.cursor.hi.side = 1;
	euno_cursor_start(&w.cursor);
	memset(&w.batch, 0, sizeof(w.batch));
	w.batch.max_items = WALK_ITEMS;
	w.batch.tids = w.tids;
	w.batch.want_keys = true;
	w.batch.keys = w.keys;
	w.batch.buf = w.buf;
	w.batch.buf_size = WALK_BUF;
	walk->removed = walk->kept = 0;
	do
	{
		status = euno_art_read(cx, tree, &w.cursor, true, &w.batch);
		if (status == EUNO_OK)
			status = walk_batch(cx, tree, walk, &w);
		if (walk->pause != NULL)
			walk->pause(walk->arg);
	} while (status == EUNO_OK && w.batch.nitems > 0 && !w.cursor.at_hi);
	return status;
}
