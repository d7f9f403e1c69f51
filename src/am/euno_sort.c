/*-------------------------------------------------------------------------
 *
 * euno_sort.c
 *	  Entries in key order.
 *
 * Composites (key and TID) are collected in one buffer.  When it is full they
 * are sorted; what does not fit in memory is written out in sorted runs, which
 * are merged at the end.  In a parallel build, the workers leave such runs to
 * the leader.
 *
 * tuplesort calls a comparator for every pair; byte strings can be radix
 * sorted, unless they came in order: by eight bytes at a time, from where they
 * begin to differ; groups that are equal there go on with the next eight.
 * Rows, in COMPARE order, are sorted in euno_sort_rows.c.
 *
 * Composites of one length, up to 24 bytes (a bigint has 15, a uuid 23), and
 * without payloads are kept as two or three numbers in the array that is
 * sorted; there is no buffer.  When another one comes, what is there becomes a
 * run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/euno_am.h"
#include "am/euno_sort_items.h"
#include "core/euno_shared.h"
#include "euno_compat.h"

#define HUGE_PAGE_SIZE	((uintptr_t) 2 * 1024 * 1024)

#define PREFETCH_ITEMS 16

#define MIN_BUFFER	((Size) 1024 * 1024)
#define MAX_BUFFER	((Size) 0xFFFFFFF0)	/* offsets are 32 bits wide */
#define MAX_COMPOSITE (EUNO_MAX_ENTRY + EUNO_TID_BYTES)

#define SHORT_COMPOSITE (EUNO_ITEM_WORDS * sizeof(uint64))
#define ITEM_BYTES(sort) ((sort)->words * sizeof(uint64))

/* How much of a run's file is read at a time: at least one entry. */
#define BLOCK_BYTES		16384

/* A run starts with the number of its entries, a uint64. */
typedef struct SortRun
{
	BufFile    *file;			/* NULL: the items in memory */
	uint64		left;			/* entries not read yet */
	uint16		length;			/* of the current one */
	uint16		payloadlen;
	const uint8_t *data;		/* its composite and payload */
	uint64		heads[2];		/* the composite's first bytes, but of rows */
	uint32		at;				/* what follows, in "block", if from a file */
	uint32		filled;
	uint8_t    *block;
	uint8_t		buffer[MAX_COMPOSITE] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} SortRun;

struct EunoSort
{
	const EunoKeySchema *schema;
	EunoRowOrder *rows;			/* COMPARE order only */
	uint8_t    *form_buffer;
	MemoryContext context;
	Size		limit;			/* of the buffer and the items */
	Size		reserve;		/* that each of them gets at a time */
	uint8_t    *buffer;
	Size		buffer_size;
	Size		buffer_used;
	union
	{
		uint64	   *numbers;	/* of short composites, so many words each */
		EunoSortItem *items;	/* of others */
	};
	EunoSortItem *scratch;		/* while sorting */
	uint32		nitems;
	uint32		max_items;
	int			words;			/* of an item */
	bool		is_short;		/* the items are short composites, all */
	uint32		short_length;	/* of this length */
	bool		ascending;		/* the items came in order */
	bool		sorted;			/* the items are, for good */
	uint32		prefix;			/* bytes that all composites share */
	uint32		next;			/* reading from memory */
	FileSet    *files;			/* NULL: nobody else reads our runs */
	int			participant;
	int			nruns;
	int			max_runs;
	SortRun   **runs;
	SortRun   **heap;			/* while merging, the least one first */
	int			heap_size;
	bool		begun;			/* the first one's entry has been returned */
};

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

