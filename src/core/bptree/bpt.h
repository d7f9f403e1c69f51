/*-------------------------------------------------------------------------
 *
 * bpt.h
 *	  What the files of the Euno-B+Tree share.
 *
 * Layouts are in bpt_node.h, what reads a leaf in bpt_view.h, and what makes new
 * ones in bpt_make.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_H
#define BPT_H

#include "core/bptree/bpt_view.h"
#include "core/euno_epoch.h"
#include "core/euno_heat.h"

/*
 * Restarts before an operation stops being optimistic, and in COMPARE order
 * before it works on copies of the nodes, which are not torn by the time a
 * comparator takes.  Tests make the former fewer.
 */
#ifndef BPT_PATIENCE
#define BPT_PATIENCE		16
#endif
#define BPT_COMPARE_PATIENCE	2

#ifdef EUNO_TEST_MODEL
extern uint32_t euno_model_patience;	/* BPT_PATIENCE, as the case wants it */
#endif

/*
 * Tries of a write that fail before its place is crowded.  Tests make it more.
 */
#ifndef BPT_CROWD
#define BPT_CROWD				2
#endif

/* The longest key that is looked up the short way. */
#define BPT_POINT_KEY		256

#define BPT_KEY_MAX		(BPT_MAX_COMPOSITE + 8)

/*
 * What is searched for: the position as the caller gave it; BYTES: also as a
 * composite, followed by zeros.
 */
typedef struct BptKey
{
	const EunoPosition *pos;	/* the caller's; BYTES: for bpt_heat.c only */
	uint32_t	len;
	uint8_t		bytes[BPT_KEY_MAX + 24] __attribute__((aligned(8)));
} BptKey;

/* What says on which side of a separator a key is. */
typedef enum BptJudge
{
	BPT_MEMCMP,					/* BYTES */
	BPT_COMPARATOR,				/* COMPARE */
	BPT_APPROXIMATION			/* the same; the comparator where it does not tell */
} BptJudge;

/* A private copy of a node, or one in the making. */
typedef union BptImage
{
	BptLeaf		leaf;
	BptInner	inner;
	uint8_t		bytes[BPT_NODE_MAX];
} __attribute__((aligned(64))) BptImage;

/*
 * A gap in a leaf: before TID "sub" of slot "slot".  FIXED: the first slot of
 * its entry.
 */
typedef struct BptGap
{
	uint32_t	slot;
	uint32_t	sub;
	bool		exact;			/* the entry right of the gap is the key */

	/*
	 * The key's TID belongs into the list of "slot", or if sub is 0 at the end
	 * of the one before: there, after TID "before".
	 */
	bool		listed;
	uint32_t	list_at;
	EunoTid		before;
} BptGap;

/*
 * Where a descent ended: a leaf that covers the key, at a version.  The view
 * is of the leaf itself, or of a private copy that was valid at that version.
 */
typedef struct BptPlace
{
	/* What the caller says, before the first euno_bpt_seek */
	BptImage   *image;			/* for a copy */
	BptLeaf    *start;			/* if set, where the first descent has ended */
	BptLeaf    *guess;			/* if set, looked at before that: a leaf of the
								 * tree that may be the one */
	uint32_t	run;			/* how many slots will be read, if many */

	/* What was found, the last time */
	BptLeaf    *leaf;
	uint64_t	version;
	BptView		view;
	BptGap		gap;			/* of the key that was sought */
	bool		found;			/* "gap" is set */
	bool		copied;			/* into "image" */

	/* In all */
	uint32_t	attempts;
	uint32_t	moves;			/* leaves that the directory did not know */
} BptPlace;

/*
 * A fence: BYTES: a composite or the beginning of one; COMPARE: key and TID.
 */
typedef struct BptFence
{
	const uint8_t *bytes;		/* NULL: infinity */
	uint32_t	len;
	EunoTid		tid;
} BptFence;

static inline BptFence
bpt_low_fence(const BptLeaf *leaf)
{
	return (BptFence)
	{
		leaf->has_low ? bpt_low(leaf) : NULL, leaf->low_len, leaf->low_tid
	};
}

