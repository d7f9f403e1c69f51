/*-------------------------------------------------------------------------
 *
 * bpt_fixed.c
 *	  FIXED leaves, built from entries of one length that lie side by side.
 *
 * Of what random inserts cost, splits were the larger part: a full leaf was
 * taken apart into items, and each half put together from these.  Entries of one
 * length need neither: they are copied, with their bytes moved where the prefix
 * of a half is longer.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_make.h"

/* Slots for each entry, about, that few entries are spread over. */
#define SPREAD_MOST		4

/* Entries that are looked at, and how far these may be off, in slots. */
#define SAMPLES		16
#define EVEN_OFF	2

/* By how many bytes the prefix of a half may be longer, at most. */
#define HALF_CUT	7

/* Of so many entries by an alphabet one is asked where it is expected. */
#define ASKED	8

/* Of how many parts the smallest are that a place is mixed from. */
#define PARTS		16

/* Eight bytes of a fence from "from" on; beyond its end, zeros. */
uint64_t
euno_bpt_fence_word(const BptFence *fence, uint32_t from)
{
	uint8_t		word[8] = {0};

	if (fence->bytes != NULL && from < fence->len)
		memcpy(word, fence->bytes + from,
			   fence->len - from < 8 ? fence->len - from : 8);
	return euno_get_word(word);
}

/* What fences, format and prefix say of a leaf in the making. */
void
euno_bpt_leaf_head(BptLeaf *leaf, BptFormat format, uint32_t prefix_len,
				   const BptFence *low, const BptFence *high)
{
	leaf->format = (uint8_t) format;
	if (low->bytes != NULL && high->bytes == NULL && format != BPT_OPAQUE)
		leaf->format |= BPT_OPEN;
	leaf->prefix_len = (uint16_t) prefix_len;
	leaf->low_hint = euno_bpt_fence_word(low, prefix_len);
	leaf->high_hint = euno_bpt_fence_word(high, prefix_len);
}

/*
 * The slot, of so many, where a head is expected; it may be beyond the fences.
 */
static inline uint32_t
expected(const BptLeaf *leaf, uint64_t head, uint32_t slots)
{
	if (head <= leaf->low_hint)
		return 0;
	if (head >= leaf->high_hint)
		return slots - 1;
	return bpt_guess((leaf->format & BPT_ALPHABET) >> BPT_ALPHABET_SHIFT, head,
					 leaf->low_hint, leaf->high_hint, slots);
}

/*
 * How far from where their numbers say are n heads expected in so many slots?
 * The mean of some; *most: the most.
 */
static uint32_t
unevenness(const BptLeaf *leaf, const uint64_t *heads, uint32_t n,
		   uint32_t slots, uint32_t *most)
{
	uint32_t	sum = 0;

	*most = 0;
	for (uint32_t k = 0; k < SAMPLES; k++)
	{
		uint32_t	i = (2 * k + 1) * n / (2 * SAMPLES);
		uint32_t	even = i * slots / n;
		uint32_t	at = expected(leaf, heads[i], slots);
		uint32_t	off = at > even ? at - even : even - at;

		sum += off;
		if (off > *most)
			*most = off;
	}
	return sum / SAMPLES;
}

/*
 * The slot, of so many, where entry i of n is expected by an alphabet, if asked
 * in order.  That takes long, so it is what those around it suggest, whose slots
 * are in *before and *after.
 */
static inline uint32_t
expected_about(const BptLeaf *leaf, const uint64_t *heads, uint32_t i,
			   uint32_t n, uint32_t slots, uint32_t *before, uint32_t *after)
{
	uint32_t	k = i % ASKED;

	if (k == 0)
	{
		uint32_t	next = i + ASKED < n ? i + ASKED : n - 1;
		uint32_t	at = expected(leaf, heads[next], slots);

		*before = i == 0 ? expected(leaf, heads[0], slots) : *after;
		*after = at > *before ? at : *before;
	}
	return *before + (*after - *before) * k / ASKED;
}

/*
 * Where n entries go in this many slots: each to the slot where its head would
 * be if heads were spread evenly between the fences, as far as those left of
 * it leave room.  Where there is less than a quarter as much room as entries,
 * the less there is, the nearer to where its number says: else the room would
 * be in few places, far from most insertions.  With "evenly", for heads that
 * are not like that at all, by number.
 */
