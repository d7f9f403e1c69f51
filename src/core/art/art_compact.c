/*-------------------------------------------------------------------------
 *
 * art_compact.c
 *	  Shrinking what removals have left behind.
 *
 * compact goes over the inner nodes in order, one descent each, and replaces a
 * node by what is left of it: nothing; its only child; one bucket or a smaller
 * kind of node.  Where nothing of this applies, buckets that are not half full
 * are replaced by smaller ones.  A replacement is built from what was read at certain versions
 * of the node and of its buckets; then slot, node and buckets are locked, in
 * this order, from the root downward, each only at the version it was read at.
 * On a mismatch the node is left for the next call.
 *
 * Its place is the path of the next node, cut to a few bytes: if it is cut, a
 * node may be looked at twice.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* A node with more children than this is not made a bucket. */
#define MERGE_CHILDREN	48

/* A merged bucket is at most this large: it does not burst at once again. */
#define MERGE_SIZE		(ART_BUCKET_MAX / 2)

typedef struct Child
{
	ArtRef		ref;
	uint64_t	version;		/* of a bucket */
	uint8_t		byte;
	bool		gone;			/* empty bucket, dead or no entry */
} Child;

typedef struct Compact
{
	EunoContext *cx;
	EunoTree   *tree;
	ArtKey		at;				/* the bound; the node's path */
	ArtPlace	place;			/* the slot of the node */
	ArtNode    *node;
	uint64_t	version;
	uint32_t	nchildren;
	uint32_t	live;			/* not gone */
	uint32_t	nbuckets;		/* gone ones included */
	bool		leaves_only;
	Child		children[256];
	ArtBuild	build;
	ArtImage	image;
	ArtItems	items;
	uint32_t	used;			/* of bytes */
	uint8_t		bytes[MERGE_SIZE * 8];
} Compact;

/* Reads which children the node has.  False if it is being written. */
static bool
look(Compact *c)
{
	EunoContext *cx = c->cx;
	int			byte = -1;
	ArtRef		ref;

	c->nchildren = c->live = c->nbuckets = 0;
	c->leaves_only = true;
	if (!euno_lock_read(&c->node->lock, &c->version, cx->env, &cx->counters))
		return false;
	while (c->nchildren < 256 &&
		   (ref = euno_art_node_next(c->node, byte + 1, true, &byte)) != 0)
	{
		Child	   *child = &c->children[c->nchildren++];

		child->ref = ref;
		child->byte = (uint8_t) byte;
		child->gone = art_is_absent(ref);
		if (art_is_node(ref))
			c->leaves_only = false;
	}
	if (!euno_lock_validate(&c->node->lock, c->version))
		return false;
	for (uint32_t i = 0; i < c->nchildren; i++)
	{
		Child	   *child = &c->children[i];

		if (!child->gone && art_tag(child->ref) == ART_BUCKET)
		{
			ArtBucket  *bucket = art_pointer(child->ref);

			c->nbuckets++;
			if (!euno_lock_read(&bucket->lock, &child->version, cx->env,
								&cx->counters))
				return false;
			child->gone = euno_load16(&bucket->n) == 0;
			if (!euno_lock_validate(&bucket->lock, child->version))
				return false;
		}
		c->live += !child->gone;
	}
	return true;
}

/* Room in private memory; NULL if the entries are too many. */
static uint8_t *
bytes_get(Compact *c, uint32_t n)
{
	uint8_t    *p = c->bytes + c->used;

	if (c->used + n > sizeof(c->bytes))
		return NULL;
	c->used += n;
	return p;
}

