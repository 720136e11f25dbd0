#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace.sh UNISCOPE BUILD SRCROOT: function tracing from outside. The guest `traced` counts its own
# calls. Every call is recorded or counted as lost, in each mode, under TCG and KVM, with 1 and 2
# vCPUs. babeltrace2 counts the same; start and stop restore every byte. If a profiler is killed,
# the guest runs on, and the next profiler can switch tracing off. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
. "$SRC/tests/support/kill.sh"
judge="$SRC/tests/e2e/trace_judge.py"

private() { # FILE...: nobody else can read them or what is in them
	[ -n "$(find "$@")" ] && [ -z "$(find "$@" -perm /077 | tee /dev/stderr)" ]
}

# From before the guest's first call to after its last.
recorded() { # MODE OPTION...
	mode=$1
	shift
	rm -f "$T/said"
	"$U" trace record "$target" -e "$elf" -d 0 --filter 'traced_*' --mode "$mode" \
		-o "$T/s.uniscope" --overwrite "$@" 2>"$T/said" &
	recorder=$!
	if ! wait_for 60 grep -q 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said"; then
		kill "$recorder"
		cat "$T/said"
		return 1
	fi
	go_on '^traced: '
	kill -INT "$recorder"
	wait "$recorder" && grep -q " of $vcpus_ CPUs*, .* lost; the guest was stopped" "$T/said" ||
		{ cat "$T/said"; return 1; }
	timeout 60 "$U" record "$target" -e "$elf" -q -F 20 -d 0.3 --watch lab_traced \
		-o "$T/truth.uniscope" --overwrite || return 1
	python3 "$judge" truth "$T/s.uniscope" "$T/truth.uniscope" "$elf" "$mode" && nested && private "$T/s.uniscope"
}

# Each call has its own return, whatever interrupted it, where nothing is lost.
nested() {
	"$U" trace report --json -n 0 "$T/s.uniscope" >"$T/report" && python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
odd = r["calls_without_return"], r["returns_without_call"]
print(odd, "of", r["events"], "events,", r["lost"], "lost")
sys.exit(r["lost"] == 0 and max(odd) > int(sys.argv[2]))' "$T/report" "${odd:-0}"
}

# All of the code, as it is in the guest's memory now.
code() { # FILE
	"$U" record "$target" -e "$elf" -q -F 20 -d 0.2 --watch traced_fib:512 \
		--watch traced_round:256 --watch lab_cpu_id:16 -o "$T/code.uniscope" --overwrite &&
		python3 -c 'import json, sys
for w in json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["watches"]:
    print(w["name"], w["last"]["bytes"])' "$T/code.uniscope" >"$1"
}

start_stop() {
	code "$T/before" && "$U" trace start "$target" -e "$elf" --filter 'traced_*' 2>"$T/start" && code "$T/on" ||
		return 1
	if cmp -s "$T/before" "$T/on"; then
		echo 'start changed nothing'
		return 1
	fi
	"$U" trace stop "$target" -e "$elf" 2>"$T/stop" && code "$T/after" && cmp "$T/before" "$T/after" &&
		"$U" trace stop "$target" -e "$elf" 2>"$T/again" || return 1
	# Both speak of places of code alone.
	cat "$T/start" "$T/stop" "$T/again"
	places=$(sed -n 's/.* functions at \([0-9]*\) places are traced.*/\1/p' "$T/start")
	[ "$places" -gt 0 ] && grep -q ": $places places have their old code again" "$T/stop" &&
		grep -q ': 0 places have their old code again' "$T/again"
}