static void
place_fixed(const BptLeaf *leaf, const uint64_t *heads, uint32_t n,
			uint32_t slots, bool evenly, uint16_t *place)
{
	uint64_t	low = leaf->low_hint;
	uint64_t	high = leaf->high_hint;
	double		scale = (int32_t) slots /
		(double) (int64_t) ((high - low) >> 1 | 1);
	bool		binary = (leaf->format & BPT_ALPHABET) == 0;
	uint32_t	part = evenly ? 0 : 4 * PARTS * (slots - n) / n;
	uint32_t	step = (slots << 16) / n;
	uint32_t	next = 0;
	uint32_t	before = 0;
	uint32_t	after = 0;

	if (part > PARTS)
		part = PARTS;
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	h = heads[i] < low ? 0 :
			(heads[i] < high ? heads[i] : high) - low;
		uint32_t	at = (uint32_t) (int32_t) ((double) (int64_t) (h >> 1) * scale);
		uint32_t	most = slots - (n - i);

		if (!binary)
			at = expected_about(leaf, heads, i, n, slots, &before, &after);
		if (part < PARTS)
			at = (part * at + (PARTS - part) * (i * step >> 16)) / PARTS;
		at = at < next ? next : at > most ? most : at;
		place[i] = (uint16_t) at;
		next = at + 1;
	}
}

/*
 * Puts n entries into so many slots, fewer than 2 n: those with two slots are
 * evenly spread.
 */
static void
lay_out_evenly(uint64_t *to, uint8_t *tails_to, uint32_t slots,
			   const uint64_t *heads, const uint8_t *tails, uint32_t tail,
			   uint32_t n)
{
	uint32_t	runs = slots - n + 1;

	for (uint32_t k = 1, done = 0; k <= runs; k++)
	{
		uint32_t	end = k * n / runs;
		uint32_t	more = end - done;

		memcpy(to, heads + done, more * 8);
		memcpy(tails_to, tails + done * tail, more * tail);
		to += more;
		tails_to += more * tail;
		done = end;
		if (k == runs)
			continue;
		*to++ = heads[end - 1];
		memcpy(tails_to, tails + (end - 1) * tail, tail);
		tails_to += tail;
	}
}

/*
 * Puts n heads to their places, each up to the next one's; place[n] is the
 * end.  Four at once: what is too much is overwritten by the next ones, and
 * the processor need not guess how many each has.
 */
static void
put_heads(uint64_t *to, const uint64_t *heads, const uint16_t *place,
		  uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	k = place[i];

		if (k + 4U <= place[n])
		{
			to[k] = to[k + 1] = to[k + 2] = to[k + 3] = heads[i];
			k += 4;
		}
		for (; k < place[i + 1]; k++)
			to[k] = heads[i];
	}
}

/*
 * The same for tails of so many bytes.  What is too much is overwritten by the
 * next, or is slack.
 */
static void
put_tails(uint8_t *to, const uint8_t *tails, uint32_t tail,
		  const uint16_t *place, uint32_t n)
{
	uint8_t    *p = to;

	for (uint32_t i = 0; i < n && tail > 0; i++, tails += tail)
	{
		const uint8_t *end = to + place[i + 1] * tail;

		for (; p < end; p += tail)
		{
			if (tail <= 8)
				memcpy(p, tails, 8);
			else if (tail <= 16)
				memcpy(p, tails, 16);
			else
				memcpy(p, tails, tail);
		}
	}
}

/*
 * Puts n entries into the arrays of a FIXED leaf's image, whose header has all
 * but count, cap and what depends on them.  The entries must fit.  16 bytes
 * beyond "tails" can be read.
 */
void
euno_bpt_lay_out(BptImage *image, const uint64_t *heads, const uint8_t *tails,
				 uint32_t n)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	tail = leaf->suffix_len > 8 ? leaf->suffix_len - 8U : 0;
	uint32_t	room = (uint32_t) bpt_leaf_size(leaf) - leaf->body - BPT_SLACK;
	uint32_t	cap = n > 0 ? room / (8 + tail) : 0;
	uint32_t	most = SPREAD_MOST * (n + 2);
	uint64_t   *to = (uint64_t *) (image->bytes + leaf->body);
	uint32_t	mean;
	uint32_t	worst;
	uint16_t	place[BPT_LEAF_TIDS];

	if (cap > BPT_LEAF_TIDS - 2)
		cap = BPT_LEAF_TIDS - 2;
	leaf->cap = (uint16_t) cap;
	leaf->count = leaf->entries = leaf->ntids = (uint16_t) n;
	euno_bpt_note_alphabet(leaf, heads, n);
	if (n == 0 || n == cap || leaf->low_hint >= leaf->high_hint)
	{
		memcpy(to, heads, n * 8);
		memcpy(to + cap, tails, n * tail);
		return;
	}
	if (most > cap)
		most = cap;
	leaf->count = (uint16_t) most;
	mean = unevenness(leaf, heads, n, most, &worst);
	if (most < 2 * n && worst <= EVEN_OFF && heads[0] >= leaf->low_hint &&
		heads[n - 1] < leaf->high_hint)
	{
		lay_out_evenly(to, (uint8_t *) (to + cap), most, heads, tails, tail, n);
		return;
	}
	place_fixed(leaf, heads, n, most, mean > most / 8, place);
	place[0] = 0;
	place[n] = (uint16_t) most;
	put_heads(to, heads, place, n);
	put_tails((uint8_t *) (to + cap), tails, tail, place, n);
}

