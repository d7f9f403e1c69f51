/*-------------------------------------------------------------------------
 *
 * euno_options.c
 *	  CREATE INDEX ... USING euno (...) WITH (...).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"

#include "am/euno_am.h"

static relopt_kind euno_relopt_kind;

static void
validate_structure(const char *value)
{
	if (value != NULL && strcmp(value, "bptree") != 0 &&
		strcmp(value, "art") != 0 && strcmp(value, "auto") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"structure\" option: \"%s\"", value),
				 errdetail("Valid values are \"bptree\", \"art\", and \"auto\".")));
}

static void
validate_sync(const char *value)
{
	if (value != NULL && strcmp(value, "olc") != 0 &&
		strcmp(value, "rowex") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"sync\" option: \"%s\"", value),
				 errdetail("Valid values are \"olc\" and \"rowex\".")));
}

static void
validate_replicate(const char *value)
{
	if (value != NULL && strcmp(value, "auto") != 0 &&
		strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"replicate\" option: \"%s\"", value),
				 errdetail("Valid values are \"auto\", \"on\", and \"off\".")));
}

/* Once, when the library is loaded. */
void
euno_options_init(void)
{
	euno_relopt_kind = add_reloption_kind();
	add_int_reloption(euno_relopt_kind, "fillfactor",
					  "How full leaves are packed by a build, in percent",
					  EUNO_DEFAULT_FILLFACTOR, EUNO_MIN_FILLFACTOR, 100,
					  AccessExclusiveLock);
	add_string_reloption(euno_relopt_kind, "structure",
						 "The tree that holds the index",
						 "bptree", validate_structure, AccessExclusiveLock);
	add_string_reloption(euno_relopt_kind, "sync",
						 "How readers of a radix tree get along with writers",
						 NULL, validate_sync, AccessExclusiveLock);
	add_string_reloption(euno_relopt_kind, "replicate",
						 "Whether each domain has inner nodes of its own",
						 "auto", validate_replicate, AccessExclusiveLock);
}

bytea *
eunooptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{.optname = "fillfactor", .opttype = RELOPT_TYPE_INT,
			.offset = offsetof(EunoOptions, fillfactor)},
		{.optname = "structure", .opttype = RELOPT_TYPE_STRING,
			.offset = offsetof(EunoOptions, structure_offset)},
		{.optname = "sync", .opttype = RELOPT_TYPE_STRING,
			.offset = offsetof(EunoOptions, sync_offset)},
		{.optname = "replicate", .opttype = RELOPT_TYPE_STRING,
			.offset = offsetof(EunoOptions, replicate_offset)},
	};

	return (bytea *) build_reloptions(reloptions, validate, euno_relopt_kind,
									  sizeof(EunoOptions),
									  table, lengthof(table));
}

EunoStructure
euno_structure(Relation index)
{
	EunoOptions *options = (EunoOptions *) index->rd_options;
	const char *structure = NULL;

	if (options != NULL)
		structure = GET_STRING_RELOPTION(options, structure_offset);
	if (structure == NULL || strcmp(structure, "bptree") == 0)
		return EUNO_STRUCTURE_BPTREE;
	return strcmp(structure, "art") == 0 ? EUNO_STRUCTURE_ART :
		EUNO_STRUCTURE_AUTO;
}

/* The option "sync"; NULL if it was not given. */
const char *
euno_sync(Relation index)
{
	EunoOptions *options = (EunoOptions *) index->rd_options;

	return options != NULL ? GET_STRING_RELOPTION(options, sync_offset) : NULL;
}

/* Is each domain to have inner nodes of its own? */
EunoReplicate
euno_replicate(Relation index)
{
	EunoOptions *options = (EunoOptions *) index->rd_options;
	const char *replicate = NULL;

	if (options != NULL)
		replicate = GET_STRING_RELOPTION(options, replicate_offset);
	if (replicate == NULL || strcmp(replicate, "auto") == 0)
		return euno_debug_copies == EUNO_COPIES_BY_USE ? EUNO_REPLICATE_AUTO :
			EUNO_REPLICATE_ON;
	return strcmp(replicate, "on") == 0 ? EUNO_REPLICATE_ON :
		EUNO_REPLICATE_OFF;
}

int
euno_fillfactor(Relation index)
{
	EunoOptions *options = (EunoOptions *) index->rd_options;

	return options ? options->fillfactor : EUNO_DEFAULT_FILLFACTOR;
}

void
euno_options_check(Relation index)
{
	EunoStructure structure = euno_structure(index);
	int			column = euno_key_opaque_column(euno_index_open(index)->schema);

	if (column >= 0 && structure == EUNO_STRUCTURE_ART)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot have the structure \"art\"",
						RelationGetRelationName(index)),
				 errdetail("There is no encoding of column \"%s\" as bytes in the order of its operator class and collation.",
						   NameStr(TupleDescAttr(RelationGetDescr(index), column)->attname)),
				 errhint("Use the structure \"bptree\", or for text the collation \"C\" or a pattern operator class.")));
	if (euno_sync(index) != NULL && structure == EUNO_STRUCTURE_BPTREE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("index \"%s\" cannot have the option \"sync\"",
						RelationGetRelationName(index)),
				 errdetail("The structure \"bptree\" has only one kind of synchronization."),
				 errhint("Use the structure \"art\" or \"auto\", or omit \"sync\".")));
}
