#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# inside.sh UNISCOPE BUILD SRCROOT: guests that sample and trace themselves. They are reached through a serial port of their own, by
# a unix socket and by TCP. Their shares are those of the guest's books, and of a profiler outside at the same time. If a line is
# cut, spoilt, slow or silent, the profiler ends with the samples it has, and the guest runs on. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
here=$SRC/tests/e2e
cc=
for c in clang gcc; do
	[ -e "$BUILD/lab/trace/trace-shares-$c-fp.elf" ] && cc=$c
done
[ -n "$cc" ] || absent 'no traced lab images'
shares=$BUILD/lab/trace/trace-shares-$cc-fp.elf
calls1=$BUILD/lab/trace/trace-calls1-$cc-fp.elf
port=$T/port
by_unix=stream:unix=$port

# boot_port ACCEL IMAGE APPEND [CHARDEV [PROGRAM]]: with a second serial port.
boot_port() {
	accel_=$1 image_=$2 append_=$3 chardev_=${4:-path=$port} program_=${5-}
	rm -f "$port" "$T/qmp"
	boot "$accel_" "$image_" "$append_" --qmp "$T/qmp" --port "$chardev_" ${program_:+--initrd "$program_"}
}

# Interrupts come in anywhere, and the port's functions are called by pointer.
graph() { # IMAGE EDGES
	nm "$1" | awk '$2 ~ /^[tT]$/ { print "?", $3, "lab_irq_timer"; print "?", $3, "lab_irq_port" }
		END { print "? uni_stream_poll lab_port_read"; print "? uni_stream_poll lab_port_write" }' \
		>"$T/indirect"
	"$SRC/lab/callgraph.py" --require "$SRC/lab/graphs/$2.edges" --indirect "$T/indirect" "$1" \
		>"$T/graph"
}

# From inside and from outside at the same time.
both() { # STREAM-TARGET SECONDS [HZ OUTSIDE-HZ]
	timeout 120 "$U" record "$target" -e "$elf" -q -F "${4:-150}" -d "$2" --watch lab_truth \
		-o "$T/out.uniscope" --overwrite &
	outside=$!
	timeout 120 "$U" record "$1" -e "$elf" -F "${3:-1000}" -d "$2" -o "$T/in.uniscope" --overwrite
	status=$?
	wait "$outside" || return 1
	return $status
}

judge() { # SESSION WITH-BOOKS MIN-SAMPLES [JUDGE-OPTION...]
	session=$1 with=$2 least=$3
	shift 3
	python3 "$here/judge.py" --stacks "$T/$session.json" --session "$with" --streams "$T/$session.uniscope" \
		--graph "$T/graph" --min-samples "$least" "$@"
}

outside_books() {
	"$U" export --no-inline "$T/out.uniscope" --all-time -f json -o "$T/out.json" && judge out "$T/out.uniscope" 100
}

inside_books() {
	"$U" export --no-inline "$T/in.uniscope" --all-time -f json -o "$T/in.json" &&
		python3 "$here/inside_books.py" "$T" && judge in "$T/books.json" "${1:-500}" --uneven
}

# A guest whose clock is its instructions: no tick is late, whatever else this machine does, and each
# sample is an observation of its own. One tick of ten, by chance: a round is not in step with them.
# A slow machine takes longer for so many.
by_instructions() {
	for seconds in $brief 10 20 40 80; do
		both "$by_unix" "$seconds" 2000 20 || return 1
		inside_books "$least" >"$T/verdict"
		[ $? -eq 3 ] || break
	done
	cat "$T/verdict"
	grep -q '^verdict: held' "$T/verdict"
}

# For as long as it takes, on a busy machine, until there is enough for a judgement; the checks that
# follow tell whether it holds.
at_once() { # STREAM-TARGET
	for seconds in 8 20 50; do
		both "$1" "$seconds" || return 1
		inside_books && outside_books
		[ $? -eq 3 ] || break
	done
	return 0
}

top_shows() {
	for seconds in 2 8 30; do
		"$U" top "$by_unix" -e "$elf" --batch -d "$seconds" | grep burn_a && return 0
	done
	return 1
}

