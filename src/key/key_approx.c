/*-------------------------------------------------------------------------
 *
 * key_approx.c
 *	  Approximations: what the comparator of text in a collation probably says.
 *
 * Libraries take as long to compare a text with some others as all else in a
 * lookup.  Most collations order most texts by the first letter in which they
 * differ, other than by case or accent.  So the comparator is asked once, when a
 * character is met first, for its place among those met before, and then hardly
 * ever to know where to look.  It has the last word there: nothing is concluded
 * from an approximation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "key/key_private.h"

/* Characters that are asked for: those of one or two bytes. */
#define NLETTERS	0x800

/* Of a character that has no place: it is ignored, or there was no room. */
#define NO_PLACE	1

/* From here on, those that have it by their number. */
#define NUMBERED	(UINT64_MAX - 0x10000)

/*
 * The characters of a collation.  Those of one place differ in less than a letter
 * does; 0: not asked for yet.
 */
typedef struct EunoLetters
{
	struct EunoLetters *next;
	Oid			collation;
	int			n;
	uint16_t	sorted[NLETTERS];	/* those that have a place, by the comparator */
	uint64_t	place[NLETTERS];
} EunoLetters;

/* Of all collations that were asked for in this process. */
static EunoLetters *all_letters;

bool
euno_column_approximates(const EunoKeyColumn *col)
{
	return col->kind == EUNO_KIND_OPAQUE &&
		(col->cmp.fn_oid == F_BTTEXTCMP || col->cmp.fn_oid == F_BPCHARCMP);
}

/* A text of one character and perhaps another one, ASCII. */
typedef union Short
{
	char		data[VARHDRSZ + 4];
	int32		align;
} Short;

static Datum
make_short(Short *to, uint32_t letter, char next)
{
	char	   *p = VARDATA(to->data);

	if (letter < 0x80)
		*p++ = (char) letter;
	else
	{
		*p++ = (char) (0xC0 | letter >> 6);
		*p++ = (char) (0x80 | (letter & 0x3F));
	}
	if (next != 0)
		*p++ = next;
	SET_VARSIZE(to->data, p - to->data);
	return PointerGetDatum(to->data);
}

static int
compare_shorts(const EunoKeyColumn *col, uint32_t a, char a_next, uint32_t b,
			   char b_next)
{
	Short		x;
	Short		y;

	return euno_column_compare(col, make_short(&x, a, a_next),
							   make_short(&y, b, b_next));
}

/* Does what follows a character decide, whatever that is? */
static bool
is_ignored(const EunoKeyColumn *col, uint32_t letter)
{
	return compare_shorts(col, letter, 'a', 'b', 0) < 0 &&
		compare_shorts(col, letter, 'b', 'a', 0) > 0 &&
		compare_shorts(col, letter, '1', '2', 0) < 0 &&
		compare_shorts(col, letter, '2', '1', 0) > 0;
}

/* Are two characters, the left one of which comes first, one letter? */
static bool
is_same_letter(const EunoKeyColumn *col, uint32_t left, uint32_t right)
{
	return compare_shorts(col, left, 'b', right, 'a') > 0;
}

/* Asks for a character's place, which was not known.  May ereport. */
static uint64_t
find_place(const EunoKeyColumn *col, EunoLetters *letters, uint32_t letter)
{
	int			lo = 0;
	int			hi = letters->n;
	uint64_t	left = NO_PLACE;
	uint64_t	right = NUMBERED;
	uint64_t	place;

	if (is_ignored(col, letter))
		return letters->place[letter] = NO_PLACE;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (compare_shorts(col, letter, 'a', letters->sorted[mid], 'a') < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo > 0)
		left = letters->place[letters->sorted[lo - 1]];
	if (lo < letters->n)
		right = letters->place[letters->sorted[lo]];
	if (lo > 0 && is_same_letter(col, letters->sorted[lo - 1], letter))
		place = left;
	else if (lo < letters->n &&
			 is_same_letter(col, letter, letters->sorted[lo]))
		place = right;
	else if (right - left < 2)
		return letters->place[letter] = NO_PLACE;
	else
		place = left + (right - left) / 2;
	memmove(&letters->sorted[lo + 1], &letters->sorted[lo],
			(letters->n - lo) * sizeof(letters->sorted[0]));
	letters->sorted[lo] = (uint16_t) letter;
	letters->n++;
	return letters->place[letter] = place;
}

/* A collation's characters, of which none are known at first. */
static EunoLetters *
letters_of(Oid collation)
{
	EunoLetters *letters = all_letters;

	while (letters != NULL && letters->collation != collation)
		letters = letters->next;
	if (letters == NULL)
	{
		letters = MemoryContextAllocZero(TopMemoryContext,
										 sizeof(EunoLetters));
		letters->collation = collation;
		letters->next = all_letters;
		all_letters = letters;
	}
	return letters;
}

