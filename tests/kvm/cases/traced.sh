# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# A guest that counts its own calls is traced from before the first to after the last; judge/traced.sh
# compares.
traced() { # NAME GUEST-OPTION...
	session=$out/$1.uniscope
	shift
	start -1 "$@" trace-traced wait=1 hold=1 rounds=200 ring=512 || return
	rm -f "$T/said"
	uniscope trace record "$target" -d 0 --filter 'traced_*' -o "$session" 2>"$T/said" &
	recorder=$!
	wait_for 60 grep -q 'places are traced' "$T/said" && printf x >"/tmp/$name.in" && said '^traced: ' 60 &&
		kill -INT $recorder && wait $recorder
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && uniscope record "$target" -q --method pause -F 20 -d 0.3 --watch lab_traced \
		-o "${session%.uniscope}-truth.uniscope" && kill "$pid"
}

check 'one vCPU' traced one
check 'two vCPUs' traced two -s 2
