/*-------------------------------------------------------------------------
 *
 * art_read.c
 *	  Range scans, a batch at a time.
 *
 * A scan keeps its place as a bound, a byte string: forward it goes on with
 * the least entry at or above the bound, backward with the greatest one below
 * it.  Each step descends from the root to a node that has such an entry as a
 * leaf, and takes leaves from that node until the next child is a node.  When
 * the bound leads into a subtree that has nothing for it, it is moved past the
 * subtree, and the descent starts again: nothing but the bound is remembered.
 *
 * What was copied is believed when the node's version has validated, and each
 * bucket's.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#define ALIGN8(n)	(((n) + 7) & ~UINT32_C(7))

/* A batch with fewer items goes on with the next node. */
#define ENOUGH	32

typedef struct Read
{
	EunoContext *cx;
	EunoTree   *tree;
	EunoBatch  *batch;
	bool		forward;
	bool		ended;			/* nothing is left of the range */
	bool		full;			/* the batch has no room for the next item */
	uint32_t	used;			/* of batch->buf */
	uint32_t	attempts;		/* of this step */
	ArtKey		at;				/* the bound */
	ArtKey		end;			/* of the range, in the direction of the read */
	ArtKey		next;			/* the bound after this step */
	ArtKey		key;			/* the entry being copied */
} Read;

/*
 * One node of which leaves are taken, and how its children lie to the bounds:
 * child bytes beyond "edge" are outside of the range, that at "edge" is partly
 * inside.
 */
typedef struct Spot
{
	ArtNode    *node;
	uint64_t	version;
	bool		locked;
	uint32_t	level;
	int			edge;
	ArtKey		path;			/* with the child's byte as the last one */
} Spot;

/* Is the key (of an entry) on the near side of the range's end? */
static inline bool
inside(const Read *rd, const ArtKey *key)
{
	int			c = euno_art_key_compare(key, &rd->end);

	return rd->forward ? c < 0 : c >= 0;
}

/* Is it on the far side of the bound, where the read goes on? */
static inline bool
ahead(const Read *rd, const ArtKey *key)
{
	int			c = euno_art_key_compare(key, &rd->at);

	return rd->forward ? c >= 0 : c < 0;
}

/* Adds the entry rd->key to the batch; false if there is no room. */
static bool
emit(Read *rd, const uint8_t *payload, uint32_t payload_len)
{
	EunoBatch  *batch = rd->batch;
	uint32_t	len = rd->key.len - EUNO_TID_BYTES;
	uint32_t	at = rd->used;

	if (batch->nitems >= batch->max_items)
		return false;
	if (batch->want_keys)
	{
		EunoItemKey *item = &batch->keys[batch->nitems];

		if (at + ALIGN8(len) + ALIGN8(payload_len) > batch->buf_size)
			return false;
		memcpy(batch->buf + at, rd->key.bytes, len);
		item->offset = at;
		item->keylen = (uint16_t) len;
		item->payloadlen = (uint16_t) payload_len;
		at += ALIGN8(len);
		if (payload_len > 0)
			euno_copy_out(batch->buf + at, payload, payload_len);
		rd->used = at + ALIGN8(payload_len);
	}
	batch->tids[batch->nitems++] =
		art_load_tid(rd->key.bytes + rd->key.len - EUNO_TID_BYTES);
	return true;
}

/* The batch is full, and the next bound is rd->key. */
static void
stop_at_key(Read *rd)
{
	memcpy(rd->next.bytes, rd->key.bytes, rd->key.len);
	euno_art_key_set(&rd->next, rd->key.len);
}

/* Copies entry i of a bucket to rd->key, of which the prefix is there. */
static bool
bucket_entry(Read *rd, const ArtView *view, uint32_t i, ArtItem *item)
{
	if (!euno_art_view_item(view, i, item) ||
		view->prefix_len + item->tail_len < EUNO_TID_BYTES)
		return false;
	euno_copy_out(rd->key.bytes + view->prefix_len, item->tail, item->tail_len);
	euno_art_key_set(&rd->key, view->prefix_len + item->tail_len);
	return true;
}

/*
 * Copies entries [from, to) of a bucket.  False if it is torn.  When the batch
 * gets full, rd->next is the next bound, or empty: nothing was copied.
 */
