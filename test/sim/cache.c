/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  What an access to memory costs on the simulated machine.
 *
 * Lines have numbers: that of their page, which pages get as they are touched,
 * times 64, plus the line's place in it.  So a run does not depend on where
 * the system put the memory.
 *
 * What a core finds in its own caches costs it no look at what is shared; it
 * may be ahead of others by the slack then.  Everything else happens in the
 * order of virtual time.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cache.h"
#include "threads.h"

#define PAGE_BITS	12
#define LINE_BITS	6
#define PAGE_LINES	(1U << (PAGE_BITS - LINE_BITS))

/*
 * 64 GB of memory, page tables included, can be touched; only what is exists.
 */
#define MAX_PAGES	(1U << 24)
#define PAGE_SLOTS	(2 * MAX_PAGES)

/* A node's copy of an address: so many bits up, its number plus 1. */
#define COPY_SHIFT	48

#define TLB_WAYS	8
/* Lines that a core can ask for and not wait for. */
#define PENDING		16

/* Stores wait in a buffer for their lines; what is older holds the core up. */
#define STORE_WINDOW	NS(300)

/* The longest transfer; what takes longer was waiting. */
#define TRANSFER_MOST	NS(250)

/* In a core's tags, below the line's number. */
#define TAG_SHARED	1U
#define TAG_OWNED	2U
#define TAG_STATES	3U

typedef struct Line
{
	Picoseconds busy;			/* until then a transfer is under way */
	uint64_t	cores[MAX_CORES / 64];	/* that have it in L1 or L2 */
	uint16_t	owner;			/* core + 1 that has it exclusive or modified */
	uint8_t		l3;				/* sockets that have it in L3 */
} Line;

/* Lines by sets, the last used first.  A tag of 0 is empty. */
typedef struct Cache
{
	uint64_t   *tags;
	uint32_t	sets;
	uint32_t	ways;
} Cache;

/* A line that has been asked for and is not there yet. */
typedef struct Pending
{
	uint32_t	line;
	Picoseconds ready;
} Pending;

/* Of a resource that serves one line after the other. */
typedef struct Queue
{
	Picoseconds at;				/* of the latest request */
	Picoseconds backlog;		/* work that was left then */
} Queue;

typedef struct Core
{
	Cache		l1;
	Cache		l2;
	Cache		tlb;
	uint32_t	node;
	uint32_t	next_pending;
	Pending		pending[PENDING];
	Picoseconds last_ready;		/* of the pending ones */
	Picoseconds drained;		/* when the last store will be visible */
	uint32_t	held;			/* a line that was got to be written ... */
	Picoseconds held_until;		/* ... is there until then, whoever asks */
} Core;

CacheStats	cache_stats;

static const Machine *machine;
static Placement placement;
static Picoseconds slack;
static Core cores[MAX_CORES];
static Cache l3[MAX_NODES];
static Queue memory_queue[MAX_NODES];
static Queue link_queue[MAX_NODES];
static Picoseconds access_cost;

static Line *lines;
static uint64_t *page_slots;	/* (page << 24 | number) + 1; 0 = empty */
static uint8_t *page_node;		/* node + 1; 0 = not placed yet */
static uint8_t *copied;			/* of lines: bits */
static uint32_t npages;
static bool any_placed;

static void *
zeroed(size_t size)
{
	void	   *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
							  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
	{
		perror("mmap");
		exit(1);
	}
	return memory;
}

static void
cache_init(Cache *cache, uint64_t entries, uint32_t ways)
{
	free(cache->tags);
	cache->ways = ways;
	cache->sets = (uint32_t) (entries / ways);
	if (cache->sets == 0)
		cache->sets = 1;
	cache->tags = calloc((size_t) cache->sets * ways, sizeof(uint64_t));
	if (cache->tags == NULL)
	{
		fprintf(stderr, "no memory for the caches\n");
		exit(1);
	}
}

