/*-------------------------------------------------------------------------
 *
 * art_near.c
 *	  Maps of the upper nodes, near the processes of each domain.
 *
 * A domain's map is a small radix tree in its own memory, of the same nodes, made
 * from the tree's upper nodes: a key's first bytes lead in it to one of the tree's
 * own nodes, where the key's place is below.  A reader enters there, if the node
 * is neither locked nor obsolete, instead of at the root.  A map may lag: what it
 * lacks costs a reader some nodes of the tree, and what is wrong is not there.
 * README, "Near maps", says why that is safe.
 *
 * (STI-BT, section 4: the top levels are everywhere, those below at home.  There
 * and in McKenzie's thesis, section 4.1, whoever changes a node changes all of its
 * copies; here he takes out what names the node, if it is replaced.)
 *
 * A node of a map
 *	  lock		no lock: the reference of the tree's node that it was made of, or 0.
 *	  slots		a reference to a node of the map; with ART_EXIT, to one of the
 *				tree's that has none in the map; ART_GONE where there was such a
 *				one.  A slot is given out once.
 *	  Behind it is the next one of the map, from upper to lower levels.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

/* Bytes of a map: the 100th part of a tree of 20 bytes an entry, and some. */
#define MAP_LEAST		(64 * 1024)
#define MAP_SHARE		5

typedef struct Build
{
	EunoContext *cx;
	EunoTree   *tree;
	ArtMap	   *map;
	int			domain;
	bool		no_memory;
	uint64_t	limit;			/* bytes */
	ArtNode    *last;			/* of the map */
} Build;

static inline ArtNode **
next_of(ArtNode *copy)
{
	return (ArtNode **) ((uint8_t *) copy +
						 art_node_size(art_type(copy), art_segment_len(copy)));
}

static size_t
copy_size(ArtType type, uint32_t segment_len)
{
	return art_round_up(art_node_size(type, segment_len) + sizeof(ArtNode *));
}

static void
free_copy(EunoContext *cx, EunoTree *tree, int domain, ArtNode *copy)
{
	cx->env->free(tree->alloc_arg, domain, copy,
				  copy_size(art_type(copy), art_segment_len(copy)));
}

/* How many bytes a map may take. */
static uint64_t
map_limit(EunoTree *tree)
{
	return MAP_LEAST + euno_art_entries(tree) / MAP_SHARE;
}

static uint64_t
count_inners(EunoTree *tree)
{
	uint64_t	sum = 0;

	for (int i = 0; i < ART_STRIPES; i++)
		sum += euno_load64(&art_body(tree)->stripes[i].inners);
	return sum;
}

/*
 * Copies a node to a map, for a slot at this depth, without children.  NULL: it
 * is not worth it, for hardly any of its children is an inner node; or there is no
 * room.  The root is worth it if any is.  Within an epoch.
 */
static ArtNode *
copy_node(Build *b, ArtRef ref, uint32_t depth)
{
	ArtNode    *node = art_pointer(ref);
	uint32_t	level = art_level(node);
	uint32_t	inners = 0;
	uint8_t		path[ART_MAX_COMPOSITE];
	ArtChildren children;
	ArtNode    *copy;
	ArtType		type;
	size_t		size;

	euno_art_node_children(node, &children);
	for (uint32_t i = 0; i < children.n; i++)
		inners += art_is_node(children.child[i].ref);
	if (inners == 0 || (b->last != NULL && 2 * inners < children.n))
		return NULL;
	type = euno_art_node_type(inners + inners / 8 < 256 ? inners + inners / 8 : 256,
							  1);
	size = copy_size(type, level - depth);
	if (b->map->bytes + size > b->limit)
		return NULL;
	copy = b->cx->env->alloc(b->tree->alloc_arg, b->domain, size);
	b->no_memory = b->no_memory || copy == NULL;
	if (copy == NULL)
		return NULL;
	euno_art_path_copy(node, depth, path);
	euno_art_node_init(copy, type, path, depth, level);
	*next_of(copy) = NULL;
	return copy;
}

/* From now on the copy is one of the map. */
static void
append(Build *b, ArtNode *copy)
{
	if (b->last != NULL)
		*next_of(b->last) = copy;
	b->last = copy;
	euno_store64(&b->map->bytes, b->map->bytes +
				 copy_size(art_type(copy), art_segment_len(copy)));
}

/*
 * Locks a node of the tree, if nobody else has, and it is not obsolete.  Then no
 * one can replace it who does not see what is put into a map meanwhile.
 */
static bool
try_lock(ArtNode *node)
{
	uint64_t	word = euno_load64(&node->lock.word);

	return (word & (EUNO_LOCK_LOCKED | EUNO_LOCK_OBSOLETE)) == 0 &&
		euno_lock_upgrade(&node->lock, word);
}

