/*-------------------------------------------------------------------------
 *
 * art_search.h
 *	  A node's child for a byte, whether a key follows its path, and the descent
 *	  from the root that is made of these.
 *
 * In a header for the sake of speed.  All of it may be called on a node that
 * is being written: every answer was true at some time since the call began.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_SEARCH_H
#define ART_SEARCH_H

#include "core/art/art.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Nodes of this many bytes are fetched whole. */
#define ART_SMALL	320

/* The places of a byte among 16, as bits. */
static inline uint32_t
art_match16(const uint8_t *shared, uint8_t byte)
{
	uint8_t		keys[16];
	uint32_t	mask = 0;

	euno_copy_out(keys, shared, 16);
#ifdef __SSE2__
	mask = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) keys),
													   _mm_set1_epi8((char) byte)));
#else
	for (int i = 0; i < 16; i++)
		mask |= (uint32_t) (keys[i] == byte) << i;
#endif
	return mask;
}

/*
 * The child in a LIST.  A slot that was not given out has the key 0 and no
 * child.  Its key may be set just after it was read here as 0; a child is
 * published after its key, so the key is read again once there is a child.
 */
static inline ArtRef *
art_list_slot(ArtNode *node, ArtType type, uint8_t byte, ArtRef *ref)
{
	uint32_t	capacity = euno_art_layouts[type].capacity;
	uint32_t	words = euno_art_layouts[type].words;
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	ArtRef	   *children = art_children_of(node, type);

	for (uint32_t base = 0; base < capacity; base += 16)
	{
		uint32_t	mask = art_match16(keys + base, byte);

		if (capacity - base < 16)
			mask &= (1U << (capacity - base)) - 1;
		for (; mask != 0; mask &= mask - 1)
		{
			uint32_t	i = base + (uint32_t) __builtin_ctz(mask);

			*ref = euno_load64_acquire(&children[i * words]);
			if (*ref != 0 && euno_load8(&keys[i]) == byte)
				return &children[i * words];
		}
	}
	*ref = 0;
	return NULL;
}

/* The slot of a byte in an N256 and what it holds. */
static inline ArtRef *
art_direct_slot(ArtNode *node, uint8_t byte, ArtRef *ref)
{
	ArtRef	   *slot = (ArtRef *) node->body + byte;

	*ref = euno_load64_acquire(slot);
	return slot;
}

/*
 * The slot of a byte in a LIST or INDEX and what it holds (0 if there is no
 * slot).  "type" is the node's, from the reference to it: so the slot's line can
 * be fetched along with the header's.
 */
static inline ArtRef *
art_indirect_slot(ArtNode *node, ArtType type, uint8_t byte, ArtRef *ref)
{
	if (type > ART_LAST_LIST)
	{
		uint32_t	i = euno_load8(&node->body[byte]);
		ArtRef	   *slot;

		*ref = 0;
		if (i == 0)
			return NULL;
		slot = (ArtRef *) (node->body + 256) +
			(i - 1) * euno_art_layouts[type].words;
		*ref = euno_load64_acquire(slot);
		return slot;
	}
	return art_list_slot(node, type, byte, ref);
}

/* The slot of a byte in a node of any type, and what it has. */
static inline ArtRef *
art_slot(ArtNode *node, ArtType type, uint8_t byte, ArtRef *ref)
{
	return type == ART_N256 ? art_direct_slot(node, byte, ref) :
		art_indirect_slot(node, type, byte, ref);
}

/*
 * Adds a child under a byte that has no slot, in this free one.  The node, of
 * this type and with its slots there, is locked, or not yet reachable.
 *
 * The reference comes after the slot's other words, which stay as they are
 * from then on.  Readers of a LIST look at the child first and then again at
 * the key; readers of an INDEX that see the number but not yet the child see
 * nothing there.
 */
static inline void
art_node_put(ArtNode *node, ArtType type, ArtRef *children, uint32_t at,
			 uint8_t byte, const ArtChild *child)
{
	const ArtLayout *layout = &euno_art_layouts[type];
	ArtRef	   *slot = children + at * layout->words;

	if (type <= ART_LAST_LIST)
		euno_store8((uint8_t *) node + ART_KEYS + at, byte);
	for (uint32_t i = 1; i < layout->words; i++)
		euno_store64(slot + i, child->more[i - 1]);
	euno_store64_release(slot, child->ref);
	if (type > ART_LAST_LIST && type != ART_N256)
	{
		euno_store32(&node->used, euno_load32(&node->used) + 1);
		euno_fence_release();
		euno_store8(&node->body[byte], (uint8_t) (at + 1));
	}
}