/* Where a separator belongs in a directory: nodes from the root down. */
typedef struct BptPath
{
	uint32_t	levels;			/* 0: the directory is empty */
	BptInner   *node[BPT_MAX_LEVELS];
	uint64_t	version[BPT_MAX_LEVELS];
	uint32_t	index[BPT_MAX_LEVELS];	/* of the child taken */
	const BptLeaf *leaf;		/* where it ends */
} BptPath;

/* bpt_key.c */
extern void euno_bpt_key_position(EunoTree *tree, const EunoPosition *pos,
								  BptKey *key);
extern void euno_bpt_key_fence(EunoTree *tree, const BptLeaf *leaf,
							   EunoPosition *pos, uint8_t *buf, BptKey *key);
extern void euno_bpt_fence_position(EunoTree *tree, const BptLeaf *leaf,
									EunoPositionBuffer *to);
extern int	euno_bpt_compare_rest(const BptKey *key, uint32_t from,
								  const uint8_t *bytes, uint32_t len);
extern int	euno_bpt_compare_prefix(const BptKey *key, const BptLeaf *leaf,
									uint32_t prefix_len);
extern bool euno_bpt_is_key(const uint8_t *bytes, uint32_t len,
							const EunoPosition *pos);
extern bool euno_bpt_is_fence(const BptLeaf *leaf, const EunoPosition *pos);
extern int	euno_bpt_compare_fence(EunoContext *cx, EunoTree *tree,
								   const BptKey *key, const BptLeaf *leaf);
extern int	euno_bpt_compare_opaque(EunoContext *cx, const BptKey *key,
									const uint8_t *bytes, uint32_t len,
									EunoTid tid);

/* bpt_search.c */
extern void euno_bpt_find(EunoContext *cx, BptView *view, const BptKey *key,
						  BptGap *gap);
extern void euno_bpt_find_near(EunoContext *cx, BptView *view,
							   const BptKey *key, uint32_t from, BptGap *gap);
extern uint32_t euno_bpt_lower_head(const BptView *view, uint64_t h);

/* bpt_search_opaque.c */
extern int	euno_bpt_compare_opaque_slot(EunoContext *cx, BptView *view,
										 const BptKey *key, BptJudge judge,
										 uint32_t i);
extern uint32_t euno_bpt_lower_opaque(EunoContext *cx, BptView *view,
									  const BptKey *key, bool *exact);

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
extern void euno_bpt_free(EunoContext *cx, EunoTree *tree, int domain,
						  void *node, size_t size);
extern void euno_bpt_retire(EunoContext *cx, EunoTree *tree, void *node,
							size_t size, BptLimbo *limbo);
extern void euno_bpt_retire_leaf(EunoContext *cx, EunoTree *tree,
								 BptLeaf *leaf);
extern uint32_t euno_bpt_reclaim(EunoContext *cx, EunoTree *tree, bool all);
extern void euno_bpt_reclaim_all(EunoContext *cx, EunoTree *tree);
extern void euno_bpt_spare_used(EunoContext *cx);
extern void euno_bpt_spare_drop(EunoContext *cx);

/* bpt_descend.c */
extern BptLeaf *euno_bpt_descend_bytes(EunoContext *cx, EunoTree *tree,
									   const BptKey *key, bool below,
									   uint32_t run);
extern void euno_bpt_descend_keys(EunoContext *cx, EunoTree *tree,
								  const BptKey *keys, uint32_t n,
								  BptLeaf **leaves);
extern BptLeaf *euno_bpt_descend_opaque(EunoContext *cx, EunoTree *tree,
										const BptKey *key, bool below,
										BptJudge judge, BptPlace *place);
extern void euno_bpt_note_shape(BptDirectory *dir, const BptLeaf *leaf);
extern bool euno_bpt_path(EunoContext *cx, EunoTree *tree, int domain,
						  const BptKey *key, BptPath *path, BptImage *image);

/* bpt_seek.c */
extern EunoStatus euno_bpt_seek(EunoContext *cx, EunoTree *tree,
								const BptKey *key, bool below,
								BptPlace *place);
extern EunoStatus euno_bpt_copy(BptPlace *place);
typedef enum BptRange
{
	BPT_BELOW,					/* the low fence */
	BPT_WITHIN,
	BPT_ABOVE,					/* the high fence */
	BPT_ASK_FENCE				/* not below; only the high fence can say more,
								 * when "right" has been validated */
} BptRange;

