/*-------------------------------------------------------------------------
 *
 * reference.c
 *	  A tree as simple as can be: a sorted array under one mutex.
 *
 * It exists so that the suites can be seen to pass over something that is
 * plainly right, and to be compared with by the fuzzer.  It does not survive
 * comparators that leave by longjmp, and lives in one process.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

typedef struct Reference
{
	pthread_mutex_t mutex;
	EunoEntry **entries;		/* each with its bytes behind it */
	uint32_t	n;
	uint32_t	capacity;
} Reference;

static Reference *
reference(EunoTree *tree)
{
	return *(Reference **) tree->body;
}

/* A position's bytes against key || TID, which zero bytes follow. */
static int
compare_bytes(const EunoPosition *position, const EunoEntry *entry)
{
	uint32_t	n = position->keylen;
	int			c;

	if (n > entry->keylen)
		n = entry->keylen;
	c = n == 0 ? 0 : memcmp(position->key, entry->key, n);
	for (uint32_t i = n; c == 0 && i < position->keylen; i++)
	{
		uint32_t	shift = 8 * (EUNO_TID_BYTES - 1 - (i - n));

		c = position->key[i] -
			(i - n < EUNO_TID_BYTES ? (uint8_t) (entry->tid >> shift) : 0);
	}
	return c;
}

/* Position against entry: < 0, 0, > 0; 0 only for side = 0 and this TID. */
static int
compare_entry(EunoContext *cx, EunoTree *tree, const EunoPosition *position,
			  const EunoEntry *entry)
{
	int			c;

	if (tree->config.order == EUNO_ORDER_COMPARE)
		c = cx->compare(cx->compare_arg, position, entry->key, entry->keylen);
	else
		c = compare_bytes(position, entry);
	if (c != 0)
		return c;
	if (position->side != 0)
		return position->side;
	return (position->tid > entry->tid) - (position->tid < entry->tid);
}

/* The number of entries below the position; is the next one it exactly? */
static uint32_t
find(EunoContext *cx, EunoTree *tree, const EunoPosition *position, bool *exact)
{
	Reference  *ref = reference(tree);
	uint32_t	low = 0;
	uint32_t	high = ref->n;

	*exact = false;
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;
		int			c = compare_entry(cx, tree, position, ref->entries[middle]);

		if (c > 0)
			low = middle + 1;
		else
			high = middle;
		*exact |= c == 0;
	}
	return low;
}

static uint32_t
find_entry(EunoContext *cx, EunoTree *tree, const EunoEntry *entry, bool *exact)
{
	EunoPosition position = euno_position_of(entry);

	return find(cx, tree, &position, exact);
}

static EunoEntry *
copy_entry(const EunoEntry *entry)
{
	EunoEntry  *copy = malloc(sizeof(EunoEntry) + 8 + entry->keylen +
							  entry->payloadlen);
	uint8_t    *bytes = (uint8_t *) (copy + 1);

	*copy = *entry;
	copy->key = bytes;
	memcpy(bytes, entry->key, entry->keylen);
	copy->payload = bytes + entry->keylen;
	if (entry->payloadlen > 0)
		memcpy(bytes + entry->keylen, entry->payload, entry->payloadlen);
	return copy;
}

static void
insert_at(Reference *ref, uint32_t at, const EunoEntry *entry)
{
	if (ref->n == ref->capacity)
	{
		ref->capacity = ref->capacity * 2 + 64;
		ref->entries = realloc(ref->entries, ref->capacity * sizeof(EunoEntry *));
	}
	memmove(ref->entries + at + 1, ref->entries + at,
			(ref->n - at) * sizeof(EunoEntry *));
	ref->entries[at] = copy_entry(entry);
	ref->n++;
}

static void
remove_at(Reference *ref, uint32_t at)
{
	free(ref->entries[at]);
	ref->n--;
	memmove(ref->entries + at, ref->entries + at + 1,
			(ref->n - at) * sizeof(EunoEntry *));
}

static EunoStatus
reference_create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	Reference  *ref = calloc(1, sizeof(Reference));

	(void) cx;
	pthread_mutex_init(&ref->mutex, NULL);
	tree->config = *config;
	*(Reference **) tree->body = ref;
	return EUNO_OK;
}

void
reference_destroy(EunoTree *tree)
{
	Reference  *ref = reference(tree);

	for (uint32_t i = 0; i < ref->n; i++)
		free(ref->entries[i]);
	free(ref->entries);
	pthread_mutex_destroy(&ref->mutex);
	free(ref);
}

