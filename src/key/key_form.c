/*-------------------------------------------------------------------------
 *
 * key_form.c
 *	  Column values to an entry's key and payload.
 *
 * A payload, when there is one:
 *	  lossy columns	a bitmap with a bit per key column whose encoding can lose
 *					something, then what was lost, column by column (only if
 *					the schema has such columns);
 *	  INCLUDE		the packed row of the INCLUDE columns, at the next multiple
 *					of 8 (only if the index has them).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/lsyscache.h"

#include "key/key_private.h"

/* The longest key or payload that is written out. */
#define FORM_AVAIL	EUNO_MAX_ENTRY

/*
 * "hidden" grows by what arrays and ranges take more than their encodings when
 * they are decoded.
 */
static uint64_t
form_key_bytes(const EunoKeySchema *schema, const Datum *values,
			   const bool *isnull, uint8_t *buf, uint64_t *hidden)
{
	uint64_t	len = 0;

	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];
		uint32_t	n;

		if (len < FORM_AVAIL)
			buf[len] = isnull[i] ? col->null_mark : EUNO_MARK_VALUE;
		len++;
		if (isnull[i])
			continue;
		n = euno_encode_put(col, values[i], buf + Min(len, FORM_AVAIL),
							len < FORM_AVAIL ? FORM_AVAIL - len : 0);
		len += n;
		if (col->kind >= EUNO_KIND_ARRAY)
			*hidden += Max(toast_raw_datum_size(values[i]), n) - n;
	}
	return len;
}

/*
 * Writes what the encodings lost; returns its length, 0 when nothing was.  32
 * columns of at most 9 bytes always fit.
 */
static uint32_t
form_lost(const EunoKeySchema *schema, const Datum *values,
		  const bool *isnull, uint8_t *buf, uint64_t *hidden)
{
	uint32_t	start = EUNO_LOSSY_BYTES(schema);
	uint32_t	len = start;

	memset(buf, 0, start);
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];
		uint32_t	n;

		if (col->lossy < 0 || isnull[i])
			continue;
		n = euno_encode_lost(col, values[i], buf + len, hidden);
		if (n > 0)
			buf[col->lossy >> 3] |= 1 << (col->lossy & 7);
		len += n;
	}
	return len == start ? 0 : len;
}

/*
 * Raises the error.  Its fields name the index where btree's do, as a
 * constraint, and so does its detail the row.
 */
static void
too_long(const EunoKeySchema *schema, uint64_t size, EunoTid tid)
{
	char	   *table = get_rel_name(schema->table);
	char	   *namespace = get_namespace_name(get_rel_namespace(schema->table));

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %llu exceeds maximum %d for index \"%s\"",
					(unsigned long long) size, EUNO_MAX_ENTRY, schema->name),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   (uint32) (tid >> 16), (uint32) (tid & 0xffff),
					   table != NULL ? table : "?"),
			 errhint("Values larger than that cannot be indexed. Consider an index on a hash of the value, full text indexing, or a btree index, which compresses values."),
			 namespace == NULL ? 0 :
			 err_generic_string(PG_DIAG_SCHEMA_NAME, namespace),
			 table == NULL ? 0 : err_generic_string(PG_DIAG_TABLE_NAME, table),
			 err_generic_string(PG_DIAG_CONSTRAINT_NAME, schema->name)));
}

void
euno_key_form(const EunoKeySchema *schema, const Datum *values,
			  const bool *isnull, EunoTid tid, uint8_t *buf, EunoEntry *entry)
{
	int			ninclude = schema->natts - schema->nkeys;
	uint64_t	payloadlen = 0;
	uint64_t	hidden = 0;
	uint64_t	keylen;
	uint8_t    *payload;

	if (schema->order == EUNO_ORDER_BYTES)
		keylen = form_key_bytes(schema, values, isnull, buf, &hidden);
	else
		keylen = euno_row_put(schema->cols, schema->nkeys, values, isnull, buf,
							  FORM_AVAIL);

	payload = buf + MAXALIGN(Min(keylen, FORM_AVAIL));
	if (schema->order == EUNO_ORDER_BYTES && schema->nlossy > 0)
		payloadlen = form_lost(schema, values, isnull, payload, &hidden);
	if (ninclude > 0)
	{
		uint32_t	lost = (uint32_t) payloadlen;

		/*
		 * The bitmap of form_lost is there, and clear, when nothing was lost
		 */
		if (lost == 0 && schema->order == EUNO_ORDER_BYTES)
			lost = EUNO_LOSSY_BYTES(schema);
		memset(payload + lost, 0, MAXALIGN(lost) - lost);
		lost = MAXALIGN(lost);
		payloadlen = lost + euno_row_put(schema->cols + schema->nkeys, ninclude,
										 values + schema->nkeys,
										 isnull + schema->nkeys,
										 payload + lost, FORM_AVAIL - lost);
	}

	/*
	 * What comes back on decoding counts, so that every key that is let in can
	 * be deformed in EUNO_KEY_DEFORM_BYTES; names, which have 64 bytes, have
	 * room there.
	 */
	if (keylen + payloadlen + hidden > EUNO_MAX_ENTRY)
		too_long(schema, keylen + payloadlen + hidden, tid);

	entry->tid = tid;
	entry->key = buf;
	entry->keylen = (uint32_t) keylen;
	entry->payload = payloadlen > 0 ? payload : NULL;
	entry->payloadlen = (uint32_t) payloadlen;
}
