/*-------------------------------------------------------------------------
 *
 * core_bench.c
 *	  How long the trees' operations take, without a server.
 *
 * All subjects do the same in turns, some thousand operations each, so that a
 * machine that others use spoils ratios little; then the synchronized ones do
 * with two threads and with sixteen; then some do by themselves, for in turns
 * each begins with a cold cache; then lookups are measured by the number of
 * entries.  Prints samples: measure, unit, subject, value, with tabs
 * between.  Times are nanoseconds of processor time an operation; threads'
 * are millions of operations a second.  What it is doing goes to standard
 * error.
 *
 * EUNO_ROWS is the number of entries (10 million), EUNO_ROUNDS that of the
 * rounds (3), EUNO_GROWTH the largest tree, if the memory there is holds it
 * (100 million; 0: none), EUNO_ONLY a regular expression that picks measures.
 *
 *-------------------------------------------------------------------------
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "subject.h"

#define TURN 20000				/* operations */
#define MAX_TURNS 50			/* of a job that does not change the tree */
#define SCAN_ENTRIES 100
#define MAX_THREADS 16
#define MAX_SUBJECTS 9

typedef enum Kind
{
	READ,
	UPDATE,						/* another TID for the key: insert, remove */
	INSERT,						/* the next row */
	SCAN,						/* SCAN_ENTRIES */
	READ_UPDATE,
	NKINDS
} Kind;

typedef enum Law
{
	UNIFORM,
	ZIPF,
	LATEST,						/* Zipf, from the last insert back */
	IN_ORDER,
	SCATTERED					/* each row once */
} Law;

typedef struct Job
{
	const char *name;
	Law			law;
	bool		by_itself;		/* done by each tree alone, too */
	uint8_t		percent[NKINDS];
} Job;

/* YCSB: Cooper et al., SoCC 2010; its scans are up to 100 long, ours all. */
static const Job jobs[] = {
	{"insert, ascending", IN_ORDER, true, {[INSERT] = 100}},
	{"insert, random", SCATTERED, true, {[INSERT] = 100}},
	{"lookup", UNIFORM, true, {[READ] = 100}},
	{"lookup, Zipf 0.99", ZIPF, true, {[READ] = 100}},
	{"scan of 100", UNIFORM, true, {[SCAN] = 100}},
	{"scan of 100, Zipf 0.99", ZIPF, false, {[SCAN] = 100}},
	{"YCSB A", UNIFORM, false, {[READ] = 50,[UPDATE] = 50}},
	{"YCSB A, Zipf 0.99", ZIPF, true, {[READ] = 50,[UPDATE] = 50}},
	{"YCSB B", UNIFORM, false, {[READ] = 95,[UPDATE] = 5}},
	{"YCSB B, Zipf 0.99", ZIPF, false, {[READ] = 95,[UPDATE] = 5}},
	{"YCSB C", UNIFORM, false, {[READ] = 100}},
	{"YCSB C, Zipf 0.99", ZIPF, false, {[READ] = 100}},
	{"YCSB D", UNIFORM, false, {[READ] = 95,[INSERT] = 5}},
	{"YCSB D, Zipf 0.99", LATEST, false, {[READ] = 95,[INSERT] = 5}},
	{"YCSB E", UNIFORM, false, {[SCAN] = 95,[INSERT] = 5}},
	{"YCSB E, Zipf 0.99", ZIPF, false, {[SCAN] = 95,[INSERT] = 5}},
	{"YCSB F", UNIFORM, false, {[READ] = 50,[READ_UPDATE] = 50}},
	{"YCSB F, Zipf 0.99", ZIPF, false, {[READ] = 50,[READ_UPDATE] = 50}}
};

#define NJOBS (sizeof(jobs) / sizeof(jobs[0]))

/* What one thread does in a turn: made before time counts. */
typedef struct Plan
{
	uint32_t	n;
	uint64_t   *row;
	uint8_t    *kind;
} Plan;

