#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mirage_viewer.sh UNISCOPE SRCROOT: the front end for scripts of MirageOS' viewer, on a trace ring of its. TAP.
set -u
U=$1 SRC=$2
ring=$SRC/fuzz/corpus/mirage/ring
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
n=0

# shellcheck source=tests/support/tap.sh
. "$SRC/tests/support/tap.sh"

refused() { # WORDS ARGUMENT...
	words=$1
	shift
	"$U" mirage-trace-viewer "$@" >"$T/out" 2>"$T/err" && return 1
	[ "$(wc -l <"$T/err")" -eq 1 ] && grep -q "$words" "$T/err" || { cat "$T/err"; return 1; }
}

text() {
	"$U" mirage-trace-viewer "$ring" >"$T/out" 2>/dev/null && grep -q '^STATE .* NAME$' "$T/out" || return 1
	"$U" trace threads "$ring" >"$T/threads" 2>/dev/null && tail -n "$(wc -l <"$T/threads")" "$T/out" | cmp - "$T/threads" &&
		"$U" trace findings "$ring" >"$T/found" 2>/dev/null && head -n "$(wc -l <"$T/found")" "$T/out" | cmp - "$T/found"
}

# Rows of numbers: who ran where and from when to when; who waited for whom; all within the trace.
rows() {
	"$U" trace findings --json "$ring" 2>/dev/null | python3 -c 'import json, sys
d = json.load(sys.stdin)
nr, end = len(d["promises"]), d["duration_ns"]
for promise, cpu, first, last in d["runs"]:
    assert promise < nr and cpu == 0 and 0 <= first <= last <= end, (promise, cpu, first, last)
for row in d["waits"]:
    assert len(row) == 6 and row[0] < nr and row[1] < nr and 0 <= row[3] <= end, row
assert len(d["runs"]) > 2 and len(d["waits"]) > 1'
}

copied() {
	"$U" mirage-trace-viewer -w "$T/copy" "$ring" && cmp "$T/copy" "$ring" &&
		"$U" mirage-trace-viewer -w - - <"$ring" | cmp - "$ring"
}

pages() {
	cp "$ring" "$T/first.ctf" && cp "$ring" "$T/second.ctf" || return 1
	"$U" mirage-trace-viewer --html "$T/htdocs" "$T/first.ctf" "$T/second.ctf" - <"$ring" 2>/dev/null || return 1
	mkdir "$T/other" && cp "$ring" "$T/other/first.ctf" || return 1
	"$U" mirage-trace-viewer --html "$T/htdocs" "$T/first.ctf" "$T/other/first.ctf" 2>/dev/null || return 1
	for name in first second trace-3 first.2; do
		grep -q '<script' "$T/htdocs/$name.html" && python3 -m json.tool "$T/htdocs/$name.json" >/dev/null || {
			ls "$T/htdocs"
			return 1
		}
	done
	"$U" trace findings --json "$ring" 2>/dev/null | cmp - "$T/htdocs/first.json"
}

# A ring with its description, and back; as a profile; what cannot be shown says so.
exported() {
	"$U" export "$ring" -o "$T/ring.mirage" && grep -q 05883b8d "$T/ring.mirage/metadata" || return 1
	"$U" trace findings --json "$ring" >"$T/one" && "$U" trace findings --json "$T/ring.mirage" | cmp - "$T/one" ||
		return 1
	"$U" export "$T/ring.mirage" -f mirage -o "$T/again.mirage" &&
		cmp "$T/again.mirage/cpu0" "$T/ring.mirage/cpu0" || return 1
	"$U" import "$T/ring.mirage" -o "$T/imported.uniscope" 2>"$T/err" && grep -q 'the running times of threads and promises' "$T/err" &&
		"$U" export "$T/imported.uniscope" -f folded >"$T/folded" && "$U" export "$ring" -f folded 2>/dev/null |
		cmp - "$T/folded" && [ -s "$T/folded" ] || return 1
	for words in '-f nanos' '-f csv' '--calls -f folded'; do
		# shellcheck disable=SC2086
		"$U" export $words "$ring" >/dev/null 2>"$T/err" && return 1
		grep -q 'has threads and promises, and no function calls' "$T/err" || { cat "$T/err"; return 1; }
	done
}

