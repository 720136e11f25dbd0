# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# SIGKILL at any moment of each command: the guest runs on, and nothing of ours stays in the kernel.
beats() { # does the guest print its line of each second?
	lines=$(wc -l <"/tmp/$name.log")
	wait_for 20 more_lines && kill -0 "$pid"
}
more_lines() {
	[ "$(wc -l <"/tmp/$name.log")" -gt "$((lines + 1))" ]
}
killed() { # COMMAND...
	for ms in 300 3100; do
		"$@" >"$T/said" 2>&1 &
		victim=$!
		usleep ${ms}000
		kill -9 $victim || { cat "$T/said"; return 1; }
		wait $victim
		beats || return
	done
	nothing_loaded
}

check 'a guest starts' start trace-demo every=1
check 'its heart beats' beats
check 'record by the kernel' killed uniscope record "$target" -d 0 -F 199 --method bpf -o "$T/b" --overwrite
check 'record by pausing' killed uniscope record "$target" -d 0 -F 199 --method pause -o "$T/p" --overwrite
check 'record --exits' killed uniscope record "$target" -d 0 --exits -o "$T/e" --overwrite
check 'top --batch' killed uniscope top --batch -d 60 "$target"
check 'stacks' killed sh -c 'while uniscope stacks "$1"; do :; done' - "$target"
check 'function tracing' killed uniscope trace record "$target" -d 0 -o "$T/t" --overwrite
check 'is switched off' uniscope trace stop "$target"
check 'and nothing is left to switch off' shows ' 0 places' uniscope trace stop "$target"
check 'it can be recorded all the same' shows '(100.00 % complete)' \
	uniscope record "$target" -d 1 -F 99 -o "$T/after"
check 'its heart beats' beats
