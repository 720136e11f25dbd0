#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh clang-format|clang-tidy|cppcheck SRCROOT BUILDROOT: exit 0 clean, 77 tool absent.
set -u
tool=$1 src=$2 build=$3
command -v "$tool" >/dev/null 2>&1 || { echo "skip: $tool is not installed"; exit 77; }
cd "$src" || exit 1

git rev-parse -q HEAD >/dev/null 2>&1 || { echo "skip: this is no git repository"; exit 77; }

# The files with these names, which must be some.
sources() {
	git ls-files -co --exclude-standard "$@" >"$build/$tool.sources" && [ -s "$build/$tool.sources" ] || {
		echo "$tool: git lists no files" >&2
		return 1
	}
	while read -r f; do [ ! -f "$f" ] || echo "$f"; done <"$build/$tool.sources"
}

# The commit where this branch left main; on main itself, the one before.
base_find() {
	for branch in "${UNISCOPE_BASE:-origin/HEAD}" origin/main main; do
		git rev-parse -q --verify "$branch^{commit}" >/dev/null || continue
		base=$(git merge-base HEAD "$branch") || continue
		[ "$base" = "$(git rev-parse HEAD)" ] && base=$(git rev-parse -q --verify HEAD~1)
		[ -n "$base" ] && return
	done
	echo "$tool: no commit to compare with: set UNISCOPE_BASE" >&2
	return 1
}

# The files of src that differ from it; for each header, one that includes it.
changed() {
	base_find || return 1
	{ git diff --name-only "$base" -- src && git ls-files -o --exclude-standard src; } >"$build/$tool.differ" ||
		return 1
	while read -r f; do
		case $f in
		*.c) [ ! -f "$f" ] || echo "$f" ;;
		*.h) git grep -l "include [\"<].*\b$(basename "$f")[\">]" -- 'src/*.c' | head -1 ;;
		esac
	done <"$build/$tool.differ" | sort -u
}

# tidy [OPTION...]: the files that stdin names. Programs for the kernel are not in the compilation
# database: they get their own flags.
tidy() {
	cat >"$build/clang-tidy.files"
	failed=0
	grep -v '\.bpf\.c$' "$build/clang-tidy.files" | xargs -r -P 2 -n 4 clang-tidy --quiet \
		--warnings-as-errors='*' --extra-arg=-Wno-unknown-warning-option "$@" -p "$build" \
		2>>"$build/clang-tidy.err" || failed=1
	grep '\.bpf\.c$' "$build/clang-tidy.files" | xargs -r -I '{}' clang-tidy --quiet \
		--warnings-as-errors='*' "$@" '{}' -- -target bpf -mcpu=v3 -O2 -I"$build/layers/backend" \
		2>>"$build/clang-tidy.err" || failed=1
	return $failed
}

case $tool in
clang-format)
	sources '*.c' '*.h' >"$build/clang-format.files" || exit 1
	xargs clang-format --dry-run -Werror <"$build/clang-format.files" || exit 1
	;;
clang-tidy)
	# clang-tidy analyses files that differ from the branch's base as deeply as it does by itself. In sh test.sh all, it
	# analyses the others as well, but only the first steps of each path: that takes an eighth.
	: >"$build/clang-tidy.err"
	changed >"$build/clang-tidy.changed" || exit 1
	tidy <"$build/clang-tidy.changed" || bad=1
	if [ -n "${UNISCOPE_ALL-}" ]; then
		sources 'src/*.c' 'plugin/*.c' >"$build/clang-tidy.all" || exit 1
		grep -vxF -f "$build/clang-tidy.changed" "$build/clang-tidy.all" |
			tidy --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
				--extra-arg=max-nodes=4000 || bad=1
		echo "clang-tidy: all of src"
	fi
	[ -z "${bad-}" ] || { grep -v 'generated\.$' "$build/clang-tidy.err"; exit 1; }
	echo "clang-tidy: $(wc -l <"$build/clang-tidy.changed") files that differ from $base"
	;;
cppcheck)
	# Only our own code, through the compilation database, so that include paths are right.
	# memleak is off: cppcheck 2.10 knows no cleanup attributes and calls each early return a leak;
	# the sanitizer build looks for leaks.
	# Like clang-tidy: all of src in sh test.sh all, else the files that differ from the branch's base.
	set -- "--file-filter=$PWD/src/*"
	if [ -z "${UNISCOPE_ALL-}" ]; then
		changed >"$build/cppcheck.changed" || exit 1
		grep -v '\.bpf\.c$' "$build/cppcheck.changed" >"$build/cppcheck.files" || {
			echo "cppcheck: no file differs from $base"
			exit 0
		}
		set --
		while read -r f; do set -- "$@" "--file-filter=$PWD/$f"; done <"$build/cppcheck.files"
	fi
	mkdir -p "$build/cppcheck"
	cppcheck -j 2 --project="$build/compile_commands.json" "$@" \
		--cppcheck-build-dir="$build/cppcheck" --enable=warning,performance,portability \
		--inline-suppr --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
		--suppress=toomanyconfigs --suppress=memleak --suppress="*:/usr/include/*" --error-exitcode=1 --quiet 2>&1 || exit 1
	;;
esac
echo "$tool: clean"
