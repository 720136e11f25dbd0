#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# serve.sh UNISCOPE BUILD SRCROOT: a running guest's calls over HTTP, fetched by wget and curl as
# they were from Nanos. Also exported from a session. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
case $BUILD in
/*) ;;
*) BUILD=$PWD/$BUILD ;;
esac
for p in wget curl; do
	command -v $p >/dev/null || absent "$p is not installed"
done
elf=$BUILD/lab/trace/trace-calls1-gcc-fp.elf
[ -e "$elf" ] || absent 'no lab guest to trace: gcc here does not know -mfunction-return'
cd "$T" || exit 1
server=
# They are not traced.
true_callers() {
	get trace >trace && grep -Eq ': lab_printf <-(function|phase)_[123]$' trace && ! grep -q LOST trace
}
stop_server() {
	[ -z "$server" ] || kill -INT "$server" 2>/dev/null
	[ -z "$server" ] || wait "$server"
	status=$?
	server=
	return $status
}
trap 'kill $server 2>/dev/null; end_guest; rm -rf "$T"' EXIT

start_server() { # OPTION...
	: >serve.err
	"$U" serve --ftrace -p 0 "$@" "$target" 2>serve.err &
	server=$!
	wait_for 60 grep -q 'serving http://127.0.0.1' serve.err || {
		cat serve.err
		return 1
	}
	port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/.*,\1,p' serve.err)
	base=http://127.0.0.1:$port/ftrace
	python3 "$SRC/tests/support/listens.py" "$server"
}
get() { wget -T 20 -t 1 -qO- "$base/$1"; }
answers() { [ "$(get "$1")" = "$2" ]; }
code() { # WANT CURL-ARGUMENT...: the status, and a body that was read to its end
	want=$1
	shift
	got=$(curl -m 20 -s -o body -w '%{http_code}' "$@")
	echo "$got"
	cat body
	[ "$got" = "$want" ]
}
as_nobody() { # WANT CURL-ARGUMENT...
	want=$1
	shift
	got=$(setpriv --reuid=65534 --regid=65534 --clear-groups curl -m 20 -s -o /dev/null -w '%{http_code}' "$@")
	echo "$got"
	[ "$got" = "$want" ]
}
headers() { [ "$(get trace | wc -l)" = 4 ] && get trace | head -n 1 | grep -qx '# tracer: function_graph'; }
begins() { answers tracing_on 0 && [ -z "$(get tracing_enable/on)" ] && answers tracing_on 1; }
has_calls() { get trace >trace && grep -Eq '^ 0\) .{13} \|  +[a-z_0-9]+\(\)( \{|;)$' trace; }
parses() {
	"$U" parse-trace -o rows.csv trace 2>log
	"$U" export trace -f nanos -o again 2>>log
	cat log
	! grep -q 'none that ftrace' log && [ "$(wc -l <rows.csv)" -gt 20 ] && diff -q trace again
}
stays() { # recorded no more: three at once read the same
	get tracing_enable/off && answers tracing_on 0 || return 1
	get trace >one &
	a=$!
	get trace >two &
	wait $a $! && get trace >three && cmp one two && cmp one three && [ "$(wc -l <one)" -gt 20 ]
}
piped() { # all of it once, without the header
	get trace_pipe >piped && tail -n +5 one | cmp - piped && [ -z "$(get trace_pipe)" ] && [ "$(get trace | wc -l)" = 4 ]
}
written() {
	code 200 -X PUT -d function "$base/current_tracer" && answers current_tracer function &&
		code 400 -X PUT -d nonsense "$base/current_tracer" && code 200 -d 1 "$base/tracing_on" &&
		answers tracing_on 1
}
# With its caller, as Nanos names it; and nothing of what the other tracer left.
function() {
	get trace >trace && grep -Eq '^ +tid-[0-9]+ +\[000\]  [0-9]+: [a-z_0-9]+ <-[a-z_][a-z_0-9]*$' trace &&
		! grep -q 'LOST' trace
}
cleared() {
	code 200 -X PUT -d 0 "$base/tracing_on" && code 200 -X DELETE "$base/trace" && [ "$(get trace | wc -l)" = 5 ]
}
gives_up() { # a client that goes in the middle; another that only connects
	code 200 -X PUT -d function_graph "$base/current_tracer" && get tracing_enable/on && sleep 0.5 || return 1
	curl -m 20 -s "$base/trace_pipe" | head -c 100 >/dev/null
	python3 -c "
import socket
s = socket.create_connection(('127.0.0.1', $port))
s.send(b'GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n')"
	wait_for 60 has_calls && get trace_pipe >piped && sleep 0.3 && wait_for 60 has_calls
}
crowded() { # by clients that ask for nothing, or never end asking
	python3 - "$port" <<'PY'
import socket, sys, time
parts = [b"", b"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n",
         b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"]
held = []
for i in range(60):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30))
    held[-1].sendall(parts[i % 3])
began = time.monotonic()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
s.sendall(b"GET /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\n\r\n")
first = s.recv(100)
took = time.monotonic() - began
print(first, took)
sys.exit(b" 200 " not in first or took > 15)  # those that ask for nothing are given up after 30 s
PY
}
one_owner() { # and who is switched off from outside notices, and can be switched on again
	"$U" trace start "$target" --filter lab_putc 2>log && return 1
	grep -q "being traced by process $server: " log && "$U" trace stop "$target" 2>log || { cat log; return 1; }
	wait_for 60 answers tracing_on 0 && grep -q 'somebody else changed what is traced' serve.err &&
		code 200 -X PUT -d 1 "$base/tracing_on" && code 200 -X DELETE "$base/trace" && wait_for 60 has_calls
}
untouched() { # every byte as it was: nothing is traced any more
	"$U" trace start "$target" --filter lab_putc 2>log && "$U" trace stop "$target" 2>log
}
session() {
	rm -rf s.uniscope
	"$U" trace record "$target" -d 0.2 -o s.uniscope 2>log && "$U" export s.uniscope -f nanos -o s.ftrace &&
		"$U" parse-trace s.ftrace && "$U" export s.uniscope -f csv -o s.csv || {
		cat log
		return 1
	}
	"$U" export s.ftrace -f nanos | cmp - s.ftrace
}
totals() { # as uftrace counts calls, and our csv
	rm -rf u && "$U" export s.uniscope -f uftrace -o u && uftrace report --no-pager -d u -f call |
		awk 'NR > 2 { print $2, $1 }' | sort >calls && "$U" runtime-breakdown --json s.uniscope -o b.json &&
		python3 - <<'PY'
import json
ours = {}
for part in json.load(open("b.json"))["parts"]:
    for f in part["functions"]:
        ours[f["name"]] = ours.get(f["name"], 0) + f["calls"]
theirs = {l.split()[0]: int(l.split()[1]) for l in open("calls")}
print(ours, theirs)
# Calls that were cut are in uftrace's count only.
assert sum(theirs.values()) > 20 and set(ours) <= set(theirs)
assert all(0 <= theirs[f] - ours.get(f, 0) <= 8 for f in theirs)
PY
}

for accel in $(by_default kvm "$accels"); do
	if ! boot "$accel" "$elf" ms=200000; then
		check "$accel: the guest runs" false
		continue
	fi
	check "$accel: it serves" start_server
	check "$accel: the list of files" sh -c 'wget -qO- "$1" | grep -q tracing_enable/on' sh "http://127.0.0.1:$port/ftrace"
	check "$accel: a page of them" sh -c 'wget -qO- "$1" | grep -q "<a href=\"/ftrace/trace\""' sh "http://127.0.0.1:$port/"
	check "$accel: headers only before it records" headers
	check "$accel: tracing_enable/on" begins
	check "$accel: trace has calls" wait_for 60 has_calls
	check "$accel: trace ends, and stays for several readers" stays
	cp one trace
	check "$accel: parse-trace reads it, and it is written the same again" parses
	check "$accel: trace_pipe gives it once" piped
	check "$accel: PUT and POST" written
	check "$accel: the tracer function" wait_for 60 function
	check "$accel: DELETE empties it" cleared
	check "$accel: a client that fails leaves it running" gives_up
	check "$accel: many that never ask keep nobody out" crowded
	# A gdb stub has one client.
	[ "$accel" = tcg ] || check "$accel: one tracer at a time" one_owner
	check "$accel: no web page may ask" code 403 -H 'Origin: http://example.com' "$base/tracing_enable/off"
	check "$accel: nor of another site" code 403 -H 'Sec-Fetch-Site: cross-site' "$base/trace"
	check "$accel: nor by another name" code 403 -H 'Host: example.com' "$base/trace"
	if [ "$(id -u)" = 0 ]; then
		check "$accel: another user may read" as_nobody 200 "$base/tracing_on"
		check "$accel: but change nothing" as_nobody 403 -X PUT -d 0 "$base/tracing_on"
	else
		skip "$accel: another user may read, but change nothing" 'only root can become another user'
	fi
	check "$accel: and nothing happened" answers tracing_on 1
	check "$accel: what is not there" code 404 "$base/nothing"
	check "$accel: HEAD" code 200 -I "$base/trace"
	check "$accel: HEAD of nothing" code 404 -I "$base/nothing"
	check "$accel: HEAD switches nothing" code 200 -I "$base/tracing_enable/off"
	check "$accel: it is on still" answers tracing_on 1
	check "$accel: too much to write" code 413 -X PUT -d "$(seq 100)" "$base/current_tracer"
	check "$accel: an unknown method" code 405 -X PATCH "$base/trace"
	check "$accel: Ctrl-C ends it" stop_server
	check "$accel: nothing is traced then" untouched
	check "$accel: a session as text, and back" session
	if command -v uftrace >/dev/null; then
		check "$accel: and for uftrace: calls are equal" totals
	else
		skip "$accel: and for uftrace" "uftrace is not installed"
	fi
	check "$accel: it serves again" start_server --on --filter 'lab_*'
	check "$accel: the chosen functions, at once" wait_for 60 has_calls
	check "$accel: the tracer function, of these" code 200 -X PUT -d function "$base/current_tracer"
	check "$accel: callers that are not among them" wait_for 60 true_callers
	end_guest
	ends() { wait_for 60 sh -c '! kill -0 $1' sh "$server" && ! wait "$server" && tail -n 1 serve.err; }
	check "$accel: it ends with the guest" ends
	server=
done
finish
