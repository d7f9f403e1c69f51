/*-------------------------------------------------------------------------
 *
 * skew_bench.c
 *	  What skew and threads do to the B+tree, with each technique against it
 *	  added in turn (after Fig. 16 of Eunomia), without a server.
 *
 * Half lookups, half writes: a second TID of a key, which the next write of the
 * same thread removes.  Hot keys are neighbors.  Or, "ascending": each operation
 * inserts the next key above all others.
 *
 *	plain		neither of the techniques: an OLC B+tree
 *	delegated	and writes that meet others are performed by one of them
 *	contended	and the leaves with the most conflicts in the first half of the
 *				time are contended in the second, which is measured
 *	split		instead, leaves are split between the keys they are wanted for
 *	detector	as it is in the server: every round the policy sees the conflicts
 *				and decides about leaves
 *
 * EUNO_ROWS (1000000), EUNO_SECONDS for each line (0.5), EUNO_THREADS the most (64),
 * EUNO_ROUNDS (1) of all of it, in turns; medians are printed.  EUNO_ONLY: workloads
 * whose names have this in it.  With EUNO_RESULTS the operations in a second of processor
 * time, which other work on the machine hardly changes, are written there for
 * test/sim/plot.  A build that counts (lines.h) says
 * how many lines are written instead of how long that takes.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bptree/bpt_annex.h"
#include "keys.h"
#include "lines.h"
#include "subject.h"
#include "worker/euno_policy.h"

#define MAX_THREADS	64
#define CLASSES		512			/* of latencies, 8 to a doubling */
#define HOT_LEAVES	16
#define MAX_ROUNDS	9
#define COUNTED_ROUNDS	10		/* of each half, where lines are counted ... */
#define COUNTED_TURNS	40000	/* ... and turns in each */
#define HEAT_BYTES	(32 * 1024)	/* of the table of conflicts */

/*
 * The detector's round in seconds, and conflicts a second that make a leaf
 * hot.
 */
#define DETECTOR_ROUND	0.1
#define DETECTOR_RATE	1000

/* SPLIT: conflicts that part a leaf, and leaves that may be parted. */
#define PART_AT		100
#define PART_MOST	64

typedef enum Technique
{
	PLAIN,
	DELEGATED,
	CONTENDED,
	SPLIT,
	DETECTOR,
	TECHNIQUES
} Technique;

static const char *const names[] = {"plain", "delegated", "contended", "split", "detector"};

static const double thetas[] = {0, 0.6, 0.9, 0.99};

#define THETAS		(sizeof(thetas) / sizeof(thetas[0]))
#define ASCENDING	THETAS		/* a workload like the thetas */
#define WORKLOADS	(THETAS + 1)

typedef struct Worker
{
	pthread_t	thread;
	uint32_t	number;
	uint64_t	operations;
	double		cpu;
	uint64_t	classes[CLASSES];
} Worker;

/* What is said of a run. */
typedef enum Figure
{
	MOPS,						/* million operations a second */
	CPU,						/* ns of processor time an operation */
	MEDIAN,						/* latencies, us */
	P99,
	MEMORY,						/* of the mechanisms, percent of the tree's */
	WRITTEN,					/* lines an operation */
	TAKEN,
	FIGURES
} Figure;

static const char *const titles[] = {
	"Mops/s", "CPU ns", "p50 us", "p99 us", "memory %",
	"lines written", "from another writer"
};

static Subject subject;
static KeySet set;
static Technique technique;
static size_t workload;
static double zeta;
static uint64_t next_key;		/* ASCENDING */
static int	phase;				/* 0: before, 1: measured, 2: over */
static Worker workers[MAX_THREADS];
static double samples[MAX_ROUNDS];
static double figures[WORKLOADS][TECHNIQUES][8][FIGURES][MAX_ROUNDS];

static const char *
workload_name(void)
{
	static char name[32];

	if (workload == ASCENDING)
		return "ascending";
	snprintf(name, sizeof(name), "theta %g", thetas[workload]);
	return name;
}

