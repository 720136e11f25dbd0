#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ci.sh UNISCOPE BUILD SRCROOT: the script of docs/ci.md as it stands there, on a repository with two commits. TAP.
set -u
U=$(realpath "$1") BUILD=$(realpath "$2") SRC=$(realpath "$3")
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
mkdir "$T/bin" "$T/repo" && ln -s "$U" "$T/bin/uniscope" && cd "$T/repo" || exit 1
PATH=$T/bin:$PATH
sed -n '/^```sh$/,/^```$/p' "$SRC/docs/ci.md" | sed '1d;$d' >"$T/compare.sh"

# So much work that a boot has samples, whether KVM emulates, has hardware, or is TCG. The steps are small, as
# seven boots do this work: where 10 rounds had 150 to 190 samples, one boot of 1000 rounds took 54 CPU seconds.
for rounds in 10 30 100 300 1000 3000 10000 30000 100000; do
	uniscope run "$BUILD/lab/leaf-gcc-fp.elf" -q -F 999 -d 0 --append "rounds=$rounds" \
		-o "$T/try.uniscope" --overwrite >"$T/try" 2>&1 || continue
	samples=$(uniscope export "$T/try.uniscope" -f folded | awk '{ n += $NF } END { print n + 0 }')
	echo "# $rounds rounds: $samples samples"
	[ "$samples" -lt 150 ] || break
done

# The image of a commit is made of one file: that is the build here.
commit() { # APP
	printf 'image.elf:\n\tcp %s/lab/%s-gcc-fp.elf $@\n' "$BUILD" "$1" >Makefile
	echo "rounds=$rounds" >bench.args
	git add -A && git -c user.name=ci -c user.email=ci@localhost commit -q -m "$1"
}
git init -q . && commit leaf && commit shares || exit 1

sh "$T/compare.sh" HEAD~1 HEAD >"$T/out" 2>"$T/err"
status=$?
sed 's/^/# /' "$T/out" "$T/err" | cut -c1-160
n=0
check() { # WHAT COMMAND...
	n=$((n + 1)) what=$1
	shift
	if "$@" >/dev/null; then echo "ok $n - $what"; else echo "not ok $n - $what"; fi
}
check 'the script ends with 4' [ $status -eq 4 ]
check 'because functions of the new commit take more' grep -q '^failed: function [*] +5pp: ' "$T/out"
# By three runs, the parts of a round are not always sure on a busy host.
check 'round_of_burns is new, and changed' grep -q '[*] total  round_of_burns  (new)' "$T/out"
check 'runs were compared' grep -q '^after .*new-3.uniscope: .* 3 runs$' "$T/out"
check 'the sessions are kept' [ -e old-1.uniscope/session.json ]
check 'and the checkouts are not' [ "$(git worktree list | wc -l)" -eq 1 ]
"$U" diff --per run --fail-if 'total +10%' old-*.uniscope -- new-*.uniscope >"$T/total"
status=$?
sed 's/^/# /' "$T/total" | cut -c1-160
check 'the total of whole runs can be asked for' sh -c '[ "$1" -ne 1 ] && [ "$1" -ne 2 ] && grep -q "per run" "$2"' sh $status "$T/total"
echo "1..$n"