/*
 * The first byte in which a key differs from a node's path, the node's level
 * if none does; or the key's length, if all of the key is on the path.  The
 * key's first "depth" bytes do not differ.  Reads only what never changes.
 */
static inline uint32_t
art_path_match(const ArtNode *node, const ArtKey *key, uint32_t depth)
{
	uint32_t	len = art_segment_len(node);
	uint32_t	level = art_level(node);
	uint64_t	differ;

	if (len == 0)
		return level;
	if (len > 8 || level > key->len)
		return euno_art_path_match(node, key, depth);
	differ = (euno_load_be(art_segment(node), 8) ^
			  euno_load_be(key->bytes + level - len, 8)) >> (64 - 8 * len);
	if (differ == 0)
		return level;
	return level - len +
		(uint32_t) __builtin_clzll(differ << (64 - 8 * len)) / 8;
}

/* Where in a LIST or INDEX of this capacity the child of a byte should be. */
static inline uint32_t
art_place(uint32_t capacity, uint8_t byte)
{
	return capacity * byte >> 8;
}

/*
 * Fetches what the search for a byte will read of a node, from a reference
 * that is believed: where the child is shows only when the bytes have come,
 * and then it would be waited for again.  All of a small LIST; of a larger one
 * its keys and the lines around where the child should be; of an INDEX the
 * byte's number and such a line.
 */
static inline void
art_fetch_node(ArtRef ref, uint8_t byte)
{
	const uint8_t *node = art_pointer(ref);
	ArtType		type = art_ref_type(ref);
	const ArtLayout *layout = &euno_art_layouts[type];
	const uint8_t *place;

	if (type == ART_N256)
	{
		euno_fetch(node + ART_NODE_HEADER + sizeof(ArtRef) * byte);
		return;
	}
	if (layout->size <= ART_SMALL)
	{
		for (uint32_t at = 64; at < layout->size; at += 64)
			euno_fetch(node + at);
		euno_fetch(node + layout->size - 1);
		return;
	}
	place = node + layout->children + 8 * layout->words *
		art_place(layout->capacity, byte);
	euno_fetch(place);
	if (type > ART_LAST_LIST)
	{
		euno_fetch(node + ART_NODE_HEADER + byte);
		return;
	}
	euno_fetch(node + layout->children - 1);
	if (place >= node + 64)
		euno_fetch(place - 64);
	if (place + 64 < node + layout->size)
		euno_fetch(place + 64);
}

/* euno_lock_read_or_leave of a node; see euno_art_conflict. */
static inline bool
art_read_lock(EunoContext *cx, EunoTree *tree, EunoLock *lock,
			  uint64_t *version, const ArtKey *key, ArtSought sought,
			  uint32_t level, const ArtNode *node)
{
	uint64_t	word = euno_load64_acquire(&lock->word);

	if (__builtin_expect((word & EUNO_LOCK_LOCKED) != 0, 0))
	{
		euno_art_conflict(cx, tree, key, sought, level, node,
						  EUNO_CAUSE_LOCKED);
		word = euno_lock_wait(lock, cx->env, &cx->counters, true);
	}
	*version = word;
	return (word & (EUNO_LOCK_OBSOLETE | EUNO_LOCK_LOCKED)) == 0;
}

/* The lock of what has a slot, a node or the tree. */
static inline EunoLock *
art_lock_of(EunoTree *tree, ArtNode *holder)
{
	return holder != NULL ? &holder->lock : &art_body(tree)->root_lock;
}

/*
 * The version of what a descent comes to, before its slot is read.  Waits
 * while the lock word has a "busy" bit; false if it has one still.
 */
static inline __attribute__((always_inline)) bool
art_way_version(EunoContext *cx, EunoTree *tree, EunoLock *lock,
				uint64_t busy, const ArtKey *key, uint32_t level,
				const ArtNode *node, uint64_t *version)
{
	*version = euno_load64_acquire(&lock->word);
	if (__builtin_expect((*version & busy) == 0, 1))
		return true;
	*version = euno_art_wait(cx, tree, lock, key, level, node);
	return (*version & busy) == 0;
}

/*
 * From the node that a slot was found to hold, on the way to the key, to the
 * slot in it of the key's next byte; what was the place becomes "above", if
 * that is not NULL.  False, and nothing has changed: there is no such slot.
 */
