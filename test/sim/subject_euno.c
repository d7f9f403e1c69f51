/*-------------------------------------------------------------------------
 *
 * subject_euno.c
 *	  The trees of src/core, as they are, put to work.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/art/art.h"
#include "detector.h"
#include "subjects.h"

#define KEY_BYTES	9
/* Leaves that contention splits may make. */
#define PART_MOST	256
/* Words of a stripe of counters. */
#define TALLY		16

#define ARENA_BYTES	((size_t) 8 << 30)
#define ARENA_PLACE	((void *) UINT64_C(0x200000000000))

typedef struct Session
{
	EunoProcess process;
	EunoContext cx;
	EunoCursor	cursor;
	uint8_t		key[16];
} Session;

EunoEnvironment subject_env;
int			subject_domains = 1;
int			subject_directories = 0;
uint32_t	subject_copies;
uint64_t	subject_contended;
bool		subject_alone;
double		subject_hot_rate = 1000;
uint32_t	subject_part;
uint32_t	subject_tallies;

static const EunoTreeOps *ops;
static EunoArena *arena;
static EunoTree *tree;
static EunoPool *pools;
static EunoEpochs *epochs;
static NodeSource source;
static Session *sessions[MAX_CORES];
static uint64_t *tallies;		/* of the tree, and of the server */

/* An int8 as key/ would encode it, but for the sign. */
static void
make_key(uint8_t *to, uint64_t key)
{
	to[0] = 2;
	euno_put_word(to + 1, key);
}

static void
check(EunoStatus status, const char *what)
{
	if (status != EUNO_OK)
	{
		fprintf(stderr, "%s: %s failed (%d)\n", ops->name, what, (int) status);
		exit(1);
	}
}

static Session *
session(uint32_t thread)
{
	Session    *s = sessions[thread];

	if (s == NULL)
	{
		s = sessions[thread] = calloc(1, sizeof(Session));
		s->process.epochs = epochs;
		s->process.slot = thread;
		s->cx.process = &s->process;
		s->cx.env = &subject_env;
		s->cx.domain = subject_domain(thread);
		s->cx.delegation.shun = subject_alone ? UINT32_MAX : 0;
		s->cursor.lo.key = s->cursor.hi.key = s->key;
		s->cursor.lo.keylen = s->cursor.hi.keylen = KEY_BYTES;
		s->cursor.lo.side = -1;
		s->cursor.hi.side = 1;
	}
	return s;
}

static void
bulk_load(uint64_t nrows, uint64_t (*key) (uint64_t i))
{
	EunoContext *cx = &session(0)->cx;
	EunoBulk   *bulk = aligned_alloc(64, (sizeof(EunoBulk) + 63) / 64 * 64);
	Row		   *rows = rows_by_key(nrows, key);
	uint8_t		bytes[16];

	memset(bulk, 0, sizeof(EunoBulk));
	check(ops->bulk_begin(cx, tree, bulk), "a bulk load");
	for (uint64_t i = 0; i < nrows; i++)
	{
		EunoEntry	entry = {.key = bytes,.keylen = KEY_BYTES,.tid = rows[i].value};

		make_key(bytes, rows[i].key);
		check(ops->bulk_add(cx, bulk, &entry), "a bulk load");
	}
	check(ops->bulk_end(cx, bulk), "a bulk load");
	free(rows);
	free(bulk);
}

/* Makes the leaves contended that the workload says are, and the last one. */
static void
make_contended(uint64_t nrows, uint64_t (*key) (uint64_t i))
{
	EunoContext *cx = &session(0)->cx;
	uint8_t		bytes[16];
	EunoPosition pos = {.key = bytes,.keylen = KEY_BYTES,.side = -1};

	for (uint64_t i = 0; i < subject_contended; i++)
	{
		make_key(bytes, key(workload_frequent(i)));
		check(ops->set_mode(cx, tree, &pos, true), "a mode");
	}
	make_key(bytes, key(nrows - 1));
	check(ops->set_mode(cx, tree, &pos, true), "a mode");
}

/* Copies the inner nodes from here down that branch high enough. */
static void
copy_nodes(ArtRef ref)
{
	ArtNode    *node = art_pointer(ref);
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];

	if (!art_is_node(ref) || art_level(node) >= subject_copies)
		return;
	subject_copy(node, art_node_size(art_type(node), art_segment_len(node)));
	for (uint32_t i = 0; i < layout->capacity; i++)
		copy_nodes(art_children(node)[i * layout->words]);
}

