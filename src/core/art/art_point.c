/*-------------------------------------------------------------------------
 *
 * art_point.c
 *	  Looking up keys: the short way.
 *
 * Most reads ask for all entries that start with one key, and find one or none.
 * What is here is that case and nothing else, in few instructions.  Whatever is
 * not like that is left to the general read, from the start.
 *
 * Several keys go down together, a node each at a time, so that what has to be
 * fetched for each is fetched at the same time ("group prefetching" of Chen et
 * al., ICDE 2004, on a tree).
 *
 * All go as ROWEX readers do, in both protocols: without versions ("The ART of
 * Practical Synchronization", section 4).  src/README.md, "Reading, `sync =
 * rowex`", says why that is right on these nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/*
 * Has the memory fetch what is going to be read of a child, for a byte: of a
 * large node the lines where the byte's child should be.
 */
static inline void
prefetch_child(ArtRef ref, const uint8_t *key, uint32_t len)
{
	const uint8_t *p = art_is_node(ref) ? art_pointer(ref) : art_record(ref);
	const ArtLayout *layout;
	const uint8_t *place;
	uint32_t	level = art_ref_level(ref);
	uint8_t		byte;

	if ((ref & ART_TAG_INLINE) != 0 || ref == 0)
		return;
	euno_prefetch(p);
	if (!art_is_node(ref))
	{
		euno_prefetch(p + 32);
		return;
	}
	layout = &euno_art_layouts[art_ref_type(ref)];
	if (layout->size <= ART_SMALL)
	{
		for (uint32_t at = 64; at < layout->size; at += 64)
			euno_prefetch(p + at);
		euno_prefetch(p + layout->size - 1);
		return;
	}
	byte = level < len ? key[level] : 0;
	place = p + layout->children + 8 * layout->words *
		(art_ref_type(ref) == ART_N256 ? byte : art_place(layout->capacity, byte));
	euno_prefetch(place);
	if (art_ref_type(ref) == ART_N256)
		return;
	euno_prefetch(place - 64);
	euno_prefetch(place + 64);
	if (art_ref_type(ref) > ART_LAST_LIST)
		euno_prefetch(p + ART_NODE_HEADER + byte);
	else
		euno_prefetch(p + layout->children - 1);
}

/*
 * Do the key's bytes [depth, level) differ from a node's path?  Eight bytes of
 * the node are read, of which the last ones are the path's.
 */
static inline bool
off_path(const ArtNode *node, ArtType type, const uint8_t *key, uint32_t depth,
		 uint32_t level)
{
	const uint8_t *end = art_segment_of(node, type) + art_segment_len(node);

	for (; level - depth > 8; depth += 8)
	{
		if (euno_load_be(end - (level - depth), 8) != euno_get_word(key + depth))
			return true;
	}
	return euno_load_be(end - 8, 8) << (64 - 8 * (level - depth)) !=
		art_top_bytes(key + depth, level - depth);
}

/*
 * One node down, from a reference to a node.  False: the key ends above the
 * node.
 */
static inline __attribute__((always_inline)) bool
step(ArtLookup *at, const uint8_t *key, uint32_t len, bool alone)
{
	ArtNode    *node = art_pointer(at->ref);
	ArtType		type = art_ref_type(at->ref);
	uint32_t	level = art_ref_level(at->ref);

	if (level - at->depth >= len - at->depth)
		return false;
	if (alone)
		art_fetch_node(at->ref, key[level]);	/* not asked for yet */
	if (level > at->depth && off_path(node, type, key, at->depth, level))
		at->ref = 0;
	else
		at->slot = art_slot(node, type, key[level], &at->ref);
	at->depth = level + 1;
	return true;
}

/*
 * The same from a node of 256 children.  Where keys are dense most are, and
 * there is nothing to search in them.
 */
static inline __attribute__((always_inline)) bool
step_directly(ArtLookup *at, const uint8_t *key, uint32_t len)
{
	ArtNode    *node = art_pointer(at->ref);
	uint32_t	level = art_ref_level(at->ref);
	uint32_t	path = level - at->depth;

	if (path >= len - at->depth)
		return false;
	if (path > 0 && off_path(node, ART_N256, key, at->depth, level))
		at->ref = 0;
	else
		at->slot = art_direct_slot(node, key[level], &at->ref);
	at->depth = level + 1;
	return true;
}

/* Down to what is no node, or as far as the key goes. */
static inline void
descend(ArtLookup *at, const uint8_t *key, uint32_t len)
{
	do
	{
		while (art_is_direct(at->ref))
		{
			if (!step_directly(at, key, len))
				return;
			__asm__ __volatile__("");	/* GCC would make one loop of both */
		}
	} while (art_is_node(at->ref) && step(at, key, len, true));
}

/*
 * Adds what a key has led to to the batch; keys go to *used.  False if it is
 * not one entry or none, or has no room.
 */
