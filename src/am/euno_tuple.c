/*-------------------------------------------------------------------------
 *
 * euno_tuple.c
 *	  The index tuples that index-only scans return, in memory of the scan.
 *
 * A scan that reads on has them made some at a time, and keeps them as long as
 * the window: what it returns next is there then, as on a page of btree.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/relscan.h"

#include "am/euno_scan.h"

/* How many are made at once at most: they stay in the first-level cache. */
#define TUPLE_GROUP		64

static pg_noinline void
grow_buffer(EunoScan *so, uint32 size)
{
	if (so->itup != NULL)
		pfree(so->itup);
	so->itup_size = Max(512, 2 * size);
	so->itup = MemoryContextAlloc(so->context, so->itup_size);
}

/* Up to which item, at most "end", all from the window's on are the scan's. */
static uint32
admitted_until(EunoScan *so, const EunoWindow *window, uint32 end)
{
	uint32		i = (uint32) window->pos + 1;

	if (so->range.exact)
		return end;
	while (i < end && euno_window_admits(so, window, &window->keys[i]))
		i++;
	return i;
}

/*
 * Makes those of the window's item and of the next ones, as many as were
 * returned already, if they are the scan's.
 */
static pg_noinline void
form_group(IndexScanDesc scan, EunoWindow *window)
{
	EunoScan   *so = scan->opaque;
	EunoKeySchema *schema = so->idx->schema;
	uint32		start = (uint32) window->pos;
	uint32		returned = so->reads > 1 ? TUPLE_GROUP : start;
	uint32		end = start + 1 + Min(returned, TUPLE_GROUP);
	uint32		room = EUNO_BATCH_BUF +
		window->capacity * euno_key_tuple_more(schema);

	if (window->tuples == NULL)
	{
		window->tuples = MemoryContextAlloc(so->context, room);
		window->places = MemoryContextAlloc(so->context,
											window->capacity * sizeof(uint32));
	}
	if (window->formed == 0)
		window->used = MAXIMUM_ALIGNOF; /* 0 is no place */
	memset(window->places + window->formed, 0,
		   (start - window->formed) * sizeof(uint32));
	end = admitted_until(so, window, Min(end, window->nitems));
	window->used = euno_key_tuples(schema, window->buf, window->keys + start,
								   end - start, window->tuples, window->used,
								   room, window->places + start);
	window->formed = end;
}

/*
 * Returns the tuple of the window's item.  A lookup needs no others.
 */
void
euno_tuple_form(IndexScanDesc scan, EunoWindow *window)
{
	EunoScan   *so = scan->opaque;
	uint32		pos = (uint32) window->pos;
	EunoItemKey *item = &window->keys[pos];
	const uint8_t *key = window->buf + item->offset;
	uint32		size;

	if (pos >= window->formed && (pos > 0 || so->reads > 1))
		form_group(scan, window);
	if (pos < window->formed && window->places[pos] != 0)
	{
		scan->xs_itup = (IndexTuple) (window->tuples + window->places[pos]);
		return;
	}
	if (key == so->itup_key)
	{
		scan->xs_itup = so->itup;
		return;
	}
	so->itup_key = NULL;
	size = euno_key_tuple(so->idx->schema, key, item, so->itup, so->itup_size);
	if (unlikely(size > so->itup_size))
	{
		grow_buffer(so, size);
		(void) euno_key_tuple(so->idx->schema, key, item, so->itup,
							  so->itup_size);
	}
	so->itup_key = key;
	scan->xs_itup = so->itup;
}
