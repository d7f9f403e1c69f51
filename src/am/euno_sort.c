/*-------------------------------------------------------------------------
 *
 * euno_sort.c
 *	  Entries in key order.
 *
 * In BYTES order our own sort does it (euno_bytesort.c).  In COMPARE order
 * PostgreSQL's tuplesort sorts the columns by their operators, and the TID, as
 * an int8, comes last.
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
#include "am/euno_bytesort.h"
#include "euno_compat.h"

struct EunoSort
{
	const EunoKeySchema *schema;
	EunoOrder	order;
	bool		ordered;		/* false: only by TID */
	uint8_t    *form_buffer;
	EunoSortShare *share;		/* NULL: nobody else takes part */
	int			work_mem_kb;
	EunoByteSort *bytes;		/* BYTES only; all below are COMPARE only */
	Relation	index;
	Tuplesortstate *state;
	TupleTableSlot *input;
	TupleTableSlot *slot;
	int			natts;			/* index columns, without the TID */
	int			imported;		/* workers whose runs are to be merged */
	bool		own_sorted;		/* euno_sort_own was called */
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

/*
 * Begin a tuplesort of the columns; "coordinate" says who takes part in it, if
 * it is a parallel one.
 */
static Tuplesortstate *
begin_tuplesort(EunoSort *sort, SortCoordinate coordinate)
{
	Relation	index = sort->index;
	TupleDesc	tupdesc = sort->input->tts_tupleDescriptor;
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	AttrNumber	attnums[INDEX_MAX_KEYS + 1];
	Oid			operators[INDEX_MAX_KEYS + 1];
	Oid			collations[INDEX_MAX_KEYS + 1];
	bool		nulls_first[INDEX_MAX_KEYS + 1];

	sort->ordered = sort_operators(index, nkeys, attnums, operators,
								   collations, nulls_first);
	if (!sort->ordered)
		nkeys = 0;
	attnums[nkeys] = sort->natts + 1;
	operators[nkeys] = Int8LessOperator;
	collations[nkeys] = InvalidOid;
	nulls_first[nkeys] = false;
	return tuplesort_begin_heap(tupdesc, nkeys + 1, attnums, operators,
								collations, nulls_first, sort->work_mem_kb,
								coordinate, TUPLESORT_NONE);
}

static void
begin_compare_sort(EunoSort *sort)
{
	TupleDesc	source = RelationGetDescr(sort->index);
	TupleDesc	tupdesc = CreateTemplateTupleDesc(source->natts + 1);
	SortCoordinate coordinate = NULL;

	sort->natts = source->natts;
	for (int i = 1; i <= source->natts; i++)
		TupleDescCopyEntry(tupdesc, i, source, i);
	TupleDescInitEntry(tupdesc, source->natts + 1, "tid", INT8OID, -1, 0);
	sort->input = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	sort->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);

	if (sort->share)
	{
		coordinate = palloc0(sizeof(SortCoordinateData));
		coordinate->isWorker = true;
		coordinate->nParticipants = -1;
		coordinate->sharedsort = sort->share->tuplesort;
	}
	sort->state = begin_tuplesort(sort, coordinate);
}

EunoSort *
euno_sort_begin(const EunoKeySchema *schema, Relation index, int work_mem_kb,
				EunoSortShare *share)
{
	EunoSort   *sort = palloc0(sizeof(EunoSort));

	sort->schema = schema;
	sort->order = euno_key_order(schema);
	sort->form_buffer = palloc(EUNO_KEY_FORM_BYTES);
	sort->share = share;
	sort->work_mem_kb = work_mem_kb;
	sort->index = index;
	if (sort->order == EUNO_ORDER_BYTES)
	{
		sort->ordered = true;
		sort->bytes = euno_bytesort_begin(work_mem_kb,
										  share ? &share->files->fs : NULL,
										  share ? share->participant : 0);
	}
	else
		begin_compare_sort(sort);
	return sort;
}

int
euno_sort_export(EunoSort *sort)
{
	if (sort->order == EUNO_ORDER_BYTES)
		return euno_bytesort_export(sort->bytes);
	tuplesort_performsort(sort->state);
	return 1;
}

void
euno_sort_import(EunoSort *sort, int participant, int nruns)
{
	if (sort->order == EUNO_ORDER_BYTES)
		euno_bytesort_import(sort->bytes, participant, nruns);
	else
		sort->imported++;
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
		euno_bytesort_add(sort->bytes, &entry);
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
euno_sort_add_tuple(Relation index, ItemPointer tid, Datum *values,
					bool *isnull, bool alive, void *sort)
{
	euno_sort_add(sort, values, isnull, euno_tid_pack(tid));
}

void
euno_sort_add_root(void *sort, ItemPointer root, Datum *values, bool *isnull,
				   bool visible)
{
	euno_sort_add(sort, values, isnull, euno_tid_pack(root));
}

void
euno_sort_own(EunoSort *sort)
{
	if (sort->own_sorted)
		return;
	if (sort->order == EUNO_ORDER_BYTES)
		euno_bytesort_sort_memory(sort->bytes);
	else
		tuplesort_performsort(sort->state);
	sort->own_sorted = true;
}

void
euno_sort_perform(EunoSort *sort)
{
	euno_sort_own(sort);
	if (sort->order == EUNO_ORDER_BYTES)
	{
		euno_bytesort_perform(sort->bytes);
		return;
	}
	if (sort->share)
	{
		/* That was our own part; now merge everybody's. */
		SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));

		tuplesort_end(sort->state);
		coordinate->isWorker = false;
		coordinate->nParticipants = sort->imported + 1;
		coordinate->sharedsort = sort->share->tuplesort;
		sort->state = begin_tuplesort(sort, coordinate);
		tuplesort_performsort(sort->state);
	}
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
		return euno_bytesort_next(sort->bytes, entry);

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
	if (sort->order == EUNO_ORDER_BYTES)
		euno_bytesort_end(sort->bytes);
	else
	{
		tuplesort_end(sort->state);
		ExecDropSingleTupleTableSlot(sort->input);
		ExecDropSingleTupleTableSlot(sort->slot);
	}
	pfree(sort->form_buffer);
	pfree(sort);
}
