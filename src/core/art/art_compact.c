/*-------------------------------------------------------------------------
 *
 * art_compact.c
 *	  Shrinking what removals have left behind.
 *
 * A node is replaced by what is left of it: nothing; its only child; or a node
 * of a smaller type, or of the same without records that were removed.  ("The
 * ART of Practical Synchronization", section 4.2.)  Who removes an entry does
 * that where next to nothing is left, if there is memory: readers would look
 * through many empty slots for the few that are not.  compact does the rest,
 * going over all inner nodes, each after those below it: what is left of them
 * by then is what it is looked at for.
 *
 * What is needed is allocated from a first look.  Then slot, node and an only
 * child that is replaced too are locked, in this order, from the root downward,
 * and looked at again; if the first look does not hold, the node is left for
 * the next call.
 *
 * The place of compact is the path of the last node.  Nodes with longer paths
 * than can be noted are no place to stop at.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/*
 * Who removes all but one child of a node of so many slots replaces it by that
 * one.  Tests make it 0, to leave something to compact.
 */
#ifndef ART_LONELY
#define ART_LONELY	4
#endif

/* For so many removals after a conflict such a node stays. */
#ifndef ART_COMPANY
#define ART_COMPANY	256
#endif

/* Nodes in one epoch. */
#define NODES_AT_ONCE	64

typedef struct Compact
{
	EunoContext *cx;
	EunoTree   *tree;
	ArtKey	   *at;				/* the node's path */
	ArtPlace	place;			/* the slot of the node */
	ArtNode    *node;
	ArtBuild	build;
	ArtRef		ref;			/* what the slot is to hold */
	ArtRef		leaf;			/* the only child, a record that is replaced */
	ArtNode    *child;			/* the only child, a node that is replaced */
	ArtCopy		copy;			/* of the node */
	ArtCopy		below;			/* of the child */
} Compact;

/* Slots for so many children, with a little room to grow. */
static uint32_t
roomy(uint32_t n)
{
	return n + n / 4 < 256 ? n + n / 4 : 256;
}

/* What a node should be. */
static ArtType
fitting_type(const ArtChildren *children, uint32_t depth)
{
	return euno_art_choose(children, depth, roomy(children->n));
}

/*
 * Prepares to put the only child, a leaf, in the node's place: as it is, if it
 * has the bytes that the node's path has spelled so far.
 */
static bool
prepare_leaf(Compact *c, const ArtChild *only)
{
	uint32_t	level = art_level(c->node);
	uint8_t		composite[ART_MAX_COMPOSITE];
	ArtChild	leaf;
	ArtTail		tail;

	c->ref = only->ref;
	if (art_is_leaf(only->ref) &&
		euno_art_leaf_tail(only, c->place.depth, &tail))
		return true;
	if (!euno_art_leaf_tail(only, level + 1, &tail) ||
		level + 1 + tail.n > ART_MAX_COMPOSITE)
		return false;
	memcpy(composite, c->at->bytes, level);
	composite[level] = c->copy.from.bytes[0];
	euno_copy_out(composite + level + 1, tail.bytes, tail.n);
	if (!euno_art_build_leaf_for(&c->build, composite, level + 1 + tail.n,
								 tail.payload, tail.payload_len, &c->place,
								 &leaf))
		return false;
	c->ref = leaf.ref;
	if (art_is_leaf(only->ref))
		c->leaf = only->ref;
	return true;
}

/*
 * The same with an inner node.  One that has lost all of its children goes,
 * too.
 */
static bool
prepare_child(Compact *c, ArtRef ref)
{
	ArtNode    *child = art_pointer(ref);
	uint32_t	level = art_level(child);
	uint32_t	depth = art_level(c->node) + 1;
	uint8_t		path[ART_MAX_COMPOSITE];

	c->ref = ref;
	if (level - art_segment_len(child) <= c->place.depth)
		return true;
	if (!art_is_sound(ref, depth))
		return false;
	c->child = child;
	euno_art_copy_look(&c->below, child);
	if (c->below.from.n == 0)
	{
		c->ref = ART_GONE;
		return true;
	}
	memcpy(path, c->at->bytes, depth - 1);
	path[depth - 1] = c->copy.from.bytes[0];
	euno_art_path_copy(child, depth, path);
	if (!euno_art_copy_build(&c->build, &c->below,
							 fitting_type(&c->below.from, level + 1), path,
							 c->place.depth, level))
		return false;
	c->ref = art_node_ref(c->below.node);
	return true;
}

