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
#include "am/euno_debug.h"

static relopt_kind euno_relopt_kind;

static relopt_enum_elt_def structures[] = {
	{"bptree", EUNO_STRUCTURE_BPTREE},
	{"art", EUNO_STRUCTURE_ART},
	{"auto", EUNO_STRUCTURE_AUTO},
	{NULL, 0}
};

static relopt_enum_elt_def syncs[] = {
	{"olc", EUNO_SYNC_OLC},
	{"rowex", EUNO_SYNC_ROWEX},
	{NULL, 0}
};

/* As PostgreSQL's options that may be "auto". */
static relopt_enum_elt_def replicates[] = {
	{"auto", EUNO_REPLICATE_AUTO},
	{"on", EUNO_REPLICATE_ON},
	{"off", EUNO_REPLICATE_OFF},
	{"true", EUNO_REPLICATE_ON},
	{"false", EUNO_REPLICATE_OFF},
	{"yes", EUNO_REPLICATE_ON},
	{"no", EUNO_REPLICATE_OFF},
	{"1", EUNO_REPLICATE_ON},
	{"0", EUNO_REPLICATE_OFF},
	{NULL, 0}
};

/*
 * Once, when the library is loaded.  ALTER TABLE looks for the lock that an
 * option needs by its name alone, among the options of all kinds of relations:
 * a stronger lock than the server's for "fillfactor" would be taken on every
 * table and btree.
 */
void
euno_options_init(void)
{
	euno_relopt_kind = add_reloption_kind();
	add_int_reloption(euno_relopt_kind, "fillfactor",
					  "How full leaves are packed by a build, in percent",
					  EUNO_DEFAULT_FILLFACTOR, EUNO_MIN_FILLFACTOR, 100,
					  ShareUpdateExclusiveLock);
	add_enum_reloption(euno_relopt_kind, "structure",
					   "The tree that holds the index",
					   structures, EUNO_STRUCTURE_BPTREE,
					   "Valid values are \"bptree\", \"art\", and \"auto\".",
					   AccessExclusiveLock);
	add_enum_reloption(euno_relopt_kind, "sync",
					   "How readers of a radix tree get along with writers",
					   syncs, EUNO_SYNC_UNSET,
					   "Valid values are \"olc\" and \"rowex\".",
					   AccessExclusiveLock);
	add_enum_reloption(euno_relopt_kind, "replicate",
					   "Whether each domain has inner nodes of its own",
					   replicates, EUNO_REPLICATE_AUTO,
					   "Valid values are \"auto\", \"on\", and \"off\".",
					   AccessExclusiveLock);
}

bytea *
eunooptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{.optname = "fillfactor", .opttype = RELOPT_TYPE_INT,
			.offset = offsetof(EunoOptions, fillfactor)},
		{.optname = "structure", .opttype = RELOPT_TYPE_ENUM,
			.offset = offsetof(EunoOptions, structure)},
		{.optname = "sync", .opttype = RELOPT_TYPE_ENUM,
			.offset = offsetof(EunoOptions, sync)},
		{.optname = "replicate", .opttype = RELOPT_TYPE_ENUM,
			.offset = offsetof(EunoOptions, replicate)},
	};

	return (bytea *) build_reloptions(reloptions, validate, euno_relopt_kind,
									  sizeof(EunoOptions),
									  table, lengthof(table));
}

const EunoOptions *
euno_options(Relation index)
{
	static const EunoOptions defaults = {
		.fillfactor = EUNO_DEFAULT_FILLFACTOR,
		.structure = EUNO_STRUCTURE_BPTREE,
		.sync = EUNO_SYNC_UNSET,
		.replicate = EUNO_REPLICATE_AUTO
	};

	return index->rd_options != NULL ?
		(const EunoOptions *) index->rd_options : &defaults;
}

EunoReplicate
euno_replicate(Relation index)
{
	EunoReplicate replicate = euno_options(index)->replicate;

	if (replicate == EUNO_REPLICATE_AUTO &&
		euno_debug_copies != EUNO_COPIES_BY_USE)
		return EUNO_REPLICATE_ON;
	return replicate;
}

void
euno_options_check(Relation index)
{
	int			column = euno_key_opaque_column(euno_index_open(index)->schema);
	const EunoOptions *options = euno_options(index);	/* opening may free it */

	if (column >= 0 && options->structure == EUNO_STRUCTURE_ART)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot have the structure \"art\"",
						RelationGetRelationName(index)),
				 errdetail("There is no encoding of column \"%s\" as bytes in the order of its operator class and collation.",
						   NameStr(TupleDescAttr(RelationGetDescr(index), column)->attname)),
				 errhint("Use the structure \"bptree\", or for text the collation \"C\" or a pattern operator class.")));
	if (options->sync != EUNO_SYNC_UNSET &&
		options->structure == EUNO_STRUCTURE_BPTREE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("index \"%s\" cannot have the option \"sync\"",
						RelationGetRelationName(index)),
				 errdetail("The structure \"bptree\" has only one kind of synchronization."),
				 errhint("Use the structure \"art\" or \"auto\", or omit \"sync\".")));
}
