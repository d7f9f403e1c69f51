/*-------------------------------------------------------------------------
 *
 * art_inner.c
 *	  The inner nodes.
 *
 * "The Adaptive Radix Tree" (ICDE 2013), section III, with more sizes, and
 * children near the place that their bytes have among all bytes: so it can be
 * fetched before it is known.  Adding one moves nothing, so a reader may look on
 * ("The ART of Practical Synchronization", section 4.2).
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* Of no more children than this the order is made by comparing their bytes. */
#define FEW_CHILDREN	8

#define INDEX_BYTES	256
#define INDEX_CHILDREN	(ART_NODE_HEADER + INDEX_BYTES)

/* The slots' numbers in a node that has one for each byte. */
#define FOUR(n)		n, n + 1, n + 2, n + 3
#define SIXTEEN(n)	FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
#define QUARTER(n)	SIXTEEN(n), SIXTEEN(n + 16), SIXTEEN(n + 32), SIXTEEN(n + 48)

static const uint8_t all_bytes[256] = {
	QUARTER(0), QUARTER(64), QUARTER(128), QUARTER(192)
};

/*
 * The sizes are the allocator's, or a little less, which short segments fill;
 * it has a size for the largest with any but very long segments.  Slots of two
 * words begin at a multiple of 16 bytes.  The keys of N52 end with the cache
 * line.
 */
const ArtLayout euno_art_layouts[ART_NTYPES] = {
	{2, 16, 32, 1},
	{4, 16, 48, 1},
	{5, 24, 64, 1},
	{8, 24, 88, 1},
	{10, 24, 104, 1},
	{12, 24, 120, 1},
	{16, 32, 160, 1},
	{20, 32, 192, 1},
	{25, 40, 240, 1},
	{30, 48, 288, 1},
	{37, 56, 352, 1},
	{44, 56, 408, 1},
	{52, 64, 480, 1},

	{2, 16, 48, 2},
	{3, 16, 64, 2},
	{4, 16, 80, 2},
	{6, 32, 128, 2},
	{8, 32, 160, 2},
	{10, 32, 192, 2},
	{12, 32, 224, 2},
	{16, 32, 288, 2},
	{20, 32, 352, 2},
	{25, 48, 448, 2},
	{29, 48, 512, 2},
	{33, 48, 576, 2},
	{40, 64, 704, 2},
	{52, 64, 896, 2},

	{2, 16, 64, 3},
	{3, 16, 88, 3},
	{4, 16, 112, 3},
	{6, 24, 168, 3},
	{8, 24, 216, 3},
	{11, 24, 288, 3},
	{14, 32, 368, 3},
	{17, 32, 440, 3},
	{20, 32, 512, 3},
	{25, 40, 640, 3},
	{30, 48, 768, 3},
	{37, 56, 944, 3},
	{45, 64, 1144, 3},
	{50, 64, 1264, 3},

	{63, INDEX_CHILDREN, 1280, 2},
	{79, INDEX_CHILDREN, 1536, 2},
	{95, INDEX_CHILDREN, 1792, 2},
	{111, INDEX_CHILDREN, 2048, 2},
	{127, INDEX_CHILDREN, 2304, 2},
	{159, INDEX_CHILDREN, 2816, 2},
	{191, INDEX_CHILDREN, 3328, 2},
	{223, INDEX_CHILDREN, 3840, 2},

	{63, INDEX_CHILDREN, 1784, 3},
	{74, INDEX_CHILDREN, 2048, 3},
	{84, INDEX_CHILDREN, 2288, 3},
	{95, INDEX_CHILDREN, 2552, 3},
	{106, INDEX_CHILDREN, 2816, 3},
	{127, INDEX_CHILDREN, 3320, 3},
	{148, INDEX_CHILDREN, 3824, 3},

	{62, INDEX_CHILDREN, 768, 1},
	{78, INDEX_CHILDREN, 896, 1},
	{94, INDEX_CHILDREN, 1024, 1},
	{126, INDEX_CHILDREN, 1280, 1},
	{256, ART_NODE_HEADER, 2064, 1}
};

/*
 * The smallest type with slots of so many words that holds so many children;
 * ART_NTYPES if there is none.
 */
ArtType
euno_art_node_type(uint32_t nchildren, uint32_t words)
{
	static const uint8_t lists[] = {ART_N2, ART_W2, ART_V2, ART_LAST_LIST + 1};
	static const uint8_t others[] = {ART_N62, ART_W63, ART_V63};
	int			type = lists[words - 1];

	/* of slots of a size, and a LIST or not, the capacities ascend */
	if (euno_art_layouts[lists[words] - 1].capacity < nchildren)
		type = others[words - 1];
	while (euno_art_layouts[type].capacity < nchildren)
	{
		if (euno_art_layouts[++type].words != words)
			return ART_NTYPES;
	}
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
	const ArtLayout *layout = &euno_art_layouts[type];
	uint32_t	len = level - from;
	ArtNode		header;

	memset(&header, 0, sizeof(header));
	header.shape = level | len << 12 | (uint32_t) type << 24;
	euno_copy_in(node, &header, ART_NODE_HEADER);
	euno_copy_in(node->body, zeros, layout->children - ART_NODE_HEADER);
	euno_copy_in(art_children(node), zeros,
				 layout->capacity * layout->words * sizeof(ArtRef));
	if (len > 0)
	{
		uint8_t    *segment = (uint8_t *) art_segment(node);

		euno_copy_in(segment + art_segment_size(len) - 8, zeros, 8);
		euno_copy_in(segment, path + from, len);
	}
}

