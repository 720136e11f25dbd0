#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# core.sh UNISCOPE BUILD SRCROOT: a guest was stopped, dumped and killed. Each kind of file shows the stacks that it had. Damaged
# files and files of other kinds are told apart. TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
elf=$(image smp)

qmp() { python3 "$SRC/tests/e2e/qmp.py" "$T/q" "$@"; }
dump() { # NAME PAGING [FORMAT]
	qmp dump-guest-memory "{\"paging\": $2, \"protocol\": \"file:$T/$1\"${3:+, \"format\": \"$3\"}}"
}

# Stops it, and writes how it looks; not where a vCPU is between two turns of its work.
stop_in_work() { # STACKS-OPTION...
	for _ in $(seq 100); do
		sleep 0.1
		qmp stop '{}' || return 1
		"$U" stacks --no-inline "$@" --json "gdb:unix=$T/gdb" -e "$elf" >"$T/live" || return 1
		python3 -c 'import json, sys
sys.exit(any(len(v["frames"]) < 4 for v in json.load(open(sys.argv[1]))["stacks"]))' "$T/live" && return
		qmp cont '{}' || return 1
	done
	return 1
}

# A stopped guest, how it looks now, and all its files; then it is killed.
make_files() { # ACCEL
	boot "$1" "$elf" "" --smp 2 --qmp "$T/q" --gdb "unix:$T/gdb,server=on,wait=off" || return 1
	stop_in_work || return 1
	dump blocks.core false && dump paged.core true && dump kdump.core false kdump-zlib &&
		qmp human-monitor-command '{"command-line": "info registers -a"}' >"$T/regs" &&
		qmp pmemsave "{\"val\": 0, \"size\": 67108864, \"filename\": \"$T/raw\"}" || return 1
	end_guest
}

# The same frames with the same names, of two vCPUs that ran.
same() { # TARGET
	"$U" stacks --no-inline --json "$1" -e "$elf" >"$T/dead" || return 1
	python3 - "$T/live" "$T/dead" <<'P'
import json, sys
live, dead = (json.load(open(f))["stacks"] for f in sys.argv[1:])
print(live, dead)
names = [[f["name"] for f in v["frames"]] for v in live]
assert len(names) == 2 and names[0][-1] == "lab_entry" and names[1][-1] == "lab_ap_entry", names
assert all(len(n) > 3 for n in names), names
assert [v["stop"] for v in dead] == ["root"] * 2
assert [v["frames"] for v in live] == [v["frames"] for v in dead]
P
}

# aarch64: a dump holds no system registers, and RAM begins at 1 GiB.
make_a64_files() {
	boot tcg "$elf" "" --smp 2 --qmp "$T/q" --gdb "unix:$T/gdb,server=on,wait=off" || return 1
	stop_in_work --registers || return 1
	tables=$(python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))["stacks"][0]["registers"]
print(",".join("%s=%s" % (k, r[k]) for k in ("ttbr0", "ttbr1", "tcr")))' "$T/live") || return 1
	dump a64.core false &&
		qmp human-monitor-command '{"command-line": "info registers -a"}' >"$T/info" &&
		qmp pmemsave "{\"val\": 1073741824, \"size\": 67108864, \"filename\": \"$T/raw\"}" || return 1
	# Each vCPU's, with what gdb would print of the others.
	python3 - "$T/info" "$tables" <<'P' >"$T/regs"
import json, sys
text = open(sys.argv[1]).read()
try:
    text = json.loads(text)
except ValueError:
    pass
if isinstance(text, dict):
    text = text["return"]
more = "\n" + sys.argv[2].replace(",", "\n").replace("=", "_el1 ") + "\n"
print(more.join(("\n" + text).split("\nCPU#")[:1]) + "".join(
    "\nCPU#" + part + more for part in ("\n" + text).split("\nCPU#")[1:]))
P
	end_guest
}

recorded() { # one sample of each vCPU
	"$U" record -q "core:file=$T/blocks.core" -e "$elf" --watch lab_truth -o "$T/s.uniscope" &&
		"$U" report --no-inline --all-time --json "$T/s.uniscope" >"$T/r.json" &&
		python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(r["total"])
sys.exit(r["total"] != 2)' "$T/r.json" &&
		grep -q '"first"' "$T/s.uniscope/session.json"
}

