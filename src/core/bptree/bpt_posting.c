/*-------------------------------------------------------------------------
 *
 * bpt_posting.c
 *	  Posting lists: the further TIDs of one key.
 *
 * Each is a step: the distance from the TID before it, in one to seven bytes,
 * low ones first.  The lowest three bits of the first byte say how many follow
 * it, so where the next step begins does not depend on the rest.
 *
 * For distances, a TID is packed: the lowest bits of its offset, above them
 * the block, and above that the offset's other bits, which are 0 but in tables
 * of very many rows a page.  Distances are modulo 2^48.  Where a TID is taken
 * out, two of them become their sum, which never takes more bytes than both: a
 * removal never needs room.
 *
 * Behind a list that is read there are BPT_SLACK bytes more, which mean
 * nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* Bits of the offset that are below the block. */
#define LOW_BITS	9
#define LOW_MASK	((UINT64_C(1) << LOW_BITS) - 1)

/* The lowest bits of a step: how many bytes follow the first. */
#define SIZE_BITS	3
#define SIZE_MASK	((UINT64_C(1) << SIZE_BITS) - 1)

static inline uint64_t
pack(EunoTid tid)
{
	return (tid & 0xFFFF & ~LOW_MASK) << 32 | tid >> 16 << LOW_BITS |
		(tid & LOW_MASK);
}

static inline EunoTid
unpack(uint64_t packed)
{
	return (packed >> 32 & 0xFFFF & ~LOW_MASK) |
		(packed << (16 - LOW_BITS) & (uint64_t) UINT32_MAX << 16) |
		(packed & LOW_MASK);
}

static inline uint64_t
distance(EunoTid previous, EunoTid tid)
{
	return (pack(tid) - pack(previous)) & EUNO_TID_MAX;
}

/* Bytes that "tid" takes after "previous", which is smaller. */
uint32_t
euno_bpt_list_step(EunoTid previous, EunoTid tid)
{
	uint64_t	rest = distance(previous, tid) >> (8 - SIZE_BITS);
	uint32_t	size = 1;

	for (; rest > 0; rest >>= 8)
		size++;
	return size;
}

static uint8_t *
step_put(uint8_t *to, EunoTid previous, EunoTid tid)
{
	uint32_t	size = euno_bpt_list_step(previous, tid);
	uint64_t	step = distance(previous, tid) << SIZE_BITS | (size - 1);

	for (; size > 0; size--, step >>= 8)
		*to++ = (uint8_t) step;
	return to;
}

/* A step: the TID that it leads to, and what follows it, NULL if it is none. */
typedef struct Step
{
	const uint8_t *next;
	uint64_t	packed;
} Step;

static inline Step
step_get(const uint8_t *from, const uint8_t *end, uint64_t previous)
{
	uint64_t	word = __builtin_bswap64(euno_get_word(from));	/* low ones first */

	/* Bits of the word that are not the step's. */
	uint32_t	above = (uint32_t) (~word & SIZE_MASK) * 8;

	from += 1 + (word & SIZE_MASK);
	return (Step) {from <= end ? from : NULL,
		previous + (word << above >> above >> SIZE_BITS)};
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

/* Decodes a list if all of its steps have one byte, else returns false. */
static bool
decode_short(const uint8_t *list, uint32_t n, uint64_t packed, EunoTid *tids)
{
	uint8_t		seen = 0;

	for (uint32_t i = 1; i < n; i++, list++)
	{
		seen |= *list;
		packed += *list >> SIZE_BITS;
		tids[i] = unpack(packed);
	}
	return (seen & SIZE_MASK) == 0;
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
	Step		step = {list, pack(first)};

	tids[0] = first;
	if (len == n - 1)
		return decode_short(list, n, step.packed, tids);
	for (uint32_t i = 1; i < n; i++)
	{
		step = step_get(step.next, end, step.packed);
		if (step.next == NULL)
			return false;
		tids[i] = unpack(step.packed);
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
	Step		step = {list, pack(first)};
	uint32_t	i;

	*before = first;
	*at = 0;
	for (i = 1; i < n; i++)
	{
		step = step_get(step.next, list + len, step.packed);
		if (step.next == NULL)
			return 0;
		*there = unpack(step.packed);
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
		Step		step = step_get(rest, end, pack(before));

		if (step.next == NULL || unpack(step.packed) <= tid)
			return 0;
		p = step_put(p, tid, unpack(step.packed));
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
	Step		step = {list, pack(first)};

	for (uint32_t i = 0; i < sub; i++)
	{
		to = list + (step.next - list);
		before = unpack(step.packed);
		step = step_get(step.next, end, step.packed);
		if (step.next == NULL)
			return first;		/* no list */
	}
	if (step.next == end)
	{
		*len = (uint32_t) (to - list);
		return first;
	}
	step = step_get(step.next, end, step.packed);
	if (step.next == NULL)
		return first;			/* no list */
	if (sub > 0)
		to = step_put(to, before, unpack(step.packed));
	memmove(to, step.next, (size_t) (end - step.next));
	*len = (uint32_t) (to - list) + (uint32_t) (end - step.next);
	return sub > 0 ? first : unpack(step.packed);
}
