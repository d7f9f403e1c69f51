/*-------------------------------------------------------------------------
 *
 * art_leaf.c
 *	  Leaves: the rest of an entry that the path to it does not spell.
 *
 * "The Adaptive Radix Tree" (ICDE 2013), section III: lazy expansion, values in
 * tagged pointers where they fit, single-value leaves otherwise.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_match.h"

/* Bytes as INLINE; at most 23 of them. */
void
euno_art_inline(const uint8_t *bytes, uint32_t n, ArtChild *child)
{
	const uint32_t most = art_inline_max(1);
	uint32_t	rest = n > most ? n - most : 0;

	child->ref = art_top_bytes(bytes, n - rest) | ART_TAG_INLINE |
		(ArtRef) n << ART_COUNT_SHIFT;
	child->more[0] = art_top_bytes(bytes + most, rest < 8 ? rest : 8);
	child->more[1] = rest > 8 ? art_top_bytes(bytes + most + 8, rest - 8) : 0;
}

/*
 * A leaf for a slot of so many words at this depth, inline if it fits.  False
 * if there is no memory.  Not yet reachable.
 */
bool
euno_art_build_leaf(ArtBuild *build, const uint8_t *composite, uint32_t len,
					uint32_t depth, const uint8_t *payload,
					uint32_t payload_len, uint32_t words, ArtChild *child)
{
	uint32_t	n = len - depth;
	uint16_t	head[2] = {(uint16_t) depth, (uint16_t) payload_len};
	uint32_t	header = payload_len > 0 ? 4 : 2;
	uint8_t    *record;

	if (n <= art_inline_max(words) && payload_len == 0)
	{
		euno_art_inline(composite + depth, n, child);
		return true;
	}
	record = euno_art_build_alloc(build, art_record_memory(header + n +
															   payload_len));
	if (record == NULL)
		return false;
	euno_copy_in(record, head, header);
	euno_copy_in(record + header, composite + depth, n);
	if (payload_len > 0)
		euno_copy_in(record + header + n, payload, payload_len);
	child->ref = (ArtRef) (uintptr_t) record | (ArtRef) len << ART_HIGH_SHIFT |
		ART_TAG_LEAF | (payload_len > 0 ? ART_PAYLOAD : 0);
	child->more[0] = child->more[1] = 0;
	return true;
}

/*
 * The same for a slot that has held something before: what it has besides the
 * reference stays as it is, so only the same bytes can be inline again.
 */
bool
euno_art_build_leaf_for(ArtBuild *build, const uint8_t *composite,
						uint32_t len, const uint8_t *payload,
						uint32_t payload_len, const ArtPlace *place,
						ArtChild *child)
{
	uint32_t	words = place->holder == NULL ? 1 :
		euno_art_layouts[art_type(place->holder)].words;
	uint32_t	n = len - place->depth;
	ArtChild	there;

	if (n > art_inline_max(1) && n <= art_inline_max(words) &&
		payload_len == 0)
	{
		euno_art_inline(composite + place->depth, n, child);
		there = art_child(child->ref, place->slot);
		if (there.more[0] == child->more[0] && there.more[1] == child->more[1])
			return true;
	}
	return euno_art_build_leaf(build, composite, len, place->depth, payload,
							   payload_len, 1, child);
}

/* What a leaf's record takes. */
size_t
euno_art_leaf_memory(ArtRef ref)
{
	uint32_t	start;
	uint32_t	payload_len;
	uint32_t	header = art_record_header(ref, &start, &payload_len);

	return art_record_memory(header + art_leaf_len(ref) - start + payload_len);
}

/*
 * What a leaf in a slot at this depth has of its composite from there on.
 * False if it cannot be in such a slot.
 */
bool
euno_art_leaf_tail(const ArtChild *child, uint32_t depth, ArtTail *tail)
{
	uint64_t	words[ART_WORDS] = {child->ref, child->more[0], child->more[1]};

	if (art_is_leaf(child->ref))
		return art_record_tail(child->ref, depth, tail);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (int i = 0; i < ART_WORDS; i++)
		words[i] = __builtin_bswap64(words[i]);
#endif
	memcpy(tail->inlined, words, art_inline_max(1));
	memcpy(tail->inlined + art_inline_max(1), words + 1, 16);
	tail->bytes = tail->inlined;
	tail->n = art_inline_count(child->ref);
	tail->payload_len = 0;
	return tail->n <= art_inline_max(ART_WORDS);
}

/*
 * The first byte in which a composite differs from the leaf's; its length if
 * none does.
 */
uint32_t
euno_art_leaf_mismatch(const ArtTail *tail, uint32_t depth, const ArtKey *key)
{
	uint32_t	n = tail->n;
	uint32_t	i = 0;

	if (n > key->len - depth)
		n = key->len - depth;
	while (i < n)
	{
		uint8_t		chunk[16];
		uint32_t	here = n - i < 16 ? n - i : 16;

		euno_copy_out(chunk, tail->bytes + i, here);
		if (memcmp(chunk, key->bytes + depth + i, here) != 0)
		{
			for (uint32_t k = 0; chunk[k] == key->bytes[depth + i]; k++)
				i++;
			break;
		}
		i += here;
	}
	return depth + i;
}
