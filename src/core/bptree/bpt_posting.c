/*-------------------------------------------------------------------------
 *
 * bpt_posting.c
 *	  Posting lists: the further TIDs of one key.
 *
 * Each TID is coded by its distance from the one before: the block distance
 * as a variable-length number (7 bits a byte, low bits first), then the
 * offset, as a distance if the block is the same.  Taking one TID out never
 * makes a list longer, so a removal never needs room.  Behind a list that is
 * read there are BPT_SLACK bytes more, which mean nothing.
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

/* Four bytes, the first one lowest. */
static inline uint32_t
first_bytes(const uint8_t *from)
{
	uint32_t	word;

	memcpy(&word, from, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap32(word);
#endif
	return word;
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

/* A step: the TID that it leads to, and what follows it, NULL if it is none. */
typedef struct Step
{
	const uint8_t *next;
	EunoTid		tid;
} Step;

static inline EunoTid
step_from(EunoTid previous, uint64_t blocks, uint64_t offset)
{
	offset += blocks == 0 ? previous & 0xFFFF : 0;
	return ((blocks << 16) + (previous & ~UINT64_C(0xFFFF)) +
			(offset & 0xFFFF)) & EUNO_TID_MAX;
}

static __attribute__((noinline)) Step
long_step_get(const uint8_t *from, const uint8_t *end, EunoTid previous)
{
	uint64_t	blocks;
	uint64_t	offset;

	if ((from = number_get(from, end, &blocks)) == NULL ||
		(from = number_get(from, end, &offset)) == NULL)
		return (Step) {NULL, 0};
	return (Step) {from, step_from(previous, blocks, offset)};
}

/* A number of one byte, or of two: the lowest ones of a word. */
static inline uint32_t
short_number(uint32_t word, uint32_t two)
{
	return (word & 0x7F) | (word >> 1 & 0x3F80 & -two);
}

/*
 * Most distances and offsets have one byte or two, by no rule that the processor
 * could learn: no branch tells these apart.
 */
static inline Step
step_get(const uint8_t *from, const uint8_t *end, EunoTid previous)
{
	uint32_t	word = first_bytes(from);
	uint32_t	two = word >> 7 & 1;	/* bytes has the distance, */
	uint32_t	rest = word >> (8 + 8 * two);
	uint32_t	also = rest >> 7 & 1;	/* and these the offset */

	if (__builtin_expect(((word & two << 15) | (rest & also << 15)) != 0, 0))
		return long_step_get(from, end, previous);
	from += 2 + two + also;
	return (Step) {from <= end ? from : NULL,
		step_from(previous, short_number(word, two),
				  short_number(rest, also))};
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

/* The same of a list all of whose steps have two bytes. */
static bool
decode_short(const uint8_t *list, uint32_t n, EunoTid *tids)
{
	EunoTid		tid = tids[0];
	uint8_t		seen = 0;

	for (uint32_t i = 1; i < n; i++, list += 2)
	{
		tid = tids[i] = step_from(tid, list[0], list[1]);
		seen |= list[0] | list[1];
	}
	return (seen & 0x80) == 0;
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
	Step		step = {list, first};

	tids[0] = first;
	if (len == 2 * (n - 1))
		return decode_short(list, n, tids);
	for (uint32_t i = 1; i < n; i++)
	{
		step = step_get(step.next, end, step.tid);
		if (step.next == NULL)
			return false;
		tids[i] = step.tid;
	}
	return step.next == end;
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
	Step		step = {list, first};
	uint32_t	i;

	*before = first;
	*at = 0;
	for (i = 1; i < n; i++)
	{
		step = step_get(step.next, list + len, *before);
		if (step.next == NULL)
			return 0;
		*there = step.tid;
		if (*there >= bound)
			break;
		*before = *there;
		*at = (uint32_t) (step.next - list);
	}
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

	if (at > len)
		return 0;
	memcpy(p, list, at);
	p = step_put(p + at, before, tid);
	if (rest < end)
	{
		Step		step = step_get(rest, end, before);

		if (step.next == NULL || step.tid <= tid)
			return 0;
		p = step_put(p, tid, step.tid);
		memcpy(p, step.next, (size_t) (end - step.next));
		p += end - step.next;
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
	uint8_t    *to = list;		/* the step to the TID that goes, or the next */
	EunoTid		before = first;
	Step		step = {list, first};

	for (uint32_t i = 0; i < sub; i++)
	{
		to = list + (step.next - list);
		before = step.tid;
		step = step_get(step.next, end, before);
		if (step.next == NULL)
			return first;		/* no list */
	}
	if (step.next == end)
	{
		*len = (uint32_t) (to - list);
		return first;
	}
	step = step_get(step.next, end, step.tid);
	if (step.next == NULL)
		return first;			/* no list */
	if (sub > 0)
		to = step_put(to, before, step.tid);
	memmove(to, step.next, (size_t) (end - step.next));
	*len = (uint32_t) (to - list) + (uint32_t) (end - step.next);
	return sub > 0 ? first : step.tid;
}
