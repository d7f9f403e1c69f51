/*-------------------------------------------------------------------------
 *
 * check.c
 *	  Operations on a tree, and what a reader sees of it, compared with the
 *	  model.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tap.h"

uint64_t	check_keys_read = 0;

static const char *
status_name(EunoStatus status)
{
	static const char *const names[] = {
		"OK", "EXISTS", "NOT_FOUND", "STALE", "DONE", "BUSY", "FULL", "NO_MEMORY", "CORRUPT"
	};

	return (unsigned) status < 9 ? names[status] : "?";
}

void
do_insert(Actor *actor, Model *model, uint32_t i)
{
	Fixture    *fixture = actor->fixture;
	EunoEntry	entry = fixture->universe->entries[i].entry;
	static const uint8_t other[8] = "another";
	bool		there = model->present[i] != 0;
	bool		no_split = random_below(&actor->random, 16) == 0;
	EunoStatus	status;

	/* An entry that is there keeps its payload, whatever is offered. */
	if (there && !fixture->universe->shape->posting)
	{
		entry.payload = other;
		entry.payloadlen = entry.keylen + 8 <= EUNO_MAX_ENTRY ? 8 : 0;
	}
	status = fixture->ops->insert(&actor->cx, fixture->tree, &entry, no_split);
	if (status == EUNO_FULL && no_split)
	{
		CHECK(!there, "insert of entry %u, which is there: FULL", i);
		status = fixture->ops->contains(&actor->cx, fixture->tree, &entry);
		CHECK(status == EUNO_NOT_FOUND, "contains after FULL: %s",
			  status_name(status));
		status = fixture->ops->insert(&actor->cx, fixture->tree, &entry, false);
	}
	CHECK(status == (there ? EUNO_EXISTS : EUNO_OK),
		  "insert of entry %u, %s: %s", i, there ? "there" : "not there",
		  status_name(status));
	model_set(model, i, true);
}

void
do_remove(Actor *actor, Model *model, uint32_t i)
{
	Fixture    *fixture = actor->fixture;
	const EunoEntry *entry = &fixture->universe->entries[i].entry;
	EunoGuard	guard = {fixture->guard, 1};
	bool		there = model->present[i] != 0;
	uint32_t	kind = random_below(&actor->random, 4);
	EunoStatus	status;

	if (kind == 0)
	{
		/* the word holds 0, not 1 */
		status = fixture->ops->remove(&actor->cx, fixture->tree, entry, &guard);
		CHECK(status == EUNO_STALE || (status == EUNO_NOT_FOUND && !there),
			  "guarded remove of entry %u: %s", i, status_name(status));
		do_contains(actor, model, i);
	}
	guard.expected = 0;
	status = fixture->ops->remove(&actor->cx, fixture->tree, entry,
								  kind < 2 ? &guard : NULL);
	CHECK(status == (there ? EUNO_OK : EUNO_NOT_FOUND),
		  "remove of entry %u, %s: %s", i, there ? "there" : "not there",
		  status_name(status));
	model_set(model, i, false);
}

void
do_contains(Actor *actor, const Model *model, uint32_t i)
{
	Fixture    *fixture = actor->fixture;
	EunoStatus	status;

	status = fixture->ops->contains(&actor->cx, fixture->tree,
									&fixture->universe->entries[i].entry);
	CHECK(status == (model->present[i] ? EUNO_OK : EUNO_NOT_FOUND),
		  "contains of entry %u, %s: %s", i,
		  model->present[i] ? "there" : "not there", status_name(status));
}

void
do_random(Actor *actor, Model *model, uint32_t insert_percent)
{
	uint32_t	i = random_below(&actor->random, actor->fixture->universe->n);

	actor->cx.domain = (int) random_below(&actor->random,
										  actor->fixture->ndomains);
	if (random_below(&actor->random, 8) == 0)
		do_contains(actor, model, i);
	else if (random_below(&actor->random, 100) < insert_percent)
		do_insert(actor, model, i);
	else
		do_remove(actor, model, i);
}

/*
 * What is known of a scan's window: its left end is a gap in [left_min,
 * left_max] of the universe, and the same on the right.  Without writers
 * between the batches it does not matter where in that stretch the gap is;
 * with them, an entry inserted in the stretch may or may not be seen.
 */
