/*-------------------------------------------------------------------------
 *
 * art_near_verify.c
 *	  Does a map name what is not the tree's, or not in that place?
 *
 * What a map names, and the tree does not have there, is suspect.  It may only be
 * about to be taken out: whoever has replaced a node does that before his epoch
 * ends.  So it is wrong if it is there still when all epochs have passed.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

typedef struct Suspicion
{
	EunoTree   *tree;
	ArtSuspect *suspects;
	uint32_t	n;
} Suspicion;

static void
suspect(Suspicion *s, const ArtRef *slot, ArtRef ref)
{
	if (s->n < ART_SUSPECTS)
		s->suspects[s->n++] = (ArtSuspect)
	{
		slot, ref
	};
}

/*
 * The first of the tree's nodes that has all of the path's bytes; 0 if there
 * is none.  As readers without versions go.
 */
static ArtRef
node_at(EunoTree *tree, const ArtKey *path)
{
	ArtRef		ref = euno_load64_acquire(&art_body(tree)->root);
	uint32_t	depth = 0;

	while (art_is_node(ref))
	{
		ArtNode    *node = art_pointer(ref);
		ArtType		type = art_ref_type(ref);
		uint32_t	level = art_ref_level(ref);
		uint32_t	match;

		if (!art_is_sound(ref, depth))
			break;
		match = art_path_match(node, path, depth);
		if (match == path->len)
			return ref;
		if (match < level)
			break;
		(void) art_slot(node, type, path->bytes[level], &ref);
		depth = level + 1;
	}
	return 0;
}

/*
 * Is this node in the tree, with a path that begins like this one?  What may
 * be no node any more is looked at only if it is not the first one on the
 * path.
 */
static bool
is_there(const Suspicion *s, const ArtKey *path, ArtRef ref)
{
	ArtNode    *node = art_pointer(ref);
	uint32_t	level = art_ref_level(ref);
	ArtKey		whole;

	if (level < path->len || level >= ART_MAX_COMPOSITE)
		return false;
	if (node_at(s->tree, path) == ref)
		return true;
	if (art_node_ref(node) != ref ||
		level - art_segment_len(node) > path->len)
		return false;
	memcpy(whole.bytes, path->bytes, path->len);
	euno_art_path_copy(node, path->len, whole.bytes);
	euno_art_key_set(&whole, level);
	return node_at(s->tree, &whole) == ref;
}

/* A node of a map, to which the path's bytes lead, and all below. */
static void
check_copy(Suspicion *s, ArtNode *copy, ArtKey *path)
{
	uint32_t	depth = path->len;
	uint32_t	level = art_level(copy);
	ArtRef		name = euno_load64_acquire(&copy->lock.word);
	ArtChildren children;

	euno_art_path_copy(copy, depth, path->bytes);
	euno_art_key_set(path, level);
	if (name != 0 && (art_ref_level(name) != level || !is_there(s, path, name)))
		suspect(s, &copy->lock.word, name);
	euno_art_node_children(copy, &children);
	for (uint32_t i = 0; i < children.n; i++)
	{
		ArtRef		ref = children.child[i].ref;
		ArtRef		now;
		const ArtRef *slot = art_slot(copy, art_type(copy), children.bytes[i],
									  &now);

		path->bytes[level] = children.bytes[i];
		euno_art_key_set(path, level + 1);
		if (art_is_node(ref))
			check_copy(s, art_pointer(ref), path);
		else if (!is_there(s, path, ref & ~ART_EXIT))
			suspect(s, slot, ref);
	}
	euno_art_key_set(path, depth);
}

/*
 * The first of those that are suspect in all of a tree's maps, while nobody
 * makes one.  Not within an epoch.
 */
uint32_t
euno_art_near_suspects(EunoContext *cx, EunoTree *tree, ArtSuspect *suspects)
{
	ArtNear    *near = euno_load_ptr_acquire(&art_body(tree)->near);
	Suspicion	s = {tree, suspects, 0};
	ArtKey		path;

	if (near == NULL || !euno_mutex_trylock(&art_body(tree)->near_mutex))
		return 0;
	euno_epoch_enter(cx->process);
	for (int d = 1; d < tree->config.ndomains; d++)
	{
		ArtNode    *root = euno_load_ptr(&near->roots[d]);

		euno_art_key_set(&path, 0);
		if (root != NULL)
			check_copy(&s, root, &path);
	}
	euno_epoch_exit(cx->process);
	euno_mutex_unlock(&art_body(tree)->near_mutex, cx->env);
	return s.n;
}
