/*-------------------------------------------------------------------------
 *
 * key_abbreviate.c
 *	  Abbreviations: the bytes that decide first where text in a collation is.
 *
 * Beside approximations (key_approx.c), for inner nodes, which have them where
 * they are read anyway: the integers before the text, big endian, as an index
 * in BYTES order has them, and the text as it is; then, after a zero, what
 * follows, integers by the half byte in characters that no text has.  What
 * order characters have each process finds out.  So that all make the same of
 * a row, and those that know no schema, too, how is said in a tree's
 * configuration.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_letters.h"

StaticAssertDecl(EUNO_PLACES == EUNO_ASCII &&
				 EUNO_FIRST_PLACE == EUNO_NO_PLACE + 1,
				 "places of letters are those that the trees know");

#define MOST_COLUMNS	(EUNO_ABBREVIATION_HOW - 1)

/* A column: an integer, its size as a power of two, or (0) a text. */
#define WIDTH_LOG2		0x03
#define SIGNED			0x04
#define TURNED			0x08	/* DESC; after the text: if that is not */
#define PADDED			0x10	/* a bpchar */

/* Bytes of the longest integer after a text. */
#define MOST_HALVES		16

typedef struct Recipe
{
	uint8_t		ncols;			/* 0: rows are not abbreviated */
	uint8_t		forms[MOST_COLUMNS];
} Recipe;

StaticAssertDecl(sizeof(Recipe) == EUNO_ABBREVIATION_HOW,
				 "it must fit");

/* An abbreviation in the making. */
typedef struct Writer
{
	uint8_t    *to;
	uint32_t	len;
	bool		has_text;
} Writer;

static uint8_t
form_of(const EunoKeySchema *schema, const EunoKeyColumn *col)
{
	const EunoKeyColumn *text = schema->text;
	bool		turned = col->desc != (col > text && text->desc);

	if (!col->integer)
		return col->cmp.fn_oid == F_BPCHARCMP ? PADDED : 0;
	return (uint8_t) ((col->attlen == 8 ? 3 : col->attlen == 4 ? 2 : 1) |
					  (col->kind <= EUNO_KIND_INT64 ? SIGNED : 0) |
					  (turned ? TURNED : 0));
}

void
euno_key_abbreviation(const EunoKeySchema *schema, uint8_t *how)
{
	const EunoKeyColumn *text = schema->text;
	Recipe		recipe = {0};

	memset(how, 0, EUNO_ABBREVIATION_HOW);
	if (text == NULL)
		return;
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		if (col->integer ? col->align != col->attlen :
			!col->approximates || col->collation != text->collation ||
			col->desc != text->desc)
			break;
		recipe.forms[recipe.ncols++] = form_of(schema, col);
	}
	memcpy(how, &recipe, sizeof(recipe));
}

/* Appends an integer, in the low bits of "bits".  False: there is no room. */
static inline bool
put_integer(Writer *w, uint64_t bits, uint8_t form)
{
	uint32_t	width = 1U << (form & WIDTH_LOG2);

	bits <<= 64 - 8 * width;
	if ((form & SIGNED) != 0)
		bits ^= UINT64_C(1) << 63;
	if ((form & TURNED) != 0)
		bits = ~bits;
	if (!w->has_text)
	{
		euno_put_word(w->to + w->len, bits);
		w->len += width;
		return true;
	}
	if (w->len + MOST_HALVES > EUNO_ABBREVIATION)
		return false;
	for (uint32_t i = 0; i < 2 * width; i++, bits <<= 4)
		w->to[w->len++] = (uint8_t) (EUNO_HALVES + (bits >> 60));
	return true;
}

/* Appends a text, as much as there is room for.  False: there is no more. */
static inline bool
put_text(Writer *w, const uint8_t *text, uint32_t len, bool last)
{
	uint32_t	n = Min(len, EUNO_ABBREVIATION - w->len);

	memcpy(w->to + w->len, text, n);
	w->len += n;
	w->has_text = true;
	if (w->len == EUNO_ABBREVIATION)
		return false;
	if (!last)
		w->to[w->len++] = 0;
	return true;
}

/*
 * Nothing is known of what comes next.  Returns the length; -1 if there is no
 * text so far.
 */
static int
put_unknown(Writer *w)
{
	if (!w->has_text)
		return -1;
	if (w->len < EUNO_ABBREVIATION)
		w->to[w->len++] = UINT8_MAX;
	return (int) w->len;
}

int
euno_row_abbreviate(const uint8_t *how, const uint8_t *row, uint32_t rowlen,
					uint8_t *to)
{
	const Recipe *recipe = (const Recipe *) how;
	Writer		w = {to, 0, false};
	uint32_t	at = 1;			/* after the bitmap */
	bool		room = true;

	if (rowlen == 0 || recipe->ncols == 0)
		return -1;
	for (int i = 0; i < recipe->ncols && room; i++)
	{
		uint8_t		form = recipe->forms[i];
		uint32_t	width = 1U << (form & WIDTH_LOG2);
		const uint8_t *text;
		uint32_t	len;

		if ((row[0] >> i & 1) == 0)
			return put_unknown(&w);
		if (width > 1)
		{
			at = TYPEALIGN(width, at);
			room = put_integer(&w, euno_row_integer(row, at, width), form);
			at += width;
			continue;
		}
		at = euno_row_text(row, at, &text, &len);
		if (at > rowlen)
			return -1;
		if ((form & PADDED) != 0)
			len = euno_unpadded(text, len);
		room = put_text(&w, text, len, i + 1 == recipe->ncols);
	}
	return (int) w.len;
}

/* The same of a bound. */
static int
abbreviate_bound(const EunoKeySchema *schema, const EunoKeyBound *bound,
				 uint8_t *to)
{
	const Recipe *recipe = (const Recipe *) schema->abbreviation;
	Writer		w = {to, 0, false};
	bool		room = true;

	for (int i = 0; i < recipe->ncols && room; i++)
	{
		const EunoBoundColumn *col = &bound->cols[i];
		uint8_t		form = recipe->forms[i];
		const uint8_t *text;
		uint32_t	len;

		if (i >= bound->ncols || col->class != EUNO_BOUND_VALUE ||
			col->cross != NULL ||
			((form & WIDTH_LOG2) == 0 &&
			 (VARATT_IS_EXTERNAL(DatumGetPointer(col->value)) ||
			  VARATT_IS_COMPRESSED(DatumGetPointer(col->value)))))
			return put_unknown(&w);
		if ((form & WIDTH_LOG2) != 0)
		{
			room = put_integer(&w, col->value, form);
			continue;
		}
		len = euno_text_bytes(&schema->cols[i], col->value, &text);
		room = put_text(&w, text, len, i + 1 == recipe->ncols);
	}
	return (int) w.len;
}

bool
euno_key_abbreviate(void *arg, const EunoPosition *pos, EunoAbbreviation *to)
{
	const EunoKeySchema *schema = arg;
	EunoKeyColumn *col = schema->text;
	int			len;

	if (col == NULL)
		return false;
	if (pos->bound != NULL)
		len = abbreviate_bound(schema, pos->bound, to->bytes);
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
