/*-------------------------------------------------------------------------
 *
 * peer_olc.c
 *	  A plain B+tree with optimistic lock coupling ("The ART of Practical
 *	  Synchronization", section 3): inner nodes are validated from the root
 *	  to the leaf, a parent after its child's version has been read.
 *
 *-------------------------------------------------------------------------
 */
#include "peer_page.h"

static PeerTree *tree;
static uint64_t restart_count;

static void
load(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	tree = peer_load(rows, key);
	restart_count = 0;
}

static bool
read_begin(EunoLock *lock, uint64_t *version)
{
	return euno_lock_read(lock, version, &subject_env, NULL);
}

/* The leaf of the key at *version, and its parent at *above; NULL: again. */
static PeerPage *
descend(uint64_t key, uint64_t *version, PeerPage **parent, uint64_t *above,
		bool split)
{
	PeerPage   *page;

	*parent = NULL;
	if (!read_begin(&tree->lock, above))
		return NULL;
	page = euno_load_ptr_acquire(&tree->root);
	for (;;)
	{
		EunoLock   *over = *parent != NULL ? &(*parent)->lock : &tree->lock;
		PeerPage   *child;

		if (!read_begin(&page->lock, version) ||
			!euno_lock_validate(over, *above))
			return NULL;
		if (split && peer_full(page))
		{
			if (!euno_lock_upgrade(over, *above))
				return NULL;
			if (euno_lock_upgrade(&page->lock, *version))
			{
				peer_split(tree, *parent, page);
				euno_lock_release(&page->lock, &subject_env);
			}
			euno_lock_release(over, &subject_env);
			return NULL;
		}
		if (euno_load32(&page->level) == 0)
			return page;
		child = peer_child(page, key);
		if (!euno_lock_validate(&page->lock, *version))
			return NULL;
		*parent = page;
		*above = *version;
		page = child;
	}
}

static bool
lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *parent;
	uint64_t	version;
	uint64_t	above;

	(void) thread;
	for (;; restart_count++)
	{
		PeerPage   *page = descend(key, &version, &parent, &above, false);

		if (page != NULL)
		{
			bool		found = peer_has(page, key, tid);

			if (euno_lock_validate(&page->lock, version))
				return found;
		}
	}
}

static bool
insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *parent;
	uint64_t	version;
	uint64_t	above;

	(void) thread;
	for (;; restart_count++)
	{
		PeerPage   *page = descend(key, &version, &parent, &above, true);

		if (page != NULL && euno_lock_upgrade(&page->lock, version))
		{
			peer_put(page, key, tid);
			euno_lock_release(&page->lock, &subject_env);
			return true;
		}
	}
}

static bool
remove_entry(uint32_t thread, uint64_t key, uint64_t tid)
{
	PeerPage   *parent;
	uint64_t	version;
	uint64_t	above;

	(void) thread;
	for (;; restart_count++)
	{
		PeerPage   *page = descend(key, &version, &parent, &above, false);

		if (page != NULL && euno_lock_upgrade(&page->lock, version))
		{
			bool		found = peer_take(page, key, tid);

			euno_lock_release(&page->lock, &subject_env);
			return found;
		}
	}
}

static uint64_t
restarts(void)
{
	return restart_count;
}

const Subject subject_olc = {
	"olc", "bptree", load, lookup, insert, remove_entry, restarts
};
