/*-------------------------------------------------------------------------
 *
 * art_near_make.c
 *	  Making a domain's map.
 *
 * First come the nodes that earn a copy by their uses, as far as these were
 * measured; then from the root, level by level, others as long as there is room
 * (art_near_policy.c).  src/README.md, "Near maps", says why a map may be seen,
 * and the tree changed, meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

typedef struct Make
{
	EunoContext *cx;
	EunoTree   *tree;
	ArtMap	   *map;
	int			domain;
	bool		no_memory;
	bool		no_room;		/* for some node that would fill what is left */
	uint64_t	limit;			/* bytes */
	uint32_t	base;			/* bytes that all keys have in common */
	uint32_t	names;			/* of nodes of the tree, in the map */
	ArtNode    *last;			/* of the map */
	ArtMeasure	measure;
} Make;

/* A node of the tree, for a slot at some depth of the map. */
typedef struct Candidate
{
	ArtNode    *node;
	uint32_t	depth;
	uint64_t	trace;			/* of its path */
	ArtType		type;			/* of a copy */
	uint8_t		path[ART_MAX_COMPOSITE];	/* from its depth on */
	ArtProspect prospect;
} Candidate;

/*
 * What a node's copy would be, and how the node is used.  "trace" is that of
 * what leads to its slot.  False: it is damaged.  Within an epoch.
 */
static bool
look_at(const Make *m, ArtRef ref, uint32_t depth, uint64_t trace,
		Candidate *to)
{
	ArtNode    *node = art_pointer(ref);
	uint32_t	level = art_level(node);
	ArtProspect *prospect = &to->prospect;
	ArtChildren children;
	uint32_t	slots;

	if (!art_is_sound(ref, depth))
		return false;
	to->node = node;
	to->depth = depth;
	euno_art_path_copy(node, depth, to->path);
	to->trace = euno_art_trace(trace, m->base, to->path, depth, level);
	euno_art_node_children(node, &children);
	prospect->children = children.n;
	prospect->inners = 0;
	for (uint32_t i = 0; i < children.n; i++)
		prospect->inners += art_is_node(children.child[i].ref);
	slots = prospect->inners + prospect->inners / 8;
	to->type = euno_art_node_type(slots < 256 ? slots : 256, 1);
	prospect->bytes = art_copy_size(to->type, level - depth);
	prospect->reads = euno_art_near_reads(&m->measure, to->trace,
										  level - m->base);
	prospect->changes = euno_art_near_changes(&m->measure, to->trace,
											  level - m->base);
	return true;
}

/* Copies a node, without children.  NULL: there is no room, or memory. */
static ArtNode *
copy_node(Make *m, const Candidate *from)
{
	uint32_t	level = art_level(from->node);
	ArtNode    *copy;

	if (m->map->bytes + from->prospect.bytes > m->limit)
	{
		m->no_room = true;
		return NULL;
	}
	copy = m->cx->env->alloc(m->tree->alloc_arg, m->domain,
							 from->prospect.bytes);
	m->no_memory = m->no_memory || copy == NULL;
	if (copy == NULL)
		return NULL;
	euno_art_node_init(copy, from->type, from->path, from->depth, level);
	art_copy_tail(copy)->next = NULL;
	art_copy_tail(copy)->path = from->trace;
	return copy;
}

/* From now on the copy is one of the map. */
static void
append(Make *m, ArtNode *copy)
{
	if (m->last != NULL)
		art_copy_tail(m->last)->next = copy;
	m->last = copy;
	euno_store64(&m->map->bytes, m->map->bytes +
				 art_copy_size(art_type(copy), art_segment_len(copy)));
}

/*
 * Puts a reference into the map under a node's lock: to the node with
 * ART_EXIT, or to a copy of it, whose name is then the node's.  "slot": where
 * the node is named; NULL: it is not yet.  While it is locked no one can
 * replace it who does not see what is in the map.  Within an epoch.
 */
static bool
name_node(Make *m, ArtNode *parent, uint8_t byte, ArtRef *slot, ArtRef ref,
		  ArtNode *copy)
{
	ArtNode    *node = art_pointer(ref);
	ArtChild	child = {ref | ART_EXIT, {0, 0}};
	bool		done = euno_lock_try(&node->lock);

	if (!done)
		return false;
	if (copy != NULL)
	{
		euno_store64(&copy->lock.word, ref);
		child.ref = art_node_ref(copy);
	}
	if (slot != NULL)
		euno_store64_release(slot, child.ref);
	else
		done = euno_art_node_add(parent, byte, &child);
	euno_lock_release_unchanged(&node->lock, m->cx->env);
	return done;
}

