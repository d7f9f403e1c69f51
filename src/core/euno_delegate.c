/*-------------------------------------------------------------------------
 *
 * euno_delegate.c
 *	  Writes of one crowded place, performed by one process for all.
 *
 * See euno_delegate.h, and src/README.md ("Delegation").
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_epoch.h"
#include "core/euno_shared.h"

/* After so many requests the leader hands the queue to one who is awake. */
#ifndef EUNO_LEADER_REQUESTS
#define EUNO_LEADER_REQUESTS	64
#endif

/* The same, to the next one even if he sleeps. */
#define EUNO_LEADER_MOST		(4 * EUNO_LEADER_REQUESTS)

/* Answers that are written at once. */
#define EUNO_ANSWERS			8

/* The same, to sleepers. */
#define EUNO_ASLEEP				16

/* Pauses before a process sleeps, at most and at least; between two looks. */
#ifndef EUNO_PATIENCE
#define EUNO_PATIENCE			8192
#define EUNO_PATIENCE_LEAST		64
#define EUNO_LOOK_PAUSES		32
#endif

/* Sleeps before the most is tried again. */
#define EUNO_PATIENCE_AGAIN		64

/* Sleeps that end without news before a process takes the queue's requests. */
#define EUNO_DELEGATE_NAPS		2

/* Operations that go the ordinary way after that. */
#define EUNO_DELEGATE_SHUN		1000

/* Turns in a row without company before a place is crowded no more. */
#define EUNO_DELEGATE_ALONE		16

/* Of a queue: nobody; or a leader, and no request that has not been taken. */
#define QUEUE_IDLE		UINT64_C(0)
#define QUEUE_LED		UINT64_C(1)

/* States of an answer. */
#define ANSWER_NONE		0U		/* its process waits */
#define ANSWER_DONE		1U
#define ANSWER_LEAD		2U		/* its process is to lead the queue */

/* The status of a request that its process must perform itself. */
#define REFUSED			UINT32_MAX

/* What awaiting has come to. */
typedef enum Awaited
{
	AWAITED_SPINNING,
	AWAITED_ASLEEP,
	AWAITED_NOTHING				/* for long */
} Awaited;

/* What has become of a request; not written yet. */
typedef struct Outcome
{
	uint32_t	slot;
	uint32_t	status;
	uint32_t	leaf;
} Outcome;

/*
 * A leader should not sleep for a node on behalf of another process: that one
 * may be canceled, and the leader would not notice.  So requests are performed
 * in an environment that says "canceled" as soon as the leader has slept, and
 * the other process has to do it itself.
 */
static _Thread_local const EunoEnvironment *own_env;
static _Thread_local bool slept;

static void
leader_wait(uint32_t *word, uint32_t seen)
{
	own_env->wait(word, seen);
	slept = true;
}

static bool
leader_slept(void)
{
	return slept;
}

/* What a leader works with. */
typedef struct Leader
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoWish *wish;
	EunoQueue  *queue;
	uint32_t	served;			/* requests */
	uint32_t	nanswers;
	uint32_t	nasleep;
	Outcome		answers[EUNO_ANSWERS];	/* to those who were awake */
	Outcome		asleep[EUNO_ASLEEP];	/* to those who were not */
} Leader;

static inline EunoEpochSlot *
slot_of(const EunoContext *cx, uint32_t slot)
{
	return &cx->process->epochs->slots[slot];
}

/*
 * How long a process stays awake: as long as has been of use lately.  Spinning
 * is what keeps a crowd fast, and a waste where there are more processes than
 * processors; then it is tried again once in a while.
 */
static uint32_t
patience_of(EunoDelegation *my)
{
	if (my->patience == 0 ||
		(my->patience <= EUNO_PATIENCE_LEAST &&
		 ++my->sleeps % EUNO_PATIENCE_AGAIN == 0))
		my->patience = EUNO_PATIENCE;
	return my->patience < EUNO_PATIENCE_LEAST ? EUNO_PATIENCE_LEAST :
		my->patience;
}

