/*-------------------------------------------------------------------------
 *
 * euno_sort_runs.c
 *	  Sorted runs in temporary files.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>

#include "miscadmin.h"

#include "am/euno_sort_work.h"
#include "euno_compat.h"

/* How much of a run's file is read at a time: at least one entry. */
#define BLOCK_BYTES		16384

SortRun *
euno_sort_add_run(EunoSort *sort, BufFile *file)
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

/* Bytes of the composites in memory, and what comes with them. */
static uint64
bytes_in_memory(const EunoSort *sort)
{
	return sort->is_short ? (uint64) sort->nitems * sort->short_length :
		sort->buffer_used;
}

uint64
euno_sort_bytes(const EunoSort *sort)
{
	uint64		bytes = sort->run_bytes + bytes_in_memory(sort);

	return sort->ascending ? bytes / 2 : bytes;
}

static void
run_name(char *name, int participant, int number)
{
	snprintf(name, MAXPGPATH, "euno-%d-%d", participant, number);
}

void
euno_sort_write_run(EunoSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	uint64		count = sort->nitems;
	char		name[MAXPGPATH];
	BufFile    *file;

	euno_sort_memory(sort);
	run_name(name, sort->participant, sort->nruns);
	file = sort->files ? BufFileCreateFileSet(sort->files, name) :
		BufFileCreateTemp(false);
	BufFileWrite(file, &count, sizeof(count));
	for (uint32 i = 0; i < sort->nitems; i++)
	{
		uint8_t		room[EUNO_SORT_SHORT];
		uint16		lengths[2];
		const uint8_t *composite;

		if (i % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
		euno_sort_prefetch(sort, i);
		composite = euno_sort_composite(sort, i, room, &lengths[0], &lengths[1]);
		BufFileWrite(file, lengths, sizeof(lengths));
		BufFileWrite(file, (void *) composite, lengths[0] + lengths[1]);
	}
	euno_sort_add_run(sort, file);
	sort->run_bytes += bytes_in_memory(sort);
	sort->nitems = 0;
	sort->buffer_used = 0;
	sort->buffer_end = sort->nchunks > 0 ? EUNO_CHUNK_BYTES : 0;
	sort->ascending = true;
	MemoryContextSwitchTo(old);
}

/* Have this many bytes of the run's file at hand. */
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

void
euno_sort_read_run(EunoSort *sort, SortRun *run)
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

void
euno_sort_open_run(EunoSort *sort, SortRun *run)
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
	euno_sort_write_run(sort);
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
		BufFile    *file;

		run_name(name, participant, i);
		file = BufFileOpenFileSet(sort->files, name, O_RDONLY, false);
		euno_sort_add_run(sort, file);

		/* Only of such files does the server tell the size. */
		sort->run_bytes += BufFileSize(file);
	}
	MemoryContextSwitchTo(old);
}
