# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# A guest that leaves a known number of times; judge/exits.sh counts.
counted() { # NAME EVERY
	mkdir -p "$out/$1" && session=$T/$1.uniscope
	start -1 ports wait=1 rounds=1 || return
	uniscope record "$target" --exits="$2" -F 99 -d 0 -o "$session" 2>"$T/said" &
	recorder=$!
	# Waiting, it looks at its serial port: these are exits, too.
	wait_for 60 test -s "$session/guest-0/exits-vcpu0" || { cat "$T/said"; return 1; }
	printf x >"/tmp/$name.in"
	wait $recorder
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && grep -q '^lab: done' "/tmp/$name.log" &&
		uniscope report --exits --json "$session" >"$out/$1/exits.json" &&
		uniscope export --no-inline --exits -f folded "$session" >"$out/$1/count.folded" &&
		uniscope export --no-inline --exits=time -f folded "$session" >"$out/$1/time.folded"
}

check 'each exit' counted each 1
[ "$(uname -r | cut -d. -f2)" = 1 ] || check 'one exit in 7' counted some 7
