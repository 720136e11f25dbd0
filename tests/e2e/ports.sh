#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ports SOURCE: the C files of guest/ports compile against stand-ins for the kernels that they are
# for (tests/ports): names, types and warnings. No kernel is built.
set -eu
src=$1
nr=0 bad=0

check()
{
	nr=$((nr + 1))
	if "$@" >"$out/log" 2>&1; then
		echo "ok $nr - $what"
	else
		echo "not ok $nr - $what"
		sed 's/^/# /' "$out/log"
		bad=1
	fi
}

compiles()
{
	kernel=$1 what="$1: $2 compiles"
	shift
	check gcc -std=gnu11 -Wall -Wextra -Werror -ffreestanding -mgeneral-regs-only -O2 -c -o "$out/o" \
		"-I$src/tests/ports/$kernel" "-I$src/include" "-I$src/guest" "-I$src/guest/x86_64" \
		"$src/guest/ports/$kernel/$1"
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for f in start switch ticks; do
	compiles unikraft $f.c
done
echo "1..$nr"
exit $bad
