/*-------------------------------------------------------------------------
 *
 * euno_validate.c
 *	  Checks of operator classes, and their members' dependencies.
 *
 * The families have btree's structure: five strategies, and btree's support
 * functions with btree's signatures, whatever the server's version gives it.
 * Four more strategies compare a column of any type with a row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "am/euno_am.h"
#include "euno_compat.h"

#define EUNO_AM_NAME	"euno"

#define ALL_STRATEGIES	((1 << BTLessStrategyNumber) | \
						 (1 << BTLessEqualStrategyNumber) | \
						 (1 << BTEqualStrategyNumber) | \
						 (1 << BTGreaterEqualStrategyNumber) | \
						 (1 << BTGreaterStrategyNumber))

/* Checks one support function; tells the user and returns false if bad. */
static bool
validate_function(const char *family, Form_pg_amproc member)
{
	Oid			left = member->amproclefttype;
	Oid			right = member->amprocrighttype;
	bool		ok;

	switch (member->amprocnum)
	{
		case BTORDER_PROC:
			ok = check_amproc_signature(member->amproc, INT4OID, true,
										2, 2, left, right);
			break;
		case BTSORTSUPPORT_PROC:
			ok = check_amproc_signature(member->amproc, VOIDOID, true,
										1, 1, INTERNALOID);
			break;
		case BTINRANGE_PROC:
			ok = check_amproc_signature(member->amproc, BOOLOID, true,
										5, 5, left, left, right,
										BOOLOID, BOOLOID);
			break;
		case BTEQUALIMAGE_PROC:
			ok = check_amproc_signature(member->amproc, BOOLOID, true,
										1, 1, OIDOID);
			break;
		case BTOPTIONS_PROC:
			ok = check_amoptsproc_signature(member->amproc);
			break;
		case EUNO_SKIPSUPPORT_PROC:
			ok = check_amproc_signature(member->amproc, VOIDOID, true,
										1, 1, INTERNALOID);
			break;
		default:
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s contains function %s with invalid support number %d",
							family, EUNO_AM_NAME,
							format_procedure(member->amproc),
							member->amprocnum)));
			return false;
	}

	if (!ok)
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s contains function %s with wrong signature for support number %d",
						family, EUNO_AM_NAME,
						format_procedure(member->amproc),
						member->amprocnum)));
	return ok;
}

/* Checks one operator; tells the user and returns false if bad. */
static bool
validate_operator(const char *family, Form_pg_amop member)
{
	bool		row = member->amopstrategy > BTMaxStrategyNumber;
	bool		ok = true;

	if (member->amopstrategy < 1 || member->amopstrategy > EUNO_NSTRATEGIES ||
		row != (member->amoplefttype == ANYELEMENTOID &&
				member->amoprighttype == RECORDOID))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s contains operator %s with invalid strategy number %d",
						family, EUNO_AM_NAME,
						format_operator(member->amopopr),
						member->amopstrategy)));
		ok = false;
	}
	if (member->amoppurpose != AMOP_SEARCH ||
		OidIsValid(member->amopsortfamily))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s contains invalid ORDER BY specification for operator %s",
						family, EUNO_AM_NAME,
						format_operator(member->amopopr))));
		ok = false;
	}
	if (!check_amop_signature(member->amopopr, BOOLOID, member->amoplefttype,
							  member->amoprighttype))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s contains operator %s with wrong signature",
						family, EUNO_AM_NAME,
						format_operator(member->amopopr))));
		ok = false;
	}
	return ok;
}

/*
 * Checks that each pair of types has all its operators and a comparator, that
 * every combination of the family's types is such a pair, and that the
 * opclass's own type is among them.
 */
