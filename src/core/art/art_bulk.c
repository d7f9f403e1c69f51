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
#define MAX_REFS	8192

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
	uint32_t	nopen;
	uint32_t	nrefs;
	ArtKey		last;			/* whose leaf is not made yet */
	Open		open[MAX_OPEN];
	ArtRef		refs[MAX_REFS];
	uint8_t		bytes[MAX_REFS];
	uint8_t		payload[EUNO_MAX_ENTRY];
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
	ArtBuild	build;
	ArtNode    *node;

	euno_art_build_start(&build, cx, tree);
	node = euno_art_build_node(&build, euno_art_node_type(n), p->last.bytes,
							   depth, open->level);
	if (node == NULL)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		(void) euno_art_node_add(node, p->bytes[open->first + i],
								 p->refs[open->first + i]);
	p->nrefs = open->first;
	art_count(cx, tree, 0, 1);
	return art_node_ref(node);
}

/*
 * Makes the last entry's leaf, and all nodes that branch behind byte "level";
 * -1: all nodes.  0 if there is no memory.
 */
static ArtRef
close_path(EunoContext *cx, EunoTree *tree, Pending *p, int level)
{
	ArtBuild	build;
	ArtRef		ref = 0;

	euno_art_build_start(&build, cx, tree);
	for (bool leaf = true;; leaf = false)
	{
		int			top = p->nopen > 0 ? p->open[p->nopen - 1].level : -1;
		uint32_t	depth = (uint32_t) ((top > level ? top : level) + 1);

		if (leaf)
			ref = euno_art_build_leaf(&build, p->last.bytes, p->last.len,
									  depth, p->payload, p->payload_len);
		if (ref == 0 || top <= level)
			return ref;
		p->refs[p->nrefs] = ref;
		p->bytes[p->nrefs++] = p->last.bytes[top];
		top = p->nopen > 1 ? p->open[p->nopen - 2].level : -1;
		ref = make_node(cx, tree, p,
						(uint32_t) ((top > level ? top : level) + 1));
		if (ref == 0)
			return 0;
	}
}

/* Makes a tree of what there is. */
static EunoStatus
finish(EunoContext *cx, EunoTree *tree, Pending *p)
{
	ArtRef		ref;

	if (!p->any || p->plain)
		return EUNO_OK;
	ref = close_path(cx, tree, p, -1);
	if (ref == 0)
		return EUNO_NO_MEMORY;
	euno_store64_release(&art_body(tree)->root, ref);
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
	p->nopen = p->nrefs = 0;
	return EUNO_OK;
}

/* The leaf before has its place: "key" parts from it at byte "level". */
static EunoStatus
part(EunoContext *cx, EunoTree *tree, Pending *p, uint32_t level)
{
	ArtRef		ref = close_path(cx, tree, p, (int) level);

	if (ref == 0)
		return EUNO_NO_MEMORY;
	if (p->nopen == 0 || p->open[p->nopen - 1].level < level)
	{
		p->open[p->nopen].level = (uint16_t) level;
		p->open[p->nopen++].first = (uint16_t) p->nrefs;
	}
	p->refs[p->nrefs] = ref;
	p->bytes[p->nrefs++] = p->last.bytes[level];
	return EUNO_OK;
}

/* See EunoTreeOps and EunoBulk. */
EunoStatus
euno_art_bulk_add(EunoContext *cx, EunoBulk *bulk, const EunoEntry *entry)
{
	Pending    *p = pending_of(bulk);
	EunoStatus	status = EUNO_OK;
	uint32_t	level = 0;
	ArtKey		key;

	euno_art_key_entry(entry, &key);
	if (p->any && !p->plain)
	{
		while (level < key.len && level < p->last.len &&
			   key.bytes[level] == p->last.bytes[level])
			level++;
		if (level == key.len || level == p->last.len ||
			key.bytes[level] < p->last.bytes[level])
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
	memcpy(p->last.bytes, key.bytes, key.len);
	euno_art_key_set(&p->last, key.len);
	p->payload_len = entry->payloadlen;
	if (entry->payloadlen > 0)
		memcpy(p->payload, entry->payload, entry->payloadlen);
	p->any = true;
	art_count(cx, bulk->tree, 1, 0);
	return EUNO_OK;
}

/* See EunoTreeOps and EunoBulk. */
EunoStatus
euno_art_bulk_end(EunoContext *cx, EunoBulk *bulk)
{
	return finish(cx, bulk->tree, pending_of(bulk));
}
