/*-------------------------------------------------------------------------
 *
 * core_bench.c
 *	  How long the tree's operations take, without a server.
 *
 * Prints a table of nanoseconds per operation and bytes per entry.  EUNO_ROWS
 * sets the number of entries (10 million), EUNO_THREADS the most threads (16),
 * EUNO_DOMAINS the number of domains, over which threads are spread (1),
 * EUNO_TREE the tree ("bptree").  With EUNO_GROWTH it prints for each tree and size
 * a line: name, entries, CPU nanoseconds of a lookup of sparse integers.
 * Times are those of all threads over the operations of all threads: "wall" says
 * what one gets, "cpu" what it costs, also on a machine that others use.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#define MAX_THREADS 64
#define STRING_BYTES 40
#define ZIPF_THETA 0.99
#define SCAN_ENTRIES 100

typedef enum Keys
{
	DENSE,						/* int8: 0, 1, 2, ... */
	SPARSE,						/* int8: scattered over all 64 bits */
	STRINGS						/* 40 bytes, half of them alike */
} Keys;

typedef enum Job
{
	INSERT_RANDOM,
	INSERT_ASCENDING,
	LOOKUP_RANDOM,
	LOOKUP_ZIPF,
	SCAN_RANDOM,				/* SCAN_ENTRIES from a random place on */
	SCAN_ALL
} Job;

static const char *const key_names[] = {"int8 dense", "int8 sparse", "string 40"};
static const char *const job_names[] = {
	"insert, random", "insert, ascending", "lookup", "lookup, Zipf 0.99",
	"scan of 100, per entry", "scan of all, per entry"
};

typedef struct Bench
{
	const EunoTreeOps *ops;
	Keys		keys;
	uint64_t	rows;
	uint32_t	bits;			/* rows <= 2^bits */
	EunoTree   *tree;
	NodeSource	source;
	EunoPool   *pools;			/* one a domain */
	EunoEpochs *epochs;
	double		zeta;			/* of rows, for Zipf */
} Bench;

typedef struct Work
{
	pthread_t	thread;
	Bench	   *bench;
	Job			job;
	uint32_t	number;
	uint32_t	threads;
	uint64_t	operations;		/* to do; entries seen, for scans */
	uint64_t	seen;
} Work;

static EunoArena *arena;
static int	ndomains = 1;

/* A permutation of 0 .. rows - 1: a few Feistel-like steps, walked in cycles. */
static uint64_t
scatter(const Bench *bench, uint64_t i)
{
	uint64_t	mask = (UINT64_C(1) << bench->bits) - 1;

	do
	{
		for (int round = 0; round < 3; round++)
		{
			i = (i * UINT64_C(0x9E3779B97F4A7C15) + 12345) & mask;
			i ^= i >> (bench->bits / 2 + 1);
		}
	} while (i >= bench->rows);
	return i;
}

/* The key of row i, in an order that is that of i for DENSE and STRINGS. */
static uint32_t
make_key(const Bench *bench, uint64_t i, uint8_t *key)
{
	if (bench->keys == SPARSE)
		i *= UINT64_C(0x9E3779B97F4A7C15);
	else
		i += UINT64_C(0x8000000000000000);
	key[0] = 2;
	if (bench->keys == STRINGS)
	{
		memset(key + 1, 'k', STRING_BYTES / 2);
		for (int d = STRING_BYTES; d > STRING_BYTES / 2; d--, i /= 10)
			key[d] = (uint8_t) ('0' + i % 10);
		key[STRING_BYTES + 1] = 0;
		return STRING_BYTES + 2;
	}
	i = __builtin_bswap64(i);
	memcpy(key + 1, &i, 8);
	return 9;
}

static EunoTid
make_tid(uint64_t i)
{
	return (i / 200) << 16 | (i % 200 + 1);
}

/* After Gray et al., "Quickly generating billion-record synthetic databases". */
static uint64_t
zipf(const Bench *bench, Random *random)
{
	double		n = (double) bench->rows;
	double		u = (double) (random_next(random) >> 11) / 9007199254740992.0;
	double		uz = u * bench->zeta;
	double		zeta2 = 1 + pow(0.5, ZIPF_THETA);
	double		eta = (1 - pow(2 / n, 1 - ZIPF_THETA)) / (1 - zeta2 / bench->zeta);
	uint64_t	rank;

	if (uz < 1)
		return 0;
	if (uz < zeta2)
		return 1;
	rank = (uint64_t) (n * pow(eta * u - eta + 1, 1 / (1 - ZIPF_THETA)));
	return rank < bench->rows ? rank : bench->rows - 1;
}

static void
die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void
do_inserts(Work *work, EunoContext *cx)
{
	Bench	   *bench = work->bench;
	uint8_t		key[STRING_BYTES + 2];

	for (uint64_t j = work->number; j < bench->rows; j += work->threads)
	{
		uint64_t	i = work->job == INSERT_RANDOM ? scatter(bench, j) : j;
		EunoEntry	entry = {.key = key,.tid = make_tid(i)};

		entry.keylen = make_key(bench, i, key);
		if (bench->ops->insert(cx, bench->tree, &entry, false) != EUNO_OK)
			die("an insert failed");
		work->seen++;
	}
}