outputs() {
	"$U" report "$T/in.uniscope" >"$T/report" && grep -q 'burn_a' "$T/report" &&
		grep -q 'made by the guest itself' "$T/report" &&
		grep -q 'guest cost .* us per sample in the guest' "$T/report" &&
		grep -q '3 of the vCPUs had no timer ticks' "$T/report" &&
		grep -q '^serving *[0-9]*[1-9.][0-9.]* % of one CPU of the guest' "$T/report" || {
		cat "$T/report"
		return 1
	}
	"$U" export "$T/in.uniscope" --no-inline --all "$T/all" &&
		grep -q ';recurse;recurse;burn_d ' "$T"/all/*.folded &&
		"$U" report --html "$T/in.html" "$T/in.uniscope" && [ -s "$T/in.html" ] &&
		babeltrace2 "$T/in.uniscope" >"$T/ctf" && [ -s "$T/ctf" ]
}

refused_by() { # STATUS WORDS COMMAND...
	status=$1 words=$2
	shift 2
	timeout 60 "$@" 2>"$T/said" >/dev/null
	refused $? "$T/said" "$status" "$words"
}

some_samples() { # TARGET OPTION...
	to=$1
	shift
	for seconds_ in 0.7 7 30; do
		timeout 120 "$U" record "$to" -e "$elf" -F 200 -d $seconds_ -o "$T/in.uniscope" --overwrite "$@" ||
			return 1
		[ -z "$("$U" export --no-inline "$T/in.uniscope" -f folded -o -)" ] || return 0
	done
	return 1
}

# The address at which QEMU listens.
tcp_of() {
	python3 "$here/qmp.py" "$T/qmp" query-chardev '{}' |
		sed -n 's/.*tcp:127\.0\.0\.1:\([0-9]*\),.*/stream:tcp=127.0.0.1:\1/p' | head -1
}

# Calls, and that they are restored: the guest patches itself.
traced() {
	timeout 200 "$U" trace record "$by_unix" -e "$elf" -d 0.5 --filter 'burn_*' --args 'burn_b(1:s)' \
		-o "$T/t.uniscope" --overwrite &&
		babeltrace2 "$T/t.uniscope" >"$T/ctf" && grep -q 'entry:' "$T/ctf" &&
		"$U" trace report "$T/t.uniscope" | grep -q burn_a &&
		timeout 200 "$U" trace start "$by_unix" -e "$elf" --filter 'burn_*' --mode lite &&
		in_all timeout 200 "$U" trace dump "$by_unix" -e "$elf" -o "$T/d.uniscope" --overwrite &&
		timeout 200 "$U" trace stop "$by_unix" -e "$elf" 2>"$T/stop" &&
		timeout 200 "$U" trace stop "$by_unix" -e "$elf" 2>"$T/again" &&
		grep -q ': [1-9][0-9]* places have their old code again' "$T/stop" &&
		grep -q ': 0 places have their old code again' "$T/again"
}

# A client that asks, does not read and goes away leaves a port that works.
stalled() {
	python3 "$here/stream_stall.py" "$port" "$(nm "$elf" | sed -n 's/ . uni_trace_head$//p')" &&
		some_samples "$by_unix"
}

# Ends by itself, says why if it failed; what it wrote can be read; the guest answers the next.
bad_line() { # HOW N
	rm -f "$T/proxy"
	python3 "$here/stream_proxy.py" "$T/proxy" "$port" "$1" "$2" &
	proxy=$!
	wait_for 60 [ -S "$T/proxy" ] || return 1
	rm -rf "$T/bad.uniscope"
	timeout 100 "$U" record "stream:unix=$T/proxy" -e "$elf" -F 200 -d 0.5 -o "$T/bad.uniscope" \
		2>"$T/said"
	status=$?
	kill "$proxy" 2>/dev/null
	wait "$proxy" 2>/dev/null
	cat "$T/said"
	[ "$status" -le 1 ] && [ -s "$T/said" ] || return 1
	[ "$status" -ne 0 ] || "$U" report "$T/bad.uniscope" >/dev/null || return 1
	some_samples "$by_unix"
}

