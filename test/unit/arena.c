/*-------------------------------------------------------------------------
 *
 * arena.c
 *	  Extents and pools: no two nodes overlap, everything comes back, and an
 *	  end is a NULL.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "mem/euno_cache.h"
#include "mem/euno_extents.h"
#include "tap.h"

#define ARENA_BYTES ((size_t) 16 * 1024 * 1024)
#define MAX_NODES 4096
#define CACHE_SIZE (32 * 1024)	/* the node that the stripes are in */

typedef struct Piece
{
	uint8_t    *node;
	size_t		size;			/* as asked for */
	uint8_t		fill;
} Piece;

static uint64_t seed;

/* Called when pages are about to go back to the system, so many bytes. */
static void (*before_remove) (size_t size);

int
madvise(void *start, size_t size, int advice)
{
	if (advice == MADV_REMOVE && before_remove != NULL)
		before_remove(size);
	return (int) syscall(SYS_madvise, start, size, advice);
}

/* There is no way to give a reservation back, so a test's is used again. */
static EunoArena *
fresh_arena(EunoArena **arena, size_t bytes, int ndomains)
{
	if (*arena == NULL)
		*arena = euno_arena_reserve(NULL, bytes, ndomains, &test_env);
	else
		euno_arena_reset(*arena);
	if (*arena == NULL)
	{
		perror("euno_arena_reserve");
		exit(1);
	}
	return *arena;
}

static uint64_t
used_bytes(EunoArena *arena)
{
	EunoArenaUsage usage = euno_arena_usage(arena);

	CHECK(usage.used <= usage.peak && usage.peak <= usage.reserved,
		  "used %llu, peak %llu, of %llu", (unsigned long long) usage.used,
		  (unsigned long long) usage.peak, (unsigned long long) usage.reserved);
	return usage.used;
}

/* Pages of memory that the arena's address range really takes. */
static size_t
resident_pages(void *start, size_t size)
{
	size_t		pages = size / 4096;
	unsigned char *map = malloc(pages);
	size_t		n = 0;

	CHECK(mincore(start, size, map) == 0, "mincore failed");
	for (size_t i = 0; i < pages; i++)
		n += map[i] & 1;
	free(map);
	return n;
}

/* Are there so many?  QEMU does not pass on what the system is asked for. */
static bool
takes(void *start, size_t size, size_t pages)
{
	return getenv("EUNO_EMULATOR") != NULL ||
		resident_pages(start, size) == pages;
}

static size_t
class_size(size_t size)
{
	size_t		class = 128;
	size_t		step = 8;

	if (size > 2048 && size <= 2080)
		return 2080;
	while (class < size)
		class *= 2;
	if (class > 4096)
		return class;
	if (class > 128)
		step = class / 16;
	return (size + step - 1) / step * step;
}

static size_t
alignment(size_t class)
{
	return class % 64 == 0 ? 64 : class % 16 == 0 ? 16 : 8;
}

static void
fill(Piece *piece, Random *random)
{
	piece->fill = (uint8_t) random_next(random);
	memset(piece->node, piece->fill, piece->size);
}

static void
check_fill(const Piece *piece)
{
	for (size_t i = 0; i < piece->size; i++)
	{
		if (piece->node[i] != piece->fill)
		{
			CHECK(false, "byte %zu of a node of %zu bytes was overwritten", i,
				  piece->size);
			return;
		}
	}
}

/*
 * Random nodes come and go; each keeps what was written to it.  Through a
 * cache, if "stripe" is not negative.
 */
static void
churn(EunoPool *pool, int stripe, Random *random, uint32_t rounds,
	  Piece *pieces, uint32_t *n)
{
	for (uint32_t i = 0; i < rounds && tap_bad() == 0; i++)
	{
		if (*n < MAX_NODES && random_below(random, 5) < 3)
		{
			Piece	   *piece = &pieces[*n];
			uint32_t	kind = random_below(random, 8);

			piece->size = kind == 0 ? 1 + random_below(random, 32768) :
				kind < 4 ? 1 + random_below(random, kind == 1 ? 5000 : 300) :
				(size_t) 1024 << random_below(random, kind == 4 ? 6 : 3);
			piece->node = stripe < 0 ? euno_pool_alloc(pool, piece->size) :
				euno_cache_alloc(pool, (uint32_t) stripe, piece->size);
			if (piece->node == NULL)
				continue;
			CHECK((uintptr_t) piece->node % alignment(class_size(piece->size)) == 0,
				  "a node of %zu bytes at %p", piece->size,
				  (void *) piece->node);
			fill(piece, random);
			(*n)++;
		}
		else if (*n > 0)
		{
			uint32_t	which = random_below(random, *n);

			check_fill(&pieces[which]);
			if (stripe < 0)
				euno_pool_free(pool, pieces[which].node, pieces[which].size);
			else
				euno_cache_free(pool, (uint32_t) stripe, pieces[which].node,
								pieces[which].size);
			pieces[which] = pieces[--(*n)];
		}
	}
}

static void
check_pieces(EunoPool *pool, const Piece *pieces, uint32_t n)
{
	uint64_t	live = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		check_fill(&pieces[i]);
		live += class_size(pieces[i].size);
	}
	CHECK(pool->live_bytes == live, "%llu live bytes instead of %llu",
		  (unsigned long long) pool->live_bytes, (unsigned long long) live);
	CHECK(pool->extents * EUNO_EXTENT_SIZE >= live, "%llu extents",
		  (unsigned long long) pool->extents);
	check_pool(pool);
}