void
cache_reset(const Machine *on, bool spread, Placement place,
			Picoseconds run_ahead)
{
	uint32_t	ncores = on->nodes * on->node_cores;

	machine = on;
	placement = place;
	slack = run_ahead;
	access_cost = access_of(on);
	memset(&cache_stats, 0, sizeof(cache_stats));
	for (uint32_t i = 0; i < ncores; i++)
	{
		Core	   *core = &cores[i];

		cache_init(&core->l1, on->l1.bytes >> LINE_BITS, on->l1.ways);
		cache_init(&core->l2, on->l2.bytes >> LINE_BITS, on->l2.ways);
		cache_init(&core->tlb, on->tlb_pages, TLB_WAYS);
		core->node = spread ? i % on->nodes : i / on->node_cores;
		core->next_pending = 0;
		memset(core->pending, 0, sizeof(core->pending));
		core->last_ready = core->drained = core->held_until = 0;
	}
	for (uint32_t i = 0; i < on->nodes; i++)
	{
		cache_init(&l3[i], on->l3.bytes >> LINE_BITS, on->l3.ways);
		memory_queue[i] = link_queue[i] = (Queue)
		{
			0, 0
		};
	}
	if (lines != NULL)
	{
		munmap(lines, (size_t) MAX_PAGES * PAGE_LINES * sizeof(Line));
		munmap(page_slots, PAGE_SLOTS * sizeof(uint64_t));
		munmap(page_node, MAX_PAGES);
		munmap(copied, MAX_PAGES * (PAGE_LINES / 8));
	}
	lines = zeroed((size_t) MAX_PAGES * PAGE_LINES * sizeof(Line));
	page_slots = zeroed(PAGE_SLOTS * sizeof(uint64_t));
	page_node = zeroed(MAX_PAGES);
	copied = zeroed(MAX_PAGES * (PAGE_LINES / 8));
	npages = 0;
	any_placed = false;
}

/* The number of an address's page, from 1. */
static uint32_t
page_number(uintptr_t address)
{
	uint64_t	page = address >> PAGE_BITS;
	uint32_t	slot = (uint32_t) (page * UINT64_C(0x9E3779B97F4A7C15) >> 32) %
		PAGE_SLOTS;
	uint32_t	number;

	for (; page_slots[slot] != 0; slot = (slot + 1) % PAGE_SLOTS)
	{
		if (page_slots[slot] >> 24 == page)
			return (uint32_t) page_slots[slot] & (MAX_PAGES - 1);
	}
	number = ++npages;
	if (number >= MAX_PAGES - MAX_PAGES / 8 / PAGE_LINES)
	{
		fprintf(stderr, "more memory is touched than can be simulated\n");
		exit(1);
	}
	page_slots[slot] = page << 24 | number;
	return number;
}

static uint32_t
line_number(uintptr_t address)
{
	static uintptr_t last_page = UINTPTR_MAX;
	static uint32_t last_number;
	static uint64_t *last_slots;

	if (address >> PAGE_BITS != last_page || last_slots != page_slots)
	{
		last_number = page_number(address);
		last_page = address >> PAGE_BITS;
		last_slots = page_slots;
	}
	return last_number * PAGE_LINES +
		(uint32_t) (address >> LINE_BITS) % PAGE_LINES;
}

uint32_t
cache_nodes(void)
{
	return machine->nodes;
}

uint32_t
cache_node(uint32_t core)
{
	return cores[core].node;
}

void
cache_place(const void *address, size_t size, uint32_t node)
{
	any_placed = true;
	for (uintptr_t at = (uintptr_t) address; at < (uintptr_t) address + size;
		 at += (uintptr_t) 1 << PAGE_BITS)
		page_node[page_number(at)] = (uint8_t) (node % machine->nodes + 1);
}

void
cache_copy(const void *address, size_t size)
{
	uintptr_t	last = (uintptr_t) address + size - 1;

	any_placed = true;
	for (uintptr_t n = (uintptr_t) address >> LINE_BITS; n <= last >> LINE_BITS; n++)
	{
		uint32_t	number = line_number(n << LINE_BITS);

		copied[number / 8] |= (uint8_t) (1U << number % 8);
	}
}