/* Copies the entries of one child.  False: too many, or it has changed. */
static bool
collect(Compact *c, const Child *child)
{
	ArtItem    *item = &c->items.items[c->items.n];

	if (art_tag(child->ref) == ART_BUCKET)
	{
		ArtBucket  *bucket = art_pointer(child->ref);
		ArtView		view;
		uint8_t    *copy = bytes_get(c, (uint32_t) bucket->units * 16 + 16);

		if (copy == NULL)
			return false;
		copy += (16 - ((uintptr_t) copy & 15)) & 15;
		euno_copy_out(copy, bucket, (size_t) bucket->units * 16);
		if (!euno_lock_validate(&bucket->lock, child->version))
			return false;
		euno_art_view((ArtBucket *) (void *) copy, &view);
		if (view.torn || c->items.n + view.n > ART_BUCKET_ENTRIES)
			return false;
		for (uint32_t i = 0; i < view.n; i++)
		{
			if (!euno_art_view_item(&view, i, &c->items.items[c->items.n++]))
				return false;
		}
	}
	else
	{
		ArtPlace	place = {.ref = child->ref,.depth = c->node->level + 1U};
		ArtKey		path;
		ArtKey		other;
		uint8_t    *copy;

		(void) euno_art_path_copy(c->node, path.bytes);
		path.bytes[c->node->level] = child->byte;
		euno_art_key_set(&path, c->node->level + 1U);
		(void) euno_art_leaf_item(&place, &path, &other, item);
		copy = bytes_get(c, other.len);
		if (copy == NULL || c->items.n == ART_BUCKET_ENTRIES)
			return false;
		memcpy(copy, other.bytes, other.len);
		item->head = copy;
		c->items.n++;
	}
	return true;
}

/* All entries below the node, as one bucket (or one entry); 0 if not. */
static ArtRef
merged(Compact *c)
{
	uint32_t	prefix_len;
	uint32_t	width;

	if (!c->leaves_only || c->live > MERGE_CHILDREN)
		return 0;
	c->items.n = c->used = 0;
	for (uint32_t i = 0; i < c->nchildren; i++)
	{
		if (!c->children[i].gone && !collect(c, &c->children[i]))
			return 0;
	}
	if (c->items.n == 0 || euno_art_is_dense(c->items.items, c->items.n) ||
		euno_art_encoded_size(c->items.items, c->items.n, &prefix_len,
							  &width) > MERGE_SIZE)
		return 0;
	return euno_art_build(&c->build, c->items.items, c->items.n,
						  c->place.depth);
}

/* The node with the children that are left, of the kind that fits. */
static ArtRef
shrunk(Compact *c)
{
	uint8_t		path[ART_MAX_COMPOSITE];
	uint32_t	live = c->live + c->live / 4;	/* some room */
	ArtType		type = euno_art_node_type(live < 256 ? live : 256);
	ArtNode    *node;

	if (type >= (ArtType) c->node->type)
	{
		if (c->live == c->nchildren)
			return 0;
		type = (ArtType) c->node->type;	/* only without those that are gone */
	}
	(void) euno_art_path_copy(c->node, path);
	node = euno_art_build_node(&c->build, type, path, c->node->level);
	if (node == NULL)
		return 0;
	for (uint32_t i = 0; i < c->nchildren; i++)
	{
		if (!c->children[i].gone)
			(void) euno_art_node_add(node, c->children[i].byte,
									 c->children[i].ref);
	}
	return art_ref(node, ART_NODE);
}

static bool
lock_at(EunoContext *cx, EunoLock *lock, uint64_t version)
{
	uint64_t	word;

	if (!euno_lock_acquire(lock, cx->env, &cx->counters))
		return false;
	word = euno_load64(&lock->word) & ~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
	if (word == (version & ~EUNO_LOCK_WAITERS))
		return true;
	euno_lock_release_unchanged(lock, cx->env);
	return false;
}

/* Is this bucket given up with the node? */
static inline bool
is_victim(const Child *child, bool all)
{
	return art_tag(child->ref) == ART_BUCKET && (all || child->gone);
}

