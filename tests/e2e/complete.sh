#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# complete.sh UNISCOPE BUILD SRCROOT tcg|kvm|bpf|aarch64: programs of all shapes, with frame pointers and without. Judged by
# judge.py, they give complete chains and the shares of time in the guests' own books. The shapes are frameless leaves, deep stacks,
# several vCPUs, threads, and a halted vCPU. It takes fewer samples than truth.sh, because it tests the chains. aarch64 is by TCG.
# TAP.
set -u
U=$1 BUILD=$2 SRC=$3 how=$4 under=$4 unwind=
lab=$BUILD/lab qemu=qemu-system-x86_64
# If QEMU waits for a CPU at each pause, pauses become long, and few. So it gets a higher priority if it may.
# shellcheck disable=SC2034 # for guest.sh
[ "$how" = aarch64 ] && lab=$BUILD/lab/aarch64 qemu=qemu-system-aarch64 how=tcg ahead='nice -n -15'
. "$SRC/tests/e2e/guest.sh"
command -v $qemu >/dev/null || absent "$qemu is not installed"
case $how in
kvm) need kvm ;;
bpf) need kvm bpf ;;
esac
here=$SRC/tests/e2e

record() { # SECONDS
	# shellcheck disable=SC2086
	timeout $(($1 + 60)) "$U" record "$target" "$(method "$how")" -F 499 -d "$1" -e "$elf" ${unwind:+--unwind $unwind} --watch lab_truth \
		-o "$T/s.uniscope" --overwrite >"$T/log" 2>&1 || {
		cat "$T/log"
		return 1
	}
}

judged() { # JUDGE-OPTIONS...
	"$U" export --no-inline "$T/s.uniscope" --all-time -f json -o "$T/s.json" &&
		python3 "$here/judge.py" --stacks "$T/s.json" --session "$T/s.uniscope" \
			--graph "$lab/$name.graph" --min-samples 150 "$@"
}

complete() { # IMAGE SMP SECONDS JUDGE-OPTIONS...
	name=$1 smp=$2 first=$3
	shift 3
	# By turns: samples that a busy host leaves out of one long phase would be missing in its share.
	boot "$how" "$lab/$name.elf" "mix=1 inner=$inner unit=$unit" --smp "$smp" || return 1
	beats || return 1 # what it said as it began is in its books by then
	# A busy host leaves TCG few samples, and the missing ones are not random. If a few hundred samples cannot decide (3), it
	# records again for longer.
	for seconds in "$first" $((3 * first)) 10 30 120; do
		record "$seconds" || return 1
		unwatched judged "$@"
		judgement=$?
		[ $judgement -eq 3 ] || break
		retry "$name under $under: too few samples in $seconds s"
	done
	end_guest
	return $judgement
}

