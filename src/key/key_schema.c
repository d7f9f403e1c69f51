/*-------------------------------------------------------------------------
 *
 * key_schema.c
 *	  What an index's columns are, found out once per relation cache entry.
 *
 * The encoding is chosen by the opclass's comparator, not by the type: an
 * opclass with a comparator of its own orders its values as it likes, and is
 * asked every time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/transam.h"
#include "access/tupmacs.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opfamily.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "key/key_private.h"

typedef enum EunoCollationRule
{
	ANY_COLLATION,				/* the comparator does not look at it */
	C_COLLATION,				/* memcmp order in C-like collations only */
	PATTERN						/* memcmp order, but "=" obeys the collation */
} EunoCollationRule;

typedef struct EunoKnownComparator
{
	Oid			proc;
	EunoKeyKind kind;
	int16		attlen;
	EunoCollationRule rule;
} EunoKnownComparator;

static const EunoKnownComparator known_comparators[] = {
	{F_BTBOOLCMP, EUNO_KIND_BOOL, 1, ANY_COLLATION},
	{F_BTCHARCMP, EUNO_KIND_CHAR, 1, ANY_COLLATION},
	{F_BTINT2CMP, EUNO_KIND_INT16, 2, ANY_COLLATION},
	{F_BTINT4CMP, EUNO_KIND_INT32, 4, ANY_COLLATION},
	{F_DATE_CMP, EUNO_KIND_INT32, 4, ANY_COLLATION},
	{F_BTINT8CMP, EUNO_KIND_INT64, 8, ANY_COLLATION},
	{F_TIME_CMP, EUNO_KIND_INT64, 8, ANY_COLLATION},
	{F_TIMESTAMP_CMP, EUNO_KIND_INT64, 8, ANY_COLLATION},
	{F_TIMESTAMPTZ_CMP, EUNO_KIND_INT64, 8, ANY_COLLATION},
	{F_CASH_CMP, EUNO_KIND_INT64, 8, ANY_COLLATION},
	{F_BTOIDCMP, EUNO_KIND_UINT32, 4, ANY_COLLATION},
	{F_XID8CMP, EUNO_KIND_UINT64, 8, ANY_COLLATION},
	{EUNO_OID8_CMP, EUNO_KIND_UINT64, 8, ANY_COLLATION},
	{F_PG_LSN_CMP, EUNO_KIND_UINT64, 8, ANY_COLLATION},
	{F_ENUM_CMP, EUNO_KIND_ENUM, 4, ANY_COLLATION},
	{F_BTFLOAT4CMP, EUNO_KIND_FLOAT4, 4, ANY_COLLATION},
	{F_BTFLOAT8CMP, EUNO_KIND_FLOAT8, 8, ANY_COLLATION},
	{F_UUID_CMP, EUNO_KIND_FIXED, 16, ANY_COLLATION},
	{F_MACADDR_CMP, EUNO_KIND_FIXED, 6, ANY_COLLATION},
	{F_MACADDR8_CMP, EUNO_KIND_FIXED, 8, ANY_COLLATION},
	{F_TIMETZ_CMP, EUNO_KIND_TIMETZ, EUNO_TIMETZ_BYTES, ANY_COLLATION},
	{F_INTERVAL_CMP, EUNO_KIND_INTERVAL, sizeof(Interval), ANY_COLLATION},
	{F_NETWORK_CMP, EUNO_KIND_INET, -1, ANY_COLLATION},
	{F_NUMERIC_CMP, EUNO_KIND_NUMERIC, -1, ANY_COLLATION},
	{F_BTNAMECMP, EUNO_KIND_NAME, NAMEDATALEN, C_COLLATION},
	{F_BTTEXTCMP, EUNO_KIND_TEXT, -1, C_COLLATION},
	{F_BPCHARCMP, EUNO_KIND_BPCHAR, -1, C_COLLATION},
	{F_BTTEXT_PATTERN_CMP, EUNO_KIND_TEXT, -1, PATTERN},
	{F_BTBPCHAR_PATTERN_CMP, EUNO_KIND_BPCHAR, -1, PATTERN},
	{F_BYTEACMP, EUNO_KIND_BYTEA, -1, ANY_COLLATION},
	{F_BTARRAYCMP, EUNO_KIND_ARRAY, -1, ANY_COLLATION},
	{F_RANGE_CMP, EUNO_KIND_RANGE, -1, ANY_COLLATION},
	{F_MULTIRANGE_CMP, EUNO_KIND_MULTIRANGE, -1, ANY_COLLATION}
};

