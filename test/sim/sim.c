/*-------------------------------------------------------------------------
 *
 * sim.c
 *	  Runs a workload on a structure on a simulated machine.
 *
 *	sim --structure bptree --machine 4x16 --cores 1,16,64 --theta 0.99 ...
 *
 * Prints a line of tab-separated values for each number of cores and each
 * theta, under a line of their names.  All options: usage() below.
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "subjects.h"
#include "threads.h"

#define MAX_LIST	16
#define PAGE		4096

/* Latencies are counted in classes, 16 to a doubling. */
#define CLASSES		(16 * 48)

typedef struct List
{
	double		values[MAX_LIST];
	uint32_t	n;
} List;

typedef struct Options
{
	const Subject *subject;
	const Machine *machine;
	List		cores;
	List		thetas;
	uint64_t	operations;		/* that are measured */
	uint64_t	warm;			/* operations before */
	Placement	placement;
	Picoseconds slack;
	Picoseconds think;			/* between operations */
	Picoseconds limit;			/* summed over cores; of each, warming up and
								 * measuring */
	Picoseconds round;			/* of the launcher; 0 = there is none */
	uint32_t	seeds;			/* runs, each with another seed */
	uint32_t	l2;				/* bytes; 0 = as the machine has it */
	uint32_t	l3;
	bool		spread;			/* threads: one on each node in turn */
	bool		work;			/* charge the calibrated work */
	bool		header;
} Options;

typedef enum Phase
{
	WARMING,
	MEASURING,
	OVER
} Phase;

/* What all threads of a run share. */
typedef struct Run
{
	const Options *options;
	Workload   *workload;
	Worker		workers[MAX_CORES];
	Picoseconds work[WORKS];
	Work		write;			/* what writes are */
	Phase		phase;
	uint64_t	done;			/* operations in this phase */
	Picoseconds limit;			/* of a phase */
	Picoseconds start;			/* of what is measured */
	Picoseconds end;
	uint64_t	finished[2];	/* of even and of odd threads, measured */
	uint64_t	of_core[MAX_CORES]; /* of each */
	CacheStats	stats;			/* measured */
	uint64_t	restarts;
	uint64_t	extents;
	uint64_t	classes[CLASSES];
	Picoseconds round_end;		/* of the launcher's round */
} Run;

static Run	run;
static EunoEnvironment below;	/* the real environment's memory */
static uint32_t placing;		/* nodes to place on; 0 = not by domain */

static const Subject *const subjects[] = {
	&subject_bptree, &subject_art_olc, &subject_art_rowex, &subject_olc, &subject_coupling,
	&subject_global, &subject_nbtree, &subject_copies_all, &subject_copies_own,
	&subject_copies_inner, &subject_copies_root
};

const Subject *
subject_named(const char *name)
{
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
	{
		if (strcmp(subjects[i]->name, name) == 0)
			return subjects[i];
	}
	return NULL;
}

/* Domains are nodes, as far as there are so many. */
int
subject_domain(uint32_t thread)
{
	return subject_domains == 1 ? 0 :
		(int) cache_node(thread) % subject_domains;
}

void
subject_copy(const void *address, size_t size)
{
	cache_copy(address, size);
}

/* Before each access of core to shared memory. */
void
euno_test_hook(EunoHookKind kind, const void *address, size_t size)
{
	if (vthread_current == NULL)
		return;
	if (kind == EUNO_HOOK_REQUEST)
		vthread_current->clock += run.work[run.write];
	else
		cache_access(kind, address, size);
}

static void *
sim_alloc(void *tree_arg, int domain, size_t size)
{
	NodeSource *source = tree_arg;
	uint64_t	before = source->pools[domain].extents;
	void	   *node;

	test_env_stripe = vthread_current != NULL ? vthread_current->number : 0;
	node = below.alloc(tree_arg, domain, size);
	if (vthread_current != NULL && source->pools[domain].extents > before)
		vthread_current->clock += run.options->machine->extent;

	/*
	 * A radix tree's small nodes are all of one domain: where pages are put
	 * else.
	 */
	if (placing > 0 && node != NULL && (size >= PAGE || domain > 0))
		cache_place((void *) ((uintptr_t) node & ~(uintptr_t) (PAGE - 1)),
					size + ((uintptr_t) node & (PAGE - 1)), (uint32_t) domain);
	return node;
}