static void *
alloc_large(EunoSort *sort, Size size)
{
	return ask_huge_pages(MemoryContextAllocHuge(sort->context, size), size);
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

	if (*size < sort->reserve)
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
	Size		items = (Size) sort->nitems * ITEM_BYTES(sort);

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
	sort->max_items = MIN_BUFFER / 2 / ITEM_BYTES(sort);
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
	sort->max_items = MIN_BUFFER / 2 / ITEM_BYTES(sort);
	sort->items = palloc(sort->max_items * ITEM_BYTES(sort));
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

/* The eight bytes at "depth", as a number; zeros past the end. */
static inline uint64
head_at(const uint8_t *composite, uint32 length, uint32 depth)
{
	uint64		head = 0;

	if (likely(length >= depth + sizeof(head)))
		memcpy(&head, composite + depth, sizeof(head));
	else if (length > depth)
		memcpy(&head, composite + depth, length - depth);
	return pg_ntoh64(head);
}

/* All composites are distinct, and no one is the beginning of another. */
static inline bool
less_from(const uint8_t *buffer, const EunoSortItem *a, const EunoSortItem *b,
		  uint32 depth)
{
	uint32		length = Min(a->length, b->length);

	if (length <= depth)
		return a->length < b->length;
	return memcmp(buffer + a->offset + depth, buffer + b->offset + depth,
				  length - depth) < 0;
}

static void
insertion_sort(const uint8_t *buffer, EunoSortItem *items, uint32 n,
			   uint32 depth)
{
	for (uint32 i = 1; i < n; i++)
	{
		EunoSortItem	item = items[i];
		uint32		j = i;

		for (; j > 0 && less_from(buffer, &item, &items[j - 1], depth); j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
}

/* Sort items that are equal in their first "depth" bytes. */
static void
sort_group(EunoSort *sort, EunoSortItem *items, uint32 n, uint32 depth)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < n; i++)
		items[i].head = head_at(sort->buffer + items[i].offset,
								items[i].length, depth);
	euno_sort_heads((uint64 *) items, (uint64 *) sort->scratch, n, 2, 0);

	for (uint32 i = 0; i < n;)
	{
		uint32		end = i + 1;

		while (end < n && items[end].head == items[i].head)
			end++;
		if (end - i > EUNO_SMALL_GROUP && depth < MAX_COMPOSITE)
			sort_group(sort, items + i, end - i, depth + sizeof(uint64));
		else if (end - i > 1)
			insertion_sort(sort->buffer, items + i, end - i,
						   depth + sizeof(uint64));
		i = end;
	}
}

/* Compares short composites from this word on. */
static inline bool
numbers_in_order(const uint64 *a, const uint64 *b, int word, int words)
{
	while (word < words - 1 && a[word] == b[word])
		word++;
	return a[word] <= b[word];
}

/* Sort short composites that are equal in the words before this one. */
static void
sort_numbers(EunoSort *sort, uint64 *items, uint32 n, int word)
{
	int			words = sort->words;
	uint32		ordered = 1;

	CHECK_FOR_INTERRUPTS();
	while (ordered < n && numbers_in_order(items + (Size) (ordered - 1) * words,
										   items + (Size) ordered * words,
										   word, words))
		ordered++;
	if (ordered == n)
		return;					/* as they often were found in the table */
	euno_sort_heads(items, (uint64 *) sort->scratch, n, words, word);
	if (word + 1 == words)
		return;
	for (uint32 i = 0, end; i < n; i = end)
	{
		uint64	   *first = items + (Size) i * words;

		for (end = i + 1; end < n &&
			 items[(Size) end * words + word] == first[word];)
			end++;
		if (end - i > 1)
			sort_numbers(sort, first, end - i, word + 1);
	}
}

static void
sort_memory(EunoSort *sort)
{
	uint32		scratch = EUNO_SCRATCH_ITEMS;

	if (sort->ascending)
		return;
	if (sort->rows != NULL)
		scratch = Max(scratch, sort->nitems / 2);
	sort->scratch = alloc_large(sort, scratch * ITEM_BYTES(sort));
	if (sort->rows != NULL)
		euno_sort_rows(sort->rows, sort->buffer, sort->items, sort->scratch,
					   sort->nitems);
	else if (sort->is_short)
		sort_numbers(sort, sort->numbers, sort->nitems, 0);
	else
		sort_group(sort, sort->items, sort->nitems, sort->prefix);
	pfree(sort->scratch);
	sort->scratch = NULL;
}

static SortRun *
add_run(EunoSort *sort, BufFile *file)
{
	SortRun    *run = MemoryContextAlloc(sort->context, sizeof(SortRun));

	if (sort->nruns == sort->max_runs)
	{
		sort->max_runs = Max(16, 2 * sort->max_runs);
		sort->runs = sort->runs ?
			repalloc(sort->runs, sort->max_runs * sizeof(SortRun *)) :
			MemoryContextAlloc(sort->context, sort->max_runs * sizeof(SortRun *));
	}
	sort->runs[sort->nruns++] = run;
	run->file = file;
	run->left = sort->nitems;
	return run;
}

static void
run_name(char *name, int participant, int number)
{
	snprintf(name, MAXPGPATH, "euno-%d-%d", participant, number);
}

/* The composite of an item, in the buffer or in "room". */
static inline const uint8_t *
item_composite(const EunoSort *sort, uint32 number, uint8_t *room,
			   uint16 *length, uint16 *payloadlen)
{
	const EunoSortItem *item;

	if (!sort->is_short)
	{
		item = &sort->items[number];
		*length = item->length;
		*payloadlen = item->payloadlen;
		return sort->buffer + item->offset;
	}
	for (int i = 0; i < sort->words; i++)
	{
		uint64		word =
			pg_hton64(sort->numbers[(Size) number * sort->words + i]);

		memcpy(room + i * sizeof(word), &word, sizeof(word));
	}
	*length = (uint16) sort->short_length;
	*payloadlen = 0;
	return room;
}

/* Sort what is in memory, write it out, and begin anew. */
static void
write_run(EunoSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	uint64		count = sort->nitems;
	char		name[MAXPGPATH];
	BufFile    *file;

	sort_memory(sort);
	run_name(name, sort->participant, sort->nruns);
	file = sort->files ? BufFileCreateFileSet(sort->files, name) :
		BufFileCreateTemp(false);
	BufFileWrite(file, &count, sizeof(count));
	for (uint32 i = 0; i < sort->nitems; i++)
	{
		uint8_t		room[SHORT_COMPOSITE];
		uint16		lengths[2];
		const uint8_t *composite = item_composite(sort, i, room,
												  &lengths[0], &lengths[1]);

		BufFileWrite(file, lengths, sizeof(lengths));
		BufFileWrite(file, (void *) composite, lengths[0] + lengths[1]);
	}
	add_run(sort, file);
	sort->nitems = 0;
	sort->buffer_used = 0;
	sort->ascending = true;
	MemoryContextSwitchTo(old);
}

/* Not all composites are short, or of one length: go on with the buffer. */
static void
become_long(EunoSort *sort)
{
	if (sort->nitems > 0)
		write_run(sort);
	begin_long(sort);
	sort->words = sizeof(EunoSortItem) / sizeof(uint64);
	sort->max_items = MIN_BUFFER / 2 / ITEM_BYTES(sort);
	sort->items = repalloc_huge(sort->items,
								sort->max_items * ITEM_BYTES(sort));
}

/* Room for one more entry: grow within the limit, else write a run. */
static void
make_room(EunoSort *sort, Size bytes)
{
	if (memory_used(sort) + bytes + ITEM_BYTES(sort) > sort->limit)
		write_run(sort);
	if (sort->buffer_used + bytes > sort->buffer_size)
		sort->buffer = grow_large(sort, sort->buffer, &sort->buffer_size);
	if (sort->nitems >= sort->max_items)
	{
		Size		size = (Size) sort->max_items * ITEM_BYTES(sort);

		sort->items = grow_large(sort, sort->items, &size);
		sort->max_items = (uint32) (size / ITEM_BYTES(sort));
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
	memset(composite + entry->keylen + EUNO_TID_BYTES, 0, SHORT_COMPOSITE);
	item = sort->numbers + (Size) sort->nitems++ * words;
	for (int i = 0; i < words; i++)
		item[i] = head_at(composite, SHORT_COMPOSITE, i * sizeof(uint64));
	if (sort->ascending && sort->nitems > 1)
		sort->ascending = numbers_in_order(item - words, item, 0, words);
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
				 memory_used(sort) + bytes + ITEM_BYTES(sort) > sort->limit))
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
			less_from(sort->buffer, item - 1, item, sort->prefix);
	}
}

