#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# images.sh UNISCOPE BUILD SRCROOT: uniscope finds images in guest memory. One image moved itself as
# it booted; the guest loaded another. Chains are complete, with the names of both, and biases are
# true. TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"

variants=$(cd "$BUILD/lab" && ls deep-pie-*.elf | sed 's/^deep-pie-\(.*\)\.elf$/\1/')

# The names of vCPU 0's chain, leaf first, in one line; it must have reached its root.
chain() { # TARGET OPTION...
	"$U" stacks --no-inline --json "$@" >"$T/stacks" || return 1
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))["stacks"][0]
print(v["stop"], " ".join(f.get("name", "?") for f in v["frames"]))' "$T/stacks"
}

# Frames of down_* in turn, between the root and hot_work, and then 200 of them. A dump shows one
# moment, which may be on the way down or up; a guest is asked until it is at its work.
deep_chain() { # TARGET OPTION...
	for _ in $(seq 20); do
		chain "$@" >"$T/chain" || return 1
		cat "$T/chain"
		python3 -c 'import sys
words = open(sys.argv[1]).read().split()
names = words[:0:-1]
assert words[0] == "root" and "?" not in names, words
assert names[:4] == ["lab_entry", "kmain", "run_app", "app_main"], names[:4]
down = [n for n in names if n.startswith("down_")]
assert down == [f"down_{c}" for c in ("abc" * 67)[:len(down)]], down
assert len(down) == 200 or "hot_work" not in names
sys.exit(0 if "hot_work" in names else 3)' "$T/chain"
		status=$?
		[ $status -ne 3 ] && return $status
		case $1 in core:*) return 0 ;; esac
	done
	return 1
}

moved() { # ACCEL VARIANT
	elf=$BUILD/lab/deep-pie-$2.elf
	boot "$1" "$elf" "" --qmp "$T/q" || return 1
	deep_chain "$target" || return 1
	# Between two descents it is in app_main itself.
	for seconds in 0.4 2 8 20 80; do # a busy host steals many samples
		"$U" record "$target" -q -F 299 -d $seconds -o "$T/s.uniscope" --overwrite -e "$elf" &&
			"$U" export --no-inline -f folded "$T/s.uniscope" -o "$T/folded" || return 1
		[ "$(awk '{ n += $NF } END { print n + 0 }' "$T/folded")" -ge 50 ] && break
		retry "fewer than 50 samples of the guest in $seconds s"
	done
	head -c 300 "$T/folded"
	python3 - "$T/s.uniscope/session.json" "$T/stacks" "$elf" "$T/folded" <<'P'
import json, subprocess, sys
session, stacks, elf, folded = sys.argv[1:]
bias = int(json.load(open(session))["guests"][0]["images"][0]["bias"], 16)
symbols = {}
for line in subprocess.check_output(["nm", elf], text=True).splitlines():
    address, _, name = line.split()
    symbols[name] = int(address, 16)
for f in json.load(open(stacks))["stacks"][0]["frames"]:
    assert int(f["pc"], 16) == (symbols[f["name"]] + f["offset"] + bias) % 2**64, f
assert bias % 4096 == 0 and bias != 0
good = total = 0
for line in open(folded):
    names, weight = line.rsplit(" ", 1)
    total += int(weight)
    if names.startswith("lab_entry;kmain;run_app;app_main;down_"):
        good += int(weight)
print(good, total)
assert total >= 50 and good >= 0.9 * total
P
}

# All ways to read the registers of stopped vCPUs; kvm's own way does not stop them.
stopped() {
	for via in sync stop procmem; do
		deep_chain "$target,via=$via" -e "$elf" || return 1
	done
	"$U" record "$target" -q --method pause -d 0.3 -o "$T/s.uniscope" --overwrite -e "$elf"
}

moves_each_time() { # TCG
	: >"$T/places"
	for _ in 1 2 3; do
		boot tcg "$BUILD/lab/deep-pie-${variants%%
*}.elf" "" || return 1
		chain "$target" -e "$elf" >/dev/null || return 1
		grep -o '"pc": "0x[0-9a-f]*"' "$T/stacks" | tail -1 >>"$T/places"
	done
	cat "$T/places"
	[ "$(sort -u "$T/places" | wc -l)" -gt 1 ]
}

