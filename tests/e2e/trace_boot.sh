#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_boot.sh UNISCOPE BUILD SRCROOT: calls from a guest's first one on. `trace prepare --on` makes an image that records as it
# boots. The calls of functions that the boot calls once are those of lab/'s source; all of them are those of the exact mode.
# It runs the image as it was before. `trace start` waits for a guest that stands at reset. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
raw=$BUILD/lab/trace/trace-traced-gcc-fp.raw.elf
plain=$BUILD/lab/trace/trace-traced-gcc-fp.elf
[ -e "$raw" ] && [ -e "$plain" ] || absent 'no traced lab images'

# The functions of the boot, and what they call; none that waits for time or a device.
prepared() {
	"$U" trace prepare "$raw" --on lab_setup --on 'lab_[ucpm]*_init' --on 'lab_t*_init' --on lab_pvh_read --on kmain \
		--on 'traced_*' -o "$T/boot.elf" 2>"$T/said" && grep -q 'functions record from the guest' "$T/said" ||
		{ cat "$T/said"; return 1; }
	"$U" trace prepare "$T/boot.elf" -o "$T/off.elf" && cmp "$T/off.elf" "$plain"
}

booted() { # ACCEL
	boot_waiting "$1" 2 "$T/boot.elf" rounds=20 && go_on '^traced: ' &&
		timeout 60 "$U" trace dump "$target" -e "$T/boot.elf" -q -o "$T/s.uniscope" --overwrite &&
		timeout 60 "$U" trace report --json -n 0 "$T/s.uniscope" >"$T/report"
}

as_source() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
calls = {f["function"]: f["calls"] for f in r["functions"]}
once = """lab_setup lab_uart_init lab_trap_init lab_truth_init lab_pvh_read lab_program_init lab_paging_init lab_main_stack_init
    lab_cmdline_init lab_trace_init kmain""".split()
print(r["lost"], calls)
sys.exit(r["lost"] != 0 or any(calls.get(f) != 1 for f in once))' "$T/report"
}

# In `counts` each instruction has its count: that of a function's first one is the function's.
as_counted() {
	python3 -c 'import json, re, sys
ours = {f["function"]: f["calls"] for f in json.load(open(sys.argv[1]))["functions"]}
exact = dict((m[1], int(m[2])) for m in re.finditer(r"^fn=\(\d+\) (.*)\n0x[0-9a-f]+ \d+ (\d+)$", open(sys.argv[2]).read(), re.M))
wrong = {f: (n, exact.get(f)) for f, n in ours.items() if exact.get(f) != n}
print(len(ours), sum(ours.values()), wrong)
sys.exit(len(wrong) != 0 or len(ours) < 15 or ours["traced_fib"] != 41 * 20 * 2)' "$T/report" "$T/exact"
}

counted() {
	timeout 120 "$U" run --exact=counts --append rounds=20 -d 100 -o "$T/exact.uniscope" "$plain" -- -smp 2 \
		>"$T/out" 2>&1 && "$U" export -f callgrind-exact "$T/exact.uniscope" >"$T/exact" || { cat "$T/out"; return 1; }
}

# Off again, each byte is as in the image that was not switched on.
switched_off() {
	"$U" trace stop "$target" -e "$T/boot.elf" &&
		"$U" record "$target" -e "$T/boot.elf" -q -F 20 -d 0.2 --watch kmain:128 --watch traced_fib:128 -o "$T/w.uniscope" \
			--overwrite && python3 -c 'import json, subprocess, sys
for w in json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["watches"]:
    subprocess.check_call(["objcopy", "-O", "binary", "-j", ".text", sys.argv[2], sys.argv[3]])
    addr = {l.split()[2]: int(l.split()[0], 16) for l in subprocess.check_output(["nm", sys.argv[2]], text=True).splitlines() if len(l.split()) == 3}
    at = addr[w["name"]] - addr["lab_text_start"]
    assert bytes.fromhex(w["last"]["bytes"]) == open(sys.argv[3], "rb").read()[at:at + 128], w["name"]
' "$T/w.uniscope" "$plain" "$T/text"
}

# It is there before the guest runs: what it says first proves that.
at_reset() { # ACCEL
	end_guest
	rm -f "$T/gdb" "$T/qmp"
	"$SRC/lab/boot" --accel "$1" --append loop=1 --serial "file:$T/serial" --gdb "unix:$T/gdb,server=on,wait=off" \
		--qmp "$T/qmp" "$plain" -S </dev/null >"$T/boot" 2>&1 &
	guest=$!
	target=kvm:pid=$guest
	[ "$1" = tcg ] && target=gdb:unix=$T/gdb
	wait_for 60 test -S "$T/gdb" && wait_for 60 test -S "$T/qmp" || return 1
	rm -f "$T/said"
	timeout 300 "$U" trace start "$target" -e "$plain" --filter 'traced_*' 2>"$T/said" &
	starter=$!
	wait_for 60 grep -q 'waiting until the guest runs' "$T/said" || { cat "$T/said"; kill "$starter"; return 1; }
	python3 "$SRC/tests/e2e/qmp.py" "$T/qmp" cont '{}' && wait "$starter" && grep 'functions\{0,1\} at .* places\{0,1\} .* traced' "$T/said" ||
		{ cat "$T/said"; return 1; }
}

refused_by() { # STATUS WORDS COMMAND...
	status=$1 words=$2
	shift 2
	timeout 60 "$@" 2>"$T/said" >/dev/null
	refused $? "$T/said" "$status" "$words"
}

check 'an image that records as it boots; undone, it is the one without' prepared
check 'no function of that name' refused_by 1 'no function matches --on' "$U" trace prepare "$raw" --on nobody -o "$T/no.elf"
check 'the exact mode counts' counted
for accel in $accels; do
	check "$accel: boots" booted "$accel"
	check "$accel: calls as in the source" as_source
	check "$accel: calls as counted exactly" as_counted
	check "$accel: stop restores every byte" switched_off
	check "$accel: start waits for a guest that stands at reset" at_reset "$accel"
done
end_guest
finish