/*
 * What is known of a comparator of values that are laid out so, or NULL.  A
 * family may name a built-in comparator for a type that is laid out otherwise.
 */
static const EunoKnownComparator *
find_comparator(Oid proc, int16 attlen, bool attbyval)
{
	for (size_t i = 0; i < lengthof(known_comparators); i++)
	{
		const EunoKnownComparator *known = &known_comparators[i];

		if (known->proc == proc)
			return known->attlen == attlen &&
				attbyval == (known->kind <= EUNO_KIND_FLOAT8) ? known : NULL;
	}
	return NULL;
}

/* The kind of values with this comparator. */
static EunoKeyKind
value_kind(const EunoKnownComparator *known, Oid collation)
{
	if (known == NULL ||
		(known->rule == C_COLLATION && !euno_collation_is_c(collation)))
		return EUNO_KIND_OPAQUE;
	return known->kind;
}

/* The kind of a column with this comparator. */
static EunoKeyKind
column_kind(Relation index, Form_pg_attribute att, Oid proc, Oid collation)
{
	const EunoKnownComparator *known = find_comparator(proc, att->attlen,
													   att->attbyval);

	/*
	 * The pattern opclasses pair byte-wise comparison with the type's own "=",
	 * which agrees with it only in deterministic collations.  Core checks that
	 * for btree's opclasses, by their OIDs.
	 */
	if (known != NULL && known->rule == PATTERN && OidIsValid(collation) &&
		!get_collation_isdeterministic(collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collations are not supported for column \"%s\" of index \"%s\"",
						NameStr(att->attname),
						RelationGetRelationName(index)),
				 errdetail("Its operator class compares characters, and its equality operator compares by the collation.")));
	return value_kind(known, collation);
}

/* Can an encoding of this kind lose something?  See key_encode.c. */
static bool
is_lossy(EunoKeyKind kind)
{
	return kind == EUNO_KIND_FLOAT4 || kind == EUNO_KIND_FLOAT8 ||
		kind == EUNO_KIND_INTERVAL || kind == EUNO_KIND_NUMERIC ||
		kind == EUNO_KIND_BPCHAR || kind == EUNO_KIND_ARRAY;
}

/* Integers are encoded by turning the sign bit, and all bits for DESC. */
static void
describe_integer(EunoKeyColumn *col)
{
	uint64_t	sign;

	col->integer = col->kind >= EUNO_KIND_INT16 && col->kind <= EUNO_KIND_UINT64;
	if (!col->integer)
		return;
	sign = UINT64_C(1) << (8 * col->attlen - 1);
	if (col->kind <= EUNO_KIND_INT64)
		col->flip = sign;
	if (col->desc)
		col->flip ^= sign | (sign - 1);
}

/*
 * Of a column of arrays or ranges: has the type of their elements an encoding
 * that loses nothing?  If so, col->element describes it.  Arrays are compared by
 * the default opclass of their elements' type, which nothing keeps from being
 * dropped and replaced; so that must be a type of the server's.  Enums have
 * none here, since ALTER TYPE ... ADD VALUE (am/euno_labels.c) looks for
 * columns of the enum's own type only; nor have names, which take 64 bytes each
 * when they are decoded, however short their encodings.
 */
