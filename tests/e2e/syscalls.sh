#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# syscalls.sh UNISCOPE BUILD SRCROOT: the guest `syscalls` counts the system calls that it answers, and the tracepoints that it
# records in Unikraft's layout. Our tracer's log has all of the calls. The tracepoints, read out of its memory, are all there. This
# holds for x86_64 guests and one of aarch64. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
judge="$SRC/tests/e2e/syscalls_judge.py"

# The same functions, called as Nanos calls them.
named_as_nanos() {
	words=
	for c in open read write writev lseek mmap socket; do
		words="$words --redefine-sym uk_syscall_r_$c=$c"
	done
	# shellcheck disable=SC2086 # words
	objcopy $words --redefine-sym __uk_syscall_r_close=close --redefine-sym uk_syscall_e_close=helper \
		--add-symbol register_file_syscalls=.text:0,function,global \
		--add-symbol register_net_syscalls=.text:0,function,global "$elf" "$T/nanos.elf" || return 1
	elf=$T/nanos.elf
	logged_by
}

# Into truth.uniscope, what the guest counted.
watch() {
	timeout 60 "$U" record "$target" -e "$elf" -q -F 20 -d 0.3 --watch lab_traced \
		-o "$T/truth.uniscope" --overwrite
}

# While it is recorded: whole lines, for what reads them is no terminal.
all_told() {
	[ "$(wc -l <"$T/log")" -eq $((11 * rounds)) ] && [ -z "$(tail -c 1 "$T/log")" ]
}

# From before the guest's first call to after its last.
logged_by() {
	rm -f "$T/said"
	"$U" trace syscalls "$target" --image "$elf" -d 0 --save "$T/s.uniscope" >"$T/log" \
		2>"$T/said" &
	recorder=$!
	if ! wait_for 60 grep -q 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said"; then
		kill "$recorder"
		cat "$T/said"
		return 1
	fi
	go_on '^syscalls: '
	wait_for 60 all_told || { tail -3 "$T/log"; kill "$recorder"; return 1; }
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
}

logged() {
	logged_by && watch && "$U" trace syscalls "$T/s.uniscope" --json -o "$T/calls.json" &&
		python3 "$judge" calls "$T/truth.uniscope" "$T/calls.json"
}

in_lines() { # what was printed then is what the session says, and as strace would have it
	"$U" trace syscalls "$T/s.uniscope" >"$T/again" && cmp "$T/log" "$T/again" || return 1
	grep -qxF 'open("/nonexistent", O_RDONLY)          = -1 ENOENT (No such file or directory)' "$T/log" &&
		grep -qxF 'close(4)                                = -1 EBADF (Bad file descriptor)' "$T/log" &&
		grep -qxF 'open("/data/file", O_RDWR|O_CREAT, 0644) = 3' "$T/log" &&
		! grep -v -q '^[a-z]*(.*) *= ' "$T/log"
}

chosen() { # EXPRESSION WANTED-NAMES
	"$U" trace syscalls "$T/s.uniscope" --expr "$1" | sed 's/(.*//' | sort -u | tr '\n' ' ' >"$T/names"
	[ "$(cat "$T/names")" = "${2:+$2 }" ] || { cat "$T/names"; return 1; }
}

summed() {
	"$U" trace syscalls "$T/s.uniscope" -c -S calls >"$T/table" &&
		grep -qE "^ *[0-9.]+ +[0-9.]+ +[0-9]+ +$((2 * rounds)) +$rounds open\$" "$T/table" &&
		grep -qE " +$((11 * rounds)) +$((3 * rounds)) total\$" "$T/table" || { cat "$T/table"; return 1; }
}

points() {
	"$U" uk-trace list "$target" -e "$elf" --json >"$T/points.json" 2>"$T/said" &&
		python3 "$judge" points "$T/truth.uniscope" "$T/points.json"
}

fetched() { # saved, listed from the file, and as CTF
	rm -rf "$T/ctf"
	"$U" uk-trace fetch --verbose "$elf" -t "$target" -o "$T/trace" 2>"$T/said" &&
		grep -q '^uniscope: fetched [0-9]* bytes of [0-9]*, [0-9]* records of [0-9]* tracepoints into ' "$T/said" &&
		"$U" uk-trace list "$T/trace" --json >"$T/again.json" 2>>"$T/said" &&
		cmp "$T/points.json" "$T/again.json" &&
		"$U" uk-trace ctf "$T/trace" -o "$T/ctf" 2>>"$T/said" &&
		python3 "$judge" ctf "$T/ctf" "$T/points.json" || { cat "$T/said"; return 1; }
}

theirs() { # Python reads what was fetched, and what Unikraft's own fetch makes of it is read as well
	python3 -c 'import pickle, sys
with open(sys.argv[1], "rb") as f:
    pairs, width, defs, data = (pickle.load(f) for _ in range(4))
assert pairs["format_version"] in ("0", "1") and width == 8 and defs and data, (pairs, width)
with open(sys.argv[2], "wb") as f: # objcopy has left out the definitions
    for thing in ({"format_version": "1"}, sys.argv[3], width, b"", data):
        pickle.dump(thing, f)' "$T/trace" "$T/theirs" "$elf" &&
		"$U" uk-trace list "$T/theirs" --json >"$T/again.json" && cmp "$T/points.json" "$T/again.json"
}

