#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# container.sh UNISCOPE BUILD SRCROOT: runs in an ordinary container. It has process ids of its own,
# no types of the kernel, and the capabilities that Docker leaves. First it has no /dev/kvm, then it
# has. Messages say what is missing; the rest works. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/support/can.sh"
if [ -z "${IN_CONTAINER:-}" ]; then
	# The host is asked here: inside there is no /dev/kvm at first, whatever UNISCOPE_MUST has.
	NO_KVM=
	can kvm || NO_KVM=$why_not
	must=
	for part in ${UNISCOPE_MUST:-}; do
		case $part in
		kvm | bpf) ;;
		*) must="$must $part" ;;
		esac
	done
	export NO_KVM UNISCOPE_MUST="$must"
	unshare --mount --pid --fork true 2>/dev/null || {
		echo '1..0 # SKIP no namespaces may be made here'
		exit 0
	}
	IN_CONTAINER=outside exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
		sh "$0" "$@"
fi
if [ "$IN_CONTAINER" = outside ]; then
	for d in /sys/kernel/btf /sys/kernel/tracing /sys/kernel/debug; do
		[ ! -d $d ] || mount -t tmpfs -o ro none $d || exit 1
	done
	. "$(dirname "$0")/devices.sh"
	dev=$(mktemp -d) && few_devices "$dev" && mkdir "$dev/host" && mount --rbind /dev "$dev/host" &&
		mount --move "$dev" /dev && rmdir "$dev" || exit 1
	caps=-all
	for c in audit_write chown dac_override fowner fsetid kill mknod net_bind_service net_raw setfcap setgid \
		setpcap setuid sys_chroot; do
		caps=$caps,+$c
	done
	export IN_CONTAINER=inside
	setpriv --bounding-set "$caps" --inh-caps "$caps" sh "$0" "$@"
	exit
fi
. "$SRC/tests/e2e/guest.sh"

says() { # STATUS WORDS COMMAND...: that status, and those words (an extended regular expression).
	want=$1 words=$2
	shift 2
	"$@" >"$T/out" 2>&1
	status=$?
	cat "$T/out"
	[ $status = "$want" ] && grep -qE "$words" "$T/out"
}
# One line that says it.
refuses() { # WORDS COMMAND...
	says 1 "$@" && [ "$(wc -l <"$T/out")" = 1 ]
}
# report's functions are the guest's.
recorded() {
	"$U" report -n 0 "$T/s.uniscope" >"$T/report" && cat "$T/report" && grep -qE '% +app_main' "$T/report"
}
# Repeated, and longer, only if there was no sample.
records() { # WORDS OPTION...
	words=$1
	shift
	for seconds in 2 10 60; do
		rm -rf "$T/s.uniscope"
		says 0 "$words" "$U" "$@" -d $seconds -o "$T/s.uniscope" || return 1
		! recorded || return 0
		echo "too few samples in $seconds s"
	done
	return 1
}

# The kernel may have KVM all the same; one without it has no way by KVM at all.
missing='^ +no +device +there is no /dev/kvm here: .*--device /dev/kvm'
grep -q ' kvm$' /proc/misc || missing='^no +kvm '
check 'doctor: there is no /dev/kvm' says 0 "$missing" "$U" doctor
check 'doctor: so guests boot without KVM' grep -qE '^ +no +kvm +there is no /dev/kvm: .*TCG' "$T/out"
check 'doctor: only processes of this container are seen' grep -qE '^ +no +processes .*--pid=host' "$T/out"
check 'doctor: the rest works' sh -c 'for way in gdb core replay stream proc run; do grep -qE "^ok +$way " "$1" || exit 1; done' - "$T/out"
check 'ls: no guest in this container' says 0 'no guest is running in this container .*--pid=host' "$U" ls
check 'record: a pid of the host' refuses 'no process 999999 in this container' "$U" record kvm:pid=999999
check 'run: without KVM, and says so' records 'under QEMU with tcg' run "$(image demo)"
check 'a guest boots by TCG' boot tcg "$(image demo)" ''
check 'record: by its stub' records ' samples in ' record "$target" -e "$(image demo)"
check 'stacks: by its stub' says 0 app_main "$U" stacks "$target" -e "$(image demo)"
end_guest

[ -z "$NO_KVM" ] || {
	skip 'with /dev/kvm' "$NO_KVM"
	echo "1..$n"
	exit
}
: >/dev/kvm && mount --bind /dev/host/kvm /dev/kvm 2>/dev/null || ln -sf host/kvm /dev/kvm
check 'a guest boots by KVM' boot kvm "$(image demo)" ''
listed() {
	says 0 "kvm:pid=$guest .*stopped for each sample; .*doctor: btf, capabilities" "$U" ls &&
		[ "$(grep -c 'kvm:pid=' "$T/out")" = 1 ]
}
check 'ls: the guest of this container alone, how it is reached, and why' listed
check 'doctor: what the sampler in the kernel lacks' says 0 '^ +no +btf .*/sys/kernel/btf/vmlinux' "$U" doctor
check 'doctor: and that capabilities are missing' grep -qE '^ +no +capabilities +CAP_BPF and CAP_PERFMON' "$T/out"
check 'doctor: root is not told to be root' sh -c '! grep -E "(as|or) root(,|$)" "$1"' - "$T/out"
user_is_told() {
	public=$(mktemp -d) && chmod 755 "$public" && cp "$U" "$public/uniscope" || return 1
	setpriv --reuid=65534 --regid=65534 --clear-groups "$public/uniscope" doctor >"$T/out"
	rm -r "$public"
	cat "$T/out"
	grep -q 'CAP_BPF and CAP_PERFMON are missing: this container' "$T/out" &&
		grep -q '/dev/kvm may not be opened: .*adduser NAME kvm' "$T/out" && ! grep -E '(as|or) root(,|$)' "$T/out"
}
check 'doctor: nor is a user, whom it would not help' user_is_told
check 'doctor: KVM works' grep -qE '^ok +kvm ' "$T/out"
check 'record: with pauses' records '^uniscope: guest paused' record "$target" -e "$(image demo)"
check 'top: too' says 0 '"pause":[{]"p50_ns":[1-9]' "$U" top "$target" -e "$(image demo)" --json --count 1
check 'record --method bpf: refused in one line' refuses '/sys/kernel/btf/vmlinux.*CAP_BPF' \
	"$U" record "$target" -e "$(image demo)" --method bpf -d 1 -o "$T/b.uniscope"
check 'record --exits: refused in one line' refuses '/sys/kernel/btf/vmlinux.*CAP_BPF' \
	"$U" record "$target" -e "$(image demo)" --exits -d 1 -o "$T/b.uniscope"
check 'neither left a session' test ! -e "$T/b.uniscope"
echo "1..$n"
