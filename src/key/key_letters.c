/*-------------------------------------------------------------------------
 *
 * key_letters.c
 *	  Asking a comparator of text for the order of characters.
 *
 * Each process asks for the place of a character among those it has met before
 * when it meets it first: about 20 comparisons, once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "key/key_letters.h"

/* Of all collations that were asked for in this process. */
static EunoLetters *all_letters;

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
		if (letter < 0x800)
			*p++ = (char) (0xC0 | letter >> 6);
		else
		{
			*p++ = (char) (0xE0 | letter >> 12);
			*p++ = (char) (0x80 | (letter >> 6 & 0x3F));
		}
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

static uint16_t *
place_of(EunoLetters *letters, uint32_t letter)
{
	uint16_t  **page = &letters->pages[letter >> EUNO_LETTER_BITS];

	if (*page == NULL)
		*page = MemoryContextAllocZero(TopMemoryContext,
									   sizeof(uint16_t) << EUNO_LETTER_BITS);
	return &(*page)[letter & ((1 << EUNO_LETTER_BITS) - 1)];
}

/* Where among those that have a place is this one? */
static uint32_t
search_place(const EunoKeyColumn *col, const EunoLetters *letters,
			 uint32_t letter)
{
	uint32_t	lo = 0;
	uint32_t	hi = letters->n;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (compare_shorts(col, letter, 'a', letters->sorted[mid], 'a') < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

uint32_t
euno_find_place(const EunoKeyColumn *col, EunoLetters *letters,
				uint32_t letter)
{
	uint16_t   *place = place_of(letters, letter);
	uint16_t   *sorted = letters->sorted;
	uint32_t	at;

	if (letters->n == EUNO_MAX_LETTERS || is_ignored(col, letter))
		return *place = EUNO_NO_PLACE;
	at = search_place(col, letters, letter);
	if (at > 0 && is_same_letter(col, sorted[at - 1], letter))
		*place = *place_of(letters, sorted[at - 1]);
	else if (at < letters->n && is_same_letter(col, letter, sorted[at]))
		*place = *place_of(letters, sorted[at]);
	else
	{
		*place = at > 0 ? *place_of(letters, sorted[at - 1]) + 1 :
			EUNO_NO_PLACE + 1;
		for (uint32_t i = at; i < letters->n; i++)
			(*place_of(letters, sorted[i]))++;
		letters->nplaces++;
	}
	memmove(&sorted[at + 1], &sorted[at],
			(letters->n - at) * sizeof(sorted[0]));
	sorted[at] = (uint16_t) letter;
	letters->n++;
	return *place;
}

void
euno_find_ascii(const EunoKeyColumn *col, EunoLetters *letters)
{
	for (uint32_t letter = 1; letter < EUNO_ASCII; letter++)
		if (letters->ascii[letter] == 0)
			(void) euno_find_place(col, letters, letter);
}

EunoLetters *
euno_letters_of(Oid collation)
{
	EunoLetters *letters = all_letters;

	while (letters != NULL && letters->collation != collation)
		letters = letters->next;
	if (letters == NULL)
	{
		letters = MemoryContextAllocZero(TopMemoryContext,
										 sizeof(EunoLetters));
		for (int i = 0; i < EUNO_ASCII >> EUNO_LETTER_BITS; i++)
			letters->pages[i] = &letters->ascii[i << EUNO_LETTER_BITS];
		for (int i = 0; i < 16; i++)
			letters->ascii[EUNO_HALVES + i] = EUNO_NO_PLACE + 1 + i;
		letters->collation = collation;
		letters->next = all_letters;
		all_letters = letters;
	}
	return letters;
}
