/*-------------------------------------------------------------------------
 *
 * peer_nbtree.c
 *	  The protocol of PostgreSQL's nbtree, as of version 15.
 *
 * A page is found through the buffer mapping: its partition's lock, the bucket,
 * the buffer's header, which is pinned by an atomic operation.  The content is
 * read under a shared lock at each level, one page at a time (_bt_relandgetbuf);
 * an insert locks the leaf exclusively and writes its WAL record under that
 * lock.  A split goes on to the right page's downlink in the parent with both
 * halves locked (_bt_insert_parent).  A backend remembers the rightmost leaf if
 * it has inserted there, and tries that first, unless somebody else has it
 * locked just then (_bt_search_insert).
 *
 * The lock is LWLock's: one atomic operation to take it, one to give it back;
 * who cannot have it queues and sleeps, and tries again when it is woken, while
 * others may have come in between.  Spinning for the queue is not modeled
 * beyond the line's transfers; nor are WAL writes, full-page images, buffer
 * replacement, or the executor.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/euno_shared.h"
#include "peer_page.h"
#include "threads.h"

#define PAGE_BYTES	8192
#define ITEM_BYTES	16			/* an int8's index tuple */
#define PAGE_CAP	((PAGE_BYTES - 64) / (ITEM_BYTES + 4))
#define MAX_PAGES	(1U << 18)
#define MAX_LEVELS	8
#define PARTITIONS	128
#define WAL_LOCKS	8
#define WAL_BYTES	(16U << 20)
#define WAL_RECORD	72			/* of an insert into a leaf */

/* LWLock.state: LW_VAL_EXCLUSIVE, LW_VAL_SHARED. */
#define EXCLUSIVE	(UINT64_C(1) << 24)
#define SHARED		UINT64_C(1)

typedef struct Item
{
	uint64_t	key;
	uint64_t	value;			/* TID, or the child's number */
} Item;

typedef struct Page
{
	uint64_t	lsn;
	uint32_t	count;
	uint32_t	level;
	uint32_t	right;			/* page number, 0 = none */
	uint32_t	pad;
	uint64_t	high;			/* if there is a right page */
	uint8_t		pad2[24];
	uint32_t	order[PAGE_CAP];	/* line pointers: which item */
	Item		items[PAGE_CAP];	/* as they came */
} Page;

/* BufferDesc is one line; so is a lock here.  The queue costs nothing. */
typedef struct Buffer
{
	uint64_t	state;			/* pins */
	uint64_t	lock;
	uint32_t	queue_first;	/* thread + 1 */
	uint32_t	queue_last;
	bool		no_wake;		/* somebody who was woken is on the way */
	uint8_t		pad[39];
} Buffer;

typedef struct Waiter
{
	uint32_t	next;
	bool		exclusive;
	bool		waiting;
} Waiter;

_Static_assert(sizeof(Buffer) == 64, "a buffer's header is one line");

static Buffer *buffers;
static Buffer *partitions;
static Buffer *wal_locks;
static uint64_t *buckets;
static uint64_t *wal_position;	/* under a spinlock in the same line */
static uint8_t *wal;
static uint8_t *pages;
static uint32_t npages;
static uint32_t root;
static uint32_t cached_leaf[MAX_CORES];
static Waiter waiters[MAX_CORES];
static uint64_t restart_count;

/* Nanoseconds of plain work within an exclusive lock: an item, its record. */
static uint64_t work_locked;

static Page *
page_of(uint32_t number)
{
	return (Page *) (pages + (size_t) number * PAGE_BYTES);
}

static bool
lock_try(Buffer *lock, bool exclusive)
{
	uint64_t	seen = euno_load64(&lock->lock);

	do
	{
		if ((seen & EXCLUSIVE) != 0 ||
			(exclusive && seen != 0))
			return false;
	} while (!euno_cas64(&lock->lock, &seen,
						 seen + (exclusive ? EXCLUSIVE : SHARED)));
	return true;
}

static void
queue_add(Buffer *lock, uint32_t me, bool exclusive)
{
	waiters[me] = (Waiter)
	{
		0, exclusive, true
	};
	if (lock->queue_last != 0)
		waiters[lock->queue_last - 1].next = me + 1;
	else
		lock->queue_first = me + 1;
	lock->queue_last = me + 1;
}

