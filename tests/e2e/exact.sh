#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exact.sh UNISCOPE BUILD SRCROOT NATIVE: `run --exact` against known numbers, and against callgrind
# for the same functions in the Linux process NATIVE. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 NATIVE=$4
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
judge() {
	python3 "$SRC/tests/e2e/exact_judge.py" "$@"
}

# counted NAME IMAGE APPEND OPTION... [-- QEMU-OPTION...]: NAME.uniscope, .json, .console.log
counted() {
	name=$1 elf=$2 append=$3
	shift 3
	rm -rf "$T/$name.uniscope"
	timeout 120 "$U" run --exact --append "$append" -d 100 -o "$T/$name.uniscope" "$elf" "$@" \
		>"$T/out" 2>&1 && "$U" report --no-inline --json "$T/$name.uniscope" >"$T/$name.json"
}

known() { # VARIANT OPTION...
	elf=$BUILD/lab/exact-$1.elf
	shift
	counted k "$elf" rounds=2 "$@" || {
		cat "$T/out"
		return 1
	}
	judge known "$T/k.json" "$T/k.console.log"
}

as_callgrind() {
	valgrind --tool=callgrind --callgrind-out-file="$T/callgrind" --compress-pos=no \
		--dump-instr=yes "$NATIVE" 20 2 \
		>"$T/native" 2>&1 || {
		cat "$T/native"
		return 1
	}
	"$U" export -f callgrind-exact "$T/k.uniscope" >"$T/ours" &&
		judge callgrind "$T/k.json" "$T/callgrind" "$T/ours" || return 1
	callgrind_annotate "$T/ours" >"$T/annotated" && instructions=$(sed -n 's/^summary: //p' "$T/ours") &&
		tr -d , <"$T/annotated" | grep -q "^$instructions (100.0%)  PROGRAM TOTALS" || {
		cat "$T/annotated"
		return 1
	}
}

# Functions that call nothing, that call themselves, and that call by a pointer.
annotated() {
	elf=$BUILD/lab/exact-gcc-nofp.elf # the last of the known ones
	set --
	for f in exact_fib exact_ack exact_graph exact_choose exact_node_3 exact_node_6; do
		"$U" annotate --json "$T/k.uniscope" $f >"$T/a-$f.json" || return 1
		set -- "$@" "$T/a-$f.json"
	done
	judge annotated "$elf" "$NATIVE" "$T/callgrind" "$@" &&
		/usr/bin/python3 "$SRC/tests/e2e/schema.py" --file annotate "$SRC" "$@" || return 1
	"$U" annotate --source "$SRC" "$T/k.uniscope" app_main >"$T/out" || return 1
	# Ten turns of a loop: its line, its call, and the jump back.
	grep -q "exact.c:[0-9]* .*exact_choose(i);" "$T/out" && grep -q '^  *10 .*|   callq .*<exact_choose>  10 calls$' "$T/out" &&
		grep -q "^  *10  .* '-- j[a-z]* 0x" "$T/out" || {
		cat "$T/out"
		return 1
	}
}

no_annotation() { # WORDS OPTION...
	words=$1
	shift
	"$U" annotate "$T/k.uniscope" "$@" >"$T/out" 2>&1
	refused $? "$T/out" 1 "$words"
}

shows_function() {
	"$U" stacks "$target" -e "$elf" | sed -n 2p | grep -q "  $shown+0x"
}

# A busy host has stolen the others.
of_functions() { # LEAST
	python3 -c 'import json, sys; sys.exit(sum(f["self"] for f in json.load(open(sys.argv[1]))["functions"]) < int(sys.argv[2]))' \
		"$T/s.json" "$1"
}

# Samples under TCG are of the block that ran, also where that ended in a return or a call.
by_block() { # VARIANT FUNCTION
	elf=$BUILD/lab/blocks-$1.elf shown=$2 append=
	case $1,$2 in
	aarch64/*) elf=$BUILD/lab/aarch64/blocks-${1#*/}.elf && set -- quarters "$T/s.json" ;;
	*,parts) append=jumps=1 && set -- jumps "$T/blocks.json" "$T/s.json" ;;
	*) set -- blocks "$T/blocks.json" "$T/s.json" ;;
	esac
	[ "$1" = quarters ] || counted blocks "$elf" "rounds=20 $append" || return 1
	boot tcg "$elf" "$append" || return 1
	# `stacks` says where the vCPU is: most often behind the call of a block that has just ended.
	wait_for 60 shows_function || return 1
	# At a high rate a busy host stops the guest again before it has run, and then the next block
	# is seen too often.
	for seconds in 3 8 24 100; do
		timeout $((seconds + 60)) "$U" record "$target" -q -e "$elf" -F 29 -d $seconds -o "$T/s.uniscope" --overwrite &&
			"$U" report --no-inline --json "$T/s.uniscope" >"$T/s.json" && of_functions 80 && break
		retry "fewer than 80 samples of functions in $seconds s"
	done
	end_guest
	"$U" report "$T/s.uniscope" >"$T/s.txt" &&
		judge "$@" && grep '^skid .* given to the one before' "$T/s.txt"
}

