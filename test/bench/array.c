/*-------------------------------------------------------------------------
 *
 * array.c
 *	  A sorted array with binary search, in the shape of a tree.
 *
 * The least that a lookup can be without knowing the keys: nothing but the
 * search, over keys that lie side by side.  Those of int8 are native numbers.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "subject.h"

typedef struct Array
{
	uint32_t	keylen;
	uint64_t	n;
	uint64_t	room;
	uint64_t   *numbers;		/* keys of int8 */
	uint8_t    *keys;			/* others, one after the other */
	EunoTid    *tids;
} Array;

static Array array;

static EunoStatus
array_create(EunoContext *cx, EunoTree *tree, const EunoTreeConfig *config)
{
	(void) cx;
	(void) tree;
	(void) config;
	free(array.numbers);
	free(array.keys);
	free(array.tids);
	memset(&array, 0, sizeof(array));
	return EUNO_OK;
}

static EunoStatus
array_bulk_begin(EunoContext *cx, EunoTree *tree, EunoBulk *bulk)
{
	(void) bulk;
	return array_create(cx, tree, NULL);
}

static EunoStatus
array_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	(void) cx;
	(void) bulk;
	array.keylen = entry->keylen;
	if (array.n == array.room)
	{
		array.room = array.room * 2 + 10000;
		array.tids = realloc(array.tids, array.room * sizeof(EunoTid));
		if (array.keylen == INT8_KEY)
			array.numbers = realloc(array.numbers, array.room * 8);
		else
			array.keys = realloc(array.keys, array.room * array.keylen);
		if (array.tids == NULL || (array.numbers == NULL && array.keys == NULL))
			return EUNO_NO_MEMORY;
	}
	if (array.keylen == INT8_KEY)
		array.numbers[array.n] = int8_of(entry->key);
	else
		memcpy(array.keys + array.n * array.keylen, entry->key, array.keylen);
	array.tids[array.n++] = entry->tid;
	return EUNO_OK;
}

static EunoStatus
array_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	(void) cx;
	(void) bulk;
	return EUNO_OK;
}

/* The first entry whose key is not below this one. */
static uint64_t
lower_bound(const uint8_t *key)
{
	uint64_t	low = 0;
	uint64_t	n = array.n;
	uint64_t	number = array.keylen == INT8_KEY ? int8_of(key) : 0;

	while (n > 0)
	{
		uint64_t	half = n / 2;
		bool		below = array.keylen == INT8_KEY ?
			array.numbers[low + half] < number :
			memcmp(array.keys + (low + half) * array.keylen, key, array.keylen) < 0;

		low = below ? low + n - half : low;
		n = half;
	}
	return low;
}

static bool
is_key(uint64_t i, const uint8_t *key)
{
	return array.keylen == INT8_KEY ? array.numbers[i] == int8_of(key) :
		memcmp(array.keys + i * array.keylen, key, array.keylen) == 0;
}

static EunoStatus
array_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
		   EunoBatch *batch)
{
	uint64_t	i = lower_bound(cursor->lo.key);

	(void) cx;
	(void) tree;
	if (cursor->started || !forward)
		return EUNO_CORRUPT;
	cursor->started = cursor->at_hi = true;
	batch->nitems = 0;
	while (i < array.n && batch->nitems < batch->max_items &&
		   (cursor->hi.keylen == 0 || is_key(i, cursor->hi.key)))
		batch->tids[batch->nitems++] = array.tids[i++];
	return EUNO_OK;
}

const EunoTreeOps array_ops = {
	.name = "array",
	.bytes_only = true,
	.atomic_batches = true,
	.create = array_create,
	.read = array_read,
	.bulk_begin = array_bulk_begin,
	.bulk_add = array_bulk_add,
	.bulk_end = array_bulk_end
};