static inline __attribute__((always_inline)) bool
art_step(EunoTree *tree, const ArtKey *key, ArtPlace *p, ArtPlace *above)
{
	ArtNode    *node = art_pointer(p->ref);
	uint32_t	level = art_ref_level(p->ref);
	ArtRef		child;
	ArtRef	   *next = art_is_direct(p->ref) ?
		art_direct_slot(node, key->bytes[level], &child) :
		art_indirect_slot(node, art_ref_type(p->ref), key->bytes[level],
						  &child);

	if (next == NULL)
		return false;
	if (above != NULL)
	{
		above->holder = p->holder;
		above->slot = p->near ? NULL : p->slot;
		above->lock = art_lock_of(tree, p->holder);
		above->ref = p->ref;
		above->depth = p->depth;
	}
	p->near = false;
	p->holder = node;
	p->slot = next;
	p->version = p->node_version;
	p->ref = child;
	p->depth = level + 1;
	return true;
}

/*
 * Finds the slot where the composite belongs; with "prefix", the slot that all
 * composites are below that start with the key: ART_AT_TREE, or ART_AT_LEAF
 * with a leaf that may be one of them.  EUNO_OK; EUNO_STALE (never with
 * "rowex"): start again; EUNO_CORRUPT.  The epoch has been entered; nothing is
 * locked.
 *
 * It goes as ROWEX writers do in both protocols ("The ART of Practical
 * Synchronization", section 4): every slot holds at every moment something
 * that was right to find there, and a node's level and path never change.  In
 * OLC each node's version is taken before its slot is read, for who locks it
 * at that version; none is looked at again.  src/README.md, "The
 * ART", "Insert".
 *
 * It begins at the node that the last inserts went to, or as low as the
 * domain's map says, if that is known to be on the way; unless "from_root" is
 * set.
 *
 * "above", if it is not NULL, becomes the place of the slot's holder, to be
 * locked as in ROWEX; its slot is NULL if that is not known, or there is no
 * holder.
 */
static inline __attribute__((always_inline)) EunoStatus
art_descend(EunoContext *cx, EunoTree *tree, const ArtKey *key, bool rowex,
			bool prefix, bool from_root, ArtPlace *place, ArtPlace *above)
{
	const uint64_t busy = rowex ? 0 : EUNO_LOCK_LOCKED | EUNO_LOCK_OBSOLETE;
	ArtBody    *body = art_body(tree);
	ArtPlace	p = {.where = ART_AT_LEAF,.rowex = rowex,.slot = &body->root};
	ArtRef		start = 0;
	uint64_t	start_version;
	uint32_t	start_depth;
	uint32_t	weight;

	cx->counters.descents++;
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		euno_art_sample(cx, tree, key, from_root, weight);
	if (above != NULL)
		above->slot = NULL;
	if ((cx->last.again || cx->domain > 0) && !from_root)
		start = euno_art_start(cx, tree, key, &start_depth, &start_version);
	if (start != 0)
	{
		/* Its path has been looked at. */
		p.near = true;
		p.ref = start;
		p.depth = start_depth;
		p.node_version = start_version;
		if (!art_step(tree, key, &p, above))
			p.where = ART_AT_GAP;
	}
	else
	{
		if (!art_way_version(cx, tree, &body->root_lock, busy, key, 0, NULL,
							 &p.version))
			return EUNO_STALE;	/* canceled */
		p.ref = euno_load64_acquire(&body->root);
	}
	while (p.where == ART_AT_LEAF && art_is_node(p.ref))
	{
		ArtNode    *node = art_pointer(p.ref);
		uint32_t	level = art_ref_level(p.ref);

		if (level != p.depth &&
			(level < p.depth || level >= ART_MAX_COMPOSITE))
			return EUNO_CORRUPT;
		if (!art_is_direct(p.ref))
			art_fetch_node(p.ref, key->bytes[level]);
		if (!art_way_version(cx, tree, &node->lock, busy, key, level, node,
							 &p.node_version))
			return euno_art_stale(cx, tree, key, ART_ENTRY, level, node);
		if (level != p.depth || level >= key->len)
		{
			p.mismatch = art_path_match(node, key, p.depth);
			if (p.mismatch < level || level >= key->len)
			{
				if (p.mismatch >= key->len && !prefix)
					return EUNO_CORRUPT;	/* a prefix of another composite */
				p.where = p.mismatch < key->len ? ART_AT_PATH : ART_AT_TREE;
				break;
			}
		}
		if (!art_step(tree, key, &p, above))
			p.where = ART_AT_GAP;
	}
	p.lock = art_lock_of(tree, p.holder);
	*place = p;
	return EUNO_OK;
}

#endif							/* ART_SEARCH_H */
