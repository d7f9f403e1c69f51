/*-------------------------------------------------------------------------
 *
 * art_insert.c
 *	  Putting an entry into the tree.
 *
 * "The ART of Practical Synchronization", appendix B.  At most two nodes are
 * locked, the upper one first.  All memory is allocated before.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* What is to be done with the entry. */
typedef struct Insert
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoEntry *entry;
	bool		no_split;
	ArtKey		key;
	ArtPlace	place;
	ArtBuild	build;
	ArtChildren children;
} Insert;

/* The entry's leaf, for a slot at this depth. */
static ArtRef
new_leaf(Insert *ins, uint32_t depth)
{
	return euno_art_build_leaf(&ins->build, ins->key.bytes, ins->key.len,
							   depth, ins->entry->payload,
							   ins->entry->payloadlen);
}

/*
 * A full node is replaced by a copy that has room: a larger one, unless many of
 * its children have been removed.  EUNO_OK; EUNO_STALE: look again;
 * EUNO_NO_MEMORY.
 */
static EunoStatus
grow(Insert *ins, uint8_t byte, ArtRef leaf)
{
	EunoContext *cx = ins->cx;
	ArtChildren *children = &ins->children;
	ArtNode    *node = art_pointer(ins->place.ref);
	uint32_t	level = art_level(node);
	uint32_t	ndead;
	ArtNode    *larger;
	ArtRef	   *slot;
	ArtRef		other;

	euno_art_node_children(node, children);
	ndead = children->ndead;
	larger = euno_art_build_node(&ins->build,
								 euno_art_node_type(children->n + 1 +
													children->n / 4),
								 ins->key.bytes, ins->place.depth, level);
	if (larger == NULL || !euno_art_reserve(cx, ins->tree, 1 + ndead))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot != NULL && !euno_art_lock_node(cx, &ins->place))
	{
		euno_lock_release_unchanged(ins->place.lock, cx->env);
		slot = NULL;
	}
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, 1 + ndead);
		return EUNO_STALE;
	}

	/* without versions, others may have been here since */
	euno_art_node_children(node, children);
	if (children->ndead != ndead ||
		children->n >= euno_art_layouts[art_type(larger)].capacity ||
		art_slot(node, art_type(node), byte, &other) != NULL)
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		euno_lock_release_unchanged(ins->place.lock, cx->env);
		euno_art_unreserve(cx, ins->tree, 1 + ndead);
		return EUNO_STALE;
	}
	for (uint32_t i = 0; i < children->n; i++)
		(void) euno_art_node_add(larger, children->bytes[i], children->refs[i]);
	(void) euno_art_node_add(larger, byte, leaf);
	euno_store64_release(slot, art_node_ref(larger));
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(ins->place.lock, cx->env);
	euno_lock_release_obsolete(&node->lock, cx->env);
	euno_art_retire_ref(cx, ins->tree, ins->place.ref);
	for (uint32_t i = 0; i < ndead; i++)
		euno_art_retire_ref(cx, ins->tree, children->dead[i]);
	return EUNO_OK;
}

/* The slot's node has no slot for the byte. */
static EunoStatus
insert_gap(Insert *ins)
{
	EunoContext *cx = ins->cx;
	ArtNode    *node = art_pointer(ins->place.ref);
	uint32_t	level = art_level(node);
	uint8_t		byte = ins->key.bytes[level];
	bool		room = euno_art_node_room(node);
	ArtRef		leaf;
	ArtRef		other;

	if (!room && ins->no_split && art_type(node) > ART_N2)
		return EUNO_FULL;
	leaf = new_leaf(ins, level + 1);
	if (leaf == 0)
		return EUNO_NO_MEMORY;
	if (!room)
		return grow(ins, byte, leaf);
	if (!euno_art_lock_node(cx, &ins->place))
		return EUNO_STALE;
	if (art_slot(node, art_type(node), byte, &other) != NULL ||
		!euno_art_node_add(node, byte, leaf))
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		return EUNO_STALE;
	}
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(&node->lock, cx->env);
	return EUNO_OK;
}

/*
 * Puts a new node with two children into the slot: what the slot held, under
 * the byte "other", and the entry.  They part at byte "level".
 *
 * What was there is not touched: it goes on saying where it belongs, so a
 * reader may come to it by either way (paper, section 4.2, figure 4).
 */