typedef struct Window
{
	uint32_t	lo;				/* the range is [lo, hi) */
	uint32_t	hi;
	uint32_t	left_min;
	uint32_t	left_max;
	uint32_t	right_min;
	uint32_t	right_max;
} Window;

/* Is item "item" of the actor's batch the entry i of the universe? */
static void
check_item(Actor *actor, uint32_t item, uint32_t i)
{
	const EunoEntry *entry = &actor->fixture->universe->entries[i].entry;
	EunoBatch  *batch = &actor->batch;
	EunoItemKey *key = &batch->keys[item];

	CHECK(batch->tids[item] == entry->tid,
		  "entry %u read with TID %llx instead of %llx", i,
		  (unsigned long long) batch->tids[item],
		  (unsigned long long) entry->tid);
	if (!batch->want_keys)
		return;
	CHECK((key->offset & 7) == 0, "key at offset %u", key->offset);
	CHECK(key->offset + ((key->keylen + 7u) & ~7u) + key->payloadlen <=
		  batch->buf_size, "key outside of the buffer");
	CHECK(key->keylen == entry->keylen &&
		  memcmp(batch->buf + key->offset, entry->key, entry->keylen) == 0,
		  "entry %u read with another key (of %u bytes)", i, key->keylen);
	CHECK(key->payloadlen == entry->payloadlen &&
		  (entry->payloadlen == 0 ||
		   memcmp(batch->buf + key->offset + ((key->keylen + 7u) & ~7u),
				  entry->payload, entry->payloadlen) == 0),
		  "entry %u read with another payload (of %u bytes)", i,
		  key->payloadlen);
}

/*
 * A window that reaches to an end of the range leaves nothing there, now or
 * later.
 */
static void
check_ends(Actor *actor, const Model *model, Window *window)
{
	uint32_t	i;

	if (actor->cursor->at_lo)
	{
		CHECK(!model_previous(model, window->left_min, &i) || i < window->lo,
			  "at_lo, but entry %u is below the window", i);
		window->left_min = window->lo;
	}
	if (actor->cursor->at_hi)
	{
		CHECK(model_next(model, window->right_max) >= window->hi,
			  "at_hi, but entry %u is above the window",
			  model_next(model, window->right_max));
		window->right_max = window->hi;
	}
}

/*
 * The first entry of a batch forward: the next present one from somewhere in
 * [right_min, right_max] on.  Decided by the TID that came.
 */
static uint32_t
first_forward(Actor *actor, const Model *model, const Window *window)
{
	uint32_t	i = model_next(model, window->right_min);

	while (i < window->right_max && i < window->hi &&
		   model->universe->entries[i].entry.tid != actor->batch.tids[0])
		i = model_next(model, i + 1);
	return i;
}

static void
check_forward(Actor *actor, const Model *model, Window *window)
{
	EunoBatch  *batch = &actor->batch;
	EunoCursor *cursor = actor->cursor;
	uint32_t	i;
	uint32_t	first;
	uint32_t	last;

	if (batch->nitems == 0)
	{
		i = model_next(model, window->right_max);
		CHECK(i >= window->hi, "forward: ended before entry %u", i);
		CHECK(cursor->at_hi, "forward: ended, but not at_hi");
		window->left_min = model_previous(model, window->hi, &i) &&
			i >= window->lo ? i + 1 : window->lo;
		window->left_max = window->right_min = window->right_max = window->hi;
		check_ends(actor, model, window);
		return;
	}

	first = i = first_forward(actor, model, window);
	for (uint32_t item = 0; item < batch->nitems; item++)
	{
		CHECK(i < window->hi, "forward: item %u of %u is beyond the range",
			  item, batch->nitems);
		if (tap_bad())
			return;
		check_item(actor, item, i);
		window->left_max = item == 0 ? first : window->left_max;
		i = model_next(model, i + 1);
		if (item == batch->nitems - 1)
			break;
	}

	/* between what was before the old right end and the first item */
	window->left_min = model_previous(model, window->right_min, &last) &&
		last >= window->lo ? last + 1 : window->lo;

	/* the last item's place is i's predecessor */
	(void) model_previous(model, i, &window->right_min);
	window->right_min++;
	window->right_max = i < window->hi ? i : window->hi;
	check_ends(actor, model, window);
}