static bool
validate_groups(const char *family, const char *opclass, Oid intype,
				List *groups)
{
	List	   *types = NIL;
	int			pairs = 0;
	bool		found = false;
	bool		ok = true;
	ListCell   *lc;

	foreach(lc, groups)
	{
		OpFamilyOpFuncGroup *group = (OpFamilyOpFuncGroup *) lfirst(lc);

		/* An in_range offset's type need not be one the family orders */
		if (group->operatorset == 0 &&
			group->functionset == (UINT64CONST(1) << BTINRANGE_PROC))
			continue;

		/* What compares with rows comes with no types of its own */
		if (group->lefttype == ANYELEMENTOID && group->righttype == RECORDOID)
			continue;

		pairs++;
		if (group->lefttype == intype && group->righttype == intype)
			found = true;
		types = list_append_unique_oid(types, group->lefttype);
		types = list_append_unique_oid(types, group->righttype);

		if (group->operatorset != ALL_STRATEGIES)
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s is missing operator(s) for types %s and %s",
							family, EUNO_AM_NAME,
							format_type_be(group->lefttype),
							format_type_be(group->righttype))));
			ok = false;
		}
		if ((group->functionset & (1 << BTORDER_PROC)) == 0)
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator family \"%s\" of access method %s is missing support function for types %s and %s",
							family, EUNO_AM_NAME,
							format_type_be(group->lefttype),
							format_type_be(group->righttype))));
			ok = false;
		}
	}

	if (!found)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of operator family \"%s\" of access method %s is missing operator(s)",
						opclass, family, EUNO_AM_NAME)));
		ok = false;
	}
	if (pairs != list_length(types) * list_length(types))
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator family \"%s\" of access method %s is missing cross-type operator(s)",
						family, EUNO_AM_NAME)));
		ok = false;
	}
	return ok;
}

/*
 * amvalidate: checks the operator class and all of its family.  Says what is
 * wrong in INFO messages.
 */
bool
euno_validate(Oid opclassoid)
{
	bool		ok = true;
	HeapTuple	classtup;
	HeapTuple	familytup;
	Form_pg_opclass class;
	const char *family;
	CatCList   *operators;
	CatCList   *functions;

	classtup = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	if (!HeapTupleIsValid(classtup))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(classtup);

	familytup = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(familytup))
		elog(ERROR, "cache lookup failed for operator family %u",
			 class->opcfamily);
	family = NameStr(((Form_pg_opfamily) GETSTRUCT(familytup))->opfname);

	operators = SearchSysCacheList1(AMOPSTRATEGY,
									ObjectIdGetDatum(class->opcfamily));
	functions = SearchSysCacheList1(AMPROCNUM,
									ObjectIdGetDatum(class->opcfamily));

	for (int i = 0; i < functions->n_members; i++)
		if (!validate_function(family,
							   (Form_pg_amproc) GETSTRUCT(&functions->members[i]->tuple)))
			ok = false;
	for (int i = 0; i < operators->n_members; i++)
		if (!validate_operator(family,
							   (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple)))
			ok = false;
	if (!validate_groups(family, NameStr(class->opcname), class->opcintype,
						 identify_opfamily_groups(operators, functions)))
		ok = false;

	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(familytup);
	ReleaseSysCache(classtup);
	return ok;
}

/* The access method that an operator family belongs to. */
static Oid
family_method(Oid opfamilyoid)
{
	HeapTuple	tup = SearchSysCache1(OPFAMILYOID,
									  ObjectIdGetDatum(opfamilyoid));
	Oid			method;

	if (!HeapTupleIsValid(tup))
		elog(ERROR, "cache lookup failed for operator family %u", opfamilyoid);
	method = ((Form_pg_opfamily) GETSTRUCT(tup))->opfmethod;
	ReleaseSysCache(tup);
	return method;
}

/*
 * amadjustmembers: who depends on whom.  The operators and the comparator of
 * an opclass's own type belong to the opclass, and go with it; cross-type
 * members, optional support functions and members of types without an opclass
 * are loose in the family.
 */
void
euno_adjustmembers(Oid opfamilyoid, Oid opclassoid, List *operators,
				   List *functions)
{
	Oid			method;
	Oid			intype = InvalidOid;
	ListCell   *lc;

	if (OidIsValid(opclassoid))
	{
		/* CREATE OPERATOR CLASS has just made it, and its family perhaps */
		CommandCounterIncrement();
		intype = get_opclass_input_type(opclassoid);
	}
	method = family_method(opfamilyoid);

	foreach(lc, list_concat_copy(operators, functions))
	{
		OpFamilyMember *member = (OpFamilyMember *) lfirst(lc);
		bool		loose = member->lefttype != member->righttype ||
			(member->is_func && member->number != BTORDER_PROC);

		if (!loose && member->lefttype != intype)
		{
			/* Remembered even if there is none */
			intype = member->lefttype;
			opclassoid = opclass_for_family_datatype(method, opfamilyoid,
													 intype);
		}
		if (!loose && OidIsValid(opclassoid))
		{
			member->ref_is_hard = true;
			member->ref_is_family = false;
			member->refobjid = opclassoid;
		}
		else
		{
			member->ref_is_hard = false;
			member->ref_is_family = true;
			member->refobjid = opfamilyoid;
		}
	}
}
