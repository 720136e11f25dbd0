#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# live.sh UNISCOPE BUILD SRCROOT MKSESSION: the served page: of files, and of a running guest whose recording grows. It checks who
# may ask and who may not. Clients are many, slow, or gone. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 MKSESSION=$4
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
case $BUILD in
/*) ;;
*) BUILD=$PWD/$BUILD ;;
esac
command -v curl >/dev/null || absent 'curl is not installed'
can browser
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
server=
stop_server() {
	[ -z "$server" ] || kill -INT "$server" 2>/dev/null
	[ -z "$server" ] || wait "$server"
	status=$?
	server=
	return $status
}
trap 'kill $server 2>/dev/null; end_guest; rm -rf "$T"' EXIT

start_server() { # ARGUMENT...: with standard input from $T/in, if that is there
	: >"$T/serve.err"
	if [ -e "$T/stdin" ]; then
		"$U" serve -p 0 "$@" <"$T/stdin" 2>"$T/serve.err" &
	else
		"$U" serve -p 0 "$@" 2>"$T/serve.err" &
	fi
	server=$!
	wait_for 60 grep -q 'serving http://127.0.0.1' "$T/serve.err" || {
		cat "$T/serve.err"
		return 1
	}
	base=$(sed -n 's,.*serving \(http://[^ ]*\) .*,\1,p' "$T/serve.err")
	root=${base%/*/}
	python3 "$SRC/tests/support/listens.py" "$server"
}
code() { # WANT CURL-ARGUMENT...: the status
	want=$1
	shift
	got=$(curl -m 20 -s -o "$T/body" -w '%{http_code}' "$@")
	echo "$got"
	head -c 300 "$T/body"
	[ "$got" = "$want" ]
}
has() { grep -q "\"$1\":$2" "$T/state"; } # of what state says
state() { curl -m 20 -s "${base}state" -o "$T/state" && has "$1" "$2"; }
said() { curl -m 20 -s "${base}state"; }
revision() { curl -m 20 -s "${base}state" | sed 's/.*"rev":\([0-9]*\).*/\1/'; }
grown() { [ "$(revision)" -gt "$1" ]; }
headers() {
	curl -m 20 -s -D - -o /dev/null "$base" >"$T/headers"
	cat "$T/headers"
	for w in "content-security-policy: default-src 'none'; script-src 'sha256-" "connect-src 'self'" \
		"frame-ancestors 'none'" 'x-content-type-options: nosniff' 'referrer-policy: no-referrer' 'cache-control: no-store' \
		'cross-origin-resource-policy: same-origin'; do
		grep -iq "$w" "$T/headers" || return 1
	done
	curl -m 20 -s -D - -o /dev/null "${base}state" >"$T/headers" # no page, so nothing may be done with it
	cat "$T/headers"
	grep -iq "content-security-policy: default-src 'none'; frame-ancestors 'none'" "$T/headers"
}
same_data() { # the same as the page of report has
	curl -m 20 -s "${base}data" | gzip -dc >"$T/data" && cmp "$T/data" "$T/page.data" &&
		[ "$(curl -m 20 -s -o /dev/null -w '%{http_code}' -H "If-None-Match: \"$(revision)\"" "${base}data")" = 304 ]
}
beside() { [ "$(curl -m 20 -s -o /dev/null -w '%{http_code}' --path-as-is "$1")" = 404 ]; }
traversal() {
	for p in ../ ../../etc/passwd ..%2f..%2fetc/passwd %2e%2e/%2e%2e/ data/../../x .git/ data/ /data ./rows \
		data%2f record stop/ 'data?x' state/x; do
		case $p in
		'data?x') code 200 --path-as-is "$base$p" || return 1 ;;
		*) beside "$base$p" || {
			echo "$p"
			return 1
		} ;;
		esac
	done
	for t in 0 "${base#"$root"/}x" "$(echo "${base#"$root"/}" | tr '0-9a-f' '1-9a-f0')"; do
		beside "$root/$t" || return 1
		beside "$root/${t%/}/data" || return 1
	done
}
queries() {
	for q in 0/10/100/0/1x 0/10/100/0 0/10/100/0/1/2 10/10/100/0/1 ../data 0/10/0/0/1 0/10/8193/0/1 0/10/100/0/513 -1/10/100/0/1 \
		0/99999999999999999999/100/0/1 0//100/0/1 0/10/100/0/1/ 0x0/10/100/0/1; do
		code 400 --path-as-is "${base}rows/$q" || return 1
	done
	for q in 0/0 0/0/all 0/10/x/all 10/5/0/0 0/10/99999999999/0 0/10/0/65536 5/0/all/all 0/0/all/allx 0/0/all/all/ 0/0/allall; do
		code 400 "${base}sums/$q" || return 1
	done
}

printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'other;leaf 5' >"$T/plain.folded"
"$MKSESSION" "$T/s.uniscope" 5000 2 || exit 1
python3 - "$T/calls.txt" <<'PY'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as f:
    f.write("# tracer: function_graph\n")
    def call(cpu, depth, left):
        name, inner, own = f"f{random.randrange(12)}_{depth}", [], random.randrange(100, 3000)
        if depth < 5 and random.random() < 0.7:
            inner = [None] * random.randrange(1, 5)
        lines, total = [], own
        for _ in inner:
            l, t = call(cpu, depth + 1, left)
            lines += l
            total += t
        pad = "  " * depth
        if not inner:
            return [f" {cpu}) {total / 1000:9.3f} us    |  {pad}{name}();\n"], total
        return [f" {cpu})               |  {pad}{name}() {{\n", *lines, f" {cpu}) {total / 1000:9.3f} us    |  {pad}}}\n"], total
    for i in range(1500):
        f.writelines(call(i % 3, 0, 0)[0])
PY

"$U" report --html "$T/page.html" "$T/s.uniscope" && python3 "$SRC/tests/e2e/page_data.py" "$T/page.html" >"$T/page.data"
check 'a session is served' start_server "$T/s.uniscope"
check 'with headers that keep others out' headers
check 'its data come in the end' wait_for 60 state rev 1
check 'and are those of a page' same_data
check 'what is not there, and what is outside, is not found' traversal
check 'another name of this host is refused' code 403 -H 'Host: example.com' "$base"
check 'and another port' code 403 -H 'Host: 127.0.0.1:1' "$base"
check 'and what another page asks for' code 403 -H 'Origin: http://example.com' "${base}data"
check 'and another site' code 403 -H 'Sec-Fetch-Site: cross-site' "${base}data"
check 'its own page may ask' code 200 -H "Origin: $root" "${base}state"
check 'HEAD and PUT are not known' sh -c '! curl -s -m 20 -f -I "$1" && ! curl -s -m 20 -f -X PUT "$1"' sh "$base"
check 'a body is refused' code 413 -X POST -d x "${base}stop"
check 'a file records nothing' code 404 -X POST "${base}record/samples"
check 'nor stops' code 404 -X POST "${base}stop"
check 'bad queries are refused' queries
check 'there are no parts of what is whole' code 404 "${base}rows/0/10/100/0/1"
check '200 clients, slow ones, and ones that vanish' python3 "$SRC/tests/e2e/live_clients.py" "$base"
check 'it still serves' same_data
check 'Ctrl-C ends it' stop_server
cp "$T/plain.folded" "$T/stdin"
check 'standard input is served' start_server -
check 'and read' wait_for 60 state rev 1
check 'it ends' stop_server
(cd "$T" && find s.uniscope -type f | tar --format=ustar -cf "$T/stdin" -T -)
check 'a session in one stream is served' start_server -
check 'and unpacked' wait_for 60 state rev 1
check 'it ends' stop_server
rm -f "$T/stdin"
typo() { # ARGUMENT...: neither a file nor a guest
	timeout 60 "$U" serve -p 0 "$@" no-such-guest 2>"$T/log"
	[ $? -eq 1 ] && [ "$(wc -l <"$T/log")" -eq 1 ] && grep -q 'no-such-guest is no file: no guest named' "$T/log"
}
check 'what is neither a file nor a guest ends it' typo
check 'also if nothing is to be recorded yet' typo --idle
damaged() { "$U" serve -p 0 "$T/none.folded" 2>"$T/log"; [ $? -ne 0 ] && [ -s "$T/log" ]; }
echo '<html>' >"$T/none.folded"
check 'what is no recording is said' damaged

if [ -z "$browser" ]; then
	skip 'calls that were not sent whole' 'no chromium on this machine'
else
	check 'calls are served' start_server --input-format ftrace "$T/calls.txt"
	one=$server whole=$base
	check 'the same in parts' start_server --input-format ftrace --whole 500 "$T/calls.txt"
	check 'both show the same' python3 "$SRC/tests/e2e/live_browser.py" parts "$whole" "$base"
	check 'the one ends' stop_server
	if [ -n "${UNISCOPE_ALL-}" ]; then
		check 'the same with fewer nodes' start_server --input-format ftrace --whole 500 --nodes 300 "$T/calls.txt"
		check 'has the same functions' python3 "$SRC/tests/e2e/live_browser.py" small "$whole" "$base"
		check 'it ends' stop_server
	fi
	server=$one
	check 'and the other' stop_server
