/*-------------------------------------------------------------------------
 *
 * bpt_key.c
 *	  What is searched for, and comparing it with fences.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/*
 * The key that a position stands for, which must stay valid as long as the
 * key.
 */
void
euno_bpt_key_position(EunoTree *tree, const EunoPosition *pos, BptKey *key)
{
	key->pos = pos;
	if (bpt_is_opaque(tree))
		key->len = 0;
	else
		bpt_key_set(key, euno_position_bytes(pos, key->bytes));
}

/*
 * The key of a leaf's low fence, which must not be minus infinity.  The leaf
 * must have been linked in this epoch; its fence never changes.  "pos" and
 * "buf" (BPT_MAX_COMPOSITE, 8-byte aligned) must live as long as the key.
 */
void
euno_bpt_key_fence(EunoTree *tree, const BptLeaf *leaf, EunoPosition *pos,
				   uint8_t *buf, BptKey *key)
{
	uint32_t	len = euno_load32(&leaf->low_len);

	if (len > BPT_MAX_COMPOSITE)
		len = BPT_MAX_COMPOSITE;
	euno_copy_out(buf, bpt_low(leaf), len);
	memset(pos, 0, sizeof(*pos));
	pos->key = buf;
	pos->keylen = len;
	if (bpt_is_opaque(tree))
		pos->tid = euno_load64(&leaf->low_tid);
	else
	{
		pos->side = -1;
		memcpy(key->bytes, buf, len);
		bpt_key_set(key, len);
	}
	key->pos = pos;
}

/* Are these bytes the key? */
bool
euno_bpt_is_key(const uint8_t *bytes, uint32_t len, const EunoPosition *pos)
{
	if (len != pos->keylen)
		return false;
	for (uint32_t at = 0; at < len; at += 64)
	{
		uint8_t		chunk[64];
		uint32_t	n = len - at < 64 ? len - at : 64;

		euno_copy_out(chunk, bytes + at, n);
		if (memcmp(chunk, pos->key + at, n) != 0)
			return false;
	}
	return true;
}

/* Has a position the bytes of the leaf's low fence? (Minus infinity has none.) */
bool
euno_bpt_is_fence(const BptLeaf *leaf, const EunoPosition *pos)
{
	return pos->bound == NULL &&
		euno_bpt_is_key(bpt_low(leaf), euno_load32(&leaf->low_len), pos);
}

/*
 * The position of a leaf's low fence, which must not be minus infinity.  The
 * leaf must have been linked in this epoch.
 */
void
euno_bpt_fence_position(EunoTree *tree, const BptLeaf *leaf,
						EunoPositionBuffer *to)
{
	uint8_t		buf[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	BptKey		key;

	euno_bpt_key_fence(tree, leaf, &to->pos, buf, &key);
	if (to->pos.keylen > EUNO_MAX_ENTRY)
	{
		/*
		 * Only a fence that reaches into the TID of a key of the greatest
		 * length: as a key and a TID it is exact.
		 */
		to->pos.tid = euno_load_be(buf + EUNO_MAX_ENTRY,
								   to->pos.keylen - EUNO_MAX_ENTRY) <<
			(8 * (BPT_MAX_COMPOSITE - to->pos.keylen));
		to->pos.keylen = EUNO_MAX_ENTRY;
		to->pos.side = 0;
	}
	memcpy(to->data, buf, to->pos.keylen);
	to->pos.key = to->data;
}

/*
 * BYTES: the sign of (key from offset "from") - (bytes), both followed by
 * zeros.  "bytes" may be in a node that is being written; len has been
 * clamped by the caller.
 */
int
euno_bpt_compare_rest(const BptKey *key, uint32_t from, const uint8_t *bytes,
					  uint32_t len)
{
	uint32_t	at = from;

	for (; len >= 8; len -= 8, at += 8, bytes += 8)
	{
		uint64_t	mine = bpt_key_word(key, at);
		uint64_t	its = euno_load_be(bytes, 8);

		if (mine != its)
			return mine < its ? -1 : 1;
	}
	if (len > 0)
	{
		uint8_t		chunk[8] = {0};
		uint64_t	mine = bpt_key_word(key, at) >> (64 - 8 * len);
		uint64_t	its;

		euno_copy_out(chunk, bytes, len);
		its = euno_get_word(chunk) >> (64 - 8 * len);
		if (mine != its)
			return mine < its ? -1 : 1;
		at += len;
	}
	for (; at < key->len; at++)
	{
		if (key->bytes[at] != 0)
			return 1;
	}
	return 0;
}

/* bpt_compare_prefix for prefixes of any length. */
int
euno_bpt_compare_prefix(const BptKey *key, const BptLeaf *leaf,
						uint32_t prefix_len)
{
	uint64_t	low = euno_load64(&leaf->low_word);
	uint64_t	mine = bpt_key_word(key, 0);

	if (mine != low)
		return mine < low ? -1 : 1;
	for (uint32_t at = 8; at < prefix_len; at += 8)
	{
		uint32_t	n = prefix_len - at < 8 ? prefix_len - at : 8;

		low = euno_load_be(&bpt_low(leaf)[at], n);
		mine = bpt_key_word(key, at) >> (64 - 8 * n);
		if (mine != low)
			return mine < low ? -1 : 1;
	}
	return 0;
}

/*
 * COMPARE: the sign of (key) - (entry with these key bytes and TID).  The
 * bytes are private memory of any alignment.
 */
int
euno_bpt_compare_opaque(EunoContext *cx, const BptKey *key,
						const uint8_t *bytes, uint32_t len, EunoTid tid)
{
	const EunoPosition *pos = key->pos;
	uint8_t		aligned[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	int			c;

	if (len > BPT_MAX_COMPOSITE)
		len = BPT_MAX_COMPOSITE;
	if (((uintptr_t) bytes & 7) != 0)
	{
		memcpy(aligned, bytes, len);
		bytes = aligned;
	}
	c = cx->compare(cx->compare_arg, pos, bytes, len);
	if (c != 0)
		return c < 0 ? -1 : 1;
	if (pos->side != 0)
		return pos->side;
	return pos->tid < tid ? -1 : pos->tid > tid;
}

/*
 * The sign of (key) - (low fence of the leaf).  The leaf must have been
 * linked in this epoch.
 */
int
euno_bpt_compare_fence(EunoContext *cx, EunoTree *tree, const BptKey *key,
					   const BptLeaf *leaf)
{
	uint32_t	len = euno_load32(&leaf->low_len);

	if (euno_load8(&leaf->has_low) == 0)
		return 1;
	if (len > BPT_MAX_COMPOSITE)
		len = BPT_MAX_COMPOSITE;
	if (bpt_is_opaque(tree))
	{
		uint8_t		fence[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));

		euno_copy_out(fence, bpt_low(leaf), len);
		return euno_bpt_compare_opaque(cx, key, fence, len,
									   euno_load64(&leaf->low_tid));
	}
	return euno_bpt_compare_rest(key, 0, bpt_low(leaf), len);
}
