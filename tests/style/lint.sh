#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh clang-format|clang-tidy|cppcheck SRCROOT BUILDROOT: exit 0 clean, 77 tool absent.
set -u
tool=$1 src=$2 build=$3
command -v "$tool" >/dev/null 2>&1 || { echo "skip: $tool is not installed"; exit 77; }
cd "$src" || exit 1

sources() { git ls-files -co --exclude-standard "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

case $tool in
clang-format)
	sources '*.c' '*.h' | xargs clang-format --dry-run -Werror || exit 1
	;;
clang-tidy)
	# Findings go to stdout; stderr counts those of system headers, but also says what went wrong.
	# Programs for the kernel are not in the compilation database: they get their own flags.
	: >"$build/clang-tidy.err"
	{ sources 'src/*.c' | grep -v '\.bpf\.c$' | xargs -P 2 -n 4 clang-tidy --quiet --warnings-as-errors='*' \
		-p "$build" 2>>"$build/clang-tidy.err"; } || bad=1
	{ sources 'src/*.bpf.c' | xargs -I '{}' clang-tidy --quiet --warnings-as-errors='*' '{}' -- \
		-target bpf -mcpu=v3 -O2 -I"$build/layers/backend" 2>>"$build/clang-tidy.err"; } || bad=1
	[ -z "${bad-}" ] || { grep -v 'generated\.$' "$build/clang-tidy.err"; exit 1; }
	;;
cppcheck)
	# Only our own code, through the compilation database, so that include paths are right.
	# memleak is off: cppcheck 2.10 knows no cleanup attributes and calls each early return a leak;
	# the sanitizer build looks for leaks.
	mkdir -p "$build/cppcheck"
	cppcheck -j 2 --project="$build/compile_commands.json" --file-filter="$PWD/src/*" \
		--cppcheck-build-dir="$build/cppcheck" --enable=warning,performance,portability \
		--inline-suppr --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
		--suppress=toomanyconfigs --suppress=memleak --error-exitcode=1 --quiet 2>&1 || exit 1
	;;
esac
echo "$tool: clean"