fi
fewer_samples() {
	check 'samples are served' start_server "$T/s.uniscope"
	one=$server whole=$base
	check 'and fewer of them' start_server --whole 4000 "$T/s.uniscope"
	check 'which stand for all' python3 "$SRC/tests/e2e/live_browser.py" small "$whole" "$base"
	check 'the one ends' stop_server
	server=$one
	check 'and the other' stop_server
}
[ -z "$browser" ] || in_all fewer_samples

at_once() { # WHAT: stopped before it has begun, while it begins, and just after that
	for pause in $(by_default '0 0.05 0.4' '0 0.05 0.1 0.4 0.8'); do
		code 204 -X POST "${base}record/$1" && sleep $pause && code 204 -X POST "${base}stop" &&
			wait_for 30 state recording '""' && sleep 0.3 && state said '""' && wait_for 30 state reading false || {
			echo "after $pause s"
			said
			return 1
		}
	done
}
typo() {
	timeout 60 "$U" serve -p 0 no-such-guest 2>"$T/log"
	[ $? = 1 ] && grep -q 'no-such-guest' "$T/log"
}
check 'a guest that is not there ends it' typo

# The page shows a recording as it grows. A recording that several clients stop at once is whole.
brief() { # NAME TARGET [ARGUMENT...]
	brief_of=$1
	shift
	rm -rf "$T/brief.uniscope"
	check "$brief_of: it is served" start_server "$@" -F 199 -o "$T/brief.uniscope"
	curl -m 300 -sN "${base}events" >"$T/events" &
	watcher=$!
	check "$brief_of: data come" wait_for 60 grown 0
	check "$brief_of: and grow" wait_for 60 grown "$(revision)"
	for _ in 1 2 3 4; do
		curl -m 20 -s -X POST "${base}stop" &
		stops="${stops-} $!"
	done
	# shellcheck disable=SC2086
	wait $stops
	stops=
	check "$brief_of: it can be ended" wait_for 60 state recording '""'
	check "$brief_of: by several at once" has said '""'
	check "$brief_of: and is whole" grep -q '"state": *"closed"' "$T/brief.uniscope/session.json"
	check "$brief_of: with samples" sh -c '[ "$("$1" report --json "$2" | python3 -c "import json,sys; print(json.load(sys.stdin)[\"recording\"][\"guests\"][0][\"samples\"])")" -gt 2 ]' sh "$U" "$T/brief.uniscope"
	kill $watcher
	wait $watcher 2>/dev/null
	check "$brief_of: and ends" stop_server
}
if [ -z "${UNISCOPE_ALL-}" ]; then
	: # a process, below, is recorded in the same way
elif boot tcg "$(image shares)" ms=200000; then
	brief 'by gdb packets' "$target" -e "$(image shares)"
	end_guest
else
	check 'by gdb packets: the guest runs' false
fi
process=$BUILD/lab/process/deep-gcc-fp
[ -e "$process" ] || process=$BUILD/lab/process/deep-clang-fp
rm -f "$T/out"
"$process" loop=1 >"$T/out" 2>&1 </dev/null &
guest=$!
wait_for 60 grep -q '^lab: running' "$T/out" # it is that program, and not the shell before it
brief 'a process' "proc:pid=$guest"
end_guest

# One that executes another program is not what was recorded any more, and can be recorded again.
rm -rf "$T"/exec*.uniscope
mkfifo "$T/now"
sh -c 'read -r _ <"$0"; exec "$@"' "$T/now" "$process" loop=1 >"$T/out" 2>&1 </dev/null &
guest=$!
wait_for 60 grep -q 'read -r' "/proc/$guest/cmdline" # it is that shell, and not this one before it
check 'a process that will execute a program is served' start_server "proc:pid=$guest" -o "$T/exec.uniscope"
executed() { said | grep -q "\"said\":\"process $guest runs another program now (deep-"; }
check 'and recorded' wait_for 60 state recording '"samples"'
echo >"$T/now"
check 'that it did is said' wait_for 300 executed
check 'and ends the recording in good order' grep -q '"state": *"closed"' "$T/exec.uniscope/session.json"
check 'the other program is recorded' code 204 -X POST "${base}record/samples"
wait_for 60 state recording '"samples"'
names_seen() { "$U" report "$T/exec-2.uniscope" 2>/dev/null | grep -q kmain; }
check 'with its own names' wait_for 60 names_seen
check 'until it is ended' code 204 -X POST "${base}stop"
check 'in good order, too' wait_for 60 state recording '""'
check 'with its own names still' names_seen
check 'and it ends' stop_server
end_guest

