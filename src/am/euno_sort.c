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

#include "utils/memutils.h"

#include "am/euno_sort_work.h"

#define LEAST_MEMORY	((Size) 2 * 1024 * 1024)
#define MOST_MEMORY		((Size) 0xFFFFFFF0) /* offsets are 32 bits wide */

/* From now on composites are in the buffer, which are chunks. */
static void
begin_long(EunoSort *sort)
{
	sort->is_short = false;
	euno_sort_begin_chunks(sort);
}

/* Items have this many words from now on. */
static void
set_words(EunoSort *sort, uint32 words)
{
	sort->words = words;
	sort->max_items = (uint32) (sort->item_bytes / EUNO_ITEM_BYTES(sort));
}

/* All composites so far have this length. */
static void
begin_short(EunoSort *sort, uint32 length)
{
	sort->short_length = length;
	set_words(sort, length <= 2 * sizeof(uint64) ? 2 : EUNO_ITEM_WORDS);
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
	sort->limit = Max((Size) work_mem_kb * 1024, LEAST_MEMORY);
	sort->limit = Min(sort->limit, MOST_MEMORY);
	euno_sort_begin_memory(sort, heap);
	sort->is_short = true;
	set_words(sort, sizeof(EunoSortItem) / sizeof(uint64));
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
	set_words(sort, sizeof(EunoSortItem) / sizeof(uint64));
}

/* Room for one more entry: grow within the limit, else write a run. */
static void
make_room(EunoSort *sort, Size bytes, EunoTid tid)
{
	if (euno_sort_used(sort) + bytes + EUNO_ITEM_BYTES(sort) > sort->limit)
		euno_sort_write_run(sort);
	if (sort->buffer_used + bytes > sort->buffer_end)
		euno_sort_next_chunk(sort);
	if (sort->nitems >= sort->max_items)
		euno_sort_more_items(sort, tid);
}

/* The key is in the form buffer, which has room behind it. */
static void
add_short(EunoSort *sort, const EunoEntry *entry)
{
	uint8_t    *composite = sort->form_buffer;
	int			words = sort->words;
	uint64	   *item;

	if (unlikely(sort->nitems >= sort->max_items))
		make_room(sort, 0, entry->tid);
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
	const uint8_t *first = euno_sort_at(sort->chunks, &sort->items[0]);

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

	if (unlikely(sort->buffer_used + bytes > sort->buffer_end ||
				 sort->nitems >= sort->max_items ||
				 euno_sort_used(sort) + bytes + EUNO_ITEM_BYTES(sort) >
				 sort->limit))
		make_room(sort, bytes, entry->tid);

	item = &sort->items[sort->nitems++];
	item->offset = (uint32) sort->buffer_used;
	item->length = (uint16) length;
	item->payloadlen = (uint16) entry->payloadlen;

	composite = euno_sort_at(sort->chunks, item);
	memcpy(composite, entry->key, entry->keylen);
	euno_put_tid(composite + entry->keylen, entry->tid);
	if (entry->payloadlen > 0)
		memcpy(composite + length, entry->payload, entry->payloadlen);
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
		note_prefix(sort, euno_sort_at(sort->chunks, item), item->length);
		sort->ascending = sort->ascending &&
			euno_sort_less(sort->chunks, item - 1, item, sort->prefix);
	}
}

static void
add_row(EunoSort *sort, const EunoEntry *entry)
{
	(void) add_composite(sort, entry);

	/* Rows are aligned; a chunk has a multiple of that. */
	sort->buffer_used = MAXALIGN(sort->buffer_used);
	sort->ascending = false;
}

static void
add_values(EunoSort *sort, const Datum *values, const bool *isnull,
		   EunoTid tid)
{
	EunoEntry	entry;
	uint32_t	length;

	euno_key_form(sort->schema, values, isnull, tid, sort->form_buffer, &entry);
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
	add_values(sort, values, isnull, euno_tid_pack(tid));
}

void
euno_sort_add_root(void *sort, ItemPointer root, Datum *values, bool *isnull)
{
	add_values(sort, values, isnull, euno_tid_pack(root));
}
