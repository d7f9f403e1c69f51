# Shared by test/bench/statement_cost and test/bench/type_cost: a private server whose
# sessions' instructions valgrind's callgrind counts.  Sourced by bash, from the top of
# the source tree, after test/lib.sh.

finish()
{
	lib_uninterrupted
	lib_kill_processes
	rm -rf "$work"
}

fail()
{
	echo "not counted: $*" >&2
	tail -n 20 "$work/server/log" >&2
	exit 1
}

# wait_for COMMAND...: until it is true, two minutes at most.
wait_for()
{
	local i

	for ((i = 0; i < 600; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.2
	done
	fail "$*"
}

# A server with the extension, which does not count yet.
prepare()
{
	command -v valgrind >/dev/null || { echo "valgrind is needed" >&2; exit 1; }
	lib_install_packages || exit 1
	work=$(mktemp -d /tmp/euno_cost.XXXXXX) || exit 1
	chmod 755 "$work"
	trap finish EXIT
	trap 'exit 130' INT TERM HUP
	make -s all >"$work/log" 2>&1 && lib_private_installation "$work/install" || { cat "$work/log" >&2; exit 1; }
	lib_server server "autovacuum = off" "statement_timeout = 0" "log_connections = on" "euno.max_memory = '500MB'" "$@" || exit 1
	"$bin/psql" -XAtq -c "CREATE EXTENSION euno_index" || exit 1
}

all_ready()
{
	[ "$("$bin/psql" -XAtqc "SELECT count(*) FROM euno_stat_indexes WHERE state <> 'ready'")" = 0 ]
}

# The server again, and what each of its processes executes in a file.
start_counting()
{
	mkdir "$work/out" && lib_give "$work/out" || fail "files"
	printf '%s\n' "#!/bin/sh" "exec valgrind --tool=callgrind --trace-children=yes --callgrind-out-file=$work/out/%p $bin/postgres \"\$@\"" >"$work/counting"
	chmod 755 "$work/counting"
	lib_server_stop "$work/server"
	lib_run "$bin/pg_ctl" -D "$work/server/data" -l "$work/server/log" -p "$work/counting" -w -t 300 start >/dev/null || fail "no server"
	wait_for all_ready
}

# To be called before a session that is counted: process numbers come back.
forget_counts()
{
	rm -f "$work/out"/*
}

# instructions FILE: of a session, whose file is written when it ends.
instructions()
{
	wait_for grep -q '^totals:' "$1"
	sed -n 's/^totals: //p' "$1"
}