/*
 * The character at p, and what follows it; UINT32_MAX if it is of no use.
 */
static inline const uint8_t *
next_letter(const uint8_t *p, const uint8_t *end, uint32_t *letter)
{
	int			n = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : 3;

	*letter = UINT32_MAX;
	if (n == 1)
		*letter = p[0];
	else if (GetDatabaseEncoding() != PG_UTF8 || p[0] >= 0xF0 || end - p < n)
		return end;
	else if (n == 2)
		*letter = (uint32_t) (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
	else
		*letter = (uint32_t) (p[0] & 0x0F) << 12 |
			(uint32_t) (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
	return p + n;
}

/*
 * The place of the character at *p, which advances: 0 at the end.
 *
 * Chinese characters and Korean syllables are so many that nobody is asked:
 * collations that are not made for them have them in the order of their numbers.
 */
static inline uint64_t
next_place(const EunoKeyColumn *col, EunoLetters *letters, const uint8_t **p,
		   const uint8_t *end)
{
	uint32_t	letter;
	uint64_t	place;

	if (*p == end)
		return 0;
	*p = next_letter(*p, end, &letter);
	if (letter < NLETTERS)
	{
		place = letters->place[letter];
		return likely(place != 0) ? place : find_place(col, letters, letter);
	}
	if ((letter >= 0x4E00 && letter <= 0x9FFF) ||
		(letter >= 0xAC00 && letter <= 0xD7A3))
		return NUMBERED + letter;
	return NO_PLACE;
}

/* The offset of the first character that differs. */
static inline uint32_t
first_difference(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t	i = 0;

	for (; i + 8 <= n; i += 8)
	{
		uint64_t	x;
		uint64_t	y;

		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			break;
	}
	while (i < n && a[i] == b[i])
		i++;

	/* UTF-8; elsewhere it does no harm */
	while (i > 0 && i < n && (a[i] & 0xC0) == 0x80)
		i--;
	return i;
}

/* The sign of (a) - (b), as far as their characters tell; otherwise 0. */
static int
approximate_bytes(const EunoKeyColumn *col, const uint8_t *a, uint32_t alen,
				  const uint8_t *b, uint32_t blen)
{
	uint32_t	i = first_difference(a, b, Min(alen, blen));
	const uint8_t *p = a + i;
	const uint8_t *q = b + i;

	for (;;)
	{
		uint64_t	x = next_place(col, col->letters, &p, a + alen);
		uint64_t	y = next_place(col, col->letters, &q, b + blen);

		if (x == NO_PLACE || y == NO_PLACE)
			return 0;
		if (x != y)
			return x < y ? -1 : 1;
		if (x == 0)
			return 0;
	}
}

/* The bytes of a text, without what bpchar does not compare. */
static inline uint32_t
text_bytes(const EunoKeyColumn *col, Datum value, const uint8_t **bytes)
{
	const char *v = DatumGetPointer(value);
	uint32_t	len = VARSIZE_ANY_EXHDR(v);

	*bytes = (const uint8_t *) VARDATA_ANY(v);
	if (col->cmp.fn_oid == F_BPCHARCMP)
	{
		while (len > 0 && (*bytes)[len - 1] == ' ')
			len--;
	}
	return len;
}

/*
 * The sign of (a) - (b) in an ascending column, or 0 if that is not known.  Sets
 * *same if they are equal.
 */
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
	if (unlikely(col->letters == NULL))
		col->letters = letters_of(col->collation);
	xlen = text_bytes(col, a, &x);
	ylen = text_bytes(col, b, &y);
	if (xlen == ylen && memcmp(x, y, xlen) == 0)
	{
		*same = true;
		return 0;
	}
	return approximate_bytes(col, x, xlen, y, ylen);
}

/*
 * What the comparator probably says; 0: it must be asked.  Where a column is NULL,
 * or compared with another type, it is as fast itself.
 */
int
euno_key_approximate(void *arg, const EunoPosition *pos, const uint8_t *key,
					 uint32_t keylen)
{
	EunoKeySchema *schema = arg;
	const EunoKeyBound *bound = pos->bound;
	int			ncols = bound != NULL ? bound->ncols : schema->nkeys;
	EunoRowReader mine;
	EunoRowReader its;

	if (bound == NULL && pos->keylen == 0)
		return 0;
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
			return col->desc != (euno_wrong_guesses && keylen % 2 == 0) ? -c : c;
	}
	return 0;
}