static void
test_nodes(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 2);
	EunoPool	pools[3];
	Piece	   *pieces[3];
	uint32_t	n[3] = {0, 0, 0};
	Random		random = {seed};
	uint64_t	used = 0;

	tap_begin("arena: nodes keep their bytes");
	for (int i = 0; i < 3; i++)
	{
		euno_pool_init(&pools[i], arena, i % 2);
		pieces[i] = malloc(MAX_NODES * sizeof(Piece));
	}
	for (int round = 0; round < 30; round++)
	{
		int			i = (int) random_below(&random, 3);

		churn(&pools[i], -1, &random, 400, pieces[i], &n[i]);
		check_pieces(&pools[i], pieces[i], n[i]);
	}
	for (int i = 0; i < 3; i++)
	{
		check_pieces(&pools[i], pieces[i], n[i]);
		CHECK(pools[i].sweep > 0, "pool %d was never swept", i);
		used += pools[i].extents * EUNO_EXTENT_SIZE;
	}
	CHECK(used_bytes(arena) == used, "the arena's and the pools' extents differ");
	CHECK(euno_pool_alloc(&pools[0], 32769) == NULL, "a node of 32769 bytes");
	for (int i = 0; i < 3; i++)
	{
		used -= pools[i].extents * EUNO_EXTENT_SIZE;
		euno_pool_release(&pools[i]);
		CHECK(used_bytes(arena) == used, "not all of pool %d came back", i);
		CHECK(pools[i].extents == 0 && pools[i].live_bytes == 0, "pool not empty");
		free(pieces[i]);
	}

	/* a released pool is an empty pool */
	CHECK(euno_pool_alloc(&pools[1], 4096) != NULL, "no node from an empty pool");
	euno_pool_release(&pools[1]);
	tap_end();
}

/* Takes nodes of one size until there are none. */
static uint32_t
exhaust(EunoPool *pool, size_t size, void **nodes)
{
	uint32_t	n = 0;

	while (n < MAX_NODES && (nodes[n] = euno_pool_alloc(pool, size)) != NULL)
	{
		memset(nodes[n], 1, size);
		n++;
	}
	return n;
}

static void
test_exhaustion(void)
{
	size_t		bytes = 33 * EUNO_EXTENT_SIZE;
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, bytes, 3);
	EunoPool	a;
	EunoPool	b;
	void	   *nodes[MAX_NODES];
	uint8_t    *quarters[4];
	uint32_t	n;

	tap_begin("arena: full is NULL, and nothing is lost");
	euno_pool_init(&a, arena, 0);
	euno_pool_init(&b, arena, 2);
	n = exhaust(&a, 4096, nodes);
	CHECK(n == 33 * 16, "%u nodes of 4 kB in 33 extents", n);
	CHECK(used_bytes(arena) == bytes, "%llu bytes used",
		  (unsigned long long) used_bytes(arena));
	CHECK(euno_pool_alloc(&b, 1024) == NULL, "a node from a full arena");
	CHECK(euno_pool_alloc(&a, 1024) == NULL, "a node from a full arena");
	euno_pool_free(&a, nodes[7], 4096);
	CHECK(euno_pool_alloc(&b, 1024) == NULL, "a node of another pool's");
	for (int i = 0; i < 4; i++)
	{
		quarters[i] = euno_pool_alloc(&a, 1024);
		CHECK(quarters[i] >= (uint8_t *) nodes[7] &&
			  quarters[i] < (uint8_t *) nodes[7] + 4096,
			  "a smaller node is not cut from the larger free one");
	}
	CHECK(euno_pool_alloc(&a, 1024) == NULL, "a fifth quarter");
	for (int i = 0; i < 4; i++)
		euno_pool_free(&a, quarters[i], 1024);
	CHECK(euno_pool_alloc(&a, 4096) == nodes[7], "four quarters are not joined");
	check_pool(&a);
	euno_pool_release(&a);
	CHECK(used_bytes(arena) == 0, "bytes used after the release");

	/* what an extent has left serves smaller nodes */
	n = exhaust(&b, 32768, nodes);
	CHECK(n == 66, "%u nodes of 32 kB in 33 extents", n);
	euno_pool_release(&b);
	CHECK(euno_pool_alloc(&b, 8192) != NULL && euno_pool_alloc(&b, 32768) != NULL,
		  "no nodes");
	n = exhaust(&b, 32768, nodes);
	CHECK(n == 32 * 2, "%u nodes of 32 kB", n);
	n = exhaust(&b, 8192, nodes);
	CHECK(n == 3, "%u nodes of 8 kB left in the first extent", n);
	euno_pool_release(&b);
	tap_end();
}

static void
test_return(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 1);
	EunoPool	pool;
	EunoPool	other;
	void	   *nodes[MAX_NODES];
	uint8_t    *start;
	uint32_t	room;
	uint32_t	n;

	tap_begin("arena: pages go back to the operating system");

	/* Where the system gives huge pages, it gives more than was handed out. */
	euno_arena_no_huge_pages(arena);
	euno_pool_init(&pool, arena, 0);
	euno_pool_init(&other, arena, 0);
	start = euno_pool_alloc(&other, 1024);
	CHECK(start != NULL && ((uintptr_t) start & 0xFFFF) == 0, "first node at %p",
		  (void *) start);
	strcpy((char *) start, "kept");
	CHECK(takes(start, EUNO_EXTENT_SIZE, 16),
		  "an extent that is handed out is not populated");
	CHECK(takes(start, ARENA_BYTES, 16),
		  "%zu pages taken by one extent", resident_pages(start, ARENA_BYTES));
	room = (uint32_t) ((ARENA_BYTES - euno_arena_kept(arena)) / EUNO_EXTENT_SIZE);
	n = exhaust(&pool, 32768, nodes);
	CHECK(n == (room - 1) * 2, "%u nodes", n);
	CHECK(takes(start, ARENA_BYTES, room * 16),
		  "%zu pages when full", resident_pages(start, ARENA_BYTES));

	/* New pools have a little room all the same, but no more than that. */
	CHECK(room < 256, "nothing is kept for small pools");
	for (uint32_t i = 0; i < 4; i++)
	{
		EunoPool	small;
		void	   *first;

		euno_pool_init(&small, arena, 0);
		first = euno_pool_alloc(&small, 32768);
		CHECK(first != NULL && exhaust(&small, 32768, nodes) == 3, "a small pool");
		euno_pool_release(&small);
	}
	euno_pool_release(&pool);
	CHECK(takes(start, ARENA_BYTES, 16), "%zu pages after the release",
		  resident_pages(start, ARENA_BYTES));
	CHECK(strcmp((char *) start, "kept") == 0, "another pool's bytes are gone");

	/* a crash: the mapping survives it with its content */
	n = exhaust(&pool, 4096, nodes);
	CHECK(n == (room - 1) * 16, "%u nodes", n);
	pool.lock.word |= EUNO_LOCK_LOCKED;
	euno_arena_reset(arena);
	CHECK(used_bytes(arena) == 0, "bytes used after the reset");
	CHECK(takes(start, ARENA_BYTES, 0), "%zu pages after the reset",
		  resident_pages(start, ARENA_BYTES));
	euno_pool_init(&pool, arena, 0);
	n = exhaust(&pool, 32768, nodes);
	CHECK(n == room * 2, "%u nodes after the reset", n);
	tap_end();
}