# Cut while samples come: it ends by itself, with what there is.
cut_in_between() {
	rm -rf "$T/proxy" "$T/bad.uniscope"
	python3 "$here/stream_proxy.py" "$T/proxy" "$port" lose 1000000000 &
	proxy=$!
	wait_for 60 [ -S "$T/proxy" ] || return 1
	timeout 100 "$U" record "stream:unix=$T/proxy" -e "$elf" -F 200 -d 0 -o "$T/bad.uniscope" 2>"$T/said" &
	recorder=$!
	wait_for 60 [ -s "$T/bad.uniscope/guest-0/samples-vcpu0" ]
	kill -9 "$proxy"
	wait "$proxy" 2>/dev/null
	wait $recorder
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && grep '"state": *"closed"' "$T/bad.uniscope/session.json" &&
		"$U" report "$T/bad.uniscope" | grep burn_a && some_samples "$by_unix"
}

# A line that takes seconds for what the guest writes in a blink: it ends, with some of it.
traced_slowly() {
	rm -f "$T/proxy"
	python3 "$here/stream_proxy.py" "$T/proxy" "$port" slow 400 &
	proxy=$!
	wait_for 60 [ -S "$T/proxy" ] || return 1
	timeout 100 "$U" trace record "stream:unix=$T/proxy" -e "$elf" -d 1 --filter 'burn_*' \
		-o "$T/t.uniscope" --overwrite && babeltrace2 "$T/t.uniscope" >"$T/ctf"
	status=$?
	kill "$proxy" 2>/dev/null
	wait "$proxy" 2>/dev/null
	[ "$status" -eq 0 ] && grep -q 'entry:' "$T/ctf"
}

# A terminal, which at first echoes, and waits for whole lines. One after the other may have it, and
# each leaves it as it was.
by_tty() {
	rm -f "$T/tty"
	python3 "$here/stream_proxy.py" "$T/tty" "$port" tty 0 &
	proxy=$!
	wait_for 60 [ -c "$T/tty" ] || return 1
	stty -g -F "$T/tty" >"$T/stty" &&
		some_samples "stream:tty=$T/tty" &&
		"$U" report "$T/in.uniscope" | grep -q burn_a &&
		some_samples "stream:tty=$T/tty,baud=57600" &&
		stty -g -F "$T/tty" | cmp - "$T/stty"
	status=$?
	kill "$proxy" 2>/dev/null
	wait "$proxy" 2>/dev/null
	return $status
}

check 'the graph of what may call what' graph "$shares" shares
qemu_args='-icount shift=0'
check 'by instructions: starts' boot_port tcg "$shares" 'tick=20000 port=1'
# Fewer observations, in less time, give wider bounds.
least=3000 brief=
[ -n "${UNISCOPE_ALL-}" ] || least=1000 brief=4
check "by instructions: shares to a point, $least observations" by_instructions
check 'report, exports, page, babeltrace2' outputs
qemu_args=

# A ring that is read in a moment.
check 'tcg: starts' boot_port tcg "$shares" 'tick=1000 port=1 ring=256'
if [ -n "${UNISCOPE_ALL-}" ]; then # by instructions is the same, and sharper; but what is outside is not judged there
	check 'unix socket: from inside and outside at once' at_once "$by_unix"
	check 'unix socket: shares, as the guest has them' inside_books
	check 'unix socket: from outside just so' outside_books
fi
check 'top' top_shows
check 'trace record, start, dump, stop' traced
check 'stacks: there is nothing to read' refused_by 1 'neither registers nor memory' \
	"$U" stacks "$by_unix" -e "$elf"
check '--watch: nor here' refused_by 1 'memory of .* cannot be read' \
	"$U" record "$by_unix" -e "$elf" --watch lab_truth -o "$T/n.uniscope"
check '--threads: nor here' refused_by 1 'only vCPUs are seen' \
	"$U" record "$by_unix" -e "$elf" --threads -o "$T/n.uniscope"
