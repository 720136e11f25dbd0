#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vcpus.sh UNISCOPE BUILD SRCROOT MKREPLAY: guests of 72 and 255 vCPUs under TCG and KVM. The place and the calls of each vCPU are
# known. They are traced, sampled, and looked at alive and dead. Also recordings of as many vCPUs as uniscope reaches, and of more.
# TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3 MKREPLAY=$4
. "$SRC/tests/e2e/guest.sh"
wide=$BUILD/lab/trace/wide-gcc-fp.elf
[ -e "$wide" ] || absent 'no lab image for many vCPUs: there is no gcc'

judge() { python3 "$SRC/tests/e2e/vcpus_judge.py" "$@"; }
qmp() { python3 "$SRC/tests/e2e/qmp.py" "$T/q" "$@"; }

is_listed() {
	"$U" ls --json >"$T/ls" && judge listed "$T/ls" "$guest" "$vcpus_"
}

# From before the first call to after the last: the vCPUs but the first are started in between.
is_traced() {
	rm -f "$T/said"
	"$U" trace record "$target" -e "$elf" -d 0 --filter 'wide_[0-9]' -o "$T/t.uniscope" --overwrite \
		2>"$T/said" &
	recorder=$!
	if ! wait_for 60 grep -q 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said"; then
		kill "$recorder"
		cat "$T/said"
		return 1
	fi
	go_on '^wide: '
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	watch && judge traced "$T/t.uniscope" "$T/w.uniscope" "$elf" "$vcpus_"
}
watch() {
	"$U" record "$target" -e "$elf" -q -F 20 -d 0.2 --watch lab_wide:2064 -o "$T/w.uniscope" --overwrite
}

# Compares with what QEMU's monitor says of each vCPU.
is_stacked() {
	qmp human-monitor-command '{"command-line": "info registers -a"}' >"$T/regs" &&
		"$U" stacks --no-inline "$1" -e "$elf" --registers --json >"$T/stacks" &&
		judge stacks "$T/stacks" "$vcpus_" "$T/regs"
}
is_dumped() {
	qmp dump-guest-memory "{\"paging\": false, \"protocol\": \"file:$T/core\"}" >/dev/null &&
		is_stacked "core:file=$T/core"
}

is_sampled() { # METHOD
	"$U" record "$target" -e "$elf" -q -F 20 -d 0.6 --method "$1" -o "$T/s.uniscope" --overwrite &&
		"$U" export --no-inline --per-vcpu --all-time -f folded "$T/s.uniscope" -o "$T/folded" &&
		judge sampled "$T/folded" "$T/s.uniscope" "$vcpus_"
}

for accel in $accels; do
	# More than a word of bits is enough for the default run; it replays 1,024.
	for nr in $([ "$accel${UNISCOPE_ALL-}" = tcg1 ] || echo 72) ${UNISCOPE_ALL:+255}; do
		boot_waiting "$accel" "$nr" "$wide" 'ring=256' --mem 128 --qmp "$T/q" || exit 1
		check "$accel, $nr vCPUs: ls" is_listed
		# A KVM that emulates needs long for their work if it is traced.
		if [ "$accel$nr" = kvm72 ]; then
			check "$accel, $nr vCPUs: they work" go_on '^wide: '
		else
			check "$accel, $nr vCPUs: every call of each is in its stream" is_traced
		fi
		check "$accel, $nr vCPUs: stacks" is_stacked "$target"
		[ "$accel" = kvm ] || check "$nr vCPUs: a core of it" is_dumped
		check "$accel, $nr vCPUs: samples of each" is_sampled pause
		case $accel,$ways in
		kvm,*bpf) check "bpf, $nr vCPUs: samples and times of each" is_sampled bpf ;;
		esac
	done
done
end_guest

# A vCPU that the guest has not started does not run, and its place is no function of the guest.
is_not_started() { # WAY...
	"$U" stacks "$target" -e "$BUILD/lab/blocks-gcc-fp.elf" >"$T/stacks" 2>"$T/said" || return 1
	cat "$T/stacks" "$T/said"
	grep 'vCPU 1 (offline)' "$T/stacks" && ! grep 'code of no image' "$T/said" || return 1
	for way; do
		"$U" record "$target" "$(method "$way")" -e "$BUILD/lab/blocks-gcc-fp.elf" -d 1 -o "$T/s.uniscope" \
			--overwrite 2>"$T/said" && "$U" export --no-inline -f folded "$T/s.uniscope" -o "$T/folded" || return 1
		cat "$T/said"
		grep '(100.00 % complete)' "$T/said" && ! grep 'fff0' "$T/folded" || return 1
	done
}
case $accels in
*kvm*)
	boot kvm "$BUILD/lab/blocks-gcc-fp.elf" '' --smp 2
	# shellcheck disable=SC2046 # words
	check 'kvm: a vCPU that is not started' is_not_started kvm $(case $ways in *bpf) echo bpf ;; esac)
	end_guest
	;;
esac

# As many as there are numbers for; then more.
is_replayed() {
	seq 0 1023 | awk '{ printf "%016x T at_%d\n", 4096 + $1, $1 }' >"$T/names"
	"$MKREPLAY" "$T/r" 1024 3 &&
		"$U" record "replay:file=$T/r,once=0" -e "$T/names" -q -F 100 -d 0.5 -o "$T/s.uniscope" \
			--overwrite &&
		"$U" export --no-inline --per-vcpu --all-time -f folded "$T/s.uniscope" -o "$T/folded" &&
		judge replayed "$T/folded" "$T/s.uniscope" 1024
}
check 'replay: 1,024 vCPUs with known samples' is_replayed

# If there are more, it takes the first ones and says so.
is_left_off() {
	for i in $(seq 0 1029); do
		printf 'CPU#%s\nRIP=1000 RSP=2000 RBP=0\n' "$i"
	done >"$T/regs"
	head -c 65536 /dev/zero >"$T/ram"
	"$U" stacks --no-inline "core:raw=$T/ram,regs=$T/regs" --json >"$T/stacks" 2>"$T/said" &&
		judge counted "$T/stacks" 1024 &&
		grep -q ': 6 of its 1030 vCPUs are left off: uniscope reaches at most 1024$' "$T/said" &&
		"$U" record "core:raw=$T/ram,regs=$T/regs" -e "$T/names" -q -o "$T/s.uniscope" --overwrite &&
		"$U" report "$T/s.uniscope" | grep '^LEFT OFF   6 more of its vCPUs were not sampled' &&
		python3 "$SRC/tests/e2e/schema.py" --file session "$SRC" "$T/s.uniscope/session.json"
}
check 'core: 1,030 vCPUs' is_left_off
finish
