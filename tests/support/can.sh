# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What the host offers, by can.py's trial and not by uniscope's word; to be sourced. Wants SRC, or the
# test in a folder of tests/. The variable UNISCOPE_MUST holds the parts that this host must have.

# can PART: 1 if the host cannot, and $why_not. A host that must and cannot ends the test: it failed.
can() {
	why_not=$(python3 "${SRC:-$(dirname "$0")/../..}/tests/support/can.py" "$1") && return 0
	[ $? -ne 77 ] || return 1
	echo "Bail out! UNISCOPE_MUST has $1: $why_not"
	exit 1
}

# absent WHY: without what the build or a package gives, the test is skipped; not where UNISCOPE_MUST is set.
absent() {
	[ -z "${UNISCOPE_MUST:-}" ] || {
		echo "Bail out! $1"
		exit 1
	}
	echo "1..0 # SKIP $1"
	exit 0
}

# need PART...: otherwise the whole test is skipped.
need() {
	for part; do
		can "$part" || {
			echo "1..0 # SKIP $why_not"
			exit 0
		}
	done
}
