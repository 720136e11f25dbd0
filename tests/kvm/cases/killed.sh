# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# SIGKILL of each command in a state that is seen. The guest runs on, and nothing of ours stays in the kernel.
beats() { # does the guest print its line of each fifth of a second?
	lines=$(wc -l <"/tmp/$name.log")
	wait_for 20 more_lines && kill -0 "$pid"
}
more_lines() {
	[ "$(wc -l <"/tmp/$name.log")" -gt "$((lines + 1))" ]
}
loaded() {
	! none_loaded
}
attached() {
	! none_loaded && bpftool link show | grep -q perf_event
}
# Dead once its programs are in the kernel, or run there.
killed_when() { # loaded|attached COMMAND...
	state=$1
	shift
	nothing_loaded || return
	"$@" >"$T/said" 2>&1 &
	victim=$!
	wait_for 60 "$state"
	reached=$?
	kill -9 $victim
	wait $victim
	status=$?
	cat "$T/said"
	echo "$state: $reached; its status is $status"
	[ $reached -eq 0 ] && [ $status -eq 137 ] && beats && nothing_loaded
}
# Dead at such calls that it makes while it holds a vCPU.
killed_holding() { # "N..." COMMAND...
	calls=$1
	shift
	for nr in $calls; do
		kill_at -p "$pid" $nr "$@" >"$T/said" 2>&1 || { cat "$T/said"; return 1; }
		beats || return
	done
	nothing_loaded
}
# Dead before its first write, between two, and before its last.
killed_writing() { # COMMAND...
	count_calls -c process_vm_writev "$@" || return
	echo "$nr writes"
	for part in 1 $((nr / 2)) "$nr"; do
		killed_at -c process_vm_writev "$part" "$@" && beats || return
	done
	nothing_loaded
}

check 'a guest starts' start trace-demo every_ms=200
check 'its heart beats' beats
check 'record by the kernel' killed_when attached uniscope record "$target" -d 0 -F 199 --method bpf -o "$T/b" --overwrite
check 'record by pausing' killed_holding '1 5' uniscope record "$target" -d 0 -F 199 --method pause -o "$T/p" --overwrite
check 'record --exits' killed_when loaded uniscope record "$target" -d 0 --exits -o "$T/e" --overwrite
check 'top --batch' killed_when loaded uniscope top --batch -d 60 "$target"
check 'stacks' killed_holding 3 uniscope stacks "$target"
check 'function tracing' killed_writing uniscope trace record "$target" -q -d 0.5 -o "$T/t" --overwrite
check 'is switched off' uniscope trace stop "$target"
check 'and nothing is left to switch off' shows ' 0 places' uniscope trace stop "$target"
check 'it can be recorded all the same' shows '(100.00 % complete)' \
	uniscope record "$target" -d 0.3 -F 499 -o "$T/after"
check 'its heart beats' beats
