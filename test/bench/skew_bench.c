/*-------------------------------------------------------------------------
 *
 * skew_bench.c
 *	  What skew and threads do to the B+tree, with each technique against it
 *	  in turn (after Fig. 16 of Eunomia), without a server.
 *
 * Half lookups, half writes: a second TID of a key, which the next write of the
 * same thread removes.  Hot keys are neighbors.  "plain": neither of the
 * techniques; "contended": the leaves with the most conflicts in the first half
 * of the time are contended in the second, which is measured; "delegated": writes
 * that meet others are performed by one of them.
 *
 * EUNO_ROWS (1000000), EUNO_SECONDS for each line (0.5), EUNO_THREADS the most (64).
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keys.h"
#include "subject.h"

#define MAX_THREADS	64
#define CLASSES		512			/* of latencies, 8 to a doubling */
#define HOT_LEAVES	16

typedef enum Technique
{
	PLAIN,
	CONTENDED,
	DELEGATED
} Technique;

static const char *const names[] = {"plain", "contended", "delegated"};

typedef struct Worker
{
	pthread_t	thread;
	uint32_t	number;
	uint64_t	operations;
	double		cpu;
	uint64_t	classes[CLASSES];
} Worker;

static Subject subject;
static KeySet set;
static Technique technique;
static double theta;
static double zeta;
static int	phase;				/* 0: before, 1: measured, 2: over */
static Worker workers[MAX_THREADS];

/* Gray et al., "Quickly generating billion-record synthetic databases". */
static uint64_t
choose(Random *random)
{
	double		u = (double) (random_next(random) >> 11) / (double) (UINT64_C(1) << 53);
	double		n = (double) set.rows;
	double		two = 1 + pow(0.5, theta);
	double		eta;

	if (theta == 0)
		return (uint64_t) (u * n);
	if (u * zeta < 1)
		return 0;
	if (u * zeta < two)
		return 1;
	eta = (1 - pow(2 / n, 1 - theta)) / (1 - two / zeta);
	return (uint64_t) (n * pow(eta * u - eta + 1, 1 / (1 - theta))) % set.rows;
}

static uint32_t
latency_class(double ns)
{
	double		c = ns < 1 ? 0 : 8 * log2(ns);

	return c >= CLASSES ? CLASSES - 1 : (uint32_t) c;
}

static void
get(EunoContext *cx, EunoCursor *cursor, const uint8_t *key, uint32_t len)
{
	EunoTid		tids[8];
	EunoBatch	batch = {.max_items = 8,.tids = tids};

	cursor->lo = (EunoPosition) {.key = key,.keylen = len,.side = -1};
	cursor->hi = (EunoPosition) {.key = key,.keylen = len,.side = 1};
	euno_cursor_start(cursor);
	if (subject.ops->read(cx, subject.tree, cursor, true, &batch) != EUNO_OK ||
		batch.nitems == 0)
		die("a key is missing");
}

static void *
work(void *arg)
{
	Worker	   *w = arg;
	Random		random = {w->number + 1};
	uint8_t		key[MAX_KEY];
	uint8_t		mine[MAX_KEY];
	EunoEntry	entry = {.key = mine,.tid = (uint64_t) (w->number + 1) << 40 | 1};
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	bool		there = false;
	int			seen = 0;
	double		start = 0;
	EunoProcess process;
	EunoContext cx;

	thread_enter(&subject, w->number, &process, &cx);
	if (technique != DELEGATED)
		cx.delegation.shun = UINT32_MAX;
	for (uint64_t i = 0;; i++)
	{
		bool		timed = i % 32 < 2;
		double		since = timed ? now() : 0;
		int			is = __atomic_load_n(&phase, __ATOMIC_RELAXED);

		if (is != seen && (seen = is) == 1)
			start = thread_seconds();
		if (is == 2)
			break;
		if (i % 2 == 0)
			get(&cx, cursor, key, make_key(&set, choose(&random), key));
		else if (there)
		{
			if (subject.ops->remove(&cx, subject.tree, &entry, NULL) != EUNO_OK)
				die("an entry is missing");
			there = false;
		}
		else
		{
			entry.keylen = make_key(&set, choose(&random), mine);
			if (subject.ops->insert(&cx, subject.tree, &entry, false) != EUNO_OK)
				die("an entry cannot be inserted");
			there = true;
		}
		if (is != 1)
			continue;
		w->operations++;
		if (timed)
			w->classes[latency_class((now() - since) * 1e9)]++;
	}
	w->cpu = thread_seconds() - start;
	if (there)
		(void) subject.ops->remove(&cx, subject.tree, &entry, NULL);
	free(cursor);
	return NULL;
}

