/*-------------------------------------------------------------------------
 *
 * fuzz.c
 *	  Bytes decoded into operations, done on the tree and on the reference;
 *	  any difference aborts.
 *
 * Built with libFuzzer (make unit-fuzz), or with FUZZ_REPLAY as a plain
 * program that replays files, and bytes made up from a seed.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#ifdef FUZZ_REPLAY
#include "tap.h"
#endif

/* Both trees, with everything that is compared. */
typedef struct Side
{
	Fixture		fixture;
	Actor		actor;
	EunoCursor	cursor;
} Side;

typedef struct Input
{
	const uint8_t *bytes;
	size_t		n;
} Input;

#define MAX_KEYS 64

typedef struct Keys
{
	uint8_t		bytes[MAX_KEYS][EUNO_MAX_ENTRY];
	uint32_t	length[MAX_KEYS];
	uint32_t	n;
} Keys;

static Keys keys;
static Input whole;				/* what is being run */
static uint32_t walk_mask;

static uint8_t
next_byte(Input *input)
{
	if (input->n == 0)
		return 0;
	input->n--;
	return *input->bytes++;
}

static uint32_t
next_number(Input *input)
{
	uint32_t	high = next_byte(input);

	return high << 8 | next_byte(input);
}

/* The plain program leaves the input behind, as libFuzzer does. */
static void
fail(const char *what)
{
	FILE	   *file = fopen("build/unit/fuzz-failed", "wb");

	fprintf(stderr, "%s\n", what);
	if (file != NULL)
	{
		(void) fwrite(whole.bytes, 1, whole.n, file);
		fclose(file);
	}
	abort();
}

/*
 * A key: a new one of text, with a run of one letter in it, or one made
 * before.  A COMPARE key has two columns, as the comparators want it.
 */
static EunoEntry
next_entry(Input *input, const Shape *shape)
{
	static const uint8_t payload[64] = "a payload of some length or other";
	uint32_t	kind = next_byte(input);
	uint32_t	which = kind % MAX_KEYS;
	EunoEntry	entry = {0};

	if (which >= keys.n && keys.n < MAX_KEYS)
	{
		uint8_t    *key = keys.bytes[keys.n];
		uint32_t	limit = shape->order == EUNO_ORDER_BYTES ? 2600 : 200;
		uint32_t	run = next_byte(input);
		uint32_t	tail = next_byte(input) % 6;
		uint32_t	n = 1;

		run = run < 200 ? run / 8 : run * run % limit;
		memset(key + n, 'a' + (int) (run % 2), run);
		n += run;
		for (uint32_t i = 0; i < tail; i++)
			key[n++] = (uint8_t) (next_byte(input) % 254 + 1);
		if (shape->order == EUNO_ORDER_BYTES)
		{
			key[0] = 2;
			key[n++] = 0;
		}
		else
		{
			key[0] = (uint8_t) (n - 1);
			key[n++] = 0;
		}
		keys.length[keys.n] = n;
		which = keys.n++;
	}
	entry.key = keys.bytes[which % keys.n];
	entry.keylen = keys.length[which % keys.n];
	entry.tid = (EunoTid) (next_byte(input) % 8) << 16 | (next_byte(input) + 1);
	if (!shape->posting && kind >= 192)
	{
		entry.payloadlen = kind % 64;
		entry.payload = payload;
	}
	return entry;
}

/*
 * A whole range of both, side by side.  The batches' sizes may differ, so the
 * entries are collected first.
 */
#define MAX_COLLECTED 65536

typedef struct Collected
{
	EunoTid		tids[MAX_COLLECTED];
	uint32_t	hashes[MAX_COLLECTED];	/* of key and payload */
	uint32_t	n;
} Collected;

