/*-------------------------------------------------------------------------
 *
 * art_last.c
 *	  Where the last inserts went: operations that go there, too, begin there.
 *
 * README, "The last node".
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/*
 * The node that the last inserts went to, with the bytes that lead to it and
 * its version; all of its path is the key's, and the key has a byte for it.
 * 0: there is none.  Within an epoch.
 */
static inline ArtRef
last_find(EunoContext *cx, EunoTree *tree, const ArtKey *key, uint32_t *depth,
		  uint64_t *version)
{
	const EunoLast *last = &cx->last;
	ArtNode    *node = last->leaf;
	uint32_t	level;

	if (!last->again ||
		last->stamp != euno_load64(&art_body(tree)->stamp))
		return 0;
	level = art_level(node);
	if (level >= key->len ||
		memcmp(key->bytes, cx->last_path, level) != 0 ||
		!euno_lock_glance(&node->lock, version))
		return 0;
	*depth = level - art_segment_len(node);
	return art_node_ref(node);
}

/*
 * A node of the tree that is on the way to a key, to begin there: as
 * euno_art_near_find.
 */
ArtRef
euno_art_start(EunoContext *cx, EunoTree *tree, const ArtKey *key,
			   uint32_t *depth, uint64_t *version)
{
	ArtRef		ref = last_find(cx, tree, key, depth, version);

	if (ref == 0 && cx->domain > 0)
		ref = euno_art_near_find(cx, tree, key, depth, version);
	return ref;
}

/*
 * Puts an entry into the node that the last inserts went to ("again"), if it
 * belongs there, its byte has no slot yet, there is one left, and it needs no
 * record.  False, and nothing has changed: insert it in the general way.
 *
 * Within an epoch, since when the tree's stamp is this one; nothing is locked
 * on entry or return.
 */
bool
euno_art_append(EunoContext *cx, EunoTree *tree, const EunoEntry *entry,
				uint64_t stamp)
{
	ArtNode    *node = cx->last.leaf;
	uint8_t		rest[8 * ART_WORDS + EUNO_TID_BYTES];
	uint64_t	version;
	uint32_t	level;
	uint32_t	n;
	uint32_t	at;
	uint32_t	weight;
	uint8_t		byte;
	ArtType		type;
	ArtChild	leaf;
	ArtRef		ref;

	if (cx->last.stamp != stamp || entry->payloadlen > 0 ||
		!euno_lock_glance(&node->lock, &version))
		return false;
	type = art_type(node);
	level = art_level(node);
	n = entry->keylen - level - 1;
	if (level >= entry->keylen || n + EUNO_TID_BYTES >
		art_inline_max(euno_art_layouts[type].words) ||
		memcmp(entry->key, cx->last_path, level) != 0)
		return false;
	byte = entry->key[level];
	(void) art_slot(node, type, byte, &ref);
	at = euno_art_node_place(node, byte);
	if (ref != 0 || at == ART_NO_SLOT)
		return false;
	memcpy(rest, entry->key + level + 1, n);
	euno_put_tid(rest + n, entry->tid);
	euno_art_inline(rest, n + EUNO_TID_BYTES, &leaf);

	/* At the version that was read, it is what it was. */
	if (!euno_lock_upgrade(&node->lock, version))
		return false;
	art_node_put(node, type, art_children(node), at, byte, &leaf);
	art_count(cx, tree, 1, 0);
	euno_lock_release(&node->lock, cx->env);
	cx->counters.descents++;
	weight = euno_sample_weight(cx, tree);
	if (weight > 0)
		euno_art_count_nodes(cx, weight, 0, 1);
	return true;
}

/*
 * An entry with this key was put into a node, or below one of its slots; if
 * the node was full, it is another one now.  NULL: there is none above.
 * "stamp" is what the tree's was before that was locked.
 */
void
euno_art_note_last(EunoContext *cx, const ArtNode *node, ArtNode *now,
				   uint64_t stamp, const ArtKey *key)
{
	EunoLast   *last = &cx->last;
	uint32_t	level = now == NULL ? UINT32_MAX : art_level(now);

	last->again = last->leaf == node && last->stamp == stamp &&
		level <= EUNO_LAST_PATH;
	last->leaf = now;
	last->stamp = stamp;
	if (last->again)
		memcpy(cx->last_path, key->bytes, level);
}