/* The line that a core reads when it reads this address. */
static uint32_t
line_to_read(uint32_t c, uintptr_t address)
{
	uint32_t	number = line_number(address);
	uint32_t	node = cores[c].node;

	if ((copied[number / 8] >> number % 8 & 1) == 0)
		return number;
	number = line_number(address | (uintptr_t) (node + 1) << COPY_SHIFT);
	page_node[number / PAGE_LINES] = (uint8_t) (node + 1);
	return number;
}

bool
cache_placed(void)
{
	return any_placed;
}

/* The node whose memory has the line. */
static uint32_t
home(uint32_t line, uint32_t toucher)
{
	uint32_t	page = line / PAGE_LINES;

	if (page_node[page] == 0)
	{
		uint32_t	node = 0;

		if (placement == PLACE_INTERLEAVED)
			node = page % machine->nodes;
		else if (placement == PLACE_FIRST_TOUCH)
			node = toucher;
		page_node[page] = (uint8_t) (node + 1);
	}
	return page_node[page] - 1U;
}

/* The tag's place, now the first of its set; NULL if the line is not there. */
static inline uint64_t *
cache_find(Cache *cache, uint32_t line)
{
	uint64_t   *set = cache->tags + (size_t) (line % cache->sets) * cache->ways;
	uint64_t	tag;

	if (set[0] >> 2 == line)
		return set;
	for (uint32_t i = 1; i < cache->ways; i++)
	{
		if (set[i] >> 2 != line)
			continue;
		tag = set[i];
		memmove(set + 1, set, i * sizeof(uint64_t));
		set[0] = tag;
		return set;
	}
	return NULL;
}

/*
 * Puts a line that is not there in the first place; returns whom it drove out.
 */
static uint64_t
cache_put(Cache *cache, uint32_t line, uint32_t state)
{
	uint64_t   *set = cache->tags + (size_t) (line % cache->sets) * cache->ways;
	uint64_t	victim = set[cache->ways - 1];

	memmove(set + 1, set, (cache->ways - 1) * sizeof(uint64_t));
	set[0] = (uint64_t) line << 2 | state;
	return victim;
}

static void
cache_drop(Cache *cache, uint32_t line)
{
	uint64_t   *set = cache->tags + (size_t) (line % cache->sets) * cache->ways;

	for (uint32_t i = 0; i < cache->ways; i++)
	{
		if (set[i] >> 2 == line)
			set[i] = 0;
	}
}

static void
l3_put(uint32_t node, uint32_t line)
{
	uint64_t	victim;

	if (lines[line].l3 >> node & 1)
	{
		(void) cache_find(&l3[node], line);
		return;
	}
	victim = cache_put(&l3[node], line, TAG_SHARED);
	lines[line].l3 |= (uint8_t) (1U << node);
	if (victim != 0)
		lines[victim >> 2].l3 &= (uint8_t) ~(1U << node);
}

static inline bool
has_copy(const Line *line, uint32_t core)
{
	return (line->cores[core / 64] >> core % 64 & 1) != 0;
}

/* Into L2, and what falls out of it into L3. */
static void
l2_put(uint32_t c, uint32_t line, uint32_t state)
{
	uint64_t	victim = cache_put(&cores[c].l2, line, state);

	lines[line].cores[c / 64] |= UINT64_C(1) << c % 64;
	if (victim != 0)
	{
		Line	   *out = &lines[victim >> 2];

		cache_drop(&cores[c].l1, (uint32_t) (victim >> 2));
		out->cores[c / 64] &= ~(UINT64_C(1) << c % 64);
		if (out->owner == c + 1)
			out->owner = 0;
		l3_put(cores[c].node, (uint32_t) (victim >> 2));
	}
}

static void
set_state(uint32_t c, uint32_t line, uint32_t state)
{
	uint64_t   *tag = cache_find(&cores[c].l1, line);

	if (tag != NULL)
		*tag = (uint64_t) line << 2 | state;
	tag = cache_find(&cores[c].l2, line);
	if (tag != NULL)
		*tag = (uint64_t) line << 2 | state;
}

static inline Picoseconds
between(uint32_t a, uint32_t b)
{
	return machine->memory[machine->distance[a][b]];
}

/*
 * When can a resource start that will be busy so long?  Requests do not come
 * in the order of their times: a page's translation may have to be fetched
 * before.  So who comes late waits for as much work as there is, not for those
 * who come later.
 */
