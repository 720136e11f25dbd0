#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exact_calls.sh UNISCOPE BUILD SRCROOT: `run --exact=calls`. Every call is in the trace, and the guest waits for its reader. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
qemu='' reader=''
trap 'for p in $qemu $reader; do kill -9 "$p" 2>/dev/null; done; end_guest; umount "$T/disk" 2>/dev/null; rm -rf "$T"' EXIT

judge() {
	python3 "$SRC/tests/e2e/exact_judge.py" "$@"
}

# The value of the stack pointer is not seen where call_c returns to a fiber: its call is found there.
fibers() {
	recorded fib fibers-gcc-nofp rounds=3 || return 1
	"$U" export --no-inline -f folded "$T/fib.uniscope" >"$T/folded" 2>/dev/null
	grep -E 'm_main;call_c;c_linked |m_deep;c_deep ' "$T/folded" && ! grep -E 'm_inner;run_fiber|m_called;start_managed' "$T/folded" || return 1
	python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["stack_switches"]); sys.exit(d["returns_unmatched"] + d["frames_dropped"] != 0)' <"$T/fib.counts"
}

# lab_on_stack() leaves a stack by `leave`, which no access to memory shows. The first interrupt of a kind may be unmatched.
stack_left() {
	recorded corpus corpus-gcc-O2-fp-abs rounds=80 || return 1
	python3 -c 'import json, sys; d = json.load(sys.stdin)
n = [f["calls"] for f in d["functions"] if f["name"] == "lab_on_stack"]
print(n, d["returns_unmatched"], d["frames_dropped"]); sys.exit(n != [20] or d["returns_unmatched"] + d["frames_dropped"] > 5)' <"$T/corpus.counts"
}

# recorded NAME APP APPEND OPTION...: NAME.uniscope, .counts, .json
recorded() {
	name=$1 elf=$BUILD/lab/$2.elf append=$3
	shift 3
	rm -rf "$T/$name.uniscope"
	timeout 120 "$U" run --exact=calls --append "$append" -d 100 -o "$T/$name.uniscope" "$@" "$elf" >"$T/out" 2>&1 &&
		"$U" export -f counts "$T/$name.uniscope" 2>/dev/null >"$T/$name.counts" &&
		"$U" trace report -n 0 --no-demangle --json "$T/$name.uniscope" >"$T/$name.json" || {
		cat "$T/out"
		return 1
	}
}

# Recursion, tail calls, throws through frames, faults at first instructions; threads; interrupts.
every_call() {
	recorded "$@" && judge trace "$T/$1.counts" "$T/$1.json"
}

views() {
	e=$T/exact-gcc-nofp.uniscope
	"$U" report "$e" | grep -q ' exact_fib$' && "$U" annotate "$e" exact_fib >"$T/out" &&
		"$U" trace graph "$e" | grep -q '^ *1  .* 17 ns  *app_main$\|    app_main$' &&
		"$U" trace replay "$e" | grep -q '  exact_throw();' &&
		"$U" export --calls -f folded "$e" >"$T/folded" && grep -q 'dive;dive;exact_throw 400$' "$T/folded" &&
		"$U" report --html "$T/e.html" "$e" && "$U" export --calls -f chrome "$e" >"$T/chrome"
}

some_calls() {
	recorded some exact-gcc-nofp rounds=2 --filter 'exact_*' && judge trace "$T/some.counts" "$T/some.json" 'exact_*' &&
		recorded depth exact-gcc-nofp rounds=2 --depth 3 && grep -q '"function": "app_main"' "$T/depth.json" &&
		! grep -q '"function": "exact_fib"' "$T/depth.json" || return 1
	timeout 60 "$U" run --exact=calls --filter 'none_*' -q -o "$T/bad.uniscope" "$BUILD/lab/exact-gcc-nofp.elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'no function whose name matches none_' && [ ! -e "$T/bad.uniscope" ] || return 1
	"$U" trace report "$T/some.uniscope" 2>&1 >/dev/null | grep 'only such calls: --filter exact_\*\. Calls that were left out count' &&
		"$U" trace report "$T/depth.uniscope" 2>&1 >/dev/null | grep 'only such calls: --depth 3\.'
}

