/*-------------------------------------------------------------------------
 *
 * key_abbreviate.c
 *	  Abbreviations: the bytes that decide first where text in a collation is.
 *
 * Beside approximations (key_approx.c), for inner nodes, which have them where
 * they are read anyway: the integers before the text, big endian, as an index
 * in BYTES order has them, and the text as it is.  What order its characters
 * have each process finds out; so that all make the same of a row, and those
 * that know no schema, too, how is said in a tree's configuration.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_letters.h"

StaticAssertDecl(EUNO_PLACES == EUNO_ASCII &&
				 EUNO_FIRST_PLACE == EUNO_NO_PLACE + 1,
				 "places of letters are those that the trees know");

#define MOST_INTEGERS	6

/* An integer before the text: its size as a power of two, */
#define WIDTH_LOG2		0x03
#define SIGNED			0x04
#define DESCENDING		0x08

typedef struct Recipe
{
	uint8_t		no_nulls;		/* the bitmap of a row without NULLs; 0: rows are
								 * not abbreviated */
	uint8_t		nintegers;
	uint8_t		text_at;
	bool		padded;			/* it is a bpchar */
	struct
	{
		uint8_t		at;
		uint8_t		form;
	}			integers[MOST_INTEGERS];
} Recipe;

StaticAssertDecl(sizeof(Recipe) == EUNO_ABBREVIATION_HOW,
				 "it must fit");

void
euno_key_abbreviation(const EunoKeySchema *schema, uint8_t *how)
{
	Recipe		recipe = {0};
	const EunoKeyColumn *col = schema->cols;

	memset(how, 0, EUNO_ABBREVIATION_HOW);
	if (schema->text == NULL || schema->text - col > MOST_INTEGERS)
		return;
	recipe.no_nulls = schema->no_nulls;
	for (; col < schema->text; col++)
	{
		int			i = recipe.nintegers++;

		recipe.integers[i].at = (uint8_t) col->row_at;
		recipe.integers[i].form = (uint8_t)
			((col->attlen == 8 ? 3 : col->attlen == 4 ? 2 : 1) |
			 (col->kind <= EUNO_KIND_INT64 ? SIGNED : 0) |
			 (col->desc ? DESCENDING : 0));
	}
	recipe.text_at = (uint8_t) col->row_at;
	recipe.padded = col->cmp.fn_oid == F_BPCHARCMP;
	memcpy(how, &recipe, sizeof(recipe));
}

/* Appends an integer, in the low bits of "bits", and returns its bytes. */
static inline uint32_t
put_integer(uint8_t *to, uint64_t bits, uint8_t form)
{
	uint32_t	width = 1U << (form & WIDTH_LOG2);

	bits <<= 64 - 8 * width;
	if ((form & SIGNED) != 0)
		bits ^= UINT64_C(1) << 63;
	if ((form & DESCENDING) != 0)
		bits = ~bits;
	euno_put_word(to, bits);
	return width;
}

/* Appends a text, as much as there is room for, and returns the length. */
static inline int
put_text(uint8_t *to, uint32_t len, const uint8_t *text, uint32_t textlen)
{
	uint32_t	n = Min(textlen, EUNO_ABBREVIATION - len);

	memcpy(to + len, text, n);
	return (int) (len + n);
}

int
euno_row_abbreviate(const uint8_t *how, const uint8_t *row, uint32_t rowlen,
					uint8_t *to)
{
	const Recipe *recipe = (const Recipe *) how;
	const uint8_t *text;
	uint32_t	textlen;
	uint32_t	len = 0;

	if (rowlen == 0 || row[0] != recipe->no_nulls || row[0] == 0)
		return -1;
	for (int i = 0; i < recipe->nintegers; i++)
	{
		uint8_t		form = recipe->integers[i].form;
		uint64_t	bits = euno_row_integer(row, recipe->integers[i].at,
											1U << (form & WIDTH_LOG2));

		len += put_integer(to + len, bits, form);
	}
	if (!euno_row_text(row, recipe->text_at, rowlen, &text, &textlen))
		return -1;
	if (recipe->padded)
		textlen = euno_unpadded(text, textlen);
	return put_text(to, len, text, textlen);
}

/* The same of a bound that has a value for each column up to the text. */
static int
abbreviate_bound(const EunoKeySchema *schema, const EunoKeyBound *bound,
				 const Recipe *recipe, uint8_t *to)
{
	int			n = recipe->nintegers;
	const uint8_t *text;
	uint32_t	textlen;
	uint32_t	len = 0;
	Datum		value;

	if (bound->ncols <= n)
		return -1;
	for (int i = 0; i <= n; i++)
	{
		const EunoBoundColumn *col = &bound->cols[i];

		if (col->class != EUNO_BOUND_VALUE || col->cross != NULL)
			return -1;
		if (i < n)
			len += put_integer(to + len, col->value,
							   recipe->integers[i].form);
	}
	value = bound->cols[n].value;
	if (VARATT_IS_EXTERNAL(DatumGetPointer(value)) ||
		VARATT_IS_COMPRESSED(DatumGetPointer(value)))
		return -1;
	textlen = euno_text_bytes(schema->text, value, &text);
	return put_text(to, len, text, textlen);
}

bool
euno_key_abbreviate(void *arg, const EunoPosition *pos, EunoAbbreviation *to)
{
	const EunoKeySchema *schema = arg;
	const Recipe *recipe = (const Recipe *) schema->abbreviation;
	EunoKeyColumn *col = schema->text;
	int			len;

	if (recipe->no_nulls == 0)
		return false;
	if (pos->bound != NULL)
		len = abbreviate_bound(schema, pos->bound, recipe, to->bytes);
	else
		len = euno_row_abbreviate(schema->abbreviation, pos->key, pos->keylen,
								  to->bytes);
	if (len < 0)
		return false;
	if (unlikely(col->letters == NULL))
		col->letters = euno_letters_of(col->collation);
	memset(to->bytes + len, 0, 16);
	to->len = (uint32_t) len;
	to->places = col->letters->ascii;
	to->plain = schema->plain;
	to->desc = col->desc != (unlikely(euno_wrong_guesses) && len % 2 == 0);
	return true;
}