/* Unlocks the buckets among the first n children. */
static void
unlock_buckets(Compact *c, uint32_t n, bool all, bool obsolete)
{
	for (uint32_t i = 0; i < n; i++)
	{
		ArtBucket  *bucket = art_pointer(c->children[i].ref);

		if (!is_victim(&c->children[i], all))
			continue;
		if (obsolete)
			euno_lock_release_obsolete(&bucket->lock, c->cx->env);
		else
			euno_lock_release_unchanged(&bucket->lock, c->cx->env);
	}
}

/* What has become of the counts. */
static void
count_replaced(Compact *c, bool all)
{
	int64_t		leaves = c->build.nleaves;

	for (uint32_t i = 0; i < c->nchildren; i++)
		leaves -= (all || c->children[i].gone) &&
			!art_is_node(c->children[i].ref);
	art_count(c->cx, c->tree, 0, leaves, (int64_t) c->build.ninners - 1);
	(void) euno_add64(&art_body(c->tree)->merges, 1);
}

/*
 * Replaces the node by "ref".  "all": all of its leaves go with it, else only
 * those that are gone.  False if something has changed; nothing is done then.
 */
static bool
replace(Compact *c, ArtRef ref, bool all)
{
	EunoContext *cx = c->cx;
	ArtRef	   *slot;
	uint32_t	n = 1;
	uint32_t	i;

	for (i = 0; i < c->nchildren; i++)
		n += (all || c->children[i].gone) &&
			art_tag(c->children[i].ref) != ART_INLINE;
	if (!euno_art_reserve(cx, c->tree, n))
		return false;
	slot = euno_art_lock_slot(cx, c->tree, &c->at, &c->place);
	if (slot != NULL && !lock_at(cx, &c->node->lock, c->version))
	{
		euno_lock_release_unchanged(c->place.lock, cx->env);
		slot = NULL;
	}
	for (i = 0; slot != NULL && i < c->nchildren; i++)
	{
		if (is_victim(&c->children[i], all) &&
			!lock_at(cx, &((ArtBucket *) art_pointer(c->children[i].ref))->lock,
					 c->children[i].version))
		{
			unlock_buckets(c, i, all, false);
			euno_lock_release_unchanged(&c->node->lock, cx->env);
			euno_lock_release_unchanged(c->place.lock, cx->env);
			slot = NULL;
		}
	}
	if (slot == NULL)
	{
		euno_art_unreserve(cx, c->tree, n);
		return false;
	}
	euno_store64_release(slot, ref);
	count_replaced(c, all);
	euno_lock_release(c->place.lock, cx->env);
	euno_lock_release_obsolete(&c->node->lock, cx->env);
	unlock_buckets(c, c->nchildren, all, true);
	for (i = 0; i < c->nchildren; i++)
	{
		if (all || c->children[i].gone)
			euno_art_retire_ref(cx, c->tree, c->children[i].ref);
	}
	euno_art_retire_ref(cx, c->tree, art_ref(c->node, ART_NODE));
	return true;
}

/* Bytes that a bucket's entries take, as far as its header tells. */
static uint32_t
bucket_used(const ArtView *view)
{
	const uint16_t *offs = (const uint16_t *) (const void *) view->entries;
	uint32_t	used = ART_BUCKET_HEADER + view->prefix_len;

	if (view->width > 0)
		return used + view->n * view->width;
	return used + 2 * view->n + 2U + (uint16_t) (euno_load16(&offs[view->n]) -
												 euno_load16(&offs[0]));
}

/*
 * Replaces a bucket that is not half full by a smaller one.  "key" leads to
 * its slot.  False if there is nothing to do, or something has changed.
 */
