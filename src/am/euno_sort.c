/*-------------------------------------------------------------------------
 *
 * euno_sort.c
 *	  Entries in key order: collecting them.
 *
 * Composites (key and TID) are collected in one buffer.  When it is full they
 * are sorted (euno_sort_memory.c); what does not fit in memory is written out
 * in sorted runs (euno_sort_runs.c), which are merged at the end
 * (euno_sort_merge.c).  In a parallel build, the workers leave such runs to
 * the leader.
 *
 * Composites of one length, up to 24 bytes (a bigint has 15, a uuid 23), and
 * without payloads are kept as two or three numbers in the array that is
 * sorted; there is no buffer.  When another one comes, what is there becomes a
 * run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/euno_sort_work.h"

#define HUGE_PAGE_SIZE	((uintptr_t) 2 * 1024 * 1024)

#define MIN_BUFFER	((Size) 1024 * 1024)
#define MAX_BUFFER	((Size) 0xFFFFFFF0)	/* offsets are 32 bits wide */

/*
 * Sorting goes all over its memory, and so through the page tables, too; and
 * small pages take a fault each.  The system may decline.
 */
static void *
ask_huge_pages(void *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	start = TYPEALIGN(HUGE_PAGE_SIZE, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(HUGE_PAGE_SIZE, (uintptr_t) memory + size);

	if (start < end)
		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
#endif
	return memory;
}

void *
euno_sort_alloc(EunoSort *sort, Size size)
{
	return ask_huge_pages(MemoryContextAllocHuge(sort->context, size), size);
}

void
euno_sort_give_back(EunoSort *sort, uint32 number)
{
	uintptr_t	start = TYPEALIGN(HUGE_PAGE_SIZE, (uintptr_t) sort->items);
	uintptr_t	end = TYPEALIGN_DOWN(HUGE_PAGE_SIZE,
									 (uintptr_t) sort->items +
									 (Size) number * EUNO_ITEM_BYTES(sort));

	start += sort->given_back;
	if (start >= end)
		return;
	(void) madvise((void *) start, end - start, MADV_DONTNEED);
	sort->given_back += end - start;
}

/*
 * Memory that grows is moved, which breaks up its huge pages, and what follows
 * takes small ones.  So it gets at once what it will hardly use up: addresses,
 * for memory that is not written to takes none.
 */
static void *
grow_large(EunoSort *sort, void *memory, Size *size)
{
	void	   *large = NULL;

	if (*size < sort->reserve / 2)
		large = MemoryContextAllocExtended(sort->context, sort->reserve,
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (large == NULL)
	{
		*size = Min(2 * *size, sort->limit);
		return ask_huge_pages(repalloc_huge(memory, *size), *size);
	}
	(void) ask_huge_pages(large, sort->reserve);
	memcpy(large, memory, *size);
	pfree(memory);
	*size = sort->reserve;
	return large;
}

/* How much of the limit is taken; rows are merged with scratch memory. */
static inline Size
memory_used(const EunoSort *sort)
{
	Size		items = (Size) sort->nitems * EUNO_ITEM_BYTES(sort);

	return sort->buffer_used + items + (sort->rows != NULL ? items / 2 : 0);
}

/* From now on composites are in the buffer. */
static void
begin_long(EunoSort *sort)
{
	sort->is_short = false;
	sort->buffer_size = MIN_BUFFER / 2;
	sort->buffer = MemoryContextAllocHuge(sort->context, sort->buffer_size);
}

/* All composites so far have this length. */
static void
begin_short(EunoSort *sort, uint32 length)
{
	sort->short_length = length;
	sort->words = length <= 2 * sizeof(uint64) ? 2 : EUNO_ITEM_WORDS;
	sort->max_items = MIN_BUFFER / 2 / EUNO_ITEM_BYTES(sort);
}

EunoSort *
euno_sort_begin(Relation heap, const EunoKeySchema *schema, int work_mem_kb,
				EunoSortShare *share)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "euno sort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	EunoSort   *sort = palloc0(sizeof(EunoSort));

	sort->schema = schema;
	sort->form_buffer = palloc(EUNO_KEY_FORM_BYTES);
	sort->context = context;
	sort->limit = Max((Size) work_mem_kb * 1024, 2 * MIN_BUFFER);
	sort->limit = Min(sort->limit, MAX_BUFFER);
	sort->reserve = Min((Size) RelationGetNumberOfBlocks(heap) * BLCKSZ,
						sort->limit);
	sort->is_short = true;
	sort->words = sizeof(EunoSortItem) / sizeof(uint64);
	sort->max_items = MIN_BUFFER / 2 / EUNO_ITEM_BYTES(sort);
	sort->items = palloc(sort->max_items * EUNO_ITEM_BYTES(sort));
	sort->ascending = true;
	if (share != NULL)
	{
		sort->files = &share->files->fs;
		sort->participant = share->participant;
	}
	if (euno_key_order(schema) == EUNO_ORDER_COMPARE)
	{
		sort->rows = euno_row_order_make(schema);
		begin_long(sort);
	}
	MemoryContextSwitchTo(old);
	return sort;
}

/* Not all composites are short, or of one length: go on with the buffer. */
static void
become_long(EunoSort *sort)
{
	if (sort->nitems > 0)
		euno_sort_write_run(sort);
	begin_long(sort);
	sort->words = sizeof(EunoSortItem) / sizeof(uint64);
	sort->max_items = MIN_BUFFER / 2 / EUNO_ITEM_BYTES(sort);
	sort->items = repalloc_huge(sort->items,
								sort->max_items * EUNO_ITEM_BYTES(sort));
}

/* Room for one more entry: grow within the limit, else write a run. */
static void
make_room(EunoSort *sort, Size bytes)
{
	if (memory_used(sort) + bytes + EUNO_ITEM_BYTES(sort) > sort->limit)
		euno_sort_write_run(sort);
	if (sort->buffer_used + bytes > sort->buffer_size)
		sort->buffer = grow_large(sort, sort->buffer, &sort->buffer_size);
	if (sort->nitems >= sort->max_items)
	{
		Size		size = (Size) sort->max_items * EUNO_ITEM_BYTES(sort);

		sort->items = grow_large(sort, sort->items, &size);
		sort->max_items = (uint32) (size / EUNO_ITEM_BYTES(sort));
	}
}

/* The key is in the form buffer, which has room behind it. */
static void
add_short(EunoSort *sort, const EunoEntry *entry)
{
	uint8_t    *composite = sort->form_buffer;
	int			words = sort->words;
	uint64	   *item;

	if (unlikely(sort->nitems >= sort->max_items))
		make_room(sort, 0);
	euno_put_tid(composite + entry->keylen, entry->tid);
	memset(composite + entry->keylen + EUNO_TID_BYTES, 0, EUNO_SORT_SHORT);
	item = sort->numbers + (Size) sort->nitems++ * words;
	for (int i = 0; i < words; i++)
		item[i] = euno_sort_head_at(composite, EUNO_SORT_SHORT,
									i * sizeof(uint64));
	if (sort->ascending && sort->nitems > 1)
		sort->ascending = euno_sort_in_order(item - words, item, 0, words);
}

/* Shortens "prefix" to what another composite shares with the first one. */
static inline void
note_prefix(EunoSort *sort, const uint8_t *composite, uint32 length)
{
	const uint8_t *first = sort->buffer + sort->items[0].offset;

	sort->prefix = Min(sort->prefix, length);
	if (memcmp(first, composite, sort->prefix) != 0)
	{
		uint32		same = 0;

		while (first[same] == composite[same])
			same++;
		sort->prefix = same;
	}
}

static EunoSortItem *
add_composite(EunoSort *sort, const EunoEntry *entry)
{
	uint32		length = entry->keylen + EUNO_TID_BYTES;
	Size		bytes = length + entry->payloadlen;
	EunoSortItem *item;
	uint8_t    *composite;

	if (unlikely(sort->buffer_used + bytes > sort->buffer_size ||
				 sort->nitems >= sort->max_items ||
				 memory_used(sort) + bytes + EUNO_ITEM_BYTES(sort) >
				 sort->limit))
		make_room(sort, bytes);

	composite = sort->buffer + sort->buffer_used;
	memcpy(composite, entry->key, entry->keylen);
	euno_put_tid(composite + entry->keylen, entry->tid);
	if (entry->payloadlen > 0)
		memcpy(composite + length, entry->payload, entry->payloadlen);

	item = &sort->items[sort->nitems++];
	item->offset = (uint32) sort->buffer_used;
	item->length = (uint16) length;
	item->payloadlen = (uint16) entry->payloadlen;
	sort->buffer_used += bytes;
	return item;
}

static void
add_long(EunoSort *sort, const EunoEntry *entry)
{
	EunoSortItem *item = add_composite(sort, entry);

	if (sort->nitems == 1)
		sort->prefix = item->length;
	else
	{
		note_prefix(sort, sort->buffer + item->offset, item->length);
		sort->ascending = sort->ascending &&
			euno_sort_less(sort->buffer, item - 1, item, sort->prefix);
	}
}

static void
add_row(EunoSort *sort, const EunoEntry *entry)
{
	(void) add_composite(sort, entry);

	/* Rows are aligned; the buffer has a multiple of that. */
	sort->buffer_used = MAXALIGN(sort->buffer_used);
	sort->ascending = false;
}

void
euno_sort_add(EunoSort *sort, const Datum *values, const bool *isnull,
			  EunoTid tid)
{
	EunoEntry	entry;
	uint32_t	length;

	euno_key_form(sort->schema, values, isnull, sort->form_buffer, &entry);
	entry.tid = tid;
	length = entry.keylen + EUNO_TID_BYTES;
	if (sort->rows != NULL)
		add_row(sort, &entry);
	else if (likely(sort->is_short && entry.payloadlen == 0 &&
					length == sort->short_length))
		add_short(sort, &entry);
	else if (sort->is_short && sort->short_length == 0 &&
			 entry.payloadlen == 0 && length <= EUNO_SORT_SHORT)
	{
		begin_short(sort, length);
		add_short(sort, &entry);
	}
	else
	{
		if (sort->is_short)
			become_long(sort);
		add_long(sort, &entry);
	}
}

void
euno_sort_add_tuple(Relation index, ItemPointer tid, Datum *values,
					bool *isnull, bool alive, void *sort)
{
	euno_sort_add(sort, values, isnull, euno_tid_pack(tid));
}

void
euno_sort_add_root(void *sort, ItemPointer root, Datum *values, bool *isnull,
				   bool visible)
{
	euno_sort_add(sort, values, isnull, euno_tid_pack(root));
}
