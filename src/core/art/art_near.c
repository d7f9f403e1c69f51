/*-------------------------------------------------------------------------
 *
 * art_near.c
 *	  Maps of the upper nodes, near the processes of each domain.
 *
 * A domain's map is a small radix tree in its own memory, of the same nodes, made
 * from the tree's upper nodes: a key's first bytes lead in it to one of the
 * tree's own nodes, where the key's place is below.  A reader enters there, if
 * the node is neither locked nor obsolete, instead of at the root.  A map may
 * lag: a node that it lacks costs a reader a few more nodes of the tree, and one
 * that would be wrong has been taken out.  src/README.md, "Near maps", says why that is safe.
 *
 * (STI-BT, section 4: the top levels are everywhere, those below at home.  There
 * and in McKenzie's thesis, section 4.1, whoever changes a node changes all of
 * its copies; here he takes out what names the node, if it is replaced.)
 *
 * A node of a map
 *	  lock		no lock: the reference of the tree's node that it was made of, or 0.
 *	  slots		a reference to a node of the map; with ART_EXIT, to one of the
 *				tree's that has none in the map; ART_GONE where there was such a
 *				one.  A slot is given out once.
 *	  Behind it is its tail: the next one of the map, and the trace of its path.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

/* One in this many of a large map's names that are taken out is counted. */
#define LOST_SAMPLE	16

/* Gives back maps that nobody can see any more.  The mutex is held. */
static void
free_old(EunoContext *cx, EunoTree *tree, ArtMap *map, int domain)
{
	if (map->old_uses == NULL ||
		!euno_epoch_passed(cx->process->epochs, map->old_epoch))
		return;
	while (map->old != NULL)
	{
		ArtNode    *copy = map->old;

		map->old = art_copy_tail(copy)->next;
		cx->env->free(tree->alloc_arg, domain, copy,
					  art_copy_size(art_type(copy), art_segment_len(copy)));
	}
	while (map->old_uses != NULL)
	{
		ArtUses    *uses = map->old_uses;

		map->old_uses = uses->next;
		cx->env->free(tree->alloc_arg, domain, uses, sizeof(ArtUses));
	}
}

/*
 * Takes a domain's map away.  The mutex is held.  What it names is not taken
 * out any more when it is replaced, but who still reads it holds an older
 * epoch.
 */
static void
take_away(EunoContext *cx, ArtNear *near, int domain)
{
	ArtMap	   *map = &near->maps[domain];
	ArtNode    *root = euno_load_ptr(&near->roots[domain]);
	ArtUses    *uses = euno_load_ptr(&map->uses);

	if (uses == NULL)
		return;
	euno_store_ptr(&near->roots[domain], (ArtNode *) NULL);
	euno_store_ptr(&map->uses, (ArtUses *) NULL);
	if (root != NULL)
	{
		ArtNode    *last = root;

		while (art_copy_tail(last)->next != NULL)
			last = art_copy_tail(last)->next;
		art_copy_tail(last)->next = map->old;
		map->old = root;
	}
	uses->next = map->old_uses;
	map->old_uses = uses;
	map->old_epoch = euno_epoch_advance(cx->process->epochs);
	euno_store64(&map->bytes, 0);
}

/* The same, and gives it back if nobody reads it. */
static void
drop(EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	take_away(cx, near, domain);
	free_old(cx, tree, &near->maps[domain], domain);
}

/* The table of all maps; NULL if there is no memory for it. */
static ArtNear *
make_table(EunoContext *cx, EunoTree *tree)
{
	static const ArtNear empty;
	ArtNear    *near = euno_art_alloc(cx, tree, sizeof(ArtNear));

	if (near != NULL)
	{
		euno_copy_in(near, &empty, sizeof(ArtNear));
		euno_store_ptr(&art_body(tree)->near, near);
	}
	return near;
}

/*
 * See EunoTreeOps.  The first domain's processes use the tree as it is, for
 * its nodes are in that domain's memory.
 */
