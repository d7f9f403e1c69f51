/*-------------------------------------------------------------------------
 *
 * bpt_read.h
 *	  One call that reads a batch of a range.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_READ_H
#define BPT_READ_H

#include "core/bptree/bpt.h"

typedef struct BptRead
{
	EunoContext *cx;
	EunoTree   *tree;
	EunoCursor *cursor;
	EunoBatch  *batch;
	BptPlace	place;
	BptGap		stop;			/* where copying ended */
	uint32_t	used;			/* of batch->buf */
	bool		one_key;		/* the range is all that starts with one key */
	uint64_t	stamp;			/* the tree's, from before anything was read */
} BptRead;

/*
 * bpt_copy.c: copies the entries between two gaps of the place's leaf.  True
 * if all fit; otherwise rd->stop is the gap that was reached.
 */
extern bool euno_bpt_copy_range(BptRead *rd, const BptGap *a, const BptGap *b,
								bool forward);

#endif							/* BPT_READ_H */
