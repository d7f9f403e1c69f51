/*-------------------------------------------------------------------------
 *
 * art_insert.c
 *	  Putting an entry into the tree.
 *
 * "The ART of Practical Synchronization", appendix B.  At most two nodes are
 * locked here, the upper one first.  All memory is allocated before.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* Tests make it 1, for nodes of all sizes. */
#ifndef ART_STEPS
#define ART_STEPS	4
#endif

/* The sizes that nodes grow to; tests have others, and 256. */
#ifndef ART_GROWN
#define ART_GROWN	5, 10, 16, 29, 50, 94, 148, 223, 256
#endif

/* What is to be done with the entry. */
typedef struct Insert
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoEntry *entry;
	bool		no_split;
	uint64_t	stamp;			/* the tree's, before anything was locked */
	ArtKey		key;
	ArtPlace	place;
	uint32_t	at;				/* AT_GAP: the slot that the byte would get */
	ArtBuild	build;
	ArtCopy		copy;
} Insert;

/* The entry's leaf, for a slot of this many words at this depth. */
static inline bool
new_leaf(Insert *ins, uint32_t depth, uint32_t words, ArtChild *leaf)
{
	if (ins->entry->payloadlen == 0 &&
		ins->key.len - depth <= art_inline_max(words))
	{
		art_key_inline(&ins->key, depth, leaf);
		return true;
	}
	return euno_art_build_leaf(&ins->build, ins->key.bytes, ins->key.len,
							   depth, ins->entry->payload,
							   ins->entry->payloadlen, words, leaf);
}

/*
 * Slots for a node that grows to so many children.  Each size it goes through
 * costs a copy, and memory: in a tree of random keys all nodes of a level grow
 * at the same time, so what they leave is too small for any of them.  So these
 * are fewer than there are types.
 */
static uint32_t
grown(uint32_t nchildren)
{
	static const uint16_t sizes[] = {ART_GROWN};
	uint32_t	i = 0;

	while (sizes[i] < 256 && sizes[i] < nchildren + nchildren / 4)
		i++;
	return sizes[i];
}

/*
 * The same where the insert before came to this node, too, and the byte is
 * behind those of all its children, as ascending keys' are: as many as it will
 * have if they go on in such steps up to the last byte, and an eighth of what
 * is yet to come.  They may also end here, so no more than ART_STEPS times
 * what there were, or an eighth more than nodes of this level have had lately
 * when they grew so.
 */
static uint32_t
grown_by_steps(EunoContext *cx, const ArtChildren *children, uint8_t byte,
			   uint32_t level)
{
	uint32_t	n = children->n;
	uint32_t	left = 255U - byte;
	uint32_t	steps = left * (n - 1) / (byte - children->bytes[0]);
	uint32_t	wanted = n + (steps + steps / 8 < left ? steps + steps / 8 : left);
	uint32_t	most = ART_STEPS * (n - 1);

	if (cx->grown_level != level || cx->grown_at < n)
		cx->grown_at = (uint16_t) n;
	else if (most < cx->grown_at + cx->grown_at / 8U)
		most = cx->grown_at + cx->grown_at / 8U;
	cx->grown_level = (uint16_t) level;
	cx->grown_at -= (uint16_t) ((cx->grown_at - n) / 8);
	if (wanted > most)
		wanted = most;
	return wanted > n ? wanted : n;
}

/*
 * Slots for the node that replaces a full one; the copy has its children, and
 * the new one.
 */
static uint32_t
capacity(const Insert *ins, uint8_t byte)
{
	const ArtChildren *children = &ins->copy.from;
	const EunoLast *last = &ins->cx->last;
	uint32_t	n = children->n;

	if (n > 1 && byte > children->bytes[n - 2] &&
		last->leaf == art_pointer(ins->place.ref) && last->stamp == ins->stamp)
		return grown_by_steps(ins->cx, children, byte,
							  art_level(art_pointer(ins->place.ref)));
	return grown(n);
}

/*
 * A full node is replaced by a copy that has room: a larger one, unless many
 * of its children have been removed.  EUNO_OK; EUNO_STALE: look again;
 * EUNO_NO_MEMORY.
 */
