#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ftrace.sh UNISCOPE SRCROOT: texts of Nanos' and Linux' ftrace become every format of calls, which
# other programs read back. Also the front ends for Nanos' trace utilities. TAP.
set -u
U=$1 SRC=$2
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
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
		sed 's/^/# /' log | head -40
	fi
}
skip() { # DESCRIPTION REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
# is FILE: its content is standard input, byte for byte.
is() {
	cat >want
	diff -u want "$1"
}

cat >graph <<'EOT'
# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 0)               |  main() {
 0)   0.071 us    |    leaf();
 0)               |    a() {
 0)   0.071 us    |      a();
 0) ! 208.173 us  |    } /* a */
 0) # 1000.000 us |  } /* main */
 12) + 12.500 us   |  idle();
------------------------------------------
 12) tid-3  => worker-4
------------------------------------------
 12)   9.500 us    |  operator,();
EOT
# The same as it may arrive: a header for each CPU, plain braces, noise.
sed -e 's,} /\*.*,},' -e '/12) + /i # tracer: function_graph\n#' -e '/idle/a lost line' graph >damaged

crlf() {
	[ "$(grep -c "$(printf '\r')$" trace.csv)" = 7 ] && tr -d '\r' <trace.csv >t && mv t trace.csv
}
parse() { "$U" parse-trace "$1" 2>err && crlf && csv_is; }
csv_is() {
	is trace.csv <<'EOT'
function,tid,latency_us,latency_us_self
leaf,0,0.071,0.071
a,0,0.071,0.071
a,0,208.173,208.102
main,0,1000.0,791.756
idle,3,12.5,12.5
"operator,",4,9.5,9.5
EOT
}

check "parse-trace writes trace.csv" parse graph
check "and says nothing of what is whole" test ! -s err
check "headers, plain braces and noise are no calls" parse damaged
check "and the noise is told" grep -q '1 lines are none that ftrace writes.*line 14' err
summary() {
	"$U" summarize-trace "$1" >out && is out <<'EOT'
function,count,tot lat,self lat
main,1,1,0.791756
a,2,0.208244,0.208173
idle,1,0.0125,0.0125
"operator,",1,0.0095,0.0095
leaf,1,0.000071,0.000071
EOT
}
check "summarize-trace: the header is no function" summary trace.csv
check "it reads the text, too" summary graph
columns() {
	"$U" summarize-trace -t trace.csv >out && head -n 2 out >two && printf '%-30s\t%s\t%13s\t%13s\n' \
		function count 'tot lat' 'self lat' main 1 1 0.791756 | is two
}
check "summarize-trace -t: columns" columns
old_floats() { # as Python wrote them
	printf 'function,tid,latency_us,latency_us_self\r\nf,1,7.1e-05,208.10200000000003\r\nf,1,1.0,-2.8e-14\r\nf,x,1,1\r\n' >old.csv
	"$U" summarize-trace old.csv >out 2>err && grep -qx 'f,2,0.001,0.208102' out && grep -q '1 lines.*line 4' err
}
check "a trace.csv of the older tool" old_floats
folded() {
	"$U" parse-trace-fg graph && is tracefg.out <<'EOT'
idle 12
main 791
main;a 208
main;a;a 0
main;leaf 0
operator, 9
EOT
}
check "parse-trace-fg: a call of itself stays a frame" folded
nanoseconds() { "$U" parse-trace-fg --ns -o - graph | grep -qx 'main;a;a 71'; }
check "and short ones count in nanoseconds" nanoseconds
breakdown() {
	"$U" runtime-breakdown graph >out && grep -q '^tid 3: 0.0125 ms, 1 call$' out &&
		grep -Eq '^ +0.208173 +20.82 +2  a$' out || return 1
	"$U" runtime-breakdown --json --cpu graph >out.json && python3 - <<'PY'
import json
d = json.load(open("out.json"))
assert [(p["cpu"], p["self"], p["calls"]) for p in d["parts"]] == [(0, 1000000, 4), (12, 22000, 2)], d
assert [f["name"] for f in d["parts"][0]["functions"]] == ["main", "a", "leaf"]
PY
}
check "runtime-breakdown by thread and by CPU" breakdown
as_page() {
	printf 'function,tid,latency_us,latency_us_self\r\nmain,3,9,4\r\nkernel_sleep,3,5,5\r\n' >bars.csv
	"$U" runtime-breakdown --html bars.html --hide 'kernel_*' bars.csv && "$U" report --html want.html --hide 'kernel_*' bars.csv &&
		cmp bars.html want.html && "$U" runtime-breakdown --html all.html bars.csv && ! cmp -s all.html bars.html && ! "$U" runtime-breakdown --hide x bars.csv 2>err && grep -q 'goes with --html' err
}
check "runtime-breakdown --html is report's page of that trace.csv" as_page
# While others run, a thread's call takes no time of its own. a takes 510 us, of which w took 500 (in which z took 400). late is
# open when its thread goes, and does not say how long that was away.
cat >away <<'EOT'
# tracer: function_graph
 0)               |  a() {
------------------------------------------
 0) tid-3  => worker-4
------------------------------------------
 0)               |  w() {
 0) ! 400.000 us  |    z();
 0) ! 500.000 us  |  } /* w */
 0)               |  late() {
------------------------------------------
 0) worker-4  => tid-3
------------------------------------------
 0) ! 510.000 us  |  } /* a */
 0)               |  b() {
------------------------------------------
 0) tid-3  => worker-4
