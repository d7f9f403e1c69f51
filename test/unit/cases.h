/*-------------------------------------------------------------------------
 *
 * cases.h
 *	  Small cases for schedules.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CASES_H
#define CASES_H

#include "stage.h"

extern const Case cases[];
extern const uint32_t ncases;

/* A run that was wrong once. */
typedef struct Kept
{
	const char *tree;
	const char *name;			/* the case's */
	const char *schedule;
} Kept;

extern const Kept kept[];
extern const uint32_t nkept;

#endif							/* CASES_H */