static EunoStatus
reference_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				 bool no_split)
{
	Reference  *ref = reference(tree);
	EunoStatus	status = EUNO_EXISTS;
	uint32_t	at;
	bool		exact;

	pthread_mutex_lock(&ref->mutex);
	at = find_entry(cx, tree, entry, &exact);
	if (!exact && no_split && ref->n % 32 == 31)
		status = EUNO_FULL;
	else if (!exact)
	{
		/* It needs no node, but must be able to fail like one that does. */
		void	   *node = ref->n % 32 == 31 ?
			cx->env->alloc(tree->alloc_arg, 0, 64) : NULL;

		if (ref->n % 32 == 31 && node == NULL)
			status = EUNO_NO_MEMORY;
		else
		{
			insert_at(ref, at, entry);
			status = EUNO_OK;
		}
		if (node != NULL)
			cx->env->free(tree->alloc_arg, 0, node, 64);
	}
	pthread_mutex_unlock(&ref->mutex);
	return status;
}

static EunoStatus
reference_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				 const EunoGuard *guard)
{
	Reference  *ref = reference(tree);
	EunoStatus	status = EUNO_NOT_FOUND;
	uint32_t	at;
	bool		exact;

	pthread_mutex_lock(&ref->mutex);
	at = find_entry(cx, tree, entry, &exact);
	if (guard != NULL &&
		__atomic_load_n(guard->word, __ATOMIC_ACQUIRE) != guard->expected)
		status = EUNO_STALE;
	else if (exact)
	{
		remove_at(ref, at);
		status = EUNO_OK;
	}
	pthread_mutex_unlock(&ref->mutex);
	return status;
}

static EunoStatus
reference_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	Reference  *ref = reference(tree);
	bool		exact;

	pthread_mutex_lock(&ref->mutex);
	(void) find_entry(cx, tree, entry, &exact);
	pthread_mutex_unlock(&ref->mutex);
	return exact ? EUNO_OK : EUNO_NOT_FOUND;
}

/* Makes a window's end the gap before this entry. */
static void
set_gap(EunoPositionBuffer *buffer, const EunoEntry *entry)
{
	memcpy(buffer->data, entry->key, entry->keylen);
	buffer->pos = (EunoPosition)
	{
		.key = buffer->data,.keylen = entry->keylen,.tid = entry->tid
	};
}

/* Copies entry "at" to the batch; false when the buffer is full. */
static bool
add_item(EunoBatch *batch, const EunoEntry *entry, uint32_t *used)
{
	uint32_t	keysize = (entry->keylen + 7u) & ~7u;
	EunoItemKey *key = &batch->keys[batch->nitems];

	if (batch->want_keys)
	{
		if (*used + keysize + entry->payloadlen > batch->buf_size)
			return false;
		key->offset = *used;
		key->keylen = (uint16_t) entry->keylen;
		key->payloadlen = (uint16_t) entry->payloadlen;
		memcpy(batch->buf + *used, entry->key, entry->keylen);
		memcpy(batch->buf + *used + keysize, entry->payload, entry->payloadlen);
		*used = (*used + keysize + entry->payloadlen + 7u) & ~7u;
	}
	batch->tids[batch->nitems++] = entry->tid;
	return true;
}

/* The window becomes [left, right) of the array, within [lo, hi). */
static void
set_window(Reference *ref, EunoCursor *cursor, uint32_t lo, uint32_t hi,
		   uint32_t left, uint32_t right)
{
	cursor->started = true;
	cursor->at_lo = left == lo;
	cursor->at_hi = right == hi;
	if (!cursor->at_lo && left < ref->n)
		set_gap(&cursor->left, ref->entries[left]);
	else if (!cursor->at_lo)
		cursor->left.pos = cursor->hi;
	if (!cursor->at_hi)
		set_gap(&cursor->right, ref->entries[right]);
}