static bool
copy_entries(Read *rd, const ArtView *view, uint32_t from, uint32_t to)
{
	euno_copy_out(rd->key.bytes, view->base + ART_BUCKET_HEADER,
				  view->prefix_len);
	for (uint32_t k = from; k < to; k++)
	{
		uint32_t	i = rd->forward ? k : to - 1 - (k - from);
		ArtItem		item;

		if (!bucket_entry(rd, view, i, &item))
			return false;
		if (emit(rd, item.payload, item.payload_len))
			continue;

		/* backward, the bound is exclusive: the last entry that fitted */
		rd->full = true;
		rd->next.len = 0;
		if (rd->forward)
			stop_at_key(rd);
		else if (i + 1 < to)
		{
			if (!bucket_entry(rd, view, i + 1, &item))
				return false;
			stop_at_key(rd);
		}
		return true;
	}
	return true;
}

/* Copies what a bucket has of the range. */
static EunoStatus
copy_bucket(Read *rd, ArtBucket *bucket, bool edge_at, bool edge_end)
{
	EunoContext *cx = rd->cx;
	uint32_t	nitems = rd->batch->nitems;
	uint32_t	used = rd->used;

	for (int attempt = 0;; attempt++)
	{
		bool		locked = attempt >= ART_PATIENCE;
		uint64_t	version = 0;
		ArtView		view;
		uint32_t	from = 0;
		uint32_t	to;
		bool		exact;

		if (locked ? !euno_lock_acquire(&bucket->lock, cx->env, &cx->counters) :
			!euno_lock_read(&bucket->lock, &version, cx->env, &cx->counters))
			return EUNO_STALE;
		rd->full = false;
		euno_art_view(bucket, &view);
		to = view.n;
		if (edge_at)
		{
			if (rd->forward)
				from = euno_art_search(&view, &rd->at, &exact);
			else
				to = euno_art_search(&view, &rd->at, &exact);
		}
		if (edge_end)
		{
			uint32_t	stop = euno_art_search(&view, &rd->end, &exact);

			if (rd->forward)
			{
				rd->ended = stop < view.n;
				to = stop;
			}
			else
			{
				rd->ended = stop > 0;
				from = stop;
			}
		}
		if (from < to && !copy_entries(rd, &view, from, to))
			view.torn = true;
		if (locked)
			euno_lock_release_unchanged(&bucket->lock, cx->env);
		if (locked || euno_lock_validate(&bucket->lock, version))
			return view.torn ? EUNO_CORRUPT : EUNO_OK;
		cx->counters.leaf_retries++;
		rd->batch->nitems = nitems;
		rd->used = used;
	}
}

/*
 * Copies what a leaf has of the range.  "path" leads to its slot.  rd->full
 * and rd->ended say how it came out.
 */
static EunoStatus
copy_leaf(Read *rd, ArtRef ref, const ArtKey *path, bool edge_at,
		  bool edge_end)
{
	ArtPlace	place;
	ArtItem		item;

	if (art_is_absent(ref))
		return EUNO_OK;
	if (art_tag(ref) == ART_BUCKET)
	{
		EunoStatus	status = copy_bucket(rd, art_pointer(ref), edge_at,
										 edge_end);

		/* the end is not reached when the batch was full before it */
		if (rd->full)
			rd->ended = false;
		return status;
	}
	place.ref = ref;
	place.depth = path->len;
	(void) euno_art_leaf_item(&place, path, &rd->key, &item);
	if (edge_end && !inside(rd, &rd->key))
		rd->ended = true;
	else if (edge_at && !ahead(rd, &rd->key))
		return EUNO_OK;
	else if (!emit(rd, NULL, 0))
	{
		rd->full = true;
		rd->next.len = 0;
		if (rd->forward)
			stop_at_key(rd);
	}
	return EUNO_OK;
}

/* The bound in front of (in the direction of the read) a child's subtree. */
static void
bound_before(Read *rd, const ArtKey *child)
{
	memcpy(rd->next.bytes, child->bytes, child->len);
	euno_art_key_set(&rd->next, child->len);
	if (!rd->forward && !euno_art_key_after(&rd->next, child->len))
	{
		memset(rd->next.bytes, 0xFF, 8);	/* above every TID */
		euno_art_key_set(&rd->next, 8);
	}
}

/* The bound behind everything that starts with the first len bytes of a key. */
static void
bound_behind(Read *rd, const ArtKey *key, uint32_t len)
{
	memmove(rd->next.bytes, key->bytes, len);
	if (rd->forward)
	{
		if (!euno_art_key_after(&rd->next, len))
			rd->ended = true;
		return;
	}
	while (len > 0 && rd->next.bytes[len - 1] == 0)
		len--;
	euno_art_key_set(&rd->next, len);
	if (len == 0)
		rd->ended = true;
}