# A message says what is missing, in words that fit the number.
damaged() {
	two=$(dirname "$ring")/two
	"$U" trace threads "$two" >"$T/all" 2>"$T/err" && [ ! -s "$T/err" ] || { cat "$T/err"; return 1; }
	{ printf x; tail -c +2 "$two"; } >"$T/head"
	"$U" trace threads "$T/head" | cmp - "$T/all" || return 1
	{ printf '%30s' x; tail -c +31 "$two"; } >"$T/gone"
	"$U" trace threads "$T/gone" >/dev/null 2>"$T/err" && grep -q 'gone: 1 packet is damaged, the first at byte 0: ' "$T/err" ||
		{ cat "$T/err"; return 1; }
}

# A guest that grants nothing: its ring lies in its memory, here in raw memory and in a process.
in_memory() {
	python3 "$SRC/tests/e2e/mirage_ring.py" "$T/doubts" && python3 - "$T/doubts" "$T/memory" "$T/none" <<-'EOF' || return 1
		import sys
		ring = open(sys.argv[1], "rb").read()
		memory = bytearray(4 << 20)
		memory[4096:4116] = ring[:20] # a program's own
		open(sys.argv[3], "wb").write(memory)
		memory[0x212345:0x212345 + len(ring)] = ring
		open(sys.argv[2], "wb").write(memory)
	EOF
	registers=rip=0x1000,rsp=0x8000,rbp=0,cr3=0
	"$U" trace mirage "core:raw=$T/memory,$registers" -o "$T/core.ctf" 2>"$T/err" && cmp "$T/core.ctf" "$T/doubts" &&
		grep "found a ring of MirageOS in the guest's memory, at 0x212345: $(wc -c <"$T/doubts") bytes" "$T/err" || return 1
	"$U" mirage-trace-viewer -d "core:raw=$T/memory,$registers" | grep 'other worker' || return 1
	"$U" trace mirage "core:raw=$T/none,$registers" -o "$T/x" 2>"$T/err" && return 1
	grep "no ring of MirageOS: none lies in its memory; uniscope's own: no trace ring in this guest" "$T/err" && [ ! -e "$T/x" ]
}

in_process() {
	mkfifo "$T/hold"
	python3 -c 'import sys; ring = open(sys.argv[1], "rb").read(); print("ready", flush=True); sys.stdin.read()' "$T/doubts" \
		<"$T/hold" >"$T/ready" &
	pid=$!
	exec 3>"$T/hold"
	for _ in $(seq 600); do
		[ -s "$T/ready" ] && break
		sleep 0.1
	done
	"$U" trace mirage -q "proc:pid=$pid" -o "$T/process.ctf" 2>"$T/err"
	status=$?
	exec 3>&-
	wait $pid
	cat "$T/err"
	[ $status -eq 0 ] && cmp "$T/process.ctf" "$T/doubts"
}

check 'what is wrong, and who there is' text
check 'rows of numbers are what they should be' rows
check 'a trace is copied as it is' copied
check 'a page and its data for each trace' pages
check 'with its description, as a profile, and refused' exported
check 'damaged heads' damaged
check 'a ring in memory, and a mark that is none' in_memory
[ "$(uname -m)" != x86_64 ] || check 'a ring in a process' in_process
check 'no windows' refused 'html DIR' --gtk "$ring"
check 'no source' refused 'give a FILE'
check 'two sources for one output' refused 'takes one trace' -w "$T/x" "$ring" "$ring"
check 'two outputs' refused 'one of' -w "$T/x" --html "$T/y" "$ring"
check 'a file and a domain' refused 'files, or a domain' -d web "$ring"
check 'no trace' refused 'neither a session' "$U"
echo "1..$n"