typedef struct Worker
{
	Subject    *subject;
	EunoProcess process;
	EunoContext cx;
	Plan		plan;
	pthread_t	thread;
	pthread_barrier_t *barrier;
	double		start;
} Worker;

static Subject subjects[MAX_SUBJECTS];
static int	nsubjects;
static const Subject *by_itself;	/* who does a job; NULL: all in turns */
static KeySet keyset;
static uint64_t next_row;		/* rows below are in the trees */
static uint32_t *version[MAX_SUBJECTS];	/* of each row's TID */
static uint32_t last_version;
static regex_t only;

static bool
wanted(const char *measure)
{
	return regexec(&only, measure, 0, NULL, 0) == 0;
}

/* Version 0 is a row's first, others are each of one row. */
static EunoTid
version_tid(uint64_t row, uint32_t v)
{
	return make_tid(v == 0 ? row : UINT32_MAX + (uint64_t) v);
}

static EunoEntry
nth_entry(uint64_t i)
{
	static uint8_t key[MAX_KEY];
	EunoEntry	entry = {.key = key,.tid = version_tid(i, 0)};

	entry.keylen = make_key(&keyset, i, key);
	return entry;
}

/* Makes n operations; returns how many rows they insert. */
static void
make_plan(Plan *plan, const Job *job, Random *random, uint64_t from)
{
	uint64_t	inserts = from;

	for (uint32_t i = 0; i < plan->n; i++)
	{
		uint32_t	dice = random_below(random, 100);
		double		u = (double) (random_next(random) >> 11) / 9007199254740992.0;
		Kind		kind = READ;

		while (dice >= job->percent[kind])
			dice -= job->percent[kind++];
		plan->kind[i] = (uint8_t) kind;
		if (kind == INSERT)
		{
			plan->row[i] = job->law == SCATTERED ? scatter(&keyset, inserts) : inserts;
			inserts++;
		}
		else if (job->law == UNIFORM)
			plan->row[i] = random_next(random) % keyset.rows;
		else if (job->law == ZIPF)
			plan->row[i] = scatter(&keyset, zipf(&keyset, u));
		else
			plan->row[i] = inserts - 1 - zipf(&keyset, u);
	}
}

/* Rows that a plan inserts. */
static uint64_t
count_inserts(const Plan *plan)
{
	uint64_t	n = 0;

	for (uint32_t i = 0; i < plan->n; i++)
		n += plan->kind[i] == INSERT;
	return n;
}

static void
plan_init(Plan *plan, uint32_t n)
{
	plan->n = n;
	plan->row = malloc(n * sizeof(uint64_t));
	plan->kind = malloc(n);
	if (plan->row == NULL || plan->kind == NULL)
		die("no memory");
}

static void
plan_free(Plan *plan)
{
	free(plan->row);
	free(plan->kind);
}

static void
do_read(Worker *w, EunoCursor *cursor, uint64_t row, uint32_t want)
{
	EunoTid		tids[SCAN_ENTRIES];
	EunoBatch	batch = {.tids = tids};
	uint8_t		key[MAX_KEY];
	uint32_t	seen;
	int			tries = 0;

	cursor->lo.key = key;
	cursor->lo.keylen = make_key(&keyset, row, key);
	cursor->hi.key = want > 1 ? NULL : key;
	cursor->hi.keylen = want > 1 ? 0 : cursor->lo.keylen;
	do
	{
		seen = 0;
		euno_cursor_start(cursor);
		do
		{
			batch.max_items = want > 1 ? want - seen : 4;
			if (w->subject->ops->read(&w->cx, w->subject->tree, cursor, true, &batch) != EUNO_OK)
				die("a read failed");
			seen += batch.nitems;
		} while (want > 1 && batch.nitems > 0 && !cursor->at_hi && seen < want);

		/*
		 * A batch of a radix tree has each entry at a moment of its own: it
		 * may have neither TID of a row that is being updated.
		 */
	} while (seen == 0 && ++tries < 100);
	if (seen == 0)
		die("a lookup went wrong");
}