exported() { # by the exporters of calls
	"$U" export "$T/trace" -f chrome -o "$T/trace.json" 2>"$T/said" &&
		python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
opens = [e for e in d.get("traceEvents", d) if e["name"] == "trace_vfs_open"]
assert len(opens) == 2 * int(sys.argv[2]) and all(e["ph"] == "X" and e["dur"] > 0 for e in opens), opens' \
			"$T/trace.json" "$rounds" &&
		"$U" export "$T/trace" -f folded | grep -q '^trace_vfs_lseek [0-9]'
}

# Calls by tracepoints: of a file, and of a guest without our tracer.
calls_of_points() { # FROM
	"$U" trace syscalls "$1" --image "$elf" -c -S calls >"$T/table" 2>"$T/said" &&
		grep -qE " +$((2 * rounds)) +$rounds open\$" "$T/table" &&
		grep -qE " +$rounds +lseek\$" "$T/table" || { cat "$T/said" "$T/table"; return 1; }
}

dead() {
	end_state=$(python3 "$SRC/tests/e2e/qmp.py" "$T/qmp" stop '{}' dump-guest-memory \
		"{\"paging\": false, \"protocol\": \"file:$T/core\"}") || { echo "$end_state"; return 1; }
	end_guest
	target="core:file=$T/core"
	points
}

# Without our tracer: stopped at each call, as many and with the same arguments as our tracer's log of another run has.
stopped_at() {
	sed 's/) *= .*/)/; s/(3, 0xf.*, 2/(3, VECTOR, 2/' "$T/log" >"$T/wanted"
	rm -f "$T/said"
	"$U" trace syscalls "$target" --image "$elf" --stops -d 0 >"$T/stops" 2>"$T/said" &
	recorder=$!
	wait_for 60 grep -q 'a breakpoint' "$T/said" && go_on '^syscalls: ' || { kill "$recorder"; cat "$T/said"; return 1; }
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	grep -q "$((11 * rounds)) system calls; the guest stood" "$T/said" || { cat "$T/said"; return 1; }
	! grep -v ') *= ?$' "$T/stops" && sed 's/) *= ?$/)/; s/(3, 0xf.*, 2/(3, VECTOR, 2/' "$T/stops" | diff "$T/wanted" -
}

rounds=40
for accel in $accels; do
	for cc in $compilers; do
		img=$BUILD/lab/trace/trace-syscalls-$cc-fp.elf
		[ -e "$img" ] || continue
		check "$accel, $cc: starts" boot_waiting "$accel" 1 "$img" "rounds=$rounds ring=1024"
		check "$accel, $cc: every system call, with what it was given and returned" logged
		check "$accel, $cc: lines as strace's" in_lines
		check "$accel, $cc: -c" summed
		check "$accel, $cc: tracepoints in the running guest" points
	done
	check "$accel: -e by class" chosen trace=%network socket
	check "$accel: -e by name and class" chosen '%memory,lseek' 'lseek mmap'
	check "$accel: -e but not" chosen '!%desc,socket' ''
	check "$accel: -Z" chosen status=failed 'close open socket'
	check "$accel: fetched into a file, and as CTF" fetched
	check "$accel: as Python has it" theirs
	check "$accel: exported as calls" exported
	check "$accel: system calls of a trace file" calls_of_points "$T/trace"
done

img=$BUILD/lab/trace/trace-syscalls-gcc-fp.elf
[ -e "$img" ] || img=$BUILD/lab/trace/trace-syscalls-clang-fp.elf
check "as Nanos: starts" boot_waiting tcg 1 "$img" "rounds=$rounds ring=1024"
check "as Nanos: every system call" named_as_nanos
check "as Nanos: lines" grep -qxF 'close(4)                                = -1 EBADF (Bad file descriptor)' "$T/log"

img=$BUILD/lab/syscalls-gcc-fp.elf
check "stopped at each call: starts" boot_waiting tcg 1 "$img" "rounds=$rounds"
check "stopped at each call: the tracer's log" stopped_at
check "without our tracer: starts" boot_waiting tcg 1 "$img" "rounds=$rounds" --qmp "$T/qmp"
check "without our tracer: works" go_on '^syscalls: '
check "without our tracer: counted" watch
check "without our tracer: system calls by tracepoints" calls_of_points "$target"
check "a buffer that is not full is not called so" sh -c '"$1" uk-trace list "$2" -e "$3" >"$4" 2>"$4.err" && [ -s "$4" ] && ! grep -E "full|stopped tracing" "$4.err"' \
	sh "$U" "$target" "$elf" "$T/out"
check "dead, in a core file" dead
check "a full buffer: starts" boot_waiting tcg 1 "$img" "rounds=1000"
check "a full buffer: works" go_on '^syscalls: '
check "a full buffer: counted" watch
check "a full buffer: what it holds is read" points
check "a full buffer: is told" grep -q 'has stopped tracing' "$T/said"
check "no tracepoints in the image" sh -c '"$1" uk-trace list "$2" 2>&1 | grep -q "no tracepoints of Unikraft"' \
	sh "$U" "$BUILD/lab/calls1-gcc-fp.elf"

img=$BUILD/lab/aarch64/syscalls-gcc-fp.elf
if [ -e "$img" ] && command -v qemu-system-aarch64 >/dev/null; then
	check "aarch64: starts" boot_waiting tcg 1 "$img" "rounds=$rounds"
	check "aarch64: works" go_on '^syscalls: '
	check "aarch64: counted" watch
	check "aarch64: tracepoints in the running guest" points
	check "aarch64: fetched into a file, and as CTF" fetched
	check "aarch64: system calls by tracepoints" calls_of_points "$target"
else
	skip "aarch64" 'no aarch64 lab guest, or no qemu-system-aarch64'
fi
end_guest
finish
