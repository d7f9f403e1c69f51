/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  What an access to shared memory sees: the C11 memory model, for logical
 *	  threads.
 *
 * Memory itself always holds the latest stores.  The words (of 8 bytes) that
 * have been stored to in this run have a list of messages, from the latest
 * back to what the word held at first.
 *
 * A thread's view says, for each thread, up to which of its accesses it knows
 * what that one did and saw.  A load must not see a message older than one
 * that the thread knows to have been stored or seen (coherence).
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/euno_shared.h"
#include "coroutines.h"
#include "env.h"
#include "memory.h"

#define WORD			8
#define GRANULE			256 	/* for memory_free */
#define MAX_MESSAGES	(1U << 20)
#define MAX_VIEWS		(1U << 16)

/* A store is seen by all after so many accesses: memory is not that slow. */
#define LATEST			5000

/* So many loads of one address in a row: the last one sees the latest. */
#define SPIN_LOADS		2

/* The last clock counts sequentially consistent operations (see is_bound). */
#define FULL			MAX_COROUTINES
#define NCLOCKS			(MAX_COROUTINES + 1)

typedef struct View
{
	uint32_t	clock[NCLOCKS];
} View;

typedef struct Message
{
	uint64_t	value;			/* of the whole word, after the store */
	uint32_t	older;			/* message of this word; 0 = none */
	uint32_t	clock;			/* its author's, then; 0: before the run */
	uint32_t	read[MAX_COROUTINES];	/* a reader's clock, when it first was */
	uint32_t	full;			/* FULL's, when it first took part */
	uint32_t	step;
	uint16_t	view;			/* what comes with it */
	uint8_t		author;
	uint8_t		mask;			/* the bytes that were stored */
} Message;

typedef struct Thread
{
	View		view;
	View		acquired;		/* ... after an acquire fence */
	uint16_t	released;		/* by the last release fence: a view's number */
	const void *last;			/* loaded */
	uint32_t	repeats;
} Thread;

/* Of a word, by all threads since memory_forget. */
typedef struct Users
{
	uint8_t		all;			/* a set of threads */
	bool		changed;
	bool		shared;
} Users;

/* By what a run chooses the messages that its loads see. */
typedef enum Delay
{
	DELAY_ANY,					/* now and then any */
	DELAY_THREAD,				/* some threads see the oldest they may */
	DELAY_PLACE					/* threads see the oldest in some places */
} Delay;

uint64_t	memory_stale_loads;
uint64_t	memory_shared_words;

uint32_t	euno_model_patience = 3;	/* bpt.h */

static uint8_t *region;
static size_t region_size;
static uint32_t *latest;		/* by word: message, 0 = none in this run */
static uint64_t *touched;		/* by word, a bit: is there a message? */
static uint32_t *words;			/* those that have messages */
static uint32_t nwords;
static uint32_t (*used)[MAX_COROUTINES];	/* by granule: clocks */
static Users *users;			/* by word */
static Message *messages;		/* from 1 */
static uint32_t nmessages;
static View *views;				/* number 0 knows nothing */
static uint32_t nviews;

static bool weak;
static Thread threads[MAX_COROUTINES];
static View fences;				/* what sequentially consistent fences passed on */
static View told;
static uint32_t step;
static Delay delay;
static uint32_t patience;		/* see choose */
static uint64_t slow;
static uint32_t area;
static Random choices;

void
memory_region(void *base, size_t size)
{
	region = base;
	region_size = size;
	latest = shared_memory(size / WORD * sizeof(uint32_t));
	touched = shared_memory(size / WORD / 8 + sizeof(uint64_t));
	words = shared_memory(size / WORD * sizeof(uint32_t));
	used = shared_memory((size / GRANULE + 1) * sizeof(*used));
	users = shared_memory(size / WORD * sizeof(Users));
	messages = shared_memory(MAX_MESSAGES * sizeof(Message));
	views = shared_memory(MAX_VIEWS * sizeof(View));
}

void
memory_start(bool is_weak, uint64_t seed)
{
	for (uint32_t i = 0; i < nwords; i++)
	{
		latest[words[i]] = 0;
		touched[words[i] / 64] = 0;
	}
	nwords = nmessages = 0;
	nviews = 1;
	step = 0;
	memset(threads, 0, sizeof(threads));
	memset(&fences, 0, sizeof(fences));
	memset(&told, 0, sizeof(told));
	weak = is_weak;
	if (!weak)
		return;
	memset(used, 0, (region_size / GRANULE + 1) * sizeof(*used));
	choices.state = ~seed;
	delay = (Delay) random_below(&choices, 3);
	patience = 1U << random_below(&choices, 6);
	slow = random_next(&choices);
	area = 64U << random_below(&choices, 3);
}