# The session of the smp guest: each function on its vCPU only.
own_vcpu() {
	"$U" report --no-inline --all-time --per-vcpu --json "$T/s.uniscope" >"$T/v.json" || return 1
	for row in 'vcpu 0:cpu0_hot:' 'vcpu 1:cpu1_hot:' 'vcpu 1:cpu0_hot:not' 'vcpu 0:cpu1_hot:not'; do
		root=${row%%:*} no=${row##*:} function=${row#*:}
		# shellcheck disable=SC2086
		python3 "$here/ask.py" below "$T/v.json" "$root" "${function%:*}" $no || return 1
	done
	"$U" report --no-inline --all-time --vcpu 1 --json "$T/s.uniscope" >"$T/v.json" || return 1
	! grep -q cpu0_hot "$T/v.json" && grep -q cpu1_hot "$T/v.json"
}

# The session of the idle guest: many samples are of a halted vCPU, in the function that halts. On a
# quiet host these are nearly all; on a busy one the guest's little work takes long.
halted() {
	python3 "$here/ask.py" number "$T/s.uniscope" halted 50 &&
		python3 "$here/ask.py" leaf "$T/s.json" 'lab_halt;[idle]' 0.1 &&
		"$U" report "$T/s.uniscope" >"$T/report" && grep "^halted  .*: the vCPU waited for an interrupt, or its thread slept in the VMM" "$T/report" &&
		"$U" export --no-inline "$T/s.uniscope" -f folded -o "$T/on.folded" &&
		! grep -q '\[idle\]' "$T/on.folded"
}

# The books are charged when a function ends: under a KVM that emulates, 0.1 s late. So it records longer there. The vCPUs of TCG
# share a lock when they read the clock. A busy host may stop a vCPU that holds the lock for long: the books count all of that time,
# but one sample sees it. Longer calls rarely meet there, and the reads of the clock take less of the time. With leaves of 200 turns,
# the books had 3.4 % between the calls, and 14,151 samples at a load of 50 had 1.5.
long=1 inner=20 unit=1000
[ "$how" = tcg ] || long=3 inner=1 unit=200
# The kernel goes by frame pointers if there are any. Then an interrupt in a function without a frame hides the function's caller:
# 0.7 % of the idle guest's samples.
hidden=
[ "$how" = bpf ] && hidden='--min-complete 0.95'
# A function that does little but read the clock, 200 deep: under TCG its books have some 7.3 % of the
# time where samples, however many, have 4.6.
clocks=
[ "$how" = tcg ] && clocks='--floor 0.035'
# The kernel has an unwinder of its own; pauses under KVM leave to the same one as those under TCG.
[ "$how" != kvm ] || compilers=$(compiler_of kvm)
with_frames() {
	# shellcheck disable=SC2086
	[ "$how" = kvm ] || in_all check "deep-$cc under $under" complete deep-$cc-fp 1 $long $clocks
	[ ! -e "$lab/threads-$cc-fp.elf" ] || in_all check "threads-$cc under $under" complete threads-$cc-fp 1 1
	check "smp-$cc under $under" complete smp-$cc-fp 2 $long
	check "smp-$cc under $under: each vCPU its own functions" own_vcpu
	# QEMU stops a TCG guest when its main loop gets a CPU: on a busy host that is once the guest
	# sleeps.
	# shellcheck disable=SC2086
	check "idle-$cc under $under" complete idle-$cc-fp 1 1 --floor 0.12 $hidden
	check "idle-$cc under $under: halted, and said so" halted
}
for cc in $compilers; do
	[ -e "$lab/leaf-$cc-fp.elf" ] || continue
	in_all check "leaf-$cc under $under" complete leaf-$cc-fp 1 $long
	# With frame pointers, it is the same for both compilers but in a leaf. clang's have their turn under KVM.
	case $how$cc in
	bpfclang | tcgclang) ;;
	*) with_frames ;;
	esac
	[ "$how" = kvm ] || check "leaf-$cc without frame pointers under $under" complete leaf-$cc-nofp 1 $long
	# shellcheck disable=SC2086
	in_all check "deep-$cc without frame pointers under $under" complete deep-$cc-nofp 1 $long $clocks
	[ "$how" != kvm ] || continue # those under TCG have the same unwinder
	[ ! -e "$lab/threads-$cc-nofp.elf" ] ||
		in_all check "threads-$cc without frame pointers under $under" complete threads-$cc-nofp 1 1
	[ "$how$cc" = tcgclang ] ||
		in_all check "idle-$cc without frame pointers under $under" complete idle-$cc-nofp 1 1 --floor 0.12
done

# If the return address of a leaf is in a register: also by frame records alone, and with signed
# return addresses.
if [ "$under" = aarch64 ]; then
	unwind=fp
	for cc in gcc clang; do
		[ -e "$lab/leaf-$cc-fp.elf" ] || continue
		for app in leaf deep calls2 demo; do
			check "$app-$cc under $under, by frame records" complete $app-$cc-fp 1 $long
		done
	done
	unwind=cfi
	for image in "$lab"/leaf-*-pac.elf; do
		image=$(basename "$image" .elf)
		check "$image: signed return addresses" complete "$image" 1 $long
	done
fi
finish
