/*-------------------------------------------------------------------------
 *
 * peer_page.h
 *	  A plain B+tree of 8-byte keys, for the protocols that ours is compared
 *	  with.
 *
 * Nodes are sorted arrays.  A full one is split on the way down, so that there
 * is always room for a separator above.  All access to nodes is through core's
 * accessors, so that it costs what it costs core.  Nothing is ever merged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PEER_PAGE_H
#define PEER_PAGE_H

#include "core/euno_lock.h"
#include "subjects.h"

#define PEER_BYTES	4096
#define PEER_CAP	((PEER_BYTES - 64) / 16)
#define PEER_COPY_BYTES	((size_t) 1 << 30)
#define PEER_CUT_ROOT	UINT32_MAX

/* Separator i of an inner node is the least key below child i + 1. */
typedef struct PeerPage
{
	EunoLock	lock;			/* the protocol's */
	uint32_t	count;			/* keys, or children: one separator less */
	uint32_t	level;			/* 0 = leaf */
	uint8_t		pad[48];
	uint64_t	keys[PEER_CAP];
	uint64_t	values[PEER_CAP];	/* TIDs, or children */
} PeerPage;

typedef struct PeerTree
{
	EunoLock	lock;			/* the protocol's, for the root's place */
	PeerPage   *root;
	uint32_t	level;			/* of the root */
} __attribute__((aligned(64))) PeerTree;

/*
 * Pages from this level on have so many copies, one in the memory of each
 * node.  Pointers, in pages, too, are to the first.  Set by peer_load.
 */
extern uint32_t peer_copies;
extern uint32_t peer_cut;

/* Copy k of a page, or of the tree. */
static inline void *
peer_copy(void *page, uint32_t k)
{
	return (uint8_t *) page + k * PEER_COPY_BYTES;
}

/*
 * A new tree with these rows, nine tenths full.  "copies" 1: there is one of
 * each page; PEER_CUT_ROOT: the root alone has more.
 */
extern PeerTree *peer_load(uint64_t rows, uint64_t (*key) (uint64_t i),
						   uint32_t copies, uint32_t cut);

/*
 * A new page at this level; its copies, if it has any, are to be initialized.
 */
extern PeerPage *peer_page(uint32_t level);

extern void peer_page_init(PeerPage *page, uint32_t level);

/* The number of keys below (with "upto": not above) this one. */
extern uint32_t peer_search(const PeerPage *page, uint64_t key, bool upto);

extern PeerPage *peer_child(const PeerPage *page, uint64_t key);

/* In a leaf: is (key, TID) there? */
extern bool peer_has(const PeerPage *page, uint64_t key, uint64_t tid);

static inline bool
peer_full(const PeerPage *page)
{
	return euno_load32(&page->count) >= PEER_CAP;
}

/* Into a leaf that has room, which the caller alone may write. */
extern void peer_put(PeerPage *page, uint64_t key, uint64_t tid);

/* From a leaf; false if it is not there. */
extern bool peer_take(PeerPage *page, uint64_t key, uint64_t tid);

/*
 * Moves the upper half of a full page to an empty one; returns the separator.
 */
extern uint64_t peer_halve(PeerPage *page, PeerPage *right);

/*
 * Adds a page that was halved, and the new one, to their parent, which is not
 * full.  NULL: they were the root; "above", empty, is the new one.
 */
extern void peer_adopt(PeerTree *tree, PeerPage *parent, PeerPage *above,
					   PeerPage *page, PeerPage *right, uint64_t separator);

/* Both for pages without copies; the parent is NULL as above. */
extern void peer_split(PeerTree *tree, PeerPage *parent, PeerPage *page);

#endif							/* PEER_PAGE_H */
