/*-------------------------------------------------------------------------
 *
 * euno_sort.c
 *	  Entries in key order, through PostgreSQL's tuplesort.
 *
 * In BYTES order a whole entry is one bytea: key, TID, payload, and the
 * payload's length.  Keys are prefix-free, so what follows the TID never
 * decides.  In COMPARE order the columns are sorted by their operators, and
 * the TID, as an int8, comes last.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

#include "am/euno_am.h"
#include "euno_compat.h"

#define BYTEA_LESS_OPERATOR 1957	/* bytea < bytea; has no symbol */

struct EunoSort
{
	const EunoKeySchema *schema;
	EunoOrder	order;
	bool		ordered;		/* false: only by TID */
	Tuplesortstate *state;
	TupleTableSlot *input;		/* COMPARE only, as all below but datum */
	TupleTableSlot *slot;
	int			natts;			/* index columns, without the TID */
	uint8_t    *form_buffer;
	struct varlena *datum;		/* BYTES only */
};

/*
 * Sort operators of the key columns.  False if some opclass's "<" is not known
 * to a btree family, which tuplesort needs.
 */
static bool
sort_operators(Relation index, int nkeys, AttrNumber *attnums, Oid *operators,
			   Oid *collations, bool *nulls_first)
{
	for (int i = 0; i < nkeys; i++)
	{
		bool		desc = (index->rd_indoption[i] & INDOPTION_DESC) != 0;

		attnums[i] = i + 1;
		collations[i] = index->rd_indcollation[i];
		nulls_first[i] = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
		operators[i] = get_opfamily_member(index->rd_opfamily[i],
										   index->rd_opcintype[i],
										   index->rd_opcintype[i],
										   desc ? BTGreaterStrategyNumber :
										   BTLessStrategyNumber);
		if (!OidIsValid(operators[i]) ||
			!euno_is_ordering_operator(operators[i]))
			return false;
	}
	return true;
}

static void
begin_compare_sort(EunoSort *sort, Relation index)
{
	TupleDesc	source = RelationGetDescr(index);
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	AttrNumber	attnums[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];
	TupleDesc	tupdesc;

	sort->natts = source->natts;
	tupdesc = CreateTemplateTupleDesc(source->natts + 1);
	for (int i = 1; i <= source->natts; i++)
		TupleDescCopyEntry(tupdesc, i, source, i);
	TupleDescInitEntry(tupdesc, source->natts + 1, "tid", INT8OID, -1, 0);

	sort->ordered = sort_operators(index, nkeys, attnums, operators,
								   collations, nulls_first);
	if (!sort->ordered)
		nkeys = 0;
	attnums[nkeys] = source->natts + 1;
	operators[nkeys] = Int8LessOperator;
	collations[nkeys] = InvalidOid;
	nulls_first[nkeys] = false;

	sort->input = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	sort->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	sort->state = tuplesort_begin_heap(tupdesc, nkeys + 1, attnums, operators,
									   collations, nulls_first,
									   maintenance_work_mem, NULL,
									   TUPLESORT_NONE);
}

EunoSort *
euno_sort_begin(const EunoKeySchema *schema, Relation index)
{
	EunoSort   *sort = palloc0(sizeof(EunoSort));

	sort->schema = schema;
	sort->order = euno_key_order(schema);
	sort->form_buffer = palloc(EUNO_KEY_FORM_BYTES);
	if (sort->order == EUNO_ORDER_BYTES)
	{
		sort->ordered = true;
		sort->datum = palloc(VARHDRSZ + EUNO_MAX_ENTRY + EUNO_TID_BYTES +
							 sizeof(uint16));
		sort->state = tuplesort_begin_datum(BYTEAOID, BYTEA_LESS_OPERATOR,
											InvalidOid, false,
											maintenance_work_mem, NULL,
											TUPLESORT_NONE);
	}
	else
		begin_compare_sort(sort, index);
	return sort;
}

