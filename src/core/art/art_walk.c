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
#include "core/art/art_range.h"

#define WALK_ITEMS	256			/* of one batch */
#define WALK_BUF	(16 * 1024)

/* A stretch of entries, of several batches. */
typedef struct WalkStretch
{
	EunoTid		tids[EUNO_WALK_TIDS];
	EunoItemKey keys[EUNO_WALK_TIDS];
	bool		gone[EUNO_WALK_TIDS];
	uint8_t		buf[EUNO_WALK_KEYS] __attribute__((aligned(8)));
} WalkStretch;

_Static_assert(sizeof(WalkStretch) <= sizeof(((EunoWalkRoom *) 0)->own),
			   "a stretch of entries fits into a walk's room");

/* Reads entries, from the cursor on; returns their number in *n. */
static EunoStatus
walk_collect(EunoContext *cx, EunoTree *tree, EunoWalk *walk,
			 EunoCursor *cursor, uint32_t *n)
{
	WalkStretch *stretch = (WalkStretch *) walk->room->own;
	EunoStatus	status = EUNO_OK;
	uint32_t	used = 0;

	*n = 0;
	while (!cursor->at_hi &&
		   *n + WALK_ITEMS <= EUNO_WALK_TIDS && used + WALK_BUF <= EUNO_WALK_KEYS &&
		   (walk->at_once == 0 || *n < walk->at_once))
	{
		EunoBatch	batch = {
			.max_items = WALK_ITEMS,
			.tids = stretch->tids + *n,
			.want_keys = true,
			.keys = stretch->keys + *n,
			.buf = stretch->buf + used,
			.buf_size = WALK_BUF
		};
		const EunoItemKey *last;

		status = euno_art_read(cx, tree, cursor, true, &batch);
		for (uint32_t i = 0; i < batch.nitems && status == EUNO_OK; i++)
		{
			EunoItemKey *key = &stretch->keys[*n];

			key->offset += used;
			walk->room->asked[*n] = stretch->tids[*n] << 16 | *n;
			stretch->gone[(*n)++] = false;
		}
		if (walk->pause != NULL)
			walk->pause(walk->arg);
		if (status != EUNO_OK || batch.nitems == 0)
			break;
		last = &stretch->keys[*n - 1];
		used = last->offset + euno_align8(last->keylen) +
			euno_align8(last->payloadlen);
	}
	return status;
}

/* Removes what is to go of the n entries of a stretch. */
static EunoStatus
walk_remove(EunoContext *cx, EunoTree *tree, EunoWalk *walk, uint32_t n)
{
	const WalkStretch *stretch = (const WalkStretch *) walk->room->own;

	for (uint32_t i = 0; i < n; i++)
	{
		EunoStatus	status;
		EunoEntry	entry = {
			.key = stretch->buf + stretch->keys[i].offset,
			.keylen = stretch->keys[i].keylen,
			.tid = stretch->tids[i]
		};

		if (!stretch->gone[i])
		{
			walk->kept++;
			continue;
		}
		status = euno_art_remove(cx, tree, &entry, NULL);
		if (status == EUNO_OK)
			walk->removed++;
		else if (status != EUNO_NOT_FOUND)
			return status;
		if (walk->pause != NULL && walk->removed % WALK_ITEMS == 0)
			walk->pause(walk->arg);
	}
	return EUNO_OK;
}

/* See EunoTreeOps.  decide and pause are called without locks and epoch. */
EunoStatus
euno_art_walk(EunoContext *cx, EunoTree *tree, EunoWalk *walk)
{
	WalkStretch *stretch = (WalkStretch *) walk->room->own;
	EunoStatus	status;
	EunoCursor	cursor;
	uint32_t	n;

	euno_cursor_of_all(&cursor);
	walk->removed = walk->kept = 0;
	do
	{
		uint32_t	ngone;

		status = walk_collect(cx, tree, walk, &cursor, &n);
		if (status != EUNO_OK)
			break;
		ngone = euno_walk_ask(walk, n);
		for (uint32_t i = 0; i < ngone; i++)
			stretch->gone[walk->room->asked[i] & 0xFFFF] = true;
		status = walk_remove(cx, tree, walk, n);
	} while (status == EUNO_OK && n > 0 && !cursor.at_hi);
	return status;
}
