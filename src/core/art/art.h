/*-------------------------------------------------------------------------
 *
 * art.h
 *	  What the files of the adaptive radix tree share.  Layouts are in
 *	  art_node.h, the protocols in src/README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_H
#define ART_H

#include "core/art/art_node.h"
#include "core/euno_epoch.h"
#include "core/euno_heat.h"

/*
 * All of a tree comes from one domain: nothing says where a node came from
 * when it is given back by a process of another one.
 */
#define ART_DOMAIN	0

/* Restarts before an operation goes the way of ROWEX, which needs none. */
#define ART_PATIENCE	16

/* A composite, or a bound: bytes, followed by zeros without end. */
#define ART_KEY_MAX		(ART_MAX_COMPOSITE + 8)

typedef struct ArtKey
{
	uint32_t	len;
	uint8_t		bytes[ART_KEY_MAX + 32] __attribute__((aligned(8)));
} ArtKey;

typedef enum ArtWhere
{
	ART_AT_LEAF,				/* slot holds no inner node */
	ART_AT_PATH,				/* slot's node has another path */
	ART_AT_GAP,					/* slot's node has no slot for the byte */
	ART_AT_TREE					/* with a prefix: slot's node is on the path of
								 * all that starts with the key */
} ArtWhere;

/* Where a descent ended. */
typedef struct ArtPlace
{
	ArtWhere	where;
	bool		rowex;			/* the versions mean nothing */
	bool		near;			/* AT_GAP: the descent began at the slot's node;
								 * holder and slot are not known */
	ArtNode    *holder;			/* of the slot; NULL = the root slot */
	ArtRef	   *slot;
	EunoLock   *lock;			/* the holder's */
	uint64_t	version;		/* ... and what it was */
	uint64_t	node_version;	/* AT_GAP: of the slot's node */
	ArtRef		ref;			/* what the slot held */
	uint32_t	depth;			/* composite bytes that lead to the slot */
	uint32_t	mismatch;		/* AT_PATH: first byte that differs */
} ArtPlace;

/* From node to node: the lowest nodes on the way, and where it is. */
#ifndef ART_VISIT_FRAMES
#define ART_VISIT_FRAMES	16	/* tests have fewer */
#endif

typedef struct ArtVisitFrame
{
	ArtPlace	place;			/* the node's */
	uint64_t	map[4];			/* bytes whose children are still to be visited */
	uint8_t		places[256];	/* their slots */
} ArtVisitFrame;

typedef struct ArtVisit
{
	EunoContext *cx;
	EunoTree   *tree;
	ArtPlace	place;			/* the slot of the node that is visited */
	ArtKey		at;				/* and its path, which is the place where to go on */
	bool		past;			/* after that node, not before what is below it */
	uint32_t	depth;			/* nodes on the way to the next one */
	uint32_t	kept;			/* so many of them are known, the lowest */
	ArtVisitFrame	frames[ART_VISIT_FRAMES];	/* node i is in i % ART_VISIT_FRAMES */
} ArtVisit;

/* What has been allocated for a change that may yet fail. */
#define ART_MAX_BUILT	260		/* a node, and a record for each child */

typedef struct ArtBuild
{
	EunoContext *cx;
	EunoTree   *tree;
	uint32_t	n;
	struct
	{
		void	   *p;
		size_t		size;
	}			built[ART_MAX_BUILT];
} ArtBuild;

/* A node's children at one moment, in the order of their bytes. */
typedef struct ArtChildren
{
	uint32_t	n;				/* those that are there */
	uint32_t	ndead;			/* leaf records that were removed */
	uint8_t		bytes[256];
	ArtChild	child[256];
	ArtRef		dead[256];
} ArtChildren;

/* A new node, and what it was made of. */
typedef struct ArtCopy
{
	ArtNode    *node;
	ArtChildren from;
	uint64_t	version;		/* of the lock of the node that was looked at */
	uint32_t	nreplaced;		/* records that the new node does without */
	ArtRef		replaced[256];
} ArtCopy;

/* The rest of an entry's composite from some byte on. */
typedef struct ArtTail
{
	const uint8_t *bytes;		/* in "inlined", or in a leaf record */
	uint32_t	n;
	uint32_t	payload_len;
	const uint8_t *payload;
	uint8_t		inlined[8 * ART_WORDS];
} ArtTail;

/*
 * What the allocator is asked for: references need 4 bits of a node's address.
 */
static inline size_t
art_node_memory(size_t size)
{
	return (size + 15) & ~(size_t) 15;
}

/* They need 3 of a record's. */
static inline size_t
art_record_memory(size_t size)
{
	return (size + 7) & ~(size_t) 7;
}

