/*-------------------------------------------------------------------------
 *
 * art_insert.c
 *	  Putting an entry into the tree.
 *
 * "The ART of Practical Synchronization", appendix B.  At most two nodes are
 * locked, the upper one first.  All memory is allocated before.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* The build is becoming part of the tree: the lock is held. */
static void
built(EunoContext *cx, EunoTree *tree, const ArtBuild *build, int64_t leaves,
	  int64_t inners)
{
	art_count(cx, tree, build->nentries, build->nleaves + leaves,
			  build->ninners + inners);
	if (build->ninners > 0)
		(void) euno_add64(&art_body(tree)->splits, 1);
}

/*
 * Puts a subtree where a node has no slot for the byte; a full node is
 * replaced by a larger one.  EUNO_OK; EUNO_STALE: look again, nothing is
 * built; EUNO_FULL, EUNO_NO_MEMORY.  No locks on entry or return.
 */
EunoStatus
euno_art_put_gap(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				 ArtPlace *place, ArtBuild *build, const ArtItem *items,
				 uint32_t n, bool no_split)
{
	ArtNode    *node = art_pointer(place->ref);
	uint32_t	level = node->level;
	uint8_t		byte = key->bytes[level];
	uint8_t		path[ART_MAX_COMPOSITE];
	ArtNode    *larger;
	ArtRef	   *slot;
	ArtRef		ref;

	if (no_split && !euno_art_node_room(node))
		return EUNO_FULL;
	ref = euno_art_build(build, items, n, level + 1);
	if (ref == 0)
		return EUNO_NO_MEMORY;
	if (!euno_lock_acquire(&node->lock, cx->env, &cx->counters))
		return EUNO_STALE;
	slot = euno_art_node_slot(node, byte);
	if (slot != NULL && euno_load64(slot) != 0)
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		return EUNO_STALE;
	}
	if (euno_art_node_add(node, byte, ref))
	{
		built(cx, tree, build, 0, 0);
		euno_lock_release(&node->lock, cx->env);
		return EUNO_OK;
	}
	euno_lock_release_unchanged(&node->lock, cx->env);
	if (no_split)
		return EUNO_FULL;

	/* Paper, section 4.2: replacing a node. */
	(void) euno_art_path_copy(node, path);
	larger = euno_art_build_node(build, (ArtType) (node->type + 1), path, level);
	if (larger == NULL || !euno_art_reserve(cx, tree, 1))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, tree, key, place);
	if (slot == NULL)
	{
		euno_art_unreserve(cx, tree, 1);
		return EUNO_STALE;
	}

	/* Linked from a locked slot: it cannot be obsolete. */
	(void) euno_lock_acquire(&node->lock, cx->env, &cx->counters);
	if (euno_art_node_slot(node, byte) != NULL || euno_art_node_room(node))
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		euno_lock_release_unchanged(place->lock, cx->env);
		euno_art_unreserve(cx, tree, 1);
		return EUNO_STALE;
	}
	euno_art_node_copy(larger, node);
	(void) euno_art_node_add(larger, byte, ref);
	euno_store64_release(slot, art_ref(larger, ART_NODE));
	built(cx, tree, build, 0, -1);
	euno_lock_release(place->lock, cx->env);
	euno_lock_release_obsolete(&node->lock, cx->env);
	euno_art_retire_ref(cx, tree, place->ref);
	return EUNO_OK;
}

/*
 * Puts a new node with two children above what the slot holds: that, under
 * byte place->other, and the entries.  They part at place->mismatch.  As
 * euno_art_put_gap.
 *
 * What was there is not touched.  Its path goes on saying where it belongs, so
 * a reader may come to it by either way (paper, section 4.2, figure 4).
 */
EunoStatus
euno_art_put_path(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				  ArtPlace *place, ArtBuild *build, const ArtItem *items,
				  uint32_t n)
{
	ArtNode    *node = euno_art_build_node(build, ART_N4, key->bytes,
										   place->mismatch);
	ArtRef		old = place->ref;
	ArtRef	   *slot;
	ArtRef		ref;

	if (node == NULL)
		return EUNO_NO_MEMORY;
	if (art_tag(old) == ART_INLINE)
		old = art_ref_inline(old >> ART_TID_SHIFT,
							 art_inline_over(old) + place->mismatch + 1 -
							 place->depth);
	ref = euno_art_build(build, items, n, place->mismatch + 1);
	if (ref == 0)
		return EUNO_NO_MEMORY;
	(void) euno_art_node_add(node, place->other, old);
	(void) euno_art_node_add(node, key->bytes[place->mismatch], ref);
	slot = euno_art_lock_slot(cx, tree, key, place);
	if (slot == NULL)
		return EUNO_STALE;
	euno_store64_release(slot, art_ref(node, ART_NODE));
	built(cx, tree, build, 0, 0);
	euno_lock_release(place->lock, cx->env);
	return EUNO_OK;
}

