/*-------------------------------------------------------------------------
 *
 * key_letters.h
 *	  The characters of a collation, in its order: for key_*.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_KEY_LETTERS_H
#define EUNO_KEY_LETTERS_H

#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"

#include "key/key_private.h"

/* So many are asked for, those of one to three UTF-8 bytes. */
#define EUNO_MAX_LETTERS	0x1000

#define EUNO_ASCII			0x80

#define EUNO_LETTER_BITS	6	/* of a character's number within its page */
#define EUNO_LETTER_PAGES	(0x10000 >> EUNO_LETTER_BITS)

/*
 * These 16 control characters stand for half bytes of integers in
 * abbreviations, and have the places that go with that.
 */
#define EUNO_HALVES			0x10

/* Of a character that has no place: it is ignored, or there was no room. */
#define EUNO_NO_PLACE		1

/*
 * Chinese characters and Korean syllables are so many that nobody is asked:
 * from here on they have their places by their numbers, as in collations that
 * are not made for them.
 */
#define EUNO_NUMBERED		(EUNO_MAX_LETTERS + 2)
#define EUNO_FIRST_NUMBER	0x4E00

/*
 * Characters of one place differ in less than a letter does.  Places begin
 * with 2, without gaps; 0: not asked for yet.
 */
typedef struct EunoLetters
{
	struct EunoLetters *next;
	Oid			collation;
	uint32_t	n;				/* characters that have places, and these */
	uint32_t	nplaces;
	uint16_t	ascii[EUNO_ASCII];	/* places; the first pages are these */
	uint16_t	sorted[EUNO_MAX_LETTERS];	/* by the comparator */
	uint16_t   *pages[EUNO_LETTER_PAGES];	/* places */
} EunoLetters;

/* A collation's characters, of which none are known at first. */
extern EunoLetters *euno_letters_of(Oid collation);

/* Asks for the places of all ASCII characters, once. */
extern void euno_find_ascii(const EunoKeyColumn *col, EunoLetters *letters);

/* Asks for a character's place, which was not known.  May ereport. */
extern uint32_t euno_find_place(const EunoKeyColumn *col,
								EunoLetters *letters, uint32_t letter);

/* The bytes of a text, without what bpchar does not compare. */
static inline uint32_t
euno_text_bytes(const EunoKeyColumn *col, Datum value, const uint8_t **bytes)
{
	const char *v = DatumGetPointer(value);
	uint32_t	len = VARSIZE_ANY_EXHDR(v);

	*bytes = (const uint8_t *) VARDATA_ANY(v);
	return col->cmp.fn_oid == F_BPCHARCMP ? euno_unpadded(*bytes, len) : len;
}

/*
 * The character at p, and what follows it; UINT32_MAX if it is of no use.
 */
static inline const uint8_t *
euno_next_letter(const uint8_t *p, const uint8_t *end, uint32_t *letter)
{
	int			n = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;

	*letter = UINT32_MAX;
	if (n == 1)
		*letter = p[0];
	else if (GetDatabaseEncoding() != PG_UTF8 || end - p < n)
		return end;
	else if (n == 2)
		*letter = (uint32_t) (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
	else if (n == 3)
		*letter = (uint32_t) (p[0] & 0x0F) << 12 |
			(uint32_t) (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
	return p + n;
}

static inline bool
euno_letter_numbered(uint32_t letter)
{
	return (letter >= EUNO_FIRST_NUMBER && letter <= 0x9FFF) ||
		(letter >= 0xAC00 && letter <= 0xD7A3);
}

/* The place of the character at *p, which advances: 0 at the end. */
static inline uint32_t
euno_next_place(const EunoKeyColumn *col, EunoLetters *letters,
				const uint8_t **p, const uint8_t *end)
{
	const uint16_t *page;
	uint32_t	letter;
	uint32_t	place;

	if (*p == end)
		return 0;
	if (likely(**p < EUNO_ASCII && letters->ascii[**p] != 0))
		return letters->ascii[*(*p)++];
	*p = euno_next_letter(*p, end, &letter);
	if (letter > 0xFFFF)
		return EUNO_NO_PLACE;
	if (unlikely(euno_letter_numbered(letter)))
		return EUNO_NUMBERED + letter - EUNO_FIRST_NUMBER;
	page = letters->pages[letter >> EUNO_LETTER_BITS];
	place = page != NULL ?
		page[letter & ((1 << EUNO_LETTER_BITS) - 1)] : 0;
	return likely(place != 0) ? place : euno_find_place(col, letters, letter);
}

#endif							/* EUNO_KEY_LETTERS_H */