------------------------------------------
 0) # 5000.000 us |  } /* late */
 0)   1.000 us    |  z();
------------------------------------------
 0) worker-4  => tid-3
------------------------------------------
 0) # 4400.000 us |  } /* b */
EOT
away() {
	"$U" summarize-trace away >out && is out <<'EOT' || return 1
function,count,tot lat,self lat
late,1,5,5
b,1,4.4,4.399
z,2,0.401,0.401
w,1,0.5,0.1
a,1,0.51,0.01
EOT
	"$U" parse-trace -o away.csv away && "$U" summarize-trace away.csv | cmp - out &&
		"$U" runtime-breakdown --json away >out.json && python3 -c 'import json
d = json.load(open("out.json"))
assert [(p["tid"], p["self"]) for p in d["parts"]] == [(3, 4409000), (4, 5501000)], d'
}
check "time off the CPU is nobody's own" away
check "what is no trace fails" sh -c '! "$1" parse-trace "$1" 2>err && grep -q "no line that the tracers" err' sh "$U"
printf 'a,1,2,3\nno\nrow\n' >other
check "nor what looks like it in one line of three" sh -c '! "$1" summarize-trace other 2>err &&
	grep -q "function,tid" err' sh "$U"
check "nor is it a trace.csv" sh -c '! "$1" summarize-trace "$1" 2>err && grep -q "function,tid" err' sh "$U"

same() { "$U" export graph -f nanos | diff -u graph -; }
check "a text comes out as it went in" same
same_function() {
	cat >function <<'EOT'
# tracer: function
#
#
#           TASK-PID   CPU#     TIMESTAMP  FUNCTION
#              | |       |         |         |
             tid-1     [000]  123456789: first <-start
 a.long-name.of.-12345 [011]  18446744073709551615: << unknown symbol >> <-first
EOT
	"$U" export function -f nanos -O tracer=function | diff -u function -
}
check "that of the tracer function, too" same_function
tree() { "$U" export "$1" -f folded >out && is out; }
check "as folded stacks, in nanoseconds" tree graph <<'EOT'
idle 12500
main 791756
main;a 208102
main;a;a 71
main;leaf 71
operator, 9500
EOT
unit() { "$U" export "$1" -f json -o - | grep -q "\"unit\": *\"$2\""; }
check "which JSON says" unit graph ns
check "or that it counts calls" unit function calls
check "by calls" tree function <<'EOT'
first;<< unknown symbol >> 1
start;first 1
EOT
imported() {
	"$U" import graph -o s.uniscope 2>err && "$U" report s.uniscope >out && grep -q 791,756 out
}
check "import makes a session of it" imported

chrome() {
	"$U" export graph -f chrome -O args -o t.json && python3 - <<'PY'
import json
events = json.load(open("t.json"))["traceEvents"]
calls = [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]["self_us"]) for e in events if e["ph"] == "X" and e["pid"] == 1]
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert len(calls) == 6, calls
main = next(c for c in calls if c[0] == "main")
assert main[2:] == (0.0, 1000.0, 791.756), main
assert {names[c[1]] for c in calls} == {"tid-0", "tid-3", "worker-4"}, names
# Each lies within one of its thread, or beside it.
for a in calls:
    for b in calls:
        if a[1] == b[1] and a[2] < b[2] < a[2] + a[3] - 1e-9:
            assert b[2] + b[3] <= a[2] + a[3] + 1e-9, (a, b)
PY
}
check "Chrome's JSON: calls nest, threads have names" chrome
fxt() {
	"$U" export graph -f fxt -o t.fxt && python3 "$SRC/tests/e2e/fxt_read.py" t.fxt | sort >out && is out <<'EOT'
cpu12 12500 tid-3 worker-4
tid-0 a 71 142
tid-0 a 71 208244
tid-0 leaf 0 71
tid-0 main 0 1000000
tid-3 idle 0 12500
worker-4 operator, 12500 22000
EOT
}
check "Fuchsia's format" fxt
if command -v uftrace >/dev/null 2>&1; then
	check "uftrace: the folder is made" "$U" export graph -f uftrace -o u
	totals() {
		uftrace report --no-pager -d u -f total,self,call | awk 'NR > 2 { print $NF, $1 $2, $3 $4, $5 }' | sort >out
		is out <<'EOT'
a 208.173us 208.173us 2
idle 12.500us 12.500us 1
leaf 0.071us 0.071us 1
main 1.000ms 791.756us 1
operator, 9.500us 9.500us 1
EOT
	}
	check "uftrace report: totals are equal" totals
	replay() {
		uftrace replay --no-pager -d u >out && grep -q '0.071 us .*leaf' out && [ "$(grep -c 'main' out)" = 2 ]
	}
	check "uftrace replay" replay
	graph() { uftrace graph --no-pager -d u >out && grep -Eq '1.000 ms : .*\(1\) main' out; }
	check "uftrace graph" graph
else
	skip "uftrace reads the folder" "no uftrace here"
fi
again() { ! "$U" export graph -f uftrace -o u 2>err && grep -q 'there already' err; }
mkdir -p u
check "a folder that is there stays" again
check "a folder cannot go to standard output" sh -c '! "$1" export graph -f uftrace 2>err && grep -q "name it with -o" err' sh "$U"
check "nothing is left behind" sh -c '! ls | grep -q tmp-'
echo "1..$n"
