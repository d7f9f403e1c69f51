/*-------------------------------------------------------------------------
 *
 * stage.c
 *	  A small tree, and threads with a few operations each, for schedules.
 *
 * All shared memory is in one struct, which is put back for each run as it was
 * when the tree had been made.  Nodes are never used twice in a run: an access
 * to one that has been freed is noticed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/art/art.h"
#include "core/bptree/bpt.h"
#include "core/euno_epoch.h"
#include "core/euno_shared.h"
#include "memory.h"
#include "stage.h"

#define ENTRIES		48
#define KEY_BYTES	19
#define FILLERS		192
#define FILLER_TID	1000
#define GRANULE		256
#define GRANULES	1024
#define TABLE_BYTES	(EUNO_HEAT_LEAVES * 128)
#define NSLOTS		(MAX_COROUTINES + 1)
#define MANY_CONFLICTS	(1U << 20)	/* so many that each is noted */
#define GUARD		(UINT64_C(1) << 63)

#define LOCKS		32

/* Predicate locks of the one reader there is, and whom he and others missed. */
typedef struct Predicate
{
	EunoLock	lock;			/* of all that follows */
	uint64_t	position;		/* of the moves that the locks have followed */
	uint32_t	locks[LOCKS];	/* leaves */
	uint32_t	nlocks;
	bool		all;			/* locked, moves were lost */
	Set			absent;			/* what the reader has not found */
	Set			unmet;			/* whose writers have found no lock */
} Predicate;

typedef struct Shared
{
	EunoTree	tree;
	uint8_t		epochs[sizeof(EunoEpochs) + NSLOTS * sizeof(EunoEpochSlot)]
				__attribute__((aligned(128)));
	uint64_t	vacuum_epoch;
	uint32_t	gone;			/* the tree has been evicted */
	uint64_t	reusable;		/* entries whose TIDs may be used again */
	uint64_t	frees;
	uint32_t	naps;
	uint32_t	tables;			/* of conflicts */
	Predicate	predicate;
	uint32_t	used;			/* granules */
	uint8_t		freed[GRANULES];
	uint8_t		nodes[GRANULES][GRANULE] __attribute__((aligned(4096)));
} Shared;

typedef struct Player
{
	EunoProcess process;
	EunoContext cx;
	EunoCursor	cursor;
	EunoBatch	batch;
	uint32_t	fillers;		/* that were read in this run */
	EunoTid		tids[ENTRIES];
	EunoItemKey keys[ENTRIES];
	uint8_t		buf[EUNO_BATCH_BUF] __attribute__((aligned(64)));
	Set			condemned;		/* by its walk */
	Set			shown;			/* to its walk */
	Set			removed;
	EunoWalkRoom room;
} Player;

StageCounts stage_counts;

static Shared shared __attribute__((aligned(4096)));
static Shared snapshot;
static EunoContext known;		/* what the start has left: CASE_KNOWING */
static EunoEpochs *const epochs = (EunoEpochs *) shared.epochs;
static Player players[NSLOTS];	/* the last is for before and after */
static EunoEntry entries[ENTRIES];
static uint8_t key_bytes[ENTRIES][KEY_BYTES + 8];
static EunoEntry fillers[FILLERS];
static uint8_t filler_bytes[FILLERS][16];
static uint32_t nfillers;		/* present at the start, and always */
static const EunoTreeOps *ops;
static const Case *the_case;
static uint32_t nthreads;
static Set start_set;
static Set untouched;			/* no thread removes these */
static History history;
static const char *script[MAX_COROUTINES];

static void
node_range(void *node, size_t size, uint32_t *a, uint32_t *b)
{
	*a = (uint32_t) (((uint8_t *) node - shared.nodes[0]) / GRANULE);
	*b = *a + (uint32_t) ((size + GRANULE - 1) / GRANULE);
}

static void *
stage_alloc(void *tree_arg, int domain, size_t size)
{
	uint32_t	n = (uint32_t) ((size + GRANULE - 1) / GRANULE);
	void	   *node;

	(void) tree_arg;
	(void) domain;
	coroutine_step(&shared.used);
	if (shared.used + n > GRANULES)
		return NULL;
	node = shared.nodes[shared.used];
	shared.used += n;
	shared.tables += size == TABLE_BYTES;
	memset(node, 0xA5, (size_t) n * GRANULE);
	return node;
}

static void
stage_free(void *tree_arg, int domain, void *node, size_t size)
{
	uint32_t	a;
	uint32_t	b;
	const char *failure;

	(void) tree_arg;
	(void) domain;
	node_range(node, size, &a, &b);
	failure = memory_free(node, size);
	if (failure != NULL)
		coroutine_fail(failure);
	for (uint32_t i = a; i < b; i++)
	{
		if (shared.freed[i])
			coroutine_fail("a node was freed twice");
		shared.freed[i] = 1;
	}
	memset(node, 0xDB, (size_t) (b - a) * GRANULE);
	shared.tables -= size == TABLE_BYTES;
	shared.frees++;
}

static bool
is_freed(const void *address)
{
	const uint8_t *p = address;

	return p >= shared.nodes[0] && p < shared.nodes[0] + sizeof(shared.nodes) &&
		shared.freed[(p - shared.nodes[0]) / GRANULE];
}

