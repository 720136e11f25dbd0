#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# export_golden.sh UNISCOPE SRCROOT: every format against files that were looked at by eye; with
# UPDATE=1 the files are written anew (look at the change before you commit it). TAP.
set -u
U=$1 G=$2/tests/golden
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0

golden() { # NAME COMMAND...: its standard output is tests/golden/NAME
	name=$1
	shift
	n=$((n + 1))
	# Script and style of an SVG are source files of their own.
	"$@" 2>"$T/err" | sed -e '/^<style>/,/^<\/style>/d' -e '/^<script>/,/<\/script>/d' >"$T/$name"
	[ -n "${UPDATE:-}" ] && cp "$T/$name" "$G/$name"
	if diff -u "$G/$name" "$T/$name" >"$T/diff" && [ -s "$T/$name" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		cat "$T/err" "$T/diff" | head -40 | sed 's/^/# /'
	fi
}
same() { # DESCRIPTION FILE FILE
	n=$((n + 1))
	cmp -s "$2" "$3" && echo "ok $n - $1" || echo "not ok $n - $1"
}

golden shop.out.folded "$U" export "$G/shop.folded" -f folded
golden shop.svg "$U" export "$G/shop.folded" -f svg -O "title=a <shop>" -O subtitle=30\ s
golden shop.icicle.svg "$U" export "$G/shop.folded" -f svg -O inverted -O reverse -O colors=mem \
	-O minwidth=5%
golden shop.json "$U" export "$G/shop.folded" -f json -O pretty
golden shop.txt "$U" report --tree "$G/shop.folded"
golden diff.out.folded "$U" export --diff "$G/diff.folded" -f folded
golden diff.svg "$U" export --diff "$G/diff.folded" -f svg
golden diff.json "$U" export --diff "$G/diff.folded" -f json -O pretty
golden old.folded "$U" export "$G/old.stacktrace" -f folded

"$U" export "$T/shop.out.folded" -f folded >"$T/again" 2>/dev/null
same "folded text comes back as it was" "$T/again" "$T/shop.out.folded"
for f in shop diff; do
	n=$((n + 1))
	python3 - "$T/$f.json" <<'PY' && echo "ok $n - $f.json adds up" || echo "not ok $n - $f.json adds up"
import json, sys
p = json.load(open(sys.argv[1]))
for total, self, value in ("total", "self", "value"), ("total2", "self2", "value2"):
    if total not in p:
        continue
    assert abs(sum(s[value] for s in p["stacks"]) - p[total]) < 1e-6
    for i, f in enumerate(p["functions"]):
        assert abs(sum(s[value] for s in p["stacks"] if s["frames"][-1:] == [i]) - f[self]) < 1e-6
        assert abs(sum(s[value] for s in p["stacks"] if i in s["frames"]) - f[total]) < 1e-6
PY
done
echo "1..$n"
