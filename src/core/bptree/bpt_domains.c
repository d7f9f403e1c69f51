/*-------------------------------------------------------------------------
 *
 * bpt_domains.c
 *	  Which domains have a directory of their own.
 *
 * While a directory is built or given up, descents use the first one; what is
 * split meanwhile is noted in the domain's log (bpt_log.c).  Protocol and
 * proof: src/README.md, "Domains".
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/*
 * Takes a directory out of use.  The caller has the right to merge, and so is
 * the only one who changes what is in use.
 */
static void
deactivate(EunoContext *cx, EunoTree *tree, int domain)
{
	BptBody    *body = bpt_body(tree);
	BptDirectory *dir = &body->directories[domain];

	euno_epoch_enter(cx->process);
	euno_mutex_lock(&dir->mutex, cx->env);
	euno_store64(&body->active,
				 euno_load64(&body->active) & ~(UINT64_C(1) << domain));
	euno_bpt_directory_drop(cx, tree, domain);
	euno_bpt_log_clear(cx, tree, domain);
	euno_mutex_unlock(&dir->mutex, cx->env);
	euno_epoch_exit(cx->process);
}

/*
 * Gives a domain, which has a log, a directory.  The caller has the right to
 * merge.  False without memory: it has none.
 */
static bool
activate(EunoContext *cx, EunoTree *tree, int domain)
{
	BptBody    *body = bpt_body(tree);
	BptDirectory *dir = &body->directories[domain];
	bool		built;

	/*
	 * From here on it is noted what is split; descents avoid it.  Release: who
	 * sees the bit sees the log.
	 */
	euno_bpt_log_clear(cx, tree, domain);
	euno_store64_release(&body->active,
						 euno_load64(&body->active) | UINT64_C(1) << domain);
	euno_epoch_enter(cx->process);
	euno_mutex_lock(&dir->mutex, cx->env);
	built = euno_bpt_directory_build(cx, tree, domain);
	euno_mutex_unlock(&dir->mutex, cx->env);
	euno_epoch_exit(cx->process);
	if (!built)
		deactivate(cx, tree, domain);
	return built;
}

/* See EunoTreeOps. */
EunoStatus
euno_bpt_set_domains(EunoContext *cx, EunoTree *tree, uint64_t domains)
{
	BptBody    *body = bpt_body(tree);
	bool		ok;

	domains = euno_tree_domains(tree, domains);
	if (euno_load64(&body->active) == domains)
		return EUNO_OK;
	if (!euno_mutex_trylock(&body->compact_mutex))
		return EUNO_BUSY;
	cx->held.compacting = tree;
	for (int d = 1; d < tree->config.ndomains; d++)
	{
		if ((euno_load64(&body->active) & ~domains) >> d & 1)
			deactivate(cx, tree, d);
	}
	ok = euno_bpt_logs_make(cx, tree, domains);
	for (int d = 1; d < tree->config.ndomains && ok; d++)
	{
		if ((domains & ~euno_load64(&body->active)) >> d & 1)
			ok = activate(cx, tree, d);
	}
	euno_bpt_compact_leave(cx);
	return ok ? EUNO_OK : EUNO_NO_MEMORY;
}
