/*-------------------------------------------------------------------------
 *
 * euno_domains.h
 *	  Domains: processors, and the memory near them.
 *
 * Each domain has a part of the arena and, in each tree that is replicated, a
 * directory of its own.  Which domain a process is in depends on the CPU it
 * runs on at the moment; a wrong guess costs time and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_DOMAINS_H
#define EUNO_DOMAINS_H

#include "postgres.h"

#include "mem/euno_arena.h"

/* Highest CPU number that has a domain of its own choice, plus one. */
#define EUNO_MAX_CPUS	4096

/* What is known of a domain. */
typedef struct EunoDomainStats
{
	uint64		descents;		/* from the root to a leaf, by its processes */
	uint64		remote;			/* those to leaves in other domains' memory */
	uint64		inner_nodes;	/* visited */
	uint64		remote_inner_nodes; /* ... in other domains' memory */
	int			node;			/* NUMA node of its memory; -1: not bound */
	char		cpus[256];		/* served by it, as a list: "0-3,8"; cut off if long */
} EunoDomainStats;

/* Domains reserved at server start: 1 to EUNO_MAX_DOMAINS. */
extern int	euno_ndomains;

/* The setting; in _PG_init. */
extern void euno_domains_define_setting(void);

/* Finds the domains; in the postmaster, before the arena is reserved. */
extern void euno_domains_configure(void);

/* Binds the arena's parts, before they are touched.  Warns if it cannot. */
extern void euno_domains_bind(EunoArena *arena);

extern Size euno_domains_shmem_size(void);
extern void euno_domains_shmem_startup(void);

/* Domains in use now: 1 to euno_ndomains. */
extern int	euno_domains_active(void);

/*
 * Divides the CPUs anew on a running server, into at most euno_ndomains
 * domains.  ERROR if the setting is not valid.  Returns their number.
 */
extern int	euno_domains_change(const char *setting);

/*
 * What all processes count at the end of each of their transactions is in
 * stripes, of lines of their own: some for each domain, and a process adds to
 * the one of its number.  A sum over a domain's stripes is what was counted
 * there.
 */
#define EUNO_STRIPES	32

StaticAssertDecl(EUNO_STRIPES >= EUNO_MAX_DOMAINS, "each domain has a stripe");

/* The first of a domain's stripes; the next one's is behind its last. */
static inline int
euno_stripes_from(int domain)
{
	return domain * (EUNO_STRIPES / euno_ndomains);
}

static inline int
euno_stripe(int domain, uint32 process)
{
	return euno_stripes_from(domain) +
		(int) (process % (uint32) (EUNO_STRIPES / euno_ndomains));
}

/* Adds to a domain's statistics, in this stripe of it. */
extern void euno_domains_count(int stripe, const EunoCounters *counters);

/* What a domain is; false if it is not in use. */
extern bool euno_domains_describe(int domain, EunoDomainStats *stats);

/* The domain of the CPU that the caller runs on at the moment. */
extern int	euno_domain_lookup(void);

#endif							/* EUNO_DOMAINS_H */