/* Gray et al., "Quickly generating billion-record synthetic databases". */
static uint64_t
choose(Random *random)
{
	double		theta = thetas[workload];
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

/* What a thread does one after the other. */
typedef struct Work
{
	EunoContext *cx;
	EunoCursor *cursor;
	Random		random;
	uint8_t		key[MAX_KEY];
	uint8_t		mine[MAX_KEY];
	EunoEntry	entry;			/* our second TID of a key, if it is there */
	bool		there;
} Work;

static void
put(Work *w, uint64_t row)
{
	w->entry.keylen = make_key(&set, row, w->mine);
	if (subject.ops->insert(w->cx, subject.tree, &w->entry, false) != EUNO_OK)
		die("an entry cannot be inserted");
}

static void
take_out(Work *w)
{
	if (subject.ops->remove(w->cx, subject.tree, &w->entry, NULL) != EUNO_OK)
		die("an entry is missing");
	w->there = false;
}

static void
operate(Work *w, uint64_t i)
{
	if (workload == ASCENDING)
		put(w, __atomic_fetch_add(&next_key, 1, __ATOMIC_RELAXED));
	else if (i % 2 == 0)
		get(w->cx, w->cursor, w->key, make_key(&set, choose(&w->random), w->key));
	else if (w->there)
		take_out(w);
	else
	{
		put(w, choose(&w->random));
		w->there = true;
	}
}

static void *
work(void *arg)
{
	Worker	   *w = arg;
	EunoProcess process;
	EunoContext cx;
	Work		mine = {.cx = &cx,.cursor = calloc(1, sizeof(EunoCursor)),
	.random = {w->number + 1},.entry = {.tid = (uint64_t) (w->number + 1) << 40 | 1}};
	int			seen = 0;
	double		start = 0;

	mine.entry.key = mine.mine;
	thread_enter(&subject, w->number, &process, &cx);
	if (technique == PLAIN)
		cx.delegation.shun = UINT32_MAX;
	if (lines_counted())
		cx.env = &lines_env;
	for (uint64_t i = 0;; i++)
	{
		bool		timed = i % 32 < 2;
		double		since = timed ? now() : 0;
		int			is = __atomic_load_n(&phase, __ATOMIC_RELAXED);

		if (is != seen && (seen = is) == 1)
			start = thread_seconds();
		if (is == 2)
			break;
		operate(&mine, i);
		if (is != 1)
			continue;
		w->operations++;
		if (timed)
			w->classes[latency_class((now() - since) * 1e9)]++;
	}
	w->cpu = thread_seconds() - start;
	if (mine.there)
		take_out(&mine);
	free(mine.cursor);
	return NULL;
}

/* Switches the mode of the leaf that the heat is about. */
static void
switch_leaf(const EunoHeat *heat, bool contended)
{
	EunoPosition pos = {.key = heat->key,.keylen = heat->keylen,
	.tid = heat->tid};

	(void) subject.ops->set_mode(&subject.cx, subject.tree, &pos, contended);
}

/* Makes the leaves that were fought for most contended. */
static void
make_contended(void)
{
	static EunoHeat heat[HOT_LEAVES];
	uint32_t	n = subject.ops->heat(&subject.cx, subject.tree, true, heat,
									  HOT_LEAVES);

	for (uint32_t i = 0; i < n; i++)
		switch_leaf(&heat[i], true);
}

/* One round of the detector: what the server's launcher does. */
static void
detect(EunoPolicyMemory *memory, double seconds)
{
	static EunoHeat heat[EUNO_POLICY_LEAVES];
	static EunoHeat known[EUNO_POLICY_LEAVES];	/* of what became hot */
	static uint32_t nknown;
	EunoPolicySettings settings = {.hot_rate = DETECTOR_RATE,.naptime = seconds};
	EunoPolicyInput input = {.generation = 1,.seconds = seconds,
	.can_contend = true,.can_part = true};
	uint32_t	budget = EUNO_POLICY_LEAVES;
	EunoPolicyActions actions;
	EunoTreeStats stats;

	subject.ops->stats(&subject.cx, subject.tree, &stats);
	input.entries = stats.entries;
	input.all_leaves = stats.leaves;
	input.contended = stats.contended;
	input.parted = stats.parted;
	input.nleaves = subject.ops->heat(&subject.cx, subject.tree, true, heat,
									  EUNO_POLICY_LEAVES);
	for (uint32_t i = 0; i < input.nleaves; i++)
		input.leaves[i] = (EunoPolicyLeaf)
	{
		heat[i].leaf, heat[i].fresh, heat[i].writes,
			heat[i].causes[EUNO_CAUSE_SAME_KEY],
			heat[i].causes[EUNO_CAUSE_OTHER_KEY]
	};
	euno_policy_decide(&settings, &input, memory, &budget, &actions);
	subject.ops->steer(&subject.cx, subject.tree, actions.part_at,
					   actions.part_most);
	for (uint32_t k = 0; k < actions.ncooled; k++)
	{
		for (uint32_t i = 0; i < nknown && i < EUNO_POLICY_LEAVES; i++)
		{
			if (known[i].leaf == actions.cooled[k])
				switch_leaf(&known[i], false);
		}
	}
	for (uint32_t k = 0; k < actions.nheated; k++)
	{
		for (uint32_t i = 0; i < input.nleaves; i++)
		{
			if (heat[i].leaf != actions.heated[k])
				continue;
			switch_leaf(&heat[i], true);
			known[nknown++ % EUNO_POLICY_LEAVES] = heat[i];
		}
	}
}

/*
 * Where lines are counted, one more thread does what is done to leaves, on
 * demand: it may have to wait for the others.
 */
static double wanted;			/* a round of this many seconds; < 0: contended leaves */
static EunoPolicyMemory policy;

static void *
launch(void *arg)
{
	while (phase != 2)
	{
		if (wanted < 0)
			make_contended();
		else if (wanted > 0)
			detect(&policy, wanted);
		wanted = 0;
		lines_turn();
	}
	return arg;
}

/* So much time passes; the detector has its rounds. */
static void
pass(double seconds)
{
	double		from = now();
	double		last = from;

	if (lines_counted())
	{
		for (int i = 0; i < COUNTED_ROUNDS; i++)
		{
			lines_run(COUNTED_TURNS);
			wanted = technique == DETECTOR ? DETECTOR_ROUND : 0;
		}
		return;
	}
	if (technique != DETECTOR)
	{
		usleep((useconds_t) (seconds * 1e6));
		return;
	}
	while (now() - from < seconds)
	{
		double		since;

		usleep((useconds_t) (DETECTOR_ROUND * 1e6));
		since = now() - last;
		last += since;
		detect(&policy, since);
	}
}

static EunoEntry
row(uint64_t i)
{
	static uint8_t key[MAX_KEY];

	return (EunoEntry) {.key = key,.keylen = make_key(&set, i, key),
		.tid = make_tid(i)};
}

/* The latency, in microseconds, that this share of the operations is below. */
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
			return pow(2, (i + 0.5) / 8) / 1000;
	}
	return 0;
}