extern BptRange euno_bpt_range(EunoContext *cx, EunoTree *tree,
							   const BptView *view, const BptLeaf *right,
							   const BptKey *key, bool below);
extern EunoStatus euno_bpt_valid(BptPlace *place);

/* bpt_crowd.c */
extern bool euno_bpt_crowd(EunoContext *cx, EunoTree *tree, const BptKey *key,
						   BptPlace *place, const EunoWish *wish,
						   EunoStatus *status);

/* bpt_read.c */
extern void euno_bpt_one_key(EunoBatch *batch, const uint8_t *key,
							 uint32_t len);

/* bpt_point.c */
extern bool euno_bpt_read_key(EunoContext *cx, EunoTree *tree,
							  EunoCursor *cursor, EunoBatch *batch);
extern uint32_t euno_bpt_read_keys(EunoContext *cx, EunoTree *tree,
								   const EunoPosition *positions, uint32_t n,
								   EunoBatch *batch, uint32_t *ends);

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
extern void euno_bpt_maintain(EunoContext *cx, EunoTree *tree, int domain);

/* bpt_domains.c */
extern EunoStatus euno_bpt_set_domains(EunoContext *cx, EunoTree *tree,
									   uint64_t domains);

/* bpt_migrate.c */
extern int	euno_bpt_home(const EunoContext *cx, const EunoTree *tree,
						  const BptLeaf *leaf);
extern void euno_bpt_inherit_use(BptLeaf *leaf, const BptLeaf *from);
extern void euno_bpt_use_leaf(EunoContext *cx, EunoTree *tree, BptLeaf *leaf,
							  uint32_t weight);
extern EunoStatus euno_bpt_migrate(EunoContext *cx, EunoTree *tree,
								   const EunoPosition *pos, int domain);
extern uint32_t euno_bpt_settle(EunoContext *cx, EunoTree *tree,
								uint32_t max);

/* bpt_moves.c */
typedef struct BptMoves BptMoves;

extern void euno_bpt_move_note(EunoTree *tree, const BptLeaf *from,
							   const BptLeaf *to);
extern EunoStatus euno_bpt_moves(EunoContext *cx, EunoTree *tree,
								 uint64_t *position, EunoMove *to,
								 uint32_t *n);

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
extern EunoStatus euno_bpt_set_mode(EunoContext *cx, EunoTree *tree,
									const EunoPosition *pos, bool contended);

/* bpt_part.c */
extern void euno_bpt_part_leaf(EunoContext *cx, EunoTree *tree,
							   const EunoEntry *entry,
							   uint32_t number,
							   BptImage *image) __attribute__((cold));
extern void euno_bpt_steer(EunoContext *cx, EunoTree *tree,
						   uint32_t conflicts, uint32_t most);

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
extern uint32_t euno_bpt_heat(EunoContext *cx, EunoTree *tree, bool round,
							  EunoHeat *to, uint32_t max);
extern EunoStatus euno_bpt_leaf(EunoContext *cx, EunoTree *tree,
								const EunoHeat *heat, EunoLeafInfo *info);

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

/* the operations: see EunoTreeOps */
extern EunoStatus euno_bpt_create(EunoContext *cx, EunoTree *tree,
								  const EunoTreeConfig *config);
extern EunoStatus euno_bpt_insert(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry, bool no_split);
extern EunoStatus euno_bpt_remove(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry,
								  const EunoGuard *guard);
extern EunoStatus euno_bpt_contains(EunoContext *cx, EunoTree *tree,
									const EunoEntry *entry);
extern EunoStatus euno_bpt_read(EunoContext *cx, EunoTree *tree,
								EunoCursor *cursor, bool forward,
								EunoBatch *batch);
extern EunoStatus euno_bpt_bulk_begin(EunoContext *cx, EunoTree *tree,
									  EunoBulk *bulk);
extern EunoStatus euno_bpt_bulk_add(EunoContext *cx, EunoBulk *bulk,
									const EunoEntry *entry);
extern EunoStatus euno_bpt_bulk_end(EunoContext *cx, EunoBulk *bulk);
extern EunoStatus euno_bpt_walk(EunoContext *cx, EunoTree *tree,
								EunoWalk *walk);
extern EunoStatus euno_bpt_compact(EunoContext *cx, EunoTree *tree,
								   uint32_t how, uint32_t max_leaves,
								   uint32_t *merged);
