#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# disk.sh UNISCOPE BUILD SRCROOT: `run --disk` boots a disk by the PC's firmware. It finds the kernel in memory and
# names what that loads. The disk stays as it is. TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
kernel=$BUILD/lab/loads-gcc-fp.elf program=$BUILD/lab/program-gcc-fp.elf disk=$T/a,b.img
[ -e "$BUILD/lab/loads-gcc-fp.img" ] || absent 'gcc made no disk'
cp "$BUILD/lab/loads-gcc-fp.img" "$disk"

# A busy host leaves few samples, and the program comes after the kernel was found.
boots() {
	for seconds in 4 16 64; do
		"$U" run --accel tcg --disk "$disk" -e "$kernel" -e "$program" -d $seconds -o "$T/s.uniscope" \
			--overwrite 2>"$T/err" || {
			cat "$T/err"
			return 1
		}
		"$U" export --no-inline -f folded "$T/s.uniscope" -o "$T/folded" 2>/dev/null
		grep -q 'program_inner;program_burn ' "$T/folded" &&
			grep -q 'program_inner;service_work;service_burn ' "$T/folded" && break
		retry "few samples in $seconds s"
	done
	cat "$T/err" "$T/folded"
	python3 - "$T/s.uniscope/session.json" "$T/folded" "$T/s.console.log" <<'P'
import json, re, sys
session, folded, console = sys.argv[1:]
images = json.load(open(session))["guests"][0]["images"]
said = re.search("program at ([0-9a-f]+)", open(console).read()).group(1)
assert [i["path"].rsplit("/", 1)[1] for i in images] == ["loads-gcc-fp.elf", "program-gcc-fp.elf"], images
assert [int(i["bias"], 16) for i in images] == [0, int(said, 16)], (images, said)
below = {tuple(line.rsplit(" ", 1)[0].split(";")[-2:]) for line in open(folded)}
assert {("program_inner", "program_burn"), ("service_work", "service_burn")} <= below, below
P
}

# The same exactly: the program is named where it was loaded to. The last call may not have reached all of its parts.
counted() {
	for seconds in 2 8 32 128; do
		"$U" run --exact --disk "$disk" -e "$kernel" -e "$program" -d $seconds -o "$T/x.uniscope" --overwrite \
			2>"$T/err" && "$U" export -f counts "$T/x.uniscope" >"$T/counts" && grep -q '"program_burn"' "$T/counts" && break
		retry "the program did not run in $seconds s"
	done
	cat "$T/err"
	"$U" export --no-inline -f folded "$T/x.uniscope" >"$T/folded" &&
		grep 'app_main;call_program;program_start;program_outer;program_inner;program_burn ' "$T/folded" || return 1
	python3 - "$T/counts" <<'P'
import json, sys
of = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
burn, work = of["program_burn"], of["service_work"]
calls = [of[n]["calls"] for n in ("program_start", "program_outer", "program_inner", "program_burn", "service_work")]
print(calls, burn, work)
assert calls == sorted(calls, reverse=True) and calls[0] - calls[-1] <= 1 and calls[0] > 0, calls
assert all(a <= burn["instructions"] / 18000 / k <= b for k, a, b in [(4, burn["calls"] - 1, burn["calls"] * 1.01)]), burn
P
}

# The disk's answers and their times can be given again: two runs are equal, the second one beside a busy loop.
fixed_disk() {
	for seconds in 3 12 48; do
		rm -f "$T/in,puts"
		from_disk first "$seconds" && grep -q 'this run records' "$T/out" && cp "$T/in,puts" "$T/disk.was" || return 1
		from_disk d1 60 --end-at kmain && grep -q 'reached kmain: [1-9]' "$T/out" && break
		retry "the guest did not boot in $seconds s"
	done
	cat "$T/out"
	sh -c 'while :; do :; done' &
	loop=$!
	from_disk d2 60 --end-at kmain
	status=$?
	kill $loop
	[ $status -eq 0 ] && ! grep 'not fixed' "$T/out" && cmp "$T/in,puts" "$T/disk.was" &&
		cmp "$T/d1.uniscope/guest-0/exact" "$T/d2.uniscope/guest-0/exact" || return 1
	head -c 4 /dev/zero | dd of="$T/in,puts" conv=notrunc 2>/dev/null
	from_disk d3 60
	refused $? "$T/out" 1 'did not end as it should: remove it' || return 1
	rm "$T/in,puts"
	from_disk d3 60 --end-at kmain
	refused $? "$T/out" 2 'first record it, without --end-at' && [ ! -e "$T/in,puts" ]
}

from_disk() { # NAME SECONDS OPTION...
	name=$1 seconds=$2
	shift 2
	timeout 120 "$U" run --exact --repeatable --inputs "$T/in,puts" --disk "$disk" -e "$kernel" \
		-d "$seconds" -o "$T/$name.uniscope" --overwrite "$@" >"$T/out" 2>&1
}

same() {
	cmp "$BUILD/lab/loads-gcc-fp.img" "$disk"
}

fails() { # STATUS WORDS OPTION...
	status=$1 words=$2
	shift 2
	"$U" run -q -d 1 -o "$T/bad.uniscope" "$@" >"$T/out" 2>&1
	refused $? "$T/out" "$status" "$words" && [ ! -e "$T/bad.uniscope" ]
}

check 'a disk boots, and kernel and program have names' boots
check '--exact: kernel and program have names' counted
check 'what it answered is given again' fixed_disk
check 'the disk is as it was' same
head -c 510 "$disk" >"$T/none.img" && head -c 4096 /dev/zero >>"$T/none.img"
{ printf 'QFI\373' && tail -c +5 "$disk"; } >"$T/q.img"
check 'a disk that does not boot' fails 1 'no disk that boots' --disk "$T/none.img" -e "$kernel"
check 'a qcow2 image' fails 1 'qemu-img convert -O raw' --disk "$T/q.img" -e "$kernel"
check 'no such disk' fails 1 'cannot read disk' --disk "$T/nowhere.img" -e "$kernel"
check 'a disk without a kernel' fails 2 'needs the ELF of the kernel' --disk "$disk"
check 'a disk and an image' fails 2 'and no IMAGE' --disk "$disk" "$kernel"
check 'a disk and a domain' fails 2 'give one' --disk "$disk" --xl some.cfg -e "$kernel"
finish