dead() { # the same of a core
	python3 "$SRC/tests/e2e/qmp.py" "$T/q" stop '{}' dump-guest-memory \
		"{\"paging\": false, \"protocol\": \"file:$T/core\"}" >/dev/null &&
		deep_chain "core:file=$T/core" -e "$elf"
}

other_build() { # an image of the same shape that was not booted
	for other in $variants; do
		[ "$BUILD/lab/deep-pie-$other.elf" != "$elf" ] || continue
		"$U" stacks "$target" -e "$BUILD/lab/deep-pie-$other.elf" >/dev/null 2>"$T/all"
		status=$?
		grep -v "looking for the image in all of the guest's memory" "$T/all" >"$T/err"
		refused $status "$T/err" 1 'deep-pie' && [ "$(wc -l <"$T/all")" -eq 2 ] || return 1
		"$U" report "$T/s.uniscope" -s "$elf" 2>&1 >/dev/null | grep 'another build' && return 1
		"$U" report "$T/s.uniscope" -s "$BUILD/lab/deep-pie-$other.elf" 2>&1 >/dev/null |
			grep "another build than .*deep-pie"
		return
	done
}

# It has no relocations, so nothing is searched for it: that took minutes while each read stopped the guest.
cannot_move() {
	"$U" stacks "$target" -e "$BUILD/lab/loads-${variants%%
*}.elf" >/dev/null 2>"$T/err"
	refused $? "$T/err" 1 'loads-' && ! grep 'looking for' "$T/err"
}

both='lab_entry kmain run_app app_main call_program program_start program_outer program_inner'
# Until both kinds of stack were seen: in the program, and in the image below the program.
loaded() { # OPTION FILE
	: >"$T/seen"
	for _ in $(seq 60); do
		chain "$target" -e "$elf" "$1" "$2" >>"$T/seen" || return 1
		grep -q ' program_burn program_inner' "$T/seen" &&
			grep -q ' service_burn service_work program_inner' "$T/seen" && break
		sleep 0.05
	done
	sort "$T/seen" | uniq -c
	python3 -c 'import sys
want = sys.argv[2].split()[::-1]
kinds = set()
for line in open(sys.argv[1]):
    stop, *names = line.split()
    assert stop == "root" and names[-5:] == want[-5:] and "?" not in names, line
    if "program_inner" in names:
        assert names[names.index("program_inner"):] == want, line
    kinds.add(names[0])
assert {"program_burn", "service_burn"} <= kinds, kinds' "$T/seen" "$both"
}

recorded() { # OPTION FILE
	for seconds in 1 3 8; do # on a busy host there are few samples
		"$U" record "$target" -q -e "$elf" "$1" "$2" -d $seconds -o "$T/s.uniscope" \
			--overwrite && "$U" export --no-inline -f folded "$T/s.uniscope" -o "$T/folded" || return 1
		grep -q 'program_inner;program_burn ' "$T/folded" &&
			grep -q 'program_inner;service_work;service_burn ' "$T/folded" && break
	done
	"$U" export --no-inline -f json "$T/s.uniscope" -o "$T/json" || return 1
	cat "$T/folded"
	python3 - "$T/s.uniscope/session.json" "$T/folded" "$T/json" "$T/serial" <<'P'
import json, re, sys
session, folded, profile, serial = sys.argv[1:]
images = json.load(open(session))["guests"][0]["images"]
assert len(images) == 2 and "program-" in images[1]["path"], images
said = re.search("program at ([0-9a-f]+)", open(serial).read()).group(1)
assert int(images[1]["bias"], 16) == int(said, 16), (images, said)
assert int(images[0]["bias"], 16) == 0
below = set()
for line in open(folded):
    names = line.rsplit(" ", 1)[0].split(";")
    assert names[:4] == ["lab_entry", "kmain", "run_app", "app_main"], names
    below |= {tuple(names[-2:])}
print(below)
assert {("program_inner", "program_burn"), ("service_work", "service_burn")} <= below
text = open(profile).read()
assert "program-" in text and "loads-" in text
P
}

