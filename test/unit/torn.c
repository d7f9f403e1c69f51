/*-------------------------------------------------------------------------
 *
 * torn.c
 *	  Entries are copied of a leaf that somebody writes to, or looked at by a
 *	  search: whatever is read, nothing outside of the leaf is, and nothing
 *	  written outside of the batch.  And of one that nobody writes to: the right
 *	  ones.
 *
 * Leaves and batches are as large as they must be and no larger, so that
 * AddressSanitizer sees the first byte that is too much.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/bptree/bpt_read.h"
#include "fixture.h"
#include "tap.h"

#define ENTRIES		6000
#define TRIES		40			/* a leaf */

/* One leaf, a part of it, and a batch for that. */
typedef struct Copying
{
	BptRead		rd;
	EunoBatch	batch;
	BptLeaf    *leaf;
	BptGap		from;
	BptGap		to;
	bool		forward;
} Copying;

static EunoCursor cursor;
static BptImage image;

static void
choose_gap(Random *random, const BptView *view, uint32_t least, BptGap *gap)
{
	gap->slot = least + random_below(random, view->count + 1 - least);
	if (gap->slot < view->count && random_below(random, 2) == 0)
		gap->sub = random_below(random, BPT_LIST_MAX);
}

static void
make_batch(Random *random, EunoBatch *batch)
{
	batch->max_items = 1 + random_below(random, random_below(random, 2) ? 400 : 20);
	batch->want_keys = random_below(random, 2) == 0;
	batch->buf_size = EUNO_MAX_ENTRY + 64 + 8 * random_below(random, 400);
	batch->tids = malloc(batch->max_items * sizeof(EunoTid));
	batch->keys = malloc(batch->max_items * sizeof(EunoItemKey));
	batch->buf = malloc(batch->buf_size);
}

/* False if the leaf is of no interest: FIXED, or empty. */
static bool
prepare(Case *c, Random *random, const BptLeaf *leaf, Copying *copying)
{
	BptRead    *rd = &copying->rd;
	size_t		size = bpt_leaf_size(leaf);

	memset(copying, 0, sizeof(*copying));
	copying->leaf = aligned_alloc(64, size);
	memcpy(copying->leaf, leaf, size);
	make_batch(random, &copying->batch);
	bpt_place_init(&rd->place, &image);
	rd->place.leaf = copying->leaf;
	rd->tree = c->fixture.tree;
	rd->cx = &c->actor.cx;
	rd->cursor = &cursor;
	rd->batch = &copying->batch;
	CHECK(euno_bpt_view(copying->leaf, &rd->place.view), "no view of a leaf");
	if (rd->place.view.format == BPT_FIXED || rd->place.view.count == 0)
		return false;
	choose_gap(random, &rd->place.view, 0, &copying->from);
	choose_gap(random, &rd->place.view, copying->from.slot, &copying->to);
	if (copying->to.slot == copying->from.slot &&
		copying->to.sub < copying->from.sub)
		copying->to = copying->from;
	copying->forward = random_below(random, 2) == 0;
	return true;
}

static void
discard(Copying *copying)
{
	free(copying->leaf);
	free(copying->batch.tids);
	free(copying->batch.keys);
	free(copying->batch.buf);
}

/* Somebody writes to the leaf, after the view was taken. */
static void
damage(Random *random, Copying *copying)
{
	const BptView *view = &copying->rd.place.view;
	uint8_t    *bytes = (uint8_t *) copying->leaf;
	uint32_t	size = (uint32_t) bpt_leaf_size(copying->leaf);

	switch (random_below(random, 3))
	{
		case 0:
			for (uint32_t k = 0; k < 30; k++)
				bytes[random_below(random, size)] = (uint8_t) random_below(random, 256);
			break;
		case 1:
			for (uint32_t k = view->body; k < size; k++)
				bytes[k] = (uint8_t) random_below(random, 256);
			break;
		default:
			for (uint32_t i = 0; i < view->count; i++)
				if (random_below(random, 3) == 0)
					bytes[view->offs[i] + random_below(random, 7)] =
						(uint8_t) random_below(random, 256);
			break;
	}
}

