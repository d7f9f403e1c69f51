/*-------------------------------------------------------------------------
 *
 * bpt_make.h
 *	  Making leaves: what an insertion or a split will write.
 *
 * All of it in private memory, before anything is locked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_MAKE_H
#define BPT_MAKE_H

#include "core/bptree/bpt.h"

/* One entry of a leaf, taken apart in private memory (bpt_encode.c). */
typedef struct BptItem
{
	uint32_t	off;			/* key bytes after the base, then payload */
	uint16_t	key_len;		/* of the whole key */
	uint16_t	payload_len;
	uint64_t	tid:48;
	uint64_t	source:16;		/* which base it was cut from */
} BptItem;

#define BPT_ITEM_BYTES		(40 * 1024)

/*
 * A run of entries in order.  source[i] are the bytes that items of source i
 * have been cut short by (a leaf's prefix), so that decoding never grows.
 */
typedef struct BptItems
{
	bool		opaque;
	bool		posting;		/* equal keys may share a record */
	bool		plain;			/* known to have one key length, no payloads,
								 * and no key twice */
	bool		single;			/* known to have no payloads and no key twice */
	bool		appended;		/* all have been, so equal neighbors without
								 * payload share their bytes */
	uint32_t	open_prefix;	/* the longest of a leaf without a high fence */
	uint32_t	n;
	uint32_t	nbytes;
	uint8_t    *bytes;			/* BPT_ITEM_BYTES */
	BptItem    *items;			/* BPT_LEAF_TIDS */
	const uint8_t *source[2];
	uint32_t	source_len[2];
} BptItems;

/* The usual home of a BptItems: private memory for one operation. */
typedef struct BptWork
{
	BptItems	it;
	uint8_t		bytes[BPT_ITEM_BYTES];
	BptItem		items[BPT_LEAF_TIDS];
} BptWork;

/* FIXED entries in order, side by side, in private memory (bpt_fixed.c). */
typedef struct BptRun
{
	uint32_t	n;
	uint32_t	prefix_len;
	uint32_t	suffix_len;
	uint32_t	tail_len;
	const uint8_t *prefix;
	uint64_t	heads[BPT_LEAF_TIDS];
	uint8_t		tails[BPT_NODE_MAX + 32];
	uint8_t		cut[BPT_NODE_MAX + 32]; /* tails of a half with a longer prefix */
} BptRun;

/* What to do to a leaf to insert an entry; made before the leaf is locked. */
typedef struct BptPut
{
	uint32_t	slot;
	uint32_t	near;			/* FIXED: the place that the key suggests */
	bool		replace;		/* the first record replaces that of "slot" */
	uint32_t	nrecs;			/* 1, or 2 when a list is cut in two */
	uint32_t	mine;			/* the one with the entry */
	uint32_t	freed;			/* bytes of the record replaced */
	uint64_t	head[2];
	uint32_t	size[2];
	const uint8_t *tail;		/* FIXED */
	uint8_t		record[2][BPT_MAX_COMPOSITE + BPT_LIST_BYTES + 16];
} BptPut;

/* One slot of a leaf in the making, and all of them (bpt_slots.c). */
typedef struct BptPiece
{
	uint64_t	head;
	const uint8_t *record;
	uint16_t	size;			/* of the record */
	uint16_t	len;			/* of what is in it and the head of the key */
	uint16_t	ntids;
	uint8_t		tail_at;		/* where in the record the key goes on */
	bool		payload;		/* there is one */
} BptPiece;

/* What is known of some pieces between two fences. */
typedef struct BptMeasure
{
	uint32_t	by;				/* how much longer the prefix is */
	uint32_t	used;			/* bytes in a leaf's body */
	uint32_t	ntids;
	bool		fixed;			/* a FIXED leaf would be no larger */
} BptMeasure;

typedef struct BptPieces
{
	BptFormat	format;
	uint32_t	n;
	const uint8_t *prefix;
	uint32_t	prefix_len;
	BptMeasure	right;			/* of what a split moves */
	BptPut		put;
	BptPiece	piece[BPT_LEAF_TIDS];
} BptPieces;

/* Instead of the number of what stays left: the leaf was packed anew. */
#define BPT_PACKED	UINT32_MAX

/* What a split is made of; large, in private memory. */
typedef struct BptSplit
{
	union
	{
		BptWork		work;
		BptRun		run;
		BptPieces	pieces;
	};
	enum
	{
		BPT_BY_ITEM,			/* in "work" */
		BPT_BY_RUN,				/* bpt_fixed.c */
		BPT_BY_SLOT				/* bpt_slots.c */
	}			how;
	uint32_t	at;				/* which item is the new one */
	BptFence	low;
	BptFence	high;
	BptFence	middle;
	uint8_t		high_buf[BPT_MAX_COMPOSITE + 8];
	uint8_t		middle_buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	BptImage	left;
	BptImage	right;
} BptSplit;

/* An entry that a leaf, as it is, has no room for. */
typedef struct BptInsertion
{
	const EunoEntry *entry;
	const BptKey *key;			/* the entry's */
	const BptGap *gap;			/* where in the leaf it belongs */
	bool		no_split;		/* the leaf is at most packed anew for it */
} BptInsertion;

/* bpt_plan.c */
extern uint32_t euno_bpt_build_record(uint8_t *to, uint32_t len,
									  const uint8_t *tail, uint32_t tail_len,
									  const EunoEntry *payload,
									  const BptTidList *tids);
extern bool euno_bpt_plan_slots(EunoTree *tree, BptView *view,
								const EunoEntry *entry, const BptKey *key,
								const BptGap *gap, BptPut *put);