static inline bool
in_region(const void *p)
{
	return (size_t) ((const uint8_t *) p - region) < region_size;
}

static inline size_t
word_of(const void *p)
{
	return (size_t) ((const uint8_t *) p - region) / WORD;
}

static inline void
join(View *to, const View *from)
{
	for (uint32_t i = 0; i < NCLOCKS; i++)
	{
		if (from->clock[i] > to->clock[i])
			to->clock[i] = from->clock[i];
	}
}

static uint16_t
new_view(const View *view)
{
	if (nviews >= MAX_VIEWS)
		coroutine_fail("the model of memory has no room for more views");
	views[nviews] = *view;
	return (uint16_t) nviews++;
}

/* The next access of the thread that runs, to n bytes of the region. */
static Thread *
next_access(const void *p, size_t n)
{
	uint32_t	me = coroutine_current();
	Thread	   *thread = &threads[me];
	size_t		at = (size_t) ((const uint8_t *) p - region);

	step++;
	thread->view.clock[me]++;
	for (size_t g = at / GRANULE; n > 0 && g <= (at + n - 1) / GRANULE; g++)
		used[g][me] = thread->view.clock[me];
	return thread;
}

static inline Message *
new_message(size_t word)
{
	Message    *message;

	if (++nmessages >= MAX_MESSAGES)
		coroutine_fail("the model of memory has no room for more stores");
	message = &messages[nmessages];
	memset(message, 0, sizeof(*message));
	message->older = latest[word];
	latest[word] = nmessages;
	return message;
}

static inline uint64_t
load_word(size_t word)
{
	uint64_t	value;

	memcpy(&value, region + word * WORD, WORD);
	return value;
}

static inline uint64_t
spread(uint8_t mask)
{
	uint64_t	bits = 0;

	for (unsigned i = 0; i < WORD; i++)
	{
		if (mask >> i & 1)
			bits |= UINT64_C(0xFF) << (8 * i);
	}
	return bits;
}

/*
 * Stores the masked bytes of "value".  "view": what comes with the message.
 */
static void
put_word(size_t word, uint8_t mask, uint64_t value, uint16_t view, bool full)
{
	uint32_t	me = coroutine_current();
	uint64_t	old = load_word(word);
	uint64_t	bits = mask == 0xFF ? UINT64_MAX : spread(mask);
	Message    *message;

	if (latest[word] == 0)
	{
		words[nwords++] = (uint32_t) word;
		touched[word / 64] |= UINT64_C(1) << word % 64;
		message = new_message(word);
		message->value = old;
		message->mask = 0xFF;
	}
	value = (old & ~bits) | (value & bits);
	memcpy(region + word * WORD, &value, WORD);
	message = new_message(word);
	message->value = value;
	message->mask = mask;
	message->author = (uint8_t) me;
	message->clock = threads[me].view.clock[me];
	message->step = step;
	message->view = view;
	message->full = full ? fences.clock[FULL] : 0;
}

/* Does the view know that the message was stored, or seen by somebody? */
static inline bool
knows(const View *view, const Message *message)
{
	if (message->clock <= view->clock[message->author])
		return true;
	for (uint32_t i = 0; i < MAX_COROUTINES; i++)
	{
		if (message->read[i] != 0 && message->read[i] <= view->clock[i])
			return true;
	}
	return false;
}

/*
 * Must the thread see this message, or a later one?
 *
 * Sequentially consistent operations take part in one order, which is that of
 * the schedule.  Such a load does not miss what such a store or load of the
 * word, or somebody before such a fence, has seen; and after such a fence no
 * load misses what a sequentially consistent operation has stored or seen
 * before the fence (C++20, [atomics.order], 4).
 */
static bool
is_bound(const Message *message, const Thread *thread, bool full)
{
	return knows(&thread->view, message) ||
		(message->full != 0 &&
		 (full || message->full <= thread->view.clock[FULL])) ||
		(full && knows(&fences, message));
}

