/*-------------------------------------------------------------------------
 *
 * env.c
 *	  What core asks of its surroundings, for programs without a server.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "mem/euno_cache.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif

#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, size) ((void) (start), (void) (size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void) (start), (void) (size))
#endif

/* In front of each node of malloc. */
typedef struct NodeHeader
{
	struct NodeHeader *previous;
	struct NodeHeader *next;
	size_t		size;
} NodeHeader;

__thread uint32_t test_env_stripe;

#define PLACE_ALIGN		((size_t) 2 << 20)

static uint8_t *next_place;		/* where shared memory shall be; NULL: anywhere */
static uint64_t sleep_count;
static uint64_t lost_wakes;

/*
 * Where in memory of malloc a node begins: no better aligned than was
 * promised.
 */
static size_t
node_offset(size_t size)
{
	return size % 64 == 0 ? 64 : size % 16 == 0 ? 64 + 16 : 64 + 8;
}

static void *
node_alloc_malloc(NodeSource *source, size_t size)
{
	NodeHeader *header;
	void	   *memory;

	if (posix_memalign(&memory, 64, node_offset(size) + size) != 0)
		return NULL;
	header = (NodeHeader *) ((char *) memory + node_offset(size)) - 1;
	memset(header + 1, 0xA5, size);
	header->size = size;
	header->previous = NULL;
	pthread_mutex_lock(&source->mutex);
	header->next = source->nodes;
	if (header->next != NULL)
	{
		ASAN_UNPOISON_MEMORY_REGION(header->next, sizeof(NodeHeader));
		header->next->previous = header;
		ASAN_POISON_MEMORY_REGION(header->next, sizeof(NodeHeader));
	}
	source->nodes = header;

	/* The header is the redzone in front of the node. */
	ASAN_POISON_MEMORY_REGION(header, sizeof(NodeHeader));
	pthread_mutex_unlock(&source->mutex);
	return header + 1;
}

static void
node_free_malloc(NodeSource *source, void *node, size_t size)
{
	NodeHeader *header = (NodeHeader *) node - 1;

	pthread_mutex_lock(&source->mutex);
	ASAN_UNPOISON_MEMORY_REGION(header, sizeof(NodeHeader));
	if (header->size != size)
	{
		fprintf(stderr, "node of %zu bytes freed as %zu bytes\n",
				header->size, size);
		abort();
	}
	if (header->previous != NULL)
	{
		ASAN_UNPOISON_MEMORY_REGION(header->previous, sizeof(NodeHeader));
		header->previous->next = header->next;
		ASAN_POISON_MEMORY_REGION(header->previous, sizeof(NodeHeader));
	}
	else
		source->nodes = header->next;
	if (header->next != NULL)
	{
		ASAN_UNPOISON_MEMORY_REGION(header->next, sizeof(NodeHeader));
		header->next->previous = header->previous;
		ASAN_POISON_MEMORY_REGION(header->next, sizeof(NodeHeader));
	}
	pthread_mutex_unlock(&source->mutex);
	free((char *) node - node_offset(size));
}

static void *
node_alloc(void *tree_arg, int domain, size_t size)
{
	NodeSource *source = tree_arg;
	uint64_t	call = __atomic_add_fetch(&source->calls, 1, __ATOMIC_RELAXED);
	uint64_t	fail_at = __atomic_load_n(&source->fail_at, __ATOMIC_RELAXED);
	void	   *node = NULL;

	if (source->called != NULL)
		source->called(NULL);
	if (fail_at == 0 || call < fail_at || (call > fail_at && !source->fail_on))
	{
		node = source->pools != NULL ?
			euno_cache_alloc(&source->pools[domain], test_env_stripe, size) :
			node_alloc_malloc(source, size);
	}
	if (node == NULL)
	{
		__atomic_add_fetch(&source->failures, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	__atomic_add_fetch(&source->live, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&source->live_bytes, size, __ATOMIC_RELAXED);
	return node;
}

static void
node_free(void *tree_arg, int domain, void *node, size_t size)
{
	NodeSource *source = tree_arg;

	__atomic_add_fetch(&source->frees, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&source->live, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&source->live_bytes, size, __ATOMIC_RELAXED);
	if (source->pools != NULL)
		euno_cache_free(&source->pools[domain], test_env_stripe, node, size);
	else
		node_free_malloc(source, node, size);
}

/* Not FUTEX_PRIVATE: the word may be shared by processes. */
static void
futex_wait(uint32_t *word, uint32_t seen)
{
	struct timespec limit = {.tv_nsec = 50 * 1000 * 1000};

	if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0) == 0)
		__atomic_add_fetch(&sleep_count, 1, __ATOMIC_RELAXED);
	else if (errno == ETIMEDOUT)
	{
		__atomic_add_fetch(&sleep_count, 1, __ATOMIC_RELAXED);
		if (__atomic_load_n(word, __ATOMIC_RELAXED) != seen)
			__atomic_add_fetch(&lost_wakes, 1, __ATOMIC_RELAXED);
	}
}

static void
futex_wake(uint32_t *word)
{
	(void) syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* NULL in programs that have no keys to compare: see universe.h. */
extern int	abbreviate_wrongly(const uint8_t *how, const uint8_t *key,
							   uint32_t keylen, uint8_t *to)
__attribute__((weak));

const EunoEnvironment test_env = {
	.alloc = node_alloc,
	.free = node_free,
	.wait = futex_wait,
	.wake = futex_wake,
	.abbreviate = abbreviate_wrongly
};

void
test_env_sleeps(uint64_t *sleeps, uint64_t *lost)
{
	*sleeps = __atomic_load_n(&sleep_count, __ATOMIC_RELAXED);
	*lost = __atomic_load_n(&lost_wakes, __ATOMIC_RELAXED);
}

void
node_source_init(NodeSource *source, EunoPool *pools)
{
	memset(source, 0, sizeof(*source));
	source->pools = pools;
	pthread_mutex_init(&source->mutex, NULL);
}

void
node_source_release(NodeSource *source)
{
	while (source->nodes != NULL)
	{
		NodeHeader *header = source->nodes;

		ASAN_UNPOISON_MEMORY_REGION(header, sizeof(NodeHeader));
		source->nodes = header->next;
		free((char *) (header + 1) - node_offset(header->size));
	}
	pthread_mutex_destroy(&source->mutex);
}

void *
shared_memory(size_t size)
{
	void	   *memory = mmap(next_place, size, PROT_READ | PROT_WRITE,
							  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (next_place != NULL)
		next_place += (size / PLACE_ALIGN + 2) * PLACE_ALIGN;
	if (memory == MAP_FAILED)
	{
		perror("mmap");
		exit(1);
	}
	return memory;
}

void
shared_memory_from(void *place)
{
	next_place = place;
}

void
shared_memory_free(void *memory, size_t size)
{
	munmap(memory, size);
}

/* splitmix64 (Steele, Lea, Flood) */
uint64_t
random_next(Random *random)
{
	uint64_t	z = (random->state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint64_t
test_seed(void)
{
	const char *value = getenv("EUNO_SEED");

	return value != NULL ? strtoull(value, NULL, 10) : 20180101;
}

double
test_seconds(void)
{
	const char *value = getenv("EUNO_SECONDS");

	return value != NULL ? strtod(value, NULL) : 0;
}

double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}
