#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kvm_stream.sh UNISCOPE BUILD SRCROOT: guests sampled in the kernel, against what is known of them.
# It checks shares, complete chains, and times against the host's own counters. TAP.
set -u
# shellcheck disable=SC2034 # U is for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
need kvm bpf
S=$BUILD/tests/e2e/kvm_stream
here=$SRC/tests/e2e

# stream SECONDS HZ counts|ordered [SCHEDSTAT]: what was seen into $T/out
stream() {
	timeout 60 "$S" "$target,via=bpf" "$elf" "$@" >"$T/out" 2>"$T/err"
}

boot kvm "$BUILD/lab/shares-gcc-fp.elf" '' || {
	echo 'Bail out! no guest'
	exit 1
}

# Evaluates a python expression for $T/out. The keys are in v, self times in f.
says() { # EXPRESSION
	python3 - "$T/out" "$1" <<'END'
import sys
v, f, times = {}, {}, {}
for line in open(sys.argv[1]):
    w = line.split()
    if w[0] == 'self':
        f[w[1]] = int(w[2])
    elif w[0] == 'times':
        times[int(w[1])] = dict(zip(w[2::2], map(float, w[3::2])))
    elif w[0] not in ('note', 'stack', 'stop', 'broken_chain', 'host'):
        v[w[0]] = float(w[1])
print({k: v[k] for k in ('total', 'guest', 'halted', 'stolen', 'broken', 'lost', 'failed', 'depth',
                         'host_us_per_run', 'out_of_order') if k in v}, f, times)

def shares(**want):
    """Self times among these functions, by and large: a round takes a slow guest 0.25 s, so
    that a busy host leaves it a few rounds. truth.sh judges them by the guest's own books."""
    n = sum(f.get(k, 0) for k in want)
    return n > 100 and all(abs(f.get(k, 0) / n - p) <= max(4 * (p * (1 - p) / n) ** 0.5, min(0.1, p / 2))
                           for k, p in want.items())

def whole(broken=0.0005):
    """All chains but so many are complete (one is always allowed), nothing is lost."""
    return v['total'] > 200 and v['broken'] <= max(1, v['total'] * broken) and \
        v['lost'] == v['failed'] == v['out_of_order'] == 0
sys.exit(not eval(sys.argv[2]))
END
}

recorded() { # IMAGE SMP SECONDS HZ MODE EXPRESSION
	boot kvm "$BUILD/lab/$1.elf" '' --smp "$2" || return 1
	sleep 0.3
	stream "$3" "$4" "$5" || {
		cat "$T/err"
		return 1
	}
	says "$6"
}

for cc in $(compiler_of bpf); do
	[ -e "$BUILD/lab/shares-$cc-fp.elf" ] || continue
	check "shares-$cc, 997 Hz, counted" recorded shares-$cc-fp 1 2 997 counts \
		'whole() and shares(burn_a=.5, burn_b=.25, burn_c=.15, burn_d=.1)'
	check "shares-$cc, 10 kHz, ordered" recorded shares-$cc-fp 1 2 10000 ordered \
		'whole() and shares(burn_a=.5, burn_b=.25, burn_c=.15, burn_d=.1)'
	check "leaf-$cc: callers of frameless leaves" recorded leaf-$cc-fp 1 2 1997 ordered 'whole()'
	# complete_bpf has the other shapes.
	check "deep-$cc without frame pointers" recorded deep-$cc-nofp 1 2 997 counts \
		'whole(0.002) and v["depth"] > 190'
	check "smp-$cc: two vCPUs" recorded smp-$cc-fp 2 2 997 counts 'whole() and len(times) == 2'
done

# The time of a guest that mostly halts, against the host's counts of its vCPU's thread.
agrees() {
	boot kvm "$BUILD/lab/$1.elf" '' || return 1
	sleep 0.5
	# They differ by waits that the host has yet to count. On a busy host that is much of a short time.
	for seconds in 2 4 8 16 40; do
		agrees_for $seconds && return 0
		retry "the host's counts differ at the edges of $seconds s"
	done
	return 1
}
agrees_for() { # SECONDS
	# The busiest thread is the vCPU's.
	vcpu=$(for t in /proc/"$guest"/task/*; do
		echo "$(cut -d' ' -f1 "$t/schedstat") ${t##*/}"
	done | sort -n | tail -1 | cut -d' ' -f2)
	stream "$1" 997 ordered "/proc/$guest/task/$vcpu/schedstat" || return 1
	python3 - "$T/out" <<'END'
