/*-------------------------------------------------------------------------
 *
 * bpt.h
 *	  What the files of the Euno-B+Tree share.
 *
 * Layouts are in bpt_node.h, what reads a leaf in bpt_view.h, how a key gets to
 * its leaf in bpt_place.h, what makes new leaves in bpt_make.h, and what a tree
 * is asked for in bpt_ops.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_H
#define BPT_H

#include "core/bptree/bpt_ops.h"
#include "core/bptree/bpt_place.h"
#include "core/euno_epoch.h"
#include "core/euno_heat.h"

/* bpt_alphabet.c */
extern void euno_bpt_note_alphabet(BptLeaf *leaf, const uint64_t *heads,
								   uint32_t n);

/* bpt_posting.c */

/* TIDs in ascending order, as a record has them. */
typedef struct BptTidList
{
	EunoTid		first;
	uint32_t	n;
	const uint8_t *list;		/* of those after the first one; n > 1 */
	uint32_t	len;			/* of the list */
} BptTidList;

extern uint32_t euno_bpt_list_encode(const EunoTid *tids, uint32_t n,
									 uint8_t *to);
extern bool euno_bpt_list_decode(const uint8_t *list, uint32_t len,
								 EunoTid first, uint32_t n, EunoTid *tids);
extern uint32_t euno_bpt_list_step(EunoTid previous, EunoTid tid);
extern uint32_t euno_bpt_list_find(const uint8_t *list, uint32_t len,
								   EunoTid first, uint32_t n, EunoTid bound,
								   uint32_t *at, EunoTid *before,
								   EunoTid *there);
extern uint32_t euno_bpt_list_insert(const uint8_t *list, uint32_t len,
									 uint32_t at, EunoTid before, EunoTid tid,
									 uint8_t *to);
extern EunoTid euno_bpt_list_remove(uint8_t *list, uint32_t *len,
									EunoTid first, uint32_t sub);

/* bpt_leaf.c */
extern void euno_bpt_leaf_remove(BptLeaf *leaf, const BptGap *gap);
extern uint32_t euno_bpt_leaf_remove_tids(BptLeaf *leaf, const EunoTid *tids,
										  uint32_t n);

/* bpt_append.c */
extern bool euno_bpt_append(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
							const EunoEntry *entry, const BptKey *key);

/* bpt_memory.c */
extern BptLeaf *euno_bpt_leaf_alloc(EunoContext *cx, EunoTree *tree, int domain,
									size_t size, const BptFence *low);
extern size_t euno_bpt_leaf_size_for(BptFormat format, uint32_t low_len,
									  size_t body);
extern BptInner *euno_bpt_inner_alloc(EunoContext *cx, EunoTree *tree,
									  int domain, size_t size, uint8_t level);
extern void euno_bpt_inner_drop(EunoContext *cx, EunoTree *tree, int domain,
								BptInner *node);
extern void euno_bpt_retire_inner(EunoContext *cx, EunoTree *tree, int domain,
								  BptInner *node);
extern void euno_bpt_retire(EunoContext *cx, EunoTree *tree, void *node,
							size_t size, BptLimbo *limbo);
extern void euno_bpt_retire_leaf(EunoContext *cx, EunoTree *tree,
								 BptLeaf *leaf);
extern uint32_t euno_bpt_reclaim(EunoContext *cx, EunoTree *tree, bool all);
extern void euno_bpt_reclaim_all(EunoContext *cx, EunoTree *tree);
extern void euno_bpt_spare_used(EunoContext *cx);
extern void euno_bpt_spare_drop(EunoContext *cx);

/* bpt_crowd.c */
extern bool euno_bpt_crowd(EunoContext *cx, EunoTree *tree, const BptKey *key,
						   BptPlace *place, const EunoWish *wish,
						   EunoStatus *status);

/* bpt_read.c */
extern void euno_bpt_one_key(EunoBatch *batch, const uint8_t *key,
							 uint32_t len);

/* bpt_point.c */

/* The longest key that is looked up the short way. */
#define BPT_POINT_KEY		256

extern bool euno_bpt_read_key(EunoContext *cx, EunoTree *tree,
							  EunoCursor *cursor, EunoBatch *batch);

/* bpt_match.c */
extern bool euno_bpt_match_key(EunoContext *cx, EunoTree *tree,
							   EunoCursor *cursor, EunoBatch *batch);

/* bpt_directory.c */
extern bool euno_bpt_post(EunoContext *cx, EunoTree *tree, int domain,
						  BptLeaf *leaf);
extern bool euno_bpt_directory_build(EunoContext *cx, EunoTree *tree,
									 int domain);

/* bpt_log.c */
extern EunoStatus euno_bpt_log_create(EunoContext *cx, EunoTree *tree);
extern uint64_t euno_bpt_log_lag(EunoTree *tree, int domain);
extern void euno_bpt_log_forget(EunoContext *cx, EunoTree *tree,
								const BptLeaf *leaf);
extern void euno_bpt_publish(EunoContext *cx, EunoTree *tree, BptLeaf *leaf);
extern void euno_bpt_catch_up(EunoContext *cx, EunoTree *tree,
							  const BptPlace *place);

/* bpt_migrate.c */
extern int	euno_bpt_home(const EunoContext *cx, const EunoTree *tree,
						  const BptLeaf *leaf);
