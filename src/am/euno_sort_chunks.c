/*-------------------------------------------------------------------------
 *
 * euno_sort_chunks.c
 *	  The memory of a build's sort.
 *
 * The system may take as long to find and clear memory as sorting takes.  So
 * what is idle in the arena is borrowed, where there is plenty of room for the
 * tree and for others; else memory is private.  What was borrowed goes back
 * with the sort's memory context: so after an error, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "storage/bufmgr.h"
#include "storage/pg_shmem.h"

#include "am/euno_sort_work.h"
#include "mem/euno_domains.h"
#include "mem/euno_registry.h"

StaticAssertDecl(EUNO_CHUNK_BYTES == EUNO_LOAN_BYTES, "a chunk is a loan");

/* To borrow, this many times the table's size must be free in the arena. */
#define ROOM_FACTOR	4

/* What items have at first. */
#define FIRST_ITEMS	((Size) 512 * 1024)

/* Of what items will take, so much is asked for. */
#define ITEMS_MORE	1.05

/*
 * Sorting goes all over its memory, and so through the page tables, too; and
 * small pages take a fault each.  The system may decline.
 */
static void *
ask_huge_pages(void *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	start = TYPEALIGN(EUNO_CHUNK_BYTES, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(EUNO_CHUNK_BYTES,
									 (uintptr_t) memory + size);

	if (start < end && huge_pages != HUGE_PAGES_OFF)
		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
#endif
	return memory;
}

/* NULL if there are not this many. */
static void *
get_addresses(EunoSort *sort, Size size)
{
	void	   *memory = MemoryContextAllocExtended(sort->context, size,
												   MCXT_ALLOC_HUGE |
												   MCXT_ALLOC_NO_OOM);

	return memory != NULL ? ask_huge_pages(memory, size) : NULL;
}

void *
euno_sort_alloc(EunoSort *sort, Size size)
{
	return ask_huge_pages(MemoryContextAllocHuge(sort->context, size), size);
}

/* NULL if the arena has none for us. */
static void *
borrow(const EunoSort *sort, uint32 chunks)
{
	if (sort->table_bytes < EUNO_CHUNK_BYTES)
		return NULL;
	return euno_arena_borrow(euno_registry_arena(), sort->domain,
							 ROOM_FACTOR * sort->table_bytes, chunks);
}

/* The first this many chunks of the items' loan. */
static void
return_items(EunoSort *sort, uint32 chunks)
{
	uint8_t    *loan = sort->item_loan;

	sort->item_loan += chunks * EUNO_CHUNK_BYTES;
	sort->nitem_loan -= chunks;
	euno_arena_return(euno_registry_arena(), loan, chunks);
}

/* A reset callback. */
static void
return_loans(void *arg)
{
	EunoSort   *sort = arg;

	if (sort->nitem_loan > 0)
		return_items(sort, sort->nitem_loan);
	while (sort->nloans > 0)
		euno_arena_return(euno_registry_arena(), sort->loans[--sort->nloans],
						  1);
}

void
euno_sort_begin_memory(EunoSort *sort, Relation heap)
{
	sort->table_bytes = (Size) RelationGetNumberOfBlocks(heap) * BLCKSZ;
	sort->reserve = Min(sort->table_bytes, sort->limit);
	sort->domain = euno_domain_lookup();
	sort->item_bytes = FIRST_ITEMS;
	sort->items = MemoryContextAlloc(sort->context, FIRST_ITEMS);
	sort->return_loans.func = return_loans;
	sort->return_loans.arg = sort;
	MemoryContextRegisterResetCallback(sort->context, &sort->return_loans);
}

/*
 * Memory for all items of the table, or for those that the limit allows, if
 * the rest is like what there is: that took this many blocks.
 */
static bool
borrow_for_items(EunoSort *sort, double blocks)
{
	double		times = Min((double) (sort->table_bytes / BLCKSZ) / blocks,
							(double) sort->limit / euno_sort_used(sort));
	double		bytes = times * ITEMS_MORE * sort->item_bytes;
	uint32		chunks = (uint32) (bytes / EUNO_CHUNK_BYTES) + 1;
	void	   *loan;

	if (sort->nitem_loan > 0 || chunks * EUNO_CHUNK_BYTES <= sort->item_bytes)
		return false;
	loan = borrow(sort, chunks);
	if (loan == NULL)
		return false;
	sort->item_loan = loan;
	sort->nitem_loan = chunks;
	memcpy(loan, sort->items, sort->item_bytes);
	pfree(sort->items);
	sort->items = loan;
	sort->item_bytes = chunks * EUNO_CHUNK_BYTES;
	return true;
}

/*
 * Memory that grows is moved, which breaks up its huge pages, and what follows
 * takes small ones.  So it gets at once what it will hardly use up: addresses,
 * for memory that is not written to takes none.
 */
static void
grow_items(EunoSort *sort)
{
	Size		size = 2 * sort->item_bytes;
	void	   *large = NULL;

	if (size < sort->reserve)
	{
		large = get_addresses(sort, sort->reserve);
		if (large != NULL)
			size = sort->reserve;
	}
	if (large == NULL)
		large = euno_sort_alloc(sort, size);
	memcpy(large, sort->items, sort->item_bytes);
	if (sort->nitem_loan > 0)
		return_items(sort, sort->nitem_loan);
	else
		pfree(sort->items);
	sort->items = large;
	sort->item_bytes = size;
}

void
euno_sort_more_items(EunoSort *sort, EunoTid tid)
{
	if (!borrow_for_items(sort, (double) (tid >> 16) + 1))
		grow_items(sort);
	sort->max_items = (uint32) (sort->item_bytes / EUNO_ITEM_BYTES(sort));
}

void
euno_sort_give_back(EunoSort *sort, uint32 number)
{
	uint8_t    *read = (uint8_t *) sort->items +
		(Size) number * EUNO_ITEM_BYTES(sort);
	uintptr_t	start = TYPEALIGN(EUNO_CHUNK_BYTES, (uintptr_t) sort->items);
	uintptr_t	end = TYPEALIGN_DOWN(EUNO_CHUNK_BYTES, (uintptr_t) read);

	if (sort->nitem_loan > 0)
	{
		if (read - sort->item_loan >= (ptrdiff_t) EUNO_CHUNK_BYTES)
			return_items(sort, (uint32) ((read - sort->item_loan) /
										 EUNO_CHUNK_BYTES));
		return;
	}
	start += sort->given_back;
	if (start >= end)
		return;
	(void) madvise((void *) start, end - start, MADV_DONTNEED);
	sort->given_back += end - start;
}

void
euno_sort_begin_chunks(EunoSort *sort)
{
	Size		most = sort->limit / EUNO_CHUNK_BYTES + 2;

	sort->chunks = MemoryContextAlloc(sort->context, most * sizeof(uint8_t *));
	sort->loans = MemoryContextAlloc(sort->context, most * sizeof(void *));
}

/*
 * Private chunks: as many as there will hardly be, at once.  The first one of
 * a small table is no huge page.
 */
static void
get_own(EunoSort *sort)
{
	Size		n = sort->reserve / EUNO_CHUNK_BYTES;

	n = n > sort->nchunks ? n - sort->nchunks : sort->nchunks;
	sort->own = n > 1 ? get_addresses(sort, (n + 1) * EUNO_CHUNK_BYTES) : NULL;
	if (sort->own != NULL)
	{
		sort->own = (uint8_t *) TYPEALIGN(EUNO_CHUNK_BYTES, sort->own);
		sort->nown = (uint32) n;
	}
	else
	{
		sort->own = MemoryContextAllocHuge(sort->context, EUNO_CHUNK_BYTES);
		sort->nown = 1;
	}
}

/* The first chunk, or the one after that which is being filled. */
void
euno_sort_next_chunk(EunoSort *sort)
{
	if (sort->buffer_end == sort->nchunks * EUNO_CHUNK_BYTES)
	{
		uint8_t    *chunk = borrow(sort, 1);

		if (chunk != NULL)
			sort->loans[sort->nloans++] = chunk;
		else
		{
			if (sort->nown == 0)
				get_own(sort);
			chunk = sort->own;
			sort->own += EUNO_CHUNK_BYTES;
			sort->nown--;
		}
		sort->chunks[sort->nchunks++] = chunk;
	}
	sort->buffer_used = sort->buffer_end;
	sort->buffer_end += EUNO_CHUNK_BYTES;
}
