/*-------------------------------------------------------------------------
 *
 * euno_key.h
 *	  Datums to tree keys and back; scan keys to positions.
 *
 * key/ knows types, opclasses and collations, and knows no trees.  It turns
 * the columns of an index into one key in one of the orders of euno_core.h:
 *
 * EUNO_ORDER_BYTES when every key column has an order-preserving encoding.
 *	  Per column: a marker byte (1 = NULL, NULLS FIRST; 2 = value; 3 = NULL,
 *	  NULLS LAST), never inverted and never 0xFF, then for a value its encoding,
 *	  all bytes complemented for DESC.  Encodings are prefix-free: fixed length,
 *	  or terminated.
 *
 * EUNO_ORDER_COMPARE otherwise: the key is the column values as the heap
 *	  stores them (detoasted, aligned, with a null bitmap), compared by the
 *	  opclasses' support function 1.
 *
 * The payload holds what the key cannot give back: INCLUDE columns, and of a
 * key column what its encoding has lost (the sign of -0, a NaN's odd bit
 * pattern, trailing blanks of bpchar, zeros at the end of a numeric's
 * decimals, an interval's fields, where an array's NULLs are; see
 * key_encode.c).  So every column can be returned, bit-identical to what was
 * stored.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_KEY_H
#define EUNO_KEY_H

#include "postgres.h"

#include "access/itup.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "utils/rel.h"

#include "core/euno_core.h"

typedef struct EunoKeySchema EunoKeySchema;

/*
 * Strategies: btree's 1 to 5, and 6 to 9 (<, <=, >=, >) of a column, and those
 * behind it, with the values of a row.
 */
#define EUNO_NSTRATEGIES	9

static inline StrategyNumber
euno_row_strategy(StrategyNumber strategy)
{
	return strategy + (strategy < BTEqualStrategyNumber ? 5 : 4);
}

static inline StrategyNumber
euno_row_strategy_base(StrategyNumber strategy)
{
	return strategy - (strategy < 8 ? 5 : 4);
}

/*
 * Builds the schema of an open index in the given context (lives as long as
 * the context; does not keep the Relation).  Catalog access.  ERROR
 * FEATURE_NOT_SUPPORTED for a pattern opclass on a nondeterministic collation,
 * which core refuses for btree's opclasses only.
 */
extern EunoKeySchema *euno_key_schema(Relation index, MemoryContext context);

extern EunoOrder euno_key_order(const EunoKeySchema *schema);

/* The first key column (from 0) that has no encoding; -1: all have one. */
extern int	euno_key_opaque_column(const EunoKeySchema *schema);

/* Is the index on a single integer, or what is stored as one, and no more? */
extern bool euno_key_is_integer(const EunoKeySchema *schema);

/*
 * May equal keys share one copy (are they byte-identical, and payload-free)?
 */
extern bool euno_key_posting(const EunoKeySchema *schema);

/*
 * What the columns' types say of what encodings leave out; and whether there are
 * encodings.  Entries that were formed by another schema of the same index, but
 * for these, cannot be deformed: ALTER TABLE changes a column's type and keeps the
 * index.
 */
extern uint64 euno_key_modifiers(const EunoKeySchema *schema);

/*
 * Forms the entry of a row, its key and payload in "buf" (EUNO_KEY_FORM_BYTES,
 * 8-byte aligned).  Detoasts; may palloc and leave garbage in
 * CurrentMemoryContext.  Longer than EUNO_MAX_ENTRY: ERROR
 * PROGRAM_LIMIT_EXCEEDED, with the size, the limit, the index, its table and
 * the row; the only place that decides.  The size is that of uncompressed
 * values, trailing blanks of bpchar and all of an array included.
 */
#define EUNO_KEY_FORM_BYTES (2 * (EUNO_MAX_ENTRY + 64))
extern void euno_key_form(const EunoKeySchema *schema, const Datum *values,
						  const bool *isnull, EunoTid tid, uint8_t *buf,
						  EunoEntry *entry);

/*
 * The reverse, for all index columns.  By-reference values point into key,
 * payload, or "scratch" (EUNO_KEY_DEFORM_BYTES), and never need a pfree.
 * payload may be NULL with payloadlen 0.
 */
#define EUNO_KEY_DEFORM_BYTES (8 * 1024)
extern void euno_key_deform(const EunoKeySchema *schema,
							const uint8_t *key, uint32_t keylen,
							const uint8_t *payload, uint32_t payloadlen,
							uint8_t *scratch, Datum *values, bool *isnull);

/*
 * An entry of a batch as an index tuple (8-byte aligned), whose t_tid is not
 * written; "key" is its key, the payload at the next multiple of 8.  Returns
 * the tuple's size, or if that exceeds "room", that much room is needed and
 * nothing was written.
 */
extern uint32_t euno_key_tuple(const EunoKeySchema *schema,
							   const uint8_t *key, const EunoItemKey *item,
							   IndexTuple itup, uint32_t room);