static void
add_row(EunoSort *sort, const EunoEntry *entry)
{
	EunoSortItem *item = add_composite(sort, entry);

	/* Rows are aligned; the buffer has a multiple of that. */
	sort->buffer_used = MAXALIGN(sort->buffer_used);
	sort->ascending = false;
	item->head = euno_row_head(sort->rows, entry->key, entry->keylen, 0);
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
			 entry.payloadlen == 0 && length <= SHORT_COMPOSITE)
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

/*
 * Sorted entries lie all over the buffer.  A prefetch waits for the page tables;
 * several at once wait together.
 */
static void
prefetch_items(const EunoSort *sort)
{
	const EunoSortItem *item = sort->items + sort->next + PREFETCH_ITEMS;
	const EunoSortItem *end = Min(item + PREFETCH_ITEMS,
								  sort->items + sort->nitems);

	for (int i = 0; i < PREFETCH_ITEMS; i += 4)
		euno_prefetch(item + 2 * PREFETCH_ITEMS + i);
	for (; item < end; item++)
	{
		const uint8_t *composite = sort->buffer + item->offset;

		euno_prefetch(composite);
		euno_prefetch(composite + item->length - 1);
	}
}

static inline void
next_in_memory(EunoSort *sort, SortRun *run)
{
	uint32		number = sort->next++;

	if (!sort->is_short && number % PREFETCH_ITEMS == 0)
		prefetch_items(sort);
	run->data = item_composite(sort, number, run->buffer, &run->length,
							   &run->payloadlen);
}