/* With CASE_LATE, every other sleep ends because its time is over. */
static void
stage_wait(uint32_t *word, uint32_t seen)
{
	if ((the_case->flags & CASE_LATE) != 0 && shared.naps++ % 2 == 0)
		coroutine_yield();
	else
		coroutine_wait(word, seen);
}

static int
abbreviate(const uint8_t *how, const uint8_t *key, uint32_t keylen,
		   uint8_t *to)
{
	if (how[0] == 0)
		return -1;
	memcpy(to, key, keylen);
	return (int) keylen;
}

static bool
abbreviate_position(void *arg, const EunoPosition *pos, EunoAbbreviation *to)
{
	(void) arg;
	memset(to, 0, sizeof(*to));
	memcpy(to->bytes, pos->key, pos->keylen);
	to->len = pos->keylen;
	to->plain = EUNO_ABBREVIATION;
	return true;
}

static const EunoEnvironment stage_env = {
	.alloc = stage_alloc,
	.free = stage_free,
	.wait = stage_wait,
	.wake = coroutine_wake,
	.abbreviate = abbreviate
};

static int
compare_bytes(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? c : (alen > blen) - (alen < blen);
}

static int
compare(void *arg, const EunoPosition *pos, const uint8_t *key, uint32_t keylen)
{
	(void) arg;
	return compare_bytes(pos->key, pos->keylen, key, keylen);
}

/*
 * Entries and fillers of one node, but for the last eight entries: four part
 * from them a byte earlier, and four another one.  With more bytes, two
 * entries in a row part at the first of these.
 */
static void
make_fan(uint32_t more)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		key_bytes[i][0] = i < 44 ? 'x' : 'y';
		key_bytes[i][1] = i < 40 ? 'x' : 'y';
		key_bytes[i][2] = (uint8_t) (4 * (more > 0 ? i & ~1U : i));
		if (more > 0)
			key_bytes[i][3] = (uint8_t) ('a' + i % 2);
		entries[i].keylen = 3 + more;
	}
	for (uint32_t i = 0; i < FILLERS; i++)
	{
		memset(filler_bytes[i], 'x', sizeof(filler_bytes[i]));
		filler_bytes[i][2] = (uint8_t) (4 * (i / 3) + 1 + i % 3);
		fillers[i].key = filler_bytes[i];
		fillers[i].keylen = 3 + more;
		fillers[i].tid = (EunoTid) (FILLER_TID + i) << 16 | 1;
	}
}

static bool
by_comparator(void)
{
	return the_case->keys == KEYS_COMPARE || the_case->keys == KEYS_MATCH;
}

/* How many entries have the same key. */
static uint32_t
entries_a_key(Keys keys)
{
	return keys == KEYS_POSTING || keys == KEYS_MATCH ? 4 : 1;
}

/* In ascending order. */
static void
make_entries(Keys keys)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		uint8_t    *key = key_bytes[i];
		uint32_t	k = i / entries_a_key(keys);
		uint32_t	len = KEY_BYTES;

		memset(key, 'x', KEY_BYTES);
		key[0] = (uint8_t) (1 + (keys == KEYS_LONG ? i / 3 : k));
		if (keys == KEYS_LONG)
			key[KEY_BYTES - 1] = (uint8_t) (1 + i % 3);
		if (keys == KEYS_SLOTTED)
			len -= i % 3;
		entries[i].key = key;
		entries[i].keylen = len;
		entries[i].tid = (EunoTid) (i + 1) << 16 | 1;
	}
	if (keys >= KEYS_FAN)
		make_fan(keys == KEYS_FAN ? 0 : keys == KEYS_WIDE ? 4 : 12);
}

/* Is an entry below a position, by the rules of euno_core.h? */
static bool
is_below(const EunoEntry *entry, const EunoPosition *pos)
{
	uint8_t		a[KEY_BYTES + 32] = {0};
	uint8_t		b[KEY_BYTES + 32] = {0};
	int			c;

	if (by_comparator())
	{
		c = compare_bytes(entry->key, entry->keylen, pos->key, pos->keylen);
		if (c == 0)
			c = pos->side != 0 ? -pos->side :
				(entry->tid > pos->tid) - (entry->tid < pos->tid);
		return c < 0;
	}
	memcpy(a, entry->key, entry->keylen);
	memcpy(b, pos->key, pos->keylen);
	for (int k = 0; k < EUNO_TID_BYTES; k++)
	{
		int			shift = 8 * (EUNO_TID_BYTES - 1 - k);

		a[entry->keylen + k] = (uint8_t) (entry->tid >> shift);
		b[pos->keylen + k] = pos->side > 0 ? 0xFF : pos->side < 0 ? 0 :
			(uint8_t) (pos->tid >> shift);
	}
	return memcmp(a, b, sizeof(a)) < 0;
}