check '--method pause: nor here' refused_by 1 'the guest samples itself' \
	"$U" record "$by_unix" -e "$elf" --method pause -o "$T/n.uniscope"
check 'another image' refused_by 1 'build-id' \
	"$U" record "$by_unix" -e "$calls1" -o "$T/n.uniscope"
check 'nobody there' refused_by 1 'cannot connect' \
	"$U" record "stream:unix=$T/nobody" -e "$elf" -o "$T/n.uniscope"
check 'not a way' refused_by 2 'unix=PATH, tcp=HOST:PORT, tty=DEVICE or grant=DOMID' \
	"$U" record stream:baud=9600 -e "$elf" -o "$T/n.uniscope"
check 'a terminal' by_tty
check 'no terminal' refused_by 2 'is no terminal device' \
	"$U" record stream:tty=/dev/null -e "$elf" -o "$T/n.uniscope"

# A host that waits for a missing answer waits for seconds. So each bad line has a guest of its own, beside the others, which rests.
beside() ( # NAME APPEND COMMAND...
	T=$T/$1
	port=$T/port by_unix=stream:unix=$T/port append_=$2
	shift 2
	trap end_guest EXIT
	mkdir "$T" && boot_port tcg "$shares" "$append_" >"$T/out" 2>&1 && "$@" >>"$T/out" 2>&1 && beats >>"$T/out" 2>&1 &&
		: >"$T/good"
)
was_good() { # NAME
	cat "$T/$1/out"
	[ -e "$T/$1/good" ]
}
ignores() {
	refused_by 1 'no answer' "$U" record "$by_unix" -e "$elf" -o "$T/n.uniscope"
}
end_guest
# unit gueststream_line has all kinds, without a guest
lines=$(by_default noise-50 'cut-30 cut-2000 hush-1500 garble-700 lose-900 slow-64 noise-50')
jobs=
for bad in $lines; do
	beside "$bad" 'tick=1000 port=1 rest=20' bad_line "${bad%-*}" "${bad#*-}" &
	jobs="$jobs $!"
done
if [ -n "${UNISCOPE_ALL-}" ]; then
	beside traced 'tick=1000 port=1 rest=20' traced_slowly &
	jobs="$jobs $!"
fi
beside off 'tick=1000 rest=20' ignores &
# shellcheck disable=SC2086 # numbers
wait $jobs $!
for bad in $lines; do
	check "a bad line: $bad; the guest runs on" was_good "$bad"
done
in_all check 'a slow line: trace record ends, with events; the guest runs on' was_good traced
check 'off: the guest ignores the port, and runs on' was_good off

check 'a busy guest: starts' boot_port tcg "$shares" 'tick=1000 port=1'
check 'a line that is cut in between: what there is, and exit 0' cut_in_between
check 'a host that reads nothing' stalled
check 'the guest runs on' beats

# The same bytes as by the unix socket, whose samples are judged above.
in_all check 'tcp: starts' boot_port tcg "$shares" 'tick=1000 port=1' host=127.0.0.1,port=0
in_all check 'tcp: samples' some_samples "$(tcp_of)"
in_all check 'tcp: they are of the guest' sh -c '"$1" report "$2" | grep burn_a' sh "$U" "$T/in.uniscope"

echo 61206b6579206f6620746865206c6162 >"$T/key"
echo 61206b6579206f6620746865206c6163 >"$T/wrong"
echo 'no key' >"$T/none"
check 'a key: starts' boot_port tcg "$calls1" 'tick=1000 port=1 key=1 patch=0 mix=1'
check 'a key: needed' refused_by 1 'wants a key' \
	"$U" record "$by_unix" -e "$elf" -o "$T/n.uniscope"
check 'a key: another' refused_by 1 'another key' \
	"$U" record "$by_unix,key=$T/wrong" -e "$elf" -o "$T/n.uniscope"
check 'a key: none in the file' refused_by 1 'holds no key' \
	"$U" record "$by_unix,key=$T/none" -e "$elf" -o "$T/n.uniscope"
