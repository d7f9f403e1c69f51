/*-------------------------------------------------------------------------
 *
 * bpt_abbreviate.c
 *	  COMPARE order: abbreviations of separators, from which heads are made.
 *
 * What they are is said outside; here they are bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "core/bptree/bpt_directory.h"

/*
 * Abbreviates a separator (8-byte aligned) to *n bytes, and zeros.
 * False if that is not possible.
 */
bool
euno_bpt_abbreviate(const EunoEnvironment *env, const EunoTree *tree,
					const uint8_t *bytes, uint32_t len, uint8_t *to,
					uint32_t *n)
{
	int			done = env->abbreviate == NULL ? -1 :
		env->abbreviate(tree->config.abbreviation, bytes, len, to);

	*n = done < 0 ? 0 : (uint32_t) done;
	memset(to + *n, 0, EUNO_ABBREVIATION + 16 - *n);
	return done >= 0;
}

/* The same of separator i of a set. */
bool
euno_bpt_abbreviate_sep(const BptSeps *set, uint32_t i, uint8_t *to,
						uint32_t *n)
{
	uint8_t		bytes[BPT_MAX_COMPOSITE + 8] __attribute__((aligned(8)));
	uint32_t	len = euno_bpt_seps_get(set, i, bytes);

	return euno_bpt_abbreviate(set->env, set->tree, bytes, len, to, n);
}

/*
 * Do the heads of a node that has just been loaded say what its
 * separators do?
 */
bool
euno_bpt_heads_match(const BptSeps *set)
{
	const BptInner *node = &set->copy.inner;
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	uint8_t		its[EUNO_ABBREVIATION + 16];
	uint32_t	plen = node->prefix_len;
	uint32_t	len;

	euno_put_word(prefix, node->prefix_word);
	if (plen > 8)
		memcpy(prefix, set->copy.bytes + node->prefix_off, plen);
	for (uint32_t i = 0; i < set->n && node->abbreviated; i++)
	{
		if (!euno_bpt_abbreviate_sep(set, i, its, &len) || len < plen ||
			memcmp(its, prefix, plen) != 0 ||
			bpt_pairs(node)[i + 1].head != euno_get_word(its + plen))
			return false;
	}
	return true;
}

/*
 * What the abbreviations of separators [a, b) have in common.  -1 if
 * one cannot be abbreviated, or there is none.  The comparator's order is not
 * that of bytes: all are looked at.
 */
int
euno_bpt_common_abbreviation(const BptSeps *set, uint32_t a, uint32_t b,
							 uint8_t *to)
{
	uint8_t		its[EUNO_ABBREVIATION + 16];
	uint32_t	same;
	uint32_t	len;

	if (a == b || !euno_bpt_abbreviate_sep(set, a, to, &same))
		return -1;
	for (uint32_t i = a + 1; i < b; i++)
	{
		if (!euno_bpt_abbreviate_sep(set, i, its, &len))
			return -1;
		same = bpt_same_bytes(to, same, its, len);
	}
	return (int) same;
}
