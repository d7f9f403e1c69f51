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
	uint32		offset;			/* of the composite in the chunks */
	uint16		length;			/* of the composite */
	uint16		payloadlen;		/* the payload follows it */
} EunoSortItem;

/* An item is two words, or so many; scratch memory is for so many items. */
#define EUNO_ITEM_WORDS		3
#define EUNO_SCRATCH_ITEMS	16384

/*
 * Composites lie in chunks, none in two of them.  An offset counts through all
 * of them.
 */
#define EUNO_CHUNK_BITS		21
#define EUNO_CHUNK_BYTES	((Size) 1 << EUNO_CHUNK_BITS)

typedef uint8_t *const *EunoSortChunks;

static inline uint8_t *
euno_sort_at(EunoSortChunks chunks, const EunoSortItem *item)
{
	return chunks[item->offset >> EUNO_CHUNK_BITS] +
		(item->offset & (EUNO_CHUNK_BYTES - 1));
}

/*
 * By one word, as a number; of an EunoSortItem the first one is the head.
 * May be interrupted.
 */
extern void euno_sort_heads(uint64 *items, uint64 *scratch, uint32 n,
							int words, int word);

/*
 * Composites of rows; may be interrupted, and raise what comparators raise.
 * "scratch": for half as many, or EUNO_SCRATCH_ITEMS if that is more.
 */
extern void euno_sort_rows(EunoRowOrder *order, EunoSortChunks chunks,
						   EunoSortItem *items, EunoSortItem *scratch,
						   uint32 n);

/* Two composites of rows, and the heads of the rows. */
extern int	euno_sort_compare_rows(EunoRowOrder *order, const uint8_t *a,
								   uint32 alen, uint64 ahead,
								   const uint8_t *b, uint32 blen,
								   uint64 bhead);

#endif							/* EUNO_SORT_ITEMS_H */