static void
do_insert(Worker *w, uint64_t row)
{
	uint8_t		key[MAX_KEY];
	EunoEntry	entry = {.key = key,.tid = version_tid(row, 0)};

	entry.keylen = make_key(&keyset, row, key);
	if (w->subject->ops->insert(&w->cx, w->subject->tree, &entry, false) != EUNO_OK)
		die("an insert failed");
}

/*
 * As for a new version of a row, and the vacuum of the old one.  The row has
 * an entry at every moment.
 */
static void
do_update(Worker *w, uint64_t row)
{
	uint32_t	v = __atomic_add_fetch(&last_version, 1, __ATOMIC_RELAXED);
	uint32_t   *at = &version[w->subject - subjects][row];
	uint8_t		key[MAX_KEY];
	EunoEntry	entry = {.key = key,.tid = version_tid(row, v)};

	__builtin_prefetch(at, 1);	/* a cache miss of ours, not of the tree */
	entry.keylen = make_key(&keyset, row, key);
	if (w->subject->ops->insert(&w->cx, w->subject->tree, &entry, false) != EUNO_OK)
		die("an update failed");
	v = __atomic_exchange_n(at, v, __ATOMIC_RELAXED);
	entry.tid = version_tid(row, v);
	if (w->subject->ops->remove(&w->cx, w->subject->tree, &entry, NULL) != EUNO_OK)
		die("an update failed");
}

static void
do_plan(Worker *w)
{
	static __thread EunoCursor cursor;

	cursor.lo.side = -1;
	cursor.hi.side = 1;
	for (uint32_t i = 0; i < w->plan.n; i++)
	{
		uint64_t	row = w->plan.row[i];

		switch (w->plan.kind[i])
		{
			case READ_UPDATE:
				do_read(w, &cursor, row, 1);
				do_update(w, row);
				break;
			case READ:
				do_read(w, &cursor, row, 1);
				break;
			case UPDATE:
				do_update(w, row);
				break;
			case INSERT:
				do_insert(w, row);
				break;
			default:
				do_read(w, &cursor, row, SCAN_ENTRIES);
		}
	}
}

static void
sample(const char *measure, const char *unit, const char *subject, double value)
{
	printf("%s\t%s\t%s\t%.4f\n", measure, unit, subject, value);
	fflush(stdout);
}

/* Is it one of those that are measured now? */
static bool
takes_part(const Subject *s)
{
	return by_itself == NULL ? s->ops != &congee_ops : s == by_itself;
}

/* Does it do this job? */
static bool
does(const Subject *s, const Job *job)
{
	return takes_part(s) &&
		(s->ops != &array_ops || job->percent[READ] + job->percent[SCAN] == 100);
}

/*
 * A job by all subjects in turns.  What inserts, does so for all rows; the
 * mean counts then, for a tree that grows is not the same in all turns,
 * otherwise the median of the turns.
 */
static void
run_turns(const char *measure, const Job *job, bool print)
{
	static double times[MAX_SUBJECTS][MAX_TURNS];
	Random		random = {job - jobs + 1};
	bool		all = job->percent[INSERT] == 100;
	uint64_t	turns = all ? (keyset.rows + TURN - 1) / TURN : keyset.rows / TURN / 2;
	double		sums[MAX_SUBJECTS] = {0};
	Worker		w;

	if (all)
		next_row = 0;
	else
		turns = turns < 5 ? 5 : turns > MAX_TURNS ? MAX_TURNS : turns;
	plan_init(&w.plan, job->percent[SCAN] > 0 ? TURN / 20 : TURN);
	for (uint64_t turn = 0; turn < turns; turn++)
	{
		if (all && turn == turns - 1)
			w.plan.n = (uint32_t) (keyset.rows - next_row);
		make_plan(&w.plan, job, &random, next_row);
		for (int k = 0; k < nsubjects; k++)
		{
			int			which = (int) ((turn + (uint64_t) k) % nsubjects);
			double		start;

			w.subject = &subjects[which];
			if (!does(w.subject, job))
				continue;
			thread_enter(w.subject, 0, &w.process, &w.cx);
			start = thread_seconds();
			do_plan(&w);
			start = thread_seconds() - start;
			sums[which] += start;
			if (!all)
				times[which][turn] = start / w.plan.n * 1e9;
		}
		next_row += count_inserts(&w.plan);
	}
	for (int k = 0; k < nsubjects && print; k++)
	{
		if (does(&subjects[k], job))
			sample(measure, "ns", subjects[k].name,
				   all ? sums[k] * 1e9 / (double) keyset.rows :
				   median(times[k], (uint32_t) turns));
	}
	plan_free(&w.plan);
}