# The file of a further -e is looked for, whichever command it is.
again() {
	for seconds in 1 3 8 20; do
		"$U" top "$target" --batch --json --no-inline --rows 0 -d $seconds -i $seconds -e "$elf" \
			-e "$program" >"$T/out" || return 1
		grep -q '"program_burn"' "$T/out" && grep -q '"service_burn"' "$T/out" && break
	done
	cat "$T/out"
	grep -q '"program_burn"' "$T/out" && grep -q '"service_burn"' "$T/out" || return 1
	for command in "record -d 1 -o $T/no.uniscope" stacks 'top --batch' 'trace record -d 1' \
		'trace start' 'trace dump' 'count -d 1' 'trace syscalls -d 1'; do
		operand=
		e=-e
		case $command in count*) operand=service_work ;; *syscalls*) e=--image ;; esac
		for given in "$T/none.elf $elf" "$elf $T/none.elf"; do
			# shellcheck disable=SC2086
			"$U" $command "$target" $e ${given% *} $e ${given#* } $operand >"$T/out" 2>"$T/err"
			refused $? "$T/err" 1 none.elf || return 1
		done
	done
}

# Both images' functions can be counted.
counted() {
	"$U" count "$target" --max-pause off -d 1 --json -e "$elf" -e "$program" service_work \
		program_inner >"$T/out" || return 1
	cat "$T/out"
	python3 -c 'import json, sys
for f in json.load(open(sys.argv[1]))["functions"]:
    assert f["calls"] > 0 and all("name" in c for c in f["callers"]), f' "$T/out"
}

twice() { # an image where one alone is used
	"$U" annotate "$T/s.uniscope" service_work -e "$elf" -e "$program" >"$T/out" 2>"$T/err"
	refused $? "$T/err" 2 'given twice'
}

without() { # what is not there is said, and the rest works
	"$U" stacks "$target" -e "$elf" --sysroot "$BUILD/lab/program-$1.elf" >"$T/out" 2>"$T/err"
	cat "$T/err" "$T/out"
	grep -q "program-$1.elf: not found in the guest's memory" "$T/err" && grep -q lab_entry "$T/out"
}

# A program without build-id is known by its name in a link map only.
nameless() {
	rm -rf "$T/root" && mkdir -p "$T/root/boot" "$T/root/other" &&
		objcopy -R .note.gnu.build-id "$program" "$T/program.elf" &&
		cp "$T/program.elf" "$T/root/boot/" &&
		cp "$BUILD/lab/deep-pie-$v.elf" "$T/root/other/program.elf" &&
		boot tcg "$elf" "" --initrd "$T/program.elf" &&
		wait_for 60 grep -q 'program at' "$T/serial" && loaded --sysroot "$T/root"
}

# The program comes when the recording has been under way for some seconds; on a busy host that
# must be later. 2: it had come before.
record_late() { # ACCEL SYSROOT SECONDS
	boot "$1" "$elf" "late=$3" --initrd "$program" || return 1
	rm -rf "$T/s.uniscope"
	"$U" record "$target" -e "$elf" --sysroot "$2" -d $((2 * $3 + 2)) -o "$T/s.uniscope" \
		2>"$T/err" &
	pid=$!
	wait_for 60 test -e "$T/s.uniscope/session.json"
	early=0
	grep -q 'program at' "$T/serial" && early=2
	wait $pid && return $early
}

late() { # ACCEL SYSROOT
	for seconds in 2 4 15; do
		record_late "$1" "$2" $seconds && late_is_right
		status=$?
		case $status in
		2) retry "the program was there before the recording, in $seconds s" ;;
		3) retry "too few samples before the program was there, in $seconds s" ;;
		*) return $status ;;
		esac
	done
	return 1
}
late_is_right() {
	cat "$T/err"
	grep -q 'program at' "$T/serial" && grep -q 'the guest has loaded .*program' "$T/err" &&
		"$U" export --no-inline -f folded "$T/s.uniscope" -o "$T/folded" || return 1
	cat "$T/folded"
	python3 - "$T/s.uniscope/session.json" "$T/folded" "$T/serial" <<'P'
import json, re, sys
session, folded, serial = sys.argv[1:]
images = json.load(open(session))["guests"][0]["images"]
said = re.search("program at ([0-9a-f]+)", open(serial).read()).group(1)
assert len(images) == 2 and "program" in images[1]["path"], images
assert int(images[1]["bias"], 16) == int(said, 16), (images, said)
below, alone, broken, total = set(), 0, 0, 0
for line in open(folded):
    names, weight = line.rsplit(" ", 1)
    names = names.split(";")
    total += int(weight)
    alone += int(weight) * ("work_alone" in names)
    broken += int(weight) * (names[:4] != ["lab_entry", "kmain", "run_app", "app_main"])
    below |= {tuple(names[-2:])}
assert {("program_inner", "program_burn"), ("service_work", "service_burn")} <= below, below
# Samples before it was found have its names, but their chains may be broken.
print(alone, broken, total)
assert broken < 0.3 * total
sys.exit(0 if alone > 0.1 * total else 3)
P
}

