/*-------------------------------------------------------------------------
 *
 * detector.h
 *	  The launcher's rounds, in virtual time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DETECTOR_H
#define DETECTOR_H

#include "core/euno_core.h"

/* Forgets what it knew: the tree is another one. */
extern void detector_reset(void);

/*
 * Ends a round that took so many seconds: leaves with hot_rate conflicts a
 * second become contended, and calm again, as the launcher's policy says.
 */
extern void detector_round(EunoContext *cx, const EunoTreeOps *ops,
						   EunoTree *tree, double seconds, double hot_rate);

#endif							/* DETECTOR_H */