/* The messages that a load of these bytes may see, the latest first. */
static uint32_t
candidates(size_t word, uint8_t mask, const Thread *thread, bool full,
		   Message **to, uint32_t max)
{
	uint32_t	n = 0;
	uint32_t	newer = UINT32_MAX;

	for (uint32_t i = latest[word]; i != 0 && n < max; i = messages[i].older)
	{
		Message    *message = &messages[i];

		if ((message->mask & mask) == 0)
			continue;
		if (newer + LATEST < step && newer != UINT32_MAX)
			break;
		newer = message->step;
		to[n++] = message;
		if (is_bound(message, thread, full))
			break;
	}
	return n;
}

/* Which of n messages of a word does the thread see? */
static uint32_t
choose(const Thread *thread, size_t word, uint32_t n)
{
	uint64_t	place = (uint64_t) (thread - threads);

	if (n == 1 || thread->repeats >= SPIN_LOADS)
		return 0;
	if (delay == DELAY_ANY)
		return random_below(&choices, patience) == 0 ?
			random_below(&choices, n) : 0;
	if (delay == DELAY_PLACE)
		place += MAX_COROUTINES * (1 + word * WORD / area);
	if (((place ^ slow) * UINT64_C(0x9E3779B97F4A7C15) >> 63) == 0)
		return 0;

	/* Not always, or nobody might come to an end. */
	return random_below(&choices, 32) != 0 ? n - 1 : 0;
}

static inline bool
acquires(int order)
{
	return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static inline bool
releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ||
		order == __ATOMIC_SEQ_CST;
}

/* The thread sees the message. */
static void
see(Thread *thread, Message *message, int order)
{
	uint32_t	me = coroutine_current();

	if (message->read[me] == 0)
		message->read[me] = thread->view.clock[me];
	if (order == __ATOMIC_SEQ_CST && message->full == 0)
		message->full = fences.clock[FULL];
	if (message->view == 0)
		return;
	join(&thread->acquired, &views[message->view]);
	if (acquires(order))
		join(&thread->view, &views[message->view]);
}

/* Loads the masked bytes of a word, which has messages. */
static uint64_t
get_word(size_t word, uint8_t mask, Thread *thread, int order)
{
	Message    *choice[16];
	uint32_t	n = candidates(word, mask, thread, order == __ATOMIC_SEQ_CST,
							   choice, 16);
	uint32_t	i = choose(thread, word, n);

	see(thread, choice[i], order);
	if (i == 0)
		return load_word(word);
	memory_stale_loads++;
	return choice[i]->value;
}

/* A sequentially consistent operation: the next one in their order. */
static inline void
count_full(int order)
{
	if (order == __ATOMIC_SEQ_CST)
		fences.clock[FULL]++;
}

/* What comes with a store of the thread, if it was preceded by a load. */
static uint16_t
view_to_send(const Thread *thread, int order, const Message *seen)
{
	View		view;

	if (seen == NULL || seen->view == 0)
		return releases(order) ? new_view(&thread->view) : thread->released;
	view = releases(order) ? thread->view : views[thread->released];
	join(&view, &views[seen->view]);
	return new_view(&view);
}

static inline uint8_t
mask_of(const void *p, unsigned size)
{
	return (uint8_t) (((1U << size) - 1) << (uintptr_t) p % WORD);
}

static inline uint64_t
cut(uint64_t value, const void *p, unsigned size)
{
	value >>= 8 * ((uintptr_t) p % WORD);
	return size == WORD ? value : value & ((UINT64_C(1) << (8 * size)) - 1);
}

/* Copies of fixed sizes: others stall whoever reads the whole word next. */
static inline uint64_t
plain_load(const void *p, unsigned size)
{
	uint64_t	value = 0;

	switch (size)
	{
		case 1:
			memcpy(&value, p, 1);
			return value & 0xFF;
		case 2:
			memcpy(&value, p, 2);
			return value & 0xFFFF;
		case 4:
			memcpy(&value, p, 4);
			return value & UINT32_MAX;
		default:
			memcpy(&value, p, 8);
			return value;
	}
}

uint64_t
euno_model_load(const void *p, unsigned size, int order)
{
	Thread	   *thread;
	size_t		word = word_of(p);

	if (!in_region(p))
		return plain_load(p, size);
	coroutine_access(EUNO_HOOK_LOAD, p, size);
	if (!weak)
		return plain_load(p, size);
	thread = next_access(p, size);
	count_full(order);
	thread->repeats = p == thread->last ? thread->repeats + 1 : 0;
	thread->last = p;
	if (latest[word] == 0)
		return plain_load(p, size);
	return cut(get_word(word, mask_of(p, size), thread, order), p, size);
}

