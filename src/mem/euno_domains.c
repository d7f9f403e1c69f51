/*-------------------------------------------------------------------------
 *
 * euno_domains.c
 *	  Which CPUs and which memory make up a domain.
 *
 * After "Robust Performance by Configuration" (SIGMOD 2020): a virtual domain
 * is configured, not hard-wired to a socket, and may be smaller or larger than
 * one.  With "auto" there is one for each NUMA node that has memory and CPUs.
 *
 * Without libnuma, or where the system has one node, there are no nodes to
 * find and memory is not bound; domains that are configured exist all the
 * same.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "postgres.h"

#include <sched.h>

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/guc.h"

#include "euno_compat.h"
#include "mem/euno_domains.h"
#include "mem/euno_numa.h"
#include "mem/euno_registry.h"
#include "mem/registry_private.h"

/*
 * Of each CPU: the first domain that serves it, and how many do.  (More than
 * one only if there are more domains than CPUs; processes then take turns.)
 */
typedef struct CpuDomains
{
	uint8		first;
	uint8		count;
} CpuDomains;

typedef struct DomainMap
{
	int			n;
	int			node[EUNO_MAX_DOMAINS]; /* -1: memory is not bound */
	CpuDomains	cpus[EUNO_MAX_CPUS];
} DomainMap;

typedef struct DomainCounters
{
	pg_atomic_uint64 descents;
	pg_atomic_uint64 remote;
	pg_atomic_uint64 inner_nodes;
	pg_atomic_uint64 remote_inner_nodes;
} __attribute__((aligned(128))) DomainCounters;

typedef struct DomainShared
{
	DomainMap	map;			/* changed in place: any state of it is right */
	DomainCounters totals[EUNO_STRIPES];
} DomainShared;

/* A CPU that this server may run on. */
typedef struct Cpu
{
	int			number;
	int			node;			/* with memory; 0 if there are no nodes */
} Cpu;

static char *domains_setting = NULL;	/* euno.domains */
int			euno_ndomains = 1;

static DomainMap *configured;	/* made by the postmaster, inherited */
static DomainMap *map;			/* shared */
static DomainCounters *totals;	/* shared */

/* The nearest node that has memory. */
static int
memory_node(int node)
{
#if HAVE_NUMA
	struct bitmask *allowed = numa_get_mems_allowed();
	int			best = 0;
	int			best_distance = INT_MAX;

	for (int n = 0; n <= numa_max_node(); n++)
	{
		int			distance;

		if (!numa_bitmask_isbitset(allowed, n) || numa_node_size64(n, NULL) <= 0)
			continue;
		distance = n == node ? 0 : numa_distance(node, n);
		if (distance < best_distance)
		{
			best = n;
			best_distance = distance;
		}
	}
	numa_bitmask_free(allowed);
	return best;
#else
	return 0;
#endif
}

static int
compare_cpus(const void *a, const void *b)
{
	const Cpu  *x = a;
	const Cpu  *y = b;

	return x->node != y->node ? x->node - y->node : x->number - y->number;
}

/* The CPUs we may run on, by node; how many. */
static int
find_cpus(Cpu *cpus)
{
	cpu_set_t  *set = CPU_ALLOC(EUNO_MAX_CPUS);
	size_t		size = CPU_ALLOC_SIZE(EUNO_MAX_CPUS);
	int			n = 0;

	if (set != NULL && sched_getaffinity(0, size, set) == 0)
	{
		for (int cpu = 0; cpu < EUNO_MAX_CPUS; cpu++)
		{
			int			node = 0;

			if (!CPU_ISSET_S(cpu, size, set))
				continue;
#if HAVE_NUMA
			if (numa_available() >= 0)
			{
				node = numa_node_of_cpu(cpu);
				node = memory_node(Max(node, 0));
			}
#endif
			cpus[n].number = cpu;
			cpus[n].node = node;
			n++;
		}
	}
	CPU_FREE(set);
	qsort(cpus, n, sizeof(Cpu), compare_cpus);
	return n;
}

static bool
several_nodes(const Cpu *cpus, int ncpus)
{
	return ncpus > 0 && cpus[0].node != cpus[ncpus - 1].node;
}

/* One domain for each node that has memory and CPUs. */
static void
map_nodes(DomainMap *result, const Cpu *cpus, int ncpus)
{
	int			domain = -1;

	for (int i = 0; i < ncpus; i++)
	{
		if (domain < 0 ||
			(cpus[i].node != cpus[i - 1].node && domain + 1 < EUNO_MAX_DOMAINS))
			result->node[++domain] = several_nodes(cpus, ncpus) ? cpus[i].node : -1;
		result->cpus[cpus[i].number] = (CpuDomains) {domain, 1};
	}
	result->n = Max(domain + 1, 1);
}