static bool is_full;

static bool
allows_nothing(uint64_t bytes)
{
	(void) bytes;
	return !is_full;
}

/* Some of what is given back keeps its pages, until the machine is full. */
static void
test_idle(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 1);
	const size_t most = 100 * EUNO_EXTENT_SIZE;
	EunoPool	pool;
	EunoPool	other;
	void	   *nodes[MAX_NODES];
	void	   *start;
	size_t		size;

	tap_begin("arena: idle extents");
	euno_arena_no_huge_pages(arena);
	euno_arena_ask(arena, allows_nothing);
	euno_arena_keep_idle(arena, most);
	euno_arena_part(arena, 0, &start, &size);
	euno_pool_init(&pool, arena, 0);
	euno_pool_init(&other, arena, 0);

	/* to a whole huge page, where not all are kept */
	for (int i = 0; i < 2; i++)
	{
		(void) exhaust(&pool, 32768, nodes);
		CHECK(euno_arena_idle(arena) == 0, "idle when full");
		euno_pool_release(&pool);
		CHECK(euno_arena_idle(arena) == 96 * EUNO_EXTENT_SIZE,
			  "%llu bytes are idle", (unsigned long long) euno_arena_idle(arena));
		CHECK(takes(start, size, 96 * 16), "%zu pages stay",
			  resident_pages(start, size));
		CHECK(used_bytes(arena) == 0, "bytes are used");
	}

	/* the next pool takes them first, and leaves the rest */
	for (int i = 0; i < 10; i++)
		CHECK(euno_pool_alloc(&other, 32768) != NULL, "no memory");
	CHECK(euno_arena_idle(arena) == 91 * EUNO_EXTENT_SIZE &&
		  takes(start, size, 96 * 16), "%llu bytes are idle, %zu pages",
		  (unsigned long long) euno_arena_idle(arena), resident_pages(start, size));

	/* a machine that is full gets all of them */
	is_full = true;
	for (int i = 0; i < 40 && euno_pool_alloc(&other, 32768) != NULL; i++)
		;
	CHECK(euno_arena_idle(arena) == 0, "idle on a full machine");
	CHECK(takes(start, size, other.extents * 16), "%zu pages stay",
		  resident_pages(start, size));
	is_full = false;
	CHECK(exhaust(&other, 32768, nodes) > 0, "no memory");

	/* a crash: nothing is idle any more */
	euno_pool_release(&other);
	euno_arena_reset(arena);
	CHECK(euno_arena_idle(arena) == 0 && takes(start, size, 0),
		  "idle after the reset");
	tap_end();
}

static size_t most_removed;

static void
note_remove(size_t size)
{
	if (size > most_removed)
		most_removed = size;
}

/*
 * While pages go back to the system nobody finds their extents.  So they do
 * not if only the arena is full, or not many at a time.
 */
static void
test_room(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 1);
	const size_t huge = 32 * EUNO_EXTENT_SIZE;
	EunoPool	pool;
	EunoPool	small[4];
	void	   *nodes[MAX_NODES];

	tap_begin("arena: room while pages go back");
	is_full = false;
	euno_arena_ask(arena, allows_nothing);
	euno_arena_keep_idle(arena, 8 * EUNO_EXTENT_SIZE);
	euno_pool_init(&pool, arena, 0);
	before_remove = note_remove;

	/* What small pools were given stays idle for the next ones. */
	(void) exhaust(&pool, 32768, nodes);
	for (int i = 0; i < 4; i++)
	{
		euno_pool_init(&small[i], arena, 0);
		CHECK(exhaust(&small[i], 32768, nodes) == 4, "a small pool");
	}
	for (int i = 0; i < 4; i++)
		euno_pool_release(&small[i]);
	CHECK(euno_arena_idle(arena) == 8 * EUNO_EXTENT_SIZE, "%llu bytes are idle",
		  (unsigned long long) euno_arena_idle(arena));
	most_removed = 0;
	CHECK(euno_pool_alloc(&pool, 32768) == NULL, "a node from a full arena");
	CHECK(most_removed == 0 && euno_arena_idle(arena) == 8 * EUNO_EXTENT_SIZE,
		  "a full arena gives pages back");
	euno_pool_release(&pool);

	while (euno_arena_make_ready(arena, 0, ARENA_BYTES) == EUNO_OK)
		;
	CHECK(euno_arena_idle(arena) > 4 * huge, "%llu bytes are ready",
		  (unsigned long long) euno_arena_idle(arena));
	most_removed = 0;
	euno_arena_trim(arena, 0, 0);
	CHECK(most_removed > 0 && most_removed <= huge, "%zu bytes are out at a time",
		  most_removed);
	CHECK(euno_arena_idle(arena) <= huge, "%llu bytes are idle",
		  (unsigned long long) euno_arena_idle(arena));
	before_remove = NULL;
	tap_end();
}

/*
 * Memory is made ready as far as it is asked for, a pool takes it, and what it
 * does not take goes back.
 */
