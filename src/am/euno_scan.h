/*-------------------------------------------------------------------------
 *
 * euno_scan.h
 *	  What the files of index scans share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SCAN_H
#define EUNO_SCAN_H

#include "nodes/execnodes.h"
#include "storage/buf.h"

#include "am/euno_operation.h"
#include "am/euno_predicate.h"

/*
 * Most scans want one row or a few; others want all of a leaf.  The first
 * batch of a scan is small, or as large as the same scan needed last time;
 * each later one is larger than the one before.
 */
#define EUNO_FIRST_BATCH 32
#define EUNO_MOST_FIRST_BATCH 256
#define EUNO_FULL_BATCH	1024

/* How many short ranges one batch takes in: the first batch, and at most. */
#define FIRST_PARTS 4
#define EUNO_FULL_PARTS	64

/*
 * How many rows to look ahead into the heap: enough to hide the waits for
 * memory, few enough to stay in the first-level cache.
 */
#define EUNO_AHEAD	16

/* How many of them, if they are side by side on a page. */
#define EUNO_AHEAD_NEAR	6

/* How many rows' pages to look for at a time. */
#define EUNO_AHEAD_GROUP 4

/* Items before these have been asked for; a ring of the pages' buffers. */
typedef struct EunoAhead
{
	bool		wanted;			/* the rows are all over the heap */
	bool		near;			/* side by side, and their tuples are wide */
	uint32		pages;
	uint32		tuples;
	Buffer		buffer[EUNO_AHEAD];
} EunoAhead;

typedef struct EunoDirect EunoDirect;

/* One batch and the place in the index that it came from. */
typedef struct EunoWindow
{
	EunoCursor	cursor;
	EunoMoment	read;			/* before the batch was */
	uint32		nitems;
	int32		pos;			/* the item last returned; -1 or nitems:
								 * outside */
	bool		forward;		/* items ascend */
	bool		any_killed;
	bool		sifted;			/* no item of the sieve's length has to be judged */
	uint32		capacity;		/* of the arrays: EUNO_FIRST_BATCH to
								 * EUNO_FULL_BATCH */
	EunoTid    *tids;
	bool	   *killed;			/* valid if any_killed */
	EunoItemKey *keys;			/* NULL until keys are wanted, as buf */
	uint8_t    *buf;
	uint32		formed;			/* items whose index tuples were made */
	uint32		used;			/* of "tuples", if any were */
	uint32	   *places;			/* where in it; 0: it has to be made alone */
	char	   *tuples;			/* NULL until some are made, as places */
	uint32		run;			/* the first of some that may be returned
								 * directly (euno_direct.c) */
	uint32		run_length;
	uint32		looked;			/* the first of some about which the visibility
								 * map was asked */
	uint32		nlooked;		/* how many, 64 at most */
	uint64		visible;		/* which of them everybody sees */
	EunoAhead	ahead;

	/*
	 * Scans with parts: the batch is of all parts from first to last, entire;
	 * or of one part, of which the cursor says how far it is read.
	 */
	bool		placed;			/* first and last are set */
	bool		entire;
	EunoScanPart first;			/* in index order */
	EunoScanPart last;
	uint32		nparts;			/* if entire */
	uint32		part_end[EUNO_FULL_PARTS];	/* items of a part end here */
} EunoWindow;

typedef struct EunoScan
{
	EunoIndex  *idx;
	EunoScanPlan *plan;
	EunoScanRange range;		/* of the current window's part, if not entire */
	MemoryContext context;
	EunoWindow *current;
	EunoWindow *spare;			/* for mark; allocated on first use */
	EunoWindow *marked_window;	/* NULL: none, or in the current one */
	int32		marked_pos;
	bool		is_marked;
	bool		begun;			/* a tuple was asked for since the last rescan */
	bool		want_keys;
	bool		use_hazards;
	bool		hazard_set;
	bool		pins;			/* we pin the pages of its rows */
	BlockNumber pinned;			/* of the row last returned, if so */
	BlockNumber coming;			/* the page after it, if it was asked for */
	bool		plain;			/* begun, pins, and wants no keys: every item of
								 * its windows is a result as it is */
	bool		unread;			/* begun, and nobody reads the columns of what it
								 * returns: its windows are without keys */
	bool		looked;			/* for its reader */
	uint32		rows;			/* how many were found before it has looked */
	IndexTuple	empty;			/* what it returns if nobody does, or NULL */
	EunoDirect *direct;			/* if its node has our function, or NULL */
	bool		ahead_known;	/* look_ahead is set */
	bool		look_ahead;
	uint32		distance;		/* how many rows to look ahead */
	uint32		batch;			/* how many entries the next read asks for */
	uint32		first_batch;	/* how many the first one of a range does */
	uint32		reads;			/* windows, since the scan began */
	uint32		parts;			/* of how many parts the next read may be */
	uint32		first_parts;	/* of how many the first one may */
	int			key_patience;	/* > 0: parts may be looked up several at once */
	EunoPredicate predicate;
	EunoSieve	sieve;			/* keylen 0: none */
	bool		sieve_decides;

	/*
	 * Entries with equal keys have one key in a window.  NULL: none of what
	 * the windows hold.
	 */
	const uint8_t *judged;		/* that was held against the plan last */
	bool		admitted;		/* what came out */

	/* index-only scans: room for a tuple that is made alone */
	IndexTuple	itup;
	uint32		itup_size;
	const uint8_t *itup_key;	/* the key it was made of, or NULL, as above */
} EunoScan;

