/*-------------------------------------------------------------------------
 *
 * key_deform.c
 *	  An entry's key and payload back to column values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_private.h"

/* Decodes ncols columns of a BYTES key. */
static void
deform_bytes(const EunoKeySchema *schema, const uint8_t *key, uint32_t keylen,
			 int ncols, EunoLost *lost, uint8_t **scratch, Datum *values,
			 bool *isnull)
{
	const uint8_t *p = key;
	const uint8_t *end = key + keylen;

	for (int i = 0; i < ncols; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		if (unlikely(p >= end))
			euno_row_overrun(p - key + 1, keylen);
		isnull[i] = *p++ != EUNO_MARK_VALUE;
		if (isnull[i])
			values[i] = (Datum) 0;
		else
			p = euno_encode_get(col, p, end, euno_lost_next(lost, col), scratch,
								&values[i]);
	}
}

static void
deform_row(const EunoKeyColumn *cols, int total, int ncols,
		   const uint8_t *row, uint32_t len, Datum *values, bool *isnull)
{
	EunoRowReader reader;

	euno_row_begin(&reader, total, row, len);
	for (int i = 0; i < ncols; i++)
		isnull[i] = !euno_row_next(&reader, &cols[i], i, &values[i]);
}

/* A packed row must be aligned; callers that keep theirs so pay nothing. */
static const uint8_t *
aligned_row(const uint8_t *row, uint32_t len, uint8_t **scratch)
{
	uint8_t    *copy = *scratch;

	if (likely(row == (const uint8_t *) TYPEALIGN(MAXIMUM_ALIGNOF, row)))
		return row;
	memcpy(copy, row, len);
	*scratch += MAXALIGN(len);
	return copy;
}

void
euno_key_deform_prefix(const EunoKeySchema *schema, const uint8_t *key,
					   uint32_t keylen, int ncols, uint8_t *scratch,
					   Datum *values, bool *isnull)
{
	EunoLost	lost;

	euno_lost_begin(&lost, schema, NULL, 0);
	if (schema->order == EUNO_ORDER_BYTES)
		deform_bytes(schema, key, keylen, ncols, &lost, &scratch, values, isnull);
	else
		deform_row(schema->cols, schema->nkeys, ncols,
				   aligned_row(key, keylen, &scratch), keylen, values, isnull);
}

void
euno_key_deform(const EunoKeySchema *schema, const uint8_t *key,
				uint32_t keylen, const uint8_t *payload, uint32_t payloadlen,
				uint8_t *scratch, Datum *values, bool *isnull)
{
	int			nkeys = schema->nkeys;
	int			ninclude = schema->natts - nkeys;
	EunoLost	lost;
	uint32_t	off = 0;

	scratch = (uint8_t *) MAXALIGN(scratch);
	if (payloadlen > 0)
		payload = aligned_row(payload, payloadlen, &scratch);
	if (schema->order == EUNO_ORDER_BYTES)
	{
		euno_lost_begin(&lost, schema, payload, payloadlen);
		deform_bytes(schema, key, keylen, nkeys, &lost, &scratch, values, isnull);
		off = MAXALIGN(lost.next - payload);
	}
	else
		deform_row(schema->cols, nkeys, nkeys,
				   aligned_row(key, keylen, &scratch), keylen, values, isnull);

	if (ninclude == 0)
		return;
	if (off >= payloadlen)
	{
		/* Asked for the key alone */
		memset(values + nkeys, 0, ninclude * sizeof(Datum));
		memset(isnull + nkeys, true, ninclude * sizeof(bool));
		return;
	}
	deform_row(schema->cols + nkeys, ninclude, ninclude, payload + off,
			   payloadlen - off, values + nkeys, isnull + nkeys);
}