/*
 * Are index tuples of keys without NULLs made by copying values of fixed
 * lengths?  That takes a fraction of the time.
 */
extern bool euno_key_tuple_is_plain(const EunoKeySchema *schema);

/* How many bytes a tuple may have more than its entry, but for lost blanks. */
extern uint32_t euno_key_tuple_more(const EunoKeySchema *schema);

/*
 * Index tuples of several entries of a batch: places[i] is where in "to" that
 * of items[i] is, or 0, where there was no room.  So many bytes of "to" are
 * used, more than 0 (8-byte aligned), and there are "room"; returns how many
 * are used now.
 */
extern uint32_t euno_key_tuples(const EunoKeySchema *schema,
								const uint8_t *buf, const EunoItemKey *items,
								uint32_t n, char *to, uint32_t used,
								uint32_t room, uint32_t *places);

/* An EunoCompare; arg is the schema.  COMPARE order only.  May ereport. */
extern int	euno_key_compare(void *arg, const EunoPosition *pos,
							 const uint8_t *key, uint32_t keylen);

/*
 * What rows are sorted with.  It lives in CurrentMemoryContext, as the sort
 * must: comparators keep what they like there.  All may ereport.
 *
 * euno_row_head: eight bytes at this depth, below euno_row_head_bytes, by
 * which rows can be brought about into order, as numbers; if that says 0 there
 * is no such number, but the head at depth 0 belongs to the row all the same.
 * euno_row_head_goes_on: may rows with this head have other ones further down?
 * euno_row_second_head: the same of the second column, for rows whose first
 * columns are the same, byte by byte; if there is such a number at all.
 * euno_rows_compare decides; it is given the heads at depth 0.
 *
 * euno_row_guessed: some heads are guesses that may turn out to be bad; first
 * rows are to be learned, then euno_row_learned called, which says whether to
 * go on.  If not, or if they are bad, euno_row_guess_otherwise has others made
 * from now on, or says that there are none.
 */
typedef struct EunoRowOrder EunoRowOrder;

/* For tests: guesses have little to do with the order. */
extern bool euno_wrong_guesses;

extern EunoRowOrder *euno_row_order_make(const EunoKeySchema *schema);
extern uint32_t euno_row_head_bytes(const EunoRowOrder *order);
extern bool euno_row_guessed(const EunoRowOrder *order);
extern void euno_row_learn(EunoRowOrder *order, const uint8_t *row,
						   uint32_t len);
extern bool euno_row_learned(EunoRowOrder *order);
extern bool euno_row_guess_otherwise(EunoRowOrder *order);
extern uint64_t euno_row_head(EunoRowOrder *order, const uint8_t *row,
							  uint32_t len, uint32_t depth);
extern bool euno_row_head_goes_on(const EunoRowOrder *order, uint64_t head);
extern bool euno_row_has_second(const EunoRowOrder *order);
extern bool euno_row_same_first(const EunoRowOrder *order, const uint8_t *a,
								uint32_t alen, const uint8_t *b,
								uint32_t blen);
extern uint64_t euno_row_second_head(EunoRowOrder *order, const uint8_t *row,
									 uint32_t len);
extern int	euno_rows_compare(EunoRowOrder *order, const uint8_t *a,
							  uint32_t alen, uint64_t ahead, const uint8_t *b,
							  uint32_t blen, uint64_t bhead);

/* Is approximating keys of this schema any faster than comparing them? */
extern bool euno_key_approximates(const EunoKeySchema *schema);

/* An EunoCompare that approximates; arg is the schema.  May ereport. */
extern int	euno_key_approximate(void *arg, const EunoPosition *pos,
								 const uint8_t *key, uint32_t keylen);

/*
 * How core abbreviates keys: euno_key_abbreviation says what goes into a
 * tree's configuration, zeros if nothing does; see EunoEnvironment and
 * EunoContext for the others.  euno_key_abbreviate may ereport, where a
 * comparator may.
 */
extern void euno_key_abbreviation(const EunoKeySchema *schema, uint8_t *how);
extern int	euno_row_abbreviate(const uint8_t *how, const uint8_t *row,
								uint32_t rowlen, uint8_t *to);
extern bool euno_key_abbreviate(void *arg, const EunoPosition *pos,
								EunoAbbreviation *to);

/* True if any key column is NULL in these values. */
extern bool euno_key_has_null(const EunoKeySchema *schema, const bool *isnull);

/*
 * The labels of an enum (InvalidOid: of all) as the catalog has them, in
 * palloc'd memory, by OID; how many.  "moved": a type of which one has another
 * place afterwards, or InvalidOid.  Keys are made of places, so these must not
 * change while there is an index on such a column; euno_key_enum says of which
 * type a key column (from 0) is, InvalidOid for one that is no enum.
 */
typedef struct EunoLabel
{
	Oid			type;
	Oid			oid;
	uint32_t	place;
} EunoLabel;

