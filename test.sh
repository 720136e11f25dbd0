#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing, builds with gcc and with clang, runs every test, and the unit and fuzz
# tests again under ASan and UBSan. Ends with "N passed, N failed, N skipped" over all of them.
set -u
cd "$(dirname "$0")" || exit 1
start=$(date +%s)
status=0

step() { printf '\n== %s (%s s)\n' "$*" "$(($(date +%s) - start))"; }

step "packages"
sh deps.sh test || exit 1

# build DIR COMPILER OPTIONS...: configure once, compile; a failure ends it all.
build() {
	dir=$1 cc=$2
	shift 2
	if [ ! -f "$dir/build.ninja" ]; then
		CC=$cc meson setup "$dir" --werror "$@" >"$dir.log" 2>&1 || { tail -30 "$dir.log"; exit 1; }
	fi
	rm -f "$dir.log"
	ninja -C "$dir" >"$dir/ninja.log" 2>&1 || { grep -E 'error|warning|FAILED' "$dir/ninja.log" | head -40; exit 1; }
}

step "build: gcc"
build build-test gcc
step "all tests: gcc"
meson test -C build-test --no-rebuild --print-errorlogs || status=1

step "build: clang"
build build-clang clang -Dlab=false
step "unit and fuzz tests: clang"
meson test -C build-clang --no-rebuild --print-errorlogs --suite unit --suite fuzz || status=1

step "build: ASan and UBSan"
build build-asan gcc -Dlab=false -Db_sanitize=address,undefined
step "unit and fuzz tests: ASan and UBSan"
ASAN_OPTIONS=detect_leaks=1:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	meson test -C build-asan --no-rebuild --print-errorlogs --suite unit --suite fuzz \
	--timeout-multiplier 4 || status=1

step "totals"
python3 tests/totals.py build-test build-clang build-asan || status=1
exit $status
