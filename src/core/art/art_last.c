/*-------------------------------------------------------------------------
 *
 * art_last.c
 *	  Where the last inserts went: operations that go there, too, begin there.
 *
 * src/README.md, "The last node".
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* Does a key, which is longer, begin with the remembered bytes, this many? */
static inline bool
is_path(const EunoContext *cx, const uint8_t *bytes, uint32_t len,
		uint32_t level)
{
	if (level - 1 >= 8 || len < 8)
		return memcmp(bytes, cx->last_path, level) == 0;
	return (euno_get_word(bytes) ^ euno_get_word(cx->last_path)) >>
		(64 - 8 * level) == 0;
}

/* The last n bytes of an entry's key and its TID, 23 at most, as INLINE. */
static inline void
last_inline(const EunoEntry *entry, uint32_t n, ArtChild *leaf)
{
	const uint8_t *end = entry->key + entry->keylen;
	uint64_t	tid = entry->tid << 16;
	uint64_t	high = tid;
	uint64_t	low = 0;
	uint8_t		rest[8 * ART_WORDS];

	if (n > 7 || entry->keylen < 8)
	{
		memcpy(rest, end - n, n);
		euno_put_tid(rest + n, entry->tid);
		euno_art_inline(rest, n + EUNO_TID_BYTES, leaf);
		return;
	}
	if (n > 0)
	{
		high = euno_get_word(end - 8) << (64 - 8 * n) | tid >> 8 * n;
		low = tid << (64 - 8 * n);
	}
	leaf->ref = (high & ~UINT64_C(0xFF)) | ART_TAG_INLINE |
		(ArtRef) (n + EUNO_TID_BYTES) << ART_COUNT_SHIFT;
	leaf->more[0] = high << 56 | low >> 8;
	leaf->more[1] = 0;
}

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
	if (level >= key->len || !is_path(cx, key->bytes, key->len, level) ||
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
		!is_path(cx, entry->key, entry->keylen, level))
		return false;
	byte = entry->key[level];
	(void) art_slot(node, type, byte, &ref);
	if (ref != 0 || (at = euno_art_node_place(node, byte)) == ART_NO_SLOT)
		return false;
	last_inline(entry, n, &leaf);

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