# Its first call returns, and what its caller does then is none of its own.
begins() {
	for image in exact-gcc-nofp aarch64/exact-gcc-nofp; do
		[ -e "$BUILD/lab/$image.elf" ] || continue
		recorded begin $image rounds=2 --begin-at exact_fib && judge begins "$T/begin.counts" "$T/begin.json" 2 exact_fib &&
			recorded begin $image rounds=2 --begin-at exact_tail_b &&
			judge begins "$T/begin.counts" "$T/begin.json" 3 exact_tail_a exact_tail_b || return 1
	done
}

# A function that is never called: that is said, and not that another image was booted.
never() {
	elf=$BUILD/lab/exact-gcc-nofp.elf
	timeout 60 "$U" run --exact --append 'rounds=1 faults=0' -d 50 --end-at exact_touch -o "$T/end.uniscope" "$elf" >"$T/out" 2>&1 &&
		grep ' exact_touch was not called: all is counted' "$T/out" || return 1
	timeout 60 "$U" run --exact -q --append 'rounds=1 faults=0' -d 50 --begin-at exact_touch -o "$T/none.uniscope" "$elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'and never called exact_touch: no counting began, after [1-9][0-9]* instructions' && [ ! -e "$T/none.uniscope" ]
}

# Its records too, byte for byte.
repeats() {
	recorded r1 idle-gcc-nofp 'secs=1 busy=1' --repeatable && recorded r2 idle-gcc-nofp 'secs=1 busy=1' --repeatable &&
		cmp "$T/r1.uniscope/guest-0/events-vcpu0" "$T/r2.uniscope/guest-0/events-vcpu0" &&
		cmp "$T/r1.json" "$T/r2.json" && [ "$(wc -c <"$T/r1.uniscope/guest-0/events-vcpu0")" -gt 1000000 ]
}

# The part that fits is there, and the rest is counted. The guest goes on to its end.
disk_full() {
	mkdir -p "$T/disk" && mount -t tmpfs -o size=4m tmpfs "$T/disk" || return 1
	timeout 120 "$U" run -q --exact=calls -d 100 --append 'rounds=1 seed=3 fib=26' -o "$T/disk/full.uniscope" \
		"$BUILD/lab/exact-gcc-nofp.elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'No space left on device; the missing part counts as lost' &&
		grep -q '^exact: done' "$T/disk/full.console.log" &&
		"$U" trace report -n 0 --no-demangle --json "$T/disk/full.uniscope" >"$T/full.json" && judge part "$T/full.json" 392836 || return 1
	# The tree has all of them, for room was kept.
	"$U" export -f counts "$T/disk/full.uniscope" 2>/dev/null >"$T/full.counts" && judge whole "$T/full.counts" ended &&
		"$U" export -f counts "$T/disk/full.uniscope" 2>/dev/null | grep -A3 '"exact_fib"' | grep '"calls": 392835,'
}

# Not even the tree fits: that is said, with its size. Or not all of it, or it does: so several sizes are tried.
no_tree() {
	for size in 560 620 700 800 1000; do
		umount "$T/disk"
		mount -t tmpfs -o size=${size}k tmpfs "$T/disk" || return 1
		timeout 120 "$U" run -q --exact=calls -d 100 --append 'rounds=1 seed=3 fib=26' -o "$T/disk/none.uniscope" \
			"$BUILD/lab/exact-gcc-nofp.elf" >"$T/out" 2>&1
		[ $? -eq 1 ] && "$U" report --json "$T/disk/none.uniscope" 2>/dev/null >"$T/none.json" &&
			grep -q '"failed":"the tree of [1-9]\|"lost":[1-9]\|"closed":false\|"total":[1-9]' "$T/none.json" || return 1
		grep '"failed"' "$T/none.json" || continue
		grep 'counts as lost; the tree of [1-9][0-9]* instructions could not be written: ' "$T/out" &&
			"$U" report "$T/disk/none.uniscope" 2>/dev/null | grep '^samples  *none: the tree of [1-9][0-9]* instructions'
		return
	done
	return 1
}