void
euno_model_store(void *p, unsigned size, uint64_t value, int order)
{
	Thread	   *thread;

	if (in_region(p))
		coroutine_access(EUNO_HOOK_STORE, p, size);
	if (!weak || !in_region(p))
	{
		memcpy(p, &value, size);
		return;
	}
	thread = next_access(p, size);
	count_full(order);
	put_word(word_of(p), mask_of(p, size), value << (8 * ((uintptr_t) p % WORD)),
			 view_to_send(thread, order, NULL), order == __ATOMIC_SEQ_CST);
}

static uint64_t
updated(uint64_t old, EunoUpdate update, uint64_t value)
{
	switch (update)
	{
		case EUNO_UPDATE_ADD:
			return old + value;
		case EUNO_UPDATE_OR:
			return old | value;
		case EUNO_UPDATE_AND:
			return old & value;
		default:
			return value;
	}
}

/* Sees the latest and stores: a read-modify-write that succeeds. */
static void
replace(void *p, unsigned size, uint64_t value, int order, Thread *thread)
{
	size_t		word = word_of(p);
	uint8_t		mask = mask_of(p, size);
	Message    *seen = NULL;

	for (uint32_t i = latest[word]; i != 0 && seen == NULL;
		 i = messages[i].older)
	{
		if (messages[i].mask & mask)
			seen = &messages[i];
	}
	if (seen != NULL)
		see(thread, seen, order);
	put_word(word, mask, value << (8 * ((uintptr_t) p % WORD)),
			 view_to_send(thread, order, seen), order == __ATOMIC_SEQ_CST);
}

uint64_t
euno_model_update(void *p, unsigned size, EunoUpdate update, uint64_t value,
				  int order)
{
	uint64_t	old;

	if (in_region(p))
		coroutine_access(EUNO_HOOK_RMW, p, size);
	old = plain_load(p, size);
	value = updated(old, update, value);
	if (!weak || !in_region(p))
		memcpy(p, &value, size);
	else
	{
		Thread	   *thread = next_access(p, size);

		count_full(order);
		replace(p, size, value, order, thread);
	}
	return old;
}

bool
euno_model_cas(void *p, unsigned size, uint64_t *expected, uint64_t desired,
			   int order, int failure_order)
{
	uint64_t	wanted = *expected;
	Thread	   *thread;

	if (in_region(p))
		coroutine_access(EUNO_HOOK_RMW, p, size);
	*expected = plain_load(p, size);
	if (!weak || !in_region(p))
	{
		if (*expected == wanted)
			memcpy(p, &desired, size);
		return *expected == wanted;
	}
	thread = next_access(p, size);
	count_full(order);
	if (latest[word_of(p)] != 0)
	{
		Message    *choice[16];
		uint32_t	n = candidates(word_of(p), mask_of(p, size), thread,
								   order == __ATOMIC_SEQ_CST, choice, 16);
		uint32_t	i = choose(thread, word_of(p), n);
		uint64_t	value = i == 0 ? *expected : cut(choice[i]->value, p, size);

		/* It may fail because of an old value, but not succeed with one. */
		if (value == wanted && i > 0)
		{
			i = 0;
			value = *expected;
		}
		if (value != wanted)
		{
			see(thread, choice[i], failure_order);
			*expected = value;
			return false;
		}
	}
	else if (*expected != wanted)
		return false;
	replace(p, size, desired, order, thread);
	return true;
}

static void
fence(Thread *thread, int order)
{
	if (acquires(order))
		join(&thread->view, &thread->acquired);
	if (order == __ATOMIC_SEQ_CST)
	{
		fences.clock[FULL]++;
		join(&thread->view, &fences);
		join(&fences, &thread->view);
		join(&thread->acquired, &thread->view);
	}
	if (releases(order))
		thread->released = new_view(&thread->view);
}

void
euno_model_fence(int order)
{
	/* Others only notice a fence of this kind. */
	if (order == __ATOMIC_SEQ_CST)
		coroutine_access(EUNO_HOOK_RMW, region, WORD);
	if (!weak)
		return;
	fence(&threads[coroutine_current()], order);
}

/* What others pass comes after the call begins, and before it returns. */
/* A sequentially consistent fence in every thread, wherever it is. */
void
euno_model_fence_all(void)
{
	euno_model_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; weak && i < MAX_COROUTINES; i++)
		fence(&threads[i], __ATOMIC_SEQ_CST);
	euno_model_fence(__ATOMIC_SEQ_CST);
}

