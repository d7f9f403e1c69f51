/*-------------------------------------------------------------------------
 *
 * art.h
 *	  What the files of the adaptive radix tree share.  Layouts are in
 *	  art_node.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_H
#define ART_H

#include "core/art/art_node.h"
#include "core/euno_epoch.h"

/* Restarts before a reader stops being optimistic. */
#define ART_PATIENCE	16

/* A composite, or a bound: bytes, followed by zeros without end. */
#define ART_KEY_MAX		(ART_MAX_COMPOSITE + 8)

typedef struct ArtKey
{
	uint32_t	len;
	uint8_t		bytes[ART_KEY_MAX + 32] __attribute__((aligned(8)));
} ArtKey;

/*
 * A bucket's header, read once and checked so that no offset made of it
 * leaves the bucket.  "torn": something impossible was met.
 */
typedef struct ArtView
{
	const uint8_t *base;		/* of the bucket */
	const uint8_t *entries;		/* FIXED: the suffixes; VARIED: off[] */
	uint32_t	size;
	uint32_t	n;
	uint32_t	prefix_len;
	uint32_t	width;
	bool		torn;
} ArtView;

/* One entry, in two pieces: "head", then "tail", then nothing. */
typedef struct ArtItem
{
	const uint8_t *head;
	const uint8_t *tail;
	const uint8_t *payload;
	uint16_t	head_len;
	uint16_t	tail_len;
	uint16_t	payload_len;
} ArtItem;

#define ART_MAX_ITEMS	(ART_BUCKET_ENTRIES + 1)

/* Entries in order.  The bytes are somewhere else, in private memory. */
typedef struct ArtItems
{
	uint32_t	n;
	ArtItem		items[ART_MAX_ITEMS];
} ArtItems;

/* A private copy of a bucket, or one in the making. */
typedef union ArtImage
{
	ArtBucket	bucket;
	uint8_t		bytes[ART_BUCKET_MAX];
} __attribute__((aligned(16))) ArtImage;

/* What has been allocated for a change that may yet fail. */
#define ART_MAX_BUILT	(2 * ART_MAX_ITEMS + 2)

typedef struct ArtBuild
{
	EunoContext *cx;
	EunoTree   *tree;
	uint32_t	n;
	uint32_t	nentries;		/* that the tree gains; the caller sets it */
	uint32_t	nleaves;
	uint32_t	ninners;
	struct
	{
		void	   *p;
		uint32_t	size;
	}			built[ART_MAX_BUILT];
} ArtBuild;

typedef enum ArtWhere
{
	ART_AT_LEAF,				/* slot holds no inner node */
	ART_AT_PATH,				/* slot's node has another path */
	ART_AT_GAP					/* slot's node has no slot for the byte */
} ArtWhere;

/* Where a descent ended. */
typedef struct ArtPlace
{
	ArtWhere	where;
	ArtNode    *holder;			/* of the slot; NULL = the root slot */
	EunoLock   *lock;			/* the holder's */
	ArtRef		ref;			/* what the slot held */
	uint32_t	depth;			/* composite bytes that lead to the slot */
	uint32_t	mismatch;		/* AT_PATH: first byte that differs */
	uint8_t		other;			/* AT_PATH: the node's byte there */
} ArtPlace;

static inline EunoTid
art_load_tid(const uint8_t *p)
{
	EunoTid		tid = 0;

	for (int i = 0; i < EUNO_TID_BYTES; i++)
		tid = tid << 8 | p[i];
	return tid;
}

static inline void
art_store_tid(uint8_t *p, EunoTid tid)
{
	for (int i = EUNO_TID_BYTES - 1; i >= 0; i--, tid >>= 8)
		p[i] = (uint8_t) tid;
}

/*
 * Counts what this process added; the sum over all stripes is meant modulo
 * 2^64.  Called while the lock is held under which the change is made, so that
 * verify, which looks at all locks, knows when the counts are exact.
 */
