/*-------------------------------------------------------------------------
 *
 * structure_bench.c
 *	  Which structure for which keys: the table in test/bench/RESULTS.md.
 *
 * All structures hold the same entries at the same time and take turns, some
 * thousand operations each; what is printed is the median over the turns, in
 * nanoseconds of this thread's processor time, so that a machine that others
 * use spoils ratios little.  EUNO_ROWS sets the number of entries (1 million).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subject.h"

#define KEY_BYTES 128
#define TURN 5000				/* operations */
#define MAX_TURNS 4000
#define SCAN_ENTRIES 100

static const EunoTreeOps *const structures[] = {
	&euno_bptree_ops,
	&euno_art_olc_ops,
	&euno_art_rowex_ops
};

#define NSTRUCTURES 3

typedef enum Kind
{
	DENSE,
	SPARSE,
	UUID,
	EMAIL,
	URL,
	COMPOSITE,
	NKINDS
} Kind;

static const char *const kind_names[] = {
	"int8, dense", "int8, sparse", "uuid", "e-mail, about 27 bytes",
	"URL, about 60 bytes", "(int4, timestamp)"
};

typedef enum Job
{
	INSERT,						/* in random order */
	LOOKUP,
	SCAN,						/* SCAN_ENTRIES from a random place on */
	REMOVE,
	NJOBS
} Job;

typedef struct Figures
{
	double		times[MAX_TURNS];
	double		median[NJOBS];
	double		loaded;			/* bytes an entry after a bulk load */
	double		grown;			/* after inserts in random order */
} Figures;

static Subject subjects[NSTRUCTURES];
static Figures figures[NSTRUCTURES];
static uint64_t rows;
static uint8_t *keys;			/* a length and KEY_BYTES each, sorted */
static uint32_t *order;			/* a permutation of all rows */

static uint32_t
put_number(uint8_t *key, uint64_t value, int bytes)
{
	key[0] = 2;
	for (int i = 0; i < bytes; i++)
		key[1 + i] = (uint8_t) (value >> 8 * (bytes - 1 - i));
	return 1 + (uint32_t) bytes;
}

static uint32_t
put_text(uint8_t *key, const char *text)
{
	key[0] = 2;
	strcpy((char *) key + 1, text);
	return (uint32_t) strlen(text) + 2;
}

static uint32_t
make_key(Kind kind, uint64_t i, Random *random, uint8_t *key)
{
	static const char *const names[] = {
		"anna", "boris", "carla", "david", "elena", "felix", "greta", "hugo",
		"ines", "jakob", "klara", "leon", "maria", "nils", "olga", "paul"
	};
	static const char *const hosts[] = {
		"gmail.com", "yahoo.com", "outlook.com", "example.org", "posteo.de",
		"mail.example.net"
	};
	char		text[KEY_BYTES];

	switch (kind)
	{
		case DENSE:
			return put_number(key, (UINT64_C(1) << 63) + i, 8);
		case SPARSE:
			return put_number(key, random_next(random), 8);
		case UUID:
			(void) put_number(key, random_next(random), 8);
			for (int k = 0; k < 8; k++)
				key[9 + k] = (uint8_t) random_next(random);
			return 17;
		case EMAIL:
			snprintf(text, sizeof(text), "%s.%s%u@%s",
					 names[random_below(random, 16)],
					 names[random_below(random, 16)],
					 random_below(random, 100000), hosts[random_below(random, 6)]);
			return put_text(key, text);
		case URL:
			snprintf(text, sizeof(text),
					 "https://www.%s-%u.com/%s/archive/%u/%s-%u.html",
					 names[random_below(random, 16)], random_below(random, 200),
					 names[random_below(random, 16)],
					 2000 + random_below(random, 26),
					 names[random_below(random, 16)],
					 random_below(random, 100000));
			return put_text(key, text);
		default:
			(void) put_number(key, (UINT64_C(1) << 31) + random_below(random, 10000), 4);
			return 5 + put_number(key + 5, (UINT64_C(1) << 63) +
								  i * 1000000 + random_below(random, 1000000), 8);
	}
}

static uint8_t *
key_at(uint64_t i)
{
	return keys + i * (KEY_BYTES + 1);
}

static int
compare_keys(const void *a, const void *b)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	int			c = memcmp(x + 1, y + 1, x[0] < y[0] ? x[0] : y[0]);

	return c != 0 ? c : x[0] - y[0];
}

static EunoEntry
entry_at(uint64_t i)
{
	EunoEntry	entry = {.key = key_at(i) + 1,.keylen = key_at(i)[0],
	.tid = (i / 200) << 16 | (i % 200 + 1)};

	return entry;
}