/*
 * Bulk copies, of single words as loads and stores without an order of their
 * own.
 */
static void
load_range(uint8_t *to, const uint8_t *from, size_t n, Thread *thread)
{
	size_t		first = word_of(from);
	size_t		end = word_of(from + n - 1) + 1;

	memcpy(to, from, n);
	for (size_t w = first; w < end; w++)
	{
		uint64_t	bits = touched[w / 64] >> w % 64;
		const uint8_t *word;
		uint32_t	a;
		uint32_t	b;
		uint64_t	value;

		if (bits == 0)
		{
			w |= 63;
			continue;
		}
		w += (size_t) __builtin_ctzll(bits);
		if (w >= end)
			break;
		word = region + w * WORD;
		a = word < from ? (uint32_t) (from - word) : 0;
		b = word + WORD > from + n ? (uint32_t) (from + n - word) : WORD;
		value = get_word(w, (uint8_t) ((1U << b) - (1U << a)), thread,
						 __ATOMIC_RELAXED);
		memcpy(to + (word + a - from), (uint8_t *) &value + a, b - a);
	}
}

static void
store_range(uint8_t *to, const uint8_t *from, size_t n, Thread *thread)
{
	for (size_t w = word_of(to); w <= word_of(to + n - 1); w++)
	{
		const uint8_t *word = region + w * WORD;
		uint32_t	a = word < to ? (uint32_t) (to - word) : 0;
		uint32_t	b = word + WORD > to + n ? (uint32_t) (to + n - word) : WORD;
		uint64_t	value = 0;

		memcpy((uint8_t *) &value + a, from + (word + a - to), b - a);
		put_word(w, (uint8_t) ((1U << b) - (1U << a)), value,
				 thread->released, false);
	}
}

void
euno_model_copy_out(void *to, const void *from, size_t n)
{
	if (in_region(from))
		coroutine_access(EUNO_HOOK_LOAD, from, n);
	if (!weak || !in_region(from) || n == 0)
		memcpy(to, from, n);
	else
		load_range(to, from, n, next_access(from, n));
}

void
euno_model_copy_in(void *to, const void *from, size_t n)
{
	if (in_region(to))
		coroutine_access(EUNO_HOOK_STORE, to, n);
	if (!weak || !in_region(to) || n == 0)
		memcpy(to, from, n);
	else
		store_range(to, from, n, next_access(to, n));
}

void
euno_model_move(void *to, const void *from, size_t n)
{
	static uint8_t buffer[64 * 1024];
	Thread	   *thread;

	if (in_region(to))
		coroutine_access(EUNO_HOOK_STORE, to, n);
	if (!weak || !in_region(to) || n == 0 || n > sizeof(buffer))
	{
		memmove(to, from, n);
		return;
	}
	thread = next_access(to, n);
	load_range(buffer, from, n, thread);
	store_range(to, buffer, n, thread);
}

void
memory_listen(void)
{
	if (weak)
	{
		join(&threads[coroutine_current()].view, &told);
		join(&threads[coroutine_current()].acquired, &told);
	}
}

void
memory_tell(void)
{
	if (weak)
		join(&told, &threads[coroutine_current()].view);
}

bool
memory_is_shared(EunoHookKind kind, const void *p, size_t n)
{
	uint8_t		me = (uint8_t) (1U << coroutine_current());
	bool		shared = false;

	for (size_t w = word_of(p); n > 0 && w <= word_of((const uint8_t *) p + n - 1); w++)
	{
		Users	   *u = &users[w];
		bool		was = u->shared;

		u->all |= me;
		u->changed |= kind != EUNO_HOOK_LOAD;
		u->shared = u->changed && (u->all & (u->all - 1)) != 0;
		memory_shared_words += u->shared && !was;
		shared = shared || u->shared;
	}
	return shared;
}

void
memory_forget(void)
{
	memset(users, 0, region_size / WORD * sizeof(Users));
	memory_shared_words = 0;
}

const char *
memory_free(void *p, size_t size)
{
	uint32_t	me = coroutine_current();
	size_t		at = (size_t) ((uint8_t *) p - region);

	for (size_t g = at / GRANULE; weak && g < (at + size) / GRANULE; g++)
	{
		for (uint32_t i = 0; i < MAX_COROUTINES; i++)
		{
			if (i != me && used[g][i] > threads[me].view.clock[i])
				return "a node is freed that somebody may still be reading";
		}
	}
	return NULL;
}