refused_file() { # FILE WANTED-STATUS WORDS
	"$U" stacks "core:file=$1" -e "$elf" >/dev/null 2>"$T/err"
	refused $? "$T/err" "$2" "$3"
}

cut_off() {
	size=$(stat -c %s "$T/blocks.core")
	head -c $((size - 20000000)) "$T/blocks.core" >"$T/cut.core"
	same "core:file=$T/cut.core" 2>"$T/err" || return 1
	cat "$T/err"
	# 65600 KiB less 20000000 bytes: 19532 KiB and some are missing.
	grep -q 'the file is cut off: 1953[0-9] KiB of them are missing' "$T/err" || return 1
	head -c 1500000 "$T/blocks.core" >"$T/cut.core"
	refused_file "$T/cut.core" 1 'nothing mapped where'
}

# Linux' core of a process: the code is not in it, and the process ran at a random address.
process_core() {
	(cd "$T" && ulimit -c unlimited && rm -f core core.* && exec "$BUILD/tests/e2e/crasher") 2>/dev/null
	set -- "$T"/core*
	[ -s "$1" ] || { echo 'it left no core'; return 1; }
	libc=$(ldd "$BUILD/tests/e2e/crasher" | sed -n 's/.*libc[^ ]* => \([^ ]*\).*/\1/p')
	"$U" stacks "core:file=$1" -e "$BUILD/tests/e2e/crasher" --sysroot "$libc" >"$T/out" 2>"$T/err"
	status=$?
	cat "$T/err" "$T/out"
	# The same with another build-id: nothing tells where it would be.
	python3 - "$BUILD/tests/e2e/crasher" "$T/rebuilt" <<'P'
import struct, sys
elf = bytearray(open(sys.argv[1], "rb").read())
elf[elf.index(struct.pack("<III4s", 4, 20, 3, b"GNU")) + 16] ^= 0xff
open(sys.argv[2], "wb").write(elf)
P
	! "$U" stacks "core:file=$1" -e "$T/rebuilt" 2>"$T/err2" >&2 &&
		grep 'rebuilt is another build than what runs there, or is not there: none of [1-9][0-9]* files* with a build-id' "$T/err2" ||
		{ cat "$T/err2"; return 1; }
	[ $status -eq 0 ] && grep -q 'process core' "$T/err" &&
		tr '\n' ' ' <"$T/out" | grep -q 'abort+.*crash_inner+.*crash_inner+.*crash_inner+.*crash_inner+.*crash_outer+.* main+'
}

for accel in $accels; do
	check "$accel: a guest is stopped and dumped" make_files "$accel"
	check "$accel: QEMU's dump shows the live stacks" same "core:file=$T/blocks.core"
	check "$accel: and one made with paging" same "core:file=$T/paged.core"
	check "$accel: and raw memory with registers" same "core:raw=$T/raw,regs=$T/regs"
done
check 'a recording of a dead guest is one sample a vCPU' recorded
check 'a dump that is cut off is read as far as it goes' cut_off
check 'a kdump-compressed dump is refused' refused_file "$T/kdump.core" 1 'dump the guest again as ELF'
case $(cat /proc/sys/kernel/core_pattern) in
core*) check "a process's core, of a moved program and its library" process_core ;;
*) skip "a process's core" 'the kernel does not leave cores where we are (kernel.core_pattern)' ;;
esac
check 'an image is no core' refused_file "$elf" 1 'goes to -e'
# Last: these are other files, and another live guest.
a64=$(ls "$BUILD"/lab/aarch64/smp-*-fp.elf 2>/dev/null | head -1)
if command -v qemu-system-aarch64 >/dev/null && [ -n "$a64" ]; then
	elf=$a64
	check 'aarch64: a guest is stopped and dumped' make_a64_files
	check 'aarch64: the dump, with its page tables, shows the live stacks' same "core:file=$T/a64.core,$tables"
	check 'aarch64: and raw memory with registers' same "core:raw=$T/raw,base=0x40000000,regs=$T/regs"
	check 'aarch64: without page tables it says what to do' refused_file "$T/a64.core" 1 ',ttbr0=ADDRESS'
fi
finish
