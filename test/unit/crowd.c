/*-------------------------------------------------------------------------
 *
 * crowd.c
 *	  When delegation ends: at a leaf that has become contended, for a leader
 *	  whom others do not let go, and for requests that would have it sleep.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "core/bptree/bpt.h"
#include "core/euno_delegate.h"
#include "fixture.h"
#include "tap.h"

/* One write to a leaf that its writer thinks is crowded; does it still? */
static bool
write_crowded(Actor *actor, Model *model, const BptLeaf *leaf)
{
	actor->cx.delegation.crowds = EUNO_CROWDS;
	*euno_crowd(&actor->cx, leaf) = leaf;
	if (model->present[0])
		do_remove(actor, model, 0);
	else
		do_insert(actor, model, 0);
	return *euno_crowd(&actor->cx, leaf) == leaf;
}

/* As euno_delegate.c has them. */
#define QUEUE_LED		1
#define ANSWER_LEAD		2

/* Processes at another tree, by the first one's slot. */
#define OTHERS			16
#define FIRST_OTHER		10

/* Their requests, if nobody else is made the leader. */
#define ENOUGH			4096

/* The most that a leader may do for others, and what is on its way then. */
#define MOST			(256 + OTHERS)

static EunoEpochs *epochs;
static EunoQueue *queue;		/* where they ask */
static EunoEpochSlot *asker;	/* the actor's slot */
static uint32_t asked;
static bool handed_over;
static EunoLock *locked;		/* that of a leaf */
static uint32_t sleeps;			/* of the leader, for it */

/* All the others ask, and sleep.  What leads to the newest request. */
static uint64_t
ask(uint64_t before)
{
	for (uint32_t i = FIRST_OTHER; i < FIRST_OTHER + OTHERS; i++)
	{
		EunoEpochSlot *slot = &epochs->slots[i];

		slot->request.tree = 1;
		slot->request.sleeps = 1;
		slot->request.next = before;
		slot->answer.state = 0;
		before = i + 2;
		asked++;
	}
	return before;
}

/*
 * The actor has asked, and sleeps: it becomes the leader of it and the others.
 * (A removal may be tried with a guard first: then it asks twice.)
 */
static void
become_leader(uint32_t *word, uint32_t seen)
{
	(void) seen;
	for (int i = 0; i < EUNO_QUEUES; i++)
	{
		if (epochs->queues[i].head != QUEUE_LED)
			queue = &epochs->queues[i];
	}
	queue->head = QUEUE_LED;
	asker->request.next = handed_over ? QUEUE_LED : ask(QUEUE_LED);
	*word = ANSWER_LEAD;
}

/* Who has been answered asks again, unless one of them leads now. */
static void
ask_again(uint32_t *word)
{
	(void) word;
	for (uint32_t i = FIRST_OTHER; i < FIRST_OTHER + OTHERS; i++)
		handed_over |= epochs->slots[i].answer.state == ANSWER_LEAD;
	if (!handed_over && asked < ENOUGH)
		queue->head = ask(queue->head);
}

/*
 * Another tree's place may share the queue.  Its requests are refused; that
 * must end, however many there are.
 */
static void
test_bound(Actor *actor, Model *model, const BptLeaf *leaf)
{
	EunoEnvironment env = *actor->cx.env;
	const EunoEnvironment *own = actor->cx.env;

	tap_begin("a leader has a bound, though all others are at another tree");
	epochs = actor->process.epochs;
	asker = &epochs->slots[actor->process.slot];
	for (int i = 0; i < EUNO_QUEUES; i++)
		epochs->queues[i].head = QUEUE_LED;
	env.wait = become_leader;
	env.wake = ask_again;
	actor->cx.env = &env;
	write_crowded(actor, model, leaf);
	actor->cx.env = own;
	CHECK(handed_over, "nobody else leads");
	CHECK(asked <= MOST, "%u requests were answered first", asked);
	for (int i = 0; i < EUNO_QUEUES; i++)
		epochs->queues[i].head = 0;
	check_all(actor, model);
	tap_end();
}

/* The actor has become the leader, and another process has asked it to insert. */
static void
lead_another(uint32_t *word, uint32_t seen)
{
	(void) seen;
	for (int i = 0; i < EUNO_QUEUES; i++)
		epochs->queues[i].head = QUEUE_LED;
	asker->request.next = FIRST_OTHER + 2;
	*word = ANSWER_LEAD;
}

/*
 * The leader writes to a crowded leaf, and another one asks it to insert the
 * last entry, which is there.  What the other one is told is in its slot.
 */
