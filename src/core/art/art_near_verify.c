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

/* A node of a map, to which the path's bytes lead; the path becomes its own. */
static void
check_copy(Suspicion *s, ArtNode *copy, ArtKey *path)
{
	uint32_t	level = art_level(copy);
	ArtRef		name = euno_load64_acquire(&copy->lock.word);

	euno_art_path_copy(copy, path->len, path->bytes);
	euno_art_key_set(path, level);
	if (name != 0 && (art_ref_level(name) != level || !is_there(s, path, name)))
		suspect(s, &copy->lock.word, name);
}

/*
 * A map, from its root on.  Without recursion: where keys are prefixes of each
 * other it may be as deep as keys are long.
 */
static void
check_map(Suspicion *s, ArtNode *root)
{
	ArtNode    *way[ART_MAX_COMPOSITE];	/* from the root to the one at hand */
	uint32_t	n = 1;
	int			byte = 0;
	ArtKey		path;

	way[0] = root;
	euno_art_key_set(&path, 0);
	check_copy(s, root, &path);
	while (n > 0)
	{
		ArtNode    *copy = way[n - 1];
		uint32_t	level = art_level(copy);
		const ArtRef *slot;
		ArtRef		ref = 0;

		for (; byte < 256; byte++)
		{
			slot = art_slot(copy, art_type(copy), (uint8_t) byte, &ref);
			if (slot != NULL && !art_is_absent(ref))
				break;
		}
		if (byte == 256)
		{
			if (--n > 0)
				byte = path.bytes[art_level(way[n - 1])] + 1;
			continue;
		}
		path.bytes[level] = (uint8_t) byte++;
		euno_art_key_set(&path, level + 1);
		if (art_is_node(ref))
		{
			way[n++] = art_pointer(ref);
			check_copy(s, way[n - 1], &path);
			byte = 0;
		}
		else if (!is_there(s, &path, ref & ~ART_EXIT))
			suspect(s, slot, ref);
	}
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

	if (near == NULL || !euno_mutex_trylock(&art_body(tree)->near_mutex))
		return 0;
	euno_epoch_enter(cx->process);
	for (int d = 1; d < tree->config.ndomains; d++)
	{
		ArtNode    *root = euno_load_ptr(&near->roots[d]);

		if (root != NULL)
			check_map(&s, root);
	}
	euno_epoch_exit(cx->process);
	euno_mutex_unlock(&art_body(tree)->near_mutex, cx->env);
	return s.n;
}
