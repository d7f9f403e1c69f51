# Other extensions that are in the planner's hooks, too, loaded before euno_index or
# after it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use EunoTest;

# One that has rows of the table "elsewhere" in other places, so that no index has
# them all; and the support function of a function with index conditions, which
# asks of which kind the index's operator family is.
my $source = <<'C';
#include "postgres.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_MODULE_MAGIC;

static set_rel_pathlist_hook_type previous;

static void
scan_elsewhere(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (previous)
		previous(root, rel, rti, rte);
	if (rte->rtekind == RTE_RELATION &&
		strcmp(get_rel_name(rte->relid), "elsewhere") == 0)
	{
		rel->pathlist = list_make1(create_seqscan_path(root, rel, NULL, 0));
		rel->partial_pathlist = NIL;
	}
}

void		_PG_init(void);
void
_PG_init(void)
{
	previous = set_rel_pathlist_hook;
	set_rel_pathlist_hook = scan_elsewhere;
}

PG_FUNCTION_INFO_V1(near_support);
Datum
near_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestIndexCondition))
	{
		Oid			family = ((SupportRequestIndexCondition *) request)->opfamily;

		if (!SearchSysCacheExists1(OPFAMILYOID, ObjectIdGetDatum(family)))
			elog(ERROR, "there is no operator family %u", family);
	}
	PG_RETURN_POINTER(NULL);
}
C

my $dir = PostgreSQL::Test::Utils::tempdir();
chomp(my $headers = `$ENV{PG_CONFIG} --includedir-server`);
append_to_file("$dir/neighbor.c", $source);
chmod 0755, $dir;
system_or_bail('cc', '-O1', '-fPIC', '-shared', "-I$headers", '-o', "$dir/neighbor.so", "$dir/neighbor.c");

my $node = euno_node('neighbors', '');
$node->start;
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION euno_index;
CREATE TABLE elsewhere (a int, b int);
CREATE TABLE here (a int, b int);
INSERT INTO elsewhere SELECT n, n FROM generate_series(1, 10000) n;
INSERT INTO here TABLE elsewhere;
CREATE INDEX ON elsewhere USING euno (a);
CREATE INDEX ON here USING euno (a);
ANALYZE elsewhere, here;
CREATE FUNCTION near_support(internal) RETURNS internal LANGUAGE c AS '$dir/neighbor';
CREATE FUNCTION near(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE SUPPORT near_support
	AS 'BEGIN RETURN abs(\$1) < 3; END';
SQL
foreach my $libraries ("$dir/neighbor, euno_index", "euno_index, $dir/neighbor")
{
	my $order = $libraries =~ /^euno/ ? 'loaded after' : 'loaded before';

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	$node->restart;
	ok(wait_for_state($node, 'postgres', 'ready'), "$order: the indexes are ready");
	foreach my $condition ('a > 9990', '(a, b) > (9990, 3)')
	{
		my $query = "EXPLAIN (COSTS OFF) SELECT * FROM %s WHERE $condition";

		like($node->safe_psql('postgres', sprintf($query, 'here')), qr/Index Cond/,
			"$order: $condition is an index condition");
		like($node->safe_psql('postgres', sprintf($query, 'elsewhere')), qr/^Seq Scan/,
			"$order: unless the extension takes the index's paths away");
	}
	is($node->safe_psql('postgres', 'SELECT count(*) FROM here WHERE near(a)'), '2',
		"$order: a support function finds the operator family");
}
$node->stop;

done_testing();
