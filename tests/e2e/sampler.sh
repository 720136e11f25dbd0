#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sampler.sh UNISCOPE BUILD SRCROOT: the sampler in the host's kernel. It checks shares of time and call chains against the guests'
# own books, and its cost for a guest. It runs without root, too, and leaves nothing behind when it is killed. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
here=$SRC/tests/e2e
need kvm bpf

record() { # SECONDS HZ [OPTION...]
	seconds=$1 hz=$2
	shift 2
	timeout 120 "$U" record "$target,via=bpf" -F "$hz" -d "$seconds" -e "$elf" -o "$T/s.uniscope" \
		--overwrite "$@" >"$T/log" 2>&1 || {
		cat "$T/log"
		return 1
	}
}

# A guest charges its books when a function ends, and the host may have been elsewhere just then. The longer the recording, the less
# that counts.
truth() { # IMAGE HZ
	boot kvm "$BUILD/lab/$1.elf" '' || return 1
	sleep 1
	for seconds in 5 10 20 40; do
		record $seconds "$2" --watch lab_truth || return 1
		"$U" export --no-inline "$T/s.uniscope" --all-time -f json -o "$T/s.json" || return 1
		python3 "$here/judge.py" --stacks "$T/s.json" --session "$T/s.uniscope" \
			--graph "$BUILD/lab/$1.graph" --min-complete 0.9995 --rate "$2" >"$T/verdict" 2>&1
		judgement=$?
		[ $judgement -eq 3 ] || break
		retry "$1 at $2 Hz: too few samples in $seconds s"
	done
	cat "$T/verdict" "$T/log"
	[ $judgement -eq 0 ] && sed -n '/^samples\|^chains\|^verdict/s/^/# /p' "$T/verdict" >&3
}

# A process's objects in the kernel, as "KIND ID" lines.
kernel_objects() { # PID
	cat /proc/"$1"/fdinfo/* 2>/dev/null |
		sed -n 's/^\(prog\|map\|link\)_id:[[:space:]]*/\1 /p' | sort -u
}
loaded() { # PID
	kernel_objects "$1" >"$T/objects" && grep -q '^prog' "$T/objects" && grep -q '^link' "$T/objects"
}
gone() {
	while read -r kind id; do
		bpftool "$kind" show id "$id" >/dev/null 2>&1 && return 1
	done <"$T/objects"
	return 0
}
killed() {
	boot kvm "$(image shares)" '' || return 1
	for round in $(by_default '2 5' '1 2 3 4 5'); do
		"$U" record "$target,via=bpf" -F 997 -d 60 -e "$elf" -q -o "$T/k$round.uniscope" &
		victim=$!
		wait_for 60 loaded $victim || return 1
		sleep 0.$round
		kill -9 $victim
		wait $victim 2>/dev/null
		wait_for 60 gone || {
			echo 'left behind of:'
			cat "$T/objects"
			return 1
		}
	done
	beats
}

