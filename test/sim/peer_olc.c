/*-------------------------------------------------------------------------
 *
 * peer_olc.c
 *	  A plain B+tree with optimistic lock coupling ("The ART of Practical
 *	  Synchronization", section 3): inner nodes are validated from the root
 *	  to the leaf, a parent after its child's version has been read.
 *
 * The same with copies of pages in the memory of each node, of which readers use
 * their own.  Who writes locks all copies of a page, and changes all of them: the
 * consistent updates of McKenzie's thesis (section 4.6) if leaves have copies,
 * too, and STI-BT's inner nodes (section 9.3) if they have none.  Or he changes
 * his node's copy alone, and the others never know, which is what the thesis
 * compares that with.
 *
 * The first copy's lock is taken first, and only who has it takes those of the
 * others; so nobody waits in a circle.
 *
 *-------------------------------------------------------------------------
 */
#include "cache.h"
#include "peer_page.h"

static PeerTree *tree;
static uint64_t restart_count;

/* Writers change their node's copy alone. */
static bool only_own;

static void
load_copies(uint64_t rows, uint64_t (*key) (uint64_t i), uint32_t cut, bool own)
{
	tree = peer_load(rows, key, cache_nodes(), cut);
	only_own = own;
	restart_count = 0;
}

static void
load(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	tree = peer_load(rows, key, 1, 0);
	only_own = false;
	restart_count = 0;
}

/* The copies of this level that a thread reads, and that it writes. */
typedef struct Copies
{
	uint32_t	own;
	uint32_t	first;
	uint32_t	end;
} Copies;

static inline Copies
copies_of(uint32_t level, uint32_t thread)
{
	Copies		c = {0, 0, 1};

	if (peer_copies == 1 || level < peer_cut)
		return c;
	c.own = cache_node(thread);
	c.first = only_own ? c.own : 0;
	c.end = only_own ? c.own + 1 : peer_copies;
	return c;
}

/* Locks all copies, if the own one has this version; false, and none. */
static bool
upgrade(void *page, Copies c, uint64_t version)
{
	EunoLock   *own = peer_copy(page, c.own);
	EunoLock   *first = peer_copy(page, c.first);

	if (own != first)
		euno_mutex_lock(first, &subject_env);
	if (!euno_lock_upgrade(own, version))
	{
		if (own != first)
			euno_lock_release_unchanged(first, &subject_env);
		return false;
	}
	for (uint32_t k = c.first + 1; k < c.end; k++)
	{
		if (k != c.own)
			euno_mutex_lock(peer_copy(page, k), &subject_env);
	}
	return true;
}

static void
release(void *page, Copies c)
{
	for (uint32_t k = c.end; k-- > c.first;)
		euno_lock_release(peer_copy(page, k), &subject_env);
}

/* Page and parent, or the tree, are locked. */
static void
split(PeerPage *parent, PeerPage *page, uint32_t level, uint32_t thread)
{
	PeerPage   *right = peer_page(level);
	PeerPage   *above = parent == NULL ? peer_page(level + 1) : NULL;
	Copies		c = copies_of(level, thread);
	uint64_t	separator = 0;

	for (uint32_t k = c.first; k < c.end; k++)
	{
		peer_page_init(peer_copy(right, k), level);
		separator = peer_halve(peer_copy(page, k), peer_copy(right, k));
	}
	c = copies_of(level + 1, thread);
	for (uint32_t k = c.first; k < c.end; k++)
	{
		PeerTree   *to = peer_copy(tree, k);

		if (above != NULL)
			peer_page_init(peer_copy(above, k), level + 1);
		peer_adopt(to, parent == NULL ? NULL : peer_copy(parent, k),
				   above == NULL ? NULL : peer_copy(above, k), page, right,
				   separator);
		if (above != NULL)
			euno_store_ptr(&to->root, above);
	}
}

static bool
read_begin(EunoLock *lock, uint64_t *version)
{
	return euno_lock_read(lock, version, &subject_env, NULL);
}

