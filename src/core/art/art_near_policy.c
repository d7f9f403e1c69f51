/*-------------------------------------------------------------------------
 *
 * art_near_policy.c
 *	  How deep a map of a radix tree's upper nodes is, and where.
 *
 * Decided for each node from what was drawn of the domain's uses and of the
 * tree's changes, without a look at the tree or a clock.
 *
 * A copy of a node spares a use that goes on to an inner node the look at the
 * node itself.  For this it takes room, of which a use's share is as large as
 * any other's: first come the nodes that are used at least as much as they are
 * large.  What they leave is for the rest, from the root on, as is all while
 * nothing has been measured yet.
 *
 * A child that is replaced has to be taken out of the maps, and named again by
 * the next one.  A node whose children are replaced more often than that pays is
 * not copied, neither for its uses nor to fill what is left: below it the map
 * ends.  Where nothing changes any more, later uses take the place of what was
 * drawn of the changes, and the node comes back.
 *
 * (STI-BT, section 8, raises and lowers its level C, at which the replicated part
 * of the tree ends, by the measured shares of reads and writes; all over the
 * tree at once.)
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near_policy.h"

/*
 * Fewer of those drawn than that may be chance; of fewer uses in all, shares
 * say nothing.  Tests make both less.
 */
#ifndef ART_LEAST_DRAWN
#define ART_LEAST_DRAWN	4
#define ART_LEAST_READS	64
#endif

/* A map is made anew for uses that are this many times as many as would do. */
#define SURE			3

/* The number of the first trace that is not below this one. */
static uint32_t
lower_bound(const uint64_t *traces, uint32_t n, uint64_t trace)
{
	uint32_t	low = 0;

	while (low < n)
	{
		uint32_t	middle = low + (n - low) / 2;

		if (traces[middle] < trace)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* How many of the uses drawn begin with the first n bytes of a trace. */
uint32_t
euno_art_near_reads(const ArtMeasure *measure, uint64_t trace, uint32_t n)
{
	uint64_t	rest;

	if (n == 0)
		return measure->nreads;
	if (n > ART_TRACE_BYTES)
		return 0;
	rest = UINT64_MAX >> 8 * n;
	return lower_bound(measure->reads, measure->nreads, trace | rest) -
		lower_bound(measure->reads, measure->nreads, trace & ~rest);
}

/*
 * How many of the changes drawn replaced a child of the node with this path.
 */
uint32_t
euno_art_near_changes(const ArtMeasure *measure, uint64_t trace, uint32_t n)
{
	uint64_t	of;

	if (n > ART_TRACE_BYTES)
		return 0;
	of = n == 0 ? 1 : (trace & ~(UINT64_MAX >> 8 * n)) | (n + 1);
	return lower_bound(measure->changes, measure->nchanges, of + 1) -
		lower_bound(measure->changes, measure->nchanges, of);
}

/* Of the uses on the way to a node, those that go on to an inner node. */
static uint64_t
spared(const ArtProspect *node)
{
	return node->children == 0 ? 0 :
		(uint64_t) node->reads * node->inners / node->children;
}

/* Is a node used so much that its copy is worth this many times its room? */
static bool
is_worth(const ArtProspect *node, uint32_t all_reads, uint64_t limit,
		 uint32_t times)
{
	uint64_t	gain = spared(node);

	return all_reads >= ART_LEAST_READS && gain >= times * ART_LEAST_DRAWN &&
		gain > times * node->changes &&
		gain * limit >= times * all_reads * node->bytes;
}

/* Shall a node have a copy, whatever else? */
bool
euno_art_near_earns(const ArtProspect *node, uint32_t all_reads,
					uint64_t limit)
{
	return is_worth(node, all_reads, limit, 1);
}

/*
 * Should a node have one that has none?  Chance would not have shown it so
 * often.
 */
bool
euno_art_near_missed(const ArtProspect *node, uint32_t all_reads,
					 uint64_t limit)
{
	return is_worth(node, all_reads, limit, SURE);
}

/* May a node's copy have room that is left?  Its uses need not be known. */
bool
euno_art_near_fills(const ArtProspect *node)
{
	return node->inners > 0 && 2 * node->inners >= node->children &&
		(node->changes < ART_LEAST_DRAWN || node->changes < spared(node));
}

/*
 * Is a map no longer what its domain uses?  "unserved": those uses that end at
 * a node that would earn a copy, now and when the map was made.
 */
bool
euno_art_near_outgrown(uint32_t reads, uint32_t unserved,
					   uint32_t unserved_first)
{
	return reads >= ART_LEAST_READS && unserved > unserved_first &&
		8 * (unserved - unserved_first) > reads;
}