check 'a key: this one' some_samples "$by_unix,key=$T/key"
check 'calls1 samples itself' sh -c '"$1" report "$2" | grep -q function_3' sh "$U" "$T/in.uniscope"
check 'a guest that does not patch itself' refused_by 1 'cannot patch its own code' \
	"$U" trace record "$by_unix,key=$T/key" -e "$elf" -o "$T/n.uniscope"

# Each thread's samples are its own: what one does is below no other.
by_thread() {
	some_samples "$by_unix" -F 2000 -d 3 && "$U" export --no-inline --per-thread -f folded "$T/in.uniscope" >"$T/threads" || return 1
	for f in cruncher_a_main cruncher_b_main consumer_main; do
		grep ";$f;" "$T/threads" | sed 's/;.*//' | sort -u >"$T/$f"
		if [ "$(grep -c '^thread 0x' "$T/$f")" -ne 1 ] || [ "$(wc -l <"$T/$f")" -ne 1 ]; then
			cat "$T/threads"
			return 1
		fi
	done
	[ "$(cat "$T/cruncher_a_main" "$T/cruncher_b_main" "$T/consumer_main" | sort -u | wc -l)" -eq 3 ]
}

threads=$BUILD/lab/trace/trace-threads-$cc-fp.elf
# Its switches are recorded as well: seldom, or samples find them in their way.
qemu_args='-icount shift=0'
check 'threads: starts' boot_port tcg "$threads" 'tick=20000 port=1 unit=50000'
check 'threads: which one ran' by_thread
qemu_args=

# A program that the guest has loaded, beside its kernel: at the addresses that it is linked for, or at others that the samples tell.
boot_loads() { # PROGRAM
	boot_port tcg "$BUILD/lab/trace/trace-loads-$cc-fp.elf" 'tick=20000 port=1' "path=$port" "$1" &&
		wait_for 60 grep -q 'program at' "$T/serial"
}

program_named() { # PROGRAM
	for seconds in $brief 3 10 30; do
		timeout 120 "$U" record "$by_unix" -e "$elf" -e "$1" -F 2000 -d $seconds -o "$T/in.uniscope" --overwrite \
			2>"$T/said" && "$U" export --no-inline -f folded "$T/in.uniscope" -o "$T/folded" || return 1
		[ "$(awk '{ n += $NF } END { print n + 0 }' "$T/folded")" -lt $least ] || break
		retry "fewer than $least samples in $seconds s"
	done
	cat "$T/said" "$T/folded"
	grep -q 'behind no call' "$T/said" && return 1
	python3 - "$T/in.uniscope/session.json" "$T/folded" "$T/serial" <<'P'
import json, re, sys
session, folded, serial = sys.argv[1:]
images = json.load(open(session))["guests"][0]["images"]
said = re.search("program at ([0-9a-f]+)", open(serial).read()).group(1)
assert [int(i["bias"], 16) for i in images] == [0, int(said, 16)], (images, said)
assert "loads-" in images[0]["path"] and "program-" in images[1]["path"], images
below = "lab_entry;kmain;run_app;app_main;call_program;program_start;program_outer;program_inner"
burns = {f"{below};program_burn": 0, f"{below};service_work;service_burn": 0}
total = 0
for line in open(folded):
    names, weight = line.rsplit(" ", 1)
    total += int(weight)
    if names in burns:
        burns[names] += int(weight)
known = sum(burns.values())
share = burns[f"{below};program_burn"] / known
print(f"{known} of {total}, {share:.3f} of them in the program")
# Four standard errors. Up to a twentieth is elsewhere, or came before the program was found.
assert known >= 0.95 * total and abs(share - 0.6) < 4 * (0.24 / known) ** 0.5 + 0.005
P
}

# Another build is at no address of this one, or not at the one that it is linked for.
program_refuted() { # PROGRAM
	timeout 120 "$U" record "$by_unix" -e "$elf" -e "$1" -F 2000 -d 3 -o "$T/in.uniscope" --overwrite 2>"$T/said" ||
		return 1
	cat "$T/said"
	grep -q "$1: the samples do not tell where it runs" "$T/said" &&
		"$U" export --no-inline -f folded "$T/in.uniscope" -o - | grep -q ';call_program;0x'
}

