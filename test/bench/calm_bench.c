/*-------------------------------------------------------------------------
 *
 * calm_bench.c
 *	  Operations of one thread on a calm tree, each kind in a function of its
 *	  own, for a profiler that counts instructions (test/bench/calm_cost).
 *
 *	calm_bench [OPERATIONS [art]]	of each kind, on a B+tree or on a radix tree;
 *									prints how many of each there were
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "subject.h"

#define ROWS	200000
#define RANGE	100				/* entries of a scan */

static Subject subject;
static KeySet sparse;
static KeySet dense;
static EunoCursor cursor;
static uint8_t (*keys)[MAX_KEY];	/* made before they are counted */
static uint32_t keylen;

static void
check(EunoStatus status)
{
	if (status != EUNO_OK)
		die("an operation failed");
}

static EunoEntry
row(uint64_t i)
{
	static uint8_t key[MAX_KEY];

	return (EunoEntry) {.key = key,.keylen = make_key(&sparse, i, key),
		.tid = make_tid(i)};
}

/* Keys of these rows of a set, all over it unless "step" is 1. */
static void
make_keys(const KeySet *set, uint64_t first, uint32_t n, uint64_t step)
{
	for (uint32_t i = 0; i < n; i++)
		keylen = make_key(set, first + (step == 1 ? i : i * step % ROWS), keys[i]);
}

static void
read_from(const uint8_t *key, uint32_t max, bool point)
{
	static EunoTid tids[RANGE];
	EunoBatch	batch = {.tids = tids};
	uint32_t	n = 0;

	cursor.lo = (EunoPosition) {.key = key,.keylen = keylen,.side = -1};
	cursor.hi = (EunoPosition) {.key = key,.keylen = point ? keylen : 1,.side = 1};
	euno_cursor_start(&cursor);
	while (n < max)
	{
		batch.max_items = max - n;
		check(subject.ops->read(&subject.cx, subject.tree, &cursor, true, &batch));
		if (batch.nitems == 0)
			break;
		n += batch.nitems;
		if (point)
			break;
	}
	if (n == 0)
		die("a key is missing");
}

static void __attribute__((noinline))
calm_lookup(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		read_from(keys[i], 8, true);
}

static void __attribute__((noinline))
calm_scan(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		read_from(keys[i], RANGE, false);
}

static void
insert(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		EunoEntry	entry = {.key = keys[i],.keylen = keylen,.tid = i + 1};

		check(subject.ops->insert(&subject.cx, subject.tree, &entry, false));
	}
}

static void __attribute__((noinline))
calm_insert(uint32_t n)
{
	insert(n);
}

static void __attribute__((noinline))
calm_remove(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		EunoEntry	entry = {.key = keys[i],.keylen = keylen,.tid = i + 1};

		check(subject.ops->remove(&subject.cx, subject.tree, &entry, NULL));
	}
}

/* Not to be made one function with the other, which has the same body. */
static void __attribute__((noinline))
calm_ascending(uint32_t n)
{
	__asm__ __volatile__("" : : "r" (n));
	insert(n);
}

int
main(int argc, char **argv)
{
	uint32_t	n = argc > 1 ? (uint32_t) atoi(argv[1]) : 20000;
	bool		art = argc > 2 && strcmp(argv[2], "art") == 0;

	key_set_init(&sparse, SPARSE, ROWS);
	key_set_init(&dense, DENSE, ROWS);
	keys = malloc((size_t) n * MAX_KEY);
	if (n < 1 || n > ROWS || keys == NULL)
		die("calm_bench OPERATIONS, at most 200000");
	subjects_begin(1);
	subject_init(&subject, art ? "art" : "bptree",
				 art ? &euno_art_olc_ops : &euno_bptree_ops, 1);
	subject_open(&subject);
	subject_load(&subject, ROWS, row);
	make_keys(&sparse, 0, n, 7919);
	calm_lookup(n);
	calm_scan(n / 10 + 1);
	make_keys(&sparse, ROWS, n, 7919);
	calm_insert(n);
	calm_remove(n);
	subject_close(&subject);
	subject_open(&subject);
	make_keys(&dense, 0, n, 1);
	calm_ascending(n);
	printf("%u\n", n);
	return 0;
}
