/*-------------------------------------------------------------------------
 *
 * art_key.c
 *	  Composites and bounds as byte strings.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

/*
 * A position as a bound: what is at its right is greater or equal, what is at
 * its left is less.  Zeros at the end are left away.
 */
void
euno_art_key_position(const EunoPosition *pos, ArtKey *key)
{
	uint32_t	len = euno_position_bytes(pos, key->bytes);

	while (len > 0 && key->bytes[len - 1] == 0)
		len--;
	euno_art_key_set(key, len);
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
