#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# export_golden.sh UNISCOPE SRCROOT [update]: every format against files that were looked at by eye. With "update" it writes the
# files anew (look at the change before you commit it). The contents are judged apart, by golden_judge.py from the input. TAP.
set -u
U=$1 G=$2/tests/golden UPDATE=${3:-}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0

golden() { # NAME COMMAND...: its standard output is tests/golden/NAME
	name=$1
	shift
	n=$((n + 1))
	# Script and style of an SVG are source files of their own.
	"$@" 2>"$T/err" | sed -e '/^<style>/,/^<\/style>/d' -e '/^<script>/,/<\/script>/d' >"$T/$name"
	[ "$UPDATE" = update ] && cp "$T/$name" "$G/$name"
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
judged() { # DESCRIPTION WORD...
	n=$((n + 1)) what=$1
	shift
	python3 "$(dirname "$0")/golden_judge.py" "$@" >"$T/said" 2>&1 && echo "ok $n - $what" || {
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/said"
	}
}
judged "shop.json is the input, and adds up" json "$G/shop.folded" "$T/shop.json"
judged "diff.json is the input, and adds up" json "$G/diff.folded" "$T/diff.json"
judged "shop.svg has the input's numbers and widths" svg "$G/shop.folded" "$T/shop.svg"
judged "shop.txt has the input's numbers" text "$G/shop.folded" "$T/shop.txt"
echo "1..$n"
