# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# Guests with broken stacks and page tables: those of tests/e2e/hostile.sh for which Xen could make
# a difference. A recording ends with status 0 and says why chains end (judged outside), and the
# guest runs on.
lives() { xl domid "$name" && [ "$(state "$name" | tr -d rb)" = '' ]; }
hostile() { # TYPE VCPUS MODE
	name=$CASE-$3 session=$out/$3.uniscope more=
	start "$name" -t "$1" -s "$2" hostile "mode=$3" loop=1 || return
	# To follow 2,560 frames takes 4 ms here: by default, few samples are taken then.
	[ "$3" != long ] || more='--max-pause off'
	# shellcheck disable=SC2086 # two words
	timeout 60 uniscope record "xen:dom=$name" -q $more -F 300 -d 0.3 --unwind fp --watch lab_truth \
		-o "$session" &&
		uniscope export --no-inline "$session" --all-time -f json -o "$session.json" && lives
	status=$?
	xl destroy "$name"
	return $status
}
for mode in cycle unmapped noncanonical; do
	check "pv, $mode" hostile pv 1 $mode
done
for mode in data long recursive flip beyond; do
	check "pvh, $mode" hostile pvh 1 $mode
done
check 'pvh, scribble' hostile pvh 2 scribble
check 'nothing is left' nothing_left
