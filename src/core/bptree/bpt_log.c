/*-------------------------------------------------------------------------
 *
 * bpt_log.c
 *	  What the directories of several domains do not know yet.
 *
 * Whoever splits a leaf posts its separator to the directory of the own domain
 * and leaves a note for each other domain: the new leaf, in that domain's log.
 * The notes are posted later, by operations in that domain and by the
 * launcher. Until then the directory leads too far left, which costs hops
 * along the chain.  A log that is full notes only that; the directory is built
 * anew then. Protocol and proof: src/README.md, "Domains".
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/* Notes that one operation posts on its way. */
#define BPT_LOG_STEP	16

/* A descent that goes right this often has a directory that is of no use. */
#define BPT_LOG_HOPS	32

/* A domain's log; NULL: it has had no directory beside others yet. */
static BptLog *
log_of(EunoTree *tree, int domain)
{
	return euno_load_ptr_acquire(&bpt_body(tree)->directories[domain].log);
}

/*
 * Makes an empty log in a domain's memory, if there is none, for good.  Others
 * may be looking at the place.  False without memory.
 */
static bool
log_make(EunoContext *cx, EunoTree *tree, BptLog **place, int domain)
{
	BptLog	   *log;

	if (euno_load_ptr(place) != NULL)
		return true;
	log = cx->env->alloc(tree->alloc_arg, domain, sizeof(BptLog));
	if (log == NULL)
		return false;
	euno_store64(&log->mutex.word, 0);
	euno_store32(&log->next, 0);
	euno_store32(&log->count, 0);
	euno_store64(&log->lost, 0);
	euno_store_ptr(place, log);
	return true;
}

/*
 * Gives domains that are to have directories their logs, each in its own
 * memory; one alone needs none.  To be called by who creates the tree, or with
 * the right to merge.  False if some have none for want of memory.
 */
bool
euno_bpt_logs_make(EunoContext *cx, EunoTree *tree, uint64_t domains)
{
	bool		ok = true;

	if (domains == 1)
		return true;
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if ((domains >> d & 1) != 0)
			ok &= log_make(cx, tree, &bpt_body(tree)->directories[d].log, d);
	}
	return ok;
}

/*
 * What a tree needs to be of several domains.  It is not visible yet.  EUNO_OK
 * or EUNO_NO_MEMORY; what was allocated stays the tree's.
 */
EunoStatus
euno_bpt_log_create(EunoContext *cx, EunoTree *tree)
{
	BptBody    *body = bpt_body(tree);

	if (tree->config.nparts < 2)
		return EUNO_OK;
	return log_make(cx, tree, &body->wishes, 0) &&
		euno_bpt_logs_make(cx, tree, body->active) ? EUNO_OK : EUNO_NO_MEMORY;
}

/* How many notes wait; anything above the log's size if some were lost. */
uint64_t
euno_bpt_log_lag(EunoTree *tree, int domain)
{
	BptLog	   *log = log_of(tree, domain);

	if (log == NULL)
		return 0;
	return euno_load32(&log->count) + euno_load64(&log->lost);
}

/*
 * Notes a leaf.  The log's mutex is held, in an epoch in which the leaf was
 * seen linked.
 *
 * A leaf that is not obsolete here, under the log's mutex, will be taken out
 * by the merge that makes it so, before it is retired.
 */
static void
log_note(BptLog *log, BptLeaf *leaf)
{
	uint32_t	count = euno_load32(&log->count);

	if (euno_load64_acquire(&leaf->lock.word) & EUNO_LOCK_OBSOLETE)
		return;
	if (count == BPT_LOG_SIZE)
		euno_store64(&log->lost, euno_load64(&log->lost) + 1);
	else
	{
		uint32_t	at = (euno_load32(&log->next) + count) % BPT_LOG_SIZE;

		euno_store_ptr(&log->ring[at], leaf);
		euno_store32(&log->count, count + 1);
	}
}

