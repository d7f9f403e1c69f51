#!/usr/bin/perl
#
# packages.pl DIRECTORY <PACKAGES
#
# Turns Debian's package list (apt-cache dumpavail) into two files for COPY:
# package.tsv (name, version, section, maintainer, kilobytes, bytes, md5,
# description) and dependency.tsv (package, target, kind).

use strict;
use warnings;

my $dir = shift or die "usage: packages.pl DIRECTORY\n";
open my $package, '>', "$dir/package.tsv" or die "$dir/package.tsv: $!\n";
open my $dependency, '>', "$dir/dependency.tsv" or die "$dir/dependency.tsv: $!\n";

sub field
{
	my ($value) = @_;
	return '\N' unless defined $value && $value ne '';
	$value =~ s/\\/\\\\/g;
	$value =~ s/\t/ /g;
	return $value;
}

local $/ = '';
while (my $paragraph = <STDIN>)
{
	my %field = $paragraph =~ /^([A-Za-z0-9-]+): *(.*)$/mg;
	next unless defined $field{Package} && defined $field{Version};
	print $package join("\t", map { field($_) }
		  @field{qw(Package Version Section Maintainer Installed-Size Size MD5sum Description)}), "\n";
	foreach my $kind (qw(Pre-Depends Depends Recommends Suggests))
	{
		foreach my $target (split /\s*[,|]\s*/, $field{$kind} // '')
		{
			$target =~ s/[\s(:].*//;
			print $dependency join("\t", map { field($_) } $field{Package}, $target, $kind), "\n"
			  if $target ne '';
		}
	}
}
close $package or die "$dir/package.tsv: $!\n";
close $dependency or die "$dir/dependency.tsv: $!\n";
