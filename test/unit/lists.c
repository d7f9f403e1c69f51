/*-------------------------------------------------------------------------
 *
 * lists.c
 *	  Posting lists by themselves, with steps of every length.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "core/bptree/bpt.h"
#include "fixture.h"
#include "tap.h"

#define ROUNDS	20000

typedef struct List
{
	uint32_t	n;
	uint32_t	len;
	EunoTid		tids[BPT_LIST_MAX + 1];
	uint8_t		bytes[BPT_LIST_BYTES + 16];
} List;

/* Ascending TIDs; distances of up to so many bits, where the last TID lets. */
static void
make_tids(Random *random, List *list)
{
	uint32_t	bits = 1 + random_below(random, 24);
	EunoTid		tid = (EunoTid) random_below(random, 1000) << 16 | 1;

	list->n = 1 + random_below(random, BPT_LIST_MAX - 1);
	for (uint32_t i = 0; i < list->n; i++)
	{
		uint64_t	blocks = random_below(random, 1 << random_below(random, bits + 1));
		uint64_t	offset = random_below(random, 4) == 0 ? 0xFFFF : 300;

		list->tids[i] = tid;
		/* Now and then one that takes six bytes. */
		if (random_below(random, 200) == 0 && tid >> 16 < UINT32_C(1) << 30)
			blocks += UINT32_C(1) << (28 + random_below(random, 3));
		if (blocks == 0 && (tid & 0xFFFF) < offset)
			tid += 1 + random_below(random, (uint32_t) (offset - (tid & 0xFFFF)));
		else
			tid = ((tid >> 16) + blocks + 1) << 16 |
				(1 + random_below(random, (uint32_t) offset));
	}
}

/* Writes the list; what is behind it is anything. */
static void
encode(Random *random, List *list)
{
	for (uint32_t i = 0; i < sizeof(list->bytes); i++)
		list->bytes[i] = (uint8_t) random_below(random, 256);
	list->len = euno_bpt_list_encode(list->tids, list->n, list->bytes);
}

static void
check_list(const uint8_t *bytes, uint32_t len, const EunoTid *tids, uint32_t n,
		   const char *what)
{
	EunoTid		decoded[BPT_LIST_MAX + 1];
	uint32_t	steps = 0;

	CHECK(euno_bpt_list_decode(bytes, len, tids[0], n, decoded),
		  "%s: %u TIDs in %u bytes are no list", what, n, len);
	CHECK(memcmp(decoded, tids, n * sizeof(EunoTid)) == 0,
		  "%s: %u TIDs in %u bytes are others", what, n, len);
	for (uint32_t i = 1; i < n; i++)
		steps += euno_bpt_list_step(tids[i - 1], tids[i]);
	CHECK(steps == len, "%s: %u bytes instead of %u", what, len, steps);
}

/* A list that ends elsewhere, or has more TIDs or fewer, is none. */
static void
check_damage(const List *list)
{
	EunoTid		decoded[BPT_LIST_MAX + 1];

	CHECK(list->n == 1 ||
		  !euno_bpt_list_decode(list->bytes, list->len - 1, list->tids[0],
								list->n, decoded), "too short");
	CHECK(list->n == 1 ||
		  !euno_bpt_list_decode(list->bytes, list->len, list->tids[0],
								list->n - 1, decoded), "a TID too few");
	CHECK(!euno_bpt_list_decode(list->bytes, list->len, list->tids[0],
								list->n + 1, decoded), "a TID too many");
}

/*
 * Nothing is put before what is not greater, nor into a list that ends within a
 * step: a list that is read while others write may be like that.
 */
