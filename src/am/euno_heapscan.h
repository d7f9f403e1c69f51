/*-------------------------------------------------------------------------
 *
 * euno_heapscan.h
 *	  What both scans of the heap share: blocks, pages, evaluation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_HEAPSCAN_H
#define EUNO_HEAPSCAN_H

#include "postgres.h"

#include "access/htup_details.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "am/euno_build.h"
#include "core/euno_shared.h"

/* What was found on the page that is being looked at. */
typedef struct EunoChain
{
	OffsetNumber root;
	OffsetNumber member;		/* the tuple to index */
} EunoChain;

typedef struct EunoHeapPage
{
	Page		page;			/* the copy, or pinned */
	PGAlignedBlock copy;
	int			nchains;
	double		ntuples;
	EunoChain	chains[MaxHeapTuplesPerPage];
} EunoHeapPage;

/* A scan, or a participant's part of one. */
typedef struct EunoHeapWalk
{
	Relation	heap;
	IndexInfo  *index_info;
	EunoHeapBlocks *blocks;
	EunoHeapBlocks own_blocks;	/* if nobody shares them */
	bool		progress;
	BufferAccessStrategy strategy;
	TransactionId oldest_xmin;
	EunoHeapPage *page;

	/* What expressions are evaluated with */
	EState	   *estate;
	TupleTableSlot *slot;
	ExprState  *predicate;
	bool		plain;			/* there are none, and few columns */
	int			nfixed;			/* if so: the table's first columns that have a
								 * fixed length */
	uint32		fixed_end;		/* where these end in a tuple without NULLs */
	Size		value_at;		/* where in the last tuple a value was */
} EunoHeapWalk;

/* blocks: to be shared with others, or NULL.  Ends with euno_heap_walk_end. */
extern void euno_heap_walk_begin(EunoHeapWalk *walk, Relation heap,
								 IndexInfo *index_info,
								 EunoHeapBlocks *blocks, bool progress);
extern void euno_heap_walk_end(EunoHeapWalk *walk);

/* Take the next chunk: blocks *first to *end - 1.  False if there is none. */
extern bool euno_heap_walk_next(EunoHeapWalk *walk, BlockNumber *first,
								BlockNumber *end);

/* Evaluate predicate and key for the chains of the walk's page. */
extern void euno_heap_index_page(EunoHeapWalk *walk, BlockNumber block,
								 EunoHeapCallback callback, void *arg);

/* Headers of a page's tuples, all at once, for a look at each. */
static inline void
euno_heap_prefetch(Page page, OffsetNumber max_offset)
{
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max_offset; offset++)
		euno_prefetch((char *) page +
					  ItemIdGetOffset(PageGetItemId(page, offset)));
}

#endif							/* EUNO_HEAPSCAN_H */