# The guest's numbers are there, its calls are not: that is no success.
no_room() {
	mkdir -p "$T/disk" && mount -t tmpfs -o size=6m tmpfs "$T/disk" || return 1
	rm -rf "$T/lost.uniscope"
	TMPDIR=$T/disk timeout 60 "$U" run -q --exact=calls -d 50 --append 'rounds=1 seed=3 fib=12' -o "$T/lost.uniscope" \
		"$BUILD/lab/exact-gcc-nofp.elf" >"$T/out" 2>&1
	status=$?
	# Nor is there room for anything.
	dd if=/dev/zero of="$T/disk/rest" bs=1k count=6000 2>/dev/null
	TMPDIR=$T/disk timeout 60 "$U" run -q --exact -d 50 -o "$T/full.uniscope" "$BUILD/lab/exact-gcc-nofp.elf" >"$T/none" 2>&1
	none=$?
	umount "$T/disk"
	refused $none "$T/none" 1 "uniscope's plugin: .*no room on the disk: free some, or name another folder by TMPDIR" || return 1
	refused $status "$T/out" 1 '[1-9][0-9]* calls and returns are lost.*name another folder by TMPDIR' &&
		"$U" export -f counts "$T/lost.uniscope" 2>/dev/null | grep -q '"name": "exact_fib"'
}

# Calls of all vCPUs until then, those of the tree.
killed() {
	rm -rf "$T/dead.uniscope"
	"$U" run --exact=calls --vcpus 4 -q -d 100 --append loop=1 -o "$T/dead.uniscope" "$BUILD/lab/smp-gcc-nofp.elf" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 grep -q '^lab: running' "$T/dead.console.log" && wait_for 60 test -s "$T/dead.uniscope/guest-0/events-vcpu3" || return 1
	pkill -9 -P $run qemu || return 1
	wait $run && "$U" export -f counts "$T/dead.uniscope" 2>/dev/null >"$T/dead.counts" &&
		"$U" trace report -n 0 --no-demangle --json "$T/dead.uniscope" >"$T/dead.json" && judge calls-of "$T/dead.counts" "$T/dead.json" 4 &&
		judge whole "$T/dead.counts" killed &&
		"$U" report "$T/dead.uniscope" | grep '(exact); QEMU was killed'
}

number_at() {
	od -An -tu8 -j "$1" -N 8 "$T/hand.calls" | tr -d ' '
}

# Sub-buffers that the guest is ahead of its reader by: docs/formats/exact.md.
is_ahead() { # AT-LEAST
	at=$(number_at 24576)
	[ $(($(number_at $((at / 65536 * 65536 + 80))) - $(number_at 4096))) -ge "$1" ]
}

is_near() {
	! is_ahead 90
}

# A guest that somebody else has started; its reader stops, then dies.
waits() {
	elf=$BUILD/lab/exact-gcc-nofp.elf
	option=$("$U" plugin --print "$T/hand" --mode calls "$elf") || return 1
	"$U" plugin --read "$T/hand" --follow -o "$T/hand.uniscope" "$elf" >"$T/reader" 2>&1 &
	reader=$!
	# shellcheck disable=SC2086 # two words
	"$SRC/lab/boot" --accel tcg --append 'rounds=100000000' --qmp "$T/qmp" --serial "file:$T/serial" "$elf" $option \
		>"$T/boot" 2>&1 &
	qemu=$!
	wait_for 60 grep -q '^lab: running' "$T/serial" || return 1
	wait_for 60 test -s "$T/hand.uniscope/guest-0/events-vcpu0" || return 1
	kill -STOP $reader
	wait_for 60 is_ahead 96 || return 1
	for command in query-status stop cont; do
		timeout 30 python3 "$SRC/tests/e2e/qmp.py" "$T/qmp" $command '{}' || return 1
	done
	is_ahead 96 && ! is_ahead 128 || return 1
	kill -CONT $reader
	wait_for 60 is_near || return 1
	kill -STOP $reader
	wait_for 60 is_ahead 96 || return 1
	kill -9 $reader
	wait $reader
	wait_for 60 is_ahead 300 || return 1
	# The dead reader's session can be read. A new reader has what the ring holds, and knows the gap.
	"$U" trace report -n 0 "$T/hand.uniscope" >"$T/out" && grep -q ' exact_node_1' "$T/out" &&
		grep -q '^events .* 0 lost' "$T/out" && grep -q ' lab_entry ' "$T/out" || return 1
	"$U" plugin --read "$T/hand" --follow -o "$T/more.uniscope" "$elf" >"$T/reader" 2>&1 &
	reader=$!
	wait_for 60 test -s "$T/more.uniscope/guest-0/events-vcpu0" || return 1
	kill -9 $qemu
	wait $qemu
	qemu=
	wait $reader || {
		cat "$T/reader"
		return 1
	}
	reader=
	grep -q '^uniscope: [1-9][0-9]* are lost' "$T/reader" &&
		"$U" trace report -n 0 "$T/more.uniscope" | grep '^events .* [1-9][0-9]* lost'
}