/* ---- euno_window.c ---- */

extern EunoWindow *euno_window_make(EunoScan *so);
extern bool euno_window_is_large(const EunoWindow *window);
extern void euno_window_drop_copies(EunoWindow *window);

/* A scan of a range ends: did its first batch have the right size? */
extern void euno_window_learn(EunoScan *so);

/* Puts the current window before the first part of a scan. */
extern void euno_window_restart(EunoScan *so);

/*
 * What the scan's hazard names has been used.  Taken back before comparators
 * or operators are called: these may wait for locks, and VACUUM, with locks
 * that others want, would wait for the hazard.
 */
static inline void
euno_scan_clear_hazard(EunoScan *so)
{
	if (so->hazard_set)
	{
		euno_hazard_clear(so->idx->cx.process);
		so->hazard_set = false;
	}
}

/*
 * Takes the hazard back, and removes what was found dead in the current
 * window, before it is left.  The scan keys' arguments may be gone
 * (euno_scan_plan_keep).
 */
extern void euno_window_leave(IndexScanDesc scan);

/*
 * Reads the next batch in the given direction into the current window.  False
 * at the end of the scan.
 */
extern bool euno_window_read(IndexScanDesc scan, bool forward);

/*
 * Is an item of the window one of the scan's?  What the range is not exact
 * about.  May call operators, and these may announce other TIDs than ours.
 */
static inline bool
euno_window_admits(EunoScan *so, const EunoWindow *window,
				   const EunoItemKey *item)
{
	const uint8_t *key = window->buf + item->offset;

	if (so->range.exact)
		return true;
	if (window->sifted && item->keylen == so->sieve.keylen)
		return true;
	if (key != so->judged)
	{
		so->admitted = euno_scan_matches(so->plan, key, item->keylen);
		so->judged = key;
	}
	return so->admitted;
}

/* ---- euno_ahead.c ---- */

/* To be called when a window has been read. */
extern void euno_ahead_window(IndexScanDesc scan);
extern void euno_ahead_step(IndexScanDesc scan, EunoWindow *window);
extern void euno_ahead_page(EunoScan *so, EunoWindow *window, Buffer buffer);
extern void euno_ahead_near(IndexScanDesc scan, EunoWindow *window,
							Buffer buffer);

/* ---- euno_tuple.c ---- */

extern void euno_tuple_form(IndexScanDesc scan, EunoWindow *window);

/* ---- euno_consumer.c: for whom a scan reads ---- */

/*
 * Looks for the scan's node, once, when a window has been read, and begins what
 * follows from what is found.
 */
extern void euno_consumer_find(IndexScanDesc scan);

/* ---- euno_direct.c ---- */

/*
 * From its next row on, the scan's node gets them from its windows.  Not in
 * serializable transactions, which have to lock the pages that they read.
 */
extern void euno_direct_take(IndexScanDesc scan, PlanState *node);

/* ---- euno_unread.c: index-only scans whose columns nobody reads ---- */

/* Brings no columns from now on, and copies no keys from the next window on. */
extern void euno_unread_take(IndexScanDesc scan);

/*
 * Before the first tuple of a scan, which may have been rescanned: may do
 * without keys, if that is known by now.
 */
extern void euno_unread_begin(IndexScanDesc scan);
extern bool euno_unread_visible(IndexScanDesc scan, EunoTid tid);

/* ---- euno_kill.c ---- */

extern void euno_kill_dead_items(IndexScanDesc scan);

/* ---- euno_sharedscan.c: scans that several processes share ---- */

/*
 * Waits until it is this process's turn, and puts the current window where the
 * last one left off.  False if the scan has ended.  Pairs with
 * euno_shared_scan_pass, which says where that is now.
 */
extern bool euno_shared_scan_take(IndexScanDesc scan, bool forward);
extern void euno_shared_scan_pass(IndexScanDesc scan, bool forward, bool more);

/* ---- euno_recent.c ---- */

/*
 * May a scan's rows be fetched by pages that we pin?  Once for every rescan.
 */
extern bool euno_recent_begin(IndexScanDesc scan);

/* Pins the page of the row that is about to be returned; may read it. */
extern void euno_recent_pin(IndexScanDesc scan, BlockNumber block);

/*
 * The buffer that a page is in, as it seems; it is asked for from the kernel,
 * and InvalidBuffer, if it is in none.  Only after euno_recent_begin.
 */
extern Buffer euno_recent_find(Relation heap, BlockNumber block);

#endif							/* EUNO_SCAN_H */
