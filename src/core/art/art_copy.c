/*-------------------------------------------------------------------------
 *
 * art_copy.c
 *	  A new node made of another one's children, or of two leaves.
 *
 * It gets the type that takes the fewest bytes, records of its leaves included:
 * wide slots save the record of a leaf, and cost as much for each child that has
 * none.  So leaves may have to become inline, or records.  All that is needed is
 * allocated and filled from a first look at the node, without locks; when the
 * node is locked, it must still hold what was seen.
 *
 *-------------------------------------------------------------------------
 */
#include "core/art/art_search.h"

/* The bytes of a leaf from this depth on. */
static inline uint32_t
rest_of(ArtRef ref, uint32_t depth)
{
	return art_is_leaf(ref) ? art_leaf_len(ref) - depth : art_inline_count(ref);
}

/* Bytes of the records that the leaves need in slots of this many words. */
static void
weigh_records(const ArtChildren *children, uint32_t depth,
			  size_t bytes[ART_WORDS])
{
	bytes[0] = bytes[1] = bytes[2] = 0;
	for (uint32_t i = 0; i < children->n; i++)
	{
		ArtRef		ref = children->child[i].ref;
		uint32_t	rest;

		if (art_is_node(ref) || (art_is_leaf(ref) && (ref & ART_PAYLOAD) != 0))
			continue;
		rest = rest_of(ref, depth);
		for (uint32_t w = 1; w <= ART_WORDS && rest > art_inline_max(w); w++)
			bytes[w - 1] += art_record_memory(2 + rest);
	}
}

/* Bytes of a node of this type with these children, records included. */
size_t
euno_art_weight(const ArtChildren *children, uint32_t depth, ArtType type)
{
	size_t		records[ART_WORDS];

	weigh_records(children, depth, records);
	return euno_art_layouts[type].size +
		records[euno_art_layouts[type].words - 1];
}

/*
 * The type for these children and some more like them, so many in all.  Their
 * slots are at this depth.  Wider slots that save records may make the node an
 * eighth larger than they are worth in bytes: they save a cache miss, too.
 */
ArtType
euno_art_choose(const ArtChildren *children, uint32_t depth,
				uint32_t capacity)
{
	ArtType		best = euno_art_node_type(capacity, 1);
	size_t		records[ART_WORDS];
	size_t		least;

	weigh_records(children, depth, records);
	for (uint32_t w = 0; w < ART_WORDS && records[w] > 0; w++)
		records[w] = records[w] * capacity / children->n;
	least = euno_art_layouts[best].size + records[0];
	for (uint32_t w = 2; w <= ART_WORDS && records[w - 2] > 0; w++)
	{
		ArtType		type = euno_art_node_type(capacity, w);
		size_t		bytes;

		if (type == ART_NTYPES)
			break;
		bytes = euno_art_layouts[type].size + records[w - 1];
		if (records[w - 1] < records[euno_art_layouts[best].words - 1] &&
			bytes <= least + euno_art_layouts[best].size / 8)
		{
			best = type;
			least = bytes < least ? bytes : least;
		}
	}
	return best;
}

/*
 * Looks at the children of a node that is to be replaced.  Whoever has it
 * locked now, and changes it, leaves another version.
 */
void
euno_art_copy_look(ArtCopy *copy, ArtNode *node)
{
	copy->version = euno_load64_acquire(&node->lock.word) &
		~(EUNO_LOCK_LOCKED | EUNO_LOCK_WAITERS);
	euno_art_node_children(node, &copy->from);
	copy->node = NULL;
	copy->nreplaced = 0;
}

/* One more child, or, after nothing was looked at, one of two. */
void
euno_art_copy_add(ArtCopy *copy, uint8_t byte, const ArtChild *child)
{
	copy->from.bytes[copy->from.n] = byte;
	copy->from.child[copy->from.n++] = *child;
}

/* Is a child in slots of this many words at this depth what it is now? */
static inline bool
is_kept(ArtRef ref, uint32_t depth, uint32_t words)
{
	return art_is_node(ref) || (art_is_leaf(ref) && (ref & ART_PAYLOAD) != 0) ||
		art_is_leaf(ref) == (rest_of(ref, depth) > art_inline_max(words));
}

/*
 * A child that is not, as it then is.  A record that is done without is noted.
 * False if there is no memory.
 */