static void
check_torn(const List *list)
{
	uint32_t	last = list->n - 1;
	EunoTid		before = 0;
	EunoTid		there = 0;
	uint32_t	at = 0;
	uint8_t		longer[BPT_LIST_BYTES + 32];

	if (list->n == 1)
		return;
	CHECK(euno_bpt_list_insert(list->bytes, list->len, 0, list->tids[0],
							   list->tids[1], longer) == 0, "a TID that is there");
	CHECK(euno_bpt_list_insert(list->bytes, list->len, 0, list->tids[0],
							   list->tids[1] + 1, longer) == 0, "a TID too late");
	CHECK(euno_bpt_list_find(list->bytes, list->len - 1, list->tids[0], list->n,
							 EUNO_TID_MAX, &at, &before, &there) == 0,
		  "what is too short is looked into");
	(void) euno_bpt_list_find(list->bytes, list->len, list->tids[0], list->n,
							  list->tids[last], &at, &before, &there);
	CHECK(at == list->len - 1 ||
		  euno_bpt_list_insert(list->bytes, list->len - 1, at, before,
							   before + 1, longer) == 0, "what is too short grows");
}

/* Looks for a TID, and puts one in if it is not there. */
static void
check_insert(Random *random, const List *list)
{
	uint32_t	i = random_below(random, list->n);
	EunoTid		bound = list->tids[i] + 1 + random_below(random, 2);
	EunoTid		before = 0;
	EunoTid		there = 0;
	uint32_t	at = 0;
	uint8_t		longer[BPT_LIST_BYTES + 32];
	EunoTid		tids[BPT_LIST_MAX + 1];
	uint32_t	found;
	uint32_t	len;

	while (i < list->n && list->tids[i] < bound)
		i++;
	found = euno_bpt_list_find(list->bytes, list->len, list->tids[0], list->n,
							   bound, &at, &before, &there);
	CHECK(found == i, "TID %u found as %u", i, found);
	CHECK(before == list->tids[i - 1], "what is before TID %u", i);
	CHECK(i == list->n || there == list->tids[i], "TID %u itself", i);
	if (i < list->n && list->tids[i] == bound)
		return;
	len = euno_bpt_list_insert(list->bytes, list->len, at, before, bound, longer);
	memcpy(tids, list->tids, i * sizeof(EunoTid));
	tids[i] = bound;
	memcpy(tids + i + 1, list->tids + i, (list->n - i) * sizeof(EunoTid));
	check_list(longer, len, tids, list->n + 1, "inserted");
}

static void
check_remove(Random *random, const List *list)
{
	uint32_t	sub = random_below(random, list->n);
	uint32_t	len = list->len;
	List		left = *list;
	EunoTid		first;

	if (list->n == 1)
		return;
	first = euno_bpt_list_remove(left.bytes, &len, list->tids[0], sub);
	memmove(left.tids + sub, left.tids + sub + 1,
			(list->n - sub - 1) * sizeof(EunoTid));
	CHECK(first == left.tids[0], "the first TID, without number %u", sub);
	check_list(left.bytes, len, left.tids, list->n - 1, "removed");
	CHECK(len <= list->len, "%u bytes, and without number %u %u", list->len, sub,
		  len);
}

/* What a step takes, in bytes. */
static void
check_sizes(void)
{
	static const struct
	{
		EunoTid		from;
		EunoTid		to;
		uint32_t	size;
	}			steps[] = {
		{0x10001, 0x10020, 1},
		{0x10001, 0x10021, 2},
		{0x10001, 0x100001, 2},
		{0x10001, 0x110001, 3},
		{0x10001, UINT64_C(0x10000001), 3},
		{0x10001, UINT64_C(0x10010001), 4},
		{0x10001, UINT64_C(0xFFFFFFFE0001), 6},
		{0x101FF, 0x10200, 6},
		{0x10001, 0x12001, 7},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		CHECK(euno_bpt_list_step(steps[i].from, steps[i].to) == steps[i].size,
			  "step %zu has %u bytes", i,
			  euno_bpt_list_step(steps[i].from, steps[i].to));
}

int
main(void)
{
	Random		random = {test_seed()};
	List		list;

	tap_begin("lists: coded, looked into, changed");
	check_sizes();
	for (uint32_t round = 0; round < ROUNDS && tap_bad() < 10; round++)
	{
		make_tids(&random, &list);
		encode(&random, &list);
		check_list(list.bytes, list.len, list.tids, list.n, "encoded");
		check_damage(&list);
		check_torn(&list);
		check_insert(&random, &list);
		check_remove(&random, &list);
	}
	tap_end();
	return tap_done();
}