static bool
describe_elements(Oid type, EunoKeyColumn *col, MemoryContext context)
{
	TypeCacheEntry *cache;
	EunoKeyColumn element = {.desc = col->desc,.lossy = -1};
	Oid			proc;

	type = getBaseType(type);
	if (col->kind == EUNO_KIND_ARRAY)
	{
		col->element_type = get_element_type(type);
		if (!OidIsValid(col->element_type) ||
			getBaseType(col->element_type) >= FirstNormalObjectId)
			return false;
		cache = lookup_type_cache(col->element_type, TYPECACHE_CMP_PROC);
		proc = cache->cmp_proc;
		element.collation = col->collation;
	}
	else
	{
		col->multirange = type;
		cache = lookup_type_cache(type, col->kind == EUNO_KIND_RANGE ?
								  TYPECACHE_RANGE_INFO :
								  TYPECACHE_MULTIRANGE_INFO);
		col->range = col->kind == EUNO_KIND_RANGE ? cache : cache->rngtype;
		if (col->range == NULL || col->range->rngelemtype == NULL)
			return false;
		cache = col->range->rngelemtype;
		proc = col->range->rng_cmp_proc_finfo.fn_oid;
		element.collation = col->range->rng_collation;
	}
	element.attlen = cache->typlen;
	element.attbyval = cache->typbyval;
	element.attalign = cache->typalign;
	element.align = (uint8_t) att_align_nominal(1, cache->typalign);
	element.kind = value_kind(find_comparator(proc, element.attlen,
											  element.attbyval),
							  element.collation);
	if (element.kind == EUNO_KIND_OPAQUE || element.kind == EUNO_KIND_ENUM ||
		element.kind == EUNO_KIND_NAME || is_lossy(element.kind) ||
		element.kind >= EUNO_KIND_ARRAY)
		return false;

	/* Or values of a user's type could take more room than there is */
	if (element.attlen == -1 ? element.attalign != TYPALIGN_INT :
		(int) att_align_nominal(element.attlen, element.attalign) > 2 * element.attlen)
		return false;
	describe_integer(&element);
	col->element = MemoryContextAlloc(context, sizeof(EunoKeyColumn));
	*col->element = element;
	return true;
}

/*
 * Are values equal as images if the column's comparator finds them equal?  All
 * sessions must think the same, at all times: unique keys are locked by their
 * images.  So this is not asked of the operator class, whose family may get
 * another support function, but of the server's btree, about a comparator and a
 * type of the server's.  Its answer for bpchar is yes in some releases (18.6)
 * and no in others (15.20); two values that differ in trailing blanks are equal,
 * so it is no.  Equal oidvectors may begin at different numbers: trim_array makes
 * such that begin at 1.
 */
static bool
column_equalimage(const EunoKeyColumn *col)
{
	Oid			type = col->opcintype;
	Oid			families[] = {lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf,
	TEXT_PATTERN_BTREE_FAM_OID};

	if (col->cmp.fn_oid == F_BPCHARCMP ||
		col->cmp.fn_oid == F_BTBPCHAR_PATTERN_CMP ||
		col->cmp.fn_oid == F_BTOIDVECTORCMP)
		return false;
	for (size_t i = 0; i < lengthof(families); i++)
	{
		Oid			proc;

		if (!OidIsValid(families[i]) || families[i] >= FirstNormalObjectId ||
			get_opfamily_proc(families[i], type, type, BTORDER_PROC) != col->cmp.fn_oid)
			continue;
		proc = get_opfamily_proc(families[i], type, type, BTEQUALIMAGE_PROC);
		return OidIsValid(proc) &&
			DatumGetBool(OidFunctionCall1Coll(proc, col->collation,
											  ObjectIdGetDatum(type)));
	}
	return false;
}