static bool
convert(ArtBuild *build, ArtCopy *copy, const ArtChild *from, uint32_t depth,
		uint32_t words, ArtChild *child)
{
	ArtRef		ref = from->ref;
	uint8_t		composite[ART_MAX_COMPOSITE];
	ArtTail		tail;

	*child = *from;
	if (!euno_art_leaf_tail(from, depth, &tail))
		return true;
	if (art_is_leaf(ref))
	{
		uint8_t		bytes[8 * ART_WORDS];

		euno_copy_out(bytes, tail.bytes, tail.n);
		euno_art_inline(bytes, tail.n, child);
		copy->replaced[copy->nreplaced++] = ref;
		return true;
	}
	memcpy(composite + depth, tail.bytes, tail.n);
	return euno_art_build_leaf(build, composite, depth + tail.n, depth, NULL, 0,
							   words, child);
}

/*
 * The slot of a new node's next child in the order of bytes: where it should
 * be, or the first one behind those before it, "next"; but so that it and all
 * that follow, "n" in all, have room.  Not of an N256.
 */
static inline uint32_t
place_next(uint32_t capacity, uint8_t byte, uint32_t next, uint32_t n)
{
	uint32_t	at = art_place(capacity, byte);

	if (at < next)
		at = next;
	return at < capacity - n ? at : capacity - n;
}

/*
 * Puts a child into a slot of a node that nobody sees yet: art_node_put, in no
 * order.
 */
static inline void
fill_slot(ArtNode *node, ArtType type, ArtRef *children, uint32_t words,
		  uint32_t at, uint8_t byte, const ArtChild *child)
{
	ArtRef	   *slot = children + at * words;

	if (type <= ART_LAST_LIST)
		euno_store8((uint8_t *) node + ART_KEYS + at, byte);
	else if (type != ART_N256)
		euno_store8(&node->body[byte], (uint8_t) (at + 1));
	euno_store64(slot, child->ref);
	if (words > 1)
		euno_store64(slot + 1, child->more[0]);
	if (words > 2)
		euno_store64(slot + 2, child->more[1]);
}

/*
 * Makes the node, of this type, for a slot at depth "from"; path and level as
 * in euno_art_build_node.  The children are in the order of their bytes; only
 * the last one need not be.  False if there is no memory.
 */
bool
euno_art_copy_build(ArtBuild *build, ArtCopy *copy, ArtType type,
					const uint8_t *path, uint32_t from, uint32_t level)
{
	const uint8_t *bytes = copy->from.bytes;
	const uint32_t words = euno_art_layouts[type].words;
	const uint32_t capacity = euno_art_layouts[type].capacity;
	const uint32_t n = copy->from.n;
	uint32_t	next = 0;
	ArtRef	   *children;

	copy->nreplaced = 0;
	copy->node = euno_art_build_node(build, type, path, from, level);
	if (copy->node == NULL)
		return false;
	children = art_children(copy->node);
	for (uint32_t i = 0; i < n; i++)
	{
		const ArtChild *child = &copy->from.child[i];
		ArtChild	converted;
		uint32_t	at;

		if (!is_kept(child->ref, level + 1, words))
		{
			if (!convert(build, copy, child, level + 1, words, &converted))
				return false;
			child = &converted;
		}
		if (type == ART_N256)
			at = bytes[i];
		else if (i > 0 && bytes[i] < bytes[i - 1])
			at = euno_art_node_place(copy->node, bytes[i]);
		else
		{
			at = place_next(capacity, bytes[i], next, n - i);
			next = at + 1;
		}
		fill_slot(copy->node, type, children, words, at, bytes[i], child);
	}
	if (type > ART_LAST_LIST && type != ART_N256)
		euno_store32(&copy->node->used, n);
	return true;
}

/* Does the node, which is locked, still hold what was seen in it? */
bool
euno_art_copy_holds(const ArtCopy *copy, ArtNode *node)
{
	return euno_lock_version(&node->lock) == copy->version;
}

/* Records that replacing the node unlinks. */
uint32_t
euno_art_copy_unlinks(const ArtCopy *copy)
{
	return copy->from.ndead + copy->nreplaced;
}

/* Retires them.  Room has been reserved.  No node locks. */
void
euno_art_copy_retire(EunoContext *cx, EunoTree *tree, const ArtCopy *copy)
{
	for (uint32_t i = 0; i < copy->from.ndead; i++)
		euno_art_retire_ref(cx, tree, copy->from.dead[i]);
	for (uint32_t i = 0; i < copy->nreplaced; i++)
		euno_art_retire_ref(cx, tree, copy->replaced[i]);
}