/* Copies a child of a node of the map.  As above; false if it has no copy. */
static bool
add_copy(Make *m, ArtNode *parent, uint8_t byte, ArtRef *slot, ArtRef ref,
		 const Candidate *child)
{
	ArtNode    *copy = copy_node(m, child);

	if (copy == NULL)
		return false;
	if (name_node(m, parent, byte, slot, ref, copy))
	{
		append(m, copy);
		return true;
	}
	m->cx->env->free(m->tree->alloc_arg, m->domain, copy,
					 child->prospect.bytes);
	return false;
}

/*
 * Could a slot's node earn a copy, if that were small and its uses all went
 * on?
 */
static bool
may_earn(const Make *m, uint32_t depth, uint64_t trace)
{
	ArtProspect best = {1, 1, 0,
	euno_art_near_reads(&m->measure, trace, depth - m->base), 0};

	return euno_art_near_earns(&best, m->measure.nreads, m->limit);
}

/* Does it?  If it is hardly used it is not looked at. */
static bool
earns(const Make *m, ArtRef ref, uint32_t depth, uint64_t trace,
	  Candidate *child)
{
	return may_earn(m, depth, trace) && look_at(m, ref, depth, trace, child) &&
		euno_art_near_earns(&child->prospect, m->measure.nreads, m->limit);
}

/*
 * Adds the children of a node of the map, if what it was made of is still
 * linked: only then what is found in that has not been retired before the
 * epoch.
 */
static void
expand(Make *m, ArtNode *copy)
{
	uint32_t	depth = art_level(copy) + 1;
	ArtChildren children;
	ArtRef		ref;
	uint64_t	version;

	euno_epoch_enter(m->cx->process);
	ref = euno_load64_acquire(&copy->lock.word);
	children.n = 0;
	if (ref != 0 &&
		euno_lock_read_or_leave(&((ArtNode *) art_pointer(ref))->lock, &version,
								m->cx->env, &m->cx->counters))
		euno_art_node_children(art_pointer(ref), &children);
	for (uint32_t i = 0; i < children.n; i++)
	{
		uint8_t		byte = children.bytes[i];
		ArtRef		child = children.child[i].ref;
		uint64_t	trace = art_copy_tail(copy)->path;
		Candidate	candidate;

		if (!art_is_node(child))
			continue;
		trace = art_trace_byte(trace, m->base, depth - 1, byte);
		m->names += (earns(m, child, depth, trace, &candidate) &&
					 add_copy(m, copy, byte, NULL, child, &candidate)) ||
			name_node(m, copy, byte, NULL, child, NULL);
	}
	euno_epoch_exit(m->cx->process);
}

/*
 * Copies what is named at the lower end of a node of the map, and may fill
 * what room is left.
 */
static void
fill(Make *m, ArtNode *copy)
{
	uint32_t	depth = art_level(copy) + 1;
	ArtChildren names;

	euno_epoch_enter(m->cx->process);
	euno_art_node_children(copy, &names);
	for (uint32_t i = 0; i < names.n && !m->no_room; i++)
	{
		uint8_t		byte = names.bytes[i];
		ArtRef		ref = names.child[i].ref;
		Candidate	child;
		ArtRef	   *slot;
		ArtRef		now;

		if ((ref & ART_TAG_MASK) != ART_EXIT)
			continue;
		slot = art_slot(copy, art_type(copy), byte, &now);
		if (now != ref)
			continue;
		if (look_at(m, ref & ~ART_EXIT, depth,
					art_trace_byte(art_copy_tail(copy)->path, m->base,
								   depth - 1, byte), &child) &&
			euno_art_near_fills(&child.prospect))
			(void) add_copy(m, copy, byte, slot, ref & ~ART_EXIT, &child);
	}
	euno_epoch_exit(m->cx->process);
}

/*
 * What is noted of the map's use, from now on: at first what was of the one
 * before, if its keys have as much in common.
 */
static bool
start_notes(Make *m)
{
	const ArtUses *before = m->map->old_uses;
	ArtUses    *uses = m->cx->env->alloc(m->tree->alloc_arg, m->domain,
										 sizeof(ArtUses));

	m->no_memory = uses == NULL;
	if (uses == NULL)
		return false;
	if (before != NULL && before->base != m->base)
		before = NULL;
	uses->next = NULL;
	uses->base = m->base;
	for (uint32_t i = 0; i < ART_USES; i++)
		euno_store64(&uses->drawn[i],
					 before == NULL ? 0 : euno_load64(&before->drawn[i]));
	euno_art_measure(uses, &m->measure);
	euno_store_ptr(&m->map->uses, uses);
	euno_store64(&m->map->bytes, sizeof(ArtUses));
	return true;
}

/*
 * The map's first node, which is seen by all from now on.  It is worth it if
 * any of its children is an inner node.
 */