/*
 * Notes a leaf for a domain.  To be called within an epoch in which the leaf
 * was seen linked, with no node locked.
 */
static void
log_add(EunoContext *cx, EunoTree *tree, int domain, BptLeaf *leaf)
{
	BptLog	   *log = log_of(tree, domain);

	if (log == NULL)
		return;
	euno_mutex_lock(&log->mutex, cx->env);
	log_note(log, leaf);
	euno_mutex_unlock(&log->mutex, cx->env);
}

/* The same for any log; false, and not noted, if it is full or busy. */
bool
euno_bpt_log_try(EunoContext *cx, BptLog *log, BptLeaf *leaf)
{
	if (euno_load32(&log->count) == BPT_LOG_SIZE ||
		!euno_mutex_trylock(&log->mutex))
		return false;
	log_note(log, leaf);
	euno_mutex_unlock(&log->mutex, cx->env);
	return true;
}

/*
 * Takes the oldest note; NULL: there is none, or somebody is at the log.  A
 * leaf's notes are taken out before it is retired.  So a leaf that is still
 * noted is retired in this epoch at the earliest, and its memory stays until
 * the caller leaves the epoch.
 */
BptLeaf *
euno_bpt_log_take(EunoContext *cx, BptLog *log)
{
	BptLeaf    *leaf = NULL;

	if (!euno_mutex_trylock(&log->mutex))
		return NULL;
	while (leaf == NULL && euno_load32(&log->count) > 0)
	{
		uint32_t	next = euno_load32(&log->next);

		leaf = euno_load_ptr(&log->ring[next]);
		euno_store32(&log->next, (next + 1) % BPT_LOG_SIZE);
		euno_store32(&log->count, euno_load32(&log->count) - 1);
	}
	euno_mutex_unlock(&log->mutex, cx->env);
	return leaf;
}

/* Forgets all notes of a domain, which has a log. */
void
euno_bpt_log_clear(EunoContext *cx, EunoTree *tree, int domain)
{
	BptLog	   *log = log_of(tree, domain);

	euno_mutex_lock(&log->mutex, cx->env);
	euno_store32(&log->count, 0);
	euno_store64(&log->lost, 0);
	euno_mutex_unlock(&log->mutex, cx->env);
}

/* Takes all notes of a leaf out of a log. */
static void
log_forget(EunoContext *cx, BptLog *log, const BptLeaf *leaf)
{
	if (log == NULL)
		return;

	/* Always: a count read before might miss a note being made. */
	euno_mutex_lock(&log->mutex, cx->env);
	for (uint32_t i = 0; i < euno_load32(&log->count); i++)
	{
		uint32_t	at = (euno_load32(&log->next) + i) % BPT_LOG_SIZE;

		if (euno_load_ptr(&log->ring[at]) == leaf)
			euno_store_ptr(&log->ring[at], (BptLeaf *) NULL);
	}
	euno_mutex_unlock(&log->mutex, cx->env);
}

/*
 * Takes a leaf that has just become obsolete out of all logs.  To be called
 * before it is retired.
 */
void
euno_bpt_log_forget(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf)
{
	log_forget(cx, bpt_body(tree)->wishes, leaf);
	for (int d = 0; d < tree->config.ndomains; d++)
		log_forget(cx, log_of(tree, d), leaf);
}

/*
 * Posts some of a domain's notes.  To be called within an epoch, with no
 * node locked; comparators run.  A note whose post fails for want of memory is
 * lost: the directory lags until somebody goes right there.
 */
static void
log_apply(EunoContext *cx, EunoTree *tree, int domain)
{
	BptLog	   *log = log_of(tree, domain);
	uint32_t	max = BPT_LOG_STEP;

	if (log == NULL)
		return;
	while (max-- > 0 && euno_load32(&log->count) > 0)
	{
		BptLeaf    *leaf = euno_bpt_log_take(cx, log);

		if (leaf == NULL)
			return;
		if (!euno_bpt_post(cx, tree, domain, leaf))
		{
			log_add(cx, tree, domain, leaf);
			return;
		}
	}
}