/* A new tree with these rows, whatever was there before. */
static void
load(const EunoTreeOps *which, uint64_t nrows, uint64_t (*key) (uint64_t i))
{
	int			directories = subject_directories > 0 ?
		subject_directories : subject_domains;
	EunoTreeConfig config = {.order = EUNO_ORDER_BYTES, .posting = true,
		.fillfactor = 90, .ndomains = (uint16_t) directories,
		.nparts = (uint16_t) subject_domains};

	ops = which;
	if (arena == NULL)
	{
		arena = euno_arena_reserve(ARENA_PLACE, ARENA_BYTES,
									  subject_domains, &subject_env);
		if (arena == NULL)
		{
			perror("euno_arena_reserve");
			exit(1);
		}
		tree = shared_memory(sizeof(EunoTree));
		pools = shared_memory(sizeof(EunoPool) * EUNO_MAX_DOMAINS);
		epochs = shared_memory(euno_epochs_size(MAX_CORES));
		tallies = shared_memory((2 * subject_tallies + 1) * TALLY * sizeof(uint64_t));
	}
	else
	{
		for (int i = 0; i < subject_domains; i++)
			euno_pool_release(&pools[i]);
	}
	for (int i = 0; i < subject_domains; i++)
		euno_pool_init(&pools[i], arena, i);
	for (uint32_t i = 0; i < MAX_CORES; i++)
	{
		free(sessions[i]);
		sessions[i] = NULL;
	}
	euno_epochs_init(epochs, MAX_CORES);
	node_source_init(&source, pools);
	memset(tree, 0, sizeof(EunoTree));
	tree->alloc_arg = &source;
	check(ops->create(&session(0)->cx, tree, &config), "creating a tree");
	bulk_load(nrows, key);
	detector_reset();
	for (int d = 1; d < directories && which != &euno_bptree_ops; d++)
		ops->maintain(&session(0)->cx, tree, d);
	if (subject_copies > 0 && which != &euno_bptree_ops)
		copy_nodes(art_body(tree)->root);
	if (subject_contended > 0 && ops->set_mode != NULL)
		make_contended(nrows, key);
	if (subject_part > 0 && ops->steer != NULL)
		ops->steer(&session(0)->cx, tree, subject_part, PART_MOST);
}

/* What the end of a transaction counts. */
static void
count(Session *s)
{
	uint32_t	each = subject_tallies / (uint32_t) subject_domains;
	uint32_t	stripe = 0;

	if (subject_tallies == 0)
		return;
	if (each > 0)
		stripe = (uint32_t) s->cx.domain * each + s->process.slot % each;
	(void) euno_add64(&tallies[2 * stripe * TALLY], 1);
	(void) euno_add64(&tallies[(2 * stripe + 1) * TALLY], 1);
}

static bool
lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	Session    *s = session(thread);
	EunoTid		tids[64];
	EunoBatch	batch = {.max_items = 64,.tids = tids};

	count(s);
	make_key(s->key, key);
	euno_cursor_start(&s->cursor);
	return ops->read(&s->cx, tree, &s->cursor, true, &batch) == EUNO_OK &&
		batch.nitems >= 1 && tids[0] == tid;
}

static EunoEntry
entry_of(Session *s, uint64_t key, uint64_t tid)
{
	make_key(s->key, key);
	return (EunoEntry)
	{
		.key = s->key,.keylen = KEY_BYTES,.tid = tid
	};
}

static bool
insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	Session    *s = session(thread);
	EunoEntry	entry = entry_of(s, key, tid);

	count(s);
	return ops->insert(&s->cx, tree, &entry, false) == EUNO_OK;
}

static bool
remove_entry(uint32_t thread, uint64_t key, uint64_t tid)
{
	Session    *s = session(thread);
	EunoEntry	entry = entry_of(s, key, tid);

	count(s);
	return ops->remove(&s->cx, tree, &entry, NULL) == EUNO_OK;
}

static uint64_t
restarts(void)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < MAX_CORES; i++)
	{
		if (sessions[i] != NULL)
			sum += sessions[i]->cx.counters.restarts +
				sessions[i]->cx.counters.leaf_retries;
	}
	return sum;
}

static void
round_ended(double seconds)
{
	detector_round(&session(0)->cx, ops, tree, seconds, subject_hot_rate);
}

static void
load_bptree(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load(&euno_bptree_ops, rows, key);
}

static void
load_art_olc(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load(&euno_art_olc_ops, rows, key);
}

static void
load_art_rowex(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load(&euno_art_rowex_ops, rows, key);
}

const Subject subject_bptree = {
	"bptree", "bptree", load_bptree, lookup, insert, remove_entry, restarts,
	round_ended
};

const Subject subject_art_olc = {
	"art", "art", load_art_olc, lookup, insert, remove_entry, restarts, NULL
};

const Subject subject_art_rowex = {
	"art-rowex", "art", load_art_rowex, lookup, insert, remove_entry, restarts, NULL
};