/* The number of entries below a position. */
static uint32_t
below(const EunoPosition *pos)
{
	uint32_t	lo = 0;
	uint32_t	hi = ENTRIES;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (is_below(&entries[mid], pos))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static Set
range_set(uint32_t a, uint32_t b)
{
	return a >= b ? 0 : ((UINT64_C(1) << b) - 1) & ~((UINT64_C(1) << a) - 1);
}

static void
player_init(Player *player, uint32_t slot)
{
	memset(player, 0, offsetof(Player, buf));
	player->process.epochs = epochs;
	player->process.slot = slot;
	player->cx.process = &player->process;
	player->cx.env = &stage_env;
	player->cx.lagging = (the_case->flags & CASE_LAGGING) != 0 &&
		slot < MAX_COROUTINES;
	player->cx.delegation.always = (the_case->flags & CASE_CROWDED) != 0 &&
		slot < MAX_COROUTINES;
	player->cx.domain = (int) (slot % the_case->ndomains);
	player->cx.conflicts = (the_case->flags & CASE_HEAT) != 0 ? MANY_CONFLICTS : 0;
	player->cx.count_all = (the_case->flags & CASE_COUNTED) != 0;
	if (by_comparator())
		player->cx.compare = compare;
	if ((the_case->flags & CASE_ABBREVIATED) != 0)
	{
		player->cx.approximate = compare;
		player->cx.abbreviate = abbreviate_position;
	}
	player->batch.tids = player->tids;
	player->batch.keys = player->keys;
	player->batch.buf = player->buf;
	player->batch.buf_size = EUNO_BATCH_BUF;
	player->batch.max_items = the_case->max_items;
	player->batch.want_keys = true;
}

/*
 * The time at which an operation begins.  Whoever made those that have ended
 * has told so, by ways that are not the tree's.
 */
static uint32_t
begin(void)
{
	memory_listen();
	return history.clock++;
}

/* One entry was seen to be there or not, and is there afterwards or not. */
static void
record(Player *player, const char *what, uint32_t call, Set mask, Set seen,
	   Set set, Set clear)
{
	Operation	op = {what, player->process.slot, call, history.clock++,
	mask, seen, set, clear};

	memory_tell();
	history_add(&history, &op);
}

static void
do_single(Player *player, char what, uint32_t i)
{
	EunoGuard	guard = {&shared.vacuum_epoch, 0};
	uint32_t	call = begin();
	Set			bit = UINT64_C(1) << i;
	EunoStatus	status;

	switch (what)
	{
		case 'i':
			status = ops->insert(&player->cx, &shared.tree, &entries[i], false);
			record(player, "insert", call, bit, status == EUNO_OK ? 0 : bit,
				   bit, 0);
			break;
		case 'c':
			status = ops->contains(&player->cx, &shared.tree, &entries[i]);
			record(player, "contains", call, bit, status == EUNO_OK ? bit : 0,
				   0, 0);
			break;
		default:
			status = ops->remove(&player->cx, &shared.tree, &entries[i],
								 what == 'g' ? &guard : NULL);
			if (status == EUNO_STALE)
				record(player, "stale remove", call, GUARD, GUARD, 0, 0);
			else
				record(player, "remove", call,
					   what == 'g' && status == EUNO_OK ? bit | GUARD : bit,
					   status == EUNO_OK ? bit : 0, 0, bit);
			break;
	}
	if (status != EUNO_OK && status != (what == 'i' ? EUNO_EXISTS :
										EUNO_NOT_FOUND) &&
		!(what == 'g' && status == EUNO_STALE))
		coroutine_fail("an operation failed");
}

static bool
is_locked(const Predicate *p, uint32_t leaf)
{
	for (uint32_t i = 0; i < p->nlocks; i++)
	{
		if (p->locks[i] == leaf)
			return true;
	}
	return p->all;
}

static void
lock_leaf(Predicate *p, uint32_t leaf)
{
	if (is_locked(p, leaf))
		return;
	if (p->nlocks == LOCKS)
		coroutine_fail("too many predicate locks");
	p->locks[p->nlocks++] = leaf;
}

/* Lets the locks follow the keys.  Their lock is held. */
static void
follow_moves(Player *player)
{
	static EunoMove moves[MAX_COROUTINES + 1][EUNO_MOVES_MAX];
	const EunoMove *move = moves[player->process.slot];
	Predicate  *p = &shared.predicate;
	uint32_t	n = EUNO_MOVES_MAX;
	EunoStatus	status = ops->moves(&player->cx, &shared.tree, &p->position,
									moves[player->process.slot], &n);

	if (status != EUNO_OK && status != EUNO_STALE)
		coroutine_fail("moves cannot be followed");
	p->all |= status == EUNO_STALE;
	for (uint32_t i = 0; i < n; i++)
	{
		if (move[i].from == 0 || move[i].to == 0 || move[i].from == move[i].to)
			coroutine_fail("a move that never was");
		if (is_locked(p, move[i].from))
			lock_leaf(p, move[i].to);
	}
}

/*
 * Looks for an entry as a serializable reader does: once more when the leaf is
 * locked.
 */
static void
do_serializable_read(Player *player, uint32_t i)
{
	EunoCursor *cursor = &player->cursor;
	Predicate  *p = &shared.predicate;
	uint32_t	call;
	uint32_t	locked = 0;
	Set			bit = UINT64_C(1) << i;

	player->batch.one_leaf = true;
	for (;;)
	{
		call = begin();
		memset(cursor, 0, sizeof(*cursor));
		cursor->lo = (EunoPosition) {.key = entries[i].key,
		.keylen = entries[i].keylen,.tid = entries[i].tid};
		cursor->hi = cursor->lo;
		cursor->hi.tid++;
		euno_cursor_start(cursor);
		player->batch.leaf = 0;
		if (ops->read(&player->cx, &shared.tree, cursor, true,
					  &player->batch) != EUNO_OK)
			coroutine_fail("a read failed");
		if (player->batch.leaf == locked)
			break;
		locked = player->batch.leaf;
		euno_mutex_lock(&p->lock, &stage_env);
		follow_moves(player);
		lock_leaf(p, locked);
		euno_mutex_unlock(&p->lock, &stage_env);
	}
	player->batch.one_leaf = false;
	record(player, "serializable read", call, bit,
		   player->batch.nitems > 0 ? bit : 0, 0, 0);
	if (player->batch.nitems == 0)
		p->absent |= bit;
}

/* Inserts an entry as a serializable writer does. */
static void
do_serializable_insert(Player *player, uint32_t i)
{
	Predicate  *p = &shared.predicate;
	uint32_t	call = begin();
	Set			bit = UINT64_C(1) << i;
	EunoStatus	status;

	player->cx.want_leaf = true;
	status = ops->insert(&player->cx, &shared.tree, &entries[i], false);
	player->cx.want_leaf = false;
	if (status != EUNO_OK && status != EUNO_EXISTS)
		coroutine_fail("an operation failed");
	record(player, "insert", call, bit, status == EUNO_OK ? 0 : bit, bit, 0);
	if (status != EUNO_OK)
		return;
	euno_mutex_lock(&p->lock, &stage_env);
	follow_moves(player);
	if (!is_locked(p, player->cx.leaf))
		p->unmet |= bit;
	euno_mutex_unlock(&p->lock, &stage_env);
}

/* Is the item one that the tree is full of, and nobody touches? */
static bool
is_filler(const Player *player, uint32_t k)
{
	const EunoBatch *batch = &player->batch;
	uint64_t	i = (batch->tids[k] >> 16) - FILLER_TID;

	return nfillers > 0 && i < FILLERS && batch->tids[k] == fillers[i].tid &&
		(!batch->want_keys ||
		 (batch->keys[k].keylen == fillers[i].keylen &&
		  memcmp(batch->buf + batch->keys[k].offset, fillers[i].key,
				 fillers[i].keylen) == 0));
}

/* What a batch says, as a set; the batch itself must make sense. */
static Set
batch_set(Player *player, bool forward)
{
	const EunoBatch *batch = &player->batch;
	Set			seen = 0;
	uint32_t	last = 0;
	bool		first = true;

	for (uint32_t k = 0; k < batch->nitems; k++)
	{
		uint32_t	i = (uint32_t) (batch->tids[k] >> 16) - 1;

		if (is_filler(player, k))
		{
			player->fillers++;
			continue;
		}
		if (i >= ENTRIES || batch->tids[k] != entries[i].tid)
			coroutine_fail("an item that never was an entry");
		if (batch->want_keys &&
			(batch->keys[k].keylen != entries[i].keylen ||
			 memcmp(batch->buf + batch->keys[k].offset, entries[i].key,
					entries[i].keylen) != 0))
			coroutine_fail("an item that never was an entry");
		if (!first && (forward ? i <= last : i >= last))
			coroutine_fail("items out of order");
		first = false;
		last = i;
		seen |= UINT64_C(1) << i;
	}
	return seen;
}

/*
 * Records a batch that covers entries [a, b): all of it at one moment.  Where
 * empty leaves may have been passed, what lies before the first item was seen
 * entry by entry.
 */
static void
record_batch(Player *player, bool forward, uint32_t call, uint32_t a,
			 uint32_t b)
{
	Set			range = range_set(a, b);
	Set			seen = batch_set(player, forward);
	Set			passed = 0;

	if ((seen & ~range) != 0)
		coroutine_fail("an item outside of the batch's window");
	if (the_case->flags & CASE_EMPTIES)
	{
		uint32_t	first = player->batch.nitems > 0 ?
			(uint32_t) (player->batch.tids[0] >> 16) - 1 : forward ? b : a;

		passed = forward ? range_set(a, first) :
			range_set(player->batch.nitems > 0 ? first + 1 : a, b);
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		Operation	op = {"passed", player->process.slot, call, history.clock,
		UINT64_C(1) << i, 0, 0, 0};

		/* Others say nothing: they never change. */
		if (passed >> i & 1 && (start_set | ~untouched) >> i & 1)
			history_add(&history, &op);
	}
	record(player, forward ? "read" : "read back", call, range & ~passed, seen,
		   0, 0);
}

static void
set_range(Player *player, uint32_t a, uint32_t b)
{
	EunoCursor *cursor = &player->cursor;

	memset(&cursor->lo, 0, sizeof(cursor->lo));
	memset(&cursor->hi, 0, sizeof(cursor->hi));
	cursor->lo.key = entries[a].key;
	cursor->lo.keylen = entries[a].keylen;
	cursor->lo.tid = entries[a].tid;
	cursor->hi.key = entries[b].key;
	cursor->hi.keylen = entries[b].keylen;
	cursor->hi.tid = entries[b].tid + 1;
	euno_cursor_start(cursor);
}

/* Reads the cursor's range, entries [a, b), batch by batch. */
static void
read_batches(Player *player, bool forward, uint32_t a, uint32_t b)
{
	EunoCursor *cursor = &player->cursor;
	bool		end = false;

	while (!end)
	{
		uint32_t	call = begin();

		if (ops->read(&player->cx, &shared.tree, cursor, forward,
					  &player->batch) != EUNO_OK)
			coroutine_fail("a read failed");
		end = player->batch.nitems == 0 ||
			(forward ? cursor->at_hi : cursor->at_lo);
		if (forward)
		{
			uint32_t	to = end ? b : below(&cursor->right.pos);

			record_batch(player, true, call, a, to);
			a = to;
		}
		else
		{
			uint32_t	to = end ? a : below(&cursor->left.pos);

			record_batch(player, false, call, to, b);
			b = to;
		}
	}
}

/* Reads entries a to b. */
static void
do_read(Player *player, bool forward, uint32_t a, uint32_t b)
{
	set_range(player, a, b);
	read_batches(player, forward, a, b + 1);
}

/* Reads all entries that have the key of entry i. */
static void
do_lookup(Player *player, uint32_t i)
{
	uint32_t	n = entries_a_key(the_case->keys);

	i -= i % n;
	set_range(player, i, i);
	player->cursor.lo.side = -1;
	player->cursor.hi.side = 1;
	player->batch.want_keys = false;
	read_batches(player, true, i, i + n);
	player->batch.want_keys = true;
}

/* The same for the keys of entries a to b, those at once that can be. */
static void
do_lookups(Player *player, uint32_t a, uint32_t b)
{
	EunoBatch  *batch = &player->batch;
	EunoBatch	all;
	EunoPosition keys[EUNO_KEYS_MAX];
	uint32_t	ends[EUNO_KEYS_MAX];
	uint32_t	each = entries_a_key(the_case->keys);
	uint32_t	call = begin();
	uint32_t	n = 0;
	uint32_t	done = 0;
	uint32_t	from = 0;

	for (uint32_t i = a; i <= b; i += each)
		keys[n++] = (EunoPosition)
		{
			.key = entries[i].key,.keylen = entries[i].keylen,.side = -1
		};
	if (ops->read_keys != NULL && !by_comparator())
		done = ops->read_keys(&player->cx, &shared.tree, keys, n, batch, ends);
	all = *batch;
	for (uint32_t k = 0; k < done; k++)
	{
		batch->tids = all.tids + from;
		batch->keys = all.keys + from;
		batch->nitems = ends[k] - from;
		from = ends[k];
		record_batch(player, true, call, a + k * each, a + (k + 1) * each);
	}
	*batch = all;
	for (; done < n; done++)
		do_lookup(player, a + done * each);
}

static bool
decide(void *arg, EunoTid tid)
{
	Player	   *player = arg;
	uint32_t	i = (uint32_t) (tid >> 16) - 1;

	if (i >= ENTRIES || tid != entries[i].tid)
		coroutine_fail("a walk was shown what never was an entry");
	player->shown |= UINT64_C(1) << i;
	return (player->condemned >> i & 1) != 0;
}

/* Any of the condemned may go at any time; all that stay must be shown. */
static void
do_walk(Player *player, uint32_t a, uint32_t b)
{
	uint32_t	call = begin();
	EunoWalk	walk = {.decide = decide,.arg = player,.room = &player->room,
	.at_once = call % 2};		/* a leaf, or as there is room */

	player->condemned = range_set(a, b + 1);
	player->shown = 0;
	if (ops->walk(&player->cx, &shared.tree, &walk) != EUNO_OK)
		coroutine_fail("a walk failed");
	for (uint32_t i = a; i <= b; i++)
	{
		Operation	op = {"walk", player->process.slot, call, history.clock,
		0, 0, 0, UINT64_C(1) << i};

		history_add(&history, &op);
	}
	history.clock++;
	memory_tell();
	if ((untouched & start_set & ~player->shown) != 0)
		coroutine_fail("a walk missed an entry");
}

static void
do_merge(Player *player, bool begin, uint32_t leaves)
{
	uint32_t	merged;

	EunoStatus	status = ops->compact(&player->cx, &shared.tree,
									  begin ? EUNO_COMPACT_BEGIN : 0, leaves,
									  &merged);

	if (status != EUNO_DONE && status != EUNO_BUSY &&
		(begin || status != EUNO_OK))
		coroutine_fail("a merge failed");
}

/* Makes the leaf that entry i belongs to contended, or calm, if it can be. */
static void
do_mode(Player *player, bool contended, uint32_t i)
{
	EunoPosition pos = {.key = entries[i].key,.keylen = entries[i].keylen,
	.tid = entries[i].tid};
	EunoStatus	status = EUNO_OK;

	if (ops->set_mode != NULL)
		status = ops->set_mode(&player->cx, &shared.tree, &pos, contended);
	if (status != EUNO_OK && status != EUNO_NOT_FOUND)
		coroutine_fail("a leaf's mode could not be set");
}

/* A contention split beside entry i. */
static void
do_part(Player *player, uint32_t i)
{
	BptImage	image;

	if (ops != &euno_bptree_ops)
		return;
	euno_epoch_enter(&player->process);
	euno_bpt_part_leaf(&player->cx, &shared.tree, &entries[i], 0, &image);
	euno_epoch_exit(&player->process);
}

/* Moves entry i's leaf to a domain, if that is possible now. */
static void
do_move(Player *player, uint32_t i, int domain)
{
	EunoPosition pos = {.key = entries[i].key,.keylen = entries[i].keylen,
	.tid = entries[i].tid};

	EunoStatus	status;

	if (ops->migrate == NULL)
		return;
	status = ops->migrate(&player->cx, &shared.tree, &pos, domain);
	if (status == EUNO_CORRUPT)
		coroutine_fail("a move failed");
	stage_counts.moves += status == EUNO_OK;
}

/*
 * Is it the key of an entry, with its TID or one that stands for all of the
 * key?  Of a radix tree, which notes paths: the beginning of a composite.
 */
static bool
is_entry(const EunoHeat *heat)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		uint8_t		composite[KEY_BYTES + EUNO_TID_BYTES];

		memcpy(composite, entries[i].key, entries[i].keylen);
		euno_put_tid(composite + entries[i].keylen, entries[i].tid);
		if (ops->bytes_only &&
			heat->keylen <= entries[i].keylen + EUNO_TID_BYTES &&
			memcmp(composite, heat->key, heat->keylen) == 0)
			return true;
		if (entries[i].keylen == heat->keylen &&
			memcmp(entries[i].key, heat->key, heat->keylen) == 0 &&
			(heat->tid == entries[i].tid || heat->tid == 0 ||
			 heat->tid == EUNO_TID_MAX))
			return true;
	}
	return false;
}