/* What the background worker does now and then. */
static void
compact_all(void)
{
	for (int k = 0; k < nsubjects; k++)
	{
		Subject    *s = &subjects[k];
		uint32_t	merged;

		if (takes_part(s) && s->ops->compact != NULL &&
			s->ops->compact(&s->cx, s->tree, EUNO_COMPACT_BEGIN, UINT32_MAX,
							&merged) != EUNO_DONE)
			die("compacting failed");
	}
}

/* All trees anew, the array with all rows. */
static void
open_all(bool with_array)
{
	for (int k = 0; k < nsubjects; k++)
	{
		if (!takes_part(&subjects[k]))
			continue;
		subject_open(&subjects[k]);
		if (with_array && subjects[k].ops == &array_ops)
			subject_load(&subjects[k], keyset.rows, nth_entry);
		memset(version[k], 0, keyset.rows * 2 * sizeof(uint32_t));
	}
}

static void
close_all(void)
{
	for (int k = 0; k < nsubjects; k++)
	{
		if (takes_part(&subjects[k]))
			subject_close(&subjects[k]);
	}
}

/* What a job measures; is it wanted? */
static bool
name_job(char *measure, size_t size, const Job *job)
{
	snprintf(measure, size, "%s, %s%s", key_names[keyset.keys], job->name,
			 by_itself != NULL ? ", by itself" : "");
	return wanted(measure) && (by_itself == NULL || job->by_itself);
}

static void
run_jobs(void)
{
	char		measure[100];
	bool		any[2] = {false, false};	/* ascending; anything else */

	for (size_t j = 0; j < NJOBS; j++)
		any[j > 0] |= name_job(measure, sizeof(measure), &jobs[j]);
	for (size_t j = 0; j < NJOBS; j++)
	{
		bool		print;

		if (!any[j > 0])
			continue;
		print = name_job(measure, sizeof(measure), &jobs[j]);
		if (jobs[j].percent[INSERT] == 100)
			open_all(j > 0);
		else if (!print)
			continue;
		else
			compact_all();
		fprintf(stderr, "        %s%s%s\n", measure, by_itself != NULL ? ": " : "",
				by_itself != NULL ? by_itself->name : "");
		run_turns(measure, &jobs[j], print);
		snprintf(measure, sizeof(measure), "%s, an entry after inserts in random order",
				 key_names[keyset.keys]);
		for (int k = 0; jobs[j].law == SCATTERED && by_itself == NULL &&
			 k < nsubjects && wanted(measure); k++)
		{
			if (does(&subjects[k], &jobs[j]))
				sample(measure, "bytes", subjects[k].name,
					   subject_bytes(&subjects[k]) / (double) keyset.rows);
		}
		if (j == 0)
			close_all();
	}
	if (any[1])
		close_all();
}

/* Some jobs by the trees that one would choose, one after another. */
static void
run_by_itself(void)
{
	for (int k = 0; k < nsubjects; k++)
	{
		const EunoTreeOps *ops = subjects[k].ops;

		if (subjects[k].ndomains > 1 ||
			(ops != &euno_bptree_ops && ops != &euno_art_olc_ops &&
			 (ops != &congee_ops || keyset.keys == STRINGS)))
			continue;
		by_itself = &subjects[k];
		run_jobs();
	}
	by_itself = NULL;
}

