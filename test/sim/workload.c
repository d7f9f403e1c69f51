/*-------------------------------------------------------------------------
 *
 * workload.c
 *	  What is done to an index.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

/* Above the TIDs of all rows. */
#define OTHER_TID	(UINT64_C(1) << 40)

static const Workload *current;

/*
 * Zipf for any theta above 0, by rejection-inversion (Hörmann and Derflinger,
 * "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996).  h is the integral of x^-theta, from 1.
 */
static double
h(double theta, double x)
{
	double		log_x = log(x);

	if (fabs(1 - theta) < 1e-9)
		return log_x;
	return (exp((1 - theta) * log_x) - 1) / (1 - theta);
}

static double
h_inverse(double theta, double x)
{
	if (fabs(1 - theta) < 1e-9)
		return exp(x);
	return exp(log(1 + x * (1 - theta)) / (1 - theta));
}

static uint64_t
zipf(const Workload *workload, Random *random)
{
	double		theta = workload->theta;

	for (;;)
	{
		double		u = (double) (random_next(random) >> 11) / 9007199254740992.0;
		double		x;
		double		k;

		u = workload->zipf_n + u * (workload->zipf_x1 - workload->zipf_n);
		x = h_inverse(theta, u);
		k = floor(x + 0.5);
		if (k < 1)
			k = 1;
		else if (k > (double) workload->rows)
			k = (double) workload->rows;
		if (k - x <= workload->zipf_s ||
			u >= h(theta, k + 0.5) - pow(k, -theta))
			return (uint64_t) k - 1;
	}
}

/*
 * A permutation of 0 .. n - 1, n above 1: one of a power of two, walked in
 * cycles until it ends below n.
 */
static uint64_t
scatter(uint64_t n, uint64_t i)
{
	uint32_t	bits = 64 - (uint32_t) __builtin_clzll(n - 1);
	uint64_t	mask = (UINT64_C(1) << bits) - 1;

	do
	{
		for (int round = 0; round < 3; round++)
		{
			i = (i * UINT64_C(0x9E3779B97F4A7C15) + 12345) & mask;
			i ^= i >> (bits / 2 + 1);
		}
	} while (i >= n);
	return i;
}

/* Rows have even numbers, so that there is room between them. */
static uint64_t
key_of(const Workload *workload, uint64_t number)
{
	return workload->sparse ? number * UINT64_C(0x9E3779B97F4A7C15) : number;
}

void
workload_prepare(Workload *workload)
{
	double		theta = workload->theta;

	if (theta > 0)
	{
		workload->zipf_x1 = h(theta, 1.5) - 1;
		workload->zipf_n = h(theta, (double) workload->rows + 0.5);
		workload->zipf_s = 2 - h_inverse(theta, h(theta, 2.5) - pow(2, -theta));
	}
	current = workload;
}

uint64_t
workload_frequent(uint64_t rank)
{
	return current->scattered ? scatter(current->rows, rank) : rank;
}

uint64_t
workload_key(uint64_t i)
{
	return key_of(current, 2 * i);
}

uint64_t
workload_tid(uint64_t i)
{
	return (i / 200) << 16 | (i % 200 + 1);
}

static int
compare_rows(const void *a, const void *b)
{
	const Row  *x = a;
	const Row  *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

Row *
rows_by_key(uint64_t n, uint64_t (*key) (uint64_t i))
{
	Row		   *rows = malloc(n * sizeof(Row));

	if (rows == NULL)
	{
		fprintf(stderr, "no memory for so many rows\n");
		exit(1);
	}
	for (uint64_t i = 0; i < n; i++)
		rows[i] = (Row)
		{
			key(i), workload_tid(i)
		};
	qsort(rows, n, sizeof(Row), compare_rows);
	return rows;
}

void
worker_init(Worker *worker, Workload *workload, const Subject *subject,
			uint32_t number)
{
	memset(worker, 0, sizeof(*worker));
	worker->workload = workload;
	worker->subject = subject;
	worker->number = number;
	worker->random.state = UINT64_C(77) * number + 1 +
		((uint64_t) workload->seed << 32);
}

/* An old row, by the workload's distribution. */
static uint64_t
draw_row(Worker *worker)
{
	Workload   *workload = worker->workload;
	uint64_t	row;

	if (workload->affine_percent > 0 &&
		random_below(&worker->random, 100) < workload->affine_percent)
		return random_next(&worker->random) % (workload->rows / worker->shares) +
			workload->rows / worker->shares * worker->share;
	if (workload->theta <= 0)
		return random_next(&worker->random) % workload->rows;
	row = zipf(workload, &worker->random);
	return workload->scattered ? scatter(workload->rows, row) : row;
}

static uint64_t
choose_row(Worker *worker)
{
	return worker->nahead > 0 ? worker->ahead[--worker->nahead] : draw_row(worker);
}

void
worker_look_ahead(Worker *worker)
{
	while (worker->nahead < WORKER_AHEAD)
		worker->ahead[worker->nahead++] = draw_row(worker);
}

Work
worker_choose(Worker *worker)
{
	Workload   *workload = worker->workload;
	bool		write = workload->roles ? worker->number % 2 == 1 :
		random_below(&worker->random, 100) < workload->write_percent;

	if (!write)
		return WORK_LOOKUP;
	return workload->inserts == INSERTS_TOGGLED ? WORK_TOGGLE : WORK_INSERT;
}

static bool
do_insert(Worker *worker)
{
	Workload   *workload = worker->workload;
	uint64_t	number;

	if (workload->inserts == INSERTS_ASCENDING)
	{
		number = workload->rows +
			__atomic_fetch_add(&workload->ascending, 1, __ATOMIC_RELAXED);
		return worker->subject->insert(worker->number,
									   key_of(workload, 2 * number),
									   workload_tid(number));
	}
	/* As many new keys as old ones fit in between. */
	if (workload->affine_percent > 0)
	{
		uint64_t	part = workload->rows / worker->shares;

		number = worker->inserted++ * worker->peers + worker->rank;
		number = scatter(part, number % part) + part * worker->share;
	}
	else
	{
		number = worker->inserted++ * workload->threads + worker->number;
		number = scatter(workload->rows, number % workload->rows);
	}
	return worker->subject->insert(worker->number,
								   key_of(workload, 2 * number + 1),
								   workload_tid(number));
}

static bool
do_toggle(Worker *worker)
{
	uint64_t	tid = OTHER_TID + worker->number;

	worker->toggled = !worker->toggled;
	if (!worker->toggled)
		return worker->subject->remove(worker->number, worker->toggled_key, tid);
	worker->toggled_key = workload_key(choose_row(worker));
	return worker->subject->insert(worker->number, worker->toggled_key, tid);
}

void
worker_do(Worker *worker, Work work)
{
	uint64_t	row;
	bool		done = false;

	switch (work)
	{
		case WORK_LOOKUP:
			row = choose_row(worker);
			done = worker->subject->lookup(worker->number, workload_key(row),
										   workload_tid(row));
			break;
		case WORK_INSERT:
			done = do_insert(worker);
			break;
		case WORK_TOGGLE:
			done = do_toggle(worker);
			break;
	}
	if (!done)
	{
		fprintf(stderr, "%s: an operation went wrong\n", worker->subject->name);
		exit(1);
	}
}