/*
 * Builds a leaf of the entries of another, whose view is of a private copy, in
 * an image whose size_log2 and body are the same: only the high fence is new,
 * which has the prefix, and the room is spread.  FIXED, without room between
 * the entries.  False if that cannot be done.
 */
bool
euno_bpt_spread(const BptView *view, const BptFence *low,
				const BptFence *high, BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;

	if (high->len < view->prefix_len || low->len < view->prefix_len ||
		memcmp(low->bytes, high->bytes, view->prefix_len) != 0 ||
		view->cap > BPT_LEAF_TIDS)
		return false;
	euno_bpt_leaf_head(leaf, BPT_FIXED, view->prefix_len, low, high);
	leaf->suffix_len = (uint16_t) view->suffix_len;
	euno_bpt_lay_out(image, view->heads, view->tails, view->count);
	return true;
}

/* The composite of entry i of a run; 8 bytes of room after it. */
static uint32_t
run_composite(const BptRun *run, uint32_t i, uint8_t *to)
{
	memcpy(to, run->prefix, run->prefix_len);
	euno_put_word(to + run->prefix_len, run->heads[i]);
	memcpy(to + run->prefix_len + 8, run->tails + i * run->tail_len,
		   run->tail_len);
	return run->prefix_len + run->suffix_len;
}

/* Would entries [a, b) of a run be shorter as lists of TIDs? */
static bool
lists_pay(const BptRun *run, uint32_t a, uint32_t b)
{
	uint32_t	len = run->suffix_len - EUNO_TID_BYTES;	/* of the key */
	uint32_t	shift = len < 8 ? 64 - 8 * len : 0;
	uint32_t	tail = len > 8 ? len - 8 : 0;
	uint32_t	same = 0;

	if (run->suffix_len <= EUNO_TID_BYTES)
		return true;
	for (uint32_t i = a + 1; i < b; i++)
	{
		const uint8_t *p = run->tails + i * run->tail_len;

		if ((run->heads[i] ^ run->heads[i - 1]) >> shift == 0 &&
			(tail == 0 || memcmp(p, p - run->tail_len, tail) == 0))
			same++;
	}

	/* A slot and its record take 12 bytes, without tail and list. */
	return same * (12 + run->tail_len) > 4 * (b - a);
}

/* The prefix of a leaf whose last entry is b - 1; see euno_bpt_prefix. */
static uint32_t
half_prefix(const BptRun *run, uint32_t b, const BptFence *low,
			const BptFence *high)
{
	uint8_t		last[BPT_MAX_COMPOSITE + 8];
	const uint8_t *top = high->bytes;
	uint32_t	most = run_composite(run, b - 1, last);

	if (low->bytes == NULL)
		return 0;
	if (top == NULL)
		top = last;
	else if (high->len < most)
		most = high->len;
	return bpt_same_bytes(low->bytes, low->len, top, most);
}

/* Cuts the first "by" bytes, 1 to HALF_CUT, off entries [a, b). */
static void
half_cut(BptRun *run, uint32_t a, uint32_t b, uint32_t by, uint32_t tail)
{
	uint64_t	mask = run->tail_len >= 8 ? UINT64_MAX :
		~(UINT64_MAX >> (8 * run->tail_len));
	const uint8_t *from = run->tails + a * run->tail_len;
	uint8_t    *to = run->cut;

	for (uint32_t i = a; i < b; i++)
	{
		run->heads[i] = run->heads[i] << (8 * by) |
			(euno_get_word(from) & mask) >> (64 - 8 * by);
		if (tail <= 8)
			memcpy(to, from + by, 8);
		else
			memcpy(to, from + by, tail);
		from += run->tail_len;
		to += tail;
	}
}