/* The bound stays where it is. */
static void
bound_same(Read *rd)
{
	memcpy(rd->next.bytes, rd->at.bytes, rd->at.len);
	euno_art_key_set(&rd->next, rd->at.len);
}

/* Where the node's children lie to the end of the range. */
static void
spot_edge(const Read *rd, Spot *spot)
{
	uint32_t	level = spot->level;
	uint32_t	len = rd->end.len < level ? rd->end.len : level;
	int			c = len > 0 ? memcmp(spot->path.bytes, rd->end.bytes, len) : 0;

	for (uint32_t i = len; c == 0 && i < level; i++)
		c = spot->path.bytes[i] != 0;
	if (c < 0)
		spot->edge = 256;
	else if (c > 0 || level >= rd->end.len)
		spot->edge = -1;
	else
		spot->edge = rd->end.bytes[level];
}

/* Takes leaves from a node, from child "byte" on. */
static EunoStatus
take_leaves(Read *rd, Spot *spot, ArtRef ref, int byte, int edge_at)
{
	EunoStatus	status = EUNO_OK;
	int			step = rd->forward ? 1 : -1;

	(void) euno_art_path_copy(spot->node, spot->path.bytes);
	spot_edge(rd, spot);
	while (!rd->full && !rd->ended)
	{
		if (ref == 0)
		{
			bound_behind(rd, &spot->path, spot->level);
			return EUNO_OK;
		}
		spot->path.bytes[spot->level] = (uint8_t) byte;
		euno_art_key_set(&spot->path, spot->level + 1);
		if (rd->forward ? byte > spot->edge : byte < spot->edge)
			rd->ended = true;
		else if (art_is_node(ref))
		{
			bound_before(rd, &spot->path);
			return EUNO_OK;
		}
		else
			status = copy_leaf(rd, ref, &spot->path, byte == edge_at,
							   byte == spot->edge);
		if (status != EUNO_OK)
			return status;
		if (rd->full && rd->next.len == 0 && byte == edge_at)
			bound_same(rd);
		else if (rd->full && rd->next.len == 0)
			bound_before(rd, &spot->path);
		ref = euno_art_node_next(spot->node, byte + step, rd->forward, &byte);
	}
	return EUNO_OK;
}

/* Starts to read a node: by its version, or locked after too many attempts. */
static bool
spot_enter(Read *rd, Spot *spot, ArtNode *node)
{
	spot->node = node;
	spot->level = node->level;
	spot->locked = rd->attempts >= ART_PATIENCE;
	if (spot->locked)
		return euno_lock_acquire(&node->lock, rd->cx->env, &rd->cx->counters);
	return euno_lock_read(&node->lock, &spot->version, rd->cx->env,
						  &rd->cx->counters);
}

/* Ends it; false if what was read is not to be believed. */
static bool
spot_leave(Read *rd, Spot *spot)
{
	if (!spot->locked)
		return euno_lock_validate(&spot->node->lock, spot->version);
	euno_lock_release_unchanged(&spot->node->lock, rd->cx->env);
	return true;
}

/*
 * Decides where in a node the read goes on: *from, *edge_at (the child that
 * the bound leads into, or -1).  False: nothing of the node is ahead, and
 * rd->next is behind it.  *free: all of the node is ahead.
 */
static bool
place_bound(Read *rd, const Spot *spot, uint32_t depth, bool *free, int *from,
			int *edge_at)
{
	uint32_t	level = spot->level;
	uint8_t		other;
	uint32_t	m;

	*edge_at = -1;
	if (!*free)
	{
		m = euno_art_path_mismatch(spot->node, &rd->at, depth, &other);
		if (m < level)
		{
			bool		below = (m < rd->at.len ? rd->at.bytes[m] : 0) < other;

			if (below != rd->forward)
			{
				bound_behind(rd, &rd->at, depth);
				return false;
			}
			*free = true;
		}
		else if (level >= rd->at.len)
		{
			/* the bound is where the node begins */
			if (!rd->forward)
			{
				bound_behind(rd, &rd->at, depth);
				return false;
			}
			*free = true;
		}
	}
	if (*free)
		*from = rd->forward ? 0 : 255;
	else
	{
		*from = rd->at.bytes[level];
		if (rd->forward || rd->at.len > level + 1)
			*edge_at = *from;
		else
			--*from;			/* all of that child is at or above the bound */
	}
	return true;
}

