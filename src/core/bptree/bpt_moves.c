/*-------------------------------------------------------------------------
 *
 * bpt_moves.c
 *	  A record of the keys' moves between leaves.
 *
 * Predicate locks name a leaf by its number.  When a split or a merge gives
 * keys to another leaf, the locks have to follow, and that is nothing for who
 * has the leaf locked.  So the move is noted in a ring, before the leaf is
 * unlocked, and followed up by whoever next takes or checks a predicate lock
 * (src/README.md, "Serializable transactions").
 *
 * Nobody waits here.  A note that another one, of a lap earlier or later, has
 * got in the way of counts as lost.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* How often to look for a note that is being written. */
#define MOVES_PATIENCE	1000

typedef struct BptMove
{
	uint64_t	stamp;			/* 2n: note number n; 2n - 1: being written */
	uint64_t	leaves;			/* from << 32 | to */
} BptMove;

struct BptMoves
{
	uint64_t	count;			/* notes ever taken */
	uint64_t	lost;			/* notes up to this one may be missing */
	uint8_t		pad[48];
	BptMove		ring[EUNO_MOVES_MAX];
};

/*
 * Notes that keys have gone from one leaf to another.  The caller has locked
 * the leaf that had them.
 */
void
euno_bpt_move_note(EunoTree *tree, const BptLeaf *from, const BptLeaf *to)
{
	BptMoves   *moves;
	BptMove    *move;
	uint64_t	n;
	uint64_t	seen;

	/*
	 * Who wants notes makes the ring and then reads the leaf; we have locked
	 * the leaf and then look for the ring.  At least one sees the other.  (On
	 * x86 the exchange that locked the leaf was the fence.)
	 */
	euno_fence_after_rmw();
	moves = euno_load_ptr_acquire(&bpt_body(tree)->moves);
	if (moves == NULL)
		return;
	n = euno_add64(&moves->count, 1) + 1;
	move = &moves->ring[n % EUNO_MOVES_MAX];
	seen = euno_load64(&move->stamp);
	if ((seen & 1) == 0 && seen < 2 * n &&
		euno_cas64(&move->stamp, &seen, 2 * n - 1))
	{
		euno_fence_release();
		euno_store64(&move->leaves, (uint64_t) from->number << 32 | to->number);
		euno_store64_release(&move->stamp, 2 * n);
		return;
	}
	for (seen = euno_load64(&moves->lost);
		 seen < n && !euno_cas64(&moves->lost, &seen, n);)
		;
}

/* The ring, made if need be.  NULL: no memory. */
static BptMoves *
get_moves(EunoContext *cx, EunoTree *tree)
{
	BptMoves  **place = &bpt_body(tree)->moves;
	BptMoves   *moves = euno_load_ptr_acquire(place);
	BptMoves   *nobody = NULL;

	if (moves != NULL)
		return moves;
	moves = cx->env->alloc(tree->alloc_arg, cx->domain, sizeof(BptMoves));
	if (moves == NULL)
		return NULL;
	memset(moves, 0, sizeof(*moves));
	if (euno_cas_ptr(place, &nobody, moves))
	{
		euno_fence_after_rmw();	/* see euno_bpt_move_note */
		return moves;
	}
	cx->env->free(tree->alloc_arg, cx->domain, moves, sizeof(BptMoves));
	return nobody;
}

/* Copies note number n.  False if it is not there, or not yet. */
static bool
read_note(const BptMoves *moves, uint64_t n, EunoMove *to)
{
	const BptMove *move = &moves->ring[n % EUNO_MOVES_MAX];

	for (int i = 0; i < MOVES_PATIENCE; i++)
	{
		uint64_t	stamp = euno_load64_acquire(&move->stamp);
		uint64_t	leaves = euno_load64(&move->leaves);

		euno_fence_acquire();
		if (stamp == 2 * n && euno_load64(&move->stamp) == stamp)
		{
			to->from = (uint32_t) (leaves >> 32);
			to->to = (uint32_t) leaves;
			return true;
		}
		if (stamp > 2 * n)
			return false;
		euno_pause();
	}
	return false;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_bpt_moves(EunoContext *cx, EunoTree *tree, uint64_t *position,
			   EunoMove *to, uint32_t *n)
{
	BptMoves   *moves = get_moves(cx, tree);
	uint32_t	room = *n;
	uint64_t	first = *position;
	uint64_t	count;

	*n = 0;
	if (moves == NULL)
		return EUNO_NO_MEMORY;
	count = euno_load64_full(&moves->count);
	if (count == first)
		return EUNO_OK;
	if (room < EUNO_MOVES_MAX)
		return EUNO_FULL;
	*position = count;
	if (count - first > EUNO_MOVES_MAX || euno_load64(&moves->lost) > first)
		return EUNO_STALE;
	for (; first < count; first++)
	{
		if (!read_note(moves, first + 1, &to[*n]))
			return EUNO_STALE;
		(*n)++;
	}
	return EUNO_OK;
}