/* A search in COMPARE order looks at each key, and finds that it is too late. */
static void
look_at_keys(const Copying *copying)
{
	BptView		view = copying->rd.place.view;
	BptKey		key = {0};

	if (view.format != BPT_OPAQUE)
		return;
	view.lock = &copying->leaf->lock;
	view.version = ~euno_lock_version(view.lock);
	for (uint32_t i = 0; i < view.count; i++)
	{
		view.torn = false;
		CHECK(euno_bpt_compare_opaque_slot(copying->rd.cx, &view, &key,
										   BPT_COMPARATOR, i) == 0 && view.torn,
			  "a key of a leaf that was written to is compared");
	}
}

static void
check_batch(const Copying *copying)
{
	const EunoBatch *batch = &copying->batch;

	CHECK(batch->nitems <= batch->max_items, "%u items of %u", batch->nitems,
		  batch->max_items);
	for (uint32_t i = 0; i < batch->nitems && batch->want_keys; i++)
	{
		const EunoItemKey *key = &batch->keys[i];

		CHECK(key->offset % 8 == 0 &&
			  key->offset + ((key->keylen + 7U) & ~7U) + key->payloadlen <=
			  batch->buf_size, "key %u is not in the buffer", i);
	}
}

/* The TIDs between the gaps, one slot after the other; their number. */
static uint32_t
list_tids(const Copying *copying, EunoTid *tids)
{
	BptView		view = copying->rd.place.view;
	const BptGap *from = &copying->from;
	const BptGap *to = &copying->to;
	uint32_t	n = 0;

	for (uint32_t i = from->slot; i < to->slot + (to->sub > 0); i++)
	{
		EunoTid		all[BPT_LIST_MAX];
		uint32_t	count = euno_bpt_slot_tids(&view, i, all);
		uint32_t	begin = i == from->slot ? from->sub : 0;
		uint32_t	end = i == to->slot && to->sub < count ? to->sub : count;

		for (uint32_t k = begin; k < end; k++)
			tids[n++] = all[k];
	}
	return n;
}

/* Nobody wrote: are these the entries, and is it known where it goes on? */
static void
check_entries(Copying *copying, bool all)
{
	const EunoBatch *batch = &copying->batch;
	const BptGap *stop = &copying->rd.stop;
	BptView    *view = &copying->rd.place.view;
	EunoTid    *tids = malloc((view->count + 1) * BPT_LIST_MAX * sizeof(EunoTid));
	uint32_t	n = list_tids(copying, tids);
	uint32_t	bad = 0;

	for (uint32_t i = 0; i < batch->nitems; i++)
		bad += i >= n ||
			batch->tids[i] != tids[copying->forward ? i : n - 1 - i];
	CHECK(bad == 0, "%u of %u entries are others", bad, batch->nitems);
	CHECK(all == (batch->nitems == n), "%u entries of %u", batch->nitems, n);
	if (!all && batch->nitems > 0 && batch->nitems < n)
	{
		EunoTid		there[BPT_LIST_MAX];
		uint32_t	count = euno_bpt_slot_tids(view, stop->slot, there);
		EunoTid		next = copying->forward ? tids[batch->nitems] :
			tids[n - batch->nitems];

		CHECK(stop->sub < count && there[stop->sub] == next,
			  "it goes on at %u in slot %u", stop->sub, stop->slot);
	}
	free(tids);
}

static void
test_shape(const Shape *shape, uint64_t seed)
{
	Random		random = {seed};
	Case		c;

	tap_begin("%s: leaves are copied while they are written to", shape->name);
	case_make(&c, &euno_bptree_ops, shape, ENTRIES, seed);
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_random(&c.actor, &c.model, 85);
	for (BptLeaf *leaf = bpt_body(c.fixture.tree)->first; leaf != NULL;
		 leaf = leaf->right)
	{
		for (int try = 0; try < TRIES && tap_bad() < 10; try++)
		{
			Copying		copying;
			bool		all;

			if (prepare(&c, &random, leaf, &copying))
			{
				if (try % 3 != 0)
				{
					damage(&random, &copying);
					look_at_keys(&copying);
				}
				all = euno_bpt_copy_range(&copying.rd, &copying.from,
										  &copying.to, copying.forward);
				check_batch(&copying);
				if (try % 3 == 0)
					check_entries(&copying, all);
			}
			discard(&copying);
		}
	}
	case_close(&c);
	tap_end();
}

int
main(void)
{
	uint64_t	seed = test_seed();

	for (int i = 0; i < nshapes; i++)
		test_shape(&shapes[i], seed + (uint64_t) i);
	return tap_done();
}
