#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing, builds uniscope, boots our demo unikernel under QEMU, profiles it and
# leaves a flame graph in demo-out/. DEMO_SECONDS sets the length of the recording (10). On a host that has
# too little time for the guest it records for longer, up to 12 times as long, and then gives up.
set -eu
cd "$(dirname "$0")"
seconds=${DEMO_SECONDS:-10}
out=demo-out

step() { printf '\n== %s\n' "$*"; }

step "packages"
sh deps.sh demo

# Without debug information of the program itself, which takes a seventh of the compiler's time.
step "build"
[ -f build/build.ninja ] || meson setup build -Dtests=disabled -Dlab=disabled -Ddebug=false >build-demo.log 2>&1 ||
	{ tail -20 build-demo.log >&2; exit 1; }
rm -f build-demo.log
ninja -C build src/cli/uniscope lab/demo-gcc-fp.elf
uniscope=build/src/cli/uniscope

# Samples in which the guest ran: exports leave out the time that the host took.
samples() {
	"$uniscope" export "$out/demo.uniscope" -f folded -o "$out/demo.folded"
	awk '{ n += $NF } END { print n + 0 }' "$out/demo.folded"
}
for times in 1 4 12; do
	long=$(awk -v s="$seconds" -v n=$times 'BEGIN { print s * n }')
	step "boot the demo unikernel, record it for $long s"
	rm -rf "$out"
	mkdir "$out"
	"$uniscope" run build/lab/demo-gcc-fp.elf -F 199 -d "$long" -o "$out/demo.uniscope" \
		--console "$out/console.log"
	nr=$(samples)
	[ "$nr" -lt 100 ] || break
	echo "demo.sh: only $nr samples of the guest in $long s: this host is busy with something else" >&2
done
if [ "$nr" -lt 100 ]; then
	echo "demo.sh: that is too few for a profile: try again when the host is less busy" >&2
	exit 1
fi

step "top functions"
"$uniscope" report "$out/demo.uniscope" --max 15

"$uniscope" report --html "$out/report.html" "$out/demo.uniscope"
"$uniscope" export "$out/demo.uniscope" -f svg -o "$out/demo.svg" -O title="uniscope demo"

step "done"
cat <<END
Open next:
  $out/report.html     everything on one page, in a browser: press ? for the keys
  $out/demo.svg        the flame graph, in a browser: click zooms, Ctrl-F searches
  $out/demo.folded     folded stacks, for other tools
  $out/demo.uniscope   the session: $uniscope report $out/demo.uniscope --tree
  $out/console.log     what the guest printed
END
