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
#include "core/art/art.h"

/* Bytes in front of those of the composite, and how many the payload has. */
static uint32_t
record_header(const uint8_t *record, uint32_t *start, uint32_t *payload_len)
{
	uint16_t	head[2];

	euno_copy_out(head, record, sizeof(head));
	*start = head[0] & ART_HIGH_MASK;
	*payload_len = (head[0] & ART_HAS_PAYLOAD) != 0 ? head[1] : 0;
	return (head[0] & ART_HAS_PAYLOAD) != 0 ? 4 : 2;
}

/*
 * A leaf for a slot at this depth, inline if it fits; 0 if there is no memory.
 * Not yet reachable.
 */
ArtRef
euno_art_build_leaf(ArtBuild *build, const uint8_t *composite, uint32_t len,
					uint32_t depth, const uint8_t *payload,
					uint32_t payload_len)
{
	uint32_t	n = len - depth;
	uint16_t	head[2] = {(uint16_t) depth, (uint16_t) payload_len};
	uint32_t	header = 2;
	uint8_t    *record;

	if (n <= ART_INLINE_MAX && payload_len == 0)
	{
		ArtRef		ref = ART_TAG_INLINE | (ArtRef) n << ART_COUNT_SHIFT;

		for (uint32_t i = 0; i < n; i++)
			ref |= (ArtRef) composite[depth + i] << (56 - 8 * i);
		return ref;
	}
	if (payload_len > 0)
	{
		head[0] |= ART_HAS_PAYLOAD;
		header = 4;
	}
	record = euno_art_build_alloc(build, header + n + payload_len);
	if (record == NULL)
		return 0;
	euno_copy_in(record, head, header);
	euno_copy_in(record + header, composite + depth, n);
	if (payload_len > 0)
		euno_copy_in(record + header + n, payload, payload_len);
	return (ArtRef) (uintptr_t) record | (ArtRef) len << ART_HIGH_SHIFT |
		ART_TAG_LEAF;
}

/* Bytes of a leaf's record. */
size_t
euno_art_leaf_size(ArtRef ref)
{
	uint32_t	start;
	uint32_t	payload_len;
	uint32_t	header = record_header(art_pointer(ref), &start, &payload_len);

	return header + art_leaf_len(ref) - start + payload_len;
}

/*
 * What a leaf in a slot at this depth has of its composite from there on.
 * False if it cannot be in such a slot.
 */
bool
euno_art_leaf_tail(ArtRef ref, uint32_t depth, ArtTail *tail)
{
	uint32_t	start;
	uint32_t	header;

	if (!art_is_leaf(ref))
	{
		uint64_t	bytes = ref & ~UINT64_C(0xFF);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		bytes = __builtin_bswap64(bytes);
#endif
		memcpy(tail->inlined, &bytes, 8);
		tail->bytes = tail->inlined;
		tail->n = art_inline_count(ref);
		tail->payload_len = 0;
		return true;
	}
	header = record_header(art_pointer(ref), &start, &tail->payload_len);
	if (start > depth || depth > art_leaf_len(ref))
		return false;
	tail->bytes = (const uint8_t *) art_pointer(ref) + header + depth - start;
	tail->n = art_leaf_len(ref) - depth;
	tail->payload = tail->bytes + tail->n;
	return true;
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

/* An INLINE in a slot that is n bytes further down. */
ArtRef
euno_art_inline_skip(ArtRef ref, uint32_t n)
{
	ArtRef		bytes = ref & ~UINT64_C(0xFF);

	/* n may be 8 only if there are no bytes left */
	bytes = n < 8 ? bytes << (8 * n) : 0;
	return bytes | ART_TAG_INLINE |
		(ArtRef) (art_inline_count(ref) - n) << ART_COUNT_SHIFT;
}
