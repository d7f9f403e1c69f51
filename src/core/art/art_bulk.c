/*-------------------------------------------------------------------------
 *
 * art_bulk.c
 *	  Loading sorted entries into a tree that nobody else can reach.
 *
 * Only the nodes on the path of the last entry can still get children.  Their
 * children so far are kept on a stack; a node is made when its last child is
 * known, just as large as it must be, and becomes a child of the one above.
 *
 * Keys that have very many nodes on one path can fill the stack.  Then what is
 * there is made a tree, and the entries that follow are inserted.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

#define MAX_OPEN	2048
#define MAX_REFS	2560

/* A node that is not made yet. */
typedef struct Open
{
	uint16_t	level;
	uint16_t	first;			/* of its children */
} Open;

/* EunoBulk.scratch */
typedef struct Pending
{
	bool		plain;			/* the rest is inserted */
	bool		any;			/* there is a last entry */
	uint32_t	payload_len;
	uint64_t	nentries;		/* to be counted, as the nodes that were made */
	uint64_t	ninners;
	uint32_t	nopen;
	uint32_t	nrefs;
	ArtKey	   *last;			/* whose leaf is not made yet, one of the keys */
	ArtKey		keys[2];
	Open		open[MAX_OPEN];
	ArtChild	refs[MAX_REFS];
	uint8_t		bytes[MAX_REFS];
	uint8_t		payload[EUNO_MAX_ENTRY];
	ArtCopy		copy;
} Pending;

_Static_assert(sizeof(Pending) <= sizeof(((EunoBulk *) 0)->scratch),
			   "the children must fit");

static Pending *
pending_of(EunoBulk *bulk)
{
	return (Pending *) bulk->scratch;
}

/* Makes the node on top of the stack, for a slot at this depth. */
static ArtRef
make_node(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t depth)
{
	Open	   *open = &p->open[--p->nopen];
	uint32_t	n = p->nrefs - open->first;
	ArtChildren *children = &p->copy.from;
	ArtBuild	build;

	memcpy(children->bytes, p->bytes + open->first, n);
	memcpy(children->child, p->refs + open->first, n * sizeof(ArtChild));
	children->n = n;
	euno_art_build_start(&build, cx, tree);
	if (!euno_art_copy_build(&build, &p->copy,
							 euno_art_choose(children, open->level + 1U, n),
							 p->last->bytes, depth, open->level))
		return 0;
	p->nrefs = open->first;
	p->ninners++;
	return art_node_ref(p->copy.node);
}

/*
 * Makes the last entry's leaf, and all nodes that branch behind byte "level";
 * -1: all nodes.  False if there is no memory.
 */
static bool
close_path(EunoContext *cx, EunoTree *tree, Pending *p, int level,
		   ArtChild *child)
{
	int			top = p->nopen > 0 ? p->open[p->nopen - 1].level : -1;
	uint32_t	depth = (uint32_t) ((top > level ? top : level) + 1);
	ArtBuild	build;

	/* as if for the widest slot; a narrower one gets a record in make_node */
	euno_art_build_start(&build, cx, tree);
	if (!euno_art_build_leaf(&build, p->last->bytes, p->last->len, depth,
							 p->payload, p->payload_len,
							 depth > 0 ? ART_WORDS : 1, child))
		return false;
	while (top > level)
	{
		p->refs[p->nrefs] = *child;
		p->bytes[p->nrefs++] = p->last->bytes[top];
		top = p->nopen > 1 ? p->open[p->nopen - 2].level : -1;
		child->ref = make_node(cx, tree, p,
							   (uint32_t) ((top > level ? top : level) + 1));
		child->more[0] = child->more[1] = 0;
		if (child->ref == 0)
			return false;
	}
	return true;
}

/* Makes a tree of what there is. */
static EunoStatus
finish(EunoContext *cx, EunoTree *tree, Pending *p)
{
	ArtChild	child;

	if (!p->any || p->plain)
		return EUNO_OK;
	if (!close_path(cx, tree, p, -1, &child))
		return EUNO_NO_MEMORY;
	art_count(cx, tree, (int64_t) p->nentries, (int64_t) p->ninners);
	(void) euno_add64(&art_body(tree)->loaded, p->ninners);
	euno_store64_release(&art_body(tree)->root, child.ref);
	return EUNO_OK;
}

/* See EunoTreeOps and EunoBulk. */
EunoStatus
euno_art_bulk_begin(EunoContext *cx, EunoTree *tree, EunoBulk *bulk)
{
	Pending    *p = pending_of(bulk);

	(void) cx;
	bulk->tree = tree;
	p->plain = p->any = false;
	p->last = p->keys;
	p->nentries = p->ninners = 0;
	p->nopen = p->nrefs = 0;
	return EUNO_OK;
}

/* The leaf before has its place: "key" parts from it at byte "level". */
static EunoStatus
part(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t level)
{
	ArtChild	child;

	if (!close_path(cx, tree, p, (int) level, &child))
		return EUNO_NO_MEMORY;
	if (p->nopen == 0 || p->open[p->nopen - 1].level < level)
	{
		p->open[p->nopen].level = (uint16_t) level;
		p->open[p->nopen++].first = (uint16_t) p->nrefs;
	}
	p->refs[p->nrefs] = child;
	p->bytes[p->nrefs++] = p->last->bytes[level];
	return EUNO_OK;
}

/* This many of their first bytes two keys have in common. */
static uint32_t
shared_bytes(const ArtKey *a, const ArtKey *b)
{
	uint32_t	n = a->len < b->len ? a->len : b->len;

	for (uint32_t i = 0; i < n; i += 8)
	{
		uint64_t	differ = euno_load_be(a->bytes + i, 8) ^
			euno_load_be(b->bytes + i, 8);

		if (differ != 0)
		{
			i += (uint32_t) __builtin_clzll(differ) / 8;
			return i < n ? i : n;
		}
	}
	return n;
}

/* See EunoTreeOps and EunoBulk. */
EunoStatus
euno_art_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	Pending    *p = pending_of(bulk);
	EunoStatus	status = EUNO_OK;
	ArtKey	   *key = &p->keys[p->last == p->keys];

	euno_art_key_entry(entry, key);
	if (p->any && !p->plain)
	{
		uint32_t	level = shared_bytes(p->last, key);

		if (level == key->len || level == p->last->len ||
			key->bytes[level] < p->last->bytes[level])
			return EUNO_CORRUPT;	/* not ascending */

		/* closing the path puts at most one more on the stack */
		if (p->nopen + 1 < MAX_OPEN && p->nrefs + 2 < MAX_REFS)
			status = part(cx, bulk->tree, p, level);
		else
		{
			status = finish(cx, bulk->tree, p);
			p->plain = true;
		}
	}
	if (status != EUNO_OK)
		return status;
	if (p->plain)
		return euno_art_insert(cx, bulk->tree, entry, false);
	p->last = key;
	p->payload_len = entry->payloadlen;
	if (entry->payloadlen > 0)
		memcpy(p->payload, entry->payload, entry->payloadlen);
	p->any = true;
	p->nentries++;
	return EUNO_OK;
}

/* See EunoTreeOps and EunoBulk. */
EunoStatus
euno_art_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	return finish(cx, bulk->tree, pending_of(bulk));
}
