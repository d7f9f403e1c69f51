/*-------------------------------------------------------------------------
 *
 * key_enum.c
 *	  The places of an enum's labels.
 *
 * A label's place is its pg_enum.enumsortorder, turned into a number of the
 * same order.  ALTER TYPE ... ADD VALUE gives a new label one between those of
 * its neighbors, and changes no other: should it have to, for there is none
 * between them, it is refused while there are euno indexes on the type
 * (am/euno_labels.c).  So what one process finds in pg_enum is what every other
 * one finds, and what the keys in a tree were made of.
 *
 * Each process keeps the labels that it has read.  One that it does not know
 * may have been added since, so it looks again, and with a new snapshot: an
 * entry of a tree can be newer than the statement.  It also does so when
 * pg_enum has changed, for places may differ from those of a transaction that
 * was rolled back, or from those that a type without euno indexes had.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_enum.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "key/key_private.h"

/* A type's first read makes room for this many labels. */
#define FIRST_LABELS	16

/* Of this process, by type; they are never given back. */
static HTAB *known_types = NULL;

/* How often pg_enum has changed, for all that this process knows. */
static uint64 changes = 1;

static void
note_change(Datum arg, int cache, uint32 hash)
{
	changes++;
}

EunoLabels *
euno_labels_of(Oid type)
{
	EunoLabels *labels;
	bool		found;

	if (known_types == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid),
		.entrysize = sizeof(EunoLabels)};

		known_types = hash_create("euno labels", FIRST_LABELS, &control,
								  HASH_ELEM | HASH_BLOBS);
		CacheRegisterSyscacheCallback(ENUMOID, note_change, (Datum) 0);
	}
	labels = hash_search(known_types, &type, HASH_ENTER, &found);
	if (!found)
	{
		labels->as_of = 0;
		labels->n = 0;
		labels->by_oid = NULL;
		labels->by_place = NULL;
	}
	return labels;
}

/* Sort orders are made by adding and halving: none is NaN, or -0. */
static uint32_t
place_of(float4 order)
{
	uint32_t	bits;

	memcpy(&bits, &order, sizeof(bits));
	return bits ^ ((bits >> 31) != 0 ? UINT32_MAX : UINT32_C(1) << 31);
}

static int
compare_oids(const void *a, const void *b)
{
	Oid			x = ((const EunoLabel *) a)->oid;
	Oid			y = ((const EunoLabel *) b)->oid;

	return (x > y) - (x < y);
}

static int
compare_places(const void *a, const void *b)
{
	uint32_t	x = ((const EunoLabel *) a)->place;
	uint32_t	y = ((const EunoLabel *) b)->place;

	return (x > y) - (x < y);
}

int
euno_labels_read(Oid type, EunoLabel **result)
{
	bool		all = !OidIsValid(type);
	int			room = FIRST_LABELS;
	int			n = 0;
	EunoLabel  *labels = palloc(room * sizeof(EunoLabel));
	ScanKeyData key;
	Relation	catalog;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(type));
	catalog = table_open(EnumRelationId, AccessShareLock);
	scan = systable_beginscan(catalog, EnumTypIdSortOrderIndexId, !all, NULL,
							  all ? 0 : 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_enum row = (Form_pg_enum) GETSTRUCT(tuple);

		if (n == room)
			labels = repalloc(labels, (room *= 2) * sizeof(EunoLabel));
		labels[n].type = row->enumtypid;
		labels[n].oid = row->oid;
		labels[n++].place = place_of(row->enumsortorder);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	qsort(labels, n, sizeof(EunoLabel), compare_oids);
	*result = labels;
	return n;
}

/* Reads them anew, unless nothing has changed since the last time. */
static void
know(EunoLabels *labels, bool again)
{
	uint64		as_of = changes;
	Size		size;
	EunoLabel  *read;
	EunoLabel  *kept;
	int			n;

	if (labels->as_of == as_of && !again)
		return;

	/* Who has a lock on pg_enum already is told nothing when it is opened */
	InvalidateCatalogSnapshot();
	n = euno_labels_read(labels->type, &read);
	size = n * sizeof(EunoLabel);
	kept = MemoryContextAlloc(CacheMemoryContext, 2 * size + 1);
	if (labels->by_oid != NULL)
		pfree(labels->by_oid);
	labels->by_oid = memcpy(kept, read, size);
	labels->by_place = memcpy(kept + n, read, size);
	qsort(labels->by_place, n, sizeof(EunoLabel), compare_places);
	labels->n = n;
	labels->as_of = as_of;
	pfree(read);
}

/* The only label that may have this OID, or place; NULL: there is none. */
static inline const EunoLabel *
find(const EunoLabel *sorted, int n, uint32_t wanted, bool by_oid)
{
	const EunoLabel *low = sorted;

	if (n == 0)
		return NULL;
	while (n > 1)
	{
		const EunoLabel *middle = low + n / 2;

		low = (by_oid ? middle->oid : middle->place) <= wanted ? middle : low;
		n -= n / 2;
	}
	return (by_oid ? low->oid : low->place) == wanted ? low : NULL;
}

/* The same, of what the catalog has now. */
static const EunoLabel *
look_up(EunoLabels *labels, uint32_t wanted, bool by_oid)
{
	const EunoLabel *label;

	know(labels, false);
	label = find(by_oid ? labels->by_oid : labels->by_place, labels->n,
				 wanted, by_oid);
	if (unlikely(label == NULL))
	{
		know(labels, true);
		label = find(by_oid ? labels->by_oid : labels->by_place, labels->n,
					 wanted, by_oid);
	}
	return label;
}

uint32_t
euno_label_place(EunoLabels *labels, Oid oid)
{
	const EunoLabel *label = look_up(labels, oid, true);

	if (label == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", oid)));
	return label->place;
}

Oid
euno_label_at(EunoLabels *labels, uint32_t place)
{
	const EunoLabel *label = look_up(labels, place, false);

	return label == NULL ? InvalidOid : label->oid;
}

Oid
euno_labels_moved(const EunoLabel *before, int nbefore,
				  const EunoLabel *after, int nafter)
{
	for (int i = 0; i < nbefore; i++)
	{
		const EunoLabel *label = find(after, nafter, before[i].oid, true);

		if (label != NULL && label->place != before[i].place)
			return label->type;
	}
	return InvalidOid;
}