annotate_sampled() { # FUNCTION
	"$U" annotate --json "$T/s.uniscope" "$1" >"$T/s.json"
}

# Samples of the basic blocks of one function against exact counts. Under TCG, a sample is where the next block begins, so the judge
# follows the blocks that lead there.
basic_blocks() { # WAY IMAGE FUNCTION APPEND
	way=$1 elf=$2 function=$3 append=$4 rate=99
	[ "$way" != tcg ] || rate=29
	counted c "$elf" "rounds=20 $append" --exact=counts || {
		cat "$T/out"
		return 1
	}
	"$U" annotate --json "$T/c.uniscope" "$function" >"$T/c.json" &&
		boot "$way" "$elf" "$append" || return 1
	for seconds in $([ "$way" = tcg ] && echo 9 || echo 3 9) 30 100; do
		# shellcheck disable=SC2046 # one word
		timeout $((seconds + 60)) "$U" record "$target" $(method "$way") -q -e "$elf" -F $rate -d $seconds -o "$T/s.uniscope" \
			--overwrite && unwatched annotate_sampled "$function" || return 1
		python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["self"] < 200)' "$T/s.json" && break
		retry "fewer than 200 samples in $seconds s"
	done
	end_guest
	judge basic "$T/c.json" "$T/s.json"
}

# Frames above the leaf, by name; a throw goes through all of dive's.
contexts() {
	"$U" export --no-inline -f folded "$T/k.uniscope" >"$T/folded" || return 1
	down='app_main;throw_often;exact_catch;dive;dive;dive;dive;dive;dive;dive;dive;exact_throw 400$'
	back='app_main;exact_bounce;exact_bounce;exact_bounce;exact_bounce;exact_note 1$'
	for stack in "$down" "$back" 'app_main;throw_often;after_throw 100$' 'app_main;exact_tail_a 1500$' \
		'app_main;exact_tail_b 1500$' \
		'app_main;fault_often;exact_touch;exact_page_fault;exact_map [0-9]*$'; do
		grep -q "$stack" "$T/folded" || {
			echo "there is no $stack in:"
			grep 'throw\|tail\|fault' "$T/folded"
			return 1
		}
	done
}

calls() {
	"$U" export -f counts "$T/k.uniscope" >"$T/counts" && judge calls "$T/counts" "$T/k.console.log"
}

# The same source, compiled as the guest's was, with gcc's own counters.
as_gcov() {
	(cd "$T" && gcc -O2 -fno-pie -no-pie -fno-ipa-ra -fno-reorder-blocks-and-partition --coverage \
		-I "$SRC/lab/apps" -o covered "$SRC/tests/e2e/exact_native.c" "$SRC/lab/apps/exact_work.c" &&
		./covered 20 2 && gcov -o . covered-exact_work.gcda) >"$T/gcov" 2>&1 || {
		cat "$T/gcov"
		return 1
	}
	"$U" export -f lcov "$T/k.uniscope" >"$T/info" && judge lines "$T/info" "$T/exact_work.c.gcov"
}

no_counts() {
	printf 'a;b 1\n' >"$T/f" && "$U" import "$T/f" -o "$T/f.uniscope" 2>/dev/null
	"$U" export -f counts "$T/f.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 'run --exact. makes them'
}

# A guest that is started by something else, with the option that we print.
by_hand() {
	elf=$BUILD/lab/exact-gcc-nofp.elf
	option=$("$U" plugin --print "$T/hand.counts" "$elf") || return 1
	# shellcheck disable=SC2086 # two words
	timeout 100 "$SRC/lab/boot" --accel tcg --append rounds=2 "$elf" $option >"$T/hand.console.log" 2>&1
	"$U" plugin --read "$T/hand.counts" -q -o "$T/hand.uniscope" "$elf" &&
		"$U" report --no-inline --json "$T/hand.uniscope" >"$T/hand.json" &&
		judge known "$T/hand.json" "$T/hand.console.log" || return 1
	"$U" plugin --print "$T/hand.counts" "$elf" >"$T/out" 2>&1
	refused $? "$T/out" 2 'is there already'
}

