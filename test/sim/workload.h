/*-------------------------------------------------------------------------
 *
 * workload.h
 *	  What is done to an index, by whatever runs it: the simulated machine, or
 *	  threads of this one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "env.h"
#include "machine.h"

typedef enum Inserts
{
	INSERTS_RANDOM,				/* new keys anywhere between the old ones */
	INSERTS_ASCENDING,			/* new keys above all others, from one counter */
	INSERTS_TOGGLED				/* a second TID of a key, removed by the next */
} Inserts;

typedef struct Workload
{
	uint64_t	rows;			/* that are there from the start */
	bool		sparse;			/* keys all over 64 bits, else neighbors */
	double		theta;			/* 0 = uniform */
	bool		scattered;		/* Zipf: hot keys are not neighbors */
	uint32_t	write_percent;
	bool		roles;			/* odd threads only write, even ones only read */
	Inserts		inserts;
	uint32_t	affine_percent; /* of the lookups are in the worker's share of
								 * the keys, and if any, all random inserts */
	uint32_t	threads;
	uint32_t	seed;			/* of all random numbers */
	uint64_t	ascending;		/* INSERTS_ASCENDING: keys given out */
	double		zipf_x1;		/* see workload.c */
	double		zipf_n;
	double		zipf_s;
} Workload;

/* One structure that can be put to work; its functions return false if not. */
typedef struct Subject
{
	const char *name;
	const char *work;			/* whose calibrated "work" it takes */
	void		(*load) (uint64_t rows, uint64_t (*key) (uint64_t i));
	bool		(*lookup) (uint32_t thread, uint64_t key, uint64_t tid);
	bool		(*insert) (uint32_t thread, uint64_t key, uint64_t tid);
	bool		(*remove) (uint32_t thread, uint64_t key, uint64_t tid);
	uint64_t	(*restarts) (void); /* of operations, since the load */
	void		(*round) (double seconds);	/* ends a round of the launcher's;
											 * NULL: there is none */
} Subject;

extern const Subject *subject_named(const char *name);

/* So many rows a worker may choose ahead. */
#define WORKER_AHEAD	500

/* One thread's part. */
typedef struct Worker
{
	Workload   *workload;
	const Subject *subject;
	uint32_t	number;
	uint32_t	share;			/* its part of the keys, of so many */
	uint32_t	shares;
	uint32_t	rank;			/* among the workers with this share */
	uint32_t	peers;			/* how many these are */
	Random		random;
	uint64_t	ahead[WORKER_AHEAD];	/* rows chosen ahead, used from the end */
	uint32_t	nahead;
	uint64_t	inserted;		/* INSERTS_RANDOM: how many */
	bool		toggled;		/* the key below has a second TID of ours */
	uint64_t	toggled_key;
} Worker;

/* Sets what follows from the other fields. */
extern void workload_prepare(Workload *workload);

/* The key of row i; "workload" is that of the last workload_prepare. */
extern uint64_t workload_key(uint64_t i);
/* The row that is asked for most often (0), next to that (1), and so on. */
extern uint64_t workload_frequent(uint64_t rank);
extern uint64_t workload_tid(uint64_t i);

/* A row, and the first "n" of them by their keys; for the caller to free. */
typedef struct Row
{
	uint64_t	key;
	uint64_t	value;			/* TID */
} Row;

extern Row *rows_by_key(uint64_t n, uint64_t (*key) (uint64_t i));

extern void worker_init(Worker *worker, Workload *workload,
						const Subject *subject, uint32_t number);

/*
 * Chooses as many rows ahead as there is room for, so that what follows does
 * not take the time of it.
 */
extern void worker_look_ahead(Worker *worker);

/* What the worker will do next ... */
extern Work worker_choose(Worker *worker);

/* ... and does. */
extern void worker_do(Worker *worker, Work work);

#endif							/* WORKLOAD_H */
