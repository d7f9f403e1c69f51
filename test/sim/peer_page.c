/*-------------------------------------------------------------------------
 *
 * peer_page.c
 *	  A plain B+tree of 8-byte keys: nodes, without any protocol.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "peer_page.h"

#define REGION_BYTES	(MAX_NODES * PEER_COPY_BYTES)

static uint8_t *region;
static size_t region_used;

uint32_t	peer_copies;
uint32_t	peer_cut;

/* 64-byte aligned memory that is all given back by the next load. */
static void *
region_take(size_t size)
{
	void	   *p = region + region_used;

	region_used += (size + 63) & ~(size_t) 63;
	if (region_used > (peer_copies > 1 ? PEER_COPY_BYTES : REGION_BYTES))
	{
		fprintf(stderr, "the peer's tree has become too large\n");
		exit(1);
	}
	return p;
}

void
peer_page_init(PeerPage *page, uint32_t level)
{
	memset(page, 0, 64);
	page->level = level;
}

/* Has the copies of a page, or of the tree, lie on their nodes. */
static void
place_copies(void *page)
{
	for (uint32_t k = 0; k < peer_copies; k++)
		cache_place(peer_copy(page, k), PEER_BYTES, k);
}

PeerPage *
peer_page(uint32_t level)
{
	PeerPage   *page = region_take(sizeof(PeerPage));

	peer_page_init(page, level);
	if (peer_copies > 1 && level >= peer_cut)
		place_copies(page);
	return page;
}

/* Copies what has been loaded. */
static void
copy_all(PeerTree *tree)
{
	for (size_t at = 0; at < region_used; at += PEER_BYTES)
	{
		PeerPage   *page = (PeerPage *) (region + at);

		if (at > 0 && page->level < peer_cut)
			continue;
		place_copies(page);
		for (uint32_t k = 1; k < peer_copies; k++)
			memcpy(peer_copy(page, k), page, at > 0 ? PEER_BYTES : sizeof(*tree));
	}
}

/* The level above: a row for each page; returns their number. */
static uint64_t
load_level(Row *rows, uint64_t n, uint32_t level)
{
	uint64_t	npages = 0;
	PeerPage   *page = NULL;

	for (uint64_t i = 0; i < n; i++)
	{
		Row			row = rows[i];

		if (page == NULL || page->count >= PEER_CAP * 9 / 10)
		{
			page = peer_page(level);
			rows[npages].key = row.key;
			rows[npages++].value = (uintptr_t) page;
		}
		else if (level > 0)
			page->keys[page->count - 1] = row.key;
		if (level == 0)
			page->keys[page->count] = row.key;
		page->values[page->count++] = row.value;
	}
	return npages;
}

PeerTree *
peer_load(uint64_t nrows, uint64_t (*key) (uint64_t i), uint32_t copies,
		  uint32_t cut)
{
	Row		   *rows = rows_by_key(nrows, key);
	PeerTree   *tree;
	uint64_t	n = nrows;

	if (region == NULL)
		region = shared_memory(REGION_BYTES);
	region_used = 0;
	peer_copies = 1;
	tree = region_take(PEER_BYTES);
	memset(tree, 0, sizeof(*tree));
	for (uint32_t level = 0; level == 0 || n > 1; level++)
		n = load_level(rows, n, level);
	tree->root = (PeerPage *) (uintptr_t) rows[0].value;
	tree->level = tree->root->level;
	free(rows);
	peer_copies = copies;
	peer_cut = cut == PEER_CUT_ROOT ? tree->level : cut;
	if (copies > 1)
		copy_all(tree);
	return tree;
}

/*
 * Keys in a leaf, separators in an inner node; never more than there can be.
 */
static uint32_t
key_count(const PeerPage *page)
{
	uint32_t	count = euno_load32(&page->count);

	if (count > PEER_CAP)
		count = PEER_CAP;
	return count > 0 && euno_load32(&page->level) > 0 ? count - 1 : count;
}