# Counts that a QEMU left behind.
other_build() {
	"$U" plugin --read "$T/hand" -o "$T/other.uniscope" "$BUILD/lab/threads-gcc-nofp.elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'threads-gcc-nofp.elf has other code or functions than the image that .*/hand.functions was' || return 1
	LC_ALL=C sed 's/\xe7\xf4\xb8/\xe7\xf5\xb8/' "$BUILD/lab/exact-gcc-nofp.elf" >"$T/patched.elf" && ! cmp -s "$T/patched.elf" "$BUILD/lab/exact-gcc-nofp.elf" || return 1
	"$U" plugin --read "$T/hand" -o "$T/other.uniscope" "$T/patched.elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'patched.elf has other code or functions' || return 1
	# The same code, of which two functions have each other's names.
	objcopy --redefine-sym exact_throw=exact_catch --redefine-sym exact_catch=exact_throw \
		"$BUILD/lab/exact-gcc-nofp.elf" "$T/named.elf" || return 1
	"$U" plugin --read "$T/hand" -o "$T/other.uniscope" "$T/named.elf" >"$T/out" 2>&1
	refused $? "$T/out" 1 'named.elf has other code or functions' && [ ! -e "$T/other.uniscope" ]
}

check 'every call: recursion, throws, faults' every_call exact-gcc-nofp exact-gcc-nofp rounds=2
check 'all views of it' views
[ ! -e "$BUILD/lab/aarch64/exact-gcc-nofp.elf" ] || check 'aarch64: every call' every_call a64 aarch64/exact-gcc-nofp rounds=2
check 'from one function on' begins
check 'from one that is never called' never
check 'threads' every_call threads threads-gcc-nofp scale=1
if [ -n "${UNISCOPE_ALL-}" ]; then
	[ ! -e "$BUILD/lab/exact-clang-fp.elf" ] || check 'clang, frame pointers' every_call clang exact-clang-fp rounds=2
	for app in threads idle; do
		[ ! -e "$BUILD/lab/aarch64/$app-gcc-nofp.elf" ] ||
			check "aarch64: $app" every_call a64 "aarch64/$app-gcc-nofp" 'scale=1 secs=1 busy=1'
	done
	check 'stacks as OCaml 5 switches them' fibers
	check 'a stack that is left by leave' stack_left
	check 'interrupts' every_call idle idle-gcc-nofp 'secs=1 busy=1'
	check 'four vCPUs' every_call four exact-gcc-nofp rounds=2 --vcpus 4
	check '--filter and --depth' some_calls
	check 'the same trace again with --repeatable' repeats
	check 'QEMU with four vCPUs is killed' killed
	if [ "$(id -u)" = 0 ] && mkdir "$T/m" && mount -t tmpfs tmpfs "$T/m" 2>/dev/null; then
		umount "$T/m"
		check 'no room for the calls in TMPDIR' no_room
		check 'disk full' disk_full
		check 'disk full, no room for the tree' no_tree
	else
		skip 'disk full' 'tmpfs cannot be mounted'
	fi
fi
check 'the guest waits for its reader, and not for a dead one' waits
check 'another image has not these counts' other_build
finish
