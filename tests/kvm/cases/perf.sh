# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# A guest, recorded by `perf kvm` and then by us; judge/perf.sh compares the leaf functions.
by_perf() {
	# Interrupts take long here: the kernel would make them fewer.
	echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
	# The host's symbols are of no use here, and perf takes 11 s of the lab's to read them.
	echo 2 >/proc/sys/kernel/kptr_restrict
	perf kvm --guest record -N -B --synth no -e cpu-clock -F 1999 -p "$pid" -o "$out/perf.data" sleep 0.8
	status=$?
	echo 0 >/proc/sys/kernel/kptr_restrict
	return $status
}
by_us() {
	uniscope record "$target" -d 0.8 -F 1999 --method bpf -o "$out/ours.uniscope" &&
		uniscope export --no-inline "$out/ours.uniscope" --all-time -f json -o "$out/ours.json"
}

check 'a guest starts' start shares uneven=1
check 'perf kvm record' by_perf
check 'record' by_us
