/*-------------------------------------------------------------------------
 *
 * euno_sort_items.h
 *	  What the sorts of a build sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SORT_ITEMS_H
#define EUNO_SORT_ITEMS_H

#include "postgres.h"

#include "core/euno_core.h"
#include "key/euno_key.h"

/* Below this many, comparing is faster than counting digits. */
#define EUNO_SMALL_GROUP 48

typedef struct EunoSortItem
{
	uint64		head;			/* the eight bytes being sorted by */
	union
	{
		uint64		rest;		/* of a short composite */
		struct
		{
			uint32		offset; /* of the composite in the buffer */
			uint16		length; /* of the composite */
			uint16		payloadlen; /* the payload follows it */
		};
	};
} EunoSortItem;

/* By their heads, as numbers.  "scratch" has as much room. */
extern void euno_sort_heads(EunoSortItem *items, EunoSortItem *scratch,
							uint32 n);

/* Composites of rows; may be interrupted, and raise what comparators raise. */
extern void euno_sort_rows(EunoRowOrder *order, const uint8_t *buffer,
						   EunoSortItem *items, EunoSortItem *scratch,
						   uint32 n);

/* Two composites of rows, and the heads of the rows. */
extern int	euno_sort_compare_rows(EunoRowOrder *order, const uint8_t *a,
								   uint32 alen, uint64 ahead,
								   const uint8_t *b, uint32 blen,
								   uint64 bhead);

#endif							/* EUNO_SORT_ITEMS_H */