/*
 * What annexes, parted leaves and the table of conflicts take, percent of all
 * else.
 */
static double
overhead(void)
{
	EunoTreeStats stats;
	double		mine;

	subject.ops->stats(&subject.cx, subject.tree, &stats);
	mine = (double) stats.contended * (double) sizeof(BptAnnex) +
		(double) stats.parted * BPT_LEAF_SIZE +
		(bpt_body(subject.tree)->heat != NULL ? HEAT_BYTES : 0);
	return 100 * mine / ((double) subject.pools[0].live_bytes - mine);
}

/* The sums of all threads, as figures. */
static void
add_up(uint32_t threads, double wall, double figure[FIGURES])
{
	uint64_t	classes[CLASSES] = {0};
	uint64_t	operations = 0;
	Lines		sum = lines_sum();
	double		cpu = 0;

	for (uint32_t i = 0; i < threads; i++)
	{
		const Worker *w = &workers[i];

		operations += w->operations;
		cpu += w->cpu;
		for (int c = 0; c < CLASSES; c++)
			classes[c] += w->classes[c];
	}
	figure[MOPS] = (double) operations / wall / 1e6;
	figure[CPU] = cpu * 1e9 / (double) operations;
	figure[MEDIAN] = percentile(classes, 0.5);
	figure[P99] = percentile(classes, 0.99);
	figure[WRITTEN] = (double) sum.written / (double) operations;
	figure[TAKEN] = (double) sum.taken / (double) operations;
}