/* The first n bytes, at most 8, on top of a word. */
static inline uint64_t
art_top_bytes(const uint8_t *bytes, uint32_t n)
{
	uint32_t	first;
	uint32_t	last;

	if (n >= 4)
	{
		memcpy(&first, bytes, 4);
		memcpy(&last, bytes + n - 4, 4);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		first = __builtin_bswap32(first);
		last = __builtin_bswap32(last);
#endif
		return (uint64_t) first << 32 | (uint64_t) last << (64 - 8 * n);
	}
	if (n == 0)
		return 0;

	/* the first, the second if there is one, the last */
	return (uint64_t) bytes[0] << 56 |
		(uint64_t) bytes[n / 2] << (56 - 8 * (n / 2)) |
		(uint64_t) bytes[n - 1] << (64 - 8 * n);
}

/* Byte i of a bound, which has no end. */
static inline int
art_key_byte(const ArtKey *key, uint32_t i)
{
	return i < key->len ? key->bytes[i] : 0;
}

/* The bytes are there: sets the length, and the zeros that loads may meet. */
static inline void
euno_art_key_set(ArtKey *key, uint32_t len)
{
	key->len = len;
	memset(key->bytes + len, 0, 32);
}

/* The composite of an entry, which is not longer than EUNO_MAX_ENTRY. */
static inline void
euno_art_key_entry(const EunoEntry *entry, ArtKey *key)
{
	uint32_t	n = entry->keylen;

	if (n >= 8 && n <= 16)
	{
		uint64_t	first;
		uint64_t	last;

		memcpy(&first, entry->key, 8);
		memcpy(&last, entry->key + n - 8, 8);
		memcpy(key->bytes, &first, 8);
		memcpy(key->bytes + n - 8, &last, 8);
	}
	else if (n > 0)
		memcpy(key->bytes, entry->key, n);
	euno_put_tid(key->bytes + n, entry->tid);
	euno_art_key_set(key, n + EUNO_TID_BYTES);
}

/*
 * What is behind the first "depth" bytes of a composite, at most 23, as INLINE.
 */
static inline void
art_key_inline(const ArtKey *key, uint32_t depth, ArtChild *child)
{
	const uint8_t *bytes = key->bytes + depth;

	/* there are zeros behind it */
	child->ref = (euno_get_word(bytes) & ~UINT64_C(0xFF)) | ART_TAG_INLINE |
		(ArtRef) (key->len - depth) << ART_COUNT_SHIFT;
	child->more[0] = euno_get_word(bytes + art_inline_max(1));
	child->more[1] = euno_get_word(bytes + art_inline_max(2));
}

/* This process's stripe. */
static inline ArtStripe *
art_stripe(EunoContext *cx, EunoTree *tree)
{
	return &art_body(tree)->stripes[cx->process->slot % ART_STRIPES];
}

/*
 * Counts what this process added; the sum over all stripes is meant modulo
 * 2^64.  Called while the lock is held under which the change is made, so that
 * verify, which looks at all locks, knows when the counts are exact.
 */
static inline void
art_count(EunoContext *cx, EunoTree *tree, int64_t entries, int64_t inners)
{
	ArtStripe  *stripe = art_stripe(cx, tree);

	if (entries != 0)
		euno_counter_add(&stripe->entries, cx->process->slot < ART_STRIPES, entries);
	if (inners != 0)
		(void) euno_add64(&stripe->inners, (uint64_t) inners);
}

/*
 * Locks for a change: in OLC at the version that was read, in ROWEX at any.
 * False, and not locked, if that has passed or the node is obsolete.
 */
static inline bool
art_lock(EunoContext *cx, EunoLock *lock, uint64_t version, bool rowex)
{
	return rowex ? euno_lock_acquire_or_leave(lock, cx->env, &cx->counters) :
		euno_lock_upgrade(lock, version);
}

/* A try has failed.  False, with a status: no other is to follow. */
static inline bool
art_try_again(EunoContext *cx, EunoStatus *status)
{
	cx->counters.restarts++;
	if (euno_is_canceled(cx->env))
		*status = EUNO_CANCELED;
	return *status != EUNO_CANCELED;
}

/* art_key.c */
extern void euno_art_key_position(const EunoPosition *pos, ArtKey *key);
extern bool euno_art_key_after(ArtKey *key, uint32_t len);
extern int	euno_art_key_compare(const ArtKey *a, const ArtKey *b);

/* art_memory.c */
extern void *euno_art_alloc(EunoContext *cx, EunoTree *tree, size_t size);
extern void euno_art_free(EunoContext *cx, EunoTree *tree, void *p,
						  size_t size);
extern bool euno_art_reserve(EunoContext *cx, EunoTree *tree, uint32_t n);
extern void euno_art_unreserve(EunoContext *cx, EunoTree *tree, uint32_t n);
extern void euno_art_retire_ref(EunoContext *cx, EunoTree *tree, ArtRef ref);
extern void euno_art_reclaim(EunoContext *cx, EunoTree *tree);
extern void euno_art_reclaim_all(EunoContext *cx, EunoTree *tree);
extern void euno_art_build_start(ArtBuild *build, EunoContext *cx,
								 EunoTree *tree);