extern uint64_t euno_bpt_verify(EunoContext *cx, EunoTree *tree,
								const EunoVerify *verify);
extern uint64_t euno_bpt_entries(EunoTree *tree);
extern void euno_bpt_stats(EunoContext *cx, EunoTree *tree,
						   EunoTreeStats *stats);

/*
 * Locks the place's leaf at the place's version.  False: it has been written,
 * or, as long as the operation is optimistic, somebody else has it locked.
 */
static inline bool
bpt_place_lock(EunoContext *cx, const BptPlace *place)
{
	if (__builtin_expect(place->attempts <= BPT_PATIENCE, 1))
		return euno_lock_upgrade(&place->leaf->lock, place->version);
	return euno_lock_upgrade_wait(&place->leaf->lock, place->version, cx->env,
								  &cx->counters);
}

/*
 * COMPARE: shall this operation descend by approximations?  One that was wrong
 * is made up for by BPT_DOUBT that were right, or that were not made.
 */
#define BPT_DOUBT		16
#ifndef BPT_DOUBTS
#define BPT_DOUBTS		64
#endif

static inline bool
bpt_approximates(EunoContext *cx)
{
	if (cx->approximate == NULL)
		return false;
	if (cx->doubts < BPT_DOUBTS)
		return true;
	cx->doubts--;
	return false;
}

/*
 * COMPARE: the sign of (key) - (bytes, 8-byte aligned) by approximation; 0 if
 * that does not tell or is not asked.
 */
static inline int
bpt_approximation(EunoContext *cx, BptJudge judge, const BptKey *key,
				  const uint8_t *bytes, uint32_t len)
{
	return judge == BPT_APPROXIMATION ?
		cx->approximate(cx->compare_arg, key->pos, bytes, len) : 0;
}

/* The gap of the key that was sought; the view may be torn. */
static inline void
bpt_place_find(EunoContext *cx, BptPlace *place, const BptKey *key,
			   BptGap *gap)
{
	if (place->found)
		*gap = place->gap;
	else
		euno_bpt_find(cx, &place->view, key, gap);
}

/* The leaf's right neighbor; from the leaf itself it is to be validated. */
static inline BptLeaf *
bpt_place_right(const BptPlace *place)
{
	return place->copied ? place->image->leaf.right :
		euno_load_ptr_acquire(&place->leaf->right);
}

static inline bool
bpt_is_opaque(const EunoTree *tree)
{
	return tree->config.order == EUNO_ORDER_COMPARE;
}

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

/* euno_lock_read of a leaf, for an operation on a key. */
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

/* Before the first euno_bpt_seek with this place. */
static inline void
bpt_place_init(BptPlace *place, BptImage *image)
{
	place->image = image;
	place->start = place->guess = place->leaf = NULL;
	place->run = 0;
	place->found = place->copied = false;
	place->attempts = place->moves = 0;
}

/* BYTES: the key's bytes are there.  Loads may meet zeros behind them. */
static inline void
bpt_key_set(BptKey *key, uint32_t len)
{
	key->len = len;
	memset(key->bytes + len, 0, 16);
}

/* Eight bytes of a BYTES key from offset "at", as a number. */
static inline uint64_t
bpt_key_word(const BptKey *key, uint32_t at)
{
	return at >= key->len ? 0 : euno_get_word(key->bytes + at);
}

/* How many bytes two strings begin with that are the same. */
static inline uint32_t
bpt_same_bytes(const uint8_t *a, uint32_t alen, const uint8_t *b,
			   uint32_t blen)
{
	uint32_t	n = 0;

	while (n < alen && n < blen && a[n] == b[n])
		n++;
	return n;
}

/* BYTES: the sign of (key, as far as the prefix goes) - (a leaf's prefix). */
static inline int
bpt_compare_prefix(const BptKey *key, const BptLeaf *leaf, uint32_t prefix_len)
{
	uint64_t	low;
	uint64_t	mine;

	if (prefix_len == 0)
		return 0;
	if (prefix_len > 8)
		return euno_bpt_compare_prefix(key, leaf, prefix_len);
	low = euno_load64(&leaf->low_word) >> (64 - 8 * prefix_len);
	mine = bpt_key_word(key, 0) >> (64 - 8 * prefix_len);
	return mine < low ? -1 : mine > low;
}

#endif							/* BPT_H */
