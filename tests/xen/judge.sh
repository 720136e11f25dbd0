# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# For judge/CASE.sh: the same of Xen's guests.
. "$SRC/tests/lab/judge.sh"
# shellcheck disable=SC2034 # for judge()
images=xen-
