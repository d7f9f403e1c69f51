/*-------------------------------------------------------------------------
 *
 * key_row.c
 *	  Packed rows: keys in COMPARE order, and INCLUDE columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_private.h"

void
euno_row_overrun(uint32_t off, uint32_t len)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg_internal("packed row of %u bytes ends before byte %u",
							 len, off)));
}

/*
 * One form for each varlena value, whatever toasting or assembling it has been
 * through: the shortest header that the type allows, uncompressed.  External
 * values must not stay: their TOAST rows go away with the heap tuple.
 */
static uint64_t
put_varlena(const EunoKeyColumn *col, Datum value, uint8_t *buf, uint64_t off,
			uint32_t avail)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	uint32_t	n = VARSIZE_ANY_EXHDR(v);
	bool		shorten = col->may_short &&
		n + VARHDRSZ_SHORT <= VARATT_SHORT_MAX;
	uint64_t	start = shorten ? off : att_align_nominal(off, col->attalign);
	uint64_t	next = start + n + (shorten ? VARHDRSZ_SHORT : VARHDRSZ);

	if (next <= avail)
	{
		memset(buf + off, 0, start - off);
		if (shorten)
			SET_VARSIZE_SHORT(buf + start, next - start);
		else
			SET_VARSIZE(buf + start, next - start);
		memcpy(buf + next - n, VARDATA_ANY(v), n);
	}
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return next;
}

/* Returns the row's length; its bytes are good if that is at most "avail". */
uint64_t
euno_row_put(const EunoKeyColumn *cols, int ncols, const Datum *values,
			 const bool *isnull, uint8_t *buf, uint32_t avail)
{
	uint64_t	off = (ncols + 7) / 8;

	if (off > avail)
		return off;
	memset(buf, 0, off);

	for (int i = 0; i < ncols; i++)
	{
		const EunoKeyColumn *col = &cols[i];
		uint64_t	start;
		uint64_t	next;

		if (isnull[i])
			continue;
		buf[i >> 3] |= 1 << (i & 7);
		if (col->attlen == -1)
		{
			off = put_varlena(col, values[i], buf, off, avail);
			continue;
		}

		start = att_align_nominal(off, col->attalign);
		next = att_addlength_datum(start, col->attlen, values[i]);
		if (next <= avail)
		{
			memset(buf + off, 0, start - off);
			if (col->attbyval)
				store_att_byval(buf + start, values[i], col->attlen);
			else
				memcpy(buf + start, DatumGetPointer(values[i]), next - start);
		}
		off = next;
	}
	return off;
}