static void
test_ready(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 1);
	const size_t huge = 32 * EUNO_EXTENT_SIZE;
	EunoPool	pool;
	void	   *nodes[MAX_NODES];
	void	   *start;
	size_t		size;
	uint32_t	n;

	tap_begin("arena: memory made ready");
	is_full = false;
	euno_arena_no_huge_pages(arena);
	euno_arena_ask(arena, allows_nothing);
	euno_arena_keep_idle(arena, 30 * EUNO_EXTENT_SIZE);
	euno_arena_part(arena, 0, &start, &size);
	euno_pool_init(&pool, arena, 0);

	/* behind what is used */
	(void) euno_pool_alloc(&pool, 32768);
	CHECK(euno_arena_make_ready(arena, 0, 0) == EUNO_NOT_FOUND, "unasked");
	for (int i = 0; i < 2; i++)
		CHECK(euno_arena_make_ready(arena, 0, 2 * huge) == EUNO_OK, "not ready");
	CHECK(euno_arena_make_ready(arena, 0, 2 * huge) == EUNO_NOT_FOUND, "too much");
	CHECK(euno_arena_idle(arena) == 2 * huge && takes(start, size, 65 * 16),
		  "%llu bytes are idle, %zu pages", (unsigned long long) euno_arena_idle(arena),
		  resident_pages(start, size));
	CHECK(used_bytes(arena) == EUNO_EXTENT_SIZE, "what is ready is used");

	/*
	 * The pool takes its first 2 MB, which were not to be had whole, and the
	 * rest.
	 */
	for (int i = 0; i < 2 * (31 + 40); i++)
		CHECK(euno_pool_alloc(&pool, 32768) != NULL, "no memory");
	CHECK(euno_arena_idle(arena) == 24 * EUNO_EXTENT_SIZE, "%llu bytes are idle",
		  (unsigned long long) euno_arena_idle(arena));

	/* What is not taken goes back; the lowest of it stays, by huge pages. */
	CHECK(euno_arena_make_ready(arena, 0, huge) == EUNO_OK, "not ready");
	euno_arena_trim(arena, 0, huge);
	CHECK(euno_arena_idle(arena) == 56 * EUNO_EXTENT_SIZE, "what is expected goes");
	euno_arena_trim(arena, 0, 0);
	CHECK(euno_arena_idle(arena) == 24 * EUNO_EXTENT_SIZE &&
		  takes(start, size, 96 * 16), "%llu bytes are idle, %zu pages",
		  (unsigned long long) euno_arena_idle(arena), resident_pages(start, size));

	/* Others keep room; what the machine refuses stays free. */
	is_full = true;
	CHECK(euno_arena_make_ready(arena, 0, ARENA_BYTES) == EUNO_NO_MEMORY, "refused");
	is_full = false;
	CHECK(takes(start, size, 96 * 16), "pages of what was refused");
	for (n = 0; euno_arena_make_ready(arena, 0, ARENA_BYTES) == EUNO_OK; n++)
		;
	CHECK(n == 5, "%u of the last five huge pages", n);
	euno_arena_trim(arena, 0, 0);
	while (pool.extents < 256 - 47)
		CHECK(euno_pool_alloc(&pool, 32768) != NULL, "no memory");
	CHECK(euno_arena_make_ready(arena, 0, ARENA_BYTES) == EUNO_NOT_FOUND,
		  "nothing is left to others meanwhile");
	(void) exhaust(&pool, 32768, nodes);
	CHECK(used_bytes(arena) == ARENA_BYTES - euno_arena_kept(arena),
		  "%llu bytes used", (unsigned long long) used_bytes(arena));
	euno_pool_release(&pool);
	tap_end();
}

/* What is idle is lent, by whole huge pages, where there is room enough. */
static void
test_loans(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 1);
	const size_t huge = EUNO_LOAN_BYTES;
	EunoPool	pool;
	uint8_t    *one;
	uint8_t    *two;
	void	   *start;
	size_t		size;

	tap_begin("arena: idle memory is lent");
	euno_arena_no_huge_pages(arena);
	euno_arena_keep_idle(arena, ARENA_BYTES);
	euno_arena_part(arena, 0, &start, &size);
	euno_pool_init(&pool, arena, 0);
	CHECK(euno_arena_borrow(arena, 0, 0, 1) == NULL, "nothing is idle");

	/* three and a half */
	for (int i = 0; i < 2 * (3 * 32 + 16); i++)
		CHECK(euno_pool_alloc(&pool, 32768) != NULL, "no memory");
	CHECK(euno_arena_borrow(arena, 0, 0, 1) == NULL, "what is used is lent");
	euno_pool_release(&pool);
	CHECK(euno_arena_borrow(arena, 0, ARENA_BYTES + huge, 1) == NULL, "no room");
	CHECK(euno_arena_borrow(arena, 0, 0, 4) == NULL, "more than is idle");

	/* the highest ones; a pool takes the others */
	one = euno_arena_borrow(arena, 0, ARENA_BYTES, 1);
	CHECK(one == (uint8_t *) start + 2 * huge, "not the highest one");
	two = euno_arena_borrow(arena, 0, ARENA_BYTES - huge, 2);
	CHECK(two == start, "not two in a row");
	if (one == NULL || two == NULL)
	{
		tap_end();
		return;
	}
	CHECK(euno_arena_borrow(arena, 0, 0, 1) == NULL, "lent twice");
	CHECK(used_bytes(arena) == 3 * huge && euno_arena_idle(arena) == huge / 2,
		  "%llu bytes are used, %llu idle", (unsigned long long) used_bytes(arena),
		  (unsigned long long) euno_arena_idle(arena));
	memset(one, 1, huge);
	memset(two, 2, 2 * huge);
	for (int i = 0; i < 2 * 64; i++)
	{
		uint8_t    *node = euno_pool_alloc(&pool, 32768);

		CHECK(node >= one + huge, "a pool has what is lent");
		if (node != NULL)
			memset(node, 3, 32768);
	}
	for (size_t i = 0; i < 2 * huge; i++)
	{
		if (two[i] != 2 || one[i / 2] != 1)
		{
			CHECK(false, "a loan was written to, at %zu", i);
			break;
		}
	}

	/* in parts, and they are idle again */
	euno_arena_return(arena, two, 1);
	CHECK(euno_arena_borrow(arena, 0, 0, 1) == two, "not what was returned");
	euno_arena_return(arena, two, 1);
	euno_arena_return(arena, two + huge, 1);
	euno_arena_return(arena, one, 1);
	euno_pool_release(&pool);
	CHECK(used_bytes(arena) == 0 && euno_arena_idle(arena) == 5 * huge,
		  "%llu bytes are used, %llu idle", (unsigned long long) used_bytes(arena),
		  (unsigned long long) euno_arena_idle(arena));
	tap_end();
}

