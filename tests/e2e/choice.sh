#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# choice.sh UNISCOPE SRCROOT MKSESSION MKTRACE: what --thread, --per-thread and the like choose of calls, and
# where they are refused. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKSESSION=$(realpath "$3") MKTRACE=$(realpath "$4")
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
check "--per-thread of calls: each below its thread" sh -c '[ -s threads.folded ] && ! grep -v "^thread [0-9]*;fn_" threads.folded'
check "and none is lost by it" test "$(awk '{ s += $NF } END { print s }' threads.folded)" = "$(ns)"
# refused STATUS WORDS COMMAND...: nothing comes out, and nothing is said but that
refused() {
	wanted=$1 words=$2
	shift 2
	"$@" >no 2>err
	status=$?
	cat err
	[ $status -eq "$wanted" ] && [ ! -s no ] && grep -q -e "$words" err && ! grep -v -e "$words" -e ' events were lost' err
}
one=$(sed -n 's/^thread \(10[0-9]*\);.*/\1/p' threads.folded | head -1)
check "--thread of calls: as trace report has them" sh -c '"$1" trace report --json -n 0 --thread "$3" t2.uniscope 2>/dev/null |
	python3 -c "import json, sys; sys.exit(sum(f[\"self_ns\"] for f in json.load(sys.stdin)[\"functions\"]) != $2)"' \
	sh "$U" "$(ns --thread "$one")" "$one"
# Which thread's calls these are, babeltrace2 says.
of_thread() { # FILE...
	babeltrace2 t2.uniscope 2>/dev/null | python3 "$SRC/tests/e2e/choice_judge.py" "$one" "$@"
}
sed -n "s/^thread $one;//p" threads.folded >one.folded
check "--per-thread: below it are the calls of that thread" of_thread one.folded
for format in chrome perfetto csv firefox; do
	"$U" export -f $format -o out.$format --thread "$one" t2.uniscope 2>err
	check "--thread in $format" of_thread out.$format
done
"$U" export -f speedscope -o out.speedscope --thread "$one" t2.uniscope 2>err
python3 "$SRC/tests/e2e/exchange/read.py" speedscope out.speedscope >speedscope # without names that are not used
check "--thread in speedscope" of_thread speedscope
"$U" export -f folded -o out.folded --thread "$one" t2.uniscope 2>err
check "--thread in folded" of_thread out.folded
uftrace_has() {
	"$U" export -f uftrace -o out --thread "$one" t2.uniscope 2>err && "$U" export -f uftrace -o all t2.uniscope 2>err &&
		[ "$(ls out/*.dat)" = "out/$one.dat" ] && [ "$(ls all/*.dat | wc -l)" -gt 3 ] &&
		[ -z "$(find all -perm /077 | tee /dev/stderr)" ] # nobody else can read them
}
check "--thread in a folder for uftrace" uftrace_has
if command -v uftrace >/dev/null; then
	check "as uftrace reads it" sh -c 'uftrace dump --no-pager -d out >dump'
	check "--thread in uftrace" of_thread dump
else
	n=$((n + 1))
	echo "ok $n - --thread in uftrace # SKIP uftrace is not installed"
fi
check "--thread of none: which there are is said" refused 1 "no thread 'nosuch' in this trace" "$U" export --thread nosuch t2.uniscope -f folded
for option in --on-cpu --off-cpu --all-time --per-vcpu; do
	check "$option is refused for calls" sh -c '! "$1" export --calls $2 t2.uniscope -f folded >no 2>err && [ ! -s no ] &&
		grep -q -- "$2 is for samples" err' sh "$U" $option
done
check "mirage is all of the threads" refused 1 "mirage shows threads and promises together" "$U" export -f mirage -o none.mirage --thread 1 t2.uniscope
check "what is no session has no vCPUs" refused 2 'for sessions' "$U" export --vcpu 1 s.folded -f folded
"$U" report --html all.html t2.uniscope 2>err && "$U" report --html one.html --thread "$one" t2.uniscope 2>err
python3 "$SRC/tests/e2e/page_data.py" one.html >one.names
check "report --html --thread: the page has that thread's calls" \
	of_thread one.names
check "and none of a thread that is not there" refused 1 'no thread' "$U" report --html no.html --thread nosuch t2.uniscope