/* A number of domains of about equally many CPUs each. */
static void
map_number(DomainMap *result, const Cpu *cpus, int ncpus, int n)
{
	bool		bind = several_nodes(cpus, ncpus);

	result->n = n;
	for (int d = 0; d < n; d++)
		result->node[d] = bind ? cpus[d * ncpus / n].node : -1;
	for (int i = 0; i < ncpus; i++)
	{
		CpuDomains *cpu = &result->cpus[cpus[i].number];

		cpu->first = (uint8) (i * n / ncpus);
		cpu->count = (uint8) Max((i + 1) * n / ncpus - i * n / ncpus, 1);
		if (bind && cpus[i].node != result->node[cpu->first])
			result->node[cpu->first] = -1;	/* it spans nodes */
	}
}

/* One list, "0-3,8", up to a semicolon or the end; NULL if it is none. */
static const char *
map_list(DomainMap *result, const char *p, int domain, bool *seen)
{
	for (;;)
	{
		char	   *end;
		long		low;
		long		high;

		while (*p == ' ')
			p++;
		if (*p < '0' || *p > '9')
			return NULL;
		low = high = strtol(p, &end, 10);
		if (*end == '-')
		{
			p = end + 1;
			if (*p < '0' || *p > '9')
				return NULL;
			high = strtol(p, &end, 10);
		}
		if (low > high || high >= EUNO_MAX_CPUS)
			return NULL;
		for (long cpu = low; cpu <= high; cpu++)
		{
			if (seen[cpu])
				return NULL;
			seen[cpu] = true;
			result->cpus[cpu] = (CpuDomains) {domain, 1};
		}
		p = end;
		while (*p == ' ')
			p++;
		if (*p != ',')
			return p;
		p++;
	}
}

/*
 * Domains given as lists of CPUs.  A domain's memory is near its CPUs if they
 * are all on one node.  CPUs that are not listed take turns.
 */
static bool
map_lists(DomainMap *result, const char *setting, const Cpu *cpus, int ncpus)
{
	bool		seen[EUNO_MAX_CPUS] = {0};
	const char *p = setting;
	int			n = 0;

	for (;;)
	{
		if (n == EUNO_MAX_DOMAINS)
			return false;
		p = map_list(result, p, n, seen);
		if (p == NULL || (*p != '\0' && *p != ';'))
			return false;
		result->node[n++] = -1;
		if (*p++ == '\0')
			break;
	}
	result->n = n;
	for (int i = 0; i < ncpus; i++)
	{
		if (!seen[cpus[i].number])
			result->cpus[cpus[i].number] = (CpuDomains) {i % n, 1};
	}
	for (int d = 0; d < n && several_nodes(cpus, ncpus); d++)
	{
		int			node = -1;
		bool		one = true;

		for (int i = 0; i < ncpus; i++)
		{
			if (!seen[cpus[i].number] ||
				result->cpus[cpus[i].number].first != d)
				continue;
			one &= node < 0 || node == cpus[i].node;
			node = cpus[i].node;
		}
		result->node[d] = one ? node : -1;
	}
	return true;
}

/* Fills the map as a setting says; false if it makes no sense. */
static bool
make_map(const char *setting, DomainMap *result)
{
	Cpu		   *cpus = malloc(sizeof(Cpu) * EUNO_MAX_CPUS);
	int			ncpus;
	char	   *end;
	long		n;
	bool		ok = true;

	if (cpus == NULL)
		return false;
	memset(result, 0, sizeof(DomainMap));
	ncpus = find_cpus(cpus);
	n = strtol(setting, &end, 10);
	if (strcmp(setting, "auto") == 0)
		map_nodes(result, cpus, ncpus);
	else if (end != setting && *end == '\0' && n >= 1 && n <= EUNO_MAX_DOMAINS)
		map_number(result, cpus, ncpus, (int) n);
	else
		ok = strpbrk(setting, ";,-") != NULL &&
			map_lists(result, setting, cpus, ncpus);
	free(cpus);
	return ok;
}

static bool
check_setting(char **newval, void **extra, GucSource source)
{
	DomainMap  *result = malloc(sizeof(DomainMap));
	bool		ok = result != NULL && make_map(*newval, result);

	free(result);
	if (!ok)
		GUC_check_errdetail("It must be \"auto\", a number from 1 to %d, or lists of CPUs like \"0-3,8;4-7\", in which no CPU occurs twice.",
							EUNO_MAX_DOMAINS);
	return ok;
}

void
euno_domains_define_setting(void)
{
	DefineCustomStringVariable("euno.domains",
							   "Sets the domains among which euno indexes replicate their inner nodes.",
							   "\"auto\": one for each NUMA node; a number; or lists of CPUs separated by semicolons.",
							   &domains_setting,
							   "auto",
							   PGC_POSTMASTER, 0,
							   check_setting, NULL, NULL);
}

void
euno_domains_configure(void)
{
	configured = malloc(sizeof(DomainMap));
	if (configured == NULL || !make_map(domains_setting, configured))
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	euno_ndomains = configured->n;
}

