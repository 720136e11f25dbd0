# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# For tests that print TAP; to be sourced. Wants the folder $T, and n=0 before the first check.

# check WHAT COMMAND...: one line of TAP; what the command said if it failed.
check() {
	n=$((n + 1)) what=$1
	shift
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/check"
	fi
}
