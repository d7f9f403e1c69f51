/*-------------------------------------------------------------------------
 *
 * art_build.c
 *	  From sorted entries to a reference: what inserts, bulk loads and compact
 *	  hang into the tree.
 *
 * Nothing here is reachable by others until the caller links it, and all of
 * it can be undone until then.  No node is locked.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

uint32_t
euno_art_item_len(const ArtItem *item)
{
	return (uint32_t) item->head_len + item->tail_len;
}

uint8_t
euno_art_item_byte(const ArtItem *item, uint32_t i)
{
	return i < item->head_len ? item->head[i] : item->tail[i - item->head_len];
}

/* Copies bytes [from, to) of the composite. */
void
euno_art_item_copy(const ArtItem *item, uint32_t from, uint32_t to,
				   uint8_t *out)
{
	if (from < item->head_len)
	{
		uint32_t	end = to < item->head_len ? to : item->head_len;

		memcpy(out, item->head + from, end - from);
		out += end - from;
		from = end;
	}
	if (from < to)
		memcpy(out, item->tail + (from - item->head_len), to - from);
}

/* How many bytes two different entries have in common. */
uint32_t
euno_art_item_common(const ArtItem *a, const ArtItem *b)
{
	uint32_t	la = euno_art_item_len(a);
	uint32_t	lb = euno_art_item_len(b);
	uint32_t	n = la < lb ? la : lb;
	uint32_t	i = 0;

	if (a->head == b->head && a->head_len == b->head_len)
		i = a->head_len;
	while (i < n && euno_art_item_byte(a, i) == euno_art_item_byte(b, i))
		i++;
	return i;
}

/* The order of two entries. */
int
euno_art_item_compare(const ArtItem *a, const ArtItem *b)
{
	uint32_t	i = euno_art_item_common(a, b);
	uint32_t	la = euno_art_item_len(a);
	uint32_t	lb = euno_art_item_len(b);

	if (i < la && i < lb)
		return (int) euno_art_item_byte(a, i) - (int) euno_art_item_byte(b, i);
	return (int) la - (int) lb;
}

/* The entry whose composite is the key. */
void
euno_art_item_key(const ArtKey *key, const EunoEntry *entry, ArtItem *item)
{
	item->head = key->bytes;
	item->head_len = (uint16_t) key->len;
	item->tail = NULL;
	item->tail_len = 0;
	item->payload = entry != NULL ? entry->payload : NULL;
	item->payload_len = entry != NULL ? (uint16_t) entry->payloadlen : 0;
}

void
euno_art_build_start(ArtBuild *build, EunoContext *cx, EunoTree *tree)
{
	build->cx = cx;
	build->tree = tree;
	build->n = build->nentries = build->nleaves = build->ninners = 0;
}

static void *
build_alloc(ArtBuild *build, size_t size)
{
	void	   *p;

	if (build->n == ART_MAX_BUILT)
		return NULL;
	p = euno_art_alloc(build->cx, build->tree, size);
	if (p != NULL)
	{
		build->built[build->n].p = p;
		build->built[build->n++].size = (uint32_t) size;
	}
	return p;
}

/* Frees all that was allocated. */
void
euno_art_build_undo(ArtBuild *build)
{
	for (uint32_t i = 0; i < build->n; i++)
		euno_art_free(build->cx, build->tree, build->built[i].p,
					  build->built[i].size);
	build->n = build->nleaves = build->ninners = 0;
}

/* An empty inner node; NULL if there is no memory. */
ArtNode *
euno_art_build_node(ArtBuild *build, ArtType type, const uint8_t *path,
					uint32_t level)
{
	ArtNode    *node = build_alloc(build, euno_art_node_size(type, level));

	if (node == NULL)
		return NULL;
	euno_art_node_init(node, type, path, level);
	build->ninners++;
	return node;
}

