# Insert.pm: rows into tables with one index and with five, and their WAL; updates
# of a few rows; VACUUM.
#
# Each access method has a table of its own, which grows from round to round;
# "none" is the table alone.

package Insert;

use strict;
use warnings;
use Bench;

my $five = [qw(a b c d e)];
my $five_columns = 'a int8, b int8, c int8, d int8, e int8';

# measure => [columns, those with an index, values of row n]
my %insert = (
	'insert random int8' => ['id int8', ['id'], 'hashint8extended(n, 7)'],
	'insert random uuid' => ['id uuid', ['id'], 'md5(n::text)::uuid'],
	'insert Zipf 0.99 int8' => ['id int8', ['id'],
		"floor(((hashint8extended(n, 7) & 1048575) / 1048576.0 * ($run{rows} ^ 0.01 - 1) + 1) ^ 100)::int8 * 7919 % $run{rows}"],
	'insert ascending int8' => ['id int8', ['id'], 'n'],
	'insert random, 5 indexes' => [$five_columns, $five, join(', ', map { "hashint8extended(n, $_)" } 1 .. 5)],
	'insert ascending, 5 indexes' => [$five_columns, $five, join(', ', ('n') x 5)]);
my $batch = int($run{rows} / 20);

# One of 100 rows gets another value in one of two indexed columns, in a transaction of
# its own: dead versions of few rows, which lookups have to pass.
my $hot = 'update of one of 100 hot rows';
my $hot_rows = $run{rows} < 50000 ? $run{rows} : 50000;
my $hot_updates = int($run{rows} / 100);

# A tenth of the rows is deleted, VACUUM removes them, and as many come again.
my $vacuum = 'VACUUM of 10 percent, random int8, a row';
my $vacuum_rows = int($run{rows} / 4);

sub measures
{
	return grep { wants_any("$_, a row", "WAL of $_, a row") } sort keys %insert;
}

sub table_of
{
	my ($measure, $am) = @_;

	return "ins_$am" . ($measure =~ s/\W/_/gr);
}

sub load_hot
{
	say_so("loading for: $hot");
	for my $am (methods(qw(btree euno art)))
	{
		sql("CREATE TABLE hot_$am (aid int, abalance int, filler char(84)) WITH (autovacuum_enabled = off)",
			"INSERT INTO hot_$am SELECT n, n % 5000, '' FROM generate_series(1, $hot_rows) n",
			map { "CREATE INDEX ON hot_$am " . index_on($am, $_) } qw(aid abalance));
	}
	return;
}

sub run_hot
{
	my ($round) = @_;

	say_so("round $round: $hot");
	for my $am (turns($round, qw(btree euno art)))
	{
		my @results = session('SET synchronous_commit = off', "SELECT count(*) FROM hot_$am",
			"DO \$\$ BEGIN FOR i IN 1 .. $hot_updates LOOP UPDATE hot_$am SET abalance = abalance + i % 100 + 1"
			  . " WHERE aid = i * 37 % 100 + 1; COMMIT; END LOOP; END \$\$");
		note($hot, 'us', $am, $results[2][0] * 1000 / $hot_updates);
	}
	return;
}

sub load_vacuum
{
	say_so("loading for: $vacuum");
	for my $am (methods(qw(none btree euno art)))
	{
		sql("CREATE TABLE vacuum_$am (id int8, n int8) WITH (autovacuum_enabled = off)",
			"INSERT INTO vacuum_$am SELECT hashint8extended(n, 7), n FROM generate_series(1, $vacuum_rows) n",
			$am eq 'none' ? () : "CREATE INDEX ON vacuum_$am " . index_on($am, 'id'));
	}
	return;
}

