/*-------------------------------------------------------------------------
 *
 * key_inet.c
 *	  An order-preserving byte string for values of types inet and cidr.
 *
 * A value is an address, 4 or 16 bytes, and how many of its bits are the
 * network's.  Two of a family are compared by the bits that both networks
 * have, then by how many they have, then by the rest.  The encoding is:
 *
 *	 a byte, the family;
 *	 the address, all bits cleared that are not the network's;
 *	 a byte, how many are;
 *	 if not all are, the address from the byte that has the first of the others,
 *	 the network's bits cleared.
 *
 * For if the bits that both have are equal, the longer network either has
 * others that are not zero, and is the greater one by the cleared addresses,
 * or it has not, and these are equal.  Then the number decides, and if that is
 * equal, the rests have the same length.  Nothing is lost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/inet.h"

#include "key/key_private.h"

#define ADDRESS_AT		offsetof(inet_struct, ipaddr)

/* The family, the number of bits. */
#define OTHER_BYTES		2

/* How the bits of a value are divided. */
typedef struct Division
{
	uint32_t	bytes;			/* of the address */
	uint32_t	whole;			/* bytes that are the network's */
	uint8_t		mask;			/* of the next byte, what is the network's */
} Division;

/* Of an unknown family, or of too many bits: false. */
static bool
divide(uint8_t family, uint8_t bits, Division *division)
{
	if (family != PGSQL_AF_INET && family != PGSQL_AF_INET6)
		return false;
	division->bytes = family == PGSQL_AF_INET ? 4 : 16;
	division->whole = bits / 8;
	division->mask = (uint8_t) (0xFF00 >> bits % 8);
	return bits <= 8 * division->bytes;
}

static uint32_t
encoded_bytes(const Division *division)
{
	return OTHER_BYTES + 2 * division->bytes - division->whole;
}

uint32_t
euno_inet_put(bool desc, const struct varlena *v, uint8_t *p, uint32_t avail)
{
	const inet_struct *value = (const inet_struct *) VARDATA_ANY(v);
	uint8_t		flip = desc ? 0xFF : 0x00;
	Division	division;
	uint32_t	need;
	uint8_t    *rest;

	if (VARSIZE_ANY_EXHDR(v) < ADDRESS_AT ||
		!divide(value->family, value->bits, &division) ||
		VARSIZE_ANY_EXHDR(v) != ADDRESS_AT + division.bytes)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_internal("network address of an unknown form")));
	need = encoded_bytes(&division);
	if (need > avail)
		return need;

	p[0] = value->family ^ flip;
	p[1 + division.bytes] = value->bits ^ flip;
	rest = p + OTHER_BYTES + division.bytes - division.whole;
	for (uint32_t i = 0; i < division.bytes; i++)
	{
		uint8_t		mask = i < division.whole ? 0xFF :
			i == division.whole ? division.mask : 0x00;

		p[1 + i] = (value->ipaddr[i] & mask) ^ flip;
		if (i >= division.whole)
			rest[i] = (value->ipaddr[i] & ~mask) ^ flip;
	}
	return need;
}

/* How an encoding's bits are divided; false: it is none. */
static bool
divide_encoded(bool desc, const uint8_t *p, const uint8_t *end,
			   Division *division)
{
	uint8_t		flip = desc ? 0xFF : 0x00;

	/* The family says where the number of bits is */
	return p < end && divide(p[0] ^ flip, 0, division) &&
		end - p >= (ptrdiff_t) (OTHER_BYTES + division->bytes) &&
		divide(p[0] ^ flip, p[1 + division->bytes] ^ flip, division) &&
		end - p >= (ptrdiff_t) encoded_bytes(division);
}

const uint8_t *
euno_inet_skip(bool desc, const uint8_t *p, const uint8_t *end)
{
	Division	division;

	return divide_encoded(desc, p, end, &division) ?
		p + encoded_bytes(&division) : NULL;
}

uint32_t
euno_inet_get(bool desc, const uint8_t *p, const uint8_t *end, uint8_t *to)
{
	uint8_t		flip = desc ? 0xFF : 0x00;
	Division	division;
	const uint8_t *rest;

	(void) divide_encoded(desc, p, end, &division);
	rest = p + OTHER_BYTES + division.bytes - division.whole;
	*to++ = p[0] ^ flip;
	*to++ = p[1 + division.bytes] ^ flip;
	for (uint32_t i = 0; i < division.bytes; i++)
		to[i] = (p[1 + i] ^ flip) | (i < division.whole ? 0 : rest[i] ^ flip);
	return ADDRESS_AT + division.bytes;
}
