#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh UNISCOPE BUILD SRCROOT: `uniscope run` as a newcomer types it, with the mistakes of newcomers. These give one clear line
# and status 1, and leave neither a QEMU nor half a session behind. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
mkdir "$T/w" && cd "$T/w" || exit 1
case $U in
/*) ;;
*) U=$OLDPWD/$U ;;
esac
# A name of its own, to find our QEMU by.
demo=$T/w/demo.elf
cp "$(image demo)" "$demo"

no_qemu() {
	for f in $(grep -lsaF "$T/w/" /proc/[0-9]*/cmdline); do
		comm=$(cat "${f%cmdline}comm" 2>/dev/null)
		case $comm in
		qemu*)
			echo "left behind: $f $comm"
			return 1
			;;
		esac
	done
}

runs() { # ACCEL
	timeout 60 "$U" run --accel "$1" -d 0.5 "$demo" >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	[ -s demo.console.log ] && [ -z "$(find demo.uniscope demo.console.log -perm /077 | tee /dev/stderr)" ] && # nobody else can read them
		no_qemu && "$U" report -n 0 demo.uniscope >"$T/report" 2>&1 && grep lab_entry "$T/report" &&
		rm -r demo.uniscope demo.console.log
}

fails() { # WORDS OPTION...
	words=$1
	shift
	timeout 60 "$U" run -q -d 1 -o bad.uniscope "$@" >"$T/out" 2>&1
	refused $? "$T/out" 1 "$words" && no_qemu && [ ! -e bad.uniscope ]
}

# Whether it is seen before it crashes is a matter of speed.
crashes() { # ACCEL
	timeout 60 "$U" run -q -d 5 -o short.uniscope --accel "$1" --append crash=undefined "$demo" \
		>"$T/out" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		"$U" report short.uniscope || return 1
	else
		refused $status "$T/out" 1 'ended' && [ ! -e short.uniscope ] || return 1
	fi
	rm -rf short.uniscope
	no_qemu
}

qemu_missing() {
	PATH=/nonexistent "$U" run -q -d 1 -o bad.uniscope --accel tcg "$demo" >"$T/out" 2>&1
	refused $? "$T/out" 1 'cannot run qemu-system-x86_64: install it' && [ ! -e bad.uniscope ]
}

# A vCPU that has a hundredth of a CPU of the host stops for a sample when that sample has been given up. If QEMU is asked for its registers then,
# it waits for us, and we wait 10 s for it, and hold the guest meanwhile.
starved() {
	rm -rf slow.uniscope
	"$U" run -d 4 --accel kvm --method pause -F 99 -o slow.uniscope "$demo" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s slow.uniscope/guest-0/samples-vcpu0 || return 1
	for f in $(grep -lsaF "$demo" /proc/[0-9]*/cmdline); do
		! grep -q '^qemu' "${f%cmdline}comm" || qemu=${f%/cmdline}
	done
	# The thread that ran most is the vCPU's.
	for t in "$qemu"/task/*; do
		echo "$(cut -d' ' -f1 "$t/schedstat") ${t##*/}"
	done | sort -n | tail -1 | cut -d' ' -f2 >"$T/vcpu"
	if [ -e "$slow/tasks" ]; then cp "$T/vcpu" "$slow/tasks"; else echo "${qemu##*/}" >"$slow/cgroup.procs"; fi || return 1
	wait $run || return 1
	cat "$T/out"
	took=$(sed -n 's/.* samples in \([0-9]*\)\.[0-9]* s from 1 vCPU.*/\1/p' "$T/out")
	grep -q ' late' "$T/out" && [ "$took" -lt 10 ] && no_qemu
}

recording() {
	"$U" run -d 60 --accel "$1" -o "$2" "$demo" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$2/guest-0/samples-vcpu0" || {
		cat "$T/out"
		return 1
	}
	# shellcheck disable=SC2046 # paths without blanks
	folder=$(cat $(grep -lsaF "$demo" /proc/[0-9]*/cmdline) | tr '\0' '\n' |
		sed -n 's|^unix:\(/tmp/uniscope-run-[^/]*\)/qmp.sock.*|\1|p' | head -1)
	[ -d "$folder" ]
}

no_folder() {
	[ ! -e "$folder" ]
}

killed() { # ACCEL
	recording "$1" killed.uniscope || return 1
	kill -9 $run
	wait $run 2>/dev/null
	wait_for 60 no_qemu && wait_for 60 no_folder && "$U" report killed.uniscope && rm -r killed.uniscope
}

interrupted() { # ACCEL
	recording "$1" int.uniscope || return 1
	kill -INT $run
	wait $run || {
		cat "$T/out"
		return 1
	}
	no_qemu && "$U" report int.uniscope && rm -r int.uniscope
}

# QEMU has the accelerators that it was built with. Another machine would not help, so it is started once.
no_such_accelerator() {
	cat >qemu-without <<-END
		#!/bin/sh
		echo start >>"$T/starts"
		for a; do
			shift
			[ "\$a" != tcg ] || a=hvf
			set -- "\$@" "\$a"
		done
		exec qemu-system-x86_64 "\$@"
	END
	chmod +x qemu-without
	fails '.--accel tcg: ./qemu-without has no such accelerator; `./qemu-without -accel help` lists those' --accel tcg \
		--qemu ./qemu-without "$demo" && [ "$(wc -l <"$T/starts")" -eq 1 ]
}