/* What was noted of leaves: each is of one conflict, and leads to a leaf. */
static void
do_heat(Player *player, bool round)
{
	static EunoHeat heat[EUNO_HEAT_LEAVES];
	static EunoLeafInfo info;
	uint32_t	n = ops->heat == NULL ? 0 :
		ops->heat(&player->cx, &shared.tree, round, heat, EUNO_HEAT_LEAVES);

	for (uint32_t i = 0; i < n; i++)
	{
		EunoHeat	one = heat[i];

		if (one.cut || !is_entry(&one))
			coroutine_fail("a conflict about no key");
		if (one.leaf == 0 || one.fresh > GRANULES ||
			(one.leaf > GRANULES && ops->moves != NULL) ||
			one.before > GRANULES || one.writes > GRANULES)
			coroutine_fail("conflicts at no leaf");
		if (ops->leaf(&player->cx, &shared.tree, &one, &info) != EUNO_OK ||
			info.number == 0)
			coroutine_fail("a conflict leads to no leaf");
	}
	stage_counts.hot += n;
}

static void
report(void *arg, const char *what)
{
	(void) arg;
	printf("# verify: %s\n", what);
}

static void
do_verify(Player *player)
{
	EunoVerify	verify = {.report = report};

	if (ops->verify(&player->cx, &shared.tree, &verify) > 0)
		coroutine_fail("verify found something");
}

