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

static uint8_t *
step_put(uint8_t *to, EunoTid previous, EunoTid tid)
{
	uint64_t	blocks = (tid >> 16) - (previous >> 16);
	uint64_t	offset = tid & 0xFFFF;

	if (blocks == 0)
		offset -= previous & 0xFFFF;
	to = number_put(to, blocks);
	return number_put(to, offset);
}

/* NULL when the list ends before the step does. */
static inline const uint8_t *
step_get(const uint8_t *from, const uint8_t *end, EunoTid previous,
		 EunoTid *tid)
{
	uint64_t	blocks;
	uint64_t	offset;

	/* Most are two bytes. */
	if (end - from >= 2 && ((from[0] | from[1]) & 0x80) == 0)
	{
		blocks = *from++;
		offset = *from++;
	}
	else if ((from = number_get(from, end, &blocks)) == NULL ||
			 (from = number_get(from, end, &offset)) == NULL)
		return NULL;
	if (blocks == 0)
		offset += previous & 0xFFFF;
	blocks += previous >> 16;
	*tid = (blocks << 16 | (offset & 0xFFFF)) & EUNO_TID_MAX;
	return from;
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
		p = step_put(p, tids[i - 1], tids[i]);
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
		if ((list = step_get(list, end, tids[i - 1], &tids[i])) == NULL)
			return false;
	}
	return list == end;
}

/*
 * Where in a list of n TIDs, with the first one, which is below "bound", is
 * the first that is not below it?  Returns its number, or n; *at is where its
 * step begins, *before the TID left of it, *there itself.  The list is private
 * memory.  0 if it is not a list of that many.
 */
uint32_t
euno_bpt_list_find(const uint8_t *list, uint32_t len, EunoTid first,
				   uint32_t n, EunoTid bound, uint32_t *at, EunoTid *before,
				   EunoTid *there)
{
	const uint8_t *p = list;
	uint32_t	i;

	*before = first;
	for (i = 1; i < n; i++)
	{
		const uint8_t *next = step_get(p, list + len, *before, there);

		if (next == NULL)
			return 0;
		if (*there >= bound)
			break;
		*before = *there;
		p = next;
	}
	*at = (uint32_t) (p - list);
	return i;
}

/*
 * Inserts a TID into a list where euno_bpt_list_find says: what is before and
 * behind its neighbors' steps stays as it is.  Returns the bytes of the new
 * list, at "to"; 0 if it is not a list.
 */
uint32_t
euno_bpt_list_insert(const uint8_t *list, uint32_t len, uint32_t at,
					 EunoTid before, EunoTid tid, uint8_t *to)
{
	const uint8_t *rest = list + at;
	const uint8_t *end = list + len;
	uint8_t    *p = to;
	EunoTid		next;

	if (at > len)
		return 0;
	memcpy(p, list, at);
	p = step_put(p + at, before, tid);
	if (rest < end)
	{
		if ((rest = step_get(rest, end, before, &next)) == NULL || next <= tid)
			return 0;
		p = step_put(p, tid, next);
		memcpy(p, rest, (size_t) (end - rest));
		p += end - rest;
	}
	return (uint32_t) (p - to);
}

/*
 * Takes the TID with number "sub", below that of all TIDs, out of a list, in
 * place: the step to the one behind it is made anew, the others stay.  Returns
 * the first TID of what is left.  The list is private memory, and is one.
 */
EunoTid
euno_bpt_list_remove(uint8_t *list, uint32_t *len, EunoTid first, uint32_t sub)
{
	const uint8_t *end = list + *len;
	const uint8_t *rest = list;
	uint8_t    *to = list;
	EunoTid		before = first;
	EunoTid		gone = first;
	EunoTid		next = first;

	for (uint32_t i = 0; i < sub && rest != NULL; i++)
	{
		to = list + (rest - list);
		before = gone;
		rest = step_get(rest, end, before, &gone);
	}
	if (rest != NULL && rest < end)
		rest = step_get(rest, end, gone, &next);
	else if (rest == end)
	{
		*len = (uint32_t) (to - list);
		return first;
	}
	if (rest == NULL)
		return first;			/* no list */
	if (sub > 0)
		to = step_put(to, before, next);
	memmove(to, rest, (size_t) (end - rest));
	*len = (uint32_t) (to - list) + (uint32_t) (end - rest);
	return sub > 0 ? first : next;
}
