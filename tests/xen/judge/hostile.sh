#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Why the chains of cases/hostile.sh ended, and whether the guests ran.
. "$SRC/tests/xen/judge.sh"
ask() { python3 "$SRC/tests/e2e/ask.py" "$@"; }
as_it_should() { # MODE SHARE STOP-WORDS...
	s=$OUT/$1.uniscope share=$2
	shift 2
	ask stops "$s" "$@" && ask number "$s" samples 40 && ask number "$s" lost 0 0 &&
		ask leaf "$s.json" hostile_spin "$share" && ask beats "$s"
}
while read -r mode share stops; do
	# shellcheck disable=SC2086
	verdict "$mode: $stops" as_it_should "$mode" "$share" $stops
done <<'END'
cycle 0.6 loop
unmapped 0.6 fault
noncanonical 0.6 loop
data 0.6 bad-pc
long 0.6 bad-pointer
recursive 0.6
flip 0.6 fault loop bad-pc bad-pointer
beyond 0.6 fault
scribble 0.1 loop bad-pointer bad-pc fault?
END
echo "1..$n"