/* Fills in what only key columns have. */
static void
describe_key_column(Relation index, int i, EunoKeyColumn *col,
					MemoryContext context)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	int16		option = index->rd_indoption[i];
	FmgrInfo   *cmp = index_getprocinfo(index, i + 1, EUNO_ORDER_PROC);

	col->desc = (option & INDOPTION_DESC) != 0;
	col->null_mark = (option & INDOPTION_NULLS_FIRST) != 0 ?
		EUNO_MARK_NULL_FIRST : EUNO_MARK_NULL_LAST;
	col->collation = index->rd_indcollation[i];
	col->opfamily = index->rd_opfamily[i];
	col->opcintype = index->rd_opcintype[i];
	fmgr_info_copy(&col->cmp, cmp, context);
	col->kind = column_kind(index, att, cmp->fn_oid, col->collation);
	if (col->kind >= EUNO_KIND_ARRAY &&
		!describe_elements(att->atttypid, col, context))
		col->kind = EUNO_KIND_OPAQUE;
	if (col->kind == EUNO_KIND_ENUM)
		col->labels = euno_labels_of(getBaseType(att->atttypid));
	if (col->kind == EUNO_KIND_INTERVAL)
		col->encoded = EUNO_INTERVAL_BYTES;
	else if (col->kind <= EUNO_KIND_FIXED && col->kind != EUNO_KIND_OPAQUE)
		col->encoded = (uint16) col->attlen;

	col->approximates = euno_column_approximates(col);

	/* These comparators take short varlenas as they are; others copy them. */
	col->unshort = col->attlen == -1 &&
		cmp->fn_oid != F_BTTEXTCMP && cmp->fn_oid != F_BPCHARCMP &&
		cmp->fn_oid != F_BTTEXT_PATTERN_CMP &&
		cmp->fn_oid != F_BTBPCHAR_PATTERN_CMP && cmp->fn_oid != F_BYTEACMP;
}

/*
 * Some column has no encoding.  A packed row has values as they are, and these
 * are compared by nobody but their own comparator.
 */
static void
order_by_comparison(EunoKeySchema *schema)
{
	schema->order = EUNO_ORDER_COMPARE;
	for (int i = 0; i < schema->nkeys; i++)
		if (schema->cols[i].kind == EUNO_KIND_NUMERIC ||
			schema->cols[i].kind == EUNO_KIND_INET ||
			schema->cols[i].kind >= EUNO_KIND_ARRAY)
			schema->cols[i].kind = EUNO_KIND_OPAQUE;
}

/*
 * In the place of modifiers, which have fewer bits: keys are compared.  They
 * were not when a tree was built if arrays had elements with another default
 * opclass then.
 */
#define COMPARED	UINT64_MAX

/* What the types of the first columns that lose say of that. */
static void
note_modifiers(Relation index, EunoKeySchema *schema)
{
	const int	bits = 8 * sizeof(uint16);

	for (int i = 0; i < schema->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
		EunoKeyColumn *col = &schema->cols[i];

		if (col->lossy < 0 || bits * col->lossy >= 64)
			continue;
		col->modifier = euno_type_modifier(col->kind, att->atttypid,
										   att->atttypmod);
		schema->modifiers |= (uint64_t) col->modifier << bits * col->lossy;
	}
}

/*
 * Where values are in rows without NULLs, up to a text that approximates, if
 * that is simple to say: see key_approx.c.
 */
static void
describe_row(EunoKeySchema *schema)
{
	uint32_t	at = 1;			/* after the bitmap */

	if (schema->nkeys > 8)
		return;
	for (int i = 0; i < schema->nkeys; i++)
	{
		EunoKeyColumn *col = &schema->cols[i];

		if (col->integer ? col->align != col->attlen : !col->approximates)
			return;
		schema->plain += col->integer ? col->attlen : 0;
		col->row_at = col->integer ? att_align_nominal(at, col->attalign) : at;
		at = col->row_at + col->attlen;
		if (col->approximates)
		{
			schema->text = col;
			schema->no_nulls = (uint8_t) ((1 << schema->nkeys) - 1);
			euno_key_abbreviation(schema, schema->abbreviation);
			return;
		}
	}
}

/*
 * How a tuple is made in COMPARE order.  A row's values, if none is NULL, may
 * be where they are in an index tuple: its bitmap takes as much as the first
 * value's alignment, but a first one with a short header is not aligned.
 */
