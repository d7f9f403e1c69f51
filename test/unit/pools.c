/*-------------------------------------------------------------------------
 *
 * pools.c
 *	  Is a pool's memory what its maps and its lists say?
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "mem/euno_extents.h"
#include "tap.h"

/* What a pool's lists have of each extent of its arena. */
typedef struct Lists
{
	bool	   *ours;			/* extents of the pool */
	EunoExtentMap *maps;		/* pieces in the lists */
} Lists;

/* False if some of the node is in the lists already, or where it cannot be. */
static bool
note_node(Lists *lists, EunoArena *arena, const uint8_t *node, size_t size)
{
	uint32_t	extent = euno_extent_of(arena, node);
	size_t		at;

	if (extent >= euno_arena_extents(arena) || !lists->ours[extent])
		return false;
	at = (size_t) (node - (uint8_t *) euno_arena_extent(arena, extent));
	if (at % EUNO_PIECE != 0 || at + size > EUNO_EXTENT_SIZE)
		return false;
	for (size_t i = at / EUNO_PIECE; i < (at + size) / EUNO_PIECE; i++)
	{
		uint64_t   *word = &lists->maps[extent].free[i / 64];
		uint64_t	bit = UINT64_C(1) << i % 64;

		if ((*word & bit) != 0)
			return false;
		*word |= bit;
	}
	return true;
}

static void
note_lists(Lists *lists, const EunoPool *pool)
{
	for (int class = 0; class < EUNO_POOL_CLASSES; class++)
	{
		size_t		size = euno_pool_class_size(class);

		for (uint8_t *node = pool->free_nodes[class]; node != NULL;
			 node = *euno_pool_link(node, class))
		{
			if (!note_node(lists, pool->arena, node, size))
			{
				CHECK(false, "a free node of %zu bytes is listed twice, or not the pool's",
					  size);
				return;
			}
		}
	}
}

/*
 * All that is neither live nor yet to be cut is marked as free; and what is of
 * an extent that was swept is in the lists, once, and nothing else is.
 */
void
check_pool(const EunoPool *pool)
{
	static const EunoExtentMap none;
	EunoArena  *arena = pool->arena;
	uint64_t	owned = pool->extents * EUNO_EXTENT_SIZE;
	uint64_t	extents = 0;
	uint64_t	marked = 0;
	Lists		lists;

	if (pool->extents == 0)
		return;
	lists.ours = calloc(euno_arena_extents(arena), sizeof(bool));
	lists.maps = calloc(euno_arena_extents(arena), sizeof(EunoExtentMap));
	for (uint32_t link = pool->first_extent; link != 0 && !lists.ours[link - 1];
		 link = euno_extent(arena, link - 1)->link)
	{
		lists.ours[link - 1] = true;
		extents++;
	}
	CHECK(extents == pool->extents, "%llu extents in the list of %llu",
		  (unsigned long long) extents, (unsigned long long) pool->extents);
	note_lists(&lists, pool);
	for (uint32_t link = pool->first_extent; link != 0 && tap_bad() == 0;
		 link = euno_extent(arena, link - 1)->link)
	{
		const EunoExtentMap *map = euno_extent_map(arena, link - 1);
		bool		swept = euno_extent(arena, link - 1)->swept == pool->sweep;

		for (uint32_t i = 0; i < EUNO_EXTENT_PIECES / 64; i++)
			marked += (uint64_t) __builtin_popcountll(map->free[i]) * EUNO_PIECE;
		CHECK(memcmp(&lists.maps[link - 1], swept ? map : &none, sizeof(none)) == 0,
			  "the lists do not have what is free of an extent");
	}
	owned -= EUNO_EXTENT_SIZE - pool->cut;
	CHECK(marked == owned - pool->live_bytes, "%llu bytes are marked, %llu are free",
		  (unsigned long long) marked, (unsigned long long) (owned - pool->live_bytes));
	free(lists.ours);
	free(lists.maps);
}
