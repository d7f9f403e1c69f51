/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  Going over a radix tree's inner nodes: each comes once, after those below
 *	  it, at its place, wherever the visitor pauses; and compact, which goes
 *	  over them so, leaves nothing for a second round.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "core/art/art.h"
#include "fixture.h"
#include "tap.h"

#define ROUNDS		12
#define MAX_NODES	100000

static ArtRef seen[MAX_NODES];

static uint32_t
count_below(ArtRef ref)
{
	ArtNode    *node = art_pointer(ref);
	const ArtLayout *layout;
	uint32_t	n = 1;

	if (!art_is_node(ref))
		return 0;
	layout = &euno_art_layouts[art_type(node)];
	for (uint32_t i = 0; i < layout->capacity; i++)
		n += count_below(art_children(node)[i * layout->words]);
	return n;
}

static bool
was_seen(ArtRef ref, uint32_t nseen)
{
	for (uint32_t i = 0; i < nseen; i++)
	{
		if (seen[i] == ref)
			return true;
	}
	return false;
}

/* Is this where a descent finds the node, and did those below it come? */
static void
check_place(Actor *actor, EunoTree *tree, const ArtVisit *v, uint32_t nseen)
{
	static ArtKey path;
	ArtNode    *node = art_pointer(v->place.ref);
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	ArtPlace	place;

	path = v->at;
	CHECK(path.len == art_level(node), "another path");
	CHECK(euno_art_descend_to(&actor->cx, tree, &path, &place) == EUNO_OK &&
		  place.where == ART_AT_TREE && place.ref == v->place.ref &&
		  place.slot == v->place.slot && place.lock == v->place.lock &&
		  place.holder == v->place.holder && place.depth == v->place.depth,
		  "another place");
	CHECK(!was_seen(v->place.ref, nseen), "a node comes twice");
	for (uint32_t i = 0; i < layout->capacity; i++)
	{
		ArtRef		ref = art_children(node)[i * layout->words];

		CHECK(!art_is_node(ref) || was_seen(ref, nseen),
			  "a node comes before one below it");
	}
}

static void
visit_all(Actor *actor, EunoTree *tree)
{
	static ArtVisit v;
	uint32_t	n = 0;

	euno_art_visit_start(&v, &actor->cx, tree);
	euno_epoch_enter(actor->cx.process);
	while (tap_bad() == 0 && n < MAX_NODES && euno_art_visit(&v) == EUNO_OK)
	{
		check_place(actor, tree, &v, n);
		seen[n++] = v.place.ref;
		if (random_below(&actor->random, 3) == 0)
			euno_art_visit_pause(&v);
	}
	euno_epoch_exit(actor->cx.process);
	CHECK(n == count_below(art_body(tree)->root), "%u nodes", n);
}

static void
compact_once(Actor *actor)
{
	const EunoTreeOps *ops = actor->fixture->ops;
	EunoTree   *tree = actor->fixture->tree;
	uint32_t	how = EUNO_COMPACT_BEGIN;
	uint32_t	merged;
	EunoStatus	status;

	do
	{
		status = ops->compact(&actor->cx, tree, how,
							  1 + random_below(&actor->random, 3), &merged);
		how = 0;
	} while (status == EUNO_OK);
	CHECK(status == EUNO_DONE, "compact: status %d", status);
	status = ops->compact(&actor->cx, tree, EUNO_COMPACT_BEGIN, UINT32_MAX, &merged);
	CHECK(status == EUNO_DONE && merged == 0, "a second round changes %u nodes",
		  merged);
}

static void
test_shape(const EunoTreeOps *ops, const Shape *shape)
{
	Case		c;

	tap_begin("%s: %s", ops->name, shape->name);
	case_make(&c, ops, shape, 3000 / shape->weight, test_seed());
	for (int round = 0; round < ROUNDS && tap_bad() == 0; round++)
	{
		uint32_t	inserts = round == ROUNDS - 1 ? 0 :
			round % 3 == 0 ? 80 : round % 3 == 1 ? 20 : 5;

		for (uint32_t i = 0; i < c.universe->n; i++)
			do_random(&c.actor, &c.model, inserts);
		visit_all(&c.actor, c.fixture.tree);
		compact_once(&c.actor);
		check_verify(&c.actor);
	}
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	for (int i = 0; i < nsubjects; i++)
	{
		for (int s = 0; s < nshapes; s++)
		{
			if (strncmp(subjects[i]->name, "art", 3) == 0 &&
				subject_selected(subjects[i]) &&
				subject_holds(subjects[i], &shapes[s]))
				test_shape(subjects[i], &shapes[s]);
		}
	}
	return tap_done();
}