static inline Picoseconds
queue(Queue *queue, Picoseconds now, Picoseconds busy)
{
	Picoseconds wait;

	if (now > queue->at)
	{
		queue->backlog -= now - queue->at < queue->backlog ?
			now - queue->at : queue->backlog;
		queue->at = now;
	}
	wait = queue->backlog;
	queue->backlog += busy;
	return now + wait;
}

/* The nearest core that has a copy; -1 if none. */
static int
nearest_copy(const Line *line, uint32_t node)
{
	int			best = -1;
	uint32_t	best_distance = UINT32_MAX;

	for (uint32_t word = 0; word < MAX_CORES / 64; word++)
	{
		for (uint64_t bits = line->cores[word]; bits != 0; bits &= bits - 1)
		{
			uint32_t	c = word * 64 + (uint32_t) __builtin_ctzll(bits);
			uint32_t	distance = machine->distance[node][cores[c].node];

			if (distance < best_distance)
			{
				best = (int) c;
				best_distance = distance;
			}
		}
	}
	return best;
}

/*
 * A read that its core's caches do not serve: when does it have the line?
 * "later": not the first line of a copy.
 */
static Picoseconds
fetch_shared(uint32_t c, uint32_t number, Picoseconds now, bool later)
{
	Line	   *line = &lines[number];
	uint32_t	node = cores[c].node;
	uint32_t	from = node;
	Picoseconds start = line->busy > now ? line->busy : now;
	Picoseconds takes;

	cache_stats.line_wait += start - now;
	if (line->owner != 0)
	{
		uint32_t	owner = line->owner - 1U;

		/* It has it from its owner, which keeps a copy. */
		from = cores[owner].node;
		takes = from == node ? machine->peer : between(node, from);
		line->busy = start + takes;
		line->owner = 0;
		set_state(owner, number, TAG_SHARED);
		l3_put(from, number);
	}
	else if (line->l3 >> node & 1)
	{
		takes = later ? machine->stream_l3 : machine->l3_hit;
		line->busy = start + machine->line_busy;
		cache_stats.l3_hits++;
	}
	else
	{
		int			peer = nearest_copy(line, node);
		uint32_t	at = home(number, node);

		line->busy = start + machine->line_busy;
		if (peer >= 0 && cores[peer].node == node)
			takes = machine->peer;
		else if (peer >= 0 || line->l3 != 0)
		{
			from = peer >= 0 ? cores[peer].node :
				(uint32_t) __builtin_ctz(line->l3);
			takes = between(node, from);
		}
		else
		{
			start = queue(&memory_queue[at], start, machine->memory_busy);
			takes = between(node, at);
			if (at == node)
				cache_stats.memory_local++;
			else
				cache_stats.memory_remote++;
			if (at != node)
				start = queue(&link_queue[node], start, machine->link_busy);
			l3_put(node, number);
			return start + (later ? machine->stream_memory : takes);
		}
		l3_put(node, number);
	}
	if (from != node)
	{
		cache_stats.transfers_remote++;
		start = queue(&link_queue[node], start, machine->link_busy);
	}
	else if (takes == machine->peer)
		cache_stats.transfers_local++;
	return start + takes;
}

/*
 * The line becomes the core's alone: when?  Copies elsewhere are dropped,
 * which takes as long as the way to the farthest of them.
 */
