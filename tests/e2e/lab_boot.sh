#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Boots the lab's images briefly and looks at how they end. usage: lab_boot.sh BUILD-DIR
set -u

build=${1:?usage: lab_boot.sh BUILD-DIR}/lab
. "$(dirname "$0")/ahead.sh"
boot=$(dirname "$0")/../../lab/boot
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
nr=0 failed=0 counted=''

ok()
{
	nr=$((nr + 1))
	echo "ok $nr - $1"
}

not_ok()
{
	nr=$((nr + 1))
	failed=$((failed + 1))
	echo "not ok $nr - $1"
	tail -n 15 "$tmp/out" | sed 's/^/# /'
}

# boots STATUS IMAGE APPEND [boot's options]: and `lab: done` if the status is that of success
boots()
{
	want=$1 image=$2 append=$3
	shift 3
	# shellcheck disable=SC2086
	timeout 300 "$boot" --append "$append" "$@" "$build/$image.elf" $counted >"$tmp/out" 2>&1 </dev/null
	status=$?
	what="$image $* ($append)"
	if [ "$status" -ne "$want" ]; then
		not_ok "$what: exit status $status, not $want"
	elif [ "$want" -eq 33 ] && ! grep -q '^lab: done' "$tmp/out"; then
		not_ok "$what: no 'lab: done'"
	else
		ok "$what"
	fi
}

# That the last run printed a line like this.
printed()
{
	if grep -Eq "$1" "$tmp/out"; then
		ok "prints $1"
	else
		not_ok "prints $1"
	fi
}

# Shares of the last run's books, in per cent: share NAME LOW HIGH
share()
{
	line=$(awk -v name="$1" '$1 == "truth" && $2 != "(root)" { sum += $4 }
		$1 == "truth" && $2 == name { self = $4 }
		END { if (sum) printf "%.1f", 100 * self / sum }' "$tmp/out")
	if awk -v v="$line" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && v >= low && v <= high) }'
	then
		ok "books: $1 $line %, wanted $2 to $3"
	else
		not_ok "books: $1 $line %, wanted $2 to $3"
	fi
}

. "$(dirname "$0")/../support/can.sh"
set -- "$build"/shares-*-fp.elf
if [ ! -e "$1" ]; then
	absent 'no lab images: they are built on x86_64 only'
fi

# Each app as each compiler makes it, on the smallest machine.
small='rounds=20 inner=5'
for image in "$build"/*.elf; do
	image=$(basename "$image" .elf)
	case $image in
	*-clang-fp | *-gcc-nofp) continue ;; # by pairs: these two of four
	program-* | corpus-*) ;; # loads boots the first, oracle.sh the others
	xen-*) boots 35 "$image" "$small" --accel tcg ;; # says that this is not Xen
	loads-*)
		boots 33 "$image" "$small" --accel tcg --initrd "$build/program-${image#loads-}.elf"
		boots 35 "$image" "$small" --accel tcg # without the program
		;;
	*) boots 33 "$image" "$small" --accel tcg --smp 2 ;;
	esac
done

# The other machines, a CPU without 1 GiB pages, more RAM than we use, other stacks.
for machine in pc q35; do
	for app in $([ $machine = q35 ] || echo hostile idle) shares smp; do
		boots 33 "$app-gcc-fp" "$small" --accel tcg --machine $machine --smp 2
	done
done
boots 33 shares-gcc-fp "$small stack=2m" --accel tcg --cpu qemu64
printed 'largest leaf 2 MiB'
boots 33 shares-gcc-fp "$small stack=1g" --accel tcg --mem 5120
printed 'largest leaf 1 GiB'
boots 33 hostile-gcc-fp "$small mode=scribble" --accel tcg --smp 2
boots 33 idle-gcc-fp "$small busy=1" --accel tcg
boots 33 smp-gcc-fp "$small" --accel tcg --smp 4
printed 'smp: 4 vCPUs'
boots 33 smp-gcc-fp "$small" --accel tcg
printed "first one's part only"

# A boot that must fail does, and the exit status says so: 35, or 129 + 2 * vector.
boots 35 hostile-gcc-fp "mode=scribble" --accel tcg
boots 141 shares-gcc-fp "crash=undefined" --accel tcg
for kind in text nx guard identity; do
	boots 157 shares-gcc-fp "crash=$kind" --accel tcg
done

# wait=1 waits until a byte comes in on the serial port; secs= ends what would not end.
mkfifo "$tmp/in"
timeout 60 "$boot" --accel tcg --append 'wait=1 secs=1' "$build/demo-gcc-fp.elf" <"$tmp/in" >"$tmp/out" 2>&1 &
exec 9>"$tmp/in"
for _ in $(seq 600); do
	! grep -q '^lab: waiting' "$tmp/out" || break
	sleep 0.1
done
printf x >&9
wait $!
status=$?
exec 9>&-
if [ $status -eq 33 ]; then
	ok 'demo waits for a byte, and stops after secs=1'
else
	not_ok "demo with wait=1 secs=1: exit status $status"
fi
printed '^lab: waiting'

# The guest sees that it is stopped: ten times 30 ms at the least are missing. It may see more.
"$boot" --accel tcg --append 'rounds=10000' "$build/gaps-gcc-fp.elf" >"$tmp/out" 2>&1 </dev/null &
pid=$!
gaps() { # waits until so many more lines are there
	more=$(($(grep -c '^gaps:' "$tmp/out") + $1))
	for _ in $(seq 300); do
		[ "$(grep -c '^gaps:' "$tmp/out")" -lt $more ] || return 0
		sleep 0.1
	done
}
gaps 2
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sleep 0.1
	kill -STOP $pid
	sleep 0.03
	kill -CONT $pid
done
gaps 2
kill $pid
wait $pid 2>/dev/null
before=$(awk '$1 == "gaps:" { print $5, $NF; exit }' "$tmp/out")
after=$(awk '$1 == "gaps:" { last = $5 " " $NF } END { print last }' "$tmp/out")
lost=$((${after% *} - ${before% *})) long=$((${after#* } - ${before#* }))
if [ "$lost" -ge 200000 ] && [ "$long" -ge 6 ]; then
	ok "gaps sees stops: $long long ones, $lost us"
else
	not_ok "gaps sees stops: only $long long ones, $lost us"
fi

# The promised shares, as the guests' own books have them, where time is the number of instructions.
counted='-icount shift=1,sleep=off'
boots 33 shares-clang-fp 'scale=20' --accel tcg
share burn_a 49.8 50.2
share burn_b 24.8 25.2
share burn_c 14.8 15.2
share burn_d 9.8 10.2
boots 33 leaf-gcc-fp 'scale=20' --accel tcg
share caller_a 39.8 40.2
share caller_d 9.8 10.2
boots 33 threads-gcc-nofp 'scale=20' --accel tcg
share crunch_a 59.8 60.2
counted=

if can kvm; then
	# Those that no other test boots under KVM.
	for app in gaps threads; do
		boots 33 "$app-gcc-fp" 'rounds=1 inner=2' --accel kvm --smp 2
	done
	boots 33 smp-clang-nofp 'rounds=1' --accel kvm --machine q35 --smp 2
	boots 33 idle-clang-fp 'rounds=20' --accel kvm --machine q35
	boots 33 hostile-clang-fp 'rounds=2 mode=flip' --accel kvm
	boots 33 hostile-gcc-nofp 'rounds=2 mode=rsp' --accel kvm
	boots 157 shares-clang-nofp 'crash=nx' --accel kvm
else
	ok "the same under KVM # SKIP $why_not"
fi

echo "1..$nr"
[ "$failed" -eq 0 ]