/*
 * An index-only scan, with the orders that am/euno_scan.c has: the vacuum
 * epoch, a batch, then for each TID its announcement, the epoch again.
 */
static void
do_scan(Player *player, uint32_t a, uint32_t b)
{
	EunoEpochSlot *slot = &epochs->slots[player->process.slot];
	uint64_t	epoch;

	set_range(player, a, b);
	euno_epoch_enter(&player->process);
	epoch = euno_load64(&shared.vacuum_epoch);
	euno_fence_acquire();
	if (ops->read(&player->cx, &shared.tree, &player->cursor, true,
				  &player->batch) != EUNO_OK)
		coroutine_fail("a read failed");
	euno_epoch_exit(&player->process);
	for (uint32_t k = 0; k < player->batch.nitems; k++)
	{
		uint32_t	i = (uint32_t) (player->batch.tids[k] >> 16) - 1;

		euno_hazard_announce(&player->process, player->batch.tids[k]);
		if (euno_load64(&shared.vacuum_epoch) != epoch &&
			ops->contains(&player->cx, &shared.tree, &entries[i]) != EUNO_OK)
			continue;
		for (int use = 0; use < 2; use++)
		{
			coroutine_step(&shared.reusable);
			if (shared.reusable >> i & 1)
				coroutine_fail("a TID was used again under a scan");
		}
	}
	euno_store64_release(&slot->hazard, 0);
}