static void
queue_remove(Buffer *lock, uint32_t me)
{
	uint32_t   *link = &lock->queue_first;
	uint32_t	last = 0;

	while (*link != me + 1)
	{
		last = *link;
		link = &waiters[last - 1].next;
	}
	*link = waiters[me].next;
	if (lock->queue_last == me + 1)
		lock->queue_last = last;
	waiters[me].waiting = false;
}

/* LWLockAcquire */
static void
lock_acquire(Buffer *lock, bool exclusive)
{
	uint32_t	me = vthread_current->number;

	while (!lock_try(lock, exclusive))
	{
		/* Into the queue, under its spinlock; then look again. */
		(void) euno_add64(&lock->lock, 0);
		queue_add(lock, me, exclusive);
		if (lock_try(lock, exclusive))
		{
			if (waiters[me].waiting)
				queue_remove(lock, me);
			else
				lock->no_wake = false;
			return;
		}
		restart_count++;
		while (waiters[me].waiting)
			vthread_sleep(&waiters[me]);
		lock->no_wake = false;
	}
}

/* LWLockRelease */
static void
lock_release(Buffer *lock, bool exclusive)
{
	uint64_t	mine = exclusive ? EXCLUSIVE : SHARED;
	bool		woken_shared = false;

	if (euno_add64(&lock->lock, -mine) != mine || lock->queue_first == 0 ||
		lock->no_wake)
		return;
	(void) euno_add64(&lock->lock, 0);	/* the queue's spinlock */
	lock->no_wake = lock->queue_first != 0;
	while (lock->queue_first != 0)
	{
		Waiter	   *waiter = &waiters[lock->queue_first - 1];

		/* One writer, or all readers up to the next writer. */
		if (woken_shared && waiter->exclusive)
			break;
		lock->queue_first = waiter->next;
		if (lock->queue_first == 0)
			lock->queue_last = 0;
		waiter->waiting = false;
		subject_env.wake((uint32_t *) waiter);
		if (waiter->exclusive)
			break;
		woken_shared = true;
	}
}

/* ReadBuffer of a page that is in memory. */
static void
pin(uint32_t number)
{
	uint32_t	hash = number * 2654435761U;
	Buffer	   *partition = &partitions[hash % PARTITIONS];
	uint64_t	seen;

	lock_acquire(partition, false);
	(void) euno_load64(&buckets[hash % MAX_PAGES]);
	seen = euno_load64(&buffers[number].state);
	while (!euno_cas64(&buffers[number].state, &seen, seen + 1))
		;
	lock_release(partition, false);
}

static void
unpin(uint32_t number)
{
	uint64_t	seen = euno_load64(&buffers[number].state);

	while (!euno_cas64(&buffers[number].state, &seen, seen - 1))
		;
}

static void
get(uint32_t number, bool exclusive)
{
	pin(number);
	lock_acquire(&buffers[number], exclusive);
}

static void
put_back(uint32_t number, bool exclusive)
{
	lock_release(&buffers[number], exclusive);
	unpin(number);
}

/* XLogInsert, while the page is locked. */
static void
write_wal(uint32_t bytes)
{
	Buffer	   *lock = &wal_locks[vthread_current->number % WAL_LOCKS];
	uint64_t	at;

	vthread_current->clock += work_locked;
	lock_acquire(lock, true);
	at = euno_add64(wal_position, bytes) % (WAL_BYTES - PAGE_BYTES);
	euno_copy_in(wal + at, wal, bytes);
	lock_release(lock, true);
}

static uint64_t
key_at(const Page *page, uint32_t i)
{
	return euno_load64(&page->items[euno_load32(&page->order[i])].key);
}

