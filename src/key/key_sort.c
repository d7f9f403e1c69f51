/*-------------------------------------------------------------------------
 *
 * key_sort.c
 *	  What rows, the keys in COMPARE order, are sorted with.
 *
 * A row's head is eight bytes that are sorted by first, as numbers.  Three
 * kinds:
 *
 * - numbers made of the first column, if that has an encoding as bytes: where
 *	 two differ, so do the keys, in the same way;
 * - abbreviations, where PostgreSQL's sorts have them, which also say how they
 *	 are to be compared;
 * - guesses: whoever sorts by them has to compare neighbors afterwards.  Of text
 *	 in a collation, either the places of its letters, so many at a time as one
 *	 number can hold (key_letters.c), which are made ten times as fast as an
 *	 abbreviation; or, where the order was found to be another one, and is the C
 *	 library's, what strxfrm makes of it.  That does not always agree with
 *	 strcoll, which is why PostgreSQL does not use it, and takes about as long as
 *	 a comparison, but once or twice for each row instead of twenty times.
 *
 * Rows whose first columns are the same have second heads: numbers, or places of
 * letters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "key/key_letters.h"

/* Of what is guessed of a key, so much is sorted by. */
#define GUESS_BYTES		64

/* Of its characters, those in this many bytes are looked at before. */
#define GUESS_LETTERS	128

/* It makes some bytes of each one; what does not fit is not needed. */
#define TRANSFORMED_BYTES	(8 * EUNO_MAX_ENTRY)

/* The bits that no ASCII character has, of eight. */
#define NOT_ASCII	UINT64CONST(0x8080808080808080)

/*
 * An odd number that leaves little of the order of what it is multiplied by.
 */
#define GARBLE		UINT64CONST(0x9E3779B97F4A7C15)

/* After this many comparisons what they have left in memory goes. */
#define RESET_EVERY		1024

bool		euno_wrong_guesses = false;

/* The last two decide where they differ. */
typedef enum EunoHeads
{
	HEADS_NONE,
	HEADS_LETTERS,
	HEADS_TRANSFORMED,
	HEADS_NUMBERS,
	HEADS_ABBREVIATED
} EunoHeads;

struct EunoRowOrder
{
	const EunoKeySchema *schema;
	MemoryContext memory;		/* for what comparators leave */
	uint32		compared;
	EunoHeads	heads;
	EunoHeads	otherwise;		/* if letters do not tell */
	EunoHeads	second;			/* NONE, LETTERS or NUMBERS */
	int			lettered;		/* the column that rows are learned of */
	bool		heads_unsigned; /* they decide, as numbers */
	bool		nulls;			/* a row has had NULL in its first column */
	EunoLetters *letters;
	uint32_t	numbered;		/* the last place of those that rows have had */
	uint64_t	base;			/* a head's digits: places, 0 past the end */
	int			digits;
	pg_locale_t locale;			/* all below: to transform with */
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
		euno_strxfrm_is_guess(pg_newlocale_from_collation(col->collation));
}

/* What the first column is sorted by. */
static void
prepare_heads(EunoRowOrder *order)
{
	const EunoKeyColumn *col = &order->schema->cols[0];

	if (col->kind != EUNO_KIND_OPAQUE)
	{
		order->heads = HEADS_NUMBERS;
		order->heads_unsigned = true;
		return;
	}
	if (order->columns[0].abbrev_converter != NULL)
	{
		order->heads = HEADS_ABBREVIATED;
		order->heads_unsigned =
			order->columns[0].comparator == ssup_datum_unsigned_cmp;
	}
	else if (is_library_text(col))
	{
		order->heads = HEADS_TRANSFORMED;
		order->locale = pg_newlocale_from_collation(col->collation);
		order->guess = palloc0(TRANSFORMED_BYTES);
		order->source = palloc(EUNO_MAX_ENTRY + 1);
	}
	if (col->approximates)
	{
		order->otherwise = order->heads;
		order->heads = HEADS_LETTERS;
		order->letters = euno_letters_of(col->collation);
	}
}

