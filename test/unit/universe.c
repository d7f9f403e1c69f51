/*-------------------------------------------------------------------------
 *
 * universe.c
 *	  All the entries a test may use, in order, and which of them a tree
 *	  should have now.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "universe.h"

#define OFFSETS_PER_BLOCK 200

static const Shape *sorting;	/* qsort has no argument for it */

/* Byte i of key || TID, zero behind its end. */
static uint8_t
composite_byte(const EunoEntry *entry, uint32_t i)
{
	if (i < entry->keylen)
		return entry->key[i];
	i -= entry->keylen;
	if (i < EUNO_TID_BYTES)
		return (uint8_t) (entry->tid >> (8 * (EUNO_TID_BYTES - 1 - i)));
	return 0;
}

/* The order of two entries by the rules: < 0, 0, > 0. */
static int
compare_entries(const Shape *shape, const EunoEntry *a, const EunoEntry *b)
{
	if (shape->order == EUNO_ORDER_COMPARE)
	{
		EunoPosition position = {.key = a->key,.keylen = a->keylen};
		int			c = shape->compare(NULL, &position, b->key, b->keylen);

		if (c != 0)
			return c;
		return (a->tid > b->tid) - (a->tid < b->tid);
	}

	if (a->keylen == b->keylen)
	{
		int			c = memcmp(a->key, b->key, a->keylen);

		if (c != 0)
			return c;
		return (a->tid > b->tid) - (a->tid < b->tid);
	}
	for (uint32_t i = 0; i < a->keylen + EUNO_TID_BYTES ||
		 i < b->keylen + EUNO_TID_BYTES; i++)
	{
		int			c = composite_byte(a, i) - composite_byte(b, i);

		if (c != 0)
			return c;
	}
	return 0;
}

static int
sort_entries(const void *a, const void *b)
{
	return compare_entries(sorting, &((const UniverseEntry *) a)->entry,
						   &((const UniverseEntry *) b)->entry);
}

/* Is the entry to the left of the position? */
static bool
entry_below(const Shape *shape, const EunoEntry *entry,
			const EunoPosition *position)
{
	int			c = 0;

	if (shape->order == EUNO_ORDER_COMPARE)
		c = shape->compare(NULL, position, entry->key, entry->keylen);
	else
	{
		for (uint32_t i = 0; c == 0 && i < position->keylen; i++)
			c = position->key[i] - composite_byte(entry, i);
	}
	if (c != 0)
		return c > 0;
	if (position->side != 0)
		return position->side > 0;
	return entry->tid < position->tid;
}

uint32_t
universe_below(const Universe *universe, const EunoPosition *position)
{
	uint32_t	low = 0;
	uint32_t	high = universe->n;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (entry_below(universe->shape, &universe->entries[middle].entry,
						position))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A one-to-one scattering of 0 .. slots - 1; slots is a power of two. */
static uint32_t
scatter(uint32_t i, uint32_t slots)
{
	return (i * 2654435761u + 12345u) & (slots - 1);
}

static EunoTid
slot_tid(const Universe *universe, uint32_t slot)
{
	return universe->tid_base +
		((EunoTid) (slot / OFFSETS_PER_BLOCK) << 16 |
		 (slot % OFFSETS_PER_BLOCK + 1));
}

uint32_t
universe_by_tid(const Universe *universe, EunoTid tid)
{
	EunoTid		relative = tid - universe->tid_base;
	uint64_t	offset = relative & 0xFFFF;
	uint64_t	slot = (relative >> 16) * OFFSETS_PER_BLOCK + offset - 1;

	if (tid < universe->tid_base || offset < 1 || offset > OFFSETS_PER_BLOCK ||
		slot >= universe->tid_slots)
		return UINT32_MAX;
	return universe->by_slot[slot];
}

static void
make_entry(Universe *universe, Random *random, uint32_t i, uint32_t n,
		   uint32_t slot, UniverseEntry *entry)
{
	uint8_t		key[EUNO_MAX_ENTRY];
	uint8_t    *copy;
	uint32_t	payloadlen = 0;
	uint32_t	keylen;

	keylen = universe->shape->make(random, i, n, key, &entry->prefix,
								   &payloadlen);
	copy = malloc(keylen + payloadlen + 1);
	memcpy(copy, key, keylen);
	for (uint32_t j = 0; j < payloadlen; j++)
		copy[keylen + j] = (uint8_t) (slot * 31 + j * 7);
	entry->entry.key = copy;
	entry->entry.keylen = keylen;
	entry->entry.payload = payloadlen > 0 ? copy + keylen : NULL;
	entry->entry.payloadlen = payloadlen;
	entry->entry.tid = slot_tid(universe, slot);
}

Universe *
universe_make(const Shape *shape, uint32_t n, uint64_t seed)
{
	Universe   *universe = calloc(1, sizeof(Universe));
	Random		random = {seed};
	uint32_t	kept = 0;

	universe->shape = shape;
	universe->tid_slots = 64;
	while (universe->tid_slots < n)
		universe->tid_slots *= 2;

	/* Low and high block numbers, so that every byte of a TID is tried. */
	universe->tid_base = (EunoTid) (random_next(&random) & 3) * 0x55000000 << 16;
	universe->by_slot = malloc(universe->tid_slots * sizeof(uint32_t));
	memset(universe->by_slot, 0xFF, universe->tid_slots * sizeof(uint32_t));
	universe->entries = calloc(n, sizeof(UniverseEntry));
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	slot = scatter(i, universe->tid_slots);

		if (shape->shared_tids)
			slot %= n / 8 + 1;
		make_entry(universe, &random, i, n, slot, &universe->entries[i]);
	}

	sorting = shape;
	qsort(universe->entries, n, sizeof(UniverseEntry), sort_entries);
	for (uint32_t i = 0; i < n; i++)
	{
		if (kept > 0 && sort_entries(&universe->entries[kept - 1],
									 &universe->entries[i]) == 0)
		{
			free((void *) universe->entries[i].entry.key);
			continue;
		}
		universe->entries[kept++] = universe->entries[i];
	}
	universe->n = kept;

	for (uint32_t i = 0; i < kept; i++)
	{
		EunoTid		relative = universe->entries[i].entry.tid -
			universe->tid_base;

		universe->by_slot[(relative >> 16) * OFFSETS_PER_BLOCK +
						  (relative & 0xFFFF) - 1] = i;
	}
	return universe;
}