/* Do all entries differ in one byte, the last of equally long keys? */
bool
euno_art_is_dense(const ArtItem *items, uint32_t n)
{
	uint32_t	len = euno_art_item_len(&items[0]);
	uint32_t	level;

	if (n < ART_DENSE || n > 256 || len <= EUNO_TID_BYTES)
		return false;
	level = euno_art_item_common(&items[0], &items[n - 1]);
	if (level + 1 != len - EUNO_TID_BYTES)
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		if (euno_art_item_len(&items[i]) != len || items[i].payload_len > 0)
			return false;
		if (i > 0 && euno_art_item_byte(&items[i - 1], level) ==
			euno_art_item_byte(&items[i], level))
			return false;
	}
	return true;
}

/* One entry; 0 if there is no memory. */
static ArtRef
build_one(ArtBuild *build, const ArtItem *item, uint32_t depth)
{
	uint32_t	len = euno_art_item_len(item);
	uint8_t		bytes[ART_MAX_COMPOSITE];
	uint8_t    *p;

	euno_art_item_copy(item, 0, len, bytes);
	if (len - EUNO_TID_BYTES <= depth)
		return art_ref_inline(art_load_tid(bytes + len - EUNO_TID_BYTES),
							  depth - (len - EUNO_TID_BYTES));
	p = build_alloc(build, len);
	if (p == NULL)
		return 0;
	euno_copy_in(p, bytes, len);
	return art_ref(p, ART_SINGLE) | (ArtRef) len << ART_LEN_SHIFT;
}

static ArtRef
build_bucket(ArtBuild *build, const ArtItem *items, uint32_t n, uint32_t size,
			 uint32_t prefix_len, uint32_t width)
{
	size_t		room = euno_art_bucket_room(size);
	ArtBucket  *bucket = build_alloc(build, room);
	ArtImage	image;

	if (bucket == NULL)
		return 0;
	memset(&image.bucket, 0, sizeof(image.bucket));
	image.bucket.units = (uint16_t) (room / 16);
	euno_art_encode(items, n, prefix_len, width, &image);
	euno_copy_in(bucket, &image, size);
	return art_ref(bucket, ART_BUCKET);
}

/*
 * A subtree of these n entries (at least one, in order, distinct), to hang at
 * "depth": all of them have that many bytes in common.  0 if there is no
 * memory; the caller undoes the build then.
 */
ArtRef
euno_art_build(ArtBuild *build, const ArtItem *items, uint32_t n,
			   uint32_t depth)
{
	uint8_t		path[ART_MAX_COMPOSITE];
	uint32_t	nchildren = 1;
	uint32_t	prefix_len;
	uint32_t	width;
	uint32_t	size;
	ArtNode    *node;

	if (n == 1 && items[0].payload_len == 0)
	{
		build->nleaves++;
		return build_one(build, &items[0], depth);
	}
	size = euno_art_encoded_size(items, n, &prefix_len, &width);
	if (size <= ART_BUCKET_MAX && !euno_art_is_dense(items, n))
	{
		build->nleaves++;
		return build_bucket(build, items, n, size, prefix_len, width);
	}
	for (uint32_t i = 1; i < n; i++)
		nchildren += euno_art_item_byte(&items[i - 1], prefix_len) !=
			euno_art_item_byte(&items[i], prefix_len);
	euno_art_item_copy(&items[0], 0, prefix_len, path);
	node = euno_art_build_node(build, euno_art_node_type(nchildren), path,
							   prefix_len);
	if (node == NULL)
		return 0;
	for (uint32_t from = 0, to; from < n; from = to)
	{
		uint8_t		byte = euno_art_item_byte(&items[from], prefix_len);
		ArtRef		child;

		to = from + 1;
		while (to < n && euno_art_item_byte(&items[to], prefix_len) == byte)
			to++;
		child = euno_art_build(build, items + from, to - from, prefix_len + 1);
		if (child == 0)
			return 0;
		(void) euno_art_node_add(node, byte, child);
	}
	return art_ref(node, ART_NODE);
}
