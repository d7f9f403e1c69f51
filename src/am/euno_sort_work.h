/*-------------------------------------------------------------------------
 *
 * euno_sort_work.h
 *	  The state of a build's sort: for euno_sort*.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SORT_WORK_H
#define EUNO_SORT_WORK_H

#include "postgres.h"

#include "port/pg_bswap.h"
#include "storage/buffile.h"

#include "am/euno_build.h"
#include "am/euno_sort_items.h"
#include "core/euno_shared.h"

#define EUNO_SORT_AHEAD 24
#define EUNO_SORT_COMPOSITE (EUNO_MAX_ENTRY + EUNO_TID_BYTES)
#define EUNO_SORT_SHORT	(EUNO_ITEM_WORDS * sizeof(uint64))
#define EUNO_ITEM_BYTES(sort) ((sort)->words * sizeof(uint64))

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
	uint8_t		buffer[EUNO_SORT_COMPOSITE]
				pg_attribute_aligned(MAXIMUM_ALIGNOF);
} SortRun;

struct EunoSort
{
	const EunoKeySchema *schema;
	EunoRowOrder *rows;			/* COMPARE order only */
	uint8_t    *form_buffer;
	MemoryContext context;
	Size		limit;			/* of the buffer and the items */
	Size		reserve;		/* that each of them gets at a time */
	Size		table_bytes;
	int			domain;			/* where memory is borrowed */
	uint8_t   **chunks;			/* of composites: the buffer */
	uint32		nchunks;
	Size		buffer_end;		/* of the chunk that is being filled */
	Size		buffer_used;
	uint8_t    *own;			/* private memory, for more chunks */
	uint32		nown;			/* so many */
	void	  **loans;			/* the chunks that are the arena's */
	uint32		nloans;
	MemoryContextCallback return_loans;
	union
	{
		uint64	   *numbers;	/* of short composites, so many words each */
		EunoSortItem *items;	/* of others */
	};
	EunoSortItem *scratch;		/* while sorting */
	uint32		nitems;
	uint32		max_items;
	Size		item_bytes;		/* what they have */
	uint8_t    *item_loan;		/* of the arena, what was not returned */
	uint32		nitem_loan;
	int			words;			/* of an item */
	bool		is_short;		/* the items are short composites, all */
	uint32		short_length;	/* of this length */
	bool		ascending;		/* the items came in order */
	bool		sorted;			/* the items are, for good */
	uint32		prefix;			/* bytes that all composites share */
	uint32		next;			/* reading from memory */
	Size		given_back;		/* bytes of items that were read */
	FileSet    *files;			/* NULL: nobody else reads our runs */
	int			participant;
	int			nruns;
	uint64		run_bytes;		/* of what is in runs; about */
	int			max_runs;
	SortRun   **runs;
	SortRun   **heap;			/* while merging, the least one first */
	int			heap_size;
	bool		begun;			/* the first one's entry has been returned */
};

/* How much of the limit is taken; rows are merged with scratch memory. */
static inline Size
euno_sort_used(const EunoSort *sort)
{
	Size		items = (Size) sort->nitems * EUNO_ITEM_BYTES(sort);

	return sort->buffer_used + items + (sort->rows != NULL ? items / 2 : 0);
}

/* The eight bytes at "depth", as a number; zeros past the end. */
static inline uint64
euno_sort_head_at(const uint8_t *composite, uint32 length, uint32 depth)
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
euno_sort_less(EunoSortChunks chunks, const EunoSortItem *a,
			   const EunoSortItem *b, uint32 depth)
{
	uint32		length = Min(a->length, b->length);

	if (length <= depth)
		return a->length < b->length;
	return memcmp(euno_sort_at(chunks, a) + depth,
				  euno_sort_at(chunks, b) + depth, length - depth) < 0;
}

/* Compares short composites from this word on. */
static inline bool
euno_sort_in_order(const uint64 *a, const uint64 *b, int word, int words)
{
	while (word < words - 1 && a[word] == b[word])
		word++;
	return a[word] <= b[word];
}

/*
 * Sorted composites lie all over the chunks: each time one is read, one
 * further on is asked for.
 */
static inline void
euno_sort_prefetch(const EunoSort *sort, uint32 number)
{
	number += EUNO_SORT_AHEAD;
	if (!sort->is_short && number < sort->nitems)
	{
		const EunoSortItem *item = &sort->items[number];
		const uint8_t *composite = euno_sort_at(sort->chunks, item);

		euno_prefetch(composite);
		euno_prefetch(composite + item->length - 1);
	}
}

/* The composite of an item, in a chunk or in "room". */
static inline const uint8_t *
euno_sort_composite(const EunoSort *sort, uint32 number, uint8_t *room,
					uint16 *length, uint16 *payloadlen)
{
	const EunoSortItem *item;

	if (!sort->is_short)
	{
		item = &sort->items[number];
		*length = item->length;
		*payloadlen = item->payloadlen;
		return euno_sort_at(sort->chunks, item);
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

/* ---- euno_sort_chunks.c ---- */

/* Memory in huge pages, if it is large; the system may decline. */
extern void *euno_sort_alloc(EunoSort *sort, Size size);

/* When context and limit are set: room for some items. */
extern void euno_sort_begin_memory(EunoSort *sort, Relation heap);

/* Room for more of them; the last one that was added has this TID. */
extern void euno_sort_more_items(EunoSort *sort, EunoTid tid);

/* Composites go to the first chunk, then to another one. */
extern void euno_sort_begin_chunks(EunoSort *sort);
extern void euno_sort_next_chunk(EunoSort *sort);

/*
 * The sorted items before this one are not needed any more: their memory goes
 * back, in whole huge pages.
 */
extern void euno_sort_give_back(EunoSort *sort, uint32 number);

/* ---- euno_sort_memory.c ---- */

/* Sorts the items, unless they are in order. */
extern void euno_sort_memory(EunoSort *sort);

/* ---- euno_sort_runs.c ---- */

/* Notes one more run, of the items in memory or in a file. */
extern SortRun *euno_sort_add_run(EunoSort *sort, BufFile *file);

/* Sorts what is in memory, writes it out, and begins anew. */
extern void euno_sort_write_run(EunoSort *sort);

/* Goes to before a run's first entry, and from there to the next one. */
extern void euno_sort_open_run(EunoSort *sort, SortRun *run);
extern void euno_sort_read_run(EunoSort *sort, SortRun *run);

#endif							/* EUNO_SORT_WORK_H */