static void
add_bytes(EunoSort *sort, const EunoEntry *entry)
{
	uint8_t    *p = (uint8_t *) VARDATA(sort->datum);
	uint16		payloadlen = (uint16) entry->payloadlen;

	memcpy(p, entry->key, entry->keylen);
	p += entry->keylen;
	for (int i = EUNO_TID_BYTES - 1; i >= 0; i--)
		*p++ = (uint8_t) (entry->tid >> (8 * i));
	if (payloadlen > 0)
		memcpy(p, entry->payload, payloadlen);
	p += payloadlen;
	memcpy(p, &payloadlen, sizeof(payloadlen));
	p += sizeof(payloadlen);
	SET_VARSIZE(sort->datum, p - (uint8_t *) sort->datum);
	tuplesort_putdatum(sort->state, PointerGetDatum(sort->datum), false);
}

void
euno_sort_add(EunoSort *sort, const Datum *values, const bool *isnull,
			  EunoTid tid)
{
	EunoEntry	entry;

	if (sort->order == EUNO_ORDER_BYTES)
	{
		euno_key_form(sort->schema, values, isnull, sort->form_buffer, &entry);
		entry.tid = tid;
		add_bytes(sort, &entry);
		return;
	}

	ExecClearTuple(sort->input);
	for (int i = 0; i < sort->natts; i++)
	{
		Datum		value = values[i];

		/* Fetch toasted values now, while there is a snapshot for it. */
		if (!isnull[i] && TupleDescAttr(sort->input->tts_tupleDescriptor, i)->attlen == -1)
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		sort->input->tts_values[i] = value;
		sort->input->tts_isnull[i] = isnull[i];
	}
	sort->input->tts_values[sort->natts] = Int64GetDatum((int64) tid);
	sort->input->tts_isnull[sort->natts] = false;
	ExecStoreVirtualTuple(sort->input);
	tuplesort_puttupleslot(sort->state, sort->input);
}

void
euno_sort_perform(EunoSort *sort)
{
	tuplesort_performsort(sort->state);
}

bool
euno_sort_is_ordered(EunoSort *sort)
{
	return sort->ordered;
}

/*
 * The next entry; its bytes are valid until the next call.
 */
bool
euno_sort_next(EunoSort *sort, EunoEntry *entry)
{
	if (sort->order == EUNO_ORDER_BYTES)
	{
		Datum		value;
		bool		isnull;
		const uint8_t *data;
		uint32		length;
		uint16		payloadlen;

		if (sort->datum)
		{
			pfree(sort->datum);
			sort->datum = NULL;
		}
		if (!euno_tuplesort_getdatum(sort->state, &value, &isnull))
			return false;

		/* tuplesort gives us a copy of our own */
		sort->datum = (struct varlena *) DatumGetPointer(value);
		data = (const uint8_t *) VARDATA_ANY(sort->datum);
		length = VARSIZE_ANY_EXHDR(sort->datum) - sizeof(payloadlen);
		memcpy(&payloadlen, data + length, sizeof(payloadlen));
		entry->keylen = length - payloadlen - EUNO_TID_BYTES;
		entry->key = data;
		entry->payloadlen = payloadlen;
		entry->payload = data + length - payloadlen;
		entry->tid = 0;
		for (int i = 0; i < EUNO_TID_BYTES; i++)
			entry->tid = entry->tid << 8 | data[entry->keylen + i];
		return true;
	}

	if (!tuplesort_gettupleslot(sort->state, true, false, sort->slot, NULL))
		return false;
	slot_getallattrs(sort->slot);
	euno_key_form(sort->schema, sort->slot->tts_values, sort->slot->tts_isnull,
				  sort->form_buffer, entry);
	entry->tid = (EunoTid) DatumGetInt64(sort->slot->tts_values[sort->natts]);
	return true;
}

void
euno_sort_end(EunoSort *sort)
{
	tuplesort_end(sort->state);
	if (sort->slot)
	{
		ExecDropSingleTupleTableSlot(sort->input);
		ExecDropSingleTupleTableSlot(sort->slot);
	}
	if (sort->datum)
		pfree(sort->datum);
	pfree(sort->form_buffer);
	pfree(sort);
}
