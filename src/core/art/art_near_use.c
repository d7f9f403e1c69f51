/*-------------------------------------------------------------------------
 *
 * art_near_use.c
 *	  What is measured of the use of a radix tree's maps, and of its nodes.
 *
 * Of some descents it is noted what they sought, and counted how many nodes they
 * came by, in the own domain and elsewhere; of some nodes that were replaced,
 * where they were.  A domain's notes are in its own memory, each at a random
 * place, over whatever was there: so they are of the latest, nothing is
 * counted up by many processes, and old ones fade.
 *
 * *Invariant.* Nothing but speed depends on a note.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

/*
 * One replaced node in this many is noted: eight times as many as uses, for
 * about so much more it costs to take a name out of all maps, and to name the
 * next node.
 */
#define CHANGE_SAMPLE	(EUNO_SAMPLE / 8)

/* Adds the bytes [from, to) of a path to the trace of what is before them. */
uint64_t
euno_art_trace(uint64_t trace, uint32_t base, const uint8_t *path,
			   uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		trace = art_trace_byte(trace, base, i, path[i]);
	return trace;
}

/* Writes over a note, at random. */
static void
note(EunoContext *cx, ArtUses *uses, uint64_t trace)
{
	uint64_t	x = (cx->phase + cx->counters.descents +
					 ((uint64_t) cx->process->slot << 32)) *
		UINT64_C(0x9E3779B97F4A7C15);

	euno_store64(&uses->drawn[(x >> 32) * ART_USES >> 32], trace);
}

/* Notes what a process of the context's domain seeks.  Within an epoch. */
static void
note_use(EunoContext *cx, ArtNear *near, const ArtKey *key)
{
	ArtUses    *uses = euno_load_ptr_acquire(&near->maps[cx->domain].uses);
	ArtNode    *root = euno_load_ptr_acquire(&near->roots[cx->domain]);

	if (uses == NULL || root == NULL || art_level(root) >= key->len ||
		art_path_match(root, key, 0) != art_level(root))
		return;
	note(cx, uses, euno_art_trace(ART_TRACE_USE, (uint32_t) uses->base,
								  key->bytes, 0, key->len));
}

/*
 * Notes that a node was replaced whose slot so many bytes of the path lead to.
 * Within an epoch.
 */
void
euno_art_note_change(EunoContext *cx, ArtMap *map, const ArtKey *path,
					 uint32_t depth)
{
	ArtUses    *uses = euno_load_ptr_acquire(&map->uses);
	uint32_t	n;

	if (uses == NULL || depth <= uses->base ||
		(!cx->count_all &&
		 (cx->phase + (uint32_t) cx->counters.descents) % CHANGE_SAMPLE != 0))
		return;
	n = depth - 1 - (uint32_t) uses->base;	/* bytes of its holder's path */
	if (n <= ART_TRACE_BYTES)
		note(cx, uses, euno_art_trace(n + 1, (uint32_t) uses->base,
									  path->bytes, 0, depth - 1));
}

/* What was noted, sorted.  The notes stay where they are. */
void
euno_art_measure(const ArtUses *uses, ArtMeasure *measure)
{
	measure->nreads = measure->nchanges = 0;
	for (uint32_t i = 0; i < ART_USES; i++)
	{
		uint64_t	trace = euno_load64(&uses->drawn[i]);

		if ((trace & 0xFF) == ART_TRACE_USE)
			measure->reads[measure->nreads++] = trace;
		else if (trace != 0)
			measure->changes[measure->nchanges++] = trace;
	}
	euno_sort64(measure->reads, measure->nreads);
	euno_sort64(measure->changes, measure->nchanges);
}

/* Counts what one descent came by, of a map and of the tree, for this many. */
void
euno_art_count_nodes(EunoContext *cx, uint32_t weight, uint32_t copies,
					 uint32_t nodes)
{
	cx->counters.inner_nodes += (uint64_t) weight * (copies + nodes);
	if (cx->domain == ART_DOMAIN)
		return;
	cx->counters.remote += weight;
	cx->counters.remote_inner_nodes += (uint64_t) weight * nodes;
}

/*
 * A descent to a key that stands for this many in what is counted by domain.
 * Goes down once more, as readers without versions do.  Within an epoch.
 */
void
euno_art_sample(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				bool from_root, uint32_t weight)
{
	ArtNear    *near = euno_load_ptr_acquire(&art_body(tree)->near);
	uint32_t	depth = 0;
	uint32_t	copies = 0;
	uint32_t	nodes = 0;
	uint64_t	version;
	ArtRef		ref = 0;

	if (near != NULL && cx->domain > 0 && !from_root)
	{
		note_use(cx, near, key);
		ref = euno_art_near_find(cx, tree, key, &depth, &version);
		copies = euno_art_near_copies(cx, near, key);
	}
	if (ref == 0)
	{
		ref = euno_load64_acquire(&art_body(tree)->root);
		depth = 0;
	}
	while (art_is_node(ref))
	{
		ArtNode    *node = art_pointer(ref);
		uint32_t	level = art_ref_level(ref);
		ArtType		type = art_ref_type(ref);

		nodes++;
		ref = 0;
		if (level < key->len && art_path_match(node, key, depth) == level)
			(void) art_slot(node, type, key->bytes[level], &ref);
		depth = level + 1;
	}
	euno_art_count_nodes(cx, weight, copies, nodes);
}