static void
sim_free(void *tree_arg, int domain, void *node, size_t size)
{
	test_env_stripe = vthread_current != NULL ? vthread_current->number : 0;
	below.free(tree_arg, domain, node, size);
}

static void
sim_wait(uint32_t *word, uint32_t seen)
{
	vthread_sync(0);
	if (*word == seen)
		vthread_sleep(word);
}

static void
sim_wake(uint32_t *word)
{
	const Machine *machine = run.options->machine;

	vthread_current->clock += machine->wake;
	vthread_wake(word, vthread_current->clock + machine->sleep);
}

static uint32_t
latency_class(Picoseconds t)
{
	uint32_t	log2;

	if (t < 32)
		return (uint32_t) t;
	log2 = 63 - (uint32_t) __builtin_clzll(t);
	return 16 * (log2 - 4) + (uint32_t) (t >> (log2 - 4) & 15) + 16;
}

/* The middle of a class, in picoseconds. */
static double
class_value(uint32_t class)
{
	uint32_t	log2 = (class - 16) / 16 + 4;

	if (class < 32)
		return class;
	return ((double) (16 + class % 16) + 0.5) * pow(2, (double) log2 - 4);
}

static double
percentile(double share)
{
	uint64_t	all = run.finished[0] + run.finished[1];
	uint64_t	seen = 0;

	for (uint32_t i = 0; i < CLASSES; i++)
	{
		seen += run.classes[i];
		if ((double) seen >= share * (double) all)
			return class_value(i) / 1000;
	}
	return 0;
}

/* The measurement begins. */
static void
begin(Picoseconds now)
{
	run.phase = MEASURING;
	run.start = now;
	run.done = 0;
	run.stats = cache_stats;
	run.restarts = run.options->subject->restarts();
}

/* It ends: what is counted from the start becomes what it was in between. */
static void
end(Picoseconds now)
{
	const uint64_t *last = (const uint64_t *) &cache_stats;
	uint64_t   *first = (uint64_t *) &run.stats;

	run.phase = OVER;
	run.end = now;
	run.restarts = run.options->subject->restarts() - run.restarts;
	for (size_t i = 0; i < sizeof(CacheStats) / sizeof(uint64_t); i++)
		first[i] = last[i] - first[i];
}

/* One operation is done. */
static void
count(uint32_t thread, Picoseconds since)
{
	const Options *options = run.options;
	Picoseconds now = vthread_current->clock;

	run.done++;
	if (run.phase == WARMING)
	{
		if (run.done >= options->warm || now >= run.limit)
			begin(now);
		return;
	}
	run.finished[thread % 2]++;
	run.of_core[thread]++;
	run.classes[latency_class(now - since)]++;
	if (run.done >= options->operations || now >= run.start + run.limit)
		end(now);
}

/*
 * The first thread is the launcher, too, for as long as a round's end takes.
 */
static void
launch(void)
{
	const Options *options = run.options;
	Picoseconds now = vthread_current->clock;

	if (options->round == 0 || options->subject->round == NULL ||
		now < run.round_end)
		return;
	options->subject->round((double) (now - run.round_end + options->round) / 1e12);
	run.round_end = now + options->round;
}

static void
body(uint32_t thread)
{
	const Options *options = run.options;
	Worker	   *worker = &run.workers[thread];
	VThread    *me = vthread_current;

	me->clock = NS(random_below(&worker->random, 1000));
	while (run.phase != OVER)
	{
		Work		work = worker_choose(worker);
		Picoseconds since;

		if (thread == 0)
			launch();
		me->clock += options->think;
		since = me->clock;
		me->clock += run.work[work];
		worker_do(worker, work);
		vthread_sync(options->slack);
		if (run.phase != OVER)
			count(thread, since);
	}
}

