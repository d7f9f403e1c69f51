/*-------------------------------------------------------------------------
 *
 * bpt_view.h
 *	  Reading leaves that may be being written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_VIEW_H
#define BPT_VIEW_H

#include "core/bptree/bpt_node.h"

/*
 * A leaf's header, read once and checked so that no offset made of it leaves
 * the node.  "torn" is set when anything impossible was met: either the leaf
 * was being written, and its version will not validate, or it is corrupt.
 */
typedef struct BptView
{
	const BptLeaf *leaf;
	const uint64_t *heads;
	const uint8_t *tails;		/* FIXED */
	const uint16_t *offs;		/* SLOTTED, OPAQUE */
	uint32_t	size;
	uint32_t	body;
	uint32_t	count;			/* slots */
	uint32_t	entries;		/* FIXED only: those that differ */
	uint32_t	cap;
	uint32_t	prefix_len;
	uint32_t	suffix_len;
	uint32_t	tail_len;		/* FIXED: suffix_len - 8, or 0 */
	uint32_t	heap;
	BptFormat	format;
	uint32_t	alphabet;		/* BptAlphabet, or impossible */
	bool		open;			/* the prefix says nothing of keys (BPT_OPEN) */
	bool		contended;		/* there are more entries in the annex */
	bool		torn;
	EunoLock   *lock;			/* of a shared leaf; NULL: a private copy */
	uint64_t	version;		/* what it is seen at */
} BptView;

/* A record, or a FIXED slot, taken apart.  Pointers are into the node. */
typedef struct BptSlot
{
	uint32_t	len;			/* suffix (OPAQUE: key) */
	uint32_t	tail_len;
	uint32_t	payload_len;
	uint32_t	list_len;
	uint32_t	ntids;			/* with the first one */
	uint32_t	size;			/* of the record, 0: FIXED */
	const uint8_t *tail;
	const uint8_t *payload;
	const uint8_t *list;
} BptSlot;

/* bpt_view.c */
extern bool euno_bpt_view(const BptLeaf *leaf, BptView *view);
extern void euno_bpt_record(const uint8_t *record, BptFormat format,
							BptSlot *slot);
extern bool euno_bpt_slot(BptView *view, uint32_t i, BptSlot *slot);
extern EunoTid euno_bpt_first_tid(BptView *view, uint32_t i);
extern EunoTid euno_bpt_suffix_tid(BptView *view, uint64_t head,
								   const uint8_t *tail, uint32_t len);
extern uint32_t euno_bpt_tids(BptView *view, uint32_t i, const BptSlot *slot,
							  EunoTid *tids);
extern uint32_t euno_bpt_slot_tids(BptView *view, uint32_t i, EunoTid *tids);
extern uint32_t euno_bpt_key(BptView *view, uint32_t i, const BptSlot *slot,
							 uint8_t *to);
extern uint32_t euno_bpt_key_bytes(BptView *view, uint32_t i, uint8_t *to);

/* bpt_alphabet.c */
extern uint32_t euno_bpt_guess_text(uint32_t alphabet, uint64_t h,
									uint64_t low, uint64_t high,
									uint32_t slots);

/*
 * Reads a leaf's header.  False (and torn) if its fields do not go together;
 * the view is that of an empty leaf then.
 */
static inline bool
bpt_view(const BptLeaf *leaf, BptView *view)
{
	uint32_t	end;
	uint8_t		format;

	view->leaf = leaf;
	view->lock = NULL;
	view->version = 0;
	view->size = 1U << (euno_load8(&leaf->size_log2) & 15);
	view->body = euno_load16(&leaf->body);
	view->count = euno_load16(&leaf->count);
	view->cap = euno_load16(&leaf->cap);
	view->prefix_len = euno_load16(&leaf->prefix_len);
	view->suffix_len = euno_load16(&leaf->suffix_len);
	view->heap = view->size;
	view->entries = 0;
	format = euno_load8(&leaf->format);

	/* An unknown bit stays set: the result is no BptFormat, which verify reports */
	view->format = (BptFormat) (format & ~(BPT_OPEN | BPT_CONTENDED | BPT_ALPHABET));
	view->alphabet = (format & BPT_ALPHABET) >> BPT_ALPHABET_SHIFT;
	view->open = (format & BPT_OPEN) != 0;
	view->contended = (format & BPT_CONTENDED) != 0;
	view->heads = (const uint64_t *) ((const uint8_t *) leaf + view->body);
	view->tails = (const uint8_t *) (view->heads + view->cap);
	view->offs = (const uint16_t *) view->tails;
	view->tail_len = 0;
	end = view->body + 8 * view->cap + BPT_SLACK;
	if (view->format == BPT_FIXED)
	{
		if (view->suffix_len > 8)
			view->tail_len = view->suffix_len - 8;
		end += view->tail_len * view->cap;
		view->entries = euno_load16(&leaf->entries);
	}
	else
	{
		view->heap = euno_load16(&leaf->heap);
		end += 2 * view->cap;
	}
	view->torn = end > view->size || view->count > view->cap ||
		view->entries > view->count ||
		view->heap > view->size || view->heap < end - BPT_SLACK ||
		view->prefix_len > BPT_MAX_COMPOSITE ||
		BPT_LEAF_HEADER + view->prefix_len > view->body;
	if (view->torn)
		view->count = view->cap = view->entries = 0;
	return !view->torn;
}

