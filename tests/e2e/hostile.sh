#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# hostile.sh UNISCOPE BUILD SRCROOT: guests with broken stacks and page tables. uniscope ends with 0
# and in time, says why chains end, and the guest runs on. With UNISCOPE_ASAN=PROGRAM all of it again
# under that one. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
ask="$SRC/tests/e2e/ask.py"
elf=$(image hostile)

# This must hold of each recording; the rest takes enough samples.
allowed() { # STOP-WORDS...
	"$U" export --no-inline "$T/s.uniscope" --all-time -f json -o "$T/s.json" &&
		"$U" report "$T/s.uniscope" >/dev/null &&
		python3 "$ask" number "$T/s.uniscope" lost 0 0 &&
		python3 "$ask" only "$T/s.uniscope" "$@"
}
enough() { # STOP-WORDS...
	python3 "$ask" number "$T/s.uniscope" samples $want &&
		python3 "$ask" stops "$T/s.uniscope" "$@" &&
		python3 "$ask" leaf "$T/s.json" hostile_spin $share &&
		python3 "$ask" beats "$T/s.uniscope"
}

hostile() { # UNWIND WAY MODE SMP STOP-WORDS...
	unwind=$1 way=$2 mode=$3 smp=$4
	shift 4
	boot "$way" "$elf" "mode=$mode" --smp "$smp" || return 1
	# Enough to see each of several reasons.
	want=15
	[ $# -gt 1 ] && want=60
	share=0.6
	[ "$smp" = 2 ] && share=0.1 # one of the two spins, and only once the other is up
	# To get down 10000 frames takes time, too.
	[ "$mode" = huge ] && share=0.1
	# On a busy host samples are few, and the guest may not be hostile yet: then it records longer. An error that must never
	# happen fails at once.
	for seconds in 0.6 2 6 20; do
		timeout 90 "$U" record "$target" "$(method "$way")" -q -F 199 -d $seconds -e "$elf" \
			--unwind "$unwind" \
			--watch lab_truth -o "$T/s.uniscope" --overwrite 2>&1 && kill -0 "$guest" &&
			unwatched allowed "$@" || return 1
		unwatched enough "$@" && return 0
	done
	return 1
}

modes() { # WAY
	while read -r mode smp stops; do
		case " $2 " in
		*" $mode "* | *' every '*) ;;
		*) continue ;;
		esac
		# shellcheck disable=SC2086
		check "$mode under $1: $stops" hostile fp "$1" "$mode" "$smp" $stops
	done <<'END'
cycle 1 loop
self 1 loop
descend 1 loop
misaligned 1 bad-pointer
unmapped 1 fault
noncanonical 1 loop
wrap 1 bad-pointer
data 1 bad-pc
zero 1
long 1 bad-pointer
rsp 1 loop
recursive 1
flip 1 fault loop bad-pc bad-pointer
beyond 1 fault
huge 1
scribble 2 loop bad-pointer bad-pc fault?
END
}

for U in "$U" ${UNISCOPE_ASAN:+"$UNISCOPE_ASAN"}; do
	# One of each kind of error by default: unit unwind has the others, of memory that is made up.
	modes tcg "${UNISCOPE_ALL:+every }flip"
	# If rows say where the caller is, rbp is not even looked at.
	for mode in $(by_default 'long' 'cycle unmapped data long'); do
		check "$mode under tcg, by call frame information: root" \
			hostile cfi,fp,scan tcg "$mode" 1 root
	done
	check 'scanning under tcg: ends' hostile fp,scan tcg all 1 \
		'loop?' 'bad-pointer?' 'bad-pc?' 'fault?' 'limit?'
	case $accels in
	*kvm*) modes kvm "$(by_default 'scribble' 'misaligned flip scribble')" ;;
	*) ;; # finish says so
	esac
done
finish