static inline bool
take(const ArtLookup *at, const uint8_t *key, uint32_t len, EunoBatch *batch,
	 uint32_t *used)
{
	EunoItemKey *item;
	EunoTid		tid = 0;
	bool		found = false;

	if (art_is_absent(at->ref))
		return true;
	if (art_is_node(at->ref) ||
		!art_leaf_match(at->ref, at->slot, at->depth, key, len,
						batch->want_keys, &found, &tid))
		return false;
	if (!found)
		return true;
	if (batch->nitems >= batch->max_items)
		return false;
	if (batch->want_keys)
	{
		if (*used + len > batch->buf_size)
			return false;
		item = &batch->keys[batch->nitems];
		item->offset = *used;
		item->keylen = (uint16_t) len;
		item->payloadlen = 0;
		memcpy(batch->buf + *used, key, len);
		*used += euno_align8(len);
	}
	batch->tids[batch->nitems++] = tid;
	return true;
}

/* A copy of a key, with what loads may meet behind it. */
static inline void
set_key(ArtKey *key, const uint8_t *bytes, uint32_t len)
{
	if (len > 0)
		memcpy(key->bytes, bytes, len);
	euno_art_key_set(key, len);
}

/* A node that is known to be on the way; 0: there is none. */
static __attribute__((noinline)) ArtRef
start_below(EunoContext *cx, EunoTree *tree, const uint8_t *bytes,
			uint32_t len, uint32_t *depth)
{
	uint64_t	version;
	ArtKey		key;

	set_key(&key, bytes, len);
	return euno_art_start(cx, tree, &key, depth, &version);
}

/* This lookup is one of the sample. */
static __attribute__((noinline, cold)) void
sample(EunoContext *cx, EunoTree *tree, const uint8_t *bytes, uint32_t len,
	   uint32_t weight)
{
	ArtKey		key;

	set_key(&key, bytes, len);
	euno_art_sample(cx, tree, &key, false, weight);
}

/*
 * Where the search for a key begins: at the root, or at a node that is known
 * to be on the way.  Within an epoch.
 */
static inline ArtLookup
start(EunoContext *cx, EunoTree *tree, const uint8_t *key, uint32_t len)
{
	ArtLookup	at = {.slot = &art_body(tree)->root};
	uint32_t	weight;
	uint32_t	depth;

	cx->counters.descents++;
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		sample(cx, tree, key, len, weight);
	if (cx->last.again || cx->domain > 0)
	{
		at.ref = start_below(cx, tree, key, len, &depth);
		at.depth = depth;
	}
	if (at.ref == 0)
	{
		at.ref = euno_load64_acquire(&art_body(tree)->root);
		at.depth = 0;
	}
	return at;
}

/* The short way was not enough.  Within the same epoch. */
static __attribute__((noinline)) EunoStatus
read_below(EunoContext *cx, EunoTree *tree, EunoCursor *cursor, bool forward,
		   const ArtLookup *at, EunoBatch *batch)
{
	const EunoPosition *pos = &cursor->lo;
	ArtKey		key;

	set_key(&key, pos->key, pos->keylen < EUNO_MAX_ENTRY ? pos->keylen :
			EUNO_MAX_ENTRY);
	return euno_art_read_below(cx, tree, cursor, forward, &key, at, batch);
}

/*
 * Reads the first batch of all that starts with a key, the cursor's lo and hi.
 * No locks on entry or return.
 */
EunoStatus __attribute__((flatten))
euno_art_read_key(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
				  bool forward, EunoBatch *batch)
{
	const uint8_t *key = cursor->lo.key;
	uint32_t	len = cursor->lo.keylen < EUNO_MAX_ENTRY ? cursor->lo.keylen :
		EUNO_MAX_ENTRY;
	EunoStatus	status = EUNO_OK;
	uint32_t	used = 0;
	ArtLookup	at;

	batch->nitems = 0;
	euno_epoch_enter(cx->process);
	at = start(cx, tree, key, len);
	descend(&at, key, len);
	if (take(&at, key, len, batch, &used))
		cursor->started = cursor->at_lo = cursor->at_hi = true;
	else
	{
		ArtLookup	place = at;	/* else it would not be kept in registers */

		status = read_below(cx, tree, cursor, forward, &place, batch);
	}
	euno_epoch_exit(cx->process);
	return status;
}

/* See EunoTreeOps. */
uint32_t
euno_art_read_keys(EunoContext *cx, EunoTree *tree,
				   const EunoPosition *positions, uint32_t n,
				   EunoBatch *batch, uint32_t *ends)
{
	ArtLookup	at[EUNO_KEYS_MAX];
	uint32_t	going = 0;		/* a set of keys */
	uint32_t	used = 0;
	uint32_t	i;

	batch->nitems = 0;
	euno_epoch_enter(cx->process);
	for (i = 0; i < n; i++)
	{
		at[i] = start(cx, tree, positions[i].key, positions[i].keylen);
		going |= 1U << i;
	}
	while (going != 0)
	{
		for (i = 0; i < n; i++)
		{
			if ((going >> i & 1) == 0)
				continue;
			if (art_is_node(at[i].ref) &&
				step(&at[i], positions[i].key, positions[i].keylen, false))
				prefetch_child(at[i].ref, positions[i].key, positions[i].keylen);
			else
				going &= ~(1U << i);
		}
	}
	for (i = 0; i < n && take(&at[i], positions[i].key, positions[i].keylen,
							  batch, &used); i++)
		ends[i] = batch->nitems;
	euno_epoch_exit(cx->process);
	return i;
}
