/*-------------------------------------------------------------------------
 *
 * euno_heat.c
 *	  Which places of a tree are fought for, and by what (euno_heat.h).
 *
 * An operation that has to wait at a place or to look at it again counts that
 * in its context.  One such conflict in EUNO_HEAT_SAMPLE is noted in the
 * tree's heat table, where the launcher and a view find the places that are
 * hot.  So is one in as many writes to contended leaves, and of those that
 * somebody else has performed.  The table is made by the first context that has
 * met some conflicts; other operations do not look at it.
 *
 * The table is a guess.  An entry has a lock that nobody waits for: who finds
 * it taken leaves it at that.  Places are told apart by their numbers, and
 * found by a key that was fought for.  Nothing but speed depends on it
 * (Eunomia, section 4.2.4).
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_heat.h"

#include "core/euno_epoch.h"
#include "core/euno_lock.h"

/* Places of the table that a number may have. */
#define HEAT_BUCKET		4

/*
 * Written under the lock.  Without it, "place" and the counts of warmth() are
 * read to find an entry, and "place" again when that is locked.
 */
typedef struct HeatEntry
{
	EunoLock	lock;
	uint32_t	place;			/* its number; 0: free */
	uint32_t	fresh;			/* conflicts in this round */
	uint32_t	before;			/* in the round before */
	uint32_t	writes;			/* in this round, to a leaf that is contended */
	uint32_t	delegated;		/* of the conflicts, writes that were */
	uint32_t	causes[EUNO_LEAF_CAUSES];
	uint32_t	apart;			/* how many more conflicts were about different
								 * keys than about one, since this was 0 */
	uint8_t		state;			/* of the place, at the last one; 0: not known */
	uint8_t		process;		/* whose that was, in part */
	uint16_t	hash;			/* of its key; 0: there was none yet */
	uint64_t	tid_and_length; /* of that key: TID << 16 | prefix << 8 |
								 * bytes << 1 | cut */
	uint8_t		key[EUNO_HEAT_KEY];
} HeatEntry;

struct EunoHeatTable
{
	HeatEntry	entries[EUNO_HEAT_LEAVES];
};

static const HeatEntry free_entry;

_Static_assert(sizeof(HeatEntry) == 128, "an entry is two lines");
_Static_assert(EUNO_HEAT_LEAVES % HEAT_BUCKET == 0, "whole buckets");
_Static_assert(sizeof(EunoHeatTable) <= 32 * 1024, "it can be allocated");

/*
 * The table, made if need be.  NULL: no memory, or it is not there and shall
 * not be made.  No locks on entry or return.
 */
static EunoHeatTable *
get_table(EunoContext *cx, EunoTree *tree, EunoHeatTable **where, bool make)
{
	EunoHeatTable *table = euno_load_ptr_acquire(where);
	EunoHeatTable *nobody = NULL;

	if (table != NULL || !make)
		return table;
	table = cx->env->alloc(tree->alloc_arg, cx->domain, sizeof(EunoHeatTable));
	if (table == NULL)
		return NULL;
	for (uint32_t i = 0; i < EUNO_HEAT_LEAVES; i++)
		euno_copy_in(&table->entries[i], &free_entry, sizeof(HeatEntry));
	if (euno_cas_ptr(where, &nobody, table))
		return table;
	cx->env->free(tree->alloc_arg, cx->domain, table, sizeof(EunoHeatTable));
	return nobody;
}

static HeatEntry *
bucket_of(EunoHeatTable *table, uint32_t place)
{
	uint32_t	hash = place * UINT32_C(2654435761) >> 8;

	return &table->entries[hash % (EUNO_HEAT_LEAVES / HEAT_BUCKET) *
						  HEAT_BUCKET];
}

static uint32_t
warmth(const HeatEntry *entry)
{
	return euno_load32(&entry->fresh) + euno_load32(&entry->before) +
		euno_load32(&entry->writes);
}

/* Makes an entry that nobody needs any more a place's. */
static void
claim(HeatEntry *entry, uint32_t place)
{
	euno_store32(&entry->place, place);
	euno_store32(&entry->fresh, 0);
	euno_store32(&entry->before, 0);
	euno_store32(&entry->writes, 0);
	euno_store32(&entry->delegated, 0);
	euno_store32(&entry->apart, 0);
	euno_store8(&entry->state, 0);
	euno_store16(&entry->hash, 0);
	for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
		euno_store32(&entry->causes[i], 0);
}