/* The same, mirrored. */
static bool
first_backward(Actor *actor, const Model *model, const Window *window,
			   uint32_t *i)
{
	bool		found = model_previous(model, window->left_max, i);

	while (found && *i >= window->left_min && *i >= window->lo &&
		   model->universe->entries[*i].entry.tid != actor->batch.tids[0])
		found = model_previous(model, *i, i);
	return found && *i >= window->lo;
}

static void
check_backward(Actor *actor, const Model *model, Window *window)
{
	EunoBatch  *batch = &actor->batch;
	EunoCursor *cursor = actor->cursor;
	uint32_t	i = 0;
	uint32_t	last;
	bool		found;

	if (batch->nitems == 0)
	{
		found = model_previous(model, window->left_min, &i);
		CHECK(!found || i < window->lo, "backward: ended after entry %u", i);
		CHECK(cursor->at_lo, "backward: ended, but not at_lo");
		i = model_next(model, window->lo);
		window->right_max = i < window->hi ? i : window->hi;
		window->left_min = window->left_max = window->right_min = window->lo;
		check_ends(actor, model, window);
		return;
	}

	found = first_backward(actor, model, window, &i);
	last = i;
	for (uint32_t item = 0; item < batch->nitems; item++)
	{
		CHECK(found && i >= window->lo,
			  "backward: item %u of %u is before the range", item,
			  batch->nitems);
		if (tap_bad())
			return;
		check_item(actor, item, i);
		if (item == batch->nitems - 1)
			break;
		found = model_previous(model, i, &i);
	}
	window->right_max = model_next(model, window->left_max);
	if (window->right_max > window->hi)
		window->right_max = window->hi;
	window->right_min = last + 1;
	window->left_max = i;
	found = model_previous(model, i, &i);
	window->left_min = found && i >= window->lo ? i + 1 : window->lo;
	check_ends(actor, model, window);
}

/* Room for the longest entry, and what is behind that. */
#define LEAST_BUFFER	(EUNO_MAX_ENTRY + 64)
#define BUFFER_END		"the end"

/* The room for keys: now and then as little as may be. */
static void
limit_buffer(Actor *actor)
{
	bool		least = random_below(&actor->random, 4) == 0;

	actor->batch.buf_size = least ? LEAST_BUFFER : EUNO_BATCH_BUF;
	if (least)
		memcpy(actor->buf + LEAST_BUFFER, BUFFER_END, sizeof(BUFFER_END));
}

static void
check_buffer_end(Actor *actor)
{
	CHECK(actor->batch.buf_size == EUNO_BATCH_BUF ||
		  memcmp(actor->buf + LEAST_BUFFER, BUFFER_END,
				 sizeof(BUFFER_END)) == 0, "written behind the buffer");
}

/* How many items to ask for: one, few, or many. */
static uint32_t
random_batch_size(Random *random)
{
	switch (random_below(random, 4))
	{
		case 0:
			return 1;
		case 1:
			return 1 + random_below(random, 8);
		case 2:
			return 1 + random_below(random, 100);
		default:
			return ACTOR_ITEMS;
	}
}

void
check_range(Actor *actor, Model *model, bool mutate)
{
	Fixture    *fixture = actor->fixture;
	const Universe *universe = fixture->universe;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	Bound		bounds[2];
	Window		window;
	bool		forward = random_below(&actor->random, 2) == 0;
	uint32_t	steps = 1 + random_below(&actor->random, 40);

	universe_random_range(universe, &actor->random, &cursor->lo, &cursor->hi,
						  bounds);
	window.lo = universe_below(universe, &cursor->lo);
	window.hi = universe_below(universe, &cursor->hi);
	if (window.lo > window.hi && random_below(&actor->random, 8) != 0)
	{
		EunoPosition position = cursor->lo;
		uint32_t	swap = window.lo;

		cursor->lo = cursor->hi;
		cursor->hi = position;
		window.lo = window.hi;
		window.hi = swap;
	}
	if (window.lo > window.hi)
		steps = 1;				/* an empty range: both ways must say so */
	actor->cursor = cursor;
	euno_cursor_start(cursor);
	window.left_min = window.left_max = window.hi;
	window.right_min = window.right_max = window.lo;

	for (uint32_t step = 0; step < steps && tap_bad() == 0; step++)
	{
		EunoTree   *tree = fixture->tree;
		EunoStatus	status;

		if (actor->twin != NULL && random_below(&actor->random, 2) == 0)
			tree = actor->twin;
		actor->batch.max_items = random_batch_size(&actor->random);
		actor->batch.want_keys = random_below(&actor->random, 2) == 0;
		if (random_below(&actor->random, 6) == 0)
			forward = !forward;
		limit_buffer(actor);
		status = fixture->ops->read(&actor->cx, tree, cursor, forward,
									&actor->batch);
		CHECK(status == EUNO_OK, "read: %s", status_name(status));
		check_buffer_end(actor);
		CHECK(actor->batch.nitems <= actor->batch.max_items, "%u items",
			  actor->batch.nitems);
		if (window.lo > window.hi)
			CHECK(actor->batch.nitems == 0, "items in an empty range");
		else if (step == 0 && !forward)
		{
			window.right_min = window.right_max = window.hi;
			check_backward(actor, model, &window);
		}
		else if (step == 0)
		{
			window.left_min = window.left_max = window.lo;
			check_forward(actor, model, &window);
		}
		else if (forward)
			check_forward(actor, model, &window);
		else
			check_backward(actor, model, &window);
		for (int i = 0; mutate && i < 10; i++)
			do_random(actor, model, 50);
	}
	actor->cursor = NULL;
	free(cursor);
}

