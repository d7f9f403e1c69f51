/*-------------------------------------------------------------------------
 *
 * art_verify.c
 *	  Is the tree what it should be?
 *
 * Twice over all inner nodes, each checked at one version; in between, all
 * entries are read in order.  If no version has changed from the first time to
 * the second, nobody wrote, and the counts must be exact.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art.h"

#define VERIFY_ITEMS	256

typedef struct Verifier
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoVerify *verify;
	uint64_t	findings;
	uint64_t	entries;
	uint64_t	versions;		/* sum over all locks */
	uint64_t	leaves;
	uint64_t	inners;
	const char *what;			/* found within the epoch */
	ArtKey		last;			/* the entry before */
	ArtKey		key;
	ArtImage	image;
	ArtItems	items;
	EunoCursor	cursor;
	EunoBatch	batch;
	EunoTid		tids[VERIFY_ITEMS];
	EunoItemKey keys[VERIFY_ITEMS];
	uint8_t		buf[16 * 1024] __attribute__((aligned(8)));
} Verifier;

static void
found(Verifier *v, const char *what)
{
	v->findings++;
	v->verify->report(v->verify->arg, what);
}

/* What stands for a lock and its version in the sum. */
static uint64_t
version_of(const EunoLock *lock, uint64_t version)
{
	uint64_t	x = (version ^ (uint64_t) (uintptr_t) lock << 20) *
		UINT64_C(0x9E3779B97F4A7C15);

	x ^= x >> 32;
	return x * UINT64_C(0xBF58476D1CE4E5B9);
}

/* Does a composite of this length start with the path? */
static bool
starts_with(const uint8_t *bytes, uint32_t len, const ArtKey *path)
{
	return len >= path->len && memcmp(bytes, path->bytes, path->len) == 0;
}

/* A bucket.  False if it is being written. */
static bool
check_bucket(Verifier *v, ArtBucket *bucket, const ArtKey *path)
{
	EunoContext *cx = v->cx;
	uint64_t	version;
	ArtView		view;

	if (!euno_lock_read(&bucket->lock, &version, cx->env, &cx->counters))
		return false;
	euno_copy_out(&v->image, bucket, (size_t) bucket->units * 16);
	if (!euno_lock_validate(&bucket->lock, version))
		return false;
	v->versions += version_of(&bucket->lock, version);
	euno_art_view(&v->image.bucket, &view);
	if (view.torn)
		v->what = "a bucket's header is wrong";
	else if (!starts_with(v->image.bytes + ART_BUCKET_HEADER, view.prefix_len,
						  path))
		v->what = "a bucket is where its prefix does not lead";
	else
	{
		for (uint32_t i = 0; i < view.n; i++)
		{
			if (!euno_art_view_item(&view, i, &v->items.items[i]))
			{
				v->what = "a bucket's entry is outside of it";
				break;
			}
			if (i > 0 && euno_art_item_compare(&v->items.items[i - 1],
											   &v->items.items[i]) >= 0)
				v->what = "a bucket's entries are out of order";
		}
	}
	return true;
}

/* What a slot holds.  False if it is being written. */
static bool
check_child(Verifier *v, ArtRef ref, const ArtKey *path)
{
	ArtPlace	place = {.ref = ref,.depth = path->len};
	ArtItem		item;

	if (art_is_node(ref))
	{
		ArtNode    *child = art_pointer(ref);
		uint8_t		bytes[ART_MAX_COMPOSITE];
		uint32_t	len = euno_art_path_copy(child, bytes);

		if (child->level < path->len || !starts_with(bytes, len, path))
			v->what = "a node is where its path does not lead";
		return true;
	}
	v->leaves++;
	if (art_tag(ref) == ART_BUCKET)
		return check_bucket(v, art_pointer(ref), path);
	(void) euno_art_leaf_item(&place, path, &v->key, &item);
	if (v->key.len < EUNO_TID_BYTES ||
		(art_tag(ref) == ART_SINGLE &&
		 !starts_with(v->key.bytes, v->key.len, path)))
		v->what = "an entry is where its key does not lead";
	if (art_tag(ref) == ART_INLINE &&
		(art_inline_over(ref) > EUNO_TID_BYTES ||
		 art_inline_over(ref) > path->len ||
		 memcmp(v->key.bytes + path->len - art_inline_over(ref),
				path->bytes + path->len - art_inline_over(ref),
				art_inline_over(ref)) != 0))
		v->what = "a TID is where its bytes do not lead";
	return true;
}

/* A node and its leaves.  False if it is being written. */
static bool
check_node(Verifier *v, ArtNode *node, ArtKey *path)
{
	EunoContext *cx = v->cx;
	uint32_t	level = node->level;
	uint64_t	version;
	int			byte = -1;
	int			last = -1;
	ArtRef		ref;
	ArtRef	   *slot;

	if (!euno_lock_read(&node->lock, &version, cx->env, &cx->counters))
		return false;
	v->versions += version_of(&node->lock, version);
	v->inners++;
	if (node->type > ART_N256 || level >= ART_MAX_COMPOSITE)
		v->what = "a node's header is wrong";
	while ((ref = euno_art_node_next(node, byte + 1, true, &byte)) != 0)
	{
		slot = euno_art_node_slot(node, (uint8_t) byte);
		if (byte <= last || slot == NULL || euno_load64(slot) != ref)
			v->what = "a node has two children for one byte";
		last = byte;
		path->bytes[level] = (uint8_t) byte;
		euno_art_key_set(path, level + 1);
		if (!euno_lock_validate(&node->lock, version) ||
			!check_child(v, ref, path))
			return false;
	}
	euno_art_key_set(path, level);
	return euno_lock_validate(&node->lock, version);
}