/*
 * A bulk delete, of entries that nobody else touches but by 'g', with the
 * orders that am/euno_vacuum.c has.
 */
static void
do_bulk_delete(Player *player, uint32_t a, uint32_t b)
{
	uint32_t	call = begin();

	(void) euno_add64_full(&shared.vacuum_epoch, 1);
	EUNO_FENCE(__ATOMIC_SEQ_CST);
	do_walk(player, a, b);
	(void) euno_add64_full(&shared.vacuum_epoch, 1);
	if (!euno_barrier_all(&epochs->barriers))
		coroutine_fail("a barrier was refused");
	for (uint32_t s = 0; s < NSLOTS; s++)
	{
		uint64_t   *hazard = &epochs->slots[s].hazard;
		uint64_t	tid;

		do
			tid = euno_load64_acquire(hazard);
		while (tid >= entries[a].tid && tid <= entries[b].tid);
	}
	coroutine_step(&shared.reusable);
	shared.reusable |= range_set(a, b + 1);
	record(player, "epoch", call, 0, 0, GUARD, 0);
}

/* As mem/euno_tree_state.c does it; afterwards there is no tree. */
static void
do_evict(void)
{
	const char *failure;
	uint64_t	retired;

	euno_store32(&shared.gone, 1);
	EUNO_FENCE(__ATOMIC_SEQ_CST);
	retired = euno_epoch_advance(epochs);
	while (!euno_epoch_passed(epochs, retired))
		coroutine_yield();
	failure = memory_free(shared.nodes, (size_t) shared.used * GRANULE);
	if (failure != NULL)
		coroutine_fail(failure);
	memset(shared.freed, 1, shared.used);
}

