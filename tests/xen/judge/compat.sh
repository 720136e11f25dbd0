#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Are the texts that the case left in OUT in the grammar, with the header that uniprof wrote?
set -u
n=0
root='lab_entry|lab_pv_start'
check() {
	n=$((n + 1)) what=$1
	shift
	if "$@" >"$OUT/check" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$OUT/check"
	fi
}
text() { python3 "$SRC/tests/e2e/uniprof_text.py" "$@"; }
header() { # TYPE
	[ "$(sed -n 1p "$OUT/raw-$1")" = '#unikernel stack tracer using libxencall hypercall interface' ] &&
		sed -n 2p "$OUT/raw-$1" | grep -q "^#tracing domid $(cat "$OUT/dom-$1") on "
}
five() { # FOLDER
	ls "$OUT/$1" | grep '^app[-.][^u]*$' | grep -v '^app\.svg$' | sort >"$OUT/have"
	printf '%s\n' app-flamegraph.svg app-stackcollapse app-stacktrace app-stacktrace.syms app.syms | sort |
		diff - "$OUT/have" && text raw "$OUT/$1/app-stacktrace" 5 &&
		text named "$OUT/$1/app-stacktrace.syms" 5 "$root" &&
		text collapse "$OUT/$1/app-stacktrace.syms" | diff - "$OUT/$1/app-stackcollapse"
}
for type in pv pvh; do
	check "$type: the header is uniprof's" header $type
	check "$type: traces" text raw "$OUT/raw-$type" 10
	check "$type: traces with names" text named "$OUT/named-$type" 5 "$root"
	check "$type: traces without a pause" text named "$OUT/running-$type" 5 "$root"
	check "$type: xenctx shows the way to the entry" grep -qE '^[0-9a-f]{16}:   \[<[0-9a-f]{16}>\] (lab_entry|lab_pv_start)\+0x' "$OUT/ctx-$type"
done
check 'run --xl: five files' five run
check 'run --xl: a session and its picture' test -d "$OUT/run/app.uniscope" -a -s "$OUT/run/app.svg"
check 'generate-flame-graph: five files' five files
check 'generate-flame-graph: says a domain number' grep -q '^Domain id = [1-9][0-9]*$' "$OUT/said"
echo "1..$n"
