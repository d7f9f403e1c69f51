/*-------------------------------------------------------------------------
 *
 * domain_bench.c
 *	  What domains cost where there is nothing to gain: one thread, one node.
 *
 * The same tree with 1, 2 and 4 domains, each with a directory.  The trees take
 * turns, a hundredth of the operations each; in each turn the thread is in the next
 * domain, so that all post, note and apply their share, as if in turns, too.  EUNO_ROWS (1 million) and
 * EUNO_ROUNDS (7); EUNO_STRUCTURE=art takes radix trees, whose maps are brought up
 * to date now and then without being counted, as by the launcher; EUNO_DOMAINS names the only number of domains, for callgrind
 * (test/bench/domain_cost), which has no use for turns.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "subject.h"

#define NSUBJECTS 3
#define MAX_ROUNDS 99

static const int domains[NSUBJECTS] = {1, 2, 4};

static Subject subjects[NSUBJECTS];
static KeySet keyset;

static uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? strtoull(value, NULL, 10) : otherwise;
}

static EunoEntry
entry_at(uint64_t i, uint8_t *key)
{
	EunoEntry	entry = {.key = key,.tid = make_tid(i)};

	entry.keylen = make_key(&keyset, i, key);
	return entry;
}

/* Named in the output of callgrind, and so not inlined, as is the next one. */
static void __attribute__((noinline))
turn_of_inserts(Subject *s, uint64_t from, uint64_t to)
{
	uint8_t		key[MAX_KEY];

	for (uint64_t i = from; i < to; i++)
	{
		EunoEntry	entry = entry_at(scatter(&keyset, i), key);

		if (s->ops->insert(&s->cx, s->tree, &entry, false) != EUNO_OK)
			die("an insert failed");
	}
}

static void __attribute__((noinline))
turn_of_lookups(Subject *s, uint64_t from, uint64_t to)
{
	static EunoCursor cursor;
	static EunoTid tids[8];
	uint8_t		key[MAX_KEY];

	for (uint64_t i = from; i < to; i++)
	{
		EunoEntry	entry = entry_at(scatter(&keyset, keyset.rows - 1 - i), key);
		EunoBatch	batch = {.max_items = 8,.tids = tids};

		memset(&cursor.lo, 0, sizeof(cursor.lo));
		cursor.lo.key = key;
		cursor.lo.keylen = entry.keylen;
		cursor.lo.side = -1;
		cursor.hi = cursor.lo;
		cursor.hi.side = 1;
		euno_cursor_start(&cursor);
		if (s->ops->read(&s->cx, s->tree, &cursor, true, &batch) != EUNO_OK ||
			batch.nitems != 1)
			die("a lookup found nothing");
	}
}

/* What the launcher does to radix trees. */
static void
maintain(Subject *s, int ndomains)
{
	for (int d = 0; s->ops != &euno_bptree_ops && d < ndomains; d++)
		s->ops->maintain(&s->cx, s->tree, d);
}

/* All rows, the trees taking turns; seconds that each took. */
static void
run(void (*turn) (Subject *s, uint64_t from, uint64_t to), int only,
	double *seconds)
{
	uint64_t	by = keyset.rows / 100;

	for (int k = 0; k < NSUBJECTS; k++)
		seconds[k] = 0;
	for (uint64_t at = 0; at + by <= keyset.rows; at += by)
	{
		for (uint64_t k = 0; k < NSUBJECTS; k++)
		{
			uint64_t	which = (at / by + k) % NSUBJECTS;
			double		start;

			if (only != 0 && only != domains[which])
				continue;
			if (at / by % 10 == 0)
				maintain(&subjects[which], domains[which]);
			start = thread_seconds();
			subjects[which].cx.domain = (int) (at / by % (uint64_t) domains[which]);
			turn(&subjects[which], at, at + by);
			seconds[which] += thread_seconds() - start;
		}
	}
}

static void
run_kind(Keys keys, uint64_t rows, int rounds, int only)
{
	static double insert[NSUBJECTS][MAX_ROUNDS];
	static double lookup[NSUBJECTS][MAX_ROUNDS];
	double		base_insert = 0;
	double		base_lookup = 0;

	key_set_init(&keyset, keys, rows);
	for (int round = 0; round < rounds; round++)
	{
		double		inserts[NSUBJECTS];
		double		lookups[NSUBJECTS];

		for (int k = 0; k < NSUBJECTS; k++)
			subject_open(&subjects[k]);
		run(turn_of_inserts, only, inserts);
		run(turn_of_lookups, only, lookups);
		for (int k = 0; k < NSUBJECTS; k++)
		{
			subject_close(&subjects[k]);
			insert[k][round] = inserts[k] / (double) rows * 1e9;
			lookup[k][round] = lookups[k] / (double) rows * 1e9;
		}
	}
	for (int k = 0; k < NSUBJECTS; k++)
	{
		double		i = median(insert[k], (uint32_t) rounds);
		double		l = median(lookup[k], (uint32_t) rounds);

		if (k == 0)
		{
			base_insert = i;
			base_lookup = l;
		}
		if (only == 0)
			printf("%-12s %d domains  insert %7.1f ns, throughput %.3f  lookup %7.1f ns, %.3f\n",
				   key_names[keys], domains[k], i, base_insert / i, l,
				   base_lookup / l);
	}
	fflush(stdout);
}

int
main(void)
{
	uint64_t	rows = setting("EUNO_ROWS", 1000000);
	int			rounds = (int) setting("EUNO_ROUNDS", 7);
	int			only = (int) setting("EUNO_DOMAINS", 0);
	const char *structure = getenv("EUNO_STRUCTURE");

	if (structure == NULL || strcmp(structure, "art") != 0)
		structure = "bptree";
	if (rows < 10000 || rounds < 1 || rounds > MAX_ROUNDS)
		die("EUNO_ROWS must be at least 10000, EUNO_ROUNDS 1 to 99");
	subjects_begin(1);
	for (int k = 0; k < NSUBJECTS; k++)
		subject_init(&subjects[k], structure, strcmp(structure, "art") == 0 ?
					 &euno_art_olc_ops : &euno_bptree_ops, domains[k]);
	for (int keys = DENSE; keys <= (only != 0 ? DENSE : STRINGS); keys++)
		run_kind((Keys) keys, rows, only != 0 ? 1 : rounds, only);
	return 0;
}