void
universe_free(Universe *universe)
{
	for (uint32_t i = 0; i < universe->n; i++)
		free((void *) universe->entries[i].entry.key);
	free(universe->entries);
	free(universe->by_slot);
	free(universe);
}

void
universe_end_position(const Universe *universe, bool low,
					  EunoPosition *position, Bound *bound)
{
	memset(position, 0, sizeof(*position));
	position->side = low ? -1 : 1;
	if (universe->shape->order == EUNO_ORDER_COMPARE)
	{
		bound->key = NULL;
		bound->columns = 0;
		position->bound = bound;
	}
}

static void
random_position(const Universe *universe, Random *random,
				EunoPosition *position, Bound *bound)
{
	const UniverseEntry *entry =
		&universe->entries[random_below(random, universe->n)];
	uint32_t	kind = random_below(random, 10);

	if (kind == 0)
	{
		universe_end_position(universe, random_below(random, 2) == 0, position,
							  bound);
		return;
	}
	memset(position, 0, sizeof(*position));
	position->key = entry->entry.key;
	position->keylen = entry->entry.keylen;
	position->side = (int8_t) (random_below(random, 3) - 1);
	if (position->side == 0)
	{
		/* at the entry, or at a TID near it that may not exist */
		position->tid = entry->entry.tid;
		if (kind < 4 && position->tid > 2)
			position->tid += random_below(random, 3) - 1;
		return;
	}
	if (universe->shape->order == EUNO_ORDER_BYTES)
	{
		if (kind < 5)
			position->keylen = entry->prefix;
		return;
	}
	if (kind < 7)
	{
		bound->key = entry->entry.key;
		bound->columns = kind < 5 ? 1 : 2;
		position->key = NULL;
		position->keylen = 0;
		position->bound = bound;
	}
}

void
universe_random_range(const Universe *universe, Random *random,
					  EunoPosition *lo, EunoPosition *hi, Bound *bounds)
{
	random_position(universe, random, lo, &bounds[0]);
	random_position(universe, random, hi, &bounds[1]);

	/* what most searches ask for: all that has, or starts with, one key */
	if (random_below(random, 4) == 0)
	{
		if (universe->shape->order == EUNO_ORDER_COMPARE)
		{
			const EunoEntry *entry =
				&universe->entries[random_below(random, universe->n)].entry;

			lo->key = entry->key;
			lo->keylen = entry->keylen;
			lo->bound = NULL;
		}
		*hi = *lo;
		lo->side = -1;
		hi->side = 1;
		lo->tid = hi->tid = 0;
	}
}

void
model_init(Model *model, const Universe *universe)
{
	model->universe = universe;
	model->present = calloc(universe->n + 1, 1);
	model->count = 0;
}

void
model_free(Model *model)
{
	free(model->present);
	model->present = NULL;
}

uint32_t
model_next(const Model *model, uint32_t i)
{
	uint32_t	n = model->universe->n;
	uint8_t    *found;

	if (i >= n)
		return n;
	found = memchr(model->present + i, 1, n - i);
	return found != NULL ? (uint32_t) (found - model->present) : n;
}

bool
model_previous(const Model *model, uint32_t i, uint32_t *found)
{
	uint8_t    *byte = i > 0 ? memrchr(model->present, 1, i) : NULL;

	if (byte == NULL)
		return false;
	*found = (uint32_t) (byte - model->present);
	return true;
}

void
model_set(Model *model, uint32_t i, bool present)
{
	if ((model->present[i] != 0) == present)
		return;
	model->present[i] = present;
	if (present)
		model->count++;
	else
		model->count--;
}