/* One sample less; false if there was none. */
static bool
take_from(uint32_t *count)
{
	uint32_t	n = euno_load32(count);

	if (n < EUNO_HEAT_SAMPLE)
		return false;
	euno_store32(count, n - EUNO_HEAT_SAMPLE);
	return true;
}

/*
 * The place's entry, locked.  If it has none and its bucket is full, the
 * coldest entry there gets colder, and is the place's when it has no conflicts
 * left.  NULL: not this time.
 */
static HeatEntry *
find_entry(EunoHeatTable *table, uint32_t place, const EunoEnvironment *env)
{
	HeatEntry  *bucket = bucket_of(table, place);
	HeatEntry  *entry = bucket;

	for (int i = 0; i < HEAT_BUCKET; i++)
	{
		if (euno_load32(&bucket[i].place) == place)
		{
			entry = &bucket[i];
			break;
		}
		if (warmth(&bucket[i]) < warmth(entry))
			entry = &bucket[i];
	}
	if (!euno_mutex_trylock(&entry->lock))
		return NULL;
	if (euno_load32(&entry->place) == place)
		return entry;
	if (take_from(&entry->before) || take_from(&entry->fresh) ||
		take_from(&entry->writes))
	{
		euno_mutex_unlock(&entry->lock, env);
		return NULL;
	}
	claim(entry, place);
	return entry;
}

/* FNV-1a; not 0.  Of the key alone: entries with one key fight for one place. */
static uint16_t
hash_key(const EunoPosition *pos)
{
	uint32_t	hash = UINT32_C(2166136261);

	for (uint32_t i = 0; i < pos->keylen; i++)
		hash = (hash ^ pos->key[i]) * UINT32_C(16777619);
	hash = (hash ^ hash >> 16) & 0xFFFF;
	return hash != 0 ? (uint16_t) hash : 1;
}

static void
add_sample(uint32_t *count)
{
	euno_store32(count, euno_load32(count) + EUNO_HEAT_SAMPLE);
}

static void
add_cause(EunoContext *cx, HeatEntry *entry, EunoCause cause)
{
	add_sample(&entry->causes[cause]);
	if (cause >= EUNO_CAUSE_SAME_KEY)
		cx->counters.conflicts[cause] += EUNO_HEAT_SAMPLE;
}

/* The key by which the place is found. */
static void
set_key(HeatEntry *entry, const EunoPosition *pos, uint8_t prefix)
{
	uint32_t	len = pos->keylen < EUNO_HEAT_KEY ? pos->keylen : EUNO_HEAT_KEY;
	EunoTid		tid = pos->side < 0 ? 0 : pos->side > 0 ? EUNO_TID_MAX :
		pos->tid;

	euno_store64(&entry->tid_and_length,
				 tid << 16 | (uint64_t) prefix << 8 | len << 1 | (len < pos->keylen));
	euno_copy_in(entry->key, pos->key, len);
}

/*
 * Notes a conflict.  Whether it is about one key is seen by comparing it with
 * the one before: the share of such pairs is the chance that two operations on
 * the place want the same key.  One process with one key is taken for one
 * operation, which tries again and again while another one has the place
 * locked.
 */
static void
note_conflict(EunoContext *cx, HeatEntry *entry, int state,
			  const EunoPosition *pos, EunoCause cause)
{
	uint16_t	hash = hash_key(pos);
	uint16_t	last = euno_load16(&entry->hash);
	bool		same = last == hash;
	uint8_t		state_then = euno_load8(&entry->state);
	uint8_t		process = (uint8_t) cx->process->slot;
	uint32_t	apart = euno_load32(&entry->apart);

	add_sample(&entry->fresh);
	if (cause == EUNO_CAUSE_DELEGATED)
		add_sample(&entry->delegated);
	else
		add_cause(cx, entry, cause);
	if (last != 0 && !(same && euno_load8(&entry->process) == process))
	{
		add_cause(cx, entry, state > 0 && state_then > 0 && state_then != state ?
				  EUNO_CAUSE_SPLIT : same ? EUNO_CAUSE_SAME_KEY :
				  EUNO_CAUSE_OTHER_KEY);
		if (!same)
			add_sample(&entry->apart);
		else if (apart >= EUNO_HEAT_SAMPLE)
			euno_store32(&entry->apart, apart - EUNO_HEAT_SAMPLE);
	}
	if (state >= 0)
		euno_store8(&entry->state, (uint8_t) state);
	euno_store8(&entry->process, process);
	euno_store16(&entry->hash, hash);
}