/* The same in memory that it takes; NULL if there is none. */
ArtNode *
euno_art_build_node(ArtBuild *build, ArtType type, const uint8_t *path,
					uint32_t from, uint32_t level)
{
	size_t		size = art_node_memory(art_node_size(type, level - from));
	ArtNode    *node = euno_art_build_alloc(build, size);

	if (node != NULL)
		euno_art_node_init(node, type, path, from, level);
	return node;
}

/* The place of the set bit that is nearest to this one; there is one. */
static inline uint32_t
nearest_bit(uint64_t bits, uint32_t place)
{
	uint64_t	right = bits >> place;
	uint64_t	left = bits << (63 - place);
	uint32_t	after = right != 0 ? (uint32_t) __builtin_ctzll(right) : 64;
	uint32_t	before = left != 0 ? (uint32_t) __builtin_clzll(left) : 64;

	return after <= before ? place + after : place - before;
}

/*
 * A LIST's free slot nearest to where a byte's child should be; ART_NO_SLOT.
 * The key of a free one is 0, and so may that of one be which is not.
 */
static uint32_t
free_in_list(ArtNode *node, const ArtLayout *layout, uint8_t byte)
{
	const ArtRef *children = art_children(node);
	uint32_t	place = art_place(layout->capacity, byte);
	uint64_t	zeros = 0;

	for (uint32_t base = 0; base < layout->capacity; base += 16)
		zeros |= (uint64_t) art_match16((const uint8_t *) node + ART_KEYS + base,
										0) << base;
	zeros &= (UINT64_C(1) << layout->capacity) - 1;
	while (zeros != 0)
	{
		uint32_t	at = nearest_bit(zeros, place);

		if (euno_load64(&children[at * layout->words]) == 0)
			return at;
		zeros &= ~(UINT64_C(1) << at);
	}
	return ART_NO_SLOT;
}

/*
 * The same of an INDEX.  Where bytes ascend, all slots are taken up to that of
 * the byte before, or one of the four before: behind it there is one.
 */
static uint32_t
free_in_index(ArtNode *node, const ArtLayout *layout, uint8_t byte)
{
	const ArtRef *children = art_children(node);
	uint32_t	place = art_place(layout->capacity, byte);
	uint32_t	behind = 0;

	if (euno_load32(&node->used) >= layout->capacity)
		return ART_NO_SLOT;
	for (uint32_t b = byte; behind == 0 && b > 0 && byte - b < 4; b--)
		behind = euno_load8(&node->body[b - 1]);
	if (behind > place && behind < layout->capacity &&
		euno_load64(&children[behind * layout->words]) == 0)
		return behind;
	for (uint32_t distance = 0; distance < layout->capacity; distance++)
	{
		if (place + distance < layout->capacity &&
			euno_load64(&children[(place + distance) * layout->words]) == 0)
			return place + distance;
		if (place >= distance &&
			euno_load64(&children[(place - distance) * layout->words]) == 0)
			return place - distance;
	}
	return ART_NO_SLOT;
}

/*
 * The number of the slot that a byte would get which has none: the free one
 * nearest to where its child should be.  ART_NO_SLOT if there is none left.
 */
uint32_t
euno_art_node_place(ArtNode *node, uint8_t byte)
{
	ArtType		type = art_type(node);

	if (type == ART_N256)
		return byte;
	return type > ART_LAST_LIST ?
		free_in_index(node, &euno_art_layouts[type], byte) :
		free_in_list(node, &euno_art_layouts[type], byte);
}

/*
 * Adds a child under a byte that has no slot.  False if there is none left.
 * As art_node_put.
 */
bool
euno_art_node_add(ArtNode *node, uint8_t byte, const ArtChild *child)
{
	uint32_t	at = euno_art_node_place(node, byte);

	if (at == ART_NO_SLOT)
		return false;
	art_node_put(node, art_type(node), art_children(node), at, byte, child);
	return true;
}

/*
 * For which bytes there are slots, a bit each, and the number of each one's
 * slot.
 */
