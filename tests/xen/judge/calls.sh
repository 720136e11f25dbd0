#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sessions of cases/calls.sh against the guests' books, and against their numbers of lines.
. "$SRC/tests/xen/judge.sh"
judge calls1 calls1 --min-samples 1000
judge calls2 calls2 --min-samples 1000
# All lines cost the same: calls are 67 to 33, but time is as the lines are.
verdict 'calls1: time is as the lines, 10 to 30 to 60' python3 "$SRC/tests/xen/lines.py" \
	"$OUT/calls1.uniscope" function_1=10 function_2=30 function_3=60
verdict 'calls2: time is as the lines, 40 to 40 to 20' python3 "$SRC/tests/xen/lines.py" \
	"$OUT/calls2.uniscope" function_3=40 function_4=40 function_5=20
judge threads threads --min-samples 1000
echo "1..$n"
