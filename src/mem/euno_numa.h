/*-------------------------------------------------------------------------
 *
 * euno_numa.h
 *	  libnuma, if it was there when the extension was built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_NUMA_H
#define EUNO_NUMA_H

#if __has_include(<numa.h>) && __has_include(<numaif.h>)
#include <numa.h>
#include <numaif.h>
#define HAVE_NUMA 1
#else
#define HAVE_NUMA 0
#endif

#endif							/* EUNO_NUMA_H */
