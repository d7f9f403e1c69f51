/*-------------------------------------------------------------------------
 *
 * euno_maintain.c
 *	  Upkeep of the trees that needs no database: directories of several
 *	  domains.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/euno_am.h"
#include "mem/euno_domains.h"
#include "mem/euno_registry.h"
#include "worker/euno_worker.h"

/* Leaves of one tree that are moved in one round. */
#define SETTLE_MOST		256

/*
 * Gives a tree as many directories as there are domains, and brings them up to
 * date: without comparators, which would need a database.  Moves leaves to the
 * domains that use them.
 */
static EunoStatus
maintain_tree(EunoTreeSlot *slot, EunoContext *cx)
{
	const EunoTreeOps *ops = slot->ops;
	EunoStatus	status = EUNO_OK;

	if (ops->set_domains != NULL)
		status = ops->set_domains(cx, &slot->tree, euno_domains_active());
	if (ops->maintain != NULL && !euno_debug_lagging)
	{
		for (int d = 0; d < euno_domains_active(); d++)
			ops->maintain(cx, &slot->tree, d);
	}
	if (ops->settle != NULL)
		(void) ops->settle(cx, &slot->tree, SETTLE_MOST);
	return status;
}

/* EUNO_NO_MEMORY if some tree lacks a directory: it uses the first domain's. */
EunoStatus
euno_maintain_trees(void)
{
	EunoContext cx = {.process = euno_process(), .env = &euno_environment};
	EunoStatus	status = EUNO_OK;

	if (euno_ndomains == 1)
		return EUNO_OK;
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (!euno_tree_hold(slot))
			continue;
		if (maintain_tree(slot, &cx) != EUNO_OK)
			status = EUNO_NO_MEMORY;
		euno_tree_unhold(slot);
	}
	return status;
}
