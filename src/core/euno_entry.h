/*-------------------------------------------------------------------------
 *
 * euno_entry.h
 *	  What is in a tree: keys, heap TIDs, and their order.
 *
 * An entry is (key, heap TID) and an optional payload that takes no part
 * in the order.  All entries of a tree are distinct.  A tree orders them
 * in one of two ways:
 *
 *	  EUNO_ORDER_BYTES	the key is an order-preserving, prefix-free byte
 *		string.  The entry's *composite* is key || TID (6 bytes, big endian);
 *		entries are ordered by memcmp of their composites, a shorter string
 *		being padded with zero bytes.  No key has 0xFF as the first byte of a
 *		column, so P || FF FF FF FF FF FF is above every entry that starts
 *		with P.
 *
 *	  EUNO_ORDER_COMPARE	the key is opaque; EunoContext.compare orders keys,
 *		and the TID breaks ties.  A comparator may raise an error (longjmp),
 *		is slow, and may do anything: it is never called while a node is
 *		locked and never on bytes that have not been validated.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_ENTRY_H
#define EUNO_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A heap TID as a number: block << 16 | offset.  Zero is no TID. */
typedef uint64_t EunoTid;

#define EUNO_TID_BYTES	6
#define EUNO_TID_MAX	((UINT64_C(1) << 48) - 1)

/* The next multiple of eight, at which keys and payloads begin in buffers. */
static inline uint32_t
euno_align8(uint32_t n)
{
	return (n + 7) & ~UINT32_C(7);
}

/* As it ends a composite: EUNO_TID_BYTES, big endian. */
static inline void
euno_put_tid(uint8_t *p, EunoTid tid)
{
	uint32_t	high = (uint32_t) (tid >> 16);
	uint16_t	low = (uint16_t) tid;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	high = __builtin_bswap32(high);
	low = __builtin_bswap16(low);
#endif
	memcpy(p, &high, sizeof(high));
	memcpy(p + sizeof(high), &low, sizeof(low));
}

static inline EunoTid
euno_get_tid(const uint8_t *p)
{
	uint32_t	high;
	uint16_t	low;

	memcpy(&high, p, sizeof(high));
	memcpy(&low, p + sizeof(high), sizeof(low));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	high = __builtin_bswap32(high);
	low = __builtin_bswap16(low);
#endif
	return (EunoTid) high << 16 | low;
}

