/*-------------------------------------------------------------------------
 *
 * key_approx.c
 *	  Approximations: what the comparator of text in a collation probably says.
 *
 * Libraries take as long to compare a text with some others as all else in a
 * lookup.  Most collations order most texts by the first letter in which they
 * differ, other than by case or accent.  So the comparator is asked once, when
 * a character is met first, for its place among those met before, and then
 * hardly ever to know where to look.  It has the last word there: nothing is
 * concluded from an approximation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_letters.h"

/* Types of others may have such a comparator, and another alignment. */
bool
euno_column_approximates(const EunoKeyColumn *col)
{
	return col->kind == EUNO_KIND_OPAQUE && col->attlen == -1 &&
		col->attalign == TYPALIGN_INT &&
		(col->cmp.fn_oid == F_BTTEXTCMP || col->cmp.fn_oid == F_BPCHARCMP);
}

/* The first of eight bytes that differ; 8: none does. */
static inline uint32_t
difference_in_word(const uint8_t *a, const uint8_t *b)
{
	uint64_t	difference = euno_get_word(a) ^ euno_get_word(b);

	return difference == 0 ? 8 : 7 - pg_leftmost_one_pos64(difference) / 8;
}

/* The first of n bytes that differ; n: none does. */
static inline uint32_t
first_difference(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t	i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		uint32_t	at = difference_in_word(a + i, b + i);

		if (at < 8)
			return i + at;
	}
	if (n >= 8)
		return n - 8 + difference_in_word(a + n - 8, b + n - 8);
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/*
 * The sign of (a) - (b), of which i bytes are the same, as far as their
 * characters tell; otherwise 0.
 */
static pg_noinline int
approximate_letters(const EunoKeyColumn *col, uint32_t i, const uint8_t *a,
					uint32_t alen, const uint8_t *b, uint32_t blen)
{
	const uint8_t *p;
	const uint8_t *q;

	/* UTF-8; elsewhere it does no harm */
	while (i > 0 && i < alen && i < blen && (a[i] & 0xC0) == 0x80)
		i--;
	p = a + i;
	q = b + i;
	for (;;)
	{
		uint32_t	x = euno_next_place(col, col->letters, &p, a + alen);
		uint32_t	y = euno_next_place(col, col->letters, &q, b + blen);

		if (x == EUNO_NO_PLACE || y == EUNO_NO_PLACE)
			return 0;
		if (x != y)
			return x < y ? -1 : 1;
		if (x == 0)
			return 0;
	}
}

/*
 * The sign of (a) - (b) in an ascending column, or 0 if that is not known.
 * Sets *same if they are equal.
 */
static pg_attribute_always_inline int
approximate_text(EunoKeyColumn *col, const uint8_t *a, uint32_t alen,
				 const uint8_t *b, uint32_t blen, bool *same)
{
	uint32_t	n = Min(alen, blen);
	uint32_t	i = first_difference(a, b, n);

	*same = i == alen && i == blen;
	if (*same)
		return 0;
	if (unlikely(col->letters == NULL))
		col->letters = euno_letters_of(col->collation);
	if (i < n && a[i] < EUNO_ASCII && b[i] < EUNO_ASCII)
	{
		uint32_t	x = col->letters->ascii[a[i]];
		uint32_t	y = col->letters->ascii[b[i]];

		if (likely(x > EUNO_NO_PLACE && y > EUNO_NO_PLACE && x != y))
			return x < y ? -1 : 1;
	}
	return approximate_letters(col, i, a, alen, b, blen);
}

/* The same of any two values. */
static int
approximate_column(EunoKeyColumn *col, Datum a, Datum b, bool *same)
{
	const uint8_t *x;
	const uint8_t *y;
	uint32_t	xlen;
	uint32_t	ylen;

	if (col->kind != EUNO_KIND_OPAQUE)
	{
		int			c = euno_encode_compare(col, a, b);

		*same = c == 0;
		return c;
	}
	*same = false;
	if (!col->approximates || VARATT_IS_EXTERNAL(DatumGetPointer(a)) ||
		VARATT_IS_COMPRESSED(DatumGetPointer(a)))
		return 0;
	xlen = euno_text_bytes(col, a, &x);
	ylen = euno_text_bytes(col, b, &y);
	return approximate_text(col, x, xlen, y, ylen, same);
}

