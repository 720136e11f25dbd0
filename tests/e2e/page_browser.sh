#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# page_browser.sh UNISCOPE SRCROOT MKSESSION MKTRACE: the page of `report --html` in a real browser, from disk. Every view is there,
# shows the numbers that `report` prints, and obeys keys and pointer. Hostile names do no harm. TAP.
set -u
U=$1 SRC=$2 MKSESSION=$3 MKTRACE=$4
. "$SRC/tests/support/can.sh"
need browser
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'main;<poll> 20' 'other;leaf 5' 'other;idle 35' \
	'main;fib;fib;fib 12' >"$T/plain.folded"
{
	printf '%s 10\n' '<script>alert(1)</script>' '</script><script>alert(2)</script>' '<!--' '-->' \
		'"><img src=x onerror="alert(4)">' "' onclick='alert(5)' x='" 'javascript:alert(6)' ']]>' \
		'&lt;b&gt;&#60;&amp;' '${window.PWNED=1}' '__proto__' 'constructor' 'toString' '(((((a+)+)+)+)+' '%00%0a?s=x#v=1'
	printf 'a\342\200\256evil\342\200\254;\327\251\327\234\327\225\327\235;\001\002 10\n'
	printf 'bad\377utf8;\357\277\277noncharacter;\360\237\224\245 10\n'
	printf '%s! 10\n' "$(printf '%060d' 0 | tr 0 a)"
	long=$(printf '%4000s' '' | tr ' ' 'W')
	printf '%s;%s 10\n' "$long" "$long"
} >"$T/hostile.folded"
printf '%s\n' 'main;a 50' 'main;b 30' 'main;gone 20' >"$T/old.folded"
printf '%s\n' 'main;a 20' 'main;b 60' 'main;new 20' >"$T/new.folded"
printf '%s\n' 'main;a 50 20' 'main;b 30 60' 'main;gone 20 0' 'main;new 0 20' >"$T/diff.folded"
printf '%s\n' 'main;a 3000' 'main;b 4600' 'main;gone 400' 'main;same 2000' >"$T/whole.folded"
printf '%s\n' 'main;a 1990' 'main;b 2000' 'main;same 1010' >"$T/half.folded"
printf '%s\n' 'main;same 79 800' 'main;more 10 150' 'main;less 11 50' >"$T/longer.folded"
awk 'BEGIN { printf "f0"; for (i = 1; i < 5000; i++) printf ";f%d", i; print " 5" }' >"$T/deep.folded"
echo 'a;b 0' >"$T/nothing.folded"
printf '%s\r\n' function,tid,latency_us,latency_us_self kernel_sleep,1,99900000.0,99900000.0 \
	runloop_internal,1,99990000.0,30000.0 tcp_input,1,50000.0,40000.0 memcpy,1,10000.0,10000.0 \
	tcp_input,2,20000.0,15000.0 '"weird ""name"", x",2,5000.0,5000.0' >"$T/trace.csv"
cat >"$T/calls.txt" <<'EOF'
# tracer: function_graph
 0)               |  outer() {
 0)   1.000 us    |    inner();
 0)   2.000 us    |    inner();
 0)   5.000 us    |  }
 1)   7.000 us    |  other();
EOF
"$MKTRACE" "$T/moved.uniscope" 20000 4 graph 7 && "$U" report --html "$T/moved.html" "$T/moved.uniscope" 2>/dev/null &&
	cp -r "$T/moved.uniscope" "$T/cut.uniscope" && truncate -s 20503 "$T/cut.uniscope/guest-0/events-vcpu0" &&
	"$U" report --html "$T/cut.html" "$T/cut.uniscope" 2>/dev/null &&
	"$U" trace breakdown --json "$T/moved.uniscope" >"$T/moved.cpus" 2>/dev/null &&
	"$U" trace report --json --from 0.002 --to 0.0021 "$T/moved.uniscope" >"$T/moved.json" 2>/dev/null &&
	"$MKSESSION" "$T/s.uniscope" 30000 2 && "$U" report --html "$T/s.html" "$T/s.uniscope" &&
	"$U" report --json "$T/s.uniscope" >"$T/s.json" && "$U" report --exits --json "$T/s.uniscope" >"$T/x.json" &&
	for nr in 300 2500; do
		seq "$nr" | sed 's/.*/main;fn_& &/' >"$T/many.folded"
		"$U" report --html "$T/many$nr.html" "$T/many.folded" || exit 1
	done
	"$U" report --html "$T/deep.html" "$T/deep.folded" 2>/dev/null && "$U" report --html "$T/nothing.html" "$T/nothing.folded" &&
	"$U" report --html "$T/plain.html" "$T/plain.folded" && "$U" report --html "$T/csv.html" "$T/trace.csv" 2>/dev/null &&
	"$U" report --hide 'kernel_*' --hide 'runloop_[a-j]*' --html "$T/hide.html" "$T/trace.csv" 2>/dev/null &&
	"$U" report --hide 'kernel_*' --hide 'runloop_[a-j]*' --json "$T/trace.csv" >"$T/hide.json" 2>"$T/hide.err" &&
	grep -q '^uniscope: 99.93 % of the time is left out, .*: shares are of the rest$' "$T/hide.err" && "$U" report --diff --html "$T/diff.html" "$T/diff.folded" &&
	"$U" report --diff --html "$T/longer.html" "$T/longer.folded" &&
	"$U" export -f svg -o "$T/plain.svg" "$T/plain.folded" && "$U" export -f svg -O bgcolors=#ffffff -o "$T/chosen.svg" "$T/plain.folded" &&
	{ "$U" diff -o "$T/compared.html" "$T/whole.folded" "$T/half.folded" >"$T/compared.txt"; [ $? -eq 4 ]; } &&
	"$U" report --html "$T/both.html" --before "$T/old.folded" "$T/new.folded" &&
	"$U" report --html "$T/hostile.html" "$T/hostile.folded" &&
	"$U" report --html "$T/ring.html" "$SRC/fuzz/corpus/mirage/ring" &&
	python3 "$SRC/tests/e2e/mirage_ring.py" "$T/doubts" && "$U" report --html "$T/doubts.html" "$T/doubts" &&
	"$U" trace findings "$T/doubts" >"$T/doubts.txt" &&
	"$U" report --input-format ftrace --html "$T/calls.html" "$T/calls.txt" || {
	echo "Bail out! report --html failed"
	exit 1
}
python3 "$SRC/tests/e2e/page_browser.py" "$T" "$U" "$MKSESSION"