# The same places without the calls.
program_doubted() { # PROGRAM
	objcopy -O binary -j .text "$1" "$T/text" && tr '\000-\377' '\220' <"$T/text" >"$T/nops" &&
		objcopy --update-section ".text=$T/nops" "$1" "$T/other.elf" || return 1
	timeout 120 "$U" record "$by_unix" -e "$elf" -e "$T/other.elf" -F 2000 -d 3 -o "$T/in.uniscope" --overwrite 2>"$T/said" ||
		return 1
	cat "$T/said"
	grep -q "other.elf: [0-9]* of [0-9]* return addresses in it are behind no call" "$T/said"
}

programs_refused() {
	refused_by 1 'give each program with -e' "$U" record "$by_unix" -e "$elf" --sysroot "$T" -o "$T/n.uniscope" &&
		refused_by 2 'is the kernel' "$U" record "$by_unix" -e "$1" -e "$elf" -o "$T/n.uniscope"
}

qemu_args='-icount shift=0'
least=2000 brief=
[ -n "${UNISCOPE_ALL-}" ] || least=400 brief=1.5
program=$BUILD/lab/program-$cc-fp.elf
check 'a program: starts' boot_loads "$program"
check 'a program: it is found by the samples, with its shares' program_named "$program"
in_all check 'a program: another build is not' program_refuted "$BUILD/lab/program-$cc-nofp.elf"
check 'a program: a folder, and the kernel as program' programs_refused "$program"
if [ -n "${UNISCOPE_ALL-}" ] && [ -e "$BUILD/lab/program-fixed-gcc-fp.elf" ]; then # unit placer: the same
	check 'a program with fixed addresses: starts' boot_loads "$BUILD/lab/program-fixed-gcc-fp.elf"
	check 'a program with fixed addresses: its names and shares' program_named "$BUILD/lab/program-fixed-gcc-fp.elf"
	check 'a program with fixed addresses: other code there is told' program_doubted "$BUILD/lab/program-fixed-gcc-fp.elf"
fi
qemu_args=

# Each vCPU samples itself. The first vCPU also serves the port, so it may have less time of its own. Chains of the others end at
# their root as well.
boot_two() {
	rm -f "$port" "$T/qmp"
	boot tcg "$BUILD/lab/trace/trace-smp-$cc-fp.elf" 'inner=20 tick=1000 port=1' --smp 2 \
		--qmp "$T/qmp" --port "path=$port" && wait_for 120 grep -q '^smp: 2 vCPUs' "$T/serial"
}

by_vcpu() {
	for seconds in 3 10 30; do
		some_samples "$by_unix" -F 1000 -d "$seconds" &&
			"$U" export --no-inline --per-vcpu -f folded "$T/in.uniscope" >"$T/vcpus" || return 1
		awk '/^vcpu 0;.*;cpu0_work;cpu0_(hot|warm)[; ]/ { first += $NF }
			/^vcpu 1;lab_ap_entry;lab_ap_main;ap_work;cpu1_work;cpu1_hot[; ]/ { second += $NF }
			/^vcpu 0;.*cpu1_|^vcpu 1;.*cpu0_|^vcpu [2-9]/ { astray += $NF }
			{ all += $NF }
			END { exit astray ? 2 : !(first > all / 20 && second > all * 2 / 5 &&
				first + second > all * 9 / 10) }' "$T/vcpus"
		status=$?
		[ $status -ne 2 ] || break # more samples forgive no wrong vCPU
		[ $status -eq 0 ] && "$U" report "$T/in.uniscope" | grep -q '2 of the vCPUs had no timer ticks' && return 0
	done
	cat "$T/vcpus"
	return 1
}

in_all check 'two vCPUs: starts' boot_two
in_all check 'two vCPUs: each samples itself' by_vcpu

case $accels${UNISCOPE_ALL-} in
*kvm1)
	check 'kvm: starts' boot_port kvm "$shares" 'tick=100 port=1'
	check 'kvm: samples' some_samples "$by_unix"
	;;
esac
end_guest
finish
