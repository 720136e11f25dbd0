#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# choice.sh UNISCOPE MKSESSION MKTRACE: what --thread, --per-thread and the like choose of calls, and
# where they are refused. TAP.
set -u
U=$(realpath "$1") MKSESSION=$(realpath "$2") MKTRACE=$(realpath "$3")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
n=0
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		cut -c1-160 log | sed 's/^/# /' | head -20
	fi
}

"$MKTRACE" t2.uniscope 9000 2 graph 2 && "$MKSESSION" "$T/s.uniscope" 300 2 || exit 1
"$U" export "$T/s.uniscope" -f folded -o s.folded 2>err
# --thread and the like choose among the calls of a trace, or are refused: never passed over.
ns() { # OPTIONS...: of all stacks
	"$U" export --calls -f folded "$@" t2.uniscope 2>err | awk '{ s += $NF } END { print s + 0 }'
}
"$U" export --calls --per-thread -f folded t2.uniscope -o threads.folded 2>/dev/null
check "--per-thread of calls: each below its thread" sh -c '! grep -v "^thread [0-9]*;fn_" threads.folded'
check "and none is lost by it" test "$(awk '{ s += $NF } END { print s }' threads.folded)" = "$(ns)"
one=$(sed -n 's/^thread \(10[0-9]*\);.*/\1/p' threads.folded | head -1)
check "--thread of calls: as trace report has them" sh -c '"$1" trace report --json -n 0 --thread "$3" t2.uniscope 2>/dev/null |
	python3 -c "import json, sys; sys.exit(sum(f[\"self_ns\"] for f in json.load(sys.stdin)[\"functions\"]) != $2)"' \
	sh "$U" "$(ns --thread "$one")" "$one"
for format in chrome speedscope perfetto csv firefox uftrace; do
	rm -rf out all
	"$U" export -f $format -o out --thread "$one" t2.uniscope 2>err
	"$U" export -f $format -o all t2.uniscope 2>err
	check "--thread in $format" test "$(du -sb out | cut -f1)" -lt "$(du -sb all | cut -f1)"
done
check "--thread of none: which there are is said" sh -c '! "$1" export --thread nosuch t2.uniscope -f folded 2>&1 | grep -v "no thread .nosuch. in this trace"' sh "$U"
for option in --on-cpu --off-cpu --per-vcpu; do
	check "$option is refused for calls" sh -c '! "$1" export --calls $2 t2.uniscope -f folded >no 2>err && [ ! -s no ] &&
		grep -q -- "$2 is for samples" err' sh "$U" $option
done
check "mirage is all of the threads" sh -c '! "$1" export -f mirage -o none.mirage --thread 1 t2.uniscope' sh "$U"
check "what is no session has no vCPUs" sh -c '! "$1" export --vcpu 1 s.folded -f folded 2>&1 | grep -v "for sessions"' sh "$U"
"$U" report --html all.html t2.uniscope 2>err && "$U" report --html one.html --thread "$one" t2.uniscope 2>err
check "report --html --thread: the page has that thread's calls" \
	test "$(wc -c <one.html)" -lt "$(wc -c <all.html)"
check "and none of a thread that is not there" sh -c '! "$1" report --html no.html --thread nosuch t2.uniscope 2>&1 | grep -v "no thread"' sh "$U"

echo "1..$n"