/* Staying awake was of use, and so many pauses were enough. */
static void
learn_patience(EunoDelegation *my, uint32_t spent)
{
	uint32_t	enough = 4 * spent + EUNO_PATIENCE / 4;

	if (enough > EUNO_PATIENCE)
		enough = EUNO_PATIENCE;
	my->patience = (7 * my->patience + enough) / 8;
}

/*
 * Waits until *word is not 0, first awake; before it sleeps it sets *sleeps.
 * Who sets the word looks at *sleeps afterwards; with a full barrier in
 * between on both sides, at least one sees the other.
 */
static Awaited
await(EunoContext *cx, uint32_t *word, uint32_t *sleeps)
{
	uint32_t	patience = patience_of(&cx->delegation);
	uint32_t	step = 1;
	Awaited		result = AWAITED_NOTHING;

	for (uint32_t spent = 0; spent < patience; spent += step)
	{
		for (uint32_t i = 0; i < step; i++)
			euno_pause();
		if (euno_load32_full(word) != 0)
		{
			learn_patience(&cx->delegation, spent);
			return AWAITED_SPINNING;
		}
		if (step < EUNO_LOOK_PAUSES)
			step *= 2;
	}
	cx->delegation.patience = patience / 2;
	(void) euno_exchange32_full(sleeps, 1);
	euno_fence_after_rmw();
	for (uint32_t naps = 0; naps <= EUNO_DELEGATE_NAPS; naps++)
	{
		if (euno_load32_full(word) != 0)
		{
			result = AWAITED_ASLEEP;
			break;
		}
		if (naps < EUNO_DELEGATE_NAPS)
			cx->env->wait(word, 0);
	}
	euno_store32(sleeps, 0);
	return result;
}

static EunoStatus
perform(EunoContext *cx, EunoTree *tree, const EunoWish *wish)
{
	return wish->removes ?
		wish->ops->remove(cx, tree, wish->entry, wish->guard) :
		wish->ops->insert(cx, tree, wish->entry, wish->no_split);
}

/* Performs a request that has been taken. */
static void
perform_request(Leader *leader, const EunoRequest *request, Outcome *outcome)
{
	EunoContext *cx = leader->cx;
	uint8_t		bytes[EUNO_REQUEST_BYTES + 8];
	EunoGuard	guard;
	EunoEntry	entry;
	EunoWish	wish = {.ops = leader->wish->ops,.entry = &entry};
	EunoEnvironment env;
	EunoStatus	status;

	if (euno_load64(&request->tree) != (uintptr_t) leader->tree)
	{
		outcome->status = REFUSED;
		return;
	}
	entry.keylen = euno_load16(&request->keylen);
	entry.payloadlen = euno_load16(&request->payloadlen);
	entry.tid = euno_load64(&request->tid);
	euno_copy_out(bytes, request->bytes, entry.keylen + entry.payloadlen);
	entry.key = bytes;
	entry.payload = bytes + entry.keylen;
	wish.removes = euno_load8(&request->removes) != 0;
	wish.no_split = euno_load8(&request->no_split) != 0;
	if (wish.removes && euno_load64(&request->guard) != 0)
	{
		guard.word = (const uint64_t *) (uintptr_t) euno_load64(&request->guard);
		guard.expected = euno_load64(&request->guard_expected);
		wish.guard = &guard;
	}
	cx->want_leaf = euno_load8(&request->want_leaf) != 0;
	cx->leaf = 0;
	EUNO_HOOK(EUNO_HOOK_REQUEST, request, 1);
	env = *cx->env;
	env.wait = leader_wait;
	env.canceled = leader_slept;
	own_env = cx->env;
	cx->env = &env;
	slept = false;
	status = perform(cx, leader->tree, &wish);
	cx->env = own_env;

	/* A leader that is canceled itself need not wait to allocate. */
	if (status == EUNO_CANCELED ||
		(status == EUNO_NO_MEMORY && euno_is_canceled(own_env)))
		outcome->status = REFUSED;
	else
		outcome->status = (uint32_t) status;
	outcome->leaf = cx->leaf;
}