uint32_t
peer_search(const PeerPage *page, uint64_t key, bool upto)
{
	uint32_t	lo = 0;
	uint32_t	n = key_count(page);

	while (n > 0)
	{
		uint32_t	half = n / 2;
		uint64_t	seen = euno_load64(&page->keys[lo + half]);
		bool		right = upto ? seen <= key : seen < key;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	return lo;
}

PeerPage *
peer_child(const PeerPage *page, uint64_t key)
{
	return (PeerPage *) (uintptr_t)
		euno_load64(&page->values[peer_search(page, key, true)]);
}

/* The place of (key, TID), or the count. */
static uint32_t
find(const PeerPage *page, uint64_t key, uint64_t tid)
{
	uint32_t	count = key_count(page);

	for (uint32_t i = peer_search(page, key, false); i < count; i++)
	{
		if (euno_load64(&page->keys[i]) != key)
			break;
		if (euno_load64(&page->values[i]) == tid)
			return i;
	}
	return count;
}

bool
peer_has(const PeerPage *page, uint64_t key, uint64_t tid)
{
	return find(page, key, tid) < key_count(page);
}

static void
put_at(PeerPage *page, uint32_t at, uint32_t value_at, uint64_t key,
	   uint64_t value)
{
	uint32_t	count = euno_load32(&page->count);

	if (count > at)
		euno_move(&page->keys[at + 1], &page->keys[at], (count - at) * 8);
	if (count > value_at)
		euno_move(&page->values[value_at + 1], &page->values[value_at],
				  (count - value_at) * 8);
	euno_store64(&page->keys[at], key);
	euno_store64(&page->values[value_at], value);
	euno_store32(&page->count, count + 1);
}

void
peer_put(PeerPage *page, uint64_t key, uint64_t tid)
{
	uint32_t	at = peer_search(page, key, true);

	put_at(page, at, at, key, tid);
}

bool
peer_take(PeerPage *page, uint64_t key, uint64_t tid)
{
	uint32_t	count = key_count(page);
	uint32_t	at = find(page, key, tid);

	if (at == count)
		return false;
	if (at + 1 < count)
	{
		euno_move(&page->keys[at], &page->keys[at + 1], (count - at - 1) * 8);
		euno_move(&page->values[at], &page->values[at + 1],
				  (count - at - 1) * 8);
	}
	euno_store32(&page->count, count - 1);
	return true;
}

uint64_t
peer_halve(PeerPage *page, PeerPage *right)
{
	uint32_t	count = euno_load32(&page->count);
	uint32_t	left = count / 2;
	uint64_t	separator;

	/* Equal keys stay together. */
	while (page->level == 0 && left + 1 < count &&
		   euno_load64(&page->keys[left]) == euno_load64(&page->keys[left - 1]))
		left++;

	/* An inner node's separator between the halves goes up. */
	separator = euno_load64(&page->keys[page->level > 0 ? left - 1 : left]);
	euno_copy_in(right->keys, &page->keys[left], (count - left) * 8);
	euno_copy_in(right->values, &page->values[left], (count - left) * 8);
	euno_store32(&right->count, count - left);
	euno_store32(&page->count, left);
	return separator;
}

void
peer_adopt(PeerTree *tree, PeerPage *parent, PeerPage *above,
		   PeerPage *page, PeerPage *right, uint64_t separator)
{
	uint32_t	at = 0;

	if (parent != NULL)
	{
		at = peer_search(parent, separator, true);
		put_at(parent, at, at + 1, separator, (uintptr_t) right);
		return;
	}
	euno_store32(&above->count, 1);
	euno_store64(&above->values[0], (uintptr_t) page);
	put_at(above, at, at + 1, separator, (uintptr_t) right);
	euno_store32(&tree->level, tree->level + 1);
}

void
peer_split(PeerTree *tree, PeerPage *parent, PeerPage *page)
{
	PeerPage   *right = peer_page(page->level);
	PeerPage   *above = parent == NULL ? peer_page(page->level + 1) : NULL;
	uint64_t	separator = peer_halve(page, right);

	peer_adopt(tree, parent, above, page, right, separator);
	if (above != NULL)
		euno_store_ptr(&tree->root, above);
}