# A QEMU that counts: `record` takes its counts in place of samples, also from the first instruction on. No stub is needed.
recorded() { # MODE TARGET OPTION-OF-QEMU...
	elf=$BUILD/lab/exact-gcc-nofp.elf mode=$1 of=$2
	shift 2
	rm -rf "$T"/rec.*
	option=$("$U" plugin --print "$T/rec.counts" --mode "$mode" "$elf") || return 1
	# shellcheck disable=SC2086 # two words
	timeout 100 "$SRC/lab/boot" --accel tcg --append rounds=2 --qmp "$T/rec.qmp" --serial "file:$T/rec.console.log" "$elf" $option -S "$@" \
		>"$T/out" 2>&1 &
	boot=$!
	wait_for 60 test -S "$T/rec.qmp" || return 1
	[ "$of" != pid ] || of=$(pgrep -P $boot qemu)
	rm -f "$T/err"
	"$U" record "$of" -d 0 -o "$T/rec.uniscope" >"$T/err" 2>&1 &
	recorder=$!
	wait_for 60 grep -q 'counts every instruction' "$T/err" &&
		timeout 30 python3 "$SRC/tests/e2e/qmp.py" "$T/rec.qmp" cont '{}' && wait $recorder || {
		kill $boot $recorder 2>/dev/null
		cat "$T/err"
		return 1
	}
	wait $boot
	"$U" report --no-inline --json "$T/rec.uniscope" >"$T/rec.json" && judge known "$T/rec.json" "$T/rec.console.log"
}

# Bit 1 of the mask: SIGINT. The recorder catches it once it has read the counts.
catches_int() {
	grep -q '^SigCgt:.*[2367abef]$' "/proc/$recorder/status"
}

recorder_ended() {
	! grep -q '^State:.[^ZX]' "/proc/$recorder/status" 2>/dev/null
}

# Somebody removes the file of the counts: nobody will write it again.
counts_go() {
	"$U" record running -q -d 0 -o "$T/rec.gone.uniscope" >"$T/err" 2>&1 &
	recorder=$!
	wait_for 60 catches_int && rm "$T/rec.counts" && kill -INT $recorder && wait_for 60 recorder_ended || {
		kill -9 $recorder
		return 1
	}
	wait $recorder
	refused $? "$T/err" 1 'rec.counts: No such file' && [ ! -e "$T/rec.gone.uniscope" ]
}

says_counts() { # COMMAND...
	"$U" "$@" running -e "$elf" >"$T/out" 2>"$T/err" && grep -q 'takes the counts, and these are samples' "$T/err"
}

# While it runs, and as samples if that is asked for.
recorded_meanwhile() {
	elf=$BUILD/lab/shares-gcc-nofp.elf
	rm -rf "$T"/rec.*
	option=$("$U" plugin --print "$T/rec.counts" "$elf") || return 1
	# shellcheck disable=SC2086 # two words
	"$SRC/lab/boot" --accel tcg --append loop=1 --serial "file:$T/rec.console.log" "$elf" $option \
		-name running -gdb "unix:$T/rec.gdb,server=on,wait=off" >"$T/out" 2>&1 &
	boot=$!
	wait_for 60 grep -q '^lab: running' "$T/rec.console.log" &&
		"$U" record running -d 0.2 -o "$T/rec.uniscope" >"$T/err" 2>&1 &&
		"$U" report "$T/rec.uniscope" | grep -q 'QEMU counts every instruction (exact); read while the guest ran: ' &&
		grep -q 'read while the guest ran: not all numbers are of one moment' "$T/err" &&
		"$U" export -f counts "$T/rec.uniscope" >"$T/counts" && judge whole "$T/counts" running &&
		"$U" record "gdb:unix=$T/rec.gdb" -q -d 0.2 -o "$T/rec.gdb.uniscope" 2>>"$T/err" &&
		[ -e "$T/rec.gdb.uniscope/guest-0/exact" ] &&
		says_counts stacks && says_counts top -b &&
		"$U" record running -q --method pause -e "$elf" -d 0.2 -o "$T/rec.pause.uniscope" 2>>"$T/err" &&
		[ -d "$T/rec.pause.uniscope" ] && [ ! -e "$T/rec.pause.uniscope/guest-0/exact" ] &&
		"$U" record running -q -F 49 -e "$elf" -d 0.2 -o "$T/rec.rate.uniscope" 2>>"$T/err" &&
		[ -d "$T/rec.rate.uniscope" ] && [ ! -e "$T/rec.rate.uniscope/guest-0/exact" ] &&
		counts_go
	status=$?
	kill $boot
	wait $boot
	[ $status -eq 0 ] || cat "$T/err"
	return $status
}