/* Names a node of the tree, or a copy of it, in the map.  Within an epoch. */
static void
add_child(Build *b, ArtNode *parent, uint8_t byte, ArtRef ref)
{
	ArtNode    *node = art_pointer(ref);
	ArtNode    *copy = copy_node(b, ref, art_level(parent) + 1);
	ArtChild	child = {ref | ART_EXIT, {0, 0}};
	bool		done = try_lock(node);

	if (done)
	{
		if (copy != NULL)
		{
			euno_store64(&copy->lock.word, ref);
			child.ref = art_node_ref(copy);
		}
		done = euno_art_node_add(parent, byte, &child);
		euno_lock_release_unchanged(&node->lock, b->cx->env);
	}
	b->map->names += done;
	if (copy != NULL && done)
		append(b, copy);
	else if (copy != NULL)
		free_copy(b->cx, b->tree, b->domain, copy);
}

/*
 * Adds the children of a node of the map, if what it was made of is still linked:
 * only then what is found in that has not been retired before the epoch.
 */
static void
expand(Build *b, ArtNode *copy)
{
	ArtChildren children;
	ArtRef		ref;
	uint64_t	version;

	euno_epoch_enter(b->cx->process);
	ref = euno_load64_acquire(&copy->lock.word);
	if (ref != 0 &&
		euno_lock_read_or_leave(&((ArtNode *) art_pointer(ref))->lock, &version,
								b->cx->env, &b->cx->counters))
	{
		euno_art_node_children(art_pointer(ref), &children);
		for (uint32_t i = 0; i < children.n; i++)
		{
			if (art_is_node(children.child[i].ref))
				add_child(b, copy, children.bytes[i], children.child[i].ref);
		}
	}
	euno_epoch_exit(b->cx->process);
}

/* The map's first node, which is seen by all from now on. */
static ArtNode *
start(Build *b, ArtNode **root)
{
	ArtRef		ref;
	ArtNode    *copy = NULL;

	euno_epoch_enter(b->cx->process);
	ref = euno_load64_acquire(&art_body(b->tree)->root);
	if (art_is_node(ref))
		copy = copy_node(b, ref, 0);
	if (copy != NULL)
	{
		append(b, copy);
		euno_store_ptr(root, copy);
		if (try_lock(art_pointer(ref)))
		{
			euno_store64_release(&copy->lock.word, ref);
			b->map->names++;
			euno_lock_release_unchanged(&((ArtNode *) art_pointer(ref))->lock,
										b->cx->env);
		}
	}
	euno_epoch_exit(b->cx->process);
	return copy;
}

/*
 * Makes a domain's map, level by level, as far as there is room.  The mutex is
 * held, there is no map.  False: there was no memory for all of it.
 */
static bool
build(EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	ArtMap	   *map = &near->maps[domain];
	Build		b = {cx, tree, map, domain, false, map_limit(tree), NULL};

	euno_store64(&map->lost, 0);
	euno_store64(&map->bytes, 0);
	map->names = 0;
	map->inners = count_inners(tree);
	for (ArtNode *copy = start(&b, &near->roots[domain]); copy != NULL;
		 copy = *next_of(copy))
		expand(&b, copy);
	return !b.no_memory;
}

/* Gives back maps that nobody can see any more.  The mutex is held. */
static void
free_old(EunoContext *cx, EunoTree *tree, ArtMap *map, int domain)
{
	if (map->old == NULL ||
		!euno_epoch_passed(cx->process->epochs, map->old_epoch))
		return;
	while (map->old != NULL)
	{
		ArtNode    *copy = map->old;

		map->old = *next_of(copy);
		free_copy(cx, tree, domain, copy);
	}
}

/*
 * Takes a domain's map away.  The mutex is held.  What it names is not taken out
 * any more when it is replaced, but who still reads it holds an older epoch.
 */
