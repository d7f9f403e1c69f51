/*-------------------------------------------------------------------------
 *
 * bpt_posting.c
 *	  Posting lists: the further TIDs of one key.
 *
 * Each TID is coded by its distance from the one before: the block distance
 * as a variable-length number (7 bits a byte, low bits first), then the
 * offset, as a distance if the block is the same.  Taking one TID out never
 * makes a list longer, so a removal never needs room.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

static uint32_t
number_size(uint64_t n)
{
	uint32_t	size = 1;

	while (n >= 0x80)
	{
		n >>= 7;
		size++;
	}
	return size;
}

static uint8_t *
number_put(uint8_t *to, uint64_t n)
{
	while (n >= 0x80)
	{
		*to++ = (uint8_t) (n | 0x80);
		n >>= 7;
	}
	*to++ = (uint8_t) n;
	return to;
}

/* NULL when the number does not end before "end". */
static const uint8_t *
number_get(const uint8_t *from, const uint8_t *end, uint64_t *n)
{
	*n = 0;
	for (unsigned shift = 0; from < end && shift < 42; shift += 7)
	{
		uint8_t		byte = *from++;

		*n |= (uint64_t) (byte & 0x7F) << shift;
		if ((byte & 0x80) == 0)
			return from;
	}
	return NULL;
}

/* Bytes that "tid" takes after "previous", which is smaller. */
uint32_t
euno_bpt_list_step(EunoTid previous, EunoTid tid)
{
	uint64_t	blocks = (tid >> 16) - (previous >> 16);
	uint64_t	offset = tid & 0xFFFF;

	if (blocks == 0)
		offset -= previous & 0xFFFF;
	return number_size(blocks) + number_size(offset);
}

/*
 * Codes tids[1..n), ascending, after tids[0].  Returns the bytes written, at
 * most BPT_LIST_BYTES for n <= BPT_LIST_MAX.
 */
uint32_t
euno_bpt_list_encode(const EunoTid *tids, uint32_t n, uint8_t *to)
{
	uint8_t    *p = to;

	for (uint32_t i = 1; i < n; i++)
	{
		uint64_t	blocks = (tids[i] >> 16) - (tids[i - 1] >> 16);
		uint64_t	offset = tids[i] & 0xFFFF;

		if (blocks == 0)
			offset -= tids[i - 1] & 0xFFFF;
		p = number_put(p, blocks);
		p = number_put(p, offset);
	}
	return (uint32_t) (p - to);
}

/*
 * Decodes n TIDs, the first of which is given, into tids[0..n).  The list is
 * private memory.  False if it is not a list of that many.
 */
bool
euno_bpt_list_decode(const uint8_t *list, uint32_t len, EunoTid first,
					 uint32_t n, EunoTid *tids)
{
	const uint8_t *end = list + len;

	tids[0] = first;
	for (uint32_t i = 1; i < n; i++)
	{
		uint64_t	blocks;
		uint64_t	offset;

		if ((list = number_get(list, end, &blocks)) == NULL ||
			(list = number_get(list, end, &offset)) == NULL)
			return false;
		blocks += tids[i - 1] >> 16;
		if (blocks == tids[i - 1] >> 16)
			offset += tids[i - 1] & 0xFFFF;
		tids[i] = (blocks << 16 | (offset & 0xFFFF)) & EUNO_TID_MAX;
	}
	return list == end;
}