# From fib's first call to that of the next function that app_main calls; and what ran before main.
parts() {
	counted p "$BUILD/lab/exact-gcc-nofp.elf" rounds=2 --begin-at exact_fib --end-at exact_ack &&
		"$U" export -f counts "$T/p.uniscope" >"$T/counts" &&
		counted b "$BUILD/lab/exact-gcc-nofp.elf" rounds=2 --end-at app_main &&
		"$U" export -f counts "$T/b.uniscope" >"$T/before" || {
		cat "$T/out"
		return 1
	}
	judge parts "$T/counts" "$T/before" "$T/k.json"
}

# Nothing calls the plugin there: QEMU adds, and cut blocks are found by arithmetic.
counts_alone() {
	for mode in tree counts; do
		counted $mode "$BUILD/lab/exact-gcc-nofp.elf" rounds=2 --repeatable "--exact=$mode" \
			--machine microvm &&
			"$U" export -f counts "$T/$mode.uniscope" >"$T/$mode.counts" || return 1
	done
	judge modes "$T/tree.counts" "$T/counts.counts"
}

# Code of which no symbol tells. It ran after the image began, so it is no firmware.
nameless() {
	objcopy -N exact_fib -N exact_tail_b "$BUILD/lab/exact-gcc-nofp.elf" "$T/nameless.elf" || return 1
	for mode in tree counts; do
		counted n-$mode "$T/nameless.elf" rounds=2 --repeatable --machine microvm "--exact=$mode" && "$U" export -f counts "$T/n-$mode.uniscope" >"$T/n-$mode.counts" || return 1
	done
	# A vCPU that the image has started runs none either.
	for mode in tree counts; do
		counted v-$mode "$BUILD/lab/smp-gcc-nofp.elf" scale=1 --repeatable --vcpus 2 "--exact=$mode" &&
			"$U" export -f counts "$T/v-$mode.uniscope" >"$T/v-$mode.counts" || return 1
	done
	judge modes "$T/v-tree.counts" "$T/v-counts.counts" smp || return 1
	judge nameless "$T/n-tree.counts" "$T/n-counts.counts" "$(nm "$BUILD/lab/exact-gcc-nofp.elf" | sed -n 's/ . exact_tail_b$//p')"
}

# Threads that add to one number lose additions.
one_thread() {
	option=$("$U" plugin --print "$T/smp.counts" --mode counts "$BUILD/lab/smp-gcc-nofp.elf") || return 1
	# shellcheck disable=SC2086 # two words
	timeout 100 qemu-system-x86_64 -M q35 -display none -nodefaults -smp 2 -accel tcg $option >"$T/out" 2>&1
	[ $? -eq 1 ] && grep 'give QEMU -accel tcg,thread=single$' "$T/out"
}

# The same on aarch64: its calls push nothing.
on_aarch64() { # VARIANT
	for mode in counts tree; do
		counted a64-$mode "$BUILD/lab/aarch64/exact-$1.elf" rounds=2 --repeatable "--exact=$mode" &&
			"$U" export -f counts "$T/a64-$mode.uniscope" >"$T/a64-$mode.counts" || return 1
	done
	judge known "$T/a64-tree.json" "$T/a64-tree.console.log" aarch64 && judge calls "$T/a64-tree.counts" "$T/a64-tree.console.log" &&
		judge modes "$T/a64-tree.counts" "$T/a64-counts.counts" && "$U" export --no-inline -f folded "$T/a64-tree.uniscope" >"$T/folded" || return 1
	down='app_main;throw_often;exact_catch;dive;dive;dive;dive;dive;dive;dive;dive;exact_throw 600$'
	back='app_main;exact_bounce;exact_bounce;exact_bounce;exact_bounce;exact_note 3$'
	for stack in "$down" "$back" 'app_main;throw_often;after_throw [0-9]*$' 'app_main;fault_often;exact_touch;exact_page_fault;exact_map [0-9]*$'; do
		grep -q "$stack" "$T/folded" || return 1
	done
}

# QEMU's log of each instruction, one a block.
logged() { # IMAGE
	elf=$1
	run='rounds=2 seed=6 fib=10 faults=0 turns=100'
	counted one "$elf" "$run" && "$U" export -f counts "$T/one.uniscope" >"$T/counts" || return 1
	timeout 100 "$SRC/lab/boot" --accel tcg --append "$run" --serial "file:$T/serial" "$elf" -singlestep -d exec,nochain \
		-dfilter "$(judge range "$T/counts")" -D "$T/log" >"$T/boot" 2>&1
	grep -q '^exact: done' "$T/serial" && judge steps "$T/counts" "$T/log"
}