/* ... and the second one, where the first columns are the same. */
static void
prepare_second(EunoRowOrder *order)
{
	const EunoKeyColumn *col = &order->schema->cols[1];

	if (order->schema->nkeys < 2)
		return;
	if (col->kind != EUNO_KIND_OPAQUE)
		order->second = HEADS_NUMBERS;
	else if (order->heads == HEADS_NUMBERS && col->approximates)
	{
		order->second = HEADS_LETTERS;
		order->letters = euno_letters_of(col->collation);
		order->lettered = 1;
	}
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
	prepare_heads(order);
	prepare_second(order);
	return order;
}

uint32_t
euno_row_head_bytes(const EunoRowOrder *order)
{
	if (order->heads == HEADS_LETTERS || order->heads == HEADS_TRANSFORMED)
		return GUESS_BYTES;
	return order->heads_unsigned ? sizeof(uint64) : 0;
}

/* The ASCII characters at p, or all but the last ones. */
static inline const uint8_t *
skip_ascii(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *start = p;
	uint64_t	word;

	for (; end - p >= (ptrdiff_t) sizeof(word); p += sizeof(word))
	{
		memcpy(&word, p, sizeof(word));
		if (word & NOT_ASCII)
			return p;
	}
	if (end - start < (ptrdiff_t) sizeof(word))
		return p;
	memcpy(&word, end - sizeof(word), sizeof(word));
	return word & NOT_ASCII ? p : end;
}

/* The first column of a row, or the second one; false if that is NULL. */
static inline bool
read_column(const EunoRowOrder *order, const uint8_t *row, uint32_t len,
			int column, Datum *value)
{
	EunoRowReader reader;
	bool		result;

	euno_row_begin(&reader, order->schema->nkeys, row, len);
	result = euno_row_next(&reader, &order->schema->cols[0], 0, value);
	return column == 0 ? result :
		euno_row_next(&reader, &order->schema->cols[1], 1, value);
}

void
euno_row_learn(EunoRowOrder *order, const uint8_t *row, uint32_t len)
{
	const EunoKeyColumn *col = &order->schema->cols[order->lettered];
	Datum		value;
	const uint8_t *p;
	const uint8_t *end;

	if (!read_column(order, row, len, order->lettered, &value))
		return;
	len = euno_text_bytes(col, value, &p);
	end = p + Min(len, GUESS_LETTERS);
	p = skip_ascii(p, end);
	while (p < end)
	{
		uint32_t	place = euno_next_place(col, order->letters, &p, end);

		if (place >= EUNO_NUMBERED)
			order->numbered = Max(order->numbered, place);
	}
}

bool
euno_row_learned(EunoRowOrder *order)
{
	uint64_t	room = UINT64_MAX;

	euno_find_ascii(&order->schema->cols[order->lettered], order->letters);
	order->base = Max(order->letters->nplaces + EUNO_NO_PLACE,
					  order->numbered) + 1;
	for (order->digits = 0; room >= order->base; order->digits++)
		room /= order->base;

	/* ICU compares text with these slowly, and abbreviates it well. */
	return order->numbered == 0 || order->otherwise != HEADS_ABBREVIATED;
}

bool
euno_row_guessed(const EunoRowOrder *order)
{
	return order->heads == HEADS_LETTERS || order->second == HEADS_LETTERS;
}

bool
euno_row_guess_otherwise(EunoRowOrder *order)
{
	if (!euno_row_guessed(order))
		return false;
	if (order->heads == HEADS_LETTERS)
		order->heads = order->otherwise;
	else
		order->second = HEADS_NONE;
	return true;
}

/* One in 64 is wrong, or all are where the order is descending. */
static uint64_t
make_wrong(const EunoKeyColumn *col, uint64_t head)
{
	uint64_t	garbled = head * GARBLE;

	return col->desc || garbled >> 58 == 0 ? garbled : head;
}

