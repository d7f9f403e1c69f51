/*-------------------------------------------------------------------------
 *
 * litmus.c
 *	  Does the model of memory (memory.h) show exactly what C11 allows?
 *
 * Small programs whose possible outcomes are known.  A thread's words are
 * WXr1 (write 1 to X), RXa (read), AXs1 (add 1), CXa1 (compare with 0 and
 * exchange), Fs (fence), M (a fence in every thread); the order is x relaxed, a acquire, r release, s
 * sequentially consistent.  An outcome is what all reads saw, thread by thread;
 * C reads too.  Those marked with an asterisk only weak memory shows: each of
 * the others must come without it, and all must come with it, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/euno_shared.h"
#include "coroutines.h"
#include "env.h"
#include "memory.h"
#include "tap.h"

#define RUNS		8000
#define LOCATIONS	4			/* L, X, Y, Z: a cache line each */
#define MAX_READS	12
#define MAX_SEEN	64

typedef struct Litmus
{
	const char *name;
	const char *threads[MAX_COROUTINES];
	const char *only;			/* look at these outcomes; '.' is any value */
	const char *outcomes;
} Litmus;

static const Litmus tests[] = {
	/* message passing */
	{"MP", {"WXx1 WYx1", "RYx RXx"}, "..", "00 01 11 10*"},
	{"MP release, acquire", {"WXx1 WYr1", "RYa RXx"}, "..", "00 01 11"},
	{"MP release alone", {"WXx1 WYr1", "RYx RXx"}, "..", "00 01 11 10*"},
	{"MP acquire alone", {"WXx1 WYx1", "RYa RXx"}, "..", "00 01 11 10*"},
	{"MP fences", {"WXx1 Fr WYx1", "RYx Fa RXx"}, "..", "00 01 11"},
	{"MP release fence alone", {"WXx1 Fr WYx1", "RYx RXx"}, "..", "00 01 11 10*"},
	{"MP fence before", {"Fr WXx1 WYx1", "RYa RXx"}, "..", "00 01 11 10*"},
	{"MP read-modify-write", {"WXx1 AYr1", "AYa1 RXx"}, ".", "0 1"},
	{"MP full", {"WXx1 WYs1", "RYs RXx"}, "..", "00 01 11"},

	/* a read-modify-write continues a release sequence, a store does not */
	{"release sequence", {"WXx1 WYr1", "AYx1", "RYa RXx"}, "2.", "21"},
	{"no release sequence", {"WXx1 WYr1", "RYx WYx2", "RYa RXx"}, "12.", "121 120*"},
	{"no release sequence in SC", {"WXx1 WYs1", "RYx WYx2", "RYs RXx"}, "12.", "121 120*"},

	/* store buffering */
	{"SB", {"WXx1 RYx", "WYx1 RXx"}, "..", "01 10 11 00*"},
	{"SB release, acquire", {"WXr1 RYa", "WYr1 RXa"}, "..", "01 10 11 00*"},
	{"SB full", {"WXs1 RYs", "WYs1 RXs"}, "..", "01 10 11"},
	{"SB fences", {"WXx1 Fs RYx", "WYx1 Fs RXx"}, "..", "01 10 11"},
	{"SB one fence", {"WXx1 Fs RYx", "WYx1 RXx"}, "..", "01 10 11 00*"},
	{"SB fence, full", {"WXx1 Fs RYx", "WYs1 RXs"}, "..", "01 10 11"},
	{"SB fence, acquire", {"WXx1 Fs RYx", "WYs1 RXa"}, "..", "01 10 11 00*"},
	{"SB full store", {"WXs1 RYx", "WYs1 RXx"}, "..", "01 10 11 00*"},
	{"SB full exchange", {"AXs1 RYx", "AYs1 RXx"}, "..", "01 10 11 00*"},
	{"SB full exchange, fence", {"AXs1 Fs RYx", "AYs1 Fs RXx"}, "..", "01 10 11"},
	{"SB exchange, load", {"AXs1 RYs", "AYs1 RXs"}, "..", "01 10 11"},

	/* coherence: also of what others saw */
	{"CoRR", {"WXx1 WXx2", "RXx RXx"}, "..", "00 01 02 11 12 22"},
	{"CoRR told", {"WXx1", "RXx WYr1", "RYa RXx"}, "11.", "111"},
	{"CoRR not told", {"WXx1", "RXx WYx1", "RYx RXx"}, "11.", "111 110*"},
	{"CoWR", {"WXx1 RXx", "WXx2"}, ".", "1 2"},
	{"CoRW", {"RXx WXx1 RXx", "WXx2"}, "2.", "21"},
	{"exchanges", {"AXx1 RXx", "AXx1 RXx"}, "..", "12 21 22"},
	{"WRC", {"WXx1", "RXx WYr1", "RYa RXx"}, "11.", "111"},
	{"WRC full", {"WXr1", "RXa WYr1", "RYa RXx"}, "11.", "111"},

	/* independent reads of independent writes */
	{"IRIW", {"WXr1", "WYr1", "RXa RYa", "RYa RXa"}, "1.1.", "1011 1110 1111 1010*"},
	{"IRIW full", {"WXs1", "WYs1", "RXs RYs", "RYs RXs"}, "1.1.", "1011 1110 1111"},
	{"IRIW full stores", {"WXs1", "WYs1", "RXa RYa", "RYa RXa"}, "1.1.", "1011 1110 1111 1010*"},
	{"IRIW fences", {"WXx1", "WYx1", "RXx Fs RYx", "RYx Fs RXx"}, "1.1.", "1011 1110 1111"},
	{"RWC fences", {"WXx1", "RXx Fs RYx", "WYx1 Fs RXx"}, "1..", "101 110 111"},
	{"RWC one fence", {"WXx1", "RXx RYx", "WYx1 Fs RXx"}, "1..", "101 110 111 100*"},

	/*
	 * left out: stores that take effect later than loads and stores after them
	 */
	{"LB (not modeled: 11)", {"RXx WYx1", "RYx WXx1"}, "..", "00 01 10"},
	{"2+2W (not modeled: 11)", {"WXx1 WYx2 RYx", "WYx1 WXx2 RXx"}, "..", "12 21 22"},

	/* a compare-and-exchange may fail by an old value, not succeed by one */
	{"CAS, old value", {"WXx2 WXx0 WYx1", "RYx CXa1"}, "1.", "10 12*"},
	{"CAS, success", {"WXx2 WYx1", "RYx CXa1"}, "1.", "12"},

	/* the optimistic lock: version 0, locked 1, version 2 (euno_lock.h) */
	{"seqlock", {"CLa1 Fr WXx1 WYx1 WLr2", "RLa RXx RYx Fa RLx"}, ".0..0", "00000"},
	{"seqlock, new", {"CLa1 Fr WXx1 WYx1 WLr2", "RLa RXx RYx Fa RLx"}, ".2..2", "02112"},
	{"seqlock, no acquire fence", {"CLa1 Fr WXx1 WYx1 WLr2", "RLa RXx RYx RLx"}, ".0..0", "00000 00010* 00100* 00110*"},
	{"seqlock, no release fence", {"CLa1 WXx1 WYx1 WLr2", "RLa RXx RYx Fa RLx"}, ".0..0", "00000 00010* 00100* 00110*"},
	{"seqlock, relaxed first load", {"CLa1 Fr WXx1 WYx1 WLr2", "RLx RXx RYx Fa RLx"}, ".2..2", "02112 02002* 02012* 02102*"},
	{"seqlock, relaxed unlock", {"CLa1 Fr WXx1 WYx1 WLx2", "RLa RXx RYx Fa RLx"}, ".2..2", "02112 02002* 02012* 02102*"},

	/*
	 * Reclamation: X is the link to a node (1 = unlinked), L the epoch, Y the
	 * pin.  Nobody may have seen no pin (0), if the reader finds the link (0).
	 */
	{"epoch", {"WXx1 ALs1 Fs RYs", "RLa WYs1 Fs RXx"}, "0..", "001 011"},
	{"epoch, no fence in the reader", {"WXx1 ALs1 Fs RYs", "RLa WYs1 RXx"}, "0..", "001 011 000*"},
	{"epoch, no fence in the other", {"WXx1 ALs1 RYs", "RLa WYs1 Fs RXx"}, "0..", "001 011 000*"},
	{"epoch, cheap", {"WXx1 ALs1 M RYa", "RLa WYr1 RXx"}, "0..", "001 011"},
	{"epoch, cheap, no barrier", {"WXx1 ALs1 Fs RYa", "RLa WYr1 RXx"}, "0..", "001 011 000*"},

	/* the same, when a third gives back what the first has unlinked */
	{"epoch, three", {"WXx1 ALs1", "RLa M RYa", "RLa WYr1 RXx"}, "10..", "1001 1011"},
	{"epoch, three, looked at too late", {"WXx1 ALs1", "M RLa RYa", "RLa WYr1 RXx"}, "10..", "1001 1011 1000*"},
	{"epoch, three, apart", {"WXx1 ALs1", "RLa Fs RYa", "RLa WYs1 Fs RXx"}, "10..", "1001 1011"},
	{"epoch, three, apart, not told", {"WXx1 ALx1", "RLa Fs RYa", "RLa WYs1 Fs RXx"}, "10..", "1001 1011 1000* 1010*"},

	/*
	 * Hazards (euno_epoch.h): Y is the vacuum epoch, X the hazard, L an entry
	 * (1 = removed).  A scan that read the old epoch and the entry must not
	 * find the old epoch again, if the bulk delete found no hazard (first 0).
	 */
	{"hazard", {"WLx1 Fr WYx1 Fs RXa", "RYa RLx WXr1 Fs RYx"}, "0.0.", "0001"},
	{"hazard, cheap", {"WLx1 Fr WYx1 M RXa", "RYa RLx WXr1 RYx"}, "0.0.", "0001"},
	{"hazard, cheap, no barrier", {"WLx1 Fr WYx1 Fs RXa", "RYa RLx WXr1 RYx"}, "0.0.", "0001 0000*"},
	{"hazard, cheap, epoch too late", {"WLx1 M RXa WYx1", "RYa RLx WXr1 RYx"}, "0.0.", "0001 0000"},

	/* the same, if it looks again: whether the entry is there */
	{"hazard, second look", {"WLx1 Fr WYx1 M RXa", "WXr1 RLx"}, "..", "01 10 11"},
	{"hazard, second look, no barrier", {"WLx1 Fr WYx1 Fs RXa", "WXr1 RLx"}, "..", "01 10 11 00*"},

	/*
	 * joining: Z says that somebody has; who finds 0 there asks for no barrier
	 */
	{"hazard, joining", {"WYx1 Fs RZx RXa", "AZs1 Fs WXr1 RYx"}, "0..", "001 011"},
};