static bool
shrink_bucket(Compact *c, const ArtKey *key, const ArtPlace *place)
{
	EunoContext *cx = c->cx;
	ArtBucket  *bucket = art_pointer(place->ref);
	uint64_t	version;
	ArtView		view;
	ArtRef	   *slot;
	ArtRef		ref;

	if (!euno_lock_read(&bucket->lock, &version, cx->env, &cx->counters))
		return false;
	euno_art_view(bucket, &view);
	if (view.torn || view.n == 0 ||
		euno_art_bucket_room(bucket_used(&view)) * 2 > view.size)
		return false;
	euno_copy_out(&c->image, bucket, view.size);
	if (!euno_lock_validate(&bucket->lock, version))
		return false;
	euno_art_decode(&c->image, NULL, &c->items);
	if (euno_art_is_dense(c->items.items, c->items.n))
		return false;
	euno_art_build_start(&c->build, cx, c->tree);
	ref = euno_art_build(&c->build, c->items.items, c->items.n, place->depth);
	if (ref == 0 || !euno_art_reserve(cx, c->tree, 1))
	{
		euno_art_build_undo(&c->build);
		return false;
	}
	slot = euno_art_lock_slot(cx, c->tree, key, place);
	if (slot != NULL && !lock_at(cx, &bucket->lock, version))
	{
		euno_lock_release_unchanged(place->lock, cx->env);
		slot = NULL;
	}
	if (slot == NULL)
	{
		euno_art_unreserve(cx, c->tree, 1);
		euno_art_build_undo(&c->build);
		return false;
	}
	euno_store64_release(slot, ref);
	art_count(cx, c->tree, 0, (int64_t) c->build.nleaves - 1,
			  c->build.ninners);
	(void) euno_add64(&art_body(c->tree)->merges, 1);
	euno_lock_release(place->lock, cx->env);
	euno_lock_release_obsolete(&bucket->lock, cx->env);
	euno_art_retire_ref(cx, c->tree, place->ref);
	return true;
}

/* One of the node's buckets, if one can be made smaller. */
static bool
shrink_child(Compact *c)
{
	uint32_t	level = c->node->level;
	ArtPlace	place = {.holder = c->node,.lock = &c->node->lock,
		.depth = level + 1};
	ArtKey		key;

	memcpy(key.bytes, c->at.bytes, level);
	euno_art_key_set(&key, level + 1);
	for (uint32_t i = 0; i < c->nchildren; i++)
	{
		place.ref = c->children[i].ref;
		key.bytes[level] = c->children[i].byte;
		if (!art_is_node(place.ref) && art_tag(place.ref) == ART_BUCKET &&
			!c->children[i].gone && shrink_bucket(c, &key, &place))
			return true;
	}
	return false;
}

/*
 * Looks at one node.  True if it, or a bucket of it, has been replaced.  No locks on entry or
 * return.
 */
static bool
compact_node(Compact *c)
{
	const Child *only = NULL;
	ArtRef		ref;
	bool		all = false;

	if (!look(c))
		return false;
	euno_art_build_start(&c->build, c->cx, c->tree);
	for (uint32_t i = 0; i < c->nchildren; i++)
	{
		if (!c->children[i].gone)
			only = &c->children[i];
	}
	if (c->live == 0)
		ref = 0;
	else if (c->live == 1 && art_tag(only->ref) != ART_INLINE)
		ref = only->ref;
	else
	{
		ref = merged(c);
		all = ref != 0;
		if (ref == 0)
		{
			euno_art_build_undo(&c->build);
			ref = shrunk(c);
		}
		if (ref == 0)
		{
			euno_art_build_undo(&c->build);
			return shrink_child(c);
		}
	}
	if (!replace(c, ref, all))
	{
		euno_art_build_undo(&c->build);
		return false;
	}
	return true;
}

/*
 * The root slot when it holds no inner node: cleared if nothing is in it, else
 * its bucket is made smaller.
 */