/* Have so many bytes of the run's file at hand. */
static inline void
fill_block(SortRun *run, uint32 bytes)
{
	uint32		rest = run->filled - run->at;

	if (likely(rest >= bytes))
		return;
	memmove(run->block, run->block + run->at, rest);
	run->at = 0;
	run->filled = rest + (uint32) BufFileRead(run->file, run->block + rest,
											  BLOCK_BYTES - rest);
	if (run->filled < bytes)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("temporary file of a euno index build is too short")));
}

static inline void
next_in_file(EunoSort *sort, SortRun *run)
{
	uint16		lengths[2];
	uint32		bytes;

	fill_block(run, sizeof(lengths));
	memcpy(lengths, run->block + run->at, sizeof(lengths));
	run->at += sizeof(lengths);
	run->length = lengths[0];
	run->payloadlen = lengths[1];
	bytes = run->length + run->payloadlen;
	fill_block(run, bytes);
	run->data = run->block + run->at;
	run->at += bytes;
	if (sort->rows != NULL)
	{
		/* Rows are aligned. */
		memcpy(run->buffer, run->data, bytes);
		run->data = run->buffer;
	}
}

/* Go to the run's next entry; false at its end. */
static bool
advance_run(EunoSort *sort, SortRun *run)
{
	if (run->left == 0)
		return false;
	run->left--;
	if (run->file == NULL)
		next_in_memory(sort, run);
	else
		next_in_file(sort, run);
	if (sort->nruns > 1 && sort->rows == NULL)
	{
		run->heads[0] = head_at(run->data, run->length, 0);
		run->heads[1] = head_at(run->data, run->length, sizeof(uint64));
	}
	return true;
}

