# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# A kernel where the programs do not load. doctor says no and why, ls names the other way, and record takes it. One kernel is enough,
# because the reasons are made here. Last of all cases: a lockdown is for good.
jit=/proc/sys/net/core/bpf_jit_enable
ls_says() { # WORDS
	shows "$1" uniscope ls && awk -v pid="$pid" '$1 == pid && / kvm  *stopped for each sample/ { ok = 1 } END { exit !ok }' "$T/said"
}
# Goes on by pausing, and says so, and why, in one line.
goes_on() { # WHY
	uniscope record "$target" -d 0.5 -F 99 -o "$T/s" --overwrite 2>"$T/said"
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && grep -q '^uniscope: [0-9]* samples .*(100.00 % complete)' "$T/said" &&
		[ "$(grep -c "the guest is stopped for each sample (pause); .*$1" "$T/said")" -eq 1 ]
}
# Asked for by name there is no other way: one line.
fails() { # WHY COMMAND...
	why=$1
	shift
	"$@" 2>"$T/said"
	status=$?
	cat "$T/said"
	[ $status -eq 1 ] && [ "$(wc -l <"$T/said")" -eq 1 ] && grep -q -e "$why" "$T/said"
}
all() { # WHY LS-WORD
	check "$2: doctor" ask_doctor
	check "$2: kvm is all there is" doctor_says ok kvm
	check "$2: doctor: kvm-bpf" doctor_says no kvm-bpf
	check "$2: and why" grep "^ *no  *$2  *.*$1" "$T/doctor"
	check "$2: doctor: kvm-exits" doctor_says no kvm-exits
	check "$2: ls" ls_says "doctor: .*$2"
	check "$2: record goes on" goes_on "$1"
	check "$2: via=bpf does not" fails "$1" uniscope record "$target,via=bpf" -d 1 -o "$T/b"
}

check 'a guest starts' start shares
echo 0 >$jit
all 'verifier refuses the program uni_[a-z_]*: .*JIT' program
check 'no programs: --exits says why' fails 'verifier refuses the program' \
	uniscope record "$target,via=bpf" --exits -d 1 -o "$T/b"
echo 1 >$jit
check 'with JIT all is well again' shows 'never stopped' uniscope record "$target" -d 0.2 -o "$T/well"
echo confidentiality >/sys/kernel/security/lockdown
all 'kernel lockdown is' lockdown
check 'lockdown: nor does --method bpf' fails 'kernel lockdown is' uniscope record "$target" --method bpf -d 1 -o "$T/b"