static ArtNode *
start(Make *m, ArtNode **root)
{
	ArtNode    *copy = NULL;
	Candidate	first;
	ArtRef		ref;

	euno_epoch_enter(m->cx->process);
	ref = euno_load64_acquire(&art_body(m->tree)->root);
	if (art_is_node(ref))
	{
		m->base = art_level(art_pointer(ref));
		if (look_at(m, ref, 0, 0, &first) && first.prospect.inners > 0 &&
			start_notes(m))
			copy = copy_node(m, &first);
	}
	if (copy != NULL)
	{
		append(m, copy);
		euno_store_ptr(root, copy);
		if (euno_lock_try(&first.node->lock))
		{
			euno_store64_release(&copy->lock.word, ref);
			m->names++;
			euno_lock_release_unchanged(&first.node->lock, m->cx->env);
		}
	}
	euno_epoch_exit(m->cx->process);
	return copy;
}

static void
init(Make *m, EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	m->cx = cx;
	m->tree = tree;
	m->map = &near->maps[domain];
	m->domain = domain;
	m->no_memory = m->no_room = false;
	m->limit = art_map_limit(tree);
	m->names = 0;
	m->last = NULL;
	m->measure.nreads = m->measure.nchanges = 0;
}

/*
 * Makes a domain's map.  The mutex is held, there is no map.  False: there was
 * no memory for all of it.
 */
bool
euno_art_near_make(EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	ArtNode   **root = &near->roots[domain];
	bool		more = false;
	uint32_t	reads;
	ArtNode    *end;
	Make		m;

	init(&m, cx, tree, near, domain);
	euno_store64(&m.map->lost, 0);
	euno_store64(&m.map->bytes, 0);
	m.map->inners = euno_art_inners(tree);
	for (ArtNode *copy = start(&m, root); copy != NULL;
		 copy = art_copy_tail(copy)->next)
		expand(&m, copy);
	end = m.last;
	for (ArtNode *copy = euno_load_ptr(root); copy != NULL;
		 copy = art_copy_tail(copy)->next)
	{
		if (more)
			expand(&m, copy);
		fill(&m, copy);
		more = more || copy == end;
	}
	euno_store32(&m.map->names, m.names);
	m.map->unserved = euno_art_near_unserved(cx, tree, near, domain, &reads);
	return !m.no_memory;
}

/* Where a use's way through a map ends; 0 if not at a node of the tree's. */
static ArtRef
end_of(const Make *m, ArtNode *root, uint64_t trace, uint32_t *depth,
	   uint64_t *path)
{
	ArtRef		at = art_node_ref(root);

	*depth = 0;
	*path = 0;
	while (art_is_node(at))
	{
		ArtNode    *copy = art_pointer(at);
		uint32_t	n = art_level(copy) - m->base;
		uint8_t		byte;

		*path = art_copy_tail(copy)->path;
		if (n >= ART_TRACE_BYTES ||
			(n > 0 && (trace ^ *path) >> (64 - 8 * n) != 0))
			return 0;
		byte = (uint8_t) (trace >> (56 - 8 * n));
		*depth = art_level(copy) + 1;
		*path = art_trace_byte(*path, m->base, *depth - 1, byte);
		(void) art_slot(copy, art_type(copy), byte, &at);
	}
	return (at & ART_TAG_MASK) == ART_EXIT ? at & ~ART_EXIT : 0;
}

/*
 * How many of the uses drawn, of which *reads gets the number, end at a node
 * of the tree that should be in the domain's map.  The mutex is held.
 */
uint32_t
euno_art_near_unserved(EunoContext *cx, EunoTree *tree, ArtNear *near,
					   int domain, uint32_t *reads)
{
	ArtNode    *root = euno_load_ptr(&near->roots[domain]);
	uint32_t	unserved = 0;
	ArtRef		last = 0;
	Make		m;

	init(&m, cx, tree, near, domain);
	if (root != NULL)
	{
		m.base = art_level(root);
		euno_art_measure(m.map->uses, &m.measure);
	}
	euno_epoch_enter(cx->process);
	for (uint32_t i = 0; i < m.measure.nreads; i++)
	{
		Candidate	end;
		uint32_t	depth;
		uint64_t	path;
		ArtRef		ref = end_of(&m, root, m.measure.reads[i], &depth, &path);

		if (ref == 0 || ref == last)
			continue;
		last = ref;
		if (may_earn(&m, depth, path) && look_at(&m, ref, depth, path, &end) &&
			euno_art_near_missed(&end.prospect, m.measure.nreads, m.limit))
			unserved += end.prospect.reads;
	}
	euno_epoch_exit(cx->process);
	*reads = m.measure.nreads;
	return unserved;
}