static void
print_run(uint32_t cores)
{
	double		seconds = (double) (run.end - run.start) / 1e12;
	double		operations = (double) run.done;
	uint64_t	fewest = run.of_core[0];
	uint64_t	most = fewest;
	const CacheStats *s = &run.stats;

	for (uint32_t i = 1; i < cores; i++)
	{
		fewest = run.of_core[i] < fewest ? run.of_core[i] : fewest;
		most = run.of_core[i] > most ? run.of_core[i] : most;
	}

	printf("%s\t%s\t%u\t%g\t%u\t%.4f\t%.4f\t%.4f\t%.1f\t%.1f\t%.1f\t%.1f",
		   run.options->subject->name, run.options->machine->name, cores,
		   run.workload->theta, run.workload->seed, operations / seconds / 1e6,
		   (double) run.finished[0] / seconds / 1e6,
		   (double) run.finished[1] / seconds / 1e6,
		   seconds * 1e9 * cores / operations,
		   percentile(0.5), percentile(0.99), percentile(0.999));
	printf("\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.4f\t%.3f\t%.3f\n",
		   (double) s->accesses / operations, (double) s->l1_misses / operations,
		   (double) s->l2_misses / operations, (double) s->tlb_misses / operations,
		   (double) s->memory_local / operations,
		   (double) s->memory_remote / operations,
		   (double) s->transfers_local / operations,
		   (double) s->transfers_remote / operations,
		   (double) s->invalidations / operations,
		   (double) s->contested / operations,
		   (double) s->atomics / operations,
		   (double) s->line_wait / operations / 1000,
		   (double) run.restarts / operations,
		   (double) fewest * cores / operations,
		   (double) most * cores / operations);
	fflush(stdout);
}

static const char *const columns =
"structure\tmachine\tcores\ttheta\tseed\tMops\tMops_even\tMops_odd\tns\tp50\tp99\tp99.9"
"\taccesses\tl1_misses\tl2_misses\ttlb_misses\tmemory_local\tmemory_remote"
"\ttransfers_local\ttransfers_remote\tinvalidations\tcontested\tatomics\tline_wait_ns\trestarts"
"\tslowest_core\tfastest_core";

static void
run_one(const Options *options, Workload *workload, uint32_t cores)
{
	const Machine *machine = options->machine;
	static bool loaded;
	uint32_t	peers[MAX_NODES] = {0};
	bool		placed = cache_placed();

	memset(&run, 0, sizeof(run));
	run.options = options;
	run.workload = workload;
	run.limit = options->limit / cores;
	workload->threads = cores;
	workload->ascending = 0;
	run.round_end = options->round;
	workload_prepare(workload);
	cache_reset(machine, options->spread, options->placement, options->slack);
	if (!loaded || placed || workload->write_percent > 0 || workload->roles)
		options->subject->load(workload->rows, workload_key);
	loaded = true;
	for (int i = 0; i < WORKS; i++)
		run.work[i] = options->work ?
			work_of(machine, options->subject->work, (Work) i) : 0;
	run.write = workload->inserts == INSERTS_TOGGLED ? WORK_TOGGLE : WORK_INSERT;
	for (uint32_t i = 0; i < cores; i++)
	{
		worker_init(&run.workers[i], workload, options->subject, i);
		run.workers[i].share = cache_node(i);
		run.workers[i].shares = machine->nodes;
		run.workers[i].rank = peers[cache_node(i)]++;
	}
	for (uint32_t i = 0; i < cores; i++)
		run.workers[i].peers = peers[cache_node(i)];
	vthreads_run(cores, body);
	print_run(cores);
}

static List
list_of(const char *from)
{
	List		list = {.n = 0};
	char	   *end;

	while (list.n < MAX_LIST)
	{
		list.values[list.n++] = strtod(from, &end);
		if (*end != ',')
			break;
		from = end + 1;
	}
	return list;
}