static uint64_t *memory;		/* LOCATIONS of them, a cache line apart */
static const Litmus *test;
static char seen[MAX_COROUTINES][MAX_READS];

static int
order_of(char c)
{
	switch (c)
	{
		case 'a':
			return __ATOMIC_ACQUIRE;
		case 'r':
			return __ATOMIC_RELEASE;
		case 's':
			return __ATOMIC_SEQ_CST;
		default:
			return __ATOMIC_RELAXED;
	}
}

static uint64_t *
location(char c)
{
	return &memory[c == 'L' ? 0 : 8 * (1 + c - 'X')];
}

static void
body(uint32_t i)
{
	const char *s = test->threads[i];
	char	   *to = seen[i];
	uint64_t	value;

	for (; *s != '\0'; s += strcspn(s, " "), s += *s == ' ')
	{
		switch (*s)
		{
			case 'F':
				euno_model_fence(order_of(s[1]));
				break;
			case 'M':
				euno_model_fence_all();
				break;
			case 'W':
				euno_model_store(location(s[1]), 8, (uint64_t) (s[3] - '0'),
								 order_of(s[2]));
				break;
			case 'A':
				(void) euno_model_update(location(s[1]), 8, EUNO_UPDATE_ADD,
										 (uint64_t) (s[3] - '0'),
										 order_of(s[2]));
				break;
			case 'C':
				value = 0;
				(void) euno_model_cas(location(s[1]), 8, &value,
									  (uint64_t) (s[3] - '0'), order_of(s[2]),
									  __ATOMIC_RELAXED);
				*to++ = (char) ('0' + value);
				break;
			default:
				value = euno_model_load(location(s[1]), 8, order_of(s[2]));
				*to++ = (char) ('0' + value);
				break;
		}
	}
	*to = '\0';
}