#define LENT_PAGES	12			/* huge pages, and a few extents more */
#define LENT_BYTES	(LENT_PAGES * EUNO_LOAN_BYTES + 7 * EUNO_EXTENT_SIZE)
#define LENT_EXTENTS	(LENT_BYTES / EUNO_EXTENT_SIZE)

/* Where a loan must begin, by what is idle: the highest pages; or -1. */
static int
highest_idle(const bool *idle, int count)
{
	for (int page = LENT_PAGES - count; page >= 0; page--)
	{
		int			n = 0;

		while (n < 32 * count && idle[32 * page + n])
			n++;
		if (n == 32 * count)
			return page;
	}
	return -1;
}

/* A pool takes extents, or gives back all that it has. */
static void
lend_beside(EunoPool *pool, bool release, uint32_t n, const uint8_t *start,
			bool *idle, bool *owned)
{
	if (release)
	{
		euno_pool_release(pool);
		for (size_t i = 0; i < LENT_EXTENTS; i++)
		{
			idle[i] |= owned[i];
			owned[i] = false;
		}
		return;
	}
	for (; n > 0; n--)
	{
		uint8_t    *node = euno_pool_alloc(pool, 32768);

		if (node == NULL)
			return;
		idle[(size_t) (node - start) / EUNO_EXTENT_SIZE] = false;
		owned[(size_t) (node - start) / EUNO_EXTENT_SIZE] = true;
	}
}

/*
 * Whatever comes and goes between: a loan is always the highest that is idle,
 * and is refused only if there is none.
 */
static void
test_highest(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, LENT_BYTES, 1);
	Random		random = {seed};
	EunoPool	pool;
	bool		idle[LENT_EXTENTS] = {false};
	bool		owned[LENT_EXTENTS] = {false};
	bool		lent[LENT_PAGES] = {false};
	int			n[2] = {0, 0};
	void	   *start;
	size_t		size;

	tap_begin("arena: the highest idle memory is lent");
	euno_arena_no_huge_pages(arena);
	euno_arena_keep_idle(arena, LENT_BYTES);
	euno_arena_part(arena, 0, &start, &size);
	euno_pool_init(&pool, arena, 0);
	lend_beside(&pool, false, 2 * LENT_EXTENTS, start, idle, owned);
	for (int i = 0; i < 3000 && tap_bad() == 0; i++)
	{
		int			count = 1 + (int) random_below(&random, 3);
		int			page = (int) random_below(&random, LENT_PAGES);
		uint8_t    *loan;

		if (random_below(&random, 8) == 0)
			lend_beside(&pool, random_below(&random, 2) == 0,
						random_below(&random, 200), start, idle, owned);
		if (random_below(&random, 2) == 0)
		{
			/* One page of a loan may go back before the others. */
			if (lent[page])
				euno_arena_return(arena, (uint8_t *) start + page * EUNO_LOAN_BYTES, 1);
			memset(idle + 32 * page, true, lent[page] ? 32 : 0);
			lent[page] = false;
			continue;
		}
		page = highest_idle(idle, count);
		loan = euno_arena_borrow(arena, 0, 0, (uint32_t) count);
		n[page >= 0]++;
		CHECK(loan == (page < 0 ? NULL : (uint8_t *) start + page * EUNO_LOAN_BYTES),
			  "%d from page %d, not %d", count,
			  loan == NULL ? -1 : (int) ((loan - (uint8_t *) start) / EUNO_LOAN_BYTES), page);
		for (int k = page; page >= 0 && k < page + count; k++)
		{
			lent[k] = true;
			memset(idle + 32 * k, false, 32);
		}
	}
	CHECK(n[0] > 100 && n[1] > 100, "%d were refused, %d granted", n[0], n[1]);
	euno_pool_release(&pool);
	for (int page = 0; page < LENT_PAGES; page++)
	{
		if (lent[page])
			euno_arena_return(arena, (uint8_t *) start + page * EUNO_LOAN_BYTES, 1);
	}
	CHECK(used_bytes(arena) == 0, "%llu bytes are still used",
		  (unsigned long long) used_bytes(arena));
	tap_end();
}

/* How many extents of a pool that is used in between went back. */
static uint32_t
trim(EunoPool *pool)
{
	uint64_t	before = pool->extents;

	for (bool begin = true; euno_pool_trim(pool, begin); begin = false)
	{
		void	   *node = euno_pool_alloc(pool, 2048);

		check_pool(pool);
		euno_pool_free(pool, node, 2048);
	}
	return (uint32_t) (before - pool->extents);
}