static EunoStatus
grow(Insert *ins)
{
	EunoContext *cx = ins->cx;
	ArtCopy    *copy = &ins->copy;
	ArtNode    *node = art_pointer(ins->place.ref);
	uint32_t	level = art_level(node);
	uint32_t	unlinked;
	uint8_t		byte = ins->key.bytes[level];
	ArtChild	leaf;
	ArtRef	   *slot;
	ArtRef		other;

	euno_art_copy_look(copy, node);
	if (!new_leaf(ins, level + 1, ART_WORDS, &leaf))
		return EUNO_NO_MEMORY;
	euno_art_copy_add(copy, byte, &leaf);
	if (!euno_art_copy_build(&ins->build, copy,
							 euno_art_choose(&copy->from, level + 1,
											 capacity(ins, byte)),
							 ins->key.bytes, ins->place.depth, level))
		return EUNO_NO_MEMORY;
	unlinked = 1 + euno_art_copy_unlinks(copy);
	if (!euno_art_reserve(cx, ins->tree, unlinked))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot != NULL && !euno_art_lock_node(cx, &ins->place))
	{
		euno_lock_release_unchanged(ins->place.lock, cx->env);
		slot = NULL;
	}

	/* without versions, others may have been here since */
	if (slot != NULL && ins->place.rowex &&
		(!euno_art_copy_holds(copy, node) ||
		 art_slot(node, art_type(node), byte, &other) != NULL))
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		euno_lock_release_unchanged(ins->place.lock, cx->env);
		slot = NULL;
	}
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, unlinked);
		return EUNO_STALE;
	}
	euno_store64_release(slot, art_node_ref(copy->node));
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(ins->place.lock, cx->env);
	euno_lock_release_obsolete(&node->lock, cx->env);
	euno_art_forget(cx, ins->tree, &ins->key, ins->place.depth, node);
	euno_art_note_last(cx, node, copy->node, ins->stamp, &ins->key);
	euno_art_retire_ref(cx, ins->tree, ins->place.ref);
	euno_art_copy_retire(cx, ins->tree, copy);
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
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	ArtChild	leaf;
	ArtRef		other;

	if (ins->at == ART_NO_SLOT)
		return ins->no_split && layout->capacity >= 4 ? EUNO_FULL : grow(ins);
	if (!new_leaf(ins, level + 1, layout->words, &leaf))
		return EUNO_NO_MEMORY;
	if (!euno_art_lock_node(cx, &ins->place))
		return EUNO_STALE;

	/* without versions, others may have been here since */
	if (ins->place.rowex &&
		(art_slot(node, art_type(node), byte, &other) != NULL ||
		 (ins->at = euno_art_node_place(node, byte)) == ART_NO_SLOT))
	{
		euno_lock_release_unchanged(&node->lock, cx->env);
		return EUNO_STALE;
	}
	art_node_put(node, art_type(node), art_children(node), ins->at, byte, &leaf);
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(&node->lock, cx->env);
	euno_art_note_last(cx, node, node, ins->stamp, &ins->key);
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
insert_above(Insert *ins, uint32_t level, uint8_t other, const ArtChild *old)
{
	EunoContext *cx = ins->cx;
	ArtCopy    *copy = &ins->copy;
	ArtRef	   *slot;
	ArtChild	leaf;

	if (!new_leaf(ins, level + 1, ART_WORDS, &leaf))
		return EUNO_NO_MEMORY;
	copy->from.n = copy->from.ndead = 0;
	euno_art_copy_add(copy, other, old);
	euno_art_copy_add(copy, ins->key.bytes[level], &leaf);
	if (!euno_art_copy_build(&ins->build, copy,
							 euno_art_choose(&copy->from, level + 1, 2),
							 ins->key.bytes, ins->place.depth, level) ||
		!euno_art_reserve(cx, ins->tree, copy->nreplaced))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, copy->nreplaced);
		return EUNO_STALE;
	}
	euno_store64_release(slot, art_node_ref(copy->node));
	art_count(cx, ins->tree, 1, 1);
	euno_lock_release(ins->place.lock, cx->env);
	euno_art_note_last(cx, ins->place.holder, ins->place.holder, ins->stamp,
					   &ins->key);
	euno_art_copy_retire(cx, ins->tree, copy);
	return EUNO_OK;
}

/* The slot's node has another path. */
static EunoStatus
insert_path(Insert *ins)
{
	ArtNode    *node = art_pointer(ins->place.ref);
	uint32_t	at = ins->place.mismatch;
	uint32_t	from = art_level(node) - art_segment_len(node);
	ArtChild	old = {ins->place.ref, {0, 0}};

	return insert_above(ins, at, euno_load8(art_segment(node) + at - from),
						&old);
}

/* The slot holds nothing, or what was removed. */
static EunoStatus
insert_empty(Insert *ins)
{
	EunoContext *cx = ins->cx;
	bool		retire = art_is_leaf(ins->place.ref);
	ArtChild	leaf;
	ArtRef	   *slot;

	if (ins->entry->payloadlen == 0 &&
		ins->key.len - ins->place.depth <= art_inline_max(1))
		art_key_inline(&ins->key, ins->place.depth, &leaf);
	else if (!euno_art_build_leaf_for(&ins->build, ins->key.bytes, ins->key.len,
									  ins->entry->payload,
									  ins->entry->payloadlen, &ins->place,
									  &leaf))
		return EUNO_NO_MEMORY;
	if (retire && !euno_art_reserve(cx, ins->tree, 1))
		return EUNO_NO_MEMORY;
	slot = euno_art_lock_slot(cx, ins->tree, &ins->key, &ins->place);
	if (slot == NULL)
	{
		euno_art_unreserve(cx, ins->tree, retire);
		return EUNO_STALE;
	}
	euno_store64_release(slot, leaf.ref);
	art_count(cx, ins->tree, 1, 0);
	euno_lock_release(ins->place.lock, cx->env);
	euno_art_note_last(cx, ins->place.holder, ins->place.holder, ins->stamp,
					   &ins->key);
	if (retire)
		euno_art_retire_ref(cx, ins->tree, ins->place.ref);
	return EUNO_OK;
}

