# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For tests that record lab guests; to be sourced. Wants U (uniscope), BUILD and SRC. Gives a folder
# $T that goes away, TAP, and guests: boot, $guest (its pid), $target (how it is reached), end_guest.

# shellcheck source=tests/support/can.sh
. "$SRC/tests/support/can.sh"
command -v qemu-system-x86_64 >/dev/null || absent 'qemu-system-x86_64 is not installed'
ls "$BUILD"/lab/*-fp.elf >/dev/null 2>&1 || absent 'no lab images'
# shellcheck source=tests/e2e/ahead.sh
. "$SRC/tests/e2e/ahead.sh"
T=$(mktemp -d) || exit 1
# shellcheck disable=SC2034 # for who sources this
n=0 guest='' target='' accels=tcg no_kvm='' no_bpf=''
if can kvm; then
	# shellcheck disable=SC2034
	accels='tcg kvm'
else
	no_kvm=$why_not
fi

# How they are sampled: under KVM also by the host's kernel, where that is permitted.
ways=$accels
if [ -n "$no_kvm" ]; then
	no_bpf=$no_kvm
elif can bpf; then
	# shellcheck disable=SC2034
	ways='tcg kvm bpf'
else
	no_bpf=$why_not
fi

# For record, of a guest that was booted with that: how it is to be sampled.
method() { # WAY
	case $1 in
	kvm) echo --method=pause ;;
	bpf) echo --method=bpf ;;
	*) echo --method=auto ;;
	esac
}

end_guest() {
	[ -z "$guest" ] || kill -9 "$guest" 2>/dev/null
	[ -z "$guest" ] || wait "$guest" 2>/dev/null
	guest=
}
trap 'end_guest; rm -rf "$T"' EXIT
trap 'exit 130' INT TERM

# unwatched COMMAND...: while it thinks about what was recorded, the guest stands still: it would cost a CPU for all that time.
unwatched() {
	kill -STOP "$guest" || return 1
	"$@"
	thought=$?
	kill -CONT "$guest" && return $thought
}

# The image with that name by the first compiler there is.
image() { # APP
	for cc in gcc clang; do
		[ -e "$BUILD/lab/$1-$cc-fp.elf" ] || continue
		echo "$BUILD/lab/$1-$cc-fp.elf"
		return
	done
}

# boot ACCEL IMAGE APPEND [LAB-BOOT-OPTION...]: until the app runs; 1 if it does not. bpf is kvm.
# $qemu_args: words for QEMU itself.
boot() {
	end_guest
	rm -f "$T/gdb" "$T/serial"
	accel=$1 elf=$2 append=$3
	shift 3
	[ "$accel" = bpf ] && accel=kvm
	[ "$accel" = tcg ] && set -- "$@" --gdb "unix:$T/gdb,server=on,wait=off"
	# shellcheck disable=SC2086 # words
	${ahead:-} "$SRC/lab/boot" --accel "$accel" --append "loop=1 $append" --serial "file:$T/serial" "$@" \
		"$elf" ${qemu_args:-} </dev/null >"$T/boot" 2>&1 &
	guest=$!
	target=kvm:pid=$guest
	[ "$accel" = tcg ] && target=gdb:unix=$T/gdb
	ready='^lab: running'
	case $elf in
	*/smp-*) ready='^smp: ' ;; # the others have been started, too
	esac
	for _ in $(seq 600); do
		grep -q "$ready" "$T/serial" 2>/dev/null && return 0
		kill -0 "$guest" 2>/dev/null || break
		sleep 0.1
	done
	sed 's/^/# /' "$T/boot" "$T/serial" 2>/dev/null
	return 1
}

# boot_waiting ACCEL VCPUS IMAGE APPEND [LAB-BOOT-OPTION...]: a guest that waits for `go_on`, a byte on
# its serial port, does its work, and stays.
boot_waiting() {
	end_guest
	rm -f "$T/gdb" "$T/in"
	mkfifo "$T/in"
	accel=$1 elf=$3 append=$4 vcpus_=$2
	shift 4
	exec 9<>"$T/in"
	: >"$T/serial"
	[ "$accel" = tcg ] && set -- "$@" --gdb "unix:$T/gdb,server=on,wait=off"
	"$SRC/lab/boot" --accel "$accel" --smp "$vcpus_" --append "wait=1 hold=1 $append" "$@" "$elf" \
		<"$T/in" >"$T/serial" 2>&1 &
	guest=$!
	target=kvm:pid=$guest
	[ "$accel" = tcg ] && target=gdb:unix=$T/gdb
	wait_for 120 grep -q '^lab: waiting' "$T/serial" && return 0
	sed 's/^/# /' "$T/serial"
	return 1
}

# go_on WORDS: until it has printed these.
go_on() {
	echo >&9
	wait_for 120 grep -q "$1" "$T/serial" && return 0
	cat "$T/serial"
	return 1
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	tries=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

# shellcheck source=tests/support/tap.sh
. "$SRC/tests/support/tap.sh"

skip() { # WHAT WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# Recorded again, which only a lack of samples may be the reason of. test.sh shows these lines.
retry() { # WHY
	echo "# retry: $*" >>"$T/retries"
}

finish() {
	[ ! -e "$T/retries" ] || cat "$T/retries"
	[ -z "$no_kvm" ] || skip 'what needs KVM' "$no_kvm"
	[ -z "$no_bpf" ] || skip 'sampling by the host kernel' "$no_bpf"
	echo "1..$n"
	exit 0
}

# Did it end with that status, with one line on stderr that holds the words?
refused() { # STATUS FILE-WITH-STDERR WANTED-STATUS WORDS
	[ "$1" -eq "$3" ] && [ "$(wc -l <"$2")" -eq 1 ] && grep -q -e "$4" "$2" && return 0
	echo "status $1, said:"
	cat "$2"
	return 1
}

in_page() { # WORDS FILE: in what a page holds, packed as it is
	python3 - "$1" "$2" <<-'END'
		import base64, re, sys, zlib
		page = open(sys.argv[2], encoding='utf-8').read()
		for text in re.findall(r'[A-Za-z0-9+/]{64,}={0,2}', page):
		    try:
		        page += zlib.decompress(base64.b64decode(text), 47).decode('utf-8', 'replace')
		    except (ValueError, zlib.error):
		        pass
		sys.exit(sys.argv[1] not in page)
	END
}

# Does the guest's heart beat?
beats() {
	for seconds in 0.5 1.5 4; do # a KVM that emulates is slow
		timeout 30 "$U" record "$target" -q -d $seconds -F 20 -e "$elf" --watch lab_truth \
			-o "$T/beat.uniscope" --overwrite &&
			python3 "$SRC/tests/e2e/ask.py" beats "$T/beat.uniscope" && return 0
	done
	return 1
}
