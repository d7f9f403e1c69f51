# Bench.pm: what the parts of "make bench" share: settings, statements, samples.
#
# The settings come from the environment, as test/bench/server_bench says.

package Bench;

use strict;
use warnings;
use Exporter 'import';
use POSIX ();
our @EXPORT = qw(%run say_so sql session note note_clients median turns methods index_on index_bytes wants wants_any
  server_time pgbench keep_apart zipf_numbers zipf_lines);

our %run = (
	rows => $ENV{EUNO_ROWS} // 2_000_000,
	rounds => $ENV{EUNO_ROUNDS} // 3,
	seconds => $ENV{EUNO_SECONDS} // 4,
	only => $ENV{EUNO_ONLY} // '',
	bin => $ENV{bin},
	clock => $ENV{EUNO_CLOCK} // 'wall',
	limit => $ENV{EUNO_LIMIT} // 0,
	out => $ENV{EUNO_OUT},
	started => time - ($ENV{EUNO_ELAPSED} // 0),
	samples => {},				# measure => { subject => [values] }
	unit => {},					# measure => unit
	order => []);				# measures as they came up
my %chosen = map { $_ => 1 } split(' ', $ENV{EUNO_METHODS} // 'none floor btree hash euno art');
my %zetas;
my %with = (
	btree => 'USING btree (%s)', hash => 'USING hash (%s)', floor => 'USING floor (%s)',
	euno => 'USING euno (%s)', art => 'USING euno (%s) WITH (structure = art)');

sub say_so
{
	printf STDERR "%4d s  %s\n", time - $run{started}, "@_";
	return;
}

# Runs statements in one session; what they print.
sub sql
{
	open(my $psql, '-|', "$run{bin}/psql", '-XAtq', '-v', 'ON_ERROR_STOP=1', map { ('-c', $_) } @_)
		or die "psql: $!\n";
	local $/ = undef;
	my $answer = <$psql> // '';
	close($psql) or die "failed: @_\n";
	$answer =~ s{\n\z}{};
	return $answer;
}

# Runs statements in one session: for each, its milliseconds by the clock that
# was chosen, and what it prints.
sub session
{
	my @statements = @_;
	my $file = "$run{out}/session.sql";
	my @results;

	open(my $f, '>', $file) or die "$file: $!\n";
	my $cpu = $run{clock} eq 'cpu' ? "\\timing off\nSELECT 'CPU: ' || pg_read_file('/proc/self/schedstat');\n" : '';
	print $f map { "$cpu\\timing on\n$_;\n$cpu\\echo \@end\n" } @statements;
	close($f);
	my $text = `$run{bin}/psql -XAtq -v ON_ERROR_STOP=1 -f $file`;
	die "failed: @statements\n" if $? != 0;
	unlink $file;
	for my $part (split /^\@end\n/m, $text)
	{
		my $ms = 0;
		$ms += $1 while $part =~ s/^Time: ([0-9.]+) ms.*\n//m;
		if ($part =~ s/^CPU: (\d+) .*\n+//m)
		{
			my $before = $1;
			$part =~ s/^CPU: (\d+) .*\n+//m or die "no processor time: $part\n";
			$ms = ($1 - $before) / 1e6;
		}
		$part =~ s/\n\z//;
		push @results, [$ms, $part];
	}
	return @results;
}

# Is this measure asked for?  Or any of these?
sub wants
{
	my ($measure) = @_;

	return $measure =~ /(?:$run{only})/;
}

sub wants_any
{
	return grep { wants($_) } @_;
}

sub note
{
	my ($measure, $unit, $subject, $value) = @_;

	push @{ $run{order} }, $measure unless exists $run{unit}{$measure};
	$run{unit}{$measure} = $unit;
	push @{ $run{samples}{$measure}{$subject} }, $value + 0;
	return;
}

sub median
{
	my @v = sort { $a <=> $b } @_;

	return @v % 2 ? $v[ $#v / 2 ] : ($v[ @v / 2 - 1 ] + $v[ @v / 2 ]) / 2;
}

# Those of these access methods that take part.
sub methods
{
	return grep { $chosen{$_} } @_;
}

# The methods of a round, each of them first in its turn.
sub turns
{
	my ($round, @ams) = @_;

	@ams = methods(@ams);
	push @ams, splice(@ams, 0, $round % @ams) if @ams;
	return $round % 2 ? reverse @ams : @ams;
}

# The end of CREATE INDEX ... ON table, for one access method.
sub index_on
{
	my ($am, $columns) = @_;

	return sprintf($with{$am}, $columns);
}

sub index_bytes
{
	my ($am, $index) = @_;

	return sql($am =~ /euno|art/ ? "SELECT euno_index_size('$index')" : "SELECT pg_relation_size('$index')");
}

# Seconds of processor time that the server has taken: all of its processes, also
# those that have ended.  These are counted with the postmaster once it knows; so
# it is read first, and all over if a process went away since.
sub server_time
{
	my ($ticks, $children, $before);

	($run{postmaster}) = split(/\n/, sql("SELECT pg_read_file('postmaster.pid')")) unless $run{postmaster};
	do
	{
		$before = $children // '';
		($ticks, $children) = (0, '');
		for my $file ("/proc/$run{postmaster}/stat", glob('/proc/[0-9]*/stat'))
		{
			open(my $f, '<', $file) or next;
			my $line = <$f> // next;
			my (undef, $parent, @fields) = split ' ', $line =~ s/.*\)//r;
			my $is_child = $parent == $run{postmaster};

			next unless $is_child || $children eq '';
			$children .= "$file ";

			# utime and stime; cutime and cstime, those of children that have ended
			$ticks += $_ for @fields[9 .. 12];
		}
	} while ($children ne $before);
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Throughput is the scheduler's as much as the server's: clients and server share
# the processors with each other and with whatever else runs, and who comes
# first decides who waits.  What the server itself takes for a transaction does
# not depend on that, so it says more of an index, and sooner.
sub note_clients
{
	my ($measure, $am, $tps, $server) = @_;

	note($measure, 'tps', $am, $tps);
	note("$measure, processor time", 'us', $am, $server) if defined $server;
	return;
}

# New sessions of the server run on one half of the processors, and pgbench on the other; or, with false,
# all on all.  Nothing is done where that is not possible.
sub keep_apart
{
	my ($apart) = @_;
	chomp(my $n = `nproc`);
	my $last = $n - 1;
	my $half = int($n / 2);

	server_time();				# it knows the postmaster then
	delete $run{clients_on};
	return if $n < 2 || system("taskset -cp " . ($apart ? "$half-$last" : "0-$last") . " $run{postmaster} >/dev/null 2>&1") != 0;
	$run{clients_on} = 'taskset -c 0-' . ($half - 1) if $apart;
	return;
}

# pgbench scripts, as [weight, text]; transactions a second, and the microseconds
# of processor time that the server has taken for one.
sub pgbench
{
	my ($clients, $scripts, @more) = @_;
	my @files;

	for my $script (@$scripts)
	{
		my ($weight, $text) = @$script;
		my $file = "$run{out}/script" . @files . '.sql';

		open(my $f, '>', $file) or die "$file: $!\n";
		print $f $text;
		close($f);
		push @files, "$file\@$weight";
	}
	my $before = server_time();
	my $on = $run{clients_on} // '';
	my $text = `$on $run{bin}/pgbench -n -M prepared -c $clients -j 2 -T $run{seconds} @more @{[map { "-f $_" } @files]} 2>&1`;
	unlink map { s/\@.*//r } @files;
	my $taken = server_time() - $before;
	die "pgbench: $text\n" if $text =~ /aborted/;
	my ($done) = $text =~ /actually processed: (\d+)/;
	return 0 if defined $done && $done == 0;	# no time but to connect
	my ($tps) = $text =~ /tps = ([0-9.]+) \(without/ or die "pgbench: $text\n";
	return ($tps, $taken * 1e6 / $done);
}

# What it takes to draw from 1 to n by Zipf's law with an exponent below 1, after
# Gray et al., "Quickly generating billion-record synthetic databases".
sub zipf_numbers
{
	my ($n, $theta) = @_;
	my $zeta = $zetas{"$n $theta"};

	if (!defined $zeta)
	{
		$zeta += 1 / $_**$theta for 1 .. $n;
		$zetas{"$n $theta"} = $zeta;
	}
	return ($zeta, (1 - (2 / $n)**(1 - $theta)) / (1 - (1 + 0.5**$theta) / $zeta), 1 / (1 - $theta));
}

# Lines of a pgbench script that set a variable to a number from 1 to n: with
# theta 0 uniform, otherwise by Zipf's law, frequent numbers anywhere.
sub zipf_lines
{
	my ($variable, $n, $theta) = @_;

	return "\\set $variable random(1, $n)\n" if $theta == 0;
	return "\\set $variable 1 + permute(random_zipfian(1, $n, $theta) - 1, $n)\n" if $theta > 1;
	my ($zeta, $eta, $power) = zipf_numbers($n, $theta);
	return "\\set u random(0, 999999999) / 1000000000.0\n"
	  . "\\set rank case when :u * $zeta < 1 then 0 when :u * $zeta < " . (1 + 0.5**$theta)
	  . " then 1 else least($n - 1, int($n * pow($eta * :u - $eta + 1, $power))) end\n"
	  . "\\set $variable 1 + permute(:rank, $n)\n";
}

1;