sub run_vacuum
{
	my ($round) = @_;

	say_so("round $round: $vacuum");
	for my $am (turns($round, qw(none btree euno art)))
	{
		my @results = session("DELETE FROM vacuum_$am WHERE n % 10 = $round % 10", 'CHECKPOINT', "VACUUM (PARALLEL 0, INDEX_CLEANUP ON) vacuum_$am",
			"INSERT INTO vacuum_$am SELECT hashint8extended(n, 7 + $round), n FROM generate_series(1, $vacuum_rows) n WHERE n % 10 = $round % 10");
		note($vacuum, 'us', $am, $results[2][0] * 1000 / $vacuum_rows);
	}
	return;
}

# Tables that already have rows/2 rows.
sub load
{
	load_hot() if wants($hot);
	load_vacuum() if wants($vacuum);
	for my $measure (measures())
	{
		my ($columns, $keys, $values) = @{ $insert{$measure} };

		say_so("loading for: $measure");
		for my $am (methods(qw(none btree euno art)))
		{
			my $table = table_of($measure, $am);

			sql("CREATE TABLE $table ($columns, n int8)",
				"INSERT INTO $table SELECT $values, n FROM generate_series(1, $run{rows} / 2) n",
				$am eq 'none' ? () : map { "CREATE INDEX ON $table " . index_on($am, $_) } @$keys);
		}
	}
	sql('VACUUM ANALYZE');
	return;
}

sub run_round
{
	my ($round) = @_;
	my $first = int($run{rows} / 2) + ($round - 1) * $batch;

	for my $measure (measures())
	{
		my ($columns, undef, $values) = @{ $insert{$measure} };

		say_so("round $round: $measure");
		sql("CREATE UNLOGGED TABLE source ($columns, n int8)",
			"INSERT INTO source SELECT $values, n FROM generate_series($first + 1, $first + $batch) n");
		for my $am (turns($round, qw(none btree euno art)))
		{
			my @results = session('CHECKPOINT', 'SELECT count(*) FROM source', 'SELECT pg_current_wal_insert_lsn()',
				'INSERT INTO ' . table_of($measure, $am) . ' TABLE source', 'SELECT pg_current_wal_insert_lsn()');
			note("$measure, a row", 'us', $am, $results[3][0] * 1000 / $batch) if wants("$measure, a row");
			my $wal = "WAL of $measure, a row";
			note($wal, 'bytes', $am, sql("SELECT pg_wal_lsn_diff('$results[4][1]', '$results[2][1]')") / $batch) if wants($wal);
		}
		sql('DROP TABLE source');
	}
	run_hot($round) if wants($hot);
	run_vacuum($round) if wants($vacuum);
	return;
}

# Both must have what was inserted.
sub check
{
	for my $measure (measures())
	{
		my ($key) = @{ $insert{$measure}[1] };

		for my $am (methods(qw(btree euno art)))
		{
			my $table = table_of($measure, $am);
			my ($answer) = sql('SET enable_seqscan = off; SET enable_bitmapscan = off',
				"SELECT count(*) FROM (SELECT $key FROM $table ORDER BY $key OFFSET 0) x");
			my $all = int($run{rows} / 2) + $run{rounds} * $batch;
			die "$measure, $am: $answer of $all rows\n" if $answer != $all;
		}
	}
	for my $am (wants($hot) ? methods(qw(btree euno art)) : ())
	{
		my ($answer) = sql('SET enable_seqscan = off; SET enable_bitmapscan = off',
			"SELECT count(*) FROM (SELECT abalance FROM hot_$am ORDER BY abalance OFFSET 0) x");
		die "$hot, $am: $answer of $hot_rows rows\n" if $answer != $hot_rows;
	}
	for my $am (wants($vacuum) ? methods(qw(btree euno art)) : ())
	{
		my ($answer) = sql('SET enable_seqscan = off; SET enable_bitmapscan = off',
			"SELECT count(*) FROM (SELECT id FROM vacuum_$am ORDER BY id OFFSET 0) x");
		die "$vacuum, $am: $answer of $vacuum_rows rows\n" if $answer != $vacuum_rows;
	}
	return;
}

1;
