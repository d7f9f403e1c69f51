/*-------------------------------------------------------------------------
 *
 * bpt_view.c
 *	  Reading what is in a slot of a leaf.
 *
 * The leaf may be being written: everything read is clamped before use,
 * impossible values set view->torn, and no result means anything before the
 * leaf's version has been validated.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/* See bpt_view. */
bool
euno_bpt_view(const BptLeaf *leaf, BptView *view)
{
	return bpt_view(leaf, view);
}

/* Takes a record that is known to be whole apart. */
void
euno_bpt_record(const uint8_t *record, BptFormat format, BptSlot *slot)
{
	bpt_take_apart(record, format, slot);
}

/* The same for slot i of a leaf of any format.  False if torn. */
bool
euno_bpt_slot(BptView *view, uint32_t i, BptSlot *slot)
{
	uint32_t	off;

	if (view->format == BPT_FIXED)
	{
		*slot = (BptSlot)
		{
			.len = view->suffix_len,.tail_len = view->tail_len,.ntids = 1,
			.tail = view->tails + (size_t) i * view->tail_len
		};
		return true;
	}
	off = euno_load16(&view->offs[i]);
	if (off < view->body || off + 8 > view->size)
		goto torn;
	bpt_take_apart((const uint8_t *) view->leaf + off, view->format, slot);
	if (off + slot->size + BPT_SLACK > view->size ||
		slot->ntids > BPT_LIST_MAX || slot->list_len > BPT_LIST_BYTES ||
		slot->len > BPT_MAX_COMPOSITE)
		goto torn;
	return true;

torn:
	view->torn = true;
	return false;
}

/* BYTES: the TID in the last six bytes of prefix || head || tail. */
EunoTid
euno_bpt_suffix_tid(BptView *view, uint64_t head, const uint8_t *tail,
					uint32_t len)
{
	uint64_t	tid;

	if (len >= 8 + EUNO_TID_BYTES)
		return euno_load_be(tail + (len - 8 - EUNO_TID_BYTES),
							EUNO_TID_BYTES);
	if (len > 8)
		return (head << (8 * (len - 8)) | euno_load_be(tail, len - 8)) &
			EUNO_TID_MAX;
	tid = len == 0 ? 0 : head >> (8 * (8 - len));
	if (len < EUNO_TID_BYTES)
	{
		uint32_t	n = EUNO_TID_BYTES - len;

		if (view->prefix_len < n)
		{
			view->torn = true;
			return 0;
		}
		for (uint32_t i = 0; i < n; i++)
			tid |= (uint64_t) euno_load8(bpt_low(view->leaf) + view->prefix_len -
										 n + i)
				<< (8 * (EUNO_TID_BYTES - 1 - i));
	}
	return tid & EUNO_TID_MAX;
}

/* The (first) TID of slot i, taken apart; 0 if torn. */
static inline EunoTid
first_tid(BptView *view, uint32_t i, const BptSlot *slot)
{
	uint64_t	head = euno_load64(&view->heads[i]);

	return view->format == BPT_OPAQUE ? head & EUNO_TID_MAX :
		euno_bpt_suffix_tid(view, head, slot->tail, slot->len);
}

/* The same of a slot that was not taken apart. */
EunoTid
euno_bpt_first_tid(BptView *view, uint32_t i)
{
	BptSlot		slot;

	return euno_bpt_slot(view, i, &slot) ? first_tid(view, i, &slot) : 0;
}

/*
 * All TIDs of slot i, taken apart, at most BPT_LIST_MAX; their number, 0 if
 * torn.
 */
uint32_t
euno_bpt_tids(BptView *view, uint32_t i, const BptSlot *slot, EunoTid *tids)
{
	uint8_t		list[BPT_LIST_BYTES + BPT_SLACK];

	tids[0] = first_tid(view, i, slot);
	if (slot->ntids == 1)
		return 1;
	euno_copy_out(list, slot->list, slot->list_len);
	if (!euno_bpt_list_decode(list, slot->list_len, tids[0], slot->ntids, tids))
	{
		view->torn = true;
		return 0;
	}
	return slot->ntids;
}

/* The same of a slot that was not taken apart. */
uint32_t
euno_bpt_slot_tids(BptView *view, uint32_t i, EunoTid *tids)
{
	BptSlot		slot;

	return euno_bpt_slot(view, i, &slot) ?
		euno_bpt_tids(view, i, &slot, tids) : 0;
}

/*
 * The whole key of slot i, taken apart, without the TID, into "to"
 * (BPT_MAX_COMPOSITE + 8 bytes).  Returns its length; 0 and torn if that is
 * impossible.
 */
uint32_t
euno_bpt_key(BptView *view, uint32_t i, const BptSlot *slot, uint8_t *to)
{
	uint32_t	len = view->prefix_len + slot->len;
	uint8_t		word[8];

	if (view->format == BPT_OPAQUE)
	{
		euno_copy_out(to, slot->tail, slot->len);
		return slot->len;
	}
	if (len > BPT_MAX_COMPOSITE || len < EUNO_TID_BYTES)
	{
		view->torn = true;
		return 0;
	}
	euno_copy_out(to, bpt_low(view->leaf), view->prefix_len);
	euno_put_word(word, euno_load64(&view->heads[i]));
	memcpy(to + view->prefix_len, word, 8);
	if (slot->len > 8)
		euno_copy_out(to + view->prefix_len + 8, slot->tail, slot->len - 8);
	return len - EUNO_TID_BYTES;
}

/* The same of a slot that was not taken apart. */
uint32_t
euno_bpt_key_bytes(BptView *view, uint32_t i, uint8_t *to)
{
	BptSlot		slot;

	return euno_bpt_slot(view, i, &slot) ? euno_bpt_key(view, i, &slot, to) : 0;
}
