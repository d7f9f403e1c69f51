/*-------------------------------------------------------------------------
 *
 * euno_ahead.c
 *	  Having heap pages fetched before the executor asks for them.
 *
 * A batch says which rows come next.  Where they are all over the heap, each
 * costs several waits for memory one after the other: the buffer's descriptor,
 * the page's header and line pointer, the tuple.  Asked for together, some
 * rows ahead, they cost little more than one.
 *
 * What is read here is read without a pin or a lock, and may be of a page that
 * has taken another's place: nothing is done with it but to say which lines
 * the processor should fetch.
 *
 * A page that is in no buffer is asked for from the kernel, as a bitmap heap
 * scan would; effective_io_concurrency = 0 turns all of this off.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/spccache.h"

#include "am/euno_scan.h"
#include "core/euno_shared.h"

/*
 * Bytes of a page's tuples from which on to fetch them gains more than it
 * takes.
 */
#define WIDE_TUPLE	128

/*
 * Rows that are next to each other in the index are often so in the heap: then
 * the executor keeps the page, and only its tuples are fetched.
 */
void
euno_ahead_window(IndexScanDesc scan)
{
	EunoScan   *so = scan->opaque;
	EunoWindow *window = so->current;
	uint32		changes = 0;

	window->ahead.wanted = window->ahead.near = false;
	window->ahead.pages = 0;
	if (!so->pins)
		return;
	if (!so->ahead_known)
	{
		/* A setting, which the table's tablespace may have for itself. */
		so->look_ahead =
			get_tablespace_io_concurrency(scan->heapRelation->rd_rel->reltablespace) > 0;
		so->ahead_known = true;
	}
	if (!so->look_ahead)
		return;
	for (uint32 i = 1; i < window->nitems; i++)
		changes += window->tids[i] >> 16 != window->tids[i - 1] >> 16;
	window->ahead.wanted = changes > window->nitems / 4;
	window->ahead.near = !window->ahead.wanted;
}

/* The buffer that an item's page is in, as it seems. */
static inline Buffer
find_page(IndexScanDesc scan, EunoWindow *window, uint32 i)
{
	BlockNumber block = (BlockNumber) (window->tids[i] >> 16);

	if (block == (BlockNumber) (window->tids[i - 1] >> 16))
		return window->ahead.buffer[(i - 1) % EUNO_AHEAD];
	return euno_recent_find(scan->heapRelation, block);
}

static inline ItemId
line_pointer(Buffer buffer, EunoTid tid)
{
	char	   *page = BufferGetBlock(buffer);
	uint32		at = (uint32) (tid & 0xFFFF) * sizeof(ItemIdData);

	return (ItemId) (page + (SizeOfPageHeaderData - sizeof(ItemIdData) + at) % BLCKSZ);
}

/* The page's lines that are read first. */
static inline void
fetch_page(Buffer buffer, EunoTid tid)
{
	if (!BufferIsValid(buffer))
		return;
	euno_prefetch(BufferGetBlock(buffer));
	euno_prefetch(line_pointer(buffer, tid));
	euno_prefetch(GetBufferDescriptor(buffer - 1));
}

/*
 * The buffer is not pinned, and may have another page by now: what is read then
 * is only an address in it that is fetched in vain.
 */
static inline void
fetch_tuple(Buffer buffer, EunoTid tid)
{
	const char *tuple;

	if (!BufferIsValid(buffer))
		return;
	tuple = (char *) BufferGetBlock(buffer) +
		ItemIdGetOffset(line_pointer(buffer, tid)) % BLCKSZ;
	euno_prefetch(tuple);
	euno_prefetch(tuple + 64);
}

/*
 * The item at the window's place is about to be returned, in the direction in
 * which the window was read.  Looks further ahead the more the scan returns:
 * one that ends soon must not pay for rows that nobody wants.
 *
 * Most of a prefetch's own time is to find out where in memory its page is.
 * Looking for a buffer takes locks, and no prefetch begins before a lock
 * behind which it stands; so several buffers are looked for, then all is
 * prefetched.
 */
void
euno_ahead_step(IndexScanDesc scan, EunoWindow *window)
{
	EunoScan   *so = scan->opaque;
	EunoAhead  *ahead = &window->ahead;
	uint32		pos = (uint32) window->pos;
	uint32		limit;

	if (ahead->pages <= pos)
	{
		ahead->pages = ahead->tuples = pos + 1;
		ahead->buffer[pos % EUNO_AHEAD] = InvalidBuffer;
	}
	if (so->distance < EUNO_AHEAD)
		so->distance += 2;
	limit = Min(pos + 1 + so->distance, window->nitems);
	if (limit < ahead->pages + EUNO_AHEAD_GROUP && limit < window->nitems)
		return;
	for (uint32 i = ahead->pages; i < limit; i++)
		ahead->buffer[i % EUNO_AHEAD] = find_page(scan, window, i);
	for (; ahead->pages < limit; ahead->pages++)
		fetch_page(ahead->buffer[ahead->pages % EUNO_AHEAD],
				   window->tids[ahead->pages]);
	limit = Min(pos + 1 + so->distance / 2, window->nitems);
	for (; ahead->tuples < limit; ahead->tuples++)
		fetch_tuple(ahead->buffer[ahead->tuples % EUNO_AHEAD],
					window->tids[ahead->tuples]);
}

/* How many bytes a tuple of the page takes, on the average. */
static inline uint32
tuple_width(const char *page)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	uint32		n = (header->pd_lower - SizeOfPageHeaderData) / sizeof(ItemIdData);

	return n == 0 ? 0 : (uint32) (header->pd_special - header->pd_upper) / n;
}

/*
 * Rows are side by side, and the page of the window's item, the first one
 * there, has just been pinned.  Its first tuples are fetched, unless they are
 * small: of those the processor sees by itself that one line comes after the
 * other, and for the rest of the window nothing is fetched.
 */
void
euno_ahead_page(EunoScan *so, EunoWindow *window, Buffer buffer)
{
	uint32		pos = (uint32) window->pos;
	uint32		limit = Min(pos + EUNO_AHEAD_NEAR, window->nitems);

	window->ahead.near = tuple_width(BufferGetBlock(buffer)) >= WIDE_TUPLE;
	if (!window->ahead.near)
		return;
	for (; pos < limit && window->tids[pos] >> 16 == so->pinned; pos++)
		fetch_tuple(buffer, window->tids[pos]);
}

/*
 * The window's item, on the page in this buffer, is about to be returned: the
 * tuple some places behind it is fetched, or the page that comes next.
 */
void
euno_ahead_near(IndexScanDesc scan, EunoWindow *window, Buffer buffer)
{
	EunoScan   *so = scan->opaque;
	uint32		next = (uint32) window->pos + EUNO_AHEAD_NEAR;
	BlockNumber block;

	if (next >= window->nitems)
		return;
	block = (BlockNumber) (window->tids[next] >> 16);
	if (block == so->pinned)
		fetch_tuple(buffer, window->tids[next]);
	else if (block != so->coming)
	{
		so->coming = block;
		fetch_page(euno_recent_find(scan->heapRelation, block),
				   window->tids[next]);
	}
}