typedef struct VerifySeen
{
	const Model *model;
	uint32_t	next;
	uint32_t	reports;
} VerifySeen;

static void
verify_report(void *arg, const char *what)
{
	(void) arg;
	CHECK(false, "verify: %s", what);
}

static void
verify_entry(void *arg, const EunoEntry *entry)
{
	VerifySeen *seen = arg;
	const Model *model = seen->model;
	const EunoEntry *expected;

	if (seen->next >= model->universe->n)
	{
		CHECK(false, "verify shows more entries than there are");
		return;
	}
	expected = &model->universe->entries[seen->next].entry;
	CHECK(entry->tid == expected->tid && entry->keylen == expected->keylen &&
		  memcmp(entry->key, expected->key, entry->keylen) == 0,
		  "verify shows another entry than %u", seen->next);
	seen->next = model_next(model, seen->next + 1);
}

void
check_verify(Actor *actor)
{
	EunoVerify	verify = {.report = verify_report};
	uint64_t	findings;

	findings = actor->fixture->ops->verify(&actor->cx, actor->fixture->tree,
										   &verify);
	CHECK(findings == 0, "verify: %llu findings",
		  (unsigned long long) findings);
}

/* All of it in one direction. */
static void
check_full_scan(Actor *actor, const Model *model, bool forward)
{
	Fixture    *fixture = actor->fixture;
	EunoCursor *cursor = calloc(1, sizeof(EunoCursor));
	Bound		bounds[2];
	uint32_t	n = fixture->universe->n;
	Window		window = {0, n, 0, 0, 0, 0};
	uint32_t	batches = 0;

	universe_end_position(fixture->universe, true, &cursor->lo, &bounds[0]);
	universe_end_position(fixture->universe, false, &cursor->hi, &bounds[1]);
	euno_cursor_start(cursor);
	if (!forward)
		window.left_min = window.left_max = window.right_min =
			window.right_max = n;
	actor->cursor = cursor;
	actor->batch.max_items = ACTOR_ITEMS;
	actor->batch.want_keys = true;
	do
	{
		EunoStatus	status;

		status = fixture->ops->read(&actor->cx, fixture->tree, cursor, forward,
									&actor->batch);
		CHECK(status == EUNO_OK, "read: %s", status_name(status));
		if (forward)
			check_forward(actor, model, &window);
		else
			check_backward(actor, model, &window);
	} while (actor->batch.nitems > 0 && tap_bad() == 0 && batches++ <= n);
	CHECK(batches <= n, "the scan does not end");
	actor->cursor = NULL;
	free(cursor);
}

/*
 * Several keys at once: what is found of each is what is there.  Few items are
 * asked for now and then, so that some of the keys are left.
 */