/* _bt_binsrch: the number of items below (with "upto": not above) the key. */
static uint32_t
search(const Page *page, uint64_t key, bool upto)
{
	uint32_t	lo = 0;
	uint32_t	n = euno_load32(&page->count);

	while (n > 0)
	{
		uint32_t	half = n / 2;
		uint64_t	seen = key_at(page, lo + half);
		bool		right = upto ? seen <= key : seen < key;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	return lo;
}

/*
 * The page itself, or one to the right of it; locked as before.  "first": with
 * the least entry of the key, else with the greatest.
 */
static uint32_t
move_right(uint32_t number, uint64_t key, bool exclusive, bool first)
{
	for (;;)
	{
		Page	   *page = page_of(number);
		uint32_t	right = euno_load32(&page->right);

		uint64_t	high = euno_load64(&page->high);

		if (right == 0 || key < high || (first && key == high))
			return number;
		put_back(number, exclusive);
		get(right, exclusive);
		number = right;
	}
}

/*
 * _bt_search: the page of this level for the key, locked, the way above.  An
 * insert goes behind all equal keys, as a new row's TID mostly does; what
 * reads them begins with the first.
 */
static uint32_t
descend(uint64_t key, uint32_t level, bool exclusive, bool first, uint32_t *way)
{
	uint32_t	number = root;

	for (;;)
	{
		Page	   *page = page_of(number);
		bool		last = page->level == level;
		uint32_t	at;

		get(number, last && exclusive);
		number = move_right(number, key, last && exclusive, first);
		page = page_of(number);
		if (last)
			return number;
		if (way != NULL)
			way[page->level] = number;
		at = search(page, key, !first);
		at = (uint32_t) euno_load64(&page->items[euno_load32(
													&page->order[at > 0 ? at - 1 : 0])].value);
		put_back(number, false);
		number = at;
	}
}

static void
add_item(Page *page, uint64_t key, uint64_t value)
{
	uint32_t	count = euno_load32(&page->count);
	uint32_t	at = search(page, key, true);

	if (count > at)
		euno_move(&page->order[at + 1], &page->order[at], (count - at) * 4);
	euno_store64(&page->items[count].key, key);
	euno_store64(&page->items[count].value, value);
	euno_store32(&page->order[at], count);
	euno_store32(&page->count, count + 1);
}

static uint32_t
new_page(uint32_t level)
{
	Page	   *page = page_of(npages);

	if (npages + 1 >= MAX_PAGES)
	{
		fprintf(stderr, "nbtree has become too large\n");
		exit(1);
	}
	memset(page, 0, 64);
	page->level = level;
	return npages++;
}

static void insert_into(uint32_t number, uint64_t key, uint64_t value,
						uint32_t *way);

/* _bt_split: the page is locked exclusively; afterwards it is not. */
static void
split(uint32_t number, uint64_t key, uint64_t value, uint32_t *way)
{
	Page	   *page = page_of(number);
	uint32_t	level = page->level;
	uint32_t	right_number = new_page(level);
	Page	   *right = page_of(right_number);
	uint32_t	count = euno_load32(&page->count);
	uint32_t	left = count / 2;
	Item		items[PAGE_CAP];
	uint64_t	separator;

	/* At the right edge the left page stays nine tenths full. */
	if (euno_load32(&page->right) == 0 && key > key_at(page, count - 1))
		left = count * 9 / 10;
	for (uint32_t i = 0; i < count; i++)
		items[i] = page->items[page->order[i]];
	separator = page->items[page->order[left]].key;
	get(right_number, true);
	for (uint32_t i = left; i < count; i++)
		right->order[i - left] = i - left;
	euno_copy_in(right->items, &items[left], (count - left) * sizeof(Item));
	euno_copy_in(right->order, right->order, (count - left) * 4);
	euno_store32(&right->count, count - left);
	euno_store32(&right->right, page->right);
	euno_store64(&right->high, page->high);
	for (uint32_t i = 0; i < left; i++)
		page->order[i] = i;
	euno_copy_in(page->items, items, left * sizeof(Item));
	euno_copy_in(page->order, page->order, left * 4);
	euno_store32(&page->count, left);
	euno_store32(&page->right, right_number);
	euno_store64(&page->high, separator);
	add_item(key < separator ? page : right, key, value);
	write_wal((count - left) * ITEM_BYTES);
	put_back(right_number, true);
	if (number == root)
	{
		uint32_t	above = new_page(level + 1);

		add_item(page_of(above), 0, number);
		add_item(page_of(above), separator, right_number);
		root = above;
		put_back(number, true);
		return;
	}

	/* The left page stays locked until its parent is. */
	{
		uint32_t	parent = way[level + 1];

		if (parent == 0)
			parent = descend(separator, level + 1, true, false, NULL);
		else
		{
			get(parent, true);
			parent = move_right(parent, separator, true, false);
		}
		put_back(number, true);
		insert_into(parent, separator, right_number, way);
	}
}

/* Into a page that is locked exclusively; unlocks it. */
static void
insert_into(uint32_t number, uint64_t key, uint64_t value, uint32_t *way)
{
	Page	   *page = page_of(number);

	if (euno_load32(&page->count) >= PAGE_CAP)
	{
		split(number, key, value, way);
		return;
	}
	add_item(page, key, value);
	write_wal(WAL_RECORD);
	euno_store64(&page->lsn, 1);
	if (page->level == 0 && vthread_current != NULL)
		cached_leaf[vthread_current->number] =
			euno_load32(&page->right) == 0 ? number : 0;
	put_back(number, true);
}

/* The rightmost leaf, if it is the one, and nobody has it locked. */
static bool
fast_path(uint64_t key, uint64_t tid)
{
	uint32_t   *cached = &cached_leaf[vthread_current->number];
	uint32_t	number = *cached;
	Page	   *page = page_of(number);
	uint32_t	way[MAX_LEVELS] = {0};

	*cached = 0;
	if (number == 0)
		return false;
	pin(number);
	if (!lock_try(&buffers[number], true))
	{
		unpin(number);
		return false;
	}
	if (euno_load32(&page->right) != 0 ||
		euno_load32(&page->count) + 1 >= PAGE_CAP || key <= key_at(page, 0))
	{
		put_back(number, true);
		return false;
	}
	insert_into(number, key, tid, way);
	return true;
}

static bool
lookup(uint32_t thread, uint64_t key, uint64_t tid)
{
	uint32_t	number = descend(key, 0, false, true, NULL);
	bool		found = false;

	(void) thread;
	for (;;)
	{
		Page	   *page = page_of(number);
		uint32_t	count = euno_load32(&page->count);
		uint32_t	right = euno_load32(&page->right);
		uint32_t	i = search(page, key, false);

		for (; i < count && !found && key_at(page, i) == key; i++)
			found = euno_load64(&page->items[page->order[i]].value) == tid;
		put_back(number, false);
		if (found || i < count || right == 0)
			return found;
		get(right, false);
		number = right;
	}
}

static bool
insert(uint32_t thread, uint64_t key, uint64_t tid)
{
	uint32_t	way[MAX_LEVELS] = {0};

	(void) thread;
	if (!fast_path(key, tid))
	{
		uint32_t	number = descend(key, 0, true, false, way);

		insert_into(number, key, tid, way);
	}
	return true;
}

/* No index entry is ever removed but by VACUUM: a read of the leaf. */
static bool
remove_entry(uint32_t thread, uint64_t key, uint64_t tid)
{
	(void) tid;
	(void) thread;
	put_back(descend(key, 0, false, true, NULL), false);
	return true;
}

static void
load(uint64_t nrows, uint64_t (*key) (uint64_t i))
{
	uint32_t	level = 0;
	uint32_t	first;

	if (pages == NULL)
	{
		pages = shared_memory((size_t) MAX_PAGES * PAGE_BYTES);
		buffers = shared_memory(MAX_PAGES * sizeof(Buffer));
		buckets = shared_memory(MAX_PAGES * sizeof(uint64_t));
		partitions = shared_memory(PARTITIONS * sizeof(Buffer));
		wal_locks = shared_memory(WAL_LOCKS * sizeof(Buffer));
		wal_position = shared_memory(64);
		wal = shared_memory(WAL_BYTES);
	}
	work_locked = NS(calibrated("work.nbtree.locked"));
	restart_count = 0;
	memset(cached_leaf, 0, sizeof(cached_leaf));
	memset(buffers, 0, MAX_PAGES * sizeof(Buffer));
	npages = 1;

	/* Dense rows are in order; leaves first, then level by level. */
	first = npages;
	for (uint64_t i = 0; i < nrows; i++)
	{
		if (i % (PAGE_CAP * 9 / 10) == 0)
			(void) new_page(0);
		add_item(page_of(npages - 1), key(i), workload_tid(i));
	}
	for (;;)
	{
		uint32_t	end = npages;

		for (uint32_t n = first; n + 1 < end; n++)
		{
			page_of(n)->right = n + 1;
			page_of(n)->high = key_at(page_of(n + 1), 0);
		}
		root = first;
		if (end - first == 1)
			break;
		level++;
		for (uint32_t n = first; n < end; n++)
		{
			if ((n - first) % (PAGE_CAP * 9 / 10) == 0)
				(void) new_page(level);
			add_item(page_of(npages - 1), key_at(page_of(n), 0), n);
		}
		first = end;
	}
}

static uint64_t
restarts(void)
{
	return restart_count;
}

const Subject subject_nbtree = {
	"nbtree", "nbtree", load, lookup, insert, remove_entry, restarts, NULL
};
