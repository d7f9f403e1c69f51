/*-------------------------------------------------------------------------
 *
 * art_inner.c
 *	  The four kinds of inner nodes.
 *
 * "The Adaptive Radix Tree" (ICDE 2013), section III.  Children of N4 and N16
 * are in order of arrival, not sorted: adding one moves nothing.  A slot whose
 * child went away keeps its byte and holds 0; add uses it again.
 *
 * Everything but init, copy and add may be called on a node that is being
 * written; what it says must then be validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef struct Layout
{
	uint16_t	capacity;
	uint16_t	keys;			/* bytes of keys or index */
	uint16_t	body;			/* bytes in all */
} Layout;

static const Layout layouts[] = {
	{4, 8, 8 + 4 * 8},
	{16, 16, 16 + 16 * 8},
	{48, 256, 256 + 48 * 8},
	{256, 0, 256 * 8}
};

static inline ArtType
node_type(const ArtNode *node)
{
	return (ArtType) (node->type & 3);
}

static inline ArtRef *
node_children(ArtNode *node, ArtType type)
{
	return (ArtRef *) (node->body + layouts[type].keys);
}

static inline uint8_t *
node_path(const ArtNode *node)
{
	return (uint8_t *) node->body + layouts[node_type(node)].body;
}

/* Slots given out, however torn the node. */
static inline uint32_t
node_used(const ArtNode *node, ArtType type)
{
	uint32_t	used = euno_load16(&node->used);

	return used <= layouts[type].capacity ? used : layouts[type].capacity;
}

/* Bytes of a node with a path of this length. */
size_t
euno_art_node_size(ArtType type, uint32_t level)
{
	size_t		size = ART_NODE_HEADER + layouts[type].body;

	return size + (level > 8 ? level : 0);
}

uint32_t
euno_art_node_capacity(ArtType type)
{
	return layouts[type].capacity;
}

/* The smallest kind that holds so many children. */
ArtType
euno_art_node_type(uint32_t nchildren)
{
	int			type = ART_N4;

	while (layouts[type].capacity < nchildren)
		type++;
	return (ArtType) type;
}

/* An empty node, not yet reachable. */
void
euno_art_node_init(ArtNode *node, ArtType type, const uint8_t *path,
				   uint32_t level)
{
	uint8_t		zeros[256] = {0};
	uint32_t	from = level > 8 ? level - 8 : 0;
	ArtNode		header;

	memset(&header, 0, sizeof(header));
	header.level = (uint16_t) level;
	header.type = (uint8_t) type;
	for (uint32_t i = from; i < level; i++)
		header.window |= (uint64_t) path[i] << (56 - 8 * (i - from));
	euno_copy_in(node, &header, ART_NODE_HEADER);
	for (uint32_t at = 0; at < layouts[type].body; at += 8)
	{
		uint32_t	n = layouts[type].body - at;

		euno_copy_in(node->body + at, zeros, n < 8 ? n : 8);
	}
	if (level > 8)
		euno_copy_in(node_path(node), path, level);
}

/* The slot of a byte, NULL if it has none. */
ArtRef *
euno_art_node_slot(ArtNode *node, uint8_t byte)
{
	ArtType		type = node_type(node);
	ArtRef	   *children = node_children(node, type);
	uint32_t	used;
	uint8_t		keys[16] __attribute__((aligned(16)));

	if (type == ART_N256)
		return &children[byte];
	if (type == ART_N48)
	{
		uint32_t	i = euno_load8(&node->body[byte]);

		return i > 0 && i <= 48 ? &children[i - 1] : NULL;
	}
	used = node_used(node, type);
	euno_copy_out(keys, node->body, layouts[type].keys);
#ifdef __SSE2__
	if (type == ART_N16)
	{
		__m128i		equal = _mm_cmpeq_epi8(_mm_load_si128((__m128i *) keys),
										   _mm_set1_epi8((char) byte));
		uint32_t	mask = (uint32_t) _mm_movemask_epi8(equal) &
			((1U << used) - 1);

		return mask != 0 ? &children[__builtin_ctz(mask)] : NULL;
	}
#endif
	for (uint32_t i = 0; i < used; i++)
	{
		if (keys[i] == byte)
			return &children[i];
	}
	return NULL;
}

/* Is there a slot for a byte that has none?  The node is locked. */
bool
euno_art_node_room(const ArtNode *node)
{
	ArtType		type = node_type(node);
	ArtRef	   *children = node_children((ArtNode *) node, type);

	if (type == ART_N256 || node_used(node, type) < layouts[type].capacity)
		return true;
	for (uint32_t i = 0; i < layouts[type].capacity; i++)
	{
		if (euno_load64(&children[i]) == 0)
			return true;
	}
	return false;
}

/*
 * Adds a child under a byte that has no slot, or an empty one.  False if the
 * node is full.  The node is locked or not yet reachable.
 */