extern bool euno_bpt_leaf_plan(EunoTree *tree, BptView *view,
							   const EunoEntry *entry, const BptKey *key,
							   const BptGap *gap, BptPut *put);

/* bpt_room.c */
extern bool euno_bpt_make_room(BptView *view, uint32_t slot, uint32_t near,
							   uint32_t *from, uint32_t *to);

/* FIXED: moves slots [from, from + n) to "to". */
static inline void
bpt_move_slots(const BptView *view, uint32_t to, uint32_t from, uint32_t n)
{
	uint64_t   *heads = (uint64_t *) view->heads;
	uint8_t    *tails = (uint8_t *) view->tails;

	if (n == 0)
		return;
	euno_move(heads + to, heads + from, n * 8);
	if (view->tail_len > 0)
		euno_move(tails + to * view->tail_len, tails + from * view->tail_len,
				  n * view->tail_len);
}

/* bpt_leaf.c */
extern void euno_bpt_leaf_put(BptLeaf *leaf, BptView *view, const BptPut *put);

/* bpt_encode.c */
extern void euno_bpt_items_init(BptWork *work, EunoTree *tree);
extern bool euno_bpt_items_add_leaf(BptWork *work, BptView *view);
extern bool euno_bpt_items_insert(BptWork *work, uint32_t at,
								  const EunoEntry *entry);
extern bool euno_bpt_items_append(BptWork *work, const EunoEntry *entry);
extern uint32_t euno_bpt_item_copy(const BptItems *it, uint32_t i,
								   uint32_t from, uint8_t *to);
extern uint32_t euno_bpt_measure(EunoTree *tree, const BptItems *it,
								 uint32_t a, uint32_t b, const BptFence *low,
								 const BptFence *high, BptFormat *format);
extern uint32_t euno_bpt_separate(const uint8_t *left, uint32_t left_len,
								  uint8_t *right, uint32_t len, bool lowest);
extern uint32_t euno_bpt_separator(const BptItems *it, uint32_t i,
								   uint8_t *to, EunoTid *tid, bool lowest);
extern uint32_t euno_bpt_prefix(EunoTree *tree, const BptItems *it,
								uint32_t a, uint32_t b, const BptFence *low,
								const BptFence *high);
extern bool euno_bpt_encode(EunoTree *tree, const BptItems *it, uint32_t a,
							uint32_t b, const BptFence *low,
							const BptFence *high, BptImage *image);
extern void euno_bpt_image_done(BptImage *image, uint32_t count, uint32_t cap,
								uint32_t heap);
extern void euno_bpt_install(BptLeaf *leaf, const BptImage *image);

/* bpt_fixed.c */
extern uint64_t euno_bpt_fence_word(const BptFence *fence, uint32_t from);
extern void euno_bpt_leaf_head(BptLeaf *leaf, BptFormat format,
							   uint32_t prefix_len, const BptFence *low,
							   const BptFence *high);
extern void euno_bpt_lay_out(BptImage *image, const uint64_t *heads,
							 const uint8_t *tails, uint32_t n);
extern bool euno_bpt_spread(const BptView *view, const BptFence *low,
							const BptFence *high, BptImage *image);
extern uint32_t euno_bpt_halve(EunoTree *tree, BptSplit *s, BptView *view,
							   const BptInsertion *ins);
extern uint32_t euno_bpt_half_size(const BptSplit *s, uint32_t m);
extern bool euno_bpt_half_right(BptSplit *s, uint32_t m);

/* bpt_slots.c */
extern uint32_t euno_bpt_cut(EunoTree *tree, BptSplit *s, BptView *view,
							 const BptInsertion *ins, uint32_t fill);
extern uint32_t euno_bpt_cut_size(const BptSplit *s);
extern bool euno_bpt_cut_right(BptSplit *s, uint32_t m);

/* bpt_split.c */
extern EunoStatus euno_bpt_split(EunoContext *cx, EunoTree *tree,
								 BptPlace *place, const BptInsertion *ins,
								 BptLeaf **created);
extern uint32_t euno_bpt_gap_item(BptView *view, const BptGap *gap);
extern BptFence euno_bpt_high_fence(const BptLeaf *leaf, uint8_t *buf);
extern void euno_bpt_image_like(BptImage *image, const BptLeaf *leaf);
extern uint32_t euno_bpt_split_edge(const EunoTree *tree, uint32_t n,
									uint32_t at, const BptLeaf *leaf,
									bool slots);
extern bool euno_bpt_ascends(BptView *view, uint32_t at);
extern uint32_t euno_bpt_split_left(EunoTree *tree, BptSplit *s, uint32_t at,
									const BptLeaf *leaf, bool beyond);
extern EunoStatus euno_bpt_split_right(EunoContext *cx, EunoTree *tree,
									   BptSplit *s, uint32_t m,
									   BptLeaf *old_right, uint64_t seqno,
									   BptLeaf **right);

/* Bytes of an item's key that are kept in it->bytes; its payload follows. */
static inline uint32_t
bpt_item_kept(const BptItems *it, const BptItem *item)
{
	uint32_t	base = it->source_len[item->source];

	return item->key_len > base ? item->key_len - base : 0;
}

/*
 * FIXED, for an entry at this slot: is it an ascending load, whose last leaf
 * is as full as leaves shall be?  The leaf is left as it is then, but for its
 * room, which is spread.
 */
static inline bool
bpt_appends(const EunoTree *tree, const BptView *view, uint32_t slot)
{
	return view->open && view->count > 8 && view->count == view->entries &&
		slot == view->count &&
		view->count * 100 >= view->cap * tree->config.fillfactor;
}

#endif							/* BPT_MAKE_H */