/* What comes out of many runs, and is to be looked at. */
static uint32_t
outcomes(bool weak, char found[][MAX_COROUTINES * MAX_READS])
{
	uint32_t	n = 0;
	uint32_t	nthreads = 0;

	while (nthreads < MAX_COROUTINES && test->threads[nthreads] != NULL)
		nthreads++;
	for (uint32_t i = 0; i < RUNS; i++)
	{
		Schedule	schedule = {.kind = SCHEDULE_RANDOM,.weak = weak,
		.seed = test_seed() + i};
		char		outcome[MAX_COROUTINES * MAX_READS] = "";
		uint32_t	steps;
		uint32_t	k;
		bool		wanted = true;

		memset(memory, 0, 8 * LOCATIONS * sizeof(uint64_t));
		(void) coroutines_run(&schedule, nthreads, body, &steps);
		for (k = 0; k < nthreads; k++)
			strcat(outcome, seen[k]);
		for (k = 0; test->only[k] != '\0'; k++)
			wanted = wanted && (test->only[k] == '.' || test->only[k] == outcome[k]);
		for (k = 0; k < n && strcmp(found[k], outcome) != 0; k++)
			;
		if (wanted && k == n && n < MAX_SEEN)
			strcpy(found[n++], outcome);
	}
	return n;
}