# Two capabilities are enough, for a user who is neither root nor has any other.
capable() {
	cp "$U" "$T/uniscope" && chmod 755 "$T" "$T/uniscope" &&
		setcap cap_bpf,cap_perfmon+ep "$T/uniscope" || return 1
	mkdir -p "$T/nobody" && cp "$(image shares)" "$T/nobody/app.elf" && chown -R 65534 "$T/nobody"
	end_guest
	nobody="setpriv --reuid=65534 --regid=65534 --groups=$(stat -c %g /dev/kvm) --inh-caps=-all"
	rm -f "$T/serial"
	$nobody "$SRC/lab/boot" --accel kvm --append loop=1 --serial "file:$T/nobody/serial" \
		"$T/nobody/app.elf" </dev/null >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 grep -q '^lab: running' "$T/nobody/serial" || return 1
	$nobody "$T/uniscope" record "kvm:pid=$guest,via=bpf" -F 997 -d 0.3 -q \
		-o "$T/nobody/s.uniscope" && "$T/uniscope" report --force "$T/nobody/s.uniscope" >"$T/report" &&
		grep 'pauses  *none' "$T/report" && grep -q burn_a "$T/report" || return 1
	$nobody "$T/uniscope" doctor "kvm:pid=$guest" >"$T/out" &&
		grep -q '^ *ok *kvm-bpf .*never stopped' "$T/out" || return 1
	# They are no right to another user's process: what is, is said.
	other='setpriv --reuid=65533 --regid=65533 --clear-groups --inh-caps=-all'
	lacks='belongs to uid 65534, this is uid 65533, and CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are missing'
	$other "$T/uniscope" doctor "kvm:pid=$guest" >"$T/out"
	[ $? = 1 ] && grep "no *process .*$lacks" "$T/out" || return 1
	$other "$T/uniscope" stacks "kvm:pid=$guest" >"$T/out" 2>"$T/err"
	refused $? "$T/err" 1 "$lacks" || return 1
	$other "$T/uniscope" doctor "proc:pid=$guest" >"$T/out"
	[ $? = 1 ] && grep "no *process .*may not be looked into" "$T/out" || return 1
	setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep "$T/uniscope"
	$other "$T/uniscope" stacks "kvm:pid=$guest,via=bpf" >"$T/out" 2>&1 &&
		grep -q app_main "$T/out" || return 1
	# And without them it says which, and how to get them.
	setcap -r "$T/uniscope"
	$nobody "$T/uniscope" doctor "kvm:pid=$guest" >"$T/out" &&
		grep 'no *kvm-bpf  *CAP_BPF and CAP_PERFMON are missing' "$T/out" || return 1
	$nobody "$T/uniscope" record "kvm:pid=$guest,via=bpf" -d 1 -q -o "$T/nobody/t.uniscope" \
		2>"$T/err"
	refused $? "$T/err" 1 'CAP_BPF and CAP_PERFMON are missing.*setcap'
}

# As Debian's kernels with perf_event_paranoid 3 do it to a user with these two capabilities.
no_events() {
	boot kvm "$(image shares)" '' || return 1
	strace -f -o "$T/strace" -e trace=perf_event_open -e inject=perf_event_open:error=EACCES "$U" record "$target" \
		-q -d 0.3 -o "$T/e.uniscope" --overwrite >"$T/out" 2>&1 || { cat "$T/out"; return 1; }
	"$U" report "$T/e.uniscope" | grep 'stopped for each sample .*perf events are not permitted'
}

# There, threads have other numbers than those that the host's kernel takes.
namespaced() {
	unshare -p -f -m --mount-proc timeout 120 "$U" run -d 0.5 --exits --append loop=1 -o "$T/ns.uniscope" "$(image shares)" >"$T/log" 2>&1 || {
		cat "$T/log"
		return 1
	}
	cat "$T/log"
	"$U" export -f json "$T/ns.uniscope" -o "$T/ns.json" && python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))
guest = s["recording"]["guests"][0]
assert guest["method"] == "bpf" and guest["complete"] == 1 and s["total"] > 0 and guest["vcpus"][0]["exits"] > 0, s
' "$T/ns.json"
}

exec 3>&1
for cc in $(compiler_of bpf); do
	[ -e "$BUILD/lab/shares-$cc-fp.elf" ] || continue
	[ -n "${UNISCOPE_ALL-}" ] || break # by default truth_bpf judges the same at 997 Hz
	check "shares-$cc at 997 Hz" truth shares-$cc-fp 997
	check "shares-$cc at 10,000 Hz" truth shares-$cc-fp 10000
done
check 'perf events that the kernel refuses: it stops the guest, and says why' no_events
if command -v bpftool >/dev/null; then
	check 'killed at any instant, it leaves nothing in the kernel, and the guest runs on' killed
else
	skip 'killed at any instant, it leaves nothing in the kernel' 'bpftool is not installed'
fi
if [ "$(id -u)" = 0 ] && command -v setcap >/dev/null && command -v setpriv >/dev/null; then
	check 'CAP_BPF and CAP_PERFMON are enough; without them it says so' capable
else
	skip 'CAP_BPF and CAP_PERFMON are enough' 'not root, or no setcap and setpriv'
fi
if unshare -p -f -m --mount-proc true 2>/dev/null; then
	check 'in a pid namespace of its own' namespaced
else
	skip 'in a pid namespace of its own' 'unshare is not permitted'
fi
finish
