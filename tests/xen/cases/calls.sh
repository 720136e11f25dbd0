# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# Guests that print: nearly all of their time is in hypercalls, whose stubs no image knows. And one
# with threads.
check 'pv, calls1: recorded' recorded calls1 pv 1 'calls1 mix=1' 1.2
check 'pvh, calls2: recorded' recorded calls2 pvh 1 'calls2 mix=1' 1.2
check 'pvh, threads: recorded' recorded threads pvh 1 threads 1.2
check 'nothing is left' nothing_left