static void *
run_worker(void *arg)
{
	Worker	   *w = arg;

	test_env_stripe = w->process.slot;
	pthread_barrier_wait(w->barrier);
	w->start = now();
	do_plan(w);
	return NULL;
}

/* Millions of operations a second, by this many threads. */
static double
run_threads(Subject *s, const Job *job, uint32_t threads, uint64_t operations)
{
	static Worker workers[MAX_THREADS];
	pthread_barrier_t barrier;
	double		start;

	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (uint32_t t = 0; t < threads; t++)
	{
		Worker	   *w = &workers[t];
		Random		random = {t + 100};

		plan_init(&w->plan, (uint32_t) (operations / threads));
		make_plan(&w->plan, job, &random, t * (operations / threads));
		w->subject = s;
		w->barrier = &barrier;
		thread_enter(s, t, &w->process, &w->cx);
		pthread_create(&w->thread, NULL, run_worker, w);
	}
	pthread_barrier_wait(&barrier);
	start = now();				/* or earlier: others may be running already */
	for (uint32_t t = 0; t < threads; t++)
	{
		pthread_join(workers[t].thread, NULL);
		start = workers[t].start < start ? workers[t].start : start;
	}
	start = now() - start;
	for (uint32_t t = 0; t < threads; t++)
		plan_free(&workers[t].plan);
	pthread_barrier_destroy(&barrier);
	return (double) (operations / threads * threads) / start / 1e6;
}

static void
many_name(char *measure, size_t size, const Job *job, const char *threads)
{
	snprintf(measure, size, "%s, %s, %s", key_names[keyset.keys], job->name, threads);
}

/* Two threads and sixteen: random inserts, lookups, updates. */
static void
run_many(void)
{
	static const uint8_t picked[] = {1, 2, 7};
	static const char *const threads[] = {"2 threads", "16 threads", "16 threads of 2 threads' speed"};
	bool		any = false;
	uint64_t	operations = keyset.rows < 2000000 ? keyset.rows : 2000000;

	for (size_t p = 0; p < sizeof(picked) * 3; p++)
	{
		char		measure[100];

		many_name(measure, sizeof(measure), &jobs[picked[p / 3]], threads[p % 3]);
		any |= wanted(measure);
	}
	for (int k = 0; any && k < nsubjects; k++)
	{
		double		speed[sizeof(picked)][2];
		char		measure[100];

		if (subjects[k].alone || !takes_part(&subjects[k]))
			continue;
		for (int many = 0; many < 2; many++)
		{
			memset(version[k], 0, keyset.rows * 2 * sizeof(uint32_t));
			subject_open(&subjects[k]);
			for (size_t p = 0; p < sizeof(picked); p++)
			{
				uint64_t	n = p == 0 ? keyset.rows : operations;

				speed[p][many] = run_threads(&subjects[k], &jobs[picked[p]],
											 many ? 16 : 2, n);
				many_name(measure, sizeof(measure), &jobs[picked[p]], threads[many]);
				sample(measure, "million/s", subjects[k].name, speed[p][many]);
			}
			subject_close(&subjects[k]);
		}
		for (size_t p = 0; p < sizeof(picked); p++)
		{
			many_name(measure, sizeof(measure), &jobs[picked[p]], threads[2]);
			sample(measure, "share", subjects[k].name, speed[p][1] / speed[p][0]);
		}
	}
}

/* Bytes that may be taken without harm. */
static uint64_t
available_memory(void)
{
	FILE	   *f = fopen("/proc/meminfo", "r");
	char		line[200];
	unsigned long long kilobytes = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		(void) sscanf(line, "MemAvailable: %llu", &kilobytes);
	if (f != NULL)
		fclose(f);
	return kilobytes * 1024;
}

/* Is the subject one of those whose growth is shown? */
static bool
grows(const Subject *s)
{
	return takes_part(s) && s->ndomains == 1 && (!s->alone || s->ops == &array_ops);
}