static EunoEpochSlot *
lead(Actor *actor, Model *model, const BptLeaf *leaf,
	 void (*wait) (uint32_t *word, uint32_t seen))
{
	const EunoEntry *entry = &model->universe->entries[model->universe->n - 1].entry;
	EunoEpochSlot *other = &epochs->slots[FIRST_OTHER];
	EunoEnvironment env = *actor->cx.env;
	const EunoEnvironment *own = actor->cx.env;

	if (model->present[0])
		do_remove(actor, model, 0);
	other->request.tree = (uintptr_t) actor->fixture->tree;
	other->request.tid = entry->tid;
	other->request.keylen = (uint16_t) entry->keylen;
	other->request.want_leaf = 1;
	memcpy(other->request.bytes, entry->key, entry->keylen);
	other->request.next = QUEUE_LED;
	other->request.sleeps = 0;
	other->answer.state = 0;
	for (int i = 0; i < EUNO_QUEUES; i++)
		epochs->queues[i].head = QUEUE_LED;
	env.wait = wait;
	actor->cx.env = &env;
	actor->cx.want_leaf = true;
	actor->cx.leaf = 0;
	write_crowded(actor, model, leaf);
	actor->cx.want_leaf = false;
	actor->cx.env = own;
	for (int i = 0; i < EUNO_QUEUES; i++)
		epochs->queues[i].head = 0;
	return other;
}

/* The leader's own insert goes to a leaf; the other one's finds its entry. */
static void
test_answer(Actor *actor, Model *model, const BptLeaf *leaf)
{
	EunoEpochSlot *other;

	tap_begin("an entry that was there is in no leaf that somebody has inserted into");
	other = lead(actor, model, leaf, lead_another);
	CHECK(actor->cx.leaf == leaf->number, "the leader's leaf is %u", actor->cx.leaf);
	CHECK(other->answer.status == EUNO_EXISTS && other->answer.leaf == 0,
		  "the other's status is %u, the leaf %u", other->answer.status,
		  other->answer.leaf);
	check_all(actor, model);
	tap_end();
}

/* The leaf of the other one's entry is locked, until the leader has slept twice. */
static void
sleep_twice(uint32_t *word, uint32_t seen)
{
	if (word == &asker->answer.state)
		lead_another(word, seen);
	else if (++sleeps == 2)
		euno_lock_release_unchanged(locked, &test_env);
}

/*
 * For another one, who may be canceled meanwhile, nobody waits: it is told to do
 * that itself.
 */
static void
test_asleep(Actor *actor, Model *model, BptLeaf *leaf)
{
	EunoEpochSlot *other;
	BptLeaf    *last = leaf;

	tap_begin("a leader that would have to sleep for another one does not");
	while (last->right != NULL)
		last = last->right;
	locked = &last->lock;
	euno_mutex_lock(locked, &test_env);
	other = lead(actor, model, leaf, sleep_twice);
	if (sleeps < 2)
		euno_lock_release_unchanged(locked, &test_env);
	CHECK(sleeps == 1 && other->answer.status == UINT32_MAX,
		  "it has slept %u times, and the status is %u", sleeps,
		  other->answer.status);
	check_all(actor, model);
	tap_end();
}

/*
 * Whoever has met others does not ask for crowded places for ever: who asks has
 * no entry go where the last one went, without a descent.
 */
static void
test_forgotten(const EunoTreeOps *ops)
{
	Case		c;

	tap_begin("%s: a crowd is forgotten", ops->name);
	case_make(&c, ops, shape_by_name("dense int8"), 2 * EUNO_CROWDS,
			  test_seed());
	c.actor.cx.delegation.crowds = EUNO_CROWDS;
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	CHECK(c.actor.cx.delegation.crowds == 0, "it still asks");
	check_all(&c.actor, &c.model);
	case_close(&c);
	tap_end();
}

int
main(void)
{
	Case		c;
	BptLeaf    *leaf;

	case_make(&c, &euno_bptree_ops, shape_by_name("sparse int8"), 2000,
			  test_seed());
	for (uint32_t i = 0; i < c.universe->n; i++)
		do_insert(&c.actor, &c.model, i);
	leaf = bpt_body(c.fixture.tree)->first;
	test_bound(&c.actor, &c.model, leaf);
	test_answer(&c.actor, &c.model, leaf);
	test_asleep(&c.actor, &c.model, leaf);
	tap_begin("a leaf that has become contended is not crowded");
	for (int i = 0; i < 2; i++)
		CHECK(write_crowded(&c.actor, &c.model, leaf),
			  "a calm leaf is not crowded");
	CHECK(euno_bptree_ops.set_mode(&c.actor.cx, c.fixture.tree, NULL, true) ==
		  EUNO_OK, "leaves cannot be contended");
	for (int i = 0; i < 2; i++)
		CHECK(!write_crowded(&c.actor, &c.model, leaf),
			  "a contended leaf is crowded");

	/* A backend's counters are cleared at the end of each transaction. */
	memset(&c.actor.cx.counters, 0, sizeof(EunoCounters));
	c.actor.cx.delegation.followed = 15;
	CHECK(write_crowded(&c.actor, &c.model, leaf),
		  "a leaf is looked at before each write");
	check_all(&c.actor, &c.model);
	tap_end();
	case_close(&c);
	test_forgotten(&euno_bptree_ops);
	test_forgotten(&euno_art_olc_ops);
	return tap_done();
}