/* What is free goes back extent by extent, and nothing else does. */
static void
test_trim(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, ARENA_BYTES, 2);
	EunoPool	pool;
	uint8_t    *nodes[640];		/* 40 extents of them */
	uint8_t    *odd[40];
	uint64_t	owned;
	void	   *start;
	size_t		size;

	tap_begin("arena: free extents of a pool go back");
	euno_arena_no_huge_pages(arena);
	euno_arena_part(arena, 1, &start, &size);
	euno_pool_init(&pool, arena, 1);
	for (int i = 0; i < 640; i++)
	{
		if (i % 16 == 0)
		{
			odd[i / 16] = euno_pool_alloc(&pool, 48);
			memset(odd[i / 16], i / 16, 48);
		}
		nodes[i] = euno_pool_alloc(&pool, 4096);
		memset(nodes[i], i % 251, 4096);
	}
	owned = pool.extents;
	CHECK(owned > 40, "%u extents", (unsigned) owned);
	CHECK(trim(&pool) == 0, "what is in use was given back");

	/* All but every 64th, and the odd ones of a few more extents. */
	for (int i = 0; i < 640; i++)
	{
		if (i % 64 != 0)
			euno_pool_free(&pool, nodes[i], 4096);
	}
	for (int i = 0; i < 40; i++)
	{
		if (i % 8 != 0)
			euno_pool_free(&pool, odd[i], 48);
	}
	CHECK(trim(&pool) > 20, "too few extents were given back");
	check_pool(&pool);
	CHECK(pool.extents < owned - 20 && pool.extents >= 10,
		  "it has %u extents left", (unsigned) pool.extents);
	CHECK(used_bytes(arena) == pool.extents * EUNO_EXTENT_SIZE,
		  "bytes used after that");
	CHECK(takes(start, size, pool.extents * 16), "%zu pages stay",
		  resident_pages(start, size));
	for (int i = 0; i < 640; i += 64)
	{
		for (int b = 0; b < 4096; b++)
			CHECK(nodes[i][b] == i % 251, "a node lost its bytes");
	}
	for (int i = 0; i < 40; i += 8)
		CHECK(odd[i][0] == i && odd[i][47] == i, "a small node lost its bytes");

	/*
	 * All that is handed out from now on is the pool's, and nobody's before.
	 */
	for (int i = 0; i < 640; i++)
	{
		if (i % 64 == 0)
			continue;
		nodes[i] = euno_pool_alloc(&pool, 4096);
		memset(nodes[i], i % 251, 4096);
	}
	for (int i = 0; i < 640; i++)
		CHECK(nodes[i][0] == i % 251 && nodes[i][4095] == i % 251,
			  "a node was handed out twice");
	CHECK(used_bytes(arena) == pool.extents * EUNO_EXTENT_SIZE,
		  "bytes used after the pool has grown");
	euno_pool_release(&pool);
	CHECK(used_bytes(arena) == 0, "bytes used after the release");

	/* The newest extent stays, and so do its nodes. */
	for (int i = 0; i < 6; i++)
		nodes[i] = euno_pool_alloc(&pool, 32768);
	for (int i = 0; i < 6; i++)
		euno_pool_free(&pool, nodes[i], 32768);
	CHECK(trim(&pool) == 2 && pool.extents == 1,
		  "%u extents are left of an empty pool", (unsigned) pool.extents);
	CHECK(euno_pool_alloc(&pool, 32768) != NULL &&
		  euno_pool_alloc(&pool, 32768) != NULL && pool.extents == 1,
		  "what is left of it is not used");
	euno_pool_release(&pool);
	tap_end();
}

/*
 * Free neighbors become larger nodes: before the pool grows, and all when it
 * cannot.
 */
static void
test_join(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, 31 * EUNO_EXTENT_SIZE, 1);
	EunoPool	pool;
	static void *nodes[MAX_NODES];
	static void *larger[MAX_NODES];
	uint64_t	owned;

	tap_begin("arena: free neighbors are joined");
	euno_pool_init(&pool, arena, 0);
	for (int i = 0; i < 1024; i++)
		nodes[i] = euno_pool_alloc(&pool, 1024);
	owned = pool.extents;
	CHECK(owned == 16, "%llu extents", (unsigned long long) owned);

	/*
	 * Three of four go; what is wanted takes two, and begins where they did.
	 */
	for (int i = 0; i < 1024; i++)
	{
		if (i % 4 != 3)
			euno_pool_free(&pool, nodes[i], 1024);
	}
	for (int i = 0; i < 256; i++)
	{
		larger[i] = euno_pool_alloc(&pool, 2048);
		memset(larger[i], 1, 2048);
		if (i == 20)
			check_pool(&pool);
	}
	CHECK(pool.extents == owned, "%llu extents instead of %llu",
		  (unsigned long long) pool.extents, (unsigned long long) owned);
	check_pool(&pool);

	/*
	 * What is freed where the sweep has been, and where it has not, is found
	 * later.
	 */
	for (int i = 0; i < 256; i++)
		euno_pool_free(&pool, larger[i], 2048);
	CHECK(euno_pool_alloc(&pool, 3072) != NULL && pool.hand != 0, "no sweep goes on");
	for (int i = 3; i < 1024; i += 8)
		euno_pool_free(&pool, nodes[i], 1024);
	check_pool(&pool);
	euno_pool_settle(&pool);
	check_pool(&pool);

	/*
	 * There are 15 more extents, and 7 of 8 small nodes are free, but for
	 * three.
	 */
	CHECK(exhaust(&pool, 4096, larger) == 15 * 16 + 128,
		  "not all neighbors were joined");
	CHECK(exhaust(&pool, 3072, larger) == 127, "not all that was left");
	check_pool(&pool);
	euno_pool_release(&pool);
	tap_end();
}

/*
 * Stripes keep little, and nothing from those who need it.
 */
static void
test_cache(void)
{
	size_t		bytes = 64 * EUNO_EXTENT_SIZE;
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, bytes, 1);
	EunoPool	pool;
	static void *nodes[2 * MAX_NODES];
	uint32_t	n = 0;
	uint32_t	m = 0;

	tap_begin("arena: caches");
	euno_cache_from = 4;
	euno_pool_init(&pool, arena, 0);
	CHECK(euno_cache_alloc(&pool, 1, 48) != NULL && pool.cache == NULL,
		  "a cache of a small pool");
	while (n < 2 * MAX_NODES &&
		   (nodes[n] = euno_cache_alloc(&pool, n % 40, 512)) != NULL)
		n++;
	CHECK(pool.cache != NULL, "no cache of a large pool");
	CHECK(n == 62 * 128 - CACHE_SIZE / 512 - 1, "%u nodes of 512 bytes in 64 extents", n);

	/* what one has given back others can have, to the last */
	for (uint32_t i = 0; i < n; i++)
		euno_cache_free(&pool, i % 40, nodes[i], 512);
	CHECK(pool.live_bytes <= EUNO_CACHE_STRIPES * EUNO_CACHE_LEAST + CACHE_SIZE + 48,
		  "%llu bytes are kept", (unsigned long long) pool.live_bytes);
	while (m < 2 * MAX_NODES &&
		   (nodes[m] = euno_cache_alloc(&pool, 3, 512)) != NULL)
		m++;
	CHECK(m == n, "%u nodes after %u", m, n);
	euno_pool_release(&pool);
	CHECK(used_bytes(arena) == 0, "%llu bytes are still used",
		  (unsigned long long) used_bytes(arena));
	tap_end();
}