/* One step: items are added, or the bound moves, or both. */
static EunoStatus
read_step(Read *rd)
{
	ArtRef		ref = euno_load64_acquire(&art_body(rd->tree)->root);
	uint32_t	depth = 0;
	bool		free = false;
	Spot		spot;

	rd->full = rd->ended = false;
	rd->cx->counters.descents++;
	if (!art_is_node(ref))
	{
		EunoStatus	status;

		spot.path.len = 0;
		status = copy_leaf(rd, ref, &spot.path, true, true);
		rd->ended |= !rd->full;
		if (rd->full && rd->next.len == 0)
			bound_same(rd);
		return status;
	}
	for (;;)
	{
		EunoStatus	status = EUNO_OK;
		int			from;
		int			edge_at;
		int			byte = 0;

		if (!spot_enter(rd, &spot, art_pointer(ref)))
			return EUNO_STALE;
		if (!place_bound(rd, &spot, depth, &free, &from, &edge_at))
			return spot_leave(rd, &spot) ? EUNO_OK : EUNO_STALE;
		ref = euno_art_node_next(spot.node, from, rd->forward, &byte);
		if (!art_is_node(ref))
		{
			status = take_leaves(rd, &spot, ref, byte, edge_at);
			return spot_leave(rd, &spot) ? status : EUNO_STALE;
		}
		if (!spot_leave(rd, &spot))
			return EUNO_STALE;
		free = free || byte != edge_at;
		depth = spot.level + 1;
	}
}

/* Steps until there is something to return, and the range's end is known. */
static EunoStatus
read_steps(Read *rd)
{
	EunoBatch  *batch = rd->batch;
	EunoStatus	status = EUNO_OK;
	uint32_t	enough = batch->max_items < ENOUGH ? batch->max_items : ENOUGH;

	rd->attempts = 0;
	rd->ended = euno_art_key_compare(&rd->at, &rd->end) * (rd->forward ? 1 : -1)
		>= 0;
	rd->full = false;
	while (!rd->ended && !rd->full && batch->nitems < enough)
	{
		uint32_t	nitems = batch->nitems;
		uint32_t	used = rd->used;

		status = read_step(rd);
		if (status == EUNO_STALE)
		{
			rd->attempts++;
			rd->cx->counters.restarts++;
			batch->nitems = nitems;
			rd->used = used;
			rd->ended = rd->full = false;
			continue;
		}
		if (status != EUNO_OK)
			break;
		rd->attempts = 0;
		if (!rd->ended)
		{
			memcpy(rd->at.bytes, rd->next.bytes, rd->next.len);
			euno_art_key_set(&rd->at, rd->next.len);
			rd->ended = euno_art_key_compare(&rd->at, &rd->end) *
				(rd->forward ? 1 : -1) >= 0;
		}
	}
	return status;
}

/*
 * Reads the next batch of a range.  See EunoTreeOps and EunoCursor.  No locks
 * on entry or return.
 */
EunoStatus
euno_art_read(EunoContext *cx, EunoTree *tree, EunoCursor *cursor,
			  bool forward, EunoBatch *batch)
{
	const EunoPosition *start;
	EunoStatus	status;
	Read		rd;

	batch->nitems = 0;
	if (!euno_cursor_turn(cursor, forward))
		return EUNO_OK;
	rd.cx = cx;
	rd.tree = tree;
	rd.batch = batch;
	rd.forward = forward;
	rd.used = 0;
	if (forward)
		start = cursor->at_lo ? &cursor->lo : &cursor->left.pos;
	else
		start = cursor->at_hi ? &cursor->hi : &cursor->right.pos;
	euno_art_key_position(start, &rd.at);
	euno_art_key_position(forward ? &cursor->hi : &cursor->lo, &rd.end);
	euno_epoch_enter(cx->process);
	status = read_steps(&rd);
	euno_epoch_exit(cx->process);
	if (forward)
	{
		cursor->at_hi = rd.ended;
		if (!rd.ended)
			euno_art_position_key(&rd.at, &cursor->right);
	}
	else
	{
		cursor->at_lo = rd.ended;
		if (!rd.ended)
			euno_art_position_key(&rd.at, &cursor->left);
	}
	return status;
}
