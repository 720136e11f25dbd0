#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh SOURCE_ROOT: git clone and `sh demo.sh` on a minimal Debian 12, as root and as an ordinary user. It builds
# the program and its own guest alone, and what it leaves opens in a browser. Started by chroot.sh; TAP.
set -u
SRC=$1
. "$SRC/tests/fresh/fresh.sh"

# The message to a user without rights, when packages are missing.
refused() {
	inside somebody sh -c 'cd && sh uniscope/demo.sh' 2>"$T/err" && return 1
	cat "$T/err"
	[ "$(wc -l <"$T/err")" = 1 ] && grep -q '^deps.sh: install as root: .*gcc' "$T/err"
}

# Again, and longer, only if there are too few samples for three functions.
demo() { # USER FOLDER
	for seconds in 5 20 60; do
		# Not optimised, which takes half of the time: all tests outside of this folder have what gcc's -O2 makes of it.
		inside "$1" sh -c "cd $2 && CFLAGS=-O0 DEMO_SECONDS=$seconds sh demo.sh" || return 1
		[ "$(sed 's/ [0-9]*$//; s/.*;//' "$ROOT$2/demo-out/demo.folded" | sort -u | wc -l)" -lt 3 ] || break
		echo "# $1: too few samples in $seconds s" >>"$T/retries"
	done
	for f in report.html demo.svg demo.folded console.log demo.uniscope/session.json; do
		[ -s "$ROOT$2/demo-out/$f" ] || { echo "no $f"; return 1; }
	done
}

# The steps of ninja: for the program, or for the one guest.
steps() { # FOLDER
	cut -sf4 "$ROOT$1/build/.ninja_log" | sort -u >"$T/steps"
	[ "$(wc -l <"$T/steps")" -gt 300 ] || { echo "no log of the build"; return 1; }
	! grep -vE '^(src/|lab/(demo-)?gcc-fp[.]|build[.]ninja$)' "$T/steps" || return 1
	grep -qx src/cli/uniscope "$T/steps" && grep -qx lab/demo-gcc-fp.elf "$T/steps"
}

# Packages that only `deps.sh test` names.
no_more() {
	sh "$SRC/deps.sh" demo --list | sort >"$T/demo"
	sh "$SRC/deps.sh" test --list | sort | comm -13 "$T/demo" - >"$T/others"
	for p in libcmocka-dev chromium cppcheck rustc gdb; do
		grep -qx $p "$T/others" || return 1
		! inside root dpkg-query -W -f '${db:Status-Status}' "$p" | grep -x installed || return 1
	done
}

# `deps.sh test` adds more than a gigabyte: configuring may have no more of it than this.
configured() {
	grep -qx libcmocka-dev "$T/others" &&
		inside root apt-get install -y --no-install-recommends libcmocka-dev &&
		inside root sh -c 'cd /srv/uniscope && meson setup build-test -Dtests=enabled -Dlab=enabled'
}

# A user gets the files that root has built. One object of each folder is missing, and all generated files, libraries, the program
# and the guest. So each kind of step is done again without rights.
handed_over() { # FOLDER USER
	(
		cd "$ROOT$1/build" && find src ! -name '*.c.o' -type f && find lab -type f &&
			find src -name '*.c.o' | sort | awk -F/ '{ f = $0; sub("/[^/]*$", "") } !seen[$0]++ { print f }'
	) >"$T/some" && [ "$(wc -l <"$T/some")" -gt 60 ] && mkdir "$T/first" &&
		tar -C "$ROOT$1/build" -cf - -T "$T/some" | tar -C "$T/first" -xf - &&
		(cd "$ROOT$1/build" && xargs rm <"$T/some" && rm -r build.ninja meson-*) && chroot "$ROOT" chown -R "$2" "$1"
}

# By another user, at another time.
same_bytes() { # FOLDER
	while read -r f; do
		cmp "$T/first/$f" "$ROOT$1/build/$f" || return 1
	done <"$T/some"
}

chroot "$ROOT" useradd -m -d /srv/somebody somebody
# git, and else only what a minimal Debian has.
check "there is git, and a repository" origin "$SRC"
check "a user clones it" inside somebody git clone -q /srv/uniscope.git /srv/somebody/uniscope
check "root clones it" inside root git clone -q /srv/uniscope.git /srv/uniscope
check "a user without rights is told in one line what root has to install" refused
check "as root: demo.sh installs, builds, records, and leaves its files" demo root /srv/uniscope
check "as root: its build made the program and its own guest alone" steps /srv/uniscope
check "as root: nothing that tests need was installed" no_more
check "as root: page and picture open in a browser" \
	python3 "$SRC/tests/fresh/opened.py" "$ROOT/srv/uniscope/demo-out"
check "a user gets it, without some of each kind" handed_over /srv/uniscope somebody
check "as a user: demo.sh builds these, records, and leaves its files" demo somebody /srv/uniscope
check "as a user: what was built again is the same" same_bytes /srv/uniscope
check "as a user: page and picture open in a browser" \
	python3 "$SRC/tests/fresh/opened.py" "$ROOT/srv/uniscope/demo-out"
check "the tests can be configured" configured
cat "$T/retries" 2>/dev/null
echo "1..$n"
