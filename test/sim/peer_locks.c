/*-------------------------------------------------------------------------
 *
 * peer_locks.c
 *	  A plain B+tree under one lock, or with lock coupling: a reader/writer
 *	  lock in each node, at most two of them held at a time.
 *
 * Coupling: writers share the inner nodes and lock the leaf exclusively; where
 * something is full, they start over with exclusive locks all the way.
 *
 * A reader/writer lock is a word: 1 for a writer, 2 for each reader, as in
 * TBB's spin_rw_mutex.  Who has to wait spins.
 *
 *-------------------------------------------------------------------------
 */
#include "peer_page.h"

#define WRITER	UINT64_C(1)
#define READER	UINT64_C(2)

static PeerTree *tree;
static uint64_t restart_count;

static void
load(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	tree = peer_load(rows, key, 1, 0);
	restart_count = 0;
}

static void
lock(EunoLock *at, bool exclusive)
{
	for (;; euno_pause())
	{
		uint64_t	seen = euno_load64(&at->word);

		if ((seen & WRITER) != 0 || (exclusive && seen != 0))
			continue;
		if (exclusive)
		{
			if (euno_cas64(&at->word, &seen, WRITER))
				return;
		}
		else if ((euno_add64(&at->word, READER) & WRITER) == 0)
			return;
		else
			(void) euno_add64(&at->word, -READER);
	}
}

static void
unlock(EunoLock *at, bool exclusive)
{
	(void) euno_add64(&at->word, exclusive ? -WRITER : -READER);
}

/*
 * The leaf of the key, locked, exclusively if "writing".  NULL: it is full and
 * that matters to who inserts.
 */
static PeerPage *
couple(uint64_t key, bool writing, bool inserting)
{
	EunoLock   *above = &tree->lock;
	PeerPage   *page;

	lock(above, false);
	page = euno_load_ptr(&tree->root);
	for (;;)
	{
		bool		exclusive = writing && euno_load32(&page->level) == 0;

		lock(&page->lock, exclusive);
		unlock(above, false);
		if (euno_load32(&page->level) == 0)
		{
			if (!inserting || !peer_full(page))
				return page;
			unlock(&page->lock, exclusive);
			return NULL;
		}
		above = &page->lock;
		page = peer_child(page, key);
	}
}

/* The same for an insert, splitting what is full on the way. */
static PeerPage *
couple_exclusive(uint64_t key)
{
	PeerPage   *parent = NULL;
	PeerPage   *page;

	lock(&tree->lock, true);
	page = euno_load_ptr(&tree->root);
	for (;;)
	{
		EunoLock   *above = parent != NULL ? &parent->lock : &tree->lock;

		lock(&page->lock, true);
		if (peer_full(page))
		{
			peer_split(tree, parent, page);
			unlock(&page->lock, true);
			page = parent != NULL ? peer_child(parent, key) : tree->root;
			continue;
		}
		unlock(above, true);
		if (euno_load32(&page->level) == 0)
			return page;
		parent = page;
		page = peer_child(page, key);
	}
}

static bool
coupling_lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *page = couple(key, false, false);
	bool		found = peer_has(page, key, tid);

	(void) thread;
	unlock(&page->lock, false);
	return found;
}

static bool
coupling_insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *page = couple(key, true, true);

	(void) thread;
	if (page == NULL)
	{
		restart_count++;
		page = couple_exclusive(key);
	}
	peer_put(page, key, tid);
	unlock(&page->lock, true);
	return true;
}

static bool
coupling_remove(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *page = couple(key, true, false);
	bool		found = peer_take(page, key, tid);

	(void) thread;
	unlock(&page->lock, true);
	return found;
}

static uint64_t
restarts(void)
{
	return restart_count;
}

const Subject subject_coupling = {
	"coupling", "bptree", load, coupling_lookup, coupling_insert,
	coupling_remove, restarts, NULL
};

/* Under the one lock; splits what is full if "inserting". */
static PeerPage *
descend(uint64_t key, bool inserting)
{
	PeerPage   *parent = NULL;
	PeerPage   *page = euno_load_ptr(&tree->root);

	for (;;)
	{
		if (inserting && peer_full(page))
		{
			peer_split(tree, parent, page);
			page = parent != NULL ? peer_child(parent, key) :
				euno_load_ptr(&tree->root);
			continue;
		}
		if (euno_load32(&page->level) == 0)
			return page;
		parent = page;
		page = peer_child(page, key);
	}
}

static bool
global_lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	bool		found;

	(void) thread;
	euno_mutex_lock(&tree->lock, &subject_env);
	found = peer_has(descend(key, false), key, tid);
	euno_mutex_unlock(&tree->lock, &subject_env);
	return found;
}

static bool
global_insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	(void) thread;
	euno_mutex_lock(&tree->lock, &subject_env);
	peer_put(descend(key, true), key, tid);
	euno_mutex_unlock(&tree->lock, &subject_env);
	return true;
}

static bool
global_remove(uint32_t thread, uint64_t key, uint64_t tid)
{
	bool		found;

	(void) thread;
	euno_mutex_lock(&tree->lock, &subject_env);
	found = peer_take(descend(key, false), key, tid);
	euno_mutex_unlock(&tree->lock, &subject_env);
	return found;
}

const Subject subject_global = {
	"global", "bptree", load, global_lookup, global_insert, global_remove,
	restarts, NULL
};
