/*-------------------------------------------------------------------------
 *
 * art_key.c
 *	  Composites and bounds as byte strings.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/* The bytes are there: sets the length, and the zeros that loads may meet. */
void
euno_art_key_set(ArtKey *key, uint32_t len)
{
	key->len = len;
	memset(key->bytes + len, 0, 32);
}

/* The composite of an entry, which is not longer than EUNO_MAX_ENTRY. */
void
euno_art_key_entry(const EunoEntry *entry, ArtKey *key)
{
	if (entry->keylen > 0)
		memcpy(key->bytes, entry->key, entry->keylen);
	art_store_tid(key->bytes + entry->keylen, entry->tid);
	euno_art_key_set(key, entry->keylen + EUNO_TID_BYTES);
}

/*
 * A position as a bound: what is at its right is greater or equal, what is at
 * its left is less.  Zeros at the end are left away.
 *
 * A position longer than any entry can be is cut: keys are prefix-free, so
 * what follows EUNO_MAX_ENTRY bytes decides nothing.
 */
void
euno_art_key_position(const EunoPosition *pos, ArtKey *key)
{
	uint32_t	len = pos->keylen;

	if (len > EUNO_MAX_ENTRY)
		len = EUNO_MAX_ENTRY;
	if (len > 0)
		memcpy(key->bytes, pos->key, len);
	if (pos->side > 0)
	{
		memset(key->bytes + len, 0xFF, 8);	/* above every TID */
		len += 8;
	}
	else if (pos->side == 0)
	{
		art_store_tid(key->bytes + len, pos->tid);
		len += EUNO_TID_BYTES;
	}
	while (len > 0 && key->bytes[len - 1] == 0)
		len--;
	euno_art_key_set(key, len);
}

/* The reverse: a position with bytes of its own.  At most a composite. */
void
euno_art_position_key(const ArtKey *key, EunoPositionBuffer *pos)
{
	uint32_t	len = key->len;

	memset(&pos->pos, 0, sizeof(pos->pos));
	pos->pos.side = -1;
	if (len > EUNO_MAX_ENTRY)
	{
		/* reaches into the TID of a key of the greatest length */
		len = EUNO_MAX_ENTRY;
		pos->pos.side = 0;
		pos->pos.tid = art_load_tid(key->bytes + EUNO_MAX_ENTRY);
	}
	memcpy(pos->data, key->bytes, len);
	pos->pos.key = pos->data;
	pos->pos.keylen = len;
}

/*
 * Makes of the first len bytes the least bound above all that starts with
 * them.  False if there is none.
 */
bool
euno_art_key_after(ArtKey *key, uint32_t len)
{
	while (len > 0 && key->bytes[len - 1] == 0xFF)
		len--;
	if (len == 0)
		return false;
	key->bytes[len - 1]++;
	euno_art_key_set(key, len);
	return true;
}

/*
 * The sign of (key from byte "from") - (bytes).  "bytes" may be in a node that
 * is being written; len has been clamped by the caller.
 */
int
euno_art_key_compare_bytes(const ArtKey *key, uint32_t from,
						   const uint8_t *bytes, uint32_t len)
{
	uint32_t	at = from;

	while (len > 0)
	{
		uint8_t		chunk[64];
		uint32_t	n = len < sizeof(chunk) ? len : sizeof(chunk);
		uint32_t	have = at >= key->len ? 0 : key->len - at;

		euno_copy_out(chunk, bytes, n);
		if (have >= n)
		{
			int			c = memcmp(key->bytes + at, chunk, n);

			if (c != 0)
				return c < 0 ? -1 : 1;
		}
		else
		{
			int			c = have > 0 ? memcmp(key->bytes + at, chunk, have) : 0;

			if (c != 0)
				return c < 0 ? -1 : 1;
			for (uint32_t i = have; i < n; i++)
			{
				if (chunk[i] != 0)
					return -1;
			}
		}
		at += n;
		bytes += n;
		len -= n;
	}
	for (; at < key->len; at++)
	{
		if (key->bytes[at] != 0)
			return 1;
	}
	return 0;
}

/* The sign of a - b, both followed by zeros. */
int
euno_art_key_compare(const ArtKey *a, const ArtKey *b)
{
	uint32_t	n = a->len < b->len ? a->len : b->len;
	int			c = n > 0 ? memcmp(a->bytes, b->bytes, n) : 0;

	if (c != 0)
		return c < 0 ? -1 : 1;
	for (uint32_t i = n; i < a->len; i++)
	{
		if (a->bytes[i] != 0)
			return 1;
	}
	for (uint32_t i = n; i < b->len; i++)
	{
		if (b->bytes[i] != 0)
			return -1;
	}
	return 0;
}