# Root's QEMU has these rights: USER CAPABILITIES IMAGE OPTION...; $needs: those that it has at least.
rights() {
	user=$1 caps=$2 img=$3
	shift 3
	rm -f "$T/status"
	"$U" run -d 60 -o rights.uniscope "$img" "$@" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s rights.uniscope/guest-0/samples-vcpu0 || {
		cat "$T/out"
		return 1
	}
	for qemu in $(cat /proc/$run/task/*/children); do
		! grep -q '^qemu' /proc/$qemu/comm || cp /proc/$qemu/status "$T/status"
	done
	kill -INT $run
	wait $run && rm -r rights.uniscope
	cat "$T/status"
	grep -qE "^Uid:	$user	$user	$user	$user$" "$T/status" && grep -q '^NoNewPrivs:	1' "$T/status" || return 1
	for set in Prm Eff Amb; do
		has=0x$(sed -n "s/^Cap$set:	//p" "$T/status")
		[ $((has & ~caps)) -eq 0 ] && [ $((has & needs)) -eq $((needs)) ] || return 1
	done
}

# With an image that all may read, and with root's own. An option or a program of the user's may need NET_ADMIN, but never the
# rights to load modules, to trace, or to administer.
all_rights() { # ACCEL
	mkdir -p "$T/open" && chmod 755 "$T/open" && cp "$demo" "$T/open/open.elf" && chmod 711 "$T" && chmod 700 "$T/w" || return 1
	[ -z "${UNISCOPE_ALL-}" ] || { needs=0 && rights '187[0-9]+' 0 "$T/open/open.elf" --accel "$1"; } || return 1
	needs=4 && rights '187[0-9]+' 4 "$demo" --accel "$1" || return 1
	needs=0x1000 && rights 0 0x18474cf "$demo" --accel "$1" -- -name n || return 1
	[ -z "${UNISCOPE_ALL-}" ] || rights 0 0x18474cf "$demo" --accel "$1" --qemu qemu-system-x86_64
}

# Root of a user namespace may not become another user.
namespaced() {
	unshare -Ur "$U" run -q -d 1 --accel tcg -o u.uniscope "$demo" >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	rm -r u.uniscope
}

threads() { # all of them, so the guest is stopped
	"$U" run -q --threads -d 0.5 --accel "$1" -o t.uniscope "$BUILD/lab/$2.elf" >"$T/out" 2>&1 || {
		cat "$T/out"
		return 1
	}
	"$U" export --off-cpu -f folded t.uniscope | tee "$T/out" | grep -q ';' && rm -r t.uniscope
}

check 'no such image' fails 'cannot read image' "$T/w/none.elf"
check '--no-pause, where each sample is a pause' fails 'no-pause: a gdb stub gives no data' --accel tcg --no-pause "$demo"
echo 'this is no program' >text.elf
for accel in ${ACCELS:-$(by_default kvm "$accels")}; do
	check "demo under $accel" runs "$accel"
	check "a text file under $accel" fails 'is no ELF image' --accel "$accel" "$T/w/text.elf"
	check "/bin/true under $accel" fails 'its last words: qemu' --accel "$accel" /bin/true
	check "a guest that crashes at once under $accel" crashes "$accel"
	for v in waits-gcc-nofp waits-clang-nofp; do
		[ ! -e "$BUILD/lab/$v.elf" ] || check "threads of $v under $accel" threads "$accel" $v
	done
	check "SIGKILL leaves no QEMU under $accel" killed "$accel"
	check "Ctrl-C ends all under $accel" interrupted "$accel"
	if [ "$(id -u)" -eq 0 ]; then
		check "QEMU under $accel has few rights" all_rights "$accel"
	else
		skip "QEMU under $accel has few rights" 'only root has rights to give up'
	fi
done
# It gets 10 ms of each second, by the first version of control groups or the second.
slow=/sys/fs/cgroup/cpu/uniscope-test-$$
if [ ! -d "${slow%/*}" ]; then slow=/sys/fs/cgroup/uniscope-test-$$; fi
slow_down() {
	mkdir "$slow" && if [ -e "$slow/cpu.max" ]; then echo '10000 1000000' >"$slow/cpu.max"; else
		echo 1000000 >"$slow/cpu.cfs_period_us" && echo 10000 >"$slow/cpu.cfs_quota_us"
	fi
}
case $accels in
*kvm*)
	if slow_down 2>/dev/null; then
		check 'a vCPU that hardly gets a CPU is not held' starved
	else
		skip 'a vCPU that hardly gets a CPU is not held' 'no control group for CPU time can be made'
	fi
	[ ! -d "$slow" ] || rmdir "$slow"
	;;
esac
if unshare -Ur true 2>/dev/null; then
	check 'as root of a user namespace' namespaced
else
	skip 'as root of a user namespace' 'unshare is not permitted'
fi
if objcopy -O elf32-i386 /bin/true 32.elf 2>/dev/null; then
	check 'a 32-bit image' fails 'its last words: qemu' --accel tcg "$T/w/32.elf"
else
	skip 'a 32-bit image' 'objcopy cannot make one'
fi
check 'QEMU is not installed' qemu_missing
check 'QEMU lacks the accelerator' no_such_accelerator
check 'an option that QEMU does not know' fails 'its last words: qemu' --accel tcg "$demo" -- -nonsense
finish