static inline void
art_count(EunoContext *cx, EunoTree *tree, int64_t entries, int64_t leaves,
		  int64_t inners)
{
	ArtStripe  *stripe =
		&art_body(tree)->stripes[cx->process->slot % ART_STRIPES];

	if (entries != 0)
		(void) euno_add64(&stripe->entries, (uint64_t) entries);
	if (leaves != 0)
		(void) euno_add64(&stripe->leaves, (uint64_t) leaves);
	if (inners != 0)
		(void) euno_add64(&stripe->inners, (uint64_t) inners);
}

/* art_key.c */
extern void euno_art_key_entry(const EunoEntry *entry, ArtKey *key);
extern void euno_art_key_position(const EunoPosition *pos, ArtKey *key);
extern void euno_art_key_set(ArtKey *key, uint32_t len);
extern void euno_art_position_key(const ArtKey *key, EunoPositionBuffer *pos);
extern bool euno_art_key_after(ArtKey *key, uint32_t len);
extern int	euno_art_key_compare(const ArtKey *a, const ArtKey *b);
extern int	euno_art_key_compare_bytes(const ArtKey *key, uint32_t from,
									   const uint8_t *bytes, uint32_t len);

/* art_memory.c */
extern void *euno_art_alloc(EunoContext *cx, EunoTree *tree, size_t size);
extern void euno_art_free(EunoContext *cx, EunoTree *tree, void *p,
						  size_t size);
extern bool euno_art_reserve(EunoContext *cx, EunoTree *tree, uint32_t n);
extern void euno_art_unreserve(EunoContext *cx, EunoTree *tree, uint32_t n);
extern void euno_art_retire(EunoContext *cx, EunoTree *tree, void *p,
							size_t size);
extern void euno_art_retire_ref(EunoContext *cx, EunoTree *tree, ArtRef ref);
extern void euno_art_reclaim(EunoContext *cx, EunoTree *tree, bool all);

/* art_inner.c */
extern size_t euno_art_node_size(ArtType type, uint32_t level);
extern uint32_t euno_art_node_capacity(ArtType type);
extern ArtType euno_art_node_type(uint32_t nchildren);
extern void euno_art_node_init(ArtNode *node, ArtType type,
							   const uint8_t *path, uint32_t level);
extern ArtRef *euno_art_node_slot(ArtNode *node, uint8_t byte);
extern bool euno_art_node_add(ArtNode *node, uint8_t byte, ArtRef ref);
extern bool euno_art_node_room(const ArtNode *node);
extern ArtRef euno_art_node_next(ArtNode *node, int from, bool forward,
								 int *byte);
extern void euno_art_node_copy(ArtNode *to, ArtNode *from);
extern uint32_t euno_art_path_mismatch(const ArtNode *node, const ArtKey *key,
									   uint32_t from, uint8_t *other);
extern uint32_t euno_art_path_copy(const ArtNode *node, uint8_t *path);

/* art_bucket.c */
extern void euno_art_view(const ArtBucket *bucket, ArtView *view);
extern bool euno_art_view_item(const ArtView *view, uint32_t i, ArtItem *item);
extern int	euno_art_compare_prefix(const ArtView *view, const ArtKey *key);
extern uint32_t euno_art_search(ArtView *view, const ArtKey *key, bool *exact);
extern bool euno_art_bucket_insert(ArtBucket *bucket, const ArtView *view,
								   uint32_t at, const ArtKey *key);
extern void euno_art_bucket_remove(ArtBucket *bucket, const ArtView *view,
								   uint32_t at);
extern uint32_t euno_art_encoded_size(const ArtItem *items, uint32_t n,
									  uint32_t *prefix_len, uint32_t *width);
extern size_t euno_art_bucket_room(uint32_t size);
extern void euno_art_encode(const ArtItem *items, uint32_t n,
							uint32_t prefix_len, uint32_t width,
							ArtImage *image);