EunoStatus
euno_art_set_domains(EunoContext *cx, EunoTree *tree, uint64_t domains)
{
	ArtBody    *body = art_body(tree);
	ArtNear    *near;
	bool		ok = true;

	domains = euno_tree_domains(tree, domains);
	if (euno_load64(&body->near_domains) == domains)
		return EUNO_OK;
	if (!euno_mutex_trylock(&body->near_mutex))
		return EUNO_BUSY;
	near = euno_load_ptr(&body->near);
	if (near == NULL && domains != 1)
		near = make_table(cx, tree);
	for (int d = 1; d < tree->config.ndomains && near != NULL; d++)
	{
		if ((domains >> d & 1) == 0)
			drop(cx, tree, near, d);
	}
	for (int d = 1; d < tree->config.ndomains && near != NULL; d++)
	{
		if ((domains >> d & 1) == 0 || euno_load_ptr(&near->roots[d]) != NULL ||
			euno_art_near_make(cx, tree, near, d))
			continue;
		drop(cx, tree, near, d);
		domains &= ~(UINT64_C(1) << d);
		ok = false;
	}
	if (near == NULL && domains != 1)
	{
		ok = false;
		domains = 1;
	}
	euno_store64(&body->near_domains, domains);
	euno_mutex_unlock(&body->near_mutex, cx->env);
	return ok ? EUNO_OK : EUNO_NO_MEMORY;
}

/*
 * Is there a map to be made, or have the tree or its uses changed too much
 * since it was?  (It has no name at all if the first node was locked then.)
 */
static bool
is_stale(EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	const ArtMap *map = &near->maps[domain];
	uint64_t	now = euno_art_inners(tree);
	uint64_t	change = now > map->inners ? now - map->inners : map->inners - now;
	uint32_t	unserved;
	uint32_t	reads;

	if (euno_load_ptr(&near->roots[domain]) == NULL || 8 * change > map->inners ||
		8 * euno_load64(&map->lost) >= map->names)
		return true;
	unserved = euno_art_near_unserved(cx, tree, near, domain, &reads);
	return euno_art_near_outgrown(reads, unserved, map->unserved);
}

/*
 * See EunoTreeOps.  Makes the domain's map anew if much has changed.  If there
 * is no memory, it stays without one until the next time.
 */
void
euno_art_maintain(EunoContext *cx, EunoTree *tree, int domain)
{
	ArtBody    *body = art_body(tree);
	ArtNear    *near;

	if (domain < 1 || domain >= tree->config.ndomains ||
		!euno_mutex_trylock(&body->near_mutex))
		return;
	near = euno_load_ptr(&body->near);
	if (near == NULL && (euno_load64(&body->near_domains) >> domain & 1) != 0)
		near = make_table(cx, tree);
	if (near != NULL)
	{
		free_old(cx, tree, &near->maps[domain], domain);
		if ((euno_load64(&body->near_domains) >> domain & 1) != 0 &&
			near->maps[domain].old_uses == NULL && is_stale(cx, tree, near, domain))
		{
			take_away(cx, near, domain);
			if (!euno_art_near_make(cx, tree, near, domain))
				take_away(cx, near, domain);
			free_old(cx, tree, &near->maps[domain], domain);
		}
	}
	euno_mutex_unlock(&body->near_mutex, cx->env);
}

/*
 * What a domain's map takes, or if it shall have none, what it would take at
 * most.
 */
uint64_t
euno_art_near_bytes(EunoTree *tree, int domain)
{
	const ArtNear *near = euno_load_ptr_acquire(&art_body(tree)->near);

	if ((euno_load64(&art_body(tree)->near_domains) >> domain & 1) == 0)
		return art_map_limit(tree);
	return near == NULL ? 0 : euno_load64(&near->maps[domain].bytes);
}

/*
 * The name where a key's way through a map ends, or in the last copy on it,
 * with the bytes that lead to the node, and how many copies are on the way; 0
 * if there is none.
 */
static inline ArtRef
lowest_name(ArtNode *root, const ArtKey *key, uint32_t *depth,
			uint32_t *copies)
{
	ArtRef		at = art_node_ref(root);
	ArtNode    *last = NULL;
	uint32_t	from = 0;

	*depth = *copies = 0;
	while (art_is_node(at))
	{
		uint32_t	level = art_ref_level(at);
		ArtNode    *copy = art_pointer(at);

		++*copies;
		art_fetch_node(at, key->bytes[level]);
		if (level >= key->len || art_path_match(copy, key, from) != level)
			break;
		last = copy;
		*depth = from;
		(void) art_slot(copy, art_ref_type(at), key->bytes[level], &at);
		from = level + 1;
	}
	if ((at & ART_TAG_MASK) == ART_EXIT)
	{
		*depth = from;
		return at & ~ART_EXIT;
	}
	return last == NULL ? 0 : euno_load64_acquire(&last->lock.word);
}

