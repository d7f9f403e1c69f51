/*-------------------------------------------------------------------------
 *
 * history.c
 *	  Is what some threads saw what a set would have shown them?
 *
 * The search of Wing and Gong, "Testing and verifying concurrent objects"
 * (1993), remembering where it has been in vain (Lowe, 2017).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "history.h"

#define MEMO_SIZE (1U << 16)

typedef struct Memo
{
	uint64_t	done;
	Set			set;
	uint64_t	generation;
} Memo;

static Memo memo[MEMO_SIZE];
static uint64_t generation;

void
history_init(History *history)
{
	history->clock = 0;
	history->n = 0;
	history->too_long = false;
}

void
history_add(History *history, const Operation *operation)
{
	if (history->n < MAX_OPERATIONS)
		history->operations[history->n++] = *operation;
	else
		history->too_long = true;
}

/* Has the search been here?  From now on it has, if there is room. */
static bool
been_here(uint64_t done, Set set)
{
	uint64_t	h = (done * UINT64_C(0x9E3779B97F4A7C15)) ^
		(set * UINT64_C(0xC2B2AE3D27D4EB4F));

	for (uint32_t k = 0; k < 8; k++)
	{
		Memo	   *m = &memo[((h >> 40) + k) % MEMO_SIZE];

		if (m->generation == generation && m->done == done && m->set == set)
			return true;
		if (m->generation != generation)
		{
			*m = (Memo)
			{
				done, set, generation
			};
			return false;
		}
	}
	return false;
}

static bool
search(const History *history, uint64_t done, Set set)
{
	uint32_t	first_ret = UINT32_MAX;
	bool		all = true;

	if (been_here(done, set))
		return false;
	for (uint32_t i = 0; i < history->n; i++)
	{
		if (done >> i & 1)
			continue;
		all = false;
		if (history->operations[i].ret < first_ret)
			first_ret = history->operations[i].ret;
	}
	if (all)
		return true;
	for (uint32_t i = 0; i < history->n; i++)
	{
		const Operation *op = &history->operations[i];

		if ((done >> i & 1) == 0 && op->call < first_ret &&
			(set & op->mask) == op->seen &&
			search(history, done | UINT64_C(1) << i,
				   (set | op->set) & ~op->clear))
			return true;
	}
	return false;
}

bool
history_check(const History *history, Set start)
{
	generation++;
	return !history->too_long && search(history, 0, start);
}

bool
history_check_entries(const History *history, Set start)
{
	History		one = *history;
	Set			read = 0;

	for (uint32_t i = 0; i < history->n; i++)
	{
		const Operation *op = &history->operations[i];

		if (op->set == 0 && op->clear == 0)
			read |= op->mask;
	}
	for (;; read &= read - 1)
	{
		Set			entry = read & -read;

		for (uint32_t i = 0; i < history->n; i++)
		{
			const Operation *op = &history->operations[i];

			if (op->set != 0 || op->clear != 0)
				continue;
			one.operations[i].mask = op->mask & entry;
			one.operations[i].seen = op->seen & entry;
		}
		if (!history_check(&one, start))
			return false;
		if (read == 0)
			return true;
	}
}

void
history_print(const History *history, Set start)
{
	printf("# from %llx:\n", (unsigned long long) start);
	for (uint32_t i = 0; i < history->n; i++)
	{
		const Operation *op = &history->operations[i];

		printf("# %u: %u-%u %s saw %llx of %llx, set %llx, cleared %llx\n",
			   op->thread, op->call, op->ret, op->what,
			   (unsigned long long) op->seen, (unsigned long long) op->mask,
			   (unsigned long long) op->set, (unsigned long long) op->clear);
	}
}