# One turn more of the graph: `diff` has each difference, as a fact.
differs() {
	counted more "$BUILD/lab/exact-gcc-nofp.elf" rounds=3 --repeatable --machine microvm &&
		"$U" export -f counts "$T/more.uniscope" >"$T/more.counts" || return 1
	"$U" diff --json "$T/tree.uniscope" "$T/more.uniscope" >"$T/diff.json"
	[ $? -eq 4 ] && judge diff "$T/tree.counts" "$T/more.counts" "$T/diff.json" &&
		/usr/bin/python3 "$SRC/tests/e2e/schema.py" --file exact-diff "$SRC" "$T/diff.json" || return 1
	"$U" diff "$T/more.uniscope" "$T/tree.uniscope" >"$T/out" && grep -q '^fewer instructions: -' "$T/out" &&
		"$U" diff "$T/tree.uniscope" "$T/tree.uniscope" | grep -q '^the same' &&
		"$U" diff --fail-if 'total +50%' --fail-if 'function * +50pp' "$T/tree.uniscope" "$T/more.uniscope" >"$T/out" || return 1
	"$U" diff --fail-if 'total +0.0000001%' "$T/tree.uniscope" "$T/more.uniscope" >"$T/out"
	[ $? -eq 4 ] || return 1
	# A function that executes more of its own instructions, whatever part of all that is.
	function=$(judge grown "$T/tree.counts" "$T/more.counts") || return 1
	"$U" diff --fail-if "function $function +0.01%" "$T/tree.uniscope" "$T/more.uniscope" >"$T/out"
	[ $? -eq 4 ] && grep -q "^failed: .*: $function +0\.[0-9]* % of its instructions" "$T/out" || { cat "$T/out"; return 1; }
	"$U" diff --fail-if "function $function +900%" "$T/tree.uniscope" "$T/more.uniscope" >"$T/out" &&
		grep -q "^passed: .*: $function +" "$T/out" || { cat "$T/out"; return 1; }
	"$U" diff --vcpu 0 "$T/tree.uniscope" "$T/more.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 2 'exact counts are of a whole run' || return 1
	"$U" diff --tree "$T/tree.uniscope" "$T/more.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 2 'exact counts are compared by function'
}

# Several runs of a side: what moved is said of instructions, and not of time.
several() {
	for i in 1 2 3; do
		rm -rf "$T/old$i" "$T/new$i"
		cp -r "$T/tree.uniscope" "$T/old$i" && cp -r "$T/more.uniscope" "$T/new$i" || return 1
	done
	set -- "$T/old1" "$T/old2" "$T/old3" -- "$T/new1" "$T/new2" "$T/new3"
	"$U" diff --json "$T/tree.uniscope" "$T/more.uniscope" >"$T/one.json"
	"$U" diff --threshold 0.0001 --json "$@" >"$T/three.json"
	[ $? -eq 4 ] && judge several "$T/one.json" "$T/three.json" || return 1
	/usr/bin/python3 "$SRC/tests/e2e/schema.py" --file diff "$SRC" "$T/three.json" || return 1
	"$U" diff --threshold 0.0001 --fail-if 'total +90%' "$@" >"$T/out" && cat "$T/out" &&
		grep -q '^more instructions: +' "$T/out" && grep -q '^before .*: [0-9,]* instructions, 3 runs$' "$T/out" &&
		grep -q '^100 %    [0-9,]* instructions per run' "$T/out" && ! grep -q 'time\|samples\|slower' "$T/out" || return 1
	"$U" diff --of time -o "$T/d.svg" "$@" >"$T/out"
	cat "$T/out"
	grep -q "^100 %    the guest's instructions, of each side" "$T/out" && ! grep -q "samples" "$T/out" &&
		grep -q '<title>exact_node_. ([0-9,]* instructions' "$T/d.svg" || return 1
	"$U" diff "$T/old1" "$T/old2" -- "$T/new1" >"$T/out"
	[ $? -eq 3 ] && cat "$T/out" && grep -q '^note     exact counts: give one session of each side, or 3' "$T/out" || return 1
	"$U" diff --of wall "$@" >"$T/out" 2>&1
	refused $? "$T/out" 1 'numbers of instructions: --of wall is about samples'
}

# Each thread's frames stay its own: 400 turns of each, known instructions, nothing that does not match.
threads() {
	counted t "$BUILD/lab/threads-gcc-nofp.elf" scale=1 && "$U" export --no-inline -f folded "$T/t.uniscope" \
		>"$T/folded" && "$U" export -f counts "$T/t.uniscope" >"$T/counts" || return 1
	for stack in 'cruncher_a_main;crunch_a 19204400' 'cruncher_b_main;crunch_b 9604000' \
		'consumer_main;consume 3203600' 'cruncher_a_main;lab_thread_yield;schedule;lab_switch 6000'; do
		grep -qx "lab_thread_entry;$stack" "$T/folded" || {
			echo "there is no $stack in:"
			grep 'crunch\|consume' "$T/folded"
			return 1
		}
	done
	grep -q '"returns_unmatched": 0' "$T/counts" && grep -q '"frames_dropped": 0' "$T/counts"
}

