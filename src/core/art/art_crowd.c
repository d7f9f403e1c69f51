/*-------------------------------------------------------------------------
 *
 * art_crowd.c
 *	  Keys near each other that many write at once: see euno_delegate.h.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* The edge counts bytes of composites in one byte. */
#define EDGE_DEPTH		255

/* Where the bytes begin that are compared, if this many count. */
static inline uint32_t
compared_from(uint32_t depth)
{
	return depth > 8 ? depth - 8 : 0;
}

/* ArtEdge.where. */
static inline uint64_t
where_of(const ArtKey *key, uint32_t depth)
{
	return (euno_art_place(key, compared_from(depth)) & ~(uint64_t) EDGE_DEPTH) | depth;
}

/*
 * The first bytes behind the edge when this composite is among the last.  What
 * would be just before its own belongs to it, for not all come in order.
 */
static uint64_t
bytes_of(const ArtKey *key, uint32_t depth)
{
	uint64_t	unit = depth < 8 ? UINT64_C(1) << (64 - 8 * depth) : 1;
	uint64_t	first = euno_load_be(key->bytes + compared_from(depth), 8) & -unit;

	return first > unit ? first - unit : 0;
}

static ArtEdge
load_edge(EunoTree *tree)
{
	return (ArtEdge)
	{
		euno_load64(&art_body(tree)->edge.where),
			euno_load64(&art_body(tree)->edge.bytes)
	};
}

static bool
is_behind(const ArtEdge *edge, const ArtKey *key)
{
	uint32_t	depth = edge->where & EDGE_DEPTH;

	return depth > 0 && depth <= key->len &&
		euno_load_be(key->bytes + compared_from(depth), 8) >= edge->bytes &&
		where_of(key, depth) == edge->where;
}

/*
 * Is nothing in the tree behind what begins with a composite's first "depth"
 * bytes?  No, if in doubt.  Within an epoch; nothing is validated, as in
 * ROWEX.
 */
static bool
is_last(EunoTree *tree, const ArtKey *key, uint32_t depth)
{
	ArtRef		ref = euno_load64_acquire(&art_body(tree)->root);
	uint32_t	at = 0;

	while (at < depth && art_is_node(ref))
	{
		ArtNode    *node = art_pointer(ref);
		ArtType		type = art_ref_type(ref);
		uint32_t	level = art_ref_level(ref);
		ArtRef		child;

		if (art_path_match(node, key, at) < (level < depth ? level : depth))
			return false;
		if (level >= depth)
			return true;
		for (int byte = key->bytes[level] + 1; byte < 256; byte++)
		{
			(void) art_slot(node, type, (uint8_t) byte, &child);
			if (!art_is_absent(child))
				return false;
		}
		(void) art_slot(node, type, key->bytes[level], &ref);
		at = level + 1;
	}
	return at >= depth;
}

/*
 * Tries at this depth have failed: if that is at the edge, it is crowded now.
 */
static void
find_edge(EunoTree *tree, const ArtKey *key, uint32_t depth, ArtEdge *edge)
{
	if (depth == 0 || depth > EDGE_DEPTH || is_behind(edge, key) ||
		!is_last(tree, key, depth))
		return;
	edge->where = where_of(key, depth);
	edge->bytes = bytes_of(key, depth);
	euno_store64(&art_body(tree)->edge.bytes, edge->bytes);
	euno_store64(&art_body(tree)->edge.where, edge->where);
}

/*
 * A write behind the edge has been performed: it moves on, or there is none
 * now.
 */
static void
follow_edge(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			const ArtEdge *edge)
{
	uint64_t	bytes = bytes_of(key, edge->where & EDGE_DEPTH);

	if (euno_edge_is_left(cx))
		euno_store64(&art_body(tree)->edge.where, 0);
	else if (bytes > edge->bytes)
		euno_store64(&art_body(tree)->edge.bytes, bytes);
}

/*
 * Before a try of a write: if the place is known to be crowded, or tries have
 * failed, has the write performed by whoever leads there.  True: that has been
 * done, with this status.  Within an epoch, nothing locked.  "depth" is where
 * the last try ended.
 *
 * Of crowded places only the hash of the bytes above is remembered, and the
 * last one's depth.  Ascending keys are at another place every 256 of them:
 * all behind the edge is one place, which the tree knows.
 */
bool
euno_art_crowd(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			   uint32_t attempts, uint32_t depth, const EunoWish *wish,
			   EunoStatus *status)
{
	ArtEdge		edge = load_edge(tree);
	uint64_t	delegated = cx->counters.delegated;
	const void *where = art_body(tree);
	bool		behind;

	if (cx->delegation.leading || (attempts > 0 && attempts < ART_CROWD))
		return false;
	if (attempts > 0 && depth == UINT32_MAX)
		return false;			/* no try has come to an end */
	if (attempts > 0)
		find_edge(tree, key, depth, &edge);
	behind = is_behind(&edge, key);
	if (behind)
		depth = edge.where & EDGE_DEPTH;
	else
	{
		if (attempts == 0)
			depth = cx->delegation.depth;
		where = (const void *) (uintptr_t) euno_art_place(key, depth);
		if (attempts == 0 && !euno_is_crowded(cx, where))
			return false;
		cx->delegation.depth = depth;
	}
	if (!euno_delegate(cx, tree, (uintptr_t) where, where, wish, status))
		return false;
	if (cx->counters.delegated > delegated)
		euno_art_delegated(cx, tree, key, depth);
	if (behind)
		follow_edge(cx, tree, key, &edge);
	return true;
}