void
euno_art_node_map(ArtNode *node, uint64_t map[4], uint8_t places[256])
{
	ArtType		type = art_type(node);
	const ArtLayout *layout = &euno_art_layouts[type];
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	const ArtRef *children = art_children(node);

	if (type == ART_N256)
	{
		memcpy(places, all_bytes, sizeof(all_bytes));
		map[0] = map[1] = map[2] = map[3] = UINT64_MAX;
		return;
	}
	map[0] = map[1] = map[2] = map[3] = 0;
	if (type > ART_LAST_LIST)
	{
		euno_copy_out(places, node->body, INDEX_BYTES);
		for (uint32_t b = 0; b < 256; b += 16)
			map[b / 64] |= (uint64_t) (~art_match16(places + b, 0) & 0xFFFF) << b % 64;
		for (uint32_t b = 0; b < 256; b++)
			places[b]--;
		return;
	}
	for (uint32_t i = 0; i < layout->capacity; i++)
	{
		uint8_t		byte = euno_load8(&keys[i]);

		/*
		 * 0, if the slot is not given out; the byte is there when the child is
		 */
		if (byte == 0)
		{
			if (euno_load64_acquire(&children[i * layout->words]) == 0)
				continue;
			byte = euno_load8(&keys[i]);
		}
		map[byte / 64] |= UINT64_C(1) << byte % 64;
		places[byte] = (uint8_t) i;
	}
}

/* Puts a child in its place among those of smaller and larger bytes. */
static inline void
sort_in(ArtChildren *children, uint8_t byte, const ArtChild *child)
{
	uint32_t	at = children->n++;

	for (; at > 0 && children->bytes[at - 1] > byte; at--)
	{
		children->bytes[at] = children->bytes[at - 1];
		children->child[at] = children->child[at - 1];
	}
	children->bytes[at] = byte;
	children->child[at] = *child;
}

/* All children, in the order of their bytes, of a LIST of a few. */
static void
children_of_few(ArtNode *node, ArtChildren *children)
{
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	const ArtRef *slot = art_children(node);

	for (uint32_t i = 0; i < layout->capacity; i++, slot += layout->words)
	{
		ArtRef		ref = euno_load64_acquire(slot);

		if (!art_is_absent(ref))
		{
			ArtChild	child = art_child(ref, slot);

			sort_in(children, euno_load8(&keys[i]), &child);
		}
		else if (art_is_leaf(ref))
			children->dead[children->ndead++] = ref;
	}
}

/* The same of any node. */
void
euno_art_node_children(ArtNode *node, ArtChildren *children)
{
	const uint32_t words = euno_art_layouts[art_type(node)].words;
	const ArtRef *slots = art_children(node);
	uint32_t	n = 0;
	uint8_t		places[256];
	uint64_t	map[4];

	children->n = children->ndead = 0;
	if (euno_art_layouts[art_type(node)].capacity <= FEW_CHILDREN)
	{
		children_of_few(node, children);
		return;
	}
	euno_art_node_map(node, map, places);
	for (uint32_t w = 0; w < 4; w++)
	{
		for (; map[w] != 0; map[w] &= map[w] - 1)
		{
			uint32_t	b = 64 * w + (uint32_t) __builtin_ctzll(map[w]);
			const ArtRef *slot = slots + places[b] * words;
			ArtRef		ref = euno_load64_acquire(slot);

			if (!art_is_absent(ref))
			{
				children->bytes[n] = (uint8_t) b;
				children->child[n++] = art_child(ref, slot);
			}
			else if (art_is_leaf(ref))
				children->dead[children->ndead++] = ref;
		}
	}
	children->n = n;
}

/*
 * art_path_match for segments and keys of any length.  A node whose segment
 * does not begin at or above the depth is damaged: the first byte differs.
 */
uint32_t
euno_art_path_match(const ArtNode *node, const ArtKey *key, uint32_t depth)
{
	uint32_t	level = art_level(node);
	uint32_t	end = level < key->len ? level : key->len;
	uint32_t	from = level - art_segment_len(node);
	const uint8_t *segment = art_segment(node);
	uint32_t	at = depth;
	uint32_t	word;
	uint64_t	differ;

	if (from > depth)
		return depth;
	for (; at + 8 <= end; at += 8)
	{
		differ = euno_load_be(segment + at - from, 8) ^
			euno_load_be(key->bytes + at, 8);
		if (differ != 0)
			return at + (uint32_t) __builtin_clzll(differ) / 8;
	}
	if (at >= end)
		return end;

	/* eight bytes are read, the last of them within the segment */
	word = end - from < 8 ? from : end - 8;
	differ = (euno_load_be(segment + word - from, 8) ^
			  euno_load_be(key->bytes + word, 8)) << 8 * (at - word);
	differ >>= 64 - 8 * (end - at);
	return differ == 0 ? end : end - 8 + (uint32_t) __builtin_clzll(differ) / 8;
}

/*
 * Copies the bytes [depth, level) of a node's path to their place in "path",
 * which has room for a composite; none of a node that is damaged.
 */
void
euno_art_path_copy(const ArtNode *node, uint32_t depth, uint8_t *path)
{
	uint32_t	level = art_level(node);
	uint32_t	from = level - art_segment_len(node);

	if (depth < level && from <= depth && level < ART_MAX_COMPOSITE)
		euno_copy_out(path + depth, art_segment(node) + (depth - from),
					  level - depth);
}

/* Children of a node that were not removed.  A guess: nothing is locked. */
uint32_t
euno_art_children_left(ArtNode *node)
{
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	const ArtRef *children = art_children(node);
	uint32_t	left = 0;

	for (uint32_t i = 0; i < layout->capacity; i++)
		left += !art_is_absent(euno_load64(&children[i * layout->words]));
	return left;
}