static uint32_t
hash_item(const EunoBatch *batch, uint32_t item)
{
	const EunoItemKey *key = &batch->keys[item];
	const uint8_t *bytes = batch->buf + key->offset;
	uint32_t	aligned = (key->keylen + 7u) & ~7u;
	uint32_t	hash = key->keylen * 31u + key->payloadlen;

	for (uint32_t i = 0; i < key->keylen; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	for (uint32_t i = 0; i < key->payloadlen; i++)
		hash = (hash ^ bytes[aligned + i]) * 16777619u;
	return hash;
}

static void
collect(Side *side, bool forward, uint32_t size, Collected *collected)
{
	EunoBatch  *batch = &side->actor.batch;

	euno_cursor_start(&side->cursor);
	collected->n = 0;
	do
	{
		batch->max_items = size + 1;
		batch->want_keys = true;
		if (side->fixture.ops->read(&side->actor.cx, side->fixture.tree,
									&side->cursor, forward, batch) != EUNO_OK)
			fail("read");
		for (uint32_t i = 0; i < batch->nitems; i++)
		{
			if (collected->n == MAX_COLLECTED)
				fail("a scan without end");
			collected->tids[collected->n] = batch->tids[i];
			collected->hashes[collected->n++] = hash_item(batch, i);
		}
	} while (batch->nitems > 0);
}

static void
compare_ranges(Side *sides, Input *input, const Shape *shape, bool all)
{
	static Collected collected[2];
	static Bound bounds[2][2];
	EunoEntry	lo = all ? (EunoEntry) {0} : next_entry(input, shape);
	EunoEntry	hi = all ? (EunoEntry) {0} : next_entry(input, shape);
	uint32_t	how = all ? 1 + 2 : next_byte(input);
	uint32_t	size = all ? 200 : next_byte(input);

	for (int s = 0; s < 2; s++)
	{
		EunoCursor *cursor = &sides[s].cursor;

		memset(bounds[s], 0, sizeof(bounds[s]));
		cursor->lo = (EunoPosition)
		{
			.key = lo.key,.keylen = lo.keylen,.side = -1
		};
		cursor->hi = (EunoPosition)
		{
			.key = hi.key,.keylen = hi.keylen,.side = 1
		};
		if (!all && (how & 4))
		{
			cursor->lo.side = 0;
			cursor->lo.tid = lo.tid;
		}
		if (!all && (how & 8))
		{
			cursor->hi.side = 0;
			cursor->hi.tid = hi.tid;
		}
		if (all || (how & 16))
		{
			memset(&cursor->lo, 0, sizeof(EunoPosition));
			cursor->lo.side = -1;
			cursor->lo.bound = &bounds[s][0];
		}
		if (all || (how & 32))
		{
			memset(&cursor->hi, 0, sizeof(EunoPosition));
			cursor->hi.side = 1;
			cursor->hi.bound = &bounds[s][1];
		}
		collect(&sides[s], (how & 1) != 0, size, &collected[s]);
	}
	if (collected[0].n != collected[1].n ||
		memcmp(collected[0].tids, collected[1].tids,
			   collected[0].n * sizeof(EunoTid)) != 0 ||
		memcmp(collected[0].hashes, collected[1].hashes,
			   collected[0].n * sizeof(uint32_t)) != 0)
		fail("the scans differ");
}

static void
report(void *arg, const char *what)
{
	(void) arg;
	fail(what);
}

static bool
decide(void *arg, EunoTid tid)
{
	(void) arg;
	return (tid & walk_mask) == 0;
}

static void
verify_both(Side *sides, Input *input, const Shape *shape)
{
	EunoVerify	verify = {.report = report};
	EunoTreeStats stats[2];

	for (int s = 0; s < 2; s++)
	{
		Side	   *side = &sides[s];

		if (side->fixture.ops->verify(&side->actor.cx, side->fixture.tree,
									  &verify) != 0)
			fail("verify");
		side->fixture.ops->stats(&side->actor.cx, side->fixture.tree, &stats[s]);
	}
	if (stats[0].entries != stats[1].entries)
		fail("the numbers of entries differ");
	compare_ranges(sides, input, shape, true);
}

/* Many entries at once: what one byte each would take too long to reach. */
static void
insert_run(Side *sides, Input *input, const Shape *shape)
{
	EunoEntry	entry = next_entry(input, shape);
	uint32_t	n = next_byte(input) * 2u;
	uint32_t	step = 1 + next_byte(input) % 4;
	bool		remove = next_byte(input) % 4 == 0;

	for (uint32_t i = 0; i < n; i++)
	{
		EunoStatus	status[2];

		for (int s = 0; s < 2; s++)
			status[s] = remove ?
				sides[s].fixture.ops->remove(&sides[s].actor.cx,
											 sides[s].fixture.tree, &entry, NULL) :
				sides[s].fixture.ops->insert(&sides[s].actor.cx,
											 sides[s].fixture.tree, &entry, false);
		if (status[0] != status[1])
			fail("the statuses of a run differ");
		entry.tid += step;
	}
}

static void
one_operation(Side *sides, Input *input, const Shape *shape)
{
	uint32_t	operation = next_byte(input) % 12;
	EunoWalk	walks[2];
	EunoEntry	entry;
	EunoStatus	status[2] = {EUNO_OK, EUNO_OK};
	uint32_t	merged;

	if (operation == 7)
		insert_run(sides, input, shape);
	else if (operation == 8)
		compare_ranges(sides, input, shape, false);
	else if (operation == 9)
		verify_both(sides, input, shape);
	else if (operation == 10)
	{
		walk_mask = next_number(input);
		for (int s = 0; s < 2; s++)
		{
			walks[s] = (EunoWalk)
			{
				.decide = decide,
				.room = sides[s].actor.room,
				.at_once = (uint32_t) (walk_mask % 1000)
			};
			status[s] = sides[s].fixture.ops->walk(&sides[s].actor.cx,
												   sides[s].fixture.tree, &walks[s]);
		}
		if (walks[0].removed != walks[1].removed || walks[0].kept != walks[1].kept)
			fail("the walks differ");
	}
	else if (operation == 11)
	{
		status[0] = sides[0].fixture.ops->compact(&sides[0].actor.cx,
												  sides[0].fixture.tree, 0,
												  1 + next_byte(input), &merged);
		if (status[0] == EUNO_DONE)
			status[0] = EUNO_OK;
	}
	else
	{
		entry = next_entry(input, shape);
		for (int s = 0; s < 2; s++)
		{
			const EunoTreeOps *ops = sides[s].fixture.ops;
			EunoContext *cx = &sides[s].actor.cx;
			EunoTree   *tree = sides[s].fixture.tree;

			if (operation < 4)
				status[s] = ops->insert(cx, tree, &entry, false);
			else if (operation < 6)
				status[s] = ops->remove(cx, tree, &entry, NULL);
			else
				status[s] = ops->contains(cx, tree, &entry);
		}
	}
	if (status[0] != status[1])
		fail("the statuses differ");
}

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {
		"dense int8", "sparse int8, no posting", "comparator",
		"comparator, ignoring case", "comparator, descending"
	};
	static Side sides[2];
	static Universe universe;
	Input		input = {data, size};
	uint32_t	which = next_byte(&input) % 5;

	universe.shape = shape_by_name(names[which]);
	keys.n = 0;
	whole = (Input)
	{
		data, size
	};
	fixture_open(&sides[0].fixture, &euno_bptree_ops, &universe, 90, 1);
	fixture_open(&sides[1].fixture, &reference_ops, &universe, 90, 1);
	for (int s = 0; s < 2; s++)
		actor_init(&sides[s].actor, &sides[s].fixture, 1, 1);
	while (input.n > 0)
		one_operation(sides, &input, universe.shape);
	verify_both(sides, &input, universe.shape);
	for (int s = 0; s < 2; s++)
	{
		actor_free(&sides[s].actor);
		fixture_close(&sides[s].fixture);
	}
	return 0;
}