/* Once over all inner nodes. */
static void
check_nodes(Verifier *v)
{
	EunoStatus	status;
	ArtPlace	place;
	ArtKey		at;

	(void) euno_lock_read(&art_body(v->tree)->root_lock, &v->versions,
						  v->cx->env, &v->cx->counters);
	v->leaves = v->inners = 0;
	euno_art_key_set(&at, 0);
	do
	{
		uint64_t	versions = v->versions;
		uint64_t	leaves = v->leaves;
		uint64_t	inners = v->inners;
		ArtKey		path;

		v->what = NULL;
		euno_epoch_enter(v->cx->process);
		status = euno_art_visit(v->cx, v->tree, &at, &place);
		if (status == EUNO_OK)
		{
			memcpy(path.bytes, at.bytes, at.len);
			euno_art_key_set(&path, at.len);
			if (check_node(v, art_pointer(place.ref), &path))
				euno_art_visit_past(&at);
			else
			{
				/* only believed when nobody was writing */
				v->what = NULL;
				v->versions = versions;
				v->leaves = leaves;
				v->inners = inners;
			}
		}
		else if (at.len == 0 && place.ref != 0 && !art_is_node(place.ref))
		{
			/* no inner node at all */
			euno_art_key_set(&path, 0);
			if (!check_child(v, place.ref, &path))
			{
				v->what = NULL;
				v->leaves = leaves;
				status = EUNO_STALE;
			}
		}
		euno_epoch_exit(v->cx->process);
		if (v->what != NULL)
			found(v, v->what);
	} while (status != EUNO_NOT_FOUND);
}

/* One entry, as a scan returned it. */
static void
check_entry(Verifier *v, uint32_t i)
{
	EunoItemKey *key = &v->keys[i];
	EunoEntry	entry = {
		.key = v->buf + key->offset,
		.keylen = key->keylen,
		.payload = v->buf + key->offset + ((key->keylen + 7U) & ~7U),
		.payloadlen = key->payloadlen,
		.tid = v->tids[i]
	};

	euno_art_key_entry(&entry, &v->key);
	if (v->entries > 0 && euno_art_key_compare(&v->last, &v->key) >= 0)
		found(v, "entries are out of order");
	memcpy(v->last.bytes, v->key.bytes, v->key.len);
	euno_art_key_set(&v->last, v->key.len);
	v->entries++;
	if (v->verify->entry != NULL)
		v->verify->entry(v->verify->arg, &entry);
}

static void
check_entries(Verifier *v)
{
	EunoStatus	status;

	memset(&v->cursor.lo, 0, sizeof(v->cursor.lo));
	memset(&v->cursor.hi, 0, sizeof(v->cursor.hi));
	v->cursor.lo.side = -1;
	v->cursor.hi.side = 1;
	euno_cursor_start(&v->cursor);
	memset(&v->batch, 0, sizeof(v->batch));
	v->batch.max_items = VERIFY_ITEMS;
	v->batch.tids = v->tids;
	v->batch.want_keys = true;
	v->batch.keys = v->keys;
	v->batch.buf = v->buf;
	v->batch.buf_size = sizeof(v->buf);
	do
	{
		status = euno_art_read(v->cx, v->tree, &v->cursor, true, &v->batch);
		if (status != EUNO_OK)
			found(v, "a scan found something impossible");
		for (uint32_t i = 0; status == EUNO_OK && i < v->batch.nitems; i++)
			check_entry(v, i);
	} while (status == EUNO_OK && v->batch.nitems > 0 && !v->cursor.at_hi);
}

/*
 * Checks a tree; see EunoTreeOps.  Returns the number of findings.  Reports
 * and entries are given out without locks and epoch.
 */
uint64_t
euno_art_verify(EunoContext *cx, EunoTree *tree, const EunoVerify *verify)
{
	EunoTreeStats stats;
	uint64_t	versions;
	uint64_t	leaves;
	uint64_t	inners;
	Verifier	v;

	v.cx = cx;
	v.tree = tree;
	v.verify = verify;
	v.findings = v.entries = 0;
	check_nodes(&v);
	versions = v.versions;
	leaves = v.leaves;
	inners = v.inners;
	check_entries(&v);
	euno_art_stats(cx, tree, &stats);
	check_nodes(&v);
	if (versions != v.versions || leaves != v.leaves || inners != v.inners)
		return v.findings;
	if (stats.entries != v.entries)
		found(&v, "the number of entries is wrong");
	if (stats.leaves != leaves)
		found(&v, "the number of leaves is wrong");
	if (stats.inners != inners)
		found(&v, "the number of inner nodes is wrong");
	return v.findings;
}