/* Decides what becomes of the node, and allocates.  False: it stays. */
static bool
prepare(Compact *c)
{
	const ArtChildren *children = &c->copy.from;
	uint32_t	depth = art_level(c->node) + 1;
	ArtType		type;

	c->ref = c->leaf = 0;
	c->child = NULL;
	euno_art_copy_look(&c->copy, c->node);
	if (children->n == 0)
	{
		c->ref = ART_GONE;
		return true;
	}
	if (children->n == 1)
		return art_is_node(children->child[0].ref) ?
			prepare_child(c, children->child[0].ref) :
			prepare_leaf(c, &children->child[0]);
	type = fitting_type(children, depth);
	if (euno_art_weight(children, depth, type) >=
		euno_art_weight(children, depth, art_type(c->node)))
	{
		if (children->ndead == 0)
			return false;
		type = art_type(c->node);
	}
	if (!euno_art_copy_build(&c->build, &c->copy, type, c->at->bytes,
							 c->place.depth, depth - 1))
		return false;
	c->ref = art_node_ref(c->copy.node);
	return true;
}

/* How many things the change unlinks. */
static uint32_t
unlinked(const Compact *c)
{
	return 1 + euno_art_copy_unlinks(&c->copy) + (c->leaf != 0) +
		(c->child != NULL ? 1 + euno_art_copy_unlinks(&c->below) : 0);
}

/* What the change has unlinked. */
static void
retire(Compact *c)
{
	euno_art_forget(c->cx, c->tree, c->at, c->place.depth, c->node);
	euno_art_copy_retire(c->cx, c->tree, &c->copy);
	if (c->child != NULL)
	{
		uint32_t	depth = art_level(c->node) + 1;

		c->at->bytes[depth - 1] = c->copy.from.bytes[0];
		euno_art_path_copy(c->child, depth, c->at->bytes);
		euno_art_key_set(c->at, art_level(c->child));
		euno_art_forget(c->cx, c->tree, c->at, depth, c->child);
		euno_art_key_set(c->at, depth - 1);
		euno_art_copy_retire(c->cx, c->tree, &c->below);
		euno_art_retire_ref(c->cx, c->tree, art_node_ref(c->child));
	}
	if (c->leaf != 0)
		euno_art_retire_ref(c->cx, c->tree, c->leaf);
	euno_art_retire_ref(c->cx, c->tree, c->place.ref);
}

/* Replaces the node if what was prepared still fits. */
static bool
replace(Compact *c)
{
	const EunoEnvironment *env = c->cx->env;
	ArtRef	   *slot;
	bool		done;
	int			fewer;

	slot = euno_art_lock_slot(c->cx, c->tree, c->at, &c->place);
	if (slot == NULL)
		return false;

	/* Linked from a locked slot: it cannot be obsolete; nor can its child. */
	(void) euno_lock_acquire(&c->node->lock, env, &c->cx->counters);
	done = euno_art_copy_holds(&c->copy, c->node);
	if (done && c->child != NULL)
	{
		(void) euno_lock_acquire(&c->child->lock, env, &c->cx->counters);
		done = euno_art_copy_holds(&c->below, c->child);
		if (!done)
			euno_lock_release_unchanged(&c->child->lock, env);
	}
	if (!done)
	{
		euno_lock_release_unchanged(&c->node->lock, env);
		euno_lock_release_unchanged(c->place.lock, env);
		return false;
	}
	euno_store64_release(slot, c->ref);
	fewer = (c->copy.from.n < 2) + (c->child != NULL && c->below.from.n == 0);
	if (fewer > 0)
	{
		art_count(c->cx, c->tree, 0, -fewer);
		(void) euno_add64(&art_stripe(c->cx, c->tree)->dropped, (uint64_t) fewer);
	}
	euno_lock_release(c->place.lock, env);
	euno_lock_release_obsolete(&c->node->lock, env);
	if (c->child != NULL)
		euno_lock_release_obsolete(&c->child->lock, env);
	return true;
}

