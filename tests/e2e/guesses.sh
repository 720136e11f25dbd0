#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# guesses.sh UNISCOPE BUILD SRCROOT: uniscope says what it cannot know. An image with neither frame pointers nor call frame
# information has guessed chains. They are marked and, without the scan, not complete. Also code of no known image, and threads that
# no model knows. Guests under TCG. TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
command -v objcopy >/dev/null || absent 'objcopy is not installed'
s=$T/s.uniscope

# Until there are enough samples to tell.
records() { # OPTIONS...
	for seconds in 1 3 12 30 80; do
		timeout 140 "$U" record "$target" -q -F 499 -d $seconds -o "$s" --overwrite "$@" || return 1
		[ "$("$U" export --no-inline -f folded "$s" | awk '{n += $NF} END {print n + 0}')" -ge 100 ] && return 0
		retry "fewer than 100 samples in $seconds s"
	done
	return 1
}

# The share of chains that reach their root is between these, in percent.
complete() { # LOW HIGH
	"$U" report "$s" >"$T/report" && "$U" export --no-inline -f json "$s" -o "$T/json" || return 1
	grep '^chains' "$T/report"
	python3 -c 'import json, sys
g = json.load(open(sys.argv[1]))["recording"]["guests"][0]
print(g["complete"], g["guessed"])
assert float(sys.argv[2]) <= 100 * g["complete"] <= float(sys.argv[3])' "$T/json" "$1" "$2"
}

# All names but those of the leaf and its caller are guesses here.
guesses_are_marked() {
	boot tcg "$T/bare.elf" "" && records -e "$T/bare.elf" && complete 60 100 || return 1
	grep '^guesses .*marked ?' "$T/report" || return 1
	"$U" export --no-inline -f folded "$s" | tee "$T/folded" | grep 'lab_thread_entry ?;worker_main' || return 1
	"$U" export --no-inline -f folded --no-marks "$s" | grep -F '?' && return 1
	"$U" export -f svg "$s" | grep -q '<title>lab_thread_entry ? (' &&
		grep -q '"name":"lab_thread_entry","kind":"guest","guess":true' "$T/json" || return 1
	"$U" stacks "$target" -e "$T/bare.elf" | tee "$T/stacks"
	grep ' ?$' "$T/stacks"
}

# Such code has no frame pointers: rbp is a number, often 0, and looks like a root.
short_chains_are_not_complete() {
	records -e "$T/bare.elf" --unwind cfi,fp && complete 0 10
}

# The same image with all it has is a hundred percent, without a guess.
whole_image() {
	boot tcg "$whole" "" && records -e "$whole" && complete 99 100 && ! grep '^guesses' "$T/report" &&
		"$U" export --no-inline -f folded "$s" -o "$T/folded" && ! grep -F '?' "$T/folded"
}

# Leaves in a program that was not given.
unknown_code() {
	boot tcg "$loads" "" --initrd "$program" && wait_for 60 grep -q 'program at' "$T/serial" || return 1
	for _ in $(seq 40); do
		"$U" stacks "$target" -e "$loads" >"$T/out" 2>"$T/err" || return 1
		grep -q 'unknown' "$T/out" && break
		sleep 0.05
	done
	cat "$T/out" "$T/err"
	at=$(sed -n 's/.*program at \([0-9a-f]*\).*/\1/p' "$T/serial" | head -1)
	grep 'no image that is known, at 0x[0-9a-f]* to 0x[0-9a-f]*: --sysroot' "$T/err" || return 1
	python3 - "$T/err" "$at" <<'P'
import re, sys
said = re.search("at 0x([0-9a-f]+) to 0x([0-9a-f]+)", open(sys.argv[1]).read())
low, high, at = int(said[1], 16), int(said[2], 16), int(sys.argv[2], 16)
assert at <= low <= high < at + (1 << 20), (said.groups(), sys.argv[2])
P
	records -e "$loads" || return 1
	"$U" report "$s" 2>&1 >"$T/out" | tee "$T/err"
	grep 'have no name, .* record with --sysroot' "$T/err"
}

# No thread was ever made here; and of other guests nobody knows how they keep them.
threads_that_are_not_known() {
	boot tcg "$deep" "" || return 1
	"$U" stacks --threads "$target" -e "$deep" >"$T/out" 2>"$T/err" || return 1
	cat "$T/err"
	[ "$(wc -l <"$T/err")" -eq 1 ] && grep 'no threads: .* is empty' "$T/err" && grep '^vCPU 0' "$T/out" ||
		return 1
	objcopy -N lab_threads -N lab_current "$deep" "$T/other.elf"
	"$U" stacks --threads "$target" -e "$T/other.elf" >"$T/out" 2>"$T/err"
	refused $? "$T/err" 1 'no model knows this guest (there are: .*unikraft'
}

empty_name() {
	"$U" stacks "$target" -e '' >"$T/out" 2>"$T/err"
	refused $? "$T/err" 2 'name of the image (-e) is empty'
}

# ls and doctor name the way that record takes.
ways_agree() { # IMAGE BACKEND METHOD
	boot kvm "$1" "" || return 1
	"$U" ls --json >"$T/ls.json" && python3 -c 'import json, sys
print(*[g["backend"] for g in json.load(open(sys.argv[1]))["guests"] if g["pid"] == int(sys.argv[2])])' "$T/ls.json" "$guest" |
		tee "$T/backend" | grep -x "$2" || return 1
	"$U" doctor "kvm:pid=$guest" | tee "$T/doctor" | sed '1,/^ok  *target /d' | grep "ok  *$2 " || return 1
	"$U" record "kvm:pid=$guest" -e "$1" -q -d 0.2 -o "$s" --overwrite && grep "\"method\": *\"$3\"" "$s/session.json"
}

for v in $compilers; do
	whole=$BUILD/lab/waits-$v-nofp.elf
	[ -e "$whole" ] || continue
	objcopy -g -R .eh_frame -R .eh_frame_hdr "$whole" "$T/bare.elf"
	check "guesses are marked everywhere ($v)" guesses_are_marked
	check "short chains are not called complete ($v)" short_chains_are_not_complete
	in_all check "nothing is guessed where rows are ($v)" whole_image
	if [ -n "$no_bpf" ]; then
		skip "ls, doctor and record agree ($v)" "$no_bpf"
		continue
	fi
	check "kvm: ls, doctor and record agree: it is stopped ($v)" ways_agree "$T/bare.elf" kvm pause
	check "kvm: they agree: it is not, where rows are ($v)" ways_agree "$whole" kvm-bpf bpf
done
for v in gcc-fp gcc-nofp clang-fp clang-nofp; do
	loads=$BUILD/lab/loads-$v.elf program=$BUILD/lab/program-$v.elf
	[ -e "$loads" ] && break
done
deep=$(image deep)
check 'code of no known image is told, with its place' unknown_code
check 'why there are no threads' threads_that_are_not_known
check 'an empty name of an image' empty_name
finish
