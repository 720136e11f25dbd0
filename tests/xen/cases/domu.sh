# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 5000
# A Linux domain without privileges profiles another domain from inside that guest. The guest grants
# it the page of its port; it sees nothing else of the guest. The recording comes out through its
# console, for judge/domu.sh.
app=trace-shares-gcc-fp
image=/usr/local/bin/xen-$app.elf
domu=$CASE-reader
log=/mnt/log/console/guest-$domu.log

begin_domu() {
	cat >"$T/domu" <<-CONFIG
		name="$domu"
		type="pv"
		kernel="/mnt/domu/vmlinux"
		ramdisk="/mnt/domu/initrd"
		memory=224
		vcpus=1
		extra="console=hvc0 panic=-1 quiet cryptomgr.notests rodata=off"
		tsc_mode="native"
		on_reboot="destroy"
		on_crash="preserve"
	CONFIG
	xl create -q "$T/domu" && reader=$(xl domid "$domu") && said "$domu" '^domu: is up' 100 &&
		console=$(xenstore-read "/local/domain/$reader/console/tty") && commands=0
}

# in_domu COMMAND: there; what it says, and its status.
begin_in_domu() {
	commands=$((commands + 1))
	was=$(wc -l <"$log")
	echo "$*" >"$console"
}
end_in_domu() {
	said "$domu" "^domu: command $commands ended" 200
	tail -n "+$((was + 1))" "$log" | tr -d '\r' >"$T/said"
	cat "$T/said"
	grep -q "^domu: command $commands ended with 0" "$T/said"
}
in_domu() {
	begin_in_domu "$@"
	end_in_domu
}

unprivileged() {
	in_domu 'cat /sys/hypervisor/type /sys/hypervisor/uuid; uniscope record xen:dom=1; test $? = 1' &&
		grep -q '^xen' "$T/said" && ! grep -q '^0000' "$T/said"
}
# The file that it was booted from. It has changed itself since, more than most: alternatives, Xen's own calls.
known() {
	uniscope stacks "xen:dom=$reader" -e /mnt/domu/vmlinux >"$T/said" 2>"$T/err"
	status=$?
	cat "$T/said" "$T/err"
	[ $status -eq 0 ] && grep -q '^vCPU 0' "$T/said" && ! grep -q 'not the image\|not exactly' "$T/err"
}
begin_guest() { # TYPE
	start "$CASE-$1" -t "$1" $app loop=1 tick=1000 port=1 to="$reader"
}
# From inside by that domain, and by dom0 for the guest's books.
both() {
	uniscope record "xen:dom=$dom" -q -F 20 -d 0 --watch lab_truth -o "$out/out.uniscope" &
	books=$!
	in_domu "uniscope record stream:grant=$dom -e $image -F 500 -d 1 -o in.uniscope"
	status=$?
	kill -INT $books
	wait $books && [ $status -eq 0 ]
}
# It has no share.
fetched() {
	in_domu 'tar -cf - in.uniscope | gzip | base64' >/dev/null &&
		grep -v '^domu:' "$T/said" | base64 -d | gzip -d | tar -xf - -C "$out" &&
		uniscope export --no-inline "$out/in.uniscope" --all-time -f json -o "$out/in.json"
}
# dom0 may do much, but a grant is for the one whom it names.
not_for_dom0() {
	! uniscope record "stream:grant=$dom" -e $image -o "$T/n.uniscope" 2>"$T/said" &&
		grep 'cannot be mapped' "$T/said"
}
# The guest goes away: what there is, and nothing holds its memory any more.
destroyed() {
	begin_in_domu "uniscope record stream:grant=$dom:8 -e $image -F 100 -d 0 -o gone.uniscope" \
		'&& uniscope report gone.uniscope | grep burn_a'
	wait_for 100 said_since 'recording .* s, [1-9][0-9]* samples'
	xl destroy "$dom"
	end_in_domu && grep -q 'does not answer' "$T/said" && wait_for 10 two_domains
}
said_since() { # WORDS
	tail -n "+$((was + 1))" "$log" | grep -q "$1"
}
two_domains() {
	[ "$(xl list | wc -l)" -eq 3 ]
}

# Saved, and it goes on (a checkpoint): so does the recording.
checkpointed() {
	samples=$T/c.uniscope/guest-0/samples-vcpu0
	rm -f "$T/said"
	uniscope record "xen:dom=$reader" -e /mnt/domu/vmlinux -F 50 -d 0 -o "$T/c.uniscope" >"$T/said" 2>&1 &
	recorder=$!
	wait_for 60 test -s "$samples" && xl save -c "$domu" /dev/null >"$T/save" 2>&1 &&
		has=$(wc -c <"$samples") && wait_for 60 more_than $((has + 4096)) && kill -0 $recorder
	status=$?
	kill -INT $recorder
	wait $recorder
	ended=$?
	cat "$T/said" "$T/save"
	[ $status -eq 0 ] && [ $ended -eq 0 ] && ! grep 'was suspended' "$T/said" && grep 'samples in .* from 1 vCPU' "$T/said"
}
more_than() { [ "$(wc -c <"$samples")" -gt "$1" ]; } # BYTES

check 'a Linux domain boots' begin_domu
check 'which has no privileges' unprivileged
check 'dom0 looks at it by the file that it was booted from' known
check 'pvh: a guest that grants it its port' begin_guest pvh
check 'pvh: recorded from there' both
check 'pvh: the session comes out' fetched
check 'pvh: calls are traced from there' in_domu "uniscope trace record stream:grant=$dom -e $image -d 0.5 --filter 'burn_*' -o t.uniscope && uniscope trace report t.uniscope | grep burn_a"
check 'nobody else has the port' not_for_dom0
check 'one after the other' in_domu "uniscope record stream:grant=$dom -q -e $image -d 0 -o 1.uniscope & until grep -q uniscope/grant /proc/net/unix; do usleep 100000; done; uniscope record stream:grant=$dom -e $image -o 2.uniscope 2>&1 | grep 'another uniscope' && kill -INT \$! && wait \$!"
check 'no such grant, no such domain' in_domu "uniscope record stream:grant=$dom:9 -e $image -o n.uniscope 2>&1 | grep 'cannot be mapped' && uniscope record stream:grant=999 -e $image -o n.uniscope 2>&1 | grep 'offers us no port'"
check 'pvh: destroyed meanwhile' destroyed
check 'pv: a guest that grants it its port' begin_guest pv
check 'pv: recorded from there' in_domu "uniscope record stream:grant=$dom -e $image -F 200 -d 0.4 -o pv.uniscope && uniscope report pv.uniscope | grep burn_a"
xl destroy "$dom"
check 'it is saved and goes on, and so does its recording' checkpointed
xl destroy "$reader"
check 'nothing is left' nothing_left