#ifdef FUZZ_REPLAY
static void
replay_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE	   *file = fopen(path, "rb");
	size_t		n;

	if (file == NULL)
	{
		perror(path);
		exit(1);
	}
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	(void) LLVMFuzzerTestOneInput(bytes, n);
}

/* Every input of the corpus, by name; a difference aborts. */
static void
replay_corpus(const char *path)
{
	DIR		   *dir = opendir(path);
	struct dirent *file;
	uint32_t	n = 0;

	tap_begin("fuzz: the inputs in %s", path);
	while (dir != NULL && (file = readdir(dir)) != NULL)
	{
		char		name[600];

		if (file->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, file->d_name);
		replay_file(name);
		n++;
	}
	CHECK(n > 0, "no inputs there");
	if (dir != NULL)
		closedir(dir);
	tap_end();
}

int
main(int argc, char **argv)
{
	double		end = now() + test_seconds();
	Random		random = {test_seed()};
	uint32_t	inputs = SANITIZED ? 20 : 100;
	uint8_t		bytes[1500];

	if (argc > 1)
	{
		tap_begin("fuzz: the inputs given");
		for (int i = 1; i < argc; i++)
			replay_file(argv[i]);
		tap_end();
		return tap_done();
	}
	replay_corpus("test/unit/corpus");
	tap_begin("fuzz: random bytes");
	for (uint32_t i = 0; i < inputs || now() < end; i++)
	{
		uint32_t	n = 100 + random_below(&random, sizeof(bytes) - 100);

		for (uint32_t j = 0; j < n; j++)
			bytes[j] = (uint8_t) random_next(&random);
		(void) LLVMFuzzerTestOneInput(bytes, n);
	}
	tap_end();
	return tap_done();
}
#endif