static void
check_keys(Actor *actor, const Model *model)
{
	Fixture    *fixture = actor->fixture;
	const Universe *universe = fixture->universe;
	EunoBatch  *batch = &actor->batch;
	EunoPosition keys[EUNO_KEYS_MAX];
	uint32_t	ends[EUNO_KEYS_MAX];
	uint32_t	n = 1 + random_below(&actor->random, EUNO_KEYS_MAX);
	uint32_t	item = 0;
	uint32_t	done;

	for (uint32_t k = 0; k < n; k++)
	{
		const EunoEntry *entry =
			&universe->entries[random_below(&actor->random, universe->n)].entry;

		keys[k] = (EunoPosition)
		{
			.key = entry->key,.keylen = entry->keylen,.side = -1
		};
	}
	batch->max_items = random_batch_size(&actor->random);
	batch->want_keys = random_below(&actor->random, 2) == 0;
	done = fixture->ops->read_keys(&actor->cx, fixture->tree, keys, n, batch,
								   ends);
	CHECK(done <= n, "read_keys: %u of %u", done, n);
	for (uint32_t k = 0; k < done && tap_bad() == 0; k++)
	{
		EunoPosition hi = keys[k];
		uint32_t	i = model_next(model, universe_below(universe, &keys[k]));
		uint32_t	end;

		hi.side = 1;
		end = universe_below(universe, &hi);
		for (; item < ends[k] && item < batch->max_items; item++)
		{
			CHECK(i < end, "read_keys: item %u is too much", item);
			if (tap_bad())
				return;
			check_item(actor, item, i);
			i = model_next(model, i + 1);
		}
		CHECK(i >= end, "read_keys: missed entry %u", i);
	}
	CHECK(done == 0 || (item == ends[done - 1] && item == batch->nitems),
		  "read_keys: %u items, %u for the keys", batch->nitems, item);
	check_keys_read += done;
}

void
check_all(Actor *actor, const Model *model)
{
	Fixture    *fixture = actor->fixture;
	VerifySeen	seen = {model, model_next(model, 0), 0};
	EunoVerify	verify = {.report = verify_report,.entry = verify_entry,.arg = &seen};
	EunoTreeStats stats;
	uint64_t	findings;

	check_full_scan(actor, model, true);
	check_full_scan(actor, model, false);
	for (int i = 0; i < 50 && fixture->ops->read_keys != NULL &&
		 fixture->universe->shape->order == EUNO_ORDER_BYTES; i++)
		check_keys(actor, model);
	findings = fixture->ops->verify(&actor->cx, fixture->tree, &verify);
	CHECK(findings == 0, "verify: %llu findings",
		  (unsigned long long) findings);
	CHECK(seen.next == fixture->universe->n, "verify ends before entry %u",
		  seen.next);
	fixture->ops->stats(&actor->cx, fixture->tree, &stats);
	CHECK(stats.entries == model->count, "stats: %llu entries instead of %u",
		  (unsigned long long) stats.entries, model->count);
	CHECK(actor->process.depth == 0, "depth %u between operations",
		  actor->process.depth);
}

void
do_bulk_load(Actor *actor, const Model *model)
{
	Fixture    *fixture = actor->fixture;
	const EunoTreeOps *ops = fixture->ops;
	EunoBulk   *bulk = aligned_alloc(64, sizeof(EunoBulk));
	EunoStatus	status;

	status = ops->bulk_begin(&actor->cx, fixture->tree, bulk);
	CHECK(status == EUNO_OK, "bulk_begin: %s", status_name(status));
	for (uint32_t i = model_next(model, 0);
		 i < model->universe->n && status == EUNO_OK;
		 i = model_next(model, i + 1))
	{
		status = ops->bulk_add(&actor->cx, bulk,
							   &model->universe->entries[i].entry);
		CHECK(status == EUNO_OK, "bulk_add: %s", status_name(status));
	}
	status = ops->bulk_end(&actor->cx, bulk);
	CHECK(status == EUNO_OK, "bulk_end: %s", status_name(status));
	free(bulk);
}

void
do_compact(Actor *actor)
{
	Fixture    *fixture = actor->fixture;
	uint32_t	how = EUNO_COMPACT_BEGIN;
	uint32_t	rounds = 0;
	uint32_t	total = 0;
	uint32_t	merged;
	EunoStatus	status;

	do
	{
		merged = UINT32_MAX;
		status = fixture->ops->compact(&actor->cx, fixture->tree, how,
									   1 + random_below(&actor->random, 1000),
									   &merged);
		CHECK(status == EUNO_OK || status == EUNO_DONE, "compact: %s",
			  status_name(status));
		total = (how == EUNO_COMPACT_BEGIN ? 0 : total) + merged;
		how = status == EUNO_DONE ? EUNO_COMPACT_BEGIN : 0;
	} while ((how == 0 || total > 0) && tap_bad() == 0 && rounds++ < 100000);
	CHECK(rounds < 100000, "compact does not end");
}
