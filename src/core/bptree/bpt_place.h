/*-------------------------------------------------------------------------
 *
 * bpt_place.h
 *	  Keys that are searched for, and the places in leaves to which they lead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_PLACE_H
#define BPT_PLACE_H

#include "core/bptree/bpt_view.h"

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

static inline bool
bpt_is_opaque(const EunoTree *tree)
{
	return tree->config.order == EUNO_ORDER_COMPARE;
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

#endif							/* BPT_PLACE_H */
