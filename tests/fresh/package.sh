#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# package.sh SOURCE_ROOT BUILD_DIR: the Debian packages, built here, without errors of lintian. They
# are installed into a minimal Debian 12 with nothing else from the tree. Started by chroot.sh; TAP.
set -u
SRC=$1 BUILD=$2
. "$SRC/tests/fresh/fresh.sh"
for tool in dh lintian dpkg-buildpackage; do
	command -v $tool >/dev/null || {
		echo "1..0 # SKIP $tool is not installed (sh deps.sh test)"
		exit 0
	}
done

commit=$(git -c safe.directory='*' -C "$SRC" rev-parse --short=12 HEAD)
packages() {
	tree "$SRC" /build/uniscope root || return 1
	# Its commit is what the tree's is, though git's folder is not there.
	echo "$commit" >"$ROOT/build/uniscope/COMMIT"
	# Debug information takes a seventh of the time, and would be in a package that nobody looks at. Not optimised, which takes
	# half: all other tests have what gcc's -O2 makes of it.
	(cd "$ROOT/build/uniscope" && DEB_BUILD_OPTIONS='noautodbgsym noopt' DEB_CFLAGS_STRIP=-g dpkg-buildpackage -b -us -uc) || return 1
	for p in uniscope uniscope-xen uniscope-guest; do
		set -- "$ROOT/build/$p"_*_amd64.deb
		[ -s "$1" ] && cp "$1" "$ROOT/srv/$p.deb" || return 1
	done
}
# Built elsewhere, at another time, as another would set things up: some of each kind are the same bytes. The packages' own tools
# see to what is in them.
built_again() {
	there=/srv/a/much/longer/place
	made=$(cd "$ROOT/build/uniscope/obj-x86_64-linux-gnu" && find src docs completions guest -type f -size +0 \
		\( -name '*.bpf.o' -o -name '*_object.c' -o -name '*_js.c' -o -name libuniscope-guest.a -o -name exporters.c.o \
		-o -name commit.c -o -name cmd_record.c.o \) | sort)
	[ "$(echo "$made" | wc -l)" -ge 9 ] && tree "$SRC" $there root && echo "$commit" >"$ROOT$there/COMMIT" &&
		(
			umask 077
			cd "$ROOT$there" && export DH_INTERNAL_OPTIONS=--buildsystem=meson TZ=Asia/Tokyo LC_ALL=C.UTF-8 HOME=/nowhere PYTHONHASHSEED=1 DEB_BUILD_OPTIONS=noopt DEB_CFLAGS_STRIP=-g &&
				debian/rules override_dh_auto_configure && ninja -C obj-x86_64-linux-gnu $made
		) || return 1
	for f in $made; do
		cmp "$ROOT/build/uniscope/obj-x86_64-linux-gnu/$f" "$ROOT$there/obj-x86_64-linux-gnu/$f" || return 1
	done
	rm -rf "$ROOT/build/uniscope" "$ROOT/srv/a"
}
check 'dpkg-buildpackage makes the three packages' packages
check 'a build elsewhere gives the same bytes' built_again
check 'lintian finds no error' lintian --allow-root --fail-on error "$ROOT"/srv/*.deb

# Packages of Debian that the checks use; what ours depend on comes with them.
others() {
	inside root apt-get update &&
		inside root apt-get install -y --no-install-recommends qemu-system-x86 gcc libc6-dev pkg-config \
			man-db bash-completion
}
check 'what else the checks use is installed' others
snapshot() {
	inside root find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root -o -path /srv -o -path /build \
		-o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}
# Twice, for what ours pull in is not ours.
needs=$(for p in "$ROOT"/srv/*.deb; do dpkg-deb -f "$p" Depends; done | tr ',' '\n' |
	sed 's/^ *//; s/[ (|].*//' | grep -v '^uniscope' | sort -u)
# shellcheck disable=SC2086
check 'what they depend on is installed' inside root apt-get install -y --no-install-recommends $needs
snapshot >"$T/before"
check 'the packages are installed' inside root sh -c 'cd /srv && dpkg -i ./*.deb'

check '--version tells the commit' sh -c 'chroot "$1" uniscope --version | grep -F "($2)"' - "$ROOT" "$commit"
doctor() {
	inside root uniscope doctor >"$T/doctor" && cat "$T/doctor" && grep -q '^ok  *run ' "$T/doctor" &&
		grep -qE '^ +ok +module ' "$T/doctor"
}
check 'doctor: can run images, and has the Xen module' doctor

record() {
	for seconds in 5 20 60; do
		inside root sh -c "cd && rm -rf demo demo.* && mkdir demo && uniscope run demo-gcc-fp.elf -F 199 -d $seconds -o demo.uniscope" &&
			inside root sh -c 'cd && uniscope report --html demo/report.html demo.uniscope &&
				uniscope export demo.uniscope -f folded -o demo/demo.folded &&
				uniscope export demo.uniscope -f svg -o demo/demo.svg' || return 1
		[ "$(sed 's/ [0-9]*$//; s/.*;//' "$ROOT/root/demo/demo.folded" | sort -u | wc -l)" -lt 3 ] || return 0
		echo "# too few samples in $seconds s" >>"$T/retries"
	done
	return 1
}
cp "$BUILD/lab/demo-gcc-fp.elf" "$SRC/tests/fresh/guest.c" "$ROOT/root/"
check 'a guest is booted and recorded' record
check 'its page and picture open in a browser' python3 "$SRC/tests/fresh/opened.py" "$ROOT/root/demo"

guest() {
	inside root sh -c 'cd && gcc -O2 -no-pie -fno-pie -fcf-protection=none $(pkg-config --variable=traced_gcc uniscope-guest) guest.c \
		$(pkg-config --cflags --libs uniscope-guest) $(pkg-config --variable=traced_link uniscope-guest) -o guest &&
		uniscope trace prepare guest && ./guest >ready & pid=$!
		for i in $(seq 100); do [ ! -s ~/ready ] || break; sleep 0.1; done
		cd && uniscope trace record -e guest --filter outer --filter inner -d 2 -o calls.uniscope "proc:pid=$(pidof guest)" &&
			uniscope trace report --json calls.uniscope >calls.json; status=$?; kill "$pid" $(pidof guest); exit $status' &&
		cat "$ROOT/root/calls.json" && python3 - "$ROOT/root/calls.json" <<'END'
import json, sys
calls = {f["function"]: f["calls"] for f in json.load(open(sys.argv[1]))["functions"]}
assert calls["outer"] > 3 and abs(calls["inner"] - 3 * calls["outer"]) <= 6, calls
END
}
check 'a guest of one file links the tracer by pkg-config, and its calls are counted' guest

# Every page is there to be read, and every document that one names.
manuals() {
	inside root dpkg -L uniscope | grep 'man1/.*\.gz$' >"$T/pages"
	[ "$(wc -l <"$T/pages")" -gt 15 ] || return 1
	for page in $(sed 's,.*/,,; s,\.1\.gz$,,' "$T/pages"); do
		inside root sh -c "MANWIDTH=400 man --no-hyphenation --no-justification --warnings $page" >"$T/page" 2>"$T/warnings" || { cat "$T/warnings"; return 1; }
		grep -q "$page" "$T/page" && [ ! -s "$T/warnings" ] || { head -3 "$T/page" "$T/warnings"; return 1; }
		grep -oE '/usr/[A-Za-z0-9./-]*[A-Za-z0-9]' "$T/page" | sort -u | grep '^/usr/share/doc' >"$T/named"
		while read -r f; do
			[ -f "$ROOT$f" ] || { echo "$page names $f"; return 1; }
		done <"$T/named"
	done
	inside root sh -c 'man uniscope-trace' | tr -d '\n ' | grep -q 'share/doc/uniscope-guest/README.md'
}
check 'man: every page, and the documents that they name are there' manuals

completes() {
	inside root bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader "$1"
		COMP_LINE=$2 COMP_POINT=${#2}; _uniscope; echo "${COMPREPLY[*]}"' - "$1" "$2" | grep -x -e "$3"
}
check 'bash completes commands' completes uniscope 'uniscope rec' record
check 'and options of an older tool' completes uniprof 'uniprof --missed' --missed-deadlines
their_files() {
	[ -s "$ROOT/usr/share/zsh/vendor-completions/_uniscope" ] &&
		[ "$(readlink "$ROOT/usr/share/fish/vendor_completions.d/uniprof.fish")" = uniscope.fish ]
}
check 'zsh and fish find theirs' their_files

# The older tools by their names, and by the names of their files with the folder of links first.
tools() {
	printf 'function,tid,latency_us,latency_us_self\r\nf,1,5,5\r\n' >"$ROOT/root/trace.csv"
	inside root sh -c 'cd && summarize-trace trace.csv && uniscope summarize-trace trace.csv' >"$T/tools" &&
		inside root sh -c 'cd && PATH=$(dirname /usr/lib/*/uniscope/compat/xenctx):$PATH && summarize-trace.awk trace.csv && xenctx --help' >>"$T/tools" &&
		cat "$T/tools" && [ "$(grep -c '^f,1,' "$T/tools")" = 3 ] && grep -q 'uniscope compat xenctx:' "$T/tools"
}
check "older tools' names are links" tools

purged() {
	inside root dpkg --purge uniscope-xen uniscope-guest uniscope || return 1
	snapshot >"$T/after"
	[ -s "$T/before" ] && diff "$T/before" "$T/after"
}
check 'purge leaves nothing' purged
cat "$T/retries" 2>/dev/null
echo "1..$n"
