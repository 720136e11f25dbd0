#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# users.sh UNISCOPE BUILD SRCROOT: the promises to an ordinary user: a guest of one's own without any right, by kvm:, gdb: and
# proc:. How long a guest stands at most, as the kernel counts it. Waiting for a guest that is not there yet. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all'
[ "$(id -u)" = 0 ] && $nobody true 2>/dev/null || absent 'only root can become an ordinary user'
N=$T/nobody
mkdir "$N" && cp "$U" "$T/uniscope" && cp "$(image shares)" "$N/app.elf" && chmod 755 "$T" "$T/uniscope" || exit 1
for process in "$BUILD/lab/process/deep-gcc-fp" "$BUILD/lab/process/deep-clang-fp"; do
	[ -e "$process" ] && cp "$process" "$N/process"
done
chown -R 65534:65534 "$N"
elf=$N/app.elf

# has METHOD FUNCTION: what was recorded last was by that method, and has it.
has() {
	cat "$T/log"
	grep '"method"' "$N/s.uniscope/session.json"
	grep -q "\"method\": *\"$1\"" "$N/s.uniscope/session.json" &&
		"$U" export --no-inline --force "$N/s.uniscope" -f folded -o "$T/s.folded" && grep "$2" "$T/s.folded"
}
records() { # METHOD FUNCTION TARGET
	timeout 60 $nobody "$T/uniscope" record "$3" -q -F 499 -d 0.6 -e "${4:-$elf}" -o "$N/s.uniscope" --overwrite \
		>"$T/log" 2>&1 || {
		cat "$T/log"
		return 1
	}
	has "$1" "$2"
}

own_kvm() { # the group of /dev/kvm is the only right
	end_guest
	setpriv --reuid=65534 --regid=65534 --groups="$(stat -c %g /dev/kvm)" --inh-caps=-all --bounding-set=-all \
		"$SRC/lab/boot" --accel kvm --append loop=1 --serial "file:$N/serial" "$elf" </dev/null >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 grep -q '^lab: running' "$N/serial" && records pause burn_a "kvm:pid=$guest"
}
own_gdb() {
	end_guest
	rm -f "$N/serial" "$N/gdb"
	$nobody "$SRC/lab/boot" --accel tcg --append loop=1 --gdb "unix:$N/gdb,server=on,wait=off" \
		--serial "file:$N/serial" "$elf" </dev/null >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 grep -q '^lab: running' "$N/serial" && records pause burn_a "gdb:unix=$N/gdb"
}
own_process() { # WAY METHOD
	end_guest
	rm -f "$N/out"
	$nobody sh -c 'exec "$1" loop=1 >"$2"' sh "$N/process" "$N/out" 2>"$T/boot" </dev/null &
	guest=$!
	wait_for 60 grep -q '^lab: running' "$N/out" && records "$2" app_main "proc:pid=$guest,via=$1" "$N/process"
}
closed_image() { # to root without a capability, who is not told to be root; and to an ordinary user, who is
	$nobody sleep 100 &
	other=$!
	setpriv --bounding-set=-sys_ptrace --inh-caps=-all "$U" record "proc:pid=$other" -d 1 -o "$T/o.uniscope" 2>"$T/err"
	setpriv --reuid=65533 --regid=65533 --clear-groups --inh-caps=-all --bounding-set=-all "$T/uniscope" \
		record "proc:pid=$other" -d 1 -o "$T/o.uniscope" 2>"$T/err2"
	kill "$other"
	cat "$T/err" "$T/err2"
	grep -q 'permission denied to root, too, as in a container without CAP_SYS_PTRACE' "$T/err" &&
		grep -q 'permission denied; be its user or root, or give the ELF' "$T/err2"
}
others_process() { # and it goes on
	sleep 100 &
	other=$!
	timeout 60 $nobody "$T/uniscope" record "proc:pid=$other" -e "$N/process" -d 1 -o "$N/o.uniscope" 2>"$T/err"
	status=$?
	cat "$T/err"
	kill $other
	[ $status -eq 1 ] && [ "$(wc -l <"$T/err")" -eq 1 ] && grep -q "may not be looked into" "$T/err" && [ ! -e "$N/o.uniscope" ]
}