static EunoStatus
reference_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			   bool forward, EunoBatch *batch)
{
	Reference  *ref = reference(tree);
	bool		exact;
	uint32_t	lo;
	uint32_t	hi;
	uint32_t	left;
	uint32_t	right;
	uint32_t	used = 0;

	pthread_mutex_lock(&ref->mutex);
	batch->nitems = 0;
	lo = find(cx, tree, &cursor->lo, &exact);
	hi = find(cx, tree, &cursor->hi, &exact);
	if (hi < lo)
		hi = lo;
	left = !cursor->started ? hi : cursor->at_lo ? lo :
		find(cx, tree, &cursor->left.pos, &exact);
	right = !cursor->started ? lo : cursor->at_hi ? hi :
		find(cx, tree, &cursor->right.pos, &exact);
	if (left > hi)
		left = hi;
	if (right < lo)
		right = lo;
	if (forward)
	{
		for (left = right; right < hi && batch->nitems < batch->max_items; right++)
		{
			if (!add_item(batch, ref->entries[right], &used))
				break;
		}
	}
	else
	{
		for (right = left; left > lo && batch->nitems < batch->max_items; left--)
		{
			if (!add_item(batch, ref->entries[left - 1], &used))
				break;
		}
	}
	set_window(ref, cursor, lo, hi, left, right);
	pthread_mutex_unlock(&ref->mutex);
	return EUNO_OK;
}

static EunoStatus
reference_bulk_begin(EunoContext *cx, EunoTree *tree, EunoBulk *bulk)
{
	(void) cx;
	bulk->tree = tree;
	return EUNO_OK;
}

static EunoStatus
reference_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	Reference  *ref = reference(bulk->tree);

	(void) cx;
	insert_at(ref, ref->n, entry);
	return EUNO_OK;
}

static EunoStatus
reference_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	(void) cx;
	(void) bulk;
	return EUNO_OK;
}

/* In stretches of some entries, resumed by (key, TID) like a scan. */
static EunoStatus
reference_walk(EunoContext *cx, EunoTree *tree, EunoWalk *walk)
{
	Reference  *ref = reference(tree);
	EunoEntry  *entry = NULL;

	walk->removed = walk->kept = 0;
	for (;;)
	{
		bool		exact = false;
		uint32_t	at = 0;

		pthread_mutex_lock(&ref->mutex);
		if (entry != NULL)
			at = find_entry(cx, tree, entry, &exact);
		free(entry);
		entry = NULL;
		at += exact;
		if (at < ref->n)
			entry = copy_entry(ref->entries[at]);
		pthread_mutex_unlock(&ref->mutex);
		if (entry == NULL)
			return EUNO_OK;
		if (walk->decide(walk->arg, entry->tid))
		{
			if (reference_remove(cx, tree, entry, NULL) == EUNO_OK)
				walk->removed++;
		}
		else
			walk->kept++;
		if (walk->pause != NULL)
			walk->pause(walk->arg);
	}
}

static EunoStatus
reference_compact(EunoContext *cx, EunoTree *tree, uint32_t how,
				  uint32_t max_leaves, uint32_t *merged)
{
	(void) cx;
	(void) tree;
	(void) how;
	(void) max_leaves;
	*merged = 0;
	return EUNO_DONE;
}

static uint64_t
reference_verify(EunoContext *cx, EunoTree *tree, const EunoVerify *verify)
{
	Reference  *ref = reference(tree);
	uint64_t	findings = 0;

	pthread_mutex_lock(&ref->mutex);
	for (uint32_t i = 0; i < ref->n; i++)
	{
		EunoEntry  *entry = ref->entries[i];
		EunoPosition position = euno_position_of(entry);

		if (i > 0 && compare_entry(cx, tree, &position, ref->entries[i - 1]) <= 0)
		{
			verify->report(verify->arg, "an entry is out of order");
			findings++;
		}
		if (verify->entry != NULL)
			verify->entry(verify->arg, ref->entries[i]);
	}
	pthread_mutex_unlock(&ref->mutex);
	return findings;
}

static void
reference_stats(EunoContext *cx, EunoTree *tree, EunoTreeStats *stats)
{
	Reference  *ref = reference(tree);

	(void) cx;
	memset(stats, 0, sizeof(*stats));
	pthread_mutex_lock(&ref->mutex);
	stats->entries = ref->n;
	pthread_mutex_unlock(&ref->mutex);
	stats->leaves = stats->height = 1;
}

const EunoTreeOps reference_ops = {
	.name = "reference",
	.create = reference_create,
	.insert = reference_insert,
	.remove = reference_remove,
	.contains = reference_contains,
	.read = reference_read,
	.bulk_begin = reference_bulk_begin,
	.bulk_add = reference_bulk_add,
	.bulk_end = reference_bulk_end,
	.walk = reference_walk,
	.compact = reference_compact,
	.verify = reference_verify,
	.stats = reference_stats
};