static bool
compact_node(Compact *c)
{
	euno_art_build_start(&c->build, c->cx, c->tree);
	if (prepare(c) && euno_art_reserve(c->cx, c->tree, unlinked(c)))
	{
		if (replace(c))
		{
			retire(c);
			return true;
		}
		euno_art_unreserve(c->cx, c->tree, unlinked(c));
	}
	euno_art_build_undo(&c->build);
	return false;
}

/*
 * Has this context met others lately?  To put a child into its small node's
 * place writes to the node above, which they are at, and the next insert does
 * so again.
 */
static bool
has_company(EunoContext *cx)
{
	if (cx->met != cx->conflicts)
		cx->company = ART_COMPANY;
	else if (cx->company > 0)
		cx->company--;
	cx->met = cx->conflicts;
	return cx->company > 0;
}

/*
 * Is next to nothing left of a node, where a slot's child was removed or what
 * was below it replaced?  Of a small one: no more children than "few".  Of
 * another one, if that slot has none: slots behind it are looked at until
 * there is a child; mostly the first has one, and in a node that loses all,
 * each is looked at a few times.  A guess: nothing is locked.
 */
static bool
is_deserted(ArtNode *node, const ArtRef *slot, uint32_t few)
{
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	const ArtRef *children = art_children(node);
	uint32_t	at = (uint32_t) (slot - children) / layout->words;
	uint32_t	n = 1;

	if (layout->capacity <= ART_LONELY)
		return euno_art_children_left(node) <= few;
	if (!art_is_absent(euno_load64(slot)))
		return false;
	for (; n < layout->capacity; n++)
	{
		at = at + 1 < layout->capacity ? at + 1 : 0;
		if (!art_is_absent(euno_load64(&children[at * layout->words])))
			break;
	}
	return n == layout->capacity ||
		(n >= 6 && 4 * n >= 3U * layout->capacity);
}

/*
 * After a removal at this place on the way to the key, whose node was found
 * there ("above"): replaces the node if next to nothing is left of it, and so
 * on upward.  What cannot be done at once is left to compact.  Within the
 * epoch of the descent; no locks on entry or return.
 */
void
euno_art_tidy(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			  const ArtPlace *place, const ArtPlace *above)
{
	ArtNode    *node = place->holder;
	const ArtRef *slot = place->slot;
	uint32_t	few = !has_company(cx);
	ArtKey		path;
	Compact		c;

	c.cx = cx;
	c.tree = tree;
	c.at = &path;
	while (node != NULL && is_deserted(node, slot, few))
	{
		memcpy(path.bytes, key->bytes, art_level(node));
		euno_art_key_set(&path, art_level(node));
		if (node == place->holder && above->slot != NULL)
			c.place = *above;
		else if (euno_art_descend_to(cx, tree, &path, &c.place) != EUNO_OK ||
				 c.place.where != ART_AT_TREE ||
				 art_pointer(c.place.ref) != node)
			break;
		c.node = node;
		if (!compact_node(&c))
			break;
		node = c.place.holder;
		slot = c.place.slot;
	}
}

/* Clears a root slot whose only entry has been removed. */
static bool
compact_root(Compact *c)
{
	ArtBody    *body = art_body(c->tree);
	EunoContext *cx = c->cx;
	ArtRef		ref = euno_load64_acquire(&body->root);

	if (ref == 0 || !art_is_absent(ref) || !euno_art_reserve(cx, c->tree, 1))
		return false;
	c->place.rowex = true;
	c->place.holder = NULL;
	c->place.slot = &body->root;
	c->place.lock = &body->root_lock;
	c->place.ref = ref;
	if (euno_art_lock_slot(cx, c->tree, c->at, &c->place) == NULL)
	{
		euno_art_unreserve(cx, c->tree, 1);
		return false;
	}
	euno_store64_release(&body->root, 0);
	euno_lock_release(&body->root_lock, cx->env);
	if (art_is_leaf(ref))
		euno_art_retire_ref(cx, c->tree, ref);
	else
		euno_art_unreserve(cx, c->tree, 1);
	return true;
}