/*
 * Builds a domain's directory anew.  Merges are kept away; when one is under
 * way, this is left to another time.
 */
static void
renew(EunoContext *cx, EunoTree *tree, int domain)
{
	BptBody    *body = bpt_body(tree);
	BptDirectory *dir = &body->directories[domain];

	if (!euno_mutex_trylock(&body->compact_mutex))
		return;
	cx->held.compacting = tree;
	euno_epoch_enter(cx->process);
	euno_mutex_lock(&dir->mutex, cx->env);

	/* What is split from here on is noted again; all else is in the chain. */
	euno_bpt_log_clear(cx, tree, domain);
	if ((euno_load64(&body->active) >> domain & 1) != 0 &&
		!euno_bpt_directory_build(cx, tree, domain))
		euno_store64(&dir->log->lost, 1);
	euno_mutex_unlock(&dir->mutex, cx->env);
	euno_epoch_exit(cx->process);
	euno_bpt_compact_leave(cx);
}

/*
 * Makes a new leaf known: to the own domain's directory now, to others by and
 * by.  To be called within the epoch in which the leaf was linked, with no
 * node locked.
 */
void
euno_bpt_publish(EunoContext *cx, EunoTree *tree, BptLeaf *leaf)
{
	int			mine = bpt_domain(tree, cx->domain);
	uint64_t	active = euno_load64_acquire(&bpt_body(tree)->active);

	/* First what cannot be left by an error in a comparator. */
	for (int d = 0; d < tree->config.ndomains; d++)
	{
		if (d != mine && (active >> d & 1) != 0)
			log_add(cx, tree, d, leaf);
	}
	if (!euno_bpt_post(cx, tree, mine, leaf))
		log_add(cx, tree, mine, leaf);
	if (!cx->lagging)
		log_apply(cx, tree, mine);
}

/*
 * After an operation that had to go right: its leaf's separator is missing in
 * the directory, and more may be.  Within the operation's epoch.
 */
void
euno_bpt_catch_up(EunoContext *cx, EunoTree *tree, const BptPlace *place)
{
	int			mine = bpt_domain(tree, cx->domain);
	BptLog	   *log = log_of(tree, mine);

	if (cx->lagging)
		return;
	(void) euno_bpt_post(cx, tree, mine, place->leaf);
	if (log == NULL || place->moves < 2)
		return;
	if (place->moves >= BPT_LOG_HOPS && euno_load64(&log->lost) > 0)
		renew(cx, tree, mine);
	else
		log_apply(cx, tree, mine);
}

/* See EunoTreeOps. */
void
euno_bpt_maintain(EunoContext *cx, EunoTree *tree, int domain)
{
	bool		compares = tree->config.order != EUNO_ORDER_COMPARE ||
		cx->compare != NULL;
	BptLog	   *log;

	if (domain >= tree->config.ndomains)
		return;

	/* Nobody else may come by: of a directory that was given up, for one. */
	(void) euno_bpt_reclaim(cx, tree, false);
	log = log_of(tree, domain);
	if (log == NULL)
		return;

	/* The chain is in order: to build a directory needs no comparator. */
	if (euno_load64(&log->lost) > 0 ||
		(!compares && euno_load32(&log->count) > 0))
		renew(cx, tree, domain);
	if (!compares)
		return;

	/* An epoch each, or nothing could be reclaimed meanwhile. */
	for (uint32_t n = euno_load32(&log->count); n > 0;
		 n -= n < BPT_LOG_STEP ? n : BPT_LOG_STEP)
	{
		euno_epoch_enter(cx->process);
		log_apply(cx, tree, domain);
		euno_epoch_exit(cx->process);
	}
}