/* Writes all of an answer but its state; returns it. */
static EunoAnswer *
write_answer(Leader *leader, const Outcome *outcome, uint32_t nudge1,
			 uint32_t nudge2)
{
	EunoAnswer *answer = &slot_of(leader->cx, outcome->slot)->answer;

	euno_store32(&answer->status, outcome->status);
	euno_store32(&answer->leaf, outcome->leaf);
	euno_store32(&answer->nudge[0], nudge1);
	euno_store32(&answer->nudge[1], nudge2);
	return answer;
}

/*
 * Writes the answers to those who were awake.  Some at once: the lines are
 * waited for together, by the first atomic operation that follows.
 */
static void
answer_all(Leader *leader)
{
	EunoContext *cx = leader->cx;
	uint32_t	n = leader->nanswers;

	for (uint32_t i = 0; i < n; i++)
	{
		EunoAnswer *answer = write_answer(leader, &leader->answers[i], 0, 0);

		if (i + 1 < n)
			euno_store32_release(&answer->state, ANSWER_DONE);
		else
			(void) euno_exchange32_full(&answer->state, ANSWER_DONE);
	}
	euno_fence_after_rmw();
	for (uint32_t i = 0; i < n; i++)
	{
		EunoEpochSlot *slot = slot_of(cx, leader->answers[i].slot);

		if (euno_load32(&slot->request.sleeps) != 0)
			cx->env->wake(&slot->answer.state);
	}
	leader->nanswers = 0;
}

/*
 * The same to those who sleep.  To wake one takes longer than to perform a
 * request, so the leader wakes one of them, and each of them two.  Who is not
 * woken, because another one is stopped, wakes up by itself.
 */
static void
answer_sleepers(Leader *leader)
{
	EunoContext *cx = leader->cx;
	uint32_t	n = leader->nasleep;

	for (uint32_t i = n; i-- > 0;)
	{
		uint32_t	k = 2 * i + 1;
		EunoAnswer *answer =
			write_answer(leader, &leader->asleep[i],
						 k < n ? leader->asleep[k].slot + 1 : 0,
						 k + 1 < n ? leader->asleep[k + 1].slot + 1 : 0);

		euno_store32_release(&answer->state, ANSWER_DONE);
	}
	if (n > 0)
		cx->env->wake(&slot_of(cx, leader->asleep[0].slot)->answer.state);
	leader->nasleep = 0;
}

/* Wakes those whom the leader has left to this process. */
static void
nudge(EunoContext *cx, const EunoAnswer *answer)
{
	for (uint32_t k = 0; k < 2; k++)
	{
		uint32_t	slot = euno_load32(&answer->nudge[k]);

		if (slot > 0)
			cx->env->wake(&slot_of(cx, slot - 1)->answer.state);
	}
}

/* Has the process of a request lead the queue from now on. */
static void
hand_over(Leader *leader, EunoEpochSlot *slot)
{
	answer_all(leader);
	(void) euno_exchange32_full(&slot->answer.state, ANSWER_LEAD);
	euno_fence_after_rmw();
	if (euno_load32(&slot->request.sleeps) != 0)
		leader->cx->env->wake(&slot->answer.state);
}

/* What a queue's word or a request's "next" leads to; NULL: nothing. */
static EunoEpochSlot *
request_of(const EunoContext *cx, uint64_t word)
{
	return word == QUEUE_LED ? NULL : slot_of(cx, (uint32_t) word - 2);
}

/*
 * Performs the requests of a list, and refuses those for other trees.  After
 * enough of both it has somebody else lead, and returns true.
 */