static void
do_lookups(Work *work, EunoContext *cx)
{
	Bench	   *bench = work->bench;
	Random		random = {work->number * 77 + 1};
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	EunoTid		tids[4];
	EunoBatch	batch = {.max_items = 4,.tids = tids};
	uint8_t		key[STRING_BYTES + 2];

	cursor->lo.key = cursor->hi.key = key;
	cursor->lo.side = -1;
	cursor->hi.side = 1;
	for (uint64_t j = 0; j < work->operations; j++)
	{
		uint64_t	i = work->job == LOOKUP_ZIPF ?
			scatter(bench, zipf(bench, &random)) :
			random_next(&random) % bench->rows;

		cursor->lo.keylen = cursor->hi.keylen = make_key(bench, i, key);
		euno_cursor_start(cursor);
		if (bench->ops->read(cx, bench->tree, cursor, true, &batch) != EUNO_OK ||
			batch.nitems != 1 || tids[0] != make_tid(i))
			die("a lookup went wrong");
	}
	work->seen = work->operations;
	free(cursor);
}

static void
do_scans(Work *work, EunoContext *cx)
{
	Bench	   *bench = work->bench;
	Random		random = {work->number * 77 + 1};
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	EunoTid		tids[1024];
	EunoBatch	batch = {.max_items = 1024,.tids = tids};
	uint8_t		key[STRING_BYTES + 2];
	uint64_t	limit = work->job == SCAN_ALL ? UINT64_MAX : SCAN_ENTRIES;

	cursor->hi.side = 1;
	cursor->lo.side = -1;
	cursor->lo.key = key;
	while (work->seen < work->operations)
	{
		uint64_t	seen = 0;

		if (work->job == SCAN_RANDOM)
			cursor->lo.keylen = make_key(bench, random_next(&random) % bench->rows,
										 key);
		euno_cursor_start(cursor);
		do
		{
			batch.max_items = limit - seen < 1024 ? (uint32_t) (limit - seen) : 1024;
			if (bench->ops->read(cx, bench->tree, cursor, true, &batch) != EUNO_OK)
				die("a scan failed");
			seen += batch.nitems;
		} while (batch.nitems > 0 && seen < limit);
		work->seen += seen;
		if (work->job == SCAN_ALL && seen != bench->rows)
			die("a scan did not see all entries");
	}
	free(cursor);
}

static void *
run_work(void *arg)
{
	Work	   *work = arg;
	EunoProcess process = {work->bench->epochs, work->number, 0};
	EunoContext cx = {.process = &process,.env = &test_env,
	.domain = (int) work->number % ndomains};

	if (work->job <= INSERT_ASCENDING)
		do_inserts(work, &cx);
	else if (work->job <= LOOKUP_ZIPF)
		do_lookups(work, &cx);
	else
		do_scans(work, &cx);
	return NULL;
}

/* Nanoseconds per operation. */
typedef struct Times
{
	double		wall;
	double		cpu;
} Times;

/* Does a job with this many threads. */
static Times
run_job(Bench *bench, Job job, uint32_t threads)
{
	static Work works[MAX_THREADS];
	double		start = now();
	double		cpu_start = cpu_seconds();
	uint64_t	seen = 0;
	Times		times;

	for (uint32_t t = 0; t < threads; t++)
	{
		works[t] = (Work)
		{
			.bench = bench,.job = job,.number = t,.threads = threads,
				.operations = (bench->rows < 4000000 ? bench->rows : 4000000) / threads
		};
		pthread_create(&works[t].thread, NULL, run_work, &works[t]);
	}
	for (uint32_t t = 0; t < threads; t++)
	{
		pthread_join(works[t].thread, NULL);
		seen += works[t].seen;
	}
	times.wall = (now() - start) * 1e9 / (double) seen;
	times.cpu = (cpu_seconds() - cpu_start) * 1e9 / (double) seen;
	return times;
}

static void
make_tree(Bench *bench)
{
	EunoTreeConfig config = {EUNO_ORDER_BYTES, true, 90, (uint16_t) ndomains};
	EunoProcess process = {bench->epochs, 0, 0};
	EunoContext cx = {.process = &process,.env = &test_env};

	memset(bench->tree, 0, sizeof(EunoTree));
	for (int d = 0; d < ndomains; d++)
		euno_pool_init(&bench->pools[d], arena, d);
	node_source_init(&bench->source, bench->pools);
	bench->tree->alloc_arg = &bench->source;
	if (bench->ops->create(&cx, bench->tree, &config) != EUNO_OK)
		die("no tree");
}

static void
release(Bench *bench)
{
	for (int d = 0; d < ndomains; d++)
		euno_pool_release(&bench->pools[d]);
}

