/*-------------------------------------------------------------------------
 *
 * art_verify.c
 *	  Is the tree what it should be?
 *
 * Twice over all inner nodes, the first time checking each at one version; in
 * between, all entries are read in order.  If no version has changed from the
 * first time to the second, nobody wrote, and the counts must be exact.  What the
 * maps of domains name is looked at twice, too.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_near.h"

#define VERIFY_ITEMS	256
#define VERIFY_NODES	64		/* in one epoch */

typedef struct Verifier
{
	EunoContext *cx;
	EunoTree   *tree;
	const EunoVerify *verify;
	uint64_t	findings;
	uint64_t	entries;
	uint64_t	versions;		/* sum over all locks */
	uint64_t	inners;
	bool		again;			/* the second time: only versions */
	const char *what;			/* found within the epoch */
	ArtKey		last;			/* the entry before */
	ArtKey		key;
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

/* A leaf in a slot that the path leads to. */
static void
check_leaf(Verifier *v, const ArtChild *leaf, const ArtKey *path)
{
	uint8_t		bytes[ART_MAX_COMPOSITE];
	uint32_t	start = 0;
	ArtTail		tail;

	if (!euno_art_leaf_tail(leaf, path->len, &tail))
		v->what = "an entry begins behind its place";
	else if (path->len + tail.n > ART_MAX_COMPOSITE ||
			 path->len + tail.n < EUNO_TID_BYTES)
		v->what = "an entry has an impossible length";
	else if (art_is_leaf(leaf->ref))
	{
		/* what it has of the path */
		while (!euno_art_leaf_tail(leaf, start, &tail))
			start++;
		euno_copy_out(bytes, tail.bytes, path->len - start);
		if (memcmp(bytes, path->bytes + start, path->len - start) != 0)
			v->what = "an entry is where its key does not lead";
	}
}

/* What a slot holds. */
static void
check_child(Verifier *v, const ArtChild *held, const ArtKey *path)
{
	ArtRef		ref = held->ref;
	ArtNode    *child = art_pointer(ref);
	uint8_t		bytes[ART_MAX_COMPOSITE];
	uint32_t	from;

	if (!art_is_node(ref))
	{
		check_leaf(v, held, path);
		return;
	}
	from = art_level(child) - art_segment_len(child);
	if (art_node_ref(child) != ref)
		v->what = "a reference to a node has another type or level";
	else if (!art_is_sound(ref, path->len))
		v->what = "a node has an impossible level or path";
	else
	{
		euno_copy_out(bytes + from, art_segment(child), path->len - from);
		if (memcmp(bytes + from, path->bytes + from, path->len - from) != 0)
			v->what = "a node is where its path does not lead";
	}
}

/* Has a LIST or INDEX one slot for each byte, and for each slot a byte? */
static void
check_slots(Verifier *v, ArtNode *node)
{
	ArtType		type = art_type(node);
	const ArtLayout *layout = &euno_art_layouts[type];
	ArtRef	   *children = art_children(node);
	uint8_t		places[256];
	uint64_t	map[4];
	uint32_t	used = 0;
	uint32_t	bits = 0;

	if (type == ART_N256)
		return;
	euno_art_node_map(node, map, places);
	for (uint32_t i = 0; i < layout->capacity; i++)
		used += euno_load64(&children[i * layout->words]) != 0;
	for (int i = 0; i < 4; i++)
		bits += (uint32_t) __builtin_popcountll(map[i]);
	if (bits != used)
		v->what = "a node has two children for one byte";
	if (type > ART_LAST_LIST && euno_load32(&node->used) != used)
		v->what = "a node has another number of children than it says";
}

/*
 * A node and its leaves.  False if it is being written, or the operation was
 * canceled.
 */
static bool
check_node(Verifier *v, ArtNode *node, ArtKey *path)
{
	EunoContext *cx = v->cx;
	uint32_t	level = art_level(node);
	ArtChildren children;
	uint64_t	version;

	if (!euno_lock_read_or_leave(&node->lock, &version, cx->env,
								 &cx->counters))
		return false;
	v->versions += version_of(&node->lock, version);
	v->inners++;
	if (v->again)
		return true;
	check_slots(v, node);
	euno_art_node_children(node, &children);
	for (uint32_t i = 0; i < children.n; i++)
	{
		path->bytes[level] = children.bytes[i];
		euno_art_key_set(path, level + 1);
		check_child(v, &children.child[i], path);
	}
	euno_art_key_set(path, level);
	return euno_lock_validate(&node->lock, version);
}

/* A tree of at most one entry. */
static void
check_root(Verifier *v)
{
	ArtRef	   *slot = &art_body(v->tree)->root;
	ArtRef		ref = euno_load64_acquire(slot);
	ArtChild	only = art_child(ref, slot);
	ArtKey		path;

	euno_art_key_set(&path, 0);
	if (ref != 0 && !art_is_absent(ref) && !art_is_node(ref))
		check_child(v, &only, &path);
}

/*
 * Some nodes, within one epoch, until something is found.  A node is only
 * believed when nobody was writing to it.  EUNO_OK; EUNO_NOT_FOUND after the
 * last one; EUNO_CORRUPT or EUNO_CANCELED.
 */
static EunoStatus
check_some(Verifier *v, ArtVisit *visit)
{
	EunoStatus	status = EUNO_OK;

	v->what = NULL;
	euno_epoch_enter(v->cx->process);
	for (int i = 0; i < VERIFY_NODES && v->what == NULL && status == EUNO_OK;
		 i++)
	{
		uint64_t	versions = v->versions;
		uint64_t	inners = v->inners;
		ArtNode    *node;

		status = euno_art_visit(visit);
		if (status != EUNO_OK)
			break;
		node = art_pointer(visit->place.ref);
		while (!check_node(v, node, &visit->at))
		{
			v->what = NULL;
			v->versions = versions;
			v->inners = inners;
			if (euno_is_canceled(v->cx->env))
			{
				status = EUNO_CANCELED;
				break;
			}

			/* Who locks it need not write: what is below it counts once. */
			if ((euno_load64_acquire(&node->lock.word) & EUNO_LOCK_OBSOLETE) != 0)
			{
				euno_art_visit_again(visit);
				break;
			}
		}
	}
	if (status == EUNO_NOT_FOUND && !v->again)
		check_root(v);
	euno_epoch_exit(v->cx->process);
	euno_art_visit_pause(visit);
	return status;
}

/*
 * Once over all inner nodes.  False: one is damaged, and nobody can go on; or
 * canceled.
 */
static bool
check_nodes(Verifier *v)
{
	EunoStatus	status;
	ArtVisit	visit;

	if (!euno_lock_read_or_leave(&art_body(v->tree)->root_lock, &v->versions,
								 v->cx->env, &v->cx->counters))
		return false;
	v->inners = 0;
	euno_art_visit_start(&visit, v->cx, v->tree);
	do
	{
		status = check_some(v, &visit);
		if (status == EUNO_CORRUPT)
			v->what = "a node is damaged; the rest is not looked at";
		if (v->what != NULL)
			found(v, v->what);
		if (v->verify->pause != NULL)
			v->verify->pause(v->verify->arg);
	} while (status == EUNO_OK);
	return status == EUNO_NOT_FOUND;
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

/* All entries, in order.  False if canceled. */
static bool
check_entries(Verifier *v)
{
	EunoStatus	status;

	euno_cursor_of_all(&v->cursor);
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
		if (status == EUNO_CANCELED)
			return false;
		if (status != EUNO_OK)
			found(v, "a scan found something impossible");
		for (uint32_t i = 0; status == EUNO_OK && i < v->batch.nitems; i++)
			check_entry(v, i);
	} while (status == EUNO_OK && v->batch.nitems > 0 && !v->cursor.at_hi);
	return true;
}

/*
 * Those of the maps' names that were suspect already, and need not be any
 * more.
 */
static void
check_maps(Verifier *v, const ArtSuspect *before, uint32_t n, uint64_t epoch)
{
	ArtSuspect	now[ART_SUSPECTS];
	uint32_t	nnow;

	if (n == 0 || !euno_epoch_passed(v->cx->process->epochs, epoch))
		return;
	nnow = euno_art_near_suspects(v->cx, v->tree, now);
	for (uint32_t i = 0; i < nnow; i++)
	{
		for (uint32_t k = 0; k < n; k++)
		{
			if (now[i].slot == before[k].slot && now[i].ref == before[k].ref)
				found(v, "a near map names a node that is not in its place");
		}
	}
}

/*
 * Checks a tree; see EunoTreeOps.  Returns the number of findings.  Reports
 * and entries are given out without locks and epoch.
 */
uint64_t
euno_art_verify(EunoContext *cx, EunoTree *tree, const EunoVerify *verify)
{
	ArtSuspect	suspects[ART_SUSPECTS];
	uint32_t	nsuspects;
	uint64_t	versions;
	uint64_t	inners;
	uint64_t	entries_counted;
	uint64_t	inners_counted;
	uint64_t	epoch;
	Verifier	v;

	v.cx = cx;
	v.tree = tree;
	v.verify = verify;
	v.findings = v.entries = 0;
	v.again = false;
	nsuspects = euno_art_near_suspects(cx, tree, suspects);
	epoch = nsuspects == 0 ? 0 : euno_epoch_advance(cx->process->epochs);
	if (!check_nodes(&v))
		return v.findings;
	versions = v.versions;
	inners = v.inners;
	if (!check_entries(&v))
		return v.findings;
	check_maps(&v, suspects, nsuspects, epoch);
	entries_counted = euno_art_entries(tree);
	inners_counted = euno_art_inners(tree);
	euno_fence_acquire();
	v.again = true;
	if (!check_nodes(&v) || versions != v.versions || inners != v.inners)
		return v.findings;
	if (entries_counted != v.entries)
		found(&v, "the number of entries is wrong");
	if (inners_counted != inners)
		found(&v, "the number of inner nodes is wrong");
	return v.findings;
}