static EunoTupleShape
row_shape(const EunoKeySchema *schema)
{
	const EunoKeyColumn *first = &schema->cols[0];

	if (schema->natts > schema->nkeys || schema->nkeys > 8)
		return EUNO_TUPLE_ANY;
	for (int i = 1; i < schema->nkeys; i++)
		if (first->attlen == -1 || schema->cols[i].align > first->align)
			return EUNO_TUPLE_ROW_COLUMNS;
	return EUNO_TUPLE_ROW;
}

/* How a tuple of one column, in BYTES order, is made. */
static EunoTupleShape
shape_of(const EunoKeyColumn *col)
{
	if (col->kind == EUNO_KIND_INTERVAL || col->kind == EUNO_KIND_NAME)
		return EUNO_TUPLE_DECODED;
	if (!col->may_short)
		return EUNO_TUPLE_ANY;
	if (col->kind == EUNO_KIND_TEXT)
		return col->desc ? EUNO_TUPLE_ANY : EUNO_TUPLE_STRING;
	if (col->kind == EUNO_KIND_BPCHAR)
		return col->desc ? EUNO_TUPLE_ANY : EUNO_TUPLE_BLANKS;
	return EUNO_TUPLE_VARLENA;
}

/* Are an index's columns all keys, in BYTES order, of kinds of columns_tuple? */
static bool
has_common_columns(const EunoKeySchema *schema)
{
	if (schema->natts > schema->nkeys)
		return false;
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		if (col->kind == EUNO_KIND_TEXT || col->kind == EUNO_KIND_BPCHAR ?
			col->desc || !col->may_short :
			!col->integer && col->kind != EUNO_KIND_FLOAT8 &&
			(col->kind != EUNO_KIND_FIXED || col->desc))
			return false;
	}
	return true;
}

/*
 * Where values are in index tuples, and which can be made in short ways: see
 * key_tuples.c.
 */
static void
describe_tuple(EunoKeySchema *schema)
{
	const EunoKeyColumn *first = &schema->cols[0];
	bool		bytes = schema->order == EUNO_ORDER_BYTES;
	bool		one = schema->natts == 1;
	int			nincluded = schema->natts - schema->nkeys;
	bool		fixed = bytes && (nincluded == 0 || schema->nlossy == 0);

	schema->fixed_row = nincluded > 0 ? (nincluded + 7) / 8 : 0;
	schema->expands = 1;
	schema->tuple_more = IndexInfoFindDataOffset(INDEX_NULL_MASK) +
		2 * MAXIMUM_ALIGNOF;
	for (int i = 0; i < schema->natts; i++)
	{
		EunoKeyColumn *col = &schema->cols[i];

		/* Padding and a header; and not all bytes of these are in a key */
		schema->tuple_more += MAXIMUM_ALIGNOF + VARHDRSZ;
		if (col->kind == EUNO_KIND_NAME)
			schema->tuple_more += NAMEDATALEN;
		if (col->kind == EUNO_KIND_INTERVAL)
			schema->tuple_more += sizeof(Interval);
		if (col->kind == EUNO_KIND_BPCHAR)
		{
			schema->tuple_more += col->modifier;
			schema->lost_more = EUNO_MAX_ENTRY;
		}
		if (col->kind >= EUNO_KIND_ARRAY)
		{
			schema->tuple_more += ARR_OVERHEAD_NONULLS(MAXDIM);
			schema->expands = 3;
		}
		schema->varlenas = schema->varlenas || col->attlen == -1;
		fixed = fixed &&
			(i < schema->nkeys ? col->encoded : col->attlen) > 0;
		if (!fixed)
			continue;
		col->tuple_at = att_align_nominal(schema->fixed_size, col->attalign);
		schema->fixed_size = col->tuple_at + col->attlen;
		if (i < schema->nkeys)
			schema->fixed_len += 1 + col->encoded;
		else
		{
			col->row_at = att_align_nominal(schema->fixed_row, col->attalign);
			schema->fixed_row = col->row_at + col->attlen;
		}
	}
	if (fixed)
		schema->fixed_size = MAXALIGN(schema->fixed_size) +
			IndexInfoFindDataOffset(0);
	else
		schema->fixed_len = 0;
	if (!bytes)
		schema->shape = row_shape(schema);
	else if (one)
		schema->shape = shape_of(first);
	else
		schema->shape = has_common_columns(schema) ? EUNO_TUPLE_COLUMNS :
			EUNO_TUPLE_ANY;
}

