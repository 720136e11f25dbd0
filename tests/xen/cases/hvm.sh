# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# A domain with a device model: hvmloader and SeaBIOS boot a lab guest from a disk (lab/xen/hvm). It is profiled and traced, and
# judge/hvm.sh compares with the guest's source.
elf=/mnt/hvm/kernel.elf
recorded_hvm() {
	uniscope record "xen:dom=$CASE" -e $elf -F 1000 -d 1.2 --watch lab_truth -o "$out/shares.uniscope" &&
		uniscope export --no-inline "$out/shares.uniscope" -f json -o "$out/shares.uniscope.json"
}
traced() {
	uniscope trace record "xen:dom=$CASE" -e $elf -d 0.3 --filter 'burn_*' -o "$out/traced.uniscope"
}
# Code is changed, and is as before then; both say at how many places.
start_stop() {
	uniscope trace start "xen:dom=$CASE" -e $elf --filter 'burn_*' >"$T/start" 2>&1 && uniscope trace stop "xen:dom=$CASE" -e $elf >"$T/stop" 2>&1
	status=$?
	cat "$T/start" "$T/stop"
	places=$(sed -n 's/.* functions at \([0-9]*\) places are traced.*/\1/p' "$T/start")
	[ $status -eq 0 ] && [ "$places" -ge 8 ] && grep -q ": $places places have their old code again" "$T/stop" &&
		wait_for 10 uniscope stacks "xen:dom=$CASE" -e $elf
}
check 'hvmloader, SeaBIOS and the disk boot it' start "$CASE" -t hvm /mnt/hvm/disk.img
check 'it is sampled' recorded_hvm
check 'its calls are recorded' traced
check 'start and stop' start_stop
check 'it is destroyed' xl destroy "$CASE"
check 'nothing is left' nothing_left