static EunoStatus
insert_above(Insert *ins, uint32_t level, uint8_t other, ArtRef old)
{
	EunoContext *cx = ins->cx;
	ArtNode    *node = euno_art_build_node(&ins->build, ART_N2, ins->key.bytes,
										   ins->place.depth, level);
	ArtRef	   *slot;
	ArtRef		leaf;

	if (node == NULL)
		return EUNO_NO_MEMORY;
	leaf = new_leaf(ins, level + 1);
	if (leaf == 0)
		return EUNO_NO_MEMORY;
	(void) euno_art_node_add(node, other, old);
	(void) euno_art_node_add(node, ins->key.bytes[level], leaf);
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot == NULL)
		return EUNO_STALE;
	euno_store64_release(slot, art_node_ref(node));
	art_count(cx, ins->tree, 1, 1);
	(void) euno_add64(&art_body(ins->tree)->splits, 1);
	euno_lock_release(ins->place.lock, cx->env);
	return EUNO_OK;
}

/* The slot's node has another path. */
static EunoStatus
insert_path(Insert *ins)
{
	ArtNode    *node = art_pointer(ins->place.ref);
	uint32_t	at = ins->place.mismatch;
	uint32_t	from = art_level(node) - art_segment_len(node);

	return insert_above(ins, at, euno_load8(art_segment(node) + at - from),
						ins->place.ref);
}

/* The slot holds nothing, or what was removed. */
static EunoStatus
insert_empty(Insert *ins)
{
	EunoContext *cx = ins->cx;
	bool		retire = art_is_leaf(ins->place.ref);
	ArtRef		leaf = new_leaf(ins, ins->place.depth);
	ArtRef	   *slot;

	if (leaf == 0 || (retire && !euno_art_reserve(cx, ins->tree, 1)))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, retire);
		return EUNO_STALE;
	}
	euno_store64_release(slot, leaf);
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(ins->place.lock, cx->env);
	if (retire)
		euno_art_retire_ref(cx, ins->tree, ins->place.ref);
	return EUNO_OK;
}

/* The slot holds a leaf, or nothing. */
static EunoStatus
insert_leaf(Insert *ins)
{
	ArtRef		old = ins->place.ref;
	uint32_t	depth = ins->place.depth;
	ArtTail		tail;
	uint8_t		other;
	uint32_t	at;

	if (art_is_absent(old))
		return insert_empty(ins);
	if (!euno_art_leaf_tail(old, depth, &tail))
		return EUNO_CORRUPT;
	at = euno_art_leaf_mismatch(&tail, depth, &ins->key);
	if (at == ins->key.len || at == depth + tail.n)
		return at == ins->key.len && at == depth + tail.n ? EUNO_EXISTS :
			EUNO_CORRUPT;
	euno_copy_out(&other, tail.bytes + at - depth, 1);
	if (!art_is_leaf(old))
		old = euno_art_inline_skip(old, at + 1 - depth);
	return insert_above(ins, at, other, old);
}

/*
 * See EunoTreeOps.  With no_split, EUNO_FULL when a node of four or more
 * children is full.  No locks on entry or return.
 */
EunoStatus
euno_art_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split)
{
	EunoStatus	status;
	Insert		ins;

	ins.cx = cx;
	ins.tree = tree;
	ins.entry = entry;
	ins.no_split = no_split;
	euno_art_key_entry(entry, &ins.key);
	euno_art_build_start(&ins.build, cx, tree);
	euno_epoch_enter(cx->process);
	for (uint32_t attempts = 0;; attempts++)
	{
		status = euno_art_descend(cx, tree, &ins.key, art_body(tree)->rowex ||
								  attempts >= ART_PATIENCE, &ins.place);
		if (status == EUNO_OK)
		{
			if (ins.place.where == ART_AT_GAP)
				status = insert_gap(&ins);
			else if (ins.place.where == ART_AT_PATH)
				status = insert_path(&ins);
			else
				status = insert_leaf(&ins);
			if (status != EUNO_OK)
				euno_art_build_undo(&ins.build);
		}
		if (status != EUNO_STALE)
			break;
		cx->counters.restarts++;
	}
	euno_epoch_exit(cx->process);
	if (ins.build.n > 0 && euno_load_ptr(&art_body(tree)->closed) != NULL)
		euno_art_reclaim(cx, tree, false);
	return status;
}