/*
 * Lookups by size.  These trees and the array take less than 130 bytes a row.
 */
static void
run_growth(uint64_t most, int rounds)
{
	char		measure[100];

	for (uint64_t rows = 10000, n = 0; rows <= most; rows = n++ % 2 == 0 ? rows * 3 : rows / 3 * 10)
	{
		if (rows * 130 > available_memory() / 4 * 3)
		{
			fprintf(stderr, "        no memory for %llu entries\n", (unsigned long long) rows);
			break;
		}
		key_set_init(&keyset, SPARSE, rows);
		for (int k = 0; k < nsubjects; k++)
		{
			if (takes_part(&subjects[k]))
				subject_open(&subjects[k]);
			if (grows(&subjects[k]))
				subject_load(&subjects[k], rows, nth_entry);
		}
		snprintf(measure, sizeof(measure), "growth: lookup among %llu", (unsigned long long) rows);
		fprintf(stderr, "        %s\n", measure);
		for (int round = 0; round < rounds; round++)
		{
			Worker		w;
			Random		random = {(uint64_t) round + 1};

			plan_init(&w.plan, TURN * 5);
			make_plan(&w.plan, &jobs[2], &random, rows);
			for (int k = 0; k < nsubjects; k++)
			{
				double		start;

				w.subject = &subjects[(k + round) % nsubjects];
				if (!grows(w.subject))
					continue;
				thread_enter(w.subject, 0, &w.process, &w.cx);
				do_plan(&w);	/* the caches are its own now */
				start = thread_seconds();
				do_plan(&w);
				sample(measure, "ns", w.subject->name,
					   (thread_seconds() - start) / w.plan.n * 1e9);
			}
			plan_free(&w.plan);
		}
		close_all();
	}
}

static void
add_subject(const char *name, const EunoTreeOps *ops, int ndomains)
{
	subject_init(&subjects[nsubjects++], name, ops, ndomains);
}

static uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? strtoull(value, NULL, 10) : otherwise;
}

int
main(void)
{
	uint64_t	rows = setting("EUNO_ROWS", 10000000);
	int			rounds = (int) setting("EUNO_ROUNDS", 3);
	uint64_t	most = setting("EUNO_GROWTH", 100000000);
	const char *pattern = getenv("EUNO_ONLY");

	if (rows < TURN)
		die("EUNO_ROWS must be at least 20000");
	if (regcomp(&only, pattern != NULL ? pattern : "", REG_EXTENDED | REG_NOSUB) != 0)
		die("EUNO_ONLY is not a regular expression");
	subjects_begin(MAX_THREADS);
	add_subject("bptree", &euno_bptree_ops, 1);
	add_subject("art/olc", &euno_art_olc_ops, 1);
	add_subject("art/rowex", &euno_art_rowex_ops, 1);
	add_subject("bptree alone", &alone_bptree_ops, 1);
	add_subject("art alone", &alone_art_olc_ops, 1);
	add_subject("array", &array_ops, 1);
	add_subject("2 domains", &euno_bptree_ops, 2);
	add_subject("4 domains", &euno_bptree_ops, 4);
	if (&congee_ops != NULL)
		add_subject("congee", &congee_ops, 1);
	for (int k = 0; k < nsubjects; k++)
		version[k] = shared_memory(rows * 2 * sizeof(uint32_t));
	for (int round = 0; round < rounds; round++)
	{
		for (int keys = DENSE; keys <= STRINGS; keys++)
		{
			key_set_init(&keyset, (Keys) keys, rows);
			run_jobs();
			if (keys == SPARSE)
				run_many();
			run_by_itself();
		}
	}
	for (int k = 0; k < nsubjects; k++)
		shared_memory_free(version[k], rows * 2 * sizeof(uint32_t));
	if (wanted("growth"))
		run_growth(most, rounds > 3 ? rounds : 3);
	return 0;
}