/*
 * The slot where h would be if heads of such an alphabet were spread evenly
 * between low and high, which is above low and which h is not outside of.
 */
static inline uint32_t
bpt_guess(uint32_t alphabet, uint64_t h, uint64_t low, uint64_t high,
		  uint32_t slots)
{
	double		part;
	double		all;
	uint32_t	at;

	if (alphabet != BPT_BINARY)
		return euno_bpt_guess_text(alphabet, h, low, high, slots);
	part = (double) (int64_t) ((h - low) >> 1);
	all = (double) (int64_t) ((high - low) >> 1 | 1);
	at = (uint32_t) (int32_t) (part / all * (int32_t) slots);
	return at < slots ? at : slots - 1;
}

/* A number in a record. */
static inline uint32_t
bpt_load_u16(const uint8_t *p)
{
	return (uint32_t) euno_load8(p) | (uint32_t) euno_load8(p + 1) << 8;
}

/* FIXED: do slot i - 1 and slot i hold one entry?  i is at least 1. */
static inline bool
bpt_same_entry(const BptView *view, uint32_t i)
{
	const uint8_t *tail = view->tails + (size_t) i * view->tail_len;
	const uint8_t *other = tail - view->tail_len;
	uint32_t	n = view->tail_len;

	if (euno_load64(&view->heads[i - 1]) != euno_load64(&view->heads[i]))
		return false;
	/* Those of one key differ in their ends. */
	if (n > 8 && euno_load_be(tail + n - 8, 8) != euno_load_be(other + n - 8, 8))
		return false;
	for (; n > 8; n -= 8, tail += 8, other += 8)
	{
		if (euno_load_be(tail, 8) != euno_load_be(other, 8))
			return false;
	}
	return euno_load_be(tail, n) == euno_load_be(other, n);
}

/* The next slot after i that holds another entry, or count. */
static inline uint32_t
bpt_next_slot(const BptView *view, uint32_t i)
{
	i++;
	if (view->format == BPT_FIXED && view->entries < view->count)
	{
		while (i < view->count && bpt_same_entry(view, i))
			i++;
	}
	return i;
}

/* A hash of a key's bytes; its high bits are the best. */
static inline uint64_t
bpt_opaque_hash(const uint8_t *key, uint32_t len)
{
	uint64_t	hash = len;
	uint64_t	word;

	for (; len >= 8; len -= 8, key += 8)
	{
		memcpy(&word, key, 8);
		hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		hash ^= hash >> 32;
	}
	word = 0;
	if (len > 0)
		memcpy(&word, key, len);
	return (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

/*
 * OPAQUE: the head of a slot whose first TID this is.  The 16 bits that a TID
 * does not need are a hash of the key's bytes.
 */
static inline uint64_t
bpt_opaque_head(EunoTid tid, const uint8_t *key, uint32_t len)
{
	return (bpt_opaque_hash(key, len) & ~EUNO_TID_MAX) | tid;
}

/*
 * May a comparator see what was copied out of the leaf?  Sets torn if not:
 * what was read is not from the view's version.
 */
static inline bool
bpt_comparable(BptView *view)
{
	if (view->lock != NULL && !euno_lock_validate(view->lock, view->version))
		view->torn = true;
	return !view->torn;
}

/*
 * Takes a record apart, of which 8 bytes can be read.  Nothing is checked:
 * what is pointed to may be outside of it.
 */
static inline void
bpt_take_apart(const uint8_t *record, BptFormat format, BptSlot *slot)
{
	const uint8_t *p = record;
	uint32_t	head = bpt_load_u16(p);

	p += 2;
	slot->len = head & BPT_REC_LEN;
	slot->tail_len = slot->len;
	if (format != BPT_OPAQUE)
		slot->tail_len = slot->len > 8 ? slot->len - 8 : 0;
	slot->payload_len = 0;
	slot->list_len = 0;
	slot->ntids = 1;
	if (head & BPT_REC_PAYLOAD)
	{
		slot->payload_len = bpt_load_u16(p);
		p += 2;
	}
	if (head & BPT_REC_LIST)
	{
		slot->ntids += euno_load8(p);
		slot->list_len = bpt_load_u16(p + 1);
		p += 3;
	}
	slot->tail = p;
	slot->payload = slot->tail + slot->tail_len;
	slot->list = slot->payload + slot->payload_len;
	slot->size = (uint32_t) (slot->list + slot->list_len - record);
}

#endif							/* BPT_VIEW_H */