/* The slot holds a leaf, or nothing. */
static EunoStatus
insert_leaf(Insert *ins)
{
	ArtChild	old = art_child(ins->place.ref, ins->place.slot);
	uint32_t	depth = ins->place.depth;
	ArtTail		tail;
	uint8_t		other;
	uint32_t	at;

	if (art_is_absent(old.ref))
		return insert_empty(ins);
	if (!euno_art_leaf_tail(&old, depth, &tail))
		return EUNO_CORRUPT;
	at = euno_art_leaf_mismatch(&tail, depth, &ins->key);
	if (at == ins->key.len || at == depth + tail.n)
		return at == ins->key.len && at == depth + tail.n ? EUNO_EXISTS :
			EUNO_CORRUPT;
	euno_copy_out(&other, tail.bytes + at - depth, 1);
	if (!art_is_leaf(old.ref))
		euno_art_inline(tail.inlined + at + 1 - depth, depth + tail.n - at - 1,
						&old);
	return insert_above(ins, at, other, &old);
}

/*
 * Finds the slot where the entry belongs.  As euno_art_descend.  A node that is
 * full has to be replaced, and so its holder to be known.
 */
static inline EunoStatus
find(Insert *ins, bool rowex)
{
	for (bool from_root = false;; from_root = true)
	{
		ArtPlace   *place = &ins->place;
		EunoStatus	status = euno_art_descend(ins->cx, ins->tree, &ins->key, rowex,
											  from_root, place);

		if (status != EUNO_OK || place->where != ART_AT_GAP)
			return status;
		ins->at = euno_art_node_place(art_pointer(place->ref),
									  ins->key.bytes[art_ref_level(place->ref)]);
		if (!place->near || ins->at != ART_NO_SLOT)
			return EUNO_OK;
	}
}

/*
 * Before each try: has whoever leads at a crowded place inserted the entry, or
 * failed?
 */
static bool
is_performed(Insert *ins, uint32_t attempts, EunoStatus *status)
{
	EunoWish	wish = {.ops = &euno_art_olc_ops,.entry = ins->entry,
	.no_split = ins->no_split};

	return euno_art_crowd(ins->cx, ins->tree, &ins->key, attempts,
						  ins->place.depth, &wish, status);
}

/*
 * Finds the entry's place and puts it there; see euno_art_insert.  Within an
 * epoch, since when the tree's stamp is this one.  *waste: memory was
 * unlinked, or taken in vain, and some may wait to be given back.
 */
static EunoStatus __attribute__((noinline))
insert_anywhere(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split, uint64_t stamp, bool *waste)
{
	EunoStatus	status;
	Insert		ins;

	ins.cx = cx;
	ins.place.depth = UINT32_MAX;
	ins.tree = tree;
	ins.entry = entry;
	ins.no_split = no_split;
	ins.stamp = stamp;
	euno_art_key_entry(entry, &ins.key);
	euno_art_build_start(&ins.build, cx, tree);
	for (uint32_t attempts = 0;; attempts++)
	{
		uint64_t	waits = cx->counters.lock_waits;

		if (art_may_be_crowded(cx, tree, attempts) &&
			is_performed(&ins, attempts, &status))
			break;
		status = find(&ins, art_body(tree)->rowex || attempts >= ART_PATIENCE);
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
			if (status == EUNO_STALE)
				euno_art_collide(cx, tree, &ins.key, &ins.place,
								 EUNO_CAUSE_CHANGED);
			else if (ins.place.rowex && cx->counters.lock_waits > waits)
				euno_art_collide(cx, tree, &ins.key, &ins.place,
								 EUNO_CAUSE_LOCKED);
		}
		if (status != EUNO_STALE || !art_try_again(cx, &status))
			break;
	}
	*waste = ins.build.n > 0;
	return status;
}

/*
 * See EunoTreeOps.  With no_split, EUNO_FULL when a node of four or more
 * children is full.  No locks on entry or return.
 */
EunoStatus
euno_art_insert(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				bool no_split)
{
	EunoStatus	status = EUNO_OK;
	bool		waste = false;
	uint64_t	stamp;

	euno_epoch_enter(cx->process);
	stamp = euno_load64_acquire(&art_body(tree)->stamp);
	if (!cx->last.again || art_may_be_crowded(cx, tree, 0) ||
		!euno_art_append(cx, tree, entry, stamp))
		status = insert_anywhere(cx, tree, entry, no_split, stamp, &waste);
	euno_epoch_exit(cx->process);
	if (waste)
		euno_art_reclaim(cx, tree);
	return status;
}