# A part of the time: the two sides of any moment add up to the whole.
total() { "$U" report --json --all-time "$@" s.uniscope 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["total"])'; }
adds_up() {
	first=$(total --to 0.0001) rest=$(total --from 0.0001) all=$(total)
	echo "$first and $rest of $all"
	[ "$first" -gt 0 ] && [ "$rest" -gt 0 ] && [ $((first + rest)) -eq "$all" ]
}
check "--from and --to: the parts are the whole" adds_up
as_babeltrace_says() {
	want=$(babeltrace2 --clock-seconds s.uniscope 2>/dev/null | sed -n 's/^\[\([0-9.]*\)\].* sample: .* weight = \([0-9]*\),.*/\1 \2/p' |
		awk 'NR == 1 { first = $1 } $1 - first < 0.0000995 { n += $2 } END { print n + 0 }')
	got=$(total --to 0.0001)
	echo "$got of $want"
	[ "$want" -gt 0 ] && [ "$got" = "$want" ]
}
check "and each has the samples that babeltrace2 finds there" as_babeltrace_says
# The same in exports, in annotate's and in diff's choice, by the same options; and for calls.
exported() { "$U" export -f folded --all-time "$@" 2>/dev/null | awk '{ sum += $NF } END { print sum + 0 }'; }
export_adds_up() { # SESSION SECONDS OPTION...
	s=$1 at=$2
	shift 2
	first=$(exported --to "$at" "$@" "$s") rest=$(exported --from "$at" "$@" "$s") all=$(exported "$@" "$s")
	echo "$first and $rest of $all"
	[ "$first" -gt 0 ] && [ "$rest" -gt 0 ] && [ $((first + rest)) -eq "$all" ]
}
calls_add_up() { # a call across the moment is cut there, and has one part in each
	first=$("$U" export -f folded --to 0.0005 t2.uniscope 2>err | awk '{ sum += $NF } END { print sum + 0 }')
	rest=$("$U" export -f folded --from 0.0005 t2.uniscope 2>err | awk '{ sum += $NF } END { print sum + 0 }')
	all=$("$U" export -f folded t2.uniscope 2>err | awk '{ sum += $NF } END { print sum + 0 }')
	echo "$first and $rest of $all"
	[ "$first" -gt 0 ] && [ "$rest" -gt 0 ] && [ $((first + rest)) -le $((all + 9)) ] && [ $((first + rest)) -ge $((all - 9)) ]
}
check "export --from and --to: the parts are the whole" export_adds_up s.uniscope 0.0001
check "and of VM exits, from the same moment on" export_adds_up s.uniscope 0.0001 --exits
check "and of the calls of a trace" calls_add_up
check "diff --from: of calls as well" sh -c '"$1" diff --all --from 0.0005 t2.uniscope t2.uniscope >shown; [ $? -ne 2 ] && grep -q "traced functions" shown || { cat shown; false; }' sh "$U"
check "mirage has all of the time" refused 1 'cannot choose among them' "$U" export -f mirage -o none.mirage --from 0.0001 t2.uniscope
check "trace: --vcpu was --cpu" sh -c '"$1" trace report --vcpu 0 t2.uniscope >a && "$1" trace report --cpu 0 t2.uniscope >b 2>err && cmp a b && grep -q "old name: use --vcpu" err' sh "$U"
check "a vCPU that is not there" refused 1 'vCPUs (0 to 1)' "$U" export -f folded --vcpu 7 s.uniscope
check "and the report says so" sh -c '"$1" report --from 0.0001 s.uniscope | grep "part  *0.0001 s and later only"' sh "$U"
# Headings tell of the part that is shown, and of nothing else.
headings_of() { # OPTIONS...: samples by the heading of the text, by that of JSON, and by the profile itself
	"$U" report --all-time "$@" 2>/dev/null >text
	"$U" report --all-time --json "$@" 2>/dev/null >json
	python3 - <<'P'
import json, re
text, doc = open("text").read(), json.load(open("json"))
r = doc["recording"]
shown = [int(n) for n in re.findall(r"^samples +(\d+) in .* in all of the recording$", text, re.M)]
print(shown, [g["weight"] for g in r["guests"]], doc["total"], r["part"])
assert sum(shown) == sum(g["weight"] for g in r["guests"]) == doc["total"] > 0
assert text.count("\npart  ") == len(shown) and "own cost" not in text and not any("vcpus" in g for g in r["guests"])
P
}
for part in '--from 0.0001' '--to 0.0001' '--vcpu 1' '--vcpu 0 --from 0.00005 --to 0.0002'; do
	check "headings of $part: its own samples" headings_of $part s.uniscope
done
tar xJf "$SRC/tests/golden/recorded/recorded.tar.xz" || exit 1
cp -r s.uniscope named.uniscope && python3 - <<'P' || exit 1
import json
s = json.load(open("named.uniscope/session.json"))
s["guests"][0]["threads"] = [{"id": i, "name": name, "object": hex(16 * i)} for i, name in enumerate(("idle", "work-1", "work-2", "net"), 1)]
json.dump(s, open("named.uniscope/session.json", "w"))
P
check "and of threads" headings_of --thread 'work*' named.uniscope
check "the part is named" sh -c '"$1" report --vcpu 0 --to 0.0001 s.uniscope >shown && grep "^part  *0 s to 0.0001 s, vCPU 0 only$" shown' sh "$U"
check "of VM exits, too" sh -c '"$1" report --exits --to 0.00005 --vcpu 0 s.uniscope >shown && cat shown && grep "^part  *0 s to 5e-05 s, vCPU 0 only$" shown &&
	grep "^exits  *100 in " shown' sh "$U"
