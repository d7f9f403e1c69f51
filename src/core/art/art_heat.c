/*-------------------------------------------------------------------------
 *
 * art_heat.c
 *	  Conflicts at nodes, and the nodes that they are about (euno_heat.h).
 *
 * A place is what composites have in common: the path to a node, all bytes above
 * the one that it branches on.  That is the same before and after the node is
 * made anew, and says which keys it is about.  Of long keys EUNO_HEAT_KEY
 * bytes are told apart, no more.
 *
 * Nothing here looks at a node but euno_art_leaf, which comes to it from the
 * root.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/*
 * What composites have in common whose first "depth" bytes are these; not 0.
 */
uint64_t
euno_art_place(const ArtKey *key, uint32_t depth)
{
	uint64_t	hash = depth;

	for (uint32_t i = 0; i < depth && i < key->len; i++)
		hash = (hash ^ key->bytes[i]) * UINT64_C(0x100000001B3);
	return hash | 1;
}

/* The same as a number in a heat table. */
static uint32_t
number_of(const ArtKey *key, uint32_t depth)
{
	uint64_t	place = euno_art_place(key, depth);

	return (uint32_t) (place ^ place >> 32) | 1;
}

/* See euno_art_conflict; "state" as in EunoHeatPlace. */
static void
note(EunoContext *cx, EunoTree *tree, const ArtKey *key, ArtSought sought,
	 uint32_t level, int state, EunoCause cause)
{
	uint32_t	len = sought == ART_PATH ? level : key->len;
	EunoPosition pos = {.key = key->bytes,.keylen = len};
	EunoHeatPlace place = {.state = state};
	uint32_t	most;

	if (sought == ART_ENTRY)
	{
		pos.keylen -= EUNO_TID_BYTES;
		pos.tid = euno_get_tid(key->bytes + pos.keylen);
	}
	most = pos.keylen > EUNO_HEAT_KEY ? EUNO_HEAT_KEY : len;
	place.prefix = (uint8_t) (level < most ? level : most);
	place.number = number_of(key, place.prefix);
	(void) euno_heat_note(cx, tree, &art_body(tree)->heat, &place, &pos,
						  cause);
}

/*
 * An operation that seeks this has met a conflict at a node of this level on
 * the way to it (0 for the root slot).  "node" is NULL if it is not at hand.
 * To be called within the epoch in which the node was reached, with no node
 * locked.  Of the node nothing but its address is used, for it may be
 * obsolete.
 */
void
euno_art_conflict(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				  ArtSought sought, uint32_t level, const ArtNode *node,
				  EunoCause cause)
{
	uintptr_t	address = (uintptr_t) node;

	cx->counters.conflicts[cause]++;
	if (euno_heat_is_due(cx))
		note(cx, tree, key, sought, level,
			 node == NULL ? -1 : (uint8_t) (address >> 4 ^ address >> 12),
			 cause);
}

/* The node had changed: returns EUNO_STALE. */
EunoStatus
euno_art_stale(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			   ArtSought sought, uint32_t level, const ArtNode *node)
{
	euno_art_conflict(cx, tree, key, sought, level, node, EUNO_CAUSE_CHANGED);
	return EUNO_STALE;
}

/*
 * An entry's writer has met a conflict at the node that its place would have
 * been changed in.
 */
void
euno_art_collide(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				 const ArtPlace *place, EunoCause cause)
{
	bool		gap = place->where == ART_AT_GAP;
	uint32_t	level = gap ? art_ref_level(place->ref) :
		place->depth > 0 ? place->depth - 1 : 0;

	euno_art_conflict(cx, tree, key, ART_ENTRY, level,
					  gap ? art_pointer(place->ref) : place->holder, cause);
}

/*
 * A write below the first "depth" bytes of an entry's composite has been
 * performed by somebody else: but for that, it would have been a conflict.  As
 * euno_art_conflict.
 */
void
euno_art_delegated(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				   uint32_t depth)
{
	if (euno_heat_is_due(cx))
		note(cx, tree, key, ART_ENTRY, depth, -1, EUNO_CAUSE_DELEGATED);
}

/* See EunoTreeOps.  No locks on entry or return. */
uint32_t
euno_art_heat(EunoContext *cx, EunoTree *tree, bool round, EunoHeat *to,
			  uint32_t max)
{
	return euno_heat_read(cx, &art_body(tree)->heat, round, to, max);
}

/*
 * The first node on the way to a composite whose path has at least this many
 * bytes; if there is none, the last one on the way.  Returns how many bytes
 * its path has of the composite; *found is 0 if there is no node at all.
 * Nothing is validated, as in ROWEX: each node was on the way at some time
 * since the call.  Within an epoch.
 */
static uint32_t
find_node(EunoTree *tree, const ArtKey *key, uint32_t prefix, ArtRef *found)
{
	ArtRef		ref = euno_load64_acquire(&art_body(tree)->root);
	uint32_t	depth = 0;
	uint32_t	path = 0;

	*found = 0;
	while (art_is_node(ref))
	{
		ArtNode    *node = art_pointer(ref);
		uint32_t	level = art_ref_level(ref);
		uint32_t	match;
		ArtRef		child;

		if (level < depth || level >= ART_MAX_COMPOSITE)
			break;
		match = art_path_match(node, key, depth);
		if (match < level && match < key->len)
			break;				/* another path */
		*found = ref;
		path = match;
		if (level >= prefix || level >= key->len ||
			art_slot(node, art_ref_type(ref), key->bytes[level], &child) == NULL)
			break;
		ref = child;
		depth = level + 1;
	}
	return path;
}

/* The gap before all composites that are not below these bytes. */
static void
set_fence(EunoPositionBuffer *fence, const ArtKey *key)
{
	memcpy(fence->data, key->bytes, key->len);
	fence->pos = (EunoPosition) {.key = fence->data,.keylen = key->len,
		.side = -1};
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_leaf(EunoContext *cx, EunoTree *tree, const EunoHeat *heat,
			  EunoLeafInfo *info)
{
	EunoEntry	entry = {.key = heat->key,.keylen = heat->keylen,
	.tid = heat->tid};
	ArtKey		key;
	ArtRef		node;
	uint32_t	path;

	euno_art_key_entry(&entry, &key);
	euno_art_key_set(&key, heat->cut ? heat->keylen : key.len);
	euno_epoch_enter(cx->process);
	path = find_node(tree, &key, heat->prefix, &node);
	info->entries = node != 0 ? euno_art_children_left(art_pointer(node)) :
		!art_is_absent(euno_load64_acquire(&art_body(tree)->root));
	euno_epoch_exit(cx->process);
	info->number = number_of(&key, path);
	info->domain = ART_DOMAIN;
	info->mode = euno_heat_is_delegated(heat) ? "delegated" : "calm";
	info->parted = false;
	info->has_low = path > 0;
	euno_art_key_set(&key, path);
	set_fence(&info->low, &key);
	info->has_high = euno_art_key_after(&key, path);
	set_fence(&info->high, &key);
	return EUNO_OK;
}
