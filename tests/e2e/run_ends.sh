#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run_ends.sh UNISCOPE BUILD SRCROOT GUEST...: `uniscope run` with guests that end early or never begin, on real QEMUs. It prints one
# true line with the time, ends with status 1, and leaves no session. Each GUEST is ends.S. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
shift 3
mkdir "$T/w" && cp "$@" "$T/w/" && cd "$T/w" || exit 1
case $U in
/*) ;;
*) U=$OLDPWD/$U ;;
esac

# firmware NAME CODE: 64 KiB; its reset vector jumps to CODE (octal bytes, at 0xff00 of the segment).
firmware() {
	{
		head -c 65280 /dev/zero
		# shellcheck disable=SC2059 # bytes
		printf "$2"
		head -c 240 /dev/zero
	} | head -c 65520 >"$1"
	printf '\351\015\377' >>"$1"
	head -c 13 /dev/zero >>"$1"
}
firmware halt.bin '\372\364\353\375' # cli; 1: hlt; jmp 1b
firmware spin.bin '\353\376'
firmware count.bin '\146\100\353\374' # 1: inc %eax; jmp 1b

# ends WORDS OPTION...: one line with them and a time, status 1, no session.
ends() {
	words=$1
	shift
	rm -rf no.uniscope "$T/out"
	timeout 120 "$U" run -q -d 20 -o no.uniscope "$@" >"$T/out" 2>&1
	refused $? "$T/out" 1 "$words" && grep -Eq '[0-9] s[ ,:(]' "$T/out" && [ ! -e no.uniscope ]
}

# KVM dies of it; without KVM the guest goes on, and spins where it is.
kvm_cannot() {
	timeout 120 "$U" run -d 1 --append e -o tcg.uniscope ends.elf >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	cat "$T/out"
	grep -q 'does not emulate an instruction of the guest.*; trying once more without KVM' "$T/out" &&
		[ "$(grep -c 'booted .* with kvm' "$T/out")" -eq 1 ] &&
		[ "$(grep -c 'booted .* with tcg' "$T/out")" -eq 1 ] &&
		"$U" report tcg.uniscope 2>&1 | tee "$T/report" | grep -q spin && rm -r tcg.uniscope
}

# The same after samples, which the next try replaces.
kvm_cannot_late() {
	recording auto --append m || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0x3ff 0x5a"}' || return 1
	wait_for 60 grep -q 'booted .* with tcg' "$T/out" || return 1
	wait_for 60 test -s r.uniscope/guest-0/samples-vcpu0
	status=$?
	kill -INT "$run"
	wait "$run" || status=1
	cat "$T/out"
	[ $status -eq 0 ] && grep -q 'does not emulate an instruction of the guest; trying once more without KVM' "$T/out" &&
		"$U" report r.uniscope 2>&1 | tee "$T/report" | grep -q late
}

# Not with options that only the host's kernel serves: what was recorded is kept, here exits alone.
kvm_only() {
	recording auto -q --append m --exits -F 0 || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0x3ff 0x5a"}' || return 1
	wait "$run"
	refused $? "$T/out" 1 'does not emulate an instruction of the guest; what was collected until then is kept$' &&
		"$U" report r.uniscope | grep '^exits  *[1-9]'
}

# A QEMU that does not find the /dev/kvm that is there.
kvm_refuses() {
	cat >k.sh <<-END
		#!/bin/sh
		case \$* in
		*'-accel kvm'*) exec strace -D -f -o /dev/null -P /dev/kvm -e inject=openat:error=ENOENT qemu-system-x86_64 "\$@" ;;
		*) exec qemu-system-x86_64 "\$@" ;;
		esac
	END
	chmod +x k.sh
	timeout 120 "$U" run -q -d 0.3 --qemu ./k.sh -o tcg.uniscope ends.elf >"$T/out" 2>&1
	refused $? "$T/out" 0 'initialize kvm.*; trying once more without KVM' || return 1
	rm -r tcg.uniscope
	timeout 120 "$U" run -q -d 1 --qemu ./k.sh --accel kvm -o no.uniscope ends.elf >"$T/out" 2>&1
	refused $? "$T/out" 1 'its last words: .*initialize kvm' && [ ! -e no.uniscope ]
}

# A QEMU that has no TCG, or says so in words of its own.
no_tcg() { # WORDS OF QEMU
	cat >n.sh <<-END
		#!/bin/sh
		case \$* in
		*'-accel tcg'*) echo "$1" >&2; echo tried >>tried; exit 1 ;;
		*) exec qemu-system-x86_64 "\$@" ;;
		esac
	END
	chmod +x n.sh
	: >tried
	timeout 120 "$U" run -d 1 --append e --qemu ./n.sh -o no.uniscope ends.elf >"$T/out" 2>&1
	status=$?
	cat "$T/out" tried
	[ $status -eq 1 ] && [ "$(wc -l <tried)" -eq 1 ] && [ ! -e no.uniscope ] &&
		tail -1 "$T/out" | grep -q 'run: the guest died .*not emulate an .*; and this QEMU cannot run it without KVM: '
}

# A QEMU whose microvm dies in its firmware.
falls_back() {
	firmware dies.bin '\056\017\001\036\100\377\017\013' # lidt %cs:0xff40; ud2
	cat >q.sh <<-END
		#!/bin/sh
		[ "\$2" != microvm ] || set -- "\$@" -bios $T/w/dies.bin
		exec qemu-system-x86_64 "\$@"
	END
	chmod +x q.sh
	timeout 120 "$U" run -d 0.3 --accel tcg --qemu ./q.sh -o q35.uniscope ends.elf >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	cat "$T/out"
	grep -q 'reset itself .*: uniscope did not see it execute ends.elf; trying once more on q35' "$T/out" &&
		"$U" report q35.uniscope | grep -q spin && rm -r q35.uniscope || return 1
	# If q35 fails, too, both are told, whoever wants it quiet.
	sed 's/.*!= microvm.*set/set/' q.sh >both.sh && chmod +x both.sh
	timeout 120 "$U" run -q -d 1 --accel tcg --qemu ./both.sh -o no.uniscope ends.elf >"$T/out" 2>&1
	[ $? -eq 1 ] && [ "$(wc -l <"$T/out")" -eq 2 ] &&
		head -1 "$T/out" | grep 'did not see it execute ends.elf; it was tried once more on q35' &&
		tail -1 "$T/out" | grep 'run: .*did not see it execute ends.elf$' || { cat "$T/out"; return 1; }
	# Not if the user wants just that machine.
	ends 'reset itself .*: uniscope did not see it execute ends.elf' --accel tcg --machine microvm --qemu ./q.sh ends.elf
}

# On microvm, and not again on q35: the image has run, although no registers or memory of its own may tell.
at_once() { # ACCEL
	rm -rf no.uniscope "$T/out"
	timeout 120 "$U" run -d 20 --accel "$1" -o no.uniscope ends-at-once.elf >"$T/out" 2>&1
	status=$?
	cat "$T/out"
	[ $status -eq 1 ] && [ "$(grep -c 'booted .* on microvm' "$T/out")" -eq 1 ] && ! grep -q q35 "$T/out" &&
		[ "$(grep -Ec 'the guest reset itself .*, stopped there or .*, at 0x[0-9a-f]* \(triple\+0x|in ends-at-once.elf: KVM has reset' "$T/out")" -eq 1 ] &&
		[ ! -e no.uniscope ]
}

no_such() { # OPTION VALUE
	timeout 60 "$U" run -d 1 "$1" "$2" -o no.uniscope ends.elf >"$T/out" 2>&1
	refused $? "$T/out" 1 "^uniscope: run: $1 $2: qemu-system-x86_64 has no such .*; .qemu-system-x86_64 -[a-zA-Z]* help. lists"
}

# Too few for shares: record, report and page say so. A busy host may give none at all.
few() { # ACCEL
	for _ in $(seq 20); do
		timeout 120 "$U" run -d 1 -F 4 --overwrite --accel "$1" -o two.uniscope ends.elf >"$T/out" 2>&1 || {
			cat "$T/out"
			return 1
		}
		"$U" report two.uniscope | grep -q '^counted  *[1-9] ' && break
	done
	words='only [1-9] samples* to tell shares from: too few'
	cat "$T/out"
	grep -q "$words" "$T/out" && "$U" report two.uniscope | grep "^TOO FEW *$words" &&
		"$U" report --html two.html two.uniscope && in_page 'TOO FEW  ' two.html
}

# Whoever ends it knows that the image has not run.
ended_early() { # EXACT
	rm -rf no.uniscope "$T/out"
	"$U" run "$1" -d 100 -o no.uniscope ends.elf -- -bios spin.bin >"$T/out" 2>&1 &
	run=$!
	wait_for 60 grep -q booted "$T/out"
	kill -INT "$run"
	wait "$run"
	status=$?
	cat "$T/out"
	[ $status -eq 1 ] && [ "$(wc -l <"$T/out")" -eq 2 ] && [ ! -e no.uniscope ] &&
		tail -1 "$T/out" | grep -Eq 'run: ended by you after [0-9.]* s, before the guest executed any code of .*ends.elf$'
}

machine_of() { # WORDS OPTION...
	words=$1
	shift
	timeout 120 "$U" run -d 0.1 --accel tcg -o m.uniscope "$@" >"$T/out" 2>&1
	cat "$T/out"
	rm -rf m.uniscope
	grep -q "on $words, console" "$T/out"
}

# One line.
refuses() { # STATUS WORDS OPTION...
	wanted=$1 words=$2
	shift 2
	timeout 60 "$U" run -d 0.1 -o no.uniscope "$@" >"$T/out" 2>&1
	refused $? "$T/out" "$wanted" "$words" && [ "$(wc -l <"$T/out")" -eq 1 ] && [ ! -e no.uniscope ]
}

sampled_32() { # spin jumps to its own first byte, where its caller may have been before
	timeout 120 "$U" run -q -F 199 -d 0.6 --accel tcg -o m.uniscope ends-32.elf >"$T/out" 2>&1 || { cat "$T/out"; return 1; }
	"$U" report m.uniscope | tee "$T/report" | grep -Eq ' (9[0-9]|100)\.[0-9]+%  spin ~$' || { cat "$T/report"; return 1; }
	rm -r m.uniscope
}

has_begun() {
	[ -s r.uniscope/guest-0/samples-vcpu0 ] || [ -s r.uniscope/guest-0/exits-vcpu0 ]
}

recording() { # OPTION...
	rm -rf mon r.uniscope
	"$U" run -d 120 -o r.uniscope --accel "$@" ends.elf -- \
		-qmp unix:mon,server=on,wait=off >"$T/out" 2>&1 &
	run=$!
	wait_for 60 has_begun || {
		cat "$T/out"
		kill -INT "$run"
		return 1
	}
}

paused() { # ACCEL: by somebody else
	recording "$1" || return 1
	# Under TCG, one that meets a sample's pause ends with it.
	for _ in 1 2 3 4 5; do
		python3 "$SRC/tests/e2e/qmp.py" mon stop {} || return 1
		! wait_for 12 grep -Eq 'after [0-9.]+ s the VMM stopped the guest \(paused\)' "$T/out" || break
	done
	python3 "$SRC/tests/e2e/qmp.py" mon cont {} || return 1
	wait_for 60 grep -q 's the guest goes on' "$T/out"
	kill -INT "$run"
	wait "$run"
	status=$?
	cat "$T/out"
	[ "$status" -eq 0 ] && grep -q 'goes on' "$T/out" && grep -q '(paused)' "$T/out"
}

# By a signal, to QEMU: told once, QEMU is asked nothing meanwhile, and it is a gap. The same while the guest is in its firmware.
frozen() { # ACCEL
	recording "$1" || return 1
	qemu=$(pgrep -P "$run" qemu)
	kill -STOP "$qemu"
	wait_for 60 grep -Eq "after [0-9.]+ s: a signal has stopped QEMU, pid $qemu: .* kill -CONT $qemu lets it run" "$T/out"
	sleep 2
	kill -CONT "$qemu"
	wait_for 60 grep -q 's the guest goes on' "$T/out"
	kill -INT "$run"
	wait "$run"
	status=$?
	cat "$T/out"
	[ "$status" -eq 0 ] && [ "$(grep -c 'a signal has stopped' "$T/out")" -eq 1 ] && [ "$(grep -c 's the guest goes on' "$T/out")" -eq 1 ] &&
		"$U" report r.uniscope | grep -E '^gap  *[2-9]\.. s long, .*: a signal .SIGSTOP. had stopped its VMM$' || return 1
	rm -f "$T/out"
	"$U" run -d 120 -o no.uniscope --accel "$1" ends.elf -- -bios count.bin >"$T/out" 2>&1 &
	run=$!
	wait_for 60 grep -q 'still in firmware' "$T/out"
	qemu=$(pgrep -P "$run" qemu)
	kill -STOP "$qemu"
	wait_for 60 grep -Eq "a signal has stopped QEMU, pid $qemu" "$T/out"
	told=$?
	kill -INT "$run"
	wait_for 60 sh -c "! kill -0 $run" 2>/dev/null
	ended=$?
	kill -CONT "$qemu" 2>/dev/null
	wait "$run"
	cat "$T/out"
	[ $told -eq 0 ] && [ $ended -eq 0 ]
}

panics_late() { # ACCEL: after samples, which are kept; but the run has failed
	recording "$1" || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0x505 1"}' || return 1
	wait "$run"
	status=$?
	cat "$T/out"
	[ "$status" -eq 1 ] && tail -1 "$T/out" | grep -Eq 'the guest panicked after .* is kept' &&
		"$U" report r.uniscope | grep -q spin
}

exits_late() { # ACCEL: after samples, with a code that is told
	recording "$1" || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0xf4 0x15"}' >/dev/null 2>&1
	wait "$run" || return 1
	cat "$T/out"
	tail -1 "$T/out" | grep -q "debug exit after .*, with code 0x15 (QEMU's status 43)"
}

# Under KVM the second vCPU waits for its start; its VMM's monitor is asked, not the samples.
halts() { # ACCEL
	ends 'halted for good, seen after .*, at 0x20.* (halt+0x2): interrupts are off.*, before it could be recorded' \
		--append h --accel "$1" --vcpus 2 ends.elf
}

# Its samples before are a profile, and its end is told; a halt may be how it ends when all is well.
halts_late() { # ACCEL
	recording "$1" --append l || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0x3ff 0x5a"}' || return 1
	wait "$run"
	status=$?
	cat "$T/out"
	[ "$status" -eq 0 ] && "$U" report r.uniscope | grep -q inner &&
		tail -1 "$T/out" | grep -q 'the guest has halted for good, seen after .*(halt+0x2): interrupts are off.* is kept'
}

# Under KVM its VMM ends it; under TCG it would go on.
astray_late() { # ACCEL WORDS
	recording "$1" -q --append k || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0x3ff 0x5a"}' || return 1
	wait "$run"
	refused $? "$T/out" 1 "$2.* is kept" && "$U" report r.uniscope | grep -q inner
}

# QEMU itself is killed, say for want of memory.
qemu_killed() { # ACCEL
	recording "$1" -q || return 1
	pkill -9 -P $run qemu || return 1
	wait "$run"
	refused $? "$T/out" 1 'QEMU died .* by signal 9.* is kept' && "$U" report r.uniscope | grep -q spin
}

resets_late() { # ACCEL: QEMU cannot tell a triple fault from a reset that the guest wants
	recording "$1" -q --machine q35 || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon human-monitor-command '{"command-line": "o /1 0xcf9 6"}' || return 1
	wait "$run"
	refused $? "$T/out" 1 'the guest reset itself .* after .* is kept' && "$U" report r.uniscope | grep -q spin
}

ended_outside() { # ACCEL
	recording "$1" || return 1
	python3 "$SRC/tests/e2e/qmp.py" mon system_reset {} || return 1
	wait "$run"
	status=$?
	cat "$T/out"
	[ "$status" -eq 0 ] && grep -q 'ended from outside (host-qmp-system-reset) after .* is kept' "$T/out"
}

# record of a guest in its firmware, whose image lies in memory already.
only_firmware() { # ACCEL
	end_guest
	cpu=max
	[ "$1" = tcg ] || cpu=host,-arch-capabilities
	rm -f g
	qemu-system-x86_64 -M q35 -accel "$1" -cpu $cpu -m 64 -nodefaults -display none -kernel ends.elf \
		-bios count.bin -gdb unix:g,server=on,wait=off >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 test -e g || return 1
	target=kvm:pid=$guest
	[ "$1" = kvm ] || target=gdb:unix=g
	rm -rf fw.uniscope
	"$U" record -q -d 0.3 --method pause -o fw.uniscope -e ends.elf $target >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	"$U" top --batch -i 0.3 --count 1 --method pause -e ends.elf $target >"$T/top" 2>&1 &&
		"$U" top --batch --json -i 0.3 --count 1 --method pause -e ends.elf $target >"$T/top.json" 2>&1
	end_guest
	cat "$T/out" "$T/top"
	grep -q '^NO PROFILE: none of .* the image: .*its firmware' "$T/top" &&
		grep -q '"no_profile":"none of .*its firmware' "$T/top.json" || return 1
	refused 0 "$T/out" 0 'none of the [0-9]* samples lies in ends.elf: the guest seems to run its firmware, at 0xff0' ||
		return 1
	"$U" report fw.uniscope >"$T/out" 2>&1
	cat "$T/out"
	grep -q '^NO PROFILE none of the .* its firmware' "$T/out" && ! grep -q FUNCTION "$T/out" &&
		"$U" report --tree fw.uniscope | grep -Eq '^ *100.00% .*\[firmware\]' &&
		"$U" export -f folded fw.uniscope 2>"$T/out" | grep -q '^\[firmware\];0xff0' &&
		[ "$(grep -c '^uniscope: NO PROFILE: none of the .* its firmware' "$T/out")" -eq 1 ] &&
		"$U" export --all all fw.uniscope 2>"$T/out" && [ "$(grep -c 'NO PROFILE: ' "$T/out")" -eq 1 ] &&
		"$U" report --html fw.html fw.uniscope && in_page 'NO PROFILE none of' fw.html &&
		in_page '[firmware]' fw.html
}

# record by pausing reads the flags; the session stays, for it is a guest of somebody else.
recorded_halted() { # ACCEL
	end_guest
	cpu=max
	[ "$1" = tcg ] || cpu=host,-arch-capabilities
	rm -f g
	qemu-system-x86_64 -M microvm -accel "$1" -cpu $cpu -m 64 -nodefaults -display none -kernel ends.elf -append h \
		-smp 2 -gdb unix:g,server=on,wait=off >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 test -e g || return 1
	target=kvm:pid=$guest
	[ "$1" = kvm ] || target=gdb:unix=g
	for _ in $(seq 20); do # until it is there, on a busy host
		"$U" record -q -d 3 --method pause --overwrite -o h.uniscope -e ends.elf $target >"$T/out" 2>&1
		refused $? "$T/out" 0 'the guest has halted for good: for the last [0-9.]* s its interrupts were off' && break
	done && end_guest
}

# By the kernel, which reads no flags. It is paused for good after its panic, and nothing of it runs.
recorded_dead() {
	end_guest
	rm -f mon
	qemu-system-x86_64 -M microvm -accel kvm -cpu host,-arch-capabilities -m 64 -nodefaults -display none -kernel ends.elf \
		-append p -device pvpanic -no-reboot -no-shutdown -qmp unix:mon,server=on,wait=off >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 eval 'python3 "$SRC/tests/e2e/qmp.py" mon query-status {} 2>/dev/null | grep -q "running.: false"' || return 1
	"$U" record -d 1 --method bpf --overwrite -o dead.uniscope -e ends.elf "kvm:pid=$guest" >"$T/out" 2>&1 &&
		cat "$T/out" && ! grep complete "$T/out" &&
		grep -q 'no vCPU ran at any of the [0-9]* samples: the guest waits for an interrupt, is paused, or has ended' "$T/out" &&
		"$U" report dead.uniscope >"$T/out" 2>&1 && cat "$T/out" &&
		grep -q '^NO PROFILE no vCPU ran at any' "$T/out" && grep -q '^chains     none of a vCPU that ran' "$T/out"
	status=$?
	end_guest
	return $status
}

# A VMM without an image on its command line: to read more of it takes no right that root lacks.
no_image() {
	end_guest
	rm -f g
	qemu-system-x86_64 -M q35 -accel tcg -m 64 -nodefaults -display none -bios count.bin -name none$$ \
		-gdb unix:g,server=on,wait=off >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 test -e g || return 1
	"$U" record -d 1 -o no.uniscope none$$ >"$T/out" 2>&1
	refused $? "$T/out" 2 'does not tell which image it runs: give the ELF with --image ELF'
	status=$?
	end_guest
	return $status
}

mostly_elsewhere() { # ACCEL; which may find none at all, on a busy host
	rm -rf few.uniscope
	timeout 120 "$U" run -q -d 2 -F 199 --accel "$1" --append o -o few.uniscope ends.elf >"$T/out" 2>&1
	refused $? "$T/out" 0 '\(only [0-9]* ([0-9.]* %)\|none\) of the [0-9]* samples lies* in ends.elf: .*no image .*, at 0x50000' ||
		return 1
	"$U" report --tree few.uniscope >"$T/out" 2>&1
	cat "$T/out"
	grep -q '^NO PROFILE none' "$T/out" || grep -Eq ' (inner|elsewhere)$' "$T/out" || return 1
	grep -Eq '^NO PROFILE (only|none) ' "$T/out" && grep -q '\[not in the image\]' "$T/out"
}

# Before anything is booted.
: >empty.elf
check 'another accelerator is refused' refuses 2 'give --accel kvm or --accel tcg instead' ends.elf -- -accel tcg
check 'with two dashes, too' refuses 2 'give --accel kvm or --accel tcg instead' ends.elf -- --accel tcg
check 'one of a machine, too' refuses 2 'give --accel kvm or --accel tcg instead' ends.elf -- -M microvm,accel=tcg
check 'an empty file is refused' refuses 1 'empty.elf is empty' empty.elf
check 'a paused start is refused' refuses 2 '-S starts the guest paused' ends.elf -- -name ends -S
check 'an image that is no ELF file is refused before it is booted' refuses 1 'halt.bin is no ELF image.*with -e' halt.bin
for accel in $(by_default kvm "$accels"); do
	set -- --accel "$accel" ends.elf
	later='soon after'
	astray='died after .* at 0x40000000: the guest has no memory at this address'
	[ "$accel" = kvm ] || later='before the next block of code' # where TCG stops
	[ "$accel" = kvm ] || astray='has jumped to where it has no memory, seen after .* at 0x40'
	check "a triple fault under $accel" ends "reset itself .*, stopped there or $later, at 0x.* (triple+0x7)" --append t "$@"
	in_all check "a reset under $accel" ends "reset itself .*, stopped there or $later, at 0x20" --append r --machine q35 "$@"
	in_all check "a shutdown under $accel" ends "the guest shut down after .*, stopped there or $later, at 0x20" --append s --machine q35 "$@"
	check "a panic under $accel" ends "the guest panicked after .*, stopped there or $later, at 0x20" --append p "$@"
	in_all check "a debug exit under $accel" ends 'debug exit after .*, with code 0x10 (QEMU.s status 33)' --append d "$@"
	in_all check "paused by another under $accel" paused "$accel"
	in_all check "QEMU stopped by a signal under $accel" frozen "$accel"
	in_all check "a panic after samples under $accel" panics_late "$accel"
	check "a debug exit after samples under $accel" exits_late "$accel"
	check "a guest that halts for good under $accel" halts "$accel"
	in_all check "a reset after samples under $accel" resets_late "$accel"
	in_all check "ended from outside under $accel" ended_outside "$accel"
	in_all check "a jump out of its memory under $accel" ends "$astray" --append j "$@"
	[ "$accel" = kvm ] || check "the same with paging under $accel" ends "$astray" --append g "$@"
	check "the same after samples under $accel" astray_late "$accel" "$astray"
	# One of them shows what is done about firmware, and about what is not in the image.
	[ "$accel" = "${accels##* }" ] || continue
	in_all check "firmware that halts under $accel" ends 'in its firmware at 0xffffff02 (halted with interrupts off)' \
		"$@" -- -bios halt.bin
	in_all check "firmware that spins under $accel" ends 'in its firmware at 0xffffff00 (it repeats one instruction)' \
		"$@" -- -bios spin.bin
	in_all check "firmware that has not ended in time under $accel" \
		ends 'waited 3 s: the guest is still in its firmware, at 0xffffff0.*never\|not executed' \
		--wait 3 "$@" -- -bios count.bin
	check "only firmware under $accel" only_firmware "$accel"
	in_all check "record of a guest that has halted for good under $accel" recorded_halted "$accel"
	in_all check "mostly elsewhere under $accel" mostly_elsewhere "$accel"
	check "one that halts for good after samples under $accel" halts_late "$accel"
	check "a QEMU that is killed after samples under $accel" qemu_killed "$accel"
done
if [ "$accels" = 'tcg kvm' ]; then
	in_all check 'an instruction that KVM does not emulate' \
		ends 'died after .*(unemulated+0x.*this KVM does not emulate an instruction' --accel kvm --append e ends.elf
	in_all check 'the same, tried without KVM' kvm_cannot
	check 'the same, after samples' kvm_cannot_late
	if [ -z "$no_bpf" ]; then
		in_all check 'the same, with options that only KVM serves' kvm_only
	else
		skip 'the same, with options that only KVM serves' "$no_bpf"
	fi
	check 'KVM is refused' kvm_refuses
	check 'the same, by a QEMU without TCG' no_tcg 'invalid accelerator tcg'
	in_all check 'the same, by a QEMU that says something else' no_tcg 'no way'
else
	skip 'an instruction that KVM does not emulate' '/dev/kvm cannot be used'
fi
[ -n "$no_bpf" ] || check 'record by the kernel of a guest that has died' recorded_dead
for accel in $(by_default kvm "$accels"); do
	check "a triple fault at once under $accel" at_once "$accel"
done
check 'no image to be seen' no_image
check 'few samples' few tcg
check '--exact, ended by the user in its firmware' ended_early --exact
in_all check '--exact=calls, ended by the user in its firmware' ended_early --exact=calls
check 'a machine that QEMU has not' no_such --machine foo
in_all check 'a CPU that QEMU has not' no_such --cpu foo
check 'microvm for an image that PVH boots' machine_of microvm ends.elf
in_all check 'microvm for an image of 32 bits that PVH boots' machine_of microvm ends-32.elf
check 'which is sampled there' sampled_32
in_all check 'q35 with a PCI device' machine_of q35 ends.elf -- -device virtio-rng-pci
check 'microvm with options that add no device' machine_of microvm ends.elf -- -d guest_errors -name ends
check 'also with those that few use' machine_of microvm ends.elf -- -action panic=none -msg timestamp=on -netdev user,id=n \
	-object rng-random,id=r -device virtio-rng-device,rng=r --display none -vga none -drive if=none,id=d,driver=null-co
check 'q35 with a disk' machine_of q35 ends.elf -- --drive if=virtio,driver=null-co
check 'q35 if microvm refuses an option' machine_of q35 ends.elf -- -no-hpet
check 'too little memory for the image is refused' refuses 2 'ends.elf .* and the guest has 1M: give at least --memory 3M' \
	--memory 1M ends.elf
check 'also with --exact' refuses 2 'give at least --memory 3M' --exact --memory 2M ends.elf
in_all check "but not with QEMU's own option for it" machine_of microvm --memory 1M ends.elf -- -m 64
check 'the machine of the options for QEMU' machine_of pc ends.elf -- -machine pc,usb=off
check 'microvm dies in its firmware' falls_back
finish