static void
start(uint32_t threads)
{
	memset(workers, 0, sizeof(workers));
	memset(&policy, 0, sizeof(policy));
	next_key = set.rows;
	phase = 0;
	if (lines_counted())
		lines_thread(launch, NULL);
	for (uint32_t i = 0; i < threads; i++)
	{
		workers[i].number = i + 1;
		if (lines_counted())
			lines_thread(work, &workers[i]);
		else
			pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
}

static void
finish(uint32_t threads)
{
	if (lines_counted())
		lines_run(0);
	for (uint32_t i = 0; i < threads && !lines_counted(); i++)
		pthread_join(workers[i].thread, NULL);
}

static void
run(uint32_t threads, double seconds, double figure[FIGURES])
{
	double		wall;

	subject_open(&subject);
	subject_load(&subject, set.rows, row);
	if (technique == SPLIT)
		subject.ops->steer(&subject.cx, subject.tree, PART_AT, PART_MOST);
	start(threads);
	pass(seconds);
	if (technique == CONTENDED && lines_counted())
		wanted = -1;
	else if (technique == CONTENDED)
		make_contended();
	(void) lines_sum();
	wall = now();
	__atomic_store_n(&phase, 1, __ATOMIC_RELAXED);
	pass(seconds);
	__atomic_store_n(&phase, 2, __ATOMIC_RELAXED);
	wall = now() - wall;
	finish(threads);
	add_up(threads, wall, figure);
	figure[MEMORY] = overhead();
	subject_close(&subject);
}

/* All techniques on one workload, in turns. */
static void
run_workload(uint32_t max, uint32_t rounds, double seconds)
{
	key_set_init(&set, workload == ASCENDING ? DENSE : SPARSE, set.rows);
	zeta = 0;
	for (uint64_t i = 1; workload != ASCENDING && i <= set.rows; i++)
		zeta += pow((double) i, -thetas[workload]);
	for (uint32_t round = 0; round < rounds; round++)
	{
		for (uint32_t k = 0, threads = 1; threads <= max; k++, threads *= 4)
		{
			for (technique = PLAIN; technique < TECHNIQUES; technique++)
			{
				double		figure[FIGURES];

				run(threads, seconds, figure);
				for (int f = 0; f < FIGURES; f++)
					figures[workload][technique][k][f][round] = figure[f];
			}
		}
	}
}

static double
middle(Technique t, uint32_t k, Figure f, uint32_t rounds)
{
	memcpy(samples, figures[workload][t][k][f], sizeof(samples));
	return median(samples, rounds);
}

static void
print_workload(uint32_t max, uint32_t rounds, FILE *results)
{
	int			first = lines_counted() ? WRITTEN : MOPS;
	int			last = lines_counted() ? TAKEN : MEMORY;

	for (uint32_t k = 0, threads = 1; threads <= max; k++, threads *= 4)
	{
		for (Technique t = PLAIN; t < TECHNIQUES; t++)
		{
			printf("| %-9s | %-9s | %7u ", workload_name(), names[t], threads);
			for (int f = first; f <= last; f++)
				printf("| %*.*f ", (int) strlen(titles[f]), f == CPU ? 0 : 2,
					   middle(t, k, (Figure) f, rounds));
			printf("|\n");
			if (results != NULL)
				fprintf(results, "skew\t%s\t%s\t%u\t%g\n", workload_name(),
						names[t], threads, 1000 / middle(t, k, CPU, rounds));
		}
	}
	fflush(stdout);
}

static void
print_head(FILE *results)
{
	int			first = lines_counted() ? WRITTEN : MOPS;
	int			last = lines_counted() ? TAKEN : MEMORY;

	printf("| keys      | technique | threads ");
	for (int f = first; f <= last; f++)
		printf("| %s ", titles[f]);
	printf("|\n|-----------|-----------|--------:");
	for (int f = first; f <= last; f++)
		printf("|%.*s:", (int) strlen(titles[f]) + 1, "--------------------------");
	printf("|\n");
	if (results != NULL)
		fprintf(results, "figure\tpanel\tseries\tthreads\tMops\n");
}

/* A number from the environment, or else the default. */
static uint32_t
setting(const char *name, uint32_t other)
{
	const char *value = getenv(name);

	return value != NULL ? (uint32_t) atoi(value) : other;
}

int
main(void)
{
	double		seconds = test_seconds() > 0 ? test_seconds() : 0.5;
	uint32_t	max = setting("EUNO_THREADS", MAX_THREADS);
	uint32_t	rounds = setting("EUNO_ROUNDS", 1);
	const char *only = getenv("EUNO_ONLY");
	FILE	   *results = getenv("EUNO_RESULTS") != NULL ?
		fopen(getenv("EUNO_RESULTS"), "w") : NULL;

	if (max < 1 || max > MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS)
		die("EUNO_THREADS must be from 1 to 64, EUNO_ROUNDS from 1 to 9");
	set.rows = setting("EUNO_ROWS", 1000000);
	subjects_begin(MAX_THREADS + 1);
	subject_init(&subject, "bptree", &euno_bptree_ops, 1);
	if (lines_counted())
		subject.cx.env = &lines_env;
	print_head(results);
	for (workload = 0; workload < WORKLOADS; workload++)
	{
		if (only != NULL && strstr(workload_name(), only) == NULL)
			continue;
		run_workload(max, rounds, seconds);
		print_workload(max, rounds, results);
	}
	if (results != NULL)
		fclose(results);
	return 0;
}
