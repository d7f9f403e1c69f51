/*-------------------------------------------------------------------------
 *
 * key_sort.c
 *	  What rows, the keys in COMPARE order, are sorted with.
 *
 * A row's head is eight bytes that are sorted by first, as numbers.  Two kinds:
 *
 * - abbreviations, where PostgreSQL's sorts have them: where two differ, so do
 *	 the keys, in the same way;
 * - guesses: what strxfrm makes of text whose order the C library has, eight
 *	 bytes after the other.  It does not always agree with strcoll, which is why
 *	 PostgreSQL does not use it; so whoever sorts by guesses has to compare
 *	 neighbors afterwards.  A guess takes about as long as a comparison, and is
 *	 made once or twice for each row instead of twenty times.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "euno_compat.h"
#include "key/key_private.h"

/* Of what strxfrm makes of a key, so much is sorted by. */
#define GUESS_BYTES		64

/* It makes some bytes of each one; what does not fit is not needed. */
#define TRANSFORMED_BYTES	(8 * EUNO_MAX_ENTRY)

/* An odd number that leaves little of the order of what it is multiplied by. */
#define GARBLE		UINT64CONST(0x9E3779B97F4A7C15)

/* After so many comparisons what they have left in memory goes. */
#define RESET_EVERY		1024

bool		euno_wrong_guesses = false;

typedef enum EunoHeads
{
	HEADS_NONE,
	HEADS_GUESSED,
	HEADS_DECIDE
} EunoHeads;

struct EunoRowOrder
{
	const EunoKeySchema *schema;
	MemoryContext memory;		/* for what comparators leave */
	uint32		compared;
	EunoHeads	heads;
	bool		heads_unsigned; /* by abbreviation, as numbers */
	bool		nulls;			/* a row has had NULL in its first column */
	pg_locale_t locale;			/* all below: to guess with */
	char	   *source;
	char	   *guess;
	SortSupportData columns[FLEXIBLE_ARRAY_MEMBER];
};

/* How PostgreSQL's sorts compare a column's values. */
static void
prepare_column(EunoRowOrder *order, int i)
{
	const EunoKeyColumn *col = &order->schema->cols[i];
	SortSupport sort = &order->columns[i];
	Oid			proc = get_opfamily_proc(col->opfamily, col->opcintype,
										 col->opcintype, EUNO_SORTSUPPORT_PROC);

	sort->ssup_cxt = CurrentMemoryContext;
	sort->ssup_collation = col->collation;
	sort->ssup_attno = (AttrNumber) (i + 1);
	sort->abbreviate = i == 0;
	if (OidIsValid(proc))
		OidFunctionCall1(proc, PointerGetDatum(sort));
	if (sort->comparator == NULL)
		PrepareSortSupportComparisonShim(col->cmp.fn_oid, sort);
}

static bool
is_library_text(const EunoKeyColumn *col)
{
	return (col->cmp.fn_oid == F_BTTEXTCMP || col->cmp.fn_oid == F_BPCHARCMP) &&
		euno_locale_is_libc(pg_newlocale_from_collation(col->collation));
}

EunoRowOrder *
euno_row_order_make(const EunoKeySchema *schema)
{
	EunoRowOrder *order = palloc0(offsetof(EunoRowOrder, columns) +
								  schema->nkeys * sizeof(SortSupportData));

	order->schema = schema;
	order->memory = AllocSetContextCreate(CurrentMemoryContext,
										  "euno comparisons",
										  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < schema->nkeys; i++)
		if (schema->cols[i].kind == EUNO_KIND_OPAQUE)
			prepare_column(order, i);
	if (schema->cols[0].kind != EUNO_KIND_OPAQUE)
		return order;
	if (order->columns[0].abbrev_converter != NULL)
	{
		order->heads = HEADS_DECIDE;
		order->heads_unsigned =
			order->columns[0].comparator == ssup_datum_unsigned_cmp;
	}
	else if (is_library_text(&schema->cols[0]))
	{
		order->heads = HEADS_GUESSED;
		order->locale = pg_newlocale_from_collation(schema->cols[0].collation);
		order->guess = palloc0(TRANSFORMED_BYTES);
		order->source = palloc(EUNO_MAX_ENTRY + 1);
	}
	return order;
}

uint32_t
euno_row_head_bytes(const EunoRowOrder *order)
{
	if (order->heads == HEADS_GUESSED)
		return GUESS_BYTES;
	return order->heads == HEADS_DECIDE && order->heads_unsigned ?
		sizeof(uint64) : 0;
}

static uint64_t
guess(EunoRowOrder *order, Datum value, uint32_t depth)
{
	const struct varlena *v = (const struct varlena *) DatumGetPointer(value);
	uint32_t	len = Min(VARSIZE_ANY_EXHDR(v), EUNO_MAX_ENTRY);
	uint64_t	word;

	memcpy(order->source, VARDATA_ANY(v), len);
	order->source[len] = '\0';
	memset(order->guess, 0, GUESS_BYTES);
	(void) euno_strxfrm(order->guess, order->source, TRANSFORMED_BYTES,
						order->locale);
	memcpy(&word, order->guess + depth, sizeof(word));
	return pg_ntoh64(word) * (euno_wrong_guesses ? GARBLE : 1);
}

uint64_t
euno_row_head(EunoRowOrder *order, const uint8_t *row, uint32_t len,
			  uint32_t depth)
{
	const EunoKeyColumn *col = &order->schema->cols[0];
	EunoRowReader reader;
	Datum		value;
	uint64_t	head;

	if (order->heads == HEADS_NONE)
		return 0;
	euno_row_begin(&reader, order->schema->nkeys, row, len);
	if (!euno_row_next(&reader, col, 0, &value))
	{
		order->nulls = true;
		return col->null_mark == EUNO_MARK_NULL_LAST ? UINT64_MAX : 0;
	}
	if (order->heads == HEADS_GUESSED)
		head = guess(order, value, depth);
	else
	{
		/* The converter keeps its buffers where it is called. */
		MemoryContext old = MemoryContextSwitchTo(order->columns[0].ssup_cxt);

		head = (uint64_t)
			order->columns[0].abbrev_converter(value, &order->columns[0]);
		MemoryContextSwitchTo(old);
		if (!order->heads_unsigned)
			return head;
	}
	return col->desc ? ~head : head;
}

/* By abbreviations; 0 if they do not tell. */
static inline int
compare_heads(EunoRowOrder *order, uint64_t a, uint64_t b)
{
	int			result;

	if (order->heads_unsigned)
		return (a > b) - (a < b);
	result = order->columns[0].comparator((Datum) a, (Datum) b,
										  &order->columns[0]);
	return order->schema->cols[0].desc ? (result < 0) - (result > 0) : result;
}

int
euno_rows_compare(EunoRowOrder *order, const uint8_t *a, uint32_t alen,
				  uint64_t ahead, const uint8_t *b, uint32_t blen,
				  uint64_t bhead)
{
	MemoryContext old;
	int			result;

	if (order->heads == HEADS_DECIDE && !order->nulls)
	{
		result = compare_heads(order, ahead, bhead);
		if (result != 0)
			return result;
	}
	if ((++order->compared % RESET_EVERY) == 0)
		MemoryContextReset(order->memory);
	old = MemoryContextSwitchTo(order->memory);
	result = euno_compare_rows(order->schema, order->columns, a, alen, b, blen);
	MemoryContextSwitchTo(old);
	return result;
}