/*
 * Takes the next outcome of a list, if there is one; *star: and an asterisk.
 */
static const char *
next_outcome(const char *s, char *outcome, bool *star)
{
	size_t		n;

	if (*s == '\0')
		return NULL;
	n = strcspn(s, " *");
	memcpy(outcome, s, n);
	outcome[n] = '\0';
	s += n;
	*star = *s == '*';
	s += *star;
	return *s == ' ' ? s + 1 : s;
}

static void
run_test(bool weak)
{
	static char found[MAX_SEEN][MAX_COROUTINES * MAX_READS];
	char		outcome[MAX_COROUTINES * MAX_READS];
	uint32_t	n;
	bool		star;

	tap_begin("%s%s", test->name, weak ? "" : ", strongly");
	n = outcomes(weak, found);
	for (const char *s = test->outcomes;
		 (s = next_outcome(s, outcome, &star)) != NULL;)
	{
		uint32_t	k = 0;

		while (k < n && strcmp(found[k], outcome) != 0)
			k++;
		if (weak || !star)
			CHECK(k < n, "%s does not come", outcome);
		if (k < n && (weak || !star))
			found[k][0] = '\0';
	}
	for (uint32_t k = 0; k < n; k++)
		CHECK(found[k][0] == '\0', "%s must not come", found[k]);
	tap_end();
}

int
main(void)
{
	const size_t size = 4096;

	memory = shared_memory(size);
	memory_region(memory, size);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		test = &tests[i];
		run_test(false);
		run_test(true);
	}
	return tap_done();
}
