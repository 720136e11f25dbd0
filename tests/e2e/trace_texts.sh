#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_texts.sh UNISCOPE BUILD SRCROOT: text behind arguments (--args 'open(path:s)'). A process says which texts its functions
# were given. Our trace has the same, and so has uftrace's of the same program. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
T=$(mktemp -d)
pid=
end() {
	exec 9>&-
	[ -z "$pid" ] || { kill "$pid"; wait "$pid"; } 2>/dev/null
	pid=
}
trap 'end; rm -rf "$T"' EXIT INT TERM
n=0
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/log" 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/log"
	fi
}
wait_for() { # COMMAND...: until it succeeds
	for _ in $(seq 1200); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

begin() {
	end
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	"$BUILD/tests/e2e/proctexts" <"$T/in" >"$T/out" &
	pid=$!
	exec 9>"$T/in"
	wait_for grep -q ready "$T/out"
}

record() { # ARGUMENT...: of trace record
	begin && trace "$@"
}
trace() { # ARGUMENT...: the process' calls
	rm -f "$T/said"
	"$U" trace record "proc:pid=$pid" -d 0 -o "$T/s.uniscope" --overwrite "$@" 2>"$T/said" &
	tracer=$!
	wait_for grep -q 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said" || { cat "$T/said"; return 1; }
	echo >&9
	wait_for grep -q '^done' "$T/out"
	kill -INT $tracer
	wait $tracer && "$U" trace replay "$T/s.uniscope" >"$T/replay" || { cat "$T/said"; return 1; }
}

# The texts of a replay's calls of one function, as they are in a book.
texts() { # FUNCTION FILE
	sed -n "s/.*$1(\([a-z]*=[^,\"]*, \)\{0,1\}\([a-z]*=\)\{0,1\}\"\([^\"]*\)\".*/\3/p" "$2"
}

by_name() {
	record --args 'texts_open(path:s256)' --args 'texts_write(buf:b256)' &&
		sed -n '/^ready/,/^done/p' "$T/out" | grep -v '^ready\|^done' >"$T/book" &&
		[ "$(wc -l <"$T/book")" -eq 300 ] || return 1
	texts texts_open "$T/replay" >"$T/open"
	texts texts_write "$T/replay" >"$T/write"
	diff "$T/book" "$T/open" && diff "$T/book" "$T/write" &&
		grep -qF 'texts_open(path="b/1", flags=1)' "$T/replay" || { head -20 "$T/replay"; return 1; }
}
as_uftrace() {
	echo | uftrace record -d "$T/uf" --no-pager -A 'texts_open@arg1/s' -A 'texts_write@arg2/s' \
		"$BUILD/tests/e2e/proctexts-uftrace" >"$T/out" || return 1
	uftrace replay -d "$T/uf" --no-pager >"$T/theirs" || return 1
	sed -n 's/.*texts_open("\([^"]*\)").*/\1/p' "$T/theirs" >"$T/open.uf"
	sed -n 's/.*texts_write("\([^"]*\)").*/\1/p' "$T/theirs" >"$T/write.uf"
	diff "$T/open" "$T/open.uf" && diff "$T/write" "$T/write.uf" || { head "$T/theirs"; return 1; }
}
by_number() { # only the functions that are named have texts; a limit cuts
	record --args 'texts_*' --args 'texts_open(1:s8)' &&
		grep -qF 'texts_open(path="aaaaaaaa"..., flags=260)' "$T/replay" &&
		grep -qE 'texts_write\(fd=260, buf=0x[0-9a-f]+, size=' "$T/replay"
}
any() { # what cannot be read is an address, and what cannot be printed is escaped
	record --args 'texts_any(path:s)' && grep -qF 'texts_any(path=0x10)' "$T/replay" &&
		grep -qF 'texts_any(path="tab\t quote\" back\\ \0012 \303\251")' "$T/replay" &&
		[ "$(grep -c 'texts_any(' "$T/replay")" -eq 2 ]
}

# The calls of a replay by the names and arguments alone, our way to write them.
ours() { # RULE...
	for r; do set -- "$@" --rule "$r"; shift; done
	"$U" trace replay "$T/rules.uniscope" --no-switches "$@" | sed -n 's/^[^|]*|  //p' | sed 's/ *\/\*.*//; s/;$//' |
		grep -E 'rules_|^ *}'
}
theirs() { # OPTION...
	uftrace replay -d "$T/ur" --no-pager --no-event -f none "$@" | sed 's/ *\/\*.*//; s/;$//' | grep -E 'rules_|^ *}'
}
# Both traces hold the functions rules_* alone.
trace_rules() {
	record --filter 'rules_*' --args 'rules_work(path:s)' && mv "$T/s.uniscope" "$T/rules.uniscope" &&
		echo | uftrace record -d "$T/ur" --no-pager --no-event -F '^rules_' -A 'rules_work@arg1,arg2/s' \
			"$BUILD/tests/e2e/proctexts-uftrace" >"$T/out" &&
		names ours | grep -q rules_work
}
names() { "$@" | sed 's/(.*[^{]$/()/; s/(.*{$/() {/'; }
equal() { # OURS THEIRS: is not empty, and the same
	[ -s "$1" ] && diff "$1" "$2"
}
all_calls() {
	names ours >"$T/a" && names theirs >"$T/b" && equal "$T/a" "$T/b"
}
option() { # RULE OPTION-OF-UFTRACE...
	names ours "$1" >"$T/a"
	shift
	names theirs "$@" >"$T/b"
	equal "$T/a" "$T/b"
}
# Not in uftrace 0.13: chosen by awk among the arguments that it printed.
condition() { # RULE AWK-CONDITION of size, path
	ours "$1" | sed -n 's/.*rules_work(size=\(-\{0,1\}[0-9]*\), path="\([^"]*\)").*/\1 \2/p' >"$T/a"
	theirs | sed -n 's/.*rules_work(\(-\{0,1\}[0-9]*\), "\([^"]*\)").*/\1 \2/p' | awk "$2" >"$T/b"
	equal "$T/a" "$T/b"
}

# Numbers of calls as uftrace's report has them, and one self time in all outputs.
added_up() { # RULE OPTION-OF-UFTRACE...
	rule=$1
	shift
	uftrace report -d "$T/ur" --no-pager --no-event -f call "$@" | awk '/rules_/ { print $2, $1 }' | sort >"$T/b"
	"$U" trace report "$T/rules.uniscope" --rule "$rule" --json >"$T/report.json" &&
		"$U" trace graph "$T/rules.uniscope" --rule "$rule" --json --min 0 >"$T/graph.json" &&
		"$U" trace breakdown "$T/rules.uniscope" --rule "$rule" --json >"$T/breakdown.json" &&
		"$U" trace replay "$T/rules.uniscope" --rule "$rule" --json >"$T/events.json" &&
		"$U" export "$T/rules.uniscope" --calls --rule "$rule" -o "$T/calls.folded" &&
		python3 "$SRC/tests/e2e/added_up.py" "$T" >"$T/a" && equal "$T/a" "$T/b"
}

# The guest itself leaves the others out: what --rule chose of the whole trace is there, no more.
recorded() { # AWK-CONDITION CONDITION...
	awk=$1
	shift
	args=$(IFS=,; echo "$*")
	record --filter 'rules_*' --args "rules_work(path:s,$args)" || return 1
	"$U" trace replay "$T/s.uniscope" --no-switches >"$T/few" 2>"$T/why"
	grep -qF "the guest recorded only such calls: rules_work(path:s,$args)" "$T/why" || { cat "$T/why"; return 1; }
	sed -n 's/.*rules_work(size=\(-\{0,1\}[0-9]*\), path="\([^"]*\)").*/\1 \2/p' "$T/few" >"$T/a"
	theirs | sed -n 's/.*rules_work(\(-\{0,1\}[0-9]*\), "\([^"]*\)").*/\1 \2/p' | awk "$awk" >"$T/b"
	equal "$T/a" "$T/b" || return 1
	# Every call has its end: 24 were made, each with one of rules_long and one of rules_short.
	! grep -q 'not seen to return\|events are missing' "$T/said" &&
		[ "$(grep -c '{$' "$T/few")" -eq "$(grep -c '^[^|]*| *}' "$T/few")" ]
}
same_others() { # all other calls are those of the whole trace
	record --filter 'rules_*' --args 'rules_work(size>1000)' || return 1
	"$U" trace report "$T/s.uniscope" --json >"$T/few.json"
	"$U" trace report "$T/rules.uniscope" --json >"$T/all.json"
	python3 -c '
import json, sys
few, all = ({f["function"]: f["calls"] for f in json.load(open(p))["functions"]} for p in sys.argv[1:3])
assert few.pop("rules_work") < all.pop("rules_work") and few == all and few, (few, all)
assert all' "$T/few.json" "$T/all.json"
}

not_kept() { # a start without conditions records all calls
	begin && "$U" trace start "proc:pid=$pid" --args 'rules_work(size>1000)' 2>"$T/said" &&
		trace --args rules_work && [ "$(grep -c 'rules_work(' "$T/replay")" -eq 24 ]
}

below() { # uftrace has no such option: its tree shows the lines in rules_long's braces
	ours 'rules_leaf:below=rules_long' >"$T/a"
	[ "$(grep -c rules_leaf "$T/a")" -eq "$(theirs -F rules_long | grep -c rules_leaf)" ] && grep -q rules_leaf "$T/a"
}
# Pairs of caller and callee, with their number: of uftrace's tree; main and one_round are not in it.
their_pairs() {
	theirs | awk '/^ *}/ { n--; next } { f = $1; sub(/[(].*/, "", f); print n ? at[n] : "-", f } /{ *$/ { at[++n] = f }' |
		sort | uniq -c
}
# No caller is traced: where each call of these came from is in its record.
callers() { # FUNCTION...
	these=$(printf '|%s' "$@")
	for f; do set -- "$@" --filter "$f"; shift; done
	record --mode callers "$@" && "$U" trace replay -f function "$T/s.uniscope" |
		sed -n 's/.*: \(rules_[a-z]*\) <-\([a-z_]*\)$/\2 \1/p' | sed 's/^main /- /' | sort | uniq -c >"$T/a"
	their_pairs | grep -E " (${these#|})\$" >"$T/b"
	equal "$T/a" "$T/b"
}
callers_of_all() {
	record --mode callers --args 'rules_*' && "$U" trace replay "$T/s.uniscope" |
		sed -n 's/.*|  \(rules_[a-z]*\)(.*); .* <-\([a-z_]*\) \*.$/\2 \1/p' | sed 's/^main /- /' | sort | uniq -c >"$T/a"
	their_pairs >"$T/b"
	equal "$T/a" "$T/b" && grep -qF 'rules_work(size=-400, path=0x' "$T/replay" || { tail -3 "$T/replay"; return 1; }
	# Calls of a caller, and a tree of what is known.
	"$U" trace replay "$T/s.uniscope" --rule 'rules_leaf:below=rules_long' >"$T/below" &&
		[ "$(grep -c rules_leaf "$T/below")" -eq "$(grep -c 'rules_leaf.*<-rules_long' "$T/replay")" ] &&
		"$U" trace graph "$T/s.uniscope" | sed -n 's/^ *\([0-9-]*\) *0 ns *0 ns  /\1 /p' >"$T/tree" &&
		"$U" export -f folded --calls "$T/s.uniscope" -o "$T/folded" &&
		awk '/^-/ { by = $2 } /^[0-9]/ { print by ";" $2, $1 }' "$T/tree" | sort >"$T/a" &&
		sort "$T/folded" >"$T/b" && equal "$T/a" "$T/b"
}
not_known() {
	"$U" trace replay "$T/rules.uniscope" --rule 'rules_work(frob=1)' >"$T/log2" 2>&1
	[ $? -eq 0 ] && grep -q '^# tracer' "$T/log2" && grep -q '24 calls were left out because an argument' "$T/log2" &&
		! grep -q rules_work "$T/log2"
}
refused() { # MESSAGE ARGUMENT
	begin || return 1
	"$U" trace record "proc:pid=$pid" -q -d 1 -o "$T/r.uniscope" --args "$2" 2>"$T/said" && return 1
	grep -qF -- "$1" "$T/said" || { cat "$T/said"; return 1; }
}

# The argument and the value are the variable: uftrace prints them, and the guest read it.
variables() {
	record --args 'vars_take(@vars_state.heap.used)' --args 'vars_give(@vars_level, @vars_state.heap.few, @vars_byte)' &&
		echo | uftrace record -d "$T/uv" --no-pager --no-event -A 'vars_take@arg1' -A 'vars_give@arg1/i32' \
			-R 'vars_take@retval' "$BUILD/tests/e2e/proctexts-uftrace" >"$T/out" &&
		uftrace replay -d "$T/uv" --no-pager --no-event -f none >"$T/theirs" || return 1
	sed -n 's/.*vars_take(.*@vars_state.heap.used=\([0-9]*\)).*/in \1/p; s/.*} .* vars_take .*@vars_state.heap.used=\([0-9]*\) .*/out \1/p
		s/.*vars_give(level=[-0-9]*, @vars_level=\(-*[0-9]*\), .*/level \1/p' "$T/replay" >"$T/a"
	sed -n 's/ *vars_take(\([0-9]*\)).*/in \1/p; s/.*} = \([0-9]*\); .* vars_take .*/out \1/p
		s/ *vars_give(\(-*[0-9]*\)).*/level \1/p' "$T/theirs" >"$T/b"
	[ "$(wc -l <"$T/a")" -eq 72 ] && equal "$T/a" "$T/b" || { head "$T/replay" "$T/theirs"; return 1; }
	mv "$T/s.uniscope" "$T/vars.uniscope"
	# Sizes and signs by debug data; read once more at the end.
	grep -qF 'vars_give(level=0, @vars_level=0, @vars_state.heap.few=0, @vars_byte=251); /* @vars_level=-1, @vars_state.heap.few=-1, @vars_byte=251 */' "$T/replay" &&
		grep -qF 'vars_give(level=2, @vars_level=2, @vars_state.heap.few=-2, @vars_byte=253);' "$T/replay" &&
		grep -qE 'vars_give\(.*, @vars_byte=0\);' "$T/replay" || { grep vars_give "$T/replay"; return 1; }
}
# As counters: each change of a variable, in the order in which uftrace saw it. Perfetto's is read by its own description.
counted() {
	sed -n 's/ *vars_take(\([0-9]*\)).*/\1/p; s/.*} = \([0-9]*\); .* vars_take .*/\1/p' "$T/theirs" | uniq >"$T/theirs.used"
	sed -n 's/ *vars_give(\(-*[0-9]*\)).*/\1/p' "$T/theirs" | uniq >"$T/levels"
	"$U" export "$T/vars.uniscope" -f chrome -o "$T/vars.json" && "$U" export "$T/vars.uniscope" -f perfetto -o "$T/vars.pftrace" || return 1
	python3 - "$T" "$(dirname "$0")/exchange/perfetto.proto" <<-'P' || return 1
		import json, re, shutil, subprocess, sys
		folder, proto = sys.argv[1:]
		calls = json.load(open(folder + "/vars.json"))["traceEvents"]
		seen = {}
		for e in calls:
		    if e["ph"] == "C":
		        seen.setdefault(e["name"], []).append((e["ts"], e["args"]["value"]))
		assert set(seen) == {"vars_state.heap.used", "vars_level", "vars_state.heap.few", "vars_byte"}, seen.keys()
		assert all(v == sorted(v, key=lambda x: x[0]) for v in seen.values())
		values = {k: [x for _, x in v] for k, v in seen.items()}
		open(folder + "/ours.used", "w").write("".join("%d\n" % x for x in values["vars_state.heap.used"]))
		levels = [int(x) for x in open(folder + "/levels")]
		assert levels == values["vars_level"][:len(levels)] and len(values["vars_level"]) == len(levels) + 1, values["vars_level"]
		assert values["vars_state.heap.few"] == [-x for x in range(len(levels) + 1)], values["vars_state.heap.few"]
		assert values["vars_byte"] == [(251 + x) % 256 for x in range(len(levels))], values["vars_byte"]
		if shutil.which("protoc"):
		    text = subprocess.run(["protoc", "--proto_path=" + proto.rsplit("/", 1)[0], "--decode=Trace", "perfetto.proto"],
		                          stdin=open(folder + "/vars.pftrace", "rb"), capture_output=True, check=True, text=True).stdout
		    names, theirs = {}, {}
		    for packet in re.split(r"^packet \{", text, flags=re.M):
		        uuid, name = re.search(r"\buuid: (\d+)", packet), re.search(r'\bname: "(.*)"', packet)
		        track, value = re.search(r"track_uuid: (\d+)", packet), re.search(r"counter_value: (-?\d+)", packet)
		        if "counter {" in packet and uuid:
		            names[uuid[1]] = name[1]
		        elif track and value:
		            theirs.setdefault(names[track[1]], []).append(int(value[1]))
		    assert theirs == values, (theirs, values)
	P
	[ "$(wc -l <"$T/ours.used")" -ge 20 ] && equal "$T/ours.used" "$T/theirs.used"
}
# Elements of arrays: gdb reads the same expressions from the process when its calls are over.
elements() {
	set -- 'vars_grid[1][1]' 'vars_list[4]' 'vars_pool.cell[2].n' 'vars_pool.cell[3].v[1]'
	begin && trace --args "vars_give(@$1, @$2, @$3, @$4)" || return 1
	for e; do set -- "$@" -ex "print (long)$e"; shift; done
	gdb -nx -batch -p "$pid" "$@" >"$T/gdb" 2>&1
	sed -n 's/^\$[0-9]* = //p' "$T/gdb" >"$T/theirs.elements"
	for e in 'vars_grid\[1]\[1]' 'vars_list\[4]' 'vars_pool.cell\[2].n' 'vars_pool.cell\[3].v\[1]'; do
		sed -n "s|.*vars_give(.*@$e=\\(-*[0-9]*\\)[,)].*; /.*|\1|p" "$T/replay" >"$T/before"
		sed -n "s|.*vars_give(.*); /.*@$e=\\(-*[0-9]*\\)[, ].*|\1|p" "$T/replay" >"$T/after"
		[ "$(wc -l <"$T/before")" -eq 24 ] && [ "$(wc -l <"$T/after")" -eq 24 ] && [ "$(sort -u "$T/after" | wc -l)" -eq 24 ] &&
			[ "$(sed 1d "$T/before")" = "$(sed '$d' "$T/after")" ] || { echo "$e"; grep vars_give "$T/replay"; return 1; }
		sed -n '$p' "$T/after"
	done >"$T/ours.elements" || { cat "$T/ours.elements"; return 1; }
	# And rules on them.
	"$U" trace replay "$T/s.uniscope" --rule 'vars_give(@vars_list[4]<0)' >"$T/some" &&
		[ "$(grep -c 'vars_give(level' "$T/some")" -eq 23 ] || { grep vars_give "$T/some"; return 1; }
	[ "$(wc -l <"$T/ours.elements")" -eq 4 ] && equal "$T/ours.elements" "$T/theirs.elements" || { cat "$T/gdb"; return 1; }
}
variables_with_text() { # beside text and a condition; in the events, too
	record --filter 'vars_*' --args 'rules_work(path:s, size>1000, @vars_state.heap.used)' &&
		"$U" trace replay --json "$T/s.uniscope" >"$T/events" &&
		grep -qF 'rules_work(size=1200, path="/etc/passwd", @vars_state.heap.used=1000)' "$T/replay" &&
		grep -qF '"args":"size=1200, path=\"/etc/passwd\", @vars_state.heap.used=1000"' "$T/events" &&
		grep -qF '"value":"ret=600, @vars_state.heap.used=1000"' "$T/events" && ! grep -q 'rules_work(size=200,' "$T/replay" &&
		grep -q 'vars_take()' "$T/replay"
}
not_read() { # another start reads none any more
	begin && "$U" trace start "proc:pid=$pid" --args 'vars_take(@vars_level)' 2>"$T/said" &&
		trace --args vars_take && grep -q 'vars_take(used=1000)' "$T/replay" && ! grep -q @ "$T/replay"
}
values_alone() { # as uftrace prints them
	record --args 'vars_take(return)' && "$U" trace replay "$T/s.uniscope" >"$T/replay" &&
		sed -n 's/.*} .* vars_take ret=\([0-9]*\) .*/out \1/p' "$T/replay" >"$T/a"
	sed -n '/^out/p' "$T/b" >"$T/c"
	equal "$T/a" "$T/c" && [ "$(grep -c 'vars_take() {' "$T/replay")" -eq 24 ]
}
# $T/b has what uftrace printed, in order: the argument, and the value.
value_rule() { # RULE in|out AWK-CONDITION
	"$U" trace replay "$T/vars.uniscope" --rule "$1" >"$T/some" 2>"$T/why" || return 1
	sed -n 's/.*vars_take(used=\([0-9]*\),.*/in \1/p; s/.*} .* vars_take ret=\([0-9]*\),.*/out \1/p' "$T/some" | grep "^$2" >"$T/c"
	grep "^$2" "$T/b" | awk "$3" >"$T/d"
	equal "$T/c" "$T/d" && [ "$(grep -c 'vars_take(used' "$T/some")" -eq "$(grep -c '} .* vars_take' "$T/some")" ] &&
		[ "$(wc -l <"$T/c")" -lt 24 ] && ! grep -q 'left out because' "$T/why"
}

check "texts by a parameter's name, in the stack of the guest" by_name
check "the same texts as uftrace's" as_uftrace
check "texts by a register's number, and a limit" by_number
check "addresses that cannot be read" any
check "variables with each call and its return: what uftrace's arguments and values say" variables
check "rules on values, as uftrace printed them" value_rule 'vars_take(return>3000)' out '$2 > 3000'
check "rules on two values" value_rule 'vars_take(return>1694,return!=2285)' out '$2 > 1694 && $2 != 2285'
check "variables as counters, as uftrace saw them change" counted
check "rules on variables" value_rule 'vars_take(@vars_state.heap.used<=3000)' in '$2 <= 3000'
check "values alone, as uftrace prints them" values_alone
check "elements of arrays with each call, as gdb reads them" elements
check "variables beside text and conditions, in events" variables_with_text
check "a start without variables reads none" not_read
check "no such variable" refused "has no variable 'vars_no'" 'vars_take(@vars_no)'
check "no such member" refused "vars_state.heap has no member 'frob'" 'vars_take(@vars_state.heap.frob)'
check "no such element" refused "vars_list has no element '[5]'" 'vars_give(@vars_list[5])'
check "no element of this one" refused "vars_grid[1][2] has no element '[0]'" 'vars_give(@vars_grid[1][2][0])'
check "no element at all" refused "vars_level has no element '[0]'" 'vars_give(@vars_level[0])'
check "a whole array is no number" refused 'vars_grid[1] is no number' 'vars_give(@vars_grid[1])'
check "what is no number" refused 'vars_state.wide is no number' 'vars_take(@vars_state.wide)'
check "a variable too much" refused 'write FUNCTION' 'vars_take(@a,@a,@a,@a,@a)'
check "no such parameter" refused "no parameter 'name'" 'texts_open(name:s)'
check "what is no argument" refused 'write FUNCTION' 'texts_open(path)'
check "rules: the same calls are in both traces" trace_rules
check "rules: all of them, as in uftrace's" all_calls
check "rules: a function's depth, as uftrace's trigger" option 'rules_long:depth=2' -T rules_long@depth=2
check "rules: a function and its calls are left out, as by uftrace's -N" option 'rules_short:skip' -N rules_short
check "rules: numbers of calls as uftrace's report has them, one self time everywhere" added_up 'rules_short:skip' -N rules_short
check "rules: the same to a depth" added_up 'rules_long:depth=2' -T rules_long@depth=2
check "rules: arguments above a number, as uftrace printed them" condition 'rules_work(size>1000)' '$1 > 1000'
check "rules: arguments below 0" condition 'rules_work(size<0)' '$1 < 0'
check "rules: texts" condition 'rules_work(path~/etc/*)' '$2 ~ "^/etc/"'
check "rules: text and number" condition 'rules_work(path!~/etc/*, size<=200)' '$2 !~ "^/etc/" && $1 <= 200'
check "rules: below a function" below
check "rules: an argument that was not recorded" not_known
check "callers: of one function, as in uftrace's tree" callers rules_leaf
check "callers: of two" callers rules_short rules_long
check "callers: of all, with arguments; in all outputs" callers_of_all
check "recorded: arguments above a number, as uftrace printed them" recorded '$1 > 1000' 'size>1000'
check "recorded: below 0" recorded '$1 < 0' 'size<0'
check "recorded: two conditions" recorded '$1 >= 0 && $1 != 200' 'size>=0' 'size!=200'
check "recorded: calls of other functions are all there" same_others
check "recorded: a start without a condition records all calls again" not_kept
check "recorded: the guest compares numbers only" refused 'compares numbers only' 'rules_work(path~/etc/*)'
check "recorded: a number that no argument can be" refused 'compared with a number that it cannot be' 'rules_work(size>9223372036854775808)'
end
echo "1..$n"
