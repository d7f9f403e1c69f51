/*-------------------------------------------------------------------------
 *
 * scan_match.c
 *	  Checking what the range of a scan does not say.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/scan_private.h"

/*
 * The key alone decides: operators cannot tell a value from its decoded
 * encoding, which loses only what the opclass calls equal.
 */
bool
euno_scan_matches(EunoScanPlan *plan, const uint8_t *key, uint32_t keylen)
{
	if (plan->limit_cols > 0 && !euno_scan_within_limits(plan, key, keylen))
		return false;
	if (plan->nresidual == 0)
		return true;
	euno_key_deform_prefix(plan->schema, key, keylen, plan->residual_cols,
						   plan->scratch, plan->values, plan->isnull);

	for (int i = 0; i < plan->nresidual; i++)
	{
		ScanKey		want = plan->residual[i];
		int			column = want->sk_attno - 1;

		/* sk_func need not be set in tests for NULL */
		if (want->sk_flags & SK_SEARCHNULL)
		{
			if (!plan->isnull[column])
				return false;
		}
		else if (plan->isnull[column])
			return false;
		else if (want->sk_flags & SK_SEARCHARRAY)
		{
			if (!euno_scan_in_array(&plan->schema->cols[column],
									&plan->arrays[want - plan->own_keys],
									want, plan->values[column]))
				return false;
		}
		else if (!(want->sk_flags & SK_SEARCHNOTNULL) &&
				 !DatumGetBool(FunctionCall2Coll(&want->sk_func,
												 want->sk_collation,
												 plan->values[column],
												 want->sk_argument)))
			return false;
	}
	return true;
}
