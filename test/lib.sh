# What the tests and benchmarks that start servers share: missing packages, an
# unprivileged user, a private copy of the installation, private servers on unix
# sockets.  Sourced by bash, from the top of the source tree.
#
# The caller sets $work to a directory of its own, and from a trap on EXIT calls
# lib_uninterrupted, lib_kill_processes, and removes that.

PG_CONFIG=${PG_CONFIG:-pg_config}

# Nothing of the caller's environment or settings may leak into the servers.
lib_clean_environment()
{
	local name

	for name in $(compgen -e); do
		case $name in
			PG_CONFIG) ;;
			PG*|LC_*) unset "$name" ;;
		esac
	done
	unset LANGUAGE CDPATH MAKEFLAGS MFLAGS MAKELEVEL
	# PostgreSQL's modules for tests in Perl take LC_ALL away.
	export LC_ALL=C.UTF-8 LANG=C.UTF-8 TZ=UTC
	umask 022
}

lib_major()
{
	"$PG_CONFIG" --version 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/'
}

# One line for each Debian package whose content is not there; with "tests", of those
# that only the tests need, too.  Looks for the thing itself, so that it is also right
# on systems with other packages.
lib_missing_packages()
{
	local major bindir

	major=$(lib_major)
	bindir=$("$PG_CONFIG" --bindir 2>/dev/null)
	command -v gcc >/dev/null && command -v make >/dev/null &&
		printf '#include <stdio.h>\n' | gcc -E - >/dev/null 2>&1 || echo build-essential
	[ -n "$major" ] && [ -e "$("$PG_CONFIG" --pgxs)" ] &&
		[ -e "$("$PG_CONFIG" --includedir-server)/postgres.h" ] ||
		echo "postgresql-server-dev-${major:-15}"
	[ -n "$bindir" ] && [ -x "$bindir/initdb" ] && [ -x "$bindir/pgbench" ] ||
		echo "postgresql-${major:-15}"
	printf '#include <numaif.h>\n' | gcc -E - >/dev/null 2>&1 || echo libnuma-dev
	# Headers of a server with ICU include its headers; their package has not
	# depended on these since Debian 13.
	printf '#include <unicode/ucol.h>\n' | gcc -E - >/dev/null 2>&1 || echo libicu-dev
	perl -MTest::More -MJSON::PP -e1 2>/dev/null && command -v prove >/dev/null || echo perl
	[ "${1:-}" = tests ] || return 0
	command -v clang >/dev/null || echo clang
	perl -MIPC::Run -e1 2>/dev/null || echo libipc-run-perl
	command -v ps >/dev/null || echo procps
}

# Installs what is missing, with "tests" for them, as root or through sudo.  Fails with
# a message that names what is missing and why it could not be had.
lib_install_packages()
{
	local missing log sudo=

	missing=$(lib_missing_packages "$@" | sort -u | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if ! command -v apt-get >/dev/null; then
		echo "needed and not found (named as Debian packages): $missing" >&2
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "needed and not found: $missing; run: apt-get install $missing" >&2
			return 1
		fi
		sudo=sudo
	fi
	echo "installing: $missing"
	log=$(mktemp)
	if ! lib_apt "$sudo" $missing >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		echo "could not install: $missing" >&2
		return 1
	fi
	rm -f "$log"
	hash -r
	missing=$(lib_missing_packages "$@" | sort -u | tr '\n' ' ')
	if [ -n "$missing" ]; then
		echo "installed, yet still not found: $missing" >&2
		return 1
	fi
}

# Debian's packages start a server of their own when they are installed; on a
# machine that had none, nobody asked for one.  Later installations may do so.
lib_apt()
{
	local sudo=$1 conf=/etc/postgresql-common/createcluster.conf ours= status

	shift
	export DEBIAN_FRONTEND=noninteractive
	$sudo apt-get -q update || return 1
	case " $* " in
		*" postgresql-"[0-9]*)
			if [ ! -e "$conf" ]; then
				$sudo apt-get -q -y --no-install-recommends install postgresql-common || return 1
				$sudo sed -ri.euno 's/^#?(create_main_cluster) .*$/\1 = false/' "$conf"
				ours=yes
			fi ;;
	esac
	$sudo apt-get -q -y --no-install-recommends install "$@"
	status=$?
	[ -z "$ours" ] || $sudo mv "$conf.euno" "$conf"
	return $status
}

# lib_run COMMAND...: as an unprivileged user, for PostgreSQL does not run as
# root; its temporary files go where lib_private_installation makes room.
# lib_give FILE...: to that user.
if [ "$(id -u)" -eq 0 ]; then
	lib_user()
	{
		if id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
	}
	lib_run()
	{
		setpriv --reuid="$(lib_user)" --regid="$(id -gn "$(lib_user)")" --init-groups \
			env HOME="$work" TMPDIR="$work/tmp" "$@"
	}
	lib_give()
	{
		chown -R "$(lib_user):$(id -gn "$(lib_user)")" "$@"
	}
