#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exchange.sh UNISCOPE SRCROOT MKSESSION MKTRACE: what is exported is read back by others' programs
# (protoc, callgrind_annotate, npm's pprof-format, speedscope's schema) and by the formats' own
# descriptions, with equal totals for each stack; and what we import gives the same again. TAP.
set -u
U=$1 SRC=$2 MKSESSION=$3 MKTRACE=$4
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
READ=$SRC/tests/e2e/exchange/read.py G=$SRC/tests/golden
export PYTHONDONTWRITEBYTECODE=1
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
skip() { # DESCRIPTION REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
# sum FOLDED: stacks of the same names added up, three decimals, as read.py prints them.
sum() {
	awk '{ v = $NF; sub(/ [0-9.]+$/, ""); s[$0] += v }
		END { for (k in s) printf "%s %.3f\n", k, s[k] }' "$1" | LC_ALL=C sort
}
# back FORMAT SOURCE PERIOD_NS [OPTION...]: exported, then read by its description.
back() {
	format=$1 source=$2 period=$3
	shift 3
	rm -rf out
	"$U" export "$source" -f "$format" -o out "$@" 2>err || { cat err; return 1; }
	python3 "$READ" "$format" out "$period" >got || return 1
	LC_ALL=C sort got >got.sorted
	diff want got.sorted && [ -s want ]
}

"$MKSESSION" "$T/s.uniscope" 3000 2 || exit 1
"$U" export "$T/s.uniscope" -f folded -o s.folded 2>err
check "what folded stacks have no place for is said" grep -q 'not in the format folded: times' err
sum s.folded >want
for format in speedscope firefox perf chrome fxt; do
	check "a session as $format: every stack, every weight" back "$format" "$T/s.uniscope" 1000
done
if command -v protoc >/dev/null; then
	for format in pprof perfetto; do
		check "a session as $format, decoded by protoc" back "$format" "$T/s.uniscope" 1
	done
else
	skip "pprof and Perfetto" "no protoc on this machine"
fi
python3 "$READ" leaves s.folded >leaves
cp leaves want
if command -v callgrind_annotate >/dev/null; then
	check "a session as callgrind, by callgrind_annotate" back callgrind "$T/s.uniscope" 1
else
	skip "callgrind" "no callgrind_annotate on this machine"
fi

# Profiles without times: as much of them as a format holds.
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'main;std::map<int, T&>::find(int const&) 20' \
	'other;leaf 5' 'other;a (b);c [d] 35' '[idle] 7' >names.folded
sum names.folded >want
for format in speedscope perf firefox chrome; do
	check "folded stacks as $format" back "$format" names.folded \
		"$([ "$format" = chrome ] && echo 1000 || echo 1)"
done
command -v protoc >/dev/null && check "folded stacks as pprof" back pprof names.folded 1
command -v protoc >/dev/null && check "folded stacks as perfetto" back perfetto names.folded 1
"$U" export names.folded -f chrome -o out 2>err
check "made-up times are said to be that" grep -q 'there are no times' err

echo "1..$n"