# Dead at 7 calls of each command (by default 2), or at each write into a VMM; then there is one that switches everything off.
kills_of() { # start|stop|record CALL
	set -- "$2" "$1" "$U" trace "$1" "$target" -e "$elf"
	[ "$2" != record ] || set -- "$@" -q -d 0.05 -o "$T/k.uniscope" --overwrite
	call=$1 does=$2 only='' parts=$([ -n "${UNISCOPE_ALL-}" ] && echo 7 || echo 2)
	shift 2
	[ $call = any ] || only="-c $call"
	[ $does != stop ] || "$U" trace start "$target" -e "$elf" || return 1
	# shellcheck disable=SC2086 # words
	count_calls $only "$@" || return 1
	[ $call = any ] || parts=$nr
	echo "$does: $nr calls ($call)"
	for i in $(seq "$parts"); do
		[ $does != stop ] || "$U" trace start "$target" -e "$elf" || return 1
		# shellcheck disable=SC2086 # words
		killed_at $only $((i * nr / parts)) "$@" && kill -0 "$guest" || return 1
		kills=$((kills + 1))
		# A guardian needs a while to let go of the stub.
		case $does$i in
		start"$parts" | stop1) wait_for 60 code "$T/left" && ! cmp -s "$T/before" "$T/left" && patched=$((patched + 1)) ;;
		esac
		wait_for 60 "$U" trace stop "$target" -e "$elf" || { "$U" trace stop "$target" -e "$elf"; return 1; }
	done
}

as_before() {
	code "$T/after" && cmp -s "$T/before" "$T/after"
}

# Killed when the functions are on: the guardian restores every byte.
guarded() {
	code "$T/before" || return 1
	for _ in $(seq "${KILLS:-$([ -n "${UNISCOPE_ALL-}" ] && echo 2 || echo 1)}"); do
		rm -f "$T/said"
		"$U" trace record "$target" -e "$elf" -d 0 --filter 'traced_*' -o "$T/k.uniscope" --overwrite \
			2>"$T/said" &
		recorder=$!
		wait_for 60 grep -q 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said" ||
			{ kill -9 $recorder; cat "$T/said"; return 1; }
		kill -9 $recorder
		wait $recorder
		wait_for 60 as_before || { echo 'the code is not as it was'; return 1; }
	done
	beats
}

# Each byte of the guest's code is old or new.
kills() {
	code "$T/before" || return 1
	kills=0 patched=0
	for does in start stop record; do
		case $accel,${UNISCOPE_ALL:-some},$does in
		kvm,some,start) ;; # at each write alone
		*) kills_of $does any || return 1 ;;
		esac
		case $accel,${UNISCOPE_ALL:-some},$does in
		kvm,1,* | kvm,some,start) kills_of $does process_vm_writev || return 1 ;;
		esac
	done
	echo "$kills kills, $patched looks saw patches"
	[ $kills -ge "$([ -n "${UNISCOPE_ALL-}" ] && echo 21 || echo 5)" ] && [ $patched -ge 1 ] && code "$T/after" && cmp "$T/before" "$T/after" && beats
}

# The longer it lasts, the nearer a busy host gets to reading the guest's clock in no time.
clocked() {
	for seconds in 2 5 12 30; do
		"$U" trace record "$target" -e "$elf" -d $seconds -o "$T/c.uniscope" --overwrite 2>"$T/said" || break
		grep "times are this host" "$T/said" && python3 "$judge" clock "$T/c.uniscope" 200000000 && return 0
	done
	cat "$T/said"
	return 1
}

refused_by() { # STATUS WORDS COMMAND...
	status=$1 words=$2
	shift 2
	timeout 60 "$@" 2>"$T/said" >/dev/null
	refused $? "$T/said" "$status" "$words"
}

traced=
for cc in $compilers; do
	[ -e "$BUILD/lab/trace/trace-traced-$cc-fp.elf" ] && traced="$traced $cc"
done
[ -n "$traced" ] || absent 'no traced lab images'