else
	lib_run()
	{
		env HOME="$work" TMPDIR="$work/tmp" "$@"
	}
	lib_give()
	{
		:
	}
fi

# Makes $1 a copy of the PostgreSQL installation with this tree's euno_index in
# it, and sets $bin to its programs.  PostgreSQL finds its libraries and its
# share directory relative to the program that runs, so the programs are copied
# and the rest is links.  Nothing of the system's installation is touched, and
# two runs do not see each other's library.
lib_private_installation()
{
	local prefix=$1 bindir pkglibdir sharedir file

	bindir=$("$PG_CONFIG" --bindir)
	pkglibdir=$("$PG_CONFIG" --pkglibdir)
	sharedir=$("$PG_CONFIG" --sharedir)
	bin=$prefix$bindir
	pgxs_test=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")/test
	mkdir -p "$work/tmp" "$bin" "$prefix$pkglibdir" "$prefix$sharedir/extension" || return 1
	lib_give "$work/tmp"
	cp -L "$bindir"/* "$bin"/ || return 1
	for file in "$pkglibdir"/*; do
		case $file in
			*/euno_index.so) ;;
			*) ln -sf "$file" "$prefix$pkglibdir"/ ;;
		esac
	done
	for file in "$sharedir"/*; do
		case $file in
			*/extension) ;;
			*) ln -sf "$file" "$prefix$sharedir"/ ;;
		esac
	done
	for file in "$sharedir"/extension/*; do
		case $file in
			*/euno_index*) ;;
			*) ln -sf "$file" "$prefix$sharedir"/extension/ ;;
		esac
	done
	[ "${EUNO_AM:-euno}" != euno ] ||
		make -s install DESTDIR="$prefix" >/dev/null
}

# lib_server NAME [SETTING...]: makes and starts a server in $work/NAME, and
# points PGHOST, PGPORT, PGUSER and PGDATABASE to it.  With EUNO_DOMAINS it has
# so many domains, and every B+tree inner nodes in each of them.
lib_server()
{
	local dir=$work/$1 setting

	shift
	mkdir -p "$dir/socket" && lib_give "$dir" || return 1
	lib_run "$bin/initdb" -D "$dir/data" -U postgres -A trust -N \
		--locale=C.UTF-8 --encoding=UTF8 >"$dir/initdb.log" 2>&1 ||
		{ cat "$dir/initdb.log" >&2; return 1; }
	{
		cat test/server.conf
		echo "unix_socket_directories = '$dir/socket'"
		[ "${EUNO_AM:-euno}" = euno ] || echo "shared_preload_libraries = ''"
		[ -z "${EUNO_DOMAINS:-}" ] || printf "euno.domains = '%s'\neuno.debug_copies = all\n" "$EUNO_DOMAINS"
		for setting in "$@"; do echo "$setting"; done
	} >>"$dir/data/postgresql.conf"
	export PGHOST=$dir/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	lib_server_start "$dir"
}

lib_server_start()
{
	lib_run "$bin/pg_ctl" -D "$1/data" -l "$1/log" -w -t 300 start >"$1/pg_ctl.log" 2>&1 ||
		{ cat "$1/pg_ctl.log" "$1/log" >&2; return 1; }
}

# lib_server_stop DIRECTORY [MODE]
lib_server_stop()
{
	lib_run "$bin/pg_ctl" -D "$1/data" -m "${2:-fast}" -w -t 300 stop >/dev/null 2>&1
}

# First in what cleans up: it is not to be stopped halfway by the next signal.  Who
# ends make by one sends its children two, the second from make.
lib_uninterrupted()
{
	trap - EXIT
	trap '' INT TERM HUP
}

# Ends every process that has its working directory or its program in $work:
# the servers, and whatever a test left.  First gently, then not.
lib_kill_processes()
{
	local round pid pids cwd exe

	for round in 1 2 3 4 5 6 7 8; do
		pids=
		for pid in /proc/[0-9]*; do
			cwd=$(readlink "$pid/cwd" 2>/dev/null)
			exe=$(readlink "$pid/exe" 2>/dev/null)
			case $cwd/:$exe in
				"$work"/*|*:"$work"/*)
					[ "${pid#/proc/}" = $$ ] || pids="$pids ${pid#/proc/}" ;;
			esac
		done
		[ -n "$pids" ] || return 0
		if [ "$round" -lt 6 ]; then
			kill -CONT $pids 2>/dev/null
			kill -QUIT $pids 2>/dev/null
		else
			kill -KILL $pids 2>/dev/null
		fi
		sleep 0.3
	done
}