EunoKeySchema *
euno_key_schema(Relation index, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	TupleDesc	desc = RelationGetDescr(index);
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	bool		equalimage = true;
	EunoKeySchema *schema;

	schema = palloc0(offsetof(EunoKeySchema, cols) +
					 desc->natts * sizeof(EunoKeyColumn));
	schema->order = EUNO_ORDER_BYTES;
	schema->opaque = -1;
	schema->nkeys = nkeys;
	schema->natts = desc->natts;
	schema->table = index->rd_index->indrelid;
	strlcpy(schema->name, RelationGetRelationName(index), NAMEDATALEN);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		EunoKeyColumn *col = &schema->cols[i];

		col->attlen = att->attlen;
		col->attbyval = att->attbyval;
		col->attalign = att->attalign;
		col->align = (uint8_t) att_align_nominal(1, att->attalign);
		col->may_short = att->attlen == -1 &&
			get_typstorage(att->atttypid) != TYPSTORAGE_PLAIN;
		col->lossy = -1;
		if (i >= nkeys)
			continue;

		describe_key_column(index, i, col, context);
		equalimage = equalimage && column_equalimage(col);
		if (col->kind == EUNO_KIND_OPAQUE && schema->opaque < 0)
			schema->opaque = i;
		if (is_lossy(col->kind))
			col->lossy = schema->nlossy++;
		describe_integer(col);
	}
	if (schema->opaque >= 0)
	{
		order_by_comparison(schema);
		schema->modifiers = COMPARED;
	}
	else
		note_modifiers(index, schema);
	describe_row(schema);
	describe_tuple(schema);

	/*
	 * Entries whose encoding lost something carry a payload and so share
	 * nothing; of the others, equal keys in BYTES order are equal bytes.
	 */
	schema->posting = schema->order == EUNO_ORDER_BYTES || equalimage;

	MemoryContextSwitchTo(old);
	return schema;
}

int
euno_key_opaque_column(const EunoKeySchema *schema)
{
	return schema->opaque;
}

bool
euno_key_is_integer(const EunoKeySchema *schema)
{
	return schema->natts == 1 && schema->cols[0].kind >= EUNO_KIND_INT16 &&
		schema->cols[0].kind <= EUNO_KIND_UINT64;
}

/*
 * A column that has neither an encoding nor an approximation hides the rest.
 */
bool
euno_key_approximates(const EunoKeySchema *schema)
{
	for (int i = 0; i < schema->nkeys; i++)
	{
		const EunoKeyColumn *col = &schema->cols[i];

		if (col->approximates || col->kind == EUNO_KIND_OPAQUE)
			return col->approximates;
	}
	return false;
}

Oid
euno_key_enum(const EunoKeySchema *schema, int column)
{
	const EunoKeyColumn *col = &schema->cols[column];

	return col->kind == EUNO_KIND_ENUM ? col->labels->type : InvalidOid;
}

EunoOrder
euno_key_order(const EunoKeySchema *schema)
{
	return schema->order;
}

uint64
euno_key_modifiers(const EunoKeySchema *schema)
{
	return schema->modifiers;
}

bool
euno_key_posting(const EunoKeySchema *schema)
{
	return schema->posting;
}

bool
euno_key_has_null(const EunoKeySchema *schema, const bool *isnull)
{
	for (int i = 0; i < schema->nkeys; i++)
		if (isnull[i])
			return true;
	return false;
}