/* Is the current entry of one run below that of another? */
static inline bool
run_below(EunoSort *sort, const SortRun *a, const SortRun *b)
{
	int			result;

	/* Runs do not keep the rows' heads. */
	if (sort->rows != NULL)
		return euno_sort_compare_rows(sort->rows, a->data, a->length, 0,
									  b->data, b->length, 0) < 0;
	if (a->heads[0] != b->heads[0])
		return a->heads[0] < b->heads[0];
	if (a->heads[1] != b->heads[1])
		return a->heads[1] < b->heads[1];
	result = memcmp(a->data, b->data, Min(a->length, b->length));
	return result != 0 ? result < 0 : a->length < b->length;
}

/* The run at this place of the heap may belong further down. */
static void
sift_down(EunoSort *sort, int place)
{
	SortRun    *run = sort->heap[place];
	int			child;

	while ((child = 2 * place + 1) < sort->heap_size)
	{
		if (child + 1 < sort->heap_size &&
			run_below(sort, sort->heap[child + 1], sort->heap[child]))
			child++;
		if (!run_below(sort, sort->heap[child], run))
			break;
		sort->heap[place] = sort->heap[child];
		place = child;
	}
	sort->heap[place] = run;
}

/* Go to before a run's first entry. */
static void
open_run(EunoSort *sort, SortRun *run)
{
	if (run->file == NULL)
		return;
	if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a euno index build")));
	euno_buffile_read(run->file, &run->left, sizeof(run->left));
	run->block = MemoryContextAlloc(sort->context, BLOCK_BYTES);
	run->at = run->filled = 0;
}

int
euno_sort_export(EunoSort *sort)
{
	write_run(sort);
	for (int i = 0; i < sort->nruns; i++)
		BufFileExportFileSet(sort->runs[i]->file);
	return sort->nruns;
}

void
euno_sort_import(EunoSort *sort, int participant, int nruns)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	for (int i = 0; i < nruns; i++)
	{
		char		name[MAXPGPATH];

		run_name(name, participant, i);
		add_run(sort, BufFileOpenFileSet(sort->files, name, O_RDONLY, false));
	}
	MemoryContextSwitchTo(old);
}

void
euno_sort_own(EunoSort *sort)
{
	if (!sort->sorted)
		sort_memory(sort);
	sort->sorted = true;
}

void
euno_sort_perform(EunoSort *sort)
{
	euno_sort_own(sort);
	if (sort->nitems > 0 || sort->nruns == 0)
		add_run(sort, NULL);
	sort->heap = MemoryContextAlloc(sort->context,
									sort->nruns * sizeof(SortRun *));
	for (int i = 0; i < sort->nruns; i++)
	{
		open_run(sort, sort->runs[i]);
		if (advance_run(sort, sort->runs[i]))
			sort->heap[sort->heap_size++] = sort->runs[i];
	}
	for (int i = sort->heap_size / 2 - 1; i >= 0; i--)
		sift_down(sort, i);
}

static void
fill_entry(const uint8_t *data, uint16 length, uint16 payloadlen,
		   EunoEntry *entry)
{
	entry->key = data;
	entry->keylen = length - EUNO_TID_BYTES;
	entry->payload = data + length;
	entry->payloadlen = payloadlen;
	entry->tid = euno_get_tid(data + entry->keylen);
}

bool
euno_sort_next(EunoSort *sort, EunoEntry *entry)
{
	const SortRun *run;

	if (sort->begun && sort->heap_size > 0)
	{
		if (!advance_run(sort, sort->heap[0]))
			sort->heap[0] = sort->heap[--sort->heap_size];
		if (sort->heap_size > 1)
			sift_down(sort, 0);
	}
	sort->begun = true;
	if (sort->heap_size == 0)
		return false;
	run = sort->heap[0];
	fill_entry(run->data, run->length, run->payloadlen, entry);
	return true;
}

void
euno_sort_end(EunoSort *sort)
{
	for (int i = 0; i < sort->nruns; i++)
		if (sort->runs[i]->file)
			BufFileClose(sort->runs[i]->file);
	MemoryContextDelete(sort->context);
}
