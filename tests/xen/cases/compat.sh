# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 200
# The front ends for older tools on real domains. The files are judged outside.
image=/mnt/guests/xen-calls1-gcc-fp.elf
[ -e $image ] || image=/mnt/guests/xen-calls1-clang-fp.elf
mkdir "$out/files"
config() { # TYPE
	cat >"$T/app.cfg" <<-EOF
		name = "app"
		type = "$1"
		kernel = "$image"
		memory = 64
		vcpus = 1
		extra = "loop=1"
		tsc_mode = "native"
		on_reboot = "destroy"
	EOF
}

traces() { # TYPE
	uniscope uniprof -F 50 -T 2 "$out/raw-$1" "$dom" || return 1
	uniscope uniprof -F 50 -T 1 -q -E $image "$out/named-$1" "$dom" || return 1
	uniscope uniprof --no-pause -F 50 -T 1 -q -E $image "$out/running-$1" "$dom" || return 1
	echo "$dom" >"$out/dom-$1"
}
left_running() { xl domid "$name" && [ "$(state "$dom" | tr -d rb)" = "" ]; }
# The registers of a vCPU that stands still: the same as those of Xen's own xenctx, all of them.
registers() {
	sed -n '/^flags/,/^dr7/p'
}
same_registers() {
	xl pause "$dom"
	xenctx -a "$dom" 2>&1 | registers >"$T/theirs"
	uniscope xenctx -a "$dom" | registers >"$T/ours"
	xl unpause "$dom"
	grep -q '^dr7' "$T/theirs" && diff "$T/theirs" "$T/ours"
}
running_stack() { uniscope stacks --no-pause "xen:dom=$dom" | grep kmain; }
views() { uniscope xenctx -S "$dom" && uniscope xenctx -a "$dom" >"$out/ctx-$1"; }

for type in pv pvh; do
	check "$type: a guest runs" start "$CASE-$type" -t $type calls1 loop=1
	check "$type: uniprof with a domain's number" traces $type
	check "$type: xenctx with a domain's number" views $type
	check "$type: all registers are as Xen's xenctx shows them" same_registers
	check "$type: a stack without a pause" running_stack
	check "$type: the guest was left running" left_running
	xl destroy "$dom"
done

killed() {
	(cd "$out/files" && exec uniscope run --xl "$T/app.cfg" -q -d 100 -o killed) &
	pid=$!
	wait_for 60 test -e "$out/files/killed/guest-0/metadata" && kill -9 $pid && wait_for 60 only_dom0
}
record() { (cd "$out/files" && uniscope run --xl "$T/app.cfg" -e $image -F 50 -d 2 --five-files); }
config pvh
check 'run --xl' record
check 'run --xl destroyed the domain' nothing_left
mv "$out/files" "$out/run"
mkdir "$out/files"
check 'run --xl killed: somebody destroys the domain' killed
script() {
	(cd "$out/files" && uniscope generate-flame-graph -f 50 -t 2 -n app -c "$T/app.cfg" -x $image) >"$out/said"
}
rm -rf "$out/files"
mkdir "$out/files"
config pv
check 'generate-flame-graph' script
check 'generate-flame-graph leaves the domain' test -n "$(xl domid app)"
xl destroy app
check 'nothing is left' nothing_left