static bool
serve_list(Leader *leader, EunoEpochSlot *slot, bool may_hand_over)
{
	EunoContext *cx = leader->cx;

	while (slot != NULL)
	{
		EunoRequest *request = &slot->request;
		EunoEpochSlot *next = request_of(cx, euno_load64(&request->next));
		Outcome		outcome = {.slot = (uint32_t) (slot - slot_of(cx, 0))};
		bool		asleep;

		if (next != NULL)
			euno_prefetch(&next->request);
		asleep = euno_load32(&request->sleeps) != 0;
		if (may_hand_over &&
			leader->served >= (asleep ? EUNO_LEADER_MOST : EUNO_LEADER_REQUESTS))
		{
			hand_over(leader, slot);
			return true;
		}
		perform_request(leader, request, &outcome);
		leader->served++;
		if (asleep)
			leader->asleep[leader->nasleep++] = outcome;
		else
			leader->answers[leader->nanswers++] = outcome;
		if (leader->nanswers == EUNO_ANSWERS)
			answer_all(leader);
		if (leader->nasleep == EUNO_ASLEEP)
			answer_sleepers(leader);
		slot = next;
	}
	answer_all(leader);
	return false;
}

/*
 * Performs the wish, then the requests of a list and of the queue, until there
 * are none or somebody else leads.
 */
static EunoStatus
lead(Leader *leader, EunoEpochSlot *list)
{
	EunoContext *cx = leader->cx;
	uint64_t   *head = &leader->queue->head;
	bool		want_leaf = cx->want_leaf;
	EunoStatus	status;
	uint32_t	leaf;

	cx->delegation.leading = true;
	status = perform(cx, leader->tree, leader->wish);
	leaf = cx->leaf;
	while (!serve_list(leader, list, true))
	{
		uint64_t	word = QUEUE_LED;

		if (euno_load64(head) == QUEUE_LED &&
			euno_cas64_full(head, &word, QUEUE_IDLE))
			break;
		list = request_of(cx, euno_exchange64_full(head, QUEUE_LED));
	}
	answer_sleepers(leader);	/* somebody else leads already, or nobody */
	cx->want_leaf = want_leaf;
	cx->leaf = leaf;
	cx->delegation.leading = false;
	return status;
}

/*
 * The leader has not been heard of for long: performs the requests that it has
 * not taken.  When these were many, those that have come since are left to
 * their processes, who stand in as well.
 */
static void
stand_in(Leader *leader)
{
	EunoContext *cx = leader->cx;
	uint64_t   *head = &leader->queue->head;
	bool		want_leaf = cx->want_leaf;
	uint64_t	word = euno_load64(head);

	leader->served = 0;
	while (word != QUEUE_IDLE && word != QUEUE_LED &&
		   leader->served < EUNO_LEADER_MOST)
	{
		if (!euno_cas64_full(head, &word, QUEUE_LED))
			continue;
		cx->delegation.leading = true;
		(void) serve_list(leader, request_of(cx, word), false);
		answer_sleepers(leader);
		cx->delegation.leading = false;
	}
	cx->want_leaf = want_leaf;
	cx->delegation.shun = EUNO_DELEGATE_SHUN;
}

/* Writes the request of this process. */
static void
write_request(Leader *leader, EunoEpochSlot *slot)
{
	const EunoWish *wish = leader->wish;
	const EunoEntry *entry = wish->entry;
	EunoRequest *request = &slot->request;

	euno_store64(&request->tree, (uintptr_t) leader->tree);
	euno_store64(&request->tid, entry->tid);
	euno_store16(&request->keylen, (uint16_t) entry->keylen);
	euno_store16(&request->payloadlen, (uint16_t) entry->payloadlen);
	euno_store8(&request->removes, wish->removes);
	euno_store8(&request->no_split, wish->no_split);
	euno_store8(&request->want_leaf, leader->cx->want_leaf);
	if (entry->keylen > 0)
		euno_copy_in(request->bytes, entry->key, entry->keylen);
	if (entry->payloadlen > 0)
		euno_copy_in(request->bytes + entry->keylen, entry->payload,
					 entry->payloadlen);
	if (wish->removes)
	{
		euno_store64(&request->guard,
					 wish->guard != NULL ? (uintptr_t) wish->guard->word : 0);
		euno_store64(&request->guard_expected,
					 wish->guard != NULL ? wish->guard->expected : 0);
	}
	euno_store32(&slot->answer.state, ANSWER_NONE);
}