/*
 * Is there nothing to be done to a node, as far as the number of its children
 * says?  A size smaller is not worth it: the next inserts would make it grow
 * again.
 */
static bool
is_fine(ArtNode *node)
{
	const ArtLayout *layout = &euno_art_layouts[art_type(node)];
	const ArtRef *slots = art_children(node);
	uint32_t	n = 0;
	ArtType		fitting;

	for (uint32_t i = 0; i < layout->capacity; i++)
	{
		ArtRef		ref = euno_load64(&slots[i * layout->words]);

		if (!art_is_absent(ref))
			n++;
		else if (art_is_leaf(ref))
			return false;
	}
	if (n < 2)
		return false;
	fitting = euno_art_node_type(roomy(n), layout->words);
	return fitting == ART_NTYPES ||
		4 * euno_art_layouts[fitting].size > 3 * layout->size;
}

/*
 * This many nodes, within one epoch.  EUNO_OK; EUNO_DONE after the last
 * one, or when one cannot be believed: verify says so, and compact has an end.
 */
static EunoStatus
compact_nodes(Compact *c, ArtVisit *v, uint32_t n, uint32_t *merged)
{
	EunoStatus	status = EUNO_OK;

	euno_epoch_enter(c->cx->process);
	while (n-- > 0)
	{
		status = euno_art_visit(v);
		if (status != EUNO_OK)
			break;
		c->place = v->place;
		c->node = art_pointer(v->place.ref);
		if (!is_fine(c->node))
			*merged += compact_node(c);
	}
	euno_epoch_exit(c->cx->process);
	euno_art_visit_pause(v);
	return status == EUNO_OK ? EUNO_OK : EUNO_DONE;
}

/*
 * Notes where to go on; after the last node, and the root slot, from the first;
 * so, too, if it was canceled where it cannot stop.
 */
static void
note_place(Compact *c, ArtVisit *v, bool ended, uint32_t *merged)
{
	ArtBody    *body = art_body(c->tree);

	if (ended)
	{
		euno_epoch_enter(c->cx->process);
		*merged += compact_root(c);
		euno_epoch_exit(c->cx->process);
	}
	if (ended || v->at.len > sizeof(body->compact_at))
	{
		v->past = false;
		euno_art_key_set(&v->at, 0);
	}
	body->compact_past = v->past;
	body->compact_len = (uint16_t) v->at.len;
	memcpy(body->compact_at, v->at.bytes, v->at.len);
}

/*
 * See EunoTreeOps: leaves are inner nodes here.  A walk needs no protection from
 * it (art_walk.c).
 */
EunoStatus
euno_art_compact(EunoContext *cx, EunoTree *tree, uint32_t how,
				 uint32_t max_leaves, uint32_t *merged)
{
	ArtBody    *body = art_body(tree);
	EunoStatus	status = EUNO_OK;
	ArtVisit	v;
	Compact		c;

	*merged = 0;
	if (!euno_mutex_trylock(&body->compact_mutex))
		return EUNO_BUSY;
	euno_art_visit_start(&v, cx, tree);
	if ((how & EUNO_COMPACT_BEGIN) == 0)
	{
		memcpy(v.at.bytes, body->compact_at, body->compact_len);
		euno_art_key_set(&v.at, body->compact_len);
		v.past = body->compact_past;
	}
	c.cx = cx;
	c.tree = tree;
	c.at = &v.at;
	while (status == EUNO_OK &&
		   (max_leaves > 0 || v.at.len > sizeof(body->compact_at)) &&
		   !euno_is_canceled(cx->env))
	{
		uint32_t	n = max_leaves == 0 ? 1 :
			max_leaves < NODES_AT_ONCE ? max_leaves : NODES_AT_ONCE;

		status = compact_nodes(&c, &v, n, merged);
		max_leaves -= max_leaves > 0 ? n : 0;
	}
	note_place(&c, &v, status != EUNO_OK, merged);
	euno_mutex_unlock(&body->compact_mutex, cx->env);
	euno_art_reclaim_all(cx, tree);
	return status;
}