static void
usage(void)
{
	const Machine *machine;

	fprintf(stderr,
			"--structure NAME       one of:");
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		fprintf(stderr, " %s", subjects[i]->name);
	fprintf(stderr, "\n--machine NAME         one of:");
	for (uint32_t i = 0; (machine = machine_number(i)) != NULL; i++)
		fprintf(stderr, " %s", machine->name);
	fprintf(stderr,
			"\n--cores N,N,...        threads, each on a core of its own\n"
			"--theta X,X,...        of Zipf; 0 = uniform\n"
			"--hot scattered|near   are hot keys neighbors?\n"
			"--rows N               in the index from the start\n"
			"--keys dense|sparse    integers: neighbors, or all over 64 bits\n"
			"--writes PERCENT       of the operations; the rest are lookups\n"
			"--inserts random|ascending|toggled\n"
			"                       what writes do: new keys, new highest keys, or\n"
			"                       a second TID of a key, which the next removes\n"
			"--roles                even threads read, odd ones write\n"
			"--operations N         that are measured, at most\n"
			"--warm N               operations before, at most\n"
			"--limit MS             of virtual time, summed over cores, for each of both\n"
			"--spread               threads: one on each node in turn\n"
			"--placement interleaved|first-node|first-touch\n"
			"--domains N            of the tree, one after the other on the nodes\n"
			"--directories N        that the tree has; else one for each domain\n"
			"--copies N             of a radix tree: each node of the machine has the inner\n"
			"                       nodes that branch on one of the first N bytes\n"
			"--affine PERCENT       of the operations are on keys that only the\n"
			"                       thread's node uses so\n"
			"--contended N          contended leaves: those of the N most frequent rows\n"
			"--round US             of the launcher, which makes hot leaves contended\n"
			"--hot-rate N           conflicts a second that make a leaf hot\n"
			"--alone                no process performs the writes of others\n"
			"--seeds N              so many runs, with random numbers of their own\n"
			"--l2 KB --l3 KB        instead of those that the machine has\n"
			"--part N               a leaf is split between its keys after N conflicts\n"
			"                       about different ones\n"
			"--tallies N            stripes of what the end of a transaction counts\n"
			"--think NS             between operations, on this machine\n"
			"--slack NS             by how much cached reads may be ahead\n"
			"--calibration FILE     what was measured\n"
			"--no-work              charge accesses only\n"
			"--no-header\n");
	exit(1);
}

/* The place of a value among the words of an option; usage() if none. */
static int
word_of(const char *value, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
	{
		if (strcmp(value, words[i]) == 0)
			return i;
	}
	usage();
	return 0;
}

static const struct option names[] = {
	{"structure", 1, NULL, 's'}, {"machine", 1, NULL, 'm'},
	{"cores", 1, NULL, 'c'}, {"theta", 1, NULL, 't'},
	{"hot", 1, NULL, 'h'}, {"rows", 1, NULL, 'r'},
	{"keys", 1, NULL, 'k'}, {"writes", 1, NULL, 'w'},
	{"inserts", 1, NULL, 'i'}, {"roles", 0, NULL, 'R'},
	{"operations", 1, NULL, 'o'}, {"warm", 1, NULL, 'W'},
	{"placement", 1, NULL, 'p'}, {"domains", 1, NULL, 'd'}, {"directories", 1, NULL, 'D'},
	{"affine", 1, NULL, 'A'}, {"copies", 1, NULL, 'y'}, {"contended", 1, NULL, 'X'}, {"part", 1, NULL, 'B'},
	{"round", 1, NULL, 'u'}, {"hot-rate", 1, NULL, 'H'}, {"alone", 0, NULL, 'a'},
	{"seeds", 1, NULL, 'e'}, {"l2", 1, NULL, '2'}, {"l3", 1, NULL, '3'},
	{"tallies", 1, NULL, 'f'}, {"slack", 1, NULL, 'S'}, {"think", 1, NULL, 'T'},
	{"limit", 1, NULL, 'L'}, {"spread", 0, NULL, 'P'}, {"calibration", 1, NULL, 'C'},
	{"no-work", 0, NULL, 'n'}, {"no-header", 0, NULL, 'N'},
	{NULL, 0, NULL, 0}
};
static const char *const hot[] = {"near", "scattered", NULL};
static const char *const keys[] = {"dense", "sparse", NULL};
static const char *const inserts[] = {"random", "ascending", "toggled", NULL};
static const char *const places[] = {"interleaved", "first-node", "first-touch", NULL};