# As many interrupts as the guest says that it has served.
interrupts() {
	counted i "$BUILD/lab/idle-gcc-nofp.elf" 'secs=1 busy=1' &&
		"$U" export -f counts "$T/i.uniscope" >"$T/counts" || return 1
	served=$(sed -n 's/^truth irq_work \([0-9]*\) .*/\1/p' "$T/i.console.log")
	echo "served $served"
	[ "$served" -gt 5 ] && grep -q "\"interrupts\": $served," "$T/counts" &&
		grep -q "\"interrupts_resumed\": $served," "$T/counts" &&
		grep -q '"returns_unmatched": 0' "$T/counts" || {
		grep 'interrupts\|unmatched' "$T/counts"
		return 1
	}
}

# Kept beside the counts, of a run that is no repeatable one (repeats).
host_clock() {
	"$U" report "$T/k.uniscope" | grep "^speed  *[0-9]* instructions in [0-9.]* s by the host's clock" &&
		python3 -c 'import json, sys; d = json.load(sys.stdin)["duration_ns"]; sys.exit(not 5e7 <= d < 12e10)' <"$T/k.json"
}

# All of it, so that a loop that QEMU restarts at each access to a device shows.
with_icount() {
	known "$1" --machine "$2" -- -icount shift=0,sleep=off
}

# A guest with a timer, twice, the second time beside a busy loop: nothing may differ.
repeats() {
	counted r1 "$BUILD/lab/idle-gcc-nofp.elf" "$1" --repeatable || return 1
	sh -c 'while :; do :; done' &
	loop=$!
	counted r2 "$BUILD/lab/idle-gcc-nofp.elf" "$1" --repeatable
	status=$?
	kill $loop
	[ $status -eq 0 ] && cmp "$T/r1.uniscope/guest-0/exact" "$T/r2.uniscope/guest-0/exact" &&
		cmp "$T/r1.json" "$T/r2.json" && ! "$U" report "$T/r1.uniscope" | grep '^speed' && "$U" export -f counts "$T/r1.uniscope" >"$T/counts" &&
		grep -q '"interrupts": [1-9]' "$T/counts"
}

# A disk answers when the host's has: that is said.
unfixed_disk() {
	timeout 60 "$U" run --exact --repeatable --disk "$BUILD/lab/loads-gcc-fp.img" -e "$BUILD/lab/loads-gcc-fp.elf" --memory 128M \
		--end-at kmain -d 50 -o "$T/disk.uniscope" >"$T/out" 2>&1 && grep -q 'the times at which --disk answers are not fixed' "$T/out" || {
		cat "$T/out"
		return 1
	}
}