/* Makes the leaves that were fought for most contended. */
static void
make_contended(void)
{
	static EunoHeat heat[HOT_LEAVES];
	uint32_t	n = subject.ops->heat(&subject.cx, subject.tree, true, heat,
									  HOT_LEAVES);

	for (uint32_t i = 0; i < n; i++)
	{
		EunoPosition pos = {.key = heat[i].key,.keylen = heat[i].keylen,
		.tid = heat[i].tid};

		(void) subject.ops->set_mode(&subject.cx, subject.tree, &pos, true);
	}
}

static EunoEntry
row(uint64_t i)
{
	static uint8_t key[MAX_KEY];

	return (EunoEntry) {.key = key,.keylen = make_key(&set, i, key),
		.tid = make_tid(i)};
}

/* The latency, in nanoseconds, that this share of the operations is below. */
static double
percentile(const uint64_t *classes, double share)
{
	uint64_t	all = 0;
	uint64_t	seen = 0;

	for (int i = 0; i < CLASSES; i++)
		all += classes[i];
	for (int i = 0; i < CLASSES; i++)
	{
		seen += classes[i];
		if ((double) seen >= share * (double) all)
			return pow(2, (i + 0.5) / 8);
	}
	return 0;
}

static void
run(uint32_t threads, double seconds)
{
	uint64_t	classes[CLASSES] = {0};
	uint64_t	operations = 0;
	double		cpu = 0;
	double		wall;
	double		before;

	subject_open(&subject);
	subject_load(&subject, set.rows, row);
	before = subject_bytes(&subject);
	memset(workers, 0, sizeof(workers));
	phase = 0;
	for (uint32_t i = 0; i < threads; i++)
	{
		workers[i].number = i + 1;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	usleep((useconds_t) (seconds * 1e6));
	if (technique == CONTENDED)
		make_contended();
	wall = now();
	__atomic_store_n(&phase, 1, __ATOMIC_RELAXED);
	usleep((useconds_t) (seconds * 1e6));
	__atomic_store_n(&phase, 2, __ATOMIC_RELAXED);
	wall = now() - wall;
	for (uint32_t i = 0; i < threads; i++)
	{
		pthread_join(workers[i].thread, NULL);
		operations += workers[i].operations;
		cpu += workers[i].cpu;
		for (int c = 0; c < CLASSES; c++)
			classes[c] += workers[i].classes[c];
	}
	printf("| %-9s | %5.2f | %7u | %6.2f | %7.0f | %8.1f | %9.1f | %5.1f |\n",
		   names[technique], theta, threads, (double) operations / wall / 1e6,
		   cpu * 1e9 / (double) operations, percentile(classes, 0.5) / 1000,
		   percentile(classes, 0.99) / 1000,
		   100 * (subject_bytes(&subject) / before - 1));
	fflush(stdout);
	subject_close(&subject);
}

int
main(void)
{
	static const double thetas[] = {0, 0.6, 0.9, 0.99};
	const char *rows = getenv("EUNO_ROWS");
	const char *most = getenv("EUNO_THREADS");
	double		seconds = test_seconds() > 0 ? test_seconds() : 0.5;
	uint32_t	max = most != NULL ? (uint32_t) atoi(most) : MAX_THREADS;

	if (max < 1 || max > MAX_THREADS)
		die("EUNO_THREADS must be from 1 to 64");
	key_set_init(&set, SPARSE, rows != NULL ? strtoull(rows, NULL, 10) : 1000000);
	subjects_begin(MAX_THREADS + 1);
	subject_init(&subject, "bptree", &euno_bptree_ops, 1);
	printf("| technique | theta | threads | Mops/s | CPU ns  | p50 (us) | p99 (us)  | mem %% |\n");
	printf("|-----------|------:|--------:|-------:|--------:|---------:|----------:|------:|\n");
	for (size_t t = 0; t < sizeof(thetas) / sizeof(thetas[0]); t++)
	{
		theta = thetas[t];
		zeta = 0;
		for (uint64_t i = 1; i <= set.rows; i++)
			zeta += pow((double) i, -theta);
		for (uint32_t threads = 1; threads <= max; threads *= 4)
		{
			for (technique = PLAIN; technique <= DELEGATED; technique++)
				run(threads, seconds);
		}
	}
	return 0;
}
