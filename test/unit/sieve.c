/*-------------------------------------------------------------------------
 *
 * sieve.c
 *	  Reads that may leave entries out: who is left out is said by the plainest
 *	  reading of EunoSieve.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static bool
is_left_out(const EunoSieve *sieve, const uint8_t *key, uint32_t keylen)
{
	uint64_t	number = 0;

	if (keylen != sieve->keylen)
		return false;
	for (uint32_t i = 0; i < sieve->bits / 8; i++)
		number = number << 8 | key[sieve->at + i];
	return number < sieve->least || number - sieve->least > sieve->more;
}

void
sieve_model(Sieve *sieve, const Model *model)
{
	const Universe *universe = model->universe;

	for (uint32_t i = 0; i < universe->n; i++)
	{
		const EunoEntry *entry = &universe->entries[i].entry;

		model_set(&sieve->seen, i, model->present[i] &&
				  !is_left_out(&sieve->core, entry->key, entry->keylen));
	}
}

Sieve *
sieve_random(Actor *actor, const Model *model)
{
	const Universe *universe = model->universe;
	Random	   *random = &actor->random;
	const EunoEntry *entry;
	uint32_t	bytes;
	Sieve	   *sieve;

	if (universe->shape->order != EUNO_ORDER_BYTES ||
		random_below(random, 3) != 0)
		return NULL;
	entry = &universe->entries[random_below(random, universe->n)].entry;
	bytes = 2 << random_below(random, 3);
	if (entry->keylen < bytes)
		return NULL;
	sieve = calloc(1, sizeof(Sieve));
	sieve->core.keylen = entry->keylen;
	sieve->core.bits = 8 * bytes;
	sieve->core.at = random_below(random, entry->keylen - bytes + 1);
	for (uint32_t i = 0; i < bytes; i++)
		sieve->core.least = sieve->core.least << 8 |
			entry->key[sieve->core.at + i];
	sieve->core.more = random_below(random, 2) == 0 ? 0 :
		(UINT64_MAX >> (64 - 8 * bytes) >> random_below(random, 8 * bytes));
	if (sieve->core.more > (UINT64_MAX >> (64 - 8 * bytes)) - sieve->core.least)
		sieve->core.more = (UINT64_MAX >> (64 - 8 * bytes)) - sieve->core.least;
	model_init(&sieve->seen, universe);
	sieve_model(sieve, model);
	actor->batch.sieve = &sieve->core;
	return sieve;
}

void
sieve_free(Actor *actor, Sieve *sieve)
{
	if (sieve == NULL)
		return;
	actor->batch.sieve = NULL;
	actor->batch.sieved = false;
	model_free(&sieve->seen);
	free(sieve);
}

void
sieve_batch(const Sieve *sieve, EunoBatch *batch)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < batch->nitems; i++)
	{
		const EunoItemKey *item = &batch->keys[i];

		if (is_left_out(&sieve->core, batch->buf + item->offset, item->keylen))
		{
			batch->sieved = true;
			continue;
		}
		batch->tids[n] = batch->tids[i];
		batch->keys[n++] = *item;
	}
	batch->nitems = n;
}