import sys
lines = open(sys.argv[1]).read().splitlines()
on, waits, wall = next(map(float, l.split()[1:]) for l in lines if l.startswith('host '))
t = next(l.split() for l in lines if l.startswith('times 0'))
t = dict(zip(t[2::2], map(float, t[3::2])))
whole = sum(t.values())
share = {'on': (t['guest'] + t['kvm'] + t['vmm']) / whole, 'stolen': t['stolen'] / whole,
         'idle': t['idle'] / whole}
host = {'on': on / wall, 'stolen': waits / wall, 'idle': 1 - (on + waits) / wall}
print(share, host, whole, wall)
sys.exit(any(abs(share[k] - host[k]) > 0.02 for k in share))
END
}
check 'a guest that halts: idle, stolen and running as the host counts them' agrees idle-gcc-fp
check 'a busy guest: the same' agrees shares-gcc-fp

# With the two capabilities alone, and no right but that of the VMM's own user.
caps_only() {
	elf=$BUILD/lab/shares-gcc-fp.elf
	# shellcheck disable=SC2016
	unshare -m sh -c '
		mknod "$1/kvm" c 10 232 && chmod 666 "$1/kvm" && mount --bind "$1/kvm" /dev/kvm || exit 77
		chmod 755 "$1" && touch "$1/serial2" && chmod 666 "$1/serial2"
		setpriv --bounding-set=-all --inh-caps=-all --reuid=1234 --regid=1234 --clear-groups \
			sh "$2/lab/boot" --accel kvm --append loop=1 --serial "file:$1/serial2" "$3" \
			</dev/null >"$1/boot2" 2>&1 &
		for _ in $(seq 600); do
			grep -q "^lab: running" "$1/serial2" && break
			sleep 0.1
		done
		both=-all,+bpf,+perfmon
		setpriv --bounding-set=$both --inh-caps=$both --ambient-caps=$both --reuid=1234 \
			--regid=1234 --clear-groups timeout 30 "$4" kvm:pid=$!,via=bpf "$3" 1 997 counts \
			>"$1/out" 2>"$1/err"
		r=$?
		kill $!
		exit $r
	' caps "$T" "$SRC" "$elf" "$S" || {
		cat "$T/err" "$T/boot2"
		return 1
	}
	says 'whole()'
}
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || ! unshare -m true 2>/dev/null; then
	skip 'CAP_BPF and CAP_PERFMON are enough' 'only root can drop capabilities here'
elif ! setpriv --reuid=1234 --clear-groups test -x "$S" -a -r "$SRC/lab/boot"; then
	skip 'CAP_BPF and CAP_PERFMON are enough' 'the build is in a place that others cannot read'
else
	check 'CAP_BPF and CAP_PERFMON are enough' caps_only
fi

# Without them it says so, and falls back.
no_caps() {
	boot kvm "$BUILD/lab/shares-gcc-fp.elf" '' || return 1
	setpriv --bounding-set=-all,+sys_ptrace,+dac_override "$S" "$target,via=bpf" "$elf" 1 99 counts \
		>"$T/out" 2>"$T/err" && return 1
	grep -q 'CAP_BPF' "$T/err" && [ "$(wc -l <"$T/err")" -eq 1 ]
}
# `record` takes the way that is left: it stops the guest, and says why.
falls_back() {
	timeout 60 setpriv --bounding-set=-all,+sys_ptrace,+dac_override "$U" record "$target" -e "$elf" -F 99 -d 2 \
		-o "$T/f.uniscope" --overwrite 2>"$T/err"
	status=$?
	cat "$T/err"
	[ $status -eq 0 ] && grep -q 'CAP_BPF and CAP_PERFMON are missing' "$T/err" &&
		grep -q '"method": *"pause"' "$T/f.uniscope/session.json" &&
		"$U" export --no-inline "$T/f.uniscope" -f folded -o "$T/f.folded" && grep -q burn_a "$T/f.folded"
}
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	skip 'without them it says what is missing' 'only root can drop capabilities here'
else
	check 'without them it says what is missing' no_caps
	check 'and records by stopping the guest' falls_back
fi
finish