static void
drop(EunoContext *cx, EunoTree *tree, ArtNear *near, int domain)
{
	ArtMap	   *map = &near->maps[domain];
	ArtNode    *root = euno_load_ptr(&near->roots[domain]);
	ArtNode    *last = root;

	if (root != NULL)
	{
		euno_store_ptr(&near->roots[domain], (ArtNode *) NULL);
		while (*next_of(last) != NULL)
			last = *next_of(last);
		*next_of(last) = map->old;
		map->old = root;
		map->old_epoch = euno_epoch_retire(cx->process->epochs);
		euno_store64(&map->bytes, 0);
	}
	free_old(cx, tree, map, domain);
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

/* Those of a set of domains that can have maps, and the first one, which has none. */
uint64_t
euno_art_near_domains(const EunoTree *tree, uint64_t domains)
{
	return (domains & ((UINT64_C(1) << tree->config.ndomains) - 1)) | 1;
}

/*
 * See EunoTreeOps.  The first domain's processes use the tree as it is, for its
 * nodes are in that domain's memory.
 */
EunoStatus
euno_art_set_domains(EunoContext *cx, EunoTree *tree, uint64_t domains)
{
	ArtBody    *body = art_body(tree);
	ArtNear    *near;
	bool		ok = true;

	domains = euno_art_near_domains(tree, domains);
	if (euno_load64(&body->near_domains) == domains)
		return EUNO_OK;
	if (!euno_mutex_trylock(&body->near_mutex))
		return EUNO_NOT_FOUND;
	near = euno_load_ptr(&body->near);
	if (near == NULL && domains != 1)
		near = make_table(cx, tree);
	for (int d = 1; d < tree->config.ndomains && near != NULL; d++)
	{
		uint64_t	bit = UINT64_C(1) << d;
		bool		made = euno_load_ptr(&near->roots[d]) != NULL;

		if ((domains & bit) != 0 && !made)
			ok = build(cx, tree, near, d) && ok;
		if ((domains & bit) == 0 || !ok)
		{
			drop(cx, tree, near, d);
			domains &= ~bit;
		}
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

/* Is there a map to be made, or has the tree changed too much since it was? */
static bool
is_stale(EunoTree *tree, const ArtNear *near, int domain)
{
	const ArtMap *map = &near->maps[domain];
	uint64_t	now = count_inners(tree);
	uint64_t	change = now > map->inners ? now - map->inners : map->inners - now;

	return euno_load_ptr(&near->roots[domain]) == NULL || 8 * change > map->inners ||
		8 * euno_load64(&map->lost) > map->names;
}

/*
 * See EunoTreeOps.  Makes the domain's map anew if much has changed.  If there is
 * no memory, it stays without one until the next time.
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
			near->maps[domain].old == NULL && is_stale(tree, near, domain))
		{
			drop(cx, tree, near, domain);
			if (!build(cx, tree, near, domain))
				drop(cx, tree, near, domain);
		}
	}
	euno_mutex_unlock(&body->near_mutex, cx->env);
}

/* What a domain's map takes, or if it shall have none, what it would take at most. */
uint64_t
euno_art_near_bytes(EunoTree *tree, int domain)
{
	const ArtNear *near = euno_load_ptr_acquire(&art_body(tree)->near);

	if ((euno_load64(&art_body(tree)->near_domains) >> domain & 1) == 0)
		return map_limit(tree);
	return near == NULL ? 0 : euno_load64(&near->maps[domain].bytes);
}

/*
 * The name where a key's way through a map ends, or in the last copy on it, with
 * the bytes that lead to the node; 0 if there is none.
 */
static ArtRef
lowest_name(ArtNode *root, const ArtKey *key, uint32_t *depth)
{
	ArtRef		at = art_node_ref(root);
	ArtNode    *last = NULL;
	uint32_t	from = 0;

	*depth = 0;
	while (art_is_node(at))
	{
		uint32_t	level = art_ref_level(at);
		ArtNode    *copy = art_pointer(at);

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
 * The lowest node of the tree that the domain's map knows to be on the way to a
 * key, with the bytes that lead to it and its version; all of its path is the
 * key's, and the key has a byte for it.  0: none; begin at the root.  Within an
 * epoch.
 */
ArtRef
euno_art_near_find(EunoContext *cx, EunoTree *tree, const ArtKey *key,
				   uint32_t *depth, uint64_t *version)
{
	const ArtNear *near = euno_load_ptr_acquire(&art_body(tree)->near);
	ArtNode    *node = near == NULL ? NULL :
		euno_load_ptr_acquire(&near->roots[cx->domain]);
	uint32_t	at;
	ArtRef		ref;

	ref = node == NULL ? 0 : lowest_name(node, key, &at);
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
 * Takes a node out of all maps.  It is obsolete, and not yet retired; the path has
 * at least the bytes of its own.  Within an epoch, nothing locked.
 */
void
euno_art_forget(EunoTree *tree, const ArtKey *path, const ArtNode *node)
{
	ArtNear    *near = euno_load_ptr_acquire(&art_body(tree)->near);

	for (int d = 1; near != NULL && d < tree->config.ndomains; d++)
	{
		ArtNode    *root = euno_load_ptr_acquire(&near->roots[d]);

		if (root != NULL && forget_in(root, path, node))
			(void) euno_add64(&near->maps[d].lost, 1);
	}
}
