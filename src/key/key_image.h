/*-------------------------------------------------------------------------
 *
 * key_image.h
 *	  The columns of an entry, put into an index tuple (key_image.c).
 *
 * What is before a varlena or behind all values is zero: readers tell padding
 * from a short value by that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KEY_IMAGE_H
#define KEY_IMAGE_H

#include "postgres.h"

#include "access/itup.h"

#include "key/key_private.h"

/* The longest string with a short header. */
#define SHORT_STRING	(VARATT_SHORT_MAX - VARHDRSZ_SHORT)

/* A tuple that is being made. */
typedef struct EunoImage
{
	char	   *data;			/* 8-byte aligned, as if there were no NULLs */
	uint32_t	at;				/* this many bytes are there */
	uint32_t	present;		/* columns that are not NULL, as bits */
} EunoImage;

_Static_assert(INDEX_MAX_KEYS <= 32, "a bit for each column");

/*
 * Behind a long header what is where it would be behind a short one: n bytes.
 */
extern void euno_image_long_header(const EunoKeyColumn *col, uint32_t n,
								   EunoImage *image);

/* An interval, or a name. */
extern void euno_image_decoded(const EunoKeyColumn *col, const uint8_t *p,
							   const uint8_t *end, const uint8_t *lost,
							   EunoImage *image);

/* A value of a fixed length that is no integer. */
extern void euno_image_other(const EunoKeyColumn *col, const uint8_t *p,
							 const uint8_t *lost, char *to);

/* A value of a fixed length. */
static inline void
euno_image_fixed(const EunoKeyColumn *col, const uint8_t *p,
				 const uint8_t *lost, char *to)
{
	if (likely(col->integer))
		euno_integer_get(col->flip, col->attlen, p, to);
	else
		euno_image_other(col, p, lost, to);
}

/* An index tuple of any entry; its size. */
extern uint32_t euno_image_tuple(const EunoKeySchema *schema,
								 const uint8_t *key, const EunoItemKey *item,
								 IndexTuple itup);

#endif							/* KEY_IMAGE_H */