# A guest that moves itself by its counter of cycles, to another place in each boot: its functions have names at each, and before.
moves() {
	elf=$BUILD/lab/deep-pie-gcc-nofp.elf
	for run in 1 2 counts calls; do
		mode=tree
		[ ${#run} -eq 1 ] || mode=$run
		counted "moves$run" "$elf" rounds=20 --exact=$mode || { cat "$T/out"; return 1; }
		grep ' moved by 0x[0-9a-f]*000; its addresses are as linked$' "$T/out" && "$U" export -f counts "$T/moves$run.uniscope" >"$T/moves$run.counts" || return 1
	done
	judge moved "$T/moves1.console.log" "$T/moves1.counts" "$T/moves2.counts" "$T/movescounts.counts" "$T/movescalls.counts" &&
		"$U" trace report -n 0 --no-demangle --json "$T/movescalls.uniscope" >"$T/report" && judge trace "$T/movescalls.counts" "$T/report" || return 1
	# It ends at a function that has moved; and nothing is counted of a program that is not there.
	counted ends "$elf" rounds=20 --end-at down_b -e "$elf" -e "$BUILD/lab/program-gcc-fp.elf" &&
		grep -q 'reached down_b: ' "$T/out" && grep -q '/program-gcc-fp.elf: none of its code was executed$' "$T/out" || { cat "$T/out"; return 1; }
}

# Handlers that go elsewhere: all that ran before the fault counts, and nothing behind it.
faults() { # MODE...
	for mode; do
		for way in '' --repeatable; do
			# shellcheck disable=SC2086 # a word, or none
			counted f "$BUILD/lab/faults-gcc-nofp.elf" rounds=10 "--exact=$mode" $way && "$U" export -f counts "$T/f.uniscope" >"$T/counts" || return 1
			judge faults "$T/counts" 10 || return 1
		done
	done
}

# Each second interrupt comes directly behind the one before, which has switched threads.
preempted() {
	for way in '' --repeatable; do
		# shellcheck disable=SC2086 # a word, or none
		counted t "$BUILD/lab/preempt-gcc-nofp.elf" rounds=10 --exact $way && "$U" export -f counts "$T/t.uniscope" >"$T/counts" &&
			"$U" export --no-inline -f folded "$T/t.uniscope" >"$T/folded" 2>/dev/null || return 1
		judge preempted "$T/counts" "$T/folded" || return 1
	done
}

# The counts until then are there: the file is a mapping.
killed() {
	"$U" run --exact -q -d 100 --append loop=1 -o "$T/dead.uniscope" "$BUILD/lab/shares-gcc-nofp.elf" \
		>"$T/out" 2>&1 &
	run=$!
	wait_for 60 grep -q '^lab: running' "$T/dead.console.log"
	pkill -9 -P $run qemu || return 1
	wait $run || {
		cat "$T/out"
		return 1
	}
	"$U" export -f counts "$T/dead.uniscope" >"$T/counts" && grep -q '"name": "burn_a"' "$T/counts" && judge whole "$T/counts" killed &&
		"$U" report "$T/dead.uniscope" | grep '(exact); QEMU was killed'
}

refuses() { # WORDS OPTION...
	words=$1
	shift
	timeout 60 "$U" run -q -o "$T/bad.uniscope" "$@" >"$T/out" 2>&1
	refused $? "$T/out" 2 "$words" && [ ! -e "$T/bad.uniscope" ]
}

# Each round of the guest makes the same calls; the tracer's log of it has them too (syscalls.sh). writev's function calls write's
# twice, and one of close's calls the other. The kernel uses a C library's lseek, and has a static function with the name of another one.
system_calls() {
	objcopy --redefine-sym lab_rounds=lseek --redefine-sym one_round=uk_syscall_r_lseek "$BUILD/lab/syscalls-gcc-fp.elf" "$T/names.elf" || return 1
	counted y "$T/names.elf" rounds=7 || {
		cat "$T/out"
		return 1
	}
	"$U" trace syscalls "$T/y.uniscope" >"$T/table" 2>"$T/err" || return 1
	cat "$T/table" "$T/err"
	awk 'NR > 1 { print $1, $3, $4 }' "$T/table" | sort >"$T/calls"
	sort >"$T/wanted" <<-'END'
		14 close uk_syscall_e_close
		14 open uk_syscall_r_open
		14 write uk_syscall_r_write
		1 lseek lseek
		7 lseek uk_syscall_r_lseek
		7 mmap uk_syscall_r_mmap
		7 read uk_syscall_r_read
		7 socket uk_syscall_r_socket
		7 writev uk_syscall_r_writev
	END
	cmp "$T/calls" "$T/wanted" && grep -q 'no arguments, results and times' "$T/err" && grep 'such as lseek, are called by' "$T/err" || return 1
	[ "$("$U" trace syscalls -q "$T/y.uniscope" --expr trace=mmap | wc -l)" -eq 2 ] || return 1
	"$U" trace syscalls "$T/y.uniscope" --wait 1 >"$T/out" 2>&1
	refused $? "$T/out" 2 'leave out --wait, which is for a guest that runs' || return 1
	"$U" trace syscalls "$T/y.uniscope" -Z >"$T/out" 2>&1
	refused $? "$T/out" 2 'leave out -z, -Z' || return 1
	"$U" trace syscalls "$T/y.uniscope" -T >"$T/out" 2>&1
	refused $? "$T/out" 2 'leave out --time' || return 1
	"$U" trace syscalls "$T/y.uniscope" --json >"$T/out" 2>&1
	refused $? "$T/out" 2 'export -f counts' || return 1
	"$U" trace syscalls "$T/k.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 'no function that answers a system call was called' || return 1
	# The same code as a program of another kernel: nothing of it answers.
	counted z "$BUILD/lab/syscalls-gcc-fp.elf" rounds=7 -e "$BUILD/lab/deep-gcc-nofp.elf" -e "$BUILD/lab/syscalls-gcc-fp.elf" &&
		"$U" export -f counts "$T/z.uniscope" | grep -A1 '"name": "uk_syscall_r_open"' | grep 0x6001 || return 1
	"$U" trace syscalls "$T/z.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 'no function that answers a system call was called'
}

for v in $(by_default gcc-nofp 'clang-fp gcc-nofp'); do
	[ ! -e "$BUILD/lab/exact-$v.elf" ] || check "known numbers of $v" known $v
done
check 'the time by the clock of the host' host_clock
check 'samples under TCG are of the block that ran' by_block gcc-nofp both
check 'also where jumps lead behind a call, and returns elsewhere' by_block gcc-nofp parts
for elf in "$BUILD"/lab/aarch64/blocks-*.elf; do
	[ -e "$elf" ] || continue
	case ${UNISCOPE_ALL:+all}$elf in
	all*-gcc-nofp.elf | all*-clang-fp.elf) ;;
	*) continue ;;
	esac
	elf=$(basename "$elf" .elf)
	check "the same on aarch64: $elf" by_block "aarch64/${elf#blocks-}" both
