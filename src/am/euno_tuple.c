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

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "utils/memutils.h"

#include "am/euno_scan.h"
#include "euno_compat.h"

/* How many are made at once at most: they stay in the first-level cache. */
#define TUPLE_GROUP		64

static pg_noinline void
grow_buffer(EunoScan *so, Size size)
{
	if (so->itup_buffer)
		pfree(so->itup_buffer);
	so->itup_size = Max(512, 2 * size);
	so->itup_buffer = MemoryContextAlloc(so->context, so->itup_size);
}

/* Room for an index tuple; what was in the buffer is gone. */
static inline IndexTuple
tuple_buffer(EunoScan *so, Size size)
{
	if (unlikely(so->itup_size < size))
		grow_buffer(so, size);
	return (IndexTuple) so->itup_buffer;
}

/* An index tuple of any columns. */
static pg_noinline IndexTuple
form_any(IndexScanDesc scan, const uint8_t *key, const EunoItemKey *item)
{
	EunoScan   *so = scan->opaque;
	TupleDesc	tupdesc = scan->xs_itupdesc;
	Size		data_size;
	Size		header_size;
	uint16		infomask = 0;
	uint16		tuple_mask = 0;
	bool		has_null = false;
	IndexTuple	itup;

	if (so->values == NULL)
	{
		so->values = MemoryContextAlloc(so->context, tupdesc->natts * sizeof(Datum));
		so->isnull = MemoryContextAlloc(so->context, tupdesc->natts * sizeof(bool));
		so->scratch = MemoryContextAlloc(so->context, EUNO_KEY_DEFORM_BYTES);
	}
	euno_key_deform(so->idx->schema, key, item->keylen,
					key + MAXALIGN(item->keylen), item->payloadlen,
					so->scratch, so->values, so->isnull);

	for (int i = 0; i < tupdesc->natts && !has_null; i++)
		has_null = so->isnull[i];
	header_size = IndexInfoFindDataOffset(has_null ? INDEX_NULL_MASK : 0);
	data_size = heap_compute_data_size(tupdesc, so->values, so->isnull);
	itup = tuple_buffer(so, header_size + data_size + MAXIMUM_ALIGNOF);

	/* Readers tell padding from a short value by its being zero. */
	memset(itup, 0, header_size + data_size);
	heap_fill_tuple(tupdesc, so->values, so->isnull,
					(char *) itup + header_size, data_size, &tuple_mask,
					has_null ? (bits8 *) ((char *) itup + sizeof(IndexTupleData)) : NULL);
	if (has_null)
		infomask |= INDEX_NULL_MASK;
	if (tuple_mask & HEAP_HASVARWIDTH)
		infomask |= INDEX_VAR_MASK;
	itup->t_info = infomask | (uint16) MAXALIGN(header_size + data_size);
	return itup;
}

/* As many as were returned already, from those on that there are. */
static pg_noinline void
form_group(IndexScanDesc scan, EunoWindow *window)
{
	EunoScan   *so = scan->opaque;
	EunoKeySchema *schema = so->idx->schema;
	uint32		returned = so->reads > 1 ? TUPLE_GROUP : (uint32) window->pos;
	uint32		end = (uint32) window->pos + 1 + Min(returned, TUPLE_GROUP);
	uint32		room = EUNO_BATCH_BUF +
		window->capacity * EUNO_KEY_TUPLE_ROOM(scan->xs_itupdesc->natts, 0);

	if (window->tuples == NULL)
	{
		window->tuples = MemoryContextAlloc(so->context, room);
		window->places = MemoryContextAlloc(so->context,
											window->capacity * sizeof(uint32));
	}
	if (window->formed == 0)
		window->used = MAXIMUM_ALIGNOF; /* 0 is no place */
	end = Min(end, window->nitems);
	window->used = euno_key_tuples(schema, window->buf,
								   window->keys + window->formed,
								   end - window->formed, window->tuples,
								   window->used, room,
								   window->places + window->formed);
	window->formed = end;
}

/*
 * Returns the tuple of the window's item.  A lookup, or a scan that returns
 * some of what it reads, needs no others.
 */
void
euno_tuple_form(IndexScanDesc scan, EunoWindow *window)
{
	EunoScan   *so = scan->opaque;
	uint32		pos = (uint32) window->pos;
	EunoItemKey *item = &window->keys[pos];
	const uint8_t *key = window->buf + item->offset;

	if (pos >= window->formed && so->range.exact && (pos > 0 || so->reads > 1))
		form_group(scan, window);
	if (pos < window->formed && window->places[pos] != 0)
	{
		scan->xs_itup = (IndexTuple) (window->tuples + window->places[pos]);
		return;
	}
	scan->xs_itup = tuple_buffer(so, EUNO_KEY_TUPLE_ROOM(INDEX_MAX_KEYS,
														 item->keylen));
	if (unlikely(euno_key_tuple(so->idx->schema, key, item, scan->xs_itup) == 0))
		scan->xs_itup = form_any(scan, key, item);
}
