/*-------------------------------------------------------------------------
 *
 * key_abbrev.c
 *	  Abbreviations: 8 bytes that mostly tell two keys apart, in COMPARE order.
 *
 * Text in an ICU collation is compared by a library that takes as long as all
 * else in a lookup.  PostgreSQL's sorts compare the first 8 bytes of the strings'
 * sort keys instead, where they differ, and so do we: with fences, which most
 * comparisons of a descent are with.  What PostgreSQL does not trust, sort keys
 * of the C library among it, is not abbreviated.
 *
 * The fence has the abbreviation of its first column behind its row, and a bit of
 * the row's bitmap, which no column needs, says so.  To whoever reads the row
 * both are not there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "key/key_private.h"

struct EunoAbbreviation
{
	SortSupportData sort;

	/* the value that was abbreviated last, if there is one */
	bool		known;
	uint32_t	len;
	uint64_t	abbreviation;
	uint8_t		bytes[EUNO_MAX_ENTRY];
};

/*
 * What the schema's first column is to be abbreviated with, or NULL.  The
 * comparators are the built-in ones, whose sort support is known to agree with
 * them.
 */
EunoAbbreviation *
euno_abbreviation_make(const EunoKeySchema *schema, MemoryContext context)
{
	const EunoKeyColumn *col = &schema->cols[0];
	EunoAbbreviation *result;
	Oid			proc;

	if (schema->order != EUNO_ORDER_COMPARE || schema->nkeys >= 8 ||
		(col->cmp.fn_oid != F_BTTEXTCMP && col->cmp.fn_oid != F_BPCHARCMP))
		return NULL;
	proc = get_opfamily_proc(col->opfamily, col->opcintype, col->opcintype,
							 EUNO_SORTSUPPORT_PROC);
	if (proc != F_BTTEXTSORTSUPPORT && proc != F_BPCHAR_SORTSUPPORT)
		return NULL;

	result = MemoryContextAllocZero(context, sizeof(EunoAbbreviation));
	result->sort.ssup_cxt = context;
	result->sort.ssup_collation = col->collation;
	result->sort.ssup_attno = 1;
	result->sort.abbreviate = true;
	OidFunctionCall1(proc, PointerGetDatum(&result->sort));
	if (result->sort.abbrev_converter != NULL &&
		result->sort.comparator == ssup_datum_unsigned_cmp)
		return result;
	pfree(result);
	return NULL;
}

static uint64_t
abbreviate(EunoAbbreviation *a, Datum value)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	uint32_t	len = VARSIZE_ANY_EXHDR(v);

	/* One key is compared with many. */
	if (a->known && a->len == len && memcmp(a->bytes, VARDATA_ANY(v), len) == 0)
		return a->abbreviation;
	a->known = false;
	a->abbreviation = (uint64_t) a->sort.abbrev_converter(PointerGetDatum(v),
														  &a->sort);
	if (len <= sizeof(a->bytes))
	{
		a->len = len;
		memcpy(a->bytes, VARDATA_ANY(v), len);
		a->known = true;
	}
	return a->abbreviation;
}

static uint64_t
load_abbreviation(const uint8_t *row, uint32_t len)
{
	uint64_t	word;

	memcpy(&word, row + len - EUNO_ABBREVIATION_BYTES, sizeof(word));
	return pg_ntoh64(word);
}

/* The first column of a row, which is not NULL. */
static Datum
first_value(const EunoKeySchema *schema, const uint8_t *row, uint32_t len)
{
	EunoRowReader reader;
	Datum		value;

	euno_row_begin(&reader, schema->nkeys, row, len);
	(void) euno_row_next(&reader, &schema->cols[0], 0, &value);
	return value;
}

int
euno_abbreviation_compare(const EunoKeySchema *schema, Datum value,
						  const uint8_t *fence, uint32_t len)
{
	uint64_t	a = abbreviate(schema->abbreviation, value);
	uint64_t	b = load_abbreviation(fence, len);

	if (a == b)
		return 0;
	return (a < b) == !schema->cols[0].desc ? -1 : 1;
}

int
euno_abbreviation_compare_row(const EunoKeySchema *schema, const uint8_t *row,
							  uint32_t rowlen, const uint8_t *fence,
							  uint32_t len)
{
	uint64_t	a;
	uint64_t	b;

	if ((row[0] & 1) == 0)
		return 0;
	if ((row[0] & EUNO_ROW_ABBREVIATED) == 0)
		return euno_abbreviation_compare(schema,
										 first_value(schema, row, rowlen),
										 fence, len);
	a = load_abbreviation(row, rowlen);
	b = load_abbreviation(fence, len);
	if (a == b)
		return 0;
	return (a < b) == !schema->cols[0].desc ? -1 : 1;
}

uint32_t
euno_key_form_fence(void *arg, uint8_t *key, uint32_t keylen)
{
	const EunoKeySchema *schema = arg;
	uint64_t	word;

	if (schema->abbreviation == NULL || keylen == 0 || (key[0] & 1) == 0 ||
		(key[0] & EUNO_ROW_ABBREVIATED) != 0 ||
		keylen + EUNO_ABBREVIATION_BYTES > EUNO_MAX_ENTRY)
		return keylen;
	word = pg_hton64(abbreviate(schema->abbreviation,
								first_value(schema, key, keylen)));
	memcpy(key + keylen, &word, sizeof(word));
	key[0] |= EUNO_ROW_ABBREVIATED;
	return keylen + EUNO_ABBREVIATION_BYTES;
}
