/*-------------------------------------------------------------------------
 *
 * subject.c
 *	  What the benchmarks without a server measure (see subject.h).
 *
 *-------------------------------------------------------------------------
 */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mem/euno_cache.h"

/*
 * Where there is less of it, under valgrind, this is enough for small trees.
 */
#define ADDRESS_SPACE ((size_t) 64 << 30)
#define LITTLE_ADDRESS_SPACE ((size_t) 1 << 30)

static void *
pool_alloc(void *tree_arg, int domain, size_t size)
{
	return euno_cache_alloc(&((EunoPool *) tree_arg)[domain], test_env_stripe, size);
}

static void
pool_free(void *tree_arg, int domain, void *node, size_t size)
{
	euno_cache_free(&((EunoPool *) tree_arg)[domain], test_env_stripe, node, size);
}

static void
sleep_on(uint32_t *word, uint32_t seen)
{
	test_env.wait(word, seen);
}

static void
wake_all(uint32_t *word)
{
	test_env.wake(word);
}

const EunoEnvironment subject_env = {
	.alloc = pool_alloc,
	.free = pool_free,
	.wait = sleep_on,
	.wake = wake_all
};

static EunoArena *arena;
static EunoEpochs *epochs;

void
die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

void
subjects_begin(uint32_t threads)
{
	arena = euno_arena_reserve(NULL, ADDRESS_SPACE, SUBJECT_DOMAINS, &test_env);
	if (arena == NULL)
		arena = euno_arena_reserve(NULL, LITTLE_ADDRESS_SPACE, SUBJECT_DOMAINS,
								   &test_env);
	if (arena == NULL)
		die("no address space");
	epochs = shared_memory(euno_epochs_size(threads));
	euno_epochs_init(epochs, threads);
	euno_barrier_join(&epochs->barriers);
}

void
subject_init(Subject *s, const char *name, const EunoTreeOps *ops, int ndomains)
{
	memset(s, 0, sizeof(*s));
	s->name = name;
	s->ops = ops;
	s->foreign = ops == &array_ops || ops == &congee_ops;
	s->alone = ops == &alone_bptree_ops || ops == &alone_art_olc_ops ||
		ops == &array_ops;
	s->ndomains = ndomains;
	s->tree = shared_memory(sizeof(EunoTree));
	s->pools = shared_memory(SUBJECT_DOMAINS * sizeof(EunoPool));
	thread_enter(s, 0, &s->process, &s->cx);
}

void
thread_enter(const Subject *s, uint32_t number, EunoProcess *process,
			 EunoContext *cx)
{
	*process = (EunoProcess)
	{
		epochs, number, 0
	};
	memset(cx, 0, sizeof(*cx));
	cx->process = process;
	cx->env = &subject_env;
	cx->domain = (int) number % s->ndomains;
}

void
subject_open(Subject *s)
{
	EunoTreeConfig config = {.order = EUNO_ORDER_BYTES, .posting = true,
		.fillfactor = 90, .ndomains = (uint16_t) s->ndomains};

	memset(s->tree, 0, sizeof(EunoTree));
	for (int d = 0; d < s->ndomains; d++)
		euno_pool_init(&s->pools[d], arena, d);
	s->tree->alloc_arg = s->pools;
	if (s->ops->create(&s->cx, s->tree, &config) != EUNO_OK)
		die("no tree");
}

void
subject_close(Subject *s)
{
	for (int d = 0; d < s->ndomains; d++)
		euno_pool_release(&s->pools[d]);
	if (s->foreign)
		(void) s->ops->create(&s->cx, s->tree, NULL);
}

double
subject_bytes(const Subject *s)
{
	uint64_t	extents = 0;

	for (int d = 0; d < s->ndomains; d++)
		extents += s->pools[d].extents;
	return (double) extents * (double) EUNO_EXTENT_SIZE;
}

void
subject_load(Subject *s, uint64_t n, EunoEntry (*entry) (uint64_t i))
{
	static EunoBulk bulk;
	EunoStatus	status = s->ops->bulk_begin(&s->cx, s->tree, &bulk);

	for (uint64_t i = 0; status == EUNO_OK && i < n; i++)
	{
		EunoEntry	next = entry(i);

		status = s->ops->bulk_add(&s->cx, &bulk, &next);
	}
	if (status != EUNO_OK || s->ops->bulk_end(&s->cx, &bulk) != EUNO_OK)
		die("a bulk load failed");
}

double
thread_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

double
median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(double), compare_doubles);
	return values[n / 2];
}
