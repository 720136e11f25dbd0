#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vcpus.sh UNISCOPE BUILD SRCROOT: guests with more vCPUs than uniscope reaches. Nothing is written to
# them, and every command says how many it left off. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"

elf=$BUILD/lab/trace/trace-smp-gcc-fp.elf

# The words, once, on stderr of a command that succeeds.
says() { # WORDS COMMAND...
	words=$1
	shift
	"$@" >"$T/out" 2>"$T/said" && [ "$(grep -c -e "$words" "$T/said")" -eq 1 ] && return 0
	cat "$T/said"
	return 1
}

starts_nothing() {
	code "$T/before" || return 1
	"$U" trace start "$target" -e "$elf" 2>"$T/said"
	refused $? "$T/said" 1 "nothing was written: 8 of the guest's 72 vCPUs cannot be held" &&
		code "$T/after" && cmp "$T/before" "$T/after"
}

# All that can be patched: the segments with code, as they are in the guest's memory now.
code() { # FILE
	"$U" record "$target" -e "$elf" -q -F 20 -d 0.2 --watch cpu0_hot:512 --watch other_hot:512 \
		-o "$T/code.uniscope" --overwrite 2>"$T/said" || { cat "$T/said"; return 1; }
	python3 -c 'import json, sys
for w in json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["watches"]:
    print(w["name"], w["last"]["bytes"])' "$T/code.uniscope" >"$1"
}

left='8 of its 72 vCPUs are left off'
for accel in $accels; do
	boot "$accel" "$elf" '' --smp 72 || exit 1
	check "$accel, 72: ls" says "$left" "$U" ls
	check "$accel, 72: stacks" says "$left" "$U" stacks "$target" -e "$elf"
	check "$accel, 72: record" says "$left" "$U" record "$target" -e "$elf" -d 0.3 -F 20 \
		-o "$T/r.uniscope" --overwrite
	check "$accel, 72: trace start is refused, and no byte differs" starts_nothing
done
finish