static void
print_row(const Bench *bench, Job job, uint32_t threads, Times times)
{
	printf("| %-11s | %-22s | %7u | %7.1f | %7.1f |", key_names[bench->keys],
		   job_names[job], threads, times.wall, times.cpu);
	if (job <= INSERT_ASCENDING)
		printf(" %11.2f |", (double) bench->source.live_bytes /
			   (double) bench->rows);
	else
		printf(" %11s |", "");
	printf("\n");
	fflush(stdout);
}

static void
run_keys(Bench *bench, uint32_t max_threads)
{
	static const uint32_t threads[] = {1, 2, 16};
	static const Job reads[] = {LOOKUP_RANDOM, LOOKUP_ZIPF, SCAN_RANDOM, SCAN_ALL};

	for (int job = INSERT_ASCENDING; job >= INSERT_RANDOM; job--)
	{
		/* scattered keys have no ascending order of their own */
		if (job == INSERT_ASCENDING && bench->keys == SPARSE)
			continue;
		for (int t = 2; t >= 0; t--)
		{
			if (threads[t] > max_threads)
				continue;
			make_tree(bench);
			print_row(bench, (Job) job, threads[t],
					  run_job(bench, (Job) job, threads[t]));
			if (job != INSERT_RANDOM || threads[t] != 1)
				release(bench);
		}
	}
	for (size_t r = 0; r < sizeof(reads) / sizeof(reads[0]); r++)
	{
		for (int t = 0; t < 3; t++)
		{
			if (threads[t] <= max_threads)
				print_row(bench, reads[r], threads[t],
						  run_job(bench, reads[r], threads[t]));
		}
	}
	release(bench);
}

/* Sets the number of entries and what follows from it. */
static void
set_rows(Bench *bench, uint64_t rows)
{
	bench->rows = rows;
	bench->bits = 0;
	while ((UINT64_C(1) << bench->bits) < rows)
		bench->bits++;
	bench->zeta = 0;
	for (uint64_t i = 1; i <= rows; i++)
		bench->zeta += 1 / pow((double) i, ZIPF_THETA);
}

/* The best of some runs: the machine may be busy. */
static void
grow(Bench *bench, const EunoTreeOps *ops, uint64_t most)
{
	bench->ops = ops;
	bench->keys = SPARSE;
	for (uint64_t rows = 10000; rows <= most; rows *= 10)
	{
		double		best = 0;

		set_rows(bench, rows);
		make_tree(bench);
		(void) run_job(bench, INSERT_RANDOM, 1);
		for (int run = 0; run < 5; run++)
		{
			double		cpu = run_job(bench, LOOKUP_RANDOM, 1).cpu;

			if (run == 0 || cpu < best)
				best = cpu;
		}
		printf("%s %llu %.1f\n", ops->name, (unsigned long long) rows, best);
		fflush(stdout);
		release(bench);
	}
}

int
main(void)
{
	const char *rows = getenv("EUNO_ROWS");
	const char *threads = getenv("EUNO_THREADS");
	const char *domains = getenv("EUNO_DOMAINS");
	uint32_t	max_threads = threads != NULL ? (uint32_t) atoi(threads) : 16;
	const char *tree = getenv("EUNO_TREE");
	Bench		bench = {.ops = &euno_bptree_ops,.rows = rows != NULL ? strtoull(rows, NULL, 10) : 10000000};

	if (tree != NULL && strcmp(tree, "art/olc") == 0)
		bench.ops = &euno_art_olc_ops;
	else if (tree != NULL && strcmp(tree, "art/rowex") == 0)
		bench.ops = &euno_art_rowex_ops;
	else if (tree != NULL && strcmp(tree, "bptree") != 0)
		die("EUNO_TREE is bptree, art/olc or art/rowex");
	if (bench.rows < 1000)
		die("EUNO_ROWS must be at least 1000");
	set_rows(&bench, bench.rows);
	ndomains = domains != NULL ? atoi(domains) : 1;
	if (ndomains < 1 || ndomains > EUNO_MAX_DOMAINS)
		die("EUNO_DOMAINS must be from 1 to 16");
	arena = euno_arena_reserve((size_t) 16 << 30, ndomains, &test_env);
	if (arena == NULL)
		die("no address space");
	bench.tree = shared_memory(sizeof(EunoTree));
	bench.pools = shared_memory(sizeof(EunoPool) * EUNO_MAX_DOMAINS);
	bench.epochs = shared_memory(euno_epochs_size(MAX_THREADS));
	euno_epochs_init(bench.epochs, MAX_THREADS);
	if (getenv("EUNO_GROWTH") != NULL)
	{
		uint64_t	most = bench.rows;

		grow(&bench, &euno_bptree_ops, most);
		grow(&bench, &euno_art_olc_ops, most);
		return 0;
	}
	printf("%s, %llu rows\n\n", bench.ops->name,
		   (unsigned long long) bench.rows);
	printf("| keys        | job                    | threads | wall ns |  cpu ns | bytes/entry |\n");
	printf("|-------------|------------------------|--------:|--------:|--------:|------------:|\n");
	for (int keys = DENSE; keys <= STRINGS; keys++)
	{
		bench.keys = (Keys) keys;
		run_keys(&bench, max_threads);
	}
	return 0;
}