# A busy vCPU thread runs, waits for a CPU, or was stopped by us: the kernel counts the first two.
stands() { # FREQUENCY
	boot kvm "$(image shares)" '' || return 1
	vcpu=$(for t in /proc/"$guest"/task/*; do
		echo "$(cut -d' ' -f1 "$t/schedstat") ${t##*/}"
	done | sort -n | tail -1 | cut -d' ' -f2)
	rm -rf "$T/p.uniscope"
	"$U" record "$target" --method pause -q -F "$1" -d 0 -e "$(image shares)" -o "$T/p.uniscope" 2>"$T/log" &
	recorder=$!
	wait_for 60 test -s "$T/p.uniscope/guest-0/samples-vcpu0" || return 1
	python3 - "/proc/$guest/task/$vcpu/schedstat" "$([ -n "${UNISCOPE_ALL-}" ] && echo 6 || echo 3)" <<'P'
import sys, time
def look():
    with open(sys.argv[1]) as f:
        run, wait, _ = map(int, f.read().split())
    return time.monotonic_ns(), run + wait
a = look()
time.sleep(float(sys.argv[2]))
b = look()
stood = 1 - (b[1] - a[1]) / (b[0] - a[0])
print("# stood for %.2f %% of the time" % (100 * stood), file=sys.stderr)
# A tenth, and what a pause much longer than those before it may add (docs/overhead.md).
sys.exit(not 0.005 < stood < 0.15)
P
	status=$?
	kill -INT $recorder
	wait $recorder || status=1
	cat "$T/log"
	return $status
}

# A guest that starts once uniscope waits for it.
waited() { # COMMAND...: run beside; then the guest starts
	end_guest
	rm -f "$T/gdb"
	timeout 100 "$@" >"$T/out" 2>"$T/err" &
	waiter=$!
	sleep 1
	kill -0 $waiter || { cat "$T/err"; return 1; }
	boot tcg "$(image shares)" '' || return 1
	wait $waiter
	status=$?
	cat "$T/err"
	return $status
}
record_waits() {
	waited "$U" record "gdb:unix=$T/gdb" --wait 90 -q -F 199 -d 1 -e "$(image shares)" -o "$T/w.uniscope" &&
		"$U" report "$T/w.uniscope" | grep burn_a
}
top_waits() {
	waited "$U" top "gdb:unix=$T/gdb" --wait 90 -e "$(image shares)" --batch --count 2 -i 0.5 && grep burn_a "$T/out"
}
waits_in_vain() {
	timeout 60 "$U" record "gdb:unix=$T/nothing" --wait 1 -d 1 -o "$T/v.uniscope" 2>"$T/err"
	refused $? "$T/err" 1 "$T/nothing" && [ ! -e "$T/v.uniscope" ]
}

if [ -z "$no_kvm" ]; then
	check 'kvm: a guest of one'"'"'s own, without CAP_BPF: by stopping it' own_kvm
	in_all check 'kvm: at 20000 Hz a guest stands for a tenth of the time at most' stands 20000 # unit schedule: other rates
fi
check 'gdb: a guest of one'"'"'s own' own_gdb
if [ -e "$N/process" ]; then
	check 'proc: a process of one'"'"'s own, by stopping it' own_process stop pause
	if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		in_all check 'proc: by perf events' own_process perf perf
	fi
	check 'proc: not one of others' others_process
	check 'proc: an image that cannot be read, and the way to it' closed_image
fi
check 'record --wait: a guest that comes later' record_waits
in_all check 'top --wait: the same' top_waits
check 'record --wait: one that never comes' waits_in_vain
finish