none() { # no image but what the folder holds
	rm -rf "$T/root" && mkdir -p "$T/root/a/b" &&
		cp "$BUILD/lab/program-$1.elf" "$T/root/a/b/app" &&
		python3 "$SRC/tests/e2e/qmp.py" "$T/q" stop '{}' dump-guest-memory \
			"{\"paging\": false, \"protocol\": \"file:$T/core\"}" >/dev/null || return 1
	"$U" stacks "core:file=$T/core" --sysroot "$T/root" >"$T/out" || return 1
	cat "$T/out"
	grep -q 'program_start+' "$T/out" && grep -q '\[unknown\]' "$T/out"
}

# A busy host takes the CPU away for longer than the reads of a sample may take.
slowed() {
	strace -qq -f -o "$T/strace" -e trace=process_vm_readv \
		-e inject=process_vm_readv:delay_enter=25000 "$U" stacks "$target" -e "$elf" >"$T/out" 2>&1
	status=$?
	cat "$T/out"
	[ $status -eq 0 ] && grep -q DELAYED "$T/strace" && grep -q lab_entry "$T/out"
}

# Two of the variants will do: one with frame pointers by one compiler, one without by the other.
variants=$(echo "$variants" | grep -m1 -e -fp; echo "$variants" | grep -e -nofp | tail -n 1)
for accel in $(by_default kvm "$accels"); do
	list=$variants
	[ "$accel" = tcg ] || list=$(echo "$variants" | grep -m1 -e -fp)
	for v in $list; do
		check "$accel: $v, an image that moved is found" moved "$accel" "$v"
		[ "$accel" != kvm ] || check "$accel: $v, stopped too" stopped
	done
done
check 'and in a core' dead
elf=$BUILD/lab/deep-pie-${variants%%
*}.elf
in_all check 'it lies elsewhere each time, and is found each time' moves_each_time
in_all check 'an image of another build is not found' other_build
in_all check 'one that cannot be elsewhere is refused at once' cannot_move

for accel in $(by_default tcg "$accels"); do
	list=$(echo "$variants" | grep -m1 -e -fp)
	[ "$accel" = kvm ] || list=$variants
	[ -n "${UNISCOPE_ALL-}" ] || list=$(echo "$variants" | tail -n 1)
	last=$(echo "$list" | tail -1)
	for v in $list; do
		elf=$BUILD/lab/loads-$v.elf
		program=$BUILD/lab/program-$v.elf
		check "$accel: $v, a guest loads a program" \
			boot "$accel" "$elf" "" --qmp "$T/q" --initrd "$program"
		wait_for 60 grep -q 'program at' "$T/serial"
		check "$accel: $v, chains go through both images" loaded --sysroot "$program"
		[ "$accel" != kvm ] || check "$accel: a busy host does not hide the image" slowed
		check "$accel: $v, both travel with a session" recorded --sysroot "$BUILD/lab"
		[ "$v" = "$last" ] || continue
		check "$accel: $v, a second -e is a program" again
		in_all check "$accel: $v, in stacks" loaded -e "$program"
		in_all check "$accel: $v, in record" recorded -e "$program"
		[ "$accel" != tcg ] || check "$accel: $v, in count" counted
		check "$accel: $v, where one image is used, a second is refused" twice
	done
done
for other in $variants; do
	[ "$other" != "$v" ] && check 'a file that is not there is told' without "$other" && break
done
check 'a program alone, found by its build-id in a folder' none "$v"
in_all check 'a link map names what has no build-id' nameless
for accel in $(by_default tcg "$accels"); do
	case $accel in
	tcg) in_all check 'a program that is loaded later is noticed' late tcg "$BUILD/lab" ;;
	kvm) check 'and under KVM, where its file was named' late kvm "$program" ;;
	esac
done
finish