/*
 * Builds the leaf of entries [a, b) of the split's run in an image whose
 * size_log2 and body are set; each entry once.  False if they do not fit, or
 * it has to be done in the general way.
 */
static bool
half_encode(BptRun *run, uint32_t a, uint32_t b, const BptFence *low,
			const BptFence *high, BptImage *image)
{
	BptLeaf    *leaf = &image->leaf;
	uint32_t	prefix = half_prefix(run, b, low, high);
	uint32_t	by = prefix - run->prefix_len;
	uint32_t	len = run->suffix_len - by;
	uint32_t	tail = len > 8 ? len - 8 : 0;
	const uint8_t *tails = run->tails + a * run->tail_len;

	if (by > HALF_CUT || by > run->suffix_len ||
		(b - a) * (8 + tail) + BPT_SLACK > bpt_leaf_size(leaf) - leaf->body)
		return false;
	euno_bpt_leaf_head(leaf, BPT_FIXED, prefix, low, high);
	leaf->suffix_len = (uint16_t) len;
	if (by > 0)
	{
		half_cut(run, a, b, by, tail);
		tails = run->cut;
	}
	euno_bpt_lay_out(image, run->heads + a, tails, b - a);
	return true;
}

/*
 * Splits a full FIXED leaf, whose view is of a private copy, with an entry at
 * a gap: chooses the place, and builds the left leaf.  Returns the number of
 * entries in it; 0: to be done in the general way.
 */
uint32_t
euno_bpt_halve(EunoTree *tree, BptSplit *s, BptView *view,
			   const BptInsertion *ins)
{
	BptRun	   *run = &s->run;
	const BptKey *key = ins->key;
	uint32_t	at = ins->gap->slot;
	uint32_t	n = view->count;
	uint32_t	plen = view->prefix_len;
	uint32_t	tail = view->tail_len;
	uint8_t		before[BPT_MAX_COMPOSITE + 8];
	uint32_t	len = plen + view->suffix_len;
	uint32_t	m;

	if (view->format != BPT_FIXED || n < view->cap || view->entries < n ||
		n < 2 || ins->entry->payloadlen > 0 || key->len != len ||
		(view->open && bpt_compare_prefix(key, view->leaf, plen) != 0))
		return 0;
	run->prefix = bpt_low(view->leaf);
	run->prefix_len = plen;
	run->suffix_len = view->suffix_len;
	run->tail_len = tail;
	memcpy(run->heads, view->heads, at * 8);
	run->heads[at] = bpt_key_word(key, plen);
	memcpy(run->heads + at + 1, view->heads + at, (n - at) * 8);
	memcpy(run->tails, view->tails, at * tail);
	memcpy(run->tails + at * tail, key->bytes + plen + 8, tail);
	memcpy(run->tails + (at + 1) * tail, view->tails + at * tail,
		   (n - at) * tail);
	run->n = ++n;
	m = euno_bpt_split_edge(tree, n, at, view->leaf, false);
	if (m == 0)
		m = euno_bpt_ascends(view, at) ? at + 1 : n - n / 2;
	if (tree->config.posting &&
		(lists_pay(run, 0, m) || lists_pay(run, m, n)))
		return 0;

	(void) run_composite(run, m - 1, before);
	(void) run_composite(run, m, s->middle_buf);
	s->middle.bytes = s->middle_buf;
	s->middle.len = euno_bpt_separate(before, len, s->middle_buf, len,
									  m == n - 1 && s->high.bytes != NULL);
	s->middle.tid = 0;
	s->at = at;
	if (half_prefix(run, n, &s->middle, &s->high) - plen > HALF_CUT)
		return 0;
	return half_encode(run, 0, m, &s->low, &s->middle, &s->left) ? m : 0;
}

/* The bytes that the right half, from entry m on, will take in its leaf. */
uint32_t
euno_bpt_half_size(const BptSplit *s, uint32_t m)
{
	const BptRun *run = &s->run;
	uint32_t	len = run->prefix_len + run->suffix_len -
		half_prefix(run, run->n, &s->middle, &s->high);

	return BPT_SLACK + (run->n - m) * (len > 8 ? len : 8);
}

/* Builds the right half; see half_encode. */
bool
euno_bpt_half_right(BptSplit *s, uint32_t m)
{
	return half_encode(&s->run, m, s->run.n, &s->middle, &s->high, &s->right);
}
