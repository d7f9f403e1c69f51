/*-------------------------------------------------------------------------
 *
 * bpt_heat.c
 *	  Which leaves are fought for, and by what.
 *
 * An operation that has to wait at a leaf or to look at it again counts that in
 * its context.  One such conflict in BPT_HEAT_SAMPLE is noted in the tree's
 * heat table, where the worker and a view find the leaves that are hot.  The
 * table is made by the first context that has met some conflicts; nobody but
 * who has met one looks at it.
 *
 * The table is a guess.  An entry has a lock that nobody waits for: who finds it
 * taken leaves it at that.  Leaves are told apart by their numbers, and found
 * by a key that was fought for.  Nothing but speed depends on it (Eunomia,
 * section 4.2.4).
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt.h"

/*
 * One conflict in so many is noted, and stands for all of them.  Conflicts of a
 * context before it makes the table.  Tests have others.
 */
#ifndef BPT_HEAT_SAMPLE
#define BPT_HEAT_SAMPLE		8
#define BPT_HEAT_FIRST		16
#endif

/* Places of the table that a leaf may have. */
#define HEAT_BUCKET		4

/* Leaves to go right from where a key leads, in search of the leaf it was in. */
#define HEAT_HOPS		8

/* All but "leaf" is read and written under the lock. */
typedef struct HeatEntry
{
	EunoLock	lock;
	uint32_t	leaf;			/* number; 0: free */
	uint32_t	fresh;			/* conflicts in this round */
	uint32_t	before;			/* in the round before */
	uint32_t	writes;			/* in this round, to the leaf when contended */
	uint32_t	delegated;		/* of the conflicts, writes that were */
	uint32_t	causes[EUNO_LEAF_CAUSES];
	uint32_t	apart;			/* how many more conflicts were about different
								 * keys than about one, since this was 0 */
	uint8_t		seqno;			/* of the leaf, in part, at the last one */
	uint8_t		process;		/* whose that was, in part */
	uint16_t	hash;			/* of its key */
	uint64_t	tid_and_length; /* of that key: TID << 16 | bytes << 1 | cut */
	uint8_t		key[EUNO_HEAT_KEY];
} HeatEntry;

struct BptHeat
{
	HeatEntry	entries[EUNO_HEAT_LEAVES];
};

static const HeatEntry free_entry;

/* A write that is a conflict no more: somebody else has performed it. */
#define CAUSE_DELEGATED ((EunoCause) EUNO_CAUSES)

/* Not a conflict. */
#define CAUSE_NONE ((EunoCause) (EUNO_CAUSES + 1))

_Static_assert(sizeof(HeatEntry) == 128, "an entry is two lines");
_Static_assert(EUNO_HEAT_LEAVES % HEAT_BUCKET == 0, "whole buckets");
_Static_assert(sizeof(BptHeat) <= 32 * 1024, "the table can be allocated");

/*
 * The table, made if need be.  NULL: no memory, or it is not there and shall not be
 * made.  No locks on entry or return.
 */
static BptHeat *
get_heat(EunoContext *cx, EunoTree *tree, bool make)
{
	BptHeat   **place = &bpt_body(tree)->heat;
	BptHeat    *heat = euno_load_ptr_acquire(place);
	BptHeat    *nobody = NULL;

	if (heat != NULL || !make)
		return heat;
	heat = cx->env->alloc(tree->alloc_arg, cx->domain, sizeof(BptHeat));
	if (heat == NULL)
		return NULL;
	for (uint32_t i = 0; i < EUNO_HEAT_LEAVES; i++)
		euno_copy_in(&heat->entries[i], &free_entry, sizeof(HeatEntry));
	if (euno_cas_ptr(place, &nobody, heat))
		return heat;
	cx->env->free(tree->alloc_arg, cx->domain, heat, sizeof(BptHeat));
	return nobody;
}

static HeatEntry *
bucket_of(BptHeat *heat, uint32_t leaf)
{
	uint32_t	hash = leaf * UINT32_C(2654435761) >> 8;

	return &heat->entries[hash % (EUNO_HEAT_LEAVES / HEAT_BUCKET) *
						  HEAT_BUCKET];
}

static uint32_t
warmth(const HeatEntry *entry)
{
	return euno_load32(&entry->fresh) + euno_load32(&entry->before) +
		euno_load32(&entry->writes);
}

