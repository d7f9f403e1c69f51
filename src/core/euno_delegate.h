/*-------------------------------------------------------------------------
 *
 * euno_delegate.h
 *	  Writes of one crowded place, performed by one process for all.
 *
 * The protocol, and why it is safe, is in src/README.md ("Delegation").  After
 * "Flat Combining" (Hendler et al., SPAA 2010) and the delegation of "Robust
 * Performance of Main Memory Data Structures by Configuration" (SIGMOD 2020,
 * section 4).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_DELEGATE_H
#define EUNO_DELEGATE_H

#include "core/euno_core.h"

/* Places share queues, which costs time only.  Tests have one. */
#ifndef EUNO_QUEUES
#define EUNO_QUEUES	32
#endif

/* The longest key plus payload that is delegated. */
#define EUNO_REQUEST_BYTES	64

/*
 * What a process wants done.  Its process writes it before it is in a queue,
 * and afterwards only "sleeps".  With up to 28 bytes of key and payload, all but
 * the guard is in the first line, which the leader fetches ahead; nobody looks
 * at it while it waits.
 */
typedef struct EunoRequest
{
	uint64_t	next;			/* the request that was in the queue before */
	uint64_t	tree;
	uint64_t	tid;
	uint16_t	keylen;
	uint16_t	payloadlen;
	uint8_t		removes;
	uint8_t		no_split;
	uint8_t		want_leaf;
	uint32_t	sleeps;			/* its process has to be woken */
	uint8_t		bytes[EUNO_REQUEST_BYTES];	/* key, payload */
	uint64_t	guard;			/* address of the guard's word, or 0 */
	uint64_t	guard_expected;
} __attribute__((aligned(128))) EunoRequest;

/* What has become of it: the line that its process looks at while it waits. */
typedef struct EunoAnswer
{
	uint32_t	state;			/* see euno_delegate.c */
	uint32_t	status;			/* EunoStatus, or that it was refused */
	uint32_t	leaf;			/* with "want_leaf" */
	uint32_t	nudge[2];		/* slots + 1 whose processes this one has to
								 * wake; 0: none */
} __attribute__((aligned(128))) EunoAnswer;

/* The newest request, or what euno_delegate.c says. */
typedef struct EunoQueue
{
	uint64_t	head;
} __attribute__((aligned(128))) EunoQueue;

/* An operation to be delegated. */
typedef struct EunoWish
{
	const EunoTreeOps *ops;
	const EunoEntry *entry;
	bool		removes;		/* else inserts */
	bool		no_split;
	const EunoGuard *guard;		/* may be NULL */
} EunoWish;

extern bool euno_delegate(EunoContext *cx, EunoTree *tree, uint64_t place,
						  const void *where, const EunoWish *wish,
						  EunoStatus *status);

/* Where a context notes that a place is crowded. */
static inline const void **
euno_crowd(EunoContext *cx, const void *where)
{
	return &cx->delegation.crowded[((uintptr_t) where >> 12) % EUNO_CROWDED];
}

/* Has there been company at this place?  "where" is only compared. */
static inline bool
euno_is_crowded(EunoContext *cx, const void *where)
{
	return *euno_crowd(cx, where) == where || cx->delegation.always;
}

/*
 * Turns in a row without company before the edge of a tree is crowded no more:
 * sooner than elsewhere, for whoever writes there is at it with each write.
 */
#define EUNO_EDGE_ALONE		4

static inline bool
euno_edge_is_left(const EunoContext *cx)
{
	return cx->delegation.alone >= EUNO_EDGE_ALONE;
}

#endif							/* EUNO_DELEGATE_H */
