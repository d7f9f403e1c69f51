/*-------------------------------------------------------------------------
 *
 * bpt_forced.c
 *	  The B+tree with its leaves forced into a mode, for tests.
 *
 * A table of functions like that of the B+tree, and of the same tree.  Before an
 * operation it may switch the mode of the leaf where that begins, as another
 * process could at any moment, so answers are the same.  Trees with the ordinary
 * table pay nothing for it.
 *
 *-------------------------------------------------------------------------
 */
#include <time.h>

#include "core/bptree/bpt.h"

/* One in this many operations on a flapping tree switches a leaf. */
#define FLAP_EVERY	6

/* One in this many of these makes it calm. */
#define FLAP_CALM	3

/* One in this many writes to a flapping tree is delegated. */
#define FLAP_CROWD	4

/* One in this many parts a leaf first. */
#define FLAP_PART	24

/* One in this many writes to a stalling tree stalls first, for so long. */
#define STALL_EVERY	200
#define STALL_NS	1000000

int			euno_forced = EUNO_FORCED_NOT;
uint64_t	euno_forced_seed;

static const EunoTreeOps *const base = &euno_bptree_ops;
static _Thread_local uint64_t choice;

/* Xorshift; a process begins somewhere else than the last one in its place. */
static bool
one_in(const EunoContext *cx, uint32_t n)
{
	if (choice == 0)
		choice = (euno_forced_seed + cx->process->slot + 1 +
				  euno_load64(&cx->process->epochs->current)) * 0x9E3779B97F4A7C15;
	choice ^= choice << 13;
	choice ^= choice >> 7;
	choice ^= choice << 17;
	return (choice >> 20) % n == 0;
}

/*
 * Keeps a leaf locked for a while, as a process does that loses its processor.
 * Nowhere else does anybody sleep with a node locked.
 */
static void
stall(EunoContext *cx, EunoTree *tree, const EunoPosition *pos)
{
	struct timespec time = {.tv_nsec = STALL_NS};
	BptImage	image;
	BptPlace	place;
	BptKey		key;

	euno_bpt_key_position(tree, pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	if (euno_bpt_seek(cx, tree, &key, false, &place) == EUNO_OK &&
		bpt_place_lock(cx, &place))
	{
		(void) nanosleep(&time, NULL);
		euno_lock_release(&place.leaf->lock, cx->env);
	}
	euno_epoch_exit(cx->process);
}

/* Nothing depends on whether it works: there may be no memory for it. */
static void
force(EunoContext *cx, EunoTree *tree, const EunoPosition *pos, bool writes)
{
	bool		contended = euno_forced == EUNO_FORCED_CONTENDED;

	cx->delegation.always = false;
	if (euno_forced == EUNO_FORCED_NOT)
		return;
	if (euno_forced == EUNO_FORCED_FLAPPING ||
		euno_forced == EUNO_FORCED_STALLING)
		cx->delegation.always = writes && one_in(cx, FLAP_CROWD);
	if (euno_forced == EUNO_FORCED_STALLING)
	{
		if (writes && one_in(cx, STALL_EVERY))
			stall(cx, tree, pos);
		return;
	}
	if (euno_forced == EUNO_FORCED_FLAPPING)
	{
		if (!one_in(cx, FLAP_EVERY))
			return;
		contended = !one_in(cx, FLAP_CALM);
	}
	else if (!writes)
		return;
	if (contended || euno_load64(&bpt_body(tree)->contended) > 0)
		(void) base->set_mode(cx, tree, pos, contended);
}

/* The same: a contention split beside an entry. */
static void
force_part(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	BptImage	image;

	if (euno_forced != EUNO_FORCED_FLAPPING || !one_in(cx, FLAP_PART))
		return;
	euno_epoch_enter(cx->process);
	euno_bpt_part_leaf(cx, tree, entry, 0, &image);
	euno_epoch_exit(cx->process);
}

static EunoStatus
forced_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
			  bool no_split)
{
	EunoPosition pos = euno_position_of(entry);

	force(cx, tree, &pos, true);
	force_part(cx, tree, entry);
	return base->insert(cx, tree, entry, no_split);
}

static EunoStatus
forced_remove(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
			  const EunoGuard *guard)
{
	EunoPosition pos = euno_position_of(entry);

	force(cx, tree, &pos, true);
	force_part(cx, tree, entry);
	return base->remove(cx, tree, entry, guard);
}

static EunoStatus
forced_contains(EunoContext *cx, EunoTree *tree, const EunoEntry *entry)
{
	EunoPosition pos = euno_position_of(entry);

	force(cx, tree, &pos, false);
	return base->contains(cx, tree, entry);
}

/* Where the next batch begins. */
static const EunoPosition *
next_position(const EunoCursor *cursor, bool forward)
{
	if (!cursor->started)
		return forward ? &cursor->lo : &cursor->hi;
	if (forward)
		return cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	return cursor->at_lo ? &cursor->lo : &cursor->left.pos;
}

static EunoStatus
forced_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
			EunoBatch *batch)
{
	force(cx, tree, next_position(cursor, forward), false);
	return base->read(cx, tree, cursor, forward, batch);
}

static uint32_t
forced_read_keys(EunoContext *cx, EunoTree *tree, const EunoPosition *positions,
				 uint32_t n, EunoBatch *batch, uint32_t *ends)
{
	force(cx, tree, &positions[0], false);
	return base->read_keys(cx, tree, positions, n, batch, ends);
}

static EunoStatus
forced_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	EunoTree   *tree = bulk->tree;
	EunoStatus	status = base->bulk_end(cx, bulk);

	if (status == EUNO_OK && (euno_forced == EUNO_FORCED_CONTENDED ||
							  euno_forced == EUNO_FORCED_FLAPPING))
		(void) base->set_mode(cx, tree, NULL, true);
	return status;
}

/*
 * Contended leaves are not merged, nor parted ones that were written to since
 * a merging came by: so that there is something to do.
 */
static EunoStatus
forced_compact(EunoContext *cx, EunoTree *tree, uint32_t how,
			   uint32_t max_leaves, uint32_t *merged)
{
	if (euno_forced != EUNO_FORCED_NOT)
		(void) base->set_mode(cx, tree, NULL, false);
	if (euno_forced == EUNO_FORCED_FLAPPING && (how & EUNO_COMPACT_BEGIN) != 0)
		(void) base->compact(cx, tree, how, UINT32_MAX, merged);
	return base->compact(cx, tree, how, max_leaves, merged);
}

EunoTreeOps euno_bptree_forced_ops;

/* Before other constructors, which may copy it. */
static void __attribute__((constructor(101)))
make_forced_ops(void)
{
	EunoTreeOps *ops = &euno_bptree_forced_ops;

	*ops = euno_bptree_ops;
	ops->insert = forced_insert;
	ops->remove = forced_remove;
	ops->contains = forced_contains;
	ops->read = forced_read;
	ops->read_keys = forced_read_keys;
	ops->bulk_end = forced_bulk_end;
	ops->compact = forced_compact;
}