/* Makes an entry that nobody needs any more a leaf's. */
static void
claim(HeatEntry *entry, uint32_t leaf)
{
	euno_store32(&entry->leaf, leaf);
	euno_store32(&entry->fresh, 0);
	euno_store32(&entry->before, 0);
	euno_store32(&entry->writes, 0);
	euno_store32(&entry->delegated, 0);
	euno_store32(&entry->apart, 0);
	for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
		euno_store32(&entry->causes[i], 0);
}

/* One sample less; false if there was none. */
static bool
take_from(uint32_t *count)
{
	uint32_t	n = euno_load32(count);

	if (n < BPT_HEAT_SAMPLE)
		return false;
	euno_store32(count, n - BPT_HEAT_SAMPLE);
	return true;
}

/*
 * The leaf's entry, locked.  If it has none and its bucket is full, the coldest
 * entry there gets colder, and is the leaf's when it has no conflicts left
 * (*fresh).  NULL: not this time.
 */
static HeatEntry *
find_entry(BptHeat *heat, uint32_t leaf, const EunoEnvironment *env,
		   bool *fresh)
{
	HeatEntry  *bucket = bucket_of(heat, leaf);
	HeatEntry  *entry = bucket;

	for (int i = 0; i < HEAT_BUCKET; i++)
	{
		if (euno_load32(&bucket[i].leaf) == leaf)
		{
			entry = &bucket[i];
			break;
		}
		if (warmth(&bucket[i]) < warmth(entry))
			entry = &bucket[i];
	}
	if (!euno_mutex_trylock(&entry->lock))
		return NULL;
	if (euno_load32(&entry->leaf) == leaf)
		return entry;
	if (take_from(&entry->before) || take_from(&entry->fresh) ||
		take_from(&entry->writes))
	{
		euno_mutex_unlock(&entry->lock, env);
		return NULL;
	}
	claim(entry, leaf);
	*fresh = true;
	return entry;
}

/* FNV-1a.  Of the key alone: entries with one key fight for one place. */
static uint16_t
hash_key(const EunoPosition *pos)
{
	uint32_t	hash = UINT32_C(2166136261);

	for (uint32_t i = 0; i < pos->keylen; i++)
		hash = (hash ^ pos->key[i]) * UINT32_C(16777619);
	return (uint16_t) (hash ^ hash >> 16);
}

static void
add_sample(uint32_t *count)
{
	euno_store32(count, euno_load32(count) + BPT_HEAT_SAMPLE);
}

static void
add_cause(EunoContext *cx, HeatEntry *entry, EunoCause cause)
{
	add_sample(&entry->causes[cause]);
	if (cause >= EUNO_CAUSE_SAME_KEY)
		cx->counters.conflicts[cause] += BPT_HEAT_SAMPLE;
}

/* The key by which the leaf is found. */
static void
set_key(HeatEntry *entry, const EunoPosition *pos)
{
	uint32_t	len = pos->keylen < EUNO_HEAT_KEY ? pos->keylen : EUNO_HEAT_KEY;
	EunoTid		tid = pos->side < 0 ? 0 : pos->side > 0 ? EUNO_TID_MAX :
		pos->tid;

	euno_store64(&entry->tid_and_length,
				 tid << 16 | len << 1 | (len < pos->keylen));
	euno_copy_in(entry->key, pos->key, len);
}

/*
 * Notes a conflict.  Whether it is about one key is seen by comparing it with
 * the one before: the share of such pairs is the chance that two operations on
 * the leaf want the same key.  One process with one key is taken for one operation,
 * which tries again and again while another one has the leaf locked.
 */
static void
note_conflict(EunoContext *cx, HeatEntry *entry, bool fresh, uint8_t seqno,
			  const EunoPosition *pos, EunoCause cause)
{
	uint16_t	hash = hash_key(pos);
	bool		same = euno_load16(&entry->hash) == hash;
	uint8_t		process = (uint8_t) cx->process->slot;
	uint32_t	apart = euno_load32(&entry->apart);

	add_sample(&entry->fresh);
	if (cause == CAUSE_DELEGATED)
		add_sample(&entry->delegated);
	else
		add_cause(cx, entry, cause);
	if (!fresh && !(same && euno_load8(&entry->process) == process))
	{
		add_cause(cx, entry, euno_load8(&entry->seqno) != seqno ?
				  EUNO_CAUSE_SPLIT : same ? EUNO_CAUSE_SAME_KEY :
				  EUNO_CAUSE_OTHER_KEY);
		if (!same)
			add_sample(&entry->apart);
		else if (apart >= BPT_HEAT_SAMPLE)
			euno_store32(&entry->apart, apart - BPT_HEAT_SAMPLE);
	}
	euno_store8(&entry->seqno, seqno);
	euno_store8(&entry->process, process);
	euno_store16(&entry->hash, hash);
}