/* The places of the letters at "depth"; those without one do not count. */
static uint64_t
places(EunoRowOrder *order, Datum value, uint32_t depth)
{
	const EunoKeyColumn *col = &order->schema->cols[order->lettered];
	int			skip = (int) (depth / sizeof(uint64)) * order->digits;
	uint64_t	head = 0;
	uint32_t	len;
	const uint8_t *p;
	const uint8_t *end;

	len = euno_text_bytes(col, value, &p);
	end = p + len;
	for (int i = -skip; i < order->digits;)
	{
		uint32_t	place = euno_next_place(col, order->letters, &p, end);

		if (place == EUNO_NO_PLACE)
			continue;
		if (i >= 0)
			head = head * order->base + place;
		i++;
	}
	return head;
}

static uint64_t
transformed(EunoRowOrder *order, Datum value, uint32_t depth)
{
	const struct varlena *v = (const struct varlena *) DatumGetPointer(value);
	uint32_t	len = Min(VARSIZE_ANY_EXHDR(v), EUNO_MAX_ENTRY);

	memcpy(order->source, VARDATA_ANY(v), len);
	order->source[len] = '\0';
	memset(order->guess, 0, GUESS_BYTES);
	(void) euno_strxfrm(order->guess, order->source, TRANSFORMED_BYTES,
						order->locale);
	return euno_get_word((const uint8_t *) order->guess + depth);
}

static uint64_t
abbreviated(EunoRowOrder *order, Datum value)
{
	/* The converter keeps its buffers where it is called. */
	MemoryContext old = MemoryContextSwitchTo(order->columns[0].ssup_cxt);
	Datum		head;

	head = order->columns[0].abbrev_converter(value, &order->columns[0]);
	MemoryContextSwitchTo(old);
	return (uint64_t) head;
}

static inline uint64_t
head_of_null(const EunoKeyColumn *col)
{
	return col->null_mark == EUNO_MARK_NULL_LAST ? UINT64_MAX : 0;
}

uint64_t
euno_row_head(EunoRowOrder *order, const uint8_t *row, uint32_t len,
			  uint32_t depth)
{
	const EunoKeyColumn *col = &order->schema->cols[0];
	Datum		value;
	uint64_t	head;

	if (order->heads == HEADS_NONE)
		return 0;
	if (!read_column(order, row, len, 0, &value))
	{
		order->nulls = true;
		return head_of_null(col);
	}
	if (order->heads == HEADS_ABBREVIATED)
		head = abbreviated(order, value);
	else if (order->heads == HEADS_NUMBERS)
		head = euno_encode_head(col, value);
	else
	{
		head = order->heads == HEADS_LETTERS ? places(order, value, depth) :
			transformed(order, value, depth);
		if (euno_wrong_guesses)
			head = make_wrong(col, head);
	}
	if (order->heads == HEADS_ABBREVIATED && !order->heads_unsigned)
		return head;
	return col->desc ? ~head : head;
}

bool
euno_row_has_second(const EunoRowOrder *order)
{
	return order->second != HEADS_NONE;
}

bool
euno_row_same_first(const EunoRowOrder *order, const uint8_t *a, uint32_t alen,
					const uint8_t *b, uint32_t blen)
{
	const EunoKeyColumn *col = &order->schema->cols[0];
	Datum		avalue;
	Datum		bvalue;
	bool		present = read_column(order, a, alen, 0, &avalue);

	return present == read_column(order, b, blen, 0, &bvalue) &&
		(!present || datum_image_eq(avalue, bvalue, col->attbyval, col->attlen));
}

uint64_t
euno_row_second_head(EunoRowOrder *order, const uint8_t *row, uint32_t len)
{
	const EunoKeyColumn *col = &order->schema->cols[1];
	Datum		value;
	uint64_t	head;

	if (!read_column(order, row, len, 1, &value))
		return head_of_null(col);
	head = order->second == HEADS_NUMBERS ? euno_encode_head(col, value) :
		places(order, value, 0);
	if (order->second == HEADS_LETTERS && euno_wrong_guesses)
		head = make_wrong(col, head);
	return col->desc ? ~head : head;
}

bool
euno_row_head_goes_on(const EunoRowOrder *order, uint64_t head)
{
	if (order->schema->cols[0].desc)
		head = ~head;
	return order->heads == HEADS_LETTERS ? head % order->base != 0 :
		(head & 0xFF) != 0;
}

/* 0 if they do not tell. */
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

	if (order->heads >= HEADS_NUMBERS && !order->nulls)
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