static Picoseconds
fetch_owned(uint32_t c, uint32_t number, Picoseconds now)
{
	Line	   *line = &lines[number];
	uint32_t	node = cores[c].node;
	bool		had = has_copy(line, c);
	uint64_t	dropped = cache_stats.invalidations;
	Picoseconds done = now;

	if (!had)
		done = fetch_shared(c, number, now, false);
	else if (line->busy > now)
	{
		cache_stats.line_wait += line->busy - now;
		done = line->busy;
	}
	now = done;
	for (uint32_t word = 0; word < MAX_CORES / 64; word++)
	{
		for (uint64_t bits = line->cores[word]; bits != 0; bits &= bits - 1)
		{
			uint32_t	other = word * 64 + (uint32_t) __builtin_ctzll(bits);
			Picoseconds takes = cores[other].node == node ? machine->peer :
				between(node, cores[other].node);

			if (other == c)
				continue;
			cache_drop(&cores[other].l1, number);
			cache_drop(&cores[other].l2, number);
			cache_stats.invalidations++;

			/* What was fetched from afar was told to drop it on the way. */
			if (had && now + takes > done)
				done = now + takes;
		}
		line->cores[word] = 0;
	}
	cache_stats.contested += cache_stats.invalidations > dropped;
	for (uint32_t i = 0; i < machine->nodes; i++)
	{
		if (line->l3 >> i & 1)
			cache_drop(&l3[i], number);
	}
	line->l3 = 0;
	line->owner = (uint16_t) (c + 1);
	line->cores[c / 64] |= UINT64_C(1) << c % 64;
	line->busy = done;
	return done;
}

static void
l1_put(Core *core, uint32_t line, uint64_t state)
{
	(void) cache_put(&core->l1, line, (uint32_t) state);
}

/* The line of the page table that has a line's page; eight pages share one. */
static inline uint32_t
table_line(uint32_t line)
{
	return MAX_PAGES * PAGE_LINES - 1 - line / PAGE_LINES / 8;
}

static Picoseconds read_line(uint32_t c, uint32_t number, Picoseconds now,
							 bool later);

/* When is the page's translation there? */
static Picoseconds
translate(uint32_t c, uint32_t line, Picoseconds now)
{
	Core	   *core = &cores[c];
	uint32_t	page = line / PAGE_LINES;

	if (page >= MAX_PAGES - MAX_PAGES / 8 / PAGE_LINES ||
		cache_find(&core->tlb, page) != NULL)
		return now;
	(void) cache_put(&core->tlb, page, 0);
	cache_stats.tlb_misses++;
	return read_line(c, table_line(line), now + machine->tlb_miss, false);
}

/* A line that has been fetched comes into L2. */
static void
take_shared(uint32_t c, uint32_t number)
{
	bool		alone = true;

	for (uint32_t word = 0; word < MAX_CORES / 64; word++)
		alone = alone && lines[number].cores[word] == 0;

	/* Nobody else has it: exclusive, to be written without asking. */
	if (alone)
		lines[number].owner = (uint16_t) (c + 1);
	l2_put(c, number, alone ? TAG_OWNED : TAG_SHARED);
}

/* A line has been asked for, and will be there. */
static void
note_pending(Core *core, uint32_t line, Picoseconds ready)
{
	Pending    *pending = &core->pending[core->next_pending++ % PENDING];

	pending->line = line;
	pending->ready = ready;
	if (ready > core->last_ready)
		core->last_ready = ready;
}

/*
 * The other line of the pair comes along with one that was missed, unless
 * somebody writes it.
 */
static void
fetch_neighbor(uint32_t c, uint32_t number, Picoseconds now, Picoseconds ready)
{
	Core	   *core = &cores[c];
	Picoseconds there;

	if (lines[number].owner != 0 || cache_find(&core->l2, number) != NULL)
		return;
	there = fetch_shared(c, number, now, false);
	take_shared(c, number);
	note_pending(core, number, there > ready ? there : ready);
}

/*
 * Makes a line readable in L1: when is it?  "later": not the first line of a
 * copy, so that the cores' prefetchers know.
 */