extern void *euno_art_build_alloc(ArtBuild *build, size_t size);
extern void euno_art_build_undo(ArtBuild *build);

/* art_last.c */
extern ArtRef euno_art_start(EunoContext *cx, EunoTree *tree,
							 const ArtKey *key, uint32_t *depth,
							 uint64_t *version);
extern bool euno_art_append(EunoContext *cx, EunoTree *tree,
							const EunoEntry *entry, uint64_t stamp);
extern void euno_art_note_last(EunoContext *cx, const ArtNode *node,
							   ArtNode *now, uint64_t stamp,
							   const ArtKey *key);

/* art_near.c */
extern ArtRef euno_art_near_find(EunoContext *cx, EunoTree *tree,
								 const ArtKey *key, uint32_t *depth,
								 uint64_t *version);
extern void euno_art_forget(EunoContext *cx, EunoTree *tree,
							const ArtKey *path, uint32_t depth,
							const ArtNode *node);

/* art_near_use.c */
extern void euno_art_sample(EunoContext *cx, EunoTree *tree,
							const ArtKey *key, bool from_root,
							uint32_t weight) __attribute__((cold));
extern void euno_art_count_nodes(EunoContext *cx, uint32_t weight,
								 uint32_t copies,
								 uint32_t nodes) __attribute__((cold));

/* art_inner.c */
extern void euno_art_node_init(ArtNode *node, ArtType type,
							   const uint8_t *path, uint32_t from,
							   uint32_t level);
extern ArtType euno_art_node_type(uint32_t nchildren, uint32_t words);
extern ArtNode *euno_art_build_node(ArtBuild *build, ArtType type,
									const uint8_t *path, uint32_t from,
									uint32_t level);
extern uint32_t euno_art_node_place(ArtNode *node, uint8_t byte);
extern uint32_t euno_art_children_left(ArtNode *node);
extern bool euno_art_node_add(ArtNode *node, uint8_t byte,
							  const ArtChild *child);
extern void euno_art_node_map(ArtNode *node, uint64_t map[4],
							  uint8_t places[256]);
extern void euno_art_node_children(ArtNode *node, ArtChildren *children);
extern uint32_t euno_art_path_match(const ArtNode *node, const ArtKey *key,
									uint32_t depth);
extern void euno_art_path_copy(const ArtNode *node, uint32_t depth,
							   uint8_t *path);

/* art_copy.c */
extern ArtType euno_art_choose(const ArtChildren *children, uint32_t depth,
							   uint32_t capacity);
extern size_t euno_art_weight(const ArtChildren *children, uint32_t depth,
							  ArtType type);
extern void euno_art_copy_look(ArtCopy *copy, ArtNode *node);
extern void euno_art_copy_add(ArtCopy *copy, uint8_t byte,
							  const ArtChild *child);
extern bool euno_art_copy_build(ArtBuild *build, ArtCopy *copy, ArtType type,
								const uint8_t *path, uint32_t from,
								uint32_t level);
extern bool euno_art_copy_holds(const ArtCopy *copy, ArtNode *node);
extern uint32_t euno_art_copy_unlinks(const ArtCopy *copy);
extern void euno_art_copy_retire(EunoContext *cx, EunoTree *tree,
								 const ArtCopy *copy);

/* art_leaf.c */
extern bool euno_art_build_leaf(ArtBuild *build, const uint8_t *composite,
								uint32_t len, uint32_t depth,
								const uint8_t *payload, uint32_t payload_len,
								uint32_t words, ArtChild *child);
extern bool euno_art_build_leaf_for(ArtBuild *build, const uint8_t *composite,
									uint32_t len, const uint8_t *payload,
									uint32_t payload_len,
									const ArtPlace *place, ArtChild *child);
extern size_t euno_art_leaf_memory(ArtRef ref);
extern bool euno_art_leaf_tail(const ArtChild *child, uint32_t depth,
							   ArtTail *tail);
extern uint32_t euno_art_leaf_mismatch(const ArtTail *tail, uint32_t depth,
									   const ArtKey *key);
extern void euno_art_inline(const uint8_t *bytes, uint32_t n, ArtChild *child);

/* art_descend.c */
extern uint64_t euno_art_wait(EunoContext *cx, EunoTree *tree, EunoLock *lock,
							  const ArtKey *key, uint32_t level,
							  const ArtNode *node) __attribute__((cold));
extern EunoStatus euno_art_descend(EunoContext *cx, EunoTree *tree,
								   const ArtKey *key, bool rowex,
								   bool from_root, ArtPlace *place);
