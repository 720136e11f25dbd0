#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# threads.sh UNISCOPE BUILD SRCROOT: six threads, three of them blocked in known functions. Each is
# named, with its chain and what it waits for, now and over time, with and without frame pointers,
# under TCG and KVM. A message says what cannot be had. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
judge="$SRC/tests/e2e/threads.py"

shown() {
	"$U" stacks --no-inline --threads --json "$target" -e "$elf" >"$T/stacks.json" &&
		python3 "$judge" stacks "$T/stacks.json"
}

# A stub that is slow on a busy host would spend the guest's share of pauses: a tenth of the time.
# For as long as it takes to have enough to judge.
recorded() { # OPTION...
	for seconds in 3 9 20 60; do
		"$U" record -q "$target" -e "$elf" -F 49 -d $seconds -o "$T/s.uniscope" --overwrite "$@" || return 1
		python3 "$SRC/tests/e2e/ask.py" number "$T/s.uniscope" ticks 70 && return 0
	done
}

off_cpu() {
	"$U" export --no-inline --off-cpu -f folded "$T/s.uniscope" >"$T/off.folded" &&
		python3 "$judge" off "$T/off.folded"
}

on_cpu() {
	"$U" export --no-inline --on-cpu --per-thread -f folded "$T/s.uniscope" >"$T/on.folded" &&
		python3 "$judge" on "$T/on.folded"
}

only() { # NAME
	"$U" export --no-inline --all-time --thread "$1" --per-thread -f folded "$T/s.uniscope" >"$T/only.folded" || return 1
	test -s "$T/only.folded" && ! grep -v "^thread $1;" "$T/only.folded"
}

graph() {
	"$U" export --off-cpu "$T/s.uniscope" -o "$T/off.svg" || return 1
	for word in 'thread reader' read_block wait_for_disk '\[blocked\]'; do
		grep -q "$word" "$T/off.svg" || return 1
	done
}

refused_by() { # STATUS WORDS COMMAND...
	status=$1 words=$2
	shift 2
	"$@" 2>"$T/said" >/dev/null
	refused $? "$T/said" "$status" "$words"
}

no_threads() {
	"$U" stacks --threads "$target" -e "$elf" >"$T/said" && grep -q '^vCPU 0' "$T/said" &&
		! grep '^thread' "$T/said"
}

# Without --threads, samples of a guest that is stopped say which thread ran.
plain() {
	recorded "$@" && on_cpu
}

machines=$(by_default kvm "$accels")
if [ -n "${UNISCOPE_ALL-}" ] && command -v qemu-system-aarch64 >/dev/null; then
	machines="aarch64 $accels"
fi
for machine in $machines; do
	lab=$BUILD/lab
	accel=$machine ahead=
	# shellcheck disable=SC2034 # for guest.sh
	[ "$machine" = aarch64 ] && accel=tcg lab=$BUILD/lab/aarch64 ahead='nice -n -15'
	for cc in $compilers; do
		# Each of them with and without, but not under each machine: who finds threads is the same code.
		for fp in fp nofp; do
			case $machine-$cc-$fp in
			tcg-gcc-nofp | tcg-clang-fp | kvm-gcc-fp | aarch64-clang-nofp) ;;
			*) continue ;;
			esac
			[ -e "$lab/waits-$cc-$fp.elf" ] || continue
			elf=$lab/waits-$cc-$fp.elf how="waits-$cc-$fp under $machine"
			boot "$accel" "$elf" '' || {
				check "$how boots" false
				continue
			}
			# Just booted: a thread that has not run yet is not blocked yet.
			wait_for 60 shown >/dev/null
			check "$how: every thread's stack" shown
			check "$how: all are sampled" recorded --threads
			check "$how: who is blocked, and where" off_cpu
			check "$how: who runs" on_cpu
		done
	done
done
check 'one thread only' only reader
check 'the off-CPU flame graph' graph
check 'a thread that is not there' refused_by 1 'no thread nobody; it has' \
	"$U" report --thread nobody "$T/s.uniscope"
check 'nothing is left' refused_by 2 'leave nothing' "$U" report --on-cpu --off-cpu "$T/s.uniscope"
# shellcheck disable=SC2046 # words
check 'who runs, without all threads' plain $(method "$accel")
check 'then there is no off-CPU' refused_by 1 'record --threads' \
	"$U" report --off-cpu "$T/s.uniscope"
check '--threads and the kernel exclude each other' refused_by 2 'leave out --exits' \
	"$U" record --threads --method bpf "$target"
nm "$elf" >"$T/names.txt"
cp "$elf" "$T/lost.elf"
boot "$accel" "$T/lost.elf" ''
rm "$T/lost.elf"
check 'a guest whose image is not known: stacks' refused_by 1 'only with the guest.s image' \
	"$U" stacks --threads "$target" -e "$T/names.txt"
check 'and record' refused_by 1 'without an image' \
	"$U" record --threads "$target" -e "$T/names.txt" -d 1 -o "$T/none.uniscope"
boot "$accel" "$(image shares)" ''
check 'a guest that has made no threads' no_threads
finish
