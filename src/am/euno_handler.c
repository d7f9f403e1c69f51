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

PG_FUNCTION_INFO_V1(eunohandler);
Datum
eunohandler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *amroutine = makeNode(IndexAmRoutine);

	amroutine->amstrategies = EUNO_NSTRATEGIES; /* btree's, and our own */
	amroutine->amsupport = EUNO_NSUPPORT;	/* btree's */
	amroutine->amoptsprocnum = EUNO_OPTIONS_PROC;
	amroutine->amcanorder = true;
	amroutine->amcanorderbyop = false;
	amroutine->amcanbackward = true;
	amroutine->amcanunique = true;
	amroutine->amcanmulticol = true;
	amroutine->amoptionalkey = true;
	amroutine->amsearcharray = true;
	amroutine->amsearchnulls = true;
	amroutine->amstorage = false;
	amroutine->amclusterable = true;
	amroutine->ampredlocks = true;
	amroutine->amcanparallel = true;
	amroutine->amcaninclude = true;
	amroutine->amusemaintenanceworkmem = false;
	amroutine->amparallelvacuumoptions =
		VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP;
	amroutine->amkeytype = InvalidOid;

	amroutine->ambuild = eunobuild;
	amroutine->ambuildempty = eunobuildempty;
	amroutine->aminsert = eunoinsert;
	amroutine->ambulkdelete = eunobulkdelete;
	amroutine->amvacuumcleanup = eunovacuumcleanup;
	amroutine->amcanreturn = eunocanreturn;
	amroutine->amcostestimate = eunocostestimate;
	amroutine->amoptions = eunooptions;
	amroutine->amproperty = NULL;
	amroutine->ambuildphasename = eunobuildphasename;
	amroutine->amvalidate = euno_validate;
	amroutine->amadjustmembers = euno_adjustmembers;
	amroutine->ambeginscan = eunobeginscan;
	amroutine->amrescan = eunorescan;
	amroutine->amgettuple = eunogettuple;
	amroutine->amgetbitmap = eunogetbitmap;
	amroutine->amendscan = eunoendscan;
	amroutine->ammarkpos = eunomarkpos;
	amroutine->amrestrpos = eunorestrpos;
	amroutine->amestimateparallelscan = eunoestimateparallelscan;
	amroutine->aminitparallelscan = eunoinitparallelscan;
	amroutine->amparallelrescan = eunoparallelrescan;

	euno_set_version_fields(amroutine);
	PG_RETURN_POINTER(amroutine);
}