/*
 * The lowest node of the tree that the domain's map knows to be on the way to
 * a key, with the bytes that lead to it and its version; all of its path is
 * the key's, and the key has a byte for it.  0: none; begin at the root.
 * Within an epoch.
 */
ArtRef
euno_art_near_find(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				   uint32_t *depth, uint64_t *version)
{
	const ArtNear *near = euno_load_ptr_acquire(&art_body(tree)->near);
	ArtNode    *node = near == NULL ? NULL :
		euno_load_ptr_acquire(&near->roots[cx->domain]);
	uint32_t	copies;
	uint32_t	at;
	ArtRef		ref;

	ref = node == NULL ? 0 : lowest_name(node, key, &at, &copies);
	if (ref == 0)
		return 0;
	node = art_pointer(ref);
	art_fetch_node(ref, key->bytes[art_ref_level(ref)]);
	*version = euno_load64_acquire(&node->lock.word);
	if ((*version & (EUNO_LOCK_LOCKED | EUNO_LOCK_OBSOLETE)) != 0 ||
		art_ref_level(ref) >= key->len ||
		art_path_match(node, key, at) != art_ref_level(ref))
		return 0;
	*depth = at;
	return ref;
}

/*
 * How many nodes of the domain's map a key's way goes through.  Within an
 * epoch.
 */
uint32_t
euno_art_near_copies(EunoContext *cx, ArtNear *near, const ArtKey *key)
{
	ArtNode    *root = euno_load_ptr_acquire(&near->roots[cx->domain]);
	uint32_t	copies = 0;
	uint32_t	depth;

	if (root != NULL)
		(void) lowest_name(root, key, &depth, &copies);
	return copies;
}

/* Takes a node out of a map, if that names it. */
static bool
forget_in(ArtNode *copy, const ArtKey *path, const ArtNode *node)
{
	uint32_t	level = art_level(copy);
	uint32_t	depth = 0;
	ArtRef		ref = art_node_ref(node);
	ArtRef		child;
	ArtRef	   *slot;

	while (level <= art_level(node) && art_path_match(copy, path, depth) >= level)
	{
		if (euno_load64(&copy->lock.word) == ref)
		{
			euno_store64_release(&copy->lock.word, 0);
			return true;
		}
		if (level == art_level(node))
			return false;
		slot = art_slot(copy, art_type(copy), path->bytes[level], &child);
		if (slot != NULL && child == (ref | ART_EXIT))
		{
			euno_store64_release(slot, ART_GONE);
			return true;
		}
		if (slot == NULL || !art_is_node(child))
			return false;
		copy = art_pointer(child);
		depth = level + 1;
		level = art_level(copy);
	}
	return false;
}

/*
 * A map has lost a name.  If it has many, what is counted is a sample, drawn
 * by the node's address: otherwise all who replace nodes would write to one
 * word.
 */
static void
count_lost(ArtMap *map, const ArtNode *node)
{
	if (euno_load32(&map->names) < 64 * LOST_SAMPLE)
		(void) euno_add64(&map->lost, 1);
	else if ((uintptr_t) node * UINT64_C(0x9E3779B97F4A7C15) >> 32 <
			 (UINT64_C(1) << 32) / LOST_SAMPLE)
		(void) euno_add64(&map->lost, LOST_SAMPLE);
}

/*
 * Takes a node out of all maps.  It is obsolete, and not yet retired; the path
 * has at least the bytes of its own, of which so many led to its slot.  Within
 * an epoch, nothing locked.
 */
void
euno_art_forget(EunoContext *cx, EunoTree *tree, const ArtKey *path,
				uint32_t depth, const ArtNode *node)
{
	ArtNear    *near = euno_load_ptr_acquire(&art_body(tree)->near);

	for (int d = 1; near != NULL && d < tree->config.ndomains; d++)
	{
		ArtNode    *root = euno_load_ptr_acquire(&near->roots[d]);

		if (root == NULL)
			continue;
		if (forget_in(root, path, node))
			count_lost(&near->maps[d], node);
		euno_art_note_change(cx, &near->maps[d], path, depth);
	}
}