/* Every so often something is noted of a leaf, under the lock of its entry. */
static void
note(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
	 const EunoPosition *pos, EunoCause cause)
{
	BptHeat    *heat = get_heat(cx, tree, cause != CAUSE_NONE);
	uint32_t	part_at = euno_load32(&bpt_body(tree)->part_at);
	uint8_t		seqno = (uint8_t) euno_load64(&leaf->seqno);
	bool		fresh = false;
	HeatEntry  *entry;

	if (heat == NULL || pos->key == NULL)
		return;
	entry = find_entry(heat, leaf->number, cx->env, &fresh);
	if (entry == NULL)
		return;
	if (cause == CAUSE_NONE)
		add_sample(&entry->writes);
	else
		note_conflict(cx, entry, fresh, seqno, pos, cause);
	if (part_at > 0 && euno_load32(&entry->apart) >= part_at)
		cx->part_leaf = leaf->number;
	set_key(entry, pos);
	euno_mutex_unlock(&entry->lock, cx->env);
}

/*
 * Shall the leaf of this number be parted?  If so, not again before there have been
 * as many conflicts once more.
 */
bool
euno_bpt_shall_part(EunoContext *cx, EunoTree *tree, uint32_t leaf)
{
	BptHeat    *heat = euno_load_ptr_acquire(&bpt_body(tree)->heat);
	uint32_t	part_at = euno_load32(&bpt_body(tree)->part_at);
	HeatEntry  *entry;
	bool		shall = false;

	if (heat == NULL || part_at == 0)
		return false;
	entry = bucket_of(heat, leaf);
	for (int i = 0; i < HEAT_BUCKET && !shall; i++, entry++)
	{
		if (euno_load32(&entry->leaf) != leaf ||
			!euno_mutex_trylock(&entry->lock))
			continue;
		if (euno_load32(&entry->leaf) == leaf &&
			euno_load32(&entry->apart) >= part_at)
		{
			shall = true;
			euno_store32(&entry->apart, 0);
		}
		euno_mutex_unlock(&entry->lock, cx->env);
	}
	return shall;
}

/*
 * An operation on a key has met a conflict at a leaf.  To be called within the
 * epoch in which the leaf was reached, with no node locked.
 */
void
euno_bpt_conflict(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
				  const BptKey *key, EunoCause cause)
{
	cx->counters.conflicts[cause]++;
	if (++cx->conflicts >= BPT_HEAT_FIRST && cx->conflicts % BPT_HEAT_SAMPLE == 0)
		note(cx, tree, leaf, key->pos, cause);
}

/*
 * A write to a leaf has been performed by somebody else: but for that, it would have
 * been a conflict.  As euno_bpt_conflict.
 */
void
euno_bpt_delegated(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
				   const BptKey *key)
{
	if (++cx->conflicts >= BPT_HEAT_FIRST && cx->conflicts % BPT_HEAT_SAMPLE == 0)
		note(cx, tree, leaf, key->pos, CAUSE_DELEGATED);
}

/*
 * A contended leaf was written to: writers hardly meet there, which does not mean
 * that they would not if it were calm.  As euno_bpt_conflict.
 */
void
euno_bpt_contended_write(EunoContext *cx, EunoTree *tree, const BptLeaf *leaf,
						 const BptKey *key)
{
	if (++cx->counters.contended % BPT_HEAT_SAMPLE == 0)
		note(cx, tree, leaf, key->pos, CAUSE_NONE);
}

/*
 * Copies an entry, and begins a new round of it: its conflicts become those of
 * the round before.  False if it is free, or somebody is at it.
 */
static bool
read_entry(HeatEntry *entry, bool round, const EunoEnvironment *env,
		   EunoHeat *to)
{
	uint64_t	tid_and_length;

	if (euno_load32(&entry->leaf) == 0 || !euno_mutex_trylock(&entry->lock))
		return false;
	tid_and_length = euno_load64(&entry->tid_and_length);
	to->leaf = euno_load32(&entry->leaf);
	to->fresh = euno_load32(&entry->fresh);
	to->before = euno_load32(&entry->before);
	to->writes = euno_load32(&entry->writes);
	to->delegated = euno_load32(&entry->delegated);
	for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
		to->causes[i] = euno_load32(&entry->causes[i]);
	to->keylen = tid_and_length >> 1 & 0x7F;
	to->cut = (tid_and_length & 1) != 0;
	to->tid = tid_and_length >> 16;
	euno_copy_out(to->key, entry->key, EUNO_HEAT_KEY);
	if (round)
	{
		euno_store32(&entry->before, to->fresh);
		euno_store32(&entry->fresh, 0);
		euno_store32(&entry->writes, 0);
		euno_store32(&entry->delegated, to->delegated / 2);
		euno_store32(&entry->apart, euno_load32(&entry->apart) / 2);
		for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
			euno_store32(&entry->causes[i], to->causes[i] / 2);
	}
	euno_mutex_unlock(&entry->lock, env);
	return to->fresh + to->before + to->writes > 0;
}

