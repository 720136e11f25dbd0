#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# oracle.sh ORACLE_CHAINS UNISCOPE BUILD SRCROOT: the call chains of running lab guests are those of elfutils' unwinder. The corpus
# runs under KVM if there is one: compilers, levels of optimisation, with and without frame pointers, absolute and
# position-independent code. The other apps run under TCG: each by both
# compilers, one of them with frame pointers, by turns. TAP.
set -u
O=$1 U=$2 BUILD=$3 SRC=$4
# shellcheck source=tests/e2e/guest.sh
. "$SRC/tests/e2e/guest.sh"
export U

lab=$BUILD/lab
same() { # ACCEL IMAGE SAMPLES APPEND [LAB-BOOT-OPTION...]
	accel=$1 image=$2 samples=$3 append=$4
	shift 4
	boot "$accel" "$lab/$image.elf" "$append" "$@" || return 1
	timeout 60 "$O" "$target" "$lab/$image.elf" "$samples" 99
}

has_turn() { # IMAGE: unit oracle_rows has each row of each
	case $1 in
	corpus-*) ;;
	[a-h]*-gcc-nofp | [a-h]*-clang-fp | [i-z]*-gcc-fp | [i-z]*-clang-nofp) return 1 ;;
	esac
}

# KVM stops at any instruction; TCG only between translated blocks.
accel=${accels##* }
for image in "$BUILD"/lab/corpus-*.elf; do
	image=$(basename "$image" .elf)
	check "$image under $accel" same "$accel" "$image" 300 ''
done
for image in "$BUILD"/lab/*-fp.elf "$BUILD"/lab/*-nofp.elf; do
	image=$(basename "$image" .elf)
	has_turn "$image" || continue
	case $image in
	corpus-* | hostile-*) continue ;;	# hostile: chains longer than any limit
	fibers-*) continue ;; # libdwfl believes the marks of signal frames, and does not cross these stacks
	xen-*) continue ;; # they boot on Xen alone
	program-* | loads-* | *-pie-*) continue ;; # the oracle knows one image, where it was linked
	smp-*) check "$image" same tcg "$image" 100 '' --smp 3 ;;
	idle-*) check "$image" same tcg "$image" 200 busy=1 ;;
	*) check "$image" same tcg "$image" 100 '' ;;
	esac
done

# aarch64. Not those that sign their return addresses: libdwfl wants to be told the mask.
if command -v qemu-system-aarch64 >/dev/null; then
	lab=$BUILD/lab/aarch64
	for image in "$lab"/*-fp.elf "$lab"/*-nofp.elf; do
		[ -e "$image" ] || continue
		image=$(basename "$image" .elf)
		has_turn "$image" || continue
		case $image in
		smp-*) check "aarch64 $image" same tcg "$image" 100 '' --smp 3 ;;
		*) check "aarch64 $image" same tcg "$image" 100 '' ;;
		esac
	done
fi
finish