static bool
compact_root(Compact *c)
{
	EunoContext *cx = c->cx;
	ArtBody    *body = art_body(c->tree);
	ArtRef		ref = euno_load64_acquire(&body->root);
	ArtBucket  *bucket = art_pointer(ref);
	bool		is_bucket = ref != 0 && art_tag(ref) == ART_BUCKET;

	if (ref == 0 || art_is_node(ref) || (!is_bucket && !art_is_absent(ref)))
		return false;
	c->place.holder = NULL;
	c->place.lock = &body->root_lock;
	c->place.ref = ref;
	c->place.depth = 0;
	if (is_bucket && euno_load16(&bucket->n) > 0)
		return shrink_bucket(c, &c->at, &c->place);
	if (!euno_art_reserve(cx, c->tree, 1))
		return false;
	if (euno_art_lock_slot(cx, c->tree, &c->at, &c->place) == NULL)
	{
		euno_art_unreserve(cx, c->tree, 1);
		return false;
	}
	if (is_bucket)
	{
		(void) euno_lock_acquire(&bucket->lock, cx->env, &cx->counters);
		if (euno_load16(&bucket->n) > 0)
		{
			euno_lock_release_unchanged(&bucket->lock, cx->env);
			euno_lock_release_unchanged(&body->root_lock, cx->env);
			euno_art_unreserve(cx, c->tree, 1);
			return false;
		}
	}
	euno_store64_release(&body->root, 0);
	art_count(cx, c->tree, 0, -1, 0);
	euno_lock_release(&body->root_lock, cx->env);
	if (is_bucket)
		euno_lock_release_obsolete(&bucket->lock, cx->env);
	euno_art_retire_ref(cx, c->tree, ref);
	(void) euno_add64(&body->merges, 1);
	return true;
}

/* One node.  False if there is none at or above the bound. */
static bool
compact_step(Compact *c, uint32_t *merges)
{
	EunoStatus	status;

	euno_epoch_enter(c->cx->process);
	status = euno_art_visit(c->cx, c->tree, &c->at, &c->place);
	if (status == EUNO_OK)
	{
		c->node = art_pointer(c->place.ref);
		if (compact_node(c))
			++*merges;
		else
			euno_art_visit_past(&c->at);
	}
	euno_epoch_exit(c->cx->process);
	return status != EUNO_NOT_FOUND;
}

/*
 * See EunoTreeOps.  One call goes round all nodes once, from where the last
 * one stopped, unless it has replaced enough of them before.  Does nothing
 * while another compact is at work on the tree.  A walk needs no protection
 * from it (art_walk.c).
 */
EunoStatus
euno_art_compact(EunoContext *cx, EunoTree *tree, uint32_t max_merges,
				 uint32_t *merged_count)
{
	ArtBody    *body = art_body(tree);
	bool		wrapped = false;
	ArtKey		start;
	Compact		c;

	*merged_count = 0;
	if (max_merges == 0 || !euno_mutex_trylock(&body->compact_mutex))
		return EUNO_OK;
	c.cx = cx;
	c.tree = tree;
	memcpy(start.bytes, body->compact_at, body->compact_len);
	euno_art_key_set(&start, body->compact_len);
	memcpy(c.at.bytes, start.bytes, start.len);
	euno_art_key_set(&c.at, start.len);
	while (*merged_count < max_merges)
	{
		if (!compact_step(&c, merged_count))
		{
			if (wrapped || start.len == 0)
				break;
			wrapped = true;
			euno_art_key_set(&c.at, 0);
		}
		else if (wrapped && euno_art_key_compare(&c.at, &start) > 0)
			break;
	}
	euno_epoch_enter(cx->process);
	if (*merged_count < max_merges && compact_root(&c))
		++*merged_count;
	euno_epoch_exit(cx->process);
	if (*merged_count < max_merges)
		c.at.len = 0;
	body->compact_len = c.at.len < sizeof(body->compact_at) ? c.at.len :
		(uint32_t) sizeof(body->compact_at);
	memcpy(body->compact_at, c.at.bytes, body->compact_len);
	euno_mutex_unlock(&body->compact_mutex, cx->env);
	euno_art_reclaim(cx, tree, true);
	return EUNO_OK;
}