/* Eight bytes as a number that is compared as they are. */
static inline uint64_t
euno_get_word(const uint8_t *p)
{
	uint64_t	word;

	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

static inline void
euno_put_word(uint8_t *p, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	memcpy(p, &word, sizeof(word));
}

/*
 * The longest key plus payload, in bytes: nbtree's limit for a whole index
 * tuple on 8 kB pages, so that a table can always go back to btree.
 */
#define EUNO_MAX_ENTRY	2704

typedef enum EunoOrder
{
	EUNO_ORDER_BYTES,
	EUNO_ORDER_COMPARE
} EunoOrder;

typedef struct EunoEntry
{
	const uint8_t *key;
	uint32_t	keylen;
	uint32_t	payloadlen;
	const uint8_t *payload;
	EunoTid		tid;
} EunoEntry;

/*
 * A position: a gap between entries.  Entries below it are to its left, all
 * others to its right.
 *
 * side < 0: the gap before all entries whose key starts with (BYTES) or
 * equals on the columns given (COMPARE) this key; side > 0: the gap after all
 * of them; side = 0: the gap just before entry (key, tid), present or not.
 *
 * In COMPARE order the access method may pass a bound of its own making:
 * then key is NULL, and "bound" is handed to the comparator untouched.
 */
typedef struct EunoPosition
{
	const uint8_t *key;
	uint32_t	keylen;
	int8_t		side;
	EunoTid		tid;
	const void *bound;
} EunoPosition;

/* The gap just before an entry. */
static inline EunoPosition
euno_position_of(const EunoEntry *entry)
{
	return (EunoPosition) {.key = entry->key,.keylen = entry->keylen,
		.tid = entry->tid};
}

/*
 * BYTES order: the bytes that a position stands for, EUNO_MAX_ENTRY + 8 at
 * most; their number.  Composites left of it are less, those right of it
 * greater or equal, the shorter one being padded with zeros.
 *
 * A position longer than any entry can be is cut: keys are prefix-free, so
 * what follows EUNO_MAX_ENTRY bytes decides nothing.
 */
static inline uint32_t
euno_position_bytes(const EunoPosition *pos, uint8_t *bytes)
{
	uint32_t	len = pos->keylen;

	if (len > EUNO_MAX_ENTRY)
		len = EUNO_MAX_ENTRY;
	if (len > 0)
		memcpy(bytes, pos->key, len);
	if (pos->side > 0)
	{
		memset(bytes + len, 0xFF, 8);	/* above every TID */
		len += 8;
	}
	else if (pos->side == 0)
	{
		euno_put_tid(bytes + len, pos->tid);
		len += EUNO_TID_BYTES;
	}
	return len;
}

/*
 * Compares a position's key (or bound) with a stored key: < 0, 0, > 0.  Only
 * the columns that the position has are compared; ties are broken by the
 * caller with side and tid.  "key" is 8-byte aligned private memory.
 */
typedef int (*EunoCompare) (void *arg, const EunoPosition *pos,
							const uint8_t *key, uint32_t keylen);

/*
 * An approximation is called in the same way, and is much faster: < 0 and > 0
 * are what the comparator will probably say, 0 that it must be asked.  It may
 * be wrong, and may contradict itself.
 */

/* A position that core owns the bytes of; see EunoCursor. */
typedef struct EunoPositionBuffer
{
	EunoPosition pos;			/* pos.key points to data, or to nothing */
	uint8_t		data[EUNO_MAX_ENTRY + 8] __attribute__((aligned(8)));
} EunoPositionBuffer;

/*
 * Does who goes from place to place come back to one?  One place is remembered,
 * and twice as long each time: a circle is noticed after a few rounds
 * (R. P. Brent, An improved Monte Carlo factorization algorithm, 1980).  All
 * zeros to begin with.
 */
typedef struct EunoRound
{
	uint64_t	place[2];
	uint32_t	steps;			/* since it was remembered */
	uint32_t	patience;		/* how many until another place is */
} EunoRound;

/* The next place.  True: it is where we have been. */
static inline bool
euno_round_closes(EunoRound *round, uint64_t place, uint64_t more)
{
	if (round->patience > 0 && round->place[0] == place &&
		round->place[1] == more)
		return true;
	if (round->steps++ == round->patience)
	{
		round->place[0] = place;
		round->place[1] = more;
		round->patience = 2 * round->patience + 1;
		round->steps = 0;
	}
	return false;
}

/*
 * A range scan's place.  The caller sets lo and hi (both must stay valid) and
 * calls euno_cursor_start; afterwards core writes the rest.  (Who reads may
 * move the end at which the next batch starts, or set the rest as that of a
 * cursor somewhere else.)  The window is the span of the last batch: the next
 * batch forward starts at its right end, the next one backward ends at its
 * left end.  A batch without items is an empty window at the end of the range:
 * after reading forward to the end, the next batch backward starts below hi.
 * Nothing in a cursor refers to a node: it survives splits, merges, evictions
 * and rebuilds.
 */
typedef struct EunoCursor
{
	EunoPosition lo;			/* the range is [lo, hi) */
	EunoPosition hi;
	bool		started;
	bool		at_lo;			/* the window reaches down to lo */
	bool		at_hi;			/* the window reaches up to hi */
	EunoPositionBuffer left;	/* window's left end, if started and !at_lo */
	EunoPositionBuffer right;	/* window's right end, if started and !at_hi */
	bool		forward;		/* direction of the last read, if started */
	EunoRound	round;			/* where reads in this direction have ended */
} EunoCursor;

typedef struct EunoItemKey
{
	uint32_t	offset;			/* of the key in EunoBatch.buf, 8-byte aligned */
	uint16_t	keylen;			/* without the TID */
	uint16_t	payloadlen;		/* payload starts at offset + MAXALIGN(keylen) */
} EunoItemKey;

/*
 * A batch of entries, in the direction of the read (descending when reading
 * backward); of a B+tree those of one leaf, from read_keys of one for each
 * key.  The caller owns all arrays.
 */
typedef struct EunoBatch
{
	uint32_t	max_items;		/* capacity of tids (and keys); at least 1 */
	uint32_t	nitems;			/* out */
	EunoTid    *tids;			/* out */
	bool		want_keys;		/* fill keys and buf too */
	EunoItemKey *keys;			/* out, if want_keys; in buf they are one after
								 * the other, but neighbors may share bytes */
	uint8_t    *buf;			/* 8-byte aligned; has room for the longest
								 * entry, better EUNO_BATCH_BUF */
	uint32_t	buf_size;
	bool		one_leaf;		/* stop after each leaf, even without an entry,
								 * and set "leaf" */
	uint32_t	leaf;			/* out: the leaf's number; left alone by trees
								 * without numbers, which do not stop either */
} EunoBatch;

#define EUNO_BATCH_BUF	(32 * 1024)

/* Keys that are looked up at once, and bytes of each. */
#define EUNO_KEYS_MAX	16
#define EUNO_KEYS_BYTES	128

/* Puts a cursor before (forward) or after (backward) all of its range. */
static inline void
euno_cursor_start(EunoCursor *cursor)
{
	cursor->started = false;
	cursor->at_lo = cursor->at_hi = false;
}

/* The cursor of all entries with a key, which must stay. */
static inline void
euno_cursor_of_key(EunoCursor *cursor, const uint8_t *key, uint32_t keylen)
{
	cursor->lo = (EunoPosition) {.key = key, .keylen = keylen, .side = -1};
	cursor->hi = (EunoPosition) {.key = key, .keylen = keylen, .side = 1};
	euno_cursor_start(cursor);
}

/* The cursor of all entries. */
static inline void
euno_cursor_of_all(EunoCursor *cursor)
{
	cursor->lo = (EunoPosition) {.side = -1};
	cursor->hi = (EunoPosition) {.side = 1};
	euno_cursor_start(cursor);
}

/* For the structures: see euno_cursor.c. */
extern bool euno_cursor_turn(EunoCursor *cursor, bool forward);

/*
 * Puts a cursor back to where it was before its last read, which was in this
 * direction.
 */
extern void euno_cursor_unread(EunoCursor *cursor, bool forward);

#endif							/* EUNO_ENTRY_H */