/* Where a descent has arrived: a leaf. */
typedef struct Place
{
	PeerPage   *page;			/* the first copy */
	PeerPage   *mine;			/* the one to be read */
	Copies		copies;
	uint64_t	version;
} Place;

/* Finds the leaf of the key; false: again, from the root. */
static bool
descend(uint32_t thread, uint64_t key, bool inserting, Place *at)
{
	void	   *over = tree;
	PeerPage   *parent = NULL;
	Copies		above = copies_of(UINT32_MAX, thread);
	PeerTree   *own = peer_copy(tree, above.own);
	uint64_t	seen;
	uint32_t	level;

	if (!read_begin(&own->lock, &seen))
		return false;
	at->page = euno_load_ptr_acquire(&own->root);
	level = euno_load32(&own->level);
	for (;; level--)
	{
		PeerPage   *child;

		at->copies = copies_of(level, thread);
		at->mine = peer_copy(at->page, at->copies.own);
		if (!read_begin(&at->mine->lock, &at->version) ||
			!euno_lock_validate(peer_copy(over, above.own), seen))
			return false;
		if (inserting && peer_full(at->mine))
		{
			if (!upgrade(over, above, seen))
				return false;
			if (upgrade(at->page, at->copies, at->version))
			{
				split(parent, at->page, level, thread);
				release(at->page, at->copies);
			}
			release(over, above);
			return false;
		}
		if (level == 0)
			return true;
		child = peer_child(at->mine, key);
		if (!euno_lock_validate(&at->mine->lock, at->version))
			return false;
		over = parent = at->page;
		above = at->copies;
		seen = at->version;
		at->page = child;
	}
}

static bool
lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	Place		at;

	for (;; restart_count++)
	{
		if (descend(thread, key, false, &at))
		{
			bool		found = peer_has(at.mine, key, tid);

			if (euno_lock_validate(&at.mine->lock, at.version))
				return found;
		}
	}
}

/* Puts an entry in or takes it out. */
static bool
change(uint32_t thread, uint64_t key, uint64_t tid, bool inserting)
{
	bool		done = true;
	Place		at;

	for (;; restart_count++)
	{
		if (!descend(thread, key, inserting, &at) ||
			!upgrade(at.page, at.copies, at.version))
			continue;
		for (uint32_t k = at.copies.first; k < at.copies.end; k++)
		{
			if (inserting)
				peer_put(peer_copy(at.page, k), key, tid);
			else
				done = peer_take(peer_copy(at.page, k), key, tid);
		}
		release(at.page, at.copies);
		return done;
	}
}

static bool
insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	return change(thread, key, tid, true);
}

static bool
remove_entry(uint32_t thread, uint64_t key, uint64_t tid)
{
	return change(thread, key, tid, false);
}

static uint64_t
restarts(void)
{
	return restart_count;
}

static void
load_all(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load_copies(rows, key, 0, false);
}

static void
load_own(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load_copies(rows, key, 0, true);
}

static void
load_inner(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load_copies(rows, key, 1, false);
}

static void
load_root(uint64_t rows, uint64_t (*key) (uint64_t i))
{
	load_copies(rows, key, PEER_CUT_ROOT, false);
}

const Subject subject_olc = {
	"olc", "bptree", load, lookup, insert, remove_entry, restarts, NULL
};

const Subject subject_copies_all = {
	"copies-all", "bptree", load_all, lookup, insert, remove_entry, restarts, NULL
};

const Subject subject_copies_own = {
	"copies-own", "bptree", load_own, lookup, insert, remove_entry, restarts, NULL
};

const Subject subject_copies_inner = {
	"copies-inner", "bptree", load_inner, lookup, insert, remove_entry, restarts,
	NULL
};

const Subject subject_copies_root = {
	"copies-root", "bptree", load_root, lookup, insert, remove_entry, restarts,
	NULL
};