for accel in $accels; do :; done # the last one
# Threads have their names while they are recorded, not only in the end.
named() {
	grep -q '"state": *"open"' "$T/names.uniscope/session.json" && "$U" trace threads "$T/names.uniscope" >"$T/names" 2>/dev/null &&
		grep -q ' netif' "$T/names" && grep -q ' httpd' "$T/names"
}
elf=$BUILD/lab/trace/trace-arp-gcc-fp.elf
if [ -z "${UNISCOPE_ALL-}" ]; then
	: # only all has names of threads while they are recorded
elif [ ! -e "$elf" ]; then
	skip 'threads have names at once' 'no lab guest to trace'
elif boot "$accel" "$elf" 'names=0 ms=200000'; then
	check "$accel: threads are served" start_server --idle "$target" -e "$elf" --threads -o "$T/names.uniscope"
	check "$accel: and recorded" code 204 -X POST "${base}record/calls"
	check "$accel: with their names from the beginning on" wait_for 60 named
	check "$accel: until it is ended" code 204 -X POST "${base}stop"
	check "$accel: in good order" wait_for 30 grep -q '"state": *"closed"' "$T/names.uniscope/session.json"
	check "$accel: and they end" stop_server
	end_guest
else
	check "$accel: the guest with threads runs" false
fi
elf=$BUILD/lab/trace/trace-shares-gcc-fp.elf
[ -e "$elf" ] || elf=$(image chains)
# The browser and the server need their turns more than the guest, which rests most of the time.
ahead='nice -n 19'
if boot "$accel" "$elf" 'ms=200000 tick=100 rest=5 unit=20'; then
	check "$accel: a guest is served" start_server "$target" -e "$elf" -F 199 -o "$T/live.uniscope" --filter 'burn_*' --filter recurse
	curl -m 600 -sN "${base}events" >"$T/events" &
	watcher=$!
	check "$accel: it says what it does" wait_for 60 state recording '"samples"'
	check "$accel: nothing else can begin meanwhile" code 409 -X POST "${base}record/samples"
	check "$accel: data come" wait_for 60 grown 0
	check "$accel: and grow" wait_for 60 grown "$(revision)"
	check "$accel: a viewer is told" sh -c '[ "$(grep -c "^data:" "$1")" -ge 2 ]' sh "$T/events"
	kill $watcher
	wait $watcher 2>/dev/null
	if [ -n "$browser" ]; then
		calls=no
		case $elf in */trace-*) calls=yes ;; esac
		[ -n "${UNISCOPE_ALL-}" ] ||
			check "$accel: the page grows, and its button ends it" python3 "$SRC/tests/e2e/live_browser.py" grows "$base"
		in_all check "$accel: the page follows, and its buttons work" python3 "$SRC/tests/e2e/live_browser.py" live "$base" $calls
	fi
	curl -m 20 -s -X POST "${base}stop"
	check "$accel: it can be ended" wait_for 60 state recording '""'
	check "$accel: and is whole" "$U" report "$T/live.uniscope"
	check "$accel: something is recorded again" code 204 -X POST "${base}record/samples"
	wait_for 60 [ -d "$T/live-2.uniscope" ]
	if [ -n "$browser" ] && [ -n "${UNISCOPE_ALL-}" ]; then
		check "$accel: a page whose server is killed says so" python3 "$SRC/tests/e2e/live_browser.py" gone "$base" "$server"
	fi
	kill -9 "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
	last=$(ls -d "$T"/live-*.uniscope | tail -n 1)
	ended() { grep -q '"state": *"closed"' "$last/session.json"; }
	check "$accel: a server that is killed leaves a whole session" wait_for 300 ended
	check "$accel: and the guest to others" "$U" record "$target" -q -d 0.5 -e "$elf" -o "$T/after.uniscope"
	check "$accel: it can wait until it is asked" start_server --idle "$target" -e "$elf"
	check "$accel: it records nothing" state recording '""'
	check "$accel: who stops it at once sees no failure" at_once samples
	case $elf in */trace-*) in_all check "$accel: nor of calls" at_once calls ;; esac
	end_guest
	check "$accel: a guest that is gone" code 204 -X POST "${base}record/samples"
	check "$accel: is said" wait_for 60 state recording '""'
	gone() { said | grep -q '"said":"[^"]'; }
	check "$accel: in words" wait_for 60 gone
	check "$accel: it ends" stop_server
else
	check "$accel: the guest runs" false
fi
finish