static void
parse(int argc, char **argv, Options *options, Workload *workload)
{
	const char *machine = "here";
	const char *calibration = "test/sim/calibration.conf";
	int			c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		switch (c)
		{
			case 's':
				options->subject = subject_named(optarg);
				break;
			case 'm':
				machine = optarg;
				break;
			case 'c':
				options->cores = list_of(optarg);
				break;
			case 't':
				options->thetas = list_of(optarg);
				break;
			case 'h':
				workload->scattered = word_of(optarg, hot) == 1;
				break;
			case 'r':
				workload->rows = strtoull(optarg, NULL, 10);
				break;
			case 'k':
				workload->sparse = word_of(optarg, keys) == 1;
				break;
			case 'w':
				workload->write_percent = (uint32_t) atoi(optarg);
				break;
			case 'i':
				workload->inserts = (Inserts) word_of(optarg, inserts);
				break;
			case 'R':
				workload->roles = true;
				break;
			case 'o':
				options->operations = strtoull(optarg, NULL, 10);
				break;
			case 'W':
				options->warm = strtoull(optarg, NULL, 10);
				break;
			case 'p':
				options->placement = (Placement) word_of(optarg, places);
				break;
			case 'd':
				subject_domains = atoi(optarg);
				break;
			case 'D':
				subject_directories = atoi(optarg);
				break;
			case 'A':
				workload->affine_percent = (uint32_t) atoi(optarg);
				break;
			case 'y':
				subject_copies = (uint32_t) atoi(optarg);
				break;
			case 'S':
				options->slack = NS(strtod(optarg, NULL));
				break;
			case 'T':
				options->think = NS(strtod(optarg, NULL));
				break;
			case 'L':
				options->limit = NS(1e6 * strtod(optarg, NULL));
				break;
			case 'X':
				subject_contended = strtoull(optarg, NULL, 10);
				break;
			case 'u':
				options->round = NS(1e3 * strtod(optarg, NULL));
				break;
			case 'H':
				subject_hot_rate = strtod(optarg, NULL);
				break;
			case 'a':
				subject_alone = true;
				break;
			case 'e':
				options->seeds = (uint32_t) atoi(optarg);
				break;
			case '2':
				options->l2 = (uint32_t) atoi(optarg) * 1024;
				break;
			case '3':
				options->l3 = (uint32_t) atoi(optarg) * 1024;
				break;
			case 'B':
				subject_part = (uint32_t) atoi(optarg);
				break;
			case 'f':
				subject_tallies = (uint32_t) atoi(optarg);
				break;
			case 'P':
				options->spread = true;
				break;
			case 'C':
				calibration = optarg;
				break;
			case 'n':
				options->work = false;
				break;
			case 'N':
				options->header = false;
				break;
			default:
				usage();
		}
	}
	calibration_read(calibration);
	options->machine = machine_with(machine_named(machine), options->l2, options->l3);
	if (options->machine != NULL)
		options->think = (Picoseconds) ((double) options->think *
										options->machine->slowness);
	if (options->machine == NULL || options->subject == NULL || optind < argc ||
		subject_domains < 1 || subject_domains > EUNO_MAX_DOMAINS)
		usage();
}

int
main(int argc, char **argv)
{
	Options		options = {
		.cores = {{1}, 1},.thetas = {{0}, 1},.operations = 100000,
		.warm = 100000,.limit = NS(1e9),.slack = NS(20),.work = true,.header = true,
		.seeds = 1
	};
	Workload	workload = {.rows = 1000000,.scattered = true};

	parse(argc, argv, &options, &workload);
	shared_memory_from((void *) UINT64_C(0x300000000000));
	below = test_env;
	subject_env = (EunoEnvironment)
	{
		.alloc = sim_alloc,.free = sim_free,.wait = sim_wait,.wake = sim_wake
	};
	if (subject_domains > 1)
		placing = options.machine->nodes;
	if (options.header)
		printf("%s\n", columns);
	for (uint32_t t = 0; t < options.thetas.n; t++)
	{
		for (uint32_t i = 0; i < options.cores.n; i++)
		{
			uint32_t	cores = (uint32_t) options.cores.values[i];

			if (cores < 1 || cores > options.machine->nodes *
				options.machine->node_cores)
				usage();
			workload.theta = options.thetas.values[t];
			for (workload.seed = 0; workload.seed < options.seeds; workload.seed++)
				run_one(&options, &workload, cores);
		}
	}
	return 0;
}
