/*-------------------------------------------------------------------------
 *
 * art_search.h
 *	  A node's child for a byte, and whether a key follows its path.
 *
 * In a header for the sake of speed.  All of it may be called on a node that
 * is being written: every answer was true at some time since the call began.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_SEARCH_H
#define ART_SEARCH_H

#include "core/art/art.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The places of a byte among 16, as bits. */
static inline uint32_t
art_match16(const uint8_t *shared, uint8_t byte)
{
	uint8_t		keys[16];
	uint32_t	mask = 0;

	euno_copy_out(keys, shared, 16);
#ifdef __SSE2__
	mask = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) keys),
													   _mm_set1_epi8((char) byte)));
#else
	for (int i = 0; i < 16; i++)
		mask |= (uint32_t) (keys[i] == byte) << i;
#endif
	return mask;
}

/*
 * The child in a LIST.  A slot that was not given out has the key 0 and no
 * child, and none is behind it.  Its key may be set just after it was read
 * here as 0; a child is published after its key, so the key is read again
 * once there is a child.
 */
static inline ArtRef *
art_list_slot(ArtNode *node, ArtType type, uint8_t byte, ArtRef *ref)
{
	uint32_t	capacity = euno_art_layouts[type].capacity;
	const uint8_t *keys = (const uint8_t *) node + ART_KEYS;
	ArtRef	   *children = art_children(node);

	for (uint32_t base = 0; base < capacity; base += 16)
	{
		uint32_t	mask = art_match16(keys + base, byte);

		if (capacity - base < 16)
			mask &= (1U << (capacity - base)) - 1;
		for (; mask != 0; mask &= mask - 1)
		{
			uint32_t	i = base + (uint32_t) __builtin_ctz(mask);

			*ref = euno_load64_acquire(&children[i]);
			if (*ref == 0)
				return NULL;
			if (euno_load8(&keys[i]) == byte)
				return &children[i];
		}
	}
	*ref = 0;
	return NULL;
}

/*
 * The slot of a byte and what it holds (0 if there is no slot).  "type" is the
 * node's, from the reference to it: so the slot's line can be fetched along with
 * the header's.
 */
static inline ArtRef *
art_slot(ArtNode *node, ArtType type, uint8_t byte, ArtRef *ref)
{
	if (type == ART_N256)
	{
		ArtRef	   *slot = (ArtRef *) node->body + byte;

		*ref = euno_load64_acquire(slot);
		return slot;
	}
	if (type >= ART_N86)
	{
		uint32_t	i = euno_load8(&node->body[byte]);
		ArtRef	   *slot = (ArtRef *) (node->body + 256) + i - 1;

		*ref = 0;
		if (i == 0)
			return NULL;
		*ref = euno_load64_acquire(slot);
		return slot;
	}
	return art_list_slot(node, type, byte, ref);
}

/*
 * The first byte in which a key differs from a node's path, the node's level
 * if none does; or the key's length, if all of the key is on the path.  The
 * key's first "depth" bytes do not differ.  Reads only what never changes.
 */
static inline uint32_t
art_path_match(const ArtNode *node, const ArtKey *key, uint32_t depth)
{
	uint32_t	len = art_segment_len(node);
	uint32_t	level = art_level(node);
	uint64_t	differ;

	if (len == 0)
		return level;
	if (len > 8 || level > key->len)
		return euno_art_path_match(node, key, depth);
	differ = (euno_load_be(art_segment(node), 8) ^
			  euno_load_be(key->bytes + level - len, 8)) >> (64 - 8 * len);
	if (differ == 0)
		return level;
	return level - len +
		(uint32_t) __builtin_clzll(differ << (64 - 8 * len)) / 8;
}

#endif							/* ART_SEARCH_H */