full=${UNISCOPE_ALL:+1}
for accel in $accels; do
	# A KVM that emulates is slow.
	rounds=1500 ring=4096 many=6 modes=$(by_default graph 'graph lite function')
	[ "$accel" = kvm ] && rounds=60 ring=512 many=12 modes=$(by_default graph "$modes")
	for cc in $traced; do
		img=$BUILD/lab/trace/trace-traced-$cc-fp.elf
		for vcpus in $(by_default 2 "$([ "$accel" = kvm ] || echo 1) 2"); do
			# Interrupts after each instruction, so after each of the hooks' as well.
			# The first ones come at any depth, so where the outermost calls return is not known:
			# one may be taken for another, once a vCPU.
			steps='' odd=0
			[ "$accel" = tcg ] && [ "$vcpus" = 2 ] && steps='step=20000' odd=2
			for mode in $modes; do
				check "$accel, $cc, $vcpus vCPUs: starts" \
					boot_waiting "$accel" "$vcpus" "$img" \
					"rounds=$rounds ring=$ring irq=100 $steps"
				check "$accel, $cc, $vcpus vCPUs, $mode: every call" recorded "$mode"
				check "$accel, $cc, $vcpus vCPUs, $mode: babeltrace2 agrees" \
					python3 "$judge" babeltrace "$T/s.uniscope"
			done
		done
	done
	odd=0
	[ "$accel" = tcg ] && check "$accel: interrupts everywhere: starts" \
		boot_waiting "$accel" 1 "$img" "rounds=20000 ring=$ring irq=3000" &&
		check "$accel: interrupts everywhere: every call" recorded graph
	if [ "$accel" = tcg ]; then # where a ring is soon full; the guest's own tracer does the same under KVM
		check "$accel: a ring that is too small: starts" \
			boot_waiting "$accel" 1 "$img" "rounds=$((rounds * many)) ring=256"
		check "$accel: a ring that is too small: recorded + lost" recorded graph
		check "$accel: a ring that is too small: babeltrace2 agrees" \
			python3 "$judge" babeltrace "$T/s.uniscope"
	fi
	if [ "$accel$full" = tcg1 ]; then
		check "$accel: arguments overwritten: starts" \
			boot_waiting "$accel" 2 "$img" "rounds=$((rounds * many / 2)) ring=256"
		check "$accel: arguments overwritten: recorded + lost" recorded graph --args 'traced_*'
		check "$accel: arguments overwritten: babeltrace2 agrees" \
			python3 "$judge" babeltrace "$T/s.uniscope"
	fi
	if [ -n "$full" ] || [ "$accel" = tcg ]; then
		check "$accel: arguments, and a minimum of none: starts" \
			boot_waiting "$accel" 1 "$img" "rounds=$rounds ring=$ring"
		check "$accel: arguments and values" recorded graph --args 'traced_sum'
		check "$accel: the flight recorder" "$U" trace dump "$target" -e "$elf" -o "$T/s.uniscope" \
			--overwrite
		check "$accel: the flight recorder: babeltrace2 agrees" \
			python3 "$judge" babeltrace "$T/s.uniscope"
		check "$accel: without an image, by its magic" "$U" trace dump "$target" \
			-o "$T/m.uniscope" --overwrite
	fi
	check "$accel: runs" boot "$accel" "$img" "ring=$ring"
	if [ -n "$full" ] || [ "$accel" = "${accels##* }" ]; then
		check "$accel: start and stop restore every byte" start_stop
		check "$accel: a recording has the host's time" clocked
		check "$accel: SIGKILLs: the guest runs on, and all bytes are as they were" kills
		check "$accel: a SIGKILL while functions are on: the guardian restores them" guarded
	fi
	[ -n "$full" ] || [ "$accel" = tcg ] || continue
	check "$accel: no function of that name" refused_by 1 'no function matches' \
		"$U" trace start "$target" -e "$elf" --filter nobody
	check "$accel: no trigger of that name" refused_by 1 '--trigger nobody: no function' \
		"$U" trace start "$target" -e "$elf" --trigger nobody:freeze
	check "$accel: no arguments of that name" refused_by 1 '--args nobody: no function' \
		"$U" trace start "$target" -e "$elf" --args nobody
	check "$accel: not a mode" refused_by 2 'graph, lite, function or callers' \
		"$U" trace start "$target" -e "$elf" --mode fast
	check "$accel: not a trigger" refused_by 2 'FUNCTION:start' \
		"$U" trace start "$target" -e "$elf" --trigger handle_error
	plain=$BUILD/lab/calls1-${cc}-fp.elf
	check "$accel: a guest without the tracer" boot "$accel" "$plain" ''
	check "$accel: is said to be one" refused_by 1 'no trace ring' \
		"$U" trace dump "$target" -e "$elf" -o "$T/n.uniscope"
done
end_guest
finish
