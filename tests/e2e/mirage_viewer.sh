#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mirage_viewer.sh UNISCOPE SRCROOT: the front end for scripts of MirageOS' viewer, on a trace ring of its. TAP.
set -u
U=$1 ring=$2/fuzz/corpus/mirage/ring
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
n=0

check() { # WHAT COMMAND...
	n=$((n + 1)) what=$1
	shift
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/check"
	fi
}

refused() { # WORDS ARGUMENT...
	words=$1
	shift
	"$U" mirage-trace-viewer "$@" >"$T/out" 2>"$T/err" && return 1
	[ "$(wc -l <"$T/err")" -eq 1 ] && grep -q "$words" "$T/err" || { cat "$T/err"; return 1; }
}

text() {
	"$U" mirage-trace-viewer "$ring" >"$T/out" 2>/dev/null && grep -q '^STATE .* NAME$' "$T/out" || return 1
	"$U" trace threads "$ring" >"$T/threads" 2>/dev/null && tail -n "$(wc -l <"$T/threads")" "$T/out" | cmp - "$T/threads"
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

check 'what is wrong, and who there is' text
check 'a trace is copied as it is' copied
check 'a page and its data for each trace' pages
check 'no windows' refused 'html DIR' --gtk "$ring"
check 'no source' refused 'give a FILE'
check 'two sources for one output' refused 'takes one trace' -w "$T/x" "$ring" "$ring"
check 'two outputs' refused 'one of' -w "$T/x" --html "$T/y" "$ring"
check 'a file and a domain' refused 'files, or a domain' -d web "$ring"
check 'no trace' refused 'neither a session' "$U"
echo "1..$n"
