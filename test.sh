#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sh test.sh           what a change needs, in minutes: one compiler, one way to run a guest
# sh test.sh all       everything: each compiler and way, all of src linted, ASan and UBSan
# sh test.sh NAME...   these tests alone (meson test -C build-test --list names them)
# sh test.sh plant     planted defects: is each found? (tests/plant)
# Installs what is missing and builds first. Prints what was left out, the ten slowest tests, and
# "N passed, N failed, N skipped". tests/README.md says which promise each test keeps.
set -u
cd "$(dirname "$0")" || exit 1
start=$(date +%s)
status=0 quick='' behind='' mode=names
case ${1-} in
'') mode=default ;;
all) mode=all ;;
plant) shift && exec sh tests/plant/run "$@" ;;
-*)
	sed -n '3,8s/^# //p' "$0"
	[ "$1" = -h ] || [ "$1" = --help ] || exit 2
	exit 0
	;;
esac
[ $mode != all ] || [ $# -eq 1 ] || { echo "test.sh: 'all' takes no further names" >&2; exit 2; }

step() { printf '\n== %s (%s s)\n' "$*" "$(($(date +%s) - start))"; }
trap '[ -z "$quick" ] || kill "$quick" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# build DIR COMPILER all|default|"[-]SUITE..." [OPTION...]: configure if need be, and compile the programs for all tests,
# for the default run, or for some suites, as tests/totals.py has it. A failure ends test.sh.
build() {
	dir=$1 cc=$2 targets=$3 how=setup
	shift 3
	[ ! -f "$dir/build.ninja" ] || how=configure
	if [ $how = setup ] || { [ $mode != names ] && [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; }; then
		[ $how = configure ] || set -- --werror "$@"
		CC=$cc meson $how "$dir" "$@" >"$dir.log" 2>&1 || { tail -30 "$dir.log"; exit 1; }
		[ $how = configure ] || shift
		echo "$*" >"$dir/options"
	fi
	rm -f "$dir.log"
	case $targets in
	all) ;;
	default) targets=$(ninja -C "$dir" build.ninja >/dev/null && python3 tests/totals.py targets "$dir") ;;
	*) # shellcheck disable=SC2086 # words
		targets=$(ninja -C "$dir" build.ninja >/dev/null && python3 tests/totals.py targets "$dir" $targets) ;;
	esac
	# shellcheck disable=SC2086 # words
	$behind ninja -C "$dir" $targets >"$dir/ninja.log" 2>&1 || {
		grep -E 'error|warning|FAILED' "$dir/ninja.log" | head -40
		exit 1
	}
}

# tests DIR LOG OPTION...: those that the options choose; what each cost goes to LOG, too.
tests() {
	dir=$1 log=$2
	shift 2
	rm -f "$dir/meson-logs/$log.json" "$dir/meson-logs/$log-lane.py.json"
	# shellcheck disable=SC2086 # words
	$behind meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "$log" --timeout-multiplier 4 "$@"
	ret=$?
	mv "$dir/meson-logs/$log-lane.py.json" "$dir/meson-logs/$log.json" # Meson adds the wrapper's name
	return $ret
}

# Tests without guests run beside the others, when those leave a CPU idle.
quick() {
	bad=0 behind='nice -n 5' programs='--suite unit --suite fuzz'
	[ $mode != all ] || programs='--suite gcc' # clang's build has the others
	# shellcheck disable=SC2086 # words
	tests build-test quick --wrapper "$PWD/tests/lane.py -" $left_out \
		$programs --suite style --suite lint || bad=1
	[ $mode = all ] || return $bad
	# clang shows its warnings, and code that depends on the compiler. lld links in less than half of the time.
	echo '== build: clang, with ASan and UBSan'
	export CC_LD=lld
	# Not optimised, which takes two fifths of the time of -O1; the tests take as long. Lines are all that a report names.
	build build-asan clang 'unit fuzz objects' -Dlab=false -Db_sanitize=address,undefined -Db_lundef=false \
		-Doptimization=0 -Dc_args=-g1
	ASAN_OPTIONS=detect_leaks=1:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		tests build-asan asan --wrapper "$PWD/tests/lane.py -" --suite unit --suite fuzz || bad=1
	return $bad
}

step "packages"
sh deps.sh test || exit 1
# If python3 is a script that looks for a Python first (pyenv), each start takes 0.12 CPU seconds, not 0.01. The packages
# are for Debian's.
if [ -x /usr/bin/python3 ]; then
	mkdir -p build-test/bin && ln -sf /usr/bin/python3 build-test/bin/python3
	export PATH="$PWD/build-test/bin:$PATH"
fi
have='' must=${UNISCOPE_MUST:-}
for part in kvm bpf perf xen browser; do
	why=$(UNISCOPE_MUST='' python3 tests/support/can.py $part) && have="$have $part" ||
		case " $must " in
		*" $part "*)
			echo "test.sh: UNISCOPE_MUST has $part, which is not here: $why" >&2
			exit 1
			;;
		*) echo "not here, so its tests skip: $part ($why)" ;;
		esac
done
export UNISCOPE_MUST="$have"
echo "what the host has, and no test may skip:${UNISCOPE_MUST:- nothing}"

step "build: gcc"
# By names, what is there stays as it was built.
if [ $mode = default ]; then
	left_out='--no-suite all'
	# Optimised less, and without types of debug data, uniscope compiles in two thirds of the time. The lab's guests have
	# options of their own. These warnings guess wrong then.
	build build-test gcc default -Doptimization=1 '-Dc_args=-g1 -Wno-format-truncation -Wno-maybe-uninitialized'
else
	export UNISCOPE_ALL=1
	left_out=
	some=all
	[ $mode = names ] || some='-fuzz -unit gcc' # ASan runs those but the last
	build build-test gcc "$some" -Doptimization=2 -Dc_args=
fi
[ $mode = names ] || python3 tests/totals.py check build-test || exit 1
mkdir -p build-test/lanes

if [ $mode = names ]; then
	python3 tests/totals.py check build-test "$@" || exit 1
	step "tests"
	tests build-test names --wrapper "$PWD/tests/lane.py $PWD/build-test/lanes" "$@" || status=1
	step "totals"
	python3 tests/totals.py sum names build-test/names || status=1
	exit $status
fi

rm -f build-*/meson-logs/quick.json build-*/meson-logs/e2e.json build-*/meson-logs/asan.json
(quick) >build-test/quick.log 2>&1 &
quick=$!
step "tests with guests"
# shellcheck disable=SC2086 # words
tests build-test e2e --wrapper "$PWD/tests/lane.py $PWD/build-test/lanes" $left_out --suite e2e || status=1
step "unit and fuzz tests, style, lint (they ran beside)"
wait "$quick" || status=1
quick=
cat build-test/quick.log
step "totals"
times >build-test/times
python3 tests/totals.py cpu build-test/times "$(($(date +%s) - start))"
if [ $mode = all ]; then
	python3 tests/totals.py sum all build-test/quick build-test/e2e build-asan/asan || status=1
else
	python3 tests/totals.py sum default build-test/quick build-test/e2e || status=1
fi
exit $status
