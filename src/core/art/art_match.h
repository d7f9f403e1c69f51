/*-------------------------------------------------------------------------
 *
 * art_match.h
 *	  What leaves hold, and whether that starts with a key: the short ways to
 *	  tell.
 *
 * In a header for the sake of speed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ART_MATCH_H
#define ART_MATCH_H

#include "core/art/art.h"

/* The TID at the end of an INLINE of an entry, which this slot has held. */
static inline EunoTid
art_inline_tid(ArtRef ref, const ArtRef *slot)
{
	uint32_t	bits = 8 * art_inline_count(ref);
	uint64_t	high = ref >> 8;

	if (bits < 64)
		return ref >> (64 - bits) & EUNO_TID_MAX;
	slot++;
	if (bits >= 128)
	{
		high = euno_load64(slot++);
		bits -= 64;
	}
	bits -= 56;
	return (bits < 64 ? high << bits | euno_load64(slot) >> (64 - bits) :
			euno_load64(slot)) & EUNO_TID_MAX;
}

/*
 * Does an INLINE, which this slot has held, start with these bytes?  It has
 * that many, and 6 more.
 */
static inline bool
art_inline_starts(ArtRef ref, const ArtRef *slot, const uint8_t *bytes,
				  uint32_t n)
{
	uint64_t	word = ref;

	if (n > 7)
	{
		if (((word ^ euno_get_word(bytes)) >> 8) != 0)
			return false;
		word = euno_load64(slot + 1);
		bytes += 7;
		n -= 7;
		if (n > 8)
		{
			if (word != euno_get_word(bytes))
				return false;
			word = euno_load64(slot + 2);
			bytes += 8;
			n -= 8;
		}
	}
	return n == 0 || (word ^ art_top_bytes(bytes, n)) >> (64 - 8 * n) == 0;
}

/* Does a record, "tail" are its last bytes, start with these? */
static inline bool
art_record_starts(const uint8_t *tail, const uint8_t *bytes, uint32_t n)
{
	for (; n >= 8; n -= 8, bytes += 8, tail += 8)
	{
		if (euno_load_be(tail, 8) != euno_get_word(bytes))
			return false;
	}

	/* The TID is behind the key: two bytes of that make eight to be read. */
	return n < 2 ? n == 0 || euno_load8(tail) == bytes[0] :
		(euno_load_be(tail, 8) ^ art_top_bytes(bytes, n)) >> (64 - 8 * n) == 0;
}

/* Bytes in front of those of the composite, and how many the payload has. */
static inline uint32_t
art_record_header(ArtRef ref, uint32_t *start, uint32_t *payload_len)
{
	uint16_t	head[2] = {0, 0};
	bool		payload = (ref & ART_PAYLOAD) != 0;

	if (payload)
		euno_copy_out(head, art_record(ref), 2 * sizeof(head[0]));
	else
		euno_copy_out(head, art_record(ref), sizeof(head[0]));
	*start = head[0];
	*payload_len = head[1];
	return payload ? 2 * sizeof(head[0]) : sizeof(head[0]);
}

/*
 * What a record in a slot at this depth has of its composite from there on.
 * False if it cannot be in such a slot.
 */
static inline bool
art_record_tail(ArtRef ref, uint32_t depth, ArtTail *tail)
{
	uint32_t	start;
	uint32_t	header = art_record_header(ref, &start, &tail->payload_len);

	if (start > depth || depth > art_leaf_len(ref))
		return false;
	tail->bytes = (const uint8_t *) art_record(ref) + header + depth - start;
	tail->n = art_leaf_len(ref) - depth;
	tail->payload = tail->bytes + tail->n;
	return true;
}

/*
 * The TID, all of which a record has that begins at this byte of the
 * composite.
 */
static inline EunoTid
art_record_tid(ArtRef ref, uint32_t start)
{
	const uint8_t *bytes = (const uint8_t *) art_record(ref) +
		((ref & ART_PAYLOAD) != 0 ? 4 : 2);

	/* what is in front of the composite makes eight bytes to be read */
	return euno_load_be(bytes + (art_leaf_len(ref) - start) - 8, 8) &
		EUNO_TID_MAX;
}

/*
 * Does the composite of a leaf, which this slot has held and is not one of
 * the removed, start with the key, of which it has all in front of "depth"?
 * If so, *tid is its TID.  "whole": and is the key all that it has besides
 * that?  False, and nothing is known, if the leaf is not one of a longer
 * composite, or not of a whole one.
 */
static inline bool
art_leaf_match(ArtRef ref, const ArtRef *slot, uint32_t depth,
			   const uint8_t *key, uint32_t len, bool whole, bool *found,
			   EunoTid *tid)
{
	uint32_t	n = len - depth;
	uint32_t	longer;
	const uint8_t *record = art_record(ref);
	const uint8_t *tail;
	uint16_t	start;

	if (!art_is_leaf(ref))
	{
		longer = art_inline_count(ref) - (n + EUNO_TID_BYTES);
		if ((int32_t) longer < 0 || (whole && longer > 0))
			return false;
		*tid = art_inline_tid(ref, slot);
		*found = art_inline_starts(ref, slot, key + depth, n);
		return true;
	}
	euno_copy_out(&start, record, sizeof(start));
	longer = art_leaf_len(ref) - len - EUNO_TID_BYTES;
	if (start > depth || art_leaf_len(ref) < len + EUNO_TID_BYTES ||
		(whole && (longer > 0 || (ref & ART_PAYLOAD) != 0)))
		return false;
	tail = record + depth - start + ((ref & ART_PAYLOAD) != 0 ? 4 : 2);
	*tid = art_record_tid(ref, start);
	*found = art_record_starts(tail, key + depth, n);
	return true;
}

#endif							/* ART_MATCH_H */
