# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# Recordings of guests that keep books about themselves, by the kernel and by pausing; judge/shares.sh
# compares.
stacks() {
	uniscope stacks "$target" >"$T/stacks"
	status=$?
	cat "$T/stacks"
	[ $status -eq 0 ] && grep -q '^vCPU 0' "$T/stacks" && tail -1 "$T/stacks" | grep -q 'lab_entry'
}
# Functions of `shares` in what top printed: 50, 25, 15, 10 % of what the burn_* have.
top() {
	uniscope top --no-inline --batch --json -i 0.6 --count 3 -F 1999 "$target" >"$out/top.json"
}

# Its rounds are all as long, and so is what a sample takes here: ticks without chance would keep step with
# them. 499 a second showed 1.7 % of burn_d's 10. A second of a busy guest costs as much as 30,000 samples: many in a short time.
check 'a guest starts' start shares
check 'by the kernel' recorded bpf 1.3 -F 1999 --method bpf
check 'by pausing' recorded pause 3 -F 399 --method pause
check 'stacks: a whole chain' stacks
check 'top --batch' top
kill "$pid"
check 'two vCPUs' start -s 2 smp
check 'by the kernel' recorded smp 1.2 -F 1999 --method bpf
