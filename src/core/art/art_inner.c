/*-------------------------------------------------------------------------
 *
 * art_inner.c
 *	  The inner nodes.
 *
 * "The Adaptive Radix Tree" (ICDE 2013), section III, with more sizes, and
 * children in order of arrival: adding one moves nothing, so a reader may look
 * on ("The ART of Practical Synchronization", section 4.2).
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

#define INDEX_BYTES	256

/*
 * The sizes are the allocator's.  A LIST's keys fill what the header and the
 * alignment of its children leave; that of N52 ends with the cache line.
 */
const ArtLayout euno_art_layouts[ART_NTYPES] = {
	{2, 16, 32},
	{4, 16, 48},
	{8, 24, 88},
	{16, 32, 160},
	{30, 48, 288},
	{52, 64, 480},
	{86, ART_NODE_HEADER + INDEX_BYTES, 960},
	{126, ART_NODE_HEADER + INDEX_BYTES, 1280},
	{256, ART_NODE_HEADER, ART_NODE_MAX}
};

/* The smallest type that holds so many children. */
ArtType
euno_art_node_type(uint32_t nchildren)
{
	int			type = ART_N2;

	while (type < ART_N256 && euno_art_layouts[type].capacity < nchildren)
		type++;
	return (ArtType) type;
}

/*
 * An empty node, not yet reachable.  It branches on byte "level" of "path", of
 * which bytes [from, level) become its segment.
 */
void
euno_art_node_init(ArtNode *node, ArtType type, const uint8_t *path,
				   uint32_t from, uint32_t level)
{
	static const uint8_t zeros[ART_NODE_MAX];
	uint32_t	len = level - from;
	ArtNode		header;

	memset(&header, 0, sizeof(header));
	header.shape = level | len << 12 | (uint32_t) type << 28;
	euno_copy_in(node, &header, ART_NODE_HEADER);
	euno_copy_in(node->body, zeros,
				 euno_art_layouts[type].children - ART_NODE_HEADER);
	euno_copy_in(art_children(node), zeros,
				 euno_art_layouts[type].capacity * sizeof(ArtRef));
	if (len > 0)
	{
		uint8_t    *segment = (uint8_t *) art_segment(node);

		euno_copy_in(segment + art_segment_size(len) - 8, zeros, 8);
		euno_copy_in(segment, path + from, len);
	}
}

/* The same in memory of its own; NULL if there is none. */
ArtNode *
euno_art_build_node(ArtBuild *build, ArtType type, const uint8_t *path,
					uint32_t from, uint32_t level)
{
	ArtNode    *node = euno_art_build_alloc(build,
											art_node_size(type, level - from));

	if (node != NULL)
		euno_art_node_init(node, type, path, from, level);
	return node;
}

/* How many slots have been given out, absent children included. */
static uint32_t
node_used(ArtNode *node)
{
	ArtType		type = art_type(node);
	ArtRef	   *children = art_children(node);
	uint32_t	low = 0;
	uint32_t	high = euno_art_layouts[type].capacity;

	/* no slot is empty before one that is not */
	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		if (euno_load64(&children[middle]) != 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Is there a slot for a byte that has none? */
bool
euno_art_node_room(ArtNode *node)
{
	uint32_t	capacity = euno_art_layouts[art_type(node)].capacity;

	return capacity == 256 ||
		euno_load64(&art_children(node)[capacity - 1]) == 0;
}

/*
 * Adds a child under a byte that has no slot.  False if there is none left.
 * The node is locked, or not yet reachable.
 *
 * Readers of a LIST look at the child first and then again at the key; readers
 * of an INDEX that see the number but not yet the child see nothing there.
 */
bool
euno_art_node_add(ArtNode *node, uint8_t byte, ArtRef ref)
{
	ArtType		type = art_type(node);
	ArtRef	   *children = art_children(node);
	uint32_t	at;

	if (type == ART_N256)
	{
		euno_store64_release(&children[byte], ref);
		return true;
	}
	at = node_used(node);
	if (at == euno_art_layouts[type].capacity)
		return false;
	if (type <= ART_N52)
		euno_store8((uint8_t *) node + ART_KEYS + at, byte);
	euno_store64_release(&children[at], ref);
	if (type > ART_N52)
	{
		euno_fence_release();
		euno_store8(&node->body[byte], (uint8_t) (at + 1));
	}
	return true;
}

/* For which bytes there are slots, a bit each. */
void
euno_art_node_map(ArtNode *node, uint64_t map[4])
{
	ArtType		type = art_type(node);
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	uint32_t	used;

	if (type == ART_N256)
	{
		map[0] = map[1] = map[2] = map[3] = UINT64_MAX;
		return;
	}
	map[0] = map[1] = map[2] = map[3] = 0;
	if (type > ART_N52)
	{
		for (uint32_t b = 0; b < INDEX_BYTES; b += 16)
			map[b / 64] |= (uint64_t) (art_match16(node->body + b, 0) ^ 0xFFFF)
				<< b % 64;
		return;
	}
	used = node_used(node);
	for (uint32_t i = 0; i < used; i++)
	{
		uint8_t		byte = euno_load8(&keys[i]);

		map[byte / 64] |= UINT64_C(1) << byte % 64;
	}
}

/* All children in the order of their bytes. */
void
euno_art_node_children(ArtNode *node, ArtChildren *children)
{
	uint64_t	map[4];

	euno_art_node_map(node, map);
	children->n = children->ndead = 0;
	for (uint32_t b = 0; b < 256; b++)
	{
		ArtRef		ref;

		if ((map[b / 64] >> b % 64 & 1) == 0)
			continue;
		(void) art_slot(node, art_type(node), (uint8_t) b, &ref);
		if (!art_is_absent(ref))
		{
			children->bytes[children->n] = (uint8_t) b;
			children->refs[children->n++] = ref;
		}
		else if (art_is_leaf(ref))
			children->dead[children->ndead++] = ref;
	}
}

/* art_path_match for segments and keys of any length. */
uint32_t
euno_art_path_match(const ArtNode *node, const ArtKey *key, uint32_t depth)
{
	uint32_t	level = art_level(node);
	uint32_t	end = level < key->len ? level : key->len;
	uint32_t	from = level - art_segment_len(node);
	const uint8_t *segment = art_segment(node);

	for (uint32_t i = depth; i < end; i++)
	{
		if (euno_load8(&segment[i - from]) != key->bytes[i])
			return i;
	}
	return end;
}

/* Copies the bytes [depth, level) of a node's path to their place in "path". */
void
euno_art_path_copy(const ArtNode *node, uint32_t depth, uint8_t *path)
{
	uint32_t	level = art_level(node);
	uint32_t	from = level - art_segment_len(node);

	if (depth < level && from <= depth)
		euno_copy_out(path + depth, art_segment(node) + (depth - from),
					  level - depth);
}