static void
test_arguments(void)
{
	tap_begin("arena: impossible reservations");
	errno = 0;
	CHECK(euno_arena_reserve(NULL, EUNO_EXTENT_SIZE - 1, 1, &test_env) == NULL &&
		  errno == EINVAL, "an arena without an extent");
	CHECK(euno_arena_reserve(NULL, ARENA_BYTES, 0, &test_env) == NULL, "no domain");
	CHECK(euno_arena_reserve(NULL, ARENA_BYTES, EUNO_MAX_DOMAINS + 1, &test_env) == NULL,
		  "too many domains");
	if (!SANITIZED)
	{
		errno = 0;
		CHECK(euno_arena_reserve(NULL, (size_t) 1 << 47, 1, &test_env) == NULL &&
			  errno == ENOMEM, "an arena larger than the address space");
	}
	tap_end();
}

/* Several processes with one pool and one each, all at once. */
typedef struct Shared
{
	EunoPool	common;
	EunoPool	own[4];
} Shared;

static void
test_processes(void)
{
	static EunoArena *kept;
	EunoArena  *arena = fresh_arena(&kept, 4 * ARENA_BYTES, 2);
	Shared	   *shared = shared_memory(sizeof(Shared));
	pid_t		children[4];
	uint32_t	nloans = 0;

	tap_begin("arena: several processes");
	euno_cache_from = 4;
	euno_pool_init(&shared->common, arena, 0);
	for (int c = 0; c < 4; c++)
	{
		euno_pool_init(&shared->own[c], arena, c % 2);
		children[c] = fork();
		if (children[c] == 0)
		{
			Piece	   *pieces = malloc(2 * MAX_NODES * sizeof(Piece));
			uint32_t	n[2] = {0, 0};
			Random		random = {seed + (uint64_t) c};

			for (int i = 0; i < (SANITIZED ? 30 : 200) && tap_bad() == 0; i++)
			{
				churn(&shared->common, c == 0 ? -1 : c, &random, 20, pieces, &n[0]);
				churn(&shared->own[c], -1, &random, 20, pieces + MAX_NODES, &n[1]);
				if (i % 10 == 9)
				{
					for (uint32_t j = 0; j < n[1]; j++)
						check_fill(&pieces[MAX_NODES + j]);
					n[1] = 0;
					euno_pool_release(&shared->own[c]);
				}
			}
			while (n[0] > 0)
			{
				check_fill(&pieces[--n[0]]);
				euno_pool_free(&shared->common, pieces[n[0]].node, pieces[n[0]].size);
			}
			free(pieces);
			_exit(tap_bad() != 0);
		}
	}
	for (int i = 0; i < 200; i++)
	{
		uint8_t    *loan;

		(void) euno_arena_make_ready(arena, i % 2, ARENA_BYTES);
		loan = euno_arena_borrow(arena, i % 2, 0, 1);
		if (loan != NULL)
			memset(loan, i, EUNO_LOAN_BYTES);
		euno_arena_trim(arena, (i + 1) % 2, 0);
		if (loan != NULL)
		{
			nloans++;
			CHECK(loan[0] == (uint8_t) i && loan[EUNO_LOAN_BYTES - 1] == (uint8_t) i,
				  "a loan was written to");
			euno_arena_return(arena, loan, 1);
		}
		(void) euno_pool_trim(&shared->common, i % 4 == 0);
	}
	for (int c = 0; c < 4; c++)
	{
		int			status;

		CHECK(waitpid(children[c], &status, 0) == children[c] && status == 0,
			  "process %d failed", c);
		euno_pool_release(&shared->own[c]);
	}
	CHECK(nloans > 0, "nothing was lent");
	if (tap_bad() > 0)
	{
		/* Who has failed may have left something locked. */
		tap_end();
		return;
	}
	CHECK(shared->common.cache != NULL, "there was no cache");
	euno_cache_drain(&shared->common);
	CHECK(shared->common.live_bytes <= CACHE_SIZE, "%llu bytes are still live",
		  (unsigned long long) shared->common.live_bytes);
	euno_pool_release(&shared->common);
	CHECK(used_bytes(arena) == 0, "%llu bytes are still used",
		  (unsigned long long) used_bytes(arena));
	tap_end();
}

/*
 * A pool's extents are written down, everything is forgotten, and they come
 * back to their places.
 */
