#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# guides.sh UNISCOPE BUILD SRCROOT: the scripts in docs/guides/ do what the pages say, on guests of the lab. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
mkdir "$T/bin" "$T/w" && ln -s "$U" "$T/bin/uniscope" && cd "$T/w" || exit 1
PATH=$T/bin:$PATH

# script PAGE NUMBER: that block of shell commands.
script() {
	awk -v want="$2" '/^```sh$/ { n++; on = n == want; next } /^```$/ { on = 0 } on' "$SRC/docs/guides/$1.md" >"$T/script.sh"
	[ -s "$T/script.sh" ]
}

flame() {
	script own-kernel 1 && timeout 120 sh "$T/script.sh" "$(image demo)" >"$T/out" 2>&1 || { cat "$T/out"; return 1; }
	grep -q ' FUNCTION$' "$T/out" && grep -q '<svg' flame.svg && grep -q lab_entry flame.svg || { cat "$T/out"; return 1; }
}

# The guest works on: as often as it takes, until both of its paths were seen.
calls() {
	script own-kernel 2 || return 1
	for _ in $(seq 20); do
		timeout 120 sh "$T/script.sh" "$target" "$elf" uk_syscall_r_open >"$T/out" 2>&1 || { cat "$T/out"; return 1; }
		grep -q '^ *[0-9]* uk_syscall_r_open(path="/data/file", flags=66, mode=420); /[*] ret=3 [*]/' "$T/out" &&
			grep -q '^ *[0-9]* uk_syscall_r_open(path="/nonexistent", flags=0, mode=0); /[*] ret=-2 [*]/' "$T/out" &&
			return 0
	done
	cat "$T/out"
	return 1
}

check "your own kernel: a flame graph" flame
check "your own kernel: starts" boot_waiting tcg 1 "$BUILD/lab/trace/trace-syscalls-gcc-fp.elf" "rounds=100000000 ring=1024"
echo >&9
check "your own kernel: a trace with the texts of its calls" calls
end_guest
finish
