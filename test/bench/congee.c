/*-------------------------------------------------------------------------
 *
 * congee.c
 *	  A published adaptive radix tree with optimistic lock coupling, to be
 *	  measured beside ours: congee, in Rust (congee/lib.rs).
 *
 * Linked with EUNO_CONGEE=1, which needs cargo.
 *
 *-------------------------------------------------------------------------
 */
#include "keys.h"
#include "subject.h"

typedef struct Congee Congee;

typedef struct Pair
{
	size_t		key;
	size_t		value;
} Pair;

extern Congee *congee_new(void);
extern void congee_free(Congee *tree);
extern bool congee_insert(const Congee *tree, uint64_t key, uint64_t value);
extern bool congee_get(const Congee *tree, uint64_t key, uint64_t *value);
extern uint32_t congee_range(const Congee *tree, uint64_t low, Pair *pairs,
							 uint32_t n);

#define MAX_PAIRS	128

static Congee *congee;

/* Without a configuration: gives back what there is. */
static EunoStatus
tree_create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	(void) cx;
	(void) tree;
	if (congee != NULL)
		congee_free(congee);
	congee = config == NULL ? NULL : congee_new();
	return EUNO_OK;
}

static EunoStatus
tree_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
			bool no_split)
{
	(void) cx;
	(void) tree;
	(void) no_split;
	return congee_insert(congee, int8_of(entry->key), entry->tid) ? EUNO_OK :
		EUNO_NO_MEMORY;
}

/* The new TID has replaced the old one. */
static EunoStatus
tree_leave(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
		   const EunoGuard *guard)
{
	(void) cx;
	(void) tree;
	(void) entry;
	(void) guard;
	return EUNO_OK;
}

static EunoStatus
tree_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
		  EunoBatch *batch)
{
	uint64_t	key = int8_of(cursor->lo.key);
	Pair		pairs[MAX_PAIRS];

	(void) cx;
	(void) tree;
	if (cursor->started || !forward || batch->max_items > MAX_PAIRS)
		return EUNO_CORRUPT;
	cursor->started = cursor->at_hi = true;
	if (cursor->hi.keylen > 0)
	{
		batch->nitems = congee_get(congee, key, &batch->tids[0]);
		return EUNO_OK;
	}
	batch->nitems = congee_range(congee, key, pairs, batch->max_items);
	for (uint32_t i = 0; i < batch->nitems; i++)
		batch->tids[i] = pairs[i].value;
	return EUNO_OK;
}

const EunoTreeOps congee_ops = {
	.name = "congee",
	.bytes_only = true,
	.create = tree_create,
	.insert = tree_insert,
	.remove = tree_leave,
	.read = tree_read
};
