/*-------------------------------------------------------------------------
 *
 * euno_sort_merge.c
 *	  Reading sorted entries: of one run, or of several that are merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "am/euno_sort_work.h"

/* Items are given back after this many were read. */
#define GIVE_EVERY	65536

static inline void
next_in_memory(EunoSort *sort, SortRun *run)
{
	uint32		number = sort->next++;

	if (unlikely(number % GIVE_EVERY == 0))
		euno_sort_give_back(sort, number);
	euno_sort_prefetch(sort, number);
	run->data = euno_sort_composite(sort, number, run->buffer,
									&run->length, &run->payloadlen);
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
		euno_sort_read_run(sort, run);
	if (sort->nruns > 1 && sort->rows == NULL)
	{
		run->heads[0] = euno_sort_head_at(run->data, run->length, 0);
		run->heads[1] = euno_sort_head_at(run->data, run->length,
										  sizeof(uint64));
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

void
euno_sort_own(EunoSort *sort)
{
	if (!sort->sorted)
		euno_sort_memory(sort);
	sort->sorted = true;
}

void
euno_sort_perform(EunoSort *sort)
{
	euno_sort_own(sort);
	if (sort->nitems > 0 || sort->nruns == 0)
		euno_sort_add_run(sort, NULL);
	sort->heap = MemoryContextAlloc(sort->context,
									sort->nruns * sizeof(SortRun *));
	for (int i = 0; i < sort->nruns; i++)
	{
		euno_sort_open_run(sort, sort->runs[i]);
		if (advance_run(sort, sort->runs[i]))
			sort->heap[sort->heap_size++] = sort->runs[i];
	}
	for (int i = sort->heap_size / 2 - 1; i >= 0; i--)
		sift_down(sort, i);
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
	entry->key = run->data;
	entry->keylen = run->length - EUNO_TID_BYTES;
	entry->payload = run->data + run->length;
	entry->payloadlen = run->payloadlen;
	entry->tid = euno_get_tid(run->data + entry->keylen);
	return true;
}

uint64
euno_sort_left(const EunoSort *sort)
{
	uint64		left = sort->heap_size;

	for (int i = 0; i < sort->nruns; i++)
		left += sort->runs[i]->left;
	return left;
}

void
euno_sort_end(EunoSort *sort)
{
	for (int i = 0; i < sort->nruns; i++)
		if (sort->runs[i]->file)
			BufFileClose(sort->runs[i]->file);
	MemoryContextDelete(sort->context);
}
