/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  The machines that can be simulated, and what was measured of this one.
 *
 * Shapes are those of the papers, and where they give them, latencies.  What
 * they do not say (L2, L3, transfers within a socket, atomics) is typical of
 * these processors.  How much slower their plain instructions are than those
 * of the machine that was measured is a guess from clock rates and from the
 * cycles a lookup takes in the papers.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define MAX_VALUES	64
#define NAME_BYTES	48

typedef struct Value
{
	char		name[NAME_BYTES];
	double		value;
} Value;

static Value values[MAX_VALUES];
static uint32_t nvalues;

#define KB		1024U
#define MB		(1024U * 1024U)

/* Intel, Haswell and its like. */
#define HASWELL \
	.l1 = {32 * KB, 8}, .l2 = {256 * KB, 8}, .tlb_pages = 1024, \
	.l2_hit = NS(4), .l3_hit = NS(18), .tlb_miss = NS(10), .peer = NS(35), \
	.atomic = NS(8), .pause = NS(4), .sleep = NS(6000), .wake = NS(1500), \
	.line_busy = NS(2), .memory_busy = NS(1.2), .link_busy = NS(3.4), \
	.stream_l2 = NS(2), .stream_l3 = NS(4), .stream_memory = NS(8), \
	.extent = NS(20000)

static Machine machines[] = {
	{
		.name = "here",.what = "the machine that was measured: 1 x 2 cores",
		.nodes = 1,.node_cores = 2,.slowness = 1,
		.l1 = {48 * KB, 12},.l2 = {1 * MB, 16},.l3 = {32 * MB, 16},
		.tlb_pages = 4096
	},
	{
		.name = "1x10",.what = "1 x 10 cores (ART of Practical Synchronization)",
		.nodes = 1,.node_cores = 10,.slowness = 1.8,
		.l3 = {25 * MB, 20},.memory = {NS(90)}, HASWELL
	},
	{
		.name = "2x10",.what = "2 x 10 cores (Eunomia), 114 and 217 ns",
		.nodes = 2,.node_cores = 10,.slowness = 2.2,
		.l3 = {25 * MB, 20},.memory = {NS(114), NS(217)}, HASWELL
	},
	{
		.name = "4x8",.what = "4 x 8 cores (McKenzie), 114, 217 and 265 ns",
		.nodes = 4,.node_cores = 8,.slowness = 2.2,
		.l3 = {16 * MB, 16},.memory = {NS(114), NS(217), NS(265)}, HASWELL
	},
	{
		.name = "4x16",.what = "4 x 16 cores, 114, 217 and 265 ns",
		.nodes = 4,.node_cores = 16,.slowness = 2,
		.l3 = {40 * MB, 20},.memory = {NS(114), NS(217), NS(265)}, HASWELL
	},
	{
		.name = "8x24",
		.what = "8 x 24 cores (Robust Performance), 114, 217, 265 and 487 ns",
		.nodes = 8,.node_cores = 24,.slowness = 2.2,
		.l3 = {60 * MB, 20},
		.memory = {NS(114), NS(217), NS(265), NS(487)}, HASWELL
	}
};

static const char *const work_names[] = {"lookup", "insert", "toggle"};

double
calibrated(const char *name)
{
	for (uint32_t i = 0; i < nvalues; i++)
	{
		if (strcmp(values[i].name, name) == 0)
			return values[i].value;
	}
	return 0;
}

static Picoseconds
measured(const char *name)
{
	double		value = calibrated(name);

	if (value <= 0)
	{
		fprintf(stderr, "%s has not been measured\n", name);
		exit(1);
	}
	return NS(value);
}

/*
 * Two sockets: one hop.  Four: neighbors in a ring, one hop, else two.  Eight:
 * two such boards of four, three hops from one to the other.
 */
static void
set_distances(Machine *machine)
{
	for (uint32_t a = 0; a < machine->nodes; a++)
	{
		for (uint32_t b = 0; b < machine->nodes; b++)
		{
			uint8_t		hops = 1;

			if (a == b)
				hops = 0;
			else if (a / 4 != b / 4)
				hops = 3;
			else if (((a ^ b) & 3) == 2)
				hops = 2;
			machine->distance[a][b] = hops;
		}
	}
}

void
calibration_read(const char *path)
{
	FILE	   *file = fopen(path, "r");
	char		line[256];
	Machine    *here = &machines[0];

	if (file == NULL)
	{
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof(line), file) != NULL && nvalues < MAX_VALUES)
	{
		if (sscanf(line, "%47s %lf", values[nvalues].name,
				   &values[nvalues].value) == 2 && line[0] != '#')
			nvalues++;
	}
	fclose(file);
	here->l2_hit = measured("l2");
	here->l3_hit = measured("l3");
	here->l3.bytes = (uint32_t) calibrated("l3_bytes");
	here->tlb_miss = measured("tlb");
	here->memory[0] = measured("memory");
	here->peer = measured("peer");
	here->atomic = measured("atomic");
	here->pause = measured("pause");
	here->sleep = measured("sleep");
	here->wake = measured("wake");
	here->line_busy = NS(2);
	here->memory_busy = NS(1);
	here->stream_l2 = measured("stream_l2");
	here->stream_l3 = measured("stream_l3");
	here->stream_memory = measured("stream_memory");
	here->extent = measured("extent");
	for (uint32_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		set_distances(&machines[i]);
}

const Machine *
machine_number(uint32_t which)
{
	return which < sizeof(machines) / sizeof(machines[0]) ?
		&machines[which] : NULL;
}

const Machine *
machine_named(const char *name)
{
	const Machine *machine;

	for (uint32_t i = 0; (machine = machine_number(i)) != NULL; i++)
	{
		if (strcmp(machine->name, name) == 0)
			break;
	}
	return machine;
}

const Machine *
machine_with(const Machine *machine, uint32_t l2, uint32_t l3)
{
	static Machine changed;

	if (machine == NULL)
		return NULL;
	changed = *machine;
	if (l2 > 0)
		changed.l2.bytes = l2;
	if (l3 > 0)
		changed.l3.bytes = l3;
	return &changed;
}

Picoseconds
work_of(const Machine *machine, const char *structure, Work work)
{
	char		name[NAME_BYTES];
	double		value;

	snprintf(name, sizeof(name), "work.%s.%s", structure, work_names[work]);
	value = calibrated(name);
	return value > 0 ? NS(value * machine->slowness) : 0;
}

Picoseconds
access_of(const Machine *machine)
{
	return NS(calibrated("access") * machine->slowness);
}