static Picoseconds
read_line(uint32_t c, uint32_t number, Picoseconds now, bool later)
{
	Core	   *core = &cores[c];
	uint64_t   *tag = cache_find(&core->l1, number);
	Picoseconds ready;

	cache_stats.accesses++;
	if (tag != NULL || (core->held == number && now < core->held_until))
		return now;
	cache_stats.l1_misses++;
	now = translate(c, number, now);
	tag = cache_find(&core->l2, number);
	if (tag != NULL)
	{
		l1_put(core, number, *tag & TAG_STATES);
		return now + (later ? machine->stream_l2 : machine->l2_hit);
	}
	cache_stats.l2_misses++;
	vthread_sync(0);
	ready = fetch_shared(c, number, now, later);
	take_shared(c, number);
	l1_put(core, number, *cache_find(&core->l2, number) & TAG_STATES);
	if (!later)
		fetch_neighbor(c, number ^ 1, now, ready);
	return ready;
}
/* Makes a line the core's own in L1: when is it? */
static Picoseconds
own_line(uint32_t c, uint32_t number, Picoseconds now)
{
	Core	   *core = &cores[c];
	uint64_t   *tag = cache_find(&core->l1, number);
	Picoseconds ready;

	cache_stats.accesses++;
	if ((tag != NULL && (*tag & TAG_OWNED)) ||
		(core->held == number && now < core->held_until))
		return now;
	if (tag == NULL)
	{
		cache_stats.l1_misses++;
		now = translate(c, number, now);
		tag = cache_find(&core->l2, number);
		if (tag != NULL && (*tag & TAG_OWNED))
		{
			l1_put(core, number, TAG_OWNED);
			return now + machine->l2_hit;
		}
	}
	if (tag == NULL)
		cache_stats.l2_misses++;
	vthread_sync(0);
	ready = fetch_owned(c, number, now);

	/*
	 * Who asks next has to be told where the line is, and then to ask for it:
	 * about half of a transfer, in which it is still here.
	 */
	core->held = number;
	core->held_until = ready + (ready - now < TRANSFER_MOST ?
								ready - now : TRANSFER_MOST) / 2;
	if (cache_find(&core->l2, number) == NULL)
		l2_put(c, number, TAG_OWNED);
	if (cache_find(&core->l1, number) == NULL)
		l1_put(core, number, TAG_OWNED);
	set_state(c, number, TAG_OWNED);
	return ready;
}

/* If the line has been asked for: when will it be there? */
static Picoseconds
wait_pending(const Core *core, uint32_t line, Picoseconds now)
{
	if (core->last_ready <= now)
		return now;
	for (uint32_t i = 0; i < PENDING; i++)
	{
		if (core->pending[i].line == line && core->pending[i].ready > now)
			return core->pending[i].ready;
	}
	return now;
}

static void
prefetch(uint32_t c, uint32_t number)
{
	const Pending *oldest = &cores[c].pending[cores[c].next_pending % PENDING];

	if (oldest->ready > vthread_current->clock)
		vthread_current->clock = oldest->ready;
	note_pending(&cores[c], number,
				 read_line(c, number, vthread_current->clock, false));
}

void
cache_drain(void)
{
	VThread    *me = vthread_current;

	if (cores[me->number].drained > me->clock)
		me->clock = cores[me->number].drained;
}

static void
store(uint32_t c, uint32_t number)
{
	VThread    *me = vthread_current;
	Core	   *core = &cores[c];
	Picoseconds done = own_line(c, number, me->clock);

	if (done > core->drained)
		core->drained = done;
	if (core->drained > me->clock + STORE_WINDOW)
		me->clock = core->drained - STORE_WINDOW;
}

void
cache_access(EunoHookKind kind, const void *address, size_t size)
{
	VThread    *me = vthread_current;
	uint32_t	c = me->number;
	uintptr_t	at = (uintptr_t) address;
	uintptr_t	last = (at + size - 1) >> LINE_BITS;

	if (kind == EUNO_HOOK_PAUSE)
	{
		me->clock += machine->pause;
		vthread_sync(0);
		return;
	}
	if (kind == EUNO_HOOK_PREFETCH)
	{
		if (address != NULL)
			prefetch(c, line_to_read(c, at));
		return;
	}
	if (kind == EUNO_HOOK_RMW)
	{
		cache_drain();
		vthread_sync(0);
		me->clock = own_line(c, line_number(at), me->clock) + machine->atomic;
		cache_stats.atomics++;
		return;
	}
	vthread_sync(slack);
	for (uintptr_t n = at >> LINE_BITS; n <= last; n++)
	{
		uint32_t	number;

		me->clock += access_cost;
		if (kind == EUNO_HOOK_STORE)
		{
			store(c, line_number(n << LINE_BITS));
			continue;
		}
		number = line_to_read(c, n << LINE_BITS);
		me->clock = wait_pending(&cores[c], number,
								 read_line(c, number, me->clock,
										   n != at >> LINE_BITS));
	}
}
