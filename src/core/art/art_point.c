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
 * fetched for each is fetched at the same time ("group prefetching" of Chen et al.,
 * ICDE 2004, on a tree).
 *
 * All go as ROWEX readers do, in both protocols: without versions ("The ART of
 * Practical Synchronization", section 4).  README, "Reading, sync = rowex", says
 * why that is right on these nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_range.h"

/*
 * Has the memory fetch what is going to be read of a child, for a byte: of a
 * large node the lines where the byte's child should be.
 */
static inline void
prefetch_child(ArtRef ref, const ArtKey *key)
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
	byte = level < key->len ? key->bytes[level] : 0;
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

/* One node down.  False: the key has come to where it ends. */
static inline __attribute__((always_inline)) bool
step(ArtLookup *at, const ArtKey *key, bool alone)
{
	ArtNode    *node = art_pointer(at->ref);
	uint32_t	level = art_ref_level(at->ref);
	uint32_t	match;
	ArtRef		child;

	if (!art_is_node(at->ref) || level < at->depth || level >= key->len)
		return false;
	if (alone)
		art_fetch_node(at->ref, key->bytes[level]);	/* not asked for yet */
	match = art_path_match(node, key, at->depth);
	if (match == level)
		at->slot = art_slot(node, art_ref_type(at->ref), key->bytes[level],
							&child);
	if (match != level || at->slot == NULL)
	{
		at->absent = true;
		return false;
	}
	at->ref = child;
	at->depth = level + 1;
	if (!alone)
		prefetch_child(child, key);
	return alone || !art_is_absent(child);
}

/*
 * Adds what a key has led to to the batch; keys go to *used.  False if it is
 * not one entry or none, or has no room.
 */
static inline bool
take(const ArtLookup *at, const ArtKey *key, EunoBatch *batch, uint32_t *used)
{
	EunoItemKey *item;
	ArtChild	leaf;
	EunoTid		tid = 0;
	bool		found = false;

	if (at->absent || art_is_absent(at->ref))
		return true;
	if (art_is_node(at->ref))
		return false;
	leaf = art_child(at->ref, at->slot);
	if (!art_leaf_match(&leaf, at->depth, key, batch->want_keys, &found, &tid))
		return false;
	if (!found)
		return true;
	if (batch->nitems >= batch->max_items)
		return false;
	if (batch->want_keys)
	{
		if (*used + key->len > batch->buf_size)
			return false;
		item = &batch->keys[batch->nitems];
		item->offset = *used;
		item->keylen = (uint16_t) key->len;
		item->payloadlen = 0;
		memcpy(batch->buf + *used, key->bytes, key->len);
		*used += (key->len + 7) & ~UINT32_C(7);
	}
	batch->tids[batch->nitems++] = tid;
	return true;
}

/*
 * Where the search for a key begins: at the root, or at a node that is known
 * to be on the way.  Within an epoch.
 */
static inline ArtLookup
start(EunoContext *cx, EunoTree *tree, const ArtKey *key)
{
	ArtLookup	at = {.slot = &art_body(tree)->root};
	uint32_t	weight;
	uint64_t	version;

	cx->counters.descents++;
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		euno_art_sample(cx, tree, key, false, weight);
	if (cx->last.again || cx->domain > 0)
		at.ref = euno_art_start(cx, tree, key, &at.depth, &version);
	if (at.ref == 0)
	{
		at.ref = euno_load64_acquire(&art_body(tree)->root);
		at.depth = 0;
	}
	return at;
}

/*
 * Reads the first batch of all that starts with a key, the cursor's lo and hi.
 * No locks on entry or return.
 */
EunoStatus __attribute__((flatten))
euno_art_read_key(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
				  bool forward, EunoBatch *batch)
{
	const EunoPosition *pos = &cursor->lo;
	uint32_t	len = pos->keylen < EUNO_MAX_ENTRY ? pos->keylen : EUNO_MAX_ENTRY;
	EunoStatus	status = EUNO_OK;
	uint32_t	used = 0;
	ArtLookup	at;
	ArtKey		key;

	if (len > 0)
		memcpy(key.bytes, pos->key, len);
	euno_art_key_set(&key, len);
	batch->nitems = 0;
	euno_epoch_enter(cx->process);
	at = start(cx, tree, &key);
	while (step(&at, &key, true))
		;
	if (take(&at, &key, batch, &used))
		cursor->started = cursor->at_lo = cursor->at_hi = true;
	else
		status = euno_art_read_below(cx, tree, cursor, forward, &key, &at, batch);
	euno_epoch_exit(cx->process);
	return status;
}

/* See EunoTreeOps. */
uint32_t
euno_art_read_keys(EunoContext *cx, EunoTree *tree,
				   const EunoPosition *positions, uint32_t n,
				   EunoBatch *batch, uint32_t *ends)
{
	ArtKey		keys[EUNO_KEYS_MAX];
	ArtLookup	at[EUNO_KEYS_MAX];
	uint32_t	going = 0;		/* a set of keys */
	uint32_t	used = 0;
	uint32_t	i;

	batch->nitems = 0;
	euno_epoch_enter(cx->process);
	for (i = 0; i < n; i++)
	{
		memcpy(keys[i].bytes, positions[i].key, positions[i].keylen);
		euno_art_key_set(&keys[i], positions[i].keylen);
		at[i] = start(cx, tree, &keys[i]);
		going |= 1U << i;
	}
	while (going != 0)
	{
		for (i = 0; i < n; i++)
		{
			if ((going >> i & 1) != 0 && !step(&at[i], &keys[i], false))
				going &= ~(1U << i);
		}
	}
	for (i = 0; i < n && take(&at[i], &keys[i], batch, &used); i++)
		ends[i] = batch->nitems;
	euno_epoch_exit(cx->process);
	return i;
}