/* What is to be done with the entry. */
typedef struct Insert
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoEntry *entry;
	bool		no_split;
	ArtKey		key;
	ArtItem		item;
	ArtPlace	place;
	ArtBuild	build;
	ArtKey		other;			/* what was found in the slot */
	ArtImage	image;
	ArtItems	items;
} Insert;

/*
 * Replaces what the slot holds, no bucket, by what has been built.  EUNO_OK,
 * EUNO_STALE or EUNO_NO_MEMORY.
 */
static EunoStatus
replace_slot(Insert *ins, ArtRef ref)
{
	EunoContext *cx = ins->cx;
	ArtRef		old = ins->place.ref;
	bool		retire = old != 0 && art_tag(old) == ART_SINGLE;
	ArtRef	   *slot;

	if (ref == 0 || (retire && !euno_art_reserve(cx, ins->tree, 1)))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, retire);
		return EUNO_STALE;
	}
	euno_store64_release(slot, ref);
	built(cx, ins->tree, &ins->build, old != 0 ? -1 : 0, 0);
	euno_lock_release(ins->place.lock, cx->env);
	if (retire)
		euno_art_retire_ref(cx, ins->tree, old);
	return EUNO_OK;
}

/* The slot is empty or holds one entry. */
static EunoStatus
insert_beside(Insert *ins)
{
	ArtItem		pair[2];
	uint32_t	n = 0;
	int			c;

	if (!euno_art_leaf_item(&ins->place, &ins->key, &ins->other, &pair[0]) ||
		art_is_absent(ins->place.ref))
		pair[n++] = ins->item;
	else
	{
		c = euno_art_item_compare(&ins->item, &pair[0]);
		if (c == 0)
			return EUNO_EXISTS;
		pair[1] = ins->item;
		if (c < 0)
		{
			pair[1] = pair[0];
			pair[0] = ins->item;
		}
		n = 2;
	}
	return replace_slot(ins, euno_art_build(&ins->build, pair, n,
											ins->place.depth));
}

/*
 * The slot's bucket, changed in place.  EUNO_OK, EUNO_EXISTS; EUNO_STALE: it
 * is obsolete; EUNO_FULL: it does not fit, and ins->image is a copy of the
 * bucket at *version.
 */
static EunoStatus
insert_in_place(Insert *ins, ArtBucket *bucket, uint64_t *version)
{
	EunoContext *cx = ins->cx;
	EunoStatus	status = EUNO_FULL;
	ArtView		view;
	uint32_t	at;
	bool		exact;

	if (!euno_lock_acquire(&bucket->lock, cx->env, &cx->counters))
		return EUNO_STALE;
	euno_art_view(bucket, &view);
	at = euno_art_search(&view, &ins->key, &exact);
	if (view.torn)
		status = EUNO_CORRUPT;
	else if (exact)
		status = EUNO_EXISTS;
	else if (ins->item.payload_len == 0 &&
			 euno_art_bucket_insert(bucket, &view, at, &ins->key))
	{
		art_count(cx, ins->tree, 1, 0, 0);
		euno_lock_release(&bucket->lock, cx->env);
		return EUNO_OK;
	}
	if (status == EUNO_FULL)
		euno_copy_out(&ins->image, bucket, view.size);
	*version = euno_load64(&bucket->lock.word) &
		~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
	euno_lock_release_unchanged(&bucket->lock, cx->env);
	return status;
}

/*
 * Locks a bucket if it has not been changed since this version was current.
 */
static bool
lock_unchanged(EunoContext *cx, EunoLock *lock, uint64_t version)
{
	uint64_t	word;

	if (!euno_lock_acquire(lock, cx->env, &cx->counters))
		return false;
	word = euno_load64(&lock->word) & ~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
	if (word == version)
		return true;
	euno_lock_release_unchanged(lock, cx->env);
	return false;
}