/* Inserts or removes fillers, before the threads start. */
static void
do_fill(Player *player, bool insert, uint32_t a, uint32_t b)
{
	for (; a <= b; a++)
	{
		if ((insert ?
			 ops->insert(&player->cx, &shared.tree, &fillers[a], false) :
			 ops->remove(&player->cx, &shared.tree, &fillers[a], NULL)) !=
			EUNO_OK)
			coroutine_fail("a filler");
		nfillers += insert ? 1 : -1;
	}
}

/* Takes one word of a script apart; returns what comes after it. */
static const char *
next_word(const char *s, char *what, uint32_t *a, uint32_t *b)
{
	char	   *end;

	*what = *s++;
	*a = *b = (uint32_t) strtoul(s, &end, 10);
	if (*end == '-')
		*b = (uint32_t) strtoul(end + 1, &end, 10);
	return *end == ' ' ? end + 1 : end;
}

static void
play_word(Player *player, char what, uint32_t a, uint32_t b)
{
	uint32_t	call;

	switch (what)
	{
		case 'f':
		case 'b':
			do_read(player, what == 'f', a, b);
			break;
		case 'F':
			player->batch.want_keys = false;
			do_read(player, true, a, b);
			player->batch.want_keys = true;
			break;
		case 'l':
			do_lookup(player, a);
			break;
		case 'q':
			do_lookups(player, a, b);
			break;
		case 'w':
			do_walk(player, a, b);
			break;
		case 'm':
			do_merge(player, true, 100);
			break;
		case 'n':
			do_merge(player, false, 1);
			break;
		case 'v':
			do_verify(player);
			break;
		case 's':
			do_scan(player, a, b);
			break;
		case 'd':
			do_bulk_delete(player, a, b);
			break;
		case 'G':
			call = begin();
			(void) euno_add64_full(&shared.vacuum_epoch, 2);
			record(player, "epoch", call, 0, 0, GUARD, 0);
			break;
		case 'E':
			do_evict();
			break;
		case 'k':
		case 'x':
			do_fill(player, what == 'k', a, b);
			break;
		case 'M':
			if (ops->maintain != NULL)
				ops->maintain(&player->cx, &shared.tree,
							  player->cx.domain);
			break;
		case 'h':
		case 'H':
			do_heat(player, what == 'H');
			break;
		case 'p':
			do_move(player, a, (int) b);
			break;
		case 'P':
			if (ops->settle != NULL)
				stage_counts.moves += ops->settle(&player->cx, &shared.tree,
												  100);
			break;
		case 'a':
		case 'z':
			do_mode(player, what == 'a', a);
			break;
		case 't':
			do_part(player, a);
			break;
		case 'y':
			do_serializable_read(player, a);
			break;
		case 'u':
			do_serializable_insert(player, a);
			break;
		case 'D':
			if (ops->set_domains != NULL &&
				ops->set_domains(&player->cx, &shared.tree,
								 (UINT64_C(1) << a) - 1) == EUNO_NO_MEMORY)
				coroutine_fail("no memory for directories");
			break;
		default:
			for (; a <= b; a++)
				do_single(player, what, a);
			break;
	}
}

static void
play(Player *player, const char *s)
{
	while (*s != '\0')
	{
		char		what;
		uint32_t	a;
		uint32_t	b;
		bool		pin;

		s = next_word(s, &what, &a, &b);
		pin = (the_case->flags & CASE_PINNED) != 0 && what != 'E';
		if (pin)
			euno_epoch_enter(&player->process);
		if (!pin || euno_load32(&shared.gone) == 0)
			play_word(player, what, a, b);
		if (pin)
			euno_epoch_exit(&player->process);
	}
}

static void
thread_body(uint32_t i)
{
	play(&players[i], script[i]);
}

/* Makes the tree, and afterwards looks at it; nobody else is there. */
static void
start_body(uint32_t i)
{
	EunoTreeConfig config = {
		.order = by_comparator() ? EUNO_ORDER_COMPARE : EUNO_ORDER_BYTES,
		.posting = entries_a_key(the_case->keys) > 1,
		.fillfactor = 100,
		.ndomains = the_case->ndomains,
		.domains = (the_case->flags & CASE_SINGLE) != 0 ? 1 : 0,
		.abbreviation = {(the_case->flags & CASE_ABBREVIATED) != 0}
	};
	Player	   *player = &players[MAX_COROUTINES];

	(void) i;
	if (ops->create(&player->cx, &shared.tree, &config) != EUNO_OK)
		coroutine_fail("no tree");
	play(player, the_case->start);
}