static void
test_images(void)
{
	static EunoArena *arena = NULL;
	EunoPool	pools[2];
	EunoPool	image;
	EunoPool	copy;
	struct
	{
		uint32_t	first;
		uint32_t	count;
	}			runs[64];
	uint32_t	nruns = 0;
	uint32_t	tail = 0;
	uint32_t	first;
	uint32_t	count;
	uint8_t    *contents;
	void	   *nodes[300];
	void	   *unused[15];
	static void *others[MAX_NODES];

	tap_begin("arena: images of pools");
	(void) fresh_arena(&arena, ARENA_BYTES, 2);
	euno_pool_init(&pools[0], arena, 0);
	euno_pool_init(&pools[1], arena, 0);

	/* Two pools in turns, so that there is more than one run. */
	euno_cache_from = 1;
	for (int i = 0; i < 300; i++)
	{
		nodes[i] = euno_cache_alloc(&pools[0], (uint32_t) i, 1024);
		memset(nodes[i], i, 1024);
		if (i % 97 == 0)
			(void) euno_pool_alloc(&pools[1], 32 * 1024);
		if (i % 20 == 0)
			unused[i / 20] = euno_pool_alloc(&pools[0], 8192);
	}
	for (int i = 0; i < 15; i++)
		euno_pool_free(&pools[0], unused[i], 8192);
	CHECK(euno_pool_alloc(&pools[0], 10240) != NULL && pools[0].hand != 0,
		  "no sweep goes on");
	euno_pool_settle(&pools[0]);
	image = pools[0];
	contents = malloc(image.extents * EUNO_EXTENT_SIZE);
	count = 0;
	for (uint32_t link = image.first_extent; link != 0; nruns++)
	{
		link = euno_pool_run(&pools[0], link, &runs[nruns].first, &runs[nruns].count);
		memcpy(contents + count * EUNO_EXTENT_SIZE,
			   euno_arena_extent(arena, runs[nruns].first),
			   runs[nruns].count * EUNO_EXTENT_SIZE);
		count += runs[nruns].count;
	}
	CHECK(count == image.extents, "%u extents in runs, %u in the pool", count,
		  (uint32_t) image.extents);

	euno_arena_reset(arena);
	euno_pool_from_image(&copy, arena, &image);
	count = 0;
	for (uint32_t i = 0; i < nruns; i++)
	{
		CHECK(euno_pool_claim(&copy, &tail, runs[i].first, runs[i].count), "claim");
		memcpy(euno_arena_extent(arena, runs[i].first),
			   contents + count * EUNO_EXTENT_SIZE,
			   runs[i].count * EUNO_EXTENT_SIZE);
		count += runs[i].count;
	}
	CHECK(copy.first_extent == image.first_extent && copy.extents == image.extents,
		  "the list is another");
	CHECK(used_bytes(arena) == image.extents * EUNO_EXTENT_SIZE, "bytes used");
	for (int i = 0; i < 300; i++)
		CHECK(((uint8_t *) nodes[i])[0] == (uint8_t) i &&
			  ((uint8_t *) nodes[i])[1023] == (uint8_t) i, "node %d", i);

	euno_pool_mark(&copy);
	check_pool(&copy);

	/* What is taken cannot be claimed again, nor what is not there. */
	first = runs[0].first;
	CHECK(!euno_pool_claim(&copy, &tail, first, 1), "claimed twice");
	CHECK(!euno_pool_claim(&copy, &tail, UINT32_MAX, 1), "beyond the end");
	CHECK(!euno_pool_claim(&copy, &tail, first, 0), "nothing");

	/* What was free in the image is, in the cache too; nothing else is. */
	CHECK(copy.cache != NULL, "the cache is not in the image");
	for (uint32_t i = 0; i < 100; i++)
		memset(euno_cache_alloc(&copy, i, 1024), 0xFF, 1024);
	for (int i = 0; i < 300; i++)
		CHECK(((uint8_t *) nodes[i])[1] == (uint8_t) i, "node %d was free", i);

	/* Others get other extents, and all go back. */
	euno_pool_init(&pools[1], arena, 0);
	(void) exhaust(&pools[1], 32 * 1024, others);
	for (int i = 0; i < 300; i++)
		CHECK(((uint8_t *) nodes[i])[512] == (uint8_t) i, "node %d is overwritten", i);
	euno_pool_release(&pools[1]);
	euno_pool_release(&copy);
	CHECK(used_bytes(arena) == 0, "%llu bytes are still used",
		  (unsigned long long) used_bytes(arena));
	free(contents);
	tap_end();
}

/*
 * The same where a stripe is full of nodes of another size, which it gives
 * back.
 */
static void
test_canceled_stripe(EunoPool *pool, const EunoEnvironment *env)
{
	void	   *nodes[EUNO_CACHE_LEAST / 256];
	int			n = EUNO_CACHE_LEAST / 256;
	void	   *node;

	euno_cache_from = 0;
	for (int i = 0; i < n; i++)
		nodes[i] = euno_cache_alloc(pool, 0, 256);
	for (int i = 0; i < n; i++)
		euno_cache_free(pool, 0, nodes[i], 256);
	canceled_waits = 0;
	euno_mutex_lock(&pool->lock, env);
	CHECK(euno_cache_alloc(pool, 0, 128) == NULL, "a node of a locked pool");
	euno_mutex_unlock(&pool->lock, env);
	canceled_waits = 0;
	node = euno_cache_alloc(pool, 0, 128);
	CHECK(node != NULL, "no node later");
	euno_cache_free(pool, 0, node, 128);
	euno_cache_drain(pool);
	CHECK(pool->live_bytes == CACHE_SIZE, "%llu bytes are lost",
		  (unsigned long long) pool->live_bytes - CACHE_SIZE);
}

/* Somebody is stopped who takes memory: those who are canceled get none. */
static void
test_canceled(void)
{
	static EunoEnvironment env;
	static EunoArena *arena = NULL;
	EunoPool	pool;
	void	   *node;

	tap_begin("arena: canceled while waiting");
	env = canceled_env();
	if (arena == NULL)
		arena = euno_arena_reserve(NULL, ARENA_BYTES, 1, &env);
	euno_pool_init(&pool, arena, 0);
	euno_cache_from = UINT64_MAX;
	for (size_t size = 64; size <= 4096; size *= 64)
	{
		/* A cache's process, too. */
		node = euno_pool_alloc(&pool, size);
		CHECK(node != NULL, "no node");
		for (int stripe = -1; stripe < 1; stripe++)
		{
			uint32_t	extents = pool.extents;

			canceled_waits = 0;
			euno_mutex_lock(&pool.lock, &env);
			CHECK((stripe < 0 ? euno_pool_alloc(&pool, size) :
				   euno_cache_alloc(&pool, 0, size)) == NULL,
				  "a node of a locked pool");
			CHECK(pool.extents == extents, "an extent was taken");
			euno_mutex_unlock(&pool.lock, &env);
			canceled_waits = 0;
		}
		euno_pool_free(&pool, node, size);
	}
	CHECK(pool.live_bytes == 0, "%llu bytes are lost",
		  (unsigned long long) pool.live_bytes);
	test_canceled_stripe(&pool, &env);

	/* Who gives extents back leaves as well. */
	canceled_waits = 0;
	euno_mutex_lock(&pool.lock, &env);
	CHECK(!euno_pool_trim(&pool, true), "a locked pool was trimmed");
	euno_mutex_unlock(&pool.lock, &env);
	canceled_waits = 0;
	check_pool(&pool);
	euno_pool_release(&pool);
	tap_end();
}

int
main(void)
{
	static void (*const tests[]) (void) = {
		test_nodes, test_exhaustion, test_cache, test_return, test_idle,
		test_room, test_ready, test_loans, test_highest, test_trim, test_join,
		test_arguments, test_canceled, test_processes, test_images
	};
	double		end = now() + test_seconds();

	seed = test_seed();
	printf("# seed %llu\n", (unsigned long long) seed);

	/* Where one has failed the next one may have no end. */
	do
	{
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]) && tap_bad() == 0; i++)
			tests[i] ();
		seed++;
	} while (now() < end && tap_bad() == 0);
	return tap_done();
}