page_has_part() {
	"$U" report --html part.html --vcpu 1 s.uniscope && python3 "$SRC/tests/e2e/page_data.py" part.html | head -c 100000 | tr -d '\0' >head
	grep -ao 'part  *vCPU 1 only' head && grep -ao '"part":{"from":0[.0]*,"vcpu":1}' head
}
check "and the page has it" page_has_part
# The same of a trace: events, by the heading.
events() { # OPTIONS...
	"$U" trace report --json "$@" t2.uniscope 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])'
}
trace_adds_up() { # OPTIONS...: each word of them chooses a part, and the parts are the whole
	sum=0
	for part in "$@"; do
		nr=$(events $part)
		echo "$part: $nr"
		[ "$nr" -gt 0 ] || return 1
		sum=$((sum + nr))
	done
	echo "$sum of $(events)"
	[ "$sum" -eq "$(events)" ]
}
check "trace report: the events of each vCPU are the whole" trace_adds_up '--vcpu 0' '--vcpu 1'
check "and of each part of the time" trace_adds_up '--to 0.0005' '--from 0.0005'
check "and those of a thread are a part" sh -c '[ "$1" -gt 0 ] && [ "$1" -lt "$2" ]' sh "$(events --thread "$one")" "$(events)"
check "annotate names the part, too" sh -c '"$1" annotate -e demo.elf --to 99 paused.uniscope checksum_update >shown; cat shown; grep "^part  *0 s to 99 s only$" shown' sh "$U"
# A time with nothing in it: the same everywhere.
for args in 'report' 'report --json' 'report --json --top 3' 'report --exits' 'report --tree --per-vcpu' 'export -f folded' 'export -f json' \
	'export -f firefox' 'export --exits -f folded' 'diff s.uniscope'; do
	check "$args: nothing was recorded then" refused 1 ' has no sample from 9 s on' "$U" $args --from 9 s.uniscope
done
check "and with an end" refused 1 's.uniscope has no sample from 9 s to 10 s: the last one is at 0.000299 s' "$U" report --from 9 --to 10 s.uniscope
check "and between two samples" refused 1 'has no sample from 1.2e-06 s to 1.3e-06 s' "$U" report --from 0.0000012 --to 0.0000013 s.uniscope
check "annotate: nothing was recorded then" refused 1 'has no sample from 9 s on' "$U" annotate -e demo.elf --from 9 paused.uniscope checksum_update
for args in 'trace report' 'trace report --json' 'trace graph' 'trace breakdown' 'trace replay' 'export -f folded' 'export -f chrome' 'diff t2.uniscope'; do
	check "$args: no event of the trace is then" refused 1 ' has no event from 9 s on' "$U" $args --from 9 t2.uniscope
done
check "a time in which no vCPU ran is no error" sh -c '"$1" report --from 0.000001 --to 0.0000015 s.uniscope >shown && cat shown && grep "^counted  *0 samples" shown' sh "$U"
check "--top 0 is refused" refused 2 'top takes a number from 1 on' "$U" report --json --top 0 s.uniscope
check "also with --focus" refused 2 'top takes a number from 1 on' "$U" report --json --top 0 --focus x s.uniscope
check "--to before --from" refused 2 'to is after --from' "$U" report --from 2 --to 1 s.uniscope
check "--from of folded stacks" refused 2 'from is for sessions' "$U" report --from 2 s.folded
check "--from and a page" refused 2 'a time is chosen in the page' "$U" report --from 2 --html no.html s.uniscope
newest() {
	cp -r s.uniscope other.uniscope && touch -d '2020-01-01' ./*.uniscope/session.json &&
		touch -d '2021-01-01' other.uniscope/session.json &&
		"$U" report 2>err >no && cat err && grep -q 'the newest session here is other.uniscope' err || return 1
	touch -d '2022-01-01' s.uniscope/session.json && "$U" report >no 2>err && cat err && grep -q 'is s.uniscope' err
}
check "report without a name takes the newest session" newest
check "and says if there is none" sh -c 'mkdir none && cd none && ! "$1" report 2>err && grep "this folder has no session" err' sh "$U"

check "all outputs of a session have the same shares, of the guest's time on a CPU" \
	python3 "$SRC/tests/e2e/whole_judge.py" "$U" "$T/s.uniscope"
"$MKSESSION" "$T/u.uniscope" 3000 2 1 unsure || exit 1
check "what may be of the caller or callee is marked in all outputs" \
	python3 "$SRC/tests/e2e/unsure_judge.py" "$U" "$T/u.uniscope"
short_lists() {
	"$U" report u.uniscope >text 2>err && grep 'THREADS .* in 2 of 2 looks the list of threads was not read' text &&
		"$U" report --json u.uniscope 2>err | grep -q '"short_lists":2' && ! "$U" report s.uniscope 2>err | grep THREADS
}
check "a list of threads that was not read to its end is told" short_lists

echo "1..$n"