extern EunoStatus euno_art_descend_two(EunoContext *cx, EunoTree *tree,
									   const ArtKey *key, bool rowex,
									   ArtPlace *place, ArtPlace *above);
extern EunoStatus euno_art_descend_to(EunoContext *cx, EunoTree *tree,
									  const ArtKey *key, ArtPlace *place);
extern ArtRef *euno_art_lock_slot(EunoContext *cx, EunoTree *tree,
								  const ArtKey *key, const ArtPlace *place);
extern bool euno_art_lock_node(EunoContext *cx, const ArtPlace *place);

/* art_visit.c */
extern void euno_art_visit_start(ArtVisit *v, EunoContext *cx, EunoTree *tree);
extern EunoStatus euno_art_visit(ArtVisit *v);
extern void euno_art_visit_pause(ArtVisit *v);
extern void euno_art_visit_again(ArtVisit *v);

/* one operation a file */
extern EunoStatus euno_art_insert(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry, bool no_split);
extern EunoStatus euno_art_remove(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry,
								  const EunoGuard *guard);
extern EunoStatus euno_art_contains(EunoContext *cx, EunoTree *tree,
									const EunoEntry *entry);
extern EunoStatus euno_art_read(EunoContext *cx, EunoTree *tree,
								EunoCursor *cursor, bool forward,
								EunoBatch *batch);
extern uint32_t euno_art_read_keys(EunoContext *cx, EunoTree *tree,
								   const EunoPosition *positions, uint32_t n,
								   EunoBatch *batch, uint32_t *ends);
extern EunoStatus euno_art_bulk_begin(EunoContext *cx, EunoTree *tree,
									  EunoBulk *bulk);
extern EunoStatus euno_art_bulk_add(EunoContext *cx, EunoBulk *bulk,
									const EunoEntry *entry);
extern EunoStatus euno_art_bulk_end(EunoContext *cx, EunoBulk *bulk);
extern EunoStatus euno_art_walk(EunoContext *cx, EunoTree *tree,
								EunoWalk *walk);
extern EunoStatus euno_art_compact(EunoContext *cx, EunoTree *tree,
								   uint32_t how, uint32_t max_leaves,
								   uint32_t *merged);
extern void euno_art_tidy(EunoContext *cx, EunoTree *tree, const ArtKey *key,
						  const ArtPlace *place, const ArtPlace *above);
extern EunoStatus euno_art_set_domains(EunoContext *cx, EunoTree *tree,
									   uint64_t domains);
extern void euno_art_maintain(EunoContext *cx, EunoTree *tree, int domain);
extern uint64_t euno_art_verify(EunoContext *cx, EunoTree *tree,
								const EunoVerify *verify);
extern uint64_t euno_art_entries(EunoTree *tree);
extern uint64_t euno_art_inners(EunoTree *tree);

/* art_heat.c */

/* What an operation seeks, and so what an ArtKey holds. */
typedef enum ArtSought
{
	ART_ENTRY,					/* a composite */
	ART_PATH					/* all sorts of things, on the path down to the node */
} ArtSought;

extern uint64_t euno_art_place(const ArtKey *key, uint32_t depth);
extern void euno_art_conflict(EunoContext *cx, EunoTree *tree,
							  const ArtKey *key, ArtSought sought,
							  uint32_t level, const ArtNode *node,
							  EunoCause cause) __attribute__((cold));
extern EunoStatus euno_art_stale(EunoContext *cx, EunoTree *tree,
								 const ArtKey *key, ArtSought sought,
								 uint32_t level, const ArtNode *node)
			__attribute__((cold));
extern void euno_art_collide(EunoContext *cx, EunoTree *tree,
							 const ArtKey *key, const ArtPlace *place,
							 EunoCause cause) __attribute__((cold));
extern void euno_art_delegated(EunoContext *cx, EunoTree *tree,
							   const ArtKey *key, uint32_t depth);
extern uint32_t euno_art_heat(EunoContext *cx, EunoTree *tree, bool round,
							  EunoHeat *to, uint32_t max);
extern EunoStatus euno_art_leaf(EunoContext *cx, EunoTree *tree,
								const EunoHeat *heat, EunoLeafInfo *info);

/* art_crowd.c */

/*
 * Tries of a write that fail before its place is crowded.  Tests make it more.
 */
#ifndef ART_CROWD
#define ART_CROWD			2
#endif

/* Before each try of a write; see euno_art_crowd. */
#define art_may_be_crowded(cx, tree, attempts) \
	((attempts) >= ART_CROWD || euno_had_crowds(cx) || \
	 (cx)->delegation.always || euno_load64(&art_body(tree)->edge.where) != 0)

extern bool euno_art_crowd(EunoContext *cx, EunoTree *tree, const ArtKey *key,
						   uint32_t attempts, uint32_t depth,
						   const EunoWish *wish, EunoStatus *status);

#endif							/* ART_H */