static void
read_some(Subject *s, uint64_t i, uint32_t wanted)
{
	static EunoCursor cursor;
	static EunoTid tids[SCAN_ENTRIES];
	EunoBatch	batch = {.max_items = wanted,.tids = tids};
	EunoEntry	entry = entry_at(i);
	uint32_t	seen = 0;

	memset(&cursor.lo, 0, sizeof(cursor.lo));
	memset(&cursor.hi, 0, sizeof(cursor.hi));
	cursor.lo.key = entry.key;
	cursor.lo.keylen = entry.keylen;
	cursor.lo.side = -1;
	cursor.hi.side = 1;
	if (wanted < SCAN_ENTRIES)
	{
		cursor.hi.key = entry.key;
		cursor.hi.keylen = entry.keylen;
	}
	euno_cursor_start(&cursor);
	do
	{
		batch.max_items = wanted - seen;
		if (s->ops->read(&s->cx, s->tree, &cursor, true, &batch) != EUNO_OK)
			die("a read failed");
		seen += batch.nitems;
	} while (batch.nitems > 0 && !cursor.at_hi && seen < wanted);
	if (seen == 0)
		die("a lookup found nothing");
}

static void
do_one(Subject *s, Job job, uint64_t i)
{
	EunoEntry	entry = entry_at(i);

	if (job == INSERT)
	{
		if (s->ops->insert(&s->cx, s->tree, &entry, false) != EUNO_OK)
			die("an insert failed");
	}
	else if (job == REMOVE)
	{
		if (s->ops->remove(&s->cx, s->tree, &entry, NULL) != EUNO_OK)
			die("a remove failed");
	}
	else
		read_some(s, i, job == SCAN ? SCAN_ENTRIES : 8);
}

/* A job on rows [from, to) of the order, all structures taking turns. */
static void
run_job(Job job, uint64_t from, uint64_t to, uint32_t by)
{
	uint32_t	turns = 0;

	for (uint64_t at = from; at + by <= to && turns < MAX_TURNS; at += by)
	{
		for (int k = 0; k < NSTRUCTURES; k++)
		{
			uint32_t	which = (turns + (uint32_t) k) % NSTRUCTURES;
			double		start = thread_seconds();

			for (uint64_t i = at; i < at + by; i++)
				do_one(&subjects[which], job, order[i]);
			figures[which].times[turns] = (thread_seconds() - start) / by;
		}
		turns++;
	}
	for (int k = 0; k < NSTRUCTURES; k++)
		figures[k].median[job] = median(figures[k].times, turns) * 1e9;
}

static void
shuffle(Random *random)
{
	for (uint64_t i = 0; i < rows; i++)
		order[i] = (uint32_t) i;
	for (uint64_t i = rows; i > 1; i--)
	{
		uint64_t	k = random_next(random) % i;
		uint32_t	swap = order[k];

		order[k] = order[i - 1];
		order[i - 1] = swap;
	}
}

static void
run_kind(Kind kind)
{
	Random		random = {(uint64_t) kind + 1};

	for (uint64_t i = 0; i < rows; i++)
		key_at(i)[0] = (uint8_t) make_key(kind, i, &random, key_at(i) + 1);
	qsort(keys, rows, KEY_BYTES + 1, compare_keys);
	shuffle(&random);
	for (int k = 0; k < NSTRUCTURES; k++)
	{
		Subject    *s = &subjects[k];

		subject_open(s);
		subject_load(s, rows, entry_at);
		figures[k].loaded = subject_bytes(s) / (double) rows;
		subject_close(s);
		subject_open(s);
	}
	run_job(INSERT, 0, rows, TURN);
	for (int k = 0; k < NSTRUCTURES; k++)
		figures[k].grown = subject_bytes(&subjects[k]) / (double) rows;
	shuffle(&random);
	run_job(LOOKUP, 0, rows, TURN);
	run_job(SCAN, 0, rows / 10, TURN / 25);
	run_job(REMOVE, 0, rows / 5, TURN);
	for (int k = 0; k < NSTRUCTURES; k++)
	{
		const Figures *f = &figures[k];

		printf("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f |\n",
			   kind_names[kind], subjects[k].name, f->median[LOOKUP],
			   f->median[INSERT], f->median[REMOVE], f->median[SCAN],
			   f->loaded, f->grown);
		subject_close(&subjects[k]);
	}
	fflush(stdout);
}

int
main(void)
{
	const char *wanted = getenv("EUNO_ROWS");

	rows = wanted != NULL ? strtoull(wanted, NULL, 10) : 1000000;
	if (rows < 100000)
		die("EUNO_ROWS must be at least 100000");
	keys = malloc(rows * (KEY_BYTES + 1));
	order = malloc(rows * sizeof(uint32_t));
	if (keys == NULL || order == NULL)
		die("no memory");
	subjects_begin(4);
	for (int k = 0; k < NSTRUCTURES; k++)
		subject_init(&subjects[k], structures[k]->name, structures[k], 1);
	printf("%llu entries; nanoseconds of processor time; bytes an entry after a bulk load, after random inserts\n\n",
		   (unsigned long long) rows);
	printf("| keys | structure | lookup | insert | remove | scan of 100 | loaded | grown |\n");
	printf("|---|---|---:|---:|---:|---:|---:|---:|\n");
	for (int kind = 0; kind < NKINDS; kind++)
		run_kind((Kind) kind);
	return 0;
}