/* Of a row without NULLs: an integer, ordered as the index has it. */
static inline uint64_t
integer_of(const EunoKeyColumn *col, const uint8_t *row)
{
	return euno_row_integer(row, col->row_at, col->attlen) ^ col->flip;
}

/* And its text. */
static pg_attribute_always_inline uint32_t
text_of(const EunoKeyColumn *col, const uint8_t *row, uint32_t len,
		const uint8_t **text)
{
	uint32_t	n;
	uint32_t	end = euno_row_text(row, col->row_at, text, &n);

	if (unlikely(end > len))
		euno_row_overrun(end, len);
	return unlikely(col->cmp.fn_oid == F_BPCHARCMP) ?
		euno_unpadded(*text, n) : n;
}

/* For tests: is the approximation of this key to be wrong? */
static inline bool
is_wrong(uint32_t keylen)
{
	return unlikely(euno_wrong_guesses) && keylen % 2 == 0;
}

/* The sign that the index's direction gives it. */
static inline int
directed(const EunoKeyColumn *col, int c, uint32_t keylen)
{
	return col->desc != is_wrong(keylen) ? -c : c;
}

/* The integers before the schema's text, of rows without NULLs. */
static pg_noinline int
compare_integers(const EunoKeySchema *schema, const uint8_t *a,
				 const uint8_t *b)
{
	for (const EunoKeyColumn *col = schema->cols; col < schema->text; col++)
	{
		uint64_t	x = integer_of(col, a);
		uint64_t	y = integer_of(col, b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* Keys of any columns. */
static pg_noinline int
approximate_columns(EunoKeySchema *schema, const EunoPosition *pos,
					const uint8_t *key, uint32_t keylen)
{
	const EunoKeyBound *bound = pos->bound;
	int			ncols = bound != NULL ? bound->ncols : schema->nkeys;
	EunoRowReader mine;
	EunoRowReader its;

	euno_row_begin(&mine, schema->nkeys, pos->key, pos->keylen);
	euno_row_begin(&its, schema->nkeys, key, keylen);
	for (int i = 0; i < ncols; i++)
	{
		EunoKeyColumn *col = &schema->cols[i];
		Datum		a;
		Datum		b;
		bool		same;
		int			c;

		if (!euno_row_next(&its, col, i, &b))
			return 0;
		if (bound == NULL)
		{
			if (!euno_row_next(&mine, col, i, &a))
				return 0;
		}
		else if (bound->cols[i].class != EUNO_BOUND_VALUE ||
				 bound->cols[i].cross != NULL)
			return 0;
		else
			a = bound->cols[i].value;
		c = approximate_column(col, a, b, &same);
		if (!same)
			return directed(col, c, keylen);
	}
	return 0;
}

/*
 * What the comparator probably says; 0: it must be asked.  Where a column is
 * NULL, or compared with another type, it is as fast itself.
 */
int
euno_key_approximate(void *arg, const EunoPosition *pos, const uint8_t *key,
					 uint32_t keylen)
{
	EunoKeySchema *schema = arg;
	EunoKeyColumn *col;
	const uint8_t *x;
	const uint8_t *y;
	uint32_t	xlen;
	uint32_t	ylen;
	bool		same;
	int			c;

	if (pos->bound != NULL)
		return approximate_columns(schema, pos, key, keylen);
	if (pos->keylen == 0)
		return 0;
	col = schema->text;
	if (col == NULL || pos->key[0] != schema->no_nulls ||
		key[0] != schema->no_nulls)
		return approximate_columns(schema, pos, key, keylen);

	if (col > schema->cols)
	{
		c = compare_integers(schema, pos->key, key);
		if (c != 0)
			return is_wrong(keylen) ? -c : c;
	}
	xlen = text_of(col, pos->key, pos->keylen, &x);
	ylen = text_of(col, key, keylen, &y);
	c = approximate_text(col, x, xlen, y, ylen, &same);
	return same && col + 1 < schema->cols + schema->nkeys ?
		approximate_columns(schema, pos, key, keylen) :
		directed(col, c, keylen);
}