/* See EunoTreeOps.  No locks on entry or return. */
uint32_t
euno_bpt_heat(EunoContext *cx, EunoTree *tree, bool round, EunoHeat *to,
			  uint32_t max)
{
	BptHeat    *heat;
	uint32_t	n = 0;

	euno_epoch_enter(cx->process);
	heat = euno_load_ptr_acquire(&bpt_body(tree)->heat);
	for (uint32_t i = 0; heat != NULL && i < EUNO_HEAT_LEAVES; i++)
	{
		EunoHeat	one;
		uint32_t	at = n;

		if (!read_entry(&heat->entries[i], round, cx->env, &one))
			continue;
		while (at > 0 && euno_heat_sum(&to[at - 1]) < euno_heat_sum(&one))
			at--;
		if (at >= max)
			continue;
		if (n < max)
			n++;
		memmove(&to[at + 1], &to[at], (n - at - 1) * sizeof(EunoHeat));
		to[at] = one;
	}
	euno_epoch_exit(cx->process);
	return n;
}

/*
 * The leaf that *heat is about: the one that has its key, or, if the key is cut,
 * the one of its number a little to the right of there.  Copied to
 * place->image.  EUNO_OK, EUNO_NOT_FOUND, EUNO_STALE or EUNO_CORRUPT.  To be
 * called within an epoch.
 */
static EunoStatus
find_leaf(EunoContext *cx, EunoTree *tree, const EunoHeat *heat,
		  const BptKey *key, BptPlace *place)
{
	EunoStatus	status = euno_bpt_seek(cx, tree, key, false, place);

	for (int hops = 0; status == EUNO_OK; hops++)
	{
		BptLeaf    *leaf = place->leaf;

		if (!heat->cut || leaf->number == heat->leaf)
			return euno_bpt_copy(place);
		leaf = euno_load_ptr_acquire(&leaf->right);
		status = euno_bpt_valid(place);
		if (status != EUNO_OK)
			return status;
		if (leaf == NULL || hops == HEAT_HOPS)
			break;
		place->leaf = leaf;
		place->copied = place->found = false;
		if (!euno_lock_read(&leaf->lock, &place->version, cx->env,
							&cx->counters))
			return EUNO_STALE;
	}
	return status == EUNO_OK ? EUNO_NOT_FOUND : status;
}

/* Are many of the writes performed by one process for others? */
static bool
is_delegated(const EunoHeat *heat)
{
	return heat->delegated > (heat->fresh + heat->before) / 4;
}

/* See EunoTreeOps.  No locks on entry or return. */
EunoStatus
euno_bpt_leaf(EunoContext *cx, EunoTree *tree, const EunoHeat *heat,
			  EunoLeafInfo *info)
{
	EunoPosition pos = {.key = heat->key, .keylen = heat->keylen,
	.side = heat->cut ? -1 : 0, .tid = heat->tid};
	EunoStatus	status;
	BptImage	image;
	BptPlace	place;
	BptKey		key;

	/* Of a row that is cut a comparator can make nothing. */
	if (heat->cut && bpt_is_opaque(tree))
		return EUNO_NOT_FOUND;
	euno_bpt_key_position(tree, &pos, &key);
	bpt_place_init(&place, &image);
	euno_epoch_enter(cx->process);
	do
	{
		status = find_leaf(cx, tree, heat, &key, &place);
	} while (status == EUNO_STALE);
	if (status == EUNO_OK)
	{
		info->number = image.leaf.number;
		info->entries = image.leaf.ntids;
		info->domain = (int) image.leaf.limbo.domain;
		info->mode = place.view.scattered ? "contended" :
			is_delegated(heat) ? "delegated" : "calm";
		info->parted = image.leaf.parted != 0;
		info->has_low = image.leaf.has_low != 0;
		info->has_high = image.leaf.right != NULL;
		if (info->has_low)
			euno_bpt_fence_position(tree, place.leaf, &info->low);
		if (info->has_high)
			euno_bpt_fence_position(tree, image.leaf.right, &info->high);
	}
	euno_epoch_exit(cx->process);
	return status;
}
