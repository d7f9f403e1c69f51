/*-------------------------------------------------------------------------
 *
 * euno_handler.c
 *	  What the access method can do.
 *
 * The handler never raises and touches nothing shared: PostgreSQL 18 calls it
 * for queries that have nothing to do with euno.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "fmgr.h"
#include "nodes/nodes.h"

#include "am/euno_am.h"
#include "euno_compat.h"

static const IndexAmRoutine amroutine = {
	.type = T_IndexAmRoutine,
	.amstrategies = EUNO_NSTRATEGIES,	/* btree's, and our own */
	.amsupport = EUNO_NSUPPORT, /* btree's */
	.amoptsprocnum = EUNO_OPTIONS_PROC,
	.amcanorder = true,
	.amcanorderbyop = false,
	.amcanbackward = true,
	.amcanunique = true,
	.amcanmulticol = true,
	.amoptionalkey = true,
	.amsearcharray = true,
	.amsearchnulls = true,
	.amstorage = false,
	.amclusterable = true,
	.ampredlocks = true,
	.amcanparallel = true,
	.amcaninclude = true,
	.amusemaintenanceworkmem = false,
	.amparallelvacuumoptions =
		VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP,
	.amkeytype = InvalidOid,

	.ambuild = eunobuild,
	.ambuildempty = eunobuildempty,
	.aminsert = eunoinsert,
	.ambulkdelete = eunobulkdelete,
	.amvacuumcleanup = eunovacuumcleanup,
	.amcanreturn = eunocanreturn,
	.amcostestimate = eunocostestimate,
	.amoptions = eunooptions,
	.amproperty = NULL,
	.ambuildphasename = eunobuildphasename,
	.amvalidate = euno_validate,
	.amadjustmembers = euno_adjustmembers,
	.ambeginscan = eunobeginscan,
	.amrescan = eunorescan,
	.amgettuple = eunogettuple,
	.amgetbitmap = eunogetbitmap,
	.amendscan = eunoendscan,
	.ammarkpos = eunomarkpos,
	.amrestrpos = eunorestrpos,
	.amestimateparallelscan = eunoestimateparallelscan,
	.aminitparallelscan = eunoinitparallelscan,
	.amparallelrescan = eunoparallelrescan,

	EUNO_FIELDS_OF_16
	EUNO_FIELDS_OF_17
	EUNO_FIELDS_OF_18
};

PG_FUNCTION_INFO_V1(eunohandler);
Datum
eunohandler(PG_FUNCTION_ARGS)
{
	return euno_return_amroutine(&amroutine);
}