void
euno_domains_bind(EunoArena *arena)
{
#if HAVE_NUMA
	bool		warned = false;

	for (int d = 0; d < euno_ndomains; d++)
	{
		struct bitmask *nodes;
		void	   *start;
		size_t		size;

		if (configured->node[d] < 0)
			continue;
		euno_arena_part(arena, d, &start, &size);
		nodes = numa_allocate_nodemask();
		numa_bitmask_setbit(nodes, (unsigned) configured->node[d]);

		/* Preferred: a full node must not end in the out-of-memory killer. */
		if (mbind(start, size, MPOL_PREFERRED, nodes->maskp, nodes->size + 1,
				  0) != 0 && !warned)
		{
			ereport(WARNING,
					(errmsg("could not bind memory of euno indexes to NUMA node %d: %m",
							configured->node[d]),
					 errdetail("Its place is left to the operating system.")));
			warned = true;
		}
		numa_bitmask_free(nodes);
	}
#endif
}

Size
euno_domains_shmem_size(void)
{
	return sizeof(DomainShared);
}

void
euno_domains_shmem_startup(void)
{
	DomainShared *shared = euno_shmem_alloc("euno domains",
											sizeof(DomainShared));

	map = &shared->map;
	totals = shared->totals;
	memcpy(map, configured, sizeof(DomainMap));
	for (int i = 0; i < EUNO_STRIPES; i++)
	{
		pg_atomic_init_u64(&totals[i].descents, 0);
		pg_atomic_init_u64(&totals[i].remote, 0);
		pg_atomic_init_u64(&totals[i].inner_nodes, 0);
		pg_atomic_init_u64(&totals[i].remote_inner_nodes, 0);
	}
}

void
euno_domains_count(int stripe, const EunoCounters *counters)
{
	DomainCounters *total = &totals[stripe];

	pg_atomic_fetch_add_u64(&total->descents, counters->descents);
	if (euno_ndomains == 1)
		return;
	pg_atomic_fetch_add_u64(&total->remote, counters->remote);
	pg_atomic_fetch_add_u64(&total->inner_nodes, counters->inner_nodes);
	pg_atomic_fetch_add_u64(&total->remote_inner_nodes,
							counters->remote_inner_nodes);
}

int
euno_domains_active(void)
{
	return map == NULL ? 1 : map->n;
}

int
euno_domains_change(const char *setting)
{
	DomainMap  *new = palloc(sizeof(DomainMap));
	int			n;

	if (!make_map(setting, new))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid domains: \"%s\"", setting),
				 errdetail("They must be \"auto\", a number from 1 to %d, or lists of CPUs like \"0-3,8;4-7\", in which no CPU occurs twice.",
						   EUNO_MAX_DOMAINS)));
	if (new->n > euno_ndomains)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_plural("there can be at most %d domain",
							   "there can be at most %d domains",
							   euno_ndomains, euno_ndomains),
				 errdetail("That many were reserved at server start."),
				 errhint("Set \"euno.domains\" and restart the server to have more.")));

	/* Memory stays where it was bound. */
	memcpy(new->node, configured->node, sizeof(new->node));
	n = new->n;
	LWLockAcquire(euno_registry_lock, LW_EXCLUSIVE);
	memcpy(map, new, sizeof(DomainMap));
	LWLockRelease(euno_registry_lock);
	pfree(new);
	return n;
}

bool
euno_domains_describe(int domain, EunoDomainStats *stats)
{
	StringInfoData list;
	int			start = -1;

	if (domain >= euno_domains_active())
		return false;
	initStringInfo(&list);
	stats->node = map->node[domain];
	stats->descents = stats->remote = 0;
	stats->inner_nodes = stats->remote_inner_nodes = 0;
	for (int i = euno_stripes_from(domain); i < euno_stripes_from(domain + 1); i++)
	{
		stats->descents += pg_atomic_read_u64(&totals[i].descents);
		stats->remote += pg_atomic_read_u64(&totals[i].remote);
		stats->inner_nodes += pg_atomic_read_u64(&totals[i].inner_nodes);
		stats->remote_inner_nodes +=
			pg_atomic_read_u64(&totals[i].remote_inner_nodes);
	}
	for (int cpu = 0; cpu <= EUNO_MAX_CPUS; cpu++)
	{
		bool		here = cpu < EUNO_MAX_CPUS && map->cpus[cpu].count > 0 &&
			domain >= map->cpus[cpu].first &&
			domain < map->cpus[cpu].first + map->cpus[cpu].count;

		if (here && start < 0)
			start = cpu;
		if (here || start < 0)
			continue;
		appendStringInfo(&list, "%s%d", list.len > 0 ? "," : "", start);
		if (cpu - 1 > start)
			appendStringInfo(&list, "-%d", cpu - 1);
		start = -1;
	}
	strlcpy(stats->cpus, list.data, sizeof(stats->cpus));
	pfree(list.data);
	return true;
}

int
euno_domain_lookup(void)
{
	int			cpu = sched_getcpu();
	CpuDomains	served;

	if (unlikely(cpu < 0 || cpu >= EUNO_MAX_CPUS))
		return 0;

	/* Changed by euno_domains_change meanwhile?  Any domain is right. */
	served = map->cpus[cpu];
	if (served.count > 1)
		served.first += (uint8) ((uint32) euno_my_proc_number() % served.count);
	return served.first < euno_ndomains ? served.first : 0;
}