extern void euno_bpt_inherit_use(BptLeaf *leaf, const BptLeaf *from);
extern void euno_bpt_use_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
							  uint32_t weight);

/* bpt_moves.c */
typedef struct BptMoves BptMoves;

extern void euno_bpt_move_note(EunoTree *tree, const BptLeaf *from,
							   const BptLeaf *to);

/* bpt_annex.c, bpt_annex_read.c, bpt_mode.c: contended leaves */
struct BptShape;
struct BptAnnexCopy;

extern EunoStatus euno_bpt_annex_insert(EunoContext *cx, EunoTree *tree,
										BptPlace *place, const BptKey *key,
										const EunoEntry *entry,
										bool no_split);
extern EunoStatus euno_bpt_annex_remove(EunoContext *cx, EunoTree *tree,
										BptPlace *place, const BptKey *key,
										const EunoGuard *guard,
										bool *again);
extern EunoStatus euno_bpt_annex_contains(EunoContext *cx, BptPlace *place,
										  const BptKey *key);
extern EunoTid euno_bpt_annex_tid(const BptLeaf *leaf,
								  const struct BptShape *shape,
								  const uint8_t *suffix);
extern bool euno_bpt_annex_tids(EunoContext *cx, const BptLeaf *leaf,
								bool may_leave, EunoTid *tids, uint32_t *n);
extern uint32_t euno_bpt_annex_remove_tids(EunoContext *cx, BptLeaf *leaf,
										   const EunoTid *tids, uint32_t n);
extern EunoStatus euno_bpt_annex_snapshot(EunoContext *cx, BptPlace *place,
										  BptImage *raw, BptView *view,
										  struct BptAnnexCopy *s);
extern EunoStatus euno_bpt_gather(EunoContext *cx, EunoTree *tree,
								  BptPlace *place);
extern bool euno_bpt_annex_point(EunoContext *cx, const BptLeaf *leaf,
								 const BptKey *key, EunoBatch *batch);
extern bool euno_bpt_calm_idle(EunoContext *cx, EunoTree *tree,
							   BptLeaf *leaf);

/* bpt_part.c */
extern void euno_bpt_part_leaf(EunoContext *cx, EunoTree *tree,
							   const EunoEntry *entry,
							   uint32_t number,
							   BptImage *image) __attribute__((cold));

/* bpt_heat.c */
extern void euno_bpt_conflict(EunoContext *cx, EunoTree *tree,
							  const BptLeaf *leaf, const BptKey *key,
							  EunoCause cause) __attribute__((cold));
extern void euno_bpt_delegated(EunoContext *cx, EunoTree *tree,
							   const BptLeaf *leaf, const BptKey *key);
extern bool euno_bpt_shall_part(EunoContext *cx, EunoTree *tree,
								uint32_t leaf);
extern void euno_bpt_contended_write(EunoContext *cx, EunoTree *tree,
									 const BptLeaf *leaf, const BptKey *key);

/*
 * Tries of a write that fail before its place is crowded.  Tests make it more.
 */
#ifndef BPT_CROWD
#define BPT_CROWD				2
#endif

/*
 * Before each try of a write: may the place be crowded?  If so, see
 * euno_bpt_crowd.
 */
#define bpt_may_be_crowded(cx, tree, attempts) \
	(euno_had_crowds(cx) || (cx)->delegation.always || \
	 (attempts) >= BPT_CROWD || \
	 euno_load_ptr(&bpt_body(tree)->edge) != NULL)

/* bpt_walk.c, bpt_merge.c: what euno_context_reset gives back */
extern bool euno_bpt_walk_enter(EunoContext *cx, EunoTree *tree);
extern void euno_bpt_walk_leave(EunoContext *cx);
extern void euno_bpt_compact_leave(EunoContext *cx);

/*
 * Adds to the number of entries, on a cache line that few processes write, and
 * none of another domain.  To be called before the leaf is unlocked (see
 * bpt_verify.c).
 */
static inline void
bpt_count(EunoContext *cx, EunoTree *tree, int64_t change)
{
	BptBody    *body = bpt_body(tree);
	uint32_t	slot = cx->process->slot;
	uint32_t	n = tree->config.nparts;
	uint32_t	share = BPT_STRIPES / n;
	uint32_t	stripe = n == 1 ? slot % BPT_STRIPES :
		(uint32_t) cx->domain % n * share + slot % share;

	/* A process has a word of its own in each domain, or in none. */
	euno_counter_add(&body->stripes[stripe].entries, slot < share, change);
	if (change < 0)
		cx->counters.removals += (uint64_t) -change;
}

/*
 * euno_lock_read_or_leave of a leaf, for an operation on a key.  Notes the
 * conflict if it was locked.
 */
static inline bool
bpt_leaf_read(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
			  const BptKey *key, uint64_t *version)
{
	uint64_t	word = euno_load64_acquire(&leaf->lock.word);

	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
	{
		euno_bpt_conflict(cx, tree, leaf, key, EUNO_CAUSE_LOCKED);
		word = euno_lock_wait(&leaf->lock, cx->env, &cx->counters, true);
	}
	*version = word;
	return (word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) == 0;
}

#endif							/* BPT_H */