/*
 * Every so often something is noted of a place (euno_heat_is_due): a conflict,
 * one that delegation has hidden, or just that it was written to.  Returns how
 * many more of its conflicts were about different keys than about one, 0 if
 * nothing was noted.  Within an epoch, no node locked.
 *
 * "table" is where the tree keeps its table, NULL until there is one.
 */
uint32_t
euno_heat_note(EunoContext *cx, EunoTree *tree, EunoHeatTable **table,
			   const EunoHeatPlace *place, const EunoPosition *pos,
			   EunoCause cause)
{
	EunoHeatTable *heat = get_table(cx, tree, table, cause != EUNO_CAUSE_NONE);
	HeatEntry  *entry;
	uint32_t	apart;

	if (heat == NULL || pos->key == NULL)
		return 0;
	entry = find_entry(heat, place->number, cx->env);
	if (entry == NULL)
		return 0;
	if (cause == EUNO_CAUSE_NONE)
		add_sample(&entry->writes);
	else
		note_conflict(cx, entry, place->state, pos, cause);
	apart = euno_load32(&entry->apart);
	set_key(entry, pos, place->prefix);
	euno_mutex_unlock(&entry->lock, cx->env);
	return apart;
}

/*
 * Have there been this many more conflicts about different keys than about one
 * at a place?  If so, they are counted from 0 again.  False, too, if somebody is
 * at the place's entry.  Within an epoch, no node locked.
 */
bool
euno_heat_take_apart(EunoContext *cx, EunoHeatTable **table, uint32_t number,
					 uint32_t conflicts)
{
	EunoHeatTable *heat = euno_load_ptr_acquire(table);
	HeatEntry  *entry;
	bool		enough = false;

	if (heat == NULL)
		return false;
	entry = bucket_of(heat, number);
	for (int i = 0; i < HEAT_BUCKET && !enough; i++, entry++)
	{
		if (euno_load32(&entry->place) != number ||
			!euno_mutex_trylock(&entry->lock))
			continue;
		if (euno_load32(&entry->place) == number &&
			euno_load32(&entry->apart) >= conflicts)
		{
			enough = true;
			euno_store32(&entry->apart, 0);
		}
		euno_mutex_unlock(&entry->lock, cx->env);
	}
	return enough;
}

/*
 * Copies an entry; with "round", its conflicts then become those of the round
 * before.  False if it is free or cold, or somebody is at it.
 */
static bool
read_entry(HeatEntry *entry, bool round, const EunoEnvironment *env,
		   EunoHeat *to)
{
	uint64_t	tid_and_length;

	if (euno_load32(&entry->place) == 0 || !euno_mutex_trylock(&entry->lock))
		return false;
	tid_and_length = euno_load64(&entry->tid_and_length);
	to->leaf = euno_load32(&entry->place);
	to->fresh = euno_load32(&entry->fresh);
	to->before = euno_load32(&entry->before);
	to->writes = euno_load32(&entry->writes);
	to->delegated = euno_load32(&entry->delegated);
	for (int i = 0; i < EUNO_LEAF_CAUSES; i++)
		to->causes[i] = euno_load32(&entry->causes[i]);
	to->keylen = tid_and_length >> 1 & 0x7F;
	to->cut = (tid_and_length & 1) != 0;
	to->prefix = tid_and_length >> 8 & 0xFF;
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
	return euno_heat_sum(to) > 0;
}

/*
 * EunoTreeOps.heat of the tree that has this table.  No locks on entry or
 * return.
 */
uint32_t
euno_heat_read(EunoContext *cx, EunoHeatTable **table, bool round, EunoHeat *to,
			   uint32_t max)
{
	EunoHeatTable *heat;
	uint32_t	n = 0;

	euno_epoch_enter(cx->process);
	heat = euno_load_ptr_acquire(table);
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