static void
check_log(const BptLog *log)
{
	for (uint32_t i = 0; log != NULL && i < log->count; i++)
	{
		const BptLeaf *leaf = log->ring[(log->next + i) % BPT_LOG_SIZE];

		if (leaf != NULL && (leaf->lock.word & EUNO_LOCK_OBSOLETE) != 0)
			coroutine_fail("a leaf that is gone is still noted");
	}
}

/* What domains are told of leaves ends with these. */
static void
check_logs(void)
{
	const BptBody *body = bpt_body(&shared.tree);

	check_log(body->wishes);
	for (int d = 0; d < shared.tree.config.ndomains; d++)
		check_log(body->directories[d].log);
}

static void
end_body(uint32_t i)
{
	Player	   *player = &players[MAX_COROUTINES];

	(void) i;
	if (shared.gone)
		return;
	do_verify(player);
	if (ops == &euno_bptree_ops)
		check_logs();
	do_read(player, true, 0, ENTRIES - 1);
	do_read(player, false, 0, ENTRIES - 1);
	if (player->fillers != 2 * nfillers)
		coroutine_fail("a filler is missing");
	if ((shared.predicate.absent & shared.predicate.unmet) != 0)
		coroutine_fail("a serializable reader and a writer missed each other");
	do_heat(player, true);
	if (shared.tables > 1)
		coroutine_fail("a table of conflicts is lost");
}

uint32_t
stage_threads(void)
{
	return nthreads;
}

static void
copy_shared(Shared *to, const Shared *from)
{
	memcpy(to, from, offsetof(Shared, nodes) + (size_t) from->used * GRANULE);
}

const char *
stage_open(const EunoTreeOps *tree_ops, const Case *c)
{
	const Schedule alone = {.kind = SCHEDULE_LIST};
	static bool ready = false;
	const char *failure;
	uint32_t	steps;

	if (!ready)
		memory_region(&shared, sizeof(shared));
	ready = true;
	ops = tree_ops;
	the_case = c;
	memset(&stage_counts, 0, sizeof(stage_counts));
	memset(&shared, 0, offsetof(Shared, nodes));
	coroutine_freed = is_freed;
	make_entries(c->keys);
	euno_epochs_init(epochs, NSLOTS);
	euno_barrier_joined = (c->flags & CASE_APART) == 0;
	epochs->barriers.joined = euno_barrier_joined;
	player_init(&players[MAX_COROUTINES], MAX_COROUTINES);
	history_init(&history);
	start_set = 0;
	nfillers = 0;
	euno_model_patience = (c->flags & CASE_HASTY) != 0 ? 0 : 3;
	untouched = ~UINT64_C(0);
	failure = coroutines_run(&alone, 1, start_body, &steps);
	for (uint32_t i = 0; i < history.n; i++)
	{
		start_set |= history.operations[i].set;
		start_set &= ~history.operations[i].clear;
	}
	copy_shared(&snapshot, &shared);
	known = players[MAX_COROUTINES].cx;
	for (nthreads = 0; nthreads < MAX_COROUTINES; nthreads++)
	{
		const char *s = script[nthreads] = c->threads[nthreads];

		if (s == NULL)
			break;
		while (*s != '\0')
		{
			char		what;
			uint32_t	a;
			uint32_t	b;

			s = next_word(s, &what, &a, &b);
			if (strchr("rgwdiu", what) != NULL)
				untouched &= ~range_set(a, b + 1);
		}
	}
	return failure;
}

static void
count(void)
{
	EunoTreeStats stats;

	if (shared.gone)
		return;
	ops->stats(&players[MAX_COROUTINES].cx, &shared.tree, &stats);
	stage_counts.splits += stats.splits;
	stage_counts.merges += stats.merges;
	stage_counts.frees += shared.frees;
	stage_counts.lag += stats.lag;
	for (uint32_t i = 0; i < nthreads; i++)
	{
		const EunoCounters *counters = &players[i].cx.counters;

		stage_counts.restarts += counters->restarts;
		stage_counts.right_moves += counters->right_moves;
		stage_counts.waits += counters->lock_waits;
	}
}

const char *
stage_run(const Schedule *schedule, uint32_t *steps)
{
	const Schedule alone = {.kind = SCHEDULE_LIST};
	const char *failure;
	uint32_t	ignored;

	copy_shared(&shared, &snapshot);
	history_init(&history);
	for (uint32_t i = 0; i < NSLOTS; i++)
		player_init(&players[i], i);
	if ((the_case->flags & CASE_KNOWING) != 0)
	{
		EunoContext *cx = &players[0].cx;

		cx->last = known.last;
		cx->next = known.next;
		memcpy(cx->last_path, known.last_path, sizeof(cx->last_path));
	}
	failure = coroutines_run(schedule, nthreads, thread_body, steps);
	if (failure != NULL)
		return failure;
	for (uint32_t i = 0; i < nthreads; i++)
	{
		if (epochs->slots[i].pinned != 0 || players[i].process.depth != 0)
			return "somebody is still in an epoch";
	}
	failure = coroutines_run(&alone, 1, end_body, &ignored);
	if (failure != NULL)
		return failure;
	count();
	return history_check(&history, start_set) ||
		(!ops->atomic_batches && history_check_entries(&history, start_set)) ? NULL :
		"no order of the operations explains what they saw";
}

void
stage_print(void)
{
	history_print(&history, start_set);
}