/* Writes the bucket anew, in another form, where it is; it has the room. */
static EunoStatus
rewrite_bucket(Insert *ins, ArtBucket *bucket, uint64_t version,
			   uint32_t size, uint32_t prefix_len, uint32_t width)
{
	ArtImage	image;

	euno_art_encode(ins->items.items, ins->items.n, prefix_len, width, &image);
	if (!lock_unchanged(ins->cx, &bucket->lock, version))
		return EUNO_STALE;
	euno_store16(&bucket->n, image.bucket.n);
	euno_store16(&bucket->prefix_len, image.bucket.prefix_len);
	euno_store16(&bucket->width, image.bucket.width);
	euno_copy_in((uint8_t *) bucket + ART_BUCKET_HEADER,
				 image.bytes + ART_BUCKET_HEADER, size - ART_BUCKET_HEADER);
	art_count(ins->cx, ins->tree, 1, 0, 0);
	euno_lock_release(&bucket->lock, ins->cx->env);
	return EUNO_OK;
}

/* The slot's bucket is replaced by a larger one, or by a node. */
static EunoStatus
replace_bucket(Insert *ins, ArtBucket *bucket, uint64_t version)
{
	EunoContext *cx = ins->cx;
	EunoTree   *tree = ins->tree;
	ArtRef		ref;
	ArtRef	   *slot;

	ref = euno_art_build(&ins->build, ins->items.items, ins->items.n,
						 ins->place.depth);
	if (ref == 0)
		return EUNO_NO_MEMORY;
	if (!euno_art_reserve(cx, tree, 1))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, tree, &ins->key, &ins->place);
	if (slot != NULL && !lock_unchanged(cx, &bucket->lock, version))
	{
		euno_lock_release_unchanged(ins->place.lock, cx->env);
		slot = NULL;
	}
	if (slot == NULL)
	{
		euno_art_unreserve(cx, tree, 1);
		return EUNO_STALE;
	}
	euno_store64_release(slot, ref);
	built(cx, tree, &ins->build, -1, 0);
	euno_lock_release(ins->place.lock, cx->env);
	euno_lock_release_obsolete(&bucket->lock, cx->env);
	euno_art_retire_ref(cx, tree, ins->place.ref);
	return EUNO_OK;
}

static EunoStatus
insert_bucket(Insert *ins)
{
	ArtBucket  *bucket = art_pointer(ins->place.ref);
	EunoStatus	status;
	uint64_t	version;
	uint32_t	prefix_len;
	uint32_t	width;
	uint32_t	size;
	bool		dense;

	status = insert_in_place(ins, bucket, &version);
	if (status != EUNO_FULL)
		return status;
	euno_art_decode(&ins->image, &ins->item, &ins->items);
	size = euno_art_encoded_size(ins->items.items, ins->items.n, &prefix_len,
								 &width);
	dense = euno_art_is_dense(ins->items.items, ins->items.n);
	if (ins->no_split && (dense || size > ART_BUCKET_MAX))
		return EUNO_FULL;
	if (!dense && size <= (uint32_t) ins->image.bucket.units * 16)
		return rewrite_bucket(ins, bucket, version, size, prefix_len, width);
	return replace_bucket(ins, bucket, version);
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_art_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split)
{
	EunoStatus	status;
	Insert		ins;

	ins.cx = cx;
	ins.tree = tree;
	ins.entry = entry;
	ins.no_split = no_split;
	euno_art_key_entry(entry, &ins.key);
	euno_art_item_key(&ins.key, entry, &ins.item);
	euno_art_build_start(&ins.build, cx, tree);
	euno_epoch_enter(cx->process);
	do
	{
		ins.build.nentries = 1;
		status = euno_art_descend(cx, tree, &ins.key, &ins.place);
		if (status != EUNO_OK)
			break;
		if (ins.place.where == ART_AT_GAP)
			status = euno_art_put_gap(cx, tree, &ins.key, &ins.place,
									  &ins.build, &ins.item, 1, no_split);
		else if (ins.place.where == ART_AT_PATH)
			status = no_split ? EUNO_FULL :
				euno_art_put_path(cx, tree, &ins.key, &ins.place, &ins.build,
								  &ins.item, 1);
		else if (ins.place.ref != 0 && art_tag(ins.place.ref) == ART_BUCKET)
			status = insert_bucket(&ins);
		else
			status = insert_beside(&ins);
		if (status != EUNO_OK)
			euno_art_build_undo(&ins.build);
	} while (status == EUNO_STALE);
	euno_epoch_exit(cx->process);
	if (ins.build.n > 0 && euno_load_ptr(&art_body(tree)->closed) != NULL)
		euno_art_reclaim(cx, tree, false);
	return status;
}