/*
 * Waits for what becomes of the request, which is in the queue.  False: it has
 * been refused.
 */
static bool
follow(Leader *leader, EunoEpochSlot *slot, EunoStatus *status)
{
	EunoContext *cx = leader->cx;
	Awaited		how;
	bool		asleep = false;	/* it was, for a while */
	uint32_t	done;

	for (;;)
	{
		how = await(cx, &slot->answer.state, &slot->request.sleeps);
		asleep |= how != AWAITED_SPINNING;
		if (how != AWAITED_NOTHING)
			break;
		stand_in(leader);
	}
	if (euno_load32_full(&slot->answer.state) == ANSWER_LEAD)
	{
		*status = lead(leader, request_of(cx, euno_load64(&slot->request.next)));
		return true;
	}
	if (asleep)
		nudge(cx, &slot->answer);
	done = euno_load32(&slot->answer.status);
	if (done == REFUSED)
		return false;
	*status = (EunoStatus) done;
	if (cx->want_leaf)
		cx->leaf = euno_load32(&slot->answer.leaf);
	cx->counters.delegated++;
	cx->delegation.followed++;
	return true;
}

/*
 * Puts the request into the queue.  False: the queue was idle, and this
 * process leads it now.
 */
static bool
enqueue(Leader *leader, EunoEpochSlot *slot, uint32_t number)
{
	uint64_t	word = QUEUE_IDLE;
	bool		written = false;

	while (!euno_cas64_full(&leader->queue->head, &word,
							word == QUEUE_IDLE ? QUEUE_LED : number + 2))
	{
		if (word == QUEUE_IDLE)
			continue;
		if (!written)
			write_request(leader, slot);
		written = true;
		euno_store64(&slot->request.next, word);
	}
	return word != QUEUE_IDLE;
}

static EunoQueue *
queue_of(EunoEpochs *epochs, EunoTree *tree, uint64_t place)
{
	uint64_t	hash = ((uintptr_t) tree >> 6 ^ place) *
		UINT64_C(0x9E3779B97F4A7C15);

	return &epochs->queues[(hash >> 32) % EUNO_QUEUES];
}

/*
 * Has an operation performed by whoever leads at this place, or performs it
 * and those of others.  To be called within an epoch, with nothing locked.
 * False, and nothing has been done: do it the ordinary way, as always in
 * COMPARE order.
 *
 * "where" is what euno_is_crowded is asked about: it is crowded from now on,
 * until there has been no company for a while.
 */
bool
euno_delegate(EunoContext *cx, EunoTree *tree, uint64_t place,
			  const void *where, const EunoWish *wish, EunoStatus *status)
{
	EunoDelegation *my = &cx->delegation;
	EunoEpochSlot *slot = slot_of(cx, cx->process->slot);
	Leader		leader;

	if (my->leading || tree->config.order != EUNO_ORDER_BYTES ||
		wish->entry->keylen + wish->entry->payloadlen > EUNO_REQUEST_BYTES)
		return false;
	if (my->shun > 0)
	{
		my->shun--;
		return false;
	}
	leader.cx = cx;
	leader.tree = tree;
	leader.wish = wish;
	leader.queue = queue_of(cx->process->epochs, tree, place);
	leader.served = leader.nanswers = leader.nasleep = 0;
	*euno_crowd(cx, where) = where;
	my->crowds = EUNO_CROWDS;
	if (enqueue(&leader, slot, cx->process->slot))
	{
		my->alone = 0;
		return follow(&leader, slot, status);
	}
	*status = lead(&leader, NULL);
	my->alone = leader.served == 0 ? my->alone + 1 : 0;
	if (my->alone >= EUNO_DELEGATE_ALONE)
		*euno_crowd(cx, where) = NULL;
	return true;
}