extern int	euno_labels_read(Oid type, EunoLabel **result);
extern Oid	euno_labels_moved(const EunoLabel *before, int nbefore,
							  const EunoLabel *after, int nafter);
extern Oid	euno_key_enum(const EunoKeySchema *schema, int column);

/*
 * What a set of scan keys means.  [lo, hi) is a range of the tree; an entry in
 * it matches if euno_scan_matches says so, and always when "exact" is set.
 * "empty" is set when nothing can match (contradictory keys, a NULL argument
 * to a strict operator, an equality with a value the column cannot hold).
 *
 * "parts" is set when the scan has arrays: there are two or more such ranges,
 * disjoint, in index order, and [lo, hi) is that of the current part.
 */
typedef struct EunoScanRange
{
	bool		empty;
	bool		exact;
	bool		parts;
	EunoPosition lo;
	EunoPosition hi;
} EunoScanRange;

typedef struct EunoScanPlan EunoScanPlan;

/* Memory for up to "nkeys" scan keys, to be reused by every rescan. */
extern EunoScanPlan *euno_scan_plan_create(const EunoKeySchema *schema,
										   int nkeys, MemoryContext context);

/*
 * A plan may be used by one scan after another.  "rest": the scan has ended,
 * the keys go; false if the plan would keep what may be wrong for another
 * scan, or much memory.  "reuse": is there room for this many keys?
 */
extern bool euno_scan_plan_rest(EunoScanPlan *plan);
extern bool euno_scan_plan_reuse(const EunoScanPlan *plan, int nkeys);

/*
 * Handles: arrays (SK_SEARCHARRAY) with any of them; strategies 1-5 with the
 * column's type or any cross-type member of the opfamily (saturating
 * out-of-range arguments), several and contradictory keys on a column, keys on
 * a non-leading column, SK_SEARCHNULL and SK_SEARCHNOTNULL (whose sk_func may
 * be unset), SK_ISNULL; strategies 6-9 with a record of the types that the
 * columns from the key's on are compared with, as ends of the range and by its
 * first value: an entry that matches need not be greater or less than the row.
 * Allocates nothing on the common path: rescans in a nested loop come through
 * here.  The range points into the plan and to the keys' arguments: it is good
 * until the next call, and the keys must stay as they are until then.
 */
extern void euno_scan_plan_set(EunoScanPlan *plan, ScanKey keys, int nkeys,
							   EunoScanRange *range);

/*
 * Keeps what the range (of any part) points to beyond the keys' arguments,
 * until keys are set again.
 */
extern void euno_scan_plan_keep(EunoScanPlan *plan,
								const EunoScanRange *range);

/*
 * A part by number: an element of each array that chooses parts.  The same
 * scan keys make the same parts in every process.
 *
 * "first" goes to the first part in a direction, "next" to the one after the
 * current one; it returns false, and stays, if there is none.  "get" tells the
 * current part, "set" goes to one.  All set the range to that of the part.
 */
typedef struct EunoScanPart
{
	uint32		element[INDEX_MAX_KEYS];
} EunoScanPart;

extern void euno_scan_part_first(EunoScanPlan *plan, bool forward,
								 EunoScanRange *range);
extern bool euno_scan_part_next(EunoScanPlan *plan, bool forward,
								EunoScanRange *range);
extern void euno_scan_part_get(const EunoScanPlan *plan, EunoScanPart *part);
extern void euno_scan_part_set(EunoScanPlan *plan, const EunoScanPart *part,
							   EunoScanRange *range);

/*
 * No entry between this one, which was read last, and *target matches (BYTES
 * order).  False if nothing is to be skipped.  The position is good until the
 * next call.
 */
extern bool euno_scan_jump(EunoScanPlan *plan, const uint8_t *key,
						   uint32_t keylen, bool forward,
						   EunoPosition *target);

/*
 * Says of keys that nobody wants: of those with this length, those whose
 * number, at this place and of so many bits, is not in [least, least + more].
 */
typedef struct EunoSieve
{
	uint32		keylen;
	uint32		at;
	uint32		bits;			/* 16, 32 or 64 */
	uint64		least;
	uint64		more;
} EunoSieve;

/*
 * May somebody want a key of that length, of which 8 bytes more can be read?
 */
static inline bool
euno_sieve_admits(const EunoSieve *sieve, const uint8_t *key)
{
	return (euno_get_word(key + sieve->at) >> (64 - sieve->bits)) -
		sieve->least <= sieve->more;
}

/*
 * What may be left out in the plan's ranges (BYTES order).  False: nothing is
 * known of that kind.  *decides: euno_scan_matches says the same of a key of
 * that length.
 */
extern bool euno_scan_sieve(const EunoScanPlan *plan, EunoSieve *sieve,
							bool *decides);

/* Calls operators: may ereport.  Needs no payload. */
extern bool euno_scan_matches(EunoScanPlan *plan, const uint8_t *key,
							  uint32_t keylen);

#endif							/* EUNO_KEY_H */
