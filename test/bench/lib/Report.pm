# Report.pm: the samples of "make bench" as JSON, a Markdown table and SVG plots.

package Report;

use strict;
use warnings;
use JSON::PP;
use Bench;

my %color = (btree => '#666666', euno => '#c03030', art => '#3060c0', hash => '#30a030', none => '#bbbbbb',
	floor => '#bbbbbb', bptree => '#c03030', 'art/olc' => '#3060c0', 'art/rowex' => '#8060c0',
	'bptree alone' => '#e0a0a0', 'art alone' => '#a0b0e0', array => '#666666',
	'2 domains' => '#d08030', '4 domains' => '#d0b030', congee => '#30a0a0');
my @methods = qw(none floor btree hash euno art);
my @trees = ('bptree', 'art/olc', 'art/rowex', 'bptree alone', 'art alone', 'array', '2 domains', '4 domains', 'congee');

sub machine
{
	my %cpu = map { /^(model name|cpu family|model)\s*:\s*(.*)/ ? ($1 => $2) : () } `cat /proc/cpuinfo`;
	my @caches;

	for my $cache (sort glob('/sys/devices/system/cpu/cpu0/cache/index*'))
	{
		my ($type, $level, $size) = map { s/\n//r } map { scalar `cat $cache/$_` } qw(type level size);
		push @caches, { level => $level + 0, bytes => ($size =~ s/K//r) * 1024 } unless $type eq 'Instruction';
	}
	return {
		server => $ENV{server_version} // '', revision => $ENV{revision} // 'unknown', cpus => `nproc` + 0,
		cpu => join(', ', $cpu{'model name'} // 'unknown', map { "$_ $cpu{$_}" } grep { exists $cpu{$_} } 'cpu family', 'model'), kernel => `uname -r` =~ s/\n//r, date => `date -u +%F` =~ s/\n//r, caches => \@caches,
		load => (split ' ', `cat /proc/loadavg`)[0] + 0, rows => $run{rows} + 0, rounds => $run{rounds} + 0, clock => $run{clock} };
}

sub format_number
{
	my ($v) = @_;

	return $v >= 1000 ? sprintf('%.0f', $v) : $v >= 10 ? sprintf('%.1f', $v) : $v >= 0.1 ? sprintf('%.2f', $v) : sprintf('%.3f', $v);
}

# Largest over smallest sample.
sub spread
{
	my @v = sort { $a <=> $b } @_;

	return @v && $v[0] > 0 ? sprintf('%.2f', $v[-1] / $v[0]) : '-';
}

# How many times better than another; '' if it cannot be said.
sub better
{
	my ($unit, $value, $than) = @_;

	return '' unless defined $value && $value > 0 && $than;
	return sprintf('%.2f', $unit =~ m{tps|/s|share} ? $value / $than : $than / $value);
}

# A table of medians: a column for each subject that has any, and what ratios
# says of a row of medians.
sub table
{
	my ($measures, $subjects, $titles, $ratios) = @_;
	my @present = grep {
		my $subject = $_;
		grep { exists $run{samples}{$_}{$subject} } @$measures
	} @$subjects;
	my $text = '| | unit | ' . join(' | ', @present, @$titles) . " | spread |\n|---|---|" . '---:|' x (@present + @$titles + 1) . "\n";

	for my $measure (@$measures)
	{
		my $row = $run{samples}{$measure};
		my %m = map { $_ => median(@{ $row->{$_} }) } keys %$row;
		my @spreads = map { spread(@{ $row->{$_} // [] }) } grep { /btree|euno|bptree$|olc$/ } @present;

		$text .= "| $measure | $run{unit}{$measure} | "
		  . join(' | ', (map { defined $m{$_} ? format_number($m{$_}) : '' } @present), $ratios->($run{unit}{$measure}, \%m), join(', ', @spreads)) . " |\n";
		next unless defined $m{none} && $m{btree} && $measure =~ /^insert.*, a row$/;
		my $share = sub {
			my ($am) = @_;
			return defined $m{$am} && $m{btree} > $m{none} ? sprintf('%.2f', ($m{$am} - $m{none}) / ($m{btree} - $m{none})) : '';
		};
		$text .= "| the indexes' part of it, of btree's | | " . join(' | ', (map { $_ eq 'none' ? '' : $share->($_) } @present), ('') x @$titles, '') . " |\n";
	}
	return $text;
}

sub server_table
{
	my @measures = grep { !/^(tree alone|plans), / } @{ $run{order} };
	my $ratios = sub {
		my ($unit, $m) = @_;
		return (better($unit, $m->{euno}, $m->{btree}), better($unit, $m->{art}, $m->{btree}),
			$unit eq 'us' && $m->{floor} && $m->{euno} ? sprintf('%.2f', $m->{euno} / $m->{floor}) : '');
	};

	return '' unless @measures;
	return table(\@measures, \@methods, ['euno x', 'art x', 'euno / floor'], $ratios);
}

# Queries as they were planned, by settings: how many times as long as with btree, and which took longer.
sub plan_table
{
	my (%measures, @settings);

	for my $measure (grep { /^plans, / && $run{samples}{$_}{btree} } @{ $run{order} })
	{
		my ($setting) = $measure =~ /^plans, (.*?): /;
		push @settings, $setting unless $measures{$setting};
		push @{ $measures{$setting} }, $measure;
	}
	return '' unless @settings;
	my $text = "| | queries | other plans: euno | art | time of btree's: euno | art |\n|---|---:|---:|---:|---:|---:|\n";
	my $slower = "| slower by a tenth | ms: btree | of btree's: euno | art | other plans |\n|---|---:|---:|---:|---|\n";
	for my $setting (@settings)
	{
		my (%log, %other);

		for my $measure (@{ $measures{$setting} })
		{
			my %m = map { $_ => median(@{ $run{samples}{$measure}{$_} }) } keys %{ $run{samples}{$measure} };
			my $plans = $run{plan}{$measure};
			my @others = grep { $plans->{$_} ne $plans->{btree} } grep { $m{$_} } qw(euno art);
			my %ratio = map { $_ => $m{$_} / $m{btree} } keys %m;

			$other{$_}++ for @others;
			$log{$_} += log($ratio{$_}) for keys %m;
			next unless grep { $_ > 1.1 } values %ratio;
			$slower .= "| `$measure` | " . format_number($m{btree}) . ' | ' . join(' | ', map { defined $ratio{$_} ? format_number($ratio{$_}) : '' } qw(euno art)) . " | @others |\n";
		}
		my $queries = @{ $measures{$setting} };
		$text .= "| $setting | $queries | " . join(' | ', (map { $other{$_} // 0 } qw(euno art)), map { defined $log{$_} ? format_number(exp($log{$_} / $queries)) : '' } qw(euno art)) . " |\n";
	}
	return "$text\n$slower";
}

sub tree_table
{
	my @measures = grep { /^tree alone/ && !/growth/ } @{ $run{order} };
	my $ratios = sub {
		my ($unit, $m) = @_;
		my $over = sub { my ($a, $b) = @_; return $m->{$a} && $m->{$b} && $unit eq 'ns' ? sprintf('%.2f', $m->{$a} / $m->{$b}) : ''; };
		return ($over->('bptree', 'bptree alone'), $over->('art/olc', 'art alone'));
	};

	return '' unless @measures;
	return table(\@measures, \@trees, ['bptree / alone', 'art / alone'], $ratios) =~ s/^\| tree alone, /| /mgr;
}

sub markdown
{
	my ($machine) = @_;
	my $server = server_table();
	my $plans = plan_table();
	my $trees = tree_table();
	my $text = "Revision $machine->{revision}, $machine->{date}, $machine->{cpus} processors ($machine->{cpu}), load $machine->{load} at the end; "
	  . "medians of $machine->{rounds} " . ($machine->{rounds} == 1 ? 'round' : 'rounds') . " in turns; spread: largest over smallest, of btree, euno, or of bptree, art/olc.\n";

	$text .= "\n$machine->{server}, $machine->{rows} rows, everything cached" . ($machine->{clock} eq 'cpu' ? ', times are of the processor' : '') . ". x is how many times better than btree.\n\n$server" if $server ne '';
	$text .= "\nAn application's queries as they are planned, the time a geometric mean.\n\n$plans" if $plans ne '';
	$text .= "\nThe trees alone, processor time of one thread where none are named. \"alone\" is the same source without synchronization, "
	  . "\"array\" a sorted array with binary search, \"2 domains\" and \"4 domains\" bptree with as many directories; in turns, so each begins with a cold cache, but for what is said to be \"by itself\".\n\n$trees" if $trees ne '';
	return $text;
}

# One plot: a line of [x, value] for each subject, and marks [x, text] on the x
# axis, which is logarithmic if x are numbers and has one place for each label
# otherwise.
sub svg
{
	my ($file, $title, $unit, $lines, $marks) = @_;
	my @labels = map { $_->[0] } @{ (values %$lines)[0] };
	my ($max) = sort { $b <=> $a } map { $_->[1] } map { @$_ } values %$lines;
	my %at = map { $labels[$_] => ($_ + 0.5) / @labels } 0 .. $#labels;
	my $place = sub { return 70 + 480 * $at{ $_[0] }; };
	my $y = sub { return 300 - 240 * $_[0] / ($max || 1); };

	if ($marks)
	{
		my ($low, $high) = (log($labels[0]), log($labels[-1]) || 1);
		$place = sub { return 80 + 460 * (log($_[0]) - $low) / (($high - $low) || 1); };
	}
	my $text = '<svg xmlns="http://www.w3.org/2000/svg" width="660" height="350" font-family="sans-serif" font-size="12">'
	  . '<rect width="660" height="350" fill="white"/>' . "<text x=\"70\" y=\"30\" font-size=\"15\">$title ($unit)</text>"
	  . '<path d="M70 50V300H560" fill="none" stroke="black"/>';
	for my $mark (grep { $_->[0] > $labels[0] && $_->[0] < $labels[-1] } @{ $marks // [] })
	{
		my $x = $place->($mark->[0]);
		$text .= sprintf('<path d="M%d 50V300" stroke="#cccccc" stroke-dasharray="4"/><text x="%d" y="60" fill="#888888">%s</text>', $x, $x + 3, $mark->[1]);
	}
	for my $label (@labels)
	{
		my $shown = !$marks || $label =~ /^10*$/;
		$text .= sprintf('<text x="%d" y="320" text-anchor="middle">%s</text>', $place->($label), $label) if $shown;
	}
	$text .= sprintf('<text x="64" y="%d" text-anchor="end">%s</text><path d="M66 %d H70" stroke="black"/>',
		$y->($max * $_ / 4) + 4, format_number($max * $_ / 4), $y->($max * $_ / 4)) for 0 .. 4;
	my $key = 60;
	for my $subject (sort keys %$lines)
	{
		$text .= sprintf('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/><text x="570" y="%d" fill="%s">%s</text>',
			$color{$subject}, join(' ', map { sprintf('%d,%d', $place->($_->[0]), $y->($_->[1])) } @{ $lines->{$subject} }),
			$key += 18, $color{$subject}, $subject);
	}
	open(my $f, '>', "$run{out}/$file.svg") or die "$run{out}/$file.svg: $!\n";
	print $f "$text</svg>\n";
	close($f);
	return;
}

# A plot of measures that a pattern picks; what it captures are the labels.
sub plot
{
	my ($file, $title, $pattern, $marks) = @_;
	my (%lines, $unit);

	for my $measure (grep { /$pattern/ } @{ $run{order} })
	{
		my ($label) = $measure =~ /$pattern/;
		$unit = $run{unit}{$measure};
		push @{ $lines{$_} }, [$label, median(@{ $run{samples}{$measure}{$_} })] for keys %{ $run{samples}{$measure} };
	}
	return unless %lines;
	my ($most) = sort { $b <=> $a } map { scalar @$_ } values %lines;
	delete $lines{$_} for grep { @{ $lines{$_} } < $most } keys %lines;
	svg($file, $title, $unit, \%lines, $marks);
	return;
}

# How many entries of 16 bytes, a key and a place, fill each cache.
sub cache_marks
{
	my ($machine) = @_;

	return [map { [$_->{bytes} / 16, "L$_->{level}"] } @{ $machine->{caches} }];
}

# Samples that a program wrote: measure, unit, subject and value, with tabs.
sub read_samples
{
	my ($file) = @_;

	open(my $f, '<', $file) or die "$file: $!\n";
	while (<$f>)
	{
		chomp;
		my ($measure, $unit, $subject, $value) = split /\t/;
		note("tree alone, $measure", $unit, $subject, $value);
	}
	close($f);
	return;
}

sub write_all
{
	my $machine = machine();
	my $markdown = markdown($machine);

	open(my $json, '>', "$run{out}/results.json") or die "$!\n";
	print $json JSON::PP->new->pretty->canonical->encode({ machine => $machine, units => $run{unit}, values => $run{samples}, plans => $run{plan} });
	close($json);
	plot('skew', 'select, 4 clients, by skew (Zipf)', qr/^select, 4 clients, skew (.*)/);
	plot('backends', 'insert and lookup, Zipf 0.99, by clients', qr/^insert and lookup, skew 0.99, (\d+) clients$/);
	plot('server', 'the same in the server', qr/^inserts and lookups in the server, skew 0.99, (\d+) clients$/);
	plot('growth', 'lookup in the tree alone, by entries', qr/^tree alone, growth: lookup among (\d+)/, cache_marks($machine));
	plot('wal', 'WAL after a checkpoint, a row', qr/^WAL of insert (.*), a row/);
	plot('memory', 'size of an entry', qr/^size of an entry, (.*)/);
	open(my $md, '>', "$run{out}/results.md") or die "$!\n";
	print $md $markdown;
	close($md);
	return $markdown;
}

1;
