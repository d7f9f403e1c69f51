/*-------------------------------------------------------------------------
 *
 * crowd.c
 *	  A leaf that has become contended is not crowded any more.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"
#include "core/euno_delegate.h"
#include "fixture.h"
#include "tap.h"

/* One write to a leaf that its writer thinks is crowded; does it still? */
static bool
write_crowded(Actor *actor, Model *model, const BptLeaf *leaf)
{
	actor->cx.delegation.crowds = true;
	*euno_crowd(&actor->cx, leaf) = leaf;
	if (model->present[0])
		do_remove(actor, model, 0);
	else
		do_insert(actor, model, 0);
	return *euno_crowd(&actor->cx, leaf) == leaf;
}

int
main(void)
{
	Universe   *universe = universe_make(shape_by_name("sparse int8"), 2000,
										 test_seed());
	Fixture		fixture;
	Model		model;
	Actor		actor;
	const BptLeaf *leaf;

	tap_begin("a leaf that has become contended is not crowded");
	fixture_open(&fixture, &euno_bptree_ops, universe, 90, 1);
	model_init(&model, universe);
	actor_init(&actor, &fixture, 1, test_seed());
	for (uint32_t i = 0; i < universe->n; i++)
		do_insert(&actor, &model, i);
	leaf = bpt_body(fixture.tree)->first;
	for (int i = 0; i < 2; i++)
		CHECK(write_crowded(&actor, &model, leaf), "a calm leaf is not crowded");
	CHECK(euno_bptree_ops.set_mode(&actor.cx, fixture.tree, NULL, true) == EUNO_OK,
		  "leaves cannot be contended");
	for (int i = 0; i < 2; i++)
		CHECK(!write_crowded(&actor, &model, leaf), "a contended leaf is crowded");
	check_all(&actor, &model);
	actor_free(&actor);
	model_free(&model);
	fixture_close(&fixture);
	universe_free(universe);
	tap_end();
	return tap_done();
}