done
# Under TCG a guest with frame pointers, below.
for way in $([ -z "${UNISCOPE_ALL-}" ] || echo kvm bpf); do
	case " $ways " in
	*" $way "*) check "$way: basic blocks against exact counts" basic_blocks $way "$BUILD/lab/blocks-gcc-nofp.elf" forks forks=1 ;;
	*) skip "$way: basic blocks against exact counts" "$no_kvm" ;;
	esac
done
in_all check 'tcg: the same by clang, with frame pointers' basic_blocks tcg "$BUILD/lab/blocks-clang-fp.elf" forks forks=1
check 'calling contexts' contexts
check 'the same instructions as callgrind' as_callgrind
check 'annotate: executions of each instruction as callgrind has them' annotated
check 'annotate of another build' no_annotation 'is another build' exact_fib -e "$BUILD/lab/exact-gcc-fp.elf"
check 'annotate without the image' no_annotation '--image names it' exact_fib -e "$T/no"
check 'annotate of no function' no_annotation 'no function exact_none' exact_none
check 'calls, as the guest counts them' calls
check 'the same lines as gcov' as_gcov
check 'system calls' system_calls
check 'counts alone' counts_alone
check 'code without a function is no firmware' nameless
check 'counts alone of several vCPUs need one thread' one_thread
one=$(qemu-system-x86_64 -help | sed -n 's/^-singlestep .*/yes/p') # newer ones have another way
for elf in "$BUILD"/lab/exact-gcc-nofp.elf "$BUILD"/lab/aarch64/exact-*.elf; do
	[ -e "$elf" ] || continue
	variant=$(basename "$elf" .elf | cut -d- -f2-)
	case ${UNISCOPE_ALL:+all}$elf in
	*/aarch64/*-gcc-nofp.elf | all*/aarch64/*-clang-fp.elf) check "aarch64: known numbers of $variant" on_aarch64 "$variant" ;;
	*/lab/exact-*) ;;
	*) continue ;;
	esac
	what="each instruction as QEMU logs it: ${elf#"$BUILD"/lab/}"
	if [ -n "$one" ]; then
		check "$what" logged "$elf"
	else
		skip "$what" 'this QEMU has no -singlestep'
	fi
done
check 'diff says what changed, not how likely' differs
check 'diff of several runs speaks of instructions' several
check 'a guest that something else starts' by_hand
check '`record` of it, by its name' recorded tree counting -name counting
in_all check '`record` of it while it runs' recorded_meanwhile
in_all check '`record` of it, by its pid, with calls' recorded calls pid
check 'from one function to another' parts
check 'threads by their stacks' threads
check 'interrupts' interrupts
check 'a session without counts' no_counts
for m in $(by_default microvm 'q35 microvm'); do
	check "known numbers with -icount on $m" with_icount gcc-nofp $m
done
check 'four vCPUs in threads of their own' known gcc-nofp --vcpus 4
check 'the same counts again with --repeatable' repeats secs=1
in_all check '--repeatable with a disk' unfixed_disk
check '--inputs without a disk' refuses '--inputs needs --repeatable and --disk' --exact --repeatable --inputs "$T/none" "$BUILD/lab/exact-gcc-nofp.elf"
check 'a guest that moves itself' moves
check 'QEMU is killed' killed
check 'threads that an interrupt switches' preempted
check 'counts alone of faults that nothing goes back to' faults counts
check 'the same in the tree, and of calls that fault' faults tree calls
check '--repeatable without --exact' refuses 'need --exact' --repeatable \
	"$BUILD/lab/exact-gcc-nofp.elf"
check '--exact with KVM' refuses 'needs TCG' --exact --accel kvm "$BUILD/lab/exact-gcc-nofp.elf"
check 'an unknown kind' refuses 'tree, counts or calls' --exact=all "$BUILD/lab/exact-gcc-nofp.elf"
finish