bool
euno_art_node_add(ArtNode *node, uint8_t byte, ArtRef ref)
{
	ArtType		type = node_type(node);
	ArtRef	   *children = node_children(node, type);
	ArtRef	   *slot = euno_art_node_slot(node, byte);
	uint32_t	at = node_used(node, type);

	if (slot != NULL)
	{
		euno_store64_release(slot, ref);
		return true;
	}
	if (at == layouts[type].capacity)
	{
		for (at = 0; at < layouts[type].capacity; at++)
		{
			if (euno_load64(&children[at]) == 0)
				break;
		}
		if (at == layouts[type].capacity)
			return false;
		if (type == ART_N48)
		{
			/* take the slot away from the byte that has it */
			for (uint32_t b = 0; b < 256; b++)
			{
				if (euno_load8(&node->body[b]) == at + 1)
					euno_store8(&node->body[b], 0);
			}
		}
	}
	else
		euno_store16(&node->used, (uint16_t) (at + 1));
	if (type == ART_N48)
		euno_store8(&node->body[byte], (uint8_t) (at + 1));
	else
		euno_store8(&node->body[at], byte);
	euno_store64_release(&children[at], ref);
	return true;
}

/*
 * The first child at or above byte "from" (or the last one at or below it, if
 * not forward) that is not 0; 0 if none.  "from" may be outside of 0 .. 255.
 */
ArtRef
euno_art_node_next(ArtNode *node, int from, bool forward, int *byte)
{
	ArtType		type = node_type(node);
	ArtRef	   *children = node_children(node, type);
	int			step = forward ? 1 : -1;
	ArtRef		found = 0;
	uint8_t		keys[16];
	uint32_t	used;

	if (type == ART_N48 || type == ART_N256)
	{
		for (int b = from; b >= 0 && b < 256; b += step)
		{
			ArtRef	   *slot = &children[b];

			if (type == ART_N48)
			{
				uint32_t	i = euno_load8(&node->body[b]);

				if (i == 0 || i > 48)
					continue;
				slot = &children[i - 1];
			}
			found = euno_load64_acquire(slot);
			if (found != 0)
			{
				*byte = b;
				return found;
			}
		}
		return 0;
	}
	used = node_used(node, type);
	euno_copy_out(keys, node->body, layouts[type].keys);
	for (uint32_t i = 0; i < used; i++)
	{
		int			b = keys[i];
		ArtRef		ref;

		if (forward ? b < from || (found != 0 && b >= *byte) :
			b > from || (found != 0 && b <= *byte))
			continue;
		ref = euno_load64_acquire(&children[i]);
		if (ref != 0)
		{
			found = ref;
			*byte = b;
		}
	}
	return found;
}

/* Copies the children to an empty node that has room.  "from" is locked. */
void
euno_art_node_copy(ArtNode *to, ArtNode *from)
{
	int			byte = -1;
	ArtRef		ref;

	while ((ref = euno_art_node_next(from, byte + 1, true, &byte)) != 0)
		(void) euno_art_node_add(to, (uint8_t) byte, ref);
}

/*
 * The first place in [from, level) where the key differs from the node's path,
 * and the path's byte there; level if there is none.  The key's first "from"
 * bytes do not differ.  Reads only what never changes.
 */
uint32_t
euno_art_path_mismatch(const ArtNode *node, const ArtKey *key, uint32_t from,
					   uint8_t *other)
{
	uint32_t	level = node->level;
	uint32_t	start = level > 8 ? level - 8 : 0;
	uint64_t	word;
	uint64_t	skip;

	if (from < start)
	{
		const uint8_t *path = node_path(node);

		for (uint32_t i = from; i < start; i++)
		{
			uint8_t		mine = i < key->len ? key->bytes[i] : 0;

			*other = euno_load8(&path[i]);
			if (mine != *other)
				return i;
		}
		from = start;
	}
	if (from >= level)
		return level;
	if (start <= key->len)
		word = euno_load_be(key->bytes + start, 8) ^ node->window;
	else
		word = node->window;

	/* only bytes [from, level) of the word count */
	word &= UINT64_MAX << (8 * (8 - (level - start)));
	skip = 8 * (from - start);
	word = word << skip >> skip;
	if (word == 0)
		return level;
	start += (uint32_t) __builtin_clzll(word) / 8;
	*other = (uint8_t) (node->window >>
						(56 - 8 * (start - (level > 8 ? level - 8 : 0))));
	return start;
}

/* Copies the whole path (ART_MAX_COMPOSITE bytes); returns its length. */
uint32_t
euno_art_path_copy(const ArtNode *node, uint8_t *path)
{
	uint32_t	level = node->level;

	if (level > ART_MAX_COMPOSITE)
		level = ART_MAX_COMPOSITE;
	if (level > 8)
		euno_copy_out(path, node_path(node), level);
	else
	{
		for (uint32_t i = 0; i < level; i++)
			path[i] = (uint8_t) (node->window >> (56 - 8 * i));
	}
	return level;
}
