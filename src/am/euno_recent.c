/*-------------------------------------------------------------------------
 *
 * euno_recent.c
 *	  Which buffers pages of tables were in.
 *
 * The executor looks for the page of each row in the hash table of buffers:
 * some lines of shared memory anywhere, one after the other, under a lock.  A
 * backend that has been to a page before remembers in which buffer it was, and
 * need only see whether it still is.
 *
 * So we pin the row's page for the executor, in the place where the heap keeps
 * its pin for an index scan, just before it would do so itself, and do what it
 * would do besides.  It looks whether the right page is pinned before it uses
 * it: nothing depends on what is remembered here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/euno_scan.h"
#include "euno_compat.h"

/*
 * At most this many pages are remembered, and about as many as there are buffers.
 */
#define MOST_PAGES		(128 * 1024)

/*
 * With so many pins others are at the buffer all the time: to pin it would be
 * to wait for its header.
 */
#define CROWD			4

typedef struct Known
{
	uint32		number;			/* page_number; other tables' may have it too */
	Buffer		buffer;			/* InvalidBuffer: none */
} Known;

static Known *pages = NULL;		/* each page has its place, as others have */
static uint32 pages_mask;

/*
 * Zero, and most of it never touched by a backend that does not live long: not
 * from a memory context, which would write to all.
 */
static void
make_pages(void)
{
	uint32		n = 1024;

	while (n < (uint32) NBuffers && n < MOST_PAGES)
		n *= 2;
	pages = calloc(n, sizeof(Known));
	pages_mask = n - 1;
}

/* Those of a table are neighbors. */
static inline uint32
page_number(Relation heap, BlockNumber block)
{
	return block + (uint32) euno_rel_number(heap) * UINT32_C(0x9E3779B1);
}

/*
 * Is it remembered, and does the buffer seem to have the page?  Nothing is
 * locked.
 */
static inline bool
seems_there(const Known *page, uint32 number, BlockNumber block)
{
	return page->number == number && BufferIsValid(page->buffer) &&
		GetBufferDescriptor(page->buffer - 1)->tag.blockNum == block;
}

bool
euno_recent_begin(IndexScanDesc scan)
{
	Relation	heap = scan->heapRelation;

	/* Index-only scans rarely come to the heap, and local buffers are few */
	if (heap == NULL || scan->xs_want_itup || RelationUsesLocalBuffers(heap) ||
		heap->rd_tableam != GetHeapamTableAmRoutine())
		return false;
	if (unlikely(pages == NULL))
		make_pages();
	return pages != NULL;
}

/*
 * Pins the page in the buffer that it was in.  False if it is not there, or if
 * others are: the header's lock, which this takes, is one that they spin for.
 */
static bool
pin_again(Relation heap, BlockNumber block, const Known *page)
{
	BufferDesc *desc = GetBufferDescriptor(page->buffer - 1);
	EunoBufferState state = euno_buffer_state_read(desc);

	if ((state & BM_LOCKED) != 0 || BUF_STATE_GET_REFCOUNT(state) >= CROWD ||
		!ReadRecentBuffer(euno_rel_locator(heap), MAIN_FORKNUM, block,
						  page->buffer))
		return false;

	/*
	 * What a pin does otherwise: without it, the page would soon be evicted.
	 */
	state = euno_buffer_state_read(desc);
	if (!EUNO_RECENT_USE_IS_COUNTED && (state & BM_LOCKED) == 0 &&
		BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT)
		(void) euno_buffer_state_replace(desc, &state,
										 state + BUF_USAGECOUNT_ONE);
	pgstat_count_buffer_read(heap);
	pgstat_count_buffer_hit(heap);
	return true;
}

void
euno_recent_pin(IndexScanDesc scan, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;
	Relation	heap = scan->heapRelation;
	uint32		number = page_number(heap, block);
	Known	   *page = &pages[number & pages_mask];
	Buffer		before = fetch->xs_cbuf;

	if (seems_there(page, number, block) && pin_again(heap, block, page))
	{
		if (BufferIsValid(before))
			ReleaseBuffer(before);
		fetch->xs_cbuf = page->buffer;
	}
	else
	{
		fetch->xs_cbuf = ReleaseAndReadBuffer(before, heap, block);
		page->number = number;
		page->buffer = fetch->xs_cbuf;
	}
	if (fetch->xs_cbuf != before)
		euno_fetch_switched(fetch, block);
}

Buffer
euno_recent_find(Relation heap, BlockNumber block)
{
	uint32		number = page_number(heap, block);
	Known	   *page = &pages[number & pages_mask];

	if (!seems_there(page, number, block))
	{
		page->number = number;
		page->buffer = PrefetchBuffer(heap, MAIN_FORKNUM, block).recent_buffer;
	}
	return page->buffer;
}