extern void euno_art_decode(const ArtImage *image, const ArtItem *extra,
							ArtItems *items);

/* art_build.c */
extern uint32_t euno_art_item_len(const ArtItem *item);
extern uint8_t euno_art_item_byte(const ArtItem *item, uint32_t i);
extern void euno_art_item_copy(const ArtItem *item, uint32_t from,
							   uint32_t to, uint8_t *out);
extern uint32_t euno_art_item_common(const ArtItem *a, const ArtItem *b);
extern int	euno_art_item_compare(const ArtItem *a, const ArtItem *b);
extern void euno_art_item_key(const ArtKey *key, const EunoEntry *entry,
							  ArtItem *item);
extern void euno_art_build_start(ArtBuild *build, EunoContext *cx,
								 EunoTree *tree);
extern ArtNode *euno_art_build_node(ArtBuild *build, ArtType type,
									const uint8_t *path, uint32_t level);
extern ArtRef euno_art_build(ArtBuild *build, const ArtItem *items,
							 uint32_t n, uint32_t depth);
extern void euno_art_build_undo(ArtBuild *build);
extern bool euno_art_is_dense(const ArtItem *items, uint32_t n);

/* art_descend.c */
extern EunoStatus euno_art_descend(EunoContext *cx, EunoTree *tree,
								   const ArtKey *key, ArtPlace *place);
extern ArtRef *euno_art_lock_slot(EunoContext *cx, EunoTree *tree,
								  const ArtKey *key, const ArtPlace *place);
extern bool euno_art_leaf_item(const ArtPlace *place, const ArtKey *key,
							   ArtKey *other, ArtItem *item);

/* art_visit.c */
extern EunoStatus euno_art_visit(EunoContext *cx, EunoTree *tree, ArtKey *at,
								 ArtPlace *place);
extern void euno_art_visit_past(ArtKey *at);

/* one operation a file */
extern EunoStatus euno_art_insert(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry, bool no_split);
extern EunoStatus euno_art_attach(EunoContext *cx, EunoTree *tree,
								  const ArtItem *items, uint32_t n,
								  ArtBuild *build);
extern EunoStatus euno_art_put_gap(EunoContext *cx, EunoTree *tree,
								   const ArtKey *key, ArtPlace *place,
								   ArtBuild *build, const ArtItem *items,
								   uint32_t n, bool no_split);
extern EunoStatus euno_art_put_path(EunoContext *cx, EunoTree *tree,
									const ArtKey *key, ArtPlace *place,
									ArtBuild *build, const ArtItem *items,
									uint32_t n);
extern EunoStatus euno_art_remove(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry,
								  const EunoGuard *guard);
extern EunoStatus euno_art_contains(EunoContext *cx, EunoTree *tree,
									const EunoEntry *entry);
extern EunoStatus euno_art_read(EunoContext *cx, EunoTree *tree,
								EunoCursor *cursor, bool forward,
								EunoBatch *batch);
extern EunoStatus euno_art_bulk_begin(EunoContext *cx, EunoTree *tree,
									  EunoBulk *bulk);
extern EunoStatus euno_art_bulk_add(EunoContext *cx, EunoBulk *bulk,
									const EunoEntry *entry);
extern EunoStatus euno_art_bulk_end(EunoContext *cx, EunoBulk *bulk);
extern EunoStatus euno_art_walk(EunoContext *cx, EunoTree *tree,
								EunoWalk *walk);
extern EunoStatus euno_art_compact(EunoContext *cx, EunoTree *tree,
								   uint32_t max_merges, uint32_t *merged);
extern uint64_t euno_art_verify(EunoContext *cx, EunoTree *tree,
								const EunoVerify *verify);
extern void euno_art_stats(EunoContext *cx, EunoTree *tree,
						   EunoTreeStats *stats);

extern const EunoTreeOps euno_art_olc_ops;

#endif							/* ART_H */
