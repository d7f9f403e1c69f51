/*-------------------------------------------------------------------------
 *
 * euno_arena.h
 *	  The reserved memory of all trees, in extents.
 *
 * One mapping (MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE) is made in the
 * postmaster and inherited by every process at the same address.  It is cut
 * into extents of 64 kB, which pools take (euno_pool.h).  When a pool gives
 * them back, their pages go to the operating system (MADV_REMOVE); but some, up
 * to a limit, keep them for the next pool: they are idle.
 *
 * No PostgreSQL header: the standalone programs use the same arena.
 *
 * A little of the arena is kept for small pools, so that a new and empty tree
 * finds room when others have taken all: TRUNCATE, which makes room, needs one.
 *
 * An extent's pages are populated when it is handed out
 * (MADV_POPULATE_WRITE), so that running out of memory is a NULL here and not
 * a SIGBUS later; kernels before 5.14 fall back to plain first touch.  When
 * the last extent of 2 MB is handed out, these become a huge page, if the
 * kernel can do it (MADV_COLLAPSE, Linux 6.1); for a pool of 8 MB already when
 * the first one is.
 *
 * A control group that is full does not refuse memory, it kills a process;
 * euno_arena_ask lets somebody look first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_ARENA_H
#define EUNO_ARENA_H

#include "core/euno_core.h"
#include "core/euno_lock.h"

#define EUNO_EXTENT_SIZE	((size_t) 64 * 1024)

typedef struct EunoArena EunoArena;

/*
 * Reserves address space for "bytes" (rounded down to whole extents, at least
 * one a domain) in "ndomains" equal parts, 1 to EUNO_MAX_DOMAINS.  NULL and
 * errno on failure.  It begins at "where" (a multiple of 2 MB) if that is not
 * NULL and is free, else anywhere.  Call before forking.  Of env, only wait
 * and wake are used.
 */
extern EunoArena *euno_arena_reserve(void *where, size_t bytes, int ndomains,
									 const EunoEnvironment *env);

/* Asks for no huge pages from now on.  Call before forking. */
extern void euno_arena_no_huge_pages(EunoArena *arena);

/*
 * Forgets every pool and returns every page to the operating system.  Only
 * when no other process can be using the arena (server start, crash restart).
 */
extern void euno_arena_reset(EunoArena *arena);

/* The address space of a domain, to bind it to memory before it is touched. */
extern void euno_arena_part(EunoArena *arena, int domain, void **start,
							size_t *size);

/* Bytes. */
typedef struct EunoArenaUsage
{
	uint64_t	reserved;
	uint64_t	used;			/* handed out to pools now */
	uint64_t	peak;			/* at most ever */
} EunoArenaUsage;

extern EunoArenaUsage euno_arena_usage(EunoArena *arena);

/*
 * "allows" says whether this many more bytes can be taken from the machine; it
 * is asked once for each megabyte.  Call before forking.
 */
extern void euno_arena_ask(EunoArena *arena, bool (*allows) (uint64_t bytes));

/*
 * Extents that are given back keep their pages from now on, up to this many
 * bytes in all domains, until a pool takes them or the machine has no memory.
 * Call before forking.  How many bytes do so now.
 */
extern void euno_arena_keep_idle(EunoArena *arena, size_t bytes);
extern uint64_t euno_arena_idle(EunoArena *arena);

/*
 * Makes 2 MB of free extents of a domain idle, with their pages, unless so
 * many bytes are idle there already or the domain is nearly full.  EUNO_OK;
 * EUNO_NOT_FOUND: there is nothing to do; EUNO_NO_MEMORY: the machine has not
 * twice so many bytes.  And the opposite: what is idle there beyond so many
 * bytes, and the limit above, goes back to the system.  The caller holds no
 * lock.
 */
extern EunoStatus euno_arena_make_ready(EunoArena *arena, int domain,
										uint64_t bytes);
extern void euno_arena_trim(EunoArena *arena, int domain, uint64_t bytes);

/*
 * Idle memory of a domain for something else than a pool, until it is
 * returned, in parts or as a whole: so many times 2 MB in one piece, which can
 * be huge pages.  NULL if there is none, or if less than "room" bytes of the
 * domain are free.  The caller holds no lock.
 */
#define EUNO_LOAN_BYTES		((size_t) 2 * 1024 * 1024)

extern void *euno_arena_borrow(EunoArena *arena, int domain, uint64_t room,
							   uint32_t count);
extern void euno_arena_return(EunoArena *arena, void *loan, uint32_t count);

/* Bytes that only pools of less than 128 kB get. */
extern uint64_t euno_arena_kept(EunoArena *arena);

/*
 * What the address of an extent depends on: pointers between nodes mean the
 * same in two arenas of equal place.
 */
typedef struct EunoArenaPlace
{
	uint64_t	base;			/* address of extent 0 */
	uint64_t	extents;		/* how many there are */
	uint64_t	domains;
} EunoArenaPlace;

extern EunoArenaPlace euno_arena_place(EunoArena *arena);
extern void *euno_arena_extent(EunoArena *arena, uint32_t extent);

#endif							/* EUNO_ARENA_H */
